/* reference.h: what the files of the reference share. Operands of any float or quantised type are unpacked to f32
 * first, the operation computes f32 from f32, and the result is rounded once. Nothing here is fast and nothing is
 * clever. */
#ifndef HDI_KERNELS_REFERENCE_H
#define HDI_KERNELS_REFERENCE_H

#include "kernels/exact.h"
#include "kernels/kernel.h"

enum { REFERENCE_OPERANDS = 8 };
/* One node under way. x[i] is NULL for an operand that is absent or an integer; data[i] is its bytes. */
typedef struct reference {
    const hdi_node             *node;
    const hdi_reference_tensor *operands;
    const float                *x[REFERENCE_OPERANDS];
    const void                 *data[REFERENCE_OPERANDS];
    hdi_reference_tensor       *out;
    float                      *y;    /* the result in f32, not rounded yet; NULL for integers */
    float                      *room; /* of as many floats as operand 0 has elements */
    hd_error                   *error; /* set by one that cannot compute it */
} reference;

static inline uint64_t reference_dim(const reference *r, uint32_t operand, uint32_t axis) {
    return (uint64_t)r->operands[operand].shape.dims[axis];
}
/* The operand's shape around `axis`: elements before it, along it, after it. */
typedef struct reference_axis { uint64_t outer, n, inner; } reference_axis;
static inline reference_axis reference_axis_of(hd_shape shape, uint32_t axis) {
    reference_axis a = { 1, 1, 1 };
    for (uint32_t i = 0; i < shape.rank; i++)
        *(i < axis ? &a.outer : i == axis ? &a.n : &a.inner) *= (uint64_t)shape.dims[i];
    return a;
}
/* The larger and the smaller in the order -inf .. -0, +0 .. inf; NaN where either is. */
float reference_larger(float a, float b);
float reference_smaller(float a, float b);
/* The sum of n values in abi.h's row order, in one part. */
float reference_row_sum(const float *values, uint64_t n);
/* The sum of n products, or of n values where b is NULL, in matmul's order; strides in elements. */
float reference_block_sum(const float *a, uint64_t a_stride, const float *b, uint64_t b_stride, uint64_t n);

/* What each operation's row names; _none stands where there is nothing to compute. */
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, plain, ...) \
    void reference_##plain(const reference *r);
#include "program/op_table.inc"
#undef HDI_OP
#endif
