/* lora.c: low-rank adapters (Hu and others, 2021) beside a model that stays as it is: where they lie, what they add to
 * its products, and how they are given out. All A are in one flat state, all B in the other. */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define A ".lora_a"
#define B ".lora_b"
static const char usual[] = "attn_q,attn_k,attn_v,attn_qkv,attn_output,ffn_gate,ffn_up,ffn_down";

/* ---- where they lie ---- */

/* Is "blk.N.STEM.weight" named in a list of stems? */
static bool is_named(const char *list, const char *weight) {
    int used = 0;
    const char *end = strrchr(weight, '.');
    if (sscanf(weight, "blk.%*u.%n", &used) != 0 || used == 0 || !end || end < weight + used) return false;
    const size_t length = (size_t)(end - weight) - (size_t)used;
    for (const char *at = list; *at;) {
        const size_t item = strcspn(at, ",");
        if (item == length && memcmp(at, weight + used, length) == 0) return true;
        at += item + (at[item] == ',');
    }
    return false;
}

/* A name of the list that is none of a weight that can be adapted is refused. */
static hd_status check_targets(hd_context *context, const hd_model *base, const char *list) {
    for (const char *at = list; *at;) {
        const size_t item = strcspn(at, ",");
        char one[sizeof ((hd_lora_desc *)0)->targets];
        bool found = false;
        hd_model_weight weight;
        snprintf(one, sizeof one, "%.*s", (int)item, at);
        for (size_t i = 0; !found && hd_model_get_weight(base, i, &weight); i++)
            found = weight.product && is_named(one, weight.name);
        if (!found)
            return hdt_fail(context, HD_STATUS_NAME_NOT_FOUND,
                            "no layer of this model multiplies with a weight called '%s'; there are such as "
                            "attn_q, attn_v, ffn_down", one);
        at += item + (at[item] == ',');
    }
    return HD_OK;
}

static bool is_target(const hd_lora_desc *lora, const hd_model_weight *weight) {
    return weight->product && is_named(lora->targets[0] ? lora->targets : usual, weight->name);
}

static void add_pair(hdt_layout *layout, const hd_model_weight *weight, int64_t rank) {
    const float bound = (float)(1 / sqrt((double)weight->shape.dims[1]));
    hdt_parameter a = {
        .shape = HD_SHAPE(rank, weight->shape.dims[1]), .group = HDT_ALL_A, .spread = 2 * bound, .begin = -bound
    };
    hdt_parameter b = { .shape = HD_SHAPE(weight->shape.dims[0], rank), .group = HDT_ALL_B };
    snprintf(a.name, sizeof a.name, "%.*s" A, (int)(sizeof a.name - sizeof A), weight->name);
    snprintf(b.name, sizeof b.name, "%.*s" B, (int)(sizeof b.name - sizeof B), weight->name);
    hdt_layout_add(layout, &a);
    hdt_layout_add(layout, &b);
}

hd_status hdt_layout_make_lora(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout) {
    const hd_lora_desc *lora = &desc->lora;
    hd_model_weight weight;
    uint64_t most = 0;
    *out_layout = (hdt_layout){ .context = context, .model = desc->model, .base = desc->base,
                                .scale = lora->alpha > 0 ? lora->alpha / (float)lora->rank : 1 };
    const hd_status status = check_targets(context, desc->base, lora->targets);
    if (status) return status;
    for (size_t i = 0; hd_model_get_weight(desc->base, i, &weight); i++) most += is_target(lora, &weight);
    if (most == 0) return hdt_fail(context, HD_STATUS_NAME_NOT_FOUND, "this model has no weight that can be adapted");
    out_layout->room = (uint32_t)(2 * most);
    out_layout->parameters = hdt_alloc(context, out_layout->room, sizeof *out_layout->parameters);
    if (!out_layout->parameters) return hdt_no_memory(context);
    for (size_t i = 0; hd_model_get_weight(desc->base, i, &weight); i++)
        if (is_target(lora, &weight)) add_pair(out_layout, &weight, lora->rank);
    return HD_OK;
}

/* ---- what they add ---- */

/* Number of a weight's A, or the number of parameters; its B comes next. */
static uint32_t find_a(const hdt_layout *layout, const char *weight) {
    const size_t length = strlen(weight);
    uint32_t i = 0;
    while (i < layout->count && (strncmp(layout->parameters[i].name, weight, length) != 0 ||
                                 strcmp(layout->parameters[i].name + length, A) != 0))
        i += 2;
    return i < layout->count ? i : layout->count;
}

static hd_value adapt(void *user, hd_program *p, const char *weight, hd_value x, hd_value y) {
    hdt_graph *graph = user;
    const uint32_t a = find_a(graph->layout, weight);
    if (a == graph->layout->count) return y;
    /* scaled where it is narrow, which is least work */
    hd_value narrow = hdt_graph_product(graph, hdt_graph_dropped(graph, x), graph->weights[a], HD_TRANSPOSE_B);
    narrow = hd_scale(p, narrow, graph->layout->scale, 0);
    if (graph->casts) narrow = hd_cast(p, narrow, HD_BF16);
    return hd_add(p, y, hdt_graph_product(graph, narrow, graph->weights[a + 1], HD_TRANSPOSE_B));
}

/* x times a weight of the base, which stays as it is where it is quantised: a product rounds it. */
static hd_value multiply(void *user, hd_program *p, hd_value x, hd_value weight) {
    hdt_graph *graph = user;
    hd_dtype dtype = HD_F32;
    if (!graph->casts) return hd_matmul_with(p, x, weight, HD_TRANSPOSE_B);
    if (hd_value_describe(p, weight, &dtype, NULL)) return 0;
    if (dtype == HD_F32 || dtype == HD_F16) weight = hd_cast(p, weight, HD_BF16);
    return hd_matmul_with(p, hdt_graph_rounded(graph, x), weight, HD_TRANSPOSE_B | HD_RESULT_F32);
}

/* Rows whose losses, and gradients, are taken while their scores are there. */
struct hdt_pieces {
    hd_value  targets, share;
    uint32_t  rows, count;
    hd_value *losses, *gradients;
};

/* What fails sticks to the program. */
static void take_losses(void *user, hd_program *p, hd_value x, hd_value scores) {
    const hdt_graph *graph = user;
    struct hdt_pieces *pieces = graph->pieces;
    if (!pieces) return;
    const uint32_t i = pieces->count++;
    const hd_value targets = hdt_graph_rows(graph, pieces->targets, (int64_t)i * pieces->rows, pieces->rows);
    pieces->losses[i] = hd_cross_entropy(p, scores, targets);
    if (!pieces->share) return;
    const hd_value part = hd_mul(p, hd_sum(p, pieces->losses[i], HD_ALL_AXES), pieces->share);
    hd_gradients(p, part, &x, 1, NULL, &pieces->gradients[i]);
}

/* The scores of `rows` rows at a time. */
static void build(hdt_graph *graph, hd_value tokens, uint32_t rows, hd_value *out_scores) {
    const hd_model_graph_desc desc = { .sequences = graph->batch, .length = graph->length, .tokens = tokens,
                                       .positions = hdt_graph_positions(graph),
                                       .starts = hdt_graph_starts(graph), .score_rows = rows,
                                       .adapt = adapt, .multiply = multiply, .on_scores = take_losses,
                                       .user = graph,
                                       .bf16 = graph->casts != NULL };
    graph->drawn = 0;
    /* what fails sticks to the program, or leaves no scores */
    hd_model_build(graph->layout->base, graph->program, &desc, graph->layers, out_scores);
}

hd_value hdt_graph_lora_scores(hdt_graph *graph, hd_value tokens) {
    hd_value scores = 0;
    build(graph, tokens, 0, &scores);
    return scores;
}

/* Scores of a large vocabulary are many times what a layer keeps: so many rows of them at a time. */
static uint32_t rows_at_once(const hdt_graph *graph) {
    const uint64_t most = UINT64_C(1) << 26; /* scores */
    uint32_t rows = graph->batch * graph->length;
    while (rows % 2 == 0 && rows * (uint64_t)graph->layout->model.vocabulary > most) rows /= 2;
    return rows;
}

hd_value hdt_graph_lora_losses(hdt_graph *graph, hd_value tokens, hd_value targets, hd_value share,
                               hd_value *out_gradient) {
    const uint32_t rows = rows_at_once(graph), count = graph->batch * graph->length / rows;
    hd_value *values = hdt_alloc(graph->layout->context, 3 * (size_t)count, sizeof *values), all = 0;
    if (!values) return 0;
    struct hdt_pieces pieces = { .targets = targets, .share = share, .rows = rows, .losses = values + count,
                                 .gradients = values + 2 * (size_t)count };
    graph->pieces = &pieces;
    build(graph, tokens, rows, values);
    graph->pieces = NULL;
    if (pieces.count == count) {
        all = hdt_concat(graph->program, pieces.losses, count);
        if (share) *out_gradient = hdt_concat(graph->program, pieces.gradients, count);
    }
    hdt_free(graph->layout->context, values, 3 * (size_t)count, sizeof *values);
    return all;
}

/* ---- as an adapter ---- */

/* Pairs over what the states hold on the host. */
static void take_pairs(const hdt_layout *layout, float *const groups[HDT_GROUPS], char (*names)[HDT_NAME],
                       hd_adapter_pair *pairs) {
    for (uint32_t i = 0; i < layout->count; i += 2) {
        const hdt_parameter *a = &layout->parameters[i], *b = &layout->parameters[i + 1];
        snprintf(names[i / 2], HDT_NAME, "%.*s", (int)(strlen(a->name) - strlen(A)), a->name);
        pairs[i / 2] = (hd_adapter_pair){ names[i / 2], (uint32_t)a->shape.dims[0], (uint32_t)b->shape.dims[0],
                                          (uint32_t)a->shape.dims[1],
                                          groups[a->group] + a->first, groups[b->group] + b->first };
    }
}

hd_status hd_trainer_adapter(hd_trainer *trainer, hd_adapter **out_adapter) {
    if (out_adapter) *out_adapter = NULL;
    if (!trainer || !out_adapter) return HD_STATUS_NULL_POINTER;
    hd_context *context = trainer->context;
    const hdt_layout *layout = &trainer->layout;
    if (!trainer->base) return hdt_fail(context, HD_STATUS_WRONG_STATE, "a whole model learns, and has no adapters");
    const uint32_t count = layout->count / 2;
    float *groups[HDT_GROUPS] = { NULL };
    char (*names)[HDT_NAME] = hdt_alloc(context, count, sizeof *names);
    hd_adapter_pair *pairs = hdt_alloc(context, count, sizeof *pairs);
    hd_status status = names && pairs ? hdt_read_groups(trainer, HDT_WEIGHTS, groups) : hdt_no_memory(context);
    if (!status) {
        take_pairs(layout, groups, names, pairs);
        status = hd_adapter_create(context, trainer->architecture, trainer->desc.lora.alpha, pairs, count, out_adapter);
    }
    hdt_free_groups(trainer, groups);
    hdt_free(context, names, count, sizeof *names);
    hdt_free(context, pairs, count, sizeof *pairs);
    return status;
}
