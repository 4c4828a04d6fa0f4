/* qwen2.c: Llama with biases of queries, keys and values. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV, HDL_TENSORS_QKV_BIAS(false), HDL_TENSORS_OUT, HDL_TENSORS_GATED,
    HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_qwen2 = {
    .tensors = tensors, .pairing = HD_ROPE_HALVES, .embed = hdl_embed, .layer = hdl_llama_layer, .logits = hdl_logits,
};
