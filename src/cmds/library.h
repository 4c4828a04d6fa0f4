/* library.h: what a device's own library of matrix products is asked for, as constants of a kernel whose module says
 * "library". All sizes are constants, so that the library chooses its algorithm when the kernel is loaded; the grid is
 * one group and there are no push words.
 *
 * Bindings: A, B, C, memory to work in, an addend and a row. C[b] = A[b] x B[b], or that and the addend, or the row, or
 * both, with sums in f32; A is [M,K] and B is [K,N], each in lines without gaps along one of its two axes, that lie
 * LINE elements apart; C and the addend are dense [BATCH,M,N] of one type, the row is [N] of that and is added to every
 * row of C, which is f32 or bf16 then. A is bound in the place of what is absent. */
#ifndef HDI_LIBRARY_H
#define HDI_LIBRARY_H

enum hdi_product_constant {
    HDI_PRODUCT_OUT_TYPE = 15,                    /* hd_dtype, as the other types */
    HDI_PRODUCT_A_TYPE, HDI_PRODUCT_B_TYPE,
    HDI_PRODUCT_M, HDI_PRODUCT_N, HDI_PRODUCT_K,
    HDI_PRODUCT_A_ALONG_K, HDI_PRODUCT_B_ALONG_K, /* 1: lines run along K; 0: along M, or N */
    HDI_PRODUCT_A_LINE, HDI_PRODUCT_B_LINE,
    HDI_PRODUCT_A_FIRST, HDI_PRODUCT_B_FIRST,     /* first elements */
    HDI_PRODUCT_BATCH,
    HDI_PRODUCT_A_BATCH, HDI_PRODUCT_B_BATCH,     /* elements from one matrix to the next; 0: the same for all */
    HDI_PRODUCT_WORKSPACE,                        /* bytes of the memory to work in */
    HDI_PRODUCT_ADDS,                             /* bit 0: there is an addend; bit 1: there is a row */
    HDI_PRODUCT_CONSTANTS
};
#define HDI_PRODUCT_ADDS_MATRIX 1u
#define HDI_PRODUCT_ADDS_ROW    2u
/* Where A, B, C, the addend and the row begin is a multiple of this many bytes. */
#define HDI_PRODUCT_ALIGN 16u
enum { HDI_PRODUCT_BINDINGS = 6 };

#endif
