/* convert_families.c: every family that `heddle convert` takes, a row each: the names of its parts, its keys, and what
 * its config.json may say. */
#include "cli/convert.h"
#include <math.h>
#include <string.h>

/* ---- names of parts ---- */

#define END { NULL, NULL, 0 }
#define QKV                                                                                                            \
    { "self_attn.q_proj", "attn_q", CLI_QUERIES }, { "self_attn.k_proj", "attn_k", CLI_KEYS },                         \
    { "self_attn.v_proj", "attn_v", 0 }
#define ATTENTION QKV, { "self_attn.o_proj", "attn_output", 0 }
#define NORMS { "input_layernorm", "attn_norm", 0 }, { "post_attention_layernorm", "ffn_norm", 0 }
#define GATED { "mlp.gate_proj", "ffn_gate", 0 }, { "mlp.up_proj", "ffn_up", 0 }, { "mlp.down_proj", "ffn_down", 0 }
#define HEAD_NORMS { "self_attn.q_norm", "attn_q_norm", 0 }, { "self_attn.k_norm", "attn_k_norm", 0 }
#define FUSED_GATED { "mlp.gate_up_proj", "ffn_up", 0 }, { "mlp.down_proj", "ffn_down", 0 }
#define EXPERTS                                                                                                        \
    { "mlp.gate", "ffn_gate_inp", CLI_AS_F32 }, { "mlp.experts.*.gate_proj", "ffn_gate_exps", 0 },                     \
    { "mlp.experts.*.up_proj", "ffn_up_exps", 0 }, { "mlp.experts.*.down_proj", "ffn_down_exps", 0 }
#define GEMMA_NORMS                                                                                                    \
    { "input_layernorm", "attn_norm", 0 }, { "post_attention_layernorm", "post_attention_norm", 0 },                   \
    { "pre_feedforward_layernorm", "ffn_norm", 0 }, { "post_feedforward_layernorm", "post_ffw_norm", 0 }
#define WIDE "mlp.dense_h_to_4h", "ffn_up", 0
#define NARROW "mlp.dense_4h_to_h", "ffn_down", 0

static const cli_part llama[] = { NORMS, ATTENTION, GATED, END };
static const cli_part qwen3[] = { NORMS, ATTENTION, HEAD_NORMS, GATED, END };
static const cli_part phi3[] = {
    NORMS, { "self_attn.qkv_proj", "attn_qkv", 0 }, { "self_attn.o_proj", "attn_output", 0 }, FUSED_GATED, END,
};
static const cli_part gemma2[] = { GEMMA_NORMS, ATTENTION, GATED, END };
static const cli_part gemma3[] = { GEMMA_NORMS, ATTENTION, HEAD_NORMS, GATED, END };
static const cli_part mixtral[] = {
    NORMS, ATTENTION, { "block_sparse_moe.gate", "ffn_gate_inp", CLI_AS_F32 },
    { "block_sparse_moe.experts.*.w1", "ffn_gate_exps", 0 }, { "block_sparse_moe.experts.*.w3", "ffn_up_exps", 0 },
    { "block_sparse_moe.experts.*.w2", "ffn_down_exps", 0 }, END,
};
static const cli_part qwen2moe[] = {
    NORMS, ATTENTION, EXPERTS,
    { "mlp.shared_expert.gate_proj", "ffn_gate_shexp", 0 }, { "mlp.shared_expert.up_proj", "ffn_up_shexp", 0 },
    { "mlp.shared_expert.down_proj", "ffn_down_shexp", 0 },
    { "mlp.shared_expert_gate", "ffn_gate_inp_shexp", CLI_ONE_ROW }, END,
};
static const cli_part qwen3moe[] = { NORMS, ATTENTION, HEAD_NORMS, EXPERTS, END };
/* Experts as blocks of MXFP4, or as floats; each row of gates is followed by one of what is up. */
static const cli_part gpt_oss[] = {
    { "input_layernorm", "attn_norm", 0 }, { "post_attention_layernorm", "post_attention_norm", 0 }, ATTENTION,
    { "self_attn.sinks", "attn_sinks.weight", 0 }, { "mlp.router", "ffn_gate_inp", CLI_AS_F32 },
    { "mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", CLI_BLOCKS | CLI_EVEN },
    { "mlp.experts.gate_up_proj_blocks", "ffn_up_exps.weight", CLI_BLOCKS | CLI_ODD },
    { "mlp.experts.gate_up_proj_scales", NULL, 0 },
    { "mlp.experts.gate_up_proj", "ffn_gate_exps.weight", CLI_EACH | CLI_TRANSPOSED | CLI_EVEN },
    { "mlp.experts.gate_up_proj", "ffn_up_exps.weight", CLI_EACH | CLI_TRANSPOSED | CLI_ODD },
    { "mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", CLI_EACH | CLI_EVEN },
    { "mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", CLI_EACH | CLI_ODD },
    { "mlp.experts.down_proj_blocks", "ffn_down_exps.weight", CLI_BLOCKS }, { "mlp.experts.down_proj_scales", NULL, 0 },
    { "mlp.experts.down_proj", "ffn_down_exps.weight", CLI_EACH | CLI_TRANSPOSED },
    { "mlp.experts.down_proj_bias", "ffn_down_exps.bias", CLI_EACH }, END,
};
static const cli_part deepseek2[] = {
    NORMS, { "self_attn.q_proj", "attn_q", 0 }, { "self_attn.q_a_proj", "attn_q_a", 0 },
    { "self_attn.q_a_layernorm", "attn_q_a_norm", 0 }, { "self_attn.q_b_proj", "attn_q_b", 0 },
    { "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", 0 }, { "self_attn.kv_a_layernorm", "attn_kv_a_norm", 0 },
    { "self_attn.kv_b_proj", "attn_k_b", CLI_HEAD_KEYS }, { "self_attn.kv_b_proj", "attn_v_b", CLI_HEAD_VALUES },
    { "self_attn.o_proj", "attn_output", 0 }, GATED, EXPERTS,
    { "mlp.gate.e_score_correction_bias", "exp_probs_b.bias", CLI_AS_F32 },
    { "mlp.shared_experts.gate_proj", "ffn_gate_shexp", 0 }, { "mlp.shared_experts.up_proj", "ffn_up_shexp", 0 },
    { "mlp.shared_experts.down_proj", "ffn_down_shexp", 0 }, END,
};
static const cli_part olmo2[] = {
    { "post_attention_layernorm", "post_attention_norm", 0 }, { "post_feedforward_layernorm", "post_ffw_norm", 0 },
    ATTENTION, HEAD_NORMS, GATED, END,
};
static const cli_part olmoe[] = { NORMS, ATTENTION, HEAD_NORMS, EXPERTS, END };
static const cli_part granitemoe[] = {
    NORMS, ATTENTION, { "block_sparse_moe.router.layer", "ffn_gate_inp", CLI_AS_F32 },
    { "block_sparse_moe.input_linear", "ffn_gate_exps", CLI_EACH | CLI_FIRST_HALF },
    { "block_sparse_moe.input_linear", "ffn_up_exps", CLI_EACH | CLI_SECOND_HALF },
    { "block_sparse_moe.output_linear", "ffn_down_exps", CLI_EACH },
    { "shared_mlp.input_linear", "ffn_gate_shexp", CLI_FIRST_HALF },
    { "shared_mlp.input_linear", "ffn_up_shexp", CLI_SECOND_HALF },
    { "shared_mlp.output_linear", "ffn_down_shexp", 0 }, END,
};
static const cli_part gpt2[] = {
    { "ln_1", "attn_norm", 0 }, { "ln_2", "ffn_norm", 0 }, { "attn.c_attn", "attn_qkv", CLI_TRANSPOSED },
    { "attn.c_proj", "attn_output", CLI_TRANSPOSED }, { "mlp.c_fc", "ffn_up", CLI_TRANSPOSED },
    { "mlp.c_proj", "ffn_down", CLI_TRANSPOSED }, { "attn.bias", NULL, 0 }, { "attn.masked_bias", NULL, 0 }, END,
};
static const cli_part gptneox[] = {
    NORMS, { "attention.query_key_value", "attn_qkv", CLI_GROUPED }, { "attention.dense", "attn_output", 0 },
    { WIDE }, { NARROW }, { "attention.bias", NULL, 0 }, { "attention.masked_bias", NULL, 0 }, END,
};
static const cli_part falcon[] = {
    { "input_layernorm", "attn_norm", 0 }, { "ln_mlp", "attn_norm", 0 }, { "ln_attn", "attn_norm_2", 0 },
    { "self_attention.query_key_value", "attn_qkv", CLI_GROUPED }, { "self_attention.dense", "attn_output", 0 },
    { WIDE }, { NARROW }, END,
};
static const cli_part starcoder2[] = {
    NORMS, ATTENTION, { "mlp.c_fc", "ffn_up", 0 }, { "mlp.c_proj", "ffn_down", 0 }, END,
};
static const cli_part glm4[] = {
    { "input_layernorm", "attn_norm", 0 }, { "post_self_attn_layernorm", "post_attention_norm", 0 },
    { "post_attention_layernorm", "ffn_norm", 0 }, { "post_mlp_layernorm", "post_ffw_norm", 0 }, ATTENTION,
    FUSED_GATED, END,
};
static const cli_part bert[] = {
    { "attention.self.query", "attn_q", 0 }, { "attention.self.key", "attn_k", 0 },
    { "attention.self.value", "attn_v", 0 }, { "attention.output.dense", "attn_output", 0 },
    { "attention.output.LayerNorm", "attn_output_norm", 0 },
    { "intermediate.dense", "ffn_up", 0 }, { "output.dense", "ffn_down", 0 },
    { "output.LayerNorm", "layer_output_norm", 0 }, END,
};

static const cli_part nomic_bert[] = {
    { "attn.Wqkv", "attn_qkv", 0 }, { "attn.out_proj", "attn_output", 0 }, { "norm1", "attn_output_norm", 0 },
    { "mlp.fc11", "ffn_up", 0 }, { "mlp.fc12", "ffn_gate", 0 }, { "mlp.fc2", "ffn_down", 0 },
    { "norm2", "layer_output_norm", 0 }, END,
};
#define TERNARY(from, to) { from, to, CLI_TERNARY }, { from ".weight_scale", to ".scale", CLI_AS_F32 }
static const cli_part bitnet[] = {
    NORMS, TERNARY("self_attn.q_proj", "attn_q"), TERNARY("self_attn.k_proj", "attn_k"),
    TERNARY("self_attn.v_proj", "attn_v"), TERNARY("self_attn.o_proj", "attn_output"),
    { "self_attn.attn_sub_norm", "attn_sub_norm", 0 }, TERNARY("mlp.gate_proj", "ffn_gate"),
    TERNARY("mlp.up_proj", "ffn_up"), TERNARY("mlp.down_proj", "ffn_down"), { "mlp.ffn_sub_norm", "ffn_sub_norm", 0 },
    END,
};

/* ---- keys ---- */

#define NO_MORE { NULL, NULL, CLI_WHOLE }
#define EXPERT_COUNTS                                                                                                  \
    { "num_local_experts", "expert_count", CLI_WHOLE }, { "num_experts_per_tok", "expert_used_count", CLI_WHOLE }
#define EXPERT_LENGTH { "moe_intermediate_size", "expert_feed_forward_length", CLI_WHOLE }
#define SHARED_LENGTH { "shared_expert_intermediate_size", "expert_shared_feed_forward_length", CLI_WHOLE }
#define FACTORS                                                                                                        \
    { "embedding_multiplier", "embedding_scale", CLI_REAL }, { "residual_multiplier", "residual_scale", CLI_REAL },    \
    { "attention_multiplier", "attention.scale", CLI_REAL }, { "logits_scaling", "logit_scale", CLI_REAL }
#define LOGIT_CAP { "final_logit_softcapping", "final_logit_softcapping", CLI_REAL_OR_NONE }
#define SIDE_BY_SIDE { "use_parallel_residual", "use_parallel_residual", CLI_SWITCH }

static const cli_figure gemma2_keys[] = {
    { "attn_logit_softcapping", "attn_logit_softcapping", CLI_REAL_OR_NONE }, LOGIT_CAP, NO_MORE,
};
static const cli_figure gemma3_keys[] = {
    LOGIT_CAP, { "rope_local_base_freq", "rope.freq_base_swa", CLI_REAL }, NO_MORE,
};
static const cli_figure expert_keys[] = { EXPERT_COUNTS, NO_MORE };
static const cli_figure qwen2moe_keys[] = { EXPERT_COUNTS, EXPERT_LENGTH, SHARED_LENGTH, NO_MORE };
static const cli_figure qwen3moe_keys[] = { EXPERT_COUNTS, EXPERT_LENGTH, NO_MORE };
static const cli_figure deepseek2_keys[] = {
    EXPERT_COUNTS, EXPERT_LENGTH, { "n_shared_experts", "expert_shared_count", CLI_WHOLE_OR_NONE },
    { "routed_scaling_factor", "expert_weights_scale", CLI_REAL },
    { "norm_topk_prob", "expert_weights_norm", CLI_SWITCH }, { "gating", "expert_gating_func", CLI_WHOLE },
    { "first_k_dense_replace", "leading_dense_block_count", CLI_WHOLE_OR_NONE },
    { "kv_lora_rank", "attention.kv_lora_rank", CLI_WHOLE },
    { "q_lora_rank", "attention.q_lora_rank", CLI_WHOLE_OR_NONE },
    { "key_length", "attention.key_length_mla", CLI_WHOLE }, { "v_head_dim", "attention.value_length_mla", CLI_WHOLE },
    NO_MORE,
};
static const cli_figure gpt_oss_keys[] = {
    EXPERT_COUNTS, { "intermediate_size", "expert_feed_forward_length", CLI_WHOLE }, NO_MORE,
};
static const cli_figure granite_keys[] = { FACTORS, NO_MORE };
static const cli_figure granitemoe_keys[] = { EXPERT_COUNTS, FACTORS, NO_MORE };
static const cli_figure granitemoe_shared_keys[] = { EXPERT_COUNTS, FACTORS, SHARED_LENGTH, NO_MORE };
static const cli_figure parallel_keys[] = { SIDE_BY_SIDE, NO_MORE };
static const cli_figure command_r_keys[] = { { "logit_scale", "logit_scale", CLI_REAL }, NO_MORE };

/* ---- what takes more than a row ---- */

/* Queries are divided by the root of query_pre_attn_scalar, which no key says: heddle takes the size of a head, and
 * the rows of a head of the embedding in the largest model, as llama.cpp does. */
static int check_scale(cli_conversion *c, uint32_t largest) {
    double scale, expected = c->layers == largest ? (double)c->hidden / c->heads : c->head_size;
    const int code = cli_config_real(&c->config, c->config.root, "query_pre_attn_scalar", expected, &scale);
    if (!code && fabs(scale - expected) > 1e-6)
        return cli_config_bad(&c->config, "query_pre_attn_scalar", "is not the size of a head, and is not computed");
    return code;
}
static int adapt_gemma2(cli_conversion *c) { return check_scale(c, 46); }

/* Layers with a window have angles of their own base, which newer files keep beside those of the others. */
static int adapt_gemma3(cli_conversion *c) {
    json_t *root = c->config.root, *angles = json_object_get(root, "rope_parameters");
    json_t *local = json_object_get(angles, "sliding_attention"), *whole = json_object_get(angles, "full_attention");
    const char *type = json_string_value(json_object_get(local, "rope_type"));
    json_t *base = json_object_get(local, "rope_theta");
    if (local && type && strcmp(type, "default") != 0)
        return cli_config_bad(&c->config, "rope_parameters", "scale the angles of windows, which is not computed");
    if (base) json_object_set(root, "rope_local_base_freq", base);
    if (whole) json_object_set(root, "rope_parameters", whole);
    return check_scale(c, 62);
}

/* Every fourth layer does not turn. */
static int adapt_smollm3(cli_conversion *c) {
    const json_t *turns = json_object_get(c->config.root, "no_rope_layers");
    for (uint32_t i = 0; i < json_array_size(turns); i++) {
        const json_t *one = json_array_get(turns, i);
        if (!json_is_integer(one) || json_integer_value(one) != (i % 4 != 3))
            return cli_config_bad(&c->config, "no_rope_layers", "is not every fourth one, and is not computed");
    }
    return CLI_OK;
}

/* First layers that have no experts: some folders name the kind of each layer. */
static int count_dense(cli_conversion *c) {
    const json_t *kinds = json_object_get(c->config.root, "mlp_layer_types");
    size_t dense = 0;
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        const bool is_dense = kind && strcmp(kind, "dense") == 0;
        if (!is_dense && (!kind || strcmp(kind, "sparse") != 0))
            return cli_config_bad(&c->config, "mlp_layer_types", "has a kind that is not computed");
        if (is_dense && dense++ != i)
            return cli_config_bad(&c->config, "mlp_layer_types", "has dense layers behind others, and is not computed");
    }
    if (kinds) json_object_set_new(c->config.root, "first_k_dense_replace", json_integer((json_int_t)dense));
    return CLI_OK;
}

/* Keys and values are made of a short vector, which attention reads in their place, beside what turns. */
static int latent(cli_conversion *c, int gating) {
    enum { MOST = 1 << 12 };
    json_t *root = c->config.root;
    uint32_t vector, turns, still;
    int code = cli_config_whole(&c->config, "kv_lora_rank", MOST, UINT64_MAX >> 1, &vector);
    if (!code) code = cli_config_whole(&c->config, "qk_rope_head_dim", MOST, UINT64_MAX >> 1, &turns);
    if (!code) code = cli_config_whole(&c->config, "qk_nope_head_dim", MOST, UINT64_MAX >> 1, &still);
    if (!code) code = count_dense(c);
    if (code) return code;
    json_object_set_new(root, "gating", json_integer(gating));
    json_object_set_new(root, "key_length", json_integer((json_int_t)turns + still));
    c->latent_keys = still;
    c->kv_heads = 1;
    c->head_size = vector + turns;
    c->value_size = vector;
    c->turning = turns;
    return CLI_OK;
}

/* GGUF's numbers of what makes shares of scores. */
static int adapt_deepseek2(cli_conversion *c) { return latent(c, 1); }
static int adapt_by_sigmoid(cli_conversion *c) { return latent(c, 2); }

/* Older ones say in words how many heads of keys there are. */
static int adapt_falcon(cli_conversion *c) {
    json_t *root = c->config.root;
    if (json_is_true(json_object_get(root, "new_decoder_architecture"))) return CLI_OK;
    c->kv_heads = json_is_false(json_object_get(root, "multi_query")) ? c->heads : 1;
    return CLI_OK;
}

/* Beyond what it was trained on angles would change with the length of a text. */
static int adapt_nomic(cli_conversion *c) {
    double factor;
    const json_t *scaling = json_object_get(c->config.root, "rotary_scaling_factor");
    if (!scaling || json_is_null(scaling)) return CLI_OK;
    const int code = cli_config_real(&c->config, c->config.root, "rotary_scaling_factor", 1, &factor);
    return code ? code : cli_config_whole(&c->config, "max_trained_positions", 1u << 28, 2048, &c->context);
}

/* ---- families ---- */

#define JSON CLI_JSON
#define SEEING { "vision_tower.", "model.vision_tower.", "multi_modal_projector.", "model.multi_modal_projector." }

static const cli_family families[] = {
    { "LlamaForCausalLM", "llama", "model.layers.", llama, NULL, CLI_NEIGHBOURS, 0,
      JSON({"attention_bias": false, "mlp_bias": false}), NULL, NULL, { 0 } },
    { "MistralForCausalLM", "llama", "model.layers.", llama, NULL, CLI_NEIGHBOURS, 1,
      JSON({"sliding_window": 4096, "num_key_value_heads": 8}), NULL, NULL, { 0 } },
    { "Qwen2ForCausalLM", "qwen2", "model.layers.", llama, NULL, 0, 0, JSON({"num_key_value_heads": 32}), NULL, NULL,
      { 0 } },
    { "Qwen3ForCausalLM", "qwen3", "model.layers.", qwen3, NULL, 0, 0,
      JSON({"num_key_value_heads": 32, "head_dim": 128, "attention_bias": false}), NULL, NULL, { 0 } },
    { "Phi3ForCausalLM", "phi3", "model.layers.", phi3, NULL, 0, 1, 
      JSON({"rms_norm_eps": 1e-5, "original_max_position_embeddings": 4096}),
      JSON({"partial_rotary_factor": []}), NULL, { 0 } },
    { "GemmaForCausalLM", "gemma", "model.layers.", llama, NULL, CLI_NORMS_PLUS_1, 0,
      JSON({"tie_word_embeddings": true, "head_dim": 256, "num_key_value_heads": 16, "hidden_act": "gelu",
            "attention_bias": false}),
      JSON({"hidden_act": ["gelu", "gelu_pytorch_tanh"]}), NULL, { 0 } },
    { "Gemma2ForCausalLM", "gemma2", "model.layers.", gemma2, gemma2_keys, CLI_NORMS_PLUS_1, 2,
      JSON({"tie_word_embeddings": true, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "sliding_window": 4096,
            "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50,
            "final_logit_softcapping": 30, "attention_bias": false}),
      JSON({"hidden_act": "gelu_pytorch_tanh", "hidden_activation": [null, "gelu_pytorch_tanh"],
            "attn_logit_softcapping": [], "final_logit_softcapping": []}),
      adapt_gemma2, { 0 } },
#define GEMMA3(class)                                                                                                  \
    { class, "gemma3", "model.layers.", gemma3, gemma3_keys, CLI_NORMS_PLUS_1, 6,                                      \
      JSON({"tie_word_embeddings": true, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "sliding_window": 4096,   \
            "query_pre_attn_scalar": 256, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208,    \
            "rope_theta": 1000000, "rope_local_base_freq": 10000, "max_position_embeddings": 131072,                   \
            "attention_bias": false}),                                                                                 \
      JSON({"hidden_act": "gelu_pytorch_tanh", "hidden_activation": [null, "gelu_pytorch_tanh"],                       \
            "sliding_window_pattern": [null, 6], "final_logit_softcapping": []}),                                      \
      adapt_gemma3, SEEING }
    GEMMA3("Gemma3ForCausalLM"), GEMMA3("Gemma3ForConditionalGeneration"),
    { "Qwen2MoeForCausalLM", "qwen2moe", "model.layers.", qwen2moe, qwen2moe_keys, 0, 0,
      JSON({"norm_topk_prob": false, "num_key_value_heads": 16}),
      JSON({"num_local_experts": [], "norm_topk_prob": false, "decoder_sparse_step": [null, 1],
            "mlp_only_layers": [null, []]}), NULL, { 0 } },
    { "Qwen3MoeForCausalLM", "qwen3moe", "model.layers.", qwen3moe, qwen3moe_keys, 0, 0,
      JSON({"norm_topk_prob": false, "num_key_value_heads": 4, "attention_bias": false}),
      JSON({"num_local_experts": [], "norm_topk_prob": true, "decoder_sparse_step": [null, 1],
            "mlp_only_layers": [null, []]}), NULL, { 0 } },
    { "MixtralForCausalLM", "llama", "model.layers.", mixtral, expert_keys, CLI_NEIGHBOURS, 1,
      JSON({"num_local_experts": 8, "num_experts_per_tok": 2, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
            "rope_theta": 1000000}),
      JSON({"num_local_experts": []}), NULL, { 0 } },
    { "GptOssForCausalLM", "gpt-oss", "model.layers.", gpt_oss, gpt_oss_keys, CLI_YARN_BETWEEN, 2,
      JSON({"head_dim": 64, "num_experts_per_tok": 4, "sliding_window": 128, "rope_theta": 150000,
            "rms_norm_eps": 1e-5, "num_key_value_heads": 8,
            "rope_scaling": {"rope_type": "yarn", "factor": 32, "truncate": false,
                             "original_max_position_embeddings": 4096}}),
      JSON({"num_local_experts": [], "quantization_config": [], "swiglu_limit": [null, 7],
            "swiglu_alpha": [null, 1.702]}), NULL, { 0 } },
    { "DeepseekV2ForCausalLM", "deepseek2", "model.layers.", deepseek2, deepseek2_keys, CLI_LATENT, 0,
      JSON({"q_lora_rank": null, "routed_scaling_factor": 1, "norm_topk_prob": false,
            "first_k_dense_replace": 0, "attention_bias": false, "mlp_bias": false}),
      JSON({"num_local_experts": [], "partial_rotary_factor": [], "norm_topk_prob": false,
            "topk_method": [null, "greedy"], "scoring_func": [null, "softmax"], "n_group": [null, 1],
            "moe_layer_freq": [null, 1]}),
      adapt_deepseek2, { 0 } },
#define BY_SIGMOID(class)                                                                                              \
    { class, "deepseek2", "model.layers.", deepseek2, deepseek2_keys, CLI_LATENT, 0,                                   \
      JSON({"q_lora_rank": null, "routed_scaling_factor": 1, "norm_topk_prob": true,                                   \
            "first_k_dense_replace": 1, "attention_bias": false, "mlp_bias": false}),                                  \
      JSON({"num_local_experts": [], "partial_rotary_factor": [], "rope_interleave": [null, true],                     \
            "topk_method": [null, "noaux_tc"], "scoring_func": [null, "sigmoid"], "n_group": [null, 1],                \
            "moe_layer_freq": [null, 1]}),                                                                             \
      adapt_by_sigmoid, { 0 } }
    BY_SIGMOID("DeepseekV3ForCausalLM"), BY_SIGMOID("Glm4MoeLiteForCausalLM"),
    { "Olmo2ForCausalLM", "olmo2", "model.layers.", olmo2, NULL, 0, 0,
      JSON({"rms_norm_eps": 1e-5, "attention_bias": false}), NULL, NULL, { 0 } },
    { "GraniteForCausalLM", "granite", "model.layers.", llama, granite_keys, CLI_NEIGHBOURS, 0,
      JSON({"attention_multiplier": 1, "attention_bias": false, "mlp_bias": false}), NULL, NULL, { 0 } },
    { "GraniteMoeForCausalLM", "granitemoe", "model.layers.", granitemoe, granitemoe_keys, CLI_NEIGHBOURS, 0,
      JSON({"attention_multiplier": 1, "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": false}),
      JSON({"num_local_experts": []}), NULL, { 0 } },
    { "GraniteMoeSharedForCausalLM", "granitemoe", "model.layers.", granitemoe, granitemoe_shared_keys,
      CLI_NEIGHBOURS, 0,
      JSON({"attention_multiplier": 1, "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": false}),
      JSON({"num_local_experts": []}), NULL, { 0 } },
    { "SmolLM3ForCausalLM", "smollm3", "model.layers.", llama, NULL, CLI_NEIGHBOURS, 0,
      JSON({"tie_word_embeddings": true, "rope_theta": 2000000, "num_key_value_heads": 4,
            "attention_bias": false, "mlp_bias": false}),
      JSON({"no_rope_layer_interval": [null, 4]}),
      adapt_smollm3, { 0 } },
    { "GPT2LMHeadModel", "gpt2", "h.", gpt2, NULL, CLI_LAYER_NORM | CLI_STILL, 0,
      JSON({"tie_word_embeddings": true, "max_position_embeddings": 1024}),
      JSON({"hidden_act": [null, "gelu_new"], "scale_attn_weights": [null, true],
            "scale_attn_by_inverse_layer_idx": [null, false]}), NULL, { 0 } },
    { "GPTNeoXForCausalLM", "gptneox", "layers.", gptneox, parallel_keys, CLI_LAYER_NORM, 0,
      JSON({"partial_rotary_factor": 0.25, "use_parallel_residual": true}),
      JSON({"hidden_act": [null, "gelu"], "partial_rotary_factor": []}), NULL, { 0 } },
    { "Starcoder2ForCausalLM", "starcoder2", "model.layers.", starcoder2, NULL, CLI_LAYER_NORM, 1,
      JSON({"tie_word_embeddings": true, "num_key_value_heads": 2}),
      JSON({"hidden_act": [null, "gelu_pytorch_tanh"], "norm_type": [null, "layer_norm"],
            "mlp_type": [null, "default"]}), NULL, { 0 } },
    { "FalconForCausalLM", "falcon", "h.", falcon, NULL, CLI_LAYER_NORM, 0,
      JSON({"tie_word_embeddings": true, "max_position_embeddings": 2048}),
      JSON({"hidden_act": [null, "gelu"], "parallel_attn": [null, true]}), adapt_falcon, { 0 } },
    { "StableLmForCausalLM", "stablelm", "model.layers.", llama, parallel_keys, CLI_LAYER_NORM, 0,
      JSON({"partial_rotary_factor": 0.25, "use_parallel_residual": false, "num_key_value_heads": 32,
            "use_qkv_bias": false}),
      JSON({"partial_rotary_factor": []}), NULL, { 0 } },
    { "CohereForCausalLM", "command-r", "model.layers.", llama, command_r_keys, CLI_LAYER_NORM, 0,
      JSON({"tie_word_embeddings": true, "logit_scale": 0.0625, "rope_theta": 500000, "attention_bias": false}),
      NULL, NULL, { 0 } },
    { "Glm4ForCausalLM", "glm4", "model.layers.", glm4, NULL, 0, 0,
      JSON({"partial_rotary_factor": 0.5, "head_dim": 128, "num_key_value_heads": 2, "rms_norm_eps": 1.5625e-7}),
      JSON({"partial_rotary_factor": []}), NULL, { 0 } },
    { "OlmoeForCausalLM", "olmoe", "model.layers.", olmoe, expert_keys, 0, 0,
      JSON({"norm_topk_prob": false, "num_local_experts": 64, "num_experts_per_tok": 8, "rms_norm_eps": 1e-5,
            "attention_bias": false}),
      JSON({"num_local_experts": [], "norm_topk_prob": false}), NULL, { 0 } },
#define BERT(class)                                                                                                    \
    { class, "bert", "encoder.layer.", bert, NULL, CLI_LAYER_NORM | CLI_STILL | CLI_ENCODES, 0,                        \
      JSON({"max_position_embeddings": 512, "layer_norm_eps": 1e-12, "type_vocab_size": 2}),                           \
      JSON({"hidden_act": [null, "gelu"], "is_decoder": [null, false],                                                 \
            "position_embedding_type": [null, "absolute"]}), NULL, { "pooler.", "cls.", "embeddings.position_ids" } }
    BERT("BertModel"), BERT("BertForMaskedLM"),
    { "NomicBertModel", "nomic-bert", "encoder.layers.", nomic_bert, NULL, CLI_LAYER_NORM | CLI_ENCODES, 0,
      JSON({"max_position_embeddings": 2048, "layer_norm_eps": 1e-12, "rope_theta": 1000, "type_vocab_size": 2}),
      JSON({"hidden_act": [null, "silu", "swiglu"], "prenorm": [null, false], "causal": [null, false],
            "use_rms_norm": [null, false], "parallel_block": [null, false], "qkv_proj_bias": [null, false],
            "mlp_fc1_bias": [null, false], "mlp_fc2_bias": [null, false], "rotary_emb_interleaved": [null, false],
            "rotary_emb_scale_base": null, "moe_every_n_layers": [null, 0]}),
      adapt_nomic, { "pooler.", "cls.", "embeddings.position_ids" } },
    { "BitNetForCausalLM", "bitnet-b1.58", "model.layers.", bitnet, NULL, CLI_BITNET, 0,
      JSON({"hidden_act": "relu2", "rms_norm_eps": 1e-5, "rope_theta": 500000, "num_key_value_heads": 5,
            "attention_bias": false}),
      JSON({"hidden_act": "relu2", "quantization_config": []}), NULL, { 0 } },
};

const cli_family *cli_convert_family(const char *class_name) {
    for (size_t i = 0; i < CLI_COUNT(families); i++)
        if (strcmp(families[i].class_name, class_name) == 0) return &families[i];
    return NULL;
}

void cli_convert_families(char *out, size_t room) {
    const char *last = "";
    size_t used = 0;
    for (size_t i = 0; i < CLI_COUNT(families) && used < room; i++) {
        if (strcmp(families[i].name, last) == 0) continue; /* classes of one family stand together */
        last = families[i].name;
        used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", families[i].class_name);
    }
}
