/* attention_gradient.h: what both passes of attention's gradient share on a CPU. A group owns up to 32 rows of a key
 * head, queries or keys, and walks over the others 32 at a time, which lie side by side in vectors where rows are
 * multiplied. */
#ifndef HDCPU_ATTENTION_GRADIENT_H
#define HDCPU_ATTENTION_GRADIENT_H

#include "kernels/cpu/attention_tiles.h"

/* The group's place, and its arrays in the worker's scratch. */
typedef struct gradient {
    const hdi_cpu_call *call;
    bool     exact, causal;
    uint32_t T, S, Hkv, D, heads, row_count, width; /* width: D rounded up to 32 */
    uint32_t block, pair, batch, head;
    float    scale;
    const int32_t *starts; /* of the sequence's queries; NULL: each sees from key 0 on */
    float   *own[2];         /* TILE x width: rows of both products */
    float   *lines[2];       /* TILE x width: the other rows */
    float   *turned;         /* width x TILE: some of these, transposed */
    float   *sums[2];        /* TILE x width */
    float   *weights, *gradients; /* TILE x TILE */
} gradient;

/* False: the group has nothing to do. */
static inline bool begin_group(const hdi_cpu_call *call, uint32_t group, bool of_keys, gradient *g) {
    const uint32_t *push = call->push;
    *g = (gradient){ .call = call, .exact = call->spec[HDI_SPEC_EXACT] == 1,
                     .causal = call->spec[HDI_ATTENTION_TILES_CAUSAL] == 1, .T = push[1], .S = push[2],
                     .Hkv = push[3], .D = push[4], .heads = call->spec[HDI_ATTENTION_TILES_HEADS],
                     .scale = exact_from_bits(push[5]) };
    const uint32_t pairs = push[0] * g->Hkv;
    g->row_count = g->T * g->heads;
    g->width = (g->D + 31) / 32 * 32;
    g->pair = group % pairs;
    g->block = group / pairs;
    g->batch = g->pair / g->Hkv;
    g->head = g->pair % g->Hkv;
    if (call->spec[HDI_ATTENTION_TILES_STARTS] == 1)
        g->starts = (const int32_t *)call->bindings[4] + (uint64_t)g->batch * g->T;
    float *room = call->scratch;
    float **const arrays[] = { &g->own[0], &g->own[1], &g->lines[0], &g->lines[1], &g->turned, &g->sums[0],
                               &g->sums[1] };
    for (size_t i = 0; i < HDI_COUNT(arrays); i++, room += (size_t)TILE * g->width) *arrays[i] = room;
    g->weights = room;
    g->gradients = room + TILE * TILE;
    memset(g->sums[0], 0, 2 * sizeof(float) * TILE * g->width);
    return g->block < ((of_keys ? g->S : g->row_count) + TILE - 1) / TILE;
}

/* The keys that a row sees: from the first one on, and up to the last one. */
static inline uint32_t seen_from(const gradient *g, uint32_t row) {
    const int32_t start = g->starts ? g->starts[row / g->heads] : 0;
    return start > 0 ? HDI_MIN((uint32_t)start, g->S) : 0;
}
static inline uint32_t seen_to(const gradient *g, uint32_t row) {
    return g->causal ? row / g->heads + 1 : g->T; /* T is at most S */
}
static inline bool sees_none(const gradient *g, uint32_t row) { return seen_from(g, row) >= seen_to(g, row); }

/* A row's first element. */
static inline uint64_t query_first(const gradient *g, uint32_t row) {
    const uint64_t token = (uint64_t)g->batch * g->T + row / g->heads;
    return ((token * g->Hkv + g->head) * g->heads + row % g->heads) * g->D;
}
static inline uint64_t key_first(const gradient *g, uint32_t key) {
    return (((uint64_t)g->batch * g->S + key) * g->Hkv + g->head) * g->D;
}

/* Rows `begin` to `begin + count` of a binding, and zeros behind them and behind D. */
static inline void load_rows(const gradient *g, uint32_t binding, bool keys, uint32_t begin, uint32_t count,
                             float *rows) {
    const float *from = g->call->bindings[binding];
    for (uint32_t r = 0; r < TILE; r++) {
        float *row = rows + (size_t)r * g->width;
        if (r < count)
            memcpy(row, from + (keys ? key_first(g, begin + r) : query_first(g, begin + r)), sizeof *row * g->D);
        memset(row + (r < count ? g->D : 0), 0, sizeof *row * (g->width - (r < count ? g->D : 0)));
    }
}

/* out = out * scales[row] + a x b, 32 columns wide, for any number of rows. */
typedef struct tile_product {
    const float *a, *b, *scales;
    float       *out;
    size_t       a_stride, b_stride, out_stride;
    uint32_t     depth;
} tile_product;
static inline void multiply_rows(uint32_t rows, const tile_product *p) {
    for (uint32_t r = 0, now; r < rows; r += now) {
        const float *a = p->a + r * p->a_stride, *scales = p->scales + r;
        float *out = p->out + r * p->out_stride;
        now = rows - r >= AT_ONCE ? AT_ONCE : 1;
        if (now == AT_ONCE) multiply(AT_ONCE, p->depth, a, p->a_stride, p->b, p->b_stride, scales, out, p->out_stride);
        else multiply(1, p->depth, a, p->a_stride, p->b, p->b_stride, scales, out, p->out_stride);
    }
}

/* out[r][j] = own row r times line j. */
static inline void multiply_lines(const gradient *g, const float *own, uint32_t rows, const float *lines, float *out) {
    static const float none[TILE] = { 0 };
    for (uint32_t j = 0; j < TILE; j += TILE_LINES)
        for (uint32_t d = 0; d < g->width; d += TILE_LINES)
            transpose_words((const uint32_t *)(const void *)(lines + (size_t)j * g->width + d), g->width,
                            (uint32_t *)(void *)(g->turned + (size_t)d * TILE + j), TILE);
    memset(out, 0, sizeof *out * TILE * TILE);
    if (!g->exact) {
        multiply_rows(rows, &(tile_product){ own, g->turned, none, out, g->width, TILE, TILE, g->D });
        return;
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t begin = 0; begin < g->D; begin += HDI_MM_BLOCK) {
            float block[TILE] = { 0 };
            const uint32_t end = HDI_MIN(g->D, begin + HDI_MM_BLOCK);
            for (uint32_t d = begin; d < end; d++)
                add_products(own[(size_t)r * g->width + d], g->turned + (size_t)d * TILE, block);
            for (uint32_t j = 0; j < TILE; j++) out[r * TILE + j] += block[j];
        }
}

/* sums[r] = sums[r] * scales[r] + the lines times their weights. */
static inline void add_lines(const gradient *g, const float *weights, uint32_t rows, const float *lines,
                             const float *scales, float *sums) {
    for (uint32_t begin = 0; begin < g->width; begin += 32) {
        if (!g->exact)
            multiply_rows(rows, &(tile_product){ weights, lines + begin, scales, sums + begin, TILE, g->width, g->width,
                                                 TILE });
        for (uint32_t r = 0; r < rows && g->exact; r++) {
            float tile[32] = { 0 }, *to = sums + (size_t)r * g->width + begin;
            for (uint32_t j = 0; j < TILE; j++)
                add_products(weights[r * TILE + j], lines + (size_t)j * g->width + begin, tile);
            for (uint32_t d = 0; d < 32; d++) to[d] = tile[d] + to[d] * scales[r];
        }
    }
}

/* Stores a row of sums * first * second from element `at` of a binding on. */
static inline void store_sums(const gradient *g, const float *sums, float first, float second, uint32_t binding,
                              uint64_t at) {
    float *out = (float *)g->call->bindings[binding] + at;
    for (uint32_t d = 0; d < g->D; d++) out[d] = exact_canonical(sums[d] * first * second);
}
#endif
