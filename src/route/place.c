/* place.c: each operation on one of two devices, so that the whole takes the least time. What an operation takes on each
 * device and what a value takes to cross make a graph whose minimum cut is the best placement, but for the cost of
 * submissions, which depends on how many segments there are: the cut is made twice, without that cost and with a submission
 * for each value that crosses, and is then compared by the whole time with all on one device, and with tasks dealt out to both;
 * what comes out of that with operations shared by rows (rows.c). */
#include "route/route.h"
#include <math.h>
#include <stdlib.h>

enum {
    MOST_GROUPS = 1 << 16,  /* of a graph that is cut */
    MOST_OVERLAPPED = 64,   /* segments whose overlap is looked at */
    MOST_MOVES = 1 << 20,   /* nodes looked at in one search */
    LARGE = 4               /* strands that are shared by rows: of one part in so many of all, or more */
};
#define UNITS_PER_NS 8.0

/* ---- times ---- */

static double factor_of(const hdi_routing *r, uint32_t device, hdi_op_kind family) {
    return r->learned[device] ? hdi_learned_factor(r->learned[device], family, r->now_ns) : 1;
}

double hdi_route_node_ns(const hdi_routing *r, uint32_t node, uint32_t device) {
    return hdi_cost_node(r->tuning[device], &r->work[node]) * factor_of(r, device, r->work[node].family);
}

static double submit_ns(const hdi_routing *r, uint32_t device) { return r->tuning[device]->submit.fixed_ns * factor_of(r, device, HDI_KIND_NONE); }

static uint64_t bytes_of(const hdi_node *node) { return hd_tensor_bytes(node->dtype, node->shape); }

/* Between the caller and a device: an input, and what a node made. */
static double up_ns(const hdi_routing *r, uint32_t device, uint32_t input) {
    const hd_value reader = r->work[input].reader;
    return hdi_cost_write(r->tuning[device], reader ? &r->work[reader - 1] : NULL, bytes_of(&r->program->nodes[input]));
}
static double down_ns(const hdi_routing *r, uint32_t device, uint32_t node) { return hdi_cost_read(r->tuning[device], &r->work[node], bytes_of(&r->program->nodes[node])); }

/* From one device to the other by the host, in whose memory one of them may compute: it is then read and written in place. */
static double crossing_ns(const hdi_routing *r, uint32_t to, uint64_t bytes) {
    return (r->host[1 - to] ? 0 : hdi_cost_transfer(&r->tuning[1 - to]->download, bytes)) + (r->host[to] ? 0 : hdi_cost_transfer(&r->tuning[to]->upload, bytes));
}

static bool can(const hdi_routing *r, uint32_t node, uint32_t device) { return !r->can || (r->can[node] >> device & 1u); }

static bool is_resident(const hdi_routing *r, uint32_t node) {
    return hdi_dtype_is_quantised(r->program->nodes[node].dtype) || (r->resident && r->resident[node]);
}

/* Is the value read by a node of device 0 (bit 0) or 1 (bit 1)? `readers` has a byte for each node. */
static void find_readers(const hdi_routing *r, const uint8_t *places, uint8_t *readers) {
    for (uint32_t i = 0; i < r->program->node_count; i++) readers[i] = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++)
        for (uint32_t k = 0; k < r->program->nodes[i].operand_count && r->work[i].alive; k++)
            if (r->program->nodes[i].operands[k]) readers[r->program->nodes[i].operands[k] - 1] |= (uint8_t)(1u << places[i]);
}

/* Inputs that are written, outputs that are read, and what crosses on the way. */
static double transfers_ns(const hdi_routing *r, const uint8_t *places, const uint8_t *readers, double *out_crossings_ns) {
    double ns = 0;
    *out_crossings_ns = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const hdi_node *node = &r->program->nodes[i];
        const uint32_t at = places[i], other = 1 - at;
        if (!r->work[i].alive) continue;
        if (node->op == HDI_OP_INPUT) {
            for (uint32_t device = 0; device < 2 && !is_resident(r, i); device++)
                if (readers[i] >> device & 1) ns += up_ns(r, device, i);
            continue;
        }
        if (node->is_output) ns += down_ns(r, at, i);
        if (readers[i] >> other & 1) *out_crossings_ns += crossing_ns(r, other, bytes_of(node));
    }
    return ns + *out_crossings_ns;
}

/* Segments alternate between the devices, beginning with `first`: a node belongs to the earliest one of its device that does
 * not begin before its operands are there (program/segments.c cuts by the same rule). Fills in levels; returns how many there are. */
static uint32_t number_segments(const hdi_routing *r, const uint8_t *places, uint32_t first, uint32_t *levels) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const hdi_node *node = &r->program->nodes[i];
        levels[i] = 0;
        if (!r->work[i].alive || node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE) continue;
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (node->operands[k]) levels[i] = HDI_MAX(levels[i], levels[node->operands[k] - 1]);
        levels[i] += (levels[i] & 1u) != (places[i] ^ first);
        count = HDI_MAX(count, levels[i] + 1);
    }
    return count;
}

/* When the last segment is done, where the devices compute at the same time: a segment begins when its device is free and
 * what it takes from the other one is there. `ends` has room for each level. */
static double overlapped_ns(const hdi_routing *r, const uint8_t *places, uint32_t first, uint32_t count, const uint32_t *levels, double *ends) {
    for (uint32_t level = 0; level < count; level++) {
        const uint32_t device = (level & 1u) ^ first;
        double begin = level >= 2 ? ends[level - 2] : 0, spent = 0;
        bool any = false;
        for (uint32_t i = 0; i < r->program->node_count; i++) {
            const hdi_node *node = &r->program->nodes[i];
            if (levels[i] != level || !r->work[i].alive || node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE) continue;
            any = true;
            spent += hdi_route_node_ns(r, i, device);
            for (uint32_t k = 0; k < node->operand_count; k++) {
                if (node->operands[k] == 0) continue;
                const uint32_t from = node->operands[k] - 1;
                const hdi_node *made = &r->program->nodes[from];
                if (made->op == HDI_OP_INPUT || made->op == HDI_OP_STATE || places[from] == device) continue;
                begin = HDI_MAX(begin, ends[levels[from]] + crossing_ns(r, device, bytes_of(made)));
            }
        }
        ends[level] = begin + (any ? spent + submit_ns(r, device) : 0);
    }
    return count == 0 ? 0 : count == 1 ? ends[0] : HDI_MAX(ends[count - 1], ends[count - 2]);
}

typedef struct scratch {
    uint32_t *levels; /* of each node */
    double   *ends;   /* of each level: as many as nodes */
    uint8_t  *readers;
} scratch;

static hdi_route_time time_with(const hdi_routing *r, const uint8_t *places, const scratch *s) {
    hdi_route_time time = { 0 };
    double crossings_ns;
    for (uint32_t i = 0; i < r->program->node_count; i++) time.nodes_ns[places[i]] += hdi_route_node_ns(r, i, places[i]);
    const uint32_t first = number_segments(r, places, 1, s->levels) < number_segments(r, places, 0, s->levels);
    const uint32_t levels = number_segments(r, places, first, s->levels);
    bool begins = false; /* the first level may be empty where the program begins with the other device */
    for (uint32_t i = 0; i < r->program->node_count && !begins; i++)
        begins = s->levels[i] == 0 && r->work[i].alive && r->program->nodes[i].op != HDI_OP_INPUT && r->program->nodes[i].op != HDI_OP_STATE;
    for (uint32_t level = !begins; level < levels; level++) time.submits_ns[(level & 1u) ^ first] += submit_ns(r, (level & 1u) ^ first);
    time.segments = levels - (levels > 0 && !begins);
    find_readers(r, places, s->readers);
    time.transfers_ns = transfers_ns(r, places, s->readers, &crossings_ns);
    const double one_by_one = time.nodes_ns[0] + time.nodes_ns[1] + time.submits_ns[0] + time.submits_ns[1] + crossings_ns;
    const double overlapped = r->overlap && time.segments <= MOST_OVERLAPPED ? overlapped_ns(r, places, first, levels, s->levels, s->ends) : one_by_one;
    time.total_ns = HDI_MIN(one_by_one, overlapped) + time.transfers_ns - crossings_ns;
    return time;
}

/* ---- groups: nodes that stay together ---- */

typedef struct placing {
    const hdi_routing *r;
    uint32_t *group;    /* of each node: another of its group, in the end the first one */
    uint32_t *at;       /* of each group's first node: its node in the graph */
    uint32_t *leads;    /* of each node: the one that its strand leads to */
    uint8_t  *places;   /* looked at now */
    uint8_t  *best;     /* of the search under way */
    scratch   scratch;
} placing;

static uint32_t group_of(placing *p, uint32_t node) {
    while (p->group[node] != node) node = p->group[node] = p->group[p->group[node]];
    return node;
}

static void together(placing *p, uint32_t a, uint32_t b) {
    a = group_of(p, a);
    b = group_of(p, b);
    p->group[HDI_MAX(a, b)] = HDI_MIN(a, b);
}

static bool is_of_state(const hd_program *program, hd_value value) { return hdi_op_shows_state(program->nodes[value - 1].op); }

static void find_groups(placing *p) {
    const hdi_routing *r = p->r;
    for (uint32_t i = 0; i < r->program->node_count; i++) p->group[i] = i;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const hdi_node *node = &r->program->nodes[i];
        const uint32_t kernel = r->work[i].kernel - 1;
        if (kernel != i && (!r->can || r->can[i] == r->can[kernel])) together(p, i, kernel);
        for (uint32_t k = 0; k < node->operand_count && r->work[i].alive; k++) {
            const hd_value operand = node->operands[k];
            if (operand && is_of_state(r->program, operand)) together(p, i, operand - 1);
        }
    }
}

/* ---- the graph ---- */

static uint64_t room_of(double ns) {
    const double units = ns * UNITS_PER_NS;
    return units >= (double)HDI_CUT_MOST ? HDI_CUT_MOST : units > 0 ? (uint64_t)(units + 0.5) : 0;
}

/* `ns` on device 0 where the node is placed there, and so for 1: the edge to the other side is then cut. */
static void charge(hdi_cut *cut, uint32_t node, uint32_t device, double ns) {
    if (device == 0) hdi_cut_edge_add(cut, node, HDI_CUT_SINK, room_of(ns));
    else hdi_cut_edge_add(cut, HDI_CUT_SOURCE, node, room_of(ns));
}

/* Nodes that stand for "some reader is on device d", which costs once however many readers there are. 0: not there yet. */
typedef struct value_ends { uint32_t on[2]; } value_ends;

static void read_by(hdi_cut *cut, value_ends *ends, uint32_t reader, uint32_t device) {
    if (ends->on[device] == 0) ends->on[device] = hdi_cut_node(cut);
    if (device == 0) hdi_cut_edge_add(cut, reader, ends->on[0], HDI_CUT_ALWAYS); /* a reader on the source's side holds the end there */
    else hdi_cut_edge_add(cut, ends->on[1], reader, HDI_CUT_ALWAYS);
}

/* The value of a node: what it costs to have it where its readers are.
 * `charge_submits` 1: each crossing is charged a submission. */
static void add_value(placing *p, hdi_cut *cut, uint32_t i, const value_ends *ends, double charge_submits) {
    const hdi_routing *r = p->r;
    const hdi_node *node = &r->program->nodes[i];
    const uint32_t maker = p->at[group_of(p, i)];
    const bool input = node->op == HDI_OP_INPUT;
    if (!r->work[i].alive || (input && is_resident(r, i))) return;
    if (!input && node->is_output)
        for (uint32_t device = 0; device < 2; device++) charge(cut, maker, device, down_ns(r, device, i));
    for (uint32_t device = 0; device < 2; device++) {
        if (ends->on[device] == 0) continue;
        const double ns = input ? up_ns(r, device, i) : crossing_ns(r, device, bytes_of(node)) + charge_submits * submit_ns(r, device);
        if (device == 0) hdi_cut_edge_add(cut, ends->on[0], input ? HDI_CUT_SINK : maker, room_of(ns));
        else hdi_cut_edge_add(cut, input ? HDI_CUT_SOURCE : maker, ends->on[1], room_of(ns));
    }
}

static void add_nodes(placing *p, hdi_cut *cut) {
    const hdi_routing *r = p->r;
    for (uint32_t i = 0; i < r->program->node_count; i++)
        if (group_of(p, i) == i) p->at[i] = r->program->nodes[i].op == HDI_OP_INPUT ? 0 : hdi_cut_node(cut);
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        if (r->program->nodes[i].op == HDI_OP_INPUT) continue;
        for (uint32_t device = 0; device < 2; device++) {
            const uint32_t at = p->at[group_of(p, i)];
            if (can(r, i, device)) charge(cut, at, device, hdi_route_node_ns(r, i, device));
            else if (device == 0) hdi_cut_edge_add(cut, at, HDI_CUT_SINK, HDI_CUT_ALWAYS);
            else hdi_cut_edge_add(cut, HDI_CUT_SOURCE, at, HDI_CUT_ALWAYS);
        }
    }
}

static bool make_cut(placing *p, double charge_submits) {
    const hdi_routing *r = p->r;
    const hd_allocator *allocator = r->program->allocator;
    const uint32_t count = r->program->node_count;
    value_ends *ends = hdi_alloc(allocator, count * sizeof *ends);
    hdi_cut cut;
    hdi_cut_begin(&cut, allocator);
    if (ends) add_nodes(p, &cut);
    for (uint32_t i = 0; i < count && ends; i++)
        for (uint32_t k = 0; k < r->program->nodes[i].operand_count && r->work[i].alive; k++) {
            const hd_value operand = r->program->nodes[i].operands[k];
            if (operand == 0 || group_of(p, operand - 1) == group_of(p, i)) continue;
            for (uint32_t device = 0; device < 2; device++) read_by(&cut, &ends[operand - 1], p->at[group_of(p, i)], device);
        }
    for (uint32_t i = 0; i < count && ends; i++) add_value(p, &cut, i, &ends[i], charge_submits);
    uint8_t *side = ends ? hdi_alloc(allocator, cut.node_count) : NULL;
    const uint32_t sides = cut.node_count;
    const bool made = side && hdi_cut_make(&cut, side);
    for (uint32_t i = 0; i < count && made; i++) p->places[i] = side[p->at[group_of(p, i)]];
    hdi_free(allocator, side, sides);
    hdi_free(allocator, ends, count * sizeof *ends);
    hdi_cut_end(&cut);
    return made;
}

/* ---- choosing ---- */

static void free_placing(placing *p, uint32_t count) {
    const hd_allocator *allocator = p->r->program->allocator;
    hdi_free(allocator, p->group, count * sizeof *p->group);
    hdi_free(allocator, p->at, count * sizeof *p->at);
    hdi_free(allocator, p->leads, count * sizeof *p->leads);
    hdi_free(allocator, p->scratch.levels, count * sizeof *p->scratch.levels);
    hdi_free(allocator, p->scratch.ends, ((size_t)count + 1) * sizeof *p->scratch.ends);
    hdi_free(allocator, p->scratch.readers, count);
    hdi_free(allocator, p->places, count);
    hdi_free(allocator, p->best, count);
}

static bool allocate(placing *p, uint32_t count) {
    const hd_allocator *allocator = p->r->program->allocator;
    p->group = hdi_alloc(allocator, count * sizeof *p->group);
    p->at = hdi_alloc(allocator, count * sizeof *p->at);
    p->leads = hdi_alloc(allocator, count * sizeof *p->leads);
    p->scratch.levels = hdi_alloc(allocator, count * sizeof *p->scratch.levels);
    p->scratch.ends = hdi_alloc(allocator, ((size_t)count + 1) * sizeof *p->scratch.ends);
    p->scratch.readers = hdi_alloc(allocator, count);
    p->places = hdi_alloc(allocator, count);
    p->best = hdi_alloc(allocator, count);
    return p->group && p->at && p->leads && p->scratch.levels && p->scratch.ends && p->scratch.readers && p->places && p->best;
}

static bool is_placed(const hdi_routing *r, uint32_t node) { return r->work[node].alive && r->program->nodes[node].op != HDI_OP_INPUT; }

/* Is every node where it can be computed, and each group together? */
static bool is_possible(placing *p, const uint8_t *places) {
    for (uint32_t i = 0; i < p->r->program->node_count; i++) {
        if (!is_placed(p->r, i)) continue;
        if (places[i] > 1 || !can(p->r, i, places[i]) || places[group_of(p, i)] != places[i]) return false;
    }
    return true;
}

/* Do both devices launch kernels? */
static bool is_split(const hdi_routing *r, const uint8_t *places) {
    bool on[2] = { false, false };
    for (uint32_t i = 0; i < r->program->node_count; i++)
        if (is_placed(r, i) && r->work[i].launch) on[places[i]] = true;
    return on[0] && on[1];
}

/* Looks at the placement in p->places: the route keeps it where it takes less time than all others before, and the fastest one
 * of those that use both devices; p->best keeps it where it takes less than *inout_ns, which is then its time. */
static bool look_at(placing *p, double *inout_ns, hdi_route *route) {
    const uint32_t count = p->r->program->node_count;
    if (!is_possible(p, p->places)) return false;
    const hdi_route_time time = time_with(p->r, p->places, &p->scratch);
    if (time.total_ns < route->chosen.total_ns) {
        route->chosen = time;
        memcpy(route->places, p->places, count);
    }
    if (time.total_ns < route->shared.total_ns && is_split(p->r, p->places)) {
        route->shared = time;
        memcpy(route->shared_places, p->places, count);
    }
    if (!(time.total_ns < *inout_ns)) return false;
    *inout_ns = time.total_ns;
    memcpy(p->best, p->places, count);
    return true;
}

/* The strand of a node: the last node that it leads to, by way of the first reader. Nothing else connects strands but inputs,
 * and values with several readers. */
static void find_strands(placing *p, uint32_t *strand) {
    const hdi_routing *r = p->r;
    for (uint32_t i = 0; i < r->program->node_count; i++) strand[i] = i;
    for (uint32_t i = r->program->node_count; i-- > 0;)
        for (uint32_t k = 0; k < r->program->nodes[i].operand_count && r->work[i].alive; k++) {
            const hd_value operand = r->program->nodes[i].operands[k];
            if (operand && r->program->nodes[operand - 1].op != HDI_OP_INPUT) strand[operand - 1] = strand[i];
        }
}

/* What a strand takes longer on device 1, with what it is handed and what is read of it. */
typedef struct strand_gain {
    double   ns;
    uint32_t strand;
} strand_gain;

static int by_gain(const void *a, const void *b) {
    const strand_gain *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : x->strand < y->strand ? -1 : 1;
}

static void add_gains(const hdi_routing *r, const uint32_t *strand, strand_gain *gains) {
    for (uint32_t i = 0; i < r->program->node_count; i++) gains[i] = (strand_gain){ 0, i };
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const hdi_node *node = &r->program->nodes[i];
        if (!is_placed(r, i)) continue;
        double *ns = &gains[strand[i]].ns;
        *ns += hdi_route_node_ns(r, i, 1) - hdi_route_node_ns(r, i, 0);
        if (node->is_output) *ns += down_ns(r, 1, i) - down_ns(r, 0, i);
        for (uint32_t k = 0; k < node->operand_count; k++) {
            const uint32_t from = node->operands[k] - 1;
            if (node->operands[k] == 0 || r->program->nodes[from].op != HDI_OP_INPUT || is_resident(r, from)) continue;
            *ns += up_ns(r, 1, from) - up_ns(r, 0, from);
        }
    }
}

/* Deals strands out: those that suit device 1 best go there, one more each time. This finds how devices that compute at the same
 * time share many tasks, where moving a single one would not pay for its submission. */
static hd_status deal_strands(placing *p, const uint32_t *strand, hdi_route *route, hd_error *error) {
    const hdi_routing *r = p->r;
    const uint32_t count = r->program->node_count;
    strand_gain *gains = hdi_alloc(r->program->allocator, count * sizeof *gains);
    if (!gains) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u nodes", count);
    add_gains(r, strand, gains);
    qsort(gains, count, sizeof *gains, by_gain);
    double least_ns = HUGE_VAL;
    memset(p->places, 0, count);
    uint64_t looked = 0;
    for (uint32_t k = 0; k < count && looked < MOST_MOVES; k++) {
        const uint32_t of = gains[k].strand;
        if (strand[of] != of || !is_placed(r, of)) continue;
        for (uint32_t i = 0; i < count; i++)
            if (strand[i] == of) p->places[i] = 1;
        look_at(p, &least_ns, route);
        looked += count;
    }
    hdi_free(r->program->allocator, gains, count * sizeof *gains);
    return HD_OK;
}

/* Moves one strand after the other, and one group after the other, to the other device, and keeps what takes less time, until
 * nothing helps any more. Begins with `places`. */
static void move_one_by_one(placing *p, const uint32_t *strand, const uint8_t *places, double begin_ns, hdi_route *route) {
    const hdi_routing *r = p->r;
    const uint32_t count = r->program->node_count;
    double least_ns = begin_ns;
    uint64_t looked = 0;
    memcpy(p->best, places, count);
    for (bool helps = true; helps && looked < MOST_MOVES;) {
        helps = false;
        for (uint32_t by = 0; by < 2; by++)
            for (uint32_t i = 0; i < count && looked < MOST_MOVES; i++) {
                const bool leads = by == 0 ? strand[i] == i : group_of(p, i) == i;
                if (!leads || !is_placed(r, i)) continue;
                memcpy(p->places, p->best, count);
                for (uint32_t k = 0; k < count; k++)
                    if (r->program->nodes[k].op != HDI_OP_INPUT && (by == 0 ? strand[k] : group_of(p, k)) == i) p->places[k] = 1 - p->best[i];
                helps = look_at(p, &least_ns, route) || helps;
                looked += count;
            }
    }
}

/* The nodes of strands that take at least one part in LARGE of all: of smaller ones there are enough to deal out. */
static void find_large(placing *p, uint8_t *large) {
    const hdi_routing *r = p->r;
    double *strands_ns = p->scratch.ends, all_ns = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++) strands_ns[i] = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const double ns = HDI_MIN(hdi_route_node_ns(r, i, 0), hdi_route_node_ns(r, i, 1));
        strands_ns[p->leads[i]] += ns;
        all_ns += ns;
    }
    for (uint32_t i = 0; i < r->program->node_count; i++) large[i] = strands_ns[p->leads[i]] * LARGE >= all_ns;
}

/* Rows are shared where that pays clearly. */
static hd_status share_rows(placing *p, hdi_route *route, hd_error *error) {
    hdi_route_time time;
    find_large(p, p->best);
    const hd_status status = hdi_route_rows(p->r, route->places, p->best, p->places, &time, error);
    if (status || !(time.total_ns <= HDI_ROWS_PAY * route->chosen.total_ns)) return status;
    route->chosen = route->shared = time;
    memcpy(route->places, p->places, p->r->program->node_count);
    memcpy(route->shared_places, p->places, p->r->program->node_count);
    return HD_OK;
}

static hd_status choose(placing *p, hdi_route *route, hd_error *error) {
    const uint32_t count = p->r->program->node_count;
    double least_ns = HUGE_VAL;
    find_groups(p);
    route->chosen.total_ns = route->shared.total_ns = HUGE_VAL;
    for (uint32_t device = 0; device < 2; device++) {
        memset(p->places, (int)device, count);
        route->possible[device] = is_possible(p, p->places);
        route->alone[device] = time_with(p->r, p->places, &p->scratch);
        look_at(p, &least_ns, route);
    }
    for (int submits = 0; submits < 2 && count <= MOST_GROUPS; submits++) {
        if (!make_cut(p, submits)) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u nodes", count);
        look_at(p, &least_ns, route);
    }
    if (route->chosen.total_ns == HUGE_VAL) return hdi_fail(error, HD_STATUS_UNSUPPORTED, "neither of the two devices computes every operation that stays together");
    if (!route->possible[0] || !route->possible[1]) return HD_OK;
    find_strands(p, p->leads);
    const hd_status status = deal_strands(p, p->leads, route, error);
    if (status) return status;
    move_one_by_one(p, p->leads, route->places, route->chosen.total_ns, route);
    if (route->shared.total_ns < HUGE_VAL) move_one_by_one(p, p->leads, route->shared_places, route->shared.total_ns, route);
    return share_rows(p, route, error);
}

hd_status hdi_route_make(const hdi_routing *routing, hdi_route *route, hd_error *error) {
    const uint32_t count = routing->program->node_count;
    placing p = { .r = routing };
    *route = (hdi_route){ .places = hdi_alloc(routing->program->allocator, count), .shared_places = hdi_alloc(routing->program->allocator, count) };
    hd_status status = route->places && route->shared_places && allocate(&p, count) ? HD_OK : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u nodes", count);
    if (!status) status = choose(&p, route, error);
    free_placing(&p, count);
    if (status) hdi_route_free(routing->program, route);
    return status;
}

void hdi_route_free(const hd_program *program, hdi_route *route) {
    hdi_free(program->allocator, route->places, program->node_count);
    hdi_free(program->allocator, route->shared_places, program->node_count);
    route->places = route->shared_places = NULL;
}

hd_status hdi_route_time_of(const hdi_routing *routing, const uint8_t *places, hdi_route_time *out_time, hd_error *error) {
    hdi_split_routing split;
    hd_status status = hdi_route_split(routing, places, &split, error);
    const uint32_t count = split.routing.program->node_count;
    placing p = { .r = &split.routing };
    if (!status && !allocate(&p, count)) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to time %u nodes", count);
    if (!status) *out_time = time_with(&split.routing, split.places, &p.scratch);
    free_placing(&p, count);
    hdi_route_split_end(&split);
    return status;
}
