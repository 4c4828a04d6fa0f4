/* test_session_file.c: sequences written to files and read again: in exact mode the same bits go on; what does not belong is
 * refused, and no file, however mutilated, is taken or does harm. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "fixture.h"
#include "llm/sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { CONTEXT = 600, TOKENS = 270 }; /* more than one page */

static hd_context *context;
static char folder[] = "/tmp/heddle-session-XXXXXX", path[64];

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/sequence", folder);
    return hd_context_create(NULL, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    remove(path);
    return rmdir(folder); /* nothing is left over */
}

static hd_model *open_model(const char *name) {
    hd_model *model;
    char file[512];
    snprintf(file, sizeof file, "%s/%s", HEDDLE_TESTS_DIR, name);
    CHECK(hd_model_open(context, file, NULL, &model));
    return model;
}
static hd_session *open_session(hd_model *model, hd_session_desc desc) {
    hd_session *session;
    if (!desc.context) desc.context = CONTEXT;
    CHECK(hd_session_create(model, &desc, &session));
    return session;
}

/* A sequence of tokens, in pieces of all sizes. */
static void fill(hd_session *session, uint32_t sequence, uint32_t count) {
    int32_t tokens[TOKENS];
    for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)((i * 37 + i / 7) % 250);
    for (uint32_t at = 0, piece = 1; at < count; at += piece, piece = piece * 3 % 101 + 1) {
        if (piece > count - at) piece = count - at;
        CHECK(hd_session_feed(session, sequence, tokens + at, piece));
    }
}

/* The scores behind the next tokens, those that are the best each time. */
static void go_on(hd_session *session, uint32_t sequence, uint32_t vocabulary, int32_t best[8], float *scores) {
    for (uint32_t i = 0; i < 8; i++) {
        const float *logits;
        CHECK(hd_session_best(session, sequence, &best[i]));
        CHECK(hd_session_feed(session, sequence, &best[i], 1));
        CHECK(hd_session_logits(session, sequence, &logits));
        memcpy(scores + (size_t)i * vocabulary, logits, vocabulary * sizeof *logits);
    }
}

/* Saved by one session and loaded by another: on the other device too, into another sequence, with layers elsewhere. */
static void goes_on_with_the_same_bits(void **state) {
    (void)state;
    hd_model *model = open_model("../models/demo.gguf");
    hd_model_info info;
    CHECK(hd_model_get_info(model, &info));
    float *scores = calloc((size_t)16 * info.vocabulary, sizeof *scores), *again = scores + (size_t)8 * info.vocabulary;
    int32_t best[8], best_again[8], held[TOKENS];
    hd_device *cpu, *vulkan = NULL;
    hd_error ignored;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &vulkan)) hd_context_take_error(context, &ignored);
    hd_session *first = open_session(model, (hd_session_desc){ .device = cpu, .math = HD_MATH_EXACT });
    fill(first, 0, TOKENS);
    CHECK(hd_session_save(first, 0, path));
    go_on(first, 0, info.vocabulary, best, scores);
    for (int place = 0; place < (vulkan ? 2 : 1); place++) {
        hd_session *second = open_session(model, (hd_session_desc){ .device = place ? vulkan : cpu,
                                                                    .math = HD_MATH_EXACT,
                                                                    .sequences = place ? 1 : 3,
                                                                    .device_layers = place ? 3 : 0 });
        const uint32_t sequence = place ? 0 : 2;
        size_t count = TOKENS;
        fill(second, sequence, 40); /* what it held is gone */
        CHECK(hd_session_load(second, sequence, path));
        assert_int_equal(hd_session_position(second, sequence), TOKENS);
        CHECK(hd_session_tokens(second, sequence, held, &count));
        assert_int_equal(count, TOKENS);
        for (uint32_t i = 0; i < TOKENS; i++) assert_int_equal(held[i], (i * 37 + i / 7) % 250);
        count = 7;
        assert_int_equal(hd_session_tokens(second, sequence, held, &count), HD_STATUS_LIMIT);
        hd_context_take_error(context, &ignored);
        go_on(second, sequence, info.vocabulary, best_again, again);
        assert_memory_equal(best, best_again, sizeof best);
        assert_memory_equal(scores, again, (size_t)8 * info.vocabulary * sizeof *scores);
        /* a file of its own says the same of what was loaded */
        CHECK(hd_session_rewind(second, sequence, TOKENS));
        CHECK(hd_session_save(second, sequence, path));
        hd_session_destroy(second);
    }
    free(scores);
    hd_session_destroy(first);
    hd_device_close(vulkan);
    hd_device_close(cpu);
    hd_model_close(model);
}

static void refuse(hd_session *session, uint32_t sequence, hd_status status, const char *words) {
    hd_error error;
    const uint32_t before = hd_session_position(session, sequence);
    const hd_status got = hd_session_load(session, sequence, path);
    hd_context_take_error(context, &error);
    if (got != status || !strstr(error.text, words)) fail_msg("%d: %s, and not %d: %s", got, error.text, status, words);
    assert_int_equal(hd_session_position(session, sequence), before); /* as it was */
}

static void refusals(void **state) {
    (void)state;
    hd_error ignored;
    hd_model *demo = open_model("../models/demo.gguf"), *llama = open_model("llm/models/llama_f32.gguf");
    hd_session *exact = open_session(demo, (hd_session_desc){ .math = HD_MATH_EXACT, .sequences = 2 }),
               *fast = open_session(demo, (hd_session_desc){ 0 });
    hd_session *other = open_session(llama, (hd_session_desc){ .math = HD_MATH_EXACT, .context = 64 });
    hd_session *small = open_session(demo, (hd_session_desc){ .math = HD_MATH_EXACT, .context = 100 });
    assert_int_equal(hd_session_save(exact, 0, path), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_session_save(exact, 2, path), HD_STATUS_INVALID_ARGUMENT);
    fill(exact, 0, 150);
    assert_int_equal(hd_session_save(exact, 0, "/nosuch/folder/file"), HD_STATUS_IO);
    hd_context_take_error(context, &ignored);
    CHECK(hd_session_save(exact, 0, path));
    fill(fast, 0, 20);
    refuse(fast, 0, HD_STATUS_UNSUPPORTED, "saved in exact mode");
    refuse(other, 0, HD_STATUS_UNSUPPORTED, "another model");
    refuse(small, 0, HD_STATUS_LIMIT, "150 tokens");
    refuse(exact, 2, HD_STATUS_INVALID_ARGUMENT, "sequence 2");
    remove(path);
    refuse(exact, 0, HD_STATUS_IO, "no such file");
    hd_session_destroy(exact);
    hd_session_destroy(fast);
    hd_session_destroy(other);
    hd_session_destroy(small);
    hd_model_close(demo);
    hd_model_close(llama);
}

static uint64_t random_state;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(31, random_state++) % limit); }

static void write_file(const uint8_t *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

/* Bytes changed, cut off, put in; and what only the head says changed with a sum that fits is for the checks of the head. */
static void mutations(void **state) {
    (void)state;
    hd_model *model = open_model("../models/demo.gguf");
    hd_session *session = open_session(model, (hd_session_desc){ .math = HD_MATH_EXACT });
    static uint8_t whole[1 << 20], changed[(1 << 20) + 64];
    fill(session, 0, 3);
    CHECK(hd_session_save(session, 0, path));
    FILE *file = fopen(path, "rb");
    const size_t count = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_true(count > 1000 && count < sizeof whole);
    for (int round = 0; round < 300; round++) {
        size_t now = count;
        hd_error error;
        memcpy(changed, whole, count);
        const uint32_t kind = below(4), at = below(round % 2 ? 60 : (uint32_t)count);
        if (kind == 0) now = at;
        else if (kind == 1) memset(changed + now, (int)below(256), 1 + below(60)), now += 1 + below(60);
        else if (kind == 2) memcpy(changed + below((uint32_t)count - 8), "\xff\xff\xff\xff\x7f\0\0\0", 1 + below(8));
        else changed[at] ^= (uint8_t)(1 << below(8));
        if (now == count && memcmp(changed, whole, count) == 0) continue;
        write_file(changed, now);
        const hd_status status = hd_session_load(session, 0, path);
        hd_context_take_error(context, &error);
        if (status == HD_OK || !error.text[0]) fail_msg("round %d: a file of %zu bytes was taken", round, now);
        assert_int_equal(hd_session_position(session, 0), 3);
    }
    write_file(whole, count);
    CHECK(hd_session_load(session, 0, path));
    hd_session_destroy(session);
    hd_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(goes_on_with_the_same_bits), cmocka_unit_test(refusals),
                                        cmocka_unit_test(mutations) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
