/* quantise_weighted.c: blocks for which errors do not count alike. Scales of parts are sought as without weights; then
 * the whole block is made better in turns while that helps: the scales that all parts share by least squares, each
 * part's own codes of scale and min among their neighbours, and the values' codes for these. */
#include "kernels/reference/quantise_parts.h"

enum { BLOCK = 256, MOST_PART = 32, TURNS = 8 };

/* A type's blocks: parts of `part` values with codes low .. high, or those of the iq4 numbers; scales in codes
 * scale_low .. scale_high (both 1: the block's own), mins in codes 0 .. less_high (0: there are none). */
typedef struct form {
    int  parts, part, low, high, scale_low, scale_high, less_high;
    bool numbers;
    void (*put)(const quantise_block *b, uint8_t *out);
} form;

static const form *form_of(hd_dtype dtype) {
    static const struct { hd_dtype dtype; form form; } rows[] = {
        { HD_Q4_0, { 1, 32, -8, 7, 1, 1, 0, false, quantise_put_q4_0 } },
        { HD_Q5_0, { 1, 32, -16, 15, 1, 1, 0, false, quantise_put_q5_0 } },
        { HD_Q4_1, { 1, 32, 0, 15, 1, 1, 1, false, quantise_put_q4_1 } },
        { HD_Q5_1, { 1, 32, 0, 31, 1, 1, 1, false, quantise_put_q5_1 } },
        { HD_IQ4_NL, { 1, 32, 0, 15, 1, 1, 0, true, quantise_put_iq4_nl } },
        { HD_IQ4_XS, { 8, 32, 0, 15, -32, 31, 0, true, quantise_put_iq4_xs } },
        { HD_Q2_K, { 16, 16, 0, 3, 0, 15, 15, false, quantise_put_q2_k } },
        { HD_Q3_K, { 16, 16, -4, 3, -32, 31, 0, false, quantise_put_q3_k } },
        { HD_Q4_K, { 8, 32, 0, 15, 0, 63, 63, false, quantise_put_q4_k } },
        { HD_Q5_K, { 8, 32, 0, 31, 0, 63, 63, false, quantise_put_q5_k } },
        { HD_Q6_K, { 16, 16, -32, 31, -128, 127, 0, false, quantise_put_q6_k } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype) return &rows[i].form;
    return NULL;
}

static float number_of(const form *f, int code) {
    return f->numbers ? (float)quantise_iq4_numbers[code] : (float)(code + f->low);
}

/* The codes nearest to a part's values, and the weighted square of what they are off. */
static float choose_codes(const form *f, const float *restrict x, const float *weights, float scale, float less,
                          uint8_t *restrict codes) {
    const int n = f->part, first = f->low;
    const float inverse = scale != 0 ? 1 / scale : 0, low = (float)f->low, high = (float)f->high;
    float off[MOST_PART], error = 0;
    if (f->numbers)
        for (int i = 0; i < n; i++) {
            codes[i] = (uint8_t)quantise_nearest_number((x[i] + less) * inverse);
            off[i] = scale * (float)quantise_iq4_numbers[codes[i]] - less - x[i];
        }
    else
        for (int i = 0; i < n; i++) {
            float value = (x[i] + less) * inverse;
            value = value > low ? value : low;
            value = value < high ? value : high;
            const int code = quantise_nearest(value);
            codes[i] = (uint8_t)(code - first);
            off[i] = scale * (float)code - less - x[i];
        }
    for (int i = 0; i < n; i++) off[i] *= weights[i] * off[i];
    for (int i = 0; i < n; i += 4) error += (off[i] + off[i + 1]) + (off[i + 2] + off[i + 3]);
    return error;
}

/* ---- a first guess ---- */

static int nearest_within(float value, int low, int high) {
    value = value > (float)low ? value : (float)low;
    return quantise_nearest(value < (float)high ? value : (float)high);
}

/* Scales and mins of parts as each fits best. */
typedef struct parts { float scales[16], lesses[16]; } parts;

/* The scale that fits a part's codes best. */
static float fit_codes(const form *f, const float *x, const float *weights, const uint8_t *codes) {
    float cross = 0, square = 0;
    for (int i = 0; i < f->part; i++) {
        const float number = number_of(f, codes[i]);
        cross += weights[i] * x[i] * number;
        square += weights[i] * number * number;
    }
    return square > 0 ? cross / square : 0;
}

/* The scale of a part without a min: what the search gives that takes the largest value to the lowest code, or one of a
 * few that take it to the highest. */
static float scale_of(const form *f, const float *x, const float *weights) {
    uint8_t codes[MOST_PART];
    const float end = quantise_largest(x, f->part) / number_of(f, f->high - f->low);
    float best = f->numbers ? quantise_numbers_scale(x, weights)
                            : quantise_signed_scale(x, weights, f->part, -f->low, codes);
    float error = choose_codes(f, x, weights, best, 0, codes);
    for (int step = -2; step <= 2; step++) {
        choose_codes(f, x, weights, end / (1 + 0.06f * (float)step), 0, codes);
        const float scale = fit_codes(f, x, weights, codes), other = choose_codes(f, x, weights, scale, 0, codes);
        if (!(other < error)) continue;
        error = other;
        best = scale;
    }
    return best;
}

/* The scale and min, never below 0, that fit a part's codes best. */
static void fit_both(const form *f, const float *x, const float *weights, const uint8_t *codes, float *inout_scale,
                     float *inout_less) {
    float w = 0, wl = 0, wll = 0, wx = 0, wxl = 0;
    for (int i = 0; i < f->part; i++) {
        const float l = number_of(f, codes[i]);
        w += weights[i];
        wl += weights[i] * l;
        wll += weights[i] * l * l;
        wx += weights[i] * x[i];
        wxl += weights[i] * x[i] * l;
    }
    const float determinant = w * wll - wl * wl;
    if (!(determinant > 0)) return;
    const float less = (wl * wxl - wll * wx) / determinant;
    *inout_scale = less > 0 ? (w * wxl - wx * wl) / determinant : wxl / wll;
    *inout_less = less > 0 ? less : 0;
}

/* The scale and min of a part: as without weights, or where what weighs little is cut off; then by turns. */
static float scale_and_less(const form *f, const float *x, const float *weights, float *out_less) {
    const float wide = (float)f->high / 15;
    const quantise_search searches[] = {
        { .n = f->part, .most = f->high, .steps = 36, .first = -0.9f, .step = 0.05f },
        { .n = f->part, .most = f->high, .steps = 16, .first = wide, .step = 0.5f * wide },
    };
    uint8_t codes[MOST_PART];
    float best = 0, error = HUGE_VALF;
    for (int i = 0; i < 2; i++) {
        float less, scale = quantise_scale_and_less(&searches[i], x, weights, &less, codes);
        for (int turn = 0; turn < 4; turn++) {
            const float other = choose_codes(f, x, weights, scale, less, codes);
            if (other < error) {
                error = other;
                best = scale;
                *out_less = less;
            } else if (turn > 0) break;
            fit_both(f, x, weights, codes, &scale, &less);
        }
    }
    return best;
}

static void find_parts(const form *f, const float *x, const float *weights, parts *out) {
    for (int p = 0; p < f->parts; p++, x += f->part, weights += f->part) {
        out->lesses[p] = 0;
        out->scales[p] = f->less_high ? scale_and_less(f, x, weights, &out->lesses[p]) : scale_of(f, x, weights);
    }
}

/* Parts as they are kept, the largest ones' codes being the last ones, or so much farther out. */
static void keep_parts(const form *f, const parts *p, float farther, quantise_block *b) {
    const float scale_end = (float)(f->scale_low < 0 ? f->scale_low : f->scale_high) * farther;
    b->d = quantise_rounded(quantise_largest(p->scales, f->parts) / scale_end);
    b->less = 0;
    if (f->less_high) b->less = quantise_rounded(quantise_largest(p->lesses, f->parts) / (float)f->less_high / farther);
    for (int i = 0; i < f->parts; i++) {
        b->scales[i] = b->d != 0 ? nearest_within(p->scales[i] / b->d, f->scale_low, f->scale_high) : f->scale_high;
        b->lesses[i] = b->less != 0 ? nearest_within(p->lesses[i] / b->less, 0, f->less_high) : 0;
        if (f->less_high == 1) b->lesses[i] = 1; /* the block's own, of any sign */
    }
}

/* ---- better by turns ---- */

/* The codes of all values, and the block's error. */
static double choose_all(const form *f, const float *x, const float *weights, quantise_block *b) {
    double error = 0;
    for (int p = 0; p < f->parts; p++)
        error += (double)choose_codes(f, x + p * f->part, weights + p * f->part, b->d * (float)b->scales[p],
                                      b->less * (float)b->lesses[p], b->codes + p * f->part);
    return error;
}

/* The block's d and less by least squares, its codes as they are. */
static void fit_block(const form *f, const float *x, const float *weights, quantise_block *b) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0; /* a: what d is taken times; b: what less is */
    for (int i = 0; i < f->parts * f->part; i++) {
        const int p = i / f->part;
        const double w = (double)weights[i], a = (double)((float)b->scales[p] * number_of(f, b->codes[i])),
                     less = b->lesses[p], value = (double)x[i];
        aa += w * a * a;
        ab += w * a * less;
        bb += w * less * less;
        xa += w * value * a;
        xb += w * value * less;
    }
    const double determinant = aa * bb - ab * ab;
    const bool both = bb > 0 && determinant > 1e-9 * aa * bb;
    const double d = both ? (xa * bb - xb * ab) / determinant : aa > 0 ? (xa + (double)b->less * ab) / aa : 0;
    const double less = both ? (xa * ab - xb * aa) / determinant : (double)b->less;
    b->d = quantise_rounded((float)d);
    b->less = quantise_rounded((float)less);
}

/* A part's scale and min: the best among their codes' neighbours. */
static void fit_part(const form *f, const float *x, const float *weights, int p, quantise_block *b) {
    uint8_t codes[MOST_PART];
    const int scale = b->scales[p], less = b->lesses[p];
    float best = HUGE_VALF;
    for (int s = scale - 1; s <= scale + 1; s++)
        for (int l = less - 1; l <= less + 1; l++) {
            if (s < f->scale_low || s > f->scale_high || l < 0 || l > f->less_high) continue;
            const float error = choose_codes(f, x, weights, b->d * (float)s, b->less * (float)l, codes);
            if (!(error < best)) continue;
            best = error;
            b->scales[p] = s;
            b->lesses[p] = l;
        }
}

/* Gives the error in the end. */
static double refine(const form *f, const float *x, const float *weights, quantise_block *b) {
    double error = choose_all(f, x, weights, b);
    for (int turn = 0; turn < TURNS; turn++) {
        quantise_block next = *b;
        fit_block(f, x, weights, &next);
        for (int p = 0; p < f->parts && f->parts > 1; p++)
            fit_part(f, x + p * f->part, weights + p * f->part, p, &next);
        const double next_error = choose_all(f, x, weights, &next);
        if (!(next_error < error)) break;
        *b = next;
        error = next_error;
    }
    return error;
}

bool hdi_quantise_weighted(hd_dtype dtype, const float *x, const float *weights, uint8_t *out) {
    static const float farther[] = { 1, 0.94f, 1.06f };
    const form *f = form_of(dtype);
    parts p;
    quantise_block best, next;
    double error = 0;
    if (!f) return false;
    memset(&next, 0, sizeof next);
    find_parts(f, x, weights, &p);
    for (int i = 0; i < (f->parts > 1 ? 3 : 1); i++) {
        keep_parts(f, &p, farther[i], &next);
        const double next_error = refine(f, x, weights, &next);
        if (i > 0 && !(next_error < error)) continue;
        best = next;
        error = next_error;
    }
    f->put(&best, out);
    return true;
}
