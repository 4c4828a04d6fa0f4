/* dot_int8.h: columns of quantised weights times rows of activations that are rounded to 8 bits, with one scale for
 * each 32 along K. Codes meet activations as integers, straight from GGUF's blocks; each block's sum is scaled as
 * f32. */
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
/* out[r * out_stride + j] = column j times row r. */
typedef struct hdcpu_int8_product {
    uint32_t       type; /* of the weights */
    uint32_t       k, count; /* elements of a column, columns */
    const uint8_t *columns;  /* column j begins column_bytes * j behind the first */
    uint64_t       column_bytes;
    const uint8_t *x; /* rows from hdcpu_int8_row, one behind the other */
    uint32_t       rows; /* 1, 2, 4 or 8 */
    float         *out;
    uint32_t       out_stride;
} hdcpu_int8_product;
/* Reads nothing beyond a column's last block. */
void hdcpu_int8_columns(const hdcpu_int8_product *product);
#endif
#endif
