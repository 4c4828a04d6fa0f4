/* phi3.c: Phi-3 and Phi-4: Llama with queries, keys and values in one weight, and gate and up in one. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_LINEAR("attn_qkv", QKV, HIDDEN, true), HDL_TENSORS_OUT,
    HDL_LINEAR("ffn_up", GATE_UP, HIDDEN, true), HDL_LINEAR("ffn_down", HIDDEN, FORWARD, true), HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_phi3 = { tensors, HD_ROPE_HALVES, hd_silu, NULL, false, false, NULL, false };
