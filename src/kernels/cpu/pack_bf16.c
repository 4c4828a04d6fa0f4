/* pack_bf16.c: A's rows as bf16 tiles for matmul_amx: [batch][rows / 16][K / 32] of them, rows filled up with zeros to a
 * multiple of 32 and K to one of 32. A group packs 16 rows. */
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/matmul.h"

HDCPU_KERNEL(pack_bf16) {
    (void)group_y;
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t tiles = hdcpu_amx_depth_tiles(p.k), m0 = group_x * TILE_LINES;
    if (m0 >= hdcpu_amx_rows(p.m)) return;
    uint32_t *out = (uint32_t *)call->bindings[1] + ((uint64_t)group_z * (hdcpu_amx_rows(p.m) / TILE_LINES) + group_x) * tiles * TILE_WORDS;
    for (uint32_t t = 0; t < tiles; t++, out += TILE_WORDS) {
        const uint32_t depth = HDI_MIN(p.k - t * TILE_DEPTH, (uint32_t)TILE_DEPTH);
        uint32_t rows[TILE_LINES][TILE_LINES];
        for (uint32_t i = 0; i < TILE_LINES; i++) {
            float values[TILE_DEPTH] = { 0 };
            if (m0 + i < p.m)
                hdcpu_gather(p.a_type, p.a, p.a_first + (m0 + i) * p.a_row + (uint64_t)t * TILE_DEPTH * p.a_col, p.a_col, depth, values);
            bf16_words(values, rows[i]);
        }
        transpose_words(rows[0], TILE_LINES, out, TILE_LINES);
    }
}
