/* attention_gradient_q.c: glsl/attention_gradient_q.comp for a CPU. */
#include "kernels/cpu/attention_gradient.h"

/* Of each own row: running maximum as a key, running sum, how the sums so far are to be scaled, sum of dy * y. */
typedef struct rows { int32_t largest[TILE]; float running_sum[TILE], rescale[TILE], along[TILE]; } rows;

/* A row's scores become weights, and these their gradients, of the keys `from` to `to` of the tile, which it sees. */
static void weigh(const gradient *g, rows *all, uint32_t r, uint32_t from, uint32_t to) {
    float *scores = g->weights + r * TILE, *gradients = g->gradients + r * TILE, sum = 0.0f;
    for (uint32_t j = 0; j < TILE; j++) scores[j] *= g->scale;
    const int32_t best = largest_key(scores + from, HDI_MAX(from, to) - from, all->largest[r]);
    float base = float_of_key(best);
    if (exact_bits(base) == 0xFF800000u) base = 0.0f; /* nothing but -infinity yet: all weights are 0 */
    all->rescale[r] = exact_exp(float_of_key(all->largest[r]) - base);
    all->largest[r] = best;
    for (uint32_t j = 0; j < TILE; j++) {
        const float weight = exact_exp(scores[j] - base);
        scores[j] = j >= from && j < to ? weight : 0.0f;
    }
    for (uint32_t j = 0; j < TILE; j++) sum += scores[j];
    all->running_sum[r] = sum + all->running_sum[r] * all->rescale[r];
    for (uint32_t j = 0; j < TILE; j++) gradients[j] = scores[j] * (gradients[j] - all->along[r]);
}

HDCPU_KERNEL(attention_gradient_q) {
    (void)group_z;
    gradient g;
    if (!begin_group(call, group_number(group_x, group_y), false, &g)) return;
    const uint32_t blocks = (g.row_count + TILE - 1) / TILE, first = (blocks - 1 - g.block) * TILE,
                   count = HDI_MIN(TILE, g.row_count - first);
    const uint32_t most = seen_to(&g, first + count - 1);
    uint32_t least = g.S;
    rows all;
    load_rows(&g, 5, false, first, count, g.sums[1]);
    load_rows(&g, 0, false, first, count, g.own[0]);
    load_rows(&g, 3, false, first, count, g.own[1]);
    for (uint32_t r = 0; r < count; r++) {
        const float *dy = g.own[1] + (size_t)r * g.width, *y = g.sums[1] + (size_t)r * g.width;
        all.along[r] = all.running_sum[r] = 0.0f;
        all.largest[r] = key_of(0xFF800000u);
        least = HDI_MIN(least, seen_from(&g, first + r));
        if (sees_none(&g, first + r)) continue; /* its y is NaN */
        for (uint32_t begin = 0; begin < g.D; begin += HDI_MM_BLOCK) {
            float sum = 0.0f;
            for (uint32_t d = begin; d < HDI_MIN(g.D, begin + HDI_MM_BLOCK); d++) sum += dy[d] * y[d];
            all.along[r] += sum;
        }
    }
    for (uint32_t key = least / TILE * TILE; key < most; key += TILE) {
        const uint32_t keys = HDI_MIN(TILE, most - key);
        load_rows(&g, 1, true, key, keys, g.lines[0]);
        load_rows(&g, 2, true, key, keys, g.lines[1]);
        multiply_lines(&g, g.own[0], count, g.lines[0], g.weights);
        multiply_lines(&g, g.own[1], count, g.lines[1], g.gradients);
        for (uint32_t r = 0; r < count; r++) {
            const uint32_t from = HDI_MAX(seen_from(&g, first + r), key), to = HDI_MAX(seen_to(&g, first + r), key);
            weigh(&g, &all, r, HDI_MIN(from - key, TILE), HDI_MIN(to - key, TILE));
        }
        add_lines(&g, g.gradients, count, g.lines[0], all.rescale, g.sums[0]);
    }
    float *facts = (float *)call->bindings[6] + ((uint64_t)g.pair * g.row_count + first) * 4;
    for (uint32_t r = 0; r < count; r++, facts += 4) {
        const float base = float_of_key(all.largest[r]);
        facts[0] = exact_bits(base) == 0xFF800000u ? 0.0f : base;
        facts[1] = sees_none(&g, first + r) ? 0.0f : exact_div(1.0f, all.running_sum[r]);
        facts[2] = all.along[r];
        facts[3] = 0.0f;
        store_sums(&g, g.sums[0] + (size_t)r * g.width, facts[1], g.scale, 7, query_first(&g, first + r));
    }
}
