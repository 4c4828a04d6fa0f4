#version 450
// matvec: C = chain(A x B) for at most 8 rows of A. A workgroup computes TILE_N columns; its lanes take blocks of 32
// along K, every element of B is read once for all rows, and the blocks' sums are added in order by one lane for each
// element of C. So exact mode gives matmul_tiled's bits. Needs shared memory and nothing else.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "matmul.glsl"

layout(std430, binding = 0) readonly buffer WideA { uvec4 wide_a[]; };
layout(std430, binding = 1) readonly buffer WideB { uvec4 wide_b[]; };

// Whole blocks of 32 go through shared memory, where neighbouring lanes put what they read 16 bytes at a time from neighbours
// in memory. One vector more behind each block spreads blocks over the memory's banks.
const bool STAGED = (LAYOUT & HDI_MM_WHOLE) != 0u, HALVES = B_TYPE != HDI_TYPE_F32;
const uint VECTORS = HALVES ? HDI_MM_BLOCK / 8u : HDI_MM_BLOCK / 4u, FOURS = HDI_MM_BLOCK / 4u; // of a block of B, of A
const uint B_STRIDE = VECTORS + 1u, A_STRIDE = FOURS + 1u;
const uint SLOTS = WORKGROUP / TILE_N; // blocks along K at once
const uint SUMS = TILE_M * TILE_N;
shared uvec4 b_blocks[STAGED ? WORKGROUP * B_STRIDE : 1u];
shared vec4 a_blocks[STAGED ? TILE_M * SLOTS * A_STRIDE : 1u];
shared float block_sums[SLOTS * SUMS];
shared float totals[SUMS];
uvec4 ahead[FOURS]; // VECTORS of them, that the lane puts into b_blocks next

// Vector `i` of the lane's: its block, counted from the first column's first one on, and its place there.
uvec2 vector_place(uint i) {
    uint vector = gl_LocalInvocationIndex + i * WORKGROUP;
    return uvec2(vector / VECTORS, vector % VECTORS);
}
// B from element `first` along K on.
void read_ahead(uint b_at, uint first, uint whole, uint n0) {
    [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
        uvec2 place = vector_place(i);
        uint n = min(n0 + place.x / SLOTS, push[HDI_MM_PUSH_N] - 1u), k = first + place.x % SLOTS * HDI_MM_BLOCK;
        if (k < whole) ahead[i] = wide_b[(b_at + n * push[HDI_MM_PUSH_B_COL] + k) / (HALVES ? 8u : 4u) + place.y];
    }
}
vec4 four_of_a(uint index) {
    if (A_TYPE == HDI_TYPE_F32) return uintBitsToFloat(wide_a[index / 4u]);
    vec4 four;
    for (uint i = 0u; i < 4u; i++) four[i] = LOAD_FLOAT(a, A_TYPE, index + i);
    return four;
}
void put_blocks(uint batch, uint a_at, uint first, uint whole) {
    [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
        uvec2 place = vector_place(i);
        b_blocks[place.x * B_STRIDE + place.y] = ahead[i];
    }
    for (uint i = gl_LocalInvocationIndex; i < TILE_M * SLOTS * FOURS; i += WORKGROUP) {
        uint block = i / FOURS, k = first + block % SLOTS * HDI_MM_BLOCK;
        if (k < whole) a_blocks[block * A_STRIDE + i % FOURS] = four_of_a(a_at + few_row(batch, block / SLOTS) + k + i % FOURS * 4u);
    }
}
vec4 four_of_b(uint at, uint i) {
    if (B_TYPE == HDI_TYPE_F32) return uintBitsToFloat(b_blocks[at + i]);
    uvec4 words = b_blocks[at + i / 2u];
    uvec2 two = i % 2u == 0u ? words.xy : words.zw;
    if (B_TYPE == HDI_TYPE_F16) return vec4(half_values(two.x), half_values(two.y));
    return uintBitsToFloat(uvec4(two.x << 16, two.x & 0xFFFF0000u, two.y << 16, two.y & 0xFFFF0000u)); // bf16
}

void main() {
    const uint n0 = gl_WorkGroupID.x * TILE_N, batch = batch_of(gl_WorkGroupID.z), lane = gl_LocalInvocationIndex;
    // A group of no rows has nothing to go along. Without a return: PoCL 3.1 goes wrong where one stands before these barriers.
    const bool empty = GROUPED && rows_of(batch) == 0u;
    const uint N = push[HDI_MM_PUSH_N], K = empty ? 0u : push[HDI_MM_PUSH_K];
    const uint a0 = a_first(batch), b0 = b_first(batch);
    uint rows[TILE_M];
    [[unroll]] for (uint m = 0u; m < TILE_M; m++) rows[m] = empty ? 0u : few_row(batch, m);
    // Neighbouring lanes read neighbours in memory.
    const bool along_k = (LAYOUT & HDI_MM_B_ALONG_K) != 0u;
    const uint column = along_k ? lane / SLOTS : lane % TILE_N, slot = along_k ? lane % SLOTS : lane / TILE_N;
    const uint n = n0 + column;

    const uint whole = STAGED ? K / HDI_MM_BLOCK * HDI_MM_BLOCK : 0u;

    for (uint i = lane; i < SUMS; i += WORKGROUP) totals[i] = 0.0;
    if (STAGED) read_ahead(b0, 0u, whole, n0);
    for (uint first = 0u; first < K; first += SLOTS * HDI_MM_BLOCK) {
        float sums[TILE_M];
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) sums[m] = 0.0;
        const uint from = first + slot * HDI_MM_BLOCK, to = min(from + HDI_MM_BLOCK, K);
        if (STAGED) put_blocks(batch, a0, first, whole);
        barrier(); // block_sums are free again, too
        if (STAGED) read_ahead(b0, first + SLOTS * HDI_MM_BLOCK, whole, n0);
        if (from < whole) {
            for (uint i = 0u; i < FOURS; i++) {
                vec4 weights = four_of_b(lane * B_STRIDE, i);
                [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
                    vec4 x = a_blocks[(m * SLOTS + slot) * A_STRIDE + i];
                    for (uint e = 0u; e < 4u; e++) sums[m] = add_product(sums[m], x[e], weights[e]);
                }
            }
        } else for (uint k = from; n < N && k < to; k++) {
            float weight = LOAD_ANY(b, B_TYPE, b0 + k * push[HDI_MM_PUSH_B_ROW] + n * push[HDI_MM_PUSH_B_COL]);
            [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
                float x = LOAD_FLOAT(a, A_TYPE, a0 + rows[m] + k * push[HDI_MM_PUSH_A_COL]);
                sums[m] = add_product(sums[m], x, weight);
            }
        }
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) block_sums[slot * SUMS + m * TILE_N + column] = sums[m];
        barrier();
        for (uint i = lane; i < SUMS; i += WORKGROUP) {
            float total = totals[i];
            for (uint s = 0u; s < SLOTS; s++) {
                precise float next = total + block_sums[s * SUMS + i];
                total = next;
            }
            totals[i] = total;
        }
    }
    barrier();
    for (uint i = 2u * lane; i < SUMS; i += 2u * WORKGROUP) { // TILE_N is even: two columns of one row
        uint first_n = n0 + i % TILE_N;
        if (first_n < N && (!GROUPED || i / TILE_N < rows_of(batch))) store_sums(vec2(totals[i], totals[i + 1u]), min(N - first_n, 2u), batch, i / TILE_N, first_n);
    }
}
