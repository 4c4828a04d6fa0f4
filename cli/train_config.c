/* train_config.c: what model `heddle train` makes, by Hugging Face's config.json. */
#include "cli/config.h"
#include "cli/train.h"
#include <string.h>

enum { MOST = INT32_MAX };

/* Fields of GPT-2, each of which may be left out. */
static int read_gpt2(const cli_config *config, hd_gpt *model) {
    const struct { const char *name; uint32_t *to; } fields[] = {
        { "n_layer", &model->layers }, { "n_embd", &model->width }, { "n_head", &model->heads },
        { "n_positions", &model->context }, { "vocab_size", &model->vocabulary } };
    int code = CLI_OK;
    for (size_t i = 0; i < CLI_COUNT(fields) && !code; i++)
        code = cli_config_whole(config, fields[i].name, MOST, *fields[i].to, fields[i].to);
    return code;
}

/* Parts of a decoder that are not trained: one value of these can be, which stands for none of it. */
static int refuse(const cli_config *config) {
    static const char *const numbers[] = { "num_experts", "num_local_experts", "attn_logit_softcapping",
                                           "final_logit_softcapping" };
    static const char *const switches[] = { "use_sliding_window" };
    const json_t *partial = json_object_get(config->root, "partial_rotary_factor"),
                 *act = json_object_get(config->root, "hidden_act");
    for (size_t i = 0; i < CLI_COUNT(numbers); i++) {
        const json_t *value = json_object_get(config->root, numbers[i]);
        if (value && !json_is_null(value) && json_number_value(value) != 0)
            return cli_config_bad(config, numbers[i], "is not computed");
    }
    for (size_t i = 0; i < CLI_COUNT(switches); i++)
        if (json_is_true(json_object_get(config->root, switches[i])))
            return cli_config_bad(config, switches[i], "is not computed");
    if (json_is_number(partial) && json_number_value(partial) != 1)
        return cli_config_bad(config, "partial_rotary_factor", "is not computed");
    if (json_object_get(config->root, "quantization_config"))
        return cli_config_bad(config, "quantization_config", "is not known here: take the folder of the plain weights");
    if (act && (!json_is_string(act) ||
                (strcmp(json_string_value(act), "silu") != 0 && strcmp(json_string_value(act), "swish") != 0)))
        return cli_config_bad(config, "hidden_act", "is not silu");
    return CLI_OK;
}

static int read_decoder(const cli_config *config, hd_gpt *model) {
    static const char *const biases[] = { "attention_bias", "mlp_bias" };
    const uint64_t needed = UINT64_MAX >> 1;
    const char *type;
    const json_t *scaling;
    int code = refuse(config);
    for (size_t i = 0; i < CLI_COUNT(biases) && !code; i++)
        if (json_is_true(json_object_get(config->root, biases[i])))
            code = cli_config_bad(config, biases[i], "is not trained");
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
    model->tied = json_is_true(json_object_get(config->root, "tie_word_embeddings"));
    return code;
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
    if (!code) code = model->family == HD_FAMILY_GPT2 ? read_gpt2(&config, model) : read_decoder(&config, model);
    json_decref(config.root);
    return code;
}
