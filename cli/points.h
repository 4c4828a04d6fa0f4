/* points.h: one operation in one type, over sizes, on every device that is measured; for `bench threshold` and `bench
 * ops`. */
#ifndef CLI_POINTS_H
#define CLI_POINTS_H

#include "cli/measure.h"
#include "cli/workload.h"

enum { POINTS_SIZES = 128, POINTS_COMPUTE = 0, POINTS_TRANSFERS = 1 };

typedef struct points {
    const workload_op *op;
    hd_dtype      type;
    uint64_t      sizes[POINTS_SIZES];
    size_t        size_count;
    unsigned      ways;          /* 1: compute; 2: with transfers as well */
    measure_case *cases;         /* by device, size and way; those that could not be made are `failed` */
    size_t        case_count;
    workload_job *jobs;          /* by device and size */
    char        (*texts)[64];
    workload_data data;
} points;

/* What a command measures where its options do not say. */
typedef struct points_choice {
    const char *ops, *types;
    bool        range;           /* from the op's least size to its most, with those between; else its large one */
    bool        transfers;       /* both ways */
} points_choice;

enum { POINTS_OPS = 32 };
typedef struct points_wanted {
    points_choice      choice;
    const workload_op *ops[POINTS_OPS];
    size_t             op_count;
    hd_dtype           types[HD_DTYPE_COUNT];
    size_t             type_count;
    uint64_t           least, most; /* 0: not given */
} points_wanted;

#define POINTS_OPTIONS(ops, types) \
    { "--op", "LIST", "operations with commas between; default: " ops }, \
    { "--types", "LIST", "types with commas between; default: " types }, \
    { "--min", "N", "the least size; what it means is below" }, \
    { "--max", "N", "the largest size" }

/* The same for both commands' help. */
#define POINTS_NOTES \
    "Sizes are elements of vecadd, gelu and copy; elements in rows of 512 of softmax,\nrms_norm and sum; rows and " \
    "columns of matmul, " \
    "matvec and transpose; tokens in 8\nheads of 64 of attention.\n"

/* Reads the options, opens the devices and has all of it measured: a command of this name. Returns the exit code. */
int points_run(const cli_args *args, const char *name, points_choice choice,
               int (*measure_all)(measure *m, const points_wanted *wanted));
/* Measures each operation in each of its types, and gives it to `visit`, which may change the rows' figures, print them
 * and write them. Returns the exit code; goes on after a case that failed, not after Ctrl-C. */
int points_each(measure *m, const points_wanted *wanted, int (*visit)(measure *m, points *p, void *user), void *user);
const measure_case *points_at(const points *p, size_t device, size_t size, unsigned way);
/* Writes the rows of all cases that have samples. */
int points_write(const measure *m, const points *p);

#endif
