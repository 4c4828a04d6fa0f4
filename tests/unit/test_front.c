/* test_front.c: the public calls in their order and out of it, on the CPU device: every misuse has its own status, nothing
 * is left alive, and the same batch again builds, compiles and records nothing. */
#include <heddle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static hd_context *context;
static hd_device *device;

static int open_cpu(void **state) {
    (void)state;
    const hd_context_desc desc = { .backend = "cpu", .cache_dir = "" };
    if (hd_context_create(&desc, &context)) return -1;
    return hd_device_open(context, NULL, &device);
}

static int close_all(void **state) {
    (void)state;
    uint64_t live = hd_context_live_objects(context);
    hd_context_destroy(context);
    return live == 1 ? 0 : -1; /* the device only: each test ended what it made */
}

/* y = relu(x) * 2 + b over n elements, and a state that is only named. */
static hd_program *small_program(int64_t n) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(n)), b = hd_input(p, "b", HD_F32, HD_SHAPE(n));
    hd_state(p, "s", HD_F32, HD_SHAPE(4));
    hd_output(p, "y", hd_add(p, hd_scale(p, hd_relu(p, x), 2, 0), b));
    return p;
}

static void a_program_runs(void **state) {
    (void)state;
    hd_program *p = small_program(5);
    hd_plan *plan;
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    hd_program_destroy(p); /* plans live on */
    const float x[5] = { -2, -1, 0, 1, 2 }, b[5] = { 10, 20, 30, 40, 50 }, wanted[5] = { 10, 20, 30, 42, 54 };
    float y[5], s[4] = { 1, 1, 1, 1 };
    assert_int_equal(hd_plan_write(plan, "x", x, sizeof x), HD_OK);
    assert_int_equal(hd_plan_write(plan, "b", b, sizeof b), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    assert_memory_equal(y, wanted, sizeof y);
    assert_int_equal(hd_plan_read(plan, "s", s, sizeof s), HD_OK);
    for (int i = 0; i < 4; i++) assert_true(s[i] == 0);
    hd_plan_stats stats;
    assert_int_equal(hd_plan_get_stats(plan, &stats), HD_OK);
    assert_int_equal(stats.dispatches, 1); /* three operations, one dispatch */
    assert_int_equal(stats.runs, 1);
    hd_plan_destroy(plan);
}

static void misuse_has_its_own_status(void **state) {
    (void)state;
    hd_program *p = small_program(5);
    hd_plan *plan;
    float y[5] = { 0 };
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_STATUS_WRONG_STATE);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    assert_non_null(strstr(hd_context_error(context), "\"y\" is read before the first run"));
    assert_string_equal(hd_context_error(context), ""); /* taken */
    assert_int_equal(hd_plan_write(plan, "z", y, sizeof y), HD_STATUS_NAME_NOT_FOUND);
    assert_int_equal(hd_plan_write(plan, "y", y, sizeof y), HD_STATUS_NAME_NOT_FOUND);
    assert_int_equal(hd_plan_write(plan, "x", y, sizeof y - 4), HD_STATUS_SHAPE);
    assert_int_equal(hd_plan_write(plan, NULL, y, sizeof y), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_plan_create(NULL, p, NULL, &plan), HD_STATUS_NULL_POINTER);
    hd_plan_desc bad = { .math = (hd_math)77 };
    hd_plan *none = NULL;
    assert_int_equal(hd_plan_create(device, p, &bad, &none), HD_STATUS_INVALID_ARGUMENT);
    assert_null(none);
    hd_timing timing;
    size_t count = 1;
    assert_int_equal(hd_plan_timings(plan, &timing, &count), HD_STATUS_WRONG_STATE);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    hd_buffer *buffer;
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ 0 }, &buffer), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ 16, (hd_buffer_use)9, NULL, NULL }, &buffer), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = UINT64_MAX - 2 }, &buffer), HD_STATUS_LIMIT);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 16 }, &buffer), HD_OK);
    assert_int_equal(hd_buffer_write(buffer, 8, y, 9), HD_STATUS_LIMIT);
    assert_int_equal(hd_buffer_read(buffer, UINT64_MAX, y, 2), HD_STATUS_LIMIT);
    assert_int_equal(hd_buffer_write(buffer, 0, NULL, 1), HD_STATUS_NULL_POINTER);
    hd_buffer_destroy(buffer);
    hd_device *other;
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cuda" }, &other), HD_STATUS_NO_DEVICE);
    /* a Vulkan device that is handed in is taken for none of another back end, and for none by half */
    hd_device_desc handed = { .id = "cpu", .vulkan_instance = &other, .vulkan_physical_device = &other, .vulkan_device = &other };
    assert_int_equal(hd_device_open(context, &handed, &other), HD_STATUS_INVALID_ARGUMENT);
    handed.vulkan_instance = NULL;
    assert_int_equal(hd_device_open(context, &handed, &other), HD_STATUS_INVALID_ARGUMENT);
    handed.vulkan_instance = &handed, handed.id = NULL;
    assert_int_equal(hd_device_open(context, &handed, &other), HD_STATUS_NO_DEVICE); /* the context has no Vulkan */
    hd_error error;
    hd_context_take_error(context, &error);
    /* NULL is fine wherever something ends. */
    hd_context_destroy(NULL);
    hd_device_close(NULL);
    hd_plan_destroy(NULL);
    hd_program_destroy(NULL);
    hd_buffer_destroy(NULL);
    hd_kernel_destroy(NULL);
    hd_ticket_destroy(NULL);
}

static void an_ill_program_is_refused_once(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(3, 4)), b = hd_input(p, "b", HD_F32, HD_SHAPE(5, 6));
    assert_int_equal(hd_matmul(p, a, b), 0);
    assert_int_equal(hd_relu(p, 0), 0);
    hd_plan *plan;
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_STATUS_SHAPE);
    hd_error error;
    hd_context_take_error(context, &error);
    assert_string_equal(error.op, "matmul");
    hd_program_destroy(p);
}

/* It needs scratch memory of as many floats. */
static hd_program *chain_program(int64_t n) {
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_softmax(p, hd_softmax(p, hd_input(p, "x", HD_F32, HD_SHAPE(n)), -1), -1));
    return p;
}

static void the_same_batch_again_builds_nothing(void **state) {
    (void)state;
    hd_program *p = small_program(1000);
    hd_plan *plan;
    hd_device_stats before, after;
    float x[1000] = { 1 }, b[1000] = { 2 }, y[1000];
    for (int round = 0; round < 3; round++) {
        hd_device_get_stats(device, &before);
        assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
        hd_plan_write(plan, "x", x, sizeof x);
        hd_plan_write(plan, "b", b, sizeof b);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
        assert_true(y[0] == 4 && y[1] == 0);
        hd_device_get_stats(device, &after);
        hd_plan_destroy(plan);
        assert_int_equal(after.submissions - before.submissions, 2);
        assert_int_equal(after.uploads - before.uploads, 2);
        assert_int_equal(after.plan_requests - before.plan_requests, 1);
        assert_int_equal(after.plan_hits - before.plan_hits, round > 0);
        assert_int_equal(after.kernel_requests - before.kernel_requests, round == 0);
        assert_int_equal(after.staging_requests - after.staging_hits, 0); /* the CPU's memory needs none */
        if (round == 0) continue;
        assert_int_equal(after.kernels_compiled + after.kernels_from_cache, before.kernels_compiled + before.kernels_from_cache);
        assert_int_equal(after.commands_recorded, before.commands_recorded);
        assert_int_equal(after.allocations, before.allocations);
    }
    hd_program_destroy(p);
}

/* Plans that ended wait for the next ones of the same: small ones as many as there are, of large ones the latest few. */
static void many_small_plans_wait_and_few_large_ones(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        hd_program *programs[20];
        hd_plan *plans[20];
        hd_device_stats before, after;
        const int count = large ? 12 : 20;
        for (int i = 0; i < count; i++) programs[i] = chain_program(large ? (i + 8) << 20 : 1000 + i);
        for (int round = 0; round < 2; round++) {
            hd_device_get_stats(device, &before);
            for (int i = 0; i < count; i++) assert_int_equal(hd_plan_create(device, programs[i], NULL, &plans[i]), HD_OK);
            hd_device_get_stats(device, &after);
            for (int i = 0; i < count; i++) hd_plan_destroy(plans[i]);
        }
        assert_int_equal(after.plan_hits - before.plan_hits, large ? 8 : count);
        for (int i = 0; i < count; i++) hd_program_destroy(programs[i]);
    }
}

static void a_reused_state_begins_at_zero(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    hd_value s = hd_state(p, "s", HD_F32, HD_SHAPE(8));
    hd_output(p, "y", hd_scale(p, s, 1, 1));
    float ones[8], y[8];
    for (int i = 0; i < 8; i++) ones[i] = 1;
    for (int round = 0; round < 2; round++) {
        hd_plan *plan;
        assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
        assert_true(y[0] == 1 && y[7] == 1);
        assert_int_equal(hd_plan_write(plan, "s", ones, sizeof ones), HD_OK);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
        assert_true(y[0] == 2 && y[7] == 2);
        hd_plan_destroy(plan);
    }
    hd_program_destroy(p);
}

static void budgets_hold_to_the_byte(void **state) {
    (void)state;
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(64, 64)), v = x;
    for (int i = 0; i < 6; i++) v = hd_copy(p, hd_transpose(p, hd_copy(p, v)));
    hd_output(p, "y", v);
    hd_plan_memory memory, tight;
    hd_plan_desc desc = { .no_fusion = 1 };
    assert_int_equal(hd_plan_estimate(device, p, &desc, &memory), HD_OK);
    assert_true(memory.scratch_bytes < memory.unshared_bytes);
    desc.budget_bytes = memory.total_bytes;
    assert_int_equal(hd_plan_estimate(device, p, &desc, &tight), HD_OK);
    assert_int_equal(tight.total_bytes, memory.total_bytes);
    desc.budget_bytes = memory.input_bytes;
    assert_int_equal(hd_plan_estimate(device, p, &desc, &tight), HD_STATUS_OVER_BUDGET);
    hd_context_error(context);
    hd_plan *plan;
    hd_device_stats before, after;
    desc.budget_bytes = 0;
    hd_device_get_stats(device, &before);
    float data[64 * 64] = { 0 };
    assert_int_equal(hd_plan_create(device, p, &desc, &plan), HD_OK);
    hd_plan_write(plan, "x", data, sizeof data);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    hd_device_get_stats(device, &after);
    assert_int_equal(after.device_bytes - before.device_bytes, memory.total_bytes);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static void buffers_come_and_go(void **state) {
    (void)state;
    for (int i = 0; i < 100000; i++) {
        hd_buffer *buffer;
        if (hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 1 + (uint64_t)i % 977 }, &buffer)) fail();
        hd_buffer_destroy(buffer);
    }
    const size_t sizes[] = { 1, 1024, 4097, (size_t)64 << 20 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *there = malloc(sizes[s]), *back = calloc(1, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) there[i] = (unsigned char)(i * 31 + (i >> 9));
        hd_buffer *buffer;
        assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = sizes[s] }, &buffer), HD_OK);
        assert_int_equal(hd_buffer_write(buffer, 0, there, sizes[s]), HD_OK);
        assert_int_equal(hd_buffer_read(buffer, 0, back, sizes[s]), HD_OK);
        assert_memory_equal(there, back, sizes[s]);
        hd_buffer_destroy(buffer);
        free(there);
        free(back);
    }
}

static void bound_buffers_are_used(void **state) {
    (void)state;
    hd_program *p = small_program(4);
    hd_plan *plan;
    hd_buffer *buffer;
    float x[4] = { 1, 2, 3, 4 }, y[4];
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 1024 }, &buffer), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 100), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 1024), HD_STATUS_LIMIT);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 0), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "b", buffer, 256), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "y", buffer, 512), HD_OK);
    hd_context_error(context);
    assert_int_equal(hd_buffer_write(buffer, 0, x, sizeof x), HD_OK);
    assert_int_equal(hd_buffer_write(buffer, 256, x, sizeof x), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_buffer_read(buffer, 512, y, sizeof y), HD_OK);
    for (int i = 0; i < 4; i++) assert_true(y[i] == 3 * x[i]);
    hd_plan_destroy(plan);
    hd_buffer_destroy(buffer);
    hd_program_destroy(p);
}

static void the_callers_memory_is_used_in_place(void **state) {
    (void)state;
    static float x[64] = { 1, -2, 3 };
    float y[64];
    void *pointer;
    hd_buffer *buffer;
    hd_plan *plan;
    hd_program *p = small_program(64);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = sizeof x, .memory = (char *)x + 1 }, &buffer), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = sizeof x, .memory = x }, &buffer), HD_OK);
    assert_int_equal(hd_buffer_map(buffer, &pointer), HD_OK);
    assert_ptr_equal(pointer, x);
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 0), HD_OK);
    assert_int_equal(hd_plan_write(plan, "b", (float[64]){ 0 }, sizeof y), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    const float before = y[1];
    x[1] = 5;
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK);
    assert_true(y[1] != before);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    hd_buffer_destroy(buffer); /* x is still there */
    x[0] = 7;
    hd_error error = { .status = HD_STATUS_PARSE, .text = "line 3 of a recipe" }, taken;
    assert_int_equal(hd_context_put_error(context, &(hd_error){ 0 }), HD_OK);
    hd_context_take_error(context, &taken);
    assert_int_equal(hd_context_put_error(context, &error), HD_STATUS_PARSE);
    hd_context_take_error(context, &taken);
    assert_string_equal(taken.text, "line 3 of a recipe");
}

static void tickets_finish(void **state) {
    (void)state;
    hd_program *p = small_program(100000);
    hd_plan *plan;
    float *x = calloc(100000, sizeof *x);
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    hd_plan_write(plan, "x", x, 400000);
    hd_plan_write(plan, "b", x, 400000);
    hd_ticket *tickets[16];
    bool done = false;
    for (int i = 0; i < 16; i++) assert_int_equal(hd_plan_submit(plan, &tickets[i]), HD_OK);
    assert_int_equal(hd_ticket_wait(tickets[15], 0), HD_OK);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(hd_ticket_poll(tickets[i], &done), HD_OK);
        assert_true(done);
        hd_ticket_destroy(tickets[i]);
    }
    hd_ticket *late;
    assert_int_equal(hd_plan_submit(plan, &late), HD_OK);
    hd_plan_destroy(plan); /* with work in flight */
    assert_int_equal(hd_ticket_wait(late, 0), HD_OK);
    hd_ticket_destroy(late);
    hd_program_destroy(p);
    free(x);
}

/* 10,000 runs each, of 25 plans one after the other. */
static void *one_thread(void *argument) {
    float base = (float)(intptr_t)argument, x[64], b[64], y[64];
    for (int round = 0; round < 25; round++) {
        hd_program *p = small_program(64);
        hd_plan *plan;
        if (hd_plan_create(device, p, NULL, &plan)) return "create";
        for (int i = 0; i < 64; i++) x[i] = base, b[i] = (float)i;
        for (int run = 0; run < 400; run++) {
            if (hd_plan_write(plan, "x", x, sizeof x) || hd_plan_write(plan, "b", b, sizeof b) || hd_plan_run(plan, NULL) || hd_plan_read(plan, "y", y, sizeof y)) return "run";
            for (int i = 0; i < 64; i++)
                if (y[i] != 2 * base + (float)i) return "value";
        }
        hd_plan_destroy(plan);
        hd_program_destroy(p);
    }
    return NULL;
}

static void eight_threads_share_a_device(void **state) {
    (void)state;
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, one_thread, (void *)i), 0);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result) fail_msg("thread %d: %s", i, (char *)result);
    }
}

static void lists_tell_what_there_is(void **state) {
    (void)state;
    hd_backend_info backends[8];
    hd_device_info devices[4];
    size_t count = 8;
    assert_int_equal(hd_backends(context, backends, &count), HD_OK);
    assert_true(count >= 3);
    count = 0;
    assert_int_equal(hd_devices(context, devices, &count), HD_STATUS_LIMIT);
    assert_int_equal(count, 1);
    assert_int_equal(hd_devices(context, devices, &count), HD_OK);
    assert_string_equal(devices[0].id, "cpu");
    char text[4096];
    assert_int_equal(hd_device_caps_text(context, "cpu", text, sizeof text, NULL), HD_OK);
    assert_non_null(strstr(text, "native_kernels 1\n"));
}

static void take(void *user, const hd_fact *fact) { *(hd_fact *)user = *fact; }

static void a_device_is_measured(void **state) {
    (void)state;
    hd_fact told = { 0 }, known;
    size_t count = 1;
    const hd_calibrate_desc desc = { .kinds = HD_FACT_RANK, .report = take, .user = &told };
    assert_int_equal(hd_device_calibrate(NULL, &desc), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_device_calibrate(device, &desc), HD_OK);
    assert_true(told.kind == HD_FACT_RANK && told.rank_ns > 0);
    assert_int_equal(hd_device_facts(device, &known, &count), HD_STATUS_LIMIT); /* figures are behind it */
    assert_true(known.kind == HD_FACT_RANK && known.rank_ns == told.rank_ns);
    assert_int_equal(hd_device_calibrate(device, &(hd_calibrate_desc){ .kinds = HD_FACT_RANK }), HD_OK);
    assert_int_equal(hd_device_calibrate(device, &(hd_calibrate_desc){ .forget = 1 }), HD_OK);
    count = 1;
    assert_int_equal(hd_device_facts(device, &known, &count), HD_STATUS_LIMIT);
    assert_int_equal(known.kind, HD_FACT_FIGURE);
    hd_context_error(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_runs, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(misuse_has_its_own_status, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(an_ill_program_is_refused_once, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(the_same_batch_again_builds_nothing, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(many_small_plans_wait_and_few_large_ones, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(a_reused_state_begins_at_zero, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(budgets_hold_to_the_byte, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(buffers_come_and_go, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(bound_buffers_are_used, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(the_callers_memory_is_used_in_place, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(tickets_finish, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(eight_threads_share_a_device, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(lists_tell_what_there_is, open_cpu, close_all),
        cmocka_unit_test_setup_teardown(a_device_is_measured, open_cpu, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
