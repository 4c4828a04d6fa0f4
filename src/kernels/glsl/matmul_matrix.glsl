// matmul_matrix.glsl: C = chain(A x B) on matrix units, summed in f32, fast mode only. A workgroup computes TILE_M x TILE_N of
// C, each of its subgroups of 32 PART_M x PART_N of that. Tiles of A and B go through shared memory HDI_MM_DEPTH deep along
// K; the next AHEAD ones are read while these are used. With PARTS above 1 each workgroup sums one part of K, and C is
// [batch, PARTS, M, N]. An includer defines FACTOR, the type that is multiplied; with STAYS both operands are of it already,
// else elements of other types become f16 as they are staged.
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "wide.glsl"

layout(constant_id = HDI_MM_PARTS) const uint PARTS = 1;
layout(constant_id = HDI_MM_AHEAD) const uint AHEAD = 1; // 1 or, where B is not quantised, 2

// Lines are rows of A and columns of B. A tile lies in memory as its operand does: line by line, or depth by depth, in
// chunks of 8 halves; one chunk more at each end of a row of it spreads rows over the memory's banks.
const uint DEPTH = HDI_MM_DEPTH;
const bool A_ALONG_K = (LAYOUT & HDI_MM_A_ALONG_K) != 0u, B_ALONG_K = (LAYOUT & HDI_MM_B_ALONG_K) != 0u;
const bool A_WIDE = (LAYOUT & HDI_MM_A_WIDE) != 0u, B_WIDE = (LAYOUT & HDI_MM_B_WIDE) != 0u;
const bool WHOLE = (LAYOUT & HDI_MM_WHOLE) != 0u;
const uint A_READS = TILE_M * DEPTH / 8 / WORKGROUP, B_READS = TILE_N * DEPTH / 8 / WORKGROUP;
const uint A_STRIDE = (A_ALONG_K ? DEPTH : TILE_M) / 8 + 1, B_STRIDE = (B_ALONG_K ? DEPTH : TILE_N) / 8 + 1;
const uint A_CHUNKS = (A_ALONG_K ? TILE_M : DEPTH) * A_STRIDE, B_CHUNKS = (B_ALONG_K ? TILE_N : DEPTH) * B_STRIDE;
#define TILE_CHUNKS (A_CHUNKS + B_CHUNKS)
#include "units.glsl"

// Line (x) and depth (y) of the first element of the invocation's i-th chunk.
uvec2 chunk_place(uint i, uint lines, bool along_k) {
    uint chunk = gl_LocalInvocationIndex + i * WORKGROUP;
    return along_k ? uvec2(chunk / (DEPTH / 8), chunk % (DEPTH / 8) * 8) : uvec2(chunk % (lines / 8) * 8, chunk / (lines / 8));
}
uint chunk_index(uvec2 place, uint stride, bool along_k) {
    return along_k ? place.x * stride + place.y / 8 : place.y * stride + place.x / 8;
}

// 8 neighbours of a float operand from (line, depth) on, as they lie in memory: f32 in both halves of the pair, the others
// in the first. What is beyond the last depth reads as 0; what is beyond the last line is never stored, and may be anything.
struct eight { uvec4 low, high; };
#define READ_EIGHT(words, wide, type, first, line_stride, depth_stride, lines, depths, along_k, is_wide, at, to) { \
    to = eight(uvec4(0u), uvec4(0u)); \
    if (is_wide) { \
        const uint unit = 16u / type_bytes(type); \
        [[unroll]] for (uint half_of = 0u; half_of < 8u / unit; half_of++) { \
            uvec2 place = along_k ? uvec2(at.x, at.y + half_of * unit) : uvec2(at.x + half_of * unit, at.y); \
            uint line = min(place.x, (lines) - (along_k ? 1u : unit)), depth = place.y; \
            if (!WHOLE) depth = min(depth, (depths) - (along_k ? unit : 1u)); \
            uint index = along_k ? line * ((line_stride) / unit) + depth / unit : line / unit + depth * ((depth_stride) / unit); \
            uvec4 loaded = wide[(first) / unit + index]; \
            if (!WHOLE && place.y >= (depths)) loaded = uvec4(0u); \
            if (half_of == 0u) to.low = loaded; else to.high = loaded; \
        } \
    } else if (at.x < (lines) && at.y < (depths)) { \
        uint count = min(along_k ? (depths) - at.y : (lines) - at.x, 8u), step = along_k ? depth_stride : line_stride; \
        for (uint e = 0u; e < count; e++) { \
            uint index = first + at.x * (line_stride) + at.y * (depth_stride) + e * step; \
            uint bits = raw_element(words[word_of(type, index)], type, index); \
            if (type_bytes(type) == 2u) to.low[e >> 1] |= bits << (16u * (e & 1u)); \
            else if (e < 4u) to.low[e] = bits; \
            else to.high[e - 4u] = bits; \
        } \
    } }

uvec4 packed_halves(vec4 low, vec4 high) {
    return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
}
// Finite numbers that f16 does not hold become its largest.
vec4 saturated(vec4 value) {
    return mix(value, clamp(value, -65504.0, 65504.0), lessThan(floatBitsToUint(value) & 0x7FFFFFFFu, uvec4(0x7F800000u)));
}
uvec4 halves_of(eight value, uint type, bool saturate) {
    if (STAYS || type == HDI_TYPE_F16) return value.low;
    vec4 low = uintBitsToFloat(value.low), high = uintBitsToFloat(value.high);
    if (type == HDI_TYPE_BF16) {
        vec4 even = uintBitsToFloat(value.low << 16), odd = uintBitsToFloat(value.low & 0xFFFF0000u);
        low = vec4(even.x, odd.x, even.y, odd.y);
        high = vec4(even.z, odd.z, even.w, odd.w);
    }
    return saturate ? packed_halves(saturated(low), saturated(high)) : packed_halves(low, high);
}
f16vec2 sizes_of(uvec4 halves) {
    return abs(unpackFloat2x16(halves.x)) + abs(unpackFloat2x16(halves.y)) + abs(unpackFloat2x16(halves.z)) + abs(unpackFloat2x16(halves.w));
}

eight read_a(uvec2 at, uint first, uint lines, uint depths) {
    eight value;
    READ_EIGHT(a, wide_a, A_TYPE, first, push[HDI_MM_PUSH_A_ROW], push[HDI_MM_PUSH_A_COL], lines, depths, A_ALONG_K, A_WIDE, at, value)
    return value;
}
// Weights that are a half times a whole number of 8 bits at most: as the lowest bits of the half 1024 it is 1024 more, so
// that nothing is converted. The difference is exact, and the product rounded once, as b_eight's.
bool is_half_times_code(uint type) { return type == HDI_TYPE_Q4_0 || type == HDI_TYPE_Q8_0; }
uvec2 four_halves(uint codes, float16_t scale) {
    const uint MASK = B_TYPE == HDI_TYPE_Q8_0 ? 0x00FF00FFu : 0x000F000Fu, MORE = 0x64006400u;
    const float16_t LESS = B_TYPE == HDI_TYPE_Q8_0 ? 1152.0hf : 1032.0hf;
    uint even = packFloat2x16((unpackFloat2x16((codes & MASK) | MORE) - LESS) * scale);
    uint odd = packFloat2x16((unpackFloat2x16(((codes >> 8) & MASK) | MORE) - LESS) * scale);
    return uvec2((even & 0xFFFFu) | (odd << 16), (even >> 16) | (odd & 0xFFFF0000u));
}
uvec4 b_eight_halves(uint index) {
    if (is_half_times_code(B_TYPE)) {
        uint e = place_in_block(B_TYPE, index), block = block_first(B_TYPE, index), at = block + code_byte(B_TYPE, e);
        uvec2 codes = uvec2(b_bytes(at), b_bytes(at + 4u));
        if (B_TYPE == HDI_TYPE_Q8_0) codes ^= 0x80808080u; else codes >>= (e & 16u) >> 2;
        float16_t scale = unpackFloat2x16(B_WORD(block >> 2) >> (8u * (block & 2u))).x;
        return uvec4(four_halves(codes.x, scale), four_halves(codes.y, scale));
    }
    vec4 low, high;
    b_eight(index, low, high);
    return packed_halves(low, high);
}

// Quantised weights come as halves at once.
eight read_b(uvec2 at, uint first, uint depths) {
    eight value;
    if (!STAYS && is_quantised(B_TYPE)) {
        uint line = min(at.x, push[HDI_MM_PUSH_N] - (B_ALONG_K ? 1u : 8u)), depth = WHOLE ? at.y : min(at.y, depths - (B_ALONG_K ? 8u : 1u));
        value.low = b_eight_halves(first + line * push[HDI_MM_PUSH_B_COL] + depth * push[HDI_MM_PUSH_B_ROW]);
        if (!WHOLE && at.y >= depths) value.low = uvec4(0u);
        return value;
    }
    READ_EIGHT(b, wide_b, B_TYPE, first, push[HDI_MM_PUSH_B_COL], push[HDI_MM_PUSH_B_ROW], push[HDI_MM_PUSH_N], depths, B_ALONG_K, B_WIDE, at, value)
    return value;
}

void main() {
    const uint N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    const uint part = gl_WorkGroupID.z % PARTS, batch = batch_of(gl_WorkGroupID.z / PARTS), M = rows_of(batch);
    const uint m0 = gl_WorkGroupID.y * TILE_M, n0 = gl_WorkGroupID.x * TILE_N;
    if (GROUPED && m0 >= M) return;
    const uint a0 = a_first(batch), b0 = b_first(batch);
    const uint own_m = gl_SubgroupID / SUBGROUPS_N * PART_M, own_n = gl_SubgroupID % SUBGROUPS_N * PART_N;
    const uint depth_of_part = (K + PARTS * DEPTH - 1u) / (PARTS * DEPTH) * DEPTH;
    const uint k_begin = part * depth_of_part, k_end = min(K, k_begin + depth_of_part), k_last = k_begin + (k_end - k_begin - 1u) / DEPTH * DEPTH;

    SUMS sums[UNITS_M * UNITS_N];
    [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) sums[i] = SUMS(0.0);

    // Rows of A lie side by side, those of a group (along K then) anywhere.
    uint rows[A_READS];
    [[unroll]] for (uint i = 0u; i < A_READS; i++) {
        rows[i] = m0 + chunk_place(i, TILE_M, A_ALONG_K).x;
        if (GROUPED) rows[i] = a_row(batch, min(rows[i], M - 1u));
    }
    const uint lines = GROUPED ? 0xFFFFFFFFu : M;
    eight a_next[AHEAD * A_READS], b_next[AHEAD * B_READS];
#define FETCH(set, k) { \
    [[unroll]] for (uint i = 0u; i < A_READS; i++) \
        a_next[(set) * A_READS + i] = read_a(uvec2(rows[i], chunk_place(i, TILE_M, A_ALONG_K).y + (k)), a0, lines, k_end); \
    [[unroll]] for (uint i = 0u; i < B_READS; i++) \
        b_next[(set) * B_READS + i] = read_b(chunk_place(i, TILE_N, B_ALONG_K) + uvec2(n0, k), b0, k_end); }
#define STAGE_ALL(set, beyond, saturate) { \
    [[unroll]] for (uint i = 0u; i < A_READS; i++) { \
        uvec4 chunk = halves_of(a_next[(set) * A_READS + i], A_TYPE, saturate); \
        if (!STAYS && A_TYPE != HDI_TYPE_F16) sizes += sizes_of(chunk); \
        if (beyond) chunk = uvec4(0u); \
        tiles[chunk_index(chunk_place(i, TILE_M, A_ALONG_K), A_STRIDE, A_ALONG_K)] = chunk; \
    } \
    [[unroll]] for (uint i = 0u; i < B_READS; i++) { \
        eight value = b_next[(set) * B_READS + i]; \
        uvec4 chunk = !STAYS && is_quantised(B_TYPE) ? value.low : halves_of(value, B_TYPE, saturate); \
        if (!STAYS && B_TYPE == HDI_TYPE_BF16) sizes += sizes_of(chunk); \
        if (beyond) chunk = uvec4(0u); \
        tiles[A_CHUNKS + chunk_index(chunk_place(i, TILE_N, B_ALONG_K), B_STRIDE, B_ALONG_K)] = chunk; \
    } }
    // Sums of sizes tell whether an element overflowed, or may have: seldom, so that one branch is cheaper than clamping all.
#define STAGE(set, beyond) { \
    f16vec2 sizes = f16vec2(0.0hf); \
    STAGE_ALL(set, beyond, false) \
    if (!STAYS && !all(lessThan(sizes, f16vec2(65504.0hf)))) STAGE_ALL(set, beyond, true) }
#define MULTIPLY \
    [[unroll]] for (uint k = 0u; k < DEPTH; k += UNIT) { \
        MATRIX(FACTOR, UNIT, UNIT, A) rows[UNITS_M]; \
        [[unroll]] for (uint i = 0u; i < UNITS_M; i++) { \
            uint at = chunk_index(uvec2(own_m + i * UNIT, k), A_STRIDE, A_ALONG_K); \
            if (A_ALONG_K) coopMatLoad(rows[i], tiles, at, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
            else coopMatLoad(rows[i], tiles, at, A_STRIDE, gl_CooperativeMatrixLayoutColumnMajor); \
        } \
        [[unroll]] for (uint j = 0u; j < UNITS_N; j++) { \
            MATRIX(FACTOR, UNIT, UNIT, B) columns; \
            uint at = A_CHUNKS + chunk_index(uvec2(own_n + j * UNIT, k), B_STRIDE, B_ALONG_K); \
            if (B_ALONG_K) coopMatLoad(columns, tiles, at, B_STRIDE, gl_CooperativeMatrixLayoutColumnMajor); \
            else coopMatLoad(columns, tiles, at, B_STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
            [[unroll]] for (uint i = 0u; i < UNITS_M; i++) \
                sums[i * UNITS_N + j] = coopMatMulAdd(rows[i], columns, sums[i * UNITS_N + j]); \
        } \
    }
    // A branch between a read and its use cost an eighth of the time (H200, Vulkan): beyond the last tile of two there is one of
    // zeros, and the last is read again for nothing, unless there are codes to turn into numbers.
#define STEP(set, k) { \
    if (STAYS || !is_quantised(B_TYPE) || (k) < k_last) FETCH(set, min((k) + AHEAD * DEPTH, k_last)) \
    MULTIPLY \
    barrier(); \
    STAGE(((set) + 1u) % AHEAD, (set) + 1u < AHEAD && (k) + DEPTH >= k_end) \
    barrier(); }

    FETCH(0u, k_begin)
    if (AHEAD > 1u) FETCH(1u, min(k_begin + DEPTH, k_last))
    STAGE(0u, false)
    barrier();
    for (uint k0 = k_begin; k0 < k_end; k0 += AHEAD * DEPTH) {
        STEP(0u, k0)
        if (AHEAD > 1u) STEP(1u, k0 + DEPTH)
    }
    STORE_UNITS(sums)
}
