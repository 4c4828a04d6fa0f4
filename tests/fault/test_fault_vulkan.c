/* test_fault_vulkan.c: every fallible driver call of a whole life of a device is made to fail in every way that Vulkan
 * allows it, one at a time, and every host allocation too. Asked is: the right status and a text, no crash, leak or hang;
 * what failed for once works when tried again on the same device, with right results; what is lost stays lost and ends
 * cleanly. The faults are put in above the driver (HDVK_CALL); a loss first lets the real device come to rest, as after a
 * real one nothing runs any more. */
#define _GNU_SOURCE
#include "conform/conform.h"
#include "conform/driver_leaks.h"
#include "device/vulkan/vk.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the fault that is put in ---- */

enum { ONCE, BURST /* until the call of the seam returns */ };
static struct fault {
    uint32_t       at;     /* number of the fallible call, from 1; 0: none */
    hdvk_result_row row;
    int            mode;
    uint32_t       calls;
    bool           hit, lost, in_void; /* in_void: within a call of the seam that returns no status */
    hdvk_function  function;
    hdi_backend_device *device;
    uint8_t        trace[4096];
} fault;

static void come_to_rest(void) {
    if (!fault.device) return;
    PFN_vkDeviceWaitIdle wait_idle = (PFN_vkDeviceWaitIdle)fault.device->vk.GetDeviceProcAddr(fault.device->vk.device, "vkDeviceWaitIdle");
    assert_int_equal(wait_idle(fault.device->vk.device), VK_SUCCESS);
}

static bool allows(hdvk_function function, hdvk_result_row row) { return (hdvk_function_get(function)->results >> row & 1u) != 0; }

/* What fails here again and again makes the back end give up, as test_given_up tells. */
static bool ends_for_good(hdvk_function function) {
    return function == HDVK_FN_QueueSubmit || function == HDVK_FN_WaitForFences || function == HDVK_FN_WaitSemaphores;
}

static VkResult inject(hdvk_function function) {
    fault.calls++;
    if (fault.calls < HDI_COUNT(fault.trace)) fault.trace[fault.calls] = (uint8_t)function;
    if (fault.lost && allows(function, HDVK_ROW_ERROR_DEVICE_LOST)) return VK_ERROR_DEVICE_LOST;
    /* Which call is the n-th depends a little on how fast the device is: the first one from there on that may fail so. */
    const bool now = fault.hit ? fault.mode == BURST : fault.at && fault.calls >= fault.at;
    if (!now || !allows(function, fault.row) || (fault.mode == BURST && ends_for_good(function))) return VK_SUCCESS;
    if (!fault.hit) fault.function = function;
    fault.hit = true;
    if (fault.row == HDVK_ROW_ERROR_DEVICE_LOST) {
        fault.lost = true;
        come_to_rest();
    }
    return hdvk_result_of(fault.row);
}

/* ---- an allocator that counts, and fails once ---- */

static struct memory { uint64_t live, calls, fail_at; bool hit; } memory;

static void *counted_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    if (new_bytes && ++memory.calls == memory.fail_at) {
        memory.hit = true;
        return NULL;
    }
    void *grown = hdi_default_allocator.resize(NULL, old, old_bytes, new_bytes);
    if (new_bytes == 0 || grown) memory.live = memory.live - (old ? old_bytes : 0) + new_bytes;
    return grown;
}
static const hd_allocator counted = { counted_resize, NULL };

/* ---- what a fault must come to ---- */

static hd_status expected_status(hdvk_function function, hdvk_result_row row) {
    switch (row) {
    case HDVK_ROW_ERROR_OUT_OF_HOST_MEMORY: return HD_STATUS_OUT_OF_HOST_MEMORY;
    case HDVK_ROW_ERROR_OUT_OF_DEVICE_MEMORY: case HDVK_ROW_ERROR_FRAGMENTED_POOL:
    case HDVK_ROW_ERROR_OUT_OF_POOL_MEMORY: case HDVK_ROW_ERROR_FRAGMENTATION: return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    case HDVK_ROW_ERROR_DEVICE_LOST: return HD_STATUS_DEVICE_LOST;
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

/* Faults after which everything may simply go on: also those that another kind of memory makes good. */
static bool may_pass(void) {
    const bool placing = fault.function == HDVK_FN_CreateBuffer || fault.function == HDVK_FN_AllocateMemory ||
                         fault.function == HDVK_FN_BindBufferMemory || fault.function == HDVK_FN_MapMemory;
    return fault.in_void || fault.row == HDVK_ROW_INCOMPLETE || fault.row == HDVK_ROW_NOT_READY ||
           (placing && expected_status(fault.function, fault.row) == HD_STATUS_OUT_OF_DEVICE_MEMORY) ||
           fault.function == HDVK_FN_GetSemaphoreCounterValue || fault.function == HDVK_FN_SetDebugUtilsObjectNameEXT || fault.function == HDVK_FN_GetPipelineCacheData;
}

static char figures[256];
#define HOLDS(condition) \
    do { \
        if (!(condition)) \
            fail_msg("%s gives row %d at call %u, %s: line %d: %s [%s]", hdvk_function_get(fault.function)->name, (int)fault.row, fault.at, \
                     figures, __LINE__, #condition, vulkan.error.text); \
    } while (0)

static conform vulkan = { .backend = &hdi_backend_vulkan };

/* Judges a failure of a call of the seam. True: it was lost, for good. */
static bool judge(hd_status status) {
    HOLDS(fault.hit || memory.hit);
    HOLDS(vulkan.error.status == status && vulkan.error.text[0] && strcmp(vulkan.error.backend, "vulkan") == 0);
    if (memory.hit) HOLDS(status == HD_STATUS_OUT_OF_HOST_MEMORY);
    else if (fault.row == HDVK_ROW_INCOMPLETE) HOLDS(status == HD_STATUS_NO_DEVICE);
    else HOLDS(status == expected_status(fault.function, fault.row));
    if (!memory.hit && status != HD_STATUS_NO_DEVICE && status != HD_STATUS_TIMEOUT) {
        HOLDS(vulkan.error.native_code == hdvk_result_of(fault.row));
        HOLDS(strstr(vulkan.error.text, hdvk_function_get(fault.function)->name)); /* the text names what failed */
    }
    return fault.lost && fault.device;
}

/* Runs a call of the seam; a failure is judged and the call made once more, which must do. False: lost. */
#define STEP(call) \
    do { \
        vulkan.error = (hd_error){ 0 }; \
        const hd_status status_ = (call); \
        if (status_ != HD_OK) { \
            failed = true; \
            if (judge(status_)) return lost_for_good(); \
            fault.at = 0; \
            fault.mode = ONCE; \
            fault.lost = false; \
            vulkan.error = (hd_error){ 0 }; \
            HOLDS((call) == HD_OK); \
        } \
        if (fault.hit) fault.mode = ONCE; \
    } while (0)
#define VOID(call) \
    do { \
        const bool before = fault.hit; \
        (void)(call); \
        if (fault.hit && !before) fault.in_void = true; \
        if (fault.hit) fault.mode = ONCE; \
    } while (0)
static bool failed; /* a call of the seam reported the fault */

/* Everything on a lost device says so; what was made on it ends with it. */
static bool lost_for_good(void) {
    const hdi_backend *b = &hdi_backend_vulkan;
    const hdi_alloc_desc desc = { 100, HD_BUFFER_STORAGE, NULL, NULL };
    const hdi_kernel kernel = conform_kernel(9);
    hdi_memory *none = NULL;
    hdi_loaded_kernel *loaded = NULL;
    hdi_recording *recording = NULL;
    bool cached, done;
    uint64_t ticket;
    conform_list list;
    list_begin(&list);
    HOLDS(b->alloc(fault.device, &desc, &none, NULL) == HD_STATUS_DEVICE_LOST);
    HOLDS(b->kernel_load(fault.device, &conform_module, &kernel, &loaded, &cached, NULL) == HD_STATUS_DEVICE_LOST);
    hdi_submission submission = list_submission(&list);
    submission.recording = &recording;
    HOLDS(b->submit(fault.device, &submission, &ticket, NULL) == HD_STATUS_DEVICE_LOST);
    if (fault.device->submitted > fault.device->completed) {
        vulkan.error = (hd_error){ 0 };
        HOLDS(b->wait(fault.device, fault.device->submitted, 1000, &vulkan.error) == HD_STATUS_DEVICE_LOST);
        HOLDS(strstr(vulkan.error.text, hdvk_function_get(fault.function)->name)); /* still says where it happened */
        HOLDS(b->poll(fault.device, fault.device->submitted, &done, NULL) == HD_STATUS_DEVICE_LOST && !done);
    }
    b->trim(fault.device);
    return false;
}

/* ---- a whole life ---- */

enum { WORDS = 500, BYTES = WORDS * 4, LARGE = 2 << 20 };

static bool scenario_open(void) {
    hdi_probe probe;
    VOID((vulkan.backend->probe(&vulkan.host, &probe), 0));
    HOLDS(probe.found_count || (probe.reason[0] && probe.mend[0]));
    if (!probe.found_count) vulkan.backend->probe(&vulkan.host, &probe);
    if (!probe.found_count && fault.lost) {
        fault.lost = false;
        vulkan.backend->probe(&vulkan.host, &probe);
    }
    HOLDS(probe.found_count);
    vulkan.found = probe.found[0];
    fault.device = NULL;
    STEP(vulkan.backend->open(&vulkan.host, &vulkan.found, NULL, &vulkan.device, &vulkan.error));
    fault.device = vulkan.device;
    return true;
}

/* in -> a -> b -> out with two kernels; every stage reads one buffer and writes another, so doing it twice is harmless. */
typedef struct life {
    hdi_memory *in, *large, *a, *b, *out;
    hdi_loaded_kernel *twice, *thrice;
    hdi_recording *recording;
    conform_list plan;
} life;

static hd_status new_memory(uint64_t bytes, hd_buffer_use use, hdi_memory **out_memory) {
    const hdi_alloc_desc desc = { bytes, use, "fault", NULL };
    return vulkan.backend->alloc(vulkan.device, &desc, out_memory, &vulkan.error);
}

static hd_status new_kernel(uint32_t factor, hdi_loaded_kernel **out_kernel) {
    const hdi_kernel kernel = conform_kernel(factor);
    bool cached;
    return vulkan.backend->kernel_load(vulkan.device, &conform_module, &kernel, out_kernel, &cached, &vulkan.error);
}

static bool scenario_make(life *l) {
    STEP(new_memory(BYTES, HD_BUFFER_UPLOAD, &l->in));
    STEP(new_memory(LARGE, HD_BUFFER_STORAGE, &l->large));
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &l->a));
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &l->b));
    STEP(new_memory(BYTES, HD_BUFFER_READBACK, &l->out));
    STEP(new_kernel(2, &l->twice));
    VOID((vulkan.backend->kernel_free(vulkan.device, l->twice), 0));
    STEP(new_kernel(2, &l->twice)); /* now from the cache */
    STEP(new_kernel(3, &l->thrice));
    conform_list *p = &l->plan;
    list_begin(p);
    list_kernel(p, l->twice, 2);
    const uint32_t in = list_slot(p, l->in, 0, BYTES), a = list_slot(p, l->a, 0, BYTES), b = list_slot(p, l->b, 0, BYTES);
    const uint32_t out = list_slot(p, l->out, 0, BYTES), large = list_slot(p, l->large, 0, LARGE);
    list_mark(p, "up");
    list_copy(p, in, 0, a, 0, BYTES);
    list_fill(p, large, 4, LARGE - 4, 7);
    list_barrier(p, true);
    list_mark(p, "compute");
    list_dispatch(p, a, b, WORDS, 1, 0, 8);
    list_barrier(p, true);
    list_copy(p, b, 0, out, 0, BYTES);
    return true;
}

static void fill_in(life *l, uint32_t seed) {
    uint32_t *words = vulkan.backend->map(vulkan.device, l->in);
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 3 + seed;
}

static bool holds_out(life *l, uint32_t seed) {
    const uint32_t *words = vulkan.backend->map(vulkan.device, l->out);
    for (uint32_t i = 0; i < WORDS; i++)
        if (words[i] != (i * 3 + seed) * 2 + 1) return false;
    return true;
}

static bool scenario_run(life *l, uint32_t round) {
    uint64_t ticket = 0, ns[4];
    uint32_t count;
    bool done;
    hdi_submission once = list_submission(&l->plan), timed = once, kept = once;
    timed.timestamps = true;
    kept.recording = &l->recording;
    timed.recording = round ? &l->recording : NULL;
    fill_in(l, round);
    STEP(vulkan.backend->submit(vulkan.device, &once, &ticket, &vulkan.error));
    STEP(vulkan.backend->submit(vulkan.device, &kept, &ticket, &vulkan.error));
    STEP(vulkan.backend->poll(vulkan.device, ticket, &done, &vulkan.error));
    STEP(vulkan.backend->submit(vulkan.device, &kept, &ticket, &vulkan.error)); /* a replay, with the first under way */
    STEP(vulkan.backend->wait(vulkan.device, ticket, vulkan.host.wait_ns, &vulkan.error));
    HOLDS(holds_out(l, round));
    fill_in(l, round + 100);
    STEP(vulkan.backend->submit(vulkan.device, &timed, &ticket, &vulkan.error));
    STEP(vulkan.backend->wait(vulkan.device, ticket, vulkan.host.wait_ns, &vulkan.error));
    STEP(vulkan.backend->profile(vulkan.device, ticket, ns, 4, &count, &vulkan.error));
    HOLDS(count == 2 && holds_out(l, round + 100));
    hdi_memory *other; /* other slots: encoded again, and the old ones freed under way */
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &other));
    hdi_memory *old = l->a;
    l->a = l->plan.slots[1].memory = other;
    STEP(vulkan.backend->submit(vulkan.device, &kept, &ticket, &vulkan.error));
    VOID((vulkan.backend->free(vulkan.device, old), 0));
    STEP(vulkan.backend->wait(vulkan.device, ticket, vulkan.host.wait_ns, &vulkan.error));
    HOLDS(holds_out(l, round + 100));
    return true;
}

static bool scenario_end(life *l) {
    uint64_t ticket;
    hdi_submission last = list_submission(&l->plan);
    STEP(vulkan.backend->submit(vulkan.device, &last, &ticket, &vulkan.error));
    VOID((vulkan.backend->forget(vulkan.device, l->recording), 0));
    VOID((vulkan.backend->free(vulkan.device, l->large), 0));
    VOID((vulkan.backend->kernel_free(vulkan.device, l->thrice), 0));
    VOID((vulkan.backend->trim(vulkan.device), 0));
    l->recording = NULL;
    STEP(new_memory(LARGE, HD_BUFFER_STORAGE, &l->large));
    last = list_submission(&l->plan);
    l->plan.slots[4].memory = l->large;
    STEP(vulkan.backend->submit(vulkan.device, &last, &ticket, &vulkan.error)); /* close finds it under way */
    return true;
}

static char cache_dir[] = "/tmp/heddle-fault-XXXXXX";

static void empty_cache(void) {
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)); ) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        remove(path);
    }
    closedir(folder);
}

/* One life with the fault that is set. */
static void live(uint32_t at, hdvk_result_row row, int mode, uint64_t fail_at) {
    life l = { 0 };
    fault = (struct fault){ .at = at, .row = row, .mode = mode };
    memory.calls = 0;
    memory.hit = false;
    memory.fail_at = fail_at;
    failed = false;
    vulkan.device = NULL;
    vulkan.error = (hd_error){ 0 };
    empty_cache();
    bool alive = scenario_open();
    alive = alive && scenario_make(&l);
    for (uint32_t round = 0; round < 2 && alive; round++) alive = scenario_run(&l, round);
    alive = alive && scenario_end(&l);
    if (vulkan.device) VOID((vulkan.backend->close(vulkan.device), 0));
    HOLDS(memory.live == 0);
    HOLDS(hdvk_validation_messages() == 0);
    if (fault.hit) HOLDS(failed || may_pass());
}

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
    { "memory apart", HDVK_HIDE_UNIFIED, false, 0 },
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
    vulkan.host.validation = s->validation;
    snprintf(figures, sizeof figures, "%s", s->name);
    live(0, HDVK_ROW_NOT_READY, ONCE, 0);
}

static void sweep(void **state) {
    set_up *s = *state;
    static uint8_t trace[HDI_COUNT(fault.trace)];
    begin(s);
    const uint32_t calls = fault.calls;
    assert_in_range(calls, 50, HDI_COUNT(trace) - 1);
    memcpy(trace, fault.trace, sizeof trace);
    const uint64_t begun = hdi_now_ns();
    for (uint32_t at = 1; at <= calls; at++)
        for (uint32_t row = 0; row < HDVK_ROW_COUNT; row++) {
            const hdvk_function function = (hdvk_function)trace[at];
            if (!allows(function, (hdvk_result_row)row)) continue;
            live(at, (hdvk_result_row)row, ONCE, 0);
            s->faults += fault.hit;
            if (s->validation || row == HDVK_ROW_ERROR_DEVICE_LOST || ends_for_good(function)) continue;
            live(at, (hdvk_result_row)row, BURST, 0);
            s->faults += fault.hit;
        }
    const double ms = (double)(hdi_now_ns() - begun) / 1e6;
    live(0, HDVK_ROW_NOT_READY, ONCE, 0); /* and afterwards all is well */
    print_message("%s: %u fallible calls, %u faults, %.1f ms each\n", s->name, calls, s->faults, ms / s->faults);
}

static void sweep_host_memory(void **state) {
    (void)state;
    uint64_t faults = 0;
    for (size_t i = 0; i < HDI_MIN(set_up_count, (size_t)3); i++) {
        begin(&set_ups[i]);
        const uint64_t calls = memory.calls;
        for (uint64_t at = 1; at <= calls; at++) {
            live(0, HDVK_ROW_NOT_READY, ONCE, at);
            faults += memory.hit;
        }
    }
    live(0, HDVK_ROW_NOT_READY, ONCE, 0);
    print_message("host memory: %llu failed allocations\n", (unsigned long long)faults);
}

static void enough_faults(void **state) {
    (void)state;
    uint32_t total = 0;
    for (size_t i = 0; i < set_up_count; i++) total += set_ups[i].faults;
    print_message("faults in all: %u, validation messages: %llu\n", total, (unsigned long long)hdvk_validation_messages());
    assert_true(total >= 600 * set_up_count);
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
    vulkan.host.wait_ns = 50000000;
    for (int refused = 0; refused < 2; refused++) {
        hdi_probe probe;
        hdvk_fault_set(NULL);
        hdi_backend_vulkan.probe(&vulkan.host, &probe);
        if (!probe.found_count) _exit(0); /* the parent says so */
        if (!scenario_open() || !scenario_make(&l)) _exit(2);
        hdi_submission submission = list_submission(&l.plan);
        submits = 0;
        hdvk_fault_set(refused ? second_piece_refused : never_done);
        const hd_status status = vulkan.backend->submit(vulkan.device, &submission, &ticket, NULL);
        if (status != (refused ? HD_STATUS_OUT_OF_DEVICE_MEMORY : HD_OK)) _exit(3);
        if (!refused && vulkan.backend->wait(vulkan.device, ticket, 1000000, NULL) != HD_STATUS_TIMEOUT) _exit(4);
        if (refused && vulkan.backend->submit(vulkan.device, &submission, &ticket, NULL) != HD_STATUS_DEVICE_LOST) _exit(5);
        const uint64_t begun = hdi_now_ns();
        vulkan.backend->close(vulkan.device);
        if (hdi_now_ns() - begun > UINT64_C(5000000000)) _exit(6);
        if (memory.live != 0) _exit(7);
    }
    _exit(0);
}

static int given_up(void) {
    int result = 1;
    const pid_t child = fork();
    if (child == 0) give_up();
    return waitpid(child, &result, 0) == child ? result : 1;
}
static int given_up_result;

static void test_given_up(void **state) {
    (void)state;
    assert_int_equal(given_up_result, 0);
}

static void print_validation(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    (void)level;
    if (strstr(line, "VUID")) fprintf(stderr, "[%s] %s\n", part, line);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "all") == 0) set_up_count = HDI_COUNT(set_ups);
    static const hdi_log log = { print_validation, NULL, HD_LOG_WARNING };
    vulkan.host = (hdi_host){ .allocator = &counted, .log = &log, .cache_dir = cache_dir, .cpu_threads = 1,
                              .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    given_up_result = given_up(); /* first: a process with Vulkan inside should not fork */
    hdi_probe probe;
    hdi_backend_vulkan.probe(&vulkan.host, &probe);
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
