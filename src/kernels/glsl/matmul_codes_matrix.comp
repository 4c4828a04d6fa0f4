#version 450
// matmul_codes_matrix: the exact product in 8 bits (abi.h) on matrix units: s8 x s8 summed in s32, which is exact. A workgroup
// computes TILE_M x TILE_N of C, each of its subgroups of 32 PART_M x PART_N of that. K is walked strand by strand, RUNS runs at
// a time, through shared memory; the next ones are read while these are used. What scales a run's sums is read from shared
// memory as matrices whose rows, or columns, are all the same, so that it meets the sums element by element.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "matmul.glsl"
#include "runs.glsl"

layout(std430, binding = 0) readonly buffer WideCodes { uvec4 wide_codes[]; };
layout(constant_id = HDI_MM_PARTS) const uint ROWS_IN_ALL = 1; // of A, those of all batches

const uint RUNS = 2, LINES = TILE_M + TILE_N; // runs that are read together
const bool BY_HALVES = B_TYPE == HDI_TYPE_Q6_K || B_TYPE == HDI_TYPE_Q2_K || B_TYPE == HDI_TYPE_Q3_K; // each with a scale
const bool OF_RUNS = B_TYPE == HDI_TYPE_Q4_K || B_TYPE == HDI_TYPE_Q5_K, HAS_SCALE = BY_HALVES || OF_RUNS;
const bool HAS_MIN = OF_RUNS || B_TYPE == HDI_TYPE_Q2_K || B_TYPE == HDI_TYPE_Q4_1 || B_TYPE == HDI_TYPE_Q5_1;
// Chunks of 16 codes. Where halves have scales of their own a run of A lies twice: first half and zeros, zeros and second half.
const uint A_CHUNKS = BY_HALVES ? 4u : 2u, A_STRIDE = RUNS * A_CHUNKS + 1u, B_STRIDE = RUNS * 2u + 1u; // one more spreads lines over banks
const uint HALVES = 2u * RUNS * LINES, READS = (HALVES + WORKGROUP - 1) / WORKGROUP;
#define TILE_CHUNKS (TILE_M * A_STRIDE + TILE_N * B_STRIDE)
#include "units.glsl"
// Of each run and line, one number after the other: of A its scale and the sums of both halves' codes; of B d, less, both
// halves' scales, both halves' mins.
const uint A_FACTS = HAS_MIN ? 3u : 1u, B_FACTS = HAS_MIN ? 6u : HAS_SCALE ? 4u : 1u;
shared float facts[RUNS * (A_FACTS * TILE_M + B_FACTS * TILE_N)];
uint a_fact(uint slot, uint fact, uint m) { return (slot * A_FACTS + fact) * TILE_M + m; }
uint b_fact(uint slot, uint fact, uint n) { return RUNS * A_FACTS * TILE_M + (slot * B_FACTS + fact) * TILE_N + n; }

#define WHOLE_SUMS MATRIX(int, UNIT, UNIT, Accumulator)

// A half of a run as it was read: its codes, and with a first half what scales the run.
struct half_run { uvec4 codes, facts; };
// Half `i` of the invocation's: line, half, and which of the runs that are read together.
uvec3 place_of(uint i) {
    uint half_of = gl_LocalInvocationIndex + i * WORKGROUP;
    return uvec3(half_of % LINES, half_of / LINES % 2u, half_of / (2u * LINES));
}
uint both_halves(ivec2 halves) { return (uint(halves.x) & 0xFFFFu) | (uint(halves.y) << 16); }
half_run read_half(uvec3 place, uint run, uint runs, uint m0, uint n0, uint batch, uint b0) {
    half_run read = half_run(uvec4(0u), uvec4(0u));
    if (run >= runs) return read;
    if (place.x < TILE_M) {
        uint m = m0 + place.x;
        if (m >= push[HDI_MM_PUSH_M]) return read;
        uint at = (batch * push[HDI_MM_PUSH_M] + m) * runs + run, first = ROWS_IN_ALL * runs * 8u + at * 2u;
        read.codes = wide_codes[at * 2u + place.y];
        if (place.y == 0u) read.facts.xy = uvec2(a[first], a[first + 1u]);
        return read;
    }
    uint n = n0 + place.x - TILE_M;
    if (n >= push[HDI_MM_PUSH_N]) return read;
    uint block = byte_of_run(B_TYPE, b0 + n * push[HDI_MM_PUSH_B_COL], run), part = part_of_run(B_TYPE, run);
    read.codes = half_codes(B_TYPE, block, part, place.y);
    if (place.y != 0u) return read;
    run_scales s = scales_of_run(B_TYPE, block, part);
    read.facts = uvec4(floatBitsToUint(s.d), floatBitsToUint(s.less), both_halves(s.scale), both_halves(s.min));
    return read;
}
float low_half(uint both) { return float(int(both << 16) >> 16); }
float high_half(uint both) { return float(int(both) >> 16); }
void keep_half(uvec3 place, half_run read) {
    if (place.z >= RUNS) return;
    if (place.x < TILE_M) {
        uint at = place.x * A_STRIDE + place.z * A_CHUNKS + (BY_HALVES ? 3u : 1u) * place.y;
        tiles[at] = read.codes;
        if (BY_HALVES) tiles[place.y == 0u ? at + 1u : at - 1u] = uvec4(0u);
        if (place.y != 0u) return;
        facts[a_fact(place.z, 0u, place.x)] = uintBitsToFloat(read.facts.x);
        if (!HAS_MIN) return;
        facts[a_fact(place.z, 1u, place.x)] = low_half(read.facts.y);
        facts[a_fact(place.z, 2u, place.x)] = high_half(read.facts.y);
        return;
    }
    uint n = place.x - TILE_M;
    tiles[TILE_M * A_STRIDE + n * B_STRIDE + place.z * 2u + place.y] = read.codes;
    if (place.y != 0u) return;
    facts[b_fact(place.z, 0u, n)] = uintBitsToFloat(read.facts.x);
    if (HAS_SCALE) {
        facts[b_fact(place.z, 2u, n)] = low_half(read.facts.z);
        facts[b_fact(place.z, 3u, n)] = high_half(read.facts.z);
    }
    if (!HAS_MIN) return;
    facts[b_fact(place.z, 1u, n)] = uintBitsToFloat(read.facts.y);
    facts[b_fact(place.z, 4u, n)] = low_half(read.facts.w);
    facts[b_fact(place.z, 5u, n)] = high_half(read.facts.w);
}

// The run behind `run`, strand by strand.
uint run_behind(uint run, uint runs) { return run + HDI_MM_STRANDS < runs ? run + HDI_MM_STRANDS : run % HDI_MM_STRANDS + 1u; }

// A fact of 16 lines as a matrix: of rows of C, the same in all columns; of columns, the same in all rows.
#define OF_ROWS(to, fact, i) SUMS to; coopMatLoad(to, facts, a_fact(slot, fact, own_m + (i) * UNIT), 0u, gl_CooperativeMatrixLayoutColumnMajor)
#define OF_COLUMNS(to, fact) SUMS to; coopMatLoad(to, facts, b_fact(slot, fact, own_n + j * UNIT), 0u, gl_CooperativeMatrixLayoutRowMajor)

void main() {
    const uint m0 = gl_WorkGroupID.y * TILE_M, n0 = gl_WorkGroupID.x * TILE_N, batch = batch_of(gl_WorkGroupID.z);
    const uint M = push[HDI_MM_PUSH_M], N = push[HDI_MM_PUSH_N], runs = push[HDI_MM_PUSH_K] / HDI_MM_RUN, b0 = b_first(batch);
    const uint own_m = gl_SubgroupID / SUBGROUPS_N * PART_M, own_n = gl_SubgroupID % SUBGROUPS_N * PART_N;
    SUMS strand[UNITS_M * UNITS_N], total[UNITS_M * UNITS_N];
    [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) strand[i] = total[i] = SUMS(0.0);

    half_run next[READS];
#define READ { [[unroll]] for (uint i = 0u; i < READS; i++) { \
        uvec3 place = place_of(i); \
        next[i] = read_half(place, place.z == 0u ? ahead.x : ahead.y, runs, m0, n0, batch, b0); } }

    uvec2 ahead = uvec2(0u, run_behind(0u, runs)); // the runs that are read; beyond the last one they are zeros
    READ
    for (uint done = 0u; done < runs; done += RUNS) {
        barrier();
        [[unroll]] for (uint i = 0u; i < READS; i++) keep_half(place_of(i), next[i]);
        barrier();
        const uvec2 used = ahead;
        if (done + RUNS < runs) {
            ahead.x = run_behind(used.y, runs);
            ahead.y = done + RUNS + 1u < runs ? run_behind(ahead.x, runs) : runs;
            READ
        }
        [[unroll]] for (uint slot = 0u; slot < RUNS; slot++) {
            MATRIX(int8_t, UNIT, 32, A) rows[UNITS_M], second_rows[UNITS_M];
            [[unroll]] for (uint i = 0u; i < UNITS_M; i++) {
                const uint at = (own_m + i * UNIT) * A_STRIDE + slot * A_CHUNKS;
                coopMatLoad(rows[i], tiles, at, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                if (BY_HALVES) coopMatLoad(second_rows[i], tiles, at + 2u, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint j = 0u; j < UNITS_N; j++) {
                MATRIX(int8_t, 32, UNIT, B) columns;
                coopMatLoad(columns, tiles, TILE_M * A_STRIDE + (own_n + j * UNIT) * B_STRIDE + slot * 2u, B_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                OF_COLUMNS(d, 0u);
                [[unroll]] for (uint i = 0u; i < UNITS_M; i++) {
                    // Whole numbers below 2^24, in f32 as exact as in s32.
                    SUMS sum = SUMS(coopMatMulAdd(rows[i], columns, WHOLE_SUMS(0)));
                    if (HAS_SCALE) {
                        OF_COLUMNS(scale, 2u);
                        sum = scale * sum;
                    }
                    if (BY_HALVES) {
                        OF_COLUMNS(scale, 3u);
                        sum = sum + scale * SUMS(coopMatMulAdd(second_rows[i], columns, WHOLE_SUMS(0)));
                    }
                    precise SUMS value = d * sum;
                    if (HAS_MIN) {
                        OF_COLUMNS(less, 1u);
                        OF_COLUMNS(min_low, 4u);
                        OF_COLUMNS(min_high, 5u);
                        OF_ROWS(codes_low, 1u, i);
                        OF_ROWS(codes_high, 2u, i);
                        precise SUMS taken = less * (min_low * codes_low + min_high * codes_high);
                        value = value - taken;
                    }
                    OF_ROWS(a_scale, 0u, i);
                    precise SUMS result = a_scale * value;
                    precise SUMS next_sum = strand[i * UNITS_N + j] + result;
                    strand[i * UNITS_N + j] = next_sum;
                }
            }
            if (used[slot] + HDI_MM_STRANDS >= runs) // a strand is complete
                [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) {
                    precise SUMS sum = total[i] + strand[i];
                    total[i] = sum;
                    strand[i] = SUMS(0.0);
                }
        }
    }
    barrier();
    STORE_UNITS(total)
}
