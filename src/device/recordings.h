/* recordings.h: commands that were encoded once, to be handed over again and again. Encoded commands hold for certain
 * slots only, so the recording of a plan keeps a few command buffers: a plan that changes between some sets of buffers
 * replays each of them. The one that was not used for the longest time gives way, and ends when no submission uses it
 * any more. */
#ifndef HDI_RECORDINGS_H
#define HDI_RECORDINGS_H

#include "device/inflight.h"

/* What a slot was when the commands were encoded. */
typedef struct hdi_slot_key {
    uint64_t serial, offset, bytes;
} hdi_slot_key;
/* Encoded commands. A back end's own struct begins with this. */
struct hdi_command_buffer {
    hdi_used      used;
    uint32_t      queue; /* that they were encoded for */
    bool          timestamps; /* they note times */
    hdi_slot_key *keys;
    uint32_t      key_count, key_capacity;
};
/* Those of one plan. */
struct hdi_recording {
    hdi_link link;
    hdi_link buffers; /* the latest used at the end */
    uint32_t buffer_count;
};

/* The command buffer for the submission's slots and queue, from its recording or encoded now; `*out_new` tells. */
hd_status hdi_recording_get(hdi_inflight *inflight, const hdi_submission *submission, hdi_command_buffer **out_buffer,
                            bool *out_new, hd_error *error);
/* Notes on all that it uses that a submission was handed over in one piece, and on it that its commands were `encoded`
 * for that; `buffer` NULL: they are not kept. Returns its ticket. */
uint64_t hdi_recording_note(hdi_inflight *inflight, hdi_submission *submission, hdi_command_buffer *buffer,
                            bool encoded);
/* `forget` of the seam. */
void hdi_recording_forget(hdi_backend_device *device, hdi_recording *recording);
void hdi_recordings_collect(hdi_inflight *inflight); /* ends command buffers that nobody uses any more */
void hdi_recordings_end(hdi_inflight *inflight);     /* all of them, with their recordings */
#endif
