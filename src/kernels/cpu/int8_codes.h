/* int8_codes.h: the codes of GGUF's quantised weights, one to a byte in the order along K, and what scales them: 32
 * times a block's number of weights at a time. */
#ifndef HDCPU_INT8_CODES_H
#define HDCPU_INT8_CODES_H

#include "kernels/cpu/books_wide.h"
#include "kernels/cpu/quant.h"
#include <stdbool.h>

enum { INT8_CODES = 256, INT8_BOOK_OFFSET = 64, INT8_MXFP4_OFFSET = 12 };

/* INT8_CODES weights of a column, or fewer: a weight is d * scale * (code - offset) - less * min. Scale and min are of
 * each 16 weights, d and less of each 32. */
typedef struct int8_column {
    uint8_t codes[INT8_CODES];
    int16_t scale[INT8_CODES / 16], min[INT8_CODES / 16];
    float   d[INT8_CODES / 32], less[INT8_CODES / 32];
} int8_column;

/* What is taken off each code; of q8_0, iq4_nl and iq4_xs, whose codes are signed, nothing. */
static inline int int8_offset(uint32_t type) {
    switch (type) {
    case HDI_TYPE_Q4_0: return 8;
    case HDI_TYPE_Q5_0: return 16;
    case HDI_TYPE_Q3_K: return 4;
    case HDI_TYPE_Q6_K: return 32;
    case HDI_TYPE_TQ1_0:
    case HDI_TYPE_TQ2_0: return 1;
    case HDI_TYPE_MXFP4: return INT8_MXFP4_OFFSET;
    default:             return HDI_HAS_BOOK(type) ? INT8_BOOK_OFFSET : 0;
    }
}

/* Bytes; bits move within pairs of them, and what comes from the neighbour is for the caller to mask. */
#if defined(__AVX2__)
enum { INT8_WIDE = 32 };
#else
enum { INT8_WIDE = 16 };
#endif
typedef uint8_t  int8_bytes __attribute__((vector_size(INT8_WIDE)));
typedef uint16_t int8_pairs __attribute__((vector_size(INT8_WIDE)));
static inline int8_bytes int8_load(const uint8_t *from) {
    int8_bytes v;
    memcpy(&v, from, sizeof v);
    return v;
}
static inline void int8_store(uint8_t *to, int8_bytes v) { memcpy(to, &v, sizeof v); }
static inline int8_bytes moved_right(int8_bytes v, uint32_t by) { return (int8_bytes)((int8_pairs)v >> (uint16_t)by); }
static inline int8_bytes moved_left(int8_bytes v, uint32_t by) { return (int8_bytes)((int8_pairs)v << (uint16_t)by); }

/* The halves of 32 bytes. */
static inline void nibbles(const uint8_t *from, uint8_t *low, uint8_t *high) {
    for (uint32_t i = 0; i < 32; i += INT8_WIDE) {
        const int8_bytes v = int8_load(from + i);
        int8_store(low + i, v & 15);
        int8_store(high + i, moved_right(v, 4) & 15);
    }
}
/* The lower halves of 16 bytes, then their upper ones. */
static inline void nibbles_of_16(const uint8_t *from, uint8_t *codes) {
#if defined(__AVX2__)
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)from));
    const __m256i moved = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    int8_store(codes, (int8_bytes)moved & 15);
#else
    const int8_bytes v = int8_load(from);
    int8_store(codes, v & 15);
    int8_store(codes + 16, moved_right(v, 4) & 15);
#endif
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
    for (uint32_t i = 0; i < 32; i += INT8_WIDE)
        int8_store(codes + i, int8_load(codes + i) | moved_left(moved_right(int8_load(bits + i), right) & mask, left));
}
/* The same where these are the codes' only bits. */
static inline void all_bits(const uint8_t *bits, uint32_t right, uint8_t mask, uint8_t *codes) {
    for (uint32_t i = 0; i < 32; i += INT8_WIDE) int8_store(codes + i, moved_right(int8_load(bits + i), right) & mask);
}

/* Each of 32 codes becomes what it stands for, as a byte that `flip` is applied to and `more` added. */
static inline void look_up(const int8_t numbers[16], uint8_t flip, uint8_t more, uint8_t *codes) {
#if defined(__AVX2__)
    const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)numbers));
    const __m256i found = _mm256_shuffle_epi8(table, (__m256i)int8_load(codes));
    int8_store(codes, ((int8_bytes)found ^ flip) + more);
#else
    for (uint32_t i = 0; i < 32; i++) codes[i] = (uint8_t)(((uint8_t)numbers[codes[i]] ^ flip) + more);
#endif
}

/* ---- blocks of 32: q4_0, q4_1, q5_0, q5_1, q8_0, iq4_nl, mxfp4 ---- */

static inline __attribute__((always_inline)) void codes_of_32(uint32_t type, const uint8_t *block, uint8_t flip,
                                                              uint8_t *codes) {
    const bool has_less = type == HDI_TYPE_Q4_1 || type == HDI_TYPE_Q5_1;
    const uint8_t *bits = block + (has_less ? 4 : type == HDI_TYPE_MXFP4 ? 1 : 2);
    if (type == HDI_TYPE_Q8_0) {
        for (uint32_t i = 0; i < 32; i += INT8_WIDE) int8_store(codes + i, int8_load(block + 2 + i) ^ flip);
        return;
    }
    const bool five = type == HDI_TYPE_Q5_0 || type == HDI_TYPE_Q5_1;
    nibbles_of_16(bits + (five ? 4 : 0), codes);
    if (type == HDI_TYPE_IQ4_NL) look_up(hdcpu_numbers_iq4, flip, 0, codes);
    if (type == HDI_TYPE_MXFP4) look_up(hdcpu_numbers_mxfp4, 0, INT8_MXFP4_OFFSET, codes);
    uint32_t fifth;
    memcpy(&fifth, bits, sizeof fifth);
    if (five) fifth_bits(fifth, codes);
}
/* The f16 numbers at `bits`, so many bytes apart. */
static inline __attribute__((always_inline)) void f16_of_blocks(const uint8_t *bits, uint32_t apart, uint32_t count,
                                                                float *out) {
#if defined(__AVX2__)
    if (count == INT8_CODES / 32) {
        short n[INT8_CODES / 32];
        for (uint32_t i = 0; i < count; i++) memcpy(&n[i], bits + i * apart, sizeof n[i]);
        _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_setr_epi16(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7])));
        return;
    }
#endif
    for (uint32_t i = 0; i < count; i++) out[i] = hdcpu_f16_at(bits + i * apart);
}
static inline __attribute__((always_inline)) void codes_of_blocks(uint32_t type, const uint8_t *block, uint32_t count,
                                                                  uint8_t flip, int8_column *out) {
    const uint32_t bytes = hdcpu_block_bytes(type), blocks = count / 32;
    for (uint32_t i = 0; i < blocks; i++) codes_of_32(type, block + i * bytes, flip, out->codes + 32 * i);
    if (type == HDI_TYPE_MXFP4)
        for (uint32_t i = 0; i < blocks; i++) out->d[i] = hdcpu_mxfp4_scale(block + i * bytes);
    else f16_of_blocks(block, bytes, blocks, out->d);
    for (uint32_t i = 0; i < INT8_CODES / 32; i++) out->less[i] = 0;
    if (type != HDI_TYPE_Q4_1 && type != HDI_TYPE_Q5_1) return;
    f16_of_blocks(block + 2, bytes, blocks, out->less);
    for (uint32_t i = 0; i < blocks; i++) out->less[i] = -out->less[i];
}

/* ---- blocks of 256 ---- */

static inline void repeat_scale(float d, float less, int8_column *out) {
    for (uint32_t i = 0; i < INT8_CODES / 32; i++) out->d[i] = d;
    for (uint32_t i = 0; i < INT8_CODES / 32; i++) out->less[i] = less;
}
static inline void same_scales(int16_t scale, int16_t min, int8_column *out) {
    for (uint32_t i = 0; i < INT8_CODES / 16; i++) out->scale[i] = scale;
    for (uint32_t i = 0; i < INT8_CODES / 16; i++) out->min[i] = min;
}
/* Each of 8 bytes, twice. */
static inline void repeat_each(uint64_t bytes, int16_t *out) {
#if defined(__AVX2__)
    const __m128i once = _mm_cvtsi64_si128((long long)bytes);
    _mm256_storeu_si256((void *)out, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once)));
#else
    for (uint32_t i = 0; i < INT8_CODES / 16; i++) out[i] = bytes >> 8 * (i / 2) & 255;
#endif
}
static inline void codes_of_q4_k(const uint8_t *block, bool five, int8_column *out) {
    const uint8_t *low = block + (five ? 48 : 16);
    uint32_t words[3];
    memcpy(words, block + 4, sizeof words);
    const uint64_t scales =
        (words[0] & 0x3F3F3F3Fu) | (uint64_t)((words[2] & 0x0F0F0F0Fu) | (words[0] >> 6 & 0x03030303u) << 4) << 32;
    const uint64_t mins =
        (words[1] & 0x3F3F3F3Fu) | (uint64_t)((words[2] >> 4 & 0x0F0F0F0Fu) | (words[1] >> 6 & 0x03030303u) << 4) << 32;
    repeat_each(scales, out->scale);
    repeat_each(mins, out->min);
    repeat_scale(hdcpu_f16_at(block), hdcpu_f16_at(block + 2), out);
    for (uint32_t part = 0; part < 8; part += 2) {
        nibbles(low + 16 * part, out->codes + 32 * part, out->codes + 32 * part + 32);
        if (!five) continue;
        more_bits(block + 16, part, 1, 4, out->codes + 32 * part);
        more_bits(block + 16, part + 1, 1, 4, out->codes + 32 * part + 32);
    }
}
static inline void codes_of_q6_k(const uint8_t *block, int8_column *out) {
    for (uint32_t part = 0; part < 16; part++) out->scale[part] = (int8_t)block[192 + part];
    repeat_scale(hdcpu_f16_at(block + 208), 0.0f, out);
    for (uint32_t half = 0; half < 2; half++) {
        uint8_t *codes = out->codes + 128 * half;
        for (uint32_t i = 0; i < 2; i++) nibbles(block + 64 * half + 32 * i, codes + 32 * i, codes + 64 + 32 * i);
        for (uint32_t i = 0; i < 4; i++) more_bits(block + 128 + 32 * half, 2 * i, 3, 4, codes + 32 * i);
    }
}
static inline void codes_of_q2_k(const uint8_t *block, int8_column *out) {
    for (uint32_t part = 0; part < 16; part++) out->scale[part] = block[part] & 15;
    for (uint32_t part = 0; part < 16; part++) out->min[part] = block[part] >> 4;
    repeat_scale(hdcpu_f16_at(block + 80), hdcpu_f16_at(block + 82), out);
    for (uint32_t i = 0; i < 8; i++) all_bits(block + 16 + 32 * (i >> 2), 2 * (i & 3), 3, out->codes + 32 * i);
}
static inline void codes_of_q3_k(const uint8_t *block, int8_column *out) {
    uint8_t scales[INT8_CODES / 16]; /* 4 lower bits, then 2 upper ones of each fourth */
    for (uint32_t part = 0; part < 8; part++) scales[part] = block[96 + part] & 15;
    for (uint32_t part = 0; part < 8; part++) scales[part + 8] = block[96 + part] >> 4;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t part = 0; part < 4; part++)
            scales[4 * i + part] |= (uint8_t)((block[104 + part] >> 2 * i & 3) << 4);
    for (uint32_t part = 0; part < 16; part++) out->scale[part] = (int16_t)(scales[part] - 32);
    repeat_scale(hdcpu_f16_at(block + 108), 0.0f, out);
    for (uint32_t i = 0; i < 8; i++) {
        all_bits(block + 32 + 32 * (i >> 2), 2 * (i & 3), 3, out->codes + 32 * i);
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

static inline void codes_of_iq4_xs(const uint8_t *block, uint8_t flip, int8_column *out) {
    for (uint32_t part = 0; part < 8; part++) {
        out->scale[2 * part] = out->scale[2 * part + 1] = (int16_t)hdcpu_iq4_xs_scale(block, part);
        nibbles_of_16(block + 8 + 16 * part, out->codes + 32 * part);
        look_up(hdcpu_numbers_iq4, flip, 0, out->codes + 32 * part);
    }
    repeat_scale(hdcpu_f16_at(block), 0.0f, out);
}

/* The types with a code book. */
#if defined(__AVX2__)
HDCPU_BOOK_OF void codes_of_book(uint32_t type, const uint8_t *block, int8_column *out) {
    enum { IQ1_MORE = 135 - INT8_BOOK_OFFSET }; /* in its numbers, as one that is one more has them */
    const __m256i offset = _mm256_set1_epi8(INT8_BOOK_OFFSET), more = _mm256_set1_epi8(IQ1_MORE);
    hdcpu_book_block book;
    hdcpu_book_read(type, block, &book);
    _mm256_storeu_si256((void *)out->scale, _mm256_cvtepi8_epi16(book.scales));
    for (uint32_t part = 0; part < INT8_CODES / 32; part++) {
        const __m256i numbers = hdcpu_book_32(type, block, &book, part),
                      set = hdcpu_bytes_of_bits((uint32_t)(book.bits[part / 2] >> part % 2 * 32));
        const __m256i turned = _mm256_sub_epi8(_mm256_xor_si256(numbers, set), set),
                      less = _mm256_and_si256(set, _mm256_set1_epi8(2));
        const __m256i codes = hdcpu_book_has_signs(type) ? _mm256_add_epi8(turned, offset)
                                                         : _mm256_sub_epi8(_mm256_sub_epi8(numbers, more), less);
        _mm256_storeu_si256((void *)(out->codes + 32 * part), codes);
    }
    repeat_scale(hdcpu_book_d(type, block), 0.0f, out);
}
#else
HDCPU_BOOK_OF void codes_of_book(uint32_t type, const uint8_t *block, int8_column *out) {
    uint64_t scales[2], bits = 0;
    hdcpu_book_scales(type, block, scales);
    for (uint32_t i = 0; i < INT8_CODES / 16; i++) out->scale[i] = (int16_t)(scales[i / 8] >> 8 * (i % 8) & 255);
    for (uint32_t eighth = 0; eighth < INT8_CODES / 8; eighth++, bits >>= 8) {
        if (eighth % 8 == 0) bits = hdcpu_book_bits(type, block, eighth / 8);
        const uint64_t numbers = hdcpu_book_signed(type, hdcpu_book_numbers(type, block, eighth), bits & 255);
        const uint64_t codes = (numbers ^ HDCPU_BYTES(128)) - HDCPU_BYTES(128 - INT8_BOOK_OFFSET);
        memcpy(out->codes + 8 * eighth, &codes, sizeof codes);
    }
    repeat_scale(hdcpu_book_d(type, block), 0.0f, out);
}
#endif

/* `count` weights from a block's first on, at most INT8_CODES and whole blocks; signs of 8-bit codes are flipped by
 * `flip`. */
static inline __attribute__((always_inline)) void int8_codes(uint32_t type, const uint8_t *block, uint32_t count,
                                                             uint8_t flip, int8_column *out) {
    const bool one = type == HDI_TYPE_Q4_1 || type == HDI_TYPE_Q5_1; /* min */
    same_scales(1, one, out);
    switch (type) {
    case HDI_TYPE_Q4_K: codes_of_q4_k(block, false, out); break;
    case HDI_TYPE_Q5_K: codes_of_q4_k(block, true, out); break;
    case HDI_TYPE_Q6_K: codes_of_q6_k(block, out); break;
    case HDI_TYPE_Q2_K: codes_of_q2_k(block, out); break;
    case HDI_TYPE_Q3_K: codes_of_q3_k(block, out); break;
    case HDI_TYPE_TQ1_0:
        codes_of_tq1_0(block, out);
        repeat_scale(hdcpu_f16_at(block + 52), 0.0f, out);
        break;
    case HDI_TYPE_TQ2_0:
        for (uint32_t i = 0; i < 8; i++) all_bits(block + 32 * (i >> 2), 2 * (i & 3), 3, out->codes + 32 * i);
        repeat_scale(hdcpu_f16_at(block + 64), 0.0f, out);
        break;
    case HDI_TYPE_IQ4_XS: codes_of_iq4_xs(block, flip, out); break;
    case HDI_TYPE_IQ2_XXS: codes_of_book(HDI_TYPE_IQ2_XXS, block, out); break;
    case HDI_TYPE_IQ2_XS:  codes_of_book(HDI_TYPE_IQ2_XS, block, out); break;
    case HDI_TYPE_IQ2_S:   codes_of_book(HDI_TYPE_IQ2_S, block, out); break;
    case HDI_TYPE_IQ3_XXS: codes_of_book(HDI_TYPE_IQ3_XXS, block, out); break;
    case HDI_TYPE_IQ3_S:   codes_of_book(HDI_TYPE_IQ3_S, block, out); break;
    case HDI_TYPE_IQ1_S:   codes_of_book(HDI_TYPE_IQ1_S, block, out); break;
    case HDI_TYPE_IQ1_M:   codes_of_book(HDI_TYPE_IQ1_M, block, out); break;
    case HDI_TYPE_Q4_0:   codes_of_blocks(HDI_TYPE_Q4_0, block, count, flip, out); break;
    case HDI_TYPE_Q4_1:   codes_of_blocks(HDI_TYPE_Q4_1, block, count, flip, out); break;
    case HDI_TYPE_Q5_0:   codes_of_blocks(HDI_TYPE_Q5_0, block, count, flip, out); break;
    case HDI_TYPE_Q5_1:   codes_of_blocks(HDI_TYPE_Q5_1, block, count, flip, out); break;
    case HDI_TYPE_Q8_0:   codes_of_blocks(HDI_TYPE_Q8_0, block, count, flip, out); break;
    case HDI_TYPE_IQ4_NL: codes_of_blocks(HDI_TYPE_IQ4_NL, block, count, flip, out); break;
    default:              codes_of_blocks(HDI_TYPE_MXFP4, block, count, flip, out);
    }
}
#endif
