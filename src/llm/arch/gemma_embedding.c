/* gemma_embedding.c: EmbeddingGemma: Gemma 3 as an encoder. All its tokens see each other; in layers with a window
 * those that are at most half of it away, on both sides. */
#include "llm/arch/arch.h"

static void read(hdl_keys *k) {
    hdl_gemma3_read(k);
    hdl_encoder_read(k);
    k->model->figures.window_centred = !k->model->figures.causal;
}

const hdl_arch hdl_arch_gemma_embedding = {
    hdl_gemma3_tensors, HD_ROPE_HALVES, hd_gelu_tanh, read, false, false, NULL, false
};
