/* test_prompt_pieces.c: the sizes of the pieces that prompts run in: those of the default, those that are wished for, and those
 * that are found by the lengths of prompts that came, which are the best there are. */
#include "llm/model_reference.h"
#include "llm/session.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { PROMPTS = 40, CONTEXT = 640, CHUNK = 64, LENGTHS = CHUNK / 8, SAID = 24 };

static hd_context *context;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .cpu_threads = 2 }, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

static uint32_t draw(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* ---- sizes alone ---- */

static void sizes_are(const hd_session_desc *desc, const uint32_t wanted[HD_MAX_PIECES]) {
    uint32_t at;
    uint32_t sizes[HD_MAX_PIECES];
    assert_null(hdl_pieces_of(desc, desc->context, sizes, &at));
    assert_memory_equal(sizes, wanted, sizeof sizes);
}

static void chunks_make_sizes(void **state) {
    (void)state;
    sizes_are(&(hd_session_desc){ 0 }, (uint32_t[HD_MAX_PIECES]){ 512, 256, 128, 64, 32, 16, 8 });
    sizes_are(&(hd_session_desc){ .chunk = 65536, .context = UINT32_MAX }, (uint32_t[HD_MAX_PIECES]){ 2048, 1024, 512, 256, 128, 64, 32, 8 });
    sizes_are(&(hd_session_desc){ .chunk = 2048, .context = 1025 }, (uint32_t[HD_MAX_PIECES]){ 1024, 512, 256, 128, 64, 32, 16, 8 });
    sizes_are(&(hd_session_desc){ .chunk = 300 }, (uint32_t[HD_MAX_PIECES]){ 256, 128, 64, 32, 16, 8 });
    sizes_are(&(hd_session_desc){ .context = 256 }, (uint32_t[HD_MAX_PIECES]){ 256, 128, 64, 32, 16, 8 });
    sizes_are(&(hd_session_desc){ .context = 257, .chunk = 1 }, (uint32_t[HD_MAX_PIECES]){ 8 });
    sizes_are(&(hd_session_desc){ .pieces = { 304, 24 } }, (uint32_t[HD_MAX_PIECES]){ 304, 24 });
    sizes_are(&(hd_session_desc){ .chunk = 300, .pieces = { 296 } }, (uint32_t[HD_MAX_PIECES]){ 296 });
}

static void pieces_follow_each_other(void **state) {
    (void)state;
    enum { CPU = 16, GPU = 128 };
#define DEFAULT { 512, 256, 128, 64, 32, 16, 8 }
    static const struct { uint32_t sizes[HD_MAX_PIECES], run_rows; uint64_t left; uint32_t rows; } cases[] = {
        { DEFAULT, CPU, 1, 1 },     { DEFAULT, CPU, 2, 8 },     { DEFAULT, CPU, 8, 8 },     { DEFAULT, CPU, 16, 16 },
        { DEFAULT, CPU, 17, 32 },   { DEFAULT, CPU, 64, 64 },   { DEFAULT, CPU, 65, 64 },   { DEFAULT, CPU, 97, 128 },
        { DEFAULT, CPU, 257, 256 }, { DEFAULT, CPU, 384, 256 }, { DEFAULT, CPU, 448, 256 }, { DEFAULT, CPU, 465, 512 },
        { DEFAULT, GPU, 65, 128 },  { DEFAULT, GPU, 257, 256 }, { DEFAULT, GPU, 312, 256 }, { DEFAULT, GPU, 321, 512 },
        { DEFAULT, 0, 500, 256 },   { DEFAULT, 1 << 16, 257, 512 }, { DEFAULT, GPU, 512, 512 }, { DEFAULT, GPU, 1u << 24, 512 },
        { { 512, 304 }, CPU, 300, 304 },    { { 512, 304 }, CPU, 5, 304 },     { { 512, 304 }, CPU, 305, 512 },
        { { 512, 304, 24 }, CPU, 169, 304 }, { { 512, 304, 24 }, CPU, 168, 24 },
        { { 24, 8 }, CPU, 9, 24 },          { { 8 }, CPU, UINT64_MAX - 7, 8 }, { { 64, 56, 48, 40, 32, 24, 16, 8 }, CPU, 3, 8 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(hdl_piece_next(cases[i].sizes, cases[i].run_rows, cases[i].left), cases[i].rows);
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    static const struct { hd_session_desc desc; uint32_t at; const char *why; } cases[] = {
        { { .pieces = { 20 } }, 0, "no multiple of 8" },
        { { .pieces = { 304, 8, 4 } }, 2, "no multiple of 8" },
        { { .context = 4096, .pieces = { 2056 } }, 0, "above 2048" },
        { { .pieces = { 4294967288u } }, 0, "above 2048" },
        { { .chunk = 256, .pieces = { 304 } }, 0, "above 2048, the chunk" },
        { { .context = 200, .pieces = { 304 } }, 0, "above 2048, the chunk or the context" },
        { { .pieces = { 304, 304 } }, 1, "largest first" },
        { { .pieces = { 8, 304 } }, 1, "largest first" },
        { { .pieces = { 304, 0, 8 } }, 2, "largest first" },
        { { .pieces = { 0, 8 } }, 0, "without a gap" },
        { { .pieces = { 0, 0, 0, 0, 0, 0, 0, 8 } }, 0, "without a gap" },
    };
    hd_device *device;
    hd_model *model;
    model_reference r;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    CHECK(hd_model_open(context, r.path, NULL, &model));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_session *session;
        hd_fit fit;
        hd_piece_usage usage;
        char place[16];
        hd_session_desc desc = cases[i].desc;
        desc.device = device;
        if (!desc.context) desc.context = 512;
        assert_int_equal(hd_model_fit(model, &desc, &fit), HD_STATUS_INVALID_ARGUMENT);
        (void)hd_context_error(context);
        assert_int_equal(hd_session_create(model, &desc, &session), HD_STATUS_INVALID_ARGUMENT);
        const char *error = hd_context_error(context);
        snprintf(place, sizeof place, "pieces[%u]", (unsigned)cases[i].at);
        if (!strstr(error, place) || !strstr(error, cases[i].why)) fail_msg("%zu: %s", i, error);
        assert_int_equal(hd_piece_use(&desc, (uint32_t[]){ 8 }, 1, 8, &usage), HD_STATUS_INVALID_ARGUMENT);
    }
    hd_model_close(model);
    hd_device_close(device);
    free(r.bytes);
}

/* ---- the best sizes ---- */

static uint64_t cost_of(const uint32_t *lengths, const uint32_t sizes[HD_MAX_PIECES], uint32_t run_rows) {
    hd_session_desc desc = { .chunk = CHUNK };
    hd_piece_usage usage;
    memcpy(desc.pieces, sizes, sizeof desc.pieces);
    CHECK(hd_piece_use(&desc, lengths, PROMPTS, run_rows, &usage));
    return usage.rows + usage.runs * run_rows;
}

/* The least that any sizes up to the chunk take, of which there may be so many. */
static uint64_t least_of(const uint32_t *lengths, uint32_t run_rows, uint32_t most) {
    uint64_t least = UINT64_MAX;
    for (uint32_t set = 0; set < 1u << (LENGTHS - 1); set++) {
        uint32_t sizes[LENGTHS + 1] = { CHUNK }, count = 1;
        for (uint32_t eights = LENGTHS - 1; eights > 0; eights--)
            if (set >> (eights - 1) & 1) sizes[count++] = 8 * eights;
        const uint64_t cost = count <= most ? cost_of(lengths, sizes, run_rows) : UINT64_MAX;
        if (cost < least) least = cost;
    }
    return least;
}

/* All sets of sizes are tried beside. Lengths are whole eights, so that no token is alone. */
static void found_sizes_are_the_best(void **state) {
    (void)state;
    static const uint32_t run_rows[] = { 0, 1, 8, 30, 100 };
    uint32_t seed = 1, lengths[PROMPTS];
    for (uint32_t round = 0; round < 200; round++) {
        const uint32_t kinds = 1 + draw(&seed, 12), most = 1 + round % HD_MAX_PIECES, rows = run_rows[round % 5];
        uint32_t kind[12], sizes[HD_MAX_PIECES], again[HD_MAX_PIECES];
        for (uint32_t k = 0; k < kinds; k++) kind[k] = 8 * (1 + draw(&seed, 3 * LENGTHS));
        for (uint32_t i = 0; i < PROMPTS; i++) lengths[i] = kind[draw(&seed, 1 + draw(&seed, kinds))];
        const hd_session_desc desc = { .chunk = CHUNK, .pieces = { 1 } }; /* its sizes do not count */
        CHECK(hd_piece_sizes(&desc, lengths, PROMPTS, rows, most, sizes));
        CHECK(hd_piece_sizes(&desc, lengths, PROMPTS, rows, most, again));
        assert_memory_equal(sizes, again, sizeof sizes);
        assert_int_equal(sizes[0], CHUNK);
        uint32_t count = 0;
        while (count < HD_MAX_PIECES && sizes[count]) count++;
        assert_in_range(count, 1, most);
        assert_int_equal(cost_of(lengths, sizes, rows), least_of(lengths, rows, most));
        if (count > 1) assert_true(least_of(lengths, rows, count - 1) > cost_of(lengths, sizes, rows));
    }
}

/* Never worse than the default, which is as many sizes. */
static void found_sizes_are_no_worse(void **state) {
    (void)state;
    enum { MANY = 3000 };
    uint32_t seed = 5, lengths[MANY];
    for (uint32_t round = 0; round < 30; round++) {
        const uint32_t middle = 8 + draw(&seed, 900), run_rows = round % 3 * 40;
        hd_piece_usage usual, found;
        hd_session_desc desc = { 0 };
        for (uint32_t i = 0; i < MANY; i++) lengths[i] = 2 + draw(&seed, 1 + draw(&seed, 1 + draw(&seed, 2 * middle)));
        CHECK(hd_piece_use(NULL, lengths, MANY, run_rows, &usual));
        CHECK(hd_piece_sizes(NULL, lengths, MANY, run_rows, 7, desc.pieces));
        CHECK(hd_piece_use(&desc, lengths, MANY, run_rows, &found));
        assert_int_equal(found.tokens, usual.tokens);
        assert_memory_equal(found.sizes, desc.pieces, sizeof found.sizes);
        assert_true(found.rows + run_rows * found.runs <= usual.rows + run_rows * usual.runs);
    }
}

static void bad_logs_are_refused(void **state) {
    (void)state;
    static const uint32_t fine[] = { 8, 1u << 24 }, zero[] = { 8, 0 }, large[] = { 8, (1u << 24) + 1 };
    uint32_t sizes[HD_MAX_PIECES] = { 7 };
    hd_piece_usage usage = { .runs = 7 };
    assert_int_equal(hd_piece_use(NULL, fine, 0, 8, &usage), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_piece_use(NULL, NULL, 1, 8, &usage), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_piece_use(NULL, fine, 2, 8, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_piece_use(NULL, zero, 2, 8, &usage), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_use(NULL, large, 2, 8, &usage), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_use(NULL, fine, 2, 65537, &usage), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_run_rows(NULL), 0);
    assert_int_equal(hd_piece_sizes(NULL, fine, 0, 8, 4, sizes), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_piece_sizes(NULL, NULL, 1, 8, 4, sizes), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_piece_sizes(NULL, fine, 2, 8, 4, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_piece_sizes(NULL, zero, 2, 8, 4, sizes), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_sizes(NULL, fine, 2, 8, 0, sizes), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_sizes(NULL, fine, 2, 8, HD_MAX_PIECES + 1, sizes), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_piece_sizes(NULL, fine, 2, 65537, 4, sizes), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(sizes[0], 7);
    assert_int_equal(usage.runs, 7);
    CHECK(hd_piece_sizes(NULL, fine, 2, 65536, HD_MAX_PIECES, sizes));
    CHECK(hd_piece_use(NULL, fine, 2, 65536, &usage));
    assert_int_equal(usage.rows, 8 + (1u << 24));
}

/* ---- sessions ---- */

/* Feeds the log's prompts, each alone, and keeps what comes next; counts as the session does. */
static void feed_log(hd_session *session, const int32_t *tokens, const uint32_t *lengths, uint32_t count, uint32_t vocabulary,
                     float *out_logits, hd_session_stats *out) {
    hd_session_stats before;
    CHECK(hd_session_get_stats(session, &before));
    for (uint32_t i = 0; i < count; i++) {
        const float *logits;
        CHECK(hd_session_rewind(session, 0, 0));
        CHECK(hd_session_feed(session, 0, tokens, lengths[i]));
        CHECK(hd_session_logits(session, 0, &logits));
        memcpy(out_logits + (size_t)i * vocabulary, logits, vocabulary * sizeof *logits);
    }
    CHECK(hd_session_get_stats(session, out));
    out->plans -= before.plans;
    out->submissions -= before.submissions;
}

enum { USUAL, FOUND, NARROW, SESSIONS };

/* Some prompts of about 36 tokens, the others of about 106 and 297. */
static uint32_t length_of(uint32_t prompt, uint32_t *seed) {
    return prompt % 8 == 7 ? 33 + draw(seed, 8) : (prompt % 2 ? 290 : 99) + draw(seed, 14);
}

/* A log in, other sizes out: the same bits, less padding, fewer runs, and no more plans. */
static void other_sizes_give_equal_bits_on(const char *backend, uint32_t count) {
    hd_device *device;
    hd_model *model;
    hd_session *sessions[SESSIONS];
    hd_session_stats stats;
    hd_piece_usage usage[SESSIONS];
    model_reference r;
    uint32_t seed = 3, lengths[PROMPTS];
    int32_t tokens[CONTEXT], said[SESSIONS][SAID];
    float *logits[SESSIONS];
    if (hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) {
        (void)hd_context_error(context);
        return;
    }
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    CHECK(hd_model_open(context, r.path, NULL, &model));
    for (uint32_t i = 0; i < CONTEXT; i++) tokens[i] = (int32_t)((i * 7 + i / 5) % r.vocabulary);
    for (uint32_t i = 0; i < count; i++) lengths[i] = length_of(i, &seed);
    const uint32_t run_rows = hd_piece_run_rows(device);
    hd_session_desc desc = { .device = device, .math = HD_MATH_EXACT, .context = CONTEXT };
    for (int i = 0; i < SESSIONS; i++) {
        if (i == FOUND) CHECK(hd_piece_sizes(&desc, lengths, count, run_rows, 4, desc.pieces));
        if (i == NARROW) memcpy(desc.pieces, (uint32_t[HD_MAX_PIECES]){ 72, 40, 24 }, sizeof desc.pieces);
        CHECK(hd_piece_use(&desc, lengths, count, run_rows, &usage[i]));
        CHECK(hd_session_create(model, &desc, &sessions[i]));
        logits[i] = calloc((size_t)count * r.vocabulary, sizeof(float));
        assert_non_null(logits[i]);
        feed_log(sessions[i], tokens, lengths, count, r.vocabulary, logits[i], &stats);
        assert_int_equal(stats.plans, usage[i].plans);
        assert_int_equal(stats.submissions, usage[i].runs);
        assert_memory_equal(logits[i], logits[USUAL], (size_t)count * r.vocabulary * sizeof(float));
        CHECK(hd_generate(sessions[i], &(hd_generate_desc){ .max_tokens = SAID, .ignore_end = 1 }, said[i], NULL));
        assert_memory_equal(said[i], said[USUAL], sizeof said[i]);
        print_message("%s, %u,%u,%u,%u: padding %.1f %% of rows, %.1f %% of runs find their plan\n", backend, usage[i].sizes[0],
                      usage[i].sizes[1], usage[i].sizes[2], usage[i].sizes[3], 100 - 100. * (double)usage[i].tokens / (double)usage[i].rows,
                      100 - 100. * (double)usage[i].plans / (double)usage[i].runs);
    }
    assert_true(2 * (usage[FOUND].rows - usage[FOUND].tokens) < usage[USUAL].rows - usage[USUAL].tokens);
    assert_true(usage[FOUND].runs < usage[USUAL].runs && usage[FOUND].plans <= usage[USUAL].plans);
    for (int i = 0; i < SESSIONS; i++) {
        hd_session_destroy(sessions[i]);
        free(logits[i]);
    }
    hd_model_close(model);
    hd_device_close(device);
    free(r.bytes);
}
static void other_sizes_give_equal_bits(void **state) {
    (void)state;
    other_sizes_give_equal_bits_on("cpu", PROMPTS);
    other_sizes_give_equal_bits_on("vulkan", 16);
}

/* A piece of 2,048 rows says what four of 512 say, to the bit. */
static void large_pieces_give_equal_bits(void **state) {
    (void)state;
    enum { LONG = 2304, FED = 2100 };
    static int32_t tokens[FED];
    hd_device *device;
    hd_model *model;
    model_reference r;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    CHECK(hd_model_open(context, r.path, NULL, &model));
    float *wanted = calloc(r.vocabulary, sizeof *wanted);
    assert_non_null(wanted);
    for (uint32_t i = 0; i < FED; i++) tokens[i] = (int32_t)((i * 7 + i / 5) % r.vocabulary);
    for (int large = 0; large < 2; large++) {
        hd_session *session;
        hd_session_stats stats;
        const float *logits;
        CHECK(hd_session_create(model, &(hd_session_desc){ .device = device, .math = HD_MATH_EXACT, .context = LONG, .chunk = large ? 2048 : 0 }, &session));
        CHECK(hd_session_feed(session, 0, tokens, FED));
        CHECK(hd_session_logits(session, 0, &logits));
        CHECK(hd_session_get_stats(session, &stats));
        assert_int_equal(stats.submissions, large ? 2 : 5); /* 2,048 and 64; four times 512, and 64 */
        if (large) assert_memory_equal(logits, wanted, r.vocabulary * sizeof *wanted);
        memcpy(wanted, logits, r.vocabulary * sizeof *wanted);
        hd_session_destroy(session);
    }
    free(wanted);
    hd_model_close(model);
    hd_device_close(device);
    free(r.bytes);
}

/* What is told counts a plan of each size: one more size takes more, and all sizes of the default take what it does. */
static void memory_counts_each_size(void **state) {
    (void)state;
    hd_device *device;
    hd_model *model;
    hd_fit usual, same, one, two;
    model_reference r;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    assert_int_equal(model_reference_read("qwen3_q8_0", &r), 0);
    CHECK(hd_model_open(context, r.path, NULL, &model));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device, .context = 512 }, &usual));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device, .context = 512, .pieces = DEFAULT }, &same));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device, .context = 512, .pieces = { 304 } }, &one));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device, .context = 512, .pieces = { 304, 296 } }, &two));
    assert_memory_equal(&usual, &same, sizeof usual);
    assert_true(one.cpu_scratch_bytes < two.cpu_scratch_bytes);
    assert_true(one.cpu_scratch_bytes < usual.cpu_scratch_bytes);
    hd_model_close(model);
    hd_device_close(device);
    free(r.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(chunks_make_sizes),
                                        cmocka_unit_test(pieces_follow_each_other),
                                        cmocka_unit_test(bad_sizes_are_refused),
                                        cmocka_unit_test(found_sizes_are_the_best),
                                        cmocka_unit_test(found_sizes_are_no_worse),
                                        cmocka_unit_test(bad_logs_are_refused),
                                        cmocka_unit_test(memory_counts_each_size),
                                        cmocka_unit_test(large_pieces_give_equal_bits),
                                        cmocka_unit_test(other_sizes_give_equal_bits) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
