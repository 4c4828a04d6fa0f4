// fast.glsl: the functions of exact.h as fast mode computes them: with the device's own division and square root, and less
// care for the last bits, within the bounds of op_table.inc. The polynomials are exact.h's: a device's own exp may lose
// 2|x| ulp, its sine and cosine 2^-11 and more.
#ifndef FAST_GLSL
#define FAST_GLSL

// m * 2^k for |k| < 250, in two halves so that neither power leaves the normal range.
float fast_scale(float m, int k) {
    int half_k = k >> 1;
    return m * uintBitsToFloat(uint(127 + half_k) << 23) * uintBitsToFloat(uint(127 + k - half_k) << 23);
}
float fast_exp(float x) {
    exact_power w = exact_exp_parts(x, 0.0);
    return exact_is_nan(x) ? x : fast_scale(1.0 + w.more, w.k);
}
// Is the result stored with 8 or 11 bits? The device's own power is near enough then. A chain says so of its costly step.
bool fast_is_rough = false;
// x / (1 + exp(-h)), x and h of the same sign or x positive.
float fast_gate(float x, float h) {
    if (fast_is_rough) return exact_max(x, -3e38) * (1.0 / (1.0 + exp2(h * -1.44269504)));
    bool below = h < 0.0;
    exact_power w = exact_exp_parts(below ? h : -h, 0.0);
    float m = 1.0 + w.more, q = 1.0 / (1.0 + fast_scale(m, w.k));
    float y = below ? fast_scale(exact_max(x, -126.0) * m * q, w.k) : x * q;
    return exact_is_nan(h) ? h : y;
}
float fast_tanh(float x) {
    float a = abs(x), z = x * x;
    float near = a - a * z * (0.333333333 - z * (0.133333333 - z * 0.053968254));
    float y = a < 0.2 ? near : 1.0 - 2.0 / (1.0 + fast_exp(2.0 * a));
    return x < 0.0 ? -y : y;
}
// erfc by Abramowitz and Stegun, 7.1.26: within 1.5e-7.
float fast_gelu(float x) {
    float a = min(abs(x), 16.0), z = a * 0.70710678, t = 1.0 / (1.0 + 0.3275911 * z);
    float erfc = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    erfc *= 0.5 * fast_exp(-z * z);
    float y = x < 0.0 ? -a * erfc : x * (1.0 - erfc);
    return exact_is_nan(x) ? x : y;
}
float fast_gelu_tanh(float x) {
    return fast_gate(x, x * (1.59576912 + 0.0713548163 * x * x));
}
// gelu_tanh is x times a gate, whose slope is gate (1 - gate) times its argument's.
float fast_gelu_tanh_gradient(float x, float dy) {
    float squared = x * x, gate = fast_gate(1.0, x * (1.59576912 + 0.0713548163 * squared));
    return dy * (gate + x * gate * (1.0 - gate) * (1.59576912 + 0.214064449 * squared));
}
// x as an angle by three parts of pi/2, good up to 65536; above, exact.h's own way.
exact_angle fast_angle(float x) {
    float quarters = floor(x * 0.636619772 + 0.5);
    float rest = ((x - quarters * 1.5703125) - quarters * 4.8375129699707031e-4) - quarters * 7.54979013e-8;
    return exact_angle(rest, 0.0, uint(int(quarters)));
}
float fast_sin(float x) { return abs(x) < 65536.0 ? exact_sin_angle(fast_angle(x), 0u) : exact_sin(x); }
float fast_cos(float x) { return abs(x) < 65536.0 ? exact_sin_angle(fast_angle(x), 1u) : exact_cos(x); }
#endif
