/* test_glsl.c: a kernel from GLSL's text, compiled by glslc where that is there: what it computes, what is told of an error
 * in it, and what is told where there is no glslc. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char text[] = "#version 450\n"
                           "layout(local_size_x = 64) in;\n"
                           "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
                           "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
                           "void main() { uint i = gl_GlobalInvocationID.x; if (i < 100u) y[i] = 3 * x[i] + 1; }\n";
static const char wrong[] = "#version 450\nlayout(local_size_x = 64) in;\n\nvoid main() { uint i = nowhere; }\n";

static hd_context *context;

static int make(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "" }, &context) ? -1 : 0;
}
static int end(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}
static void says(const char *wanted) {
    const char *error = hd_context_error(context);
    if (!strstr(error, wanted)) fail_msg("\"%s\" does not say \"%s\"", error, wanted);
}
static hd_status from_text(const char *glsl, hd_kernel **out_kernel) {
    return hd_kernel_create(context, &(hd_kernel_desc){ .glsl = glsl }, out_kernel);
}
static bool has_compiler(void) {
    hd_kernel *kernel;
    const hd_status status = from_text(text, &kernel);
    if (status == HD_STATUS_RUNTIME_NOT_FOUND) print_message("glslc is not here\n");
    return status != HD_STATUS_RUNTIME_NOT_FOUND;
}

static void computes(void **state) {
    (void)state;
    hd_kernel *kernel;
    hd_device *device;
    hd_plan *plan;
    float x[100], y[100];
    if (!has_compiler()) skip();
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    assert_int_equal(from_text(text, &kernel), HD_OK);
    assert_int_equal(hd_kernel_get_info(kernel)->workgroup[0], 64);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
    hd_program *p = hd_program_create(context);
    const hd_value in = hd_input(p, "x", HD_F32, HD_SHAPE(100));
    hd_output(p, "y", hd_dispatch(p, kernel, &(hd_dispatch_desc){ .inputs = &in, .input_count = 1, .out_dtype = HD_F32,
                                                                  .out_shape = HD_SHAPE(100), .groups = { 2, 1, 1 } }));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", x, sizeof x), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    for (int i = 0; i < 100; i++) assert_true(y[i] == 3 * x[i] + 1);
}

static void tells_the_line(void **state) {
    (void)state;
    hd_kernel *kernel;
    if (!has_compiler()) skip();
    assert_int_equal(from_text(wrong, &kernel), HD_STATUS_MODULE);
    says("glslc does not compile the kernel's text: line 4: 'nowhere' : undeclared identifier");
    assert_int_equal(from_text("", &kernel), HD_STATUS_MODULE);
    says("glslc does not compile the kernel's text: ");
    assert_int_equal(hd_kernel_create(context, &(hd_kernel_desc){ .path = "/nowhere/a.comp" }, &kernel), HD_STATUS_MODULE);
    says("glslc does not compile /nowhere/a.comp: cannot open input file");
    assert_int_equal(hd_kernel_create(context, &(hd_kernel_desc){ .path = "-not-an-option.comp" }, &kernel), HD_STATUS_MODULE);
}

static void is_not_there(void **state) {
    (void)state;
    hd_kernel *kernel;
    char before[4096];
    snprintf(before, sizeof before, "%s", getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", "/nowhere", 1);
    const hd_status status = from_text(text, &kernel);
    setenv("PATH", before, 1);
    assert_int_equal(status, HD_STATUS_RUNTIME_NOT_FOUND);
    says("the kernel's text is GLSL, and glslc is not there to compile it; install it (package glslc), or give SPIR-V");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(computes, make, end),
                                        cmocka_unit_test_setup_teardown(tells_the_line, make, end),
                                        cmocka_unit_test_setup_teardown(is_not_there, make, end) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
