/* front.h: the public objects and how they hang together. Every object sits in a list of its context, so that ending
 * the context, or a device, ends all that was made from it. This room checks arguments, keeps objects and calls the
 * others. */
#ifndef HDI_FRONT_H
#define HDI_FRONT_H

#include "prepare/prepare.h"
#include "spirv/spirv.h"

struct hd_context {
    hdi_holder   holder;        /* at the beginning; its lock guards `probed` and everything below */
    hd_allocator allocator;
    hdi_log      log;
    hdi_host     host;
    hdi_faults   faults;        /* that calls of devices make on purpose */
    char         backend[96], device[64]; /* wishes; "" for none */
    char         cache_dir[512];
    hdi_plans_shared shared;
    char         error_line[1024]; /* of hd_context_error, which one thread calls */
    bool         probed;
    hdi_registry registry;
    hdi_link     devices, programs, kernels, buffers, plans, tickets;
    _Atomic uint64_t failovers; /* so far */
};

struct hd_kernel {
    hd_context      *context;
    hdi_held         held;
    hdi_custom       known; /* the kernel_... fields */
    hd_kernel_info   info;
};

/* ---- context.c ---- */
static inline hd_status hdi_context_keep(hd_context *context, const hd_error *error) {
    return hdi_holder_keep(&context->holder, error);
}
/* The same where a call ends so: an error that it got over is not kept. */
static inline hd_status hdi_context_done(hd_context *context, hd_status status, const hd_error *error) {
    if (status) hdi_context_keep(context, error);
    return status;
}
/* hdi_fail and hdi_context_keep in one. */
hd_status hdi_context_fail(hd_context *context, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
/* An object with a handle in a list of its context. OUT_OF_HOST_MEMORY: it is the caller's to end. */
#define HDI_ADD(context, list, object, error) \
    hdi_held_add(&(context)->holder, (list), &(object)->held, HDI_KIND_OF(object), (object), (error))
/* Looks for devices, once. */
hd_status hdi_context_probe(hd_context *context);
/* ---- devices.c ---- */
hd_status hdi_open_found(hd_context *context, const hdi_found *found, const hdi_foreign *foreign, const char *why,
                         hd_device **out_device, hd_error *error);
/* ---- programs.c ---- */
/* Programs that are in no list; hdi_program_end. From text with kernels of the context: */
hd_status hdi_program_read(hd_context *context, const char *text, size_t bytes, hd_program **out_program,
                           hd_error *error);
/* and the same program once more. */
hd_status hdi_program_copy(hd_context *context, const hd_program *program, hd_program **out_copy, hd_error *error);
void hdi_program_end(hd_program *program);
/* ---- plans.c ---- */
/* Ends a plan that is in no list any more. */
void hdi_plan_end(hd_plan *plan);
/* ---- lost.c: as hdi_plans_shared tells ---- */
hd_device *hdi_open_cpu(hd_context *context);
hd_status hdi_plan_move(hd_plan *plan, hd_error *error);
/* ---- tickets.c ---- */
/* Ends a ticket that is in no list any more. */
void hdi_ticket_end(hd_ticket *ticket);
#endif
