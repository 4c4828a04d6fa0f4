/* figures.c: what kind of model a file holds, in figures. Every figure comes from the file and bounds what is done
 * later, so each is held to a range in which nothing overflows. */
#include "llm/arch/arch.h"
#include "llm/keys.h"

static hd_status read_arch(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE], known[400];
    hdl_span name, type;
    if (!hdl_gguf_get_text(model->gguf, "general.type", hdl_text("model"), &type, NULL) &&
        !hdl_same(type, hdl_text("model")))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                        "general.type is %s: the file holds no whole model; give the model that it belongs to",
                        hdl_quote(type, quoted));
    hd_status status = hdl_gguf_need(model->gguf, "general.architecture", error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "general.architecture", hdl_text(""), &name, error);
    if (status) return status;
    model->arch = hdl_arch_find(name, &model->arch_name);
    if (model->arch) return HD_OK;
    hdl_arch_names(known, sizeof known);
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "general.architecture is %s; heddle runs %s", hdl_quote(name, quoted),
                    known);
}

/* A figure that some files give once for each layer; all layers must agree. */
static uint32_t uniform_u32(hdl_keys *k, const char *rest, uint32_t high, uint32_t fallback) {
    uint32_t each[1024];
    const uint32_t layers = k->model->figures.layers;
    const hdl_key_name name = hdl_key_ask(k, rest);
    if (k->status) return fallback;
    for (uint32_t i = 0; i < layers; i++) each[i] = fallback;
    k->status = hdl_gguf_get_u32s(k->model->gguf, name.text, 1, high, layers, each, k->error);
    for (uint32_t i = 1; i < layers && !k->status; i++)
        if (each[i] != each[0])
            k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                                 "%s is %u in layer 0 and %u in layer %u; layers of different sizes cannot be run",
                                 name.text, each[0], each[i], i);
    return each[0];
}

static void read_heads(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_key_need(k, "attention.head_count");
    f->heads = uniform_u32(k, "attention.head_count", 65536, 0);
    f->kv_heads = uniform_u32(k, "attention.head_count_kv", 65536, f->heads);
    if (k->status) return;
    if (f->heads % f->kv_heads != 0)
        k->status = hdl_fail(k->error, HD_STATUS_PARSE,
                             "%s.attention.head_count is %u, no multiple of head_count_kv, %u", k->model->arch_name,
                             f->heads, f->kv_heads);
    f->head_size = hdl_key_u32(k, "attention.key_length", 2, 4096, f->hidden / f->heads);
    f->value_size = hdl_key_u32(k, "attention.value_length", 2, 4096, f->head_size);
    if (!k->status && !k->model->arch->still && (f->head_size < 2 || f->head_size % 2))
        k->status = hdl_fail(k->error, HD_STATUS_PARSE, "the heads have %u elements; rotary embedding needs pairs",
                             f->head_size);
}

/* What a gate is put through: as the family does it, unless the file names another one. */
static void read_activation(hdl_keys *k) {
    char quoted[HDL_QUOTE];
    const hdl_span name = hdl_key_text(k, "hidden_activation", "");
    k->model->figures.activation = k->model->arch->activation;
    if (k->status || name.count == 0) return;
    if (hdl_same(name, hdl_text("silu")) || hdl_same(name, hdl_text("swish"))) k->model->figures.activation = hd_silu;
    else if (hdl_same(name, hdl_text("relu2"))) k->model->figures.activation = hdl_relu_squared;
    else
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.hidden_activation is %s; heddle knows silu, swish and relu2", k->model->arch_name,
                             hdl_quote(name, quoted));
}

/* Experts, in families that know them. */
static void read_experts(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    if (!k->model->arch->with_experts) return;
    f->experts = hdl_key_u32(k, "expert_count", 0, 1024, 0);
    f->experts_used = hdl_key_u32(k, "expert_used_count", 0, HD_MAX_TOP_K, 0);
    f->expert_forward = hdl_key_u32(k, "expert_feed_forward_length", 1, 1u << 22, f->feed_forward);
    const bool shares = hdl_gguf_find_tensor(k->model->gguf, "blk.0.ffn_down_shexp.weight", &(hdl_gguf_tensor){ 0 });
    f->shared_forward = hdl_key_u32(k, "expert_shared_feed_forward_length", 0, 1u << 22, shares ? f->feed_forward : 0);
    if (k->status) return;
    if (f->experts == 0 ? f->experts_used != 0 || !k->model->arch->tensors
                        : f->experts_used == 0 || f->experts_used > f->experts)
        k->status = hdl_fail(
            k->error, HD_STATUS_UNSUPPORTED,
            "%s.expert_count is %u, and %s.expert_used_count is %u: no mixture that can be run; convert the model anew",
            k->model->arch_name, f->experts, k->model->arch_name, f->experts_used);
}

/* What tokens see of each other, and how a text becomes a vector. */
static void read_sight(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    f->window = hdl_key_u32(k, "attention.sliding_window", 0, UINT32_MAX, 0);
    f->causal = hdl_key_bool(k, "attention.causal", true);
    f->pooling = hdl_key_u32(k, "pooling_type", 0, UINT32_MAX, 0);
}

/* The vocabulary has as many tokens as the table has rows; types of tokens likewise. */
static void read_vocabulary(hdl_keys *k) {
    hdl_gguf_tensor table;
    if (k->status) return;
    if (hdl_gguf_find_tensor(k->model->gguf, "token_types.weight", &table))
        k->model->figures.token_types = (uint32_t)(table.shape.dims[0] < UINT32_MAX ? table.shape.dims[0] : UINT32_MAX);
    if (!hdl_gguf_find_tensor(k->model->gguf, "token_embd.weight", &table))
        k->status = hdl_fail(k->error, HD_STATUS_NAME_NOT_FOUND,
                             "the file has no tensor token_embd.weight; take a whole model");
    else if (table.shape.rank != 2 || table.shape.dims[0] > HDL_MAX_TOKENS)
        k->status = hdl_fail(k->error, HD_STATUS_SHAPE, "token_embd.weight is no table of at most %u tokens",
                             HDL_MAX_TOKENS);
    else k->model->figures.vocabulary = (uint32_t)table.shape.dims[0];
}

hd_status hdl_figures_read(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    hdl_keys keys = { .model = model, .error = error, .status = read_arch(model, error) }, *k = &keys;
    if (k->status) return k->status;
    hdl_key_need(k, "block_count");
    f->layers = hdl_key_u32(k, "block_count", 1, 1024, 0);
    hdl_key_need(k, "embedding_length");
    f->hidden = hdl_key_u32(k, "embedding_length", 1, 1u << 20, 0);
    f->context = hdl_key_u32(k, "context_length", 1, 1u << 30, 4096);
    hdl_key_need(k, "feed_forward_length");
    f->feed_forward = uniform_u32(k, "feed_forward_length", 1u << 22, 0);
    read_experts(k);
    read_heads(k);
    read_sight(k);
    const char *epsilon = model->arch->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    hdl_key_need(k, epsilon);
    f->epsilon = hdl_key_f32(k, epsilon, 0, 1, 0);
    f->embedding_scale = f->residual_scale = f->logit_scale = 1;
    f->yarn_truncates = true;
    read_activation(k);
    read_vocabulary(k);
    f->whole_shares = model->arch->whole_shares;
    f->share_scale = 1;
    if (model->arch->read) model->arch->read(k);
    if (!k->status && f->value_size != f->head_size && !f->latent)
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.attention.value_length is %u and key_length %u; heads of two sizes cannot be run",
                             k->model->arch_name, f->value_size, f->head_size);
    if (!model->arch->still) hdl_rope_read(k);
    if (!k->status && !f->causal && f->window && !f->window_centred)
        k->status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                             "%s.attention.sliding_window is %u beside attention to later tokens, which cannot be run; "
                             "take another model", model->arch_name, f->window);
    hdl_keys_check(k);
    return k->status;
}
