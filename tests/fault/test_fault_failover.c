/* test_fault_failover.c: a device is lost at one driver call after the other, in the middle of a chain of runs with a
 * state. The plan goes on on the CPU, and every output has the bits of an undisturbed run: a loss costs time, not work. */
#include "device/vulkan/vk.h"
#include "sweep.h"
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { ROWS = 6, WIDTH = 33, RUNS = 5 };

static int calls_left; /* calls until the loss; negative: never */

static VkResult lose(hdvk_function function) {
    const hdi_function *facts = hdvk_function_get(function);
    if (!(facts->results >> HDVK_ROW_ERROR_DEVICE_LOST & 1u) || calls_left < 0) return VK_SUCCESS;
    if (calls_left > 0) {
        calls_left--;
        return VK_SUCCESS;
    }
    return VK_ERROR_DEVICE_LOST; /* for good */
}

/* A sum that grows in a state from run to run, through a product and a softmax. */
static hd_program *describe(hd_context *context) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, WIDTH)), w = hd_input(p, "w", HD_F32, HD_SHAPE(WIDTH, WIDTH));
    hd_value at = hd_input(p, "at", HD_I32, HD_SHAPE(1));
    hd_value sum = hd_state(p, "sum", HD_F32, HD_SHAPE(ROWS, WIDTH));
    hd_value next = hd_softmax(p, hd_add(p, hd_matmul(p, x, w), sum), 1);
    hd_output(p, "y", hd_scale(p, hd_write_rows(p, sum, next, at), 3, 1));
    return p;
}

static hd_status run_all(hd_context *context, hd_device *device, float out[RUNS][ROWS * WIDTH],
    uint64_t *out_failovers) {
    float x[ROWS * WIDTH], w[WIDTH * WIDTH];
    const int32_t at = 0;
    hd_plan *plan;
    hd_plan_stats stats;
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 17) / 8 - 1;
    for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)(i * 7 % 23) / 16 - 0.5f;
    hd_program *p = describe(context);
    hd_status status = hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .failover = 1 }, &plan);
    hd_program_destroy(p);
    if (status) return status;
    status = hd_plan_write(plan, "w", w, sizeof w);
    if (!status) status = hd_plan_write(plan, "at", &at, sizeof at);
    for (int run = 0; run < RUNS && !status; run++) {
        x[run] += 1;
        status = hd_plan_write(plan, "x", x, sizeof x);
        if (!status) status = hd_plan_run(plan, NULL);
        if (!status) status = hd_plan_read(plan, "y", out[run], sizeof out[run]);
    }
    hd_plan_get_stats(plan, &stats);
    *out_failovers = stats.failovers;
    hd_plan_destroy(plan);
    return status;
}

/* At every third call; at each one on request ("test_fault_failover all"). */
static int step = 3 * SWEEP_STEP;

static void losses_cost_no_work(void **state) {
    (void)state;
    static float calm[RUNS][ROWS * WIDTH], stormy[RUNS][ROWS * WIDTH];
    uint64_t failovers = 0, moved = 0, refused = 0;
    calls_left = -1;
    for (int lost_at = -1; lost_at < 2000; lost_at += lost_at < 0 ? 1 : step) {
        hd_context *context;
        hd_device *device;
        assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context), HD_OK);
        if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &device)) {
            print_message("skipped, no Vulkan device: %s\n", hd_context_error(context));
            hd_context_destroy(context);
            skip();
        }
        calls_left = lost_at;
        failovers = 0;
        hdvk_fault_set(lose);
        hd_status status = run_all(context, device, lost_at < 0 ? calm : stormy, &failovers);
        bool happened = lost_at < 0 || calls_left == 0;
        hdvk_fault_set(NULL);
        hd_error error;
        hd_context_take_error(context, &error);
        hd_context_destroy(context);
        /* Before the plan was made there is nothing to move: then the loss is reported. */
        if (status != HD_OK && lost_at >= 0 && failovers == 0) {
            assert_int_equal(status, HD_STATUS_DEVICE_LOST);
            refused++;
            continue;
        }
        if (status != HD_OK) fail_msg("lost at call %d: %s: %s", lost_at, hd_status_name(status), error.text);
        if (lost_at >= 0) assert_memory_equal(calm, stormy, sizeof calm);
        moved += failovers;
        if (!happened || (lost_at >= 0 && failovers == 0)) break; /* beyond the last call */
    }
    print_message("%llu losses moved to the CPU with equal bits, %llu before there was a plan\n",
        (unsigned long long)moved, (unsigned long long)refused);
    assert_true(moved > 3 / SWEEP_STEP);
}

/* ---- several devices ---- */

/* A plan over Vulkan and another device loses Vulkan at call `lost_at` (negative: never). `waits` false: its first run is
 * the only one, and nobody waits for it before its output is read. */
static hd_status run_on_two(const char *beside, int lost_at, const char *route, bool waits,
    float out[RUNS][ROWS * WIDTH], hd_plan_stats *out_stats, float *out_sum) {
    hd_context *context;
    hd_device *first, *second;
    hd_ticket *ticket = NULL;
    hd_plan *plan = NULL;
    float x[ROWS * WIDTH], w[WIDTH * WIDTH];
    const int32_t at = 0;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &first) ||
        hd_device_open(context, &(hd_device_desc){ .id = beside }, &second)) {
        print_message("skipped, no Vulkan device: %s\n", hd_context_error(context));
        hd_context_destroy(context);
        skip();
    }
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 17) / 8 - 1;
    for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)(i * 7 % 23) / 16 - 0.5f;
    hd_program *p = describe(context);
    const hd_plan_desc desc = { .math = HD_MATH_EXACT, .failover = 1, .beside = &second, .beside_count = 1, .route =
        route };
    hd_status status = hd_plan_create(first, p, &desc, &plan);
    hd_program_destroy(p);
    calls_left = lost_at;
    hdvk_fault_set(lose);
    if (!status) status = hd_plan_write(plan, "w", w, sizeof w);
    if (!status) status = hd_plan_write(plan, "at", &at, sizeof at);
    for (int run = 0; run < (waits ? RUNS : 1) && !status; run++) {
        x[run] += 1;
        status = hd_plan_write(plan, "x", x, sizeof x);
        if (!status) status = waits ? hd_plan_run(plan, NULL) : hd_plan_submit(plan, &ticket);
        hd_ticket_destroy(ticket);
        ticket = NULL;
        if (!status) status = hd_plan_read(plan, "y", out[run], sizeof out[run]);
    }
    if (!status) status = hd_plan_read(plan, "sum", out_sum, ROWS * WIDTH * sizeof *out_sum);
    if (plan) hd_plan_get_stats(plan, out_stats);
    hdvk_fault_set(NULL);
    if (status) print_message("lost at call %d: %s\n", lost_at, hd_context_error(context));
    hd_context_destroy(context);
    return status;
}

/* The state is on the device that is lost, or on the other one; the plan had several segments, and goes on. */
static void lose_beside(const char *beside) {
    static const char *const routes[] = { "matmul=1,rest=0", "matmul=0,rest=1", "matmul=rows:1:1,rest=0" };
    static float calm[RUNS][ROWS * WIDTH], stormy[RUNS][ROWS * WIDTH], calm_sum[ROWS * WIDTH], sum[ROWS * WIDTH];
    uint64_t moved = 0;
    enum { ROUTES = sizeof routes / sizeof *routes };
    for (size_t r = 0; r <= ROUTES; r++) { /* the first one once more, with a run that nobody waits for */
        hd_plan_stats stats = { 0 };
        const char *route = routes[r % ROUTES];
        const bool waits = r < ROUTES;
        assert_int_equal(run_on_two(beside, -1, route, waits, calm, &stats, calm_sum), HD_OK);
        assert_true(stats.segments > 1 && stats.failovers == 0);
        for (int lost_at = 0; lost_at < 2000; lost_at += step) {
            assert_int_equal(run_on_two(beside, lost_at, route, waits, stormy, &stats, sum), HD_OK);
            assert_memory_equal(calm, stormy, sizeof calm);
            assert_memory_equal(calm_sum, sum, sizeof sum);
            moved += stats.failovers;
            if (stats.failovers == 0) break; /* beyond the last call */
        }
    }
    print_message("%llu losses beside %s\n", (unsigned long long)moved, beside);
    assert_true(moved > 3 / SWEEP_STEP);
}

static void one_of_two_is_lost(void **state) {
    (void)state;
    lose_beside("cpu");
}

/* First the one, and then what is the same driver's; the CPU, which the plan did not have, takes over. */
static void both_are_lost(void **state) {
    (void)state;
    lose_beside("vulkan");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "all") == 0) step = 1;
    const struct CMUnitTest tests[] =
        { cmocka_unit_test(losses_cost_no_work), cmocka_unit_test(one_of_two_is_lost),
            cmocka_unit_test(both_are_lost) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
