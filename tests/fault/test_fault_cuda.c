/* test_fault_cuda.c: every fallible call of a whole life of a CUDA device, and of a HIP one, is made to fail in every way that
 * matters to the back end, one at a time, and every host allocation too (life.h). The faults are put in above the driver
 * (HDCU_CALL). Then what a driver says of kernels that failed, and work that never ends. */
#define _GNU_SOURCE
#include "fault/life.h"
#include "cmds/library.h"
#include "device/cuda/cu.h"

/* ---- what the calls may return: any of them may tell of an earlier kernel's failure ---- */

enum { MEMORY, NO_CODE, RESOURCES, LOST, UNKNOWN, ROWS };
static const int codes[ROWS] = { HDCU_OUT_OF_MEMORY, HDCU_NO_BINARY, HDCU_OUT_OF_RESOURCES, HDCU_ILLEGAL_ADDRESS, HDCU_UNKNOWN };

static const char *name_of(uint32_t function) {
    return hdcu_function_name(subject.backend == &hdi_backend_hip ? &hdcu_hip : &hdcu_cuda, (hdcu_function)function);
}
static int32_t code_of(uint32_t row) { return codes[row]; }
static int inject(hdcu_function function) { return life_inject(function); }
static uint64_t under_way(hdi_backend_device *device) { return device->inflight.submitted > device->inflight.done ? device->inflight.submitted : 0; }
static void come_to_rest(hdi_backend_device *device) { /* not by the stream: it may be capturing */
    hdcu_context ours;
    assert_int_equal(device->api.CtxPushCurrent(device->context), HDCU_SUCCESS);
    for (uint64_t ticket = device->inflight.done + 1; ticket <= device->inflight.submitted; ticket++)
        while (device->api.EventQuery(device->jobs[ticket % HDCU_JOBS].done) == HDCU_NOT_READY) usleep(100);
    assert_int_equal(device->api.CtxPopCurrent(&ours), HDCU_SUCCESS);
}
static bool ends_for_good(uint32_t function) {
    (void)function;
    return false;
}

static bool of_compiler(uint32_t function) { return function >= HDCU_FN_CompilerVersion; }
static bool before_context(uint32_t function) { return function <= HDCU_FN_DeviceGetProperties; }

static uint32_t results_of(uint32_t function) {
    switch (function) {
    case HDCU_FN_ModuleLoadData: return 1u << MEMORY | 1u << NO_CODE | 1u << LOST | 1u << UNKNOWN;
    case HDCU_FN_LaunchKernel: return 1u << RESOURCES | 1u << LOST | 1u << UNKNOWN;
    case HDCU_FN_MemAlloc: case HDCU_FN_MemHostAlloc: case HDCU_FN_MemHostRegister: case HDCU_FN_EventCreate: case HDCU_FN_StreamCreate: case HDCU_FN_GraphInstantiate:
        return 1u << MEMORY | 1u << LOST | 1u << UNKNOWN;
    case HDCU_FN_PrimaryCtxRetain: return 1u << MEMORY | 1u << UNKNOWN;
    default: return of_compiler(function) || before_context(function) ? 1u << UNKNOWN : 1u << LOST | 1u << UNKNOWN;
    }
}

static hd_status expected_status(uint32_t function, uint32_t row) {
    static const struct { hd_status status; const char *of; } statuses[] = {
#define HDCU_FUNCTION(library, need, name, status, cuda, hip, parameters) { HD_STATUS_##status, #name },
#include "device/cuda/functions.inc"
    };
    if (row == MEMORY) return HD_STATUS_OUT_OF_DEVICE_MEMORY;
    if (row == RESOURCES) return HD_STATUS_UNSUPPORTED;
    if (row == LOST) return HD_STATUS_DEVICE_LOST;
    return statuses[function].status;
}

/* What the cache does not give is compiled, a graph is made once more without edges that begin early; what only text or a
 * choice rests on may be missing. */
static bool may_pass(uint32_t function, uint32_t row) {
    switch (function) {
    case HDCU_FN_ModuleLoadData: case HDCU_FN_ModuleGetFunction:
    case HDCU_FN_StreamUpdateCaptureEdges: case HDCU_FN_GraphInstantiate: return row != LOST;
    case HDCU_FN_DriverGetVersion: case HDCU_FN_CompilerVersion: case HDCU_FN_GetArchCount: case HDCU_FN_GetArchs: return true;
    default: return false;
    }
}

static const life_driver cuda_driver = { name_of, results_of, code_of, expected_status, may_pass, ends_for_good, under_way, come_to_rest, NULL, ROWS, LOST, true };

/* ---- the sweeps ---- */

static void sweep(void **state) {
    (void)state;
    const uint32_t faults = sweep_calls(subject.backend->name, true);
    assert_true(faults >= 400 / SWEEP_STEP);
}

static void sweep_host_memory(void **state) {
    (void)state;
    const uint32_t faults = sweep_memory(subject.backend->name);
    print_message("host memory: %u failed allocations\n", faults);
    assert_true(faults >= 20 / SWEEP_STEP);
}

/* ---- what the driver says of work ---- */

static int failed_work(hdcu_event event) {
    (void)event;
    return HDCU_LAUNCH_FAILED;
}
static int endless_work(hdcu_event event) {
    (void)event;
    return HDCU_NOT_READY;
}
static int endless_stream(hdcu_stream stream) {
    (void)stream;
    return HDCU_NOT_READY;
}
static int refused_end(hdcu_event event, hdcu_stream stream) {
    (void)event;
    (void)stream;
    return HDCU_UNKNOWN;
}

/* A kernel that failed is a loss: all calls say so, and closing gives everything back. */
static void test_failed_work(void **state) {
    (void)state;
    life l;
    hd_error error = { 0 };
    const uint64_t ticket = begin_work(&l);
    come_to_rest(subject.device);
    subject.device->api.EventQuery = failed_work;
    assert_int_equal(subject.backend->wait(subject.device, ticket, 1000, &error), HD_STATUS_DEVICE_LOST);
    assert_non_null(strstr(error.text, "a kernel failed (719)"));
    hdi_submission submission = list_submission(&l.plan);
    uint64_t none;
    error = (hd_error){ 0 };
    assert_int_equal(subject.backend->submit(subject.device, &submission, &none, &error), HD_STATUS_DEVICE_LOST);
    assert_non_null(strstr(error.text, "a kernel failed"));
    assert_int_equal(subject.backend->poll(subject.device, ticket, &(bool){ false }, NULL), HD_STATUS_DEVICE_LOST);
    subject.backend->close(subject.device);
    assert_int_equal(memory.live, 0);
}

/* Work that never ends: waits end, so does closing, and what the work may still use is left to the driver. Likewise where it
 * was handed over in part only. */
static void give_up(void) {
    life l;
    hdi_probe probe;
    const uint64_t patience = subject.host.wait_ns;
    for (int in_part = 0; in_part < 2; in_part++) {
        subject.host.wait_ns = patience;
        subject.backend->probe(&subject.host, &probe);
        if (!probe.found_count) return; /* the parent says so */
        const uint64_t ticket = begin_work(&l);
        uint64_t none;
        come_to_rest(subject.device);
        subject.device->api.EventQuery = endless_work;
        subject.device->api.StreamQuery = endless_stream;
        subject.host.wait_ns = 50000000;
        if (in_part) subject.device->api.EventRecord = refused_end;
        hdi_submission submission = list_submission(&l.plan);
        if (in_part && subject.backend->submit(subject.device, &submission, &none, NULL) != HD_STATUS_QUEUE) _exit(2);
        const hd_status status = subject.backend->wait(subject.device, ticket, 1000000, NULL);
        if (status != (in_part ? HD_STATUS_DEVICE_LOST : HD_STATUS_TIMEOUT)) _exit(3);
        const uint64_t begun = hdi_now_ns();
        subject.backend->close(subject.device);
        if (hdi_now_ns() - begun > UINT64_C(5000000000)) _exit(4);
        if (memory.live != 0) _exit(5);
        lent_words = NULL;
    }
}
/* ---- products of the library ---- */

enum { M = 24, N = 16, K = 32 };
static int failing;
static int refuse(hdcu_function function) { return (int)function == failing ? HDCU_UNKNOWN : HDCU_SUCCESS; }

static bool must_tell(int function) { return function != HDCU_FN_BlasDestroy && function != HDCU_FN_BlasDescDestroy && function != HDCU_FN_BlasLayoutDestroy && function != HDCU_FN_BlasSearchDestroy; }

static hdi_memory *some_memory(uint64_t bytes, float **out_host) {
    hdi_memory *made = NULL;
    assert_int_equal(subject.backend->alloc(subject.device, &(hdi_alloc_desc){ bytes, HD_BUFFER_UPLOAD, "product", NULL, 0 }, &made, NULL), HD_OK);
    *out_host = subject.backend->map(subject.device, made);
    return made;
}

/* One product, recorded; the status of handing it over. */
static hd_status multiply(const hdi_kernel *kernel, hdi_loaded_kernel *loaded, hd_error *error) {
    static const uint64_t bytes[] = { M * K * sizeof(float), N * K * sizeof(float), M * N * sizeof(float), 1 << 16 };
    hdi_slot slots[4];
    float *host[4];
    hdi_binding bindings[4];
    hdi_cmds cmds;
    uint32_t at, slot;
    uint64_t ticket = 0;
    hdi_recording *recording = NULL;
    hdi_cmds_init(&cmds, &counted);
    for (uint32_t i = 0; i < 4; i++) {
        slots[i] = (hdi_slot){ some_memory(bytes[i], &host[i]), 0, bytes[i] };
        assert_int_equal(hdi_cmds_slot(&cmds, bytes[i], &slot), HD_OK);
        bindings[i] = (hdi_binding){ { slot, 0, bytes[i] }, i < 2 ? HDI_READ : HDI_WRITE };
        for (uint32_t k = 0; i < 2 && k < bytes[i] / sizeof(float); k++) host[i][k] = (float)((int)(k * (i + 3) % 11) - 5);
    }
    assert_int_equal(hdi_cmds_kernel(&cmds, kernel, &at), HD_OK);
    assert_int_equal(hdi_cmds_dispatch(&cmds, at, bindings, 4, NULL, (uint32_t[3]){ 0, 0, 0 }, (uint32_t[3]){ 1, 1, 1 }), HD_OK);
    hdi_submission submission = { .cmds = &cmds, .kernels = &loaded, .slots = slots, .recording = &recording };
    const hd_status status = subject.backend->submit(subject.device, &submission, &ticket, error);
    if (!status) assert_int_equal(subject.backend->wait(subject.device, ticket, UINT64_C(10000000000), NULL), HD_OK);
    for (uint32_t m = 0; m < M && !status; m++)
        for (uint32_t n = 0; n < N; n++) {
            float sum = 0;
            for (uint32_t k = 0; k < K; k++) sum += host[0][m * K + k] * host[1][n * K + k];
            assert_true(host[2][m * N + n] == sum);
        }
    subject.backend->forget(subject.device, recording);
    for (uint32_t i = 0; i < 4; i++) subject.backend->free(subject.device, slots[i].memory);
    hdi_cmds_free(&cmds);
    return status;
}

/* Every function of the library fails once: the right status, and the next try works; without the library a clear word. */
static void test_products(void **state) {
    (void)state;
    static const hdi_module module = { "matmul_library", NULL, NULL, true };
    hdi_kernel kernel = { .module = HDI_USER_MODULE, .spec_count = HDI_PRODUCT_CONSTANTS, .binding_count = 4 };
    const uint32_t constants[HDI_PRODUCT_CONSTANTS - HDI_PRODUCT_OUT_TYPE] = { HD_F32, HD_F32, HD_F32, M, N, K, 1, 1, K, K, 0, 0, 1, 0, 0, 1 << 16 };
    memcpy(kernel.spec + HDI_PRODUCT_OUT_TYPE, constants, sizeof constants);
    hdcu_fault_set(refuse);
    for (failing = HDCU_FN_BlasCreate; failing <= (int)HDCU_FN_COUNT; failing++) {
        hdi_loaded_kernel *loaded = NULL;
        bool cached;
        hd_error error = { 0 };
        if (failing < HDCU_FN_COUNT && !must_tell(failing)) continue;
        fault = (struct fault){ 0 };
        assert_true(scenario_open());
        if (failing == HDCU_FN_COUNT) subject.device->api.BlasCreate = NULL, subject.device->api.products[0] = 0;
        hd_status status = subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, &error);
        if (!status) status = multiply(&kernel, loaded, &error);
        assert_int_equal(status, failing == HDCU_FN_COUNT ? HD_STATUS_RUNTIME_NOT_FOUND : failing == HDCU_FN_BlasMultiply ? HD_STATUS_QUEUE : HD_STATUS_PIPELINE_CREATION);
        assert_non_null(strstr(error.text, failing == HDCU_FN_COUNT ? "cannot be opened" : hdcu_function_name(&hdcu_cuda, (hdcu_function)failing)));
        const int refused = failing;
        failing = -1;
        if (!loaded && refused < HDCU_FN_COUNT) assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, NULL), HD_OK);
        if (loaded) assert_int_equal(multiply(&kernel, loaded, NULL), HD_OK);
        if (loaded) subject.backend->kernel_free(subject.device, loaded);
        failing = refused;
        subject.backend->close(subject.device);
        assert_int_equal(memory.live, 0);
    }
    hdcu_fault_set(inject);
}

static int run_one(const hdi_backend *backend, int given_up) {
    hdi_probe probe;
    subject.backend = backend;
    backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, %s: %s\n", backend->name, probe.reason);
        return 0;
    }
    given_up_result = given_up;
    hdcu_fault_set(inject);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_failed_work), cmocka_unit_test(test_given_up), cmocka_unit_test(sweep_host_memory),
                                        cmocka_unit_test(sweep) };
    const struct CMUnitTest products = cmocka_unit_test(test_products);
    int failures = _cmocka_run_group_tests(backend->name, tests, HDI_COUNT(tests), NULL, NULL);
    if (probe.found[0].caps.product_library) failures += _cmocka_run_group_tests("products", &products, 1, NULL, NULL);
    hdcu_fault_set(NULL);
    return failures;
}

int main(void) {
    static const hdi_log log = { .level = HD_LOG_ERROR }; /* nobody listens */
    static const hdi_backend *const backends[] = { &hdi_backend_cuda, &hdi_backend_hip };
    int given_up[HDI_COUNT(backends)], failures = 0;
    driver = &cuda_driver;
    subject.host = (hdi_host){ .allocator = &counted, .log = &log, .cache_dir = cache_dir, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    for (size_t i = 0; i < HDI_COUNT(backends); i++) { /* before a driver is in this process */
        subject.backend = backends[i];
        given_up[i] = life_in_child(give_up);
    }
    for (size_t i = 0; i < HDI_COUNT(backends); i++) failures += run_one(backends[i], given_up[i]);
    empty_cache();
    rmdir(cache_dir);
    return failures;
}
