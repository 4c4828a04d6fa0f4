// quant.glsl: values of quantised tensors by GGUF's definition, read from a buffer that is declared as words, of which
// QUANT_WORD(at) is one; the code books (abi.h) are words too, books[]. Blocks begin at any even byte, mxfp4's of 17 bytes at
// any, so a block is read word by word and its fields are shifted out. All but the subtraction of `less` (abi.h) is exact in
// f32: fused or not, the bits are the same.
#ifndef QUANT_GLSL
#define QUANT_GLSL
#include "tensor.glsl"

uint block_elements(uint type) {
#define BLOCK_ELEMENTS(code, elements, bytes, scale, less) type == code ? uint(elements) :
    return HDI_BLOCK_LIST(BLOCK_ELEMENTS) 1u;
}
uint block_bytes(uint type) {
#define BLOCK_BYTES(code, elements, bytes, scale, less) type == code ? uint(bytes) :
    return HDI_BLOCK_LIST(BLOCK_BYTES) 4u;
}
bool is_quantised(uint type) { return block_elements(type) > 1u; }
uint block_first(uint type, uint index) { return index / block_elements(type) * block_bytes(type); }
uint place_in_block(uint type, uint index) { return index & (block_elements(type) - 1u); }

// Where d lies in a block.
uint scale_byte(uint type) {
#define SCALE_BYTE(code, elements, bytes, scale, less) type == code ? uint(scale) :
    return HDI_BLOCK_LIST(SCALE_BYTE) 0u;
}
// Where the byte with (the low bits of) element e's code lies in its block.
uint code_byte(uint type, uint e) {
    if (type == HDI_TYPE_Q8_0) return 2u + e;
    if (type == HDI_TYPE_Q4_0 || type == HDI_TYPE_IQ4_NL) return 2u + (e & 15u);
    if (type == HDI_TYPE_MXFP4) return 1u + (e & 15u);
    if (type == HDI_TYPE_IQ4_XS) return 8u + 16u * (e >> 5) + (e & 15u);
    if (type == HDI_TYPE_Q4_1) return 4u + (e & 15u);
    if (type == HDI_TYPE_Q5_0) return 6u + (e & 15u);
    if (type == HDI_TYPE_Q5_1) return 8u + (e & 15u);
    if (type == HDI_TYPE_Q4_K) return 16u + 32u * (e >> 6) + (e & 31u);
    if (type == HDI_TYPE_Q5_K) return 48u + 32u * (e >> 6) + (e & 31u);
    if (type == HDI_TYPE_Q6_K) return 64u * (e >> 7) + (e & 63u);
    if (type == HDI_TYPE_TQ1_0) return e < 160u ? e & 31u : e < 240u ? 32u + (e & 15u) : 48u + (e & 3u);
    return (type == HDI_TYPE_Q2_K ? 16u : type == HDI_TYPE_Q3_K ? 32u : 0u) + 32u * (e >> 7) + (e & 31u); // tq2_0: 0
}
// Where the byte with its high bits lies, in types that keep them apart.
uint more_byte(uint type, uint e) {
    if (type == HDI_TYPE_Q5_0) return 2u + (e >> 3);
    if (type == HDI_TYPE_Q5_1) return 4u + (e >> 3);
    if (type == HDI_TYPE_Q5_K) return 16u + (e & 31u);
    if (type == HDI_TYPE_Q6_K) return 128u + 32u * (e >> 7) + (e & 31u);
    return e & 31u; // q3_k
}
// Where its part's scale lies: the first of several bytes or words in q3_k (2, 8 bytes apart), q4_k and q5_k (3 words),
// iq4_xs (2, and its word).
uint part_byte(uint type, uint e) {
    if (type == HDI_TYPE_Q2_K) return e >> 4;
    if (type == HDI_TYPE_Q3_K) return 96u + ((e >> 4) & 7u);
    if (type == HDI_TYPE_Q6_K) return 192u + (e >> 4);
    return 4u; // q4_k, q5_k
}
uint quant_byte(uint word, uint at) { return (word >> (8u * (at & 3u))) & 0xFFu; }
uint byte_at(uint at) { return quant_byte(QUANT_WORD(at >> 2), at); }
float half_at(uint at) { return uintBitsToFloat(f16_to_f32_bits((QUANT_WORD(at >> 2) >> (8u * (at & 2u))) & 0xFFFFu)); }
float signed_byte(uint value) { return float(int(value << 24) >> 24); }
// Bits 0..3 of `bits` as the low bits of 4 bytes.
uint bits_to_bytes(uint bits) { return ((bits & 15u) * 0x00204081u) & 0x01010101u; }
#include "books.glsl"

// Scale (low 6 bits) and min (bits 8..13) of part 0..7 of a q4_k or q5_k block, from the words of its 12 bytes.
uint q4_k_scale_min(uint part, uint a, uint b, uint c) { // without a branch: neighbouring invocations have parts on both sides
    const bool upper = part >= 4u; // then the low 4 bits of both are in c, the high 2 above a's and b's own
    const uint shift = 8u * (part & 3u), own = upper ? 0x0F0Fu : 0x3F3Fu, more = upper ? 0x3030u : 0u;
    a >>= shift; b >>= shift; c >>= shift;
    const uint low = upper ? (c & 0xFFu) | (c << 4) : (a & 0xFFu) | (b << 8), high = ((a >> 2) & 0xFFu) | (b << 6);
    return (low & own) | (high & more);
}
// The whole number that scales part 0..15 of a q3_k block, from its two bytes.
float q3_k_scale(uint part, uint low, uint high) {
    return float(int(((low >> (4u * (part >> 3))) & 15u) | (((high >> (2u * (part >> 2))) & 3u) << 4)) - 32);
}
// 3 to the number of digits that stand before element e's in its byte of a tq1_0 block.
uint tq1_0_power(uint e) {
    uint digit = e < 160u ? e >> 5 : e < 240u ? (e - 160u) >> 4 : (e - 240u) >> 2;
    return digit == 0u ? 1u : digit == 1u ? 3u : digit == 2u ? 9u : digit == 3u ? 27u : 81u;
}
// What the whole number that scales part 0..7 of an iq4_xs block is, from the block's first word and its second.
float iq4_xs_scale(uint part, uint first, uint low) {
    return float(int(((low >> (4u * part)) & 15u) | (((first >> (16u + 2u * part)) & 3u) << 4)) - 32);
}
// What a code of iq4_nl and iq4_xs, or of mxfp4, stands for.
float code_number(uint type, uint code) {
#define FOUR_BYTES(a, b, c, d) (uint((a) & 255) | (uint((b) & 255) << 8) | (uint((c) & 255) << 16) | (uint((d) & 255) << 24))
#define SIXTEEN_BYTES(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) \
    uvec4(FOUR_BYTES(a, b, c, d), FOUR_BYTES(e, f, g, h), FOUR_BYTES(i, j, k, l), FOUR_BYTES(m, n, o, p))
    uvec4 numbers = type == HDI_TYPE_MXFP4 ? HDI_CODES_MXFP4(SIXTEEN_BYTES) : HDI_CODES_IQ4(SIXTEEN_BYTES);
    uint word = code < 8u ? (code < 4u ? numbers.x : numbers.y) : code < 12u ? numbers.z : numbers.w;
    return signed_byte(quant_byte(word, code));
}
// A power of two by its exponent, of which 128 is none.
float power_of_two(uint exponent) { return uintBitsToFloat(exponent < 2u ? 0x00200000u << exponent : (exponent - 1u) << 23); }
bool has_numbers(uint type) { return type == HDI_TYPE_IQ4_NL || type == HDI_TYPE_IQ4_XS || type == HDI_TYPE_MXFP4; }
float minus(float scaled, float less) {
    precise float value = scaled - less;
    return value;
}

// Element e of the block of 32 elements, or of 256, that begins at byte `block`.
float value_in_32(uint type, uint e, uint block, float d, uint code) {
    if (type == HDI_TYPE_Q8_0) return d * signed_byte(code);
    code = (e & 16u) != 0u ? code >> 4 : code & 15u;
    if (type == HDI_TYPE_Q4_0) return d * float(int(code) - 8);
    if (has_numbers(type)) return d * code_number(type, code);
    if (type != HDI_TYPE_Q4_1) code |= ((byte_at(block + more_byte(type, e)) >> (e & 7u)) & 1u) << 4;
    if (type == HDI_TYPE_Q5_0) return d * float(int(code) - 16);
    return minus(d * float(code), -half_at(block + 2u));
}
float value_in_256(uint type, uint e, uint block, float d, uint code) {
    if (type == HDI_TYPE_TQ1_0) return d * float(int((((code * tq1_0_power(e)) & 255u) * 3u) >> 8) - 1);
    if (type == HDI_TYPE_IQ4_XS) {
        float scale = d * iq4_xs_scale(e >> 5, QUANT_WORD(block >> 2), QUANT_WORD((block >> 2) + 1u));
        return scale * code_number(type, (e & 16u) != 0u ? code >> 4 : code & 15u);
    }
    uint part = block + part_byte(type, e), more = block + more_byte(type, e);
    if (type == HDI_TYPE_Q4_K || type == HDI_TYPE_Q5_K) {
        uint word = part >> 2, pair = q4_k_scale_min(e >> 5, QUANT_WORD(word), QUANT_WORD(word + 1u), QUANT_WORD(word + 2u));
        code = (e & 32u) != 0u ? code >> 4 : code & 15u;
        if (type == HDI_TYPE_Q5_K) code |= ((byte_at(more) >> (e >> 5)) & 1u) << 4;
        return minus(d * float(pair & 63u) * float(code), half_at(block + 2u) * float(pair >> 8));
    }
    if (type == HDI_TYPE_Q6_K) {
        uint low = (e & 64u) != 0u ? code >> 4 : code & 15u, high = (byte_at(more) >> (2u * ((e >> 5) & 3u))) & 3u;
        return d * signed_byte(byte_at(part)) * float(int(low | (high << 4)) - 32);
    }
    code = (code >> (2u * ((e >> 5) & 3u))) & 3u;
    if (type == HDI_TYPE_Q3_K) {
        code |= ((byte_at(more) >> (e >> 5)) & 1u) << 2;
        return d * q3_k_scale(e >> 4, byte_at(part), byte_at(block + 104u + ((e >> 4) & 3u))) * float(int(code) - 4);
    }
    if (type == HDI_TYPE_Q2_K) {
        uint both = byte_at(part);
        return minus(d * float(both & 15u) * float(code), half_at(block + 82u) * float(both >> 4));
    }
    return d * float(int(code) - 1); // tq2_0
}
float quant_value(uint type, uint index) {
    uint e = place_in_block(type, index), block = block_first(type, index);
    if (HDI_HAS_BOOK(type)) {
        uvec2 eight = book_eight(type, block, e >> 3);
        return book_d(type, block) * float(book_scale(type, block, e >> 4)) * signed_byte(quant_byte((e & 4u) == 0u ? eight.x : eight.y, e));
    }
    float d = type == HDI_TYPE_MXFP4 ? power_of_two(byte_at(block)) : half_at(block + scale_byte(type));
    uint code = byte_at(block + code_byte(type, e));
    if (block_elements(type) == 32u) return value_in_32(type, e, block, d, code);
    return value_in_256(type, e, block, d, code);
}

// Element `index` of a buffer, which is a tensor of a float or a quantised type, as a float.
#define LOAD_ANY(buffer_words, type, index) (!is_quantised(type) ? LOAD_FLOAT(buffer_words, type, index) : quant_value(type, index))
#endif
