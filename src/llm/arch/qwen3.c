/* qwen3.c: Llama with a norm of each query and key head. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", HEAD), HDL_NORM("attn_k_norm", HEAD),
    HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_qwen3 = { tensors, HD_ROPE_HALVES, hd_silu, NULL, false, false, NULL, false };
