/* attention_native.h: how much scratch attention on tiles of bf16 (attention_bf16.h) takes, known to the rule that
 * launches it. */
#ifndef HDCPU_ATTENTION_NATIVE_H
#define HDCPU_ATTENTION_NATIVE_H

#include "base/base.h"

/* A bit of HDI_ATTENTION_FORM, which no GPU's kernel knows: many query rows over f16, and tiles for them. */
#define HDCPU_ATTENTION_TILES 0x100u

/* Query rows of a group at most, those of a pair of tiles, and keys between two looks at the results so far. */
enum { HDCPU_ATTENTION_ROWS = 64, HDCPU_ATTENTION_PAIR = 32, HDCPU_ATTENTION_KEYS = 128 };

static inline uint32_t hdcpu_attention_rows(uint32_t rows) {
    return (rows + HDCPU_ATTENTION_PAIR - 1u) / HDCPU_ATTENTION_PAIR * HDCPU_ATTENTION_PAIR;
}
/* Queries and results; keys and values; weights and scores; five words for each row. */
static inline uint64_t hdcpu_attention_tiles_words(uint32_t rows, uint32_t D) {
    const uint64_t whole = hdcpu_attention_rows(rows);
    return 2 * whole * D + 2 * (uint64_t)HDCPU_ATTENTION_KEYS * D + 2 * HDCPU_ATTENTION_KEYS * HDCPU_ATTENTION_PAIR +
           5 * whole;
}
#endif
