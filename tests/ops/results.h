/* results.h: cases of the suite as they came out, counted by operation and type. */
#ifndef TESTS_OPS_RESULTS_H
#define TESTS_OPS_RESULTS_H

#include "program/program.h"

typedef enum ops_outcome {
    OPS_RIGHT,   /* ran; every element within its bound, in exact mode every bit */
    OPS_WRONG,
    OPS_REFUSED, /* no result: planning or running failed */
    OPS_OUTCOMES
} ops_outcome;

/* Of one device; a case counts once for each mode that it ran in. */
typedef struct ops_results {
    uint32_t count[HDI_OP_COUNT][HD_DTYPE_COUNT][OPS_OUTCOMES];
} ops_results;

void ops_result_add(ops_results *results, hdi_op op, hd_dtype type, ops_outcome outcome);
hd_dtype ops_result_type(const hd_program *program, const hdi_node *node);
/* Appends lines of back end, hardware or software, device, driver, operation, type, and the number of cases that were right, wrong and
 * refused, with tabs between them. */
bool ops_results_write(const char *path, const hd_device_info *device, const ops_results *results);
#endif
