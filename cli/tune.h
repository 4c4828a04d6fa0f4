/* tune.h: what `heddle tune` measures: operations and transfers of many sizes on each device. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli/measure.h"
#include "cli/workload.h"

enum { TUNE_SIZES = 48, TUNE_WAYS = 4 };

/* What of a job is timed: a run with the data there; a round of writing, running and reading, and parts of it, which
 * are all told by the same rounds. */
typedef enum tune_way { TUNE_RUN, TUNE_ROUND, TUNE_WRITE, TUNE_WRITE_AND_RUN, TUNE_READ } tune_way;

/* An operation in one type over rising sizes, on every device, sampled in several ways. */
typedef struct tune_set {
    const workload_op *op;
    hd_dtype      type;
    uint64_t      sizes[TUNE_SIZES];
    size_t        size_count;
    size_t        ways;
    tune_way      timed[TUNE_WAYS]; /* in each way */
    measure_case *cases;         /* by device, size and way; without samples where left out */
    workload_job *jobs;          /* by device and size */
    workload_data data;
} tune_set;

/* Makes all plans, but for sizes behind one that took longer than `most_ns`, and samples them. CLI_OK or the exit code;
 * tune_set_end in either case. */
int tune_set_measure(measure *m, tune_set *set, uint64_t most_ns);
const measure_case *tune_set_case(const tune_set *set, size_t device, size_t size, size_t way);
workload_job *tune_set_job(const tune_set *set, size_t device, size_t size);
void tune_set_end(const measure *m, tune_set *set);

/* What is measured: operations and types. */
typedef struct tune_subject { const char *op; hd_dtype type; } tune_subject;
extern const tune_subject tune_subjects[];
extern const size_t       tune_subject_count;

/* Which way of computing kernels is the fastest on each device (tune_kernels.c). `kernels`: names of those to measure,
 * with commas between; NULL: all. `list`: shows all that was measured, not only what changed. */
int tune_kernels(measure *m, const char *kernels, bool quick, bool list);

/* Held-out sizes: does the prediction name the device that is faster? (tune_check.c) */
int tune_check(measure *m, uint64_t most_ns, bool list);

#endif
