/* program_cases.h: what the tests of the program room share: a program with every operation, and an allocator that counts
 * and can be told to fail. */
#ifndef PROGRAM_CASES_H
#define PROGRAM_CASES_H

#include "program/program.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* Fails from call number `fail_at` on (1 is the first; 0: never), and counts the bytes alive. */
typedef struct test_memory {
    hd_allocator allocator;
    size_t calls, fail_at, bytes_alive;
} test_memory;

static inline void *test_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    test_memory *memory = user;
    if (new_bytes > 0 && ++memory->calls >= memory->fail_at && memory->fail_at > 0) return NULL;
    void *pointer = NULL;
    if (new_bytes == 0) free(old);
    else if (!(pointer = realloc(old, new_bytes))) return NULL;
    memory->bytes_alive += new_bytes - old_bytes;
    return pointer;
}

static inline test_memory *test_memory_start(test_memory *memory, size_t fail_at) {
    *memory = (test_memory){ { test_resize, memory }, 0, fail_at, 0 };
    return memory;
}

/* A kernel that exists for the program room only: 3 bindings and 8 bytes of push constants for this hash. */
#define TEST_KERNEL_HASH UINT64_C(0x0123456789abcdef)
static inline bool test_find_kernel(void *user, uint64_t hash, hdi_custom *out_custom) {
    static int kernel;
    (void)user;
    if (hash != TEST_KERNEL_HASH) return false;
    out_custom->kernel = (struct hdi_user_kernel *)(void *)&kernel;
    out_custom->kernel_hash = hash;
    out_custom->kernel_bindings = 3;
    out_custom->kernel_push_bytes = 8;
    return true;
}

static inline hd_value test_dispatch(hd_program *p, hd_value a, hd_value b) {
    hdi_custom custom = { .push_words = { 7, 0xDEADBEEF }, .push_bytes = 8, .groups = { 4, 2, 1 } };
    test_find_kernel(NULL, TEST_KERNEL_HASH, &custom);
    return hdi_program_add(p, &(hdi_node){ .op = HDI_OP_DISPATCH, .operands = (hd_value[]){ a, b }, .operand_count = 2,
                                           .attrs.custom = &custom, .dtype = HD_F32, .shape = HD_SHAPE(4, 6) });
}

/* The same kernel with two outputs, of which one begins as an operand; gives the second. */
static inline hd_value test_dispatch_parts(hd_program *p, hd_value a, hd_value b) {
    const uint64_t bytes = hd_tensor_bytes(HD_F32, HD_SHAPE(16, 6));
    hdi_custom custom = { .push_words = { 7, 0xDEADBEEF }, .push_bytes = 8, .groups = { 4, 2, 1 },
                          .bindings = { { 0, 0, 24 }, { 1, 0, 0 }, { 2, 256, bytes } }, .binding_count = 3 };
    test_find_kernel(NULL, TEST_KERNEL_HASH, &custom);
    const hd_value all = hdi_program_add(p, &(hdi_node){ .op = HDI_OP_DISPATCH, .operands = (hd_value[]){ a, b }, .operand_count = 2,
                                                         .attrs.custom = &custom, .dtype = HD_U8, .shape = HD_SHAPE(256 + (int64_t)bytes) });
    return hdi_program_add(p, &(hdi_node){ .op = HDI_OP_PART, .operands = &all, .operand_count = 1, .attrs.ints = { 256 },
                                           .dtype = HD_F32, .shape = HD_SHAPE(16, 6) });
}

/* Adds every operation at least once; ends with three outputs, one of them before the last input. */
static inline void test_every_op(hd_program *p) {
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 6)), y = hd_input(p, "y", HD_F32, HD_SHAPE(6));
    hd_value w = hd_input(p, "w.q4", HD_Q4_0, HD_SHAPE(8, 32)), i = hd_input(p, "indices", HD_I32, HD_SHAPE(4));
    hd_value one = hd_input(p, "position", HD_I32, HD_SHAPE(1)), wide = hd_input(p, "wide", HD_F16, HD_SHAPE(4, 32));
    hd_value cache = hd_state(p, "cache \xC3\xA9", HD_F32, HD_SHAPE(16, 6));
    hd_value heads = hd_input(p, "heads", HD_F32, HD_SHAPE(4, 2, 8)), keys = hd_input(p, "keys", HD_BF16, HD_SHAPE(16, 1, 8));
    hd_value less = hd_less(p, x, y), v = hd_add(p, x, y);
    v = hd_sub(p, hd_mul(p, v, y), hd_div(p, v, x));
    v = hd_where(p, hd_equal(p, x, v), v, hd_where(p, less, x, y));
    v = hd_maximum(p, hd_minimum(p, v, x), y);
    v = hd_elu(p, hd_leaky_relu(p, hd_scale(p, v, 0.1f, -3), 0.01f), 1.5f);
#define EVERY_own(name)
#define EVERY_binary(name)
#define EVERY_ternary(name)
#define EVERY_along(name)
#define EVERY_reduce(name)
#define EVERY_unary(name) v = hd_##name(p, v);
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, ...) EVERY_##builder(name)
#include "program/op_table.inc"
#undef HDI_OP
    v = hd_cast(p, hd_clip(p, v, -1e-30f, 6), HD_F32);
    hd_output(p, "early", v);
    hd_value late = hd_input(p, "late", HD_F32, (hd_shape){ 0 });
    v = hd_add(p, hd_transpose(p, hd_permute(p, v, (const uint32_t[]){ 1, 0 }, 2)), late);
    v = hd_reshape(p, hd_concat(p, (const hd_value[]){ v, x, v }, 3, -1), HD_SHAPE(2, 2, 18));
    v = hd_slice(p, v, (const int64_t[]){ 0, -2, 3 }, (const int64_t[]){ 2, 2, -3 }, 3);
    v = hd_pad(p, v, (const int64_t[]){ 0, 1, 0 }, (const int64_t[]){ 0, 0, 2 }, 3, -0.0f);
    v = hd_slice(p, hd_sum(p, hd_windows(p, v, -1, 3, 2, 1), 3), (const int64_t[]){ 0, 0, 0, 0 }, (const int64_t[]){ 2, 2, 2, 1 }, 4);
    v = hd_reshape(p, v, HD_SHAPE(2, 2, 2));
    v = hd_sum(p, hd_mean(p, hd_max(p, hd_min(p, v, 2), 1), 0), HD_ALL_AXES);
    hd_value bits = hd_bit_and(p, hd_bit_or(p, hd_bit_xor(p, i, one), i), hd_shift_left(p, i, one));
    bits = hd_shift_right_logical(p, hd_shift_right_arithmetic(p, bits, one), one);
    hd_output(p, "rounded", hd_round_random(p, x, one));
    hd_value best = hd_argmax(p, hd_mul(p, x, hd_prod(p, x, 1)), 0), dots = hd_dot(p, x, x, 1), picked = hd_take_along(p, x, hd_top_k(p, x, 2));
    v = hd_log_softmax(p, hd_softmax(p, x, 0), -1);
    v = hd_layer_norm(p, hd_rms_norm(p, hd_rms_norm(p, v, y, 1e-6f), 0, 0), 0, y, 1e-5f);
    v = hd_layer_norm(p, hd_layer_norm(p, v, 0, 0, 1), y, y, 1);
    hd_value product = hd_matmul_with(p, wide, w, HD_TRANSPOSE_B);
    product = hd_matmul_with(p, product, hd_matmul(p, wide, hd_transpose(p, wide)), HD_TRANSPOSE_A | HD_RESULT_F32);
    const hd_value chosen = hd_reshape(p, hd_concat(p, (const hd_value[]){ i, i }, 2, 0), HD_SHAPE(4, 2));
    hd_value experts = hd_matmul_experts(p, x, hd_reshape(p, cache, HD_SHAPE(4, 4, 6)), chosen);
    hd_value rows = hd_add(p, hd_gather(p, w, i), hd_gather(p, w, one));
    v = hd_scatter_mul(p, hd_scatter_max(p, v, i, x), i, hd_scatter_min(p, x, i, x));
    v = hd_scatter_add(p, hd_cumsum(p, v, -1, HD_CUMSUM_REVERSE), i, hd_cumsum(p, x, 0, HD_CUMSUM_EXCLUSIVE));
    cache = hd_write_rows(p, cache, v, one);
    cache = hd_write_rows(p, cache, x, one);
    cache = hd_assign(p, cache, hd_scale(p, cache, 0.5f, 1));
    const float factors[] = { 1, 2, 0.3f };
    heads = hd_rope(p, heads, i, &(hd_rope_desc){ .theta = 500000, .dims = 6, .pairing = HD_ROPE_NEIGHBOURS, .factors = factors });
    heads = hd_rope(p, heads, i, NULL);
    heads = hd_attention(p, heads, keys, keys, one, NULL);
    heads = hd_attention(p, heads, keys, keys, 0, &(hd_attention_desc){ .scale = 0.25f, .not_causal = 1, .cap = 30, .window = 2 });
    heads = hd_attention(p, heads, keys, keys, one, &(hd_attention_desc){ .mask = hd_sum(p, x, 1), .starts = i });
    hdi_program_put(p, &(hdi_node){ .op = HDI_OP_ATTENTION_GRADIENT, .operands = (hd_value[]){ heads, heads, heads, heads, heads },
                                    .operand_count = 5, .attrs = { .ints = { 1 } } });
    hdi_program_put(p, &(hdi_node){ .op = HDI_OP_ATTENTION_GRADIENT, .operands = (hd_value[]){ heads, heads, heads, heads, heads, i }, .operand_count = 6 });
    for (int op = HDI_OP_NORM_GRADIENT; op <= HDI_OP_NORM_SUMS; op++)
        hdi_program_put(p, &(hdi_node){ .op = (hdi_op)op, .operands = (hd_value[]){ x, x }, .operand_count = 2, .attrs = { .ints = { 1 }, .floats = { 0.5f } } });
    hdi_program_put(p, &(hdi_node){ .op = HDI_OP_GELU_TANH_GRADIENT, .operands = (hd_value[]){ x, x }, .operand_count = 2 });
    hd_value loss = hd_cross_entropy(p, x, i);
    hdi_program_put(p, &(hdi_node){ .op = HDI_OP_CROSS_ENTROPY_GRADIENT, .operands = (hd_value[]){ x, i, loss }, .operand_count = 3 });
    hd_output(p, "drawn", hd_random(p, hd_slice(p, hd_concat(p, (const hd_value[]){ i, i, i, i }, 4, 0), (const int64_t[]){ 0 }, (const int64_t[]){ 4 }, 1), 4294967295u, HD_SHAPE(2, 3)));
    hd_output(p, "launched", test_dispatch(p, v, cache));
    hd_output(p, "written", test_dispatch_parts(p, v, cache));
    hd_output(p, "product", product);
    hd_output(p, "experts", experts);
    hd_output(p, "rows", rows);
    hd_output(p, "bits", bits);
    hd_output(p, "best", best);
    hd_output(p, "dots", dots);
    hd_output(p, "picked", picked);
    hd_output(p, "attended", heads);
    hd_output(p, "loss", loss);
    hd_output(p, "digest", hd_hash(p, cache));
}
#endif
