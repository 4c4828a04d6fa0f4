/* test_gather.c: gather from every type, scatter_add in the order of its indices, write_rows at any position, to the bit. */
#include "kernels/cpu/quant.h"
#include "rows_run.h"

static void fill_bytes(run *r, const hdi_tensor *t) {
    storage *s = &r->storages[t->storage];
    for (uint64_t i = 0; i < s->bytes; i++) s->data[i] = (uint8_t)random_word();
}

static void gathers_every_type(void **state) {
    (void)state;
    for (uint32_t type = HD_F32; type < HD_I8; type++) {
        const hd_dtype dtype = (hd_dtype)type;
        const int64_t block = (int64_t)hdi_dtype(dtype).block_elements;
        for (int64_t width = 1; width < 8; width += 2) {
            const int64_t n = width * block, rows = 37, count = 53;
            run r;
            run_begin(&r);
            hdi_tensor in[2] = { new_tensor(&r, dtype, HD_SHAPE(rows, n)), new_tensor(&r, HD_I32, HD_SHAPE(count)) };
            const bool quantised = hdi_dtype_is_quantised(dtype);
            const hdi_tensor y = new_tensor(&r, quantised ? HD_F32 : dtype, HD_SHAPE(count, n));
            fill_bytes(&r, &in[0]);
            int32_t *indices = (int32_t *)(void *)r.storages[in[1].storage].data;
            for (int64_t i = 0; i < count; i++) indices[i] = (int32_t)(random_word() % 41) - 2;
            const hdi_attrs attrs = { 0 };
            run_request(&r, &(hdi_request){ .op = HDI_OP_GATHER, .attrs = &attrs, .inputs = in, .input_count = 2, .out = y, .math = HD_MATH_EXACT });
            const uint64_t row_bytes = hd_dtype_bytes(y.dtype, (uint64_t)n);
            uint8_t *expected = calloc(1, row_bytes);
            for (int64_t i = 0; i < count; i++) {
                const bool inside = indices[i] >= 0 && indices[i] < rows;
                if (!inside) memset(expected, 0, row_bytes);
                else if (!quantised) memcpy(expected, r.storages[in[0].storage].data + (uint64_t)indices[i] * row_bytes, row_bytes);
                else {
                    float *values = (float *)(void *)expected;
                    hdcpu_load_floats(type, r.storages[in[0].storage].data, (uint64_t)(indices[i] * n), (uint64_t)n, values);
                    for (int64_t k = 0; k < n; k++) values[k] = exact_canonical(values[k]);
                }
                assert_memory_equal(r.storages[y.storage].data + (uint64_t)i * row_bytes, expected, row_bytes);
            }
            free(expected);
            run_end(&r);
        }
    }
}

static void unpacks_whole_tensors(void **state) {
    (void)state;
    for (uint32_t type = HD_Q4_0; type < HD_I8; type++) {
        run r;
        run_begin(&r);
        const hdi_tensor x = new_tensor(&r, (hd_dtype)type, HD_SHAPE(3, 5, 768)), y = new_tensor(&r, HD_F32, HD_SHAPE(3, 5, 768));
        fill_bytes(&r, &x);
        const hdi_attrs attrs = { 0 };
        run_request(&r, &(hdi_request){ .op = HDI_OP_CAST, .attrs = &attrs, .inputs = &x, .input_count = 1, .out = y, .math = HD_MATH_EXACT });
        const float *got = (const float *)(const void *)r.storages[y.storage].data;
        for (uint64_t i = 0; i < 3 * 5 * 768; i++)
            assert_int_equal(exact_bits(got[i]), exact_bits(exact_canonical(hdcpu_load_any(type, r.storages[x.storage].data, i))));
        run_end(&r);
    }
}

static void scatters_in_order(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16 };
    static const int64_t widths[] = { 1, 3, 67, 256, 257 }, counts[] = { 1, 31, 256, 700 };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++)
        for (uint32_t w = 0; w < HDI_COUNT(widths); w++)
            for (uint32_t c = 0; c < HDI_COUNT(counts); c++) {
                const uint64_t n = (uint64_t)widths[w], count = (uint64_t)counts[c], rows = 9;
                run r;
                run_begin(&r);
                hdi_tensor in[3] = { new_tensor(&r, types[t], HD_SHAPE((int64_t)rows, widths[w])), new_tensor(&r, HD_I32, HD_SHAPE(counts[c])),
                                     new_tensor(&r, types[t], HD_SHAPE(counts[c], widths[w])) };
                const hdi_tensor y = new_tensor(&r, types[t], HD_SHAPE((int64_t)rows, widths[w]));
                fill_random(&r, &in[0], 1.0f);
                fill_random(&r, &in[2], 1.0f);
                int32_t *indices = (int32_t *)(void *)r.storages[in[1].storage].data;
                for (uint64_t i = 0; i < count; i++) indices[i] = (int32_t)(random_word() % 11) - 1;
                const hdi_attrs attrs = { 0 };
                run_request(&r, &(hdi_request){ .op = HDI_OP_SCATTER_ADD, .attrs = &attrs, .inputs = in, .input_count = 3, .out = y, .math = HD_MATH_EXACT });
                for (uint64_t row = 0; row < rows; row++)
                    for (uint64_t k = 0; k < n; k++) {
                        float sum = (float)get_value(&r, &in[0], row * n + k);
                        for (uint64_t i = 0; i < count; i++)
                            if (indices[i] == (int32_t)row) sum += (float)get_value(&r, &in[2], i * n + k);
                        check_value(&r, &y, row * n + k, (double)sum, 0);
                    }
                run_end(&r);
            }
}

static void writes_at_any_row(void **state) {
    (void)state;
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };
    static const int32_t positions[] = { 0, 1, 2, 5, 9, 10, 11, 12, -1, -2, -3, INT32_MIN, INT32_MAX };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++)
        for (uint32_t p = 0; p < HDI_COUNT(positions); p++)
            for (int64_t n = 1; n < 8; n++) {
                run r;
                run_begin(&r);
                const hdi_tensor in[2] = { new_tensor(&r, types[t], HD_SHAPE(3, n)), new_tensor(&r, HD_I32, HD_SHAPE(1)) };
                const hdi_tensor state_rows = new_tensor(&r, types[t], HD_SHAPE(11, n));
                fill_bytes(&r, &state_rows);
                fill_bytes(&r, &in[0]);
                memcpy(r.storages[in[1].storage].data, &positions[p], sizeof positions[p]);
                const uint64_t row_bytes = hd_dtype_bytes(types[t], (uint64_t)n);
                uint8_t expected[11 * 8 * 4];
                memcpy(expected, r.storages[state_rows.storage].data, 11 * row_bytes);
                for (int64_t i = 0; i < 3; i++) {
                    const int64_t to = positions[p] + i;
                    if (to < 0 || to >= 11) continue;
                    memcpy(expected + (uint64_t)to * row_bytes, r.storages[in[0].storage].data + (uint64_t)i * row_bytes, row_bytes);
                }
                const hdi_attrs attrs = { 0 };
                run_request(&r, &(hdi_request){ .op = HDI_OP_WRITE_ROWS, .attrs = &attrs, .inputs = in, .input_count = 2, .out = state_rows, .math = HD_MATH_EXACT });
                assert_memory_equal(r.storages[state_rows.storage].data, expected, 11 * row_bytes);
                run_end(&r);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_every_type),
        cmocka_unit_test(unpacks_whole_tensors),
        cmocka_unit_test(scatters_in_order),
        cmocka_unit_test(writes_at_any_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
