/* i2s.h: tensors of I2_S, the ternary type of bitnet.cpp, in a type that the library computes with. Any thread. */
#ifndef HDL_I2S_H
#define HDL_I2S_H

#include "llm/support.h"

/* The type that a tensor of this shape is unpacked to: tq2_0, or q4_0 where rows are no multiple of its 256
 * elements. */
hd_dtype hdl_i2s_dtype(hd_shape shape);
/* Unpacks a tensor: `data` are its `bytes` bytes as hdl_gguf_data gives them. Its values are scale * what the blocks
 * hold, each -1, 0 or 1 (blocks with d = 1). @param out_blocks hd_tensor_bytes(hdl_i2s_dtype(shape), shape) bytes,
 * apart from `data`. @param out_scale multiply the product by it. Statuses: NULL_POINTER, SHAPE (not whole blocks, or
 * too large), INVALID_ARGUMENT (`bytes` or `out_bytes` are not what the shape needs), PARSE (a code that stands for
 * nothing, or a scale that is no number). */
hd_status hdl_i2s_unpack(const void *data, uint64_t bytes, hd_shape shape, void *out_blocks, uint64_t out_bytes,
                         float *out_scale, hd_error *error);

#endif
