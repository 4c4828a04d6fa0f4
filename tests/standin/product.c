/* product.c: matrix products of the stand-in, as the library of products (products.c) hands them to a stream: D = A x B along
 * columns, plain sums in f32 in the order of K. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

static float float_of(const void *from, standin_number type, uint64_t at) {
    uint16_t half;
    uint32_t bits;
    float value;
    if (type == STANDIN_F32) {
        memcpy(&value, (const char *)from + 4 * at, 4);
        return value;
    }
    memcpy(&half, (const char *)from + 2 * at, 2);
    const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (type == STANDIN_BF16) bits = (uint32_t)half << 16;
    else if (exponent == 31) bits = sign | 0x7f800000u | fraction << 13;
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else { /* subnormal: exact as a float */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To the nearest, ties to even. */
static uint16_t bf16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static uint16_t f16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7e00u;
    if (bits >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (bits < 0x38800000u) { /* in units of 2^-24, which the sum rounds to */
        float small;
        memcpy(&small, &bits, sizeof small);
        small += 0.5f;
        memcpy(&bits, &small, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    bits += 0xfffu + (bits >> 13 & 1u);
    return (uint16_t)(sign | (bits - 0x38000000u) >> 13);
}

static void store(void *to, standin_number type, uint64_t at, float value) {
    const uint16_t half = type == STANDIN_BF16 ? bf16_of(value) : f16_of(value);
    if (type == STANDIN_F32) memcpy((char *)to + 4 * at, &value, 4);
    else memcpy((char *)to + 2 * at, &half, 2);
}

void standin_product_run(const standin_product *p) {
    const standin_matrix *a = &p->a, *b = &p->b, *d = &p->d;
    float *left = malloc(d->rows * p->depth * sizeof *left), *sums = malloc(d->rows * sizeof *sums);
    if (!left || !sums) standin_abort("no memory for a product");
    memset(p->workspace, 0xa5, p->workspace_bytes);
    for (uint64_t batch = 0; batch < p->batch; batch++) {
        for (uint64_t k = 0; k < p->depth; k++)
            for (uint64_t i = 0; i < d->rows; i++)
                left[k * d->rows + i] = float_of(a->data, a->type, batch * a->batch_offset + (a->transposed ? i * a->line + k : k * a->line + i));
        for (uint64_t j = 0; j < d->columns; j++) {
            memset(sums, 0, d->rows * sizeof *sums);
            for (uint64_t k = 0; k < p->depth; k++) {
                const float factor = float_of(b->data, b->type, batch * b->batch_offset + (b->transposed ? k * b->line + j : j * b->line + k));
                for (uint64_t i = 0; i < d->rows; i++) sums[i] += left[k * d->rows + i] * factor;
            }
            for (uint64_t i = 0; i < d->rows; i++) store(d->data, d->type, batch * d->batch_offset + j * d->line + i, sums[i]);
        }
    }
    free(left);
    free(sums);
}
