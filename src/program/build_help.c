/* build_help.c: see build_help.h. */
#include "program/build_help.h"
#include "program/attrs.h"
#include <stdio.h>

const hdi_node *hdi_build_node(hd_program *program, hd_value x) {
    uint32_t tag;
    return hdi_program_see(&program, &tag) ? hdi_program_node(program, hdi_value_id(tag, x)) : NULL;
}

hd_value hdi_build_refuse(hd_program *program, const char *op, hd_status status, const char *format, ...) {
    hd_error error = { 0 };
    char why[sizeof error.text];
    va_list args;
    if (!HDI_FIND(program)) return HDI_REFUSE(program), 0;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hdi_fail(&error, status, "%s: %s", op, why);
    snprintf(error.op, sizeof error.op, "%s", op);
    hdi_program_fail(program, &error);
    return 0;
}

hd_value hdi_build_refuse_operand(hd_program *program, const char *op, uint32_t number) {
    return hdi_build_refuse(program, op, HD_STATUS_UNKNOWN_VALUE,
                            "operand %u is a value of another program, or none", number);
}

bool hdi_build_fits(hd_shape shape) {
    const uint64_t bytes = hd_tensor_bytes(HD_F32, shape);
    return bytes > 0 && bytes <= HDI_MAX_TENSOR_BYTES;
}

/* ---- constants ---- */

hd_value hdi_build_nought(hd_program *program, hd_value x) {
    const hdi_node *node = hdi_build_node(program, x);
    const int64_t count = node ? (int64_t)hd_shape_elements(node->shape) : 0, none = 0, one = 1;
    if (count > 1) x = hd_slice(program, hd_reshape(program, x, HD_SHAPE(count)), &none, &one, 1);
    return hd_reshape(program, hd_less(program, x, x), (hd_shape){ 0 });
}

hd_value hdi_build_fill(hd_program *program, hd_value nought, hd_dtype dtype, hd_shape shape, float value) {
    const int64_t none[HD_MAX_RANK] = { 0 };
    int64_t after[HD_MAX_RANK] = { 0 };
    hd_value one = nought;
    if (value != 0) one = hd_scale(program, hd_cast(program, one, HD_F32), 1, value);
    hd_shape point = { shape.rank, { 1, 1, 1, 1, 1, 1 } };
    for (uint32_t i = 0; i < shape.rank && i < HD_MAX_RANK; i++) after[i] = shape.dims[i] - 1;
    if (dtype != (value != 0 ? HD_F32 : HD_U8)) one = hd_cast(program, one, dtype);
    one = hd_reshape(program, one, point);
    return hd_shape_elements(shape) == 1 ? one : hd_pad(program, one, none, after, shape.rank, value);
}

hd_value hdi_build_count(hd_program *program, hd_value nought, int64_t length) {
    return hd_cumsum(program, hdi_build_fill(program, nought, HD_I32, HD_SHAPE(length), 1), 0, HD_CUMSUM_EXCLUSIVE);
}
