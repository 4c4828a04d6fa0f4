/* test_fault_opencl.c: every fallible driver call of a whole life of an OpenCL device is made to fail in every way that
 * OpenCL allows it, one at a time, and every host allocation too (life.h). The faults are put in above the driver
 * (HDCL_CALL). Then what a driver says of commands that failed on the device, and work that never ends. */
#define _GNU_SOURCE
#if defined(HEDDLE_OPENCL)
#include "fault/life.h"
#include "device/opencl/cl.h"

/* ---- what OpenCL's calls may return ---- */

static const char *name_of(uint32_t function) { return hdcl_function_get((hdcl_function)function)->name; }
static uint32_t results_of(uint32_t function) { return hdcl_function_get((hdcl_function)function)->results; }
static int32_t code_of(uint32_t row) { return hdcl_result_of((hdcl_result_row)row); }
static cl_int inject(hdcl_function function) { return life_inject(function); }
static uint64_t under_way(hdi_backend_device *device) { return device->inflight.submitted > device->inflight.done ? device->inflight.submitted : 0; }
static void come_to_rest(hdi_backend_device *device) { assert_true(hdcl_rest(device)); }

static bool ends_for_good(uint32_t function) {
    return function == HDCL_FN_EnqueueMarkerWithWaitList || function == HDCL_FN_Flush || function == HDCL_FN_GetEventInfo;
}

static hd_status expected_status(uint32_t function, uint32_t row) {
    switch (function) {
    case HDCL_FN_GetPlatformIDs: case HDCL_FN_GetDeviceIDs: case HDCL_FN_GetDeviceInfo: return HD_STATUS_NO_DEVICE;
    default: break;
    }
    switch (row) {
    case HDCL_ROW_OUT_OF_HOST_MEMORY: return HD_STATUS_OUT_OF_HOST_MEMORY;
    case HDCL_ROW_OUT_OF_RESOURCES: case HDCL_ROW_MEM_OBJECT_ALLOCATION_FAILURE: case HDCL_ROW_INVALID_BUFFER_SIZE: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDCL_ROW_DEVICE_NOT_AVAILABLE: return HD_STATUS_DEVICE_LOST;
    case HDCL_ROW_BUILD_PROGRAM_FAILURE: case HDCL_ROW_COMPILER_NOT_AVAILABLE: case HDCL_ROW_INVALID_BINARY: return HD_STATUS_PIPELINE_CREATION;
    case HDCL_ROW_INVALID_WORK_GROUP_SIZE: case HDCL_ROW_INVALID_WORK_ITEM_SIZE: return HD_STATUS_UNSUPPORTED;
    case HDCL_ROW_PROFILING_INFO_NOT_AVAILABLE: return HD_STATUS_QUEUE;
    default: return HD_STATUS_INTERNAL;
    }
}

/* What the cache on disk does not give is compiled; what is only for it, or for the log, may be missing; what cannot be
 * recorded is handed over as it is. */
static bool may_pass(uint32_t function, uint32_t row) {
    (void)row;
    return function == HDCL_FN_CreateProgramWithBinary || function == HDCL_FN_BuildProgram || function == HDCL_FN_GetProgramInfo ||
           function == HDCL_FN_GetProgramBuildInfo || function == HDCL_FN_CreateKernel || function == HDCL_FN_SetKernelArg ||
           (function >= HDCL_FN_CreateCommandBufferKHR && function != HDCL_FN_EnqueueCommandBufferKHR);
}

static const life_driver opencl_driver = { name_of, results_of, code_of, expected_status, may_pass, ends_for_good, under_way, come_to_rest,
                                           NULL, HDCL_ROW_COUNT, HDCL_ROW_DEVICE_NOT_AVAILABLE, false };

/* ---- the sweep ---- */

typedef struct set_up {
    const char *name;
    uint32_t    hidden;
    uint32_t    faults; /* out */
} set_up;
static set_up set_ups[] = {
    { "shared memory", 0, 0 },
    { "OpenCL 1.2", HDCL_HIDE_SHARED | HDCL_HIDE_RECORDING | HDCL_HIDE_PTX, 0 },
};
/* As many as the tests' time limit has room for. */
#if defined(__SANITIZE_ADDRESS__)
enum { SET_UPS = 1 };
#else
enum { SET_UPS = (int)HDI_COUNT(set_ups) };
#endif
/* Every call, and bursts, on request only ("test_fault_opencl all"): a life takes its time where kernels are compiled for a CPU. */
static bool all;

static void sweep(void **state) {
    set_up *s = *state;
    hdcl_hide_set(s->hidden);
    s->faults = sweep_calls(s->name, all);
}

static void sweep_host_memory(void **state) {
    (void)state;
    uint32_t faults = 0;
    for (size_t i = 0; i < SET_UPS; i++) {
        hdcl_hide_set(set_ups[i].hidden);
        faults += sweep_memory(set_ups[i].name);
    }
    print_message("host memory: %u failed allocations\n", faults);
}

static void enough_faults(void **state) {
    (void)state;
    uint32_t total = 0;
    for (size_t i = 0; i < SET_UPS; i++) total += set_ups[i].faults;
    print_message("faults in all: %u\n", total);
    assert_true(total >= 130 * SET_UPS);
}

/* ---- what the driver says of work ---- */

static cl_int CL_API_CALL state_of_work(cl_event event, cl_event_info what, size_t bytes, void *out, size_t *out_bytes, cl_int state) {
    (void)event;
    (void)what;
    (void)bytes;
    (void)out_bytes;
    memcpy(out, &state, sizeof state);
    return CL_SUCCESS;
}
static cl_int CL_API_CALL failed_work(cl_event event, cl_event_info what, size_t bytes, void *out, size_t *out_bytes) {
    return state_of_work(event, what, bytes, out, out_bytes, CL_OUT_OF_RESOURCES);
}
static cl_int CL_API_CALL endless_work(cl_event event, cl_event_info what, size_t bytes, void *out, size_t *out_bytes) {
    return state_of_work(event, what, bytes, out, out_bytes, CL_RUNNING);
}

/* A command that failed on the device is a loss: all calls say so, and closing gives everything back. */
static void test_failed_work(void **state) {
    (void)state;
    life l;
    hd_error error = { 0 };
    const uint64_t ticket = begin_work(&l);
    assert_true(hdcl_rest(subject.device));
    subject.device->cl.GetEventInfo = failed_work;
    assert_int_equal(subject.backend->wait(subject.device, ticket, 1000, &error), HD_STATUS_DEVICE_LOST);
    assert_non_null(strstr(error.text, "which failed on the device (-5)"));
    hdi_submission submission = list_submission(&l.plan);
    uint64_t none;
    assert_int_equal(subject.backend->submit(subject.device, &submission, &none, NULL), HD_STATUS_DEVICE_LOST);
    assert_int_equal(subject.backend->poll(subject.device, ticket, &(bool){ false }, NULL), HD_STATUS_DEVICE_LOST);
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
    if (!hdcl_rest(subject.device)) _exit(2);
    subject.device->cl.GetEventInfo = endless_work;
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
    driver = &opencl_driver;
    subject.backend = &hdi_backend_opencl;
    subject.host = (hdi_host){ .allocator = &counted, .log = &log, .cache_dir = cache_dir, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    given_up_result = life_in_child(give_up);
    hdi_probe probe;
    hdi_backend_opencl.probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no OpenCL device: %s\n", probe.reason);
        rmdir(cache_dir);
        return 0;
    }
    hdcl_fault_set(inject);
    struct CMUnitTest tests[SET_UPS + 4] = { cmocka_unit_test(test_failed_work), cmocka_unit_test(test_given_up), cmocka_unit_test(sweep_host_memory) };
    for (size_t i = 0; i < SET_UPS; i++)
        tests[3 + i] = (struct CMUnitTest){ .name = set_ups[i].name, .test_func = sweep, .initial_state = &set_ups[i] };
    tests[3 + SET_UPS] = (struct CMUnitTest)cmocka_unit_test(enough_faults);
    const int failures = _cmocka_run_group_tests("opencl faults", tests, HDI_COUNT(tests), NULL, NULL);
    hdcl_fault_set(NULL);
    empty_cache();
    rmdir(cache_dir);
    return failures;
}
#else
#include <stdio.h>

int main(void) {
    printf("skipped: built without OpenCL headers\n");
    return 0;
}
#endif
