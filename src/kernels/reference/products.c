/* products.c: the reference of matrix products, tables, rope and attention, in the orders and with the formulas
 * that abi.h states. Part of reference.c, on which it relies for the rounding of results. */
#include "kernels/cpu/runs.h"
#include "kernels/reference/reference.h"

/* ---- matmul ---- */

/* The first element of matrix `batch` (of the result's) of an operand whose leading axes are broadcast. */
static uint64_t matrix_first(hd_shape from, hd_shape to, uint64_t batch) {
    uint64_t at = 0, step = (uint64_t)(from.dims[from.rank - 1] * from.dims[from.rank - 2]);
    for (uint32_t i = 2; i < from.rank; i++) {
        const uint64_t length = (uint64_t)from.dims[from.rank - 1 - i], whole = (uint64_t)to.dims[to.rank - 1 - i];
        if (length != 1) at += batch % whole * step;
        step *= length;
        batch /= whole;
    }
    return at;
}

/* A row of A, its elements `stride` apart, times a column of blocks along K. */
static float product_of_runs(const float *a, uint64_t stride, uint32_t type, const uint8_t *column, uint64_t K) {
    const uint64_t in_block = hdcpu_block_elements(type) / HDCPU_RUN, runs = K / HDCPU_RUN;
    float total = 0;
    for (uint64_t strand = 0; strand < HDCPU_STRANDS; strand++) {
        float sum = 0;
        for (uint64_t run = strand; run < runs; run += HDCPU_STRANDS) {
            float x[HDCPU_RUN];
            int8_t codes[HDCPU_RUN];
            int32_t weights = 0, mins = 0;
            hdcpu_run b;
            for (uint64_t i = 0; i < HDCPU_RUN; i++) x[i] = a[(run * HDCPU_RUN + i) * stride];
            const float scale = hdcpu_round_run(x, codes);
            hdcpu_run_of(type, column + run / in_block * hdcpu_block_bytes(type), (uint32_t)(run % in_block), &b);
            for (uint32_t i = 0; i < HDCPU_RUN; i++) {
                weights += b.scale[i / 16] * b.codes[i] * codes[i];
                mins += b.min[i / 16] * codes[i];
            }
            sum = sum + hdcpu_run_value(scale, b.d, b.less, HDI_HAS_MIN(type), weights, mins);
        }
        total = total + sum;
    }
    return total;
}

/* A row of A times the column of B, operand 1, whose elements along K lie together from `first` on. */
static float column_product(const reference *r, const float *row, uint64_t stride, uint64_t first, uint64_t K) {
    const hd_dtype type = r->operands[1].dtype;
    const bool chosen = r->node->op == HDI_OP_MATMUL_EXPERTS;
    if (!hdi_dtype_has_whole_codes(type) || (chosen && K < HDI_MM_LEAST_CHOSEN))
        return reference_block_sum(row, stride, r->x[1] + first, 1, K);
    return product_of_runs(row, stride, (uint32_t)type, (const uint8_t *)r->data[1] + hd_dtype_bytes(type, first), K);
}

void reference_matmul(const reference *r) {
    const hd_shape a = r->operands[0].shape, b = r->operands[1].shape, c = r->node->shape;
    const bool swap_a = r->node->attrs.ints[0] & HD_TRANSPOSE_A, swap_b = r->node->attrs.ints[0] & HD_TRANSPOSE_B;
    const uint64_t M = (uint64_t)c.dims[c.rank - 2], N = (uint64_t)c.dims[c.rank - 1];
    const uint64_t K = (uint64_t)a.dims[a.rank - (swap_a ? 2 : 1)], matrices = hd_shape_elements(c) / (M * N);
    for (uint64_t batch = 0; batch < matrices; batch++) {
        const uint64_t first_b = matrix_first(b, c, batch);
        const float *from_a = r->x[0] + matrix_first(a, c, batch);
        for (uint64_t i = 0; i < M * N; i++) {
            const uint64_t m = i / N, n = i % N, a_stride = swap_a ? M : 1;
            const float *row = from_a + m * (swap_a ? 1 : K);
            const float sum = swap_b ? column_product(r, row, a_stride, first_b + n * K, K)
                                     : reference_block_sum(row, a_stride, r->x[1] + first_b + n, N, K);
            r->y[batch * M * N + i] = exact_canonical(sum);
        }
    }
}

void reference_experts(const reference *r) {
    const uint64_t E = reference_dim(r, 1, 0), N = reference_dim(r, 1, 1), K = reference_dim(r, 1, 2),
                   U = reference_dim(r, 2, 1);
    const uint64_t share = r->operands[0].shape.rank == 3 ? 1 : U, pairs = reference_dim(r, 2, 0) * U;
    const int32_t *chosen = r->data[2];
    for (uint64_t i = 0; i < pairs * N; i++) {
        const int32_t expert = chosen[i / N];
        const bool inside = expert >= 0 && (uint64_t)expert < E;
        const uint64_t first = inside ? ((uint64_t)expert * N + i % N) * K : 0;
        r->y[i] = inside ? exact_canonical(column_product(r, r->x[0] + i / N / share * K, 1, first, K)) : 0.0f;
    }
}

/* ---- tables ---- */

void reference_gather(const reference *r) {
    const uint64_t rows = (uint64_t)r->operands[0].shape.dims[0], n = (uint64_t)r->operands[0].shape.dims[1];
    const uint64_t count = hd_shape_elements(r->operands[1].shape);
    const int32_t *indices = r->data[1];
    for (uint64_t i = 0; i < count * n; i++) {
        const int32_t row = indices[i / n];
        const bool inside = row >= 0 && (uint64_t)row < rows;
        const uint64_t from = inside ? (uint64_t)row * n + i % n : 0;
        if (r->y) r->y[i] = inside ? r->x[0][from] : 0.0f;
        else if (r->out->dtype == HD_I32)
            ((int32_t *)r->out->data)[i] = inside ? ((const int32_t *)r->data[0])[from] : 0;
        else ((uint8_t *)r->out->data)[i] = inside ? ((const uint8_t *)r->data[0])[from] : 0;
    }
}

static float scattered(hdi_op op, float a, float b) {
    switch (op) {
    case HDI_OP_SCATTER_MUL: return a * b;
    case HDI_OP_SCATTER_MAX: return reference_larger(a, b);
    case HDI_OP_SCATTER_MIN: return reference_smaller(a, b);
    default: return a + b;
    }
}
static int32_t scattered_i32(hdi_op op, int32_t a, int32_t b) {
    switch (op) {
    case HDI_OP_SCATTER_MUL: return (int32_t)((uint32_t)a * (uint32_t)b);
    case HDI_OP_SCATTER_MAX: return HDI_MAX(a, b);
    case HDI_OP_SCATTER_MIN: return HDI_MIN(a, b);
    default: return (int32_t)((uint32_t)a + (uint32_t)b);
    }
}
void reference_scatter(const reference *r) {
    const uint64_t rows = (uint64_t)r->node->shape.dims[0], n = (uint64_t)r->node->shape.dims[1];
    const uint64_t count = (uint64_t)r->operands[1].shape.dims[0];
    const int32_t *indices = r->data[1];
    int32_t *whole = r->out->data;
    if (r->y) memcpy(r->y, r->x[0], rows * n * sizeof *r->y);
    else memcpy(whole, r->data[0], rows * n * sizeof *whole);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < n && indices[i] >= 0 && (uint64_t)indices[i] < rows; j++) {
            const uint64_t at = (uint64_t)indices[i] * n + j, from = i * n + j;
            if (r->y) r->y[at] = scattered(r->node->op, r->y[at], r->x[2][from]);
            else whole[at] = scattered_i32(r->node->op, whole[at], ((const int32_t *)r->data[2])[from]);
        }
    for (uint64_t i = 0; r->y && i < rows * n; i++) r->y[i] = exact_canonical(r->y[i]);
}

/* ---- rope ---- */

void reference_rope(const reference *r) {
    const hd_shape shape = r->node->shape;
    const hdi_attrs *attrs = &r->node->attrs;
    const uint64_t D = (uint64_t)shape.dims[shape.rank - 1], H = (uint64_t)shape.dims[shape.rank - 2];
    const uint64_t T = (uint64_t)shape.dims[shape.rank - 3], heads = hd_shape_elements(shape) / D;
    const uint32_t dims = (uint32_t)attrs->ints[0];
    const bool neighbours = attrs->ints[1] == HD_ROPE_NEIGHBOURS;
    uint32_t *words = hdi_alloc(&hdi_default_allocator, dims * sizeof *words);
    const float *factors = attrs->factor_count ? attrs->factors : NULL;
    const bool finite = words && hdi_rope_frequencies(attrs->floats[0], attrs->floats[1], factors, dims, words);
    if (!words) hdi_fail(r->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the reference");
    else if (!finite)
        hdi_fail(r->error, HD_STATUS_INVALID_ARGUMENT, "rope's theta, scale or factors give no finite frequency");
    for (uint64_t i = 0; i < heads * D; i++) r->y[i] = exact_canonical(r->x[0][i]);
    for (uint64_t head = 0; finite && head < heads; head++) {
        const int64_t position = ((const int32_t *)r->data[1])[head / H % T];
        for (uint32_t i = 0; i < dims / 2; i++) {
            const uint64_t frequency = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
            const exact_pair turn = exact_sincos_turns((uint32_t)((uint64_t)position * frequency >> 32));
            const float sine = turn.x * attrs->floats[2], cosine = turn.y * attrs->floats[2];
            const uint64_t first = head * D + (neighbours ? 2 * i : i),
                           second = neighbours ? first + 1 : first + dims / 2;
            const float a = r->x[0][first], b = r->x[0][second];
            r->y[first] = exact_canonical(a * cosine + b * -sine);
            r->y[second] = exact_canonical(b * cosine + a * sine);
        }
    }
    hdi_free(&hdi_default_allocator, words, dims * sizeof *words);
}

/* ---- attention ---- */

/* The first element in k and v of a key of the sequence, in its head. */
static uint64_t key_at(const reference *r, uint64_t batch, uint64_t head, uint64_t key) {
    const hd_shape k = r->operands[1].shape;
    const bool paged = r->data[4] != NULL;
    const uint64_t first = paged || k.rank == 4, S = (uint64_t)k.dims[first];
    const uint64_t Hkv = (uint64_t)k.dims[first + 1], D = (uint64_t)k.dims[first + 2];
    uint64_t run = batch; /* of S rows, or of a page's */
    if (paged) {
        const hd_shape table = r->operands[4].shape;
        const int64_t page = ((const int32_t *)r->data[4])[batch * (uint64_t)table.dims[table.rank - 1] + key / S];
        run = (uint64_t)HDI_MIN(HDI_MAX(page, 0), k.dims[0] - 1);
    }
    return ((run * S + key % S) * Hkv + head) * D;
}

/* A query head: where its keys are, which of them it sees, and its sink, -infinity where it has none. */
typedef struct seen { uint64_t batch, head, from, to; float sink; uint64_t query_head, token; } seen;

/* What the mask adds to the score of a key; it broadcasts to [B,Hq,T,S]. */
static float masked(const reference *r, const seen *s, uint64_t key) {
    const uint64_t index[] = { s->batch, s->query_head, s->token, key };
    const hd_shape shape = r->operands[6].shape;
    uint64_t at = 0;
    for (uint32_t i = 0; i < shape.rank; i++)
        at = at * (uint64_t)shape.dims[i] + (shape.dims[i] == 1 ? 0 : index[4 - shape.rank + i]);
    return r->x[6][at];
}

static float score_of(const reference *r, const float *query, uint64_t D, uint64_t key_first) {
    const float scale = r->node->attrs.floats[0], cap = r->node->attrs.floats[1];
    const float score = reference_block_sum(query, 1, r->x[1] + key_first, 1, D) * scale;
    return cap > 0 ? cap * exact_tanh(score * (1.0f / cap)) : score;
}

/* One query over its keys. y is zeros at first. */
static void attend(const reference *r, const seen *s, const float *query, uint64_t D, float *y) {
    const float *values = r->x[2];
    float largest = exact_canonical(s->sink),
          running_sum = exact_bits(largest) == (EXACT_SIGN | EXACT_INF) ? 0.0f : 1.0f;
    for (uint64_t tile = s->from / HDI_ATTENTION_TILE * HDI_ATTENTION_TILE; tile < s->to; tile += HDI_ATTENTION_TILE) {
        const uint64_t first = HDI_MAX(tile, s->from), count = HDI_MIN(s->to, tile + HDI_ATTENTION_TILE) - first;
        float scores[HDI_ATTENTION_TILE], best = largest, sum = 0;
        for (uint64_t key = 0; key < count; key++) {
            scores[key] = score_of(r, query, D, key_at(r, s->batch, s->head, first + key));
            if (r->data[6]) scores[key] = scores[key] + masked(r, s, first + key);
            best = exact_canonical(reference_larger(best, scores[key]));
        }
        /* Where all is -inf so far the weights are to be 0, not NaN. */
        const float base = exact_bits(best) == (EXACT_SIGN | EXACT_INF) ? 0.0f : best;
        const float rescale = exact_exp(largest - base);
        largest = best;
        for (uint64_t key = 0; key < count; key++) {
            scores[key] = exact_exp(scores[key] - base);
            sum = sum + scores[key];
        }
        running_sum = sum + running_sum * rescale;
        for (uint64_t d = 0; d < D; d++) {
            float part = 0;
            for (uint64_t key = 0; key < count; key++)
                part = part + scores[key] * values[key_at(r, s->batch, s->head, first + key) + d];
            y[d] = part + y[d] * rescale;
        }
    }
    const float inverse = exact_div(1.0f, running_sum);
    for (uint64_t d = 0; d < D; d++) y[d] = exact_canonical(y[d] * inverse);
}

void reference_attention(const reference *r) {
    const hd_shape q = r->node->shape, k = r->operands[1].shape;
    const uint32_t at = q.rank - 3;
    const uint64_t B = at ? (uint64_t)q.dims[0] : 1, T = (uint64_t)q.dims[at], Hq = (uint64_t)q.dims[at + 1],
                   D = (uint64_t)q.dims[at + 2];
    const bool paged = r->data[4] != NULL;
    const uint64_t rows = (uint64_t)k.dims[paged || at], Hkv = (uint64_t)k.dims[(paged || at) + 1];
    const uint64_t S = paged ? rows * (uint64_t)r->operands[4].shape.dims[r->operands[4].shape.rank - 1] : rows;
    for (uint64_t row = 0; row < B * T * Hq; row++) {
        const uint64_t batch = row / Hq / T, token = row / Hq % T;
        const int64_t past = r->data[3] ? HDI_MIN(((const int32_t *)r->data[3])[batch], (int64_t)S) : 0;
        const int64_t next = past + (int64_t)token + 1, window = r->node->attrs.ints[1];
        const int64_t to = HDI_MIN(r->node->attrs.ints[0] ? past + (int64_t)T : next, (int64_t)S);
        const float sink = r->data[5] ? r->x[5][row % Hq] : exact_from_bits(EXACT_SIGN | EXACT_INF);
        const int64_t start = r->data[7] ? HDI_MIN(((const int32_t *)r->data[7])[batch * T + token], (int64_t)S) : 0;
        const int64_t end = HDI_MAX(to, 0), from = HDI_MAX(window == 0 ? 0 : next - window, start);
        const seen s = { batch, row % Hq / (Hq / Hkv), (uint64_t)HDI_MIN(HDI_MAX(from, 0), end), (uint64_t)end, sink,
                         row % Hq, token };
        for (uint64_t d = 0; d < D; d++) r->y[row * D + d] = 0;
        attend(r, &s, r->x[0] + row * D, D, r->y + row * D);
    }
}
