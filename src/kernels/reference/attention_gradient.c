/* attention_gradient.c: the reference of attention's gradient, in the order that abi.h states. Part of reference.c. */
#include "kernels/reference/reference.h"

enum { TILE = HDI_ATTENTION_TILE };

/* A key head of a sequence. */
typedef struct key_head {
    const reference *r;
    uint64_t T, S, heads, D, q_step, k_step; /* query heads of it; from a token to the next */
    uint64_t q_first, k_first;
    bool     causal;
    const int32_t *starts; /* of its sequence; NULL: none */
    float    scale;
    float   *dq, *dk, *dv; /* as long as q and k */
} key_head;

/* What is known of a query row. */
typedef struct row_facts { float largest, inverse, along; } row_facts;

static uint64_t query_at(const key_head *h, uint64_t row) {
    return h->q_first + row / h->heads * h->q_step + row % h->heads * h->D;
}
static uint64_t key_at(const key_head *h, uint64_t key) { return h->k_first + key * h->k_step; }
static uint64_t seen_by(const key_head *h, uint64_t row) {
    return h->causal ? row / h->heads + 1 : h->T; /* of S, which is T or more */
}
static uint64_t seen_from(const key_head *h, uint64_t row) {
    const int32_t start = h->starts ? h->starts[row / h->heads] : 0;
    return start > 0 ? (uint64_t)start : 0;
}
static float score_of(const key_head *h, uint64_t row, uint64_t key) {
    return reference_block_sum(h->r->x[0] + query_at(h, row), 1, h->r->x[1] + key_at(h, key), 1, h->D) * h->scale;
}
/* The gradient of a weight. */
static float product_of(const key_head *h, uint64_t row, uint64_t key) {
    return reference_block_sum(h->r->x[4] + query_at(h, row), 1, h->r->x[2] + key_at(h, key), 1, h->D);
}

static row_facts of_row(const key_head *h, uint64_t row) {
    const uint64_t at = query_at(h, row), from = seen_from(h, row), seen = seen_by(h, row);
    const bool sees_none = from >= seen; /* its y is NaN */
    const float along = sees_none ? 0 : reference_block_sum(h->r->x[4] + at, 1, h->r->x[3] + at, 1, h->D);
    float *dq = h->dq + at, largest = exact_from_bits(EXACT_SIGN | EXACT_INF), base = 0, running_sum = 0;
    for (uint64_t d = 0; d < h->D; d++) dq[d] = 0;
    for (uint64_t tile = from / TILE * TILE; tile < seen; tile += TILE) {
        const uint64_t first = HDI_MAX(from, tile) - tile, count = HDI_MIN(TILE, seen - tile);
        float weights[TILE], best = largest, sum = 0;
        for (uint64_t j = first; j < count; j++) {
            weights[j] = score_of(h, row, tile + j);
            best = exact_canonical(reference_larger(best, weights[j]));
        }
        base = exact_bits(best) == (EXACT_SIGN | EXACT_INF) ? 0.0f : best;
        const float rescale = exact_exp(largest - base);
        largest = best;
        for (uint64_t j = first; j < count; j++) {
            weights[j] = exact_exp(weights[j] - base);
            sum = sum + weights[j];
            weights[j] = weights[j] * (product_of(h, row, tile + j) - along);
        }
        running_sum = sum + running_sum * rescale;
        for (uint64_t d = 0; d < h->D; d++) {
            float part = 0;
            for (uint64_t j = first; j < count; j++) part = part + weights[j] * h->r->x[1][key_at(h, tile + j) + d];
            dq[d] = part + dq[d] * rescale;
        }
    }
    const row_facts facts = { base, sees_none ? 0 : exact_div(1.0f, running_sum), along };
    for (uint64_t d = 0; d < h->D; d++) dq[d] = exact_canonical(dq[d] * facts.inverse * h->scale);
    return facts;
}

/* Adds what the `count` rows of a tile give to one key. */
static void add_tile(const key_head *h, uint64_t tile, uint64_t count, const row_facts *facts, uint64_t key) {
    const uint64_t at = key_at(h, key);
    float weights[TILE], gradients[TILE];
    for (uint64_t j = 0; j < count; j++) {
        weights[j] = gradients[j] = 0;
        if (key < seen_from(h, tile + j) || key >= seen_by(h, tile + j)) continue;
        weights[j] = exact_exp(score_of(h, tile + j, key) - facts[j].largest) * facts[j].inverse;
        gradients[j] = weights[j] * (product_of(h, tile + j, key) - facts[j].along);
    }
    for (uint64_t d = 0; d < h->D; d++) {
        float of_key = 0, of_value = 0;
        for (uint64_t j = 0; j < count; j++) {
            of_key = of_key + gradients[j] * h->r->x[0][query_at(h, tile + j) + d];
            of_value = of_value + weights[j] * h->r->x[4][query_at(h, tile + j) + d];
        }
        h->dk[at + d] = of_key + h->dk[at + d];
        h->dv[at + d] = of_value + h->dv[at + d];
    }
}

static void of_head(const key_head *h) {
    const uint64_t rows = h->T * h->heads;
    for (uint64_t key = 0; key < h->S; key++)
        for (uint64_t d = 0; d < h->D; d++) h->dk[key_at(h, key) + d] = h->dv[key_at(h, key) + d] = 0;
    for (uint64_t tile = 0; tile < rows; tile += TILE) {
        const uint64_t count = HDI_MIN(TILE, rows - tile);
        row_facts facts[TILE];
        for (uint64_t j = 0; j < count; j++) facts[j] = of_row(h, tile + j);
        for (uint64_t key = 0; key < h->S; key++) add_tile(h, tile, count, facts, key);
    }
    for (uint64_t key = 0; key < h->S; key++)
        for (uint64_t d = 0; d < h->D; d++) {
            float *of_key = h->dk + key_at(h, key) + d, *of_value = h->dv + key_at(h, key) + d;
            *of_key = exact_canonical(*of_key * h->scale);
            *of_value = exact_canonical(*of_value);
        }
}

void reference_attention_gradient(const reference *r) {
    const hd_shape q = r->operands[0].shape, k = r->operands[1].shape;
    const uint32_t at = q.rank - 3;
    const uint64_t B = at ? (uint64_t)q.dims[0] : 1, T = (uint64_t)q.dims[at], S = (uint64_t)k.dims[at],
                   Hq = (uint64_t)q.dims[at + 1], Hkv = (uint64_t)k.dims[at + 1], D = (uint64_t)q.dims[at + 2];
    float *dk = r->y + B * T * Hq * D, *dv = dk + B * S * Hkv * D;
    const int32_t *starts = r->data[5];
    for (uint64_t pair = 0; pair < B * Hkv; pair++) {
        const uint64_t batch = pair / Hkv, head = pair % Hkv, heads = Hq / Hkv;
        const key_head h = { r, T, S, heads, D, Hq * D, Hkv * D, (batch * T * Hq + head * heads) * D,
                             (batch * S * Hkv + head) * D, r->node->attrs.ints[0] == 0,
                             starts ? starts + batch * T : NULL, r->node->attrs.floats[0], r->y, dk, dv };
        of_head(&h);
    }
}
