/* bench_winner.h: who is fastest where, and from which size on a device overtakes the CPU. Synthetic rows never count. */
#ifndef CLI_BENCH_WINNER_H
#define CLI_BENCH_WINNER_H

#include "cli/bench_set.h"

/* Neighbouring works of one panel with the same winner: over sizes a stretch of them, else one case. */
typedef struct bench_stretch {
    const bench_row *first, *last;  /* of its works */
    const bench_row *winner;        /* its row of the first work; NULL: fewer than two devices were measured */
    double           least, most;   /* how many times as long the next device takes */
    size_t           works, doubtful; /* how many there are, and at how many of them the winner's row is doubtful */
} bench_stretch;

/* The stretch that begins at set->by_work[*at]; moves *at behind it. False at `end`. */
bool bench_next_stretch(const bench_set *set, size_t *at, size_t end, bench_stretch *out_stretch);

/* The 90% rule: the device overtakes the CPU at the least measured size from which on, at every size that both measured, its
 * median is at most 90% of the CPU's. */
typedef struct bench_crossing {
    const bench_row *from;     /* the device's row at that size; NULL: it does not overtake */
    bool             always;   /* that is the least size that both measured */
    size_t           compared; /* sizes that both measured */
} bench_crossing;

/* Of the device of `line`, within the panel by_work[begin] to by_work[end - 1]. */
bench_crossing bench_find_crossing(const bench_set *set, size_t begin, size_t end, const bench_row *line);

#endif
