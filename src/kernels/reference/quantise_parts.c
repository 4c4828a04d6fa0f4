/* quantise_parts.c: blocks of 256 values in parts, whose scales have few bits themselves. Scales of parts are sought
 * for the smallest weighted square of the error; then the codes are chosen anew, for the scales as they are kept. */
#include "kernels/reference/quantise_parts.h"

enum { BLOCK = 256, MOST_PART = 32 };

/* ---- the scale of a part: codes -most .. most - 1 ---- */

/* Scale and weighted square of the best fit at codes. */
typedef struct fit { float cross, square; } fit;
static fit fit_signed(const float *x, const float *weights, int n, float inverse, int most, int *codes) {
    fit f = { 0, 0 };
    for (int i = 0; i < n; i++) {
        codes[i] = quantise_within(quantise_nearest(inverse * x[i]), -most, most - 1);
        const float w = weights[i], l = (float)codes[i];
        f.cross += w * x[i] * l;
        f.square += w * l * l;
    }
    return f;
}

static void keep(const int *codes, int n, int most, uint8_t *out_codes) {
    for (int i = 0; i < n; i++) out_codes[i] = (uint8_t)(codes[i] + most);
}

/* Of 19 scales around the one that takes the largest value to the last code. Codes, by `most` larger than they are, are
 * given too: they stay where a part's scale is kept as 0. */
float quantise_signed_scale(const float *x, const float *weights, int n, int most, uint8_t *out_codes) {
    const float largest = quantise_largest(x, n);
    int codes[MOST_PART];
    for (int i = 0; i < n; i++) out_codes[i] = 0;
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    fit f = fit_signed(x, weights, n, -(float)most / largest, most, codes);
    float scale = f.square != 0 ? f.cross / f.square : 0, best = scale * f.cross;
    keep(codes, n, most, out_codes);
    for (int step = -9; step <= 9; step++) {
        if (step == 0) continue;
        f = fit_signed(x, weights, n, -((float)most + 0.1f * (float)step) / largest, most, codes);
        if (!(f.square > 0 && f.cross * f.cross > best * f.square)) continue;
        keep(codes, n, most, out_codes);
        scale = f.cross / f.square;
        best = scale * f.cross;
    }
    return scale;
}

/* Codes from the largest value's scale, then moved one at a time while that makes the fit better. */
static float moved_scale(const float *x, const float *weights, int n, int most, uint8_t *out_codes) {
    const float largest = quantise_largest(x, n);
    int codes[MOST_PART];
    memset(out_codes, 0, (size_t)n);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    fit f = fit_signed(x, weights, n, -(float)most / largest, most, codes);
    for (int turn = 0, changed = 1; turn < 5 && changed; turn++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            const float w = weights[i], old = (float)codes[i];
            float cross = f.cross - w * x[i] * old, square = f.square - w * old * old;
            if (!(cross > 0)) continue;
            const int code = quantise_within(quantise_nearest(x[i] * square / cross), -most, most - 1);
            if (code == codes[i]) continue;
            cross += w * x[i] * (float)code;
            square += w * (float)code * (float)code;
            if (!(square > 0 && cross * cross * f.square > f.cross * f.cross * square)) continue;
            codes[i] = code;
            f = (fit){ cross, square };
            changed = 1;
        }
    }
    keep(codes, n, most, out_codes);
    return f.square > 0 ? f.cross / f.square : 0;
}

/* ---- scale and min of a part: codes 0 .. most ---- */

static float error_of(const quantise_search *s, const float *x, const float *weights, const int *codes, float scale,
                      float min) {
    float error = 0;
    for (int i = 0; i < s->n; i++) {
        float diff = scale * (float)codes[i] + min - x[i];
        diff = s->by_size ? fabsf(diff) : diff * diff;
        error += weights[i] * diff;
    }
    return error;
}

float quantise_scale_and_less(const quantise_search *s, const float *x, const float *weights, float *out_less,
                              uint8_t *out_codes) {
    float min = x[0], max = x[0], sum_w = weights[0], sum_x = sum_w * x[0];
    int codes[MOST_PART];
    for (int i = 1; i < s->n; i++) {
        if (x[i] < min) min = x[i];
        if (x[i] > max) max = x[i];
        sum_w += weights[i];
        sum_x += weights[i] * x[i];
    }
    if (min > 0) min = 0;
    *out_less = -min;
    memset(out_codes, 0, (size_t)s->n);
    if (max == min) return 0;
    float inverse = (float)s->most / (max - min), scale = 1 / inverse;
    for (int i = 0; i < s->n; i++) codes[i] = quantise_within(quantise_nearest(inverse * (x[i] - min)), 0, s->most);
    float best = error_of(s, x, weights, codes, scale, min);
    keep(codes, s->n, 0, out_codes);
    for (int step = 0; step <= s->steps; step++) {
        float sum_l = 0, sum_l2 = 0, sum_xl = 0;
        inverse = (s->first + s->step * (float)step + (float)s->most) / (max - min);
        for (int i = 0; i < s->n; i++) {
            codes[i] = quantise_within(quantise_nearest(inverse * (x[i] - min)), 0, s->most);
            const float l = (float)codes[i], w = weights[i];
            sum_l += w * l;
            sum_l2 += w * l * l;
            sum_xl += w * l * x[i];
        }
        const float determinant = sum_w * sum_l2 - sum_l * sum_l;
        if (!(determinant > 0)) continue;
        float try_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant,
              try_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
        if (try_min > 0) {
            try_min = 0;
            try_scale = sum_xl / sum_l2;
        }
        const float error = error_of(s, x, weights, codes, try_scale, try_min);
        if (!(error < best)) continue;
        best = error;
        scale = try_scale;
        min = try_min;
        keep(codes, s->n, 0, out_codes);
    }
    *out_less = -min;
    return scale;
}

/* ---- q2_k, q4_k, q5_k ---- */

/* Scales and mins of all parts; weights are sizes of the values, and with `rms` the part's root mean square on top. */
typedef struct parts {
    float   scales[16], lesses[16], scale, less; /* the last two: the largest ones */
    uint8_t codes[BLOCK];
} parts;
static void find_parts(const quantise_search *s, bool rms, const float *x, parts *out) {
    out->scale = out->less = 0;
    for (int part = 0; part < BLOCK / s->n; part++, x += s->n) {
        float weights[MOST_PART] = { 0 }, square = 0;
        for (int i = 0; i < s->n; i++) square += x[i] * x[i];
        const float root = rms ? sqrtf(square / (float)s->n) : 0;
        for (int i = 0; i < s->n; i++) weights[i] = root + fabsf(x[i]);
        out->scales[part] = quantise_scale_and_less(s, x, weights, &out->lesses[part], out->codes + part * s->n);
        if (out->scales[part] > out->scale) out->scale = out->scales[part];
        if (out->lesses[part] > out->less) out->less = out->lesses[part];
    }
}

/* Codes of a part for its scale as it is kept. */
static void choose_codes(const float *x, int n, float scale, float less, int most, uint8_t *codes) {
    for (int i = 0; i < n && scale != 0; i++)
        codes[i] = (uint8_t)quantise_within(quantise_nearest((x[i] + less) / scale), 0, most);
}

/* Scales and mins of all parts as they are kept, in codes up to `high`, and the values' codes anew. */
static void keep_parts(const quantise_search *s, bool rms, int high, const float *x, quantise_block *out) {
    parts p;
    find_parts(s, rms, x, &p);
    const float by_scale = p.scale > 0 ? (float)high / p.scale : 0, by_less = p.less > 0 ? (float)high / p.less : 0;
    out->d = quantise_rounded(p.scale / (float)high);
    out->less = quantise_rounded(p.less / (float)high);
    memcpy(out->codes, p.codes, sizeof out->codes);
    for (int i = 0; i < BLOCK / s->n; i++) {
        out->scales[i] = quantise_within((uint8_t)quantise_nearest(by_scale * p.scales[i]), 0, high);
        out->lesses[i] = quantise_within((uint8_t)quantise_nearest(by_less * p.lesses[i]), 0, high);
        choose_codes(x + s->n * i, s->n, out->d * (float)out->scales[i], out->less * (float)out->lesses[i], s->most,
                     out->codes + s->n * i);
    }
}

/* Codes of 2 bits, four neighbours 32 apart to a byte. */
static void put_twos(const uint8_t *codes, uint8_t *out) {
    for (int i = 0; i < 64; i++) {
        const uint8_t *four = codes + i / 32 * 128 + i % 32;
        out[i] = (uint8_t)((four[0] & 3) | (four[32] & 3) << 2 | (four[64] & 3) << 4 | (four[96] & 3) << 6);
    }
}

void quantise_put_q2_k(const quantise_block *b, uint8_t *out) {
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(b->scales[i] | b->lesses[i] << 4);
    quantise_put_half(b->d, out + 80);
    quantise_put_half(b->less, out + 82);
    put_twos(b->codes, out + 16);
}

void hdi_quantise_q2_k(const float *x, uint8_t *out) {
    static const quantise_search s = {
        .n = 16, .most = 3, .steps = 15, .first = -0.5f, .step = 0.1f, .by_size = true
    };
    quantise_block b;
    keep_parts(&s, false, 15, x, &b);
    quantise_put_q2_k(&b, out);
}

/* The head of q4_k and q5_k: d, the mins' and 8 pairs of 6 bits in 12 bytes. */
static void put_pairs(const quantise_block *block, uint8_t *out) {
    uint8_t *pairs = out + 4;
    quantise_put_half(block->d, out);
    quantise_put_half(block->less, out + 2);
    for (int i = 0; i < 8; i++) {
        const int a = block->scales[i], b = block->lesses[i];
        if (i < 4) {
            pairs[i] = (uint8_t)a;
            pairs[i + 4] = (uint8_t)b;
        } else {
            pairs[i + 4] = (uint8_t)((a & 15) | (b & 15) << 4);
            pairs[i - 4] |= (uint8_t)(a >> 4 << 6);
            pairs[i] |= (uint8_t)(b >> 4 << 6);
        }
    }
}

void quantise_put_q4_k(const quantise_block *b, uint8_t *out) {
    put_pairs(b, out);
    for (int i = 0; i < 128; i++) {
        const uint8_t *pair = b->codes + i / 32 * 64 + i % 32;
        out[16 + i] = (uint8_t)(pair[0] | pair[32] << 4);
    }
}

void hdi_quantise_q4_k(const float *x, uint8_t *out) {
    static const quantise_search s = { .n = 32, .most = 15, .steps = 20, .first = -1.f, .step = 0.1f };
    quantise_block b;
    keep_parts(&s, true, 63, x, &b);
    quantise_put_q4_k(&b, out);
}

void quantise_put_q5_k(const quantise_block *b, uint8_t *out) {
    put_pairs(b, out);
    memset(out + 16, 0, 32);
    for (int i = 0; i < BLOCK; i++) out[16 + i % 32] |= (uint8_t)(b->codes[i] >> 4 << i / 32);
    for (int i = 0; i < 128; i++) {
        const uint8_t *pair = b->codes + i / 32 * 64 + i % 32;
        out[48 + i] = (uint8_t)((pair[0] & 15) | (pair[32] & 15) << 4);
    }
}

void hdi_quantise_q5_k(const float *x, uint8_t *out) {
    static const quantise_search s = { .n = 32, .most = 31, .steps = 15, .first = -0.5f, .step = 0.1f };
    quantise_block b;
    keep_parts(&s, true, 63, x, &b);
    quantise_put_q5_k(&b, out);
}

/* ---- q3_k, q6_k ---- */

/* Codes for a scale as it is kept, by `most` larger than they are. */
static void choose_signed(const float *x, float scale, int most, uint8_t *codes) {
    for (int i = 0; i < 16 && scale != 0; i++)
        codes[i] = (uint8_t)(most + quantise_within(quantise_nearest(x[i] / scale), -most, most - 1));
}

/* Scales of 16 parts for weights that are the values' squares, and the one of the largest size. */
typedef float scale_of(const float *x, const float *weights, int n, int most, uint8_t *out_codes);
static float find_scales(scale_of *of, const float *x, int most, float *scales, uint8_t *codes) {
    float squares[16];
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k++) squares[k] = x[16 * i + k] * x[16 * i + k];
        scales[i] = of(x + 16 * i, squares, 16, most, codes + 16 * i);
    }
    return quantise_largest(scales, 16);
}

/* The scales as they are kept, the largest one as the code -most_scale; and the codes anew. */
static void keep_scales(const float *x, const float *scales, float largest, int most_scale, int most,
                        quantise_block *out) {
    const float inverse = largest != 0 ? -(float)most_scale / largest : 0;
    out->d = quantise_rounded(largest != 0 ? 1 / inverse : 0);
    for (int i = 0; i < 16; i++) {
        const int code = quantise_within(quantise_nearest(inverse * scales[i]), -most_scale, most_scale - 1);
        out->scales[i] = largest != 0 ? code : -most_scale;
        choose_signed(x + 16 * i, out->d * (float)out->scales[i], most, out->codes + 16 * i);
    }
}

void quantise_put_q3_k(const quantise_block *b, uint8_t *out) {
    memset(out, 0, 110);
    quantise_put_half(b->d, out + 108);
    for (int i = 0; i < 16; i++) {
        const int code = b->scales[i] + 32;
        out[96 + i % 8] |= (uint8_t)((code & 15) << (i < 8 ? 0 : 4));
        out[104 + i % 4] |= (uint8_t)(code >> 4 << 2 * (i / 4));
    }
    for (int i = 0; i < BLOCK; i++) out[i % 32] |= (uint8_t)((b->codes[i] >> 2) << i / 32);
    put_twos(b->codes, out + 32);
}

void hdi_quantise_q3_k(const float *x, uint8_t *out) {
    float scales[16];
    quantise_block b;
    const float largest = find_scales(moved_scale, x, 4, scales, b.codes);
    keep_scales(x, scales, largest, 32, 4, &b);
    quantise_put_q3_k(&b, out);
}

void quantise_put_q6_k(const quantise_block *b, uint8_t *out) {
    memset(out, 0, 210);
    quantise_put_half(b->d, out + 208);
    for (int i = 0; i < 16; i++) out[192 + i] = (uint8_t)(int8_t)b->scales[i];
    for (int i = 0; i < BLOCK; i++) {
        const int group = i / 32 % 4, half = i / 128, j = i % 32;
        out[64 * half + 32 * (group & 1) + j] |= (uint8_t)((b->codes[i] & 15) << 4 * (group >> 1));
        out[128 + 32 * half + j] |= (uint8_t)(b->codes[i] >> 4 << 2 * group);
    }
}

void hdi_quantise_q6_k(const float *x, uint8_t *out) {
    float scales[16];
    quantise_block b;
    const float largest = find_scales(quantise_signed_scale, x, 32, scales, b.codes);
    memset(out, 0, 210);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return;
    keep_scales(x, scales, largest, 128, 32, &b);
    quantise_put_q6_k(&b, out);
}
