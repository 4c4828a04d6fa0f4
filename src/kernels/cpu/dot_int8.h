/* dot_int8.h: columns of quantised weights times rows of activations that are rounded to 8 bits, with one scale for each
 * 32 along K. Codes meet activations as integers, straight from GGUF's blocks; each block's sum is scaled as f32. */
#ifndef HDCPU_DOT_INT8_H
#define HDCPU_DOT_INT8_H

#include "kernels/cpu/matmul_native.h"
#include "kernels/kernel.h"

#if defined(HDCPU_LEVEL) && HDCPU_LEVEL >= 1
#define HDCPU_DOT_INT8 1
#define hdcpu_int8_takes   HDCPU_JOIN(hdcpu_int8_takes_l, HDCPU_LEVEL)
#define hdcpu_int8_row     HDCPU_JOIN(hdcpu_int8_row_l, HDCPU_LEVEL)
#define hdcpu_int8_columns HDCPU_JOIN(hdcpu_int8_columns_l, HDCPU_LEVEL)

/* Is there a form for this type of weights? */
bool hdcpu_int8_takes(uint32_t type);
/* Rounds a row of k activations, in the order in which the type's codes lie: hdcpu_int8_row_bytes, 64-byte aligned. */
void hdcpu_int8_row(uint32_t type, const float *x, uint32_t k, void *out_row);
/* out[r * out_stride + j] = column j times row r, for `rows` = 1, 2, 4 or 8 rows that lie behind each other. Column j
 * begins column_bytes * j behind the first. Reads nothing beyond a column's last block. */
void hdcpu_int8_columns(uint32_t type, const uint8_t *columns, uint64_t column_bytes, uint32_t count, uint32_t k,
                        const void *row, uint32_t rows, float *out, uint32_t out_stride);
#endif
#endif
