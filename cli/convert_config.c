/* convert_config.c: config.json as keys of a GGUF file. What would change the answers and has no key is refused by
 * name. */
#include "cli/convert.h"
#include <math.h>
#include <string.h>

static const cli_family families[] = {
    { "LlamaForCausalLM", "llama", true },  { "MistralForCausalLM", "llama", true },
    { "Qwen2ForCausalLM", "qwen2", false }, { "Qwen3ForCausalLM", "qwen3", false },
    { "Phi3ForCausalLM", "phi3", false },
};

static int bad(const cli_conversion *c, const char *key, const char *why) {
    return cli_fail(c->command, "%.200s/config.json: %s %s", c->folder, key, why);
}

/* A whole number; `fallback` where the key is missing or null, which is wrong where it is above `most`. */
static int whole(const cli_conversion *c, const char *key, uint32_t most, uint64_t fallback, uint32_t *out) {
    const json_t *value = json_object_get(c->config, key);
    const bool missing = !value || json_is_null(value);
    if (!missing && !json_is_integer(value)) return bad(c, key, "is no whole number");
    const json_int_t number = missing ? (json_int_t)fallback : json_integer_value(value);
    if (missing && fallback > most) return bad(c, key, "is missing");
    if (number < 1 || number > (json_int_t)most) return bad(c, key, "is out of range");
    *out = (uint32_t)number;
    return CLI_OK;
}

static int real(const cli_conversion *c, const json_t *from, const char *key, double fallback, double *out) {
    const json_t *value = json_object_get(from, key);
    *out = json_is_number(value) ? json_number_value(value) : fallback;
    if ((value && !json_is_null(value) && !json_is_number(value)) || !isfinite(*out))
        return bad(c, key, "is no number");
    return *out > 0 && *out < 1e30 ? CLI_OK : bad(c, key, "is missing or out of range");
}

static void put_u32(cli_conversion *c, const char *rest, uint32_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", c->family->name, rest);
    hd_model_writer_u32(c->writer, key, value);
}
static void put_f32(cli_conversion *c, const char *rest, double value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", c->family->name, rest);
    hd_model_writer_f32(c->writer, key, (float)value);
}
static void put_text(cli_conversion *c, const char *rest, const char *text) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", c->family->name, rest);
    hd_model_writer_text(c->writer, key, text, strlen(text));
}

/* Llama 3's divisors of the angles, a tensor of its own. */
static int llama3_divisors(cli_conversion *c, const json_t *scaling, double base) {
    double factor, low, high, original;
    int code = real(c, scaling, "factor", 0, &factor);
    if (!code) code = real(c, scaling, "low_freq_factor", 1, &low);
    if (!code) code = real(c, scaling, "high_freq_factor", 4, &high);
    if (!code) code = real(c, scaling, "original_max_position_embeddings", 8192, &original);
    if (code) return code;
    const uint32_t count = c->head_size / 2;
    if (count > CLI_COUNT(c->divisors) || count == 0) return bad(c, "head_dim", "is too large");
    if (!(high > low)) return bad(c, "high_freq_factor", "is not above low_freq_factor");
    for (uint32_t i = 0; i < count; i++) {
        const double wave = 2 * acos(-1.0) * pow(base, 2.0 * i / c->head_size),
                     smooth = (original / wave - low) / (high - low);
        c->divisors[i] = (float)(wave < original / high  ? 1
                                 : wave > original / low ? factor
                                                         : 1 / ((1 - smooth) / factor + smooth));
    }
    c->tensors[c->tensor_count++] = (cli_converted){ .data = c->divisors, .from = HD_F32, .to = HD_F32, .row = count };
    return CLI_OK;
}

/* Older configurations have rope_theta and rope_scaling, newer ones rope_parameters. */
static int rope(cli_conversion *c) {
    const json_t *parameters = json_object_get(c->config, "rope_parameters"),
                 *scaling = json_object_get(c->config, "rope_scaling");
    double base, factor, original;
    if (json_is_object(parameters)) scaling = parameters;
    int code = real(c, json_object_get(scaling, "rope_theta") ? scaling : c->config, "rope_theta", 10000, &base);
    if (code) return code;
    put_f32(c, "rope.freq_base", base);
    put_u32(c, "rope.dimension_count", c->head_size);
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    if (!type || strcmp(type, "default") == 0) return json_is_object(scaling) && !type && scaling != parameters
        ? bad(c, "rope_scaling", "has no type") : CLI_OK;
    if (strcmp(type, "llama3") == 0) return llama3_divisors(c, scaling, base);
    const bool yarn = strcmp(type, "yarn") == 0;
    if (!yarn && strcmp(type, "linear") != 0)
        return bad(c, "rope_scaling", "is of a type that heddle does not convert");
    code = real(c, scaling, "factor", 0, &factor);
    if (code) return code;
    put_text(c, "rope.scaling.type", type);
    put_f32(c, "rope.scaling.factor", factor);
    if (!yarn) return CLI_OK;
    code = real(c, scaling, "original_max_position_embeddings", 0, &original);
    if (!code) put_u32(c, "rope.scaling.original_context_length", (uint32_t)(original < 4e9 ? original : 0));
    return code;
}

/* One value of these can be converted, which stands for none of it. */
static int refuse(const cli_conversion *c) {
    static const char *const numbers[] = { "num_experts", "num_local_experts", "attn_logit_softcapping",
                                           "final_logit_softcapping" };
    static const char *const switches[] = { "use_sliding_window" };
    const json_t *partial = json_object_get(c->config, "partial_rotary_factor"),
                 *act = json_object_get(c->config, "hidden_act");
    for (size_t i = 0; i < CLI_COUNT(numbers); i++) {
        const json_t *value = json_object_get(c->config, numbers[i]);
        if (value && !json_is_null(value) && json_number_value(value) != 0)
            return bad(c, numbers[i], "is not converted");
    }
    for (size_t i = 0; i < CLI_COUNT(switches); i++)
        if (json_is_true(json_object_get(c->config, switches[i]))) return bad(c, switches[i], "is not converted");
    if (json_is_number(partial) && json_number_value(partial) != 1)
        return bad(c, "partial_rotary_factor", "is not converted");
    if (json_object_get(c->config, "quantization_config"))
        return bad(c, "quantization_config", "is not converted: take the folder of the plain weights");
    if (act && (!json_is_string(act) ||
                (strcmp(json_string_value(act), "silu") != 0 && strcmp(json_string_value(act), "swish") != 0)))
        return bad(c, "hidden_act", "is not silu");
    return CLI_OK;
}

static int find_family(cli_conversion *c) {
    const char *name = json_string_value(json_array_get(json_object_get(c->config, "architectures"), 0));
    for (size_t i = 0; i < CLI_COUNT(families) && name; i++)
        if (strcmp(families[i].class_name, name) == 0) c->family = &families[i];
    if (c->family) return CLI_OK;
    return cli_fail(c->command,
                    "%.200s/config.json: architectures is %.60s; Llama, Mistral, Qwen2, Qwen3 and Phi3 are converted",
                    c->folder, name ? name : "missing");
}

int cli_convert_config(cli_conversion *c) {
    uint32_t forward, context, window = 0;
    double eps;
    int code = find_family(c);
    if (!code) code = refuse(c);
    if (!code) code = whole(c, "hidden_size", 1u << 20, UINT64_MAX >> 1, &c->hidden);
    if (!code) code = whole(c, "num_hidden_layers", CLI_CONVERT_LAYERS, UINT64_MAX >> 1, &c->layers);
    if (!code) code = whole(c, "intermediate_size", 1u << 22, UINT64_MAX >> 1, &forward);
    if (!code) code = whole(c, "num_attention_heads", 1u << 12, UINT64_MAX >> 1, &c->heads);
    if (!code) code = whole(c, "num_key_value_heads", 1u << 12, c->heads, &c->kv_heads);
    if (!code) code = whole(c, "head_dim", 1u << 12, c->hidden / c->heads, &c->head_size);
    if (!code) code = whole(c, "vocab_size", 1u << 20, UINT64_MAX >> 1, &c->vocabulary);
    if (!code) code = whole(c, "max_position_embeddings", 1u << 28, 4096, &context);
    if (!code) code = whole(c, "sliding_window", 1u << 28, context, &window);
    if (!code) code = real(c, c->config, "rms_norm_eps", 1e-6, &eps);
    if (code) return code;
    c->tied = json_is_true(json_object_get(c->config, "tie_word_embeddings"));
    hd_model_writer_text(c->writer, "general.architecture", c->family->name, strlen(c->family->name));
    hd_model_writer_text(c->writer, "general.type", "model", 5);
    put_u32(c, "block_count", c->layers);
    put_u32(c, "context_length", context);
    put_u32(c, "embedding_length", c->hidden);
    put_u32(c, "feed_forward_length", forward);
    put_u32(c, "attention.head_count", c->heads);
    put_u32(c, "attention.head_count_kv", c->kv_heads);
    put_u32(c, "attention.key_length", c->head_size);
    put_u32(c, "attention.value_length", c->head_size);
    put_f32(c, "attention.layer_norm_rms_epsilon", eps);
    put_u32(c, "vocab_size", c->vocabulary);
    const bool qwen = strncmp(c->family->name, "qwen", 4) == 0; /* its windows are refused above, or not used */
    if (!qwen && window < context) put_u32(c, "attention.sliding_window", window);
    return CLI_OK;
}

int cli_convert_rope(cli_conversion *c) { return rope(c); }
