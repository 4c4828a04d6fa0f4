/* fast.h: the costly functions of language models as fast mode computes them, as glsl/fast.glsl on a GPU: with less
 * care for the last bits, within the bounds of op_table.inc. No branch: loops over them become vector code. */
#ifndef HDCPU_FAST_H
#define HDCPU_FAST_H

#include "kernels/exact.h"

/* m * 2^k for |k| < 250, in two halves so that neither power leaves the normal range. */
static inline float fast_scale(float m, int32_t k) {
    const int32_t half = k >> 1;
    return m * exact_from_bits((uint32_t)(127 + half) << 23) * exact_from_bits((uint32_t)(127 + k - half) << 23);
}
static inline float fast_exp(float x) {
    const exact_power w = exact_exp_parts(x, 0.0f);
    return exact_is_nan(x) ? x : fast_scale(1.0f + w.more, w.k);
}
/* x / (1 + exp(-h)), x and h of the same sign or x positive. */
static inline float fast_gate(float x, float h) {
    const bool below = h < 0.0f;
    const exact_power w = exact_exp_parts(below ? h : -h, 0.0f);
    const float m = 1.0f + w.more, power = fast_scale(m, w.k), q = 1.0f / (1.0f + power);
    const float y = below ? fast_scale((x > -126.0f ? x : -126.0f) * m * q, w.k) : x * q;
    return exact_is_nan(h) ? h : y;
}
/* erfc by Abramowitz and Stegun, 7.1.26: within 1.5e-7. */
static inline float fast_gelu(float x) {
    const float magnitude = x < 0.0f ? -x : x, a = magnitude < 16.0f ? magnitude : 16.0f, z = a * 0.70710678f;
    const float t = 1.0f / (1.0f + 0.3275911f * z);
    const float erfc = t *
                       (0.254829592f + t *
                        (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) * 0.5f *
                       fast_exp(-z * z);
    const float y = x < 0.0f ? -a * erfc : x * (1.0f - erfc);
    return exact_is_nan(x) ? x : y;
}
static inline float fast_gelu_tanh(float x) { return fast_gate(x, x * (1.59576912f + 0.0713548163f * x * x)); }
#endif
