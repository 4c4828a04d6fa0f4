#!/usr/bin/env python3
"""Writes spirv_fixtures.h: small SPIR-V modules as C arrays, from the sources below, with glslc and spirv-as.

Usage: tests/unit/spirv_fixtures.py > tests/unit/spirv_fixtures.h      (GLSLC names another glslc)
Cooperative matrices need glslc 2023.8 or newer. Building heddle and its tests needs neither tool.
"""
import os
import struct
import subprocess
import tempfile

FIXTURES = [
    ('add', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const float SCALE = 1.5;
layout(push_constant) uniform Push { uint count; float bias; } push;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < push.count) c[i] = a[i] * SCALE + b[i] + push.bias;
}'''),
    ('uniform_buffer', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform Params { float scale; } params;
layout(set = 0, binding = 1) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= params.scale; }'''),
    ('image', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32f) uniform image2D picture;
void main() { imageStore(picture, ivec2(gl_GlobalInvocationID.xy), vec4(1)); }'''),
    ('other_set', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 64) in;
layout(set = 2, binding = 1) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] = 0; }'''),
    ('far_binding', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 16) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] = 0; }'''),
    ('subgroup', 'glslc -O --target-env=vulkan1.1', '''#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_clustered : require
layout(local_size_x = 64, local_size_y = 2) in;
layout(set = 0, binding = 0) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 1) buffer Y { vec4 y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec4 sum = subgroupAdd(x[i]) + subgroupClusteredMax(x[i + 1], 4) + subgroupShuffleXor(x[i], 3);
    uint lanes = subgroupBallotBitCount(subgroupBallot(sum.x > 0.0));
    if (subgroupElect()) y[gl_SubgroupID] = sum * float(lanes + gl_SubgroupSize);
}'''),
    ('narrow', 'glslc -O --target-env=vulkan1.1', '''#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 32) in;
struct Block { float16_t scale; uint8_t nibbles[16]; };
layout(set = 0, binding = 0) readonly buffer W { Block w[]; };
layout(set = 0, binding = 1) buffer X { float16_t x[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = uint(w[i / 32].nibbles[i & 15]);
    x[i] = float16_t(float(w[i / 32].scale) * (float(n & 15u) - 8.0));
}'''),
    ('shared_memory', 'glslc -O --target-env=vulkan1.1', '''#version 450
layout(local_size_x_id = 0, local_size_y_id = 1) in;
layout(constant_id = 2) const uint TILE = 16;
layout(constant_id = 4) const bool DOUBLE = false;
shared vec3 tile[TILE * TILE];
shared uint total;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(set = 0, binding = 1) buffer N { uint n; };
void main() {
    uint i = gl_LocalInvocationIndex;
    if (i == 0) total = 0;
    tile[i] = vec3(x[i], x[i + 1], x[i + 2]);
    barrier();
    float sum = 0;
    for (uint k = 0; k < TILE; k++) {
        if (tile[k].x < 0) continue;
        if (tile[k].y > 9) break;
        sum += dot(tile[k], tile[k ^ 1]);
    }
    atomicAdd(total, uint(sum));
    barrier();
    if (i == 0) atomicMax(n, DOUBLE ? total * 2 : total);
    memoryBarrierBuffer();
}'''),
    ('calls', 'glslc --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;
layout(set = 0, binding = 0) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 3) buffer Y { vec4 y[]; };
layout(set = 0, binding = 5) buffer Unused { vec4 z[]; };
float pick(inout float best, vec4 v, int how) {
    switch (how) {
    case 0: return v.x;
    case 1: best += v.y;
    case 2: best *= 2.0; break;
    default: { float whole; best = modf(v.z, whole) + whole; }
    }
    return ldexp(best, 2);
}
void main() {
    float best = -1e30, sum = 0;
    int k = 0;
    do {
        sum += pick(best, x[k].wzyx, k & 3);
        for (int j = 0; j < k; j++) { if (j == 3) break; if (sum > 5) return; sum += mix(best, sum, 0.5); }
    } while (++k < 8);
    mat3 m = mat3(best);
    y[gl_GlobalInvocationID.x] = vec4(m * vec3(sum, best, 1), length(m[1])) + vec4(unpackHalf2x16(floatBitsToUint(sum)), 0, 0);
}'''),
    ('push_layout', 'glslc --target-env=vulkan1.1', '''#version 450
layout(local_size_x = 1) in;
struct Inner { vec2 a[2]; float b; };
layout(push_constant) uniform Push {
    layout(offset = 8) uint first;
    Inner inner[2];
    layout(row_major) mat3x2 rows;
    mat2x3 columns[1];
} push;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { x[0] = push.inner[1].b + push.rows[2].y + push.columns[0][1].z + float(push.first); }'''),
    ('buffer_block', 'glslc -O --target-env=vulkan1.0', '''#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) buffer B { int count; int b[]; };
void main() { b[atomicAdd(count, 1)] = a[gl_GlobalInvocationID.x] + b.length(); }'''),
    ('size_by_id', 'glslc --target-env=vulkan1.3', '''#version 450
layout(local_size_x_id = 7, local_size_y = 2) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { x[gl_LocalInvocationIndex] = float(gl_WorkGroupSize.x); }'''),
    ('matrix', 'glslc -O --target-env=vulkan1.1', '''#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
void main() {
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> ma;
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> mb;
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> mc =
        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0);
    coopMatLoad(ma, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(mb, b, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    mc = coopMatMulAdd(ma, mb, mc);
    coopMatStore(mc, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
}'''),
    ('two_entries', 'spirv-as --target-env vulkan1.1', '''OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %fill "fill"
OpEntryPoint GLCompute %scale "scale"
OpExecutionMode %fill LocalSize 8 1 1
OpExecutionMode %scale LocalSize 1 4 1
OpName %params "params"
OpDecorate %floats ArrayStride 4
OpDecorate %buffer Block
OpMemberDecorate %buffer 0 Offset 0
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %x DescriptorSet 0
OpDecorate %x Binding 1
OpDecorate %params DescriptorSet 0
OpDecorate %params Binding 0
%void = OpTypeVoid
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%half = OpConstant %float 0.5
%floats = OpTypeRuntimeArray %float
%buffer = OpTypeStruct %floats
%block = OpTypeStruct %float
%to_buffer = OpTypePointer StorageBuffer %buffer
%to_block = OpTypePointer Uniform %block
%to_element = OpTypePointer StorageBuffer %float
%to_scale = OpTypePointer Uniform %float
%x = OpVariable %to_buffer StorageBuffer
%params = OpVariable %to_block Uniform
%function = OpTypeFunction %void
%fill = OpFunction %void None %function
%fill_entry = OpLabel
%element = OpAccessChain %to_element %x %zero %zero
OpStore %element %half
OpReturn
OpFunctionEnd
%scale = OpFunction %void None %function
%scale_entry = OpLabel
%where = OpAccessChain %to_element %x %zero %zero
%from = OpAccessChain %to_scale %params %zero
%a = OpLoad %float %where
%b = OpLoad %float %from
%c = OpFMul %float %a %b
OpStore %where %c
OpReturn
OpFunctionEnd'''),
]


def build(command, source):
    tool, *options = command.split()
    with tempfile.TemporaryDirectory() as folder:
        into = os.path.join(folder, 'out.spv')
        name = os.path.join(folder, 'in.comp')
        open(name, 'w').write(source)
        if tool == 'glslc':
            tool = os.environ.get('GLSLC', 'glslc')
        subprocess.run([tool, *options, name, '-o', into], check=True)
        data = open(into, 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


print('/* Made by spirv_fixtures.py: small modules, each below the source that it was made from. */')
print('#ifndef SPIRV_FIXTURES_H\n#define SPIRV_FIXTURES_H\n\n#include <stddef.h>\n#include <stdint.h>')
for name, command, source in FIXTURES:
    words = build(command, source)
    print('\n/* %s\n%s */' % (command, source))
    print('static const uint32_t fixture_%s[] = {' % name)
    for i in range(0, len(words), 12):
        print('    ' + ' '.join('0x%x,' % word for word in words[i:i + 12]))
    print('};')
print('\nstatic const struct { const char *name; const uint32_t *words; size_t bytes; } fixtures[] = {')
for name, _, _ in FIXTURES:
    print('    { "%s", fixture_%s, sizeof fixture_%s },' % (name, name, name))
print('};\n#endif')
