/* bench_winner.h: who is fastest where, and from which size on a device overtakes the CPU. Synthetic rows never
 * count. */
#ifndef CLI_BENCH_WINNER_H
#define CLI_BENCH_WINNER_H

#include "cli/bench_set.h"
#include "cli/text.h"

/* Neighbouring works of one panel with the same winner, or with a tie: over sizes a stretch of them, else one case. */
typedef struct bench_stretch {
    const bench_row *first, *last;  /* of its works */
    const bench_row *winner;        /* its row of the first work; NULL: fewer than two devices were measured */
    bool             tie;           /* nobody is faster by more than BENCH_TIE */
    double           least, most;   /* how many times as long the next device takes */
    size_t           works, doubtful; /* how many there are, and at how many of them the winner's row is doubtful */
} bench_stretch;

/* The stretch that begins at set->by_work[*at]; moves *at behind it. False at `end`. */
bool bench_next_stretch(const bench_set *set, size_t *at, size_t end, bench_stretch *out_stretch);

/* "3.37 to 1,020 times": how many times as long the next device takes, in plain figures. Nothing of a tie. */
void bench_stretch_gain(const bench_stretch *stretch, const char *unit, text *to);

/* "1k to 64k", or a case's name as bench_case_name has it. Plain text. */
void bench_stretch_name(const bench_stretch *stretch, bool sized, text *to);

/* By the 90% rule of statistics.h, over the sizes that both the CPU and the device measured. */
typedef struct bench_crossing {
    const bench_row *from;     /* the device's row at the crossing; NULL: it does not overtake the CPU */
    bool             always;   /* that is the least size of all */
    size_t           compared; /* sizes */
} bench_crossing;

/* Of the device of `line`, within the panel by_work[begin] to by_work[end - 1]. */
bench_crossing bench_find_crossing(const bench_set *set, size_t begin, size_t end, const bench_row *line);

#endif
