// few.glsl: what kernels for few rows of A in 8 bits share (abi.h's exact product): rows are rounded once for a workgroup, DEPTH
// elements along K at a time, and maybe normalised on the way; and octets, eight neighbouring runs of a column, of the types whose
// octets begin at whole sixteens of bytes.
#ifndef FEW_GLSL
#define FEW_GLSL
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "packed_dot.glsl"
#include "merged.glsl"
#include "runs.glsl"

const uint DEPTH = PART_M, RUNS = DEPTH / 32; // of A along K that shared memory holds
const uint ROW_HALVES = 2 * RUNS, ROUNDS = (TILE_M * ROW_HALVES + WORKGROUP - 1) / WORKGROUP; // of A's halves of runs
// Sums of squares, of each subgroup's halves of runs: so many neighbours along K, whatever rows or lanes there are beside them, and
// added in their order. So a row's norm is the same alone and among others.
const bool NORMED = NORM != HDI_MM_NORM_NONE;
shared float squares[NORMED ? TILE_M * ROW_HALVES : 1u]; // a subgroup's is where its first lane's would be
shared float squares_before[NORMED ? TILE_M : 1u]; // of all that shared memory held of A before
shared float row_scales[NORMED ? TILE_M : 1u];

uint lane_number() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }
int dot_codes(uvec4 x, uvec4 y) { return dot_four(x.x, y.x) + dot_four(x.y, y.y) + dot_four(x.z, y.z) + dot_four(x.w, y.w); }

// ---- A ----

// Keeps the codes of half `h` of a run of row m; `sums` are those of its own codes and of the other half's. An includer says where.
void keep_half(uint m, uint run, uint h, uvec4 codes, float scale, ivec2 sums);
// Rounds 16 elements of row m, half `h` of a run of which the neighbouring lane has the other; `first` is the first one in
// memory, `k` along K. Returns their sum of squares.
float round_half(uint first, uint k, uint m, uint run, uint h, bool wanted) {
    vec4 v[4];
    float square = 0.0;
    uvec4 sizes = uvec4(0u); // as bits, so that NaN is the largest
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        v[i] = a_four(first + 4u * i);
        if (NORM != HDI_MM_NORM_NONE) square = dot_fused(v[i], v[i], square);
        if (NORM == HDI_MM_NORM_WEIGHTED) v[i] *= uintBitsToFloat(norm_weight[(k >> 2) + i]);
        sizes = max(sizes, floatBitsToUint(v[i]) & 0x7FFFFFFFu);
    }
    uint most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
    exact_rounding rounding = exact_int8_rounding(max(most, subgroupShuffleXor(most, 1u)));
    uvec4 codes;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        codes[i] = exact_int8_code(v[i].x, rounding.inverse) | (exact_int8_code(v[i].y, rounding.inverse) << 8) |
                   (exact_int8_code(v[i].z, rounding.inverse) << 16) | (exact_int8_code(v[i].w, rounding.inverse) << 24);
    int own = dot_codes(codes, uvec4(0x01010101u)), other = subgroupShuffleXor(own, 1u);
    if (wanted) keep_half(m, run, h, codes, rounding.scale, ivec2(own, other));
    return wanted ? square : 0.0;
}
// Rows in 8 bits as one product leaves them for the next.
const bool A_CODED = (LAYOUT & HDI_MM_A_CODED) != 0u, C_CODED = (LAYOUT & HDI_MM_C_CODED) != 0u;
uint fact_of(uint columns, uint at) { return row_facts(push[HDI_MM_PUSH_M] * (columns / HDI_MM_RUN), at); }
// Reads half `h` of run `run` of row m, of which shared memory holds those from k0 on.
void read_half(uint k0, uint m, uint run, uint h, bool wanted) {
    const uint K = push[HDI_MM_PUSH_K], at = (m * K + k0) / HDI_MM_RUN + run, fact = fact_of(K, at);
    uvec4 codes = wide_a[2u * at + h];
    uvec2 facts = uvec2(a[fact], a[fact + 1u]);
    if (wanted) keep_half(m, run, h, codes, uintBitsToFloat(facts.x), ivec2(low_half(facts.y), high_half(facts.y)));
}
// All rows of A from k0 on, `runs` of them along K; a subgroup's halves are one row's. All lanes take all rounds: pairs of them talk
// to each other. Some rounds are written out, so that none of them waits for what the one before has read.
void round_rows(uint batch, uint a0, uint k0, uint runs) {
    const uint TOGETHER = 4u;
    for (uint first = 0u; first < ROUNDS; first += TOGETHER)
        [[unroll]] for (uint i = 0u; i < TOGETHER; i++) {
            if (first + i >= ROUNDS) continue;
            uint number = lane_number() + (first + i) * WORKGROUP, m = min(number / ROW_HALVES, TILE_M - 1u), half_run = number - m * ROW_HALVES;
            uint run = min(half_run >> 1, runs - 1u), h = half_run & 1u, k = k0 + 32u * run + 16u * h;
            bool wanted = half_run < 2u * runs;
            if (A_CODED) {
                read_half(k0, m, run, h, wanted);
                continue;
            }
            float square = round_half(a0 + few_row(batch, m) + k, k, m, run, h, wanted);
            if (NORMED) square = subgroupAdd(square);
            if (NORMED && subgroupElect() && wanted) squares[m * ROW_HALVES + half_run] = square;
        }
}
// The sum of row m's squares of all before, and of `elements` along K that shared memory holds.
float square_sum(uint m, uint elements) {
    float sum = squares_before[m];
    for (uint i = 0u; i < elements / 16u; i += gl_SubgroupSize) sum += squares[m * ROW_HALVES + i];
    return sum;
}
// Leaves what the rows' sums are scaled by, while B's weights are on their way. `elements` as above.
void leave_scales(uint elements) {
    if (NORMED && lane_number() < TILE_M) row_scales[lane_number()] = norm_scale(square_sum(lane_number(), elements));
}

// ---- C in 8 bits ----

// Stores two neighbours of a row of C, which are finished. Sixteen neighbouring lanes have a run.
void store_coded(uvec2 bits, uint m, uint n) {
    const uint N = push[HDI_MM_PUSH_N], at = (m * N + n) / HDI_MM_RUN, fact = fact_of(N, at);
    uint most = max(bits.x & 0x7FFFFFFFu, bits.y & 0x7FFFFFFFu);
    [[unroll]] for (uint apart = 1u; apart < 16u; apart <<= 1) most = max(most, subgroupShuffleXor(most, apart));
    exact_rounding rounding = exact_int8_rounding(most);
    uint codes = exact_int8_code(uintBitsToFloat(bits.x), rounding.inverse) | (exact_int8_code(uintBitsToFloat(bits.y), rounding.inverse) << 8);
    int own = dot_four(codes, 0x01010101u);
    [[unroll]] for (uint apart = 1u; apart < 8u; apart <<= 1) own += subgroupShuffleXor(own, apart);
    int other = subgroupShuffleXor(own, 8u); // of the other half
    codes |= subgroupShuffleXor(codes, 1u) << 16;
    if (n % 4u == 0u) c[(m * N + n) / 4u] = codes;
    if (n % HDI_MM_RUN != 0u) return;
    c[fact] = floatBitsToUint(rounding.scale);
    c[fact + 1u] = both_halves(ivec2(own, other));
}

// ---- octets of runs ----

// Sixteens of memory of an octet of q4_0, q8_0 or q4_k.
const uint OCTET_SIXTEENS = B_TYPE == HDI_TYPE_Q8_0 ? 17 : 9;
#define MOST_OCTET_WORDS 68
// The words of the octet that begins at sixteen `first` of an includer's `sixteens`.
#define READ_OCTET(first, words) \
    [[unroll]] for (uint i = 0u; i < OCTET_SIXTEENS; i++) { \
        uvec4 four = sixteens[(first) + i]; \
        [[unroll]] for (uint j = 0u; j < 4u; j++) words[4u * i + j] = four[j]; \
    }
float half_in(uint word, uint at) { // a device's own conversion may lose subnormals
    uint bits = (word >> (8u * (at & 2u))) & 0xFFFFu;
    return EXACT != 0u ? uintBitsToFloat(f16_to_f32_bits(bits)) : unpackHalf2x16(bits).x;
}
// Halves of a run's codes as they lie, those of q4_0 not less their 8, and what scales them.
struct octet_run {
    uvec4 x, y;
    run_scales scales;
};
octet_run octet_block(uvec4 codes[2], uint d) {
    run_scales scales = run_scales(ivec2(1), ivec2(1), half_in(d, 0u), 0.0);
    if (B_TYPE == HDI_TYPE_Q8_0) return octet_run(codes[0], codes[1], scales);
    return octet_run(codes[0] & 0x0F0F0F0Fu, (codes[0] >> 4) & 0x0F0F0F0Fu, scales);
}
// Runs 2 `pair` and the next one of the octet whose words `w` are.
void octet_two(uint w[MOST_OCTET_WORDS], uint pair, out octet_run runs[2]) {
    uvec4 codes[2];
    if (B_TYPE == HDI_TYPE_Q4_K) { // halves of bytes
        for (uint h = 0u; h < 2u; h++)
            for (uint i = 0u; i < 4u; i++) codes[h][i] = w[4u + 8u * pair + 4u * h + i];
        float d = half_in(w[0], 0u), less = half_in(w[0], 2u);
        for (uint run = 0u; run < 2u; run++) {
            uint both = q4_k_scale_min(2u * pair + run, w[1], w[2], w[3]);
            run_scales scales = run_scales(ivec2(both & 63u), ivec2(both >> 8), d, less);
            runs[run] = octet_run((codes[0] >> (4u * run)) & 0x0F0F0F0Fu, (codes[1] >> (4u * run)) & 0x0F0F0F0Fu, scales);
        }
        return;
    }
    const uint first = OCTET_SIXTEENS * pair, middle = first + OCTET_SIXTEENS / 2u; // two blocks are as many words as eight are sixteens
    for (uint h = 0u; h < OCTET_SIXTEENS / 8u; h++)
        for (uint i = 0u; i < 4u; i++) codes[h][i] = (w[first + 4u * h + i] >> 16) | (w[first + 4u * h + i + 1u] << 16);
    runs[0] = octet_block(codes, w[first]);
    for (uint h = 0u; h < OCTET_SIXTEENS / 8u; h++)
        for (uint i = 0u; i < 4u; i++) codes[h][i] = w[middle + 1u + 4u * h + i];
    runs[1] = octet_block(codes, w[middle] >> 16);
}
#endif
