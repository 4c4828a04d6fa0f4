/* stream.c: runs of a plan that overlap. The plan's kernels, scratch, constants, states and weights are shared, since
 * its runs follow each other on the compute queue; each set of the stream has memory of its own for what changes from
 * batch to batch, and staging for it where the host does not see that memory. What uses the same memory runs in order
 * (backend.h), so a run is three submissions and nothing else: inputs up, the plan's commands, outputs down. */
#include "run/run.h"

enum { DEPTH = 3, MOST_DEPTH = 8 };

/* A slot of the plan in one set. */
typedef struct port {
    hdi_memory *memory;  /* in place of the plan's own; made when a run needs it first */
    hdi_memory *stage;   /* that the host sees, where it does not see the memory; likewise */
    char       *pointer; /* to what the host sees of either */
    uint64_t    bytes;   /* of each */
} port;

/* Copies in one direction, one submission: commands that stay as long as runs name the same things. */
typedef struct moves {
    hdi_cmds       cmds;
    hdi_slot      *slots; /* from, to, from, to */
    uint32_t       slot_count, slot_capacity;
    uint64_t       shape; /* a hash of the bytes that the commands copy */
    hdi_recording *recording;
} moves;

typedef struct delivery {
    const char *from;
    void       *to;
    uint64_t    bytes;
} delivery;

typedef struct hdi_stream_set {
    port          *ports;   /* by slot */
    hdi_slot      *instead; /* by slot: what the run binds */
    moves          up, down;
    hdi_recording *recording;
    delivery      *deliveries; uint32_t delivery_count, delivery_capacity; /* that the run still owes */
    uint64_t       run, ticket; /* the last run here, from 1, and its last submission */
} set;

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a stream");
}

/* ---- the host's copies ---- */

typedef void (*copier)(hdi_thread_pool *thread_pool, void *to, const void *from, uint64_t bytes);

/* `label` and `run` are for traces. */
static void copy_bytes(hd_device *device, copier copy, void *to, const void *from, uint64_t bytes, const char *label,
                       uint64_t run) {
    const uint64_t began_ns = hdi_now_ns();
    copy(device->host->thread_pool, to, from, bytes);
    hdi_trace_host(device, label, began_ns, bytes, run);
}

/* ---- ending ---- */

static void end_moves(hd_device *device, moves *m) {
    if (m->recording) device->backend->forget(device->handle, m->recording);
    hdi_cmds_free(&m->cmds);
    hdi_free(device->host->allocator, m->slots, m->slot_capacity * sizeof *m->slots);
}

/* Everything, once no submission uses it any more; the plan may be gone. */
static void end_now(void *object) {
    hd_stream *stream = object;
    hd_device *device = stream->device;
    const hd_allocator *allocator = device->host->allocator;
    for (uint32_t i = 0; i < stream->depth; i++) {
        set *s = &stream->sets[i];
        hdi_mutex_lock(&device->lock);
        end_moves(device, &s->up);
        end_moves(device, &s->down);
        if (s->recording) device->backend->forget(device->handle, s->recording);
        hdi_mutex_unlock(&device->lock);
        for (uint32_t slot = 0; s->ports && slot < stream->slot_count; slot++) {
            hdi_device_free(device, s->ports[slot].memory, s->ports[slot].bytes);
            hdi_device_free(device, s->ports[slot].stage, s->ports[slot].bytes);
        }
        hdi_free(allocator, s->ports, stream->slot_count * sizeof *s->ports);
        hdi_free(allocator, s->instead, stream->slot_count * sizeof *s->instead);
        hdi_free(allocator, s->deliveries, s->delivery_capacity * sizeof *s->deliveries);
    }
    hdi_free(allocator, stream->sets, stream->depth * sizeof *stream->sets);
    hdi_free(allocator, stream, sizeof *stream);
}

void hdi_stream_end(hd_stream *stream) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < stream->depth; i++) last = HDI_MAX(last, stream->sets[i].ticket);
    hdi_device_free_later(stream->device, last, end_now, stream);
}

/* ---- making ---- */

hd_status hdi_stream_make(hd_plan *plan, uint32_t depth, hd_stream **out_stream, hd_error *error) {
    if (depth > MOST_DEPTH)
        return hdi_fail(error, HD_STATUS_LIMIT, "a stream of depth %u; it is 1 to %d", depth, MOST_DEPTH);
    if (plan->loaded->plan->segment_count > 1 || plan->alternative_count > 1 || plan->desc.failover)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "streams take plans on one device, without fail-over and alternatives");
    const hd_allocator *allocator = plan->loaded->allocator;
    hd_stream *stream = hdi_alloc(allocator, sizeof *stream);
    if (!stream) return no_memory(error);
    stream->plan = plan;
    stream->core = plan->loaded->segments[0];
    stream->device = stream->core->device;
    stream->slot_count = stream->core->schedule->slot_count;
    stream->sets = hdi_alloc(allocator, (depth ? depth : DEPTH) * sizeof *stream->sets);
    if (stream->sets) stream->depth = depth ? depth : DEPTH;
    bool room = stream->sets != NULL;
    for (uint32_t i = 0; i < stream->depth; i++) {
        set *s = &stream->sets[i];
        hdi_cmds_init(&s->up.cmds, allocator);
        hdi_cmds_init(&s->down.cmds, allocator);
        s->ports = hdi_alloc(allocator, stream->slot_count * sizeof *s->ports);
        s->instead = hdi_alloc(allocator, stream->slot_count * sizeof *s->instead);
        room = room && s->ports && s->instead;
    }
    if (room) {
        *out_stream = stream;
        return HD_OK;
    }
    end_now(stream);
    return no_memory(error);
}

/* ---- what a run takes and gives ---- */

static hd_status find(const hd_stream *stream, const hdi_stream_item *it, uint32_t *out_slot, hd_error *error) {
    const char *noun = it->in ? "input" : "output";
    if (!it->name) return hdi_fail(error, HD_STATUS_NULL_POINTER, "an %s of a stream has no name", noun);
    if (!hdi_core_find(stream->core, it->name, it->in ? HDI_KIND(INPUT) : HDI_KIND(OUTPUT), out_slot))
        return hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "no %s is called \"%s\"; states are the plan's", noun,
                        it->name);
    const uint64_t wanted = stream->core->schedule->slots[*out_slot].tensor_bytes;
    if (it->bytes != wanted)
        return hdi_fail(error, HD_STATUS_SHAPE, "\"%s\" has %llu bytes, not %llu", it->name, (unsigned long long)wanted,
                        (unsigned long long)it->bytes);
    if (!it->data == !it->buffer)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "\"%s\" needs data or a buffer, and not both", it->name);
    if (!it->buffer) return HD_OK;
    char name[HDI_BUFFER_TEXT];
    if (it->buffer->device != stream->device)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "\"%s\": %s is on another device", it->name,
                        hdi_buffer_text(it->buffer, name));
    if (it->offset % 256 != 0)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "\"%s\": offset %llu is no multiple of 256", it->name,
                        (unsigned long long)it->offset);
    const uint64_t needed = stream->core->schedule->slots[*out_slot].bytes;
    const hd_status status = hdi_buffer_check_use(it->buffer, it->name, it->in, !it->in, error);
    return status ? status : hdi_buffer_check_range(it->buffer, it->name, it->offset, needed, true, error);
}

/* All of them are right, and none stands twice; marks the slots in `instead`, which holds nothing else yet. */
static hd_status check(const hd_stream *stream, const hdi_stream_item *it, hdi_slot *instead, hd_error *error) {
    uint32_t slot;
    hd_status status = find(stream, it, &slot, error);
    if (!status && instead[slot].bytes)
        status = hdi_fail(error, HD_STATUS_NAME_TAKEN, "\"%s\" is named twice", it->name);
    if (!status) instead[slot].bytes = stream->core->schedule->slots[slot].bytes;
    return status;
}

/* Adds a copy. */
static hd_status move(hd_stream *stream, moves *m, hdi_slot from, hdi_slot to, hd_error *error) {
    if (!hdi_grow(stream->device->host->allocator, &m->slots, &m->slot_capacity, (size_t)m->slot_count + 2,
                  sizeof *m->slots))
        return no_memory(error);
    m->slots[m->slot_count++] = from;
    m->slots[m->slot_count++] = to;
    return HD_OK;
}

/* Memory that the host sees, for a slot whose own it does not see. */
static hd_status stage(hd_stream *stream, port *p, uint32_t slot, bool in, hd_error *error) {
    const hdi_schedule_slot *made = &stream->core->schedule->slots[slot];
    const hdi_alloc_desc desc = { made->bytes, in ? HD_BUFFER_UPLOAD : HD_BUFFER_READBACK, made->name, NULL,
                                  in ? HD_MEMORY_INPUT : HD_MEMORY_OUTPUT };
    if (p->pointer) return HD_OK;
    hd_status status = p->stage ? HD_OK : hdi_device_alloc(stream->device, &desc, &p->stage, error);
    if (!status && !(p->pointer = hdi_device_map(stream->device, p->stage)))
        status = hdi_fail(error, HD_STATUS_MEMORY_TYPE_NOT_FOUND, "the device has no memory that the host sees");
    return status;
}

/* Finds where the item's bytes lie for the run, and how they come there or away. */
static hd_status place(hd_stream *stream, set *s, const hdi_stream_item *it, hd_error *error) {
    const hdi_caps *caps = &stream->device->found.caps;
    moves *m = it->in ? &s->up : &s->down;
    uint32_t at;
    hd_status status = find(stream, it, &at, error);
    if (status) return status;
    port *p = &s->ports[at];
    const uint64_t bytes = stream->core->schedule->slots[at].bytes;
    const hdi_slot outside = { it->buffer ? it->buffer->memory : NULL, it->offset, bytes };
    if (it->buffer && (caps->unified_memory || caps->native_kernels)) { /* kernels reach it as fast as any other */
        s->instead[at] = outside;
        return HD_OK;
    }
    if (!p->memory) {
        status = hdi_core_alloc(stream->core, at, &p->memory, error);
        if (status) return status;
        p->bytes = bytes;
        p->pointer = hdi_device_map(stream->device, p->memory);
    }
    s->instead[at] = (hdi_slot){ p->memory, 0, bytes };
    const hdi_slot inside = s->instead[at];
    if (it->buffer) return move(stream, m, it->in ? outside : inside, it->in ? inside : outside, error);
    status = stage(stream, p, at, it->in, error);
    if (!status && p->stage) {
        const hdi_slot staged = { p->stage, 0, bytes };
        status = move(stream, m, it->in ? staged : inside, it->in ? inside : staged, error);
    }
    if (status) return status;
    if (it->in) {
        copy_bytes(stream->device, p->stage ? hdi_thread_pool_stage : hdi_thread_pool_copy, p->pointer, it->data,
                   it->bytes, "copy in", stream->runs + 1);
        return HD_OK;
    }
    if (!hdi_grow(stream->device->host->allocator, &s->deliveries, &s->delivery_capacity, (size_t)s->delivery_count + 1,
                  sizeof *s->deliveries))
        return no_memory(error);
    s->deliveries[s->delivery_count++] = (delivery){ p->pointer, it->data, it->bytes };
    return HD_OK;
}

/* ---- a run ---- */

static void deliver(hd_stream *stream, set *s) {
    for (uint32_t i = 0; i < s->delivery_count; i++)
        copy_bytes(stream->device, hdi_thread_pool_copy, s->deliveries[i].to, s->deliveries[i].from,
                   s->deliveries[i].bytes, "copy out", s->run);
    s->delivery_count = 0;
}

void hdi_stream_deliver(hd_stream *stream, uint64_t number) {
    set *s = &stream->sets[number % stream->depth];
    if (s->run == number) deliver(stream, s);
}

bool hdi_stream_owes(const hd_stream *stream, uint64_t number) {
    const set *s = &stream->sets[number % stream->depth];
    return s->run == number && s->delivery_count > 0;
}

/* The commands for the copies, made again only where the copies are others than before. */
static hd_status shape(moves *m, hd_device *device, hd_error *error) {
    uint64_t hash = hdi_hash(HDI_HASH_START, &m->slot_count, sizeof m->slot_count);
    for (uint32_t i = 0; i < m->slot_count; i++) hash = hdi_hash(hash, &m->slots[i].bytes, sizeof m->slots[i].bytes);
    if (hash == m->shape) return HD_OK;
    if (m->recording) {
        hdi_mutex_lock(&device->lock);
        device->backend->forget(device->handle, m->recording);
        hdi_mutex_unlock(&device->lock);
        m->recording = NULL;
    }
    hdi_cmds_free(&m->cmds);
    hdi_cmds_init(&m->cmds, device->host->allocator);
    m->shape = 0;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < m->slot_count && !status; i += 2) {
        const uint64_t bytes = m->slots[i].bytes;
        uint32_t from, to;
        status = hdi_cmds_slot(&m->cmds, bytes, &from);
        if (!status) status = hdi_cmds_slot(&m->cmds, bytes, &to);
        if (!status) status = hdi_cmds_copy(&m->cmds, (hdi_range){ from, 0, bytes }, (hdi_range){ to, 0, bytes });
    }
    if (status) return no_memory(error);
    m->shape = hash;
    return HD_OK;
}

static hd_status hand_over_moves(hd_stream *stream, set *s, moves *m, hdi_queue queue, hd_error *error) {
    if (!m->slot_count) return HD_OK;
    hdi_submission submission = {
        .cmds = &m->cmds, .slots = m->slots, .queue = queue, .recording = &m->recording, .run = stream->runs + 1
    };
    return hdi_device_submit(stream->device, &submission, &s->ticket, error);
}

static hd_status hand_over(hd_stream *stream, set *s, hd_error *error) {
    const hdi_core_run run = { .instead = s->instead, .recording = &s->recording, .number = stream->runs + 1 };
    uint64_t recorded;
    hd_status status = shape(&s->up, stream->device, error);
    if (!status) status = shape(&s->down, stream->device, error);
    if (!status) status = hand_over_moves(stream, s, &s->up, HDI_QUEUE_UPLOAD, error);
    if (!status) status = hdi_core_submit(stream->core, &run, &recorded, error);
    if (status) return status;
    stream->plan->loaded->runs++;
    stream->plan->loaded->records += recorded > 0;
    s->ticket = stream->core->last_ticket;
    return hand_over_moves(stream, s, &s->down, HDI_QUEUE_DOWNLOAD, error);
}

/* Buffers of the caller's are in use until the run is done. */
static void note_buffers(const hdi_stream_item *items, size_t count, uint64_t ticket) {
    for (size_t i = 0; i < count; i++)
        if (items[i].buffer) atomic_store(&items[i].buffer->last_ticket, ticket);
}

static hd_status start(hd_stream *stream, set *s, const hdi_stream_item *items, size_t count, hd_error *error) {
    hd_status status = hdi_device_wait(stream->device, s->ticket, 0, error);
    if (status) return status;
    deliver(stream, s);
    memset(s->instead, 0, stream->slot_count * sizeof *s->instead);
    for (size_t i = 0; i < count && !status; i++) status = check(stream, &items[i], s->instead, error);
    memset(s->instead, 0, stream->slot_count * sizeof *s->instead);
    s->up.slot_count = s->down.slot_count = 0;
    for (size_t i = 0; i < count && !status; i++) status = place(stream, s, &items[i], error);
    if (!status) status = hdi_core_check_inputs(stream->core, s->instead, error);
    const uint64_t before = s->ticket;
    if (!status) status = hand_over(stream, s, error);
    if (s->ticket != before) note_buffers(items, count, s->ticket); /* also where it broke off */
    if (status) s->delivery_count = 0;
    else s->run = ++stream->runs;
    return status;
}

hd_status hdi_stream_submit(hd_stream *stream, const hdi_stream_item *items, size_t count, hd_ticket *ticket,
                            hd_error *error) {
    set *s = &stream->sets[(stream->runs + 1) % stream->depth];
    const hd_status status = start(stream, s, items, count, error);
    if (status) return status;
    ticket->plan = stream->plan;
    ticket->stream = stream;
    ticket->number = s->run;
    ticket->run.count = 1;
    ticket->run.last[0] = (hdi_last){ stream->device, s->ticket };
    return HD_OK;
}

hd_status hdi_stream_finish(hd_stream *stream, uint64_t timeout_ns, hd_error *error) {
    hd_status status = HD_OK;
    const uint64_t until_ns = hdi_now_ns() + (timeout_ns ? timeout_ns : stream->device->host->wait_ns);
    for (uint32_t i = 1; i <= stream->depth && !status; i++) { /* the oldest first */
        set *s = &stream->sets[(stream->runs + i) % stream->depth];
        const uint64_t now_ns = hdi_now_ns();
        status = hdi_device_wait(stream->device, s->ticket, until_ns > now_ns ? until_ns - now_ns : 1, error);
        if (!status) deliver(stream, s);
    }
    return status;
}
