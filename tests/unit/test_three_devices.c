/* test_three_devices.c: programs by chance on the CPU, Vulkan and OpenCL at once: whatever the places, exact mode gives the
 * bits of the CPU alone, also from a plan that was saved and read back. */
#include "chance_programs.h"
#include "unit/saved.h"
#include <stdlib.h>

enum { PROGRAMS = 200 };
static hd_device *devices[3];

static int open_devices(void **state) {
    (void)state;
    const char *const ids[] = { "cpu", "vulkan", "opencl" };
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context)) return -1;
    for (int i = 0; i < 3; i++)
        if (hd_device_open(context, &(hd_device_desc){ .id = ids[i] }, &devices[i])) hd_context_error(context);
    return devices[0] ? 0 : -1;
}

static int close_devices(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

static void places_do_not_change_bits(void **state) {
    (void)state;
    if (!devices[1] || !devices[2]) {
        print_message("no vulkan or no opencl here\n");
        skip();
    }
    uint64_t segments = 0, crossed = 0;
    for (uint32_t k = 0; k < PROGRAMS; k++) {
        hd_program *p = any_program();
        results *alone = calloc(1, sizeof *alone), *placed = calloc(1, sizeof *placed);
        hd_plan *plan = NULL;
        hd_plan_stats stats;
        char route[8192];
        assert_true(alone && placed);
        check(hd_plan_create(devices[0], p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
        run_twice(plan, alone);
        hd_plan_destroy(plan);
        any_route(p, 3, route, sizeof route);
        check(hd_plan_create(devices[0], p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = devices + 1, .beside_count = 2,
                                                              .route = route }, &plan));
        run_twice(plan, placed);
        if (memcmp(alone, placed, sizeof *alone) != 0) fail_msg("route \"%s\" gives other bits", route);
        hd_plan *again = saved_and_loaded(context, plan, devices, 3);
        memset(placed, 0, sizeof *placed);
        run_twice(again, placed);
        if (memcmp(alone, placed, sizeof *alone) != 0) fail_msg("route \"%s\", saved and read back, gives other bits", route);
        hd_plan_destroy(again);
        check(hd_plan_get_stats(plan, &stats));
        segments += stats.segments;
        crossed += stats.crossing_bytes;
        hd_plan_destroy(plan);
        hd_program_destroy(p);
        free(alone);
        free(placed);
    }
    print_message("%d programs: %.1f segments each, %.0f bytes crossing each\n", PROGRAMS, (double)segments / PROGRAMS,
                  (double)crossed / PROGRAMS);
    assert_true(segments > 2 * PROGRAMS);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(places_do_not_change_bits) };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
