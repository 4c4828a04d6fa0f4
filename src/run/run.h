/* run.h: the loaded plan. A plan of the plan room made real: each segment has its memory, kernels and recording on its
 * device (core.c), values by name (ports.c), runs that go from segment to segment (drive.c), runs that overlap
 * (stream.c), host copies for fail-over (shadow.c), and a choice between loaded plans of one program (follow.c). What
 * the caller has as a plan is these together (plan.c). A plan belongs to one thread at a time; nothing here places,
 * plans or parses. */
#ifndef HDI_RUN_H
#define HDI_RUN_H

#include "device/device.h"
#include "facts/runs.h"
#include "plan/plan.h"
#include <stdatomic.h>

/* ---- buffer.c: the caller's own memory on a device ---- */

struct hd_buffer {
    hd_device  *device;
    hdi_held    held;
    hdi_memory *memory;
    uint64_t    bytes;
    hd_buffer_use use;
    char        label[48];
    hdi_link    slots;    /* of plans that are bound to it; guarded by the device's lock */
    _Atomic uint64_t last_ticket; /* the last submission that touches it */
};

/* As hd_buffer_create; in no list yet. */
hd_status hdi_buffer_make(hd_device *device, const hd_buffer_desc *desc, hd_buffer **out_buffer, hd_error *error);
/* Ends it. No plan is bound to it any more: a run of those that were fails until something else is bound or written
 * there. */
void hdi_buffer_end(hd_buffer *buffer);
hd_status hdi_buffer_write(hd_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes, hd_error *error);
hd_status hdi_buffer_read(hd_buffer *buffer, uint64_t offset, void *out_data, uint64_t bytes, hd_error *error);
/* `"weights"`, or `a buffer`: what error texts call it. `out` has HDI_BUFFER_TEXT bytes; returned. */
enum { HDI_BUFFER_TEXT = 64 };
char *hdi_buffer_text(const hd_buffer *buffer, char *out);
/* May kernels read it (`in`), or write it, by what it is for? INVALID_ARGUMENT says why not. */
hd_status hdi_buffer_check_use(const hd_buffer *buffer, const char *port, bool in, bool out, hd_error *error);
/* Are bytes offset..offset+bytes inside of it? LIMIT says with the figures. `padded`: up to a multiple of 4. */
hd_status hdi_buffer_check_range(const hd_buffer *buffer, const char *port, uint64_t offset, uint64_t bytes,
                                 bool padded, hd_error *error);

/* ---- core.c: one segment on its device ---- */

typedef struct hdi_core_slot {
    hdi_memory *memory;   /* of the core's own, or NULL while nothing needed it */
    uint64_t    memory_bytes;
    hd_buffer  *bound;    /* the caller's instead, or NULL */
    uint64_t    bound_offset;
    hdi_link    bound_link; /* in the buffer's list */
    bool        bereft;   /* the buffer that was bound here was ended */
    bool        written;  /* an input that has its bytes */
    bool        shared;   /* other segments use its memory */
    struct hdi_core_slot *home; /* of another segment on the device: the value is that one's; else NULL */
    struct hdi_core_slot *reused; /* the memory is that one's, whose value nothing needs any more; else NULL */
} hdi_core_slot;

typedef struct hdi_core {
    hd_device          *device;
    hdi_schedule       *schedule;
    hdi_module         *modules;  /* of the user's kernels */
    hdi_blob           *blobs;
    hdi_loaded_kernel **kernels;  /* for schedule->cmds.kernels */
    hdi_core_slot      *slots;
    hdi_slot           *bindings; /* what the last submission used */
    hdi_recording      *recording;
    uint64_t            run_ticket;  /* of its last run, */
    uint64_t            last_ticket; /* and of the last submission that touches its memory */
} hdi_core;
/* A plan made real, but for its scratch; it belongs to the core from then on, or is ended. */
hd_status hdi_core_make(hd_device *device, hdi_schedule *schedule, hdi_core **out_core, hd_error *error);
/* Allocates scratch, where it is not another core's: after this no run allocates. */
hd_status hdi_core_allocate(hdi_core *core, hd_error *error);
/* The module that a kernel of the plan names. */
const hdi_module *hdi_core_module(const hdi_core *core, uint32_t id);
/* Where a slot's bytes are: memory that the caller bound, or that of the plan. */
hdi_slot hdi_core_where(const hdi_core *core, uint32_t slot);
/* Ends the core once the device is done with it. */
void hdi_core_end(hdi_core *core);
/* A kind of storage, as one of several. */
#define HDI_KIND(kind) (1u << HDI_STORAGE_##kind)
/* The slot of one of these kinds with this name, or NULL. */
hdi_core_slot *hdi_core_find(hdi_core *core, const char *name, uint32_t kinds, uint32_t *out_slot);
/* Does every input have its bytes, in `instead` (hdi_core_run) or of its own? WRONG_STATE names the one that lacks
 * them. */
hd_status hdi_core_check_inputs(const hdi_core *core, const hdi_slot *instead, hd_error *error);
/* Makes the memory of a named slot, where the caller bound none. */
hd_status hdi_core_memory(hdi_core *core, uint32_t slot, hd_error *error);
/* New memory of the kind that the slot has. */
hd_status hdi_core_alloc(const hdi_core *core, uint32_t slot, hdi_memory **out_memory, hd_error *error);
/* Binds the caller's buffer, of the core's device, in place of a slot's memory; NULL: the slot's own again. */
void hdi_core_bind(hdi_core *core, uint32_t slot, hd_buffer *buffer, uint64_t offset);
/* How a core runs. */
typedef struct hdi_core_run {
    const hdi_slot *instead;    /* by slot: memory in place of the core's own; NULL, here or inside: its own */
    hdi_recording **recording;  /* kept for these slots; NULL: the core's */
    bool            timestamps;
    uint64_t        number;     /* in traces; 0: none */
} hdi_core_run;
hd_status hdi_core_submit(hdi_core *core, const hdi_core_run *run, uint64_t *out_records, hd_error *error);
/* States begin as zeros again. */
hd_status hdi_core_clear_states(hdi_core *core, hd_error *error);
uint64_t hdi_core_bytes(const hdi_core *core);

/* ---- loaded.c: all segments ---- */

/* One place of a port's bytes: a slot of a segment that has its own memory. */
typedef struct hdi_port_piece {
    uint32_t segment, slot;
    uint64_t at; /* where they begin within the port's */
} hdi_port_piece;
typedef struct hdi_loaded_port {
    const char    *name;
    hd_port_kind   kind;
    uint64_t       bytes;
    uint64_t       version; /* of the bytes that were written; equal in two loaded plans: equal bytes */
    hdi_port_piece *pieces; /* several where devices share it, or each has a copy of an input */
    uint32_t       piece_count;
} hdi_loaded_port;

/* The last submission of a run on a device. */
typedef struct hdi_last {
    hd_device *device;
    uint64_t   ticket;
} hdi_last;

/* What a ticket waits for. */
typedef struct hdi_run {
    hdi_link  link;   /* in the loaded plan's list while it is open */
    bool      open;   /* segments of the run are not handed over yet; then only the devices of `last` count */
    hd_status failed; /* why they never will be */
    uint32_t  count;
    hdi_last  last[HDI_MOST_DEVICES];
} hdi_run;

typedef struct hdi_loaded {
    hdi_link         link;      /* in a list of idle ones */
    uint64_t         key;       /* plans of one key are the same plan; 0: none is */
    const hd_allocator *allocator;
    hdi_plan       *plan;
    hd_device       *devices[HDI_MOST_DEVICES];
    hdi_core       **segments;  /* in the order in which they run */
    hdi_loaded_port *ports;
    hdi_port_piece  *pieces;    /* of all ports */
    uint32_t         piece_count;
    void           **carried;   /* for each crossing: its bytes on the way, where neither device's memory is mapped */
    /* segments of the last run that were handed over: less than all while later ones wait */
    uint32_t         begun;
    uint32_t         crossed;   /* crossings of the last run that are done */
    hdi_link         open_runs;
    bool             timestamps;
    bool             ran;       /* outputs can be read */
    uint64_t         runs, records, submit_ns; /* submit_ns: host time of the last hand-over */
} hdi_loaded;

/* Makes a plan real on its devices (plan->device_count of them). The plan is the loaded one's from then on, or is
 * ended. Statuses: those of the devices, OUT_OF_HOST_MEMORY. */
hd_status hdi_loaded_make(hdi_plan *plan, hd_device *const *devices, const hd_allocator *allocator,
                          hdi_loaded **out_loaded, hd_error *error);
/* Ends it once its devices are done with it. */
void hdi_loaded_end(hdi_loaded *loaded);
/* As it was after hdi_loaded_make: no inputs, nothing bound, states of zeros. */
hd_status hdi_loaded_reset(hdi_loaded *loaded, hd_error *error);
/* The times of the last run's steps, as far as there is room; NULL: their number only. */
hd_status hdi_loaded_timings(const hdi_loaded *loaded, hd_timing *out_timings, size_t room, size_t *out_count,
                             hd_error *error);

/* Loaded plans that nobody uses: the same plan again builds nothing. Safe from many threads. */
typedef struct hdi_idle {
    hdi_mutex lock;
    hdi_link  list; /* the latest last */
    uint32_t  count;
    uint64_t  bytes;
} hdi_idle;
bool hdi_idle_init(hdi_idle *idle);
void hdi_idle_free(hdi_idle *idle); /* it is empty */
/* The latest one of this key, or NULL. */
hdi_loaded *hdi_idle_take(hdi_idle *idle, uint64_t key);
/* Keeps it for a later plan of the same key, or ends it. */
void hdi_idle_put(hdi_idle *idle, hdi_loaded *loaded);
/* Ends those on the device. */
void hdi_idle_drop(hdi_idle *idle, const hd_device *device);

/* ---- ports.c: values by name ---- */

/* The port of one of these kinds (bits), or NULL: NAME_NOT_FOUND says what was looked for. */
hdi_loaded_port *hdi_port_named(const hdi_loaded *loaded, const char *name, uint32_t kinds, hd_error *error);
/* The same; NULL with SHAPE, too, where it has another number of bytes. */
hdi_loaded_port *hdi_port_find(const hdi_loaded *loaded, const char *name, uint32_t kinds, uint64_t bytes,
                               hd_error *error);
#define HDI_PORTS(kind) (1u << HD_PORT_##kind)
/* The whole port, to or from everywhere its pieces lie. */
hd_status hdi_port_write(hdi_loaded *loaded, const hdi_loaded_port *port, const void *data, hd_error *error);
hd_status hdi_port_read(hdi_loaded *loaded, const hdi_loaded_port *port, void *out_data, hd_error *error);
/* Uses the buffer where the port lies on its device. Statuses: INVALID_ARGUMENT (it lies on none), UNSUPPORTED (a piece
 * of it does), LIMIT. */
hd_status hdi_port_bind(hdi_loaded *loaded, const hdi_loaded_port *port, hd_buffer *buffer, uint64_t offset,
                        hd_error *error);
/* Copies states, and inputs of other versions, from one loaded plan of a program to another one. */
hd_status hdi_ports_move(hdi_loaded *from, hdi_loaded *to, hd_error *error);

/* ---- shadow.c: host copies of inputs and states, for fail-over ---- */

typedef struct hdi_shadow {
    void    *copy;
    uint64_t bytes;
    bool     written;
} hdi_shadow;
typedef struct hdi_shadows {
    const hd_allocator *allocator;
    uint32_t   count;
    hdi_shadow of[]; /* each port */
} hdi_shadows;
hdi_shadows *hdi_shadows_new(const hdi_loaded *loaded, hd_error *error); /* NULL: no memory */
void hdi_shadows_free(hdi_shadows *shadows);
/* Keeps a copy of a port's bytes; `data` NULL: reads them. */
hd_status hdi_shadow_keep(hdi_shadows *shadows, hdi_loaded *loaded, const hdi_loaded_port *port, const void *data,
                          hd_error *error);
hd_status hdi_shadows_keep_states(hdi_shadows *shadows, hdi_loaded *loaded, hd_error *error);
/* Writes all copies to a loaded plan of the same program. */
hd_status hdi_shadows_bring(const hdi_shadows *shadows, hdi_loaded *loaded, hd_error *error);

/* ---- drive.c: a run, from segment to segment ---- */

/* Begins a run, after an earlier one was handed over in full, and hands over what can be without waiting. */
hd_status hdi_drive_start(hdi_loaded *loaded, hd_error *error);
/* Hands over the next segments of the run: as far as values are there, or, with `wait`, all. After a TIMEOUT the run
 * goes on; any other failure ends it. */
hd_status hdi_drive(hdi_loaded *loaded, bool wait, uint64_t timeout_ns, hd_error *error);
/* Waits until the run is done. */
hd_status hdi_drive_wait(hdi_loaded *loaded, uint64_t timeout_ns, hd_error *error);
/* What a ticket of the last run waits for; an open one is closed when the run was handed over, or given up. */
void hdi_run_open(hdi_loaded *loaded, hdi_run *out_run);
/* Gives a run that will not go on up: its tickets say `status`. */
void hdi_drive_stop(hdi_loaded *loaded, hd_status status);

/* ---- follow.c: which of several loaded plans of one program runs next ---- */

enum { HDI_MOST_ALTERNATIVES = HDI_MOST_DEVICES + 1 };
/* What is known of them; times are of a run, as its caller waits for it. */
typedef struct hdi_follow {
    uint32_t count, at;
    uint32_t home;         /* where the plan goes back to after a look at another one */
    uint32_t looking;      /* runs that are left of such a look; 0: none */
    uint32_t slower;       /* runs in a row that took clearly longer than another alternative is known to take */
    double   look_took_ns, least_ns; /* of the look: all runs, and the fastest */
    uint64_t runs[HDI_MOST_ALTERNATIVES];   /* that were measured there */
    double   run_ns[HDI_MOST_ALTERNATIVES]; /* what they take; at first as predicted */
    uint64_t due_ns[HDI_MOST_ALTERNATIVES]; /* when each is looked at next; 0: not known yet */
} hdi_follow;
/* A run took so long, and it is now so late; returns the alternative for the next run. */
uint32_t hdi_follow_next(hdi_follow *follow, uint64_t took_ns, uint64_t now_ns);

/* ---- plan.c: plans as their callers use them ---- */

/* What all plans of a context share. */
typedef struct hdi_plans_shared {
    hdi_mutex *lock;     /* the context's; those who close devices look at those of plans and of tickets' runs */
    hdi_idle   idle;     /* plans that ended, for the same plan again */
    hdi_runs   runs;     /* what earlier plans took */
    bool       strict;
    uint32_t   find_nan; /* 1: NaN, 2: infinities, too */
    hd_device *(*open_cpu)(hd_context *context); /* for what a device has no kernel for; NULL: there is none */
    /* After a loss: plans anew without the lost devices, and brings along what was written. */
    hd_status (*move)(hd_plan *plan, hd_error *error);
} hdi_plans_shared;

struct hd_plan {
    hd_context  *context;       /* opaque here */
    hdi_plans_shared *shared;
    hdi_held     held;
    hd_plan_desc desc;          /* what is borrowed for the call is NULL after it */
    uint32_t     device_count;
    hd_device   *devices[HDI_MOST_DEVICES]; /* the caller's first; others in their place after a loss */
    hdi_loaded  *loaded;        /* that runs now: one of `alternatives`, */
    hdi_loaded  *outputs;       /* and the one that has the outputs of the last run; NULL: the same */
    hdi_loaded  *alternatives[HDI_MOST_ALTERNATIVES]; /* of a plan that follows the load; else one */
    uint32_t     alternative_count;
    hdi_follow   follow;
    /* under which the next plan finds what runs of each took; 0: nobody asks */
    uint64_t     run_keys[HDI_MOST_ALTERNATIVES];
    hdi_shadows *shadows;       /* with fail-over; else NULL */
    hdi_link     streams;       /* of the plan */
    hd_plan_memory memory;
    hd_program  *program;       /* with fail-over, or where NaN are looked for: as it was planned; else NULL */
    hdi_text     program_text;  /* the same as text */
    hdi_text     route_text;    /* how devices were chosen */
    hdi_text     route;         /* with fail-over the caller's words, or those of what was borrowed; else empty */
    hd_plan_stats stats;        /* what does not change from run to run, and runs of loaded plans that a loss ended */
    uint64_t     writes;        /* of inputs and states so far: their versions */
};

/* Has the plan segments on the device, or may it go there? */
bool hdi_plan_has(const hd_plan *plan, const hd_device *device);
/* As hd_plan_write, hd_plan_read and hd_plan_bind. */
hd_status hdi_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes, hd_error *error);
hd_status hdi_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes, hd_error *error);
hd_status hdi_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset, hd_error *error);
/* Runs once and waits, and again elsewhere as often as a device is lost. NOT_FINITE: where NaN are looked for. */
hd_status hdi_plan_run(hd_plan *plan, uint64_t timeout_ns, hd_error *error);
/* Begins a run (hdi_drive_start), of which the ticket then tells; elsewhere where a device is lost. */
hd_status hdi_plan_start(hd_plan *plan, hd_ticket *ticket, hd_error *error);
/* Its end: the next plan finds what its runs took, and, if `reusable`, what it loaded. */
void hdi_plan_unload(hd_plan *plan, bool reusable);
/* What is known of it: as hd_plan_explain, hd_plan_get_stats and hd_plan_timings. */
void hdi_plan_explain(const hd_plan *plan, hdi_text *out_text);
hd_plan_stats hdi_plan_count(const hd_plan *plan);
hd_status hdi_plan_timings(hd_plan *plan, hd_timing *out_timings, size_t room, size_t *out_count, hd_error *error);

struct hd_ticket {
    hd_context *context;        /* opaque here */
    hdi_held    held;
    hd_plan    *plan;           /* NULL once the plan was ended */
    hd_stream  *stream;         /* whose run it is; NULL: the plan's own, or the stream was ended */
    uint64_t    number;         /* of the stream's run */
    hdi_run     run;
    hd_done_fn  done;           /* who is told of its end, once; NULL: nobody. Guarded by the context's lock */
    void       *done_user;
};

/* Is the run done? Statuses: those of the run itself. */
hd_status hdi_ticket_poll(hd_ticket *ticket, bool *out_done, hd_error *error);
hd_status hdi_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns, hd_error *error);

/* ---- stream.c: runs of a plan that overlap ---- */

struct hd_stream {
    hdi_held    held;           /* in the plan's list */
    hd_plan    *plan;           /* of one segment: */
    hdi_core   *core;
    hd_device  *device;
    struct hdi_stream_set *sets; /* `depth` of them */
    uint32_t    depth, slot_count;
    uint64_t    runs;
};

/* An input or an output of a run: bytes of the caller's, or a buffer. */
typedef struct hdi_stream_item {
    const char *name;
    char       *data; /* of an input it is only read */
    hd_buffer  *buffer;
    uint64_t    offset, bytes;
    bool        in;
} hdi_stream_item;
/* As hd_stream_create; in no list yet. */
hd_status hdi_stream_make(hd_plan *plan, uint32_t depth, hd_stream **out_stream, hd_error *error);
/* The plan may be ended as soon as this returns. */
void hdi_stream_end(hd_stream *stream);
/* Starts a run, of which the ticket then tells. */
hd_status hdi_stream_submit(hd_stream *stream, const hdi_stream_item *items, size_t count, hd_ticket *ticket,
                            hd_error *error);
/* Brings the outputs of a run, which is done. */
void hdi_stream_deliver(hd_stream *stream, uint64_t number);
/* Does a run still owe outputs? They are lost where the stream ends. */
bool hdi_stream_owes(const hd_stream *stream, uint64_t number);
hd_status hdi_stream_finish(hd_stream *stream, uint64_t timeout_ns, hd_error *error);
#endif
