#version 450
// norm.comp: rms_norm and layer_norm along the last axis, a workgroup for a row. The variance is taken in a second pass,
// from the differences to the mean.
#include "rows.glsl"
layout(constant_id = HDI_ROW_OP) const uint OP = HDI_ROW_RMS_NORM;
layout(constant_id = HDI_ROW_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ROW_HAS) const uint HAS = 0u;
layout(push_constant) uniform Push { uint rows, n, eps; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Weight { uint weight[]; };
layout(std430, binding = 2) readonly buffer Bias { uint bias[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };

float mean, scale;
uint first;

float centred(uint i) {
    float value = LOAD_FLOAT(x, TYPE, i);
    return OP == HDI_ROW_LAYER_NORM ? add_rounded(value, -mean) : value;
}
uint value(uint i) {
    float v = mul_rounded(centred(i), scale);
    if ((HAS & 1u) != 0u) v = mul_rounded(v, LOAD_FLOAT(weight, TYPE, i - first));
    if ((HAS & 2u) != 0u) v = add_rounded(v, LOAD_FLOAT(bias, TYPE, i - first));
    if ((HAS & HDI_ROW_HALVES) != 0u) v = v > 65504.0 ? 65504.0 : v < -65504.0 ? -65504.0 : v;
    return canonical_bits(v);
}

void main() {
    uint row = group_number();
    if (row >= push.rows) return;
    first = row * push.n;
    float count = count_float(push.n);
    if (OP == HDI_ROW_LAYER_NORM) {
        FOR_EACH_LANE(lane) {
            float sum = 0.0;
            for (uint i = lane; i < push.n; i += LANES) sum = add_rounded(sum, LOAD_FLOAT(x, TYPE, first + i));
            lanes[lane] = floatBitsToUint(sum);
        }
        mean = divided(sum_of_lanes(), count);
    }
    FOR_EACH_LANE(lane) {
        float sum = 0.0;
        for (uint i = lane; i < push.n; i += LANES) {
            float c = centred(first + i);
            sum = add_product(sum, c, c);
        }
        lanes[lane] = floatBitsToUint(sum);
    }
    float spread = add_rounded(divided(sum_of_lanes(), count), uintBitsToFloat(push.eps));
    scale = EXACT == 1u ? exact_rsqrt(spread) : inversesqrt(spread);
    STORE_ROW(y, OUT_TYPE, first, push.n, value)
}
