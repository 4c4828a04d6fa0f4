#version 450
// matmul_codes_matrix: the exact product in 8 bits (abi.h) on matrix units: s8 x s8 summed in s32, which is exact. A workgroup
// computes TILE_M x TILE_N of C, each of its subgroups of 32 PART_M x PART_N of that. Both operands are lines of codes in the
// strands' order (strands.glsl), which go through shared memory STEPS runs at a time; the next ones are read while these are
// used. What scales a run's sums is read from there as matrices whose rows, or columns, are all the same, so that it meets the
// sums element by element.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "matmul.glsl"
#include "strands.glsl"

layout(std430, binding = 0) readonly buffer WideA { uvec4 wide_a[]; };
layout(std430, binding = 1) readonly buffer WideB { uvec4 wide_b[]; };
layout(constant_id = HDI_MM_PARTS) const uint ROWS_IN_ALL = 1; // of A, those of all groups

// Chunks of 16 bytes: codes, or facts of STEPS steps. Where halves have scales of their own a run of B lies twice: its first half
// and zeros, zeros and its second half. One more chunk of a line spreads lines over the memory's banks.
const uint STEPS = HDI_MM_STEPS, CHUNKS = 2u * STEPS, B_RUN = BY_HALVES ? 4u : 2u;
const uint A_STRIDE = 2u * STEPS + 1u, B_STRIDE = B_RUN * STEPS + 1u;
const uint A_READS = TILE_M * CHUNKS / WORKGROUP, B_READS = TILE_N * CHUNKS / WORKGROUP;
const uint FACTS = ROW_FACTS * TILE_M + COLUMN_FACTS * TILE_N, FACT_READS = (FACTS + WORKGROUP - 1u) / WORKGROUP;
#define TILE_CHUNKS (TILE_M * A_STRIDE + TILE_N * B_STRIDE)
#include "units.glsl"
shared float facts[STEPS * FACTS]; // of each step those of rows, then those of columns: fact by fact, line by line
#define WHOLE_SUMS MATRIX(int, UNIT, UNIT, Accumulator)

// Chunk `i` of the invocation's: its line, and its place along K.
uvec2 chunk_place(uint i) {
    uint chunk = gl_LocalInvocationIndex + i * WORKGROUP;
    return uvec2(chunk / CHUNKS, chunk % CHUNKS);
}
// Lines of codes: row m of the tile, and column n; there are so many of either, those of all groups.
uint m0, n0, M, N, first_column, rows_in_all, columns_in_all;
uint row_of(uint m) {
    uint row = min(m0 + m, M - 1u);
    return GROUPED ? a_row(gl_WorkGroupID.z, row) : row;
}
uint column_of(uint n) { return first_column + min(n0 + n, N - 1u); }
// The line of fact `i` of the invocation's.
uint fact_line(uint i) {
    uint fact = min(gl_LocalInvocationIndex + i * WORKGROUP, FACTS - 1u);
    return fact < ROW_FACTS * TILE_M ? row_of(fact % TILE_M) : column_of((fact - ROW_FACTS * TILE_M) % TILE_N);
}
uvec4 read_facts(uint i, uint line, uint step, uint steps) {
    uint fact = min(gl_LocalInvocationIndex + i * WORKGROUP, FACTS - 1u);
    if (fact < ROW_FACTS * TILE_M) return wide_a[fact_word(rows_in_all, steps, fact / TILE_M, line, step) / 4u];
    return wide_b[fact_word(columns_in_all, steps, (fact - ROW_FACTS * TILE_M) / TILE_N, line, step) / 4u];
}
void keep_b(uvec2 place, uvec4 codes) {
    if (!BY_HALVES) {
        tiles[TILE_M * A_STRIDE + place.x * B_STRIDE + place.y] = codes;
        return;
    }
    uint at = TILE_M * A_STRIDE + place.x * B_STRIDE + place.y / 2u * B_RUN, h = place.y % 2u;
    tiles[at + 3u * h] = codes;
    tiles[at + 1u + h] = uvec4(0u);
}

// A fact of 16 lines as a matrix: of rows of C, the same in all columns; of columns, the same in all rows.
#define OF_ROWS(to, fact) coopMatLoad(to, facts, step * FACTS + (fact) * TILE_M + own_m + i * UNIT, 0u, gl_CooperativeMatrixLayoutColumnMajor);
#define OF_COLUMNS(to, fact) \
    coopMatLoad(to, facts, step * FACTS + ROW_FACTS * TILE_M + (fact) * TILE_N + own_n + j * UNIT, 0u, gl_CooperativeMatrixLayoutRowMajor);

void main() {
    const uint runs = push[HDI_MM_PUSH_K] / HDI_MM_RUN, steps = steps_of(runs);
    m0 = gl_WorkGroupID.y * TILE_M;
    n0 = gl_WorkGroupID.x * TILE_N;
    M = rows_of(gl_WorkGroupID.z);
    N = push[HDI_MM_PUSH_N];
    if (GROUPED && m0 >= M) return;
    const uint experts = GROUPED ? push[HDI_MM_PUSH_EXPERTS] : 1u;
    first_column = GROUPED ? min(expert_of(gl_WorkGroupID.z), experts - 1u) * N : 0u;
    rows_in_all = GROUPED ? ROWS_IN_ALL : M;
    columns_in_all = experts * N;
    const uint own_m = gl_SubgroupID / SUBGROUPS_N * PART_M, own_n = gl_SubgroupID % SUBGROUPS_N * PART_N;
    SUMS strand[UNITS_M * UNITS_N], total[UNITS_M * UNITS_N];
    [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) strand[i] = total[i] = SUMS(0.0);

    uint a_lines[A_READS], fact_lines[FACT_READS];
    [[unroll]] for (uint i = 0u; i < A_READS; i++) a_lines[i] = row_of(chunk_place(i).x);
    [[unroll]] for (uint i = 0u; i < FACT_READS; i++) fact_lines[i] = fact_line(i);
    uvec4 a_next[A_READS], b_next[B_READS], facts_next[FACT_READS];
#define READ(first) { \
    [[unroll]] for (uint i = 0u; i < A_READS; i++) a_next[i] = wide_a[(a_lines[i] * steps + (first)) * 2u + chunk_place(i).y]; \
    [[unroll]] for (uint i = 0u; i < B_READS; i++) { uvec2 place = chunk_place(i); b_next[i] = wide_b[(column_of(place.x) * steps + (first)) * 2u + place.y]; } \
    [[unroll]] for (uint i = 0u; i < FACT_READS; i++) facts_next[i] = read_facts(i, fact_lines[i], first, steps); }

    READ(0u)
    uint number = 0u, left = (runs + HDI_MM_STRANDS - 1u) / HDI_MM_STRANDS; // of the strand, and its runs that are to come
    for (uint first = 0u; first < steps; first += STEPS) {
        barrier();
        [[unroll]] for (uint i = 0u; i < A_READS; i++) { uvec2 place = chunk_place(i); tiles[place.x * A_STRIDE + place.y] = a_next[i]; }
        [[unroll]] for (uint i = 0u; i < B_READS; i++) keep_b(chunk_place(i), b_next[i]);
        [[unroll]] for (uint i = 0u; i < FACT_READS; i++) {
            uint fact = gl_LocalInvocationIndex + i * WORKGROUP;
            if (fact < FACTS)
                [[unroll]] for (uint step = 0u; step < STEPS; step++) facts[step * FACTS + fact] = uintBitsToFloat(facts_next[i][step]);
        }
        barrier();
        if (first + STEPS < steps) READ(first + STEPS)
        [[dont_unroll]] for (uint step = 0u; step < STEPS; step++) {
            MATRIX(int8_t, UNIT, 32, A) rows[UNITS_M];
            SUMS a_scale[UNITS_M], low_codes[UNITS_M], high_codes[UNITS_M];
            [[unroll]] for (uint i = 0u; i < UNITS_M; i++) {
                coopMatLoad(rows[i], tiles, (own_m + i * UNIT) * A_STRIDE + step * 2u, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                OF_ROWS(a_scale[i], SCALE)
                if (HAS_MIN) OF_ROWS(low_codes[i], BY_HALVES ? LOW_SUM : SUM)
                if (HAS_MIN && BY_HALVES) OF_ROWS(high_codes[i], HIGH_SUM)
            }
            [[unroll]] for (uint j = 0u; j < UNITS_N; j++) {
                MATRIX(int8_t, 32, UNIT, B) columns, second;
                const uint at = TILE_M * A_STRIDE + (own_n + j * UNIT) * B_STRIDE + step * B_RUN;
                coopMatLoad(columns, tiles, at, B_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                if (BY_HALVES) coopMatLoad(second, tiles, at + 2u, B_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                SUMS d, less, low, low_min, high, high_min;
                OF_COLUMNS(d, D)
                if (BY_HALVES) OF_COLUMNS(low, LOW)
                if (BY_HALVES) OF_COLUMNS(high, HIGH)
                if (HAS_MIN) OF_COLUMNS(less, LESS)
                if (HAS_MIN && BY_HALVES) OF_COLUMNS(low_min, LOW_MIN)
                if (HAS_MIN && BY_HALVES) OF_COLUMNS(high_min, HIGH_MIN)
                [[unroll]] for (uint i = 0u; i < UNITS_M; i++) {
                    // Whole numbers below 2^24, in f32 as exact as in s32.
                    SUMS sum = SUMS(coopMatMulAdd(rows[i], columns, WHOLE_SUMS(0)));
                    if (BY_HALVES) sum = low * sum + high * SUMS(coopMatMulAdd(rows[i], second, WHOLE_SUMS(0)));
                    precise SUMS value = d * sum;
                    if (HAS_MIN) {
                        SUMS mins = low_codes[i];
                        if (BY_HALVES) mins = low_min * mins + high_min * high_codes[i];
                        precise SUMS taken = less * mins;
                        value = value - taken;
                    }
                    precise SUMS result = a_scale[i] * value;
                    precise SUMS next = strand[i * UNITS_N + j] + result;
                    strand[i * UNITS_N + j] = next;
                }
            }
            if (--left == 0u) { // the strand is complete
                [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) {
                    precise SUMS sum = total[i] + strand[i];
                    total[i] = sum;
                    strand[i] = SUMS(0.0);
                }
                number++;
                left = runs / HDI_MM_STRANDS + (number < runs % HDI_MM_STRANDS ? 1u : 0u);
            }
        }
    }
    barrier();
    STORE_UNITS(total)
}
