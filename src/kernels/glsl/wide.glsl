// wide.glsl: the matmul family's operands 16 bytes at a time, and quantised weights 4 or 8 codes at a time. Fast mode
// only: values may differ from quant.glsl's in the last bit where a device multiplies and adds in one step.
#ifndef WIDE_GLSL
#define WIDE_GLSL
#include "matmul.glsl"

layout(std430, binding = 0) readonly buffer WideA { uvec4 wide_a[]; };
layout(std430, binding = 1) readonly buffer WideB { uvec4 wide_b[]; };

#ifndef B_WORD // a word of B; kernels of two Bs choose which
#define B_WORD(at) b[at]
#endif
// 4 bytes from byte `at`, a multiple of 2, on, and a half.
uint b_bytes(uint at) {
    uint word = B_WORD(at >> 2);
    return (at & 2u) == 0u ? word : (word >> 16) | (B_WORD((at >> 2) + 1u) << 16);
}
float b_half(uint at) { return unpackHalf2x16(B_WORD(at >> 2) >> (8u * (at & 2u))).x; }
vec4 bytes_to_floats(uint bytes) { return vec4(bytes & 0xFFu, (bytes >> 8) & 0xFFu, (bytes >> 16) & 0xFFu, bytes >> 24); }
vec4 signed_bytes_to_floats(uint bytes) {
    int w = int(bytes);
    return vec4(w << 24 >> 24, w << 16 >> 24, w << 8 >> 24, w >> 24);
}

// 8 neighbouring elements of a quantised B from element `index`, a multiple of 8, on.
void b_eight(uint index, out vec4 low, out vec4 high) {
    uint e = index & (block_elements(B_TYPE) - 1u), block = index / block_elements(B_TYPE) * block_bytes(B_TYPE);
    if (B_TYPE == HDI_TYPE_Q8_0) {
        float scale = b_half(block);
        low = scale * signed_bytes_to_floats(b_bytes(block + 2u + e));
        high = scale * signed_bytes_to_floats(b_bytes(block + 6u + e));
        return;
    }
    uint at, shift = 2u * ((e >> 5) & 3u), mask = 0x0F0F0F0Fu, more_low = 0u, more_high = 0u;
    float scale, less = 0.0, offset = 0.0;
    if (B_TYPE == HDI_TYPE_Q4_0) {
        at = block + 2u + (e & 15u);
        shift = (e & 16u) >> 2;
        scale = b_half(block);
        offset = 8.0;
    } else if (B_TYPE == HDI_TYPE_Q4_K) {
        uvec4 head = wide_b[block >> 4];
        uint pair = q4_k_scale_min(e >> 5, head.y, head.z, head.w);
        vec2 d = unpackHalf2x16(head.x);
        at = block + 16u + 32u * (e >> 6) + (e & 31u);
        shift = (e & 32u) >> 3;
        scale = d.x * float(pair & 63u);
        less = d.y * float(pair >> 8);
    } else if (B_TYPE == HDI_TYPE_Q6_K) {
        uint more = block + 128u + 32u * (e >> 7) + (e & 31u), scale_at = block + 192u + (e >> 4);
        more_low = ((b_bytes(more) >> shift) & 0x03030303u) << 4;
        more_high = ((b_bytes(more + 4u) >> shift) & 0x03030303u) << 4;
        at = block + 64u * (e >> 7) + (e & 63u);
        shift = (e & 64u) >> 4;
        scale = b_half(block + 208u) * signed_byte(quant_byte(b[scale_at >> 2], scale_at));
        offset = 32.0;
    } else { // tq2_0
        at = block + 32u * (e >> 7) + (e & 31u);
        mask = 0x03030303u;
        scale = b_half(block + 64u);
        offset = 1.0;
    }
    low = scale * (bytes_to_floats(((b_bytes(at) >> shift) & mask) | more_low) - offset) - less;
    high = scale * (bytes_to_floats(((b_bytes(at + 4u) >> shift) & mask) | more_high) - offset) - less;
}
#endif
