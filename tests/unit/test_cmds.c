/* test_cmds.c: command lists are refused where a range lies outside, and where two commands that no barrier parts touch
 * the same bytes and one of them writes: as looking at all pairs finds, in time that grows with their number. */
#include "cmds/cmds.h"
#include "spent.h"
#include <stdio.h>

enum { SLOTS = 3, SLOT_BYTES = 1 << 20, BINDINGS = 4 };

static uint32_t seed = 1;
static uint32_t below(uint32_t limit) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % limit; }

static hdi_range range_by_chance(uint32_t most) {
    const uint64_t bytes = 4 * (1 + below(most / 64 + 1));
    return (hdi_range){ below(SLOTS), 4 * below((uint32_t)(most - bytes) / 4 + 1), bytes };
}

static void begin(hdi_cmds *cmds, uint32_t *out_kernel) {
    uint32_t slot;
    hdi_cmds_init(cmds, &hdi_default_allocator);
    for (uint32_t s = 0; s < SLOTS; s++) assert_int_equal(hdi_cmds_slot(cmds, SLOT_BYTES, &slot), HD_OK);
    assert_int_equal(hdi_cmds_kernel(cmds, &(hdi_kernel){ .binding_count = BINDINGS }, out_kernel), HD_OK);
}

static void dispatch(hdi_cmds *cmds, uint32_t kernel, const hdi_binding bindings[BINDINGS]) {
    const uint32_t first[3] = { 0, 0, 0 }, groups[3] = { 1, 1, 1 };
    assert_int_equal(hdi_cmds_dispatch(cmds, kernel, bindings, BINDINGS, NULL, first, groups), HD_OK);
}

/* What the command at `at` touches; the number of ranges. */
static uint32_t touched(const hdi_cmds *cmds, uint32_t at, hdi_binding out[BINDINGS]) {
    const hdi_cmd *cmd = &cmds->cmds[at];
    if (cmd->kind == HDI_CMD_FILL) {
        out[0] = (hdi_binding){ cmd->as.fill.to, HDI_WRITE };
        return 1;
    }
    if (cmd->kind != HDI_CMD_DISPATCH) return 0;
    for (uint32_t i = 0; i < BINDINGS; i++) out[i] = cmds->bindings[cmd->as.dispatch.binding_first + i];
    return BINDINGS;
}

static bool pairs_conflict(const hdi_cmds *cmds) {
    for (uint32_t i = 0; i < cmds->cmd_count; i++)
        for (uint32_t k = i + 1; k < cmds->cmd_count && cmds->cmds[k].kind != HDI_CMD_BARRIER; k++) {
            hdi_binding a[BINDINGS], b[BINDINGS];
            const uint32_t a_count = touched(cmds, i, a), b_count = touched(cmds, k, b);
            for (uint32_t x = 0; x < a_count; x++)
                for (uint32_t y = 0; y < b_count; y++)
                    if (((a[x].access | b[y].access) & HDI_WRITE) && a[x].range.slot == b[y].range.slot &&
                        a[x].range.offset < b[y].range.offset + b[y].range.bytes &&
                        b[y].range.offset < a[x].range.offset + a[x].range.bytes)
                        return true;
        }
    return false;
}

static void hazards_are_found(void **state) {
    (void)state;
    uint32_t found = 0;
    enum { LISTS = 20000 };
    for (uint32_t list = 0; list < LISTS; list++) {
        const uint32_t most = 1u << (5 + below(8)), count = 2 + below(8);
        hdi_cmds cmds;
        hd_error error = { 0 };
        uint32_t kernel;
        begin(&cmds, &kernel);
        for (uint32_t i = 0; i < count; i++) {
            hdi_binding bindings[BINDINGS];
            for (uint32_t b = 0; b < BINDINGS; b++)
                bindings[b] = (hdi_binding){ range_by_chance(most), below(4) ? HDI_READ : HDI_READ | HDI_WRITE };
            if (below(5) == 0) assert_int_equal(hdi_cmds_fill(&cmds, range_by_chance(most), 0), HD_OK);
            else dispatch(&cmds, kernel, bindings);
            if (below(3) == 0) assert_int_equal(hdi_cmds_barrier(&cmds, false), HD_OK);
        }
        const bool conflict = pairs_conflict(&cmds);
        const hd_status status = hdi_cmds_check(&cmds, &error);
        if (status != (conflict ? HD_STATUS_INTERNAL : HD_OK)) fail_msg("list %u: %d, %s", list, (int)status, error.text);
        found += conflict;
        hdi_cmds_free(&cmds);
    }
    assert_true(found > LISTS / 5 && found < LISTS * 4 / 5);
}

static void ranges_lie_inside(void **state) {
    (void)state;
    const hdi_range outside = { 0, SLOT_BYTES - 4, 8 }, nowhere = { SLOTS, 0, 4 };
    for (int i = 0; i < 2; i++) {
        hdi_cmds cmds;
        hd_error error = { 0 };
        uint32_t kernel;
        begin(&cmds, &kernel);
        assert_int_equal(hdi_cmds_fill(&cmds, i ? nowhere : outside, 0), HD_OK);
        assert_int_equal(hdi_cmds_check(&cmds, &error), i ? HD_STATUS_INTERNAL : HD_STATUS_LIMIT);
        hdi_cmds_free(&cmds);
    }
}

static void many_side_by_side(void **state) {
    (void)state;
    enum { COMMANDS = 100000 };
    hdi_cmds cmds;
    hd_error error = { 0 };
    uint32_t kernel;
    begin(&cmds, &kernel);
    for (uint32_t i = 0; i < COMMANDS; i++) assert_int_equal(hdi_cmds_fill(&cmds, (hdi_range){ 0, 4 * i, 4 }, 0), HD_OK);
    const double start = spent_seconds();
    assert_int_equal(hdi_cmds_check(&cmds, &error), HD_OK);
    assert_true(spent_seconds() - start < 2);
    hdi_cmds_free(&cmds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hazards_are_found),
        cmocka_unit_test(ranges_lie_inside),
        cmocka_unit_test(many_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
