/* decoder.c: models of the families llama and qwen3 that learn whole: their weights, and their figures as a GGUF file
 * says them. What they compute is the family's own graph (hd_model_build), of the model that such a file would be. */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEVIATION 0.02

/* How long an axis is. */
typedef enum axis { NONE, HIDDEN, QUERIES, KEYS, HEAD, FORWARD } axis;
/* A weight of a layer, under both its names: one that llama does not have; one whose heads turn, so that where a family
 * turns neighbours its file has the rows in another order than transformers; one whose product is added to what goes
 * through the layers. */
typedef struct row {
    const char *file_name, *name;
    axis        rows, columns;
    enum { PLAIN, QWEN3, TURNED, RESIDUAL } kind;
} row;
static const row of_layer[] = {
    { "attn_norm", "input_layernorm", HIDDEN, NONE, PLAIN },
    { "attn_q", "self_attn.q_proj", QUERIES, HIDDEN, TURNED },
    { "attn_k", "self_attn.k_proj", KEYS, HIDDEN, TURNED },
    { "attn_v", "self_attn.v_proj", KEYS, HIDDEN, PLAIN },
    { "attn_q_norm", "self_attn.q_norm", HEAD, NONE, QWEN3 },
    { "attn_k_norm", "self_attn.k_norm", HEAD, NONE, QWEN3 },
    { "attn_output", "self_attn.o_proj", HIDDEN, QUERIES, RESIDUAL },
    { "ffn_norm", "post_attention_layernorm", HIDDEN, NONE, PLAIN },
    { "ffn_gate", "mlp.gate_proj", FORWARD, HIDDEN, PLAIN },
    { "ffn_up", "mlp.up_proj", FORWARD, HIDDEN, PLAIN },
    { "ffn_down", "mlp.down_proj", HIDDEN, FORWARD, RESIDUAL },
};

static int64_t elements(const hd_gpt *model, axis of) {
    switch (of) {
    case HIDDEN: return model->width;
    case QUERIES: return (int64_t)model->heads * model->head_size;
    case KEYS: return (int64_t)model->kv_heads * model->head_size;
    case HEAD: return model->head_size;
    case FORWARD: return model->feed_forward;
    case NONE: break;
    }
    return 0;
}

/* ---- what can be trained ---- */

hd_status hdt_check_decoder(hd_context *context, hd_gpt *model) {
    enum { MOST_HEADS = 1 << 12, MOST_FORWARD = 1 << 22 };
    if (model->kv_heads == 0) model->kv_heads = model->heads;
    if (model->head_size == 0) model->head_size = model->width / model->heads;
    if (model->epsilon == 0) model->epsilon = 1e-6;
    if (model->rope_theta == 0) model->rope_theta = 10000;
    if (model->heads > MOST_HEADS || model->kv_heads > model->heads || model->heads % model->kv_heads != 0)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "%u heads of queries over %u of keys: at most 4096, and a "
                        "multiple of these, are possible", model->heads, model->kv_heads);
    if (model->head_size > MOST_HEADS || model->head_size % 2 != 0 || model->head_size == 0)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "heads of %u elements: an even number up to 4096 is possible", model->head_size);
    if (model->feed_forward < 1 || model->feed_forward > MOST_FORWARD)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "a feed-forward layer of %u: 1 to 4194304 are possible",
                        model->feed_forward);
    if (!(model->epsilon >= 1e-30 && model->epsilon < 1) || !(model->rope_theta > 1.001 && model->rope_theta < 1e12))
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "an epsilon of %g and a rope_theta of %g: 1e-30 to 1, and 1.001 to 1e12 are possible",
                        model->epsilon, model->rope_theta);
    return HD_OK;
}

/* ---- weights ---- */

static void add(hdt_layout *layout, const char *file_name, const char *name, hd_shape shape, int matrices,
                double deviation) {
    hdt_parameter parameter = { .shape = shape, .group = shape.rank > 1 ? matrices : HDT_VECTORS,
                                .deviation = shape.rank > 1 ? (float)deviation : 0, .begin = shape.rank > 1 ? 0 : 1 };
    snprintf(parameter.name, sizeof parameter.name, "%s.weight", name);
    snprintf(parameter.file_name, sizeof parameter.file_name, "%s.weight", file_name);
    hdt_layout_add(layout, &parameter);
}

static void add_layer(hdt_layout *layout, uint32_t layer, int matrices) {
    const hd_gpt *model = &layout->model;
    for (size_t i = 0; i < HDT_COUNT(of_layer); i++) {
        const row *r = &of_layer[i];
        const int64_t rows = elements(model, r->rows), columns = elements(model, r->columns);
        char name[HDT_NAME - sizeof ".weight"], file_name[HDT_NAME - sizeof ".weight"];
        if (r->kind == QWEN3 && model->family != HD_FAMILY_QWEN3) continue;
        snprintf(name, sizeof name, "model.layers.%u.%s", layer, r->name);
        snprintf(file_name, sizeof file_name, "blk.%u.%s", layer, r->file_name);
        add(layout, file_name, name, columns ? HD_SHAPE(rows, columns) : HD_SHAPE(rows), matrices,
            DEVIATION / (r->kind == RESIDUAL ? sqrt(2.0 * model->layers) : 1));
        if (r->kind == TURNED && model->family == HD_FAMILY_LLAMA)
            layout->parameters[layout->count - 1].heads = r->rows == QUERIES ? model->heads : model->kv_heads;
    }
}

static hd_status sketch(hdt_layout *layout) {
    hd_model_writer *writer;
    hd_status status = hd_model_writer_create(layout->context, &writer);
    if (status) return status;
    hdt_put_figures(&layout->model, writer);
    for (uint32_t i = 0; i < layout->count; i++) {
        const hdt_parameter *one = &layout->parameters[i];
        hd_model_writer_tensor(writer, one->file_name, hdt_weight_type(layout, one->group), one->shape, NULL, NULL);
    }
    status = hd_model_writer_sketch(writer, NULL, &layout->sketch);
    hd_model_writer_destroy(writer);
    return status;
}

hd_status hdt_layout_make_decoder(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout) {
    enum { OUTSIDE = 3 };
    const hd_gpt *model = &desc->model;
    const int of_layers = desc->optimizer == HD_OPTIMIZER_MUON ? HDT_HIDDEN : HDT_MATRICES;
    const hd_shape table = HD_SHAPE(model->vocabulary, model->width);
    *out_layout = (hdt_layout){ .context = context, .model = *model, .ternary = desc->ternary,
                                .narrow = desc->narrow };
    out_layout->room = OUTSIDE + model->layers * (uint32_t)HDT_COUNT(of_layer);
    out_layout->parameters = hdt_alloc(context, out_layout->room, sizeof *out_layout->parameters);
    if (!out_layout->parameters) return hdt_no_memory(context);
    add(out_layout, "token_embd", "model.embed_tokens", table, HDT_MATRICES, DEVIATION);
    for (uint32_t layer = 0; layer < model->layers; layer++) add_layer(out_layout, layer, of_layers);
    add(out_layout, "output_norm", "model.norm", HD_SHAPE(model->width), HDT_VECTORS, 0);
    if (!model->tied) {
        out_layout->head = out_layout->count;
        add(out_layout, "output", "lm_head", table, HDT_MATRICES, DEVIATION);
    }
    return sketch(out_layout);
}

/* ---- the graph ---- */

static hd_value weight(void *user, hd_program *p, const char *name) {
    const hdt_graph *graph = user;
    (void)p;
    for (uint32_t i = 0; i < graph->layout->count; i++)
        if (strcmp(graph->layout->parameters[i].file_name, name) == 0) return graph->weights[i];
    return 0;
}

/* Dropout of what the embedding gives and of the feed-forward layer's inner values. */
static hd_value enter(void *user, hd_program *p, const char *name, hd_value x) {
    (void)p;
    return strcmp(name, "token_embd.weight") == 0 || strstr(name, ".ffn_down.") ? hdt_graph_dropped(user, x) : x;
}

/* Dropout of what attention and the feed-forward layer add. */
static hd_value adapt(void *user, hd_program *p, const char *name, hd_value x, hd_value y) {
    (void)p, (void)x;
    return strstr(name, ".attn_output.") || strstr(name, ".ffn_down.") ? hdt_graph_dropped(user, y) : y;
}

static hd_value multiply(void *user, hd_program *p, hd_value x, hd_value weight) {
    (void)p;
    return hdt_graph_product(user, x, weight, HD_TRANSPOSE_B);
}

hd_value hdt_graph_decoder(hdt_graph *graph, hd_value tokens) {
    hd_value hidden = 0;
    const hd_model_graph_desc desc = { .sequences = graph->batch, .length = graph->length, .tokens = tokens,
                                       .positions = hdt_graph_positions(graph), .enter = enter, .adapt = adapt,
                                       .weight = weight, .multiply = multiply, .user = graph, .headless = 1,
                                       .bf16 = graph->casts != NULL };
    graph->drawn = 0;
    /* what fails sticks to the program, or leaves no values */
    hd_model_build(graph->layout->sketch, graph->program, &desc, graph->layers, &hidden);
    return hidden;
}
