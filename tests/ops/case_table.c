/* case_table.c: the number of cases that each family of tests has for each operation (ops.h). */
#include "ops.h"

const ops_count ops_counts[] = {
#define CASES(family, op, cases) { family, HDI_OP_##op, cases },
#include "case_table.inc"
    { "", HDI_OP_NONE, 0 }
};
const uint32_t ops_count_rows = HDI_COUNT(ops_counts);
