/* pool.h: a pool of threads that runs one loop at a time: every index once, on whichever thread is free. */
#ifndef HDCPU_POOL_H
#define HDCPU_POOL_H

#include "base/base.h"

typedef struct hdcpu_pool hdcpu_pool;
/* Runs indices first..first+count on worker `worker` (0 is the caller's thread). */
typedef void (*hdcpu_loop)(void *user, uint32_t worker, uint64_t first, uint64_t count);

/* A pool of `threads` workers, the caller's thread counted; NULL where threads could not be started. */
hdcpu_pool *hdcpu_pool_new(const hd_allocator *allocator, uint32_t threads);
void hdcpu_pool_free(hdcpu_pool *pool);
/* Runs the loop over 0..count in runs of `grain` and returns when all of it is done. One caller at a time. */
void hdcpu_pool_run(hdcpu_pool *pool, hdcpu_loop loop, void *user, uint64_t count, uint64_t grain);
#endif
