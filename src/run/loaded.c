/* loaded.c: the segments of a plan made real together, and loaded plans that wait to be used again. */
#include "run/run.h"

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
}

/* ---- making ---- */

/* Slots that share memory know whose it is. */
static void link_cores(hdi_loaded *loaded) {
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) {
        hdi_core *core = loaded->segments[s];
        for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
            const hdi_plan_slot *at = &loaded->plan->segments[s].slots[i];
            hdi_core_slot *slot = &core->slots[i];
            slot->shared = at->shared;
            slot->home = at->home_segment == s &&
                         at->home_slot == i ? NULL : &loaded->segments[at->home_segment]->slots[at->home_slot];
            slot->reused = at->reuses ? &loaded->segments[at->reused_segment]->slots[at->reused_slot] : NULL;
            slot->written = at->inside;
        }
    }
}

static bool has_piece(const hdi_plan *plan, uint32_t s, uint32_t i, uint32_t port) {
    const hdi_plan_slot *at = &plan->segments[s].slots[i];
    return at->port == port + 1 && at->home_segment == s && at->home_slot == i;
}

/* Where each port lies, in the order of segments. */
static hd_status find_ports(hdi_loaded *loaded, hd_error *error) {
    const hdi_plan *plan = loaded->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count; i++)
            loaded->piece_count += plan->segments[s].slots[i].port > 0;
    loaded->ports = hdi_alloc(loaded->allocator, plan->port_count * sizeof *loaded->ports);
    loaded->pieces = hdi_alloc(loaded->allocator, loaded->piece_count * sizeof *loaded->pieces);
    if ((!loaded->ports && plan->port_count) || (!loaded->pieces && loaded->piece_count)) return no_memory(error);
    uint32_t used = 0;
    for (uint32_t p = 0; p < plan->port_count; p++) {
        hdi_loaded_port *port = &loaded->ports[p];
        *port = (hdi_loaded_port){ .name = plan->ports[p].name,
                                   .kind = plan->ports[p].kind,
                                   .bytes = plan->ports[p].bytes,
                                   .pieces = loaded->pieces + used };
        for (uint32_t s = 0; s < plan->segment_count; s++)
            for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count; i++)
                if (has_piece(plan, s, i, p))
                    port->pieces[port->piece_count++] = (hdi_port_piece){ s, i, plan->segments[s].slots[i].port_at };
        used += port->piece_count;
    }
    return HD_OK;
}

hd_status hdi_loaded_make(hdi_plan *plan, hd_device *const *devices, const hd_allocator *allocator,
                          hdi_loaded **out_loaded, hd_error *error) {
    hdi_loaded *loaded = hdi_alloc(allocator, sizeof *loaded);
    if (!loaded) {
        hdi_plan_free(plan);
        return no_memory(error);
    }
    hdi_list_init(&loaded->link);
    hdi_list_init(&loaded->open_runs);
    loaded->allocator = allocator;
    loaded->plan = plan;
    loaded->begun = plan->segment_count;
    for (uint32_t d = 0; d < plan->device_count; d++) loaded->devices[d] = devices[d];
    loaded->segments = hdi_alloc(allocator, plan->segment_count * sizeof(hdi_core *));
    loaded->carried = hdi_alloc(allocator, plan->crossing_count * sizeof(void *));
    hd_status status = loaded->segments && (loaded->carried || plan->crossing_count == 0) ? HD_OK : no_memory(error);
    for (uint32_t s = 0; s < plan->segment_count && !status; s++) {
        hdi_plan_segment *segment = &plan->segments[s];
        status = hdi_core_make(devices[segment->device], segment->schedule, &loaded->segments[s], error);
        if (status) segment->schedule = NULL; /* it was ended */
    }
    if (!status) link_cores(loaded);
    for (uint32_t s = 0; s < plan->segment_count && !status; s++)
        status = hdi_core_allocate(loaded->segments[s], error);
    if (!status) status = find_ports(loaded, error);
    if (status) hdi_loaded_end(loaded);
    else *out_loaded = loaded;
    return status;
}

void hdi_loaded_end(hdi_loaded *loaded) {
    if (!loaded) return;
    const hd_allocator *allocator = loaded->allocator;
    hdi_plan *plan = loaded->plan;
    for (uint32_t c = 0; loaded->carried && c < plan->crossing_count; c++)
        hdi_free(allocator, loaded->carried[c], (size_t)plan->crossings[c].bytes);
    for (uint32_t s = 0; loaded->segments && s < plan->segment_count; s++) {
        if (!loaded->segments[s]) continue;
        hdi_core_end(loaded->segments[s]);
        plan->segments[s].schedule = NULL; /* the core's */
    }
    hdi_free(allocator, loaded->segments, plan->segment_count * sizeof(hdi_core *));
    hdi_free(allocator, loaded->carried, plan->crossing_count * sizeof(void *));
    hdi_free(allocator, loaded->ports, plan->port_count * sizeof *loaded->ports);
    hdi_free(allocator, loaded->pieces, loaded->piece_count * sizeof *loaded->pieces);
    hdi_plan_free(plan);
    hdi_free(allocator, loaded, sizeof *loaded);
}

hd_status hdi_loaded_reset(hdi_loaded *loaded, hd_error *error) {
    hd_status status = HD_OK;
    loaded->begun = loaded->plan->segment_count;
    loaded->crossed = 0;
    loaded->timestamps = loaded->ran = false;
    loaded->runs = loaded->records = loaded->submit_ns = 0;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) {
        hdi_core *core = loaded->segments[s];
        for (uint32_t i = 0; i < core->schedule->slot_count; i++) {
            hdi_core_bind(core, i, NULL, 0);
            core->slots[i] =
                (hdi_core_slot){ .memory = core->slots[i].memory, .memory_bytes = core->slots[i].memory_bytes };
        }
    }
    link_cores(loaded);
    for (uint32_t p = 0; p < loaded->plan->port_count; p++) loaded->ports[p].version = 0;
    for (uint32_t s = 0; s < loaded->plan->segment_count && !status; s++)
        status = hdi_core_clear_states(loaded->segments[s], error);
    return status;
}

static bool uses_device(const hdi_loaded *loaded, const hd_device *device) {
    bool uses = false;
    for (uint32_t d = 0; d < loaded->plan->device_count; d++) uses |= loaded->devices[d] == device;
    return uses;
}

/* A device of it is. */
static bool is_lost(const hdi_loaded *loaded) {
    bool lost = false;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) lost |= loaded->segments[s]->device->lost != HD_OK;
    return lost;
}

/* ---- idle ones ---- */

/* So many wait, and as many small ones as have so many bytes together. */
enum { IDLE_LEAST = 8, IDLE_MOST = 128 };
#define IDLE_BYTES (UINT64_C(256) << 20)

bool hdi_idle_init(hdi_idle *idle) {
    hdi_list_init(&idle->list);
    return hdi_mutex_init(&idle->lock);
}

void hdi_idle_free(hdi_idle *idle) { hdi_mutex_free(&idle->lock); }

static uint64_t bytes_of(const hdi_loaded *loaded) {
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) bytes += hdi_core_bytes(loaded->segments[s]);
    return bytes;
}

/* Called with the lock held. */
static void take_out(hdi_idle *idle, hdi_loaded *loaded) {
    hdi_list_remove(&loaded->link);
    idle->count--;
    idle->bytes -= bytes_of(loaded);
}

/* The latest one: caches may have its memory still. */
hdi_loaded *hdi_idle_take(hdi_idle *idle, uint64_t key) {
    hdi_loaded *found = NULL;
    hdi_mutex_lock(&idle->lock);
    for (hdi_link *at = idle->list.previous; at != &idle->list && !found; at = at->previous)
        if (HDI_OBJECT(at, hdi_loaded, link)->key == key) found = HDI_OBJECT(at, hdi_loaded, link);
    if (found) take_out(idle, found);
    hdi_mutex_unlock(&idle->lock);
    return found;
}

/* The one that waits longest, where too many do, or too large ones. */
static hdi_loaded *take_excess(hdi_idle *idle) {
    hdi_loaded *oldest = NULL;
    hdi_mutex_lock(&idle->lock);
    if (idle->count > IDLE_LEAST && (idle->count > IDLE_MOST || idle->bytes > IDLE_BYTES)) {
        oldest = HDI_OBJECT(idle->list.next, hdi_loaded, link);
        take_out(idle, oldest);
    }
    hdi_mutex_unlock(&idle->lock);
    return oldest;
}

void hdi_idle_put(hdi_idle *idle, hdi_loaded *loaded) {
    if (loaded->key == 0 || is_lost(loaded)) {
        hdi_loaded_end(loaded);
        return;
    }
    hdi_mutex_lock(&idle->lock);
    hdi_list_add(&idle->list, &loaded->link);
    idle->count++;
    idle->bytes += bytes_of(loaded);
    hdi_mutex_unlock(&idle->lock);
    while ((loaded = take_excess(idle))) hdi_loaded_end(loaded);
}

void hdi_idle_drop(hdi_idle *idle, const hd_device *device) {
    for (;;) {
        hdi_loaded *found = NULL;
        hdi_mutex_lock(&idle->lock);
        for (hdi_link *at = idle->list.next; at != &idle->list && !found; at = at->next)
            if (uses_device(HDI_OBJECT(at, hdi_loaded, link), device)) found = HDI_OBJECT(at, hdi_loaded, link);
        if (found) take_out(idle, found);
        hdi_mutex_unlock(&idle->lock);
        if (!found) return;
        hdi_loaded_end(found);
    }
}

/* ---- times ---- */

/* What names the SPIR-V of a step's kernel, whichever form of it the device takes. */
static uint64_t module_hash(const hdi_core *core, const hdi_schedule_step *step) {
    if (step->kind != HDI_CMD_DISPATCH) return 0;
    const hdi_module *module = hdi_core_module(core, step->kernel.module);
    return module->spirv ? module->spirv->hash : 0;
}

/* The times of one segment's steps, as far as there is room for them. */
static hd_status segment_timings(const hdi_core *core, const hd_allocator *allocator, hd_timing *out_timings,
                                 size_t room, hd_error *error) {
    const hdi_schedule *made = core->schedule;
    uint32_t got = 0;
    if (made->step_count == 0) return HD_OK;
    uint64_t *ns = hdi_alloc(allocator, made->step_count * sizeof *ns);
    hd_status status = ns ? hdi_device_wait(core->device, core->run_ticket, 0, error)
                          : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for times");
    if (!status) {
        hdi_mutex_lock(&core->device->lock);
        status =
            core->device->backend->profile(core->device->handle, core->run_ticket, ns, made->step_count, &got, error);
        hdi_mutex_unlock(&core->device->lock);
    }
    for (uint32_t i = 0; i < made->step_count && i < room && !status; i++) {
        const hdi_schedule_step *step = &made->steps[i];
        const char *kernel = step->kind == HDI_CMD_COPY   ? "copy"
                             : step->kind == HDI_CMD_FILL ? "fill"
                                                          : hdi_schedule_module_name(NULL, step->kernel.module);
        out_timings[i] = (hd_timing){
            step->label, kernel, i < got ? ns[i] : 0, step->bytes, step->flops, module_hash(core, step)
        };
    }
    hdi_free(allocator, ns, made->step_count * sizeof *ns);
    return status;
}

hd_status hdi_loaded_timings(const hdi_loaded *loaded, hd_timing *out_timings, size_t room, size_t *out_count,
                             hd_error *error) {
    hd_status status = HD_OK;
    *out_count = 0;
    for (uint32_t s = 0; s < loaded->plan->segment_count && !status; s++) {
        const size_t at = *out_count;
        if (out_timings && at < room)
            status = segment_timings(loaded->segments[s], loaded->allocator, out_timings + at, room - at, error);
        *out_count += loaded->segments[s]->schedule->step_count;
    }
    return status;
}
