/* norm_gradient.c: glsl/norm_gradient.comp for a CPU, a group for a row. */
#include "kernels/cpu/norms.h"

static void weigh(const hdi_cpu_call *call, uint64_t at, const float *weight, uint32_t count, float *out) {
    float room[LANES];
    const float *dy = floats_at(call->spec[HDI_NORM_DY], call->bindings[1], at, count, room);
    for (uint32_t l = 0; l < count; l++) out[l] = weight ? dy[l] * weight[l] : dy[l];
}

HDCPU_KERNEL(norm_gradient) {
    (void)group_z;
    const bool layer = call->spec[HDI_ROW_OP] == HDI_ROW_LAYER_NORM;
    const uint32_t has = call->spec[HDI_ROW_HAS];
    const uint32_t row = group_number(group_x, group_y), n = call->push[1];
    if (row >= call->push[0]) return;
    const uint64_t first = (uint64_t)row * n;
    const float *x = (const float *)call->bindings[0] + first;
    const float *weight = has & 1u ? call->bindings[2] : NULL;
    const float *added = has & HDI_ROW_ADDS ? (const float *)call->bindings[3] + first : NULL;
    const row_facts facts = row_facts_of(call, first);
    const float root = exact_sqrt(facts.spread);
    float products[LANES] = { 0 }, sums[LANES] = { 0 }, h[LANES];
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        weigh(call, first + i, weight ? weight + i : NULL, width, h);
        for (uint32_t l = 0; l < width; l++) {
            products[l] += h[l] * ((x[i + l] - facts.mean) * facts.scale);
            sums[l] += h[l];
        }
    }
    const float along = sum_of_lanes(products) * exact_from_bits(call->push[3]);
    const float level = layer ? exact_div(sum_of_lanes(sums), (float)n) : 0.0f;
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        weigh(call, first + i, weight ? weight + i : NULL, width, h);
        for (uint32_t l = 0; l < width; l++) {
            const float lowered = layer ? h[l] - level : h[l];
            h[l] = exact_div(lowered - (x[i + l] - facts.mean) * facts.scale * along, root);
        }
        for (uint32_t l = 0; added && l < width; l++) h[l] += added[i + l];
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[4], first + i, width, h);
    }
}
