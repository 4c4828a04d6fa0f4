/* opencl.c: the back end's table, and opening and closing a device. */
#include "device/opencl/cl.h"

/* Where work may still run, what it uses is left to the driver. */
static void device_close(hdi_backend_device *device) {
    device->abandoned = device->abandoned || !hdcl_rest(device);
    hdcl_end_jobs(device);
    hdi_takes_end(&device->takes);
    while (!hdi_list_empty(&device->memories)) hdcl_free(device, HDI_OBJECT(device->memories.next, hdi_memory, used.link));
    hdi_used_collect(device, &device->dead, HDI_ALL_DONE, hdcl_memory_end);
    while (!hdi_list_empty(&device->kernels)) hdcl_kernel_free(device, HDI_OBJECT(device->kernels.next, hdi_loaded_kernel, used.link));
    if (device->queue) device->cl.ReleaseCommandQueue(device->queue);
    if (device->context) device->cl.ReleaseContext(device->context);
    hdi_mutex_free(&device->kernels_lock);
    hdi_free(device->host->allocator, device, sizeof *device);
}

/* The device that was found, by its place in the list and its id. */
static hd_status find_again(hdi_backend_device *device, const hdi_found *found, hd_error *error) {
    hdi_found now[HDI_MAX_FOUND];
    hdcl_facts facts[HDI_MAX_FOUND];
    const char *mend;
    uint32_t count = hdcl_load(&device->cl, &mend) ? 0 : hdcl_list(&device->cl, facts, now, HDI_COUNT(now));
    if (found->index >= count || strcmp(now[found->index].info.id, found->info.id) != 0)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "opencl", 0, "device %s is no longer there", found->info.id);
    device->facts = facts[found->index];
    return HD_OK;
}

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign, hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_mutex_init(&device->kernels_lock)) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdcl_no_memory(error, "an OpenCL device");
    }
    device->host = host;
    device->found = *found;
    hdi_list_init(&device->memories);
    hdi_list_init(&device->dead);
    hdi_list_init(&device->kernels);
    device->takes = (hdi_takes){ .device = device, .host = host, .backend = "opencl", .take_bytes = sizeof(hdcl_take), .make = hdcl_take_make,
                                 .end = hdcl_take_end };
    hdi_takes_init(&device->takes);
    hd_status status = find_again(device, found, error);
    if (!status) {
        device->context = HDCL_MAKE(device, CreateContext, NULL, 1, &device->facts.id, NULL, NULL);
        if (device->context) device->queue = HDCL_MAKE(device, CreateCommandQueue, device->context, device->facts.id, CL_QUEUE_PROFILING_ENABLE);
        if (device->queue) hdcl_load_recording(device);
        else status = hdcl_fail(device, error, "opening %s", found->info.id);
    }
    if (status) device_close(device);
    else *out_device = device;
    return status;
}

static void *native(hdi_backend_device *device) { return device->context; }
static void forget(hdi_backend_device *device, hdi_recording *recording) {
    hdi_takes_forget(&device->takes, recording);
    hdi_takes_collect(&device->takes, device->done);
}
static void trim(hdi_backend_device *device) { (void)device; }

const hdi_backend hdi_backend_opencl = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "opencl", .probe = hdcl_probe, .open = device_open,
    .close = device_close, .alloc = hdcl_alloc, .free = hdcl_free, .map = hdcl_map, .kernel_load = hdcl_kernel_load,
    .kernel_free = hdcl_kernel_free, .submit = hdcl_submit, .forget = forget, .poll = hdcl_poll, .wait = hdcl_wait,
    .profile = hdcl_profile, .native = native, .trim = trim,
};
