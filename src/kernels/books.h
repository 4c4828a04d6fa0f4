/* books.h: the code books of GGUF's types iq1_s to iq3_s (abi.h), as kernels of a GPU are given them. */
#ifndef HDI_KERNELS_BOOKS_H
#define HDI_KERNELS_BOOKS_H

#include "kernels/kernel.h"

/* What a kernel that unpacks `weights` is bound to: the table of all books, a constant of the plan; `otherwise` where
 * the type has no book, or where the device's kernels are in C, which know it. */
hd_status hdi_books_operand(const hdi_caps *caps, hd_dtype weights, const hdi_tensor *otherwise,
                            hdi_lowering *lowering, hdi_tensor *out_books, hd_error *error);
#endif
