/* bench_winner.c: walks the rows in the order of the work that they did. */
#include "cli/bench_winner.h"
#include "cli/bench_figure.h"
#include "cli/chart_scale.h"
#include "cli/measure.h"
#include "cli/statistics.h"

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
        if (row->fastest || row->tied) winner = row;
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
        const bool begins = row == first,
                   goes_on =
                       over_sizes && bench_same_panel(first, row) && !winner == !out_stretch->winner &&
                       (!winner || (winner->tied ? out_stretch->tie
                                                 : !out_stretch->tie && winner->style == out_stretch->winner->style));
        if (!begins && !goes_on) return true;
        if (begins) out_stretch->winner = winner;
        if (begins) out_stretch->tie = winner && winner->tied;
        if (begins || gain < out_stretch->least) out_stretch->least = gain;
        if (begins || gain > out_stretch->most) out_stretch->most = gain;
        out_stretch->works++;
        out_stretch->doubtful += winner && winner->doubtful;
        out_stretch->last = row;
    }
    return true;
}

void bench_stretch_gain(const bench_stretch *stretch, const char *unit, text *to) {
    cli_cell least, most;
    if (stretch->tie) return;
    if (stretch->most >= stretch->least * 1.05) text_add(to, "%s to ", measure_rate(stretch->least, least));
    text_add(to, "%s%s", measure_rate(stretch->most, most), unit);
}

void bench_stretch_name(const bench_stretch *stretch, bool sized, text *to) {
    const bench_row *first = stretch->first, *last = stretch->last;
    const chart_unit unit = first->kind->form == BENCH_RATE ? CHART_BYTES : CHART_COUNT;
    char number[CHART_NUMBER];
    if (first->kind->form != BENCH_OVER_SIZE && first->kind->form != BENCH_RATE) {
        bench_case_name(first, sized, to);
        return;
    }
    text_add(to, "%s", chart_number(first->cells->elements, unit, 3, number));
    if (last != first) text_add(to, " to %s", chart_number(last->cells->elements, unit, 3, number));
}

bench_crossing bench_find_crossing(const bench_set *set, size_t begin, size_t end, const bench_row *line) {
    enum { MOST_SIZES = 4096 };
    const bench_row *rows[MOST_SIZES];
    bool wins[MOST_SIZES] = { false };
    size_t count = 0;
    for (size_t at = begin, next; at < end && count < MOST_SIZES; at = next) {
        const bench_row *cpu = NULL, *device = NULL;
        next = end_of_work(set, at, end);
        for (size_t i = at; i < next; i++) {
            const bench_row *row = set->by_work[i];
            if (row->synthetic) continue;
            if (row->style == line->style) device = row;
            else if (bench_is_cpu(row) && (!cpu || row->cells->median_ns < cpu->cells->median_ns)) cpu = row;
        }
        if (!cpu || !device) continue;
        rows[count] = device;
        wins[count++] = device->cells->median_ns < cpu->cells->median_ns;
    }
    const size_t at = statistics_crossing(wins, count);
    return (bench_crossing){ .from = at < count ? rows[at] : NULL, .always = at == 0 && count > 0, .compared = count };
}
