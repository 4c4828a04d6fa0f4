#version 450
// matvec_subgroup: C = chain(A x B) for at most 8 rows of A, fast mode only, where B's columns lie along K (GGUF's
// weights). A workgroup computes TILE_N columns, all lanes along K: a lane takes 8 weights at a time, unpacks them once for
// all rows of A, and neighbouring lanes read neighbouring words. A may be normalised on the way, and B may be a pair.
// Needs sums over a subgroup; all operands wide.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "merged.glsl"

// Sums over K: for each B and each row of A TILE_N of them, then the rows' sums of squares.
const uint SQUARES = PRODUCTS * TILE_M * TILE_N, SUMS = SQUARES + (NORM != HDI_MM_NORM_NONE ? TILE_M : 0);
shared float subgroup_sums[SUMS * WORKGROUP / 4]; // of each subgroup, which is 4 lanes at least

// Unit `unit` of a column is 8 weights: 4 from element unit_place(unit).x on and 4 from .y on, counted along K.
uvec2 unit_place(uint unit) {
    if (B_TYPE == HDI_TYPE_Q4_0) {
        uint at = 32u * (unit >> 2) + 4u * (unit & 3u);
        return uvec2(at, at + 16u);
    }
    uint block = 256u * (unit >> 5), l = 4u * (unit & 7u), part = (unit >> 3) & 3u;
    if (B_TYPE == HDI_TYPE_Q4_K) return uvec2(block + 64u * part + l, block + 64u * part + l + 32u);
    if (B_TYPE == HDI_TYPE_Q6_K) return uvec2(block + 128u * (part >> 1) + 32u * (part & 1u) + l) + uvec2(0u, 64u);
    if (B_TYPE == HDI_TYPE_TQ2_0) return uvec2(block + 128u * (part >> 1) + 64u * (part & 1u) + l) + uvec2(0u, 32u);
    return uvec2(8u * unit, 8u * unit + 4u);
}
// The weights of a unit in the column whose first element is `first`.
void unit_weights(uint first, uint unit, out vec4 x, out vec4 y) {
    if (B_TYPE == HDI_TYPE_F32) {
        x = uintBitsToFloat(B_WORDS((first >> 2) + 2u * unit));
        y = uintBitsToFloat(B_WORDS((first >> 2) + 2u * unit + 1u));
    } else if (B_TYPE == HDI_TYPE_F16) {
        uvec4 words = B_WORDS((first >> 3) + unit);
        x = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
        y = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
    } else if (B_TYPE == HDI_TYPE_BF16) {
        uvec4 words = B_WORDS((first >> 3) + unit), low = words << 16, high = words & 0xFFFF0000u;
        x = uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y));
        y = uintBitsToFloat(uvec4(low.z, high.z, low.w, high.w));
    } else if (B_TYPE == HDI_TYPE_Q4_0) {
        uint block = ((first >> 5) + (unit >> 2)) * 18u, codes = b_bytes(block + 2u + 4u * (unit & 3u));
        float d = b_half(block);
        x = d * (bytes_to_floats(codes & 0x0F0F0F0Fu) - 8.0);
        y = d * (bytes_to_floats((codes >> 4) & 0x0F0F0F0Fu) - 8.0);
    } else if (B_TYPE == HDI_TYPE_Q8_0) {
        uint block = ((first >> 5) + (unit >> 2)) * 34u, at = block + 2u + 8u * (unit & 3u);
        float d = b_half(block);
        x = d * signed_bytes_to_floats(b_bytes(at));
        y = d * signed_bytes_to_floats(b_bytes(at + 4u));
    } else if (B_TYPE == HDI_TYPE_Q4_K || B_TYPE == HDI_TYPE_Q6_K || B_TYPE == HDI_TYPE_TQ2_0) {
        uint block = ((first >> 8) + (unit >> 5)) * block_bytes(B_TYPE), l = 4u * (unit & 7u), part = (unit >> 3) & 3u;
        if (B_TYPE == HDI_TYPE_Q4_K) {
            uvec4 head = B_WORDS(block >> 4);
            uint codes = B_WORD((block >> 2) + 4u + 8u * part + (l >> 2));
            uint low = q4_k_scale_min(2u * part, head.y, head.z, head.w), high = q4_k_scale_min(2u * part + 1u, head.y, head.z, head.w);
            vec2 d = unpackHalf2x16(head.x);
            x = d.x * float(low & 63u) * bytes_to_floats(codes & 0x0F0F0F0Fu) - d.y * float(low >> 8);
            y = d.x * float(high & 63u) * bytes_to_floats((codes >> 4) & 0x0F0F0F0Fu) - d.y * float(high >> 8);
        } else if (B_TYPE == HDI_TYPE_Q6_K) {
            uint codes = b_bytes(block + 64u * (part >> 1) + 32u * (part & 1u) + l);
            uint more = b_bytes(block + 128u + 32u * (part >> 1) + l) >> (2u * (part & 1u));
            uint scale = block + 192u + 8u * (part >> 1) + 2u * (part & 1u) + (l >> 4); // the other one is 4 bytes on
            float d = b_half(block + 208u);
            x = d * signed_byte(quant_byte(B_WORD(scale >> 2), scale)) * (bytes_to_floats((codes & 0x0F0F0F0Fu) | ((more & 0x03030303u) << 4)) - 32.0);
            y = d * signed_byte(quant_byte(B_WORD((scale >> 2) + 1u), scale)) * (bytes_to_floats(((codes >> 4) & 0x0F0F0F0Fu) | (more & 0x30303030u)) - 32.0);
        } else { // tq2_0
            uint codes = b_bytes(block + 32u * (part >> 1) + l) >> (4u * (part & 1u));
            float d = b_half(block + 64u);
            x = d * (bytes_to_floats(codes & 0x03030303u) - 1.0);
            y = d * (bytes_to_floats((codes >> 2) & 0x03030303u) - 1.0);
        }
    } else { // the other quantised types: neighbours
        b_eight(first + 8u * unit, x, y);
    }
}
// Rows of A at a unit, normalised but for the scale, whose sums of squares go on if they are `wanted`.
void a_unit(uint first, uint rows[TILE_M], uint unit, bool wanted, inout float sums[SUMS], out vec4 x[TILE_M], out vec4 y[TILE_M]) {
    uvec2 place = unit_place(unit);
    vec4 x_weight = vec4(1.0), y_weight = vec4(1.0);
    if (NORM == HDI_MM_NORM_WEIGHTED) {
        x_weight = uintBitsToFloat(norm_weight[place.x >> 2]);
        y_weight = uintBitsToFloat(norm_weight[place.y >> 2]);
    }
    [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
        x[m] = a_four(first + rows[m] + place.x);
        y[m] = a_four(first + rows[m] + place.y);
        if (NORM != HDI_MM_NORM_NONE) {
            float squares = dot_fused(y[m], y[m], dot_fused(x[m], x[m], sums[SQUARES + m]));
            sums[SQUARES + m] = wanted ? squares : sums[SQUARES + m];
            x[m] *= x_weight;
            y[m] *= y_weight;
        }
    }
}
// The sum of the subgroups' parts.
float total(uint i) {
    float sum = 0.0;
    for (uint s = 0u; s < gl_NumSubgroups; s++) sum += subgroup_sums[s * SUMS + i];
    return sum;
}

void main() {
    const uint n0 = gl_WorkGroupID.x * TILE_N, batch = batch_of(gl_WorkGroupID.z), lane = gl_LocalInvocationIndex;
    const uint N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    wait_for_earlier();
    if (GROUPED && rows_of(batch) == 0u) return;
    const uint a0 = a_first(batch), b0 = b_first(batch);
    uint rows[TILE_M];
    [[unroll]] for (uint m = 0u; m < TILE_M; m++) rows[m] = few_row(batch, m);
    float sums[SUMS];
    [[unroll]] for (uint i = 0u; i < SUMS; i++) sums[i] = 0.0;
    const uint units = K / 8u;
    for (uint first = 0u; first < units; first += WORKGROUP) { // all lanes take all rounds: they meet again below
        const uint unit = min(first + lane, units - 1u);
        const bool wanted = first + lane < units;
        vec4 x[TILE_M], y[TILE_M];
        a_unit(a0, rows, unit, wanted, sums, x, y);
        [[unroll]] for (uint j = 0u; j < PRODUCTS * TILE_N; j++) {
            uint n = min(n0 + j % TILE_N, N - 1u); // the last tile computes its last column again
            vec4 low, high;
            in_second = j >= TILE_N;
            unit_weights(b0 + n * push[HDI_MM_PUSH_B_COL], unit, low, high);
            [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
                uint i = m * PRODUCTS * TILE_N + j;
                float sum = dot_fused(high, y[m], dot_fused(low, x[m], sums[i]));
                sums[i] = wanted ? sum : sums[i];
            }
        }
    }
    [[unroll]] for (uint i = 0u; i < SUMS; i++) {
        float sum = subgroupAdd(sums[i]);
        if (subgroupElect()) subgroup_sums[gl_SubgroupID * SUMS + i] = sum;
    }
    barrier();
    for (uint i = 2u * lane; i < TILE_M * TILE_N; i += 2u * WORKGROUP) { // TILE_N is even: two columns of one row
        uint m = i / TILE_N, n = n0 + i % TILE_N, at = m * PRODUCTS * TILE_N + i % TILE_N;
        float scale = NORM != HDI_MM_NORM_NONE ? norm_scale(total(SQUARES + m)) : 1.0;
        vec2 pair = scale * vec2(total(at), total(at + 1u)), seconds = vec2(0.0);
        if (PAIR != 0u) seconds = scale * vec2(total(at + TILE_N), total(at + TILE_N + 1u));
        if (n < N && (!GROUPED || m < rows_of(batch))) store_pairs(pair, seconds, min(N - n, 2u), batch, m, n);
    }
}
