/* figures.c: what kind of model a file holds, in figures. Every figure comes from the file and bounds what is done later, so
 * each is held to a range in which nothing overflows. */
#include "llm/i2s.h"
#include "llm/model.h"
#include <math.h>
#include <stdio.h>

static const hdl_arch arches[] = {
    { "llama", HD_ROPE_NEIGHBOURS, false, false, false, false },
    { "qwen2", HD_ROPE_HALVES, true, false, false, false },
    { "qwen3", HD_ROPE_HALVES, false, true, false, false },
    { "bitnet", HD_ROPE_HALVES, false, false, true, false },
    { "bitnet-b1.58", HD_ROPE_HALVES, false, false, true, true },
    { "bitnet-25", HD_ROPE_HALVES, false, false, true, true },
};

/* "<architecture>.<rest>", in one of two places so that two keys can be named at once. */
typedef struct key { char text[96]; } key;
static key key_of(const hd_model *model, const char *rest) {
    key k;
    snprintf(k.text, sizeof k.text, "%s.%s", model->arch->name, rest);
    return k;
}

static hd_status read_arch(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE];
    hdl_span name;
    hd_status status = hdl_gguf_need(model->gguf, "general.architecture", error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "general.architecture", hdl_text(""), &name, error);
    if (status) return status;
    for (size_t i = 0; i < sizeof arches / sizeof *arches; i++)
        if (hdl_same(name, hdl_text(arches[i].name))) model->arch = &arches[i];
    if (model->arch) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "general.architecture is %s; heddle runs llama, qwen2, qwen3 and bitnet", hdl_quote(name, quoted));
}

/* An integer key that must be there. */
static hd_status need_u32(const hd_model *model, const char *rest, uint32_t low, uint32_t high, uint32_t *out, hd_error *error) {
    const key k = key_of(model, rest);
    const hd_status status = hdl_gguf_need(model->gguf, k.text, error);
    return status ? status : hdl_gguf_get_u32(model->gguf, k.text, low, high, 0, out, error);
}
static hd_status get_u32(const hd_model *model, const char *rest, uint32_t low, uint32_t high, uint32_t fallback, uint32_t *out, hd_error *error) {
    return hdl_gguf_get_u32(model->gguf, key_of(model, rest).text, low, high, fallback, out, error);
}
static hd_status get_f32(const hd_model *model, const char *rest, float low, float high, float fallback, float *out, hd_error *error) {
    return hdl_gguf_get_f32(model->gguf, key_of(model, rest).text, low, high, fallback, out, error);
}

/* A figure that some files give once for each layer; all layers must agree. */
static hd_status uniform_u32(const hd_model *model, const char *rest, uint32_t high, uint32_t fallback, uint32_t *out, hd_error *error) {
    uint32_t each[1024];
    const key k = key_of(model, rest);
    hd_status status = hdl_gguf_get_u32s(model->gguf, k.text, 1, high, fallback, model->figures.layers, each, error);
    for (uint32_t i = 1; i < model->figures.layers && !status; i++)
        if (each[i] != each[0])
            status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s is %u in layer 0 and %u in layer %u; layers of different sizes cannot be run", k.text, each[0], each[i], i);
    *out = status ? 0 : each[0];
    return status;
}

/* ---- rotary embedding ---- */

/* YaRN (arXiv 2309.00071, section 3.2 and equation 15): pairs that turn more than beta_fast = 32 times within the context the
 * model was trained on keep their frequency, those below beta_slow = 1 turn `factor` times slower, those between are mixed;
 * and all scores grow with the logarithm of the factor. */
static hd_status make_yarn(hd_model *model, float factor, uint32_t trained, hd_error *error) {
    hdl_figures *f = &model->figures;
    const double turns_per_log = f->rope_dims / (2 * log((double)f->rope_theta));
    double low = floor(turns_per_log * log(trained / (32 * 6.283185307179586)));
    double high = ceil(turns_per_log * log(trained / 6.283185307179586));
    low = low < 0 ? 0 : low;
    high = high > f->rope_dims - 1.0 ? f->rope_dims - 1.0 : high;
    f->rope_factors = hdl_alloc(&model->allocator, f->rope_dims / 2 * sizeof *f->rope_factors);
    if (!f->rope_factors) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for rope factors");
    const double width = high - low < 0.001 ? 0.001 : high - low;
    for (uint32_t i = 0; i < f->rope_dims / 2; i++) {
        const double at = (i - low) / width, slowed = at < 0 ? 0 : at > 1 ? 1 : at;
        f->rope_factors[i] = (float)(1 / (slowed / (double)factor + (1 - slowed)));
    }
    f->rope_magnitude = (float)(1 + 0.1 * log((double)factor));
    return HD_OK;
}

/* Llama 3's frequencies come as a tensor of divisors. */
static hd_status read_factors(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    hdl_gguf_tensor tensor;
    if (!hdl_gguf_find_tensor(model->gguf, "rope_freqs.weight", &tensor)) return HD_OK;
    hd_status status = hdl_gguf_need_tensor(model->gguf, "rope_freqs.weight", HD_SHAPE(f->rope_dims / 2), &tensor, error);
    if (!status && tensor.type != HDL_GGUF_TYPE_F32) status = hdl_fail(error, HD_STATUS_TYPE, "rope_freqs.weight is %s, not f32", hdl_gguf_type_info(tensor.type).name);
    if (status) return status;
    if (f->rope_factors) return hdl_fail(error, HD_STATUS_UNSUPPORTED, "rope_freqs.weight beside rope.scaling.type yarn");
    f->rope_factors = hdl_alloc(&model->allocator, tensor.bytes);
    if (!f->rope_factors) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for rope factors");
    status = hdl_gguf_read(model->gguf, &tensor, 0, tensor.bytes, f->rope_factors, error);
    for (uint32_t i = 0; i < f->rope_dims / 2 && !status; i++)
        if (!(fabsf(f->rope_factors[i]) > 1e-6f && fabsf(f->rope_factors[i]) < 1e9f))
            status = hdl_fail(error, HD_STATUS_PARSE, "rope_freqs.weight[%u] is %g", i, (double)f->rope_factors[i]);
    return status;
}

static hd_status read_rope(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    char quoted[HDL_QUOTE];
    hdl_span type;
    float factor, old_factor;
    uint32_t trained;
    hd_status status = get_u32(model, "rope.dimension_count", 2, f->head_size, f->head_size, &f->rope_dims, error);
    if (!status && f->rope_dims % 2) status = hdl_fail(error, HD_STATUS_PARSE, "%s.rope.dimension_count is %u, which is odd", model->arch->name, f->rope_dims);
    if (!status) status = get_f32(model, "rope.freq_base", 1.001f, 1e12f, 10000, &f->rope_theta, error);
    if (!status) status = get_f32(model, "rope.scale_linear", 1e-3f, 1e6f, 1, &old_factor, error);
    if (!status) status = get_f32(model, "rope.scaling.factor", 0, 1e6f, old_factor, &factor, error);
    if (!status) status = hdl_gguf_get_text(model->gguf, key_of(model, "rope.scaling.type").text, hdl_text("linear"), &type, error);
    if (!status) status = get_u32(model, "rope.scaling.original_context_length", 1, 1u << 30, f->context, &trained, error);
    if (status) return status;
    f->rope_scale = f->rope_magnitude = 1;
    if (factor <= 0) factor = 1; /* files that mean "none" say 0 */
    if (hdl_same(type, hdl_text("linear"))) f->rope_scale = 1 / factor;
    else if (hdl_same(type, hdl_text("yarn"))) status = factor > 1 ? make_yarn(model, factor, trained, error) : HD_OK;
    else if (!hdl_same(type, hdl_text("none")) && !hdl_same(type, hdl_text("llama3")))
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s.rope.scaling.type is %s; heddle knows none, linear, llama3 and yarn", model->arch->name, hdl_quote(type, quoted));
    return status ? status : read_factors(model, error);
}

/* ---- all figures ---- */

hd_status hdl_figures_read(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    uint32_t value_size = 0, experts = 0;
    hdl_gguf_tensor embedding;
    hd_status status = read_arch(model, error);
    if (!status) status = need_u32(model, "block_count", 1, 1024, &f->layers, error);
    if (!status) status = need_u32(model, "embedding_length", 1, 1u << 20, &f->hidden, error);
    if (!status) status = get_u32(model, "context_length", 1, 1u << 30, 4096, &f->context, error);
    if (!status) status = hdl_gguf_need(model->gguf, key_of(model, "feed_forward_length").text, error);
    if (!status) status = uniform_u32(model, "feed_forward_length", 1u << 22, 0, &f->feed_forward, error);
    if (!status) status = hdl_gguf_need(model->gguf, key_of(model, "attention.head_count").text, error);
    if (!status) status = uniform_u32(model, "attention.head_count", 65536, 0, &f->heads, error);
    if (!status) status = uniform_u32(model, "attention.head_count_kv", 65536, f->heads, &f->kv_heads, error);
    if (status) return status;
    if (f->heads % f->kv_heads != 0)
        return hdl_fail(error, HD_STATUS_PARSE, "%s.attention.head_count is %u, no multiple of head_count_kv, %u", model->arch->name, f->heads, f->kv_heads);
    const uint32_t share = f->hidden / f->heads;
    status = get_u32(model, "attention.key_length", 2, 4096, share, &f->head_size, error);
    if (!status) status = get_u32(model, "attention.value_length", 2, 4096, f->head_size, &value_size, error);
    if (!status && value_size != f->head_size)
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s.attention.value_length is %u and key_length %u; heads of two sizes cannot be run", model->arch->name, value_size, f->head_size);
    if (!status && (f->head_size < 2 || f->head_size % 2)) status = hdl_fail(error, HD_STATUS_PARSE, "the heads have %u elements; rotary embedding needs pairs", f->head_size);
    if (!status) status = get_u32(model, "expert_count", 0, 1u << 20, 0, &experts, error);
    if (!status && experts) status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s.expert_count is %u; mixtures of experts cannot be run yet", model->arch->name, experts);
    if (!status) status = get_f32(model, "attention.layer_norm_rms_epsilon", 0, 1, 1e-5f, &f->epsilon, error);
    if (!status && !hdl_gguf_find_tensor(model->gguf, "token_embd.weight", &embedding)) status = hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "the file has no tensor token_embd.weight");
    if (!status && (embedding.shape.rank != 2 || embedding.shape.dims[0] > HDL_MAX_TOKENS))
        status = hdl_fail(error, HD_STATUS_SHAPE, "token_embd.weight is no table of at most %u tokens", HDL_MAX_TOKENS);
    if (status) return status;
    f->vocabulary = (uint32_t)embedding.shape.dims[0];
    return read_rope(model, error);
}

/* ---- weights ---- */

/* What a role is called in a file, and its shape in figures: H hidden, Q all query heads, K all key heads, F feed-forward, D one
 * head, V vocabulary. */
static const struct { const char *name; char rows, columns; } roles[HDL_ROLES] = {
    [HDL_ATTN_NORM] = { "blk.%u.attn_norm.weight", 'H', 0 },
    [HDL_Q] = { "blk.%u.attn_q.weight", 'Q', 'H' },
    [HDL_K] = { "blk.%u.attn_k.weight", 'K', 'H' },
    [HDL_V] = { "blk.%u.attn_v.weight", 'K', 'H' },
    [HDL_Q_BIAS] = { "blk.%u.attn_q.bias", 'Q', 0 },
    [HDL_K_BIAS] = { "blk.%u.attn_k.bias", 'K', 0 },
    [HDL_V_BIAS] = { "blk.%u.attn_v.bias", 'K', 0 },
    [HDL_Q_NORM] = { "blk.%u.attn_q_norm.weight", 'D', 0 },
    [HDL_K_NORM] = { "blk.%u.attn_k_norm.weight", 'D', 0 },
    [HDL_ATTN_SUB_NORM] = { "blk.%u.attn_sub_norm.weight", 'Q', 0 },
    [HDL_OUT] = { "blk.%u.attn_output.weight", 'H', 'Q' },
    [HDL_OUT_BIAS] = { "blk.%u.attn_output.bias", 'H', 0 },
    [HDL_FFN_NORM] = { "blk.%u.ffn_norm.weight", 'H', 0 },
    [HDL_GATE] = { "blk.%u.ffn_gate.weight", 'F', 'H' },
    [HDL_UP] = { "blk.%u.ffn_up.weight", 'F', 'H' },
    [HDL_FFN_SUB_NORM] = { "blk.%u.ffn_sub_norm.weight", 'F', 0 },
    [HDL_DOWN] = { "blk.%u.ffn_down.weight", 'H', 'F' },
    [HDL_EMBEDDING] = { "token_embd.weight", 'V', 'H' },
    [HDL_FINAL_NORM] = { "output_norm.weight", 'H', 0 },
    [HDL_LOGITS] = { "output.weight", 'V', 'H' },
};

static int64_t length_of(const hdl_figures *f, char letter) {
    switch (letter) {
    case 'H': return f->hidden;
    case 'Q': return (int64_t)f->heads * f->head_size;
    case 'K': return (int64_t)f->kv_heads * f->head_size;
    case 'F': return f->feed_forward;
    case 'D': return f->head_size;
    default: return f->vocabulary;
    }
}

static bool is_needed(const hdl_arch *arch, hdl_role role) {
    switch (role) {
    case HDL_Q_BIAS: case HDL_K_BIAS: case HDL_V_BIAS: return arch->qkv_bias;
    case HDL_Q_NORM: case HDL_K_NORM: return arch->head_norm;
    case HDL_ATTN_SUB_NORM: case HDL_FFN_SUB_NORM: return arch->sub_norm;
    case HDL_OUT_BIAS: case HDL_LOGITS: return false;
    default: return true;
    }
}
static bool is_wanted(const hdl_arch *arch, hdl_role role) {
    return role == HDL_Q_BIAS || role == HDL_K_BIAS || role == HDL_V_BIAS || role == HDL_OUT_BIAS || role == HDL_LOGITS || is_needed(arch, role);
}

/* A factor beside a weight: a tensor of one f32 called "<weight>.scale", as files of ternary models have. */
static hd_status read_scale(const hd_model *model, const char *weight_name, float *out_scale, hd_error *error) {
    char name[HDL_WEIGHT_NAME];
    hdl_gguf_tensor tensor;
    *out_scale = 1;
    const size_t stem = strlen(weight_name) - strlen("weight");
    snprintf(name, sizeof name, "%.*sscale", (int)stem, weight_name);
    if (!hdl_gguf_find_tensor(model->gguf, name, &tensor)) return HD_OK;
    if (tensor.type != HDL_GGUF_TYPE_F32 || tensor.bytes != sizeof *out_scale)
        return hdl_fail(error, HD_STATUS_SHAPE, "%s is not one f32", name);
    hd_status status = hdl_gguf_read(model->gguf, &tensor, 0, sizeof *out_scale, out_scale, error);
    if (!status && !isfinite(*out_scale)) status = hdl_fail(error, HD_STATUS_PARSE, "%s is no number", name);
    return status;
}

/* The factor that an i2_s tensor carries behind its codes. */
static hd_status read_own_scale(const hd_model *model, hdl_weight *w, hd_error *error) {
    const uint64_t tail = hdl_gguf_type_info(HDL_GGUF_TYPE_I2_S).tail_bytes;
    hd_status status = hdl_gguf_read(model->gguf, &w->tensor, w->tensor.bytes - tail, sizeof w->scale, &w->scale, error);
    char quoted[HDL_QUOTE];
    if (!status && !isfinite(w->scale)) status = hdl_fail(error, HD_STATUS_PARSE, "the scale of %s is no number", hdl_quote(w->tensor.name, quoted));
    return status;
}

void hdl_weight_name(uint32_t layer, hdl_role role, char out[HDL_WEIGHT_NAME]) {
    const char *number = strchr(roles[role].name, '%');
    if (number && layer == HDL_NO_LAYER) snprintf(out, HDL_WEIGHT_NAME, "blk%s", number + 2);
    else if (number) snprintf(out, HDL_WEIGHT_NAME, "blk.%u%s", layer, number + 2);
    else snprintf(out, HDL_WEIGHT_NAME, "%s", roles[role].name);
}

static hd_status find_weight(hd_model *model, uint32_t layer, hdl_role role, hdl_weight *w, hd_error *error) {
    char name[HDL_WEIGHT_NAME];
    hdl_gguf_tensor tensor;
    hdl_weight_name(layer, role, name);
    if (!is_wanted(model->arch, role) || (!is_needed(model->arch, role) && !hdl_gguf_find_tensor(model->gguf, name, &tensor))) return HD_OK;
    const hdl_figures *f = &model->figures;
    const bool matrix = roles[role].columns != 0;
    w->shape = matrix ? HD_SHAPE(length_of(f, roles[role].rows), length_of(f, roles[role].columns)) : HD_SHAPE(length_of(f, roles[role].rows));
    hd_status status = hdl_gguf_need_tensor(model->gguf, name, w->shape, &w->tensor, error);
    if (status) return status;
    w->dtype = w->tensor.type == HDL_GGUF_TYPE_I2_S ? hdl_i2s_dtype(w->shape) : hdl_gguf_dtype(w->tensor.type);
    const bool plain = w->dtype == HD_F32 || w->dtype == HD_F16 || w->dtype == HD_BF16;
    if (w->dtype == HD_DTYPE_NONE || w->dtype == HD_I32 || w->dtype == HD_U8 || (!matrix && !plain))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s is of type %s, which cannot be run there", name, hdl_gguf_type_info(w->tensor.type).name);
    w->present = true;
    w->scale = 1;
    if (!matrix || role == HDL_EMBEDDING) return HD_OK;
    return w->tensor.type == HDL_GGUF_TYPE_I2_S ? read_own_scale(model, w, error) : read_scale(model, name, &w->scale, error);
}

hd_status hdl_weights_find(hd_model *model, hd_error *error) {
    const uint32_t layers = model->figures.layers, outside = HDL_ROLES - HDL_LAYER_ROLES;
    model->weight_count = layers * HDL_LAYER_ROLES + outside;
    model->weights = hdl_alloc(&model->allocator, model->weight_count * sizeof *model->weights);
    if (!model->weights) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %u weights", model->weight_count);
    hd_status status = HD_OK;
    for (uint32_t layer = 0; layer < layers && !status; layer++)
        for (int role = 0; role < HDL_LAYER_ROLES && !status; role++)
            status = find_weight(model, layer, (hdl_role)role, &model->weights[layer * HDL_LAYER_ROLES + (uint32_t)role], error);
    for (int role = HDL_LAYER_ROLES; role < HDL_ROLES && !status; role++)
        status = find_weight(model, 0, (hdl_role)role, &model->weights[layers * HDL_LAYER_ROLES + (uint32_t)(role - HDL_LAYER_ROLES)], error);
    if (status) return status;
    if (hdl_weight_of(model, 0, HDL_EMBEDDING)->tensor.type == HDL_GGUF_TYPE_I2_S)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "token_embd.weight is of type i2_s, which cannot be run there");
    return HD_OK;
}

const hdl_weight *hdl_weight_of(const hd_model *model, uint32_t layer, hdl_role role) {
    const bool inside = role < HDL_LAYER_ROLES;
    return &model->weights[(inside ? layer : model->figures.layers) * HDL_LAYER_ROLES + (uint32_t)role - (inside ? 0 : HDL_LAYER_ROLES)];
}

uint64_t hdl_weight_bytes(const hdl_weight *weight) { return weight->present ? hd_tensor_bytes(weight->dtype, weight->shape) : 0; }
