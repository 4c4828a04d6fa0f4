/* test_gradients_memory.c: what is computed again takes less memory, where a budget asks for a tight plan: of many layers. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

enum { LAYERS = 16, ROWS = 512, WIDE = 64 };

static hd_context *context;
static hd_device *device;

/* Least bytes that a plan takes: by budgets that halve the way. */
static uint64_t least(const hd_program *p) {
    hd_plan_memory memory;
    assert_int_equal(hd_plan_estimate(device, p, NULL, &memory), HD_OK);
    uint64_t low = 0, high = memory.total_bytes;
    while (high - low > 65536) {
        const uint64_t budget = low + (high - low) / 2;
        const hd_status s = hd_plan_estimate(device, p, &(hd_plan_desc){ .budget_bytes = budget }, &memory);
        assert_true(s == HD_OK || s == HD_STATUS_OVER_BUDGET);
        if (s) low = budget;
        else high = memory.total_bytes < high ? memory.total_bytes : budget;
    }
    return high;
}

static uint64_t of_layers(int recompute) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, WIDE)), w = hd_input(p, "w", HD_F32, HD_SHAPE(WIDE, WIDE)), kept[LAYERS], d[2];
    const hd_value wanted[] = { x, w };
    for (int i = 0; i < LAYERS; i++) {
        kept[i] = x;
        x = hd_silu(p, hd_matmul(p, hd_tanh(p, hd_matmul(p, hd_rms_norm(p, x, 0, 1e-5f), w)), w));
    }
    const hd_gradients_desc desc = { .recompute = recompute, .kept = kept, .kept_count = LAYERS };
    assert_int_equal(hd_gradients(p, hd_sum(p, x, HD_ALL_AXES), wanted, 2, &desc, d), HD_OK);
    hd_output(p, "dx", d[0]);
    hd_output(p, "dw", d[1]);
    const uint64_t bytes = least(p);
    hd_program_destroy(p);
    return bytes;
}

/* Bytes of a plan without a budget. */
static uint64_t of_parts(int in_order) {
    hd_program *p = hd_program_create(context);
    const hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(WIDE, WIDE));
    hd_value d = 0;
    for (int part = 0; part < LAYERS; part++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", part);
        const hd_value x = hd_input(p, name, HD_F32, HD_SHAPE(ROWS, WIDE)), y = hd_matmul(p, hd_tanh(p, hd_matmul(p, x, w)), w);
        const hd_gradients_desc desc = { .loss_gradient = y, .continued = part ? &d : NULL };
        hd_value more;
        assert_int_equal(hd_gradients(p, y, &w, 1, &desc, &more), HD_OK);
        d = more;
    }
    hd_output(p, "dw", d);
    hd_plan_memory memory;
    assert_int_equal(hd_plan_estimate(device, p, &(hd_plan_desc){ .in_order = in_order }, &memory), HD_OK);
    hd_program_destroy(p);
    return memory.scratch_bytes;
}

/* Batch after batch, each going on from the gradient of the one before, in the memory of one. */
static void in_order(void **state) {
    (void)state;
    const uint64_t early = of_parts(0), late = of_parts(1);
    print_message("%llu bytes as early as may be, %llu in the program's order\n", (unsigned long long)early, (unsigned long long)late);
    assert_true(late * 4 < early);
}

static void less_memory(void **state) {
    (void)state;
    const uint64_t kept = of_layers(0), again = of_layers(1);
    print_message("%llu bytes where all is kept, %llu where it is computed again\n", (unsigned long long)kept, (unsigned long long)again);
    assert_true(again * 2 < kept);
}

static int begin(void **state) {
    (void)state;
    return hd_context_create(NULL, &context) || hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device);
}
static int end(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(less_memory), cmocka_unit_test(in_order) };
    return cmocka_run_group_tests(tests, begin, end);
}
