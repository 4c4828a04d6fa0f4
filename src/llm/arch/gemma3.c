/* gemma3.c: Gemma 3, its text: Gemma 2 with norms of heads in place of caps, and a window in five of six layers, which
 * turn by another base. */
#include "llm/arch/arch.h"
#include <math.h>

const hdl_tensor_row hdl_gemma3_tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_POST_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", HEAD),
    HDL_NORM("attn_k_norm", HEAD),
    HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

void hdl_gemma3_read(hdl_keys *k) {
    hdl_gemma_read(k);
    k->model->figures.window_period = hdl_key_u32(k, "attention.sliding_window_pattern", 2, 1024, 6);
    k->model->figures.rope_local_theta = hdl_key_f32(k, "rope.freq_base_swa", 1.001f, 1e12f, 10000);
}

/* The largest model, of 62 layers, divides its queries by another root; no key says so. */
static void read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_gemma3_read(k);
    f->sees = true;
    f->logit_cap = hdl_key_f32(k, "final_logit_softcapping", 0, 1e6f, 0);
    if (f->layers == 62) f->attention_scale = (float)(1 / sqrt((double)f->hidden / f->heads));
}

const hdl_arch hdl_arch_gemma3 = { hdl_gemma3_tensors, HD_ROPE_HALVES, hd_gelu_tanh, read, false, false, NULL, false };
