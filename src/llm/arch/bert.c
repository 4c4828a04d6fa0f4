/* bert.c: BERT: an encoder, whose tokens all see each other, and which answers with a vector. Layer norms behind the
 * blocks, learned positions, no gates. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_SUM_NORMS, HDL_TENSORS_UNGATED,
    { "position_embd.weight", HDL_LEN_CONTEXT, HDL_LEN_HIDDEN, false, HDL_EMBED, HDL_LEN_NONE, NULL },
    HDL_TENSORS_EMBEDDED,
};

void hdl_encoder_read(hdl_keys *k) { k->model->figures.causal = hdl_key_bool(k, "attention.causal", false); }

const hdl_arch hdl_arch_bert = { tensors, HD_ROPE_HALVES, hd_gelu, hdl_encoder_read, true, true, NULL, false };
