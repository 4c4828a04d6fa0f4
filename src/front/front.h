/* front.h: the room that knows all rooms. The public objects, and how they hang together: every object sits in a list of
 * its context, so that ending the context, or a device, ends all that was made from it. */
#ifndef HDI_FRONT_H
#define HDI_FRONT_H

#include "calibrate/calibrate.h"
#include "device/device.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/segments.h"
#include "route/route.h"
#include "spirv/spirv.h"
#include <stdatomic.h>

struct hd_context {
    hd_allocator allocator;
    hdi_log      log;
    hdi_host     host;
    bool         strict;
    uint32_t     verify;        /* known answers before a kernel's first use: 0 never, 1 on GPUs, 2 on every device */
    char         backend[16], device[64]; /* wishes; "" for none */
    char         cache_dir[512];
    hdi_mutex    lock;          /* guards everything below */
    hd_error     error;         /* the first since it was taken */
    char         error_line[1024];
    bool         probed;
    hdi_registry registry;
    hdi_link     devices, programs, kernels, buffers, plans, streams, tickets;
    hdi_link     idle;          /* plan cores of ended plans, the latest last */
    uint32_t     idle_count;
    uint64_t     idle_bytes;    /* of their memory */
    uint64_t     live;
};

struct hd_kernel {
    hd_context      *context;
    hdi_link         link;
    hdi_user_kernel *user;
    hd_kernel_info   info;
};

struct hd_buffer {
    hd_device  *device;
    hdi_link    link;
    hdi_memory *memory;
    uint64_t    bytes;
    _Atomic uint64_t last_ticket; /* the last submission that touches it */
};

/* ---- plans ---- */

typedef struct hdi_core_slot {
    hdi_memory *memory;   /* of the core's own, or NULL while nothing needed it */
    uint64_t    memory_bytes;
    hd_buffer  *bound;    /* the caller's instead, or NULL */
    uint64_t    bound_offset;
    bool        written;  /* an input that has its bytes */
    void       *shadow;   /* host copy, for fail-over */
    /* Among the segments of a plan: */
    struct hdi_core_slot *home; /* of an earlier segment on the device: the memory is that one's; else NULL */
    bool        shared;   /* it is such a home */
    bool        inside;   /* of a value that crosses between segments: not the caller's */
    uint64_t    port_at;  /* of a piece of a port whose rows both devices share: where it begins there, */
    uint64_t    elsewhere; /* and bytes of the port that lie on the other device */
} hdi_core_slot;

/* A plan on one device with its memory, kernels and recording: what moves on a fail-over and what is kept for reuse. */
typedef struct hdi_core {
    hdi_link        link;       /* in the context's idle list */
    hd_device      *device;
    uint64_t        key;        /* hash of program, options, device */
    hdi_plan       *plan;
    hdi_module     *modules;    /* of the user's kernels */
    hdi_blob       *blobs;
    hdi_loaded_kernel **kernels; /* for plan->cmds.kernels */
    hdi_core_slot  *slots;
    hdi_slot       *bindings;   /* what the last submission used */
    hdi_recording  *recording;
    uint64_t        last_ticket;
} hdi_core;

/* A segment of a plan. A plan on one device has one. */
typedef struct hdi_part {
    hdi_core *core;
    uint64_t  ticket; /* of its last run */
} hdi_part;

/* A value that travels from the device where it was made to the other one, into the first segment there that reads it. */
typedef struct hdi_crossing {
    uint32_t from, from_slot, to, to_slot; /* parts, and slots of theirs */
    uint64_t bytes;
    void    *host; /* on its way, where neither device's memory is mapped; made when it is needed first */
} hdi_crossing;

/* What a plan with route "auto" was predicted to take, by device (the plan's, the one beside it). */
typedef struct hdi_routed {
    uint8_t *places;    /* of each node of the program; NULL: the route is another one */
    uint32_t node_count;
    hdi_text text;      /* where each operation is, and why */
} hdi_routed;

struct hd_plan {
    hd_context  *context;
    hdi_link     link;
    hd_device   *device;       /* the caller's, or where the plan moved to */
    hdi_part    *parts;        /* in the order in which they run */
    uint32_t     part_count;
    hdi_crossing *crossings;   /* by the part that they go to */
    uint32_t     crossing_count, crossing_capacity;
    uint32_t     begun;        /* parts of the last run that were handed over: less than all while later ones wait for values */
    uint32_t     crossed;      /* crossings of the last run that are done */
    hd_plan_desc desc;
    hd_plan_memory memory;
    hdi_text     program_text; /* explains, and is planned anew on a fail-over */
    hdi_text     segments_text;
    hdi_routed   routed;
    hd_plan_stats stats;
    bool         ran;          /* outputs can be read */
};

/* The last submission of a run on a device; device NULL: none. */
typedef struct hdi_last {
    hd_device *device;
    uint64_t   ticket;
} hdi_last;

struct hd_ticket {
    hd_context *context;
    hdi_link    link;
    hd_plan    *plan;          /* NULL once the plan was ended */
    hd_stream  *stream;        /* whose run it is, NULL: the plan's own, or the stream was ended */
    uint64_t    run;           /* of the stream */
    bool        open;          /* segments of its run are not handed over yet; then `last` says nothing */
    hd_status   failed;        /* why they never will be */
    hdi_last    last[2];
};

/* ---- context.c ---- */
/* Keeps the first error, and returns its status. `error` may be of status HD_OK: then nothing happens. */
hd_status hdi_context_keep(hd_context *context, const hd_error *error);
/* hdi_fail and hdi_context_keep in one. */
hd_status hdi_context_fail(hd_context *context, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
void hdi_context_add(hd_context *context, hdi_link *list, hdi_link *link);
void hdi_context_remove(hd_context *context, hdi_link *link);
hd_status hdi_context_probe(hd_context *context, hd_error *error);
/* ---- devices.c ---- */
hd_status hdi_front_open(hd_context *context, const hdi_found *found, const hdi_foreign *foreign, const char *why, hd_device **out_device, hd_error *error);
/* ---- facts.c ---- */
/* What is known of a device before anything was found out. */
void hdi_front_assume(const hd_context *context, const hdi_found *found, hdi_facts *out_facts);
/* Orders the devices that were found by what was measured of them in earlier processes, too. */
void hdi_front_rank(hd_context *context);
/* ---- core.c ---- */
/* A plan made real; it belongs to the core from then on, or is ended. */
hd_status hdi_core_of_plan(hd_device *device, hdi_plan *plan, hdi_core **out_core, hd_error *error);
hd_status hdi_core_make(hd_device *device, const hd_program *program, const hd_plan_desc *desc, uint64_t program_hash, hdi_core **out_core, hd_error *error);
/* Ends the core once the device is done with it. */
void hdi_core_end(hdi_core *core);
/* Keeps the core for a later plan of the same key, or ends it. */
void hdi_core_retire(hdi_core *core, bool reusable);
/* Ends all idle cores (of one device; NULL: of all). */
void hdi_core_drop_idle(hd_context *context, const hd_device *device);
/* A kind of storage, as one of several. */
#define HDI_KIND(kind) (1u << HDI_STORAGE_##kind)
/* The slot of one of these kinds that the caller knows by this name, or NULL: his port, or a piece of it. */
hdi_core_slot *hdi_core_find(hdi_core *core, const char *name, uint32_t kinds, uint32_t *out_slot);
/* Does every input have its bytes, in `instead` (hdi_core_run) or of its own? WRONG_STATE names the one that lacks them. */
hd_status hdi_core_check_inputs(const hdi_core *core, const hdi_slot *instead, hd_error *error);
/* Makes the memory of a named slot, where the caller bound none. */
hd_status hdi_core_memory(hdi_core *core, uint32_t slot, hd_error *error);
/* New memory of the kind that the slot has. */
hd_status hdi_core_alloc(const hdi_core *core, uint32_t slot, hdi_memory **out_memory, hd_error *error);
/* How a core runs. */
typedef struct hdi_core_run {
    const hdi_slot *instead;    /* by slot: memory in place of the core's own; NULL, here or inside: its own */
    hdi_recording **recording;  /* kept for these slots; NULL: the core's */
    bool            timestamps;
    uint64_t        number;     /* in traces; 0: none */
} hdi_core_run;
hd_status hdi_core_submit(hdi_core *core, const hdi_core_run *run, uint64_t *out_records, hd_error *error);
/* ---- routing.c: route "auto" ---- */
/* Places from what is known of both devices. `out_stats` learns what was predicted. hdi_routed_free ends `out_routed`, also after a failure. */
hd_status hdi_routing_places(hd_device *const devices[2], const hd_program *program, const hd_plan_desc *desc, hdi_routed *out_routed,
                             hd_plan_stats *out_stats, hd_error *error);
void hdi_routed_free(hdi_routed *routed, const hd_allocator *allocator);
/* ---- parts.c: the segments of a plan, made ---- */
/* Makes plan->parts by desc.route, all that hangs on them, and plan->memory. What was made is the plan's in any case. */
hd_status hdi_parts_make(hd_plan *plan, const hd_program *program, uint64_t program_hash, hd_error *error);
/* The same memory without taking it. */
hd_status hdi_parts_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan_memory *out_memory, hd_error *error);
/* Ends or retires all of it. */
void hdi_parts_end(hd_plan *plan, bool reusable);
/* ---- drive.c: a run, from segment to segment ---- */
/* Begins a run, after an earlier one was handed over in full, and hands over what can be without waiting. */
hd_status hdi_drive_start(hd_plan *plan, hd_error *error);
/* Hands over the next segments of the run: as far as values are there, or, with `wait`, all. After a TIMEOUT the run goes on;
 * any other failure ends it. */
hd_status hdi_drive(hd_plan *plan, bool wait, uint64_t timeout_ns, hd_error *error);
/* A whole run, one segment after the other: what they took on the plan's device and on the one beside it. */
hd_status hdi_drive_measure(hd_plan *plan, uint64_t timeout_ns, uint64_t out_ns[2], hd_error *error);
/* Waits until the run is done. */
hd_status hdi_drive_wait(hd_plan *plan, uint64_t timeout_ns, hd_error *error);
/* The last submissions of the plan on each device. */
void hdi_drive_last(const hd_plan *plan, hdi_last out_last[2]);
/* Gives a run that will not go on up: its tickets say `status`. */
void hdi_drive_stop(hd_plan *plan, hd_status status);
/* ---- stream.c: runs of a plan that overlap ---- */
/* Brings the outputs of a ticket's run, which is done. */
void hdi_stream_deliver(const hd_ticket *ticket);
void hdi_stream_end(hd_stream *stream);
/* Ends the streams of a plan. */
void hdi_streams_end(hd_plan *plan);
/* ---- plans.c ---- */
hd_status hdi_plan_move(hd_plan *plan, hd_error *error);
/* Counts what the plan's parts hold. */
void hdi_plan_fill_stats(hd_plan *plan);
hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc);
void hdi_plan_end(hd_plan *plan);
void hdi_buffer_end(hd_buffer *buffer);
void hdi_ticket_end(hd_ticket *ticket);
#endif
