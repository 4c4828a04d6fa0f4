// rows.glsl: what the kernels that walk along rows share: the group's number, keys that order values, sums over the 256
// lanes of a row, and stores of a whole row in any type. Long loops are unrolled four times: it helps every device, and
// lavapipe ends an invocation's loops after 65535 rounds in all.
#ifndef ROWS_GLSL
#define ROWS_GLSL
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "../exact.h"
layout(local_size_x_id = HDI_SPEC_WORKGROUP) in;
layout(constant_id = HDI_SPEC_EXACT) const uint EXACT = 1u;
layout(constant_id = HDI_SPEC_OUT_TYPE) const uint OUT_TYPE = HDI_TYPE_F32;

// A row has 256 lanes whatever the workgroup's size; an invocation takes every WORKGROUP-th of them.
#define LANES 256u
#define ME gl_LocalInvocationID.x
#define WORKGROUP gl_WorkGroupSize.x
#define FOR_EACH_LANE(lane) for (uint lane = ME; lane < LANES; lane += WORKGROUP)
shared uint lanes[LANES];

uint group_number() { return gl_WorkGroupID.y * HDI_GRID_WIDTH + gl_WorkGroupID.x; }

float add_rounded(float a, float b) { precise float sum = a + b; return sum; }
vec4 add_rounded(vec4 a, vec4 b) { precise vec4 sum = a + b; return sum; }
float mul_rounded(float a, float b) { precise float product = a * b; return product; }
vec4 mul_rounded(vec4 a, vec4 b) { precise vec4 product = a * b; return product; }
float sum_of_four(vec4 v) { return add_rounded(add_rounded(v.x, v.z), add_rounded(v.y, v.w)); }
// acc + a * b: rounded twice in exact mode.
float add_product(float acc, float a, float b) {
    if (EXACT != 1u) return fma(a, b, acc);
    precise float product = a * b; // in locals of its own: as arguments the compiler forgets that they are precise
    precise float sum = acc + product;
    return sum;
}
float exponential(float x) { return EXACT == 1u ? exact_exp(x) : exp(x); }
float logarithm(float x) { return EXACT == 1u ? exact_log(x) : log(x); }
// What a norm multiplies with, of the mean square and eps.
float factor_of(float spread) { return EXACT == 1u ? exact_rsqrt(spread) : inversesqrt(spread); }
float divided(float a, float b) { return EXACT == 1u ? exact_div(a, b) : a / b; }
// A count as a float, rounded to nearest even on every device: both halves are exact.
float count_float(uint n) { return add_rounded(float(n >> 16) * 65536.0, float(n & 0xFFFFu)); }

// Floats ordered as integers: the largest of the keys does not depend on the order of asking. NaN is above everything.
#define KEY_NAN 0x7FFFFFFF
#define KEY_LEAST (-KEY_NAN - 1)
int key_of(uint bits) {
    int key = int(bits) ^ ((int(bits) >> 31) & 0x7FFFFFFF);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? KEY_NAN : key;
}
uint bits_of_key(int key) { return key == KEY_NAN ? EXACT_NAN : uint(key ^ ((key >> 31) & 0x7FFFFFFF)); }

// Over what each lane has put into `lanes`; every invocation gets the result, and `lanes` is free again. Fast mode needs three
// barriers for it.
float sum_of_lanes() {
    if (EXACT != 1u) {
        const uint FEW = 16u; // invocations that add as many lanes each
        barrier();
        for (uint l = ME; l < FEW; l += WORKGROUP) {
            float sum = 0.0;
            [[unroll]] for (uint k = 0u; k < LANES / FEW; k++) sum = add_rounded(sum, uintBitsToFloat(lanes[l + k * FEW]));
            lanes[l] = floatBitsToUint(sum);
        }
        barrier();
        float sum = 0.0;
        [[unroll]] for (uint k = 0u; k < FEW; k++) sum = add_rounded(sum, uintBitsToFloat(lanes[k]));
        barrier();
        return sum;
    }
    for (uint half_count = LANES / 2u; half_count > 0u; half_count >>= 1) {
        barrier();
        for (uint l = ME; l < half_count; l += WORKGROUP)
            lanes[l] = floatBitsToUint(add_rounded(uintBitsToFloat(lanes[l]), uintBitsToFloat(lanes[l + half_count])));
    }
    barrier();
    float total = uintBitsToFloat(lanes[0]);
    barrier();
    return total;
}
int largest_of_lanes() {
    for (uint half_count = LANES / 2u; half_count > 0u; half_count >>= 1) {
        barrier();
        for (uint l = ME; l < half_count; l += WORKGROUP) lanes[l] = uint(max(int(lanes[l]), int(lanes[l + half_count])));
    }
    barrier();
    int largest = int(lanes[0]);
    barrier();
    return largest;
}

// As it is stored: in exact mode there is one NaN.
uint canonical_bits(float x) { return floatBitsToUint(EXACT == 1u ? exact_canonical(x) : x); }

// Stores VALUE(index), bits of the computing type, for `count` neighbouring elements from `first` on: a word at a time,
// merging at the edges of narrow types, which other workgroups may share.
#define STORE_ROW(words, type, first, count, VALUE) { \
    uint row_per = 4u / type_bytes(type), row_bits = 32u / row_per; \
    uint row_last = ((first) + (count) - 1u) / row_per; \
    for (uint row_word = (first) / row_per + ME; row_word <= row_last; row_word += WORKGROUP) { \
        uint row_value = 0u, row_mask = 0u; \
        for (uint k = 0u; k < row_per; k++) { \
            uint row_index = row_word * row_per + k; \
            if (row_per == 1u || row_index - (first) < (count)) { \
                row_value |= pack_element(VALUE(row_index), type) << (k * row_bits); \
                row_mask |= (0xFFFFFFFFu >> (32u - row_bits)) << (k * row_bits); \
            } \
        } \
        if (row_per == 1u) words[row_word] = row_value; \
        else STORE_MASKED(words, row_word, row_value, row_mask) \
    } }
#define STORE_MASKED(words, at, value, mask) { \
    if (mask == 0xFFFFFFFFu) words[at] = value; \
    else if (mask != 0u) { \
        atomicAnd(words[at], ~mask); \
        atomicOr(words[at], value); \
    } }
#endif
