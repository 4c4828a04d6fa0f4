/* test_fault_memory.c: every host allocation fails once, and from there on: whatever call was under way says so, nothing
 * leaks, nothing crashes, and the next batch works. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "sweep.h"

/* An allocator that fails the n-th allocation, or that and all later ones, and counts what is alive. */
typedef struct failing {
    atomic_llong left;    /* allocations that still succeed; negative: failing */
    atomic_llong alive;
    bool         forever;
} failing;

static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    failing *f = user;
    (void)old_bytes;
    if (new_bytes == 0) {
        if (old) atomic_fetch_sub(&f->alive, 1);
        free(old);
        return NULL;
    }
    long long left = atomic_fetch_sub(&f->left, 1);
    if (f->forever ? left <= 0 : left == 0) return NULL; /* `left` counts on below zero */
    void *pointer = realloc(old, new_bytes);
    if (pointer && !old) atomic_fetch_add(&f->alive, 1);
    return pointer;
}

static const char program_text[] =
    "heddle 1\nv1 = input f32[6,8] \"x\"\nv2 = input f32[8] \"b\"\nv3 = relu v1\nv4 = scale v3 factor=2 bias=0\nv5 = add v4 v2\n"
    "v6 = permute v5 axes=[1,0]\nv7 = copy v6\nv8 = state f32[4] \"s\"\noutput v5 \"y\"\noutput v7 \"t\"\n";

/* Batches that overlap, watched. */
static void count_event(void *user, const hd_trace_event *event) {
    (void)event;
    ++*(unsigned *)user;
}
static hd_status stream_batches(hd_device *device, hd_plan *plan, float *x, float *y) {
    hd_stream *stream = NULL;
    hd_ticket *ticket = NULL;
    static unsigned events;
    hd_status status = hd_stream_create(plan, &(hd_stream_desc){ .depth = 2 }, &stream);
    if (!status) status = hd_device_trace(device, count_event, &events);
    for (int i = 0; i < 4 && !status; i++) {
        hd_ticket_destroy(ticket);
        status = hd_stream_submit(stream, &(hd_stream_input){ .name = "x", .data = x, .bytes = 192 }, 1, &(hd_stream_output){ .name = "y", .data = y, .bytes = 192 }, 1, &ticket);
    }
    if (!status) status = hd_ticket_wait(ticket, 0);
    if (!status) status = hd_device_trace(device, NULL, NULL);
    hd_stream_destroy(stream);
    return status;
}

/* One whole life of a context; HD_OK or the first failure. */
static hd_status scenario(failing *f, const char *backend) {
    hd_context_desc desc = { .allocator = { resize, f }, .backend = backend, .cache_dir = "", .cpu_threads = 2 };
    hd_context *context;
    hd_device *device = NULL;
    hd_program *program = NULL;
    hd_plan *plan = NULL;
    hd_buffer *buffer = NULL;
    hd_ticket *ticket = NULL;
    float data[48] = { 1 }, y[48];
    hd_status status = hd_context_create(&desc, &context);
    if (status) return status;
    status = hd_device_open(context, &(hd_device_desc){ .id = backend }, &device);
    if (!status) status = hd_program_parse(context, program_text, sizeof program_text - 1, &program);
    if (!status) status = hd_plan_create(device, program, NULL, &plan);
    if (!status) status = hd_plan_write(plan, "x", data, sizeof data);
    if (!status) status = hd_plan_write(plan, "b", data, 32);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_submit(plan, &ticket);
    if (!status) status = hd_ticket_wait(ticket, 0);
    if (!status) status = hd_plan_read(plan, "y", y, sizeof y);
    if (!status) status = stream_batches(device, plan, data, y);
    if (!status) status = hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 100 }, &buffer);
    if (!status) status = hd_buffer_write(buffer, 0, data, 100);
    if (!status) {
        size_t needed;
        status = hd_plan_explain(plan, NULL, 0, &needed);
    }
    hd_plan_destroy(plan);
    plan = NULL;
    if (!status) status = hd_plan_create(device, program, NULL, &plan);
    /* After a failure of one allocation the same context still works. */
    if (status && !f->forever && device && program && !plan) {
        atomic_store(&f->left, 1LL << 60);
        hd_status again = hd_plan_create(device, program, NULL, &plan);
        if (!again) again = hd_plan_write(plan, "x", data, sizeof data);
        if (!again) again = hd_plan_write(plan, "b", data, 32);
        if (!again) again = hd_plan_run(plan, NULL);
        assert_int_equal(again, HD_OK);
    }
    hd_context_destroy(context);
    return status;
}

/* The same for a plan on two devices; a state is on one of them. */
static hd_status scenario_of_two(failing *f, const char *backend, const char *route) {
    static const char text[] = "heddle 1\nv1 = input f32[4,4] \"x\"\nv2 = input i32[1] \"p\"\nv3 = state f32[6,4] \"s\"\nv4 = relu v1\nv5 = write_rows v3 v4 v2\n"
                               "v6 = sum v5 axis=0\nv7 = neg v6\noutput v7 \"y\"\noutput v4 \"z\"\n";
    hd_context_desc desc = { .allocator = { resize, f }, .backend = backend, .cache_dir = "", .cpu_threads = 1 };
    hd_context *context;
    hd_device *devices[2] = { NULL, NULL };
    hd_program *program = NULL;
    hd_plan *plan = NULL;
    hd_ticket *ticket = NULL;
    hd_plan_memory memory;
    float data[16] = { 1 };
    const int32_t at = 1;
    size_t needed;
    hd_status status = hd_context_create(&desc, &context);
    if (status) return status;
    for (int d = 0; d < 2 && !status; d++) status = hd_device_open(context, &(hd_device_desc){ .id = backend }, &devices[d]);
    if (!status) status = hd_program_parse(context, text, sizeof text - 1, &program);
    const uint64_t live = hd_context_live_objects(context);
    for (int round = 0; round < 2 && !status; round++) { /* the second time from ended plans */
        const hd_plan_desc plan_desc = { .beside = &devices[1], .beside_count = 1, .route = route };
        status = hd_plan_estimate(devices[0], program, &plan_desc, &memory);
        if (!status) status = hd_plan_create(devices[0], program, &plan_desc, &plan);
        if (!status) status = hd_plan_write(plan, "x", data, sizeof data);
        if (!status) status = hd_plan_write(plan, "p", &at, sizeof at);
        if (!status) status = hd_plan_run(plan, NULL);
        if (!status) status = hd_plan_submit(plan, &ticket);
        if (!status) status = hd_ticket_wait(ticket, 0);
        if (!status) status = hd_plan_read(plan, "y", data, 16);
        if (!status) status = hd_plan_explain(plan, NULL, 0, &needed);
        hd_ticket_destroy(ticket);
        hd_plan_destroy(plan);
        ticket = NULL;
        plan = NULL;
        assert_int_equal(hd_context_live_objects(context), live);
    }
    hd_context_destroy(context);
    return status;
}

static void take_choice(void *user, const hd_fact *fact) { *(hd_kernel_choice *)user = fact->choice; }

/* Measuring the options of a kernel. */
static hd_status scenario_of_tuning(failing *f, const char *backend) {
    static const char text[] = "heddle 1\nv1 = input f32[4,256] \"x -1 1\"\nv2 = input q4_0[64,256] \"w\"\nv3 = matmul v1 v2 transpose_b\noutput v3 \"y\"\n";
    hd_context_desc desc = { .allocator = { resize, f }, .backend = backend, .cache_dir = "", .cpu_threads = 1 };
    hd_context *context;
    hd_device *device = NULL;
    hd_program *program = NULL;
    hd_kernel_choice choice = { 0 };
    hd_status status = hd_context_create(&desc, &context);
    if (status) return status;
    status = hd_device_open(context, &(hd_device_desc){ .id = backend }, &device);
    if (!status) status = hd_program_parse(context, text, sizeof text - 1, &program);
    const hd_program *const programs[] = { program };
    if (!status) status = hd_device_calibrate(device, &(hd_calibrate_desc){ .kinds = HD_FACT_CHOICE, .programs = programs, .program_count = 1, .rounds = 1, .report = take_choice, .user = &choice });
    if (!status) assert_true(choice.options > 2);
    hd_context_destroy(context);
    return status;
}

static hd_status scenario_of_segments(failing *f, const char *backend) { return scenario_of_two(f, backend, "sum=1"); } /* three */
static hd_status scenario_of_rows(failing *f, const char *backend) { return scenario_of_two(f, backend, "v4=rows:50:50,v7=1"); }
static hd_status scenario_of_auto(failing *f, const char *backend) { return scenario_of_two(f, backend, "auto"); }

static void sweep(hd_status (*life)(failing *f, const char *backend), const char *backend, bool forever) {
    unsigned faults = 0;
    for (long long n = 0;; n += SWEEP_STEP) {
        failing f = { .forever = forever };
        atomic_init(&f.left, n);
        hd_status status = life(&f, backend);
        assert_int_equal(atomic_load(&f.alive), 0);
        if (atomic_load(&f.left) >= 0 && status == HD_OK) break; /* there was no n-th allocation */
        faults++;
        /* HD_OK: it was one that can be done without, such as another worker thread. */
        if (status != HD_OK && status != HD_STATUS_OUT_OF_HOST_MEMORY && status != HD_STATUS_OUT_OF_DEVICE_MEMORY && status != HD_STATUS_DEVICE_CREATION)
            fail_msg("allocation %lld: status %s", n, hd_status_name(status));
        assert_true(n < 20000);
    }
    print_message("%s, %s: %u allocation faults\n", backend, forever ? "from there on" : "once", faults);
    assert_true(faults > 20 / SWEEP_STEP);
}

static void cpu_once(void **state) { (void)state; sweep(scenario, "cpu", false); }
static void cpu_forever(void **state) { (void)state; sweep(scenario, "cpu", true); }
static void null_once(void **state) { (void)state; sweep(scenario, "null", false); }
static void two_once(void **state) { (void)state; sweep(scenario_of_segments, "cpu", false); }
static void rows_once(void **state) { (void)state; sweep(scenario_of_rows, "cpu", false); }
static void rows_forever(void **state) { (void)state; sweep(scenario_of_rows, "null", true); }
static void two_forever(void **state) { (void)state; sweep(scenario_of_segments, "null", true); }
static void auto_once(void **state) { (void)state; sweep(scenario_of_auto, "cpu", false); }

static void tuning_once(void **state) { (void)state; sweep(scenario_of_tuning, "cpu", false); }
static void tuning_forever(void **state) { (void)state; sweep(scenario_of_tuning, "cpu", true); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cpu_once), cmocka_unit_test(cpu_forever), cmocka_unit_test(null_once),
                                         cmocka_unit_test(two_once), cmocka_unit_test(two_forever), cmocka_unit_test(rows_once), cmocka_unit_test(rows_forever), cmocka_unit_test(auto_once),
                                         cmocka_unit_test(tuning_once), cmocka_unit_test(tuning_forever) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
