/* graph.c: the decoder of the llama family, written with the operations of heddle.h. One text for all architectures:
 * what a file does not have is left out. Each layer:
 *
 *   x = x + out(attention(rope(q), rope(k), v))   of the normed x
 *   x = x + down(activation(gate) * up)           of the normed x
 *
 * All sums run in f32; the cache holds f16, in pages that lie anywhere in a pool. */
#include "llm/graph.h"
#include <stdio.h>

/* A program while it is built. Failures of the builders are sticky. */
typedef struct graph {
    const hd_model *model;
    hd_program     *program;
    hdl_size        size;
    bool            nameless;
    hd_value        positions, past, pages;
} graph;

static hd_value input(const graph *g, uint32_t layer, hdl_role role) {
    char name[HDL_WEIGHT_NAME];
    const hdl_weight *w = hdl_weight_of(g->model, layer, role);
    hdl_weight_name(g->nameless ? HDL_NO_LAYER : layer, role, name);
    return hd_input(g->program, name, w->dtype, w->shape);
}

/* A weight of one axis in f32, or 0 where the file has none. */
static hd_value vector(const graph *g, uint32_t layer, hdl_role role) {
    const hdl_weight *w = hdl_weight_of(g->model, layer, role);
    if (!w->present) return 0;
    const hd_value v = input(g, layer, role);
    return w->dtype == HD_F32 ? v : hd_cast(g->program, v, HD_F32);
}

/* x times the transposed weight `w`, its factor and bias. */
static hd_value linear_with(const graph *g, hd_value x, hd_value w, float scale, hd_value bias) {
    hd_value y = hd_matmul_with(g->program, x, w, HD_TRANSPOSE_B);
    if (scale != 1) y = hd_scale(g->program, y, scale, 0);
    return bias ? hd_add(g->program, y, bias) : y;
}
static hd_value linear(const graph *g, hd_value x, uint32_t layer, hdl_role role, hd_value bias) {
    return linear_with(g, x, input(g, layer, role), hdl_weight_of(g->model, layer, role)->scale, bias);
}

static hd_value norm(const graph *g, hd_value x, uint32_t layer, hdl_role role) {
    return hd_rms_norm(g->program, x, vector(g, layer, role), g->model->figures.epsilon);
}

/* Rows [rows, heads * D] as heads, normed where the model does so, turned by their positions: [rows, heads, D]. */
static hd_value turned(const graph *g, hd_value x, uint32_t heads, uint32_t layer, hdl_role norm_role) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = (int64_t)g->size.sequences * g->size.tokens;
    const hd_rope_desc rope = { .theta = f->rope_theta, .frequency_scale = f->rope_scale, .magnitude = f->rope_magnitude, .dims = f->rope_dims,
                                .pairing = g->model->arch->pairing, .factors = f->rope_factors };
    x = hd_reshape(g->program, x, HD_SHAPE(rows, heads, f->head_size));
    if (g->model->arch->head_norm) x = norm(g, x, layer, norm_role);
    return hd_rope(g->program, x, g->positions, &rope);
}

/* [rows, heads, D] with the sequences apart, where there are several. */
static hd_value by_sequence(const graph *g, hd_value x, uint32_t heads) {
    if (g->size.sequences == 1) return x;
    return hd_reshape(g->program, x, HD_SHAPE(g->size.sequences, g->size.tokens, heads, g->model->figures.head_size));
}

void hdl_cache_name(uint32_t layer, bool values, char out[HDL_CACHE_NAME]) {
    const char *what = values ? "values" : "keys";
    if (layer == HDL_NO_LAYER) snprintf(out, HDL_CACHE_NAME, "%s", what);
    else snprintf(out, HDL_CACHE_NAME, "%s.%u", what, layer);
}

/* Writes the new rows of keys or values into the layer's cache; the cache as it is then. */
static hd_value cached(const graph *g, hd_value x, bool values, uint32_t layer) {
    char name[HDL_CACHE_NAME];
    hdl_cache_name(g->nameless ? HDL_NO_LAYER : layer, values, name);
    const hdl_figures *f = &g->model->figures;
    const hd_value state = hd_state(g->program, name, HD_F16, HD_SHAPE(g->size.pages, HDL_PAGE_TOKENS, f->kv_heads, f->head_size));
    x = by_sequence(g, hd_cast(g->program, x, HD_F16), f->kv_heads);
    return hd_write_pages(g->program, state, x, g->past, g->pages);
}

static hd_value attend(const graph *g, hd_value x, uint32_t layer) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = (int64_t)g->size.sequences * g->size.tokens, width = (int64_t)f->heads * f->head_size;
    hd_program *p = g->program;
    const hd_value normed = norm(g, x, layer, HDL_ATTN_NORM);
    hd_value q = linear(g, normed, layer, HDL_Q, vector(g, layer, HDL_Q_BIAS));
    hd_value k = linear(g, normed, layer, HDL_K, vector(g, layer, HDL_K_BIAS));
    hd_value v = linear(g, normed, layer, HDL_V, vector(g, layer, HDL_V_BIAS));
    q = by_sequence(g, turned(g, q, f->heads, layer, HDL_Q_NORM), f->heads);
    k = cached(g, turned(g, k, f->kv_heads, layer, HDL_K_NORM), false, layer);
    v = cached(g, hd_reshape(p, v, HD_SHAPE(rows, f->kv_heads, f->head_size)), true, layer);
    hd_value y = hd_reshape(p, hd_attention(p, q, k, v, g->past, &(hd_attention_desc){ .pages = g->pages }), HD_SHAPE(rows, width));
    if (g->model->arch->sub_norm) y = norm(g, y, layer, HDL_ATTN_SUB_NORM);
    return hd_add(p, x, linear(g, y, layer, HDL_OUT, vector(g, layer, HDL_OUT_BIAS)));
}

static hd_value feed_forward(const graph *g, hd_value x, uint32_t layer) {
    hd_program *p = g->program;
    const hd_value normed = norm(g, x, layer, HDL_FFN_NORM);
    const hd_value gate = linear(g, normed, layer, HDL_GATE, 0), up = linear(g, normed, layer, HDL_UP, 0);
    hd_value y;
    if (g->model->arch->relu_squared) {
        const hd_value positive = hd_relu(p, gate);
        y = hd_mul(p, hd_mul(p, positive, positive), up);
    } else {
        y = hd_mul(p, hd_silu(p, gate), up);
    }
    if (g->model->arch->sub_norm) y = norm(g, y, layer, HDL_FFN_SUB_NORM);
    return hd_add(p, x, linear(g, y, layer, HDL_DOWN, 0));
}

/* The scores of the token to come after row "last" of each sequence, and the best of them. `embedding` 0: not in this program. */
static void give_logits(const graph *g, hd_value x, hd_value embedding) {
    hd_program *p = g->program;
    const hdl_weight *own = hdl_weight_of(g->model, 0, HDL_LOGITS);
    if (g->size.tokens > 1) x = hd_gather(p, x, hd_input(p, "last", HD_I32, HD_SHAPE(g->size.sequences)));
    x = norm(g, x, 0, HDL_FINAL_NORM);
    const hd_value table = own->present ? input(g, 0, HDL_LOGITS) : embedding ? embedding : input(g, 0, HDL_EMBEDDING);
    const hd_value logits = linear_with(g, x, table, own->present ? own->scale : 1, 0);
    hd_output(p, "logits", logits);
    hd_output(p, "best", hd_reshape(p, hd_argmax(p, logits, -1), HD_SHAPE(g->size.sequences)));
    hd_output(p, "peak", hd_reshape(p, hd_max(p, logits, -1), HD_SHAPE(g->size.sequences)));
    if (!g->size.candidates) return;
    const hd_value candidates = hd_top_k(p, logits, g->size.candidates);
    hd_output(p, "candidates", candidates);
    hd_output(p, "scores", hd_take_along(p, logits, candidates));
}

hd_status hdl_graph_build(const hd_model *model, hdl_part part, hdl_size size, hd_program **out_program) {
    const int64_t rows = (int64_t)size.sequences * size.tokens;
    hd_program *p = *out_program = hd_program_create(model->context);
    if (!p) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    graph g = { .model = model, .program = p, .size = size, .nameless = part.nameless };
    hd_value x, embedding = 0;
    if (part.embeds) {
        embedding = input(&g, 0, HDL_EMBEDDING);
        x = hd_gather(p, embedding, hd_input(p, "tokens", HD_I32, HD_SHAPE(rows)));
        const hd_dtype dtype = hdl_weight_of(model, 0, HDL_EMBEDDING)->dtype;
        if (dtype == HD_F16 || dtype == HD_BF16) x = hd_cast(p, x, HD_F32);
    } else {
        x = hd_input(p, "hidden", HD_F32, HD_SHAPE(rows, model->figures.hidden));
    }
    g.positions = hd_input(p, "positions", HD_I32, HD_SHAPE(rows));
    g.past = hd_input(p, "past", HD_I32, HD_SHAPE(size.sequences));
    const int64_t table = size.bucket / HDL_PAGE_TOKENS;
    g.pages = hd_input(p, "pages", HD_I32, size.sequences == 1 ? HD_SHAPE(table) : HD_SHAPE(size.sequences, table));
    for (uint32_t layer = part.first_layer; layer < part.first_layer + part.layer_count; layer++) {
        x = attend(&g, x, layer);
        x = feed_forward(&g, x, layer);
    }
    if (part.heads) give_logits(&g, x, embedding);
    else hd_output(p, "next", x);
    const hd_status status = hd_program_check(p);
    if (status) hd_program_destroy(p);
    return status;
}
