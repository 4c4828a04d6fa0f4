/* test_rank.c: the piece of work by which devices are ranked: its runs keep to a budget, by an invented clock; and the order that it
 * gives of the devices here is that of products that are measured beside it. */
#define _GNU_SOURCE
#include "calibrate/calibrate.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- the budget ---- */

typedef struct invented {
    const uint64_t *takes; /* each run in turn */
    uint32_t runs, fails_at;
} invented;
static uint64_t clock_ns;
static uint64_t invented_now(void) { return clock_ns; }

static hd_status invented_run(void *job, hd_error *error) {
    invented *work = job;
    clock_ns += work->takes[work->runs++];
    return work->runs == work->fails_at ? hdi_fail(error, HD_STATUS_TIMEOUT, "as told") : HD_OK;
}

static void assert_timed(const uint64_t takes[4], uint64_t budget_ns, uint32_t runs, uint64_t best_ns) {
    invented work = { .takes = takes };
    uint64_t ns = 0;
    clock_ns = 1000;
    assert_int_equal(hdi_best_of(&(hdi_timed){ invented_run, &work, budget_ns, invented_now }, &ns, NULL), HD_OK);
    assert_int_equal(work.runs, runs);
    assert_int_equal(ns, best_ns);
}

static void runs_keep_to_the_budget(void **state) {
    (void)state;
    assert_timed((uint64_t[]){ 90, 30, 20, 25 }, 1000, 4, 20); /* the first one prepares: it would count alone only */
    assert_timed((uint64_t[]){ 5, 30, 20, 25 }, 1000, 4, 20);
    assert_timed((uint64_t[]){ 40, 30, 20, 25 }, 100, 3, 20); /* by the one before, the next would end at 110, */
    assert_timed((uint64_t[]){ 40, 30, 20, 25 }, 80, 2, 30);  /* and here at 100 */
    assert_timed((uint64_t[]){ 40, 30, 20, 25 }, 79, 1, 40);
    assert_timed((uint64_t[]){ 40, 30, 20, 25 }, 0, 1, 40);   /* one run is made in any case */
    invented work = { .takes = (uint64_t[]){ 1, 1, 1, 1 }, .fails_at = 2 };
    uint64_t ns = 0;
    assert_int_equal(hdi_best_of(&(hdi_timed){ invented_run, &work, 1000, invented_now }, &ns, NULL), HD_STATUS_TIMEOUT);
    assert_int_equal(work.runs, 2);
}

/* ---- the order ---- */

enum { SIDE = 512, DEVICES = 3 };
static const char *const backends[DEVICES] = { "cpu", "vulkan", "opencl" };
static char folder[] = "/tmp/heddle-rank-XXXXXX";

static hd_context *open_context(void) {
    hd_context *context;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = folder, .log_level = HD_LOG_ERROR }, &context), HD_OK);
    return context;
}

/* The best of five. */
static uint64_t time_product(hd_device *device) {
    static float data[SIDE * SIDE];
    hd_plan *plan;
    uint64_t best = UINT64_MAX;
    hd_program *p = hd_program_create(hd_device_context(device));
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(SIDE, SIDE));
    hd_output(p, "y", hd_matmul(p, x, x));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", data, sizeof data), HD_OK);
    for (int i = 0; i < 6; i++) {
        const uint64_t begun = hdi_now_ns();
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        if (i > 0) best = HDI_MIN(best, hdi_now_ns() - begun);
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return best;
}

static const hd_device_info *info_of(const hd_device_info *all, size_t count, const char *backend) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].backend, backend) == 0) return &all[i];
    return NULL;
}

/* Of two devices of which one took more than twice as long for a product, before and behind the probe, the other one has the smaller
 * time, and stands before it among its like. */
static void the_order_is_that_of_products(void **state) {
    (void)state;
    uint64_t before[DEVICES] = { 0 }, behind[DEVICES] = { 0 };
    assert_non_null(mkdtemp(folder));
    for (int d = 0; d < DEVICES; d++) {
        hd_context *context = open_context();
        hd_device *device;
        if (!hd_device_open(context, &(hd_device_desc){ .id = backends[d] }, &device)) {
            before[d] = time_product(device);
            assert_int_equal(hd_device_calibrate(device, &(hd_calibrate_desc){ .kinds = HD_FACT_RANK }), HD_OK);
            behind[d] = time_product(device);
        }
        hd_context_destroy(context);
    }
    hd_device_info all[16];
    size_t count = HDI_COUNT(all);
    hd_context *context = open_context(); /* which finds what was kept */
    assert_int_equal(hd_devices(context, all, &count), HD_OK);
    for (int d = 0; d < DEVICES; d++) {
        const hd_device_info *info = info_of(all, count, backends[d]);
        if (!before[d] || !info) continue;
        print_message("%s: a product %.2f and %.2f ms, the probe %.1f ms\n", info->id, (double)before[d] / 1e6, (double)behind[d] / 1e6,
                      (double)info->measured_ns / 1e6);
        assert_true(info->measured_ns > 0);
        for (int e = 0; e < DEVICES; e++) {
            const hd_device_info *other = info_of(all, count, backends[e]);
            if (!other || before[e] <= 2 * before[d] || behind[e] <= 2 * behind[d]) continue;
            assert_true(info->measured_ns < other->measured_ns);
            if ((info->kind == HD_DEVICE_SOFTWARE) == (other->kind == HD_DEVICE_SOFTWARE)) assert_true(info->rank < other->rank);
        }
    }
    hd_context_destroy(context);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(runs_keep_to_the_budget), cmocka_unit_test(the_order_is_that_of_products) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
