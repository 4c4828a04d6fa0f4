/* phi3.c: Phi-3 and Phi-4: Llama with queries, keys and values in one weight, and gate and up in one. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS,
    { "attn_qkv.weight", 'A', 'H', false, HDL_LAYER },
    HDL_TENSORS_OUT,
    { "ffn_up.weight", 'G', 'H', false, HDL_LAYER },
    { "ffn_down.weight", 'H', 'F', false, HDL_LAYER },
    HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) {
    hdl_gguf_tensor factors;
    hdl_key_refuse(k, "attention.sliding_window", "attention over a window");
    if (!k->status && hdl_gguf_find_tensor(k->model->gguf, "rope_factors_long.weight", &factors))
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "rope_factors_long.weight: two sets of rope factors cannot be run yet");
}

static hd_value layer(hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    const int64_t q = (int64_t)f->heads * f->head_size, k = (int64_t)f->kv_heads * f->head_size,
                  forward = f->feed_forward;
    hd_value all = hdl_linear(g, hdl_rms_norm(g, x, "attn_norm"), "attn_qkv");
    hdl_qkv s;
    s.q = hdl_heads(g, hdl_columns(g, all, 0, q), f->heads);
    s.k = hdl_heads(g, hdl_columns(g, all, q, q + k), f->kv_heads);
    s.v = hdl_heads(g, hdl_columns(g, all, q + k, q + 2 * k), f->kv_heads);
    x = hd_add(g->program, x, hdl_linear(g, hdl_attend(g, hdl_turned(g, s)), "attn_output"));
    all = hdl_linear(g, hdl_rms_norm(g, x, "ffn_norm"), "ffn_up");
    const hd_value gate = hd_silu(g->program, hdl_columns(g, all, 0, forward)),
                   up = hdl_columns(g, all, forward, 2 * forward);
    return hd_add(g->program, x, hdl_linear(g, hd_mul(g->program, gate, up), "ffn_down"));
}

const hdl_arch hdl_arch_phi3 = {
    .tensors = tensors,
    .pairing = HD_ROPE_HALVES,
    .read = read,
    .embed = hdl_embed,
    .layer = layer,
    .logits = hdl_logits,
};
