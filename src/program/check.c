/* check.c: the whole-program check. Every operation was checked as it was added, so little is left to see here. */
#include "program/program.h"

hd_status hdi_program_check(const hd_program *program, hd_error *error) {
    if (program->error.status != HD_OK) {
        if (error && error->status == HD_OK) *error = program->error;
        return program->error.status;
    }
    /* it may do no more than write a state */
    const bool segment = program->node_count > 0 && program->nodes[0].whole != 0;
    if (program->output_count == 0 && !segment)
        return hdi_fail(error, HD_STATUS_WRONG_STATE, "the program has no output: name one with hd_output");
    return HD_OK;
}
