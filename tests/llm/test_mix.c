/* test_mix.c: hd_model_quantize writes the files of llama.cpp's llama-quantize, to the byte (mix_fixture.h); it keeps what it is told
 * to, tells the errors, and leaves nothing behind where it fails. */
#define _XOPEN_SOURCE 700
#include "llm/gguf_write.h"
#include "llm/fixtures/mix_fixture.h"
#include <heddle_llm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/heddle-mix-XXXXXX", out_path[64];
static hd_context *context;

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(out_path, sizeof out_path, "%s/out.gguf", folder);
    return hd_context_create(NULL, &context);
}
static int tear_down(void **state) {
    (void)state;
    hd_context_destroy(context);
    remove(out_path);
    return rmdir(folder); /* fails where anything was left behind */
}

static const char *path_of(const char *model) {
    static char path[512];
    snprintf(path, sizeof path, "%s/llm/fixtures/%s.gguf", HEDDLE_TESTS_DIR, model);
    return path;
}

static uint64_t hash_of(const char *path) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (int byte; (byte = getc(file)) != EOF;) hash = (hash ^ (uint8_t)byte) * UINT64_C(0x100000001b3);
    fclose(file);
    return hash;
}

static void equals_llama_quantize(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mix_files / sizeof *mix_files; i++) {
        const hd_quantize_desc desc = { .type = mix_files[i].type };
        assert_int_equal(hd_model_quantize(context, path_of(mix_files[i].model), out_path, &desc), HD_OK);
        if (hash_of(out_path) != mix_files[i].hash) fail_msg("%s as %s", mix_files[i].model, mix_files[i].type);
    }
}

static bool fill_ones(void *user, uint64_t from, uint64_t bytes, void *out) {
    (void)user;
    (void)from;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) ((float *)out)[i] = 1;
    return true;
}

/* An importance file that tells of all matrices of a model, in which these have two rows. */
static void put_importance(void *user, const hd_quantized_tensor *t) {
    char name[96];
    if (strstr(t->name, "norm.weight")) return;
    snprintf(name, sizeof name, "%s.in_sum2", t->name);
    hd_model_writer_tensor(user, name, HD_F32, HD_SHAPE(1, (int64_t)(t->elements / 2)), fill_ones, NULL);
    snprintf(name, sizeof name, "%s.counts", t->name);
    hd_model_writer_tensor(user, name, HD_F32, HD_SHAPE(1, 1), fill_ones, NULL);
}
static void hash_type(void *user, const hd_quantized_tensor *t) {
    char line[96];
    uint64_t *hash = user;
    snprintf(line, sizeof line, "%s %s\n", t->name, t->to);
    for (size_t i = 0; line[i]; i++) *hash = (*hash ^ (uint8_t)line[i]) * UINT64_C(0x100000001b3);
    assert_true(t->weighted == (strcmp(t->from, t->to) != 0 && !strstr(t->name, "norm.weight")));
}

static void types_are_those_of_llama_quantize(void **state) {
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s/importance.gguf", folder);
    for (size_t i = 0; i < sizeof mix_types / sizeof *mix_types; i++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        hd_model_writer *w;
        assert_int_equal(hd_model_writer_create(context, &w), HD_OK);
        hd_model_writer_text(w, "general.type", "imatrix", 7);
        const hd_quantize_desc list = { .type = "f32", .report = put_importance, .report_user = w };
        assert_int_equal(hd_model_quantize(context, path_of(mix_types[i].model), out_path, &list), HD_OK);
        assert_int_equal(hd_model_writer_write(w, path), HD_OK);
        hd_model_writer_destroy(w);
        const hd_quantize_desc desc = { .type = mix_types[i].type, .importance = path, .report = hash_type, .report_user = &hash };
        assert_int_equal(hd_model_quantize(context, path_of(mix_types[i].model), out_path, &desc), HD_OK);
        if (hash != mix_types[i].hash) fail_msg("%s as %s", mix_types[i].model, mix_types[i].type);
    }
    remove(path);
}

typedef struct told { int tensors, kept; double worst; } told;
static void note(void *user, const hd_quantized_tensor *t) {
    told *n = user;
    n->tensors++;
    if (strcmp(t->from, t->to) == 0) {
        n->kept++;
        assert_true(t->error == 0 && t->from_bytes == t->to_bytes);
    } else {
        assert_string_equal(t->from, "f16");
        assert_true(t->error > 0 && t->to_bytes < t->from_bytes && t->elements > 0);
    }
    if (t->error > n->worst) n->worst = t->error;
}

static void tells_and_keeps(void **state) {
    (void)state;
    static const char *const keep[] = { "attn_k", "blk.3." };
    told all = { 0 }, some = { 0 };
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), out_path, &(hd_quantize_desc){ .type = "q4_0", .report = note, .report_user = &all }), HD_OK);
    const hd_quantize_desc desc = { .type = "q4_0", .keep = keep, .keep_count = 2, .report = note, .report_user = &some };
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), out_path, &desc), HD_OK);
    assert_int_equal(all.tensors, 3 + 16 * 7);
    assert_int_equal(all.kept, 1 + 16 * 2);
    assert_int_equal(some.kept, all.kept + 16 + 4); /* attn_k of each layer, and the four others of layer 3 */
    assert_true(all.worst > 0.05 && all.worst < 0.2);
}

/* The context's failure has these words. */
static void expect(const char *words) {
    const char *text = hd_context_error(context);
    if (!strstr(text, words)) fail_msg("%s", text);
}

static void nothing_is_left_where_it_fails(void **state) {
    (void)state;
    hd_quantize_desc desc = { .type = "q4_k_m" };
    remove(out_path);
    assert_int_equal(hd_model_quantize(NULL, "a", "b", &desc), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), out_path, NULL), HD_STATUS_NULL_POINTER);
    desc.type = "q9_9";
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), out_path, &desc), HD_STATUS_NAME_NOT_FOUND);
    expect("no type is called q9_9; there are f32");
    desc.type = "q8_0";
    assert_int_equal(hd_model_quantize(context, "/no/such.gguf", out_path, &desc), HD_STATUS_IO);
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), "/no/such/folder/out.gguf", &desc), HD_STATUS_IO);
    expect("no/such"); /* and of failures that wait the first one is told */
    assert_int_not_equal(access(out_path, F_OK), 0);
    /* From a type that cannot be quantised again, and from numbers that are none. */
    char from[96];
    snprintf(from, sizeof from, "%s/from.gguf", folder);
    desc.type = "q4_0";
    assert_int_equal(hd_model_quantize(context, path_of("mix_f16"), from, &desc), HD_OK);
    desc.type = "q5_0";
    assert_int_equal(hd_model_quantize(context, from, out_path, &desc), HD_STATUS_UNSUPPORTED);
    expect("has type q4_0");
    float values[64] = { 1, NAN };
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    hdl_gguf_put_tensor(w, hdl_text("a.weight"), HDL_GGUF_TYPE_F32, HD_SHAPE(2, 32), values);
    assert_int_equal(hdl_gguf_write_file(w, from, NULL), HD_OK);
    hdl_gguf_writer_destroy(w);
    assert_int_equal(hd_model_quantize(context, from, out_path, &desc), HD_STATUS_PARSE);
    expect("'a.weight' holds NaN");
    assert_int_not_equal(access(out_path, F_OK), 0);
    remove(from);
}

/* ---- models written by hand ---- */

static bool count_up(void *user, uint64_t from, uint64_t bytes, void *out) {
    for (uint64_t i = 0; i < bytes; i++) ((uint8_t *)out)[i] = (uint8_t)((from + i) % 251);
    return from / 4 < *(const uint64_t *)user;
}

static void a_model_is_written_by_hand(void **state) {
    (void)state;
    static const char *const words[] = { "a", "", "word" };
    static const int32_t types[] = { 1, -1, 3 };
    uint64_t most = UINT64_MAX;
    hd_model_writer *w;
    hdl_gguf *gguf;
    hdl_gguf_value value;
    hdl_gguf_tensor tensor;
    assert_int_equal(hd_model_writer_create(context, &w), HD_OK);
    hd_model_writer_text(w, "general.architecture", "none", 4);
    hd_model_writer_u32(w, "n", 7);
    hd_model_writer_f32(w, "f", 0.5f);
    hd_model_writer_bool(w, "b", true);
    hd_model_writer_texts(w, "words", words, 3);
    hd_model_writer_i32s(w, "types", types, 3);
    hd_model_writer_tensor(w, "large", HD_F32, HD_SHAPE(600, 1000), count_up, &most);
    hd_model_writer_tensor(w, "blocks", HD_Q4_K, HD_SHAPE(3, 512), count_up, &most);
    assert_int_equal(hd_model_writer_write(w, out_path), HD_OK);
    hd_model_writer_destroy(w);
    assert_int_equal(hdl_gguf_open(out_path, NULL, &gguf, NULL), HD_OK);
    assert_true(hdl_gguf_find(gguf, "n", &value) && value.kind == HDL_GGUF_U32 && hdl_gguf_integer(&value, 0) == 7);
    assert_true(hdl_gguf_find(gguf, "f", &value) && hdl_gguf_float(&value, 0) == 0.5);
    assert_true(hdl_gguf_find(gguf, "words", &value) && value.count == 3 && value.element == HDL_GGUF_STRING);
    assert_true(hdl_gguf_find(gguf, "types", &value) && value.count == 3 && hdl_gguf_integer(&value, 1) == -1);
    assert_true(hdl_gguf_find_tensor(gguf, "large", &tensor));
    hdl_span data;
    assert_int_equal(hdl_gguf_data(gguf, &tensor, &data, NULL), HD_OK);
    assert_int_equal(data.count, 2400000);
    for (uint64_t i = 0; i < data.count; i++) assert_true(data.bytes[i] == i % 251);
    assert_true(hdl_gguf_find_tensor(gguf, "blocks", &tensor) && tensor.bytes == 3 * 2 * 144);
    hdl_gguf_close(gguf);
    remove(out_path);
}

static void what_cannot_be_written_is_told(void **state) {
    (void)state;
    uint64_t most = 100;
    static const struct { const char *key; hd_dtype dtype; hd_shape shape; hd_tensor_fill fill; hd_status status; } wrong[] = {
        { NULL, HD_F32, { 1, { 4 } }, count_up, HD_STATUS_NULL_POINTER },      { "t", HD_F32, { 1, { 4 } }, NULL, HD_STATUS_NULL_POINTER },
        { "t", HD_DTYPE_NONE, { 1, { 4 } }, count_up, HD_STATUS_SHAPE },       { "t", HD_Q4_K, { 1, { 32 } }, count_up, HD_STATUS_SHAPE },
        { "", HD_F32, { 1, { 4 } }, count_up, HD_STATUS_INVALID_ARGUMENT },    { "t", HD_F32, { 2, { 600, 1000 } }, count_up, HD_STATUS_INVALID_ARGUMENT },
        { "first", HD_F32, { 1, { 4 } }, count_up, HD_STATUS_NAME_TAKEN },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hd_model_writer *w;
        assert_int_equal(hd_model_writer_create(context, &w), HD_OK);
        hd_model_writer_tensor(w, "first", HD_F32, HD_SHAPE(4), count_up, &most);
        hd_model_writer_tensor(w, wrong[i].key, wrong[i].dtype, wrong[i].shape, wrong[i].fill, &most);
        assert_int_equal(hd_model_writer_write(w, out_path), wrong[i].status);
        assert_int_not_equal(access(out_path, F_OK), 0);
        hd_model_writer_destroy(w);
        (void)hd_context_error(context);
    }
    hd_model_writer_u32(NULL, "n", 1);
    assert_int_equal(hd_model_writer_create(context, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_model_writer_write(NULL, out_path), HD_STATUS_NULL_POINTER);
    hd_model_writer_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equals_llama_quantize), cmocka_unit_test(tells_and_keeps),
                                        cmocka_unit_test(types_are_those_of_llama_quantize),
                                        cmocka_unit_test(nothing_is_left_where_it_fails),
                                        cmocka_unit_test(a_model_is_written_by_hand), cmocka_unit_test(what_cannot_be_written_is_told) };
    return cmocka_run_group_tests_name("mix", tests, set_up, tear_down);
}
