/* test_contracts.c: contracts of plans and submissions: how many are checked, none where nobody asks, and that what is broken is caught
 * and goes no further. */
#include "calibrate/calibrate.h"
#include "run/run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#if defined(NDEBUG)
enum { CHECKED_BUILD = 0 };
#else
enum { CHECKED_BUILD = 1 };
#endif

static hd_context *context;
static hd_device *device; /* the object, not its handle */

static bool open_on(const char *backend, int validation) {
    const hd_context_desc desc = { .backend = backend, .cache_dir = "", .verify = -1, .validation = validation };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) return HDI_FIND(device);
    hd_context_destroy(context);
    print_message("%s is not here\n", backend);
    return false;
}

static hd_device_stats stats(void) {
    hd_device_stats now;
    assert_int_equal(hd_device_get_stats(device, &now), HD_OK);
    return now;
}

enum { N = 64 };
static float data[N * N];

/* Two intermediates that live at one time. */
static hd_program *build(void) {
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N, N)), a = hd_matmul(p, x, x), b = hd_softmax(p, a, 1);
    hd_output(p, "y", hd_matmul(p, hd_matmul(p, b, a), x));
    return p;
}

static uint64_t metric(const char *line) {
    static char text[1 << 16];
    size_t needed;
    assert_int_equal(hd_context_metrics(context, text, sizeof text, &needed), HD_OK);
    const char *at = strstr(text, line);
    assert_non_null(at);
    return strtoull(at + strlen(line), NULL, 10);
}

/* One of a plan, and two of each of its submissions; transfers are submissions, too, where they are no copies by the host. */
static void contracts_are_counted(void **state) {
    (void)state;
    static const char *const backends[] = { "cpu", "opencl", "vulkan" };
    for (int b = 0; b < 3; b++)
        for (int validation = 0; validation < 2; validation++) {
            if (!open_on(backends[b], validation)) continue;
            hd_program *p = build();
            hd_plan *plan;
            assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
            assert_int_equal(hd_plan_write(plan, "x", data, sizeof data), HD_OK);
            for (int i = 0; i < 3; i++) assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
            assert_int_equal(hd_plan_read(plan, "y", data, sizeof data), HD_OK);
            const hd_device_stats now = stats();
            const uint64_t wanted = 1 + 2 * (now.submissions + now.transfer_submissions);
            assert_int_equal(now.submissions, 3);
            assert_int_equal(now.contracts, validation || CHECKED_BUILD ? wanted : 0);
            assert_int_equal(now.contracts_broken, 0);
            if (b == 0) assert_int_equal(metric("\nheddle_device_contracts_total{device=\"cpu\"} "), now.contracts);
            if (b == 0) assert_int_equal(metric("\nheddle_device_contracts_broken_total{device=\"cpu\"} "), 0);
            hd_plan_destroy(plan);
            hd_program_destroy(p);
            hd_context_destroy(context);
        }
}

/* ---- plans that the planner never makes ---- */

static hdi_schedule *make_schedule(void) {
    hd_program *const p = build(), *inside = p;
    hdi_schedule *schedule = NULL;
    hd_error error = { 0 };
    assert_true(HDI_FIND(inside));
    assert_int_equal(hdi_calibrate_schedule(device, inside, &(hdi_plan_options){ .no_fusion = true }, &schedule, &error), HD_OK);
    hd_program_destroy(p);
    return schedule;
}

static hdi_storage *intermediate(hdi_schedule *schedule, uint32_t number) {
    for (uint32_t i = 0; i < schedule->storage_count; i++) {
        hdi_storage *at = &schedule->storages[i];
        if (at->kind == HDI_STORAGE_SCRATCH && at->parent == HDI_NO_INDEX && at->first_level <= at->last_level && number-- == 0) return at;
    }
    fail_msg("the plan has too few intermediates");
    return NULL;
}

static void share_bytes(hdi_schedule *schedule) { intermediate(schedule, 1)->offset = intermediate(schedule, 0)->offset; }
static void leave_the_slot(hdi_schedule *schedule) { intermediate(schedule, 0)->offset = schedule->slots[intermediate(schedule, 0)->slot].bytes; }
static void forget_a_write(hdi_schedule *schedule) {
    for (uint32_t u = 0; u < schedule->steps[0].use_count; u++) schedule->steps[0].uses[u].access = HDI_READ;
}
static void drop_barriers(hdi_schedule *schedule) {
    for (uint32_t i = 0; i < schedule->cmds.cmd_count; i++)
        if (schedule->cmds.cmds[i].kind == HDI_CMD_BARRIER) schedule->cmds.cmds[i] = (hdi_cmd){ .kind = HDI_CMD_MARK };
}
static void shrink_a_slot(hdi_schedule *schedule) { schedule->cmds.slot_bytes[0] = 4; }

static void broken_plans_are_not_loaded(void **state) {
    (void)state;
    static const struct { void (*damage)(hdi_schedule *schedule); const char *text; } cases[] = {
        { share_bytes, "share bytes at one time" }, { leave_the_slot, "does not lie in its slot" }, { forget_a_write, "is read before it is written" },
        { drop_barriers, "no barrier between them" }, { shrink_a_slot, "of slot 0, which has 4" },
    };
    assert_true(open_on("cpu", 1));
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        hdi_core *core = NULL;
        hd_error error = { 0 };
        hdi_schedule *schedule = make_schedule();
        cases[i].damage(schedule);
        assert_int_equal(hdi_core_make(device, schedule, &core, &error), HD_STATUS_INTERNAL);
        assert_int_equal(error.status, HD_STATUS_INTERNAL);
        if (!strstr(error.text, cases[i].text)) fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].text);
        assert_int_equal(stats().contracts, i + 1);
        assert_int_equal(stats().contracts_broken, i + 1);
    }
    hd_context_destroy(context);
}

/* ---- submissions that nobody makes ---- */

static void broken_submissions_go_no_further(void **state) {
    (void)state;
    static const char *const texts[] = { "no barrier between them", "bound to no memory", "ends at byte", "no multiple of", "the commands ask for", "is not loaded",
                                         "on a queue that moves data" };
    assert_true(open_on("cpu", 1));
    hdi_core *core = NULL;
    hd_error error = { 0 };
    uint64_t ticket, records;
    assert_int_equal(hdi_core_make(device, make_schedule(), &core, &error), HD_OK);
    for (uint32_t i = 0; i < core->schedule->slot_count; i++) assert_int_equal(hdi_core_memory(core, i, &error), HD_OK);
    assert_int_equal(hdi_core_submit(core, &(hdi_core_run){ .timestamps = false }, &records, &error), HD_OK);
    assert_int_equal(hdi_device_wait(device, core->last_ticket, 0, &error), HD_OK);
    const hd_device_stats before = stats();
    for (size_t i = 0; i < HDI_COUNT(texts); i++) {
        hdi_slot slots[8] = { { 0 } };
        hdi_submission submission = { .cmds = &core->schedule->cmds, .kernels = core->kernels, .slots = slots };
        assert_true(core->schedule->slot_count <= HDI_COUNT(slots));
        for (uint32_t k = 0; k < core->schedule->slot_count; k++) slots[k] = hdi_core_where(core, k);
        if (i == 0) drop_barriers(core->schedule); /* and they stay away: of several faults the first is told */
        hdi_cmds cut = core->schedule->cmds;
        if (i > 0) cut.cmd_count = 2; /* a label, and the first step */
        submission.cmds = &cut;
        if (i == 1) slots[0].memory = NULL;
        if (i == 2) slots[0].offset = 1 << 20;
        if (i == 3) slots[0] = (hdi_slot){ slots[1].memory, 4, slots[0].bytes };
        if (i == 4) slots[0].bytes -= 4;
        if (i == 5) submission.kernels = NULL;
        if (i == 6) submission.queue = HDI_QUEUE_UPLOAD;
        memset(&error, 0, sizeof error);
        assert_int_equal(hdi_device_submit(device, &submission, &ticket, &error), HD_STATUS_INTERNAL);
        if (!strstr(error.text, texts[i])) fail_msg("\"%s\" does not say \"%s\"", error.text, texts[i]);
        assert_int_equal(stats().contracts_broken, i + 1);
        assert_int_equal(stats().submissions, before.submissions);
    }
    hdi_core_end(core);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(contracts_are_counted), cmocka_unit_test(broken_plans_are_not_loaded),
                                        cmocka_unit_test(broken_submissions_go_no_further) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
