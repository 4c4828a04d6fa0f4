/* i2s.h: tensors of I2_S, the ternary type of bitnet.cpp, as tq2_0, which the library computes with. Any thread. */
#ifndef HDL_I2S_H
#define HDL_I2S_H

#include "llm/support.h"

/* Unpacks a tensor: `data` are its `bytes` bytes as hdl_gguf_data gives them, `shape` its shape, whose last axis is a
 * multiple of 256. Its values are scale * what the blocks hold, each -1, 0 or 1 (blocks with d = 1).
 * @param out_blocks hd_tensor_bytes(HD_TQ2_0, shape) bytes, apart from `data`. @param out_scale multiply the product by it.
 * Statuses: NULL_POINTER, SHAPE (not whole blocks, or too large), INVALID_ARGUMENT (`bytes` or `out_bytes` are not what the
 * shape needs), PARSE (a code that stands for nothing, or a scale that is no number). */
hd_status hdl_i2s_to_tq2_0(const void *data, uint64_t bytes, hd_shape shape, void *out_blocks, uint64_t out_bytes, float *out_scale, hd_error *error);

#endif
