/* attention.c: glsl/attention.comp for a CPU. A group has ROWS query rows that share a key head, so each tile of 32
 * keys and values is read and converted once for all of them. The keys of a tile lie side by side in vectors, so that
 * each key's products are added in order. Fast mode takes several query rows at once, and fuses products and sums; many
 * rows over f16 it gives to tiles of bf16 where the processor has them (attention_bf16.h), which know finite numbers
 * only: where there are others, the group begins again without them. */
#include "kernels/cpu/attention_bf16.h"
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
    const float *mask;           /* what is added to scores; NULL: nothing. Of each query row its first element */
    uint32_t *masked, mask_key;  /* and from one key to the next */
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

static void mask_scores(const state *s, uint32_t row, uint32_t first, uint32_t count, float *scores) {
    for (uint32_t key = 0; key < count && s->mask; key++)
        scores[key] += s->mask[s->masked[row] + (first + key) * s->mask_key];
}

/* Scores of `count` keys from `first` on become weights; how the row's result so far is to be scaled. */
static float weigh(const state *s, uint32_t row, uint32_t first, uint32_t count, float *scores, float *weights) {
    cap_scores(s, scores, count);
    mask_scores(s, row, first, count, scores);
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

/* One query row over the tile from key `tile` on, of which it sees `keys`. */
static void add_tile_exact(const state *s, uint32_t row, uint32_t tile, seen keys) {
    float scores[TILE], weights[TILE];
    make_scores(s, s->query + (size_t)row * s->width, scores);
    const float rescale = weigh(s, row, tile + keys.first, keys.count, scores + keys.first, weights);
    add_values(s, weights, keys, rescale, s->result + (size_t)row * s->width);
}

/* ---- fast ---- */

/* Up to AT_ONCE query rows over the tile from key `tile` on, of which they all see `keys`. */
static inline __attribute__((always_inline)) void add_rows(const state *s, const uint32_t rows, uint32_t row,
                                                           uint32_t tile, seen keys) {
    static const float none[AT_ONCE] = { 0 };
    const size_t width = s->width;
    float *weights = s->weights, rescale[AT_ONCE];
    memset(weights, 0, rows * TILE * sizeof *weights);
    multiply(rows, s->D, s->query + row * width, width, s->keys, TILE, none, weights, TILE);
    for (uint32_t r = 0; r < rows; r++) {
        float scores[TILE];
        for (uint32_t key = 0; key < TILE; key++) scores[key] = weights[r * TILE + key] * s->scale;
        rescale[r] = weigh(s, row + r, tile + keys.first, keys.count, scores + keys.first, weights + r * TILE);
    }
    const float *values = s->values + keys.first * width;
    for (size_t begin = 0; begin < width; begin += 32)
        multiply(rows, keys.count, weights, TILE, values + begin, width, rescale, s->result + row * width + begin,
                 width);
}

/* The same for any number of rows. */
static void add_tile_fast(const state *s, uint32_t row, uint32_t rows, uint32_t tile, seen keys) {
    while (rows > 0) {
        const uint32_t now = rows >= AT_ONCE ? AT_ONCE : rows >= 4 && AT_ONCE > 4 ? 4 : 1;
        if (now == AT_ONCE) add_rows(s, AT_ONCE, row, tile, keys);
        else if (now == 4) add_rows(s, AT_ONCE > 4 ? 4 : 1, row, tile, keys);
        else add_rows(s, 1, row, tile, keys);
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
        if (!s->exact) add_tile_fast(s, row, next - row, key, keys);
        else for (uint32_t r = row; r < next; r++) add_tile_exact(s, r, key, keys);
    }
}

static state begin(const hdi_cpu_call *call, float *scratch) {
    state s = { call->spec[HDI_SPEC_EXACT] == 1, call->spec[HDI_ATTENTION_KV_TYPE], call->spec[HDI_ATTENTION_ROWS],
                call->spec[HDI_ATTENTION_WIDTH], call->push[5], exact_from_bits(call->push[6]),
                exact_from_bits(call->push[9]), exact_from_bits(call->push[10]),
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, call->push[14] };
    if (call->spec[HDI_ATTENTION_FORM] & HDI_ATTENTION_MASKED) s.mask = call->bindings[6];
    s.query = scratch;
    s.result = s.query + (size_t)s.rows * s.width;
    s.keys = s.result + (size_t)s.rows * s.width;
    s.values = s.keys + (size_t)TILE * s.width;
    s.lines = s.values + (size_t)TILE * s.width;
    s.weights = s.lines + (size_t)TILE * s.width;
    s.running_sum = s.weights + (size_t)TILE * s.rows;
    s.largest = (int32_t *)(void *)(s.running_sum + s.rows);
    s.from = (uint32_t *)(void *)(s.largest + s.rows);
    s.to = s.from + s.rows;
    s.masked = s.to + s.rows;
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

/* A group: query rows of a key head, and the keys that they see between them. */
typedef struct group {
    const hdi_cpu_call *call;
    uint32_t batch, head, rows, least, most;
    uint64_t step;                         /* elements from a key to the next */
    uint64_t q_first[HDCPU_ATTENTION_ROWS];
} group;

/* The first element of key `key`; up to the next multiple of HDI_ATTENTION_TILE they lie in one page. */
static uint64_t keys_at(const group *g, uint32_t key) {
    return row_of(g->call, g->batch, key) * g->step + (uint64_t)g->head * g->call->push[5];
}

static void add_all(const group *g, const state *s) {
    for (uint32_t key = g->least / TILE * TILE; key < g->most; key += TILE) {
        load_tile(s, g->call->bindings[1], g->call->bindings[2], keys_at(g, key), g->step,
                  HDI_MIN(TILE, g->most - key));
        add_tile(s, g->rows, key);
    }
}

/* ---- tiles of bf16 ---- */

static tiles tiles_of(const state *s, uint32_t *scratch) {
    const uint32_t rows = hdcpu_attention_rows(s->rows), D = s->D;
    tiles t = { .width = D, .steps = D / 32, .queries = scratch };
    t.keys = t.queries + (size_t)rows * D;
    t.values = t.keys + (size_t)KEYS * D;
    t.weights = t.values + (size_t)KEYS * D;
    t.scores = (float *)(void *)(t.weights + KEYS * PAIR);
    t.result = t.scores + KEYS * PAIR;
    t.largest = t.result + (size_t)rows * D;
    t.sum = t.largest + rows;
    t.rescale = t.sum + rows;
    t.from = (int32_t *)(void *)(t.rescale + rows);
    t.to = t.from + rows;
    return t;
}

#if HDCPU_LEVEL >= 3 && defined(__AMX_TILE__)
/* False: not all numbers are finite. */
static bool add_all_tiles(const group *g, const state *s, const tiles *t) {
    const uint32_t rows = hdcpu_attention_rows(g->rows);
    memset(t->result, 0, sizeof(float) * rows * t->width);
    for (uint32_t r = 0; r < rows; r++) {
        t->from[r] = r < g->rows ? (int32_t)s->from[r] : 0;
        t->to[r] = r < g->rows ? (int32_t)s->to[r] : 0;
        t->largest[r] = r < g->rows ? float_of_key(s->largest[r]) : NEVER;
        t->sum[r] = r < g->rows ? s->running_sum[r] : 0.0f;
    }
    for (uint32_t row = 0; row < rows; row += PAIR) {
        const float *of_pair[PAIR] = { NULL };
        for (uint32_t r = row; r < row + PAIR && r < g->rows; r++) of_pair[r - row] = s->query + (size_t)r * s->width;
        if (!take_queries(t, of_pair, s->scale, t->queries + (size_t)row * t->width)) return false;
    }
    for (uint32_t key = g->least / TILE * TILE; key < g->most; key += KEYS) {
        const uint32_t count = HDI_MIN((uint32_t)KEYS, g->most - key);
        for (uint32_t at = 0; at < count; at += TILE) {
            const uint64_t first = keys_at(g, key + at), words = (uint64_t)at * t->width;
            const uint32_t here = HDI_MIN(TILE, count - at);
            if (!take_keys(t, (const uint16_t *)g->call->bindings[1] + first, g->step, here, t->keys + words) ||
                !take_values(t, (const uint16_t *)g->call->bindings[2] + first, g->step, here, t->values + words))
                return false;
        }
        bf16_begin_tiles();
        add_keys(t, rows, key, count);
        bf16_end_tiles();
    }
    return true;
}
#else
static bool add_all_tiles(const group *g, const state *s, const tiles *t) {
    (void)g;
    (void)s;
    (void)t;
    return false;
}
#endif

/* ---- a group ---- */

/* What each row is and sees. */
static void begin_rows(group *g, const state *s, uint32_t row_first, int64_t before) {
    const hdi_cpu_call *call = g->call;
    const uint32_t T = call->push[1], S = call->push[2], Hq = call->push[3], heads = Hq / call->push[4],
                   form = call->spec[HDI_ATTENTION_FORM];
    for (uint32_t r = 0; r < g->rows; r++) {
        const uint32_t token = (row_first + r) / heads, h = g->head * heads + (row_first + r) % heads;
        const int64_t next = before + (int64_t)token + 1,
                      to = call->spec[HDI_ATTENTION_CAUSAL] == 1 ? next : before + (int64_t)T;
        const int64_t in_window = form & HDI_ATTENTION_WINDOWED ? next - (int64_t)call->push[8] : 0;
        const int64_t start =
            form & HDI_ATTENTION_STARTS ? ((const int32_t *)call->bindings[4])[(uint64_t)g->batch * T + token] : 0;
        const int64_t from = HDI_MAX(in_window, start);
        const uint32_t sink = form & HDI_ATTENTION_SINKS ? ((const uint32_t *)call->bindings[5])[h] : 0xFF800000u;
        g->q_first[r] = (((uint64_t)g->batch * T + token) * Hq + h) * s->D;
        s->from[r] = (uint32_t)HDI_MIN(HDI_MAX(from, 0), (int64_t)S);
        s->to[r] = (uint32_t)HDI_MIN(HDI_MAX(to, 0), (int64_t)S);
        s->masked[r] = g->batch * call->push[11] + h * call->push[12] + token * call->push[13];
        s->largest[r] = key_of(sink);
        s->running_sum[r] = sink == 0xFF800000u ? 0.0f : 1.0f;
        hdcpu_load_floats(call->spec[HDI_ATTENTION_TYPE], call->bindings[0], g->q_first[r], s->D,
                          s->query + (size_t)r * s->width);
        g->least = HDI_MIN(g->least, s->from[r]);
        g->most = HDI_MAX(g->most, s->to[r]);
    }
}

HDCPU_KERNEL(attention) {
    (void)group_z;
    const uint32_t B = call->push[0], T = call->push[1], S = call->push[2], Hq = call->push[3], Hkv = call->push[4],
                   D = call->push[5];
    const uint32_t heads = Hq / Hkv, row_count = T * heads, most_rows = call->spec[HDI_ATTENTION_ROWS];
    const uint32_t parts = row_count / most_rows + (row_count % most_rows != 0);
    const uint32_t number = group_number(group_x, group_y);
    const bool by_tiles = (call->spec[HDI_ATTENTION_FORM] & HDCPU_ATTENTION_TILES) != 0;
    group g = { .call = call, .batch = number / parts / Hkv, .head = number / parts % Hkv, .least = S,
                .step = (uint64_t)Hkv * D };
    if (g.batch >= B) return;
    const uint32_t row_first = number % parts * most_rows;
    g.rows = HDI_MIN(most_rows, row_count - row_first);
    int64_t before = 0;
    if (call->spec[HDI_ATTENTION_PAST] == 1)
        before = HDI_MIN(((const int32_t *)call->bindings[3])[g.batch], (int64_t)S);
    const state s = begin(call, (float *)call->scratch + (by_tiles ? hdcpu_attention_tiles_words(most_rows, D) : 0));
    begin_rows(&g, &s, row_first, before);
    const tiles t = tiles_of(&s, call->scratch);
    const bool done = by_tiles && add_all_tiles(&g, &s, &t);
    if (!done) add_all(&g, &s);
    for (uint32_t r = 0; r < g.rows; r++) {
        float *result = done ? t.result + (size_t)r * t.width : s.result + (size_t)r * s.width;
        const float inverse = exact_div(1.0f, done ? t.sum[r] : s.running_sum[r]);
        for (uint32_t d = 0; d < D; d++) result[d] *= inverse;
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[7], g.q_first[r], D, result);
    }
}
