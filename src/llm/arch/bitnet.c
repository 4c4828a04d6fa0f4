/* bitnet.c: Llama with ternary weights, whose factors stand beside them, and a norm before the output and the down
 * product. Microsoft's own models gate by the square of relu. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_sub_norm", QUERIES), HDL_TENSORS_OUT,
    HDL_TENSORS_GATED, HDL_NORM("ffn_sub_norm", FORWARD), HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_bitnet = { tensors, HD_ROPE_HALVES, hd_silu, NULL, false, false, NULL, false };
const hdl_arch hdl_arch_bitnet_relu = { tensors, HD_ROPE_HALVES, hdl_relu_squared, NULL, false, false, NULL, false };
