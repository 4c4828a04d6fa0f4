/* test_borrowed.c: a file's mapping as a buffer: a device that can reads it where it lies, with no byte moved, and says so where it
 * cannot; then the bytes are written, to the same result. */
#define _DEFAULT_SOURCE
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { PAGE = 4096, BYTES = 5 * PAGE + 100, AT = 256, COUNT = 4000 }; /* the numbers lie across pages, within the file */

/* A mapped file: numbers from byte AT on. */
static float *map_file(void) {
    char path[] = "/tmp/heddle-borrowed-XXXXXX";
    static char bytes[BYTES];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    for (int i = 0; i < COUNT; i++) memcpy(bytes + AT + 4 * i, &(float){ (float)i }, 4);
    assert_int_equal(write(file, bytes, BYTES), BYTES);
    char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    assert_true(map != MAP_FAILED);
    return (float *)(void *)(map + AT);
}

static void is_tripled(hd_context *context, hd_plan *plan, const float *x) {
    static float y[COUNT];
    if (hd_plan_run(plan, NULL) || hd_plan_read(plan, "y", y, sizeof y)) fail_msg("%s", hd_context_error(context));
    for (int i = 0; i < COUNT; i++)
        if (y[i] != 3 * x[i]) fail_msg("element %d is %g, not %g", i, (double)y[i], 3 * (double)x[i]);
}

/* `lends`: the device is known to take memory in place. */
static void lend(const char *id, bool lends) {
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    hd_buffer *buffer;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) {
        print_message("%s is not here\n", id);
        hd_context_destroy(context);
        return;
    }
    float *const x = map_file();
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_scale(p, hd_input(p, "x", HD_F32, HD_SHAPE(COUNT)), 3, 0));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    hd_buffer_desc desc = { .bytes = 4 * COUNT, .memory = x };
    const hd_status status = hd_buffer_create(device, &desc, &buffer);
    if (status) {
        assert_int_equal(status, HD_STATUS_UNSUPPORTED);
        const char *told = hd_context_error(context);
        if (lends || !strstr(told, "in place; write the bytes into a buffer")) fail_msg("%s", told);
        desc.memory = NULL;
        assert_int_equal(hd_buffer_create(device, &desc, &buffer), HD_OK);
        assert_int_equal(hd_buffer_write(buffer, 0, x, 4 * COUNT), HD_OK);
    }
    hd_device_stats before, after;
    assert_int_equal(hd_device_get_stats(device, &before), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 0), HD_OK);
    is_tripled(context, plan, x);
    assert_int_equal(hd_device_get_stats(device, &after), HD_OK);
    assert_true(after.upload_bytes - before.upload_bytes < 4 * COUNT);
    for (int i = 0; i < COUNT && !status; i++) x[i] += 1; /* what changes there is what the device sees */
    is_tripled(context, plan, x);
    print_message("%s: %s\n", id, status ? "the bytes were written" : "in place");
    hd_context_destroy(context);
    munmap((char *)x - AT, BYTES);
}

static void a_mapping_is_a_buffer(void **state) {
    (void)state;
    lend("cpu", true);
    lend("vulkan", true); /* lavapipe; others may refuse a file's pages */
    lend("opencl", false); /* PoCL takes it */
    lend("cuda", false);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_mapping_is_a_buffer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
