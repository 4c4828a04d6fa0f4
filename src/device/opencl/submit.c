/* submit.c: commands become calls on the in-order queue, each time anew where record.c has no recording of them; an
 * event at the end tells when the ticket is done. */
#include "device/opencl/cl.h"
#include "device/translate.h"
#include <stdio.h>

/* ---- ranges ---- */

hdcl_range hdcl_range_of(const hdi_submission *submission, hdi_range at) {
    const hdi_slot *slot = &submission->slots[at.slot];
    return (hdcl_range){ slot->memory, (size_t)(slot->offset + at.offset), (size_t)at.bytes };
}

/* ---- the host's copies ----
 * Where host and device do not share memory, what the host sees is a copy. It goes to the buffer before the first
 * command and comes back behind the last one: a driver may take the host's bytes as soon as it is asked to, so that
 * carrying them between two commands could put old ones over what the first of them writes. */

typedef enum direction { TO_DEVICE, TO_HOST } direction;

/* Is it carried already, in this pass? */
static bool was_carried(const hdi_backend_device *device, hdi_memory *memory, const hdcl_range *r) {
    const hdcl_carried *last = &memory->carried;
    if (last->pass == device->passes && last->offset <= r->offset && r->offset + r->bytes <= last->offset + last->bytes)
        return true;
    memory->carried = (hdcl_carried){ device->passes, r->offset, r->bytes };
    return false;
}

static bool carry(hdi_backend_device *device, const hdi_submission *submission, hdi_range at, direction way,
                  uint64_t ticket) {
    const hdcl_range r = hdcl_range_of(submission, at);
    hdi_memory *memory = r.memory;
    if (!memory->host || memory->shared) return true;
    if (way == TO_DEVICE && memory->written_ticket > device->inflight.done)
        return true; /* work under way makes it: the copy is the older one */
    if (way == TO_HOST) memory->written_ticket = ticket;
    if (was_carried(device, memory, &r)) return true;
    char *host = (char *)memory->host + r.offset;
    if (way == TO_DEVICE)
        return HDCL_CALL(device, EnqueueWriteBuffer, device->queue, memory->buffer, CL_FALSE, r.offset, r.bytes, host,
                         0, NULL, NULL);
    return HDCL_CALL(device, EnqueueReadBuffer, device->queue, memory->buffer, CL_FALSE, r.offset, r.bytes, host, 0,
                     NULL, NULL);
}

/* Carries all that the commands read (what they write may be written in part), or all that they wrote. */
static bool carry_all(hdi_backend_device *device, const hdi_submission *submission, direction way, uint64_t ticket) {
    const hdi_cmds *cmds = submission->cmds;
    bool fine = true;
    device->passes++;
    for (uint32_t i = 0; i < cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &cmds->cmds[i];
        if (cmd->kind == HDI_CMD_COPY)
            fine = carry(device, submission, way == TO_DEVICE ? cmd->as.copy.from : cmd->as.copy.to, way, ticket);
        if (cmd->kind == HDI_CMD_FILL && way == TO_HOST) fine = carry(device, submission, cmd->as.fill.to, way, ticket);
        if (cmd->kind != HDI_CMD_DISPATCH) continue;
        const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
        for (uint32_t k = 0; k < cmd->as.dispatch.binding_count && fine; k++)
            if (way == TO_DEVICE || bindings[k].access & HDI_WRITE)
                fine = carry(device, submission, bindings[k].range, way, ticket);
    }
    return fine;
}

/* ---- commands ---- */

static bool copy(hdi_backend_device *device, const hdcl_range *from, const hdcl_range *to) {
    return HDCL_CALL(device, EnqueueCopyBuffer, device->queue, from->memory->buffer, to->memory->buffer, from->offset,
                     to->offset, to->bytes, 0, NULL, NULL);
}

static bool fill(hdi_backend_device *device, const hdcl_range *to, uint32_t value) {
    return HDCL_CALL(device, EnqueueFillBuffer, device->queue, to->memory->buffer, &value, sizeof value, to->offset,
                     to->bytes, 0, NULL, NULL);
}

bool hdcl_set_arguments(hdi_backend_device *device, const hdi_submission *submission, const hdi_cmd *cmd,
                        const hdi_loaded_kernel *loaded, cl_kernel kernel) {
    const hdi_spirv_printed *printed = &loaded->printed;
    const hdi_binding *bindings = &submission->cmds->bindings[cmd->as.dispatch.binding_first];
    uint64_t offsets[HDI_SPIRV_MAX_BINDINGS];
    uint32_t words[HDI_MOST_LAUNCH_WORDS];
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        const hdcl_range r = hdcl_range_of(submission, bindings[printed->buffers[i]].range);
        offsets[i] = r.offset;
        if (!HDCL_CALL(device, SetKernelArg, kernel, i, sizeof(cl_mem), &r.memory->buffer)) return false;
    }
    const uint32_t count = hdi_launch_words(submission->cmds, cmd, printed, offsets, words);
    return HDCL_CALL(device, SetKernelArg, kernel, printed->buffer_count, count * sizeof *words, words);
}

void hdcl_grid(const hdi_cmd *cmd, const hdi_loaded_kernel *loaded, size_t *out_global, size_t *out_local) {
    for (int i = 0; i < 3; i++) {
        out_local[i] = loaded->printed.info.workgroup[i];
        out_global[i] = out_local[i] * cmd->as.dispatch.groups[i];
    }
}

static bool dispatch(hdi_backend_device *device, const hdi_submission *submission, const hdi_cmd *cmd) {
    const hdi_loaded_kernel *loaded = submission->kernels[cmd->as.dispatch.kernel];
    size_t global[3], local[3];
    hdcl_grid(cmd, loaded, global, local);
    return hdcl_set_arguments(device, submission, cmd, loaded, loaded->kernel) &&
           HDCL_CALL(device, EnqueueNDRangeKernel, device->queue, loaded->kernel, 3, NULL, global, local, 0, NULL,
                     NULL);
}

/* ---- jobs ---- */

static void end_job(hdi_backend_device *device, hdcl_job *job) {
    if (job->done) device->cl.ReleaseEvent(job->done);
    for (uint32_t i = 0; i < job->mark_count; i++)
        if (job->marks[i]) device->cl.ReleaseEvent(job->marks[i]);
    job->done = NULL;
    job->mark_count = 0;
    job->ticket = 0;
}

void hdcl_end_jobs(hdi_backend_device *device) {
    for (int i = 0; i < HDCL_JOBS; i++) {
        end_job(device, &device->jobs[i]);
        hdi_free(device->host->allocator, device->jobs[i].marks,
                 device->jobs[i].mark_capacity * sizeof *device->jobs[i].marks);
    }
}

/* The place for a new ticket's job; the one that was there is waited for. */
static hd_status next_job(hdi_backend_device *device, uint64_t ticket, const hdi_submission *submission,
                          hdcl_job **out_job, hd_error *error) {
    hdcl_job *job = &device->jobs[ticket % HDCL_JOBS];
    if (job->ticket > device->inflight.done) {
        hd_status status = hdcl_wait(device, job->ticket, device->host->wait_ns, error);
        if (status) return status;
    }
    end_job(device, job);
    const size_t marks = submission->timestamps ? submission->cmds->cmd_count + 1u : 0;
    if (!hdi_grow(device->host->allocator, &job->marks, &job->mark_capacity, marks, sizeof *job->marks))
        return hdcl_no_memory(error, "a submission");
    *out_job = job;
    return HD_OK;
}

static bool mark(hdi_backend_device *device, hdcl_job *job) {
    return HDCL_CALL(device, EnqueueMarkerWithWaitList, device->queue, 0, NULL, &job->marks[job->mark_count]) &&
           ++job->mark_count;
}

static bool enqueue(hdi_backend_device *device, const hdi_submission *submission, hdcl_job *job) {
    bool fine = carry_all(device, submission, TO_DEVICE, job->ticket), marked = false;
    for (uint32_t i = 0; i < submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &submission->cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: fine = dispatch(device, submission, cmd); break;
        case HDI_CMD_COPY: {
            const hdcl_range from = hdcl_range_of(submission, cmd->as.copy.from),
                             to = hdcl_range_of(submission, cmd->as.copy.to);
            fine = copy(device, &from, &to);
            break;
        }
        case HDI_CMD_FILL: {
            const hdcl_range to = hdcl_range_of(submission, cmd->as.fill.to);
            fine = fill(device, &to, cmd->as.fill.value);
            break;
        }
        case HDI_CMD_BARRIER: break;
        case HDI_CMD_MARK:
            marked |= submission->timestamps;
            if (submission->timestamps) fine = mark(device, job);
            break;
        }
    }
    return fine && (!marked || mark(device, job)) && carry_all(device, submission, TO_HOST, job->ticket) &&
           HDCL_CALL(device, EnqueueMarkerWithWaitList, device->queue, 0, NULL, &job->done) &&
           HDCL_CALL(device, Flush, device->queue);
}

/* A submission failed on the way. What was handed over before may still use the caller's memory: it is waited for;
 * where even that fails the device is given up. */
static void settle(hdi_backend_device *device, hdcl_job *job) {
    hd_error ignored = { 0 };
    bool marked = job->done || HDCL_CALL(device, EnqueueMarkerWithWaitList, device->queue, 0, NULL, &job->done);
    if (!marked || !HDCL_CALL(device, Flush, device->queue) ||
        hdcl_wait(device, job->ticket, device->host->wait_ns, &ignored)) {
        device->abandoned = true;
        hdi_loss_note(&device->loss, hdcl_last.result, "in %s, when a submission that had failed was waited for",
                      hdcl_function_get(hdcl_last.function)->name);
    }
    device->inflight.done = job->ticket;
    end_job(device, job);
}

static bool replay(hdi_backend_device *device, const hdcl_command_buffer *buffer, hdcl_job *job) {
    return HDCL_CALL(device, EnqueueCommandBufferKHR, 0, NULL, buffer->commands, 0, NULL, &job->done) &&
           HDCL_CALL(device, Flush, device->queue);
}

hd_status hdcl_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    const uint64_t ticket = device->inflight.submitted + 1;
    hdcl_job *job = NULL;
    if (hdi_loss_known(&device->loss)) return hdcl_lost(device, error);
    hd_status status = next_job(device, ticket, submission, &job, error);
    if (status) return status;
    hdi_used_note(submission, ticket);
    job->ticket = device->inflight.submitted = *out_ticket = ticket;
    job->begun_ns = hdi_now_ns();
    bool recorded = false;
    hdi_command_buffer *buffer = NULL;
    if (hdcl_can_record(device, submission)) hdi_recording_get(&device->inflight, submission, &buffer, &recorded, NULL);
    if (buffer) buffer->used.last_ticket = ticket;
    if (!(buffer ? replay(device, HDI_OBJECT(buffer, hdcl_command_buffer, base), job)
                 : enqueue(device, submission, job))) {
        status = hdcl_fail(device, error, "a submission of %u commands", submission->cmds->cmd_count);
        settle(device, job);
        return status;
    }
    submission->recorded_out = buffer && !recorded ? 0 : submission->cmds->cmd_count;
    submission->pieces_out = 1;
    return HD_OK;
}

/* ---- waiting ---- */

hd_status hdcl_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    const hdcl_job *job = &device->jobs[ticket % HDCL_JOBS];
    *out_done = ticket <= device->inflight.done;
    if (*out_done) return HD_OK;
    if (hdi_loss_known(&device->loss)) return hdcl_lost(device, error);
    cl_int state = CL_QUEUED;
    if (!HDCL_CALL(device, GetEventInfo, job->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL))
        return hdcl_fail(device, error, "submission %llu", (unsigned long long)ticket);
    if (state < 0) {
        hdi_loss_note(&device->loss, state, "in submission %llu, which failed on the device (%d)",
                      (unsigned long long)ticket, (int)state);
        return hdcl_lost(device, error);
    }
    *out_done = state == CL_COMPLETE;
    if (*out_done) hdi_inflight_done(&device->inflight, ticket);
    return HD_OK;
}

hd_status hdcl_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    return hdi_wait_by_looks(device, &device->found, hdcl_poll, ticket, device->jobs[ticket % HDCL_JOBS].begun_ns,
                             timeout_ns, error);
}

bool hdcl_rest(hdi_backend_device *device) {
    const uint64_t begun = hdi_now_ns();
    const hdcl_job *last = &device->jobs[device->inflight.submitted % HDCL_JOBS];
    if (device->inflight.submitted <= device->inflight.done) return true;
    for (;;) { /* on a lost device too: what fails has ended, and the queue is in order */
        cl_int state = CL_QUEUED;
        if (HDCL_CALL(device, GetEventInfo, last->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                      NULL) &&
            state <= CL_COMPLETE)
            return true;
        const uint64_t spent = hdi_now_ns() - begun;
        if (spent >= device->host->wait_ns) return false;
        hdi_nap(&device->found, spent, device->host->wait_ns - spent);
    }
}

hd_status hdcl_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error) {
    const hdcl_job *job = &device->jobs[ticket % HDCL_JOBS];
    if (job->ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, "opencl", 0, "the times of submission %llu are gone",
                               (unsigned long long)ticket);
    cl_ulong before = 0, now = 0;
    *out_count = 0;
    for (uint32_t i = 0; i < job->mark_count && *out_count < room; i++) {
        if (!HDCL_CALL(device, GetEventProfilingInfo, job->marks[i], CL_PROFILING_COMMAND_END, sizeof now, &now, NULL))
            return hdcl_fail(device, error, "the times of submission %llu", (unsigned long long)ticket);
        if (i > 0) out_ns[(*out_count)++] = now > before ? now - before : 0;
        before = now;
    }
    return HD_OK;
}
