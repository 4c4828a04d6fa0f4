/* workload.h: operations to measure: programs of one operation by name, type and one size, with the work that they are;
 * and jobs, which are such a program on a device with data to run on. */
#ifndef CLI_WORKLOAD_H
#define CLI_WORKLOAD_H

#include "cli/table.h"
#include <heddle.h>

typedef struct workload_op {
    const char *name;
    const char *size;               /* what its one size n means */
    uint64_t    least, most;        /* n for a range of sizes, where no other is asked for */
    uint64_t    large;              /* n for one size that keeps a device busy */
    uint64_t    unit;               /* n is a multiple of it */
    uint32_t    types;              /* bit t: takes hd_dtype t */
    hd_value  (*build)(hd_program *program, hd_dtype type, int64_t n);
    double    (*flops)(double n);
    void      (*print)(char *out, size_t room, unsigned long long n); /* the size as text */
} workload_op;

extern const workload_op workload_ops[];
extern const size_t      workload_op_count;
const workload_op *workload_find(const char *name);
bool workload_takes(const workload_op *op, hd_dtype type);
/* Sizes of least..most that fit the operation and the type, rising: powers of two, and with `between` the middle
 * between two. At most `room`; returns their number. */
size_t workload_sizes(const workload_op *op, hd_dtype type, uint64_t least, uint64_t most, bool between,
                      uint64_t *out_sizes, size_t room);

/* The program, or NULL where it cannot be made: the context's error says why. Fills in the row's op, type, size,
 * elements, bytes and flops. `out_size_text` is where the row's size stays. */
hd_program *workload_program(hd_context *context, const workload_op *op, hd_dtype type, uint64_t n,
                             char out_size_text[64], table_row *row);

/* ---- data on the host, shared by all jobs of a run: inputs hold ordinary values, and no two the same memory ---- */

enum { WORKLOAD_PORTS = 24 };
typedef struct workload_data {
    void    *ports[WORKLOAD_PORTS];
    uint64_t bytes[WORKLOAD_PORTS];
} workload_data;
/* Makes room for the program's ports; for the largest program first, before any job begins. False: no memory. */
bool workload_data_hold(workload_data *data, const hd_program *program);
void workload_data_free(workload_data *data);

/* ---- jobs ---- */

typedef struct workload_job {
    hd_device  *device;
    hd_program *program;            /* belongs to the job */
    const workload_data *data;
    bool        in_place;           /* the device computes in the host's own memory: nothing has to travel */
    hd_plan_desc desc;              /* of the plan */
    hd_plan    *plan;
    hd_buffer  *buffers[WORKLOAD_PORTS];
    /* of the last run with transfers: its parts; writing and running together */
    uint64_t    write_ns, run_ns, read_ns, handed_ns;
} workload_job;

/* Plans, hands the data over, runs and reads: the first, cold run. */
hd_status workload_job_begin(workload_job *job);
/* One run with the data where it is. Takes a workload_job. */
hd_status workload_run(void *job);
/* One run with inputs written before and outputs read behind. */
hd_status workload_run_with_transfers(void *job);
void workload_job_end(workload_job *job);

#endif
