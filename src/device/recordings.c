/* recordings.c: which command buffer fits a submission, and when one ends. */
#include "device/recordings.h"

enum { BUFFERS_KEPT = 4 };

/* ---- ending ---- */

static void end_buffer(hdi_inflight *inflight, hdi_command_buffer *buffer) {
    inflight->functions->end_commands(inflight->device, buffer);
    hdi_free(inflight->host->allocator, buffer->keys, buffer->key_capacity * sizeof *buffer->keys);
    hdi_free(inflight->host->allocator, buffer, inflight->functions->command_buffer_bytes);
}

static void collect(hdi_inflight *inflight, uint64_t done) {
    for (hdi_link *at = inflight->freed_commands.next, *next; at != &inflight->freed_commands; at = next) {
        next = at->next;
        hdi_command_buffer *buffer = HDI_OBJECT(at, hdi_command_buffer, used.link);
        if (buffer->used.last_ticket > done) continue;
        hdi_list_remove(at);
        end_buffer(inflight, buffer);
    }
}

void hdi_recordings_collect(hdi_inflight *inflight) { collect(inflight, inflight->done); }

static void forget(hdi_inflight *inflight, hdi_recording *recording) {
    while (!hdi_list_empty(&recording->buffers))
        hdi_used_move(HDI_OBJECT(recording->buffers.next, hdi_used, link), &inflight->freed_commands);
    hdi_list_remove(&recording->link);
    hdi_free(inflight->host->allocator, recording, sizeof *recording);
}

void hdi_recording_forget(hdi_backend_device *device, hdi_recording *recording) {
    hdi_inflight *inflight = (hdi_inflight *)(void *)device;
    if (!recording) return;
    forget(inflight, recording);
    hdi_recordings_collect(inflight);
}

void hdi_recordings_end(hdi_inflight *inflight) {
    hdi_link *recordings = &inflight->recordings;
    while (!hdi_list_empty(recordings)) forget(inflight, HDI_OBJECT(recordings->next, hdi_recording, link));
    collect(inflight, HDI_ALL_DONE);
}

/* ---- finding and encoding ---- */

static hdi_slot_key key_of(const hdi_slot *slot) {
    const hdi_used *memory = (const hdi_used *)(const void *)slot->memory;
    return (hdi_slot_key){ memory ? memory->serial : 0, slot->offset, slot->bytes };
}

static bool fits(const hdi_command_buffer *buffer, const hdi_submission *submission) {
    if (buffer->queue != (uint32_t)submission->queue || buffer->timestamps != submission->timestamps) return false;
    if (buffer->key_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < buffer->key_count; i++) {
        const hdi_slot_key key = key_of(&submission->slots[i]);
        if (memcmp(&key, &buffer->keys[i], sizeof key) != 0) return false;
    }
    return true;
}

static hd_status no_memory(const hdi_inflight *inflight, hd_error *error) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, inflight->backend, 0, "no memory for a recording");
}

static hd_status encode(hdi_inflight *inflight, const hdi_submission *submission, hdi_command_buffer **out_buffer,
                        hd_error *error) {
    const hd_allocator *allocator = inflight->host->allocator;
    const uint32_t count = submission->cmds->slot_count;
    hdi_command_buffer *buffer = hdi_alloc(allocator, inflight->functions->command_buffer_bytes);
    if (!buffer) return no_memory(inflight, error);
    const bool room = hdi_grow(allocator, &buffer->keys, &buffer->key_capacity, count, sizeof *buffer->keys);
    for (uint32_t i = 0; i < count && room; i++) buffer->keys[i] = key_of(&submission->slots[i]);
    buffer->key_count = count;
    buffer->queue = submission->queue;
    buffer->timestamps = submission->timestamps;
    const hd_status status = room ? inflight->functions->encode(inflight->device, submission, buffer, error)
                                  : no_memory(inflight, error);
    if (status) end_buffer(inflight, buffer);
    else *out_buffer = buffer;
    return status;
}

static hdi_recording *recording_of(hdi_inflight *inflight, const hdi_submission *submission) {
    if (*submission->recording) return *submission->recording;
    hdi_recording *recording = hdi_alloc(inflight->host->allocator, sizeof *recording);
    if (!recording) return NULL;
    hdi_list_init(&recording->buffers);
    hdi_list_add(&inflight->recordings, &recording->link);
    return *submission->recording = recording;
}

hd_status hdi_recording_get(hdi_inflight *inflight, const hdi_submission *submission, hdi_command_buffer **out_buffer,
                            bool *out_new, hd_error *error) {
    hdi_recording *recording = recording_of(inflight, submission);
    *out_new = false;
    if (!recording) return no_memory(inflight, error);
    for (hdi_link *at = recording->buffers.previous; at != &recording->buffers; at = at->previous) {
        hdi_command_buffer *buffer = HDI_OBJECT(at, hdi_command_buffer, used.link);
        if (!fits(buffer, submission)) continue;
        hdi_used_move(&buffer->used, &recording->buffers);
        *out_buffer = buffer;
        return HD_OK;
    }
    const hd_status status = encode(inflight, submission, out_buffer, error);
    if (status) return status;
    *out_new = true;
    hdi_list_add(&recording->buffers, &(*out_buffer)->used.link);
    if (++recording->buffer_count <= BUFFERS_KEPT) return HD_OK;
    recording->buffer_count--;
    hdi_used_move(HDI_OBJECT(recording->buffers.next, hdi_used, link), &inflight->freed_commands);
    return HD_OK;
}

uint64_t hdi_recording_note(hdi_inflight *inflight, hdi_submission *submission, hdi_command_buffer *buffer,
                            bool encoded) {
    const uint64_t ticket = ++inflight->submitted;
    if (buffer) buffer->used.last_ticket = ticket;
    hdi_used_note(submission, ticket);
    submission->recorded_out = encoded ? submission->cmds->cmd_count : 0;
    submission->pieces_out = 1;
    return ticket;
}
