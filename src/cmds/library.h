/* library.h: what a device's own library of matrix products is asked for, as constants of a kernel whose module says
 * "library". All sizes are constants, so that the library chooses its algorithm when the kernel is loaded; the grid is
 * one group and there are no push words.
 *
 * Bindings: A, B, C, memory to work in, and an addend. C[b] = A[b] x B[b], or that and the addend, with sums in f32; A
 * is [M,K] and B is [K,N], each in lines without gaps along one of its two axes, that lie LINE elements apart; C and
 * the addend are dense [BATCH,M,N]. Without an addend A is bound in its place. */
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
    HDI_PRODUCT_ADDS,                             /* 1: there is an addend */
    HDI_PRODUCT_CONSTANTS
};
/* Where A, B, C and the addend begin is a multiple of this many bytes. */
#define HDI_PRODUCT_ALIGN 16u
enum { HDI_PRODUCT_BINDINGS = 5 };

#endif
