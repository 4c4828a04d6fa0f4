/* words.h: squares of 16 x 16 words of 32 bits, turned. */
#ifndef HDCPU_WORDS_H
#define HDCPU_WORDS_H

#include <stddef.h>
#include <stdint.h>
#if defined(__AVX2__)
#  include <immintrin.h>
#endif

/* out[j * out_stride + i] = in[i * in_stride + j] for 16 x 16 words. */
static inline void transpose_words(const uint32_t *in, size_t in_stride, uint32_t *out, size_t out_stride) {
#if HDCPU_LEVEL >= 2
    __m512i r[16], t[16];
    for (size_t i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(in + i * in_stride);
    for (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 16; i += 4)
        for (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
    for (size_t j = 0; j < 4; j++) { /* r[4 g + j] has, in quarter q, column 4 q + j of rows 4 g .. 4 g + 3 */
        const __m512i even0 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                      odd0 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xDD);
        const __m512i even1 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                      odd1 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xDD);
        _mm512_storeu_si512(out + j * out_stride, _mm512_shuffle_i32x4(even0, even1, 0x88));
        _mm512_storeu_si512(out + (4 + j) * out_stride, _mm512_shuffle_i32x4(odd0, odd1, 0x88));
        _mm512_storeu_si512(out + (8 + j) * out_stride, _mm512_shuffle_i32x4(even0, even1, 0xDD));
        _mm512_storeu_si512(out + (12 + j) * out_stride, _mm512_shuffle_i32x4(odd0, odd1, 0xDD));
    }
#elif HDCPU_LEVEL == 1
    for (size_t square = 0; square < 4; square++) { /* of 8 x 8 words */
        const uint32_t *from = in + square / 2 * 8 * in_stride + square % 2 * 8;
        uint32_t *to = out + square % 2 * 8 * out_stride + square / 2 * 8;
        __m256i r[8], t[8];
        for (size_t i = 0; i < 8; i++) r[i] = _mm256_loadu_si256((const void *)(from + i * in_stride));
        for (size_t i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
        }
        for (size_t i = 0; i < 8; i += 4)
            for (size_t j = 0; j < 2; j++) {
                r[i + 2 * j] = _mm256_unpacklo_epi64(t[i + j], t[i + j + 2]);
                r[i + 2 * j + 1] = _mm256_unpackhi_epi64(t[i + j], t[i + j + 2]);
            }
        for (size_t j = 0; j < 4; j++) { /* r[4 g + j] has, in half h, column 4 h + j of rows 4 g .. 4 g + 3 */
            _mm256_storeu_si256((void *)(to + j * out_stride), _mm256_permute2x128_si256(r[j], r[4 + j], 0x20));
            _mm256_storeu_si256((void *)(to + (4 + j) * out_stride), _mm256_permute2x128_si256(r[j], r[4 + j], 0x31));
        }
    }
#else
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++) out[j * out_stride + i] = in[i * in_stride + j];
#endif
}
#endif
