/* The sampler: beside a straightforward twin that sorts everything, as a distribution, and at the edges. */
#include "llm/sample.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

__extension__ typedef unsigned __int128 wide;

static uint64_t random_state;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(77, random_state++) % limit); }

static hdl_sampler *make(const hd_sampling *sampling, size_t vocab) {
    hdl_sampler *sampler;
    hd_error error = { 0 };
    if (hdl_sampler_create(NULL, sampling, vocab, &sampler, &error)) fail_msg("%s", error.text);
    return sampler;
}

static int32_t draw(hdl_sampler *sampler, const float *logits) {
    int32_t id = -1;
    hd_error error = { 0 };
    if (hdl_sampler_draw(sampler, logits, &id, &error)) fail_msg("%s", error.text);
    return id;
}

/* ---- the twin: sorts all, filters step by step, walks ---- */

typedef struct entry { float logit; int32_t id; uint64_t weight; } entry;

static int likelier(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}
static int by_id(const void *a, const void *b) { return ((const entry *)a)->id < ((const entry *)b)->id ? -1 : 1; }

static uint64_t weigh_entries(entry *e, size_t count, float temperature) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        double below_best = e[i].logit == e[0].logit ? 0 : (double)e[i].logit - (double)e[0].logit;
        total += e[i].weight = hdl_chance(below_best / (double)temperature);
    }
    return total;
}

static int32_t twin_draw(const hd_sampling *s, const float *logits, size_t vocab, const int32_t *said, size_t said_count, uint64_t index) {
    entry *e = calloc(vocab, sizeof *e);
    size_t window = s->penalty_window ? s->penalty_window : 64, count = vocab;
    for (size_t i = 0; i < vocab; i++) {
        e[i] = (entry){ .logit = logits[i], .id = (int32_t)i };
        int times = 0;
        for (size_t k = said_count > window ? said_count - window : 0; k < said_count; k++) times += said[k] == (int32_t)i;
        if (!times) continue;
        if (s->repeat_penalty != 0) e[i].logit = logits[i] > 0 ? logits[i] / s->repeat_penalty : logits[i] * s->repeat_penalty;
        e[i].logit -= (float)times * s->frequency_penalty;
        e[i].logit -= s->presence_penalty;
    }
    qsort(e, vocab, sizeof *e, likelier);
    int32_t id = e[0].id;
    if (s->temperature != 0) {
        if (s->top_k && s->top_k < count) count = s->top_k;
        uint64_t total = weigh_entries(e, count, 1), sum = 0;
        if (s->top_p > 0 && s->top_p < 1)
            for (size_t i = 0; i < count; i++) {
                sum += e[i].weight;
                if ((double)sum >= floor((double)s->top_p * (double)total) && sum > 0) count = i + 1;
            }
        if (s->min_p > 0)
            while (count && (double)e[count - 1].weight < floor((double)s->min_p * 0x1p42)) count--;
        total = weigh_entries(e, count, s->temperature);
        uint64_t left = (uint64_t)((wide)hdl_random(s->seed, index) * total >> 64);
        qsort(e, count, sizeof *e, by_id);
        size_t i = 0;
        for (; left >= e[i].weight; i++) left -= e[i].weight;
        id = e[i].id;
    }
    free(e);
    return id;
}

static float some_logit(uint32_t form) {
    switch (form) {
    case 0: return (float)below(5);                          /* many ties */
    case 1: return (float)below(20000) / 1000.0f - 10;
    case 2: return below(3) ? -INFINITY : (float)below(9);
    case 3: return below(50) ? (float)below(100) / -7.0f : INFINITY;
    case 4: return below(2) ? 0.0f : -0.0f;
    case 5: return (float)below(1000) * 1e-42f;              /* subnormals */
    case 6: return ((float)below(1000) - 500) * 6e35f;
    default: return 3;
    }
}

static void equals_the_twin(void **state) {
    (void)state;
    static float logits[3000];
    static int32_t said[200];
    for (int round = 0; round < 10000; round++) {
        const size_t vocab = below(20) ? 1 + below(60) : 1 + below(3000);
        const uint32_t form = below(8);
        for (size_t i = 0; i < vocab; i++) logits[i] = some_logit(form);
        logits[below((uint32_t)vocab)] = 1; /* never all masked */
        hd_sampling s = { .seed = below(9), .temperature = below(6) ? (float)(1 + below(30)) / 10 : (float)below(2) * 1e-6f };
        if (below(2)) s.top_k = below((uint32_t)vocab + 3);
        if (below(2)) s.top_p = (float)below(101) / 100;
        if (below(2)) s.min_p = (float)below(101) / 100;
        if (below(3) == 0) s.repeat_penalty = (float)(5 + below(20)) / 10;
        if (below(3) == 0) s.frequency_penalty = (float)below(20) / 10 - 1;
        if (below(3) == 0) s.presence_penalty = (float)below(20) / 10 - 1;
        if (below(2)) s.penalty_window = 1 + below(90);
        hdl_sampler *sampler = make(&s, vocab);
        const size_t said_count = below(200);
        for (size_t i = 0; i < said_count; i++) hdl_sampler_accept(sampler, said[i] = (int32_t)below((uint32_t)vocab));
        for (uint64_t index = 0; index < 3; index++) {
            const int32_t got = draw(sampler, logits), wanted = twin_draw(&s, logits, vocab, said, said_count, index);
            if (got != wanted) fail_msg("round %d draw %d: token %d, the twin says %d", round, (int)index, got, wanted);
        }
        hdl_sampler_destroy(sampler);
    }
}

/* ---- some of the tokens in place of all ---- */

static const float *ranked_logits;
/* As hd_top_k: NaN first, then the larger, then the smaller id. */
static int by_rank(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const float v = ranked_logits[x], w = ranked_logits[y];
    if (isnan(v) != isnan(w)) return isnan(v) ? -1 : 1;
    if (v > w || v < w) return v > w ? -1 : 1;
    return x < y ? -1 : 1;
}

/* The candidates give the token, or the failure and its text, that the whole row gives, wherever they say that they do; they say
 * so often, and where they do not, they would be wrong now and then. */
static void candidates_equal_the_row(void **state) {
    (void)state;
    enum { MOST = 3000, SOME = 128 };
    static float logits[MOST], scores[SOME];
    static int32_t order[MOST];
    uint32_t enough = 0, failures = 0, wrong = 0;
    for (int round = 0; round < 12000; round++) {
        const size_t vocab = below(20) ? 1 + below(400) : 1 + below(MOST);
        const size_t count = below(3) ? SOME < vocab ? SOME : vocab : 1 + below((uint32_t)(vocab < SOME ? vocab : SOME));
        const uint32_t form = below(8);
        for (size_t i = 0; i < vocab; i++) logits[i] = some_logit(form);
        if (below(20) == 0) for (size_t i = 0; i < vocab; i++) logits[i] = -INFINITY;
        else if (below(20) == 0) for (uint32_t i = 0; i < 3; i++) logits[below((uint32_t)vocab)] = i ? NAN : -NAN;
        hd_sampling s = { .seed = below(9),
                          .temperature = below(6) ? (float)(1 + below(30)) / 10 : 0,
                          .top_k = below(5) ? 1 + below(100) : below(200) };
        if (below(2)) s.top_p = (float)below(101) / 100;
        if (below(2)) s.min_p = (float)below(101) / 100;
        if (below(2)) s.repeat_penalty = (float)(below(4) ? 10 + below(20) : 5 + below(5)) / 10;
        if (below(3) == 0) s.frequency_penalty = (float)below(20) / 10 - (below(4) ? 0.0f : 1.0f);
        if (below(3) == 0) s.presence_penalty = (float)below(20) / 10 - (below(4) ? 0.0f : 1.0f);
        if (below(2)) s.penalty_window = 1 + below(90);
        for (size_t i = 0; i < vocab; i++) order[i] = (int32_t)i;
        ranked_logits = logits;
        qsort(order, vocab, sizeof *order, by_rank);
        for (size_t i = 0; i < count; i++) scores[i] = logits[order[i]];
        hdl_sampler *whole = make(&s, vocab), *some = make(&s, vocab);
        for (uint32_t said = below(200); said > 0; said--) { /* the best ones mostly: these are who penalties move */
            const int32_t id = order[below((uint32_t)(below(3) ? count : vocab))];
            hdl_sampler_accept(whole, id);
            hdl_sampler_accept(some, id);
        }
        const bool told = hdl_sampler_needs_only(some, count);
        for (int index = 0; index < 2; index++) {
            int32_t a = -1, b = -1;
            hd_error x = { 0 }, y = { 0 };
            const hd_status v = hdl_sampler_draw(whole, logits, &a, &x), w = hdl_sampler_draw_from(some, order, scores, count, &b, &y);
            const bool same = v == w && a == b && strcmp(x.text, y.text) == 0;
            if (told && !same)
                fail_msg("round %d: token %d (%s) of the row, %d (%s) of %zu candidates", round, a, x.text, b, y.text,
                         count);
            failures += told && v;
            wrong += !same;
        }
        enough += told;
        hdl_sampler_destroy(whole);
        hdl_sampler_destroy(some);
    }
    print_message(
        "%u of 12000 rows need only their candidates, of %u the answer is a failure; %u draws of others differ\n",
        enough, failures, wrong);
    assert_true(enough > 4000 && failures > 200 && wrong > 500);
    hdl_sampler *sampler = make(&(hd_sampling){ .temperature = 1, .top_k = 2 }, 5);
    const int32_t bad[] = { 1, 5 }, below_all[] = { -1 };
    const float two[] = { 1, 0 };
    int32_t id;
    assert_int_equal(hdl_sampler_draw_from(sampler, bad, two, 2, &id, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hdl_sampler_draw_from(sampler, below_all, two, 1, &id, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hdl_sampler_draw_from(sampler, bad, two, 0, &id, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hdl_sampler_draw_from(sampler, bad, two, 6, &id, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hdl_sampler_draw_from(sampler, NULL, two, 1, &id, NULL), HD_STATUS_NULL_POINTER);
    hdl_sampler_destroy(sampler);
}

/* ---- numbers ---- */

static void weights(void **state) {
    (void)state;
    double worst = 0;
    for (int i = 0; i <= 3000000; i++) {
        const double x = -1e-5 * i, off = fabs((double)hdl_chance(x) - exp(x) * 0x1p42);
        if (off > worst) worst = off;
    }
    assert_true(worst < 1.01); /* rounding down is the most of it */
    assert_true(hdl_chance(0) == HDL_CHANCE_ONE && hdl_chance(-0.0) == HDL_CHANCE_ONE && hdl_chance(-5e-324) == HDL_CHANCE_ONE);
    assert_true(hdl_chance(-INFINITY) == 0 && hdl_chance((double)NAN) == 0 && hdl_chance(-1e300) == 0 && hdl_chance(-29.9) == 0);
    /* The bits, so that every machine is held to them. */
    uint64_t mix = 0;
    for (int i = 0; i < 29000; i++) mix = mix * 31 + hdl_chance(-0.001 * i);
    assert_true(mix == UINT64_C(0x432b770369f043a7));
    /* SplitMix64 begun at 0 gives e220a8397b1dcdaf first, as its paper's code does; seed 0 scrambles to 0. */
    assert_true(hdl_random(0, 0) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(hdl_random(0, 1) == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(hdl_random(1, 0) != hdl_random(0, 0));
}

static void distribution(void **state) {
    (void)state;
    /* Chances 1/2 1/4 1/8 1/16 1/16 at temperature 1; chi-square with 4 degrees of freedom stays below 18.5 (p = 0.001). */
    const float halves = 0.693147180559945f, logits[] = { 0, -halves, -2 * halves, -3 * halves, -3 * halves };
    const double chances[] = { 0.5, 0.25, 0.125, 0.0625, 0.0625 };
    const int draws = 200000;
    for (uint64_t seed = 0; seed < 3; seed++) {
        hd_sampling s = { .seed = seed, .temperature = 1 };
        hdl_sampler *sampler = make(&s, 5);
        double counts[5] = { 0 }, chi = 0;
        for (int i = 0; i < draws; i++) counts[draw(sampler, logits)]++;
        for (int i = 0; i < 5; i++) chi += (counts[i] - draws * chances[i]) * (counts[i] - draws * chances[i]) / (draws * chances[i]);
        assert_true(chi < 18.5);
        hdl_sampler_destroy(sampler);
    }
    /* Temperature 1/2 squares the ratios: of two tokens with ratio 2 the second has 1 of 5. */
    hdl_sampler *sampler = make(&(hd_sampling){ .temperature = 0.5f, .seed = 4 }, 2);
    int second = 0;
    for (int i = 0; i < draws; i++) second += draw(sampler, logits);
    assert_true(fabs(second - draws / 5.0) < 4 * sqrt(draws * 0.16));
    hdl_sampler_destroy(sampler);
}

/* The ids that 400 draws reach, one bit each. */
static uint32_t reached(const hd_sampling *wishes, const float *logits, size_t vocab) {
    hd_sampling s = *wishes;
    if (s.temperature == 0) s.temperature = 1;
    hdl_sampler *sampler = make(&s, vocab);
    uint32_t ids = 0;
    for (int i = 0; i < 400; i++) ids |= 1u << draw(sampler, logits);
    hdl_sampler_destroy(sampler);
    return ids;
}

static void edges(void **state) {
    (void)state;
    const float same[6] = { 0 }, steps[] = { 1, 3, 2, 3 }, one[] = { -5 };
    const float masked[] = { -INFINITY, 0, -INFINITY, 0 }, infinite[] = { 5, INFINITY, 9, INFINITY };
#define REACHED(logits, vocab, ...) reached(&(hd_sampling){ __VA_ARGS__ }, logits, vocab)
    assert_int_equal(REACHED(same, 6, .top_k = 0), 0x3f);
    assert_int_equal(REACHED(same, 6, .top_k = 2), 0x03); /* of equal ones the first */
    assert_int_equal(REACHED(same, 6, .top_k = 6), 0x3f);
    assert_int_equal(REACHED(same, 6, .top_k = UINT32_MAX), 0x3f);
    assert_int_equal(REACHED(same, 4, .top_p = 0.5f), 0x03);
    assert_int_equal(REACHED(same, 4, .top_p = 0.51f), 0x07);
    assert_int_equal(REACHED(same, 4, .top_p = 1), 0x0f);
    assert_int_equal(REACHED(same, 4, .top_p = 1e-30f), 0x01);
    assert_int_equal(REACHED(same, 4, .min_p = 1), 0x0f);
    assert_int_equal(REACHED(steps, 4, .min_p = 1), 0x0a);
    assert_int_equal(REACHED(steps, 4, .min_p = 0.36f), 0x0e); /* exp(-1) = 0.3679 */
    assert_int_equal(REACHED(steps, 4, .min_p = 0.37f), 0x0a);
    assert_int_equal(REACHED(steps, 4, .top_k = 1), 0x02);
    assert_int_equal(REACHED(steps, 4, .temperature = 1e-30f), 0x0a);
    assert_int_equal(REACHED(masked, 4, .top_k = 4), 0x0a);
    assert_int_equal(REACHED(masked, 4, .top_p = 0.9f, .min_p = 0.1f), 0x0a);
    assert_int_equal(REACHED(infinite, 4, .top_k = 0), 0x0a);
    assert_int_equal(REACHED(one, 1, .top_k = 3, .top_p = 0.1f, .min_p = 0.9f), 0x01);

    hdl_sampler *greedy = make(NULL, 4);
    assert_int_equal(draw(greedy, steps), 1); /* the first of the largest */
    assert_int_equal(draw(greedy, infinite), 1);
    assert_int_equal(draw(greedy, (const float[]){ -0.0f, 0.0f, -1, -1 }), 0);
    assert_int_equal(draw(greedy, (const float[]){ -3e38f, -FLT_MAX, -INFINITY, -INFINITY }), 0);
    hdl_sampler_destroy(greedy);
}

static void draws_depend_on_seed_and_number(void **state) {
    (void)state;
    const float same[64] = { 0 };
    int32_t first[50];
    hdl_sampler *sampler = make(&(hd_sampling){ .temperature = 1, .seed = 11 }, 64);
    for (int i = 0; i < 50; i++) first[i] = draw(sampler, same);
    hdl_sampler_destroy(sampler);
    sampler = make(&(hd_sampling){ .temperature = 1, .seed = 11 }, 64);
    for (int i = 0; i < 50; i++) {
        if (i % 3) assert_int_equal(draw(sampler, same), first[i]);
        else draw(sampler, (const float[64]){ 1 }); /* what was drawn before changes nothing */
    }
    assert_int_equal(first[0], (int)(hdl_random(11, 0) >> 58));
    hdl_sampler_destroy(sampler);
}

static void penalties(void **state) {
    (void)state;
    const float logits[] = { 2, 1.9f, -1, -1.1f };
    hdl_sampler *s = make(&(hd_sampling){ .repeat_penalty = 2, .penalty_window = 2 }, 4);
    assert_int_equal(draw(s, logits), 0);
    hdl_sampler_accept(s, 0);
    assert_int_equal(draw(s, logits), 1);
    hdl_sampler_accept(s, 1);
    assert_int_equal(draw(s, logits), 0); /* both halved */
    hdl_sampler_accept(s, 3);
    assert_int_equal(draw(s, logits), 0); /* the window forgot it */
    hdl_sampler_accept(s, -1);
    hdl_sampler_accept(s, 4);
    hdl_sampler_accept(s, 0);
    hdl_sampler_destroy(s);
    s = make(&(hd_sampling){ .frequency_penalty = 0.04f }, 4);
    hdl_sampler_accept(s, 0);
    hdl_sampler_accept(s, 0);
    assert_int_equal(draw(s, logits), 0);
    hdl_sampler_accept(s, 0);
    assert_int_equal(draw(s, logits), 1);
    hdl_sampler_destroy(s);
    s = make(&(hd_sampling){ .presence_penalty = -0.2f }, 4);
    hdl_sampler_accept(s, 1);
    assert_int_equal(draw(s, logits), 1);
    hdl_sampler_destroy(s);
}

static void refuse(hd_sampling sampling, size_t vocab, hd_status status, const char *words) {
    hdl_sampler *sampler;
    hd_error error = { 0 };
    assert_int_equal(hdl_sampler_create(NULL, &sampling, vocab, &sampler, &error), status);
    assert_int_equal(error.status, status);
    if (!strstr(error.text, words)) fail_msg("no \"%s\" in: %s", words, error.text);
    assert_null(sampler);
}

static void refusals(void **state) {
    (void)state;
#define REFUSE(field, number) refuse((hd_sampling){ .field = number }, 4, HD_STATUS_INVALID_ARGUMENT, #field)
    REFUSE(temperature, -1);
    REFUSE(temperature, NAN);
    REFUSE(temperature, INFINITY);
    REFUSE(top_p, 1.5f);
    REFUSE(top_p, -0.1f);
    REFUSE(min_p, 2);
    REFUSE(repeat_penalty, -1);
    REFUSE(repeat_penalty, 1e-30f);
    REFUSE(frequency_penalty, INFINITY);
    REFUSE(presence_penalty, NAN);
    refuse((hd_sampling){ .penalty_window = UINT32_MAX }, 4, HD_STATUS_LIMIT, "penalty_window");
    refuse((hd_sampling){ .top_k = 1 }, 0, HD_STATUS_ZERO_SIZE, "vocabulary");
    refuse((hd_sampling){ .top_k = 1 }, HDL_MAX_SAMPLED + 1, HD_STATUS_LIMIT, "1048577");
    assert_int_equal(hdl_sampler_create(NULL, NULL, 4, NULL, NULL), HD_STATUS_NULL_POINTER);
    hdl_sampler_destroy(NULL);

    hdl_sampler *s = make(&(hd_sampling){ .temperature = 1 }, 3);
    int32_t id = 7;
    hd_error error = { 0 };
    assert_int_equal(hdl_sampler_draw(s, (const float[]){ 1, -NAN, 2 }, &id, &error), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "the logit of token 1 is not a number"));
    error = (hd_error){ 0 };
    assert_int_equal(hdl_sampler_draw(s, (const float[]){ -INFINITY, -INFINITY, -INFINITY }, &id, &error), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "-infinity"));
    assert_int_equal(hdl_sampler_draw(s, NULL, &id, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(id, 7);
    hdl_sampler_destroy(s);
}

typedef struct purse { long grants, held; } purse;
static void *from_purse(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    purse *p = user;
    if (new_bytes && p->grants-- <= 0) return NULL;
    void *got = new_bytes ? realloc(old, new_bytes) : (free(old), NULL);
    p->held += (long)new_bytes - (long)old_bytes;
    return got;
}

static void memory_runs_out(void **state) {
    (void)state;
    for (long grants = 0; grants <= 5; grants++) {
        purse p = { grants, 0 };
        hd_allocator memory = { from_purse, &p };
        hdl_sampler *sampler;
        hd_sampling s = { .temperature = 1, .top_p = 0.9f, .repeat_penalty = 1.1f };
        assert_int_equal(hdl_sampler_create(&memory, &s, 500, &sampler, NULL), grants < 5 ? HD_STATUS_OUT_OF_HOST_MEMORY : HD_OK);
        static const float logits[500];
        if (sampler) draw(sampler, logits); /* there are no grants left: nothing is allocated */
        hdl_sampler_destroy(sampler);
        assert_int_equal(p.held, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_twin),
        cmocka_unit_test(candidates_equal_the_row),
        cmocka_unit_test(weights),
        cmocka_unit_test(distribution),
        cmocka_unit_test(edges),
        cmocka_unit_test(penalties),
        cmocka_unit_test(draws_depend_on_seed_and_number),
        cmocka_unit_test(refusals),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
