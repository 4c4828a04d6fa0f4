/* test_random.c: numbers made of random words have the distributions they are named for, depend on key and stream, and have the
 * same bits on every device in exact mode. */
#include "devices.h"
#include <math.h>

enum { N = 40000 };
static float uniform[N], normal[N], dropped[N];

static uint64_t draw(const place *at, uint64_t seed, uint64_t number) {
    hd_program *p = hd_program_create(at->context);
    const hd_value key = hd_input(p, "key", HD_I32, HD_SHAPE(4)), x = hd_input(p, "x", HD_F32, HD_SHAPE(N));
    static float ones[N];
    const uint32_t words[4] = { (uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)number, (uint32_t)(number >> 32) };
    hd_plan *plan = NULL;
    for (int i = 0; i < N; i++) ones[i] = 1;
    hd_output(p, "uniform", hd_random_uniform(p, key, 1, HD_SHAPE(N)));
    hd_output(p, "normal", hd_random_normal(p, key, 2, HD_SHAPE(N)));
    hd_output(p, "dropped", hd_dropout(p, x, key, 3, 0.2f));
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    hd_program_destroy(p);
    check_on(at, hd_plan_write(plan, "key", words, sizeof words));
    check_on(at, hd_plan_write(plan, "x", ones, sizeof ones));
    check_on(at, hd_plan_run(plan, NULL));
    check_on(at, hd_plan_read(plan, "uniform", uniform, sizeof uniform));
    check_on(at, hd_plan_read(plan, "normal", normal, sizeof normal));
    check_on(at, hd_plan_read(plan, "dropped", dropped, sizeof dropped));
    hd_plan_destroy(plan);
    return hash_of(dropped, sizeof dropped, hash_of(normal, sizeof normal, hash_of(uniform, sizeof uniform, HASH_BEGIN)));
}

static int by_size(const void *a, const void *b) { return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b); }

/* The largest distance between the numbers' distribution and the one they should have (Kolmogorov and Smirnov). */
static double distance(float *numbers, double (*share)(double)) {
    double most = 0;
    qsort(numbers, N, sizeof *numbers, by_size);
    for (int i = 0; i < N; i++) most = fmax(most, fabs((i + 0.5) / N - share((double)numbers[i])));
    return most;
}
static double of_uniform(double x) { return x; }
static double of_normal(double x) { return 0.5 * erfc(-x / sqrt(2)); }

static void distributions(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    draw(&at, 42, 7);
    int zeros = 0;
    for (int i = 0; i < N; i++) {
        assert_true(uniform[i] >= 0 && uniform[i] < 1 && isfinite(normal[i]) && fabsf(normal[i]) < 6);
        assert_true(dropped[i] == 0 || dropped[i] == 1.25f);
        zeros += dropped[i] == 0;
    }
    assert_true(abs(zeros - N / 5) < 400); /* 5 deviations */
    assert_true(distance(uniform, of_uniform) < 1.95 / sqrt(N) && distance(normal, of_normal) < 1.95 / sqrt(N)); /* exceeded by one seed in 1,000 */
    close_place(&at);
}

static void everywhere(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    const uint64_t hash = draw(&places[0], UINT64_C(0x123456789abcdef), 3);
    for (int i = 1; i < count; i++)
        if (draw(&places[i], UINT64_C(0x123456789abcdef), 3) != hash) fail_msg("%s: other bits", places[i].name);
    assert_true(draw(&places[0], UINT64_C(0x123456789abcdee), 3) != hash && draw(&places[0], UINT64_C(0x123456789abcdef), 4) != hash);
    close_places(places, count);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(distributions), cmocka_unit_test(everywhere) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
