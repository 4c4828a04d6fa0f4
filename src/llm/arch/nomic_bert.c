/* nomic_bert.c: Nomic's BERT: as BERT, with rotary positions, fused weights, gates, no biases. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_LINEAR("attn_qkv", QKV, HIDDEN, true), HDL_TENSORS_OUT, HDL_TENSORS_SUM_NORMS, HDL_TENSORS_GATED,
    HDL_TENSORS_EMBEDDED,
};

const hdl_arch hdl_arch_nomic_bert = { tensors, HD_ROPE_HALVES, hd_silu, hdl_encoder_read, true, false, NULL, false };
