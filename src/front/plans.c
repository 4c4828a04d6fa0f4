/* plans.c: the caller's view of a plan: write, run, read, by name, whatever its segments; and moving it to another device
 * when one is lost. */
#include "front/front.h"
#include <stdio.h>

hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc) {
    return (hdi_plan_options){ .math = desc->math == HD_MATH_EXACT ? HD_MATH_EXACT : HD_MATH_FAST, .budget_bytes = desc->budget_bytes,
                               .no_fusion = desc->no_fusion != 0, .slice_us = desc->slice_us };
}

/* Keeps the error on the context, if there is one. */
static hd_status done(hd_context *context, hd_status status, const hd_error *error) { return status ? hdi_context_keep(context, error) : HD_OK; }

/* ---- making and ending ---- */

void hdi_plan_fill_stats(hd_plan *plan) {
    hd_plan_stats *stats = &plan->stats;
    stats->dispatches = stats->copies = stats->fills = stats->barriers = stats->levels = stats->kernels = 0;
    stats->segments = plan->part_count;
    for (uint32_t p = 0; p < plan->part_count; p++) {
        const hdi_plan *made = plan->parts[p].core->plan;
        for (uint32_t i = 0; i < made->cmds.cmd_count; i++) {
            hdi_cmd_kind kind = made->cmds.cmds[i].kind;
            stats->dispatches += kind == HDI_CMD_DISPATCH;
            stats->copies += kind == HDI_CMD_COPY;
            stats->fills += kind == HDI_CMD_FILL;
            stats->barriers += kind == HDI_CMD_BARRIER;
        }
        stats->levels += made->level_count;
        stats->kernels += made->cmds.kernel_count;
    }
}

static void free_plan(hd_plan *plan, bool reusable) {
    hdi_parts_end(plan, reusable);
    hdi_text_free(&plan->program_text);
    hdi_routed_free(&plan->routed, &plan->context->allocator);
    hdi_free(&plan->context->allocator, plan, sizeof *plan);
}

hd_status hd_plan_create(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan **out_plan) {
    const hd_plan_desc defaults = { 0 };
    if (!device || !program || !out_plan) return HD_STATUS_NULL_POINTER;
    *out_plan = NULL;
    if (!desc) desc = &defaults;
    hd_context *context = device->context;
    hd_error error = { 0 };
    if ((unsigned)desc->math > HD_MATH_EXACT) return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT, "math %d does not exist", (int)desc->math);
    hd_status status = hdi_program_check(program, &error);
    hd_plan *plan = status ? NULL : hdi_alloc(&context->allocator, sizeof *plan);
    if (!status && !plan) status = hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
    if (status) return hdi_context_keep(context, &error);
    plan->context = context;
    plan->device = device;
    plan->desc = *desc;
    plan->program_text.allocator = plan->segments_text.allocator = plan->routed.text.allocator = &context->allocator;
    hdi_program_print(program, &plan->program_text);
    if (plan->program_text.failed) status = hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the program's text");
    uint64_t hash = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    if (!status) status = hdi_parts_make(plan, program, hash, &error);
    plan->desc.route = NULL; /* borrowed for the call */
    plan->desc.resident = NULL;
    if (status) {
        free_plan(plan, false);
        return hdi_context_keep(context, &error);
    }
    hdi_plan_fill_stats(plan);
    hdi_context_add(context, &context->plans, &plan->link);
    *out_plan = plan;
    return HD_OK;
}

void hdi_plan_end(hd_plan *plan) {
    hd_context *context = plan->context;
    hdi_drive_stop(plan, HD_STATUS_WRONG_STATE);
    hdi_streams_end(plan);
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next)
        if (HDI_OBJECT(at, hd_ticket, link)->plan == plan) HDI_OBJECT(at, hd_ticket, link)->plan = NULL;
    hdi_mutex_unlock(&context->lock);
    hdi_context_remove(context, &plan->link);
    free_plan(plan, !plan->desc.failover);
}

void hd_plan_destroy(hd_plan *plan) {
    if (plan) hdi_plan_end(plan);
}

hd_status hd_plan_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan_memory *out_memory) {
    const hd_plan_desc defaults = { 0 };
    if (!device || !program || !out_memory) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = hdi_program_check(program, &error);
    if (!status) status = hdi_parts_estimate(device, program, desc ? desc : &defaults, out_memory, &error);
    return done(device->context, status, &error);
}

hd_status hd_plan_get_memory(const hd_plan *plan, hd_plan_memory *out_memory) {
    if (!plan || !out_memory) return HD_STATUS_NULL_POINTER;
    *out_memory = plan->memory;
    return HD_OK;
}

hd_status hd_plan_get_stats(const hd_plan *plan, hd_plan_stats *out_stats) {
    if (!plan || !out_stats) return HD_STATUS_NULL_POINTER;
    *out_stats = plan->stats;
    return HD_OK;
}

hd_device *hd_plan_device(const hd_plan *plan) { return plan ? plan->device : NULL; }

/* ---- names ---- */

/* The first part at or after `from` that has a memory of its own for the name; part_count: none. */
static uint32_t find_part(const hd_plan *plan, uint32_t from, const char *name, uint32_t kinds, uint32_t *out_slot) {
    for (uint32_t p = from; p < plan->part_count; p++) {
        const hdi_core_slot *slot = hdi_core_find(plan->parts[p].core, name, kinds, out_slot);
        if (slot && !slot->home) return p;
    }
    return plan->part_count;
}

static hd_status find(hd_plan *plan, const char *name, uint32_t kinds, uint64_t bytes, uint32_t *out_part, uint32_t *out_slot, hd_error *error) {
    *out_part = find_part(plan, 0, name, kinds, out_slot);
    if (*out_part == plan->part_count)
        return hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "no %s is called \"%s\"", kinds == (HDI_KIND(OUTPUT) | HDI_KIND(STATE)) ? "output or state" : "input or state", name);
    const hdi_core *core = plan->parts[*out_part].core;
    const uint64_t wanted = core->plan->slots[*out_slot].tensor_bytes + core->slots[*out_slot].elsewhere;
    if (bytes != wanted) return hdi_fail(error, HD_STATUS_SHAPE, "\"%s\" has %llu bytes, not %llu", name, (unsigned long long)wanted, (unsigned long long)bytes);
    return HD_OK;
}

/* The memory behind a slot, and the ticket that guards it. */
static hdi_memory *memory_of(const hdi_core *core, uint32_t slot, uint64_t *out_offset) {
    const hdi_core_slot *own = &core->slots[slot];
    *out_offset = own->bound ? own->bound_offset : 0;
    return own->bound ? own->bound->memory : own->memory;
}

/* Fail-over needs the bytes again on another device. */
static hd_status keep_shadow(hdi_core *core, uint32_t slot, const void *data, hd_error *error) {
    hdi_core_slot *own = &core->slots[slot];
    uint64_t bytes = core->plan->slots[slot].tensor_bytes;
    if (!own->shadow && bytes <= SIZE_MAX) own->shadow = hdi_alloc(core->device->host->allocator, (size_t)bytes);
    if (!own->shadow) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a host copy of \"%s\"", core->plan->slots[slot].name);
    if (data) hdi_thread_pool_copy(core->device->host->thread_pool, own->shadow, data, bytes);
    return HD_OK;
}

static hd_status write_slot(hdi_core *core, uint32_t slot, const void *data, hd_error *error) {
    uint64_t offset, bytes = core->plan->slots[slot].tensor_bytes;
    hd_status status = hdi_core_memory(core, slot, error);
    if (status) return status;
    hdi_memory *memory = memory_of(core, slot, &offset);
    status = hdi_device_write(core->device, memory, offset, (const char *)data + core->slots[slot].port_at, bytes, &core->last_ticket, error);
    if (!status) core->slots[slot].written = true;
    return status;
}

static bool may_move(const hd_plan *plan, hd_status status) { return status == HD_STATUS_DEVICE_LOST && plan->desc.failover; }

hd_status hd_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes) {
    if (!plan || !name || !data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    uint32_t part, slot;
    hd_status status = find(plan, name, HDI_KIND(INPUT) | HDI_KIND(STATE), bytes, &part, &slot, &error);
    if (!status) status = hdi_drive(plan, true, 0, &error); /* segments that were not handed over yet may read it */
    if (!status && plan->desc.failover) status = keep_shadow(plan->parts[part].core, slot, data, &error);
    for (; !status && part < plan->part_count; part = find_part(plan, part + 1, name, HDI_KIND(INPUT) | HDI_KIND(STATE), &slot))
        status = write_slot(plan->parts[part].core, slot, data, &error);
    if (may_move(plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error); /* writes all shadows, this one too */
    }
    return done(plan->context, status, &error);
}

hd_status hd_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset) {
    if (!plan || !name || !buffer) return HD_STATUS_NULL_POINTER;
    const uint32_t kinds = HDI_KIND(INPUT) | HDI_KIND(STATE) | HDI_KIND(OUTPUT);
    hd_context *context = plan->context;
    hd_error error = { 0 };
    uint32_t slot, other;
    const uint32_t part = find_part(plan, 0, name, kinds, &slot);
    if (part == plan->part_count) return hdi_context_fail(context, HD_STATUS_NAME_NOT_FOUND, "no input, state or output is called \"%s\"", name);
    hdi_core *core = plan->parts[part].core;
    uint64_t bytes = core->plan->slots[slot].bytes, end;
    if (plan->desc.failover) return hdi_context_fail(context, HD_STATUS_UNSUPPORTED, "\"%s\": a plan with fail-over keeps its own memory", name);
    if (find_part(plan, part + 1, name, kinds, &other) < plan->part_count)
        return hdi_context_fail(context, HD_STATUS_UNSUPPORTED, "\"%s\" is used on both devices of the plan; write it instead", name);
    if (buffer->device != core->device) return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT, "\"%s\": the buffer is on another device", name);
    if (offset % 256 != 0) return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT, "\"%s\": offset %llu is no multiple of 256", name, (unsigned long long)offset);
    if (!hdi_add_u64(offset, bytes, &end) || end > ((buffer->bytes + 3) & ~UINT64_C(3)))
        return hdi_context_fail(context, HD_STATUS_LIMIT, "\"%s\" needs bytes %llu+%llu of a buffer that has %llu", name, (unsigned long long)offset,
                                (unsigned long long)bytes, (unsigned long long)buffer->bytes);
    hd_status status = hdi_drive(plan, true, 0, &error);
    if (status) return hdi_context_keep(context, &error);
    core->slots[slot].bound = buffer;
    core->slots[slot].bound_offset = offset;
    return HD_OK;
}

/* ---- running ---- */

/* After a run with fail-over, the states are what a later move needs. */
static hd_status keep_states(hd_plan *plan, hd_error *error) {
    hdi_core *core = plan->parts[0].core;
    for (uint32_t i = 0; i < core->plan->slot_count; i++) {
        if (core->plan->slots[i].kind != HDI_STORAGE_STATE) continue;
        hd_status status = keep_shadow(core, i, NULL, error);
        if (!status) status = hdi_device_read(core->device, core->slots[i].memory, 0, core->slots[i].shadow, core->plan->slots[i].tensor_bytes, core->last_ticket, error);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status run_once(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    hd_status status = hdi_drive_start(plan, error);
    if (!status) status = hdi_drive_wait(plan, timeout_ns, error);
    if (!status && plan->desc.failover) status = keep_states(plan, error);
    return status;
}

/* Runs, and again on the next device as often as one is lost. */
static hd_status run_somewhere(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    for (;;) {
        hd_error attempt = { 0 };
        hd_status status = run_once(plan, timeout_ns, &attempt);
        if (!may_move(plan, status)) {
            if (status && error->status == HD_OK) *error = attempt;
            return status;
        }
        if ((status = hdi_plan_move(plan, error))) return status;
    }
}

hd_status hd_plan_run(hd_plan *plan, const hd_run_desc *desc) {
    if (!plan) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = run_somewhere(plan, desc ? desc->timeout_ns : 0, &error);
    return done(plan->context, status, &error);
}

static hd_status read_slot(const hdi_core *core, uint32_t slot, void *out_data, hd_error *error) {
    uint64_t offset;
    hdi_memory *memory = memory_of(core, slot, &offset);
    return hdi_device_read(core->device, memory, offset, (char *)out_data + core->slots[slot].port_at, core->plan->slots[slot].tensor_bytes, core->last_ticket, error);
}

/* The output or state from all parts that have rows of it. */
static hd_status read_port(hd_plan *plan, const char *name, void *out_data, hd_error *error) {
    const uint32_t kinds = HDI_KIND(OUTPUT) | HDI_KIND(STATE);
    hd_status status = HD_OK;
    uint32_t slot;
    for (uint32_t part = find_part(plan, 0, name, kinds, &slot); part < plan->part_count && !status; part = find_part(plan, part + 1, name, kinds, &slot)) {
        status = hdi_core_memory(plan->parts[part].core, slot, error);
        if (!status) status = read_slot(plan->parts[part].core, slot, out_data, error);
    }
    return status;
}

hd_status hd_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes) {
    if (!plan || !name || !out_data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    uint32_t part, slot;
    hd_status status = find(plan, name, HDI_KIND(OUTPUT) | HDI_KIND(STATE), bytes, &part, &slot, &error);
    if (!status) status = hdi_drive(plan, true, 0, &error);
    const bool output = !status && plan->parts[part].core->plan->slots[slot].kind == HDI_STORAGE_OUTPUT;
    if (output && !plan->ran) status = hdi_fail(&error, HD_STATUS_WRONG_STATE, "output \"%s\" is read before the first run", name);
    if (status) return hdi_context_keep(plan->context, &error);
    status = read_port(plan, name, out_data, &error);
    if (may_move(plan, status)) { /* lost after the run was handed over: do the run again elsewhere */
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error);
        if (!status && plan->ran) status = run_somewhere(plan, 0, &error);
        if (!status) status = read_port(plan, name, out_data, &error);
    }
    return done(plan->context, status, &error);
}

/* ---- moving ---- */

/* The best device that was not lost, opened already or opened now. */
static hd_status next_device(hd_context *context, const hd_device *lost, hd_device **out_device, hd_error *error) {
    for (uint32_t i = 0; i < context->registry.ranked_count; i++) {
        const hdi_found *found = context->registry.ranked[i];
        if (found->info.kind == HD_DEVICE_NULL || strcmp(found->info.id, lost->found.info.id) == 0) continue;
        bool failed = false;
        hd_device *open = NULL;
        hdi_mutex_lock(&context->lock);
        for (hdi_link *at = context->devices.next; at != &context->devices; at = at->next) {
            hd_device *device = HDI_OBJECT(at, hd_device, link);
            if (strcmp(device->found.info.id, found->info.id) != 0) continue;
            failed |= device->lost != HD_OK;
            if (!device->lost) open = device;
        }
        hdi_mutex_unlock(&context->lock);
        *out_device = open;
        if (open) return HD_OK;
        if (!failed && !hdi_front_open(context, found, NULL, "requested=fail-over because=\"another device was lost\"", out_device, NULL)) return HD_OK;
    }
    return hdi_fail(error, HD_STATUS_DEVICE_LOST, "%s was lost and no other device is left", lost->found.info.id);
}

static hd_status move_bytes(hdi_core *from, hdi_core *to, hd_error *error) {
    for (uint32_t i = 0; i < from->plan->slot_count; i++) {
        const hdi_plan_slot *slot = &from->plan->slots[i];
        uint32_t target;
        if (!from->slots[i].shadow || !hdi_core_find(to, slot->name, HDI_KIND(INPUT) | HDI_KIND(STATE), &target)) continue;
        to->slots[target].shadow = from->slots[i].shadow;
        from->slots[i].shadow = NULL;
        hd_status status = write_slot(to, target, to->slots[target].shadow, error);
        if (status) return status;
    }
    return HD_OK;
}

hd_status hdi_plan_move(hd_plan *plan, hd_error *error) {
    hd_context *context = plan->context;
    hd_device *device;
    hd_program *program;
    hdi_core *core;
    hd_status status = next_device(context, plan->device, &device, error);
    if (status) return status;
    status = hd_program_parse(context, plan->program_text.bytes, plan->program_text.count, &program);
    if (status) return hdi_fail(error, status, "the program could not be read again for another device");
    uint64_t hash = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    status = hdi_core_make(device, program, &plan->desc, hash, &core, error);
    hd_program_destroy(program);
    if (status) return status;
    hdi_core *old = plan->parts[0].core; /* the only one */
    status = move_bytes(old, core, error);
    plan->device = device;
    plan->parts[0] = (hdi_part){ core, 0 };
    plan->memory = core->plan->memory;
    plan->stats.failovers++;
    hdi_plan_fill_stats(plan);
    hdi_log_line(&context->log, HD_LOG_WARNING, "plan", "%s was lost: the plan goes on on %s", old->device->found.info.id, device->found.info.id);
    hdi_core_retire(old, false);
    return may_move(plan, status) ? hdi_plan_move(plan, error) : status;
}

/* ---- tickets ---- */

hd_status hd_plan_submit(hd_plan *plan, hd_ticket **out_ticket) {
    if (!plan || !out_ticket) return HD_STATUS_NULL_POINTER;
    *out_ticket = NULL;
    hd_context *context = plan->context;
    hd_error error = { 0 };
    hd_ticket *ticket = hdi_alloc(&context->allocator, sizeof *ticket);
    if (!ticket) return hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a ticket");
    hd_status status = hdi_drive_start(plan, &error);
    if (may_move(plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error);
        if (!status) status = hdi_drive_start(plan, &error);
    }
    if (status) {
        hdi_free(&context->allocator, ticket, sizeof *ticket);
        return hdi_context_keep(context, &error);
    }
    ticket->context = context;
    ticket->plan = plan;
    ticket->open = plan->begun < plan->part_count;
    hdi_drive_last(plan, ticket->last);
    hdi_context_add(context, &context->tickets, &ticket->link);
    *out_ticket = ticket;
    return HD_OK;
}

/* Carries an open ticket's run on; fails where it never will be done. */
static hd_status drive_ticket(hd_ticket *ticket, bool wait, uint64_t timeout_ns, hd_error *error) {
    hd_status status = ticket->open ? hdi_drive(ticket->plan, wait, timeout_ns, error) : HD_OK;
    if (!status && ticket->failed) status = hdi_fail(error, ticket->failed, "the run ended before its last segment or its outputs: it failed, or its plan or stream was ended");
    return status;
}

hd_status hd_ticket_poll(hd_ticket *ticket, bool *out_done) {
    if (!ticket || !out_done) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = drive_ticket(ticket, false, 0, &error);
    *out_done = !ticket->open;
    for (uint32_t d = 0; d < 2 && !status && *out_done; d++)
        if (ticket->last[d].device) status = hdi_device_poll(ticket->last[d].device, ticket->last[d].ticket, out_done, &error);
    if (!status && *out_done) hdi_stream_deliver(ticket);
    return done(ticket->context, status, &error);
}

hd_status hd_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns) {
    if (!ticket) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = drive_ticket(ticket, true, timeout_ns, &error);
    for (uint32_t d = 0; d < 2 && !status; d++)
        if (ticket->last[d].device) status = hdi_device_wait(ticket->last[d].device, ticket->last[d].ticket, timeout_ns, &error);
    if (ticket->plan && may_move(ticket->plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(ticket->plan, &error);
        if (!status) status = run_somewhere(ticket->plan, timeout_ns, &error);
        hdi_drive_last(ticket->plan, ticket->last);
    }
    if (!status) hdi_stream_deliver(ticket);
    return done(ticket->context, status, &error);
}

void hdi_ticket_end(hd_ticket *ticket) {
    hd_context *context = ticket->context;
    hdi_context_remove(context, &ticket->link);
    hdi_free(&context->allocator, ticket, sizeof *ticket);
}

void hd_ticket_destroy(hd_ticket *ticket) {
    if (ticket) hdi_ticket_end(ticket);
}
