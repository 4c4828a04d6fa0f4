/* results.c: what the suite found, by device, operation and type, for docs/support.md (tools/support): lines of a file that all
 * families append to. */
#include "results.h"
#include <stdio.h>

void ops_result_add(ops_results *results, hdi_op op, hd_dtype type, ops_outcome outcome) { results->count[op][type][outcome]++; }

/* What a case's type is: that of its last operand that is a matrix of weights, else of what it takes in. */
hd_dtype ops_result_type(const hd_program *program, const hdi_node *node) {
    const uint32_t which = node->op == HDI_OP_MATMUL ? 1 : 0;
    const hdi_node *operand = which < node->operand_count ? hdi_program_node(program, node->operands[which]) : NULL;
    return operand ? operand->dtype : node->dtype;
}

bool ops_results_write(const char *path, const hd_device_info *device, const ops_results *results) {
    FILE *file = fopen(path, "a");
    bool good = file != NULL;
    for (uint32_t op = 1; op < HDI_OP_COUNT && good; op++)
        for (uint32_t type = 1; type < HD_DTYPE_COUNT && good; type++) {
            const uint32_t *count = results->count[op][type];
            if (!count[OPS_RIGHT] && !count[OPS_WRONG] && !count[OPS_REFUSED]) continue;
            good = fprintf(file, "%s\t%s\t%s\t%s\t%s\t%s\t%u\t%u\t%u\n", device->backend, device->kind == HD_DEVICE_SOFTWARE ? "software" : "hardware",
                           device->name, device->driver, hdi_op_get((hdi_op)op).name, hd_dtype_name((hd_dtype)type), count[OPS_RIGHT], count[OPS_WRONG], count[OPS_REFUSED]) > 0;
        }
    if (file && fclose(file)) good = false;
    return good;
}
