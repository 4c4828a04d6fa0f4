#version 450
// norm.comp: rms_norm and layer_norm along the last axis, a workgroup for a row.
#include "rows.glsl"
layout(constant_id = HDI_ROW_HAS) const uint HAS = 0u;
layout(push_constant) uniform Push { uint rows, n, eps; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Weight { uint weight[]; };
layout(std430, binding = 2) readonly buffer Bias { uint bias[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };
layout(std430, binding = 0) readonly buffer WideX { vec4 wide_x[]; };
layout(std430, binding = 1) readonly buffer WideWeight { vec4 wide_weight[]; };
layout(std430, binding = 2) readonly buffer WideBias { vec4 wide_bias[]; };
layout(std430, binding = 3) buffer WideY { uvec4 wide_y[]; };
layout(std430, binding = 3) buffer PairY { uvec2 pair_y[]; };

#define ELEMENT(i) LOAD_FLOAT(x, TYPE, i)
#include "norms.glsl"
float scale;
uint first;

uint value(uint i) {
    float v = mul_rounded(centred(i), scale);
    if ((HAS & 1u) != 0u) v = mul_rounded(v, LOAD_FLOAT(weight, TYPE, i - first));
    if ((HAS & 2u) != 0u) v = add_rounded(v, LOAD_FLOAT(bias, TYPE, i - first));
    if ((HAS & HDI_ROW_HALVES) != 0u) v = v > 65504.0 ? 65504.0 : v < -65504.0 ? -65504.0 : v;
    return canonical_bits(v);
}

void norm_held(uint first_four) {
    EACH_FOUR(k, at) held[k] = wide_x[first_four + at];
    const float factor = factor_of(spread_of_held(uintBitsToFloat(push.eps)));
    EACH_FOUR(k, at) {
        vec4 v = held[k] * factor;
        if ((HAS & 1u) != 0u) v *= wide_weight[at];
        if ((HAS & 2u) != 0u) v = add_rounded(v, wide_bias[at]);
        if ((HAS & HDI_ROW_HALVES) != 0u) v = halves_of(v);
        STORE_FOUR(first_four + at, v)
    }
}

void main() {
    uint row = group_number();
    if (row >= push.rows) return;
    first = row * push.n;
    if (FOURS > 0u) {
        norm_held(first / 4u);
        return;
    }
    scale = factor_of(spread_of_row(first, push.n, uintBitsToFloat(push.eps)));
    STORE_ROW(y, OUT_TYPE, first, push.n, value)
}
