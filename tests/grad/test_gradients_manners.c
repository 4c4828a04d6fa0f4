/* test_gradients_manners.c: what hd_gradients refuses, what has no gradient, in which order parts are added, what is computed
 * again, kernels of the caller's own, memory that runs out, and what the gradients of many losses in one program take. */
#include "spent.h"
#include "unit/program_cases.h"
#include <stdio.h>

static hd_program *fresh(void) { return hdi_program_new(&hdi_default_allocator, NULL); }
static hd_status gradients(hd_program *p, hd_value loss, const hd_value *wanted, size_t count, hd_gradients_desc desc, hd_value *out) {
    return hdi_program_gradients(p, loss, wanted, count, &desc, NULL, out);
}

static void refusals(void **state) {
    (void)state;
    for (int i = 0; i < 13; i++) {
        hd_program *p = fresh();
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 6)), half = hd_input(p, "h", HD_F16, HD_SHAPE(4, 6)), held = hd_state(p, "s", HD_F32, HD_SHAPE(4, 6));
        const hd_value loss = hd_sum(p, hd_mul(p, x, held), HD_ALL_AXES), before = p->node_count;
        hd_value wanted[] = { x, held }, out[2] = { 9, 9 }, nothing = 0, first[] = { loss, 0 }, second[] = { 0, loss };
        hd_gradients_desc desc = { 0 };
        hd_value of = loss;
        hd_status expected = HD_STATUS_SHAPE;
        const char *word = "";
        switch (i) {
        case 0: of = x; word = "[4,6]"; break;
        case 1: of = hd_sum(p, half, HD_ALL_AXES); word = "f16"; break;
        case 2: of = 99; word = "99"; expected = HD_STATUS_UNKNOWN_VALUE; break;
        case 3: wanted[1] = 77; word = "wanted is value 77"; expected = HD_STATUS_UNKNOWN_VALUE; break;
        case 4: desc.kept = &nothing; desc.kept_count = 1; word = "kept is value 0"; expected = HD_STATUS_UNKNOWN_VALUE; break;
        case 5: desc.loss_gradient = x; word = "loss_gradient"; break;
        case 6: desc.loss_gradient = 1234; word = "loss_gradient"; break;
        case 7: desc.continued = first; word = "goes on from"; break;
        case 8: wanted[1] = loss; desc.continued = second; word = "no input or state"; expected = HD_STATUS_INVALID_ARGUMENT; break;
        case 9: of = hd_sum(p, test_dispatch(p, x, x), HD_ALL_AXES); word = "dispatch: this kernel has no gradient"; expected = HD_STATUS_UNSUPPORTED; break;
        case 11: {
            const hd_value heads = hd_reshape(p, held, HD_SHAPE(4, 2, 3)), mask = hd_sum(p, x, 1);
            of = hd_sum(p, hd_attention(p, heads, heads, heads, 0, &(hd_attention_desc){ .mask = mask }), HD_ALL_AXES);
            word = "attention: its mask has no gradient"; expected = HD_STATUS_UNSUPPORTED; break;
        }
        case 10: hd_assign(p, held, x); word = "overwritten"; expected = HD_STATUS_WRONG_STATE; break;
        default: hd_exp(p, 99); word = "exp"; expected = HD_STATUS_UNKNOWN_VALUE; break; /* failed before */
        }
        const hd_status status = gradients(p, of, wanted, 2, desc, out);
        if (status != expected || !strstr(p->error.text, word) || out[0] || out[1]) fail_msg("case %d: status %d, %s", i, (int)status, p->error.text);
        if (i < 9 && i != 1) assert_int_equal(p->node_count, before); /* nothing was added */
        assert_int_equal(hdi_program_check(p, &(hd_error){ 0 }), expected); /* it sticks */
        hdi_program_free(p);
    }
    assert_int_equal(hd_gradients(NULL, 1, NULL, 0, NULL, NULL), HD_STATUS_NULL_POINTER);
}

/* No way through floats: none. */
static void none(void **state) {
    (void)state;
    hd_program *p = fresh();
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 32)), apart = hd_input(p, "apart", HD_F32, HD_SHAPE(4)), i = hd_input(p, "i", HD_I32, HD_SHAPE(4));
    const hd_value w = hd_input(p, "w", HD_Q8_0, HD_SHAPE(8, 32)), y = hd_input(p, "y", HD_F32, HD_SHAPE(4, 8)), held = hd_state(p, "s", HD_F32, HD_SHAPE(4, 8));
    const hd_value product = hd_matmul_with(p, x, w, HD_TRANSPOSE_B), less = hd_cast(p, hd_less(p, y, product), HD_F32);
    const hd_value ids = hd_cast(p, hd_cast(p, y, HD_I32), HD_F32), round = hd_round(p, y), now = hd_assign(p, held, product);
    const hd_value loss = hd_sum(p, hd_add(p, hd_add(p, hd_mul(p, less, product), ids), hd_add(p, round, now)), HD_ALL_AXES);
    const hd_value after = hd_exp(p, product), wanted[] = { x, apart, i, w, y, held, product, loss, after, x };
    hd_value out[10];
    assert_int_equal(gradients(p, loss, wanted, 10, (hd_gradients_desc){ 0 }, out), HD_OK);
    const bool has[] = { true, false, false, false, false, false, true, true, false, true };
    for (int k = 0; k < 10; k++) assert_int_equal(out[k] != 0, has[k]);
    assert_int_equal(out[0], out[9]);
    const hd_value given = hd_input(p, "given", HD_F32, HD_SHAPE(4));
    hd_value so_far;
    assert_int_equal(gradients(p, loss, &apart, 1, (hd_gradients_desc){ .continued = &given }, &so_far), HD_OK);
    assert_int_equal(so_far, given); /* nothing came to it */
    hdi_program_free(p);
}

static hdi_op op_of(const hd_program *p, hd_value v) { return hdi_program_node(p, v)->op; }
static hd_value operand(const hd_program *p, hd_value v, int i) { return hdi_program_node(p, v)->operands[i]; }

/* exp, then tanh, then sqrt use x: ((exp's + tanh's) + sqrt's), whatever the order in which they were joined. */
static void order_of_parts(void **state) {
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        hd_program *p = fresh();
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4)), e = hd_exp(p, x), t = hd_tanh(p, x), s = hd_sqrt(p, x);
        const hd_value loss = hd_sum(p, turned ? hd_add(p, hd_add(p, s, t), e) : hd_add(p, hd_add(p, e, t), s), 0);
        hd_value dx;
        assert_int_equal(gradients(p, loss, &x, 1, (hd_gradients_desc){ 0 }, &dx), HD_OK);
        assert_int_equal(op_of(p, dx), HDI_OP_ADD);
        assert_int_equal(op_of(p, operand(p, dx, 1)), HDI_OP_DIV);
        const hd_value first = operand(p, dx, 0);
        assert_int_equal(op_of(p, first), HDI_OP_ADD);
        assert_int_equal(operand(p, operand(p, first, 0), 1), e); /* dy * e^x */
        assert_int_equal(op_of(p, operand(p, first, 1)), HDI_OP_MUL);
        hdi_program_free(p);
    }
}

static uint32_t count(const hd_program *p, hdi_op op) {
    uint32_t number = 0;
    for (hd_value v = 1; v <= p->node_count; v++) number += op_of(p, v) == op;
    return number;
}

/* Values of 16 bits: as they are, or f32 where that is wished, also of what lies between, of a table and of what is continued. */
static void wide_ones(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        hd_program *p = fresh();
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 6)), w = hd_input(p, "w", HD_BF16, HD_SHAPE(6, 8)), i = hd_input(p, "i", HD_I32, HD_SHAPE(5));
        const hd_value table = hd_input(p, "t", HD_F16, HD_SHAPE(9, 8)), between = hd_exp(p, w), product = hd_matmul_with(p, hd_cast(p, x, HD_BF16), between, HD_RESULT_F32);
        const hd_value rows = hd_cast(p, hd_gather(p, table, i), HD_F32), cut = hd_cast(p, hd_slice(p, table, (const int64_t[]){ 0, 0 }, (const int64_t[]){ 4, 8 }, 2), HD_F32);
        const hd_value loss = hd_sum(p, hd_concat(p, (const hd_value[]){ product, rows, cut }, 3, 0), HD_ALL_AXES), before = hd_input(p, "before", wide ? HD_F32 : HD_F16, HD_SHAPE(9, 8));
        const hd_value wanted[] = { x, w, between, table }, so_far[] = { 0, 0, 0, before };
        hd_value out[4];
        assert_int_equal(gradients(p, loss, wanted, 4, (hd_gradients_desc){ .wide = wide, .continued = so_far }, out), HD_OK);
        const hd_dtype types[] = { HD_F32, HD_BF16, HD_BF16, HD_F16 };
        for (int k = 0; k < 4; k++) assert_int_equal(hdi_program_node(p, out[k])->dtype, wide ? HD_F32 : types[k]);
        hdi_program_free(p);
    }
}

/* Three layers of exp; the middle one may be kept. */
static void computed_again(void **state) {
    (void)state;
    for (int kept = 0; kept < 3; kept++) {
        hd_program *p = fresh();
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4));
        const hd_value a = hd_tanh(p, x), b = hd_tanh(p, a), c = hd_tanh(p, b), loss = hd_sum(p, c, 0);
        hd_value dx;
        const hd_gradients_desc desc = { .recompute = kept < 2, .kept = &b, .kept_count = kept == 1 };
        assert_int_equal(gradients(p, loss, &x, 1, desc, &dx), HD_OK);
        assert_int_equal(count(p, HDI_OP_TANH), kept == 2 ? 3 : kept ? 5 : 6); /* b, the last but one, need not be computed again */
        hdi_program_free(p);
    }
    hd_program *p = fresh(); /* what was computed from a state's old content stays */
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4)), held = hd_state(p, "s", HD_F32, HD_SHAPE(4));
    const hd_value loss = hd_sum(p, hd_exp(p, hd_mul(p, x, held)), 0);
    hd_value dx;
    hd_assign(p, held, hd_scale(p, held, 2, 0));
    assert_int_equal(gradients(p, loss, &x, 1, (hd_gradients_desc){ .recompute = 1 }, &dx), HD_STATUS_WRONG_STATE); /* x's own needs it */
    hdi_program_free(p);
}

/* From the gradient of a tensor instead of one number; and a gradient of a part of a state goes on from another. */
static void from_a_tensor(void **state) {
    (void)state;
    hd_program *p = fresh();
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(3, 4)), all = hd_state(p, "s", HD_F32, HD_SHAPE(8));
    const hd_value weight = hd_slice(p, all, (const int64_t[]){ 2 }, (const int64_t[]){ 6 }, 1), given = hd_input(p, "dy", HD_F32, HD_SHAPE(3, 4));
    const hd_value y = hd_mul(p, x, weight), before = hd_input(p, "before", HD_F32, HD_SHAPE(4)), wanted[] = { x, weight };
    hd_value out[2];
    const hd_gradients_desc desc = { .loss_gradient = given, .continued = (hd_value[]){ 0, before }, .chunk_rows = 1 };
    assert_int_equal(gradients(p, y, wanted, 2, desc, out), HD_OK);
    assert_int_equal(op_of(p, out[0]), HDI_OP_MUL);
    assert_true(operand(p, out[0], 0) == given && operand(p, out[0], 1) == weight);
    const hd_value sum = operand(p, out[1], 0);
    assert_int_equal(op_of(p, sum), HDI_OP_SCATTER_ADD);
    assert_int_equal(operand(p, operand(p, sum, 0), 0), before);
    assert_int_equal(gradients(p, y, (hd_value[]){ all, weight }, 2, desc, out), HD_STATUS_INVALID_ARGUMENT); /* all lacks `before` */
    hdi_program_free(p);
}

/* 10 rows in chunks of 4: three products and two sums, and the bias and the table likewise, chunk by chunk. */
static void chunks(void **state) {
    (void)state;
    hd_program *p = fresh();
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(5, 2, 6)), w = hd_input(p, "w", HD_F32, HD_SHAPE(6, 3)), b = hd_input(p, "b", HD_F32, HD_SHAPE(3));
    const hd_value before = hd_input(p, "before", HD_F32, HD_SHAPE(6, 3));
    const hd_value loss = hd_sum(p, hd_tanh(p, hd_add(p, hd_matmul(p, x, w), b)), HD_ALL_AXES), wanted[] = { w, b };
    hd_value out[2];
    assert_int_equal(gradients(p, loss, wanted, 2, (hd_gradients_desc){ .chunk_rows = 4, .continued = (hd_value[]){ before, 0 } }, out), HD_OK);
    assert_int_equal(count(p, HDI_OP_MATMUL), 1 + 3);
    hd_value at = out[0];
    for (int i = 3; i-- > 0; at = operand(p, at, 0)) { /* ((before + 0..3) + 4..7) + 8..9 */
        assert_int_equal(op_of(p, at), HDI_OP_ADD);
        hd_value rows = operand(p, at, 1);
        while (op_of(p, rows) != HDI_OP_MATMUL) rows = operand(p, rows, 0);
        const hdi_node *slice = hdi_program_node(p, operand(p, rows, 0));
        assert_int_equal(slice->op, HDI_OP_SLICE);
        assert_int_equal(slice->attrs.ints[0], 4 * i);
    }
    assert_int_equal(at, before);
    at = operand(p, out[1], 0); /* ((0 + 0..3) + 4..7) in one operation, + 8..9 */
    assert_int_equal(op_of(p, at), HDI_OP_ADD);
    assert_int_equal(op_of(p, operand(p, at, 0)), HDI_OP_SCATTER_ADD);
    hdi_program_free(p);
}

static hd_status double_it(void *user, hd_program *p, const hd_value *inputs, hd_value result, hd_value gradient, hd_value *out_gradients) {
    (void)inputs;
    (void)result;
    out_gradients[0] = hd_scale(p, gradient, 2, 0);
    out_gradients[1] = gradient; /* not asked for: it has no float */
    return user ? HD_STATUS_INTERNAL : HD_OK;
}
static const hd_kernel_gradient *any(const hd_gradients_desc *desc, const struct hdi_user_kernel *kernel) {
    (void)kernel;
    return desc->kernels;
}

static void own_kernels(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        hd_program *p = fresh();
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 6)), i = hd_input(p, "i", HD_I32, HD_SHAPE(4, 6)), loss = hd_sum(p, test_dispatch(p, x, i), HD_ALL_AXES);
        const hd_kernel_gradient own = { .build = double_it, .user = fails ? p : NULL };
        const hd_gradients_desc desc = { .kernels = &own, .kernel_count = 1 };
        hd_value dx;
        const hd_status status = hdi_program_gradients(p, loss, &x, 1, &desc, any, &dx);
        assert_int_equal(status, fails ? HD_STATUS_INTERNAL : HD_OK);
        if (!fails) assert_int_equal(op_of(p, dx), HDI_OP_SCALE);
        hdi_program_free(p);
    }
}

static void memory_may_run_out(void **state) {
    (void)state;
    size_t n = 0;
    for (bool done = false; !done;) {
        test_memory memory;
        hd_program *p = hdi_program_new(&test_memory_start(&memory, ++n)->allocator, NULL);
        if (p) {
            const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 6)), w = hd_input(p, "w", HD_F32, HD_SHAPE(6, 6)), n1 = hd_input(p, "n", HD_F32, HD_SHAPE(6));
            hd_value h = x, wanted[] = { x, w, n1 }, out[3];
            for (int i = 0; i < 3; i++) h = hd_silu(p, hd_matmul(p, hd_rms_norm(p, h, n1, 1e-5f), w));
            const hd_status status = gradients(p, hd_sum(p, h, HD_ALL_AXES), wanted, 3, (hd_gradients_desc){ .recompute = 1, .chunk_rows = 3 }, out);
            done = status == HD_OK;
            assert_true(done || (status == HD_STATUS_OUT_OF_HOST_MEMORY && !out[0] && !out[1] && !out[2]));
            hdi_program_free(p);
        }
        assert_int_equal(memory.bytes_alive, 0);
        assert_true(n < 1000);
    }
    print_message("%zu allocations, each failed once\n", n - 1);
}

/* Losses one after the other over the same weights, whose gradients go on: each adds as many operations as the second. */
static double seconds_of_parts(int count) {
    hd_program *p = fresh();
    const hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(8, 8)), bias = hd_input(p, "bias", HD_F32, HD_SHAPE(8));
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 8)), wanted[] = { w, bias };
    hd_value so_far[2] = { 0 }, out[2];
    uint32_t of_second = 0;
    const double began = spent_seconds();
    for (int i = 0; i < count; i++) {
        const uint32_t before = p->node_count;
        const hd_value y = hd_tanh(p, hd_add(p, hd_matmul(p, x, w), bias)), loss = hd_sum(p, hd_mul(p, y, y), HD_ALL_AXES);
        assert_int_equal(gradients(p, loss, wanted, 2, (hd_gradients_desc){ .chunk_rows = 2, .continued = so_far }, out), HD_OK);
        memcpy(so_far, out, sizeof so_far);
        if (i == 1) of_second = p->node_count - before;
        if (i > 1) assert_int_equal(p->node_count - before, of_second);
    }
    const double spent = spent_seconds() - began;
    hdi_program_free(p);
    return spent;
}

static void each_loss_walks_its_own_way(void **state) {
    (void)state;
    assert_grows_with_size(seconds_of_parts, 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals), cmocka_unit_test(none), cmocka_unit_test(order_of_parts), cmocka_unit_test(wide_ones), cmocka_unit_test(computed_again),
        cmocka_unit_test(chunks), cmocka_unit_test(from_a_tensor), cmocka_unit_test(own_kernels), cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(each_loss_walks_its_own_way) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
