/* quantise_numbers.c: blocks whose codes stand for 16 given numbers. */
#include "kernels/reference/quantise_parts.h"

#define NUMBERS(...) { __VA_ARGS__ }
const int8_t quantise_iq4_numbers[16] = HDI_CODES_IQ4(NUMBERS);
static const int8_t mxfp4[16] = HDI_CODES_MXFP4(NUMBERS);
#undef NUMBERS
#define iq4 quantise_iq4_numbers

/* The numbers ascend. */
int quantise_nearest_number(float x) {
    int low = 0, high = 15;
    if (!(x > (float)iq4[0])) return 0;
    if (x >= (float)iq4[15]) return 15;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (x < (float)iq4[middle]) high = middle;
        else low = middle;
    }
    return x - (float)iq4[low] < (float)iq4[high] - x ? low : high;
}

typedef struct fit { float cross, square; } fit;
static fit fit_numbers(const float *x, const float *weights, float inverse) {
    fit f = { 0, 0 };
    for (int i = 0; i < 32; i++) {
        const float number = (float)iq4[quantise_nearest_number(inverse * x[i])], w = weights[i];
        f.cross += w * number * x[i];
        f.square += w * number * number;
    }
    return f;
}

/* Of 16 scales around the one that takes the largest value to the first number. */
float quantise_numbers_scale(const float *x, const float *weights) {
    const float largest = quantise_largest(x, 32);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    float scale = -largest / (float)iq4[0];
    fit f = fit_numbers(x, weights, 1 / scale);
    scale = f.cross / f.square;
    float best = scale * f.cross;
    for (int step = -7; step <= 7; step++) {
        f = fit_numbers(x, weights, ((float)step + (float)iq4[0]) / largest);
        if (!(f.square > 0 && f.cross * f.cross > best * f.square)) continue;
        scale = f.cross / f.square;
        best = scale * f.cross;
    }
    return scale;
}

static float scale_of(const float *x) {
    float squares[32];
    for (int i = 0; i < 32; i++) squares[i] = x[i] * x[i];
    return quantise_numbers_scale(x, squares);
}

static void choose_codes(const float *x, float scale, uint8_t *out) {
    const float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < 32; i++) out[i] = (uint8_t)quantise_nearest_number(inverse * x[i]);
}
static void put_codes(const uint8_t *codes, uint8_t *out) {
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(codes[i] | codes[i + 16] << 4);
}

void quantise_put_iq4_nl(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    put_codes(b->codes, out + 2);
}

void hdi_quantise_iq4_nl(const float *x, uint8_t *out) {
    quantise_block b = { .d = scale_of(x) };
    choose_codes(x, b.d, b.codes);
    quantise_put_iq4_nl(&b, out);
}

void quantise_put_iq4_xs(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    memset(out + 2, 0, 6);
    for (int i = 0; i < 8; i++) {
        const int code = b->scales[i] + 32;
        put_codes(b->codes + 32 * i, out + 8 + 16 * i);
        out[4 + i / 2] |= (uint8_t)((code & 15) << 4 * (i % 2));
        out[2 + i / 4] |= (uint8_t)(code >> 4 << 2 * (i % 4));
    }
}

void hdi_quantise_iq4_xs(const float *x, uint8_t *out) {
    float scales[8];
    quantise_block b;
    for (int i = 0; i < 8; i++) scales[i] = scale_of(x + 32 * i);
    b.d = -quantise_largest(scales, 8) / 32;
    const float inverse = b.d != 0 ? 1 / b.d : 0;
    for (int i = 0; i < 8; i++) {
        b.scales[i] = quantise_within(quantise_nearest(inverse * scales[i]), -32, 31);
        choose_codes(x + 32 * i, b.d * (float)b.scales[i], b.codes + 32 * i);
    }
    quantise_put_iq4_xs(&b, out);
}

void hdi_quantise_mxfp4(const float *x, uint8_t *out) {
    const float size = fabsf(quantise_largest(x, 32));
    int exponent = 0;
    if (size > 0) exponent = (int)floorf(log2f(size)) - 2 + 127;
    out[0] = (uint8_t)exponent;
    const float scale = exact_from_bits(out[0] < 2 ? 0x00200000u << out[0] : ((uint32_t)out[0] - 1) << 23);
    for (int i = 0; i < 32; i++) {
        int best = 0;
        for (int code = 1; code < 16; code++)
            if (fabsf((float)mxfp4[code] * scale - x[i]) < fabsf((float)mxfp4[best] * scale - x[i])) best = code;
        if (i < 16) out[1 + i] = (uint8_t)best;
        else out[1 + i - 16] |= (uint8_t)(best << 4);
    }
}
