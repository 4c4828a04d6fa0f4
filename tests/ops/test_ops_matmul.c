/* test_ops_matmul.c: matrix products of odd sizes: M, N, K in 1 to 67 and some beyond, either side transposed or a view,
 * batches that broadcast. Products of two types are in test_ops_weights.c. */
#include "ops.h"

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };
static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 66, 67 };

static hd_value product(hd_dtype a_type, hd_dtype b_type, int64_t M, int64_t N, int64_t K, uint32_t flags, ops_fill fill) {
    const hd_value a = ops_input(a_type, flags & HD_TRANSPOSE_A ? HD_SHAPE(K, M) : HD_SHAPE(M, K), fill);
    const hd_value b = ops_input(b_type, flags & HD_TRANSPOSE_B ? HD_SHAPE(N, K) : HD_SHAPE(K, N), fill);
    return hd_matmul_with(ops_program(), a, b, flags);
}

/* Each number of rows up to 8 is a kernel of its own: f32 meets them all. */
static void odd_sizes(void) {
    static const int64_t fewer[] = { 1, 3, 8, 9, 17, 31, 33, 48, 63, 64, 65, 66, 67 };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < 4 * 75; k++) {
            int64_t sizes[3];
            for (uint32_t i = 0; i < 3; i++) sizes[i] = ops_pick(lengths, (uint32_t)HDI_COUNT(lengths));
            if (t > 0) sizes[0] = ops_pick(fewer, (uint32_t)HDI_COUNT(fewer));
            if (k % 5 == 0 && t == 0) sizes[0] = 1 + ops_random(8);
            ops_case(product(floats[t], floats[t], sizes[0], sizes[1], sizes[2], k % 4, k % 7 ? OPS_UNIT : OPS_WHOLE));
            ops_split(100);
        }
        ops_end();
    }
}

static void larger(void) {
    static const int64_t sizes[][3] = { { 129, 130, 131 }, { 1, 1000, 257 }, { 5, 513, 300 }, { 128, 256, 64 }, { 200, 1, 1025 }, { 3, 3, 4097 }, { 70, 300, 96 }, { 20, 12, 2051 } };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++)
            for (uint32_t flags = 0; flags < 4; flags++) ops_case(product(floats[t], floats[t], sizes[s][0], sizes[s][1], sizes[s][2], flags, OPS_UNIT));
        ops_end();
    }
}

/* Sums as they are, of narrow operands: each way round, few and many rows, and sizes that matrix units and libraries take. */
static void results_of_f32(void) {
    static const int64_t sizes[][3] = { { 1, 70, 130 }, { 5, 67, 96 }, { 40, 33, 65 }, { 72, 136, 96 }, { 17, 48, 31 }, { 200, 168, 128 } };
    for (uint32_t t = 1; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(sizes); s++)
            for (uint32_t flags = 0; flags < 4; flags++) {
                ops_case(product(floats[t], floats[t], sizes[s][0], sizes[s][1], sizes[s][2], flags | HD_RESULT_F32, OPS_UNIT));
                hd_program *p = ops_program();
                const hd_value bias = ops_input(HD_F32, HD_SHAPE(sizes[s][1]), OPS_UNIT);
                const hd_value sum = product(floats[t], s % 2 ? HD_F32 : floats[t], sizes[s][0], sizes[s][1], sizes[s][2], flags | HD_RESULT_F32, OPS_UNIT);
                if (flags == 0) ops_case_of(HDI_OP_MATMUL, hd_cast(p, hd_add(p, sum, bias), floats[t])); /* what follows is f32, too */
            }
        ops_end();
    }
}

/* A row and a matrix that are added to products as training has them, in either order; a row begins anywhere. */
static void added(void) {
    ops_begin("bf16 and what is added", 0);
    for (int k = 0; k < 6; k++) {
        hd_program *p = ops_program();
        const int64_t M = 64 + 16 * (k % 2), N = 160, K = 256, begin = k < 4 ? 64 : 3, end = begin + N;
        const hd_value a = ops_input(HD_BF16, HD_SHAPE(M, K), OPS_UNIT), b = ops_input(HD_BF16, HD_SHAPE(K, N), OPS_UNIT);
        const hd_value row = hd_slice(p, ops_input(HD_F32, HD_SHAPE(64 + N), OPS_UNIT), &begin, &end, 1), matrix = ops_input(HD_F32, HD_SHAPE(M, N), OPS_UNIT);
        hd_value y = hd_matmul_with(p, a, b, HD_RESULT_F32);
        if (k % 3 != 1) y = hd_add(p, k % 2 ? row : y, k % 2 ? y : row);
        if (k % 3 != 0) y = hd_add(p, matrix, y);
        ops_case_of(HDI_OP_MATMUL, y);
        if (k % 3 != 0) continue;
        const hd_value narrow = hd_slice(p, ops_input(HD_BF16, HD_SHAPE(64 + N), OPS_UNIT), &begin, &end, 1);
        ops_case_of(HDI_OP_MATMUL, hd_add(p, hd_matmul(p, a, b), narrow));
    }
    ops_end();
}

static void batches(void) {
    static const hd_shape leading[][2] = { { { 1, { 3 } }, { 1, { 3 } } }, { { 1, { 5 } }, { 0, { 0 } } }, { { 0, { 0 } }, { 1, { 4 } } }, { { 2, { 2, 3 } }, { 1, { 3 } } },
                                           { { 2, { 2, 1 } }, { 2, { 1, 3 } } }, { { 3, { 2, 1, 3 } }, { 3, { 2, 4, 1 } } }, { { 4, { 2, 1, 2, 1 } }, { 2, { 2, 3 } } }, { { 4, { 1, 1, 2, 3 } }, { 4, { 2, 2, 1, 3 } } } };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(leading); s++)
            for (uint32_t flags = 0; flags < 4; flags++) {
                const int64_t least = s < 2 && t + flags > 2 ? 96 : 1; /* some that a library of products takes too */
                const int64_t M = least + ops_random(20), N = least + ops_random(20), K = least + ops_random(40);
                hd_shape a = leading[s][0], b = leading[s][1];
                a.dims[a.rank++] = flags & HD_TRANSPOSE_A ? K : M;
                a.dims[a.rank++] = flags & HD_TRANSPOSE_A ? M : K;
                b.dims[b.rank++] = flags & HD_TRANSPOSE_B ? N : K;
                b.dims[b.rank++] = flags & HD_TRANSPOSE_B ? K : N;
                const hd_value x = ops_input(floats[t], a, OPS_UNIT), y = ops_input(floats[t], b, OPS_UNIT);
                ops_case(hd_matmul_with(ops_program(), x, y, flags));
            }
        ops_end();
    }
}

/* Operands that are views: permuted, sliced, of a batch. */
static void views(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 8; k++) {
            const int64_t M = 3 + ops_random(20), N = 2 + ops_random(30), K = 4 + ops_random(40), H = 2 + k % 3;
            const hd_value wide = ops_input(floats[t], HD_SHAPE(M + 2, K + 3), OPS_UNIT), b = ops_input(floats[t], HD_SHAPE(K, N), OPS_UNIT);
            ops_case(hd_matmul(p, hd_slice(p, wide, (int64_t[]){ 1, 2 }, (int64_t[]){ M + 1, K + 2 }, 2), b));
            const hd_value heads = ops_input(floats[t], HD_SHAPE(M, H, K), OPS_UNIT), keys = ops_input(floats[t], HD_SHAPE(N, H, K), OPS_UNIT);
            const uint32_t forward[] = { 1, 0, 2 }; /* [T,H,D] to [H,T,D] */
            ops_case(hd_matmul_with(p, hd_permute(p, heads, forward, 3), hd_permute(p, keys, forward, 3), HD_TRANSPOSE_B));
            ops_case(hd_matmul(p, hd_transpose(p, ops_input(floats[t], HD_SHAPE(K, M), OPS_UNIT)), b));
        }
        ops_end();
    }
}

/* Values that overflow, vanish, or are no numbers; K in one block and in several. */
static void special_values(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_EXACT_ONLY);
        for (uint32_t k = 0; k < 8; k++) {
            const hd_value a = ops_input(floats[t], HD_SHAPE(k < 4 ? 2 : 19, 5 + 13 * k), k % 2 ? OPS_TINY : OPS_SPECIAL);
            ops_case(hd_matmul_with(ops_program(), a, ops_input(floats[t], HD_SHAPE(21, 5 + 13 * k), OPS_UNIT), HD_TRANSPOSE_B));
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = {
        { "odd sizes", odd_sizes }, { "larger", larger }, { "results of f32", results_of_f32 }, { "what is added", added }, { "batches", batches }, { "views", views }, { "special values", special_values },
    };
    return ops_main("matmul", tests, HDI_COUNT(tests), argc, argv);
}
