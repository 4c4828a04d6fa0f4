/* qwen3.c: Llama with a norm of each query and key head. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV, HDL_TENSORS_QKV_BIAS(true),
    { "attn_q_norm.weight", 'D', 0, false, HDL_LAYER }, { "attn_k_norm.weight", 'D', 0, false, HDL_LAYER },
    HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static hd_value layer(hdl_graph *g, hd_value x) {
    hdl_qkv s = hdl_project(g, hdl_rms_norm(g, x, "attn_norm"));
    s.q = hdl_rms_norm(g, s.q, "attn_q_norm");
    s.k = hdl_rms_norm(g, s.k, "attn_k_norm");
    x = hd_add(g->program, x, hdl_linear(g, hdl_attend(g, hdl_turned(g, s)), "attn_output"));
    const hd_value y = hdl_gated(g, hdl_rms_norm(g, x, "ffn_norm"), hd_silu);
    return hd_add(g->program, x, hdl_linear(g, y, "ffn_down"));
}

const hdl_arch hdl_arch_qwen3 = {
    .tensors = tensors, .pairing = HD_ROPE_HALVES, .embed = hdl_embed, .layer = layer, .logits = hdl_logits,
};
