/* test_rope.c: rotary embedding against long doubles: both pairings, parts of a head, far and negative positions, and the
 * frequencies' own bits. */
#include "rows_run.h"

typedef struct rope_case {
    hd_dtype dtype;
    int64_t  T, H, D;
    uint32_t dims, pairing;
    float    theta, frequency_scale, magnitude;
    bool     factors;
} rope_case;

static void rope_one(const rope_case *c) {
    static const int32_t positions[] = { 0, 1, 7, 1000, 131072, 2147483647, -1, -131072, -2147483647 - 1 };
    float factors[256];
    for (uint32_t i = 0; i < 256; i++) factors[i] = 1.0f + (float)(i % 7);
    run r;
    run_begin(&r);
    hdi_tensor in[2] = { new_tensor(&r, c->dtype, HD_SHAPE(2, c->T, c->H, c->D)), new_tensor(&r, HD_I32, HD_SHAPE(c->T)) };
    const hdi_tensor y = new_tensor(&r, c->dtype, in[0].shape);
    fill_random(&r, &in[0], 2.0f);
    int32_t *at = (int32_t *)(void *)r.storages[in[1].storage].data;
    for (int64_t t = 0; t < c->T; t++) at[t] = positions[(uint64_t)t % HDI_COUNT(positions)];
    const hdi_attrs attrs = { .ints = { c->dims, c->pairing }, .floats = { c->theta, c->frequency_scale, c->magnitude },
                              .factor_count = c->factors ? 256 : 0, .factors = factors };
    run_request(&r, &(hdi_request){ .op = HDI_OP_ROPE, .attrs = &attrs, .inputs = in, .input_count = 2, .out = y, .math = HD_MATH_EXACT });
    const int64_t half = c->dims / 2;
    for (int64_t row = 0; row < 2 * c->T * c->H; row++) {
        const int32_t position = at[row / c->H % c->T];
        for (int64_t d = 0; d < c->D; d++) {
            const uint64_t own = (uint64_t)(row * c->D + d);
            if (d >= c->dims) {
                check_value(&r, &y, own, get_value(&r, &in[0], own), 0);
                continue;
            }
            const bool second = c->pairing == 1 ? d % 2 == 1 : d >= half;
            const int64_t step = c->pairing == 1 ? 1 : half, i = c->pairing == 1 ? d / 2 : d % half;
            const double a = get_value(&r, &in[0], own), b = get_value(&r, &in[0], (uint64_t)((int64_t)own + (second ? -step : step)));
            const long double theta = c->theta == 0 ? 10000.0L : (long double)c->theta;
            const long double turn = position * (long double)c->frequency_scale * powl(theta, -2.0L * i / c->dims) /
                                     (long double)(c->factors ? factors[i] : 1.0f);
            const double s = (double)(sinl(turn) * (long double)c->magnitude), co = (double)(cosl(turn) * (long double)c->magnitude);
            const double expected = second ? a * co + b * s : a * co - b * s;
            check_value(&r, &y, own, expected, 0x1p-20 * (double)c->magnitude * (fabs(a) + fabs(b)));
        }
    }
    run_end(&r);
}

static void every_kind(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16 };
    static const int64_t sizes[] = { 2, 4, 64, 67, 80, 128, 300 };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++)
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++)
            for (uint32_t pairing = 0; pairing < 2; pairing++) {
                const uint32_t even = (uint32_t)sizes[s] & ~1u;
                rope_one(&(rope_case){ types[t], 9, 3, sizes[s], even, pairing, 0, 1, 1, false });
                rope_one(&(rope_case){ types[t], 9, 1, sizes[s], HDI_MAX(2, even / 2 & ~1u), pairing, 1e6f, 0.25f, 1.25f, true });
            }
}

/* The frequencies, against what 200 digits give; another host must give the same words. */
static void frequencies(void **state) {
    (void)state;
    uint32_t words[128];
    assert_true(hdi_rope_frequencies(10000.0f, 1.0f, NULL, 128, words));
    for (uint32_t i = 0; i < 64; i++) {
        const long double turns = powl(10000.0L, -2.0L * i / 128) / 6.283185307179586476925286766559005768L;
        const uint64_t got = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
        assert_true(fabsl((long double)got * 0x1p-64L - turns) < turns * 0x1p-60L + 0x1p-63L);
    }
    assert_int_equal(words[0], 0x28BE60DBu); /* 1 / (2 pi) */
    assert_int_equal(words[1], 0x9391054Au);
    const float nothing[1] = { 0 };
    assert_false(hdi_rope_frequencies(10000.0f, 1.0f, nothing, 2, words));
    assert_false(hdi_rope_frequencies(-1.0f, 1.0f, NULL, 2, words));
    assert_false(hdi_rope_frequencies(NAN, 1.0f, NULL, 2, words));
    assert_false(hdi_rope_frequencies(10000.0f, INFINITY, NULL, 2, words));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(frequencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
