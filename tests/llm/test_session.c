/* test_session.c: steps of several sequences at once. Pieces of prompts run beside next tokens in one submission, only
 * as many rows as are asked for, and each sequence gets the bits that it gets alone. */
#include "llm/model_reference.h"
#include "llm/session.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SEQUENCES = 8, CONTEXT = 512, CHUNK = 32 };

static hd_context *context;

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
    return 0;
}

/* A step of 3 of 8 sequences runs 4 rows. */
static void sizes_are_the_next_ones(void **state) {
    (void)state;
    static const struct { uint32_t sequences, chunk, rows, size, results; } cases[] = {
        { 8, 512, 2, 2, 2 },    { 8, 512, 3, 4, 4 },       { 8, 512, 8, 8, 8 },       { 8, 512, 9, 32, 8 },
        { 8, 512, 33, 128, 8 }, { 8, 512, 500, 512, 8 },   { 6, 8, 5, 6, 6 },         { 6, 8, 7, 8, 6 },
        { 2, 64, 3, 8, 2 },     { 256, 8, 129, 256, 256 }, { 8, 65536, 512, 512, 8 }, { 3, 8, 2, 2, 2 },
        { 3, 8, 3, 3, 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hdl_layout layout = {
            .sequences = cases[i].sequences, .pieces = { cases[i].chunk }, .rows = 1024, .pages = 9
        };
        const hdl_size size = hdl_layout_step(&layout, cases[i].rows);
        assert_int_equal(size.sequences, cases[i].size);
        assert_int_equal(size.results, cases[i].results);
        assert_int_equal(size.tokens, 1);
    }
}

/* The token at a place of a sequence: each has words of its own. */
static int32_t token_at(uint32_t sequence, uint32_t place, uint32_t vocabulary) {
    return (int32_t)((place * 7 + place / 5 + 31 * sequence) % vocabulary);
}

/* Adds the next `count` tokens of a sequence to a step. */
static size_t add(hd_step *steps, size_t at, uint32_t held[SEQUENCES], uint32_t sequence, uint32_t count,
                  uint32_t vocabulary) {
    for (uint32_t i = 0; i < count; i++)
        steps[at++] = (hd_step){ sequence, token_at(sequence, held[sequence]++, vocabulary) };
    return at;
}

/* The scores of all that took part in the last step are those that each gets alone. */
static void compare(hd_session *session, hd_session *lone, const uint32_t held[SEQUENCES], const hd_step *steps,
                    size_t count, uint32_t v) {
    int32_t tokens[CONTEXT];
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        const float *got, *wanted;
        int32_t best, lone_best;
        bool took_part = false;
        for (size_t i = 0; i < count; i++) took_part = took_part || steps[i].sequence == s;
        if (!took_part) continue;
        assert_int_equal(hd_session_position(session, s), held[s]);
        for (uint32_t i = 0; i < held[s]; i++) tokens[i] = token_at(s, i, v);
        CHECK(hd_session_rewind(lone, 0, 0));
        CHECK(hd_session_feed(lone, 0, tokens, held[s]));
        CHECK(hd_session_logits(lone, 0, &wanted));
        CHECK(hd_session_logits(session, s, &got));
        assert_memory_equal(got, wanted, v * sizeof *got);
        CHECK(hd_session_best(lone, 0, &lone_best));
        CHECK(hd_session_best(session, s, &best));
        assert_int_equal(best, lone_best);
    }
}

/* `layers`: on the device, as hd_session_desc.device_layers; the others on the CPU, or travelling. */
static void mixed_on(const char *backend, int layers, int stream) {
    hd_device *device;
    hd_model *model;
    hd_session *session, *lone;
    hd_session_stats before, after;
    model_reference r;
    hd_step steps[CHUNK];
    uint32_t held[SEQUENCES] = { 0 };
    if (hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) {
        (void)hd_context_error(context);
        return;
    }
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    const uint32_t v = r.vocabulary;
    CHECK(hd_model_open(context, r.path, NULL, &model));
    hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = CONTEXT, .chunk = CHUNK };
    CHECK(hd_session_create(model, &desc, &lone));
    desc.sequences = SEQUENCES;
    desc.device_layers = layers;
    desc.stream = stream;
    CHECK(hd_session_create(model, &desc, &session));
    static const struct { uint32_t sequence, count; } rows[][6] = { /* a step each, in the order of its tokens */
        { { 3, 5 }, { 0, 1 } },
        { { 1, 20 }, { 3, 1 }, { 0, 11 } },
        { { 0, 1 }, { 1, 1 }, { 3, 1 } },
        { { 7, 2 }, { 0, 1 }, { 7, 3 }, { 1, 1 } }, /* a piece in two places */
        { { 2, 1 }, { 4, 1 }, { 5, 1 }, { 6, 1 }, { 7, 1 } },
        { { 6, 30 }, { 2, 1 }, { 4, 1 } },
        { { 5, 8 } },
        { { 5, 1 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 0;
        for (uint32_t k = 0; k < 6; k++) count = add(steps, count, held, rows[i][k].sequence, rows[i][k].count, v);
        CHECK(hd_session_get_stats(session, &before));
        CHECK(hd_session_step(session, steps, count));
        CHECK(hd_session_get_stats(session, &after));
        if (layers == 0) assert_int_equal(after.submissions, before.submissions + 1);
        compare(session, lone, held, steps, count, v);
    }
    while (held[1] < 250) {
        add(steps, 0, held, 1, 1, v);
        CHECK(hd_session_feed(session, 1, &steps[0].token, 1));
    }
    size_t count = add(steps, 0, held, 1, 12, v); /* across two pages */
    count = add(steps, count, held, 0, 1, v);
    CHECK(hd_session_step(session, steps, count));
    compare(session, lone, held, steps, count, v);
    const uint32_t position = hd_session_position(session, 1);
    hd_step many[CHUNK + 1];
    for (uint32_t i = 0; i <= CHUNK; i++) many[i] = (hd_step){ i % 2, 1 };
    assert_int_equal(hd_session_step(session, many, CHUNK + 1), HD_STATUS_LIMIT); /* none of them is appended */
    assert_int_equal(hd_session_step(session, (hd_step[]){ { 1, 1 }, { 0, (int32_t)v } }, 2),
                     HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_step(session, (hd_step[]){ { 1, 1 }, { SEQUENCES, 1 } }, 2),
                     HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_position(session, 1), position);
    (void)hd_context_error(context);
    hd_session_destroy(session);
    hd_session_destroy(lone);
    hd_model_close(model);
    free(r.bytes);
    hd_device_close(device);
}

static void prompts_run_beside_next_tokens(void **state) {
    (void)state;
    mixed_on("cpu", 0, 0);
    mixed_on("vulkan", 0, 0);
    mixed_on("cuda", 0, 0);
}

static void layers_may_be_anywhere(void **state) {
    (void)state;
    mixed_on("vulkan", 1, 0);
    mixed_on("vulkan", -1, 1);
}

/* Scores of the next token after these, in a session that never held others. */
static const float *fresh_logits(hd_session *fresh, const int32_t *tokens, size_t count) {
    const float *logits;
    CHECK(hd_session_rewind(fresh, 0, 0));
    CHECK(hd_session_feed(fresh, 0, tokens, count));
    CHECK(hd_session_logits(fresh, 0, &logits));
    return logits;
}

/* What was forgotten is as if it had never been said; an answer goes on through full contexts. */
static void a_full_context_is_shifted(void **state) {
    (void)state;
    enum { HELD = 60, KEEP = 5, DROP = 20, ROOM = 64, SAID = 150 };
    hd_device *device;
    hd_model *model;
    hd_session *session, *fresh;
    model_reference r;
    const float *logits;
    int32_t tokens[ROOM], said[SAID], best;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    CHECK(hd_model_open(context, r.path, NULL, &model));
    const hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = ROOM };
    CHECK(hd_session_create(model, &desc, &session));
    CHECK(hd_session_create(model, &desc, &fresh));
    for (uint32_t i = 0; i < HELD; i++) tokens[i] = token_at(0, i, r.vocabulary);
    CHECK(hd_session_feed(session, 0, tokens, HELD));
    assert_int_equal(hd_session_shift(session, 0, KEEP, HELD - KEEP), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_shift(session, 0, HELD, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_session_shift(session, 1, 0, 1), HD_STATUS_INVALID_ARGUMENT);
    (void)hd_context_error(context);
    CHECK(hd_session_shift(session, 0, KEEP, DROP));
    assert_int_equal(hd_session_position(session, 0), HELD - DROP);
    memmove(tokens + KEEP, tokens + KEEP + DROP, (HELD - KEEP - DROP) * sizeof *tokens);
    CHECK(hd_session_logits(session, 0, &logits));
    assert_memory_equal(logits, fresh_logits(fresh, tokens, HELD - DROP), r.vocabulary * sizeof *logits);

    hd_generated made;
    const hd_generate_desc wish = { .max_tokens = SAID, .ignore_end = 1, .shift = 1, .keep = KEEP };
    CHECK(hd_generate(session, &wish, said, &made));
    assert_int_equal(made.token_count, SAID);
    uint32_t held = HELD - DROP, shifts = 0;
    fresh_logits(fresh, tokens, held);
    for (uint32_t i = 0; i < SAID; i++) {
        CHECK(hd_session_best(fresh, 0, &best));
        assert_int_equal(said[i], best);
        if (held == ROOM) {
            const uint32_t drop = (held - KEEP) / 2;
            memmove(tokens + KEEP, tokens + KEEP + drop, (held - KEEP - drop) * sizeof *tokens);
            held -= drop;
            shifts++;
            fresh_logits(fresh, tokens, held);
        }
        tokens[held++] = best;
        CHECK(hd_session_feed(fresh, 0, &best, 1));
    }
    assert_int_equal(shifts, 5);
    assert_int_equal(hd_session_position(session, 0), held);
    const hd_generate_desc kept = { .max_tokens = SAID, .ignore_end = 1, .shift = 1, .keep = ROOM };
    CHECK(hd_generate(session, &kept, said, &made)); /* all of it stays: there is no room */
    assert_int_equal(made.stop, HD_STOP_CONTEXT);
    hd_session_destroy(session);
    hd_session_destroy(fresh);
    hd_model_close(model);
    free(r.bytes);
    hd_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sizes_are_the_next_ones),
                                        cmocka_unit_test(a_full_context_is_shifted),
                                        cmocka_unit_test(prompts_run_beside_next_tokens),
                                        cmocka_unit_test(layers_may_be_anywhere) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
