// blocks.glsl: keys and values in the quantised types that a cache may have, q8_0 and q4_0: blocks of 32 elements, an f16 d
// before their codes. A value is d * code, which f32 holds exactly.
// Where these lie is said for these two alone: quant.glsl, which says it for all types, would make attention's kernels a third longer.
#ifndef BLOCKS_GLSL
#define BLOCKS_GLSL
#include "tensor.glsl"

#define HAS_BLOCKS(type) ((type) == HDI_TYPE_Q8_0 || (type) == HDI_TYPE_Q4_0)
uint block_byte(uint type, uint index) { return index / 32u * (type == HDI_TYPE_Q8_0 ? 34u : 18u); }
// Where element e's code lies in its block; of q4_0 each byte has two, e's in the upper half from 16 on.
uint code_byte(uint type, uint e) { return 2u + (type == HDI_TYPE_Q8_0 ? e : e & 15u); }
uint upper_bits(uint type, uint e) { return type == HDI_TYPE_Q4_0 && e >= 16u ? 4u : 0u; }
uint half_of_word(uint word, uint byte_at) { return (word >> (8u * (byte_at & 2u))) & 0xFFFFu; }

// Four codes in a word, and d's bits, as values.
vec4 code_values(uint type, uint codes, uint d) {
    ivec4 numbers;
    if (type == HDI_TYPE_Q8_0) numbers = ivec4(uvec4(codes << 24, codes << 16, codes << 8, codes)) >> 24;
    else numbers = ivec4(uvec4(codes, codes >> 8, codes >> 16, codes >> 24) & 15u) - 8;
    return uintBitsToFloat(d) * vec4(numbers);
}
// The codes of 8 elements from `index` on, a multiple of 8, in x and y, and d's bits in z. Blocks begin at even bytes.
#define READ_CODES(words, type, index, out_codes) { \
    uint codes_e = (index) & 31u, codes_block = block_byte(type, index), codes_at = codes_block + code_byte(type, codes_e); \
    uint codes_word = codes_at >> 2; \
    out_codes = uvec4(words[codes_word], words[codes_word + 1u], f16_to_f32_bits(half_of_word(words[codes_block >> 2], codes_block)), 0u); \
    if ((codes_at & 2u) != 0u) \
        out_codes.xy = uvec2((out_codes.x >> 16) | (out_codes.y << 16), (out_codes.y >> 16) | (words[codes_word + 2u] << 16)); \
    out_codes.xy >>= upper_bits(type, codes_e); \
    }
// Blocks by pieces of 8 elements, for fast mode: in q8_0 neighbours, in q4_0 those whose codes are a word, 4 and the 4 that are
// 16 elements behind them.
#define BLOCK_HALVES(type) ((type) == HDI_TYPE_Q8_0 ? 17u : 9u)
#define PIECE_WORDS(type) ((type) == HDI_TYPE_Q8_0 ? 2u : 1u)
uint element_of_piece(uint type, uint e) { return type == HDI_TYPE_Q4_0 ? (e & ~31u) | ((e & 4u) << 2) | ((e >> 1) & 12u) | (e & 3u) : e; }
// Piece 0 to 3 of the block that begins at half `halves`. Codes begin with the second word in odd blocks, in the
// midst of the first in even ones; d lies in the last.
#define READ_PIECE(words, type, halves, piece, out_piece) { \
    uint piece_word = ((halves) + 2u * PIECE_WORDS(type) * (piece)) / 2u; \
    out_piece.xy = uvec2(words[piece_word], words[piece_word + 1u]); \
    if (type == HDI_TYPE_Q8_0) out_piece.z = words[piece_word + 2u]; \
    out_piece.w = words[(halves) / 2u]; }
#define CODE_UNITS 16777216.0 // 1 / the least f16, as which codes are taken: halves are cheaper to convert than bytes
float d_of(uvec4 piece, uint odd) { return half_values(piece.w >> (16u * odd)).x; } // in odd blocks d is the upper half
vec2 least_halves(uint two) { return DEVICE_HALVES == 1u ? unpackHalf2x16(two) : vec2(two & 0xFFFFu, two >> 16) / CODE_UNITS; }
// Its first 4 codes or its second, from 0 on: 128 or 8 too much.
vec4 code_units(uint type, uvec4 piece, uint odd, uint second) {
    const bool is_next = second == 1u && type == HDI_TYPE_Q8_0;
    uint low = is_next ? piece.y : piece.x, high = is_next ? piece.z : piece.y, word = odd == 1u ? high : (low >> 16) | (high << 16);
    const uint mask = type == HDI_TYPE_Q8_0 ? 0x00FF00FFu : 0x000F000Fu;
    if (type == HDI_TYPE_Q8_0) word ^= 0x80808080u;
    else if (second == 1u) word >>= 4;
    vec2 even = least_halves(word & mask), uneven = least_halves((word >> 8) & mask);
    return vec4(even.x, uneven.x, even.y, uneven.y);
}
// Its 8 elements as f16, the largest ones for what is more.
uvec4 piece_halves(uint type, uvec4 piece, uint odd) {
    const float d = d_of(piece, odd), excess = (type == HDI_TYPE_Q8_0 ? -128.0 : -8.0) * d;
    vec4 low = fma(code_units(type, piece, odd, 0u), vec4(d * CODE_UNITS), vec4(excess));
    vec4 high = fma(code_units(type, piece, odd, 1u), vec4(d * CODE_UNITS), vec4(excess));
    if (abs(d) > 511.0) {
        low = clamp(low, vec4(-65504.0), vec4(65504.0));
        high = clamp(high, vec4(-65504.0), vec4(65504.0));
    }
    return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
}
// One element.
#define READ_BLOCK_VALUE(words, type, index, out_value) { \
    uint value_e = (index) & 31u, value_block = block_byte(type, index), value_at = value_block + code_byte(type, value_e); \
    uint value_code = (words[value_at >> 2] >> (8u * (value_at & 3u))) >> upper_bits(type, value_e); \
    out_value = code_values(type, value_code, f16_to_f32_bits(half_of_word(words[value_block >> 2], value_block))).x; \
    }
#endif
