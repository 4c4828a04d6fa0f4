/* llama.c: Llama, and what is built like it: Mistral, SmolLM, Yi, ... */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV, HDL_TENSORS_QKV_BIAS(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED,
    HDL_TENSORS_OUTSIDE,
};

hd_value hdl_llama_layer(hdl_graph *g, hd_value x) {
    hd_value y = hdl_attend(g, hdl_turned(g, hdl_project(g, hdl_rms_norm(g, x, "attn_norm"))));
    x = hd_add(g->program, x, hdl_linear(g, y, "attn_output"));
    y = hdl_gated(g, hdl_rms_norm(g, x, "ffn_norm"), hd_silu);
    return hd_add(g->program, x, hdl_linear(g, y, "ffn_down"));
}

const hdl_arch hdl_arch_llama = {
    .tensors = tensors,
    .pairing = HD_ROPE_NEIGHBOURS,
    .embed = hdl_embed,
    .layer = hdl_llama_layer,
    .logits = hdl_logits,
};
