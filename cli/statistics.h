/* statistics.h: what samples come to, and from which size on a device is the faster one. Pure functions. */
#ifndef CLI_STATISTICS_H
#define CLI_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct statistics {
    uint64_t median_ns, p90_ns, min_ns, max_ns;
} statistics;

/* Sorts `count` samples, at least one. P90 is the smallest sample that at least 90% of them do not exceed; the median
 * of an even count is the mean of the two in the middle. */
statistics statistics_of(uint64_t *samples, size_t count);

/* The mean of the middle nine tenths of `count` sorted samples, at least one: those while the machine was somebody
 * else's tell nothing. */
double statistics_middle_ns(const uint64_t *samples, size_t count);

/* Its standard error, for samples that do not depend on each other: from the variance of all of them, where those left
 * out count as the nearest that is not (Tukey and McLaughlin 1963). 0 for one sample. */
double statistics_middle_error_ns(const uint64_t *samples, size_t count);

/* The crossing by the 90% rule: the first of `count` sizes, in rising order, that the device wins and from which on it
 * wins at least 90% of the sizes. `count`: there is none. */
size_t statistics_crossing(const bool *wins, size_t count);

/* Puts 0 .. count-1 into an order of chance; `seed` moves on. */
void statistics_shuffle(size_t *out_order, size_t count, uint64_t *seed);

#endif
