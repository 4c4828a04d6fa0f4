/* opencl.c: the back end's table, and opening and closing a device. */
#include "device/opencl/cl.h"

/* Where work may still run, what it uses is left to the driver. */
static void device_close(hdi_backend_device *device) {
    device->abandoned = device->abandoned || !hdcl_rest(device);
    hdcl_end_jobs(device);
    hdi_inflight_end(&device->inflight);
    if (device->queue) device->cl.ReleaseCommandQueue(device->queue);
    if (device->context) device->cl.ReleaseContext(device->context);
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

static const hdi_inflight_functions inflight_functions = {
    .end_memory = hdcl_memory_end, .end_kernel = hdcl_kernel_end,
    .command_buffer_bytes = sizeof(hdcl_command_buffer), .encode = hdcl_record, .end_commands = hdcl_record_end,
};

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_inflight_init(&device->inflight, &inflight_functions, device, host, "opencl")) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdcl_no_memory(error, "an OpenCL device");
    }
    device->host = host;
    device->found = *found;
    hd_status status = find_again(device, found, error);
    if (!status) {
        device->context = HDCL_MAKE(device, CreateContext, NULL, 1, &device->facts.id, NULL, NULL);
        if (device->context)
            device->queue = HDCL_MAKE(device, CreateCommandQueue, device->context, device->facts.id,
                                      CL_QUEUE_PROFILING_ENABLE);
        if (device->queue) hdcl_load_recording(device);
        else status = hdcl_fail(device, error, "opening %s", found->info.id);
    }
    if (status) device_close(device);
    else *out_device = device;
    return status;
}

static void *native(hdi_backend_device *device) { return device->context; }
static void trim(hdi_backend_device *device) { (void)device; }

const hdi_backend hdi_backend_opencl = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "opencl", .probe = hdcl_probe,
    .open = device_open, .close = device_close, .alloc = hdcl_alloc, .free = hdi_inflight_free_memory, .map = hdcl_map,
    .kernel_load = hdcl_kernel_load, .kernel_free = hdi_inflight_free_kernel, .submit = hdcl_submit,
    .forget = hdi_recording_forget, .poll = hdcl_poll, .wait = hdcl_wait, .profile = hdcl_profile, .native = native,
    .trim = trim,
    .borrows = true,
};
