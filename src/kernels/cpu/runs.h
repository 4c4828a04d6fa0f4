/* runs.h: 32 neighbouring weights of a quantised column as whole numbers, and rows of activations rounded to 8 bits:
 * what the exact product of both is made of, in the order of abi.h. */
#ifndef HDCPU_RUNS_H
#define HDCPU_RUNS_H

#include "kernels/cpu/quant.h"
#include "kernels/exact.h"

enum { HDCPU_RUN = 32, HDCPU_STRANDS = 16 };

/* A weight is d * scale * code - less * min, scale and min of its half of the run. */
typedef struct hdcpu_run {
    int8_t  codes[HDCPU_RUN];
    int32_t scale[2], min[2];
    float   d, less;
} hdcpu_run;

/* 32 codes from 16 bytes of nibbles, the low ones first; from `bits` (NULL: none) a fifth bit each. */
static inline void hdcpu_run_nibbles(const uint8_t *bytes, const uint8_t *bits, int offset, int8_t *codes) {
    uint32_t high = 0;
    if (bits) memcpy(&high, bits, sizeof high);
    for (uint32_t i = 0; i < 16; i++) {
        codes[i] = (int8_t)(((bytes[i] & 15) | (int)(high >> i & 1) << 4) - offset);
        codes[i + 16] = (int8_t)((bytes[i] >> 4 | (int)(high >> (i + 16) & 1) << 4) - offset);
    }
}
/* Codes of `width` bits at `shift` of each byte; then more bits of them above those; then their offset taken off. */
static inline void hdcpu_run_fields(const uint8_t *bytes, uint32_t shift, uint32_t width, int8_t *codes) {
    for (uint32_t i = 0; i < HDCPU_RUN; i++) codes[i] = (int8_t)(bytes[i] >> shift & ((1 << width) - 1));
}
static inline void hdcpu_run_more(const uint8_t *bytes, uint32_t shift, uint32_t width, uint32_t above, int8_t *codes) {
    for (uint32_t i = 0; i < HDCPU_RUN; i++)
        codes[i] = (int8_t)(codes[i] | (bytes[i] >> shift & ((1 << width) - 1)) << above);
}
static inline void hdcpu_run_offset(int offset, int8_t *codes) {
    for (uint32_t i = 0; i < HDCPU_RUN; i++) codes[i] = (int8_t)(codes[i] - offset);
}
static inline void hdcpu_run_tq1_0(const uint8_t *block, uint32_t part, int8_t *codes) {
    static const uint8_t powers[] = { 1, 3, 9, 27, 81 };
    for (uint32_t i = 0; i < HDCPU_RUN; i++) {
        const uint32_t e = HDCPU_RUN * part + i;
        const uint32_t at = e < 160 ? e % 32 : e < 240 ? 32 + e % 16 : 48 + e % 4;
        const uint32_t digit = e < 160 ? e / 32 : e < 240 ? (e - 160) / 16 : (e - 240) / 4;
        codes[i] = (int8_t)((int)((block[at] * (uint32_t)powers[digit] & 255) * 3 >> 8) - 1);
    }
}

/* Scale (and min) of part 0..7 of the 12 bytes of q4_k and q5_k. */
static inline void hdcpu_run_six_bits(const uint8_t *s, uint32_t part, hdcpu_run *out) {
    const int scale = part < 4 ? s[part] & 63 : (s[part + 4] & 15) | s[part - 4] >> 6 << 4;
    const int min = part < 4 ? s[part + 4] & 63 : s[part + 4] >> 4 | s[part] >> 6 << 4;
    out->scale[0] = out->scale[1] = scale;
    out->min[0] = out->min[1] = min;
}

static inline void hdcpu_run_of_book(uint32_t type, const uint8_t *block, uint32_t part, hdcpu_run *out) {
    const uint64_t bits = hdcpu_book_bits(type, block, part / 2) >> 32 * (part & 1);
    uint64_t scales[2];
    hdcpu_book_scales(type, block, scales);
    out->d = hdcpu_book_d(type, block);
    for (uint32_t h = 0; h < 2; h++) out->scale[h] = (int)(scales[part / 4] >> 8 * (2 * (part & 3) + h) & 255);
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t eight =
            hdcpu_book_signed(type, hdcpu_book_numbers(type, block, 4 * part + i), bits >> 8 * i & 255);
        memcpy(out->codes + 8 * i, &eight, sizeof eight);
    }
}

/* Run `part` of a block of a type whose blocks are of 256. */
static inline void hdcpu_run_of_256(uint32_t type, const uint8_t *block, uint32_t part, hdcpu_run *out) {
    const uint32_t half = part >> 2, shift = 2 * (part & 3);
    switch (type) {
    case HDI_TYPE_Q4_K:
        hdcpu_run_fields(block + 16 + 32 * (part >> 1), 4 * (part & 1), 4, out->codes);
        hdcpu_run_six_bits(block + 4, part, out);
        break;
    case HDI_TYPE_Q5_K:
        hdcpu_run_fields(block + 48 + 32 * (part >> 1), 4 * (part & 1), 4, out->codes);
        hdcpu_run_more(block + 16, part, 1, 4, out->codes);
        hdcpu_run_six_bits(block + 4, part, out);
        break;
    case HDI_TYPE_Q6_K:
        hdcpu_run_fields(block + 64 * half + 32 * (part & 1), 4 * (part >> 1 & 1), 4, out->codes);
        hdcpu_run_more(block + 128 + 32 * half, shift, 2, 4, out->codes);
        hdcpu_run_offset(32, out->codes);
        for (uint32_t h = 0; h < 2; h++) out->scale[h] = (int8_t)block[192 + 2 * part + h];
        break;
    case HDI_TYPE_Q2_K:
        hdcpu_run_fields(block + 16 + 32 * half, shift, 2, out->codes);
        for (uint32_t h = 0; h < 2; h++) {
            out->scale[h] = block[2 * part + h] & 15;
            out->min[h] = block[2 * part + h] >> 4;
        }
        break;
    case HDI_TYPE_Q3_K:
        hdcpu_run_fields(block + 32 + 32 * half, shift, 2, out->codes);
        hdcpu_run_more(block, part, 1, 2, out->codes);
        hdcpu_run_offset(4, out->codes);
        for (uint32_t h = 0; h < 2; h++) {
            const uint32_t p = 2 * part + h;
            out->scale[h] =
                ((block[96 + (p & 7)] >> 4 * (p >> 3) & 15) | (block[104 + (p & 3)] >> 2 * (p >> 2) & 3) << 4) - 32;
        }
        break;
    case HDI_TYPE_TQ1_0: hdcpu_run_tq1_0(block, part, out->codes); break;
    case HDI_TYPE_TQ2_0:
        hdcpu_run_fields(block + 32 * half, shift, 2, out->codes);
        hdcpu_run_offset(1, out->codes);
        break;
    default: hdcpu_run_of_book(type, block, part, out); break;
    }
}

/* Where d lies in a block; what takes less, if anything, is the half behind it. */
static inline uint32_t hdcpu_scale_byte(uint32_t type) {
    switch (type) {
    case HDI_TYPE_Q6_K:  return 208;
    case HDI_TYPE_TQ2_0: return 64;
    case HDI_TYPE_Q2_K:  return 80;
    case HDI_TYPE_Q3_K:  return 108;
    case HDI_TYPE_TQ1_0: return 52;
    default:             return 0;
    }
}

/* Run `part` of a block: 0 in blocks of 32. */
static inline void hdcpu_run_of(uint32_t type, const uint8_t *block, uint32_t part, hdcpu_run *out) {
    const uint8_t *scales = block + hdcpu_scale_byte(type);
    const bool one = type == HDI_TYPE_Q4_1 || type == HDI_TYPE_Q5_1; /* min */
    out->scale[0] = out->scale[1] = 1;
    out->min[0] = out->min[1] = one;
    out->d = hdcpu_f16_at(scales);
    out->less = !HDI_HAS_MIN(type) ? 0.0f : one ? -hdcpu_f16_at(scales + 2) : hdcpu_f16_at(scales + 2);
    switch (type) {
    case HDI_TYPE_Q4_0: hdcpu_run_nibbles(block + 2, NULL, 8, out->codes); break;
    case HDI_TYPE_Q4_1: hdcpu_run_nibbles(block + 4, NULL, 0, out->codes); break;
    case HDI_TYPE_Q5_0: hdcpu_run_nibbles(block + 6, block + 2, 16, out->codes); break;
    case HDI_TYPE_Q5_1: hdcpu_run_nibbles(block + 8, block + 4, 0, out->codes); break;
    case HDI_TYPE_Q8_0: memcpy(out->codes, block + 2, HDCPU_RUN); break;
    default:            hdcpu_run_of_256(type, block, part, out);
    }
}

/* Rounds 32 activations; returns their scale. */
static inline float hdcpu_round_run(const float *x, int8_t *codes) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < HDCPU_RUN; i++) {
        const uint32_t size = exact_bits(x[i]) & ~EXACT_SIGN;
        most = size > most ? size : most;
    }
    const exact_rounding r = exact_int8_rounding(most);
    for (uint32_t i = 0; i < HDCPU_RUN; i++) codes[i] = (int8_t)exact_int8_code(x[i], r.inverse);
    return r.scale;
}

/* A run's part of a sum. `weights` are times the activations' codes half by half, `mins` likewise the codes' own
 * sums. */
static inline float hdcpu_run_value(float scale, float d, float less, bool has_min, int32_t weights, int32_t mins) {
    const float value = d * (float)weights;
    return scale * (has_min ? value - less * (float)mins : value);
}
#endif
