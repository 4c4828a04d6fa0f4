/* test_norm.c: rms_norm and layer_norm against float64, with and without weight and bias. */
#include "rows_run.h"

static void norm_one(hdi_op op, hd_dtype dtype, int64_t rows, int64_t n, uint32_t has, float size, hd_math math) {
    run r;
    run_begin(&r);
    hdi_tensor in[3] = { new_tensor(&r, dtype, HD_SHAPE(rows, n)) };
    fill_random(&r, &in[0], size);
    for (uint32_t i = 0; i < 2; i++) {
        if (!(has >> i & 1)) continue;
        in[1 + i] = new_tensor(&r, dtype, HD_SHAPE(n));
        fill_random(&r, &in[1 + i], 2.0f);
    }
    const hdi_tensor y = new_tensor(&r, dtype, HD_SHAPE(rows, n));
    const hdi_attrs attrs = { .floats = { 1e-5f } };
    run_request(&r, &(hdi_request){ .op = op, .attrs = &attrs, .inputs = in, .input_count = 3, .out = y, .math = math });
    for (int64_t row = 0; row < rows; row++) {
        const uint64_t first = (uint64_t)(row * n);
        double sum = 0, spread = 0, largest = 0;
        for (uint64_t i = 0; i < (uint64_t)n; i++) sum += get_value(&r, &in[0], first + i);
        const double mean = op == HDI_OP_LAYER_NORM ? sum / (double)n : 0;
        for (uint64_t i = 0; i < (uint64_t)n; i++) {
            const double value = get_value(&r, &in[0], first + i);
            spread += (value - mean) * (value - mean);
            largest = fmax(largest, fabs(value));
        }
        const double scale = 1 / sqrt(spread / (double)n + (double)1e-5f);
        for (uint64_t i = 0; i < (uint64_t)n; i++) {
            const double value = get_value(&r, &in[0], first + i);
            const double w = has & 1 ? get_value(&r, &in[1], i) : 1, b = has & 2 ? get_value(&r, &in[2], i) : 0;
            const double expected = (value - mean) * scale * w + b;
            const double room = op == HDI_OP_LAYER_NORM ? 0x1p-20 * (fabs(value) + largest) * scale * fabs(w) + 0x1p-23 * fabs(b)
                                                        : (0x1p-20 + (double)n * 0x1p-24) * fabs(expected);
            check_value(&r, &y, first + i, expected, room);
        }
    }
    run_end(&r);
}

static void every_type_and_size(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16 };
    static const int64_t sizes[] = { 1, 2, 3, 31, 32, 33, 67, 255, 256, 257, 1000, 2560 };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++)
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++)
            for (uint32_t has = 0; has < 4; has++) {
                if (has < 2) norm_one(HDI_OP_RMS_NORM, types[t], 3, sizes[s], has, 3.0f, HD_MATH_EXACT);
                norm_one(HDI_OP_LAYER_NORM, types[t], 3, sizes[s], has, 3.0f, has == 3 ? HD_MATH_FAST : HD_MATH_EXACT);
            }
    norm_one(HDI_OP_RMS_NORM, HD_F32, 1, 65537, 1, 1.0f, HD_MATH_EXACT);
    norm_one(HDI_OP_LAYER_NORM, HD_F32, 1, 200001, 3, 1.0f, HD_MATH_EXACT);
    norm_one(HDI_OP_LAYER_NORM, HD_F32, 3, 100, 0, 0.0f, HD_MATH_EXACT);  /* all equal: zeros */
    norm_one(HDI_OP_RMS_NORM, HD_F32, 3, 100, 0, 1e-15f, HD_MATH_EXACT);  /* eps decides */
    norm_one(HDI_OP_LAYER_NORM, HD_F32, 3, 100, 0, 1e15f, HD_MATH_EXACT);
}

/* A row far from zero: taking the mean of squares would lose the variance. */
static void variance_far_from_zero(void **state) {
    (void)state;
    run r;
    run_begin(&r);
    const hdi_tensor x = new_tensor(&r, HD_F32, HD_SHAPE(1, 64)), y = new_tensor(&r, HD_F32, HD_SHAPE(1, 64));
    for (uint64_t i = 0; i < 64; i++) set_value(&r, &x, i, 1e6f + (i % 2 == 0 ? 1.0f : -1.0f));
    const hdi_attrs attrs = { .floats = { 1e-5f } };
    run_request(&r, &(hdi_request){ .op = HDI_OP_LAYER_NORM, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
    for (uint64_t i = 0; i < 64; i++) check_value(&r, &y, i, i % 2 == 0 ? 1.0 : -1.0, 1e-5);
    run_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_size),
        cmocka_unit_test(variance_far_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
