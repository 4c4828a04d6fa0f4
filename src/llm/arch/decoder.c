/* decoder.c: the blocks that decoders and encoders are made of. All sums run in f32; the cache holds f16, in pages that
 * lie anywhere in a pool. */
#include "llm/arch/arch.h"
#include <stdio.h>

/* ---- weights ---- */

static const hdl_weight *weight(const hdl_graph *g, const char *name) {
    return hdl_weight_of(g->model, g->layer, name);
}
static bool has(const hdl_graph *g, const char *name) { return weight(g, name)->present; }

/* An input, once for all parts of a program that read it. */
hd_value hdl_input(const hdl_graph *g, const char *name) {
    char full[HDL_WEIGHT_NAME];
    const hdl_weight *w = weight(g, name);
    hdl_weight_name(g->layer, w->row, full);
    if (g->desc && g->desc->weight) return g->desc->weight(g->desc->user, g->program, full);
    for (size_t i = 0; i < g->ports; i++) {
        const hd_port port = hd_program_port(g->program, i);
        if (port.kind == HD_PORT_INPUT && strcmp(port.name, full) == 0) return port.value;
    }
    return hd_input(g->program, full, g->size.halves && hdl_weight_half_bytes(w) ? HD_F16 : w->dtype, w->shape);
}

/* A weight that is not multiplied with, in f32; 0 where there is none. */
static hd_value vector(const hdl_graph *g, const char *stem, const char *kind) {
    char name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.%s", stem, kind);
    if (!has(g, name)) return 0;
    const hd_value v = hdl_input(g, name);
    return weight(g, name)->dtype == HD_F32 ? v : hd_cast(g->program, v, HD_F32);
}

/* What goes on in place of x, which enters a product of a layer or comes out of the embedding. */
static hd_value entering(const hdl_graph *g, const char *name, hd_value x) {
    char full[HDL_WEIGHT_NAME];
    if (!g->desc || !g->desc->enter) return x;
    hdl_weight_name(g->layer, weight(g, name)->row, full);
    return g->desc->enter(g->desc->user, g->program, full, x);
}

/* What x times a weight of a layer becomes: with the model's adapter, and with the caller's. */
static hd_value adapted(const hdl_graph *g, const char *name, hd_value x, hd_value y) {
    char down[HDL_WEIGHT_NAME + sizeof HDL_LORA_A], up[HDL_WEIGHT_NAME + sizeof HDL_LORA_B], full[HDL_WEIGHT_NAME];
    hd_program *p = g->program;
    snprintf(down, sizeof down, "%s" HDL_LORA_A, name);
    snprintf(up, sizeof up, "%s" HDL_LORA_B, name);
    if (has(g, down)) {
        const hd_value narrow = hd_matmul_with(p, x, hdl_input(g, down), HD_TRANSPOSE_B);
        y = hd_add(p, y, hd_matmul_with(p, narrow, hdl_input(g, up), HD_TRANSPOSE_B));
    }
    if (!g->desc || !g->desc->adapt || !hdl_is_product(weight(g, name))) return y;
    hdl_weight_name(g->layer, weight(g, name)->row, full);
    return g->desc->adapt(g->desc->user, p, full, x, y);
}

/* x times the transposed `table` and its factor, with the bias of `stem` where there is one. @param name the weight's,
 * where it may be adapted; NULL */
static hd_value product(const hdl_graph *g, hd_value x, hd_value table, float scale, const char *stem,
                        const char *name) {
    const hd_value bias = vector(g, stem, "bias");
    hd_value y = g->desc && g->desc->multiply ? g->desc->multiply(g->desc->user, g->program, x, table)
                                              : hd_matmul_with(g->program, x, table, HD_TRANSPOSE_B);
    if (scale != 1) y = hd_scale(g->program, y, scale, 0);
    if (name) y = adapted(g, name, x, y);
    return bias ? hd_add(g->program, y, bias) : y;
}

/* Tells the caller what a weight of a layer is multiplied with. */
static void tell(const hdl_graph *g, const char *name, hd_value x, hd_value chosen) {
    char full[HDL_WEIGHT_NAME];
    if (!g->desc || !g->desc->on_product || weight(g, name)->row->where != HDL_LAYER) return;
    hdl_weight_name(g->layer, weight(g, name)->row, full);
    g->desc->on_product(g->desc->user, g->program, full, x, chosen);
}

hd_value hdl_linear(const hdl_graph *g, hd_value x, const char *stem) {
    char name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    if (hdl_is_product(weight(g, name))) x = entering(g, name, x);
    tell(g, name, x, 0);
    return product(g, x, hdl_input(g, name), weight(g, name)->scale, stem, name);
}

/* Columns begin .. end-1 of [rows,n]: a part of what a fused weight gives. */
static hd_value columns(const hdl_graph *g, hd_value x, int64_t begin, int64_t end) {
    const int64_t rows = hdl_rows(g);
    return hd_slice(g->program, x, (int64_t[]){ 0, begin }, (int64_t[]){ rows, end }, 2);
}

/* x normed, where the family has such a norm. */
hd_value hdl_normed(const hdl_graph *g, hd_value x, const char *stem) {
    const hd_value w = vector(g, stem, "weight");
    const float epsilon = g->model->figures.epsilon;
    if (!w) return x;
    if (g->model->arch->layer_norm) return hd_layer_norm(g->program, x, w, vector(g, stem, "bias"), epsilon);
    return hd_rms_norm(g->program, x, w, epsilon);
}

static hd_value scaled(const hdl_graph *g, hd_value x, float factor) {
    return factor == 1 ? x : hd_scale(g->program, x, factor, 0);
}

/* ---- attention ---- */

/* [rows,heads*D] as heads. */
static hd_value heads(const hdl_graph *g, hd_value x, uint32_t count) {
    const int64_t rows = hdl_rows(g);
    return hd_reshape(g->program, x, HD_SHAPE(rows, count, g->model->figures.head_size));
}

/* Heads, and the norm of each, or of all at once, where the weight is as long. */
static hd_value normed_heads(const hdl_graph *g, hd_value x, uint32_t count, const char *stem) {
    char name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    const bool whole = has(g, name) && weight(g, name)->shape.dims[0] != g->model->figures.head_size;
    return whole ? heads(g, hdl_normed(g, x, stem), count) : hdl_normed(g, heads(g, x, count), stem);
}

static hdl_qkv project(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    if (f->latent) return hdl_latent_qkv(g, x);
    const int64_t q = (int64_t)f->heads * f->head_size, k = (int64_t)f->kv_heads * f->head_size;
    const bool fused = has(g, "attn_qkv.weight");
    const hd_value all = fused ? hdl_linear(g, x, "attn_qkv") : 0;
    hdl_qkv s;
    s.q = fused ? columns(g, all, 0, q) : hdl_linear(g, x, "attn_q");
    s.k = fused ? columns(g, all, q, q + k) : hdl_linear(g, x, "attn_k");
    s.v = fused ? columns(g, all, q + k, q + 2 * k) : hdl_linear(g, x, "attn_v");
    s.q = normed_heads(g, s.q, f->heads, "attn_q_norm");
    s.k = normed_heads(g, s.k, f->kv_heads, "attn_k_norm");
    s.v = heads(g, s.v, f->kv_heads);
    return s;
}

/* Is the layer the last of so many? */
static bool is_last_of(const hdl_graph *g, uint32_t period) { return period && (g->layer + 1) % period == 0; }
static bool has_window(const hdl_graph *g) {
    return g->model->figures.window && !is_last_of(g, g->model->figures.window_period);
}

/* Queries and keys turned by their positions. */
static hdl_qkv turned(const hdl_graph *g, hdl_qkv s) {
    const hdl_figures *f = &g->model->figures;
    if (g->model->arch->still || is_last_of(g, f->still_period)) return s;
    const bool far = f->rope_far_factors && g->size.context > f->rope_context;
    hd_rope_desc rope = {
        .theta = f->rope_theta, .frequency_scale = f->rope_scale, .magnitude = f->rope_magnitude, .dims = f->rope_dims,
        .pairing = g->model->arch->pairing, .factors = far ? f->rope_far_factors : f->rope_factors,
    };
    if (f->rope_local_theta > 0 && has_window(g))
        rope = (hd_rope_desc){ .theta = f->rope_local_theta, .dims = f->rope_dims, .pairing = rope.pairing };
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
    const hd_value state = hd_state(g->program, name, g->size.cache_type, shape);
    if (g->size.cache_type == HD_F16) x = hd_cast(g->program, x, HD_F16); /* may be one kernel with what turns keys */
    x = by_sequence(g, x, f->kv_heads);
    return hd_write_pages(g->program, state, x, g->past, g->pages);
}

/* Attends over the cache, into which it writes keys and values, or over these alone: [rows,heads*D]. Keys that are made
 * of what values are made of are values, too. */
static hd_value attend(const hdl_graph *g, hdl_qkv s) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = hdl_rows(g), width = (int64_t)f->heads * f->head_size;
    if (has_window(g) && hdl_sees_centred(g))
        return hd_reshape(g->program, hdl_attend_centred(g, s.q, s.k, s.v), HD_SHAPE(rows, width));
    s.q = by_sequence(g, s.q, f->heads);
    s.k = g->pages ? cached(g, s.k, false) : by_sequence(g, s.k, f->kv_heads);
    s.v = f->latent ? s.k : g->pages ? cached(g, s.v, true) : by_sequence(g, s.v, f->kv_heads);
    const hd_value starts = g->desc ? g->desc->starts : 0;
    const hd_shape places = g->size.sequences == 1 ? HD_SHAPE(rows) : HD_SHAPE(g->size.sequences, g->size.tokens);
    const hd_attention_desc desc = { .pages = g->pages, .scale = f->attention_scale, .cap = f->attention_cap,
                                     .starts = starts ? hd_reshape(g->program, starts, places) : 0,
                                     .window = has_window(g) && !f->window_centred ? f->window : 0,
                                     .not_causal = !f->causal || g->size.is_image,
                                     .sinks = vector(g, "attn_sinks", "weight"), .bf16 = g->desc && g->desc->bf16 };
    const hd_value y =
        hd_reshape(g->program, hd_attention(g->program, s.q, s.k, s.v, g->past, &desc), HD_SHAPE(rows, width));
    return f->latent ? hdl_latent_values(g, y) : y;
}

/* ---- feed-forward ---- */

hd_value hdl_relu_squared(hd_program *p, hd_value x) {
    const hd_value positive = hd_relu(p, x);
    return hd_mul(p, positive, positive);
}

/* activation(gate) * up, or what the family has in place of it. */
static hd_value gate_of(const hdl_graph *g, hd_value gate, hd_value up) {
    const hdl_figures *f = &g->model->figures;
    return f->activation ? hd_mul(g->program, f->activation(g->program, gate), up) : f->gate(g->program, gate, up);
}

/* What goes down: gated, or in families without gates, activation(up). */
static hd_value gated(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    const int64_t n = f->feed_forward;
    const bool apart = has(g, "ffn_gate.weight"),
               fused = !apart && weight(g, "ffn_up.weight")->row->rows == HDL_LEN_GATE_UP;
    hd_value gate = apart ? hdl_linear(g, x, "ffn_gate") : 0, up = hdl_linear(g, x, "ffn_up");
    if (!apart && !fused) return f->activation(g->program, up);
    if (fused) {
        gate = columns(g, up, 0, n);
        up = columns(g, up, n, 2 * n);
    }
    return gate_of(g, gate, up);
}

/* ---- experts ---- */

/* Products of rows with those of `stem`'s experts that they chose, and their biases. */
static hd_value chosen_linear(const hdl_graph *g, hd_value x, const char *stem, hd_value chosen) {
    char name[HDL_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    tell(g, name, x, chosen);
    const hd_value y = scaled(g, hd_matmul_experts(g->program, x, hdl_input(g, name), chosen), weight(g, name)->scale);
    const hd_value biases = vector(g, stem, "bias");
    return biases ? hd_add(g->program, y, hd_gather(g->program, biases, chosen)) : y;
}

/* What the expert of all tokens gives: where the file has a gate of it, in that measure. */
static hd_value shared(const hdl_graph *g, hd_value x) {
    hd_program *p = g->program;
    const hd_value gate = hdl_linear(g, x, "ffn_gate_shexp");
    const hd_value y = hdl_linear(g, gate_of(g, gate, hdl_linear(g, x, "ffn_up_shexp")), "ffn_down_shexp");
    const hd_value measure = vector(g, "ffn_gate_inp_shexp", "weight");
    if (!measure) return y;
    const hd_value row = hd_reshape(p, measure, HD_SHAPE(1, g->model->figures.hidden));
    return hd_mul(p, y, hd_sigmoid(p, hd_matmul_with(p, x, row, HD_TRANSPOSE_B)));
}

/* Experts that rows choose, i32 [rows,used], and what share each of them has. */
typedef struct choice { hd_value experts, shares; } choice;
static choice choose(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    hd_program *p = g->program;
    const hd_value scores = hdl_linear(g, x, "ffn_gate_inp"), bias = vector(g, "exp_probs_b", "bias");
    const bool softmax_last = f->whole_shares && !f->sigmoid_shares;
    const hd_value odds = f->sigmoid_shares ? hd_sigmoid(p, scores) : softmax_last && !bias ? scores
                                                                    : hd_softmax(p, scores, -1);
    const hd_value chosen = hd_top_k(p, bias ? hd_add(p, odds, bias) : odds, f->experts_used);
    if (softmax_last) return (choice){ chosen, hd_softmax(p, hd_take_along(p, scores, chosen), -1) };
    const hd_value shares = hd_take_along(p, odds, chosen);
    return (choice){ chosen, f->whole_shares ? hd_div(p, shares, hd_sum(p, shares, -1)) : shares };
}

/* The chosen experts' answers by their shares: [rows,H]. */
static hd_value mixture(hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = hdl_rows(g);
    hd_program *p = g->program;
    const choice of = choose(g, x);
    const hd_value chosen = of.experts, shares = scaled(g, of.shares, f->share_scale);
    g->first_expert = shares + 1;
    const hd_value gate = chosen_linear(g, x, "ffn_gate_exps", chosen), up = chosen_linear(g, x, "ffn_up_exps", chosen);
    hd_value y = chosen_linear(g, gate_of(g, gate, up), "ffn_down_exps", chosen);
    y = hd_dot(p, y, hd_reshape(p, shares, HD_SHAPE(rows, f->experts_used, 1)), 1);
    g->last_expert = y = hd_reshape(p, y, HD_SHAPE(rows, f->hidden));
    return has(g, "ffn_down_shexp.weight") ? hd_add(p, y, shared(g, x)) : y;
}

/* ---- a layer, and both ends ---- */

/* x and what a block adds to it. */
static hd_value added(const hdl_graph *g, hd_value x, hd_value block) {
    return hd_add(g->program, x, scaled(g, block, g->model->figures.residual_scale));
}

static hd_value feed_forward(hdl_graph *g, hd_value x) {
    if (g->model->figures.experts && g->layer >= g->model->figures.dense_layers) return mixture(g, x);
    return hdl_linear(g, hdl_normed(g, gated(g, x), "ffn_sub_norm"), "ffn_down");
}

hd_value hdl_layer(hdl_graph *g, hd_value x) {
    const bool parallel = g->model->figures.parallel, between = g->model->figures.norm_between;
    /* falcon.c: of attention alone */
    const hd_value first = hdl_normed(g, x, "attn_norm"), own = hdl_normed(g, x, "attn_norm_2");
    hd_value y = attend(g, turned(g, project(g, own == x ? first : own)));
    y = hdl_linear(g, hdl_normed(g, y, "attn_sub_norm"), "attn_output");
    hd_value attended = added(g, x, between ? y : hdl_normed(g, y, "post_attention_norm"));
    attended = hdl_normed(g, attended, "attn_output_norm"); /* bert.c: of the sum */
    const hd_value second = hdl_normed(g, parallel ? x : attended, between ? "post_attention_norm" : "ffn_norm");
    y = feed_forward(g, parallel && second == x ? first : second);
    x = added(g, attended, hdl_normed(g, y, "post_ffw_norm"));
    return hdl_normed(g, x, "layer_output_norm");
}

/* Rows of a table. */
static hd_value in_f32(const hdl_graph *g, hd_value x, const char *name) {
    const hd_dtype dtype = weight(g, name)->dtype;
    return dtype == HD_F16 || dtype == HD_BF16 ? hd_cast(g->program, x, HD_F32) : x;
}

int64_t hdl_rows(const hdl_graph *g) { return (int64_t)g->size.sequences * g->size.tokens; }

hd_value hdl_embed(hdl_graph *g, hd_value tokens) {
    g->embedding = hdl_input(g, "token_embd.weight");
    hd_program *p = g->program;
    hd_value x = hd_gather(p, g->embedding, tokens);
    x = scaled(g, in_f32(g, x, "token_embd.weight"), g->model->figures.embedding_scale);
    if (has(g, "token_types.weight")) { /* all tokens are of a first text: row 0 */
        const int64_t end[] = { 1, g->model->figures.hidden };
        const hd_value first = hd_slice(p, hdl_input(g, "token_types.weight"), (int64_t[]){ 0, 0 }, end, 2);
        x = hd_add(p, x, in_f32(g, first, "token_types.weight"));
    }
    if (has(g, "position_embd.weight")) {
        const hd_value places = hd_gather(p, hdl_input(g, "position_embd.weight"), g->positions);
        x = hd_add(p, x, in_f32(g, places, "position_embd.weight"));
    }
    return entering(g, "token_embd.weight", hdl_normed(g, x, "token_embd_norm"));
}

hd_value hdl_hidden(const hdl_graph *g, hd_value x) { return hdl_normed(g, x, "output_norm"); }

hd_value hdl_logits(const hdl_graph *g, hd_value x) {
    const float cap = g->model->figures.logit_cap;
    x = hdl_hidden(g, x);
    const hd_value tied = g->embedding || has(g, "output.weight") ? g->embedding : hdl_input(g, "token_embd.weight");
    x = has(g, "output.weight") ? hdl_linear(g, x, "output") : product(g, x, tied, 1, "output", NULL);
    x = scaled(g, x, g->model->figures.logit_scale);
    return cap > 0 ? scaled(g, hd_tanh(g->program, scaled(g, x, 1 / cap)), cap) : x;
}
