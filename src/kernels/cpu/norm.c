/* norm.c: glsl/norm.comp for a CPU, a group for a row. */
#include "kernels/cpu/rows.h"

/* The sum over a row of x - mean, squared or not, in the row order of abi.h. */
static float row_sum(uint32_t type, const void *x, uint64_t first, uint32_t n, float mean, bool squared) {
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

HDCPU_KERNEL(norm) {
    (void)group_z;
    const uint32_t op = call->spec[HDI_ROW_OP], type = call->spec[HDI_ROW_TYPE], has = call->spec[HDI_ROW_HAS];
    const uint32_t row = group_number(group_x, group_y), n = call->push[1];
    if (row >= call->push[0]) return;
    const void *x = call->bindings[0];
    const uint64_t first = (uint64_t)row * n;
    const float count = (float)n;
    const float mean = op == HDI_ROW_LAYER_NORM ? exact_div(row_sum(type, x, first, n, 0.0f, false), count) : 0.0f;
    const float scale =
        exact_rsqrt(exact_div(row_sum(type, x, first, n, mean, true), count) + exact_from_bits(call->push[2]));
    float room[LANES], factor_room[LANES], values[LANES];
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        const float *from = floats_at(type, x, first + i, width, room);
        for (uint32_t l = 0; l < width; l++) values[l] = (from[l] - mean) * scale;
        if (has & 1) {
            const float *weight = floats_at(type, call->bindings[1], i, width, factor_room);
            for (uint32_t l = 0; l < width; l++) values[l] *= weight[l];
        }
        if (has & 2) {
            const float *bias = floats_at(type, call->bindings[2], i, width, factor_room);
            for (uint32_t l = 0; l < width; l++) values[l] += bias[l];
        }
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[3], first + i, width, values);
    }
}
