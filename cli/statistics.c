/* statistics.c: medians, percentiles, the 90% rule and orders of chance. */
#include "statistics.h"
#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

statistics statistics_of(uint64_t *samples, size_t count) {
    qsort(samples, count, sizeof *samples, by_size);
    const uint64_t low = samples[(count - 1) / 2], high = samples[count / 2];
    const size_t ninety = count - count / 10; /* the least whole number that is 90% of `count` or more */
    return (statistics){ low + (high - low) / 2, samples[ninety - 1], samples[0], samples[count - 1] };
}

double statistics_middle_ns(const uint64_t *samples, size_t count) {
    const size_t cut = count / 20;
    double sum = 0;
    for (size_t i = cut; i < count - cut; i++) sum += (double)samples[i];
    return sum / (double)(count - 2 * cut);
}

double statistics_middle_error_ns(const uint64_t *samples, size_t count) {
    const size_t cut = count / 20;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
        const double x = (double)samples[at] - (double)samples[count / 2]; /* near 0: squares lose nothing */
        sum += x;
        squares += x * x;
    }
    const double n = (double)count;
    return count > 1 ? sqrt(fmax(squares - sum * sum / n, 0) / (n - 1) / n) * n / (n - 2 * (double)cut) : 0;
}

size_t statistics_crossing(const bool *wins, size_t count) {
    size_t crossing = count, won = 0;
    for (size_t i = count; i-- > 0;) {
        won += wins[i];
        if (wins[i] && won * 10 >= (count - i) * 9) crossing = i;
    }
    return crossing;
}

/* SplitMix64. */
static uint64_t next(uint64_t *seed) {
    uint64_t x = *seed += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

void statistics_shuffle(size_t *out_order, size_t count, uint64_t *seed) {
    for (size_t i = 0; i < count; i++) {
        const size_t other = (size_t)(next(seed) % (i + 1));
        out_order[i] = out_order[other];
        out_order[other] = i;
    }
}
