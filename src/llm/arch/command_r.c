/* command_r.c: Command R: layer norms without biases, attention and feed-forward side by side behind one, a factor of
 * the logits. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_NORM("attn_norm", HIDDEN), HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) {
    k->model->figures.parallel = true;
    k->model->figures.logit_scale = hdl_key_f32(k, "logit_scale", -1e6f, 1e6f, 1);
}

const hdl_arch hdl_arch_command_r = { tensors, HD_ROPE_NEIGHBOURS, hd_silu, read, true, false, NULL, false };
