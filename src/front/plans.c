/* plans.c: plans as the caller sees them: made, written, run, read, bound and ended. */
#include "front/front.h"

/* ---- making and ending ---- */

/* What the wishes say before anything is planned. */
static void wish(hd_plan *plan, hd_device *device, const hd_plan_desc *desc) {
    plan->context = device->context;
    plan->desc = *desc;
    plan->devices[0] = device;
    plan->device_count = 1 + HDI_MIN(desc->beside ? desc->beside_count : 0, (uint32_t)HDI_MOST_DEVICES - 1);
    for (uint32_t d = 1; d < plan->device_count; d++) {
        hd_device *beside = desc->beside[d - 1];
        plan->devices[d] = HDI_FIND(beside) ? beside : NULL;
    }
    plan->program_text.allocator = plan->route_text.allocator = &plan->context->allocator;
    hdi_list_init(&plan->streams);
}

enum { TELLING_RUNS = 8 }; /* what fewer runs took says little */

static void free_plan(hd_plan *plan, bool reusable) {
    const hd_allocator *allocator = &plan->context->allocator;
    for (uint32_t i = 0; i < plan->alternative_count; i++)
        if (plan->run_keys[i] && plan->follow.runs[i] >= TELLING_RUNS)
            hdi_runs_note(&plan->context->runs, plan->run_keys[i], plan->follow.run_ns[i]);
    hdi_shadows_free(plan->shadows);
    for (uint32_t i = 0; i < plan->alternative_count; i++) {
        if (reusable) hdi_idle_put(&plan->context->idle, plan->alternatives[i]);
        else hdi_loaded_end(plan->alternatives[i]);
    }
    hdi_text_free(&plan->program_text);
    hdi_text_free(&plan->route_text);
    hdi_free(allocator, plan->route, plan->route_bytes);
    hdi_free(allocator, plan, sizeof *plan);
}

/* The route's words are needed again after a loss. */
static hd_status keep_route(hd_plan *plan, hd_error *error) {
    if (!plan->desc.route || !plan->desc.failover) return HD_OK;
    plan->route_bytes = strlen(plan->desc.route) + 1;
    plan->route = hdi_alloc(&plan->context->allocator, plan->route_bytes);
    if (!plan->route) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a route");
    memcpy(plan->route, plan->desc.route, plan->route_bytes);
    return HD_OK;
}

static hd_status make(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    hd_status status = hdi_planning_check(plan, error);
    if (status) return status;
    hdi_program_print(program, &plan->program_text);
    if (plan->program_text.failed)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the program's text");
    status = keep_route(plan, error);
    if (!status && saved) status = hdi_planning_load(plan, program, saved, error);
    else if (!status) status = hdi_planning_make(plan, program, error);
    if (!status && plan->desc.failover && !(plan->shadows = hdi_shadows_new(plan->loaded, error)))
        status = HD_STATUS_OUT_OF_HOST_MEMORY;
    return status;
}

static hd_status watch_and_make(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved,
                                hd_error *error) {
    hd_program *watched = NULL;
    hd_status status = plan->context->find_nan && !saved ? hdi_watch_begin(plan, program, &watched, error) : HD_OK;
    if (!status) status = make(plan, watched ? watched : program, saved, error);
    hd_program_destroy(watched);
    return status;
}

static hd_status check_program(const hd_device *device, const hd_program *program, hd_error *error) {
    if (program->context && program->context != device->context)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the program is of another context than the device");
    return hdi_program_check(program, error);
}

hd_status hdi_plan_new(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                       const hdi_saved_plan *saved, hd_plan **out_plan) {
    const hd_plan_desc defaults = { 0 };
    hd_context *context = device->context;
    hd_error error = { 0 };
    hd_status status = check_program(device, program, &error);
    hd_plan *plan = status ? NULL : hdi_alloc(&context->allocator, sizeof *plan);
    if (!status && !plan) status = hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
    if (status) return hdi_context_keep(context, &error);
    wish(plan, device, desc ? desc : &defaults);
    status = watch_and_make(plan, program, saved, &error);
    plan->desc.route = NULL; /* borrowed for the call */
    plan->desc.resident = NULL;
    plan->desc.beside = NULL;
    if (!status) status = HDI_ADD(context, &context->plans, plan, &error);
    if (status) {
        free_plan(plan, false);
        return hdi_context_keep(context, &error);
    }
    *out_plan = plan->held.handle;
    return HD_OK;
}

hd_status hd_plan_create(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan **out_plan) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!out_plan) return HD_STATUS_NULL_POINTER;
    *out_plan = NULL;
    return hdi_plan_new(device, program, desc, NULL, out_plan);
}

void hdi_plan_end(hd_plan *plan) {
    hd_context *context = plan->context;
    hdi_drive_stop(plan->loaded, HD_STATUS_WRONG_STATE);
    hdi_streams_end(plan);
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next)
        if (HDI_OBJECT(at, hd_ticket, held.link)->plan == plan) HDI_OBJECT(at, hd_ticket, held.link)->plan = NULL;
    hdi_mutex_unlock(&context->lock);
    free_plan(plan, !plan->desc.failover);
}

void hd_plan_destroy(hd_plan *plan) {
    if (HDI_FIND(plan) && hdi_context_remove(plan->context, &plan->held)) hdi_plan_end(plan);
}

static hd_status estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                          hd_plan_memory *out_memory, hd_plan_memory *out_each) {
    const hd_plan_desc defaults = { 0 };
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!out_memory && !out_each) return HD_STATUS_NULL_POINTER;
    hd_plan plan = { 0 };
    hd_error error = { 0 };
    wish(&plan, device, desc ? desc : &defaults);
    hd_status status = check_program(device, program, &error);
    if (!status) status = hdi_planning_check(&plan, &error);
    if (!status) status = hdi_planning_estimate(&plan, program, out_memory, out_each, &error);
    hdi_text_free(&plan.route_text);
    return hdi_context_done(device->context, status, &error);
}

hd_status hd_plan_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                           hd_plan_memory *out_memory) {
    return estimate(device, program, desc, out_memory, NULL);
}

hd_status hd_plan_estimate_each(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                                hd_plan_memory *out_memories) {
    return estimate(device, program, desc, NULL, out_memories);
}

/* ---- what is known of a plan ---- */

hd_status hd_plan_get_memory(const hd_plan *plan, hd_plan_memory *out_memory) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_memory) return HD_STATUS_NULL_POINTER;
    *out_memory = plan->memory;
    return HD_OK;
}

static void count_commands(const hdi_schedule *made, hd_plan_stats *stats) {
    for (uint32_t i = 0; i < made->cmds.cmd_count; i++) {
        const hdi_cmd_kind kind = made->cmds.cmds[i].kind;
        stats->dispatches += kind == HDI_CMD_DISPATCH;
        stats->copies += kind == HDI_CMD_COPY;
        stats->fills += kind == HDI_CMD_FILL;
        stats->barriers += kind == HDI_CMD_BARRIER;
    }
    stats->levels += made->level_count;
    stats->kernels += made->cmds.kernel_count;
}

hd_status hd_plan_get_stats(const hd_plan *plan, hd_plan_stats *out_stats) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_stats) return HD_STATUS_NULL_POINTER;
    const hdi_loaded *loaded = plan->loaded;
    *out_stats = plan->stats;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) count_commands(loaded->segments[s]->schedule, out_stats);
    out_stats->segments = loaded->plan->segment_count;
    out_stats->crossing_bytes = loaded->plan->crossing_bytes;
    out_stats->runs = plan->runs;
    out_stats->records = plan->records;
    for (uint32_t i = 0; i < plan->alternative_count; i++) {
        out_stats->runs += plan->alternatives[i]->runs;
        out_stats->records += plan->alternatives[i]->records;
    }
    out_stats->last_submit_ns = loaded->submit_ns;
    out_stats->alternatives = plan->alternative_count;
    return HD_OK;
}

hd_device *hd_plan_device(const hd_plan *plan) { return HDI_FIND(plan) ? plan->devices[0]->held.handle : NULL; }

/* ---- bytes in and out ---- */

hd_status hd_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!name || !data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_loaded_port *port = hdi_port_find(plan->loaded, name, HDI_PORTS(INPUT) | HDI_PORTS(STATE), bytes, &error);
    hd_status status = error.status;
    /* segments that were not handed over yet may read it */
    if (!status) status = hdi_drive(plan->loaded, true, 0, &error);
    if (!status && plan->shadows) status = hdi_shadow_keep(plan->shadows, plan->loaded, port, data, &error);
    if (!status) status = hdi_port_write(plan->loaded, port, data, &error);
    if (!status) port->version = ++plan->writes;
    if (hdi_plan_may_move(plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error); /* writes all host copies, this one too */
    }
    return hdi_context_done(plan->context, status, &error);
}

hd_status hd_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!name || !out_data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const hdi_loaded_port *port =
        hdi_port_find(plan->loaded, name, HDI_PORTS(OUTPUT) | HDI_PORTS(STATE), bytes, &error);
    hd_status status = error.status;
    if (!status) status = hdi_drive(plan->loaded, true, 0, &error);
    const bool output = !status && port->kind == HD_PORT_OUTPUT;
    hdi_loaded *from = output && plan->outputs ? plan->outputs : plan->loaded;
    if (output && !from->ran)
        status = hdi_fail(&error, HD_STATUS_WRONG_STATE, "output \"%s\" is read before the first run", name);
    if (!status) status = hdi_port_read(from, &from->ports[port - plan->loaded->ports], out_data, &error);
    if (hdi_plan_may_move(plan, status)) { /* lost after the run was handed over: do the run again elsewhere */
        const bool ran = plan->loaded->ran;
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error);
        if (!status && ran) status = hdi_plan_run_once(plan, 0, &error);
        if (!status && (port = hdi_port_find(plan->loaded, name, HDI_PORTS(OUTPUT) | HDI_PORTS(STATE), bytes, &error)))
            status = hdi_port_read(plan->loaded, port, out_data, &error);
    }
    return hdi_context_done(plan->context, status, &error);
}

hd_status hd_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!name) return HD_STATUS_NULL_POINTER;
    const uint32_t kinds = HDI_PORTS(INPUT) | HDI_PORTS(STATE) | HDI_PORTS(OUTPUT);
    hd_error error = { 0 };
    const hdi_loaded_port *port = hdi_port_named(plan->loaded, name, kinds, &error);
    hd_status status = error.status;
    if (!status && (plan->desc.failover || plan->alternative_count > 1))
        status = hdi_fail(&error, HD_STATUS_UNSUPPORTED,
                          "\"%s\": a plan with fail-over or alternatives keeps its own memory", name);
    if (!status && offset % 256 != 0)
        status = hdi_fail(&error, HD_STATUS_INVALID_ARGUMENT, "\"%s\": offset %llu is no multiple of 256", name,
                          (unsigned long long)offset);
    if (!status) status = hdi_drive(plan->loaded, true, 0, &error);
    if (!status) status = hdi_port_bind(plan->loaded, port, buffer, offset, &error);
    return hdi_context_done(plan->context, status, &error);
}
