/* matmul_int8.c: a tile of C = chain(A x B) for each group, where B is quantised and its columns lie along K. A's rows
 * come in 8 bits (pack_int8.c). K is walked in blocks of 256; a panel of columns, its codes unpacked one to a byte,
 * meets all of the tile's rows, and the sums, transposed, wait in scratch (int8_tiles.h). Exact mode walks K in the
 * order of its strands: 8 of them are every other block of 256. */
#include "kernels/cpu/int8_codes.h"
#include "kernels/cpu/int8_tiles.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/places.h"
#include "kernels/cpu/words.h"

enum { PANEL = HDCPU_INT8_COLUMNS, DEPTH = HDCPU_INT8_DEPTH, LINES = HDCPU_INT8_LINES };

/* The group's part of the product, and its scratch. */
typedef struct work {
    const hdcpu_product *p;
    const int8_tiles *tiles;
    int8_form form;
    uint32_t m0, m_count, n0, n_count;
    uint32_t rows, columns;                  /* m_count and n_count in whole lines */
    const uint8_t *a, *b;                    /* the first packed row and the first column */
    uint64_t vector_bytes, column_bytes;
    uint8_t *codes;                          /* of a panel, tile by tile */
    float   *scales, *less, *line, *sums;    /* sums: [n][rows] */
    int8_facts *facts;                       /* exact mode, tile by tile */
} work;

/* Bytes of a block's codes of a column. */
static uint32_t unit_of(const work *w) { return w->form.bits == 8 && w->tiles->halves ? 2 * INT8_BLOCK : INT8_BLOCK; }

/* Column `c` of a panel, `blocks` blocks from k0 on. */
static void unpack(const work *w, uint32_t n, uint32_t c, uint32_t k0, uint32_t blocks) {
    const uint32_t type = w->p->b_type, elements = hdcpu_block_elements(type), bytes = hdcpu_block_bytes(type);
    const uint32_t columns = w->tiles->columns, unit = unit_of(w), runs = w->form.runs, tile = c / columns,
                   lane = c % columns;
    const uint8_t *from = w->b + n * w->column_bytes + (uint64_t)k0 / elements * bytes;
    int8_column column;
    const uint32_t depth_bytes = DEPTH / elements * bytes;
    /* the next group's */
    const uint8_t *next = k0 + DEPTH < w->p->k ? from + depth_bytes : w->b + (n + w->n_count) * w->column_bytes;
    hdcpu_look_ahead(next, depth_bytes + 63, 0, false);
    int8_codes(type, from, blocks * INT8_BLOCK, w->tiles->is_signed ? 0 : 0x80, &column);
    uint8_t *codes = w->codes + (tile * INT8_DEPTH_BLOCKS * columns + lane) * unit;
    for (uint32_t block = 0; block < blocks; block++, codes += columns * unit) {
        const uint8_t *of_block = column.codes + block * INT8_BLOCK;
        if (unit == INT8_BLOCK) memcpy(codes, of_block, INT8_BLOCK);
        else nibbles(of_block, codes, codes + INT8_BLOCK);
    }
    const uint32_t first = tile * INT8_DEPTH_BLOCKS * runs * columns + lane;
    for (uint32_t i = 0; i < blocks * runs; i++) {
        const uint32_t half = i * (2 / runs), block = half / 2;
        w->scales[first + i * columns] = column.d[block] * (float)column.scale[half];
        w->less[first + i * columns] = column.less[block] * (float)column.min[half];
    }
}

/* All rows times a panel of `count` columns from n on, DEPTH of K from k0 on. */
static void multiply_panel(const work *w, uint32_t n, uint32_t count, uint32_t k0) {
    const uint32_t lanes = w->tiles->lanes, columns = w->tiles->columns, per_tile = INT8_DEPTH_BLOCKS * columns,
                   runs = w->form.runs;
    int8_tile tile = { .form = w->form, .blocks = HDI_MIN(w->p->k - k0, (uint32_t)DEPTH) / INT8_BLOCK, .first = k0 == 0,
                       .vector_bytes = w->vector_bytes, .sums_stride = w->rows };
    for (uint32_t c = 0; c < count; c++) unpack(w, n + c, c, k0, tile.blocks);
    for (uint32_t m = 0; m < w->m_count; m += tile.vectors * lanes) {
        tile.vectors = w->m_count - m > (w->tiles->vectors - 1) * lanes ? w->tiles->vectors : 1;
        tile.rows = w->a + m / lanes * w->vector_bytes + (uint64_t)k0 / INT8_BLOCK * INT8_PACKED_BLOCK(lanes, runs);
        for (uint32_t c = 0; c < count; c += columns) {
            tile.codes = w->codes + c / columns * per_tile * unit_of(w);
            tile.scales = w->scales + c / columns * per_tile * runs;
            tile.less = w->less + c / columns * per_tile * runs;
            tile.sums = w->sums + (uint64_t)(n + c) * w->rows + m;
            w->tiles->sum(&tile);
        }
    }
}

/* ---- exact ---- */

static uint32_t two_halves(int low, int high) { return ((uint32_t)low & 0xFFFFu) | (uint32_t)high << 16; }

/* Column `c` of a panel, the blocks of the 8 strands from `strand` on, which begin with block `first` of all. */
static void unpack_exact(const work *w, uint32_t n, uint32_t c, uint32_t strand, uint32_t first) {
    const uint32_t type = w->p->b_type, elements = hdcpu_block_elements(type), bytes = hdcpu_block_bytes(type);
    const uint32_t columns = w->tiles->columns, unit = unit_of(w), all = w->p->k / INT8_BLOCK;
    const uint64_t tile = c / columns * hdcpu_int8_exact_blocks(w->p->k);
    for (uint32_t run = strand; run < all; run += HDI_MM_STRANDS) {
        const uint32_t count = HDI_MIN(all - run, (uint32_t)INT8_DEPTH_BLOCKS);
        const uint8_t *from = w->b + n * w->column_bytes + (uint64_t)run * INT8_BLOCK / elements * bytes;
        const uint32_t depth_bytes = 2 * DEPTH / elements * bytes;
        hdcpu_look_ahead(from, depth_bytes / 2 + 63, depth_bytes, false);
        int8_column column;
        int8_codes(type, from, count * INT8_BLOCK, w->tiles->is_signed ? 0 : 0x80, &column);
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t at = (tile + int8_strand_order(all, run + i) - first) * columns + c % columns;
            const int16_t *scale = column.scale + 2 * i, *min = column.min + 2 * i;
            const int offset = -(int)w->form.offset;
            if (unit == INT8_BLOCK) memcpy(w->codes + at * unit, column.codes + i * INT8_BLOCK, INT8_BLOCK);
            else nibbles(column.codes + i * INT8_BLOCK, w->codes + at * unit, w->codes + at * unit + INT8_BLOCK);
            w->facts[at] = (int8_facts){ column.d[i], column.less[i],
                                         { two_halves(scale[0], scale[0]), two_halves(scale[1], scale[1]) },
                                         two_halves(offset * scale[0], offset * scale[1]), two_halves(min[0], min[1]) };
        }
    }
}

/* All rows times a panel of `count` columns from n on, 8 strands of K. */
static void multiply_strands(const work *w, uint32_t n, uint32_t count, uint32_t strand) {
    const uint32_t lanes = w->tiles->lanes, columns = w->tiles->columns, all = w->p->k / INT8_BLOCK,
                   rest = all % HDI_MM_STRANDS;
    const uint32_t first = int8_strand_order(all, strand);
    const uint64_t per_tile = hdcpu_int8_exact_blocks(w->p->k) * columns;
    int8_tile tile = { .form = w->form, .blocks = all / HDI_MM_STRANDS, .longer = rest > strand ? rest - strand : 0,
                       .strands = HDI_MM_STRANDS / 2, .first = strand == 0, .vector_bytes = w->vector_bytes,
                       .sums_stride = w->rows };
    for (uint32_t c = 0; c < count; c++) unpack_exact(w, n + c, c, strand, first);
    for (uint32_t m = 0; m < w->m_count; m += tile.vectors * lanes) {
        tile.vectors = w->m_count - m > (w->tiles->vectors - 1) * lanes ? w->tiles->vectors : 1;
        tile.rows = w->a + m / lanes * w->vector_bytes + (uint64_t)first * INT8_PACKED_BLOCK(lanes, 1);
        for (uint32_t c = 0; c < count; c += columns) {
            tile.codes = w->codes + c / columns * per_tile * unit_of(w);
            tile.facts = w->facts + c / columns * per_tile;
            tile.sums = w->sums + (uint64_t)(n + c) * w->rows + m;
            w->tiles->sum_exact(&tile);
        }
    }
}

static void multiply_exact(work *w, void *scratch) {
    const uint64_t blocks = HDCPU_INT8_EXACT_COLUMNS * hdcpu_int8_exact_blocks(w->p->k);
    w->codes = scratch;
    w->facts = (int8_facts *)(void *)(w->codes + 2 * INT8_BLOCK * blocks);
    w->line = (float *)(void *)(w->facts + blocks);
    w->sums = w->line + LINES * w->columns;
    for (uint32_t strand = 0; strand < HDI_MM_STRANDS; strand += HDI_MM_STRANDS / 2)
        for (uint32_t n = 0; n < w->n_count; n += HDCPU_INT8_EXACT_COLUMNS)
            multiply_strands(w, n, HDI_MIN(w->n_count - n, (uint32_t)HDCPU_INT8_EXACT_COLUMNS), strand);
}

static void finish(const work *w) {
    for (uint32_t m = 0; m < w->m_count; m += LINES) {
        for (uint32_t n = 0; n < w->n_count; n += LINES)
            transpose_words((const uint32_t *)(const void *)(w->sums + (uint64_t)n * w->rows + m), w->rows,
                            (uint32_t *)(void *)(w->line + n), w->columns);
        for (uint32_t i = 0; i < LINES && m + i < w->m_count; i++)
            hdcpu_store_sums(w->p, w->m0 + m + i, w->n0, w->n_count, w->line + i * w->columns);
    }
}

HDCPU_KERNEL(matmul_int8) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    work w = { .p = &p, .tiles = int8_tiles_at(0), .m0 = group_y * call->spec[HDI_MM_TILE_M],
               .n0 = group_x * call->spec[HDI_MM_TILE_N] };
    if (w.m0 >= p.m || w.n0 >= p.n) return;
    const uint64_t elements = hdcpu_block_elements(p.b_type), bytes = hdcpu_block_bytes(p.b_type);
    w.form = int8_form_of(p.b_type, w.tiles);
    w.m_count = HDI_MIN(p.m - w.m0, call->spec[HDI_MM_TILE_M]);
    w.n_count = HDI_MIN(p.n - w.n0, call->spec[HDI_MM_TILE_N]);
    w.rows = hdcpu_int8_rows(w.m_count);
    w.columns = hdcpu_int8_rows(w.n_count);
    const bool exact = call->spec[HDI_SPEC_EXACT];
    const uint32_t row_sums = exact ? 1 : w.form.runs;
    w.vector_bytes = (uint64_t)p.k / INT8_BLOCK * INT8_PACKED_BLOCK(w.tiles->lanes, row_sums);
    w.a = (const uint8_t *)p.a + (hdcpu_packed_at(&p, hdcpu_int8_rows(p.m)) + w.m0) / w.tiles->lanes * w.vector_bytes;
    w.b = (const uint8_t *)p.b + (p.b_first + w.n0 * p.b_col) / elements * bytes;
    w.column_bytes = p.b_col / elements * bytes;
    if (exact) {
        multiply_exact(&w, call->scratch);
        finish(&w);
        return;
    }
    w.scales = call->scratch;
    w.less = w.scales + PANEL * INT8_DEPTH_BLOCKS * 2;
    w.codes = (uint8_t *)(w.less + PANEL * INT8_DEPTH_BLOCKS * 2);
    w.line = (float *)(void *)(w.codes + PANEL * INT8_DEPTH_BLOCKS * 2 * INT8_BLOCK);
    w.sums = w.line + LINES * w.columns;
    for (uint32_t k0 = 0; k0 < p.k; k0 += DEPTH)
        for (uint32_t n = 0; n < w.n_count; n += PANEL)
            multiply_panel(&w, n, HDI_MIN(w.n_count - n, (uint32_t)PANEL), k0);
    finish(&w);
}
