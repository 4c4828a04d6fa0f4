/* test_devices.c: plans on three devices give the bits of one in exact mode, whatever the places: the CPU beside
 * lavapipe, PoCL and CUDA where they are, and beside itself. */
#include "chance_programs.h"
#include <stdlib.h>

enum { DEVICES = 3 };
static hd_device *devices[DEVICES]; /* the last two are beside the first */

static bool open_all(const char *const ids[DEVICES]) {
    check(hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context));
    for (int d = 0; d < DEVICES; d++) {
        devices[d] = NULL;
        if (!hd_device_open(context, &(hd_device_desc){ .id = ids[d] }, &devices[d])) continue;
        print_message("no %s here: %s\n", ids[d], hd_context_error(context));
        hd_context_destroy(context);
        return false;
    }
    return true;
}

static void run_on(uint32_t count, const char *route, const hd_program *p, results *out, hd_plan_stats *out_stats) {
    hd_plan *plan = NULL;
    const hd_plan_desc desc = { .math = HD_MATH_EXACT, .beside = &devices[1], .beside_count = count - 1,
        .route = route };
    check(hd_plan_create(devices[0], p, &desc, &plan));
    run_twice(plan, out);
    check(hd_plan_get_stats(plan, out_stats));
    hd_plan_destroy(plan);
}

/* So many programs, and so many placements of each. */
static void bits_are_those_of_one_device(uint32_t programs, uint32_t places) {
    static results whole, parts;
    uint32_t most = 0;
    uint64_t segments = 0, crossed = 0;
    hd_plan_stats stats;
    for (uint32_t k = 0; k < programs; k++) {
        hd_program *p = any_program();
        memset(&whole, 0, sizeof whole);
        run_on(1, NULL, p, &whole, &stats);
        for (uint32_t i = 0; i < places; i++) {
            char route[8192];
            any_route(p, DEVICES, route, sizeof route);
            memset(&parts, 0, sizeof parts);
            run_on(DEVICES, route, p, &parts, &stats);
            if (memcmp(&whole, &parts, sizeof whole) != 0) fail_msg("program %u: route \"%s\" gives other bits", k,
                route);
            assert_int_equal(stats.runs, 2);
            most = stats.segments > most ? stats.segments : most;
            segments += stats.segments;
            crossed += stats.crossing_bytes;
        }
        hd_program_destroy(p);
    }
    const double all = (double)programs * places;
    print_message("%.0f placements: %.1f segments each, at most %u, %.0f bytes crossing each\n", all,
        (double)segments / all, most, (double)crossed / all);
    assert_true(most > 5 && (double)segments > 2 * all);
    hd_context_destroy(context);
}

static void on_the_cpu_three_times(void **state) {
    (void)state;
    assert_true(open_all((const char *const[DEVICES]){ "cpu", "cpu", "cpu" }));
    bits_are_those_of_one_device(200, 3);
}

static void cpu_vulkan_and_opencl(void **state) {
    (void)state;
    if (!open_all((const char *const[DEVICES]){ "cpu", "vulkan", "opencl" })) skip();
    bits_are_those_of_one_device(4, 6); /* PoCL compiles each kernel */
}

static void cpu_vulkan_and_cpu(void **state) {
    (void)state;
    if (!open_all((const char *const[DEVICES]){ "cpu", "vulkan", "cpu" })) skip();
    bits_are_those_of_one_device(10, 8);
}

/* ---- shares over three devices ---- */

/* y = softmax(x w), whose rows or columns devices divide among themselves; z reads it whole. */
static void shares_on(const char *const ids[DEVICES]) {
    enum { ROWS = 96, TERMS = 80, COLUMNS = 128 };
    static const char *const routes[] = {
        NULL, "matmul=rows:1:1:1", "matmul=columns:1:1:1", "matmul=rows:5:3:2,softmax=rows:5:3:2", "rest=rows:1:1:1",
            "rest=columns:2:1:1",
        "matmul=rows:0:1:1", "matmul=columns:1:0:1,softmax=2", "matmul=rows:1:0:0", "matmul=columns:90:9:1,rest=1",
    };
    static float x[ROWS * TERMS], w[TERMS * COLUMNS], y[2][ROWS * COLUMNS], z[2][ROWS * COLUMNS];
    if (!open_all(ids)) return;
    for (int i = 0; i < ROWS * TERMS; i++) x[i] = (float)(i * 7 % 23) / 9 - 1;
    for (int i = 0; i < TERMS * COLUMNS; i++) w[i] = (float)(i * 5 % 19) / 7 - 1;
    hd_program *p = hd_program_create(context);
    const hd_value m = hd_matmul(p, hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, TERMS)), hd_input(p, "w", HD_F32,
        HD_SHAPE(TERMS, COLUMNS)));
    hd_output(p, "y", hd_softmax(p, m, -1));
    hd_output(p, "z", hd_add(p, hd_tanh(p, m), hd_mean(p, m, 0)));
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        hd_plan *plan = NULL;
        const hd_plan_desc desc = { .math = HD_MATH_EXACT, .beside = &devices[1], .beside_count = 2,
            .route = routes[i] };
        check(hd_plan_create(devices[0], p, &desc, &plan));
        check(hd_plan_write(plan, "x", x, sizeof x));
        check(hd_plan_write(plan, "w", w, sizeof w));
        check(hd_plan_run(plan, NULL));
        check(hd_plan_read(plan, "y", y[i > 0], sizeof *y));
        check(hd_plan_read(plan, "z", z[i > 0], sizeof *z));
        hd_plan_destroy(plan);
        if (i && (memcmp(y[0], y[1], sizeof *y) != 0 || memcmp(z[0], z[1], sizeof *z) != 0))
            fail_msg("\"%s\" gives other bits", routes[i]);
    }
    hd_program_destroy(p);
    hd_context_destroy(context);
}

static void shares_give_the_same_bits(void **state) {
    (void)state;
    shares_on((const char *const[DEVICES]){ "cpu", "cpu", "cpu" });
    shares_on((const char *const[DEVICES]){ "cpu", "vulkan", "opencl" });
    shares_on((const char *const[DEVICES]){ "cpu", "vulkan", "cuda" });
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_cpu_three_times), cmocka_unit_test(cpu_vulkan_and_opencl),
            cmocka_unit_test(cpu_vulkan_and_cpu),
        cmocka_unit_test(shares_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
