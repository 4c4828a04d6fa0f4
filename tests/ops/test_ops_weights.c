/* test_ops_weights.c: matrix products of two types: activations of every float type with weights of every other one and
 * of every quantised type. */
#include "ops.h"
#include <stdio.h>

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };

static hd_value product(hd_dtype a_type, hd_dtype b_type, int64_t M, int64_t N, int64_t K, uint32_t flags) {
    const hd_value a = ops_input(a_type, flags & HD_TRANSPOSE_A ? HD_SHAPE(K, M) : HD_SHAPE(M, K), OPS_UNIT);
    const hd_value b = ops_input(b_type, flags & HD_TRANSPOSE_B ? HD_SHAPE(N, K) : HD_SHAPE(K, N), OPS_UNIT);
    return hd_matmul_with(ops_program(), a, b, flags);
}

/* Every weight type, as GGUF lays them ([N,K]) and the other way round, behind f32 activations and, in turn,
 * f16 or bf16 ones: each number of few rows is a kernel of its own, which software devices take long to compile. */
static void weights(void) {
    static const int64_t rows[] = { 1, 9, 40, 3, 8 }, columns[] = { 1, 3, 17, 64, 67, 130 };
    for (hd_dtype q = HD_Q4_0; hdi_dtype_is_quantised(q); q++)
        for (uint32_t j = 0; j < (ops_has_book(q) ? 1 : 2); j++) {
            const uint32_t t = j == 0 ? 0 : 1 + q % 2;
            const int64_t block = hdi_dtype(q).block_elements;
            char name[32];
            snprintf(name, sizeof name, "%s x %s", hd_dtype_name(floats[t]), hd_dtype_name(q));
            ops_begin(name, 0);
            const uint32_t first = ops_has_book(q) ? q % 2 : 0, end = ops_has_book(q) ? first + 1 : t == 0 ? HDI_COUNT(rows) : 3;
            for (uint32_t i = first; i < end; i++)
                for (uint32_t k = 0; k < 2; k++) {
                    const int64_t K = block * (1 + ops_random(block == 32 ? 9 : 3)), N = ops_pick(columns, (uint32_t)HDI_COUNT(columns));
                    ops_case(product(floats[t], q, rows[i], N, K, HD_TRANSPOSE_B));
                }
            if (t == 0 && !ops_has_book(q)) ops_case(product(floats[t], q, 5, block * 2, 33, 0));
            if (t == 1) ops_case(product(floats[t], q, 40, block, 67, HD_TRANSPOSE_A));
            if (t == 2) ops_case(product(floats[t], q, 12, 20, block, HD_TRANSPOSE_A | HD_TRANSPOSE_B));
            ops_end();
        }
}

static void mixed_types(void) {
    for (uint32_t a = 0; a < HDI_COUNT(floats); a++) {
        ops_begin(hd_dtype_name(floats[a]), 0);
        for (uint32_t b = 0; b < HDI_COUNT(floats); b++)
            for (uint32_t k = 0; k < 8 && a != b; k++)
                ops_case(product(floats[a], floats[b], k < 4 ? 1 + k / 2 * 4 : 30 + k, 20 + 9 * k, 67 - k, k % 4));
        ops_end();
    }
}

/* So many rows, columns or depths that a device may convert operands first, or sum parts of K; with steps behind. */
static void many_rows(void) {
    static const hd_dtype types[] = { HD_F16, HD_BF16, HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_Q6_K, HD_TQ2_0 };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
        ops_begin(hd_dtype_name(types[t]), 0);
        hd_program *p = ops_program();
        ops_case(product(HD_F32, types[t], 258, 70, 256, HD_TRANSPOSE_B));
        ops_case(product(floats[t % 3], types[t], 257, 256, 40, 0));
        if (t == 0) ops_case(product(HD_F32, types[t], 500, 9700, 24, HD_TRANSPOSE_B));
        if (t == 0) ops_case_of(HDI_OP_MATMUL, hd_scale(p, product(HD_F32, types[t], 500, 2500, 24, HD_TRANSPOSE_B), 0.5f, 1));
        if (t < 3) ops_case(product(t == 0 ? HD_BF16 : HD_F32, types[t], 260, 1030, 32, HD_TRANSPOSE_B));
        if (t > 1) ops_case(product(HD_BF16, types[t], 130, 72, 256, HD_TRANSPOSE_B | HD_RESULT_F32)); /* of mixed precision, */
        if (t > 1) ops_case(product(HD_BF16, types[t], 130, 256, 72, HD_RESULT_F32));                  /* and of its gradient */
        ops_case(product(floats[t % 3], types[t], 20, 40, 2304, HD_TRANSPOSE_B));
        const hd_value sum = product(HD_F32, types[t], 70, 33, 1280, HD_TRANSPOSE_B), gate = ops_input(HD_F32, HD_SHAPE(33), OPS_UNIT);
        ops_case_of(HDI_OP_MATMUL, hd_add(p, hd_scale(p, sum, 0.5f, 1), gate));
        ops_end();
    }
}

/* Scales that are zero, infinite or no numbers: the bits that the reference has. */
static void special_scales(void) {
    static const hd_dtype types[] = { HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_Q6_K };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
        ops_begin(hd_dtype_name(types[t]), OPS_EXACT_ONLY | OPS_UNJUDGED);
        for (uint32_t rows = 3; rows < 100; rows += 67) {
            const hd_value a = ops_input(HD_F32, HD_SHAPE(rows, 512), OPS_UNIT), b = ops_input(types[t], HD_SHAPE(40, 512), OPS_SPECIAL);
            ops_case(hd_matmul_with(ops_program(), a, b, HD_TRANSPOSE_B));
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "quantised", weights }, { "mixed types", mixed_types }, { "many rows", many_rows },
                                      { "special scales", special_scales } };
    return ops_main("weights", tests, HDI_COUNT(tests), argc, argv);
}
