/* test_narrow_bindings.c: programs by chance on a device whose bindings see less than their values have: what can go on in pieces
 * does, the CPU computes the rest, and in exact mode the bits are those of bindings that see all. */
#include "chance_programs.h"
#include "device/device.h"
#include "facts/facts.h"

enum { PROGRAMS = 24 };
static hd_device *device;

/* A device whose bindings see so many bytes; 0: all. */
static bool open_narrow(const char *id, uint64_t bytes) {
    check(hd_context_create(&(hd_context_desc){ .cache_dir = "", .verify = -1, .cpu_threads = 2 }, &context));
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) {
        print_message("%s\n", hd_context_error(context));
        hd_context_destroy(context);
        return false;
    }
    hd_device *inside = device;
    assert_true(HDI_FIND(inside));
    hdi_facts *facts = hdi_store_lock(inside->facts);
    if (bytes) facts->caps.max_binding_bytes = bytes;
    hdi_store_changed(inside->facts);
    hdi_store_unlock(inside->facts);
    return true;
}

static results found[2][PROGRAMS];

static void run_all(results *out, uint64_t *out_borrowed, uint64_t *out_dispatches) {
    seed = 11;
    *out_borrowed = *out_dispatches = 0;
    for (uint32_t k = 0; k < PROGRAMS; k++) {
        hd_program *p = any_program();
        hd_plan *plan;
        hd_plan_stats stats;
        check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
        run_twice(plan, &out[k]);
        check(hd_plan_get_stats(plan, &stats));
        *out_borrowed += stats.borrowed;
        *out_dispatches += stats.dispatches;
        hd_plan_destroy(plan);
        hd_program_destroy(p);
    }
    hd_context_destroy(context);
}

static void bits_are_those_of_wide_ones(void **state) {
    (void)state;
    uint64_t borrowed, dispatches, whole;
    if (!open_narrow("vulkan", 0)) skip();
    run_all(found[0], &borrowed, &whole);
    assert_int_equal(borrowed, 0);
    for (uint64_t bytes = 128; bytes <= 512; bytes *= 2) { /* a value has 240, the weights 400, a state 480 */
        memset(found[1], 0, sizeof found[1]);
        assert_true(open_narrow("vulkan", bytes));
        run_all(found[1], &borrowed, &dispatches);
        print_message("bindings of %d bytes: %d dispatches in place of %d, the CPU computed %d operations\n", (int)bytes, (int)dispatches,
                      (int)whole, (int)borrowed);
        for (uint32_t k = 0; k < PROGRAMS; k++)
            if (memcmp(&found[0][k], &found[1][k], sizeof **found) != 0)
                fail_msg("bindings of %d bytes: program %u gives other bits", (int)bytes, k);
        assert_true(bytes == 512 ? borrowed == 0 : borrowed > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(bits_are_those_of_wide_ones) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
