/* test_sgemm.c: the CPU device's matrix product, every kernel set of this machine, against sums in double. An element may
 * be off by 2 k 2^-24 sum|a b|. Guard values stand around C, between its rows, and after the scratch. */
#define _POSIX_C_SOURCE 200809L
#include "kernels/cpu/sgemm.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GUARD = 64, C_GAP = 3 };
static const float guard_value = -12345.5f;

static uint32_t seed = 20261120;

static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* A matrix, its values as f32 and as stored. */
typedef struct matrix {
    int64_t   rows, columns;
    float    *values; /* row-major */
    void     *stored;
    hdcpu_matrix view;
} matrix;

static void *room(size_t bytes) {
    void *p = NULL;
    assert_true(posix_memalign(&p, 64, (bytes + 63) / 64 * 64) == 0);
    return p;
}

/* `layout`: 0 row-major, 1 column-major, 2 row-major with gaps everywhere. Values have 8 bits, so that every type holds
 * them. */
static matrix make_matrix(int64_t rows, int64_t columns, hd_dtype type, int layout) {
    matrix  x = { .rows = rows, .columns = columns };
    int64_t row_stride = layout == 1 ? 1 : layout == 2 ? 2 * columns + 1 : columns;
    int64_t column_stride = layout == 1 ? rows : layout == 2 ? 2 : 1;
    size_t  count = (size_t)(rows * row_stride + columns * column_stride + 1);
    x.values = room((size_t)(rows * columns) * sizeof(float));
    x.stored = room(count * sizeof(float));
    memset(x.stored, 0x7f, count * sizeof(float)); /* a NaN in bf16, huge in f32 and f16 */
    x.view = (hdcpu_matrix){ x.stored, type, row_stride, column_stride };
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            uint32_t random = next_random(), fraction = random & 0x7f, sign = random >> 7 & 1;
            float    value = (sign ? -1.0f : 1.0f) * (1.0f + (float)fraction * 0x1p-7f);
            int64_t  at = i * row_stride + j * column_stride;
            x.values[i * columns + j] = value;
            if (type == HD_F32)
                ((float *)x.stored)[at] = value;
            else if (type == HD_F16)
                ((uint16_t *)x.stored)[at] = (uint16_t)(sign << 15 | 0x3c00 | fraction << 3);
            else
                ((uint16_t *)x.stored)[at] = (uint16_t)(sign << 15 | 0x3f80 | fraction);
        }
    return x;
}

static void free_matrix(matrix *x) {
    free(x->values);
    free(x->stored);
}

/* C with guards, and the job that fills it. */
typedef struct trial {
    matrix      a, b;
    float      *room, *c;
    uint8_t    *touched; /* how often finish saw each element */
    size_t      room_count;
    hdcpu_sgemm job;
} trial;

static trial make_trial(int64_t m, int64_t n, int64_t k, hd_dtype a_type, int a_layout, hd_dtype b_type, int b_layout) {
    trial t = { .a = make_matrix(m, k, a_type, a_layout), .b = make_matrix(k, n, b_type, b_layout) };
    t.room_count = (size_t)(m * (n + C_GAP) + 2 * GUARD);
    t.room = room(t.room_count * sizeof(float));
    t.c = t.room + GUARD;
    t.touched = calloc((size_t)(m * n), 1);
    assert_non_null(t.touched);
    t.job = (hdcpu_sgemm){ .m = m, .n = n, .k = k, .a = t.a.view, .b = t.b.view, .c = t.c, .c_row_stride = n + C_GAP };
    return t;
}

static void free_trial(trial *t) {
    free_matrix(&t->a);
    free_matrix(&t->b);
    free(t->room);
    free(t->touched);
}

/* Runs every task, last first, as a pool of `threads` might. */
static void run_trial(trial *t, const hdcpu_sgemm_kernels *kernels, uint32_t threads) {
    for (size_t i = 0; i < t->room_count; i++)
        t->room[i] = guard_value;
    t->job.blocking = hdcpu_sgemm_plan(kernels, t->job.m, t->job.n, t->job.k, threads);
    uint64_t bytes = t->job.blocking.scratch_bytes;
    uint8_t *scratch = room(bytes + GUARD);
    memset(scratch, 0xff, bytes + GUARD); /* NaNs: nothing may be read before it is written */
    for (uint32_t task = t->job.blocking.task_count; task-- > 0;)
        hdcpu_sgemm_task(&t->job, task, scratch);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(scratch[bytes + (uint64_t)i], 0xff);
    free(scratch);
}

static void check_trial(const trial *t) {
    int64_t m = t->job.m, n = t->job.n, k = t->job.k;
    for (int64_t i = 0; i < GUARD; i++)
        assert_true(t->room[i] == guard_value && t->room[(int64_t)t->room_count - 1 - i] == guard_value);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < C_GAP; j++)
            assert_true(t->c[i * (n + C_GAP) + n + j] == guard_value);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0, size = 0.0;
            for (int64_t d = 0; d < k; d++) {
                double term = (double)t->a.values[i * k + d] * (double)t->b.values[d * n + j];
                sum += term;
                size += fabs(term);
            }
            double error = fabs((double)t->c[i * (n + C_GAP) + j] - sum), bound = 2.0 * (double)k * 0x1p-24 * size;
            if (!(error <= bound))
                fail_msg("%dx%dx%d with %s: element %d,%d is %g, not %g", (int)m, (int)n, (int)k,
                         hdcpu_sgemm_kernels_name(t->job.blocking.kernels), (int)i, (int)j,
                         (double)t->c[i * (n + C_GAP) + j], sum);
        }
    }
}

static int64_t some_size(void) {
    static const int64_t larger[] = { 31, 32, 33, 63, 64, 65, 67, 127, 129 };
    uint32_t random = next_random() % (17 + 9);
    return random < 17 ? random + 1 : larger[random - 17];
}

static void load_stored(void *user, int64_t n, int64_t k, int64_t count, float *out) {
    const matrix *b = user;
    assert_int_equal(k % HDCPU_SGEMM_RUN, 0);
    assert_true(count % HDCPU_SGEMM_RUN == 0 || k + count == b->rows);
    for (int64_t i = 0; i < count; i++)
        out[i] = b->values[(k + i) * b->columns + n];
}

static void every_size_layout_and_type(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_F32, HD_F32, HD_F16, HD_BF16 };
    for (uint32_t set = 0; hdcpu_sgemm_kernels_at(set); set++)
        for (int round = 0; round < 700; round++) {
            int64_t m = some_size(), n = some_size(), k = some_size();
            trial   t = make_trial(m, n, k, types[next_random() % 4], (int)(next_random() % 3), types[next_random() % 4],
                                   (int)(next_random() % 3));
            if (next_random() % 5 == 0) {
                t.job.load_b = load_stored;
                t.job.load_user = &t.b;
                t.job.b.data = NULL;
            }
            run_trial(&t, hdcpu_sgemm_kernels_at(set), 1 + next_random() % 3);
            check_trial(&t);
            free_trial(&t);
        }
}

/* Products with one row, one column, few rows, and deeper than a block of k. */
static const int64_t long_sizes[][3] = { { 1, 3000, 1100 }, { 3000, 1, 1100 }, { 1, 1, 3000 },  { 5, 2100, 1030 },
                                         { 9, 2100, 530 },  { 300, 210, 600 }, { 70, 90, 1500 } };
enum { LONG_SIZES = sizeof long_sizes / sizeof *long_sizes };

static void same_bits_for_every_number_of_threads(void **state) {
    (void)state;
    for (uint32_t set = 0; hdcpu_sgemm_kernels_at(set); set++)
        for (int at = 0; at < LONG_SIZES; at++)
            for (int layout = 0; layout < 4; layout++) { /* 3: B comes from a function */
                trial t = make_trial(long_sizes[at][0], long_sizes[at][1], long_sizes[at][2], HD_F32, layout % 3 == 1,
                                     layout == 2 ? HD_F16 : HD_F32, layout % 3);
                if (layout == 3) {
                    t.job.load_b = load_stored;
                    t.job.load_user = &t.b;
                }
                run_trial(&t, hdcpu_sgemm_kernels_at(set), 1);
                check_trial(&t);
                float *first = room(t.room_count * sizeof(float));
                memcpy(first, t.room, t.room_count * sizeof(float));
                uint32_t most = t.job.blocking.task_count;
                for (uint32_t threads = 2; threads <= 8; threads += 3) {
                    run_trial(&t, hdcpu_sgemm_kernels_at(set), threads);
                    assert_memory_equal(first, t.room, t.room_count * sizeof(float));
                    most = t.job.blocking.task_count > most ? t.job.blocking.task_count : most;
                }
                assert_true(most > 1 || t.job.m * t.job.n == 1);
                free(first);
                free_trial(&t);
            }
}

static void count_and_double(void *user, float *row, int64_t row_index, int64_t column, int64_t count) {
    trial *t = user;
    assert_ptr_equal(row, t->c + row_index * t->job.c_row_stride + column);
    for (int64_t j = 0; j < count; j++) {
        t->touched[row_index * t->job.n + column + j]++;
        row[j] *= 2.0f;
    }
}

static void finish_sees_every_element_once(void **state) {
    (void)state;
    for (int at = 0; at < LONG_SIZES; at++) {
        trial t = make_trial(long_sizes[at][0], long_sizes[at][1], long_sizes[at][2], HD_F32, 0, HD_F32, 0);
        t.job.finish = count_and_double;
        t.job.finish_user = &t;
        run_trial(&t, NULL, 3);
        for (int64_t i = 0; i < t.job.m * t.job.n; i++) {
            assert_int_equal(t.touched[i], 1);
            t.c[i / t.job.n * t.job.c_row_stride + i % t.job.n] *= 0.5f;
        }
        check_trial(&t);
        free_trial(&t);
    }
}

/* All values of a 16-bit type through every kernel set: the conversions are exact, so they agree to the bit. */
static void conversions_agree(void **state) {
    (void)state;
    enum { COUNT = 65536 };
    uint16_t *all = room(COUNT * sizeof *all);
    float    *c = room(COUNT * sizeof(float)), one = 1.0f;
    for (int i = 0; i < COUNT; i++)
        all[i] = (uint16_t)i;
    for (uint32_t set = 0; hdcpu_sgemm_kernels_at(set); set++)
        for (int half = 0; half < 2; half++) {
            hdcpu_sgemm job = {
                .m = 1, .n = COUNT, .k = 1, .a = { &one, HD_F32, 1, 1 }, .b = { all, half ? HD_F16 : HD_BF16, COUNT, 1 },
                .c = c, .c_row_stride = COUNT,
                .blocking = hdcpu_sgemm_plan(hdcpu_sgemm_kernels_at(set), 1, COUNT, 1, 1),
            };
            void *scratch = room(job.blocking.scratch_bytes);
            for (uint32_t task = 0; task < job.blocking.task_count; task++)
                hdcpu_sgemm_task(&job, task, scratch);
            free(scratch);
            for (int i = 0; i < COUNT; i++) {
                int    exponent = half ? i >> 10 & 31 : i >> 7 & 255, fraction = half ? i & 1023 : i & 127;
                int    top = half ? 31 : 255, bits = half ? 10 : 7, bias = half ? 15 : 127;
                double value = exponent ? ldexp(1.0 + ldexp(fraction, -bits), exponent - bias)
                                        : ldexp(fraction, 1 - bias - bits);
                if (exponent == top)
                    value = fraction ? NAN : INFINITY;
                if (isnan(value))
                    assert_true(isnan(c[i]));
                else
                    assert_true((double)c[i] == (i & 0x8000 ? -value : value));
            }
        }
    free(all);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_layout_and_type),
        cmocka_unit_test(same_bits_for_every_number_of_threads),
        cmocka_unit_test(finish_sees_every_element_once),
        cmocka_unit_test(conversions_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
