/* bench_batch.h: the mixes of vector adds that `bench batch` and `bench route` measure. */
#ifndef CLI_BENCH_BATCH_H
#define CLI_BENCH_BATCH_H

#include <heddle.h>

enum { BATCH_MOST_TASKS = 8 };

typedef struct batch_mix {
    const char *name;
    size_t      count;
    int64_t     sizes[BATCH_MOST_TASKS]; /* elements of each task */
} batch_mix;

/* The first one is a single task again and again, so that its first run is the process's first one. */
extern const batch_mix batch_mixes[];
extern const size_t    batch_mix_count;

/* c<i> = a<i> + b<i> for `count` tasks; NULL: the context's error says why. */
hd_program *batch_program(hd_context *context, const int64_t *sizes, size_t count);

#endif
