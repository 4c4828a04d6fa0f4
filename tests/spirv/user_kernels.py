#!/usr/bin/env python3
"""Writes user_kernels.h: kernels as users write them, as C arrays of SPIR-V, with glslc; each twice, optimised (-O) and as it
comes (-O0: functions stay functions). And one with spirv-as.

Usage: tests/spirv/user_kernels.py > tests/spirv/user_kernels.h      (GLSLC names another glslc)
"""
import os
import struct
import subprocess
import tempfile

# One output, the last binding; `words` of it are compared, bit by bit where `exact`.
KERNELS = [
    ('mandelbrot', 0, '''#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(push_constant) uniform Push { uint width; uint limit; } push;
layout(set = 0, binding = 0) readonly buffer I { uint unused[]; };
layout(set = 0, binding = 1) writeonly buffer O { uint counts[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= push.width || at.y >= push.width) return;
    precise vec2 c = vec2(at) * (3.0 / 64.0) - vec2(2.25, 1.5), z = vec2(0.0);
    uint i = 0u;
    for (; i < push.limit; i++) {
        precise float x = z.x * z.x - z.y * z.y + c.x;
        precise float y = 2.0 * z.x * z.y + c.y;
        z = vec2(x, y);
        precise float size = x * x + y * y;
        if (size > 4.0) break;
    }
    counts[at.y * push.width + at.x] = i;
}'''),
    ('histogram', 0, '''#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint step; } push;
layout(set = 0, binding = 0) readonly buffer I { uint data[]; };
layout(set = 0, binding = 1) buffer O { uint bins[]; };
shared uint own[16];
shared int low, high;
void main() {
    if (gl_LocalInvocationIndex < 16u) own[gl_LocalInvocationIndex] = 0u;
    if (gl_LocalInvocationIndex == 0u) { low = 1000; high = -1000; }
    barrier();
    for (uint i = gl_GlobalInvocationID.x; i < push.count; i += push.step) {
        atomicAdd(own[data[i] & 15u], 1u);
        atomicMin(low, int(data[i] & 255u) - 128);
        atomicMax(high, int(data[i] & 255u) - 128);
    }
    barrier();
    if (gl_LocalInvocationIndex < 16u) atomicAdd(bins[gl_LocalInvocationIndex], own[gl_LocalInvocationIndex]);
    if (gl_LocalInvocationIndex == 0u) {
        atomicMax(bins[16], uint(high));
        atomicXor(bins[17], uint(low) * 3u);
        atomicOr(bins[18], 1u << gl_WorkGroupID.x);
        uint was = atomicCompSwap(bins[19], 0u, 77u);
        if (was != 0u && was != 77u) atomicExchange(bins[20], was);
    }
}'''),
    ('bodies', 1, '''#version 450
layout(local_size_x = 32) in;
struct Body { vec3 place; float mass; vec3 speed; float unused; };
layout(push_constant) uniform Push { uint count; float dt; } push;
layout(std430, set = 0, binding = 0) readonly buffer I { Body bodies[]; };
layout(std430, set = 0, binding = 1) writeonly buffer O { Body moved[]; };
shared vec4 tile[32];
void main() {
    uint self = gl_GlobalInvocationID.x;
    Body own = bodies[min(self, push.count - 1u)];
    vec3 pull = vec3(0.0);
    for (uint first = 0u; first < push.count; first += 32u) {
        uint other = first + gl_LocalInvocationID.x;
        tile[gl_LocalInvocationID.x] = other < push.count ? vec4(bodies[other].place, bodies[other].mass) : vec4(0.0);
        barrier();
        for (uint k = 0u; k < 32u; k++) {
            vec3 d = tile[k].xyz - own.place;
            float r = inversesqrt(dot(d, d) + 0.01);
            pull += d * (tile[k].w * r * r * r);
        }
        barrier();
    }
    if (self >= push.count) return;
    own.speed += pull * push.dt;
    own.place += own.speed * push.dt;
    own.unused = length(own.speed) + distance(own.place, vec3(1.0)) + cross(own.place, own.speed).y;
    moved[self] = own;
}'''),
    ('ways', 0, '''#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { uint count; uint seed; } push;
layout(set = 0, binding = 0) readonly buffer I { uint data[]; };
layout(set = 0, binding = 1) writeonly buffer O { uint found[]; };
uint next(inout uint state) { state = state * 1664525u + 1013904223u; return state >> 24; }
uint look(uint x, uint limit) {
    for (uint i = 0u; i < limit; i++) {
        if (i == 3u && (x & 1u) != 0u) continue;
        for (uint k = 0u; k < 5u; k++) {
            if (((x >> k) & 3u) == i) return i * 16u + k;
            if (k == 2u && i > 4u) break;
        }
    }
    return 999u;
}
uint choose(uint kind, uint x) {
    uint r = 0u;
    switch (kind) {
    case 0u: r = x + 1u; break;
    case 1u: r = x * 3u; // and on
    case 2u: r += 7u; break;
    case 5u: case 6u: return x ^ 0x55u;
    default: if (x > 100u) { r = 5u; break; } r = 6u;
    }
    return r * 2u;
}
void main() {
    uint self = gl_GlobalInvocationID.x;
    if (self >= push.count) return;
    uint state = data[self] + push.seed, sum = 0u, rounds = 0u;
    do {
        uint kind = next(state) & 7u;
        sum += choose(kind, sum & 255u);
        if (kind == 7u && rounds > 3u) break;
        switch (kind & 3u) {
        case 0: continue;
        case 1: sum ^= look(state >> 3, kind); break;
        case 2: if ((sum & 64u) != 0u) { rounds += 2u; continue; } sum += 11u; break;
        }
        uint a = sum, b = state;
        for (uint i = 0u; i < 4u; i++) { uint t = a; a = b + i; b = t ^ (a << 1); if ((a & 0xF0u) == 0u) break; }
        sum = a ^ b;
        if ((sum & 0xFFu) == 9u) { found[self] = sum; return; }
    } while (++rounds < 9u && (sum & 31u) != 17u);
    int s = int(sum) >> 3;
    found[self] = sum + uint(s / 7) + uint(abs(s) % 7) + uint(clamp(s, -50, 60)) + uint(max(s, -1000)) + uint(sign(s) * abs(s >> 5));
}'''),
    ('phis', 0, '''#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { uint count; uint rounds; } push;
layout(set = 0, binding = 0) readonly buffer I { uint data[]; };
layout(set = 0, binding = 1) writeonly buffer O { uint mixed[]; };
void main() { // values that loops hand on: each other's, the last but one, those of a loop around, one more than another
    uint self = gl_GlobalInvocationID.x;
    if (self >= push.count) return;
    uint a = data[self], b = data[self + 1u], c = ~a;
    for (uint i = 0u; i < push.rounds; i++) { // two change places, three go round
        uint t = a;
        if ((b & 1u << i) != 0u) { a = b; b = t; }
        else { a = b; b = c; c = t; }
    }
    uint before = 0u, now = a, count = 0u;
    for (;;) { // what a round began with is wanted after the loop
        before = now;
        now = now * 1664525u + b;
        if (now % 5u == 0u || count > 20u) break;
        count++;
    }
    uint sum = 0u, last = c;
    for (uint i = 0u; i < 4u; i++) { // what the outer loop keeps is what the inner one ends with, or the round before
        uint kept = last;
        for (uint k = i; k < push.rounds; k += 2u) {
            uint older = last;
            last = (last >> 3) ^ sum;
            sum += older;
            if ((sum & 7u) == 3u) { last = kept; break; }
        }
        sum ^= kept;
    }
    uint at = 0u, ahead = 1u; // one runs ahead of the other, and both are wanted
    while (ahead < push.rounds && (data[self + ahead] & 3u) != 0u) { at = ahead; ahead = at + 1u; }
    mixed[self * 4u] = a ^ (b >> 1) ^ (c >> 2);
    mixed[self * 4u + 1u] = before ^ (now << 1) ^ count;
    mixed[self * 4u + 2u] = sum + last;
    mixed[self * 4u + 3u] = at * 256u + ahead + 1u;
}'''),
    ('types', 1, '''#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 16) in;
layout(push_constant) uniform Push { mat3 turn; vec2 pair; uint count; uint table[4]; } push;
struct Part { uint8_t small[4]; f16vec2 halves; vec3 place; mat2x3 m; };
layout(std430, set = 0, binding = 0) readonly buffer I { uint head; Part parts[]; };
layout(std430, set = 0, binding = 0) readonly buffer J { uint words[]; };
layout(std430, set = 0, binding = 1, row_major) buffer O { mat4 rows; vec4 results[]; };
const float weights[5] = float[](1.0, -2.5, 0.25, 1e-3, 7.0);
vec4 part(uint i) {
    Part p = parts[i % 3u];
    f16vec2 h = p.halves * float16_t(1.5) + f16vec2(0.25);
    uint16_t n = uint16_t(p.small[1]) * uint16_t(300) - uint16_t(77);
    int8_t c = int8_t(p.small[2]) - int8_t(100);
    int64_t wide = int64_t(p.small[0]) * 5000000000L - int64_t(words[1]);
    return vec4(float(h.x) + float(h.y), float(n) + float(int(c)), float(wide / 1000003L), float(uint(wide >> 20) & 0xFFFFu));
}
void main() {
    uint i = gl_LocalInvocationIndex;
    if (i >= push.count) return;
    vec4 r = part(i);
    uint bits = words[i % uint(words.length())] * 2654435761u + i;
    r += vec4(bitCount(bits), findLSB(bits), findMSB(bits), bitfieldReverse(bits) >> 20);
    r.x += float(bitfieldExtract(int(bits), 5, 9)) + float(bitfieldExtract(bits, 3, 4));
    r.y += float(bitfieldInsert(bits, 9u, 4, 7) & 0xFFFu);
    r += unpackUnorm4x8(bits) + unpackSnorm4x8(bits >> 1) + vec4(unpackHalf2x16(packHalf2x16(vec2(1.0 / 3.0, i))), unpackSnorm2x16(packSnorm2x16(vec2(-0.3, 0.7))));
    vec3 turned = push.turn * vec3(i, 1.0, 2.0) + parts[1].m * push.pair + transpose(push.turn) * parts[2].place;
    r.xyz += turned;
    r[i & 3u] += weights[i % 5u] + float(push.table[(i + 1u) & 3u]);
    vec3 shuffled = r.zyx;
    shuffled[i % 3u] = 0.5;
    bvec3 below = lessThan(shuffled, vec3(1.0, 20.0, 300.0));
    r.xyz = mix(r.xyz, shuffled, below);
    r.w += any(below) ? 1.0 : 0.0;
    r.w += all(not(below)) ? 2.0 : 0.0;
    uint carry, borrow, low, high;
    carry = 0u;
    uint sum = uaddCarry(bits, 0x90000000u, carry);
    sum += usubBorrow(i, 5u, borrow);
    umulExtended(bits, sum, high, low);
    int e;
    float fraction = frexp(r.x + 3.0, e), whole;
    float rest = modf(r.y * 0.1, whole);
    r.y += float(carry + borrow) + float(high >> 24) + float(low & 255u) + ldexp(fraction, e) + rest + whole;
    mat4 m = outerProduct(r, vec4(1.0, 2.0, 3.0, 4.0));
    m = m * rows + mat4(2.0);
    if (i == 0u) rows[3] = vec4(9.0, 8.0, 7.0, 6.0);
    results[i] = m[1] + r * 0.5 + vec4(rows[0][1], isnan(r.x) ? 1.0 : 0.0, isinf(1.0 / r.z) ? 1.0 : 0.0, results.length());
}'''),
    ('lanes', 0, '''#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
#extension GL_KHR_shader_subgroup_vote : require
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint seed; } push;
layout(set = 0, binding = 0) readonly buffer I { uint data[]; };
layout(set = 0, binding = 1) writeonly buffer O { uint result[]; };
// The same for every size of a subgroup from 4 on: pieces of four lanes, and what is true of any size.
void main() {
    uint x = data[gl_GlobalInvocationID.x] * push.seed, lane = gl_SubgroupInvocationID, piece = lane & ~3u;
    uint sum = x + subgroupShuffleXor(x, 1u), most = subgroupMax(x & 0xFFFFu) - subgroupMax(x & 0xFFFFu);
    sum += subgroupShuffleXor(sum, 2u);
    int least = subgroupMin(int(x)) <= int(x) ? int(x) : 0;
    uint before = subgroupExclusiveAdd(x) - subgroupShuffle(subgroupExclusiveAdd(x), piece);
    uint upto = subgroupInclusiveXor(x) ^ subgroupShuffle(subgroupInclusiveXor(x), piece);
    uvec4 odd = subgroupBallot((x & 1u) != 0u);
    uint mine = (odd.x >> (lane & 31u)) & 1u;
    if (lane >= 32u) mine = (odd.y >> (lane & 31u)) & 1u;
    bool counted = subgroupBallotBitCount(odd) == subgroupAdd(x & 1u), inverse = subgroupInverseBallot(odd) == ((x & 1u) != 0u);
    bool good = counted && inverse;
    bool swapped = subgroupAll(x == subgroupShuffleXor(subgroupShuffleXor(x, 1u), 1u)), same = subgroupBroadcastFirst(push.seed) == push.seed;
    good = good && swapped && same;
    uint up = subgroupShuffleUp(x, 1u);
    if ((lane & 3u) == 0u) up = 5u;
    uint elected = subgroupElect() ? 1u : 0u;
    uint total = subgroupAdd(elected);
    result[gl_GlobalInvocationID.x] = sum + 3u * most + 5u * uint(least) + 7u * before + 11u * upto + 13u * mine + 17u * up + (good ? 1u : 0u) + 64u * total
        + uint(gl_SubgroupID * gl_SubgroupSize + lane == gl_LocalInvocationIndex) + uint(subgroupAdd(float(lane & 3u)) / float(gl_SubgroupSize) * 4.0);
}'''),
]


# A loop that is left from inside of a switch within a switch, as other compilers than glslc make it.
LEAVE = """OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id
OpExecutionMode %main LocalSize 32 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %array ArrayStride 4
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
OpDecorate %push Block
OpMemberDecorate %push 0 Offset 0
OpMemberDecorate %push 1 Offset 4
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%uint3 = OpTypeVector %uint 3
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%pblock = OpTypePointer Uniform %block
%puint = OpTypePointer Uniform %uint
%pin3 = OpTypePointer Input %uint3
%push = OpTypeStruct %uint %uint
%ppush = OpTypePointer PushConstant %push
%ppuint = OpTypePointer PushConstant %uint
%id = OpVariable %pin3 Input
%in = OpVariable %pblock Uniform
%out = OpVariable %pblock Uniform
%given = OpVariable %ppush PushConstant
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c3 = OpConstant %uint 3
%c7 = OpConstant %uint 7
%c40 = OpConstant %uint 40
%main = OpFunction %void None %fn
%start = OpLabel
%id3 = OpLoad %uint3 %id
%self = OpCompositeExtract %uint %id3 0
%ps = OpAccessChain %ppuint %given %c1
%seed = OpLoad %uint %ps
OpBranch %head
%head = OpLabel
%i = OpPhi %uint %c0 %start %i1 %next
%sum = OpPhi %uint %seed %start %sum1 %next
%more = OpULessThan %bool %i %c40
OpLoopMerge %end %next None
OpBranchConditional %more %body %end
%body = OpLabel
%at = OpIAdd %uint %self %i
%pa = OpAccessChain %puint %in %c0 %at
%x = OpLoad %uint %pa
%kind = OpBitwiseAnd %uint %x %c3
OpSelectionMerge %after None
OpSwitch %kind %other 0 %zero 1 %one
%zero = OpLabel
%inner = OpShiftRightLogical %uint %x %c3
%which = OpBitwiseAnd %uint %inner %c7
OpSelectionMerge %joined None
OpSwitch %which %joined 2 %two 5 %five 6 %six
%two = OpLabel
%sum2 = OpIAdd %uint %sum %c7
OpBranch %end
%five = OpLabel
%sum5 = OpIAdd %uint %sum %c3
OpBranch %next
%six = OpLabel
OpBranch %joined
%joined = OpLabel
%sumj = OpPhi %uint %sum %zero %c40 %six
OpBranch %after
%one = OpLabel
%sumo = OpIMul %uint %sum %c3
OpBranch %other
%other = OpLabel
%sumx = OpPhi %uint %sum %body %sumo %one
%sumy = OpBitwiseXor %uint %sumx %x
%odd = OpBitwiseAnd %uint %sumy %c40
%stop = OpIEqual %bool %odd %c40
OpBranchConditional %stop %end %after
%after = OpLabel
%sumz = OpPhi %uint %sumj %joined %sumy %other
OpBranch %next
%next = OpLabel
%sum1 = OpPhi %uint %sumz %after %sum5 %five
%i1 = OpIAdd %uint %i %c1
OpBranch %head
%end = OpLabel
%result = OpPhi %uint %sum %head %sum2 %two %sumy %other
%po = OpAccessChain %puint %out %c0 %self
OpStore %po %result
OpReturn
OpFunctionEnd
"""


def assembled(source):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'k.spv')
        subprocess.run(['spirv-as', '--target-env', 'spv1.0', '--preserve-numeric-ids', '-', '-o', path], input=source.encode(), check=True)
        subprocess.run(['spirv-val', '--target-env', 'vulkan1.0', path], check=True)
        data = open(path, 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


def words_of(source, option):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'k.comp')
        with open(path, 'w') as file:
            file.write(source)
        subprocess.run([os.environ.get('GLSLC', 'glslc'), option, '--target-env=vulkan1.1', path, '-o', path + '.spv'], check=True)
        data = open(path + '.spv', 'rb').read()
    return struct.unpack('<%dI' % (len(data) // 4), data)


print('/* Made by user_kernels.py. Do not edit. */')
rows = []
for name, floats, source in KERNELS:
    for option, ending in (('-O', 'fast'), ('-O0', 'plain')):
        words = words_of(source, option)
        print('static const uint32_t kernel_%s_%s[] = {' % (name, ending))
        for i in range(0, len(words), 12):
            print(' '.join('0x%08x,' % w for w in words[i:i + 12]))
        print('};')
        rows.append('    { "%s, %s", kernel_%s_%s, sizeof kernel_%s_%s, %d },' % (name, option, name, ending, name, ending, floats))
words = assembled(LEAVE)
print('static const uint32_t kernel_leave[] = {')
for i in range(0, len(words), 12):
    print(' '.join('0x%08x,' % w for w in words[i:i + 12]))
print('};')
rows.append('    { "leave", kernel_leave, sizeof kernel_leave, 0 },')
print('static const struct { const char *name; const uint32_t *words; size_t bytes; int floats; } user_kernels[] = {')
print('\n'.join(rows))
print('};')
