/* test_thread_pool.c: a thread pool runs every index once, whoever comes and whoever sleeps, also for several callers at a time; what it copies
 * is right at every size and place, with nothing written beside it; and where the system gives no threads, fewer do the same. */
#define _GNU_SOURCE
#include "base/base.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

enum { MOST = 3000, WORKERS = 16, GUARD = 64 };

static void rest(long us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); }

/* ---- threads that the system refuses ---- */

static atomic_int allowed = -1; /* further threads; below 0: as many as are wanted */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    union { void *found; int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *); } real = { dlsym(RTLD_NEXT, "pthread_create") };
    if (atomic_load(&allowed) == 0) return EAGAIN;
    if (atomic_load(&allowed) > 0) atomic_fetch_sub(&allowed, 1);
    return real.create(thread, attributes, run, argument);
}

/* ---- loops ---- */

typedef struct tally {
    atomic_uint runs[MOST], workers[WORKERS], clashes; /* a worker's scratch is its own */
    long        us; /* that an index takes */
} tally;

static void count_runs(void *user, uint32_t worker, uint64_t first, uint64_t count) {
    tally *t = user;
    atomic_fetch_add(&t->clashes, atomic_fetch_add(&t->workers[worker], 1));
    for (uint64_t i = first; i < first + count; i++) {
        atomic_fetch_add(&t->runs[i], 1);
        if (t->us) rest(t->us);
    }
    atomic_fetch_sub(&t->workers[worker], 1);
}

static bool ran_once(const tally *t, uint64_t count) {
    bool once = atomic_load(&t->clashes) == 0;
    for (uint64_t i = 0; i < MOST; i++) once = once && atomic_load(&t->runs[i]) == (i < count);
    return once;
}

static void every_index_is_run_once(void **state) {
    static const uint64_t counts[] = { 1, 2, 3, 7, 16, 17, 100, MOST }, works[] = { 0, 1900, 5000, 1000000 };
    static tally t;
    (void)state;
    for (uint32_t threads = 1; threads <= 9; threads += 4) {
        hdi_thread_pool *thread_pool = hdi_thread_pool_new(&hdi_default_allocator, threads);
        assert_non_null(thread_pool);
        hdi_thread_pool_call(thread_pool, threads + 1); /* no more than it may have */
        assert_int_equal(hdi_thread_pool_most(thread_pool), threads);
        for (uint32_t round = 0; round < 400; round++) {
            const uint64_t count = counts[round % 8];
            memset(&t, 0, sizeof t);
            t.us = count < 20 && round % 16 > 10 ? 50 : 0;
            if (round % 50 == 49) rest(3000); /* now all are asleep */
            hdi_thread_pool_run(thread_pool, count_runs, &t, count, works[round / 8 % 4]);
            assert_true(ran_once(&t, count));
        }
        hdi_thread_pool_free(thread_pool);
    }
}

/* ---- copies ---- */

static const uint64_t sizes[] = { 0, 1, 63, 4097, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, (1 << 20) + 77, (3 << 20) + 13 };
enum { MOST_BYTES = (3 << 20) + 13, PLACES = 4 };
static const size_t places[PLACES][2] = { { 0, 0 }, { 1, 0 }, { 16, 3 }, { 63, 64 } }; /* of what is written, of what is read */

static void fill(unsigned char *bytes, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)((i + seed) * 2654435761u >> 11);
}

static bool all_are(const unsigned char *bytes, size_t count, unsigned char value) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value) return false;
    return true;
}

/* Each size at each place, and guard bytes around it. */
static bool copies_are_right(hdi_thread_pool *thread_pool, bool stages, uint32_t seed) {
    const size_t room = MOST_BYTES + 4 * GUARD;
    unsigned char *from = malloc(room), *to = malloc(room);
    bool right = from && to;
    if (right) fill(from, room, seed);
    for (size_t s = 0; s < HDI_COUNT(sizes) && right; s++)
        for (size_t p = 0; p < PLACES && right; p++) {
            unsigned char *target = to + GUARD + places[p][0];
            const unsigned char *source = from + places[p][1];
            memset(to, 0xA5, room);
            if (stages) hdi_thread_pool_stage(thread_pool, target, source, sizes[s]);
            else hdi_thread_pool_copy(thread_pool, target, source, sizes[s]);
            right = memcmp(target, source, sizes[s]) == 0 && all_are(to, GUARD + places[p][0], 0xA5) && all_are(target + sizes[s], GUARD, 0xA5);
        }
    free(from);
    free(to);
    return right;
}

/* What lies just behind the source, counted within a page, is copied in another way (thread_pool.c). */
static void copies_to_just_behind_the_source(void **state) {
    enum { PAGE = 4096, ROOM = 8 * PAGE };
    static const size_t counts[] = { 1, 1023, 1024, 1025, 2048, 5000, 3 * PAGE };
    unsigned char *from = aligned_alloc(PAGE, ROOM), *to = aligned_alloc(PAGE, ROOM);
    (void)state;
    assert_true(from && to);
    fill(from, ROOM, 7);
    for (size_t behind = 0; behind < 40; behind++)
        for (size_t c = 0; c < HDI_COUNT(counts); c++) {
            unsigned char *target = to + PAGE + behind;
            memset(to, 0xA5, ROOM);
            hdi_thread_pool_copy(NULL, target, from, counts[c]);
            assert_true(memcmp(target, from, counts[c]) == 0 && all_are(to, PAGE + behind, 0xA5) && all_are(target + counts[c], PAGE, 0xA5));
        }
    free(from);
    free(to);
}

static void copies_of_every_size_and_place(void **state) {
    static const uint32_t workers[] = { 0, 1, 2, 3, 9 };
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(workers); i++) {
        hdi_thread_pool *thread_pool = workers[i] ? hdi_thread_pool_new(&hdi_default_allocator, workers[i]) : NULL;
        for (int stages = 0; stages < 2; stages++) assert_true(copies_are_right(thread_pool, stages, workers[i]));
        hdi_thread_pool_free(thread_pool);
    }
}

/* ---- several callers ---- */

typedef struct caller {
    hdi_thread_pool *thread_pool;
    uint32_t  number;
    bool      right;
} caller;

static void *copy_and_count(void *argument) {
    caller *c = argument;
    tally *t = malloc(sizeof *t);
    c->right = t && copies_are_right(c->thread_pool, c->number % 2, c->number);
    for (uint32_t round = 0; round < 60 && c->right; round++) {
        memset(t, 0, sizeof *t);
        hdi_thread_pool_run(c->thread_pool, count_runs, t, MOST - round, 1000000);
        c->right = ran_once(t, MOST - round);
    }
    free(t);
    return NULL;
}

static void many_callers_at_once(void **state) {
    enum { CALLERS = 7 }; /* more than loops are shared at a time */
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    (void)state;
    hdi_thread_pool *thread_pool = hdi_thread_pool_new(&hdi_default_allocator, 4);
    assert_non_null(thread_pool);
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){ thread_pool, i, false };
        assert_int_equal(pthread_create(&threads[i], NULL, copy_and_count, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(callers[i].right);
    }
    hdi_thread_pool_free(thread_pool);
}

/* The thread pool makes do with those that it got, and does not ask again. */
static void threads_that_are_refused(void **state) {
    static tally t;
    (void)state;
    for (int granted = 0; granted <= 2; granted++) {
        hdi_thread_pool *thread_pool = hdi_thread_pool_new(&hdi_default_allocator, 6);
        atomic_store(&allowed, granted);
        assert_true(copies_are_right(thread_pool, granted % 2, 1));
        assert_int_equal(hdi_thread_pool_most(thread_pool), granted + 1);
        atomic_store(&allowed, -1);
        hdi_thread_pool_call(thread_pool, 6);
        assert_int_equal(hdi_thread_pool_most(thread_pool), granted + 1);
        memset(&t, 0, sizeof t);
        hdi_thread_pool_run(thread_pool, count_runs, &t, MOST, 1000000);
        assert_true(ran_once(&t, MOST));
        hdi_thread_pool_free(thread_pool);
    }
}

static void *no_memory(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    size_t *left = user;
    if (new_bytes > 0 && *left == 0) return NULL;
    if (new_bytes > 0) --*left;
    return hdi_default_allocator.resize(hdi_default_allocator.user, old, old_bytes, new_bytes);
}

static void memory_that_is_refused(void **state) {
    (void)state;
    for (size_t given = 0; given < 3; given++) {
        size_t left = given;
        const hd_allocator allocator = { no_memory, &left };
        hdi_thread_pool *thread_pool = hdi_thread_pool_new(&allocator, 3);
        assert_true((thread_pool != NULL) == (given == 2));
        hdi_thread_pool_free(thread_pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_run_once), cmocka_unit_test(copies_of_every_size_and_place), cmocka_unit_test(copies_to_just_behind_the_source), cmocka_unit_test(many_callers_at_once),
        cmocka_unit_test(threads_that_are_refused), cmocka_unit_test(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
