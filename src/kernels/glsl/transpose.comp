#version 450
// transpose.comp: a copy whose input lies along one axis and whose output lies along another. A workgroup reads a tile's lines in
// words, along the input, and writes them along the output; each word of the output is put together from neighbouring lines.
#include "tensor.glsl"
layout(local_size_x_id = HDI_SPEC_WORKGROUP) in;
layout(constant_id = HDI_TR_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_TR_TILE) const uint TILE = HDI_TR_WORDS;
layout(push_constant) uniform Push { uint words[HDI_TR_PUSH_WORDS]; } push;
layout(std430, binding = 0) readonly buffer Input { uint from[]; };
layout(std430, binding = 1) writeonly buffer Output { uint to[]; };

const uint WORDS = HDI_TR_WORDS;
const uint PER = TYPE == HDI_TYPE_U8 ? 4u : (TYPE == HDI_TYPE_F16 || TYPE == HDI_TYPE_BF16) ? 2u : 1u; // elements a word
shared uint tile[TILE * WORDS];
// Lines begin one word on for each word's worth of lines: words that are read across lines come from different banks.
#define PLACE(line, word) ((line) * WORDS + (((word) + (line) / PER) & (WORDS - 1u)))

void main() {
    uint R = push.words[HDI_TR_PUSH_R], C = push.words[HDI_TR_PUSH_C];
    uint tiles_r = (R + TILE - 1u) / TILE, tiles_c = (C + TILE - 1u) / TILE;
    uint group = gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x;
    uint line = group / tiles_c, outer = line / tiles_r;
    uint r0 = (line - outer * tiles_r) * TILE, c0 = (group - line * tiles_c) * TILE;
    uint in_first = push.words[HDI_TR_PUSH_IN_FIRST], out_first = push.words[HDI_TR_PUSH_OUT_FIRST];
    for (uint axis = HDI_TR_OUTER; axis-- > 0u;) {
        uint length = push.words[HDI_TR_PUSH_LENGTHS + axis], rest = outer / length, at = outer - rest * length;
        in_first += at * push.words[HDI_TR_PUSH_IN_OUTER + axis];
        out_first += at * push.words[HDI_TR_PUSH_OUT_OUTER + axis];
        outer = rest;
    }
    if (outer > 0u) R = 0u; // behind the last tile
    uint word = gl_LocalInvocationID.x % WORDS, first = gl_LocalInvocationID.x / WORDS, step = gl_WorkGroupSize.x / WORDS;

    uint r = r0 + word * PER;
    for (uint i = first; i < TILE; i += step)
        if (r < R && c0 + i < C) tile[PLACE(i, word)] = from[(in_first + (c0 + i) * push.words[HDI_TR_PUSH_IN_STRIDE] + r) / PER];
    barrier();

    uint c = c0 + word * PER;
    for (uint i = first; i < TILE; i += step) {
        uint bits = 32u / PER, shift = (i % PER) * bits, packed = 0u;
        for (uint k = 0u; k < PER; k++) {
            uint element = tile[PLACE(word * PER + k, i / PER)] >> shift;
            packed |= (PER == 1u ? element : element & ((1u << (bits & 31u)) - 1u)) << (k * bits);
        }
        if (c < C && r0 + i < R) to[(out_first + (r0 + i) * push.words[HDI_TR_PUSH_OUT_STRIDE] + c) / PER] = packed;
    }
}
