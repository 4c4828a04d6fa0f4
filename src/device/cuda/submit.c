/* submit.c: handing work over, tickets, waiting. Tickets count the submissions of all streams; an event at each one's
 * end tells when it is done. Every wait has a deadline. */
#include "device/cuda/cu.h"
#include <stdio.h>

/* ---- what is done ---- */

/* The last submission up to `ticket` on a stream, where that is not known to be done; else 0. */
static uint64_t last_on(const hdi_backend_device *device, uint32_t queue, uint64_t ticket) {
    while (ticket > device->inflight.done && device->jobs[ticket % HDCU_JOBS].queue != queue) ticket--;
    return ticket > device->inflight.done ? ticket : 0;
}

/* A ticket is done when it and all before it are: on each stream the last one tells. */
hd_status hdcu_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    *out_done = ticket <= device->inflight.done;
    if (*out_done) return HD_OK;
    if (hdi_loss_known(&device->api.loss)) return hdcu_lost(&device->api, error);
    if (device->jobs[ticket % HDCU_JOBS].ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_INTERNAL, device->found.info.backend, 0,
                               "ticket %llu was never given out", (unsigned long long)ticket);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        const uint64_t last = last_on(device, i, ticket);
        if (!last || HDCU_CALL(&device->api, EventQuery, device->jobs[last % HDCU_JOBS].done)) continue;
        if (hdcu_last.result == HDCU_NOT_READY) return HD_OK;
        return hdcu_fail(&device->api, error, "submission %llu", (unsigned long long)last);
    }
    *out_done = true;
    hdi_inflight_done(&device->inflight, ticket);
    return HD_OK;
}

hd_status hdcu_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    return hdi_wait_by_looks(device, &device->found, hdcu_poll, ticket, device->jobs[ticket % HDCU_JOBS].begun_ns,
                             timeout_ns, error);
}

bool hdcu_drain(hdi_backend_device *device, uint64_t timeout_ns) {
    const uint64_t begun = hdi_now_ns();
    uint32_t empty = 0;
    for (;;) {
        const uint64_t spent = hdi_now_ns() - begun;
        while (empty < HDI_QUEUE_COUNT && device->api.StreamQuery(device->streams[empty]) != HDCU_NOT_READY)
            empty++; /* a device that failed runs nothing more */
        if (empty == HDI_QUEUE_COUNT) return true;
        if (spent >= timeout_ns) return false;
        hdi_nap(&device->found, spent, timeout_ns - spent);
    }
}

/* ---- jobs ---- */

static void end_marks(hdi_backend_device *device, hdcu_job *job) {
    for (uint32_t i = 0; i < job->mark_count; i++) HDCU_END(device, EventDestroy, job->marks[i]);
    job->mark_count = 0;
}

void hdcu_jobs_end(hdi_backend_device *device) {
    for (int i = 0; i < HDCU_JOBS; i++) {
        hdcu_job *job = &device->jobs[i];
        end_marks(device, job);
        HDCU_END(device, EventDestroy, job->done);
        for (int k = 0; k < 2; k++) HDCU_END(device, EventDestroy, job->ends[k]);
        hdi_free(device->host->allocator, job->marks, job->mark_capacity * sizeof *job->marks);
    }
}

/* The place for the next ticket's job; the one that was there is waited for. */
static hd_status next_job(hdi_backend_device *device, const hdi_submission *submission, hdcu_job **out_job,
                          hd_error *error) {
    hdcu_job *job = &device->jobs[(device->inflight.submitted + 1) % HDCU_JOBS];
    const size_t marks = submission->timestamps ? submission->cmds->cmd_count + 1u : 0;
    hd_status status =
        job->ticket > device->inflight.done ? hdcu_wait(device, job->ticket, device->host->wait_ns, error) : HD_OK;
    if (status) return status;
    end_marks(device, job);
    if (!job->done && !HDCU_CALL(&device->api, EventCreate, &job->done, HDCU_EVENT_NO_TIMING)) {
        job->done = NULL;
        return hdcu_fail(&device->api, error, "an event");
    }
    if (!hdi_grow(device->host->allocator, &job->marks, &job->mark_capacity, marks, sizeof *job->marks))
        return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0,
                               "no memory for a submission");
    *out_job = job;
    return HD_OK;
}

/* ---- handing over ---- */

/* What was handed over in part must come to rest, since no ticket stands for it; work that does not is given up. */
static void come_to_rest(hdi_backend_device *device) {
    hdcu_api *api = &device->api;
    if (hdi_loss_known(&api->loss)) return;
    device->abandoned = !hdcu_drain(device, device->host->wait_ns);
    if (device->abandoned) hdi_loss_note(&api->loss, 0, "since work that was handed over in part does not end");
    else hdi_inflight_done(&device->inflight, device->inflight.submitted);
}

/* The stream waits for what it has to follow on others. */
static bool follow(hdi_backend_device *device, const hdi_submission *submission) {
    hdcu_api *api = &device->api;
    const uint32_t queue = submission->queue;
    uint64_t after[HDI_QUEUE_COUNT];
    hdi_used_after(submission, device->inflight.done, after);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++)
        if (after[i] &&
            !HDCU_CALL(api, StreamWaitEvent, device->streams[queue], device->jobs[after[i] % HDCU_JOBS].done, 0))
            return false;
    if (!device->unclear[queue]) return true;
    device->unclear[queue] = !HDCU_CALL(api, StreamWaitEvent, device->streams[queue], device->cleared, 0);
    return !device->unclear[queue];
}

/* The event, made where it is not there yet. */
static bool make_timed(hdi_backend_device *device, hdcu_event *event) {
    if (*event || HDCU_CALL(&device->api, EventCreate, event, 0)) return true;
    *event = NULL;
    return false;
}

/* The clock begins once; an event that was not recorded is none. */
static bool begin_clock(hdi_backend_device *device) {
    hdcu_api *api = &device->api;
    if (device->epoch) return true;
    if (!make_timed(device, &device->epoch)) return false;
    if (HDCU_CALL(api, EventRecord, device->epoch, device->streams[HDI_QUEUE_COMPUTE])) return true;
    HDCU_END(device, EventDestroy, device->epoch);
    device->epoch = NULL;
    return false;
}

/* Notes on the stream where the job begins (0) or ends (1), where that is asked for. */
static bool note_end(hdi_backend_device *device, const hdi_submission *submission, hdcu_job *job, int end) {
    hdcu_api *api = &device->api;
    job->timed = submission->timed;
    if (!job->timed) return true;
    return begin_clock(device) && make_timed(device, &job->ends[end]) &&
           HDCU_CALL(api, EventRecord, job->ends[end], device->streams[submission->queue]);
}

hd_status hdcu_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    hdcu_api *api = &device->api;
    hdi_command_buffer *buffer = NULL;
    hdcu_job *job = NULL;
    bool encoded = true;
    if (hdi_loss_known(&api->loss)) return hdcu_lost(api, error);
    hd_status status = next_job(device, submission, &job, error);
    if (!status && submission->recording && !submission->timestamps)
        status = hdi_recording_get(&device->inflight, submission, &buffer, &encoded, error);
    if (status) return status;
    const hdcu_stream stream = device->streams[submission->queue];
    job->begun_ns = hdi_now_ns();
    job->queue = submission->queue;
    if (!follow(device, submission) || !note_end(device, submission, job, 0))
        status = hdcu_fail(api, error, "waiting for another queue");
    else if (!buffer) status = hdcu_enqueue(device, submission, job, error);
    else if (!HDCU_CALL(api, GraphLaunch, HDI_OBJECT(buffer, hdcu_command_buffer, base)->exec, stream))
        status = hdcu_fail(api, error, "replaying %u commands", submission->cmds->cmd_count);
    if (!status && !(note_end(device, submission, job, 1) && HDCU_CALL(api, EventRecord, job->done, stream)))
        status = hdcu_fail(api, error, "the end of a submission");
    if (status) {
        come_to_rest(device);
        end_marks(device, job);
        return status;
    }
    job->ticket = *out_ticket = hdi_recording_note(&device->inflight, submission, buffer, encoded);
    return HD_OK;
}

/* Nanoseconds from one event to another; 0 where the driver tells less. */
static bool time_between(hdi_backend_device *device, hdcu_event begin, hdcu_event end, uint64_t *out_ns) {
    float ms = 0;
    if (!HDCU_CALL(&device->api, EventElapsedTime, &ms, begin, end)) return false;
    *out_ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return true;
}

hd_status hdcu_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error) {
    const hdcu_job *job = &device->jobs[ticket % HDCU_JOBS];
    *out_count = 0;
    if (job->ticket != ticket)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, device->found.info.backend, 0,
                               "the times of submission %llu are gone", (unsigned long long)ticket);
    for (uint32_t i = 1; i < job->mark_count && *out_count < room; i++, ++*out_count)
        if (!time_between(device, job->marks[i - 1], job->marks[i], &out_ns[*out_count]))
            return hdcu_fail(&device->api, error, "the times of submission %llu", (unsigned long long)ticket);
    return HD_OK;
}

hd_status hdcu_span(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error) {
    const hdcu_job *job = &device->jobs[ticket % HDCU_JOBS];
    if (job->ticket != ticket || !job->timed)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, device->found.info.backend, 0,
                               "submission %llu has no times", (unsigned long long)ticket);
    for (int i = 0; i < 2; i++)
        if (!time_between(device, device->epoch, job->ends[i], &out_ns[i]))
            return hdcu_fail(&device->api, error, "the times of submission %llu", (unsigned long long)ticket);
    return HD_OK;
}
