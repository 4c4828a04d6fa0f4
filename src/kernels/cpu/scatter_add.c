/* scatter_add.c: glsl/scatter_add.comp for a CPU. A group makes WORKGROUP columns of one row and walks all indices in
 * order for it, so groups never meet and the order of additions is that of the indices. */
#include "kernels/cpu/rows.h"

/* Whether one of up to LANES indices is `row`; most of the time none is. */
static bool holds(const uint32_t *indices, uint32_t count, uint32_t row) {
    uint32_t hits = 0;
    for (uint32_t i = 0; i < count; i++) hits += indices[i] == row;
    return hits != 0;
}

HDCPU_KERNEL(scatter_add) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_SCATTER_TYPE], workgroup = call->spec[HDI_SPEC_WORKGROUP];
    const uint32_t rows = call->push[0], n = call->push[1], count = call->push[2];
    const uint32_t *indices = call->bindings[1];
    const uint32_t parts = n / workgroup + (n % workgroup != 0), group = group_number(group_x, group_y), row = group / parts;
    if (row >= rows) return;
    const uint32_t begin = group % parts * workgroup, end = HDI_MIN(n, begin + workgroup);
    for (uint32_t column = begin; column < end; column += LANES) {
        const uint32_t width = HDI_MIN(LANES, end - column);
        float sums[LANES], room[LANES];
        hdcpu_load_floats(type, call->bindings[0], (uint64_t)row * n + column, width, sums);
        for (uint32_t i = 0; i < count; i += LANES) {
            const uint32_t asked = HDI_MIN(LANES, count - i);
            if (!holds(indices + i, asked, row)) continue;
            for (uint32_t k = i; k < i + asked; k++) {
                if (indices[k] != row) continue;
                const float *update = floats_at(type, call->bindings[2], (uint64_t)k * n + column, width, room);
                for (uint32_t l = 0; l < width; l++) sums[l] += update[l];
            }
        }
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[3], (uint64_t)row * n + column, width, sums);
    }
}
