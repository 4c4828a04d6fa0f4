/* carry.c: between memory and its copy in the host's sight. What commands touch goes up before they run; what they
 * write comes back behind them, by way of a buffer of the job that is mapped when all is done; times come the same
 * way. */
#include "device/webgpu/wg.h"

typedef struct stretch {
    hdi_memory *memory;
    uint64_t    offset, bytes; /* whole words */
} stretch;

static stretch stretch_of(const hdi_submission *submission, const hdi_range *range) {
    const hdi_slot *slot = &submission->slots[range->slot];
    const uint64_t begin = (slot->offset + range->offset) / 4 * 4,
                   end = (slot->offset + range->offset + range->bytes + 3) / 4 * 4;
    return (stretch){ slot->memory, begin, end - begin };
}

/* The ranges of a command, one by one; `*out_written`: it writes there. */
static bool next_range(const hdi_submission *submission, const hdi_cmd *cmd, uint32_t n, const hdi_range **out_range,
                       bool *out_written) {
    const hdi_binding *binding;
    switch (cmd->kind) {
    case HDI_CMD_DISPATCH:
        if (n >= cmd->as.dispatch.binding_count) return false;
        binding = &submission->cmds->bindings[cmd->as.dispatch.binding_first + n];
        *out_range = &binding->range;
        *out_written = binding->access & HDI_WRITE;
        return true;
    case HDI_CMD_COPY:
        *out_range = n ? &cmd->as.copy.to : &cmd->as.copy.from;
        *out_written = n;
        return n < 2;
    case HDI_CMD_FILL:
        *out_range = &cmd->as.fill.to;
        *out_written = true;
        return n < 1;
    case HDI_CMD_BARRIER: case HDI_CMD_MARK: break;
    }
    return false;
}

/* Is anything of the submission in the host's sight? Mostly not. */
static bool is_seen(const hdi_submission *submission) {
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++)
        if (submission->slots[i].memory && submission->slots[i].memory->host) return true;
    return false;
}

bool hdwg_carry_up(hdi_backend_device *device, const hdi_submission *submission) {
    const hdi_range *range;
    bool written, fine = true;
    for (uint32_t i = 0; i < submission->cmds->cmd_count && fine && is_seen(submission); i++)
        for (uint32_t n = 0; fine && next_range(submission, &submission->cmds->cmds[i], n, &range, &written); n++) {
            const stretch s = stretch_of(submission, range);
            if (s.memory->host)
                fine = HDWG_CALL(device, QueueWriteBuffer, device->queue, s.memory->buffer, s.offset,
                                 s.memory->host + s.offset, (size_t)s.bytes);
        }
    return fine;
}

/* ---- coming back ---- */

static bool add_carry(hdi_backend_device *device, hdwg_job *job, stretch s) {
    for (uint32_t i = 0; i < job->carry_count; i++) /* the same again */
        if (job->carries[i].memory == s.memory && job->carries[i].offset == s.offset &&
            job->carries[i].bytes == s.bytes)
            return true;
    if (!hdi_grow(device->host->allocator, &job->carries, &job->carry_capacity, job->carry_count + 1,
                  sizeof *job->carries))
        return false;
    job->carries[job->carry_count++] = (hdwg_carry){ s.memory, s.offset, s.bytes, job->read_bytes };
    job->read_bytes += (s.bytes + 7) / 8 * 8;
    return true;
}

bool hdwg_carry_plan(hdi_backend_device *device, const hdi_submission *submission, hdwg_job *job) {
    const hdi_range *range;
    bool written, fine = true;
    job->carry_count = 0;
    job->read_bytes = submission->timestamps ? job->tick_room * sizeof *job->ticks : 0; /* times come first */
    for (uint32_t i = 0; i < submission->cmds->cmd_count && fine && is_seen(submission); i++)
        for (uint32_t n = 0; fine && next_range(submission, &submission->cmds->cmds[i], n, &range, &written); n++) {
            const stretch s = stretch_of(submission, range);
            if (written && s.memory->host) fine = add_carry(device, job, s);
        }
    if (!fine) {
        hdwg_last.row = HDWG_ROW_FINE; /* it was no call: the caller says what it was */
        return false;
    }
    if (job->read_bytes <= job->reader_bytes) return true;
    HDWG_END(device, Buffer, job->reader);
    job->reader_bytes = 0;
    if (!hdwg_buffer_new(device, job->read_bytes, WGPU_USAGE_MAP_READ | WGPU_USAGE_COPY_TO, &job->reader)) return false;
    job->reader_bytes = job->read_bytes;
    return true;
}

bool hdwg_carry_encode(hdi_backend_device *device, const hdwg_job *job, WGPUCommandEncoder encoder) {
    const uint64_t tick_bytes = job->mark_count * sizeof *job->ticks;
    bool fine = job->mark_count == 0 || (HDWG_CALL(device, CommandEncoderResolveQuerySet, encoder, job->queries, 0,
                                                   job->mark_count, job->resolved, 0) &&
                                         HDWG_CALL(device, CommandEncoderCopyBufferToBuffer, encoder, job->resolved, 0,
                                                   job->reader, 0, tick_bytes));
    for (uint32_t i = 0; i < job->carry_count && fine; i++) {
        const hdwg_carry *c = &job->carries[i];
        fine = HDWG_CALL(device, CommandEncoderCopyBufferToBuffer, encoder, c->memory->buffer, c->offset, job->reader,
                         c->at, c->bytes);
    }
    return fine;
}

bool hdwg_carry_down(hdi_backend_device *device, hdwg_job *job) {
    if (job->read_bytes == 0) return true;
    const char *bytes = NULL;
    const bool fine = HDWG_MAKE(device, &bytes, BufferGetConstMappedRange, job->reader, 0, (size_t)job->read_bytes);
    if (!fine) return false; /* it stays mapped, for another attempt */
    if (job->mark_count) memcpy(job->ticks, bytes, job->mark_count * sizeof *job->ticks);
    for (uint32_t i = 0; i < job->carry_count; i++) {
        const hdwg_carry *c = &job->carries[i];
        memcpy(c->memory->host + c->offset, bytes + c->at, (size_t)c->bytes);
    }
    device->wg.BufferUnmap(job->reader);
    job->read_bytes = 0;
    return true;
}
