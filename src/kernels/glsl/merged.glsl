// merged.glsl: what kernels that make an rms_norm of A on the way and take a second B share.
#ifndef MERGED_GLSL
#define MERGED_GLSL
layout(std430, binding = 3) readonly buffer WideSecond { uvec4 wide_second[]; };
bool in_second = false; // which B is read
#define B_WORD(at) (in_second ? source_1[at] : b[at])
#define B_WORDS(at) (in_second ? wide_second[at] : wide_b[at])
#define BOOKS_BINDING 7
#include "early.glsl"
#include "wide.glsl"

layout(constant_id = HDI_MM_NORM) const uint NORM = HDI_MM_NORM_NONE;
layout(constant_id = HDI_MM_NORM_EPS) const uint NORM_EPS = 0;
layout(std430, binding = 6) readonly buffer NormWeight { uvec4 norm_weight[]; };
const uint PRODUCTS = PAIR + 1;

const bool B_GIVEN = (LAYOUT & HDI_MM_B_GIVEN) != 0u; // may be read before this
// 4 elements of A from element `index`, a multiple of 4, on.
vec4 a_four(uint index) {
    if (A_TYPE == HDI_TYPE_F32) return uintBitsToFloat(wide_a[index >> 2]);
    uint low = a[index >> 1], high = a[(index >> 1) + 1u];
    if (A_TYPE == HDI_TYPE_F16) return vec4(unpackHalf2x16(low), unpackHalf2x16(high));
    return uintBitsToFloat(uvec4(low << 16, low & 0xFFFF0000u, high << 16, high & 0xFFFF0000u));
}
float dot_fused(vec4 x, vec4 y, float sum) { return fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, sum)))); }
// What a row's sums are scaled by, from the sum of its squares.
float norm_scale(float squares) {
    if (NORM == HDI_MM_NORM_NONE) return 1.0;
    return inversesqrt(squares / float(push[HDI_MM_PUSH_K]) + uintBitsToFloat(NORM_EPS));
}
#endif
