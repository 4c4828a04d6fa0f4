/* bench_summary.c: what the page's winners say, as Markdown for places that show no page. */
#include "cli/bench_figure.h"
#include "cli/bench_page.h"
#include "cli/bench_winner.h"
#include "cli/chart_scale.h"
#include <string.h>

static void write_winner(const bench_stretch *stretch, text *to) {
    if (!stretch->winner) {
        text_add(to, "one device only");
        return;
    }
    if (stretch->tie) text_add(to, "tie");
    else {
        text_add_markdown(to, stretch->winner->device);
        text_add(to, ", ");
        bench_stretch_gain(stretch, " times", to);
    }
    if (stretch->doubtful) text_add(to, " (doubtful at %zu of %zu)", stretch->doubtful, stretch->works);
}

static void write_crossings(const bench_set *set, size_t begin, size_t end, text *to) {
    char number[CHART_NUMBER];
    bool any = false;
    for (size_t i = begin; i < end; i++) {
        const bench_row *row = &set->rows[i];
        if ((i > begin && bench_same_line(&set->rows[i - 1], row)) || bench_is_cpu(row) || row->synthetic) continue;
        const bench_crossing crossing = bench_find_crossing(set, begin, end, row);
        if (crossing.compared == 0) continue;
        if (any) text_add(to, "; ");
        any = true;
        text_add_markdown(to, row->device);
        if (!crossing.from) text_add(to, ": none");
        else text_add(to, ": from %s", chart_number(crossing.from->cells->elements, CHART_COUNT, 3, number));
    }
    if (!any) text_add(to, "-");
}

static void write_panel(const bench_set *set, size_t begin, size_t end, text *to) {
    const bench_row *row = &set->rows[begin];
    bench_stretch stretch;
    text name = { 0 };
    size_t at = begin;
    const bool sized = bench_needs_sizes(set, begin, end);
    bool again = false;
    bench_panel_name(set, row, &name);
    while (bench_next_stretch(set, &at, end, &stretch)) {
        text sizes = { 0 };
        text_add(to, "| ");
        if (row->kind->op_parts_figures && !again) {
            text_add_markdown(to, row->cells->op);
            text_add(to, " ");
        }
        if (!again) text_add_markdown(to, row->cells->type);
        text_add(to, " | ");
        if (!again && name.data) text_add_markdown(to, name.data);
        text_add(to, " | ");
        bench_stretch_name(&stretch, sized, &sizes);
        if (sizes.data) text_add_markdown(to, sizes.data);
        text_add(to, " | ");
        write_winner(&stretch, to);
        if (row->kind->form == BENCH_OVER_SIZE) {
            text_add(to, " | ");
            if (!again) write_crossings(set, begin, end, to);
        }
        text_add(to, " |\n");
        to->failed = to->failed || sizes.failed;
        text_free(&sizes);
        again = true;
    }
    to->failed = to->failed || name.failed;
    text_free(&name);
}

static void write_chapter(const bench_set *set, size_t begin, size_t end, text *to) {
    const bench_kind *kind = set->rows[begin].kind;
    const bool crossings = kind->form == BENCH_OVER_SIZE;
    text_add(to,
             "\n## %s\n\n| operation | details | %s | fastest, and how many times as long the next takes |%s\n"
             "|---|---|---|---|%s\n", kind->heading,
             crossings ? "elements" : kind->form == BENCH_RATE ? "bytes" : "case",
             crossings ? " overtakes the CPU |" : "", crossings ? "---|" : "");
    for (size_t at = begin, stop; at < end; at = stop) {
        for (stop = at + 1; stop < end && bench_same_panel(&set->rows[at], &set->rows[stop]);) stop++;
        write_panel(set, at, stop, to);
    }
}

void bench_summary_write(const bench_set *set, text *to) {
    size_t synthetic = 0, doubtful = 0;
    text_add(to, "# heddle: measurements\n\n");
    for (size_t i = 0; i < set->count; i++) {
        synthetic += set->rows[i].synthetic;
        doubtful += set->rows[i].doubtful;
    }
    text_add(to, "%zu rows. Synthetic, passed over: %zu. Doubtful, because a clock moved or was held down: %zu.\n",
             set->count, synthetic, doubtful);
    for (size_t at = 0, end; at < set->count; at = end) {
        bool contest = false;
        for (end = at; end < set->count && bench_same_chapter(&set->rows[at], &set->rows[end]); end++)
            contest = contest || set->rows[end].fastest || set->rows[end].tied;
        if (contest) write_chapter(set, at, end, to);
    }
    text_add(to, "\nA device overtakes the CPU at the first size from which on it wins at least 90%% of the sizes. "
                 "A tie: the next one takes no more than 5%% longer.\n");
}
