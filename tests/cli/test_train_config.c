/* test_train_config.c: `heddle train --config`: of 10,000 damaged config.json of Hugging Face's each is refused with one line, or is taken
 * for the model that it tells of, which can be made or is refused by name. */
#define _XOPEN_SOURCE 700
#include "cli/train.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/heddle-config-XXXXXX";
static cli_session session;

/* As transformers 4.57 writes them. */
static const char *const configs[] = {
    "{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"], \"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1, "
    "\"eos_token_id\": 50256, \"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"model_type\": \"gpt2\", \"n_embd\": 64, \"n_head\": 4, "
    "\"n_inner\": null, \"n_layer\": 2, \"n_positions\": 32, \"reorder_and_upcast_attn\": false, \"resid_pdrop\": 0.1, "
    "\"scale_attn_by_inverse_layer_idx\": false, \"scale_attn_weights\": true, \"use_cache\": true, \"vocab_size\": 256}",
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, \"attention_dropout\": 0.0, \"head_dim\": 8, \"hidden_act\": \"silu\", "
    "\"hidden_size\": 32, \"initializer_range\": 0.02, \"intermediate_size\": 48, \"max_position_embeddings\": 32, \"mlp_bias\": false, "
    "\"model_type\": \"llama\", \"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"num_key_value_heads\": 2, \"pretraining_tp\": 1, "
    "\"rms_norm_eps\": 1e-06, \"rope_scaling\": null, \"rope_theta\": 10000.0, \"tie_word_embeddings\": false, \"use_cache\": true, \"vocab_size\": 256}",
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": false, \"head_dim\": 16, \"hidden_act\": \"silu\", \"hidden_size\": 32, "
    "\"intermediate_size\": 48, \"layer_types\": [\"full_attention\", \"full_attention\"], \"max_position_embeddings\": 32, \"max_window_layers\": 28, "
    "\"model_type\": \"qwen3\", \"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-06, "
    "\"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"}, \"sliding_window\": null, \"tie_word_embeddings\": true, "
    "\"use_sliding_window\": false, \"vocab_size\": 256}",
};

static uint32_t below(uint32_t count) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % count;
}

static void save(const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A byte, a digit, or a value in the place of another one. */
static void damage(const char *text, char *out, size_t room) {
    static const char *const values[] = { "null", "true", "false", "0", "-1", "1e99", "7", "2.5", "\"gelu\"", "\"silu\"", "[]", "{}", "[1]", "4294967297", "\"8\"" };
    const uint32_t count = (uint32_t)strlen(text);
    uint32_t at = below(count);
    strcpy(out, text);
    switch (below(3)) {
    case 0: out[at] = "0123456789-.e\",:{}[]tfn x"[below(25)]; return;
    case 1:
        while (at < count && !(out[at] >= '0' && out[at] <= '9')) at++;
        if (at < count) out[at] = (char)('0' + below(10));
        return;
    default: {
        const char *colon = strstr(text + at, "\": ");
        if (!colon) return;
        const char *end = colon + 3 + strcspn(colon + 3, ",}]");
        snprintf(out, room, "%.*s%s%s", (int)(colon + 3 - text), text, values[below(sizeof values / sizeof *values)], end);
    }
    }
}

/* The number under the key, or what stands for none. */
static uint32_t whole(const json_t *root, const char *key, uint32_t otherwise) {
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value)) return otherwise;
    assert_true(json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= INT32_MAX);
    return (uint32_t)json_integer_value(value);
}
static double real(const json_t *root, const char *key, double otherwise) {
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value)) return otherwise;
    assert_true(json_is_number(value));
    return json_number_value(value);
}
/* Nothing, null, or what `fine` says. */
static void plain(const json_t *root, const char *key, bool fine) {
    const json_t *value = json_object_get(root, key);
    if (value && !json_is_null(value) && !fine) fail_msg("%s is taken for what it is not", key);
}
static bool is_number(const json_t *root, const char *key, double number) { return json_is_number(json_object_get(root, key)) && real(root, key, 0) == number; }
static bool is_text(const json_t *root, const char *key, const char *a, const char *b) {
    const char *text = json_string_value(json_object_get(root, key));
    return text && (strcmp(text, a) == 0 || strcmp(text, b) == 0);
}

static const hd_gpt usual = { .layers = 4, .width = 128, .heads = 4, .context = 128, .vocabulary = 256 };

static void check_gpt2(const json_t *root, const hd_gpt *model) {
    assert_int_equal(model->layers, whole(root, "n_layer", usual.layers));
    assert_int_equal(model->width, whole(root, "n_embd", usual.width));
    assert_int_equal(model->heads, whole(root, "n_head", usual.heads));
    assert_int_equal(model->context, whole(root, "n_positions", usual.context));
    plain(root, "activation_function", is_text(root, "activation_function", "gelu_new", "gelu_pytorch_tanh"));
    plain(root, "layer_norm_epsilon", is_number(root, "layer_norm_epsilon", 1e-5));
    plain(root, "n_inner", is_number(root, "n_inner", 4.0 * model->width));
    plain(root, "scale_attn_weights", json_is_true(json_object_get(root, "scale_attn_weights")));
    plain(root, "scale_attn_by_inverse_layer_idx", json_is_false(json_object_get(root, "scale_attn_by_inverse_layer_idx")));
}

static void check_decoder(const json_t *root, const hd_gpt *model) {
    assert_int_equal(model->layers, whole(root, "num_hidden_layers", 0));
    assert_int_equal(model->width, whole(root, "hidden_size", 0));
    assert_int_equal(model->heads, whole(root, "num_attention_heads", 0));
    assert_int_equal(model->kv_heads, whole(root, "num_key_value_heads", model->heads));
    assert_int_equal(model->head_size, whole(root, "head_dim", model->width / model->heads));
    assert_int_equal(model->feed_forward, whole(root, "intermediate_size", 0));
    assert_int_equal(model->context, whole(root, "max_position_embeddings", usual.context));
    assert_true(model->epsilon == real(root, "rms_norm_eps", 1e-6));
    const json_t *newer = json_object_get(root, "rope_parameters");
    assert_true(model->rope_theta == real(json_object_get(newer, "rope_theta") ? newer : root, "rope_theta", 10000));
    plain(newer, "rope_type", is_text(newer, "rope_type", "default", "default"));
    plain(root, "rope_scaling", is_text(json_object_get(root, "rope_scaling"), "rope_type", "default", "default"));
    plain(root, "hidden_act", is_text(root, "hidden_act", "silu", "swish"));
    plain(root, "attention_bias", json_is_false(json_object_get(root, "attention_bias")));
    plain(root, "mlp_bias", json_is_false(json_object_get(root, "mlp_bias")));
    plain(root, "use_sliding_window", json_is_false(json_object_get(root, "use_sliding_window")));
    const json_t *tied = json_object_get(root, "tie_word_embeddings");
    assert_true(!tied || (json_is_boolean(tied) && json_is_true(tied) == (model->tied != 0)));
}

/* What a recipe of so large a model takes is told, or it is refused by a line. */
static void can_be_made(const hd_gpt *model) {
    hd_plan_memory takes;
    const hd_trainer_desc desc = { .model = *model, .batch = 1, .length = 1, .schedule = { .rate = 1e-3 } };
    if (model->layers > 8 || model->width > 512 || model->vocabulary > 4096 || model->feed_forward > 4096 || model->head_size > 512) return;
    if (hd_trainer_fit(session.context, session.device, &desc, &takes)) assert_true(hd_context_error(session.context)[0]);
    else assert_true(takes.total_bytes > 0);
}

static void damaged(void **state) {
    (void)state;
    enum { TRIES = 10000, EACH = 20 };
    static char changed[4096];
    uint32_t taken = 0;
    const int log = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    for (uint32_t i = 0; i < TRIES; i++) {
        hd_gpt model = usual;
        damage(configs[i % 3], changed, sizeof changed);
        save(changed);
        if (train_config_read(&cli_train, path, &model)) continue;
        json_t *root = json_loads(changed, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        assert_int_equal(model.vocabulary, whole(root, "vocab_size", usual.vocabulary));
        const json_t *type = json_object_get(root, "model_type");
        if (type ? is_text(root, "model_type", "gpt2", "gpt2") : !json_object_get(root, "hidden_size")) check_gpt2(root, &model);
        else check_decoder(root, &model);
        json_decref(root);
        if (taken++ % EACH == 0) can_be_made(&model);
    }
    dup2(log, STDERR_FILENO);
    close(log);
    close(nowhere);
    printf("%u of %d were taken\n", taken, TRIES);
    assert_true(taken > TRIES / 20 && taken < TRIES / 4 * 3);
}

static void whole_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        hd_gpt model = usual;
        save(configs[i]);
        assert_int_equal(train_config_read(&cli_train, path, &model), CLI_OK);
        assert_int_equal(model.family, i);
        can_be_made(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(whole_ones), cmocka_unit_test(damaged) };
    if (mkstemp(path) < 0 || cli_session_open(&cli_train, &session) || cli_session_device(&session, "cpu")) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cli_session_close(&session);
    return remove(path) || failed;
}
