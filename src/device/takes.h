/* takes.h: recordings of a back end that encodes commands for certain slots, into an object of the driver's: a take. A recording
 * keeps a few takes, so that plans which change between some sets of buffers replay each; the oldest gives way, and ends when no
 * submission uses it any more. */
#ifndef HDI_TAKES_H
#define HDI_TAKES_H

#include "device/inflight.h"

/* What a slot was when a take was made. */
typedef struct hdi_slot_key {
    uint64_t serial, offset, bytes;
} hdi_slot_key;
/* A back end's take begins with this. */
typedef struct hdi_take {
    hdi_used      used;
    hdi_slot_key *keys;
    uint32_t      key_count, key_capacity;
} hdi_take;
struct hdi_recording {
    hdi_link link;
    hdi_link takes; /* oldest first */
    uint32_t take_count;
};

/* All recordings of a device. */
typedef struct hdi_takes {
    hdi_backend_device *device;
    const hdi_host     *host;
    const char         *backend;
    hdi_link            recordings, dead;
    size_t              take_bytes; /* of the back end's take */
    /* Encodes the commands. What it made on the way to a failure is left to `end`, which ends the driver's object alone. */
    hd_status (*make)(hdi_backend_device *device, const hdi_submission *submission, hdi_take *take, hd_error *error);
    void      (*end)(hdi_backend_device *device, hdi_take *take);
} hdi_takes;

void hdi_takes_init(hdi_takes *takes); /* its lists; the rest is the back end's to fill in */
/* The take for the submission's slots, from its recording or made now; `*out_new` tells. */
hd_status hdi_takes_get(hdi_takes *takes, const hdi_submission *submission, hdi_take **out_take, bool *out_new, hd_error *error);
void hdi_takes_forget(hdi_takes *takes, hdi_recording *recording);
void hdi_takes_collect(hdi_takes *takes, uint64_t done); /* as hdi_used_collect */
void hdi_takes_end(hdi_takes *takes); /* all of them, with their recordings */
#endif
