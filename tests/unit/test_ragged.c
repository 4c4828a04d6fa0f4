/* test_ragged.c: products of every M, N and K of 1 to 67, in exact and in fast mode, beside sums of whole numbers, which no order
 * and no rounding changes. Of a device those of some K are computed; all of them with the argument `all`, and of one device with
 * its name in front: test_ragged vulkan all. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 67 };
static const char *named;
static int all;

/* -2 .. 2: sums stay whole numbers of f16, too. */
static float number(int i) { return (float)((unsigned)i * 2654435761u >> 13 & 3) - (float)((unsigned)i * 40503u >> 9 & 1) - 1; }

/* One program: every N for this M and K, C = A x B[:, :N]. */
static int products(hd_context *context, hd_device *device, int m, int k, const int *columns, int count, hd_math math) {
    static float a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
    hd_plan *plan;
    char name[8];
    hd_program *p = hd_program_create(context);
    const hd_value left = hd_input(p, "a", HD_F32, HD_SHAPE(m, k)), right = hd_input(p, "b", HD_F32, HD_SHAPE(k, MOST));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "c%d", columns[i]);
        hd_output(p, name, hd_matmul(p, left, hd_slice(p, right, (int64_t[]){ 0, 0 }, (int64_t[]){ k, columns[i] }, 2)));
    }
    for (int i = 0; i < m * k; i++) a[i] = number(i + m * 1000 + k);
    for (int i = 0; i < k * MOST; i++) b[i] = number(3 * i + k);
    if (hd_plan_create(device, p, &(hd_plan_desc){ .math = math }, &plan) || hd_plan_write(plan, "a", a, sizeof *a * (size_t)(m * k)) ||
        hd_plan_write(plan, "b", b, sizeof *b * (size_t)(k * MOST)) || hd_plan_run(plan, NULL))
        fail_msg("M %d, K %d: %s", m, k, hd_context_error(context));
    for (int i = 0; i < count; i++) {
        const int n = columns[i];
        snprintf(name, sizeof name, "c%d", n);
        assert_int_equal(hd_plan_read(plan, name, c, sizeof *c * (size_t)(m * n)), HD_OK);
        for (int e = 0; e < m * n; e++) {
            float sum = 0;
            for (int at = 0; at < k; at++) sum += a[e / n * k + at] * b[at * MOST + e % n];
            if (c[e] != sum) fail_msg("[%d,%d] x [%d,%d], element %d: %g, not %g", m, k, k, n, e, (double)c[e], (double)sum);
        }
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return count;
}

/* `every`: of how many M and K one is taken, and of how many N. */
static void device(const char *id, int every) {
    static const hd_math maths[] = { HD_MATH_EXACT, HD_MATH_FAST };
    hd_context *context;
    hd_device *opened;
    int done = 0;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &opened)) {
        print_message("%s is not here\n", id);
        hd_context_destroy(context);
        return;
    }
    for (int math = 0; math < 2; math++)
        for (int m = 1; m <= MOST; m++)
            for (int k = 1; k <= MOST; k++) {
                int columns[MOST], count = 0;
                if ((m * 31 + k * 17 + 5) % every) continue;
                for (int n = 1; n <= MOST; n++)
                    if ((m + 5 * n + 3 * k) % (every > 1 ? 9 : 1) == 0) columns[count++] = n;
                done += products(context, opened, m, k, columns, count, maths[math]);
            }
    print_message("%s: %d products are right\n", id, done);
    hd_context_destroy(context);
}

static void every_shape(void **state) {
    (void)state;
    if (named) device(named, all ? 1 : 197);
    else {
        device("cpu", all ? 1 : 11);
        device("vulkan", all ? 1 : 997);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "all") == 0) all = 1;
        else named = argv[i];
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_shape) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
