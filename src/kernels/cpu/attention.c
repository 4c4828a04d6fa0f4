/* attention.c: glsl/attention.comp for a CPU. A group has ROWS query rows that share a key head, so each tile of 32
 * keys and values is read and converted once for all of them. The keys of a tile lie side by side in vectors, so that
 * each key's products are added in order. Fast mode takes several query rows at once, and fuses products and sums. */
#include "kernels/cpu/attention_tiles.h"

/* The group's place and state; the arrays are in the worker's scratch: ROWS x WIDTH floats each but for the tiles. */
typedef struct state {
    bool     exact;
    uint32_t kv_type, rows, width, D;
    float    scale, cap, inverse_cap; /* no cap: 0 */
    float   *query, *result;     /* a row of WIDTH for each query row */
    float   *keys;               /* WIDTH x TILE, transposed */
    float   *values;             /* TILE x WIDTH */
    float   *lines;              /* TILE x WIDTH: keys before they are transposed */
    float   *weights;            /* ROWS x TILE: scores, then their exponentials */
    float   *running_sum;        /* for each query row, as the two below */
    int32_t *largest;            /* running maximum, as a key */
    uint32_t *from, *to;         /* the keys that it sees */
} state;
/* The keys of a tile that a row sees. */
typedef struct seen { uint32_t first, count; } seen;

static void load_tile(const state *s, const void *k, const void *v, uint64_t first, uint64_t step, uint32_t count) {
    for (uint32_t key = 0; key < count; key++) {
        const uint64_t at = first + key * step;
        hdcpu_load_floats(s->kv_type, v, at, s->D, s->values + (size_t)key * s->width);
        hdcpu_load_floats(s->kv_type, k, at, s->D, s->lines + (size_t)key * s->width);
    }
    for (uint32_t key = 0; key < count; key += TILE_LINES)
        for (uint32_t d = 0; d < s->D; d += TILE_LINES)
            transpose_words((const uint32_t *)(const void *)(s->lines + (size_t)key * s->width + d), s->width,
                            (uint32_t *)(void *)(s->keys + (size_t)d * TILE + key), TILE);
}

/* ---- exact ---- */

static void make_scores(const state *s, const float *query, float *scores) {
    float total[TILE] = { 0 };
    for (uint32_t begin = 0; begin < s->D; begin += HDI_MM_BLOCK) {
        float block[TILE] = { 0 };
        const uint32_t end = HDI_MIN(s->D, begin + HDI_MM_BLOCK);
        for (uint32_t d = begin; d < end; d++) add_products(query[d], s->keys + (size_t)d * TILE, block);
        for (uint32_t key = 0; key < TILE; key++) total[key] += block[key];
    }
    for (uint32_t key = 0; key < TILE; key++) scores[key] = total[key] * s->scale;
}
/* result = result * rescale + the tile's values times their weights; rows are padded to WIDTH, a multiple of 32. */
static void add_values(const state *s, const float *weights, seen keys, float rescale, float *result) {
    for (uint32_t begin = 0; begin < s->width; begin += 32) {
        float sums[32] = { 0 };
        for (uint32_t key = 0; key < keys.count; key++)
            add_products(weights[key], s->values + (size_t)(keys.first + key) * s->width + begin, sums);
        for (uint32_t d = 0; d < 32; d++) result[begin + d] = sums[d] + result[begin + d] * rescale;
    }
}

static void cap_scores(const state *s, float *scores, uint32_t count) {
    for (uint32_t key = 0; key < count && s->cap > 0; key++)
        scores[key] = s->cap * exact_tanh(scores[key] * s->inverse_cap);
}

/* Scores of `count` keys become weights; how the row's result so far is to be scaled. */
static float weigh(const state *s, uint32_t row, float *scores, uint32_t count, float *weights) {
    cap_scores(s, scores, count);
    const int32_t best = largest_key(scores, count, s->largest[row]);
    float base = float_of_key(best);
    if (exact_bits(base) == 0xFF800000u) base = 0.0f; /* nothing but -infinity yet: all weights are 0 */
    const float rescale = exact_exp(float_of_key(s->largest[row]) - base);
    s->largest[row] = best;
    for (uint32_t key = 0; key < count; key++) weights[key] = exact_exp(scores[key] - base);
    float sum = 0.0f;
    for (uint32_t key = 0; key < count; key++) sum += weights[key];
    s->running_sum[row] = sum + s->running_sum[row] * rescale;
    return rescale;
}

/* One query row over one tile, of which it sees `keys`. */
static void add_tile_exact(const state *s, uint32_t row, seen keys) {
    float scores[TILE], weights[TILE];
    make_scores(s, s->query + (size_t)row * s->width, scores);
    const float rescale = weigh(s, row, scores + keys.first, keys.count, weights);
    add_values(s, weights, keys, rescale, s->result + (size_t)row * s->width);
}

/* ---- fast ---- */

/* Up to AT_ONCE query rows over one tile, of which they all see `keys`. */
static inline __attribute__((always_inline)) void add_rows(const state *s, const uint32_t rows, uint32_t row,
                                                           seen keys) {
    static const float none[AT_ONCE] = { 0 };
    const size_t width = s->width;
    float *weights = s->weights, rescale[AT_ONCE];
    memset(weights, 0, rows * TILE * sizeof *weights);
    multiply(rows, s->D, s->query + row * width, width, s->keys, TILE, none, weights, TILE);
    for (uint32_t r = 0; r < rows; r++) {
        float scores[TILE];
        for (uint32_t key = 0; key < TILE; key++) scores[key] = weights[r * TILE + key] * s->scale;
        rescale[r] = weigh(s, row + r, scores + keys.first, keys.count, weights + r * TILE);
    }
    const float *values = s->values + keys.first * width;
    for (size_t begin = 0; begin < width; begin += 32)
        multiply(rows, keys.count, weights, TILE, values + begin, width, rescale, s->result + row * width + begin,
                 width);
}

/* The same for any number of rows. */
static void add_tile_fast(const state *s, uint32_t row, uint32_t rows, seen keys) {
    while (rows > 0) {
        const uint32_t now = rows >= AT_ONCE ? AT_ONCE : rows >= 4 && AT_ONCE > 4 ? 4 : 1;
        if (now == AT_ONCE) add_rows(s, AT_ONCE, row, keys);
        else if (now == 4) add_rows(s, AT_ONCE > 4 ? 4 : 1, row, keys);
        else add_rows(s, 1, row, keys);
        row += now;
        rows -= now;
    }
}

static seen seen_of_tile(const state *s, uint32_t row, uint32_t key) {
    const uint32_t from = HDI_MAX(s->from[row], key), to = HDI_MIN(s->to[row], key + TILE);
    return from < to ? (seen){ from - key, to - from } : (seen){ 0, 0 };
}
static void add_tile(const state *s, uint32_t rows, uint32_t key) {
    for (uint32_t row = 0, next; row < rows; row = next) {
        const seen keys = seen_of_tile(s, row, key);
        for (next = row + 1; next < rows; next++) {
            const seen others = seen_of_tile(s, next, key);
            if (others.first != keys.first || others.count != keys.count) break;
        }
        if (keys.count == 0) continue;
        if (!s->exact) add_tile_fast(s, row, next - row, keys);
        else for (uint32_t r = row; r < next; r++) add_tile_exact(s, r, keys);
    }
}

static state begin(const hdi_cpu_call *call) {
    state s = { call->spec[HDI_SPEC_EXACT] == 1, call->spec[HDI_ATTENTION_KV_TYPE], call->spec[HDI_ATTENTION_ROWS],
                call->spec[HDI_ATTENTION_WIDTH], call->push[5], exact_from_bits(call->push[6]),
                exact_from_bits(call->push[9]), exact_from_bits(call->push[10]),
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
    s.query = call->scratch;
    s.result = s.query + (size_t)s.rows * s.width;
    s.keys = s.result + (size_t)s.rows * s.width;
    s.values = s.keys + (size_t)TILE * s.width;
    s.lines = s.values + (size_t)TILE * s.width;
    s.weights = s.lines + (size_t)TILE * s.width;
    s.running_sum = s.weights + (size_t)TILE * s.rows;
    s.largest = (int32_t *)(void *)(s.running_sum + s.rows);
    s.from = (uint32_t *)(void *)(s.largest + s.rows);
    s.to = s.from + s.rows;
    /* what lies between D and WIDTH elsewhere reaches no result */
    memset(s.result, 0, sizeof(float) * s.rows * s.width);
    return s;
}

/* The row of k and v that a key of the sequence is (glsl/pages.glsl). */
static uint64_t row_of(const hdi_cpu_call *call, uint32_t batch, uint32_t key) {
    const uint32_t page = call->spec[HDI_ATTENTION_PAGE], S = call->push[2];
    if (page == 0) return (uint64_t)batch * S + key;
    const int32_t number = ((const int32_t *)call->bindings[4])[(uint64_t)batch * (S >> page) + (key >> page)];
    const uint64_t inside = (uint64_t)HDI_MIN(HDI_MAX(number, 0), (int32_t)call->push[7] - 1);
    return (inside << page) + (key & ((1u << page) - 1));
}

HDCPU_KERNEL(attention) {
    (void)group_z;
    const uint32_t B = call->push[0], T = call->push[1], S = call->push[2], Hq = call->push[3], Hkv = call->push[4],
                   D = call->push[5];
    const uint32_t heads = Hq / Hkv, row_count = T * heads, most_rows = call->spec[HDI_ATTENTION_ROWS];
    const uint32_t parts = row_count / most_rows + (row_count % most_rows != 0), group = group_number(group_x, group_y);
    const uint32_t batch = group / parts / Hkv, head = group / parts % Hkv;
    if (batch >= B) return;
    const uint32_t row_first = group % parts * most_rows, rows = HDI_MIN(most_rows, row_count - row_first);
    int64_t before = 0;
    if (call->spec[HDI_ATTENTION_PAST] == 1) before = HDI_MIN(((const int32_t *)call->bindings[3])[batch], (int64_t)S);
    const state s = begin(call);
    uint64_t q_first[64];
    const uint32_t form = call->spec[HDI_ATTENTION_FORM];
    uint32_t least = S, most = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t token = (row_first + r) / heads, h = head * heads + (row_first + r) % heads;
        const int64_t next = before + (int64_t)token + 1,
                      to = call->spec[HDI_ATTENTION_CAUSAL] == 1 ? next : before + (int64_t)T;
        const int64_t from = form & HDI_ATTENTION_WINDOWED ? next - (int64_t)call->push[8] : 0;
        const uint32_t sink = form & HDI_ATTENTION_SINKS ? ((const uint32_t *)call->bindings[5])[h] : 0xFF800000u;
        q_first[r] = (((uint64_t)batch * T + token) * Hq + h) * D;
        s.from[r] = (uint32_t)HDI_MIN(HDI_MAX(from, 0), (int64_t)S);
        s.to[r] = (uint32_t)HDI_MIN(HDI_MAX(to, 0), (int64_t)S);
        s.largest[r] = key_of(sink);
        s.running_sum[r] = sink == 0xFF800000u ? 0.0f : 1.0f;
        hdcpu_load_floats(call->spec[HDI_ATTENTION_TYPE], call->bindings[0], q_first[r], D,
                          s.query + (size_t)r * s.width);
        least = HDI_MIN(least, s.from[r]);
        most = HDI_MAX(most, s.to[r]);
    }
    const uint64_t step = (uint64_t)Hkv * D;
    for (uint32_t key = least / TILE * TILE; key < most; key += TILE) { /* a tile lies in one page */
        const uint64_t first = row_of(call, batch, key) * step + (uint64_t)head * D;
        load_tile(&s, call->bindings[1], call->bindings[2], first, step, HDI_MIN(TILE, most - key));
        add_tile(&s, rows, key);
    }
    for (uint32_t r = 0; r < rows; r++) {
        float *result = s.result + (size_t)r * s.width;
        const float inverse = exact_div(1.0f, s.running_sum[r]);
        for (uint32_t d = 0; d < D; d++) result[d] *= inverse;
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[6], q_first[r], D, result);
    }
}
