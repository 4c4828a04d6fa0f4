/* test_convert.c: `heddle convert` gives the tensors, to the byte, and the keys of llama.cpp's convert_hf_to_gguf.py (tests/cli/convert,
 * made by tools/fixtures/convert_fixture.py); what it makes of every family answers as transformers does, by the same tokens
 * (tools/fixtures/convert_families.py); of 10,000 folders with damaged files none does harm, and what is taken opens as a model. */
#define _XOPEN_SOURCE 700
#include "cli/convert.h"
#include "llm/gguf.h"
#include "llm/model_reference.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heddle-convert-XXXXXX", out_path[64], place[64];
static cli_session session;
static const char *const models[] = { "llama", "qwen2", "qwen3" };

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(out_path, sizeof out_path, "%s/out.gguf", folder);
    snprintf(place, sizeof place, "%s/m", folder);
    return cli_session_open(&cli_convert, &session);
}
static int tear_down(void **state) {
    (void)state;
    cli_session_close(&session);
    remove(out_path);
    return rmdir(folder);
}

#define FNV_START UINT64_C(0xcbf29ce484222325)
static uint64_t fnv(uint64_t hash, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    for (uint64_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void check_tensors(hdl_gguf *gguf, const json_t *wanted) {
    assert_int_equal(hdl_gguf_get_info(gguf).tensor_count, json_object_size(wanted));
    for (uint32_t i = 0; i < hdl_gguf_get_info(gguf).tensor_count; i++) {
        const hdl_gguf_tensor t = hdl_gguf_tensor_at(gguf, i);
        char name[80], hash[20];
        hdl_span data;
        snprintf(name, sizeof name, "%.*s", (int)t.name.count, (const char *)t.name.bytes);
        const json_t *row = json_object_get(wanted, name), *shape = json_array_get(row, 1);
        if (!row) fail_msg("%s is not wanted", name);
        assert_int_equal(strcasecmp(json_string_value(json_array_get(row, 0)), hdl_gguf_type_info(t.type).name), 0);
        assert_int_equal(json_array_size(shape), t.shape.rank);
        for (uint32_t axis = 0; axis < t.shape.rank; axis++) /* theirs have the fastest axis first */
            assert_int_equal(json_integer_value(json_array_get(shape, axis)), t.shape.dims[t.shape.rank - 1 - axis]);
        assert_int_equal(hdl_gguf_data(gguf, &t, &data, NULL), HD_OK);
        snprintf(hash, sizeof hash, "%llx", (unsigned long long)fnv(FNV_START, data.bytes, data.count));
        if (strcmp(hash, json_string_value(json_array_get(row, 2))) != 0) fail_msg("%s has other bytes", name);
    }
}

/* A long list as the fixture has it: the hash of its elements as text, with zeros between them. */
static uint64_t list_hash(const hdl_gguf_value *value) {
    uint64_t hash = FNV_START, at = 0;
    hdl_span text;
    for (uint64_t i = 0; i < value->count; i++) {
        char number[24];
        if (value->element == HDL_GGUF_STRING) hdl_gguf_next_text(value, &at, &text);
        else text = (snprintf(number, sizeof number, "%lld", (long long)hdl_gguf_integer(value, i)), hdl_text(number));
        if (i > 0) hash = fnv(hash, "", 1);
        hash = fnv(hash, text.bytes, text.count);
    }
    return hash;
}

static bool same(const hdl_gguf_value *value, const json_t *wanted) {
    char hash[20];
    if (value->kind == HDL_GGUF_ARRAY) {
        snprintf(hash, sizeof hash, "%llx", (unsigned long long)list_hash(value));
        return json_is_string(wanted) && strcmp(hash, json_string_value(wanted)) == 0;
    }
    if (value->kind == HDL_GGUF_STRING) return json_is_string(wanted) && hdl_same(value->bytes, hdl_text(json_string_value(wanted)));
    if (value->kind == HDL_GGUF_BOOL) return hdl_gguf_integer(value, 0) == json_is_true(wanted);
    if (value->kind == HDL_GGUF_F32) return (float)hdl_gguf_float(value, 0) == (float)json_number_value(wanted);
    return json_is_integer(wanted) && hdl_gguf_integer(value, 0) == json_integer_value(wanted);
}

/* What both have is the same; what only they have says nothing about the answers. */
static void check_keys(hdl_gguf *gguf, const char *model, json_t *wanted) {
    static const char *const theirs[] = { "general.", "GGUF.", "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.padding_token_id",
                                          "tokenizer.ggml.add_eos_token", "tokenizer.ggml.unknown_token_id" };
    const char *key;
    json_t *value;
    uint32_t found = 0;
    json_object_foreach(wanted, key, value) {
        hdl_gguf_value ours;
        bool skips = false;
        for (size_t i = 0; i < CLI_COUNT(theirs); i++) skips = skips || strncmp(key, theirs[i], strlen(theirs[i])) == 0;
        if (hdl_gguf_find(gguf, key, &ours)) {
            if (!same(&ours, value)) fail_msg("%s: %s differs", model, key);
            found++;
        } else if (!skips) fail_msg("%s: %s is missing", model, key);
    }
    assert_true(found >= 15);
}

static void equals_llama_cpp(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/cli/convert/expected.json", HEDDLE_TESTS_DIR);
    json_t *all = json_load_file(path, 0, NULL);
    assert_non_null(all);
    for (size_t i = 0; i < CLI_COUNT(models); i++) {
        hdl_gguf *gguf;
        const json_t *wanted = json_object_get(all, models[i]);
        snprintf(path, sizeof path, "%s/cli/convert/%s", HEDDLE_TESTS_DIR, models[i]);
        assert_int_equal(cli_convert_folder(&session, path, out_path, NULL), CLI_OK);
        assert_int_equal(hdl_gguf_open(out_path, NULL, &gguf, NULL), HD_OK);
        check_tensors(gguf, json_object_get(wanted, "tensors"));
        check_keys(gguf, models[i], json_object_get(wanted, "keys"));
        hdl_gguf_close(gguf);
    }
    json_decref(all);
}

/* ---- folders, put together in `place` ---- */

typedef struct copy { char path[160]; char *bytes; size_t count; } copy;
enum { MOST_COPIES = 10 };
typedef struct copies { copy each[MOST_COPIES]; size_t count; bool pools; } copies;

static void save(const copy *c, const char *bytes, size_t count) {
    FILE *file = fopen(c->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void take_file(copies *all, const char *from, const char *name) {
    copy *c = &all->each[all->count];
    if (access(from, R_OK) != 0) return;
    snprintf(c->path, sizeof c->path, "%s/%s", place, name);
    c->bytes = cli_read_text(&cli_convert, from, 1 << 24, &c->count);
    assert_non_null(c->bytes);
    save(c, c->bytes, c->count);
    all->count++;
}

/* All files of tests/cli/convert/<model>, and a tokenizer.json that it shares with others, or NULL. */
static copies put_together(const char *model, const char *tokenizer) {
    static const char *const names[] = { "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "1_Pooling/config.json",
                                         "model.safetensors.index.json", "model.safetensors", "model-00001-of-00004.safetensors",
                                         "model-00002-of-00004.safetensors", "model-00003-of-00004.safetensors",
                                         "model-00004-of-00004.safetensors" };
    copies all = { .pools = strstr(model, "bert") };
    char path[512];
    assert_int_equal(mkdir(place, 0700), 0);
    snprintf(path, sizeof path, "%s/1_Pooling", place);
    if (all.pools) assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/cli/convert/%s/%s", HEDDLE_TESTS_DIR, model, names[i]);
        take_file(&all, path, names[i]);
    }
    snprintf(path, sizeof path, "%s/cli/convert/tokenizers/%s.json", HEDDLE_TESTS_DIR, tokenizer ? tokenizer : "");
    if (tokenizer) take_file(&all, path, "tokenizer.json");
    return all;
}

static void take_apart(copies *all) {
    char path[512];
    for (size_t i = 0; i < all->count; i++) {
        remove(all->each[i].path);
        free(all->each[i].bytes);
    }
    snprintf(path, sizeof path, "%s/1_Pooling", place);
    if (all->pools) assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(place), 0);
}

/* ---- answers ---- */

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(session.context));
}

static json_t *load(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/cli/convert/%s", HEDDLE_TESTS_DIR, name);
    json_t *json = json_load_file(path, 0, NULL);
    if (!json) fail_msg("%s is no JSON", path);
    return json;
}

enum { MOST_TOKENS = 400 };
static size_t tokens_of(const json_t *list, int32_t out[MOST_TOKENS]) {
    assert_true(json_array_size(list) <= MOST_TOKENS);
    for (size_t i = 0; i < json_array_size(list); i++) out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* The two rows that transformers computed, of `length` numbers. */
static float *rows_of(const char *name, size_t length) {
    char path[512];
    size_t bytes;
    snprintf(path, sizeof path, "%s/cli/convert/families/%s/rows.f32", HEDDLE_TESTS_DIR, name);
    float *rows = (float *)(void *)cli_read_text(&cli_convert, path, 1 << 20, &bytes);
    assert_non_null(rows);
    assert_true(bytes == 2 * length * sizeof *rows || bytes == length * sizeof *rows);
    return rows;
}

static void same_tokens(const hd_model *model, const char *name, const char *tokenizer) {
    char file[96];
    snprintf(file, sizeof file, "tokenizers/%s.texts.json", tokenizer);
    json_t *texts = load(file);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(json_array_get(texts, i), 0);
        int32_t wanted[MOST_TOKENS], got[MOST_TOKENS];
        size_t count = MOST_TOKENS;
        const size_t most = tokens_of(json_array_get(json_array_get(texts, i), 1), wanted);
        CHECK(hd_model_tokenize(model, json_string_value(text), json_string_length(text), HD_TOKENIZE_ADD_SPECIAL | HD_TOKENIZE_PARSE_SPECIAL,
                                got, &count));
        if (count != most || memcmp(got, wanted, count * sizeof *got) != 0)
            fail_msg("%s: '%s' becomes other tokens", name, json_string_value(text));
    }
    json_decref(texts);
}

/* The same direction, and the same length: a factor that is lost turns nothing. */
static void close_rows(const char *name, const float *got, const float *wanted, size_t length) {
    double ours = 0, theirs = 0;
    const double cosine = model_cosine(got, wanted, (uint32_t)length);
    if (!(cosine > 0.9999)) fail_msg("%s: the cosine is %.7f", name, cosine);
    for (size_t i = 0; i < length; i++) {
        ours += (double)got[i] * (double)got[i];
        theirs += (double)wanted[i] * (double)wanted[i];
    }
    if (fabs(sqrt(ours / theirs) - 1) > 0.005) fail_msg("%s: numbers are %.4f times as large", name, sqrt(ours / theirs));
}

static void same_answer(hd_model *model, hd_device *device, const char *name, const json_t *row) {
    hd_session *answers;
    hd_model_info info;
    const float *logits;
    int32_t prompt[MOST_TOKENS], answer[MOST_TOKENS], token;
    const size_t prompt_count = tokens_of(json_object_get(row, "prompt"), prompt), count = tokens_of(json_object_get(row, "answer"), answer);
    CHECK(hd_model_get_info(model, &info));
    float *rows = rows_of(name, info.vocabulary);
    CHECK(hd_session_create(model, &(hd_session_desc){ .device = device, .math = HD_MATH_EXACT, .context = 256 }, &answers));
    CHECK(hd_session_feed(answers, 0, prompt, prompt_count));
    for (size_t i = 0; i < count; i++) {
        CHECK(hd_session_logits(answers, 0, &logits));
        if (i == 0) close_rows(name, logits, rows, info.vocabulary);
        if (i == count - 1) close_rows(name, logits, rows + info.vocabulary, info.vocabulary);
        CHECK(hd_session_best(answers, 0, &token));
        if (token != answer[i]) fail_msg("%s: token %zu of the answer is %d, not %d", name, i, token, answer[i]);
        if (i + 1 < count) CHECK(hd_session_feed(answers, 0, &token, 1));
    }
    hd_session_destroy(answers);
    free(rows);
}

static void same_vector(hd_model *model, hd_device *device, const char *name, const json_t *row) {
    hd_embedder *embedder;
    float vector[64];
    int32_t prompt[MOST_TOKENS];
    const size_t count = tokens_of(json_object_get(row, "prompt"), prompt);
    float *rows = rows_of(name, 16);
    CHECK(hd_embedder_create(model, &(hd_embedder_desc){ .device = device, .raw = 1, .math = HD_MATH_EXACT }, &embedder));
    CHECK(hd_embedder_run(embedder, &(hd_embedder_text){ prompt, count }, 1, vector));
    close_rows(name, vector, rows, 16);
    hd_embedder_destroy(embedder);
    free(rows);
}

static void families_answer_as_transformers(void **state) {
    (void)state;
    json_t *all = load("families.json"), *row;
    const char *name;
    hd_device *device;
    size_t count = 0;
    CHECK(hd_device_open(session.context, &(hd_device_desc){ .id = "cpu" }, &device));
    json_object_foreach(json_object_get(all, "families"), name, row) {
        const char *tokenizer = json_string_value(json_object_get(row, "tokenizer"));
        char model_name[64];
        hd_model *model;
        hd_model_info info;
        snprintf(model_name, sizeof model_name, "families/%s", name);
        copies files = put_together(model_name, tokenizer);
        if (cli_convert_folder(&session, place, out_path, NULL)) fail_msg("%s is not converted", name);
        CHECK(hd_model_open(session.context, out_path, NULL, &model));
        CHECK(hd_model_get_info(model, &info));
        assert_int_equal(info.has_chat_template, !info.embeds_only);
        same_tokens(model, name, tokenizer);
        for (size_t i = 0; i < json_array_size(json_object_get(row, "ends")); i++)
            assert_true(hd_model_token_ends(model, (int32_t)json_integer_value(json_array_get(json_object_get(row, "ends"), i))));
        if (info.embeds_only) same_vector(model, device, name, row);
        else same_answer(model, device, name, row);
        hd_model_close(model);
        take_apart(&files);
        count++;
    }
    hd_device_close(device);
    json_decref(all);
    assert_true(count >= 40);
}

/* Every number of 8 bits, times a factor that loses nothing, is what torch makes of it; what is none is refused. */
static void eights_are_torchs(void **state) {
    (void)state;
    json_t *all = load("eights.json");
    const float two = 2;
    const hd_safetensor factor = { .dtype = HD_F32, .data = &two };
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        const json_t *numbers = json_object_get(all, e5m2 ? "e5m2" : "e4m3");
        assert_int_equal(json_array_size(numbers), 256);
        for (size_t i = 0; i < 256; i++) {
            const uint8_t bits = (uint8_t)i;
            const json_t *wanted = json_array_get(numbers, i);
            cli_converted t = { .data = &bits, .factors = &factor, .block_rows = 1, .block_columns = 1, .e5m2 = e5m2, .from = HD_U8, .to = HD_F32,
                                .axes = 2, .rows = 1, .columns = 1, .old_rows = 1, .step = 1 };
            float got = 0;
            assert_int_equal(cli_convert_fill(&t, 0, sizeof got, &got), !json_is_null(wanted));
            const float value = 2 * (float)json_number_value(wanted);
            if (!json_is_null(wanted) && (got != value || (signbit(got) != 0) != (i >= 128))) fail_msg("%zu becomes %g, not %g", i, (double)got, (double)value);
        }
    }
    json_decref(all);
}

/* ---- what config.json says and is not computed ---- */

static void other_words_are_refused(void **state) {
    (void)state;
    static const struct { const char *name, *tokenizer, *from, *to; } cases[] = {
        { "deepseek2", "deepseek", "\"n_group\":1", "\"n_group\":2" },
        { "deepseek2", "deepseek", "\"greedy\"", "\"group_limited_greedy\"" },
        { "deepseek2", "deepseek", "\"mscale\":0.707", "\"mscale\":1.0" },
        { "deepseek3", "deepseek", "\"sigmoid\"", "\"softmax\"" },
        { "deepseek3", "deepseek", "\"moe_layer_freq\":1", "\"moe_layer_freq\":2" },
        { "glm4_lite", "dbrx", "\"dense\",\"sparse\",\"sparse\"", "\"sparse\",\"dense\",\"sparse\"" },
        { "glm4_lite", "dbrx", "\"num_nextn_predict_layers\":1", "\"num_nextn_predict_layers\":0" },
        { "glm4_lite", "dbrx", "\"rope_interleave\":true", "\"rope_interleave\":false" },
        { "glm4_lite", "dbrx", "\"qk_nope_head_dim\":6", "\"qk_nope_head_dim\":14" },
        { "bitnet_packed", "dbrx", "autobitlinear", "bitlinear" },
        { "bitnet_packed", "dbrx", "\"bitnet\",\"linear", "\"gptq\",\"linear" },
        { "bitnet", "dbrx", "relu2", "silu" },
        { "gpt_oss", "gpt4o", "\"mxfp4\"", "\"bitnet\"" },
        { "qwen3moe_eights", "qwen2", "\"e4m3\"", "\"e5m2\"" },
        { "qwen3moe_eights", "qwen2", "[8,12]", "[8]" },
        { "qwen3moe_eights", "qwen2", "[8,12]", "[8,0]" },
        { "qwen3moe_eights", "qwen2", "[8,12]", "[8,8]" },
        { "qwen3moe_eights", "qwen2", "\"fp8\"", "\"gptq\"" },
        { "qwen2_eights", "qwen2", "\"e5m2\"", "\"e4m3\"" },
        { "qwen2_eights", "qwen2", "\"e5m2\"", "\"e8m0\"" },
        { "qwen3_eights", "qwen2", "\"channel\"", "\"tensor\"" },
        { "qwen3_eights", "qwen2", "\"channel\"", "\"group\"" },
        { "qwen3_eights", "qwen2", "\"channel\"", "\"block\",\"block_structure\":[8,8]" },
        { "qwen3_eights", "qwen2", "\"float\"", "\"int\"" },
        { "qwen3_eights", "qwen2", "\"num_bits\":8", "\"num_bits\":4" },
        { "qwen3_eights", "qwen2", "\"group_0\":", "\"group_1\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\"}},\"group_0\":" },
        { "mistral_eights", "mistral", "\"tensor\"", "\"channel\"" },
        { "nomic_bert", "wordpiece", "\"causal\":false", "\"causal\":true" },
        { "nomic_bert", "wordpiece", "swiglu", "gelu" },
    };
    size_t refused = 0;
    for (size_t i = 0; i < CLI_COUNT(cases); i++) {
        char model[64];
        snprintf(model, sizeof model, "families/%s", cases[i].name);
        copies files = put_together(model, cases[i].tokenizer);
        const copy *config = &files.each[0];
        char *text = calloc(1, config->count + 100), *other = calloc(1, config->count + 100);
        assert_true(text && other);
        memcpy(text, config->bytes, config->count);
        const char *at = strstr(text, cases[i].from);
        if (at) {
            sprintf(other, "%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
            save(config, other, strlen(other));
            if (!cli_convert_folder(&session, place, out_path, NULL)) fail_msg("%s: %s", cases[i].name, cases[i].to);
            refused++;
        }
        free(text);
        free(other);
        take_apart(&files);
    }
    assert_int_equal(refused, CLI_COUNT(cases));
}

/* ---- damaged folders ---- */

static uint64_t seed = 1;
static uint32_t below(uint32_t most) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % most);
}

/* Bytes turned, numbers and words replaced, pieces cut out or doubled, the end cut off. Returns how many bytes are left. */
static size_t damage(const copy *c, char *out) {
    static const char *const words[] = { "-1", "1e308", "99999999999999999999", "0",          "null",  "\"\"",
                                         "[]", "{}",    "true",                 "\\u0000", "4294967296", "/../x" };
    size_t count = c->count;
    memcpy(out, c->bytes, count);
    for (uint32_t turn = 1 + below(3); turn > 0 && count > 0; turn--) {
        const uint32_t reach = (uint32_t)(below(2) && count > 600 ? 600 : count); /* headers come first */
        const size_t at = below(reach), room = count - at;
        const char *word = words[below(CLI_COUNT(words))];
        switch (below(5)) {
        case 0: out[at] = (char)below(256); break;
        case 1: memcpy(out + at, word, strlen(word) < room ? strlen(word) : room); break;
        case 2: if (below(4) == 0) count = at; break;
        case 3: {
            const size_t gone = 1 + below(room < 40 ? (uint32_t)room : 40);
            memmove(out + at, out + at + gone, room - gone);
            count -= gone;
            break;
        }
        default:
            for (size_t i = at; i < count && i < at + 60; i++)
                if (out[i] >= '0' && out[i] <= '9') { out[i] = (char)('0' + below(10)); break; }
        }
    }
    return count;
}

/* In all; fewer where a sanitizer makes each of them slow. */
#ifdef __SANITIZE_ADDRESS__
enum { TRIES = 1000 };
#else
enum { TRIES = 10000 };
#endif

/* So many damaged folders of a model; returns how many were taken. */
static uint32_t damaged(const char *model, const char *tokenizer, uint32_t tries) {
    copies files = put_together(model, tokenizer);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < tries; i++) {
        const copy *c = &files.each[below((uint32_t)files.count)];
        char *bytes = malloc(c->count + 1);
        assert_non_null(bytes);
        save(c, bytes, damage(c, bytes));
        remove(out_path);
        if (cli_convert_folder(&session, place, out_path, NULL) == CLI_OK) {
            hd_model *opened;
            CHECK(hd_model_open(session.context, out_path, NULL, &opened));
            hd_model_close(opened);
            taken++;
        } else assert_int_not_equal(access(out_path, F_OK), 0);
        save(c, c->bytes, c->count);
        free(bytes);
    }
    take_apart(&files);
    return taken;
}

static void damaged_folders_do_no_harm(void **state) {
    (void)state;
    json_t *all = load("families.json"), *families = json_object_get(all, "families"), *row;
    const uint32_t each = TRIES / (uint32_t)(CLI_COUNT(models) + json_object_size(families)) + 1;
    uint32_t taken = 0, tries = 0;
    const char *name;
    const int log = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    for (size_t m = 0; m < CLI_COUNT(models); m++, tries += each) taken += damaged(models[m], NULL, each);
    json_object_foreach(families, name, row) {
        char path[64];
        snprintf(path, sizeof path, "families/%s", name);
        taken += damaged(path, json_string_value(json_object_get(row, "tokenizer")), each);
        tries += each;
    }
    dup2(log, STDERR_FILENO);
    close(log);
    close(nowhere);
    json_decref(all);
    print_message("%u damaged folders, %u taken\n", tries, taken);
    assert_true(tries >= TRIES && taken > tries / 100 && taken < tries);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equals_llama_cpp), cmocka_unit_test(families_answer_as_transformers), cmocka_unit_test(eights_are_torchs),
                                        cmocka_unit_test(other_words_are_refused),
                                        cmocka_unit_test(damaged_folders_do_no_harm) };
    return cmocka_run_group_tests_name("convert", tests, set_up, tear_down);
}
