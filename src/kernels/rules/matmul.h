/* matmul.h: a matrix product in the form that its rules and its launches work on. */
#ifndef HDI_KERNELS_MATMUL_H
#define HDI_KERNELS_MATMUL_H

#include "kernels/kernel.h"

enum { BATCH_AXES = 3, SOURCES = HDI_CHAIN_INPUTS - 1 };

/* One operand: strides along its lines (rows of A, columns of B), along K and along the batch axes. */
typedef struct side {
    const hdi_tensor *tensor;
    uint64_t first, line, depth, batch[BATCH_AXES];
    bool along_k, wide; /* HDI_MM_A_ALONG_K, HDI_MM_A_WIDE */
} side;

/* A chain's source beside the sum. */
typedef struct source {
    const hdi_tensor *tensor;
    uint64_t batch, m, n;
} source;

typedef struct product {
    const hdi_request *request;
    hd_dtype type; /* of the product, before the chain */
    uint64_t m, n, k, batch, lengths[BATCH_AXES]; /* axis 2 is the innermost */
    side     a, b;
    source   sources[SOURCES];
    uint32_t source_count, free_axis; /* batch axes below free_axis are unused */
} product;

/* Brings both operands of the request to lines along K and at most three batch axes. UNSUPPORTED where these are not enough. */
hd_status hdi_product_read(const hdi_request *request, product *out_product, hd_error *error);
#endif
