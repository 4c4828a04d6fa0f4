#version 450
// matvec_dot: C = chain(A x B) for at most 8 rows of A and quantised weights whose columns lie along K: abi.h's exact product
// in 8 bits, in both modes. A is rounded once for a workgroup, into shared memory. A lane is a strand of PART_N columns:
// it takes every 16th run of 32 along K by integer dot products of 4 x 8 bits and keeps their sums; neighbouring lanes read
// neighbours in memory. It asks for AHEAD runs before A is rounded, and for one more whenever one is used.
// One row of q4_0, q8_0 or q4_k on devices that begin dispatches early: columns go whole through shared memory, PART_N at a time, asked
// for while those before are worked on, or while the dispatch waits. Their runs are DEALT out, an octet to a lane, and what each
// comes to is left for the strands.
// In fast mode A may be normalised on the way; B may be a pair. Needs whole subgroups with shuffles and integer dot
// products; all operands wide, and B's bytes a multiple of 16.
#extension GL_GOOGLE_include_directive : require
#include "few.glsl"

layout(constant_id = HDI_MM_AHEAD) const uint AHEAD = 1;
const uint STRANDS = HDI_MM_STRANDS, SLOTS = WORKGROUP / STRANDS; // columns side by side
const uint COLUMNS = PRODUCTS * PART_N, SUMS = TILE_M * COLUMNS, ASKED = AHEAD * COLUMNS;
const bool AT_ONCE = AHEAD * STRANDS >= RUNS;
const bool DEALT = (LAYOUT & HDI_MM_WHOLE) != 0u; // DEPTH is all of K, and a column begins where the one before ends
// Of dealt runs: octets of a column, of a product in a pass; sixteens of memory of an octet, of a product, of a lane; sums of a pass.
const uint OCTETS = RUNS / 8, PASS_OCTETS = PART_N * OCTETS;
const uint PASS_SIXTEENS = OCTET_SIXTEENS * PASS_OCTETS, OWN_SIXTEENS = (PASS_SIXTEENS + WORKGROUP - 1) / WORKGROUP;
const uint ASKED_SIXTEENS = PRODUCTS * OWN_SIXTEENS, PASS_SUMS = PRODUCTS * PART_N * STRANDS, OWN_SUMS = (PASS_SUMS + WORKGROUP - 1) / WORKGROUP;
const uint LINE = STRANDS + 1, OCTET_LINE = 8 + 1; // one more: lanes that add strands spread over the memory's banks
shared uvec4 a_codes[2 * TILE_M * RUNS]; // first halves of the runs, then second ones
shared uvec2 a_facts[TILE_M * RUNS];     // a run's scale, and the sum of its codes: of all, or of each half in 16 bits
shared float strands[DEALT ? PRODUCTS * TILE_N * LINE : SUMS * SLOTS * LINE];
shared uvec4 sixteens[DEALT ? PRODUCTS * PASS_SIXTEENS : 1u];
shared float dealt[DEALT ? PRODUCTS * PASS_OCTETS * OCTET_LINE : 1u]; // what each run comes to
// Types of which a lane reads halves of two runs, which it shares with another lane; of the others 32 codes lie together.
const bool BY_PAIRS = B_TYPE == HDI_TYPE_Q4_K || B_TYPE == HDI_TYPE_Q6_K || B_TYPE == HDI_TYPE_TQ2_0;
const bool BY_WORDS = !BY_PAIRS && B_TYPE != HDI_TYPE_Q4_0 && B_TYPE != HDI_TYPE_Q8_0; // of no special care
const uint PARTNER = B_TYPE == HDI_TYPE_Q6_K ? 2 : 1; // runs of a pair are so far apart
const bool HALF_SUMS = B_TYPE == HDI_TYPE_Q6_K || B_TYPE == HDI_TYPE_Q2_K;

// Where a run of A is: of dealt ones every eighth lies side by side, so that lanes read neighbours.
uint a_slot(uint run) { return DEALT ? run % 8u * OCTETS + run / 8u : run; }
void keep_half(uint m, uint run, uint h, uvec4 codes, float scale, ivec2 sums) {
    uint at = m * RUNS + a_slot(run), both = HALF_SUMS ? both_halves(sums) : uint(sums.x + sums.y);
    a_codes[h * TILE_M * RUNS + at] = codes;
    if (h == 0u) a_facts[at] = uvec2(floatBitsToUint(scale), both);
}
int sum_of_run(uint sums) { return HALF_SUMS ? low_half(sums) + high_half(sums) : int(sums); }

// ---- B ----

const uint RAW = 5; // sixteens of memory that a run's loads give at most

// The part of its block that a lane reads for a run: with its partner's part, halves of both their runs. Equal ones for all runs of a
// lane, which are STRANDS apart.
uint part_read(uint run) {
    uint part = run & 7u;
    return B_TYPE == HDI_TYPE_Q6_K ? (part & 4u) | ((part & 1u) << 1) | ((part >> 1) & 1u) : part;
}
// Bytes of the block at which its codes begin.
uint part_codes(uint part) {
    if (B_TYPE == HDI_TYPE_Q4_K) return 16u + 16u * part;
    if (B_TYPE == HDI_TYPE_Q6_K) return 16u * part;
    if (B_TYPE == HDI_TYPE_TQ2_0) return 32u * (part >> 2) + 16u * (part & 1u);
    return 0u;
}
// Reads what memory holds of a part of the block at byte `block`: all its loads and nothing else.
void fetch(uint block, uint part, out uvec4 raw[RAW]) {
    uint at = block + part_codes(part), from = at >> 4;
    if (BY_WORDS) return;
    raw[0] = B_WORDS(from);
    if (B_TYPE == HDI_TYPE_Q4_K) raw[1] = B_WORDS(block >> 4);
    else raw[1] = B_WORDS(from + 1u); // which begins in the block as well: codes have something behind them
    if (B_TYPE == HDI_TYPE_Q8_0) raw[2] = B_WORDS(from + 2u);
    if (B_TYPE == HDI_TYPE_TQ2_0) raw[2].x = B_WORD((block + 64u) >> 2);
    if (B_TYPE == HDI_TYPE_Q6_K) {
        uint more = block + 128u + 32u * (part >> 2) + 16u * (part & 1u), scale = block + 192u + 8u * (part >> 2) + (part & 3u);
        raw[2] = B_WORDS(more >> 4);
        raw[3] = B_WORDS((more >> 4) + 1u);
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
// A block of 2 bytes, its d, and up to 32 of codes, out of the sixteens in the first of which it begins at byte `at`.
void split_block(uvec4 raw[RAW], uint at, out float d, out uvec4 low, out uvec4 high) {
    uint pairs[10], words[9];
    [[unroll]] for (uint i = 0u; i < 10u; i++) pairs[i] = (at & 8u) != 0u ? raw[(i + 2u) / 4u][(i + 2u) % 4u] : raw[i / 4u][i % 4u];
    [[unroll]] for (uint i = 0u; i < 9u; i++) words[i] = (at & 4u) != 0u ? pairs[i + 1u] : pairs[i];
    d = half_in(words[0], at);
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        low[i] = (at & 2u) != 0u ? words[i + 1u] : (words[i] >> 16) | (words[i + 1u] << 16);
        high[i] = (at & 2u) != 0u ? words[i + 5u] : (words[i + 4u] >> 16) | (words[i + 5u] << 16);
    }
}
int signed_code(uint word, uint at) { return int(quant_byte(word, at) << 24) >> 24; }

// What a lane has read of a run: codes that meet the run's halves, or equal halves of two runs; and what scales them.
struct part_weights {
    uvec4 x, y;
    run_scales scales;
};
part_weights unpack(uint block, uint part, uvec4 raw[RAW]) {
    part_weights w;
    if (BY_WORDS) {
        w.x = half_codes(B_TYPE, block, part_of_run(B_TYPE, part), 0u);
        w.y = half_codes(B_TYPE, block, part_of_run(B_TYPE, part), 1u);
        w.scales = scales_of_run(B_TYPE, block, part_of_run(B_TYPE, part));
        return w;
    }
    w.scales = run_scales(ivec2(1), ivec2(1), 0.0, 0.0);
    uvec4 codes = raw[0];
    if (B_TYPE == HDI_TYPE_Q4_0 || B_TYPE == HDI_TYPE_Q8_0) {
        split_block(raw, block, w.scales.d, w.x, w.y);
        codes = w.x;
    } else if (B_TYPE != HDI_TYPE_Q4_K) codes = sixteen(raw[0], raw[1], block); // all parts of a block lie alike in sixteens
    if (B_TYPE == HDI_TYPE_Q4_0 || B_TYPE == HDI_TYPE_Q4_K) {
        w.x = codes & 0x0F0F0F0Fu;
        w.y = (codes >> 4) & 0x0F0F0F0Fu;
    }
    if (B_TYPE == HDI_TYPE_Q4_K) {
        uint pair = q4_k_scale_min(part, raw[1].y, raw[1].z, raw[1].w);
        w.scales = run_scales(ivec2(pair & 63u), ivec2(pair >> 8), half_in(raw[1].x, 0u), half_in(raw[1].x, 2u));
    } else if (B_TYPE == HDI_TYPE_Q6_K) {
        uint scale_at = block + 192u + 8u * (part >> 2) + (part & 3u);
        uvec4 more = sixteen(raw[2], raw[3], block) >> (part & 2u);
        w.x = (codes & 0x0F0F0F0Fu) | ((more & 0x03030303u) << 4);
        w.y = ((codes >> 4) & 0x0F0F0F0Fu) | (more & 0x30303030u);
        w.scales.d = half_in(raw[4].z, block);
        w.scales.scale = ivec2(signed_code(raw[4].x, scale_at), signed_code(raw[4].y, scale_at));
    } else if (B_TYPE == HDI_TYPE_TQ2_0) {
        uvec4 parts = codes >> (2u * (part & 2u));
        w.x = parts & 0x03030303u;
        w.y = (parts >> 2) & 0x03030303u;
        w.scales.d = half_in(raw[2].x, block);
    }
    return w;
}

// ---- their product ----

// The whole sums of the lane's run: codes of B times those of row m of A, which begins at `row` in shared memory; and the
// latter alone, for types with a min.
ivec2 meet(part_weights w, uint row, uint run, uint sums) {
    const uint second = TILE_M * RUNS;
    if (!BY_PAIRS) {
        ivec2 dots = ivec2(dot_codes(w.x, a_codes[row + run]), dot_codes(w.y, a_codes[second + row + run]));
        if (B_TYPE == HDI_TYPE_Q4_0) return ivec2(dots.x + dots.y - 8 * int(sums), 0);
        if (HDI_SCALED_BY_HALVES(B_TYPE)) {
            int mins = B_TYPE == HDI_TYPE_Q2_K ? w.scales.min.x * low_half(sums) + w.scales.min.y * high_half(sums) : 0;
            return ivec2(w.scales.scale.x * dots.x + w.scales.scale.y * dots.y, mins);
        }
        return ivec2(w.scales.scale.x * (dots.x + dots.y), w.scales.min.x * int(sums));
    }
    uint h = part_read(run) & 1u, own = row + run, other = row + (run ^ PARTNER);
    uint low = h == 0u ? own : other, high = h == 0u ? other : own, half_first = h * second;
    ivec2 dots = ivec2(dot_codes(w.x, a_codes[half_first + low]), dot_codes(w.y, a_codes[half_first + high]));
    if (B_TYPE == HDI_TYPE_Q6_K) {
        uint low_sums = a_facts[low].y, high_sums = a_facts[high].y;
        dots -= 32 * (h == 0u ? ivec2(low_half(low_sums), low_half(high_sums)) : ivec2(high_half(low_sums), high_half(high_sums)));
        dots *= w.scales.scale;
    }
    int all = (h == 0u ? dots.x : dots.y) + subgroupShuffleXor(h == 0u ? dots.y : dots.x, PARTNER);
    if (B_TYPE == HDI_TYPE_Q4_K) return ivec2(w.scales.scale.x * all, w.scales.min.x * int(sums));
    return ivec2(B_TYPE == HDI_TYPE_TQ2_0 ? all - int(sums) : all, 0);
}

// The first element of column `j` of the lane's, of both Bs; the last tile computes the last column again.
uint column_first(uint b0, uint j) {
    uint n = gl_WorkGroupID.x * TILE_N + j % PART_N * SLOTS + lane_number() / STRANDS;
    return b0 + min(n, push[HDI_MM_PUSH_N] - 1u) * push[HDI_MM_PUSH_B_COL];
}
// From a lane's run to its next one, which is the same part of another block.
#define ROUND_BYTES (STRANDS * 32u / block_elements(B_TYPE) * block_bytes(B_TYPE))

// The block of the lane's run of round `round`, or of the last one that it has, where that of its first one is `own`.
uint block_of(uint own, uint round, uint last) { return own + ROUND_BYTES * min(round, last); }

// Asks for the lane's run of all its columns of round `round` as the i-th of AHEAD.
#define FETCH_ROUND(i, round) \
    [[unroll]] for (uint j = 0u; j < COLUMNS; j++) { \
        in_second = j >= PART_N; \
        fetch(block_of(own[j], round, last), part_read(strand), raw[(i) * COLUMNS + j]); \
    }
// `own`: those blocks of all columns.
void add_round(uint own[COLUMNS], uint strand, uint round, uint last, uint runs, uint i, uvec4 raw[ASKED][RAW], inout float sums[SUMS]) {
    uint run = min(round * STRANDS + strand, runs - 1u);
    bool wanted = round * STRANDS + lane_number() % STRANDS < runs;
    [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
        in_second = j >= PART_N;
        bool moves = BY_WORDS || ROUND_BYTES % 16u != 0u; // else it begins at the same byte of a sixteen in all rounds
        part_weights w = unpack(moves ? block_of(own[j], round, last) : own[j], part_read(strand), raw[i * COLUMNS + j]);
        [[unroll]] for (uint m = 0u; m < TILE_M; m++) {
            uvec2 facts = a_facts[m * RUNS + run];
            ivec2 whole = meet(w, m * RUNS, run, facts.y);
            float value = run_value(B_TYPE, uintBitsToFloat(facts.x), w.scales.d, w.scales.less, whole.x, whole.y);
            precise float next = sums[m * COLUMNS + j] + value;
            sums[m * COLUMNS + j] = wanted ? next : sums[m * COLUMNS + j];
        }
    }
}

// The product by strands. Leaves their sums.
void sum_by_strands(uint batch, uint a0, uint b0, uint K) {
    const uint lane = lane_number();
    float sums[SUMS];
    [[unroll]] for (uint i = 0u; i < SUMS; i++) sums[i] = 0.0;
    if (!GROUPED) wait_for_earlier();
    for (uint k0 = 0u; k0 < K; k0 += DEPTH) {
        const uint runs = min(DEPTH, K - k0) / 32u, strand = min(lane % STRANDS, runs - 1u), last = (runs - 1u - strand) / STRANDS;
        uint own[COLUMNS];
        uvec4 raw[ASKED][RAW];
        [[unroll]] for (uint j = 0u; j < COLUMNS; j++) own[j] = byte_of_run(B_TYPE, column_first(b0, j), k0 / 32u + strand);
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) FETCH_ROUND(i, i)
        if (k0 > 0u) {
            if (NORMED && lane < TILE_M) squares_before[lane] = square_sum(lane, DEPTH);
            barrier();
        }
        round_rows(batch, a0, k0, runs);
        barrier();
        if (k0 + DEPTH >= K) leave_scales(32u * runs);
        for (uint round = 0u; round * STRANDS < runs; round += AHEAD)
            [[unroll]] for (uint i = 0u; i < AHEAD; i++) { // without branches: the runs behind the last are that one again
                add_round(own, strand, round + i, last, runs, i, raw, sums);
                if (!AT_ONCE) FETCH_ROUND(i, round + AHEAD + i)
            }
    }
    [[unroll]] for (uint i = 0u; i < SUMS; i++) strands[(i * SLOTS + lane / STRANDS) * LINE + lane % STRANDS] = sums[i];
}

// ---- dealt out ----

// Asks for the sixteens of pass `pass`; `first` is the tile's first one, `last` its last one.
void fetch_dealt(uint first, uint last, uint pass, out uvec4 raw[ASKED_SIXTEENS]) {
    [[unroll]] for (uint i = 0u; i < OWN_SIXTEENS; i++) {
        uint at = min(first + pass * PASS_SIXTEENS + i * WORKGROUP + lane_number(), last);
        [[unroll]] for (uint product = 0u; product < PRODUCTS; product++) {
            in_second = product == 1u;
            raw[product * OWN_SIXTEENS + i] = B_WORDS(at);
        }
    }
}
void share_dealt(uvec4 raw[ASKED_SIXTEENS]) {
    [[unroll]] for (uint i = 0u; i < OWN_SIXTEENS; i++) {
        uint at = i * WORKGROUP + lane_number();
        [[unroll]] for (uint product = 0u; product < PRODUCTS; product++)
            if (at < PASS_SIXTEENS) sixteens[product * PASS_SIXTEENS + at] = raw[product * OWN_SIXTEENS + i];
    }
}
// What a run comes to; `at` is where A's run lies.
float dealt_value(octet_run run, uint at) {
    uvec2 facts = a_facts[at];
    int dots = dot_codes(run.x, a_codes[at]) + dot_codes(run.y, a_codes[RUNS + at]), mins = run.scales.min.x * int(facts.y);
    int whole = B_TYPE == HDI_TYPE_Q4_0 ? dots - 8 * int(facts.y) : run.scales.scale.x * dots;
    return run_value(B_TYPE, uintBitsToFloat(facts.x), run.scales.d, run.scales.less, whole, mins);
}
void leave_two(uint w[MOST_OCTET_WORDS], uint pair, uint octet) {
    const uint at = octet + 2u * pair * OCTETS, to = OCTET_LINE * lane_number() + 2u * pair;
    octet_run runs[2];
    octet_two(w, pair, runs);
    dealt[to] = dealt_value(runs[0], at);
    dealt[to + 1u] = dealt_value(runs[1], at + OCTETS);
}
void leave_dealt() {
    const uint lane = lane_number(), octet = lane % OCTETS;
    if (lane >= PRODUCTS * PASS_OCTETS) return;
    uint w[MOST_OCTET_WORDS];
    READ_OCTET(OCTET_SIXTEENS * lane, w)
    leave_two(w, 0u, octet);
    leave_two(w, 1u, octet);
    leave_two(w, 2u, octet);
    leave_two(w, 3u, octet);
}
// The strands' sums of the columns of pass `pass`.
void sum_pass(uint pass) {
    [[unroll]] for (uint i = 0u; i < OWN_SUMS; i++) {
        uint number = i * WORKGROUP + lane_number(), column = number / STRANDS, strand = number % STRANDS;
        if (number >= PASS_SUMS) continue;
        uint at = (column * OCTETS + strand / 8u) * OCTET_LINE + strand % 8u;
        float sum = 0.0;
        for (uint run = strand; run < RUNS; run += STRANDS) {
            precise float next = sum + dealt[at];
            sum = next;
            at += STRANDS / 8u * OCTET_LINE;
        }
        uint n = pass * PART_N + column % PART_N;
        if (n < TILE_N) strands[(column / PART_N * TILE_N + n) * LINE + strand] = sum;
    }
}
// Leaves the strands' sums. `columns` of the tile are there; `first` is its first block.
void sum_dealt(uint batch, uint a0, uint K, uint first, uint columns) {
    const uint first_sixteen = first / 8u * OCTET_SIXTEENS, last_sixteen = first_sixteen + columns * OCTETS * OCTET_SIXTEENS - 1u;
    uvec4 raw[ASKED_SIXTEENS];
    if (!B_GIVEN && !GROUPED) wait_for_earlier();
    fetch_dealt(first_sixteen, last_sixteen, 0u, raw);
    if (B_GIVEN) wait_for_earlier();
    round_rows(batch, a0, 0u, RUNS);
    for (uint pass = 0u; pass * PART_N < TILE_N; pass++) {
        share_dealt(raw);
        if ((pass + 1u) * PART_N < TILE_N) fetch_dealt(first_sixteen, last_sixteen, pass + 1u, raw);
        barrier();
        if (pass == 0u) leave_scales(K);
        leave_dealt();
        barrier();
        sum_pass(pass);
    }
}

// A sum of row m: its strands in order, and what the norm scales it by.
float column_sum(uint m, uint column) {
    const uint first = (m * PRODUCTS * TILE_N + column) * LINE;
    precise float total = 0.0;
    [[unroll]] for (uint strand = 0u; strand < STRANDS; strand++) total = total + strands[first + strand];
    return NORMED ? row_scales[m] * total : total;
}

void main() {
    const uint lane = lane_number(), batch = batch_of(gl_WorkGroupID.z), N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K];
    if (GROUPED) wait_for_earlier(); // it says which B is read
    if (GROUPED && rows_of(batch) == 0u) return;
    const uint n0 = gl_WorkGroupID.x * TILE_N, a0 = a_first(batch), b0 = b_first(batch);
    if (NORMED && lane < TILE_M) squares_before[lane] = 0.0;
    if (DEALT) sum_dealt(batch, a0, K, b0 / 32u + n0 * RUNS, min(TILE_N, N - n0));
    else sum_by_strands(batch, a0, b0, K);
    barrier();
    for (uint i = 2u * lane; i < TILE_M * TILE_N; i += 2u * WORKGROUP) { // TILE_N is even: two columns of one row
        uint m = i / TILE_N, column = i % TILE_N, n = n0 + column;
        vec2 pair = vec2(column_sum(m, column), column_sum(m, column + 1u)), seconds = vec2(0.0);
        if (PAIR != 0u) seconds = vec2(column_sum(m, TILE_N + column), column_sum(m, TILE_N + column + 1u));
        if (n >= N || (GROUPED && m >= rows_of(batch))) continue;
        const uint count = min(N - n, 2u);
        const uvec2 bits = finished_pairs(pair, seconds, count, batch, m, n);
        if (C_CODED) store_coded(bits, m, n);
        else store_finished(bits, count, batch, m, n);
    }
}
