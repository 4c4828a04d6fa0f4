/* test_program_build.c: growth of a program: names, ids, sticky failures, ports, states, limits, lack of memory. */
#include "spent.h"
#include "unit/program_cases.h"
#include <stdio.h>

static hd_program *fresh(void) { return hdi_program_new(&hdi_default_allocator, NULL); }

/* Checks that the program failed as said, and ends it. */
static void failed(hd_program *p, hd_status status, const char *op, const char *text) {
    hd_error error = { 0 };
    assert_int_equal(hdi_program_check(p, &error), status);
    assert_string_equal(error.op, op);
    assert_string_equal(error.text, text);
    hdi_program_free(p);
}

static void failures_stick(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(3, 4)), b = hd_input(p, "b", HD_F32, HD_SHAPE(5, 6));
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    hd_value c = hd_matmul(p, a, b);
    assert_int_equal(c, 0);
    assert_int_equal(hd_relu(p, c), 0);
    assert_int_equal(hd_add(p, a, 99), 0);
    hd_output(p, "c", c);
    assert_int_equal(p->node_count, 2);
    failed(p, HD_STATUS_SHAPE, "matmul", "operation 3: matmul: inner lengths differ: [3,4] x [5,6]");
}

static void unknown_values(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(3));
    assert_int_equal(hd_add(p, a, 2), 0);
    failed(p, HD_STATUS_UNKNOWN_VALUE, "add", "operation 2: add: operand 2 is value 2, the program has 1 to 1");
    p = fresh();
    assert_int_equal(hd_neg(p, 0), 0);
    failed(p, HD_STATUS_UNKNOWN_VALUE, "neg", "operation 1: neg: operand 1 is value 0, the program has 1 to 0");
    p = fresh();
    hd_output(p, "y", 7);
    failed(p, HD_STATUS_UNKNOWN_VALUE, "output", "operation 1: output: \"y\" is value 7, the program has 1 to 0");
    assert_int_equal(hd_relu(NULL, 1), 0);
    hd_output(NULL, "y", 1);
    assert_int_equal(hd_input(NULL, "x", HD_F32, HD_SHAPE(1)), 0);
    assert_int_equal(hd_permute(NULL, 1, NULL, 2), 0);
    assert_int_equal(hd_transpose(NULL, 1), 0);
    assert_int_equal(hd_sum(NULL, 1, HD_ALL_AXES), 0);
    assert_int_equal(hd_rope(NULL, 1, 1, NULL), 0);
}

static void outputs_are_needed(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_input(p, "a", HD_F32, HD_SHAPE(3));
    failed(p, HD_STATUS_WRONG_STATE, "", "the program has no output: name one with hd_output");
    p = fresh();
    hd_output(p, "y", hd_input(p, "a", HD_F32, HD_SHAPE(3)));
    assert_int_equal(hdi_program_check(p, NULL), HD_OK);
    hdi_program_free(p);
    p = fresh();
    hd_output(p, "y", hd_input(p, "a", HD_Q8_0, HD_SHAPE(32)));
    failed(p, HD_STATUS_TYPE, "output", "operation 2: output: \"y\" is q8_0: cast it to f32");
}

static void name_fails(const char *name, hd_status status, const char *text) {
    hd_program *p = fresh();
    assert_int_equal(hd_input(p, name, HD_F32, HD_SHAPE(3)), 0);
    failed(p, status, "input", text);
}

static void names_are_checked(void **state) {
    (void)state;
    char name[300];
    static const char *const good[] = { "a", "blk.0.attn_q.weight", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "a\\b", "v1 = #" };
    static const char *const bad[] = { "\"", "a\n", "\x7F", "\x1F", "\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                       "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC2\x80", "\xE2\x82", "\xFF" };
    hd_program *p = fresh();
    for (size_t i = 0; i < HDI_COUNT(good); i++) assert_int_equal(hd_input(p, good[i], HD_F32, HD_SHAPE(3)), i + 1);
    hdi_program_free(p);
    for (size_t i = 0; i < HDI_COUNT(bad); i++) {
        snprintf(name, sizeof name, "operation 1: input: byte %d of the name is a quote, a control character or no UTF-8", i == 1 ? 2 : 1);
        name_fails(bad[i], HD_STATUS_INVALID_ARGUMENT, name);
    }
    name_fails(NULL, HD_STATUS_NULL_POINTER, "operation 1: input: the name is NULL");
    name_fails("", HD_STATUS_INVALID_ARGUMENT, "operation 1: input: the name is empty");
    memset(name, 'n', sizeof name);
    name[256] = 0;
    name_fails(name, HD_STATUS_LIMIT, "operation 1: input: the name has more than 255 bytes");
    name[255] = 0;
    p = fresh();
    assert_int_equal(hd_input(p, name, HD_F32, HD_SHAPE(3)), 1);
    assert_int_equal(hd_state(p, name, HD_F32, HD_SHAPE(3)), 0);
    assert_int_equal(p->error.status, HD_STATUS_NAME_TAKEN);
    hdi_program_free(p);
    p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(3));
    hd_output(p, "y", x);
    hd_output(p, "x", x);
    failed(p, HD_STATUS_NAME_TAKEN, "output", "operation 2: output: the name \"x\" is taken");
    p = fresh();
    hd_output(p, "y", hd_input(p, "x", HD_F32, HD_SHAPE(3)));
    hd_state(p, "y", HD_F32, HD_SHAPE(3));
    failed(p, HD_STATUS_NAME_TAKEN, "state", "operation 2: state: the name \"y\" is taken");
}

static void ports_are_in_order(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(3));
    hd_output(p, "y", x);
    hd_state(p, "s", HD_F16, HD_SHAPE(3, 2));
    static const char *const names[] = { "x", "y", "s" };
    static const hd_port_kind kinds[] = { HD_PORT_INPUT, HD_PORT_OUTPUT, HD_PORT_STATE };
    assert_int_equal(hd_program_port_count(p), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(hd_program_port(p, i).name, names[i]);
        assert_int_equal(hd_program_port(p, i).kind, kinds[i]);
    }
    assert_int_equal(hd_program_port(p, 2).dtype, HD_F16);
    assert_int_equal(hd_program_port(p, 3).kind, HD_PORT_NONE);
    assert_int_equal(hd_program_port_count(NULL), 0);
    assert_int_equal(hd_program_port(NULL, 0).kind, HD_PORT_NONE);
    hd_dtype dtype;
    hd_shape shape;
    assert_int_equal(hd_value_describe(p, 2, &dtype, &shape), HD_OK);
    assert_int_equal(dtype, HD_F16);
    assert_true(hdi_shape_equal(shape, HD_SHAPE(3, 2)));
    assert_int_equal(hd_value_describe(p, 3, &dtype, NULL), HD_STATUS_UNKNOWN_VALUE);
    assert_int_equal(hd_value_describe(p, 0, NULL, NULL), HD_STATUS_UNKNOWN_VALUE);
    assert_int_equal(hd_value_describe(NULL, 1, NULL, NULL), HD_STATUS_NULL_POINTER);
    hdi_program_free(p);
}

static void overwritten_states(void **state) {
    (void)state;
    for (int which = 0; which < 5; which++) {
        hd_program *p = fresh();
        hd_value s = hd_state(p, "s", HD_F32, HD_SHAPE(8, 2)), at = hd_input(p, "at", HD_I32, HD_SHAPE(1));
        hd_value rows = hd_input(p, "rows", HD_F32, HD_SHAPE(3, 2)), before = hd_neg(p, s);
        if (which == 4) hd_output(p, "before", s);
        hd_value next = hd_write_rows(p, s, rows, at);
        if (which == 0) {
            assert_int_equal(next, before + 1);
            assert_int_equal(hd_write_rows(p, next, rows, at), next + 1);
            assert_int_equal(hd_add(p, before, rows), 0); /* [8,2] and [3,2] */
            assert_int_equal(p->error.status, HD_STATUS_SHAPE);
            hdi_program_free(p);
            continue;
        }
        if (which == 1) hd_neg(p, s);
        if (which == 2) hd_write_rows(p, s, rows, at);
        if (which == 3) hd_output(p, "y", s);
        failed(p, HD_STATUS_WRONG_STATE, which == 1 ? "neg" : which == 3 ? "output" : "write_rows",
               which == 1 ? "operation 6: neg: operand 1 is value 1, which write_rows has overwritten: use the result of write_rows" :
               which == 2 ? "operation 6: write_rows: operand 1 is value 1, which write_rows has overwritten: use the result of write_rows" :
               which == 3 ? "operation 6: output: \"y\" is value 1, which write_rows has overwritten" :
               "operation 5: write_rows: value 1 is an output and may not be overwritten: copy it first");
    }
}

static void attributes_are_resolved(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(5, 4, 16)), i = hd_input(p, "i", HD_I32, HD_SHAPE(5));
    const hdi_node *n = hdi_program_node(p, hd_softmax(p, x, -3));
    assert_int_equal(n->attrs.ints[0], 0);
    n = hdi_program_node(p, hd_slice(p, x, (const int64_t[]){ -1, 0, 2 }, (const int64_t[]){ 5, -1, 16 }, 3));
    assert_int_equal(n->attrs.ints[0], 4);
    assert_int_equal(n->attrs.ints[HD_MAX_RANK + 1], 3);
    n = hdi_program_node(p, hd_rope(p, x, i, NULL));
    assert_int_equal(n->attrs.ints[0], 16);
    assert_true(n->attrs.floats[0] == 10000 && n->attrs.floats[1] == 1 && n->attrs.floats[2] == 1);
    n = hdi_program_node(p, hd_attention(p, x, x, x, 0, NULL));
    assert_true(n->attrs.floats[0] == 0.25f);
    assert_int_equal(n->operand_count, 3);
    assert_int_equal(n->operands[3], 0);
    n = hdi_program_node(p, hd_layer_norm(p, x, 0, 0, 0));
    assert_int_equal(n->operand_count, 1);
    assert_int_equal(n->operands[1] + n->operands[2], 0);
    hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(16));
    n = hdi_program_node(p, hd_layer_norm(p, x, 0, w, 0));
    assert_int_equal(n->operand_count, 3);
    assert_int_equal(n->operands[1], 0);
    float factors[2] = { 1, 2 };
    n = hdi_program_node(p, hd_rope(p, x, i, &(hd_rope_desc){ .dims = 4, .factors = factors }));
    factors[0] = factors[1] = 0; /* they were borrowed for the call only */
    assert_true(n->attrs.factor_count == 2 && n->attrs.factors[1] == 2);
    hdi_program_free(p);
}

static void all_axes_compose(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(2, 3)), c = hd_input(p, "c", HD_F32, (hd_shape){ 0 });
    hd_value all[] = { hd_sum(p, x, HD_ALL_AXES), hd_mean(p, c, HD_ALL_AXES), hd_argmax(p, x, HD_ALL_AXES), hd_dot(p, x, x, HD_ALL_AXES) };
    for (size_t i = 0; i < HDI_COUNT(all); i++) {
        hd_shape shape;
        assert_int_equal(hd_value_describe(p, all[i], NULL, &shape), HD_OK);
        assert_int_equal(shape.rank, 0);
        const hdi_node *reduced = hdi_program_node(p, all[i] - 1);
        assert_int_equal(reduced->shape.rank, 1);
        assert_int_equal(reduced->shape.dims[0], 1);
    }
    hd_dot(p, x, c, HD_ALL_AXES);
    failed(p, HD_STATUS_SHAPE, "dot", "operation 16: dot: operand 2 is [], it must be [2,3] to go with [2,3]");
    p = fresh();
    hd_sum(p, hd_input(p, "q", HD_Q8_0, HD_SHAPE(32)), HD_ALL_AXES);
    failed(p, HD_STATUS_TYPE, "sum", "operation 2: sum: operand 1 is q8_0, it must be f32, f16, bf16 or i32");
}

static void limits_hold(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(1)), v = x;
    for (uint32_t i = 1; i < 1u << 20; i++) v = hd_neg(p, v);
    assert_int_equal(v, 1u << 20);
    assert_int_equal(hd_neg(p, x), 0);
    failed(p, HD_STATUS_LIMIT, "neg", "operation 1048577: neg: a program has at most 1048576 operations");
    hd_value many[65];
    for (uint32_t count = 64; count <= 65; count++) {
        p = fresh();
        x = hd_input(p, "x", HD_F32, HD_SHAPE(1));
        for (uint32_t i = 0; i < 65; i++) many[i] = x;
        assert_int_equal(hd_concat(p, many, count, 0), count == 64 ? 2 : 0);
        if (count == 64) hdi_program_free(p);
        else failed(p, HD_STATUS_LIMIT, "concat", "operation 2: concat: 65 operands, at most 64");
    }
}

static void names_take_no_time(void **state) {
    (void)state;
    hd_program *p = fresh();
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(1));
    const double began = spent_seconds();
    for (int i = 0; i < 100000; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        hd_output(p, name, x);
    }
    const double took = spent_seconds() - began;
    print_message("100,000 names: %.0f us\n", took * 1e6);
    assert_int_equal(p->output_count, 100000);
    assert_true(took < 2); /* far above what it takes, far below what searching would */
    hdi_program_free(p);
}

static void memory_may_run_out(void **state) {
    (void)state;
    size_t n = 0;
    for (bool done = false; !done;) {
        test_memory memory;
        hd_program *p = hdi_program_new(&test_memory_start(&memory, ++n)->allocator, NULL);
        if (p) {
            test_every_op(p);
            done = p->error.status == HD_OK;
            assert_true(done || p->error.status == HD_STATUS_OUT_OF_HOST_MEMORY);
            hdi_program_free(p);
        }
        assert_int_equal(memory.bytes_alive, 0);
        assert_true(n < 1000);
    }
    assert_true(n > 10);
    print_message("%zu allocations, each failed once\n", n - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_stick),       cmocka_unit_test(unknown_values),
        cmocka_unit_test(outputs_are_needed),   cmocka_unit_test(names_are_checked),
        cmocka_unit_test(ports_are_in_order),   cmocka_unit_test(overwritten_states),
        cmocka_unit_test(attributes_are_resolved), cmocka_unit_test(all_axes_compose),
        cmocka_unit_test(limits_hold),          cmocka_unit_test(names_take_no_time),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
