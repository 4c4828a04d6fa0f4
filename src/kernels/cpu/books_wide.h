/* books_wide.h: blocks of the types with a code book (books.h) for levels with vectors: all that a block says of its
 * codes is taken apart in a few steps, and what is left for each code is to look up its entry. */
#ifndef HDCPU_BOOKS_WIDE_H
#define HDCPU_BOOKS_WIDE_H

#include "kernels/cpu/books.h"

#if defined(__AVX2__)
#include <immintrin.h>

/* A block: whole scales of 16 weights each, a byte each; a bit for each weight (hdcpu_book_bits); and, in types whose
 * codes have their upper bits elsewhere, where in the book the entry of each 8 weights is, in iq3_s of each 4. */
typedef struct hdcpu_book_block {
    __m128i  scales;
    uint64_t bits[4];
    uint16_t places[64];
} hdcpu_book_block;

/* Bytes of ones for bits. */
static inline __m256i hdcpu_bytes_of_bits(uint32_t bits) {
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i each = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i own = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), bytes);
    return _mm256_cmpeq_epi8(_mm256_and_si256(own, each), each);
}
/* 7 signs of each byte, and the eighth that makes the negative ones an even number. */
static inline __m256i hdcpu_even_bytes(__m256i sevens) {
    const char one = (char)0x80;
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, one, one, 0, one, 0, 0, one, one, 0, 0, one, 0, one, one, 0));
    const __m256i halves = _mm256_xor_si256(sevens, _mm256_srli_epi16(sevens, 4));
    return _mm256_or_si256(sevens, _mm256_shuffle_epi8(odd, _mm256_and_si256(halves, _mm256_set1_epi8(15))));
}
/* Of each word four times so many bits, a byte each. */
static inline __attribute__((always_inline)) __m256i hdcpu_fields_apart(__m256i words, const int bits) {
    const int mask = (1 << bits) - 1;
    const __m256i first = _mm256_and_si256(words, _mm256_set1_epi32(mask)),
                  second = _mm256_and_si256(_mm256_slli_epi32(words, 8 - bits), _mm256_set1_epi32(mask << 8)),
                  third = _mm256_and_si256(_mm256_slli_epi32(words, 16 - 2 * bits), _mm256_set1_epi32(mask << 16)),
                  fourth = _mm256_and_si256(_mm256_slli_epi32(words, 24 - 3 * bits), _mm256_set1_epi32(mask << 24));
    return _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth));
}
/* Four times 7 bits of each word, then its upper 4, a byte each: signs and, twice each, scales of iq2_xxs, iq3_xxs. */
static inline void hdcpu_book_words(__m256i words, hdcpu_book_block *out) {
    _mm256_storeu_si256((void *)out->bits, hdcpu_even_bytes(hdcpu_fields_apart(words, 7)));
    const __m256i twice = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 4, 4, 8, 8, 12, 12, 0, 0, 4, 4, 8, 8, 12, 12));
    const __m256i four = _mm256_shuffle_epi8(_mm256_srli_epi32(words, 28), twice);
    out->scales = _mm_unpacklo_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
}
/* The lower half of each byte, then its upper one. */
static inline __m128i hdcpu_halves_of(__m128i bytes) {
    const __m128i half = _mm_set1_epi8(15);
    return _mm_unpacklo_epi8(_mm_and_si128(bytes, half), _mm_and_si128(_mm_srli_epi16(bytes, 4), half));
}
/* Places of 32 codes, from their lower bytes and their upper ones. */
static inline void hdcpu_book_places(const uint8_t *low, __m256i high, uint16_t *places) {
    for (int i = 0; i < 2; i++) {
        const __m128i lower = _mm_loadu_si128((const void *)(low + 16 * i)),
                      upper = i == 0 ? _mm256_castsi256_si128(high) : _mm256_extracti128_si256(high, 1);
        _mm_storeu_si128((void *)(places + 16 * i), _mm_unpacklo_epi8(lower, upper));
        _mm_storeu_si128((void *)(places + 16 * i + 8), _mm_unpackhi_epi8(lower, upper));
    }
}

HDCPU_BOOK_OF void hdcpu_book_read(const uint32_t type, const uint8_t *block, hdcpu_book_block *out) {
    switch (type) {
    case HDI_TYPE_IQ2_XXS: {
        const __m256 low = _mm256_loadu_ps((const void *)(block + 2)),
                     high = _mm256_loadu_ps((const void *)(block + 34));
        const __m256i words = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xDD));
        hdcpu_book_words(_mm256_permute4x64_epi64(words, 0xD8), out);
        break;
    }
    case HDI_TYPE_IQ3_XXS: hdcpu_book_words(_mm256_loadu_si256((const void *)(block + 66)), out); break;
    case HDI_TYPE_IQ2_XS: {
        const __m256i low = _mm256_srli_epi16(_mm256_loadu_si256((const void *)(block + 2)), 9),
                      high = _mm256_srli_epi16(_mm256_loadu_si256((const void *)(block + 34)), 9);
        const __m256i sevens = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xD8);
        _mm256_storeu_si256((void *)out->bits, hdcpu_even_bytes(sevens));
        out->scales = hdcpu_halves_of(_mm_loadl_epi64((const void *)(block + 66)));
        break;
    }
    case HDI_TYPE_IQ2_S: {
        const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(block + 66)));
        hdcpu_book_places(block + 2, hdcpu_fields_apart(words, 2), out->places);
        memcpy(out->bits, block + 34, sizeof out->bits);
        out->scales = hdcpu_halves_of(_mm_loadl_epi64((const void *)(block + 74)));
        break;
    }
    case HDI_TYPE_IQ3_S: {
        for (uint32_t i = 0; i < 2; i++) {
            const __m256i more = hdcpu_bytes_of_bits(hdcpu_word_of_4(block + 66 + 4 * i));
            hdcpu_book_places(block + 2 + 32 * i, _mm256_and_si256(more, _mm256_set1_epi8(1)), out->places + 32 * i);
        }
        memcpy(out->bits, block + 74, sizeof out->bits);
        const __m128i scales = hdcpu_halves_of(_mm_cvtsi32_si128((int)hdcpu_word_of_4(block + 106)));
        out->scales = _mm_unpacklo_epi8(scales, scales);
        break;
    }
    case HDI_TYPE_IQ1_S: {
        const __m128i parts = _mm_loadu_si128((const void *)(block + 34));
        hdcpu_book_places(block + 2, hdcpu_fields_apart(_mm256_cvtepu16_epi32(parts), 3), out->places);
        _mm256_storeu_si256((void *)out->bits, _mm256_cvtepi16_epi32(_mm_srai_epi16(parts, 15)));
        const __m128i scales = _mm_and_si128(_mm_srli_epi16(parts, 12), _mm_set1_epi16(7));
        out->scales = _mm_or_si128(scales, _mm_slli_epi16(scales, 8));
        break;
    }
    default: { /* iq1_m */
        const __m128i more = _mm_loadu_si128((const void *)(block + 32)), minus = _mm_set1_epi8(8);
        const __m128i first = hdcpu_halves_of(more), second = hdcpu_halves_of(_mm_srli_si128(more, 8));
        const __m256i halves = _mm256_set_m128i(second, first);
        hdcpu_book_places(block, _mm256_and_si256(halves, _mm256_set1_epi8(7)), out->places);
        const __m128i low = _mm_cmpeq_epi8(_mm_and_si128(first, minus), minus),
                      high = _mm_cmpeq_epi8(_mm_and_si128(second, minus), minus);
        _mm256_storeu_si256((void *)out->bits, _mm256_set_m128i(high, low));
        const __m128i words = _mm_cvtepu16_epi32(_mm_loadl_epi64((const void *)(block + 48)));
        out->scales = _mm256_castsi256_si128(hdcpu_fields_apart(_mm256_castsi128_si256(words), 3));
    }
    }
    out->scales = _mm_add_epi8(_mm_add_epi8(out->scales, out->scales), _mm_set1_epi8(1));
}

/* Numbers of 8 weights. */
HDCPU_BOOK_OF long long hdcpu_book_eight(const uint32_t type, const uint8_t *block, const hdcpu_book_block *b,
                                         uint32_t eighth) {
    if (type == HDI_TYPE_IQ2_XXS || type == HDI_TYPE_IQ2_XS) return (long long)hdcpu_book_numbers(type, block, eighth);
    return (long long)hdi_book_eights[(type == HDI_TYPE_IQ2_S ? HDI_BOOK_IQ2_S : HDI_BOOK_IQ3_XXS) + b->places[eighth]];
}
/* Numbers of 4 weights, of iq3. */
HDCPU_BOOK_OF int hdcpu_book_four(const uint32_t type, const uint8_t *block, const hdcpu_book_block *b, uint32_t i) {
    if (type == HDI_TYPE_IQ3_XXS) return (int)hdi_book_fours[block[2 + i]];
    return (int)hdi_book_fours[HDI_BOOK_IQ3_S - HDI_BOOK_IQ3_XXS + b->places[i]];
}
/* Numbers of the weights 32 * part .. as hdcpu_book_numbers has them. */
HDCPU_BOOK_OF __m256i hdcpu_book_32(const uint32_t type, const uint8_t *block, const hdcpu_book_block *b,
                                    uint32_t part) {
#define EIGHT(i) hdcpu_book_eight(type, block, b, 4 * part + (i))
#define FOUR(i)  hdcpu_book_four(type, block, b, 8 * part + (i))
    if (type == HDI_TYPE_IQ3_XXS || type == HDI_TYPE_IQ3_S)
        return _mm256_setr_epi32(FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7));
    return _mm256_setr_epi64x(EIGHT(0), EIGHT(1), EIGHT(2), EIGHT(3));
#undef EIGHT
#undef FOUR
}
#if defined(__AVX512BW__)
/* Of the weights 64 * quarter ... */
HDCPU_BOOK_OF __m512i hdcpu_book_64(const uint32_t type, const uint8_t *block, const hdcpu_book_block *b,
                                    uint32_t quarter) {
    const __m256i low = hdcpu_book_32(type, block, b, 2 * quarter),
                  high = hdcpu_book_32(type, block, b, 2 * quarter + 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
#endif
#endif
#endif
