/* test_ops_coverage.c: every operation of op_table.inc has cases, and all families together have at least 5,000; their short
 * runs at least 1,000. That the families have as many as case_table.inc says is checked when each of them ends. */
#include "ops.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

static void every_operation_has_cases(void **state) {
    uint32_t total = 0, in_short_runs = 0, missing = 0;
    (void)state;
    for (uint32_t op = 1; op < HDI_OP_COUNT; op++) {
        uint32_t cases = 0;
        for (uint32_t i = 0; i < ops_count_rows; i++) cases += ops_counts[i].op == (hdi_op)op ? ops_counts[i].cases : 0;
        total += cases;
        /* Inputs and states are in every case; a dispatch computes what its user's kernel says. */
        if (cases > 0 || op == HDI_OP_INPUT || op == HDI_OP_STATE || op == HDI_OP_DISPATCH || op == HDI_OP_PART) continue;
        missing++;
        fprintf(stderr, "no case of `%s`: see case_table.inc\n", hdi_op_get((hdi_op)op).name);
    }
    for (uint32_t s = 0; s < ops_share_rows; s++) {
        uint32_t cases = 0;
        for (uint32_t i = 0; i < ops_count_rows; i++) cases += strcmp(ops_counts[i].family, ops_shares[s].family) == 0 ? ops_counts[i].cases : 0;
        in_short_runs += (cases + ops_shares[s].every - 1) / ops_shares[s].every;
    }
    printf("ops: %u cases in all, %u in short runs\n", total, in_short_runs);
    assert_int_equal(missing, 0);
    assert_true(total >= 5000);
    assert_true(in_short_runs >= 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_operation_has_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
