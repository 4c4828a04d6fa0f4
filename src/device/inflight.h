/* inflight.h: what back ends with tickets share: objects that submissions under way may use, and waiting by looks at a ticket. */
#ifndef HDI_INFLIGHT_H
#define HDI_INFLIGHT_H

#include "device/backend.h"

/* Such a back end's hdi_memory and hdi_loaded_kernel begin with this, and so do the takes of takes.h. */
typedef struct hdi_used {
    hdi_link link;        /* among the living or the dead */
    uint64_t last_ticket; /* the last submission that uses it */
    uint32_t last_queue;  /* of that submission */
    uint64_t serial;      /* of memory: never given out again */
} hdi_used;

/* Notes the ticket on all that a submission uses. */
void hdi_used_note(const hdi_submission *submission, uint64_t ticket);
/* The last submissions of other queues that are not done and that this one has to follow, by queue; 0: none. It is enough to
 * look at the last use of each memory: that one followed all before it. */
void hdi_used_after(const hdi_submission *submission, uint64_t done, uint64_t out_after[HDI_QUEUE_COUNT]);
/* From among the living to the dead. */
void hdi_used_free_later(hdi_used *object, hdi_link *dead);
typedef void (*hdi_used_end)(hdi_backend_device *device, hdi_used *object); /* takes it out of its list */
/* Ends the dead that only submissions up to `done` used; HDI_ALL_DONE: all of them. */
#define HDI_ALL_DONE UINT64_MAX
void hdi_used_collect(hdi_backend_device *device, hdi_link *dead, uint64_t done, hdi_used_end end);

typedef hd_status (*hdi_poll)(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
/* Looks at a ticket of work that began at `begun_ns` until it is done; TIMEOUT after `timeout_ns`. */
hd_status hdi_wait_by_looks(hdi_backend_device *device, const hdi_found *found, hdi_poll poll, uint64_t ticket, uint64_t begun_ns,
                            uint64_t timeout_ns, hd_error *error);
/* How much longer work that has gone on for `spent_ns` is worth watching without rest: a thread that sleeps wakes tens of
 * microseconds late. 0 for a device that computes on the processors which the watching would take. */
uint64_t hdi_watched_ns(const hdi_found *found, uint64_t spent_ns);
/* Rests between two looks at work that has gone on for `spent_ns`, at most `left_ns`: what is watched gives way to other
 * threads only; longer work is found done at most a 64th too late. */
void hdi_nap(const hdi_found *found, uint64_t spent_ns, uint64_t left_ns);
#endif
