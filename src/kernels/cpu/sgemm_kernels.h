/* sgemm_kernels.h: what sgemm.c needs from an instruction set. Private to the matrix product.
 *
 * A tile is a small block of C held in registers. It reads a strip of A (depth x rows, k outermost) and a strip of B
 * (depth x columns, a row every b_stride floats). A set has a tile for every number of rows up to `rows`, full width
 * and half width, so that an edge costs what it holds. */
#ifndef HDCPU_SGEMM_KERNELS_H
#define HDCPU_SGEMM_KERNELS_H

#include "kernels/cpu/sgemm.h"

enum { TILE_ROWS_MAX = 14, TILE_COLUMNS_MAX = 32, LINES_AT_ONCE = 8, DOTS_AT_ONCE = 4, RUN_DEPTH = 64 };

typedef void (*hdcpu_tile)(int64_t depth, const float *a, const float *b, int64_t b_stride, float *c, int64_t c_stride,
                           int accumulate);

struct hdcpu_sgemm_kernels {
    const char *name;
    int64_t     rows, columns;     /* of the largest tile; columns is two vectors */
    int64_t     k_block, m_block;  /* the most depth, and rows of A, that a packed block has */
    hdcpu_tile  wide[TILE_ROWS_MAX + 1], narrow[TILE_ROWS_MAX + 1];

    /* out[d * width + line] = in[line * line_stride + d], for line < lines and d < depth. */
    void (*transpose)(const float *in, int64_t line_stride, int64_t lines, int64_t depth, int64_t width, float *out);
    /* out[d * width + line] = in[d * depth_stride + line]. */
    void (*copy)(const float *in, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width, float *out);
    void (*from_f16)(const uint16_t *in, int64_t count, float *out);
    void (*from_bf16)(const uint16_t *in, int64_t count, float *out);
    /* out[i] += sum over d of rows[i * row_stride + d] * x[d], for i < DOTS_AT_ONCE; dot: the same for one row. */
    void (*dots)(const float *rows, int64_t row_stride, const float *x, int64_t depth, float *out);
    void (*dot)(const float *row, const float *x, int64_t depth, float *out);
    /* y[j] += sum over i < LINES_AT_ONCE of x[i] * lines[i * line_stride + j]; add_line: the same for one line. */
    void (*add_lines)(const float *lines, int64_t line_stride, const float *x, int64_t count, float *y);
    void (*add_line)(const float *line, float x, int64_t count, float *y);
};

extern const hdcpu_sgemm_kernels hdcpu_sgemm_portable;
#if defined(__x86_64__)
extern const hdcpu_sgemm_kernels hdcpu_sgemm_avx2, hdcpu_sgemm_avx512;
#endif

#endif
