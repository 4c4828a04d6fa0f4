/* test_cache_types.c: caches of keys and values in each type: the same tokens, bits and files on every device, the memory that is
 * told, files of another type refused, and guesses, shifted contexts and steps of several sequences as with f16. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { CONTEXT = 300, TOKENS = 270, MORE = 8, HELD = 60 }; /* more than one page */
static const hd_dtype types[] = { HD_F32, HD_F16, HD_Q8_0, HD_Q4_0 };
enum { TYPES = sizeof types / sizeof *types, FIRST_BLOCKS = 2 };

static hd_context *context;
static hd_model *model;
static hd_model_info info;
static char folder[] = "/tmp/heddle-cache-XXXXXX", path[64];

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}
/* The call's status is this, and its text has these words. */
static void refused(hd_status got, hd_status status, const char *words) {
    hd_error error;
    hd_context_take_error(context, &error);
    if (got != status || !strstr(error.text, words)) fail_msg("%d: %s, and not %d: %s", got, error.text, status, words);
}

static int begin(void **state) {
    (void)state;
    if (!mkdtemp(folder) || hd_context_create(NULL, &context)) return -1;
    snprintf(path, sizeof path, "%s/sequence", folder);
    if (hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model)) return -1;
    return hd_model_get_info(model, &info) ? -1 : 0;
}
static int end(void **state) {
    (void)state;
    hd_model_close(model);
    hd_context_destroy(context);
    remove(path);
    return rmdir(folder);
}

static hd_session *open_session(hd_device *device, hd_dtype type, hd_session_desc desc) {
    hd_session *session;
    desc.device = device;
    desc.cache_type = type;
    desc.math = HD_MATH_EXACT;
    if (!desc.context) desc.context = CONTEXT;
    desc.chunk = 8; /* few plans */
    CHECK(hd_session_create(model, &desc, &session));
    return session;
}
static int32_t token_at(uint32_t place) { return (int32_t)((place * 37 + place / 7) % 250); }
static void fill(hd_session *session, uint32_t sequence, uint32_t count) {
    int32_t tokens[TOKENS];
    for (uint32_t i = 0; i < count; i++) tokens[i] = token_at(i);
    CHECK(hd_session_feed(session, sequence, tokens, count));
}

/* What a session gives: tokens and scores behind those that it was told, and its file. */
typedef struct given {
    int32_t best[MORE];
    float  *scores;
    fixture file;
} given;
static given use(hd_device *device, hd_dtype type) {
    hd_session *session = open_session(device, type, (hd_session_desc){ 0 });
    given g = { .scores = calloc((size_t)MORE * info.vocabulary, sizeof *g.scores) };
    assert_non_null(g.scores);
    fill(session, 0, TOKENS);
    for (uint32_t i = 0; i < MORE; i++) {
        const float *logits;
        CHECK(hd_session_best(session, 0, &g.best[i]));
        CHECK(hd_session_feed(session, 0, &g.best[i], 1));
        CHECK(hd_session_logits(session, 0, &logits));
        memcpy(g.scores + (size_t)i * info.vocabulary, logits, info.vocabulary * sizeof *logits);
    }
    CHECK(hd_session_save(session, 0, path));
    g.file = fixture_read(path);
    hd_session_destroy(session);
    return g;
}
static void forget(given *g) {
    free(g->scores);
    fixture_free(&g->file);
}

static void devices_agree(void **state) {
    (void)state;
    static const char *const ids[] = { "cpu", "vulkan", "opencl" };
    given cpu[TYPES];
    for (uint32_t d = 0; d < sizeof ids / sizeof *ids; d++) {
        hd_device *device;
        hd_error ignored;
        if (hd_device_open(context, &(hd_device_desc){ .id = ids[d] }, &device)) {
            hd_context_take_error(context, &ignored);
            print_message("no %s here\n", ids[d]);
            continue;
        }
        for (uint32_t t = d ? FIRST_BLOCKS : 0; t < TYPES; t++) { /* f16 is test_session_file's */
            given g = use(device, types[t]);
            if (d == 0) {
                cpu[t] = g;
                continue;
            }
            assert_memory_equal(g.best, cpu[t].best, sizeof g.best);
            assert_memory_equal(g.scores, cpu[t].scores, (size_t)MORE * info.vocabulary * sizeof *g.scores);
            assert_int_equal(g.file.count, cpu[t].file.count);
            assert_memory_equal(g.file.bytes, cpu[t].file.bytes, g.file.count);
            forget(&g);
        }
        hd_device_close(device);
    }
    double square[TYPES] = { 0 }, size = 0; /* of what the scores are off, and of the scores */
    for (size_t i = 0; i < (size_t)MORE * info.vocabulary; i++) {
        size += (double)cpu[0].scores[i] * (double)cpu[0].scores[i];
        for (uint32_t t = 0; t < TYPES; t++) square[t] += pow((double)(cpu[t].scores[i] - cpu[0].scores[i]), 2);
    }
    for (uint32_t t = 1; t < TYPES; t++) print_message("%s: scores off by %.5f of their size\n", hd_dtype_name(types[t]), sqrt(square[t] / size));
    assert_true(square[1] < square[2] && square[2] < square[3] && sqrt(square[2] / size) < 0.02);
    for (uint32_t t = 0; t < TYPES; t++) forget(&cpu[t]);
}

static void memory_is_told(void **state) {
    (void)state;
    hd_device *cpu;
    hd_fit fit[TYPES], own;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    for (uint32_t t = 0; t < TYPES; t++) CHECK(hd_model_fit(model, &(hd_session_desc){ .device = cpu, .cache_type = types[t] }, &fit[t]));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = cpu }, &own));
    assert_int_equal(own.cpu_cache_bytes, fit[1].cpu_cache_bytes);
    assert_int_equal(fit[0].cpu_cache_bytes, 2 * fit[1].cpu_cache_bytes);
    assert_int_equal(32 * fit[2].cpu_cache_bytes, 17 * fit[1].cpu_cache_bytes);
    assert_int_equal(32 * fit[3].cpu_cache_bytes, 9 * fit[1].cpu_cache_bytes);
    hd_device_close(cpu);
}

static void wishes_are_checked(void **state) {
    (void)state;
    hd_session *session;
    hd_fit fit;
    hd_model *narrow; /* heads of 40 */
    refused(hd_session_create(model, &(hd_session_desc){ .cache_type = HD_Q4_K }, &session), HD_STATUS_INVALID_ARGUMENT, "f32, f16, q8_0 or q4_0");
    refused(hd_session_create(model, &(hd_session_desc){ .cache_type = (hd_dtype)999 }, &session), HD_STATUS_INVALID_ARGUMENT, "f32, f16, q8_0 or q4_0");
    CHECK(hd_model_open(context, HEDDLE_TESTS_DIR "/llm/models/llama_f32.gguf", NULL, &narrow));
    refused(hd_session_create(narrow, &(hd_session_desc){ .cache_type = HD_Q8_0 }, &session), HD_STATUS_UNSUPPORTED, "heads have 40 elements");
    refused(hd_model_fit(narrow, &(hd_session_desc){ .cache_type = HD_Q4_0 }, &fit), HD_STATUS_UNSUPPORTED, "blocks of 32");
    CHECK(hd_session_create(narrow, &(hd_session_desc){ .cache_type = HD_F32 }, &session));
    hd_session_destroy(session);
    hd_model_close(narrow);
}

static void write_file(const fixture *file) {
    FILE *out = fopen(path, "wb");
    assert_true(out && fwrite(file->bytes, 1, file->count, out) == file->count && fclose(out) == 0);
}
/* A file goes on where its type is the session's. Where only its head says so it is found out by its length. */
static void files_have_their_type(void **state) {
    (void)state;
    enum { TYPE_AT = 36 }; /* of the head */
    hd_device *cpu;
    hd_session *sessions[TYPES];
    fixture files[TYPES];
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    for (uint32_t t = 0; t < TYPES; t++) {
        sessions[t] = open_session(cpu, types[t], (hd_session_desc){ 0 });
        fill(sessions[t], 0, HELD);
        CHECK(hd_session_save(sessions[t], 0, path));
        files[t] = fixture_read(path);
    }
    for (uint32_t t = 0; t < TYPES; t++)
        for (uint32_t other = 0; other < TYPES; other++) {
            int32_t best, again;
            write_file(&files[other]);
            if (t != other) {
                refused(hd_session_load(sessions[t], 0, path), HD_STATUS_UNSUPPORTED, "another type than this session's");
                memcpy(files[other].bytes + TYPE_AT, files[t].bytes + TYPE_AT, 4);
                write_file(&files[other]);
                refused(hd_session_load(sessions[t], 0, path), HD_STATUS_PARSE, "not whole");
                const uint32_t unknown = 99, own = types[other] == HD_F16 ? 0 : (uint32_t)types[other];
                memcpy(files[other].bytes + TYPE_AT, &unknown, sizeof unknown);
                write_file(&files[other]);
                refused(hd_session_load(sessions[t], 0, path), HD_STATUS_UNSUPPORTED, "another type");
                memcpy(files[other].bytes + TYPE_AT, &own, sizeof own);
                continue;
            }
            CHECK(hd_session_best(sessions[t], 0, &best));
            CHECK(hd_session_rewind(sessions[t], 0, 0));
            CHECK(hd_session_load(sessions[t], 0, path));
            CHECK(hd_session_best(sessions[t], 0, &again));
            assert_int_equal(best, again);
        }
    for (uint32_t t = 0; t < TYPES; t++) {
        hd_session_destroy(sessions[t]);
        fixture_free(&files[t]);
    }
    hd_device_close(cpu);
}

/* Scores of a sequence alone that was told these tokens. */
static const float *alone(hd_session *session, const int32_t *tokens, size_t count) {
    const float *logits;
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_session_feed(session, 0, tokens, count));
    CHECK(hd_session_logits(session, 0, &logits));
    return logits;
}

static void all_else_goes_on(void **state) {
    (void)state;
    enum { KEEP = 5, DROP = 20, ANSWER = 40 };
    hd_device *cpu;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    for (uint32_t t = FIRST_BLOCKS; t < TYPES; t++) {
        hd_session *session = open_session(cpu, types[t], (hd_session_desc){ .sequences = 2 });
        hd_session *one = open_session(cpu, types[t], (hd_session_desc){ 0 });
        hd_session *guessing = open_session(cpu, types[t], (hd_session_desc){ .draft = HD_DRAFT_LOOKUP });
        const size_t bytes = info.vocabulary * sizeof(float);
        const float *logits;
        int32_t tokens[HELD + 1], said[2][ANSWER];
        for (uint32_t i = 0; i < HELD; i++) tokens[i] = token_at(i % 20);
        CHECK(hd_session_feed(session, 1, tokens, HELD)); /* two sequences in one step */
        CHECK(hd_session_feed(session, 0, tokens, HELD - 1));
        CHECK(hd_session_step(session, (hd_step[]){ { 0, tokens[HELD - 1] }, { 1, 7 } }, 2));
        CHECK(hd_session_logits(session, 0, &logits));
        assert_memory_equal(logits, alone(one, tokens, HELD), bytes);
        CHECK(hd_session_shift(session, 0, KEEP, DROP));
        CHECK(hd_session_logits(session, 0, &logits));
        memmove(tokens + KEEP, tokens + KEEP + DROP, (HELD - KEEP - DROP) * sizeof *tokens);
        assert_memory_equal(logits, alone(one, tokens, HELD - DROP), bytes);
        for (uint32_t k = 0; k < 2; k++) {
            hd_generated made;
            const hd_generate_desc wish = { .max_tokens = ANSWER, .ignore_end = 1, .tokens = tokens, .token_count = HELD - DROP };
            CHECK(hd_session_rewind(k ? guessing : one, 0, 0));
            CHECK(hd_generate(k ? guessing : one, &wish, said[k], &made));
            assert_int_equal(made.token_count, ANSWER);
        }
        assert_memory_equal(said[0], said[1], sizeof said[0]);
        hd_session_destroy(session);
        hd_session_destroy(one);
        hd_session_destroy(guessing);
    }
    hd_device_close(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(devices_agree), cmocka_unit_test(memory_is_told), cmocka_unit_test(wishes_are_checked),
                                        cmocka_unit_test(files_have_their_type), cmocka_unit_test(all_else_goes_on) };
    return cmocka_run_group_tests(tests, begin, end);
}
