/* matmul_int8.c: a tile of C = chain(A x B) for each group, where B is quantised and its columns lie along K. A's rows come in
 * 8 bits (pack_int8.c). K is walked in blocks of 256; a panel of columns, its codes unpacked one to a byte, meets all of the
 * tile's rows, and the sums, transposed, wait in scratch (int8_tiles.h). */
#include "kernels/cpu/int8_codes.h"
#include "kernels/cpu/int8_tiles.h"
#include "kernels/cpu/matmul.h"
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
} work;

/* Bytes of a block's codes of a column. */
static uint32_t unit_of(const work *w) { return w->form.bits == 8 && w->tiles->halves ? 2 * INT8_BLOCK : INT8_BLOCK; }

/* Column `c` of a panel, `blocks` blocks from k0 on. */
static void unpack(const work *w, uint32_t n, uint32_t c, uint32_t k0, uint32_t blocks) {
    const uint32_t type = w->p->b_type, elements = hdcpu_block_elements(type), bytes = hdcpu_block_bytes(type);
    const uint32_t columns = w->tiles->columns, unit = unit_of(w), runs = w->form.runs, tile = c / columns, lane = c % columns;
    const uint8_t *from = w->b + n * w->column_bytes + (uint64_t)k0 / elements * bytes;
    int8_column column;
    const uint32_t depth_bytes = DEPTH / elements * bytes;
    const uint8_t *next = k0 + DEPTH < w->p->k ? from + depth_bytes : w->b + (n + w->n_count) * w->column_bytes; /* the next group's */
    for (uint32_t at = 0; at < depth_bytes + 63; at += 64) __builtin_prefetch(next + at, 0, 2);
    int8_codes(type, from, blocks * INT8_BLOCK, w->tiles->is_signed ? 0 : 0x80, &column);
    uint8_t *codes = w->codes + (tile * INT8_DEPTH_BLOCKS * columns + lane) * unit;
    for (uint32_t block = 0; block < blocks; block++, codes += columns * unit) {
        const uint8_t *of_block = column.codes + block * INT8_BLOCK;
        if (unit == INT8_BLOCK) memcpy(codes, of_block, INT8_BLOCK);
        else nibbles(of_block, INT8_BLOCK, codes, codes + INT8_BLOCK);
    }
    const uint32_t first = tile * INT8_DEPTH_BLOCKS * runs * columns + lane;
    for (uint32_t i = 0; i < blocks * runs; i++) {
        w->scales[first + i * columns] = column.scales[i];
        w->less[first + i * columns] = column.less[i];
    }
}

/* All rows times a panel of `count` columns from n on, DEPTH of K from k0 on. */
static void multiply_panel(const work *w, uint32_t n, uint32_t count, uint32_t k0) {
    const uint32_t lanes = w->tiles->lanes, columns = w->tiles->columns, per_tile = INT8_DEPTH_BLOCKS * columns, runs = w->form.runs;
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
    work w = { .p = &p, .tiles = int8_tiles_at(0), .m0 = group_y * call->spec[HDI_MM_TILE_M], .n0 = group_x * call->spec[HDI_MM_TILE_N] };
    if (w.m0 >= p.m || w.n0 >= p.n) return;
    const uint64_t elements = hdcpu_block_elements(p.b_type), bytes = hdcpu_block_bytes(p.b_type);
    w.form = int8_form_of(p.b_type, w.tiles);
    w.m_count = HDI_MIN(p.m - w.m0, call->spec[HDI_MM_TILE_M]);
    w.n_count = HDI_MIN(p.n - w.n0, call->spec[HDI_MM_TILE_N]);
    w.rows = hdcpu_int8_rows(w.m_count);
    w.columns = hdcpu_int8_rows(w.n_count);
    w.vector_bytes = (uint64_t)p.k / INT8_BLOCK * INT8_PACKED_BLOCK(w.tiles->lanes, w.form.runs);
    w.a = (const uint8_t *)p.a + group_z * hdcpu_int8_packed_bytes(p.m, p.k, w.form.runs) + w.m0 / w.tiles->lanes * w.vector_bytes;
    w.b = (const uint8_t *)p.b + (p.b_first + w.n0 * p.b_col) / elements * bytes;
    w.column_bytes = p.b_col / elements * bytes;
    w.scales = call->scratch;
    w.less = w.scales + PANEL * INT8_DEPTH_BLOCKS * 2;
    w.codes = (uint8_t *)(w.less + PANEL * INT8_DEPTH_BLOCKS * 2);
    w.line = (float *)(void *)(w.codes + PANEL * INT8_DEPTH_BLOCKS * 2 * INT8_BLOCK);
    w.sums = w.line + LINES * w.columns;
    for (uint32_t k0 = 0; k0 < p.k; k0 += DEPTH)
        for (uint32_t n = 0; n < w.n_count; n += PANEL) multiply_panel(&w, n, HDI_MIN(w.n_count - n, (uint32_t)PANEL), k0);
    finish(&w);
}
