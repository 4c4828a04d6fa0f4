/* test_reduce.c: reductions over rows, columns and long rows against float64, and what NaN, ties and wrapping give. */
#include "rows_run.h"

static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16, HD_I32 };

static double best_of(hdi_op op, double best, double next) {
    if (isnan(best) || isnan(next)) return isnan(best) ? best : next;
    return op == HDI_OP_MIN ? fmin(best, next) : fmax(best, next);
}

/* Of a GPU that is imagined: on one columns are divided where they are few; 0: as on a CPU. */
static uint32_t compute_units;

/* x [outer, n, inner] over its middle axis. */
static void reduce_one(hdi_op op, hd_dtype dtype, int64_t outer, int64_t n, int64_t inner, hd_math math) {
    run r;
    run_begin(&r);
    r.caps.native_kernels = compute_units == 0;
    r.caps.compute_units = compute_units;
    hdi_tensor inputs[2] = { new_tensor(&r, dtype, HD_SHAPE(outer, n, inner)), new_tensor(&r, dtype, HD_SHAPE(outer, n, inner)) };
    const hdi_tensor y = new_tensor(&r, op == HDI_OP_ARGMAX ? HD_I32 : dtype, HD_SHAPE(outer, 1, inner));
    fill_random(&r, &inputs[0], dtype == HD_I32 ? 1000.0f : 2.0f);
    fill_random(&r, &inputs[1], 2.0f);
    const hdi_attrs attrs = { .ints = { 1 } };
    run_request(&r, &(hdi_request){ .op = op, .attrs = &attrs, .inputs = inputs, .input_count = op == HDI_OP_DOT ? 2 : 1, .out = y, .math = math });
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0, size = 0, best = 0;
            int64_t best_at = 0;
            for (int64_t j = 0; j < n; j++) {
                const uint64_t at = (uint64_t)((o * n + j) * inner + i);
                double term = get_value(&r, &inputs[0], at);
                if (j == 0 || (op == HDI_OP_ARGMAX && term > best)) { best = term; best_at = j; }
                else if (op != HDI_OP_ARGMAX) best = best_of(op, best, term);
                if (op == HDI_OP_DOT) term *= get_value(&r, &inputs[1], at);
                sum += term;
                size += fabs(term);
            }
            const double bound = dtype == HD_I32 ? 0 : (double)n * 0x1p-23 * size;
            const uint64_t at = (uint64_t)(o * inner + i);
            if (op == HDI_OP_SUM || op == HDI_OP_DOT) check_value(&r, &y, at, sum, HDI_MIN(bound, size * 0x1p-17));
            else if (op == HDI_OP_MEAN) check_value(&r, &y, at, sum / (double)n, HDI_MIN(bound, size * 0x1p-17) / (double)n);
            else if (op == HDI_OP_ARGMAX) assert_int_equal((int64_t)get_value(&r, &y, at), best_at);
            else check_value(&r, &y, at, best, 0);
        }
    }
    run_end(&r);
}

static void every_type_and_size(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SUM, HDI_OP_MEAN, HDI_OP_MAX, HDI_OP_MIN, HDI_OP_ARGMAX, HDI_OP_DOT };
    static const int64_t sizes[] = { 1, 2, 3, 7, 31, 32, 33, 64, 67, 255, 256, 257, 1000 };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++) {
        for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
            if (types[t] == HD_I32 && (ops[o] == HDI_OP_DOT || ops[o] == HDI_OP_MEAN)) continue;
            for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
                reduce_one(ops[o], types[t], 3, sizes[s], 1, HD_MATH_EXACT);
                reduce_one(ops[o], types[t], 2, sizes[s], 5, HD_MATH_EXACT);
                reduce_one(ops[o], types[t], 1, sizes[s], 300, HD_MATH_FAST);
            }
        }
    }
}

static void long_rows(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SUM, HDI_OP_MEAN, HDI_OP_MAX, HDI_OP_MIN, HDI_OP_ARGMAX, HDI_OP_DOT };
    static const int64_t sizes[] = { 65535, 65536, 65537, 200001 };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
            reduce_one(ops[o], HD_F32, 2, sizes[s], 1, HD_MATH_EXACT);
            reduce_one(ops[o], HD_F16, 1, sizes[s], 1, HD_MATH_EXACT);
        }
    reduce_one(HDI_OP_SUM, HD_I32, 2, 200001, 1, HD_MATH_EXACT);
    reduce_one(HDI_OP_ARGMAX, HD_I32, 2, 200001, 1, HD_MATH_EXACT);
    reduce_one(HDI_OP_SUM, HD_F32, 1, 70000, 2, HD_MATH_EXACT);
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++) reduce_one(ops[o], HD_F32, 1, 10000000, 1, HD_MATH_EXACT);
}

/* In fast mode in two launches; in exact mode, and where there is nothing to divide by, in one. */
static void few_long_columns(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SUM, HDI_OP_MEAN, HDI_OP_DOT, HDI_OP_MAX };
    compute_units = 16;
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t t = 0; t < 3; t++) {
            reduce_one(ops[o], types[t], 1, 4096, 300, HD_MATH_FAST);
            reduce_one(ops[o], types[t], 2, 1536, 5, HD_MATH_FAST);
            reduce_one(ops[o], types[t], 1, 1009, 7, HD_MATH_FAST); /* a prime number */
            reduce_one(ops[o], types[t], 1, 4096, 7, HD_MATH_EXACT);
        }
    for (int exact = 0; exact < 2; exact++) {
        run r;
        run_begin(&r);
        r.caps.native_kernels = 0;
        r.caps.compute_units = compute_units;
        const hdi_tensor x = new_tensor(&r, HD_F32, HD_SHAPE(4096, 300)), y = new_tensor(&r, HD_F32, HD_SHAPE(1, 300));
        const hdi_attrs attrs = { .ints = { 0 } };
        const hdi_request request = { .op = HDI_OP_SUM, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .caps = &r.caps,
                                      .math = exact ? HD_MATH_EXACT : HD_MATH_FAST };
        assert_int_equal(hdi_lower_reduce(&request, &r.lowering, &r.error), HD_OK);
        assert_int_equal(r.lowering.count, exact ? 1 : 2);
        run_end(&r);
    }
    compute_units = 0;
}

/* One row of 32-bit elements; gives the result's bits. */
static uint32_t reduce_bits(hdi_op op, hd_dtype dtype, const void *words, uint32_t count) {
    run r;
    run_begin(&r);
    const hdi_tensor x = new_tensor(&r, dtype, HD_SHAPE((int64_t)count)), y = new_tensor(&r, op == HDI_OP_ARGMAX ? HD_I32 : dtype, HD_SHAPE(1));
    memcpy(r.storages[x.storage].data, words, count * sizeof(uint32_t));
    const hdi_attrs attrs = { .ints = { 0 } };
    run_request(&r, &(hdi_request){ .op = op, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
    uint32_t bits;
    memcpy(&bits, r.storages[y.storage].data, sizeof bits);
    run_end(&r);
    return bits;
}

static void special_values(void **state) {
    (void)state;
    const float zeros[] = { -0.0f, 0.0f, -0.0f };
    assert_int_equal(reduce_bits(HDI_OP_ARGMAX, HD_F32, zeros, 3), 0);
    assert_int_equal(reduce_bits(HDI_OP_MAX, HD_F32, zeros, 3), 0);
    assert_int_equal(reduce_bits(HDI_OP_MIN, HD_F32, zeros, 3), 0x80000000u);
    const float lost[] = { 1.0f, NAN, INFINITY, -NAN, -INFINITY };
    assert_int_equal(reduce_bits(HDI_OP_ARGMAX, HD_F32, lost, 5), 1);
    assert_int_equal(reduce_bits(HDI_OP_MAX, HD_F32, lost, 5), 0x7FC00000u);
    assert_int_equal(reduce_bits(HDI_OP_MIN, HD_F32, lost, 5), 0x7FC00000u);
    assert_int_equal(reduce_bits(HDI_OP_SUM, HD_F32, lost, 5), 0x7FC00000u);
    const float ends[] = { -INFINITY, -INFINITY };
    assert_int_equal(reduce_bits(HDI_OP_ARGMAX, HD_F32, ends, 2), 0);
    assert_int_equal(reduce_bits(HDI_OP_MAX, HD_F32, ends, 2), 0xFF800000u);
    const int32_t least[] = { INT32_MIN, INT32_MIN, INT32_MAX, INT32_MAX };
    assert_int_equal(reduce_bits(HDI_OP_ARGMAX, HD_I32, least, 2), 0);
    assert_int_equal(reduce_bits(HDI_OP_ARGMAX, HD_I32, least, 4), 2);
    assert_int_equal(reduce_bits(HDI_OP_MIN, HD_I32, least + 2, 2), INT32_MAX);
    assert_int_equal(reduce_bits(HDI_OP_SUM, HD_I32, least + 2, 2), 0xFFFFFFFEu); /* wraps */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_size),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(few_long_columns),
        cmocka_unit_test(special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
