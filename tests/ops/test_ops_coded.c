/* test_ops_coded.c: what one product leaves for the next in 8 bits is what that would have rounded: a feed-forward network has the same
 * bits where the rows between its products are an output too, and so are stored as they are. On the CPU, where nothing is left so;
 * or arguments name devices. */
#include "ops/on_devices.h"
#include "ops/random_weights.h"
#include <stdio.h>

typedef struct test {
    const char *name;
    hd_dtype    first, second; /* types of weights */
    uint32_t    k, f, n;       /* lengths of rows: the network's, between its products, of the result */
    int         norm, pair, gelu;
} test;

static const test tests[] = {
    { "pair q4_0", HD_Q4_0, HD_Q4_0, 256, 2048, 96, 1, 1, 0 },    { "pair q8_0", HD_Q8_0, HD_Q8_0, 320, 1024, 64, 1, 1, 0 },
    { "pair q4_k to q6_k", HD_Q4_K, HD_Q6_K, 512, 1536, 40, 1, 1, 0 }, { "q6_k to q4_k", HD_Q6_K, HD_Q4_K, 256, 4096, 33, 0, 0, 1 },
    { "q4_0 to q8_0, long", HD_Q4_0, HD_Q8_0, 64, 17408, 32, 0, 0, 1 }, { "bare", HD_Q8_0, HD_Q4_0, 96, 1056, 64, 0, 0, 0 },
    { "an odd number of runs", HD_Q4_0, HD_Q4_0, 64, 992, 64, 0, 0, 1 }, { "q5_k to q4_0", HD_Q5_K, HD_Q4_0, 256, 1024, 32, 0, 1, 0 },
};

typedef struct operands {
    float   *x, *norm;
    void    *gate, *up, *down;
    uint64_t first_bytes, second_bytes;
} operands;

static void compute(hd_device *device, const test *t, const operands *o, uint32_t rows, hd_math math, bool between, float *out) {
    hd_program *p = hd_program_create(context);
    const hd_shape first = HD_SHAPE(t->f, t->k), second = HD_SHAPE(t->n, t->f);
    hd_plan *plan;
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(rows, t->k));
    if (t->norm) x = hd_rms_norm(p, x, hd_input(p, "norm", HD_F32, HD_SHAPE(t->k)), 1e-6f);
    hd_value h = hd_matmul_with(p, x, hd_input(p, "gate", t->first, first), HD_TRANSPOSE_B);
    if (t->pair) h = hd_mul(p, hd_silu(p, h), hd_matmul_with(p, x, hd_input(p, "up", t->first, first), HD_TRANSPOSE_B));
    if (t->gelu) h = hd_gelu(p, h);
    if (between) hd_output(p, "between", h);
    hd_output(p, "y", hd_matmul_with(p, h, hd_input(p, "down", t->second, second), HD_TRANSPOSE_B));
    CHECK(hd_plan_create(device, p, &(hd_plan_desc){ .math = math }, &plan));
    CHECK(hd_plan_write(plan, "x", o->x, (uint64_t)rows * t->k * sizeof(float)));
    if (t->norm) CHECK(hd_plan_write(plan, "norm", o->norm, t->k * sizeof(float)));
    CHECK(hd_plan_write(plan, "gate", o->gate, o->first_bytes));
    if (t->pair) CHECK(hd_plan_write(plan, "up", o->up, o->first_bytes));
    CHECK(hd_plan_write(plan, "down", o->down, o->second_bytes));
    CHECK(hd_plan_run(plan, NULL));
    CHECK(hd_plan_read(plan, "y", out, (uint64_t)rows * t->n * sizeof(float)));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static unsigned compare(hd_device *device, const char *where, const test *t) {
    enum { MOST_ROWS = 8 };
    const hd_shape first = HD_SHAPE(t->f, t->k), second = HD_SHAPE(t->n, t->f);
    const operands o = { weights(HD_F32, HD_SHAPE(MOST_ROWS, t->k)), weights(HD_F32, HD_SHAPE(t->k)), weights(t->first, first),
                         weights(t->first, first), weights(t->second, second), hd_tensor_bytes(t->first, first),
                         hd_tensor_bytes(t->second, second) };
    float *own = malloc(MOST_ROWS * t->n * sizeof *own), *wanted = malloc(MOST_ROWS * t->n * sizeof *wanted);
    unsigned wrong = 0;
    assert_true(own && wanted);
    o.x[3] = 40; /* runs of very unequal numbers, */
    for (uint32_t i = 0; i < t->k; i++) o.x[t->k + i] = 0; /* and of none */
    for (uint32_t rows = 1; rows <= MOST_ROWS; rows += rows < 4 ? 1 : 4)
        for (int exact = 0; exact < 2; exact++) {
            const uint64_t count = (uint64_t)rows * t->n;
            compute(device, t, &o, rows, exact ? HD_MATH_EXACT : HD_MATH_FAST, false, own);
            compute(device, t, &o, rows, exact ? HD_MATH_EXACT : HD_MATH_FAST, true, wanted);
            const uint64_t differ = floats_that_differ(own, wanted, count);
            if (differ)
                print_error("%s, %s, %u rows, %s: %llu of %llu elements differ\n", where, t->name, (unsigned)rows, exact ? "exact" : "fast",
                            (unsigned long long)differ, (unsigned long long)count);
            wrong += differ != 0;
        }
    free(own);
    free(wanted);
    free(o.x);
    free(o.norm);
    free(o.gate);
    free(o.up);
    free(o.down);
    return wrong;
}

static unsigned compare_all(hd_device *device, const char *where) {
    unsigned wrong = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) wrong += compare(device, where, &tests[t]);
    return wrong;
}

static void codes_are_what_would_be_rounded(void **state) {
    (void)state;
    assert_right_on_devices(compare_all);
}

int main(int argc, char **argv) {
    return run_on_devices(argc, argv, &(struct CMUnitTest)cmocka_unit_test(codes_are_what_would_be_rounded));
}
