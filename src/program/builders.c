/* builders.c: the public calls of heddle.h that add an operation. Each only puts its parameters into operands and
 * attributes; what is right and wrong is said in infer.c. */
#include "program/build_help.h"

static hd_value add(hd_program *p, hdi_op op, const hd_value *operands, uint32_t count, const hdi_attrs *attrs) {
    hdi_node node = { .op = op, .operands = operands, .operand_count = count };
    if (attrs) node.attrs = *attrs;
    return hdi_program_put(p, &node);
}

static hd_value with_floats(hd_program *p, hdi_op op, hd_value x, float first, float second) {
    return add(p, op, &x, 1, &(hdi_attrs){ .floats = { first, second } });
}

/* ---- named values ---- */

hd_value hd_input(hd_program *program, const char *name, hd_dtype dtype, hd_shape shape) {
    return hdi_program_put(program, &(hdi_node){ .op = HDI_OP_INPUT, .dtype = dtype, .shape = shape, .name = name });
}
hd_value hd_state(hd_program *program, const char *name, hd_dtype dtype, hd_shape shape) {
    return hdi_program_put(program, &(hdi_node){ .op = HDI_OP_STATE, .dtype = dtype, .shape = shape, .name = name });
}

/* ---- the usual forms, by the builder column of op_table.inc ---- */

static hd_value along(hd_program *p, hdi_op op, const hd_value *operands, uint32_t count, int axis) {
    return add(p, op, operands, count, &(hdi_attrs){ .ints = { axis } });
}

/* Over all axes is: one axis, reduced, then none. What could not be reshaped goes on as it is and is refused by
 * name. */
static hd_value reduce(hd_program *p, hdi_op op, hd_value *operands, uint32_t count, int axis) {
    const hdi_node *x = hdi_build_node(p, operands[0]), *last = hdi_build_node(p, operands[count - 1]);
    bool fits = x && last && !hdi_dtype_is_quantised(x->dtype) && x->dtype == last->dtype &&
                hdi_shape_equal(x->shape, last->shape);
    if (axis != HD_ALL_AXES || !fits) return along(p, op, operands, count, axis);
    hd_shape row = { 1, { (int64_t)hd_shape_elements(x->shape) } };
    for (uint32_t i = 0; i < count; i++) operands[i] = hd_reshape(p, operands[i], row);
    return hd_reshape(p, along(p, op, operands, count, 0), (hd_shape){ 0 });
}

#define BUILD_own(code, name)
#define BUILD_unary(code, name) \
    hd_value hd_##name(hd_program *p, hd_value x) { return add(p, HDI_OP_##code, &x, 1, NULL); }
#define BUILD_binary(code, name) \
    hd_value hd_##name(hd_program *p, hd_value a, hd_value b) { \
        return add(p, HDI_OP_##code, (hd_value[]){ a, b }, 2, NULL); \
    }
#define BUILD_ternary(code, name) \
    hd_value hd_##name(hd_program *p, hd_value a, hd_value b, hd_value c) { \
        return add(p, HDI_OP_##code, (hd_value[]){ a, b, c }, 3, NULL); \
    }
#define BUILD_along(code, name) \
    hd_value hd_##name(hd_program *p, hd_value x, int axis) { return along(p, HDI_OP_##code, &x, 1, axis); }
#define BUILD_reduce(code, name) \
    hd_value hd_##name(hd_program *p, hd_value x, int axis) { return reduce(p, HDI_OP_##code, &x, 1, axis); }
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, ...) BUILD_##builder(code, name)
#include "program/op_table.inc"
#undef HDI_OP

/* ---- element by element ---- */

hd_value hd_ceil(hd_program *p, hd_value x) { return hd_neg(p, hd_floor(p, hd_neg(p, x))); }

hd_value hd_scale(hd_program *p, hd_value x, float factor, float bias) {
    return with_floats(p, HDI_OP_SCALE, x, factor, bias);
}
hd_value hd_leaky_relu(hd_program *p, hd_value x, float slope) {
    return with_floats(p, HDI_OP_LEAKY_RELU, x, slope, 0);
}
hd_value hd_elu(hd_program *p, hd_value x, float alpha) { return with_floats(p, HDI_OP_ELU, x, alpha, 0); }
hd_value hd_clip(hd_program *p, hd_value x, float low, float high) {
    return with_floats(p, HDI_OP_CLIP, x, low, high);
}

hd_value hd_cast(hd_program *p, hd_value x, hd_dtype dtype) {
    return hdi_program_put(p, &(hdi_node){ .op = HDI_OP_CAST, .dtype = dtype, .operands = &x, .operand_count = 1 });
}

/* ---- form ---- */

hd_value hd_permute(hd_program *p, hd_value x, const uint32_t *axes, uint32_t count) {
    hdi_attrs attrs = { .list_count = count };
    if (count > 0 && !axes) return hdi_build_refuse(p, "permute", HD_STATUS_NULL_POINTER, "axes is NULL");
    for (uint32_t i = 0; i < count && i < HD_MAX_RANK; i++) attrs.ints[i] = axes[i];
    return add(p, HDI_OP_PERMUTE, &x, 1, &attrs);
}

hd_value hd_transpose(hd_program *p, hd_value x) {
    const hdi_node *node = hdi_build_node(p, x);
    uint32_t axes[HD_MAX_RANK] = { 0, 1, 2, 3, 4, 5 }, rank = node ? node->shape.rank : 0;
    if (node && rank < 2)
        return hdi_build_refuse(p, "transpose", HD_STATUS_SHAPE,
                                rank ? "the operand has 1 axis only" : "the operand has no axis");
    if (node) {
        axes[rank - 2] = rank - 1;
        axes[rank - 1] = rank - 2;
    }
    return hd_permute(p, x, axes, rank);
}

hd_value hd_reshape(hd_program *p, hd_value x, hd_shape shape) {
    return hdi_program_put(p, &(hdi_node){ .op = HDI_OP_RESHAPE, .shape = shape, .operands = &x, .operand_count = 1 });
}

hd_value hd_windows(hd_program *p, hd_value x, int axis, int64_t size, int64_t stride, int64_t dilation) {
    return add(p, HDI_OP_WINDOWS, &x, 1, &(hdi_attrs){ .ints = { axis, size, stride, dilation } });
}

hd_value hd_concat(hd_program *p, const hd_value *values, uint32_t count, int axis) {
    return add(p, HDI_OP_CONCAT, values, count, &(hdi_attrs){ .ints = { axis } });
}

/* slice and pad: two lists of one length. */
static hd_value with_lists(hd_program *p, hdi_op op, hd_value x, const int64_t *first, const int64_t *second,
                           uint32_t count,
                           float value) {
    hdi_attrs attrs = { .list_count = count, .floats = { value } };
    if (count > 0 && (!first || !second))
        return hdi_build_refuse(p, hdi_op_get(op).name, HD_STATUS_NULL_POINTER, "a list is NULL");
    for (uint32_t i = 0; i < count && i < HD_MAX_RANK; i++) {
        attrs.ints[i] = first[i];
        attrs.ints[HD_MAX_RANK + i] = second[i];
    }
    return add(p, op, &x, 1, &attrs);
}

hd_value hd_slice(hd_program *p, hd_value x, const int64_t *begin, const int64_t *end, uint32_t count) {
    return with_lists(p, HDI_OP_SLICE, x, begin, end, count, 0);
}
hd_value hd_pad(hd_program *p, hd_value x, const int64_t *before, const int64_t *after, uint32_t count, float value) {
    return with_lists(p, HDI_OP_PAD, x, before, after, count, value);
}

/* ---- along an axis ---- */

hd_value hd_top_k(hd_program *p, hd_value x, uint32_t k) {
    return add(p, HDI_OP_TOP_K, &x, 1, &(hdi_attrs){ .ints = { k } });
}
hd_value hd_hash(hd_program *p, hd_value x) { return add(p, HDI_OP_HASH, &x, 1, NULL); }

hd_value hd_cumsum(hd_program *p, hd_value x, int axis, uint32_t flags) {
    return add(p, HDI_OP_CUMSUM, &x, 1, &(hdi_attrs){ .ints = { axis, flags } });
}
hd_value hd_dot(hd_program *p, hd_value a, hd_value b, int axis) {
    return reduce(p, HDI_OP_DOT, (hd_value[]){ a, b }, 2, axis);
}

hd_value hd_rms_norm(hd_program *p, hd_value x, hd_value weight, float eps) {
    return add(p, HDI_OP_RMS_NORM, (hd_value[]){ x, weight }, 2, &(hdi_attrs){ .floats = { eps } });
}
hd_value hd_layer_norm(hd_program *p, hd_value x, hd_value weight, hd_value bias, float eps) {
    return add(p, HDI_OP_LAYER_NORM, (hd_value[]){ x, weight, bias }, 3, &(hdi_attrs){ .floats = { eps } });
}

/* ---- products, tables, states ---- */

hd_value hd_matmul(hd_program *p, hd_value a, hd_value b) { return hd_matmul_with(p, a, b, HD_MATMUL_PLAIN); }
hd_value hd_matmul_with(hd_program *p, hd_value a, hd_value b, uint32_t flags) {
    return add(p, HDI_OP_MATMUL, (hd_value[]){ a, b }, 2, &(hdi_attrs){ .ints = { flags } });
}
hd_value hd_write_pages(hd_program *p, hd_value state, hd_value rows, hd_value position, hd_value pages) {
    return add(p, HDI_OP_WRITE_ROWS, (hd_value[]){ state, rows, position, pages }, 4, NULL);
}

hd_value hd_random(hd_program *p, hd_value key, uint32_t stream, hd_shape shape) {
    return hdi_program_put(p, &(hdi_node){ .op = HDI_OP_RANDOM, .shape = shape, .operands = &key, .operand_count = 1,
                                           .attrs = { .ints = { stream } } });
}

/* ---- attention and its company ---- */

hd_value hd_rope(hd_program *p, hd_value x, hd_value positions, const hd_rope_desc *desc) {
    const hdi_node *node = hdi_build_node(p, x);
    hd_rope_desc d = desc ? *desc : (hd_rope_desc){ 0 };
    if (d.dims == 0 && node && node->shape.rank > 0) /* more than 32 bits hold is refused for other reasons */
        d.dims = (uint32_t)HDI_MIN(node->shape.dims[node->shape.rank - 1], (int64_t)UINT32_MAX);
    hdi_attrs attrs = { .ints = { d.dims, (int64_t)d.pairing }, .floats = { d.theta, d.frequency_scale, d.magnitude },
                        .factor_count = d.factors ? d.dims / 2 : 0, .factors = d.factors };
    return add(p, HDI_OP_ROPE, (hd_value[]){ x, positions }, 2, &attrs);
}

hd_value hd_attention(hd_program *p, hd_value q, hd_value k, hd_value v, hd_value past, const hd_attention_desc *desc) {
    const hd_attention_desc d = desc ? *desc : (hd_attention_desc){ 0 };
    const hdi_attrs attrs = { .ints = { d.not_causal != 0, d.window, d.bf16 != 0 }, .floats = { d.scale, d.cap } };
    return add(p, HDI_OP_ATTENTION, (hd_value[]){ q, k, v, past, d.pages, d.sinks, d.mask, d.starts }, 8,
               &attrs);
}

