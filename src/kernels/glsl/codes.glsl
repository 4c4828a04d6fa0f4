// codes.glsl: matmul_codes and matmul_codes_dot, which differ in how 4 x 8 bits are multiplied. C = chain(A x B) for rows that
// `codes` has rounded and quantised weights whose columns lie along K: the exact product in 8 bits (abi.h), a tile of C for
// each workgroup, PART_M x PART_N of it for each invocation. K is walked strand by strand, a run at a time, through shared
// memory; the next one is read while this one is used.
#include "matmul.glsl"
#include "runs.glsl"

layout(std430, binding = 0) readonly buffer WideCodes { uvec4 wide_codes[]; };
layout(constant_id = HDI_MM_PARTS) const uint ROWS_IN_ALL = 1; // of A, those of all batches

const uint HALVES = 2u * (TILE_M + TILE_N), READS = (HALVES + WORKGROUP - 1) / WORKGROUP; // of runs, 16 codes each
const uint LANES_N = TILE_N / PART_N, LANES_M = TILE_M / PART_M, OWN = PART_M * PART_N;
const bool BY_HALVES = HDI_SCALED_BY_HALVES(B_TYPE);
shared uvec4 codes[HALVES];       // of the tile's rows: first halves, second halves; then likewise of its columns
shared uvec2 a_facts[TILE_M];     // scale; sums of the halves' codes
shared uvec4 b_facts[TILE_N];     // d, less, both scales, both mins

int dot_codes(uvec4 x, uvec4 y) { return dot_four(x.x, y.x) + dot_four(x.y, y.y) + dot_four(x.z, y.z) + dot_four(x.w, y.w); }

// Where the line of half `place` of those in shared memory is: which row of the codes, or a column's first element; NOWHERE
// behind the last one.
const uint NOWHERE = 0xFFFFFFFFu;
uint line_of(uint place, uint m0, uint n0, uint M, uint batch, uint b0) {
    uint m = m0 + place % TILE_M, n = n0 + (place - 2u * TILE_M) % TILE_N;
    if (place < 2u * TILE_M) return m < M ? (GROUPED ? a_row(batch, m) : batch * M + m) : NOWHERE;
    return place < HALVES && n < push[HDI_MM_PUSH_N] ? b0 + n * push[HDI_MM_PUSH_B_COL] : NOWHERE;
}
// The half, and the facts of its run, which go with the first half.
void read_half(uint place, uint line, uint run, uint runs, out uvec4 half_of, out uvec4 facts) {
    half_of = facts = uvec4(0u);
    if (line == NOWHERE) return;
    if (place < 2u * TILE_M) {
        uint h = place / TILE_M, at = line * runs + run, first = row_facts(ROWS_IN_ALL * runs, at);
        half_of = wide_codes[at * 2u + h];
        if (h == 0u) facts.xy = uvec2(a[first], a[first + 1u]);
        return;
    }
    uint h = (place - 2u * TILE_M) / TILE_N, block = byte_of_run(B_TYPE, line, run), part = part_of_run(B_TYPE, run);
    half_of = half_codes(B_TYPE, block, part, h);
    if (h != 0u) return;
    run_scales s = scales_of_run(B_TYPE, block, part);
    facts = uvec4(floatBitsToUint(s.d), floatBitsToUint(s.less), both_halves(s.scale), both_halves(s.min));
}
void keep_half(uint place, uvec4 half_of, uvec4 facts) {
    if (place >= HALVES) return;
    codes[place] = half_of;
    if (place < TILE_M) a_facts[place] = facts.xy;
    else if (place >= 2u * TILE_M && place < 2u * TILE_M + TILE_N) b_facts[place - 2u * TILE_M] = facts;
}

// What a run of a row and one of a column come to.
float product_of_run(uvec4 x_low, uvec4 x_high, uvec2 x_facts, uvec4 y_low, uvec4 y_high, uvec4 y_facts) {
    int low = dot_codes(x_low, y_low), high = dot_codes(x_high, y_high), mins = 0;
    int weights = BY_HALVES ? low_half(y_facts.z) * low + high_half(y_facts.z) * high : low_half(y_facts.z) * (low + high);
    if (HDI_HAS_MIN(B_TYPE)) mins = low_half(y_facts.w) * low_half(x_facts.y) + high_half(y_facts.w) * high_half(x_facts.y);
    return run_value(B_TYPE, uintBitsToFloat(x_facts.x), uintBitsToFloat(y_facts.x), uintBitsToFloat(y_facts.y), weights, mins);
}
void add_run(uint lane_m, uint lane_n, inout float strand[OWN]) {
    uvec4 low[PART_N], high[PART_N], facts[PART_N];
    [[unroll]] for (uint j = 0u; j < PART_N; j++) {
        uint n = j * LANES_N + lane_n;
        low[j] = codes[2u * TILE_M + n];
        high[j] = codes[2u * TILE_M + TILE_N + n];
        facts[j] = b_facts[n];
    }
    [[unroll]] for (uint i = 0u; i < PART_M; i++) {
        uint m = i * LANES_M + lane_m;
        uvec4 x_low = codes[m], x_high = codes[TILE_M + m];
        uvec2 x_facts = a_facts[m];
        [[unroll]] for (uint j = 0u; j < PART_N; j++) {
            float value = product_of_run(x_low, x_high, x_facts, low[j], high[j], facts[j]);
            precise float next = strand[i * PART_N + j] + value;
            strand[i * PART_N + j] = next;
        }
    }
}

void main() {
    const uint m0 = gl_WorkGroupID.y * TILE_M, n0 = gl_WorkGroupID.x * TILE_N, batch = batch_of(gl_WorkGroupID.z);
    const uint M = rows_of(batch), N = push[HDI_MM_PUSH_N], runs = push[HDI_MM_PUSH_K] / HDI_MM_RUN;
    if (GROUPED && m0 >= M) return;
    const uint b0 = b_first(batch), lane_m = gl_LocalInvocationIndex / LANES_N, lane_n = gl_LocalInvocationIndex % LANES_N;
    uint lines[READS];
    uvec4 next[READS], next_facts[READS];
    [[unroll]] for (uint i = 0u; i < READS; i++) lines[i] = line_of(gl_LocalInvocationIndex + i * WORKGROUP, m0, n0, M, batch, b0);
    float strand[OWN], total[OWN];
    [[unroll]] for (uint i = 0u; i < OWN; i++) strand[i] = total[i] = 0.0;

    uint ahead = 0u, run = 0u; // the run that is read, and the one that is used
    for (uint done = 0u; done <= runs; done++) {
        if (done > 0u) { // what was read last time moves to shared memory
            barrier();
            [[unroll]] for (uint i = 0u; i < READS; i++) keep_half(gl_LocalInvocationIndex + i * WORKGROUP, next[i], next_facts[i]);
            barrier();
            run = ahead;
            ahead = run + HDI_MM_STRANDS < runs ? run + HDI_MM_STRANDS : run % HDI_MM_STRANDS + 1u;
        }
        if (done < runs)
            [[unroll]] for (uint i = 0u; i < READS; i++)
                read_half(gl_LocalInvocationIndex + i * WORKGROUP, lines[i], ahead, runs, next[i], next_facts[i]);
        if (done == 0u) continue;
        add_run(lane_m, lane_n, strand);
        if (run + HDI_MM_STRANDS >= runs) // a strand is complete
            [[unroll]] for (uint i = 0u; i < OWN; i++) {
                precise float sum = total[i] + strand[i];
                total[i] = sum;
                strand[i] = 0.0;
            }
    }
    [[unroll]] for (uint i = 0u; i < PART_M; i++)
        [[unroll]] for (uint j = 0u; j < PART_N; j++) {
            uint m = m0 + i * LANES_M + lane_m, n = n0 + j * LANES_N + lane_n;
            if (m < M && n < N) store_sums(vec2(total[i * PART_N + j], 0.0), 1u, batch, m, n);
        }
}
