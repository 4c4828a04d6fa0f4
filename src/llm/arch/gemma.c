/* gemma.c: Gemma: Llama whose embedding is scaled and whose gates are gelu; its files hold the norms' weights with 1
 * added. */
#include "llm/arch/arch.h"
#include <math.h>

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

void hdl_gemma_read(hdl_keys *k) { k->model->figures.embedding_scale = sqrtf((float)k->model->figures.hidden); }

const hdl_arch hdl_arch_gemma = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, hdl_gemma_read, false, false, NULL, false };
