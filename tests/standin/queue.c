/* queue.c: streams, each with a thread that does its tasks in order, and events. */
#define _GNU_SOURCE
#include "standin.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct link {
    standin_task task;
    struct link *next;
} link;
struct standin_stream {
    pthread_t       thread;
    link           *first, **last; /* what is to be done */
    bool            busy, ends;
    standin_capture capture;
    standin_stream *next;
};
struct standin_event {
    bool     timed, looked_at;
    unsigned holders;        /* the caller and every record under way */
    uint64_t wanted, done;   /* records asked for and done */
    uint64_t time_ns;
};

/* One lock for all of it: streams are few and tasks are long. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static standin_stream *streams;

/* ---- tasks ---- */

bool standin_task_copy(const standin_task *task, standin_task *out) {
    *out = *task;
    if (task->kind == STANDIN_PRODUCT) {
        out->product = malloc(sizeof *out->product);
        if (out->product) *out->product = *task->product;
        return out->product != NULL;
    }
    if (task->kind == STANDIN_LAUNCH) return (out->launch.arguments = standin_arguments_copy(&task->launch)) != NULL;
    return true;
}

void standin_task_end(standin_task *task) {
    for (size_t i = 0; i < task->task_count; i++) standin_task_end(&task->tasks[i]);
    free(task->tasks);
    free(task->launch.arguments);
    free(task->product);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void release(standin_event *event) {
    if (--event->holders == 0) free(event);
}

static void record(const standin_task *task) {
    pthread_mutex_lock(&lock);
    task->event->time_ns = now_ns();
    task->event->done = task->ticket;
    release(task->event);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(const standin_task *task) {
    pthread_mutex_lock(&lock);
    while (task->event->done < task->ticket) pthread_cond_wait(&changed, &lock);
    release(task->event);
    pthread_mutex_unlock(&lock);
}

static void fill(uint32_t *to, uint32_t value, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof value; i++) to[i] = value;
}

static void run(const standin_task *task) {
    switch (task->kind) {
    case STANDIN_LAUNCH: standin_run(&task->launch); break;
    case STANDIN_COPY: memmove(task->to, task->from, task->bytes); break;
    case STANDIN_FILL: fill(task->to, task->value, task->bytes); break;
    case STANDIN_RECORD: record(task); break;
    case STANDIN_AWAIT: await(task); break;
    case STANDIN_PRODUCT: standin_product_run(task->product); break;
    case STANDIN_TASKS:
        for (size_t i = 0; i < task->task_count; i++) run(&task->tasks[i]);
        break;
    }
}

/* ---- streams ---- */

static void *stream_main(void *data) {
    standin_stream *stream = data;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->ends) pthread_cond_wait(&changed, &lock);
        link *first = stream->first;
        if (!first) break;
        stream->first = first->next;
        if (!stream->first) stream->last = &stream->first;
        stream->busy = true;
        pthread_mutex_unlock(&lock);
        run(&first->task);
        standin_task_end(&first->task);
        free(first);
        pthread_mutex_lock(&lock);
        stream->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

standin_status standin_stream_create(standin_stream **out) {
    standin_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return STANDIN_OUT_OF_MEMORY;
    stream->last = &stream->first;
    if (pthread_create(&stream->thread, NULL, stream_main, stream)) {
        free(stream);
        return STANDIN_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    *out = stream;
    return STANDIN_OK;
}

standin_status standin_stream_destroy(standin_stream *stream) {
    pthread_mutex_lock(&lock);
    stream->ends = true;
    standin_stream **at = &streams;
    while (*at && *at != stream) at = &(*at)->next;
    if (*at) *at = stream->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    standin_graph *graph = NULL;
    if (stream->capture.graph) standin_capture_end(&stream->capture, &graph);
    standin_graph_destroy(graph);
    free(stream);
    return STANDIN_OK;
}

standin_capture *standin_capture_of(standin_stream *stream) { return &stream->capture; }

standin_status standin_stream_push(standin_stream *stream, standin_task task) {
    if (stream->capture.graph) return standin_capture_add(&stream->capture, task);
    link *last = malloc(sizeof *last);
    if (!last) {
        standin_task_end(&task);
        return STANDIN_OUT_OF_MEMORY;
    }
    *last = (link){ .task = task };
    pthread_mutex_lock(&lock);
    *stream->last = last;
    stream->last = &last->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return STANDIN_OK;
}

standin_status standin_stream_query(standin_stream *stream) {
    pthread_mutex_lock(&lock);
    const bool idle = !stream->first && !stream->busy;
    pthread_mutex_unlock(&lock);
    return idle ? STANDIN_OK : STANDIN_NOT_READY;
}

void standin_wait_all(void) {
    pthread_mutex_lock(&lock);
    for (standin_stream *s = streams; s;) {
        const bool idle = !s->first && !s->busy;
        if (!idle) pthread_cond_wait(&changed, &lock);
        s = idle ? s->next : streams;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- events ---- */

standin_status standin_event_create(bool timed, standin_event **out) {
    standin_event *event = calloc(1, sizeof *event);
    if (!event) return STANDIN_OUT_OF_MEMORY;
    event->timed = timed;
    event->holders = 1;
    *out = event;
    return STANDIN_OK;
}

standin_status standin_event_destroy(standin_event *event) {
    pthread_mutex_lock(&lock);
    release(event);
    pthread_mutex_unlock(&lock);
    return STANDIN_OK;
}

standin_status standin_event_record(standin_event *event, standin_stream *stream) {
    if (stream->capture.graph) return standin_refuse(STANDIN_NOT_SUPPORTED, "events in a capture would be no nodes");
    pthread_mutex_lock(&lock);
    event->holders++;
    event->looked_at = false;
    const standin_task task = { .kind = STANDIN_RECORD, .event = event, .ticket = ++event->wanted };
    pthread_mutex_unlock(&lock);
    const standin_status status = standin_stream_push(stream, task);
    if (!status) return STANDIN_OK;
    pthread_mutex_lock(&lock);
    event->wanted--;
    release(event);
    pthread_mutex_unlock(&lock);
    return status;
}

standin_status standin_stream_await(standin_stream *stream, standin_event *event) {
    if (stream->capture.graph) return standin_refuse(STANDIN_NOT_SUPPORTED, "waiting for an event in a capture would be no node");
    pthread_mutex_lock(&lock);
    event->holders++;
    const standin_task task = { .kind = STANDIN_AWAIT, .event = event, .ticket = event->wanted };
    pthread_mutex_unlock(&lock);
    const standin_status status = standin_stream_push(stream, task);
    if (!status) return STANDIN_OK;
    pthread_mutex_lock(&lock);
    release(event);
    pthread_mutex_unlock(&lock);
    return status;
}

standin_status standin_event_query(standin_event *event) {
    pthread_mutex_lock(&lock);
    const bool done = event->done == event->wanted && (event->looked_at || !event->wanted);
    event->looked_at = true;
    pthread_mutex_unlock(&lock);
    return done ? STANDIN_OK : STANDIN_NOT_READY;
}

standin_status standin_event_elapsed(standin_event *from, standin_event *to, float *out_ms) {
    standin_status status = STANDIN_OK;
    pthread_mutex_lock(&lock);
    if (!from->timed || !to->timed || !from->wanted || !to->wanted) status = STANDIN_INVALID_HANDLE;
    else if (from->done != from->wanted || to->done != to->wanted) status = STANDIN_NOT_READY;
    else *out_ms = (float)((double)(int64_t)(to->time_ns - from->time_ns) / 1e6);
    pthread_mutex_unlock(&lock);
    return status;
}
