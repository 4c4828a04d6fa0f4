/* core.c: a segment made real on its device: kernels compiled, memory allocated, submissions bound. */
#include "run/run.h"

/* ---- making ---- */

const hdi_module *hdi_core_module(const hdi_core *core, uint32_t id) {
    return id >= HDI_USER_MODULE ? &core->modules[id - HDI_USER_MODULE] : hdi_module_get(id);
}

static hd_status wrap_user_kernels(hdi_core *core, hd_error *error) {
    const hd_allocator *allocator = core->device->host->allocator;
    uint32_t count = core->schedule->kernel_count;
    if (count == 0) return HD_OK;
    core->modules = hdi_alloc(allocator, count * sizeof *core->modules);
    core->blobs = hdi_alloc(allocator, count * sizeof *core->blobs);
    if (!core->modules || !core->blobs)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for own kernels");
    for (uint32_t i = 0; i < count; i++) {
        const hdi_user_kernel *user = core->schedule->kernels[i];
        core->blobs[i] = (hdi_blob){ user->words, user->word_count, user->hash, user->info.entry };
        core->modules[i] = (hdi_module){ .name = "user", .spirv = &core->blobs[i] };
    }
    return HD_OK;
}

static hd_status load_kernels(hdi_core *core, hd_error *error) {
    const hdi_cmds *cmds = &core->schedule->cmds;
    const hd_allocator *allocator = core->device->host->allocator;
    hdi_wanted_kernel *wanted = hdi_alloc(allocator, cmds->kernel_count * sizeof *wanted);
    core->kernels = hdi_alloc(allocator, cmds->kernel_count * sizeof(hdi_loaded_kernel *));
    hd_status status = HD_OK;
    if (!wanted || !core->kernels) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernels");
    for (uint32_t i = 0; i < cmds->kernel_count && !status; i++)
        wanted[i] = (hdi_wanted_kernel){ .module = hdi_core_module(core, cmds->kernels[i].module),
                                         .kernel = &cmds->kernels[i] };
    if (!status) status = hdi_device_kernels(core->device, wanted, cmds->kernel_count, error);
    for (uint32_t i = 0; i < cmds->kernel_count && !status; i++) core->kernels[i] = wanted[i].loaded;
    hdi_free(allocator, wanted, cmds->kernel_count * sizeof *wanted);
    return status;
}

/* Small inputs and outputs lie where the host sees them: a step then needs no transfer of its own. Larger ones are
 * better off in the device's own memory, reached by copies. An input that the host cannot write there is read across
 * the bus, so that only what steps are told, tokens and positions and masks, counts as small, and none that many
 * workgroups read all of, as weights of a norm; where many kernels read it, the plan fetches it first. An output is
 * written once and read by no kernel. */
#define SMALL_BYTES (UINT64_C(1) << 20)

hd_status hdi_core_alloc(const hdi_core *core, uint32_t at, hdi_memory **out_memory, hd_error *error) {
    const hdi_schedule_slot *slot = &core->schedule->slots[at];
    const hdi_core_slot *own = &core->slots[at];
    bool small_input = slot->kind == HDI_STORAGE_INPUT &&
                       (core->device->found.caps.host_visible
                            ? slot->bytes <= SMALL_BYTES
                            : slot->bytes <= HDI_ACROSS_BYTES && !slot->read_everywhere);
    bool small_output = slot->kind == HDI_STORAGE_OUTPUT && slot->bytes <= SMALL_BYTES && !slot->read && !own->shared;
    static const hd_memory_kind kinds[] = {
        [HDI_STORAGE_SCRATCH] = HD_MEMORY_SCRATCH,   [HDI_STORAGE_INPUT] = HD_MEMORY_INPUT,
        [HDI_STORAGE_STATE] = HD_MEMORY_STATE,       [HDI_STORAGE_OUTPUT] = HD_MEMORY_OUTPUT,
        [HDI_STORAGE_CONSTANT] = HD_MEMORY_CONSTANT,
    };
    hdi_alloc_desc desc = { slot->bytes,
                            small_input    ? HD_BUFFER_UPLOAD
                            : small_output ? HD_BUFFER_READBACK
                                           : HD_BUFFER_STORAGE,
                            slot->name ? slot->name : "scratch", NULL, kinds[slot->kind] };
    return hdi_device_alloc(core->device, &desc, out_memory, error);
}

static hd_status ensure_memory(hdi_core *core, uint32_t at, hd_error *error) {
    hdi_core_slot *own = &core->slots[at];
    if (own->memory || own->bound || own->home) return HD_OK; /* a home's was made when its segment was handed over */
    if (own->reused && own->reused->memory) return HD_OK;     /* else the caller bound his own there */
    hd_status status = hdi_core_alloc(core, at, &own->memory, error);
    if (!status) own->memory_bytes = core->schedule->slots[at].bytes;
    return status;
}

static hd_status make_constants(hdi_core *core, hd_error *error) {
    const hd_allocator *allocator = core->device->host->allocator;
    core->slots = hdi_alloc(allocator, core->schedule->slot_count * sizeof *core->slots);
    core->bindings = hdi_alloc(allocator, core->schedule->slot_count * sizeof *core->bindings);
    if (!core->slots || !core->bindings) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for slots");
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
        const hdi_schedule_slot *slot = &core->schedule->slots[i];
        if (slot->kind != HDI_STORAGE_CONSTANT) continue;
        hd_status status = ensure_memory(core, i, error);
        if (!status)
            status = hdi_device_write(core->device, core->slots[i].memory, 0, slot->data, slot->bytes,
                                      &core->last_ticket, error);
        if (status) return status;
    }
    return HD_OK;
}

/* Named slots are made when they are first written or run, since the caller may bind his own. */
hd_status hdi_core_allocate(hdi_core *core, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < core->schedule->slot_count && !status; i++)
        if (core->schedule->slots[i].kind == HDI_STORAGE_SCRATCH) status = ensure_memory(core, i, error);
    return status;
}

uint64_t hdi_core_bytes(const hdi_core *core) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) bytes += core->slots[i].memory_bytes;
    return bytes;
}

hd_status hdi_core_clear_states(hdi_core *core, hd_error *error) {
    hdi_cmds cmds;
    hdi_cmds_init(&cmds, core->device->host->allocator);
    hd_status status = HD_OK;
    uint32_t used = 0, slot;
    for (uint32_t i = 0; i < core->schedule->slot_count && !status; i++) {
        if (core->schedule->slots[i].kind != HDI_STORAGE_STATE || !core->slots[i].memory) continue;
        core->bindings[used++] = (hdi_slot){ core->slots[i].memory, 0, core->schedule->slots[i].bytes };
        status = hdi_cmds_slot(&cmds, core->schedule->slots[i].bytes, &slot);
        if (!status) status = hdi_cmds_fill(&cmds, (hdi_range){ slot, 0, core->schedule->slots[i].bytes }, 0);
    }
    if (status) hdi_fail(error, status, "no memory to clear states");
    hdi_submission submission = { .cmds = &cmds, .slots = core->bindings, .queue = HDI_QUEUE_UPLOAD };
    if (!status && used > 0) status = hdi_device_submit(core->device, &submission, &core->last_ticket, error);
    if (!status && used > 0) status = hdi_device_wait(core->device, core->last_ticket, 0, error);
    hdi_cmds_free(&cmds);
    return status;
}

static hd_status check_schedule(const hdi_core *core, hd_error *error) {
    hd_device *device = core->device;
    if (!device->host->contracts) return HD_OK;
    hd_status status = hdi_schedule_check(core->schedule, error);
    hdi_mutex_lock(&device->lock);
    status = hdi_contract_keep(device, status, error);
    hdi_mutex_unlock(&device->lock);
    return status;
}

hd_status hdi_core_make(hd_device *device, hdi_schedule *schedule, hdi_core **out_core, hd_error *error) {
    hdi_core *core = hdi_alloc(device->host->allocator, sizeof *core);
    if (!core) {
        hdi_schedule_free(schedule);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
    }
    core->device = device;
    core->schedule = schedule;
    hd_status status = check_schedule(core, error);
    if (!status) status = wrap_user_kernels(core, error);
    if (!status) status = load_kernels(core, error);
    if (!status) status = make_constants(core, error);
    if (status) hdi_core_end(core);
    else *out_core = core;
    return status;
}

/* ---- ending ---- */

static void end_now(void *object) {
    hdi_core *core = object;
    hd_device *device = core->device;
    const hd_allocator *allocator = device->host->allocator;
    uint32_t slot_count = core->schedule ? core->schedule->slot_count : 0,
             kernel_count = core->schedule ? core->schedule->cmds.kernel_count : 0;
    if (core->recording) {
        hdi_mutex_lock(&device->lock);
        device->backend->forget(device->handle, core->recording);
        hdi_mutex_unlock(&device->lock);
    }
    for (uint32_t i = 0; core->slots && i < slot_count; i++) {
        hdi_core_bind(core, i, NULL, 0);
        hdi_device_free(device, core->slots[i].memory, core->slots[i].memory_bytes);
    }
    uint32_t user_count = core->schedule ? core->schedule->kernel_count : 0;
    hdi_free(allocator, core->slots, slot_count * sizeof *core->slots);
    hdi_free(allocator, core->bindings, slot_count * sizeof *core->bindings);
    hdi_free(allocator, core->kernels, kernel_count * sizeof(hdi_loaded_kernel *));
    hdi_free(allocator, core->modules, user_count * sizeof *core->modules);
    hdi_free(allocator, core->blobs, user_count * sizeof *core->blobs);
    hdi_schedule_free(core->schedule);
    hdi_free(allocator, core, sizeof *core);
}

void hdi_core_end(hdi_core *core) {
    if (core) hdi_device_free_later(core->device, core->last_ticket, end_now, core);
}

/* ---- using ---- */

hdi_core_slot *hdi_core_find(hdi_core *core, const char *name, uint32_t kinds, uint32_t *out_slot) {
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
        const hdi_schedule_slot *slot = &core->schedule->slots[i];
        if (slot->name && (kinds >> slot->kind & 1) && strcmp(slot->name, name) == 0) {
            *out_slot = i;
            return &core->slots[i];
        }
    }
    return NULL;
}

hd_status hdi_core_memory(hdi_core *core, uint32_t slot, hd_error *error) { return ensure_memory(core, slot, error); }

/* The slot whose memory it is. */
static hdi_core_slot *home_of(const hdi_core *core, uint32_t slot) {
    return core->slots[slot].home ? core->slots[slot].home : &core->slots[slot];
}

hdi_slot hdi_core_where(const hdi_core *core, uint32_t slot) {
    const hdi_core_slot *own = home_of(core, slot);
    const uint64_t bytes = core->schedule->slots[slot].bytes;
    if (own->bound) return (hdi_slot){ own->bound->memory, own->bound_offset, bytes };
    return (hdi_slot){ own->memory || !own->reused ? own->memory : own->reused->memory, 0, bytes };
}

hd_status hdi_core_check_inputs(const hdi_core *core, const hdi_slot *instead, hd_error *error) {
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
        const hdi_schedule_slot *slot = &core->schedule->slots[i];
        const hdi_core_slot *own = home_of(core, i);
        if (own->bereft)
            return hdi_fail(error, HD_STATUS_WRONG_STATE,
                            "\"%s\" was bound to a buffer that was destroyed; bind another one",
                            slot->name ? slot->name : "?");
        if (slot->kind == HDI_STORAGE_INPUT && !own->written && !own->bound && !(instead && instead[i].memory))
            return hdi_fail(error, HD_STATUS_WRONG_STATE, "input \"%s\" was never written", slot->name);
    }
    return HD_OK;
}

static hd_status bind_all(hdi_core *core, const hdi_slot *instead, hd_error *error) {
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
        if (instead && instead[i].memory) {
            core->bindings[i] = instead[i];
            continue;
        }
        hd_status status = ensure_memory(core, i, error);
        if (status) return status;
        core->bindings[i] = hdi_core_where(core, i);
    }
    return HD_OK;
}

hd_status hdi_core_submit(hdi_core *core, const hdi_core_run *run, uint64_t *out_records, hd_error *error) {
    hd_status status = bind_all(core, run->instead, error);
    if (status) return status;
    hdi_submission submission = { .cmds = &core->schedule->cmds,
                                  .kernels = core->kernels,
                                  .slots = core->bindings,
                                  .timestamps = run->timestamps,
                                  .recording = run->recording ? run->recording : &core->recording,
                                  .run = run->number };
    status = hdi_device_submit(core->device, &submission, &core->last_ticket, error);
    if (status) return status;
    *out_records = submission.recorded_out;
    for (uint32_t i = 0; i < core->schedule->slot_count; i++)
        if (home_of(core, i)->bound) atomic_store(&home_of(core, i)->bound->last_ticket, core->last_ticket);
    return HD_OK;
}
