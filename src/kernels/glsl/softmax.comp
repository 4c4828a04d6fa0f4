#version 450
// softmax.comp: softmax, log_softmax, cross_entropy and its gradient along the last axis, a workgroup for a row. The row is read
// again for each of its passes rather than kept: it may have any length. In fast mode one pass finds the largest element and the
// sum of powers beside it.
#extension GL_EXT_control_flow_attributes : require
#include "rows.glsl"
layout(constant_id = HDI_ROW_OP) const uint OP = HDI_ROW_SOFTMAX;
layout(constant_id = HDI_ROW_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ROW_HAS) const uint HAS = 0u;
layout(push_constant) uniform Push { uint rows, n; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Targets { uint targets[]; };
layout(std430, binding = 2) readonly buffer Gradient { uint gradient[]; };
layout(std430, binding = 3) readonly buffer Losses { float losses[]; };
layout(std430, binding = 4) buffer Y { uint y[]; };

float largest, scale, log_sum, dy;
uint at_target, kept; // kept: all bits, or none where there is no target

float below_largest(uint i) { return add_rounded(LOAD_FLOAT(x, TYPE, i), -largest); }
uint value(uint i) {
    float d = below_largest(i);
    if (OP == HDI_ROW_CROSS_ENTROPY_GRADIENT) {
        float share = add_rounded(mul_rounded(exponential(d), scale), i == at_target ? -1.0 : 0.0);
        return canonical_bits(mul_rounded(share, dy)) & kept;
    }
    return canonical_bits(OP == HDI_ROW_SOFTMAX ? mul_rounded(exponential(d), scale) : add_rounded(d, -log_sum));
}

// The sum of what is scaled by the largest element so far, at every new one.
float sum_in_one_pass(uint first) {
    const float LOWEST = -3.402823e38; // what is -infinity beside it counts nothing
    float top = LOWEST, own = 0.0;
    for (uint begin = ME; begin < push.n; begin += 4u * WORKGROUP) {
        vec4 four = vec4(uintBitsToFloat(0xFF800000u));
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint i = begin + k * WORKGROUP;
            if (i < push.n) four[k] = LOAD_FLOAT(x, TYPE, first + i);
        }
        float next = max(max(max(four.x, four.y), max(four.z, four.w)), top);
        vec4 powers = exp(four - next);
        own = own * exp(top - next) + (powers.x + powers.y) + (powers.z + powers.w);
        top = next;
    }
    FOR_EACH_LANE(lane) lanes[lane] = uint(lane == ME ? key_of(floatBitsToUint(top)) : KEY_LEAST);
    largest = uintBitsToFloat(bits_of_key(largest_of_lanes()));
    FOR_EACH_LANE(lane) lanes[lane] = lane == ME ? floatBitsToUint(own * exp(top - largest)) : 0u;
    return sum_of_lanes();
}
float sum_in_order(uint first) {
    FOR_EACH_LANE(lane) {
        int best = KEY_LEAST;
        for (uint i = lane; i < push.n; i += LANES) best = max(best, key_of(LOAD(x, TYPE, first + i)));
        lanes[lane] = uint(best);
    }
    largest = uintBitsToFloat(bits_of_key(largest_of_lanes()));
    FOR_EACH_LANE(lane) {
        float sum = 0.0;
        for (uint i = lane; i < push.n; i += LANES) sum = add_rounded(sum, exponential(below_largest(first + i)));
        lanes[lane] = floatBitsToUint(sum);
    }
    return sum_of_lanes();
}

// A loss is the logarithm of all powers less the target's logit: beside that logarithm the powers' sum is 1.
bool find_largest_by_loss(uint row, uint first) {
    if (EXACT != 0u || HAS == 0u || targets[row] >= push.n) return false;
    largest = losses[row] + LOAD_FLOAT(x, TYPE, first + targets[row]);
    return abs(largest) < 1e30; // else a logit is infinite, or all are far below 0
}

void main() {
    uint row = group_number();
    if (row >= push.rows) return;
    uint first = row * push.n;
    if (OP == HDI_ROW_CROSS_ENTROPY_GRADIENT) {
        dy = uintBitsToFloat(gradient[row]);
        kept = ~uint(int(targets[row]) >> 31);
        at_target = targets[row] < push.n ? first + targets[row] : 0xFFFFFFFFu;
    }
    float sum = 1.0;
    if (!find_largest_by_loss(row, first)) sum = EXACT == 0u ? sum_in_one_pass(first) : sum_in_order(first);
    if (OP == HDI_ROW_SOFTMAX || OP == HDI_ROW_CROSS_ENTROPY_GRADIENT) scale = divided(1.0, sum);
    else log_sum = logarithm(sum);
    if (OP == HDI_ROW_CROSS_ENTROPY) {
        if (ME != 0u) return;
        uint target = targets[row];
        uint other = int(target) < 0 ? 0u : EXACT_NAN; // a negative target is ignored; outside
        y[row] = target < push.n ? canonical_bits(add_rounded(log_sum, -below_largest(first + target))) : other;
    } else STORE_ROW(y, OUT_TYPE, first, push.n, value)
}
