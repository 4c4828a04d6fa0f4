/* importance.h: importance files: for each matrix of a model and each of its columns the mean square of what came in
 * over a text. The form is llama.cpp's importance matrix: general.type "imatrix" and, for each matrix NAME, tensors
 * NAME.in_sum2 f32 [experts,columns] and NAME.counts f32 [experts,1], rows that were summed. */
#ifndef HDL_IMPORTANCE_H
#define HDL_IMPORTANCE_H

#include "llm/gguf.h"

#define HDL_IMPORTANCE_TYPE   "imatrix"
#define HDL_IMPORTANCE_SUMS   ".in_sum2"
#define HDL_IMPORTANCE_COUNTS ".counts"

/* Opens such a file, as hdl_gguf_open does. Statuses: its own, UNSUPPORTED (none such). */
hd_status hdl_importance_open(const char *path, const hd_allocator *allocator, hdl_gguf **out_file, hd_error *error);
/* Experts of a matrix; 1 where there are none. */
static inline uint64_t hdl_importance_experts(const hdl_gguf_tensor *matrix) {
    return matrix->shape.rank > 2 ? (uint64_t)matrix->shape.dims[0] : 1;
}
/* Does the file tell of the matrix? */
bool hdl_importance_has(const hdl_gguf *file, const hdl_gguf_tensor *matrix);
/* The mean squares, [experts,columns], all 1 for an expert that no row chose; and the counts [experts]. Statuses:
 * NAME_NOT_FOUND, TYPE, SHAPE, PARSE (NaN, infinity or negative numbers), IO. */
hd_status hdl_importance_read(hdl_gguf *file, const hdl_gguf_tensor *matrix, float *out_means, float *out_counts,
                              hd_error *error);

#endif
