/* clock.h: the time on a clock, for benchmarks, which define _POSIX_C_SOURCE. */
#ifndef HEDDLE_BENCH_CLOCK_H
#define HEDDLE_BENCH_CLOCK_H
#include <time.h>

static inline double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static inline double now_us(void) { return clock_us(CLOCK_MONOTONIC); }
static inline double now_s(void) { return now_us() * 1e-6; }
#endif
