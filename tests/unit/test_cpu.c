/* test_cpu.c: short work of the CPU device is done when its submission returns, in its order, also from many threads; and the
 * thread that hands it over may round as it likes. */
#define _POSIX_C_SOURCE 200809L
#include <fenv.h>
#include <heddle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ELEMENTS = 64 };

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
        cmocka_unit_test_setup_teardown(short_work_is_done_on_return, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(the_callers_rounding_is_not_used, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(many_threads_hand_over_short_work, open_cpu, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
