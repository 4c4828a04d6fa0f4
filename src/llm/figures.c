/* figures.c: what kind of model a file holds, in figures. Every figure comes from the file and bounds what is done
 * later, so each is held to a range in which nothing overflows. */
#include "llm/arch/arch.h"
#include <math.h>
#include <stdio.h>

/* "<architecture>.<rest>", in one of two places so that two keys can be named at once. */
typedef struct key { char text[96]; } key;
static key key_of(const hd_model *model, const char *rest) {
    key k;
    snprintf(k.text, sizeof k.text, "%s.%s", model->arch_name, rest);
    return k;
}

static hd_status read_arch(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE], known[256];
    hdl_span name;
    hd_status status = hdl_gguf_need(model->gguf, "general.architecture", error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "general.architecture", hdl_text(""), &name, error);
    if (status) return status;
    model->arch = hdl_arch_find(name, &model->arch_name);
    if (model->arch) return HD_OK;
    hdl_arch_names(known, sizeof known);
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "general.architecture is %s; heddle runs %s", hdl_quote(name, quoted),
                    known);
}

/* An integer key that must be there. */
static hd_status need_u32(const hd_model *model, const char *rest, uint32_t low, uint32_t high, uint32_t *out,
                          hd_error *error) {
    const key k = key_of(model, rest);
    const hd_status status = hdl_gguf_need(model->gguf, k.text, error);
    return status ? status : hdl_gguf_get_u32(model->gguf, k.text, low, high, 0, out, error);
}
static hd_status get_u32(const hd_model *model, const char *rest, uint32_t low, uint32_t high, uint32_t fallback,
                         uint32_t *out, hd_error *error) {
    return hdl_gguf_get_u32(model->gguf, key_of(model, rest).text, low, high, fallback, out, error);
}
static hd_status get_f32(const hd_model *model, const char *rest, float low, float high, float fallback, float *out,
                         hd_error *error) {
    return hdl_gguf_get_f32(model->gguf, key_of(model, rest).text, low, high, fallback, out, error);
}

hd_status hdl_refuse_key(const hd_model *model, const char *rest, const char *what, hd_error *error) {
    uint32_t number;
    const hd_status status = get_u32(model, rest, 0, UINT32_MAX, 0, &number, error);
    if (status || number == 0) return status;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s.%s is %u; %s cannot be run yet", model->arch_name, rest, number,
                    what);
}

/* A figure that some files give once for each layer; all layers must agree. */
static hd_status uniform_u32(const hd_model *model, const char *rest, uint32_t high, uint32_t fallback, uint32_t *out,
                             hd_error *error) {
    uint32_t each[1024];
    const key k = key_of(model, rest);
    const uint32_t layers = model->figures.layers;
    for (uint32_t i = 0; i < layers; i++) each[i] = fallback;
    hd_status status = hdl_gguf_get_u32s(model->gguf, k.text, 1, high, layers, each, error);
    for (uint32_t i = 1; i < layers && !status; i++)
        if (each[i] != each[0])
            status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                              "%s is %u in layer 0 and %u in layer %u; layers of different sizes cannot be run", k.text,
                              each[0], each[i], i);
    *out = status ? 0 : each[0];
    return status;
}

/* ---- rotary embedding ---- */

/* YaRN (arXiv 2309.00071, section 3.2 and equation 15): pairs that turn more than beta_fast = 32 times within the
 * context the model was trained on keep their frequency, those below beta_slow = 1 turn `factor` times slower, those
 * between are mixed; and all scores grow with the logarithm of the factor. */
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
    hd_status status = hdl_gguf_need_tensor(model->gguf, "rope_freqs.weight", HD_SHAPE(f->rope_dims / 2), &tensor,
                                            error);
    if (!status && tensor.type != HDL_GGUF_TYPE_F32)
        status = hdl_fail(error, HD_STATUS_TYPE, "rope_freqs.weight is %s, not f32",
                          hdl_gguf_type_info(tensor.type).name);
    if (status) return status;
    if (f->rope_factors)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "rope_freqs.weight beside rope.scaling.type yarn");
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
    if (!status && f->rope_dims % 2)
        status = hdl_fail(error, HD_STATUS_PARSE, "%s.rope.dimension_count is %u, which is odd", model->arch_name,
                          f->rope_dims);
    if (!status) status = get_f32(model, "rope.freq_base", 1.001f, 1e12f, 10000, &f->rope_theta, error);
    if (!status) status = get_f32(model, "rope.scale_linear", 1e-3f, 1e6f, 1, &old_factor, error);
    if (!status) status = get_f32(model, "rope.scaling.factor", 0, 1e6f, old_factor, &factor, error);
    if (!status)
        status = hdl_gguf_get_text(model->gguf, key_of(model, "rope.scaling.type").text, hdl_text("linear"), &type,
                                   error);
    if (!status)
        status = get_u32(model, "rope.scaling.original_context_length", 1, 1u << 30, f->context, &trained, error);
    if (status) return status;
    f->rope_scale = f->rope_magnitude = 1;
    if (factor <= 0) factor = 1; /* files that mean "none" say 0 */
    if (hdl_same(type, hdl_text("linear"))) f->rope_scale = 1 / factor;
    else if (hdl_same(type, hdl_text("yarn"))) status = factor > 1 ? make_yarn(model, factor, trained, error) : HD_OK;
    else if (!hdl_same(type, hdl_text("none")) && !hdl_same(type, hdl_text("llama3")))
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                          "%s.rope.scaling.type is %s; heddle knows none, linear, llama3 and yarn", model->arch_name,
                          hdl_quote(type, quoted));
    return status ? status : read_factors(model, error);
}

/* ---- all figures ---- */

hd_status hdl_figures_read(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    uint32_t value_size = 0;
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
        return hdl_fail(error, HD_STATUS_PARSE, "%s.attention.head_count is %u, no multiple of head_count_kv, %u",
                        model->arch_name, f->heads, f->kv_heads);
    const uint32_t share = f->hidden / f->heads;
    status = get_u32(model, "attention.key_length", 2, 4096, share, &f->head_size, error);
    if (!status) status = get_u32(model, "attention.value_length", 2, 4096, f->head_size, &value_size, error);
    if (!status && value_size != f->head_size)
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                          "%s.attention.value_length is %u and key_length %u; heads of two sizes cannot be run",
                          model->arch_name, value_size, f->head_size);
    if (!status && (f->head_size < 2 || f->head_size % 2))
        status = hdl_fail(error, HD_STATUS_PARSE, "the heads have %u elements; rotary embedding needs pairs",
                          f->head_size);
    if (!status) status = hdl_refuse_key(model, "expert_count", "mixtures of experts", error);
    if (!status) status = get_f32(model, "attention.layer_norm_rms_epsilon", 0, 1, 1e-5f, &f->epsilon, error);
    if (!status && !hdl_gguf_find_tensor(model->gguf, "token_embd.weight", &embedding))
        status = hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "the file has no tensor token_embd.weight");
    if (!status && (embedding.shape.rank != 2 || embedding.shape.dims[0] > HDL_MAX_TOKENS))
        status = hdl_fail(error, HD_STATUS_SHAPE, "token_embd.weight is no table of at most %u tokens", HDL_MAX_TOKENS);
    if (status) return status;
    f->vocabulary = (uint32_t)embedding.shape.dims[0];
    status = read_rope(model, error);
    return status || !model->arch->read ? status : model->arch->read(model, error);
}
