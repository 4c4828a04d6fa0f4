/* test_program_work.c: the work of a node is the work that the kernels' launches count, and its kind is the right one;
 * and which operations compute the rows of their result each by itself, from which rows. */
#include "program/work.h"
#include "work_cases.h"
#include <stdio.h>

static const struct { hdi_op_kind kind; const char *lines; } cases[] = {
    { HDI_KIND_ELEMENTWISE, "a = input f32[8,32] \"a\"\nb = input f32[32] \"b\"\ny = add a b\noutput y \"y\"\n" },
    { HDI_KIND_FUNCTION, "a = input f16[8,32] \"a\"\ny = gelu a\noutput y \"y\"\n" },
    { HDI_KIND_ELEMENTWISE, "a = input f32[8,32] \"a\"\ny = cast a dtype=f16\noutput y \"y\"\n" },
    { HDI_KIND_ELEMENTWISE, "a = input f32[8,32] \"a\"\ny = mul a a\noutput y \"y\"\n" },
    { HDI_KIND_MATMUL, "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_KIND_MATMUL, "a = input f32[3,16,64] \"a\"\nb = input f16[3,64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_KIND_MATMUL, "a = input f32[3,8,64] \"a\"\nb = input f16[64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_KIND_MATVEC, "a = input f32[1,64] \"a\"\nb = input q4_0[32,64] \"b\"\ny = matmul a b transpose_b\noutput y \"y\"\n" },
    { HDI_KIND_REDUCE, "a = input f32[8,32] \"a\"\ny = sum a axis=1\noutput y \"y\"\n" },
    { HDI_KIND_REDUCE, "a = input f32[8,32] \"a\"\nb = input f32[8,32] \"b\"\ny = dot a b axis=1\noutput y \"y\"\n" },
    { HDI_KIND_REDUCE, "a = input f32[8,32] \"a\"\ny = argmax a axis=1\noutput y \"y\"\n" },
    { HDI_KIND_SOFTMAX, "a = input f32[8,32] \"a\"\ny = softmax a axis=1\noutput y \"y\"\n" },
    { HDI_KIND_SOFTMAX, "a = input f32[8,32] \"a\"\nt = input i32[8] \"t\"\ny = cross_entropy a t\noutput y \"y\"\n" },
    { HDI_KIND_SOFTMAX, "a = input f32[8,32] \"a\"\nt = input i32[8] \"t\"\nd = input f32[8] \"d\"\ny = cross_entropy_gradient a t d\noutput y \"y\"\n" },
    { HDI_KIND_NORM, "a = input f32[8,32] \"a\"\nd = input f32[8,32] \"d\"\ny = norm_gradient a d eps=1\noutput y \"y\"\n" },
    { HDI_KIND_NORM, "a = input f32[8,32] \"a\"\nw = input f32[32] \"w\"\ny = rms_norm a w eps=1e-06\noutput y \"y\"\n" },
    { HDI_KIND_NORM, "a = input f32[8,32] \"a\"\nw = input f32[32] \"w\"\nb = input f32[32] \"b\"\ny = layer_norm a w b eps=1e-06\noutput y \"y\"\n" },
    { HDI_KIND_REDUCE, "a = input f32[8,32] \"a\"\ny = top_k a k=4\noutput y \"y\"\n" },
    { HDI_KIND_TABLE, "a = input f32[8,32] \"a\"\ni = input i32[8,4] \"i\"\ny = take_along a i\noutput y \"y\"\n" },
    { HDI_KIND_MATVEC, "a = input f32[4,64] \"a\"\nw = input q4_0[6,20,64] \"w\"\ni = input i32[4,2] \"i\"\ny = matmul_experts a w i\noutput y \"y\"\n" },
    { HDI_KIND_TABLE, "t = input f32[100,32] \"t\"\ni = input i32[5] \"i\"\ny = gather t i\noutput y \"y\"\n" },
    { HDI_KIND_TABLE, "t = input q8_0[100,32] \"t\"\ni = input i32[5] \"i\"\ny = gather t i\noutput y \"y\"\n" },
    { HDI_KIND_TABLE, "s = state f16[100,32] \"s\"\nr = input f32[4,32] \"r\"\np = input i32[1] \"p\"\ny = write_rows s r p\noutput r \"y\"\n" },
    { HDI_KIND_ATTENTION, "q = input f32[4,8,64] \"q\"\nk = input f32[16,2,64] \"k\"\nv = input f32[16,2,64] \"v\"\np = input i32[1] \"p\"\ny = attention q k v p\noutput y \"y\"\n" },
    { HDI_KIND_ATTENTION, "q = input f32[4,8,64] \"q\"\nk = input f32[16,2,64] \"k\"\nv = input f32[16,2,64] \"v\"\na = input f32[4,8,64] \"a\"\n"
                          "d = input f32[4,8,64] \"d\"\ny = attention_gradient q k v a d\noutput y \"y\"\n" },
    { HDI_KIND_ATTENTION, "q = input f32[4,8,64] \"q\"\nk = input f32[16,2,64] \"k\"\nv = input f32[16,2,64] \"v\"\na = input f32[4,8,64] \"a\"\n"
                          "d = input f32[4,8,64] \"d\"\ns = input i32[4] \"s\"\ny = attention_gradient q k v a d s\noutput y \"y\"\n" },
    { HDI_KIND_TABLE, "k = input i32[4] \"k\"\ny = random k stream=3 shape=[8,32]\noutput y \"y\"\n" },
    { HDI_KIND_COPY, "a = input f32[8,32] \"a\"\ny = copy a\noutput y \"y\"\n" },
};

static void as_launched(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        hd_program *p = parse(cases[i].lines);
        const hdi_node_work ours = hdi_work_of_node(p, &p->nodes[p->node_count - 1]);
        const counted theirs = planned(p, true);
        if (ours.flops != theirs.flops || ours.bytes != theirs.bytes || ours.kind != cases[i].kind)
            fail_msg("%s: %llu flops, %llu bytes here, %llu and %llu in the plan, kind %s", cases[i].lines,
                     (unsigned long long)ours.flops, (unsigned long long)ours.bytes, (unsigned long long)theirs.flops,
                     (unsigned long long)theirs.bytes, hdi_op_kind_name(ours.kind));
        hdi_program_free(p);
    }
}

/* Shapes of which no product fits into 64 bits count as the most that fits. */
static void huge(void **state) {
    (void)state;
    hd_program *p = parse("q = input f32[137438953472,1,1] \"q\"\nk = input f32[137438953472,1,1] \"k\"\ny = attention q k k\n");
    assert_true(hdi_work_of_node(p, &p->nodes[2]).flops == UINT64_MAX);
    hdi_program_free(p);
}

static const char sources[] =
    "x = input f32[4,6] \"x\"\ni4 = input f32[4] \"i4\"\nb = input f32[6] \"b\"\ni = input i32[4] \"i\"\none = input i32[1] \"one\"\nw = input f32[6,6] \"w\"\n"
    "s = state f32[4,6] \"s\"\nj = input i32[4,2] \"j\"\nh = input f32[4,2,6] \"h\"\nk = input f32[3,4,6] \"k\"\nl = input f32[2,4,2,6] \"l\"\nk2 = input f32[3,2,6] \"k2\"\n";
static const struct { uint64_t rows; const char *line; } by_rows[] = {
    { 0, "input f32[4] \"y\"" }, { 3, "add x x" }, { 1, "add x b" }, { 1, "exp x" }, { 1, "copy x" }, { 1, "cast x dtype=f16" },
    { 1, "sum x axis=1" }, { 0, "sum x axis=0" }, { 0, "softmax x axis=0" }, { 3, "concat x x axis=1" }, { 0, "concat x x axis=0" },
    { 1, "top_k x k=2" }, { 0, "top_k b k=2" }, { 0, "hash x" }, { 1, "rms_norm x b eps=0" }, { 0, "rms_norm b b eps=0" }, { 3, "take_along x j" }, { 5, "matmul_experts x k2 j" },
    { 3, "cross_entropy x i" }, { 7, "cross_entropy_gradient x i i4" }, { 3, "norm_gradient x x b eps=0" }, { 0, "norm_sums x x eps=0" }, { 1, "matmul x w" }, { 0, "matmul x x transpose_a" }, { 1, "matmul k w" }, { 3, "matmul k k transpose_b" },
    { 2, "gather w i" }, { 0, "scatter_add x i x" }, { 0, "scatter_max x i x" }, { 1, "cumsum x axis=1" }, { 0, "cumsum x axis=0 reverse" }, { 0, "write_rows s x one" }, { 0, "random i stream=1 shape=[4,2]" }, { 3, "rope h i" }, { 1, "rope l i" },
    { 0, "attention h h h" }, { 1, "permute h axes=[0,2,1]" }, { 0, "permute x axes=[1,0]" }, { 1, "reshape x shape=[4,3,2]" },
    { 0, "reshape x shape=[3,8]" }, { 1, "slice x begin=[0,1] end=[4,3]" }, { 0, "slice x begin=[1,0] end=[4,6]" },
    { 1, "windows x axis=1 size=2" }, { 0, "windows x axis=0 size=2" }, { 1, "pad x before=[0,1] after=[0,0] value=1" }, { 0, "pad x before=[0,0] after=[1,0] value=1" },
};

static void rows(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(by_rows); i++) {
        char lines[sizeof sources + 100];
        snprintf(lines, sizeof lines, "%sv = %s\n", sources, by_rows[i].line);
        hd_program *p = parse(lines);
        const uint64_t found = hdi_op_row_operands(p, &p->nodes[p->node_count - 1]);
        if (found != by_rows[i].rows) fail_msg("%s: operands %llx", by_rows[i].line, (unsigned long long)found);
        hdi_program_free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_launched), cmocka_unit_test(huge), cmocka_unit_test(rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
