// round_blocks.glsl: f32 to blocks of q8_0 and q4_0, as hd_quantize rounds in exact arithmetic, by 8 invocations a block of which
// each has 4 neighbours.
#ifndef ROUND_BLOCKS_GLSL
#define ROUND_BLOCKS_GLSL
// Of two numbers' bits those of the larger by size; the first where they are equal, or the second is none.
uint larger(uint first, uint second) {
    uint size = second & 0x7FFFFFFFu;
    return size > (first & 0x7FFFFFFFu) && size <= 0x7F800000u ? second : first;
}
uint largest_of(uvec4 four) { return larger(larger(larger(larger(0u, four.x), four.y), four.z), four.w); }
// d of a block with this largest number.
float d_of_largest(uint type, uint largest) {
    return type == HDI_TYPE_Q4_0 ? exact_div(uintBitsToFloat(largest), -8.0) : exact_div(uintBitsToFloat(largest & 0x7FFFFFFFu), 127.0);
}
// The code of x in a block whose d is 1 / inverse; 0 where that is no number.
uint code_of(uint type, float x, float inverse) {
    precise float scaled = x * inverse;
    if (type == HDI_TYPE_Q4_0) { // 8 more, nearest
        precise float moved = scaled + 8.5;
        return (floatBitsToUint(moved) & 0x7FFFFFFFu) < floatBitsToUint(1e6) ? min(uint(moved), 15u) : 0u;
    }
    uint bits = floatBitsToUint(scaled), size_bits = bits & 0x7FFFFFFFu;
    if (size_bits >= floatBitsToUint(127.5)) return 0u;
    uint whole = uint(uintBitsToFloat(size_bits));
    precise float rest = uintBitsToFloat(size_bits) - float(whole);
    if (rest >= 0.5) whole++; // halves go away from zero
    return (bits == size_bits ? whole : 0u - whole) & 0xFFu;
}
uint codes_of(uint type, uvec4 four, float d) {
    float inverse = (floatBitsToUint(d) & 0x7FFFFFFFu) == 0u ? 0.0 : exact_rcp(d);
    return code_of(type, uintBitsToFloat(four.x), inverse) | (code_of(type, uintBitsToFloat(four.y), inverse) << 8) |
           (code_of(type, uintBitsToFloat(four.z), inverse) << 16) | (code_of(type, uintBitsToFloat(four.w), inverse) << 24);
}
#endif
