// tensor.glsl: elements of any type in buffers that are declared as words: no 8- or 16-bit storage is needed.
// LOAD gives an element's bits as the computing type's: floats as f32 bits, integers as they are.
#ifndef TENSOR_GLSL
#define TENSOR_GLSL
#include "../abi.h"

// Bits of f16 and bf16 to f32 and back to nearest even, by integer operations: the same on every device.
// No branches: a subnormal f16 is lined up by one exact float operation on normal numbers.
uint f16_to_f32_bits(uint h) {
    uint exponent = h & 0x7C00u, fraction = (h & 0x3FFu) << 13;
    precise float lined = uintBitsToFloat(0x38800000u | fraction) - 6.103515625e-5;
    uint r = (exponent << 13) + 0x38000000u + fraction;
    r = exponent == 0u ? floatBitsToUint(lined) : r;
    r = exponent == 0x7C00u ? 0x7F800000u | fraction : r;
    return r | ((h & 0x8000u) << 16);
}
// What arithmetic takes a half for: by the device's own conversion where that is exact; of NaN, any NaN.
layout(constant_id = HDI_SPEC_HALVES) const uint DEVICE_HALVES = 0u;
vec2 half_values(uint word) {
    if (DEVICE_HALVES == 1u) return unpackHalf2x16(word);
    return vec2(uintBitsToFloat(f16_to_f32_bits(word & 0xFFFFu)), uintBitsToFloat(f16_to_f32_bits(word >> 16)));
}
uint f32_bits_to_f16(uint f) {
    uint a = f & 0x7FFFFFFFu;
    precise float lined = uintBitsToFloat(a) + 0.5; // under 2^-14 the sum rounds to f16's unit there, 2^-24
    uint r = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;
    r = a < 0x38800000u ? floatBitsToUint(lined) - 0x3F000000u : r;
    r = a >= 0x477FF000u ? 0x7C00u : r; // rounds to 65536 or is more
    r = a > 0x7F800000u ? 0x7E00u : r;
    return r | ((f >> 16) & 0x8000u);
}
uint f32_bits_to_bf16(uint f) {
    if ((f & 0x7FFFFFFFu) > 0x7F800000u) return (f >> 16) | 0x40u;
    return (f + 0x7FFFu + ((f >> 16) & 1u)) >> 16;
}

// Element `index` of a word buffer, as bits of the computing type.
#define LOAD(buffer_words, type, index) unpack_element(buffer_words[word_of(type, index)], type, index)
uint word_of(uint type, uint index) {
    return type == HDI_TYPE_U8 ? index >> 2 : (type == HDI_TYPE_F16 || type == HDI_TYPE_BF16) ? index >> 1 : index;
}
uint unpack_element(uint word, uint type, uint index) {
    if (type == HDI_TYPE_F16) return f16_to_f32_bits((index & 1u) != 0u ? word >> 16 : word & 0xFFFFu);
    if (type == HDI_TYPE_BF16) return (index & 1u) != 0u ? word & 0xFFFF0000u : word << 16;
    if (type == HDI_TYPE_U8) return (word >> (8u * (index & 3u))) & 0xFFu;
    return word;
}
// Four neighbours of a type of 16 bits; of u8 both words of the pair are the one that they share.
uvec4 unpack_four(uvec2 pair, uint type) {
    return uvec4(unpack_element(pair.x, type, 0u), unpack_element(pair.x, type, 1u), unpack_element(pair.y, type, 2u), unpack_element(pair.y, type, 3u));
}
// Element `index`'s own bits out of its word, at the low end.
uint raw_element(uint word, uint type, uint index) {
    if (type == HDI_TYPE_F16 || type == HDI_TYPE_BF16) return (index & 1u) != 0u ? word >> 16 : word & 0xFFFFu;
    if (type == HDI_TYPE_U8) return (word >> (8u * (index & 3u))) & 0xFFu;
    return word;
}
#define LOAD_FLOAT(buffer_words, type, index) uintBitsToFloat(LOAD(buffer_words, type, index))

// Bits of the computing type narrowed to the element's own bits, in the low end of the word.
uint pack_element(uint bits, uint type) {
    if (type == HDI_TYPE_F16) return f32_bits_to_f16(bits);
    if (type == HDI_TYPE_BF16) return f32_bits_to_bf16(bits);
    if (type == HDI_TYPE_U8) return bits & 0xFFu;
    return bits;
}
// Likewise of bits that the type holds already.
// Four of 16 bits each.
uvec2 packed_four(uvec4 bits, uint type) {
    return uvec2(pack_element(bits.x, type) | pack_element(bits.y, type) << 16, pack_element(bits.z, type) | pack_element(bits.w, type) << 16);
}
uint pack_rounded(uint bits, uint type) { return type == HDI_TYPE_BF16 ? bits >> 16 : pack_element(bits, type); }
// Bits after a round trip through the element's type: what a separate operation would have read back.
uint round_element(uint bits, uint type) {
    if (type == HDI_TYPE_F16) return f16_to_f32_bits(f32_bits_to_f16(bits));
    if (type == HDI_TYPE_BF16) return f32_bits_to_bf16(bits) << 16;
    if (type == HDI_TYPE_U8) return bits & 0xFFu;
    return bits;
}
uint type_bytes(uint type) {
    return type == HDI_TYPE_U8 ? 1u : (type == HDI_TYPE_F16 || type == HDI_TYPE_BF16) ? 2u : 4u;
}
// Stores one element where neighbours in its word may belong to other invocations: two atomic operations for the
// narrow types, each bit of which has one writer.
#define STORE(buffer_words, type, index, bits) { \
    uint store_at = word_of(type, index); \
    uint store_bits = pack_element(bits, type); \
    if (type_bytes(type) == 4u) buffer_words[store_at] = store_bits; \
    else { \
        uint store_shift = type == HDI_TYPE_U8 ? 8u * ((index) & 3u) : 16u * ((index) & 1u); \
        uint store_mask = (type == HDI_TYPE_U8 ? 0xFFu : 0xFFFFu) << store_shift; \
        atomicAnd(buffer_words[store_at], ~store_mask); \
        atomicOr(buffer_words[store_at], store_bits << store_shift); \
    } }
#endif
