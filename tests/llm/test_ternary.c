/* test_ternary.c: a model's ternary weights in a file of i2_s, of tl1 and of tl2 (tools/fixtures/ternary_fixture.py) give the same
 * bits and the same answer in exact mode, on the CPU or the back ends that arguments name, and become the same other types; and
 * wrong codes in files are refused. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, symlink */
#include "fixture.h"
#include "llm/model.h"
#include "model_reference.h"
#include "validation.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <unistd.h>

#define FOLDER HEDDLE_TESTS_DIR "/llm/ternary/"
static const char *const files[] = { FOLDER "i2_s.gguf", FOLDER "tl1/bitnet.gguf", FOLDER "tl2/bitnet.gguf" };
static const char *const types[] = { "i2_s", "tl1", "tl2" };
enum { FILES = 3, ANSWER = 16, MOST = 4 };

static hd_context *context;
static const char *places[MOST] = { "cpu" };
static int place_count = 1;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(NULL, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return validation_messages() > 0;
}

/* Scores after the prompt and at the end of the greedy answer, and the answer. */
typedef struct said { float after_prompt[512], last[512]; int32_t tokens[ANSWER]; } said;

static void speak(const char *path, hd_device *device, const model_reference *r, said *out) {
    hd_model *model;
    hd_session *session;
    const float *logits;
    const hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = 64, .chunk = 16 };
    memset(out, 0, sizeof *out);
    CHECK(hd_model_open(context, path, NULL, &model));
    CHECK(hd_session_create(model, &desc, &session));
    CHECK(hd_session_feed(session, 0, r->prompt, r->prompt_count));
    CHECK(hd_session_logits(session, 0, &logits));
    memcpy(out->after_prompt, logits, r->vocabulary * sizeof *logits);
    for (int i = 0; i < ANSWER; i++) {
        CHECK(hd_session_best(session, 0, &out->tokens[i]));
        CHECK(hd_session_feed(session, 0, &out->tokens[i], 1));
    }
    CHECK(hd_session_logits(session, 0, &logits));
    memcpy(out->last, logits, r->vocabulary * sizeof *logits);
    hd_session_destroy(session);
    hd_model_close(model);
}

static void every_type_gives_the_same_bits(void **state) {
    (void)state;
    model_reference r;
    said first, one;
    int runs = 0;
    assert_int_equal(model_reference_read("bitnet_wide_tq2_0", &r), 0); /* these weights, as transformers computes with them */
    assert_true(r.vocabulary <= 512);
    for (int p = 0; p < place_count; p++) {
        hd_device *device = NULL;
        CHECK(hd_device_open(context, &(hd_device_desc){ .id = places[p] }, &device));
        for (int f = 0; f < FILES; f++, runs++) {
            speak(files[f], device, &r, runs ? &one : &first);
            if (runs && memcmp(&one, &first, sizeof one) != 0) fail_msg("%s on %s: other bits than the first file's", types[f], places[p]);
        }
        hd_device_close(device);
    }
    const double cosine = model_cosine(first.after_prompt, r.logits + (size_t)(r.prompt_count - 1) * r.vocabulary, r.vocabulary);
    print_message("%d answers; the cosine after the prompt is %.6f\n", runs, cosine);
    assert_true(cosine > 0.998);
    assert_memory_equal(first.tokens, r.answer, sizeof first.tokens);
    free(r.bytes);
}

static void files_are_described(void **state) {
    (void)state;
    for (int f = 0; f < FILES; f++) {
        hd_model *model;
        hd_model_info info, described;
        char wanted[16];
        CHECK(hd_model_open(context, files[f], NULL, &model));
        CHECK(hd_model_get_info(model, &info));
        CHECK(hd_model_describe(context, files[f], &described));
        snprintf(wanted, sizeof wanted, "%s 14", types[f]);
        assert_non_null(strstr(info.weight_types, wanted));
        assert_string_equal(described.weight_types, info.weight_types);
        hd_model_close(model);
    }
}

/* A code that stands for nothing is found where the weight is brought to a device, and the tensor is named. */
static void wrong_codes_are_refused_by_name(void **state) {
    (void)state;
    for (int f = 0; f < FILES; f++) {
        char folder[] = "/tmp/heddle-ternary-XXXXXX", path[64], from[512], to[64];
        hdl_gguf *gguf;
        hdl_gguf_tensor tensor;
        hd_model *model;
        hd_session *session;
        hd_device *device;
        fixture whole = fixture_read(files[f]);
        assert_int_equal(hdl_gguf_open(files[f], NULL, &gguf, NULL), HD_OK);
        assert_true(hdl_gguf_find_tensor(gguf, "blk.1.ffn_up.weight", &tensor));
        hdl_gguf_close(gguf);
        whole.bytes[tensor.offset + 100] = 0xFF;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/m.gguf", folder);
        snprintf(to, sizeof to, "%s/kernel_config.ini", folder);
        snprintf(from, sizeof from, FOLDER "%s/kernel_config.ini", types[f]);
        FILE *file = fopen(path, "wb");
        assert_true(file && fwrite(whole.bytes, 1, whole.count, file) == whole.count && fclose(file) == 0);
        if (f > 0) assert_int_equal(symlink(from, to), 0);
        CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
        CHECK(hd_model_open(context, path, NULL, &model));
        assert_int_equal(hd_session_create(model, &(hd_session_desc){ .device = device, .context = 64 }, &session), HD_STATUS_PARSE);
        const char *text = hd_context_error(context);
        if (!strstr(text, "blk.1.ffn_up.weight") || !strstr(text, types[f])) fail_msg("%s", text);
        hd_model_close(model);
        hd_device_close(device);
        unlink(to);
        if (f > 0) { /* without its tiles nothing of it can be read */
            assert_int_equal(hd_model_open(context, path, NULL, &model), HD_STATUS_UNSUPPORTED);
            assert_non_null(strstr(hd_context_error(context), "blk.0.attn_q.weight"));
        }
        unlink(path);
        rmdir(folder);
        fixture_free(&whole);
    }
}

/* The same bytes beside another kernel_config.ini: only what is not cut into tiles is shared. */
static void other_tiles_are_other_weights(void **state) {
    (void)state;
    char folder[] = "/tmp/heddle-ternary-XXXXXX", path[64], beside[64];
    hd_model *model, *same, *other;
    hd_model_info info;
    uint64_t all, some;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(beside, sizeof beside, "%s/kernel_config.ini", folder);
    assert_int_equal(symlink(files[1], path), 0);
    FILE *file = fopen(beside, "wb");
    assert_non_null(file);
    fputs("[a]\nm = 256\nk = 256\nbm = 64\nbk = 64\nbmm = 64\n[b]\nm = 64\nk = 256\nbm = 64\nbk = 128\nbmm = 32\n", file);
    assert_int_equal(fclose(file), 0);
    CHECK(hd_model_open(context, files[1], NULL, &model));
    CHECK(hd_model_open(context, files[1], NULL, &same));
    CHECK(hd_model_open(context, path, NULL, &other));
    CHECK(hd_model_get_info(model, &info));
    CHECK(hd_model_shared_bytes(model, same, &all));
    CHECK(hd_model_shared_bytes(model, other, &some));
    assert_true(all > info.weight_bytes - 4096);
    assert_in_range(some, 300 * 256 * 2, 300 * 256 * 2 + 16384); /* the embedding and the norms */
    hd_model_close(model);
    hd_model_close(same);
    hd_model_close(other);
    unlink(beside);
    unlink(path);
    rmdir(folder);
}

/* What quantising makes of them is one file, whatever they lay in; and its numbers are those of the weights' tq2_0. */
static void other_types_are_made_of_them(void **state) {
    (void)state;
    static const char *const keep[] = { "attn_q" };
    char folder[] = "/tmp/heddle-ternary-XXXXXX", path[64];
    hdl_gguf *made, *origin;
    hd_error error = { 0 };
    fixture first = { 0 };
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    for (int f = 0; f < FILES; f++) {
        CHECK(hd_model_quantize(context, files[f], path, &(hd_quantize_desc){ .type = "f32" }));
        fixture one = fixture_read(path);
        if (f == 0) first = one;
        else assert_true(one.count == first.count && memcmp(one.bytes, first.bytes, one.count) == 0);
        if (f > 0) fixture_free(&one);
    }
    assert_int_equal(hdl_gguf_open(path, NULL, &made, &error), HD_OK);
    assert_int_equal(hdl_gguf_open(HEDDLE_TESTS_DIR "/llm/models/bitnet_wide_tq2_0.gguf", NULL, &origin, &error), HD_OK);
    int compared = 0;
    for (uint32_t i = 0; i < hdl_gguf_get_info(origin).tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(origin, i);
        hdl_gguf_tensor other;
        hdl_span blocks, numbers;
        char name[65] = "";
        if (tensor.type != HDL_GGUF_TYPE_TQ2_0) continue;
        memcpy(name, tensor.name.bytes, tensor.name.count);
        assert_true(hdl_gguf_find_tensor(made, name, &other) && other.type == HDL_GGUF_TYPE_F32);
        assert_int_equal(hdl_gguf_data(origin, &tensor, &blocks, &error), HD_OK);
        assert_int_equal(hdl_gguf_data(made, &other, &numbers, &error), HD_OK);
        float *values = malloc(numbers.count);
        assert_int_equal(hd_dequantize(HD_TQ2_0, blocks.bytes, numbers.count / 4, values), HD_OK);
        for (uint64_t k = 0; k < numbers.count / 4; k++) assert_true(values[k] == ((const float *)(const void *)numbers.bytes)[k]);
        free(values);
        compared++;
    }
    assert_int_equal(compared, 14);
    hdl_gguf_close(made);
    hdl_gguf_close(origin);
    assert_int_equal(hd_model_quantize(context, files[2], path, &(hd_quantize_desc){ .type = "tq2_0", .keep = keep, .keep_count = 1 }),
                     HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(hd_context_error(context), "'blk.0.attn_q.weight' cannot keep the type tl2"));
    fixture_free(&first);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc && i <= MOST; i++) places[(place_count = i) - 1] = argv[i];
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type_gives_the_same_bits), cmocka_unit_test(files_are_described),
                                        cmocka_unit_test(wrong_codes_are_refused_by_name), cmocka_unit_test(other_types_are_made_of_them),
                                        cmocka_unit_test(other_tiles_are_other_weights) };
    return cmocka_run_group_tests_name("ternary", tests, open_context, close_context);
}
