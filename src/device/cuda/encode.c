/* encode.c: commands to calls on the stream; and, captured, to graphs. Dependencies come from barriers alone: what lies
 * between two of them may run at once. In a graph such commands are dealt out to a few lanes, each a chain, so that wide
 * stretches have few edges; a stretch begins where all lanes of the one before have ended. */
#include "device/cuda/cu.h"

enum { LANES = 8, TAKES_KEPT = 4 };

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    hdcu_job             *job;   /* takes the marks' events; NULL: no timestamps */
    bool                  captures;
    hdcu_node before[LANES], lanes[LANES]; /* the ends of the stretch before, and so far of this one */
    uint32_t  before_count, lane_count, next;
} encoder;

/* ---- dependencies of what is captured ---- */

static bool depend(encoder *e) {
    const uint32_t lane = e->next % LANES;
    if (!e->captures) return true;
    hdcu_node *nodes = lane < e->lane_count ? &e->lanes[lane] : e->before;
    return HDCU_CALL(&e->device->api, StreamUpdateCaptureDependencies, e->device->stream, nodes, lane < e->lane_count ? 1 : e->before_count,
                     HDCU_SET_DEPENDENCIES);
}

/* The node that the last call became is all that the stream now depends on. */
static bool note(encoder *e) {
    const uint32_t lane = e->next % LANES;
    const hdcu_node *nodes = NULL;
    size_t count = 0;
    int state = 0;
    if (!e->captures) return true;
    if (!HDCU_CALL(&e->device->api, StreamGetCaptureInfo, e->device->stream, &state, NULL, NULL, &nodes, &count)) return false;
    if (count != 1) {
        e->device->api.result = HDCU_UNKNOWN;
        return false;
    }
    e->lanes[lane] = nodes[0];
    e->lane_count = HDI_MAX(e->lane_count, lane + 1);
    e->next++;
    return true;
}

static void barrier(encoder *e) {
    if (e->lane_count == 0) return;
    memcpy(e->before, e->lanes, e->lane_count * sizeof *e->lanes);
    e->before_count = e->lane_count;
    e->lane_count = e->next = 0;
}

/* ---- commands ---- */

static uint64_t address_of(const encoder *e, const hdi_range *range) {
    const hdi_slot *slot = &e->submission->slots[range->slot];
    return slot->memory->address + slot->offset + range->offset;
}

static bool multiply(encoder *e, const hdi_cmd *cmd, const hdcu_product *product) {
    const hdi_binding *bindings = &e->submission->cmds->bindings[cmd->as.dispatch.binding_first];
    uint64_t addresses[4];
    for (int i = 0; i < 4; i++) addresses[i] = address_of(e, &bindings[i].range);
    return hdcu_product_run(e->device, product, addresses, bindings[3].range.bytes);
}

/* The arguments as spirv.h describes them. */
static bool dispatch(encoder *e, const hdi_cmd *cmd) {
    const hdi_cmds *cmds = e->submission->cmds;
    const hdi_loaded_kernel *kernel = e->submission->kernels[cmd->as.dispatch.kernel];
    const hdi_spirv_printed *printed = &kernel->printed;
    const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
    const uint32_t given = HDI_MIN(cmds->kernels[cmd->as.dispatch.kernel].push_bytes / 4, printed->push_words), *groups = cmd->as.dispatch.groups;
    if (kernel->product) return multiply(e, cmd, kernel->product);
    uint64_t addresses[HDI_SPIRV_MAX_BINDINGS];
    uint32_t words[3 + HDI_MAX_PUSH_WORDS + 2 * HDI_SPIRV_MAX_BINDINGS] = { 0 }, at = 3 + printed->push_words;
    void *arguments[HDI_SPIRV_MAX_BINDINGS + 1];
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        addresses[i] = address_of(e, &bindings[printed->buffers[i]].range);
        arguments[i] = &addresses[i];
    }
    arguments[printed->buffer_count] = words;
    memcpy(words, cmd->as.dispatch.first, 3 * sizeof *words);
    if (given) memcpy(words + 3, cmds->push + cmd->as.dispatch.push_first, given * sizeof *words);
    for (uint32_t i = 0; i < printed->length_count; i++) {
        const uint64_t bytes = (bindings[printed->lengths[i]].range.bytes + 3) & ~UINT64_C(3); /* kernels see words */
        words[at++] = (uint32_t)bytes;
        words[at++] = (uint32_t)(bytes >> 32);
    }
    return HDCU_CALL(&e->device->api, LaunchKernel, kernel->kernel, groups[0], groups[1], groups[2], printed->info.workgroup[0],
                     printed->info.workgroup[1], printed->info.workgroup[2], 0, e->device->stream, arguments, NULL);
}

static bool copy(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    return HDCU_CALL(&e->device->api, MemcpyAsync, address_of(e, to), address_of(e, from), (size_t)to->bytes, e->device->stream);
}

static bool fill(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *to = &cmd->as.fill.to;
    return HDCU_CALL(&e->device->api, MemsetD32Async, address_of(e, to), cmd->as.fill.value, (size_t)(to->bytes / 4), e->device->stream);
}

static bool mark(encoder *e) {
    hdcu_job *job = e->job;
    hdcu_api *api = &e->device->api;
    if (!job) return true;
    hdcu_event *event = &job->marks[job->mark_count];
    if (!HDCU_CALL(api, EventCreate, event, 0)) return false;
    job->mark_count++;
    return HDCU_CALL(api, EventRecord, *event, e->device->stream);
}

static bool encode(encoder *e) {
    bool fine = true;
    for (uint32_t i = 0; i < e->submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &e->submission->cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: fine = depend(e) && dispatch(e, cmd) && note(e); break;
        case HDI_CMD_COPY:     fine = depend(e) && copy(e, cmd) && note(e); break;
        case HDI_CMD_FILL:     fine = depend(e) && fill(e, cmd) && note(e); break;
        case HDI_CMD_BARRIER:  barrier(e); break;
        case HDI_CMD_MARK:     fine = mark(e); break;
        }
    }
    return fine && (!e->job || e->job->mark_count == 0 || mark(e));
}

hd_status hdcu_enqueue(hdi_backend_device *device, const hdi_submission *submission, hdcu_job *job, hd_error *error) {
    encoder e = { .device = device, .submission = submission, .job = submission->timestamps ? job : NULL };
    return encode(&e) ? HD_OK : hdcu_fail(&device->api, error, "handing %u commands over", submission->cmds->cmd_count);
}

/* ---- takes ---- */

static void end_take(hdi_backend_device *device, hdcu_take *take) {
    hdi_list_remove(&take->link);
    HDCU_END(device, GraphExecDestroy, take->exec);
    hdi_free(device->host->allocator, take->keys, take->key_capacity * sizeof *take->keys);
    hdi_free(device->host->allocator, take, sizeof *take);
}

static void bury_take(hdi_backend_device *device, hdcu_take *take) {
    hdi_list_remove(&take->link);
    hdi_list_add(&device->dead_takes, &take->link);
}

void hdcu_take_collect(hdi_backend_device *device, bool all) {
    for (hdi_link *at = device->dead_takes.next, *next; at != &device->dead_takes; at = next) {
        next = at->next;
        hdcu_take *take = HDI_OBJECT(at, hdcu_take, link);
        if (all || take->last_ticket <= device->done) end_take(device, take);
    }
}

void hdcu_forget(hdi_backend_device *device, hdi_recording *recording) {
    if (!recording) return;
    while (!hdi_list_empty(&recording->takes)) bury_take(device, HDI_OBJECT(recording->takes.next, hdcu_take, link));
    hdi_list_remove(&recording->link);
    hdi_free(device->host->allocator, recording, sizeof *recording);
    hdcu_take_collect(device, false);
}

static hdcu_slot_key key_of(const hdi_slot *slot) { return (hdcu_slot_key){ slot->memory ? slot->memory->serial : 0, slot->offset, slot->bytes }; }

static bool fits(const hdcu_take *take, const hdi_submission *submission) {
    if (take->key_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < take->key_count; i++) {
        const hdcu_slot_key key = key_of(&submission->slots[i]);
        if (key.serial != take->keys[i].serial || key.offset != take->keys[i].offset || key.bytes != take->keys[i].bytes) return false;
    }
    return true;
}

/* Captures the commands; the stream leaves its capture whatever happens. */
static bool capture(hdi_backend_device *device, const hdi_submission *submission, hdcu_take *take) {
    hdcu_api *api = &device->api;
    hdcu_graph graph = NULL;
    encoder e = { .device = device, .submission = submission, .captures = true };
    if (!HDCU_CALL(api, StreamBeginCapture, device->stream, HDCU_CAPTURE_RELAXED)) return false;
    const bool encoded = encode(&e);
    const hdcu_function function = api->function;
    const int result = api->result;
    const int ended = api->StreamEndCapture(device->stream, &graph);
    api->function = encoded ? HDCU_FN_StreamEndCapture : function;
    api->result = encoded ? ended : result;
    const bool fine = encoded && ended == HDCU_SUCCESS && HDCU_CALL(api, GraphInstantiate, &take->exec, graph, 0);
    if (!fine) take->exec = NULL;
    if (graph) api->GraphDestroy(graph);
    return fine;
}

static hd_status new_take(hdi_backend_device *device, const hdi_submission *submission, hdi_recording *recording, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    const uint32_t count = submission->cmds->slot_count;
    hdcu_take *take = hdi_alloc(allocator, sizeof *take);
    if (take) hdi_list_add(&recording->takes, &take->link);
    if (!take || !hdi_grow(allocator, &take->keys, &take->key_capacity, count, sizeof *take->keys)) {
        if (take) end_take(device, take);
        return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0, "no memory for a recording");
    }
    for (uint32_t i = 0; i < count; i++) take->keys[i] = key_of(&submission->slots[i]);
    take->key_count = count;
    if (capture(device, submission, take)) {
        recording->take_count++;
        return HD_OK;
    }
    hd_status status = hdcu_fail(&device->api, error, "recording %u commands", submission->cmds->cmd_count);
    end_take(device, take);
    return status;
}

static hdi_recording *recording_of(hdi_backend_device *device, const hdi_submission *submission) {
    if (*submission->recording) return *submission->recording;
    hdi_recording *recording = hdi_alloc(device->host->allocator, sizeof *recording);
    if (!recording) return NULL;
    hdi_list_init(&recording->takes);
    hdi_list_add(&device->recordings, &recording->link);
    return *submission->recording = recording;
}

hd_status hdcu_take_of(hdi_backend_device *device, const hdi_submission *submission, hdcu_take **out_take, bool *out_new, hd_error *error) {
    hdi_recording *recording = recording_of(device, submission);
    if (!recording) return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0, "no memory for a recording");
    *out_new = false;
    for (hdi_link *at = recording->takes.next; at != &recording->takes; at = at->next) {
        *out_take = HDI_OBJECT(at, hdcu_take, link);
        if (fits(*out_take, submission)) return HD_OK;
    }
    hd_status status = new_take(device, submission, recording, error);
    if (status) return status;
    *out_take = HDI_OBJECT(recording->takes.previous, hdcu_take, link);
    *out_new = true;
    if (recording->take_count > TAKES_KEPT) { /* the oldest goes */
        recording->take_count--;
        bury_take(device, HDI_OBJECT(recording->takes.next, hdcu_take, link));
    }
    return HD_OK;
}
