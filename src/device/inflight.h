/* inflight.h: what back ends with tickets share: the memory, kernels and recordings of a device, which submissions
 * under way may use and which therefore end later than they are freed; and waiting by looks at a ticket. */
#ifndef HDI_INFLIGHT_H
#define HDI_INFLIGHT_H

#include "device/backend.h"

/* Such a back end's hdi_memory and hdi_loaded_kernel begin with this, and so does hdi_command_buffer (recordings.h). */
typedef struct hdi_used {
    hdi_link link;        /* in a list of hdi_inflight */
    uint64_t last_ticket; /* the last submission that uses it */
    uint32_t last_queue;  /* of that submission */
    uint64_t serial;      /* of memory: never given out again */
} hdi_used;
typedef struct hdi_command_buffer hdi_command_buffer;

/* What the back end does itself. An object that is ended is in no list any more. */
typedef struct hdi_inflight_functions {
    void (*end_memory)(hdi_backend_device *device, hdi_used *memory);
    void (*end_kernel)(hdi_backend_device *device, hdi_used *kernel);
    size_t command_buffer_bytes; /* of the back end's struct that begins with hdi_command_buffer */
    /* Encodes the commands. What it made on the way to a failure is left to `end_commands`. */
    hd_status (*encode)(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                        hd_error *error);
    void (*end_commands)(hdi_backend_device *device, hdi_command_buffer *buffer); /* the driver's objects in it */
} hdi_inflight_functions;

/* What is alive on a device, and what was freed while submissions used it. Such a back end's hdi_backend_device begins
 * with this. */
typedef struct hdi_inflight {
    const hdi_inflight_functions *functions;
    hdi_backend_device *device;
    const hdi_host     *host;
    const char         *backend;
    hdi_link  memories, freed_memories, kernels, freed_kernels, recordings, freed_commands;
    hdi_mutex kernels_lock;    /* guards `kernels`, which several threads load; and what else a back end says */
    uint64_t  submitted, done; /* tickets: the last one given out; all up to `done` are done */
    uint64_t  serial;          /* of the latest memory */
} hdi_inflight;

bool hdi_inflight_init(hdi_inflight *inflight, const hdi_inflight_functions *functions, hdi_backend_device *device,
                       const hdi_host *host, const char *backend); /* false: no memory */
/* Ends everything: recordings, then kernels, then memories. */
void hdi_inflight_end(hdi_inflight *inflight);
/* Notes that all up to `ticket` is done, and ends what was freed and is no longer used. */
void hdi_inflight_done(hdi_inflight *inflight, uint64_t ticket);

/* How making memory, or a kernel, ends: it is the device's from then on, or, after a failure, ended. Returns `status`.
 * Kernels are made by any thread. */
hd_status hdi_inflight_take_memory(hdi_inflight *inflight, hd_status status, hdi_memory *memory,
                                   hdi_memory **out_memory);
hd_status hdi_inflight_take_kernel(hdi_inflight *inflight, hd_status status, hdi_loaded_kernel *kernel,
                                   hdi_loaded_kernel **out_kernel);
/* `free` and `kernel_free` of the seam: the end comes as soon as no submission uses them. */
void hdi_inflight_free_memory(hdi_backend_device *device, hdi_memory *memory);
void hdi_inflight_free_kernel(hdi_backend_device *device, hdi_loaded_kernel *kernel);

/* Notes the ticket on all that a submission uses. */
void hdi_used_note(const hdi_submission *submission, uint64_t ticket);
/* The last submissions of other queues that are not done and that this one has to follow, by queue; 0: none. It is
 * enough to look at the last use of each memory: that one followed all before it. */
void hdi_used_after(const hdi_submission *submission, uint64_t done, uint64_t out_after[HDI_QUEUE_COUNT]);
/* From the list that it is in to another one. */
void hdi_used_move(hdi_used *object, hdi_link *list);
/* Takes those out of the list that only submissions up to `done` used, and ends them; HDI_ALL_DONE: all of them. */
#define HDI_ALL_DONE UINT64_MAX
void hdi_used_collect(hdi_backend_device *device, hdi_link *list, uint64_t done,
                      void (*end)(hdi_backend_device *device, hdi_used *object));

typedef hd_status (*hdi_poll)(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
/* Looks at a ticket of work that began at `begun_ns` until it is done; TIMEOUT after `timeout_ns`. */
hd_status hdi_wait_by_looks(hdi_backend_device *device, const hdi_found *found, hdi_poll poll, uint64_t ticket,
                            uint64_t begun_ns, uint64_t timeout_ns, hd_error *error);
/* How much longer work that has gone on for `spent_ns` is worth watching without rest: a thread that sleeps wakes tens
 * of microseconds late. 0 for a device that computes on the processors which the watching would take. */
uint64_t hdi_watched_ns(const hdi_found *found, uint64_t spent_ns);
/* Rests between two looks at work that has gone on for `spent_ns`, at most `left_ns`. While work is young the thread
 * only gives way to others; later it sleeps, so that longer work is found done at most a 64th of its time too late. */
void hdi_nap(const hdi_found *found, uint64_t spent_ns, uint64_t left_ns);
#endif
