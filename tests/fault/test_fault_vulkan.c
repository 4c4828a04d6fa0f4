/* test_fault_vulkan.c: every fallible driver call of a whole life of a Vulkan device is made to fail in every way that
 * Vulkan allows it, one at a time, and every host allocation too (life.h). The faults are put in above the driver (HDVK_CALL). */
#define _GNU_SOURCE
#include "fault/life.h"
#include "conform/driver_leaks.h"
#include "device/vulkan/vk.h"

/* ---- what Vulkan's calls may return ---- */

static const char *name_of(uint32_t function) { return hdvk_function_get((hdvk_function)function)->name; }
static uint32_t results_of(uint32_t function) { return hdvk_function_get((hdvk_function)function)->results; }
static int32_t code_of(uint32_t row) { return hdvk_result_of((hdvk_result_row)row); }
static VkResult inject(hdvk_function function) { return (VkResult)life_inject(function); }
static uint64_t under_way(hdi_backend_device *device) { return device->inflight.submitted > device->inflight.done ? device->inflight.submitted : 0; }

static void come_to_rest(hdi_backend_device *device) {
    PFN_vkDeviceWaitIdle wait_idle = (PFN_vkDeviceWaitIdle)device->vk.GetDeviceProcAddr(device->vk.device, "vkDeviceWaitIdle");
    assert_int_equal(wait_idle(device->vk.device), VK_SUCCESS);
}

static bool ends_for_good(uint32_t function) {
    return function == HDVK_FN_QueueSubmit || function == HDVK_FN_WaitForFences || function == HDVK_FN_WaitSemaphores;
}

static hd_status expected_status(uint32_t function, uint32_t row) {
    switch (row) {
    case HDVK_ROW_ERROR_OUT_OF_HOST_MEMORY: return HD_STATUS_OUT_OF_HOST_MEMORY;
    case HDVK_ROW_ERROR_OUT_OF_DEVICE_MEMORY: case HDVK_ROW_ERROR_FRAGMENTED_POOL:
    case HDVK_ROW_ERROR_OUT_OF_POOL_MEMORY: case HDVK_ROW_ERROR_FRAGMENTATION: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDVK_ROW_ERROR_DEVICE_LOST: return HD_STATUS_DEVICE_LOST;
    case HDVK_ROW_INCOMPLETE: return HD_STATUS_NO_DEVICE;
    case HDVK_ROW_TIMEOUT: return HD_STATUS_TIMEOUT;
    default: break;
    }
    switch (function) {
    case HDVK_FN_EnumerateInstanceExtensionProperties: case HDVK_FN_EnumerateInstanceLayerProperties: case HDVK_FN_CreateInstance:
    case HDVK_FN_EnumeratePhysicalDevices: return HD_STATUS_INSTANCE_CREATION;
    case HDVK_FN_EnumerateDeviceExtensionProperties: case HDVK_FN_CreateDevice: return HD_STATUS_DEVICE_CREATION;
    case HDVK_FN_AllocateMemory: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDVK_FN_MapMemory: return HD_STATUS_API;
    case HDVK_FN_CreateShaderModule: return HD_STATUS_MODULE;
    case HDVK_FN_CreateComputePipelines: return HD_STATUS_PIPELINE_CREATION;
    case HDVK_FN_ResetDescriptorPool: return HD_STATUS_COMMAND_BUFFER;
    case HDVK_FN_GetQueryPoolResults: return HD_STATUS_QUEUE;
    default: return HD_STATUS_INTERNAL;
    }
}

/* Also what another kind of memory makes good. */
static bool may_pass(uint32_t function, uint32_t row) {
    const bool placing = function == HDVK_FN_CreateBuffer || function == HDVK_FN_AllocateMemory || function == HDVK_FN_BindBufferMemory || function == HDVK_FN_MapMemory;
    return row == HDVK_ROW_INCOMPLETE || row == HDVK_ROW_NOT_READY || (placing && expected_status(function, row) == HD_STATUS_OUT_OF_DEVICE_MEMORY) ||
           function == HDVK_FN_GetSemaphoreCounterValue || function == HDVK_FN_SetDebugUtilsObjectNameEXT || function == HDVK_FN_GetPipelineCacheData;
}

static const life_driver vulkan_driver = { name_of, results_of, code_of, expected_status, may_pass, ends_for_good, under_way, come_to_rest,
                                           hdvk_validation_messages, HDVK_ROW_COUNT, HDVK_ROW_ERROR_DEVICE_LOST, false };

/* ---- the sweep ---- */

typedef struct set_up {
    const char *name;
    uint32_t    hidden;
    bool        validation;
    uint32_t    faults; /* out */
} set_up;
#define NO_TIMELINE (1u << HDVK_HAS_INDEX_TIMELINE)
static set_up set_ups[] = {
    { "timeline", 0, false, 0 },
    { "fences", NO_TIMELINE, false, 0 },
    { "memory apart, queues", HDVK_HIDE_UNIFIED | HDVK_FEIGN_QUEUES, false, 0 },
    { "fences, memory apart, validation", NO_TIMELINE | HDVK_HIDE_UNIFIED, true, 0 },
    { "timeline, validation", 0, true, 0 },
};
/* How many of them: all on request ("test_fault_vulkan all"), else as many as the tests' time limit has room for. */
#if defined(__SANITIZE_ADDRESS__)
static size_t set_up_count = 1;
#else
static size_t set_up_count = 3;
#endif

static void begin(const set_up *s) {
    hdvk_hide_set(s->hidden);
    subject.host.validation = s->validation;
}

static void sweep(void **state) {
    set_up *s = *state;
    begin(s);
    s->faults = sweep_calls(s->name, !s->validation);
}

static void sweep_host_memory(void **state) {
    (void)state;
    uint32_t faults = 0;
    for (size_t i = 0; i < HDI_MIN(set_up_count, (size_t)3); i++) {
        begin(&set_ups[i]);
        faults += sweep_memory(set_ups[i].name);
    }
    print_message("host memory: %u failed allocations\n", faults);
}

static void enough_faults(void **state) {
    (void)state;
    uint32_t total = 0;
    for (size_t i = 0; i < set_up_count; i++) total += set_ups[i].faults;
    print_message("faults in all: %u, validation messages: %llu\n", total, (unsigned long long)hdvk_validation_messages());
    assert_true(total >= 600 * set_up_count / SWEEP_STEP);
}

/* ---- what never comes back, in a child: its driver objects are given up, which is the point ---- */

static uint32_t submits;
static VkResult never_done(hdvk_function function) {
    return function == HDVK_FN_WaitSemaphores || function == HDVK_FN_WaitForFences ? VK_TIMEOUT
         : function == HDVK_FN_GetFenceStatus ? VK_NOT_READY : VK_SUCCESS;
}
static VkResult second_piece_refused(hdvk_function function) {
    return function == HDVK_FN_QueueSubmit && ++submits >= 2 ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS;
}

static void give_up(void) {
    life l = { 0 };
    uint64_t ticket;
    subject.host.wait_ns = 50000000;
    for (int refused = 0; refused < 2; refused++) {
        hdi_probe probe;
        hdvk_fault_set(NULL);
        subject.backend->probe(&subject.host, &probe);
        if (!probe.found_count) _exit(0); /* the parent says so */
        if (!scenario_open() || !scenario_make(&l)) _exit(2);
        hdi_submission submission = list_submission(&l.plan);
        submits = 0;
        hdvk_fault_set(refused ? second_piece_refused : never_done);
        const hd_status status = subject.backend->submit(subject.device, &submission, &ticket, NULL);
        if (status != (refused ? HD_STATUS_OUT_OF_DEVICE_MEMORY : HD_OK)) _exit(3);
        if (!refused && subject.backend->wait(subject.device, ticket, 1000000, NULL) != HD_STATUS_TIMEOUT) _exit(4);
        if (refused && subject.backend->submit(subject.device, &submission, &ticket, NULL) != HD_STATUS_DEVICE_LOST) _exit(5);
        const uint64_t begun = hdi_now_ns();
        subject.backend->close(subject.device);
        if (hdi_now_ns() - begun > UINT64_C(5000000000)) _exit(6);
        if (memory.live != 0) _exit(7);
    }
}

static void print_validation(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    (void)level;
    if (strstr(line, "VUID")) fprintf(stderr, "[%s] %s\n", part, line);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "all") == 0) set_up_count = HDI_COUNT(set_ups);
    static const hdi_log log = { .write = print_validation, .level = HD_LOG_WARNING };
    driver = &vulkan_driver;
    subject.backend = &hdi_backend_vulkan;
    subject.host = (hdi_host){ .allocator = &counted, .log = &log, .cache_dir = cache_dir, .cpu_threads = 1,
                              .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    given_up_result = life_in_child(give_up);
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Vulkan device: %s\n", probe.reason);
        return 0;
    }
    hdvk_fault_set(inject);
    struct CMUnitTest tests[HDI_COUNT(set_ups) + 3] = { cmocka_unit_test(test_given_up), cmocka_unit_test(sweep_host_memory) };
    for (size_t i = 0; i < set_up_count; i++)
        tests[2 + i] = (struct CMUnitTest){ .name = set_ups[i].name, .test_func = sweep, .initial_state = &set_ups[i] };
    tests[2 + set_up_count] = (struct CMUnitTest)cmocka_unit_test(enough_faults);
    const int failures = _cmocka_run_group_tests("vulkan faults", tests, 3 + set_up_count, NULL, NULL);
    hdvk_fault_set(NULL);
    empty_cache();
    rmdir(cache_dir);
    return failures;
}
