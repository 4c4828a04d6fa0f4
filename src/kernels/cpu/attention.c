/* attention.c: glsl/attention.comp for a CPU. A group has ROWS query rows that share a key head, so each tile of 32 keys
 * and values is read and converted once for all of them. The keys of a tile lie side by side in vectors, so that each
 * key's products are added in order; fast mode only differs by fusing products and sums. */
#include "kernels/cpu/rows.h"

#define TILE HDI_ATTENTION_TILE

/* The group's place and state; the arrays are in the worker's scratch: ROWS x WIDTH floats each but for the tiles. */
typedef struct state {
    bool     exact;
    uint32_t kv_type, rows, width, D;
    float    scale;
    float   *query, *result;     /* a row of WIDTH for each query row */
    float   *keys;               /* WIDTH x TILE, transposed */
    float   *values;             /* TILE x WIDTH */
    float   *running_sum;        /* for each query row, as the two below */
    int32_t *largest;            /* running maximum, as a key */
    uint32_t *visible;           /* keys that it sees */
} state;

static void load_tile(const state *s, const void *k, const void *v, uint64_t first, uint64_t step, uint32_t count) {
    float room[HDI_ATTENTION_MOST_D];
    for (uint32_t key = 0; key < count; key++) {
        const uint64_t at = first + key * step;
        hdcpu_load_floats(s->kv_type, v, at, s->D, s->values + (size_t)key * s->width);
        const float *from = floats_at(s->kv_type, k, at, s->D, room);
        for (uint32_t d = 0; d < s->D; d++) s->keys[(size_t)d * TILE + key] = from[d];
    }
}

/* sums[i] += a * b[i] for 32 neighbours: a row of a tile either way. */
static inline void add_products(bool exact, float a, const float *b, float *sums) {
    if (exact) {
        for (uint32_t i = 0; i < 32; i++) sums[i] += a * b[i];
    } else {
        for (uint32_t i = 0; i < 32; i++) sums[i] = fused(a, b[i], sums[i]);
    }
}

static inline void make_scores(const state *s, bool exact, const float *query, float *scores) {
    float total[TILE] = { 0 };
    for (uint32_t begin = 0; begin < s->D; begin += HDI_MM_BLOCK) {
        float block[TILE] = { 0 };
        const uint32_t end = HDI_MIN(s->D, begin + HDI_MM_BLOCK);
        for (uint32_t d = begin; d < end; d++) add_products(exact, query[d], s->keys + (size_t)d * TILE, block);
        for (uint32_t key = 0; key < TILE; key++) total[key] += block[key];
    }
    for (uint32_t key = 0; key < TILE; key++) scores[key] = total[key] * s->scale;
}
/* result = result * rescale + the tile's values times their weights; rows are padded to WIDTH, a multiple of 32. */
static inline void add_values(const state *s, bool exact, const float *weights, uint32_t count, float rescale, float *result) {
    for (uint32_t begin = 0; begin < s->width; begin += 32) {
        float sums[32] = { 0 };
        for (uint32_t key = 0; key < count; key++) add_products(exact, weights[key], s->values + (size_t)key * s->width + begin, sums);
        for (uint32_t d = 0; d < 32; d++) result[begin + d] = sums[d] + result[begin + d] * rescale;
    }
}

/* One query row over one tile, of which it sees `count` keys. */
static void add_tile(const state *s, uint32_t row, uint32_t count) {
    const float *query = s->query + (size_t)row * s->width;
    float *result = s->result + (size_t)row * s->width, scores[TILE], weights[TILE];
    if (s->exact) make_scores(s, true, query, scores);
    else make_scores(s, false, query, scores);
    const int32_t best = largest_key(scores, count, s->largest[row]);
    float base = float_of_key(best);
    if (exact_bits(base) == 0xFF800000u) base = 0.0f; /* nothing but -infinity yet: all weights are 0 */
    const float rescale = exact_exp(float_of_key(s->largest[row]) - base);
    s->largest[row] = best;
    for (uint32_t key = 0; key < count; key++) weights[key] = exact_exp(scores[key] - base);
    float sum = 0.0f;
    for (uint32_t key = 0; key < count; key++) sum += weights[key];
    s->running_sum[row] = sum + s->running_sum[row] * rescale;
    if (s->exact) add_values(s, true, weights, count, rescale, result);
    else add_values(s, false, weights, count, rescale, result);
}

static state begin(const hdi_cpu_call *call) {
    state s = { call->spec[HDI_SPEC_EXACT] == 1, call->spec[HDI_ATTENTION_KV_TYPE], call->spec[HDI_ATTENTION_ROWS],
                call->spec[HDI_ATTENTION_WIDTH], call->push[5], exact_from_bits(call->push[6]),
                NULL, NULL, NULL, NULL, NULL, NULL, NULL };
    s.query = call->scratch;
    s.result = s.query + (size_t)s.rows * s.width;
    s.keys = s.result + (size_t)s.rows * s.width;
    s.values = s.keys + (size_t)TILE * s.width;
    s.running_sum = s.values + (size_t)TILE * s.width;
    s.largest = (int32_t *)(void *)(s.running_sum + s.rows);
    s.visible = (uint32_t *)(void *)(s.largest + s.rows);
    memset(call->scratch, 0, sizeof(float) * (2 * (size_t)s.rows + 2 * (size_t)TILE) * s.width); /* so also where D ends before WIDTH */
    return s;
}

HDCPU_KERNEL(attention) {
    (void)group_z;
    const uint32_t B = call->push[0], T = call->push[1], S = call->push[2], Hq = call->push[3], Hkv = call->push[4], D = call->push[5];
    const uint32_t heads = Hq / Hkv, row_count = T * heads, most_rows = call->spec[HDI_ATTENTION_ROWS];
    const uint32_t parts = row_count / most_rows + (row_count % most_rows != 0), group = group_number(group_x, group_y);
    const uint32_t batch = group / parts / Hkv, head = group / parts % Hkv;
    if (batch >= B) return;
    const uint32_t row_first = group % parts * most_rows, rows = HDI_MIN(most_rows, row_count - row_first);
    int64_t before = 0;
    if (call->spec[HDI_ATTENTION_PAST] == 1) before = ((const int32_t *)call->bindings[3])[batch];
    const state s = begin(call);
    uint64_t q_first[64];
    uint32_t most = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t token = (row_first + r) / heads, h = head * heads + (row_first + r) % heads;
        const int64_t seen = before + (call->spec[HDI_ATTENTION_CAUSAL] == 1 ? (int64_t)token + 1 : (int64_t)T);
        q_first[r] = (((uint64_t)batch * T + token) * Hq + h) * D;
        s.visible[r] = (uint32_t)HDI_MIN(HDI_MAX(seen, 0), (int64_t)S);
        s.running_sum[r] = 0.0f;
        s.largest[r] = key_of(0xFF800000u);
        hdcpu_load_floats(call->spec[HDI_ATTENTION_TYPE], call->bindings[0], q_first[r], D, s.query + (size_t)r * s.width);
        most = HDI_MAX(most, s.visible[r]);
    }
    const uint64_t step = (uint64_t)Hkv * D, kv_first = ((uint64_t)batch * S * Hkv + head) * D;
    for (uint32_t key = 0; key < most; key += TILE) {
        load_tile(&s, call->bindings[1], call->bindings[2], kv_first + key * step, step, HDI_MIN(TILE, most - key));
        for (uint32_t r = 0; r < rows; r++)
            if (key < s.visible[r]) add_tile(&s, r, HDI_MIN(TILE, s.visible[r] - key));
    }
    for (uint32_t r = 0; r < rows; r++) {
        float *result = s.result + (size_t)r * s.width;
        const float inverse = exact_div(1.0f, s.running_sum[r]);
        for (uint32_t d = 0; d < D; d++) result[d] *= inverse;
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[4], q_first[r], D, result);
    }
}
