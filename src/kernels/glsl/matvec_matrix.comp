#version 450
// matvec_matrix: C = chain(A x B) for 2 to 8 rows of A and weights of q4_0, q8_0 or q4_k whose columns lie along K, one behind the
// other: abi.h's exact product in 8 bits, in both modes, on matrix units: s8 x s8 summed in s32. A is rounded into shared memory, all
// of it. A workgroup takes its TILE_N columns PART_N at a time, and of these a round of 16 runs, one of each strand. In a step the
// lanes ask for a round, put one that has come into shared memory as it lies, and unpack the one of the step before to codes there;
// and each subgroup of 32 multiplies the runs of its own strands of the round before that, whose sums it keeps.
// In fast mode A may be normalised on the way; B may be a pair.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "few.glsl"

const uint UNIT = 16, ROWS = 8; // of B's columns and of A's rows in a matrix
const uint STRANDS = HDI_MM_STRANDS, SUBGROUPS = WORKGROUP / 32, OWN_STRANDS = STRANDS / SUBGROUPS;
const uint UNITS = (PART_N + UNIT - 1) / UNIT, COLUMNS = PRODUCTS * PART_N, LINES = PRODUCTS * UNITS * UNIT, MATRICES = PRODUCTS * UNITS; // of a pass
const bool HAS_MIN = B_TYPE == HDI_TYPE_Q4_K, HAS_OFFSET = B_TYPE == HDI_TYPE_Q4_0;
// Rows of A run by run, so that a matrix of fewer rows ends in the next run.
const uint FACT_ROWS = (TILE_M + 3) / 4 * 4;
shared uvec4 a_chunks[2 * (TILE_M * RUNS + ROWS)];
shared float a_scales[FACT_ROWS * RUNS + ROWS], a_sums[HAS_MIN ? FACT_ROWS * RUNS + ROWS : 1u];
shared int a_offsets[HAS_OFFSET ? FACT_ROWS * RUNS + ROWS : 1u]; // what the 8 of each code comes to
// Two rounds of columns as they lie: sixteens of a column, of all, of a lane. A sixteen more behind each column, as behind each line of
// codes, spreads them over the memory's banks.
const uint ROUND_SIXTEENS = 2 * OCTET_SIXTEENS, SIXTEENS = COLUMNS * ROUND_SIXTEENS, OWN_SIXTEENS = (SIXTEENS + WORKGROUP - 1) / WORKGROUP, ASKED = 2 * OWN_SIXTEENS;
const uint ROUND_ROOM = COLUMNS * (ROUND_SIXTEENS + 1);
shared uvec4 sixteens[2 * ROUND_ROOM];
// Two rounds of lines of codes, and what scales them.
const uint STRIDE = 2 * STRANDS + 1;
shared uvec4 chunks[2 * LINES * STRIDE];
shared float b_scales[2 * STRANDS * LINES], b_mins[HAS_MIN ? 2 * STRANDS * LINES : 1u];
shared float strands[STRANDS * ROWS * LINES]; // their sums in a pass
// Pairs of runs that lanes unpack: subgroups take the same pair of 32 columns.
const uint PAIR_COLUMNS = (COLUMNS + 31) / 32 * 32, OWN_PAIRS = (PAIR_COLUMNS * 8 + WORKGROUP - 1) / WORKGROUP;

#define MATRIX(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, gl_MatrixUse##use>
#define SUMS MATRIX(float, UNIT, ROWS, Accumulator)
#define WHOLE_SUMS MATRIX(int, UNIT, ROWS, Accumulator)
#define OF_COLUMNS gl_CooperativeMatrixLayoutColumnMajor // the same of each row of A
#define OF_ROWS gl_CooperativeMatrixLayoutRowMajor       // and of each column of B

void keep_half(uint m, uint run, uint h, uvec4 codes, float scale, ivec2 sums) {
    a_chunks[2u * (run * TILE_M + m) + h] = codes;
    if (h != 0u) return;
    a_scales[run * FACT_ROWS + m] = scale;
    if (HAS_MIN) a_sums[run * FACT_ROWS + m] = float(sums.x + sums.y);
    if (HAS_OFFSET) a_offsets[run * FACT_ROWS + m] = -8 * (sums.x + sums.y);
}

// ---- columns ----

// Where the lane's sixteens of a pass from column n0 on begin, whose columns are `line` sixteens long; behind the tile's last column
// that one again.
void place_sixteens(uint first, uint line, uint n0, uint end, out uint own[OWN_SIXTEENS]) {
    [[unroll]] for (uint i = 0u; i < OWN_SIXTEENS; i++) {
        uint number = i * WORKGROUP + lane_number(), column = number / ROUND_SIXTEENS % PART_N;
        own[i] = first + min(n0 + column, end - 1u) * line + number % ROUND_SIXTEENS;
    }
}
// Asks for round `round`. What is behind B's last sixteen is that one.
void fetch_round(uint own[OWN_SIXTEENS], uint last, uint round, uint slot, inout uvec4 raw[ASKED]) {
    [[unroll]] for (uint i = 0u; i < OWN_SIXTEENS; i++) {
        in_second = PAIR != 0u && i * WORKGROUP + lane_number() >= PART_N * ROUND_SIXTEENS;
        raw[slot * OWN_SIXTEENS + i] = B_WORDS(min(own[i] + round * ROUND_SIXTEENS, last));
    }
}
void share_round(uint slot, uvec4 raw[ASKED]) {
    [[unroll]] for (uint i = 0u; i < OWN_SIXTEENS; i++) {
        uint number = i * WORKGROUP + lane_number();
        if (number < SIXTEENS) sixteens[slot * ROUND_ROOM + number + number / ROUND_SIXTEENS] = raw[slot * OWN_SIXTEENS + i];
    }
}
void keep_run(uint line, uint strand, uint slot, octet_run run) {
    uint chunk = (slot * LINES + line) * STRIDE + 2u * strand, fact = (slot * STRANDS + strand) * LINES + line;
    chunks[chunk] = run.x;
    chunks[chunk + 1u] = run.y;
    b_scales[fact] = run.scales.d * float(run.scales.scale.x); // exact
    if (HAS_MIN) b_mins[fact] = run.scales.less * float(run.scales.min.x);
}
void unpack_two(uint column, uint octet, uint pair, uint slot) {
    uint w[MOST_OCTET_WORDS];
    octet_run runs[2];
    const uint first = slot * ROUND_ROOM + column * (ROUND_SIXTEENS + 1u) + octet * OCTET_SIXTEENS;
    READ_OCTET(first, w)
    octet_two(w, pair, runs);
    uint line = column / PART_N * UNITS * UNIT + column % PART_N, strand = octet * 8u + 2u * pair;
    keep_run(line, strand, slot, runs[0]);
    keep_run(line, strand + 1u, slot, runs[1]);
}
void unpack_round(uint slot) {
    [[unroll]] for (uint i = 0u; i < OWN_PAIRS; i++) {
        uint number = i * WORKGROUP + lane_number(), column = number % PAIR_COLUMNS, octet = number / PAIR_COLUMNS % 2u, pair = number / PAIR_COLUMNS / 2u;
        if (column >= COLUMNS) continue;
        if (pair == 0u) unpack_two(column, octet, 0u, slot);
        else if (pair == 1u) unpack_two(column, octet, 1u, slot);
        else if (pair == 2u) unpack_two(column, octet, 2u, slot);
        else if (pair == 3u) unpack_two(column, octet, 3u, slot);
    }
}

// Adds the strands of column `line` of row m.
float add_strands(uint m, uint line) {
    float sum = 0.0;
    for (uint strand = 0u; strand < STRANDS; strand++) {
        precise float next = sum + strands[(strand * ROWS + m) * LINES + line];
        sum = next;
    }
    return sum;
}
void store_pass(uint batch, uint n0, uint end, uint K) {
    for (uint i = lane_number(); i < TILE_M * PART_N / 2u; i += WORKGROUP) { // PART_N is even: two columns of one row
        uint m = i / (PART_N / 2u), line = i % (PART_N / 2u) * 2u, n = n0 + line;
        if (n >= end) continue;
        float scale = NORMED ? row_scales[m] : 1.0;
        vec2 pair = scale * vec2(add_strands(m, line), add_strands(m, line + 1u)), seconds = vec2(0.0);
        if (PAIR != 0u) seconds = scale * vec2(add_strands(m, UNITS * UNIT + line), add_strands(m, UNITS * UNIT + line + 1u));
        store_pairs(pair, seconds, min(end - n, 2u), batch, m, n);
    }
}

void main() {
    const uint lane = lane_number(), batch = batch_of(gl_WorkGroupID.z), N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K], a0 = a_first(batch);
    const uint line = K / HDI_MM_OCTET * OCTET_SIXTEENS, b_sixteen = b_first(batch) / HDI_MM_OCTET * OCTET_SIXTEENS, last = b_sixteen + N * line - 1u;
    const uint first = gl_WorkGroupID.x * TILE_N, end = min(first + TILE_N, N);
    const uint runs = K / 32u, rounds = (runs + STRANDS - 1u) / STRANDS, all = (end - first + PART_N - 1u) / PART_N * rounds;
    SUMS sums[OWN_STRANDS * MATRICES];
    uvec4 raw[ASKED];
    uint own[OWN_SIXTEENS], n0 = first, next_n0 = first, round = 0u, next_round = 2u; // multiplied next, asked for next: there are two at least
    place_sixteens(b_sixteen, line, first, end, own);
    if (!B_GIVEN) wait_for_earlier();
    fetch_round(own, last, 0u, 0u, raw);
    fetch_round(own, last, 1u, 1u, raw);
    if (B_GIVEN) wait_for_earlier();
    if (NORMED && lane < TILE_M) squares_before[lane] = 0.0;
    round_rows(batch, a0, 0u, runs);
    for (uint first_step = 0u; first_step < all + 3u; first_step += 2u)
        [[unroll]] for (uint slot = 0u; slot < 2u; slot++) {
            const uint step = first_step + slot;
            if (step < all) share_round(slot, raw);
            if (next_round == rounds) {
                next_round = 0u;
                next_n0 += PART_N;
                place_sixteens(b_sixteen, line, next_n0, end, own);
            }
            if (step + 2u < all) fetch_round(own, last, next_round++, slot, raw);
            if (step == 1u) leave_scales(K);
            if (step > 0u && step <= all) unpack_round(1u - slot);
            if (step > 2u && step <= all + 2u && round == 0u) store_pass(batch, n0 - PART_N, end, K); // that the step before completed
            if (step > 1u && step < all + 2u) {
                if (round == 0u) [[unroll]] for (uint i = 0u; i < OWN_STRANDS * MATRICES; i++) sums[i] = SUMS(0.0);
                [[unroll]] for (uint i = 0u; i < OWN_STRANDS; i++) {
                    const uint strand = i * SUBGROUPS + gl_SubgroupID, run = round * STRANDS + strand, facts = run * FACT_ROWS;
                    if (run >= runs) continue;
                    MATRIX(int8_t, 32, ROWS, B) rows;
                    SUMS a_scale, a_sum;
                    WHOLE_SUMS offset = WHOLE_SUMS(0);
                    coopMatLoad(rows, a_chunks, 2u * run * TILE_M, 2u, gl_CooperativeMatrixLayoutColumnMajor);
                    coopMatLoad(a_scale, a_scales, facts, 0u, OF_ROWS);
                    if (HAS_MIN) coopMatLoad(a_sum, a_sums, facts, 0u, OF_ROWS);
                    if (HAS_OFFSET) coopMatLoad(offset, a_offsets, facts, 0u, OF_ROWS);
                    [[unroll]] for (uint j = 0u; j < MATRICES; j++) {
                        MATRIX(int8_t, UNIT, 32, A) columns;
                        SUMS scale, less;
                        const uint fact = (slot * STRANDS + strand) * LINES + j * UNIT;
                        coopMatLoad(columns, chunks, (slot * LINES + j * UNIT) * STRIDE + 2u * strand, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                        coopMatLoad(scale, b_scales, fact, 0u, OF_COLUMNS);
                        // Whole numbers below 2^24, in f32 as exact as in s32.
                        precise SUMS value = scale * SUMS(coopMatMulAdd(columns, rows, offset));
                        if (HAS_MIN) {
                            coopMatLoad(less, b_mins, fact, 0u, OF_COLUMNS);
                            precise SUMS taken = less * a_sum;
                            value = value - taken;
                        }
                        precise SUMS result = a_scale * value;
                        precise SUMS next = sums[i * MATRICES + j] + result;
                        sums[i * MATRICES + j] = next;
                    }
                }
                if (++round == rounds) {
                    round = 0u;
                    n0 += PART_N;
                    [[unroll]] for (uint i = 0u; i < OWN_STRANDS; i++)
                        [[unroll]] for (uint j = 0u; j < MATRICES; j++)
                            coopMatStore(sums[i * MATRICES + j], strands, (i * SUBGROUPS + gl_SubgroupID) * ROWS * LINES + j * UNIT, LINES,
                                         gl_CooperativeMatrixLayoutColumnMajor);
                }
            }
            barrier();
        }
}
