/* quantise.h: floats as blocks of each quantised type. Without weights codes are those that GGUF's own tools choose, to
 * the byte. One block each; all arithmetic is in the order that is written. */
#ifndef HDI_KERNELS_QUANTISE_H
#define HDI_KERNELS_QUANTISE_H

#include "base/base.h"
#include "kernels/exact.h"
#include "kernels/abi.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Writes the block of these values. */
typedef void (*hdi_block_writer)(const float *x, uint8_t *out);

/* Blocks of 32, and of few codes (quantise_small.c); of 256 with parts (quantise_parts.c); of numbers
 * (quantise_numbers.c). */
void hdi_quantise_q4_0(const float *x, uint8_t *out);
void hdi_quantise_q4_1(const float *x, uint8_t *out);
void hdi_quantise_q5_0(const float *x, uint8_t *out);
void hdi_quantise_q5_1(const float *x, uint8_t *out);
void hdi_quantise_q8_0(const float *x, uint8_t *out);
void hdi_quantise_tq1_0(const float *x, uint8_t *out);
void hdi_quantise_tq2_0(const float *x, uint8_t *out);
void hdi_quantise_q2_k(const float *x, uint8_t *out);
void hdi_quantise_q3_k(const float *x, uint8_t *out);
void hdi_quantise_q4_k(const float *x, uint8_t *out);
void hdi_quantise_q5_k(const float *x, uint8_t *out);
void hdi_quantise_q6_k(const float *x, uint8_t *out);
void hdi_quantise_iq4_nl(const float *x, uint8_t *out);
void hdi_quantise_iq4_xs(const float *x, uint8_t *out);
void hdi_quantise_mxfp4(const float *x, uint8_t *out);

/* The block for which the sum of weights times squares of errors is small (quantise_weighted.c). False: of that type
 * blocks are written without weights. */
bool hdi_quantise_weighted(hd_dtype dtype, const float *x, const float *weights, uint8_t *out);

/* The same for types with a code book (quantise_books.c). */
void hdi_quantise_book(hd_dtype dtype, const float *x, const float *weights, uint8_t *out);

/* Below this size all values of a part count as 0. */
#define QUANTISE_TINY 1e-15f

static inline void quantise_put_half(float value, uint8_t *out) {
    const uint32_t bits = exact_f32_to_f16(value);
    out[0] = (uint8_t)(bits & 255);
    out[1] = (uint8_t)(bits >> 8);
}
static inline float quantise_half(const uint8_t *at) {
    return exact_f16_to_f32((uint32_t)at[0] | (uint32_t)at[1] << 8);
}

static inline float quantise_rounded(float value) { return exact_f16_to_f32(exact_f32_to_f16(value)); }

/* The nearest whole number, of two the even one; for sizes below 2^22. */
static inline int quantise_nearest(float value) {
    const float moved = value + 12582912.f;
    int bits;
    memcpy(&bits, &moved, sizeof bits);
    return (bits & 0x007FFFFF) - 0x00400000;
}
static inline int quantise_within(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

/* The value of the largest size, of equal ones the first. */
static inline float quantise_largest(const float *x, int n) {
    float size = 0, largest = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > size) size = fabsf(x[i]), largest = x[i];
    return largest;
}

#endif
