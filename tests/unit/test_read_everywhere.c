/* test_read_everywhere.c: which inputs the plan says all workgroups of a step read, so that they are not left in the host's memory:
 * rows and weights of products, weights of norms; not what each workgroup reads its own part of, nor what is little altogether. */
#include "plan/schedule.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char text[] = "heddle 1\n"
                           "x = input f32[1,2560] \"x\"\n"
                           "n = input f32[2560] \"norm\"\n"
                           "w = input q4_0[9728,2560] \"w\"\n"
                           "h = rms_norm x n eps=1e-06\n"
                           "a = matmul h w transpose_b\n"
                           "output a \"a\"\n"
                           "r = input f32[1024,1024] \"rows\"\n"
                           "m = input f32[1024] \"row norm\"\n"
                           "b = rms_norm r m eps=1e-06\n"
                           "output b \"b\"\n"
                           "s = input f32[1,64] \"small\"\n"
                           "t = input f32[64,64] \"weights of few\"\n"
                           "c = matmul s t\n"
                           "output c \"c\"\n"
                           "i = input i32[512] \"ids\"\n"
                           "e = input f32[512,64] \"table\"\n"
                           "g = gather e i\n"
                           "output g \"g\"\n";

static bool is_read_everywhere(const hdi_schedule *schedule, const char *name) {
    for (uint32_t i = 0; i < schedule->slot_count; i++)
        if (schedule->slots[i].name && strcmp(schedule->slots[i].name, name) == 0) return schedule->slots[i].read_everywhere;
    fail_msg("no input \"%s\"", name);
    return false;
}

static void shared_inputs_are_known(void **state) {
    (void)state;
    const hdi_caps caps = { .memory_bytes = UINT64_C(1) << 36, .max_workgroup = 256, .max_workgroup_x = 256, .shared_bytes = 32768,
                            .subgroup = 32, .subgroup_arithmetic = 1, .subgroup_shuffle = 1, .subgroup_control = 1, .integer_dot = 1,
                            .compute_units = 64, .max_groups_x = 1 << 30, .max_groups_y = 65535, .max_groups_z = 65535,
                            .max_push_bytes = 256, .max_bindings = 16, .binding_align = 16, .gflops = 1000, .gbytes_s = 100 };
    static const char *const everywhere[] = { "x", "norm", "w", "row norm" }, *const not[] = { "rows", "small", "ids", "table" };
    hd_error error = { 0 };
    hdi_schedule *schedule;
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    if (hdi_program_parse(program, text, strlen(text), NULL, NULL, &error)) fail_msg("%s", error.text);
    if (hdi_schedule_make(&hdi_default_allocator, program, &caps, &(hdi_plan_options){ .math = HD_MATH_FAST }, &schedule, &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < 4; i++) {
        if (!is_read_everywhere(schedule, everywhere[i])) fail_msg("\"%s\" is not known to be read by all", everywhere[i]);
        if (is_read_everywhere(schedule, not[i])) fail_msg("\"%s\" is taken to be read by all", not[i]);
    }
    hdi_schedule_free(schedule);
    hdi_program_free(program);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(shared_inputs_are_known) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
