/* gemma_embedding.c: EmbeddingGemma: Gemma 3 as an encoder. All its tokens see each other; in layers with a window
 * those that are at most half of it away, on both sides. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_POST_NORMS, HDL_TENSORS_QKV(true), HDL_NORM("attn_q_norm", HEAD),
    HDL_NORM("attn_k_norm", HEAD),
    HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_gemma_read(k);
    hdl_encoder_read(k);
    f->window_centred = !f->causal;
    f->window_period = hdl_key_u32(k, "attention.sliding_window_pattern", 2, 1024, 6);
    f->rope_local_theta = hdl_key_f32(k, "rope.freq_base_swa", 1.001f, 1e12f, 10000);
}

const hdl_arch hdl_arch_gemma_embedding = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, read, false, false, NULL, false };
