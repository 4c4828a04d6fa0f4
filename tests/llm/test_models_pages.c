/* test_models_pages.c: sequences that share one cache of pages. They grow in turn, so that their pages lie anywhere, and each
 * gets the bits that it gets alone; so do those that begin alike and share pages; a full cache is told, changes nothing, and goes on after a rewind. */
#include "llm/model_reference.h"
#include "llm/session.h"
#include <heddle_llm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { PAGE = 256, PAGES = 5, CONTEXT = 3 * PAGE, SEQUENCES = 3, CHUNK = 128 };

static hd_context *context;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}
static void is_full(hd_status status) {
    assert_int_equal(status, HD_STATUS_LIMIT);
    assert_non_null(strstr(hd_context_error(context), "the cache is full"));
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(NULL, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

static hd_model *open_model(model_reference *r) {
    hd_model *model;
    assert_int_equal(model_reference_read("qwen3_q8_0", r), 0);
    CHECK(hd_model_open(context, r->path, NULL, &model));
    return model;
}

/* The token at a place of a sequence: each has words of its own. */
static int32_t token_at(uint32_t sequence, uint32_t place, uint32_t vocabulary) {
    return (int32_t)((place * 7 + place / 5 + 31 * sequence) % vocabulary);
}

/* The sequence grows to `length` tokens. */
static hd_status grow(hd_session *session, uint32_t sequence, uint32_t length, uint32_t vocabulary) {
    int32_t tokens[CONTEXT];
    const uint32_t first = hd_session_position(session, sequence);
    for (uint32_t i = first; i < length; i++) tokens[i - first] = token_at(sequence, i, vocabulary);
    return hd_session_feed(session, sequence, tokens, length - first);
}

static void in_turn(const char *backend) {
    hd_device *device;
    model_reference r;
    hd_session *session, *lone;
    if (hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) {
        (void)hd_context_error(context);
        return;
    }
    hd_model *model = open_model(&r);
    const hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = CONTEXT, .chunk = CHUNK };
    hd_session_desc shared = desc;
    shared.sequences = SEQUENCES;
    shared.cache_tokens = (PAGES - 1) * PAGE + 1; /* rounded up */
    CHECK(hd_session_create(model, &shared, &session));
    const uint32_t v = r.vocabulary;
    CHECK(grow(session, 0, 200, v));
    CHECK(grow(session, 1, 100, v));
    CHECK(grow(session, 2, 250, v)); /* a page each */
    CHECK(grow(session, 0, 300, v));
    CHECK(grow(session, 2, 256, v));
    CHECK(grow(session, 2, 257, v)); /* two, one, two: all five */
    CHECK(grow(session, 1, 256, v));
    is_full(grow(session, 1, 260, v));
    const int32_t next[SEQUENCES] = { token_at(0, 300, v), token_at(1, 256, v), token_at(2, 257, v) };
    is_full(hd_session_step(session, (hd_step[]){ { 0, next[0] }, { 1, next[1] } }, 2));
    assert_int_equal(hd_session_position(session, 0), 300);
    assert_int_equal(hd_session_position(session, 1), 256);
    CHECK(hd_session_step(session, (hd_step[]){ { 2, next[2] }, { 0, next[0] } }, 2)); /* within their pages */
    CHECK(hd_session_rewind(session, 0, 90)); /* a page is free */
    CHECK(grow(session, 1, 300, v));
    is_full(grow(session, 0, 257, v));
    CHECK(hd_session_rewind(session, 2, 40));
    CHECK(grow(session, 0, 310, v));
    CHECK(grow(session, 2, 60, v));
    /* Tables are now 0 4, 1 3 and 2. All go on together. */
    const uint32_t lengths[SEQUENCES] = { 310, 300, 60 };
    hd_step steps[SEQUENCES];
    for (uint32_t s = 0; s < SEQUENCES; s++) steps[s] = (hd_step){ s, token_at(s, lengths[s], v) };
    CHECK(hd_session_step(session, steps, SEQUENCES));
    CHECK(hd_session_create(model, &desc, &lone));
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        const float *got, *wanted;
        CHECK(hd_session_rewind(lone, 0, 0));
        int32_t tokens[CONTEXT];
        for (uint32_t i = 0; i <= lengths[s]; i++) tokens[i] = token_at(s, i, v);
        CHECK(hd_session_feed(lone, 0, tokens, lengths[s] + 1));
        CHECK(hd_session_logits(lone, 0, &wanted));
        CHECK(hd_session_logits(session, s, &got));
        assert_memory_equal(got, wanted, v * sizeof *got);
    }
    hd_session_destroy(lone);
    hd_session_destroy(session);
    hd_model_close(model);
    free(r.bytes);
    hd_device_close(device);
}

static void sequences_grow_in_turn(void **state) {
    (void)state;
    in_turn("cpu");
    in_turn("vulkan");
}

/* The bits that come after one more token are those that a lone sequence of the same tokens has. */
static void as_alone(hd_session *session, uint32_t sequence, hd_session *lone, uint32_t v) {
    int32_t tokens[CONTEXT];
    size_t count = CONTEXT;
    const float *got, *wanted;
    CHECK(grow(session, sequence, hd_session_position(session, sequence) + 1, v));
    CHECK(hd_session_tokens(session, sequence, tokens, &count));
    CHECK(hd_session_rewind(lone, 0, 0));
    CHECK(hd_session_feed(lone, 0, tokens, count));
    CHECK(hd_session_logits(lone, 0, &wanted));
    CHECK(hd_session_logits(session, sequence, &got));
    assert_memory_equal(got, wanted, v * sizeof *got);
}

static void share_on(const char *backend) {
    hd_device *device;
    model_reference r;
    hd_session *session, *lone;
    int32_t token;
    if (hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) {
        (void)hd_context_error(context);
        return;
    }
    hd_model *model = open_model(&r);
    const hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = CONTEXT, .chunk = CHUNK };
    hd_session_desc together = desc;
    const uint32_t v = r.vocabulary;
    together.sequences = SEQUENCES;
    together.cache_tokens = PAGES * PAGE;
    CHECK(hd_session_create(model, &desc, &lone));
    CHECK(hd_session_create(model, &together, &session));
    CHECK(grow(session, 0, 2 * PAGE + 40, v)); /* three of five pages */
    assert_int_equal(hd_session_share(session, 0, 2 * PAGE + 41, 1), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_share(session, 0, 1, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_share(session, 0, 1, SEQUENCES), HD_STATUS_INVALID_ARGUMENT);
    (void)hd_context_error(context);
    CHECK(hd_session_share(session, 0, 2 * PAGE + 30, 1)); /* one page more, where apart it would be three */
    assert_int_equal(hd_session_position(session, 1), 2 * PAGE + 30);
    as_alone(session, 1, lone, v);
    CHECK(hd_session_share(session, 0, 2 * PAGE, 2));
    assert_int_equal(hd_session_best(session, 2, &token), HD_STATUS_WRONG_STATE);
    (void)hd_context_error(context);
    CHECK(grow(session, 2, 2 * PAGE + 5, v)); /* the last page */
    CHECK(grow(session, 1, 2 * PAGE + 50, v));
    for (uint32_t s = 0; s < SEQUENCES; s++) as_alone(session, s, lone, v);
    /* Back into a page of all three, first where the own last page becomes free for it, then where none is. */
    CHECK(hd_session_rewind(session, 2, PAGE + 9));
    CHECK(grow(session, 2, PAGE + 20, v));
    is_full(grow(session, 2, 2 * PAGE + 1, v));
    CHECK(hd_session_rewind(session, 0, PAGE + 100)); /* the one who had it first */
    for (uint32_t i = PAGE + 100; i < PAGE + 110; i++)
        CHECK(hd_session_feed(session, 0, &(int32_t){ token_at(2, i, v) }, 1));
    for (uint32_t s = 0; s < SEQUENCES; s++) as_alone(session, s, lone, v);
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(grow(session, 2, 2 * PAGE + 1, v)); /* the page that became free */
    is_full(hd_session_share(session, 1, 2 * PAGE + 1, 0));
    assert_int_equal(hd_session_position(session, 0), 0);
    CHECK(hd_session_share(session, 1, 2 * PAGE, 0)); /* none is needed */
    is_full(hd_session_rewind(session, 0, PAGE + 5));
    assert_int_equal(hd_session_position(session, 0), PAGE);
    as_alone(session, 1, lone, v);
    hd_session_destroy(lone);
    hd_session_destroy(session);
    hd_model_close(model);
    free(r.bytes);
    hd_device_close(device);
}

static void what_sequences_begin_with_is_shared(void **state) {
    (void)state;
    share_on("cpu");
    share_on("vulkan");
}

/* The cache to the byte, and never more than the sequences could use. */
static void the_cache_is_as_told(void **state) {
    (void)state;
    static const struct {
        uint64_t wished, pages;
    } wishes[] = { { 0, 9 }, { 1, 1 }, { 256, 1 }, { 257, 2 }, { 5 * 256, 5 }, { 9 * 256 + 1, 9 }, { UINT64_MAX, 9 } };
    model_reference r;
    hd_device *device;
    hd_model *model = open_model(&r);
    hd_model_info info;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    CHECK(hd_model_get_info(model, &info));
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        hd_fit told, taken;
        hd_session *session;
        const hd_session_desc desc = {
            .device = device, .context = CONTEXT - 10, .sequences = SEQUENCES, .cache_tokens = wishes[i].wished
        };
        CHECK(hd_model_fit(model, &desc, &told));
        CHECK(hd_session_create(model, &desc, &session));
        CHECK(hd_session_get_fit(session, &taken));
        assert_memory_equal(&told, &taken, sizeof told);
        assert_int_equal(told.cpu_cache_bytes, wishes[i].pages * PAGE * 4 * info.layers * info.kv_heads * info.head_size);
        hd_session_destroy(session);
    }
    hd_device_close(device);
    hd_model_close(model);
    free(r.bytes);
}

/* Drivers have a largest allocation (4 GiB at most on NVIDIA's Vulkan), so a large cache lies in several, and scores are the same. */
static void a_large_cache_lies_in_pieces(void **state) {
    (void)state;
    const hd_session_desc sizes[] = { { .context = 16384, .sequences = 256, .math = HD_MATH_EXACT },
                                      { .context = CONTEXT, .math = HD_MATH_EXACT } };
    model_reference r;
    float *scores[2];
    hd_device *device;
    hd_model *model = open_model(&r);
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    for (int i = 0; i < 2; i++) {
        hd_session_desc desc = sizes[i];
        const float *got;
        hd_session *session;
        hd_fit fit;
        desc.device = device;
        CHECK(hd_session_create(model, &desc, &session));
        CHECK(hd_session_get_fit(session, &fit));
        assert_true(i == 1 || fit.cpu_cache_bytes > UINT64_C(1) << 29);
        hd_session *inside = session;
        CHECK(hdl_session_find(&inside));
        for (uint32_t k = 0; k < inside->stage.here.buffer_count; k++)
            assert_in_range(hd_buffer_bytes(inside->stage.here.buffers[k]), 1, 1u << 29);
        CHECK(grow(session, 0, PAGE + 9, r.vocabulary));
        CHECK(hd_session_logits(session, 0, &got));
        assert_non_null(scores[i] = malloc(r.vocabulary * sizeof(float)));
        memcpy(scores[i], got, r.vocabulary * sizeof(float));
        hd_session_destroy(session);
    }
    assert_memory_equal(scores[0], scores[1], r.vocabulary * sizeof(float));
    free(scores[0]), free(scores[1]);
    hd_device_close(device);
    hd_model_close(model);
    free(r.bytes);
}

/* An answer ends where the cache does. */
static void answers_end_with_the_cache(void **state) {
    (void)state;
    model_reference r;
    hd_device *device;
    hd_session *session;
    hd_generated made;
    int32_t prompt[250];
    hd_model *model = open_model(&r);
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    CHECK(hd_session_create(model, &(hd_session_desc){ .device = device, .context = CONTEXT, .cache_tokens = PAGE }, &session));
    for (uint32_t i = 0; i < 250; i++) prompt[i] = token_at(0, i, r.vocabulary);
    CHECK(hd_generate(session, &(hd_generate_desc){ .tokens = prompt, .token_count = 250, .ignore_end = 1 }, NULL, &made));
    assert_int_equal(made.stop, HD_STOP_CONTEXT);
    assert_int_equal(made.token_count, 7); /* six more have room, and the last one is not fed */
    assert_int_equal(hd_session_position(session, 0), PAGE);
    hd_session_destroy(session);
    hd_device_close(device);
    hd_model_close(model);
    free(r.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sequences_grow_in_turn),
                                        cmocka_unit_test(what_sequences_begin_with_is_shared),
                                        cmocka_unit_test(the_cache_is_as_told),
                                        cmocka_unit_test(a_large_cache_lies_in_pieces),
                                        cmocka_unit_test(answers_end_with_the_cache) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
