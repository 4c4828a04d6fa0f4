/* test_budgets.c: plans that must do with less memory than they would take: large values are computed in pieces of their
 * rows, to the same bits in exact mode, on every device here; and what is too large in pieces too is refused. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 700, WIDE = 96, HIDDEN = 640 };

static hd_context *context;
static hd_device *device;

/* A feed-forward block behind a norm, with a state that counts its runs and a second output that is no row's. */
static hd_program *block(void) {
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, WIDE)), gain = hd_input(p, "gain", HD_F32, HD_SHAPE(WIDE));
    const hd_value up = hd_input(p, "up", HD_F32, HD_SHAPE(HIDDEN, WIDE)), gate = hd_input(p, "gate", HD_F32, HD_SHAPE(HIDDEN, WIDE));
    const hd_value down = hd_input(p, "down", HD_F32, HD_SHAPE(WIDE, HIDDEN)), runs = hd_state(p, "runs", HD_F32, HD_SHAPE(1));
    const hd_value normed = hd_rms_norm(p, x, gain, 1e-5f);
    const hd_value hidden = hd_mul(p, hd_silu(p, hd_matmul_with(p, normed, gate, HD_TRANSPOSE_B)), hd_matmul_with(p, normed, up, HD_TRANSPOSE_B));
    const hd_value y = hd_add(p, x, hd_matmul_with(p, hidden, down, HD_TRANSPOSE_B));
    hd_output(p, "y", y);
    hd_output(p, "sums", hd_sum(p, y, 0));
    hd_assign(p, runs, hd_scale(p, runs, 1, 1));
    return p;
}

static float x[ROWS * WIDE], up[HIDDEN * WIDE], gate[HIDDEN * WIDE], down[HIDDEN * WIDE], gain[WIDE];

static void fill(float *out, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(seed >> 8) / 16777216.f - 0.5f;
    }
}

typedef struct results { float y[ROWS * WIDE], sums[WIDE], runs; } results;

static hd_status run(const hd_program *p, uint64_t budget, results *out, hd_plan_memory *out_memory) {
    hd_plan *plan;
    const hd_status status = hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .budget_bytes = budget }, &plan);
    if (status) return status;
    assert_int_equal(hd_plan_get_memory(plan, out_memory), HD_OK);
    assert_int_equal(hd_plan_write(plan, "up", up, sizeof up), HD_OK);
    assert_int_equal(hd_plan_write(plan, "gate", gate, sizeof gate), HD_OK);
    assert_int_equal(hd_plan_write(plan, "down", down, sizeof down), HD_OK);
    assert_int_equal(hd_plan_write(plan, "gain", gain, sizeof gain), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", x, sizeof x), HD_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", out->y, sizeof out->y), HD_OK);
    assert_int_equal(hd_plan_read(plan, "sums", out->sums, sizeof out->sums), HD_OK);
    assert_int_equal(hd_plan_read(plan, "runs", &out->runs, sizeof out->runs), HD_OK);
    hd_plan_destroy(plan);
    return HD_OK;
}

static void a_ladder_of_budgets(void **state) {
    (void)state;
    static const char *const backends[] = { "cpu", "vulkan", "opencl" };
    static const int percents[] = { 100, 75, 50, 25 };
    static results whole, pieces;
    fill(x, ROWS * WIDE, 1), fill(up, HIDDEN * WIDE, 2), fill(gate, HIDDEN * WIDE, 3), fill(down, HIDDEN * WIDE, 4), fill(gain, WIDE, 5);
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
        hd_plan_memory memory, tight;
        assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = backends[b], .cache_dir = "", .verify = -1 }, &context), HD_OK);
        if (hd_device_open(context, &(hd_device_desc){ .id = backends[b] }, &device)) {
            print_message("%s is not here\n", backends[b]);
            hd_context_destroy(context);
            continue;
        }
        hd_program *p = block();
        assert_int_equal(run(p, 0, &whole, &memory), HD_OK);
        assert_true(whole.runs == 2);
        for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
            const uint64_t kept = memory.total_bytes - memory.scratch_bytes, budget = kept + memory.scratch_bytes / 100 * (uint64_t)percents[i];
            const hd_status status = run(p, budget, &pieces, &tight);
            if (status) fail_msg("%s, %d%%: %s", backends[b], percents[i], hd_context_error(context));
            assert_true(tight.total_bytes <= budget);
            assert_memory_equal(&pieces, &whole, sizeof whole);
        }
        hd_plan *plan; /* the ports alone leave no room for what lies between them */
        assert_int_equal(hd_plan_create(device, p, &(hd_plan_desc){ .budget_bytes = memory.total_bytes - memory.scratch_bytes }, &plan),
                         HD_STATUS_OVER_BUDGET);
        hd_program_destroy(p);
        hd_context_destroy(context);
    }
}

/* A device that has no room for the plan as it is: what it takes in its place has the same bits. */
static void a_device_without_room(void **state) {
    (void)state;
    static results whole, pieces;
    hd_plan_memory memory[2];
    for (int i = 0; i < 2; i++) {
        if (i == 1) assert_int_equal(setenv("HEDDLE_FAULT", "alloc:1:out-of-device-memory,alloc:2:out-of-device-memory", 1), 0);
        assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "", .verify = -1 }, &context), HD_OK);
        assert_int_equal(hd_device_open(context, NULL, &device), HD_OK);
        hd_program *p = block();
        assert_int_equal(run(p, 0, i ? &pieces : &whole, &memory[i]), HD_OK);
        hd_program_destroy(p);
        hd_context_destroy(context);
    }
    unsetenv("HEDDLE_FAULT");
    assert_true(memory[1].total_bytes < memory[0].total_bytes);
    assert_memory_equal(&pieces, &whole, sizeof whole);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_ladder_of_budgets), cmocka_unit_test(a_device_without_room) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
