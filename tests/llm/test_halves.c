/* test_halves.c: more memory for prompts where there is room, on the stand-in for CUDA: large pieces, and copies of quantised
 * weights in f16 for its library of products, told before, given up where memory runs out; the answer is the same within f16. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { TOKENS = 40 };
static const char *const names[] = { "qwen3_q4_0", "qwen3_q8_0" };

typedef struct opened {
    hd_context *context;
    hd_device  *device;
    hd_model   *model;
} opened;

static opened open_on(const char *device, const char *name) {
    opened o = { 0 };
    char path[512];
    snprintf(path, sizeof path, HEDDLE_TESTS_DIR "/llm/models/%s.gguf", name);
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &o.context), HD_OK);
    if (hd_device_open(o.context, &(hd_device_desc){ .id = device }, &o.device)) fail_msg("%s", hd_context_error(o.context));
    assert_int_equal(hd_model_open(o.context, path, NULL, &o.model), HD_OK);
    return o;
}

static uint32_t vocabulary_of(const opened *o) {
    hd_model_info info;
    assert_int_equal(hd_model_get_info(o->model, &info), HD_OK);
    return info.vocabulary;
}

static void close_all(opened *o) {
    hd_model_close(o->model);
    hd_context_destroy(o->context);
}

/* The scores behind a prompt; a status where the session cannot be made. */
static hd_status answer(opened *o, const hd_session_desc *desc, float **out_logits, hd_fit *out_fit) {
    int32_t tokens[TOKENS];
    const uint32_t vocabulary = vocabulary_of(o);
    hd_session *session = NULL;
    const float *logits;
    *out_logits = NULL;
    for (int i = 0; i < TOKENS; i++) tokens[i] = (int32_t)((uint32_t)(i * 37 + 11) % vocabulary);
    hd_status status = hd_session_create(o->model, desc, &session);
    if (!status) status = hd_session_feed(session, 0, tokens, TOKENS);
    if (!status) status = hd_session_logits(session, 0, &logits);
    if (!status) {
        *out_logits = malloc(vocabulary * sizeof **out_logits);
        memcpy(*out_logits, logits, vocabulary * sizeof **out_logits);
        assert_int_equal(hd_session_get_fit(session, out_fit), HD_OK);
    }
    hd_session_destroy(session);
    return status;
}

static double likeness(const float *a, const float *b, uint32_t count) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < count; i++) ab += (double)a[i] * b[i], aa += (double)a[i] * a[i], bb += (double)b[i] * b[i];
    return ab / sqrt(aa * bb);
}

static void told_and_right(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        opened cpu = open_on("cpu", names[i]), cuda = open_on("cuda", names[i]);
        const uint32_t vocabulary = vocabulary_of(&cpu);
        assert_int_equal(hd_device_get_info(cpu.device)->half_rows, 0);
        assert_int_equal(hd_device_get_info(cuda.device)->half_rows, 16);
        const hd_session_desc on_cpu = { .device = cpu.device, .math = HD_MATH_EXACT }, wide = { .device = cuda.device };
        float *right, *with, *without;
        hd_fit told, fit;
        assert_int_equal(answer(&cpu, &on_cpu, &right, &fit), HD_OK);
        assert_int_equal(fit.device_half_bytes, 0);
        assert_int_equal(hd_model_fit(cuda.model, &wide, &told), HD_OK);
        assert_true(told.device_half_bytes > 0);
        assert_int_equal(told.device_bytes, told.device_weight_bytes + told.device_cache_bytes + told.device_scratch_bytes);
        assert_int_equal(answer(&cuda, &wide, &with, &fit), HD_OK);
        assert_memory_equal(&fit, &told, sizeof fit);
        /* All of it takes no more than half, else there are no copies. */
        hd_session_desc narrow = { .device = cuda.device, .memory_bytes = 2 * told.device_bytes };
        assert_int_equal(hd_model_fit(cuda.model, &narrow, &fit), HD_OK);
        assert_int_equal(fit.device_half_bytes, told.device_half_bytes);
        narrow.memory_bytes--;
        assert_int_equal(answer(&cuda, &narrow, &without, &fit), HD_OK);
        assert_int_equal(fit.device_half_bytes, 0);
        const hd_session_desc exact = { .device = cuda.device, .math = HD_MATH_EXACT }, short_ones = { .device = cuda.device, .chunk = 8 };
        assert_int_equal(hd_model_fit(cuda.model, &exact, &fit), HD_OK);
        assert_int_equal(fit.device_half_bytes, 0);
        assert_int_equal(hd_model_fit(cuda.model, &short_ones, &fit), HD_OK);
        assert_int_equal(fit.device_half_bytes, 0);
        assert_true(likeness(with, without, vocabulary) > 0.999999); /* which makes them f16 each time */
        assert_true(likeness(right, with, vocabulary) > 0.999);      /* which rounds what they are multiplied with to 8 bits */
        free(right);
        free(with);
        free(without);
        close_all(&cpu);
        close_all(&cuda);
    }
}

static uint32_t chunk_of(const opened *o, const hd_session_desc *desc, uint64_t *out_bytes) {
    hd_fit fit;
    assert_int_equal(hd_model_fit(o->model, desc, &fit), HD_OK);
    if (out_bytes) *out_bytes = fit.device_bytes;
    return fit.chunk;
}

/* Prompts begin with pieces of 2,048 rows where all takes no more than half of a GPU's memory with them. */
static void large_pieces(void **state) {
    (void)state;
    opened cpu = open_on("cpu", names[0]), cuda = open_on("cuda", names[0]);
    hd_session_desc desc = { .device = cuda.device, .context = 4096, .math = HD_MATH_EXACT };
    uint64_t bytes;
    assert_int_equal(chunk_of(&cuda, &desc, &bytes), 2048);
    desc.memory_bytes = 2 * bytes;
    assert_int_equal(chunk_of(&cuda, &desc, NULL), 2048);
    desc.memory_bytes--;
    assert_int_equal(chunk_of(&cuda, &desc, NULL), 512);
    desc.memory_bytes = 0;
    desc.context = 1000;
    assert_int_equal(chunk_of(&cuda, &desc, NULL), 1024);
    desc.context = 4096;
    desc.chunk = 512;
    assert_int_equal(chunk_of(&cuda, &desc, NULL), 512);
    desc.chunk = 0;
    desc.pieces[0] = 64;
    assert_int_equal(chunk_of(&cuda, &desc, NULL), 64);
    assert_int_equal(chunk_of(&cpu, &(hd_session_desc){ .device = cpu.device, .context = 4096 }, NULL), 512);
    close_all(&cpu);
    close_all(&cuda);
}

/* The device's memory ends at one allocation after the other. */
static void given_up(void **state) {
    (void)state;
    unsigned without = 0, with = 0;
    for (unsigned n = 1; n < 64 && !with; n++) {
        char fault[80]; /* what is refused once is asked for again, without what lay idle */
        snprintf(fault, sizeof fault, "alloc:%u:out-of-device-memory,alloc:%u:out-of-device-memory", n, n + 1);
        setenv("HEDDLE_FAULT", fault, 1);
        opened o = open_on("cuda", names[1]);
        float *logits;
        hd_fit fit = { 0 };
        const hd_status status = answer(&o, &(hd_session_desc){ .device = o.device }, &logits, &fit);
        assert_true(status == HD_OK || status == HD_STATUS_OUT_OF_DEVICE_MEMORY);
        if (!status) {
            for (uint32_t i = 0; i < vocabulary_of(&o); i++) assert_true(isfinite(logits[i]));
            assert_int_equal(fit.device_bytes, fit.device_weight_bytes + fit.device_cache_bytes + fit.device_scratch_bytes);
            *(fit.device_half_bytes ? &with : &without) += 1;
        }
        free(logits);
        close_all(&o);
    }
    unsetenv("HEDDLE_FAULT");
    assert_true(without > 0);
    assert_true(with > 0); /* the fault came after all that was allocated */
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(told_and_right), cmocka_unit_test(large_pieces), cmocka_unit_test(given_up) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
