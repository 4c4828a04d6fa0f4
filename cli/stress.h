/* stress.h: what `heddle stress` counts (stress.c) and tells (stress_report.c). */
#ifndef CLI_STRESS_H
#define CLI_STRESS_H

#include "cli/cli.h"
#include "cli/machine.h"

enum { STRESS_INPUTS = 4, STRESS_PARTS = 10, STRESS_BLOCKS = 1 << 14 };
#define STRESS_BLOCK (UINT64_C(8) << 20) /* bytes of a pattern */

/* What was counted until `at_ns`, and what was seen then. */
typedef struct stress_part {
    uint64_t at_ns, runs, wrong, blocks, wrong_blocks, errors, losses;
    uint64_t device_bytes;
    double   clock_mhz, temperature_c; /* NaN: unknown */
} stress_part;

typedef struct stress {
    cli_session session;
    char        id[48], name[128];
    machine     machine;
    machine_sensor sensor;
    const char *metrics_path;
    uint64_t    size, elements, tensor_bytes, quantised_bytes, most_ns, began_ns;
    float      *x, *w, *y, *answers; /* x and answers: of each input */
    void       *q;
    hd_plan    *plan;
    hd_buffer  *blocks[STRESS_BLOCKS];
    uint64_t    ages[STRESS_BLOCKS];
    uint64_t   *pattern, *read;
    uint32_t    block_count, part_count;
    stress_part now, last, parts[STRESS_PARTS];
} stress;

/* Prints it; returns the exit code. */
int stress_report(const stress *s, bool json);

#endif
