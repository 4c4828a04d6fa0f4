/* test_follow.c: the rule by which a plan follows the load of its devices, on an invented clock: a load on the home device is
 * left soon, and come back from soon after it ends; noise moves nothing; looking costs little however slow the others are. */
#include "run/run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

/* A plan with alternatives that runs on and on. */
typedef struct world {
    hdi_follow follow;
    double     ns[HDI_MOST_ALTERNATIVES];    /* of a run, undisturbed */
    double     noise;                        /* the share by which runs differ, both ways */
    uint64_t   now, elsewhere_ns;            /* elsewhere: runs where the plan is not at home */
    uint32_t   switches, home;
    uint32_t   chance;
} world;

static world begin(uint32_t count, const double *ns, double noise) {
    world w = { .noise = noise, .now = 77 * SECOND, .chance = 1, .follow = { .count = count } };
    for (uint32_t i = 0; i < count; i++) w.ns[i] = w.follow.run_ns[i] = ns[i];
    return w;
}

/* One run where the rule says, so many times as long on the alternative `loaded`. */
static void run(world *w, uint32_t loaded, double times) {
    w->chance = w->chance * 1664525u + 1013904223u;
    const double share = 1 + w->noise * (2.0 * (w->chance >> 8) / 16777216.0 - 1);
    const uint32_t at = w->follow.at;
    const uint64_t took = (uint64_t)(w->ns[at] * (at == loaded ? times : 1) * share);
    w->now += took + 1000;
    if (at != w->home) w->elsewhere_ns += took;
    const uint32_t next = hdi_follow_next(&w->follow, took, w->now);
    assert_true(next < w->follow.count && next == w->follow.at);
    w->switches += w->follow.home != w->home;
    w->home = w->follow.home;
}

static void run_for(world *w, uint64_t seconds) {
    for (const uint64_t end = w->now + seconds * SECOND; w->now < end;) run(w, HDI_MOST_ALTERNATIVES, 1);
}

/* Seconds until home is `wanted` while `loaded` takes so many times as long. */
static double until_home_is(world *w, uint32_t wanted, uint32_t loaded, double times) {
    const uint64_t began = w->now;
    while (w->home != wanted && w->now < began + 100 * SECOND) run(w, loaded, times);
    return (double)(w->now - began) / 1e9;
}

/* A load comes and goes, again and again; in between the plan is at home. */
static void follows_load(world *w, double times) {
    for (int round = 0; round < 10; round++) {
        run_for(w, 5 + (uint64_t)round);
        assert_int_equal(w->home, 0);
        const double away = until_home_is(w, 1, 0, times);
        if (away > 2) fail_msg("round %d, runs of %g ns: away after %g s", round, w->ns[0], away);
        for (const uint64_t end = w->now + (uint64_t)(7 + round) * SECOND; w->now < end;) {
            run(w, 0, times);
            if (w->home != 1) fail_msg("round %d, runs of %g ns: back at home under load", round, w->ns[0]);
        }
        const double back = until_home_is(w, 0, 0, 1);
        if (back > 10) fail_msg("round %d, runs of %g ns: back after %g s", round, w->ns[0], back);
    }
}

static void a_load_is_left_and_come_back_from(void **state) {
    (void)state;
    for (double ns = 2e4; ns < 1.5e7; ns *= 5) {
        world w = begin(2, (double[]){ ns, 1.6 * ns }, 0.05);
        follows_load(&w, 4);
    }
}

static void among_three_too(void **state) {
    (void)state;
    for (double ns = 2e4; ns < 1e7; ns *= 5) {
        world near = begin(3, (double[]){ ns, 1.5 * ns, 2.2 * ns }, 0.05);
        follows_load(&near, 4);
        world far = begin(3, (double[]){ ns, 1.5 * ns, 1000 * ns },
            0.05); /* a look at the third is rare, not one at the others */
        if (1000 * ns < 1.5e9) follows_load(&far, 4);
    }
}

static void the_least_loaded_of_three_is_taken(void **state) {
    (void)state;
    world w = begin(3, (double[]){ 1e6, 3e6, 2e6 }, 0.05);
    run_for(&w, 10);
    assert_true(until_home_is(&w, 2, 0, 5) < 2);
    w.ns[0] = 5e6; /* the load stays, and another one comes */
    assert_true(until_home_is(&w, 1, 2, 5) < 2);
    w.ns[2] = 1e7;
    run_for(&w, 60);
    assert_int_equal(w.home, 1);
    w.ns[2] = 1e6; /* what was slow is the fastest now */
    assert_true(until_home_is(&w, 2, 0, 1) < 10);
}

static void noise_moves_nothing(void **state) {
    (void)state;
    for (double other = 1; other < 1.2; other += 0.05)
        for (uint32_t count = 2; count <= 3; count++) {
            world w = begin(count, (double[]){ 1e6, other * 1e6, other * 1e6 }, 0.1);
            run_for(&w, 3600);
            if (w.switches) fail_msg("%u alternatives of %g: %u switches", count, other, w.switches);
        }
}

static void looking_costs_little(void **state) {
    (void)state;
    for (double ns = 1e5; ns < 2e7; ns *= 5)
        for (uint32_t count = 2; count <= 3; count++) {
            world w = begin(count, (double[]){ ns, 1000 * ns, 1000 * ns }, 0.1);
            const uint64_t began = w.now;
            run_for(&w, 3600);
            if (w.switches || w.elsewhere_ns > (w.now - began) / 64)
                fail_msg("runs of %g ns, %u alternatives: %u switches, %g s of %g s", ns, count, w.switches,
                    (double)w.elsewhere_ns / 1e9, (double)(w.now - began) / 1e9);
            assert_true(w.elsewhere_ns > 0); /* it does look */
        }
}

static void one_alternative_is_no_choice(void **state) {
    (void)state;
    world w = begin(1, (double[]){ 1e6 }, 0.5);
    run_for(&w, 60);
    assert_true(w.switches == 0 && w.elsewhere_ns == 0);
}

/* Times of 0 and clocks that stand still are only odd. */
static void odd_times_are_harmless(void **state) {
    (void)state;
    hdi_follow f = { .count = 3 };
    for (uint32_t i = 0; i < 10000; i++) assert_true(hdi_follow_next(&f, i % 3 ? 0 : UINT64_MAX,
        i % 5 ? 0 : UINT64_MAX) < 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_is_left_and_come_back_from), cmocka_unit_test(among_three_too),
        cmocka_unit_test(the_least_loaded_of_three_is_taken), cmocka_unit_test(noise_moves_nothing),
        cmocka_unit_test(looking_costs_little), cmocka_unit_test(one_alternative_is_no_choice),
            cmocka_unit_test(odd_times_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
