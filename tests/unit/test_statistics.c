/* test_statistics.c: medians and percentiles of samples, the crossing by the 90% rule on made-up sizes, and orders of chance. The
 * source is included, not linked: it belongs to the CLI, which is built only where its JSON library is. */
#include "../../cli/statistics.c"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void medians_and_percentiles(void **state) {
    (void)state;
    uint64_t one[] = { 7 }, two[] = { 10, 4 }, odd[] = { 5, 1, 3 };
    statistics s = statistics_of(one, 1);
    assert_true(s.median_ns == 7 && s.p90_ns == 7 && s.min_ns == 7 && s.max_ns == 7);
    s = statistics_of(two, 2);
    assert_true(s.median_ns == 7 && s.p90_ns == 10 && s.min_ns == 4 && s.max_ns == 10);
    s = statistics_of(odd, 3);
    assert_true(s.median_ns == 3 && s.p90_ns == 5 && s.min_ns == 1 && s.max_ns == 5);
    /* 1..n backwards: P90 is the least whole number that is 0.9 n or more. */
    for (uint64_t n = 1; n <= 40; n++) {
        uint64_t many[40];
        for (uint64_t i = 0; i < n; i++) many[i] = n - i;
        s = statistics_of(many, n);
        assert_int_equal(s.p90_ns, (9 * n + 9) / 10);
        assert_int_equal(s.median_ns, (n + 1) / 2);
        many[n - 1] *= n < 20 ? 1 : 100; /* one of twenty is left out at either end */
        if (statistics_middle_ns(many, n) != (double)(n + 1) / 2) fail_msg("the middle of %d", (int)n);
    }
    uint64_t huge[] = { UINT64_MAX, UINT64_MAX - 2 };
    assert_int_equal(statistics_of(huge, 2).median_ns, UINT64_MAX - 1);
}

/* It is what means of the middle differ by from one set of samples to the next; one in ten of these is far off. */
static void the_error_of_a_mean(void **state) {
    (void)state;
    enum { SETS = 4000, SAMPLES = 100 };
    uint64_t two[] = { 1, 3 }, seed = 1, samples[SAMPLES];
    assert_true(statistics_middle_error_ns(two, 1) == 0 && fabs(statistics_middle_error_ns(two, 2) - 1) < 1e-12);
    double sum = 0, squares = 0, errors = 0;
    for (int set = 0; set < SETS; set++) {
        for (int i = 0; i < SAMPLES; i++) samples[i] = next(&seed) % 1000 + (next(&seed) % 10 == 0 ? 5000 : 1000);
        statistics_of(samples, SAMPLES);
        const double mean = statistics_middle_ns(samples, SAMPLES) - 1500;
        sum += mean;
        squares += mean * mean;
        errors += statistics_middle_error_ns(samples, SAMPLES);
    }
    const double apart = sqrt(squares / SETS - sum / SETS * (sum / SETS));
    if (fabs(errors / SETS / apart - 1) > 0.15) fail_msg("an error of %g, and means are %g apart", errors / SETS, apart);
}

/* Of "..WW.W": W is a size that the device wins. */
static size_t crossing(const char *sizes) {
    bool wins[64];
    const size_t count = strlen(sizes);
    for (size_t i = 0; i < count; i++) wins[i] = sizes[i] == 'W';
    return statistics_crossing(wins, count);
}

static void the_90_percent_rule(void **state) {
    (void)state;
    assert_int_equal(crossing(""), 0);              /* no sizes: none */
    assert_int_equal(crossing("...."), 4);          /* none */
    assert_int_equal(crossing("WWWW"), 0);
    assert_int_equal(crossing("..WW"), 2);
    assert_int_equal(crossing("...W"), 3);
    assert_int_equal(crossing("WWW."), 4);          /* loses the largest: 3 of 4 are too few, and so on */
    assert_int_equal(crossing("..W.WWWWWW"), 4);    /* 7 of 8 from the lucky one on: too few */
    assert_int_equal(crossing("..W.WWWWWWWW"), 2);  /* 9 of 10: enough */
    assert_int_equal(crossing("WWWWWWWWW."), 0);    /* 9 of 10, though the largest is lost */
    assert_int_equal(crossing(".WWWWWWWWW"), 1);    /* a crossing is a size that is won */
    assert_int_equal(crossing("W.WWWWWWWWWWWWWWWWW."), 0);
}

static void orders_of_chance(void **state) {
    (void)state;
    uint64_t seed = 1;
    size_t first[5] = { 0 }, order[5];
    for (int round = 0; round < 5000; round++) {
        bool seen[5] = { false };
        statistics_shuffle(order, 5, &seed);
        for (size_t i = 0; i < 5; i++) seen[order[i]] = true;
        for (size_t i = 0; i < 5; i++) assert_true(seen[i]);
        first[order[0]]++;
    }
    for (size_t i = 0; i < 5; i++) assert_in_range(first[i], 850, 1150);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(medians_and_percentiles), cmocka_unit_test(the_error_of_a_mean), cmocka_unit_test(the_90_percent_rule), cmocka_unit_test(orders_of_chance) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
