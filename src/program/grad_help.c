/* grad_help.c: what the rules of grad*.c are made of: constants, made of the loss, and shapes that broadcast. */
#include "program/build_help.h"
#include "program/grad.h"

hd_shape hdi_grad_shape(const hdi_grad *g, hd_value value) {
    const hdi_node *node = hdi_program_node(g->program, value);
    return node ? node->shape : (hd_shape){ 0 };
}

hd_dtype hdi_grad_type(const hdi_grad *g, hd_value value) {
    const hdi_node *node = hdi_program_node(g->program, value);
    return node ? node->dtype : HD_F32;
}

hd_value hdi_grad_narrow(const hdi_grad *g, hd_value x) {
    const hdi_node *node = hdi_program_node(g->program, x);
    const bool widened = node && node->op == HDI_OP_CAST && node->dtype == HD_F32 &&
                         hdi_dtype_is_float(hdi_grad_type(g, node->operands[0]));
    return widened ? node->operands[0] : x;
}

hd_value hdi_grad_to(hdi_grad *g, hd_value x, hd_dtype dtype) {
    if (hdi_grad_type(g, hdi_grad_narrow(g, x)) == dtype) return hdi_grad_narrow(g, x);
    return hdi_grad_type(g, x) == dtype ? x : hd_cast(g->program, x, dtype);
}
hd_value hdi_grad_wide(hdi_grad *g, hd_value x) { return hdi_grad_to(g, x, HD_F32); }

hd_value hdi_grad_fill(hdi_grad *g, hd_dtype dtype, hd_shape shape, float value) {
    hdi_grad_constant made = { .dtype = dtype, .shape = shape, .value = value };
    if (hdi_grad_find(g, &made)) return hdi_grad_find(g, &made);
    made.made = hdi_build_fill(g->program, hdi_grad_nought(g), dtype, shape, value);
    return hdi_grad_keep(g, made);
}

hd_value hdi_grad_whole(hdi_grad *g, int64_t value) {
    enum { PART = 4096 };
    const hd_shape point = { 0 };
    if (value < 1 << 24) return hdi_grad_fill(g, HD_I32, point, (float)value);
    const hd_value high = hd_mul(g->program, hdi_grad_whole(g, value / PART), hdi_grad_whole(g, PART));
    return hd_add(g->program, high, hdi_grad_whole(g, value % PART));
}

hd_value hdi_grad_count(hdi_grad *g, uint32_t rank, uint32_t axis, int64_t length) {
    hd_shape shape = { rank, { 1, 1, 1, 1, 1, 1 } };
    shape.dims[axis] = length;
    hdi_grad_constant made = { .dtype = HD_I32, .shape = shape, .counts = true };
    if (hdi_grad_find(g, &made)) return hdi_grad_find(g, &made);
    const hd_value ones = hdi_grad_fill(g, HD_I32, HD_SHAPE(length), 1);
    made.made = hd_reshape(g->program, hd_cumsum(g->program, ones, 0, HD_CUMSUM_EXCLUSIVE), shape);
    return hdi_grad_keep(g, made);
}

/* where(c, x, x) is x, bit by bit, and as large as c: c needs the axes only that x lacks. */
hd_value hdi_grad_expand(hdi_grad *g, hd_value x, hd_shape shape) {
    const hd_shape from = hdi_grad_shape(g, x);
    hd_shape lacking = { shape.rank, { 1, 1, 1, 1, 1, 1 } };
    bool lacks = false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        const uint32_t before = shape.rank - from.rank;
        if (i >= before && from.dims[i - before] == shape.dims[i]) continue;
        lacking.dims[i] = shape.dims[i];
        lacks |= shape.dims[i] > 1;
    }
    if (!lacks) return from.rank == shape.rank ? x : hd_reshape(g->program, x, shape);
    return hd_where(g->program, hdi_grad_fill(g, HD_U8, lacking, 0), x, x);
}

hd_value hdi_grad_sum_to(hdi_grad *g, hd_value x, hd_shape shape) {
    hd_program *p = g->program;
    hd_shape from = hdi_grad_shape(g, x);
    if (hd_shape_elements(from) == hd_shape_elements(shape))
        return hdi_shape_equal(from, shape) ? x : hd_reshape(p, x, shape);
    const uint32_t before = from.rank - shape.rank;
    for (uint32_t end = from.rank; end > 0; end--) {
        uint32_t begin = end, left = 0;
        while (begin > 0 && (begin - 1 < before || shape.dims[begin - 1 - before] == 1)) begin--;
        int64_t length = 1;
        for (uint32_t i = begin; i < end; i++) length *= from.dims[i];
        if (begin == end || length == 1) continue;
        hd_shape joined = { 0 }; /* what is in front, the axes to sum as one, what is behind */
        for (uint32_t i = 0; i < begin; i++) joined.dims[left++] = from.dims[i];
        joined.dims[left] = length;
        joined.rank = left + 1;
        for (uint32_t i = end; i < from.rank; i++) joined.dims[joined.rank++] = from.dims[i];
        x = hd_sum(p, hd_reshape(p, x, joined), (int)left);
        for (uint32_t i = begin; i < end; i++) from.dims[i] = 1;
        x = hd_reshape(p, x, from);
        end = begin + 1;
    }
    return hd_reshape(p, x, shape);
}

hd_value hdi_grad_flat(hdi_grad *g, hd_value x, uint32_t axes) {
    const hd_shape from = hdi_grad_shape(g, x);
    hd_shape to = { 1, { 1 } };
    for (uint32_t i = 0; i < from.rank; i++) {
        if (i < axes) to.dims[0] *= from.dims[i];
        else to.dims[to.rank++] = from.dims[i];
    }
    return hdi_shape_equal(from, to) ? x : hd_reshape(g->program, x, to);
}

hd_value hdi_grad_where(hdi_grad *g, hd_value condition, hd_value x) {
    return hd_where(g->program, condition, x, hdi_grad_fill(g, hdi_grad_type(g, x), (hd_shape){ 0 }, 0));
}
hd_value hdi_grad_unless(hdi_grad *g, hd_value condition, hd_value x) {
    return hd_where(g->program, condition, hdi_grad_fill(g, hdi_grad_type(g, x), (hd_shape){ 0 }, 0), x);
}
