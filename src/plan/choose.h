/* choose.h: which device for which operation, by what is known of the devices. What a placement takes is the sum over the
 * planner's own steps, of the values that travel and of the submissions; the placement of least time is searched for
 * (choose.c). Pure: the same facts choose the same placement. */
#ifndef HDI_PLAN_CHOOSE_H
#define HDI_PLAN_CHOOSE_H

#include "facts/facts.h"
#include "plan/whole.h"

/* ---- cost.c: what each node takes on one device ---- */

typedef struct hdi_node_cost {
    double    ns;     /* of the kernel whose last node this is; 0 for the others of the kernel, for views and sources */
    hd_value  kernel; /* nodes of one kernel have the same number: that of its last node; 0: no kernel computes it */
    bool      cannot; /* the device does not compute it */
    bool      assumed; /* nothing like it was measured there */
    hdi_node_work work; /* of that kernel */
} hdi_node_cost;
/* Plans the program for one device as far as its steps, and says what they take: a cost for each node. */
hd_status hdi_plan_costs(const hdi_whole_wish *wish, uint32_t device, const hdi_tuning *figures, hdi_node_cost *out_costs, hd_error *error);

/* ---- time.c: what a placement takes ---- */

typedef struct hdi_choose_wish {
    hdi_whole_wish     whole;    /* its placement is not looked at; caps and ids are of each device */
    uint32_t           device_count;
    const hdi_tuning  *figures;  /* of each device */
    const bool        *software; /* of each device: it computes on the host's processor, as the CPU does */
    const bool        *resident; /* of each node: an input that is written once; quantised ones are in any case */
} hdi_choose_wish;

/* A program with what is known of it: of the caller's, or of one that was split. */
typedef struct hdi_timing_room hdi_timing_room;
/* The time of a placement, and what it is made of; `total_ns` is less than the sum where devices overlap. */
typedef struct hdi_placement_time {
    double   nodes_ns[HDI_MOST_DEVICES], submits_ns[HDI_MOST_DEVICES], transfers_ns, total_ns;
    uint32_t segments;
} hdi_placement_time;

/* ---- choose.c ---- */

typedef struct hdi_choice_of_devices {
    hdi_placement      best;
    hdi_placement_time time;
    hdi_placement      mixed;      /* the fastest that was found of those in which several devices compute, */
    hdi_placement_time mixed_time; /* HUGE_VAL: there is none */
    double             alone_ns[HDI_MOST_DEVICES]; /* all on one device; HUGE_VAL: it does not compute all */
    hdi_text           text;       /* what was chosen, and why */
} hdi_choice_of_devices;
/* Statuses: UNSUPPORTED (operations that stay together and that no device computes), OUT_OF_HOST_MEMORY.
 * hdi_choice_of_devices_free ends it, also after a failure. */
hd_status hdi_choose(const hdi_choose_wish *wish, hdi_choice_of_devices *out_choice, hd_error *error);
void hdi_choice_of_devices_free(hdi_choice_of_devices *choice);
#endif
