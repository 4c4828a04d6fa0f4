/* time.c: what a placement takes: the sum of the planner's steps on each device, of the values that travel and of the
 * submissions, less what devices do at the same time. */
#include "plan/choose.h"

enum { MOST_OVERLAPPED = 64 }; /* segments whose overlap is looked at */

/* ---- what is known of a program ---- */

/* The first node that reads a value, views passed over: a node that no kernel of its own computes counts as a view. */
static void find_readers(hdi_timing *t) {
    hd_value *reader = t->room; /* of each node; 0: none */
    memset(reader, 0, t->program->node_count * sizeof *reader);
    for (uint32_t i = t->program->node_count; i-- > 0;) {
        const hdi_node *node = &t->program->nodes[i];
        const hdi_node_cost *cost = hdi_timing_cost(t, i, 0);
        const hd_value here = cost->kernel ? i + 1 : reader[i];
        for (uint32_t k = 0; k < node->operand_count && t->alive[i] && here; k++)
            if (node->operands[k]) reader[node->operands[k] - 1] = here;
    }
    for (uint32_t i = 0; i < t->program->node_count; i++)
        t->readers[i] = reader[i] ? hdi_timing_cost(t, reader[i] - 1, 0)->work : (hdi_work){ 0 };
}

hd_status hdi_timing_make(const hdi_choose_wish *wish, const hd_program *program, hdi_timing *out, hd_error *error) {
    const hd_allocator *allocator = program->allocator;
    const size_t count = program->node_count;
    *out = (hdi_timing){ .wish = wish, .program = program };
    out->costs = hdi_alloc(allocator, wish->device_count * count * sizeof *out->costs);
    out->readers = hdi_alloc(allocator, count * sizeof *out->readers);
    out->alive = hdi_alloc(allocator, count * sizeof *out->alive);
    out->resident = hdi_alloc(allocator, count * sizeof *out->resident);
    out->segment = hdi_alloc(allocator, count * sizeof *out->segment);
    out->room = hdi_alloc(allocator, wish->device_count * count * sizeof *out->room);
    out->read_on = hdi_alloc(allocator, count * sizeof *out->read_on);
    out->ends = hdi_alloc(allocator, count * sizeof *out->ends);
    if (!out->costs || !out->readers || !out->alive || !out->resident || !out->segment || !out->room || !out->read_on ||
        !out->ends)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u nodes", program->node_count);
    hdi_plan_wish plan = wish->plan;
    hd_status status = HD_OK;
    plan.program = program;
    for (uint32_t d = 0; d < wish->device_count && !status; d++)
        status = hdi_schedule_costs(&plan, d, &wish->figures[d], out->costs + d * count, error);
    for (uint32_t i = 0; i < count; i++) {
        const hd_value from = program->nodes[i].origin.value;
        const uint32_t whole_node = from ? from - 1 : i;
        out->resident[i] =
            hdi_dtype_is_quantised(program->nodes[i].dtype) || (wish->resident && wish->resident[whole_node]);
    }
    hdi_program_find_alive(program, out->alive);
    if (!status) find_readers(out);
    return status;
}

void hdi_timing_end(hdi_timing *t) {
    if (!t->program) return;
    const hd_allocator *allocator = t->program->allocator;
    const size_t count = t->program->node_count, devices = t->wish->device_count;
    hdi_free(allocator, t->costs, devices * count * sizeof *t->costs);
    hdi_free(allocator, t->readers, count * sizeof *t->readers);
    hdi_free(allocator, t->alive, count * sizeof *t->alive);
    hdi_free(allocator, t->resident, count * sizeof *t->resident);
    hdi_free(allocator, t->segment, count * sizeof *t->segment);
    hdi_free(allocator, t->room, devices * count * sizeof *t->room);
    hdi_free(allocator, t->read_on, count * sizeof *t->read_on);
    hdi_free(allocator, t->ends, count * sizeof *t->ends);
    *t = (hdi_timing){ 0 };
}

/* ---- parts of a time ---- */

static uint64_t bytes_of(const hdi_node *node) { return hd_tensor_bytes(node->dtype, node->shape); }

double hdi_timing_submit_ns(const hdi_timing *t, uint32_t device) { return t->wish->figures[device].submit.fixed_ns; }

double hdi_timing_write_ns(const hdi_timing *t, uint32_t device, uint32_t input) {
    return hdi_cost_write(&t->wish->figures[device], &t->readers[input], bytes_of(&t->program->nodes[input]));
}

double hdi_timing_read_ns(const hdi_timing *t, uint32_t device, uint32_t node) {
    return hdi_cost_read(&t->wish->figures[device], &hdi_timing_cost(t, node, device)->work,
                         bytes_of(&t->program->nodes[node]));
}

/* A device that computes in the host's memory has values read and written in place. */
double hdi_timing_crossing_ns(const hdi_timing *t, uint32_t from, uint32_t to, uint64_t bytes) {
    const hdi_caps *caps = t->wish->plan.caps;
    return (caps[from].native_kernels ? 0 : hdi_cost_transfer(&t->wish->figures[from].download, bytes)) +
           (caps[to].native_kernels ? 0 : hdi_cost_transfer(&t->wish->figures[to].upload, bytes));
}

/* ---- a placement ---- */

static void find_read_on(hdi_timing *t, const hdi_placement *placement) {
    memset(t->read_on, 0, t->program->node_count * sizeof *t->read_on);
    for (uint32_t i = 0; i < t->program->node_count; i++)
        for (uint32_t k = 0; k < t->program->nodes[i].operand_count && t->alive[i]; k++)
            if (t->program->nodes[i].operands[k])
                t->read_on[t->program->nodes[i].operands[k] - 1] |= 1u << placement->of[i].device;
}

/* Inputs that are written, outputs that are read, and what crosses on the way. */
static double transfers_ns(const hdi_timing *t, const hdi_placement *placement, double *out_crossings_ns) {
    double ns = 0;
    *out_crossings_ns = 0;
    for (uint32_t i = 0; i < t->program->node_count; i++) {
        const hdi_node *node = &t->program->nodes[i];
        const uint32_t at = placement->of[i].device;
        const bool input = node->op == HDI_OP_INPUT;
        if (!t->alive[i]) continue;
        for (uint32_t d = 0; d < placement->device_count; d++) {
            if (!(t->read_on[i] >> d & 1)) continue;
            if (input && !t->resident[i]) ns += hdi_timing_write_ns(t, d, i);
            if (!input && d != at) *out_crossings_ns += hdi_timing_crossing_ns(t, at, d, bytes_of(node));
        }
        if (!input && node->is_output) ns += hdi_timing_read_ns(t, at, i);
    }
    return ns + *out_crossings_ns;
}

/* When the last segment is done: each begins when its processor is free and what it takes from others is there. */
static double overlapped_ns(const hdi_timing *t, const hdi_placement *placement, uint32_t segments) {
    double free_at[HDI_MOST_DEVICES + 1] = { 0 }, last = 0; /* the last one is the host's processor */
    for (uint32_t s = 0; s < segments; s++) {
        uint32_t device = 0;
        double begin = 0, spent = 0;
        for (uint32_t i = 0; i < t->program->node_count; i++) {
            const hdi_node *node = &t->program->nodes[i];
            if (t->segment[i] != s) continue;
            device = placement->of[i].device;
            spent += hdi_timing_cost(t, i, device)->ns;
            for (uint32_t k = 0; k < node->operand_count; k++) {
                const uint32_t from = node->operands[k] - 1;
                if (node->operands[k] == 0 || t->segment[from] == HDI_NO_SEGMENT ||
                    placement->of[from].device == device)
                    continue;
                const double crossing_ns =
                    hdi_timing_crossing_ns(t, placement->of[from].device, device, bytes_of(&t->program->nodes[from]));
                begin = HDI_MAX(begin, t->ends[t->segment[from]] + crossing_ns);
            }
        }
        double *processor = &free_at[t->wish->software[device] ? HDI_MOST_DEVICES : device];
        t->ends[s] = HDI_MAX(begin, *processor) + spent + hdi_timing_submit_ns(t, device);
        *processor = t->ends[s];
        last = HDI_MAX(last, t->ends[s]);
    }
    return last;
}

hdi_placement_time hdi_timing_of(const hdi_timing *timing, const hdi_placement *placement) {
    hdi_timing t = *timing; /* its arrays are room to work in */
    hdi_placement_time time = { .segments = hdi_segments_number(t.program, placement, t.alive, t.segment, t.room) };
    double crossings_ns, one_by_one = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < t.program->node_count; i++) {
        const uint32_t device = placement->of[i].device;
        time.nodes_ns[device] += hdi_timing_cost(&t, i, device)->ns;
        if (t.segment[i] == HDI_NO_SEGMENT) continue;
        t.ends[t.segment[i]] = device; /* for the submissions */
        seen++;
    }
    for (uint32_t s = 0; s < time.segments && seen; s++)
        time.submits_ns[(uint32_t)t.ends[s]] += hdi_timing_submit_ns(&t, (uint32_t)t.ends[s]);
    find_read_on(&t, placement);
    time.transfers_ns = transfers_ns(&t, placement, &crossings_ns);
    for (uint32_t d = 0; d < placement->device_count; d++) one_by_one += time.nodes_ns[d] + time.submits_ns[d];
    one_by_one += crossings_ns;
    const double overlapped =
        seen && time.segments <= MOST_OVERLAPPED ? overlapped_ns(&t, placement, time.segments) : one_by_one;
    time.ports_ns = time.transfers_ns - crossings_ns;
    time.total_ns = HDI_MIN(one_by_one, overlapped) + time.ports_ns;
    return time;
}

hd_status hdi_timing_alone(const hd_program *program, const hdi_caps *caps, const hdi_figures *figures,
                           hdi_placement_time *out_time, hd_error *error) {
    hdi_timing timing = { 0 };
    hdi_placement placement = { 0 };
    const char *const id = "";
    const bool software = true;
    const hdi_choose_wish wish = { { .program = program, .caps = caps, .ids = &id }, 1, figures, &software, NULL };
    hd_status status = hdi_program_check(program, error);
    if (!status) status = hdi_timing_make(&wish, program, &timing, error);
    if (!status) status = hdi_placement_new(program, 1, &placement, error);
    if (!status) *out_time = hdi_timing_of(&timing, &placement);
    hdi_placement_free(&placement);
    hdi_timing_end(&timing);
    return status;
}
