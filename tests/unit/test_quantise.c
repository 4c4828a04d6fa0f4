/* test_quantise.c: hd_quantize gives the bytes of llama.cpp's llama-quantize (quantise_fixtures.h), row by row; what hd_dequantize
 * makes of any bytes goes back to as good ones; wrong calls are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/base.h"
#include "unit/quantise_fixtures.h"
#include "unit/weighted_fixtures.h"

static uint64_t fnv(const uint8_t *bytes, uint64_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static const float *row_of(uint32_t row) {
    static float values[QUANTISE_WIDTH];
    memcpy(values, quantise_values + row * QUANTISE_WIDTH, sizeof values);
    return values;
}

static void equals_llama_cpp(void **state) {
    (void)state;
    for (uint32_t t = 0; t < HDI_COUNT(quantise_hashes); t++) {
        const hd_dtype type = hd_dtype_parse(quantise_hashes[t].type);
        const uint64_t bytes = hd_dtype_bytes(type, QUANTISE_WIDTH);
        assert_true(bytes > 0);
        for (uint32_t row = 0; row < QUANTISE_ROWS; row++) {
            uint8_t out[1024];
            memset(out, 0xA5, sizeof out);
            assert_int_equal(hd_quantize(type, row_of(row), QUANTISE_WIDTH, out), HD_OK);
            assert_int_equal(out[bytes], 0xA5);
            if (fnv(out, bytes) != quantise_hashes[t].rows[row]) fail_msg("%s, row %u", quantise_hashes[t].type, row);
        }
    }
}

/* What llama-quantize weighs errors by, with an importance file. */
static void weigh(const float *x, float *out) {
    float square = 0;
    for (uint32_t i = 0; i < QUANTISE_WIDTH; i++) square += x[i] * x[i];
    for (uint32_t i = 0; i < QUANTISE_WIDTH; i++) {
        float importance;
        memcpy(&importance, &weighted_importance[i], sizeof importance);
        out[i] = importance * sqrtf(2 * square / QUANTISE_WIDTH + x[i] * x[i]);
    }
}
static double weighted_error(hd_dtype type, const uint8_t *block, const float *x, const float *weights) {
    float back[QUANTISE_WIDTH];
    double error = 0, size = 0;
    assert_int_equal(hd_dequantize(type, block, QUANTISE_WIDTH, back), HD_OK);
    for (uint32_t i = 0; i < QUANTISE_WIDTH; i++) {
        const double w = (double)weights[i], off = (double)back[i] - (double)x[i];
        error += w * off * off;
        size += w * (double)x[i] * (double)x[i];
    }
    return size > 0 ? error / size : 0;
}

/* Errors count no more than in the blocks that llama-quantize writes, over all rows, and in none by much. */
static void weighted_errors_are_no_larger(void **state) {
    (void)state;
    for (uint32_t t = 0; t < HDI_COUNT(weighted_errors); t++) {
        const hd_dtype type = hd_dtype_parse(weighted_errors[t].type);
        double ours = 0, theirs = 0;
        for (uint32_t row = 0; row < QUANTISE_ROWS; row++) {
            float weights[QUANTISE_WIDTH];
            uint8_t out[1024], without[1024];
            const float *x = row_of(row);
            weigh(x, weights);
            assert_int_equal(hd_quantize_weighted(type, x, weights, QUANTISE_WIDTH, out), HD_OK);
            const double error = weighted_error(type, out, x, weights);
            if (!(error <= weighted_errors[t].rows[row] * 1.04 + 1e-6))
                fail_msg("%s, row %u: weighted error %g, theirs %g", weighted_errors[t].type, row, error, weighted_errors[t].rows[row]);
            ours += error;
            theirs += weighted_errors[t].rows[row];
            assert_int_equal(hd_quantize(type, x, QUANTISE_WIDTH, without), HD_OK);
            if (row == 0 && !(error < weighted_error(type, without, x, weights) * 0.97))
                fail_msg("%s: weights change little", weighted_errors[t].type);
            assert_int_equal(hd_quantize_weighted(type, x, NULL, QUANTISE_WIDTH, out), HD_OK);
            assert_memory_equal(out, without, hd_dtype_bytes(type, QUANTISE_WIDTH));
        }
        if (!(ours <= theirs)) fail_msg("%s: weighted error of all rows %g, theirs %g", weighted_errors[t].type, ours, theirs);
    }
}

/* Only how weights compare counts; all 0 is all 1; what is no weight is refused. */
static void weights_of_all_kinds(void **state) {
    (void)state;
    for (uint32_t t = 0; t < HDI_COUNT(weighted_errors); t++) {
        const hd_dtype type = hd_dtype_parse(weighted_errors[t].type);
        static const float bad[] = { -1, NAN, INFINITY };
        float weights[QUANTISE_WIDTH];
        uint8_t one[1024], other[1024];
        const float *x = row_of(0);
        const uint64_t bytes = hd_dtype_bytes(type, QUANTISE_WIDTH);
        for (uint32_t k = 0; k < QUANTISE_WIDTH; k++) weights[k] = 1;
        assert_int_equal(hd_quantize_weighted(type, x, weights, QUANTISE_WIDTH, one), HD_OK);
        memset(weights, 0, sizeof weights);
        assert_int_equal(hd_quantize_weighted(type, x, weights, QUANTISE_WIDTH, other), HD_OK);
        assert_memory_equal(one, other, bytes);
        for (uint32_t k = 0; k < QUANTISE_WIDTH; k++) weights[k] = k % 3 ? 3e38f : 1e-38f;
        assert_int_equal(hd_quantize_weighted(type, x, weights, QUANTISE_WIDTH, other), HD_OK);
        for (uint32_t k = 0; k < HDI_COUNT(bad); k++) {
            weights[QUANTISE_WIDTH - 1] = bad[k];
            assert_int_equal(hd_quantize_weighted(type, x, weights, QUANTISE_WIDTH, one), HD_STATUS_INVALID_ARGUMENT);
        }
    }
}

/* Each type's error on ordinary numbers, as a share of their size: more bits, less error. */
static void errors_are_of_the_types_size(void **state) {
    (void)state;
    static const struct { hd_dtype type; double most; } bounds[] = {
        { HD_F32, 0 }, { HD_F16, 0.001 }, { HD_BF16, 0.004 }, { HD_Q8_0, 0.01 }, { HD_Q6_K, 0.03 }, { HD_Q5_K, 0.05 }, { HD_Q5_1, 0.06 },
        { HD_Q5_0, 0.06 }, { HD_Q4_K, 0.09 }, { HD_IQ4_NL, 0.1 }, { HD_IQ4_XS, 0.1 }, { HD_Q4_1, 0.11 }, { HD_Q4_0, 0.12 }, { HD_MXFP4, 0.16 },
        { HD_Q3_K, 0.2 }, { HD_Q2_K, 0.4 }, { HD_TQ1_0, 1 }, { HD_TQ2_0, 1 },
    };
    for (uint32_t i = 0; i < HDI_COUNT(bounds); i++) {
        uint8_t out[4 * QUANTISE_WIDTH];
        float back[QUANTISE_WIDTH];
        const float *values = row_of(0);
        double error = 0, size = 0;
        assert_int_equal(hd_quantize(bounds[i].type, values, QUANTISE_WIDTH, out), HD_OK);
        assert_int_equal(hd_dequantize(bounds[i].type, out, QUANTISE_WIDTH, back), HD_OK);
        for (uint32_t k = 0; k < QUANTISE_WIDTH; k++) {
            error += ((double)back[k] - (double)values[k]) * ((double)back[k] - (double)values[k]);
            size += (double)values[k] * (double)values[k];
        }
        if (!(sqrt(error / size) <= bounds[i].most)) fail_msg("%s: error %g", hd_dtype_name(bounds[i].type), sqrt(error / size));
    }
}

/* Numbers that a type holds exactly are its own bytes again, in types whose scale follows from the largest number. */
static void exact_numbers_stay(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_MXFP4, HD_Q8_0, HD_TQ2_0, HD_TQ1_0 };
    for (uint32_t i = 0; i < HDI_COUNT(types); i++) {
        static const float numbers[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6 };
        static const float threes[] = { -1, 0, 1, 1, 0, -1, 0, 0, 1 };
        float values[QUANTISE_WIDTH], back[QUANTISE_WIDTH];
        uint8_t out[1024];
        for (uint32_t k = 0; k < QUANTISE_WIDTH; k++) {
            const bool few = types[i] == HD_TQ1_0 || types[i] == HD_TQ2_0;
            values[k] = types[i] == HD_Q8_0 ? (float)((int)(k * 37 % 255) - 127) : few ? threes[k * 7 % 9] : numbers[k * 5 % 16];
            if (types[i] == HD_Q8_0 && k % 32 == 3) values[k] = 127;
        }
        assert_int_equal(hd_quantize(types[i], values, QUANTISE_WIDTH, out), HD_OK);
        assert_int_equal(hd_dequantize(types[i], out, QUANTISE_WIDTH, back), HD_OK);
        for (uint32_t k = 0; k < QUANTISE_WIDTH; k++) assert_true(back[k] == values[k]);
    }
}

static void whatever_comes_ends(void **state) {
    (void)state;
    static const uint32_t specials[] = { 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000 };
    for (hd_dtype type = HD_F32; type < HD_DTYPE_COUNT; type++) {
        float values[QUANTISE_WIDTH];
        uint8_t out[1024];
        if (!hdi_dtype_is_float(type) && !hdi_dtype_is_quantised(type)) continue;
        for (uint32_t one = 0; one < HDI_COUNT(specials); one++) {
            for (uint32_t k = 0; k < QUANTISE_WIDTH; k++)
                memcpy(&values[k], &specials[k % 5 ? one : (k / 5) % HDI_COUNT(specials)], sizeof values[k]);
            assert_int_equal(hd_quantize(type, values, QUANTISE_WIDTH, out), HD_OK);
            assert_int_equal(hd_dequantize(type, out, QUANTISE_WIDTH, values), HD_OK);
        }
    }
}

static void refusals(void **state) {
    (void)state;
    float values[32] = { 0 };
    uint8_t out[64];
    assert_int_equal(hd_quantize(HD_I32, values, 32, out), HD_STATUS_TYPE);
    assert_int_equal(hd_quantize(HD_DTYPE_NONE, values, 32, out), HD_STATUS_TYPE);
    assert_int_equal(hd_quantize((hd_dtype)999, values, 32, out), HD_STATUS_TYPE);
    assert_int_equal(hd_quantize(HD_Q4_0, values, 31, out), HD_STATUS_SHAPE);
    assert_int_equal(hd_quantize(HD_Q4_K, values, 32, out), HD_STATUS_SHAPE);
    assert_int_equal(hd_quantize(HD_Q4_0, NULL, 32, out), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_quantize(HD_Q4_0, values, 32, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_quantize(HD_Q4_0, NULL, 0, NULL), HD_OK);
    assert_int_equal(hd_quantize(HD_IQ2_XXS, values, 32, out), HD_STATUS_SHAPE);
    assert_int_equal(hd_dequantize(HD_U8, out, 32, values), HD_STATUS_TYPE);
    assert_int_equal(hd_dequantize(HD_Q8_0, out, 33, values), HD_STATUS_SHAPE);
    assert_int_equal(hd_dequantize(HD_Q8_0, NULL, 32, values), HD_STATUS_NULL_POINTER);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equals_llama_cpp), cmocka_unit_test(errors_are_of_the_types_size),
                                        cmocka_unit_test(exact_numbers_stay), cmocka_unit_test(whatever_comes_ends),
                                        cmocka_unit_test(refusals),
                                        cmocka_unit_test(weighted_errors_are_no_larger), cmocka_unit_test(weights_of_all_kinds) };
    return cmocka_run_group_tests_name("quantise", tests, NULL, NULL);
}
