/* plan.c: segments planned each for its device, and linked: slots of one name on one device share their memory, and a
 * value that was made on another device crosses. */
#include "plan/plan.h"

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the segments of a plan");
}

/* ---- ports ---- */

static hd_status take_ports(hdi_plan *plan, const hd_program *program, hd_error *error) {
    plan->ports = hdi_arena_alloc(&plan->arena, program->port_count * sizeof *plan->ports);
    if (!plan->ports) return no_memory(error);
    for (uint32_t i = 0; i < program->port_count; i++) {
        const hd_port *port = &program->ports[i];
        const char *name = hdi_arena_text(&plan->arena, port->name, strlen(port->name));
        if (!name) return no_memory(error);
        plan->ports[plan->port_count++] =
            (hdi_plan_port){ name, port->kind, hd_tensor_bytes(port->dtype, port->shape) };
    }
    return HD_OK;
}

/* The node of a segment's port, or NULL. */
static const hdi_node *port_node(const hd_program *segment, const char *name) {
    const uint32_t port = hdi_names_find(&segment->names, name, strlen(name));
    return port && segment->ports[port - 1].value ? &segment->nodes[segment->ports[port - 1].value - 1] : NULL;
}

/* Where the rows of a piece begin within the port's bytes: what the segment's node or output says that it is. */
static uint64_t port_at(const hdi_node *node, const hd_port *port) {
    const hdi_origin origin = node ? node->origin : (hdi_origin){ 0 };
    if (origin.end == 0 || origin.axis != 0 || port->shape.rank == 0 || port->shape.dims[0] == 0) return 0;
    return hd_tensor_bytes(port->dtype, port->shape) / (uint64_t)port->shape.dims[0] * origin.begin;
}

/* ---- what segments share, and what crosses ---- */

/* Where a name was met first on a device. */
typedef struct home {
    uint32_t segment, slot;
} home;

typedef struct linking {
    hdi_plan           *plan;
    const hd_program    *program;
    const hdi_segments  *segments;
    hdi_names names[HDI_MOST_DEVICES]; /* to places in homes, + 1 */
    home     *homes;
    uint32_t  count, capacity;
} linking;

static hdi_plan_slot *slot_at(const linking *l, home at) { return &l->plan->segments[at.segment].slots[at.slot]; }

static bool keep_home(linking *l, uint32_t device, const char *name, home found) {
    if (!hdi_grow(l->plan->arena.allocator, &l->homes, &l->capacity, (size_t)l->count + 1, sizeof *l->homes))
        return false;
    l->homes[l->count++] = found;
    return hdi_names_add(&l->names[device], name, strlen(name), l->count);
}

static bool add_crossing(linking *l, home from, home to) {
    hdi_plan *plan = l->plan;
    const uint64_t bytes = plan->segments[to.segment].schedule->slots[to.slot].tensor_bytes;
    if (!hdi_grow(plan->arena.allocator, &plan->crossings, &plan->crossing_capacity, (size_t)plan->crossing_count + 1,
                  sizeof *plan->crossings))
        return false;
    plan->crossings[plan->crossing_count++] = (hdi_crossing){ from.segment, from.slot, to.segment, to.slot, bytes };
    plan->crossing_bytes += bytes;
    return true;
}

static hd_status link_slot(linking *l, home at, hd_error *error) {
    const hdi_plan_segment *segment = &l->plan->segments[at.segment];
    const char *name = segment->schedule->slots[at.slot].name;
    hdi_plan_slot *slot = slot_at(l, at);
    slot->home_segment = at.segment;
    slot->home_slot = at.slot;
    if (!name) return HD_OK;
    const hdi_node *node = port_node(l->segments->items[at.segment].program, name);
    slot->arrives = node && node->arrives;
    slot->port = slot->arrives ? 0 : hdi_names_find(&l->program->names, name, strlen(name));
    slot->inside = slot->port == 0;
    if (slot->port) slot->port_at = port_at(node, &l->program->ports[slot->port - 1]);
    const uint32_t here = hdi_names_find(&l->names[segment->device], name, strlen(name));
    if (here) {
        const home first = l->homes[here - 1];
        slot->home_segment = first.segment;
        slot->home_slot = first.slot;
        slot_at(l, first)->shared = true;
        return HD_OK;
    }
    uint32_t maker = 0; /* the first that has a value which crosses made it */
    for (uint32_t d = 0; d < l->plan->device_count && slot->inside; d++) {
        const uint32_t there = hdi_names_find(&l->names[d], name, strlen(name));
        if (there && (maker == 0 || there < maker)) maker = there;
    }
    bool kept = keep_home(l, segment->device, name, at);
    if (kept && maker) kept = add_crossing(l, l->homes[maker - 1], at);
    return kept ? HD_OK : no_memory(error);
}

static hd_status link_segments(hdi_plan *plan, const hd_program *program, const hdi_segments *segments,
                               hd_error *error) {
    linking l = { .plan = plan, .program = program, .segments = segments };
    hd_status status = HD_OK;
    for (uint32_t d = 0; d < HDI_MOST_DEVICES; d++) l.names[d].allocator = plan->arena.allocator;
    for (uint32_t s = 0; s < plan->segment_count && !status; s++)
        for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count && !status; i++)
            status = link_slot(&l, (home){ s, i }, error);
    hdi_free(plan->arena.allocator, l.homes, l.capacity * sizeof *l.homes);
    for (uint32_t d = 0; d < HDI_MOST_DEVICES; d++) hdi_names_free(&l.names[d]);
    return status;
}

/* ---- memory ---- */

/* Memory that is a plan's own, from the first segment that needs it to the last one. */
typedef struct lifetime {
    home     at;
    uint32_t device, first, last;
    uint64_t bytes;
} lifetime;

static bool is_own(const hdi_plan *plan, home at) {
    const hdi_plan_slot *slot = &plan->segments[at.segment].slots[at.slot];
    const bool scratch = plan->segments[at.segment].schedule->slots[at.slot].kind == HDI_STORAGE_SCRATCH;
    return slot->home_segment == at.segment && slot->home_slot == at.slot && (scratch || slot->inside);
}

/* What arrives may travel while the segment before computes. */
static uint32_t first_of(const hdi_plan *plan, home at) {
    uint32_t before = at.segment;
    if (!plan->segments[at.segment].slots[at.slot].arrives) return at.segment;
    while (before > 0 && plan->segments[before - 1].device != plan->segments[at.segment].device) before--;
    return before > 0 ? before - 1 : at.segment;
}

static uint32_t last_of(const hdi_plan *plan, home at) {
    uint32_t last = at.segment;
    for (uint32_t s = at.segment + 1; s < plan->segment_count && plan->segments[at.segment].slots[at.slot].shared; s++)
        for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count; i++) {
            const hdi_plan_slot *slot = &plan->segments[s].slots[i];
            if (slot->home_segment == at.segment && slot->home_slot == at.slot) last = s;
        }
    for (uint32_t c = 0; c < plan->crossing_count; c++) {
        const hdi_crossing *crossing = &plan->crossings[c];
        if (crossing->from == at.segment && crossing->from_slot == at.slot) last = HDI_MAX(last, crossing->to);
    }
    return last;
}

/* The least memory of the same kind that nothing needs any more. */
static lifetime *find_free(const hdi_plan *plan, lifetime *lives, uint32_t count, const lifetime *wanted) {
    const hdi_schedule_slot *slot = &plan->segments[wanted->at.segment].schedule->slots[wanted->at.slot];
    lifetime *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const hdi_schedule_slot *other = &plan->segments[lives[i].at.segment].schedule->slots[lives[i].at.slot];
        if (lives[i].device != wanted->device || lives[i].last >= wanted->first) continue;
        if (lives[i].bytes < wanted->bytes || other->kind != slot->kind || other->read != slot->read) continue;
        if (!best || lives[i].bytes < best->bytes) best = &lives[i];
    }
    return best;
}

/* Scratch and values that cross take memory of earlier segments on their device. */
static hd_status share_memory(hdi_plan *plan, hd_error *error) {
    lifetime *lives = NULL;
    uint32_t count = 0, capacity = 0;
    bool grown = true;
    for (uint32_t s = 0; s < plan->segment_count && plan->segment_count > 1 && grown; s++)
        for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count && grown; i++) {
            const home at = { s, i };
            if (!is_own(plan, at)) continue;
            const lifetime life = { at, plan->segments[s].device, first_of(plan, at), last_of(plan, at),
                                    plan->segments[s].schedule->slots[i].bytes };
            lifetime *freed = find_free(plan, lives, count, &life);
            hdi_plan_slot *slot = &plan->segments[s].slots[i];
            if (freed) {
                slot->reuses = true;
                slot->reused_segment = freed->at.segment, slot->reused_slot = freed->at.slot, slot->after = freed->last;
                freed->last = life.last;
                continue;
            }
            grown = hdi_grow(plan->arena.allocator, &lives, &capacity, (size_t)count + 1, sizeof *lives);
            if (grown) lives[count++] = life;
        }
    hdi_free(plan->arena.allocator, lives, capacity * sizeof *lives);
    return grown ? HD_OK : no_memory(error);
}

void hdi_plan_memory_add(hd_plan_memory *sum, const hd_plan_memory *more) {
    sum->input_bytes += more->input_bytes;
    sum->state_bytes += more->state_bytes;
    sum->output_bytes += more->output_bytes;
    sum->scratch_bytes += more->scratch_bytes;
    sum->constant_bytes += more->constant_bytes;
    sum->total_bytes += more->total_bytes;
    sum->unshared_bytes += more->unshared_bytes;
}

/* The memory of one segment: slots whose home is elsewhere, or that reuse memory, take none, and values that cross
 * count as intermediates. */
static hd_plan_memory memory_of(const hdi_plan *plan, uint32_t s) {
    const hdi_plan_segment *segment = &plan->segments[s];
    const uint64_t align = hdi_schedule_alignment(segment->schedule);
    hd_plan_memory memory = { .scratch_bytes = segment->schedule->memory.scratch_bytes,
                              .unshared_bytes = segment->schedule->memory.unshared_bytes,
                              .constant_bytes = segment->schedule->memory.constant_bytes };
    for (uint32_t i = 0; i < segment->schedule->slot_count; i++) {
        const hdi_schedule_slot *slot = &segment->schedule->slots[i];
        const hdi_plan_slot *at = &segment->slots[i];
        const uint64_t bytes = (slot->bytes + align - 1) & ~(align - 1);
        if (slot->kind == HDI_STORAGE_SCRATCH && at->reuses) memory.scratch_bytes -= slot->bytes;
        if (!slot->name || at->home_segment != s || at->home_slot != i) continue;
        if (at->inside && !at->arrives) memory.unshared_bytes += bytes;
        if (at->reuses) continue;
        if (at->inside && !at->arrives) memory.scratch_bytes += bytes;
        else if (slot->kind == HDI_STORAGE_INPUT) memory.input_bytes += bytes;
        else if (slot->kind == HDI_STORAGE_STATE) memory.state_bytes += bytes;
        else memory.output_bytes += bytes;
    }
    memory.total_bytes =
        memory.input_bytes + memory.state_bytes + memory.output_bytes + memory.scratch_bytes + memory.constant_bytes;
    return memory;
}

static hd_status sum_memory(hdi_plan *plan, uint64_t budget_bytes, hd_error *error) {
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const hd_plan_memory memory = memory_of(plan, s);
        hdi_plan_memory_add(&plan->on[plan->segments[s].device], &memory);
        hdi_plan_memory_add(&plan->memory, &memory);
    }
    for (uint32_t d = 0; d < plan->device_count; d++)
        if (budget_bytes && plan->on[d].total_bytes > budget_bytes)
            return hdi_fail(error, HD_STATUS_OVER_BUDGET,
                            "the segments on device %u need %llu bytes and the budget is %llu", d,
                            (unsigned long long)plan->on[d].total_bytes, (unsigned long long)budget_bytes);
    return HD_OK;
}

/* ---- making ---- */

static hd_status plan_segments(hdi_plan *plan, const hdi_plan_wish *wish, const hdi_segments *segments,
                               hd_error *error) {
    plan->segments = hdi_arena_alloc(&plan->arena, segments->count * sizeof *plan->segments);
    if (!plan->segments) return no_memory(error);
    plan->segment_count = segments->count;
    for (uint32_t s = 0; s < segments->count; s++) {
        hdi_plan_segment *segment = &plan->segments[s];
        segment->device = segments->items[s].device;
        const hd_status status = hdi_schedule_make(plan->arena.allocator, segments->items[s].program,
                                               &wish->caps[segment->device], &wish->options, &segment->schedule, error);
        if (status) return status;
        segment->slots = hdi_arena_alloc(&plan->arena, segment->schedule->slot_count * sizeof *segment->slots);
        if (!segment->slots) return no_memory(error);
    }
    return HD_OK;
}

static hd_status check_exact(const hdi_plan_wish *wish, hd_error *error) {
    for (uint32_t i = 0; i < wish->program->node_count && wish->options.math == HD_MATH_EXACT; i++) {
        const uint32_t share = wish->placement->of[i].share;
        if (share && !hdi_share_is_exact(wish->placement->shares[share - 1].axis))
            return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                            "route: v%u: sums of terms on several devices are added in another order, so exact mode's "
                            "bits would change; share rows or columns, or plan in fast mode",
                            i + 1);
    }
    return HD_OK;
}

/* What the segments are, for people: their programs end with planning. */
static hd_status describe(hdi_plan *plan, const hd_program *program, const hdi_segments *segments,
                          const char *const *ids, hd_error *error) {
    hdi_text text = { .allocator = plan->arena.allocator };
    hdi_segments_print(program, segments, ids, &text);
    plan->text = text.failed ? NULL : hdi_arena_text(&plan->arena, text.bytes, text.count);
    hdi_text_free(&text);
    return plan->text ? HD_OK : no_memory(error);
}

/* The segments of a settled placement, planned and linked. `only`: the device whose pieces they are, where the
 * placement's devices are one. */
static hd_status make_segments(hdi_plan *plan, const hdi_plan_wish *wish, const hdi_placement *settled, uint32_t only,
                               hd_error *error) {
    hdi_split split;
    hdi_segments segments = { 0 };
    hd_status status = hdi_split_make(wish->program, settled, &split, error);
    const hd_program *program = split.program ? split.program : wish->program;
    if (!status) status = hdi_segments_cut(program, split.program ? &split.placement : settled, &segments, error);
    for (uint32_t s = 0; s < segments.count && settled->in_turn; s++) segments.items[s].device = only;
    if (!status) status = plan_segments(plan, wish, &segments, error);
    if (!status) status = link_segments(plan, wish->program, &segments, error);
    if (!status) status = share_memory(plan, error);
    if (!status) status = sum_memory(plan, wish->options.budget_bytes, error);
    if (!status) status = describe(plan, program, &segments, wish->ids, error);
    if (segments.allocator) hdi_segments_free(&segments);
    hdi_split_free(&split);
    return status;
}

/* On one device nothing is cut: the program is the segment, under its own values' numbers. */
static hd_status make_one(hdi_plan *plan, const hdi_plan_wish *wish, uint32_t device, hd_error *error) {
    hdi_segment item = { device, (hd_program *)(uintptr_t)wish->program }; /* it is only read */
    const hdi_segments segments = { plan->arena.allocator, &item, 1 };
    hd_status status = plan_segments(plan, wish, &segments, error);
    if (!status) status = link_segments(plan, wish->program, &segments, error);
    if (!status) status = sum_memory(plan, wish->options.budget_bytes, error);
    return status;
}

static void free_segments(hdi_plan *plan) {
    for (uint32_t s = 0; s < plan->segment_count; s++) hdi_schedule_free(plan->segments[s].schedule);
    plan->segment_count = plan->crossing_count = 0;
    plan->crossing_bytes = 0;
    plan->memory = (hd_plan_memory){ 0 };
    memset(plan->on, 0, sizeof plan->on);
}

/* What is beyond the budget is computed in pieces of its rows, as few as fit. */
static hd_status make_in_turn(hdi_plan *plan, const hdi_plan_wish *wish, uint32_t device, hd_error *error) {
    hd_status status = HD_STATUS_OVER_BUDGET;
    for (uint32_t pieces = 2; pieces <= HDI_MOST_DEVICES && status == HD_STATUS_OVER_BUDGET; pieces *= 2) {
        hdi_placement placement;
        hd_error why = { 0 }; /* that of the whole stays: what is missing there is what counts */
        free_segments(plan);
        status = hdi_placement_in_turn(wish->program, pieces, &placement, &why);
        if (!status) status = make_segments(plan, wish, &placement, device, &why);
        if (status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT) status = HD_STATUS_OVER_BUDGET;
        if (status && status != HD_STATUS_OVER_BUDGET && error) *error = why;
        hdi_placement_free(&placement);
    }
    return status;
}

/* The one device of all operations; device_count: there are several, or operations are shared, or inputs arrive. */
static uint32_t only_device(const hd_program *program, const hdi_placement *placement) {
    uint32_t only = placement->device_count;
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (placement->of[i].arrives) return placement->device_count;
        if (program->nodes[i].op == HDI_OP_INPUT || program->nodes[i].op == HDI_OP_STATE) continue;
        if (placement->of[i].share || (only < placement->device_count && placement->of[i].device != only))
            return placement->device_count;
        only = placement->of[i].device;
    }
    return only < placement->device_count ? only : 0;
}

/* What the plan is made from. */
static hd_status keep_wish(hdi_plan *plan, const hdi_plan_wish *wish, const hdi_placement *settled, hd_error *error) {
    hdi_text route = { .allocator = plan->arena.allocator };
    hdi_placement_print(wish->program, settled, &route);
    plan->options = wish->options;
    plan->route = route.failed ? NULL : hdi_arena_text(&plan->arena, route.bytes, route.count);
    plan->caps = hdi_arena_alloc(&plan->arena, plan->device_count * sizeof *plan->caps);
    if (plan->caps) memcpy(plan->caps, wish->caps, plan->device_count * sizeof *plan->caps);
    hdi_text_free(&route);
    return plan->route && plan->caps ? HD_OK : no_memory(error);
}

static hd_status make(hdi_plan *plan, const hdi_plan_wish *wish, hd_error *error) {
    bool fast_with_user_kernels[HDI_MOST_DEVICES];
    hdi_placement settled = { 0 };
    for (uint32_t d = 0; d < plan->device_count; d++) fast_with_user_kernels[d] = !wish->caps[d].native_kernels;
    hd_status status = check_exact(wish, error);
    if (!status) status = take_ports(plan, wish->program, error);
    if (!status) status = hdi_placement_copy(wish->placement, &settled, error);
    if (!status && plan->device_count > 1)
        status = hdi_placement_settle(wish->program, fast_with_user_kernels, &settled, error);
    if (!status) status = keep_wish(plan, wish, &settled, error);
    const uint32_t only = status ? 0 : only_device(wish->program, &settled);
    if (!status && only == plan->device_count) status = make_segments(plan, wish, &settled, only, error);
    else if (!status) status = make_one(plan, wish, only, error);
    if (status == HD_STATUS_OVER_BUDGET && only < plan->device_count) status = make_in_turn(plan, wish, only, error);
    hdi_placement_free(&settled);
    return status;
}

hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc) {
    return (hdi_plan_options){ .math = desc->math == HD_MATH_EXACT ? HD_MATH_EXACT : HD_MATH_FAST,
                               .budget_bytes = desc->budget_bytes,
                               .no_fusion = desc->no_fusion != 0, .in_order = desc->in_order != 0,
                               .slice_us = desc->slice_us };
}

hd_status hdi_plan_make(const hd_allocator *allocator, const hdi_plan_wish *wish, hdi_plan **out_plan,
                        hd_error *error) {
    hdi_plan *plan = hdi_alloc(allocator, sizeof *plan);
    *out_plan = NULL;
    if (!plan) return no_memory(error);
    plan->arena.allocator = allocator;
    plan->device_count = wish->placement->device_count;
    plan->text = "";
    const hd_status status = make(plan, wish, error);
    if (status) hdi_plan_free(plan);
    else *out_plan = plan;
    return status;
}

void hdi_plan_free(hdi_plan *plan) {
    if (!plan) return;
    const hd_allocator *allocator = plan->arena.allocator;
    free_segments(plan);
    hdi_free(allocator, plan->crossings, plan->crossing_capacity * sizeof *plan->crossings);
    hdi_arena_free(&plan->arena);
    hdi_free(allocator, plan, sizeof *plan);
}
