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
    int code = cli_config_real(&c->config, scaling, "factor", 0, &factor);
    if (!code) code = cli_config_real(&c->config, scaling, "low_freq_factor", 1, &low);
    if (!code) code = cli_config_real(&c->config, scaling, "high_freq_factor", 4, &high);
    if (!code) code = cli_config_real(&c->config, scaling, "original_max_position_embeddings", 8192, &original);
    if (code) return code;
    const uint32_t count = c->head_size / 2;
    if (count > CLI_COUNT(c->divisors) || count == 0) return cli_config_bad(&c->config, "head_dim", "is too large");
    if (!(high > low)) return cli_config_bad(&c->config, "high_freq_factor", "is not above low_freq_factor");
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

static int rope(cli_conversion *c) {
    double base, factor, original;
    const char *type;
    const json_t *scaling;
    int code = cli_config_rope(&c->config, &base, &type, &scaling);
    if (code) return code;
    put_f32(c, "rope.freq_base", base);
    put_u32(c, "rope.dimension_count", c->head_size);
    if (!type) return CLI_OK;
    if (strcmp(type, "llama3") == 0) return llama3_divisors(c, scaling, base);
    const bool yarn = strcmp(type, "yarn") == 0;
    if (!yarn && strcmp(type, "linear") != 0)
        return cli_config_bad(&c->config, "rope_scaling", "is of a type that heddle does not convert");
    code = cli_config_real(&c->config, scaling, "factor", 0, &factor);
    if (code) return code;
    put_text(c, "rope.scaling.type", type);
    put_f32(c, "rope.scaling.factor", factor);
    if (!yarn) return CLI_OK;
    code = cli_config_real(&c->config, scaling, "original_max_position_embeddings", 0, &original);
    if (!code) put_u32(c, "rope.scaling.original_context_length", (uint32_t)(original < 4e9 ? original : 0));
    return code;
}

static int find_family(cli_conversion *c) {
    const char *name = json_string_value(json_array_get(json_object_get(c->config.root, "architectures"), 0));
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
    if (!code) code = cli_config_refuse(&c->config);
    if (!code) code = cli_config_whole(&c->config, "hidden_size", 1u << 20, UINT64_MAX >> 1, &c->hidden);
    if (!code)
        code = cli_config_whole(&c->config, "num_hidden_layers", CLI_CONVERT_LAYERS, UINT64_MAX >> 1, &c->layers);
    if (!code) code = cli_config_whole(&c->config, "intermediate_size", 1u << 22, UINT64_MAX >> 1, &forward);
    if (!code) code = cli_config_whole(&c->config, "num_attention_heads", 1u << 12, UINT64_MAX >> 1, &c->heads);
    if (!code) code = cli_config_whole(&c->config, "num_key_value_heads", 1u << 12, c->heads, &c->kv_heads);
    if (!code) code = cli_config_whole(&c->config, "head_dim", 1u << 12, c->hidden / c->heads, &c->head_size);
    if (!code) code = cli_config_whole(&c->config, "vocab_size", 1u << 20, UINT64_MAX >> 1, &c->vocabulary);
    if (!code) code = cli_config_whole(&c->config, "max_position_embeddings", 1u << 28, 4096, &context);
    if (!code) code = cli_config_whole(&c->config, "sliding_window", 1u << 28, context, &window);
    if (!code) code = cli_config_real(&c->config, c->config.root, "rms_norm_eps", 1e-6, &eps);
    if (code) return code;
    c->tied = json_is_true(json_object_get(c->config.root, "tie_word_embeddings"));
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
