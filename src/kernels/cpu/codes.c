/* codes.c: rows of A rounded to 8 bits, ahead of matmul_codes; a group takes HDI_SPEC_WORKGROUP runs (abi.h). */
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/runs.h"

HDCPU_KERNEL(codes) {
    (void)group_z;
    const uint32_t runs = call->push[HDI_MM_PUSH_K] / HDI_MM_RUN, rows = call->push[HDI_CODES_PUSH_LINES];
    const uint64_t first = ((uint64_t)group_y * HDI_GRID_WIDTH + group_x) * call->spec[HDI_SPEC_WORKGROUP];
    const uint64_t end = HDI_MIN(first + call->spec[HDI_SPEC_WORKGROUP], (uint64_t)rows * runs);
    int8_t *codes = call->bindings[2];
    uint32_t *facts = (uint32_t *)call->bindings[2] + (uint64_t)rows * runs * (HDI_MM_RUN / 4);
    for (uint64_t at = first; at < end; at++) {
        const uint32_t row = (uint32_t)(at / runs), run = (uint32_t)(at % runs), m = call->push[HDI_MM_PUSH_M];
        const hdcpu_product p = hdcpu_product_of(call, row / m);
        float x[HDI_MM_RUN];
        int8_t *to = codes + at * HDI_MM_RUN;
        int32_t sums[2] = { 0 };
        hdcpu_gather(p.a_type, p.a, p.a_first + row % m * p.a_row + run * HDI_MM_RUN * p.a_col, p.a_col, HDI_MM_RUN, x);
        const float scale = hdcpu_round_run(x, to);
        for (uint32_t i = 0; i < HDI_MM_RUN; i++) sums[i / 16] += to[i];
        facts[2 * at] = exact_bits(scale);
        facts[2 * at + 1] = ((uint32_t)sums[0] & 0xFFFFu) | (uint32_t)sums[1] << 16;
    }
}
