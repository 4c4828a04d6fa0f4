/* figures.c: what kind of model a file holds, in figures. Every figure comes from the file and bounds what is done
 * later, so each is held to a range in which nothing overflows. */
#include "llm/arch/arch.h"
#include <math.h>
#include <stdio.h>

static hd_status read_arch(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE], known[256];
    hdl_span name, type;
    if (!hdl_gguf_get_text(model->gguf, "general.type", hdl_text("model"), &type, NULL) && !hdl_same(type, hdl_text("model")))
      return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                      "general.type is %s: the file holds no whole model; give "
                      "the model that it belongs to",
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

/* ---- keys ---- */

/* "<architecture>.<rest>" */
typedef struct full_name { char text[96]; } full_name;
static full_name name_of(const hdl_keys *k, const char *rest) {
    full_name name;
    snprintf(name.text, sizeof name.text, "%s.%s", k->model->arch_name, rest);
    return name;
}

void hdl_key_need(hdl_keys *k, const char *rest) {
    if (!k->status) k->status = hdl_gguf_need(k->model->gguf, name_of(k, rest).text, k->error);
}

uint32_t hdl_key_u32(hdl_keys *k, const char *rest, uint32_t low, uint32_t high, uint32_t fallback) {
    uint32_t number = fallback;
    if (!k->status)
        k->status = hdl_gguf_get_u32(k->model->gguf, name_of(k, rest).text, low, high, fallback, &number, k->error);
    return number;
}

float hdl_key_f32(hdl_keys *k, const char *rest, float low, float high, float fallback) {
    float number = fallback;
    if (!k->status)
        k->status = hdl_gguf_get_f32(k->model->gguf, name_of(k, rest).text, low, high, fallback, &number, k->error);
    return number;
}

void hdl_key_refuse(hdl_keys *k, const char *rest, const char *what) {
    const uint32_t number = hdl_key_u32(k, rest, 0, UINT32_MAX, 0);
    if (k->status || number == 0) return;
    k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED, "%s.%s is %u; %s cannot be run yet", k->model->arch_name,
                         rest, number, what);
}

/* A figure that some files give once for each layer; all layers must agree. */
static uint32_t uniform_u32(hdl_keys *k, const char *rest, uint32_t high, uint32_t fallback) {
    uint32_t each[1024];
    const uint32_t layers = k->model->figures.layers;
    const full_name name = name_of(k, rest);
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

static void read_rope(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    char quoted[HDL_QUOTE];
    hdl_span type = hdl_text("linear");
    f->rope_dims = hdl_key_u32(k, "rope.dimension_count", 2, f->head_size, f->head_size);
    if (!k->status && f->rope_dims % 2)
        k->status = hdl_fail(k->error, HD_STATUS_PARSE, "%s.rope.dimension_count is %u, which is odd",
                             k->model->arch_name, f->rope_dims);
    f->rope_theta = hdl_key_f32(k, "rope.freq_base", 1.001f, 1e12f, 10000);
    const float old_factor = hdl_key_f32(k, "rope.scale_linear", 1e-3f, 1e6f, 1);
    float factor = hdl_key_f32(k, "rope.scaling.factor", 0, 1e6f, old_factor);
    if (!k->status)
        k->status = hdl_gguf_get_text(k->model->gguf, name_of(k, "rope.scaling.type").text, type, &type, k->error);
    const uint32_t trained = hdl_key_u32(k, "rope.scaling.original_context_length", 1, 1u << 30, f->context);
    if (k->status) return;
    f->rope_scale = f->rope_magnitude = 1;
    if (factor <= 0) factor = 1; /* files that mean "none" say 0 */
    if (hdl_same(type, hdl_text("linear"))) f->rope_scale = 1 / factor;
    else if (hdl_same(type, hdl_text("yarn"))) k->status = factor > 1 ? make_yarn(k->model, factor, trained, k->error) : HD_OK;
    else if (!hdl_same(type, hdl_text("none")) && !hdl_same(type, hdl_text("llama3")))
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.rope.scaling.type is %s; heddle knows none, linear, llama3 and yarn",
                             k->model->arch_name, hdl_quote(type, quoted));
    if (!k->status) k->status = read_factors(k->model, k->error);
}

/* ---- all figures ---- */

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
    const uint32_t value_size = hdl_key_u32(k, "attention.value_length", 2, 4096, f->head_size);
    if (!k->status && value_size != f->head_size)
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.attention.value_length is %u and key_length %u; heads of two sizes cannot be run",
                             k->model->arch_name, value_size, f->head_size);
    if (!k->status && (f->head_size < 2 || f->head_size % 2))
        k->status = hdl_fail(k->error, HD_STATUS_PARSE, "the heads have %u elements; rotary embedding needs pairs",
                             f->head_size);
}

/* The vocabulary has as many tokens as the table has rows. */
static void read_vocabulary(hdl_keys *k) {
    hdl_gguf_tensor table;
    if (k->status) return;
    if (!hdl_gguf_find_tensor(k->model->gguf, "token_embd.weight", &table))
        k->status = hdl_fail(k->error, HD_STATUS_NAME_NOT_FOUND, "the file has no tensor token_embd.weight");
    else if (table.shape.rank != 2 || table.shape.dims[0] > HDL_MAX_TOKENS)
        k->status = hdl_fail(k->error, HD_STATUS_SHAPE, "token_embd.weight is no table of at most %u tokens", HDL_MAX_TOKENS);
    else k->model->figures.vocabulary = (uint32_t)table.shape.dims[0];
}

hd_status hdl_figures_read(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    hdl_keys keys = { model, error, read_arch(model, error) }, *k = &keys;
    if (k->status) return k->status;
    hdl_key_need(k, "block_count");
    f->layers = hdl_key_u32(k, "block_count", 1, 1024, 0);
    hdl_key_need(k, "embedding_length");
    f->hidden = hdl_key_u32(k, "embedding_length", 1, 1u << 20, 0);
    f->context = hdl_key_u32(k, "context_length", 1, 1u << 30, 4096);
    hdl_key_need(k, "feed_forward_length");
    f->feed_forward = uniform_u32(k, "feed_forward_length", 1u << 22, 0);
    read_heads(k);
    hdl_key_refuse(k, "expert_count", "mixtures of experts");
    f->epsilon = hdl_key_f32(k, "attention.layer_norm_rms_epsilon", 0, 1, 1e-5f);
    read_vocabulary(k);
    read_rope(k);
    if (!k->status && model->arch->read) model->arch->read(k);
    return k->status;
}
