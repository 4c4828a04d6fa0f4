/* bitnet.c: Llama with ternary weights, whose factors stand beside them, and a norm before the output and the down
 * product. Microsoft's own models gate by the square of relu. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV, HDL_TENSORS_QKV_BIAS(true),
    { "attn_sub_norm.weight", 'Q', 0, false, HDL_LAYER }, { "ffn_sub_norm.weight", 'F', 0, false, HDL_LAYER },
    HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static hd_value layer_with(hdl_graph *g, hd_value x, hd_value (*activation)(hd_program *p, hd_value x)) {
    hd_value y = hdl_attend(g, hdl_turned(g, hdl_project(g, hdl_rms_norm(g, x, "attn_norm"))));
    x = hd_add(g->program, x, hdl_linear(g, hdl_rms_norm(g, y, "attn_sub_norm"), "attn_output"));
    y = hdl_gated(g, hdl_rms_norm(g, x, "ffn_norm"), activation);
    return hd_add(g->program, x, hdl_linear(g, hdl_rms_norm(g, y, "ffn_sub_norm"), "ffn_down"));
}
static hd_value layer(hdl_graph *g, hd_value x) { return layer_with(g, x, hd_silu); }

static hd_value relu_squared(hd_program *p, hd_value x) {
    const hd_value positive = hd_relu(p, x);
    return hd_mul(p, positive, positive);
}
static hd_value relu_layer(hdl_graph *g, hd_value x) { return layer_with(g, x, relu_squared); }

const hdl_arch hdl_arch_bitnet = {
    .tensors = tensors, .pairing = HD_ROPE_HALVES, .embed = hdl_embed, .layer = layer, .logits = hdl_logits,
};
const hdl_arch hdl_arch_bitnet_relu = {
    .tensors = tensors, .pairing = HD_ROPE_HALVES, .embed = hdl_embed, .layer = relu_layer, .logits = hdl_logits,
};
