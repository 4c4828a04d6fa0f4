/* submit.c: handing work over, tickets, waiting. Commands of a recording are handed over again as they are
 * (recordings.h); others are encoded each time. Tickets count over all queues. A queue waits for another only where
 * their memory meets. Every wait has a deadline. */
#include "device/vulkan/vk.h"

#define LONGEST_WAIT_NS (UINT64_C(24) * 3600 * 1000000000)

/* ---- what is done ---- */

static hdvk_job *job_of(hdi_backend_device *device, uint64_t ticket) { return &device->jobs[ticket % HDVK_JOBS]; }

static hd_status queue_value(hdi_backend_device *device, hdvk_queue *queue, uint64_t *out_value, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (HDVK_CALL(vk, GetSemaphoreCounterValue, vk->device, queue->timeline, out_value))
        return hdvk_fail(vk, error, "asking how far the device is");
    if (*out_value <= queue->submitted) return HD_OK;
    hdvk_last.result = VK_ERROR_DEVICE_LOST; /* some drivers tell of a loss by a value that nobody will ever signal */
    return hdvk_fail(vk, error, "the timeline went past all work");
}

static hd_status job_done(hdi_backend_device *device, const hdvk_job *job, const uint64_t values[HDI_QUEUE_COUNT],
                          bool *out_done, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    *out_done = false;
    if (device->timeline) {
        *out_done = values[job->queue] >= job->ticket;
        return HD_OK;
    }
    const VkResult result = HDVK_CALL(vk, GetFenceStatus, vk->device, job->fence);
    if (result < 0) return hdvk_fail(vk, error, "asking whether ticket %llu is done", (unsigned long long)job->ticket);
    *out_done = result == VK_SUCCESS;
    return HD_OK;
}

static void note_done(hdi_backend_device *device, uint64_t ticket) {
    hdi_inflight_done(&device->inflight, ticket);
    hdi_used_collect(device, &device->busy, device->inflight.done, hdvk_commands_put);
}

/* Learns which tickets are done. */
static hd_status collect(hdi_backend_device *device, hd_error *error) {
    const uint64_t before = device->inflight.done;
    uint64_t values[HDI_QUEUE_COUNT] = { 0 }, done = before;
    hd_status status = HD_OK;
    if (before == device->inflight.submitted) return HD_OK;
    if (hdi_loss_known(&device->vk.loss)) return hdvk_lost(&device->vk, error);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && device->timeline && status == HD_OK; i++)
        if (device->queues[i].submitted > before) status = queue_value(device, &device->queues[i], &values[i], error);
    while (status == HD_OK && done < device->inflight.submitted) {
        bool next;
        status = job_done(device, job_of(device, done + 1), values, &next, error);
        if (status != HD_OK || !next) break;
        done++;
    }
    if (done > before) note_done(device, done);
    return status;
}

hd_status hdvk_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    hd_status status = ticket <= device->inflight.done ? HD_OK : collect(device, error);
    *out_done = ticket <= device->inflight.done;
    return *out_done ? HD_OK : status;
}

/* The last ticket up to `ticket` on a queue, where that is not known to be done; else 0. */
static uint64_t last_on(hdi_backend_device *device, uint32_t queue, uint64_t ticket) {
    while (ticket > device->inflight.done && job_of(device, ticket)->queue != queue) ticket--;
    return ticket > device->inflight.done ? ticket : 0;
}

/* Waits for all up to `ticket`, at most `timeout_ns`. */
static VkResult wait_for(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns) {
    hdvk_vk *vk = &device->vk;
    VkSemaphore semaphores[HDI_QUEUE_COUNT];
    uint64_t values[HDI_QUEUE_COUNT];
    uint32_t count = 0;
    if (!device->timeline)
        return HDVK_CALL(vk, WaitForFences, vk->device, 1, &job_of(device, ticket)->fence, VK_TRUE, timeout_ns);
    for (uint32_t queue = 0; queue < HDI_QUEUE_COUNT; queue++) {
        values[count] = last_on(device, queue, ticket);
        semaphores[count] = device->queues[queue].timeline;
        count += values[count] != 0;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = count, .pSemaphores = semaphores,
        .pValues = values,
    };
    return HDVK_CALL(vk, WaitSemaphores, vk->device, &info, timeout_ns);
}

/* Work that is short as yet is watched for a while; TIMEOUT: it was not done meanwhile. */
static hd_status watch(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    const uint64_t begun_ns = job_of(device, ticket)->begun_ns;
    const uint64_t watched_ns = HDI_MIN(hdi_watched_ns(&device->facts.found, hdi_now_ns() - begun_ns), timeout_ns);
    if (watched_ns == 0) return HD_STATUS_TIMEOUT;
    return hdi_wait_by_looks(device, &device->facts.found, hdvk_poll, ticket, begun_ns, watched_ns, error);
}

/* A driver may report a loss while work of before still runs, and ending objects under it can crash the process. The
 * functions are called past every test's faults; a device that is really gone answers at once. */
void hdvk_drain(hdi_backend_device *device, uint64_t timeout_ns) {
    hdvk_vk *vk = &device->vk;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && device->timeline; i++) {
        const hdvk_queue *queue = &device->queues[i];
        const VkSemaphoreWaitInfo info = {
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
            .semaphoreCount = 1,
            .pSemaphores = &queue->timeline,
            .pValues = &queue->submitted,
        };
        if (queue->timeline && queue->submitted) vk->WaitSemaphores(vk->device, &info, timeout_ns);
    }
    for (uint64_t ticket = device->inflight.done + 1; ticket <= device->inflight.submitted && !device->timeline;
         ticket++)
        vk->WaitForFences(vk->device, 1, &job_of(device, ticket)->fence, VK_TRUE, timeout_ns);
}

hd_status hdvk_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (ticket <= device->inflight.done) return HD_OK;
    if (hdi_loss_known(&vk->loss)) return hdvk_lost(vk, error);
    if (ticket > device->inflight.submitted)
        return hdi_fail_native(error, HD_STATUS_INTERNAL, "vulkan", 0, "ticket %llu was never given out",
                               (unsigned long long)ticket);
    hd_error watched = { 0 };
    const uint64_t asked_ns = hdi_now_ns();
    const hd_status status = watch(device, ticket, timeout_ns, &watched);
    if (status != HD_OK && status != HD_STATUS_TIMEOUT && error && error->status == HD_OK) *error = watched;
    if (status != HD_STATUS_TIMEOUT) return status;
    const uint64_t spent_ns = hdi_now_ns() - asked_ns;
    timeout_ns = timeout_ns > spent_ns ? timeout_ns - spent_ns : 0;
    if (wait_for(device, ticket, HDI_MIN(timeout_ns, LONGEST_WAIT_NS)))
        return hdvk_fail(vk, error, "waiting %llu us for ticket %llu", (unsigned long long)(timeout_ns / 1000),
                         (unsigned long long)ticket);
    uint64_t value;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && device->timeline; i++) /* an end that a loss feigned? Else it is one. */
        if (device->queues[i].submitted > device->inflight.done &&
            queue_value(device, &device->queues[i], &value, NULL) == HD_STATUS_DEVICE_LOST)
            return hdvk_lost(vk, error);
    note_done(device, ticket);
    return HD_OK;
}

/* ---- what a submission needs ---- */

/* The place for the next ticket's job, with its fence; the one that was there is waited for. */
static hd_status next_job(hdi_backend_device *device, hdvk_job **out_job, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    hdvk_job *job = *out_job = job_of(device, device->inflight.submitted + 1);
    if (job->ticket > device->inflight.done) {
        const hd_status status = hdvk_wait(device, job->ticket, device->host->wait_ns, error);
        if (status != HD_OK) return status;
    }
    if (device->timeline) return HD_OK;
    if (job->fence) {
        if (HDVK_CALL(vk, ResetFences, vk->device, 1, &job->fence)) return hdvk_fail(vk, error, "taking a fence again");
        return HD_OK;
    }
    if (HDVK_CALL(vk, CreateFence, vk->device, &info, NULL, &job->fence) == VK_SUCCESS) return HD_OK;
    job->fence = VK_NULL_HANDLE;
    return hdvk_fail(vk, error, "a fence");
}

/* A place for times; the submission whose times were there is waited for. */
static hd_status next_timestamps(hdi_backend_device *device, bool ends, hdvk_timestamps **out_timestamps,
                                 hd_error *error) {
    hdvk_timestamps *timestamps = &device->timestamps[device->timestamps_next++ % HDVK_TIMESTAMPS];
    const hd_status status = hdvk_wait(device, timestamps->ticket, device->host->wait_ns, error);
    if (status != HD_OK) return status;
    timestamps->ticket = 0;
    timestamps->ends = ends;
    *out_timestamps = timestamps;
    return HD_OK;
}

/* What one submission hands over. Commands of no recording come back when they are done. */
typedef struct parcel {
    hdi_command_buffer *recorded;   /* of a recording, or NULL */
    hdvk_commands      *commands;
    /* of no recording, or NULL: the commands; the clearing of new memory, that goes first; what notes the begin and the
       end */
    hdvk_commands      *once, *zeroing, *ends;
    hdvk_timestamps    *mark_times, *end_times;
} parcel;

/* Has the queue a clock? */
static bool has_clock(const hdi_backend_device *device, uint32_t queue) {
    return device->facts.places[queue].timestamp_bits != 0 && device->facts.found.caps.timestamps;
}

static hd_status encode_once(hdi_backend_device *device, hdi_submission *submission, parcel *p, hd_error *error) {
    hd_status status = hdvk_commands_get(device, submission->queue, &p->once, error);
    if (status == HD_OK && submission->timestamps && device->facts.found.caps.timestamps)
        status = next_timestamps(device, false, &p->mark_times, error);
    if (status == HD_OK) status = hdvk_encode(device, submission, p->once, p->mark_times, error);
    p->commands = p->once;
    submission->recorded_out = submission->cmds->cmd_count;
    return status;
}

static hd_status find_recorded(hdi_backend_device *device, hdi_submission *submission, parcel *p, hd_error *error) {
    bool encoded;
    const hd_status status = hdi_recording_get(&device->inflight, submission, &p->recorded, &encoded, error);
    if (status != HD_OK) return status;
    hdvk_command_buffer *buffer = HDI_OBJECT(p->recorded, hdvk_command_buffer, base);
    p->commands = buffer->commands;
    submission->recorded_out = encoded ? submission->cmds->cmd_count : 0;
    if (!submission->timestamps || !device->facts.found.caps.timestamps) return HD_OK;
    p->mark_times = &buffer->timestamps; /* a replay notes its times in the place of those before */
    return hdvk_wait(device, buffer->timestamps.ticket, device->host->wait_ns, error);
}

/* Finds or encodes everything. What was made on the way to a failure is in the parcel too. */
static hd_status pack(hdi_backend_device *device, hdi_submission *submission, parcel *p, hd_error *error) {
    const uint32_t queue = submission->queue;
    hd_status status =
        submission->recording ? find_recorded(device, submission, p, error) : encode_once(device, submission, p, error);
    if (status == HD_OK && !hdi_list_empty(&device->unzeroed)) {
        status = hdvk_commands_get(device, queue, &p->zeroing, error);
        if (status == HD_OK) status = hdvk_encode_zeroing(device, p->zeroing, error);
    }
    if (status == HD_OK && submission->timed && has_clock(device, queue)) {
        status = hdvk_commands_get(device, queue, &p->ends, error);
        if (status == HD_OK) status = next_timestamps(device, true, &p->end_times, error);
        if (status == HD_OK) status = hdvk_encode_ends(device, p->ends, p->end_times, error);
    }
    return status;
}

/* ---- handing over ---- */

/* What a submission waits for: the last tickets of other queues that touch its memory. */
typedef struct waits {
    VkSemaphore          timelines[HDI_QUEUE_COUNT];
    uint64_t             tickets[HDI_QUEUE_COUNT];
    VkPipelineStageFlags stages[HDI_QUEUE_COUNT];
    uint32_t             count;
} waits;

static waits find_waits(const hdi_backend_device *device, const hdi_submission *submission) {
    uint64_t last[HDI_QUEUE_COUNT];
    waits found = { .count = 0 };
    hdi_used_after(submission, device->inflight.done, last);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        if (!last[i]) continue;
        found.timelines[found.count] = device->queues[i].timeline;
        found.tickets[found.count] = last[i];
        found.stages[found.count++] = device->queues[submission->queue].stages;
    }
    return found;
}

/* One vkQueueSubmit. The first has waits, else NULL; the last signals the end of `job`, else NULL. */
static VkResult queue_submit(hdi_backend_device *device, const VkCommandBuffer *buffers, uint32_t count, uint32_t on,
                             const waits *after, const hdvk_job *job) {
    hdvk_vk *vk = &device->vk;
    static const waits none = { .count = 0 };
    const hdvk_queue *queue = &device->queues[on];
    const uint64_t signal = job ? job->ticket : 0;
    if (!after) after = &none;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = after->count, .pWaitSemaphoreValues = after->tickets,
        .signalSemaphoreValueCount = signal ? 1 : 0, .pSignalSemaphoreValues = &signal,
    };
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = device->timeline ? &timeline : NULL,
        .waitSemaphoreCount = after->count, .pWaitSemaphores = after->timelines, .pWaitDstStageMask = after->stages,
        .commandBufferCount = count, .pCommandBuffers = buffers,
        .signalSemaphoreCount = signal && device->timeline ? 1 : 0, .pSignalSemaphores = &queue->timeline,
    };
    return HDVK_CALL(vk, QueueSubmit, queue->handle, 1, &info, job ? job->fence : VK_NULL_HANDLE);
}

/* The command buffers of piece `i`, with what goes before the first and behind the last. */
static uint32_t buffers_of(const parcel *p, uint32_t i, VkCommandBuffer out_buffers[4]) {
    uint32_t count = 0;
    if (i == 0 && p->ends) out_buffers[count++] = p->ends->buffers[0];
    if (i == 0 && p->zeroing) out_buffers[count++] = p->zeroing->buffers[0];
    out_buffers[count++] = p->commands->buffers[i];
    if (i + 1 == p->commands->piece_count && p->ends) out_buffers[count++] = p->ends->buffers[1];
    return count;
}

/* Hands the pieces over one by one. Where this breaks off in the middle, an empty hand-over still marks the end of what
 * is under way; a device that refuses even that is given up, objects and all, since nobody could say when its work
 * ends. */
static hd_status hand_over(hdi_backend_device *device, const hdi_submission *submission, const parcel *p,
                           const hdvk_job *job, uint32_t *out_pieces, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const waits after = find_waits(device, submission);
    const uint32_t pieces = p->commands->piece_count;
    for (uint32_t i = 0; i < pieces; i++) {
        VkCommandBuffer buffers[4];
        const uint32_t count = buffers_of(p, i, buffers);
        if (queue_submit(device, buffers, count, job->queue, i == 0 ? &after : NULL, i + 1 == pieces ? job : NULL)) {
            const hd_status status = hdvk_fail(vk, error, "handing over piece %u of %u", i + 1, pieces);
            if (i == 0 || hdi_loss_known(&vk->loss)) return status;
            if (queue_submit(device, NULL, 0, job->queue, NULL, job)) {
                hdvk_last.result = VK_ERROR_DEVICE_LOST;
                hdvk_fail(vk, NULL, "marking the end of work that was cut off");
                vk->abandoned = true;
                return status;
            }
            *out_pieces = i;
            return status;
        }
    }
    *out_pieces = pieces;
    return HD_OK;
}

/* Notes the job as under way, and everything that it uses. */
static void note_submitted(hdi_backend_device *device, const hdi_submission *submission, const parcel *p,
                           const hdvk_job *job) {
    device->inflight.submitted = device->queues[job->queue].submitted = job->ticket;
    hdi_used_note(submission, job->ticket);
    while (!hdi_list_empty(&device->unzeroed)) {
        hdi_memory *memory = HDI_OBJECT(device->unzeroed.next, hdi_memory, unzeroed);
        memory->used.last_ticket = job->ticket;
        memory->used.last_queue = job->queue;
        hdi_list_remove(&memory->unzeroed);
    }
    if (p->recorded) p->recorded->used.last_ticket = job->ticket;
    if (p->mark_times) p->mark_times->ticket = job->ticket;
    if (p->end_times) p->end_times->ticket = job->ticket;
}

hd_status hdvk_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    submission->recorded_out = submission->pieces_out = 0;
    if (hdi_loss_known(&device->vk.loss)) return hdvk_lost(&device->vk, error);
    if (!device->queues[submission->queue].handle || submission->timestamps) submission->queue = HDI_QUEUE_COMPUTE;
    parcel p = { .commands = NULL };
    hdvk_job *job = NULL;
    hd_status status = collect(device, error);
    if (status == HD_OK) status = next_job(device, &job, error);
    if (status == HD_OK) status = pack(device, submission, &p, error);
    if (status == HD_OK) {
        *job = (hdvk_job){ device->inflight.submitted + 1, hdi_now_ns(), submission->queue, job->fence };
        status = hand_over(device, submission, &p, job, &submission->pieces_out, error);
        if (submission->pieces_out) note_submitted(device, submission, &p, job); /* also where it broke off */
        else job->ticket = 0;
    }
    if (status == HD_OK) *out_ticket = job->ticket;
    hdvk_commands *const loose[] = { p.once, p.zeroing, p.ends };
    for (size_t i = 0; i < HDI_COUNT(loose); i++) {
        if (!loose[i]) continue;
        loose[i]->used.last_ticket = submission->pieces_out ? job->ticket : 0;
        hdi_list_add(&device->busy, &loose[i]->used.link);
    }
    if (!submission->pieces_out) hdi_used_collect(device, &device->busy, device->inflight.done, hdvk_commands_put);
    return status;
}

/* ---- times ---- */

/* NULL: the times are not there. */
static const hdvk_timestamps *find_timestamps(const hdi_backend_device *device, uint64_t ticket, bool ends) {
    for (uint32_t i = 0; i < HDVK_TIMESTAMPS && ticket <= device->inflight.done; i++)
        if (device->timestamps[i].ticket == ticket && device->timestamps[i].ends == ends) return &device->timestamps[i];
    const hdi_link *recordings = &device->inflight.recordings;
    for (const hdi_link *at = recordings->next; at != recordings && !ends && ticket <= device->inflight.done;
         at = at->next) {
        const hdi_link *buffers = &HDI_OBJECT(at, hdi_recording, link)->buffers;
        for (const hdi_link *of = buffers->next; of != buffers; of = of->next) {
            const hdvk_command_buffer *buffer = HDI_OBJECT(of, hdvk_command_buffer, base.used.link);
            if (buffer->timestamps.ticket == ticket) return &buffer->timestamps;
        }
    }
    return NULL;
}

hd_status hdvk_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    *out_count = 0;
    if (hdi_loss_known(&vk->loss)) return hdvk_lost(vk, error);
    if (!device->facts.found.caps.timestamps)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0, "the device has no time stamps");
    const hdvk_timestamps *timestamps = find_timestamps(device, ticket, false);
    if (!timestamps)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, "vulkan", 0,
                               "ticket %llu has no times: it is under way, was made without them, or they are gone",
                               (unsigned long long)ticket);
    const uint32_t wanted = HDI_MIN(timestamps->mark_count, room);
    uint64_t stamps[64];
    const uint32_t bits = device->facts.places[HDI_QUEUE_COMPUTE].timestamp_bits;
    const uint64_t mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const double period = (double)device->facts.properties.limits.timestampPeriod;
    while (*out_count < wanted) { /* each round reads the stamps at both ends of its marks */
        const uint32_t marks = HDI_MIN(wanted - *out_count, (uint32_t)HDI_COUNT(stamps) - 1);
        if (HDVK_CALL(vk, GetQueryPoolResults, vk->device, timestamps->queries, *out_count, marks + 1, sizeof stamps,
                      stamps, sizeof *stamps, VK_QUERY_RESULT_64_BIT))
            return hdvk_fail(vk, error, "reading the times of ticket %llu", (unsigned long long)ticket);
        for (uint32_t i = 0; i < marks; i++)
            out_ns[(*out_count)++] = (uint64_t)((double)((stamps[i + 1] - stamps[i]) & mask) * period);
    }
    return HD_OK;
}

hd_status hdvk_times(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const hdvk_timestamps *ends = find_timestamps(device, ticket, true);
    if (!ends)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0, "ticket %llu has no times",
                               (unsigned long long)ticket);
    if (HDVK_CALL(vk, GetQueryPoolResults, vk->device, ends->queries, 0, 2, 2 * sizeof *out_ns, out_ns, sizeof *out_ns,
                  VK_QUERY_RESULT_64_BIT))
        return hdvk_fail(vk, error, "reading the times of ticket %llu", (unsigned long long)ticket);
    for (int i = 0; i < 2; i++)
        out_ns[i] = (uint64_t)((double)out_ns[i] * (double)device->facts.properties.limits.timestampPeriod);
    return HD_OK;
}

/* ---- giving back ---- */

void hdvk_trim(hdi_backend_device *device) {
    hd_error ignored = { 0 }; /* a loss stays noted on the device; anything else costs only the chance to give back */
    if (collect(device, &ignored) != HD_OK)
        hdi_log_line(device->vk.log, HD_LOG_DEBUG, "vulkan", "trim: %s", ignored.text);
    hdvk_commands_trim(device);
    hdvk_memory_trim(device);
}

void hdvk_submit_close(hdi_backend_device *device) {
    hdi_used_collect(device, &device->busy, HDI_ALL_DONE, hdvk_commands_put);
    hdvk_commands_trim(device);
    for (uint32_t i = 0; i < HDVK_JOBS; i++) HDVK_END(&device->vk, DestroyFence, device->jobs[i].fence);
    for (uint32_t i = 0; i < HDVK_TIMESTAMPS; i++)
        HDVK_END(&device->vk, DestroyQueryPool, device->timestamps[i].queries);
}
