/* submit.c: handing work over, tickets, waiting. What was encoded for the same slots is handed over again as it is; a
 * recording keeps a few takes, so that plans which change between two sets of buffers replay both. Tickets count over
 * all queues. A queue waits for another only where their memory meets. Every wait has a deadline. */
#include "device/vulkan/vk.h"

enum { TAKES_KEPT = 4 };
#define LONGEST_WAIT_NS (UINT64_C(24) * 3600 * 1000000000)

/* ---- what is done ---- */

static hd_status queue_value(hdi_backend_device *device, hdvk_queue *queue, uint64_t *out_value, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (HDVK_CALL(vk, GetSemaphoreCounterValue, vk->device, queue->timeline, out_value))
        return hdvk_fail(vk, error, "asking how far the device is");
    if (*out_value <= queue->submitted) return HD_OK;
    hdvk_last.result = VK_ERROR_DEVICE_LOST; /* some drivers tell of a loss by a value that nobody will ever signal */
    return hdvk_fail(vk, error, "the timeline went past all work");
}

static hd_status flight_done(hdi_backend_device *device, const hdvk_flight *flight, const uint64_t values[HDI_QUEUE_COUNT],
                             bool *out_done, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    *out_done = false;
    if (device->timeline) {
        *out_done = values[flight->queue] >= flight->ticket;
        return HD_OK;
    }
    const VkResult result = HDVK_CALL(vk, GetFenceStatus, vk->device, flight->fence);
    if (result < 0) return hdvk_fail(vk, error, "asking whether ticket %llu is done", (unsigned long long)flight->ticket);
    *out_done = result == VK_SUCCESS;
    return HD_OK;
}

/* Notes that all up to `ticket` is done and takes back what it used. */
static void land(hdi_backend_device *device, uint64_t ticket) {
    while (device->flight_first < device->flight_count && device->flights[device->flight_first].ticket <= ticket) {
        const hdvk_flight flight = device->flights[device->flight_first++];
        if (flight.fence) device->spare_fences[device->spare_fence_count++] = flight.fence;
        device->completed = flight.ticket;
    }
    if (device->flight_first == device->flight_count) device->flight_first = device->flight_count = 0;
    while (device->flying && device->flying->ticket <= device->completed) {
        hdvk_take *take = device->flying;
        device->flying = take->next;
        if (!device->flying) device->flying_last = NULL;
        hdvk_take_put(device, take);
    }
    hdvk_memory_collect(device, false);
    hdvk_kernel_collect(device, false);
}

/* Learns which tickets are done. */
static hd_status collect(hdi_backend_device *device, hd_error *error) {
    uint64_t values[HDI_QUEUE_COUNT] = { 0 }, ticket = device->completed;
    hd_status status = HD_OK;
    if (device->flight_first == device->flight_count) return HD_OK;
    if (hdi_loss_known(&device->vk.loss)) return hdvk_lost(&device->vk, error);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && device->timeline && status == HD_OK; i++)
        if (device->queues[i].submitted > device->completed) status = queue_value(device, &device->queues[i], &values[i], error);
    for (uint32_t i = device->flight_first; i < device->flight_count && status == HD_OK; i++) {
        bool done;
        status = flight_done(device, &device->flights[i], values, &done, error);
        if (status != HD_OK || !done) break;
        ticket = device->flights[i].ticket;
    }
    if (ticket > device->completed) land(device, ticket);
    return status;
}

hd_status hdvk_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    hd_status status = ticket <= device->completed ? HD_OK : collect(device, error);
    *out_done = ticket <= device->completed;
    return *out_done ? HD_OK : status;
}

/* The flight that `ticket` ends with; tickets of failed calls are no flights: the next one. */
static const hdvk_flight *flight_of(const hdi_backend_device *device, uint64_t ticket) {
    uint32_t at = device->flight_first;
    while (at + 1 < device->flight_count && device->flights[at].ticket < ticket) at++;
    return &device->flights[at];
}

/* Waits for the flight that `ticket` ends with, at most `timeout_ns`. */
static VkResult wait_for(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns) {
    hdvk_vk *vk = &device->vk;
    VkSemaphore semaphores[HDI_QUEUE_COUNT];
    uint64_t values[HDI_QUEUE_COUNT];
    uint32_t count = 0;
    if (!device->timeline) return HDVK_CALL(vk, WaitForFences, vk->device, 1, &flight_of(device, ticket)->fence, VK_TRUE, timeout_ns);
    for (uint32_t queue = 0; queue < HDI_QUEUE_COUNT; queue++) {
        uint64_t value = 0;
        for (uint32_t i = device->flight_first; i < device->flight_count && device->flights[i].ticket <= ticket; i++)
            if (device->flights[i].queue == queue) value = device->flights[i].ticket;
        if (!value) continue;
        semaphores[count] = device->queues[queue].timeline;
        values[count++] = value;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = count, .pSemaphores = semaphores, .pValues = values,
    };
    return HDVK_CALL(vk, WaitSemaphores, vk->device, &info, timeout_ns);
}

/* Work that is short as yet is watched for a while; TIMEOUT: it was not done meanwhile. */
static hd_status watch(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    const uint64_t begun_ns = flight_of(device, ticket)->begun_ns, watched_ns = HDI_MIN(hdi_watched_ns(&device->facts.found, hdi_now_ns() - begun_ns), timeout_ns);
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
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &queue->timeline, .pValues = &queue->submitted,
        };
        if (queue->timeline && queue->submitted) vk->WaitSemaphores(vk->device, &info, timeout_ns);
    }
    for (uint32_t i = device->flight_first; i < device->flight_count && !device->timeline; i++)
        vk->WaitForFences(vk->device, 1, &device->flights[i].fence, VK_TRUE, timeout_ns);
}

hd_status hdvk_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (ticket <= device->completed) return HD_OK;
    if (hdi_loss_known(&vk->loss)) return hdvk_lost(vk, error);
    if (device->flight_first == device->flight_count)
        return hdi_fail_native(error, HD_STATUS_INTERNAL, "vulkan", 0, "ticket %llu was never given out", (unsigned long long)ticket);
    hd_error watched = { 0 };
    const uint64_t asked_ns = hdi_now_ns();
    const hd_status status = watch(device, ticket, timeout_ns, &watched);
    if (status != HD_OK && status != HD_STATUS_TIMEOUT && error && error->status == HD_OK) *error = watched;
    if (status != HD_STATUS_TIMEOUT) return status;
    const uint64_t spent_ns = hdi_now_ns() - asked_ns;
    timeout_ns = timeout_ns > spent_ns ? timeout_ns - spent_ns : 0;
    if (wait_for(device, ticket, HDI_MIN(timeout_ns, LONGEST_WAIT_NS)))
        return hdvk_fail(vk, error, "waiting %llu us for ticket %llu", (unsigned long long)(timeout_ns / 1000), (unsigned long long)ticket);
    uint64_t value;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && device->timeline; i++) /* an end that a loss feigned? Else it is one. */
        if (device->queues[i].submitted > device->completed && queue_value(device, &device->queues[i], &value, NULL) == HD_STATUS_DEVICE_LOST)
            return hdvk_lost(vk, error);
    land(device, ticket);
    return HD_OK;
}

/* ---- choosing a take ---- */

static bool same_slots(const hdvk_take *take, const hdi_submission *submission) {
    if (take->key_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < take->key_count; i++) {
        const hdvk_slot_key *key = &take->keys[i];
        const hdi_slot *slot = &submission->slots[i];
        if (key->serial != (slot->memory ? slot->memory->serial : 0) || key->offset != slot->offset || key->bytes != slot->bytes) return false;
    }
    return true;
}

static hd_status recording_of(hdi_backend_device *device, hdi_submission *submission, hdi_recording **out_recording, hd_error *error) {
    *out_recording = NULL;
    if (!submission->recording) return HD_OK;
    if (!*submission->recording) {
        hdi_recording *recording = hdi_alloc(device->host->allocator, sizeof *recording);
        if (!recording) return hdvk_no_memory(error);
        HDVK_LINK(device->recordings, recording);
        *submission->recording = recording;
    }
    *out_recording = *submission->recording;
    return HD_OK;
}

/* The take to hand over. One that is not valid is still to be encoded. */
static hd_status choose_take(hdi_backend_device *device, const hdi_submission *submission, hdi_recording *recording, uint32_t queue,
                             hdvk_take **out_take, hd_error *error) {
    if (!recording) return hdvk_take_get(device, queue, out_take, error);
    const bool timed = submission->timestamps && device->facts.found.caps.timestamps;
    hdvk_take *idle = NULL;
    for (hdvk_take *take = recording->takes; take; take = take->next) {
        const bool under_way = take->ticket > device->completed;
        if (take->queue != queue) continue;
        if (take->valid && take->timestamps == timed && !(timed && under_way) && same_slots(take, submission)) {
            *out_take = take;
            return HD_OK;
        }
        if (!under_way && (!idle || !take->valid || (idle->valid && take->ticket < idle->ticket))) idle = take;
    }
    if (idle && (!idle->valid || recording->take_count >= TAKES_KEPT)) {
        idle->valid = false;
        *out_take = idle;
        return HD_OK;
    }
    hd_status status = hdvk_take_get(device, queue, out_take, error);
    if (status != HD_OK) return status;
    (*out_take)->ticket = 0;
    (*out_take)->next = recording->takes;
    recording->takes = *out_take;
    recording->take_count++;
    return HD_OK;
}

/* ---- handing over ---- */

/* Room for the flight, and its fence, before anything is handed over: afterwards nothing may fail. */
static hd_status prepare_flight(hdi_backend_device *device, hdvk_flight *out_flight, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const hd_allocator *allocator = device->host->allocator;
    if (device->flight_first > 64 && device->flight_first > device->flight_count / 2) {
        device->flight_count -= device->flight_first;
        memmove(device->flights, device->flights + device->flight_first, device->flight_count * sizeof *device->flights);
        device->flight_first = 0;
    }
    if (!hdi_grow(allocator, &device->flights, &device->flight_capacity, (size_t)device->flight_count + 1, sizeof *device->flights))
        return hdvk_no_memory(error);
    if (device->timeline) return HD_OK;
    if (device->spare_fence_count) {
        if (HDVK_CALL(vk, ResetFences, vk->device, 1, &device->spare_fences[device->spare_fence_count - 1]))
            return hdvk_fail(vk, error, "taking a fence again");
        out_flight->fence = device->spare_fences[--device->spare_fence_count];
        return HD_OK;
    }
    const size_t fences = (size_t)device->flight_count + 1; /* all of them may become spare */
    if (!hdi_grow(allocator, &device->spare_fences, &device->spare_fence_capacity, fences, sizeof *device->spare_fences))
        return hdvk_no_memory(error);
    const VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    if (HDVK_CALL(vk, CreateFence, vk->device, &info, NULL, &out_flight->fence)) {
        out_flight->fence = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "a fence");
    }
    return HD_OK;
}

/* What a submission waits for: the last tickets of other queues that touch its memory. */
typedef struct waits {
    VkSemaphore          timelines[HDI_QUEUE_COUNT];
    uint64_t             tickets[HDI_QUEUE_COUNT];
    VkPipelineStageFlags stages[HDI_QUEUE_COUNT];
    uint32_t             count;
} waits;

static waits find_waits(const hdi_backend_device *device, const hdi_submission *submission, uint32_t queue) {
    uint64_t last[HDI_QUEUE_COUNT] = { 0 };
    waits found = { .count = 0 };
    for (uint32_t i = 0; i < submission->cmds->slot_count && device->queues[HDI_QUEUE_UPLOAD].handle; i++) {
        const hdi_memory *memory = submission->slots[i].memory;
        if (memory) last[memory->queue] = HDI_MAX(last[memory->queue], memory->ticket);
    }
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        if (i == queue || last[i] <= device->completed) continue;
        found.timelines[found.count] = device->queues[i].timeline;
        found.tickets[found.count] = last[i];
        found.stages[found.count++] = device->queues[queue].stages;
    }
    return found;
}

/* One vkQueueSubmit. The first has waits, else NULL; the last signals `flight`. */
static VkResult queue_submit(hdi_backend_device *device, const VkCommandBuffer *buffers, uint32_t count, uint32_t on,
                             const waits *after, const hdvk_flight *flight) {
    hdvk_vk *vk = &device->vk;
    static const waits none = { .count = 0 };
    const hdvk_queue *queue = &device->queues[on];
    const uint64_t signal = flight ? flight->ticket : 0;
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
    return HDVK_CALL(vk, QueueSubmit, queue->handle, 1, &info, flight ? flight->fence : VK_NULL_HANDLE);
}

/* Notes the flight as under way, and everything that it uses. */
static void take_off(hdi_backend_device *device, const hdi_submission *submission, const hdvk_flight *flight, hdvk_take *take) {
    device->submitted = flight->ticket;
    device->queues[flight->queue].submitted = flight->ticket;
    device->flights[device->flight_count++] = *flight;
    take->ticket = flight->ticket;
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++) {
        hdi_memory *memory = submission->slots[i].memory;
        if (!memory) continue;
        memory->ticket = flight->ticket;
        memory->queue = flight->queue;
    }
    for (uint32_t i = 0; i < submission->cmds->kernel_count; i++)
        if (submission->kernels[i]) submission->kernels[i]->ticket = flight->ticket;
    for (uint32_t i = 0; i < device->unzeroed_count; i++) {
        device->unzeroed[i]->ticket = flight->ticket;
        device->unzeroed[i]->queue = flight->queue;
        device->unzeroed[i]->zero_index = HDI_NO_INDEX;
    }
    device->unzeroed_count = 0;
}

/* A take of no recording comes back by itself when its ticket is done. */
static void fly(hdi_backend_device *device, hdvk_take *take, uint64_t ticket) {
    take->ticket = ticket;
    take->next = NULL;
    if (device->flying_last) device->flying_last->next = take;
    else device->flying = take;
    device->flying_last = take;
}

/* What one submission hands over. */
typedef struct parcel {
    hdvk_take *take;
    hdvk_take *prelude; /* zeroes new memory first; or NULL */
    hdvk_take *stamps;  /* note when it begins and ends; or NULL */
} parcel;

/* The command buffers of piece `i`, with what goes before the first and behind the last. */
static uint32_t buffers_of(const parcel *p, uint32_t i, VkCommandBuffer out_buffers[4]) {
    uint32_t count = 0;
    if (i == 0 && p->stamps) out_buffers[count++] = p->stamps->buffers[0];
    if (i == 0 && p->prelude) out_buffers[count++] = p->prelude->buffers[0];
    out_buffers[count++] = p->take->buffers[i];
    if (i + 1 == p->take->piece_count && p->stamps) out_buffers[count++] = p->stamps->buffers[1];
    return count;
}

/* Hands the pieces over one by one. Where this breaks off in the middle, an empty hand-over still marks the end of what
 * is under way; a device that refuses even that is given up, objects and all, since nobody could say when its work ends. */
static hd_status hand_over(hdi_backend_device *device, const hdi_submission *submission, const parcel *p, const hdvk_flight *flight,
                           uint32_t *out_pieces, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const waits after = find_waits(device, submission, flight->queue);
    const uint32_t pieces = p->take->piece_count;
    for (uint32_t i = 0; i < pieces; i++) {
        VkCommandBuffer buffers[4];
        const uint32_t count = buffers_of(p, i, buffers);
        if (queue_submit(device, buffers, count, flight->queue, i == 0 ? &after : NULL, i + 1 == pieces ? flight : NULL)) {
            const hd_status status = hdvk_fail(vk, error, "handing over piece %u of %u", i + 1, pieces);
            if (i == 0 || hdi_loss_known(&vk->loss)) return status;
            if (queue_submit(device, NULL, 0, flight->queue, NULL, flight)) {
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

/* Encodes what is to be encoded and hands everything over; *out_flown tells whether the take is now under way. */
static hd_status launch(hdi_backend_device *device, hdi_submission *submission, const parcel *p, bool once, uint64_t *out_ticket,
                        bool *out_flown, hd_error *error) {
    hdvk_flight flight = { .ticket = device->submitted + 1, .begun_ns = hdi_now_ns(), .queue = p->take->queue };
    hd_status status = HD_OK;
    if (!p->take->valid) {
        status = hdvk_encode(device, submission, p->take, once, error);
        submission->recorded_out = submission->cmds->cmd_count;
    }
    if (status == HD_OK && p->prelude) status = hdvk_encode_zeroing(device, p->prelude, error);
    if (status == HD_OK && p->stamps) status = hdvk_encode_stamps(device, p->stamps, error);
    if (status == HD_OK) status = prepare_flight(device, &flight, error);
    if (status != HD_OK) return status;
    status = hand_over(device, submission, p, &flight, &submission->pieces_out, error);
    *out_flown = submission->pieces_out != 0;
    if (*out_flown) {
        take_off(device, submission, &flight, p->take);
        *out_ticket = flight.ticket;
    } else if (flight.fence) {
        device->spare_fences[device->spare_fence_count++] = flight.fence;
    }
    return status;
}

/* Has the queue a clock? */
static bool has_stamps(const hdi_backend_device *device, uint32_t queue) {
    return device->facts.places[queue].timestamp_bits != 0 && device->facts.found.caps.timestamps;
}

hd_status hdvk_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error) {
    submission->recorded_out = submission->pieces_out = 0;
    if (hdi_loss_known(&device->vk.loss)) return hdvk_lost(&device->vk, error);
    const bool aside = device->queues[submission->queue].handle && !submission->timestamps;
    const uint32_t queue = aside ? submission->queue : HDI_QUEUE_COMPUTE;
    hdi_recording *recording = NULL;
    parcel p = { NULL, NULL, NULL };
    bool flown = false;
    hd_status status = collect(device, error);
    if (status == HD_OK) status = recording_of(device, submission, &recording, error);
    if (status == HD_OK) status = choose_take(device, submission, recording, queue, &p.take, error);
    if (status == HD_OK && device->unzeroed_count) status = hdvk_take_get(device, queue, &p.prelude, error);
    if (status == HD_OK && submission->timed && has_stamps(device, queue)) status = hdvk_take_get(device, queue, &p.stamps, error);
    uint64_t ticket = 0;
    if (status == HD_OK) status = launch(device, submission, &p, recording == NULL, &ticket, &flown, error);
    if (status == HD_OK) *out_ticket = ticket;
    if (status == HD_OK && p.stamps) { /* they wait to be asked */
        p.stamps->ticket = ticket;
        p.stamps->next = device->stamped;
        device->stamped = p.stamps;
        p.stamps = NULL;
    }
    hdvk_take *const loose[] = { p.prelude, p.stamps, recording ? NULL : p.take };
    for (size_t i = 0; i < HDI_COUNT(loose); i++) {
        if (loose[i] && flown) fly(device, loose[i], ticket);
        else if (loose[i]) hdvk_take_put(device, loose[i]);
    }
    return status;
}

void hdvk_forget(hdi_backend_device *device, hdi_recording *recording) {
    if (!recording) return;
    HDVK_UNLINK(device->recordings, recording);
    for (hdvk_take *take = recording->takes, *next; take; take = next) {
        next = take->next;
        if (take->ticket <= device->completed) {
            hdvk_take_put(device, take);
            continue;
        }
        hdvk_take **at = &device->flying; /* kept by ticket */
        while (*at && (*at)->ticket <= take->ticket) at = &(*at)->next;
        take->next = *at;
        *at = take;
        if (!take->next) device->flying_last = take;
    }
    hdi_free(device->host->allocator, recording, sizeof *recording);
}

/* ---- times ---- */

static hdvk_take *find_take(hdvk_take *takes, uint64_t ticket) {
    for (; takes; takes = takes->next)
        if (takes->ticket == ticket && takes->timestamps) return takes;
    return NULL;
}

hd_status hdvk_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room, uint32_t *out_count, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    *out_count = 0;
    if (hdi_loss_known(&vk->loss)) return hdvk_lost(vk, error);
    if (!device->facts.found.caps.timestamps) return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0, "the device has no time stamps");
    hdvk_take *take = find_take(device->spare, ticket);
    for (hdi_recording *recording = device->recordings; recording && !take; recording = recording->next)
        take = find_take(recording->takes, ticket);
    if (!take || ticket > device->completed)
        return hdi_fail_native(error, HD_STATUS_WRONG_STATE, "vulkan", 0, "ticket %llu has no times: it is under way, was made without them, or its commands ran again",
                               (unsigned long long)ticket);
    const uint32_t wanted = HDI_MIN(take->mark_count, room);
    uint64_t stamps[64];
    const uint64_t mask = device->facts.places[HDI_QUEUE_COMPUTE].timestamp_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << device->facts.places[HDI_QUEUE_COMPUTE].timestamp_bits) - 1;
    const double period = (double)device->facts.properties.limits.timestampPeriod;
    while (*out_count < wanted) { /* each round reads the stamps at both ends of its marks */
        const uint32_t marks = HDI_MIN(wanted - *out_count, (uint32_t)HDI_COUNT(stamps) - 1);
        if (HDVK_CALL(vk, GetQueryPoolResults, vk->device, take->queries, *out_count, marks + 1, sizeof stamps, stamps, sizeof *stamps,
                      VK_QUERY_RESULT_64_BIT))
            return hdvk_fail(vk, error, "reading the times of ticket %llu", (unsigned long long)ticket);
        for (uint32_t i = 0; i < marks; i++) out_ns[(*out_count)++] = (uint64_t)((double)((stamps[i + 1] - stamps[i]) & mask) * period);
    }
    return HD_OK;
}

hd_status hdvk_times(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error) {
    hdvk_vk *vk = &device->vk;
    hdvk_take **at = &device->stamped;
    while (*at && (*at)->ticket != ticket) at = &(*at)->next;
    hdvk_take *stamps = *at;
    if (!stamps || ticket > device->completed)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0, "ticket %llu has no times", (unsigned long long)ticket);
    if (HDVK_CALL(vk, GetQueryPoolResults, vk->device, stamps->queries, 0, 2, 2 * sizeof *out_ns, out_ns, sizeof *out_ns, VK_QUERY_RESULT_64_BIT))
        return hdvk_fail(vk, error, "reading the times of ticket %llu", (unsigned long long)ticket);
    *at = stamps->next;
    hdvk_take_put(device, stamps);
    for (int i = 0; i < 2; i++) out_ns[i] = (uint64_t)((double)out_ns[i] * (double)device->facts.properties.limits.timestampPeriod);
    return HD_OK;
}

/* ---- giving back ---- */

static void end_takes(hdi_backend_device *device, hdvk_take **takes) {
    for (hdvk_take *take = *takes, *next; take; take = next) {
        next = take->next;
        hdvk_take_end(device, take);
    }
    *takes = NULL;
}

static void end_spare_fences(hdi_backend_device *device) {
    for (uint32_t i = 0; i < device->spare_fence_count; i++) HDVK_END(&device->vk, DestroyFence, device->spare_fences[i]);
    device->spare_fence_count = 0;
}

void hdvk_trim(hdi_backend_device *device) {
    hd_error ignored = { 0 }; /* a loss stays noted on the device; anything else costs only the chance to give back */
    if (collect(device, &ignored) != HD_OK) hdi_log_line(device->vk.log, HD_LOG_DEBUG, "vulkan", "trim: %s", ignored.text);
    end_takes(device, &device->spare);
    device->spare_count = 0;
    end_spare_fences(device);
    hdvk_memory_trim(device);
}

void hdvk_submit_close(hdi_backend_device *device) {
    const hd_allocator *allocator = device->host->allocator;
    for (hdi_recording *recording = device->recordings, *next; recording; recording = next) {
        next = recording->next;
        end_takes(device, &recording->takes);
        hdi_free(allocator, recording, sizeof *recording);
    }
    end_takes(device, &device->flying);
    end_takes(device, &device->stamped);
    end_takes(device, &device->spare);
    for (uint32_t i = device->flight_first; i < device->flight_count; i++) HDVK_END(&device->vk, DestroyFence, device->flights[i].fence);
    end_spare_fences(device);
    hdi_free(allocator, device->flights, (size_t)device->flight_capacity * sizeof *device->flights);
    hdi_free(allocator, device->spare_fences, (size_t)device->spare_fence_capacity * sizeof *device->spare_fences);
}
