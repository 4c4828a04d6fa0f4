/* threads.c: a mutex, a clock, the number of processors and tasks side by side, over POSIX. */
#define _GNU_SOURCE
#include "base/base.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(hdi_mutex), "hdi_mutex has room for the system's mutex");

bool hdi_mutex_init(hdi_mutex *mutex) { return pthread_mutex_init((pthread_mutex_t *)(void *)mutex, NULL) == 0; }
void hdi_mutex_free(hdi_mutex *mutex) { pthread_mutex_destroy((pthread_mutex_t *)(void *)mutex); }
void hdi_mutex_lock(hdi_mutex *mutex) { pthread_mutex_lock((pthread_mutex_t *)(void *)mutex); }
void hdi_mutex_unlock(hdi_mutex *mutex) { pthread_mutex_unlock((pthread_mutex_t *)(void *)mutex); }

uint64_t hdi_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void hdi_processor_name(char *out, size_t room) {
    snprintf(out, room, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, room, "%s", colon + 2);
        break;
    }
    fclose(file);
}

bool hdi_memory_available(uint64_t *out_bytes) {
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long long kib = 0;
    char line[128];
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "MemAvailable:", 13) == 0) kib = strtoull(line + 13, NULL, 10);
    if (file) fclose(file);
    const uint64_t share = hdi_quota_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    *out_bytes = HDI_MIN((uint64_t)kib * 1024, share);
    return kib > 0;
}

uint32_t hdi_processor_count(void) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = online > 0 ? (uint32_t)online : 1;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = (uint32_t)HDI_MAX(CPU_COUNT(&set), 1);
    const uint32_t share = hdi_quota_processors("/proc/self/cgroup", "/sys/fs/cgroup");
    count = HDI_MIN(count, share);
#endif
    return count;
}

typedef struct task_run {
    hdi_job_fn  task;
    void       *user;
    uint32_t    count;
    atomic_uint next;
    atomic_bool stopped;
} task_run;

static void *work(void *argument) {
    task_run *run = argument;
    while (!atomic_load(&run->stopped)) {
        const uint32_t index = atomic_fetch_add(&run->next, 1);
        if (index >= run->count) break;
        if (!run->task(run->user, index)) atomic_store(&run->stopped, true);
    }
    return NULL;
}

void hdi_side_by_side(uint32_t threads, hdi_job_fn task, void *user, uint32_t count) {
    task_run run = { .task = task, .user = user, .count = count };
    pthread_t others[HDI_MOST_THREADS - 1];
    uint32_t other_count = 0;
    threads = HDI_MIN(HDI_MIN(threads, count), (uint32_t)HDI_MOST_THREADS);
    while (other_count + 1 < threads && pthread_create(&others[other_count], NULL, work, &run) == 0) other_count++;
    work(&run);
    while (other_count) pthread_join(others[--other_count], NULL);
}
