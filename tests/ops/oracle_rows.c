/* oracle_rows.c: float64 references of what sums along an axis, of rope and of attention. See oracle.h. */
#include "oracle.h"
#include <math.h>
#include <stdlib.h>

/* Elements before, along and after an axis. */
typedef struct axis { uint64_t outer, n, inner; } axis;
static axis axis_of(hd_shape shape, int64_t which) {
    axis a = { 1, 1, 1 };
    for (int64_t i = 0; i < shape.rank; i++)
        *(i < which ? &a.outer : i == which ? &a.n : &a.inner) *= (uint64_t)shape.dims[i];
    return a;
}

/* How many roundings a term meets at most in exact mode: 256 lanes and a tree, a part of 65536 at a time. */
static double row_depth(uint64_t n, bool in_parts) {
    const uint64_t part = in_parts ? HDI_MIN(n, 65536) : n;
    double depth = ceil((double)part / 256) + 8;
    if (in_parts && n > part) depth += ceil(ceil((double)n / 65536) / 256) + 8;
    return depth;
}

/* ---- reductions ---- */

static bool better(hdi_op op, double value, double best) {
    if (isnan(best)) return false;
    return isnan(value) || (op == HDI_OP_MIN ? value < best : value > best);
}

/* Each rounding moves the product by half an ulp of what it is then, or by what lies between subnormal numbers. */
static void set_product(const oracle_tensor *x, uint64_t first, axis a, oracle_tensor *out, uint64_t at) {
    double product = 1, most = 1;
    uint32_t wrapped = 1;
    for (uint64_t j = 0; j < a.n; j++) {
        const double factor = x->value[first + j * a.inner];
        product *= factor;
        if (isfinite(factor)) most = fmax(most, fabs(factor));
        if (out->dtype == HD_I32) wrapped *= (uint32_t)(int32_t)factor;
    }
    if (out->dtype == HD_I32) out->value[at] = (double)(int32_t)wrapped;
    else oracle_set(out, at, product, (double)a.n * (2 * ORACLE_U * fabs(product) + 0x1p-125), (double)a.n * (ORACLE_U * fabs(product) * 1.01 + 0x1p-149));
    if (most > 1e3) out->error[ORACLE_FAST][at] = out->error[ORACLE_EXACT][at] = INFINITY; /* may leave f32 on the way */
}

void oracle_reduce(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const oracle_tensor *x = operands[0];
    const axis a = axis_of(x->shape, node->attrs.ints[0]);
    const bool dot = node->op == HDI_OP_DOT, mean = node->op == HDI_OP_MEAN;
    const bool factors = dot && hd_shape_elements(operands[1]->shape) < hd_shape_elements(x->shape);
    const double depth = a.inner > 1 ? (double)HDI_MIN(a.n, 32) + ceil((double)a.n / 32) : row_depth(a.n, true);
    for (uint64_t i = 0; i < a.outer * a.inner; i++) {
        const uint64_t first = i / a.inner * a.n * a.inner + i % a.inner;
        double sum = 0, sizes = 0, best = x->value[first], moved[ORACLE_MODES] = { 0 };
        uint64_t best_at = 0;
        for (uint64_t j = 0; j < a.n; j++) {
            const uint64_t at = first + j * a.inner;
            const double term = dot ? x->value[at] * operands[1]->value[factors ? i / a.inner * a.n + j : at] : x->value[at];
            sum += term;
            if (isfinite(term)) sizes += fabs(term);
            for (int mode = 0; mode < ORACLE_MODES; mode++) moved[mode] += x->error[mode][at];
            if (!better(node->op, x->value[at], best)) continue;
            best = x->value[at];
            best_at = j;
        }
        if (node->op == HDI_OP_PROD) {
            set_product(x, first, a, out, i);
            continue;
        }
        const double scale = mean ? 1 / (double)a.n : 1, w = sum * scale;
        if (node->op == HDI_OP_MAX || node->op == HDI_OP_MIN) out->value[i] = best;
        else if (node->op == HDI_OP_ARGMAX) out->value[i] = (double)best_at;
        else if (out->dtype == HD_I32) {
            const double turns = floor(sum / 0x1p32);
            out->value[i] = sum - turns * 0x1p32;
            if (out->value[i] >= 0x1p31) out->value[i] -= 0x1p32;
        } else {
            oracle_set(out, i, w, 2 * (double)a.n * ORACLE_U * sizes * scale + oracle_ulp(w),
                       (depth + (dot ? 1 : 0)) * ORACLE_U * sizes * scale + (mean ? 0.5 * oracle_ulp(w) : 0));
            for (int mode = 0; mode < ORACLE_MODES; mode++) {
                out->error[mode][i] += moved[mode] * scale;
                if (sizes > 0x1p127) out->error[mode][i] = INFINITY; /* f32 may overflow on the way */
            }
        }
    }
}

void oracle_cumsum(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const oracle_tensor *x = operands[0];
    const axis a = axis_of(x->shape, node->attrs.ints[0]);
    const bool exclusive = node->attrs.ints[1] & HD_CUMSUM_EXCLUSIVE, reverse = node->attrs.ints[1] & HD_CUMSUM_REVERSE;
    const double parts = ceil((double)a.n / 4096), depth = 8 + 17 + (parts > 1 ? 17 + 8 + ceil(parts / 256) : 0);
    for (uint64_t i = 0; i < a.outer * a.inner; i++) {
        double sum = 0, sizes = 0;
        uint32_t wrapped = 0;
        for (uint64_t j = 0; j < a.n; j++) {
            const uint64_t at = i / a.inner * a.n * a.inner + i % a.inner + (reverse ? a.n - 1 - j : j) * a.inner;
            const double before = sum;
            const uint32_t wrapped_before = wrapped;
            sum += x->value[at];
            if (isfinite(x->value[at])) sizes += fabs(x->value[at]);
            const double w = exclusive ? before : sum;
            if (out->dtype != HD_I32) oracle_set(out, at, w, 2 * (double)a.n * ORACLE_U * sizes + oracle_ulp(w), depth * ORACLE_U * sizes);
            if (sizes > 0x1p127) out->error[ORACLE_FAST][at] = out->error[ORACLE_EXACT][at] = INFINITY; /* f32 may overflow on the way */
            if (out->dtype != HD_I32) continue;
            wrapped += (uint32_t)(int32_t)x->value[at];
            out->value[at] = (double)(int32_t)(exclusive ? wrapped_before : wrapped);
        }
    }
}

/* All of a row sorted: NaN, then the larger, then who stands first. */
static const double *sorted_row;
static int by_rank(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    const double v = sorted_row[x], w = sorted_row[y];
    if (isnan(v) != isnan(w)) return isnan(v) ? -1 : 1;
    if (v > w || v < w) return v > w ? -1 : 1;
    return x < y ? -1 : 1;
}
void oracle_top_k(const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint32_t last = out->shape.rank - 1;
    const uint64_t n = (uint64_t)operands[0]->shape.dims[last], k = (uint64_t)out->shape.dims[last];
    uint64_t *order = malloc(n * sizeof *order);
    if (!order) abort();
    for (uint64_t row = 0; row < hd_shape_elements(out->shape) / k; row++) {
        for (uint64_t i = 0; i < n; i++) order[i] = i;
        sorted_row = operands[0]->value + row * n;
        qsort(order, n, sizeof *order, by_rank);
        for (uint64_t i = 0; i < k; i++) out->value[row * k + i] = (double)order[i];
    }
    free(order);
}

/* ---- digests ---- */

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

/* SHA-256 of a message that has 72 bytes of room behind it. */
static void sha256(uint8_t *message, uint64_t bytes, uint8_t digest[32]) {
    uint32_t k[64], state[8], w[64];
    for (uint32_t i = 0, prime = 2; i < 64; prime++) { /* the first 32 bits of the fractions of roots of primes */
        uint32_t divisor = 2;
        while (divisor * divisor <= prime && prime % divisor) divisor++;
        if (divisor * divisor <= prime) continue;
        k[i] = (uint32_t)(uint64_t)(cbrtl(prime) * 0x1p32L);
        if (i < 8) state[i] = (uint32_t)(uint64_t)(sqrtl(prime) * 0x1p32L);
        i++;
    }
    const uint64_t padded = (bytes + 9 + 63) / 64 * 64;
    memset(message + bytes, 0, padded - bytes);
    message[bytes] = 0x80;
    for (int i = 0; i < 8; i++) message[padded - 1 - (uint64_t)i] = (uint8_t)(bytes * 8 >> 8 * i);
    for (uint64_t at = 0; at < padded; at += 64) {
        uint32_t s[8];
        memcpy(s, state, sizeof s);
        for (int t = 0; t < 64; t++) {
            const uint8_t *b = message + at + 4 * t;
            if (t < 16) w[t] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
            else
                w[t] = w[t - 16] + w[t - 7] + (turn(w[t - 15], 7) ^ turn(w[t - 15], 18) ^ w[t - 15] >> 3) +
                       (turn(w[t - 2], 17) ^ turn(w[t - 2], 19) ^ w[t - 2] >> 10);
            const uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[t] + w[t];
            const uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            for (int i = 7; i > 0; i--) s[i] = s[i - 1];
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(state[i / 4] >> (24 - i % 4 * 8));
}

/* Of unquantised types without NaN, whose bytes the values tell. */
void oracle_hash(const oracle_tensor *x, oracle_tensor *out) {
    const uint64_t each = hdi_dtype(x->dtype).block_bytes, count = hd_shape_elements(x->shape);
    uint64_t bytes = count * each;
    uint8_t *data = malloc(bytes + 32), message[1024 + 1 + 72], digest[32];
    if (!data) abort();
    for (uint64_t i = 0; i < count; i++) oracle_store(x->dtype, x->value[i], data + i * each);
    for (uint8_t mark = 0; mark == 0 || bytes > 32; mark = 1) {
        const uint64_t pieces = (bytes + 1023) / 1024;
        for (uint64_t i = 0; i < pieces; i++) {
            const uint64_t part = i + 1 < pieces ? 1024 : bytes - i * 1024;
            memcpy(message, data + i * 1024, part);
            message[part] = mark;
            if (mark && part == 32) memcpy(digest, message, 32);
            else sha256(message, part + 1, digest);
            memcpy(data + i * 32, digest, 32);
        }
        bytes = pieces * 32;
    }
    for (int i = 0; i < 8; i++)
        out->value[i] = (double)(int32_t)((uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 | (uint32_t)data[4 * i + 2] << 8 | data[4 * i + 3]);
    free(data);
}

/* ---- softmax and its kin ---- */

/* The largest of a row and ln(sum of e^(x - largest)). */
static double log_sum(const double *x, uint64_t n, uint64_t step, double *out_largest) {
    double largest = -INFINITY, sum = 0;
    for (uint64_t j = 0; j < n; j++) largest = isnan(x[j * step]) || x[j * step] > largest ? x[j * step] : largest;
    for (uint64_t j = 0; j < n; j++) sum += exp(x[j * step] - largest);
    *out_largest = largest;
    return log(sum);
}

void oracle_softmax(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const axis a = axis_of(out->shape, node->attrs.ints[0]);
    const double terms = (double)a.n, depth = row_depth(a.n, false);
    for (uint64_t i = 0; i < a.outer * a.inner; i++) {
        const uint64_t first = i / a.inner * a.n * a.inner + i % a.inner;
        double largest;
        const double total = log_sum(operands[0]->value + first, a.n, a.inner, &largest);
        for (uint64_t j = 0; j < a.n; j++) {
            const uint64_t at = first + j * a.inner;
            const double below = operands[0]->value[at] - largest, far = fabs(below), log_w = below - total, w = exp(log_w);
            if (node->op == HDI_OP_SOFTMAX)
                oracle_set(out, at, w, w * (2 * terms * ORACLE_U + 0x1p-20 * (1 + far)), isnan(w) || w == 0 ? 0x1p-149 : w * ORACLE_U * (depth + 8 + far) + 0x1p-149);
            else
                oracle_set(out, at, log_w, 0x1p-20 * (1 + far + fabs(total)), ORACLE_U * (depth + 4 + 3 * far + fabs(total)));
            if (isinf(below)) out->value[at] = node->op == HDI_OP_SOFTMAX ? (isnan(w) ? w : 0) : log_w;
        }
    }
}

void oracle_cross_entropy(const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape shape = operands[0]->shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const double *x = operands[0]->value + row * n, target = operands[1]->value[row];
        const bool inside = target >= 0 && target < (double)n;
        double largest;
        const double total = log_sum(x, n, 1, &largest), far = inside ? fabs(x[(uint64_t)target] - largest) : 0;
        const double w = inside ? total - (x[(uint64_t)target] - largest) : target < 0 ? 0 : (double)NAN;
        oracle_set(out, row, w, 0x1p-20 * (1 + far + fabs(total)), ORACLE_U * (row_depth(n, false) + 4 + 3 * far + fabs(total)));
        if (target < 0) out->error[ORACLE_FAST][row] = out->error[ORACLE_EXACT][row] = 0;
    }
}

void oracle_cross_entropy_gradient(const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape shape = out->shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const double *x = operands[0]->value + row * n, target = operands[1]->value[row], dy = operands[2]->value[row];
        double largest;
        const double total = log_sum(x, n, 1, &largest), size = fabs(dy);
        for (uint64_t j = 0; j < n; j++) {
            const double far = fabs(x[j] - largest), share = exp(x[j] - largest - total), one = (double)j == target;
            const double w = target < 0 ? 0 : (share - one) * dy;
            oracle_set(out, row * n + j, w, size * (share * (2 * (double)n * ORACLE_U + 0x1p-20 * (1 + far)) + one * ORACLE_U) + oracle_ulp(w),
                       size * (share * ORACLE_U * (row_depth(n, false) + 8 + far) + one * ORACLE_U) + oracle_ulp(w));
            if (target < 0) out->error[ORACLE_FAST][row * n + j] = out->error[ORACLE_EXACT][row * n + j] = 0;
        }
    }
}

/* ---- norms ---- */

/* What a row is normalised by, and how far off (x - mean) * scale may be as a share of (|x| + most) * scale. */
typedef struct row_facts { double mean, scale, most, off[ORACLE_MODES]; } row_facts;
static row_facts facts_of(const hdi_node *node, const double *x, uint64_t n) {
    row_facts facts = { .off = { 0x1p-20 + 2 * (double)n * ORACLE_U, (2 * row_depth(n, false) + 8) * ORACLE_U } };
    double sum = 0, squares = 0;
    for (uint64_t j = 0; j < n; j++) sum += x[j], facts.most = fmax(facts.most, fabs(x[j]));
    facts.mean = node->attrs.ints[0] ? sum / (double)n : 0;
    for (uint64_t j = 0; j < n; j++) squares += (x[j] - facts.mean) * (x[j] - facts.mean);
    facts.scale = 1 / sqrt(squares / (double)n + (double)node->attrs.floats[0]);
    return facts;
}

void oracle_norm_gradient(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t n = (uint64_t)out->shape.dims[out->shape.rank - 1], rows = hd_shape_elements(out->shape) / n;
    for (uint64_t row = 0; row < rows; row++) {
        const double *x = operands[0]->value + row * n, *dy = operands[1]->value + row * n;
        const row_facts f = facts_of(node, x, n);
        double along = 0, level = 0, largest = 0;
        for (uint64_t j = 0; j < n; j++) {
            const double h = dy[j] * (operands[2] ? operands[2]->value[j] : 1);
            along += h * (x[j] - f.mean) * f.scale / (double)n;
            level += node->attrs.ints[0] ? h / (double)n : 0;
            largest = fmax(largest, fabs(h));
        }
        for (uint64_t j = 0; j < n; j++) {
            const double h = dy[j] * (operands[2] ? operands[2]->value[j] : 1), normal = (x[j] - f.mean) * f.scale;
            const double w = (h - level - normal * along) * f.scale;
            const double size = 4 * f.scale * largest * (1 + fabs(normal)) * (1 + 2 * f.most * f.scale);
            oracle_set(out, row * n + j, w, size * f.off[ORACLE_FAST] + oracle_ulp(w), size * f.off[ORACLE_EXACT] + oracle_ulp(w));
        }
    }
}

void oracle_norm_sums(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t n = (uint64_t)out->shape.dims[1], rows = hd_shape_elements(operands[0]->shape) / n;
    const double deep[ORACLE_MODES] = { 2 * (double)rows, 36 + (double)rows / 32 };
    for (uint64_t j = 0; j < n; j++) {
        double sums[2] = { 0 }, sizes[2] = { 0 }, off[ORACLE_MODES] = { 0 };
        for (uint64_t row = 0; row < rows; row++) {
            const double *x = operands[0]->value + row * n, dy = operands[1]->value[row * n + j];
            const row_facts f = facts_of(node, x, n);
            const double terms[] = { dy * (x[j] - f.mean) * f.scale, dy };
            for (int k = 0; k < 2; k++) sums[k] += terms[k], sizes[k] += fabs(terms[k]);
            for (int mode = 0; mode < ORACLE_MODES; mode++) off[mode] += fabs(dy) * f.off[mode] * (fabs(x[j]) + f.most) * f.scale;
        }
        for (uint64_t k = 0; k < 2; k++)
            oracle_set(out, k * n + j, sums[k], deep[0] * ORACLE_U * sizes[k] + (k ? 0 : off[0]) + oracle_ulp(sums[k]),
                       deep[1] * ORACLE_U * sizes[k] + (k ? 0 : off[1]) + oracle_ulp(sums[k]));
    }
}

void oracle_norm(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape shape = out->shape;
    const uint64_t n = (uint64_t)shape.dims[shape.rank - 1], rows = hd_shape_elements(shape) / n;
    const bool layer = node->op == HDI_OP_LAYER_NORM;
    const double terms = (double)n, depth = row_depth(n, false);
    for (uint64_t row = 0; row < rows; row++) {
        const double *x = operands[0]->value + row * n;
        double sum = 0, squares = 0, most = 0;
        for (uint64_t j = 0; j < n; j++) sum += x[j], most = fmax(most, fabs(x[j]));
        const double mean = layer ? sum / terms : 0;
        for (uint64_t j = 0; j < n; j++) squares += (x[j] - mean) * (x[j] - mean);
        const double scale = 1 / sqrt(squares / terms + (double)node->attrs.floats[0]);
        for (uint64_t j = 0; j < n; j++) {
            const double weight = operands[1] ? operands[1]->value[j] : 1, bias = layer && operands[2] ? operands[2]->value[j] : 0;
            const double normal = (x[j] - mean) * scale * weight, w = normal + bias;
            if (layer) {
                const double size = (fabs(x[j]) + most) * scale * fabs(weight);
                oracle_set(out, row * n + j, w, 0x1p-20 * size + oracle_ulp(w) + oracle_ulp(normal), (2 * depth + 8) * ORACLE_U * size + oracle_ulp(w));
            } else {
                oracle_set(out, row * n + j, w, fabs(w) * (0x1p-20 + terms * ORACLE_U) + oracle_ulp(w), fabs(w) * (0.5 * depth + 4) * ORACLE_U + 0.5 * oracle_ulp(w));
            }
        }
    }
}

/* ---- rope ---- */

void oracle_rope(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape shape = out->shape;
    const hdi_attrs *attrs = &node->attrs;
    const uint64_t D = (uint64_t)shape.dims[shape.rank - 1], H = (uint64_t)shape.dims[shape.rank - 2], T = (uint64_t)shape.dims[shape.rank - 3];
    const uint64_t dims = (uint64_t)attrs->ints[0], count = hd_shape_elements(shape);
    const long double turn = 2 * acosl(-1.0L);
    for (uint64_t at = 0; at < count; at++) {
        const uint64_t d = at % D, head = at - d;
        out->value[at] = operands[0]->value[at]; /* what does not turn */
        if (d >= dims) continue;
        const bool neighbours = attrs->ints[1] == HD_ROPE_NEIGHBOURS, is_second = neighbours ? d % 2 == 1 : d >= dims / 2;
        const uint64_t i = neighbours ? d / 2 : d % (dims / 2);
        const double a = operands[0]->value[head + (neighbours ? 2 * i : i)], b = operands[0]->value[head + (neighbours ? 2 * i + 1 : i + dims / 2)];
        long double frequency = (long double)attrs->floats[1] * powl((long double)attrs->floats[0], -2.0L * (long double)i / (long double)dims);
        if (attrs->factor_count) frequency /= (long double)attrs->factors[i];
        const long double turns = frequency / turn * (long double)operands[1]->value[at / D / H % T];
        const double angle = (double)((turns - floorl(turns)) * turn), magnitude = (double)attrs->floats[2];
        const double w = magnitude * (is_second ? b * cos(angle) + a * sin(angle) : a * cos(angle) - b * sin(angle));
        const double length = hypot(a, b) * fabs(magnitude);
        oracle_set(out, at, w, 0x1p-20 * length, 5 * ORACLE_U * length);
    }
}

/* ---- attention ---- */

/* Where key s of a sequence of S lies: a page outside of the pool stands for the nearest one inside. */
static uint64_t row_of_key(const oracle_tensor *pages, hd_shape k, uint64_t batch, uint64_t S, uint64_t s) {
    if (!pages) return batch * S + s;
    const uint64_t R = (uint64_t)k.dims[1];
    const double page = fmin(fmax(pages->value[batch * (S / R) + s / R], 0), (double)k.dims[0] - 1);
    return (uint64_t)page * R + s % R;
}

/* What a mask that broadcasts to [B,Hq,T,S] has for a key. */
static double mask_at(const oracle_tensor *mask, uint64_t batch, uint64_t head, uint64_t token, uint64_t key) {
    const uint64_t of_scores[] = { key, token, head, batch };
    uint64_t at = 0, step = 1;
    for (uint32_t i = 0; i < mask->shape.rank; i++) {
        const uint64_t length = (uint64_t)mask->shape.dims[mask->shape.rank - 1 - i];
        if (length > 1) at += of_scores[i] * step;
        step *= length;
    }
    return mask->value[at];
}

void oracle_attention(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape q = out->shape, k = operands[1]->shape;
    const oracle_tensor *pages = operands[4];
    const uint32_t first = q.rank - 3, kv_first = pages ? 1 : first;
    const uint64_t T = (uint64_t)q.dims[first], Hq = (uint64_t)q.dims[first + 1], D = (uint64_t)q.dims[first + 2];
    const uint64_t R = (uint64_t)k.dims[kv_first], Hkv = (uint64_t)k.dims[kv_first + 1], rows = hd_shape_elements(q) / D;
    const uint64_t S = pages ? R * (uint64_t)pages->shape.dims[pages->shape.rank - 1] : R; /* without pages a sequence has one of its own */
    const double scale = (double)node->attrs.floats[0], cap = (double)node->attrs.floats[1], deep = (double)D;
    const double window = (double)node->attrs.ints[1];
    const hd_dtype of_keys = operands[1]->dtype;
    const bool narrow = node->attrs.ints[2] && (of_keys == HD_F32 || of_keys == HD_BF16); /* all that is multiplied may be rounded */
    const bool keys_round = narrow || hdi_dtype_is_quantised(of_keys); /* blocks become f16 */
    const bool halves = of_keys == HD_F16 || keys_round, q_rounds = halves && operands[0]->dtype != HD_F16; /* weights; queries too */
    const double round = narrow ? 0x1p-8 : 0x1p-11;
    oracle_tensor room = oracle_new(HD_F32, HD_SHAPE((int64_t)S + 1));
    double *scores = room.value; /* and the sink */
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t batch = row / Hq / T, token = row / Hq % T, head = row % Hq / (Hq / Hkv);
        const double past = operands[3] ? fmin(operands[3]->value[batch], (double)S) : 0, next = past + (double)token + 1;
        const double seen = fmin(fmax(node->attrs.ints[0] ? past + (double)T : next, 0), (double)S);
        const double start = operands[7] ? operands[7]->value[batch * T + token] : 0;
        const uint64_t from = (uint64_t)fmin(fmax(fmax(window > 0 ? next - window : 0, start), 0), seen), visible = (uint64_t)seen - from;
        double sizes = 0, largest, farthest = 0, slack = 0;
        for (uint64_t s = 0; s < visible; s++) {
            const double *key = operands[1]->value + (row_of_key(pages, k, batch, S, from + s) * Hkv + head) * D, *query = operands[0]->value + row * D;
            double size = 0, shift = 0;
            for (uint64_t d = 0; d < D && q_rounds; d++)
                shift += fabs(key[d] * scale) * (fmax(fabs(query[d]) * round, 0x1p-25) + fmax(fabs(query[d]) - 65504, 0));
            for (uint64_t d = 0; d < D && keys_round; d++) shift += 1.01 * fabs(query[d] * scale) * fmax(fabs(key[d]) * round, 0x1p-25);
            slack = fmax(slack, shift);
            scores[s] = 0;
            for (uint64_t d = 0; d < D; d++) scores[s] += query[d] * key[d] * scale, size += fabs(query[d] * key[d] * scale);
            sizes = fmax(sizes, size);
            if (cap > 0) scores[s] = cap * tanh(scores[s] / cap);
            if (!operands[6]) continue;
            const double added = mask_at(operands[6], batch, row % Hq, token, from + s);
            if (isfinite(added)) sizes = fmax(sizes, size + fabs(added));
            scores[s] += added;
        }
        const uint64_t terms = visible + (operands[5] != NULL);
        if (operands[5]) scores[visible] = operands[5]->value[row % Hq];
        const double total = log_sum(scores, terms, 1, &largest);
        for (uint64_t s = 0; s < terms; s++) /* what is hidden has no part in the result */
            if (isfinite(scores[s])) farthest = fmax(farthest, fabs(scores[s] - largest));
        for (uint64_t d = 0; d < D; d++) {
            double w = terms && isfinite(largest) ? 0 : (double)NAN, spread = 0, lost = 0;
            for (uint64_t s = 0; s < visible; s++) {
                const double value = operands[2]->value[(row_of_key(pages, k, batch, S, from + s) * Hkv + head) * D + d], term = exp(scores[s] - largest - total) * value;
                w += term;
                spread += fabs(term);
                if (halves) lost += fabs(term) * (keys_round ? 2.01 : 1) * round + fabs(value) * 0x1p-25 * exp(-total);
            }
            const double many = (double)visible, rounds = (double)HDI_MIN(D, 32) + ceil(deep / 32) + 2, tiles = ceil(many / 32);
            const double fast = 4 * deep * ORACLE_U * sizes + 0x1p-20 * (2 + farthest + 2 * cap) + 4 * many * ORACLE_U;
            const double exact = ORACLE_U * (2 * rounds * sizes + 2 * farthest + 64 + 8 * tiles + 8 + 8 * cap);
            oracle_set(out, row * D + d, w, spread * (fast + expm1(2 * slack)) + lost + oracle_ulp(w), spread * exact + 0x1p-140);
        }
    }    oracle_free(&room);
}

/* What one query row gives to dq, and to dk and dv of its key head; `bound` gets what each may be off by, relative to the
 * row's largest terms: those of weights, of their gradients, and of sums. */
typedef struct row_gradient {
    const double *q, *k, *v, *y, *dy;
    double *dq, *dk, *dv, *off_dq, *off_dk, *off_dv;
    uint64_t seen, step, D; /* step: from a key to the next */
    double scale, share;    /* of the rounding of one operation that a sum is off by */
    double round;           /* what is multiplied is off by, too, relative to itself */
} row_gradient;
static void of_row(const row_gradient *g, double *weights) {
    double sizes = 0, along = 0, along_size = 0, farthest = 0, largest;
    for (uint64_t s = 0; s < g->seen; s++) {
        double size = 0;
        weights[s] = 0;
        for (uint64_t d = 0; d < g->D; d++) {
            weights[s] += g->q[d] * g->k[s * g->step + d] * g->scale;
            size += fabs(g->q[d] * g->k[s * g->step + d] * g->scale);
        }
        sizes = fmax(sizes, size);
    }
    for (uint64_t d = 0; d < g->D; d++) along += g->dy[d] * g->y[d], along_size += fabs(g->dy[d] * g->y[d]);
    const double total = log_sum(weights, g->seen, 1, &largest);
    for (uint64_t s = 0; s < g->seen; s++) farthest = fmax(farthest, fabs(weights[s] - largest));
    const double deep = (double)g->D, many = (double)g->seen;
    const double two = 2.01 * g->round, share = g->share + two;
    const double of_weight =
        4 * deep * ORACLE_U * sizes + 0x1p-20 * (2 + farthest) + 4 * many * ORACLE_U + expm1(2 * two * sizes);
    for (uint64_t s = 0; s < g->seen; s++) {
        const double weight = exp(weights[s] - largest - total);
        double product = 0, product_size = 0;
        for (uint64_t d = 0; d < g->D; d++) {
            product += g->dy[d] * g->v[s * g->step + d];
            product_size += fabs(g->dy[d] * g->v[s * g->step + d]);
        }
        const double gradient = weight * (product - along) * g->scale;
        const double off = weight * fabs(g->scale) * ((product_size + along_size) * (4 * deep * ORACLE_U + of_weight + two));
        for (uint64_t d = 0; d < g->D; d++) {
            g->dq[d] += gradient * g->k[s * g->step + d];
            g->dk[s * g->step + d] += gradient * g->q[d];
            g->dv[s * g->step + d] += weight * g->dy[d];
            g->off_dq[d] += (off + share * fabs(gradient)) * fabs(g->k[s * g->step + d]);
            g->off_dk[s * g->step + d] += (off + share * fabs(gradient)) * fabs(g->q[d]);
            g->off_dv[s * g->step + d] += (of_weight + share) * weight * fabs(g->dy[d]);
        }
    }
}

/* The gradient, and what each element may be off by where what is multiplied is rounded so far. */
static void all_rows(const hdi_node *node, const oracle_tensor *const *operands, double round, oracle_tensor *out, double *off) {
    const hd_shape q = operands[0]->shape, k = operands[1]->shape;
    const uint32_t first = q.rank - 3;
    const uint64_t T = (uint64_t)q.dims[first], Hq = (uint64_t)q.dims[first + 1], D = (uint64_t)q.dims[first + 2];
    const uint64_t S = (uint64_t)k.dims[first], Hkv = (uint64_t)k.dims[first + 1], rows = hd_shape_elements(q) / D;
    const uint64_t of_q = hd_shape_elements(q), of_k = hd_shape_elements(k);
    oracle_tensor weights = oracle_new(HD_F32, HD_SHAPE((int64_t)S));
    for (uint64_t i = 0; i < of_q + 2 * of_k; i++) out->value[i] = 0;
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t batch = row / Hq / T, token = row / Hq % T, head = row % Hq / (Hq / Hkv);
        const double start = operands[5] ? fmax(operands[5]->value[batch * T + token], 0) : 0;
        const uint64_t from = (uint64_t)start, to = node->attrs.ints[0] ? T : token + 1;
        if (from >= to) continue; /* it sees no key */
        const uint64_t at = row * D, key = ((batch * S + from) * Hkv + head) * D;
        const row_gradient g = {
            operands[0]->value + at, operands[1]->value + key, operands[2]->value + key, operands[3]->value + at,
            operands[4]->value + at, out->value + at, out->value + of_q + key, out->value + of_q + of_k + key,
            off + at, off + of_q + key, off + of_q + of_k + key,
            to - from, Hkv * D, D, (double)node->attrs.floats[0],
            4 * (double)(S + T * (Hq / Hkv)) * ORACLE_U, round };
        of_row(&g, weights.value);
    }
    oracle_free(&weights);
}

void oracle_attention_gradient(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    oracle_tensor fast = oracle_new(HD_F32, out->shape), exact = oracle_new(HD_F32, out->shape);
    all_rows(node, operands, node->attrs.ints[2] ? 0x1p-8 : 0, out, fast.value);
    all_rows(node, operands, 0, out, exact.value);
    for (uint64_t i = 0; i < count; i++) {
        const double least = oracle_ulp(out->value[i]) + 0x1p-140;
        oracle_set(out, i, out->value[i], fast.value[i] + least, exact.value[i] + least);
    }
    oracle_free(&fast);
    oracle_free(&exact);
}
