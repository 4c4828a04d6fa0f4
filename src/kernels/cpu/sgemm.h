/* sgemm.h: the fast f32 matrix product of the CPU device, C = A x B.
 *
 * A caller fills an hdcpu_sgemm, asks hdcpu_sgemm_plan how to cut it, and runs every task once, in any order and on any
 * number of threads. Tasks never wait for each other: each packs what it needs into the scratch of the worker that runs
 * it. An element of C is summed in an order that depends on (m, n, k) and the kernel set only, so its bits are the same
 * for every number of threads. Nothing here allocates, locks, or can fail. */
#ifndef HDCPU_SGEMM_H
#define HDCPU_SGEMM_H

#include <heddle.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix that is read. Strides are in elements, so a transposed matrix is one with its strides swapped. */
typedef struct hdcpu_matrix {
    const void *data;
    hd_dtype    type; /* HD_F32, HD_F16 or HD_BF16; converted while packing */
    int64_t     row_stride, column_stride;
} hdcpu_matrix;

/* Writes B[k .. k + count) of column n to out, as f32: one run of a row of [N][K] weights; or that of row n of A. k is
 * a multiple of HDCPU_SGEMM_RUN and so is count, unless the run ends at the end of the row. Called from many threads at
 * once. */
typedef void (*hdcpu_sgemm_load)(void *user, int64_t n, int64_t k, int64_t count, float *out);

/* Called once for every finished piece of a row of C, row[0 .. count) = C[row_index][column ..], while it is in cache.
 * Called from many threads at once, never twice for one element. */
typedef void (*hdcpu_sgemm_finish)(void *user, float *row, int64_t row_index, int64_t column, int64_t count);

enum { HDCPU_SGEMM_RUN = 256 }; /* every block of a GGUF type divides it */

typedef struct hdcpu_sgemm_kernels hdcpu_sgemm_kernels;

/* How a product is cut. Only task_count and scratch_bytes concern the caller. */
typedef struct hdcpu_sgemm_blocking {
    uint32_t task_count;
    uint64_t scratch_bytes; /* for each worker, 64-byte aligned */
    uint32_t m_tasks, n_tasks;
    int64_t  m_task, n_task;   /* rows and columns of C in a task */
    int64_t  m_block, k_block; /* of a packed block of A */
    const hdcpu_sgemm_kernels *kernels;
} hdcpu_sgemm_blocking;

typedef struct hdcpu_sgemm {
    int64_t      m, n, k; /* each at least 1 */
    hdcpu_matrix a;       /* m x k; unused where load_a is set */
    hdcpu_matrix b;       /* k x n; unused where load_b is set */
    float       *c;       /* m x n, unit column stride; no overlap with a or b */
    int64_t      c_row_stride;

    hdcpu_sgemm_load   load_a, load_b; /* NULL for none */
    void              *load_user;
    hdcpu_sgemm_finish finish;   /* NULL for none */
    void              *finish_user;

    hdcpu_sgemm_blocking blocking; /* from hdcpu_sgemm_plan */
} hdcpu_sgemm;

/* The kernel sets that this machine can run, best first; NULL from the first index that has none. */
const hdcpu_sgemm_kernels *hdcpu_sgemm_kernels_at(uint32_t index);
const char *hdcpu_sgemm_kernels_name(const hdcpu_sgemm_kernels *kernels);

/* How to cut m x n x k for `threads` workers; kernels may be NULL for the best set. */
hdcpu_sgemm_blocking hdcpu_sgemm_plan(const hdcpu_sgemm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                                      uint32_t threads);

/* Computes one task's part of C completely. scratch: the worker's own, scratch_bytes long. */
void hdcpu_sgemm_task(const hdcpu_sgemm *job, uint32_t task, void *scratch);

#endif
