/* test_route_work.c: which nodes routing counts as one kernel, and what is left to do then, is what the planner makes of them. */
#include "work_cases.h"
#include "route/route.h"

static counted routed(const hd_program *p, bool fusion, hdi_work work[64]) {
    counted all = { 0 };
    assert_true(p->node_count <= 64);
    assert_int_equal(hdi_work_of(p, fusion, work, NULL), HD_OK);
    for (uint32_t i = 0; i < p->node_count; i++) {
        all.flops += work[i].flops;
        all.bytes += work[i].bytes;
        all.launches += work[i].launch;
    }
    return all;
}

static const struct { uint32_t launches; const char *lines; } fused[] = {
    { 2, "a = input f32[8,32] \"a\"\nb = input f32[8,32] \"b\"\nc = add a b\nd = relu c\ny = mul d d\noutput y \"y\"\n" },
    { 1, "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\nbias = input f32[32] \"bias\"\nm = matmul a b\nn = add m bias\ny = gelu n\noutput y \"y\"\n" },
    { 1, "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\nx = input f32[16,32] \"x\"\nm = matmul a b\ns = silu x\ny = mul s m\noutput y \"y\"\n" },
    { 2, "a = input f32[16,64] \"a\"\ns = silu a\ng = gelu s\ny = add g a\noutput y \"y\"\n" },
    { 2, "a = input f32[16,64] \"a\"\ns = neg a\ny = abs s\noutput s \"s\"\noutput y \"y\"\n" },
    { 1, "a = input f32[16,64] \"a\"\ns = neg a\nt = reshape s shape=[64,16]\nu = permute s axes=[1,0]\ny = sum a axis=1\noutput y \"y\"\n" },
    { 2, "a = input f32[16,64] \"a\"\nt = permute a axes=[1,0]\ny = softmax t axis=1\noutput y \"y\"\n" },
    { 1, "a = input f32[16,64] \"a\"\nt = permute a axes=[1,0]\ny = neg t\noutput y \"y\"\n" },
};

static void together(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(fused); i++) {
        hd_program *p = parse(fused[i].lines);
        hdi_work work[64];
        const counted ours = routed(p, true, work), theirs = planned(p, true);
        const bool product = strstr(fused[i].lines, "matmul") != NULL; /* whose launch leaves out what its chain does and reads */
        if (ours.launches != fused[i].launches || theirs.launches != ours.launches || ours.bytes < theirs.bytes || ours.flops < theirs.flops ||
            (!product && (ours.bytes != theirs.bytes || ours.flops != theirs.flops)))
            fail_msg("%s: %llu launches, %llu bytes, %llu flops here; %llu, %llu and %llu in the plan", fused[i].lines, (unsigned long long)ours.launches, (unsigned long long)ours.bytes,
                     (unsigned long long)ours.flops, (unsigned long long)theirs.launches, (unsigned long long)theirs.bytes, (unsigned long long)theirs.flops);
        hdi_program_free(p);
    }
}

static void without_memory(void **state) {
    (void)state;
    test_memory memory;
    hd_program *p = hdi_program_new(&test_memory_start(&memory, 0)->allocator, NULL);
    hdi_work work[4];
    hd_output(p, "y", hd_relu(p, hd_input(p, "x", HD_F32, HD_SHAPE(4))));
    memory.fail_at = memory.calls + 1;
    assert_int_equal(hdi_work_of(p, true, work, NULL), HD_STATUS_OUT_OF_HOST_MEMORY);
    memory.fail_at = 0;
    hdi_program_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(together), cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
