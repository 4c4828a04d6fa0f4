/* pool.h: a pool of threads that runs one loop at a time: every index once, on whichever thread is free. */
#ifndef HDCPU_POOL_H
#define HDCPU_POOL_H

#include "base/base.h"
#include <fenv.h>

/* The floating-point state of a thread that runs kernels: to nearest, subnormals kept, nothing trapped, whatever the thread was
 * set to, so that results are the same on all of them. `end` gives back what was. */
typedef struct hdcpu_floats {
#if defined(__x86_64__)
    uint32_t was; /* MXCSR; fesetenv would take longer than a small kernel */
#else
    fenv_t was;
#endif
} hdcpu_floats;
hdcpu_floats hdcpu_floats_begin(void);
void hdcpu_floats_end(hdcpu_floats floats);

typedef struct hdcpu_pool hdcpu_pool;
/* Runs indices first..first+count on worker `worker` (0 is the caller's thread). */
typedef void (*hdcpu_loop)(void *user, uint32_t worker, uint64_t first, uint64_t count);

/* A pool of `threads` workers, the caller's thread counted; NULL where threads could not be started. */
hdcpu_pool *hdcpu_pool_new(const hd_allocator *allocator, uint32_t threads);
void hdcpu_pool_free(hdcpu_pool *pool);
/* Runs the loop over 0..count and returns when all of it is done. One caller at a time; his thread is worker 0. The loop takes one
 * thread `least_ns` or more: who is woken for it, and whether it is shared at all, hangs on that and on what its beginning took. */
void hdcpu_pool_run(hdcpu_pool *pool, hdcpu_loop loop, void *user, uint64_t count, uint64_t least_ns);
#endif
