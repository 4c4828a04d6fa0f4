/* test_threads.c: many threads on one context, each with objects of its own: devices are opened and closed, plans made, run,
 * streamed over one and two devices, and ended, all at once. Run it with a number of seconds for each test. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <time.h>

enum { N = 16, MOST_THREADS = 8, PLANS = 4 };
static int seconds = 2;
static hd_context *context;
static hd_device *device, *beside;
static atomic_int failures;
static _Atomic uint64_t runs;
static struct timespec began;

static bool is_over(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - began.tv_sec >= seconds || atomic_load(&failures) > 0;
}

/* A thread's own checks: cmocka's are for the main thread. */
static bool holds(bool condition) {
    if (!condition) atomic_fetch_add(&failures, 1);
    return condition;
}
static bool did(hd_status status) { return holds(status == HD_OK); }

static void begin(void) {
    atomic_store(&failures, 0);
    atomic_store(&runs, 0);
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &beside), HD_OK);
    clock_gettime(CLOCK_MONOTONIC, &began);
}

static void run_threads(uint32_t count, void *(*const work[])(void *)) {
    pthread_t threads[MOST_THREADS];
    for (uint32_t i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, work[i],
        (void *)(uintptr_t)i), 0);
    for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    print_message("%llu runs\n", (unsigned long long)runs);
    if (failures) fail_msg("%d failures: %s", failures, hd_context_error(context));
    assert_int_equal(hd_context_live_objects(context), 2);
    hd_context_destroy(context);
}

static hd_program *relu(void) {
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_relu(p, hd_input(p, "x", HD_F32, HD_SHAPE(N, N))));
    return p;
}

/* y = relu(x x) exp(x), where products and the rest may be on two devices. */
static hd_program *product(void) {
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N, N));
    hd_output(p, "y", hd_matmul(p, hd_relu(p, hd_matmul(p, x, x)), hd_exp(p, x)));
    return p;
}

/* ---- each on a device of its own ---- */

static void *plans(void *user) {
    static const float x[N * N] = { 1 };
    (void)user;
    while (!is_over()) {
        hd_program *p = relu();
        hd_plan *plan;
        hd_ticket *ticket = NULL;
        if (!did(hd_plan_create(device, p, NULL, &plan))) break;
        hd_program_destroy(p);
        did(hd_plan_write(plan, "x", x, sizeof x));
        did(hd_plan_submit(plan, &ticket));
        did(hd_ticket_wait(ticket, 0));
        hd_ticket_destroy(ticket);
        hd_plan_destroy(plan);
        atomic_fetch_add(&runs, 1);
    }
    return NULL;
}

static void *devices(void *user) {
    (void)user;
    while (!is_over()) {
        hd_device *own;
        if (!did(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &own))) break;
        hd_device_close(own);
    }
    return NULL;
}

static void *streams(void *user) {
    (void)user;
    while (!is_over()) {
        hd_program *p = relu();
        hd_plan *plan;
        hd_stream *stream;
        if (!did(hd_plan_create(device, p, NULL, &plan))) break;
        hd_program_destroy(p);
        for (int k = 0; k < 8; k++) did(hd_stream_create(plan, NULL, &stream)); /* they end with their plan */
        hd_plan_destroy(plan);
        atomic_fetch_add(&runs, 1);
    }
    return NULL;
}

static void devices_close_beside_plans(void **state) {
    (void)state;
    begin();
    run_threads(4, (void *(*const[])(void *)){ devices, plans, plans, plans });
}

static void streams_end_beside_streams(void **state) {
    (void)state;
    begin();
    run_threads(4, (void *(*const[])(void *)){ streams, streams, streams, streams });
}

/* ---- everything at once ---- */

/* x is twice the identity: y = 4 exp(x). */
static bool is_right(const float *y) {
    const float one = 4 * 7.3890561f; /* exp(2) */
    bool right = true;
    for (int i = 0; i < N * N; i++) {
        const float wanted = i % (N + 1) == 0 ? one : 4;
        right = right && y[i] > wanted * 0.999f && y[i] < wanted * 1.001f;
    }
    return holds(right);
}

static void run_plan(hd_plan *plan, const float *x, uint32_t turn) {
    float y[N * N] = { 0 };
    hd_ticket *ticket = NULL;
    did(hd_plan_write(plan, "x", x, sizeof y));
    for (uint32_t i = 0; i < 3; i++) {
        if (turn % 2) did(hd_plan_run(plan, NULL));
        else if (did(hd_plan_submit(plan, &ticket))) {
            bool done;
            did(hd_ticket_poll(ticket, &done));
            if (turn % 3) did(hd_ticket_wait(ticket, 0));
            hd_ticket_destroy(ticket);
        }
        atomic_fetch_add(&runs, 1);
    }
    if (did(hd_plan_read(plan, "y", y, sizeof y))) is_right(y);
}

static void stream_plan(hd_plan *plan, const float *x) {
    float y[4][N * N];
    hd_stream *stream;
    if (!did(hd_stream_create(plan, NULL, &stream))) return;
    for (uint32_t i = 0; i < 4; i++) {
        const hd_stream_input in = { .name = "x", .data = x, .bytes = sizeof y[i] };
        const hd_stream_output out = { .name = "y", .data = y[i], .bytes = sizeof y[i] };
        did(hd_stream_submit(stream, &in, 1, &out, 1, NULL));
        atomic_fetch_add(&runs, 1);
    }
    did(hd_stream_finish(stream, 0));
    for (uint32_t i = 0; i < 4; i++) is_right(y[i]);
    hd_stream_destroy(stream);
}

static void *everything(void *user) {
    static const char *const routes[] = { NULL, "matmul=1", NULL, "auto", "exp=1", "relu=1" };
    float x[N * N] = { 0 };
    hd_plan *kept[PLANS] = { NULL };
    hd_device *own = NULL;
    for (int i = 0; i < N; i++) x[i * (N + 1)] = 2;
    for (uint32_t turn = (uint32_t)(uintptr_t)user; !is_over(); turn++) {
        hd_plan **plan = &kept[turn % PLANS];
        hd_plan_destroy(*plan);
        *plan = NULL;
        if (turn % 7 == 0) {
            hd_device_close(own);
            if (!did(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &own))) break;
        }
        hd_program *p = product();
        hd_device *others[2] = { beside, own };
        const bool three = own && turn % 5 == 0;
        const char *route = turn % 6 != 2 ? routes[turn % 6] : three ? "rest=rows:1:2:1" : "rest=rows:1:1";
        const hd_plan_desc desc = { .beside = others, .beside_count = three ? 2 : 1, .route = route };
        const bool alone = turn % 4 == 3;
        if (!did(hd_plan_create(turn % 3 ? device : beside, p, alone || turn % 3 == 0 ? NULL : &desc, plan))) break;
        hd_program_destroy(p);
        run_plan(*plan, x, turn);
        if (alone) stream_plan(*plan, x);
        if (three) { /* its device may close before it */
            hd_plan_destroy(*plan);
            *plan = NULL;
        }
    }
    for (uint32_t i = 0; i < PLANS; i++) hd_plan_destroy(kept[i]);
    hd_device_close(own);
    return NULL;
}

static void everything_at_once(void **state) {
    (void)state;
    begin();
    run_threads(8, (void *(*const[])(void *)){ everything, everything, everything, everything, everything, everything,
        everything, everything });
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_close_beside_plans), cmocka_unit_test(streams_end_beside_streams),
            cmocka_unit_test(everything_at_once),
    };
    if (count > 1) seconds = atoi(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
