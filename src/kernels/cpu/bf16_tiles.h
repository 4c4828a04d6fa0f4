/* bf16_tiles.h: tiles of 16 x 32 bf16 values, the shape that AMX multiplies. One holds 16 columns of B, each a row of
 * 32 values along K, or 16 rows of A with pairs of neighbours along K side by side: pair p of row m is word 16 p +
 * m. */
#ifndef HDCPU_BF16_TILES_H
#define HDCPU_BF16_TILES_H

#include "kernels/cpu/quant.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/words.h"

#ifdef __AMX_TILE__
#  include <immintrin.h>
#endif

enum { TILE_LINES = 16, TILE_DEPTH = 32, TILE_WORDS = TILE_LINES * TILE_DEPTH / 2, PAIR_WORDS = 2 * TILE_WORDS };

#ifdef __AMX_TILE__
/* All eight registers hold whole tiles. */
static inline void bf16_begin_tiles(void) {
    struct { uint8_t palette, start_row, reserved[14]; uint16_t column_bytes[16]; uint8_t rows[16];
             } config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        config.column_bytes[i] = 64;
        config.rows[i] = 16;
    }
    _tile_loadconfig(&config);
}
static inline void bf16_end_tiles(void) { _tile_release(); }
#endif

/* 32 values along K, rounded, as 16 words. */
static inline void bf16_words(const float *from, uint32_t *out) {
#if HDCPU_LEVEL >= 3
    _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from)));
#else
    for (uint32_t i = 0; i < TILE_LINES; i++)
        out[i] = exact_f32_to_bf16(from[2 * i]) | exact_f32_to_bf16(from[2 * i + 1]) << 16;
#endif
}
#endif
