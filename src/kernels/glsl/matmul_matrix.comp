#version 450
// matmul_matrix: C = chain(A x B) on matrix units: f16 x f16 summed in f32, fast mode only. Quantised B becomes f16 as it
// is staged. A workgroup of 8 subgroups of 32 computes 128 x 128 of C, each subgroup 64 x 32 of that. Tiles of A and B go
// through shared memory 32 deep along K, padded with zeros; the next ones are read while these are used.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "wide.glsl"

// Lines are rows of A and columns of B. A tile lies in memory as its operand does: line by line, or depth by depth, in
// chunks of 8 halves; one chunk more at each end of a row of it spreads rows over the memory's banks.
const uint LINES = 128, DEPTH = 32, INVOCATIONS = 256, CHUNKS = LINES * DEPTH / 8, READS = CHUNKS / INVOCATIONS;
const uint LINE_STRIDE = DEPTH / 8 + 1, DEPTH_STRIDE = LINES / 8 + 1;
const uint TILE_CHUNKS = LINES * LINE_STRIDE; // no less than DEPTH * DEPTH_STRIDE
const uint UNIT = 16, UNITS_M = 4, UNITS_N = 2; // of a subgroup
shared uvec4 a_tile[TILE_CHUNKS];
shared uvec4 b_tile[TILE_CHUNKS];
shared float c_tile[8 * UNIT * UNIT];

const bool A_ALONG_K = (LAYOUT & HDI_MM_A_ALONG_K) != 0u, B_ALONG_K = (LAYOUT & HDI_MM_B_ALONG_K) != 0u;

// Line (x) and depth (y) of the first element of the invocation's i-th chunk.
uvec2 chunk_place(uint i, bool along_k) {
    uint chunk = gl_LocalInvocationIndex + i * INVOCATIONS;
    return along_k ? uvec2(chunk / (DEPTH / 8), chunk % (DEPTH / 8) * 8) : uvec2(chunk % (LINES / 8) * 8, chunk / (LINES / 8));
}
uint chunk_index(uvec2 place, bool along_k) {
    return along_k ? place.x * LINE_STRIDE + place.y / 8 : place.y * DEPTH_STRIDE + place.x / 8;
}

// 8 halves of an f16 operand from (line, depth) on. All of a wide operand's chunks lie inside or outside as a whole.
#define READ_CHUNK(words, wide, first, line_stride, depth_stride, lines, depths, along_k, is_wide, at, chunk) { \
    uint chunk_first = first + at.x * (line_stride) + at.y * (depth_stride); \
    if (is_wide) { \
        if (at.x < (lines) && at.y < (depths)) chunk = wide[chunk_first >> 3]; \
    } else if (at.x < (lines) && at.y < (depths)) { \
        uint count = min(along_k ? (depths) - at.y : (lines) - at.x, 8u), step = along_k ? depth_stride : line_stride; \
        for (uint e = 0u; e < count; e++) { \
            uint index = chunk_first + e * step, half_bits = (words[index >> 1] >> (16u * (index & 1u))) & 0xFFFFu; \
            chunk[e >> 1] |= half_bits << (16u * (e & 1u)); \
        } \
    } }

uvec4 read_a(uvec2 at, uint first) {
    uvec4 chunk = uvec4(0u);
    READ_CHUNK(a, wide_a, first, push[HDI_MM_PUSH_A_ROW], push[HDI_MM_PUSH_A_COL], push[HDI_MM_PUSH_M], push[HDI_MM_PUSH_K],
               A_ALONG_K, (LAYOUT & HDI_MM_A_WIDE) != 0u, at, chunk)
    return chunk;
}
uvec4 read_b(uvec2 at, uint first) {
    uvec4 chunk = uvec4(0u);
    if (is_quantised(B_TYPE)) {
        if (at.x < push[HDI_MM_PUSH_N] && at.y < push[HDI_MM_PUSH_K]) {
            vec4 low, high;
            b_eight(first + at.x * push[HDI_MM_PUSH_B_COL] + at.y * push[HDI_MM_PUSH_B_ROW], low, high);
            chunk = uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
        }
        return chunk;
    }
    READ_CHUNK(b, wide_b, first, push[HDI_MM_PUSH_B_COL], push[HDI_MM_PUSH_B_ROW], push[HDI_MM_PUSH_N], push[HDI_MM_PUSH_K],
               B_ALONG_K, (LAYOUT & HDI_MM_B_WIDE) != 0u, at, chunk)
    return chunk;
}

void main() {
    const uint m0 = gl_WorkGroupID.y * LINES, n0 = gl_WorkGroupID.x * LINES, batch = gl_WorkGroupID.z;
    const uint M = push[HDI_MM_PUSH_M], N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    const uint a0 = a_first(batch), b0 = b_first(batch);
    const uint own_m = gl_SubgroupID / 4 * 64, own_n = gl_SubgroupID % 4 * 32;

    coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator> sums[UNITS_M * UNITS_N];
    [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator>(0.0);

    uvec4 a_next[READS], b_next[READS];
    for (uint k0 = 0u; k0 < K + DEPTH; k0 += DEPTH) {
        if (k0 > 0u) { // what was read last time moves to shared memory
            barrier();
            [[unroll]] for (uint i = 0u; i < READS; i++) {
                a_tile[chunk_index(chunk_place(i, A_ALONG_K), A_ALONG_K)] = a_next[i];
                b_tile[chunk_index(chunk_place(i, B_ALONG_K), B_ALONG_K)] = b_next[i];
            }
            barrier();
        }
        if (k0 < K) {
            [[unroll]] for (uint i = 0u; i < READS; i++) a_next[i] = read_a(chunk_place(i, A_ALONG_K) + uvec2(m0, k0), a0);
            [[unroll]] for (uint i = 0u; i < READS; i++) b_next[i] = read_b(chunk_place(i, B_ALONG_K) + uvec2(n0, k0), b0);
        }
        if (k0 == 0u) continue;
        [[unroll]] for (uint k = 0u; k < DEPTH; k += UNIT) {
            coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseA> rows[UNITS_M];
            [[unroll]] for (uint i = 0u; i < UNITS_M; i++) {
                uvec2 at = uvec2(own_m + i * UNIT, k);
                if (A_ALONG_K) coopMatLoad(rows[i], a_tile, chunk_index(at, true), LINE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                else coopMatLoad(rows[i], a_tile, chunk_index(at, false), DEPTH_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
            }
            [[unroll]] for (uint j = 0u; j < UNITS_N; j++) {
                coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseB> columns;
                uvec2 at = uvec2(own_n + j * UNIT, k);
                if (B_ALONG_K) coopMatLoad(columns, b_tile, chunk_index(at, true), LINE_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                else coopMatLoad(columns, b_tile, chunk_index(at, false), DEPTH_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint i = 0u; i < UNITS_M; i++)
                    sums[i * UNITS_N + j] = coopMatMulAdd(rows[i], columns, sums[i * UNITS_N + j]);
            }
        }
    }
    // Unit by unit through shared memory, where every lane finds its elements. Only the choice of the unit is unrolled.
    const uint own = gl_SubgroupID * UNIT * UNIT;
    for (uint unit = 0u; unit < UNITS_M * UNITS_N; unit++) {
        barrier();
        [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++)
            if (i == unit) coopMatStore(sums[i], c_tile, own, UNIT, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint e = 2u * gl_SubgroupInvocationID; e < UNIT * UNIT; e += 64u) {
            uint m = m0 + own_m + unit / UNITS_N * UNIT + e / UNIT, n = n0 + own_n + unit % UNITS_N * UNIT + e % UNIT;
            if (m < M && n < N) store_sums(vec2(c_tile[own + e], c_tile[own + e + 1u]), min(N - n, 2u), batch, m, n);
        }
    }
}
