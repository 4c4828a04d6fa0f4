/* falcon.c: Falcon: layer norms, no gates, attention and feed-forward side by side behind one norm, or behind one
 * each. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_LAYER_NORM("attn_norm", HIDDEN), HDL_OPTIONAL_LAYER_NORM("attn_norm_2", HIDDEN),
    HDL_LINEAR("attn_qkv", QKV, HIDDEN, true), HDL_TENSORS_OUT, HDL_TENSORS_UNGATED, HDL_BIAS_OUTSIDE,
    HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) { k->model->figures.parallel = true; }

const hdl_arch hdl_arch_falcon = { tensors, HD_ROPE_HALVES, hd_gelu, read, true, false, NULL, false };
