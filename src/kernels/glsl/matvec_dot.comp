#version 450
// matvec_dot: C = chain(A x B) for at most 8 rows of A and quantised weights whose columns lie along K, fast mode only. A is
// rounded to 8 bits with a scale for each run of 16 along K, once for a workgroup, into shared memory; each subgroup then
// computes PART_N columns by integer dot products of 4 x 8 bits. A may be normalised on the way, and B may be a pair.
// Needs sums over a subgroup and integer dot products; all operands wide, and B's bytes a multiple of 16.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "merged.glsl"

// OpSDotKHR of the packed vectors of 4 x 8 bits that format 0 names; glslang has no name of its own for it.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_dot(uint x, uint y, spirv_literal int format);

const uint RUN = 16, DEPTH = PART_M, RUNS = DEPTH / RUN; // elements of A along K that shared memory holds
const uint SUBGROUPS = TILE_N / PART_N, COLUMNS = PRODUCTS * PART_N, SUMS = TILE_M * COLUMNS;
const uint RAW = 5; // sixteens of memory that a unit's loads give at most
shared uvec4 a_codes[TILE_M * RUNS];
shared vec2 a_facts[TILE_M * RUNS]; // of each run its scale and the sum of its codes
shared float totals[SUBGROUPS * SUMS];
shared float squares[SUBGROUPS * TILE_M];

int dot_codes(uvec4 x, uvec4 y) {
    return packed_dot(x.x, y.x, 0) + packed_dot(x.y, y.y, 0) + packed_dot(x.z, y.z, 0) + packed_dot(x.w, y.w, 0);
}
// Rounds numbers of at most 2^21 to integers, which the low bits are then; and back.
const float ROUNDING = 12582912.0;
float small_float(int value) { return intBitsToFloat(value + floatBitsToInt(ROUNDING)) - ROUNDING; }
uint round_codes(vec4 v) {
    uvec4 bits = floatBitsToUint(v + ROUNDING) & 0xFFu;
    return bits.x | (bits.y << 8) | (bits.z << 16) | (bits.w << 24);
}

// Rounds run `run` of row m, whose first element is `first` in memory and `k` along K; returns its sum of squares.
float store_run(uint m, uint run, uint first, uint k) {
    vec4 v[4];
    float square = 0.0;
    uvec4 most = uvec4(0u); // as bits, so that NaN is the largest
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        v[i] = a_four(first + 4u * i);
        if (NORM != HDI_MM_NORM_NONE) square = dot_fused(v[i], v[i], square);
        if (NORM == HDI_MM_NORM_WEIGHTED) v[i] *= uintBitsToFloat(norm_weight[(k >> 2) + i]);
        most = max(most, floatBitsToUint(v[i]) & 0x7FFFFFFFu);
    }
    float largest = uintBitsToFloat(max(max(most.x, most.y), max(most.z, most.w)));
    float inverse = largest > 1e-30 ? 127.0 / largest : 0.0;
    uvec4 codes = uvec4(round_codes(v[0] * inverse), round_codes(v[1] * inverse), round_codes(v[2] * inverse), round_codes(v[3] * inverse));
    a_codes[m * RUNS + run] = codes;
    a_facts[m * RUNS + run] = vec2(largest / 127.0, float(dot_codes(codes, uvec4(0x01010101u))));
    return square;
}

// Unit `unit` of a column is 32 weights: two runs of A beginning with run unit_runs(unit).x and .y.
uvec2 unit_runs(uint unit) {
    uint block = 16u * (unit >> 3), part = unit & 7u;
    if (B_TYPE == HDI_TYPE_Q4_K) return uvec2(block + 4u * (part >> 1) + (part & 1u)) + uvec2(0u, 2u);
    if (B_TYPE == HDI_TYPE_Q6_K) return uvec2(block + 8u * (part >> 2) + (part & 3u)) + uvec2(0u, 4u);
    if (B_TYPE == HDI_TYPE_TQ2_0) return uvec2(block + 8u * (part >> 2) + 4u * ((part >> 1) & 1u) + (part & 1u)) + uvec2(0u, 2u);
    return uvec2(2u * unit) + uvec2(0u, 1u);
}
// The first byte of a unit's block in the column whose first element is `first`.
uint unit_block(uint first, uint unit) {
    if (block_elements(B_TYPE) == 32u) return ((first >> 5) + unit) * block_bytes(B_TYPE);
    return ((first >> 8) + (unit >> 3)) * block_bytes(B_TYPE);
}
// Bytes of the block at which the unit's codes begin.
uint unit_codes(uint unit) {
    uint part = unit & 7u;
    if (B_TYPE == HDI_TYPE_Q4_K) return 16u + 16u * part;
    if (B_TYPE == HDI_TYPE_Q6_K) return 16u * part;
    if (B_TYPE == HDI_TYPE_TQ2_0) return 32u * (part >> 2) + 16u * (part & 1u);
    return 0u;
}
// Reads what memory holds of a unit: all its loads and nothing else.
void fetch(uint first, uint unit, out uvec4 raw[RAW]) {
    uint block = unit_block(first, unit), at = block + unit_codes(unit), part = unit & 7u;
    raw[0] = B_WORDS(at >> 4);
    if (B_TYPE == HDI_TYPE_Q4_0) raw[1] = B_WORDS((at + 17u) >> 4);
    else if (B_TYPE == HDI_TYPE_Q4_K) raw[1] = B_WORDS(block >> 4);
    else raw[1] = B_WORDS((at + 15u) >> 4);
    if (B_TYPE == HDI_TYPE_Q8_0) {
        raw[1] = B_WORDS((at >> 4) + 1u);
        raw[2] = B_WORDS((at >> 4) + 2u);
    }
    if (B_TYPE == HDI_TYPE_TQ2_0) raw[2].x = B_WORD((block + 64u) >> 2);
    if (B_TYPE == HDI_TYPE_Q6_K) {
        uint more = block + 128u + 32u * (part >> 2) + 16u * (part & 1u), scale = block + 192u + 8u * (part >> 2) + (part & 3u);
        raw[2] = B_WORDS(more >> 4);
        raw[3] = B_WORDS((more + 15u) >> 4);
        raw[4].xyz = uvec3(B_WORD(scale >> 2), B_WORD((scale >> 2) + 1u), B_WORD((block + 208u) >> 2));
    }
}
// 16 bytes from byte `at`, a multiple of 2, on, out of the two aligned sixteens that hold them.
uvec4 sixteen(uvec4 low, uvec4 high, uint at) {
    uvec4 x = (at & 8u) != 0u ? uvec4(low.zw, high.xy) : low;
    uvec2 y = (at & 8u) != 0u ? high.zw : high.xy;
    uvec4 first = (at & 4u) != 0u ? uvec4(x.yzw, y.x) : x;
    uint last = (at & 4u) != 0u ? y.y : y.x;
    return (at & 2u) != 0u ? (first >> 16) | (uvec4(first.yzw, last) << 16) : first;
}
float half_at(uint word, uint at) { return unpackHalf2x16(word >> (8u * (at & 2u))).x; }
uint word_at(uvec4 words, uint at) { return (at & 8u) != 0u ? ((at & 4u) != 0u ? words.w : words.z) : (at & 4u) != 0u ? words.y : words.x; }

// A unit's weights: scale * code - less, for both runs.
void unpack(uint first, uint unit, uvec4 raw[RAW], out uvec4 x, out uvec4 y, out vec2 scale, out vec2 less) {
    uint block = unit_block(first, unit), at = block + unit_codes(unit), part = unit & 7u;
    uvec4 codes = raw[0];
    if (B_TYPE == HDI_TYPE_Q4_0 || B_TYPE == HDI_TYPE_Q8_0) {
        scale = vec2(half_at(word_at(raw[0], at), at));
        bool crosses = (at & 14u) == 14u; // the codes begin with the next sixteen
        codes = sixteen(crosses ? raw[1] : raw[0], crosses && B_TYPE == HDI_TYPE_Q8_0 ? raw[2] : raw[1], at + 2u);
    } else if (B_TYPE != HDI_TYPE_Q4_K) codes = sixteen(raw[0], raw[1], at);
    if (B_TYPE == HDI_TYPE_Q4_0) {
        x = codes & 0x0F0F0F0Fu;
        y = (codes >> 4) & 0x0F0F0F0Fu;
        less = 8.0 * scale;
    } else if (B_TYPE == HDI_TYPE_Q8_0) {
        bool crosses = (at & 14u) == 14u;
        x = codes;
        y = crosses ? raw[2] : sixteen(raw[1], raw[2], at + 2u);
        less = vec2(0.0);
    } else if (B_TYPE == HDI_TYPE_Q4_K) {
        uint low = q4_k_scale_min(part & 6u, raw[1].y, raw[1].z, raw[1].w), high = q4_k_scale_min((part & 6u) + 1u, raw[1].y, raw[1].z, raw[1].w);
        vec2 d = unpackHalf2x16(raw[1].x);
        x = codes & 0x0F0F0F0Fu;
        y = (codes >> 4) & 0x0F0F0F0Fu;
        scale = d.x * vec2(low & 63u, high & 63u);
        less = d.y * vec2(low >> 8, high >> 8);
    } else if (B_TYPE == HDI_TYPE_Q6_K) {
        uint more_at = block + 128u + 32u * (part >> 2) + 16u * (part & 1u), scale_at = block + 192u + 8u * (part >> 2) + (part & 3u);
        uvec4 more = sixteen(raw[2], raw[3], more_at) >> (part & 2u);
        x = (codes & 0x0F0F0F0Fu) | ((more & 0x03030303u) << 4);
        y = ((codes >> 4) & 0x0F0F0F0Fu) | (more & 0x30303030u);
        scale = half_at(raw[4].z, block) * vec2(signed_byte(quant_byte(raw[4].x, scale_at)), signed_byte(quant_byte(raw[4].y, scale_at)));
        less = 32.0 * scale;
    } else { // tq2_0
        uvec4 parts = codes >> (2u * (part & 2u));
        x = parts & 0x03030303u;
        y = (parts >> 2) & 0x03030303u;
        scale = less = vec2(half_at(raw[2].x, block));
    }
}

// The first element of the subgroup's column `j` of those of both Bs; the last tile computes the last column again.
uint column_first(uint b0, uint j) {
    uint n = gl_WorkGroupID.x * TILE_N + gl_SubgroupID * PART_N + j % PART_N;
    return b0 + min(n, push[HDI_MM_PUSH_N] - 1u) * push[HDI_MM_PUSH_B_COL];
}
// Reads unit `unit` of all the subgroup's columns.
void fetch_columns(uint b0, uint unit, out uvec4 raw[COLUMNS][RAW]) {
    [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
        in_second = j >= PART_N;
        fetch(column_first(b0, j), unit, raw[j]);
    }
}
// Adds its products with A, whose runs in shared memory begin at unit `unit0`, if they are `wanted`.
void add_unit(uint b0, uint unit, uint unit0, uvec4 raw[COLUMNS][RAW], bool wanted, inout float sums[SUMS]) {
    const uvec2 places = unit_runs(unit - unit0);
    [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
        uvec4 x, y;
        vec2 scale, less;
        unpack(column_first(b0, j), unit, raw[j], x, y, scale, less);
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
            vec2 first = a_facts[m * RUNS + places.x], second = a_facts[m * RUNS + places.y];
            float p = scale.x * small_float(dot_codes(x, a_codes[m * RUNS + places.x])) - less.x * first.y;
            float q = scale.y * small_float(dot_codes(y, a_codes[m * RUNS + places.y])) - less.y * second.y;
            float more = first.x * p + second.x * q;
            sums[m * COLUMNS + j] += wanted ? more : 0.0;
        }
    }
}

void main() {
    const uint lane = gl_SubgroupInvocationID, batch = batch_of(gl_WorkGroupID.z), N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    const uint n0 = gl_WorkGroupID.x * TILE_N, a0 = a_first(batch), b0 = b_first(batch);
    float sums[SUMS], square[TILE_M];
    [[unroll]] for (uint i = 0u; i < SUMS; i++) sums[i] = 0.0;
    [[unroll]] for (uint m = 0u; m < TILE_M; m++) square[m] = 0.0;

    for (uint k0 = 0u; k0 < K; k0 += DEPTH) {
        const uint runs = min(DEPTH, K - k0) / RUN, unit0 = k0 / 32u, end = unit0 + runs / 2u;
        if (k0 > 0u) barrier();
        for (uint run = gl_LocalInvocationIndex; run < runs; run += WORKGROUP)
            [[unroll]] for (uint m = 0u; m < TILE_M; m++)
                square[m] += store_run(m, run, a0 + m * push[HDI_MM_PUSH_A_ROW] + k0 + run * RUN, k0 + run * RUN);
        barrier();
        for (uint first = unit0; first < end; first += gl_SubgroupSize) { // all lanes take all rounds: they meet again below
            const uint unit = min(first + lane, end - 1u);
            uvec4 raw[COLUMNS][RAW];
            fetch_columns(b0, unit, raw);
            add_unit(b0, unit, unit0, raw, first + lane < end, sums);
        }
    }
    [[unroll]] for (uint i = 0u; i < SUMS; i++) {
        float sum = subgroupAdd(sums[i]);
        if (subgroupElect()) totals[gl_SubgroupID * SUMS + i] = sum;
    }
    [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
        float sum = NORM != HDI_MM_NORM_NONE ? subgroupAdd(square[m]) : 0.0;
        if (subgroupElect()) squares[gl_SubgroupID * TILE_M + m] = sum;
    }
    barrier();
    for (uint i = 2u * gl_LocalInvocationIndex; i < TILE_M * TILE_N; i += 2u * WORKGROUP) { // PART_N is even: two columns of one row
        uint m = i / TILE_N, column = i % TILE_N, n = n0 + column, at = column / PART_N * SUMS + m * COLUMNS + column % PART_N;
        float square_sum = 0.0;
        for (uint s = 0u; s < SUBGROUPS; s++) square_sum += squares[s * TILE_M + m];
        float scale = norm_scale(square_sum);
        vec2 pair = scale * vec2(totals[at], totals[at + 1u]), seconds = vec2(0.0);
        if (PAIR != 0u) seconds = scale * vec2(totals[at + PART_N], totals[at + PART_N + 1u]);
        if (n < N) store_pairs(pair, seconds, min(N - n, 2u), batch, m, n);
    }
}
