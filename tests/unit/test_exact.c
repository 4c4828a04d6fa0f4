/* exact.h in C: how far each function is from the truth, special values, and that nothing depends on the processor's
 * treatment of subnormals. It relies on the C library's double functions as the truth. EXACT_PORTABLE makes the
 * division the one that GPUs run. The last test pins all results: any compiler and level must make the same bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define EXACT_PORTABLE
#include "kernels/exact.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { SAMPLE_COUNT = 150000 };

static uint64_t random_state;

static uint32_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

/* Bits of a float: any pattern, one between 2^-15 and 2^16, one spread evenly over [-20, 20], or one near underflow. */
static uint32_t random_float_bits(int kind) {
    uint32_t b = random_bits();
    switch (kind & 3) {
    case 0: return b;
    case 1: return (b & 0x87ffffffu) | (0x38000000u + (random_bits() & 0x07000000u));
    case 2: return exact_bits((float)((double)(int32_t)b * (20.0 / 2147483648.0)));
    default: return b & 0x80ffffffu;
    }
}

static float turns_sine(float x) { return exact_sincos_turns(exact_bits(x)).x; }
static float turns_cosine(float x) { return exact_sincos_turns(exact_bits(x)).y; }
static float unary_max(float x) { return exact_max(x, 1.0f); }
static float unary_min(float x) { return exact_min(x, 1.0f); }
static float third(float x) { return exact_div(x, 3.1f); }
static float inverse(float x) { return exact_div(-7.3e-38f, x); }
static float half_and_back(float x) { return exact_f16_to_f32(exact_f32_to_f16(x)); }
static float bf16_and_back(float x) { return exact_bf16_to_f32(exact_f32_to_bf16(x)); }
static float exact_trunc(float x) { return (float)(exact_f32_to_i32(x) >> 8); }
static float call_rcp(float x) { return exact_rcp(x); }
static float call_sqrt(float x) { return exact_sqrt(x); }
static float call_rsqrt(float x) { return exact_rsqrt(x); }
static float call_exp(float x) { return exact_exp(x); }
static float call_expm1(float x) { return exact_expm1(x); }
static float call_log(float x) { return exact_log(x); }
static float call_sin(float x) { return exact_sin(x); }
static float call_cos(float x) { return exact_cos(x); }
static float call_tanh(float x) { return exact_tanh(x); }
static float call_erf(float x) { return exact_erf(x); }
static float call_sigmoid(float x) { return exact_sigmoid(x); }
static float call_silu(float x) { return exact_silu(x); }
static float call_gelu(float x) { return exact_gelu(x); }
static float call_gelu_tanh(float x) { return exact_gelu_tanh(x); }

static double true_rcp(double x) { return 1.0 / x; }
static double true_rsqrt(double x) { return 1.0 / sqrt(x); }
static double true_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double true_silu(double x) { return x < -600.0 ? -0.0 : x / (1.0 + exp(-x)); }
static double true_gelu(double x) { return x < -60.0 ? -0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double true_gelu_tanh(double x) {
    double u = 1.59576912160573071176 * (x + 0.044715 * x * x * x);
    return u < -600.0 ? -0.0 : x / (1.0 + exp(-u));
}
static double true_turns(float x, uint32_t quarter_turns) {
    uint32_t phase = exact_bits(x), quadrant = (phase + 0x20000000u) >> 30;
    double angle = (double)(int32_t)(phase - (quadrant << 30)) * (6.28318530717958647693 / 4294967296.0);
    quadrant += quarter_turns;
    double y = (quadrant & 1u) ? cos(angle) : sin(angle);
    return (quadrant & 2u) ? -y : y;
}

typedef struct row {
    const char *name;
    float (*function)(float);
    double (*truth)(double); /* NULL: not measured in ulp here */
    double bound_ulp;
    int turns; /* 1 or 2: the sine or the cosine of turns */
} row;

static const row rows[] = {
    {"rcp", call_rcp, true_rcp, 0.5001, 0},         {"sqrt", call_sqrt, sqrt, 0.5001, 0},
    {"rsqrt", call_rsqrt, true_rsqrt, 0.51, 0},     {"exp", call_exp, exp, 1.0, 0},
    {"expm1", call_expm1, expm1, 1.6, 0},           {"log", call_log, log, 1.0, 0},
    {"sin", call_sin, sin, 1.0, 0},                 {"cos", call_cos, cos, 1.0, 0},
    {"turns sine", turns_sine, NULL, 1.0, 1},       {"turns cosine", turns_cosine, NULL, 1.0, 2},
    {"tanh", call_tanh, tanh, 1.5, 0},              {"erf", call_erf, erf, 1.5, 0},
    {"sigmoid", call_sigmoid, true_sigmoid, 1.0, 0}, {"silu", call_silu, true_silu, 1.6, 0},
    {"gelu", call_gelu, true_gelu, 2.1, 0},         {"gelu_tanh", call_gelu_tanh, true_gelu_tanh, 1.6, 0},
    {"div by 3.1", third, NULL, 0, 0},              {"div by x", inverse, NULL, 0, 0},
    {"f16", half_and_back, NULL, 0, 0},             {"bf16", bf16_and_back, NULL, 0, 0},
    {"i32", exact_trunc, NULL, 0, 0},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* The distance in units of the last place of the f32 nearest to truth; 1e9 for a wrong special value or sign. */
static double error_ulp(float got, double truth) {
    float near = (float)truth;
    if (isnan(truth)) return exact_bits(got) == EXACT_NAN ? 0.0 : 1e9;
    if (isinf(truth)) return got == near ? 0.0 : 1e9;
    if (isnan(got) || signbit(got) != signbit(near)) return 1e9;
    double value = isinf(got) ? 0x1p128 : (double)fabsf(got);
    double size = fmin(fabs(truth), 0x1p128);
    int exponent;
    frexp(size, &exponent);
    return fabs(value - size) / ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

static void test_accuracy(void **state) {
    (void)state;
    for (int r = 0; r < ROW_COUNT; r++) {
        if (rows[r].truth == NULL && rows[r].turns == 0) continue;
        double worst = 0.0;
        uint32_t worst_at = 0;
        random_state = 88172645463325252u;
        for (int i = 0; i < SAMPLE_COUNT; i++) {
            float x = exact_from_bits(random_float_bits(i));
            double truth = rows[r].turns ? true_turns(x, (uint32_t)rows[r].turns - 1u) : rows[r].truth((double)x);
            double e = error_ulp(rows[r].function(x), truth);
            if (e > worst) worst = e, worst_at = exact_bits(x);
        }
        if (worst > rows[r].bound_ulp) fail_msg("%s: %g ulp at 0x%08x", rows[r].name, worst, worst_at);
        print_message("%-14s %.3f ulp\n", rows[r].name, worst);
    }
}

/* Compares as bits, all NaNs being one. */
static void assert_same(const char *what, uint32_t a, uint32_t b, float got, float expected) {
    uint32_t e = isnan(expected) ? EXACT_NAN : exact_bits(expected);
    if (exact_bits(got) != e) fail_msg("%s of 0x%08x 0x%08x: 0x%08x, not 0x%08x", what, a, b, exact_bits(got), e);
}

static void test_division_and_root_are_ieee(void **state) {
    (void)state;
    static const uint32_t edges[] = {0u, 1u, 2u, 0x007fffffu, 0x00800000u, 0x00800001u, 0x3f7fffffu, 0x3f800000u,
        0x3f800001u, 0x40000000u, 0x40400000u, 0x7f000000u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u};
    enum { EDGE_COUNT = sizeof edges / sizeof edges[0] };
    random_state = 2463534242u;
    for (uint32_t i = 0; i < 1000000u; i++) {
        uint32_t a = random_float_bits((int)(i >> 2)), b = random_float_bits((int)i);
        if (i < 4u * EDGE_COUNT * EDGE_COUNT) {
            a = edges[i / 4u / EDGE_COUNT] | (i << 31);
            b = edges[i / 4u % EDGE_COUNT] | ((i & 2u) << 30);
        } else if ((i & 15u) == 7u) { /* a quotient near underflow */
            a = (a & 0x80ffffffu) + 0x00800000u;
            b = 0x3e000000u + (b & 0x83ffffffu);
        }
        float x = exact_from_bits(a), y = exact_from_bits(b);
        assert_same("div", a, b, exact_div(x, y), x / y);
        assert_same("sqrt", b, 0, exact_sqrt(y), sqrtf(y));
    }
}

/* Of every s in [1, 2], and of some above: the quotient is the division's, and with its tail 1 / s. */
static void test_reciprocals_of_pairs(void **state) {
    (void)state;
    for (uint32_t b = 0x3f800000u; b <= 0x42000000u; b += b < 0x40000000u ? 1u : 1021u) {
        const float s = exact_from_bits(b);
        const exact_pair r = exact_rcp_pair(s, 0.0f);
        assert_same("1 / s", b, 0, r.x, 1.0f / s);
        const double off = fabs(((double)r.x + (double)r.y) * (double)s - 1.0);
        if (off > 0x1p-45) fail_msg("1 / s of 0x%08x with its tail is off by %g", b, off);
    }
}

static void test_special_values(void **state) {
    (void)state;
    const float inf = INFINITY, top = 3.40282347e38f, tiny = 0x1p-149f;
    const struct { const char *name; float (*function)(float); float x, y; } cases[] = {
        {"exp", call_exp, 0.0f, 1.0f}, {"exp", call_exp, -0.0f, 1.0f}, {"exp", call_exp, inf, inf},
        {"exp", call_exp, -inf, 0.0f}, {"exp", call_exp, 89.0f, inf}, {"exp", call_exp, -104.0f, 0.0f},
        {"exp", call_exp, -103.9f, tiny}, {"exp", call_exp, tiny, 1.0f}, {"exp", call_exp, top, inf},
        {"expm1", call_expm1, -0.0f, -0.0f}, {"expm1", call_expm1, tiny, tiny}, {"expm1", call_expm1, -inf, -1.0f},
        {"expm1", call_expm1, inf, inf}, {"log", call_log, 1.0f, 0.0f}, {"log", call_log, 0.0f, -inf},
        {"log", call_log, -0.0f, -inf}, {"log", call_log, -1.0f, NAN}, {"log", call_log, inf, inf},
        {"sqrt", call_sqrt, -0.0f, -0.0f}, {"rsqrt", call_rsqrt, -0.0f, -inf}, {"rsqrt", call_rsqrt, inf, 0.0f},
        {"rsqrt", call_rsqrt, -1.0f, NAN}, {"rsqrt", call_rsqrt, 4.0f, 0.5f}, {"sin", call_sin, -0.0f, -0.0f},
        {"sin", call_sin, -tiny, -tiny}, {"sin", call_sin, inf, NAN}, {"cos", call_cos, tiny, 1.0f},
        {"cos", call_cos, -inf, NAN}, {"tanh", call_tanh, inf, 1.0f}, {"tanh", call_tanh, -top, -1.0f},
        {"tanh", call_tanh, -tiny, -tiny}, {"erf", call_erf, -inf, -1.0f}, {"erf", call_erf, tiny, tiny},
        {"erf", call_erf, -0.0f, -0.0f}, {"sigmoid", call_sigmoid, inf, 1.0f}, {"sigmoid", call_sigmoid, -inf, 0.0f},
        {"sigmoid", call_sigmoid, 0.0f, 0.5f}, {"silu", call_silu, -inf, -0.0f}, {"silu", call_silu, inf, inf},
        {"silu", call_silu, -top, -0.0f}, {"silu", call_silu, top, top}, {"silu", call_silu, 2 * tiny, tiny},
        {"gelu", call_gelu, -inf, -0.0f}, {"gelu", call_gelu, inf, inf}, {"gelu", call_gelu, -0.0f, -0.0f},
        {"gelu", call_gelu, -top, -0.0f}, {"gelu_tanh", call_gelu_tanh, -inf, -0.0f},
        {"gelu_tanh", call_gelu_tanh, inf, inf}, {"gelu_tanh", call_gelu_tanh, top, top},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_same(cases[i].name, exact_bits(cases[i].x), 0, cases[i].function(cases[i].x), cases[i].y);
    for (int r = 0; r < ROW_COUNT; r++)
        if (!rows[r].turns && rows[r].function != exact_trunc)
            assert_same(rows[r].name, 0xff800001u, 0, rows[r].function(exact_from_bits(0xff800001u)), NAN);
    assert_true(exact_bits(exact_max(1.0f, NAN)) == exact_bits(NAN) && exact_max(NAN, 1.0f) == 1.0f);
    assert_true(exact_min(-inf, 0.0f) == -inf && exact_bits(exact_canonical(-NAN)) == EXACT_NAN);
}

/* Rounds |x| to a multiple of unit, ties to even, in double. */
static double round_to(double x, double unit) { return nearbyint(x / unit) * unit; }

static void test_conversions(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000u; h++) {
        uint32_t e = (h >> 10) & 31u, m = h & 1023u;
        double value = e == 0u ? ldexp(m, -24) : ldexp(m + 1024u, (int)e - 25);
        if (e == 31u) value = m ? (double)NAN : (double)INFINITY;
        assert_same("f16_to_f32", h, 0, exact_f16_to_f32(h), (float)(h & 0x8000u ? -value : value));
        assert_same("bf16_to_f32", h, 0, exact_bf16_to_f32(h), exact_from_bits(h << 16));
        assert_int_equal(exact_f32_to_f16(exact_f16_to_f32(h)), e == 31u && m ? 0x7e00u : h);
    }
    random_state = 123456789u;
    for (int i = 0; i < 400000; i++) {
        uint32_t b = random_float_bits(i);
        if (i % 5 == 0) b = (b & 0x9fffffffu) | 0x20000000u; /* where f16 has its range */
        float x = exact_from_bits(b);
        double size = fabs((double)x);
        int exponent;
        frexp(size, &exponent);
        float half = (float)round_to(size, ldexp(1.0, (exponent < -13 ? -13 : exponent) - 11));
        half = isnan(x) ? NAN : copysignf(half >= 65520.0f ? INFINITY : half, x);
        assert_same("f32_to_f16", b, 0, half_and_back(x), half);
        float brain = isinf(x) ? INFINITY : (float)round_to(size, ldexp(1.0, (exponent < -125 ? -125 : exponent) - 8));
        assert_same("f32_to_bf16", b, 0, bf16_and_back(x), isnan(x) ? NAN : copysignf(brain, x));
        int32_t whole = isnan(x) ? 0 : x > 0.0f ? INT32_MAX : INT32_MIN;
        if (size < 2147483648.0) whole = (int32_t)x;
        assert_int_equal(exact_f32_to_i32(x), whole);
    }
}

/* The same bits when the processor takes subnormals for zero, on reading, on writing or both. */
static void test_flushing_changes_nothing(void **state) {
    (void)state;
#if defined(__SSE__)
    unsigned before = _mm_getcsr();
    for (int r = 0; r < ROW_COUNT; r++) {
        random_state = 362436069u;
        for (int i = 0; i < 20000; i++) {
            float x = exact_from_bits(random_float_bits(i));
            if (i % 7 == 0) x = -(float)(random_bits() & 0xffffffu) * (120.0f / 16777216.0f);
            uint32_t plain = exact_bits(rows[r].function(x));
            _mm_setcsr(before | 0x8000u | (i & 1 ? 0x0040u : 0u));
            uint32_t flushed = exact_bits(rows[r].function(x));
            _mm_setcsr(before);
            if (plain != flushed)
                fail_msg("%s of 0x%08x: 0x%08x, flushed 0x%08x", rows[r].name, exact_bits(x), plain, flushed);
        }
    }
#else
    skip();
#endif
}

static void test_bits_are_pinned(void **state) {
    (void)state;
    uint64_t hash = 14695981039346656037u;
    random_state = 521288629u;
    for (int i = 0; i < 100000; i++) {
        float x = exact_from_bits(random_float_bits(i));
        for (int r = 0; r < ROW_COUNT; r++) hash = (hash ^ exact_bits(rows[r].function(x))) * 1099511628211u;
        hash = (hash ^ exact_bits(exact_canonical(unary_max(x))) ^ exact_bits(unary_min(x))) * 1099511628211u;
    }
    if (hash != UINT64_C(0xd23a42ef524ce6aa)) fail_msg("the results have the hash 0x%016llx", (unsigned long long)hash);
}

/* Codes of 8 bits: the scale takes them back to within half a step, and powers of two times 127 without an error. */
static void test_numbers_of_8_bits(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 2000000; i++) {
        const float most = exact_from_bits(0x1f800000u + (uint32_t)((uint64_t)i * (0x7f800000u - 0x1f800000u) / 2000000));
        const float x = most * ((float)(i * 2654435761u >> 8) / 0x1p23f - 1); /* anything between -most and most */
        const exact_rounding r = exact_int8_rounding(exact_bits(most));
        const double code = (int8_t)exact_int8_code(x, r.inverse), top = (int8_t)exact_int8_code(-most, r.inverse);
        if (fabs((double)r.scale * 127 / (double)most - 1) > 0x1p-22 || fabs((double)r.inverse * (double)most / 127 - 1) > 0x1p-22 ||
            top != -127 || fabs(code * (double)r.scale - (double)x) > (double)most / 254 * (1 + 0x1p-12))
            fail_msg("most %a, x %a: scale %a, inverse %a, code %g", (double)most, (double)x, (double)r.scale, (double)r.inverse, code);
    }
    for (int power = -60; power < 120; power++) {
        const exact_rounding r = exact_int8_rounding(exact_bits(ldexpf(127, power)));
        assert_true(r.scale == ldexpf(1, power) && r.inverse == ldexpf(1, -power));
    }
    const exact_rounding small = exact_int8_rounding(0x1f7fffffu), none = exact_int8_rounding(0), wild = exact_int8_rounding(EXACT_INF);
    assert_true(small.scale == 0 && small.inverse == 0 && none.scale == 0 && none.inverse == 0);
    assert_int_equal(exact_bits(wild.scale), EXACT_NAN);
    assert_int_equal(exact_bits(exact_int8_rounding(EXACT_NAN).scale), EXACT_NAN);
    assert_int_equal(exact_int8_code(2.5f, 1), 2);
    assert_int_equal((int8_t)exact_int8_code(-3.5f, 1), -4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_division_and_root_are_ieee),
        cmocka_unit_test(test_reciprocals_of_pairs),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_numbers_of_8_bits),
        cmocka_unit_test(test_flushing_changes_nothing),
        cmocka_unit_test(test_bits_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
