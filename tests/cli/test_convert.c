/* test_convert.c: `heddle convert` gives the tensors, to the byte, and the keys of llama.cpp's convert_hf_to_gguf.py (tests/cli/convert,
 * made by tools/fixtures/convert_fixture.py); of 10,000 folders with damaged files none does harm. */
#define _XOPEN_SOURCE 700
#include "cli/convert.h"
#include "llm/gguf.h"
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

static char folder[] = "/tmp/heddle-convert-XXXXXX", out_path[64];
static cli_session session;
static const char *const models[] = { "llama", "qwen2", "qwen3" };

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(out_path, sizeof out_path, "%s/out.gguf", folder);
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

/* ---- damaged folders ---- */

static uint64_t seed = 1;
static uint32_t below(uint32_t most) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % most);
}

typedef struct copy { char path[96]; char *bytes; size_t count; } copy;

static void save(const copy *c, const char *bytes, size_t count) {
    FILE *file = fopen(c->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
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

/* Of each model; fewer where a sanitizer makes each of them slow. */
#ifdef __SANITIZE_ADDRESS__
enum { TRIES = 200 };
#else
enum { TRIES = 3334 };
#endif

static void damaged_folders_do_no_harm(void **state) {
    (void)state;
    static const char *const names[] = { "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json",
                                         "model.safetensors", "model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                                         "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors" };
    char place[64];
    uint32_t taken = 0, tries = 0;
    snprintf(place, sizeof place, "%s/m", folder);
    const int log = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    for (size_t m = 0; m < CLI_COUNT(models); m++) {
        copy copies[CLI_COUNT(names)];
        size_t count = 0;
        assert_int_equal(mkdir(place, 0700), 0);
        for (size_t i = 0; i < CLI_COUNT(names); i++) {
            char path[512];
            copy *c = &copies[count];
            snprintf(path, sizeof path, "%s/cli/convert/%s/%s", HEDDLE_TESTS_DIR, models[m], names[i]);
            if (access(path, R_OK) != 0) continue;
            snprintf(c->path, sizeof c->path, "%s/%s", place, names[i]);
            c->bytes = cli_read_text(&cli_convert, path, 1 << 24, &c->count);
            assert_non_null(c->bytes);
            save(c, c->bytes, c->count);
            count++;
        }
        for (uint32_t i = 0; i < TRIES; i++, tries++) {
            const copy *c = &copies[below((uint32_t)count)];
            char *bytes = malloc(c->count + 1);
            assert_non_null(bytes);
            save(c, bytes, damage(c, bytes));
            remove(out_path);
            const int code = cli_convert_folder(&session, place, out_path, NULL);
            hdl_gguf *gguf = NULL;
            if (code == CLI_OK) {
                assert_int_equal(hdl_gguf_open(out_path, NULL, &gguf, NULL), HD_OK);
                taken++;
            } else {
                assert_int_equal(code, CLI_FAILED);
                assert_int_not_equal(access(out_path, F_OK), 0);
            }
            hdl_gguf_close(gguf);
            save(c, c->bytes, c->count);
            free(bytes);
        }
        for (size_t i = 0; i < count; i++) {
            remove(copies[i].path);
            free(copies[i].bytes);
        }
        assert_int_equal(rmdir(place), 0);
    }
    dup2(log, STDERR_FILENO);
    close(log);
    close(nowhere);
    assert_true(tries == CLI_COUNT(models) * TRIES && taken > tries / 100 && taken < tries);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equals_llama_cpp), cmocka_unit_test(damaged_folders_do_no_harm) };
    return cmocka_run_group_tests_name("convert", tests, set_up, tear_down);
}
