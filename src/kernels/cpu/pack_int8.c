/* pack_int8.c: A's rows rounded to 8 bits for matmul_int8, once a product, in the order in which its tiles read them:
 * [batch] [vector of rows][block of K], a block as int8_tiles.h has it. Rows past the last one are zeros. A group packs
 * 16 rows. */
#include "kernels/cpu/int8_round.h"
#include "kernels/cpu/int8_tiles.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/runs.h"

/* A block of a row, at its lane of the vector's block. */
static void pack_block(const float *values, const int8_form *form, uint32_t lanes, uint32_t lane, uint8_t *out) {
    int8_t codes[INT8_BLOCK];
    const float scale = int8_round(values, codes);
    for (uint32_t i = 0; i < INT8_BLOCK; i += 4) memcpy(out + i * lanes + 4 * lane, codes + i, 4);
    out += INT8_BLOCK * lanes + 4 * lane;
    memcpy(out, &scale, sizeof scale);
    for (uint32_t run = 0, length = INT8_BLOCK / form->runs; run < form->runs; run++) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < length; i++) sum += codes[run * length + i];
        const float scaled = scale * (float)sum;
        const int32_t begin = -(int32_t)form->offset * sum;
        out += 4 * lanes;
        memcpy(out, form->has_less ? (const void *)&scaled : &begin, 4);
    }
}

/* The same in exact mode: its own rounding, and the sums of the block's halves. */
static void pack_exact(const float *values, uint32_t lanes, uint32_t lane, uint8_t *out) {
    int8_t codes[INT8_BLOCK];
    int32_t low = 0, high = 0;
    const float scale = hdcpu_round_run(values, codes);
    for (uint32_t i = 0; i < INT8_BLOCK; i += 4) memcpy(out + i * lanes + 4 * lane, codes + i, 4);
    for (uint32_t i = 0; i < INT8_BLOCK / 2; i++) low += codes[i];
    for (uint32_t i = INT8_BLOCK / 2; i < INT8_BLOCK; i++) high += codes[i];
    const uint32_t halves = ((uint32_t)low & 0xFFFFu) | (uint32_t)high << 16;
    out += INT8_BLOCK * lanes + 4 * lane;
    memcpy(out, &scale, sizeof scale);
    memcpy(out + 4 * lanes, &halves, sizeof halves);
}

HDCPU_KERNEL(pack_int8) {
    (void)group_y;
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const int8_tiles *tiles = int8_tiles_at(0);
    const int8_form form = int8_form_of(p.b_type, tiles);
    const bool exact = call->spec[HDI_SPEC_EXACT];
    const uint32_t row_sums = exact ? 1 : form.runs, blocks = p.k / INT8_BLOCK;
    const uint32_t m0 = group_x * HDCPU_INT8_LINES;
    if (m0 >= p.m) return;
    const uint64_t row_bytes = (uint64_t)blocks * HDCPU_INT8_ROW_BLOCK(row_sums);
    uint8_t *out = (uint8_t *)call->bindings[1] + hdcpu_packed_at(&p, hdcpu_int8_rows(p.m)) * row_bytes;
    for (uint32_t m = m0; m < m0 + HDCPU_INT8_LINES; m++)
        for (uint32_t block = 0; block < blocks; block++) {
            float values[INT8_BLOCK] = { 0 };
            const uint32_t place = exact ? int8_strand_order(blocks, block) : block;
            uint8_t *to = out + m / tiles->lanes * tiles->lanes * row_bytes +
                          (uint64_t)place * INT8_PACKED_BLOCK(tiles->lanes, row_sums);
            if (m < p.m)
                hdcpu_gather(p.a_type, p.a, hdcpu_a_at(&p, m) + block * INT8_BLOCK * p.a_col, p.a_col, INT8_BLOCK,
                             values);
            if (exact) pack_exact(values, tiles->lanes, m % tiles->lanes, to);
            else pack_block(values, &form, tiles->lanes, m % tiles->lanes, to);
        }
}
