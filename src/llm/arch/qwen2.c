/* qwen2.c: Llama with biases of queries, keys and values. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(false), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_qwen2 = { tensors, HD_ROPE_HALVES, hd_silu, NULL, false, false, NULL, false };
