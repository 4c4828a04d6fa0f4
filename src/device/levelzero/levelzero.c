/* levelzero.c: the back end's table, and opening and closing a device. */
#include "device/levelzero/ze.h"

/* Where work may still run, what it uses is left to the driver. */
static void device_close(hdi_backend_device *device) {
    device->abandoned = device->abandoned || !hdze_rest(device);
    hdze_jobs_end(device);
    hdi_inflight_end(&device->inflight);
    HDZE_END(device, CommandListDestroy, device->clear_list);
    HDZE_END(device, CommandQueueDestroy, device->clear_queue);
    HDZE_END(device, CommandQueueDestroy, device->queue);
    HDZE_END(device, ContextDestroy, device->context);
    hdi_free(device->host->allocator, device, sizeof *device);
}

/* The device that was found, by its place in the list and its id. */
static hd_status find_again(hdi_backend_device *device, const hdi_found *found, hd_error *error) {
    hdi_found now[HDI_MAX_FOUND];
    hdze_facts facts[HDI_MAX_FOUND];
    const char *mend;
    uint32_t count = hdze_load(&device->ze, &mend) ? 0 : hdze_list(&device->ze, facts, now, HDI_COUNT(now));
    if (found->index >= count || strcmp(now[found->index].info.id, found->info.id) != 0)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "levelzero", 0, "device %s is no longer there",
                               found->info.id);
    device->facts = facts[found->index];
    return HD_OK;
}

static bool make_queues(hdi_backend_device *device) {
    const ze_context_desc_t context = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    const ze_command_queue_desc_t queue = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                            .ordinal = device->facts.compute_ordinal,
                                            .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS };
    if (!HDZE_CALL(device, ContextCreate, device->facts.driver, &context, &device->context)) device->context = NULL;
    else if (!HDZE_CALL(device, CommandQueueCreate, device->context, device->facts.device, &queue, &device->queue))
        device->queue = NULL;
    else if (HDZE_CALL(device, CommandQueueCreate, device->context, device->facts.device, &queue, &device->clear_queue))
        return true;
    else device->clear_queue = NULL;
    return false;
}

static const hdi_inflight_functions inflight_functions = {
    .end_memory = hdze_memory_end, .end_kernel = hdze_kernel_end,
    .command_buffer_bytes = sizeof(hdze_command_buffer), .encode = hdze_record, .end_commands = hdze_record_end,
};

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    (void)foreign;
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_inflight_init(&device->inflight, &inflight_functions, device, host, "levelzero")) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdze_no_memory(error, "a Level Zero device");
    }
    device->host = host;
    device->found = *found;
    hd_status status = find_again(device, found, error);
    if (!status && !make_queues(device)) status = hdze_fail(device, error, "opening %s", found->info.id);
    if (status) {
        device_close(device);
        return status;
    }
    device->cache = (hdi_cache){ host, "levelzero",
                                 hdi_hash(HDI_HASH_START, device->facts.identity, strlen(device->facts.identity)) };
    *out_device = device;
    return HD_OK;
}

static void *map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->visible ? memory->address : NULL;
}
static void *native(hdi_backend_device *device) { return device->facts.device; }
static void trim(hdi_backend_device *device) { (void)device; }

const hdi_backend hdi_backend_levelzero = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "levelzero", .probe = hdze_probe,
    .open = device_open, .close = device_close, .alloc = hdze_alloc, .free = hdi_inflight_free_memory, .map = map,
    .kernel_load = hdze_kernel_load, .kernel_free = hdi_inflight_free_kernel, .submit = hdze_submit,
    .forget = hdi_recording_forget, .poll = hdze_poll, .wait = hdze_wait, .profile = hdze_profile, .native = native,
    .trim = trim,
};
