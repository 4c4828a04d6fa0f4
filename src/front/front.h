/* front.h: the room that knows all rooms. The public objects, and how they hang together: every object sits in a list of
 * its context, so that ending the context, or a device, ends all that was made from it. */
#ifndef HDI_FRONT_H
#define HDI_FRONT_H

#include "device/device.h"
#include "plan/plan.h"
#include "program/program.h"
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
    hdi_link     devices, programs, kernels, buffers, plans, tickets;
    hdi_link     idle;          /* plan cores of ended plans, the latest last */
    uint32_t     idle_count;
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

struct hd_plan {
    hd_context  *context;
    hdi_link     link;
    hdi_core    *core;
    hd_plan_desc desc;
    hdi_text     program_text; /* explains, and is planned anew on a fail-over */
    hd_plan_stats stats;
    bool         ran;          /* outputs can be read */
};

struct hd_ticket {
    hd_context *context;
    hdi_link    link;
    hd_device  *device;
    hd_plan    *plan;          /* NULL once the plan was ended */
    uint64_t    ticket;
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
hdi_core_slot *hdi_core_find(hdi_core *core, const char *name, uint32_t kinds, uint32_t *out_slot);
/* Makes the memory of a named slot, where the caller bound none. */
hd_status hdi_core_memory(hdi_core *core, uint32_t slot, hd_error *error);
hd_status hdi_core_submit(hdi_core *core, bool timestamps, uint64_t *out_records, hd_error *error);
/* ---- verify.c: which kernel variants are right on a device, judged once and kept beside the compiled kernels ---- */
hd_status hdi_verdicts_open(hd_device *device, hd_error *error);
void hdi_verdicts_close(hd_device *device);
/* The device's facts, with what is known to be wrong. */
void hdi_verdicts_caps(hd_device *device, hdi_caps *out_caps);
/* A plan of variants that are not known to be wrong; those that were never judged are judged first, where the context asks for it. */
hd_status hdi_verdicts_plan(hd_device *device, const hd_program *program, const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error);
/* ---- known_answers.c: small programs, run on a device and in plain C ---- */
typedef struct hdi_judgement {
    uint32_t answers; /* that were compared; 0: no plan for the device has this variant */
    double   worst;   /* largest error as a share of its bound; above 1: wrong */
} hdi_judgement;
/* Compares the answers for one form of a variant, on a device with these facts. The statuses are those of a device that
 * cannot answer; a kernel that it does not take counts as wrong. */
hd_status hdi_known_answers(hd_device *device, const hdi_caps *caps, hdi_variant variant, hdi_judgement *out, hd_error *error);
/* Are f32 sums and products rounded, and subnormals kept, as exact mode needs? */
hd_status hdi_known_arithmetic(hd_device *device, const hdi_caps *caps, hdi_judgement *out, hd_error *error);
/* Changes with the answers: verdicts of others are not taken over. */
uint64_t hdi_known_answers_hash(void);
/* ---- plan.c ---- */
hd_status hdi_plan_move(hd_plan *plan, hd_error *error);
hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc);
void hdi_plan_end(hd_plan *plan);
void hdi_buffer_end(hd_buffer *buffer);
void hdi_ticket_end(hd_ticket *ticket);
#endif
