// wide.glsl: the matmul family's operands 16 bytes at a time, and quantised weights 4 or 8 codes at a time. Fast mode
// only: values may differ from quant.glsl's in the last bit where a device multiplies and adds in one step.
#ifndef WIDE_GLSL
#define WIDE_GLSL
#include "matmul.glsl"

layout(std430, binding = 0) readonly buffer WideA { uvec4 wide_a[]; };
layout(std430, binding = 1) readonly buffer WideB { uvec4 wide_b[]; };

#ifndef B_WORD // a word of B, and 16 bytes; kernels of two Bs choose which
#define B_WORD(at) b[at]
#define B_WORDS(at) wide_b[at]
#endif
// 4 bytes from byte `at` on, a multiple of 2 but for mxfp4, and a half.
uint b_bytes(uint at) {
    uint word = B_WORD(at >> 2);
    if (B_TYPE == HDI_TYPE_MXFP4 && (at & 1u) != 0u)
        return (word >> (8u * (at & 3u))) | (B_WORD((at >> 2) + 1u) << (32u - 8u * (at & 3u)));
    return (at & 2u) == 0u ? word : (word >> 16) | (B_WORD((at >> 2) + 1u) << 16);
}
float b_half(uint at) { return unpackHalf2x16(B_WORD(at >> 2) >> (8u * (at & 2u))).x; }
vec4 bytes_to_floats(uint bytes) { return vec4(bytes & 0xFFu, (bytes >> 8) & 0xFFu, (bytes >> 16) & 0xFFu, bytes >> 24); }
vec4 signed_bytes_to_floats(uint bytes) {
    int w = int(bytes);
    return vec4(w << 24 >> 24, w << 16 >> 24, w << 8 >> 24, w >> 24);
}

// The code that 4 bytes of tq1_0 hold behind as many digits as `power` is a power of 3, each as a byte.
uint tq1_0_codes(uint bytes, uint power) {
    uint even = ((((bytes & 0x00FF00FFu) * power) & 0x00FF00FFu) * 3u >> 8) & 0x00FF00FFu;
    uint odd = (((((bytes >> 8) & 0x00FF00FFu) * power) & 0x00FF00FFu) * 3u) & 0xFF00FF00u;
    return even | odd;
}

vec4 code_numbers(uint bytes) {
    return vec4(code_number(B_TYPE, bytes & 15u), code_number(B_TYPE, (bytes >> 8) & 15u),
                code_number(B_TYPE, (bytes >> 16) & 15u), code_number(B_TYPE, (bytes >> 24) & 15u));
}

// 8 neighbouring elements of a quantised B from element `index`, a multiple of 8, on: scale * (code - offset) - less.
void b_eight(uint index, out vec4 low, out vec4 high) {
    uint e = place_in_block(B_TYPE, index), block = block_first(B_TYPE, index);
    if (HDI_HAS_BOOK(B_TYPE)) {
        float scale = book_d(B_TYPE, block) * float(book_scale(B_TYPE, block, e >> 4));
        uvec2 eight = book_eight(B_TYPE, block, e >> 3);
        low = scale * signed_bytes_to_floats(eight.x);
        high = scale * signed_bytes_to_floats(eight.y);
        return;
    }
    uint at = block + code_byte(B_TYPE, e), more = block + more_byte(B_TYPE, e), part = block + part_byte(B_TYPE, e);
    if (B_TYPE == HDI_TYPE_Q8_0) {
        float scale = b_half(block);
        low = scale * signed_bytes_to_floats(b_bytes(at));
        high = scale * signed_bytes_to_floats(b_bytes(at + 4u));
        return;
    }
    if (has_numbers(B_TYPE)) {
        uint nibble = (e & 16u) >> 2;
        float scale = B_TYPE == HDI_TYPE_MXFP4 ? power_of_two(quant_byte(B_WORD(block >> 2), block)) : b_half(block);
        if (B_TYPE == HDI_TYPE_IQ4_XS) scale *= iq4_xs_scale(e >> 5, B_WORD(block >> 2), B_WORD((block >> 2) + 1u));
        low = scale * code_numbers(b_bytes(at) >> nibble);
        high = scale * code_numbers(b_bytes(at + 4u) >> nibble);
        return;
    }
    uint shift = 2u * ((e >> 5) & 3u), mask = 0x03030303u, more_low = 0u, more_high = 0u; // four codes to a byte
    float scale, less = 0.0, offset = 0.0;
    if (block_elements(B_TYPE) == 32u) {
        shift = (e & 16u) >> 2;
        mask = 0x0F0F0F0Fu;
        if (B_TYPE == HDI_TYPE_Q5_0 || B_TYPE == HDI_TYPE_Q5_1) {
            uint fifth = quant_byte(B_WORD(more >> 2), more);
            more_low = bits_to_bytes(fifth) << 4;
            more_high = bits_to_bytes(fifth >> 4) << 4;
        }
        scale = b_half(block);
        if (B_TYPE == HDI_TYPE_Q4_1 || B_TYPE == HDI_TYPE_Q5_1) less = -b_half(block + 2u);
        else offset = B_TYPE == HDI_TYPE_Q5_0 ? 16.0 : 8.0;
    } else if (B_TYPE == HDI_TYPE_Q4_K || B_TYPE == HDI_TYPE_Q5_K) {
        uvec4 head = B_WORDS(block >> 4);
        uint pair = q4_k_scale_min(e >> 5, head.y, head.z, head.w);
        vec2 d = unpackHalf2x16(head.x);
        shift = (e & 32u) >> 3;
        mask = 0x0F0F0F0Fu;
        if (B_TYPE == HDI_TYPE_Q5_K) {
            more_low = ((B_WORD(more >> 2) >> (e >> 5)) & 0x01010101u) << 4;
            more_high = ((B_WORD((more >> 2) + 1u) >> (e >> 5)) & 0x01010101u) << 4;
        }
        scale = d.x * float(pair & 63u);
        less = d.y * float(pair >> 8);
    } else if (B_TYPE == HDI_TYPE_Q6_K) {
        more_low = ((b_bytes(more) >> shift) & 0x03030303u) << 4;
        more_high = ((b_bytes(more + 4u) >> shift) & 0x03030303u) << 4;
        shift = (e & 64u) >> 4;
        mask = 0x0F0F0F0Fu;
        scale = b_half(block + 208u) * signed_byte(quant_byte(B_WORD(part >> 2), part));
        offset = 32.0;
    } else if (B_TYPE == HDI_TYPE_Q3_K) {
        uint high_at = block + 104u + ((e >> 4) & 3u);
        more_low = ((b_bytes(more) >> (e >> 5)) & 0x01010101u) << 2;
        more_high = ((b_bytes(more + 4u) >> (e >> 5)) & 0x01010101u) << 2;
        scale = b_half(block + 108u) * q3_k_scale(e >> 4, quant_byte(B_WORD(part >> 2), part), quant_byte(B_WORD(high_at >> 2), high_at));
        offset = 4.0;
    } else if (B_TYPE == HDI_TYPE_Q2_K) {
        uint both = quant_byte(B_WORD(part >> 2), part);
        vec2 d = unpackHalf2x16(B_WORD((block + 80u) >> 2));
        scale = d.x * float(both & 15u);
        less = d.y * float(both >> 4);
    } else if (B_TYPE == HDI_TYPE_TQ1_0) { // the last 16 elements lie in the same 4 bytes
        scale = b_half(block + 52u);
        low = scale * (bytes_to_floats(tq1_0_codes(b_bytes(at), tq1_0_power(e))) - 1.0);
        high = scale * (bytes_to_floats(tq1_0_codes(b_bytes(e < 240u ? at + 4u : at), tq1_0_power(e + 4u))) - 1.0);
        return;
    } else { // tq2_0
        scale = b_half(block + 64u);
        offset = 1.0;
    }
    low = scale * (bytes_to_floats(((b_bytes(at) >> shift) & mask) | more_low) - offset) - less;
    high = scale * (bytes_to_floats(((b_bytes(at + 4u) >> shift) & mask) | more_high) - offset) - less;
}
#endif
