// quant.glsl: values of quantised tensors by GGUF's definition, read from buffers that are declared as words. Blocks of
// 18, 22, 34, 54, 66, 110 and 210 bytes begin at any even byte, so a block is read word by word and its fields are
// shifted out. All but the subtraction of `less` (abi.h) is exact in f32: fused or not, the bits are the same.
#ifndef QUANT_GLSL
#define QUANT_GLSL
#include "tensor.glsl"

uint block_elements(uint type) {
#define BLOCK_ELEMENTS(code, elements, bytes) type == code ? uint(elements) :
    return HDI_BLOCK_LIST(BLOCK_ELEMENTS) 1u;
}
uint block_bytes(uint type) {
#define BLOCK_BYTES(code, elements, bytes) type == code ? uint(bytes) :
    return HDI_BLOCK_LIST(BLOCK_BYTES) 4u;
}
bool is_quantised(uint type) { return block_elements(type) > 1u; }
uint block_first(uint type, uint index) { return index / block_elements(type) * block_bytes(type); }
uint place_in_block(uint type, uint index) { return index & (block_elements(type) - 1u); }

// Where d lies in a block. The m of q4_1 and q5_1 and the second scale of q2_k, q4_k and q5_k are the half behind it.
uint scale_byte(uint type) {
    return type == HDI_TYPE_Q6_K ? 208u : type == HDI_TYPE_TQ2_0 ? 64u : type == HDI_TYPE_Q2_K ? 80u
         : type == HDI_TYPE_Q3_K ? 108u : type == HDI_TYPE_TQ1_0 ? 52u : 0u;
}
// Where the byte with (the low bits of) element e's code lies in its block.
uint code_byte(uint type, uint e) {
    if (type == HDI_TYPE_Q8_0) return 2u + e;
    if (type == HDI_TYPE_Q4_0) return 2u + (e & 15u);
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
// Where its part's scale lies: the first of several bytes or words in q3_k (2, 8 bytes apart), q4_k and q5_k (3 words).
uint part_byte(uint type, uint e) {
    if (type == HDI_TYPE_Q2_K) return e >> 4;
    if (type == HDI_TYPE_Q3_K) return 96u + ((e >> 4) & 7u);
    if (type == HDI_TYPE_Q6_K) return 192u + (e >> 4);
    return 4u; // q4_k, q5_k
}
// The byte that starts field `field` of an element: 0 d, 1 its code, 2 the code's high bits, 3..5 its part's scale.
// A field that the type does not have lies in its block all the same: nobody uses it, but it may be read.
uint quant_field(uint type, uint index, uint field) {
    uint e = place_in_block(type, index), block = block_first(type, index);
    if (field == 0u) return block + scale_byte(type);
    if (field == 1u) return block + code_byte(type, e);
    if (block_elements(type) == 32u) return block + (type == HDI_TYPE_Q5_0 || type == HDI_TYPE_Q5_1 ? more_byte(type, e) : 0u);
    if (field == 2u) return block + more_byte(type, e);
    if (field == 3u) return block + part_byte(type, e);
    if (type == HDI_TYPE_Q3_K) return block + 104u + ((e >> 4) & 3u);
    return block + 4u * (field - 2u);
}
uint quant_word(uint type, uint index, uint field) { return quant_field(type, index, field) >> 2; }
uint quant_byte(uint word, uint at) { return (word >> (8u * (at & 3u))) & 0xFFu; }
float quant_half(uint word, uint at) { return uintBitsToFloat(f16_to_f32_bits((word >> (8u * (at & 2u))) & 0xFFFFu)); }
float signed_byte(uint value) { return float(int(value << 24) >> 24); }

// Scale (low 6 bits) and min (bits 8..13) of part 0..7 of a q4_k or q5_k block, from the words of its 12 bytes.
uint q4_k_scale_min(uint part, uint a, uint b, uint c) {
    uint shift = 8u * (part & 3u);
    a >>= shift; b >>= shift; c >>= shift;
    if (part < 4u) return (a & 63u) | ((b & 63u) << 8);
    return (c & 0xFu) | ((a >> 2) & 0x30u) | ((c & 0xF0u) << 4) | ((b & 0xC0u) << 6);
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
float minus(float scaled, float less) {
    precise float value = scaled - less;
    return value;
}

// The values of a type with blocks of 32, from place, d, the half behind d, the code's byte, and its high bits' byte.
float value_in_32(uint type, uint e, float d, float m, uint code, uint more) {
    if (type == HDI_TYPE_Q8_0) return d * signed_byte(code);
    uint low = (e & 16u) != 0u ? code >> 4 : code & 15u, five = low | (((more >> (e & 7u)) & 1u) << 4);
    if (type == HDI_TYPE_Q4_0) return d * float(int(low) - 8);
    if (type == HDI_TYPE_Q5_0) return d * float(int(five) - 16);
    return minus(d * float(type == HDI_TYPE_Q4_1 ? low : five), -m);
}
// The element's value, from the words that hold its fields 0..5.
float quant_value(uint type, uint index, uint w0, uint w1, uint w2, uint w3, uint w4, uint w5) {
    float d = quant_half(w0, quant_field(type, index, 0u)), d_min = quant_half(w0, 2u);
    uint code = quant_byte(w1, quant_field(type, index, 1u)), more = quant_byte(w2, quant_field(type, index, 2u));
    uint e = place_in_block(type, index), two = (code >> (2u * ((e >> 5) & 3u))) & 3u;
    if (block_elements(type) == 32u) return value_in_32(type, e, d, d_min, code, more);
    if (type == HDI_TYPE_Q4_K || type == HDI_TYPE_Q5_K) {
        uint part = e >> 5, pair = q4_k_scale_min(part, w3, w4, w5);
        uint bits = ((part & 1u) != 0u ? code >> 4 : code & 15u) | (type == HDI_TYPE_Q5_K ? ((more >> part) & 1u) << 4 : 0u);
        return minus(d * float(pair & 63u) * float(bits), d_min * float(pair >> 8));
    }
    uint scale = quant_byte(w3, quant_field(type, index, 3u));
    if (type == HDI_TYPE_Q6_K) {
        uint low = (e & 64u) != 0u ? code >> 4 : code & 15u, high = (more >> (2u * ((e >> 5) & 3u))) & 3u;
        return d * signed_byte(scale) * float(int(low | (high << 4)) - 32);
    }
    if (type == HDI_TYPE_Q3_K)
        return d * q3_k_scale(e >> 4, scale, quant_byte(w4, quant_field(type, index, 4u))) * float(int(two | (((more >> (e >> 5)) & 1u) << 2)) - 4);
    if (type == HDI_TYPE_Q2_K) return minus(d * float(scale & 15u) * float(two), d_min * float(scale >> 4));
    if (type == HDI_TYPE_TQ1_0) return d * float(int((((code * tq1_0_power(e)) & 255u) * 3u) >> 8) - 1);
    return d * float(int(two) - 1); // tq2_0
}

// Element `index` of a float or quantised word buffer, as a float.
#define LOAD_ANY(buffer_words, type, index) (!is_quantised(type) ? LOAD_FLOAT(buffer_words, type, index) \
    : quant_value(type, index, buffer_words[quant_word(type, index, 0u)], buffer_words[quant_word(type, index, 1u)], \
                  buffer_words[quant_word(type, index, 2u)], buffer_words[quant_word(type, index, 3u)], \
                  buffer_words[quant_word(type, index, 4u)], buffer_words[quant_word(type, index, 5u)]))
#endif
