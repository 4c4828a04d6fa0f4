/* segments.c: a program cut into programs that each run on one device. Every operation is numbered with the first
 * segment that it can be in, which makes segments as large and as few as the places allow; then each segment is
 * built. */
#include "program/segments.h"
#include <stdio.h>

typedef struct cut_value {
    hd_value state;   /* the state that it is, or 0 */
    hd_value here;    /* its id in the segment under construction, */
    uint32_t here_in; /* where that is this segment + 1 */
    bool     crosses;
} cut_value;

typedef struct cutting {
    const hd_program    *program;
    const hdi_placement *placement;
    bool         *alive;    /* of each node */
    uint32_t     *segment;  /* of an operation: the one that computes it; of a source: the first that reads it */
    cut_value    *values;   /* by id */
    hd_value     *ordered;  /* living operations by segment */
    hdi_segments *segments;
    uint32_t      building; /* the segment under construction */
    hd_error     *error;
} cutting;

static bool is_source(const hdi_node *node) { return node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE; }

/* Does an input cross to this device in every run? */
static bool arrives_on(const hdi_placement *placement, hd_value value, uint32_t device) {
    const hdi_place *place = &placement->of[value - 1];
    return place->arrives && place->device != device;
}

static const hdi_node *node_of(const cutting *c, hd_value value) { return &c->program->nodes[value - 1]; }

/* ---- which segment ---- */

void hdi_program_find_alive(const hd_program *program, bool *alive) {
    memset(alive, 0, program->node_count * sizeof *alive);
    for (uint32_t i = 0; i < program->output_count; i++) alive[program->outputs[i].value - 1] = true;
    for (hd_value v = program->node_count; v > 0; v--) {
        const hdi_node *node = &program->nodes[v - 1];
        if (hdi_op_writes_state(node->op)) alive[v - 1] = true;
        for (uint32_t k = 0; k < node->operand_count && alive[v - 1]; k++)
            if (node->operands[k]) alive[node->operands[k] - 1] = true;
    }
}

/* The first segment of the device that is not before `least`. */
static uint32_t segment_from(uint32_t least, uint32_t device, uint32_t start, uint32_t device_count) {
    return least + (device + 2 * device_count - start - least % device_count) % device_count;
}

/* What is numbered so far on a device: the segment that comes behind all others, and the inputs that arrived last. */
typedef struct numbered {
    uint32_t next, group, arrived;
} numbered;

/* The least segment by what a node reads; inputs that arrive begin one, behind all others on the device, unless later
 * ones are there already. */
static uint32_t least_segment(const hdi_node *node, const hdi_placement *placement, uint32_t device,
                              const uint32_t *segment, numbered *on) {
    uint32_t least = 0;
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const hd_value id = node->operands[k];
        if (id == 0) continue;
        if (segment[id - 1] != HDI_NO_SEGMENT) least = HDI_MAX(least, segment[id - 1]);
        if (!arrives_on(placement, id, device)) continue;
        const uint32_t group = placement->of[id - 1].arrives;
        if (group > on->group) *on = (numbered){ on->next, group, on->next };
        if (group == on->group) least = HDI_MAX(least, on->arrived);
    }
    return least;
}

/* Numbers the segments where the first one is on device `start`. `last_reader`: the last segment that reads each
 * value. */
static uint32_t number(const hd_program *program, const hdi_placement *placement, const bool *alive, uint32_t start,
                       uint32_t *segment, uint32_t *last_reader) {
    uint32_t count = 1;
    numbered on[HDI_MOST_DEVICES] = { 0 };
    memset(last_reader, 0, program->node_count * sizeof *last_reader);
    for (uint32_t i = 0; i < program->node_count; i++) {
        const hdi_node *node = &program->nodes[i];
        const uint32_t device = placement->of[i].device;
        segment[i] = HDI_NO_SEGMENT;
        if (!alive[i]) continue;
        if (is_source(node)) { /* what arrives lies in the first segment of its device */
            if (!placement->of[i].arrives) continue;
            segment[i] = segment_from(0, device, start, placement->device_count);
            count = HDI_MAX(count, segment[i] + 1);
            continue;
        }
        uint32_t least = least_segment(node, placement, device, segment, &on[device]);
        /* Rows are overwritten when all who read the old ones are done. */
        if (hdi_op_writes_state(node->op)) least = HDI_MAX(least, last_reader[node->operands[0] - 1]);
        segment[i] = segment_from(least, device, start, placement->device_count);
        on[device].next = HDI_MAX(on[device].next, segment[i] + 1);
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (node->operands[k])
                last_reader[node->operands[k] - 1] = HDI_MAX(last_reader[node->operands[k] - 1], segment[i]);
        count = HDI_MAX(count, segment[i] + 1);
    }
    return count;
}

/* How many of the segments have operations. `room` has a number for each node, and numbers are below their count times
 * that of the devices. */
static uint32_t count_used(const uint32_t *segment, uint32_t node_count, uint32_t device_count, uint32_t *room) {
    uint32_t used = 0;
    memset(room, 0, node_count * sizeof *room);
    for (uint32_t i = 0; i < node_count; i++) { /* a bit for each device in the word of its round */
        if (segment[i] == HDI_NO_SEGMENT) continue;
        const uint32_t bit = 1u << segment[i] % device_count, round = segment[i] / device_count;
        used += (room[round] & bit) == 0;
        room[round] |= bit;
    }
    return used;
}

uint32_t hdi_segments_number(const hd_program *program, const hdi_placement *placement, const bool *alive,
                             uint32_t *out_segment, uint32_t *room) {
    uint32_t best = 0, least = UINT32_MAX, count = 0;
    for (uint32_t start = 0; start < placement->device_count; start++) {
        number(program, placement, alive, start, out_segment, room);
        const uint32_t used = count_used(out_segment, program->node_count, placement->device_count, room);
        if (used < least) best = start;
        least = HDI_MIN(least, used);
    }
    const uint32_t numbers = number(program, placement, alive, best, out_segment, room);
    for (uint32_t s = 0; s < numbers; s++) room[s] = HDI_NO_SEGMENT; /* without gaps: empty ones are left out */
    for (uint32_t i = 0; i < program->node_count; i++)
        if (out_segment[i] != HDI_NO_SEGMENT) room[out_segment[i]] = 0;
    for (uint32_t s = 0; s < numbers; s++)
        if (room[s] != HDI_NO_SEGMENT) room[s] = count++;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (out_segment[i] != HDI_NO_SEGMENT) out_segment[i] = room[out_segment[i]];
    return HDI_MAX(count, 1); /* a program of ports alone */
}

/* What crosses, and where each source is read first; those that nothing reads are in the first segment. */
static void find_crossings(cutting *c) {
    for (hd_value v = 1; v <= c->program->node_count; v++) {
        const hdi_node *node = node_of(c, v);
        if (node->op == HDI_OP_STATE) c->values[v].state = v;
        if (hdi_op_writes_state(node->op)) c->values[v].state = c->values[node->operands[0]].state;
        if (is_source(node) || !c->alive[v - 1]) continue;
        for (uint32_t k = 0; k < node->operand_count; k++) {
            const hd_value id = node->operands[k];
            if (id == 0) continue;
            uint32_t *segment = &c->segment[id - 1];
            if (is_source(node_of(c, id))) *segment = HDI_MIN(*segment, c->segment[v - 1]);
            else if (c->values[id].state == 0 && *segment != c->segment[v - 1]) c->values[id].crosses = true;
        }
    }
    for (hd_value v = 1; v <= c->program->node_count; v++)
        if (is_source(node_of(c, v)) && c->segment[v - 1] == HDI_NO_SEGMENT) c->segment[v - 1] = 0;
}

/* Sorts the living operations by segment, in their order within each; `out_first` has count + 1 entries. */
static void sort_by_segment(cutting *c, uint32_t count, uint32_t *out_first) {
    memset(out_first, 0, ((size_t)count + 1) * sizeof *out_first);
    for (int pass = 0; pass < 2; pass++) {
        for (hd_value v = 1; v <= c->program->node_count; v++) {
            if (is_source(node_of(c, v)) || !c->alive[v - 1]) continue;
            const uint32_t segment = c->segment[v - 1];
            if (pass == 0) out_first[segment + 1]++;
            else c->ordered[out_first[segment]++] = v;
        }
        for (uint32_t s = 0; pass == 0 && s < count; s++) out_first[s + 1] += out_first[s];
    }
    memmove(out_first + 1, out_first, count * sizeof *out_first); /* each was moved to the next one's beginning */
    out_first[0] = 0;
}

/* ---- building ---- */

/* A name for a crossing value that no port of the whole program has: "v12", else "v12.1", "v12.2", ... */
static void name_crossing(const hd_program *program, hd_value value, char out[32]) {
    snprintf(out, 32, "v%lu", (unsigned long)value);
    for (unsigned long k = 1; hdi_names_find(&program->names, out, strlen(out)); k++)
        snprintf(out, 32, "v%lu.%lu", (unsigned long)value, k);
}

static hd_value add(cutting *c, hd_program *part, hd_value whole, hdi_op op, const hd_value *operands,
                    const char *name) {
    const hdi_node *node = node_of(c, whole);
    const bool source = op == HDI_OP_INPUT || op == HDI_OP_STATE;
    hdi_node made = { .op = op, .dtype = node->dtype, .shape = node->shape, .name = name };
    if (!source) made.attrs = node->attrs, made.operands = operands, made.operand_count = node->operand_count;
    hd_value value = hdi_program_add(part, &made);
    if (!value) return 0;
    part->nodes[value - 1].whole = whole;
    const uint32_t device = c->segments->items[c->building].device;
    part->nodes[value - 1].arrives =
        op == HDI_OP_INPUT && c->alive[whole - 1] && arrives_on(c->placement, whole, device);
    part->nodes[value - 1].origin = node->origin.value ? node->origin : (hdi_origin){ .value = whole };
    return value;
}

/* The value's id in segment `s`: what was made there, or what it begins with. */
static hd_value here(cutting *c, uint32_t s, hd_value whole) {
    hd_program *part = c->segments->items[s].program;
    cut_value *value = &c->values[whole];
    char name[32];
    if (whole == 0 || value->here_in == s + 1) return value->here;
    /* what an earlier segment left in it */
    if (value->state && value->state != whole) value->here = here(c, s, value->state);
    else if (is_source(node_of(c, whole)))
        value->here = add(c, part, whole, node_of(c, whole)->op, NULL, node_of(c, whole)->name);
    else {
        name_crossing(c->program, whole, name);
        value->here = add(c, part, whole, HDI_OP_INPUT, NULL, name);
    }
    value->here_in = s + 1;
    return value->here;
}

static void add_outputs(cutting *c, uint32_t s, const hd_value *operations, uint32_t count) {
    hd_program *part = c->segments->items[s].program;
    char name[32];
    for (uint32_t i = 0; i < c->program->output_count; i++) {
        const hdi_output *output = &c->program->outputs[i];
        if (c->segment[output->value - 1] == s) hdi_program_add_output(part, output->name, here(c, s, output->value));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!c->values[operations[i]].crosses) continue;
        name_crossing(c->program, operations[i], name);
        hdi_program_add_output(part, name, c->values[operations[i]].here);
    }
}

static hd_status build(cutting *c, uint32_t s, uint32_t device, const hd_value *operations, uint32_t count) {
    hd_program *part = hdi_program_new(c->program->allocator, c->program->context);
    if (!part) return hdi_fail(c->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a segment");
    c->segments->items[s] = (hdi_segment){ device, part };
    c->building = s;
    /* sources that nothing reads here too: the caller may write them */
    for (hd_value v = 1; v <= c->program->node_count; v++)
        if (is_source(node_of(c, v)) && c->segment[v - 1] == s && (s == 0 || c->placement->of[v - 1].arrives))
            here(c, s, v);
    for (uint32_t i = 0; i < count && !part->error.status; i++) {
        const hdi_node *node = node_of(c, operations[i]);
        hd_value operands[HDI_MAX_OPERANDS];
        for (uint32_t k = 0; k < node->operand_count; k++) operands[k] = here(c, s, node->operands[k]);
        c->values[operations[i]].here = add(c, part, operations[i], node->op, operands, NULL);
        c->values[operations[i]].here_in = s + 1;
    }
    add_outputs(c, s, operations, count);
    if (part->error.status && c->error) *c->error = part->error;
    return part->error.status;
}

/* The device of a segment: that of any operation in it, or of an input that lies there. */
static uint32_t device_of(const cutting *c, uint32_t s, uint32_t first, uint32_t count) {
    if (count) return c->placement->of[c->ordered[first] - 1].device;
    for (hd_value v = 1; v <= c->program->node_count; v++) {
        const hdi_place *place = &c->placement->of[v - 1];
        if (c->alive[v - 1] && c->segment[v - 1] == s && place->arrives) return place->device;
    }
    return 0;
}

/* `first`: room for where each segment begins in `ordered`. */
static hd_status cut(cutting *c, uint32_t *room, uint32_t *first) {
    hdi_segments *segments = c->segments;
    hd_status status = HD_OK;
    hdi_program_find_alive(c->program, c->alive);
    const uint32_t count = hdi_segments_number(c->program, c->placement, c->alive, c->segment, room);
    if (count > HDI_MAX_SEGMENTS)
        return hdi_fail(c->error, HD_STATUS_LIMIT, "these places make %u segments, and a plan has at most %d", count,
                        HDI_MAX_SEGMENTS);
    segments->count = count;
    find_crossings(c);
    sort_by_segment(c, count, first);
    for (uint32_t s = 0; s < count && !status; s++)
        status = build(c, s, device_of(c, s, first[s], first[s + 1] - first[s]), c->ordered + first[s],
                       first[s + 1] - first[s]);
    return status;
}

hd_status hdi_segments_cut(const hd_program *program, const hdi_placement *placement, hdi_segments *out_segments,
                           hd_error *error) {
    const hd_allocator *allocator = program->allocator;
    const size_t count = (size_t)program->node_count + 1, first_count = HDI_MAX_SEGMENTS + 1,
                 room_count = placement->device_count * count; /* as hdi_segments_number wants */
    *out_segments = (hdi_segments){ .allocator = allocator,
                                    .items = hdi_alloc(allocator, HDI_MAX_SEGMENTS * sizeof *out_segments->items) };
    uint32_t *room = hdi_alloc(allocator, room_count * sizeof *room);
    uint32_t *first = hdi_alloc(allocator, first_count * sizeof *first);
    cutting c = { program, placement, hdi_alloc(allocator, count * sizeof *c.alive),
                  hdi_alloc(allocator, count * sizeof *c.segment),
                  hdi_alloc(allocator, count * sizeof *c.values), hdi_alloc(allocator, count * sizeof *c.ordered),
                  out_segments, 0, error };
    hd_status status = HD_OK;
    if (!room || !first || !out_segments->items || !c.alive || !c.segment || !c.values || !c.ordered)
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for segments");
    else status = cut(&c, room, first);
    hdi_free(allocator, room, room_count * sizeof *room);
    hdi_free(allocator, first, first_count * sizeof *first);
    hdi_free(allocator, c.alive, count * sizeof *c.alive);
    hdi_free(allocator, c.segment, count * sizeof *c.segment);
    hdi_free(allocator, c.values, count * sizeof *c.values);
    hdi_free(allocator, c.ordered, count * sizeof *c.ordered);
    if (status) hdi_segments_free(out_segments);
    return status;
}

void hdi_segments_free(hdi_segments *segments) {
    for (uint32_t s = 0; segments->items && s < segments->count; s++) hdi_program_free(segments->items[s].program);
    hdi_free(segments->allocator, segments->items, HDI_MAX_SEGMENTS * sizeof *segments->items);
    *segments = (hdi_segments){ .allocator = segments->allocator };
}

bool hdi_segments_is_crossing(const hd_program *whole, const hdi_node *node) {
    return node->op == HDI_OP_INPUT && (node->arrives || !is_source(&whole->nodes[node->whole - 1]));
}

/* ---- text ---- */

/* Where a value that crosses was made, and on which devices (bits) it already is. */
typedef struct printed_value {
    uint32_t made_in, there;
} printed_value;

static void print_segment(const hd_program *whole, const hdi_segments *segments, uint32_t s, const char *device,
                          printed_value *values, hdi_text *out) {
    const hdi_segment *segment = &segments->items[s];
    const uint32_t bit = 1u << segment->device;
    uint32_t operations = 0;
    hdi_text_add(out, "segment %u on %s: ", s, device);
    for (uint32_t i = 0; i < segment->program->node_count; i++) {
        const hdi_node *node = &segment->program->nodes[i];
        if (is_source(node)) {
            if (!node->arrives && !values[node->whole - 1].there) values[node->whole - 1] = (printed_value){ s, bit };
            continue;
        }
        values[node->whole - 1] = (printed_value){ s, bit };
        hdi_text_add(out, "%s", operations++ ? ", " : "");
        hdi_origin_print(segment->program, i + 1, out);
        hdi_text_add(out, " %s", hdi_op_get(node->op).name);
    }
    hdi_text_add(out, "%s\n", operations ? "" : "no operations");
    for (uint32_t i = 0; i < segment->program->node_count; i++) {
        const hdi_node *node = &segment->program->nodes[i];
        if (!hdi_segments_is_crossing(whole, node)) continue;
        printed_value *value = &values[node->whole - 1];
        char shape[HDI_SHAPE_TEXT];
        hdi_text_add(out, "  takes ");
        hdi_origin_print(segment->program, i + 1, out);
        hdi_text_add(out, " %s%s of segment %u: ", hd_dtype_name(node->dtype), hdi_shape_text(node->shape, shape),
                     value->made_in);
        if (value->there & bit) hdi_text_add(out, "there already\n");
        else hdi_text_add(out, "%llu bytes cross\n", (unsigned long long)hd_tensor_bytes(node->dtype, node->shape));
        value->there |= bit;
    }
}

void hdi_segments_print(const hd_program *whole, const hdi_segments *segments, const char *const *devices,
                        hdi_text *out) {
    printed_value *values = hdi_alloc(out->allocator, (size_t)whole->node_count * sizeof *values);
    if (!values) out->failed = true;
    else
        for (uint32_t s = 0; s < segments->count; s++)
            print_segment(whole, segments, s, devices[segments->items[s].device], values, out);
    hdi_free(out->allocator, values, (size_t)whole->node_count * sizeof *values);
}
