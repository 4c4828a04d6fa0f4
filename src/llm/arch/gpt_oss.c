/* gpt_oss.c: gpt-oss: a mixture of experts with biases and clamped gates, a sink of each head's scores, and a window in
 * every second layer. The norm before its feed-forward is called post_attention_norm. */
#include "llm/arch/arch.h"
#include <math.h>

/* A weight of each expert, and its bias. */
#define EXPERTS(stem, rows, columns)                                                                                   \
    HDL_EXPERTS(stem, rows, columns),                                                                                  \
    { stem ".bias", HDL_LEN_##rows, HDL_LEN_NONE, false, HDL_LAYER, HDL_LEN_EXPERTS, NULL }

static const hdl_tensor_row with_experts[] = {
    HDL_NORM("attn_norm", HIDDEN), HDL_NORM("post_attention_norm", HIDDEN), HDL_NORM("attn_sinks", HEADS),
    HDL_TENSORS_QKV(false), HDL_LINEAR("attn_output", HIDDEN, QUERIES, false),
    HDL_LINEAR("ffn_gate_inp", EXPERTS, HIDDEN, false), EXPERTS("ffn_gate_exps", EXPERT, HIDDEN),
    EXPERTS("ffn_up_exps", EXPERT, HIDDEN), EXPERTS("ffn_down_exps", HIDDEN, EXPERT), HDL_TENSORS_OUTSIDE,
};

/* silu of 1.702 times the gate, over 1.702, times up + 1; both are held to 7, the gate from above alone. */
static hd_value clamped(hd_program *p, hd_value gate, hd_value up) {
    const float most = 7;
    gate = hd_clip(p, gate, -INFINITY, most);
    up = hd_scale(p, hd_clip(p, up, -most, most), 1, 1);
    return hd_mul(p, hd_mul(p, gate, hd_sigmoid(p, hd_scale(p, gate, 1.702f, 0))), up);
}

/* Its YaRN was trained with bounds between two pairs, and no key says so. */
static void read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    f->window_period = hdl_key_u32(k, "attention.sliding_window_pattern", 2, 1024, 2);
    f->norm_between = true;
    f->gate = clamped;
    f->yarn_truncates = false;
}

const hdl_arch hdl_arch_gpt_oss = { NULL, HD_ROPE_HALVES, NULL, read, false, false, with_experts, true };
