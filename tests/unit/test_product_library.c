/* test_product_library.c: what a library of matrix products adds to its result itself, and what is a step behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "kernels/kernel.h"
#include "plan/schedule.h"
#include "program/program.h"

static const hdi_caps caps = {
    .max_bindings = 16, .max_push_bytes = 128, .max_workgroup = 1024, .max_workgroup_x = 1024, .max_groups_x = 65535,
    .max_groups_y = 65535, .max_groups_z = 65535, .shared_bytes = 49152, .subgroup = 32, .subgroup_arithmetic = 1,
    .subgroup_control = 1, .f16_storage = 1, .f16_arithmetic = 1, .matrix_f16 = 1, .memory_model = 1,
    .compute_units = 132, .product_library = 1, .binding_align = 64,
};

/* Steps of a product by a library and of what the lines add to its result `p`, up to `y`. */
static uint32_t steps_of(const char *lines) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\na = input bf16[64,256] \"a\"\nb = input bf16[256,128] \"b\"\nr = input f32[128] \"r\"\nlong = input f32[192] \"long\"\n"
                        "m = input f32[64,128] \"m\"\nc = input f32[64,1] \"c\"\np = matmul a b result_f32\n%s\noutput y \"y\"\n", lines);
    hdi_schedule *schedule = NULL;
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    if (hdi_program_parse(program, text.bytes, text.count, NULL, NULL, &error) ||
        hdi_schedule_make(&hdi_default_allocator, program, &caps, &(hdi_plan_options){ .math = HD_MATH_FAST }, &schedule, &error))
        fail_msg("%s: %s", lines, error.text);
    const uint32_t count = schedule->step_count;
    assert_int_equal(schedule->steps[0].kernel.module, HDI_MODULE_MATMUL_LIBRARY);
    hdi_schedule_free(schedule);
    hdi_program_free(program);
    hdi_text_free(&text);
    return count;
}

/* The library adds a matrix, a row, or both; a row where it may begin there. All else is a step behind it. */
static void added_by_library(void **state) {
    (void)state;
    assert_int_equal(steps_of("y = add p m"), 1);
    assert_int_equal(steps_of("y = add r p"), 1);
    assert_int_equal(steps_of("s = add p r\ny = add m s"), 1);
    assert_int_equal(steps_of("s = add p m\ny = add s r"), 1);
    assert_int_equal(steps_of("s = slice long begin=[64] end=[192]\ny = add p s"), 1);
    assert_int_equal(steps_of("s = slice long begin=[63] end=[191]\ny = add p s"), 2); /* begins anywhere */
    assert_int_equal(steps_of("y = add p c"), 2);
    assert_int_equal(steps_of("y = sub p r"), 2);
    assert_int_equal(steps_of("s = add p r\ny = add s r"), 2);
    assert_int_equal(steps_of("s = add p r\ny = relu s"), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(added_by_library) };
    return cmocka_run_group_tests_name("product_library", tests, NULL, NULL);
}
