/* rows.c: the reference of what sums or searches along an axis: reductions, softmax and its kin, norms. The
 * orders and formulas are those that abi.h states. Part of reference.c, on which it relies for the rounding of
 * results. */
#include "kernels/reference/reference.h"
#include "kernels/random.h"
#include "kernels/sha256.h"

#define LANES 256u

/* Floats in the order -inf .. -0, +0 .. inf, NaN. */
static int32_t key_of(float x) {
    const int32_t magnitude = (int32_t)(exact_bits(x) & ~EXACT_SIGN);
    return exact_is_nan(x) ? INT32_MAX : exact_is_below(x) ? -magnitude - 1 : magnitude;
}
float reference_larger(float a, float b) { return key_of(b) > key_of(a) ? b : a; }
float reference_smaller(float a, float b) {
    return !exact_is_nan(a) && (exact_is_nan(b) || key_of(b) < key_of(a)) ? b : a;
}

static float joined(float a, float b, bool product) { return product ? a * b : a + b; }
static float row_total(const float *values, uint64_t n, bool product) {
    float lanes[LANES];
    for (uint32_t l = 0; l < LANES; l++) lanes[l] = product;
    for (uint64_t i = 0; i < n; i++) lanes[i % LANES] = joined(lanes[i % LANES], values[i], product);
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) lanes[l] = joined(lanes[l], lanes[l + half], product);
    return lanes[0];
}
float reference_row_sum(const float *values, uint64_t n) { return row_total(values, n, false); }

float reference_block_sum(const float *a, uint64_t a_stride, const float *b, uint64_t b_stride, uint64_t n) {
    float total = 0, block = 0;
    for (uint64_t k = 0; k < n; k++) {
        const float term = b ? a[k * a_stride] * b[k * b_stride] : a[k * a_stride];
        block += term;
        if (k % HDI_MM_BLOCK != HDI_MM_BLOCK - 1 && k + 1 != n) continue;
        total += block;
        block = 0;
    }
    return total;
}

/* ---- reductions ---- */

/* A long row's parts are summed first, and their sums are a row again. Overwrites the row. */
static float total_of_parts(float *row, uint64_t n, bool product) {
    if (n <= HDI_REDUCE_PART) return row_total(row, n, product);
    const uint64_t parts = hdi_divide_up(n, HDI_REDUCE_PART);
    for (uint64_t part = 0; part < parts; part++) {
        const uint64_t first = part * HDI_REDUCE_PART;
        row[part] = row_total(row + first, HDI_MIN(n - first, HDI_REDUCE_PART), product);
    }
    return row_total(row, parts, product);
}

/* Of the row or column that begins at element `first`. */
static float reduced(const reference *r, reference_axis axis, uint64_t first) {
    const bool factors = r->x[1] && hd_shape_elements(r->operands[1].shape) < hd_shape_elements(r->operands[0].shape);
    const uint64_t second_at = factors ? first / (axis.n * axis.inner) * axis.n : first;
    const float *x = r->x[0] + first, *second = r->x[1] ? r->x[1] + second_at : NULL;
    float best = x[0], sum;
    if (r->node->op == HDI_OP_MAX || r->node->op == HDI_OP_MIN) {
        for (uint64_t j = 1; j < axis.n; j++) {
            const float value = x[j * axis.inner];
            best = r->node->op == HDI_OP_MAX ? reference_larger(best, value) : reference_smaller(best, value);
        }
        return exact_canonical(best);
    }
    const bool product = r->node->op == HDI_OP_PROD;
    if (axis.inner > 1 && product) {
        float block = 1;
        sum = 1;
        for (uint64_t j = 0; j < axis.n; j++) {
            block *= x[j * axis.inner];
            if (j % HDI_MM_BLOCK != HDI_MM_BLOCK - 1 && j + 1 != axis.n) continue;
            sum *= block;
            block = 1;
        }
    } else if (axis.inner > 1) {
        sum = reference_block_sum(x, axis.inner, second, factors ? 1 : axis.inner, axis.n);
    } else {
        for (uint64_t j = 0; j < axis.n; j++) r->room[j] = second ? x[j] * second[j] : x[j];
        sum = total_of_parts(r->room, axis.n, product);
    }
    return r->node->op == HDI_OP_MEAN ? exact_div(sum, (float)axis.n) : exact_canonical(sum);
}

static void reduce_i32(const reference *r, reference_axis axis) {
    for (uint64_t o = 0; o < axis.outer; o++)
        for (uint64_t i = 0; i < axis.inner; i++) {
            const int32_t *x = (const int32_t *)r->data[0] + o * axis.n * axis.inner + i;
            int32_t y = x[0];
            for (uint64_t j = 1; j < axis.n; j++) {
                const int32_t value = x[j * axis.inner];
                if (r->node->op == HDI_OP_SUM) y = (int32_t)((uint32_t)y + (uint32_t)value); /* wraps */
                else if (r->node->op == HDI_OP_PROD) y = (int32_t)((uint32_t)y * (uint32_t)value);
                else y = r->node->op == HDI_OP_MAX ? HDI_MAX(y, value) : HDI_MIN(y, value);
            }
            ((int32_t *)r->out->data)[o * axis.inner + i] = y;
        }
}

void reference_reduce(const reference *r) {
    const reference_axis axis = reference_axis_of(r->operands[0].shape, (uint32_t)r->node->attrs.ints[0]);
    if (!r->y) reduce_i32(r, axis);
    for (uint64_t o = 0; r->y && o < axis.outer; o++)
        for (uint64_t i = 0; i < axis.inner; i++)
            r->y[o * axis.inner + i] = reduced(r, axis, o * axis.n * axis.inner + i);
}

/* Running sums of one tile of up to LANES elements behind `carry`, which becomes what is before the next one. y NULL:
 * only that. Elements lie `step` apart, which is negative where they are taken from the last on. */
static void scan_tile(const float *x, int64_t step, uint64_t count, bool exclusive, float *carry, float *y) {
    float sums[LANES] = { 0 }, had[LANES];
    for (uint64_t l = 0; l < count; l++) sums[l] = x[(int64_t)l * step];
    for (uint32_t d = 1; d < LANES; d *= 2) {
        memcpy(had, sums, sizeof had);
        for (uint32_t l = d; l < LANES; l++) sums[l] = had[l] + had[l - d];
    }
    for (uint64_t l = 0; y && l < count; l++)
        y[(int64_t)l * step] = exact_canonical(!exclusive ? *carry + sums[l] : l > 0 ? *carry + sums[l - 1] : *carry);
    *carry = *carry + sums[LANES - 1];
}
static float scan(const float *x, int64_t step, uint64_t n, bool exclusive, float carry, float *y) {
    for (uint64_t i = 0; i < n; i += LANES) {
        const int64_t at = (int64_t)i * step;
        scan_tile(x + at, step, HDI_MIN(n - i, LANES), exclusive, &carry, y ? y + at : NULL);
    }
    return carry;
}
/* r->room has as many floats as x has elements: a row's totals, and the running sums of them. */
static void scan_parts(const reference *r, const float *x, int64_t step, uint64_t n, bool exclusive, float *y) {
    const uint64_t parts = hdi_divide_up(n, HDI_CUMSUM_PART);
    float *totals = r->room, *before = totals + parts;
    if (parts == 1) {
        scan(x, step, n, exclusive, 0, y);
        return;
    }
    for (uint64_t part = 0; part < parts; part++)
      totals[part] = scan(x + (int64_t)(part * HDI_CUMSUM_PART) * step, step,
                          HDI_MIN(n - part * HDI_CUMSUM_PART, HDI_CUMSUM_PART),
                          false, 0, NULL);
    scan(totals, 1, parts, true, 0, before);
    for (uint64_t part = 0; part < parts; part++) {
        const int64_t at = (int64_t)(part * HDI_CUMSUM_PART) * step;
        scan(x + at, step, HDI_MIN(n - part * HDI_CUMSUM_PART, HDI_CUMSUM_PART), exclusive, before[part], y + at);
    }
}

void reference_cumsum(const reference *r) {
    const reference_axis axis = reference_axis_of(r->node->shape, (uint32_t)r->node->attrs.ints[0]);
    const bool exclusive = r->node->attrs.ints[1] & 1, reverse = r->node->attrs.ints[1] & 2;
    for (uint64_t row = 0; row < axis.outer * axis.inner; row++) {
        const uint64_t first = row / axis.inner * axis.n * axis.inner + row % axis.inner;
        const uint64_t begin = first + (reverse ? (axis.n - 1) * axis.inner : 0);
        const int64_t step = reverse ? -(int64_t)axis.inner : (int64_t)axis.inner;
        uint32_t sum = 0;
        if (r->y) scan_parts(r, r->x[0] + begin, step, axis.n, exclusive, r->y + begin);
        for (uint64_t i = 0; !r->y && i < axis.n; i++) { /* integers wrap */
            const int64_t at = (int64_t)begin + (int64_t)i * step;
            const uint32_t next = sum + ((const uint32_t *)r->data[0])[at];
            ((uint32_t *)r->out->data)[at] = exclusive ? sum : next;
            sum = next;
        }
    }
}

void reference_hash(const reference *r) {
    const uint64_t bytes = hd_tensor_bytes(r->operands[0].dtype, r->operands[0].shape),
                   pieces = hdi_divide_up(bytes, HDI_HASH_PIECE);
    uint32_t *digests = pieces > 1 ? (uint32_t *)r->room : r->out->data;
    for (uint64_t i = 0; i < pieces; i++)
        sha256_piece((const uint32_t *)r->data[0] + i * HDI_HASH_PIECE / 4,
                     (uint32_t)HDI_MIN(bytes - i * HDI_HASH_PIECE, HDI_HASH_PIECE), false, digests + 8 * i);
    sha256_join(digests, pieces);
    memmove(r->out->data, digests, 32);
}

void reference_random(const reference *r) {
    const uint32_t *key = r->data[0], stream = (uint32_t)r->node->attrs.ints[0];
    const uint64_t count = hd_shape_elements(r->node->shape);
    for (uint64_t i = 0; i < count; i++) {
        const random_words drawn = random_draw(RANDOM_WORDS((uint32_t)(i / 4), stream, key[2], key[3]), key[0], key[1]);
        const uint32_t words[4] = { drawn.a, drawn.b, drawn.c, drawn.d };
        ((uint32_t *)r->out->data)[i] = words[i % 4];
    }
}

/* The element's place in argmax's order. */
static int32_t pick_key(const reference *r, uint64_t at) {
    const int32_t key = r->x[0] ? key_of(r->x[0][at]) : ((const int32_t *)r->data[0])[at];
    return r->x[0] && key == -1 ? 0 : key;
}

/* The first of the largest; NaN is larger than all, -0 as large as +0. */
void reference_argmax(const reference *r) {
    const reference_axis axis = reference_axis_of(r->operands[0].shape, (uint32_t)r->node->attrs.ints[0]);
    for (uint64_t o = 0; o < axis.outer; o++)
        for (uint64_t i = 0; i < axis.inner; i++) {
            int32_t best = 0, best_at = 0;
            for (uint64_t j = 0; j < axis.n; j++) {
                const uint64_t at = (o * axis.n + j) * axis.inner + i;
                const int32_t key = pick_key(r, at);
                if (j > 0 && key <= best) continue;
                best = key;
                best_at = (int32_t)j;
            }
            ((int32_t *)r->out->data)[o * axis.inner + i] = best_at;
        }
}

/* Each element in turn goes behind those of the list that are as large or larger; what falls off its end is out. */
void reference_top_k(const reference *r) {
    const hd_shape shape = r->operands[0].shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n,
                   k = (uint64_t)r->node->attrs.ints[0];
    for (uint64_t row = 0; row < rows; row++) {
        int32_t *list = (int32_t *)r->out->data + row * k;
        for (uint64_t j = 0; j < n; j++) {
            const int32_t key = pick_key(r, row * n + j);
            uint64_t at = HDI_MIN(j, k);
            for (; at > 0 && pick_key(r, row * n + (uint64_t)list[at - 1]) < key; at--)
                if (at < k) list[at] = list[at - 1];
            if (at < k) list[at] = (int32_t)j;
        }
    }
}

/* ---- softmax and its kin ---- */

/* room = e^(x - max) of a row of n elements that lie `step` apart; gives their sum and the maximum. */
static float exponentials(const reference *r, const float *x, uint64_t step, uint64_t n, float *out_largest) {
    float largest = exact_canonical(x[0]);
    for (uint64_t j = 1; j < n; j++) largest = exact_canonical(reference_larger(largest, x[j * step]));
    for (uint64_t j = 0; j < n; j++) r->room[j] = exact_exp(x[j * step] - largest);
    *out_largest = largest;
    return reference_row_sum(r->room, n);
}

/* A row that is too long for the kernel: the sum is a reduction's, by which each is divided. */
static void softmax_long(const reference *r, const float *x, uint64_t step, uint64_t n, float *y) {
    float largest;
    exponentials(r, x, step, n, &largest);
    const float sum = exact_canonical(total_of_parts(r->room, n, false)), log_sum = exact_log(sum);
    for (uint64_t j = 0; j < n; j++) {
        const float below = x[j * step] - largest;
        y[j * step] =
            exact_canonical(r->node->op == HDI_OP_SOFTMAX ? exact_div(exact_exp(below), sum) : below - log_sum);
    }
}

void reference_softmax(const reference *r) {
    const reference_axis axis = reference_axis_of(r->node->shape, (uint32_t)r->node->attrs.ints[0]);
    for (uint64_t o = 0; o < axis.outer; o++)
        for (uint64_t i = 0; i < axis.inner; i++) {
            const uint64_t first = o * axis.n * axis.inner + i;
            const float *x = r->x[0] + first;
            if (axis.n > HDI_ROW_SOFTMAX_WHOLE) {
                softmax_long(r, x, axis.inner, axis.n, r->y + first);
                continue;
            }
            float largest;
            const float sum = exponentials(r, x, axis.inner, axis.n, &largest), scale = exact_div(1.0f, sum),
                        log_sum = exact_log(sum);
            for (uint64_t j = 0; j < axis.n; j++) {
                const float y =
                    r->node->op == HDI_OP_SOFTMAX ? r->room[j] * scale : (x[j * axis.inner] - largest) - log_sum;
                r->y[first + j * axis.inner] = exact_canonical(y);
            }
        }
}

void reference_cross_entropy(const reference *r) {
    const hd_shape shape = r->operands[0].shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const float *x = r->x[0] + row * n;
        const int32_t target = ((const int32_t *)r->data[1])[row];
        float largest;
        const float log_sum = exact_log(exponentials(r, x, 1, n, &largest));
        const bool inside = target >= 0 && (uint64_t)target < n;
        r->y[row] =
            target < 0 ? 0.0f : exact_canonical(inside ? log_sum - (x[target] - largest) : exact_from_bits(EXACT_NAN));
    }
}

void reference_cross_entropy_gradient(const reference *r) {
    const uint64_t n = reference_dim(r, 0, r->operands[0].shape.rank - 1), rows = hd_shape_elements(r->node->shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const int32_t target = ((const int32_t *)r->data[1])[row];
        float largest;
        const float scale = exact_div(1.0f, exponentials(r, r->x[0] + row * n, 1, n, &largest));
        for (uint64_t j = 0; j < n; j++) {
            const float share = r->room[j] * scale, slope = (int64_t)j == target ? share + -1.0f : share;
            r->y[row * n + j] = target < 0 ? 0.0f : exact_canonical(slope * r->x[2][row]);
        }
    }
}

/* ---- norms ---- */

/* What a row is normalised by: (x - mean) * scale, where scale is one over the root of `spread`. */
typedef struct row_facts { float mean, spread, scale; } row_facts;
static row_facts row_facts_of(const reference *r, const float *x, uint64_t n, bool centred) {
    row_facts facts = { .mean = centred ? exact_div(reference_row_sum(x, n), (float)n) : 0.0f };
    for (uint64_t j = 0; j < n; j++) r->room[j] = (x[j] - facts.mean) * (x[j] - facts.mean);
    facts.spread = exact_div(reference_row_sum(r->room, n), (float)n) + r->node->attrs.floats[0];
    facts.scale = exact_rsqrt(facts.spread);
    return facts;
}

void reference_norm(const reference *r) {
    const hd_shape shape = r->node->shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const float *x = r->x[0] + row * n;
        const row_facts facts = row_facts_of(r, x, n, r->node->op == HDI_OP_LAYER_NORM);
        for (uint64_t j = 0; j < n; j++) {
            float y = (x[j] - facts.mean) * facts.scale;
            if (r->x[1]) y = y * r->x[1][j];
            if (r->x[2]) y = y + r->x[2][j];
            r->y[row * n + j] = exact_canonical(y);
        }
    }
}

void reference_norm_gradient(const reference *r) {
    const bool centred = r->node->attrs.ints[0] != 0;
    const uint64_t n = reference_dim(r, 0, r->node->shape.rank - 1), rows = hd_shape_elements(r->node->shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const float *x = r->x[0] + row * n, *dy = r->x[1] + row * n;
        float *y = r->y + row * n; /* dy * weight first */
        const row_facts facts = row_facts_of(r, x, n, centred);
        const float root = exact_sqrt(facts.spread);
        for (uint64_t j = 0; j < n; j++) {
            y[j] = r->x[2] ? dy[j] * r->x[2][j] : dy[j];
            r->room[j] = y[j] * ((x[j] - facts.mean) * facts.scale);
        }
        const float along = reference_row_sum(r->room, n) * (float)(1.0 / (double)n),
                    level = centred ? exact_div(reference_row_sum(y, n), (float)n) : 0.0f;
        for (uint64_t j = 0; j < n; j++) {
            const float normal = (x[j] - facts.mean) * facts.scale, h = centred ? y[j] - level : y[j];
            y[j] = exact_canonical(exact_div(h - normal * along, root));
        }
    }
}

void reference_norm_sums(const reference *r) {
    const hd_shape shape = r->operands[0].shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    const bool centred = r->node->attrs.ints[0] != 0;
    for (uint64_t row = rows; row-- > 0;) { /* what a row is normalised by takes the first row's room */
        const float *x = r->x[0] + row * n;
        const row_facts facts = row_facts_of(r, x, n, centred);
        for (uint64_t j = 0; j < n; j++) r->room[row * n + j] = (x[j] - facts.mean) * facts.scale;
    }
    for (uint64_t j = 0; j < n; j++) {
        r->y[j] = exact_canonical(reference_block_sum(r->x[1] + j, n, r->room + j, n, rows));
        r->y[n + j] = exact_canonical(reference_block_sum(r->x[1] + j, n, NULL, 0, rows));
    }
}
