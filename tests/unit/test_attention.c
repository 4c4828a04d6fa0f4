/* test_attention.c: attention against float64: causal or not, grouped heads, odd head sizes, a past, caches longer than
 * what is seen, several rows in a group. */
#include "device/backend.h"
#include "rows_run.h"

typedef struct attention_case {
    hd_dtype dtype, kv_dtype;
    int64_t  B, T, S, Hq, Hkv, D;
    int32_t  past; /* -1: none */
    int      not_causal;
    hd_math  math;
    float    size;
} attention_case;

static void check_head(const run *r, const attention_case *c, const hdi_tensor *in, const hdi_tensor *y, int64_t b, int64_t t, int64_t h) {
    const int64_t kv = h / (c->Hq / c->Hkv), before = c->past < 0 ? 0 : c->past + b;
    const int64_t seen = HDI_MIN(c->S, before + (c->not_causal ? c->T : t + 1));
    const uint64_t q_first = (uint64_t)(((b * c->T + t) * c->Hq + h) * c->D);
    double *weights = malloc((size_t)seen * sizeof *weights), largest = -INFINITY, sum = 0, slack = 0;
    for (int64_t s = 0; s < seen; s++) {
        const uint64_t k_first = (uint64_t)(((b * c->S + s) * c->Hkv + kv) * c->D);
        double dot = 0, terms = 0;
        for (uint64_t d = 0; d < (uint64_t)c->D; d++) {
            const double term = get_value(r, &in[0], q_first + d) * get_value(r, &in[1], k_first + d);
            dot += term;
            terms += fabs(term);
        }
        weights[s] = dot / sqrt((double)c->D);
        slack = fmax(slack, terms / sqrt((double)c->D) * 0x1p-19);
        largest = fmax(largest, weights[s]);
    }
    for (int64_t s = 0; s < seen; s++) sum += weights[s] = exp(weights[s] - largest);
    for (int64_t d = 0; d < c->D; d++) {
        double value = 0, terms = 0;
        for (int64_t s = 0; s < seen; s++) {
            const double term = weights[s] / sum * get_value(r, &in[2], (uint64_t)(((b * c->S + s) * c->Hkv + kv) * c->D + d));
            value += term;
            terms += fabs(term);
        }
        check_value(r, y, q_first + (uint64_t)d, value, terms * (2 * slack + 0x1p-17));
    }
    free(weights);
}

/* May this process use tiles of bf16? It asks the system for them. */
static bool has_tiles(void) {
    hdi_probe found;
    hdi_host host = { .allocator = &hdi_default_allocator };
    hdi_backend_cpu.probe(&host, &found);
    return found.found[0].caps.matrix_bf16 != 0;
}

static void attend(const attention_case *c) {
    run r;
    run_begin(&r);
    r.caps.matrix_bf16 = has_tiles();
    const hd_shape q_shape = HD_SHAPE(c->B, c->T, c->Hq, c->D), kv_shape = HD_SHAPE(c->B, c->S, c->Hkv, c->D);
    hdi_tensor in[4] = { new_tensor(&r, c->dtype, q_shape), new_tensor(&r, c->kv_dtype, kv_shape), new_tensor(&r, c->kv_dtype, kv_shape),
                         new_tensor(&r, HD_I32, HD_SHAPE(c->B)) };
    const hdi_tensor y = new_tensor(&r, c->dtype, q_shape);
    fill_random(&r, &in[0], c->size);
    fill_random(&r, &in[1], 2.0f);
    fill_random(&r, &in[2], 2.0f);
    for (int64_t b = 0; b < c->B; b++) { /* what nobody sees must not matter */
        set_value(&r, &in[3], (uint64_t)b, (float)(c->past + b));
        const int64_t seen = (c->past < 0 ? 0 : c->past + b) + c->T;
        for (int64_t i = seen * c->Hkv * c->D; i < c->S * c->Hkv * c->D; i++) {
            set_value(&r, &in[1], (uint64_t)(b * c->S * c->Hkv * c->D + i), NAN);
            set_value(&r, &in[2], (uint64_t)(b * c->S * c->Hkv * c->D + i), NAN);
        }
    }
    const hdi_attrs attrs = { .ints = { c->not_causal }, .floats = { (float)(1.0 / sqrt((double)c->D)) } };
    run_request(&r, &(hdi_request){ .op = HDI_OP_ATTENTION, .attrs = &attrs, .inputs = in, .input_count = c->past < 0 ? 3 : 4, .out = y, .math = c->math });
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t t = 0; t < c->T; t++)
            for (int64_t h = 0; h < c->Hq; h++) check_head(&r, c, in, &y, b, t, h);
    run_end(&r);
}

static void every_shape(void **state) {
    (void)state;
    static const int64_t sizes[] = { 1, 7, 32, 33, 64, 67, 80, 128, 256 };
    for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
        const int64_t D = sizes[s];
        for (uint32_t math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            attend(&(attention_case){ HD_F32, HD_F32, 1, 5, 5, 2, 2, D, -1, 0, (hd_math)math, 1 });
            attend(&(attention_case){ HD_F32, HD_F32, 1, 5, 5, 2, 2, D, -1, 1, (hd_math)math, 1 });
            attend(&(attention_case){ HD_F32, HD_F16, 2, 3, 100, 6, 2, D, 40, 0, (hd_math)math, 4 });
            attend(&(attention_case){ HD_F16, HD_F16, 1, 1, 70, 4, 1, D, 66, 0, (hd_math)math, 4 });
            attend(&(attention_case){ HD_BF16, HD_BF16, 1, 35, 64, 3, 3, D, 13, 1, (hd_math)math, 1 });
        }
    }
}

/* Rows enough for tiles of bf16, where there are any: whole and broken pairs of tiles, several looks at the results. */
static void many_rows(void **state) {
    (void)state;
    static const int64_t sizes[] = { 32, 64, 96, 128, 256 };
    for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
        attend(&(attention_case){ HD_F32, HD_F16, 1, 37, 300, 4, 2, sizes[s], 250, 0, HD_MATH_FAST, 4 });
        attend(&(attention_case){ HD_F32, HD_F16, 2, 70, 70, 2, 2, sizes[s], -1, 1, HD_MATH_FAST, 4 });
        attend(&(attention_case){ HD_F16, HD_F16, 1, 130, 150, 1, 1, sizes[s], 5, 0, HD_MATH_FAST, 1 });
    }
    attend(&(attention_case){ HD_F32, HD_F16, 1, 64, 64, 1, 1, 64, -1, 0, HD_MATH_FAST, 60 });
}

/* An infinite value of the last key touches only those who see it, whatever is multiplied in tiles. */
static void infinite_value(void **state) {
    (void)state;
    enum { ROWS = 64, D = 32 };
    run r;
    run_begin(&r);
    r.caps.matrix_bf16 = has_tiles();
    hdi_tensor in[3] = { new_tensor(&r, HD_F32, HD_SHAPE(ROWS, 1, D)), new_tensor(&r, HD_F16, HD_SHAPE(ROWS, 1, D)), new_tensor(&r, HD_F16, HD_SHAPE(ROWS, 1, D)) };
    const hdi_tensor y = new_tensor(&r, HD_F32, HD_SHAPE(ROWS, 1, D));
    for (uint32_t i = 0; i < 3; i++) fill_random(&r, &in[i], 1.0f);
    set_value(&r, &in[2], ROWS * D - 1, INFINITY);
    const hdi_attrs attrs = { .floats = { 0.25f } };
    run_request(&r, &(hdi_request){ .op = HDI_OP_ATTENTION, .attrs = &attrs, .inputs = in, .input_count = 3, .out = y, .math = HD_MATH_FAST });
    for (uint64_t i = 0; i < ROWS * D; i++) assert_int_equal(isfinite(get_value(&r, &y, i)) != 0, i != ROWS * D - 1);
    run_end(&r);
}

static void long_past(void **state) {
    (void)state;
    attend(&(attention_case){ HD_F32, HD_F32, 1, 1, 8192, 4, 1, 64, 8191, 0, HD_MATH_EXACT, 8 });
    attend(&(attention_case){ HD_F32, HD_F32, 1, 1, 8192, 2, 2, 80, 5000, 0, HD_MATH_FAST, 1 });
    attend(&(attention_case){ HD_F32, HD_F32, 1, 67, 67, 2, 1, 16, -1, 0, HD_MATH_EXACT, 30 });
}

/* Scores of -infinity before finite ones weigh nothing; a row of nothing else is NaN; NaN wins. */
static void extreme_scores(void **state) {
    (void)state;
    static const float firsts[] = { -INFINITY, NAN };
    for (uint32_t f = 0; f < 2; f++) {
        run r;
        run_begin(&r);
        hdi_tensor in[3] = { new_tensor(&r, HD_F32, HD_SHAPE(40, 1, 1)), new_tensor(&r, HD_F32, HD_SHAPE(40, 1, 1)), new_tensor(&r, HD_F32, HD_SHAPE(40, 1, 1)) };
        const hdi_tensor y = new_tensor(&r, HD_F32, HD_SHAPE(40, 1, 1));
        for (uint64_t i = 0; i < 40; i++) {
            set_value(&r, &in[0], i, 1.0f);
            set_value(&r, &in[1], i, i < 35 ? firsts[f] : 0.0f);
            set_value(&r, &in[2], i, (float)i);
        }
            const hdi_attrs attrs = { .floats = { 1.0f } };
        run_request(&r, &(hdi_request){ .op = HDI_OP_ATTENTION, .attrs = &attrs, .inputs = in, .input_count = 3, .out = y, .math = HD_MATH_EXACT });
        assert_true(isnan(get_value(&r, &y, 34)));
        if (f == 0) assert_true(fabs(get_value(&r, &y, 39) - 37.0) < 1e-4);
        else assert_true(isnan(get_value(&r, &y, 39)));
        run_end(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(many_rows), cmocka_unit_test(infinite_value), cmocka_unit_test(long_past),
        cmocka_unit_test(extreme_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
