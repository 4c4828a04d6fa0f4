/* The arithmetic of exact mode: one text, included unchanged by C11 and by GLSL (#version 450), same bits from both.
 * It relies on f32 + - * (rounded to nearest, one rounding each: `precise` in GLSL, -ffp-contract=off in C), compares,
 * selects, int <-> float conversions whose rounding cannot matter, integer operations and bit casts. Nothing else is
 * the same on all devices, so there is no fma, no division, no library function and no double here.
 * No float operation in a function has a subnormal operand or result that matters: subnormals are taken apart and put
 * together as integers. So they are right, and equal, also where the device flushes subnormals to zero.
 * A NaN result is always 0x7fc00000 (but for exact_max and exact_min). Accuracy is stated at each function, in units of
 * the last place, and checked by tests/unit/test_exact.c.
 * In C a division may be the processor's own, which IEEE 754 makes the same bits; EXACT_PORTABLE turns that off. */
#ifndef EXACT_H
#define EXACT_H

#ifdef VULKAN
#define EXACT_FN
#define EXACT_STRUCT(name) struct name
#define EXACT_MAKE(name, a, b) name(a, b)
#define EXACT_MAKE3(name, a, b, c) name(a, b, c)
#define exact_real precise float
#define exact_int int
#define exact_uint uint
#define exact_bits(x) floatBitsToUint(x)
#define exact_from_bits(b) uintBitsToFloat(b)
#define exact_to_int(x) int(x)
#define exact_to_uint(x) uint(x)
#define exact_to_real(i) float(i)
#define exact_select(c, a, b) ((c) ? (a) : (b))
#define exact_select_real(c, a, b) ((c) ? (a) : (b))
#else
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __GNUC__ /* a loop is vectorised only when all of it is inlined */
#define EXACT_FN static inline __attribute__((always_inline))
#else
#define EXACT_FN static inline
#endif
#define EXACT_STRUCT(name) typedef struct name name; struct name
#define EXACT_MAKE(name, a, b) ((name){(a), (b)})
#define EXACT_MAKE3(name, a, b, c) ((name){(a), (b), (c)})
typedef float exact_real;
typedef int32_t exact_int;
typedef uint32_t exact_uint;
EXACT_FN exact_uint exact_bits(float x) { exact_uint b; memcpy(&b, &x, sizeof b); return b; }
EXACT_FN float exact_from_bits(exact_uint b) { float x; memcpy(&x, &b, sizeof x); return x; }
#define exact_to_int(x) ((exact_int)(x))
#define exact_to_uint(x) ((exact_uint)(x))
#define exact_to_real(i) ((float)(i))
/* c ? a : b without a branch, where compilers would make one and then not vectorise the loop around it. */
EXACT_FN exact_uint exact_select(bool c, exact_uint a, exact_uint b) { return b ^ ((a ^ b) & (0u - (exact_uint)c)); }
EXACT_FN float exact_select_real(bool c, float a, float b) {
    return exact_from_bits(exact_select(c, exact_bits(a), exact_bits(b)));
}
#endif

#define EXACT_SIGN 0x80000000u
#define EXACT_ONE  0x3f800000u
#define EXACT_INF  0x7f800000u
#define EXACT_NAN  0x7fc00000u

/* ---- NaN, subnormals, exact products -------------------------------------------------------------------------- */

EXACT_FN bool exact_is_nan(float x) { return (exact_bits(x) & ~EXACT_SIGN) > EXACT_INF; }

/* The sign bit: no compare, which might take a subnormal for 0. */
EXACT_FN bool exact_is_below(float x) { return (exact_bits(x) & EXACT_SIGN) != 0u; }

/* Every NaN becomes the one NaN. A kernel stores floats through this: devices make NaNs with different bits. */
EXACT_FN float exact_canonical(float x) {
    return exact_from_bits(exact_select(exact_is_nan(x), EXACT_NAN, exact_bits(x)));
}

/* The larger or the smaller; b where either is NaN or where they are equal (so of +0 and -0 too). The only ones here
 * that take subnormals for equal where the device does. */
EXACT_FN float exact_max(float a, float b) { return a > b ? a : b; }
EXACT_FN float exact_min(float a, float b) { return a < b ? a : b; }

/* |x| < 2^-64 times 2^126, exact for subnormals and 0; other x as they are. exact_lift tells the power to take off. */
EXACT_FN float exact_lifted(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_real sub = exact_from_bits(EXACT_ONE | b) - 1.0f; /* b < 2^23: this is b * 2^-23 */
    exact_uint up = exact_select(b < 0x1f800000u, b + (126u << 23), b);
    up = exact_select(b < 0x00800000u, exact_bits(sub), up);
    return exact_from_bits(up | (exact_bits(x) & EXACT_SIGN));
}
EXACT_FN exact_int exact_lift(float x) {
    return exact_to_int(exact_select((exact_bits(x) & ~EXACT_SIGN) < 0x1f800000u, 126u, 0u));
}

/* m * 2^k, rounded once to nearest even, for m zero, normal or infinite and |k| <= 300; gradual underflow. */
EXACT_FN float exact_scale(float m, exact_int k) {
    exact_uint b = exact_bits(m) & ~EXACT_SIGN;
    exact_uint fraction = b & 0x007fffffu;
    exact_int e = exact_to_int(b >> 23) + k;
    exact_int drop = e < -25 ? 26 : 1 - e;
    drop = e > 0 ? 1 : drop;
    exact_uint ruler = exact_to_uint(127 + drop) << 23; /* 2^drop: adding it lines the kept bits up at the low end */
    exact_real lined = exact_from_bits(EXACT_ONE | fraction) + exact_from_bits(ruler);
    exact_uint small = exact_bits(lined) - ruler;
    exact_uint r = exact_select(e > 254, EXACT_INF, (exact_to_uint(e) << 23) | fraction);
    r = exact_select(e < 1, small, r);
    r = exact_select(b >= EXACT_INF, EXACT_INF, r);
    r = exact_select(b < 0x00800000u, 0u, r);
    return exact_from_bits(r | (exact_bits(m) & EXACT_SIGN));
}

/* Two results of one function. */
EXACT_STRUCT(exact_pair) { float x; float y; };

/* What a * b loses by rounding, given p = a * b: exact unless something under- or overflows (Dekker's product). */
EXACT_FN float exact_product_tail(float a, float b, float p) {
    exact_real ah = exact_from_bits(exact_bits(a) & 0xfffff000u);
    exact_real bh = exact_from_bits(exact_bits(b) & 0xfffff000u);
    exact_real al = a - ah;
    exact_real bl = b - bh;
    exact_real e = ah * bh - p;
    e = e + ah * bl;
    e = e + al * bh;
    e = e + al * bl;
    return e;
}

/* ---- division and roots --------------------------------------------------------------------------------------- */

/* About 1 / m for m in [1, 2), within a few ulp. */
EXACT_FN float exact_rcp_guess(float m) {
    exact_real y = exact_from_bits(0x7ef311c7u - exact_bits(m));
    exact_real e = 1.0f - m * y;
    y = y + y * e;
    e = 1.0f - m * y;
    y = y + y * e;
    e = 1.0f - m * y;
    y = y + y * e;
    return y;
}

/* a / b, correctly rounded for all operands. The quotient is settled in integers, the floats only guess it. */
EXACT_FN float exact_div_portable(float a, float b) {
    exact_uint sign = (exact_bits(a) ^ exact_bits(b)) & EXACT_SIGN;
    exact_uint ua = exact_bits(a) & ~EXACT_SIGN;
    exact_uint ub = exact_bits(b) & ~EXACT_SIGN;
    exact_real sub_a = exact_from_bits(EXACT_ONE | ua) - 1.0f;
    exact_real sub_b = exact_from_bits(EXACT_ONE | ub) - 1.0f;
    exact_uint na = ua < 0x00800000u ? exact_bits(sub_a) : ua;
    exact_uint nb = ub < 0x00800000u ? exact_bits(sub_b) : ub;
    exact_int e = exact_to_int(na >> 23) - exact_to_int(nb >> 23) + 127;
    e = e - (ua < 0x00800000u ? 126 : 0) + (ub < 0x00800000u ? 126 : 0);
    exact_uint ma = (na & 0x007fffffu) | 0x00800000u;
    exact_uint mb = (nb & 0x007fffffu) | 0x00800000u;

    exact_real guess = exact_rcp_guess(exact_from_bits(EXACT_ONE | (nb & 0x007fffffu)));
    exact_real ratio = exact_from_bits(EXACT_ONE | (na & 0x007fffffu)) * guess;
    exact_real wide = ratio * 33554432.0f;
    exact_uint q = exact_to_uint(exact_to_int(wide)); /* near ma * 2^25 / mb, which has 25 or 26 bits */
    exact_int rest = exact_to_int((ma << 25) - q * mb);
    exact_real step = exact_to_real(rest) * guess;
    step = step * 1.1920928955078125e-7f;
    exact_int more = exact_to_int(step);
    q = q + exact_to_uint(more);
    rest = rest - more * exact_to_int(mb);
    q = rest < 0 ? q - 1u : rest >= exact_to_int(mb) ? q + 1u : q;
    rest = rest < 0 ? rest + exact_to_int(mb) : rest >= exact_to_int(mb) ? rest - exact_to_int(mb) : rest;

    exact_uint twice = (q << 1) | (rest != 0 ? 1u : 0u); /* the last bit stands for all that follows */
    exact_int big = q >= 0x02000000u ? 1 : 0;
    e = e - 1 + big;
    exact_int drop = 2 + big + (e < 1 ? 1 - e : 0);
    drop = drop > 30 ? 30 : drop;
    exact_uint kept = twice >> exact_to_uint(drop);
    exact_uint lost = twice - (kept << exact_to_uint(drop));
    exact_uint tie = 1u << exact_to_uint(drop - 1);
    kept = kept + (lost > tie || (lost == tie && (kept & 1u) != 0u) ? 1u : 0u);
    exact_uint r = e > 254 ? EXACT_INF : kept + (e < 1 ? 0u : exact_to_uint(e - 1) << 23);

    r = ua == 0u || ub == EXACT_INF ? 0u : ua == EXACT_INF || ub == 0u ? EXACT_INF : r;
    r = r | sign;
    bool invalid = ua > EXACT_INF || ub > EXACT_INF || (ua == 0u && ub == 0u) || (ua == EXACT_INF && ub == EXACT_INF);
    return exact_from_bits(invalid ? EXACT_NAN : r);
}

#if defined(VULKAN) || defined(EXACT_PORTABLE)
EXACT_FN float exact_div(float a, float b) { return exact_div_portable(a, b); }
#else
EXACT_FN float exact_div(float a, float b) { return exact_canonical(a / b); }
#endif

/* 1 / x, correctly rounded. */
EXACT_FN float exact_rcp(float x) { return exact_div(1.0f, x); }

/* About 1 / sqrt(m) for m in [1, 4), within a few ulp. */
EXACT_FN float exact_rsqrt_guess(float m) {
    exact_real h = 0.5f * m;
    exact_real y = exact_from_bits(0x5f3759dfu - (exact_bits(m) >> 1));
    exact_real g = h * y;
    y = y * (1.5f - g * y);
    g = h * y;
    y = y * (1.5f - g * y);
    g = h * y;
    y = y * (1.5f - g * y);
    return y;
}

/* x > 0 and finite = m * 4^k with m in [1, 4). */
EXACT_STRUCT(exact_quarter) { float m; exact_int k; };
EXACT_FN exact_quarter exact_split4(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_real sub = exact_from_bits(EXACT_ONE | b) - 1.0f;
    exact_uint n = b < 0x00800000u ? exact_bits(sub) : b;
    exact_int e = exact_to_int(n >> 23) - 127 - (b < 0x00800000u ? 126 : 0);
    exact_int odd = e & 1;
    exact_uint m = (exact_to_uint(127 + odd) << 23) | (n & 0x007fffffu);
    return EXACT_MAKE(exact_quarter, exact_from_bits(m), (e - odd) >> 1);
}

/* sqrt(x), correctly rounded; sqrt(-0) is -0, of other negatives NaN. Settled in integers like the division. */
EXACT_FN float exact_sqrt(float x) {
    exact_uint b = exact_bits(x);
    exact_quarter s = exact_split4(x);
    exact_uint n = exact_bits(s.m);
    exact_uint m = ((n & 0x007fffffu) | 0x00800000u) << (((n >> 23) & 1u) ^ 1u);
    exact_real y = exact_rsqrt_guess(s.m);
    exact_real wide = s.m * y;
    wide = wide * 16777216.0f;
    exact_uint root = exact_to_uint(exact_to_int(wide)); /* near sqrt(m * 2^25), which has 25 bits */
    exact_real step = exact_to_real(exact_to_int((m << 25) - root * root)) * y;
    step = step * 2.98023223876953125e-8f;
    root = root + exact_to_uint(exact_to_int(step));
    exact_int rest = exact_to_int((m << 25) - root * root);
    exact_int next = exact_to_int(2u * root + 1u);
    exact_uint floor_root = rest < 0 ? root - 1u : rest >= next ? root + 1u : root;
    /* The last bit of the floor is the first one dropped; a tie cannot be, so it alone rounds up. */
    exact_uint kept = (floor_root >> 1) + (floor_root & 1u);
    exact_uint r = (exact_to_uint(s.k + 126) << 23) + kept;
    r = (b & ~EXACT_SIGN) == 0u || b == EXACT_INF ? b : r;
    return exact_from_bits(b > EXACT_INF && b != EXACT_SIGN ? EXACT_NAN : r);
}

/* 1 / sqrt(x), within 0.51 ulp; of 0 infinite with its sign, of negatives NaN. */
EXACT_FN float exact_rsqrt(float x) {
    exact_uint b = exact_bits(x);
    exact_quarter s = exact_split4(x);
    exact_real y = exact_rsqrt_guess(s.m);
    exact_real yy = y * y;
    exact_real yy_tail = exact_product_tail(y, y, yy);
    exact_real p = s.m * yy;
    exact_real p_tail = exact_product_tail(s.m, yy, p);
    exact_real e = 1.0f - p;
    e = e - p_tail;
    e = e - s.m * yy_tail;
    e = e * 0.5f;
    y = y + y * e;
    exact_uint r = exact_bits(y) - (exact_to_uint(s.k) << 23);
    r = (b & ~EXACT_SIGN) == 0u ? b | EXACT_INF : b == EXACT_INF ? 0u : r;
    return exact_from_bits(b > EXACT_INF && b != EXACT_SIGN ? EXACT_NAN : r);
}

/* ---- exponentials --------------------------------------------------------------------------------------------- */

/* exp(h + l) = (1 + more) * 2^k with more in [-0.3, 0.42]; l is a small tail of h; h is cut to [-126, 126]. */
EXACT_STRUCT(exact_power) { float more; exact_int k; };
EXACT_FN exact_power exact_exp_parts(float h, float l) {
    exact_real x = exact_min(exact_max(h, -126.0f), 126.0f);
    exact_real t = x * 1.44269502f;
    t = t + 12582912.0f; /* 1.5 * 2^23: the sum holds the nearest integer in its low bits */
    exact_int k = exact_to_int(exact_bits(t) - 0x4b400000u);
    exact_real n = t - 12582912.0f;
    exact_real r0 = x - n * 0.693145752f;
    exact_real c = n * 1.42860677e-6f;
    c = c - l;
    exact_real r = r0 - c;
    exact_real tail = r0 - r;
    tail = tail - c;
    exact_real q = 0.000198458991f;
    q = q * r + 0.00139408931f;
    q = q * r + 0.00833338965f;
    q = q * r + 0.0416663587f;
    q = q * r + 0.166666657f;
    q = q * r + 0.5f;
    exact_real rr = r * r;
    q = q * rr;
    q = q + tail;
    exact_real more = r + q;
    return EXACT_MAKE(exact_power, more, k);
}

/* e to the x, within 1 ulp. */
EXACT_FN float exact_exp(float x) {
    exact_power w = exact_exp_parts(x, 0.0f);
    exact_real m = 1.0f + w.more;
    exact_real y = exact_scale(m, w.k);
    return exact_is_nan(x) ? exact_from_bits(EXACT_NAN) : y;
}

/* exp(x) - 1, within 1.6 ulp. */
EXACT_FN float exact_expm1(float x) {
    exact_power w = exact_exp_parts(exact_max(x, -20.0f), 0.0f);
    exact_int k = w.k > 100 ? 100 : w.k;
    exact_real one = 1.0f - exact_from_bits(exact_to_uint(127 - k) << 23);
    exact_real m = one + w.more;
    exact_real y = exact_scale(m, w.k);
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    y = b < 0x33000000u ? x : y;
    return exact_is_nan(x) ? exact_from_bits(EXACT_NAN) : y;
}

/* The natural logarithm, within 1 ulp; of 0 -infinite, of negatives NaN. */
EXACT_FN float exact_log(float x) {
    exact_uint b = exact_bits(x);
    exact_real sub = exact_from_bits(EXACT_ONE | (b & ~EXACT_SIGN)) - 1.0f;
    exact_uint n = b < 0x00800000u ? exact_bits(sub) : b;
    exact_int i = exact_to_int(n - 0x3f3504f3u); /* so that the mantissa comes out in [sqrt(1/2), sqrt(2)) */
    exact_int e = (i >> 23) - (b < 0x00800000u ? 126 : 0);
    exact_real f = exact_from_bits((exact_to_uint(i) & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    exact_real k = exact_to_real(e);
    exact_real z = f * f;
    exact_real q = 0.0676182508f;
    q = q * f - 0.116908297f;
    q = q * f + 0.118898258f;
    q = q * f - 0.124033421f;
    q = q * f + 0.142190471f;
    q = q * f - 0.166680962f;
    q = q * f + 0.200021461f;
    q = q * f - 0.250000089f;
    q = q * f + 0.333333135f;
    q = q * f;
    q = q * z;
    q = q + k * 1.42860677e-6f;
    q = q - 0.5f * z;
    exact_real y = f + q;
    y = y + k * 0.693145752f;
    exact_uint r = (b & ~EXACT_SIGN) == 0u ? EXACT_SIGN | EXACT_INF : b == EXACT_INF ? b : exact_bits(y);
    return exact_from_bits(b > EXACT_INF && b != EXACT_SIGN ? EXACT_NAN : r);
}

/* ---- sine and cosine ------------------------------------------------------------------------------------------ */

/* An angle: quadrant * pi/2 + hi + lo, |hi| <= pi/4. */
EXACT_STRUCT(exact_angle) { float hi; float lo; exact_uint quadrant; };

/* (h + l) * (ch + cl) as a sum of two floats; h * ch must not underflow unless h is 0. */
EXACT_FN exact_angle exact_angle_of(float h, float l, float ch, float cl, exact_uint quadrant) {
    exact_real p = h * ch;
    exact_real t = exact_product_tail(h, ch, p);
    t = t + h * cl;
    t = t + l * ch;
    exact_real hi = p + t;
    exact_real lo = p - hi;
    lo = lo + t;
    return EXACT_MAKE3(exact_angle, hi, lo, quadrant);
}

EXACT_FN exact_uint exact_mulhi(exact_uint a, exact_uint b) {
    exact_uint al = a & 0xffffu, ah = a >> 16, bl = b & 0xffffu, bh = b >> 16;
    exact_uint mid = ah * bl + ((al * bl) >> 16);
    exact_uint mid2 = al * bh + (mid & 0xffffu);
    return ah * bh + (mid >> 16) + (mid2 >> 16);
}

/* One of five words. */
EXACT_FN exact_uint exact_pick(exact_uint i, exact_uint a, exact_uint b, exact_uint c, exact_uint d, exact_uint e) {
    exact_uint low = exact_select(i == 0u, a, b);
    exact_uint high = exact_select(i == 2u, c, exact_select(i == 3u, d, e));
    return exact_select(i < 2u, low, high);
}

/* |x| taken apart, for any finite x: above pi/4 by a 96-bit window of the bits of 2/pi (Payne and Hanek). */
EXACT_FN exact_angle exact_reduce(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_uint m = (b & 0x007fffffu) | 0x00800000u;
    exact_uint at = (b >> 23) < 126u ? 6u : (b >> 23) - 120u; /* first bit of the window, counted in 0, 2/pi's bits */
    at = at > 134u ? 134u : at;
    exact_uint i = at >> 5, up = at & 31u, down = 31u - up;
    exact_uint t0 = exact_pick(i, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u);
    exact_uint t1 = exact_pick(i, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u);
    exact_uint t2 = exact_pick(i, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u);
    exact_uint t3 = exact_pick(i, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    exact_uint w0 = (t0 << up) | ((t1 >> 1) >> down);
    exact_uint w1 = (t1 << up) | ((t2 >> 1) >> down);
    exact_uint w2 = (t2 << up) | ((t3 >> 1) >> down);
    exact_uint mid1 = m * w1;
    exact_uint mid = mid1 + exact_mulhi(m, w2);
    exact_uint top = m * w0 + exact_mulhi(m, w1) + (mid < mid1 ? 1u : 0u);
    exact_uint quadrant = (top + 0x20000000u) >> 30; /* top:mid is x * 2/pi modulo 4, 62 bits after the point */
    top = top - (quadrant << 30);
    bool below = (top & EXACT_SIGN) != 0u;
    top = exact_select(below, ~top + (mid == 0u ? 1u : 0u), top);
    mid = exact_select(below, ~mid + 1u, mid);
    exact_real h = exact_to_real(exact_to_int(top >> 6)) * 5.9604644775390625e-8f;
    exact_real l = exact_to_real(exact_to_int(((top & 63u) << 18) | (mid >> 14))) * 3.5527136788005009e-15f;
    l = l + exact_to_real(exact_to_int(mid & 0x3fffu)) * 2.1684043449710089e-19f;
    h = exact_select_real(below, -h, h);
    l = exact_select_real(below, -l, l);
    exact_angle big = exact_angle_of(h, l, 1.57079637f, -4.37113883e-8f, quadrant);
    bool small = b < 0x3f490fdbu;
    exact_real hi = exact_select_real(small, exact_from_bits(b), big.hi);
    exact_real lo = exact_select_real(small, 0.0f, big.lo);
    return EXACT_MAKE3(exact_angle, hi, lo, exact_select(small, 0u, big.quadrant));
}

/* The sine of an angle; its cosine is the sine one quadrant on. */
EXACT_FN float exact_sin_angle(exact_angle a, exact_uint quarter_turns) {
    exact_uint quadrant = a.quadrant + quarter_turns;
    exact_real z = a.hi * a.hi;
    exact_real half_z = 0.5f * z;
    exact_real w = 1.0f - half_z;
    exact_real s = -0.000195147848f;
    s = s * z + 0.00833215751f;
    s = s * z - 0.166666552f;
    s = s * z;
    s = s * a.hi;
    s = s + a.lo * w;
    s = a.hi + s;
    exact_real c = 2.44325875e-5f;
    c = c * z - 0.00138873118f;
    c = c * z + 0.0416666456f;
    c = c * z;
    c = c * z;
    c = c - a.hi * a.lo;
    exact_real w_tail = 1.0f - w;
    w_tail = w_tail - half_z;
    c = c + w_tail;
    c = w + c;
    exact_real y = exact_select_real((quadrant & 1u) != 0u, c, s);
    return exact_from_bits(exact_bits(y) ^ ((quadrant & 2u) << 30));
}

/* The sine, within 1 ulp for every finite x; else NaN. */
EXACT_FN float exact_sin(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_uint y = exact_bits(exact_sin_angle(exact_reduce(x), 0u)) ^ (exact_bits(x) & EXACT_SIGN);
    return exact_from_bits(b >= EXACT_INF ? EXACT_NAN : b < 0x39800000u ? exact_bits(x) : y);
}

/* The cosine, within 1 ulp for every finite x; else NaN. */
EXACT_FN float exact_cos(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_real y = exact_sin_angle(exact_reduce(x), 1u);
    return exact_from_bits(b >= EXACT_INF ? EXACT_NAN : exact_bits(y));
}

/* Sine and cosine of phase / 2^32 turns, within 1 ulp. A phase wraps without loss, so position times step may too. */
EXACT_FN exact_pair exact_sincos_turns(exact_uint phase) {
    exact_uint quadrant = (phase + 0x20000000u) >> 30;
    exact_int f = exact_to_int(phase - (quadrant << 30));
    exact_real h = exact_to_real(f >> 6) * 64.0f;
    exact_real l = exact_to_real(f & 63);
    exact_angle a = exact_angle_of(h, l, 1.46291812e-9f, -4.07094027e-17f, quadrant);
    return EXACT_MAKE(exact_pair, exact_sin_angle(a, 0u), exact_sin_angle(a, 1u));
}

/* ---- activations ---------------------------------------------------------------------------------------------- */

/* tanh, within 1.5 ulp. */
EXACT_FN float exact_tanh(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_real a = exact_min(exact_from_bits(b), 16.0f);
    exact_real z = a * a;
    exact_real p = 0.00209284131f;
    p = p * z - 0.0081230998f;
    p = p * z + 0.0216789879f;
    p = p * z - 0.0539428554f;
    p = p * z + 0.133331761f;
    p = p * z - 0.333333313f;
    p = p * z;
    p = a + a * p;
    exact_real twice = a + a;
    exact_real e = exact_exp(twice);
    e = e + 1.0f;
    exact_real q = 1.0f - exact_div(2.0f, e);
    exact_uint y = b < 0x39800000u ? b : a < 0.64f ? exact_bits(p) : exact_bits(q);
    return exact_from_bits(b > EXACT_INF ? EXACT_NAN : y | (exact_bits(x) & EXACT_SIGN));
}

/* (m + tail) * 2^k. */
EXACT_STRUCT(exact_scaled) { float m; float tail; exact_int k; };

/* x * value for a value that is 1 from x = 128 on, and 0 as good as from x = -126 down; of NaN NaN. */
EXACT_FN float exact_scaled_times(exact_scaled value, float x) {
    exact_uint b = exact_bits(x);
    exact_real lifted = exact_lifted(exact_from_bits(exact_select(b > 0xc2fc0000u, 0xc2fc0000u, b)));
    exact_real y = value.tail * lifted;
    y = value.m * lifted + y;
    y = exact_scale(y, value.k - exact_lift(x));
    b = exact_select(b >= 0x43000000u && b < EXACT_SIGN, b, exact_bits(y));
    return exact_from_bits(exact_select(exact_is_nan(x), EXACT_NAN, b));
}

/* 1 / (s + s_tail) for s in [1, 32]: the quotient, 1 / s rounded to nearest, and its tail. What is left of 1 tells
 * whether the guess, within 1.2 units of its last place, is that quotient. */
EXACT_FN exact_pair exact_rcp_pair(float s, float s_tail) {
    exact_real guess = exact_rcp_guess(s);
    exact_real product = guess * s;
    exact_real rest = 1.0f - product;
    rest = rest - exact_product_tail(guess, s, product);
    exact_real unit = exact_from_bits(0x73000000u - (exact_bits(s) & 0x7f800000u)); /* of the quotient's last place */
    exact_real most = 0.5f * unit * s;
    exact_real less = exact_select_real(rest < -most, -unit, 0.0f);
    exact_real step = exact_select_real(rest > most, unit, less);
    exact_real p = guess + step;
    rest = rest - step * s;
    rest = rest - p * s_tail;
    exact_real tail = rest * p;
    return EXACT_MAKE(exact_pair, p, tail);
}

/* (a + a_tail) * (b + b_tail). */
EXACT_FN exact_pair exact_mul_pair(float a, float a_tail, float b, float b_tail) {
    exact_real p = a * b;
    exact_real tail = exact_product_tail(a, b, p);
    tail = tail + a_tail * b;
    tail = tail + a * b_tail;
    return EXACT_MAKE(exact_pair, p, tail);
}

/* The normal distribution's tail beyond a in [0, 16]: exp(-a^2 / 2) * g(t) / (a + 4), t = (a - 4) / (a + 4). */
EXACT_FN exact_scaled exact_normal_tail(float a) {
    exact_real aa = a * a;
    exact_real aa_tail = exact_product_tail(a, a, aa);
    exact_real h = -0.5f * aa;
    exact_real l = -0.5f * aa_tail;
    exact_power w = exact_exp_parts(h, l);
    exact_real e = 1.0f + w.more;
    exact_real e_tail = e - 1.0f;
    e_tail = w.more - e_tail;

    exact_real s = a + 4.0f;
    exact_real s_tail = s - 4.0f;
    s_tail = a - s_tail;
    exact_pair inv = exact_rcp_pair(s, s_tail);
    exact_real eight = 8.0f * inv.x;
    exact_real t = 1.0f - eight;
    exact_real t_tail = 1.0f - t;
    t_tail = t_tail - eight;
    t_tail = t_tail - 8.0f * inv.y;

    exact_real q = -0.000134971327f;
    q = q * t + 0.000171299354f;
    q = q * t + 0.00156544079f;
    q = q * t - 0.00350901298f;
    q = q * t - 0.00752214156f;
    q = q * t + 0.0604034625f;
    q = q * t - 0.186523974f;
    q = q * t + 0.387136906f;
    q = q * t - 0.607896566f;
    exact_real slope = 0.232464731f; /* dg/dt, near enough for the tail of t */
    slope = slope * t - 0.573291302f;
    slope = slope * t + 0.776157737f;
    slope = slope * t - 0.607355416f;
    exact_real v = q * t;
    exact_real g_tail = exact_product_tail(q, t, v);
    g_tail = g_tail + slope * t_tail;
    exact_real g = 0.755285144f + v;
    exact_real back = g - 0.755285144f;
    exact_real lost = 0.755285144f - (g - back);
    lost = lost + (v - back);
    g_tail = g_tail + lost;

    exact_pair r = exact_mul_pair(g, g_tail, inv.x, inv.y);
    r = exact_mul_pair(r.x, r.y, e, e_tail);
    return EXACT_MAKE3(exact_scaled, r.x, r.y, w.k);
}

/* The error function, within 1.5 ulp. */
EXACT_FN float exact_erf(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    exact_real a = exact_from_bits(exact_select(b < 0x40800000u, b, 0x40800000u));
    exact_real at = a * 1.41421354f;
    exact_scaled tail = exact_normal_tail(at);
    exact_real beyond = tail.m + tail.tail;
    beyond = beyond * exact_from_bits(exact_to_uint(128 + tail.k) << 23); /* a <= 4, so tail.k >= -24 */
    exact_real outer = 1.0f - beyond;
    exact_real z = a * a;
    exact_real p = 7.85386146e-5f;
    p = p * z - 0.000801019371f;
    p = p * z + 0.00518832775f;
    p = p * z - 0.0268538129f;
    p = p * z + 0.112835854f;
    p = p * z - 0.37612626f;
    p = p * z + 0.128379166f;
    exact_real lifted = exact_lifted(a);
    exact_real inner = lifted + lifted * p;
    inner = exact_scale(inner, -exact_lift(x));
    exact_uint y = exact_select(b < 0x3f800000u, exact_bits(inner), exact_bits(outer));
    return exact_from_bits(b > EXACT_INF ? EXACT_NAN : y | (exact_bits(x) & EXACT_SIGN));
}

/* 1 / (1 + exp(-(h + l))); k is 0 unless h is below 0. */
EXACT_FN exact_scaled exact_sigmoid_parts(float h, float l) {
    bool below = exact_is_below(h);
    exact_power w = exact_exp_parts(exact_select_real(below, h, -h), exact_select_real(below, l, -l));
    exact_real e = 1.0f + w.more;
    exact_real e_tail = e - 1.0f;
    e_tail = w.more - e_tail;
    exact_real shrink = exact_from_bits(exact_to_uint(w.k < -64 ? 63 : 127 + w.k) << 23);
    exact_real t = e * shrink;
    exact_real s = 1.0f + t;
    exact_real s_tail = s - 1.0f;
    s_tail = t - s_tail;
    s_tail = s_tail + e_tail * shrink;
    exact_pair p = exact_rcp_pair(s, s_tail);
    exact_pair q = exact_mul_pair(e, e_tail, p.x, p.y);
    exact_real m = exact_select_real(below, q.x, p.x);
    exact_real m_tail = exact_select_real(below, q.y, p.y);
    exact_int k = exact_to_int(exact_select(below, exact_to_uint(w.k), 0u));
    return EXACT_MAKE3(exact_scaled, m, m_tail, k);
}

/* 1 / (1 + exp(-x)), within 1 ulp. */
EXACT_FN float exact_sigmoid(float x) {
    exact_scaled g = exact_sigmoid_parts(x, 0.0f);
    exact_real m = g.m + g.tail;
    exact_real y = exact_scale(m, g.k);
    return exact_from_bits(exact_select(exact_is_nan(x), EXACT_NAN, exact_bits(y)));
}

/* x * sigmoid(x), within 1.6 ulp. */
EXACT_FN float exact_silu(float x) { return exact_scaled_times(exact_sigmoid_parts(x, 0.0f), x); }

/* x * Phi(x), the form with erf, within 2.1 ulp. */
EXACT_FN float exact_gelu(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN;
    bool below = exact_is_below(x);
    exact_scaled tail = exact_normal_tail(exact_min(exact_from_bits(b), 16.0f));
    exact_real shrink = exact_from_bits(exact_to_uint(tail.k < -64 ? 63 : 127 + tail.k) << 23);
    exact_real beyond = tail.m * shrink;
    exact_real rest = 1.0f - beyond;
    exact_real rest_tail = 1.0f - rest;
    rest_tail = rest_tail - beyond;
    rest_tail = rest_tail - tail.tail * shrink;
    exact_real m = exact_select_real(below, tail.m, rest);
    exact_real m_tail = exact_select_real(below, tail.tail, rest_tail);
    exact_int k = exact_to_int(exact_select(below, exact_to_uint(tail.k), 0u));
    exact_scaled part = EXACT_MAKE3(exact_scaled, m, m_tail, k);
    return exact_scaled_times(part, x);
}

/* x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), which is the form with tanh, within 1.6 ulp. */
EXACT_FN float exact_gelu_tanh(float x) {
    exact_real a = exact_min(exact_max(x, -12.0f), 12.0f);
    exact_real z = a * a;
    exact_real z_tail = exact_product_tail(a, a, z);
    exact_real p = z * 0.0713548139f;
    exact_real p_tail = exact_product_tail(z, 0.0713548139f, p);
    p_tail = p_tail + z_tail * 0.0713548139f;
    p_tail = p_tail + z * 2.39883247e-9f;
    exact_real s = 1.59576917f + p; /* what this sum loses, by Knuth's two-sum */
    exact_real back = s - 1.59576917f;
    exact_real s_tail = 1.59576917f - (s - back);
    s_tail = s_tail + (p - back);
    s_tail = s_tail + p_tail;
    s_tail = s_tail - 4.53406805e-8f;
    exact_real h = a * s;
    exact_real l = exact_product_tail(a, s, h);
    l = l + a * s_tail;
    return exact_scaled_times(exact_sigmoid_parts(h, l), x);
}

/* dy times gelu_tanh's slope: (1 + t) / 2 + x (1 - t^2) (c / 2 + 3/2 c 0.044715 x^2) with t = tanh(x (c + c 0.044715
 * x^2)) and c = sqrt(2 / pi), each operation rounded. */
EXACT_FN float exact_gelu_tanh_gradient(float x, float dy) {
    exact_real squared = x * x;
    exact_real bend = squared * 0.0356774069f;
    bend = bend + 0.797884583f;
    exact_real inner = squared * 0.053516116f;
    inner = inner + 0.398942292f;
    exact_real angle = x * bend;
    exact_real t = exact_tanh(angle);
    exact_real rest = t * t;
    rest = 1.0f - rest;
    exact_real steep = x * rest;
    steep = steep * inner;
    exact_real slope = t * 0.5f;
    slope = slope + 0.5f;
    slope = slope + steep;
    exact_real y = dy * slope;
    return y;
}

/* ---- numbers of 8 bits ------------------------------------------------------------------------------------------ */

/* How a run of numbers, the bits of whose largest magnitude are `most`, becomes whole numbers from -127 to 127: times
 * `inverse`, to the nearest even integer; `scale` takes them back. Both within 2^-22. Below 2^-64 all are 0, so that no
 * product with a scale of f16 is subnormal. Where one is infinite or NaN the scale is NaN, whatever the codes are
 * then. */
EXACT_STRUCT(exact_rounding) { float scale; float inverse; };
EXACT_FN exact_rounding exact_int8_rounding(exact_uint most) {
    exact_real y = exact_rcp_guess(exact_from_bits(EXACT_ONE | (most & 0x007fffffu)));
    y = y * 1.984375f; /* 127 / 64 */
    exact_real inverse = y * exact_from_bits((260u - (most >> 23)) << 23);
    exact_real scale = exact_from_bits(most) * 7.87401572e-3f;
    bool small = most < 0x1f800000u, wild = most >= EXACT_INF;
    exact_uint scale_bits = exact_select(small, 0u, exact_select(wild, EXACT_NAN, exact_bits(scale)));
    exact_uint inverse_bits = exact_select(small || wild, 0u, exact_bits(inverse));
    exact_rounding r = EXACT_MAKE(exact_rounding, exact_from_bits(scale_bits), exact_from_bits(inverse_bits));
    return r;
}
/* The code in the low byte: the sum's last bits are the integer. */
EXACT_FN exact_uint exact_int8_code(float x, float inverse) {
    exact_real scaled = x * inverse;
    exact_real lined = scaled + 12582912.0f;
    return exact_bits(lined) & 255u;
}

/* ---- conversions ---------------------------------------------------------------------------------------------- */

EXACT_FN float exact_f16_to_f32(exact_uint h) {
    exact_uint e = (h >> 10) & 31u, m = (h & 1023u) << 13;
    exact_real sub = exact_from_bits(0x38800000u | m) - 6.103515625e-5f;
    exact_uint r = ((e == 31u ? 255u : e + 112u) << 23) | m;
    r = exact_select(e == 0u, exact_bits(sub), r);
    return exact_canonical(exact_from_bits(r | ((h & 0x8000u) << 16)));
}

/* To nearest even; NaN becomes 0x7e00. */
EXACT_FN exact_uint exact_f32_to_f16(float x) {
    exact_uint b = exact_bits(x) & ~EXACT_SIGN, sign = (exact_bits(x) & EXACT_SIGN) >> 16;
    exact_real lined = exact_from_bits(b) + 0.5f;
    exact_uint small = exact_bits(lined) - 0x3f000000u;
    exact_uint normal = (b - 0x38000000u + 0x0fffu + ((b >> 13) & 1u)) >> 13;
    exact_uint r = b < 0x38800000u ? small : b < 0x477ff000u ? normal : 0x7c00u;
    return b > EXACT_INF ? 0x7e00u : r | sign;
}

EXACT_FN float exact_bf16_to_f32(exact_uint h) { return exact_canonical(exact_from_bits(h << 16)); }

/* To nearest even; NaN becomes 0x7fc0. */
EXACT_FN exact_uint exact_f32_to_bf16(float x) {
    exact_uint b = exact_bits(x);
    exact_uint r = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    return exact_is_nan(x) ? 0x7fc0u : r;
}

/* Towards zero, cut to the range of i32; of NaN 0. */
EXACT_FN exact_int exact_f32_to_i32(float x) {
    bool fits = x >= -2147483648.0f && x < 2147483648.0f;
    exact_int i = exact_to_int(fits ? x : 0.0f);
    return fits || exact_is_nan(x) ? i : x < 0.0f ? -2147483647 - 1 : 2147483647;
}

#endif
