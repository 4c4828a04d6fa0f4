/* pack_bf16.c: A's rows as bf16 tiles for matmul_amx, in the order in which it reads them: [batch][block of K][rows /
 * 32] [K / 32 of the block][2] of them, rows filled up with zeros to a multiple of 32 and K to one of 32. A group packs
 * 16 rows. */
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/matmul.h"

HDCPU_KERNEL(pack_bf16) {
    (void)group_y;
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t m0 = group_x * TILE_LINES;
    if (m0 >= hdcpu_amx_rows(p.m)) return;
    uint32_t *all = (uint32_t *)call->bindings[1] +
                    hdcpu_packed_at(&p, hdcpu_amx_rows(p.m)) * hdcpu_amx_depth_tiles(p.k) * TILE_LINES;
    for (uint32_t k = 0; k < p.k; k += TILE_DEPTH) {
        const uint32_t depth = HDI_MIN(p.k - k, (uint32_t)TILE_DEPTH), k0 = k / HDCPU_AMX_DEPTH * HDCPU_AMX_DEPTH;
        uint32_t *out = all + hdcpu_amx_packed_at(p.m, p.k, m0 / 32 * 32, k0) + (k - k0) / TILE_DEPTH * PAIR_WORDS +
                        m0 % 32 / TILE_LINES * TILE_WORDS;
        uint32_t rows[TILE_LINES][TILE_LINES];
        for (uint32_t i = 0; i < TILE_LINES; i++) {
            float values[TILE_DEPTH] = { 0 };
            if (m0 + i < p.m)
                hdcpu_gather(p.a_type, p.a, hdcpu_a_at(&p, m0 + i) + k * p.a_col, p.a_col, depth, values);
            bf16_words(values, rows[i]);
        }
        transpose_words(rows[0], TILE_LINES, out, TILE_LINES);
    }
}
