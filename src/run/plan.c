/* plan.c: a plan as its caller uses it: values by name, and runs of one of its loaded plans. With fail-over a call goes
 * on elsewhere when a device is lost; where NaN are looked for, a run ends with a look at what it told of them. */
#include "run/run.h"
#include <stdlib.h>

/* After a loss, with fail-over, the plan is on other devices, with the bytes that it had. False: it did not move, and
 * `*inout_status` says why. */
static bool moved(hd_plan *plan, hd_status *inout_status, hd_error *error) {
    if (*inout_status != HD_STATUS_DEVICE_LOST || !plan->desc.failover) return false;
    *error = (hd_error){ 0 };
    *inout_status = plan->shared->move(plan, error);
    return *inout_status == HD_OK;
}

bool hdi_plan_has(const hd_plan *plan, const hd_device *device) {
    bool found = false;
    for (uint32_t d = 0; d < plan->device_count; d++) found |= plan->devices[d] == device;
    return found;
}

/* Where the outputs of the last run are. */
static hdi_loaded *ran(const hd_plan *plan) { return plan->outputs ? plan->outputs : plan->loaded; }

/* ---- where NaN come from (program/watch.c) ---- */

/* What was told for each value; `*out_any`: of some that it is not finite. */
static hd_status read_watched(hd_plan *plan, hdi_watched *told, bool *out_any, hd_error *error) {
    hdi_loaded *from = ran(plan);
    hd_status status = HD_OK;
    *out_any = false;
    for (uint32_t p = 0; p < from->plan->port_count && !status; p++) {
        const hdi_loaded_port *port = &from->ports[p];
        if (port->kind != HD_PORT_OUTPUT || strncmp(port->name, HDI_WATCH_NAME, strlen(HDI_WATCH_NAME)) != 0) continue;
        const unsigned long value = strtoul(port->name + strlen(HDI_WATCH_NAME), NULL, 10);
        /* an output of the caller's own */
        if (value == 0 || value > plan->program->node_count || port->bytes != sizeof *told) continue;
        status = hdi_port_read(from, port, &told[value - 1], error);
        *out_any |= told[value - 1].not_finite > 0;
    }
    return status;
}

static hd_status look_for_nan(hd_plan *plan, hd_error *error) {
    const bool infinities = plan->shared->find_nan > 1;
    if (!plan->shared->find_nan || !plan->program) return HD_OK;
    const hd_allocator *allocator = plan->program->allocator;
    hdi_watched *told = hdi_alloc(allocator, plan->program->node_count * sizeof *told);
    bool any = false;
    hd_status status = told ? read_watched(plan, told, &any, error)
                            : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to look for NaN");
    if (!status && any) status = hdi_watch_tell(plan->program, told, infinities, error);
    hdi_free(allocator, told, plan->program->node_count * sizeof *told);
    return status;
}

/* ---- runs ---- */

/* A plan that follows the load goes on where the rule says. Inputs and states go along before the next run; outputs
 * stay. */
static void follow(hd_plan *plan, uint64_t took_ns) {
    hd_error error = { 0 };
    hdi_loaded *next = plan->alternatives[hdi_follow_next(&plan->follow, took_ns, hdi_now_ns())];
    if (next == plan->loaded) return;
    if (hdi_ports_move(plan->loaded, next, &error)) {
        plan->follow.count = 1; /* it stays where it is, for good */
        plan->alternatives[0] = plan->loaded;
        return;
    }
    plan->outputs = plan->loaded;
    plan->loaded = next;
    plan->stats.switches++;
}

static hd_status run(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    const bool timed = plan->run_keys[0] != 0;
    const uint64_t began_ns = timed ? hdi_now_ns() : 0;
    hd_status status = hdi_drive_start(plan->loaded, error);
    if (!status) status = hdi_drive_wait(plan->loaded, timeout_ns, error);
    plan->outputs = NULL;
    if (!status && timed) follow(plan, hdi_now_ns() - began_ns);
    if (!status && plan->shadows) status = hdi_shadows_keep_states(plan->shadows, plan->loaded, error);
    return status ? status : look_for_nan(plan, error);
}

hd_status hdi_plan_run(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    hd_status status;
    do status = run(plan, timeout_ns, error);
    while (moved(plan, &status, error));
    return status;
}

hd_status hdi_plan_start(hd_plan *plan, hd_ticket *ticket, hd_error *error) {
    hd_status status;
    do status = hdi_drive_start(plan->loaded, error);
    while (moved(plan, &status, error));
    if (status) return status;
    plan->outputs = NULL;
    ticket->plan = plan;
    hdi_run_open(plan->loaded, &ticket->run);
    return HD_OK;
}

/* ---- tickets ---- */

/* Carries an open ticket's run on; fails where it never will be done. */
static hd_status carry_on(hd_ticket *ticket, bool wait, uint64_t timeout_ns, hd_error *error) {
    hd_status status = ticket->run.open ? hdi_drive(ticket->plan->loaded, wait, timeout_ns, error) : HD_OK;
    if (!status && ticket->run.failed)
        status = hdi_fail(
            error, ticket->run.failed,
            "the run ended before its last segment or its outputs: it failed, or its plan or stream was ended");
    return status;
}

/* What belongs to a run behind its last submission. */
static hd_status finish(const hd_ticket *ticket, hd_error *error) {
    if (ticket->stream) hdi_stream_deliver(ticket->stream, ticket->number);
    return ticket->plan ? look_for_nan(ticket->plan, error) : HD_OK;
}

hd_status hdi_ticket_poll(hd_ticket *ticket, bool *out_done, hd_error *error) {
    hd_status status = carry_on(ticket, false, 0, error);
    *out_done = !ticket->run.open;
    for (uint32_t d = 0; d < ticket->run.count && !status && *out_done; d++)
        status = hdi_device_poll(ticket->run.last[d].device, ticket->run.last[d].ticket, out_done, error);
    return !status && *out_done ? finish(ticket, error) : status;
}

hd_status hdi_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns, hd_error *error) {
    hd_status status = carry_on(ticket, true, timeout_ns, error);
    for (uint32_t d = 0; d < ticket->run.count && !status; d++)
        status = hdi_device_wait(ticket->run.last[d].device, ticket->run.last[d].ticket, timeout_ns, error);
    if (ticket->plan && moved(ticket->plan, &status, error)) {
        status = hdi_plan_run(ticket->plan, timeout_ns, error);
        hdi_mutex_lock(ticket->plan->shared->lock);
        if (!status) hdi_run_open(ticket->plan->loaded, &ticket->run);
        hdi_mutex_unlock(ticket->plan->shared->lock);
    }
    return status ? status : finish(ticket, error);
}

/* ---- bytes in and out ---- */

hd_status hdi_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes, hd_error *error) {
    hdi_loaded_port *port = hdi_port_find(plan->loaded, name, HDI_PORTS(INPUT) | HDI_PORTS(STATE), bytes, error);
    hd_status status = port ? HD_OK : error->status;
    if (!status && plan->shadows) status = hdi_shadow_keep(plan->shadows, plan->loaded, port, data, error);
    /* segments that were not handed over yet may read it */
    if (!status) status = hdi_drive(plan->loaded, true, 0, error);
    if (!status) status = hdi_port_write(plan->loaded, port, data, error);
    if (!status) port->version = ++plan->writes;
    moved(plan, &status, error); /* that writes all host copies, this one too */
    return status;
}

static hd_status read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes, hd_error *error) {
    const hdi_loaded_port *port =
        hdi_port_find(plan->loaded, name, HDI_PORTS(OUTPUT) | HDI_PORTS(STATE), bytes, error);
    hd_status status = port ? hdi_drive(plan->loaded, true, 0, error) : error->status;
    if (status) return status;
    hdi_loaded *from = port->kind == HD_PORT_OUTPUT ? ran(plan) : plan->loaded;
    if (port->kind == HD_PORT_OUTPUT && !from->ran)
        return hdi_fail(error, HD_STATUS_WRONG_STATE, "output \"%s\" is read before the first run", name);
    return hdi_port_read(from, &from->ports[port - plan->loaded->ports], out_data, error);
}

hd_status hdi_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes, hd_error *error) {
    const bool had_run = plan->loaded->ran || plan->loaded->begun < plan->loaded->plan->segment_count;
    hd_status status;
    do {
        status = read(plan, name, out_data, bytes, error);
        if (!moved(plan, &status, error)) return status;
        /* lost after a run was handed over, or on its way: it is done again elsewhere */
        if (had_run) status = hdi_plan_run(plan, 0, error);
    } while (!status);
    return status;
}

hd_status hdi_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset, hd_error *error) {
    const uint32_t kinds = HDI_PORTS(INPUT) | HDI_PORTS(STATE) | HDI_PORTS(OUTPUT);
    const hdi_loaded_port *port = hdi_port_named(plan->loaded, name, kinds, error);
    if (!port) return error->status;
    if (plan->desc.failover || plan->alternative_count > 1)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "\"%s\": a plan with fail-over or alternatives keeps its own memory", name);
    if (offset % 256 != 0)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "\"%s\": offset %llu is no multiple of 256", name,
                        (unsigned long long)offset);
    const hd_status status = hdi_drive(plan->loaded, true, 0, error);
    return status ? status : hdi_port_bind(plan->loaded, port, buffer, offset, error);
}

/* ---- what is known of it ---- */

void hdi_plan_explain(const hd_plan *plan, hdi_text *out) {
    const hdi_plan *made = plan->loaded->plan;
    hdi_text_add(out, "program\n%s", plan->program_text.bytes);
    if (plan->route_text.count > 0) hdi_text_add(out, "\nroute\n%s", plan->route_text.bytes);
    if (plan->alternative_count > 1)
        hdi_text_add(out, "it follows the load: %u finished plans, number %u runs now, %llu switches so far\n",
                     plan->alternative_count, plan->follow.at, (unsigned long long)plan->stats.switches);
    hdi_plan_print(made, out);
    for (uint32_t d = 0; d < plan->device_count; d++)
        if (made->on[d].total_bytes > 0 || plan->device_count == 1)
            hdi_plan_print_device(&made->caps[d], plan->devices[d]->found.info.id, plan->devices[d]->selection, out);
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

hd_plan_stats hdi_plan_count(const hd_plan *plan) {
    const hdi_loaded *loaded = plan->loaded;
    hd_plan_stats stats = plan->stats;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) count_commands(loaded->segments[s]->schedule, &stats);
    stats.segments = loaded->plan->segment_count;
    stats.crossing_bytes = loaded->plan->crossing_bytes;
    for (uint32_t i = 0; i < plan->alternative_count; i++) {
        stats.runs += plan->alternatives[i]->runs;
        stats.records += plan->alternatives[i]->records;
    }
    stats.last_submit_ns = loaded->submit_ns;
    stats.alternatives = plan->alternative_count;
    return stats;
}

hd_status hdi_plan_timings(hd_plan *plan, hd_timing *out_timings, size_t room, size_t *out_count, hd_error *error) {
    const hd_status status = hdi_drive(plan->loaded, true, 0, error);
    if (status) return status;
    if (!plan->desc.timestamps || !ran(plan)->ran)
        return hdi_fail(error, HD_STATUS_WRONG_STATE, "times need a plan made with timestamps, and a run");
    return hdi_loaded_timings(ran(plan), out_timings, room, out_count, error);
}

/* ---- its end ---- */

void hdi_plan_unload(hd_plan *plan, bool reusable) {
    enum { TELLING_RUNS = 8 }; /* what fewer runs took says little */
    for (uint32_t i = 0; i < plan->alternative_count; i++)
        if (plan->run_keys[i] && plan->follow.runs[i] >= TELLING_RUNS)
            hdi_runs_note(&plan->shared->runs, plan->run_keys[i], plan->follow.run_ns[i]);
    hdi_shadows_free(plan->shadows);
    for (uint32_t i = 0; i < plan->alternative_count; i++) {
        if (reusable) hdi_idle_put(&plan->shared->idle, plan->alternatives[i]);
        else hdi_loaded_end(plan->alternatives[i]);
    }
}
