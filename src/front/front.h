/* front.h: the public objects and how they hang together. Every object sits in a list of its context, so that ending
 * the context, or a device, ends all that was made from it. This room checks arguments, keeps objects and calls the
 * others. */
#ifndef HDI_FRONT_H
#define HDI_FRONT_H

#include "calibrate/calibrate.h"
#include "device/device.h"
#include "facts/runs.h"
#include "plan/choose.h"
#include "program/program.h"
#include "run/run.h"
#include "spirv/spirv.h"
#include <stdatomic.h>

struct hd_context {
    hd_allocator allocator;
    hdi_log      log;
    hdi_host     host;
    bool         strict;
    uint32_t     find_nan;      /* 1: NaN, 2: infinities, too */
    hdi_faults   faults;        /* that calls of devices make on purpose */
    char         backend[96], device[64]; /* wishes; "" for none */
    char         cache_dir[512];
    hdi_runs     runs;          /* what earlier plans took; with a lock of its own, */
    hdi_idle     idle;          /* and plans that ended, for the same plan again; with a lock of its own */
    void        *handle;        /* that the caller has */
    hdi_mutex    lock;          /* guards everything below */
    hd_error     error;         /* the first since it was taken */
    char         error_line[1024];
    bool         probed;
    hdi_registry registry;
    hdi_link     devices, programs, kernels, buffers, plans, tickets;
    uint64_t     live;
    _Atomic uint64_t failures, failovers; /* so far */
};

struct hd_kernel {
    hd_context      *context;
    hdi_held         held;
    hdi_user_kernel *user;
    hd_kernel_info   info;
};

struct hd_plan {
    hd_context  *context;
    hdi_held     held;
    hd_plan_desc desc;          /* without what is borrowed for the call */
    uint32_t     device_count;
    hd_device   *devices[HDI_MOST_DEVICES]; /* the caller's first; others in their place after a loss */
    hdi_loaded  *loaded;        /* that runs now: one of `alternatives`, */
    hdi_loaded  *outputs;       /* and the one that has the outputs of the last run */
    hdi_loaded  *alternatives[HDI_MOST_ALTERNATIVES]; /* of a plan that follows the load; else one */
    uint32_t     alternative_count;
    hdi_follow   follow;
    /* under which the next plan finds what runs of each took; 0: nobody asks */
    uint64_t     run_keys[HDI_MOST_ALTERNATIVES];
    hdi_shadows *shadows;       /* with fail-over; else NULL */
    hdi_link     streams;       /* of the plan */
    hd_plan_memory memory;
    hdi_text     program_text;  /* explains, and is planned anew after a loss */
    hdi_text     route_text;    /* how devices were chosen */
    char        *route;         /* the caller's words; NULL: none */
    size_t       route_bytes;
    hd_plan_stats stats;        /* what does not change from run to run */
    uint32_t     watched;       /* values of the program whose NaN are looked for; 0: nobody asked */
    uint64_t     writes;        /* of inputs and states so far: their versions */
    uint64_t     runs, records; /* of loaded plans that a loss ended */
};

struct hd_stream {
    hdi_held    held;           /* in the plan's list */
    hd_plan    *plan;
    hdi_stream *stream;
};

struct hd_ticket {
    hd_context *context;
    hdi_held    held;
    hd_plan    *plan;           /* NULL once the plan was ended */
    hd_stream  *stream;         /* whose run it is; NULL: the plan's own, or the stream was ended */
    uint64_t    number;         /* of the stream's run */
    hdi_run     run;
    hd_done_fn  done;           /* who is told of its end, once; NULL: nobody. Guarded by the context's lock */
    void       *done_user;
};

/* ---- context.c ---- */
/* Keeps the first error, and returns its status. `error` may be of status HD_OK: then nothing happens. */
hd_status hdi_context_keep(hd_context *context, const hd_error *error);
/* The same where a call ends so: an error that it got over is not kept. */
static inline hd_status hdi_context_done(hd_context *context, hd_status status, const hd_error *error) {
    if (status) hdi_context_keep(context, error);
    return status;
}
/* hdi_fail and hdi_context_keep in one. */
hd_status hdi_context_fail(hd_context *context, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
/* Puts an object that has a handle into a list of its context. */
void hdi_context_put(hd_context *context, hdi_link *list, hdi_held *held);
/* The same, and makes its handle. OUT_OF_HOST_MEMORY: it is the caller's to end. */
hd_status hdi_context_add(hd_context *context, hdi_link *list, hdi_held *held, const char *kind, void *object,
                          hd_error *error);
#define HDI_ADD(context, list, object, error) \
    hdi_context_add((context), (list), &(object)->held, HDI_KIND_OF(object), (object), (error))
/* Takes an object out of its list, and its handle back; false: somebody else did, and ends it. */
bool hdi_context_remove(hd_context *context, hdi_held *held);
/* Takes the first object out of a list for which `matches` is true; NULL: there is none. It is the caller's to end:
 * another thread may end others meanwhile. */
hdi_held *hdi_context_claim(hd_context *context, hdi_link *list,
                            bool (*matches)(const hdi_link *link, const void *user), const void *user);
hd_status hdi_context_probe(hd_context *context, hd_error *error);
/* ---- devices.c ---- */
hd_status hdi_front_open(hd_context *context, const hdi_found *found, const hdi_foreign *foreign, const char *why,
                         hd_device **out_device, hd_error *error);
/* ---- planning.c: from a program and wishes to a loaded plan ---- */
hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc);
/* Where a program's operations go, and the plan for that; what it chose is told in `out_text` (NULL: nobody asks). */
hd_status hdi_planning_make(hd_plan *plan, const hd_program *program, hd_error *error);
hd_status hdi_planning_estimate(hd_plan *plan, const hd_program *program, hd_plan_memory *out_memory,
                                hd_plan_memory *out_each, hd_error *error);
/* Statuses of the wishes themselves. */
hd_status hdi_planning_check(const hd_plan *plan, hd_error *error);
/* A plan that was saved, made again. */
hd_status hdi_planning_load(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error);
/* ---- programs.c ---- */
/* hd_program_parse; gives out the object itself, which hd_program_destroy ends. */
hd_status hdi_program_read(hd_context *context, const char *text, size_t bytes, hd_program **out_program);
/* The same program once more, as an object of the context; hd_program_destroy. A failure is kept. */
hd_status hdi_program_copy(hd_context *context, const hd_program *program, hd_program **out_copy);
/* ---- watch.c: where NaN come from (program/watch.c) ---- */
/* The program that is planned instead; hd_program_destroy. */
hd_status hdi_watch_begin(hd_plan *plan, const hd_program *program, hd_program **out_watched, hd_error *error);
/* After a run: NOT_FINITE names the first. */
hd_status hdi_watch_look(hd_plan *plan, hd_error *error);
/* ---- plans.c ---- */
/* As hd_plan_create; `saved`: it is that plan, and `desc` says what is not in it. */
hd_status hdi_plan_new(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                       const hdi_saved_plan *saved, hd_plan **out_plan);
/* Ends a plan that is in no list any more. */
void hdi_plan_end(hd_plan *plan);
/* ---- borrow.c: operations that a device has no kernel for ---- */
/* Puts the CPU beside the plan's device for what that one cannot compute, as a route. False: it is not allowed, not
 * possible, or would not help; the plan is as it was. */
bool hdi_borrow_cpu(hd_plan *plan, const hd_program *program);
void hdi_borrow_end(hd_plan *plan);
/* ---- lost.c: moving on when a device is lost ---- */
static inline bool hdi_plan_may_move(const hd_plan *plan, hd_status status) {
    return status == HD_STATUS_DEVICE_LOST && plan->desc.failover;
}
/* An opened device of this id that is not lost; `out_lost`: one of them is. */
hd_device *hdi_device_open_already(hd_context *context, const char *id, bool *out_lost);
/* Plans anew without the lost devices, and brings along what was written. */
hd_status hdi_plan_move(hd_plan *plan, hd_error *error);
/* ---- tickets.c ---- */
hd_status hdi_ticket_new(hd_context *context, hd_ticket **out_ticket, hd_error *error);
/* Runs the plan once and waits, and again elsewhere as often as a device is lost. */
hd_status hdi_plan_run_once(hd_plan *plan, uint64_t timeout_ns, hd_error *error);
/* Ends a ticket that is in no list any more. */
void hdi_ticket_end(hd_ticket *ticket);
/* ---- streams.c ---- */
/* Ends the streams of a plan. */
void hdi_streams_end(hd_plan *plan);
/* ---- buffers.c ---- */
/* Ends a buffer that is in no list any more. */
void hdi_buffer_end(hd_buffer *buffer);
#endif
