/* case_table.c: the number of cases that each family of tests has for each operation, and its short run (ops.h). */
#include "ops.h"

#define EVERY(family, every)
#define CASES(family, op, cases) { family, HDI_OP_##op, cases },
const ops_count ops_counts[] = {
#include "case_table.inc"
};
#undef EVERY
#undef CASES
const uint32_t ops_count_rows = HDI_COUNT(ops_counts);

#define EVERY(family, every) { family, every },
#define CASES(family, op, cases)
const ops_share ops_shares[] = {
#include "case_table.inc"
};
const uint32_t ops_share_rows = HDI_COUNT(ops_shares);
