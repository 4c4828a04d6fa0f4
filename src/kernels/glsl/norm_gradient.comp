#version 450
// norm_gradient.comp: the gradient of x under rms_norm or layer_norm along the last axis, a workgroup for a row. What is
// summed of a row is read again for each pass: it stays in the caches.
#include "rows.glsl"
layout(constant_id = HDI_ROW_HAS) const uint HAS = 0u;
layout(constant_id = HDI_NORM_DY) const uint DY_TYPE = HDI_TYPE_F32;
layout(push_constant) uniform Push { uint rows, n, eps, share; } push;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) readonly buffer Dy { uint dy[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Added { float added[]; };
layout(std430, binding = 4) buffer Y { uint y[]; };
layout(std430, binding = 0) readonly buffer WideX { vec4 wide_x[]; };
layout(std430, binding = 1) readonly buffer WideDy { vec4 wide_dy[]; };
layout(std430, binding = 1) readonly buffer PairDy { uvec2 pair_dy[]; };
layout(std430, binding = 2) readonly buffer WideWeight { vec4 wide_weight[]; };
layout(std430, binding = 3) readonly buffer WideAdded { vec4 wide_added[]; };
layout(std430, binding = 4) buffer WideY { uvec4 wide_y[]; };
layout(std430, binding = 4) buffer PairY { uvec2 pair_y[]; };
shared uint others[LANES];

#define ELEMENT(i) x[i]
#include "norms.glsl"
float scale, root, along, level;
uint first;

float normal(uint i) { return mul_rounded(centred(i), scale); }
float weighted(uint i) {
    float h = LOAD_FLOAT(dy, DY_TYPE, i);
    return (HAS & 1u) != 0u ? mul_rounded(h, weight[i - first]) : h;
}
uint value(uint i) {
    float h = weighted(i);
    if (OP == HDI_ROW_LAYER_NORM) h = add_rounded(h, -level);
    float rest = add_rounded(h, -mul_rounded(normal(i), along));
    float v = EXACT == 1u ? exact_div(rest, root) : rest * scale;
    if ((HAS & HDI_ROW_ADDS) != 0u) v = add_rounded(v, added[i]);
    if ((HAS & HDI_ROW_HALVES) != 0u) v = v > 65504.0 ? 65504.0 : v < -65504.0 ? -65504.0 : v;
    return canonical_bits(v);
}

vec4 weighted_four(uint at, uint first_four) {
    vec4 h;
    if (DY_TYPE == HDI_TYPE_F32) h = wide_dy[first_four + at];
    else h = uintBitsToFloat(unpack_four(pair_dy[first_four + at], DY_TYPE));
    if ((HAS & 1u) != 0u) h *= wide_weight[at];
    return h;
}
void gradient_of_held(uint first_four) {
    vec4 gradients[HELD], products = vec4(0.0), sums = vec4(0.0);
    EACH_FOUR(k, at) held[k] = wide_x[first_four + at];
    EACH_FOUR(k, at) gradients[k] = weighted_four(at, first_four);
    const float factor = factor_of(spread_of_held(uintBitsToFloat(push.eps))), share = uintBitsToFloat(push.share);
    EACH_FOUR(k, at) {
        products = fma(gradients[k], held[k] * factor, products);
        sums = add_rounded(sums, gradients[k]);
    }
    const float products_mean = sum_of_row(products) * share * factor, mean_gradient = OP == HDI_ROW_LAYER_NORM ? sum_of_row(sums) * share : 0.0;
    EACH_FOUR(k, at) {
        vec4 v = fma(-held[k], vec4(products_mean), add_rounded(gradients[k], vec4(-mean_gradient))) * factor;
        if ((HAS & HDI_ROW_ADDS) != 0u) v = add_rounded(v, wide_added[first_four + at]);
        if ((HAS & HDI_ROW_HALVES) != 0u) v = halves_of(v);
        STORE_FOUR(first_four + at, v)
    }
}

void main() {
    uint row = group_number();
    if (row >= push.rows) return;
    first = row * push.n;
    if (FOURS > 0u) {
        gradient_of_held(first / 4u);
        return;
    }
    float spread = spread_of_row(first, push.n, uintBitsToFloat(push.eps));
    scale = factor_of(spread);
    if (EXACT == 1u) root = exact_sqrt(spread);
    FOR_EACH_LANE(lane) {
        float products = 0.0, sum = 0.0;
        for (uint i = lane; i < push.n; i += LANES) {
            float h = weighted(first + i);
            products = add_product(products, h, normal(first + i));
            sum = add_rounded(sum, h);
        }
        lanes[lane] = floatBitsToUint(products);
        others[lane] = floatBitsToUint(sum);
    }
    along = mul_rounded(sum_of_lanes(), uintBitsToFloat(push.share));
    if (OP == HDI_ROW_LAYER_NORM) {
        FOR_EACH_LANE(lane) lanes[lane] = others[lane];
        level = divided(sum_of_lanes(), count_float(push.n));
    }
    STORE_ROW(y, OUT_TYPE, first, push.n, value)
}
