/* trace.c: events as the JSON object of the Trace Event Format: complete events ("X") in microseconds from the first
 * one on. */
#include "cli/trace.h"
#include <stdlib.h>
#include <string.h>

static const char *const rows[] = { "host", "upload", "compute", "download", "operations", "queue" };

static void receive(void *user, const hd_trace_event *event) {
    trace *t = user;
    if (t->count == t->capacity) {
        const size_t wanted = t->capacity ? 2 * t->capacity : 256;
        hd_trace_event *grown = realloc(t->events, wanted * sizeof *grown);
        t->failed |= !grown;
        if (!grown) return;
        t->events = grown;
        t->capacity = wanted;
    }
    t->events[t->count++] = *event;
}

hd_status trace_watch(trace *t, hd_device *device) {
    if (t->device_count == TRACE_MOST_DEVICES) return HD_STATUS_LIMIT;
    const hd_status status = hd_device_trace(device, receive, t);
    if (!status) t->devices[t->device_count++] = device;
    return status;
}

static void unwatch(trace *t) {
    while (t->device_count) t->failed |= hd_device_trace(t->devices[--t->device_count], NULL, NULL) != HD_OK;
}

void trace_add_operations(trace *t, const hd_timing *timings, size_t count) {
    unwatch(t);
    size_t run = t->count;
    while (run > 0 && strcmp(t->events[run - 1].label, "run") != 0) run--;
    if (run == 0) return;
    hd_trace_event event = t->events[run - 1];
    event.queue = "operations";
    for (size_t i = 0; i < count; i++) {
        event.label = timings[i].label;
        event.bytes = timings[i].bytes;
        event.end_ns = event.begin_ns + timings[i].ns;
        receive(t, &event);
        event.begin_ns = event.end_ns;
    }
}

void trace_free(trace *t) {
    unwatch(t);
    free(t->events);
    memset(t, 0, sizeof *t);
}

/* ---- JSON ---- */

static json_int_t row_of(const char *queue) {
    size_t row = 0;
    while (row + 1 < CLI_COUNT(rows) && strcmp(rows[row], queue) != 0) row++;
    return (json_int_t)row + 1;
}

static void add_name(json_t *events, const char *kind, json_int_t process, json_int_t row, const char *name, bool *ok) {
    json_t *event = json_object(), *arguments = json_object();
    cli_put(arguments, "name", cli_json_text(name), ok);
    cli_put(event, "name", json_string(kind), ok);
    cli_put(event, "ph", json_string("M"), ok);
    cli_put(event, "pid", json_integer(process), ok);
    cli_put(event, "tid", json_integer(row), ok);
    cli_put(event, "args", arguments, ok);
    *ok = json_array_append_new(events, event) == 0 && *ok;
}

static void add_event(json_t *events, json_int_t process, const hd_trace_event *e, uint64_t first_ns, bool *ok) {
    json_t *event = json_object(), *arguments = json_object();
    if (e->run) cli_put(arguments, "batch", json_integer((json_int_t)e->run), ok);
    if (e->bytes) cli_put(arguments, "bytes", json_integer((json_int_t)e->bytes), ok);
    cli_put(arguments, "clock", json_string(e->measured ? "device" : "host"), ok);
    cli_put(event, "name", json_string(e->label), ok);
    cli_put(event, "cat", json_string(e->queue), ok);
    cli_put(event, "ph", json_string("X"), ok);
    cli_put(event, "ts", json_real((double)(e->begin_ns - first_ns) / 1e3), ok);
    cli_put(event, "dur", json_real((double)(e->end_ns - e->begin_ns) / 1e3), ok);
    cli_put(event, "pid", json_integer(process), ok);
    cli_put(event, "tid", json_integer(row_of(e->queue)), ok);
    cli_put(event, "args", arguments, ok);
    *ok = json_array_append_new(events, event) == 0 && *ok;
}

static int by_begin(const void *a, const void *b) {
    const hd_trace_event *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The number of the event's device, from 1; names it, and the event's row, where they are met first. */
static json_int_t process_of(json_t *events, const hd_trace_event *e, const char *known[TRACE_MOST_DEVICES],
                             uint32_t named[TRACE_MOST_DEVICES], bool *ok) {
    size_t at = 0;
    while (at + 1 < TRACE_MOST_DEVICES && known[at] && strcmp(known[at], e->device) != 0) at++;
    const json_int_t process = (json_int_t)at + 1, row = row_of(e->queue);
    if (!known[at]) add_name(events, "process_name", process, 0, known[at] = e->device, ok);
    if (!(named[at] >> row & 1)) add_name(events, "thread_name", process, row, e->queue, ok);
    named[at] |= 1u << row;
    return process;
}

int trace_write(trace *t, const cli_command *command, const char *path) {
    const char *known[TRACE_MOST_DEVICES] = { 0 };
    uint32_t named[TRACE_MOST_DEVICES] = { 0 };
    unwatch(t);
    if (t->count) qsort(t->events, t->count, sizeof *t->events, by_begin);
    json_t *root = json_object(), *events = json_array();
    bool ok = root && events && !t->failed;
    for (size_t i = 0; i < t->count && ok; i++) {
        const json_int_t process = process_of(events, &t->events[i], known, named, &ok);
        add_event(events, process, &t->events[i], t->events[0].begin_ns, &ok);
    }
    cli_put(root, "displayTimeUnit", json_string("ns"), &ok);
    cli_put(root, "traceEvents", events, &ok);
    const bool written = ok && cli_json_save(root, path, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (!ok) return cli_fail(command, "the trace is not whole: no memory was left, or the device was lost");
    return written ? CLI_OK : cli_fail(command, "%s: the trace cannot be written; choose another path", path);
}
