/* scatter.c: glsl/scatter.comp for a CPU. A group makes WORKGROUP columns of one row and walks all indices in order for
 * it, so groups never meet and updates are taken in the order of the indices. */
#include "kernels/cpu/rows.h"

/* Whether one of up to LANES indices is `row`; most of the time none is. */
static bool holds(const uint32_t *indices, uint32_t count, uint32_t row) {
    uint32_t hits = 0;
    for (uint32_t i = 0; i < count; i++) hits += indices[i] == row;
    return hits != 0;
}

static void join_integers(uint32_t op, uint32_t *sums, const uint32_t *updates, uint32_t count) {
    switch (op) {
    case HDI_SCATTER_MUL: for (uint32_t l = 0; l < count; l++) sums[l] *= updates[l]; break;
    case HDI_SCATTER_MAX:
      for (uint32_t l = 0; l < count; l++)
        sums[l] = (int32_t)updates[l] > (int32_t)sums[l] ? updates[l] : sums[l];
      break;
    case HDI_SCATTER_MIN:
      for (uint32_t l = 0; l < count; l++)
        sums[l] = (int32_t)updates[l] < (int32_t)sums[l] ? updates[l] : sums[l];
      break;
    default: for (uint32_t l = 0; l < count; l++) sums[l] += updates[l];
    }
}

/* The larger or the smaller one in the order of keys; NaN wins. */
static float picked(float a, float b, bool larger) {
    const int32_t i = key_of(exact_bits(a)), k = key_of(exact_bits(b));
    return float_of_key(larger || i == KEY_NAN || k == KEY_NAN ? HDI_MAX(i, k) : HDI_MIN(i, k));
}
static void join_floats(uint32_t op, float *sums, const float *updates, uint32_t count) {
    switch (op) {
    case HDI_SCATTER_MUL: for (uint32_t l = 0; l < count; l++) sums[l] *= updates[l]; break;
    case HDI_SCATTER_MAX: for (uint32_t l = 0; l < count; l++) sums[l] = picked(sums[l], updates[l], true); break;
    case HDI_SCATTER_MIN: for (uint32_t l = 0; l < count; l++) sums[l] = picked(sums[l], updates[l], false); break;
    default: for (uint32_t l = 0; l < count; l++) sums[l] += updates[l];
    }
}

HDCPU_KERNEL(scatter) {
    (void)group_z;
    const uint32_t op = call->spec[HDI_SCATTER_OP], type = call->spec[HDI_SCATTER_TYPE],
                   workgroup = call->spec[HDI_SPEC_WORKGROUP];
    const uint32_t rows = call->push[0], n = call->push[1], count = call->push[2];
    const uint32_t *indices = call->bindings[1];
    const uint32_t parts = n / workgroup + (n % workgroup != 0), group = group_number(group_x, group_y),
                   row = group / parts;
    if (row >= rows) return;
    const uint32_t begin = group % parts * workgroup, end = HDI_MIN(n, begin + workgroup);
    for (uint32_t column = begin; column < end; column += LANES) {
        const uint32_t width = HDI_MIN(LANES, end - column);
        const uint64_t at = (uint64_t)row * n + column;
        float sums[LANES], room[LANES];
        uint32_t whole[LANES];
        if (type == HDI_TYPE_I32) memcpy(whole, (const uint32_t *)call->bindings[0] + at, width * sizeof *whole);
        else hdcpu_load_floats(type, call->bindings[0], at, width, sums);
        for (uint32_t i = 0; i < count; i += LANES) {
            const uint32_t asked = HDI_MIN(LANES, count - i);
            if (!holds(indices + i, asked, row)) continue;
            for (uint32_t k = i; k < i + asked; k++) {
                const uint64_t from = (uint64_t)k * n + column;
                if (indices[k] != row) continue;
                if (type == HDI_TYPE_I32) join_integers(op, whole, (const uint32_t *)call->bindings[2] + from, width);
                else join_floats(op, sums, floats_at(type, call->bindings[2], from, width, room), width);
            }
        }
        if (type == HDI_TYPE_I32) memcpy((uint32_t *)call->bindings[3] + at, whole, width * sizeof *whole);
        else store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[3], at, width, sums);
    }
}
