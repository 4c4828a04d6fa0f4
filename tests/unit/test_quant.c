/* test_quant.c: dequantisation against GGUF's own values (quant_fixtures.h): 0 bits may differ, in whole blocks, in
 * parts of blocks and element by element; any NaN is as good as another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "base/base.h"
#include "kernels/cpu/quant.h"
#include "unit/quant_fixtures.h"

static void assert_equal(const float *values, const uint32_t *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if ((want[i] & 0x7FFFFFFFu) > 0x7F800000u) assert_true(isnan(values[i]));
        else assert_int_equal(bits, want[i]);
    }
}

static void check(uint32_t type, const uint8_t *blocks, size_t bytes, const uint32_t *want, size_t count) {
    float out[24 * 256 + 2];
    const uint32_t guard = 0xDEADBEEFu;
    assert_int_equal(hdi_dtype((hd_dtype)type).block_bytes, hdcpu_block_bytes(type));
    assert_int_equal(hdi_dtype((hd_dtype)type).block_elements, hdcpu_block_elements(type));
    assert_int_equal(hd_dtype_bytes((hd_dtype)type, count), bytes);
    for (size_t first = 0; first < count; first += 1 + first / 2)
        for (size_t n = 1; first + n <= count; n += 1 + n / 2) {
            memcpy(&out[n], &guard, sizeof guard);
            hdcpu_load_floats(type, blocks, first, n, out);
            assert_equal(out, want + first, n);
            assert_memory_equal(&out[n], &guard, sizeof guard);
        }
    hdcpu_load_floats(type, blocks, 0, count, out);
    assert_equal(out, want, count);
    for (size_t i = 0; i < count; i++) {
        const float value = hdcpu_load_any(type, blocks, i);
        assert_equal(&value, &want[i], 1);
    }
}

static void equals_gguf(void **state) {
    (void)state;
#define CHECK(type, name) check(type, name##_blocks, sizeof name##_blocks, name##_values, HDI_COUNT(name##_values))
    CHECK(HDI_TYPE_Q4_0, q4_0);
    CHECK(HDI_TYPE_Q8_0, q8_0);
    CHECK(HDI_TYPE_Q4_K, q4_k);
    CHECK(HDI_TYPE_Q6_K, q6_k);
    CHECK(HDI_TYPE_TQ2_0, tq2_0);
    CHECK(HDI_TYPE_Q4_1, q4_1);
    CHECK(HDI_TYPE_Q5_0, q5_0);
    CHECK(HDI_TYPE_Q5_1, q5_1);
    CHECK(HDI_TYPE_Q2_K, q2_k);
    CHECK(HDI_TYPE_Q3_K, q3_k);
    CHECK(HDI_TYPE_Q5_K, q5_k);
    CHECK(HDI_TYPE_TQ1_0, tq1_0);
    CHECK(HDI_TYPE_IQ4_NL, iq4_nl);
    CHECK(HDI_TYPE_IQ4_XS, iq4_xs);
    CHECK(HDI_TYPE_MXFP4, mxfp4);
    CHECK(HDI_TYPE_IQ2_XXS, iq2_xxs);
    CHECK(HDI_TYPE_IQ2_XS, iq2_xs);
    CHECK(HDI_TYPE_IQ2_S, iq2_s);
    CHECK(HDI_TYPE_IQ3_XXS, iq3_xxs);
    CHECK(HDI_TYPE_IQ3_S, iq3_s);
    CHECK(HDI_TYPE_IQ1_S, iq1_s);
    CHECK(HDI_TYPE_IQ1_M, iq1_m);
}

static void every_entry_of_the_books(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof book_hashes / sizeof *book_hashes; t++) {
        const uint32_t type = book_hashes[t].type, size = hdcpu_block_bytes(type);
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        uint32_t random = 1;
        for (uint32_t b = 0; b < BOOK_BLOCKS; b++) {
            uint8_t block[110];
            float values[256];
            for (uint32_t i = 0; i < size; i++) block[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
            block[type == HDI_TYPE_IQ1_M ? 55 : 1] &= 0xBF;
            hdcpu_load_floats(type, block, 0, 256, values);
            for (size_t i = 0; i < sizeof values; i++) hash = (hash ^ ((const uint8_t *)values)[i]) * UINT64_C(0x100000001b3);
        }
        if (hash != book_hashes[t].hash) fail_msg("%s", hd_dtype_name((hd_dtype)type));
    }
}

static void every_f16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float value = hdcpu_float_of_f16((uint16_t)h);
        const uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
        const double want = exponent == 0 ? (double)fraction * 0x1p-24
                          : exponent == 31 ? (fraction ? NAN : INFINITY)
                          : (double)(fraction | 1024) * (exponent >= 25 ? (double)(1u << (exponent - 25)) : 1.0 / (double)(1u << (25 - exponent)));
        if (isnan(want)) assert_true(isnan(value));
        else assert_true((double)value == (h & 0x8000 ? -want : want));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equals_gguf), cmocka_unit_test(every_entry_of_the_books), cmocka_unit_test(every_f16) };
    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
