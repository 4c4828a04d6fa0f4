/* test_faults.c: HEDDLE_FAULT: calls of a device that fail on purpose fail where they should, with the status that was named,
 * and all others work; what is on disk is left alone. */
#include "device/device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static hd_context *context;
static hd_device *device;

static void open_with(const char *faults) {
    const hd_context_desc desc = { .backend = "cpu", .faults = faults, .verify = -1 };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
}

static hd_status make(hd_plan **out_plan, bool failover) {
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_scale(p, hd_softmax(p, hd_input(p, "x", HD_F32, HD_SHAPE(1, 4)), 1), 2, 0));
    const hd_status status = hd_plan_create(device, p, &(hd_plan_desc){ .failover = failover }, out_plan);
    hd_program_destroy(p);
    return status ? status : hd_plan_write(*out_plan, "x", (float[]){ 0, 0, 0, 0 }, 16);
}

static void check_result(hd_plan *plan) {
    float y[4] = { 0 };
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    for (int i = 0; i < 4; i++) assert_true(y[i] > 0.499f && y[i] < 0.501f);
}

static void the_named_submission_fails(void **state) {
    (void)state;
    hd_plan *plan;
    open_with("submit:2:queue");
    assert_string_equal(hd_context_cache_dir(context), ""); /* what fails on purpose teaches nothing */
    assert_int_equal(make(&plan, false), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_QUEUE);
    assert_non_null(strstr(hd_context_error(context), "submit number 2 fails, as HEDDLE_FAULT asks"));
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    check_result(plan);
    hd_context_destroy(context);
}

/* Nobody could wait for the work, or the device is lost meanwhile: what it reads stays until it is done. */
static void work_under_way_keeps_its_commands(void **state) {
    (void)state;
    static const char *const faults[] = { "wait:1+:queue", "submit:2+:device-lost" };
    static const float zeros[256 * 256];
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        hd_plan *plan;
        hd_ticket *ticket;
        open_with(faults[i]);
        hd_program *p = hd_program_create(context);
        hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(256, 256));
        for (int k = 0; k < 30; k++) x = hd_matmul(p, x, x);
        hd_output(p, "y", x);
        assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
        hd_program_destroy(p);
        assert_int_equal(hd_plan_write(plan, "x", zeros, sizeof zeros), HD_OK);
        assert_int_equal(hd_plan_submit(plan, &ticket), HD_OK);
        if (i == 1) assert_int_equal(hd_plan_submit(plan, &ticket), HD_STATUS_DEVICE_LOST);
        hd_plan_destroy(plan);
        hd_context_destroy(context);
    }
}

static void waits_and_losses(void **state) {
    (void)state;
    hd_plan *plan;
    open_with("wait:1:timeout,submit:3+:device-lost");
    assert_int_equal(make(&plan, false), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_TIMEOUT);
    assert_int_equal(hd_device_wait(device, 0), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    check_result(plan);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_DEVICE_LOST);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_DEVICE_LOST); /* for good */
    (void)hd_context_error(context);
    hd_device_close(device);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK); /* which counts anew */
    assert_int_equal(make(&plan, false), HD_OK);
    (void)hd_context_error(context);
    hd_context_destroy(context);
}

/* Memory: once is got over by dropping caches; for good it is an error of the call. */
static void memory_runs_out(void **state) {
    (void)state;
    hd_buffer *buffer = NULL;
    open_with("alloc:1:out-of-device-memory,alloc:4+:out-of-device-memory,kernel:1:pipeline-creation");
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 64 }, &buffer), HD_OK); /* 1 and 2 */
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 64 }, &buffer), HD_OK);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 64 }, &buffer), HD_STATUS_OUT_OF_DEVICE_MEMORY);
    assert_null(buffer);
    hd_plan *plan = NULL;
    assert_int_equal(make(&plan, false), HD_STATUS_PIPELINE_CREATION);
    assert_null(plan);
    hd_context_destroy(context);
}

static void lists_are_checked(void **state) {
    (void)state;
    static const char *const wrong[] = { "submit", "submit:1", "submit:0:queue", "submit:1:ok", "submit:1:quee", "draw:1:queue", "submit:-1:queue",
                                         "submit:1:queue,", "submit:+:queue", "submit:99999999999:queue", ":::", "alloc:1:queue:x" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hdi_faults faults = { 0 };
        if (hdi_faults_read(&faults, wrong[i]) && i != 7) fail_msg("\"%s\" is read", wrong[i]);
        const hd_context_desc desc = { .faults = wrong[i] };
        if (i != 7) assert_int_equal(hd_context_create(&desc, &context), HD_STATUS_INVALID_ARGUMENT);
    }
    const hd_context_desc strict = { .faults = "submit:1:queue", .strict = 1 };
    assert_int_equal(hd_context_create(&strict, &context), HD_STATUS_STRICT);
    char many[400] = "";
    for (int i = 0; i <= HDI_MOST_FAULTS; i++) strcat(many, i ? ",submit:1:queue" : "submit:1:queue");
    assert_int_equal(hd_context_create(&(hd_context_desc){ .faults = many }, &context), HD_STATUS_INVALID_ARGUMENT);
}

/* A loss on purpose moves a plan as a real one does. */
static void a_plan_moves_on(void **state) {
    (void)state;
    const hd_context_desc desc = { .faults = "submit:2+:device-lost", .verify = -1, .cpu_threads = 1 };
    hd_plan *plan;
    hd_plan_stats stats;
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &device)) {
        print_message("no Vulkan device: not run\n");
        hd_context_destroy(context);
        return;
    }
    assert_int_equal(make(&plan, true), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    hd_plan_get_stats(plan, &stats);
    const uint64_t before = stats.failovers;
    for (int i = 0; i < 3 && !stats.failovers; i++) {
        if (hd_plan_run(plan, NULL)) break; /* every device is lost with its second submission */
        hd_plan_get_stats(plan, &stats);
    }
    assert_true(stats.failovers > before);
    (void)hd_context_error(context);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_named_submission_fails), cmocka_unit_test(work_under_way_keeps_its_commands), cmocka_unit_test(waits_and_losses),
                                        cmocka_unit_test(memory_runs_out), cmocka_unit_test(lists_are_checked),
                                        cmocka_unit_test(a_plan_moves_on) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
