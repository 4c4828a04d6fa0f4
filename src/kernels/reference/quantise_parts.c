/* quantise_parts.c: blocks of 256 values in parts, whose scales have few bits themselves. Scales of parts are sought
 * for the smallest weighted square of the error; then the codes are chosen anew, for the scales as they are kept. */
#include "kernels/reference/quantise.h"

enum { BLOCK = 256, MOST_PART = 32 };

/* ---- the scale of a part: codes -most .. most - 1 ---- */

/* Scale and weighted square of the best fit at codes; weights are the values' squares. */
typedef struct fit { float cross, square; } fit;
static fit fit_signed(const float *x, int n, float inverse, int most, int *codes) {
    fit f = { 0, 0 };
    for (int i = 0; i < n; i++) {
        codes[i] = quantise_within(quantise_nearest(inverse * x[i]), -most, most - 1);
        const float w = x[i] * x[i], l = (float)codes[i];
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
static float signed_scale(const float *x, int n, int most, uint8_t *out_codes) {
    const float largest = quantise_largest(x, n);
    int codes[MOST_PART];
    memset(out_codes, 0, (size_t)n);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    fit f = fit_signed(x, n, -(float)most / largest, most, codes);
    float scale = f.square != 0 ? f.cross / f.square : 0, best = scale * f.cross;
    keep(codes, n, most, out_codes);
    for (int step = -9; step <= 9; step++) {
        if (step == 0) continue;
        f = fit_signed(x, n, -((float)most + 0.1f * (float)step) / largest, most, codes);
        if (!(f.square > 0 && f.cross * f.cross > best * f.square)) continue;
        keep(codes, n, most, out_codes);
        scale = f.cross / f.square;
        best = scale * f.cross;
    }
    return scale;
}

/* Codes from the largest value's scale, then moved one at a time while that makes the fit better. */
static float moved_scale(const float *x, int n, int most, uint8_t *out_codes) {
    const float largest = quantise_largest(x, n);
    int codes[MOST_PART];
    memset(out_codes, 0, (size_t)n);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    fit f = fit_signed(x, n, -(float)most / largest, most, codes);
    for (int turn = 0, changed = 1; turn < 5 && changed; turn++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            const float w = x[i] * x[i], old = (float)codes[i];
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

/* by_size: of the error, else its square */
typedef struct search { int n, most, steps; float first, step; bool by_size; } search;

static float error_of(const search *s, const float *x, const float *weights, const int *codes, float scale, float min) {
    float error = 0;
    for (int i = 0; i < s->n; i++) {
        float diff = scale * (float)codes[i] + min - x[i];
        diff = s->by_size ? fabsf(diff) : diff * diff;
        error += weights[i] * diff;
    }
    return error;
}

/* Gives the scale; *out_less is what is subtracted, never below 0; codes as above. */
static float scale_and_less(const search *s, const float *x, const float *weights, float *out_less,
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
static void find_parts(const search *s, bool rms, const float *x, parts *out) {
    out->scale = out->less = 0;
    for (int part = 0; part < BLOCK / s->n; part++, x += s->n) {
        float weights[MOST_PART] = { 0 }, square = 0;
        for (int i = 0; i < s->n; i++) square += x[i] * x[i];
        const float root = rms ? sqrtf(square / (float)s->n) : 0;
        for (int i = 0; i < s->n; i++) weights[i] = root + fabsf(x[i]);
        out->scales[part] = scale_and_less(s, x, weights, &out->lesses[part], out->codes + part * s->n);
        if (out->scales[part] > out->scale) out->scale = out->scales[part];
        if (out->lesses[part] > out->less) out->less = out->lesses[part];
    }
}

/* Codes of a part for its scale as it is kept. */
static void choose_codes(const float *x, int n, float scale, float less, int most, uint8_t *codes) {
    for (int i = 0; i < n && scale != 0; i++)
        codes[i] = (uint8_t)quantise_within(quantise_nearest((x[i] + less) / scale), 0, most);
}

/* Codes of 2 bits, four neighbours 32 apart to a byte. */
static void put_twos(const uint8_t *codes, uint8_t *out) {
    for (int i = 0; i < 64; i++) {
        const uint8_t *four = codes + i / 32 * 128 + i % 32;
        out[i] = (uint8_t)(four[0] | four[32] << 2 | four[64] << 4 | four[96] << 6);
    }
}

void hdi_quantise_q2_k(const float *x, uint8_t *out) {
    static const search s = { .n = 16, .most = 3, .steps = 15, .first = -0.5f, .step = 0.1f, .by_size = true };
    parts p;
    find_parts(&s, false, x, &p);
    const float by_scale = p.scale > 0 ? 15.f / p.scale : 0, by_less = p.less > 0 ? 15.f / p.less : 0;
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)(quantise_nearest(by_scale * p.scales[i]) | quantise_nearest(by_less * p.lesses[i]) << 4);
    quantise_put_half(p.scale / 15.f, out + 80);
    quantise_put_half(p.less / 15.f, out + 82);
    for (int i = 0; i < 16; i++)
        choose_codes(x + 16 * i, 16, quantise_half(out + 80) * (float)(out[i] & 15),
                     quantise_half(out + 82) * (float)(out[i] >> 4), 3, p.codes + 16 * i);
    put_twos(p.codes, out + 16);
}

/* The head of q4_k and q5_k, d, the mins' and 8 pairs of 6 bits in 12 bytes; and the codes. */
static void quantise_pairs(const search *s, const float *x, uint8_t *out, parts *p) {
    uint8_t *pairs = out + 4;
    find_parts(s, true, x, p);
    const float by_scale = p->scale > 0 ? 63.f / p->scale : 0, by_less = p->less > 0 ? 63.f / p->less : 0;
    quantise_put_half(p->scale / 63.f, out);
    quantise_put_half(p->less / 63.f, out + 2);
    for (int i = 0; i < 8; i++) {
        const int a = quantise_within((uint8_t)quantise_nearest(by_scale * p->scales[i]), 0, 63);
        const int b = quantise_within((uint8_t)quantise_nearest(by_less * p->lesses[i]), 0, 63);
        if (i < 4) {
            pairs[i] = (uint8_t)a;
            pairs[i + 4] = (uint8_t)b;
        } else {
            pairs[i + 4] = (uint8_t)((a & 15) | (b & 15) << 4);
            pairs[i - 4] |= (uint8_t)(a >> 4 << 6);
            pairs[i] |= (uint8_t)(b >> 4 << 6);
        }
        choose_codes(x + 32 * i, 32, quantise_half(out) * (float)a, quantise_half(out + 2) * (float)b, s->most,
                     p->codes + 32 * i);
    }
}

void hdi_quantise_q4_k(const float *x, uint8_t *out) {
    static const search s = { .n = 32, .most = 15, .steps = 20, .first = -1.f, .step = 0.1f };
    parts p;
    quantise_pairs(&s, x, out, &p);
    const uint8_t *codes = p.codes;
    for (int i = 0; i < 128; i++)
        out[16 + i] = (uint8_t)(codes[i / 32 * 64 + i % 32] | codes[i / 32 * 64 + 32 + i % 32] << 4);
}

void hdi_quantise_q5_k(const float *x, uint8_t *out) {
    static const search s = { .n = 32, .most = 31, .steps = 15, .first = -0.5f, .step = 0.1f };
    parts p;
    quantise_pairs(&s, x, out, &p);
    const uint8_t *codes = p.codes;
    memset(out + 16, 0, 32);
    for (int i = 0; i < BLOCK; i++) out[16 + i % 32] |= (uint8_t)(codes[i] >> 4 << i / 32);
    for (int i = 0; i < 128; i++) {
        const uint8_t *pair = codes + i / 32 * 64 + i % 32;
        out[48 + i] = (uint8_t)((pair[0] & 15) | (pair[32] & 15) << 4);
    }
}

/* ---- q3_k, q6_k ---- */

/* Codes for a scale as it is kept, by `most` larger than they are. */
static void choose_signed(const float *x, float scale, int most, uint8_t *codes) {
    for (int i = 0; i < 16 && scale != 0; i++)
        codes[i] = (uint8_t)(most + quantise_within(quantise_nearest(x[i] / scale), -most, most - 1));
}

/* Scales of 16 parts, and the one of the largest size. */
typedef float scale_of(const float *x, int n, int most, uint8_t *out_codes);
static float find_scales(scale_of *of, const float *x, int most, float *scales, uint8_t *codes) {
    for (int i = 0; i < 16; i++) scales[i] = of(x + 16 * i, 16, most, codes + 16 * i);
    return quantise_largest(scales, 16);
}

void hdi_quantise_q3_k(const float *x, uint8_t *out) {
    float scales[16];
    uint8_t codes[BLOCK];
    const float largest = find_scales(moved_scale, x, 4, scales, codes), inverse = largest != 0 ? -32.f / largest : 0;
    memset(out, 0, 110);
    quantise_put_half(largest != 0 ? 1 / inverse : 0, out + 108);
    for (int i = 0; i < 16; i++) {
        const int code = largest != 0 ? quantise_within(quantise_nearest(inverse * scales[i]), -32, 31) + 32 : 0;
        out[96 + i % 8] |= (uint8_t)((code & 15) << (i < 8 ? 0 : 4));
        out[104 + i % 4] |= (uint8_t)(code >> 4 << 2 * (i / 4));
        choose_signed(x + 16 * i, quantise_half(out + 108) * (float)(code - 32), 4, codes + 16 * i);
    }
    for (int i = 0; i < BLOCK; i++) {
        out[i % 32] |= (uint8_t)((codes[i] >> 2) << i / 32);
        codes[i] &= 3;
    }
    put_twos(codes, out + 32);
}

void hdi_quantise_q6_k(const float *x, uint8_t *out) {
    float scales[16];
    uint8_t codes[BLOCK];
    const float largest = find_scales(signed_scale, x, 32, scales, codes);
    memset(out, 0, 210);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return;
    const float inverse = -128.f / largest;
    quantise_put_half(1 / inverse, out + 208);
    for (int i = 0; i < 16; i++) {
        const int code = quantise_within(quantise_nearest(inverse * scales[i]), -128, 127);
        out[192 + i] = (uint8_t)(int8_t)code;
        choose_signed(x + 16 * i, quantise_half(out + 208) * (float)code, 32, codes + 16 * i);
    }
    for (int i = 0; i < BLOCK; i++) {
        const int group = i / 32 % 4, half = i / 128, j = i % 32;
        out[64 * half + 32 * (group & 1) + j] |= (uint8_t)((codes[i] & 15) << 4 * (group >> 1));
        out[128 + 32 * half + j] |= (uint8_t)(codes[i] >> 4 << 2 * group);
    }
}
