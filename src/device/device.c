/* device.c: an opened device. Holds the lock around every call of the back end, remembers loss for good, keeps compiled
 * kernels, and ends objects only when no submission uses them any more. */
#include "device/device.h"
#include <stdio.h>

/* How long one look at a ticket may take while other threads wait for the lock. */
#define LOOK_NS UINT64_C(1000000)

/* Notes a loss and names the device in the error. Called with the lock held. */
static hd_status note(hd_device *device, hd_status status, hd_error *error) {
    if (status == HD_STATUS_DEVICE_LOST) device->lost = status;
    if (status && error && error->device[0] == 0) snprintf(error->device, sizeof error->device, "%.63s", device->found.info.name);
    return status;
}

static hd_status refuse_lost(hd_device *device, hd_error *error) {
    if (!device->lost) return HD_OK;
    return note(device, hdi_fail_native(error, HD_STATUS_DEVICE_LOST, device->backend->name, 0, "%s was lost earlier and has to be opened anew", device->found.info.id), error);
}

hd_status hdi_device_open(const hdi_host *host, const hdi_backend *backend, const hdi_found *found, const hdi_foreign *foreign,
                          hd_device **out_device, hd_error *error) {
    hd_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_mutex_init(&device->lock) || !hdi_mutex_init(&device->transfer_lock)) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a device");
    }
    device->host = host;
    device->backend = backend;
    device->found = *found;
    hd_status status = backend->open(host, found, foreign, &device->handle, error);
    if (status) {
        note(device, status, error);
        hdi_mutex_free(&device->lock);
        hdi_mutex_free(&device->transfer_lock);
        hdi_free(host->allocator, device, sizeof *device);
        return status;
    }
    *out_device = device;
    return HD_OK;
}

/* Takes out one object whose submission is done (or, at the end, any). Called with the lock held. */
static bool exhume(hd_device *device, bool any, hdi_burial *out_burial) {
    for (uint32_t i = 0; i < device->burial_count; i++)
        if (any || device->lost || device->burials[i].ticket <= device->done_ticket) {
            *out_burial = device->burials[i];
            device->burials[i] = device->burials[--device->burial_count];
            return true;
        }
    return false;
}

static void end_buried(hd_device *device, bool any) {
    hdi_burial burial;
    for (;;) {
        hdi_mutex_lock(&device->lock);
        bool found = exhume(device, any, &burial);
        hdi_mutex_unlock(&device->lock);
        if (!found) return;
        burial.end(burial.object);
    }
}

void hdi_device_bury(hd_device *device, uint64_t ticket, void (*end)(void *), void *object) {
    hdi_mutex_lock(&device->lock);
    bool done = ticket <= device->done_ticket || device->lost;
    bool kept = !done && hdi_grow(device->host->allocator, &device->burials, &device->burial_capacity, (size_t)device->burial_count + 1, sizeof *device->burials);
    if (kept) device->burials[device->burial_count++] = (hdi_burial){ ticket, end, object };
    hdi_mutex_unlock(&device->lock);
    if (kept) return;
    if (!done) hdi_device_wait(device, ticket, 0, NULL); /* no memory to remember it: the one case that waits */
    end(object);
}

void hdi_device_close(hd_device *device) {
    const hd_allocator *allocator = device->host->allocator;
    hdi_device_wait(device, device->last_ticket, 0, NULL);
    end_buried(device, true);
    hdi_mutex_lock(&device->lock);
    hdi_stage_free(device);
    for (uint32_t i = 0; i < device->kernel_count; i++) device->backend->kernel_free(device->handle, device->kernels[i].loaded);
    device->backend->close(device->handle);
    hdi_mutex_unlock(&device->lock);
    hdi_free(allocator, device->kernels, device->kernel_capacity * sizeof *device->kernels);
    hdi_free(allocator, device->burials, device->burial_capacity * sizeof *device->burials);
    hdi_mutex_free(&device->lock);
    hdi_mutex_free(&device->transfer_lock);
    hdi_free(allocator, device, sizeof *device);
}

/* ---- memory ---- */

static hd_status try_alloc(hd_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    if (!status) status = note(device, device->backend->alloc(device->handle, desc, out_memory, error), error);
    if (!status) {
        device->stats.allocations++;
        device->stats.device_bytes += desc->bytes;
        device->stats.device_bytes_peak = HDI_MAX(device->stats.device_bytes_peak, device->stats.device_bytes);
    }
    hdi_mutex_unlock(&device->lock);
    return status;
}

hd_status hdi_device_alloc(hd_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    hd_error first = { 0 };
    hd_status status = try_alloc(device, desc, out_memory, &first);
    if (status == HD_STATUS_OUT_OF_DEVICE_MEMORY) {
        if (device->relieve) device->relieve(device->relieve_user);
        hdi_device_wait(device, device->last_ticket, 0, NULL); /* memory freed by work under way comes back now */
        end_buried(device, false);
        hdi_mutex_lock(&device->transfer_lock);
        hdi_mutex_lock(&device->lock);
        hdi_stage_free(device);
        device->backend->trim(device->handle);
        hdi_mutex_unlock(&device->lock);
        hdi_mutex_unlock(&device->transfer_lock);
        memset(&first, 0, sizeof first);
        status = try_alloc(device, desc, out_memory, &first);
    }
    if (status && error && error->status == HD_OK) *error = first;
    return status;
}

void hdi_device_free(hd_device *device, hdi_memory *memory, uint64_t bytes) {
    if (!memory) return;
    hdi_mutex_lock(&device->lock);
    device->backend->free(device->handle, memory);
    device->stats.allocations--;
    device->stats.device_bytes -= bytes;
    hdi_mutex_unlock(&device->lock);
}

void *hdi_device_map(hd_device *device, hdi_memory *memory) {
    hdi_mutex_lock(&device->lock);
    void *pointer = device->backend->map(device->handle, memory);
    hdi_mutex_unlock(&device->lock);
    return pointer;
}

/* ---- kernels ---- */

static bool same_kernel(const hdi_cached_kernel *cached, uint64_t hash, const hdi_module *module, const hdi_kernel *kernel) {
    bool same_module = hash ? cached->module_hash == hash : cached->module == module;
    return same_module && cached->kernel.spec_count == kernel->spec_count && cached->kernel.subgroup == kernel->subgroup && cached->kernel.keep_subnormals == kernel->keep_subnormals &&
           cached->kernel.binding_count == kernel->binding_count && cached->kernel.push_bytes == kernel->push_bytes &&
           cached->kernel.scratch_bytes == kernel->scratch_bytes &&
           memcmp(cached->kernel.spec, kernel->spec, kernel->spec_count * sizeof kernel->spec[0]) == 0;
}

static hd_status load_kernel(hd_device *device, const hdi_module *module, uint64_t hash, const hdi_kernel *kernel, hdi_loaded_kernel **out_kernel, hd_error *error) {
    if (!hdi_grow(device->host->allocator, &device->kernels, &device->kernel_capacity, (size_t)device->kernel_count + 1, sizeof *device->kernels))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
    bool from_cache = false;
    hd_status status = device->backend->kernel_load(device->handle, module, kernel, out_kernel, &from_cache, error);
    if (status) return note(device, status, error);
    bool native = device->found.caps.native_kernels != 0; /* compiled with heddle itself: counts as neither */
    device->stats.kernels_from_cache += from_cache && !native;
    device->stats.kernels_compiled += !from_cache && !native;
    device->kernels[device->kernel_count++] = (hdi_cached_kernel){ module, hash, *kernel, *out_kernel };
    return HD_OK;
}

hd_status hdi_device_kernel(hd_device *device, const hdi_module *module, const hdi_kernel *kernel, hdi_loaded_kernel **out_kernel, hd_error *error) {
    uint64_t hash = module->spirv ? module->spirv->hash : 0;
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    device->stats.kernel_requests++;
    for (uint32_t i = 0; i < device->kernel_count && !status; i++)
        if (same_kernel(&device->kernels[i], hash, module, kernel)) {
            device->stats.kernel_hits++;
            *out_kernel = device->kernels[i].loaded;
            hdi_mutex_unlock(&device->lock);
            return HD_OK;
        }
    if (!status) status = load_kernel(device, module, hash, kernel, out_kernel, error);
    hdi_mutex_unlock(&device->lock);
    return status;
}

/* ---- submissions ---- */

hd_status hdi_device_submit(hd_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    if (!status) status = note(device, device->backend->submit(device->handle, submission, out_ticket, error), error);
    if (!status) {
        device->last_ticket = *out_ticket;
        if (submission->transfer) device->stats.transfer_submissions++;
        else {
            device->stats.commands_recorded += submission->recorded_out;
            device->stats.submissions++;
            device->stats.pieces += submission->pieces_out;
        }
    }
    hdi_mutex_unlock(&device->lock);
    return status;
}

hd_status hdi_device_poll(hd_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    *out_done = ticket <= device->done_ticket;
    hd_status status = *out_done ? HD_OK : refuse_lost(device, error);
    if (!status && !*out_done) status = note(device, device->backend->poll(device->handle, ticket, out_done, error), error);
    if (!status && *out_done) device->done_ticket = HDI_MAX(device->done_ticket, ticket);
    hdi_mutex_unlock(&device->lock);
    end_buried(device, false);
    return status;
}

hd_status hdi_device_wait(hd_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    uint64_t began = hdi_now_ns(), limit = timeout_ns ? timeout_ns : device->host->wait_ns;
    hd_status status = HD_STATUS_TIMEOUT;
    while (status == HD_STATUS_TIMEOUT) {
        hd_error look = { 0 };
        hdi_mutex_lock(&device->lock);
        uint64_t spent = hdi_now_ns() - began, left = limit > spent ? limit - spent : 0;
        if (ticket <= device->done_ticket) status = HD_OK;
        else if ((status = refuse_lost(device, &look)) == HD_OK)
            status = note(device, device->backend->wait(device->handle, ticket, HDI_MIN(left, LOOK_NS), &look), &look);
        if (!status) device->done_ticket = HDI_MAX(device->done_ticket, ticket);
        hdi_mutex_unlock(&device->lock);
        if (status && (status != HD_STATUS_TIMEOUT || left == 0)) {
            if (status == HD_STATUS_TIMEOUT)
                snprintf(look.text, sizeof look.text, "%s: the work is not done after %llu ms and goes on", device->found.info.id, (unsigned long long)(limit / 1000000));
            if (error && error->status == HD_OK) *error = look;
            break;
        }
    }
    end_buried(device, false);
    return status;
}
