/* test_route_work.c: the work that routing counts is the work that the planner's launches count, for every operation, alone
 * and fused; and it goes to the right family. */
#include "plan/plan.h"
#include "program_cases.h"
#include "route/route.h"

typedef struct counted {
    uint64_t flops, bytes, launches;
} counted;

static const hdi_caps gpu = {
    .name = "invented", .memory_bytes = 1u << 30, .max_allocation_bytes = 1u << 30, .max_binding_bytes = 1u << 30, .binding_align = 256, .max_bindings = 16, .max_push_bytes = 256,
    .max_workgroup = 1024, .max_workgroup_x = 1024, .max_groups_x = 65535, .max_groups_y = 65535, .max_groups_z = 65535, .shared_bytes = 32768, .subgroup = 32,
    .subgroup_arithmetic = 1, .subgroup_shuffle = 1, .f16_storage = 1, .u8_storage = 1, .dispatch_base = 1, .compute_units = 16,
};

static hd_program *parse(const char *lines) {
    hd_error error = { 0 };
    hdi_text text = { .allocator = &hdi_default_allocator };
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    hdi_text_add(&text, "heddle 1\n%s", lines);
    if (hdi_program_parse(p, text.bytes, text.count, NULL, NULL, &error)) fail_msg("%s\n%s", error.text, lines);
    hdi_text_free(&text);
    return p;
}

/* Of the kernels; what is copied because an input is an output too is no operation's work. */
static counted planned(const hd_program *p, bool fusion) {
    hd_error error = { 0 };
    hdi_plan *plan;
    counted all = { 0 };
    const hdi_plan_options options = { .math = HD_MATH_EXACT, .no_fusion = !fusion };
    if (hdi_plan_make(&hdi_default_allocator, p, &gpu, &options, &plan, &error)) fail_msg("%s", error.text);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].kind == HDI_CMD_COPY && p->nodes[p->node_count - 1].op != HDI_OP_COPY) continue;
        all.flops += plan->steps[i].flops;
        all.bytes += plan->steps[i].bytes;
        all.launches += plan->steps[i].kind == HDI_CMD_DISPATCH;
    }
    hdi_plan_free(plan);
    return all;
}

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

static const struct { hdi_family family; const char *lines; } cases[] = {
    { HDI_FAMILY_ELEMENTWISE, "a = input f32[8,32] \"a\"\nb = input f32[32] \"b\"\ny = add a b\noutput y \"y\"\n" },
    { HDI_FAMILY_FUNCTION, "a = input f16[8,32] \"a\"\ny = gelu a\noutput y \"y\"\n" },
    { HDI_FAMILY_ELEMENTWISE, "a = input f32[8,32] \"a\"\ny = cast a dtype=f16\noutput y \"y\"\n" },
    { HDI_FAMILY_ELEMENTWISE, "a = input f32[8,32] \"a\"\ny = mul a a\noutput y \"y\"\n" },
    { HDI_FAMILY_MATMUL, "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_FAMILY_MATMUL, "a = input f32[3,16,64] \"a\"\nb = input f16[3,64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_FAMILY_MATMUL, "a = input f32[3,8,64] \"a\"\nb = input f16[64,32] \"b\"\ny = matmul a b\noutput y \"y\"\n" },
    { HDI_FAMILY_MATVEC, "a = input f32[1,64] \"a\"\nb = input q4_0[32,64] \"b\"\ny = matmul a b transpose_b\noutput y \"y\"\n" },
    { HDI_FAMILY_REDUCE, "a = input f32[8,32] \"a\"\ny = sum a axis=1\noutput y \"y\"\n" },
    { HDI_FAMILY_REDUCE, "a = input f32[8,32] \"a\"\nb = input f32[8,32] \"b\"\ny = dot a b axis=1\noutput y \"y\"\n" },
    { HDI_FAMILY_REDUCE, "a = input f32[8,32] \"a\"\ny = argmax a axis=1\noutput y \"y\"\n" },
    { HDI_FAMILY_SOFTMAX, "a = input f32[8,32] \"a\"\ny = softmax a axis=1\noutput y \"y\"\n" },
    { HDI_FAMILY_SOFTMAX, "a = input f32[8,32] \"a\"\nt = input i32[8] \"t\"\ny = cross_entropy a t\noutput y \"y\"\n" },
    { HDI_FAMILY_NORM, "a = input f32[8,32] \"a\"\nw = input f32[32] \"w\"\ny = rms_norm a w eps=1e-06\noutput y \"y\"\n" },
    { HDI_FAMILY_NORM, "a = input f32[8,32] \"a\"\nw = input f32[32] \"w\"\nb = input f32[32] \"b\"\ny = layer_norm a w b eps=1e-06\noutput y \"y\"\n" },
    { HDI_FAMILY_REDUCE, "a = input f32[8,32] \"a\"\ny = top_k a k=4\noutput y \"y\"\n" },
    { HDI_FAMILY_TABLE, "a = input f32[8,32] \"a\"\ni = input i32[8,4] \"i\"\ny = take_along a i\noutput y \"y\"\n" },
    { HDI_FAMILY_TABLE, "t = input f32[100,32] \"t\"\ni = input i32[5] \"i\"\ny = gather t i\noutput y \"y\"\n" },
    { HDI_FAMILY_TABLE, "t = input q8_0[100,32] \"t\"\ni = input i32[5] \"i\"\ny = gather t i\noutput y \"y\"\n" },
    { HDI_FAMILY_TABLE, "s = state f16[100,32] \"s\"\nr = input f32[4,32] \"r\"\np = input i32[1] \"p\"\ny = write_rows s r p\noutput r \"y\"\n" },
    { HDI_FAMILY_ATTENTION, "q = input f32[4,8,64] \"q\"\nk = input f32[16,2,64] \"k\"\nv = input f32[16,2,64] \"v\"\np = input i32[1] \"p\"\ny = attention q k v p\noutput y \"y\"\n" },
    { HDI_FAMILY_COPY, "a = input f32[8,32] \"a\"\ny = copy a\noutput y \"y\"\n" },
};

static void alone(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        hd_program *p = parse(cases[i].lines);
        hdi_work work[64];
        const counted ours = routed(p, true, work), theirs = planned(p, true);
        if (ours.flops != theirs.flops || ours.bytes != theirs.bytes || ours.launches != 1 || work[p->node_count - 1].family != cases[i].family)
            fail_msg("%s: %llu flops, %llu bytes here, %llu and %llu in the plan, family %s", cases[i].lines, (unsigned long long)ours.flops, (unsigned long long)ours.bytes,
                     (unsigned long long)theirs.flops, (unsigned long long)theirs.bytes, hdi_family_name(work[p->node_count - 1].family));
        hdi_program_free(p);
    }
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

/* Shapes of which no product fits into 64 bits count as the most that fits. */
static void huge(void **state) {
    (void)state;
    hd_program *p = parse("q = input f32[137438953472,1,1] \"q\"\nk = input f32[137438953472,1,1] \"k\"\ny = attention q k k\noutput y \"y\"\n");
    hdi_work work[64];
    assert_true(routed(p, true, work).flops == UINT64_MAX);
    hdi_program_free(p);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(alone), cmocka_unit_test(together), cmocka_unit_test(huge), cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
