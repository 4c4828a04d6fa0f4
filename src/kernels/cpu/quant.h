/* quant.h: elements of float and quantised tensors as f32, for CPU kernels. Values are GGUF's definition to the bit:
 * the one operation that rounds is the subtraction of types that have it (abi.h). */
#ifndef HDCPU_QUANT_H
#define HDCPU_QUANT_H

#include "kernels/cpu/books.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__) || defined(__AVX2__)
#  include <immintrin.h>
#endif

static inline float hdcpu_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float hdcpu_float_of_f16(uint16_t h) {
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7FFFu;
    if (rest >= 0x7C00u)
        return hdcpu_float_of_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13 | (rest > 0x7C00u ? 1u << 22 : 0u));
    /* Exponent and fraction in place, then the bias is made right by an exact product: subnormals come out normal. */
    const float magnitude = hdcpu_float_of_bits(rest << 13) * 0x1p112f;
    return sign ? -magnitude : magnitude;
#endif
}
static inline float hdcpu_f16_at(const uint8_t *bytes) {
    return hdcpu_float_of_f16((uint16_t)(bytes[0] | bytes[1] << 8));
}

static inline uint32_t hdcpu_block_elements(uint32_t type) {
    static const uint16_t of_type[] = {
#define BLOCK_ELEMENTS(code, elements, bytes, scale, less) [code] = elements,
        HDI_BLOCK_LIST(BLOCK_ELEMENTS)
#undef BLOCK_ELEMENTS
    };
    return of_type[type];
}
static inline uint32_t hdcpu_block_bytes(uint32_t type) {
    static const uint8_t of_type[] = {
#define BLOCK_BYTES(code, elements, bytes, scale, less) [code] = bytes,
        HDI_BLOCK_LIST(BLOCK_BYTES)
#undef BLOCK_BYTES
    };
    return of_type[type];
}

/* One block of each type. */
static inline void hdcpu_block_q4_0(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((block[2 + i] & 15) - 8);
        out[i + 16] = d * (float)((block[2 + i] >> 4) - 8);
    }
}
static inline void hdcpu_block_q8_0(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block);
    for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)block[2 + i];
}
/* The scale and min of part 0..7 of a q4_k block. */
static inline void hdcpu_q4_k_part(const uint8_t *block, int part, float *out_scale, float *out_min) {
    const uint8_t *s = block + 4;
    const int scale = part < 4 ? s[part] & 63 : (s[part + 4] & 15) | s[part - 4] >> 6 << 4;
    const int min = part < 4 ? s[part + 4] & 63 : s[part + 4] >> 4 | s[part] >> 6 << 4;
    *out_scale = hdcpu_f16_at(block) * (float)scale;
    *out_min = hdcpu_f16_at(block + 2) * (float)min;
}
#if defined(__AVX2__)
/* Those of all 8 parts. */
static inline void hdcpu_q4_k_parts(const uint8_t *block, __m256 *out_scales, __m256 *out_mins) {
    uint32_t words[3];
    memcpy(words, block + 4, sizeof words);
    const uint64_t scales =
        (words[0] & 0x3F3F3F3Fu) | (uint64_t)((words[2] & 0x0F0F0F0Fu) | (words[0] >> 6 & 0x03030303u) << 4) << 32;
    const uint64_t mins =
        (words[1] & 0x3F3F3F3Fu) | (uint64_t)((words[2] >> 4 & 0x0F0F0F0Fu) | (words[1] >> 6 & 0x03030303u) << 4) << 32;
    const __m256i scale_codes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)scales));
    const __m256i min_codes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)mins));
    *out_scales = _mm256_mul_ps(_mm256_cvtepi32_ps(scale_codes), _mm256_set1_ps(hdcpu_f16_at(block)));
    *out_mins = _mm256_mul_ps(_mm256_cvtepi32_ps(min_codes), _mm256_set1_ps(hdcpu_f16_at(block + 2)));
}
#endif
static inline void hdcpu_block_q4_k(const uint8_t *block, float *restrict out) {
    for (int part = 0; part < 8; part += 2) {
        const uint8_t *codes = block + 16 + 16 * part;
        float scale0, min0, scale1, min1;
        hdcpu_q4_k_part(block, part, &scale0, &min0);
        hdcpu_q4_k_part(block, part + 1, &scale1, &min1);
        for (int i = 0; i < 32; i++) {
            out[32 * part + i] = scale0 * (float)(codes[i] & 15) - min0;
            out[32 * part + 32 + i] = scale1 * (float)(codes[i] >> 4) - min1;
        }
    }
}
static inline void hdcpu_block_q6_k(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block + 208);
    for (int group = 0; group < 8; group++) {
        const uint8_t *low = block + 64 * (group >> 2) + 32 * (group & 1), *high = block + 128 + 32 * (group >> 2);
        const int low_shift = 4 * ((group >> 1) & 1), high_shift = 2 * (group & 3);
        for (int part = 0; part < 32; part += 16) {
            const float scale = d * (float)(int8_t)block[192 + 2 * group + part / 16];
            for (int i = part; i < part + 16; i++)
                out[32 * group + i] =
                    scale * (float)(((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4) - 32);
        }
    }
}
static inline void hdcpu_block_tq2_0(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block + 64);
    for (int group = 0; group < 8; group++)
        for (int i = 0; i < 32; i++)
            out[32 * group + i] = d * (float)((block[32 * (group >> 2) + i] >> 2 * (group & 3) & 3) - 1);
}
static inline void hdcpu_block_q4_1(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block), m = hdcpu_f16_at(block + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(block[4 + i] & 15) + m;
        out[i + 16] = d * (float)(block[4 + i] >> 4) + m;
    }
}
/* The codes of q5_0 and q5_1: a word of fifth bits, then 16 bytes of the four lower ones. */
static inline void hdcpu_codes_of_five(const uint8_t *bytes, int codes[32]) {
    const uint32_t high =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    for (int i = 0; i < 16; i++) {
        codes[i] = (bytes[4 + i] & 15) | (int)(high >> i & 1) << 4;
        codes[i + 16] = bytes[4 + i] >> 4 | (int)(high >> (i + 16) & 1) << 4;
    }
}
static inline void hdcpu_block_q5_0(const uint8_t *block, float *restrict out) {
    int codes[32];
    const float d = hdcpu_f16_at(block);
    hdcpu_codes_of_five(block + 2, codes);
    for (int i = 0; i < 32; i++) out[i] = d * (float)(codes[i] - 16);
}
static inline void hdcpu_block_q5_1(const uint8_t *block, float *restrict out) {
    int codes[32];
    const float d = hdcpu_f16_at(block), m = hdcpu_f16_at(block + 2);
    hdcpu_codes_of_five(block + 4, codes);
    for (int i = 0; i < 32; i++) out[i] = d * (float)codes[i] + m;
}
/* The scale and min of part 0..15 of a q2_k block. */
static inline void hdcpu_q2_k_part(const uint8_t *block, uint32_t part, float *out_scale, float *out_min) {
    *out_scale = hdcpu_f16_at(block + 80) * (float)(block[part] & 15);
    *out_min = hdcpu_f16_at(block + 82) * (float)(block[part] >> 4);
}
static inline void hdcpu_block_q2_k(const uint8_t *block, float *restrict out) {
    for (uint32_t part = 0; part < 16; part++) {
        const uint8_t *codes = block + 16 + 32 * (part >> 3) + 16 * (part & 1);
        const uint32_t shift = 2 * (part >> 1 & 3);
        float scale, min;
        hdcpu_q2_k_part(block, part, &scale, &min);
        for (uint32_t i = 0; i < 16; i++) out[16 * part + i] = scale * (float)(codes[i] >> shift & 3) - min;
    }
}
/* The scale of part 0..15 of a q3_k block. */
static inline float hdcpu_q3_k_part(const uint8_t *block, uint32_t part) {
    const int low = block[96 + (part & 7)] >> 4 * (part >> 3) & 15,
              high = block[104 + (part & 3)] >> 2 * (part >> 2) & 3;
    return hdcpu_f16_at(block + 108) * (float)((low | high << 4) - 32);
}
static inline void hdcpu_block_q3_k(const uint8_t *block, float *restrict out) {
    for (uint32_t part = 0; part < 16; part++) {
        const uint8_t *high = block + 16 * (part & 1), *low = block + 32 + 32 * (part >> 3) + 16 * (part & 1);
        const uint32_t shift = 2 * (part >> 1 & 3), bit = part >> 1;
        const float scale = hdcpu_q3_k_part(block, part);
        for (uint32_t i = 0; i < 16; i++)
            out[16 * part + i] = scale * (float)(((low[i] >> shift & 3) | (high[i] >> bit & 1) << 2) - 4);
    }
}
static inline void hdcpu_block_q5_k(const uint8_t *block, float *restrict out) {
    const uint8_t *high = block + 16; /* scales and mins lie as in q4_k */
    for (int part = 0; part < 8; part += 2) {
        const uint8_t *low = block + 48 + 16 * part;
        float scale0, min0, scale1, min1;
        hdcpu_q4_k_part(block, part, &scale0, &min0);
        hdcpu_q4_k_part(block, part + 1, &scale1, &min1);
        for (int i = 0; i < 32; i++) {
            out[32 * part + i] = scale0 * (float)((low[i] & 15) | (high[i] >> part & 1) << 4) - min0;
            out[32 * part + 32 + i] = scale1 * (float)(low[i] >> 4 | (high[i] >> (part + 1) & 1) << 4) - min1;
        }
    }
}
/* Codes of tq1_0. A byte is a fraction of 256 in base 3: times 3^n without what overflows, its first digit is code n.
 * Here from `bytes` neighbouring bytes, first the codes 0 of all, then the codes 1, ... */
static inline void hdcpu_tq1_0_codes(const uint8_t *from, uint32_t bytes, uint32_t digits, float *restrict out) {
    uint32_t power = 1;
    for (uint32_t digit = 0; digit < digits; digit++, power *= 3)
        for (uint32_t i = 0; i < bytes; i++) *out++ = (float)((int)((from[i] * power & 255) * 3 >> 8) - 1);
}
static inline void hdcpu_tq1_0_last(const uint8_t *block, float *restrict out) {
    hdcpu_tq1_0_codes(block + 48, 4, 4, out);
}
static inline void hdcpu_block_tq1_0(const uint8_t *block, float *restrict out) {
    const float d = hdcpu_f16_at(block + 52);
    hdcpu_tq1_0_codes(block, 32, 5, out);
    hdcpu_tq1_0_codes(block + 32, 16, 5, out + 160);
    hdcpu_tq1_0_last(block, out + 240);
    for (int i = 0; i < 256; i++) out[i] *= d;
}
/* Codes of 4 bits, the lower halves of 16 bytes and then the upper ones, as the numbers they stand for. */
static inline void hdcpu_block_numbers(const int8_t numbers[16], const uint8_t *codes, float scale,
                                       float *restrict out) {
    int8_t found[32];
#if defined(__AVX2__)
    const __m128i table = _mm_loadu_si128((const void *)numbers), both = _mm_loadu_si128((const void *)codes);
    const __m128i half = _mm_set1_epi8(15), high = _mm_and_si128(_mm_srli_epi16(both, 4), half);
    _mm_storeu_si128((void *)found, _mm_shuffle_epi8(table, _mm_and_si128(both, half)));
    _mm_storeu_si128((void *)(found + 16), _mm_shuffle_epi8(table, high));
#else
    for (int i = 0; i < 16; i++) {
        found[i] = numbers[codes[i] & 15];
        found[i + 16] = numbers[codes[i] >> 4];
    }
#endif
    for (int i = 0; i < 32; i++) out[i] = scale * (float)found[i];
}
#define HDCPU_NUMBERS(...) { __VA_ARGS__ }
static const int8_t hdcpu_numbers_iq4[16] = HDI_CODES_IQ4(HDCPU_NUMBERS),
                    hdcpu_numbers_mxfp4[16] = HDI_CODES_MXFP4(HDCPU_NUMBERS);
#undef HDCPU_NUMBERS
static inline void hdcpu_block_iq4_nl(const uint8_t *block, float *restrict out) {
    hdcpu_block_numbers(hdcpu_numbers_iq4, block + 2, hdcpu_f16_at(block), out);
}
static inline int hdcpu_iq4_xs_scale(const uint8_t *block, uint32_t part) {
    const int low = block[4 + part / 2] >> 4 * (part & 1) & 15, high = block[2 + part / 4] >> 2 * (part & 3) & 3;
    return (low | high << 4) - 32;
}
static inline void hdcpu_block_iq4_xs(const uint8_t *block, float *restrict out) {
    for (uint32_t part = 0; part < 8; part++) {
        const float scale = hdcpu_f16_at(block) * (float)hdcpu_iq4_xs_scale(block, part);
        hdcpu_block_numbers(hdcpu_numbers_iq4, block + 8 + 16 * part, scale, out + 32 * part);
    }
}
/* A power of two, of which exponent 128 is none. */
static inline float hdcpu_mxfp4_scale(const uint8_t *block) {
    const uint32_t exponent = block[0];
    return hdcpu_float_of_bits(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}
static inline void hdcpu_block_mxfp4(const uint8_t *block, float *restrict out) {
    hdcpu_block_numbers(hdcpu_numbers_mxfp4, block + 1, hdcpu_mxfp4_scale(block), out);
}
/* The types with a code book. */
static inline float hdcpu_book_d(uint32_t type, const uint8_t *block) {
    return hdcpu_float_of_f16(hdcpu_book_half(type, block)) * hdcpu_book_unit(type);
}
HDCPU_BOOK_OF void hdcpu_floats_of_book(uint32_t type, const uint8_t *block, float *restrict out) {
    const float d = hdcpu_book_d(type, block);
    uint64_t scales[2], bits = 0;
    hdcpu_book_scales(type, block, scales);
    for (uint32_t eighth = 0; eighth < 32; eighth++, bits >>= 8, out += 8) {
        if (eighth % 8 == 0) bits = hdcpu_book_bits(type, block, eighth / 8);
        const float scale = d * (float)(scales[eighth / 16] >> 8 * (eighth / 2 % 8) & 255);
        const uint64_t eight = hdcpu_book_signed(type, hdcpu_book_numbers(type, block, eighth), bits & 255);
#if defined(__AVX2__)
        const __m256i words = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)eight));
        _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(words)));
#else
        for (uint32_t i = 0; i < 8; i++) out[i] = scale * (float)(int8_t)(eight >> 8 * i);
#endif
    }
}
#define HDCPU_BOOK_TYPES(X) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S) X(IQ1_S) X(IQ1_M)
static inline void hdcpu_block_book(uint32_t type, const uint8_t *block, float *restrict out) {
    switch (type) {
#define HDCPU_CASE(type) case HDI_TYPE_##type: hdcpu_floats_of_book(HDI_TYPE_##type, block, out); break;
    HDCPU_BOOK_TYPES(HDCPU_CASE)
#undef HDCPU_CASE
    default: break;
    }
}
static inline void hdcpu_dequantise_block(uint32_t type, const uint8_t *block, float *restrict out) {
    switch (type) {
    case HDI_TYPE_Q4_0: hdcpu_block_q4_0(block, out); break;
    case HDI_TYPE_Q8_0: hdcpu_block_q8_0(block, out); break;
    case HDI_TYPE_Q4_K: hdcpu_block_q4_k(block, out); break;
    case HDI_TYPE_Q6_K: hdcpu_block_q6_k(block, out); break;
    case HDI_TYPE_Q4_1: hdcpu_block_q4_1(block, out); break;
    case HDI_TYPE_Q5_0: hdcpu_block_q5_0(block, out); break;
    case HDI_TYPE_Q5_1: hdcpu_block_q5_1(block, out); break;
    case HDI_TYPE_Q2_K: hdcpu_block_q2_k(block, out); break;
    case HDI_TYPE_Q3_K: hdcpu_block_q3_k(block, out); break;
    case HDI_TYPE_Q5_K: hdcpu_block_q5_k(block, out); break;
    case HDI_TYPE_TQ1_0: hdcpu_block_tq1_0(block, out); break;
    case HDI_TYPE_IQ4_NL: hdcpu_block_iq4_nl(block, out); break;
    case HDI_TYPE_IQ4_XS: hdcpu_block_iq4_xs(block, out); break;
    case HDI_TYPE_MXFP4: hdcpu_block_mxfp4(block, out); break;
    case HDI_TYPE_TQ2_0: hdcpu_block_tq2_0(block, out); break;
    default:            hdcpu_block_book(type, block, out); break;
    }
}

/* `count` neighbouring elements from element `first` on, of any float or quantised type. A call: the loops of all types
 * are not for every place that reads a row. */
static __attribute__((noinline, unused)) void hdcpu_load_floats(uint32_t type, const void *data, uint64_t first,
                                                                uint64_t count, float *restrict out) {
    if (type == HDI_TYPE_F32) {
        memcpy(out, (const float *)data + first, count * sizeof *out);
    } else if (type == HDI_TYPE_F16) {
        const uint16_t *from = (const uint16_t *)data + first;
        uint64_t i = 0;
#if HDCPU_LEVEL >= 2
        for (; i + 16 <= count; i += 16)
            _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + i))));
#endif
#if defined(__F16C__)
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
        for (; i < count; i++) out[i] = hdcpu_float_of_f16(from[i]);
    } else if (type == HDI_TYPE_BF16) {
        const uint16_t *from = (const uint16_t *)data + first;
        for (uint64_t i = 0; i < count; i++) out[i] = hdcpu_float_of_bits((uint32_t)from[i] << 16);
    } else {
        const uint64_t size = hdcpu_block_elements(type);
        const uint8_t *block = (const uint8_t *)data + first / size * hdcpu_block_bytes(type);
        uint64_t skip = first % size;
        while (count > 0) {
            const uint64_t n = count < size - skip ? count : size - skip;
            if (n == size) {
                hdcpu_dequantise_block(type, block, out);
            } else { /* part of a block at either end */
                float whole[256];
                hdcpu_dequantise_block(type, block, whole);
                memcpy(out, whole + skip, n * sizeof *out);
            }
            block += hdcpu_block_bytes(type);
            out += n;
            count -= n;
            skip = 0;
        }
    }
}
/* One element. */
static inline float hdcpu_load_any(uint32_t type, const void *data, uint64_t index) {
    float value;
    hdcpu_load_floats(type, data, index, 1, &value);
    return value;
}
#endif
