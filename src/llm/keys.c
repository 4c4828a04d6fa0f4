/* keys.c: what the keys of a file may say. A key is asked for by name (figures.c, rope.c, vocabulary.c), or has to say
 * what a model without it is like, or is known to be harmless. What is none of these is refused: an answer that is
 * wrong without a word is worse than none. */
#include "llm/arch/arch.h"
#include "llm/keys.h"
#include <stdio.h>

/* ---- getters ---- */

hdl_key_name hdl_key_ask(hdl_keys *k, const char *rest) {
    hdl_key_name name;
    snprintf(name.text, sizeof name.text, "%s.%s", k->model->arch_name, rest);
    if (k->asked_count < HDL_MOST_KEYS) k->asked[k->asked_count++] = rest;
    return name;
}

void hdl_key_need(hdl_keys *k, const char *rest) {
    const hdl_key_name name = hdl_key_ask(k, rest);
    if (!k->status) k->status = hdl_gguf_need(k->model->gguf, name.text, k->error);
}

uint32_t hdl_key_u32(hdl_keys *k, const char *rest, uint32_t low, uint32_t high, uint32_t fallback) {
    const hdl_key_name name = hdl_key_ask(k, rest);
    uint32_t number = fallback;
    if (!k->status) k->status = hdl_gguf_get_u32(k->model->gguf, name.text, low, high, fallback, &number, k->error);
    return number;
}

float hdl_key_f32(hdl_keys *k, const char *rest, float low, float high, float fallback) {
    const hdl_key_name name = hdl_key_ask(k, rest);
    float number = fallback;
    if (!k->status) k->status = hdl_gguf_get_f32(k->model->gguf, name.text, low, high, fallback, &number, k->error);
    return number;
}

bool hdl_key_bool(hdl_keys *k, const char *rest, bool fallback) {
    const hdl_key_name name = hdl_key_ask(k, rest);
    bool says = fallback;
    if (!k->status) k->status = hdl_gguf_get_bool(k->model->gguf, name.text, fallback, &says, k->error);
    return says;
}

hdl_span hdl_key_text(hdl_keys *k, const char *rest, const char *fallback) {
    const hdl_key_name name = hdl_key_ask(k, rest);
    hdl_span text = hdl_text(fallback);
    if (!k->status) k->status = hdl_gguf_get_text(k->model->gguf, name.text, text, &text, k->error);
    return text;
}

/* ---- what is known of keys that are not asked for ---- */

/* Keys, most of them behind "<architecture>.", that can be run with one value only, which stands for none of it, in
 * families that do not ask for them. */
static const struct only { const char *name; double value; const char *what; } only[] = {
    { "expert_count", 0, "a mixture of experts" },
    { "expert_used_count", 0, "a mixture of experts" },
    { "expert_shared_count", 0, "a mixture of experts" },
    { "nextn_predict_layers", 0, "layers that predict further tokens" },
    { "use_parallel_residual", 0, "attention and feed-forward side by side" },
    { "logit_scale", 1, "a scale of the logits" },
    { "embedding_scale", 1, "a scale of the embedding" },
    { "residual_scale", 1, "a scale of what is added" },
    { "attn_logit_softcapping", 0, "a soft cap of the scores" },
    { "final_logit_softcapping", 0, "a soft cap of the logits" },
    { "attention.scale", 0, "another scale of the scores" },
    { "attention.clamp_kqv", 0, "clamped queries, keys and values" },
    { "attention.max_alibi_bias", 0, "a bias of the scores by distance" },
    { "rope.scaling.yarn_ext_factor", 1, "another mixture of yarn" },
    { "rope.scaling.yarn_attn_factor", 1, "another magnitude of yarn" },
    { "rope.scaling.yarn_beta_fast", 32, "another bound of yarn" },
    { "rope.scaling.yarn_beta_slow", 1, "another bound of yarn" },
    { "rope.scaling.yarn_log_multiplier", 0, "another magnitude of yarn" },
    { "tokenizer.ggml.suppress_tokens", -1, "a list of tokens that are never answered" },
};
enum { ONLY = sizeof only / sizeof *only };

/* Keys behind "<architecture>." that change no score: notes of the writer, and figures of what these families lack. */
static const char *const harmless[] = {
    "vocab_size",                   /* token_embd.weight says it */
    "tensor_data_layout",           /* where the weights came from; rows lie as every file has them */
    "attention.layer_norm_epsilon", /* in families whose norms have the other one */
    "rope.scaling.finetuned",
};
enum { HARMLESS = sizeof harmless / sizeof *harmless };

/* What stands before the first dot of other keys. Those that are foreign say how another kind of file is computed. */
static const char *const notes[] = { "general", "tokenizer", "split", "quantize", "imatrix", "mradermacher" };
static const char *const foreign[] = { "adapter", "clip", "diffusion", "prism", "xielu" };
enum { NOTES = sizeof notes / sizeof *notes, FOREIGN = sizeof foreign / sizeof *foreign };

/* ---- the check ---- */

static bool is_any(hdl_span name, const char *const *of, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (hdl_same(name, hdl_text(of[i]))) return true;
    return false;
}

static double number(const hdl_gguf_value *value, uint64_t i) {
    const bool is_float = value->element == HDL_GGUF_F32 || value->element == HDL_GGUF_F64;
    return is_float ? hdl_gguf_float(value, i) : (double)hdl_gguf_integer(value, i);
}

/* All that the key holds is `wanted`. */
static bool says(const hdl_gguf_value *value, double wanted) {
    bool same = value->element != HDL_GGUF_STRING;
    for (uint64_t i = 0; i < value->count && same; i++)
        same = number(value, i) >= wanted && number(value, i) <= wanted;
    return same;
}

/* Refuses keys that say something else than the one value that can be run. */
static void check_only(hdl_keys *k) {
    for (uint32_t i = 0; i < ONLY && !k->status; i++) {
        const bool is_whole = strncmp(only[i].name, "tokenizer.", 10) == 0;
        hdl_key_name name = { "" };
        hdl_gguf_value value;
        if (!is_whole && is_any(hdl_text(only[i].name), k->asked, k->asked_count)) continue;
        if (is_whole) snprintf(name.text, sizeof name.text, "%s", only[i].name);
        else name = hdl_key_ask(k, only[i].name);
        if (!hdl_gguf_find(k->model->gguf, name.text, &value) || says(&value, only[i].value)) continue;
        char said[64] = ""; /* where it is one number */
        if (value.kind != HDL_GGUF_ARRAY && value.kind != HDL_GGUF_STRING)
            snprintf(said, sizeof said, " is %g, not %g", number(&value, 0), only[i].value);
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED, "%s%s: %s cannot be run yet; take another model",
                             name.text, said, only[i].what);
    }
}

static void refuse(hdl_keys *k, hdl_span name) {
    char quoted[HDL_QUOTE];
    k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                         "key %s may change the answers, and heddle does not know it in a model of %s; remove it from "
                         "the file if it does not", hdl_quote(name, quoted), k->model->arch_name);
}

/* Is the key, of no family, a note that nobody knows? It is refused where such keys matter, and in a strict context. */
static bool is_unknown_note(hdl_keys *k, hdl_span name) {
    hdl_span first = { name.bytes, 0 };
    while (first.count < name.count && name.bytes[first.count] != '.') first.count++;
    if (is_any(first, notes, NOTES)) return false;
    if (is_any(first, foreign, FOREIGN) || hd_context_strict(k->model->context)) refuse(k, name);
    return true;
}

static void tell_unknown(const hdl_keys *k, hdl_span first, uint32_t count) {
    char quoted[HDL_QUOTE], line[128];
    snprintf(line, sizeof line, "key %s is not known and not used (%u such keys)", hdl_quote(first, quoted), count);
    hd_context_log(k->model->context, HD_LOG_INFO, "model", line);
}

void hdl_keys_check(hdl_keys *k) {
    const uint64_t prefix = strlen(k->model->arch_name);
    const uint32_t count = k->status ? 0 : hdl_gguf_get_info(k->model->gguf).key_count;
    uint32_t unknown = 0;
    hdl_span unknown_name = { 0 };
    check_only(k);
    for (uint32_t i = 0; i < count && !k->status; i++) {
        const hdl_span name = hdl_gguf_key(k->model->gguf, i).name;
        const bool is_own = name.count > prefix && memcmp(name.bytes, k->model->arch_name, prefix) == 0 &&
                            name.bytes[prefix] == '.';
        const hdl_span rest = { name.bytes + (is_own ? prefix + 1 : 0), name.count - (is_own ? prefix + 1 : 0) };
        if (is_own && !is_any(rest, k->asked, k->asked_count) && !is_any(rest, harmless, HARMLESS)) refuse(k, name);
        if (!is_own && is_unknown_note(k, name) && unknown++ == 0) unknown_name = name;
    }
    if (unknown && !k->status) tell_unknown(k, unknown_name, unknown);
}
