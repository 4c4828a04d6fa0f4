/* random_weights.h: tensors for tests of products that are compared with each other. */
#ifndef HEDDLE_TESTS_RANDOM_WEIGHTS_H
#define HEDDLE_TESTS_RANDOM_WEIGHTS_H

#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static uint32_t seed;

static inline uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}
static inline float unit(void) { return (float)next() / (float)(1u << 23) - 1; }

/* Random weights: every block's scales are small halves, everything else is any bits. */
static inline void *weights(hd_dtype dtype, hd_shape shape) {
    static const struct { hd_dtype dtype; uint32_t bytes, at[2]; } blocks[] = {
        { HD_Q4_0, 18, { 0, 0 } }, { HD_Q8_0, 34, { 0, 0 } },     { HD_Q4_K, 144, { 0, 2 } }, { HD_Q5_K, 176, { 0, 2 } },
        { HD_Q6_K, 210, { 208, 208 } }, { HD_IQ4_NL, 18, { 0, 0 } },
    };
    const uint64_t bytes = hd_tensor_bytes(dtype, shape);
    uint8_t *out = malloc(bytes);
    assert_non_null(out);
    if (dtype == HD_F32) {
        for (uint64_t i = 0; i < bytes / 4; i++) ((float *)(void *)out)[i] = unit();
        return out;
    }
    for (uint64_t i = 0; i < bytes; i++) out[i] = (uint8_t)next();
    if (dtype == HD_F16 || dtype == HD_BF16) /* below 2 */
        for (uint64_t i = 1; i < bytes; i += 2) out[i] &= 0xBF;
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (uint64_t at = 0; blocks[b].dtype == dtype && at < bytes; at += blocks[b].bytes)
            for (int s = 0; s < 2; s++) {
                out[at + blocks[b].at[s]] = (uint8_t)next();
                out[at + blocks[b].at[s] + 1] = 0x1C;
            }
    return out;
}
#endif
