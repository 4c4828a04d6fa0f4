/* glm4.c: GLM 4: gate and up in one weight, norms before and behind both blocks, of whose heads a half turns. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_POST_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT,
    HDL_LINEAR("ffn_up", GATE_UP, HIDDEN, true), HDL_LINEAR("ffn_down", HIDDEN, FORWARD, true), HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_glm4 = { tensors, HD_ROPE_NEIGHBOURS, hd_silu, NULL, false, false, NULL, false };
