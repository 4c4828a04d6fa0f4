/* rope.c: the figures of rotary embedding: how far each pair of a head turns with each token. */
#include "llm/arch/arch.h"
#include "llm/keys.h"
#include <math.h>

/* YaRN (arXiv 2309.00071, section 3.2 and equation 15): pairs that turn more than beta_fast = 32 times within the
 * context the model was trained on keep their frequency, those below beta_slow = 1 turn `factor` times slower, and
 * those between are mixed. Each divisor is multiplied by that. The bounds are whole pairs in most models. */
static void apply_yarn(const hdl_figures *f, double factor, float *divisors) {
    const double turns_per_log = f->rope_dims / (2 * log((double)f->rope_theta));
    double low = turns_per_log * log(f->rope_context / (32 * 6.283185307179586));
    double high = turns_per_log * log(f->rope_context / 6.283185307179586);
    if (f->yarn_truncates) {
        low = floor(low);
        high = ceil(high);
    }
    low = low < 0 ? 0 : low;
    high = high > f->rope_dims - 1.0 ? f->rope_dims - 1.0 : high;
    const double width = high - low < 0.001 ? 0.001 : high - low;
    for (uint32_t i = 0; i < f->rope_dims / 2; i++) {
        const double at = (i - low) / width, slowed = at < 0 ? 0 : at > 1 ? 1 : at;
        divisors[i] = (float)((double)divisors[i] / (slowed / factor + (1 - slowed)));
    }
}

/* ---- divisors that stand in the file ---- */

/* One set for all contexts, as Llama 3 has it; or two, as Phi-3 has them: up to the context that it was trained on, and
 * beyond. */
static const char *const tensors[] = { "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight" };

bool hdl_rope_takes(hdl_span tensor) {
    for (uint32_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (hdl_same(tensor, hdl_text(tensors[i]))) return true;
    return false;
}

static bool has(const hdl_keys *k, const char *name) {
    hdl_gguf_tensor tensor;
    return hdl_gguf_find_tensor(k->model->gguf, name, &tensor);
}

/* Ones, or the tensor where there is a name. */
static float *read_divisors(hdl_keys *k, const char *name) {
    const hdl_figures *f = &k->model->figures;
    const uint32_t count = f->rope_dims / 2;
    hdl_gguf_tensor tensor;
    float *divisors = k->status ? NULL : hdl_alloc(&k->model->allocator, count * sizeof *divisors);
    if (!divisors) {
        if (!k->status) k->status = hdl_fail(k->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for rope factors");
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) divisors[i] = 1;
    if (!name) return divisors;
    k->status = hdl_gguf_need_tensor(k->model->gguf, name, HD_SHAPE(count), &tensor, k->error);
    if (!k->status && tensor.type != HDL_GGUF_TYPE_F32)
        k->status = hdl_fail(k->error, HD_STATUS_TYPE, "%s is %s, not f32", name, hdl_gguf_type_info(tensor.type).name);
    if (!k->status) k->status = hdl_gguf_read(k->model->gguf, &tensor, 0, tensor.bytes, divisors, k->error);
    for (uint32_t i = 0; i < count && !k->status; i++)
        if (!(fabsf(divisors[i]) > 1e-6f && fabsf(divisors[i]) < 1e9f))
            k->status = hdl_fail(k->error, HD_STATUS_PARSE, "%s[%u] is %g", name, i, (double)divisors[i]);
    return divisors; /* the model frees it, whatever the status */
}

/* Both sets of divisors; NULL where all are 1, or where the second is as the first. */
static void read_factors(hdl_keys *k, bool is_yarn, double factor) {
    hdl_figures *f = &k->model->figures;
    const bool one = has(k, tensors[0]), two = has(k, tensors[1]) || has(k, tensors[2]);
    if (one && two)
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED, "%s beside %s: one of them has to go", tensors[0],
                             has(k, tensors[1]) ? tensors[1] : tensors[2]);
    if (one || two || is_yarn) f->rope_factors = read_divisors(k, one ? tensors[0] : two ? tensors[1] : NULL);
    if (two) f->rope_far_factors = read_divisors(k, tensors[2]);
    if (k->status || !is_yarn) return;
    apply_yarn(f, factor, f->rope_factors);
    if (two) apply_yarn(f, factor, f->rope_far_factors);
}

/* ---- keys ---- */

void hdl_rope_read(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    char quoted[HDL_QUOTE];
    f->rope_dims = hdl_key_u32(k, "rope.dimension_count", 2, f->head_size, f->head_size);
    if (!k->status && f->rope_dims % 2)
        k->status = hdl_fail(k->error, HD_STATUS_PARSE, "%s.rope.dimension_count is %u, which is odd",
                             k->model->arch_name, f->rope_dims);
    f->rope_theta = hdl_key_f32(k, "rope.freq_base", 1.001f, 1e12f, 10000);
    const float old_factor = hdl_key_f32(k, "rope.scale_linear", 1e-3f, 1e6f, 1);
    float factor = hdl_key_f32(k, "rope.scaling.factor", 0, 1e6f, old_factor);
    const hdl_span type = hdl_key_text(k, "rope.scaling.type", "linear");
    f->rope_context = hdl_key_u32(k, "rope.scaling.original_context_length", 1, 1u << 30, f->context);
    f->rope_magnitude = hdl_key_f32(k, "rope.scaling.attn_factor", 1e-3f, 1e3f, 1);
    f->yarn_truncates = hdl_key_bool(k, "rope.scaling.yarn_truncate", f->yarn_truncates);
    /* of keys that turn in part: the scores are scaled, not what turns */
    const float by_scores = f->latent ? hdl_key_f32(k, "rope.scaling.yarn_log_multiplier", 0, 10, 0) : 0;
    if (k->status) return;
    if (factor <= 0) factor = 1; /* files that mean "none" say 0 */
    const bool is_yarn = hdl_same(type, hdl_text("yarn")), is_none = hdl_same(type, hdl_text("none")),
               is_long = hdl_same(type, hdl_text("longrope"));
    f->rope_scale = is_yarn || is_none ? 1 : 1 / factor;
    const double grown = log((double)(factor > 1 ? factor : 1)); /* scores grow with the context */
    if (is_yarn && by_scores > 0) f->attention_scale *= (float)pow(1 + (double)by_scores * grown, 2);
    else if (is_yarn) f->rope_magnitude *= (float)(1 + 0.1 * grown);
    if (factor < 1e-3f)
        k->status = hdl_fail(k->error, HD_STATUS_LIMIT, "%s.rope.scaling.factor is %g; it is 0, or at least 0.001",
                             k->model->arch_name, (double)factor);
    else if (!is_yarn && !is_none && !is_long && !hdl_same(type, hdl_text("linear")))
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "%s.rope.scaling.type is %s; heddle knows none, linear, yarn and longrope",
                             k->model->arch_name, hdl_quote(type, quoted));
    else if (is_long && !has(k, tensors[2]))
        k->status = hdl_fail(k->error, HD_STATUS_NAME_NOT_FOUND,
                             "%s.rope.scaling.type is longrope, and the file has no %s; convert the model anew",
                             k->model->arch_name, tensors[2]);
    if (!k->status) read_factors(k, is_yarn, (double)factor);
}
