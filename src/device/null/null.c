/* null.c: a device that accepts everything and computes nothing, for tests of what stands above the seam, and the
 * shortest complete back end: begin a new one by copying this file and renaming `null`. Copies and fills are done, so
 * that transfers can be tested; dispatches are only counted. It is never taken unless it is asked for by name. */
#include "device/backend.h"
#include <stdio.h>

struct hdi_memory {
    hdi_link link;
    uint64_t bytes, unused; /* a head of a multiple of 16 bytes keeps the data aligned */
    char     data[];
};
struct hdi_loaded_kernel {
    hdi_link link;
};
struct hdi_recording {
    char unused; /* there is one for all: nothing is encoded, so nothing is kept */
};
struct hdi_backend_device {
    const hdi_host *host;
    hdi_link        memories, kernels; /* what is still alive when the device is closed */
    hdi_mutex       kernels_lock;      /* guards `kernels`, which several threads load */
    hdi_recording   recording;
    uint64_t        tickets;
};

static void probe(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    memset(out_probe, 0, sizeof *out_probe);
    hdi_found *found = &out_probe->found[0];
    out_probe->found_count = 1;
    snprintf(found->info.id, sizeof found->info.id, "null");
    snprintf(found->info.name, sizeof found->info.name, "computes nothing");
    snprintf(found->info.backend, sizeof found->info.backend, "null");
    snprintf(found->info.driver, sizeof found->info.driver, "heddle %s", hd_version());
    found->info.kind = HD_DEVICE_NULL;
    found->info.memory_bytes = UINT64_C(1) << 40;
    found->caps = (hdi_caps){
        .memory_bytes = UINT64_C(1) << 40, .host_bytes = UINT64_C(1) << 40, .max_allocation_bytes = UINT64_C(1) << 40,
        .max_binding_bytes = UINT32_MAX, .binding_align = 256, .max_bindings = HDI_MAX_BINDINGS, .max_push_bytes = 128,
        .max_workgroup = 1024, .max_workgroup_x = 1024, .max_groups_x = INT32_MAX, .max_groups_y = 65535,
        .max_groups_z = 65535, .shared_bytes = 32768, .subgroup = 32, .dispatch_base = 1, .unified_memory = 1,
        .host_visible = 1 };
    snprintf(found->caps.name, sizeof found->caps.name, "null");
}

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    (void)found;
    (void)foreign;
    *out_device = hdi_alloc(host->allocator, sizeof **out_device);
    if (!*out_device || !hdi_mutex_init(&(*out_device)->kernels_lock)) {
        hdi_free(host->allocator, *out_device, sizeof **out_device);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the null device");
    }
    (*out_device)->host = host;
    hdi_list_init(&(*out_device)->memories);
    hdi_list_init(&(*out_device)->kernels);
    return HD_OK;
}

static hd_status device_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory,
                              hd_error *error) {
    uint64_t bytes;
    hdi_memory *memory = NULL;
    if (hdi_add_u64(desc->bytes, sizeof *memory, &bytes) && bytes <= SIZE_MAX)
        memory = hdi_alloc(device->host->allocator, (size_t)bytes);
    if (!memory)
        return hdi_fail_native(error, HD_STATUS_OUT_OF_DEVICE_MEMORY, "null", 0, "the system has no %llu bytes left",
                               (unsigned long long)desc->bytes);
    memory->bytes = desc->bytes;
    hdi_list_add(&device->memories, &memory->link);
    *out_memory = memory;
    return HD_OK;
}

static void device_free(hdi_backend_device *device, hdi_memory *memory) {
    hdi_list_remove(&memory->link);
    hdi_free(device->host->allocator, memory, sizeof *memory + (size_t)memory->bytes);
}

static void *device_map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->data;
}

static hd_status kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                             hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    (void)kernel;
    *out_from_cache = false;
    *out_kernel = hdi_alloc(device->host->allocator, sizeof **out_kernel);
    if (!*out_kernel) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernel %s", module->name);
    hdi_mutex_lock(&device->kernels_lock);
    hdi_list_add(&device->kernels, &(*out_kernel)->link);
    hdi_mutex_unlock(&device->kernels_lock);
    return HD_OK;
}

static void kernel_free(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    hdi_mutex_lock(&device->kernels_lock);
    hdi_list_remove(&kernel->link);
    hdi_mutex_unlock(&device->kernels_lock);
    hdi_free(device->host->allocator, kernel, sizeof *kernel);
}

static void device_close(hdi_backend_device *device) {
    while (!hdi_list_empty(&device->memories)) device_free(device, HDI_OBJECT(device->memories.next, hdi_memory, link));
    while (!hdi_list_empty(&device->kernels))
        kernel_free(device, HDI_OBJECT(device->kernels.next, hdi_loaded_kernel, link));
    hdi_mutex_free(&device->kernels_lock);
    hdi_free(device->host->allocator, device, sizeof *device);
}

static char *slot_pointer(const hdi_submission *submission, hdi_range range) {
    const hdi_slot *slot = &submission->slots[range.slot];
    return slot->memory->data + slot->offset + range.offset;
}

static hd_status submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    (void)error;
    const hdi_cmds *cmds = submission->cmds;
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &cmds->cmds[i];
        if (cmd->kind == HDI_CMD_COPY)
            memcpy(slot_pointer(submission, cmd->as.copy.to), slot_pointer(submission, cmd->as.copy.from),
                   (size_t)cmd->as.copy.to.bytes);
        if (cmd->kind == HDI_CMD_FILL)
            for (uint64_t at = 0; at < cmd->as.fill.to.bytes; at += 4)
                memcpy(slot_pointer(submission, cmd->as.fill.to) + at, &cmd->as.fill.value, 4);
    }
    submission->recorded_out = 0;
    submission->pieces_out = 1;
    if (submission->recording && !*submission->recording) {
        *submission->recording = &device->recording;
        submission->recorded_out = cmds->cmd_count;
    }
    *out_ticket = ++device->tickets;
    return HD_OK;
}

static void forget(hdi_backend_device *device, hdi_recording *recording) {
    (void)device;
    (void)recording;
}

static hd_status poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    (void)device;
    (void)ticket;
    (void)error;
    *out_done = true;
    return HD_OK;
}

static hd_status wait_done(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    (void)device;
    (void)ticket;
    (void)timeout_ns;
    (void)error;
    return HD_OK;
}

static hd_status profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                         uint32_t *out_count, hd_error *error) {
    (void)device;
    (void)ticket;
    (void)out_ns;
    (void)room;
    *out_count = 0;
    return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "null", 0, "the null device has no clock");
}

static void *native(hdi_backend_device *device) {
    (void)device;
    return NULL;
}

static void trim(hdi_backend_device *device) { (void)device; }

const hdi_backend hdi_backend_null = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "null", .probe = probe, .open = device_open,
    .close = device_close, .alloc = device_alloc, .free = device_free, .map = device_map, .kernel_load = kernel_load,
    .kernel_free = kernel_free, .submit = submit, .forget = forget, .poll = poll, .wait = wait_done, .profile = profile,
    .native = native, .trim = trim,
};
