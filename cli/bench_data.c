/* bench_data.c: the table under a figure: one line for each row of the CSV, with its own digits. A column of which no
 * row knows anything, or that says the same in all, is left out. */
#include "cli/bench_figure.h"
#include "cli/bench_page.h"
#include <math.h>
#include <string.h>

typedef struct column {
    const char *heading;
    bool        right;     /* numbers stand to the right */
    bool        if_varies; /* shown only where rows differ in it */
    void (*write)(const bench_set *set, const bench_row *row, text *to); /* plain text; nothing: not known */
} column;

static void known(double number, text *to) {
    if (!isnan(number)) text_add_number(to, number);
}

#define TEXT_COLUMN(name) \
    static void write_##name(const bench_set *set, const bench_row *row, \
                             text *to) { (void)set; text_add(to, "%s", row->cells->name); }
#define NUMBER_COLUMN(name) \
    static void write_##name(const bench_set *set, const bench_row *row, \
                             text *to) { (void)set; known(row->cells->name, to); }
TEXT_COLUMN(op)
TEXT_COLUMN(size) TEXT_COLUMN(counted) TEXT_COLUMN(device) NUMBER_COLUMN(elements) NUMBER_COLUMN(submissions)
    NUMBER_COLUMN(median_ns) NUMBER_COLUMN(min_ns) NUMBER_COLUMN(p90_ns) NUMBER_COLUMN(max_ns) NUMBER_COLUMN(first_ns)
        NUMBER_COLUMN(samples) NUMBER_COLUMN(temperature_c)

            static void write_machine(const bench_set *set, const bench_row *row, text *to) {
    text_add(to, "%s", bench_machine(set, row));
}

static void giga(double per_second, text *to) {
    if (per_second > 0) text_add(to, "%.4g", per_second / 1e9);
}
static void write_gflops(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    giga(bench_per_second(row->cells->flops, row->cells->median_ns), to);
}
static void write_gbytes(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    giga(bench_per_second(row->cells->bytes, row->cells->median_ns), to);
}

/* Of the roof above the operation: arithmetic or memory, whichever takes longer there by the device's measured
 * peaks. */
static void write_of_roof(const bench_set *set, const bench_row *row, text *to) {
    const table_row *cells = row->cells;
    (void)set;
    const double share = fmax(bench_per_second(cells->flops, cells->median_ns) / cells->peak_flops_per_s,
                              bench_per_second(cells->bytes, cells->median_ns) / cells->peak_bytes_per_s);
    if (share > 0 && isfinite(share)) text_add(to, share < 100 ? "%.1f%%" : "%.3g%%", 100 * share);
}

static void write_tokens(const bench_set *set, const bench_row *row, text *to) {
    const double rate = row->kind->form == BENCH_TOKENS ? bench_y(row, row->cells->median_ns) : (double)NAN;
    (void)set;
    if (rate > 0) text_add(to, "%.4g", rate);
}

static void hits(double found, double asked, text *to) {
    if (asked > 0 && found >= 0) text_add(to, "%.0f of %.0f", found, asked);
}
static void write_staging(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    hits(row->cells->staging_hits, row->cells->staging_requests, to);
}
static void write_plans(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    hits(row->cells->plan_hits, row->cells->plan_requests, to);
}
static void write_kernels(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    hits(row->cells->kernel_hits, row->cells->kernel_requests, to);
}

static void write_clock(const bench_set *set, const bench_row *row, text *to) {
    const double before = row->cells->clock_before_mhz, after = row->cells->clock_after_mhz;
    (void)set;
    if (isnan(before) || isnan(after)) return;
    text_add(to, "%.0f", before);
    if (before < after || before > after) text_add(to, " \xE2\x86\x92 %.0f", after);
}

static void write_remark(const bench_set *set, const bench_row *row, text *to) {
    (void)set;
    if (row->fastest || row->tied) text_add(to, row->tied ? "tie" : "fastest");
    if (row->synthetic) text_add(to, "synthetic");
    if (row->doubtful)
        text_add(to, "%sdoubtful: %s", to->length ? "; " : "", *row->cells->flag ? row->cells->flag : "throttled");
}

static const column columns[] = {
    { "machine", false, true, write_machine }, { "operation", false, true, write_op },
    { "counted", false, true, write_counted }, { "size", false, false, write_size },
    { "elements", true, false, write_elements }, { "submissions", true, false, write_submissions },
    { "device", false, false, write_device }, { "median, ns", true, false, write_median_ns },
    { "min", true, false, write_min_ns }, { "P90", true, false, write_p90_ns }, { "max", true, false, write_max_ns },
    { "first run", true, false, write_first_ns }, { "samples", true, false, write_samples },
    { "tokens/s", true, false, write_tokens }, { "GFLOP/s", true, false, write_gflops },
    { "GB/s", true, false, write_gbytes }, { "of the roof", true, false, write_of_roof },
    { "staging reused", true, false, write_staging }, { "plans reused", true, false, write_plans },
    { "kernels reused", true, false, write_kernels },
    { "clock, MHz", true, false, write_clock }, { "\xC2\xB0""C", true, false, write_temperature_c },
    { "remark", false, false, write_remark },
};

/* The cell, in `cell` from its beginning; "" where nothing is known. */
static const char *cell_of(const bench_set *set, const bench_row *row, const column *of, text *cell) {
    cell->length = 0;
    text_append(cell, "", 0);
    of->write(set, row, cell);
    return cell->data ? cell->data : "";
}

static bool is_shown(const bench_set *set, size_t begin, size_t end, const column *of) {
    text first = { 0 }, other = { 0 };
    bool any = false, varies = false;
    cell_of(set, set->by_work[begin], of, &first);
    for (size_t i = begin; i < end && !(any && (varies || !of->if_varies)); i++) {
        const char *cell = cell_of(set, set->by_work[i], of, &other);
        any = any || *cell;
        varies = varies || strcmp(cell, first.data ? first.data : "") != 0;
    }
    text_free(&first);
    text_free(&other);
    return any && (varies || !of->if_varies);
}

void bench_data_write(const bench_set *set, size_t begin, size_t end, text *to) {
    bool shown[CLI_COUNT(columns)];
    text cell = { 0 };
    text_add(to,
             "<details><summary>Table: %zu row%s, times in nanoseconds</summary>\n<div class=\"scroll\"><table>\n<tr>",
             end - begin, end - begin == 1 ? "" : "s");
    for (size_t i = 0; i < CLI_COUNT(columns); i++) {
        shown[i] = is_shown(set, begin, end, &columns[i]);
        if (shown[i]) text_add(to, "<th%s>%s</th>", columns[i].right ? " class=\"n\"" : "", columns[i].heading);
    }
    text_add(to, "</tr>\n");
    for (size_t at = begin; at < end; at++) {
        const bench_row *row = set->by_work[at];
        const bool begins = at > begin && !bench_same_work(set->by_work[at - 1], row);
        text_add(to, "<tr class=\"%s%s%s\">", row->fastest ? "fastest" : "", begins ? " begins" : "",
                 row->synthetic ? " synthetic" : "");
        for (size_t i = 0; i < CLI_COUNT(columns); i++) {
            if (!shown[i]) continue;
            text_add(to, columns[i].right ? "<td class=\"n\">" : "<td>");
            text_add_html(to, cell_of(set, row, &columns[i], &cell), 200);
            text_add(to, "</td>");
        }
        text_add(to, "</tr>\n");
    }
    text_add(to, "</table></div></details>\n");
    to->failed = to->failed || cell.failed;
    text_free(&cell);
}
