// quant.glsl: values of quantised tensors by GGUF's definition, read from buffers that are declared as words. Blocks of
// 18, 34, 66 and 210 bytes begin at any even byte, so a block is read word by word and its fields are shifted out.
// All products of a block's scale and code are exact in f32; only the subtraction of q4_k rounds: fused or not, the
// bits are the same.
#ifndef QUANT_GLSL
#define QUANT_GLSL
#include "tensor.glsl"

bool is_quantised(uint type) { return type >= HDI_TYPE_Q4_0; }
uint block_elements(uint type) { return type < HDI_TYPE_Q4_0 ? 1u : type < HDI_TYPE_Q4_K ? 32u : 256u; }
uint block_bytes(uint type) {
    return type == HDI_TYPE_Q4_0 ? 18u : type == HDI_TYPE_Q8_0 ? 34u : type == HDI_TYPE_Q4_K ? 144u
         : type == HDI_TYPE_Q6_K ? 210u : type == HDI_TYPE_TQ2_0 ? 66u : type_bytes(type);
}

// The byte that starts field `field` of an element: 0 the scale d, 1 the code, 2..4 what else the type has.
uint quant_field(uint type, uint index, uint field) {
    if (type < HDI_TYPE_Q4_K) {
        uint block = (index >> 5) * block_bytes(type);
        if (field != 1u) return block;
        return block + 2u + (type == HDI_TYPE_Q4_0 ? index & 15u : index & 31u);
    }
    uint block = (index >> 8) * block_bytes(type), e = index & 255u;
    if (type == HDI_TYPE_Q4_K) {
        if (field == 0u) return block;
        if (field == 1u) return block + 16u + 32u * (e >> 6) + (e & 31u);
        return block + 4u * (field - 1u); // the three words of 6-bit scales and mins
    }
    if (type == HDI_TYPE_Q6_K) {
        if (field == 1u) return block + 64u * (e >> 7) + (e & 63u);
        if (field == 2u) return block + 128u + 32u * (e >> 7) + (e & 31u);
        if (field == 3u) return block + 192u + (e >> 4);
        return block + 208u;
    }
    return field == 1u ? block + 32u * (e >> 7) + (e & 31u) : block + 64u; // tq2_0
}
uint quant_word(uint type, uint index, uint field) { return quant_field(type, index, field) >> 2; }
uint quant_byte(uint word, uint at) { return (word >> (8u * (at & 3u))) & 0xFFu; }
float quant_half(uint word, uint at) { return uintBitsToFloat(f16_to_f32_bits((word >> (8u * (at & 2u))) & 0xFFFFu)); }
float signed_byte(uint value) { return float(int(value << 24) >> 24); }

// Scale (low 6 bits) and min (bits 8..13) of part 0..7 of a q4_k block, from the words of its 12 bytes.
uint q4_k_scale_min(uint part, uint a, uint b, uint c) {
    uint shift = 8u * (part & 3u);
    a >>= shift; b >>= shift; c >>= shift;
    if (part < 4u) return (a & 63u) | ((b & 63u) << 8);
    return (c & 0xFu) | ((a >> 2) & 0x30u) | ((c & 0xF0u) << 4) | ((b & 0xC0u) << 6);
}

// The element's value, from the words that hold its fields 0..4.
float quant_value(uint type, uint index, uint w0, uint w1, uint w2, uint w3, uint w4) {
    float d = quant_half(w0, quant_field(type, index, 0u));
    uint code = quant_byte(w1, quant_field(type, index, 1u));
    if (type == HDI_TYPE_Q4_0) return d * float(int((index & 16u) != 0u ? code >> 4 : code & 15u) - 8);
    if (type == HDI_TYPE_Q8_0) return d * signed_byte(code);
    uint e = index & 255u;
    if (type == HDI_TYPE_Q4_K) {
        uint part = e >> 5, pair = q4_k_scale_min(part, w2, w3, w4);
        precise float scaled = d * float(pair & 63u) * float((part & 1u) != 0u ? code >> 4 : code & 15u);
        precise float low = quant_half(w0, 2u) * float(pair >> 8);
        precise float value = scaled - low;
        return value;
    }
    if (type == HDI_TYPE_Q6_K) {
        uint low = (e & 64u) != 0u ? code >> 4 : code & 15u;
        uint high = (quant_byte(w2, quant_field(type, index, 2u)) >> (2u * ((e >> 5) & 3u))) & 3u;
        return d * signed_byte(quant_byte(w3, quant_field(type, index, 3u))) * float(int(low | (high << 4)) - 32);
    }
    return d * float(int((code >> (2u * ((e >> 5) & 3u))) & 3u) - 1); // tq2_0
}

// Element `index` of a float or quantised word buffer, as a float.
#define LOAD_ANY(buffer_words, type, index) (!is_quantised(type) ? LOAD_FLOAT(buffer_words, type, index) \
    : quant_value(type, index, buffer_words[quant_word(type, index, 0u)], buffer_words[quant_word(type, index, 1u)], \
                  buffer_words[quant_word(type, index, 2u)], buffer_words[quant_word(type, index, 3u)], \
                  buffer_words[quant_word(type, index, 4u)]))
#endif
