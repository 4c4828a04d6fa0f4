/* grad.h: gradients, for the files grad*.c of this room only. grad.c walks a program from the loss back; a rule, named
 * in its operation's row of op_table.inc, adds the operations that give the gradients of the operands from the gradient
 * of the result. Rules are written in operations that there are; those that are alike share a file: grad_elementwise.c,
 * grad_form.c, grad_rows.c, grad_tables.c, grad_products.c. */
#ifndef HDI_PROGRAM_GRAD_H
#define HDI_PROGRAM_GRAD_H

#include "program/program.h"

typedef struct hdi_grad_walk hdi_grad_walk; /* grad.c */

/* One operation on the way. Its node is copied, as the program's nodes move when it grows. */
typedef struct hdi_grad {
    hd_program    *program;
    hdi_grad_walk *walk;
    hdi_node       node;
    hd_value       value; /* its result */
    hd_value       dy;    /* gradient of the result, of its shape and type; for a cast possibly f32 */
} hdi_grad;

/* Is the gradient of operand `index` asked for? */
bool hdi_grad_wants(const hdi_grad *g, uint32_t index);
/* Is the node the only one that reads the operand, of those on the way to the loss? */
bool hdi_grad_reads_alone(const hdi_grad *g, uint32_t index);
/* Are sums over rows made chunk by chunk? */
bool hdi_grad_takes_chunks(const hdi_grad *g);
/* Operand `index`, and the result, as the forward part gave them or computed again. 0: absent. */
hd_value hdi_grad_x(hdi_grad *g, uint32_t index);
hd_value hdi_grad_y(hdi_grad *g);
/* A gradient of operand `index`: of its shape or one that it broadcasts to, and of its type or f32. 0: none. */
void hdi_grad_give(hdi_grad *g, uint32_t index, hd_value dx);
/* The same as sums over rows, which are made chunk by chunk: x^T dy, or dy^T x if `turned`, of [rows,K] and [rows,N];
 * and `rows` [I,n] added to the rows of a table that `indices`, i32 [I], name. */
void hdi_grad_give_product(hdi_grad *g, uint32_t index, hd_value x, hd_value dy, bool turned);
void hdi_grad_give_rows(hdi_grad *g, uint32_t index, hd_value indices, hd_value rows);
/* Fails by name; sticks to the program. */
void hdi_grad_refuse(hdi_grad *g, hd_status status, const char *why);

/* One u8 without axes, 0. */
hd_value hdi_grad_nought(hdi_grad *g);

/* A constant that was made already, so that rules share it: a fill, or a count along the axis that is longer than 1. */
typedef struct hdi_grad_constant {
    hd_dtype dtype;
    hd_shape shape;
    float    value;
    bool     counts;
    hd_value made; /* 0: not yet */
} hdi_grad_constant;
/* The same constant, as it was made, or 0; and one more. Large ones are not kept. */
hd_value hdi_grad_find(const hdi_grad *g, const hdi_grad_constant *wanted);
hd_value hdi_grad_keep(hdi_grad *g, hdi_grad_constant made);

/* What rules are made of (grad_help.c). */
hd_shape hdi_grad_shape(const hdi_grad *g, hd_value value);
hd_dtype hdi_grad_type(const hdi_grad *g, hd_value value);
/* What was widened to f32 to be x, or x. */
hd_value hdi_grad_narrow(const hdi_grad *g, hd_value x);
/* The same elements as f32, and the other way. */
hd_value hdi_grad_wide(hdi_grad *g, hd_value x);
hd_value hdi_grad_to(hdi_grad *g, hd_value x, hd_dtype dtype);
/* x in bf16, once for products whose gradients come in soon after each other, such as an adapter's and its base's. */
hd_value hdi_grad_rounded(hdi_grad *g, hd_value x);
/* A tensor whose elements are all `value`; i32 and u8: a whole number below 2^24. */
hd_value hdi_grad_fill(hdi_grad *g, hd_dtype dtype, hd_shape shape, float value);
/* A whole number from -2^23 to 2^31 - 1 as i32, without axes. */
hd_value hdi_grad_whole(hdi_grad *g, int64_t value);
/* 0, 1, 2, ... along an axis of i32 whose rank and place are given; the other axes have length 1. */
hd_value hdi_grad_count(hdi_grad *g, uint32_t rank, uint32_t axis, int64_t length);
/* x repeated along the axes where it has length 1. */
hd_value hdi_grad_expand(hdi_grad *g, hd_value x, hd_shape shape);
/* Sums over the axes that `shape` was broadcast along. Neighbouring ones count as one axis; the last such is summed
 * first. */
hd_value hdi_grad_sum_to(hdi_grad *g, hd_value x, hd_shape shape);
hd_value hdi_grad_flat(hdi_grad *g, hd_value x, uint32_t axes); /* the first `axes` axes, 1 or more, as one */
/* condition ? x : 0 and condition ? 0 : x. */
hd_value hdi_grad_where(hdi_grad *g, hd_value condition, hd_value x);
hd_value hdi_grad_unless(hdi_grad *g, hd_value condition, hd_value x);

static inline hd_value hdi_grad_times(hdi_grad *g, hd_value x, float factor) {
    return hd_scale(g->program, x, factor, 0);
}

/* The rules, by the gradient column. */
#define HDI_GRAD_LIST(X) \
    X(add) X(sub) X(mul) X(div) X(extreme) X(scale) X(neg) X(abs) X(sqrt) X(exp) X(log) X(sin) X(cos) X(relu) \
        X(leaky_relu) \
    X(elu) X(sigmoid) X(tanh) X(silu) X(gelu) X(gelu_tanh) X(gelu_tanh_gradient) X(erf) X(clip) \
        X(choice) X(same) X(permute) X(reshape) \
        X(concat) \
    X(slice) X(windows) X(pad) X(sum) X(prod) X(cumsum) X(mean) X(pick) X(dot) X(softmax) X(log_softmax) X(rms_norm) \
        X(layer_norm) X(norm_gradient) X(norm_sums) \
    X(matmul) X(experts) X(gather) X(take_along) X(scatter_add) X(scatter_mul) X(scatter_pick) X(write_rows) X(assign) \
        X(rope) \
    X(attention) X(cross_entropy) X(cross_entropy_gradient) X(dispatch)
#define HDI_GRAD_DECLARE(name) void hdi_grad_##name(hdi_grad *g);
HDI_GRAD_LIST(HDI_GRAD_DECLARE)
#undef HDI_GRAD_DECLARE
/* The user's kernel of a dispatch, and what builds its gradient; NULL: there is none. */
const hd_kernel_gradient *hdi_grad_kernel(const hdi_grad *g);
#endif
