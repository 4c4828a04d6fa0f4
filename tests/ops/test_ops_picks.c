/* test_ops_picks.c: top_k and take_along: rows from one element to many parts, k from 1 to 256, many equal elements, NaN and
 * infinity, zeros of both signs, indices outside. */
#include "ops.h"

static const hd_dtype numbers[] = { HD_F32, HD_F16, HD_BF16, HD_I32 };
static const hd_dtype plain[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

static void best_of(hd_dtype dtype, hd_shape shape, uint32_t k, ops_fill fill) {
    const hd_value x = ops_input(dtype, shape, fill), best = hd_top_k(ops_program(), x, k);
    ops_case(best);
    ops_case(hd_take_along(ops_program(), x, best));
}

static void rows(void) {
    static const int64_t lengths[] = { 1, 2, 3, 5, 8, 17, 31, 64, 65, 127, 255, 256, 257, 511, 512, 513, 1000, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192 };
    static const ops_fill fills[] = { OPS_UNIT, OPS_WHOLE, OPS_WIDE, OPS_SPECIAL, OPS_TINY };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t n = 0; n < HDI_COUNT(lengths); n++)
            for (uint32_t f = 0; f < HDI_COUNT(fills); f++) {
                const uint32_t most = (uint32_t)HDI_MIN(lengths[n], HD_MAX_TOP_K), k = f == 0 ? most : 1 + ops_random(most);
                best_of(numbers[t], f % 2 ? HD_SHAPE(lengths[n]) : HD_SHAPE(1 + n % 2, 1 + f % 3, lengths[n]), k, fills[f]);
                ops_split(40);
            }
        ops_end();
    }
}

/* Parts of rows, parts of parts; rows for all compute units; the last part has fewer than k elements. */
static void long_rows(void) {
    static const struct { int64_t rows, n; uint32_t k; } sizes[] = {
        { 1, 8193, 1 }, { 1, 8200, 256 }, { 2, 12289, 128 }, { 1, 16385, 40 }, { 300, 8193, 3 }, { 1, 65536, 256 }, { 3, 65537, 17 }, { 1, 151936, 128 }, { 1, 300000, 256 },
    };
    static const ops_fill fills[] = { OPS_MIDDLE, OPS_WHOLE, OPS_SPECIAL };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++)
        for (uint32_t i = 0; i < HDI_COUNT(sizes); i++) {
            ops_begin(hd_dtype_name(numbers[t]), 0);
            best_of(numbers[t], HD_SHAPE(sizes[i].rows, sizes[i].n), sizes[i].k, fills[(i + t) % 3]);
            if (sizes[i].rows == 1) best_of(numbers[t], HD_SHAPE(sizes[i].n), sizes[i].k, fills[(i + t + 1) % 3]);
            ops_end();
        }
}

/* Rows in which all are equal, rise, fall, and have their best at the ends. */
static void sorted_rows(void) {
    enum { N = 9000 };
    static int32_t values[4][N];
    for (int32_t i = 0; i < N; i++) {
        values[0][i] = 7;
        values[1][i] = i - N / 2;
        values[2][i] = (N - i) * 1000;
        values[3][i] = i < 100 || i >= N - 100 ? INT32_MAX : INT32_MIN;
    }
    ops_begin("sorted", 0);
    for (uint32_t v = 0; v < HDI_COUNT(values); v++)
        for (uint32_t k = 1; k <= 256; k = 2 * k + 1 > 256 && k < 256 ? 256 : 2 * k + 1) {
            const hd_value x = ops_given(HD_I32, HD_SHAPE(N), values[v]);
            ops_case(hd_top_k(ops_program(), x, k));
            if (v != 3) ops_case(hd_top_k(ops_program(), hd_cast(ops_program(), x, HD_F32), k));
        }
    ops_end();
}

/* Of a view, and of what was computed just before. */
static void views(void) {
    ops_begin("views", 0);
    hd_program *p = ops_program();
    const hd_value x = ops_input(HD_F32, HD_SHAPE(70, 33), OPS_WHOLE), turned = hd_transpose(p, x);
    const hd_value cut = hd_slice(p, x, (int64_t[]){ 3, 1 }, (int64_t[]){ 60, 30 }, 2);
    ops_case(hd_top_k(p, turned, 40));
    ops_case(hd_top_k(p, cut, 9));
    ops_case(hd_top_k(p, hd_relu(p, x), 33));
    ops_case(hd_take_along(p, turned, hd_top_k(p, turned, 7)));
    ops_case(hd_take_along(p, cut, ops_indices(HD_SHAPE(57, 4), -1, 29)));
    ops_case(hd_take_along(p, x, hd_slice(p, ops_indices(HD_SHAPE(70, 9), 0, 32), (int64_t[]){ 0, 2 }, (int64_t[]){ 70, 7 }, 2)));
    ops_end();
}

static void any_indices(void) {
    static const hd_shape shapes[] = { { 1, { 1 } }, { 1, { 67 } }, { 2, { 5, 33 } }, { 3, { 2, 3, 7 } }, { 6, { 1, 2, 1, 3, 2, 5 } }, { 2, { 3, 10007 } } };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
            for (uint32_t k = 0; k < 4; k++) {
                hd_shape to = shapes[s];
                const int32_t n = (int32_t)to.dims[to.rank - 1];
                to.dims[to.rank - 1] = 1 + ops_random(k == 3 ? 600 : 9);
                ops_case(hd_take_along(ops_program(), ops_input(plain[t], shapes[s], k == 2 && plain[t] != HD_U8 ? OPS_SPECIAL : OPS_UNIT), ops_indices(to, k == 1 ? -2 : 0, k == 1 ? n + 1 : n - 1)));
            }
        const int32_t far[] = { INT32_MIN, INT32_MAX, -1, 0, 4, 5, 1 << 30 };
        ops_case(hd_take_along(ops_program(), ops_input(plain[t], HD_SHAPE(5), OPS_UNIT), ops_given(HD_I32, HD_SHAPE(7), far)));
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "rows", rows }, { "long rows", long_rows }, { "sorted rows", sorted_rows }, { "views", views }, { "any indices", any_indices } };
    return ops_main("picks", tests, HDI_COUNT(tests), argc, argv);
}
