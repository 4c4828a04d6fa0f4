/* granite.c: Granite: Llama with a factor of the embedding, of what each block adds, of the scores and of the
 * logits. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

void hdl_granite_read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    f->embedding_scale = hdl_key_f32(k, "embedding_scale", -1e6f, 1e6f, 1);
    f->residual_scale = hdl_key_f32(k, "residual_scale", -1e6f, 1e6f, 1);
    f->attention_scale = hdl_key_f32(k, "attention.scale", 0, 1e6f, 0);
    f->logit_scale = 1 / hdl_key_f32(k, "logit_scale", 1e-6f, 1e6f, 1); /* the file says what they are divided by */
}

const hdl_arch hdl_arch_granite = { tensors, HD_ROPE_NEIGHBOURS, hd_silu, hdl_granite_read, false, false, NULL, false };
