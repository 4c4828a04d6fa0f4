/* test_i2s.c: I2_S tensors, packed here element by element, come out as tq2_0 with the same values; what is no tensor is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "llm/ternary.h"

enum { ROWS = 3, COLUMNS = 768, ELEMENTS = ROWS * COLUMNS, BYTES = ELEMENTS / 4 + 32, BLOCKS = ELEMENTS / 256, OUT_BYTES = BLOCKS * 66 };

static int8_t  values[ELEMENTS];
static uint8_t packed[BYTES], blocks[OUT_BYTES + 1];

static hd_status unpack_to(const void *data, uint64_t bytes, hd_shape shape, void *out, uint64_t out_bytes, float *out_scale,
                           hd_error *error) {
    return hdl_ternary_unpack(&(hdl_ternary){ .type = HDL_GGUF_TYPE_I2_S, .shape = shape, .data = { data, bytes } }, out, out_bytes,
                              out_scale, error);
}

static void pack(float scale) {
    uint32_t state = 7;
    memset(packed, 0, sizeof packed);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int8_t)((state >> 16) % 3) - 1;
        const uint32_t code = (uint32_t)(values[i] + 1);
        packed[i / 128 * 32 + i % 32] |= (uint8_t)(code << (6 - 2 * (i % 128 / 32)));
    }
    memcpy(packed + ELEMENTS / 4, &scale, sizeof scale);
}

static void values_are_kept(void **state) {
    (void)state;
    float scale = 0;
    hd_error error = { 0 };
    pack(0.37f);
    blocks[OUT_BYTES] = 0xA5;
    assert_int_equal(unpack_to(packed, BYTES, HD_SHAPE(ROWS, COLUMNS), blocks, OUT_BYTES, &scale, &error), HD_OK);
    assert_true(scale == 0.37f && blocks[OUT_BYTES] == 0xA5);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        const uint8_t *block = blocks + i / 256 * 66;
        const uint32_t e = i % 256, code = block[e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2) & 3u;
        assert_int_equal((int)code - 1, values[i]);
        assert_true(block[64] == 0 && block[65] == 0x3C);
    }
}

/* Rows of 128 elements become q4_0: element i of a block of 32 is the low half of byte i, or the high half of byte i - 16. */
static void short_rows_become_q4_0(void **state) {
    (void)state;
    static uint8_t wide[ELEMENTS / 32 * 18];
    const hd_shape shape = HD_SHAPE(ELEMENTS / 128, 128);
    float scale = 0;
    hd_error error = { 0 };
    pack(-2);
    assert_int_equal(hdl_ternary_dtype(shape), HD_Q4_0);
    assert_int_equal(unpack_to(packed, BYTES, shape, wide, sizeof wide, &scale, &error), HD_OK);
    assert_true(scale == -2);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        const uint8_t *block = wide + i / 32 * 18;
        const uint32_t byte = block[2 + i % 16], code = i % 32 < 16 ? byte & 15u : byte >> 4;
        assert_int_equal((int)code - 8, values[i]);
        assert_true(block[0] == 0 && block[1] == 0x3C);
    }
    packed[70] |= 0x0C;
    assert_int_equal(unpack_to(packed, BYTES, shape, wide, sizeof wide, &scale, &error), HD_STATUS_PARSE);
}

static hd_status unpack(uint64_t bytes, hd_shape shape, uint64_t out_bytes) {
    float scale = 5;
    hd_error error = { 0 };
    const hd_status status = unpack_to(packed, bytes, shape, blocks, out_bytes, &scale, &error);
    assert_int_equal(error.status, status);
    assert_true(status == HD_OK || scale == 5);
    return status;
}

static void what_is_no_tensor_is_refused(void **state) {
    (void)state;
    const hd_shape shape = HD_SHAPE(ROWS, COLUMNS);
    float scale;
    pack(1);
    assert_int_equal(unpack(BYTES - 1, shape, OUT_BYTES), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unpack(BYTES + 1, shape, OUT_BYTES), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unpack(0, shape, OUT_BYTES), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unpack(BYTES, shape, OUT_BYTES - 66), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unpack(BYTES, HD_SHAPE(ROWS * COLUMNS / 128, 128), OUT_BYTES), HD_STATUS_INVALID_ARGUMENT); /* q4_0 is larger */
    assert_int_equal(unpack(BYTES, HD_SHAPE(ROWS * COLUMNS / 64, 64), OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(BYTES, HD_SHAPE(COLUMNS, ROWS), OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(BYTES, HD_SHAPE(0, 256), OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(BYTES, HD_SHAPE(-1, 256), OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(BYTES, HD_SHAPE(INT64_MAX, 256), OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(UINT64_MAX, HD_SHAPE(INT64_C(1) << 54, 256), UINT64_MAX), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unpack(BYTES, (hd_shape){ 0 }, OUT_BYTES), HD_STATUS_SHAPE);
    assert_int_equal(unpack(BYTES, shape, OUT_BYTES), HD_OK);
    packed[100] |= 0x30;
    assert_int_equal(unpack(BYTES, shape, OUT_BYTES), HD_STATUS_PARSE);
    pack(NAN);
    assert_int_equal(unpack(BYTES, shape, OUT_BYTES), HD_STATUS_PARSE);
    pack(-INFINITY);
    assert_int_equal(unpack(BYTES, shape, OUT_BYTES), HD_STATUS_PARSE);
    assert_int_equal(unpack_to(NULL, BYTES, shape, blocks, OUT_BYTES, &scale, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(unpack_to(packed, BYTES, shape, NULL, OUT_BYTES, &scale, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(unpack_to(packed, BYTES, shape, blocks, OUT_BYTES, NULL, NULL), HD_STATUS_NULL_POINTER);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(values_are_kept), cmocka_unit_test(short_rows_become_q4_0),
                                        cmocka_unit_test(what_is_no_tensor_is_refused) };
    return cmocka_run_group_tests_name("i2s", tests, NULL, NULL);
}
