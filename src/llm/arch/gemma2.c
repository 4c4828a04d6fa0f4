/* gemma2.c: Gemma 2: Gemma with norms behind both blocks, soft caps of scores and logits, and a window in every second
 * layer. */
#include "llm/arch/arch.h"
#include <math.h>

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_POST_NORMS, HDL_TENSORS_QKV(true),
    HDL_TENSORS_OUT,   HDL_TENSORS_GATED,      HDL_TENSORS_OUTSIDE,
};

/* The largest model, of 46 layers, divides its queries by another root; no key says so. */
static void read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_gemma_read(k);
    f->window_period = hdl_key_u32(k, "attention.sliding_window_pattern", 2, 1024, 2);
    f->attention_cap = hdl_key_f32(k, "attn_logit_softcapping", 0, 1e6f, 50);
    f->logit_cap = hdl_key_f32(k, "final_logit_softcapping", 0, 1e6f, 30);
    if (f->layers == 46) f->attention_scale = (float)(1 / sqrt((double)f->hidden / f->heads));
}

const hdl_arch hdl_arch_gemma2 = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, read, false, false, NULL, false };
