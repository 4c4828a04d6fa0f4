/* matmul.h: what the CPU forms of the matmul family share: one launch's words with names, how finished sums leave, and
 * the exact product of a tile in the order of abi.h. Vectors lie along N, so that the order along K is the same for
 * every width of vector; products and sums are rounded apart (no contraction). */
#ifndef HDCPU_MATMUL_H
#define HDCPU_MATMUL_H

#include "kernels/cpu/chain.h"
#include "kernels/cpu/matmul_native.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/words.h"
#include "kernels/exact.h"
#include "kernels/kernel.h"

/* The product of one batch. Strides in elements. */
typedef struct hdcpu_product {
    const hdi_cpu_call *call;
    uint32_t m, n, k, batch;
    const uint32_t *rows;   /* of a group (matmul_native.h): which they are. NULL: there are no groups */
    uint32_t share, packed; /* rows of C for a row of A; the first row of a group's packed A */
    uint32_t a_type, b_type;
    uint64_t a_first, a_row, a_col, b_first, b_row, b_col;
    const void *a, *b;
} hdcpu_product;

static inline uint64_t hdcpu_batch_first(const uint32_t *push, uint32_t batch, uint32_t first, uint32_t strides) {
    const uint32_t length1 = push[HDI_MM_PUSH_BATCH], length2 = push[HDI_MM_PUSH_BATCH + 1];
    const uint32_t inner = batch / length2;
    return (uint64_t)push[first] + (uint64_t)(batch % length2) * push[strides + 2] +
           (uint64_t)(inner % length1) * push[strides + 1] + (uint64_t)(inner / length1) * push[strides];
}
static inline void hdcpu_take_group(hdcpu_product *p) {
    const hdi_cpu_call *call = p->call;
    const uint32_t *push = call->push, *groups = call->bindings[3], *group = groups + p->batch * HDI_GROUP_WORDS;
    p->m = group[HDI_GROUP_ROWS];
    p->rows = groups + push[HDI_MM_PUSH_BATCH + 1] * HDI_GROUP_WORDS + group[HDI_GROUP_FIRST];
    p->share = push[HDI_MM_PUSH_BATCH];
    p->packed = group[HDI_GROUP_PACKED];
    p->b_first = push[HDI_MM_PUSH_B_FIRST] + (uint64_t)group[HDI_GROUP_EXPERT] * push[HDI_MM_PUSH_B_BATCH + 2];
}
static inline hdcpu_product hdcpu_product_of(const hdi_cpu_call *call, uint32_t batch) {
    const uint32_t *push = call->push;
    hdcpu_product p = {
        .call = call, .m = push[HDI_MM_PUSH_M], .n = push[HDI_MM_PUSH_N], .k = push[HDI_MM_PUSH_K], .batch = batch,
        .a_type = call->spec[HDI_MM_A_TYPE], .b_type = call->spec[HDI_MM_B_TYPE],
        .a_first = hdcpu_batch_first(push, batch, HDI_MM_PUSH_A_FIRST, HDI_MM_PUSH_A_BATCH),
        .b_first = hdcpu_batch_first(push, batch, HDI_MM_PUSH_B_FIRST, HDI_MM_PUSH_B_BATCH),
        .a_row = push[HDI_MM_PUSH_A_ROW], .a_col = push[HDI_MM_PUSH_A_COL],
        .b_row = push[HDI_MM_PUSH_B_ROW], .b_col = push[HDI_MM_PUSH_B_COL],
        .a = call->bindings[0], .b = call->bindings[1],
    };
    if (call->spec[HDI_MM_LAYOUT] & HDI_MM_GROUPED) hdcpu_take_group(&p);
    return p;
}
/* Where row m of A begins; the batch's first row of packed A, of which another batch has `lines`; and row m of C. */
static inline uint64_t hdcpu_a_at(const hdcpu_product *p, uint32_t m) {
    return p->a_first + (p->rows ? p->rows[m] / p->share : m) * p->a_row;
}
static inline uint64_t hdcpu_packed_at(const hdcpu_product *p, uint32_t lines) {
    return p->rows ? p->packed : (uint64_t)p->batch * lines;
}
static inline uint32_t hdcpu_c_row(const hdcpu_product *p, uint32_t m) {
    return p->rows ? p->rows[m] : p->batch * p->m + m;
}

/* `count` elements of A along a row from (m, k), or of B along a column (k, n), or of B along a row: to out, in f32. */
static inline void hdcpu_gather(uint32_t type, const void *data, uint64_t first, uint64_t stride, uint32_t count,
                                float *out) {
    if (stride == 1)
        hdcpu_load_floats(type, data, first, count, out);
    else
        for (uint32_t i = 0; i < count; i++) out[i] = hdcpu_load_any(type, data, first + i * stride);
}

/* The words of the chain's source i: first element, and strides along batch, M and N; and where a row of it is. */
static inline const uint32_t *hdcpu_source_words(const hdcpu_product *p, uint32_t i) {
    return p->call->push + HDI_MM_PUSH_CHAIN + 4 * i;
}
static inline uint32_t hdcpu_source_at(const hdcpu_product *p, uint32_t i, uint32_t m, uint32_t n) {
    const uint32_t *w = hdcpu_source_words(p, i);
    return w[0] + p->batch * w[1] + m * w[2] + n * w[3];
}
/* How many sources there are beside the product, where there is a chain. */
static inline uint32_t hdcpu_source_count(const hdcpu_product *p) {
    const uint32_t *spec = p->call->spec;
    uint32_t count = 0;
    while (spec[HDI_SPEC_CHAIN] > 0 && count < 3 && spec[HDI_SPEC_CHAIN_TYPE + 1 + count] != HDI_TYPE_NONE) count++;
    return count;
}
/* Is the source a row of f32 in memory, to be read where it lies? */
static inline bool hdcpu_source_is_row(const hdcpu_product *p, uint32_t i) {
    return p->call->spec[HDI_SPEC_CHAIN_TYPE + 1 + i] == HDI_TYPE_F32 && hdcpu_source_words(p, i)[3] == 1;
}

/* sums[0..count) become C[m][n ..]: rounded to the product's type, taken through the chain, in C's type. */
static inline void hdcpu_store_sums(const hdcpu_product *p, uint32_t m, uint32_t n, uint32_t count, const float *sums) {
    const uint32_t *spec = p->call->spec, sources = hdcpu_source_count(p);
    const bool chain = spec[HDI_SPEC_CHAIN] > 0, in_place = spec[HDI_SPEC_OUT_TYPE] == HDI_TYPE_F32;
    uint32_t rows[HDI_CHAIN_INPUTS][HDCPU_ROW], scratch[HDCPU_CHAIN_SCRATCH_BYTES / 4];
    for (uint32_t at = 0; at < count; at += HDCPU_ROW) {
        const uint32_t width = HDI_MIN(count - at, HDCPU_ROW), first = hdcpu_c_row(p, m) * p->n + n + at;
        uint32_t *out = in_place ? (uint32_t *)p->call->bindings[2] + first : rows[0];
        uint32_t *own = chain ? rows[0] : out;
        const uint32_t *row_of[HDI_CHAIN_INPUTS] = { own };
        const float *part = sums + at; /* a loop over sums[at + i], which may wrap, would go one by one */
        for (size_t i = 0; i < width; i++) {
            const uint32_t bits = exact_bits(part[i]);
            own[i] = (bits & ~EXACT_SIGN) > EXACT_INF ? EXACT_NAN : bits;
        }
        if (chain) {
            hdcpu_row_round(spec[HDI_SPEC_CHAIN_TYPE], own, width);
            for (uint32_t i = 0; i < sources; i++) {
                const void *source = p->call->bindings[3 + i];
                const uint32_t from = hdcpu_source_at(p, i, m, n + at);
                row_of[i + 1] = hdcpu_source_is_row(p, i) ? (const uint32_t *)source + from : rows[i + 1];
                if (row_of[i + 1] == rows[i + 1])
                    hdcpu_row_load(spec[HDI_SPEC_CHAIN_TYPE + 1 + i], source, from, hdcpu_source_words(p, i)[3], width,
                                   rows[i + 1]);
            }
            hdcpu_chain_run(spec, p->call->push + HDI_MM_PUSH_CHAIN + 4 * sources, row_of, out, width, scratch);
        }
        if (!in_place) hdcpu_row_store(spec[HDI_SPEC_OUT_TYPE], out, width, p->call->bindings[2], first, 1);
    }
}
/* Asks memory for what hdcpu_store_sums will touch. */
static inline void hdcpu_expect_sums(const hdcpu_product *p, uint32_t m, uint32_t n, uint32_t count) {
    const uint32_t *spec = p->call->spec, width = spec[HDI_SPEC_OUT_TYPE] == HDI_TYPE_F32 ? 4 : 2;
    const char *c = (const char *)p->call->bindings[2] + ((uint64_t)hdcpu_c_row(p, m) * p->n + n) * width;
    for (uint32_t at = 0; at < count * width; at += 64) __builtin_prefetch(c + at, 1);
    for (uint32_t i = 0; i < hdcpu_source_count(p); i++) {
        if (!hdcpu_source_is_row(p, i)) continue;
        const float *from = (const float *)p->call->bindings[3 + i] + hdcpu_source_at(p, i, m, n);
        for (uint32_t at = 0; at < count; at += 16) __builtin_prefetch(from + at);
    }
}

/* ---- exact ---- */

#if HDCPU_LEVEL >= 2
#  define HDCPU_LANES 16
#elif HDCPU_LEVEL == 1
#  define HDCPU_LANES 8
#else
#  define HDCPU_LANES 4
#endif
typedef float hdcpu_vector __attribute__((vector_size(4 * HDCPU_LANES)));
static inline hdcpu_vector hdcpu_load(const float *from) { hdcpu_vector v; memcpy(&v, from, sizeof v); return v; }
static inline void hdcpu_store(float *to, hdcpu_vector v) { memcpy(to, &v, sizeof v); }

/* Adds to total[rows][STRIP] the sums of each block along K: a[k][rows] (rows apart ROWS), b[k][STRIP]. */
#define HDCPU_EXACT_BLOCKS(rows) \
    static void hdcpu_exact_blocks_##rows(uint32_t depth, const float *a, const float *b, float *total) { \
        enum { VECTORS = HDCPU_EXACT_STRIP / HDCPU_LANES, MOST = rows == 1 ? 4 : 2, \
               AT_ONCE = VECTORS < MOST ? VECTORS : MOST }; \
        for (uint32_t k0 = 0, k1; k0 < depth; k0 = k1) { \
            k1 = HDI_MIN(depth, k0 + HDI_MM_BLOCK); \
            for (int at = 0; at < VECTORS; at += AT_ONCE) { \
                hdcpu_vector sum[rows][AT_ONCE]; \
                for (int i = 0; i < rows; i++) for (int j = 0; j < AT_ONCE; j++) sum[i][j] = (hdcpu_vector){ 0 }; \
                for (uint32_t k = k0; k < k1; k++) \
                    for (int j = 0; j < AT_ONCE; j++) { \
                        const hdcpu_vector line = hdcpu_load(b + k * HDCPU_EXACT_STRIP + (at + j) * HDCPU_LANES); \
                        for (int i = 0; i < rows; i++) sum[i][j] += a[k * HDCPU_EXACT_ROWS + (uint32_t)i] * line; \
                    } \
                for (int i = 0; i < rows; i++) \
                    for (int j = 0; j < AT_ONCE; j++) { \
                        float *to = total + i * HDCPU_EXACT_STRIP + (at + j) * HDCPU_LANES; \
                        hdcpu_store(to, hdcpu_load(to) + sum[i][j]); \
                    } \
            } \
        } \
    }
HDCPU_EXACT_BLOCKS(1)
HDCPU_EXACT_BLOCKS(4)

/* Columns that lie along K, turned in squares of 16 x 16; what is read of each next time is on its way meanwhile. */
static inline void hdcpu_exact_turn_b(const hdcpu_product *p, uint32_t k0, uint32_t depth, uint32_t n, uint32_t count,
                                      float *b) {
    enum { SQUARE = 16, LINE_BYTES = 64 };
    const uint32_t elements = hdcpu_block_elements(p->b_type), bytes = hdcpu_block_bytes(p->b_type);
    float columns[SQUARE * HDCPU_EXACT_DEPTH];
    for (uint32_t j = 0; j < HDCPU_EXACT_STRIP; j += SQUARE) {
        const uint32_t end = HDI_MIN(count, j + SQUARE);
        if (end < j + SQUARE || depth % SQUARE != 0) memset(columns, 0, sizeof columns);
        for (uint32_t i = j; i < end; i++) {
            const uint64_t first = p->b_first + k0 + (n + i) * p->b_col;
            const uint64_t then = k0 + depth < p->k ? first + depth : first - k0 + HDCPU_EXACT_STRIP * p->b_col;
            const uint8_t *next = (const uint8_t *)p->b + then / elements * bytes;
            for (uint32_t line = 0; line < depth * bytes / elements; line += LINE_BYTES)
                __builtin_prefetch(next + line, 0, 2);
            hdcpu_load_floats(p->b_type, p->b, first, depth, columns + (i - j) * HDCPU_EXACT_DEPTH);
        }
        for (uint32_t k = 0; k < depth; k += SQUARE)
            transpose_words((const uint32_t *)(const void *)(columns + k), HDCPU_EXACT_DEPTH,
                            (uint32_t *)(void *)(b + k * HDCPU_EXACT_STRIP + j), HDCPU_EXACT_STRIP);
    }
}

/* b[k][STRIP] for `depth` values of k from k0 on and `count` columns from n on; columns past `count` are 0. */
static inline void hdcpu_exact_pack_b(const hdcpu_product *p, uint32_t k0, uint32_t depth, uint32_t n, uint32_t count,
                                      float *b) {
    if (p->b_row == 1) {
        hdcpu_exact_turn_b(p, k0, depth, n, count, b);
        return;
    }
    if (count < HDCPU_EXACT_STRIP) memset(b, 0, depth * HDCPU_EXACT_STRIP * sizeof *b);
    for (uint32_t k = 0; k < depth; k++)
        hdcpu_gather(p->b_type, p->b, p->b_first + (k0 + k) * p->b_row + n * p->b_col, p->b_col, count,
                     b + k * HDCPU_EXACT_STRIP);
}

/* a[k][rows] of each piece of ROWS rows, for `depth` values of k from k0 on. */
static inline void hdcpu_exact_pack_a(const hdcpu_product *p, uint32_t k0, uint32_t depth, uint32_t m0,
                                      uint32_t m_count, float *a) {
    float row[HDCPU_EXACT_DEPTH];
    for (uint32_t m = 0; m < m_count; m++) {
        float *to = a + m / HDCPU_EXACT_ROWS * (HDCPU_EXACT_ROWS * HDCPU_EXACT_DEPTH) + m % HDCPU_EXACT_ROWS;
        hdcpu_gather(p->a_type, p->a, hdcpu_a_at(p, m0 + m) + k0 * p->a_col, p->a_col, depth, row);
        for (uint32_t k = 0; k < depth; k++) to[k * HDCPU_EXACT_ROWS] = row[k];
    }
}

/* C[m0 ..][n0 ..], m_count x n_count. The totals of the whole tile stay in scratch, strip by strip. */
static inline void hdcpu_exact_tile(const hdcpu_product *p, uint32_t m0, uint32_t m_count, uint32_t n0,
                                    uint32_t n_count, float *scratch) {
    const uint32_t padded = (m_count + HDCPU_EXACT_ROWS - 1u) / HDCPU_EXACT_ROWS * HDCPU_EXACT_ROWS;
    const uint32_t strips = (n_count + HDCPU_EXACT_STRIP - 1u) / HDCPU_EXACT_STRIP,
                   strip_floats = padded * HDCPU_EXACT_STRIP;
    float *a = scratch, *b = a + padded * HDCPU_EXACT_DEPTH, *totals = b + HDCPU_EXACT_STRIP * HDCPU_EXACT_DEPTH;
    memset(totals, 0, (size_t)strips * strip_floats * sizeof *totals);
    for (uint32_t k0 = 0; k0 < p->k; k0 += HDCPU_EXACT_DEPTH) {
        const uint32_t depth = HDI_MIN(p->k - k0, (uint32_t)HDCPU_EXACT_DEPTH);
        hdcpu_exact_pack_a(p, k0, depth, m0, m_count, a);
        for (uint32_t s = 0; s < strips; s++) {
            const uint32_t at = s * HDCPU_EXACT_STRIP;
            hdcpu_exact_pack_b(p, k0, depth, n0 + at, HDI_MIN(n_count - at, (uint32_t)HDCPU_EXACT_STRIP), b);
            for (uint32_t m = 0; m < m_count; m += HDCPU_EXACT_ROWS) {
                const uint32_t rows = HDI_MIN(m_count - m, (uint32_t)HDCPU_EXACT_ROWS);
                float *total = totals + s * strip_floats + m * HDCPU_EXACT_STRIP;
                const float *piece = a + m * HDCPU_EXACT_DEPTH;
                if (rows == HDCPU_EXACT_ROWS) {
                    hdcpu_exact_blocks_4(depth, piece, b, total);
                } else {
                    for (uint32_t i = 0; i < rows; i++)
                        hdcpu_exact_blocks_1(depth, piece + i, b, total + i * HDCPU_EXACT_STRIP);
                }
            }
        }
    }
    for (uint32_t m = 0; m < m_count; m++)
        for (uint32_t s = 0; s < strips; s++) {
            const uint32_t at = s * HDCPU_EXACT_STRIP;
            hdcpu_store_sums(p, m0 + m, n0 + at, HDI_MIN(n_count - at, (uint32_t)HDCPU_EXACT_STRIP),
                             totals + s * strip_floats + m * HDCPU_EXACT_STRIP);
        }
}
#endif
