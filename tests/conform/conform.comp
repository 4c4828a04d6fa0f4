// The seam's test kernel: out[i] = in[i] * FACTOR + add for i < count. Its C twin is in conform.h.
// glslc --target-env=vulkan1.1 -O -mfmt=num conform.comp -o conform_spirv.inc
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FACTOR = 2;
layout(push_constant) uniform Push { uint count, add; };
layout(set = 0, binding = 0) readonly buffer In { uint from[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint to[]; };

void main() {
    uint i = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (i < count) to[i] = from[i] * FACTOR + add;
}
