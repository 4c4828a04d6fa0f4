/* device.c: an opened device. Holds the lock around every call of the back end, remembers loss for good, keeps compiled
 * kernels, and ends objects only when no submission uses them any more. */
#include "device/device.h"
#include <stdio.h>

/* How long one look at a ticket may take while other threads wait for the lock. */
#define LOOK_NS UINT64_C(1000000)

/* Notes a loss and names the device in the error. Called with the lock held. */
static hd_status note(hd_device *device, hd_status status, hd_error *error) {
    if (status == HD_STATUS_DEVICE_LOST) device->lost = status;
    if (status && error && error->device[0] == 0)
        snprintf(error->device, sizeof error->device, "%.63s", device->found.info.name);
    return status;
}

static hd_status refuse_lost(hd_device *device, hd_error *error) {
    if (!device->lost) return HD_OK;
    return note(device,
                hdi_fail_native(error, HD_STATUS_DEVICE_LOST, device->backend->name, 0,
                                "%s was lost earlier and has to be opened anew", device->found.info.id),
                error);
}

hd_status hdi_device_open(const hdi_host *host, const hdi_backend *backend, const hdi_found *found,
                          const hdi_foreign *foreign, hd_device **out_device, hd_error *error) {
    hd_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_mutex_init(&device->lock) || !hdi_mutex_init(&device->transfer_lock)) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a device");
    }
    device->host = host;
    device->backend = backend;
    device->found = *found;
    hd_status status = HD_OK;
    if (foreign && !backend->found)
        status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a Vulkan device was handed in, and %s is another one's",
                          found->info.id);
    if (!status) status = backend->open(host, found, foreign, &device->handle, error);
    if (!status && foreign) device->found = *backend->found(device->handle);
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
static bool free_due(hd_device *device, bool any, hdi_deferred_free *out_deferred) {
    for (uint32_t i = 0; i < device->deferred_count; i++)
        if (any || device->lost || device->deferred_frees[i].ticket <= device->done_ticket) {
            *out_deferred = device->deferred_frees[i];
            device->deferred_frees[i] = device->deferred_frees[--device->deferred_count];
            return true;
        }
    return false;
}

/* Before commands end of which nobody knows that they are done: after a loss, or a wait that failed. */
static void settle(hd_device *device) {
    if (device->backend->settle) device->backend->settle(device->handle);
}

static void end_freed(hd_device *device, bool any) {
    hdi_deferred_free deferred;
    for (;;) {
        hdi_mutex_lock(&device->lock);
        const bool found = free_due(device, any, &deferred), done = found && deferred.ticket <= device->done_ticket;
        hdi_mutex_unlock(&device->lock);
        if (!found) return;
        if (!done) settle(device);
        deferred.end(deferred.object);
    }
}

void hdi_device_free_later(hd_device *device, uint64_t ticket, void (*end)(void *), void *object) {
    hdi_mutex_lock(&device->lock);
    const bool done = ticket <= device->done_ticket;
    const bool kept = !done && !device->lost &&
                      hdi_grow(device->host->allocator, &device->deferred_frees, &device->deferred_capacity,
                               (size_t)device->deferred_count + 1, sizeof *device->deferred_frees);
    if (kept) device->deferred_frees[device->deferred_count++] = (hdi_deferred_free){ ticket, end, object };
    hdi_mutex_unlock(&device->lock);
    if (kept) return;
    /* lost, or no memory to remember it */
    if (!done && hdi_device_wait(device, ticket, 0, NULL) != HD_OK) settle(device);
    end(object);
}

void hdi_device_close(hd_device *device) {
    const hd_allocator *allocator = device->host->allocator;
    hdi_device_wait_all(device, 0, NULL);
    end_freed(device, true);
    hdi_mutex_lock(&device->lock);
    hdi_stage_free(device);
    hdi_trace_free(device);
    for (uint32_t i = 0; i < device->kernel_count; i++)
        device->backend->kernel_free(device->handle, device->kernels[i].loaded);
    device->backend->close(device->handle);
    hdi_mutex_unlock(&device->lock);
    hdi_holdings_free(&device->holdings, allocator);
    hdi_free(allocator, device->kernels, device->kernel_capacity * sizeof *device->kernels);
    hdi_free(allocator, device->deferred_frees, device->deferred_capacity * sizeof *device->deferred_frees);
    hdi_mutex_free(&device->lock);
    hdi_mutex_free(&device->transfer_lock);
    hdi_free(allocator, device, sizeof *device);
}

/* ---- memory ---- */

static hd_status try_alloc(hd_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    if (!status) status = note(device, hdi_fault(device, HDI_FAULT_ALLOC, error), error);
    if (!status) status = note(device, device->backend->alloc(device->handle, desc, out_memory, error), error);
    const bool in_place = !status && device->backend->map(device->handle, *out_memory);
    if (!status && !hdi_holdings_add(&device->holdings, device->host->allocator, *out_memory, desc, in_place)) {
        device->backend->free(device->handle, *out_memory);
        *out_memory = NULL;
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to note an allocation");
    }
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
        if (device->relieve) device->relieve(device);
        hdi_device_wait_all(device, 0, NULL); /* memory freed by work under way comes back now */
        end_freed(device, false);
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
    hdi_holdings_remove(&device->holdings, memory);
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

static uint64_t hash_of(const hdi_module *module) { return module->spirv ? module->spirv->hash : 0; }

static bool same_kernel(const hdi_cached_kernel *cached, uint64_t hash, const hdi_module *module,
                        const hdi_kernel *kernel) {
    bool same_module = hash ? cached->module_hash == hash : cached->module == module;
    return same_module && cached->kernel.spec_count == kernel->spec_count &&
           cached->kernel.subgroup == kernel->subgroup && cached->kernel.keep_subnormals == kernel->keep_subnormals &&
           cached->kernel.binding_count == kernel->binding_count && cached->kernel.push_bytes == kernel->push_bytes &&
           cached->kernel.scratch_bytes == kernel->scratch_bytes &&
           memcmp(cached->kernel.spec, kernel->spec, kernel->spec_count * sizeof kernel->spec[0]) == 0;
}

/* The loaded kernel that is the same, or NULL. Called with the lock held. */
static hdi_loaded_kernel *find_kernel(const hd_device *device, const hdi_wanted_kernel *wanted) {
    const uint64_t hash = hash_of(wanted->module);
    for (uint32_t i = 0; i < device->kernel_count; i++)
        if (same_kernel(&device->kernels[i], hash, wanted->module, wanted->kernel)) return device->kernels[i].loaded;
    return NULL;
}

/* Finds what is in memory; the rest is marked as missing, each kernel once. Gives the number of those. Called with the
 * lock held. */
static uint32_t find_kernels(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count) {
    uint32_t missing = 0;
    device->stats.kernel_requests += count;
    for (uint32_t i = 0; i < count; i++) {
        wanted[i].missing = wanted[i].from_cache = wanted[i].failed = false;
        bool twin = (wanted[i].loaded = find_kernel(device, &wanted[i])) != NULL;
        const hdi_cached_kernel same = { wanted[i].module, hash_of(wanted[i].module), *wanted[i].kernel, NULL };
        for (uint32_t j = 0; j < i && !twin; j++)
            twin =
                wanted[j].missing && same_kernel(&same, hash_of(wanted[j].module), wanted[j].module, wanted[j].kernel);
        device->stats.kernel_hits += twin;
        wanted[i].missing = !twin;
        missing += !twin;
    }
    return missing;
}

typedef struct compilation {
    hd_device         *device;
    hdi_wanted_kernel *wanted;
    uint32_t           failed; /* the first that failed; under the device's lock */
    hd_status          status; /* its */
    hd_error           error;
} compilation;

static bool compile(void *user, uint32_t index) {
    compilation *all = user;
    hdi_wanted_kernel *wanted = &all->wanted[index];
    hd_device *device = all->device;
    hd_error error = { 0 };
    if (!wanted->missing) return true;
    hd_status status = hdi_fault(device, HDI_FAULT_KERNEL, &error);
    if (!status)
        status = device->backend->kernel_load(device->handle, wanted->module, wanted->kernel, &wanted->loaded,
                                              &wanted->from_cache, &error);
    if (!status) return true;
    wanted->loaded = NULL;
    wanted->failed = true;
    hdi_mutex_lock(&device->lock);
    if (!all->status || index < all->failed) {
        all->failed = index;
        all->status = note(device, status, &error);
        all->error = error;
    }
    hdi_mutex_unlock(&device->lock);
    return false;
}

/* Keeps a kernel that was missing; where another thread was quicker, its kernel is taken. Called with the lock held. */
static hd_status keep_kernel(hd_device *device, hdi_wanted_kernel *wanted, hd_error *error) {
    hdi_loaded_kernel *same = find_kernel(device, wanted);
    const bool native = device->found.caps.native_kernels != 0; /* compiled with heddle itself: counts as neither */
    device->stats.kernels_from_cache += wanted->from_cache && !native;
    device->stats.kernels_compiled += !wanted->from_cache && !native;
    const bool kept = !same && hdi_grow(device->host->allocator, &device->kernels, &device->kernel_capacity,
                                        (size_t)device->kernel_count + 1, sizeof *device->kernels);
    if (kept)
        device->kernels[device->kernel_count++] = (hdi_cached_kernel){ wanted->module, hash_of(wanted->module),
                                                                        *wanted->kernel, wanted->loaded };
    else {
        device->backend->kernel_free(device->handle, wanted->loaded);
        wanted->loaded = same;
    }
    return wanted->loaded ? HD_OK : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
}

hd_status hdi_device_kernels(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count, hd_error *error) {
    compilation all = { .device = device, .wanted = wanted };
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    const uint32_t missing = status ? 0 : find_kernels(device, wanted, count);
    hdi_mutex_unlock(&device->lock);
    if (status) return status;
    if (missing)
        hdi_side_by_side(device->found.caps.native_kernels ? 1 : HDI_MIN(device->host->cpu_threads, missing), compile,
                         &all, count);
    hdi_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < count; i++)
        if (wanted[i].missing && wanted[i].loaded) {
            const hd_status kept = keep_kernel(device, &wanted[i], &all.error);
            if (!all.status) all.status = kept;
        }
    for (uint32_t i = 0; i < count && !all.status; i++)
        if (!wanted[i].loaded) wanted[i].loaded = find_kernel(device, &wanted[i]);
    hdi_mutex_unlock(&device->lock);
    if (all.status && error && error->status == HD_OK) *error = all.error;
    return all.status;
}

/* ---- submissions ---- */

hd_status hdi_device_submit(hd_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    hd_status status = refuse_lost(device, error);
    const hdi_queue asked = submission->queue;
    const uint64_t last_ticket = device->last_ticket;
    const uint64_t began_ns = device->trace ? hdi_now_ns() : 0;
    if (device->host->one_queue) submission->queue = HDI_QUEUE_COMPUTE;
    if (device->trace) hdi_trace_prepare(device, submission);
    if (!status) status = note(device, hdi_fault(device, HDI_FAULT_SUBMIT, error), error);
    if (!status && device->host->contracts) status = hdi_contract_before(device, submission, error);
    if (!status) status = note(device, device->backend->submit(device->handle, submission, out_ticket, error), error);
    if (!status) {
        device->last_ticket = *out_ticket;
        if (device->trace) hdi_trace_note(device, submission, asked, began_ns, *out_ticket);
        if (asked != HDI_QUEUE_COMPUTE) device->stats.transfer_submissions++;
        else {
            device->stats.commands_recorded += submission->recorded_out;
            device->stats.submissions++;
            device->stats.pieces += submission->pieces_out;
        }
        if (device->host->contracts) status = hdi_contract_after(device, last_ticket, *out_ticket, error);
    }
    hdi_mutex_unlock(&device->lock);
    return status;
}

/* Called with the lock held. */
static void note_done(hd_device *device, uint64_t ticket) {
    device->done_ticket = HDI_MAX(device->done_ticket, ticket);
    if (device->trace) hdi_trace_collect(device);
}

hd_status hdi_device_poll(hd_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    *out_done = ticket <= device->done_ticket;
    hd_status status = *out_done ? HD_OK : refuse_lost(device, error);
    if (!status && !*out_done) status = note(device, hdi_fault(device, HDI_FAULT_WAIT, error), error);
    if (!status && !*out_done)
        status = note(device, device->backend->poll(device->handle, ticket, out_done, error), error);
    if (!status && *out_done) note_done(device, ticket);
    hdi_mutex_unlock(&device->lock);
    end_freed(device, false);
    return status;
}

/* A wait that fails on purpose; one for too long ends at once. Called with the lock held. */
static hd_status fault_wait(hd_device *device, hd_error *error, uint64_t *left_ns) {
    const hd_status status = note(device, hdi_fault(device, HDI_FAULT_WAIT, error), error);
    if (status) *left_ns = 0;
    return status;
}

hd_status hdi_device_wait(hd_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    uint64_t began = hdi_now_ns(), limit = timeout_ns ? timeout_ns : device->host->wait_ns;
    hd_status status = HD_STATUS_TIMEOUT;
    bool asked = false; /* one wait is one call, however many looks it takes */
    while (status == HD_STATUS_TIMEOUT) {
        hd_error look = { 0 };
        hdi_mutex_lock(&device->lock);
        uint64_t spent = hdi_now_ns() - began, left = limit > spent ? limit - spent : 0;
        if (ticket <= device->done_ticket) status = HD_OK;
        else if ((status = refuse_lost(device, &look)) == HD_OK &&
                 (asked || (status = fault_wait(device, &look, &left)) == HD_OK))
            status = note(device, device->backend->wait(device->handle, ticket, HDI_MIN(left, LOOK_NS), &look), &look);
        asked = true;
        if (!status) note_done(device, ticket);
        hdi_mutex_unlock(&device->lock);
        if (status && (status != HD_STATUS_TIMEOUT || left == 0)) {
            if (status == HD_STATUS_TIMEOUT)
                snprintf(look.text, sizeof look.text, "%s: the work is not done after %llu ms and goes on",
                         device->found.info.id, (unsigned long long)(limit / 1000000));
            if (error && error->status == HD_OK) *error = look;
            break;
        }
    }
    end_freed(device, false);
    return status;
}

hd_status hdi_device_wait_all(hd_device *device, uint64_t timeout_ns, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    const uint64_t last = device->last_ticket;
    hdi_mutex_unlock(&device->lock);
    return hdi_device_wait(device, last, timeout_ns, error);
}

uint32_t hdi_device_heaps(hd_device *device, hd_heap out_heaps[HD_MAX_HEAPS]) {
    hdi_mutex_lock(&device->lock);
    const bool asked = !device->lost && device->backend->heaps;
    const uint32_t count = asked ? device->backend->heaps(device->handle, out_heaps) : 0;
    hdi_mutex_unlock(&device->lock);
    return count;
}
