/* norm.c: glsl/norm.comp for a CPU, a group for a row. */
#include "kernels/cpu/norms.h"

HDCPU_KERNEL(norm) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_ROW_TYPE], has = call->spec[HDI_ROW_HAS];
    const uint32_t row = group_number(group_x, group_y), n = call->push[1];
    if (row >= call->push[0]) return;
    const void *x = call->bindings[0];
    const uint64_t first = (uint64_t)row * n;
    const row_facts facts = row_facts_of(call, first);
    float room[LANES], factor_room[LANES], values[LANES];
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        const float *from = floats_at(type, x, first + i, width, room);
        for (uint32_t l = 0; l < width; l++) values[l] = (from[l] - facts.mean) * facts.scale;
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
