/* random.h: random numbers for the inputs of benchmarks, the same ones in every run. */
#ifndef HEDDLE_BENCH_RANDOM_H
#define HEDDLE_BENCH_RANDOM_H
#include <stdint.h>

/* The upper bits are the good ones: the lower ones repeat soon, the lowest every second word. */
static inline uint32_t random_word(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }
/* `limit` is at most 2^24. */
static inline uint32_t random_below(uint32_t *seed, uint32_t limit) { return (random_word(seed) >> 8) % limit; }
/* In [-1, 1): of 24 bits, as a float holds, so that none is rounded up to 1. */
static inline float random_float(uint32_t *seed) { return (float)(random_word(seed) >> 8) * 0x1p-23f - 1.0f; }

/* Random bytes, but every second one, the upper half of a 16-bit word, has only bits of `upper`: any word of a block
 * may be its scale. With SMALL_F16 words are below 2^-3 in size as f16, with SMALL_BF16 as bf16; 0xFF allows all. */
enum { SMALL_F16 = 0xAF, SMALL_BF16 = 0xBD };
static inline void random_blocks(uint32_t *seed, uint8_t *blocks, uint64_t bytes, uint8_t upper) {
    for (uint64_t i = 0; i < bytes; i++) blocks[i] = (uint8_t)(random_word(seed) >> 24 & (i % 2 ? upper : 0xFFu));
}
#endif
