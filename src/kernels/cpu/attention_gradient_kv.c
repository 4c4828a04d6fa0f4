/* attention_gradient_kv.c: glsl/attention_gradient_kv.comp for a CPU. */
#include "kernels/cpu/attention_gradient.h"

/* Of a tile of rows: the maximum of each, 1 / its sum, its sum of dy * y, the first key that it sees. */
typedef struct tile_facts {
    float    largest[TILE], inverse[TILE], along[TILE];
    uint32_t seen_from[TILE];
} tile_facts;

/* A key's scores become weights, and these their gradients: of the rows `from` to `to` of the tile, which see it if it
 * is behind their start. */
static void weigh(const gradient *g, const tile_facts *facts, uint32_t r, uint32_t from, uint32_t to) {
    const uint32_t key = g->block * TILE + r;
    float *scores = g->weights + r * TILE, *gradients = g->gradients + r * TILE;
    for (uint32_t j = 0; j < TILE; j++) {
        const float weight = exact_exp(scores[j] * g->scale - facts->largest[j]) * facts->inverse[j];
        scores[j] = j >= from && j < to && key >= facts->seen_from[j] ? weight : 0.0f;
    }
    for (uint32_t j = 0; j < TILE; j++) gradients[j] = scores[j] * (gradients[j] - facts->along[j]);
}

/* Where the rows end that see a key before `end`. */
static uint64_t rows_that_see(const gradient *g, uint32_t end) {
    uint32_t token = g->T;
    while (token > 0 && seen_from(g, (token - 1) * g->heads) >= end) token--;
    return (uint64_t)token * g->heads;
}

HDCPU_KERNEL(attention_gradient_kv) {
    (void)group_z;
    gradient g;
    if (!begin_group(call, group_number(group_x, group_y), true, &g)) return;
    float ones[TILE];
    for (uint32_t r = 0; r < TILE; r++) ones[r] = 1.0f;
    const uint32_t first = g.block * TILE, count = HDI_MIN(TILE, g.S - first);
    load_rows(&g, 1, true, first, count, g.own[0]);
    load_rows(&g, 2, true, first, count, g.own[1]);
    const uint64_t begin = g.causal ? (uint64_t)first * g.heads / TILE * TILE : 0;
    const uint64_t end = rows_that_see(&g, first + count);
    for (uint64_t at = begin; at < end; at += TILE) {
        const uint32_t row = (uint32_t)at, rows = HDI_MIN(TILE, g.row_count - row);
        const float *from = (const float *)call->bindings[5] + ((uint64_t)g.pair * g.row_count + row) * 4;
        tile_facts facts = { { 0 }, { 0 }, { 0 }, { 0 } };
        for (uint32_t j = 0; j < rows; j++) {
            facts.largest[j] = from[4 * j];
            facts.inverse[j] = from[4 * j + 1];
            facts.along[j] = from[4 * j + 2];
            facts.seen_from[j] = seen_from(&g, row + j);
        }
        load_rows(&g, 0, false, row, rows, g.lines[0]);
        load_rows(&g, 3, false, row, rows, g.lines[1]);
        multiply_lines(&g, g.own[0], count, g.lines[0], g.weights);
        multiply_lines(&g, g.own[1], count, g.lines[1], g.gradients);
        for (uint32_t r = 0; r < count; r++) { /* a key is seen from its own token on, or by all */
            const uint64_t seen_from = g.causal ? (uint64_t)(first + r) * g.heads : first + r < g.T ? 0 : UINT64_MAX;
            weigh(&g, &facts, r, seen_from > row ? (uint32_t)HDI_MIN(seen_from - row, TILE) : 0, rows);
        }
        add_lines(&g, g.weights, count, g.lines[1], ones, g.sums[1]);
        add_lines(&g, g.gradients, count, g.lines[0], ones, g.sums[0]);
    }
    const uint64_t queries = (uint64_t)call->push[0] * g.row_count * g.Hkv * g.D,
                   keys = (uint64_t)call->push[0] * g.S * g.Hkv * g.D;
    for (uint32_t r = 0; r < count; r++) {
        const uint64_t at = queries + key_first(&g, first + r);
        store_sums(&g, g.sums[0] + (size_t)r * g.width, g.scale, 1.0f, 6, at);
        store_sums(&g, g.sums[1] + (size_t)r * g.width, 1.0f, 1.0f, 6, at + keys);
    }
}
