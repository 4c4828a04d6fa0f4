/* test_route_trial.c: rounds on an invented clock: the candidate that is fastest is found whatever was predicted, trying costs
 * little, noise moves nothing, load does, and its end moves it back. */
#include "program_cases.h"
#include "route/route.h"
#include <math.h>

#define SECOND UINT64_C(1000000000)

typedef struct world {
    hdi_trial trial;
    uint64_t  now;
    double    ns[HDI_CANDIDATES]; /* what a round takes there */
    double    noise;              /* share of it */
    double    move_ns;            /* what moving takes */
    uint64_t  warming;            /* rounds at a new place that take a fifth longer */
    uint32_t  chance, moves;
    double    spent_ns, least_ns; /* all, and what the fastest would have taken */
} world;

static world begin(const double predicted[HDI_CANDIDATES], const double actual[HDI_CANDIDATES]) {
    world w = { .now = 5 * SECOND, .move_ns = 2000, .chance = 1 };
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) {
        w.trial.of[i] = (hdi_candidate){ .possible = predicted[i] > 0, .predicted_ns = predicted[i], .move_ns = 1000 };
        w.ns[i] = actual[i];
        if (predicted[i] > 0 && (!w.trial.of[w.trial.home].possible || predicted[i] < predicted[w.trial.home])) w.trial.home = i;
    }
    w.trial.at = w.trial.home;
    return w;
}

static bool is_open(const hdi_trial *t) { return t->trying || t->try_ns > 0; }

static void run(world *w, uint64_t until_ns) {
    while (w->now < until_ns) {
        const uint32_t next = hdi_trial_next(&w->trial, w->now);
        if (next != w->trial.at) {
            w->now += (uint64_t)w->move_ns;
            hdi_trial_moved(&w->trial, next, w->move_ns, w->now);
            w->spent_ns += w->move_ns;
            w->moves++;
        }
        w->chance = w->chance * 1664525u + 1013904223u;
        const double ns = w->ns[w->trial.at] * (1 + w->noise * (w->chance >> 8) / 16777216.0) * (w->trial.since == 0 ? 3 : w->trial.since < w->warming ? 1.2 : 1);
        w->now += (uint64_t)ns;
        w->spent_ns += ns;
        double least = HUGE_VAL;
        for (int i = 0; i < HDI_CANDIDATES; i++)
            if (w->trial.of[i].possible) least = fmin(least, w->ns[i]);
        w->least_ns += least;
        if (hdi_trial_watches(&w->trial)) hdi_trial_note(&w->trial, ns, true, w->now);
        else hdi_trial_pass(&w->trial);
    }
}

static void the_fastest_is_found(void **state) {
    (void)state;
    static const struct { double predicted[3], actual[3]; uint32_t at; } cases[] = {
        { { 10e3, 20e3, 15e3 }, { 30e3, 20e3, 25e3 }, 1 }, { { 10e3, 20e3, 15e3 }, { 30e3, 20e3, 12e3 }, 2 }, { { 10e3, 20e3, 15e3 }, { 10e3, 20e3, 15e3 }, 0 },
        { { 20e3, 10e3, 25e3 }, { 15e3, 15.5e3, 16e3 }, 0 }, { { 0, 10e3, 25e3 }, { 1, 40e3, 16e3 }, 2 }, { { 0, 10e3, 0 }, { 1, 40e3, 1 }, 1 },
        { { 10e3, 500e3, 900e3 }, { 10e3, 1, 1 }, 0 }, /* what is predicted so much longer is never tried */
    };
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        world w = begin(cases[i].predicted, cases[i].actual);
        run(&w, w.now + 4 * 1000 * 1000);
        if (w.trial.at != cases[i].at || w.trial.home != cases[i].at) fail_msg("case %zu: at %u", i, (unsigned)w.trial.at);
        const uint32_t moves = w.moves;
        run(&w, w.now + SECOND);
        assert_true(w.moves <= moves + 64 && w.trial.home == cases[i].at); /* and there it stays, but for looks at what is close */
        if (i + 1 < HDI_COUNT(cases) && w.spent_ns > 1.005 * w.least_ns) fail_msg("case %zu: %g of the least", i, w.spent_ns / w.least_ns);
    }
}

/* Threads wake and caches fill at the place that is tried, not at the one where the plan has been: the few first rounds mislead. */
static void a_place_warms_up(void **state) {
    (void)state;
    for (int slower = 0; slower < 2; slower++) {
        world w = begin((const double[3]){ 10e3, 11e3, 0 }, (const double[3]){ slower ? 10e3 : 11e3, slower ? 11e3 : 10e3, 1 });
        w.warming = 14;
        run(&w, w.now + 4 * 1000 * 1000);
        assert_int_equal(w.trial.home, slower ? 0 : 1);
        assert_true(w.spent_ns < 1.2 * w.least_ns);
    }
}

/* A plan that runs once in a while spends no more of its rounds on trying than one that runs all the time. */
static void seldom_runs_seldom_try(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 11e3, 12e3 }, (const double[3]){ 10e3, 11e3, 12e3 });
    run(&w, w.now + 10 * 1000 * 1000); /* both were tried twice */
    uint32_t away = 0;
    for (int i = 0; i < 3000; i++) {
        w.now += SECOND / 5;
        run(&w, w.now + 1);
        away += w.trial.at != w.trial.home;
    }
    assert_true(away > 0 && away < 3000 / 5 + 64);
}

/* A plan that ran all the time and now runs once in a while: the device that falls asleep between is the slower one from then on. */
static void a_pace_changes(void **state) {
    (void)state;
    world w = begin((const double[3]){ 15e3, 20e3, 0 }, (const double[3]){ 15e3, 15.5e3, 1 });
    run(&w, w.now + 20 * SECOND);
    assert_int_equal(w.trial.home, 0);
    w.ns[0] = 19e3;
    uint32_t rounds = 0;
    for (; rounds < 1000 && w.trial.home == 0; rounds++) {
        w.now += SECOND / 50;
        run(&w, w.now + 1);
    }
    if (rounds >= 400) fail_msg("%u rounds", (unsigned)rounds);
}

/* A plan that ran alone and now takes turns with others, in rows of 5 ms: what many tries found before says little of it. */
static void a_plan_begins_to_take_turns(void **state) {
    (void)state;
    world w = begin((const double[3]){ 470e3, 540e3, 0 }, (const double[3]){ 470e3, 540e3, 1 });
    run(&w, w.now + 60 * SECOND);
    assert_int_equal(w.trial.home, 0);
    assert_true(w.trial.of[1].wait > 4096); /* in vain, again and again */
    w.ns[1] = 420e3;
    int rows = 0;
    for (; rows < 200 && w.trial.home == 0; rows++) {
        w.now += SECOND / 7;
        run(&w, w.now + 5 * 1000 * 1000);
    }
    assert_int_equal(w.trial.home, 1);
}

static void noise_moves_little(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 11e3, 12e3 }, (const double[3]){ 10e3, 10.2e3, 13e3 });
    w.noise = 0.5;
    run(&w, w.now + 60 * SECOND);
    if (w.moves > 120) fail_msg("%u moves in a minute", (unsigned)w.moves);
    if (w.spent_ns > 1.26 * w.least_ns) fail_msg("%g of the least", w.spent_ns / w.least_ns); /* noise alone is 1.25 */
}

/* The place at home becomes a third slower for good: that is found out soon, however often the other one was tried in vain. */
static void a_slow_change_is_seen(void **state) {
    (void)state;
    world w = begin((const double[3]){ 100e3, 112e3, 0 }, (const double[3]){ 100e3, 112e3, 1 });
    w.noise = 0.2;
    run(&w, w.now + 60 * SECOND);
    assert_true(w.trial.home == 0 && w.trial.of[1].wait > 4096);
    w.ns[0] = 133e3;
    run(&w, w.now + 20 * SECOND);
    assert_int_equal(w.trial.home, 1);
}

/* What else the machine does makes all rounds longer for a while, and each try and what it is compared with by something of their own: one try
 * says the opposite of the next one, all of them together name the faster place. */
static void many_tries_tell(void **state) {
    (void)state;
    double spent_ns = 0, least_ns = 0;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        world w = begin((const double[3]){ 150e3, 140e3, 110e3 }, (const double[3]){ 159e3, 153e3, 170e3 });
        w.noise = 0.3;
        w.chance = seed * 7919;
        for (uint32_t visit = 0, drawn = seed; visit < 400; visit++) {
            static const double usual[3] = { 159e3, 153e3, 170e3 };
            for (int i = 0; i < 3; i++) drawn = drawn * 1664525u + 1013904223u, w.ns[i] = usual[i] * (0.9 + 0.2 * (drawn >> 8) / 16777216.0) * (visit % 7 == 0 ? 1.4 : 1);
            if (visit == 100) w.spent_ns = w.least_ns = 0;
            const double before_ns = w.spent_ns;
            run(&w, w.now + 5 * 1000 * 1000);
            if (visit >= 100) spent_ns += (w.spent_ns - before_ns) / w.ns[w.trial.at] * usual[w.trial.at], least_ns += (w.spent_ns - before_ns) / w.ns[w.trial.at] * usual[1];
            w.now += 300 * 1000 * 1000;
        }
    }
    if (spent_ns > 1.015 * least_ns) fail_msg("%g of the least", spent_ns / least_ns);
}

/* A plan that runs for 20 ms and rests. Behind each rest all rounds take as long as the machine allows then, up to half as long again as
 * before, and get shorter for a while. Only those of one stretch are set beside each other, a try between rounds at home before and behind
 * it: a place that is a little slower is never taken for the faster one. */
static void a_rest_parts_what_is_compared(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        world w = begin((const double[3]){ 110e3, 100e3, 0 }, (const double[3]){ 103e3, 100e3, 1 });
        w.noise = 0.02;
        w.chance = seed * 7919;
        uint32_t wrong = 0;
        for (uint32_t visit = 0, drawn = seed; visit < 200; visit++) {
            drawn = drawn * 1664525u + 1013904223u;
            const double level = 1 + 0.5 * (drawn >> 8) / 16777216.0;
            for (int part = 0; part < 20; part++) {
                const double cold = 1 + 0.2 * exp(-part / 5.0);
                w.ns[0] = 103e3 * level * cold;
                w.ns[1] = 100e3 * level * cold;
                run(&w, w.now + 1000 * 1000);
            }
            wrong += w.trial.home != 1;
            w.now += 300 * 1000 * 1000;
        }
        if (wrong > 0) fail_msg("seed %u: at home at the slower one behind %u visits", (unsigned)seed, (unsigned)wrong);
    }
}

static void load_moves_decisions_and_its_end_moves_them_back(void **state) {
    (void)state;
    world w = begin((const double[3]){ 40e3, 10e3, 30e3 }, (const double[3]){ 40e3, 10e3, 35e3 });
    w.noise = 0.1;
    run(&w, w.now + 10 * SECOND);
    assert_int_equal(w.trial.at, 1);
    const uint32_t moves = w.moves;
    w.ns[1] = 200e3; /* somebody else computes there */
    w.ns[2] = 120e3;
    run(&w, w.now + SECOND / 10);
    assert_int_equal(w.trial.home, 0);
    w.spent_ns = w.least_ns = 0;
    run(&w, w.now + 60 * SECOND);
    assert_int_equal(w.trial.home, 0);
    assert_true(w.moves - moves < 54 && w.spent_ns < 1.15 * w.least_ns); /* it is looked for the end, ever more seldom */
    w.ns[1] = 10e3;
    w.ns[2] = 35e3;
    run(&w, w.now + 65 * SECOND);
    assert_int_equal(w.trial.home, 1);
    /* A short load is followed by a short wait. */
    w.ns[1] = 200e3;
    run(&w, w.now + 2 * SECOND);
    assert_int_not_equal(w.trial.home, 1);
    w.ns[1] = 10e3;
    run(&w, w.now + 4 * SECOND);
    assert_int_equal(w.trial.home, 1);
}

/* A load that hurts both, one a hundred times and the other one twenty times: tries cost tens of milliseconds, more than is allowed for a
 * long time, and still the plan is back a second after the load. */
static void a_heavy_load_ends(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        world w = begin((const double[3]){ 170e3, 400e3, 0 }, (const double[3]){ 170e3, 500e3, 1 });
        w.chance = seed * 7919;
        w.move_ns = 1e6;
        w.noise = 0.1;
        run(&w, w.now + 2 * SECOND);
        assert_int_equal(w.trial.home, 0);
        w.noise = 1.5;
        w.ns[0] = 16e6;
        w.ns[1] = 8e6;
        run(&w, w.now + SECOND);
        w.ns[1] = 5e6;
        run(&w, w.now + 3 * SECOND);
        assert_int_equal(w.trial.home, 1);
        w.noise = 0.1;
        w.ns[0] = 170e3;
        w.ns[1] = 500e3;
        run(&w, w.now + SECOND);
        if (w.trial.home != 0) fail_msg("seed %u: not back", (unsigned)seed);
    }
}

/* A mean over many short rounds takes long to see that they are long now; the latest ones tell. Rounds of which few are timed are no rests
 * once they are long. */
static void a_load_is_seen_soon(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        const double of = seed % 2 ? 1 : 0.1;
        world w = begin((const double[3]){ 170e3 * of, 400e3 * of, 0 }, (const double[3]){ 170e3 * of, 500e3 * of, 1 });
        w.chance = seed * 7919;
        w.noise = 0.1;
        run(&w, w.now + 2 * SECOND);
        w.ns[0] = 24e6;
        w.ns[1] = 12e6;
        run(&w, w.now + SECOND / 2);
        if (w.trial.home != 1) fail_msg("seed %u: not away", (unsigned)seed);
    }
}

/* Somebody else computes at home for 30 ms now and then. That is over before it would pay to move, and says nothing of the rounds behind it:
 * what eight tries have found stays. */
static void a_burst_is_no_load(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        world w = begin((const double[3]){ 85e3, 93e3, 0 }, (const double[3]){ 85e3, 93e3, 1 });
        w.chance = seed * 7919;
        w.noise = 0.05;
        w.move_ns = 500e3;
        run(&w, w.now + 2 * SECOND);
        assert_int_equal(w.trial.home, 0);
        w.spent_ns = w.least_ns = 0;
        for (int burst = 0; burst < 40; burst++) {
            w.ns[0] = 340e3;
            const double spent_ns = w.spent_ns, least_ns = w.least_ns;
            run(&w, w.now + 30 * 1000 * 1000);
            w.spent_ns = spent_ns; /* what counts is how it goes on */
            w.least_ns = least_ns;
            w.ns[0] = 85e3;
            run(&w, w.now + SECOND / 4 + seed * 1000 * 1000);
        }
        if (w.spent_ns > 1.04 * w.least_ns) fail_msg("seed %u: %g of the least", (unsigned)seed, w.spent_ns / w.least_ns); /* noise alone is 1.025 */
    }
}

/* What is predicted to take far longer is tried when rounds at home become as long, not in each burst of them. */
static void a_burst_is_no_time_for_a_first_try(void **state) {
    (void)state;
    world w = begin((const double[3]){ 60e3, 400e3, 0 }, (const double[3]){ 60e3, 400e3, 1 });
    for (int burst = 0; burst < 10; burst++) {
        w.ns[0] = 60e3;
        run(&w, w.now + SECOND);
        w.ns[0] = 600e3;
        run(&w, w.now + 30 * 1000 * 1000);
    }
    assert_int_equal(w.moves, 0);
    run(&w, w.now + SECOND / 2);
    assert_int_equal(w.trial.home, 1);
}

/* A plan was in a burst just when it tried another place, which seemed faster. Those whose own rounds take less than others ever took
 * there do not follow, until theirs take longer as well. */
static void what_a_disturbed_plan_found_moves_no_other(void **state) {
    (void)state;
    world w = begin((const double[3]){ 60e3, 150e3, 0 }, (const double[3]){ 800e3, 400e3, 1 });
    world other = begin((const double[3]){ 60e3, 400e3, 0 }, (const double[3]){ 60e3, 400e3, 1 });
    run(&w, w.now + SECOND / 4);
    assert_int_equal(w.trial.home, 1);
    run(&other, other.now + SECOND / 4);
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + SECOND / 4);
    assert_true(other.trial.home == 0 && other.trial.of[1].ratio < 1 && other.moves == 0);
    other.ns[0] = 800e3;
    run(&other, other.now + SECOND / 2);
    assert_int_equal(other.trial.home, 1);
}

/* Others take turns on the device: one round in ten takes fifty times as long, and the median shows nothing. The load's end is seen though
 * tries in vain made the wait long. */
static void turns_are_seen(void **state) {
    (void)state;
    world w = begin((const double[3]){ 20e3, 10e3, 0 }, (const double[3]){ 20e3, 10e3, 1 });
    run(&w, w.now + SECOND);
    assert_int_equal(w.trial.home, 1);
    for (int i = 0; i < 60000 && w.trial.home == 1; i++) {
        w.ns[1] = i % 10 == 0 ? 500e3 : 10e3;
        run(&w, w.now + 1);
    }
    assert_int_equal(w.trial.home, 0);
    w.ns[0] = 400e3; /* now everything is slow for a while */
    w.ns[1] = 2000e3;
    run(&w, w.now + 30 * SECOND);
    w.ns[0] = 20e3;
    w.ns[1] = 10e3;
    run(&w, w.now + 3 * SECOND);
    assert_int_equal(w.trial.home, 1);
}

/* Both devices at work have to pay: where one alone is about as fast the other one is left free, whichever the plan begins with. */
static void one_device_is_enough(void **state) {
    (void)state;
    static const struct { double both; uint32_t at; } cases[] = { { 9.9e3, 1 }, { 9.8e3, 1 }, { 9.5e3, 2 }, { 10.5e3, 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int first = 0; first < 2; first++) {
            world w = begin((const double[3]){ 0, first ? 9e3 : 10e3, first ? 10e3 : 9e3 }, (const double[3]){ 1, 10e3, cases[i].both });
            run(&w, w.now + SECOND / 5);
            assert_int_equal(w.trial.home, cases[i].at);
        }
}

/* What is found early pays longest: a share of the rounds that have gone by would not allow so many tries yet. In the end it bounds them. */
static void trying_comes_early(void **state) {
    (void)state;
    world w = begin((const double[3]){ 100e3, 105e3, 0 }, (const double[3]){ 100e3, 105e3, 1 });
    w.move_ns = w.trial.of[0].move_ns = w.trial.of[1].move_ns = 1e6;
    run(&w, w.now + SECOND / 5);
    if (w.trial.of[1].tries < 4) fail_msg("%u tries", (unsigned)w.trial.of[1].tries);
    run(&w, w.now + 20 * SECOND);
    if (w.spent_ns > 1.015 * w.least_ns) fail_msg("%g of the least", w.spent_ns / w.least_ns);
}

static void trying_is_bounded(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 11e3, 12e3 }, (const double[3]){ 10e3, 11e3, 12e3 });
    for (int i = 0; i < 3; i++) w.trial.of[i].move_ns = 1e9; /* much has to move */
    run(&w, w.now + 20 * SECOND);
    assert_true(w.moves == 0);
    run(&w, w.now + 300 * SECOND);
    assert_true(w.moves > 0 && w.trial.at == 0); /* now it is worth it */
    /* Where it could not go it does not try at once again; rounds that are not usual ones tell nothing. */
    w = begin((const double[3]){ 20e3, 11e3, 0 }, (const double[3]){ 10e3, 11e3, 1 });
    hdi_trial_failed(&w.trial, 0, w.now);
    run(&w, w.now + 30 * SECOND);
    assert_true(w.moves == 0 && w.trial.at == 1);
    /* Where it cannot go back, it stays. */
    w = begin((const double[3]){ 12e3, 11e3, 0 }, (const double[3]){ 11.5e3, 11e3, 1 });
    while (w.trial.at == 1) run(&w, w.now + 1);
    while (hdi_trial_next(&w.trial, w.now) == 0) run(&w, w.now + 1);
    hdi_trial_failed(&w.trial, 1, w.now);
    run(&w, w.now + 30 * SECOND);
    assert_true(w.moves == 1 && w.trial.at == 0 && w.trial.home == 0);
    w = begin((const double[3]){ 20e3, 11e3, 0 }, (const double[3]){ 10e3, 11e3, 1 });
    for (int i = 0; i < 100; i++) hdi_trial_note(&w.trial, 11e3, false, w.now);
    hdi_trial_note(&w.trial, NAN, true, w.now);
    assert_true(hdi_candidate_ns(&w.trial.of[1]) == 0 && hdi_trial_next(&w.trial, w.now) == 1);
}

/* A place that takes several times as long is left behind the first two rounds that count, and what it took is not taken for new each time. */
static void a_far_place_is_left_soon(void **state) {
    (void)state;
    world w = begin((const double[3]){ 2e6, 4e6, 0 }, (const double[3]){ 2e6, 10e6, 1 });
    run(&w, w.now + SECOND / 5);
    assert_true(w.moves == 2 && w.trial.home == 0 && w.trial.of[1].tries == 1);
    assert_true(w.spent_ns - w.least_ns < 70e6);
    w.noise = 1; /* all rounds, wherever they are, are longer now and then */
    w.spent_ns = w.least_ns = 0;
    for (int burst = 0; burst < 40; burst++) {
        w.ns[0] = burst % 4 == 0 ? 5e6 : 2e6;
        w.ns[1] = burst % 4 == 0 ? 25e6 : 10e6;
        run(&w, w.now + SECOND / 4);
    }
    if (w.spent_ns > 1.55 * w.least_ns) fail_msg("%g of the least", w.spent_ns / w.least_ns); /* noise alone is 1.5 */
}

/* One try in four begins slowly, as where threads sleep deeply, and then the place is the faster one. */
static void a_close_place_is_tried_to_the_end(void **state) {
    (void)state;
    world w = begin((double[]){ 20e3, 21e3, 0 }, (double[]){ 20e3, 19e3, 0 });
    for (const uint64_t end = w.now + 3 * SECOND; w.now < end;) {
        w.ns[1] = w.trial.home == 0 && w.trial.since < 12 && w.moves / 2 % 4 == 1 ? 28e3 : 19e3;
        run(&w, w.now + 1); /* one round */
    }
    assert_int_equal(w.trial.home, 1);
}

/* Places for both devices whose like were far from what was predicted are tried only where they are predicted to be that much better. */
static void other_places_are_expected_to_be_as_far_off(void **state) {
    (void)state;
    world w = begin((const double[3]){ 100e3, 0, 80e3 }, (const double[3]){ 100e3, 1, 160e3 });
    run(&w, w.now + SECOND / 5);
    assert_true(w.trial.home == 0 && w.trial.of[2].tries > 0);
    const uint32_t moves = w.moves;
    hdi_trial_replaced(&w.trial, 2, 80e3);
    w.trial.of[2].predicted_ns = 70e3;
    run(&w, w.now + SECOND / 5);
    assert_true(w.moves == moves && w.trial.of[2].tries == 0);
    hdi_trial_replaced(&w.trial, 2, 70e3);
    w.trial.of[2].predicted_ns = 40e3;
    w.ns[2] = 80e3;
    run(&w, w.now + SECOND / 5);
    assert_int_equal(w.trial.home, 2);
}

/* Moving takes what it was measured to take, not what was predicted. */
static void moves_cost_what_they_took(void **state) {
    (void)state;
    world w = begin((const double[3]){ 100e3, 110e3, 0 }, (const double[3]){ 100e3, 110e3, 1 });
    w.move_ns = 20e6;
    w.spent_ns = w.least_ns = 0;
    run(&w, w.now + 60 * SECOND);
    assert_true(w.moves > 4);
    if (w.spent_ns > 1.025 * w.least_ns) fail_msg("%g of the least", w.spent_ns / w.least_ns);
    hdi_trial_inherit(&w.trial); /* a plan that lives for a second has no time for it */
    w.trial.of[1].wait = 256;
    const uint32_t moves = w.moves;
    run(&w, w.now + SECOND);
    assert_int_equal(w.moves, moves);
}

/* Another plan of the same begins where the first one ended, and owes nothing for what that one tried. */
static void another_plan_inherits(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 20e3, 15e3 }, (const double[3]){ 30e3, 20e3, 25e3 });
    run(&w, w.now + SECOND / 10);
    assert_int_equal(w.trial.home, 1);
    while (w.trial.at == w.trial.home) run(&w, w.now + 1);
    hdi_trial_inherit(&w.trial);
    assert_true(w.trial.at == 1 && !w.trial.trying && w.trial.spent_ns == 0 && w.trial.tried_ns == 0);
    hdi_trial_replaced(&w.trial, 2, 15e3);
    w.trial.of[2].predicted_ns = 10e3;
    w.ns[1] = 60e3; /* its first rounds, which touch new memory, tell nothing */
    run(&w, w.now + 20 * 60000);
    assert_int_equal(w.trial.at, 1);
    w.ns[1] = 20e3;
    w.spent_ns = w.least_ns = 0;
    run(&w, w.now + SECOND / 10);
    assert_int_equal(w.trial.home, 1);
    if (w.spent_ns > 1.01 * w.least_ns) fail_msg("%g of the least", w.spent_ns / w.least_ns);
}

/* Two plans of the same that run in turn: what one has found moves the other one, which does not try it by itself. */
static void plans_of_the_same_learn_from_each_other(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 12e3, 0 }, (const double[3]){ 10.4e3, 10e3, 1 });
    world other = begin((const double[3]){ 10e3, 50e3, 0 }, (const double[3]){ 10.4e3, 10e3, 1 });
    run(&w, w.now + SECOND / 10);
    assert_int_equal(w.trial.home, 1);
    run(&other, other.now + 5 * 1000 * 1000);
    assert_true(!is_open(&other.trial) && other.trial.home == 0 && other.trial.of[1].tries == 0);
    hdi_trial_adopt(&other.trial, &w.trial);
    assert_true(other.trial.home == 0 && other.trial.of[1].ratio < 1);
    run(&other, other.now + 200 * 1000);
    assert_true(other.moves == 1 && other.trial.at == 1 && other.trial.home == 1); /* a twentieth of these rounds is what two moves take */
    run(&other, other.now + 2 * 1000 * 1000);
    assert_int_equal(other.moves, 1); /* the last try was not long ago */
    /* Where moving takes long it stays, and where it would save nothing too. */
    other = begin((const double[3]){ 10e3, 50e3, 0 }, (const double[3]){ 10.4e3, 10e3, 1 });
    other.trial.of[1].move_ns = 1e6;
    run(&other, other.now + 5 * 1000 * 1000);
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + 10 * 1000 * 1000);
    assert_int_equal(other.trial.home, 0);
    /* A new plan begins there. */
    hdi_trial newer = other.trial;
    hdi_trial_inherit(&newer);
    assert_true(newer.home == 1 && newer.at == 1);
    /* In the middle of a try of another place: it goes on. */
    other = begin((const double[3]){ 10e3, 12e3, 11e3 }, (const double[3]){ 14e3, 10e3, 15e3 });
    while (other.trial.at != 2) run(&other, other.now + 1);
    hdi_trial_adopt(&other.trial, &w.trial);
    assert_true(is_open(&other.trial) && hdi_trial_next(&other.trial, other.now) == 2);
    run(&other, other.now + 5 * 1000 * 1000);
    assert_int_equal(other.trial.home, 1);
}

/* A plan waits while another one of the same tries: the first time, and when a place is to be looked at again, which is due for all at
 * once. Behind that it takes its turn, with no more of its own rounds than if it were alone. */
static void one_plan_tries_for_all(void **state) {
    (void)state;
    world w = begin((const double[3]){ 10e3, 12e3, 0 }, (const double[3]){ 10e3, 12e3, 1 }), other = w;
    while (w.trial.at == 0) run(&w, w.now + 1);
    run(&other, other.now + 40 * 1000);
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + 200 * 1000);
    assert_true(other.moves == 0 && other.trial.of[1].tries == 0);
    while (is_open(&w.trial)) run(&w, w.now + 1);
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + 200 * 1000);
    assert_int_equal(other.moves, 0);
    run(&w, w.now + 10 * SECOND);
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + 10 * SECOND);
    assert_true(other.trial.at == 0 && !is_open(&other.trial) && !is_open(&w.trial));
    w.now = other.now += 70 * SECOND; /* nobody knows it any more */
    const uint32_t moves = w.moves, others = other.moves;
    while (w.trial.at == 0) run(&w, w.now + 1);
    assert_int_equal(w.moves, moves + 1);
    other.now = w.now;
    hdi_trial_adopt(&other.trial, &w.trial);
    run(&other, other.now + 300 * 1000);
    assert_int_equal(other.moves, others);
    const uint64_t stayed = other.trial.rounds - other.trial.of[1].at_round, wait = other.trial.of[1].wait;
    assert_true(stayed < wait);
    run(&other, other.now + (wait - stayed) * 10000 * 99 / 100);
    assert_int_equal(other.moves, others);
    run(&other, other.now + (wait - stayed) * 10000 / 50 + SECOND / 5);
    assert_int_not_equal(other.moves, others);
}

/* Sixteen plans take turns, in rows whose rounds take up to a fifth more or less: to one plan or another the place that is not at home seems
 * to have been faster all the time. Once that was in vain a few times, it is noise. */
static void what_many_plans_think_is_noise(void **state) {
    (void)state;
    enum { PLANS = 16, ROWS = 400 };
    uint64_t tries = 0;
    for (uint32_t seed = 1; seed <= 8; seed++) {
        world w[PLANS];
        hdi_trial kept = { 0 };
        uint64_t now = 5 * SECOND;
        const hdi_trial *from = NULL;
        for (uint32_t i = 0; i < PLANS; i++) {
            w[i] = begin((const double[3]){ 149e3, 138e3, 0 }, (const double[3]){ 149e3, 138e3, 1 });
            w[i].chance = seed * 7919 + i;
            w[i].noise = 0.2;
            w[i].move_ns = 1e5;
        }
        for (uint32_t row = 0, drawn = seed; row < ROWS; row++) {
            world *plan = &w[row % PLANS];
            for (int i = 0; i < 2; i++) drawn = drawn * 1664525u + 1013904223u, plan->ns[i] = (i ? 138e3 : 149e3) * (0.8 + 0.4 * (drawn >> 8) / 16777216.0);
            if (from && from != &plan->trial) hdi_trial_adopt(&plan->trial, &kept);
            plan->now = now;
            for (bool open = is_open(&plan->trial), tried = plan->trial.trying; plan->now < now + SECOND / 100; open = is_open(&plan->trial), tried = plan->trial.trying) {
                run(plan, plan->now + 1);
                tries += plan->trial.trying && !tried;
                if (open == is_open(&plan->trial)) continue;
                kept = plan->trial;
                from = &plan->trial;
            }
            now = plan->now + SECOND / 100;
        }
    }
    if (tries > 190) fail_msg("%llu tries", (unsigned long long)tries);
}

/* Something else happens just during one try, which takes half as long as those before: one more is asked for, and says that nothing
 * is new. A change that lasts is found by these two. */
static void one_try_is_an_accident(void **state) {
    (void)state;
    for (uint32_t before = 1; before <= 2; before++) {
        world w = begin((const double[3]){ 100e3, 110e3, 0 }, (const double[3]){ 100e3, 110e3, 1 });
        while (w.trial.of[1].tries < before || is_open(&w.trial)) run(&w, w.now + 1);
        assert_int_equal(w.trial.home, 0);
        for (int i = 0; i < 100000 && w.trial.at == 0; i++) run(&w, w.now + 1);
        w.ns[1] = 50e3;
        while (w.trial.at == 1 && w.trial.home == 0) run(&w, w.now + 1);
        w.ns[1] = 110e3;
        while (is_open(&w.trial)) run(&w, w.now + 1);
        assert_int_equal(w.trial.home, 0);
        const uint32_t moves = w.moves;
        run(&w, w.now + SECOND / 50);
        assert_true(w.trial.home == 0 && w.moves == moves + 2 && !(w.trial.of[1].odd > 0));
        w.ns[1] = 50e3;
        run(&w, w.now + 60 * SECOND);
        assert_int_equal(w.trial.home, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_found), cmocka_unit_test(a_place_warms_up), cmocka_unit_test(seldom_runs_seldom_try), cmocka_unit_test(a_pace_changes), cmocka_unit_test(a_plan_begins_to_take_turns), cmocka_unit_test(noise_moves_little), cmocka_unit_test(a_slow_change_is_seen), cmocka_unit_test(many_tries_tell),
        cmocka_unit_test(a_rest_parts_what_is_compared),
        cmocka_unit_test(load_moves_decisions_and_its_end_moves_them_back), cmocka_unit_test(a_heavy_load_ends), cmocka_unit_test(a_load_is_seen_soon), cmocka_unit_test(a_burst_is_no_load), cmocka_unit_test(a_burst_is_no_time_for_a_first_try), cmocka_unit_test(what_a_disturbed_plan_found_moves_no_other), cmocka_unit_test(turns_are_seen), cmocka_unit_test(one_device_is_enough), cmocka_unit_test(trying_comes_early), cmocka_unit_test(trying_is_bounded),
        cmocka_unit_test(a_far_place_is_left_soon), cmocka_unit_test(a_close_place_is_tried_to_the_end), cmocka_unit_test(other_places_are_expected_to_be_as_far_off), cmocka_unit_test(moves_cost_what_they_took),
        cmocka_unit_test(another_plan_inherits), cmocka_unit_test(plans_of_the_same_learn_from_each_other), cmocka_unit_test(one_plan_tries_for_all), cmocka_unit_test(what_many_plans_think_is_noise), cmocka_unit_test(one_try_is_an_accident),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
