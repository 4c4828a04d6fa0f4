/* grad_form.c: rules of operations that move elements or reduce along an axis. */
#include "program/grad.h"

void hdi_grad_permute(hdi_grad *g) {
    uint32_t back[HD_MAX_RANK] = { 0 };
    const uint32_t rank = g->node.shape.rank;
    for (uint32_t i = 0; i < rank; i++) back[g->node.attrs.ints[i]] = i;
    hdi_grad_give(g, 0, hd_permute(g->program, g->dy, back, rank));
}

void hdi_grad_reshape(hdi_grad *g) {
    hdi_grad_give(g, 0, hd_reshape(g->program, g->dy, hdi_grad_shape(g, g->node.operands[0])));
}

void hdi_grad_concat(hdi_grad *g) {
    const int64_t axis = g->node.attrs.ints[0];
    int64_t begin[HD_MAX_RANK] = { 0 }, end[HD_MAX_RANK];
    memcpy(end, g->node.shape.dims, sizeof end);
    for (uint32_t i = 0; i < g->node.operand_count; i++, begin[axis] = end[axis]) {
        end[axis] = begin[axis] + hdi_grad_shape(g, g->node.operands[i]).dims[axis];
        if (hdi_grad_wants(g, i)) hdi_grad_give(g, i, hd_slice(g->program, g->dy, begin, end, g->node.shape.rank));
    }
}

/* The walk pads it with zeros, or joins it with those of the other slices of the same value. */
void hdi_grad_slice(hdi_grad *g) { hdi_grad_give(g, 0, g->dy); }

/* Each element gets the sum of what the windows have at its place. */
void hdi_grad_windows(hdi_grad *g) {
    const int64_t *ints = g->node.attrs.ints, length = hdi_grad_shape(g, g->node.operands[0]).dims[ints[0]];
    hdi_grad_give(g, 0, hd_windows_sum(g->program, hdi_grad_wide(g, g->dy), (int)ints[0], length, ints[2], ints[3]));
}

void hdi_grad_pad(hdi_grad *g) {
    const hd_shape inner = hdi_grad_shape(g, g->node.operands[0]);
    int64_t end[HD_MAX_RANK];
    for (uint32_t i = 0; i < HD_MAX_RANK; i++) end[i] = g->node.attrs.ints[i] + inner.dims[i];
    hdi_grad_give(g, 0, hd_slice(g->program, g->dy, g->node.attrs.ints, end, inner.rank));
}

/* ---- along an axis ---- */

static uint32_t axis_of(const hdi_grad *g) { return (uint32_t)g->node.attrs.ints[0]; }
static hd_shape x_shape(const hdi_grad *g) { return hdi_grad_shape(g, g->node.operands[0]); }

void hdi_grad_sum(hdi_grad *g) { hdi_grad_give(g, 0, hdi_grad_expand(g, g->dy, x_shape(g))); }

void hdi_grad_mean(hdi_grad *g) {
    const float share = (float)(1.0 / (double)x_shape(g).dims[axis_of(g)]);
    hdi_grad_give(g, 0, hdi_grad_expand(g, hdi_grad_times(g, hdi_grad_wide(g, g->dy), share), x_shape(g)));
}

/* The product of the others. With u = x where x is not 0, else 1, and P the product of the u: P / u where no other x is
 * 0, else 0. */
void hdi_grad_prod(hdi_grad *g) {
    hd_program *p = g->program;
    const int axis = (int)axis_of(g);
    const hd_value x = hdi_grad_wide(g, hdi_grad_x(g, 0)), none = hdi_grad_fill(g, HD_F32, (hd_shape){ 0 }, 0);
    const hd_value is_zero = hd_equal(p, x, none), zeros = hd_cast(p, is_zero, HD_F32);
    const hd_value u = hd_where(p, is_zero, hdi_grad_fill(g, HD_F32, (hd_shape){ 0 }, 1), x);
    const hd_value others = hd_equal(p, hd_sub(p, hd_sum(p, zeros, axis), zeros), none);
    const hd_value of_all = hd_mul(p, hdi_grad_wide(g, g->dy), hd_prod(p, u, axis));
    hdi_grad_give(g, 0, hdi_grad_where(g, others, hd_div(p, of_all, u)));
}

/* x[i] is in the sums from i on. */
void hdi_grad_cumsum(hdi_grad *g) {
    const uint32_t flags = (uint32_t)g->node.attrs.ints[1] ^ HD_CUMSUM_REVERSE;
    hdi_grad_give(g, 0, hd_cumsum(g->program, g->dy, (int)axis_of(g), flags));
}

/* max and min: all of it to the first extreme. */
void hdi_grad_pick(hdi_grad *g) {
    hd_program *p = g->program;
    const uint32_t axis = axis_of(g);
    const hd_shape shape = x_shape(g);
    hd_value x = hdi_grad_x(g, 0);
    if (g->node.op == HDI_OP_MIN) x = hd_neg(p, x);
    const hd_value first = hd_argmax(p, x, (int)axis), count = hdi_grad_count(g, shape.rank, axis, shape.dims[axis]);
    hdi_grad_give(g, 0, hdi_grad_where(g, hd_equal(p, count, first), g->dy));
}

void hdi_grad_dot(hdi_grad *g) {
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, hd_mul(g->program, g->dy, hdi_grad_x(g, 1)));
    if (!hdi_grad_wants(g, 1)) return;
    const hd_value db = hd_mul(g->program, g->dy, hdi_grad_x(g, 0));
    hdi_grad_give(g, 1, hdi_grad_sum_to(g, db, hdi_grad_shape(g, hdi_grad_x(g, 1))));
}
