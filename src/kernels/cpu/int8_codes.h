/* int8_codes.h: the codes of GGUF's quantised weights, one to a byte in the order along K, and what scales them: 32 times a
 * block's number of weights at a time. Vectors are those of the compiler, of 16 bytes. */
#ifndef HDCPU_INT8_CODES_H
#define HDCPU_INT8_CODES_H

#include "kernels/cpu/quant.h"
#include <stdbool.h>

enum { INT8_CODES = 256 };

/* INT8_CODES weights of a column, or fewer: code by code, and each block's scales, and less, one for each run of it. */
typedef struct int8_column {
    uint8_t codes[INT8_CODES];
    float   scales[INT8_CODES / 16], less[INT8_CODES / 16];
} int8_column;

/* 16 bytes; bits move within pairs of them, and what comes from the neighbour is for the caller to mask. */
typedef uint8_t  int8_bytes __attribute__((vector_size(16)));
typedef uint16_t int8_pairs __attribute__((vector_size(16)));
static inline int8_bytes int8_load(const uint8_t *from) {
    int8_bytes v;
    memcpy(&v, from, sizeof v);
    return v;
}
static inline int8_bytes moved_right(int8_bytes v, uint32_t by) { return (int8_bytes)((int8_pairs)v >> (uint16_t)by); }
static inline int8_bytes moved_left(int8_bytes v, uint32_t by) { return (int8_bytes)((int8_pairs)v << (uint16_t)by); }

/* The halves of `count` bytes, a multiple of 16. */
static inline void nibbles(const uint8_t *from, uint32_t count, uint8_t *low, uint8_t *high) {
    for (uint32_t i = 0; i < count; i += 16) {
        const int8_bytes v = int8_load(from + i), l = v & 15, h = moved_right(v, 4) & 15;
        memcpy(low + i, &l, sizeof l);
        memcpy(high + i, &h, sizeof h);
    }
}
/* Bit i of `bits` becomes the fifth of code i. */
static inline void fifth_bits(uint32_t bits, uint8_t *codes) {
    for (uint32_t i = 0; i < 4; i++, codes += 8, bits >>= 8) {
        const uint64_t seven = bits & 0x7F, last = bits >> 7 & 1;
        uint64_t eight;
        memcpy(&eight, codes, sizeof eight);
        eight |= ((seven * UINT64_C(0x0002040810204081) & UINT64_C(0x0101010101010101)) | last << 56) << 4;
        memcpy(codes, &eight, sizeof eight);
    }
}
/* bits[i] moved right and cut, times 2^left, is added to code i, for 32 of them. */
static inline void more_bits(const uint8_t *bits, uint32_t right, uint8_t mask, uint32_t left, uint8_t *codes) {
    for (uint32_t i = 0; i < 32; i += 16) {
        const int8_bytes more = moved_left(moved_right(int8_load(bits + i), right) & mask, left), all = int8_load(codes + i) | more;
        memcpy(codes + i, &all, sizeof all);
    }
}

/* ---- blocks of 32: q4_0, q4_1, q5_0, q5_1, q8_0 ---- */

static inline void codes_of_32(uint32_t type, const uint8_t *block, uint8_t flip, uint8_t *codes, float *scale, float *less) {
    const bool has_less = type == HDI_TYPE_Q4_1 || type == HDI_TYPE_Q5_1;
    const uint8_t *bits = block + (has_less ? 4 : 2);
    *scale = hdcpu_f16_at(block);
    *less = has_less ? -hdcpu_f16_at(block + 2) : 0.0f;
    if (type == HDI_TYPE_Q8_0) {
        for (uint32_t i = 0; i < 32; i += 16) {
            const int8_bytes flipped = int8_load(block + 2 + i) ^ flip;
            memcpy(codes + i, &flipped, sizeof flipped);
        }
        return;
    }
    const bool five = type == HDI_TYPE_Q5_0 || type == HDI_TYPE_Q5_1;
    nibbles(bits + (five ? 4 : 0), 16, codes, codes + 16);
    uint32_t fifth;
    memcpy(&fifth, bits, sizeof fifth);
    if (five) fifth_bits(fifth, codes);
}

/* ---- blocks of 256 ---- */

static inline void codes_of_q4_k(const uint8_t *block, bool five, int8_column *out) {
    const uint8_t *low = block + (five ? 48 : 16);
    for (int part = 0; part < 8; part++) hdcpu_q4_k_part(block, part, &out->scales[part], &out->less[part]);
    for (uint32_t part = 0; part < 8; part += 2) {
        nibbles(low + 16 * part, 32, out->codes + 32 * part, out->codes + 32 * part + 32);
        if (!five) continue;
        more_bits(block + 16, part, 1, 4, out->codes + 32 * part);
        more_bits(block + 16, part + 1, 1, 4, out->codes + 32 * part + 32);
    }
}
static inline void codes_of_q6_k(const uint8_t *block, int8_column *out) {
    const float d = hdcpu_f16_at(block + 208);
    for (uint32_t part = 0; part < 16; part++) out->scales[part] = d * (float)(int8_t)block[192 + part];
    for (uint32_t half = 0; half < 2; half++) {
        uint8_t *codes = out->codes + 128 * half;
        for (uint32_t i = 0; i < 2; i++) nibbles(block + 64 * half + 32 * i, 32, codes + 32 * i, codes + 64 + 32 * i);
        for (uint32_t i = 0; i < 4; i++) more_bits(block + 128 + 32 * half, 2 * i, 3, 4, codes + 32 * i);
    }
}
static inline void codes_of_q2_k(const uint8_t *block, int8_column *out) {
    memset(out->codes, 0, sizeof out->codes);
    for (uint32_t part = 0; part < 16; part++) hdcpu_q2_k_part(block, part, &out->scales[part], &out->less[part]);
    for (uint32_t i = 0; i < 8; i++) more_bits(block + 16 + 32 * (i >> 2), 2 * (i & 3), 3, 0, out->codes + 32 * i);
}
static inline void codes_of_q3_k(const uint8_t *block, int8_column *out) {
    memset(out->codes, 0, sizeof out->codes);
    for (uint32_t part = 0; part < 16; part++) out->scales[part] = hdcpu_q3_k_part(block, part);
    for (uint32_t i = 0; i < 8; i++) {
        more_bits(block + 32 + 32 * (i >> 2), 2 * (i & 3), 3, 0, out->codes + 32 * i);
        more_bits(block, i, 1, 2, out->codes + 32 * i);
    }
}
static inline void codes_of_tq1_0(const uint8_t *block, int8_column *out) {
    uint8_t *codes = out->codes;
    static const struct { uint8_t first, bytes, digits; } groups[] = { { 0, 32, 5 }, { 32, 16, 5 }, { 48, 4, 4 } };
    for (uint32_t g = 0; g < 3; g++)
        for (uint32_t digit = 0, power = 1; digit < groups[g].digits; digit++, power *= 3)
            for (uint32_t i = 0; i < groups[g].bytes; i++)
                *codes++ = (uint8_t)((block[groups[g].first + i] * power & 255) * 3 >> 8);
}
static inline void repeat_scale(float d, int8_column *out) {
    for (uint32_t i = 0; i < INT8_CODES / 32; i++) out->scales[i] = d;
}

/* `count` weights from a block's first on, at most INT8_CODES and whole blocks; signs of 8-bit codes are flipped by `flip`. */
static inline void int8_codes(uint32_t type, const uint8_t *block, uint32_t count, uint8_t flip, int8_column *out) {
    switch (type) {
    case HDI_TYPE_Q4_K: codes_of_q4_k(block, false, out); break;
    case HDI_TYPE_Q5_K: codes_of_q4_k(block, true, out); break;
    case HDI_TYPE_Q6_K: codes_of_q6_k(block, out); break;
    case HDI_TYPE_Q2_K: codes_of_q2_k(block, out); break;
    case HDI_TYPE_Q3_K: codes_of_q3_k(block, out); break;
    case HDI_TYPE_TQ1_0:
        codes_of_tq1_0(block, out);
        repeat_scale(hdcpu_f16_at(block + 52), out);
        break;
    case HDI_TYPE_TQ2_0:
        memset(out->codes, 0, sizeof out->codes);
        for (uint32_t i = 0; i < 8; i++) more_bits(block + 32 * (i >> 2), 2 * (i & 3), 3, 0, out->codes + 32 * i);
        repeat_scale(hdcpu_f16_at(block + 64), out);
        break;
    default:
        for (uint32_t i = 0; i < count / 32; i++, block += hdcpu_block_bytes(type))
            codes_of_32(type, block, flip, out->codes + 32 * i, &out->scales[i], &out->less[i]);
    }
}
#endif
