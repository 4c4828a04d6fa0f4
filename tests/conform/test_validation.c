/* test_validation.c: whole programs, planned and run on a Vulkan device under the validation layer with synchronization
 * validation: not one message. The programs are those of tests/golden. */
#include "conform/driver_leaks.h"
#include "device/vulkan/vk.h"
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void print_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) printf("[%s] %.600s\n", part, line);
}

static char *read_text(const char *name, size_t *out_bytes) {
    char path[512];
    snprintf(path, sizeof path, HEDDLE_TESTS_DIR "/golden/%s.hd", name);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 65536);
    assert_non_null(file);
    *out_bytes = fread(text, 1, 65535, file);
    fclose(file);
    return text;
}

static void run_program(hd_context *context, hd_device *device, const char *name, const hd_plan_desc *desc) {
    size_t bytes;
    char *text = read_text(name, &bytes);
    hd_program *program;
    hd_plan *plan;
    assert_int_equal(hd_program_parse(context, text, bytes, &program), HD_OK);
    if (hd_plan_create(device, program, desc, &plan)) fail_msg("%s: %s", name, hd_context_error(context));
    for (int run = 0; run < 3; run++) {
        for (size_t i = 0; i < hd_program_port_count(program); i++) {
            hd_port port = hd_program_port(program, i);
            uint64_t count = hd_tensor_bytes(port.dtype, port.shape);
            void *data = calloc(1, count);
            if (port.kind == HD_PORT_INPUT) assert_int_equal(hd_plan_write(plan, port.name, data, count), HD_OK);
            if (port.kind == HD_PORT_OUTPUT && run > 0) assert_int_equal(hd_plan_read(plan, port.name, data, count), HD_OK);
            free(data);
        }
        if (hd_plan_run(plan, NULL)) fail_msg("%s: %s", name, hd_context_error(context));
    }
    hd_plan_destroy(plan);
    hd_program_destroy(program);
    free(text);
}

static void programs_give_no_message(void **state) {
    (void)state;
    static const char *const programs[] = { "ffn", "chain", "attention" };
    hd_context *context;
    hd_device *device;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .validation = 1, .log = print_line }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &device)) {
        print_message("skipped, no Vulkan device with the layer: %s\n", hd_context_error(context));
        hd_context_destroy(context);
        skip();
    }
    for (int i = 0; i < 12; i++) {
        hd_plan_desc desc = { .math = i & 1 ? HD_MATH_EXACT : HD_MATH_FAST, .timestamps = i >> 1 & 1 };
        run_program(context, device, programs[i >> 2], &desc);
    }
    hd_context_destroy(context);
    assert_int_equal(hdvk_validation_messages(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(programs_give_no_message) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
