/* webgpu.c: the back end's table, and opening and closing a device. */
#include "device/webgpu/wg.h"

/* Where work may still run, what it uses is left to the driver. */
static void device_close(hdi_backend_device *device) {
    device->abandoned = !hdwg_rest(device);
    hdwg_jobs_end(device);
    hdi_inflight_end(&device->inflight);
    hdwg_kernel_drop(device, &device->bytes_kernel);
    HDWG_END(device, Queue, device->queue);
    HDWG_END(device, Device, device->device);
    HDWG_END(device, Adapter, device->adapter);
    HDWG_END(device, Instance, device->instance);
    hdi_free(device->host->allocator, device, sizeof *device);
}

/* The adapter that was found, by its place in the list and its id. */
static hd_status find_again(hdi_backend_device *device, const hdi_found *found, hd_error *error) {
    hdi_found now[HDI_MAX_FOUND];
    hdwg_facts facts[HDI_MAX_FOUND];
    WGPUAdapter adapters[HDI_MAX_FOUND];
    const char *mend;
    if (hdwg_load(&device->wg, &mend))
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "webgpu", 0, "the library is no longer there");
    device->instance = hdwg_instance_new(&device->wg);
    if (!device->instance) return hdwg_fail(device, error, "opening %s", found->info.id);
    const uint32_t count = hdwg_list(&device->wg, device->instance, facts, adapters, now, HDI_COUNT(now));
    const bool there = found->index < count && strcmp(now[found->index].info.id, found->info.id) == 0;
    for (uint32_t i = 0; i < count; i++)
        if (!there || i != found->index) device->wg.AdapterRelease(adapters[i]);
    if (!there)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "webgpu", 0, "device %s is no longer there", found->info.id);
    device->adapter = adapters[found->index];
    device->facts = facts[found->index];
    return HD_OK;
}

typedef struct answer {
    WGPUDevice device;
    bool       came;
} answer;
static void on_device(uint32_t status, WGPUDevice device, WGPUStringView message, void *user, void *unused) {
    answer *a = user;
    (void)message;
    (void)unused;
    *a = (answer){ status == WGPU_SUCCESS ? device : NULL, true };
}

/* With all that the adapter has. */
static bool request_device(hdi_backend_device *device) {
    static const uint32_t features[] = { WGPU_FEATURE_TIMESTAMP_QUERY, WGPU_FEATURE_TIMESTAMPS_IN_ENCODERS };
    answer given = { NULL, false };
    const WGPUDeviceDescriptor desc = {
        .feature_count = device->facts.has_timestamps ? HDI_COUNT(features) : 0, .features = features,
        .limits = &device->facts.limits,
        .lost = { .mode = WGPU_CALLBACK_SPONTANEOUS, .callback = hdwg_on_loss, .user = device },
        .error = { .callback = hdwg_on_error, .user = device } };
    const WGPURequestDeviceCallbackInfo info = { .mode = WGPU_CALLBACK_SPONTANEOUS,
                                                 .callback = on_device,
                                                 .user = &given };
    const bool asked = HDWG_CALL(device, AdapterRequestDevice, device->adapter, &desc, info);
    if (asked && !given.came) device->wg.InstanceProcessEvents(device->instance);
    device->device = given.device;
    return hdwg_after_making(given.device) && HDWG_MAKE(device, &device->queue, DeviceGetQueue, device->device) &&
           hdwg_bytes_kernel_make(device);
}

static const hdi_inflight_functions inflight_functions = {
    .end_memory = hdwg_memory_end, .end_kernel = hdwg_kernel_end,
    .command_buffer_bytes = sizeof(hdwg_command_buffer), .encode = hdwg_record, .end_commands = hdwg_record_end,
};

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_inflight_init(&device->inflight, &inflight_functions, device, host, "webgpu")) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdwg_no_memory(error, "a WebGPU device");
    }
    device->host = host;
    device->found = *found;
    hd_status status = find_again(device, found, error);
    if (!status && !request_device(device)) status = hdwg_fail(device, error, "opening %s", found->info.id);
    if (status) device_close(device);
    else *out_device = device;
    return status;
}

static void *map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->host;
}
static void *native(hdi_backend_device *device) { return device->device; }
static void trim(hdi_backend_device *device) { (void)device; }

const hdi_backend hdi_backend_webgpu = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "webgpu", .probe = hdwg_probe,
    .open = device_open, .close = device_close, .alloc = hdwg_alloc, .free = hdi_inflight_free_memory, .map = map,
    .kernel_load = hdwg_kernel_load, .kernel_free = hdi_inflight_free_kernel, .submit = hdwg_submit,
    .forget = hdi_recording_forget, .poll = hdwg_poll, .wait = hdwg_wait, .profile = hdwg_profile, .native = native,
    .trim = trim,
};
