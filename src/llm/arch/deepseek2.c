/* deepseek2.c: DeepSeek 2 and 3, and what is made alike (Moonlight, GLM 4.7 Flash): keys and values made of one short
 * vector a token (latent.c), and a mixture of experts behind first layers that have none. */
#include "llm/arch/arch.h"
#include <math.h>

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_LATENT, HDL_TENSORS_GATED, HDL_WEIGHT("ffn_gate_inp", EXPERTS, HIDDEN, NONE),
    { "exp_probs_b.bias", HDL_LEN_EXPERTS, HDL_LEN_NONE, true, HDL_LAYER, HDL_LEN_NONE, NULL },
    HDL_EXPERTS("ffn_gate_exps", EXPERT, HIDDEN), HDL_EXPERTS("ffn_up_exps", EXPERT, HIDDEN),
    HDL_EXPERTS("ffn_down_exps", HIDDEN, EXPERT), HDL_TENSORS_SHARED, HDL_TENSORS_OUTSIDE,
};

static void read_latent(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_key_need(k, "attention.kv_lora_rank");
    f->latent = hdl_key_u32(k, "attention.kv_lora_rank", 1, 4096, 0);
    f->query_latent = hdl_key_u32(k, "attention.q_lora_rank", 0, 1u << 16, 0);
    if (!k->status && hdl_gguf_find_tensor(k->model->gguf, "blk.0.attn_kv_b.weight", &(hdl_gguf_tensor){ 0 }))
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "blk.0.attn_kv_b.weight: keys and values of all heads are one tensor, as older files have "
                             "them; take a newer file, of attn_k_b and attn_v_b");
    hdl_key_need(k, "attention.key_length_mla");
    f->own_key = hdl_key_u32(k, "attention.key_length_mla", 2, 4096, 0);
    f->own_value = hdl_key_u32(k, "attention.value_length_mla", 1, 4096, f->own_key);
    const uint32_t turns = hdl_key_u32(k, "rope.dimension_count", 2, f->head_size, f->head_size);
    if (!k->status && (f->kv_heads != 1 || f->value_size != f->latent || f->head_size != f->latent + turns ||
                       f->own_key <= turns))
        k->status = hdl_fail(k->error, HD_STATUS_PARSE,
                             "keys of %u and values of %u for %u heads are not made of %u elements and %u that turn; "
                             "convert the model anew", f->head_size, f->value_size, f->kv_heads, f->latent, turns);
    f->attention_scale = (float)(1 / sqrt((double)f->own_key));
}

static void read(hdl_keys *k) {
    enum { SOFTMAX = 1, SIGMOID = 2 };
    hdl_figures *f = &k->model->figures;
    read_latent(k);
    f->dense_layers = hdl_key_u32(k, "leading_dense_block_count", 0, f->layers, 0);
    f->shared_forward = f->expert_forward * hdl_key_u32(k, "expert_shared_count", 0, 256, 0);
    f->share_scale = hdl_key_f32(k, "expert_weights_scale", 0, 1e6f, 1);
    f->whole_shares = hdl_key_bool(k, "expert_weights_norm", false);
    f->sigmoid_shares = hdl_key_u32(k, "expert_gating_func", SOFTMAX, SIGMOID, SOFTMAX) == SIGMOID;
    const uint32_t groups = hdl_key_u32(k, "expert_group_count", 0, 1024, 1);
    hdl_key_u32(k, "expert_group_used_count", 0, 1024, 1);
    if (!k->status && groups > 1)
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.expert_group_count is %u: experts that are chosen by groups cannot be run yet; take "
                             "another model", k->model->arch_name, groups);
}

const hdl_arch hdl_arch_deepseek2 = { NULL, HD_ROPE_NEIGHBOURS, hd_silu, read, false, false, with_experts, false };
