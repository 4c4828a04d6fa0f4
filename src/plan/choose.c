/* choose.c: each operation on one of n devices, so that the whole takes the least time. What an operation takes on two
 * of them and what a value takes to cross make a graph whose minimum cut is the best placement between the two, but for
 * submissions, whose number depends on the segments: the cut is made twice, without their cost and with a submission
 * for each value that crosses. The result is compared by the whole time with all on one device and with strands dealt
 * out to two, is then moved strand by strand and group by group while that helps, and at last shared by rows
 * (share.c). */
#include "plan/choose.h"
#include <math.h>
#include <stdlib.h>

enum {
    MOST_CUT = 1 << 16,   /* nodes of a program that is cut */
    MOST_MOVES = 1 << 20, /* nodes looked at in one search */
    LARGE = 4             /* strands that are shared by rows: of one part in so many of all, or more */
};
#define UNITS_PER_NS 8.0
#define ROWS_PAY 0.9 /* of the least time without shares: less than that is within what predictions are off */

typedef struct choosing {
    const hdi_timing *t;
    uint32_t count, devices;
    uint32_t *group;   /* of each node: another of its group, in the end the first one; groups stay together */
    uint32_t *strand;  /* of each node: the last node that it leads to, by way of the first reader */
    uint32_t *at;      /* of each group's first node: its node in the graph */
    hdi_placement looked, best; /* looked at now; the best of the search under way */
    hdi_device_choice *choice;
    hd_error *error;
} choosing;

static hd_status no_memory(const choosing *c) {
    return hdi_fail(c->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u nodes", c->count);
}

static const hdi_node *node_of(const choosing *c, uint32_t i) { return &c->t->program->nodes[i]; }
static bool is_input(const choosing *c, uint32_t i) { return node_of(c, i)->op == HDI_OP_INPUT; }
static bool is_placed(const choosing *c, uint32_t i) { return c->t->alive[i] && !is_input(c, i); }
static bool can(const choosing *c, uint32_t i, uint32_t device) { return !hdi_timing_cost(c->t, i, device)->cannot; }
static double cost_ns(const choosing *c, uint32_t i, uint32_t device) { return hdi_timing_cost(c->t, i, device)->ns; }
static uint64_t bytes_of(const hdi_node *node) { return hd_tensor_bytes(node->dtype, node->shape); }

/* ---- groups and strands ---- */

static uint32_t group_of(const choosing *c, uint32_t node) {
    while (c->group[node] != node) node = c->group[node] = c->group[c->group[node]];
    return node;
}

static void together(const choosing *c, uint32_t a, uint32_t b) {
    a = group_of(c, a);
    b = group_of(c, b);
    c->group[HDI_MAX(a, b)] = HDI_MIN(a, b);
}

/* What one kernel of a device computes, and all that touches a state. */
static void find_groups(const choosing *c) {
    for (uint32_t i = 0; i < c->count; i++) c->group[i] = i;
    for (uint32_t i = 0; i < c->count; i++) {
        const hdi_node *node = node_of(c, i);
        for (uint32_t d = 0; d < c->devices; d++) {
            const hd_value kernel = hdi_timing_cost(c->t, i, d)->kernel;
            if (kernel && !is_input(c, i)) together(c, i, kernel - 1);
        }
        for (uint32_t k = 0; k < node->operand_count && c->t->alive[i]; k++)
            if (node->operands[k] && hdi_op_shows_state(node_of(c, node->operands[k] - 1)->op))
                together(c, i, node->operands[k] - 1);
    }
}

/* Nothing else connects strands but inputs, and values with several readers. */
static void find_strands(const choosing *c) {
    for (uint32_t i = 0; i < c->count; i++) c->strand[i] = i;
    for (uint32_t i = c->count; i-- > 0;)
        for (uint32_t k = 0; k < node_of(c, i)->operand_count && c->t->alive[i]; k++) {
            const hd_value operand = node_of(c, i)->operands[k];
            if (operand && !is_input(c, operand - 1)) c->strand[operand - 1] = c->strand[i];
        }
}

/* ---- looking at a placement ---- */

static void copy_places(hdi_placement *to, const hdi_placement *from) {
    memcpy(to->of, from->of, from->node_count * sizeof *to->of);
}
static void all_on(const choosing *c, hdi_placement *placement, uint32_t device) {
    for (uint32_t i = 0; i < c->count; i++) placement->of[i] = (hdi_place){ .device = device };
}

/* Is every node where it can be computed, and each group together? */
static bool is_possible(const choosing *c, const hdi_placement *placement) {
    bool possible = true;
    for (uint32_t i = 0; i < c->count && possible; i++)
        if (is_placed(c, i))
            possible =
                can(c, i, placement->of[i].device) && placement->of[group_of(c, i)].device == placement->of[i].device;
    return possible;
}

/* Do several devices launch kernels? */
static bool is_mixed(const choosing *c, const hdi_placement *placement) {
    uint32_t devices = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (is_placed(c, i) && hdi_timing_cost(c->t, i, placement->of[i].device)->ns > 0)
            devices |= 1u << placement->of[i].device;
    return (devices & (devices - 1)) != 0;
}

/* Looks at c->looked: the choice keeps it where it takes less time than all before, and the fastest mixed one; c->best
 * keeps it where it takes less than *inout_ns, which is then its time. */
static bool look(choosing *c, double *inout_ns) {
    hdi_device_choice *choice = c->choice;
    if (!is_possible(c, &c->looked)) return false;
    const hdi_placement_time time = hdi_timing_of(c->t, &c->looked);
    if (time.total_ns < choice->time.total_ns) {
        choice->time = time;
        copy_places(&choice->best, &c->looked);
    }
    if (time.total_ns < choice->mixed_time.total_ns && is_mixed(c, &c->looked)) {
        choice->mixed_time = time;
        copy_places(&choice->mixed, &c->looked);
    }
    if (!(time.total_ns < *inout_ns)) return false;
    *inout_ns = time.total_ns;
    copy_places(&c->best, &c->looked);
    return true;
}

/* ---- the minimum cut between two devices; what lies on others stays there ---- */

typedef struct graph {
    choosing *c;
    hdi_cut   cut;
    uint32_t  device[2]; /* on the source's side, and on the sink's */
    bool      charge_submits;
    /* of each node: the graph's node for "some reader is on this device", which costs once; 0: none */
    uint32_t (*read_by)[2];
} graph;

static uint64_t room_of(double ns) {
    const double units = ns * UNITS_PER_NS;
    return units >= (double)HDI_CUT_MOST ? HDI_CUT_MOST : units > 0 ? (uint64_t)(units + 0.5) : 0;
}

/* `ns` where the node is on this side: the edge to the other side is then cut. */
static void charge(graph *g, uint32_t node, uint32_t side, double ns) {
    if (side == 0) hdi_cut_edge_add(&g->cut, node, HDI_CUT_SINK, room_of(ns));
    else hdi_cut_edge_add(&g->cut, HDI_CUT_SOURCE, node, room_of(ns));
}

static void forbid(graph *g, uint32_t node, uint32_t side) {
    if (side == 0) hdi_cut_edge_add(&g->cut, node, HDI_CUT_SINK, HDI_CUT_ALWAYS);
    else hdi_cut_edge_add(&g->cut, HDI_CUT_SOURCE, node, HDI_CUT_ALWAYS);
}

/* Is the node's group one that moves between the two devices? */
static bool moves(const graph *g, uint32_t i) {
    const uint32_t at = g->c->best.of[group_of(g->c, i)].device;
    return !is_input(g->c, i) && (at == g->device[0] || at == g->device[1]);
}

static void add_nodes(graph *g) {
    const choosing *c = g->c;
    for (uint32_t i = 0; i < c->count; i++)
        if (group_of(c, i) == i) c->at[i] = moves(g, i) ? hdi_cut_node(&g->cut) : 0;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t side = 0; side < 2 && moves(g, i); side++) {
            if (can(c, i, g->device[side])) charge(g, c->at[group_of(c, i)], side, cost_ns(c, i, g->device[side]));
            else forbid(g, c->at[group_of(c, i)], side);
        }
}

/* A reader on a side holds the value's end there. */
static void add_reader(graph *g, uint32_t value, uint32_t reader) {
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t *end = &g->read_by[value][side];
        if (*end == 0) *end = hdi_cut_node(&g->cut);
        if (side == 0) hdi_cut_edge_add(&g->cut, reader, *end, HDI_CUT_ALWAYS);
        else hdi_cut_edge_add(&g->cut, *end, reader, HDI_CUT_ALWAYS);
    }
}

static void add_readers(graph *g) {
    const choosing *c = g->c;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < node_of(c, i)->operand_count && c->t->alive[i]; k++) {
            const hd_value operand = node_of(c, i)->operands[k];
            if (operand == 0 || group_of(c, operand - 1) == group_of(c, i)) continue;
            if (moves(g, i)) add_reader(g, operand - 1, c->at[group_of(c, i)]);
            else if (moves(g, operand - 1)) /* its reader stays on another device */
                for (uint32_t side = 0; side < 2; side++)
                    charge(g, c->at[group_of(c, operand - 1)], side,
                           hdi_timing_crossing_ns(c->t, g->device[side], c->best.of[i].device,
                                                  bytes_of(node_of(c, operand - 1))));
        }
}

/* What it costs to have a value where its readers are. */
static void add_value(graph *g, uint32_t i) {
    const choosing *c = g->c;
    const hdi_node *node = node_of(c, i);
    const bool input = is_input(c, i), moving = moves(g, i);
    const uint32_t maker = c->at[group_of(c, i)];
    if (!c->t->alive[i] || (input && c->t->resident[i])) return;
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t device = g->device[side], end = g->read_by[i][side];
        if (moving && node->is_output) charge(g, maker, side, hdi_timing_read_ns(c->t, device, i));
        if (end == 0) continue;
        const uint32_t from = moving ? g->device[1 - side] : c->best.of[i].device;
        const double ns = input ? hdi_timing_write_ns(c->t, device, i)
                                : hdi_timing_crossing_ns(c->t, from, device, bytes_of(node)) +
                                      (g->charge_submits ? hdi_timing_submit_ns(c->t, device) : 0);
        if (side == 0) hdi_cut_edge_add(&g->cut, end, moving ? maker : HDI_CUT_SINK, room_of(ns));
        else hdi_cut_edge_add(&g->cut, moving ? maker : HDI_CUT_SOURCE, end, room_of(ns));
    }
}

/* Cuts from c->best into c->looked. */
static hd_status make_cut(choosing *c, uint32_t a, uint32_t b, bool charge_submits) {
    const hd_allocator *allocator = c->t->program->allocator;
    graph g = { .c = c,
                .device = { a, b },
                .charge_submits = charge_submits,
                .read_by = hdi_alloc(allocator, c->count * sizeof *g.read_by) };
    if (!g.read_by) return no_memory(c);
    hdi_cut_begin(&g.cut, allocator);
    add_nodes(&g);
    add_readers(&g);
    for (uint32_t i = 0; i < c->count; i++) add_value(&g, i);
    const uint32_t sides = g.cut.node_count;
    uint8_t *side = hdi_alloc(allocator, sides);
    const bool made = side && hdi_cut_make(&g.cut, side);
    copy_places(&c->looked, &c->best);
    for (uint32_t i = 0; i < c->count && made; i++)
        if (moves(&g, i)) c->looked.of[i].device = g.device[side[c->at[group_of(c, i)]]];
    hdi_free(allocator, side, sides);
    hdi_free(allocator, g.read_by, c->count * sizeof *g.read_by);
    hdi_cut_end(&g.cut);
    return made ? HD_OK : no_memory(c);
}

/* Between each two devices, from where the best one is, until nothing helps any more. */
static hd_status cut_pairs(choosing *c) {
    double least_ns = c->choice->time.total_ns;
    hd_status status = HD_OK;
    if (least_ns < HUGE_VAL) copy_places(&c->best, &c->choice->best);
    bool helps = c->count <= MOST_CUT;
    for (uint32_t round = 0; helps && round < c->devices && !status; round++) {
        helps = false;
        for (uint32_t a = 0; a < c->devices; a++)
            for (uint32_t b = a + 1; b < c->devices; b++)
                for (uint32_t submits = 0; submits < 2 && !status; submits++) {
                    status = make_cut(c, a, b, submits);
                    if (!status) helps = look(c, &least_ns) || helps;
                }
    }
    return status;
}

/* ---- strands: what nothing but inputs and shared values connects ---- */

/* What a strand takes longer on the other device, with what it is handed and what is read of it. */
typedef struct gain {
    double   ns;
    uint32_t strand;
} gain;

static int by_gain(const void *a, const void *b) {
    const gain *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : x->strand < y->strand ? -1 : x->strand > y->strand;
}

static void add_gains(const choosing *c, uint32_t from, uint32_t to, gain *gains) {
    for (uint32_t i = 0; i < c->count; i++) gains[i] = (gain){ 0, i };
    for (uint32_t i = 0; i < c->count; i++) {
        const hdi_node *node = node_of(c, i);
        double *ns = &gains[c->strand[i]].ns;
        if (!is_placed(c, i)) continue;
        *ns += cost_ns(c, i, to) - cost_ns(c, i, from);
        if (node->is_output) *ns += hdi_timing_read_ns(c->t, to, i) - hdi_timing_read_ns(c->t, from, i);
        for (uint32_t k = 0; k < node->operand_count; k++) {
            const uint32_t x = node->operands[k] - 1;
            if (node->operands[k] && is_input(c, x) && !c->t->resident[x])
                *ns += hdi_timing_write_ns(c->t, to, x) - hdi_timing_write_ns(c->t, from, x);
        }
    }
}

/* Deals strands out: those that suit the second device best go there, one more each time. So devices that compute at
 * the same time come to share many tasks, where moving a single one would not pay for its submission. */
static hd_status deal(choosing *c, uint32_t from, uint32_t to) {
    gain *gains = hdi_alloc(c->t->program->allocator, c->count * sizeof *gains);
    if (!gains) return no_memory(c);
    double least_ns = HUGE_VAL;
    add_gains(c, from, to, gains);
    qsort(gains, c->count, sizeof *gains, by_gain);
    all_on(c, &c->looked, from);
    uint64_t looked = 0;
    for (uint32_t k = 0; k < c->count && looked < MOST_MOVES; k++) {
        const uint32_t of = gains[k].strand;
        if (c->strand[of] != of || !is_placed(c, of)) continue;
        for (uint32_t i = 0; i < c->count; i++)
            if (c->strand[i] == of) c->looked.of[i].device = to;
        look(c, &least_ns);
        looked += c->count;
    }
    hdi_free(c->t->program->allocator, gains, c->count * sizeof *gains);
    return HD_OK;
}

/* Moves one strand after the other, and one group after the other, to other devices while that helps. */
static void move_one_by_one(choosing *c, const hdi_placement *from, double least_ns) {
    uint64_t looked = 0;
    copy_places(&c->best, from);
    for (bool helps = true; helps && looked < MOST_MOVES;) {
        helps = false;
        for (uint32_t by_strand = 2; by_strand-- > 0;)
            for (uint32_t i = 0; i < c->count && looked < MOST_MOVES; i++) {
                const bool leads = by_strand ? c->strand[i] == i : group_of(c, i) == i;
                for (uint32_t d = 0; d < c->devices && leads && is_placed(c, i); d++) {
                    if (d == c->best.of[i].device) continue;
                    copy_places(&c->looked, &c->best);
                    for (uint32_t k = 0; k < c->count; k++)
                        if (!is_input(c, k) && (by_strand ? c->strand[k] : group_of(c, k)) == i)
                            c->looked.of[k].device = d;
                    helps = look(c, &least_ns) || helps;
                    looked += c->count;
                }
            }
    }
}

/* ---- rows ---- */

/* The nodes of strands that take at least one part in LARGE of all: of smaller ones there are enough to deal out. */
static hd_status share_rows(choosing *c) {
    const hd_allocator *allocator = c->t->program->allocator;
    double *strand_ns = hdi_alloc(allocator, c->count * sizeof *strand_ns), all_ns = 0;
    bool *large = hdi_alloc(allocator, c->count * sizeof *large);
    hdi_placement shared = { 0 };
    hdi_placement_time time = { .total_ns = HUGE_VAL };
    for (uint32_t i = 0; i < c->count && strand_ns && large; i++) {
        double least = HUGE_VAL;
        for (uint32_t d = 0; d < c->devices; d++) least = HDI_MIN(least, cost_ns(c, i, d));
        strand_ns[c->strand[i]] += least;
        all_ns += least;
    }
    for (uint32_t i = 0; i < c->count && strand_ns && large; i++) large[i] = strand_ns[c->strand[i]] * LARGE >= all_ns;
    hd_status status =
        strand_ns && large ? hdi_choose_rows(c->t, &c->choice->best, large, &shared, &time, c->error) : no_memory(c);
    hdi_free(allocator, strand_ns, c->count * sizeof *strand_ns);
    hdi_free(allocator, large, c->count * sizeof *large);
    if (!status && time.total_ns <= ROWS_PAY * c->choice->time.total_ns) {
        hdi_placement_free(&c->choice->best);
        hdi_placement_free(&c->choice->mixed);
        status = hdi_placement_copy(&shared, &c->choice->best, c->error);
        if (!status) status = hdi_placement_copy(&shared, &c->choice->mixed, c->error);
        c->choice->time = c->choice->mixed_time = time;
    }
    hdi_placement_free(&shared);
    return status;
}

/* ---- what is told ---- */

static void print_time(hdi_text *out, double ns) { hdi_text_add(out, " %.1f us", ns / 1000); }

static const char *because(const hdi_timing *t, const hdi_device_choice *choice, uint32_t i, uint32_t place,
                           uint32_t devices) {
    const hdi_node_cost *cost = hdi_timing_cost(t, i, place);
    uint32_t others = 0, faster = 0, possible = 0;
    for (uint32_t d = 0; d < devices; d++) {
        others += d != place && !hdi_timing_cost(t, i, d)->cannot;
        faster += hdi_timing_cost(t, i, d)->ns < cost->ns;
        possible += d != place && choice->alone[d].total_ns < HUGE_VAL;
    }
    if (others == 0) return "only this device computes it";
    if (cost->kernel != i + 1) return "it is a part of another operation's kernel";
    if (t->program->nodes[i].origin.end > 0) return "devices compute rows at the same time";
    if (faster == 0) return "it is faster here";
    return possible ? "moving its values, or one more submission, would take longer"
                    : "no other device computes all that belongs to it";
}

static void print_nodes(const hdi_timing *t, const hdi_placement *placement, hdi_device_choice *choice) {
    const char *const *ids = t->wish->plan.ids;
    hdi_text *out = &choice->text;
    for (uint32_t i = 0; i < t->program->node_count; i++) {
        const uint32_t place = placement->of[i].device;
        const hdi_node_cost *cost = hdi_timing_cost(t, i, place);
        if (cost->kernel == 0 || hdi_op_is_source(t->program->nodes[i].op)) continue;
        hdi_origin_print(t->program, i + 1, out);
        hdi_text_add(out, " %s (%s %s): on %s:", hdi_op_get(t->program->nodes[i].op).name,
                     hdi_op_kind_name(cost->work.kind), hdi_width_name(cost->work.width), ids[place]);
        for (uint32_t d = 0; d < placement->device_count && cost->kernel == i + 1; d++) {
            hdi_text_add(out, "%s %s", d ? "," : "", ids[d]);
            print_time(out, hdi_timing_cost(t, i, d)->ns);
            if (hdi_timing_cost(t, i, d)->assumed) hdi_text_add(out, " (assumed)");
        }
        hdi_text_add(out, "  because %s\n", because(t, choice, i, place, placement->device_count));
    }
}

static hd_status tell(const choosing *c) {
    hdi_device_choice *choice = c->choice;
    hdi_text *out = &choice->text;
    hdi_split split;
    hdi_timing timing = { 0 };
    hdi_text_add(out, "predicted as placed");
    print_time(out, choice->time.total_ns);
    for (uint32_t d = 0; d < c->devices; d++) {
        hdi_text_add(out, ", all on %s", c->t->wish->plan.ids[d]);
        if (choice->alone[d].total_ns < HUGE_VAL) print_time(out, choice->alone[d].total_ns);
        else hdi_text_add(out, " not possible");
    }
    hdi_text_add(out, "; %u segments, transfers", choice->time.segments);
    print_time(out, choice->time.transfers_ns);
    hdi_text_add(out, "\n");
    hd_status status = hdi_split_make(c->t->program, &choice->best, &split, c->error);
    if (!status && split.program) status = hdi_timing_make(c->t->wish, split.program, &timing, c->error);
    if (!status) print_nodes(split.program ? &timing : c->t, split.program ? &split.placement : &choice->best, choice);
    hdi_timing_end(&timing);
    hdi_split_free(&split);
    return !status && out->failed ? no_memory(c) : status;
}

/* ---- all of it ---- */

static hd_status search(choosing *c) {
    hdi_device_choice *choice = c->choice;
    double least_ns = HUGE_VAL;
    bool all_possible = true;
    uint32_t alone = 0;
    find_groups(c);
    for (uint32_t d = 0; d < c->devices; d++) {
        all_on(c, &c->looked, d);
        const bool possible = is_possible(c, &c->looked);
        choice->alone[d] = possible ? hdi_timing_of(c->t, &c->looked) : (hdi_placement_time){ .total_ns = HUGE_VAL };
        all_possible = all_possible && possible;
        if (choice->alone[d].total_ns < choice->alone[alone].total_ns) alone = d;
        look(c, &least_ns);
    }
    hd_status status = cut_pairs(c);
    if (status) return status;
    if (choice->time.total_ns == HUGE_VAL)
        return hdi_fail(c->error, HD_STATUS_UNSUPPORTED,
                        "none of the %u devices computes every operation that stays together", c->devices);
    find_strands(c);
    for (uint32_t d = 0; d < c->devices && all_possible && !status; d++)
        if (d != alone) status = deal(c, alone, d);
    if (status) return status;
    move_one_by_one(c, &choice->best, choice->time.total_ns);
    if (choice->mixed_time.total_ns < HUGE_VAL) move_one_by_one(c, &choice->mixed, choice->mixed_time.total_ns);
    return share_rows(c);
}

hd_status hdi_choose(const hdi_choose_wish *wish, hdi_device_choice *choice, hd_error *error) {
    const hd_program *program = wish->plan.program;
    const hd_allocator *allocator = program->allocator;
    const size_t bytes = program->node_count * sizeof(uint32_t);
    hdi_timing timing;
    *choice = (hdi_device_choice){ .time = { .total_ns = HUGE_VAL },
                                   .mixed_time = { .total_ns = HUGE_VAL },
                                   .text = { .allocator = allocator } };
    hd_status status = hdi_timing_make(wish, program, &timing, error);
    choosing c = { .t = &timing,
                   .count = program->node_count,
                   .devices = wish->device_count,
                   .group = hdi_alloc(allocator, bytes),
                   .strand = hdi_alloc(allocator, bytes),
                   .at = hdi_alloc(allocator, bytes),
                   .choice = choice,
                   .error = error };
    hdi_placement *const all[] = { &c.looked, &c.best, &choice->best, &choice->mixed };
    if (!status && (!c.group || !c.strand || !c.at)) status = no_memory(&c);
    for (size_t i = 0; i < HDI_COUNT(all) && !status; i++)
        status = hdi_placement_new(program, wish->device_count, all[i], error);
    if (!status) status = search(&c);
    if (!status) status = tell(&c);
    hdi_placement_free(&c.looked);
    hdi_placement_free(&c.best);
    hdi_free(allocator, c.group, bytes);
    hdi_free(allocator, c.strand, bytes);
    hdi_free(allocator, c.at, bytes);
    hdi_timing_end(&timing);
    return status;
}

void hdi_device_choice_free(hdi_device_choice *choice) {
    hdi_placement_free(&choice->best);
    hdi_placement_free(&choice->mixed);
    hdi_text_free(&choice->text);
}
