/* submit.c: handing work over, tickets, waiting. A fence behind each submission tells when it is done. Every wait has a
 * deadline. */
#include "device/levelzero/ze.h"

/* ---- what is done ---- */

hd_status hdze_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    const hdze_job *job = &device->jobs[ticket % HDZE_JOBS];
    *out_done = ticket <= device->inflight.done;
    if (*out_done) return HD_OK;
    if (hdi_loss_known(&device->loss)) return hdze_lost(device, error);
    if (job->ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_INTERNAL, "levelzero", 0, "ticket %llu was never given out",
                               (unsigned long long)ticket);
    *out_done = HDZE_CALL(device, FenceQueryStatus, job->fence);
    if (*out_done) hdi_inflight_done(&device->inflight, ticket);
    else if (hdze_last.result != ZE_RESULT_NOT_READY)
        return hdze_fail(device, error, "submission %llu", (unsigned long long)ticket);
    return HD_OK;
}

hd_status hdze_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    return hdi_wait_by_looks(device, &device->found, hdze_poll, ticket, device->jobs[ticket % HDZE_JOBS].begun_ns,
                             timeout_ns, error);
}

bool hdze_rest(hdi_backend_device *device) {
    if (!device->queue) return true;
    /* What a device that is lost was doing has ended, or never will. */
    const ze_result_t result = device->ze.CommandQueueSynchronize(device->queue, device->host->wait_ns);
    return result != ZE_RESULT_NOT_READY;
}

/* ---- jobs ---- */

static void end_ticks(hdi_backend_device *device, hdze_job *job) {
    if (job->ticks && !device->abandoned) device->ze.MemFree(device->context, job->ticks);
    job->ticks = NULL;
    job->tick_room = 0;
}

void hdze_jobs_end(hdi_backend_device *device) {
    for (int i = 0; i < HDZE_JOBS; i++) {
        hdze_job *job = &device->jobs[i];
        end_ticks(device, job);
        HDZE_END(device, CommandListDestroy, job->list);
        HDZE_END(device, FenceDestroy, job->fence);
    }
}

static bool make_ticks(hdi_backend_device *device, hdze_job *job, uint32_t count) {
    const ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    void *ticks = NULL;
    if (count <= job->tick_room) return true;
    end_ticks(device, job);
    if (!HDZE_CALL(device, MemAllocHost, device->context, &desc, count * sizeof *job->ticks, sizeof *job->ticks,
                   &ticks))
        return false;
    job->ticks = ticks;
    job->tick_room = count;
    return true;
}

/* The place for the next ticket's job; the one that was there is waited for. */
static hd_status next_job(hdi_backend_device *device, const hdi_submission *submission, hdze_job **out_job,
                          hd_error *error) {
    const ze_fence_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_FENCE_DESC };
    hdze_job *job = &device->jobs[(device->inflight.submitted + 1) % HDZE_JOBS];
    hd_status status =
        job->ticket > device->inflight.done ? hdze_wait(device, job->ticket, device->host->wait_ns, error) : HD_OK;
    if (status) return status;
    job->ticket = 0;
    job->mark_count = 0;
    bool fine = job->fence ? HDZE_CALL(device, FenceReset, job->fence)
                           : HDZE_CALL(device, FenceCreate, device->queue, &desc, &job->fence);
    fine = fine && (!submission->timestamps || make_ticks(device, job, submission->cmds->cmd_count + 1));
    *out_job = job;
    return fine ? HD_OK : hdze_fail(device, error, "a submission");
}

/* ---- handing over ---- */

/* Commands that are handed over once, in the job's own list. */
static bool encode_once(hdi_backend_device *device, const hdi_submission *submission, hdze_job *job) {
    bool fine = job->list ? HDZE_CALL(device, CommandListReset, job->list) : hdze_list_new(device, &job->list);
    return fine &&
           hdze_encode(device, submission, job->list, submission->timestamps ? job->ticks : NULL, &job->mark_count);
}

hd_status hdze_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    hdi_command_buffer *buffer = NULL;
    hdze_job *job = NULL;
    bool encoded = true;
    if (hdi_loss_known(&device->loss)) return hdze_lost(device, error);
    hd_status status = next_job(device, submission, &job, error);
    if (!status && submission->recording && !submission->timestamps)
        status = hdi_recording_get(&device->inflight, submission, &buffer, &encoded, error);
    if (status) return status;
    if (!buffer && !encode_once(device, submission, job))
        return hdze_fail(device, error, "%u commands", submission->cmds->cmd_count);
    job->begun_ns = hdi_now_ns();
    if (!HDZE_CALL(device, CommandQueueExecuteCommandLists, device->queue, 1,
                   buffer ? &HDI_OBJECT(buffer, hdze_command_buffer, base)->list : &job->list, job->fence))
        return hdze_fail(device, error, "handing %u commands over", submission->cmds->cmd_count);
    job->ticket = *out_ticket = hdi_recording_note(&device->inflight, submission, buffer, encoded);
    return HD_OK;
}

hd_status hdze_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error) {
    const hdze_job *job = &device->jobs[ticket % HDZE_JOBS];
    *out_count = 0;
    if (job->ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, "levelzero", 0, "the times of submission %llu are gone",
                               (unsigned long long)ticket);
    for (uint32_t i = 1; i < job->mark_count && *out_count < room; i++) {
        const uint64_t ticks = (job->ticks[i] - job->ticks[i - 1]) & device->facts.tick_mask;
        out_ns[(*out_count)++] = (uint64_t)((double)ticks * 1e9 / (double)device->facts.ticks_a_second);
    }
    return HD_OK;
}
