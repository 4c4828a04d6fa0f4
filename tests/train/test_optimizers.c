/* test_optimizers.c: AdamW, gradient descent with momentum and clipping against what PyTorch made of the same gradients, and Muon against
 * its published form in float64; a step of NaN changes nothing; moments of weights that rest never become subnormal; schedules have the same bits everywhere, and so has all of it on
 * every device in exact mode. */
#include "devices.h"
#include "muon_fixture.h"
#include "optimizers_fixture.h"
#include <math.h>

enum { ADAMW, SGD };
typedef struct recipe {
    int           kind;
    double        decay, momentum;
    float         most;
    hd_adamw_desc adamw;
    const float  *expected; /* weights, then moments */
} recipe;
static const recipe recipes[] = {
    { ADAMW, 0, 0, 0, { 0.9, 0.999, 1e-8 }, adamw_0 }, { ADAMW, 0.1, 0, 1, { 0.9, 0.95, 1e-8 }, adamw_1 },
    { ADAMW, 0.01, 0, 20, { 0.8, 0.99, 1e-5 }, adamw_2 }, { SGD, 0, 0.9, 0, { 0, 0, 0 }, sgd_0 }, { SGD, 0.01, 0.5, 1, { 0, 0, 0 }, sgd_1 },
};
static const char *const names[] = { "weights", "m", "v" };

static int states_of(const recipe *r) { return r->kind == ADAMW ? 3 : 2; }

static hd_plan *plan_of(const place *at, const recipe *r, hd_math math) {
    hd_program *p = hd_program_create(at->context);
    hd_value states[3] = { 0 };
    hd_plan *plan = NULL;
    for (int i = 0; i < states_of(r); i++) states[i] = hd_state(p, names[i], HD_F32, HD_SHAPE(FIXTURE_N));
    const hd_value gradient = hd_input(p, "gradient", HD_F32, HD_SHAPE(FIXTURE_N)), rates = hd_input(p, "rates", HD_F32, HD_SHAPE(HD_RATES));
    const hd_clipping clip = hd_clip_norm(p, &gradient, 1, r->most);
    if (r->kind == ADAMW) hd_adamw(p, states, gradient, &clip, rates, &r->adamw, 0);
    else hd_sgd(p, states, gradient, &clip, rates, (float)r->momentum, 0);
    hd_output(p, "norm", clip.norm);
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = math }, &plan));
    hd_program_destroy(p);
    check_on(at, hd_plan_write(plan, "weights", fixture_weights, sizeof fixture_weights));
    return plan;
}

static void step(const place *at, hd_plan *plan, const recipe *r, uint64_t number, double rate, const float *gradient) {
    float rates[HD_RATES];
    if (r->kind == ADAMW) hd_adamw_rates(&r->adamw, rate, r->decay, number, rates);
    else hd_sgd_rates(rate, r->decay, rates);
    check_on(at, hd_plan_write(plan, "gradient", gradient, FIXTURE_N * sizeof *gradient));
    check_on(at, hd_plan_write(plan, "rates", rates, sizeof rates));
    check_on(at, hd_plan_run(plan, NULL));
}

static void read_states(const place *at, hd_plan *plan, const recipe *r, float out[3][FIXTURE_N]) {
    for (int i = 0; i < states_of(r); i++) check_on(at, hd_plan_read(plan, names[i], out[i], sizeof out[i]));
}

/* The first moment with every gradient taken without its sign: what its terms come to before they cancel. */
static void sum_of_terms(const recipe *r, double out[FIXTURE_N]) {
    const double kept = r->kind == ADAMW ? r->adamw.beta1 : r->momentum, taken = r->kind == ADAMW ? 1 - kept : 1;
    for (int i = 0; i < FIXTURE_N; i++) out[i] = 0;
    for (int k = 0; k < FIXTURE_STEPS; k++) {
        const float *gradient = fixture_gradients + k * FIXTURE_N;
        double squares = 0;
        for (int i = 0; i < FIXTURE_N; i++) squares += (double)gradient[i] * (double)gradient[i];
        const double norm = sqrt(squares), scale = r->most > 0 && norm > (double)r->most ? (double)r->most / norm : 1;
        for (int i = 0; i < FIXTURE_N; i++) out[i] = kept * out[i] + taken * scale * fabs((double)gradient[i]);
    }
}

static uint64_t compare(const place *at, const recipe *r, hd_math math) {
    float states[3][FIXTURE_N];
    double terms[FIXTURE_N];
    uint64_t hash = HASH_BEGIN;
    hd_plan *plan = plan_of(at, r, math);
    for (uint64_t i = 0; i < FIXTURE_STEPS; i++) step(at, plan, r, i, fixture_rates[i], fixture_gradients + i * FIXTURE_N);
    read_states(at, plan, r, states);
    sum_of_terms(r, terms);
    for (int s = 0; s < states_of(r); s++) {
        hash = hash_of(states[s], sizeof states[s], hash);
        for (int i = 0; i < FIXTURE_N; i++) {
            const double wanted = r->expected[s * FIXTURE_N + i], off = fabs((double)states[s][i] - wanted);
            const double size = s == 1 ? terms[i] : fabs(wanted); /* m is a sum of terms of either sign */
            if (!(off <= 2e-6 * size + (s == 0 ? 2e-7 : 1e-29)))
                fail_msg("%s, recipe %d: %s[%d] is %.9g, PyTorch's %.9g", at->name, (int)(r - recipes), names[s], i, (double)states[s][i], wanted);
        }
    }
    hd_plan_destroy(plan);
    return hash;
}

static void as_pytorch(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        const uint64_t hash = compare(&places[0], &recipes[r], HD_MATH_EXACT);
        for (int i = 0; i < count; i++) {
            if (compare(&places[i], &recipes[r], HD_MATH_EXACT) != hash) fail_msg("%s: other bits for recipe %zu", places[i].name, r);
            compare(&places[i], &recipes[r], HD_MATH_FAST);
        }
    }
    close_places(places, count);
}

/* A thousand exact steps of AdamW and of gradient descent, with gradients that follow from the step: the CPU's bits on every device. */
static void a_thousand_steps(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    for (size_t r = 1; r < sizeof recipes / sizeof *recipes; r += 3) {
        uint64_t wanted = 0;
        for (int i = 0; i < count; i++) {
            float states[3][FIXTURE_N], gradient[FIXTURE_N];
            uint64_t hash = HASH_BEGIN;
            hd_plan *plan = plan_of(&places[i], &recipes[r], HD_MATH_EXACT);
            for (uint64_t s = 0; s < 1000; s++) {
                for (uint32_t k = 0; k < FIXTURE_N; k++) gradient[k] = fixture_gradients[(s * 7 + k) % FIXTURE_N] / (float)(1 + s % 13);
                step(&places[i], plan, &recipes[r], s, 1e-3, gradient);
            }
            read_states(&places[i], plan, &recipes[r], states);
            for (int s = 0; s < states_of(&recipes[r]); s++) hash = hash_of(states[s], sizeof states[s], hash);
            if (i == 0) wanted = hash;
            if (hash != wanted) fail_msg("%s: other bits for recipe %zu after 1,000 steps", places[i].name, r);
            hd_plan_destroy(plan);
        }
    }
    close_places(places, count);
}

/* Gradients that are not finite: nothing changes, not even a zero's sign. */
static void not_finite(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        for (int k = 0; k < 4; k++) {
            float before[3][FIXTURE_N] = { { 0 } }, after[3][FIXTURE_N] = { { 0 } }, bad[FIXTURE_N];
            hd_plan *plan = plan_of(&at, &recipes[r], HD_MATH_EXACT);
            step(&at, plan, &recipes[r], 0, 1e-3, fixture_gradients);
            read_states(&at, plan, &recipes[r], before);
            memcpy(bad, fixture_gradients, sizeof bad);
            bad[17] = k == 0 ? NAN : k == 1 ? INFINITY : k == 2 ? -INFINITY : 3e38f; /* of which the square is infinite */
            step(&at, plan, &recipes[r], 1, k == 1 ? 0 : 1e-3, bad);
            read_states(&at, plan, &recipes[r], after);
            assert_memory_equal(before, after, sizeof before);
            hd_plan_destroy(plan);
        }
    }
    close_place(&at);
}

/* ---- Muon ---- */

static hd_plan *muon_plan(const place *at, const hd_muon_desc *desc, float most, hd_math math) {
    hd_program *p = hd_program_create(at->context);
    hd_plan *plan = NULL;
    const hd_value states[] = { hd_state(p, "weights", HD_F32, HD_SHAPE(MUON_N)), hd_state(p, "m", HD_F32, HD_SHAPE(MUON_N)) };
    const hd_value gradient = hd_input(p, "gradient", HD_F32, HD_SHAPE(MUON_N)), rates = hd_input(p, "rates", HD_F32, HD_SHAPE(HD_RATES));
    const hd_clipping clip = hd_clip_norm(p, &gradient, 1, most);
    hd_muon(p, states, gradient, &clip, rates, desc, 0);
    hd_output(p, "norm", clip.norm);
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = math }, &plan));
    hd_program_destroy(p);
    check_on(at, hd_plan_write(plan, "weights", muon_weights, sizeof muon_weights));
    return plan;
}

static void muon_step(const place *at, hd_plan *plan, double rate, double decay, const float *gradient) {
    float rates[HD_RATES];
    hd_sgd_rates(rate, decay, rates);
    check_on(at, hd_plan_write(plan, "gradient", gradient, MUON_N * sizeof *gradient));
    check_on(at, hd_plan_write(plan, "rates", rates, sizeof rates));
    check_on(at, hd_plan_run(plan, NULL));
}

static hd_muon_desc muon_desc(double momentum) {
    return (hd_muon_desc){ .momentum = momentum, .layers = MUON_LAYERS, .count = sizeof muon_matrices / sizeof *muon_matrices, .matrices = muon_matrices };
}

static uint64_t compare_muon(const place *at, size_t r, hd_math math) {
    static const char *const kept[] = { "weights", "m" };
    const hd_muon_desc desc = muon_desc(muon_recipes[r].momentum);
    hd_plan *plan = muon_plan(at, &desc, muon_recipes[r].most, math);
    uint64_t hash = HASH_BEGIN;
    for (int i = 0; i < MUON_STEPS; i++) muon_step(at, plan, muon_rates[i], muon_recipes[r].decay, muon_gradients + i * MUON_N);
    for (size_t s = 0; s < 2; s++) {
        float state[MUON_N];
        check_on(at, hd_plan_read(plan, kept[s], state, sizeof state));
        hash = hash_of(state, sizeof state, hash);
        for (int i = 0; i < MUON_N; i++) {
            const double wanted = muon_expected[(r * 2 + s) * MUON_N + (size_t)i], off = fabs((double)state[i] - wanted);
            if (!(off <= 1e-6)) fail_msg("%s, recipe %zu: %s[%d] is %.9g, in float64 %.9g", at->name, r, kept[s], i, (double)state[i], wanted);
        }
    }
    hd_plan_destroy(plan);
    return hash;
}

/* Away from the CPU one recipe in exact mode: PoCL takes its time for kernels of products. */
static void as_published(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    for (size_t r = 0; r < sizeof muon_recipes / sizeof *muon_recipes; r++) {
        const uint64_t hash = compare_muon(&places[0], r, HD_MATH_EXACT);
        compare_muon(&places[0], r, HD_MATH_FAST);
        for (int i = 1; i < count; i++)
            if ((i == 1 || r == 0) && compare_muon(&places[i], r, HD_MATH_EXACT) != hash)
                fail_msg("%s: other bits for recipe %zu", places[i].name, r);
    }
    close_places(places, count);
}

/* A matrix without a gradient rests; a gradient that is not finite changes nothing; matrices that do not fit are refused. */
static void muon_manners(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    float before[2][MUON_N], after[2][MUON_N], gradient[MUON_N];
    const hd_muon_desc good = muon_desc(0);
    hd_plan *plan = muon_plan(&at, &good, 0, HD_MATH_EXACT);
    memcpy(gradient, muon_gradients, sizeof gradient);
    for (int i = 0; i < 24; i++) gradient[i] = 0; /* the first layer's first matrix */
    muon_step(&at, plan, 1e-2, 0, gradient);
    check_on(&at, hd_plan_read(plan, "weights", before[0], sizeof before[0]));
    check_on(&at, hd_plan_read(plan, "m", before[1], sizeof before[1]));
    for (int i = 0; i < MUON_N; i++) assert_true((before[0][i] == muon_weights[i]) == (i < 24 || gradient[i] == 0));
    gradient[5] = NAN;
    muon_step(&at, plan, 1e-2, 0.1, gradient);
    check_on(&at, hd_plan_read(plan, "weights", after[0], sizeof after[0]));
    check_on(&at, hd_plan_read(plan, "m", after[1], sizeof after[1]));
    assert_memory_equal(before, after, sizeof before);
    hd_plan_destroy(plan);
    for (int k = 0; k < 8; k++) {
        hd_muon_matrix matrices[] = { { 0, 4, 6, 1, 0 }, { 24, 6, 3, 1, 0 } };
        hd_muon_desc bad = { .layers = MUON_LAYERS, .count = 2, .matrices = matrices };
        switch (k) {
        case 0: matrices[1].first = 23; break;
        case 1: matrices[1].first = 73; break;
        case 2: matrices[0].rows = 0; break;
        case 3: matrices[1].rows = matrices[1].columns = UINT32_MAX; break;
        case 4: matrices[1].side_by_side = 2; break;
        case 5: bad.layers = 7; break;
        case 6: matrices[1].first = UINT64_MAX - 7; break;
        default: bad.count = 0;
        }
        hd_program *p = hd_program_create(at.context);
        const hd_value states[] = { hd_state(p, "weights", HD_F32, HD_SHAPE(MUON_N)), hd_state(p, "m", HD_F32, HD_SHAPE(MUON_N)) };
        const hd_value from = hd_input(p, "gradient", HD_F32, HD_SHAPE(MUON_N));
        const hd_clipping clip = hd_clip_norm(p, &from, 1, 0);
        assert_int_equal(hd_muon(p, states, from, &clip, hd_input(p, "rates", HD_F32, HD_SHAPE(HD_RATES)), &bad, 0), 0);
        hd_output(p, "norm", clip.norm);
        if (hd_program_check(p) == HD_OK) fail_msg("case %d is no failure", k);
        hd_context_error(at.context);
        hd_program_destroy(p);
    }
    close_place(&at);
}

/* Gradients that end: moments fade to a few times 2^-100, and none is ever subnormal. */
static void resting(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    float states[3][FIXTURE_N];
    const float none[FIXTURE_N] = { 0 };
    hd_plan *plan = plan_of(&at, &recipes[1], HD_MATH_EXACT);
    step(&at, plan, &recipes[1], 0, 1e-3, fixture_gradients);
    for (uint64_t i = 1; i < 1500; i++) {
        step(&at, plan, &recipes[1], i, 1e-3, none);
        if (i % 50) continue;
        read_states(&at, plan, &recipes[1], states);
        for (int k = 0; k < FIXTURE_N; k++) assert_true((states[1][k] == 0 || isnormal(states[1][k])) && (states[2][k] == 0 || isnormal(states[2][k])));
    }
    read_states(&at, plan, &recipes[1], states);
    for (int k = 0; k < FIXTURE_N; k++) assert_true(fabsf(states[1][k]) <= 0x1p-96f && states[2][k] <= 0x1p-96f);
    hd_plan_destroy(plan);
    close_place(&at);
}

/* The bits of rates, and how near they are to what the C library's cosine gives. */
static void schedules(void **state) {
    (void)state;
    const hd_schedule cosine = { 6e-4, 6e-5, 700, 19560, HD_DECAY_COSINE }, linear = { 1, 0, 0, 10, HD_DECAY_LINEAR }, flat = { 0.5, 0, 4, 0, HD_DECAY_NONE };
    uint64_t hash = HASH_BEGIN;
    for (uint64_t s = 0; s < 20000; s++) {
        const double rate = hd_schedule_rate(&cosine, s), t = ((double)s - 700) / (19560 - 700);
        const double wanted = s < 700 ? 6e-4 * (double)(s + 1) / 700 : s >= 19560 ? 6e-5 : 6e-5 + 0.5 * (6e-4 - 6e-5) * (1 + cos(3.14159265358979323846 * t));
        if (fabs(rate - wanted) > 1e-18) fail_msg("step %u: %.17g, not %.17g", (unsigned)s, rate, wanted);
        hash = hash_of(&rate, sizeof rate, hash);
    }
    if (hash != UINT64_C(0x4a27c2a857ce5d53)) fail_msg("the rates' hash is %016llx", (unsigned long long)hash);
    assert_true(hd_schedule_rate(&linear, 0) == 1 && hd_schedule_rate(&linear, 5) == 0.5 && hd_schedule_rate(&linear, 10) == 0);
    assert_true(hd_schedule_rate(&flat, 0) == 0.125 && hd_schedule_rate(&flat, 3) == 0.5 && hd_schedule_rate(&flat, 1000) == 0.5);
    float rates[HD_RATES];
    hd_adamw_rates(NULL, 1e-3, 0.1, 99999, rates);
    assert_true(fabs((double)rates[0] - 0.9999) < 1e-7 && rates[1] == 1000 && rates[2] == 1);
    hd_adamw_rates(NULL, 1e-3, 0, 0, rates);
    assert_true(fabs((double)rates[1] - 100) < 1e-5 && fabs((double)rates[2] * sqrt(0.001) - 1) < 1e-7);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_pytorch), cmocka_unit_test(a_thousand_steps), cmocka_unit_test(not_finite), cmocka_unit_test(as_published), cmocka_unit_test(muon_manners), cmocka_unit_test(resting),
                                        cmocka_unit_test(schedules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
