/* starcoder2.c: StarCoder 2: layer norms, biases, no gates. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_LAYER_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT,
    HDL_TENSORS_UNGATED,     HDL_BIAS_OUTSIDE,      HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_starcoder2 = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, NULL, true, false, NULL, false };
