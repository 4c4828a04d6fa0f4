/* inflight.c: objects under submissions, and waiting for these. */
#define _GNU_SOURCE
#include "device/recordings.h"
#include <sched.h>
#include <time.h>

bool hdi_inflight_init(hdi_inflight *inflight, const hdi_inflight_functions *functions, hdi_backend_device *device,
                       const hdi_host *host, const char *backend) {
    hdi_link *lists[] = { &inflight->memories, &inflight->freed_memories, &inflight->kernels,
                          &inflight->freed_kernels, &inflight->recordings, &inflight->freed_commands };
    for (size_t i = 0; i < HDI_COUNT(lists); i++) hdi_list_init(lists[i]);
    inflight->functions = functions;
    inflight->device = device;
    inflight->host = host;
    inflight->backend = backend;
    return hdi_mutex_init(&inflight->kernels_lock);
}

void hdi_inflight_end(hdi_inflight *inflight) {
    hdi_recordings_end(inflight);
    hdi_used_collect(inflight->device, &inflight->freed_kernels, HDI_ALL_DONE, inflight->functions->end_kernel);
    hdi_used_collect(inflight->device, &inflight->kernels, HDI_ALL_DONE, inflight->functions->end_kernel);
    hdi_used_collect(inflight->device, &inflight->freed_memories, HDI_ALL_DONE, inflight->functions->end_memory);
    hdi_used_collect(inflight->device, &inflight->memories, HDI_ALL_DONE, inflight->functions->end_memory);
    hdi_mutex_free(&inflight->kernels_lock);
}

void hdi_inflight_done(hdi_inflight *inflight, uint64_t ticket) {
    const uint64_t done = inflight->done = HDI_MAX(inflight->done, ticket);
    hdi_recordings_collect(inflight);
    hdi_used_collect(inflight->device, &inflight->freed_kernels, done, inflight->functions->end_kernel);
    hdi_used_collect(inflight->device, &inflight->freed_memories, done, inflight->functions->end_memory);
}

/* ---- memory and kernels ---- */

/* Back ends' objects begin with it (inflight.h). */
static hdi_used *of_memory(const hdi_memory *memory) { return (hdi_used *)(uintptr_t)memory; }
static hdi_used *of_kernel(const hdi_loaded_kernel *kernel) { return (hdi_used *)(uintptr_t)kernel; }

hd_status hdi_inflight_take_memory(hdi_inflight *inflight, hd_status status, hdi_memory *memory,
                                   hdi_memory **out_memory) {
    hdi_used *used = of_memory(memory);
    if (status) {
        inflight->functions->end_memory(inflight->device, used);
        return status;
    }
    used->serial = ++inflight->serial;
    used->last_ticket = 0;
    hdi_list_add(&inflight->memories, &used->link);
    *out_memory = memory;
    return HD_OK;
}

hd_status hdi_inflight_take_kernel(hdi_inflight *inflight, hd_status status, hdi_loaded_kernel *kernel,
                                   hdi_loaded_kernel **out_kernel) {
    hdi_used *used = of_kernel(kernel);
    if (status) {
        inflight->functions->end_kernel(inflight->device, used);
        return status;
    }
    hdi_mutex_lock(&inflight->kernels_lock);
    hdi_list_add(&inflight->kernels, &used->link);
    hdi_mutex_unlock(&inflight->kernels_lock);
    *out_kernel = kernel;
    return HD_OK;
}

void hdi_inflight_free_memory(hdi_backend_device *device, hdi_memory *memory) {
    hdi_inflight *inflight = (hdi_inflight *)(void *)device;
    if (!memory) return;
    hdi_used_move(of_memory(memory), &inflight->freed_memories);
    hdi_used_collect(inflight->device, &inflight->freed_memories, inflight->done, inflight->functions->end_memory);
}

void hdi_inflight_free_kernel(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    hdi_inflight *inflight = (hdi_inflight *)(void *)device;
    if (!kernel) return;
    hdi_mutex_lock(&inflight->kernels_lock);
    hdi_used_move(of_kernel(kernel), &inflight->freed_kernels);
    hdi_mutex_unlock(&inflight->kernels_lock);
    hdi_used_collect(inflight->device, &inflight->freed_kernels, inflight->done, inflight->functions->end_kernel);
}

/* ---- what a submission uses ---- */

void hdi_used_note(const hdi_submission *submission, uint64_t ticket) {
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++) {
        hdi_used *memory = of_memory(submission->slots[i].memory);
        if (!memory) continue;
        memory->last_ticket = ticket;
        memory->last_queue = submission->queue;
    }
    for (uint32_t i = 0; i < submission->cmds->kernel_count; i++)
        if (submission->kernels[i]) of_kernel(submission->kernels[i])->last_ticket = ticket;
}

void hdi_used_after(const hdi_submission *submission, uint64_t done, uint64_t out_after[HDI_QUEUE_COUNT]) {
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) out_after[i] = 0;
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++) {
        const hdi_used *memory = of_memory(submission->slots[i].memory);
        if (!memory || memory->last_ticket <= done || memory->last_queue == submission->queue) continue;
        out_after[memory->last_queue] = HDI_MAX(out_after[memory->last_queue], memory->last_ticket);
    }
}

void hdi_used_move(hdi_used *object, hdi_link *list) {
    hdi_list_remove(&object->link);
    hdi_list_add(list, &object->link);
}

void hdi_used_collect(hdi_backend_device *device, hdi_link *list, uint64_t done,
                      void (*end)(hdi_backend_device *device, hdi_used *object)) {
    for (hdi_link *at = list->next, *next; at != list; at = next) {
        next = at->next;
        hdi_used *object = HDI_OBJECT(at, hdi_used, link);
        if (object->last_ticket > done) continue;
        hdi_list_remove(&object->link);
        end(device, object);
    }
}

/* ---- waiting ---- */

uint64_t hdi_watched_ns(const hdi_found *found, uint64_t spent_ns) {
    enum { WATCHED_NS = 4000000 };
    return found->caps.software || spent_ns >= WATCHED_NS ? 0 : WATCHED_NS - spent_ns;
}

void hdi_nap(const hdi_found *found, uint64_t spent_ns, uint64_t left_ns) {
    enum { SHORTEST_NS = 10000, LONGEST_NS = 1000000 };
    const uint64_t ns = HDI_MIN(HDI_MIN(SHORTEST_NS + spent_ns / 64, (uint64_t)LONGEST_NS), left_ns);
    if (hdi_watched_ns(found, spent_ns) > 0) sched_yield();
    else nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

hd_status hdi_wait_by_looks(hdi_backend_device *device, const hdi_found *found, hdi_poll poll, uint64_t ticket,
                            uint64_t begun_ns, uint64_t timeout_ns, hd_error *error) {
    const uint64_t asked = hdi_now_ns();
    for (;;) {
        bool done;
        hd_status status = poll(device, ticket, &done, error);
        if (status || done) return status;
        const uint64_t now = hdi_now_ns();
        if (now - asked >= timeout_ns)
            return hdi_fail_native(error, HD_STATUS_TIMEOUT, found->info.backend, 0,
                                   "submission %llu is not done after %llu ms", (unsigned long long)ticket,
                                   (unsigned long long)(timeout_ns / 1000000));
        hdi_nap(found, now - begun_ns, timeout_ns - (now - asked));
    }
}
