#!/usr/bin/env python3
"""Writes image_kernels.h: kernels with images, samplers and arrays of buffers, as C arrays of SPIR-V, with glslc.

Usage: tests/spirv/image_kernels.py > tests/spirv/image_kernels.h      (GLSLC names another glslc)
"""
import os
import struct
import subprocess
import tempfile

HEAD = '#version 450\n#extension GL_EXT_samplerless_texture_functions : require\n#extension GL_EXT_nonuniform_qualifier : require\n'
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
    taken[at.y * 32u + at.x] = textureLod(image, where, 0.0);
    if (at.x == 3u && at.y == 2u)
        taken[0] = texelFetch(image, ivec2(2, 1), 0) + vec4(textureSize(image, 0), textureQueryLevels(image), 0.0);
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
]


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
print('/* Made by image_kernels.py. Do not edit. */')
for name, source in KERNELS:
    for option, ending in (('-O', ''), ('-O0', '_plain')):
        words = made(source, option)
        print('static const uint32_t image_%s[] = {' % (name + ending))
        for i in range(0, len(words), 12):
            print(' '.join('0x%08x,' % w for w in words[i:i + 12]))
        print('};')
        rows.append('    { "%s", "%s", image_%s, sizeof image_%s },' % (name, option, name + ending, name + ending))
print('static const struct { const char *name, *option; const uint32_t *words; size_t bytes; } image_kernels[] = {')
print('\n'.join(rows))
print('};')
