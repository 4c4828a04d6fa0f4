/* rope.h: what the lowerings of rope and of attention share. */
#ifndef HDI_KERNELS_RULES_ROPE_H
#define HDI_KERNELS_RULES_ROPE_H

#include "kernels/rows.h"

/* Do heads turn whole, and are they of 16, 32, 64, ... elements, as kernels take them whose lanes have fours? */
bool hdi_rope_is_whole(const hdi_attrs *attrs, uint32_t D);
/* Are sines and cosines of so many positions made ahead of the heads that they turn? Not on a device that makes them
 * for a token anyway, nor where a binding does not hold them. */
bool hdi_rope_turns_fit(const hdi_caps *caps, uint64_t positions, uint32_t dims);
/* Makes them, f32[T, dims / 2, 2], in a launch of their own: equal ones of a plan are made once. `attrs`: a rope's. */
hd_status hdi_rope_turns(const hdi_request *request, const hdi_attrs *attrs, const hdi_tensor *positions,
                         uint32_t dims, hdi_lowering *lowering, hdi_tensor *out_turns, hd_error *error);
#endif
