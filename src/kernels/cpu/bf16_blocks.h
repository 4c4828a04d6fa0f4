/* bf16_blocks.h: blocks of quantised weights as bf16, for tiles (bf16_tiles.h): 32 values along K are a line of 16
 * words, and a column's next line lies a pair of tiles further. Codes of up to 5 bits are looked up in a table of 32
 * values that their scale makes: one instruction for 32 weights. */
#ifndef HDCPU_BF16_BLOCKS_H
#define HDCPU_BF16_BLOCKS_H

#include "kernels/cpu/bf16_tiles.h"

#if HDCPU_LEVEL >= 3
static inline __m512 bf16_f16_at(const uint8_t *half) {
    int16_t bits;
    memcpy(&bits, half, sizeof bits);
    return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
}
/* first, first + 1, ... first + 15 */
static inline __m512 bf16_counted(float first) {
    return _mm512_add_ps(_mm512_set1_ps(first), _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
static inline __m512i bf16_line(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }
/* What each code stands for: below 16 by `low`, from 16 on by `high`. */
static inline void bf16_look_up(__m256i codes, __m512 low, __m512 high, uint32_t *out) {
    _mm512_storeu_si512(out, _mm512_permutexvar_epi16(_mm512_cvtepu8_epi16(codes), bf16_line(low, high)));
}
/* Signed codes of 8 bits times the scales of the two halves. */
static inline void bf16_multiply(__m256i codes, __m512 low_scale, __m512 high_scale, uint32_t *out) {
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1)));
    _mm512_storeu_si512(out, bf16_line(_mm512_mul_ps(low, low_scale), _mm512_mul_ps(high, high_scale)));
}

/* 32 bytes, each moved right and cut. */
static inline __m256i bf16_bits(const uint8_t *from, uint32_t right, char mask) {
    const __m256i bytes = _mm256_loadu_si256((const void *)from);
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128((int)right)), _mm256_set1_epi8(mask));
}
/* The lower halves of 16 bytes, then the upper ones. */
static inline __m256i bf16_nibbles(const uint8_t *from) {
    const __m128i bytes = _mm_loadu_si128((const void *)from);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}
/* The same with a word of fifth bits before them. */
static inline __m256i bf16_codes_of_five(const uint8_t *from) {
    uint32_t fifth;
    memcpy(&fifth, from, sizeof fifth);
    return _mm256_or_si256(bf16_nibbles(from + 4), _mm256_maskz_set1_epi8(fifth, 16));
}

/* The lower halves of 16 bytes, then the upper ones, in words whose lowest four bits they are. */
static inline __m512i bf16_nibble_words(const uint8_t *from) {
    static const uint8_t spread[16] = { 0, 128, 1, 128, 2, 128, 3, 128, 4, 128, 5, 128, 6, 128, 7, 128 };
    const __m512i low = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)spread));
    const long long later = 0x0008000800080008; /* of the upper eight */
    const __m512i places = _mm512_add_epi8(low, _mm512_set_epi64(later, later, 0, 0, later, later, 0, 0));
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)from));
    return _mm512_srlv_epi16(_mm512_shuffle_epi8(bytes, places), right);
}

/* ---- one block of each type ---- */

static inline __m512 bf16_q4_0_values(const uint8_t *block) {
    return _mm512_mul_ps(bf16_f16_at(block), bf16_counted(-8));
}
static inline void bf16_q4_0(const uint8_t *block, uint32_t *out) {
    const __m512 values = bf16_q4_0_values(block); /* twice, so that a code's fifth bit may be anything */
    _mm512_storeu_si512(out, _mm512_permutexvar_epi16(bf16_nibble_words(block + 2), bf16_line(values, values)));
}
/* Two blocks, in whose table the second one's values are the upper half. */
static inline void bf16_q4_0_pair(const uint8_t *blocks, uint32_t *out) {
    const __m512i values = bf16_line(bf16_q4_0_values(blocks), bf16_q4_0_values(blocks + 18));
    const __m512i four = _mm512_set1_epi16(15), fifth = _mm512_set1_epi16(16);
    const __m512i first = _mm512_and_si512(bf16_nibble_words(blocks + 2), four),
                  second = _mm512_ternarylogic_epi32(bf16_nibble_words(blocks + 20), four, fifth, 0xEA); /* a & b | c */
    _mm512_storeu_si512(out, _mm512_permutexvar_epi16(first, values));
    _mm512_storeu_si512(out + PAIR_WORDS, _mm512_permutexvar_epi16(second, values));
}
static inline void bf16_q4_1(const uint8_t *block, uint32_t *out) {
    const __m512 values = _mm512_fmadd_ps(bf16_f16_at(block), bf16_counted(0), bf16_f16_at(block + 2));
    bf16_look_up(bf16_nibbles(block + 4), values, values, out);
}
static inline void bf16_q5_0(const uint8_t *block, uint32_t *out) {
    const __m512 d = bf16_f16_at(block);
    bf16_look_up(bf16_codes_of_five(block + 2), _mm512_mul_ps(d, bf16_counted(-16)), _mm512_mul_ps(d, bf16_counted(0)),
                 out);
}
static inline void bf16_q5_1(const uint8_t *block, uint32_t *out) {
    const __m512 d = bf16_f16_at(block), m = bf16_f16_at(block + 2);
    bf16_look_up(bf16_codes_of_five(block + 4), _mm512_fmadd_ps(d, bf16_counted(0), m),
                 _mm512_fmadd_ps(d, bf16_counted(16), m), out);
}
static inline void bf16_q8_0(const uint8_t *block, uint32_t *out) {
    const __m512 d = bf16_f16_at(block);
    bf16_multiply(_mm256_loadu_si256((const void *)(block + 2)), d, d, out);
}
/* The scales and mins of a q4_k or q5_k block, in memory: from there one fills a vector for free. */
static inline void bf16_q4_k_parts(const uint8_t *block, float *out_scales, float *out_mins) {
    __m256 scales, mins;
    hdcpu_q4_k_parts(block, &scales, &mins);
    _mm256_storeu_ps(out_scales, scales);
    _mm256_storeu_ps(out_mins, mins);
}
static inline void bf16_q4_k(const uint8_t *block, uint32_t *out) {
    float scales[8], mins[8];
    bf16_q4_k_parts(block, scales, mins);
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS) { /* a word's fifth bit is anything, as for q4_0 */
        const __m512 values =
            _mm512_fmsub_ps(_mm512_set1_ps(scales[line]), bf16_counted(0), _mm512_set1_ps(mins[line]));
        const __m512i both =
            _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(block + 16 + 32 * (line / 2))));
        const __m512i codes = line & 1 ? _mm512_srli_epi16(both, 4) : both;
        _mm512_storeu_si512(out, _mm512_permutexvar_epi16(codes, bf16_line(values, values)));
    }
}
static inline void bf16_q5_k(const uint8_t *block, uint32_t *out) {
    float scales[8], mins[8];
    bf16_q4_k_parts(block, scales, mins);
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS) {
        const __m512 scale = _mm512_set1_ps(scales[line]), min = _mm512_set1_ps(mins[line]);
        const __m256i fifth = _mm256_slli_epi16(bf16_bits(block + 16, line, 1), 4);
        bf16_look_up(_mm256_or_si256(bf16_bits(block + 48 + 32 * (line / 2), 4 * (line & 1), 15), fifth),
                     _mm512_fmsub_ps(scale, bf16_counted(0), min), _mm512_fmsub_ps(scale, bf16_counted(16), min), out);
    }
}
static inline void bf16_q6_k(const uint8_t *block, uint32_t *out) {
    const __m512 d = bf16_f16_at(block + 208);
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS) {
        const int8_t *scales = (const int8_t *)block + 192 + 2 * line;
        const __m256i low = bf16_bits(block + 64 * (line / 4) + 32 * (line & 1), 4 * (line / 2 & 1), 15);
        const __m256i high = bf16_bits(block + 128 + 32 * (line / 4), 2 * (line & 3), 3);
        bf16_multiply(_mm256_sub_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)), _mm256_set1_epi8(32)),
                      _mm512_mul_ps(d, _mm512_set1_ps(scales[0])), _mm512_mul_ps(d, _mm512_set1_ps(scales[1])), out);
    }
}
/* Codes whose two halves have scales of their own: the upper half's look in the table's upper half. */
static inline __m256i bf16_halves(__m256i codes) {
    return _mm256_or_si256(codes, _mm256_maskz_set1_epi8(0xFFFF0000u, 16));
}
static inline void bf16_q2_k(const uint8_t *block, uint32_t *out) {
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS) {
        __m512 values[2];
        for (uint32_t half = 0; half < 2; half++) {
            float scale, min;
            hdcpu_q2_k_part(block, 2 * line + half, &scale, &min);
            values[half] = _mm512_fmsub_ps(_mm512_set1_ps(scale), bf16_counted(0), _mm512_set1_ps(min));
        }
        bf16_look_up(bf16_halves(bf16_bits(block + 16 + 32 * (line / 4), 2 * (line & 3), 3)), values[0], values[1],
                     out);
    }
}
static inline void bf16_q3_k(const uint8_t *block, uint32_t *out) {
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS) {
        const __m512 low = _mm512_set1_ps(hdcpu_q3_k_part(block, 2 * line)),
                     high = _mm512_set1_ps(hdcpu_q3_k_part(block, 2 * line + 1));
        const __m256i third = _mm256_slli_epi16(bf16_bits(block, line, 1), 2);
        const __m256i codes = _mm256_or_si256(bf16_bits(block + 32 + 32 * (line / 4), 2 * (line & 3), 3), third);
        bf16_look_up(bf16_halves(codes), _mm512_mul_ps(low, bf16_counted(-4)), _mm512_mul_ps(high, bf16_counted(-4)),
                     out);
    }
}
static inline void bf16_tq2_0(const uint8_t *block, uint32_t *out) {
    const __m512 values = _mm512_mul_ps(bf16_f16_at(block + 64), bf16_counted(-1));
    for (uint32_t line = 0; line < 8; line++, out += PAIR_WORDS)
        bf16_look_up(bf16_bits(block + 32 * (line / 4), 2 * (line & 3), 3), values, values, out);
}
static inline void bf16_f16(const uint8_t *values, uint32_t *out) {
    _mm512_storeu_si512(out, bf16_line(_mm512_cvtph_ps(_mm256_loadu_si256((const void *)values)),
                                       _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(values + 32)))));
}
static inline void bf16_bf16(const uint8_t *values, uint32_t *out) { memcpy(out, values, 64); }
#endif

/* The first `count` values of a column, whole blocks of them, as lines of a pair of tiles; zeros fill up the last
 * one. */
static __attribute__((noinline)) void bf16_any_column(uint32_t type, const uint8_t *column, uint32_t count,
                                                      uint32_t *out) {
    enum { LONGEST = 256 };
    uint32_t done = 0;
#if HDCPU_LEVEL >= 3
#define BF16_BLOCKS(code, name, elements, bytes) \
    case code: \
        for (; done + (elements) <= count; done += (elements), column += (bytes), \
             out += (elements) / TILE_DEPTH * PAIR_WORDS) \
            bf16_##name(column, out); \
        break;
    switch (type) {
    BF16_BLOCKS(HDI_TYPE_F16,   f16,   32, 64)
    BF16_BLOCKS(HDI_TYPE_BF16,  bf16,  32, 64)
    BF16_BLOCKS(HDI_TYPE_Q4_0,  q4_0,  32, 18)
    BF16_BLOCKS(HDI_TYPE_Q4_1,  q4_1,  32, 20)
    BF16_BLOCKS(HDI_TYPE_Q5_0,  q5_0,  32, 22)
    BF16_BLOCKS(HDI_TYPE_Q5_1,  q5_1,  32, 24)
    BF16_BLOCKS(HDI_TYPE_Q8_0,  q8_0,  32, 34)
    BF16_BLOCKS(HDI_TYPE_Q2_K,  q2_k,  256, 84)
    BF16_BLOCKS(HDI_TYPE_Q3_K,  q3_k,  256, 110)
    BF16_BLOCKS(HDI_TYPE_Q4_K,  q4_k,  256, 144)
    BF16_BLOCKS(HDI_TYPE_Q5_K,  q5_k,  256, 176)
    BF16_BLOCKS(HDI_TYPE_Q6_K,  q6_k,  256, 210)
    BF16_BLOCKS(HDI_TYPE_TQ2_0, tq2_0, 256, 66)
    default: break;
    }
#undef BF16_BLOCKS
#endif
    while (done < count) {
        const uint32_t part = HDI_MIN(count - done, (uint32_t)LONGEST);
        float values[LONGEST + TILE_DEPTH];
        hdcpu_load_floats(type, column, 0, part, values);
        memset(values + part, 0, TILE_DEPTH * sizeof *values);
        for (uint32_t at = 0; at < part; at += TILE_DEPTH, out += PAIR_WORDS) bf16_words(values + at, out);
        column += part / hdcpu_block_elements(type) * hdcpu_block_bytes(type);
        done += part;
    }
}
/* The same; of the type whose blocks are the quickest without a call. */
static inline void bf16_column(uint32_t type, const uint8_t *column, uint32_t count, uint32_t *out) {
#if HDCPU_LEVEL >= 3
    for (; type == HDI_TYPE_Q4_0 && count >= 64; count -= 64, column += 36, out += 2 * PAIR_WORDS)
        bf16_q4_0_pair(column, out);
#endif
    if (count > 0) bf16_any_column(type, column, count, out);
}
#endif
