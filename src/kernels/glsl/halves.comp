#version 450
// halves: quantised weights as f16 or bf16, element by element in memory's order, ahead of a product that reads each of them
// often. Fast mode only. An invocation makes 8 neighbours.
#extension GL_GOOGLE_include_directive : require
#define BOOKS_BINDING 3
#include "wide.glsl"

layout(std430, binding = 2) writeonly buffer WideC { uvec4 wide_c[]; };

uint two(vec2 x) {
    if (OUT_TYPE != HDI_TYPE_BF16) return packHalf2x16(x);
    return f32_bits_to_bf16(floatBitsToUint(x.x)) | f32_bits_to_bf16(floatBitsToUint(x.y)) << 16;
}

void main() {
    uint chunk = (gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x) * WORKGROUP + gl_LocalInvocationIndex;
    if (chunk >= push[HDI_HALVES_PUSH_COUNT] / 8u) return;
    vec4 low, high;
    b_eight(push[HDI_HALVES_PUSH_FIRST] + 8u * chunk, low, high);
    wide_c[chunk] = uvec4(two(low.xy), two(low.zw), two(high.xy), two(high.zw));
}
