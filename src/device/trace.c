/* trace.c: what a device's queues did when. A submission is reported once it is found done: by the device's own clock,
 * set against the host's when the trace begins, or else as the host saw it. */
#include "device/device.h"

/* So many are left to be reported at most: back ends keep the times of their last 64 submissions. */
enum { MOST_PENDING = 32 };

typedef struct pending {
    uint64_t    ticket, submitted_ns, bytes, run;
    const char *label;
    hdi_queue   queue;
    bool        timed;
} pending;

struct hdi_trace {
    hd_trace_fn receive;
    void       *user;
    bool        timed;      /* the device has a clock */
    int64_t     offset_ns;  /* from its clock to the host's */
    pending     pending[MOST_PENDING]; /* by ticket */
    uint32_t    count;
    uint64_t    end_ns[HDI_QUEUE_COUNT]; /* of the last event there */
};

static const char *queue_name(const hd_device *device, hdi_queue queue) {
    static const char *const names[HDI_QUEUE_COUNT] = { "compute", "upload", "download" };
    return device->found.info.queues > 1 ? names[queue] : "queue";
}

static void report(const hd_device *device, hd_trace_event event) {
    event.device = device->found.info.id;
    device->trace->receive(device->trace->user, &event);
}

static void report_done(hd_device *device, const pending *done) {
    hdi_trace *trace = device->trace;
    const hdi_queue queue = device->found.info.queues > 1 ? done->queue : HDI_QUEUE_COMPUTE;
    hd_trace_event event = {
        .queue = queue_name(device, queue), .label = done->label, .bytes = done->bytes, .run = done->run
    };
    uint64_t ns[2];
    event.measured = done->timed && !device->backend->span(device->handle, done->ticket, ns, NULL);
    if (event.measured) {
        event.begin_ns = ns[0] + (uint64_t)trace->offset_ns;
        event.end_ns = ns[1] + (uint64_t)trace->offset_ns;
    } else {
        event.begin_ns = HDI_MAX(done->submitted_ns, trace->end_ns[queue]);
        event.end_ns = hdi_now_ns();
    }
    trace->end_ns[queue] = event.end_ns;
    report(device, event);
}

void hdi_trace_collect(hd_device *device) {
    hdi_trace *trace = device->trace;
    uint32_t done = 0;
    while (done < trace->count && trace->pending[done].ticket <= device->done_ticket)
        report_done(device, &trace->pending[done++]);
    trace->count -= done;
    memmove(trace->pending, trace->pending + done, trace->count * sizeof *trace->pending);
}

/* Makes room for one more, and learns what is done. */
void hdi_trace_prepare(hd_device *device, hdi_submission *submission) {
    hdi_trace *trace = device->trace;
    submission->timed = trace->timed;
    if (trace->count == 0) return;
    const uint64_t oldest = trace->pending[0].ticket;
    bool done = false;
    const hd_status status = trace->count < MOST_PENDING
                                 ? device->backend->poll(device->handle, oldest, &done, NULL)
                                 : device->backend->wait(device->handle, oldest, device->host->wait_ns, NULL);
    if (!status && (done || trace->count == MOST_PENDING)) {
        device->done_ticket = HDI_MAX(device->done_ticket, oldest);
        hdi_trace_collect(device);
    }
}

static uint64_t bytes_of(const hdi_submission *submission) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < submission->cmds->cmd_count; i++)
        if (submission->cmds->cmds[i].kind == HDI_CMD_COPY) bytes += submission->cmds->cmds[i].as.copy.to.bytes;
    return bytes;
}

void hdi_trace_note(hd_device *device, const hdi_submission *submission, hdi_queue asked, uint64_t began_ns,
                    uint64_t ticket) {
    static const char *const labels[HDI_QUEUE_COUNT] = { "run", "upload", "download" };
    hdi_trace *trace = device->trace;
    const uint64_t now_ns = hdi_now_ns();
    report(device, (hd_trace_event){ .queue = "host", .label = "hand over", .begin_ns = began_ns, .end_ns = now_ns,
        .run = submission->run });
    if (trace->count == MOST_PENDING) return; /* the device does not get on, and the submission is left out */
    trace->pending[trace->count++] = (pending){ ticket, began_ns,
        asked == HDI_QUEUE_COMPUTE ? 0 : bytes_of(submission), submission->run, labels[asked], submission->queue,
        submission->timed };
}

void hdi_trace_host(hd_device *device, const char *label, uint64_t began_ns, uint64_t bytes, uint64_t run) {
    hdi_mutex_lock(&device->lock);
    if (device->trace)
        report(device, (hd_trace_event){ .queue = "host", .label = label, .begin_ns = began_ns,
            .end_ns = hdi_now_ns(), .bytes = bytes, .run = run });
    hdi_mutex_unlock(&device->lock);
}

/* ---- the clocks ---- */

/* One small submission, and when the host and the device saw it: its middle is taken for the same moment. */
static hd_status look(hd_device *device, const hdi_cmds *cmds, const hdi_slot *slot, uint64_t *inout_least_ns,
                      int64_t *inout_offset_ns, hd_error *error) {
    hdi_submission submission = { .cmds = cmds, .slots = slot, .timed = true };
    uint64_t ticket, ns[2];
    const uint64_t began_ns = hdi_now_ns();
    hd_status status = hdi_device_submit(device, &submission, &ticket, error);
    if (!status) status = hdi_device_wait(device, ticket, 0, error);
    const uint64_t ended_ns = hdi_now_ns();
    if (status) return status;
    hdi_mutex_lock(&device->lock);
    status = device->backend->span(device->handle, ticket, ns, error);
    hdi_mutex_unlock(&device->lock);
    if (!status && ended_ns - began_ns < *inout_least_ns) {
        *inout_least_ns = ended_ns - began_ns;
        *inout_offset_ns = (int64_t)(began_ns + (ended_ns - began_ns) / 2) - (int64_t)(ns[0] + (ns[1] - ns[0]) / 2);
    }
    return status;
}

/* Sets the device's clock against the host's, by the quickest of some looks. */
static hd_status set_clock(hd_device *device, hdi_trace *trace, hd_error *error) {
    enum { LOOKS = 9 };
    const hdi_alloc_desc desc = { 256, HD_BUFFER_STORAGE, "clock", NULL, HD_MEMORY_STAGING };
    hdi_memory *memory;
    hdi_cmds cmds;
    uint32_t slot;
    uint64_t least_ns = UINT64_MAX;
    hd_status status = hdi_device_alloc(device, &desc, &memory, error);
    if (status) return status;
    hdi_cmds_init(&cmds, device->host->allocator);
    status = hdi_cmds_slot(&cmds, desc.bytes, &slot);
    if (!status) status = hdi_cmds_fill(&cmds, (hdi_range){ slot, 0, desc.bytes }, 0);
    if (status) hdi_fail(error, status, "no memory for a trace");
    for (int i = 0; i < LOOKS && !status; i++)
        status = look(device, &cmds, &(hdi_slot){ memory, 0, desc.bytes }, &least_ns, &trace->offset_ns, error);
    hdi_cmds_free(&cmds);
    hdi_device_free(device, memory, desc.bytes);
    return status;
}

/* ---- beginning and ending ---- */

void hdi_trace_free(hd_device *device) {
    hdi_free(device->host->allocator, device->trace, sizeof *device->trace);
    device->trace = NULL;
}

hd_status hdi_trace_set(hd_device *device, hd_trace_fn receive, void *user, hd_error *error) {
    hd_status status = hdi_device_wait_all(device, 0, error); /* reports what is left of an earlier trace */
    hdi_mutex_lock(&device->lock);
    hdi_trace_free(device);
    hdi_mutex_unlock(&device->lock);
    if (status || !receive) return status;
    hdi_trace *trace = hdi_alloc(device->host->allocator, sizeof *trace);
    if (!trace) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a trace");
    trace->receive = receive;
    trace->user = user;
    if (device->backend->span) {
        hd_error why = { 0 };
        status = set_clock(device, trace, &why);
        trace->timed = status == HD_OK;
        if (status == HD_STATUS_UNSUPPORTED) status = HD_OK;
        if (status && error) *error = why;
    }
    if (status) {
        hdi_free(device->host->allocator, trace, sizeof *trace);
        return status;
    }
    hdi_mutex_lock(&device->lock);
    device->trace = trace;
    hdi_mutex_unlock(&device->lock);
    return HD_OK;
}
