#version 450
// cumsum.comp: running sums along rows, 256 elements at a time: every lane adds what is 1, 2, 4, ... 128 lanes before it,
// and what all before the 256 came to. A workgroup has a row, or a part of a long one.
#include "rows.glsl"
layout(constant_id = HDI_CUMSUM_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_CUMSUM_STAGE) const uint STAGE = HDI_CUMSUM_WHOLE;
layout(constant_id = HDI_CUMSUM_FORM) const uint FORM = 0u;
layout(push_constant) uniform Push { uint rows, n, parts, part; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Before { uint before[]; };
layout(std430, binding = 2) buffer Y { uint y[]; };
shared uint others[LANES];

uint plus_bits(uint a, uint b) {
    return TYPE == HDI_TYPE_I32 ? a + b : floatBitsToUint(add_rounded(uintBitsToFloat(a), uintBitsToFloat(b)));
}

#define ADD_FROM(step, from, to) { \
    barrier(); \
    FOR_EACH_LANE(lane) to[lane] = lane >= step ? plus_bits(from[lane], from[lane - step]) : from[lane]; }

void main() {
    uint group = group_number(), row = group / push.parts;
    if (row >= push.rows) return;
    uint begin = (group - row * push.parts) * push.part, end = min(begin + push.part, push.n);
    bool exclusive = (FORM & HDI_CUMSUM_EXCLUSIVE) != 0u, reverse = (FORM & HDI_CUMSUM_REVERSE) != 0u;
    uint carry = STAGE == HDI_CUMSUM_BEHIND ? before[group] : 0u;
    for (uint tile = begin; tile < end; tile += LANES) {
        FOR_EACH_LANE(lane) {
            uint i = tile + lane, at = row * push.n + (reverse ? push.n - 1u - i : i);
            lanes[lane] = 0u;
            if (i < end) lanes[lane] = LOAD(x, TYPE, at);
        }
        ADD_FROM(1u, lanes, others)
        ADD_FROM(2u, others, lanes)
        ADD_FROM(4u, lanes, others)
        ADD_FROM(8u, others, lanes)
        ADD_FROM(16u, lanes, others)
        ADD_FROM(32u, others, lanes)
        ADD_FROM(64u, lanes, others)
        ADD_FROM(128u, others, lanes)
        barrier();
        if (STAGE != HDI_CUMSUM_TOTALS) {
            FOR_EACH_LANE(lane) {
                uint i = tile + lane, at = row * push.n + (reverse ? push.n - 1u - i : i);
                uint sum = carry;
                if (!exclusive) sum = plus_bits(carry, lanes[lane]);
                else if (lane > 0u) sum = plus_bits(carry, lanes[lane - 1u]);
                if (TYPE != HDI_TYPE_I32) sum = canonical_bits(uintBitsToFloat(sum));
                if (i < end) STORE(y, OUT_TYPE, at, sum)
            }
        }
        carry = plus_bits(carry, lanes[LANES - 1u]);
        barrier();
    }
    if (STAGE == HDI_CUMSUM_TOTALS && ME == 0u) y[group] = carry;
}
