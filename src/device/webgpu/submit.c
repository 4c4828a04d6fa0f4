/* submit.c: handing work over, tickets, waiting. A callback tells when a submission is done; it is called from within
 * looks at the device. Every wait has a deadline. */
#include "device/webgpu/wg.h"

/* ---- what is done ---- */

static void on_done(uint32_t status, WGPUStringView message, void *user, void *unused) {
    hdwg_job *job = user;
    (void)message;
    (void)unused;
    atomic_store(&job->state, status == WGPU_SUCCESS ? HDWG_JOB_DONE : HDWG_JOB_FAILED);
}

/* Asks for the callback of a submission that was handed over, and for its reader to be mapped. */
static bool watch(hdi_backend_device *device, hdwg_job *job) {
    const WGPUBufferMapCallbackInfo mapped = { .mode = WGPU_CALLBACK_SPONTANEOUS, .callback = on_done, .user = job };
    const WGPUQueueWorkDoneCallbackInfo done = { .mode = WGPU_CALLBACK_SPONTANEOUS, .callback = on_done, .user = job };
    job->watched = job->watched || (job->read_bytes ? HDWG_CALL(device, BufferMapAsync, job->reader, WGPU_MAP_READ, 0,
                                                                (size_t)job->read_bytes, mapped)
                                                    : HDWG_CALL(device, QueueOnSubmittedWorkDone, device->queue, done));
    return job->watched;
}

/* Goes on over all tickets that are done, in order. */
static bool advance(hdi_backend_device *device) {
    while (device->inflight.done < device->inflight.submitted) {
        hdwg_job *job = &device->jobs[(device->inflight.done + 1) % HDWG_JOBS];
        if (!watch(device, job)) return false;
        const int state = atomic_load(&job->state);
        if (state == HDWG_JOB_RUNS) break;
        if (state == HDWG_JOB_FAILED) {
            hdi_loss_note(&device->loss, state, "in submission %llu, which the driver gave up",
                          (unsigned long long)job->ticket);
            job->read_bytes = 0;
        }
        if (!hdwg_carry_down(device, job)) return false;
        device->inflight.done++;
        hdwg_script_end(device, &job->script);
    }
    hdi_inflight_done(&device->inflight, device->inflight.done);
    return true;
}

hd_status hdwg_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    *out_done = ticket <= device->inflight.done;
    if (*out_done) return HD_OK;
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    if (ticket > device->inflight.submitted)
        return hdi_fail_native(error, HD_STATUS_INTERNAL, "webgpu", 0, "ticket %llu was never given out",
                               (unsigned long long)ticket);
    if (!HDWG_CALL(device, DevicePoll, device->device, 0, NULL) || !advance(device) || hdi_loss_known(&device->loss))
        return hdwg_fail(device, error, "submission %llu", (unsigned long long)ticket);
    *out_done = ticket <= device->inflight.done;
    return HD_OK;
}

hd_status hdwg_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    return hdi_wait_by_looks(device, &device->found, hdwg_poll, ticket, device->jobs[ticket % HDWG_JOBS].begun_ns,
                             timeout_ns, error);
}

bool hdwg_rest(hdi_backend_device *device) {
    const uint64_t begun = hdi_now_ns();
    while (device->device &&
           device->inflight.done <
               device->inflight.submitted) { /* on a lost device too: callbacks come there at once, or are refused */
        device->wg.DevicePoll(device->device, 0, NULL);
        if (!advance(device) && hdi_loss_known(&device->loss)) return true;
        const uint64_t spent = hdi_now_ns() - begun;
        if (device->inflight.done < device->inflight.submitted && spent >= device->host->wait_ns) return false;
        if (device->inflight.done < device->inflight.submitted)
            hdi_nap(&device->found, spent, device->host->wait_ns - spent);
    }
    return true;
}

/* ---- jobs ---- */

static void end_times(hdi_backend_device *device, hdwg_job *job) {
    HDWG_END(device, QuerySet, job->queries);
    HDWG_END(device, Buffer, job->resolved);
    hdi_free(device->host->allocator, job->ticks, job->tick_room * sizeof *job->ticks);
    job->ticks = NULL;
    job->tick_room = 0;
}

void hdwg_jobs_end(hdi_backend_device *device) {
    for (int i = 0; i < HDWG_JOBS; i++) {
        hdwg_job *job = &device->jobs[i];
        end_times(device, job);
        hdwg_script_end(device, &job->script);
        HDWG_END(device, Buffer, job->reader);
        hdi_free(device->host->allocator, job->carries, job->carry_capacity * sizeof *job->carries);
    }
}

static hd_status make_times(hdi_backend_device *device, hdwg_job *job, uint32_t count, hd_error *error) {
    const WGPUQuerySetDescriptor desc = { .type = WGPU_QUERY_TIMESTAMP, .count = count };
    if (count <= job->tick_room) return HD_OK;
    end_times(device, job);
    job->ticks = hdi_alloc(device->host->allocator, count * sizeof *job->ticks);
    if (!job->ticks) return hdwg_no_memory(error, "a submission's times");
    job->tick_room = count;
    const bool fine = HDWG_MAKE(device, &job->queries, DeviceCreateQuerySet, device->device, &desc) &&
                      hdwg_buffer_new(device, count * sizeof *job->ticks,
                                      WGPU_USAGE_QUERY_RESOLVE | WGPU_USAGE_COPY_FROM, &job->resolved);
    if (fine) return HD_OK;
    hd_status status = hdwg_fail(device, error, "a submission's times");
    end_times(device, job);
    return status;
}

/* The place for the next ticket's job; the one that was there is waited for. */
static hd_status next_job(hdi_backend_device *device, const hdi_submission *submission, hdwg_job **out_job,
                          hd_error *error) {
    hdwg_job *job = &device->jobs[(device->inflight.submitted + 1) % HDWG_JOBS];
    hd_status status =
        job->ticket > device->inflight.done ? hdwg_wait(device, job->ticket, device->host->wait_ns, error) : HD_OK;
    if (status) return status;
    job->ticket = 0;
    job->mark_count = 0;
    *out_job = job;
    return submission->timestamps
               ? make_times(device, job, HDI_MIN(submission->cmds->cmd_count + 1, (uint32_t)HDWG_MOST_MARKS), error)
               : HD_OK;
}

/* ---- handing over ---- */

static hd_status hand_over(hdi_backend_device *device, const hdi_submission *submission, const hdwg_script *script,
                           hdwg_job *job, hd_error *error) {
    WGPUCommandBuffer commands = NULL;
    if (!hdwg_carry_plan(device, submission, job))
        return hdwg_last.row == HDWG_ROW_FINE ? hdwg_no_memory(error, "a submission")
                                              : hdwg_fail(device, error, "%u commands", submission->cmds->cmd_count);
    const bool fine = hdwg_carry_up(device, submission) && hdwg_encode(device, submission, script, job, &commands) &&
                      HDWG_CALL(device, QueueSubmit, device->queue, 1, &commands);
    hd_status status = fine ? HD_OK : hdwg_fail(device, error, "handing %u commands over", submission->cmds->cmd_count);
    HDWG_END(device, CommandBuffer, commands);
    return status;
}

hd_status hdwg_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    hdi_command_buffer *buffer = NULL;
    hdwg_job *job = NULL;
    bool recorded;
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    hd_status status = next_job(device, submission, &job, error);
    if (status) return status;
    if (submission->recording && !submission->timestamps)
        status = hdi_recording_get(&device->inflight, submission, &buffer, &recorded, error);
    else status = hdwg_script_make(device, submission, &job->script, error);
    const hdwg_script *script = buffer ? &HDI_OBJECT(buffer, hdwg_command_buffer, base)->script : &job->script;
    if (!status) status = hand_over(device, submission, script, job, error);
    if (status) {
        hdwg_script_end(device, &job->script);
        return status;
    }
    job->begun_ns = hdi_now_ns();
    atomic_store(&job->state, HDWG_JOB_RUNS);
    job->watched = false;
    /* command buffers are for one submission */
    job->ticket = *out_ticket = hdi_recording_note(&device->inflight, submission, buffer, true);
    /* It is handed over: where it cannot be watched yet, it is when somebody looks at it. */
    return watch(device, job) || hdwg_last.row != HDWG_ROW_LOST
               ? HD_OK
               : hdwg_fail(device, error, "%u commands", submission->cmds->cmd_count);
}

hd_status hdwg_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error) {
    const hdwg_job *job = &device->jobs[ticket % HDWG_JOBS];
    *out_count = 0;
    if (job->ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, "webgpu", 0, "the times of submission %llu are gone",
                               (unsigned long long)ticket);
    const double period = (double)device->wg.QueueGetTimestampPeriod(device->queue);
    for (uint32_t i = 1; i < job->mark_count && *out_count < room; i++) {
        const uint64_t ticks = job->ticks[i] > job->ticks[i - 1] ? job->ticks[i] - job->ticks[i - 1] : 0;
        out_ns[(*out_count)++] = (uint64_t)((double)ticks * period);
    }
    return HD_OK;
}
