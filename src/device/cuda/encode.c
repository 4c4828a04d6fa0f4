/* encode.c: commands to calls on a stream; and, captured, to graphs. Dependencies come from barriers alone: what lies
 * between two of them may run at once. In a graph such commands are dealt out to a few lanes, each a chain, so that
 * wide stretches have few edges; a stretch begins where all lanes of the one before have ended. */
#include "device/cuda/cu.h"
#include "device/translate.h"

enum { LANES = 8 };

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    hdcu_stream           stream;
    hdcu_job             *job;   /* takes the marks' events; NULL: no timestamps */
    bool                  captures;
    hdcu_node before[LANES], lanes[LANES]; /* the ends of the stretch before, and so far of this one */
    uint32_t  before_count, lane_count, next;
    bool early;                /* kernels behind kernels may begin before these have ended (the kernels wait) */
    bool before_kernels, kernels; /* are all of the stretch before kernels that may? all so far of this one? */
} encoder;

/* ---- dependencies of what is captured ---- */

static bool depend(encoder *e, bool waits_itself) {
    const uint32_t lane = e->next % LANES;
    const bool behind_own = lane < e->lane_count, kernels = behind_own ? e->kernels : e->before_kernels;
    if (!e->captures) return true;
    hdcu_node *nodes = behind_own ? &e->lanes[lane] : e->before;
    const uint32_t count = behind_own ? 1 : e->before_count;
    if (!e->early || !waits_itself || !kernels || count == 0)
        return HDCU_CALL(&e->device->api, StreamUpdateCaptureDependencies, e->stream, nodes, count,
                         HDCU_SET_DEPENDENCIES);
    hdcu_edge edges[LANES];
    for (uint32_t i = 0; i < count; i++)
        edges[i] = (hdcu_edge){ .from_port = HDCU_PORT_PROGRAMMATIC, .kind = HDCU_EDGE_PROGRAMMATIC };
    return HDCU_CALL(&e->device->api, StreamUpdateCaptureEdges, e->stream, nodes, edges, count, HDCU_SET_DEPENDENCIES);
}

/* The node that the last call became is all that the stream now depends on. */
static bool note(encoder *e, bool waits_itself) {
    const uint32_t lane = e->next % LANES;
    const hdcu_node *nodes = NULL;
    size_t count = 0;
    int state = 0;
    if (!e->captures) return true;
    if (!HDCU_CALL(&e->device->api, StreamGetCaptureInfo, e->stream, &state, NULL, NULL, &nodes, &count)) return false;
    if (count != 1) {
        hdcu_last.result = HDCU_UNKNOWN;
        return false;
    }
    e->lanes[lane] = nodes[0];
    e->kernels = waits_itself && (e->kernels || e->next == 0);
    e->lane_count = HDI_MAX(e->lane_count, lane + 1);
    e->next++;
    return true;
}

static void barrier(encoder *e) {
    if (e->lane_count == 0) return;
    memcpy(e->before, e->lanes, e->lane_count * sizeof *e->lanes);
    e->before_count = e->lane_count;
    e->before_kernels = e->kernels;
    e->lane_count = e->next = 0;
}

/* ---- commands ---- */

static uint64_t address_of(const encoder *e, const hdi_range *range) {
    const hdi_slot *slot = &e->submission->slots[range->slot];
    return slot->memory->address + slot->offset + range->offset;
}

static bool multiply(encoder *e, const hdi_cmd *cmd, const hdcu_product *product) {
    const hdi_binding *bindings = &e->submission->cmds->bindings[cmd->as.dispatch.binding_first];
    uint64_t addresses[HDI_PRODUCT_BINDINGS];
    for (int i = 0; i < HDI_PRODUCT_BINDINGS; i++) addresses[i] = address_of(e, &bindings[i].range);
    return hdcu_product_run(e->device, product, addresses, bindings[3].range.bytes);
}

static bool dispatch(encoder *e, const hdi_cmd *cmd) {
    const hdi_cmds *cmds = e->submission->cmds;
    const hdi_loaded_kernel *kernel = e->submission->kernels[cmd->as.dispatch.kernel];
    const hdi_spirv_printed *printed = &kernel->printed;
    const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
    const uint32_t *groups = cmd->as.dispatch.groups;
    if (kernel->product) return multiply(e, cmd, kernel->product);
    uint64_t addresses[HDI_SPIRV_MAX_BINDINGS];
    uint32_t words[HDI_MOST_LAUNCH_WORDS];
    void *arguments[HDI_SPIRV_MAX_BINDINGS + 1];
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        addresses[i] = address_of(e, &bindings[printed->buffers[i]].range);
        arguments[i] = &addresses[i];
    }
    arguments[printed->buffer_count] = words;
    hdi_launch_words(cmds, cmd, printed, NULL, words);
    return HDCU_CALL(&e->device->api, LaunchKernel, kernel->kernel, groups[0], groups[1], groups[2],
                     printed->info.workgroup[0], printed->info.workgroup[1], printed->info.workgroup[2],
                     printed->shared_at_launch ? printed->shared_bytes : 0, e->stream, arguments, NULL);
}

static bool copy(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    return HDCU_CALL(&e->device->api, MemcpyAsync, address_of(e, to), address_of(e, from), (size_t)to->bytes,
                     e->stream);
}

static bool fill(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *to = &cmd->as.fill.to;
    return HDCU_CALL(&e->device->api, MemsetD32Async, address_of(e, to), cmd->as.fill.value, (size_t)(to->bytes / 4),
                     e->stream);
}

static bool mark(encoder *e) {
    hdcu_job *job = e->job;
    hdcu_api *api = &e->device->api;
    if (!job) return true;
    hdcu_event *event = &job->marks[job->mark_count];
    if (!HDCU_CALL(api, EventCreate, event, 0)) return false;
    job->mark_count++;
    return HDCU_CALL(api, EventRecord, *event, e->stream);
}

/* May it begin before what is in front of it has ended? Only few workgroups: of many, those that wait keep units from
 * others that could work. */
static bool begins_early(const encoder *e, const hdi_cmd *cmd) {
    enum { GROUPS_A_UNIT = 8 };
    const uint32_t *groups = cmd->as.dispatch.groups;
    const uint64_t count = (uint64_t)groups[0] * groups[1] * groups[2];
    return e->submission->kernels[cmd->as.dispatch.kernel]->printed.waits &&
           count <= GROUPS_A_UNIT * e->device->found.caps.compute_units;
}

static bool encode(encoder *e) {
    bool fine = true;
    for (uint32_t i = 0; i < e->submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &e->submission->cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: {
            const bool waits = begins_early(e, cmd);
            fine = depend(e, waits) && dispatch(e, cmd) && note(e, waits);
            break;
        }
        case HDI_CMD_COPY:     fine = depend(e, false) && copy(e, cmd) && note(e, false); break;
        case HDI_CMD_FILL:     fine = depend(e, false) && fill(e, cmd) && note(e, false); break;
        case HDI_CMD_BARRIER:  barrier(e); break;
        case HDI_CMD_MARK:     fine = mark(e); break;
        }
    }
    return fine && (!e->job || e->job->mark_count == 0 || mark(e));
}

hd_status hdcu_enqueue(hdi_backend_device *device, const hdi_submission *submission, hdcu_job *job, hd_error *error) {
    encoder e = { .device = device,
                  .submission = submission,
                  .stream = device->streams[submission->queue],
                  .job = submission->timestamps ? job : NULL };
    return encode(&e) ? HD_OK : hdcu_fail(&device->api, error, "handing %u commands over", submission->cmds->cmd_count);
}

/* ---- recordings ---- */

/* Captures the commands; the stream leaves its capture whatever happens. */
static bool capture(hdi_backend_device *device, const hdi_submission *submission, bool early,
                    hdcu_command_buffer *buffer) {
    hdcu_api *api = &device->api;
    hdcu_graph graph = NULL;
    encoder e = {
        .device = device, .submission = submission, .stream = device->streams[submission->queue], .captures = true,
        .early = early
    };
    if (!HDCU_CALL(api, StreamBeginCapture, e.stream, HDCU_CAPTURE_RELAXED)) return false;
    const bool encoded = encode(&e);
    const hdcu_function function = hdcu_last.function;
    const int result = hdcu_last.result;
    const int ended = api->StreamEndCapture(e.stream, &graph);
    hdcu_last.function = encoded ? HDCU_FN_StreamEndCapture : function;
    hdcu_last.result = encoded ? ended : result;
    const bool fine = encoded && ended == HDCU_SUCCESS && HDCU_CALL(api, GraphInstantiate, &buffer->exec, graph, 0);
    if (!fine) buffer->exec = NULL;
    if (graph) api->GraphDestroy(graph);
    return fine;
}

hd_status hdcu_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error) {
    hdcu_command_buffer *buffer = HDI_OBJECT(out_buffer, hdcu_command_buffer, base);
    if (capture(device, submission, device->early_edges, buffer)) return HD_OK;
    const bool refused = hdcu_last.function == HDCU_FN_StreamUpdateCaptureEdges ||
                         hdcu_last.function == HDCU_FN_GraphInstantiate;
    if (device->early_edges && refused && !hdcu_is_loss()) { /* a driver may take no such edges */
        device->early_edges = false;
        if (capture(device, submission, false, buffer)) return HD_OK;
    }
    return hdcu_fail(&device->api, error, "recording %u commands", submission->cmds->cmd_count);
}

void hdcu_record_end(hdi_backend_device *device, hdi_command_buffer *buffer) {
    HDCU_END(device, GraphExecDestroy, HDI_OBJECT(buffer, hdcu_command_buffer, base)->exec);
}
