/* test_ops_experts.c: products of rows with experts that they chose: few rows, each by itself on a GPU, and many, in groups of
 * those that chose the same one. */
#include "ops.h"

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };

/* Experts that rows chose: few and many rows, of one expert and of all, numbers of nobody, every type of weights. */
static void experts(void) {
    static const int64_t counts[] = { 4, 5, 8, 16, 64, 128 }, used[] = { 1, 2, 3, 8 }, rows[] = { 1, 7, 40, 3 };
    for (hd_dtype q = HD_F32; q < HD_I8; q++) {
        if (q == HD_I32 || q == HD_U8 || (ops_has_book(q) && q != HD_IQ2_S)) continue;
        ops_begin(hd_dtype_name(q), 0);
        for (uint32_t k = 0; k < (q == HD_F32 ? 12 : ops_has_book(q) ? 1 : 4); k++) {
            ops_split(3);
            const int64_t block = hdi_dtype(q).block_elements, E = counts[k % 6], U = used[(k + q) % 4], T = rows[k % 4];
            const int64_t K = block == 1 ? 1 + ops_random(150) : block * (1 + ops_random(block == 32 ? 9 : 2)), N = 1 + ops_random(E > 16 ? 12 : 70);
            const hd_dtype x_type = k % 3 == 2 ? floats[1 + k % 2] : HD_F32;
            const hd_value x = ops_input(x_type, k % 2 ? HD_SHAPE(T, U, K) : HD_SHAPE(T, K), OPS_UNIT);
            const hd_value chosen = ops_indices(HD_SHAPE(T, U), k % 5 == 3 ? -1 : 0, (int32_t)(k % 5 == 3 ? E : k % 5 == 2 ? 0 : E - 1));
            ops_case(hd_matmul_experts(ops_program(), x, ops_input(q, HD_SHAPE(E, N, K), OPS_UNIT), chosen));
        }
        ops_end();
    }
}

/* A prompt's rows, of which some experts get more than a tile has, some few and some none. */
static void many(void) {
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_IQ4_XS, HD_MXFP4, HD_IQ3_S };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
        const int64_t block = hdi_dtype(types[t]).block_elements, K = block == 1 ? 40 : block;
        ops_begin(hd_dtype_name(types[t]), 0);
        const hd_value w = ops_input(types[t], HD_SHAPE(5, 35, K), OPS_UNIT);
        ops_case(hd_matmul_experts(ops_program(), ops_input(HD_F32, HD_SHAPE(620, K), OPS_UNIT), w, ops_indices(HD_SHAPE(620, 2), 1, 2)));
        ops_case(hd_matmul_experts(ops_program(), ops_input(floats[t % 3], HD_SHAPE(61, 3, K), OPS_UNIT), w, ops_indices(HD_SHAPE(61, 3), -1, 5)));
        ops_end();
    }
}

/* Rows in groups, with weights of every type: all rows choose one expert; as many as a tile has, and one more, choose the first
 * and the last one; of many experts most get one row or none; of few, each gets few. So deep that strands have several runs, and with choices that
 * begin inside of a tensor. */
static void groups(void) {
    for (hd_dtype q = HD_F32; q < HD_I8; q++) {
        if (q == HD_I32 || q == HD_U8 || (ops_has_book(q) && q % 3 != 0)) continue;
        const int64_t block = hdi_dtype(q).block_elements, deep = block == 1 ? 67 : block == 32 ? 640 : 768;
        ops_begin(hd_dtype_name(q), 0);
        hd_program *p = ops_program();
        const hd_value w = ops_input(q, HD_SHAPE(3, 37, deep), OPS_UNIT), two = ops_input(HD_F32, HD_SHAPE(34, 2, deep), OPS_UNIT);
        ops_case(hd_matmul_experts(p, two, w, ops_indices(HD_SHAPE(34, 2), 2, 2)));
        int32_t chosen[130];
        for (uint32_t i = 0; i < 130; i++) chosen[i] = i % 2 == 0 || i == 1 ? 2 : 0; /* 66 and 64 */
        ops_case(hd_matmul_experts(p, ops_input(floats[q % 3], HD_SHAPE(65, deep), OPS_UNIT), w, ops_given(HD_I32, HD_SHAPE(65, 2), chosen)));
        const hd_value many = ops_input(q, HD_SHAPE(96, 5, block == 1 ? 9 : block), OPS_UNIT);
        const hd_value x = ops_input(HD_F32, HD_SHAPE(20, block == 1 ? 9 : block), OPS_UNIT);
        ops_case(hd_matmul_experts(p, x, many, ops_indices(HD_SHAPE(20, 5), 3, 96)));
        const hd_value rows = ops_input(floats[q % 3], HD_SHAPE(4, 3, deep), OPS_UNIT);
        ops_case(hd_matmul_experts(p, rows, w, ops_indices(HD_SHAPE(4, 3), -1, 2)));
        const hd_value all = ops_indices(HD_SHAPE(12, 8), -1, 3), some = hd_slice(p, all, (int64_t[]){ 8, 0 }, (int64_t[]){ 9, 8 }, 2);
        ops_case(hd_matmul_experts(p, ops_input(HD_F32, HD_SHAPE(1, deep), OPS_UNIT), w, some));
        ops_end();
    }
}

/* What a layer of a model makes of few rows: their norm is a part of the products, of which two are one step with what
 * follows. Choices of nobody give zeros. */
static void layers(void) {
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_Q4_0, HD_Q8_0, HD_Q4_K };
    for (uint32_t t = 0; t < HDI_COUNT(types); t++) {
        const hd_dtype q = types[t];
        const int64_t block = hdi_dtype(q).block_elements, K = block == 256 ? 512 : 320, N = 70;
        ops_begin(hd_dtype_name(q), OPS_UNFUSED | OPS_UNJUDGED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 4; k++) {
            const int64_t E = k % 2 ? 16 : 4, U = k % 2 ? 4 : 2, T = k < 2 ? 1 : 5;
            const hd_value x = ops_input(HD_F32, HD_SHAPE(T, K), OPS_UNIT), weights = ops_input(HD_F32, HD_SHAPE(K), OPS_UNIT);
            const hd_value normal = hd_rms_norm(p, x, weights, 1e-5f), chosen = ops_indices(HD_SHAPE(T, U), k == 1 ? -1 : 0, (int32_t)(k == 3 ? E : E - 1));
            const hd_value gate = hd_matmul_experts(p, normal, ops_input(q, HD_SHAPE(E, N, K), OPS_UNIT), chosen);
            const hd_value up = hd_matmul_experts(p, normal, ops_input(q, HD_SHAPE(E, N, K), OPS_UNIT), chosen);
            ops_case_of(HDI_OP_MATMUL_EXPERTS, hd_mul(p, hd_silu(p, gate), up));
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "few", experts }, { "many", many }, { "groups", groups }, { "layers", layers } };
    return ops_main("experts", tests, HDI_COUNT(tests), argc, argv);
}
