/* norm_sums.c: glsl/norm_sums.comp for a CPU: a group is a row first, then as many columns of a part as a workgroup has
 * invocations, which are never more than LANES. */
#include "kernels/cpu/norms.h"

/* The columns, which lie side by side in vectors, from row `begin` on. */
static void add_rows(const hdi_cpu_call *call, uint32_t column, uint32_t width, uint32_t part) {
    const uint32_t rows = call->push[0], n = call->push[1], begin = part * call->push[HDI_NORM_PUSH_PART],
                   end = HDI_MIN(begin + call->push[HDI_NORM_PUSH_PART], rows);
    const float *facts = call->bindings[2];
    float products[LANES] = { 0 }, sums[LANES] = { 0 }, of_products[LANES] = { 0 }, of_sums[LANES] = { 0 }, room[LANES];
    for (uint32_t j = begin; j < end; j++) {
        const float *x = (const float *)call->bindings[0] + (uint64_t)j * n + column;
        const float *dy =
            floats_at(call->spec[HDI_NORM_DY], call->bindings[1], (uint64_t)j * n + column, width, room);
        const float mean = facts[2 * (uint64_t)j], scale = facts[2 * (uint64_t)j + 1];
        for (uint32_t l = 0; l < width; l++) {
            of_products[l] += dy[l] * ((x[l] - mean) * scale);
            of_sums[l] += dy[l];
        }
        if ((j - begin) % HDI_MM_BLOCK != HDI_MM_BLOCK - 1 && j + 1 != end) continue;
        for (uint32_t l = 0; l < width; l++) {
            products[l] += of_products[l];
            sums[l] += of_sums[l];
            of_products[l] = of_sums[l] = 0.0f;
        }
    }
    const uint64_t at = 2 * (uint64_t)part * n + column;
    store_floats(HDI_TYPE_F32, call->bindings[3], at, width, products);
    store_floats(HDI_TYPE_F32, call->bindings[3], at + n, width, sums);
}

HDCPU_KERNEL(norm_sums) {
    (void)group_z;
    const uint32_t group = group_number(group_x, group_y), rows = call->push[0], n = call->push[1];
    if (call->spec[HDI_NORM_STAGE] == 0) {
        if (group >= rows) return;
        const row_facts facts = row_facts_of(call, (uint64_t)group * n);
        float *out = (float *)call->bindings[3] + 2 * (uint64_t)group;
        out[0] = facts.mean;
        out[1] = facts.scale;
        return;
    }
    /* a workgroup's columns may lie in several parts */
    const uint64_t end = HDI_MIN((uint64_t)(group + 1) * call->spec[HDI_SPEC_WORKGROUP],
                                 (uint64_t)call->push[HDI_NORM_PUSH_PARTS] * n);
    for (uint64_t at = (uint64_t)group * call->spec[HDI_SPEC_WORKGROUP]; at < end;) {
        const uint32_t column = (uint32_t)(at % n), width = (uint32_t)HDI_MIN(end - at, (uint64_t)(n - column));
        add_rows(call, column, width, (uint32_t)(at / n));
        at += width;
    }
}
