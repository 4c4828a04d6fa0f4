/* test_cpu.c: the CPU device's pool runs every index once, whoever comes and whoever sleeps; short work is done when its
 * submission returns, in its order, also from many threads; and the thread that hands it over may round as it likes. */
#define _POSIX_C_SOURCE 200809L
#include "device/cpu/pool.h"
#include <fenv.h>
#include <heddle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

enum { MOST = 3000, ELEMENTS = 64 };

static void rest(long us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); }

/* ---- the pool ---- */

typedef struct tally {
    atomic_uint runs[MOST], workers[16], clashes; /* a worker's scratch is its own */
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

static void every_index_is_run_once(void **state) {
    static const uint64_t counts[] = { 1, 2, 3, 7, 16, 17, 100, MOST }, works[] = { 0, 1900, 5000, 1000000 };
    static tally t;
    (void)state;
    for (uint32_t threads = 1; threads <= 9; threads += 4) {
        hdcpu_pool *pool = hdcpu_pool_new(&hdi_default_allocator, threads);
        assert_non_null(pool);
        for (uint32_t round = 0; round < 400; round++) {
            const uint64_t count = counts[round % 8];
            memset(&t, 0, sizeof t);
            t.us = count < 20 && round % 16 > 10 ? 50 : 0;
            if (round % 50 == 49) rest(3000); /* now all are asleep */
            hdcpu_pool_run(pool, count_runs, &t, count, works[round / 8 % 4]);
            for (uint64_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&t.runs[i]), i < count);
            assert_int_equal(atomic_load(&t.clashes), 0);
        }
        hdcpu_pool_free(pool);
    }
}

/* ---- short work ---- */

typedef struct sum_work {
    hd_program *program;
    hd_plan    *plan;
    float       a[ELEMENTS], b[ELEMENTS], sum[ELEMENTS];
} sum_work;
static hd_context *context;
static hd_device *device;

static int open_cpu(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 3 }, &context) || hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device);
}

static int close_all(void **state) {
    (void)state;
    hd_device_close(device);
    const uint64_t live = hd_context_live_objects(context);
    hd_context_destroy(context);
    return live == 0 ? 0 : -1;
}

static hd_status begin(sum_work *work, float factor) {
    work->program = hd_program_create(context);
    const hd_value a = hd_input(work->program, "a", HD_F32, HD_SHAPE(ELEMENTS)), b = hd_input(work->program, "b", HD_F32, HD_SHAPE(ELEMENTS));
    hd_output(work->program, "sum", hd_softmax(work->program, hd_add(work->program, a, b), -1));
    for (int i = 0; i < ELEMENTS; i++) {
        work->a[i] = factor * (float)(i % 97) / 31.0f;
        work->b[i] = (float)(i % 89) / 7.0f;
    }
    hd_status status = hd_plan_create(device, work->program, NULL, &work->plan);
    if (!status) status = hd_plan_write(work->plan, "a", work->a, sizeof work->a);
    return status ? status : hd_plan_write(work->plan, "b", work->b, sizeof work->b);
}

static hd_status run(sum_work *work) {
    const hd_status status = hd_plan_run(work->plan, NULL);
    return status ? status : hd_plan_read(work->plan, "sum", work->sum, sizeof work->sum);
}

static void end(sum_work *work) {
    hd_plan_destroy(work->plan);
    hd_program_destroy(work->program);
}

/* What a copy will take at first is told by its bytes, and not by the clock: it is short on every machine. */
static void short_work_is_done_on_return(void **state) {
    const float x[16] = { 1 };
    hd_plan *plan;
    (void)state;
    hd_program *program = hd_program_create(context);
    hd_output(program, "y", hd_copy(program, hd_input(program, "x", HD_F32, HD_SHAPE(16))));
    assert_int_equal(hd_plan_create(device, program, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", x, sizeof x), HD_OK);
    hd_ticket *ticket;
    bool done = false;
    assert_int_equal(hd_plan_submit(plan, &ticket), HD_OK);
    assert_int_equal(hd_ticket_poll(ticket, &done), HD_OK);
    assert_true(done);
    hd_ticket_destroy(ticket);
    hd_plan_destroy(plan);
    hd_program_destroy(program);
}

/* Results must not hang on the thread that computes them. */
static void the_callers_rounding_is_not_used(void **state) {
    static sum_work work;
    static float expected[ELEMENTS];
    (void)state;
    assert_int_equal(begin(&work, 1), HD_OK);
    assert_int_equal(run(&work), HD_OK);
    memcpy(expected, work.sum, sizeof expected);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    hd_status status = HD_OK;
    int different = 0;
    for (int i = 0; i < 200 && !status; i++) {
        status = run(&work);
        different += memcmp(expected, work.sum, sizeof expected) != 0;
    }
    const int rounding = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(status, HD_OK);
    assert_int_equal(different, 0);
    assert_int_equal(rounding, FE_UPWARD);
    end(&work);
}

static void *run_often(void *argument) {
    sum_work *work = argument;
    float expected[ELEMENTS];
    for (int i = 0; i < 300; i++) {
        if (run(work)) return "a run failed";
        if (i == 0) memcpy(expected, work->sum, sizeof expected);
        if (memcmp(expected, work->sum, sizeof expected) != 0) return "a run gave other results";
    }
    return NULL;
}

static void many_threads_hand_over_short_work(void **state) {
    enum { THREADS = 4 };
    static sum_work works[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(begin(&works[i], (float)(i + 1)), HD_OK);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_often, &works[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result) fail_msg("thread %d: %s", i, (char *)result);
    }
    for (int i = 0; i < THREADS; i++) end(&works[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_run_once),
        cmocka_unit_test_setup_teardown(short_work_is_done_on_return, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(the_callers_rounding_is_not_used, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(many_threads_hand_over_short_work, open_cpu, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
