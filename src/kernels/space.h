/* space.h: the index space over which an element-wise chain runs: its axes, and the operands' strides along them. */
#ifndef HDI_KERNELS_SPACE_H
#define HDI_KERNELS_SPACE_H

#include "kernels/kernel.h"

#define HDI_SPACE_OUTPUT   4u /* behind the chain's inputs */
#define HDI_SPACE_OPERANDS 5u

typedef struct hdi_operand {
    const hdi_tensor *tensor; /* NULL: none */
    uint64_t element_bytes;
    uint64_t first;
    int64_t  strides[HD_MAX_RANK];
    uint64_t further; /* elements to the last of several parts */
} hdi_operand;
typedef struct hdi_space {
    uint32_t    rank; /* at least 1 */
    uint64_t    lengths[HD_MAX_RANK];
    hdi_operand operands[HDI_SPACE_OPERANDS]; /* inputs, and the output at HDI_SPACE_OUTPUT */
} hdi_space;

/* Where an operand lies, as a binding sees it. */
typedef struct hdi_place {
    bool     dense;         /* read at the output's own index, from the binding's beginning */
    uint64_t offset, bytes; /* of the binding */
    uint64_t first, last;   /* elements from `offset` on: where index 0 is, and the furthest one */
} hdi_place;

/* Axes of length 1 are left out, and those that all operands walk alike are one. */
hdi_space hdi_space_of(const hdi_chain *chain, const hdi_tensor *out);
uint64_t  hdi_space_elements(const hdi_space *space);
hdi_place hdi_space_place(const hdi_space *space, uint32_t operand, const hdi_caps *caps);

/* transpose.c: appends the launch of a copy whose input lies along another axis than its output: tiles are turned on
 * the way, so that both are walked in their own order. `out_taken` is false where it is another chain, or the kernel
 * does not take it. */
hd_status hdi_lower_transpose(const hdi_request *request, const hdi_chain *chain, const hdi_space *space,
                              hdi_lowering *lowering, bool *out_taken,
                              hd_error *error);
#endif
