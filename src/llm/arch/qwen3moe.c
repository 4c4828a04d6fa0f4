/* qwen3moe.c: Qwen 3 with experts. */
#include "llm/arch/arch.h"

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", HEAD), HDL_NORM("attn_k_norm", HEAD),
    HDL_TENSORS_OUT, HDL_TENSORS_EXPERTS, HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_qwen3moe = { NULL, HD_ROPE_HALVES, hd_silu, NULL, false, false, with_experts, true };
