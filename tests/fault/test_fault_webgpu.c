/* test_fault_webgpu.c: every fallible call of a whole life of a WebGPU device is made to fail in every way of its row in
 * functions.inc, one at a time, and every host allocation too (life.h). The faults are put in above the implementation (HDWG_CALL).
 * Then work that fails, work that never ends, and a text that is refused. */
#define _GNU_SOURCE
#include "fault/life.h"
#include "device/webgpu/wg.h"

static const char *name_of(uint32_t function) { return hdwg_function_get((hdwg_function)function)->name; }
static uint32_t results_of(uint32_t function) { return hdwg_function_get((hdwg_function)function)->results; }
static int32_t code_of(uint32_t row) { return (int32_t)row; }
static hdwg_row inject(hdwg_function function) { return (hdwg_row)life_inject(function); }
static uint64_t under_way(hdi_backend_device *device) { return device->inflight.submitted > device->inflight.done ? device->inflight.submitted : 0; }
static void come_to_rest(hdi_backend_device *device) {
    hdwg_fault_set(NULL);
    assert_true(hdwg_rest(device));
    hdwg_fault_set(inject);
}

static bool ends_for_good(uint32_t function) {
    return function == HDWG_FN_QueueOnSubmittedWorkDone || function == HDWG_FN_BufferMapAsync || function == HDWG_FN_BufferGetConstMappedRange;
}

static hd_status expected_status(uint32_t function, uint32_t row) {
    switch (function) {
    case HDWG_FN_InstanceEnumerateAdapters: case HDWG_FN_AdapterGetInfo: case HDWG_FN_AdapterGetLimits: return HD_STATUS_NO_DEVICE;
    default: break;
    }
    switch (row) {
    case HDWG_ROW_OUT_OF_MEMORY: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDWG_ROW_LOST: return HD_STATUS_DEVICE_LOST;
    default: return hdwg_function_get((hdwg_function)function)->status;
    }
}

/* Work that was handed over is looked at again later. */
static bool may_pass(uint32_t function, uint32_t row) {
    (void)row;
    return function == HDWG_FN_QueueOnSubmittedWorkDone || function == HDWG_FN_BufferMapAsync;
}

static const life_driver webgpu_driver = { name_of, results_of, code_of, expected_status, may_pass, ends_for_good, under_way, come_to_rest,
                                           NULL, HDWG_ROW_COUNT, HDWG_ROW_LOST, false };

/* ---- the sweeps ---- */

static bool all; /* every call, and bursts, on request only ("test_fault_webgpu all") */

static void sweep(void **state) {
    (void)state;
    const uint32_t faults = sweep_calls("webgpu", all);
    assert_true(faults >= 100 / SWEEP_STEP);
}

static void sweep_host_memory(void **state) {
    (void)state;
    print_message("host memory: %u failed allocations\n", sweep_memory("webgpu"));
}

/* ---- what the implementation says of work ---- */

static WGPUBool no_poll(WGPUDevice device, WGPUBool waits, const uint64_t *submission) {
    (void)device;
    (void)waits;
    (void)submission;
    return 0;
}

/* A submission whose callback tells of a failure is a loss: all calls say so, and closing gives everything back. */
static void test_failed_work(void **state) {
    (void)state;
    life l;
    hd_error error = { 0 };
    const uint64_t ticket = begin_work(&l);
    subject.device->wg.DevicePoll(subject.device->device, 1, NULL);
    atomic_store(&subject.device->jobs[ticket % HDWG_JOBS].state, HDWG_JOB_FAILED);
    assert_int_equal(subject.backend->wait(subject.device, ticket, 1000, &error), HD_STATUS_DEVICE_LOST);
    assert_non_null(strstr(error.text, "which the driver gave up"));
    hdi_submission submission = list_submission(&l.plan);
    uint64_t none;
    assert_int_equal(subject.backend->submit(subject.device, &submission, &none, NULL), HD_STATUS_DEVICE_LOST);
    subject.backend->close(subject.device);
    assert_int_equal(memory.live, 0);
}

/* The loss callback alone is enough; a device that is closed is none. */
static void test_loss_callback(void **state) {
    (void)state;
    life l;
    hd_error error = { 0 };
    const uint64_t ticket = begin_work(&l);
    hdwg_on_loss(NULL, WGPU_LOST_DESTROYED, (WGPUStringView){ "closed", 6 }, subject.device, NULL);
    assert_int_equal(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, &error), HD_OK);
    hdwg_on_loss(NULL, 1, (WGPUStringView){ "unplugged", 9 }, subject.device, NULL);
    assert_int_equal(subject.backend->wait(subject.device, ticket + 1, 1000, &error), HD_STATUS_DEVICE_LOST);
    assert_non_null(strstr(error.text, "as the driver says: unplugged"));
    subject.backend->close(subject.device);
    assert_int_equal(memory.live, 0);
}

/* The implementation's words on a text that it refuses reach the caller. */
static void test_refused_text(void **state) {
    (void)state;
    life l;
    hd_error error = { 0 };
    begin_work(&l);
    static const char text[] = "fn heddle_kernel( {";
    hdi_loaded_kernel loaded = { .pipeline = NULL };
    assert_false(hdwg_kernel_build(subject.device, text, sizeof text - 1, &loaded));
    assert_int_equal(hdwg_fail(subject.device, &error, "kernel text"), HD_STATUS_PIPELINE_CREATION);
    assert_non_null(strstr(error.text, "kernel text: wgpuDeviceCreateShaderModule: the call is not valid: "));
    assert_non_null(strstr(error.text, "expected"));
    hdwg_kernel_drop(subject.device, &loaded);
    subject.backend->close(subject.device);
    assert_int_equal(memory.live, 0);
}

/* Work that never ends: waits end, so does closing, and what the work may still use is left to the driver. */
static void give_up(void) {
    life l;
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) return; /* the parent says so */
    const uint64_t ticket = begin_work(&l);
    subject.device->wg.DevicePoll = no_poll;
    atomic_store(&subject.device->jobs[ticket % HDWG_JOBS].state, HDWG_JOB_RUNS);
    if (subject.backend->wait(subject.device, ticket, 1000000, NULL) != HD_STATUS_TIMEOUT) _exit(3);
    subject.host.wait_ns = 50000000;
    const uint64_t begun = hdi_now_ns();
    subject.backend->close(subject.device);
    if (hdi_now_ns() - begun > UINT64_C(5000000000)) _exit(4);
    if (memory.live != 0) _exit(5);
}

int main(int argc, char **argv) {
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    static const hdi_log log = { .level = HD_LOG_ERROR }; /* nobody listens */
    driver = &webgpu_driver;
    subject.backend = &hdi_backend_webgpu;
    subject.host = (hdi_host){ .allocator = &counted, .log = &log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    given_up_result = life_in_child(give_up);
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no WebGPU device: %s; %s\n", probe.reason, probe.mend);
        rmdir(cache_dir);
        return 0;
    }
    hdwg_fault_set(inject);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_up), cmocka_unit_test(test_failed_work), cmocka_unit_test(test_loss_callback), cmocka_unit_test(test_refused_text),
        cmocka_unit_test(sweep), cmocka_unit_test(sweep_host_memory),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hdwg_fault_set(NULL);
    empty_cache();
    rmdir(cache_dir);
    return failures;
}
