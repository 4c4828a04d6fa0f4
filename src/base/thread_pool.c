/* thread_pool.c: workers share in the loops of any caller. A worker spins for a moment, because the next dispatch of a
 * plan comes within microseconds, and then sleeps. Indices are handed out by one counter, so a slow thread does not
 * hold up the others. The caller runs whatever no worker takes. So a loop never waits for a sleeping worker or for
 * another loop, and workers are woken only where the loop's work is worth it. */
#include "base/base.h"
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

/* SPINS: pauses before a worker sleeps, and before a caller yields its processor. JOIN_NS: a loop of less work is
 * faster on one thread, even with workers awake. WAKE_NS: work for each sleeper that is woken; waking takes the caller
 * some microseconds, and the worker starts about ten later. PARTS: parts of a worker's share; small parts let workers
 * end together. LOOPS: loops that are shared at a time; further callers run theirs alone. */
enum { SPINS = 4000, JOIN_NS = 2000, WAKE_NS = 20000, PARTS = 8, LOOPS = 4 };

typedef struct shared_loop {
    atomic_bool      taken;   /* a caller has it */
    hdi_loop_fn      run;     /* written while `left` is not above zero, read by who has a part of it */
    void            *user;
    uint64_t         end;
    _Atomic int64_t  grain;
    _Atomic int64_t  left;    /* indices that nobody has taken yet: the last ones */
    _Atomic int64_t  done;    /* those that workers other than the caller's thread have run */
    char             apart[64]; /* keeps loops in cache lines of their own */
} shared_loop;

struct hdi_thread_pool {
    const hd_allocator *allocator;
    pthread_t       *threads;   /* threads[i] was started as the i + 1st worker */
    uint32_t         room;      /* of the array */
    /* limit of workers, the caller's thread included; lowered when the system refuses a thread */
    atomic_uint      most;
    atomic_uint      count;     /* workers started; changed under the mutex */
    atomic_uint      begun;     /* threads that have taken their number */
    pthread_mutex_t  mutex;
    pthread_cond_t   wake;
    atomic_uint      sleepers;  /* changed under the mutex */
    atomic_bool      stop;
    shared_loop      loops[LOOPS];
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Takes one part of an open loop and runs it. Returns the number of indices; 0: none was left. A worker that got a part
 * from `left` above zero holds the loop open until it adds the part to `done`. */
static int64_t run_part(shared_loop *loop, uint32_t worker) {
    const int64_t grain = atomic_load_explicit(&loop->grain, memory_order_relaxed);
    const int64_t left = atomic_fetch_sub(&loop->left, grain), count = HDI_MIN(grain, left);
    if (left <= 0) return 0;
    loop->run(loop->user, worker, loop->end - (uint64_t)left, (uint64_t)count);
    return count;
}

/* Runs parts as long as there are any. */
static int64_t work(shared_loop *loop, uint32_t worker) {
    int64_t ran = 0;
    for (int64_t part; (part = run_part(loop, worker)) > 0;) ran += part;
    return ran;
}

/* ---- workers ---- */

static bool any_open(hdi_thread_pool *thread_pool) {
    for (uint32_t i = 0; i < LOOPS; i++)
        if (atomic_load(&thread_pool->loops[i].left) > 0) return true;
    return atomic_load(&thread_pool->stop);
}

/* Waits until there may be work, or the thread pool ends. A worker that was woken too late spins again: more is likely
 * to follow. */
static void wait_for_loop(hdi_thread_pool *thread_pool) {
    for (int i = 0; i < SPINS; i++) {
        if (any_open(thread_pool)) return;
        pause_cpu();
    }
    pthread_mutex_lock(&thread_pool->mutex);
    atomic_fetch_add(&thread_pool->sleepers, 1);
    if (!any_open(thread_pool)) pthread_cond_wait(&thread_pool->wake, &thread_pool->mutex);
    atomic_fetch_sub(&thread_pool->sleepers, 1);
    pthread_mutex_unlock(&thread_pool->mutex);
}

/* Workers look at the loops from different ones on, so that each of several finds some. */
static void *worker_main(void *argument) {
    hdi_thread_pool *thread_pool = argument;
    const uint32_t worker = atomic_fetch_add(&thread_pool->begun, 1) + 1;
    fesetenv(FE_DFL_ENV); /* whatever that of the thread was that started this one */
    for (;;) {
        wait_for_loop(thread_pool);
        if (atomic_load(&thread_pool->stop)) return NULL;
        for (uint32_t i = 0; i < LOOPS; i++) {
            shared_loop *loop = &thread_pool->loops[(worker + i) % LOOPS];
            const int64_t ran = atomic_load(&loop->left) > 0 ? work(loop, worker) : 0;
            if (ran > 0) atomic_fetch_add(&loop->done, ran);
        }
    }
}

hdi_thread_pool *hdi_thread_pool_new(const hd_allocator *allocator, uint32_t most) {
    hdi_thread_pool *thread_pool = hdi_alloc(allocator, sizeof *thread_pool);
    if (!thread_pool) return NULL;
    thread_pool->allocator = allocator;
    thread_pool->room = most;
    atomic_store(&thread_pool->most, most);
    atomic_store(&thread_pool->count, 1);
    thread_pool->threads = hdi_alloc(allocator, most * sizeof *thread_pool->threads);
    if (!thread_pool->threads || pthread_mutex_init(&thread_pool->mutex, NULL) != 0) {
        hdi_free(allocator, thread_pool->threads, most * sizeof *thread_pool->threads);
        hdi_free(allocator, thread_pool, sizeof *thread_pool);
        return NULL;
    }
    pthread_cond_init(&thread_pool->wake, NULL);
    return thread_pool;
}

uint32_t hdi_thread_pool_most(const hdi_thread_pool *thread_pool) {
    return thread_pool ? atomic_load(&thread_pool->most) : 1;
}

void hdi_thread_pool_call(hdi_thread_pool *thread_pool, uint32_t workers) {
    if (!thread_pool || atomic_load(&thread_pool->count) >= HDI_MIN(workers, atomic_load(&thread_pool->most))) return;
    pthread_mutex_lock(&thread_pool->mutex);
    for (uint32_t count;
         (count = atomic_load(&thread_pool->count)) < HDI_MIN(workers, atomic_load(&thread_pool->most));) {
        if (pthread_create(&thread_pool->threads[count - 1], NULL, worker_main, thread_pool) == 0)
            atomic_store(&thread_pool->count, count + 1);
        else atomic_store(&thread_pool->most, count);
    }
    pthread_mutex_unlock(&thread_pool->mutex);
}

void hdi_thread_pool_free(hdi_thread_pool *thread_pool) {
    if (!thread_pool) return;
    pthread_mutex_lock(&thread_pool->mutex);
    atomic_store(&thread_pool->stop, true);
    pthread_cond_broadcast(&thread_pool->wake);
    pthread_mutex_unlock(&thread_pool->mutex);
    for (uint32_t i = 1; i < atomic_load(&thread_pool->count); i++) pthread_join(thread_pool->threads[i - 1], NULL);
    pthread_cond_destroy(&thread_pool->wake);
    pthread_mutex_destroy(&thread_pool->mutex);
    hdi_free(thread_pool->allocator, thread_pool->threads, thread_pool->room * sizeof *thread_pool->threads);
    hdi_free(thread_pool->allocator, thread_pool, sizeof *thread_pool);
}

/* ---- loops ---- */

/* Wakes sleepers until there is a worker for each WAKE_NS of `work_ns`, workers that are awake included. True: some
 * still sleep. */
static bool wake(hdi_thread_pool *thread_pool, uint64_t work_ns) {
    const uint32_t sleepers = atomic_load(&thread_pool->sleepers), others = atomic_load(&thread_pool->count) - 1;
    const uint32_t awake = others - HDI_MIN(sleepers, others);
    const uint64_t wanted = HDI_MIN(work_ns / WAKE_NS, (uint64_t)others);
    if (wanted <= awake) return sleepers > 0;
    pthread_mutex_lock(&thread_pool->mutex);
    if (wanted - awake == sleepers) pthread_cond_broadcast(&thread_pool->wake);
    else
        for (uint64_t i = awake; i < wanted; i++) pthread_cond_signal(&thread_pool->wake);
    pthread_mutex_unlock(&thread_pool->mutex);
    return wanted - awake < sleepers;
}

/* A free place for a loop, or NULL. */
static shared_loop *take_loop(hdi_thread_pool *thread_pool) {
    for (uint32_t i = 0; i < LOOPS; i++)
        if (!atomic_load(&thread_pool->loops[i].taken) && !atomic_exchange(&thread_pool->loops[i].taken, true))
            return &thread_pool->loops[i];
    return NULL;
}

/* Opens a loop's indices from `first` on to all workers, and runs it with them. */
static void share(hdi_thread_pool *thread_pool, shared_loop *loop, hdi_loop_fn run, void *user, uint64_t first,
                  uint64_t count, uint64_t work_ns) {
    const int64_t all = (int64_t)(count - first);
    int64_t ran = 0;
    loop->run = run;
    loop->user = user;
    loop->end = count;
    atomic_store_explicit(&loop->grain,
                          (int64_t)HDI_MAX(count / (atomic_load(&thread_pool->count) * (uint64_t)PARTS), UINT64_C(1)),
                          memory_order_relaxed);
    atomic_store(&loop->done, 0);
    atomic_store(&loop->left, all);
    if (wake(thread_pool, work_ns)) {
        const uint64_t began_ns = hdi_now_ns();
        ran = run_part(loop, 0);
        const int64_t left = atomic_load(&loop->left);
        if (ran > 0 && left > 0) wake(thread_pool, (hdi_now_ns() - began_ns) / (uint64_t)ran * (uint64_t)left);
    }
    ran += work(loop, 0);
    for (int spins = 0; atomic_load(&loop->done) < all - ran; spins++) {
        if (spins < SPINS) pause_cpu();
        else sched_yield();
    }
    atomic_store(&loop->taken, false);
}

void hdi_thread_pool_run(hdi_thread_pool *thread_pool, hdi_loop_fn run, void *user, uint64_t count, uint64_t least_ns) {
    const bool alone = !thread_pool || atomic_load(&thread_pool->count) == 1;
    uint64_t first = 0, work_ns = least_ns;
    if (!alone && count > 1 && work_ns < JOIN_NS) {
        const uint64_t began_ns = hdi_now_ns();
        run(user, 0, first++, 1);
        work_ns = (hdi_now_ns() - began_ns) * (count - first);
    }
    shared_loop *loop = alone || count - first <= 1 || work_ns < JOIN_NS ? NULL : take_loop(thread_pool);
    if (loop) share(thread_pool, loop, run, user, first, count, work_ns);
    else run(user, 0, first, count - first);
}

/* ---- copies ---- */

/* One processor cannot use all the bandwidth of memory or a bus. PIECE_BYTES: the smallest piece. LEAST_BYTES: a
 * smaller copy ends before workers arrive. WORTH_BYTES, divided by the workers: the smallest copy that is shared. A
 * small pool gains less, but waits as long for a worker whose processor was taken away. */
#define PIECE_BYTES (UINT64_C(32) << 10)
#define LEAST_BYTES (UINT64_C(256) << 10)
#define WORTH_BYTES (UINT64_C(2) << 20)
enum { COPIERS = 8, COPIED_PER_NS = 12 };

/* AMD's Zen 3 and 4 copy to 1 to 31 bytes behind the source, counted within a page, at a twentieth of their pace by the
 * instruction for it (rep movsb), which C libraries take from some KiB on (glibc before 2.39). It is no rare case: what
 * malloc hands out begins 16 bytes behind a page, and memory of devices at one. */
static bool is_slow_in_one(const char *to, const char *from) {
    enum { PAGE = 4096, NEAR = 32 };
    const size_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    bool is_amd = false;
#if defined(__x86_64__)
    is_amd = __builtin_cpu_is("amd");
#endif
    return is_amd && behind > 0 && behind < NEAR;
}

static void copy_bytes(char *to, const char *from, size_t bytes) {
    enum { SHORT = 1024 };
    const size_t most = is_slow_in_one(to, from) ? SHORT : bytes;
    for (size_t done = 0, count; done < bytes; done += count) {
        count = HDI_MIN(bytes - done, most);
        memcpy(to + done, from + done, count);
    }
}

typedef struct host_copy {
    char       *to;
    const char *from;
    uint64_t    bytes;
    bool        past_caches;
} host_copy;

#if defined(__x86_64__)
/* As many whole blocks as there are, to a multiple of 64 bytes; a block is four pages, line by line in turn, since a
 * processor fetches ahead within a page. */
__attribute__((target("avx512f"))) static size_t stream_blocks(char *to, const char *from, size_t bytes) {
    enum { PAGE = 4096, PAGES = 4 };
    size_t done = 0;
    for (; bytes - done >= PAGE * PAGES; done += PAGE * PAGES)
        for (size_t line = done; line < done + PAGE; line += 64)
            for (size_t at = line; at < line + PAGE * PAGES; at += PAGE)
                _mm512_stream_si512((void *)(to + at), _mm512_loadu_si512(from + at));
    return done;
}

static size_t stream_lines(char *to, const char *from, size_t bytes) {
    size_t done = __builtin_cpu_supports("avx512f") ? stream_blocks(to, from, bytes) : 0;
    for (; bytes - done >= 64; done += 64) {
        __m128i line[4];
        for (int i = 0; i < 4; i++) line[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + done) + i);
        for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)(void *)(to + done) + i, line[i]);
    }
    _mm_sfence();
    return done;
}
#endif

/* Whole cache lines are written without being read and without a place in the caches, where a device would have to ask
 * one processor after the other for them. */
static void copy_past_caches(char *to, const char *from, size_t bytes) {
    size_t done = 0;
#if defined(__x86_64__)
    done = HDI_MIN((size_t)(-(uintptr_t)to & 63), bytes);
    memcpy(to, from, done);
    done += stream_lines(to + done, from + done, bytes - done);
#endif
    memcpy(to + done, from + done, bytes - done);
}

static void copy_pieces(void *user, uint32_t worker, uint64_t first, uint64_t count) {
    const host_copy *copy = user;
    const uint64_t at = first * PIECE_BYTES;
    const size_t bytes = (size_t)HDI_MIN(copy->bytes - at, count * PIECE_BYTES);
    (void)worker;
    if (copy->past_caches) copy_past_caches(copy->to + at, copy->from + at, bytes);
    else copy_bytes(copy->to + at, copy->from + at, bytes);
}

static void share_copy(hdi_thread_pool *thread_pool, host_copy copy) {
    if (!thread_pool || copy.bytes < HDI_MAX(LEAST_BYTES, WORTH_BYTES / hdi_thread_pool_most(thread_pool))) {
        copy_bytes(copy.to, copy.from, (size_t)copy.bytes);
        return;
    }
    hdi_thread_pool_call(thread_pool, COPIERS);
    hdi_thread_pool_run(thread_pool, copy_pieces, &copy, hdi_divide_up(copy.bytes, PIECE_BYTES),
                        copy.bytes / COPIED_PER_NS);
}

void hdi_thread_pool_copy(hdi_thread_pool *thread_pool, void *to, const void *from, uint64_t bytes) {
    share_copy(thread_pool, (host_copy){ to, from, bytes, false });
}

void hdi_thread_pool_stage(hdi_thread_pool *thread_pool, void *to, const void *from, uint64_t bytes) {
    share_copy(thread_pool, (host_copy){ to, from, bytes, true });
}
