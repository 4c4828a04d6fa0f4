/* route.h: which device for which operation. What an operation has to do (work.c) and what a device was measured to take for
 * such work (cost.c, fit.c, kept by tuning.c) give the time that a program would take under a placement; place.c finds the
 * placement of least time, and learn.c corrects the figures by runs. Pure, but for reading and writing the tuning file. */
#ifndef HDI_ROUTE_H
#define HDI_ROUTE_H

#include "cmds/caps.h"
#include "program/segments.h"
#include "program/work.h"

/* ---- work (work.c): what each node of a program has to do, readers and fusion counted in ---- */

typedef struct hdi_work {
    hdi_op_kind family;
    hdi_width   width;
    bool       alive;        /* an output or a state's new value needs it */
    uint64_t   flops, bytes; /* least; what a fused kernel keeps in registers is not counted */
    bool       launch;       /* it has a kernel of its own; false: a part of another node's, or nothing at all */
    hd_value   kernel;       /* nodes of one kernel have the same number here: that of one of them */
    hd_value   reader;       /* the first node that reads it, by way of views too; 0: none */
} hdi_work;
/* Fills in the work of each node (node_count of them). `fusion`: count what the planner fuses as one kernel. */
hd_status hdi_work_of(const hd_program *program, bool fusion, hdi_work *out_work, hd_error *error);

/* ---- cost (cost.c): what a device takes for it ---- */

enum { HDI_CURVE_KNOTS = 16 };
/* The line fixed + flops * ns_per_flop + bytes * ns_per_byte, times what it misses: caches, numbers of threads, sizes of tiles. Without
 * samples it is an assumption. */
typedef struct hdi_figure {
    double   fixed_ns, ns_per_flop, ns_per_byte; /* none is negative */
    double   error;   /* median of |predicted - measured| / measured over its samples, each by the curve of the others */
    uint32_t samples;
    uint32_t knots;   /* of the curve; 0: the line is all */
    double   line_ns[HDI_CURVE_KNOTS]; /* where each knot lies: what the line says, rising */
    double   factor[HDI_CURVE_KNOTS];  /* measured there, as a share of the line */
} hdi_figure;
#define HDI_CURVE_MOST 64.0 /* factors are between this and one part in it */
double hdi_figure_line(const hdi_figure *figure, double flops, double bytes);
/* What of the line is not the same for all sizes; never 0. */
double hdi_figure_beyond(const hdi_figure *figure, double line_ns);
/* Between knots straight in logarithms of that, beyond them as at the last one. */
double hdi_figure_factor(const hdi_figure *figure, double line_ns);
double hdi_figure_ns(const hdi_figure *figure, double flops, double bytes);

#define HDI_TUNING_NAME 128
/* What is known of a device on a machine under a driver. */
typedef struct hdi_tuning {
    char machine[HDI_TUNING_NAME], device[HDI_TUNING_NAME], driver[HDI_TUNING_NAME]; /* printable, in one line each */
    hdi_figure submit;                                       /* only its fixed_ns: what a submission costs whatever is in it */
    hdi_figure upload, download;                             /* host to device and back; no flops */
    hdi_figure ops[HDI_KIND_COUNT][HDI_WIDTH_COUNT];
    hdi_figure writes[HDI_KIND_COUNT][HDI_WIDTH_COUNT];    /* of a value from the host that such work reads, */
    hdi_figure reads[HDI_KIND_COUNT][HDI_WIDTH_COUNT];     /* and to the host, that it made; no flops */
    hdi_choices choices;                                     /* of kernels' options */
} hdi_tuning;
/* Names the tuning's machine, device or driver: bytes that would break its line become '?'. */
void hdi_tuning_name(const char *text, char out[HDI_TUNING_NAME]);
/* Assumptions from a device's facts, where nothing was measured. `discrete`: what it reads from the host travels over a bus. */
void hdi_tuning_assume(const hdi_caps *caps, bool discrete, hdi_tuning *out_tuning);
/* The figure to take for a family and a type: its own where it was measured, else that of the family's other types, else of
 * the family that is most like it, else what is assumed. */
const hdi_figure *hdi_tuning_figure(const hdi_tuning *tuning, hdi_op_kind family, hdi_width width);
/* Time of a node on the device, without its submission. */
double hdi_cost_node(const hdi_tuning *tuning, const hdi_work *work);
double hdi_cost_transfer(const hdi_figure *way, uint64_t bytes); /* 0 for 0 bytes */
/* The host writes a value for such work (NULL: for any), or reads one that it made: as was measured there, else as values travel. */
double hdi_cost_write(const hdi_tuning *tuning, const hdi_work *reader, uint64_t bytes);
double hdi_cost_read(const hdi_tuning *tuning, const hdi_work *maker, uint64_t bytes);
/* Time of the whole program in one submission, its inputs there and its outputs left there. */
double hdi_cost_alone(const hdi_tuning *tuning, const hdi_work *work, uint32_t node_count);

/* ---- fit (fit.c): figures from measured runs ---- */

typedef enum hdi_sample_kind { HDI_SAMPLE_RUN = 0, HDI_SAMPLE_UPLOAD, HDI_SAMPLE_DOWNLOAD } hdi_sample_kind;
typedef struct hdi_sample {
    hdi_sample_kind kind;
    hdi_op_kind family;       /* of a transfer: of the work that it is for; NONE: any */
    hdi_width  width;
    double     kernels;      /* in one submission; of transfers: how many there are, as a multiple of the largest one */
    double     flops, bytes; /* of all of them; of a transfer no flops */
    double     ns;           /* with the submission; at least 1 */
} hdi_sample;
#define HDI_FIT_SAMPLES 512 /* that one figure is fitted from; more are left out */
/* The line, none of its parts negative, that makes the sum of squared relative errors least, with less weight to samples
 * that lie far off; where the samples differ in size, time grows with it. `inout_submit_ns`: what of each sample is the submission; negative: find it too (it shows where the
 * number of kernels differs), for transfers it stays 0. False: no sample is usable. */
bool hdi_fit(const hdi_sample *samples, size_t count, double *inout_submit_ns, hdi_figure *out_figure);
/* Adds the curve: what the samples took as a share of the line, which was fitted from them with `submit_ns` for each. */
void hdi_fit_curve(const hdi_sample *samples, size_t count, double submit_ns, hdi_figure *inout_figure);
/* Fits a whole device: the submission from the family whose samples show it best, then every family and type by itself, and
 * merges what came out into `inout_tuning`. */
hd_status hdi_fit_device(const hd_allocator *allocator, const hdi_sample *samples, size_t count, hdi_tuning *inout_tuning, hd_error *error);
/* New measurements join old ones: their mean by number of samples, of which the old ones have at most as many as the new. */
hdi_figure hdi_figure_merge(const hdi_figure *old, const hdi_figure *measured);

/* ---- the tuning file (tuning.c): text, one line a figure ---- */

/* Bytes that print takes at most. */
#define HDI_TUNING_BYTES 131072
void hdi_tuning_print(const hdi_tuning *tuning, hdi_text *out_text);
/* Takes over every line that is well formed into `inout_tuning`, which holds assumptions and the names of the device; returns the number of
 * lines that were refused. A file of another device, driver or machine gives nothing: all of its lines are refused. */
uint32_t hdi_tuning_parse(const char *text, size_t bytes, hdi_tuning *inout_tuning);
/* The file of this device in the cache's folder. False: there is none, or it cannot be read. */
bool hdi_tuning_load(const hd_allocator *allocator, const char *folder, hdi_tuning *inout_tuning, uint32_t *out_refused);
bool hdi_tuning_save(const hd_allocator *allocator, const char *folder, const hdi_tuning *tuning);
/* Where it lies. False: the path is too long. */
bool hdi_tuning_path(const char *folder, const hdi_tuning *tuning, char *out_path, size_t room);

/* ---- learning (learn.c): figures corrected by runs ---- */

/* What runs took as a share of what was predicted, for each family; HDI_KIND_NONE: for submissions. What was not measured for
 * a while goes back to 1, so that a device that was slow for a time is tried again. */
typedef struct hdi_learned {
    struct { double factor, half_life_ns; uint64_t at_ns; } of[HDI_KIND_COUNT]; /* factor 0: never measured */
} hdi_learned;
double hdi_learned_factor(const hdi_learned *learned, hdi_op_kind family, uint64_t now_ns);
/* A run's time on a device. `predicted_ns`: of each family (NONE: of the submissions), by the figures alone. */
void hdi_learn(hdi_learned *learned, const double predicted_ns[HDI_KIND_COUNT], double measured_ns, uint64_t now_ns);
/* Is run number `run` (0 is the first) one to measure? The first two, and one in 256. */
bool hdi_learn_due(uint64_t run);

/* ---- placing (place.c, rows.c) ---- */

/* Two devices, 0 and 1, and a program; node i is value i + 1. */
typedef struct hdi_routing {
    const hd_program  *program;
    const hdi_work    *work;       /* of each node, by hdi_work_of */
    const hdi_tuning  *tuning[2];
    const hdi_learned *learned[2]; /* NULL: nothing was learned */
    bool               host[2];    /* it computes in the host's memory: what crosses is read and written in place */
    bool               overlap;    /* the two compute at the same time */
    bool               fusion;     /* the work was counted with it */
    const uint8_t     *can;        /* of each node, bit d: device d computes it; NULL: both compute all */
    const bool        *resident;   /* of each node: an input that is written once and lies on both; NULL: the quantised ones */
    uint64_t           now_ns;
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

/* Time of one node on a device, learning counted in. */
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

/* ---- trying (trial.c): prediction names candidates, measured rounds choose among them ---- */

/* All on either device, and both of them sharing. */
enum { HDI_CANDIDATES = 3, HDI_CANDIDATE_SHARED = 2, HDI_TRIAL_KEPT = 16 };
typedef struct hdi_candidate {
    bool     possible;
    double   predicted_ns; /* of a round */
    double   move_ns;      /* predicted, of moving the plan there, */
    double   moved_ns;     /* and what that took at least, but for the first time, when kernels are compiled; 0: it was not measured */
    double   off;          /* what places that this one has replaced took, as a share of what was predicted; 0: there were none */
    double   ns[HDI_TRIAL_KEPT]; /* the latest rounds that were measured: */
    uint64_t count;        /* this many since the plan came here last */
    double   mean_ns;      /* of them */
    double   best_ns;      /* the least median of rounds; 0: it was never measured */
    double   last_ns;      /* what rounds took when the plan left it last */
    uint32_t tries;        /* the first ones follow each other at once, */
    uint32_t wait;         /* later ones after so many rounds */
    uint64_t at_round;     /* of the plan, when its last try began */
    double   ratio;        /* what a round takes as a share of one at home, by its tries; */
    double   odd;          /* and by the last one, where that is far off; 0: it is not */
    uint64_t row;          /* how many rounds followed each other without a rest when it was tried last */
    uint64_t at_ns;        /* when it was measured last, or a try of it began, as far as is known of all plans of the same program, */
    double   against_ns;   /* and what the one at home took then */
} hdi_candidate;
/* The rounds of a plan. A round is a run with what the caller wrote before it and read after it. */
typedef struct hdi_trial {
    hdi_candidate of[HDI_CANDIDATES];
    uint32_t home, at;            /* the one that is known to be fastest, and the one where the plan is */
    uint64_t since, cold;         /* rounds since the plan came there: the first ones are not counted, and behind a rest these neither */
    double   came_ns;             /* what rounds and moves had taken by then */
    bool     trying;              /* it came for a try, which has not ended */
    uint32_t tried;               /* home again behind a try of this one: rounds at home are measured once more, */
    double   try_ns, before_ns;   /* to be set beside what a round of the try took (0: there is none to judge), and one at home before (0: it was not known) */
    uint64_t rounds, row;         /* all of them, and those since the plan rested last, */
    uint64_t last_row;            /* and those between that rest and the one before it */
    uint64_t noted_ns, passed;    /* when the last one ended that was timed, and how many there were since then */
    double   gap_ns;              /* what is usual between the end of one and the beginning of the next */
    uint64_t sampled_ns;          /* when it was looked at last what rounds at home take, */
    double   level_ns[2];         /* what they took then and the time before; 0: they were not looked at */
    double   owed_ns;             /* what rounds at home have taken longer than at a place known to be faster, since it is known */
    double   spent_ns;            /* in all rounds and moves; */
    double   first_ns, tried_ns;  /* in moves, and beyond what rounds take at home in those away from it and the first ones back: of the first tries, and of later ones */
    bool     is_first;            /* the latest try is one of the first ones of its candidate */
} hdi_trial;
/* Is the coming round to be timed? Looking at the clock around each call is a part of what a short round takes. */
bool hdi_trial_watches(const hdi_trial *trial);
void hdi_trial_pass(hdi_trial *trial); /* a round was not timed */
/* A round took this long. `counts` false: it was not a usual one. True: with it a try has ended. */
bool hdi_trial_note(hdi_trial *trial, double ns, bool counts, uint64_t now_ns);
/* Where the next round is to be. A caller that goes there says so by hdi_trial_moved, with what moving took. */
uint32_t hdi_trial_next(const hdi_trial *trial, uint64_t now_ns);
void hdi_trial_moved(hdi_trial *trial, uint32_t to, double ns, uint64_t now_ns);
/* The plan could not go there, and stays where it is; for a while it does not try again. */
void hdi_trial_failed(hdi_trial *trial, uint32_t candidate, uint64_t now_ns);
/* Another plan of the same program goes on with a copy of what was found, at home; what trying took is not its own. */
void hdi_trial_inherit(hdi_trial *trial);
/* A plan of the same program has begun a try, for which this one waits, or ended it: what it found counts here too, and moves this one once that pays. */
void hdi_trial_adopt(hdi_trial *trial, const hdi_trial *from);
/* Something else has the candidate's place: what was measured there is forgotten, but for how far from `predicted_ns` it was. */
void hdi_trial_replaced(hdi_trial *trial, uint32_t candidate, double predicted_ns);
double hdi_candidate_ns(const hdi_candidate *candidate); /* what rounds take there; 0: it was not measured */

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
