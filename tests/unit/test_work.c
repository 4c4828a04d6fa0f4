/* test_work.c: what the planner's steps do for each node: what is fused is one kernel, views take nothing, a joined
 * value takes
 * all of its copies, and what a device does not compute is marked. */
#include "work_cases.h"
#include "plan/choose.h"

enum { MOST = 64 };

static const hdi_caps native = {
    .name = "processor", .native_kernels = 1, .memory_bytes = 1u << 30, .host_bytes = 1u << 30, .max_allocation_bytes =
        1u << 30,
    .max_binding_bytes = 1u << 30, .binding_align = 64, .max_bindings = 16, .max_push_bytes = HDI_MAX_PUSH_WORDS * 4,
    .max_workgroup = UINT32_MAX, .max_workgroup_x = UINT32_MAX, .max_groups_x = UINT32_MAX, .max_groups_y = UINT32_MAX,
    .max_groups_z = UINT32_MAX, .f16_storage = 1, .u8_storage = 1, .dispatch_base = 1, .compute_units = 2, .threads = 2,
        .simd_bytes = 64,
};

static hd_status work_on(const hd_program *p, const hdi_caps *caps, bool fusion, hdi_schedule_work *works) {
    assert_true(p->node_count <= MOST);
    const hdi_plan_wish wish = { .program = p, .caps = caps, .options =
        { .math = HD_MATH_EXACT, .no_fusion = !fusion } };
    return hdi_schedule_work_of(&wish, 0, works, NULL);
}

static counted sum(const hd_program *p, const hdi_schedule_work *works) {
    counted all = { 0 };
    for (uint32_t i = 0; i < p->node_count; i++) {
        all.flops += works[i].work.flops;
        all.bytes += works[i].work.bytes;
        all.launches += works[i].work.kernels;
        if (works[i].kernel != i + 1)
            assert_int_equal(works[i].work.kernels, 0); /* all of a kernel's work is at its last node */
        if (works[i].kernel) assert_int_equal(works[works[i].kernel - 1].kernel, works[i].kernel);
    }
    return all;
}

/* `moved`: elements of views that are made dense, which the kernels count as work and nodes do not. */
static const struct { uint32_t launches, moved; const char *lines;
} fused[] = {
    { 2, 0,
      "a = input f32[8,32] \"a\"\nb = input f32[8,32] \"b\"\nc = add a b\nd = relu c\ny = mul d d\noutput y \"y\"\n" },
    { 1, 0,
      "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\nbias = input f32[32] \"bias\"\nm = matmul a b\nn = add "
      "m bias\n"
      "y = gelu n\noutput y \"y\"\n" },
    { 1, 0,
      "a = input f32[16,64] \"a\"\nb = input f32[64,32] \"b\"\nx = input f32[16,32] \"x\"\nm = matmul a b\ns = silu "
      "x\ny = mul s m\n"
      "output y \"y\"\n" },
    { 2, 0, "a = input f32[16,64] \"a\"\ns = silu a\ng = gelu s\ny = add g a\noutput y \"y\"\n" },
    { 2, 0, "a = input f32[16,64] \"a\"\ns = neg a\ny = abs s\noutput s \"s\"\noutput y \"y\"\n" },
    { 1, 0,
      "a = input f32[16,64] \"a\"\ns = neg a\nt = reshape s shape=[64,16]\nu = permute s axes=[1,0]\ny = sum a "
      "axis=1\noutput y \"y\"\n" },
    { 2, 1024, "a = input f32[16,64] \"a\"\nt = permute a axes=[1,0]\ny = softmax t axis=1\noutput y \"y\"\n" },
    { 1, 0, "a = input f32[16,64] \"a\"\nt = permute a axes=[1,0]\ny = neg t\noutput y \"y\"\n" },
};

static void what_is_fused_is_one_kernel(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(fused); i++) {
        hd_program *p = parse(fused[i].lines);
        hdi_schedule_work works[MOST];
        assert_int_equal(work_on(p, &gpu, true, works), HD_OK);
        const counted ours = sum(p, works), theirs = planned(p, true);
        if (ours.launches != fused[i].launches || theirs.launches != ours.launches || ours.bytes != theirs.bytes ||
            ours.flops + fused[i].moved < theirs.flops)
            fail_msg("%s: %llu launches, %llu bytes, %llu flops here; %llu, %llu and %llu in the plan", fused[i].lines,
                     (unsigned long long)ours.launches, (unsigned long long)ours.bytes, (unsigned long long)ours.flops,
                     (unsigned long long)theirs.launches, (unsigned long long)theirs.bytes,
                         (unsigned long long)theirs.flops);
        hdi_program_free(p);
    }
}

static void views_take_nothing(void **state) {
    (void)state;
    hd_program *p = parse("a = input f32[16,64] \"a\"\nt = permute a axes=[1,0]\nr = reshape a shape=[64,16]\ny = add "
                          "t r\noutput y \"y\"\n");
    hdi_schedule_work works[MOST];
    assert_int_equal(work_on(p, &gpu, true, works), HD_OK);
    for (uint32_t i = 0; i < 3; i++) assert_true(works[i].kernel == 0 && works[i].work.kernels == 0 &&
        works[i].work.kind == HDI_KIND_NONE);
    assert_true(works[3].kernel == 4 && works[3].work.kernels == 1 && works[3].work.kind == HDI_KIND_ELEMENTWISE);
    assert_int_equal(works[3].work.flops, 16 * 64);
    hdi_program_free(p);
}

/* Three parts are copied into one value. */
static void a_joined_value_takes_all_its_copies(void **state) {
    (void)state;
    hd_program *p = parse("a = input f32[4,8] \"a\"\nb = input f32[5,8] \"b\"\nj = concat a b a axis=0\ny = softmax j "
                          "axis=1\noutput y \"y\"\n");
    hdi_schedule_work works[MOST];
    assert_int_equal(work_on(p, &gpu, true, works), HD_OK);
    assert_true(works[2].kernel == 3 && works[2].work.kernels == 3 && works[2].work.kind == HDI_KIND_COPY);
    assert_int_equal(works[2].work.bytes, 2 * 13 * 8 * sizeof(float));
    assert_true(works[3].kernel == 4 && works[3].work.kernels == 1 && works[3].work.kind == HDI_KIND_SOFTMAX);
    hdi_program_free(p);
}

static void what_a_device_refuses_is_marked(void **state) {
    (void)state;
    hdi_schedule_work works[MOST];
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    const hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(4, 6)), b = hd_input(p, "b", HD_F32, HD_SHAPE(4, 6));
    const hd_value made = test_dispatch(p, hd_exp(p, a), b), after = hd_softmax(p, made, -1);
    hd_output(p, "y", after);
    hdi_caps few = native;
    few.max_bindings = 2;
    assert_int_equal(work_on(p, &few, true, works), HD_OK); /* the kernel has three */
    for (hd_value v = 1; v <= p->node_count; v++) assert_int_equal(works[v - 1].cannot, v == made);
    hdi_program_free(p);
    p = parse("a = input f32[16,64] \"a\"\ns = softmax a axis=1\ny = neg s\noutput y \"y\"\n");
    hdi_caps wrong = gpu;
    wrong.wrong[HDI_MODULE_SOFTMAX][1] = UINT64_MAX;
    assert_int_equal(work_on(p, &wrong, true, works), HD_OK);
    assert_true(!works[0].cannot && works[1].cannot && !works[2].cannot);
    hdi_program_free(p);
}

static void without_memory(void **state) {
    (void)state;
    for (size_t fail_at = 1; fail_at < 1000; fail_at++) {
        test_memory memory;
        hdi_schedule_work works[MOST];
        hd_program *p = hdi_program_new(&test_memory_start(&memory, 0)->allocator, NULL);
        hd_output(p, "y", hd_relu(p, hd_softmax(p, hd_input(p, "x", HD_F32, HD_SHAPE(4)), -1)));
        const size_t before = memory.bytes_alive;
        memory.fail_at = memory.calls + fail_at;
        const hd_status status = work_on(p, &gpu, true, works);
        memory.fail_at = 0;
        assert_int_equal(memory.bytes_alive, before);
        hdi_program_free(p);
        if (!status) return;
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
    }
    fail_msg("it never had memory enough");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_fused_is_one_kernel), cmocka_unit_test(views_take_nothing),
        cmocka_unit_test(a_joined_value_takes_all_its_copies), cmocka_unit_test(what_a_device_refuses_is_marked),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
