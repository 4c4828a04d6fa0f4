/* bench_winner.c: walks the rows in the order of the work that they did. */
#include "cli/bench_winner.h"

static size_t end_of_work(const bench_set *set, size_t at, size_t end) {
    size_t next = at + 1;
    while (next < end && bench_same_work(set->by_work[at], set->by_work[next])) next++;
    return next;
}

/* The winner of one work, and how many times as long the next device takes. */
static const bench_row *winner_of(const bench_set *set, size_t at, size_t end, double *out_gain) {
    const bench_row *winner = NULL;
    double next = 0;
    for (size_t i = at; i < end; i++) {
        const bench_row *row = set->by_work[i];
        if (row->fastest) winner = row;
        else if (!row->synthetic && (next == 0 || row->cells->median_ns < next)) next = row->cells->median_ns;
    }
    *out_gain = winner ? next / winner->cells->median_ns : 0;
    return winner;
}

bool bench_next_stretch(const bench_set *set, size_t *at, size_t end, bench_stretch *out_stretch) {
    if (*at >= end) return false;
    const bench_row *first = set->by_work[*at];
    const bool over_sizes = first->kind->form == BENCH_OVER_SIZE || first->kind->form == BENCH_RATE;
    *out_stretch = (bench_stretch){ .first = first };
    for (size_t next; *at < end; *at = next) {
        double gain;
        next = end_of_work(set, *at, end);
        const bench_row *row = set->by_work[*at], *winner = winner_of(set, *at, next, &gain);
        const bool begins = row == first, goes_on = over_sizes && bench_same_panel(first, row) && !winner == !out_stretch->winner &&
                                                    (!winner || winner->style == out_stretch->winner->style);
        if (!begins && !goes_on) return true;
        if (begins) out_stretch->winner = winner;
        if (begins || gain < out_stretch->least) out_stretch->least = gain;
        if (begins || gain > out_stretch->most) out_stretch->most = gain;
        out_stretch->works++;
        out_stretch->doubtful += winner && winner->doubtful;
        out_stretch->last = row;
    }
    return true;
}

bench_crossing bench_find_crossing(const bench_set *set, size_t begin, size_t end, const bench_row *line) {
    bench_crossing found = { 0 };
    for (size_t at = begin, next; at < end; at = next) {
        const bench_row *cpu = NULL, *device = NULL;
        next = end_of_work(set, at, end);
        for (size_t i = at; i < next; i++) {
            const bench_row *row = set->by_work[i];
            if (row->synthetic) continue;
            if (row->style == line->style) device = row;
            else if (bench_is_cpu(row) && (!cpu || row->cells->median_ns < cpu->cells->median_ns)) cpu = row;
        }
        if (!cpu || !device) continue;
        const bool overtakes = device->cells->median_ns <= 0.9 * cpu->cells->median_ns;
        found.compared++;
        if (!overtakes) found.from = NULL;
        else if (!found.from) {
            found.from = device;
            found.always = found.compared == 1;
        }
    }
    return found;
}
