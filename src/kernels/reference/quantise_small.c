/* quantise_small.c: blocks whose scale follows from the largest value alone. */
#include "kernels/reference/quantise_parts.h"

/* A code from x / d + half and so on; what is no number gives some code. */
static int code(float value, int most) {
    const int whole = value == value && fabsf(value) < 1e6f ? (int)value : 0;
    return whole > most ? most : (int8_t)whole;
}
static float inverse(float d) { return d != 0 ? 1.0f / d : 0.0f; }

/* Codes of 32 values in 16 bytes, the first half's in the low bits, and their fifth bits. */
static uint32_t put_codes(const uint8_t *codes, uint8_t *out) {
    uint32_t fifth = 0;
    for (int i = 0; i < 16; i++) {
        const int a = codes[i], b = codes[i + 16];
        out[i] = (uint8_t)((a & 15) | (b & 15) << 4);
        fifth |= (uint32_t)(a >> 4 & 1) << i | (uint32_t)(b >> 4 & 1) << (i + 16);
    }
    return fifth;
}
static void choose_codes(const float *x, float less, float id, float half, int most, uint8_t *codes) {
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)code((x[i] - less) * id + half, most);
}
static void put_word(uint32_t word, uint8_t *out) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(word >> 8 * i & 255);
}
static void ends(const float *x, float *out_low, float *out_high) {
    *out_low = HUGE_VALF;
    *out_high = -HUGE_VALF;
    for (int i = 0; i < 32; i++) {
        if (x[i] < *out_low) *out_low = x[i];
        if (x[i] > *out_high) *out_high = x[i];
    }
}

void quantise_put_q4_0(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    put_codes(b->codes, out + 2);
}
void quantise_put_q4_1(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    quantise_put_half(-b->less, out + 2);
    put_codes(b->codes, out + 4);
}
void quantise_put_q5_0(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    put_word(put_codes(b->codes, out + 6), out + 2);
}
void quantise_put_q5_1(const quantise_block *b, uint8_t *out) {
    quantise_put_half(b->d, out);
    quantise_put_half(-b->less, out + 2);
    put_word(put_codes(b->codes, out + 8), out + 4);
}

/* The largest value as the code 0. */
static void keep_largest(const float *x, int most, quantise_block *out) {
    out->d = quantise_largest(x, 32) / -(float)most;
    choose_codes(x, 0, inverse(out->d), (float)most + 0.5f, 2 * most - 1, out->codes);
}
/* The least value as the code 0, the greatest as the last one. */
static void keep_ends(const float *x, int last, quantise_block *out) {
    float low, high;
    ends(x, &low, &high);
    out->d = (high - low) / (float)last;
    out->less = -low;
    choose_codes(x, low, inverse(out->d), 0.5f, last, out->codes);
}

void hdi_quantise_q4_0(const float *x, uint8_t *out) {
    quantise_block b;
    keep_largest(x, 8, &b);
    quantise_put_q4_0(&b, out);
}

void hdi_quantise_q4_1(const float *x, uint8_t *out) {
    quantise_block b;
    keep_ends(x, 15, &b);
    quantise_put_q4_1(&b, out);
}

void hdi_quantise_q5_0(const float *x, uint8_t *out) {
    quantise_block b;
    keep_largest(x, 16, &b);
    quantise_put_q5_0(&b, out);
}

void hdi_quantise_q5_1(const float *x, uint8_t *out) {
    quantise_block b;
    keep_ends(x, 31, &b);
    quantise_put_q5_1(&b, out);
}

void hdi_quantise_q8_0(const float *x, uint8_t *out) {
    const float d = fabsf(quantise_largest(x, 32)) / 127, id = inverse(d);
    quantise_put_half(d, out);
    for (int i = 0; i < 32; i++) {
        const float code = roundf(x[i] * id);
        out[2 + i] = (uint8_t)(int8_t)(fabsf(code) <= 127 ? (int)code : 0);
    }
}

/* -1, 0 or 1, as 0, 1 or 2. */
static int three(float value) {
    const float whole = roundf(value);
    return fabsf(whole) <= 1 ? (int)whole + 1 : 1;
}

void hdi_quantise_tq1_0(const float *x, uint8_t *out) {
    static const struct { int first, bytes, digits; } runs[] = { { 0, 32, 5 }, { 160, 16, 5 }, { 240, 4, 4 } };
    const float d = fabsf(quantise_largest(x, 256)), id = inverse(d);
    uint8_t *at = out;
    for (int run = 0; run < 3; run++)
        /* five digits in base 3, the first one the highest, as a fraction of 256 */
        for (int i = 0; i < runs[run].bytes; i++) {
            int digits = 0;
            for (int j = 0; j < 5; j++)
                digits =
                    3 * digits + (j < runs[run].digits ? three(x[runs[run].first + i + j * runs[run].bytes] * id) : 0);
            *at++ = (uint8_t)((digits * 256 + 242) / 243);
        }
    quantise_put_half(d, out + 52);
}

void hdi_quantise_tq2_0(const float *x, uint8_t *out) {
    const float d = fabsf(quantise_largest(x, 256)), id = inverse(d);
    for (int i = 0; i < 64; i++) {
        out[i] = 0;
        for (int j = 0; j < 4; j++) out[i] |= (uint8_t)(three(x[i / 32 * 128 + i % 32 + 32 * j] * id) << 2 * j);
    }
    quantise_put_half(d, out + 64);
}
