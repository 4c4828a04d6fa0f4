/* test_ops_alone.c: in fast mode a row has the same bits alone and among 2 to 8 rows, by what a language model's plan is made of: that is
 * what lets guesses of its tokens (hd_draft) change none. On the CPU; or arguments name devices. --short before them: every fourth case,
 * among 2 and 8 rows, for devices whose compiler takes its time. */
#include "ops/on_devices.h"
#include "ops/random_weights.h"
#include <stdio.h>

enum { MOST_ROWS = 8 };

/* ---- what is computed ---- */

typedef struct test {
    const char *name;
    hd_dtype    dtype;
    uint32_t    k, n;                     /* of products; of attention: heads and heads of keys */
    uint32_t    D, S, window;             /* of attention; D 0: none */
    int         norm, pair, capped;
} test;

static const test tests[] = {
    { "f32", HD_F32, 328, 20, 0, 0, 0, 0, 0, 0 },         { "f32 of a low rank", HD_F32, 6, 64, 0, 0, 0, 0, 0, 0 },
    { "f32 long", HD_F32, 2560, 64, 0, 0, 0, 0, 0, 0 },
    { "f16", HD_F16, 264, 20, 0, 0, 0, 0, 0, 0 },         { "f16 long", HD_F16, 5120, 128, 0, 0, 0, 0, 0, 0 },
    { "bf16", HD_BF16, 1024, 40, 0, 0, 0, 0, 0, 0 },      { "q4_0", HD_Q4_0, 256, 20, 0, 0, 0, 0, 0, 0 },
    { "q4_0 long", HD_Q4_0, 5120, 128, 0, 0, 0, 0, 0, 0 }, { "q8_0", HD_Q8_0, 96, 20, 0, 0, 0, 0, 0, 0 },
    { "q8_0 long", HD_Q8_0, 2560, 512, 0, 0, 0, 0, 0, 0 }, { "q4_k", HD_Q4_K, 1024, 64, 0, 0, 0, 0, 0, 0 },
    { "q5_k", HD_Q5_K, 512, 64, 0, 0, 0, 0, 0, 0 },       { "q6_k", HD_Q6_K, 2560, 64, 0, 0, 0, 0, 0, 0 },
    { "iq4_nl", HD_IQ4_NL, 512, 32, 0, 0, 0, 0, 0, 0 },
    { "norm f16", HD_F16, 2560, 64, 0, 0, 0, 1, 0, 0 },   { "norm q4_0", HD_Q4_0, 1024, 64, 0, 0, 0, 1, 0, 0 },
    { "norm q4_0 long", HD_Q4_0, 5120, 64, 0, 0, 0, 1, 0, 0 }, { "norm q4_0 longer", HD_Q4_0, 8192, 64, 0, 0, 0, 1, 0, 0 },
    { "norm q4_k pair", HD_Q4_K, 2560, 128, 0, 0, 0, 1, 1, 0 }, { "norm q8_0 pair", HD_Q8_0, 4096, 64, 0, 0, 0, 1, 1, 0 },
    { "pair f16", HD_F16, 512, 64, 0, 0, 0, 1, 1, 0 },
    { "attention", HD_F16, 4, 4, 64, 256, 0, 0, 0, 0 },   { "attention of 4", HD_F16, 16, 4, 128, 512, 0, 0, 0, 0 },
    { "attention of 7", HD_F16, 14, 2, 64, 512, 0, 0, 0, 0 }, { "attention of 9 in a window", HD_F16, 9, 1, 64, 512, 130, 0, 0, 0 },
    { "attention in a window", HD_F16, 8, 2, 128, 512, 100, 0, 0, 0 }, { "attention with a cap", HD_F16, 8, 8, 80, 256, 0, 0, 0, 1 },
    { "attention of 32", HD_F16, 32, 1, 64, 256, 0, 0, 0, 0 }, { "attention over f32", HD_F32, 8, 2, 64, 512, 0, 0, 0, 0 },
    { "attention of short heads", HD_F16, 4, 2, 16, 256, 0, 0, 0, 0 },
};

enum { PAST = 211 };
/* The test's program for so many rows. */
static hd_value build(const test *t, hd_program *p, uint32_t rows) {
    if (t->D) {
        const hd_value q = hd_input(p, "x", HD_F32, HD_SHAPE(rows, t->k, t->D));
        const hd_shape cache = HD_SHAPE(t->S, t->n, t->D);
        const hd_value k = hd_input(p, "w", t->dtype, cache), v = hd_input(p, "v", t->dtype, cache);
        const hd_value past = hd_input(p, "past", HD_I32, HD_SHAPE(1));
        return hd_attention(p, q, k, v, past, &(hd_attention_desc){ .window = t->window, .cap = t->capped ? 2.5f : 0 });
    }
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(rows, t->k));
    if (t->norm) x = hd_rms_norm(p, x, hd_input(p, "norm", HD_F32, HD_SHAPE(t->k)), 1e-6f);
    const hd_value y = hd_matmul_with(p, x, hd_input(p, "w", t->dtype, HD_SHAPE(t->n, t->k)), HD_TRANSPOSE_B);
    if (!t->pair) return y;
    const hd_value up = hd_matmul_with(p, x, hd_input(p, "v", t->dtype, HD_SHAPE(t->n, t->k)), HD_TRANSPOSE_B);
    return hd_mul(p, hd_silu(p, y), up);
}

typedef struct operands {
    void    *w, *v;
    float   *x, *norm;
    uint64_t w_bytes, x_row, y_row; /* elements of a row */
} operands;

/* Rows first .. first + rows - 1 at once. */
static void compute(hd_device *device, const test *t, const operands *o, uint32_t first, uint32_t rows, float *out) {
    hd_program *p = hd_program_create(context);
    hd_plan *plan;
    hd_output(p, "y", build(t, p, rows));
    CHECK(hd_plan_create(device, p, NULL, &plan));
    for (uint32_t at = first; rows == 1 ? at < MOST_ROWS : at == first; at++) { /* each alone, by one plan */
        const int32_t past = PAST + (int32_t)at;
        CHECK(hd_plan_write(plan, "x", o->x + at * o->x_row, rows * o->x_row * sizeof(float)));
        CHECK(hd_plan_write(plan, "w", o->w, o->w_bytes));
        if (t->D || t->pair) CHECK(hd_plan_write(plan, "v", o->v, o->w_bytes));
        if (t->norm) CHECK(hd_plan_write(plan, "norm", o->norm, t->k * sizeof(float)));
        if (t->D) CHECK(hd_plan_write(plan, "past", &past, sizeof past));
        CHECK(hd_plan_run(plan, NULL));
        CHECK(hd_plan_read(plan, "y", out + at * o->y_row, rows * o->y_row * sizeof(float)));
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static unsigned compare(hd_device *device, const char *where, const test *t) {
    static const uint32_t counts[] = { 8, 2, 3, 4, 5, 7 };
    const hd_shape shape = t->D ? HD_SHAPE(t->S, t->n, t->D) : HD_SHAPE(t->n, t->k);
    operands o = { weights(t->dtype, shape), weights(t->dtype, shape), NULL, NULL, hd_tensor_bytes(t->dtype, shape),
                   t->D ? (uint64_t)t->k * t->D : t->k, t->D ? (uint64_t)t->k * t->D : t->n };
    o.x = weights(HD_F32, HD_SHAPE(MOST_ROWS, (int64_t)o.x_row));
    o.norm = weights(HD_F32, HD_SHAPE(t->k));
    float *alone = malloc(MOST_ROWS * o.y_row * sizeof *alone), *among = malloc(MOST_ROWS * o.y_row * sizeof *among);
    assert_true(alone && among);
    compute(device, t, &o, 0, 1, alone);
    unsigned wrong = 0;
    for (size_t c = 0; c < (is_short ? 2 : sizeof counts / sizeof *counts); c++) {
        const uint32_t first = MOST_ROWS - counts[c];
        compute(device, t, &o, first, counts[c], among);
        const uint64_t differ = floats_that_differ(alone + first * o.y_row, among + first * o.y_row, counts[c] * o.y_row);
        if (differ)
            print_error("%s, %s: %llu of %llu elements differ among %u rows\n", where, t->name, (unsigned long long)differ,
                        (unsigned long long)(counts[c] * o.y_row), counts[c]);
        wrong += differ != 0;
    }
    free(alone);
    free(among);
    free(o.w);
    free(o.v);
    free(o.x);
    free(o.norm);
    return wrong;
}

static unsigned compare_all(hd_device *device, const char *where) {
    unsigned wrong = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t += is_short ? 4 : 1) wrong += compare(device, where, &tests[t]);
    return wrong;
}

static void rows_are_the_same_alone(void **state) {
    (void)state;
    assert_right_on_devices(compare_all);
}

int main(int argc, char **argv) { return run_on_devices(argc, argv, &(struct CMUnitTest)cmocka_unit_test(rows_are_the_same_alone)); }
