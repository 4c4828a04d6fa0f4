/* latent.c: attention whose keys and values are made of one short vector a token (multi-head latent attention, arXiv
 * 2405.04434, 2.1): a key of a head is W_k c beside a part that turns, which all heads share, a value is W_v c. The
 * cache has c and what turns alone. As q . (W_k c) = (W_k' q) . c, queries are made as long as c and there is one key
 * head; what attention gives is a mixture of c, of which W_v makes each head's value. */
#include "llm/arch/arch.h"

/* Elements begin .. end-1 of the last axis. */
static hd_value cut(hd_program *p, hd_value x, hd_shape shape, int64_t begin, int64_t end) {
    int64_t first[3] = { 0 }, last[3] = { shape.dims[0], shape.dims[1], shape.dims[2] };
    first[shape.rank - 1] = begin;
    last[shape.rank - 1] = end;
    return hd_slice(p, x, first, last, shape.rank);
}

/* [rows,heads,n] times each head's own weight: [rows,heads,m]. */
static hd_value by_head(const hdl_graph *g, hd_value x, const char *weight) {
    static const uint32_t heads_first[] = { 1, 0, 2 };
    const float scale = hdl_weight_of(g->model, g->layer, weight)->scale;
    x = hd_permute(g->program, x, heads_first, 3);
    x = hd_permute(g->program, hd_matmul_with(g->program, x, hdl_input(g, weight), HD_TRANSPOSE_B), heads_first, 3);
    return scale == 1 ? x : hd_scale(g->program, x, scale, 0);
}

hdl_qkv hdl_latent_qkv(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    const int64_t rows = hdl_rows(g), turns = f->head_size - f->latent, still = f->own_key - turns;
    hd_program *p = g->program;
    hd_value q = f->query_latent
                     ? hdl_linear(g, hdl_normed(g, hdl_linear(g, x, "attn_q_a"), "attn_q_a_norm"), "attn_q_b")
                     : hdl_linear(g, x, "attn_q");
    const hd_shape own = HD_SHAPE(rows, f->heads, f->own_key), all = HD_SHAPE(rows, f->head_size);
    q = hd_reshape(p, q, own);
    const hd_value long_q = by_head(g, cut(p, q, own, 0, still), "attn_k_b.weight");
    q = hd_concat(p, (hd_value[]){ cut(p, q, own, still, f->own_key), long_q }, 2, 2);
    const hd_value both = hdl_linear(g, x, "attn_kv_a_mqa");
    const hd_value c = hdl_normed(g, cut(p, both, all, 0, f->latent), "attn_kv_a_norm");
    const hd_value k = hd_concat(p, (hd_value[]){ cut(p, both, all, f->latent, f->head_size), c }, 2, 1);
    return (hdl_qkv){ .q = q, .k = hd_reshape(p, k, HD_SHAPE(rows, 1, f->head_size)) };
}

hd_value hdl_latent_values(const hdl_graph *g, hd_value attended) {
    const hdl_figures *f = &g->model->figures;
    const hd_shape all = HD_SHAPE(hdl_rows(g), f->heads, f->head_size);
    const hd_value heads = hd_reshape(g->program, attended, all);
    const hd_value c = cut(g->program, heads, all, f->head_size - f->latent, f->head_size);
    const hd_value values = by_head(g, c, "attn_v_b.weight");
    return hd_reshape(g->program, values, HD_SHAPE(hdl_rows(g), (int64_t)f->heads * f->own_value));
}
