/* choose.h: which device for which operation, by what is known of the devices. What a placement takes is the sum over
 * the planner's own steps, of the values that travel and of the submissions; the placement of least time is searched
 * for (choose.c). Pure: the same facts choose the same placement. */
#ifndef HDI_PLAN_CHOOSE_H
#define HDI_PLAN_CHOOSE_H

#include "facts/facts.h"
#include "plan/plan.h"

/* ---- cost.c: what each node takes on one device ---- */

/* What the planner's steps do for a device, for each node (hdi_plan_options.works). Sources have none. */
hd_status hdi_schedule_work_of(const hdi_plan_wish *wish, uint32_t device, hdi_schedule_work *out_works,
                               hd_error *error);

typedef struct hdi_node_cost {
    double   ns;      /* of the kernel whose last node this is; 0 for the others of the kernel, for views and sources */
    hd_value kernel;  /* nodes of one kernel have the same number: that of its last node; 0: no kernel computes it */
    bool     cannot;  /* the device does not compute it */
    bool     assumed; /* nothing like it was measured there */
    hdi_work work;    /* of that kernel */
} hdi_node_cost;
hd_status hdi_schedule_costs(const hdi_plan_wish *wish, uint32_t device, const hdi_figures *figures,
                             hdi_node_cost *out_costs, hd_error *error);

/* ---- time.c: what a placement takes ---- */

typedef struct hdi_choose_wish {
    hdi_plan_wish    plan;     /* its placement is not looked at; caps and ids are of each device */
    uint32_t          device_count;
    const hdi_figures *figures;  /* of each device */
    /* of each device: it shares the host's processor with the others of which this is true */
    const bool       *software;
    const bool       *resident; /* of each node: an input that is written once; quantised ones are in any case */
} hdi_choose_wish;

/* The time of a placement, and what it is made of; `total_ns` is less than the sum where devices overlap. */
typedef struct hdi_placement_time {
    double   nodes_ns[HDI_MOST_DEVICES], submits_ns[HDI_MOST_DEVICES], transfers_ns, total_ns;
    double   ports_ns; /* of the transfers: inputs that are written and outputs that are read, so not of a run itself */
    uint32_t segments;
} hdi_placement_time;

/* A program with what is known of it on every device: the caller's, or one that was split. */
typedef struct hdi_timing {
    const hdi_choose_wish *wish;
    const hd_program *program;
    hdi_node_cost    *costs;    /* of each device, of each node */
    hdi_work         *readers;  /* of each node: the work of the first that reads it, views passed over */
    bool             *alive, *resident;
    uint32_t         *segment, *room, *read_on; /* read_on: a bit for each device on which it is read */
    double           *ends;     /* of each segment */
} hdi_timing;
/* Statuses: those of planning but UNSUPPORTED, OUT_OF_HOST_MEMORY. hdi_timing_end ends it, also after a failure. */
hd_status hdi_timing_make(const hdi_choose_wish *wish, const hd_program *program, hdi_timing *out, hd_error *error);
void hdi_timing_end(hdi_timing *timing);
static inline const hdi_node_cost *hdi_timing_cost(const hdi_timing *t, uint32_t node, uint32_t device) {
    return &t->costs[(size_t)device * t->program->node_count + node];
}
double hdi_timing_submit_ns(const hdi_timing *t, uint32_t device);
double hdi_timing_write_ns(const hdi_timing *t, uint32_t device, uint32_t input); /* from the host, */
double hdi_timing_read_ns(const hdi_timing *t, uint32_t device, uint32_t node);   /* to the host, */
double hdi_timing_crossing_ns(const hdi_timing *t, uint32_t from, uint32_t to, uint64_t bytes); /* and by way of it */
/* The whole time of a placement without shares. */
hdi_placement_time hdi_timing_of(const hdi_timing *timing, const hdi_placement *placement);
/* What a program takes on one device alone. Statuses: those of hdi_program_check too. */
hd_status hdi_timing_alone(const hd_program *program, const hdi_caps *caps, const hdi_figures *figures,
                           hdi_placement_time *out_time, hd_error *error);

/* ---- cut.c: the minimum cut of a graph: node 0 is the source, node 1 the sink ---- */

typedef struct hdi_cut_edge { uint32_t to; uint64_t room; } hdi_cut_edge; /* edge i ^ 1 is the way back of edge i */
typedef struct hdi_cut {
    const hd_allocator *allocator;
    hdi_cut_edge *edges;  uint32_t edge_count,  edge_capacity;
    uint32_t     *from;   uint32_t from_capacity; /* of each edge, until the cut is made */
    uint32_t      node_count;
    bool          failed;                         /* no memory */
} hdi_cut;
#define HDI_CUT_ALWAYS (UINT64_C(1) << 60) /* an edge that is never cut */
#define HDI_CUT_MOST   (UINT64_C(1) << 44) /* the most that another edge has room for */
enum { HDI_CUT_SOURCE = 0, HDI_CUT_SINK = 1 };
void hdi_cut_begin(hdi_cut *cut, const hd_allocator *allocator);
uint32_t hdi_cut_node(hdi_cut *cut);
void hdi_cut_edge_add(hdi_cut *cut, uint32_t from, uint32_t to, uint64_t room);
/* Finds the cut of least room: `out_side[n]` is 1 for the nodes that lie on the sink's side. False without memory. */
bool hdi_cut_make(hdi_cut *cut, uint8_t *out_side);
void hdi_cut_end(hdi_cut *cut);

/* ---- choose.c ---- */

/* The fastest placements that were found. */
typedef struct hdi_device_choice {
    hdi_placement      best;
    hdi_placement_time time;
    hdi_placement      mixed;      /* the fastest of those in which several devices compute, */
    hdi_placement_time mixed_time; /* its total_ns is HUGE_VAL where there is none */
    /* all on one device; its total_ns is HUGE_VAL: it does not compute all */
    hdi_placement_time alone[HDI_MOST_DEVICES];
    hdi_text           text;       /* what was chosen, and why */
} hdi_device_choice;
/* Finds a placement: minimum cuts between two devices, or all on one, or strands dealt out and moved one by one while
 * that helps: what takes the least time; or what can be is shared by rows, where that is predicted to pay clearly.
 * Statuses: UNSUPPORTED (operations that stay together and that no device computes), OUT_OF_HOST_MEMORY.
 * hdi_device_choice_free ends it, also after a failure. */
hd_status hdi_choose(const hdi_choose_wish *wish, hdi_device_choice *out_choice, hd_error *error);
void hdi_device_choice_free(hdi_device_choice *choice);

/* ---- candidates.c: what a plan that follows the choice may be ---- */

typedef struct hdi_candidate {
    hdi_placement placement;
    uint64_t key;      /* under which earlier plans left what their runs took */
    double   run_ns;   /* known from them, or predicted */
    double   total_ns; /* with inputs written and outputs read */
} hdi_candidate;
typedef struct hdi_candidates {
    struct hdi_runs *runs; /* what runs of earlier plans took, */
    uint64_t      key;     /* of this program, these wishes and devices */
    hdi_candidate of[HDI_MOST_DEVICES + 1];
    uint32_t      count;
} hdi_candidates;
/* Adds what was predicted to be best, the best of those in which several devices compute, and all on each device; the
 * one that is known or predicted to take the least time comes first. choice->text tells where runs say otherwise than
 * it. */
hd_status hdi_candidates_find(const hd_program *program, uint32_t device_count, hdi_device_choice *choice,
                              hdi_candidates *inout_all, hd_error *error);
void hdi_candidates_free(hdi_candidates *all);
/* Marks the nodes of the inputs with these names (hdi_choose_wish.resident). NAME_NOT_FOUND: one has none. */
hd_status hdi_inputs_mark(const hd_program *program, const char *const *names, uint32_t count, bool *inout_marks,
                          hd_error *error);

/* ---- share.c ---- */

/* Shares by rows all `wanted` nodes that can be shared, where `base` has the rest: the parts of least time. total_ns is
 * HUGE_VAL where nothing can be. */
hd_status hdi_choose_rows(const hdi_timing *timing, const hdi_placement *base, const bool *wanted,
                          hdi_placement *out_placement, hdi_placement_time *out_time, hd_error *error);
/* The time of a placement with shares: of the program that it is split into. */
hd_status hdi_choose_time(const hdi_choose_wish *wish, const hdi_placement *placement, hdi_placement_time *out_time,
                          hd_error *error);
#endif
