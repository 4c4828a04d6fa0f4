// runs.glsl: halves of runs of quantised weights as packed signed codes, with what scales them: the exact product's parts
// (abi.h). Read word by word by QUANT_WORD, whatever the type and wherever its blocks begin.
#ifndef RUNS_GLSL
#define RUNS_GLSL
#include "quant.glsl"

// Two whole numbers in 16 bits each: what scales the halves of a run, or the sums of their codes.
int low_half(uint both) { return int(both << 16) >> 16; }
int high_half(uint both) { return int(both) >> 16; }
uint both_halves(ivec2 halves) { return (uint(halves.x) & 0xFFFFu) | (uint(halves.y) << 16); }
// Where rows in 8 bits (abi.h's HDI_CODES_ROWS) of so many runs have the facts of run `at`, behind all codes: its scale, and the sums of
// both halves.
uint row_facts(uint runs, uint at) { return 8u * runs + 2u * at; }

uint byte_of_run(uint type, uint first, uint run) { // of its block, in the column whose first element is `first`
    return block_first(type, first + 32u * run);
}
uint part_of_run(uint type, uint run) { return block_elements(type) == 32u ? 0u : run & 7u; }

// 16 bytes from byte `at`, a multiple of 2, on.
uvec4 quant_sixteen(uint at) {
    uint word = at >> 2;
    uvec4 x = uvec4(QUANT_WORD(word), QUANT_WORD(word + 1u), QUANT_WORD(word + 2u), QUANT_WORD(word + 3u));
    if ((at & 2u) == 0u) return x;
    return (x >> 16) | (uvec4(x.yzw, QUANT_WORD(word + 4u)) << 16);
}
// Codes from 0 to 127 less `offset`, byte by byte.
uvec4 less_offset(uvec4 codes, uint offset) {
    return offset == 0u ? codes : ((codes | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u;
}
// 16 bits of a word from bit `first` on, one in each byte.
uvec4 spread_bits(uint bits, uint first) {
    uvec4 four = (uvec4(bits) >> (uvec4(0u, 4u, 8u, 12u) + first)) & 15u;
    return (four * 0x00204081u) & 0x01010101u;
}
// Digits of 4 bytes of tq1_0, each byte times a power of 3 without what overflows.
uint tq1_0_digits(uint bytes, uint power) {
    uint even = ((bytes & 0x00FF00FFu) * power) & 0x00FF00FFu, odd = (((bytes >> 8) & 0x00FF00FFu) * power) & 0x00FF00FFu;
    return (((even * 3u) >> 8) & 0x00030003u) | ((odd * 3u) & 0x03000300u);
}
uvec4 tq1_0_half(uint block, uint e) {
    if (e >= 240u) {
        uint last = quant_sixteen(block + 48u - 12u).w;
        return uvec4(tq1_0_digits(last, 1u), tq1_0_digits(last, 3u), tq1_0_digits(last, 9u), tq1_0_digits(last, 27u));
    }
    uvec4 bytes = quant_sixteen(block + (e < 160u ? e & 16u : 32u));
    uint power = tq1_0_power(e);
    return uvec4(tq1_0_digits(bytes.x, power), tq1_0_digits(bytes.y, power), tq1_0_digits(bytes.z, power), tq1_0_digits(bytes.w, power));
}

// The codes of half `h` of run `part` of the block, without their offset.
uvec4 half_codes(uint type, uint block, uint part, uint h) {
    uint e = 32u * part + 16u * h;
    if (type == HDI_TYPE_TQ1_0) return less_offset(tq1_0_half(block, e), 1u);
    if (HDI_HAS_BOOK(type)) return uvec4(book_eight(type, block, e >> 3), book_eight(type, block, (e >> 3) + 1u));
    uvec4 bytes = quant_sixteen(block + code_byte(type, e));
    if (type == HDI_TYPE_Q8_0) return bytes;
    if (block_elements(type) == 32u) {
        uvec4 codes = (bytes >> (4u * h)) & 0x0F0F0F0Fu;
        if (type == HDI_TYPE_Q5_0 || type == HDI_TYPE_Q5_1) {
            uint at = block + more_byte(type, 0u), word = QUANT_WORD(at >> 2);
            if ((at & 2u) != 0u) word = (word >> 16) | (QUANT_WORD((at >> 2) + 1u) << 16);
            codes |= spread_bits(word, 16u * h) << 4;
        }
        return less_offset(codes, type == HDI_TYPE_Q4_0 ? 8u : type == HDI_TYPE_Q5_0 ? 16u : 0u);
    }
    if (type == HDI_TYPE_Q4_K) return (bytes >> (4u * (part & 1u))) & 0x0F0F0F0Fu;
    uint shift = 2u * (part & 3u);
    if (type == HDI_TYPE_Q2_K) return (bytes >> shift) & 0x03030303u;
    if (type == HDI_TYPE_TQ2_0) return less_offset((bytes >> shift) & 0x03030303u, 1u);
    uvec4 more = quant_sixteen(block + more_byte(type, e));
    if (type == HDI_TYPE_Q3_K) return less_offset(((bytes >> shift) & 0x03030303u) | (((more >> part) & 0x01010101u) << 2), 4u);
    if (type == HDI_TYPE_Q5_K) return ((bytes >> (4u * (part & 1u))) & 0x0F0F0F0Fu) | (((more >> part) & 0x01010101u) << 4);
    return less_offset(((bytes >> (4u * ((part >> 1) & 1u))) & 0x0F0F0F0Fu) | (((more >> shift) & 0x03030303u) << 4), 32u); // q6_k
}

// What scales a run of weights: value = d * scale * code - less * min, scale and min of the half.
struct run_scales {
    ivec2 scale, min;
    float d, less;
};
run_scales scales_of_run(uint type, uint block, uint part) {
    run_scales s;
    uint at = block + scale_byte(type);
    s.scale = ivec2(1);
    s.min = ivec2(1);
    if (HDI_HAS_BOOK(type)) {
        s.scale = ivec2(book_scale(type, block, 2u * part), book_scale(type, block, 2u * part + 1u));
        s.d = book_d(type, block);
        s.less = 0.0;
        return s;
    }
    s.d = half_at(at);
    s.less = HDI_HAS_MIN(type) ? half_at(at + 2u) : 0.0;
    if (type == HDI_TYPE_Q4_1 || type == HDI_TYPE_Q5_1) s.less = -s.less;
    if (type == HDI_TYPE_Q4_K || type == HDI_TYPE_Q5_K) {
        uint word = (block + 4u) >> 2, pair = q4_k_scale_min(part, QUANT_WORD(word), QUANT_WORD(word + 1u), QUANT_WORD(word + 2u));
        s.scale = ivec2(pair & 63u);
        s.min = ivec2(pair >> 8);
    }
    if (type == HDI_TYPE_Q6_K || type == HDI_TYPE_Q2_K || type == HDI_TYPE_Q3_K) {
        ivec2 scales, mins;
        for (uint h = 0u; h < 2u; h++) {
            uint e = 32u * part + 16u * h, code = byte_at(block + part_byte(type, e));
            scales[h] = type == HDI_TYPE_Q6_K ? int(code << 24) >> 24 : int(code & 15u);
            mins[h] = int(code >> 4);
            if (type == HDI_TYPE_Q3_K) scales[h] = int(q3_k_scale(2u * part + h, code, byte_at(block + 104u + ((2u * part + h) & 3u))));
        }
        s.scale = scales;
        s.min = mins;
    }
    return s;
}

// A run's part of a sum: `weights` are the codes times A's, half by half scaled; `mins` likewise A's own codes.
float run_value(uint type, float scale, float d, float less, int weights, int mins) {
    precise float value = d * float(weights);
    if (HDI_HAS_MIN(type)) {
        precise float taken = less * float(mins);
        value = value - taken;
    }
    precise float result = scale * value;
    return result;
}
#endif
