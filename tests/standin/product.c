/* product.c: matrix products of the stand-in, as the library of products (products.c) hands them to a stream: D = A x B, or
 * that and an addend, or a bias, or both, along columns, plain sums in f32 in the order of K. */
#include "standin.h"
#include "kernels/exact.h"
#include <stdlib.h>
#include <string.h>

static float float_of(const void *from, standin_number type, uint64_t at) {
    uint16_t half;
    float value;
    memcpy(&half, (const char *)from + 2 * at, sizeof half);
    if (type == STANDIN_F16) return exact_f16_to_f32(half);
    if (type == STANDIN_BF16) return exact_bf16_to_f32(half);
    memcpy(&value, (const char *)from + 4 * at, sizeof value);
    return value;
}

static void store(void *to, standin_number type, uint64_t at, float value) {
    const uint16_t half = (uint16_t)(type == STANDIN_BF16 ? exact_f32_to_bf16(value) : exact_f32_to_f16(value));
    if (type == STANDIN_F32) memcpy((char *)to + 4 * at, &value, sizeof value);
    else memcpy((char *)to + 2 * at, &half, sizeof half);
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
            for (uint64_t i = 0; i < d->rows; i++) {
                const uint64_t at = batch * d->batch_offset + j * d->line + i;
                store(d->data, d->type, at, sums[i] + (p->addend ? float_of(p->addend, d->type, at) : 0) + (p->bias ? float_of(p->bias, d->type, i) : 0));
            }
        }
    }
    free(left);
    free(sums);
}
