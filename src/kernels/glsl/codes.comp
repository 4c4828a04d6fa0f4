#version 450
// codes: lines along K in 8 bits (abi.h), ahead of matmul_codes and matmul_codes_matrix: of A rounded, of quantised weights
// unpacked; for each run of 32 its codes and its facts, an invocation each, of weights one for each half. Neighbours write what
// lies side by side. Exact arithmetic and nothing that a device might lack.
#extension GL_GOOGLE_include_directive : require
#define BOOKS_BINDING 3
#include "matmul.glsl"
#include "strands.glsl"

layout(std430, binding = 0) readonly buffer WideA { uvec4 wide_a[]; };
layout(std430, binding = 2) writeonly buffer WideC { uvec4 wide_c[]; };
layout(constant_id = HDI_CODES_FORM) const uint FORM = HDI_CODES_ROWS;

const uint WIDE_LINES = HDI_MM_A_ALONG_K | HDI_MM_A_WIDE;
const bool OF_F32 = A_TYPE == HDI_TYPE_F32, HAS_WIDE_LINES = (LAYOUT & WIDE_LINES) == WIDE_LINES;
const bool WIDE = OF_F32 && HAS_WIDE_LINES; // in constants of their own: spirv-opt puts one before what it is made of
// Wide runs of the workgroup, which neighbours read side by side; a vector more behind each spreads them over the memory's banks.
const uint RUN_VECTORS = HDI_MM_RUN / 4u, STRIDE = RUN_VECTORS + 1u, NOWHERE = 0xFFFFFFFFu;
shared uvec4 wide_runs[WORKGROUP * STRIDE];
shared uint firsts[WORKGROUP]; // of each, in elements

uint rounded(float x, float inverse, uint place, inout int sum) {
    uint code = exact_int8_code(x, inverse);
    sum += int(code << 24) >> 24;
    return code << (8u * (place & 3u));
}

void put_facts(vec4 first, vec2 second, uint count, uint lines, uint steps, uint line, uint step) {
    for (uint fact = 0u; fact < count; fact++)
        c[fact_word(lines, steps, fact, line, step)] = floatBitsToUint(fact < 4u ? first[fact] : second[fact - 4u]);
}

uint first_of_run(uint line, uint run) {
    const uint M = push[HDI_MM_PUSH_M];
    return a_first(line / M) + line % M * push[HDI_MM_PUSH_A_ROW] + run * HDI_MM_RUN * push[HDI_MM_PUSH_A_COL];
}
void read_wide_runs(uint own_first) {
    firsts[gl_LocalInvocationIndex] = own_first;
    barrier();
    for (uint i = 0u; i < RUN_VECTORS; i++) {
        uint vector = i * WORKGROUP + gl_LocalInvocationIndex, run = vector / RUN_VECTORS, first = firsts[run];
        if (first != NOWHERE) wide_runs[run * STRIDE + vector % RUN_VECTORS] = wide_a[first / 4u + vector % RUN_VECTORS];
    }
    barrier();
}
void round_run(uint line, uint run, uint step, uint lines, uint steps) {
    const uint stride = push[HDI_MM_PUSH_A_COL], at = line * steps + step, first = first_of_run(line, run);
    uint x[HDI_MM_RUN], most = 0u; // as bits, so that NaN is the largest
    for (uint i = 0u; i < HDI_MM_RUN; i += 4u) {
        uvec4 four;
        if (WIDE) four = wide_runs[gl_LocalInvocationIndex * STRIDE + i / 4u];
        else for (uint k = 0u; k < 4u; k++) four[k] = LOAD(a, A_TYPE, first + (i + k) * stride);
        for (uint k = 0u; k < 4u; k++) {
            x[i + k] = four[k];
            most = max(most, four[k] & 0x7FFFFFFFu);
        }
    }
    const exact_rounding rounding = exact_int8_rounding(most);
    int sums[2];
    for (uint h = 0u; h < 2u; h++) {
        sums[h] = 0;
        uvec4 codes = uvec4(0u);
        for (uint i = 0u; i < 16u; i++)
            codes[i / 4u] |= rounded(uintBitsToFloat(x[16u * h + i]), rounding.inverse, i, sums[h]);
        wide_c[at * 2u + h] = codes;
    }
    if (FORM == HDI_CODES_ROWS) {
        const uint facts = row_facts(lines * steps, at);
        c[facts] = floatBitsToUint(rounding.scale);
        c[facts + 1u] = both_halves(ivec2(sums[0], sums[1]));
        return;
    }
    put_facts(vec4(rounding.scale, float(sums[0] + sums[1]), float(sums[0]), float(sums[1])), vec2(0.0), ALL_ROW_FACTS, lines, steps, line, step);
}

void unpack_half(uint line, uint run, uint h, uint step, uint lines, uint steps) {
    const uint block = byte_of_run(B_TYPE, push[HDI_MM_PUSH_B_FIRST] + line * push[HDI_MM_PUSH_B_COL], run), part = part_of_run(B_TYPE, run);
    wide_c[(line * steps + step) * 2u + h] = half_codes(B_TYPE, block, part, h);
    if (h != 0u) return;
    const run_scales s = scales_of_run(B_TYPE, block, part);
    const vec2 of_all = BY_HALVES ? vec2(s.d, s.less) : vec2(s.d * float(s.scale.x), s.less * float(s.min.x)); // exact
    put_facts(vec4(of_all, float(s.scale.x), float(s.min.x)), vec2(s.scale.y, s.min.y), COLUMN_FACTS, lines, steps, line, step);
}

void main() {
    const uint runs = push[HDI_MM_PUSH_K] / HDI_MM_RUN, lines = push[HDI_CODES_PUSH_LINES];
    const uint steps = FORM == HDI_CODES_ROWS ? runs : steps_of(runs);
    const uint halves = FORM == HDI_CODES_COLUMNS ? 2u : 1u; // an invocation each
    const uint invocation = (gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x) * WORKGROUP + gl_LocalInvocationIndex;
    const uint at = invocation / halves, h = invocation % halves;
    const uint line = at / steps, step = at % steps, run = FORM == HDI_CODES_ROWS ? step : run_of(step, runs);
    if (WIDE) read_wide_runs(line < lines && run < runs ? first_of_run(line, run) : NOWHERE);
    if (line >= lines) return;
    if (run >= runs) {
        for (uint half_at = h; half_at < 2u; half_at += halves) wide_c[at * 2u + half_at] = uvec4(0u);
        if (h == 0u) put_facts(vec4(0.0), vec2(0.0), FORM == HDI_CODES_COLUMNS ? COLUMN_FACTS : ALL_ROW_FACTS, lines, steps, line, step);
    } else if (FORM == HDI_CODES_COLUMNS) unpack_half(line, run, h, step, lines, steps);
    else round_run(line, run, step, lines, steps);
}
