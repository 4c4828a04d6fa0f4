/* gptneox.c: GPT-NeoX and Pythia: layer norms, biases, a part of each head turns; feed-forward beside attention. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_LAYER_NORMS, HDL_LINEAR("attn_qkv", QKV, HIDDEN, true), HDL_TENSORS_OUT, HDL_TENSORS_UNGATED,
    HDL_BIAS_OUTSIDE, HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) { k->model->figures.parallel = hdl_key_bool(k, "use_parallel_residual", true); }

const hdl_arch hdl_arch_gptneox = { tensors, HD_ROPE_HALVES, hd_gelu, read, true, false, NULL, false };
