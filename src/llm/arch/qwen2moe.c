/* qwen2moe.c: Qwen 2 with experts, whose shares are those among all, and an expert that all tokens use in their
 * measure. */
#include "llm/arch/arch.h"

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(false), HDL_TENSORS_OUT, HDL_TENSORS_EXPERTS, HDL_TENSORS_SHARED,
    HDL_NORM("ffn_gate_inp_shexp", HIDDEN), HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_qwen2moe = { NULL, HD_ROPE_HALVES, hd_silu, NULL, false, false, with_experts, false };
