/* llama.c: Llama, and what is built like it: Mistral, SmolLM, Yi, ...; with experts it is Mixtral. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_EXPERTS, HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_llama = { tensors, HD_ROPE_NEIGHBOURS, hd_silu, NULL, false, false, with_experts, true };
