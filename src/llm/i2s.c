/* i2s.c: unpacks I2_S. Groups of 128 elements in 32 bytes: byte j holds elements j, j + 32, j + 64 and j + 96, the
 * first one in its highest two bits; a code is the value + 1. After all groups stands one f32, the scale of the whole
 * tensor, then padding. tq2_0 has the same codes in the same groups with the first element in the lowest bits, so a
 * group is turned byte by byte. This is the layout that x86 builds of bitnet.cpp write and its published models have. A
 * file does not say which one it has: those that other builds write (groups of 64, or four rows together) look the
 * same. */
#include "llm/gguf.h"
#include "llm/i2s.h"
#include <math.h>

enum { GROUP_BYTES = 32, GROUP_ELEMENTS = 128, TQ2_0_CODES = 64, TQ2_0_BYTES = TQ2_0_CODES + 2, Q4_0_BYTES = 18 };
static const uint8_t one[2] = { 0x00, 0x3C }; /* 1 as f16 */

/* A block of tq2_0 from two groups. The result has a bit set where a code is 3. */
static uint8_t to_tq2_0(const uint8_t *from, uint8_t *to) {
    uint8_t wrong = 0;
    for (uint32_t i = 0; i < TQ2_0_CODES; i++) {
        const uint32_t b = from[i];
        wrong |= (uint8_t)(b & b >> 1 & 0x55u);
        to[i] = (uint8_t)(b >> 6 | (b >> 2 & 0x0Cu) | (b << 2 & 0x30u) | (b << 6 & 0xC0u));
    }
    memcpy(to + TQ2_0_CODES, one, sizeof one);
    return wrong;
}

/* Four blocks of q4_0 from a group: block g has the elements of bits 6 - 2g, and its code is the value + 8. */
static uint8_t to_q4_0(const uint8_t *from, uint8_t *to) {
    uint8_t wrong = 0;
    for (uint32_t g = 0; g < 4; g++, to += Q4_0_BYTES) {
        const uint32_t shift = 6 - 2 * g;
        memcpy(to, one, sizeof one);
        for (uint32_t i = 0; i < GROUP_BYTES / 2; i++) {
            const uint32_t low = from[i] >> shift & 3u, high = from[i + GROUP_BYTES / 2] >> shift & 3u;
            wrong |= low == 3 || high == 3;
            to[2 + i] = (uint8_t)((low + 7) | (high + 7) << 4);
        }
    }
    return wrong;
}

hd_dtype hdl_i2s_dtype(hd_shape shape) {
    return shape.rank > 0 && shape.dims[shape.rank - 1] % (2 * GROUP_ELEMENTS) == 0 ? HD_TQ2_0 : HD_Q4_0;
}

hd_status hdl_i2s_unpack(const void *data, uint64_t bytes, hd_shape shape, void *out_blocks, uint64_t out_bytes,
                         float *out_scale, hd_error *error) {
    if (!data || !out_blocks || !out_scale)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "I2_S: no data, or nowhere to put it");
    const hd_dtype dtype = hdl_i2s_dtype(shape);
    const uint64_t needed = hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_I2_S, shape), room = hd_tensor_bytes(dtype, shape);
    if (needed == 0 || room == 0 || shape.dims[shape.rank - 1] % GROUP_ELEMENTS)
        return hdl_fail(error, HD_STATUS_SHAPE, "I2_S: the last axis is no multiple of %d, or the tensor is too large",
                        GROUP_ELEMENTS);
    if (bytes != needed || out_bytes != room)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "I2_S: %llu bytes into %llu, the shape needs %llu into %llu",
                        (unsigned long long)bytes, (unsigned long long)out_bytes, (unsigned long long)needed,
                        (unsigned long long)room);
    const uint8_t *from = data, *end = from + hd_shape_elements(shape) / 4;
    uint8_t *to = out_blocks, wrong = 0;
    if (dtype == HD_TQ2_0)
        for (; from < end; from += 2 * GROUP_BYTES, to += TQ2_0_BYTES) wrong |= to_tq2_0(from, to);
    else
        for (; from < end; from += GROUP_BYTES, to += 4 * Q4_0_BYTES) wrong |= to_q4_0(from, to);
    if (wrong) return hdl_fail(error, HD_STATUS_PARSE, "I2_S: a code of 3, which stands for no value");
    const uint32_t bits =
        (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    if (!isfinite(scale)) return hdl_fail(error, HD_STATUS_PARSE, "I2_S: the scale is not a finite number");
    *out_scale = scale;
    return HD_OK;
}
