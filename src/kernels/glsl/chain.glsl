// chain.glsl: the element-wise chain of abi.h, as the body of elementwise.comp and as the end of other kernels. All that
// it does is decided by specialisation constants, so a driver keeps only the chosen steps. The costly functions stand in
// the module once: a chain has at most one of them, with cheap steps before and after it.
// Before including it, define CHAIN_ATTRIBUTE(i): the i-th attribute word of the chain, as bits.
#ifndef CHAIN_GLSL
#define CHAIN_GLSL
#include "tensor.glsl"
#include "../exact.h"
#include "../steps.h"
#include "fast.glsl"

layout(constant_id = HDI_SPEC_EXACT) const uint EXACT = 1u;
layout(constant_id = HDI_SPEC_CHAIN) const uint CHAIN = 0u;
layout(constant_id = HDI_SPEC_STEP + 0) const uint STEP_0 = 0u;
layout(constant_id = HDI_SPEC_STEP + 1) const uint STEP_1 = 0u;
layout(constant_id = HDI_SPEC_STEP + 2) const uint STEP_2 = 0u;
layout(constant_id = HDI_SPEC_STEP + 3) const uint STEP_3 = 0u;
layout(constant_id = HDI_SPEC_STEP + 4) const uint STEP_4 = 0u;
layout(constant_id = HDI_SPEC_STEP + 5) const uint STEP_5 = 0u;
layout(constant_id = HDI_SPEC_STEP + 6) const uint STEP_6 = 0u;
layout(constant_id = HDI_SPEC_STEP + 7) const uint STEP_7 = 0u;
layout(constant_id = HDI_SPEC_CHAIN_TYPE + 0) const uint SOURCE_TYPE_0 = HDI_TYPE_F32;
layout(constant_id = HDI_SPEC_CHAIN_TYPE + 1) const uint SOURCE_TYPE_1 = HDI_TYPE_F32;
layout(constant_id = HDI_SPEC_CHAIN_TYPE + 2) const uint SOURCE_TYPE_2 = HDI_TYPE_F32;
layout(constant_id = HDI_SPEC_CHAIN_TYPE + 3) const uint SOURCE_TYPE_3 = HDI_TYPE_F32;
layout(constant_id = HDI_SPEC_OUT_TYPE) const uint OUT_TYPE = HDI_TYPE_F32;

// The place of the costly step; 31: none. Steps past the chain's end are 0, which is a copy.
#define STEP_IS_COSTLY(step) (((step) >> 29) & 1u)
uint chain_costly_at() {
    uint places = STEP_IS_COSTLY(STEP_0) | STEP_IS_COSTLY(STEP_1) << 1 | STEP_IS_COSTLY(STEP_2) << 2 |
        STEP_IS_COSTLY(STEP_3) << 3 | STEP_IS_COSTLY(STEP_4) << 4 | STEP_IS_COSTLY(STEP_5) << 5 |
        STEP_IS_COSTLY(STEP_6) << 6 | STEP_IS_COSTLY(STEP_7) << 7 | 0x80000000u;
    return uint(findLSB(places));
}

uint chain_float(float value) { return floatBitsToUint(EXACT != 0u ? exact_canonical(value) : value); }

uint chain_cheap_step(uint form, uint a, uint b, uint c, float k, float l) {
    float x = uintBitsToFloat(a), y = uintBitsToFloat(b);
    uint r = a;
    precise float value;
    switch (int(form)) {
#define BITS_STEP(form, bits) case form: r = bits; break;
#define FLOAT_STEP(form, result) case form: value = result; r = chain_float(value); break;
#include "../steps.inc"
    }
    return r;
}
uint chain_costly_step(uint form, uint a, uint b, float k, float l) {
    float x = uintBitsToFloat(a), y = uintBitsToFloat(b);
    uint r = a;
    precise float value;
    switch (int(form)) {
#define COSTLY_BITS_STEP(form, bits) case form: r = bits; break;
#define COSTLY_FLOAT_STEP(form, result, fast) \
    case form: if (EXACT != 0u) { value = result; r = chain_float(value); } else r = exact_bits(fast); break;
#include "../steps.inc"
    }
    return r;
}

#define STEP_TYPE(step) (((step) >> 20) & 15u)
uint chain_step_word(uint i) {
    switch (int(i)) {
    case 0: return STEP_0;
    case 1: return STEP_1;
    case 2: return STEP_2;
    case 3: return STEP_3;
    case 4: return STEP_4;
    case 5: return STEP_5;
    case 6: return STEP_6;
    default: return STEP_7;
    }
}
// Rounds a step's result to its type: what a separate operation would have read back.
uint chain_round(uint step, uint bits) {
    uint r = bits;
    switch (int(STEP_TYPE(step))) {
    case HDI_TYPE_F16: r = step_round_f16(bits); break;
    case HDI_TYPE_BF16: r = step_round_bf16(bits); break;
    case HDI_TYPE_U8: r = bits & 0xFFu; break;
    }
    return r;
}
#define CHAIN_SOURCE(step, shift) values[min(((step) >> (shift)) & 15u, 11u)]
#define CHAIN_FLOAT_ATTRIBUTE(step, i) uintBitsToFloat(CHAIN_ATTRIBUTE((((step) >> 24) & 31u) + i))
#define CHAIN_CHEAP(i, step) if (CHAIN > i) values[4u + i] = chain_round(step, chain_cheap_step( \
    (step) & 255u, CHAIN_SOURCE(step, 8), CHAIN_SOURCE(step, 12), CHAIN_SOURCE(step, 16), \
    CHAIN_FLOAT_ATTRIBUTE(step, 0u), CHAIN_FLOAT_ATTRIBUTE(step, 1u)))

// One element's chain, from its sources' bits to the result's bits; source 0 is v0.
uint run_chain(uint v0, uint v1, uint v2, uint v3) {
    uint values[HDI_CHAIN_INPUTS + HDI_CHAIN_STEPS];
    uint costly_at = chain_costly_at();
    values[0] = v0;
    values[1] = v1;
    values[2] = v2;
    values[3] = v3;
    if (costly_at > 0u) CHAIN_CHEAP(0u, STEP_0);
    if (costly_at > 1u) CHAIN_CHEAP(1u, STEP_1);
    if (costly_at > 2u) CHAIN_CHEAP(2u, STEP_2);
    if (costly_at > 3u) CHAIN_CHEAP(3u, STEP_3);
    if (costly_at > 4u) CHAIN_CHEAP(4u, STEP_4);
    if (costly_at > 5u) CHAIN_CHEAP(5u, STEP_5);
    if (costly_at > 6u) CHAIN_CHEAP(6u, STEP_6);
    if (costly_at > 7u) CHAIN_CHEAP(7u, STEP_7);
    if (costly_at < CHAIN) {
        uint step = chain_step_word(costly_at);
        fast_is_rough = STEP_TYPE(step) == HDI_TYPE_F16 || STEP_TYPE(step) == HDI_TYPE_BF16;
        values[4u + costly_at] = chain_round(step, chain_costly_step(step & 255u, CHAIN_SOURCE(step, 8),
            CHAIN_SOURCE(step, 12), CHAIN_FLOAT_ATTRIBUTE(step, 0u), CHAIN_FLOAT_ATTRIBUTE(step, 1u)));
    }
    if (costly_at < 1u) CHAIN_CHEAP(1u, STEP_1);
    if (costly_at < 2u) CHAIN_CHEAP(2u, STEP_2);
    if (costly_at < 3u) CHAIN_CHEAP(3u, STEP_3);
    if (costly_at < 4u) CHAIN_CHEAP(4u, STEP_4);
    if (costly_at < 5u) CHAIN_CHEAP(5u, STEP_5);
    if (costly_at < 6u) CHAIN_CHEAP(6u, STEP_6);
    if (costly_at < 7u) CHAIN_CHEAP(7u, STEP_7);
    return CHAIN == 0u ? v0 : values[min(3u + CHAIN, 11u)];
}
#endif
