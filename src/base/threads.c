/* threads.c: a mutex, a clock and tasks side by side, over POSIX threads. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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
