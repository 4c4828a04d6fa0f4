/* pool.c: workers wait for a loop by spinning for a moment (the next dispatch of a plan comes within microseconds) and
 * then sleeping. Indices are handed out by one counter, so a slow thread never holds up the others for long; who comes too
 * late for any is not waited for. So waking is never needed for a loop to end, and is done only where its work is worth it. */
#include "device/cpu/pool.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* SPINS: pauses before sleeping, and before giving the processor away. JOIN_NS: less work than this is done sooner by one thread
 * than shared, even with workers that are awake. WAKE_NS: the work that makes it worth waking one more sleeper, which takes
 * the caller some microseconds, and it some ten to come. PARTS: of a worker's share, so that the last ones end together. */
enum { SPINS = 4000, JOIN_NS = 2000, WAKE_NS = 20000, PARTS = 8 };

struct hdcpu_pool {
    const hd_allocator *allocator;
    pthread_t       *threads;   /* threads[i] is worker i + 1 */
    uint32_t         room;      /* of the array */
    uint32_t         count;     /* workers, the caller's thread counted */
    pthread_mutex_t  mutex;
    pthread_cond_t   wake;
    atomic_uint      sleepers;  /* changed under the mutex */
    atomic_bool      stop;
    hdcpu_loop       loop;      /* of the current loop; written while `left` is not above zero, read by who has a part of it */
    void            *user;
    uint64_t         end;
    _Atomic int64_t  grain;
    _Atomic int64_t  left;      /* indices of the current loop that nobody has taken yet: the last ones */
    _Atomic int64_t  done;      /* those that workers other than the caller's thread have run */
};

hdcpu_floats hdcpu_floats_begin(void) {
    hdcpu_floats floats;
#if defined(__x86_64__)
    enum { TO_NEAREST_WITHOUT_TRAPS = 0x1F80 };
    floats.was = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(TO_NEAREST_WITHOUT_TRAPS);
#else
    fegetenv(&floats.was);
    fesetenv(FE_DFL_ENV);
#endif
    return floats;
}

void hdcpu_floats_end(hdcpu_floats floats) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(floats.was);
#else
    fesetenv(&floats.was);
#endif
}

typedef struct worker_start {
    hdcpu_pool *pool;
    uint32_t    worker;
} worker_start;

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Runs a part of the current loop that nobody has taken, and tells how many indices that were; 0: there was none. What is
 * taken from `left` above zero is taken from the loop that is open at that moment, and keeps it open. */
static int64_t run_part(hdcpu_pool *pool, uint32_t worker) {
    const int64_t grain = atomic_load_explicit(&pool->grain, memory_order_relaxed);
    const int64_t left = atomic_fetch_sub(&pool->left, grain), count = HDI_MIN(grain, left);
    if (left <= 0) return 0;
    pool->loop(pool->user, worker, pool->end - (uint64_t)left, (uint64_t)count);
    return count;
}

/* Runs parts as long as there are any. */
static int64_t work(hdcpu_pool *pool, uint32_t worker) {
    int64_t ran = 0;
    for (int64_t part; (part = run_part(pool, worker)) > 0;) ran += part;
    return ran;
}

/* Waits until there may be work, or the pool ends. Who is woken and comes too late spins again, since more is likely to follow. */
static void wait_for_loop(hdcpu_pool *pool) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->left) > 0 || atomic_load(&pool->stop)) return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    if (atomic_load(&pool->left) <= 0 && !atomic_load(&pool->stop)) pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    worker_start start = *(worker_start *)argument;
    hd_allocator allocator = *start.pool->allocator;
    hdi_free(&allocator, argument, sizeof start);
    hdcpu_floats_begin();
    for (;;) {
        wait_for_loop(start.pool);
        if (atomic_load(&start.pool->stop)) return NULL;
        const int64_t ran = work(start.pool, start.worker);
        if (ran > 0) atomic_fetch_add(&start.pool->done, ran);
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

/* Wakes as many of the sleepers as `work_ns` is worth, those counted that are awake. Are any left asleep? */
static bool wake(hdcpu_pool *pool, uint64_t work_ns) {
    const uint32_t sleepers = atomic_load(&pool->sleepers), awake = pool->count - 1 - sleepers;
    const uint64_t wanted = HDI_MIN(work_ns / WAKE_NS, (uint64_t)pool->count - 1);
    if (wanted <= awake) return sleepers > 0;
    pthread_mutex_lock(&pool->mutex);
    if (wanted - awake == sleepers) pthread_cond_broadcast(&pool->wake);
    else
        for (uint64_t i = awake; i < wanted; i++) pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    return wanted - awake < sleepers;
}

void hdcpu_pool_free(hdcpu_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (uint32_t i = 1; i < pool->count; i++) pthread_join(pool->threads[i - 1], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    hdi_free(pool->allocator, pool->threads, pool->room * sizeof *pool->threads);
    hdi_free(pool->allocator, pool, sizeof *pool);
}

/* Opens a loop's indices from `first` on to all workers, and runs it with them. */
static void share(hdcpu_pool *pool, hdcpu_loop loop, void *user, uint64_t first, uint64_t count, uint64_t work_ns) {
    const int64_t all = (int64_t)(count - first);
    int64_t ran = 0;
    pool->loop = loop;
    pool->user = user;
    pool->end = count;
    atomic_store_explicit(&pool->grain, (int64_t)HDI_MAX(count / (pool->count * (uint64_t)PARTS), UINT64_C(1)), memory_order_relaxed);
    atomic_store(&pool->done, 0);
    atomic_store(&pool->left, all);
    if (wake(pool, work_ns)) {
        const uint64_t began_ns = hdi_now_ns();
        ran = run_part(pool, 0);
        const int64_t left = atomic_load(&pool->left);
        if (ran > 0 && left > 0) wake(pool, (hdi_now_ns() - began_ns) / (uint64_t)ran * (uint64_t)left);
    }
    ran += work(pool, 0);
    for (int spins = 0; atomic_load(&pool->done) < all - ran; spins++) {
        if (spins < SPINS) pause_cpu();
        else sched_yield();
    }
}

void hdcpu_pool_run(hdcpu_pool *pool, hdcpu_loop loop, void *user, uint64_t count, uint64_t least_ns) {
    uint64_t first = 0, work_ns = least_ns;
    if (pool->count > 1 && count > 1 && work_ns < JOIN_NS) {
        const uint64_t began_ns = hdi_now_ns();
        loop(user, 0, first++, 1);
        work_ns = (hdi_now_ns() - began_ns) * (count - first);
    }
    if (pool->count == 1 || count - first <= 1 || work_ns < JOIN_NS) loop(user, 0, first, count - first);
    else share(pool, loop, user, first, count, work_ns);
}
