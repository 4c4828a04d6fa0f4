#version 450
// split_floats: lines of f32 as lines of bf16 whose products are theirs: an element is the sum of three, each the rest of those
// before it in bf16. Of two operands' parts a product takes the six pairs that f32 can tell apart. An invocation splits 8 neighbours.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
layout(local_size_x_id = HDI_SPEC_WORKGROUP) in;
layout(push_constant) uniform Push { uint push[HDI_SPLIT_PUSH_WORDS]; };
layout(std430, binding = 0) readonly buffer Floats { uvec4 floats[]; };
layout(std430, binding = 1) writeonly buffer Parts { uvec4 parts[]; };

// Of what is not finite the first part is all. Where a part would round to infinity none is rounded up: sums of some of the
// parts are finite too, whatever their order.
uvec3 split(uint bits) {
    uint size = bits & 0x7FFFFFFFu;
    if (size >= 0x7F800000u) return uvec3(f32_bits_to_bf16(bits), 0u, 0u);
    bool cut = size >= 0x7F7F8000u;
    uint first = cut ? bits >> 16 : f32_bits_to_bf16(bits);
    precise float rest = uintBitsToFloat(bits) - uintBitsToFloat(first << 16); // exact, as is the next one
    uint second = cut ? floatBitsToUint(rest) >> 16 : f32_bits_to_bf16(floatBitsToUint(rest));
    precise float last = rest - uintBitsToFloat(second << 16);
    return uvec3(first, second, f32_bits_to_bf16(floatBitsToUint(last)));
}

void main() {
    uint each = push[HDI_SPLIT_PUSH_COLUMNS] / 8u;
    uint chunk = (gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint line = chunk / each, column = chunk - line * each;
    if (line >= push[HDI_SPLIT_PUSH_LINES]) return;
    uint from = (push[HDI_SPLIT_PUSH_FIRST] + line * push[HDI_SPLIT_PUSH_FROM_LINE]) / 4u + 2u * column;
    uint to = line * push[HDI_SPLIT_PUSH_TO_LINE] / 8u + column, step = push[HDI_SPLIT_PUSH_TO_PART] / 8u;
    uvec4 packed[3] = uvec4[3](uvec4(0), uvec4(0), uvec4(0));
    uvec4 low = floats[from], high = floats[from + 1u];
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uvec3 even = split(i < 2u ? low[2u * i] : high[2u * i - 4u]), odd = split(i < 2u ? low[2u * i + 1u] : high[2u * i - 3u]);
        [[unroll]] for (uint k = 0u; k < 3u; k++) packed[k][i] = even[k] | odd[k] << 16;
    }
    for (uint i = 0u; i < HDI_SPLIT_PARTS; i++) {
        uint part = push[HDI_SPLIT_PUSH_ORDER] >> 2u * i & 3u;
        parts[to + i * step] = part == 0u ? packed[0] : part == 1u ? packed[1] : packed[2];
    }
}
