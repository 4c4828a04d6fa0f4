/* test_split_products.c: large products of f32 where a device makes them of bf16 parts of their operands: either side turned or a
 * view, elements of many sizes, what follows a product, and K in slices. Sampled elements are compared with float64. On the CPU,
 * which splits none, or the devices that arguments name: no driver for a processor has a library of products, but the CUDA
 * stand-in does, and with HEDDLE_STANDIN_MEMORY of a gigabyte K is two slices. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 768, N = 776, K = 1040, GAP = 8, SAMPLES = 3000 };
typedef enum behind { NOTHING, ADDED, RELU } behind;

static uint32_t seed;
static uint32_t draw(uint32_t below) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % below; }
static float a[K * (M + GAP)], b[K * (N + GAP)], row[N], matrix[M * N], y[M * N]; /* either way round */

static void fill(float *to, size_t count, int sizes) {
    for (size_t i = 0; i < count; i++)
        to[i] = ldexpf((float)(draw(1 << 24) + 1) * (draw(2) ? 0x1p-24f : -0x1p-24f), sizes ? (int)draw((uint32_t)sizes) - sizes / 2 : 0);
}

/* The first columns of a wider matrix where there is a gap. */
static hd_value operand(hd_program *p, const char *name, int64_t lines, int64_t length, int64_t gap) {
    const hd_value whole = hd_input(p, name, HD_F32, HD_SHAPE(lines, length + gap));
    return gap ? hd_slice(p, whole, (const int64_t[]){ 0, 0 }, (const int64_t[]){ lines, length }, 2) : whole;
}

static int launches_that_split(hd_plan *plan) {
    static char text[1 << 16];
    size_t needed;
    int count = 0;
    assert_int_equal(hd_plan_explain(plan, text, sizeof text, &needed), HD_OK);
    for (const char *at = text; (at = strstr(at, "each as three of bf16")) != NULL; at++) count++;
    return count;
}

static void product(hd_context *context, hd_device *device, bool on_cpu, uint32_t flags, int64_t gap, int sizes, behind what) {
    const bool turned_a = flags & HD_TRANSPOSE_A, turned_b = flags & HD_TRANSPOSE_B;
    const size_t a_line = (size_t)((turned_a ? M : K) + gap), b_line = (size_t)((turned_b ? K : N) + gap);
    const size_t a_bytes = 4 * a_line * (turned_a ? K : M), b_bytes = 4 * b_line * (turned_b ? N : K);
    hd_program *p = hd_program_create(context);
    hd_value v = hd_matmul_with(p, operand(p, "a", turned_a ? K : M, turned_a ? M : K, gap),
                                operand(p, "b", turned_b ? N : K, turned_b ? K : N, gap), flags);
    if (what != NOTHING) v = hd_add(p, v, hd_input(p, "row", HD_F32, HD_SHAPE(N)));
    if (what == ADDED) v = hd_add(p, hd_input(p, "matrix", HD_F32, HD_SHAPE(M, N)), v);
    if (what == RELU) v = hd_relu(p, v);
    hd_output(p, "y", v);
    hd_plan *plan = NULL;
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(launches_that_split(plan), on_cpu ? 0 : getenv("HEDDLE_STANDIN_MEMORY") ? 4 : 2);
    fill(a, a_bytes / 4, sizes);
    fill(b, b_bytes / 4, sizes);
    fill(row, N, 0);
    fill(matrix, M * N, 0);
    assert_int_equal(hd_plan_write(plan, "a", a, a_bytes), HD_OK);
    assert_int_equal(hd_plan_write(plan, "b", b, b_bytes), HD_OK);
    if (what != NOTHING) assert_int_equal(hd_plan_write(plan, "row", row, sizeof row), HD_OK);
    if (what == ADDED) assert_int_equal(hd_plan_write(plan, "matrix", matrix, sizeof matrix), HD_OK);
    for (int run = 0; run < 2; run++) assert_int_equal(hd_plan_run(plan, NULL), HD_OK); /* a slice adds to this run's alone */
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    double errors = 0;
    for (int s = 0; s < SAMPLES; s++) {
        const size_t m = draw(M), n = draw(N);
        double sum = 0, all = 0;
        for (size_t k = 0; k < K; k++) {
            const double term = (double)a[turned_a ? k * a_line + m : m * a_line + k] * (double)b[turned_b ? n * b_line + k : k * b_line + n];
            sum += term;
            all += fabs(term);
        }
        if (what != NOTHING) sum += row[n], all += fabs(row[n]);
        if (what == ADDED) sum += matrix[m * N + n], all += fabs(matrix[m * N + n]);
        if (what == RELU && sum < 0) sum = 0;
        const double error = fabs(sum - (double)y[m * N + n]) / all;
        assert_true(error <= K * 0x1p-23);
        errors += error / SAMPLES;
    }
    assert_true(errors <= 0x1p-20); /* K 2^-23 is promised, which two parts would keep */
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

/* What is not finite stays so; the largest numbers and subnormal ones are numbers. */
static void ends(hd_context *context, hd_device *device) {
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_matmul(p, hd_input(p, "a", HD_F32, HD_SHAPE(M, K)), hd_input(p, "b", HD_F32, HD_SHAPE(K, N))));
    hd_plan *plan = NULL;
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    memset(a, 0, sizeof a);
    for (size_t i = 0; i < (size_t)K * N; i++) b[i] = i % 2 ? 1 : 1 + 0x1p-23f; /* N is even */
    const float rows[] = { INFINITY, NAN, 0x1.fffffep127f, -0x1.fffffep127f, 0x1p-140f, 0x1.fffffep-1f };
    for (size_t m = 0; m < 6; m++) a[m * K + m] = rows[m];
    assert_int_equal(hd_plan_write(plan, "a", a, 4 * M * K), HD_OK);
    assert_int_equal(hd_plan_write(plan, "b", b, 4 * K * N), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    for (size_t n = 0; n < N; n++) {
        assert_true(isnan(y[n]) || isinf(y[n]));
        assert_true(isnan(y[N + n]));
        for (size_t m = 2; m < 4; m++) /* matrix units round towards zero */
            assert_true(n % 2 == 0 || fabsf(y[m * N + n] / rows[m] - 1) <= 0x1p-20f);
        assert_true(fabsf(y[4 * N + n]) <= 0x1p-125f);
        assert_true(fabsf(y[5 * N + n] - rows[5] * b[n]) <= 0x1p-23f);
        assert_true(y[6 * N + n] == 0);
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static const char *name;
static void split_products(void **state) {
    (void)state;
    hd_context *context = NULL;
    hd_device *device = NULL;
    assert_int_equal(hd_context_create(NULL, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = name }, &device), HD_OK);
    const bool on_cpu = strcmp(name, "cpu") == 0;
    for (uint32_t flags = 0; flags < 4; flags++) product(context, device, on_cpu, flags, flags % 2 ? GAP : 0, flags > 1 ? 40 : 0, NOTHING);
    product(context, device, on_cpu, HD_TRANSPOSE_B, 0, 0, ADDED);
    product(context, device, on_cpu, HD_TRANSPOSE_A, GAP, 0, RELU);
    ends(context, device);
    hd_device_close(device);
    hd_context_destroy(context);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = { cmocka_unit_test(split_products) };
    int failed = 0;
    for (int i = 1; i < (argc > 1 ? argc : 2); i++) {
        name = argc > 1 ? argv[i] : "cpu";
        failed += cmocka_run_group_tests_name(name, tests, NULL, NULL);
    }
    return failed;
}
