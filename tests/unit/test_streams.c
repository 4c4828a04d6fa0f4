/* test_streams.c: streams of runs that overlap: whatever the depth, the bits of runs one after the other, with states, weights and
 * buffers of the caller's; outputs arrive with their tickets; misuse has its own status; a trace tells what happened. On the CPU, on
 * lavapipe, PoCL and the stand-ins where they are ("test_streams cuda"), with one queue and with all. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 24, WIDTH = 512, COUNT = ROWS * WIDTH, BYTES = COUNT * 4, BATCHES = 500, MOST_DEPTH = 8 };

static hd_context *context;
static hd_device *device;
static const char *wanted;

static uint32_t seed = 1;
static uint32_t chance(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

static void refused(hd_status status, hd_status expected) {
    if (status != expected) fail_msg("%s, not %s: %s", hd_status_name(status), hd_status_name(expected), hd_context_error(context));
    assert_true(hd_context_error(context)[0]);
}

/* y = x * w + state, the state is the sum of all x so far; z = -x. */
static hd_plan *make_plan(hd_device *on) {
    hd_program *p = hd_program_create(context);
    hd_plan *plan = NULL;
    float w[WIDTH];
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, WIDTH));
    const hd_value at = hd_input(p, "at", HD_I32, HD_SHAPE(1)), sum = hd_state(p, "sum", HD_F32, HD_SHAPE(ROWS, WIDTH));
    const hd_value now = hd_write_rows(p, sum, hd_add(p, sum, x), at);
    hd_output(p, "y", hd_add(p, hd_mul(p, x, hd_input(p, "w", HD_F32, HD_SHAPE(WIDTH))), now));
    hd_output(p, "z", hd_neg(p, x));
    check(hd_plan_create(on, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    hd_program_destroy(p);
    for (int i = 0; i < WIDTH; i++) w[i] = (float)(i % 7);
    check(hd_plan_write(plan, "w", w, sizeof w));
    check(hd_plan_write(plan, "at", &(int32_t){ 0 }, 4));
    return plan;
}

static void fill(float *x, uint32_t batch) {
    for (uint32_t i = 0; i < COUNT; i++) x[i] = (float)((batch * 13 + i) % 29) - 14.0f;
}

/* The sums so far, in plain C: small whole numbers, so every order gives the same bits. */
static void expect(const float *x, float *sum, float *y, float *z) {
    for (uint32_t i = 0; i < COUNT; i++) {
        sum[i] += x[i];
        y[i] = x[i] * (float)(i % WIDTH % 7) + sum[i];
        z[i] = -x[i];
    }
}

typedef struct batch {
    float x[COUNT], y[COUNT], z[COUNT], wanted_y[COUNT], wanted_z[COUNT];
    hd_ticket *ticket;
    hd_buffer *in, *out;
    bool has_z, buffered;
} batch;
static batch batches[MOST_DEPTH + 3]; /* more than are ever under way */

static void finish(batch *b) {
    if (!b->ticket) return;
    check(hd_ticket_wait(b->ticket, 0));
    bool done = false;
    check(hd_ticket_poll(b->ticket, &done));
    assert_true(done);
    hd_ticket_destroy(b->ticket);
    b->ticket = NULL;
    if (b->buffered) check(hd_buffer_read(b->out, 0, b->y, BYTES));
    assert_memory_equal(b->y, b->wanted_y, BYTES);
    if (b->has_z) assert_memory_equal(b->z, b->wanted_z, BYTES);
    hd_buffer_destroy(b->in);
    hd_buffer_destroy(b->out);
    b->in = b->out = NULL;
}

/* From ordinary memory, or by buffers, by chance; the inputs are overwritten at once. */
static void begin(hd_stream *stream, batch *b, uint32_t number, float *sum) {
    fill(b->x, number);
    expect(b->x, sum, b->wanted_y, b->wanted_z);
    b->has_z = chance(2) != 0;
    b->buffered = chance(3) == 0;
    hd_stream_input in = { .name = "x", .data = b->x, .bytes = BYTES };
    hd_stream_output out[2] = { { .name = "y", .data = b->y, .bytes = BYTES }, { .name = "z", .data = b->z, .bytes = BYTES } };
    if (b->buffered) {
        check(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = BYTES + 256, .use = chance(2) ? HD_BUFFER_UPLOAD : HD_BUFFER_STORAGE }, &b->in));
        check(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = BYTES, .use = HD_BUFFER_READBACK }, &b->out));
        check(hd_buffer_write(b->in, 256, b->x, BYTES));
        in = (hd_stream_input){ .name = "x", .buffer = b->in, .offset = 256, .bytes = BYTES };
        out[0] = (hd_stream_output){ .name = "y", .buffer = b->out, .bytes = BYTES };
    }
    check(hd_stream_submit(stream, &in, 1, out, b->has_z ? 2 : 1, &b->ticket));
    memset(b->x, 0x55, sizeof b->x);
    if (b->buffered && chance(2)) { /* work under way keeps what it uses */
        hd_buffer_destroy(b->in);
        b->in = NULL;
    }
}

static void test_any_depth(void **state) {
    (void)state;
    static float sum[COUNT], read[COUNT];
    uint32_t number = 0;
    hd_plan *plan = make_plan(device);
    memset(sum, 0, sizeof sum);
    for (uint32_t round = 0; number < BATCHES; round++) {
        hd_stream *stream = NULL;
        const uint32_t depth = 1 + round % MOST_DEPTH, most = number + 1 + chance(4 * depth + 20);
        check(hd_stream_create(plan, &(hd_stream_desc){ .depth = depth }, &stream));
        for (; number < most; number++) {
            batch *b = &batches[number % (MOST_DEPTH + 3)];
            finish(b);
            begin(stream, b, number, sum);
            if (chance(8) == 0) finish(&batches[chance(MOST_DEPTH + 3)]);
        }
        if (round % 2) check(hd_stream_finish(stream, 0));
        else
            for (uint32_t i = 0; i < MOST_DEPTH + 3; i++) finish(&batches[i]);
        hd_stream_destroy(stream);
        for (uint32_t i = 0; i < MOST_DEPTH + 3; i++) finish(&batches[i]);
        check(hd_plan_read(plan, "sum", read, BYTES)); /* the plan's own calls may come between */
        assert_memory_equal(read, sum, BYTES);
    }
    hd_plan_destroy(plan);
}

/* After each set was used once, nothing is allocated and nothing encoded. */
static void test_steady(void **state) {
    (void)state;
    hd_plan *plan = make_plan(device);
    hd_stream *stream = NULL;
    hd_device_stats before, after;
    batch *b = &batches[0];
    check(hd_stream_create(plan, NULL, &stream));
    for (uint32_t i = 0; i < 20; i++) {
        const hd_stream_input in = { .name = "x", .data = b->x, .bytes = BYTES };
        const hd_stream_output out = { .name = "y", .data = b->y, .bytes = BYTES };
        fill(b->x, i);
        check(hd_stream_submit(stream, &in, 1, &out, 1, NULL));
        if (i == 3) check(hd_device_get_stats(device, &before));
    }
    check(hd_stream_finish(stream, 0));
    check(hd_device_get_stats(device, &after));
    assert_int_equal(before.allocations, after.allocations);
    assert_int_equal(before.device_bytes, after.device_bytes);
    if (strcmp(hd_device_get_info(device)->backend, "opencl") != 0) assert_int_equal(before.commands_recorded, after.commands_recorded);
    hd_plan_stats stats;
    check(hd_plan_get_stats(plan, &stats));
    assert_int_equal(stats.runs, 20);
    hd_plan_destroy(plan); /* and with it the stream */
}

static void test_misuse(void **state) {
    (void)state;
    hd_plan *plan = make_plan(device), *other = NULL;
    hd_stream *stream = NULL;
    hd_ticket *ticket = NULL;
    hd_buffer *buffer = NULL;
    batch *b = &batches[0];
    refused(hd_stream_create(plan, &(hd_stream_desc){ .depth = 9 }, &stream), HD_STATUS_LIMIT);
    assert_int_equal(hd_stream_create(NULL, NULL, &stream), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_stream_submit(NULL, NULL, 0, NULL, 0, NULL), HD_STATUS_NULL_POINTER);
    check(hd_stream_create(plan, NULL, &stream));
    check(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = BYTES, .use = HD_BUFFER_UPLOAD }, &buffer));
    const hd_stream_input good = { .name = "x", .data = b->x, .bytes = BYTES };
    const struct { hd_stream_input in[2]; size_t count; hd_status status; } inputs[] = {
        { { { .name = "nosuch", .data = b->x, .bytes = BYTES } }, 1, HD_STATUS_NAME_NOT_FOUND },
        { { { .name = "sum", .data = b->x, .bytes = BYTES } }, 1, HD_STATUS_NAME_NOT_FOUND },
        { { { .data = b->x, .bytes = BYTES } }, 1, HD_STATUS_NULL_POINTER },
        { { { .name = "x", .data = b->x, .bytes = BYTES - 4 } }, 1, HD_STATUS_SHAPE },
        { { { .name = "x", .bytes = BYTES } }, 1, HD_STATUS_INVALID_ARGUMENT },
        { { { .name = "x", .data = b->x, .buffer = buffer, .bytes = BYTES } }, 1, HD_STATUS_INVALID_ARGUMENT },
        { { { .name = "x", .buffer = buffer, .offset = 128, .bytes = BYTES } }, 1, HD_STATUS_INVALID_ARGUMENT },
        { { { .name = "x", .buffer = buffer, .offset = 256, .bytes = BYTES } }, 1, HD_STATUS_LIMIT },
        { { good, good }, 2, HD_STATUS_NAME_TAKEN },
        { { good }, 0, HD_STATUS_WRONG_STATE }, /* x was never written */
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        refused(hd_stream_submit(stream, inputs[i].in, inputs[i].count, NULL, 0, &ticket), inputs[i].status);
        assert_null(ticket);
    }
    refused(hd_stream_submit(stream, &good, 1, &(hd_stream_output){ .name = "w", .data = b->y, .bytes = BYTES }, 1, &ticket), HD_STATUS_NAME_NOT_FOUND);
    check(hd_stream_finish(stream, 0)); /* of nothing */
    /* A stream that ends first drops what nobody took. */
    fill(b->x, 0);
    check(hd_stream_submit(stream, &good, 1, &(hd_stream_output){ .name = "z", .data = b->z, .bytes = BYTES }, 1, &ticket));
    hd_stream_destroy(stream);
    refused(hd_ticket_wait(ticket, 0), HD_STATUS_WRONG_STATE);
    hd_ticket_destroy(ticket);
    hd_buffer_destroy(buffer);
    hd_plan_destroy(plan);
    /* Plans on two devices and those that may move are refused. */
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_neg(p, hd_input(p, "x", HD_F32, HD_SHAPE(4))));
    check(hd_plan_create(device, p, &(hd_plan_desc){ .failover = 1 }, &other));
    refused(hd_stream_create(other, NULL, &stream), HD_STATUS_UNSUPPORTED);
    assert_null(stream);
    hd_plan_destroy(other);
    hd_program_destroy(p);
}

/* A device that is closed under a stream takes it along, tickets and all. */
static void test_closed_device(void **state) {
    (void)state;
    hd_device *own = NULL;
    hd_stream *stream = NULL;
    hd_ticket *ticket = NULL;
    batch *b = &batches[0];
    const uint64_t live = hd_context_live_objects(context);
    check(hd_device_open(context, &(hd_device_desc){ .id = wanted }, &own));
    check(hd_stream_create(make_plan(own), NULL, &stream));
    fill(b->x, 0);
    for (int i = 0; i < 5; i++)
        check(hd_stream_submit(stream, &(hd_stream_input){ .name = "x", .data = b->x, .bytes = BYTES }, 1, &(hd_stream_output){ .name = "y", .data = b->y, .bytes = BYTES }, 1,
                               i < 4 ? NULL : &ticket));
    hd_device_close(own);
    assert_int_equal(hd_context_live_objects(context), live);
}

/* ---- traces ---- */

static struct { uint32_t count, runs, uploads, downloads, hosts; uint64_t end_ns, run; } seen;
static void receive(void *user, const hd_trace_event *event) {
    assert_ptr_equal(user, &seen);
    assert_true(event->end_ns >= event->begin_ns);
    assert_string_equal(event->device, hd_device_get_info(device)->id);
    seen.count++;
    const bool host = strcmp(event->queue, "host") == 0;
    seen.hosts += host;
    if (host) return;
    assert_int_equal(strcmp(event->queue, "queue") == 0, hd_device_get_info(device)->queues == 1);
    if (strcmp(event->label, "run") == 0) {
        seen.runs++;
        assert_int_equal(event->run, ++seen.run); /* in order, */
        assert_true(event->begin_ns + 100000 >= seen.end_ns); /* and not at once, but for the clock's grain */
        seen.end_ns = event->end_ns;
    }
    seen.uploads += strcmp(event->label, "upload") == 0 && event->bytes == BYTES;
    seen.downloads += strcmp(event->label, "download") == 0 && event->bytes == BYTES;
}

static void test_trace(void **state) {
    (void)state;
    hd_plan *plan = make_plan(device);
    hd_stream *stream = NULL;
    batch *b = &batches[0];
    memset(&seen, 0, sizeof seen);
    fill(b->x, 0);
    check(hd_stream_create(plan, NULL, &stream));
    check(hd_device_trace(device, receive, &seen));
    for (int i = 0; i < 40; i++)
        check(hd_stream_submit(stream, &(hd_stream_input){ .name = "x", .data = b->x, .bytes = BYTES }, 1, &(hd_stream_output){ .name = "y", .data = b->y, .bytes = BYTES }, 1, NULL));
    check(hd_stream_finish(stream, 0));
    check(hd_device_trace(device, NULL, NULL));
    const uint32_t count = seen.count;
    assert_int_equal(seen.runs, 40);
    assert_true(seen.hosts >= 80 + 40); /* copies in and out, and hand-overs */
    assert_true((seen.uploads == 40 && seen.downloads == 40) || (seen.uploads == 0 && seen.downloads == 0)); /* none where the host sees all memory */
    hd_plan_destroy(plan);
    plan = make_plan(device);
    hd_plan_destroy(plan);
    assert_int_equal(seen.count, count);
    assert_int_equal(hd_device_trace(NULL, receive, NULL), HD_STATUS_NULL_POINTER);
}

int main(int argc, char **argv) {
    static const char *const names[] = { "cpu", "vulkan", "opencl" };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_depth), cmocka_unit_test(test_steady), cmocka_unit_test(test_misuse), cmocka_unit_test(test_closed_device), cmocka_unit_test(test_trace),
    };
    int failures = 0;
    for (int i = 0; i < 6; i++) {
        if (argc > 1 && i > 1) break;
        wanted = argc > 1 ? argv[1] : names[i / 2];
        if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2, .one_queue = i % 2 }, &context)) return 1;
        if (hd_device_open(context, &(hd_device_desc){ .id = wanted }, &device)) printf("skipped, %s: %s\n", wanted, hd_context_error(context));
        else {
            printf("%s, queues: %u\n", hd_device_get_info(device)->id, (unsigned)hd_device_get_info(device)->queues);
            failures += cmocka_run_group_tests_name(wanted, tests, NULL, NULL);
            hd_device_close(device);
        }
        failures += hd_context_live_objects(context) != 0;
        hd_context_destroy(context);
    }
    return failures;
}
