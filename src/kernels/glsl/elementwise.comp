#version 450
// elementwise.comp: out[i] = chain(inputs[i]) over strided inputs; also copy, permute, slice, concat, pad. Four
// neighbouring elements an invocation; a dense output is written in whole words, and the last word, where the output ends
// within it, keeps its other bytes.
layout(local_size_x_id = 0) in;

// Every buffer as words, and as groups of four for dense tensors of 32-bit types.
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
layout(push_constant) uniform Push { uint words[32]; } push;

#include "../abi.h"
layout(constant_id = HDI_SPEC_WORKGROUP) const uint WORKGROUP = 64u;
layout(constant_id = HDI_EW_INPUTS) const uint INPUTS = 1u;
layout(constant_id = HDI_EW_RANK) const uint RANK = 1u;
layout(constant_id = HDI_EW_DENSE) const uint DENSE = 17u;

// Where an operand's words begin in the push constants; operand 4 is the output.
#define OPERANDS_BEFORE(i) (bitCount(~DENSE & ((1u << min(i, INPUTS)) - 1u)) + (i > 4u ? uint((DENSE & 16u) == 0u) : 0u))
#define WORDS_AT(i) (RANK + uint(OPERANDS_BEFORE(i)) * (1u + RANK))
#define CHAIN_ATTRIBUTE(i) push.words[min(WORDS_AT(5u) + (i), 31u)]
#include "chain.glsl"

// The element that an operand holds at index `at` of the index space, axis by axis from the last.
uint element_of(uint operand, uint at) {
    if (((DENSE >> operand) & 1u) != 0u) return at;
    uint words = WORDS_AT(operand), element = push.words[words];
    for (uint axis = RANK - 1u; axis > 0u; axis--) {
        uint length = push.words[axis], outer = at / length;
        element += (at - outer * length) * push.words[words + 1u + axis];
        at = outer;
    }
    return element + at * push.words[words + 1u];
}

// Four elements from `at` on of which `count` exist.
#define READ(operand, buffer_words, buffer_wide, type, result) { \
    if (INPUTS <= operand) result = uvec4(0u); \
    else if (((DENSE >> operand) & 1u) != 0u && count == 4u) { \
        if (type_bytes(type) == 4u) result = buffer_wide[at >> 2]; \
        else { \
            uint low = buffer_words[word_of(type, at)], high = low; \
            if (type != HDI_TYPE_U8) high = buffer_words[word_of(type, at + 2u)]; \
            result = uvec4(unpack_element(low, type, at), unpack_element(low, type, at + 1u), \
                unpack_element(high, type, at + 2u), unpack_element(high, type, at + 3u)); \
        } \
    } else for (uint i = 0u; i < count; i++) result[i] = LOAD(buffer_words, type, element_of(operand, at + i)); }

void write_dense(uint at, uint count, uvec4 r) {
    if (type_bytes(OUT_TYPE) == 4u) {
        if (count == 4u) wide_output[at >> 2] = r;
        else for (uint i = 0u; i < count; i++) output_words[at + i] = r[i];
        return;
    }
    uint per_word = 4u / type_bytes(OUT_TYPE), bits = 32u / per_word;
    uint word = word_of(OUT_TYPE, at), packed = 0u;
    for (uint i = 0u; i < count; i++) {
        uint place = i & (per_word - 1u);
        packed |= pack_element(r[i], OUT_TYPE) << (place * bits);
        if (place == per_word - 1u) {
            output_words[word++] = packed;
            packed = 0u;
        }
    }
    uint rest = count & (per_word - 1u);
    if (rest != 0u) output_words[word] = (output_words[word] & (0xFFFFFFFFu << (rest * bits))) | packed;
}

void main() {
    uint group = gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x;
    uint at = (group * WORKGROUP + gl_LocalInvocationID.x) * HDI_EW_PER_INVOCATION;
    if (at >= push.words[0]) return;
    uint count = min(push.words[0] - at, 4u);
    uvec4 v0 = uvec4(0u), v1 = uvec4(0u), v2 = uvec4(0u), v3 = uvec4(0u), r = uvec4(0u);
    READ(0u, input_0, wide_0, SOURCE_TYPE_0, v0)
    READ(1u, input_1, wide_1, SOURCE_TYPE_1, v1)
    READ(2u, input_2, wide_2, SOURCE_TYPE_2, v2)
    READ(3u, input_3, wide_3, SOURCE_TYPE_3, v3)
    for (uint i = 0u; i < 4u; i++) r[i] = run_chain(v0[i], v1[i], v2[i], v3[i]);
    if ((DENSE & 16u) != 0u) write_dense(at, count, r);
    else for (uint i = 0u; i < count; i++) STORE(output_words, OUT_TYPE, element_of(4u, at + i), r[i])
}
