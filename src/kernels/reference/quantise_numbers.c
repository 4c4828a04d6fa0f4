/* quantise_numbers.c: blocks whose codes stand for 16 given numbers. */
#include "kernels/reference/quantise.h"

#define NUMBERS(...) { __VA_ARGS__ }
static const int8_t iq4[16] = HDI_CODES_IQ4(NUMBERS), mxfp4[16] = HDI_CODES_MXFP4(NUMBERS);
#undef NUMBERS

/* The code whose number is nearest; the numbers ascend. */
static int nearest(float x) {
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
static fit fit_numbers(const float *x, float inverse) {
    fit f = { 0, 0 };
    for (int i = 0; i < 32; i++) {
        const float number = (float)iq4[nearest(inverse * x[i])], w = x[i] * x[i];
        f.cross += w * number * x[i];
        f.square += w * number * number;
    }
    return f;
}

/* Of 16 scales around the one that takes the largest value to the first number. */
static float scale_of(const float *x) {
    const float largest = quantise_largest(x, 32);
    if (!(fabsf(largest) >= QUANTISE_TINY)) return 0;
    float scale = -largest / (float)iq4[0];
    fit f = fit_numbers(x, 1 / scale);
    scale = f.cross / f.square;
    float best = scale * f.cross;
    for (int step = -7; step <= 7; step++) {
        f = fit_numbers(x, ((float)step + (float)iq4[0]) / largest);
        if (!(f.square > 0 && f.cross * f.cross > best * f.square)) continue;
        scale = f.cross / f.square;
        best = scale * f.cross;
    }
    return scale;
}

static void put_codes(const float *x, float scale, uint8_t *out) {
    const float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(nearest(inverse * x[i]) | nearest(inverse * x[i + 16]) << 4);
}

void hdi_quantise_iq4_nl(const float *x, uint8_t *out) {
    const float scale = scale_of(x);
    quantise_put_half(scale, out);
    put_codes(x, scale, out + 2);
}

void hdi_quantise_iq4_xs(const float *x, uint8_t *out) {
    float scales[8];
    for (int i = 0; i < 8; i++) scales[i] = scale_of(x + 32 * i);
    const float d = -quantise_largest(scales, 8) / 32, inverse = d != 0 ? 1 / d : 0;
    quantise_put_half(d, out);
    memset(out + 2, 0, 6);
    for (int i = 0; i < 8; i++) {
        const int code = quantise_within(quantise_nearest(inverse * scales[i]), -32, 31);
        put_codes(x + 32 * i, d * (float)code, out + 8 + 16 * i);
        out[4 + i / 2] |= (uint8_t)(((code + 32) & 15) << 4 * (i % 2));
        out[2 + i / 4] |= (uint8_t)((code + 32) >> 4 << 2 * (i % 4));
    }
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
