/* matmul_amx.c: a tile of C = chain(A x B) for each group, where B is narrower than f32 and its columns lie along K. A
 * comes packed as bf16 tiles (pack_bf16.c). K is walked in blocks; a block of two times 16 columns of B, rounded to
 * bf16 tiles in scratch, meets all pairs of 16 rows, and the sums, transposed, wait in scratch. Sums are f32. The
 * vector units round the next block's columns between the steps of the matrix unit, which works on its own meanwhile.
 * Below level 3 the tiles are multiplied in plain C: right, and chosen on no machine. */
#include "kernels/cpu/bf16_blocks.h"
#include "kernels/cpu/matmul.h"

enum { PAIR = 2 * TILE_LINES, DEPTH = HDCPU_AMX_DEPTH, TILE_SUMS = TILE_LINES * TILE_LINES };

/* The group's part of the product, and its scratch. */
typedef struct work {
    const hdcpu_product *p;
    uint32_t m0, m_count, n0, n_count;
    uint32_t rows;           /* m_count up to whole pairs */
    const uint32_t *a;       /* all packed rows of the batch */
    const uint8_t *b;        /* the first column */
    uint64_t column_bytes;
    uint32_t depth_bytes;    /* of DEPTH values of a column */
    uint32_t *columns[2];    /* bf16 tiles of a block, and of the next: [DEPTH / 32][2] */
    float    *sums;          /* tiles of them: [n / 32][m / 32][2][2] */
    float    *line;          /* finished rows */
} work;

/* The tile of sums of 16 columns from n on and 16 rows from m on. */
static float *sums_of(const work *w, uint32_t n, uint32_t m) {
    const uint32_t pair = n / PAIR * (w->rows / PAIR) + m / PAIR,
                   tile = n % PAIR / TILE_LINES * 2 + m % PAIR / TILE_LINES;
    return w->sums + (size_t)(4 * pair + tile) * TILE_SUMS;
}

/* ---- blocks of columns, and their rounding a column at a time ---- */

/* PAIR columns from n on, from k0 on. */
typedef struct block {
    uint32_t n, k0;
} block;

static block block_after(const work *w, block b) {
    return b.n + PAIR < w->n_count ? (block){ b.n + PAIR, b.k0 } : (block){ 0, b.k0 + DEPTH };
}
static uint32_t depth_of(const work *w, block b) {
    return b.k0 < w->p->k ? HDI_MIN(w->p->k - b.k0, (uint32_t)DEPTH) : 0;
}
static uint64_t byte_of(const work *w, block b) {
    return b.n * w->column_bytes + (uint64_t)b.k0 / DEPTH * w->depth_bytes;
}

/* A block that becomes tiles while `steps` steps of a product are made. Columns past the group's last stay what they
 * are: nobody reads their sums. */
typedef struct feed {
    const work *w;
    const uint8_t *from, *ahead; /* the next column, and the column to be asked of memory */
    uint32_t *out;
    uint32_t depth, columns, left; /* columns of the block, and those not rounded yet */
    uint32_t steps, owed;
} feed;

static feed feed_of(const work *w, block b, uint32_t *tiles, uint32_t steps) {
    const uint32_t depth = depth_of(w, b), columns = depth > 0 ? HDI_MIN(w->n_count - b.n, (uint32_t)PAIR) : 0;
    return (feed){ .w = w, .from = w->b + byte_of(w, b), .ahead = w->b + byte_of(w, block_after(w, b)), .out = tiles,
                   .depth = depth, .columns = columns, .left = columns, .steps = steps };
}
static void feed_column(feed *f) {
    enum { LINE_BYTES = 64 };
    const uint8_t *line = f->ahead - (uintptr_t)f->ahead % LINE_BYTES;
    for (; line < f->ahead + f->w->depth_bytes; line += LINE_BYTES) __builtin_prefetch(line, 0, 2);
    bf16_column(f->w->p->b_type, f->from, f->depth, f->out);
    f->from += f->w->column_bytes;
    f->ahead += f->w->column_bytes;
    f->out += TILE_LINES;
    f->left--;
}
static inline void feed_step(feed *f) {
    for (f->owed += f->columns; f->owed >= f->steps; f->owed -= f->steps) feed_column(f);
}

/* ---- four tiles of sums: two of columns times two of rows ---- */

#ifdef __AMX_TILE__
static void begin_tiles(void) { bf16_begin_tiles(); }
static void end_tiles(void) { bf16_end_tiles(); }

static void multiply(const uint32_t *columns, const uint32_t *rows, uint32_t tiles, bool first, float *sums,
                     feed *next) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, 64);
        _tile_loadd(1, sums + TILE_SUMS, 64);
        _tile_loadd(2, sums + 2 * TILE_SUMS, 64);
        _tile_loadd(3, sums + 3 * TILE_SUMS, 64);
    }
    for (uint32_t t = 0; t < tiles; t++, columns += PAIR_WORDS, rows += PAIR_WORDS) {
        _tile_loadd(4, columns, 64);
        _tile_loadd(6, rows, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, rows + TILE_WORDS, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, columns + TILE_WORDS, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        feed_step(next);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + TILE_SUMS, 64);
    _tile_stored(2, sums + 2 * TILE_SUMS, 64);
    _tile_stored(3, sums + 3 * TILE_SUMS, 64);
}
#else
static void begin_tiles(void) {}
static void end_tiles(void) {}

static void multiply(const uint32_t *columns, const uint32_t *rows, uint32_t tiles, bool first, float *sums,
                     feed *next) {
    for (uint32_t n = 0; n < PAIR; n++)
        for (uint32_t m = 0; m < PAIR; m++) {
            const uint32_t *column = columns + n * TILE_LINES;
            const uint32_t *row = rows + m / TILE_LINES * TILE_WORDS + m % TILE_LINES;
            float *to =
                sums + (n / TILE_LINES * 2 + m / TILE_LINES) * TILE_SUMS + n % TILE_LINES * TILE_LINES + m % TILE_LINES;
            float sum = first ? 0.0f : *to;
            for (uint32_t t = 0; t < tiles; t++)
                for (uint32_t i = 0; i < TILE_LINES; i++) {
                    const uint32_t b = column[t * PAIR_WORDS + i], a = row[t * PAIR_WORDS + i * TILE_LINES];
                    sum += hdcpu_float_of_bits(b << 16) * hdcpu_float_of_bits(a << 16);
                    sum += hdcpu_float_of_bits(b & 0xFFFF0000u) * hdcpu_float_of_bits(a & 0xFFFF0000u);
                }
            *to = sum;
        }
    for (uint32_t t = 0; t < tiles; t++) feed_step(next);
}
#endif

/* Rows leave 16 at a time, while memory is asked for the next 16. */
static void finish(const work *w) {
    for (uint32_t m = 0; m < w->m_count; m += TILE_LINES) {
        for (uint32_t n = 0; n < w->n_count; n += TILE_LINES)
            transpose_words((const uint32_t *)(const void *)sums_of(w, n, m), TILE_LINES,
                            (uint32_t *)(void *)(w->line + n), HDCPU_AMX_TILE_N);
        for (uint32_t i = 0; i < TILE_LINES && m + i < w->m_count; i++) {
            if (m + i + TILE_LINES < w->m_count) hdcpu_expect_sums(w->p, w->m0 + m + i + TILE_LINES, w->n0, w->n_count);
            hdcpu_store_sums(w->p, w->m0 + m + i, w->n0, w->n_count, w->line + i * HDCPU_AMX_TILE_N);
        }
    }
}

/* Each block meets all rows while the one after it is rounded. */
static void multiply_blocks(const work *w) {
    block b = { 0, 0 };
    feed next = feed_of(w, b, w->columns[0], 1);
    while (next.left > 0) feed_column(&next);
    for (uint32_t turn = 0; b.k0 < w->p->k; turn ^= 1) {
        const block after = block_after(w, b);
        const uint32_t tiles = hdcpu_amx_depth_tiles(depth_of(w, b));
        next = feed_of(w, after, w->columns[!turn], w->rows / PAIR * tiles);
        for (uint32_t m = 0; m < w->rows; m += PAIR)
            multiply(w->columns[turn], w->a + hdcpu_amx_packed_at(w->p->m, w->p->k, w->m0 + m, b.k0), tiles, b.k0 == 0,
                     sums_of(w, b.n, m), &next);
        b = after;
    }
}

HDCPU_KERNEL(matmul_amx) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    work w = { .p = &p, .m0 = group_y * call->spec[HDI_MM_TILE_M], .n0 = group_x * call->spec[HDI_MM_TILE_N] };
    if (w.m0 >= p.m || w.n0 >= p.n) return;
    const uint64_t elements = hdcpu_block_elements(p.b_type), bytes = hdcpu_block_bytes(p.b_type);
    w.m_count = HDI_MIN(p.m - w.m0, call->spec[HDI_MM_TILE_M]);
    w.n_count = HDI_MIN(p.n - w.n0, call->spec[HDI_MM_TILE_N]);
    w.rows = hdcpu_amx_rows(w.m_count);
    w.a = (const uint32_t *)p.a + hdcpu_packed_at(&p, hdcpu_amx_rows(p.m)) * hdcpu_amx_depth_tiles(p.k) * TILE_LINES;
    w.b = (const uint8_t *)p.b + (p.b_first + w.n0 * p.b_col) / elements * bytes;
    w.column_bytes = p.b_col / elements * bytes;
    w.depth_bytes = (uint32_t)(DEPTH / elements * bytes);
    w.line = call->scratch;
    w.columns[0] = (uint32_t *)(void *)(w.line + TILE_LINES * HDCPU_AMX_TILE_N);
    w.columns[1] = w.columns[0] + PAIR * DEPTH / 2;
    w.sums = (float *)(void *)(w.columns[1] + PAIR * DEPTH / 2);
    begin_tiles();
    multiply_blocks(&w);
    end_tiles();
    finish(&w);
}
