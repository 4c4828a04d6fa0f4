/* ternary.c: what the ternary types of bitnet.cpp have in common: how much they take unpacked, and the scale of the
 * whole tensor, an f32 that stands behind all codes. */
#include "llm/ternary.h"
#include <math.h>

enum { I2S_GROUP = 128, TQ2_0_ELEMENTS = 256, Q4_0_ELEMENTS = 32 };
const uint8_t hdl_ternary_one[2] = { 0x00, 0x3C };

bool hdl_is_ternary(uint32_t type) {
    return type == HDL_GGUF_TYPE_I2_S || type == HDL_GGUF_TYPE_TL1 || type == HDL_GGUF_TYPE_TL2;
}

hd_dtype hdl_ternary_dtype(hd_shape shape) {
    return shape.rank > 0 && shape.dims[shape.rank - 1] % TQ2_0_ELEMENTS == 0 ? HD_TQ2_0 : HD_Q4_0;
}

hd_status hdl_ternary_unpack(const hdl_ternary *from, void *out_blocks, uint64_t out_bytes, float *out_scale,
                             hd_error *error) {
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(from->type);
    const hd_shape shape = from->shape;
    const bool is_i2s = from->type == HDL_GGUF_TYPE_I2_S;
    if (!from->data.bytes || !out_blocks || !out_scale)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "%s: no data, or nowhere to put it", facts.name);
    const uint64_t needed = hdl_gguf_tensor_bytes(from->type, shape),
                   room = hd_tensor_bytes(hdl_ternary_dtype(shape), shape);
    if (needed == 0 || room == 0 || (is_i2s && shape.dims[shape.rank - 1] % I2S_GROUP))
        return hdl_fail(error, HD_STATUS_SHAPE, "%s: the last axis is no multiple of %d, or the tensor is too large",
                        facts.name, is_i2s ? I2S_GROUP : Q4_0_ELEMENTS);
    if (!is_i2s && !hdl_tl_fits(from->type, shape, from->tiles))
        return hdl_fail(error, HD_STATUS_SHAPE, "%s: the tensor cannot be cut into such tiles", facts.name);
    if (from->data.count != needed || out_bytes != room)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "%s: %llu bytes into %llu, the shape needs %llu into %llu",
                        facts.name, (unsigned long long)from->data.count, (unsigned long long)out_bytes,
                        (unsigned long long)needed, (unsigned long long)room);
    if (!(is_i2s ? hdl_i2s_unpack(from, out_blocks) : hdl_tl_unpack(from, out_blocks)))
        return hdl_fail(error, HD_STATUS_PARSE, "%s: a code that stands for no value", facts.name);
    const uint8_t *at = from->data.bytes + needed - facts.tail_bytes;
    const uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    if (!isfinite(scale)) return hdl_fail(error, HD_STATUS_PARSE, "%s: the scale is not a finite number", facts.name);
    *out_scale = scale;
    return HD_OK;
}

hd_status hdl_ternary_blocks(const hd_allocator *allocator, hdl_span name, const hdl_ternary *from,
                             hdl_span *out_blocks, float *out_scale, hd_error *error) {
    const uint64_t bytes = hd_tensor_bytes(hdl_ternary_dtype(from->shape), from->shape);
    uint8_t *blocks = hdl_alloc(allocator, bytes);
    hd_error inner = { 0 };
    char quoted[HDL_QUOTE];
    *out_blocks = (hdl_span){ blocks, blocks ? bytes : 0 };
    if (!blocks) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to unpack a weight");
    const hd_status status = hdl_ternary_unpack(from, blocks, bytes, out_scale, &inner);
    return status ? hdl_fail(error, status, "tensor %s: %s", hdl_quote(name, quoted), inner.text) : HD_OK;
}
