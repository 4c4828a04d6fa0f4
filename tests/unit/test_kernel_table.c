/* test_kernel_table.c: kernels that a caller gives: none of the name, one without arguments, one with other arguments, and two of
 * one name are errors of their own, which say what there is. */
#include "unit/spirv_fixtures.h"
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* A module whose entry point uses nothing: #version 450, layout(local_size_x = 64) in; void main() { } */
static const uint32_t idle[] = {
    0x07230203, 0x00010000, 0x000d000b, 0x0000000b, 0x00000000, 0x00020011, 0x00000001, 0x0006000b, 0x00000001, 0x4c534c47, 0x6474732e,
    0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001, 0x0005000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x00060010,
    0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000a, 0x0000000b, 0x00000019, 0x00020013, 0x00000002,
    0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x00000007, 0x00000006, 0x00000003,
    0x0004002b, 0x00000006, 0x00000008, 0x00000040, 0x0004002b, 0x00000006, 0x00000009, 0x00000001, 0x0006002c, 0x00000007, 0x0000000a,
    0x00000008, 0x00000009, 0x00000009, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x000100fd,
    0x00010038,
};
enum { ENTRY_AT = 16, ENTRY_WORDS = 5 };

static hd_context *context;

static int make(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "" }, &context) ? -1 : 0;
}
static int end(void **state) {
    (void)state;
    const uint64_t live = hd_context_live_objects(context);
    hd_context_destroy(context);
    return live == 0 ? 0 : -1;
}

static void says(const char *wanted) {
    const char *text = hd_context_error(context);
    if (!strstr(text, wanted)) fail_msg("\"%s\" does not say \"%s\"", text, wanted);
}

static hd_status create(const uint32_t *words, size_t bytes, const char *entry, hd_kernel **out_kernel) {
    return hd_kernel_create(context, &(hd_kernel_desc){ .spirv = words, .spirv_bytes = bytes, .entry = entry }, out_kernel);
}

static void none_of_the_name(void **state) {
    (void)state;
    hd_kernel *kernel = NULL;
    assert_int_equal(create(fixture_add, sizeof fixture_add, "mian", &kernel), HD_STATUS_KERNEL_NOT_FOUND);
    assert_null(kernel);
    says("no entry point \"mian\"; it has 1, the first is \"main\"");
}

static void two_of_one_name(void **state) {
    (void)state;
    uint32_t words[sizeof idle / 4 + ENTRY_WORDS];
    hd_kernel *kernel = NULL;
    memcpy(words, idle, sizeof idle);
    memmove(words + ENTRY_AT + ENTRY_WORDS, idle + ENTRY_AT, sizeof idle - ENTRY_AT * 4);
    assert_int_equal(create(words, sizeof words, NULL, &kernel), HD_STATUS_MODULE);
    assert_null(kernel);
    says("there are two entry points \"main\"");
}

/* A launch with so many inputs, and an output unless `shape` has rank 0. */
static hd_status launch(hd_kernel *kernel, uint32_t inputs, uint32_t push_bytes) {
    static const uint32_t push[2] = { 4, 0 };
    hd_value x[4];
    hd_program *p = hd_program_create(context);
    for (uint32_t i = 0; i < inputs; i++) {
        const char name[2] = { (char)('a' + i), 0 };
        x[i] = hd_input(p, name, HD_F32, HD_SHAPE(4));
    }
    const hd_value y = hd_dispatch(p, kernel, &(hd_dispatch_desc){ .inputs = x, .input_count = inputs, .out_dtype = HD_F32,
                                                                   .out_shape = HD_SHAPE(4), .push = push, .push_bytes = push_bytes,
                                                                   .groups = { 1, 1, 1 } });
    if (y) hd_output(p, "y", y);
    const hd_status status = hd_program_check(p);
    assert_true((y == 0) == (status != HD_OK));
    hd_program_destroy(p);
    return status;
}

static void without_arguments(void **state) {
    (void)state;
    hd_kernel *kernel;
    assert_int_equal(create(idle, sizeof idle, NULL, &kernel), HD_OK);
    assert_int_equal(hd_kernel_get_info(kernel)->binding_count, 0);
    assert_int_equal(hd_kernel_get_info(kernel)->push_bytes, 0);
    assert_int_equal(launch(kernel, 0, 0), HD_STATUS_ARGUMENT_COUNT);
    says("0 b");
    assert_int_equal(launch(kernel, 2, 0), HD_STATUS_ARGUMENT_COUNT);
    says("0 b");
    hd_kernel_destroy(kernel);
}

static void with_other_arguments(void **state) {
    (void)state;
    hd_kernel *kernel;
    assert_int_equal(create(fixture_add, sizeof fixture_add, NULL, &kernel), HD_OK);
    assert_int_equal(launch(kernel, 1, 8), HD_STATUS_ARGUMENT_COUNT);
    says("3 b");
    assert_int_equal(launch(kernel, 3, 8), HD_STATUS_ARGUMENT_COUNT);
    says("3 b");
    assert_int_equal(launch(kernel, 2, 4), HD_STATUS_ARGUMENT_COUNT);
    says("8");
    assert_int_equal(launch(kernel, 2, 8), HD_OK);
    hd_kernel_destroy(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(none_of_the_name), cmocka_unit_test(two_of_one_name),
                                        cmocka_unit_test(without_arguments), cmocka_unit_test(with_other_arguments) };
    return cmocka_run_group_tests(tests, make, end);
}
