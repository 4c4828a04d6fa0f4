#!/usr/bin/env python3
"""Writes image_kernels.h: kernels with images, samplers, arrays of buffers, their addresses and chosen pointers, as C arrays of
SPIR-V, with glslc and spirv-as.

Usage: tests/spirv/image_kernels.py > tests/spirv/image_kernels.h      (GLSLC names another glslc)
"""
import os
import struct
import subprocess
import tempfile

HEAD = '#version 450\n#extension GL_EXT_samplerless_texture_functions : require\n#extension GL_EXT_nonuniform_qualifier : require\n#extension GL_EXT_buffer_reference : require\n'
KERNELS = [
    # 12 x 10: each texel, the one beside it, which may lie outside, and writes that go beyond all edges
    ('storage', '''layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0, rgba32f) readonly uniform image2D from;
layout(binding = 1, r32f) writeonly uniform image2D sum;
layout(binding = 2, rgba8) uniform image2D bytes;
layout(binding = 3, rgba16f) writeonly uniform image2D halves;
layout(push_constant) uniform P { vec3 scale; uint more; } p;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy) - 1, size = imageSize(from);
    precise vec4 texel = imageLoad(from, at) + imageLoad(from, at + ivec2(1, 0));
    precise float total = texel.x * p.scale.x + texel.w * p.scale.z + float(size.x * 100 + size.y + p.more);
    imageStore(sum, at, vec4(total));
    imageStore(bytes, at, imageLoad(bytes, at).wzyx + vec4(0.0, 0.25, -1.0, 0.0));
    imageStore(halves, at, texel * 0.5);
}'''),
    ('sampled', '''layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D image;
layout(binding = 1) writeonly buffer O { vec4 taken[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    precise vec2 where = (vec2(at) - 8.0) * 0.0625;
    taken[at.y * 32u + at.x] = textureLodOffset(image, where, 0.0, ivec2(2, -1));
    if (at.x == 3u && at.y == 2u)
        taken[0] = texelFetchOffset(image, ivec2(3, 0), 0, ivec2(-1, 1)) + vec4(textureSize(image, 0), textureQueryLevels(image), 0.0);
}'''),
    # image and sampler apart, in sets of their own; one channel of bytes in words of four
    ('apart', '''layout(local_size_x = 16) in;
layout(set = 1, binding = 0) uniform texture2D image;
layout(set = 1, binding = 4) uniform sampler taker;
layout(set = 2, binding = 7) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec2 where = vec2(float(i) * 0.125 - 1.0, float(i % 5u) * 0.25);
    taken[i] = textureLod(sampler2D(image, taker), where, 0.0);
}'''),
    # layers, three axes, one axis, texel buffers, integers
    ('axes', '''layout(local_size_x = 16) in;
layout(binding = 0) uniform sampler3D volume;
layout(binding = 1) uniform sampler2DArray layers;
layout(binding = 2, rg32i) readonly uniform iimage1D line;
layout(binding = 3, rgba32ui) readonly uniform uimageBuffer row;
layout(binding = 4) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec3 where = vec3(float(i) * 0.0625, float(i % 3u) * 0.375, float(i % 4u) * 0.25);
    precise vec4 a = textureLod(volume, where, 0.0);
    precise vec4 b = textureLod(layers, vec3(where.xy, float(i % 5u) - 1.0), 0.0);
    ivec2 c = imageLoad(line, int(i) - 2).xy;
    uvec4 d = imageLoad(row, int(i) / 2);
    taken[i * 2u] = a;
    taken[i * 2u + 1u] = vec4(b.xy, float(c.x - c.y), float(d.w + d.x + uint(imageSize(row) + imageSize(line))));
}'''),
    ('atomics', '''layout(local_size_x = 32) in;
layout(binding = 0, r32ui) uniform uimage2D counts;
layout(binding = 1, r32i) uniform iimage1D least;
void main() {
    uint i = gl_GlobalInvocationID.x;
    imageAtomicAdd(counts, ivec2(i % 5u, i / 5u % 3u), i);
    imageAtomicMin(least, int(i % 4u), -int(i));
}'''),
    # formats of fewer bits than a word, or other kinds of numbers: each texel is read, changed and written
    ('formats', '''layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0, r8) uniform image2D a;
layout(binding = 1, rg8ui) uniform uimage2D b;
layout(binding = 2, r8i) uniform iimage2D c;
layout(binding = 3, rgba8_snorm) uniform image2D d;
layout(binding = 4, r16f) uniform image2D e;
layout(binding = 5, r16ui) uniform uimage2D f;
layout(binding = 6, rgba16i) uniform iimage2D g;
layout(binding = 7, rg16) uniform image2D h;
layout(binding = 8, rgb10_a2) uniform image2D k;
layout(binding = 9, rgb10_a2ui) uniform uimage2D m;
layout(binding = 10, r11f_g11f_b10f) uniform image2D n;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(a, at, imageLoad(a, at) * 0.5);
    imageStore(b, at, imageLoad(b, at).yxzw + 3u);
    imageStore(c, at, imageLoad(c, at) >> 1);
    imageStore(d, at, imageLoad(d, at) * 0.5);
    imageStore(e, at, imageLoad(e, at) * 2.0 + vec4(float(at.x) * 0.25, 0.0, 0.0, 0.0));
    imageStore(f, at, imageLoad(f, at) ^ 0x5A5u);
    imageStore(g, at, imageLoad(g, at).wzyx >> 1);
    imageStore(h, at, imageLoad(h, at) * 0.25);
    imageStore(k, at, imageLoad(k, at).zyxw * 0.5);
    imageStore(m, at, imageLoad(m, at).yzxw);
    vec4 float_texel = imageLoad(n, at).zxyw;
    imageStore(n, at, at.x == 0 ? vec4(-1.0, 1e9, 70000.0, 0.0) : at.x == 1 ? vec4(float_texel.w) : float_texel);
}'''),
    # gathers: of texels of three bytes, with steps that are no constants; of layers; of integers
    ('gathers', '''layout(local_size_x = 32) in;
layout(binding = 0) uniform sampler2D image;
layout(binding = 1) uniform sampler2DArray layers;
layout(binding = 2) uniform isampler2D whole;
layout(binding = 3) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec2 where = vec2(float(i) * 0.0625 - 0.5, float(i % 7u) * 0.25 - 0.25);
    taken[i * 4u] = textureGather(image, where, 1);
    taken[i * 4u + 1u] = textureGatherOffset(image, where, ivec2(int(i % 3u) - 1, 1), 2);
    taken[i * 4u + 2u] = textureGatherOffset(layers, vec3(where, float(i % 4u)), ivec2(1, -2), 0);
    taken[i * 4u + 3u] = vec4(textureGather(whole, where, 3));
}'''),
    # comparisons with depths: of a linear sample, of layers, of a cube, of the four texels of a gather
    ('depths', '''#extension GL_EXT_texture_shadow_lod : require
layout(local_size_x = 32) in;
layout(binding = 0) uniform sampler2DShadow one;
layout(binding = 1) uniform sampler2DArrayShadow layers;
layout(binding = 2) uniform samplerCubeShadow cube;
layout(set = 1, binding = 0) uniform texture2D halves[2];
layout(set = 1, binding = 1) uniform samplerShadow taker;
layout(set = 2, binding = 0) writeonly buffer O { float taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec2 where = vec2(float(i) * 0.0625 - 0.5, float(i % 7u) * 0.25 - 0.25);
    float by = float(i % 9u) * 0.25 - 0.5;
    taken[i * 16u] = textureLod(one, vec3(where, by), 0.0);
    taken[i * 16u + 1u] = textureOffset(one, vec3(where, by), ivec2(-1, 2));
    taken[i * 16u + 2u] = texture(layers, vec4(where, float(i % 4u), by));
    taken[i * 16u + 3u] = texture(cube, vec4(where.x, 1.0, where.y, by));
    vec4 four = textureGather(one, where, by), moved = textureGatherOffset(layers, vec3(where, 1.0), by, ivec2(int(i % 3u), 1));
    for (uint k = 0u; k < 4u; k++) taken[i * 16u + 4u + k] = four[k], taken[i * 16u + 8u + k] = moved[k];
    taken[i * 16u + 12u] = textureLod(sampler2DShadow(halves[nonuniformEXT(i & 1u)], taker), vec3(where, by), 0.0);
}'''),
    # functions that are given images and samplers, alone and together, and give them on
    # one image by two names, each texel read by one and written by the other
    ('two_views', '''layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0, r32f) readonly uniform image2D from;
layout(binding = 0, r32f) writeonly uniform image2D to;
layout(binding = 1) writeonly buffer O { float taken[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    taken[at.y * 8 + at.x] = imageLoad(from, at).x + float(imageSize(to).x * 16 + imageSize(from).y);
    imageStore(to, at, imageLoad(from, at) * 2.0);
}'''),
    ('given', '''#extension GL_EXT_shader_image_load_formatted : require
layout(local_size_x = 32) in;
layout(binding = 0) uniform sampler2D one;
layout(binding = 1) uniform sampler2D other;
layout(binding = 2) uniform texture2D image;
layout(binding = 6) uniform sampler taker;
layout(binding = 3) readonly uniform image2D from;
layout(binding = 4) writeonly uniform image2D to;
layout(binding = 5) writeonly buffer O { vec4 taken[]; };
vec4 twice(sampler2D s, vec2 at) {
    precise vec4 x = textureLod(s, at, 0.0) * 0.75 + textureLod(s, at.yx, 0.0);
    return x;
}
vec4 both(sampler2D s, sampler2D t, float x) {
    precise vec4 sum = twice(s, vec2(x, 0.375)) + twice(t, vec2(0.5, x));
    return sum;
}
vec4 apart(texture2D t, sampler s, vec2 at) { return textureLod(sampler2D(t, s), at, 0.0); }
void move(readonly image2D a, writeonly image2D b, ivec2 at) {
    if (at.x < imageSize(b).x) imageStore(b, at, imageLoad(a, at.yx) + 1.0);
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    float x = float(i) * 0.03125 - 0.25;
    taken[i * 4u] = both(one, other, x);
    taken[i * 4u + 1u] = both(other, one, x);
    taken[i * 4u + 2u] = both(one, one, x);
    taken[i * 4u + 3u] = apart(image, taker, vec2(x, 0.5));
    move(from, to, ivec2(i % 8u, i / 8u));
}'''),
    # cubes: faces are chosen by a direction, and what lies beside an edge is on another face
    ('cubes', '''layout(local_size_x = 32) in;
layout(binding = 0) uniform samplerCube one;
layout(binding = 1) uniform samplerCubeArray some;
layout(binding = 2, r32f) readonly uniform imageCube faces;
layout(binding = 3) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec3 to = vec3(float(i % 9u) * 0.25 - 1.0, float(i / 9u % 9u) * 0.25 - 1.0, float(i % 7u) * 0.375 - 1.125);
    precise vec4 a = textureLod(one, to, 0.0);
    vec4 b = textureLod(some, vec4(to.zxy, float(i % 3u)), 0.0);
    taken[i * 3u] = a;
    taken[i * 3u + 1u] = textureGather(one, to, 1);
    taken[i * 3u + 2u] = vec4(b.x, b.z, float(textureSize(one, 0).x * 100 + textureSize(some, 0).z * 10 + imageSize(faces).y),
                              imageLoad(faces, ivec3(i % 5u, i % 3u, i % 6u)).x);
}'''),
    ('arrays', '''layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer A { float a[]; } from[3];
layout(binding = 1) uniform U { vec4 scale; } by[2];
layout(binding = 2) buffer D { uint total; float d[]; } to[2];
layout(push_constant) uniform P { uint turn; uint count; } p;
void main() {
    uint i = gl_GlobalInvocationID.x, which = (i + p.turn) % 3u;
    float x = from[nonuniformEXT(which)].a[i];
    if (i % 2u == 0u) x += from[1].a[i + 1u];
    x *= by[nonuniformEXT(i / 32u)].scale[i % 4u];
    to[nonuniformEXT(i % 2u)].d[i / 2u] = x;
    atomicAdd(to[nonuniformEXT(i % 2u)].total, uint(from[nonuniformEXT(which)].a.length()));
}'''),
    # arrays of images, of samplers and of as many buffers as the launch says, all chosen invocation by invocation
    ('image_arrays', '''layout(local_size_x = 32) in;
layout(set = 0, binding = 0) uniform texture2D pictures[3];
layout(set = 0, binding = 1) uniform sampler takers[2];
layout(set = 1, binding = 0, r32i) uniform iimage2D counters[2];
layout(set = 2, binding = 0) buffer B { int numbers[]; } open[];
layout(set = 3, binding = 0) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, k = i % 5u;
    precise vec2 where = vec2(float(i % 4u) * 0.25, float(i / 4u) * 0.0625);
    precise vec4 a = textureLod(sampler2D(pictures[nonuniformEXT(k)], takers[nonuniformEXT(i & 1u)]), where, 0.0);
    precise vec4 b = texelFetch(pictures[1], ivec2(i % 4u, i / 4u % 3u), 0);
    taken[i] = a + b;
    imageAtomicAdd(counters[nonuniformEXT(i % 2u)], ivec2(i % 3u, 0), int(i));
    if (i % 4u == 0u) imageStore(counters[nonuniformEXT(i / 4u % 2u)], ivec2(3, i / 4u), ivec4(i));
    open[nonuniformEXT(i & 1u)].numbers[i] += textureSize(pictures[nonuniformEXT(k)], 0).y;
}'''),
    # several samples of a texel: read, written, counted, and of layers
    ('samples', '''layout(local_size_x = 32) in;
layout(binding = 0) uniform texture2DMS from;
layout(binding = 1, r32i) uniform iimage2DMS to;
layout(binding = 2, r32i) uniform iimage2DMSArray layers;
layout(binding = 3) writeonly buffer O { vec4 taken[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise vec4 a = texelFetch(from, ivec2(i % 4u, i / 4u % 5u), int(i % 3u));
    taken[i] = a + vec4(textureSize(from), textureSamples(from), imageSamples(to));
    imageStore(to, ivec2(i % 4u, i / 16u), int(i / 4u % 4u), ivec4(i) + imageLoad(to, ivec2(i % 4u, i / 16u), 4));
    imageAtomicAdd(layers, ivec3(i % 2u, 0, i / 2u % 2u), int(i / 4u % 2u), int(i));
}'''),
    # images of which nothing is asked but how long they are, the last binding among them
    ('lengths', '''layout(local_size_x = 32) in;
layout(binding = 0) uniform texture2D one;
layout(binding = 1) writeonly buffer O { uint taken[]; };
layout(binding = 2, rgba8) writeonly uniform image2DArray other;
void main() {
    uint i = gl_GlobalInvocationID.x;
    ivec3 size = imageSize(other);
    taken[i] = i + uint(textureSize(one, 0).x * 1000 + size.x * 100 + size.y * 10 + size.z);
}'''),
]

# addresses in the push constants, beside a buffer that is bound
KERNELS.append(('addresses', '''layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer A { float scale; float a[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer D { float d[]; };
layout(binding = 3) readonly buffer B { float b[]; };
layout(push_constant) uniform P { uint count; A from; D to; float add; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    precise float x = p.from.a[min(i, p.count)] * p.from.scale + b[i] + p.add;
    if (i < p.count) p.to.d[i] = x;
}'''))

# The same as other compilers write it: pointers to numbers, which are stepped from, in a struct within the block.
ASSEMBLY = '''OpCapability Shader
OpCapability PhysicalStorageBufferAddresses
OpExtension "SPV_KHR_physical_storage_buffer"
OpMemoryModel PhysicalStorageBuffer64 GLSL450
OpEntryPoint GLCompute %main "main" %id %push
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %P ArrayStride 4
OpDecorate %Block Block
OpMemberDecorate %Block 0 Offset 0
OpMemberDecorate %Inner 0 Offset 0
OpMemberDecorate %Inner 1 Offset 8
OpMemberDecorate %Inner 2 Offset 16
%void = OpTypeVoid
%f = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%u3 = OpTypeVector %uint 3
%pi = OpTypePointer Input %u3
%id = OpVariable %pi Input
OpTypeForwardPointer %P PhysicalStorageBuffer
%Inner = OpTypeStruct %P %P %float
%Block = OpTypeStruct %Inner
%P = OpTypePointer PhysicalStorageBuffer %float
%pb = OpTypePointer PushConstant %Block
%pn = OpTypePointer PushConstant %Inner
%pp = OpTypePointer PushConstant %P
%pf = OpTypePointer PushConstant %float
%push = OpVariable %pb PushConstant
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%main = OpFunction %void None %f
%l = OpLabel
%i = OpLoad %u3 %id
%x = OpCompositeExtract %uint %i 0
%n = OpInBoundsAccessChain %pn %push %c0
%ra = OpInBoundsAccessChain %pp %n %c0
%a = OpLoad %P %ra
%rd = OpInBoundsAccessChain %pp %push %c0 %c1
%d = OpLoad %P %rd
%rs = OpInBoundsAccessChain %pf %n %c2
%s = OpLoad %float %rs
%first = OpLoad %float %a Aligned 4
%pa = OpPtrAccessChain %P %a %x
%va = OpLoad %float %pa Aligned 4
%m = OpFMul %float %va %s
%r = OpFAdd %float %m %first
%pd = OpPtrAccessChain %P %d %x
OpStore %pd %r Aligned 4
OpReturn
OpFunctionEnd
'''

# Pointers that are values: chosen, walking along an array, kept in a variable, given to functions and returned by one; into buffers
# and into shared memory.
POINTERS = '''OpCapability Shader
OpCapability VariablePointers
OpExtension "SPV_KHR_variable_pointers"
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id %local
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %local BuiltIn LocalInvocationId
OpDecorate %floats ArrayStride 4
OpDecorate %rows ArrayStride 32
OpDecorate %P ArrayStride 4
OpDecorate %PR ArrayStride 32
OpDecorate %A Block
OpMemberDecorate %A 0 Offset 0
OpMemberDecorate %row 0 Offset 0
OpMemberDecorate %row 1 Offset 16
OpDecorate %B Block
OpMemberDecorate %B 0 Offset 0
OpMemberDecorate %B 0 NonWritable
OpMemberDecorate %A2 0 Offset 0
OpMemberDecorate %A2 0 NonWritable
OpDecorate %A2 Block
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 2
OpDecorate %c DescriptorSet 0
OpDecorate %c Binding 3
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%u3 = OpTypeVector %uint 3
%pu3 = OpTypePointer Input %u3
%float = OpTypeFloat 32
%v4 = OpTypeVector %float 4
%floats = OpTypeRuntimeArray %float
%row = OpTypeStruct %float %v4
%rows = OpTypeRuntimeArray %row
%A = OpTypeStruct %floats
%A2 = OpTypeStruct %floats
%B = OpTypeStruct %rows
%PA = OpTypePointer StorageBuffer %A
%PA2 = OpTypePointer StorageBuffer %A2
%PB = OpTypePointer StorageBuffer %B
%P = OpTypePointer StorageBuffer %float
%PR = OpTypePointer StorageBuffer %row
%kept = OpTypePointer Function %P
%two = OpConstant %uint 2
%pair = OpTypeArray %P %two
%kepts = OpTypePointer Function %pair
%n32 = OpConstant %uint 32
%shared = OpTypeArray %float %n32
%PS = OpTypePointer Workgroup %shared
%W = OpTypePointer Workgroup %float
%id = OpVariable %pu3 Input
%local = OpVariable %pu3 Input
%a = OpVariable %PA2 StorageBuffer
%b = OpVariable %PB StorageBuffer
%c = OpVariable %PB StorageBuffer
%out = OpVariable %PA StorageBuffer
%left = OpVariable %PS Workgroup
%right = OpVariable %PS Workgroup
%i0 = OpConstant %int 0
%i1 = OpConstant %int 1
%m1 = OpConstant %int -1
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%three = OpConstant %uint 3
%four = OpConstant %uint 4
%n64 = OpConstant %uint 64
%f0 = OpConstant %float 0
%f2 = OpConstant %float 2
%wg = OpConstant %uint 264
%none = OpConstantNull %P
%tf = OpTypeFunction %float %P
%tg = OpTypeFunction %P %PR %uint
%twice = OpFunction %float None %tf
%tp = OpFunctionParameter %P
%tl = OpLabel
%tx = OpLoad %float %tp
%ty = OpFMul %float %tx %f2
OpReturnValue %ty
OpFunctionEnd
%lane = OpFunction %P None %tg
%lp = OpFunctionParameter %PR
%lk = OpFunctionParameter %uint
%ll = OpLabel
%lq = OpAccessChain %P %lp %i1 %lk
OpReturnValue %lq
OpFunctionEnd
%main = OpFunction %void None %fn
%begin = OpLabel
%hold = OpVariable %kept Function %none
%holds = OpVariable %kepts Function
%i3 = OpLoad %u3 %id
%i = OpCompositeExtract %uint %i3 0
%l3 = OpLoad %u3 %local
%l = OpCompositeExtract %uint %l3 0
%bit = OpBitwiseAnd %uint %i %one
%odd = OpINotEqual %bool %bit %zero
%which = OpUMod %uint %i %four
%pa = OpAccessChain %P %a %i0 %i
%pb = OpAccessChain %P %b %i0 %i %i1 %which
%sel = OpSelect %P %odd %pa %pb
%x = OpLoad %float %sel
OpBranch %loop
%loop = OpLabel
%p = OpPhi %P %pa %begin %next %more
%k = OpPhi %uint %zero %begin %k1 %more
%sum = OpPhi %float %f0 %begin %sum1 %more
%go = OpULessThan %bool %k %three
OpLoopMerge %done %more None
OpBranchConditional %go %body %done
%body = OpLabel
%e = OpLoad %float %p
%sum1 = OpFAdd %float %sum %e
OpBranch %more
%more = OpLabel
%next = OpPtrAccessChain %P %p %two
%k1 = OpIAdd %uint %k %one
OpBranch %loop
%done = OpLabel
%back = OpPtrAccessChain %P %p %m1
%y = OpLoad %float %back
OpStore %hold %sel
%h0 = OpAccessChain %kept %holds %zero
%h1 = OpAccessChain %kept %holds %one
OpStore %h0 %pb
OpStore %h1 %back
%hk = OpAccessChain %kept %holds %bit
%held = OpLoad %P %hk
%z = OpLoad %float %held
%again = OpLoad %P %hold
%t1 = OpFunctionCall %float %twice %again
%t2 = OpFunctionCall %float %twice %pa
%pr = OpAccessChain %PR %b %i0 %i
%pc = OpAccessChain %PR %c %i0 %i
%pr1 = OpPtrAccessChain %PR %pc %one
%prs = OpSelect %PR %odd %pr %pr1
%q = OpFunctionCall %P %lane %prs %which
%u = OpLoad %float %q
%s0 = OpAccessChain %W %left %l
%s1 = OpAccessChain %W %right %l
%sw = OpSelect %W %odd %s0 %s1
%so = OpSelect %W %odd %s1 %s0
OpStore %sw %x
OpStore %so %y
OpControlBarrier %two %two %wg
%other = OpBitwiseXor %uint %l %three
%r0 = OpAccessChain %W %left %other
%r1 = OpAccessChain %W %right %other
%rw = OpSelect %W %odd %r0 %r1
%v = OpLoad %float %rw
%w1 = OpFAdd %float %x %sum
%w2 = OpFAdd %float %w1 %y
%w3 = OpFAdd %float %w2 %z
%w4 = OpFAdd %float %w3 %t1
%w5 = OpFAdd %float %w4 %t2
%w6 = OpFAdd %float %w5 %u
%w7 = OpFAdd %float %w6 %v
%far = OpIAdd %uint %i %n64
%o0 = OpAccessChain %P %out %i0 %i
%o1 = OpAccessChain %P %out %i0 %far
%o = OpSelect %P %odd %o0 %o1
OpStore %o %w7
OpReturn
OpFunctionEnd
'''

# Atomic operations that name memory and no order, and a barrier with an order of no memory, as naga writes them.
LOOSE = '''OpCapability Shader
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %ints ArrayStride 4
OpDecorate %A Block
OpMemberDecorate %A 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%u3 = OpTypeVector %uint 3
%pu3 = OpTypePointer Input %u3
%ints = OpTypeRuntimeArray %int
%A = OpTypeStruct %ints
%PA = OpTypePointer StorageBuffer %A
%P = OpTypePointer StorageBuffer %int
%id = OpVariable %pu3 Input
%out = OpVariable %PA StorageBuffer
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%c3 = OpConstant %uint 3
%memory = OpConstant %uint 64
%order = OpConstant %uint 8
%seven = OpConstant %int 7
%much = OpConstant %int 12345
%main = OpFunction %void None %fn
%l = OpLabel
%i3 = OpLoad %u3 %id
%u = OpCompositeExtract %uint %i3 0
%i = OpBitcast %int %u
%p0 = OpAccessChain %P %out %c0 %c0
%p1 = OpAccessChain %P %out %c0 %c1
%p2 = OpAccessChain %P %out %c0 %c2
%p3 = OpAccessChain %P %out %c0 %c3
%a = OpAtomicIAdd %int %p0 %c1 %memory %i
%b = OpAtomicSMax %int %p1 %c1 %memory %i
OpControlBarrier %c2 %c2 %order
OpAtomicStore %p2 %c1 %memory %seven
%c = OpAtomicLoad %int %p2 %c1 %memory
%d = OpAtomicCompareExchange %int %p3 %c1 %memory %memory %i %much
OpReturn
OpFunctionEnd
'''


# addresses that stand in memory, are followed, chosen, stepped on from and computed
MEMORY = '''OpCapability Shader
OpCapability PhysicalStorageBufferAddresses
OpExtension "SPV_KHR_physical_storage_buffer"
OpMemoryModel PhysicalStorageBuffer64 GLSL450
OpEntryPoint GLCompute %main "main" %id
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %Nodes ArrayStride 8
OpDecorate %Xs ArrayStride 4
OpDecorate %Floats ArrayStride 4
OpDecorate %P ArrayStride 48
OpMemberDecorate %Node 0 Offset 0
OpMemberDecorate %Node 1 Offset 8
OpMemberDecorate %Node 2 Offset 20
OpMemberDecorate %Node 3 Offset 24
OpMemberDecorate %Node 3 RowMajor
OpMemberDecorate %Node 3 MatrixStride 8
OpDecorate %Roots Block
OpMemberDecorate %Roots 0 Offset 0
OpDecorate %Out Block
OpMemberDecorate %Out 0 Offset 0
OpDecorate %roots DescriptorSet 0
OpDecorate %roots Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
OpDecorate %s1 NoContraction
OpDecorate %s2 NoContraction
OpTypeForwardPointer %P PhysicalStorageBuffer
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%float = OpTypeFloat 32
%u2 = OpTypeVector %uint 2
%u3 = OpTypeVector %uint 3
%v2 = OpTypeVector %float 2
%v3 = OpTypeVector %float 3
%m23 = OpTypeMatrix %v3 2
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%c3 = OpConstant %uint 3
%c4 = OpConstant %uint 4
%c5 = OpConstant %uint 5
%c6 = OpConstant %uint 6
%c64 = OpConstant %uint 64
%back = OpConstant %int -1
%zero = OpConstant %float 0
%half = OpConstant %float 7.5
%c8 = OpConstant %uint 8
%step = OpConstantComposite %u2 %c8 %c0
%Xs = OpTypeArray %float %c3
%Node = OpTypeStruct %P %Xs %uint %m23
%P = OpTypePointer PhysicalStorageBuffer %Node
%PP = OpTypePointer PhysicalStorageBuffer %P
%PF = OpTypePointer PhysicalStorageBuffer %float
%PU = OpTypePointer PhysicalStorageBuffer %uint
%PV = OpTypePointer PhysicalStorageBuffer %v3
%PM = OpTypePointer PhysicalStorageBuffer %m23
%Nodes = OpTypeArray %P %c4
%Roots = OpTypeStruct %Nodes
%Floats = OpTypeRuntimeArray %float
%Out = OpTypeStruct %Floats
%PRoots = OpTypePointer StorageBuffer %Roots
%POut = OpTypePointer StorageBuffer %Out
%SP = OpTypePointer StorageBuffer %P
%SF = OpTypePointer StorageBuffer %float
%PId = OpTypePointer Input %u3
%LP = OpTypePointer Function %P
%given = OpTypeFunction %float %P %uint
%id = OpVariable %PId Input
%roots = OpVariable %PRoots StorageBuffer
%out = OpVariable %POut StorageBuffer
%main = OpFunction %void None %fn
%begin = OpLabel
%kept = OpVariable %LP Function
%id3 = OpLoad %u3 %id
%i = OpCompositeExtract %uint %id3 0
%turn = OpUMod %uint %i %c3
%odd = OpBitwiseAnd %uint %i %c1
%isodd = OpINotEqual %bool %odd %c0
%at0 = OpAccessChain %SP %roots %c0 %turn
%first = OpLoad %P %at0
OpStore %kept %first
OpBranch %head
%head = OpLabel
%k = OpPhi %uint %c0 %begin %kn %body
%n = OpPhi %P %first %begin %next %body
%sum = OpPhi %float %zero %begin %s2 %body
OpLoopMerge %done %body None
OpBranch %body
%body = OpLabel
%x = OpFunctionCall %float %taken %n %turn
%pm = OpAccessChain %PF %n %c3 %odd %c1
%y = OpLoad %float %pm Aligned 4
%s1 = OpFAdd %float %x %y
%s2 = OpFAdd %float %sum %s1
%pu = OpAccessChain %PU %n %c2
%old = OpAtomicIAdd %uint %pu %c1 %c0 %c1
%pp = OpAccessChain %PP %n %c0
%next = OpLoad %P %pp Aligned 8
%kn = OpIAdd %uint %k %c1
%more = OpULessThan %bool %kn %c3
OpBranchConditional %more %head %done
%done = OpLabel
%to = OpAccessChain %SF %out %c0 %i
OpStore %to %s2
%is5 = OpIEqual %bool %i %c5
OpSelectionMerge %after5 None
OpBranchConditional %is5 %then5 %after5
%then5 = OpLabel
%at3 = OpAccessChain %SP %roots %c0 %c3
%last = OpLoad %P %at3
%behind = OpPtrAccessChain %PM %last %back %c3
%lastm = OpAccessChain %PM %last %c3
%m = OpLoad %m23 %behind Aligned 8
OpStore %lastm %m Aligned 8
%column = OpAccessChain %PV %last %c3 %c1
%col = OpLoad %v3 %column Aligned 4
%ncol = OpFNegate %v3 %col
OpStore %column %ncol Aligned 4
%lastn = OpAccessChain %PP %last %c0
%own = OpLoad %P %kept
%choice = OpSelect %P %isodd %own %last
OpStore %lastn %choice Aligned 8
OpBranch %after5
%after5 = OpLabel
%is6 = OpIEqual %bool %i %c6
OpSelectionMerge %after6 None
OpBranchConditional %is6 %then6 %after6
%then6 = OpLabel
%asu = OpBitcast %u2 %next
%far = OpIAdd %u2 %asu %step
%some = OpBitcast %PF %far
%nothing = OpLoad %float %some Aligned 4
%to64 = OpAccessChain %SF %out %c0 %c64
OpStore %to64 %nothing
OpBranch %after6
%after6 = OpLabel
OpReturn
OpFunctionEnd
%taken = OpFunction %float None %given
%np = OpFunctionParameter %P
%ni = OpFunctionParameter %uint
%tb = OpLabel
%px = OpAccessChain %PF %np %c1 %ni
%xv = OpLoad %float %px Aligned 4
OpReturnValue %xv
OpFunctionEnd
'''


def assembled(source, environment='spv1.5'):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'k.spvasm')
        with open(path, 'w') as file:
            file.write(source)
        subprocess.run(['spirv-as', '--target-env', environment, path, '-o', path + '.spv'], check=True)
        data = open(path + '.spv', 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


def made(source, option):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'k.comp')
        with open(path, 'w') as file:
            file.write(HEAD + source)
        subprocess.run([os.environ.get('GLSLC', 'glslc'), option, '--target-env=vulkan1.' + ('3' if option == '-O0' else '1'),
                        path, '-o', path + '.spv'], check=True)
        data = open(path + '.spv', 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


rows = []


def put(name, ending, option, words):
    print('static const uint32_t image_%s[] = {' % (name + ending))
    for i in range(0, len(words), 12):
        print(' '.join('0x%08x,' % w for w in words[i:i + 12]))
    print('};')
    rows.append('    { "%s", "%s", image_%s, sizeof image_%s },' % (name, option, name + ending, name + ending))


print('/* Made by image_kernels.py. Do not edit. */')
for name, source in KERNELS:
    for option, ending in (('-O', ''), ('-O0', '_plain')):
        put(name, ending, option, made(source, option))
put('stepped', '', 'assembled', assembled(ASSEMBLY))
put('memory', '', 'assembled', assembled(MEMORY, 'spv1.3'))
put('loose', '', 'assembled', assembled(LOOSE, 'spv1.3'))
put('pointers', '', 'assembled', assembled(POINTERS, 'spv1.3'))
print('static const struct { const char *name, *option; const uint32_t *words; size_t bytes; } image_kernels[] = {')
print('\n'.join(rows))
print('};')
