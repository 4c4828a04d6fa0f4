/* half.h: rows of f16 as the bits of f32 and back, eight at a time where the processor converts them. It keeps what of
 * a NaN exact.h does not, so groups with a NaN take the plain way. */
#ifndef HDCPU_HALF_H
#define HDCPU_HALF_H

#include "kernels/exact.h"
#include <stddef.h>
#if defined(__F16C__)
#  include <immintrin.h>
#endif

static inline uint32_t half_to_bits(uint32_t h) {
    const uint32_t exponent = h & 0x7C00u, fraction = (h & 0x3FFu) << 13;
    const uint32_t small = exact_bits(exact_from_bits(0x38800000u | fraction) - 6.103515625e-5f);
    const uint32_t normal = ((exponent << 13) + 0x38000000u) | fraction;
    const uint32_t r = exponent == 0 ? small : exponent == 0x7C00u ? EXACT_INF | fraction : normal;
    return r | (h & 0x8000u) << 16;
}

static inline uint16_t half_of_bits(uint32_t f) {
    const uint32_t a = f & ~EXACT_SIGN;
    const uint32_t small = exact_bits(exact_from_bits(a) + 0.5f) - 0x3F000000u;
    const uint32_t normal = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;
    const uint32_t r = a < 0x38800000u ? small : a < 0x477FF000u ? normal : a > EXACT_INF ? 0x7E00u : 0x7C00u;
    return (uint16_t)(r | (f >> 16 & 0x8000u));
}

#if defined(__F16C__)
enum { HALVES = 8 };
static inline __m256 halves_at(const uint16_t *from) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}
static inline __m128i halves_of(__m256 values) {
    return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline __m256 halves_bits(const uint32_t *bits) {
    return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)bits));
}
static inline int halves_with_nan(__m256 values) {
    return _mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}
#endif

static inline void half_row_load(const uint16_t *from, size_t count, uint32_t *row) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + HALVES <= count; i += HALVES) {
        const __m256 values = halves_at(from + i);
        if (!halves_with_nan(values)) _mm256_storeu_si256((__m256i *)(void *)(row + i), _mm256_castps_si256(values));
        else for (size_t k = i; k < i + HALVES; k++) row[k] = half_to_bits(from[k]);
    }
#endif
    for (; i < count; i++) row[i] = half_to_bits(from[i]);
}

static inline void half_row_store(const uint32_t *row, size_t count, uint16_t *to) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + HALVES <= count; i += HALVES) {
        const __m256 values = halves_bits(row + i);
        if (!halves_with_nan(values)) _mm_storeu_si128((__m128i *)(void *)(to + i), halves_of(values));
        else for (size_t k = i; k < i + HALVES; k++) to[k] = half_of_bits(row[k]);
    }
#endif
    for (; i < count; i++) to[i] = half_of_bits(row[i]);
}

/* Rounds to values that f16 has. */
static inline void half_row_round(uint32_t *row, size_t count) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + HALVES <= count; i += HALVES) {
        const __m256 values = halves_bits(row + i);
        if (!halves_with_nan(values))
            _mm256_storeu_si256((__m256i *)(void *)(row + i), _mm256_castps_si256(_mm256_cvtph_ps(halves_of(values))));
        else for (size_t k = i; k < i + HALVES; k++) row[k] = half_to_bits(half_of_bits(row[k]));
    }
#endif
    for (; i < count; i++) row[i] = half_to_bits(half_of_bits(row[i]));
}
#endif
