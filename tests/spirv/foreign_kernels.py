#!/usr/bin/env python3
"""Writes foreign_kernels.h: kernels that asked more of heddle than its own do, as C arrays of SPIR-V, with glslc and spirv-as.

Usage: tests/spirv/foreign_kernels.py > tests/spirv/foreign_kernels.h      (GLSLC and SPIRV_AS name others)
"""
import os
import struct
import subprocess
import tempfile

HEAD = '''#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
layout(push_constant) uniform P { uint n; uint m; } p;
shared float s[32];
'''
# Each round meets at a barrier that some rounds pass by: in a branch, behind a continue, behind a return.
LOOP = 'for (uint g = gl_WorkGroupID.x; g < p.n; g += gl_NumWorkGroups.x)'
KERNELS = [
    ('branch', HEAD + '''void main() {
    uint t = gl_LocalInvocationID.x;
    ''' + LOOP + ''' {
        if ((g * 32u + t) / 32u < p.m) {
            s[t] = a[g * 32u + t];
            barrier();
            float x = s[t ^ 1u];
            barrier();
            s[t] = x * 2.0;
            barrier();
            d[g * 32u + t] = s[t ^ 1u] + x;
        }
    }
}'''),
    ('continues', HEAD + '''void main() {
    uint t = gl_LocalInvocationID.x;
    ''' + LOOP + ''' {
        if (g >= p.m) continue;
        s[t] = a[g * 32u + t];
        barrier();
        for (uint k = 4u; k > 0u; k >>= 1) { if (t % 8u < k) s[t] += s[t + k]; barrier(); }
        d[g * 32u + t] = s[t / 8u * 8u];
        if (t % 3u == 0u) continue;
        d[g * 32u + t] += 1.0;
    }
}'''),
    ('returns', HEAD + '''void work(uint g) {
    uint t = gl_LocalInvocationID.x;
    if (g >= p.m) return;
    s[t] = a[g * 32u + t];
    barrier();
    float x = s[t ^ 1u];
    barrier();
    s[t] = x * 2.0;
    barrier();
    d[g * 32u + t] = s[t ^ 1u] + x;
}
void main() { ''' + LOOP + ''' work(g); }'''),
    ('two_of_one', '''#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint BLOCK = 4;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() { d[gl_GlobalInvocationID.x] = float(BLOCK * 1000u + gl_WorkGroupSize.x); }'''),
    ('wide', '''#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() { double x = double(a[gl_GlobalInvocationID.x]); d[gl_GlobalInvocationID.x] = float(x * 3.0lf); }'''),
    ('doubles', '''#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uvec2 words = unpackDouble2x32(double(a[gl_GlobalInvocationID.x]));
    d[gl_GlobalInvocationID.x] = float(packDouble2x32(uvec2(words.x, words.y ^ 0x80000000u)));
}'''),
    # written first, written and read, read
    ('roles', '''#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) writeonly buffer D { float d[]; };
layout(std430, binding = 1) buffer S { uint s[]; };
layout(std430, binding = 2) readonly buffer A { float a[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    d[i] = a[i] * 2.0;
    s[i] += i;
}'''),
    # a uniform block, as std140 lays it out, and buffers in three sets
    ('uniforms', '''#version 450
layout(local_size_x = 32) in;
layout(std430, set = 0, binding = 0) readonly buffer A { float a[]; };
layout(std140, set = 1, binding = 2) uniform U { vec4 scale; float t[4]; mat3x2 m; layout(row_major) mat2x3 r; } u;
layout(std430, set = 2, binding = 5) buffer D { float d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    d[i] = a[i] * u.scale[i % 4u] + u.t[i / 4u % 4u] + u.m[2].y + u.r[1].z;
}'''),
    # shared memory that begins with zeros, whatever other workgroups leave there
    ('zeros', '''#version 450
#extension GL_EXT_null_initializer : require
layout(local_size_x = 8, local_size_y = 4) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
struct row { float x; uint n[3]; vec2 v; bool b; };
shared row rows[7] = { };
shared float many[70][5] = { };
shared mat3x2 m = { };
shared uint count = { };
void main() {
    uint t = gl_LocalInvocationIndex, i = gl_WorkGroupID.x * 32u + t;
    float sum = 0.0;
    for (int k = 0; k < 7; k++) {
        for (int j = 0; j < 3; j++) sum += float(rows[k].n[j]);
        sum += rows[k].x + rows[k].v.x + rows[k].v.y + (rows[k].b ? 1.0 : 0.0);
    }
    for (int k = 0; k < 350; k++) sum += many[k / 5][k % 5];
    for (int k = 0; k < 6; k++) sum += m[k / 2][k % 2];
    atomicAdd(count, t);
    barrier();
    if (t < 7u) rows[t] = row(1.0, uint[3](1u, 2u, t), vec2(t), true);
    for (uint k = t; k < 350u; k += 32u) many[k / 5u][k % 5u] = 3.0;
    m[t / 2u % 3u][t % 2u] = 5.0;
    d[i] = a[i] + sum + float(count);
}'''),
    # likewise, as many as a specialisation constant says, set by as many invocations as it says
    ('zeros_sized', '''#version 450
#extension GL_EXT_null_initializer : require
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint BLOCK = 4;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
shared vec3 many[BLOCK * 3 + 1] = { };
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec3 sum = vec3(a[i]);
    for (uint k = 0u; k <= BLOCK * 3u; k++) sum += many[k];
    barrier();
    for (uint k = 0u; k <= BLOCK * 3u; k++) many[k] = vec3(7.0);
    d[i] = sum.x + sum.y + sum.z;
}'''),
    # what the lanes of a subgroup do by later extensions and one vendor's, the same for every size from 4 on
    ('quads', '''#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_rotate : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_shader_quad_control : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    float x = a[i];
    vec2 turned = subgroupRotate(vec2(x, float(i & 3u)), 5u);
    float near = subgroupClusteredRotate(x, 3u, 4u);
    bool any = subgroupQuadAny(x > 2.0), all = subgroupQuadAll(x < 2.0), none = subgroupQuadAny(false);
    d[i] = near + turned.y * 8.0 + (any ? 64.0 : 0.0) + (all ? 128.0 : 0.0) + (none ? 256.0 : 0.0);
}'''),
    ('partitions', '''#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_NV_shader_subgroup_partitioned : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, quad = i / 4u, odd = i & 1u;
    uvec4 of_quad = subgroupPartitionNV(vec2(float(quad), -1.0)), of_odd = subgroupPartitionNV(odd == 1u);
    uint count = subgroupBallotBitCount(of_quad) * 100u + subgroupBallotBitCount(of_odd) * 40u / gl_SubgroupSize;
    uint own = uint(subgroupInverseBallot(of_quad)) + uint(subgroupInverseBallot(of_odd));
    float sum = subgroupPartitionedAddNV(a[i], of_quad), upto = subgroupPartitionedInclusiveAddNV(a[i], of_quad);
    ivec2 least = subgroupPartitionedMinNV(ivec2(i, -int(i)), of_quad);
    int before = subgroupPartitionedExclusiveMaxNV(int(i & 3u), of_quad);
    bool none = subgroupPartitionedAndNV(a[i] > 0.0, of_quad);
    double product = subgroupPartitionedMulNV(1.0, of_quad);
    float result = float(count + own) + sum + upto + float(least.x) * 0.5 + float(least.y) * 0.25;
    result += float(before & 7) * 16.0;
    d[i] = result + (none ? 1000.0 : 0.0) + float(product);
}'''),
    # where not all lanes come along
    ('some_partitions', '''#version 450
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_NV_shader_subgroup_partitioned : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    float x = a[i];
    if (i % 8u < 5u) {
        uvec4 of_quad = subgroupPartitionNV(i / 4u);
        x = subgroupPartitionedAddNV(x, of_quad) + float(subgroupBallotBitCount(of_quad));
    }
    d[i] = x;
}'''),
    # a value that a rotation gives goes to a buffer that is chosen; a sum of two truths
    ('rotated', '''#version 450
#extension GL_KHR_shader_subgroup_rotate : require
#extension GL_NV_shader_subgroup_partitioned : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; } outs[1];
void main() {
    uint t = gl_GlobalInvocationID.x;
    float next = subgroupClusteredRotate(a[t], 1u, 4u);
    bvec2 some = subgroupPartitionedOrNV(bvec2(a[t] > 2.0, false), subgroupPartitionNV(t / 4u));
    outs[t >> 31].d[t] = next;
    outs[t >> 30].d[t] += some.x && !some.y ? 64.0 : 0.0;
}'''),
    # AMD's least, greatest and middle of three, and the faces of a cube
    ('of_three', '''#version 450
#extension GL_AMD_shader_trinary_minmax : require
#extension GL_AMD_gcn_shader : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint t = gl_GlobalInvocationID.x;
    vec3 v = vec3(a[t], a[t + 1u], a[t + 2u]);
    ivec2 w = ivec2(v.xy * 16.0);
    uvec3 u = uvec3(t, 40u, t * 7u % 64u);
    float sum = min3(v.x, v.y, v.z) + 2.0 * mid3(v.x, v.y, v.z) + 4.0 * max3(v.x, v.y, v.z);
    ivec2 least = min3(w, w.yx, ivec2(-3)), middle = mid3(w, w.yx, ivec2(-3));
    sum += float(least.x + middle.y + max3(w.x, w.y, -3)) + float(min3(u.x, u.y, u.z) + mid3(u.x, u.y, u.z) + max3(u.x, u.y, u.z));
    vec2 at = cubeFaceCoordAMD(v);
    d[t] = sum + 100.0 * cubeFaceIndexAMD(v) + 8.0 * at.x + 16.0 * at.y;
}'''),
    # AMD's swizzles, of which some read from lanes that are not there
    ('swizzles', '''#version 450
#extension GL_AMD_shader_ballot : require
#extension GL_ARB_gpu_shader_int64 : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint t = gl_GlobalInvocationID.x;
    float x = swizzleInvocationsAMD(a[t], uvec4(3, 2, 0, 0));
    vec2 y = swizzleInvocationsMaskedAMD(vec2(a[t], 1.0), uvec3(30, 0, 2));
    float z = writeInvocationAMD(0.0, 512.0, 1u);
    float before = float(mbcntAMD(0x5ul));
    d[t] = x + y.x + y.y;
    if (gl_LocalInvocationID.x < 4u) d[t] += z + before * 16.0;
    if (t % 4u != 3u) d[t] += 1024.0 * swizzleInvocationsAMD(1.0, uvec4(3, 0, 1, 2));
}'''),
    # derivatives along quads of four invocations in a row
    ('derived', '''#version 450
#extension GL_NV_compute_shader_derivatives : require
layout(local_size_x = 32) in;
layout(derivative_group_linearNV) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer D { float d[]; };
void main() {
    uint t = gl_GlobalInvocationID.x;
    vec2 v = vec2(a[t], a[t] * 2.0);
    d[t] = dFdxFine(v).y + 16.0 * dFdyFine(a[t]) + 64.0 * dFdxCoarse(a[t]) + 256.0 * dFdyCoarse(a[t]) + 1024.0 * fwidthFine(a[t]);
}'''),
    # one block of shared memory that says how it is laid out; members of a buffer in any order
    ('laid_out', '''#version 450
#extension GL_EXT_shared_memory_block : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer A { layout(offset = 8) float second; layout(offset = 0) float first; layout(offset = 12) float more[]; };
layout(std430, binding = 1) buffer D { float d[]; };
shared S { layout(offset = 16) float here[32]; layout(offset = 256) uint there; } s;
void main() {
    uint t = gl_LocalInvocationID.x;
    s.here[t] = more[t];
    if (t == 5u) s.there = 3u;
    barrier();
    d[gl_GlobalInvocationID.x] = s.here[t ^ s.there] + first * 16.0 + second * 256.0;
}'''),
    # specialisation constants of 64 and of 16 bits
    ('specs', '''#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 32) in;
layout(std430, binding = 1) buffer D { float d[]; };
layout(constant_id = 0) const int64_t wide = 7l;
layout(constant_id = 1) const int64_t other = -8l;
layout(constant_id = 2) const int16_t narrow = -3s;
void main() { d[gl_GlobalInvocationID.x] = float(int(wide)) * 4.0 + float(int(other)) + float(int(narrow)); }'''),
]

# What glslc does not make: from one buffer of floats to another.
ASSEMBLY = '''OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %rt ArrayStride 4
OpMemberDecorate %B 0 Offset 0
OpDecorate %B BufferBlock
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
%void = OpTypeVoid
%f = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%v2 = OpTypeVector %float 2
%v3 = OpTypeVector %float 3
%v4 = OpTypeVector %float 4
%u3 = OpTypeVector %uint 3
%pi = OpTypePointer Input %u3
%id = OpVariable %pi Input
%rt = OpTypeRuntimeArray %float
%B = OpTypeStruct %rt
%pB = OpTypePointer Uniform %B
%a = OpVariable %pB Uniform
%b = OpVariable %pB Uniform
%pu = OpTypePointer Uniform %float
%pfu = OpTypePointer Function %float
%c0 = OpConstant %uint 0
%c3 = OpConstant %uint 3
%c4 = OpConstant %uint 4
%f7 = OpConstant %float 7
%f3 = OpConstant %float 3
%f4 = OpConstant %float 4
%f1 = OpConstant %float 1
%arr = OpTypeArray %float %c4
%pa = OpTypePointer Function %arr
%tab = OpConstantComposite %arr %f7 %f3 %f4 %f1
%weights = OpConstantComposite %v4 %f7 %f3 %f4 %f1
%main = OpFunction %void None %f
%l = OpLabel
VARIABLES
%i = OpLoad %u3 %id
%x = OpCompositeExtract %uint %i 0
%r = OpAccessChain %pu %a %c0 %x
%w = OpLoad %float %r
BODY
%q = OpAccessChain %pu %b %c0 %x
OpStore %q %result
OpReturn
OpFunctionEnd
'''
ASSEMBLED = [
    # an array that only a variable begins with
    ('begins', '%var = OpVariable %pa Function %tab', '''%low = OpBitwiseAnd %uint %x %c3
%p = OpAccessChain %pfu %var %low
%v = OpLoad %float %p
%result = OpFAdd %float %v %w'''),
    # a shuffle of vectors of two and three: w 3 1 w
    ('shuffles', '', '''%short = OpCompositeConstruct %v2 %w %f1
%long = OpCompositeConstruct %v3 %f4 %f3 %w
%four = OpVectorShuffle %v4 %short %long 0 3 1 4
%result = OpDot %float %four %weights'''),
    # composites of one value, a fused multiply-add, products of halves; the middle one of three cases of 64 bits
    ('spelled', '', '''%two = OpCompositeConstructReplicateEXT %v4 %w
%dot = OpDot %float %two %ones
%fused = OpFmaKHR %float %dot %f4 %f7
%lots = OpUConvert %ulong %x
%big = OpIAdd %ulong %lots %four_g
OpSelectionMerge %done None
OpSwitch %big %other 4294967301 %one 4294967302 %six 7 %never
%one = OpLabel
OpBranch %done
%six = OpLabel
OpBranch %done
%never = OpLabel
OpBranch %done
%other = OpLabel
OpBranch %done
%done = OpLabel
%which = OpPhi %float %f1 %one %f3 %six %f4 %never %f7 %other
%narrow = OpFConvert %half %w
%pair = OpCompositeConstruct %h2 %narrow %narrow
%mixed = OpFDot2MixAcc32VALVE %float %pair %pair %which
%result = OpFAdd %float %fused %mixed'''),
    # a type whose arithmetic is not contracted: a product and the same one, of which nothing is left
    ('uncontracted', '', '''%part = OpFMul %float %w %third
%p1 = OpFMul %float %part %part
%p2 = OpFMul %float %part %part
%none = OpFSub %float %p1 %p2
%much = OpFMul %float %none %big
%result = OpFAdd %float %w %much'''),
    # numbers of 16 bits in a buffer, of which the module only says that it has such numbers
    ('narrow', '', '''%some = OpBitwiseAnd %uint %x %c3
%few = OpUConvert %short %some
%high = OpIAdd %short %few %most
%two_x = OpIMul %uint %x %c2
%behind = OpIAdd %uint %two_x %c1
%n1 = OpAccessChain %ps %b %c0 %two_x
%n2 = OpAccessChain %ps %b %c0 %behind
OpStore %n1 %nought'''),
    # pointers that are equal, that are none, and how far elements are from each other
    ('compared', '%kept = OpVariable %ppu Function', '''%y = OpBitwiseXor %uint %x %c3
%r2 = OpAccessChain %pu %a %c0 %y
%low = OpBitwiseAnd %uint %x %c4
%is = OpIEqual %bool %low %c4
%p = OpSelect %pu %is %r %r2
OpStore %kept %p
%again = OpLoad %pu %kept
%same = OpPtrEqual %bool %again %r
%s1 = OpSelect %float %same %f1 %f7
%none = OpPtrNotEqual %bool %again %null
%s2 = OpSelect %float %none %f3 %f7
%out = OpAccessChain %pu %b %c0 %x
%apart = OpPtrEqual %bool %r %out
%s3 = OpSelect %float %apart %f7 %f4
%far = OpPtrDiff %int %again %r
%s4 = OpConvertSToF %float %far
%t1 = OpFAdd %float %s1 %s2
%t2 = OpFAdd %float %t1 %s3
%result = OpFAdd %float %t2 %s4'''),
]
# What each of them needs besides.
NEEDS = {
    'spelled': (('OpCapability Shader\n', '''OpCapability Shader
OpCapability Float16
OpCapability Int64
OpCapability FMAKHR
OpCapability ReplicatedCompositesEXT
OpCapability DotProductFloat16AccFloat32VALVE
OpExtension "SPV_KHR_fma"
OpExtension "SPV_EXT_replicated_composites"
OpExtension "SPV_VALVE_mixed_float_dot_product"
'''),
                ('OpDecorate %a DescriptorSet 0\nOpDecorate %a Binding 0\nOpDecorate %b DescriptorSet 0\n',
                 '''OpDecorate %set DescriptorSet 0
%set = OpDecorationGroup
OpGroupDecorate %set %a %b
OpDecorate %a Binding 0
'''),
                ('%main = OpFunction', '''%half = OpTypeFloat 16
%h2 = OpTypeVector %half 2
%ulong = OpTypeInt 64 0
%four_g = OpConstant %ulong 4294967296
%ones = OpConstantCompositeReplicateEXT %v4 %f1
%main = OpFunction''')),
    'narrow': (('OpCapability Shader\n', 'OpCapability Shader\nOpCapability Int16\n'),
               ('OpMemberDecorate %B 0 Offset 0\n', '''OpMemberDecorate %B 0 Offset 0
OpDecorate %shorts ArrayStride 2
OpMemberDecorate %S 0 Offset 0
OpDecorate %S BufferBlock
'''),
               ('%b = OpVariable %pB Uniform\n', '''%short = OpTypeInt 16 0
%shorts = OpTypeRuntimeArray %short
%S = OpTypeStruct %shorts
%pS = OpTypePointer Uniform %S
%ps = OpTypePointer Uniform %short
%b = OpVariable %pS Uniform
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%nought = OpConstant %short 0
%most = OpConstant %short 16256
'''), ('%q = OpAccessChain %pu %b %c0 %x\nOpStore %q %result\n', 'OpStore %n2 %high\n')),
    'uncontracted': (('OpCapability Shader\n', '''OpCapability Shader
OpCapability FloatControls2
OpExtension "SPV_KHR_float_controls2"
'''), ('LocalSize 32 1 1\n', 'LocalSize 32 1 1\nOpExecutionModeId %main FPFastMathDefault %float %c0\n'),
                     ('%main = OpFunction', '''%third = OpConstant %float 0.3333333
%big = OpConstant %float 1073741824
%main = OpFunction''')),
    'compared': (('OpCapability Shader\n', '''OpCapability VariablePointers
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpExtension "SPV_KHR_variable_pointers"
'''), ('Uniform', 'StorageBuffer'), ('BufferBlock', 'Block'), ('"main" %id', '"main" %id %a %b'),
                 ('%main = OpFunction', '''%int = OpTypeInt 32 1
%bool = OpTypeBool
%ppu = OpTypePointer Function %pu
%null = OpConstantNull %pu
%main = OpFunction''')),
}

# Another stage with its texture, a built-in that stands there twice, and capabilities of no compute shader.
STAGES = ASSEMBLY.replace('OpCapability Shader\n', 'OpCapability Shader\nOpCapability ImageQuery\nOpCapability Sampled1D\n')
STAGES = STAGES.replace('"main" %id\n', '"main" %id %id2\nOpEntryPoint Fragment %shade "shade" %color %coord\n')
STAGES = STAGES.replace('LocalSize 32 1 1\n', '''LocalSize 32 1 1
OpExecutionMode %shade OriginUpperLeft
OpDecorate %id2 BuiltIn GlobalInvocationId
OpDecorate %color Location 0
OpDecorate %coord Location 0
OpDecorate %tex DescriptorSet 0
OpDecorate %tex Binding 2
''')
STAGES = STAGES.replace('%main = OpFunction', '''%id2 = OpVariable %pi Input
%po = OpTypePointer Output %v4
%p2 = OpTypePointer Input %v2
%image = OpTypeImage %float 2D 0 0 0 1 Unknown
%sampled = OpTypeSampledImage %image
%pt = OpTypePointer UniformConstant %sampled
%color = OpVariable %po Output
%coord = OpVariable %p2 Input
%tex = OpVariable %pt UniformConstant
%main = OpFunction''', 1)
STAGES += '''%shade = OpFunction %void None %f
%begin = OpLabel
%where = OpLoad %v2 %coord
%with = OpLoad %sampled %tex
%colour = OpImageSampleImplicitLod %v4 %with %where
OpStore %color %colour
OpReturn
OpFunctionEnd
'''
STAGES = STAGES.replace('VARIABLES\n', '').replace('BODY', '''%i2 = OpLoad %u3 %id2
%x2 = OpCompositeExtract %uint %i2 0
%r2 = OpAccessChain %pu %a %c0 %x2
%w2 = OpLoad %float %r2
%result = OpFAdd %float %w %w2''')


# What subgroups could do by the first extensions for them, and by AMD's.
OLD = ASSEMBLY.replace('OpCapability Shader\n', '''OpCapability Shader
OpCapability SubgroupBallotKHR
OpCapability SubgroupVoteKHR
OpCapability Groups
OpExtension "SPV_KHR_shader_ballot"
OpExtension "SPV_KHR_subgroup_vote"
OpExtension "SPV_AMD_shader_ballot"
''')
OLD = OLD.replace('"main" %id\n', '"main" %id %lane\n').replace('OpDecorate %rt', '''OpDecorate %lane BuiltIn SubgroupLocalInvocationId
OpDecorate %rt''', 1)
OLD = OLD.replace('VARIABLES\n', '').replace('%main = OpFunction', '''%bool = OpTypeBool
%u4 = OpTypeVector %uint 4
%plu = OpTypePointer Input %uint
%lane = OpVariable %plu Input
%c1 = OpConstant %uint 1
%f0 = OpConstant %float 0
%main = OpFunction''', 1)
OLD = OLD.replace('BODY', '''%k = OpLoad %uint %lane
%bit = OpBitwiseAnd %uint %k %c1
%odd = OpIEqual %bool %bit %c1
%ballot = OpSubgroupBallotKHR %u4 %odd
%word = OpCompositeExtract %uint %ballot 0
%low = OpBitwiseAnd %uint %word %c3
%s0 = OpConvertUToF %float %low
%first = OpSubgroupFirstInvocationKHR %uint %k
%s1 = OpConvertUToF %float %first
%all = OpSubgroupAllKHR %bool %odd
%any = OpSubgroupAnyKHR %bool %odd
%alike = OpSubgroupAllEqualKHR %bool %odd
%t1 = OpSelect %float %all %f3 %f0
%t2 = OpSelect %float %any %f4 %f0
%t3 = OpSelect %float %alike %f7 %f0
%third = OpSubgroupReadInvocationKHR %uint %k %c3
%s2 = OpConvertUToF %float %third
%sum = OpGroupIAddNonUniformAMD %uint %c3 InclusiveScan %c1
%same = OpISub %uint %sum %k
%s3 = OpConvertUToF %float %same
%most = OpGroupFMax %float %c3 Reduce %s0
%a1 = OpFAdd %float %s0 %s1
%a2 = OpFAdd %float %a1 %t1
%a3 = OpFAdd %float %a2 %t2
%a4 = OpFAdd %float %a3 %t3
%a5 = OpFAdd %float %a4 %s2
%a6 = OpFAdd %float %a5 %s3
%a7 = OpFAdd %float %a6 %most
%result = OpFAdd %float %w %a7''')


def made(command, source, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, 'w') as file:
            file.write(source)
        subprocess.run(command + [path, '-o', path + '.spv'], check=True)
        data = open(path + '.spv', 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


def assembled(source):
    environment = 'spv1.4' if 'PtrEqual' in source else 'spv1.2' if 'FPFastMathDefault' in source else 'spv1.0'
    return made([os.environ.get('SPIRV_AS', 'spirv-as'), '--target-env', environment, '--preserve-numeric-ids'], source, 'k.spvasm')


rows = []


def put(name, label, words):
    print('static const uint32_t foreign_%s[] = {' % name)
    for i in range(0, len(words), 12):
        print(' '.join('0x%08x,' % w for w in words[i:i + 12]))
    print('};')
    rows.append('    { "%s", foreign_%s, sizeof foreign_%s },' % (label, name, name))


print('/* Made by foreign_kernels.py. Do not edit. */')
for name, source in KERNELS:
    for option, ending in (('-O', ''), ('-O0', '_plain')):
        target = '--target-env=vulkan1.2' if 'shared_memory_block' in source else '--target-env=vulkan1.1'
        words = made([os.environ.get('GLSLC', 'glslc'), option, target], source, 'k.comp')
        put(name + ending, name + (', plain' if ending else ''), words)
for name, variables, body in ASSEMBLED:
    source = ASSEMBLY.replace('VARIABLES', variables).replace('BODY', body)
    for old, new in NEEDS.get(name, ()):
        source = source.replace(old, new)
    put(name, name, assembled(source))
put('stages', 'stages', assembled(STAGES))
put('old_groups', 'old_groups', assembled(OLD))
print('static const struct { const char *name; const uint32_t *words; size_t bytes; } foreign_kernels[] = {')
print('\n'.join(rows))
print('};')
