/* test_pieces.c: tensors that are more than a binding sees, and axes that are more than a launch takes: no launch is
 * given more, each begins where a binding may, and the bits are those of the reference, which takes all at once. */
#include "rows_run.h"

enum { ALIGN = 64, LIMIT = 4096 };

static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16, HD_I32 };

static void check_bindings(const run *r, uint64_t limit) {
    for (uint32_t i = 0; i < r->lowering.count; i++)
        for (uint32_t u = 0; u < r->lowering.launches[i].kernel.binding_count; u++) {
            const hdi_use *use = &r->lowering.launches[i].uses[u];
            assert_true(limit == 0 || use->bytes <= limit);
            assert_int_equal(use->offset % ALIGN, 0);
        }
}

/* What comes to a device whose bindings see `limit` bytes; gives the number of its launches. */
static uint32_t launches_of(hdi_op op, hd_shape shape, hd_dtype dtype, uint32_t axis, uint64_t limit) {
    const hdi_attrs attrs = { .ints = { op == HDI_OP_TOP_K ? 3 : (int64_t)axis }, .floats = { 1e-5f } };
    const bool reduces = op <= HDI_OP_DOT && op >= HDI_OP_SUM && op != HDI_OP_CUMSUM, loss = op == HDI_OP_CROSS_ENTROPY,
               norm = op == HDI_OP_LAYER_NORM;
    const uint32_t last = shape.rank - 1;
    run r;
    run_begin(&r);
    r.caps.binding_align = ALIGN;
    r.caps.max_binding_bytes = limit;
    hdi_tensor in[3] = { new_tensor(&r, dtype, shape), { 0 }, { 0 } };
    fill_random(&r, &in[0], dtype == HD_I32 ? 1000.0f : 3.0f);
    hd_shape to = shape;
    if (reduces) to.dims[axis] = 1;
    if (op == HDI_OP_TOP_K) to.dims[last] = 3;
    if (loss) to.rank--;
    if (loss) in[1] = new_tensor(&r, HD_I32, to);
    if (op == HDI_OP_DOT) in[1] = new_tensor(&r, dtype, shape);
    if (norm) in[1] = new_tensor(&r, dtype, HD_SHAPE(shape.dims[last])), in[2] = new_tensor(&r, dtype, in[1].shape);
    for (uint32_t i = 1; i < 3; i++)
        for (uint64_t k = 0; in[i].dtype != HD_DTYPE_NONE && k < hd_shape_elements(in[i].shape); k++)
            set_value(&r, &in[i], k, loss ? (float)((int64_t)k % shape.dims[last]) : random_float(2.0f));
    const bool finds = op == HDI_OP_ARGMAX || op == HDI_OP_TOP_K;
    const hdi_tensor y = new_tensor(&r, finds ? HD_I32 : loss ? HD_F32 : dtype, to);
    run_request(&r, &(hdi_request){ .op = op, .attrs = &attrs, .inputs = in, .input_count = norm ? 3 : in[1].dtype != HD_DTYPE_NONE ? 2 : 1,
                                    .out = y, .math = HD_MATH_EXACT });
    check_bindings(&r, limit);
    const uint32_t count = r.lowering.count;
    run_end(&r);
    return count;
}

/* The same in pieces and at once. */
static void in_pieces(hdi_op op, hd_shape shape, hd_dtype dtype, uint32_t axis) {
    const uint32_t once = launches_of(op, shape, dtype, axis, 0);
    assert_true(launches_of(op, shape, dtype, axis, LIMIT) > once);
}

static void reductions(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SUM, HDI_OP_PROD, HDI_OP_MEAN, HDI_OP_MAX, HDI_OP_MIN, HDI_OP_ARGMAX, HDI_OP_DOT };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
            if (types[t] == HD_I32 && (ops[o] == HDI_OP_DOT || ops[o] == HDI_OP_MEAN)) continue;
            in_pieces(ops[o], HD_SHAPE(40, 64), types[t], 1);      /* rows, of which some fit */
            in_pieces(ops[o], HD_SHAPE(37, 67), types[t], 1);      /* rows that begin anywhere */
            in_pieces(ops[o], HD_SHAPE(3, 1023), types[t], 1);     /* one fits, two do not */
            in_pieces(ops[o], HD_SHAPE(9, 31, 9), types[t], 1);    /* columns of blocks that fit */
            in_pieces(ops[o], HD_SHAPE(2, 331, 7), types[t], 1);   /* that do not */
            in_pieces(ops[o], HD_SHAPE(2, 70, 101), types[t], 1);  /* of which not even the least piece does */
        }
}

/* Rows of which a binding does not see one. Parts of them stay whole. */
static void longer_than_a_binding(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SUM, HDI_OP_MEAN, HDI_OP_MAX, HDI_OP_ARGMAX, HDI_OP_DOT };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++) {
        const uint64_t limit = 2 * HDI_REDUCE_PART * 4;
        assert_true(launches_of(ops[o], HD_SHAPE(2, 500001), HD_F32, 1, limit) > 8);
        assert_true(launches_of(ops[o], HD_SHAPE(1, 500001), HD_F16, 1, limit / 2) > 4);
    }
    assert_true(launches_of(HDI_OP_ARGMAX, HD_SHAPE(2, 500001), HD_I32, 1, 2 * HDI_REDUCE_PART * 4) > 8);
}

static void by_rows(void **state) {
    (void)state;
    static const hdi_op ops[] = { HDI_OP_SOFTMAX, HDI_OP_LOG_SOFTMAX, HDI_OP_CROSS_ENTROPY, HDI_OP_LAYER_NORM, HDI_OP_CUMSUM, HDI_OP_TOP_K };
    for (uint32_t o = 0; o < HDI_COUNT(ops); o++)
        for (uint32_t t = 0; t < 3; t++) {
            in_pieces(ops[o], HD_SHAPE(500, 64), types[t], 1);
            in_pieces(ops[o], HD_SHAPE(500, 33), types[t], 1);
            in_pieces(ops[o], HD_SHAPE(5, 1021), types[t], 1);
        }
}

/* Numbers of a type, quantised ones too. */
static hdi_tensor numbers(run *r, hd_dtype dtype, hd_shape shape) {
    const hdi_tensor tensor = new_tensor(r, dtype, shape);
    if (!hdi_dtype_is_quantised(dtype)) {
        fill_random(r, &tensor, 2.0f);
        return tensor;
    }
    const uint64_t count = hd_shape_elements(shape);
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < count; i++) values[i] = random_float(2.0f);
    assert_int_equal(hd_quantize(dtype, values, count, r->storages[tensor.storage].data), HD_OK);
    free(values);
    return tensor;
}

/* Products with a matrix of 500 columns of 64, alone and with more columns added behind them; and rows of it by index. */
static void matrices(void **state) {
    (void)state;
    static const hd_dtype of[] = { HD_F32, HD_F16, HD_Q8_0, HD_Q4_0 };
    static const int32_t wanted[] = { 0, 499, 31, -1, 500, 137, 64, 31, INT32_MIN, 250 };
    for (uint32_t t = 0; t < HDI_COUNT(of); t++)
        for (int64_t m = 1; m <= 5; m += 2)
            for (uint32_t way = 0; way < 3; way++) {
                const bool takes = way == 2;
                run r;
                run_begin(&r);
                r.caps.binding_align = ALIGN;
                r.caps.max_binding_bytes = LIMIT;
                const hdi_attrs attrs = { .ints = { takes ? 0 : HD_TRANSPOSE_B } };
                hdi_tensor in[2] = { new_tensor(&r, HD_F32, HD_SHAPE(m, 64)), numbers(&r, of[t], HD_SHAPE(500, 64)) };
                fill_random(&r, &in[0], 2.0f);
                if (takes) {
                    in[0] = in[1];
                    in[1] = new_tensor(&r, HD_I32, HD_SHAPE(HDI_COUNT(wanted)));
                    memcpy(r.storages[in[1].storage].data, wanted, sizeof wanted);
                }
                const hdi_tensor y = new_tensor(&r, of[t] == HD_F16 && takes ? HD_F16 : HD_F32,
                                                takes ? HD_SHAPE(HDI_COUNT(wanted), 64) : HD_SHAPE(m, 500)),
                                 more = numbers(&r, HD_F32, HD_SHAPE(m, 500));
                hdi_chain add = { .steps = { { HDI_STEP_ADD, 0, 1, HDI_SOURCE_NONE, HD_F32, 0 } }, .step_count = 1, .input_count = 2 };
                add.inputs[1] = more;
                const hdi_request request = { .op = takes ? HDI_OP_GATHER : HDI_OP_MATMUL, .attrs = &attrs, .inputs = in, .input_count = 2,
                                              .out = y, .chain = way == 1 ? &add : NULL, .caps = &r.caps, .math = HD_MATH_EXACT };
                if (m > 1 && !takes) r.caps.max_binding_bytes = 16384; /* the result is seen whole */
                if (way == 1) {
                    assert_int_equal(hdi_kernels_lower(&request, &r.lowering, &r.error), HD_OK);
                    for (uint32_t i = 0; i < r.lowering.count; i++) run_launch(&r, &r.lowering.launches[i], 0);
                } else run_request(&r, &request);
                assert_true(r.lowering.count > 1);
                check_bindings(&r, r.caps.max_binding_bytes);
                for (uint64_t i = 0; i < hd_shape_elements(y.shape); i++) {
                    float row[64] = { 0 };
                    const uint64_t column = takes ? 0 : i % 500, at = takes ? i / 64 : column;
                    const hdi_tensor *matrix = &in[!takes];
                    const uint64_t index = takes ? (uint64_t)(int64_t)wanted[at] : column, bytes = hd_dtype_bytes(of[t], 64);
                    if (index < 500) hd_dequantize(of[t], r.storages[matrix->storage].data + index * bytes, 64, row);
                    double sum = way == 1 ? get_value(&r, &more, i) : 0, size = fabs(sum);
                    for (uint64_t k = 0; k < 64 && !takes; k++) {
                        const double term = get_value(&r, &in[0], i / 500 * 64 + k) * (double)row[k];
                        sum += term;
                        size += fabs(term);
                    }
                    /* rows of A are rounded to 8 bits where B is quantised */
                    const double bound = takes ? 0 : size * (hdi_dtype_is_quantised(of[t]) ? 0x1p-7 : 0x1p-17);
                    check_value(&r, &y, i, takes ? (double)row[i % 64] : sum, bound);
                }
                run_end(&r);
            }
}

/* A kernel's loops over a column, or over a row of softmax, have an end: some devices stop at 65,536 rounds. */
static void long_axes(void **state) {
    (void)state;
    for (uint32_t log = 0; log < 2; log++)
        for (uint32_t t = 0; t < 2; t++) {
            const hdi_op op = log ? HDI_OP_LOG_SOFTMAX : HDI_OP_SOFTMAX;
            assert_true(launches_of(op, HD_SHAPE(2, HDI_ROW_SOFTMAX_WHOLE + 77), types[t], 1, 0) > 4);
            assert_true(launches_of(op, HD_SHAPE(HDI_ROW_SOFTMAX_WHOLE + 77, 2), types[t], 0, HDI_ROW_SOFTMAX_WHOLE) > 4);
        }
    run r;
    run_begin(&r);
    r.caps.native_kernels = 0;
    const hdi_attrs attrs = { .floats = { 1e-5f } };
    const hdi_tensor far = hdi_tensor_dense(0, HD_F32, HD_SHAPE(1, 1 << 22));
    const hdi_request norm = { .op = HDI_OP_RMS_NORM, .attrs = &attrs, .inputs = &far, .input_count = 1, .out = far, .caps = &r.caps };
    assert_int_equal(hdi_kernels_lower(&norm, &r.lowering, &r.error), HD_STATUS_LIMIT);
    const hdi_tensor x = new_tensor(&r, HD_F32, HD_SHAPE(2 * HDI_REDUCE_COLUMN + 5, 3)), y = new_tensor(&r, HD_F32, HD_SHAPE(1, 3));
    fill_random(&r, &x, 2.0f);
    run_request(&r, &(hdi_request){ .op = HDI_OP_MEAN, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
    assert_int_equal(r.lowering.count, 4); /* three pieces, and what they come to is moved */
    const uint64_t rows = (uint64_t)x.shape.dims[0];
    for (uint64_t column = 0; column < 3; column++) {
        double sum = 0;
        for (uint64_t i = 0; i < rows; i++) sum += get_value(&r, &x, 3 * i + column);
        check_value(&r, &y, column, sum / (double)rows, 0x1p-17);
    }
    run_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),
        cmocka_unit_test(longer_than_a_binding),
        cmocka_unit_test(by_rows),
        cmocka_unit_test(matrices),
        cmocka_unit_test(long_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
