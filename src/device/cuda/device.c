/* device.c: opening and closing a device, and the tables of the two back ends. The device's context is that of the
 * whole process (the primary one); it is current only during a call, since the caller may use the API too. */
#include "device/cuda/cu.h"
#include <stdio.h>

static void enter(hdi_backend_device *device) {
    if (device->context) device->api.CtxPushCurrent(device->context);
}
static void leave(hdi_backend_device *device) {
    hdcu_context ours;
    if (device->context) device->api.CtxPopCurrent(&ours);
}

/* ---- opening and closing ---- */

/* Everything that is left on the device, in the order of who uses whom. */
static void end_objects(hdi_backend_device *device) {
    hdi_inflight_end(&device->inflight);
    hdcu_memory_trim(device);
    hdcu_jobs_end(device);
}

static void device_close(hdi_backend_device *device) {
    hd_error ignored = { 0 };
    enter(device);
    const bool open = device->streams[HDI_QUEUE_COMPUTE] != NULL;
    if (open && device->inflight.submitted > device->inflight.done &&
        hdcu_wait(device, device->inflight.submitted, device->host->wait_ns, &ignored) == HD_STATUS_TIMEOUT)
        device->abandoned = true;
    /* zeroing has no ticket */
    if (open && !device->abandoned) device->abandoned = !hdcu_drain(device, device->host->wait_ns);
    end_objects(device);
    HDCU_END(device, BlasDestroy, device->blas);
    HDCU_END(device, EventDestroy, device->cleared);
    HDCU_END(device, EventDestroy, device->epoch);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) HDCU_END(device, StreamDestroy, device->streams[i]);
    leave(device);
    if (device->context && !device->abandoned) device->api.PrimaryCtxRelease(device->facts.device);
    hdi_free(device->host->allocator, device, sizeof *device);
}

static void init_spares(hdi_backend_device *device) {
    for (uint32_t i = 0; i < 2 * HDCU_SPARE_CLASSES; i++)
        hdi_list_init(&device->spares[i / HDCU_SPARE_CLASSES][i % HDCU_SPARE_CLASSES]);
}

/* The device that was found, by its number and its id. */
static hd_status find_again(hdi_backend_device *device, const hdcu_flavour *flavour, hd_error *error) {
    hdi_found again;
    const char *mend, *reason = hdcu_load(flavour, &device->api, &mend);
    if (reason) return hdi_fail_native(error, HD_STATUS_RUNTIME_NOT_FOUND, flavour->backend, 0, "%s: %s", reason, mend);
    if (!HDCU_CALL(&device->api, Init, 0)) return hdcu_fail(&device->api, error, "opening %s", device->found.info.id);
    hdcu_load_compiler(&device->api);
    if (!hdcu_describe(&device->api, (int)device->found.index, &device->facts, &again) ||
        strcmp(again.info.id, device->found.info.id) != 0)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, flavour->backend, 0, "device %s is no longer there",
                               device->found.info.id);
    return HD_OK;
}

/* The streams, and the event by which the others follow the first one's zeroing. */
static bool open_streams(hdi_backend_device *device) {
    hdcu_api *api = &device->api;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        if (HDCU_CALL(api, StreamCreate, &device->streams[i], HDCU_STREAM_NON_BLOCKING)) continue;
        device->streams[i] = NULL;
        return false;
    }
    if (HDCU_CALL(api, EventCreate, &device->cleared, HDCU_EVENT_NO_TIMING)) return true;
    device->cleared = NULL;
    return false;
}

static const hdi_inflight_functions inflight_functions = {
    .end_memory = hdcu_memory_give_back, .end_kernel = hdcu_kernel_end,
    .command_buffer_bytes = sizeof(hdcu_command_buffer), .encode = hdcu_record, .end_commands = hdcu_record_end,
};

static hd_status device_open(const hdcu_flavour *flavour, const hdi_host *host, const hdi_found *found,
                             hdi_backend_device **out_device, hd_error *error) {
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_inflight_init(&device->inflight, &inflight_functions, device, host, flavour->backend)) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, flavour->backend, 0, "no memory for a device");
    }
    hdcu_api *api = &device->api;
    device->host = host;
    device->found = *found;
    init_spares(device);
    hd_status status = find_again(device, flavour, error);
    if (!status) {
        if (!HDCU_CALL(api, PrimaryCtxRetain, &device->context, device->facts.device)) device->context = NULL;
        enter(device);
        if (!device->context || !open_streams(device)) status = hdcu_fail(api, error, "opening %s", found->info.id);
        leave(device);
    }
    if (status) {
        device_close(device);
        return status;
    }
    device->early_edges = device->found.caps.early_start;
    device->cache =
        (hdi_cache){ host, flavour->backend, hdi_hash(HDI_HASH_START, device->facts.code, strlen(device->facts.code)) };
    if (!api->compiles)
        hdi_log_line(host->log, HD_LOG_WARNING, flavour->backend,
                     "there is no %s, so only kernels in the cache can be used: %s", flavour->compiler_name,
                     flavour->compiler_mend);
    *out_device = device;
    return HD_OK;
}

/* ---- the tables: each call with the device's context ---- */

#define WITHIN(device, status, call) \
    enter(device); \
    hd_status status = (call); \
    leave(device); \
    return status

static hd_status alloc_memory(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory,
                              hd_error *error) {
    WITHIN(device, status, hdcu_alloc(device, desc, out_memory, error));
}
static void free_memory(hdi_backend_device *device, hdi_memory *memory) {
    enter(device);
    hdi_inflight_free_memory(device, memory);
    leave(device);
}
static void *map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->host;
}
static hd_status kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                             hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    WITHIN(device, status, hdcu_kernel_load(device, module, kernel, out_kernel, out_from_cache, error));
}
static void kernel_free(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    enter(device);
    hdi_inflight_free_kernel(device, kernel);
    leave(device);
}
static hd_status submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    WITHIN(device, status, hdcu_submit(device, submission, out_ticket, error));
}
static void forget(hdi_backend_device *device, hdi_recording *recording) {
    enter(device);
    hdi_recording_forget(device, recording);
    leave(device);
}
static hd_status poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    WITHIN(device, status, hdcu_poll(device, ticket, out_done, error));
}
static hd_status await(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    WITHIN(device, status, hdcu_wait(device, ticket, timeout_ns, error));
}
static hd_status profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                         uint32_t *out_count, hd_error *error) {
    WITHIN(device, status, hdcu_profile(device, ticket, out_ns, room, out_count, error));
}
static hd_status span(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error) {
    WITHIN(device, status, hdcu_span(device, ticket, out_ns, error));
}
static void *native(hdi_backend_device *device) { return device->context; }
static void trim(hdi_backend_device *device) {
    enter(device);
    hdcu_memory_trim(device);
    leave(device);
}

static uint32_t heaps(hdi_backend_device *device, hd_heap out_heaps[HD_MAX_HEAPS]) {
    size_t left = 0, total = 0;
    enter(device);
    const bool told = device->api.MemGetInfo && HDCU_CALL(&device->api, MemGetInfo, &left, &total);
    leave(device);
    if (!told || left > total) return 0;
    out_heaps[0] = (hd_heap){ .size_bytes = total, .used_bytes = total - left, .budget_bytes = total, .local = true };
    return 1;
}

#define TABLE(backend, probe_function, open_function) \
    { .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = backend, .probe = probe_function, \
      .open = open_function, \
      .close = device_close, .alloc = alloc_memory, .free = free_memory, .map = map, .kernel_load = kernel_load, \
      .kernel_free = kernel_free, \
      .submit = submit, .forget = forget, .poll = poll, .wait = await, .profile = profile, .native = native, \
          .trim = trim, \
      .span = span, .heaps = heaps, .borrows = true }

static void probe_cuda(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    hdcu_probe(&hdcu_cuda, out_probe);
}
static void probe_hip(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    hdcu_probe(&hdcu_hip, out_probe);
}
static hd_status open_cuda(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                           hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    return device_open(&hdcu_cuda, host, found, out_device, error);
}
static hd_status open_hip(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                          hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    return device_open(&hdcu_hip, host, found, out_device, error);
}
const hdi_backend hdi_backend_cuda = TABLE("cuda", probe_cuda, open_cuda);
const hdi_backend hdi_backend_hip = TABLE("hip", probe_hip, open_hip);
