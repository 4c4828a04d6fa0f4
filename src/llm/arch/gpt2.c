/* gpt2.c: GPT-2: layer norms, learned positions, biases, no gates. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_LAYER_NORMS, HDL_LINEAR("attn_qkv", QKV, HIDDEN, true), HDL_TENSORS_OUT, HDL_TENSORS_UNGATED,
    { "position_embd.weight", HDL_LEN_CONTEXT, HDL_LEN_HIDDEN, false, HDL_EMBED, HDL_LEN_NONE, NULL }, HDL_BIAS_OUTSIDE,
    HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_gpt2 = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, NULL, true, true, NULL, false };
