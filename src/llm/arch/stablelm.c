/* stablelm.c: StableLM: Llama with layer norms, of whose heads a part turns; feed-forward beside attention where it has
 * no norm. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_LAYER_NORM("attn_norm", HIDDEN), HDL_OPTIONAL_LAYER_NORM("ffn_norm", HIDDEN), HDL_TENSORS_QKV(true),
    HDL_TENSORS_OUT,
    HDL_TENSORS_GATED, HDL_BIAS_OUTSIDE, HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) {
    hdl_gguf_tensor norm;
    (void)hdl_key_ask(k, "use_parallel_residual"); /* converters say so of models that are not */
    k->model->figures.parallel = !hdl_gguf_find_tensor(k->model->gguf, "blk.0.ffn_norm.weight", &norm);
}

const hdl_arch hdl_arch_stablelm = { tensors, HD_ROPE_HALVES, hd_silu, read, true, false, NULL, false };
