#version 450
// elementwise.comp: out[i] = chain(inputs[i]) over strided inputs; also copy, permute, slice, concat, pad. An invocation
// makes groups of four neighbours, each one load and one store where they lie side by side; it reads all before it writes any,
// so that enough is on its way at once. An output is written in whole words then, and the last word, where a dense output
// ends within it, keeps its other bytes.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x_id = 0) in;

// Every buffer as words, and as pairs and groups of four for dense tensors: four elements are one load or store.
layout(std430, binding = 0) readonly buffer Input0 { uint input_0[]; };
layout(std430, binding = 1) readonly buffer Input1 { uint input_1[]; };
layout(std430, binding = 2) readonly buffer Input2 { uint input_2[]; };
layout(std430, binding = 3) readonly buffer Input3 { uint input_3[]; };
layout(std430, binding = 4) buffer Output { uint output_words[]; };
layout(std430, binding = 0) readonly buffer Wide0 { uvec4 wide_0[]; };
layout(std430, binding = 1) readonly buffer Wide1 { uvec4 wide_1[]; };
layout(std430, binding = 2) readonly buffer Wide2 { uvec4 wide_2[]; };
layout(std430, binding = 3) readonly buffer Wide3 { uvec4 wide_3[]; };
layout(std430, binding = 4) writeonly buffer WideOutput { uvec4 wide_output[]; };
layout(std430, binding = 0) readonly buffer Pair0 { uvec2 pair_0[]; };
layout(std430, binding = 1) readonly buffer Pair1 { uvec2 pair_1[]; };
layout(std430, binding = 2) readonly buffer Pair2 { uvec2 pair_2[]; };
layout(std430, binding = 3) readonly buffer Pair3 { uvec2 pair_3[]; };
layout(std430, binding = 4) writeonly buffer PairOutput { uvec2 pair_output[]; };
layout(push_constant) uniform Push { uint words[32]; } push;

#include "../abi.h"
layout(constant_id = HDI_SPEC_WORKGROUP) const uint WORKGROUP = 64u;
layout(constant_id = HDI_EW_INPUTS) const uint INPUTS = 1u;
layout(constant_id = HDI_EW_RANK) const uint RANK = 1u;
layout(constant_id = HDI_EW_DENSE) const uint DENSE = 17u;
layout(constant_id = HDI_EW_WIDE) const uint WIDE = 0u;
layout(constant_id = HDI_EW_PARTS) const uint PARTS = 1u;
layout(constant_id = HDI_EW_FOURS) const uint FOURS = 1u;

// Where an operand's words begin in the push constants; operand 4 is the output.
#define OPERANDS_BEFORE(i) (bitCount(~DENSE & ((1u << min(i, INPUTS)) - 1u)) + (i > 4u ? uint((DENSE & 16u) == 0u) : 0u))
#define WORDS_AT(i) (RANK + uint(PARTS > 1u) + uint(OPERANDS_BEFORE(i)) * (1u + RANK))
#define CHAIN_ATTRIBUTE(i) push.words[min(WORDS_AT(5u) + (i), 31u)]
#include "chain.glsl"

// The elements that an operand holds at four indices from `at` on. Mostly they lie along the last axis.
uint element_of(uint operand, uint at) {
    uint words = WORDS_AT(operand), element = push.words[words];
    for (uint axis = RANK - 1u; axis > 0u; axis--) {
        uint length = push.words[axis], outer = at / length;
        element += (at - outer * length) * push.words[words + 1u + axis];
        at = outer;
    }
    return element + at * push.words[words + 1u];
}
uvec4 elements_of(uint operand, uint at) {
    if (((DENSE >> operand) & 1u) != 0u) return uvec4(at, at + 1u, at + 2u, at + 3u);
    uint element = element_of(operand, at), stride = push.words[WORDS_AT(operand) + RANK];
    uvec4 e = uvec4(element, element + stride, element + 2u * stride, element + 3u * stride);
    if (RANK > 1u) {
        uint length = push.words[RANK - 1u];
        if (at % length + 4u > length)
            for (uint i = 1u; i < 4u; i++) e[i] = element_of(operand, at + i);
    }
    return e;
}

// Four elements from `at` on of which `count` exist, `beyond` so many others.
#define READ(operand, as_words, as_pairs, as_wide, type, beyond, result) { \
    if (INPUTS <= operand) result = uvec4(0u); \
    else if ((((DENSE | WIDE) >> operand) & 1u) != 0u && count == 4u && ((beyond) & 3u) == 0u) { \
        uint four = ((((DENSE >> operand) & 1u) != 0u ? at : element_of(operand, at)) + (beyond)) >> 2; \
        if (type_bytes(type) == 4u) result = as_wide[four]; \
        else result = unpack_four(type == HDI_TYPE_U8 ? uvec2(as_words[four]) : as_pairs[four], type); \
    } else { \
        uvec4 e = elements_of(operand, at) + (beyond); \
        [[unroll]] for (uint i = 0u; i < 4u; i++) if (i < count) result[i] = LOAD(as_words, type, e[i]); \
    } }
uint count_at(uint at) { return min(push.words[0] - min(at, push.words[0]), 4u); }

void write_dense(uint at, uint count, uvec4 r) {
    if (type_bytes(OUT_TYPE) == 4u) {
        if (count == 4u) wide_output[at >> 2] = r;
        else for (uint i = 0u; i < 3u; i++) if (i < count) output_words[at + i] = r[i];
        return;
    }
    for (uint i = 0u; i < 4u; i++) r[i] = pack_rounded(r[i], OUT_TYPE);
    bool bytes = OUT_TYPE == HDI_TYPE_U8;
    uvec2 packed = bytes ? uvec2(r.x | (r.y << 8) | (r.z << 16) | (r.w << 24), 0u) : uvec2(r.x | (r.y << 16), r.z | (r.w << 16));
    if (count == 4u) {
        if (bytes) output_words[at >> 2] = packed.x; else pair_output[at >> 2] = packed;
        return;
    }
    uint word = word_of(OUT_TYPE, at), bits = count * (bytes ? 8u : 16u);
    if (bits >= 32u) output_words[word++] = packed.x;
    uint mask = (1u << (bits & 31u)) - 1u, last = bits >= 32u ? packed.y : packed.x;
    if (mask != 0u) output_words[word] = (output_words[word] & ~mask) | (last & mask);
}

void main() {
    const uint group = gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x;
    const uint begin = (group * FOURS * WORKGROUP + gl_LocalInvocationID.x) * HDI_EW_NEIGHBOURS, apart = WORKGROUP * HDI_EW_NEIGHBOURS;
    if (begin >= push.words[0]) return;
    uvec4 read0[FOURS], read1[FOURS], read2[FOURS], read3[FOURS];
    [[unroll]] for (uint k = 0u; k < FOURS; k++) {
        const uint at = begin + k * apart, count = count_at(at);
        uvec4 v0 = uvec4(0u), v1 = uvec4(0u), v2 = uvec4(0u), v3 = uvec4(0u);
        READ(0u, input_0, pair_0, wide_0, SOURCE_TYPE_0, 0u, v0)
        READ(1u, input_1, pair_1, wide_1, SOURCE_TYPE_1, 0u, v1)
        READ(2u, input_2, pair_2, wide_2, SOURCE_TYPE_2, 0u, v2)
        READ(3u, input_3, pair_3, wide_3, SOURCE_TYPE_3, 0u, v3)
        for (uint part = 1u; part < PARTS; part++) {
            uvec4 more = uvec4(0u);
            READ(0u, input_0, pair_0, wide_0, HDI_TYPE_F32, part * push.words[RANK], more)
            v0 = floatBitsToUint(uintBitsToFloat(v0) + uintBitsToFloat(more));
        }
        read0[k] = v0;
        read1[k] = v1;
        read2[k] = v2;
        read3[k] = v3;
    }
    [[unroll]] for (uint k = 0u; k < FOURS; k++) {
        const uint at = begin + k * apart, count = count_at(at);
        if (count == 0u) return;
        const uvec4 v0 = read0[k], v1 = read1[k], v2 = read2[k], v3 = read3[k];
        uvec4 r;
        for (uint i = 0u; i < 4u; i++) r[i] = run_chain(v0[i], v1[i], v2[i], v3[i]);
        if (((DENSE | WIDE) & 16u) != 0u) write_dense((DENSE & 16u) != 0u ? at : element_of(4u, at), count, r);
        else {
            uvec4 e = elements_of(4u, at);
            [[unroll]] for (uint i = 0u; i < 4u; i++) if (i < count) STORE(output_words, OUT_TYPE, e[i], r[i])
        }
    }
}
