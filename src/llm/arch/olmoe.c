/* olmoe.c: OLMoE: experts, whose shares are those among all, and norms of all queries and all keys. */
#include "llm/arch/arch.h"

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", QUERIES), HDL_NORM("attn_k_norm", KEYS),
    HDL_TENSORS_OUT, HDL_TENSORS_EXPERTS, HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_olmoe = { NULL, HD_ROPE_HALVES, hd_silu, NULL, false, false, with_experts, false };
