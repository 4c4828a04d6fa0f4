/* matmul_amx.c: a tile of C = chain(A x B) for each group, where B is narrower than f32 and its columns lie along K. A
 * comes packed as bf16 tiles (pack_bf16.c). K is walked in blocks: the block's columns of B are rounded to bf16 tiles in
 * scratch, each pair of 16 rows meets all pairs of 16 columns, and the sums, transposed, wait in scratch. Sums are f32.
 * Below level 3 the tiles are multiplied in plain C: right, and chosen on no machine. */
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/matmul.h"
#if HDCPU_LEVEL >= 3
#  include <immintrin.h>
#endif

enum { PAIR = 2 * TILE_LINES, SUM_COLUMNS = 16 };

/* The group's part of the product, and its scratch. */
typedef struct work {
    const hdcpu_product *p;
    uint32_t m0, m_count, n0, n_count;
    uint32_t rows;       /* m_count up to whole pairs: also the stride of sums */
    float    *sums;      /* [n][m] */
    uint32_t *columns;   /* bf16 tiles of B's block: [n / 16][depth / 32] */
    float    *line;      /* a column's block, or finished rows */
} work;

/* ---- four tiles of sums: two of columns times two of rows ---- */

#if HDCPU_LEVEL >= 3
static void begin_tiles(void) {
    struct { uint8_t palette, start_row, reserved[14]; uint16_t column_bytes[16]; uint8_t rows[16]; } config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        config.column_bytes[i] = 64;
        config.rows[i] = 16;
    }
    _tile_loadconfig(&config);
}
static void end_tiles(void) { _tile_release(); }

static void multiply(const uint32_t *columns, size_t column_words, const uint32_t *rows, size_t row_words, uint32_t tiles, bool first,
                     float *sums, size_t stride) {
    const size_t bytes = stride * sizeof *sums;
    float *low = sums, *high = sums + TILE_LINES * stride;
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, low, bytes);
        _tile_loadd(1, low + TILE_LINES, bytes);
        _tile_loadd(2, high, bytes);
        _tile_loadd(3, high + TILE_LINES, bytes);
    }
    for (uint32_t t = 0; t < tiles; t++, columns += TILE_WORDS, rows += TILE_WORDS) {
        _tile_loadd(4, columns, 64);
        _tile_loadd(6, rows, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, rows + row_words, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, columns + column_words, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, low, bytes);
    _tile_stored(1, low + TILE_LINES, bytes);
    _tile_stored(2, high, bytes);
    _tile_stored(3, high + TILE_LINES, bytes);
}
#else
static void begin_tiles(void) {}
static void end_tiles(void) {}

static void multiply(const uint32_t *columns, size_t column_words, const uint32_t *rows, size_t row_words, uint32_t tiles, bool first,
                     float *sums, size_t stride) {
    for (uint32_t n = 0; n < PAIR; n++)
        for (uint32_t m = 0; m < PAIR; m++) {
            const uint32_t *column = columns + n / TILE_LINES * column_words + n % TILE_LINES * TILE_LINES;
            const uint32_t *row = rows + m / TILE_LINES * row_words + m % TILE_LINES;
            float sum = first ? 0.0f : sums[n * stride + m];
            for (uint32_t t = 0; t < tiles; t++)
                for (uint32_t i = 0; i < TILE_LINES; i++) {
                    const uint32_t b = column[t * TILE_WORDS + i], a = row[t * TILE_WORDS + i * TILE_LINES];
                    sum += hdcpu_float_of_bits(b << 16) * hdcpu_float_of_bits(a << 16);
                    sum += hdcpu_float_of_bits(b & 0xFFFF0000u) * hdcpu_float_of_bits(a & 0xFFFF0000u);
                }
            sums[n * stride + m] = sum;
        }
}
#endif

/* B's columns for `depth` values of K from k0 on; what lies behind the last column or value is zero. */
static void round_columns(const work *w, uint32_t k0, uint32_t depth, uint32_t tiles) {
    const hdcpu_product *p = w->p;
    const uint32_t padded = tiles * TILE_DEPTH, columns = (w->n_count + PAIR - 1) / PAIR * PAIR;
    for (uint32_t n = 0; n < columns; n++) {
        uint32_t *out = w->columns + ((size_t)n / TILE_LINES * tiles * TILE_LINES + n % TILE_LINES) * TILE_LINES;
        if (n < w->n_count) hdcpu_load_floats(p->b_type, p->b, p->b_first + (uint64_t)(w->n0 + n) * p->b_col + k0, depth, w->line);
        if (n >= w->n_count) memset(w->line, 0, padded * sizeof *w->line);
        else if (padded > depth) memset(w->line + depth, 0, (padded - depth) * sizeof *w->line);
        for (uint32_t t = 0; t < tiles; t++) bf16_words(w->line + t * TILE_DEPTH, out + t * TILE_WORDS);
    }
}

static void finish(const work *w) {
    for (uint32_t m = 0; m < w->m_count; m += TILE_LINES) {
        for (uint32_t n = 0; n < w->n_count; n += SUM_COLUMNS)
            transpose_words((const uint32_t *)(const void *)(w->sums + (size_t)n * w->rows + m), w->rows,
                            (uint32_t *)(void *)(w->line + n), HDCPU_AMX_TILE_N);
        for (uint32_t i = 0; i < TILE_LINES && m + i < w->m_count; i++)
            hdcpu_store_sums(w->p, w->m0 + m + i, w->n0, w->n_count, w->line + i * HDCPU_AMX_TILE_N);
    }
}

HDCPU_KERNEL(matmul_amx) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    work w = { .p = &p, .m0 = group_y * call->spec[HDI_MM_TILE_M], .n0 = group_x * call->spec[HDI_MM_TILE_N] };
    if (w.m0 >= p.m || w.n0 >= p.n) return;
    w.m_count = HDI_MIN(p.m - w.m0, call->spec[HDI_MM_TILE_M]);
    w.n_count = HDI_MIN(p.n - w.n0, call->spec[HDI_MM_TILE_N]);
    w.rows = hdcpu_amx_rows(w.m_count);
    w.line = call->scratch;
    w.columns = (uint32_t *)(void *)(w.line + TILE_LINES * HDCPU_AMX_TILE_N);
    w.sums = (float *)(void *)(w.columns + HDCPU_AMX_TILE_N * HDCPU_AMX_DEPTH / 2);
    const uint32_t row_tiles = hdcpu_amx_depth_tiles(p.k);
    const uint32_t *a = (const uint32_t *)p.a + ((uint64_t)group_z * hdcpu_amx_rows(p.m) + w.m0) / TILE_LINES * row_tiles * TILE_WORDS;
    begin_tiles();
    for (uint32_t k0 = 0; k0 < p.k; k0 += HDCPU_AMX_DEPTH) {
        const uint32_t depth = HDI_MIN(p.k - k0, (uint32_t)HDCPU_AMX_DEPTH), tiles = hdcpu_amx_depth_tiles(depth);
        round_columns(&w, k0, depth, tiles);
        for (uint32_t m = 0; m < w.rows; m += PAIR)
            for (uint32_t n = 0; n < w.n_count; n += PAIR)
                multiply(w.columns + (size_t)n * tiles * TILE_LINES, (size_t)tiles * TILE_WORDS,
                         a + ((size_t)m / TILE_LINES * row_tiles + k0 / TILE_DEPTH) * TILE_WORDS, (size_t)row_tiles * TILE_WORDS,
                         tiles, k0 == 0, w.sums + (size_t)n * w.rows + m, w.rows);
    }
    end_tiles();
    finish(&w);
}
