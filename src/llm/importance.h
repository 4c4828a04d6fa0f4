/* importance.h: importance files: for each matrix of a model and each of its columns the mean square of what came in
 * over a text. The form is llama.cpp's importance matrix: general.type "imatrix" and, for each matrix NAME, tensors
 * NAME.in_sum2 f32 [experts,columns] and NAME.counts f32 [experts,1], rows that were summed. */
#ifndef HDL_IMPORTANCE_H
#define HDL_IMPORTANCE_H

#include "llm/gguf.h"

#define HDL_IMPORTANCE_TYPE   "imatrix"
#define HDL_IMPORTANCE_SUMS   ".in_sum2"
#define HDL_IMPORTANCE_COUNTS ".counts"

#endif
