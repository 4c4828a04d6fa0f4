/* exec_check.h: `exec --check`: what a launch gives on the CPU device, which interprets kernels, beside what a device
 * gave. */
#ifndef CLI_EXEC_CHECK_H
#define CLI_EXEC_CHECK_H

#include "cli/cli.h"

typedef struct exec_check {
    void *wanted[16]; /* by port of the job */
} exec_check;

/* "random:f32[256]" as an array of such numbers in -1..1, or of i32 and u8 in 0..255; the same each time. False: it is
 * none. */
bool exec_random(const char *text, uint64_t seed, npy_array *out_array);
/* Runs the job's program on the CPU, with its inputs. */
int exec_check_run(const cli_job *job, exec_check *out_check);
/* Compares the job's outputs, and says how many differ. Floats may by 2^-10 of the larger of 1 and the number itself,
 * as functions and sums have no one result. */
int exec_check_compare(const cli_job *job, const exec_check *check);
void exec_check_end(exec_check *check);

#endif
