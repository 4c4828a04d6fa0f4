#version 450
#extension GL_GOOGLE_include_directive : require
// Applies one function of exact.h to arrays of bit patterns; the test compares the results with those of C.
#include "exact.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FUNCTION = 0u;
layout(push_constant) uniform Constants { uint count; };
layout(std430, binding = 0) readonly buffer A { uint a[]; };
layout(std430, binding = 1) readonly buffer B { uint b[]; };
layout(std430, binding = 2) writeonly buffer R { uint r[]; };

// One line per function, in the order that the test numbers them: x, y are floats, u the bits of x.
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    uint u = a[i];
    float x = uintBitsToFloat(u), y = uintBitsToFloat(b[i]), f = 0.0;
    uint bits = 0u;
    bool whole = false;
    switch (FUNCTION) {
    case 0u: f = exact_div(x, y); break;
    case 1u: f = exact_rcp(x); break;
    case 2u: f = exact_sqrt(x); break;
    case 3u: f = exact_rsqrt(x); break;
    case 4u: f = exact_exp(x); break;
    case 5u: f = exact_expm1(x); break;
    case 6u: f = exact_log(x); break;
    case 7u: f = exact_sin(x); break;
    case 8u: f = exact_cos(x); break;
    case 9u: f = exact_sincos_turns(u).x; break;
    case 10u: f = exact_sincos_turns(u).y; break;
    case 11u: f = exact_tanh(x); break;
    case 12u: f = exact_erf(x); break;
    case 13u: f = exact_sigmoid(x); break;
    case 14u: f = exact_silu(x); break;
    case 15u: f = exact_gelu(x); break;
    case 16u: f = exact_gelu_tanh(x); break;
    case 17u: f = exact_f16_to_f32(u & 0xffffu); break;
    case 18u: bits = exact_f32_to_f16(x); whole = true; break;
    case 19u: f = exact_bf16_to_f32(u & 0xffffu); break;
    case 20u: bits = exact_f32_to_bf16(x); whole = true; break;
    case 21u: bits = uint(exact_f32_to_i32(x)); whole = true; break;
    case 22u: f = exact_canonical(exact_max(x, y)); break;
    case 23u: f = exact_canonical(exact_min(x, y)); break;
    }
    r[i] = whole ? bits : floatBitsToUint(f);
}
