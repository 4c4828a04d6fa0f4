/* attention.h: what the lowerings of attention and of its gradient share. */
#ifndef HDI_KERNELS_RULES_ATTENTION_H
#define HDI_KERNELS_RULES_ATTENTION_H

#include "kernels/rows.h"

#define HDI_ATTENTION_TILES_INVOCATIONS 128u /* of a GPU's workgroup */

/* Shared memory and units of a device, and what is taken for one that does not say. */
static inline uint64_t hdi_attention_room(const hdi_caps *caps) {
    return caps->shared_bytes ? caps->shared_bytes : 16384;
}
static inline uint64_t hdi_attention_units(const hdi_caps *caps) {
    return caps->compute_units ? caps->compute_units : 16;
}

/* Has it workgroups of four subgroups of 32, such as kernels on matrix units need? */
bool hdi_attention_has_subgroups(const hdi_caps *caps);

/* Sizes of a workgroup that works by tiles, as the constants of the same names (abi.h). */
typedef struct hdi_attention_sizes { uint32_t own, other, slice; } hdi_attention_sizes;
/* For `rows` of each of `pairs` key heads, which have two sums or one: large tiles where they fit, and where there are
 * rows for all units of the device. */
hdi_attention_sizes hdi_attention_sizes_of(const hdi_request *request, uint64_t rows, uint64_t pairs, uint32_t D,
                                           bool two_sums);
/* Has the device room for the least workgroup? */
bool hdi_attention_tiles_fit(const hdi_caps *caps);
#endif
