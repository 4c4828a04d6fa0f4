/* train_config.c: what model `heddle train` makes, by Hugging Face's config.json. */
#include "cli/config.h"
#include "cli/train.h"
#include <string.h>

enum { MOST = INT32_MAX };

/* What one value of alone is computed, and no other. */
typedef struct rule {
    const char *key;
    enum { FALSE, TRUE, NUMBER, TEXT } is; /* a missing key is as it should be, and so is null */
    double      number;
    const char *texts[2];
} rule;

static bool holds(const rule *r, const json_t *value) {
    const char *text = json_string_value(value);
    switch (r->is) {
    case FALSE: return json_is_false(value);
    case TRUE: return json_is_true(value);
    case NUMBER: return json_is_number(value) && json_number_value(value) == r->number;
    default: return text && (strcmp(text, r->texts[0]) == 0 || strcmp(text, r->texts[1]) == 0);
    }
}

static int check(const cli_config *config, const rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(config->root, rules[i].key);
        if (value && !json_is_null(value) && !holds(&rules[i], value))
            return cli_config_bad(config, rules[i].key, "has a value that is not trained");
    }
    return CLI_OK;
}

/* Fields of GPT-2, each of which may be left out. */
static int read_gpt2(const cli_config *config, hd_gpt *model) {
    const struct { const char *name; uint32_t *to; } fields[] = {
        { "n_layer", &model->layers }, { "n_embd", &model->width }, { "n_head", &model->heads },
        { "n_positions", &model->context }, { "vocab_size", &model->vocabulary } };
    int code = CLI_OK;
    for (size_t i = 0; i < CLI_COUNT(fields) && !code; i++)
        code = cli_config_whole(config, fields[i].name, MOST, *fields[i].to, fields[i].to);
    const rule rules[] = {
        { "activation_function", TEXT, 0, { "gelu_new", "gelu_pytorch_tanh" } },
        { "layer_norm_epsilon", NUMBER, 1e-5, { NULL } }, { "n_inner", NUMBER, 4.0 * model->width, { NULL } },
        { "tie_word_embeddings", TRUE, 0, { NULL } }, { "scale_attn_weights", TRUE, 0, { NULL } },
        { "scale_attn_by_inverse_layer_idx", FALSE, 0, { NULL } }, { "add_cross_attention", FALSE, 0, { NULL } },
    };
    return code ? code : check(config, rules, CLI_COUNT(rules));
}

/* Parts of a decoder that are not trained. */
static int refuse(const cli_config *config) {
    static const rule rules[] = {
        { "num_experts", NUMBER, 0, { NULL } }, { "num_local_experts", NUMBER, 0, { NULL } },
        { "attn_logit_softcapping", NUMBER, 0, { NULL } }, { "final_logit_softcapping", NUMBER, 0, { NULL } },
        { "use_sliding_window", FALSE, 0, { NULL } }, { "partial_rotary_factor", NUMBER, 1, { NULL } },
        { "attention_bias", FALSE, 0, { NULL } }, { "mlp_bias", FALSE, 0, { NULL } },
        { "hidden_act", TEXT, 0, { "silu", "swish" } },
    };
    const json_t *layers = json_object_get(config->root, "layer_types");
    const char *type;
    size_t i;
    json_t *each;
    if (json_object_get(config->root, "quantization_config"))
        return cli_config_bad(config, "quantization_config", "is not known here: take the folder of the plain weights");
    if (layers && !json_is_null(layers) && !json_is_array(layers))
        return cli_config_bad(config, "layer_types", "is no list");
    json_array_foreach(layers, i, each) {
        type = json_string_value(each);
        if (!type || strcmp(type, "full_attention") != 0)
            return cli_config_bad(config, "layer_types", "has a kind that is not trained: full_attention alone is");
    }
    return check(config, rules, CLI_COUNT(rules));
}

static int read_decoder(const cli_config *config, hd_gpt *model) {
    const uint64_t needed = UINT64_MAX >> 1;
    const char *type;
    const json_t *scaling;
    int code = refuse(config);
    if (!code) code = cli_config_whole(config, "num_hidden_layers", MOST, needed, &model->layers);
    if (!code) code = cli_config_whole(config, "hidden_size", MOST, needed, &model->width);
    if (!code) code = cli_config_whole(config, "num_attention_heads", MOST, needed, &model->heads);
    if (!code) code = cli_config_whole(config, "num_key_value_heads", MOST, model->heads, &model->kv_heads);
    if (!code) code = cli_config_whole(config, "head_dim", MOST, model->width / model->heads, &model->head_size);
    if (!code) code = cli_config_whole(config, "intermediate_size", MOST, needed, &model->feed_forward);
    if (!code) code = cli_config_whole(config, "max_position_embeddings", MOST, model->context, &model->context);
    if (!code) code = cli_config_whole(config, "vocab_size", MOST, model->vocabulary, &model->vocabulary);
    if (!code) code = cli_config_real(config, config->root, "rms_norm_eps", 1e-6, &model->epsilon);
    if (!code) code = cli_config_rope(config, &model->rope_theta, &type, &scaling);
    if (!code && type) code = cli_config_bad(config, "rope_scaling", "is not trained: angles are plain");
    const json_t *tied = json_object_get(config->root, "tie_word_embeddings");
    if (!code && tied && !json_is_boolean(tied))
        code = cli_config_bad(config, "tie_word_embeddings", "is not true or false");
    model->tied = json_is_true(tied);
    return code;
}

/* A decoder without its type is no GPT-2. */
static bool has_decoder_fields(const cli_config *config) {
    return json_object_get(config->root, "hidden_size") || json_object_get(config->root, "num_hidden_layers") ||
           json_object_get(config->root, "num_attention_heads");
}

int train_config_read(const cli_command *command, const char *path, hd_gpt *model) {
    cli_config config;
    int code = cli_config_read(command, path, &config);
    const json_t *type = json_object_get(config.root, "model_type");
    const char *name = type ? json_string_value(type) : "gpt2";
    if (!code && name && strcmp(name, "llama") == 0) model->family = HD_FAMILY_LLAMA;
    else if (!code && name && strcmp(name, "qwen3") == 0) model->family = HD_FAMILY_QWEN3;
    else if (!code && (!name || strcmp(name, "gpt2") != 0))
        code = cli_config_bad(&config, "model_type", "is none of gpt2, llama and qwen3");
    if (!code && !type && has_decoder_fields(&config)) code = cli_config_bad(&config, "model_type", "is missing");
    if (!code) code = model->family == HD_FAMILY_GPT2 ? read_gpt2(&config, model) : read_decoder(&config, model);
    json_decref(config.root);
    return code;
}
