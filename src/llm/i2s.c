/* i2s.c: unpacks I2_S. Groups of 128 elements in 32 bytes: byte j holds elements j, j + 32, j + 64 and j + 96, the
 * first one in its highest two bits; a code is the value + 1. After all groups stands one f32, the scale of the whole
 * tensor, then padding. tq2_0 has the same codes in the same groups with the first element in the lowest bits, so a
 * group is turned byte by byte. This is the layout that x86 builds of bitnet.cpp write and its published models have. A
 * file does not say which one it has: those that other builds write (groups of 64, or four rows together) look the
 * same. */
#include "llm/ternary.h"

enum { GROUP_BYTES = 32 };

/* A block of tq2_0 from two groups. The result has a bit set where a code is 3. */
static uint8_t to_tq2_0(const uint8_t *from, uint8_t *to) {
    uint8_t wrong = 0;
    for (uint32_t i = 0; i < HDL_TQ2_0_CODES; i++) {
        const uint32_t b = from[i];
        wrong |= (uint8_t)(b & b >> 1 & 0x55u);
        to[i] = (uint8_t)(b >> 6 | (b >> 2 & 0x0Cu) | (b << 2 & 0x30u) | (b << 6 & 0xC0u));
    }
    memcpy(to + HDL_TQ2_0_CODES, hdl_ternary_one, sizeof hdl_ternary_one);
    return wrong;
}

/* Four blocks of q4_0 from a group: block g has the elements of bits 6 - 2g, and its code is the value + 8. */
static uint8_t to_q4_0(const uint8_t *from, uint8_t *to) {
    uint8_t wrong = 0;
    for (uint32_t g = 0; g < 4; g++, to += HDL_Q4_0_BYTES) {
        const uint32_t shift = 6 - 2 * g;
        memcpy(to, hdl_ternary_one, sizeof hdl_ternary_one);
        for (uint32_t i = 0; i < GROUP_BYTES / 2; i++) {
            const uint32_t low = from[i] >> shift & 3u, high = from[i + GROUP_BYTES / 2] >> shift & 3u;
            wrong |= low == 3 || high == 3;
            to[2 + i] = (uint8_t)((low + 7) | (high + 7) << 4);
        }
    }
    return wrong;
}

bool hdl_i2s_unpack(const hdl_ternary *from, uint8_t *out_blocks) {
    const uint8_t *at = from->data.bytes, *end = at + hd_shape_elements(from->shape) / 4;
    uint8_t *to = out_blocks, wrong = 0;
    if (hdl_ternary_dtype(from->shape) == HD_TQ2_0)
        for (; at < end; at += 2 * GROUP_BYTES, to += HDL_TQ2_0_BYTES) wrong |= to_tq2_0(at, to);
    else
        for (; at < end; at += GROUP_BYTES, to += 4 * HDL_Q4_0_BYTES) wrong |= to_q4_0(at, to);
    return !wrong;
}
