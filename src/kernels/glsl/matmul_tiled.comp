#version 450
// matmul_tiled: C = chain(A x B), a tile of C for each workgroup, PART_M x PART_N of it for each invocation. Tiles of A
// and B go through shared memory 16 deep along K, padded with zeros; the next ones are read while these are used. With PARTS
// above 1, in fast mode, each workgroup sums one part of K, and C is [batch, PARTS, M, N].
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "matmul.glsl"

layout(constant_id = HDI_MM_PARTS) const uint PARTS = 1;

const uint DEPTH = 16;
const uint A_READS = TILE_M * DEPTH / WORKGROUP, B_READS = TILE_N * DEPTH / WORKGROUP;
const uint A_LINE = TILE_M + 4, B_LINE = TILE_N + 4; // 4 more: columns of a tile spread over the memory's banks
const uint LANES_N = TILE_N / PART_N;
const uint RUN_M = PART_M < 4u ? PART_M : 4u, RUN_N = PART_N < 4u ? PART_N : 4u; // neighbours in an invocation's part

shared float a_tile[DEPTH * A_LINE];
shared float b_tile[DEPTH * B_LINE];

// Which element of a tile the invocation's i-th read gives: x along M or N, y along K; neighbours in memory go to
// neighbouring invocations.
uvec2 read_place(uint i, uint length, bool along_k) {
    uint e = gl_LocalInvocationIndex + i * WORKGROUP;
    return along_k ? uvec2(e / DEPTH, e % DEPTH) : uvec2(e % length, e / length);
}
// Row or column `i` of the invocation's part, counted from the tile's corner: runs of neighbours, a run's length times
// the number of invocations apart.
uint part_place(uint lane, uint lanes, uint i, uint run) { return i / run * run * lanes + lane * run + i % run; }

void main() {
    const uint m0 = gl_WorkGroupID.y * TILE_M, n0 = gl_WorkGroupID.x * TILE_N;
    const uint part = gl_WorkGroupID.z % PARTS, batch = batch_of(gl_WorkGroupID.z / PARTS);
    const uint M = rows_of(batch), N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    if (GROUPED && m0 >= M) return;
    const uint a0 = a_first(batch), b0 = b_first(batch);
    const uint depth_of_part = (K + PARTS * DEPTH - 1u) / (PARTS * DEPTH) * DEPTH;
    const uint k_begin = part * depth_of_part, k_end = min(K, k_begin + depth_of_part);
    const uint lane_m = gl_LocalInvocationIndex / LANES_N, lane_n = gl_LocalInvocationIndex % LANES_N;

    uint rows[A_READS]; // of A
    [[unroll]] for (uint i = 0u; i < A_READS; i++)
        rows[i] = a_row(batch, min(m0 + read_place(i, TILE_M, (LAYOUT & HDI_MM_A_ALONG_K) != 0u).x, M - 1u));
    float a_next[A_READS], b_next[B_READS], block[PART_M * PART_N], total[PART_M * PART_N];
    [[unroll]] for (uint i = 0u; i < PART_M * PART_N; i++) block[i] = total[i] = 0.0;

    for (uint k0 = k_begin; k0 < k_end + DEPTH; k0 += DEPTH) {
        if (k0 > k_begin) { // what was read last time moves to shared memory
            barrier();
            [[unroll]] for (uint i = 0u; i < A_READS; i++) {
                uvec2 place = read_place(i, TILE_M, (LAYOUT & HDI_MM_A_ALONG_K) != 0u);
                a_tile[place.y * A_LINE + place.x] = a_next[i];
            }
            [[unroll]] for (uint i = 0u; i < B_READS; i++) {
                uvec2 place = read_place(i, TILE_N, (LAYOUT & HDI_MM_B_ALONG_K) != 0u);
                b_tile[place.y * B_LINE + place.x] = b_next[i];
            }
            barrier();
        }
        if (k0 < k_end) {
            [[unroll]] for (uint i = 0u; i < A_READS; i++) {
                uvec2 place = read_place(i, TILE_M, (LAYOUT & HDI_MM_A_ALONG_K) != 0u);
                uint m = m0 + place.x, k = k0 + place.y;
                a_next[i] = 0.0;
                if (m < M && k < k_end) a_next[i] = LOAD_FLOAT(a, A_TYPE, a0 + rows[i] * push[HDI_MM_PUSH_A_ROW] + k * push[HDI_MM_PUSH_A_COL]);
            }
            [[unroll]] for (uint i = 0u; i < B_READS; i++) {
                uvec2 place = read_place(i, TILE_N, (LAYOUT & HDI_MM_B_ALONG_K) != 0u);
                uint n = n0 + place.x, k = k0 + place.y;
                b_next[i] = 0.0;
                if (n < N && k < k_end) b_next[i] = LOAD_ANY(b, B_TYPE, b0 + k * push[HDI_MM_PUSH_B_ROW] + n * push[HDI_MM_PUSH_B_COL]);
            }
        }
        if (k0 == k_begin) continue;
        for (uint k = 0u; k < DEPTH; k++) {
            float column[PART_M], row[PART_N];
            [[unroll]] for (uint i = 0u; i < PART_M; i++)
                column[i] = a_tile[k * A_LINE + part_place(lane_m, TILE_M / PART_M, i, RUN_M)];
            [[unroll]] for (uint j = 0u; j < PART_N; j++)
                row[j] = b_tile[k * B_LINE + part_place(lane_n, LANES_N, j, RUN_N)];
            [[unroll]] for (uint i = 0u; i < PART_M; i++)
                [[unroll]] for (uint j = 0u; j < PART_N; j++)
                    block[i * PART_N + j] = add_product(block[i * PART_N + j], column[i], row[j]);
        }
        if (EXACT != 0u && (k0 % HDI_MM_BLOCK == 0u || k0 >= k_end)) { // a block of 32 is complete
            [[unroll]] for (uint i = 0u; i < PART_M * PART_N; i++) {
                precise float sum = total[i] + block[i];
                total[i] = sum;
                block[i] = 0.0;
            }
        }
    }
    [[unroll]] for (uint i = 0u; i < PART_M; i++) {
        uint m = m0 + part_place(lane_m, TILE_M / PART_M, i, RUN_M);
        [[unroll]] for (uint j = 0u; j < PART_N; j += 2u) {
            uint n = n0 + part_place(lane_n, LANES_N, j, RUN_N), at = i * PART_N + j;
            vec2 sums = EXACT != 0u ? vec2(total[at], total[at + 1u]) : vec2(block[at], block[at + 1u]);
            if (m < M && n < N) store_sums(sums, min(N - n, 2u), gl_WorkGroupID.z, m, n);
        }
    }
}
