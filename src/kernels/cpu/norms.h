/* norms.h: what a CPU's kernels of norms and of their gradients share: what a row is normalised by. */
#ifndef HDCPU_NORMS_H
#define HDCPU_NORMS_H

#include "kernels/cpu/rows.h"

typedef struct row_facts { float mean, spread, scale; } row_facts;

/* The sum over a row of x - mean, squared or not, in the row order of abi.h. */
static inline float row_sum(uint32_t type, const void *x, uint64_t first, uint32_t n, float mean, bool squared) {
    float room[LANES], lanes[LANES] = { 0 };
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        const float *from = floats_at(type, x, first + i, width, room);
        if (squared) {
            for (uint32_t l = 0; l < width; l++) lanes[l] += (from[l] - mean) * (from[l] - mean);
        } else {
            for (uint32_t l = 0; l < width; l++) lanes[l] += from[l];
        }
    }
    return sum_of_lanes(lanes);
}

/* Of the row that begins at element `first`: the kernel says whether it has a mean, how long it is, and eps. */
static inline row_facts row_facts_of(const hdi_cpu_call *call, uint64_t first) {
    const uint32_t type = call->spec[HDI_ROW_TYPE], n = call->push[1];
    const void *x = call->bindings[0];
    const bool layer = call->spec[HDI_ROW_OP] == HDI_ROW_LAYER_NORM;
    const float mean = layer ? exact_div(row_sum(type, x, first, n, 0.0f, false), (float)n) : 0.0f;
    const float spread =
        exact_div(row_sum(type, x, first, n, mean, true), (float)n) + exact_from_bits(call->push[2]);
    return (row_facts){ mean, spread, exact_rsqrt(spread) };
}
#endif
