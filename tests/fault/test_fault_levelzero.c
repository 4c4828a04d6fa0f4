/* test_fault_levelzero.c: every fallible driver call of a whole life of a Level Zero device is made to fail in every way that
 * Level Zero allows it, one at a time, and every host allocation too (life.h). The faults are put in above the driver
 * (HDZE_CALL). Then work that never ends. */
#define _GNU_SOURCE
#if defined(HEDDLE_LEVELZERO)
#include "fault/life.h"
#include "device/levelzero/ze.h"

/* ---- what Level Zero's calls may return ---- */

static const char *name_of(uint32_t function) { return hdze_function_get((hdze_function)function)->name; }
static uint32_t results_of(uint32_t function) { return hdze_function_get((hdze_function)function)->results; }
static int32_t code_of(uint32_t row) { return (int32_t)hdze_result_of((hdze_result_row)row); }
static ze_result_t inject(hdze_function function) { return (ze_result_t)life_inject(function); }
static uint64_t under_way(hdi_backend_device *device) { return device->inflight.submitted > device->inflight.done ? device->inflight.submitted : 0; }
static void come_to_rest(hdi_backend_device *device) { assert_true(hdze_rest(device)); }

static bool ends_for_good(uint32_t function) {
    return function == HDZE_FN_FenceQueryStatus || function == HDZE_FN_CommandQueueSynchronize || function == HDZE_FN_CommandQueueExecuteCommandLists;
}

static hd_status expected_status(uint32_t function, uint32_t row) {
    if (function <= HDZE_FN_DeviceGetCommandQueueGroupProperties) return HD_STATUS_NO_DEVICE;
    switch (row) {
    case HDZE_ROW_DEVICE_LOST: return HD_STATUS_DEVICE_LOST;
    case HDZE_ROW_OUT_OF_HOST_MEMORY: return HD_STATUS_OUT_OF_HOST_MEMORY;
    case HDZE_ROW_OUT_OF_DEVICE_MEMORY: case HDZE_ROW_UNSUPPORTED_SIZE: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDZE_ROW_INVALID_GROUP_SIZE_DIMENSION: return HD_STATUS_UNSUPPORTED;
    default: return hdze_function_get((hdze_function)function)->status;
    }
}

/* What the cache on disk does not give is compiled. */
static bool may_pass(uint32_t function, uint32_t row) {
    (void)row;
    return function == HDZE_FN_ModuleCreate || function == HDZE_FN_KernelCreate || function == HDZE_FN_KernelSetGroupSize;
}

static const life_driver levelzero_driver = { name_of, results_of, code_of, expected_status, may_pass, ends_for_good, under_way, come_to_rest,
                                              NULL, HDZE_ROW_COUNT, HDZE_ROW_DEVICE_LOST, false };

/* ---- the sweeps ---- */

/* Every call, and bursts, on request only ("test_fault_levelzero all"). */
static bool all;

static void sweep(void **state) {
    (void)state;
    assert_true(sweep_calls("levelzero", all) >= 130 / SWEEP_STEP);
}

static void sweep_host_memory(void **state) {
    (void)state;
    print_message("host memory: %u failed allocations\n", sweep_memory("levelzero"));
}

/* ---- work that never ends ---- */

static ze_result_t never_ready(ze_fence_handle_t fence) {
    (void)fence;
    return ZE_RESULT_NOT_READY;
}
static ze_result_t never_at_rest(ze_command_queue_handle_t queue, uint64_t timeout_ns) {
    (void)queue;
    (void)timeout_ns;
    return ZE_RESULT_NOT_READY;
}

/* Waits end, so does closing, and what the work may still use is left to the driver. */
static void give_up(void) {
    life l;
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) return; /* the parent says so */
    const uint64_t ticket = begin_work(&l);
    if (!hdze_rest(subject.device)) _exit(2);
    subject.device->ze.FenceQueryStatus = never_ready;
    subject.device->ze.CommandQueueSynchronize = never_at_rest;
    if (subject.backend->wait(subject.device, ticket, 1000000, NULL) != HD_STATUS_TIMEOUT) _exit(3);
    const uint64_t begun = hdi_now_ns();
    subject.backend->close(subject.device);
    if (hdi_now_ns() - begun > UINT64_C(5000000000)) _exit(4);
    if (memory.live != 0) _exit(5);
}

int main(int argc, char **argv) {
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    static const hdi_log log = { .level = HD_LOG_ERROR }; /* nobody listens */
    driver = &levelzero_driver;
    subject.backend = &hdi_backend_levelzero;
    subject.host = (hdi_host){ .allocator = &counted, .log = &log, .cache_dir = cache_dir, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    given_up_result = life_in_child(give_up);
    hdi_probe probe;
    hdi_backend_levelzero.probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Level Zero device: %s\n", probe.reason);
        rmdir(cache_dir);
        return 0;
    }
    hdze_fault_set(inject);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_given_up), cmocka_unit_test(sweep), cmocka_unit_test(sweep_host_memory) };
    const int failures = cmocka_run_group_tests_name("levelzero faults", tests, NULL, NULL);
    hdze_fault_set(NULL);
    empty_cache();
    rmdir(cache_dir);
    return failures;
}
#else
#include <stdio.h>

int main(void) {
    printf("skipped: built without Level Zero headers\n");
    return 0;
}
#endif
