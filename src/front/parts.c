/* parts.c: the segments of a plan, made. A plan on one device is one part, of the whole program. For two devices the program
 * is cut (program/segments.c) and each segment is a part of its own; parts on one device share the memory of what they both
 * name, and what the other device needs becomes a crossing. */
#include "front/front.h"
#include <stdio.h>

static hd_status no_memory(hd_error *error) { return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the segments of a plan"); }

/* ---- what goes where ---- */

static bool is_auto(const hd_plan_desc *desc) { return desc->route && strcmp(desc->route, "auto") == 0; }
static bool is_whole(const hd_plan_desc *desc) {
    return !desc->route || strcmp(desc->route, "device") == 0 || strcmp(desc->route, "beside") == 0 || (is_auto(desc) && !desc->beside);
}

static hd_status check_desc(const hd_device *device, const hd_plan_desc *desc, hd_error *error) {
    const char *route = desc->route;
    if (!desc->beside && route && strcmp(route, "device") != 0 && !is_auto(desc))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a route needs a second device to go to: hd_plan_desc.beside");
    if (!desc->beside) return HD_OK;
    if (desc->beside == device || desc->beside->context != device->context)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the second device is %s", desc->beside == device ? "the first one" : "of another context");
    if (desc->failover) return hdi_fail(error, HD_STATUS_UNSUPPORTED, "fail-over is for plans on one device; leave hd_plan_desc.beside out");
    return HD_OK;
}

/* A program for two devices: first split by rows, where it is, and then cut. */
typedef struct pieces {
    hdi_split    split;
    hdi_segments segments;
} pieces;

static void end_pieces(pieces *p) {
    hdi_segments_free(&p->segments);
    hdi_split_free(&p->split);
}

/* The program split and cut by these places, but for what cannot stay there. */
static hd_status cut_at(hd_device *const devices[2], const hd_program *program, uint8_t *places, pieces *out, uint64_t *inout_hash, hd_error *error) {
    const bool runs_user_kernels[2] = { !devices[0]->found.caps.native_kernels, !devices[1]->found.caps.native_kernels };
    hd_status status = hdi_places_settle(program, runs_user_kernels, places, error);
    if (!status) status = hdi_split_make(program, places, &out->split, error);
    if (!status && out->split.program) status = hdi_segments_cut(out->split.program, out->split.places, &out->segments, error);
    else if (!status) status = hdi_segments_cut(program, places, &out->segments, error);
    *inout_hash = hdi_hash(*inout_hash, places, program->node_count);
    return status;
}

/* The program cut by desc->route; `chosen` (NULL: none) are places that route "auto" chose. */
static hd_status cut(hd_device *device, const hd_program *program, const hd_plan_desc *desc, const uint8_t *chosen, pieces *out, uint64_t *inout_hash, hd_error *error) {
    hd_device *const devices[2] = { device, desc->beside };
    uint8_t *places = hdi_alloc(program->allocator, program->node_count);
    hd_status status = HD_OK;
    *out = (pieces){ 0 };
    if (!places) return no_memory(error);
    if (chosen) memcpy(places, chosen, program->node_count);
    else status = hdi_places_parse(program, desc->route, places, error);
    if (!status) status = cut_at(devices, program, places, out, inout_hash, error);
    hdi_free(program->allocator, places, program->node_count);
    if (status) end_pieces(out);
    return status;
}

/* ---- memory ---- */

/* Adds the memory of one segment's plan: what an earlier one on the device names is there already. */
static hd_status add_memory(const hd_program *whole, const hdi_plan *plan, hdi_names *there, hd_plan_memory *memory, hd_error *error) {
    const uint64_t align = hdi_plan_alignment(plan);
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        const hdi_plan_slot *slot = &plan->slots[i];
        if (!slot->name || hdi_names_find(there, slot->name, strlen(slot->name))) continue;
        if (!hdi_names_add(there, slot->name, strlen(slot->name), 1)) return no_memory(error);
        const uint64_t bytes = (slot->bytes + align - 1) & ~(align - 1);
        if (!hdi_names_find(&whole->names, slot->name, strlen(slot->name))) {
            memory->scratch_bytes += bytes;
            memory->unshared_bytes += bytes;
        } else *(slot->kind == HDI_STORAGE_INPUT ? &memory->input_bytes : slot->kind == HDI_STORAGE_STATE ? &memory->state_bytes : &memory->output_bytes) += bytes;
    }
    memory->scratch_bytes += plan->memory.scratch_bytes;
    memory->unshared_bytes += plan->memory.unshared_bytes;
    memory->constant_bytes += plan->memory.constant_bytes;
    memory->total_bytes = memory->input_bytes + memory->state_bytes + memory->output_bytes + memory->scratch_bytes + memory->constant_bytes;
    return HD_OK;
}

/* The memory of all segments; the budget holds on each device. */
static hd_status sum_memory(const hd_program *whole, const hdi_segments *segments, const hdi_plan *const *plans, uint64_t budget_bytes, hd_plan_memory *out, hd_error *error) {
    hdi_names there[2] = { { .allocator = whole->allocator }, { .allocator = whole->allocator } };
    hd_plan_memory of[2] = { { 0 }, { 0 } };
    hd_status status = HD_OK;
    for (uint32_t s = 0; s < segments->count && !status; s++) {
        const uint32_t device = segments->items[s].device;
        status = add_memory(whole, plans[s], &there[device], &of[device], error);
    }
    for (uint32_t d = 0; d < 2 && !status; d++)
        if (budget_bytes && of[d].total_bytes > budget_bytes)
            status = hdi_fail(error, HD_STATUS_OVER_BUDGET, "the segments on one device need %llu bytes and the budget is %llu", (unsigned long long)of[d].total_bytes,
                              (unsigned long long)budget_bytes);
    hdi_names_free(&there[0]);
    hdi_names_free(&there[1]);
    *out = (hd_plan_memory){ of[0].input_bytes + of[1].input_bytes, of[0].state_bytes + of[1].state_bytes, of[0].output_bytes + of[1].output_bytes,
                             of[0].scratch_bytes + of[1].scratch_bytes, of[0].constant_bytes + of[1].constant_bytes, of[0].total_bytes + of[1].total_bytes,
                             of[0].unshared_bytes + of[1].unshared_bytes };
    return status;
}

static hd_status estimate_segments(hd_device *const devices[2], const hd_program *program, const hd_plan_desc *desc, hd_plan_memory *out_memory, hd_error *error) {
    const hdi_plan_options options = hdi_plan_options_of(desc);
    pieces made;
    const hdi_segments *segments = &made.segments;
    uint64_t hash = 0;
    hdi_caps caps[2];
    hdi_routed routed = { .text = { .allocator = program->allocator } };
    hd_plan_stats stats;
    hd_status status = is_auto(desc) ? hdi_routing_places(devices, program, desc, &routed, &stats, error) : HD_OK;
    if (!status) status = cut(devices[0], program, desc, routed.places, &made, &hash, error);
    hdi_routed_free(&routed, program->allocator);
    if (status) return status;
    hdi_plan **plans = hdi_alloc(program->allocator, segments->count * sizeof(hdi_plan *));
    if (!plans) status = no_memory(error);
    for (uint32_t d = 0; d < 2; d++) hdi_store_caps(devices[d]->facts, &caps[d]);
    for (uint32_t s = 0; s < segments->count && !status; s++)
        status = hdi_plan_make(program->allocator, segments->items[s].program, &caps[segments->items[s].device], &options, &plans[s], error);
    if (!status) status = sum_memory(program, segments, (const hdi_plan *const *)plans, desc->budget_bytes, out_memory, error);
    for (uint32_t s = 0; plans && s < segments->count; s++) hdi_plan_free(plans[s]);
    hdi_free(program->allocator, plans, plans ? segments->count * sizeof(hdi_plan *) : 0);
    end_pieces(&made);
    return status;
}

hd_status hdi_parts_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan_memory *out_memory, hd_error *error) {
    hdi_caps caps;
    hdi_plan *plan = NULL;
    const hdi_plan_options options = hdi_plan_options_of(desc);
    hd_status status = check_desc(device, desc, error);
    if (status) return status;
    if (!is_whole(desc)) return estimate_segments((hd_device *const[2]){ device, desc->beside }, program, desc, out_memory, error);
    hdi_store_caps((desc->route && desc->route[0] == 'b' ? desc->beside : device)->facts, &caps);
    status = hdi_plan_make(device->host->allocator, program, &caps, &options, &plan, error);
    if (!status) *out_memory = plan->memory;
    hdi_plan_free(plan);
    return status;
}

/* ---- what parts share, and what crosses ---- */

/* Where a name was met first on a device. */
typedef struct home {
    uint32_t part, slot;
} home;
typedef struct linking {
    hdi_names names[2]; /* to places in homes, + 1 */
    home     *homes;
    uint32_t  count, capacity;
} linking;

static bool keep_home(linking *l, uint32_t device, const char *name, home found, const hd_allocator *allocator) {
    if (!hdi_grow(allocator, &l->homes, &l->capacity, (size_t)l->count + 1, sizeof *l->homes)) return false;
    l->homes[l->count++] = found;
    return hdi_names_add(&l->names[device], name, strlen(name), l->count);
}

static bool add_crossing(hd_plan *plan, home from, home to) {
    const uint64_t bytes = plan->parts[to.part].core->plan->slots[to.slot].tensor_bytes;
    if (!hdi_grow(&plan->context->allocator, &plan->crossings, &plan->crossing_capacity, (size_t)plan->crossing_count + 1, sizeof *plan->crossings)) return false;
    plan->crossings[plan->crossing_count++] = (hdi_crossing){ from.part, from.slot, to.part, to.slot, bytes, NULL };
    plan->stats.crossing_bytes += bytes;
    return true;
}

/* Of a port that both devices share the second one has the last rows. */
static void find_piece(const hd_port *port, uint64_t bytes, uint32_t device, hdi_core_slot *slot) {
    slot->elsewhere = hd_tensor_bytes(port->dtype, port->shape) - bytes;
    slot->port_at = device ? slot->elsewhere : 0;
}

static hd_status link_slot(hd_plan *plan, const hd_program *whole, linking *l, home at, hd_error *error) {
    hdi_core *core = plan->parts[at.part].core;
    const char *name = core->plan->slots[at.slot].name;
    hdi_core_slot *slot = &core->slots[at.slot];
    const uint32_t device = core->device != plan->device;
    if (!name) return HD_OK;
    const uint32_t port = hdi_names_find(&whole->names, name, strlen(name));
    slot->inside = slot->written = port == 0;
    if (port) find_piece(&whole->ports[port - 1], core->plan->slots[at.slot].tensor_bytes, device, slot);
    const uint32_t here = hdi_names_find(&l->names[device], name, strlen(name)), there = hdi_names_find(&l->names[!device], name, strlen(name));
    if (here) {
        const home first = l->homes[here - 1];
        slot->home = &plan->parts[first.part].core->slots[first.slot];
        slot->home->shared = true;
        return HD_OK;
    }
    bool kept = keep_home(l, device, name, at, &plan->context->allocator);
    if (kept && slot->inside && there) kept = add_crossing(plan, l->homes[there - 1], at);
    return kept ? HD_OK : no_memory(error);
}

static hd_status link_parts(hd_plan *plan, const hd_program *whole, hd_error *error) {
    const hd_allocator *allocator = &plan->context->allocator;
    linking l = { .names = { { .allocator = allocator }, { .allocator = allocator } } };
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < plan->part_count && !status; p++)
        for (uint32_t s = 0; s < plan->parts[p].core->plan->slot_count && !status; s++) status = link_slot(plan, whole, &l, (home){ p, s }, error);
    hdi_free(allocator, l.homes, l.capacity * sizeof *l.homes);
    hdi_names_free(&l.names[0]);
    hdi_names_free(&l.names[1]);
    return status;
}

/* ---- making ---- */

static hd_status new_parts(hd_plan *plan, uint32_t count, hd_error *error) {
    plan->parts = hdi_alloc(&plan->context->allocator, count * sizeof *plan->parts);
    if (!plan->parts) return no_memory(error);
    plan->part_count = plan->begun = count;
    return HD_OK;
}

static hd_status make_segments(hd_plan *plan, const hd_program *program, const pieces *cut, uint64_t hash, hd_error *error) {
    const hdi_segments *segments = &cut->segments;
    hd_device *const devices[2] = { plan->device, plan->desc.beside };
    char names[2][80];
    hd_status status = new_parts(plan, segments->count, error);
    for (uint32_t s = 0; s < segments->count && !status; s++) { /* segments of equal structure are kept apart: their labels differ */
        const hdi_segment *segment = &segments->items[s];
        status = hdi_core_make(devices[segment->device], segment->program, &plan->desc, hdi_hash(hash, &s, sizeof s), &plan->parts[s].core, error);
    }
    if (!status) status = link_parts(plan, program, error);
    const hdi_plan **plans = status ? NULL : hdi_alloc(program->allocator, segments->count * sizeof(hdi_plan *));
    if (!status && !plans) status = no_memory(error);
    for (uint32_t s = 0; s < segments->count && !status; s++) plans[s] = plan->parts[s].core->plan;
    if (!status) status = sum_memory(program, segments, plans, plan->desc.budget_bytes, &plan->memory, error);
    hdi_free(program->allocator, plans, plans ? segments->count * sizeof(hdi_plan *) : 0);
    for (uint32_t d = 0; d < 2; d++) snprintf(names[d], sizeof names[d], "%s (%s)", devices[d]->found.info.id, d ? "beside" : "device");
    if (!status) hdi_segments_print(cut->split.program ? cut->split.program : program, segments, (const char *const[2]){ names[0], names[1] }, &plan->segments_text);
    if (!status && plan->segments_text.failed) status = no_memory(error);
    return status;
}

static hd_status make_at(hd_plan *plan, const hd_program *program, const uint8_t *places, uint64_t program_hash, hd_error *error) {
    pieces made;
    hd_status status = cut(plan->device, program, &plan->desc, places, &made, &program_hash, error);
    if (status) return status;
    status = make_segments(plan, program, &made, program_hash, error);
    end_pieces(&made);
    return status;
}

hd_status hdi_parts_make(hd_plan *plan, const hd_program *program, uint64_t program_hash, hd_error *error) {
    const hd_plan_desc *desc = &plan->desc;
    hd_status status = check_desc(plan->device, desc, error);
    if (!status && !is_whole(desc)) {
        hd_device *const devices[2] = { plan->device, desc->beside };
        if (is_auto(desc)) status = hdi_routing_places(devices, program, desc, &plan->routed, &plan->stats, error);
        return status ? status : make_at(plan, program, plan->routed.places, program_hash, error);
    }
    if (!status) status = new_parts(plan, 1, error);
    if (status) return status;
    status = hdi_core_make(desc->route && desc->route[0] == 'b' ? desc->beside : plan->device, program, desc, program_hash, &plan->parts[0].core, error);
    if (!status) plan->memory = plan->parts[0].core->plan->memory;
    return status;
}

void hdi_parts_end(hd_plan *plan, bool reusable) {
    const hd_allocator *allocator = &plan->context->allocator;
    for (uint32_t p = 0; p < plan->part_count; p++)
        if (plan->parts[p].core) hdi_core_retire(plan->parts[p].core, reusable);
    for (uint32_t c = 0; c < plan->crossing_count; c++) hdi_free(allocator, plan->crossings[c].host, (size_t)plan->crossings[c].bytes);
    hdi_free(allocator, plan->parts, plan->part_count * sizeof *plan->parts);
    hdi_free(allocator, plan->crossings, plan->crossing_capacity * sizeof *plan->crossings);
    hdi_text_free(&plan->segments_text);
    plan->parts = NULL;
    plan->crossings = NULL;
    plan->part_count = plan->crossing_count = plan->crossing_capacity = 0;
}
