/* test_plan_codes.c: which rows one product leaves for the next in 8 bits: those that it alone reads, where both are made by kernels of
 * few rows in 8 bits and a workgroup has whole runs of columns. */
#include "unit/schedules.h"
#include <stdio.h>

typedef struct test {
    const char *name, *first, *second, *rest; /* types of weights; what else there is */
    uint32_t    rows, between;                /* the length of the rows between the products */
    uint32_t    subgroup;
    uint64_t    max_binding_bytes;
    bool        unfused, coded;
} test;

static const test tests[] = {
    { "a pair", "q4_0", "q4_0", "", 1, 9728, 32, 1 << 30, false, true },
    { "eight rows", "q8_0", "q6_k", "", 8, 2560, 32, 1 << 30, false, true },
    { "subgroups of 64", "q4_k", "q8_0", "", 3, 4096, 64, 1 << 30, false, true },
    { "they are an output", "q4_0", "q4_0", "output v9 \"between\"\n", 1, 9728, 32, 1 << 30, false, false },
    { "somebody else reads them", "q4_0", "q4_0", "v11 = neg v9\noutput v11 \"z\"\n", 1, 9728, 32, 1 << 30, false, false },
    { "workgroups of half a run", "q4_0", "q4_0", "", 1, 1024, 32, 1 << 30, false, false },
    { "made from f16", "f16", "q4_0", "", 1, 9728, 32, 1 << 30, false, false },
    { "read by f16", "q4_0", "f16", "", 1, 9728, 32, 1 << 30, false, false },
    { "many rows", "q4_0", "q4_0", "", 9, 9728, 32, 1 << 30, false, false },
    { "short subgroups", "q4_0", "q4_0", "", 3, 9728, 8, 1 << 30, false, false },
    { "weights that no binding sees whole", "q4_0", "q4_0", "", 1, 9728, 32, 1 << 20, false, false },
    { "nothing is joined", "q4_0", "q4_0", "", 1, 9728, 32, 1 << 30, true, false },
};

static hdi_schedule *schedule_of(const test *t, hd_math math) {
    hdi_caps caps = invented_caps();
    caps.max_binding_bytes = t->max_binding_bytes;
    caps.max_bindings = 16;
    caps.shared_bytes = 49152;
    caps.subgroup = t->subgroup;
    caps.subgroup_arithmetic = caps.subgroup_shuffle = caps.subgroup_control = caps.integer_dot = 1;
    caps.compute_units = 32;
    char text[1024];
    const int length = snprintf(text, sizeof text,
        "heddle 1\nv1 = input f32[%u,256] \"x\"\nv2 = input %s[%u,256] \"gate\"\nv3 = input %s[%u,256] \"up\"\n"
        "v4 = input %s[512,%u] \"down\"\nv5 = matmul v1 v2 transpose_b\nv6 = silu v5\nv7 = matmul v1 v3 transpose_b\n"
        "v9 = mul v6 v7\nv10 = matmul v9 v4 transpose_b\noutput v10 \"y\"\n%s",
        t->rows, t->first, t->between, t->first, t->between, t->second, t->between, t->rest);
    const hdi_plan_options options = { .math = math, .no_fusion = t->unfused };
    return schedule_of_text(text, (size_t)length, &caps, &options);
}

static uint32_t count_of(const hdi_schedule *schedule, uint32_t layout) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const hdi_schedule_step *step = &schedule->steps[i];
        count += step->kind == HDI_CMD_DISPATCH && step->kernel.module == HDI_MODULE_MATVEC_DOT &&
                 (step->kernel.spec[HDI_MM_LAYOUT] & layout) != 0;
    }
    return count;
}

static void rows_between_products(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(tests); i++)
        for (hd_math math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            hdi_schedule *schedule = schedule_of(&tests[i], math);
            const uint32_t stored = count_of(schedule, HDI_MM_C_CODED), read = count_of(schedule, HDI_MM_A_CODED);
            if (stored != tests[i].coded || read != tests[i].coded)
                fail_msg("%s, math %d: %u products store codes, %u read them", tests[i].name, (int)math, (unsigned)stored, (unsigned)read);
            hdi_schedule_free(schedule);
        }
}

int main(void) {
    const struct CMUnitTest all[] = { cmocka_unit_test(rows_between_products) };
    return cmocka_run_group_tests(all, NULL, NULL);
}
