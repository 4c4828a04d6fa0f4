#version 450
// matvec: C = chain(A x B) for at most 8 rows of A. A workgroup computes TILE_N columns; its lanes take blocks of 32
// along K, every element of B is read once for all rows, and the blocks' sums are added in order by one lane for each
// element of C. So exact mode gives matmul_tiled's bits. Needs shared memory and nothing else.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "matmul.glsl"

const uint SLOTS = WORKGROUP / TILE_N; // blocks along K at once
const uint SUMS = TILE_M * TILE_N;
shared float block_sums[SLOTS * SUMS];
shared float totals[SUMS];

void main() {
    const uint n0 = gl_WorkGroupID.x * TILE_N, batch = batch_of(gl_WorkGroupID.z), lane = gl_LocalInvocationIndex;
    const uint N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    const uint a0 = a_first(batch), b0 = b_first(batch);
    // Neighbouring lanes read neighbours in memory.
    const bool along_k = (LAYOUT & HDI_MM_B_ALONG_K) != 0u;
    const uint column = along_k ? lane / SLOTS : lane % TILE_N, slot = along_k ? lane % SLOTS : lane / TILE_N;
    const uint n = n0 + column;

    for (uint i = lane; i < SUMS; i += WORKGROUP) totals[i] = 0.0;
    for (uint first = 0u; first < K; first += SLOTS * HDI_MM_BLOCK) {
        float sums[TILE_M];
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) sums[m] = 0.0;
        const uint from = first + slot * HDI_MM_BLOCK, to = min(from + HDI_MM_BLOCK, K);
        for (uint k = from; n < N && k < to; k++) {
            float weight = LOAD_ANY(b, B_TYPE, b0 + k * push[HDI_MM_PUSH_B_ROW] + n * push[HDI_MM_PUSH_B_COL]);
            [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
                float x = LOAD_FLOAT(a, A_TYPE, a0 + m * push[HDI_MM_PUSH_A_ROW] + k * push[HDI_MM_PUSH_A_COL]);
                sums[m] = add_product(sums[m], x, weight);
            }
        }
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) block_sums[slot * SUMS + m * TILE_N + column] = sums[m];
        barrier();
        for (uint i = lane; i < SUMS; i += WORKGROUP)
            for (uint s = 0u; s < SLOTS; s++) {
                precise float next = totals[i] + block_sums[s * SUMS + i];
                totals[i] = next;
            }
        barrier();
    }
    for (uint i = 2u * lane; i < SUMS; i += 2u * WORKGROUP) { // TILE_N is even: two columns of one row
        uint first_n = n0 + i % TILE_N;
        if (first_n < N) store_sums(vec2(totals[i], totals[i + 1u]), min(N - first_n, 2u), batch, i / TILE_N, first_n);
    }
}
