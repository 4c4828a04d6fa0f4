/* steps.h: helpers of steps.inc, one text for C and GLSL as exact.h is. All work on an element's bits as the computing
 * type's: floats as f32 bits, i32 as it is, u8 as 0..255. No step leaves a device's own choice in the result. */
#ifndef HDI_KERNELS_STEPS_H
#define HDI_KERNELS_STEPS_H

#ifndef VULKAN /* in GLSL the paths are those of the including folder */
#include "kernels/abi.h"
#include "kernels/exact.h"
#endif

/* A form is a step's code, or one of these, once the operands' type is known. */
#define HDI_FORM_I32          32 /* added to the code of a step over i32 or u8 that floats have too */
#define HDI_FORM_F32_TO_I32   42 /* casts, at numbers that steps over floats alone leave free */
#define HDI_FORM_F32_TO_U8    43
#define HDI_FORM_I32_TO_F32   44
#define HDI_FORM_I32_TO_BF16  45
#define HDI_FORM_I32_TO_U8    46
#define HDI_FORM_COUNT        64

/* A float's or integer's bits after a round trip through a narrow type: what a separate operation would have read. */
EXACT_FN exact_uint step_round_f16(exact_uint f) {
    exact_uint a = f & ~EXACT_SIGN;
    exact_real lined = exact_from_bits(a) + 0.5f; /* below 2^-14 the sum rounds to f16's unit there, 2^-24 */
    lined = lined - 0.5f;
    exact_uint normal = (a + 0xfffu + ((a >> 13) & 1u)) & ~0x1fffu;
    exact_uint r = a < 0x38800000u ? exact_bits(lined) : a < 0x477ff000u ? normal : a > EXACT_INF ? EXACT_NAN
                   : EXACT_INF;
    return r | (f & EXACT_SIGN);
}
EXACT_FN exact_uint step_round_bf16(exact_uint f) {
    exact_uint r = (f + 0x7fffu + ((f >> 16) & 1u)) & 0xffff0000u;
    return (f & ~EXACT_SIGN) > EXACT_INF ? (f & 0xffff0000u) | 0x00400000u : r;
}

/* Bits of a bf16, away from 0 with the share of 2^16 that its lower 16 bits are. */
EXACT_FN exact_uint step_round_random(exact_uint f, exact_uint word) {
    exact_uint r = (f + (word >> 16)) & 0xffff0000u;
    return (f & ~EXACT_SIGN) > EXACT_INF ? f : r;
}

/* Floats as integers of the same order, both zeros as 0: compares that hold where a device takes subnormals for 0. */
EXACT_FN exact_int step_order(exact_uint a) {
    exact_int magnitude = exact_to_int(a & ~EXACT_SIGN), below = -magnitude;
    return (a & EXACT_SIGN) != 0u ? below : magnitude;
}
EXACT_FN bool step_is_nan(exact_uint a) { return (a & ~EXACT_SIGN) > EXACT_INF; }
EXACT_FN exact_uint step_less(exact_uint a, exact_uint b) {
    exact_uint r = step_order(a) < step_order(b) ? 1u : 0u;
    r = step_is_nan(a) ? 0u : r;
    return step_is_nan(b) ? 0u : r;
}
EXACT_FN exact_uint step_equal(exact_uint a, exact_uint b) {
    exact_uint r = step_order(a) == step_order(b) ? 1u : 0u;
    return step_is_nan(a) ? 0u : r; /* b is no NaN then */
}
EXACT_FN exact_uint step_clip(exact_uint a, exact_uint low, exact_uint high) {
    exact_uint r = step_order(a) < step_order(low) ? low : a;
    r = step_order(r) > step_order(high) ? high : r;
    return step_is_nan(a) ? a : r;
}
EXACT_FN exact_uint step_relu(exact_uint a) {
    exact_uint r = (a & EXACT_SIGN) != 0u ? 0u : a;
    return step_is_nan(a) ? a : r;
}
/* Below 2^23, where numbers have fractions, the sum's unit is 1. */
EXACT_FN exact_uint step_round(exact_uint a) {
    exact_uint magnitude = a & ~EXACT_SIGN;
    exact_real lined = exact_from_bits(magnitude) + 8388608.0f;
    lined = lined - 8388608.0f;
    return (magnitude < 0x4b000000u ? exact_bits(lined) : magnitude) | (a & EXACT_SIGN);
}
EXACT_FN exact_uint step_floor(exact_uint a) {
    exact_uint magnitude = a & ~EXACT_SIGN, exponent = magnitude >> 23;
    exact_uint whole = magnitude & ~(0x7fffffu >> ((exponent - 127u) & 31u));
    exact_uint kept = exponent < 127u ? 0u : exponent < 150u ? whole : magnitude;
    exact_real beyond = exact_from_bits(kept) + 1.0f;
    bool below = (a & EXACT_SIGN) != 0u && kept != magnitude;
    return (below ? exact_bits(beyond) : kept) | (a & EXACT_SIGN);
}
EXACT_FN exact_uint step_sign(exact_uint a) {
    exact_uint r = (a & ~EXACT_SIGN) == 0u ? 0u : 0x3f800000u | (a & EXACT_SIGN);
    return step_is_nan(a) ? a : r;
}
/* Of equal ones, as the two zeros are, the first. */
EXACT_FN exact_uint step_maximum(exact_uint a, exact_uint b) {
    exact_uint r = step_order(a) < step_order(b) ? b : a;
    r = step_is_nan(b) ? b : r;
    return step_is_nan(a) ? a : r;
}
EXACT_FN exact_uint step_minimum(exact_uint a, exact_uint b) {
    exact_uint r = step_order(b) < step_order(a) ? b : a;
    r = step_is_nan(b) ? b : r;
    return step_is_nan(a) ? a : r;
}
EXACT_FN exact_uint step_shift_left(exact_uint a, exact_uint b) { return b < 32u ? a << (b & 31u) : 0u; }
EXACT_FN exact_uint step_shift_right(exact_uint a, exact_uint b) { return b < 32u ? a >> (b & 31u) : 0u; }
EXACT_FN exact_uint step_shift_right_signed(exact_uint a, exact_uint b) {
    exact_uint count = b < 32u ? b : 31u;
    return a >> count | ((a & EXACT_SIGN) != 0u ? ~(0xffffffffu >> count) : 0u);
}
EXACT_FN exact_uint step_clip_i32(exact_uint a, exact_int low, exact_int high) {
    exact_int r = exact_to_int(a);
    r = r < low ? low : r;
    r = r > high ? high : r;
    return exact_to_uint(r);
}
/* Towards zero; x / 0 is 0, and the least number / -1 is itself. */
EXACT_FN exact_uint step_divide_i32(exact_uint a, exact_uint b) {
    bool plain = b + 1u > 1u;
    exact_int q = exact_to_int(a) / (plain ? exact_to_int(b) : 1);
    return plain ? exact_to_uint(q) : b == 0u ? 0u : 0u - a;
}
/* An i32 that f32 holds and that rounds to the same bf16: what is under half a unit becomes one sticky bit. */
EXACT_FN float step_i32_to_bf16(exact_uint a) {
    exact_uint m = (a & EXACT_SIGN) != 0u ? 0u - a : a;
    m = m < 0x01000000u ? m : (m & ~255u) | ((m & 255u) != 0u ? 128u : 0u);
    exact_real high = exact_to_real(exact_to_int(m >> 8)) * 256.0f;
    exact_real y = high + exact_to_real(exact_to_int(m & 255u));
    return exact_from_bits(exact_bits(y) | (a & EXACT_SIGN));
}
#endif
