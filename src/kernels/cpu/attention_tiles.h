/* attention_tiles.h: products over tiles of 32 rows that lie side by side in vectors, for attention and its
 * gradient. */
#ifndef HDCPU_ATTENTION_TILES_H
#define HDCPU_ATTENTION_TILES_H

#include "kernels/cpu/bf16_tiles.h"

#define TILE HDI_ATTENTION_TILE

/* sums[i] += a * b[i] for 32 neighbours: a row of a tile either way. */
static inline void add_products(float a, const float *b, float *sums) {
    for (uint32_t i = 0; i < 32; i++) sums[i] += a * b[i];
}

/* ---- fast ---- */

#if HDCPU_LEVEL >= 2
enum { VECTOR = 16, AT_ONCE = 8 };
#elif HDCPU_LEVEL == 1
enum { VECTOR = 8, AT_ONCE = 2 };
#else
enum { VECTOR = 4, AT_ONCE = 1 };
#endif
enum { VECTORS = 32 / VECTOR };
typedef float vector __attribute__((vector_size(4 * VECTOR)));

/* out = out * scales[row] + a x b, 32 columns wide, for `rows` rows, known when this is compiled. */
static inline __attribute__((always_inline)) void multiply(const uint32_t rows, uint32_t depth, const float *a,
                                                           size_t a_stride, const float *b, size_t b_stride,
                                                           const float *scales, float *out, size_t out_stride) {
    vector sums[AT_ONCE][VECTORS];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < VECTORS; v++) {
            memcpy(&sums[r][v], out + r * out_stride + v * VECTOR, sizeof(vector));
            sums[r][v] *= scales[r];
        }
    for (uint32_t i = 0; i < depth; i++, b += b_stride)
        for (uint32_t v = 0; v < VECTORS; v++) {
            vector line;
            memcpy(&line, b + v * VECTOR, sizeof line);
            for (uint32_t r = 0; r < rows; r++)
#if HDCPU_LEVEL >= 2
                sums[r][v] =
                    (vector)_mm512_fmadd_ps(_mm512_set1_ps(a[r * a_stride + i]), (__m512)line, (__m512)sums[r][v]);
#elif HDCPU_LEVEL == 1
                sums[r][v] =
                    (vector)_mm256_fmadd_ps(_mm256_set1_ps(a[r * a_stride + i]), (__m256)line, (__m256)sums[r][v]);
#else
                sums[r][v] += a[r * a_stride + i] * line;
#endif
        }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < VECTORS; v++) memcpy(out + r * out_stride + v * VECTOR, &sums[r][v], sizeof(vector));
}
#endif
