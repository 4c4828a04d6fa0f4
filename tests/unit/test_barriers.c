/* test_barriers.c: programs by chance run with the barriers that planning finds, and once more with one between any two commands:
 * the same bits, from fewer barriers. Where planning left out one that is needed, the second run would differ. */
#include "run/run.h"
#include "unit/chance_programs.h"

/* Before the plan's first run: a barrier behind each command that does something. */
static void part_all(hd_plan *handle, uint64_t *inout_found, uint64_t *inout_all) {
    hd_plan *plan = handle;
    assert_true(HDI_FIND(plan));
    hdi_cmds *cmds = &plan->loaded->plan->segments[0].schedule->cmds;
    const hd_allocator *allocator = cmds->arena.allocator;
    const uint32_t room = 2 * cmds->cmd_count;
    hdi_cmd *parted = hdi_alloc(allocator, room * sizeof *parted);
    assert_non_null(parted);
    uint32_t count = 0;
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        const bool works = cmds->cmds[i].kind != HDI_CMD_BARRIER && cmds->cmds[i].kind != HDI_CMD_MARK;
        *inout_found += cmds->cmds[i].kind == HDI_CMD_BARRIER;
        if (cmds->cmds[i].kind != HDI_CMD_BARRIER) parted[count++] = cmds->cmds[i];
        if (works) parted[count++] = (hdi_cmd){ .kind = HDI_CMD_BARRIER };
        *inout_all += works;
    }
    hdi_free(allocator, cmds->cmds, cmds->cmd_capacity * sizeof *cmds->cmds);
    cmds->cmds = parted;
    cmds->cmd_count = count;
    cmds->cmd_capacity = room;
    hd_error error = { 0 };
    if (hdi_cmds_check(cmds, &error)) fail_msg("%s", error.text);
}

static void equal(const char *id, int graphs) {
    uint64_t found = 0, all = 0;
    check(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context));
    hd_device *device;
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) {
        print_message("%s is not here\n", id);
        hd_context_destroy(context);
        return;
    }
    for (int g = 0; g < graphs; g++) {
        static results planned, parted;
        hd_plan *plans[2];
        hd_program *p = any_program();
        const hd_plan_desc desc = { .math = HD_MATH_EXACT, .no_fusion = g % 3 == 0 };
        for (int i = 0; i < 2; i++) check(hd_plan_create(device, p, &desc, &plans[i]));
        part_all(plans[1], &found, &all);
        run_twice(plans[0], &planned);
        run_twice(plans[1], &parted);
        if (memcmp(&planned, &parted, sizeof planned) != 0) fail_msg("%s: graph %d differs", id, g);
        for (int i = 0; i < 2; i++) hd_plan_destroy(plans[i]);
        hd_program_destroy(p);
    }
    print_message("%s: %d graphs, %llu barriers where there might be %llu\n", id, graphs, (unsigned long long)found, (unsigned long long)all);
    assert_true(found < all);
    hd_context_destroy(context);
}

static void automatic_is_fully_barriered(void **state) {
    (void)state;
    equal("cpu", 1000);
    equal("vulkan", 60);
    equal("opencl", 10);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(automatic_is_fully_barriered) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
