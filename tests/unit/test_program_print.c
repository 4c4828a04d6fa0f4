/* test_program_print.c: the canonical text, its way through the parser and back, and the hash. */
#include "unit/program_cases.h"

static char *text_of(const hd_program *p) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_program_print(p, &text);
    assert_false(text.failed);
    return text.bytes;
}

static hd_program *parsed(const char *text) {
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    hd_error error = { 0 };
    hd_status status = hdi_program_parse(p, text, strlen(text), test_find_kernel, NULL, &error);
    if (status) fail_msg("%s\n%s", error.text, text);
    return p;
}

static void every_op_is_there(void **state) {
    (void)state;
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    test_every_op(p);
    assert_string_equal(p->error.text, "");
    bool seen[HDI_OP_COUNT] = { false };
    for (uint32_t i = 0; i < p->node_count; i++) seen[p->nodes[i].op] = true;
    for (int op = 1; op < HDI_OP_COUNT; op++)
        if (!seen[op]) fail_msg("no %s in the program", hdi_op_get((hdi_op)op).name);
    hdi_program_free(p);
}

static void text_comes_back(void **state) {
    (void)state;
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    test_every_op(p);
    char *first = text_of(p);
    hd_program *again = parsed(first);
    char *second = text_of(again);
    assert_string_equal(first, second);
    assert_true(hdi_program_hash(p) == hdi_program_hash(again));
    assert_int_equal(p->port_count, again->port_count);
    for (uint32_t i = 0; i < p->port_count; i++) {
        assert_int_equal(p->ports[i].kind, again->ports[i].kind);
        assert_string_equal(p->ports[i].name, again->ports[i].name);
        assert_int_equal(p->ports[i].value, again->ports[i].value);
    }
    free(first);
    free(second);
    hdi_program_free(p);
    hdi_program_free(again);
}

static void example_is_canonical(void **state) {
    (void)state;
    static const char text[] =
        "heddle 1\n"
        "v1 = input f32[256,256] \"x\"\n"
        "v2 = input q4_0[256,256] \"w\"\n"
        "v3 = matmul v1 v2 transpose_b\n"
        "v4 = scale v3 factor=0.5 bias=0\n"
        "v5 = layer_norm v4 eps=1e-05\n"
        "v6 = slice v5 begin=[0,1] end=[256,9]\n"
        "v7 = reshape v6 shape=[2048]\n"
        "v8 = sum v7 axis=0\n"
        "v9 = reshape v8 shape=[]\n"
        "v10 = cast v9 dtype=f16\n"
        "output v4 \"y\"\n"
        "v11 = input bf16[] \"z\"\n"
        "output v10 \"sum\"\n"
        "output v11 \"same\"\n";
    hd_program *p = parsed(text);
    char *out = text_of(p);
    assert_string_equal(out, text);
    free(out);
    hdi_program_free(p);
}

static void human_text_becomes_canonical(void **state) {
    (void)state;
    hd_program *p = parsed("# a comment\n\n  heddle   1 # one\r\n\tin0=input f32 [ 2 , 3 ]\"a # b\"#c\r\n\n"
                           "output=softmax in0 axis = -1\noutput output \"o\"");
    char *out = text_of(p);
    assert_string_equal(out, "heddle 1\nv1 = input f32[2,3] \"a # b\"\nv2 = softmax v1 axis=1\noutput v2 \"o\"\n");
    free(out);
    hdi_program_free(p);
    p = parsed("heddle 1\nx = input f32[5,2,4] \"x\"\ni = input i32[5] \"i\"\nr = rope x i\na = attention r r r\n");
    out = text_of(p);
    assert_string_equal(out, "heddle 1\nv1 = input f32[5,2,4] \"x\"\nv2 = input i32[5] \"i\"\n"
                             "v3 = rope v1 v2 theta=1e+04 frequency_scale=1 magnitude=1 dims=4 pairing=halves\n"
                             "v4 = attention v3 v3 v3 scale=0.5\n");
    free(out);
    hdi_program_free(p);
    p = parsed("heddle 1\nx = input f32[5,2,4] \"x\"\ni = input i32[1] \"i\"\npool = state f16[3,64,2,4] \"pool\"\nw = write_rows pool x i i\na = attention x w w - i\n");
    out = text_of(p);
    assert_string_equal(out, "heddle 1\nv1 = input f32[5,2,4] \"x\"\nv2 = input i32[1] \"i\"\nv3 = state f16[3,64,2,4] \"pool\"\n"
                             "v4 = write_rows v3 v1 v2 v2\nv5 = attention v1 v4 v4 - v2 scale=0.5\n");
    free(out);
    hdi_program_free(p);
}

static void hash_is_of_the_structure(void **state) {
    (void)state;
    static const char *const texts[] = {
        "heddle 1\na = input f32[4] \"x\"\nb = scale a\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"x\"\nb = scale a factor=2\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"x\"\nb = scale a bias=-0\noutput b \"y\"",
        "heddle 1\na = input f32[5] \"x\"\nb = scale a\noutput b \"y\"",
        "heddle 1\na = input f16[4] \"x\"\nb = scale a\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"z\"\nb = scale a\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"x\"\nb = scale a\noutput b \"z\"",
        "heddle 1\na = input f32[4] \"x\"\nb = scale a\noutput a \"y\"",
        "heddle 1\na = state f32[4] \"x\"\nb = scale a\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"x\"\nb = neg a\noutput b \"y\"",
        "heddle 1\na = input f32[4] \"x\"\nb = scale a\n",
    };
    uint64_t hashes[HDI_COUNT(texts)];
    for (size_t i = 0; i < HDI_COUNT(texts); i++) {
        hd_program *p = parsed(texts[i]);
        hashes[i] = hdi_program_hash(p);
        for (size_t k = 0; k < i; k++) assert_true(hashes[i] != hashes[k]);
        hdi_program_free(p);
    }
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    hd_output(p, "y", hd_scale(p, hd_input(p, "x", HD_F32, HD_SHAPE(4)), 1, 0));
    assert_true(hdi_program_hash(p) == hashes[0]);
    assert_true(hashes[0] == UINT64_C(0x4fca0833af559af6)); /* the same on every machine */
    hdi_program_free(p);
}

static void print_survives_no_memory(void **state) {
    (void)state;
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    test_every_op(p);
    for (size_t n = 1;; n++) {
        test_memory memory;
        hdi_text text = { .allocator = &test_memory_start(&memory, n)->allocator };
        hdi_program_print(p, &text);
        bool failed = text.failed;
        hdi_text_free(&text);
        assert_int_equal(memory.bytes_alive, 0);
        if (!failed) break;
        assert_true(n < 100);
    }
    hdi_program_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_is_there),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(example_is_canonical),
        cmocka_unit_test(human_text_becomes_canonical),
        cmocka_unit_test(hash_is_of_the_structure),
        cmocka_unit_test(print_survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
