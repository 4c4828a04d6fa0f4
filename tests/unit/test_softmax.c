/* test_softmax.c: softmax, log_softmax and cross_entropy along the last axis against float64, and extreme rows. */
#include "rows_run.h"

static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16 };
static const hdi_op ops[] = { HDI_OP_SOFTMAX, HDI_OP_LOG_SOFTMAX };

/* Checks one row of n elements, `step` apart, as the operation's bound says; results below `least` may be flushed. */
static void check_row(const run *r, hdi_op op, double least, const hdi_tensor *x, const hdi_tensor *y, uint64_t first, uint64_t n, uint64_t step) {
    double largest = -INFINITY, sum = 0;
    bool lost = false;
    for (uint64_t i = 0; i < n; i++) {
        const double value = get_value(r, x, first + i * step);
        lost = lost || isnan(value) || value == (double)INFINITY;
        largest = fmax(largest, value);
    }
    lost = lost || largest == -(double)INFINITY;
    for (uint64_t i = 0; i < n; i++) sum += exp(get_value(r, x, first + i * step) - largest);
    for (uint64_t i = 0; i < n; i++) {
        const double d = get_value(r, x, first + i * step) - largest, room = 0x1p-20 * (1 + fabs(d));
        const double soft = exp(d) / sum, sums = fmin((double)n * 0x1p-23, 0x1p-16);
        if (lost) check_value(r, y, first + i * step, (double)NAN, 0);
        else if (op == HDI_OP_SOFTMAX) check_value(r, y, first + i * step, soft, soft * (sums + room) + least);
        else check_value(r, y, first + i * step, d - log(sum), room + sums);
    }
}

static void last_axis(hdi_op op, hd_dtype dtype, int64_t rows, int64_t n, float size, hd_math math) {
    run r;
    run_begin(&r);
    const hdi_tensor x = new_tensor(&r, dtype, HD_SHAPE(rows, n)), y = new_tensor(&r, dtype, HD_SHAPE(rows, n));
    fill_random(&r, &x, size);
    const hdi_attrs attrs = { .ints = { 1 } };
    run_request(&r, &(hdi_request){ .op = op, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = math });
    for (int64_t row = 0; row < rows; row++) check_row(&r, op, math == HD_MATH_FAST ? 0x1p-126 : 0x1p-149, &x, &y, (uint64_t)(row * n), (uint64_t)n, 1);
    run_end(&r);
}

static void every_type_and_size(void **state) {
    (void)state;
    static const int64_t sizes[] = { 1, 2, 3, 31, 32, 33, 67, 255, 256, 257, 513, 1000 };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t t = 0; t < HDI_COUNT(types); t++)
            for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
                last_axis(ops[o], types[t], 3, sizes[s], 8.0f, HD_MATH_EXACT);
                last_axis(ops[o], types[t], 2, sizes[s], 100.0f, HD_MATH_FAST);
            }
    last_axis(HDI_OP_SOFTMAX, HD_F32, 1, 65537, 4.0f, HD_MATH_EXACT);
    last_axis(HDI_OP_SOFTMAX, HD_F32, 2, 200001, 4.0f, HD_MATH_EXACT);
    last_axis(HDI_OP_SOFTMAX, HD_F32, 3, 67, 1e30f, HD_MATH_EXACT);
    last_axis(HDI_OP_LOG_SOFTMAX, HD_BF16, 3, 67, 1e30f, HD_MATH_EXACT);
    last_axis(HDI_OP_SOFTMAX, HD_F32, 3, 300, 0.0f, HD_MATH_EXACT); /* all equal */
}

static void other_axes(void **state) {
    (void)state;
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t t = 0; t < HDI_COUNT(types); t++)
            for (int64_t inner = 1; inner < 8; inner += 2) {
                run r;
                run_begin(&r);
                const hdi_tensor x = new_tensor(&r, types[t], HD_SHAPE(3, 67, inner)), y = new_tensor(&r, types[t], HD_SHAPE(3, 67, inner));
                fill_random(&r, &x, 5.0f);
                const hdi_attrs attrs = { .ints = { 1 } };
                run_request(&r, &(hdi_request){ .op = ops[o], .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
                for (int64_t line = 0; line < 3; line++)
                    for (int64_t i = 0; i < inner; i++)
                        check_row(&r, ops[o], 0x1p-149, &x, &y, (uint64_t)(line * 67 * inner + i), 67, (uint64_t)inner);
                run_end(&r);
            }
}

static void extreme_rows(void **state) {
    (void)state;
    static const float rows[][4] = {
        { -INFINITY, -INFINITY, -INFINITY, -INFINITY }, { 1, -INFINITY, 2, -INFINITY }, { 1, INFINITY, 2, 3 }, { 1, NAN, 2, 3 },
        { 3e38f, -3e38f, 3e38f, 0 }, { 1e-40f, 0, -1e-40f, 1e-45f }, { -0.0f, 0, -0.0f, 0 } };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++) {
        run r;
        run_begin(&r);
        const hdi_tensor x = new_tensor(&r, HD_F32, HD_SHAPE(HDI_COUNT(rows), 4)), y = new_tensor(&r, HD_F32, x.shape);
        memcpy(r.storages[x.storage].data, rows, sizeof rows);
        const hdi_attrs attrs = { .ints = { 1 } };
        run_request(&r, &(hdi_request){ .op = ops[o], .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
        for (uint64_t row = 0; row < HDI_COUNT(rows); row++) check_row(&r, ops[o], 0x1p-149, &x, &y, 4 * row, 4, 1);
        run_end(&r);
    }
}

static void cross_entropy(void **state) {
    (void)state;
    static const int64_t sizes[] = { 1, 5, 67, 257, 5000 };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++)
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
            const int64_t n = sizes[s];
            run r;
            run_begin(&r);
            hdi_tensor in[2] = { new_tensor(&r, types[t], HD_SHAPE(5, n)), new_tensor(&r, HD_I32, HD_SHAPE(5)) };
            const hdi_tensor y = new_tensor(&r, HD_F32, HD_SHAPE(5));
            fill_random(&r, &in[0], 10.0f);
            const float targets[] = { 0, (float)(n - 1), (float)n, -1, (float)(n / 2) };
            for (uint64_t i = 0; i < 5; i++) set_value(&r, &in[1], i, targets[i]);
            const hdi_attrs attrs = { 0 };
            run_request(&r, &(hdi_request){ .op = HDI_OP_CROSS_ENTROPY, .attrs = &attrs, .inputs = in, .input_count = 2, .out = y, .math = HD_MATH_EXACT });
            for (uint64_t row = 0; row < 5; row++) {
                double largest = -INFINITY, sum = 0;
                for (uint64_t i = 0; i < (uint64_t)n; i++) largest = fmax(largest, get_value(&r, &in[0], row * (uint64_t)n + i));
                for (uint64_t i = 0; i < (uint64_t)n; i++) sum += exp(get_value(&r, &in[0], row * (uint64_t)n + i) - largest);
                const bool inside = targets[row] >= 0 && targets[row] < (float)n;
                const double d = inside ? get_value(&r, &in[0], row * (uint64_t)n + (uint64_t)targets[row]) - largest : 0;
                check_value(&r, &y, row, inside ? log(sum) - d : targets[row] < 0 ? 0 : (double)NAN, 0x1p-20 * (1 + fabs(d)));
            }
            run_end(&r);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_size),
        cmocka_unit_test(other_axes),
        cmocka_unit_test(extreme_rows),
        cmocka_unit_test(cross_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
