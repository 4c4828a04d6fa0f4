/* decoder.c: the blocks that decoders are made of. All sums run in f32; the cache holds f16, in pages that lie anywhere
 * in a pool. */
#include "llm/arch/arch.h"
#include <stdio.h>

/* ---- weights ---- */

static const hdl_weight *weight(const hdl_graph *g, const char *name) {
    return hdl_weight_of(g->model, g->layer, name);
}
bool hdl_has(const hdl_graph *g, const char *name) { return weight(g, name)->present; }

static hd_value input(const hdl_graph *g, const char *name) {
    char full[HDL_WEIGHT_NAME];
    const hdl_weight *w = weight(g, name);
    hdl_weight_name(g->layer, w->row, full);
    return hd_input(g->program, full, w->dtype, w->shape);
}

hd_value hdl_vector(const hdl_graph *g, const char *name) {
    if (!hdl_has(g, name)) return 0;
    const hd_value v = input(g, name);
    return weight(g, name)->dtype == HD_F32 ? v : hd_cast(g->program, v, HD_F32);
}

/* x times the transposed `table`, and its factor. */
static hd_value product(const hdl_graph *g, hd_value x, hd_value table, float scale) {
    const hd_value y = hd_matmul_with(g->program, x, table, HD_TRANSPOSE_B);
    return scale == 1 ? y : hd_scale(g->program, y, scale, 0);
}

hd_value hdl_linear(const hdl_graph *g, hd_value x, const char *stem) {
    char name[HDL_WEIGHT_NAME], bias_name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    snprintf(bias_name, sizeof bias_name, "%s.bias", stem);
    const hd_value bias = hdl_vector(g, bias_name), y = product(g, x, input(g, name), weight(g, name)->scale);
    return bias ? hd_add(g->program, y, bias) : y;
}

hd_value hdl_columns(const hdl_graph *g, hd_value x, int64_t begin, int64_t end) {
    const int64_t rows = (int64_t)g->size.sequences * g->size.tokens;
    return hd_slice(g->program, x, (int64_t[]){ 0, begin }, (int64_t[]){ rows, end }, 2);
}

hd_value hdl_rms_norm(const hdl_graph *g, hd_value x, const char *stem) {
    char name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    return hd_rms_norm(g->program, x, hdl_vector(g, name), g->model->figures.epsilon);
}

/* ---- attention ---- */

hd_value hdl_heads(const hdl_graph *g, hd_value x, uint32_t heads) {
    const int64_t rows = (int64_t)g->size.sequences * g->size.tokens;
    return hd_reshape(g->program, x, HD_SHAPE(rows, heads, g->model->figures.head_size));
}

hdl_qkv hdl_project(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    hdl_qkv s;
    s.q = hdl_linear(g, x, "attn_q");
    s.k = hdl_linear(g, x, "attn_k");
    s.v = hdl_linear(g, x, "attn_v");
    s.q = hdl_heads(g, s.q, f->heads);
    s.k = hdl_heads(g, s.k, f->kv_heads);
    s.v = hdl_heads(g, s.v, f->kv_heads);
    return s;
}

hdl_qkv hdl_turned(const hdl_graph *g, hdl_qkv s) {
    const hdl_figures *f = &g->model->figures;
    const hd_rope_desc rope = {
        .theta = f->rope_theta, .frequency_scale = f->rope_scale, .magnitude = f->rope_magnitude, .dims = f->rope_dims,
        .pairing = g->model->arch->pairing, .factors = f->rope_factors,
    };
    s.q = hd_rope(g->program, s.q, g->positions, &rope);
    s.k = hd_rope(g->program, s.k, g->positions, &rope);
    return s;
}

/* [rows,heads,D] with the sequences apart, where there are several. */
static hd_value by_sequence(const hdl_graph *g, hd_value x, uint32_t heads) {
    if (g->size.sequences == 1) return x;
    return hd_reshape(g->program, x, HD_SHAPE(g->size.sequences, g->size.tokens, heads, g->model->figures.head_size));
}

/* Writes the new rows of keys or values into the layer's cache; the cache as it is then. */
static hd_value cached(const hdl_graph *g, hd_value x, bool values) {
    char name[HDL_CACHE_NAME];
    hdl_cache_name(g->layer, values, name);
    const hdl_figures *f = &g->model->figures;
    const hd_shape shape = HD_SHAPE(g->size.pages, HDL_PAGE_TOKENS, f->kv_heads, f->head_size);
    const hd_value state = hd_state(g->program, name, HD_F16, shape);
    x = by_sequence(g, hd_cast(g->program, x, HD_F16), f->kv_heads);
    return hd_write_pages(g->program, state, x, g->past, g->pages);
}

hd_value hdl_attend(const hdl_graph *g, hdl_qkv s) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = (int64_t)g->size.sequences * g->size.tokens, width = (int64_t)f->heads * f->head_size;
    s.q = by_sequence(g, s.q, f->heads);
    s.k = cached(g, s.k, false);
    s.v = cached(g, s.v, true);
    const hd_attention_desc desc = { .pages = g->pages };
    return hd_reshape(g->program, hd_attention(g->program, s.q, s.k, s.v, g->past, &desc), HD_SHAPE(rows, width));
}

/* ---- feed-forward, and both ends ---- */

hd_value hdl_gated(const hdl_graph *g, hd_value x, hd_value (*activation)(hd_program *p, hd_value x)) {
    const hd_value gate = hdl_linear(g, x, "ffn_gate"), up = hdl_linear(g, x, "ffn_up");
    return hd_mul(g->program, activation(g->program, gate), up);
}

hd_value hdl_embed(hdl_graph *g, hd_value tokens) {
    g->embedding = input(g, "token_embd.weight");
    const hd_value x = hd_gather(g->program, g->embedding, tokens);
    const hd_dtype dtype = weight(g, "token_embd.weight")->dtype;
    return dtype == HD_F16 || dtype == HD_BF16 ? hd_cast(g->program, x, HD_F32) : x;
}

hd_value hdl_logits(hdl_graph *g, hd_value x) {
    x = hdl_rms_norm(g, x, "output_norm");
    if (hdl_has(g, "output.weight")) return hdl_linear(g, x, "output");
    return product(g, x, g->embedding, 1);
}
