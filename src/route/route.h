/* route.h: which device for which operation. What an operation has to do (work.c) and what a device was measured to take for
 * such work (facts/facts.h) give the time that a program would take under a placement; place.c finds the
 * placement of least time. Pure. */
#ifndef HDI_ROUTE_H
#define HDI_ROUTE_H

#include "facts/facts.h"
#include "program/segments.h"

/* ---- work (work.c): what each node of a program has to do, whatever the device ---- */

/* Fills in the work of each node (node_count of them). `fusion`: count what the planner fuses as one kernel. */
hd_status hdi_work_of(const hd_program *program, bool fusion, hdi_work *out_work, hd_error *error);

/* ---- placing (place.c, rows.c) ---- */

/* Two devices, 0 and 1, and a program; node i is value i + 1. */
typedef struct hdi_routing {
    const hd_program  *program;
    const hdi_work    *work;       /* of each node, by hdi_work_of */
    const hdi_figures  *tuning[2];
    bool               host[2];    /* it computes in the host's memory: what crosses is read and written in place */
    bool               overlap;    /* the two compute at the same time */
    bool               fusion;     /* the work was counted with it */
    const uint8_t     *can;        /* of each node, bit d: device d computes it; NULL: both compute all */
    const bool        *resident;   /* of each node: an input that is written once and lies on both; NULL: the quantised ones */
} hdi_routing;

/* The time of a placement, and what it is made of; `total_ns` is less than the sum where the devices overlap. */
typedef struct hdi_route_time {
    double   nodes_ns[2], submits_ns[2], transfers_ns, total_ns;
    uint32_t segments;
} hdi_route_time;

typedef struct hdi_route {
    uint8_t       *places;         /* of each node */
    uint8_t       *shared_places;  /* the fastest that was found of those in which both devices compute; */
    hdi_route_time chosen, alone[2];
    hdi_route_time shared;         /* total_ns is HUGE_VAL where there is none */
    bool           possible[2];    /* the device alone computes all */
} hdi_route;

/* Time of one node on a device. */
double hdi_route_node_ns(const hdi_routing *routing, uint32_t node, uint32_t device);
/* The whole time of the placement: nodes, values that cross, submissions of its segments. */
hd_status hdi_route_time_of(const hdi_routing *routing, const uint8_t *places, hdi_route_time *out_time, hd_error *error);
/* Finds the placement: a minimum cut, or all on one device, or tasks dealt out to both and moved one by one while that helps: what takes
 * the least time; or what can be is shared by rows, where that is predicted to take at most HDI_ROWS_PAY of it. Statuses: UNSUPPORTED
 * (a node that neither device computes), OUT_OF_HOST_MEMORY. hdi_route_free ends the route. */
hd_status hdi_route_make(const hdi_routing *routing, hdi_route *out_route, hd_error *error);
void hdi_route_free(const hd_program *program, hdi_route *route);

/* A routing under places that share operations, which is one over the split program; where none is shared, the routing itself. */
typedef struct hdi_split_routing {
    hdi_routing    routing;
    const uint8_t *places;
    hdi_split      split; /* what the two were made from: */
    hdi_work      *work;
    uint8_t       *can;
    bool          *resident;
} hdi_split_routing;
hd_status hdi_route_split(const hdi_routing *routing, const uint8_t *places, hdi_split_routing *out, hd_error *error);
void hdi_route_split_end(hdi_split_routing *split); /* also after a failure */

#define HDI_ROWS_PAY 0.9 /* of the least time without */
/* Shares by rows all `wanted` nodes that can be shared, where `places` (0 and 1) have the rest: finds the share of least time, into
 * `out_places`. total_ns is HUGE_VAL where nothing can be. */
hd_status hdi_route_rows(const hdi_routing *routing, const uint8_t *places, const uint8_t *wanted, uint8_t *out_places, hdi_route_time *out_time, hd_error *error);

/* ---- minimum cut (cut.c) ---- */

/* A graph under construction: node 0 is the source, node 1 the sink. */
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
#endif
