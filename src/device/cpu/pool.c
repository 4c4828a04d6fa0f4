/* pool.c: workers wait for a loop by spinning for a moment (the next dispatch of a plan comes within microseconds) and
 * then sleeping. Indices are handed out by one counter, so a slow thread never holds up the others for long. */
#include "device/cpu/pool.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { SPINS = 4000 };

struct hdcpu_pool {
    const hd_allocator *allocator;
    pthread_t       *threads;   /* threads[i] is worker i + 1 */
    uint32_t         room;      /* of the array */
    uint32_t         count;     /* workers, the caller's thread counted */
    pthread_mutex_t  mutex;
    pthread_cond_t   wake;
    uint32_t         sleepers;  /* under the mutex */
    atomic_uint      generation;/* counts loops; workers run each once */
    atomic_uint      running;   /* workers still in the current loop */
    atomic_bool      stop;
    hdcpu_loop       loop;      /* of the current loop; written before `generation` counts up */
    void            *user;
    uint64_t         total, grain;
    _Atomic uint64_t next;
};

typedef struct worker_start {
    hdcpu_pool *pool;
    uint32_t    worker;
} worker_start;

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void work(hdcpu_pool *pool, uint32_t worker) {
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&pool->next, pool->grain, memory_order_relaxed);
        if (first >= pool->total) return;
        pool->loop(pool->user, worker, first, HDI_MIN(pool->grain, pool->total - first));
    }
}

/* Waits until a loop after `seen` is there, or the pool ends. */
static void wait_for_loop(hdcpu_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->generation) != seen || atomic_load(&pool->stop)) return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    pool->sleepers++;
    while (atomic_load(&pool->generation) == seen && !atomic_load(&pool->stop)) pthread_cond_wait(&pool->wake, &pool->mutex);
    pool->sleepers--;
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    worker_start start = *(worker_start *)argument;
    hd_allocator allocator = *start.pool->allocator;
    hdi_free(&allocator, argument, sizeof start);
    for (unsigned seen = 0;;) {
        wait_for_loop(start.pool, seen);
        if (atomic_load(&start.pool->stop)) return NULL;
        seen = atomic_load(&start.pool->generation);
        work(start.pool, start.worker);
        atomic_fetch_sub(&start.pool->running, 1);
    }
}

hdcpu_pool *hdcpu_pool_new(const hd_allocator *allocator, uint32_t threads) {
    hdcpu_pool *pool = hdi_alloc(allocator, sizeof *pool);
    if (!pool) return NULL;
    pool->allocator = allocator;
    pool->count = 1;
    pool->room = threads;
    pool->threads = hdi_alloc(allocator, threads * sizeof *pool->threads);
    if (!pool->threads || pthread_mutex_init(&pool->mutex, NULL) != 0) {
        hdi_free(allocator, pool->threads, threads * sizeof *pool->threads);
        hdi_free(allocator, pool, sizeof *pool);
        return NULL;
    }
    pthread_cond_init(&pool->wake, NULL);
    /* A system that gives fewer threads than asked for still gives a pool that works. */
    while (pool->count < threads) {
        worker_start *start = hdi_alloc(allocator, sizeof *start);
        if (!start) break;
        *start = (worker_start){ pool, pool->count };
        if (pthread_create(&pool->threads[pool->count - 1], NULL, worker_main, start) != 0) {
            hdi_free(allocator, start, sizeof *start);
            break;
        }
        pool->count++;
    }
    return pool;
}

static void wake_all(hdcpu_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    if (pool->sleepers > 0) pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

void hdcpu_pool_free(hdcpu_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stop, true);
    wake_all(pool);
    for (uint32_t i = 1; i < pool->count; i++) pthread_join(pool->threads[i - 1], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    hdi_free(pool->allocator, pool->threads, pool->room * sizeof *pool->threads);
    hdi_free(pool->allocator, pool, sizeof *pool);
}

void hdcpu_pool_run(hdcpu_pool *pool, hdcpu_loop loop, void *user, uint64_t count, uint64_t grain) {
    if (pool->count == 1 || count <= grain) {
        loop(user, 0, 0, count);
        return;
    }
    pool->loop = loop;
    pool->user = user;
    pool->total = count;
    pool->grain = grain;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->running, pool->count - 1);
    atomic_fetch_add(&pool->generation, 1);
    wake_all(pool);
    work(pool, 0);
    for (int spins = 0; atomic_load(&pool->running) > 0; spins++) {
        if (spins < SPINS) pause_cpu();
        else sched_yield();
    }
}
