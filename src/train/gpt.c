/* gpt.c: GPT-2's weights and what its layers compute (Radford and others, 2019; names, axes and order as in Hugging
 * Face's GPT2LMHeadModel, whose linear layers hold [in, out]). */
#include "train/gpt.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Parameters of a layer, in their order; those outside of layers: */
enum { LN1_W, LN1_B, ATTN_W, ATTN_B, PROJ_W, PROJ_B, LN2_W, LN2_B, FC_W, FC_B, OUT_W, OUT_B, OF_LAYER,
       EMBEDDING = 0, POSITIONS, BEFORE, OF_HEAD = 2 };
#define DEVIATION 0.02

/* ---- where weights lie ---- */

static uint64_t aligned(uint64_t elements) { return (elements + HDT_ALIGN - 1) / HDT_ALIGN * HDT_ALIGN; }

void hdt_layout_add(hdt_layout *layout, const hdt_parameter *parameter) {
    uint64_t *end = &layout->group_elements[parameter->group];
    layout->parameters[layout->count] = *parameter;
    layout->parameters[layout->count++].first = *end;
    *end = aligned(*end + hd_shape_elements(parameter->shape));
    layout->parameters[layout->count - 1].ternary =
        layout->ternary && parameter->shape.rank > 1 && strncmp(parameter->file_name, "blk.", 4) == 0;
    layout->elements += hd_shape_elements(parameter->shape);
}

/* Both names of a weight. */
typedef struct both { const char *name, *file_name; } both;

/* @param matrices the group of those with two axes */
static void add(hdt_layout *layout, both names, hd_shape shape, int matrices, double deviation, float begin) {
    const char *kind = strrchr(names.name, '.');
    hdt_parameter parameter = { .shape = shape, .group = shape.rank > 1 ? matrices : HDT_VECTORS,
                                .deviation = (float)deviation, .begin = begin };
    parameter.transposed = shape.rank > 1 && strncmp(names.file_name, "blk.", 4) == 0;
    snprintf(parameter.name, sizeof parameter.name, "transformer.%s", names.name);
    snprintf(parameter.file_name, sizeof parameter.file_name, "%s%s", names.file_name, kind);
    hdt_layout_add(layout, &parameter);
}

static void add_layer(hdt_layout *layout, uint32_t layer, int matrices) {
    const int64_t C = layout->model.width;
    const double residual = DEVIATION / sqrt(2.0 * layout->model.layers);
    const struct { both names; hd_shape shape; double deviation; float begin; } of_layer[OF_LAYER] = {
        [LN1_W] = { { "ln_1.weight", "attn_norm" }, HD_SHAPE(C), 0, 1 },
        [LN1_B] = { { "ln_1.bias", "attn_norm" }, HD_SHAPE(C), 0, 0 },
        [ATTN_W] = { { "attn.c_attn.weight", "attn_qkv" }, HD_SHAPE(C, 3 * C), DEVIATION, 0 },
        [ATTN_B] = { { "attn.c_attn.bias", "attn_qkv" }, HD_SHAPE(3 * C), 0, 0 },
        [PROJ_W] = { { "attn.c_proj.weight", "attn_output" }, HD_SHAPE(C, C), residual, 0 },
        [PROJ_B] = { { "attn.c_proj.bias", "attn_output" }, HD_SHAPE(C), 0, 0 },
        [LN2_W] = { { "ln_2.weight", "ffn_norm" }, HD_SHAPE(C), 0, 1 },
        [LN2_B] = { { "ln_2.bias", "ffn_norm" }, HD_SHAPE(C), 0, 0 },
        [FC_W] = { { "mlp.c_fc.weight", "ffn_up" }, HD_SHAPE(C, 4 * C), DEVIATION, 0 },
        [FC_B] = { { "mlp.c_fc.bias", "ffn_up" }, HD_SHAPE(4 * C), 0, 0 },
        [OUT_W] = { { "mlp.c_proj.weight", "ffn_down" }, HD_SHAPE(4 * C, C), residual, 0 },
        [OUT_B] = { { "mlp.c_proj.bias", "ffn_down" }, HD_SHAPE(C), 0, 0 },
    };
    for (int i = 0; i < OF_LAYER; i++) {
        char name[HDT_NAME - sizeof "transformer."], file_name[HDT_NAME - sizeof ".weight"];
        snprintf(name, sizeof name, "h.%u.%s", layer, of_layer[i].names.name);
        snprintf(file_name, sizeof file_name, "blk.%u.%s", layer, of_layer[i].names.file_name);
        add(layout, (both){ name, file_name }, of_layer[i].shape, matrices, of_layer[i].deviation, of_layer[i].begin);
    }
}

hd_status hdt_layout_make(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout) {
    const hd_gpt *model = &desc->model;
    const int64_t C = model->width;
    const int of_layers = desc->optimizer == HD_OPTIMIZER_MUON ? HDT_HIDDEN : HDT_MATRICES;
    *out_layout = (hdt_layout){ .context = context, .model = *model, .ternary = desc->ternary,
                                .narrow = desc->narrow };
    out_layout->room = BEFORE + model->layers * OF_LAYER + OF_HEAD;
    out_layout->parameters = hdt_alloc(context, out_layout->room, sizeof *out_layout->parameters);
    if (!out_layout->parameters) return hdt_no_memory(context);
    add(out_layout, (both){ "wte.weight", "token_embd" }, HD_SHAPE(model->vocabulary, C), HDT_MATRICES, DEVIATION, 0);
    add(out_layout, (both){ "wpe.weight", "position_embd" }, HD_SHAPE(model->context, C), HDT_MATRICES, DEVIATION, 0);
    for (uint32_t layer = 0; layer < model->layers; layer++) add_layer(out_layout, layer, of_layers);
    add(out_layout, (both){ "ln_f.weight", "output_norm" }, HD_SHAPE(C), HDT_VECTORS, 0, 1);
    add(out_layout, (both){ "ln_f.bias", "output_norm" }, HD_SHAPE(C), HDT_VECTORS, 0, 0);
    return HD_OK;
}

void hdt_layout_free(hdt_layout *layout) {
    hd_model_close(layout->sketch);
    hdt_free(layout->context, layout->parameters, layout->room, sizeof *layout->parameters);
}

/* ---- flat states ---- */

/* A GPT-2 that learns whole learns them, too. */
static bool has_positions(const hdt_layout *layout) { return !layout->base && !layout->sketch; }

static hd_value view(const hdt_graph *graph, uint32_t index) {
    const hdt_parameter *parameter = &graph->layout->parameters[index];
    hd_shape shape = parameter->shape;
    if (index == POSITIONS && has_positions(graph->layout)) shape.dims[0] = graph->length;
    const int64_t begin = (int64_t)parameter->first, end = begin + (int64_t)hd_shape_elements(shape);
    return hd_reshape(graph->program, hd_slice(graph->program, graph->states[parameter->group], &begin, &end, 1),
                      shape);
}

hd_dtype hdt_weight_type(const hdt_layout *layout, int group) {
    return layout->narrow && group != HDT_VECTORS ? HD_BF16 : HD_F32;
}

/* Of the group of matrices, as f32. */
static hd_value widened(const hdt_graph *graph, hd_value x) {
    return hdt_weight_type(graph->layout, HDT_MATRICES) == HD_F32 ? x : hd_cast(graph->program, x, HD_F32);
}

/* Rounded to -1, 0 and 1 times the mean size (Ma and others, 2024), which is a number of f16, as files have it.
 * Gradients are taken of what comes out, and given to the weights: they pass the rounding as if it were not there. */
static hd_value ternary(hd_program *p, hd_value w) {
    const float least = 0x1p-14f, most = 65504; /* normal numbers of f16 */
    const hd_value size = hd_clip(p, hd_mean(p, hd_abs(p, w), HD_ALL_AXES), least, most);
    const hd_value scale = hd_cast(p, hd_cast(p, size, HD_F16), HD_F32);
    return hd_mul(p, hd_round(p, hd_clip(p, hd_div(p, w, scale), -1, 1)), scale);
}

void hdt_graph_weights(hdt_graph *graph, hd_value *weights) {
    hd_program *p = graph->program;
    char name[24];
    for (int group = 0; group < HDT_GROUPS; group++) {
        if (graph->layout->group_elements[group] == 0) continue;
        snprintf(name, sizeof name, "weights.%d", group);
        graph->states[group] = hd_state(p, name, hdt_weight_type(graph->layout, group),
                                        HD_SHAPE((int64_t)graph->layout->group_elements[group]));
    }
    graph->weights = weights;
    for (uint32_t i = 0; i < graph->layout->count; i++) {
        weights[i] = view(graph, i);
        if (graph->layout->parameters[i].ternary) weights[i] = ternary(p, weights[i]);
        /* whose gradient is a sum over the batch, which goes on from micro-batch to micro-batch */
        if (has_positions(graph->layout) && i == POSITIONS) weights[i] = widened(graph, weights[i]);
    }
    if (!graph->layout->base) graph->head = view(graph, graph->layout->head);
}

/* Whatever their number: an operation joins 64. */
hd_value hdt_concat(hd_program *p, hd_value *values, uint32_t count) {
    while (count > 1) {
        uint32_t joined = 0;
        for (uint32_t at = 0; at < count; at += 64)
            values[joined++] = hd_concat(p, values + at, count - at < 64 ? count - at : 64, 0);
        count = joined;
    }
    return values[0];
}

hd_status hdt_graph_join(const hdt_graph *graph, const hd_value *values, hd_value out_joined[HDT_GROUPS]) {
    const hdt_layout *layout = graph->layout;
    hd_program *p = graph->program;
    hd_value *pieces = hdt_alloc(layout->context, layout->count, sizeof *pieces);
    if (!pieces) return hdt_no_memory(layout->context);
    for (int group = 0; group < HDT_GROUPS; group++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < layout->count; i++) {
            if (layout->parameters[i].group != group) continue;
            hd_shape shape = { 0 };
            hd_value_describe(p, values[i], NULL, &shape);
            const int64_t elements = (int64_t)hd_shape_elements(shape);
            const int64_t none = 0, gap = (int64_t)aligned(hd_shape_elements(layout->parameters[i].shape)) - elements;
            const hd_value flat = hd_reshape(p, values[i], HD_SHAPE(elements));
            pieces[count++] = gap ? hd_pad(p, flat, &none, &gap, 1, 0) : flat;
        }
        if (count > 0) out_joined[group] = hdt_concat(p, pieces, count);
    }
    hdt_free(layout->context, pieces, layout->count, sizeof *pieces);
    return HD_OK;
}

hd_status hdt_graph_draw(hdt_graph *graph, hd_value key, hd_value *values) {
    hd_program *p = graph->program;
    hd_value joined[HDT_GROUPS];
    for (uint32_t i = 0; i < graph->layout->count; i++) {
        const hdt_parameter *parameter = &graph->layout->parameters[i];
        const hd_value drawn = parameter->deviation > 0 ? hd_random_normal(p, key, i, parameter->shape)
                                                        : hd_random_uniform(p, key, i, parameter->shape);
        values[i] =
            hd_scale(p, drawn, parameter->deviation > 0 ? parameter->deviation : parameter->spread, parameter->begin);
    }
    const hd_status status = hdt_graph_join(graph, values, joined);
    static const char *const names[HDT_GROUPS] = { "matrices", "vectors", "hidden" };
    for (int group = 0; group < HDT_GROUPS && !status; group++) {
        if (!graph->states[group]) continue;
        const hd_dtype dtype = hdt_weight_type(graph->layout, group);
        const hd_value drawn = dtype == HD_F32 ? joined[group] : hd_cast(p, joined[group], dtype);
        hd_output(p, names[group], hd_assign(p, graph->states[group], drawn));
    }
    return status;
}

/* ---- layers ---- */

hd_value hdt_graph_rows(const hdt_graph *graph, hd_value x, int64_t first, int64_t count) {
    hd_shape shape = { 0 };
    if (hd_value_describe(graph->program, x, NULL, &shape) != HD_OK) return 0;
    const int64_t begin[] = { first, 0 }, end[] = { first + count, shape.dims[1] };
    return first == 0 && count == shape.dims[0] ? x : hd_slice(graph->program, x, begin, end, shape.rank);
}

hd_value hdt_graph_sequences(const hdt_graph *graph, hd_value x, uint32_t first, uint32_t count) {
    return hdt_graph_rows(graph, x, (int64_t)first * graph->length, (int64_t)count * graph->length);
}

hd_value hdt_graph_input(hdt_graph *graph, const char *name, hd_dtype dtype, hd_shape shape) {
    for (size_t i = 0; i < hd_program_port_count(graph->program); i++) {
        const hd_port port = hd_program_port(graph->program, i);
        if (port.kind == HD_PORT_INPUT && strcmp(port.name, name) == 0) return port.value;
    }
    return hd_input(graph->program, name, dtype, shape);
}

/* The batch's part of what all sequences have. */
static hd_value places(hdt_graph *graph, const char *name) {
    const int64_t begin[] = { graph->first, 0 }, end[] = { (int64_t)graph->first + graph->batch, graph->length };
    const hd_value all = hdt_graph_input(graph, name, HD_I32, HD_SHAPE(graph->sequences, graph->length));
    return hd_reshape(graph->program, hd_slice(graph->program, all, begin, end, 2),
                      HD_SHAPE((int64_t)graph->batch * graph->length));
}
hd_value hdt_graph_positions(hdt_graph *graph) {
    if (graph->packed) return places(graph, "positions");
    return hdt_graph_input(graph, "positions", HD_I32, HD_SHAPE((int64_t)graph->batch * graph->length));
}
hd_value hdt_graph_starts(hdt_graph *graph) { return graph->packed ? places(graph, "starts") : 0; }

/* Sequences have a key each, so that one loses the same elements in a batch of any size. */
hd_value hdt_graph_dropped(hdt_graph *graph, hd_value x) {
    hd_program *p = graph->program;
    if (!(graph->dropout > 0)) return x;
    for (uint32_t i = 0; i < graph->batch; i++) {
        const int64_t begin[] = { graph->first + i, 0 }, end[] = { graph->first + i + 1, 4 };
        const hd_value key = hd_reshape(p, hd_slice(p, graph->keys, begin, end, 2), HD_SHAPE(4));
        graph->room[i] = hd_dropout(p, hdt_graph_sequences(graph, x, i, 1), key, graph->drawn, graph->dropout);
    }
    graph->drawn++;
    return hdt_concat(p, graph->room, graph->batch);
}

hd_value hdt_graph_rounded(hdt_graph *graph, hd_value x) {
    hd_dtype dtype = HD_BF16;
    if (hd_value_describe(graph->program, x, &dtype, NULL) || dtype == HD_BF16) return x;
    if (x != graph->cast_from) graph->cast_to = hd_cast(graph->program, x, HD_BF16);
    graph->cast_from = x;
    return graph->cast_to;
}

/* A weight in bf16: it is cast once for all that read it, where it is not kept so. */
static hd_value rounded_weight(hdt_graph *graph, hd_value weight) {
    hd_dtype dtype = HD_F32;
    uint32_t at = 0;
    if (hd_value_describe(graph->program, weight, &dtype, NULL) || dtype == HD_BF16) return weight;
    while (at < graph->layout->count && graph->weights[at] != weight) at++;
    if (!graph->casts[at]) graph->casts[at] = hd_cast(graph->program, weight, HD_BF16);
    return graph->casts[at];
}

/* Of mixed precision both operands are cast, each once for all products that read it, and sums stay f32. */
hd_value hdt_graph_product(hdt_graph *graph, hd_value x, hd_value weight, uint32_t flags) {
    hd_program *p = graph->program;
    if (!graph->casts) return hd_matmul_with(p, x, weight, flags);
    return hd_matmul_with(p, hdt_graph_rounded(graph, x), rounded_weight(graph, weight), flags | HD_RESULT_F32);
}

static hd_value linear(hdt_graph *graph, hd_value x, hd_value weight, hd_value bias) {
    return hd_add(graph->program, hdt_graph_product(graph, x, weight, HD_MATMUL_PLAIN), bias);
}

/* One whose result is not added to what the layers hand on: in mixed precision it is bf16, as its readers want it. */
static hd_value inner_linear(hdt_graph *graph, hd_value x, hd_value weight, hd_value bias) {
    if (!graph->casts) return linear(graph, x, weight, bias);
    const hd_value product =
        hd_matmul(graph->program, hdt_graph_rounded(graph, x), rounded_weight(graph, weight));
    return hd_add(graph->program, product, rounded_weight(graph, bias));
}

/* One of q, k and v, which lie side by side: [batch, length, heads, size]. */
static hd_value head_part(const hdt_graph *graph, hd_value qkv, int64_t part) {
    const int64_t C = graph->layout->model.width, H = graph->layout->model.heads,
                  rows = (int64_t)graph->batch * graph->length;
    const int64_t begin[] = { 0, part * C }, end[] = { rows, (part + 1) * C };
    return hd_reshape(graph->program, hd_slice(graph->program, qkv, begin, end, 2),
                      HD_SHAPE(graph->batch, graph->length, H, C / H));
}

static hd_value layer(hdt_graph *graph, hd_value x, const hd_value *w) {
    hd_program *p = graph->program;
    const int64_t C = graph->layout->model.width, rows = (int64_t)graph->batch * graph->length;
    const hd_value qkv = inner_linear(graph, hd_layer_norm(p, x, w[LN1_W], w[LN1_B], HDT_EPS), w[ATTN_W], w[ATTN_B]);
    const hd_value q = head_part(graph, qkv, 0), k = head_part(graph, qkv, 1), v = head_part(graph, qkv, 2);
    const hd_value seen = hd_attention(p, q, k, v, 0, &(hd_attention_desc){ .bf16 = graph->casts != NULL });
    const hd_value added = linear(graph, hd_reshape(p, seen, HD_SHAPE(rows, C)), w[PROJ_W], w[PROJ_B]);
    x = hd_add(p, x, hdt_graph_dropped(graph, added));
    const hd_value wide =
        hd_gelu_tanh(p, inner_linear(graph, hd_layer_norm(p, x, w[LN2_W], w[LN2_B], HDT_EPS), w[FC_W], w[FC_B]));
    const hd_value down = linear(graph, hdt_graph_dropped(graph, wide), w[OUT_W], w[OUT_B]);
    return hd_add(p, x, hdt_graph_dropped(graph, down));
}

hd_value hdt_graph_hidden(hdt_graph *graph, hd_value tokens) {
    if (graph->layout->sketch) return hdt_graph_decoder(graph, tokens);
    hd_program *p = graph->program;
    const hd_value *w = graph->weights;
    const int64_t B = graph->batch, T = graph->length, C = graph->layout->model.width;
    graph->drawn = 0;
    const hd_value words = hd_reshape(p, widened(graph, hd_gather(p, w[EMBEDDING], tokens)), HD_SHAPE(B, T, C));
    const hd_value placed = hd_add(p, words, w[POSITIONS]);
    hd_value x = hdt_graph_dropped(graph, hd_reshape(p, placed, HD_SHAPE(B * T, C)));
    if (graph->layers) graph->layers[0] = x;
    for (uint32_t i = 0; i < graph->layout->model.layers; i++) {
        x = layer(graph, x, w + BEFORE + i * OF_LAYER);
        if (graph->layers) graph->layers[i + 1] = x;
    }
    const hd_value *head = w + BEFORE + graph->layout->model.layers * OF_LAYER;
    return hd_layer_norm(p, x, head[0], head[1], HDT_EPS);
}

/* The head's matrix with rows of zeros behind it, and 8 columns that take the scores of these to -8e30. */
static hd_value with_rows(const hdt_graph *graph) {
    hd_program *p = graph->program;
    const int64_t V = graph->layout->model.vocabulary;
    const int64_t none[] = { 0, 0 }, behind[] = { graph->head_rows - V, 0 }, columns[] = { V, HDT_WIDER };
    const hd_value some = hd_slice(p, graph->head, none, columns, 2),
                   zeros = hd_cast(p, hd_less(p, some, some), hdt_weight_type(graph->layout, HDT_MATRICES));
    const hd_value sides[] = { hd_pad(p, graph->head, none, behind, 2, 0), hd_pad(p, zeros, none, behind, 2, -1e30f) };
    return hd_concat(p, sides, 2, 1);
}

hd_value hdt_graph_scores(hdt_graph *graph, hd_value hidden) {
    const int64_t none[] = { 0, 0 }, behind[] = { 0, HDT_WIDER };
    if (!graph->head_rows) return hdt_graph_product(graph, hidden, graph->head, HD_TRANSPOSE_B);
    if (!graph->wide_head) graph->wide_head = with_rows(graph);
    return hdt_graph_product(graph, hd_pad(graph->program, hidden, none, behind, 2, 1), graph->wide_head,
                             HD_TRANSPOSE_B);
}
