/* test_notify.c: who is to be told that a run ended is told once, with how it ended: 64 read-backs under way at once, runs that
 * fail, tickets that end while they are told of, runs that begin there. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { STREAMS = 8, DEPTH = 8, N = 64 };
static hd_context *context;
static hd_device *device;

static bool open_on(const char *id, const char *faults) {
    const hd_context_desc desc = { .backend = id, .cache_dir = "", .verify = -1, .faults = faults };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) return true;
    hd_context_destroy(context);
    return false;
}

static hd_plan *plan_of(void) {
    hd_plan *plan;
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_scale(p, hd_input(p, "x", HD_F32, HD_SHAPE(N)), 2, 1));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    hd_program_destroy(p);
    return plan;
}

typedef struct told {
    hd_ticket *ticket;
    uint32_t   times;
    hd_status  status;
} told;

static void note(void *user, hd_ticket *ticket, hd_status status) {
    told *t = user;
    t->times++;
    t->status = status;
    assert_ptr_equal(t->ticket, ticket);
    hd_ticket_destroy(ticket);
}

static void sixty_four_at_once(void) {
    static float x[STREAMS][DEPTH][N], y[STREAMS][DEPTH][N];
    static told tolds[STREAMS][DEPTH];
    hd_plan *plans[STREAMS];
    hd_stream *streams[STREAMS];
    size_t left = 0, polls = 0;
    memset(tolds, 0, sizeof tolds);
    for (int s = 0; s < STREAMS; s++) {
        plans[s] = plan_of();
        assert_int_equal(hd_stream_create(plans[s], &(hd_stream_desc){ .depth = DEPTH }, &streams[s]), HD_OK);
    }
    for (int d = 0; d < DEPTH; d++)
        for (int s = 0; s < STREAMS; s++) {
            told *t = &tolds[s][d];
            for (int i = 0; i < N; i++) x[s][d][i] = (float)(s * 1000 + d * 100 + i);
            const hd_stream_input in = { "x", x[s][d], NULL, 0, sizeof x[s][d] };
            const hd_stream_output out = { "y", y[s][d], NULL, 0, sizeof y[s][d] };
            assert_int_equal(hd_stream_submit(streams[s], &in, 1, &out, 1, &t->ticket), HD_OK);
            assert_int_equal(hd_ticket_notify(t->ticket, note, t), HD_OK);
        }
    for (int s = 0; s < STREAMS; s++)
        for (int d = 0; d < DEPTH; d++) assert_int_equal(tolds[s][d].times, 0); /* nobody was asked yet */
    do {
        assert_int_equal(hd_context_poll(context, &left), HD_OK);
        assert_true(++polls < 100000000);
    } while (left);
    for (int s = 0; s < STREAMS; s++)
        for (int d = 0; d < DEPTH; d++) {
            assert_int_equal(tolds[s][d].times, 1);
            assert_int_equal(tolds[s][d].status, HD_OK);
            for (int i = 0; i < N; i++) assert_true(y[s][d][i] == x[s][d][i] * 2 + 1);
        }
    for (int s = 0; s < STREAMS; s++) hd_plan_destroy(plans[s]);
}

static void many_read_backs(void **state) {
    (void)state;
    static const char *const ids[] = { "cpu", "vulkan" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!open_on(ids[i], "")) continue;
        sixty_four_at_once();
        assert_int_equal(hd_context_live_objects(context), 1);
        hd_context_destroy(context);
    }
}

/* A chain: each run is begun by the end of the one before. */
typedef struct chain { hd_plan *plan; uint32_t begun, ended; hd_status status; } chain;
static void next(void *user, hd_ticket *ticket, hd_status status) {
    chain *c = user;
    c->status = status;
    c->ended++;
    hd_ticket_destroy(ticket);
    if (status || c->begun == 20) return;
    c->begun++;
    assert_int_equal(hd_plan_submit(c->plan, &ticket), HD_OK);
    assert_int_equal(hd_ticket_notify(ticket, next, c), HD_OK);
}

static void runs_begin_where_others_end(void **state) {
    (void)state;
    size_t left;
    hd_ticket *ticket;
    assert_true(open_on("cpu", ""));
    chain c = { .plan = plan_of(), .begun = 1 };
    assert_int_equal(hd_plan_write(c.plan, "x", (float[N]){ 0 }, N * 4), HD_OK);
    assert_int_equal(hd_plan_submit(c.plan, &ticket), HD_OK);
    assert_int_equal(hd_ticket_notify(ticket, next, &c), HD_OK);
    for (left = 1; left;) assert_int_equal(hd_context_poll(context, &left), HD_OK);
    assert_int_equal(c.ended, 20);
    assert_int_equal(c.status, HD_OK);

    /* By a wait; not after it; and never after a change of mind, or of a ticket that was destroyed. */
    told t = { 0 };
    assert_int_equal(hd_plan_submit(c.plan, &t.ticket), HD_OK);
    assert_int_equal(hd_ticket_notify(t.ticket, note, &t), HD_OK);
    assert_int_equal(hd_ticket_wait(t.ticket, 0), HD_OK);
    assert_int_equal(t.times, 1);
    assert_int_equal(hd_ticket_wait(t.ticket, 0), HD_STATUS_STALE_HANDLE);
    (void)hd_context_error(context);
    assert_int_equal(hd_plan_submit(c.plan, &t.ticket), HD_OK);
    assert_int_equal(hd_ticket_notify(t.ticket, note, &t), HD_OK);
    assert_int_equal(hd_ticket_notify(t.ticket, NULL, NULL), HD_OK);
    assert_int_equal(hd_ticket_wait(t.ticket, 0), HD_OK);
    assert_int_equal(hd_ticket_notify(t.ticket, note, &t), HD_OK);
    hd_ticket_destroy(t.ticket);
    assert_int_equal(hd_context_poll(context, &left), HD_OK);
    assert_int_equal(left, 0);
    assert_int_equal(t.times, 1);
    hd_context_destroy(context);
}

static void failures_are_told(void **state) {
    (void)state;
    size_t left;
    assert_true(open_on("cpu", "wait:2:device-lost"));
    hd_plan *plan = plan_of();
    told first = { 0 }, second = { 0 };
    assert_int_equal(hd_plan_write(plan, "x", (float[N]){ 0 }, N * 4), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_submit(plan, &first.ticket), HD_OK);
    assert_int_equal(hd_plan_submit(plan, &second.ticket), HD_OK);
    assert_int_equal(hd_ticket_notify(first.ticket, note, &first), HD_OK);
    assert_int_equal(hd_ticket_notify(second.ticket, note, &second), HD_OK);
    for (left = 2; left;) assert_int_equal(hd_context_poll(context, &left), HD_OK);
    assert_int_equal(first.times, 1);
    assert_int_equal(second.times, 1);
    assert_true(first.status == HD_STATUS_DEVICE_LOST || second.status == HD_STATUS_DEVICE_LOST);
    (void)hd_context_error(context);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(many_read_backs), cmocka_unit_test(runs_begin_where_others_end),
                                        cmocka_unit_test(failures_are_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
