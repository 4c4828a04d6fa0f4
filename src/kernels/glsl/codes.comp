#version 450
// codes: rows of A rounded to 8 bits (abi.h), ahead of matmul_codes: for each run of 32 along K its codes and its facts, an
// invocation each. Exact arithmetic and nothing that a device might lack.
#extension GL_GOOGLE_include_directive : require
#include "matmul.glsl"

uint rounded(float x, float inverse, uint place, inout int sum) {
    uint code = exact_int8_code(x, inverse);
    sum += int(code << 24) >> 24;
    return code << (8u * (place & 3u));
}

void main() {
    const uint M = push[HDI_MM_PUSH_M], runs = push[HDI_MM_PUSH_K] / HDI_MM_RUN, rows = push[HDI_CODES_PUSH_ROWS];
    const uint at = (gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x) * WORKGROUP + gl_LocalInvocationIndex;
    if (at >= rows * runs) return;
    const uint row = at / runs, run = at % runs;
    const uint first = a_first(row / M) + row % M * push[HDI_MM_PUSH_A_ROW] + run * HDI_MM_RUN * push[HDI_MM_PUSH_A_COL];
    uint most = 0u; // as bits, so that NaN is the largest
    for (uint i = 0u; i < HDI_MM_RUN; i++) most = max(most, LOAD(a, A_TYPE, first + i * push[HDI_MM_PUSH_A_COL]) & 0x7FFFFFFFu);
    const exact_rounding rounding = exact_int8_rounding(most);
    int sums[2];
    for (uint h = 0u; h < 2u; h++) {
        sums[h] = 0;
        for (uint word = 4u * h; word < 4u * h + 4u; word++) {
            uint codes = 0u;
            for (uint i = 4u * word; i < 4u * word + 4u; i++)
                codes |= rounded(LOAD_FLOAT(a, A_TYPE, first + i * push[HDI_MM_PUSH_A_COL]), rounding.inverse, i, sums[h]);
            c[at * 8u + word] = codes;
        }
    }
    const uint facts = rows * runs * 8u + at * 2u;
    c[facts] = floatBitsToUint(rounding.scale);
    c[facts + 1u] = (uint(sums[0]) & 0xFFFFu) | (uint(sums[1]) << 16);
}
