/* olmo2.c: OLMo 2: Llama with norms behind the blocks and none before them, and of all queries and all keys. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_POST_NORMS,        HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", QUERIES),
    HDL_NORM("attn_k_norm", KEYS), HDL_TENSORS_OUT,       HDL_TENSORS_GATED,
    HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_olmo2 = { tensors, HD_ROPE_HALVES, hd_silu, NULL, false, false, NULL, false };
