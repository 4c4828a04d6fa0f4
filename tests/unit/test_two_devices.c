/* test_two_devices.c: plans on two devices: whatever the places, a program gives the bits that it gives on one; states live on
 * over runs; what is independent is handed over at once; misuse has its own status. The CPU stands beside itself, beside
 * lavapipe and PoCL where they are, and beside the null device where results do not matter. */
#include "chance_programs.h"
#include <stdlib.h>

static hd_device *device, *beside;

static hd_device *open_device(const char *id) {
    hd_device *opened = NULL;
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &opened)) hd_context_error(context);
    return opened;
}

static int open_context(void **state) {
    (void)state;
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context)) return -1;
    device = open_device("cpu");
    beside = open_device("cpu");
    return device && beside ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    hd_device_close(beside);
    uint64_t live = hd_context_live_objects(context);
    hd_context_destroy(context);
    return live == 1 ? 0 : -1;
}

static hd_plan *plan_on(const hd_program *p, const char *route) {
    hd_plan *plan = NULL;
    check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = route }, &plan));
    return plan;
}

/* ---- programs by chance ---- */

/* Not all drivers keep commands: NVIDIA's OpenCL has no command buffers, and encodes those of every run. */
static bool keeps_commands(hd_device *on, const hd_program *p) {
    results *out = calloc(1, sizeof *out);
    hd_plan *plan = NULL;
    hd_plan_stats stats;
    check(hd_plan_create(on, p, NULL, &plan));
    run_twice(plan, out);
    check(hd_plan_get_stats(plan, &stats));
    hd_plan_destroy(plan);
    free(out);
    return stats.records < 2;
}

static void bits_are_those_of_one_device(uint32_t programs, uint32_t places) {
    uint32_t segments = 0, most = 0, tried = 0;
    uint64_t crossed = 0;
    for (uint32_t k = 0; k < programs; k++) {
        hd_program *p = any_program();
        results *whole = calloc(1, sizeof *whole), *parts = calloc(1, sizeof *parts);
        hd_plan *plan = NULL;
        check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
        run_twice(plan, whole);
        hd_plan_destroy(plan);
        const bool replays = keeps_commands(device, p) && keeps_commands(beside, p);
        for (uint32_t i = 0; i < places; i++) {
            char route[4096];
            hd_plan_stats stats;
            any_route(p, 2, route, sizeof route);
            plan = plan_on(p, route);
            memset(parts, 0, sizeof *parts);
            run_twice(plan, parts);
            if (memcmp(whole, parts, sizeof *whole) != 0) {
                static char text[1 << 18];
                hd_plan_explain(plan, text, sizeof text, NULL);
                fail_msg("route \"%s\" gives other bits:\n%s", route, text);
            }
            check(hd_plan_get_stats(plan, &stats));
            assert_true(stats.runs == 2 && (!replays || stats.records <= stats.segments)); /* the second run is a replay */
            segments += stats.segments;
            crossed += stats.crossing_bytes;
            most = stats.segments > most ? stats.segments : most;
            tried++;
            hd_plan_destroy(plan);
        }
        hd_program_destroy(p);
        free(whole);
        free(parts);
    }
    print_message("%u placements: %.1f segments each, at most %u, %.0f bytes crossing each\n", tried, (double)segments / tried, most, (double)crossed / tried);
    assert_true(tried < 100 || (most > 5 && segments > 2 * tried));
}

static void on_the_cpu_twice(void **state) {
    (void)state;
    bits_are_those_of_one_device(60, 4);
}

/* Instead of the second CPU, and of the first where `first` is named. */
static void swap_devices(const char *first, const char *second) {
    hd_device_close(beside);
    beside = open_device(second);
    if (first && beside) {
        hd_device_close(device);
        device = open_device(first);
    }
    if (beside && device) return;
    print_message("no %s here\n", beside ? first : second);
    if (!device) device = open_device("cpu");
    if (!beside) beside = open_device("cpu");
    skip();
}

static void beside_vulkan(void **state) {
    (void)state;
    swap_devices(NULL, "vulkan");
    bits_are_those_of_one_device(20, 11);
}

static void vulkan_beside_opencl(void **state) {
    (void)state;
    swap_devices("vulkan", "opencl");
    bits_are_those_of_one_device(2, 4);
}

/* ---- one program ---- */

/* y = relu(x w) w2 by way of the other device, and z = 2 x beside all of it. */
static hd_program *small_program(int64_t n) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(n, n)), w = hd_input(p, "w", HD_F32, HD_SHAPE(n, n));
    hd_output(p, "y", hd_matmul(p, hd_relu(p, hd_matmul(p, x, w)), w));
    hd_output(p, "z", hd_scale(p, x, 2, 0));
    return p;
}

/* More than what lies where the host sees it: through the staging memory of both devices. */
static const char *driver = "opencl"; /* or as main's argument says */
static void large_values_cross(void **state) {
    (void)state;
    swap_devices(driver, driver);
    enum { N = 600 };
    hd_program *p = hd_program_create(context);
    float *x = calloc(N * N, sizeof *x), *y = calloc(N * N, sizeof *y);
    for (int i = 0; i < N * N; i++) x[i] = (float)(i % 1000);
    hd_output(p, "y", hd_neg(p, hd_abs(p, hd_neg(p, hd_input(p, "x", HD_F32, HD_SHAPE(N, N))))));
    hd_plan *plan = plan_on(p, "abs=1");
    check(hd_plan_write(plan, "x", x, N * N * sizeof *x));
    for (int run = 0; run < 2; run++) {
        check(hd_plan_run(plan, NULL));
        check(hd_plan_read(plan, "y", y, N * N * sizeof *y));
        for (int i = 0; i < N * N; i++)
            if (y[i] != -x[i]) fail_msg("element %d is %g, not %g", i, (double)y[i], (double)-x[i]);
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    free(x);
    free(y);
}

static void the_same_batch_again_builds_nothing(void **state) {
    (void)state;
    hd_program *p = small_program(16);
    float data[256] = { 1 };
    hd_device_stats before[2], after[2];
    for (int round = 0; round < 2; round++) {
        hd_device_get_stats(device, &before[0]);
        hd_device_get_stats(beside, &before[1]);
        hd_plan *plan = plan_on(p, "relu=1");
        check(hd_plan_write(plan, "x", data, sizeof data));
        check(hd_plan_write(plan, "w", data, sizeof data));
        for (int run = 0; run < 3; run++) check(hd_plan_run(plan, NULL));
        hd_plan_stats stats;
        check(hd_plan_get_stats(plan, &stats));
        assert_int_equal(stats.segments, 3);
        assert_int_equal(stats.crossing_bytes, 2 * sizeof data);
        hd_plan_destroy(plan);
        hd_device_get_stats(device, &after[0]);
        hd_device_get_stats(beside, &after[1]);
        assert_int_equal(after[0].submissions - before[0].submissions, 6);
        assert_int_equal(after[1].submissions - before[1].submissions, 3);
        for (int d = 0; d < 2 && round == 1; d++) {
            assert_int_equal(after[d].commands_recorded, before[d].commands_recorded);
            assert_int_equal(after[d].allocations, before[d].allocations);
        }
    }
    hd_program_destroy(p);
}

static void memory_is_counted_once(void **state) {
    (void)state;
    hd_program *p = small_program(16);
    hd_plan_memory estimate, memory, each[2];
    float data[256] = { 1 };
    hd_device_stats before[2], after[2];
    hd_plan_desc desc = { .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = "relu=1" };
    check(hd_plan_estimate(device, p, &desc, &estimate));
    check(hd_plan_estimate_each(device, p, &desc, each));
    hd_device_get_stats(device, &before[0]);
    hd_device_get_stats(beside, &before[1]);
    hd_plan *plan = plan_on(p, "relu=1");
    check(hd_plan_get_memory(plan, &memory));
    assert_memory_equal(&memory, &estimate, sizeof memory);
    assert_int_equal(memory.input_bytes, 2 * sizeof data); /* x and w, on the device only, once for two segments */
    check(hd_plan_write(plan, "x", data, sizeof data));
    check(hd_plan_write(plan, "w", data, sizeof data));
    check(hd_plan_run(plan, NULL));
    hd_device_get_stats(device, &after[0]);
    hd_device_get_stats(beside, &after[1]);
    for (int d = 0; d < 2; d++) assert_int_equal(after[d].device_bytes - before[d].device_bytes, each[d].total_bytes);
    assert_int_equal(each[0].total_bytes + each[1].total_bytes, memory.total_bytes);
    hd_plan_destroy(plan);
    desc.budget_bytes = memory.total_bytes;
    check(hd_plan_create(device, p, &desc, &plan));
    hd_plan_destroy(plan);
    desc.budget_bytes = 4096;
    assert_int_equal(hd_plan_create(device, p, &desc, &plan), HD_STATUS_OVER_BUDGET);
    assert_int_equal(hd_plan_estimate(device, p, &desc, &estimate), HD_STATUS_OVER_BUDGET);
    hd_context_error(context);
    hd_program_destroy(p);
}

/* ---- route "auto" ---- */

static void forget(hd_device *of) { check(hd_device_calibrate(of, &(hd_calibrate_desc){ .forget = 1 })); }

/* Invented measurements: what a product and a softmax of any size take. */
static void invent(hd_device *of, uint64_t product_ns, uint64_t softmax_ns) {
    hd_sample samples[8];
    for (int i = 0; i < 8; i++) {
        hd_program *p = hd_program_create(context);
        const int64_t n = 16 + 16 * (i / 2);
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(n, n));
        hd_output(p, "y", i % 2 ? hd_matmul(p, x, x) : hd_softmax(p, x, -1));
        samples[i] = (hd_sample){ .program = p, .ns = 5000 + (i % 2 ? product_ns : softmax_ns) };
    }
    forget(of);
    check(hd_device_calibrate(of, &(hd_calibrate_desc){ .kinds = HD_FACT_FIGURE, .samples = samples, .sample_count = 8 }));
    for (int i = 0; i < 8; i++) hd_program_destroy((hd_program *)samples[i].program);
}

static void run_auto(hd_program *p, uint32_t segments, const char *said) {
    static float x[64 * 64], y[2][64 * 64];
    static char text[1 << 16];
    hd_plan *plan[2];
    hd_plan_stats stats;
    for (int i = 0; i < 64 * 64; i++) x[i] = (float)chance(1000) / 500 - 1;
    plan[0] = plan_on(p, NULL);
    plan[1] = plan_on(p, "auto");
    for (int k = 0; k < 2; k++) {
        check(hd_plan_write(plan[k], "x", x, sizeof x));
        for (int run = 0; run < 5; run++) check(hd_plan_run(plan[k], NULL));
        check(hd_plan_read(plan[k], "y", y[k], sizeof y[k]));
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    check(hd_plan_get_stats(plan[1], &stats));
    check(hd_plan_explain(plan[1], text, sizeof text, NULL));
    if (stats.segments != segments || !strstr(text, said)) fail_msg("%u segments, %s", stats.segments, text);
    assert_true(stats.predicted_ns > 0 && stats.predicted_ns <= stats.predicted_alone_ns);
    check(hd_plan_get_stats(plan[0], &stats));
    assert_true(stats.predicted_ns == 0);
    hd_plan_destroy(plan[0]);
    hd_plan_destroy(plan[1]);
}

static void auto_takes_what_is_faster(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(64, 64)), s = hd_softmax(p, x, -1);
    hd_output(p, "y", hd_matmul(p, s, s));
    invent(device, 900000000, 1000000);
    invent(beside, 1000000, 900000000);
    run_auto(p, 2, "v3 matmul (matmul word): on cpu"); /* the softmax on one, the product on the other */
    invent(device, 1000000, 1000000);
    invent(beside, 900000000, 900000000);
    run_auto(p, 1, "because it is faster here");
    hd_program_destroy(p);
    forget(device);
    forget(beside);
}

static void a_closed_device_ends_plans_beside_it(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_softmax(p, hd_input(p, "x", HD_F32, HD_SHAPE(64, 64)), -1));
    invent(device, 100, 100);
    invent(beside, 900000000, 900000000);
    const uint64_t live = hd_context_live_objects(context);
    hd_plan_stats stats;
    check(hd_plan_get_stats(plan_on(p, "auto"), &stats));
    assert_true(stats.segments == 1 && stats.predicted_ns == stats.predicted_alone_ns);
    assert_int_equal(hd_context_live_objects(context), live + 1);
    forget(beside);
    hd_device_close(beside);
    beside = NULL;
    assert_int_equal(hd_context_live_objects(context), live - 1);
    hd_program_destroy(p);
    forget(device);
}

static void auto_knows_what_stays(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_matmul(p, hd_input(p, "x", HD_F32, HD_SHAPE(4, 64)), hd_input(p, "w", HD_F32, HD_SHAPE(64, 64))));
    const char *const weights[] = { "w" }, *const wrong[] = { "z" };
    hd_plan *plan[2];
    hd_plan_stats stats[2];
    for (int k = 0; k < 2; k++) {
        check(hd_plan_create(device, p, &(hd_plan_desc){ .beside = &beside, .beside_count = 1, .route = "auto", .resident = weights, .resident_count = (uint32_t)k }, &plan[k]));
        check(hd_plan_get_stats(plan[k], &stats[k]));
        hd_plan_destroy(plan[k]);
    }
    assert_true(stats[1].predicted_ns < stats[0].predicted_ns);
    assert_int_equal(hd_plan_create(device, p, &(hd_plan_desc){ .beside = &beside, .beside_count = 1, .route = "auto", .resident = wrong, .resident_count = 1 }, &plan[0]), HD_STATUS_NAME_NOT_FOUND);
    hd_context_error(context);
    check(hd_plan_create(device, p, &(hd_plan_desc){ .route = "auto" }, &plan[0])); /* nothing to choose between */
    check(hd_plan_get_stats(plan[0], &stats[0]));
    assert_true(stats[0].segments == 1 && stats[0].predicted_ns == 0);
    hd_plan_destroy(plan[0]);
    hd_program_destroy(p);
}

static void tuning_refuses_what_it_cannot_read(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(64, 64));
    hd_output(p, "y", hd_matmul(p, hd_softmax(p, x, -1), x));
    const hd_sample mixed = { .program = p, .ns = 1000 };
    hd_fact facts[64];
    hd_calibrate_desc desc = { .kinds = HD_FACT_FIGURE, .samples = &mixed, .sample_count = 1 };
    size_t count = 64;
    uint64_t run_ns = 0, transfers_ns = 0;
    assert_int_equal(hd_device_calibrate(device, &desc), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(context), "one kind of work at a time"));
    assert_int_equal(hd_device_calibrate(NULL, &desc), HD_STATUS_NULL_POINTER);
    desc.samples = NULL;
    assert_int_equal(hd_device_calibrate(device, &desc), HD_STATUS_NULL_POINTER);
    desc.sample_count = 0;
    check(hd_device_calibrate(device, &desc));
    desc.kinds = 16;
    assert_int_equal(hd_device_calibrate(device, &desc), HD_STATUS_INVALID_ARGUMENT);
    hd_context_error(context);
    check(hd_device_facts(device, NULL, &count));
    check(hd_device_facts(device, facts, &count));
    for (size_t i = 0; i < count; i++)
        assert_true(facts[i].kind == HD_FACT_FIGURE && facts[i].figure.samples == 0 && facts[i].figure.fixed_ns >= 0);
    count = 1;
    assert_int_equal(hd_device_facts(device, facts, &count), HD_STATUS_LIMIT);
    hd_context_error(context);
    check(hd_device_predict(device, p, &run_ns, &transfers_ns));
    assert_true(run_ns > 0 && transfers_ns > 0);
    hd_program_destroy(p);
}

static void misuse_has_its_own_status(void **state) {
    (void)state;
    hd_program *p = small_program(8);
    hd_plan *plan = NULL;
    float data[64] = { 1 };
    static const struct { const char *route, *said; bool alone; hd_status status; } bad[] = {
        { "rest=0", "needs a second device", true, HD_STATUS_INVALID_ARGUMENT },
        { "relu=1", "needs a second device", true, HD_STATUS_INVALID_ARGUMENT }, { "relu=2", "byte 6", false, HD_STATUS_PARSE },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hd_plan_desc desc = { .beside = &beside, .beside_count = !bad[i].alone, .route = bad[i].route };
        assert_int_equal(hd_plan_create(device, p, &desc, &plan), bad[i].status);
        const char *said = hd_context_error(context);
        if (!strstr(said, bad[i].said)) fail_msg("\"%s\" says \"%s\"", bad[i].route, said);
        assert_null(plan);
    }
    assert_int_equal(hd_plan_create(device, p, &(hd_plan_desc){ .beside = &device, .beside_count = 1 }, &plan), HD_STATUS_INVALID_ARGUMENT);
    size_t needed;
    char caps[4096];
    check(hd_device_caps_text(context, "cpu", caps, sizeof caps, NULL));
    assert_int_equal(hd_explain(context, p, caps, &(hd_plan_desc){ .beside = &beside, .beside_count = 1 }, NULL, 0, &needed), HD_STATUS_UNSUPPORTED);
    hd_context_error(context);
    plan = plan_on(p, "relu=1,scale=1");
    assert_int_equal(hd_plan_write(plan, "v3", data, sizeof data), HD_STATUS_NAME_NOT_FOUND); /* a crossing's name is not the caller's */
    assert_int_equal(hd_plan_read(plan, "v3", data, sizeof data), HD_STATUS_NAME_NOT_FOUND);
    assert_int_equal(hd_plan_read(plan, "y", data, sizeof data), HD_STATUS_WRONG_STATE);
    assert_int_equal(hd_plan_write(plan, "x", data, 60), HD_STATUS_SHAPE);
    check(hd_plan_write(plan, "x", data, sizeof data));
    hd_context_error(context);
    hd_device_stats stats;
    hd_device_get_stats(device, &stats);
    const uint64_t submissions = stats.submissions;
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    assert_non_null(strstr(hd_context_error(context), "\"w\" was never written"));
    hd_device_get_stats(device, &stats);
    assert_int_equal(stats.submissions, submissions); /* found before anything ran */
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static void buffers_are_bound_where_the_value_lives(void **state) {
    (void)state;
    hd_program *p = small_program(8);
    hd_plan *plan = plan_on(p, "relu=1,scale=1");
    hd_buffer *here, *there;
    float x[64], y[64], w[64] = { 0 };
    for (int i = 0; i < 64; i++) x[i] = (float)i, w[i] = i % 9 == 0;
    check(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 1024 }, &here));
    check(hd_buffer_create(beside, &(hd_buffer_desc){ .bytes = 1024 }, &there));
    assert_int_equal(hd_plan_bind(plan, "w", there, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_plan_bind(plan, "v3", here, 0), HD_STATUS_NAME_NOT_FOUND);
    hd_context_error(context);
    check(hd_plan_bind(plan, "x", here, 0)); /* each device has its own */
    check(hd_plan_bind(plan, "x", there, 0));
    check(hd_buffer_write(here, 0, x, sizeof x));
    check(hd_buffer_write(there, 0, x, sizeof x));
    check(hd_plan_bind(plan, "w", here, 256)); /* two segments read it */
    check(hd_plan_bind(plan, "z", there, 512));
    check(hd_buffer_write(here, 256, w, sizeof w));
    check(hd_plan_run(plan, NULL));
    check(hd_plan_read(plan, "y", y, sizeof y));
    assert_memory_equal(x, y, sizeof y); /* w is the identity */
    check(hd_buffer_read(there, 512, y, sizeof y));
    for (int i = 0; i < 64; i++) assert_true(y[i] == 2 * x[i]);
    hd_plan_destroy(plan);
    hd_buffer_destroy(here);
    hd_buffer_destroy(there);
    hd_program_destroy(p);
}

static void all_may_be_on_either(void **state) {
    (void)state;
    hd_program *p = small_program(8);
    static const char *const routes[] = { NULL, "matmul=0", "rest=1", "v1-v6=1", "rest=0" };
    float data[64] = { 3 };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        hd_device_stats before, after;
        hd_plan_stats stats;
        hd_device_get_stats(beside, &before);
        hd_plan *plan = plan_on(p, routes[i]);
        check(hd_plan_write(plan, "x", data, sizeof data));
        check(hd_plan_write(plan, "w", data, sizeof data));
        check(hd_plan_run(plan, NULL));
        check(hd_plan_get_stats(plan, &stats));
        hd_device_get_stats(beside, &after);
        assert_int_equal(stats.segments, 1);
        assert_int_equal(stats.crossing_bytes, 0);
        assert_int_equal(after.submissions - before.submissions, i == 2 || i == 3);
        hd_plan_destroy(plan);
    }
    hd_program_destroy(p);
}

/* ---- runs under way ---- */

/* Segments that do not wait for each other are handed over before anybody waits, though the first takes its time; one that does
 * wait is handed over later. The null device is beside the CPU. */
static void independent_segments_are_under_way_at_once(void **state) {
    (void)state;
    swap_devices(NULL, "null");
    enum { N = 512 };
    float *data = calloc(N * N, sizeof *data);
    for (int joined = 0; joined < 2; joined++) {
        hd_program *p = hd_program_create(context);
        hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N, N)), y = x, z = hd_neg(p, x);
        for (int i = 0; i < 8; i++) y = hd_matmul(p, y, x);
        hd_output(p, "z", z);
        hd_output(p, "y", joined ? hd_exp(p, y) : y);
        hd_plan *plan = plan_on(p, joined ? "exp=1,neg=1" : "neg=1");
        hd_device_stats before, after;
        hd_ticket *ticket;
        bool done = false;
        check(hd_plan_write(plan, "x", data, N * N * sizeof *data));
        check(hd_plan_run(plan, NULL));
        hd_device_get_stats(beside, &before);
        check(hd_plan_submit(plan, &ticket));
        check(hd_ticket_poll(ticket, &done));
        hd_device_get_stats(beside, &after);
        if (joined && done) print_message("the product was done at once: nothing is shown\n");
        else assert_int_equal(after.submissions - before.submissions, !joined);
        check(hd_ticket_wait(ticket, 0));
        hd_device_get_stats(beside, &after);
        assert_int_equal(after.submissions - before.submissions, 1);
        hd_ticket_destroy(ticket);
        hd_plan_destroy(plan);
        hd_program_destroy(p);
    }
    free(data);
}

static void tickets_carry_runs_on(void **state) {
    (void)state;
    enum { N = 256 };
    hd_program *p = small_program(N);
    hd_plan *plan = plan_on(p, "relu=1");
    float *x = calloc(N * N, sizeof *x), *w = calloc(N * N, sizeof *w), *y = calloc(N * N, sizeof *y);
    for (int i = 0; i < N * N; i++) x[i] = (float)(i % 7), w[i] = i % (N + 1) == 0;
    check(hd_plan_write(plan, "x", x, N * N * sizeof *x));
    check(hd_plan_write(plan, "w", w, N * N * sizeof *w));
    hd_ticket *tickets[8];
    for (int i = 0; i < 8; i++) check(hd_plan_submit(plan, &tickets[i]));
    check(hd_ticket_wait(tickets[7], 0));
    for (int i = 0; i < 8; i++) {
        bool done = false;
        check(hd_ticket_poll(tickets[i], &done));
        assert_true(done);
        hd_ticket_destroy(tickets[i]);
    }
    check(hd_plan_submit(plan, &tickets[0]));
    check(hd_plan_read(plan, "y", y, N * N * sizeof *y)); /* waits for the run */
    assert_memory_equal(x, y, N * N * sizeof *y);
    hd_ticket_destroy(tickets[0]);
    check(hd_plan_submit(plan, &tickets[0]));
    hd_plan_destroy(plan); /* before its last segment, unless the others are done already */
    hd_status status = hd_ticket_wait(tickets[0], 0);
    assert_true(status == HD_STATUS_WRONG_STATE || status == HD_OK);
    hd_context_error(context);
    hd_ticket_destroy(tickets[0]);
    /* A device that closes takes the plan along. */
    plan = plan_on(p, "relu=1");
    check(hd_plan_write(plan, "x", x, N * N * sizeof *x));
    check(hd_plan_write(plan, "w", w, N * N * sizeof *w));
    check(hd_plan_submit(plan, &tickets[0]));
    hd_device_close(beside);
    beside = open_device("cpu");
    hd_program_destroy(p);
    free(x);
    free(w);
    free(y);
}

static void explain_tells_the_segments(void **state) {
    (void)state;
    hd_program *p = small_program(8);
    hd_plan *plan = NULL;
    static char text[1 << 16];
    float data[64] = { 1 };
    check(hd_plan_create(device, p, &(hd_plan_desc){ .beside = &beside, .beside_count = 1, .route = "relu=1", .timestamps = 1 }, &plan));
    check(hd_plan_explain(plan, text, sizeof text, NULL));
    assert_non_null(strstr(text, "\nsegments\nsegment 0 on cpu: v3 matmul, v6 scale\nsegment 1 on cpu: v4 relu\n  takes v3 f32[8,8] of segment 0: 256 bytes cross\n"));
    assert_non_null(strstr(text, "\nsegment 2 on device 0\n\nplan\n"));
    assert_non_null(strstr(text, " v5 matmul: ")); /* as the whole program counts */
    assert_non_null(strstr(text, " of segment 1: v3, 256 bytes\n"));
    check(hd_plan_write(plan, "x", data, sizeof data));
    check(hd_plan_write(plan, "w", data, sizeof data));
    check(hd_plan_run(plan, NULL));
    hd_timing timings[8];
    size_t count = 8;
    check(hd_plan_timings(plan, timings, &count));
    assert_int_equal(count, 4);
    assert_non_null(strstr(timings[2].label, "v4 relu"));
    assert_non_null(strstr(timings[3].label, "v5 matmul"));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

int main(int count, char **arguments) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, open_context, close_all)
    const struct CMUnitTest tests[] = {
        TEST(on_the_cpu_twice), TEST(beside_vulkan), TEST(vulkan_beside_opencl), TEST(large_values_cross),
        TEST(the_same_batch_again_builds_nothing), TEST(memory_is_counted_once), TEST(auto_takes_what_is_faster), TEST(a_closed_device_ends_plans_beside_it), TEST(auto_knows_what_stays), TEST(tuning_refuses_what_it_cannot_read),
        TEST(misuse_has_its_own_status), TEST(buffers_are_bound_where_the_value_lives), TEST(all_may_be_on_either), TEST(independent_segments_are_under_way_at_once),
        TEST(tickets_carry_runs_on), TEST(explain_tells_the_segments),
    };
    const struct CMUnitTest alone[] = { TEST(large_values_cross) };
    if (count > 1) driver = arguments[1];
    return count > 1 ? cmocka_run_group_tests(alone, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
