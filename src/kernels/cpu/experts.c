/* experts.c: glsl/experts.comp for a CPU. A group has some columns of one expert: each is unpacked once for up to
 * AT_ONCE of the pairs that chose it. */
#include "kernels/cpu/rows.h"

enum { AT_ONCE = 64, VECTOR = 8, VECTORS = 4 };
typedef float vector __attribute__((vector_size(4 * VECTOR)));

/* A product's sum in matmul's order, or as vectors have it. */
static float dot_exact(const float *a, const float *b, uint32_t n) {
    float total = 0;
    for (uint32_t begin = 0; begin < n; begin += HDI_MM_BLOCK) {
        float sum = 0;
        const uint32_t end = HDI_MIN(n, begin + HDI_MM_BLOCK);
        for (uint32_t i = begin; i < end; i++) sum += a[i] * b[i];
        total += sum;
    }
    return total;
}
static float dot_fast(const float *a, const float *b, uint32_t n) {
    vector sums[VECTORS] = { 0 };
    float total = 0;
    uint32_t i = 0;
    for (; i + VECTORS * VECTOR <= n; i += VECTORS * VECTOR)
        for (uint32_t v = 0; v < VECTORS; v++) {
            vector x, y;
            memcpy(&x, a + i + v * VECTOR, sizeof x);
            memcpy(&y, b + i + v * VECTOR, sizeof y);
            sums[v] += x * y;
        }
    for (; i < n; i++) total = fused(a[i], b[i], total);
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (uint32_t l = 0; l < VECTOR; l++) total += sums[0][l];
    return total;
}

/* Fills in pairs from `*at` on that chose the expert; those whose number is nobody's go to expert 0, with
 * `is_empty`. */
static uint32_t find_pairs(const hdi_cpu_call *call, uint32_t expert, uint32_t *at, uint32_t *out_pairs,
                           bool *out_empty) {
    const uint32_t pairs = call->push[0], E = call->push[2], *chosen = call->bindings[2];
    uint32_t count = 0;
    for (; *at < pairs && count < AT_ONCE; ++*at) {
        const bool nobody = chosen[*at] >= E;
        if (nobody ? expert != 0 : chosen[*at] != expert) continue;
        out_pairs[count] = *at;
        out_empty[count++] = nobody;
    }
    return count;
}

HDCPU_KERNEL(experts) {
    (void)group_z;
    const uint32_t share = call->push[1], E = call->push[2], N = call->push[3], K = call->push[4];
    const uint32_t columns = call->spec[HDI_EXPERTS_COLUMNS], blocks = N / columns + (N % columns != 0);
    const uint32_t group = group_number(group_x, group_y), expert = group / blocks, n_first = group % blocks * columns;
    const uint32_t n_end = HDI_MIN(N, n_first + columns), type = call->spec[HDI_EXPERTS_TYPE];
    const bool exact = call->spec[HDI_SPEC_EXACT] == 1;
    float *line = call->scratch, *room = line + K;
    uint32_t pairs[AT_ONCE];
    bool empty[AT_ONCE];
    if (expert >= E) return;
    for (uint32_t at = 0; at < call->push[0];) {
        const uint32_t count = find_pairs(call, expert, &at, pairs, empty);
        for (uint32_t n = n_first; n < n_end && count > 0; n++) {
            const float *weights =
                floats_at(call->spec[HDI_EXPERTS_W_TYPE], call->bindings[1], ((uint64_t)expert * N + n) * K, K, line);
            for (uint32_t i = 0; i < count; i++) {
                float sum = 0;
                const float *x =
                    empty[i] ? NULL : floats_at(type, call->bindings[0], (uint64_t)(pairs[i] / share) * K, K, room);
                if (x) sum = exact ? dot_exact(x, weights, K) : dot_fast(x, weights, K);
                store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[4], (uint64_t)pairs[i] * N + n, 1, &sum);
            }
        }
    }
}
