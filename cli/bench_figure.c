/* bench_figure.c: turns the rows of a figure into the points, lines and marks of its panels. */
#include "cli/bench_figure.h"
#include "cli/bench_winner.h"
#include "cli/chart.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 48, MOST_LABELLED = 64, CASE_NAME = 64, MARK_NAME = 48, MOST_LOOKED_AT = 500 };

/* One panel as it is gathered: points of all lines one after the other. */
typedef struct panel {
    chart        chart;
    chart_point *points;
    chart_line   lines[CHART_LINES];
    chart_mark   marks[CHART_LINES];
    char         mark_names[CHART_LINES][MARK_NAME];
    const char  *cases[MOST_CASES];
    char         case_names[MOST_CASES][CASE_NAME];
    bool         cut; /* more lines or cases than are drawn */
} panel;

static const struct { const char *x_title, *y_title; chart_unit x_unit, y_unit;
} axes[] = {
    [BENCH_OVER_SIZE] = { "elements", "Time (less is better)", CHART_COUNT, CHART_TIME },
    [BENCH_RATE] = { "bytes in one transfer", "Bytes per second (more is better)", CHART_BYTES, CHART_COUNT },
    [BENCH_ROOFLINE] = { "operations per byte that must move", "Operations per second (more is better)", CHART_COUNT,
                         CHART_COUNT },
    [BENCH_CASES] = { "time (less is better)", "", CHART_TIME, CHART_COUNT },
    [BENCH_TOKENS] = { "tokens per second (more is better)", "", CHART_COUNT, CHART_COUNT },
};

static bool in_cases(const bench_row *row) { return row->kind->form == BENCH_CASES || row->kind->form == BENCH_TOKENS; }

/* ---- words ---- */

const char *bench_machine(const bench_set *set, const bench_row *row) {
    const char *machine = row->cells->machine;
    return *machine ? machine : system_name_of(set->paths[row->file]);
}

bool bench_machines_differ(const bench_set *set) {
    for (size_t i = 1; i < set->count; i++)
        if (strcmp(set->rows[i].cells->machine, set->rows[0].cells->machine) != 0) return true;
    return false;
}

void bench_panel_name(const bench_set *set, const bench_row *row, text *to) {
    const char *counted = row->cells->counted;
    if (row->kind->op_parts_panels) text_add(to, "%s", row->cells->op);
    else if (strcmp(counted, "compute") == 0) text_add(to, "data on the device");
    else if (strcmp(counted, "transfers") == 0) text_add(to, "transfers counted");
    else if (strcmp(counted, "plan") == 0) text_add(to, "transfers and planning counted");
    else text_add(to, "%s", counted);
    if (bench_machines_differ(set)) text_add(to, "%s%s", to->length ? ", " : "", bench_machine(set, row));
}

void bench_describe(const void *source, text *to) {
    const bench_row *row = source;
    const table_row *cells = row->cells;
    char number[CHART_NUMBER];
    text_add(to, "%s: %s%s%s%s%s, median %s (", row->device, cells->op, *cells->type ? " " : "", cells->type,
             *cells->size ? " " : "", cells->size,
             chart_number(cells->median_ns, CHART_TIME, 4, number));
    text_add_number(to, cells->median_ns);
    text_add(to, " ns)");
    if (!isnan(cells->min_ns)) text_add(to, ", min %s", chart_number(cells->min_ns, CHART_TIME, 4, number));
    if (!isnan(cells->p90_ns)) text_add(to, ", P90 %s", chart_number(cells->p90_ns, CHART_TIME, 4, number));
    if (!isnan(cells->samples)) text_add(to, ", %.0f samples", cells->samples);
    const double flops = bench_per_second(cells->flops, cells->median_ns),
                 bytes = bench_per_second(cells->bytes, cells->median_ns);
    if (flops > 0) text_add(to, ", %s FLOP/s", chart_number(flops, CHART_COUNT, 4, number));
    if (bytes > 0) text_add(to, ", %s B/s", chart_number(bytes, CHART_COUNT, 4, number));
    if (row->fastest) text_add(to, "; the fastest here");
    if (row->doubtful) text_add(to, "; doubtful: the clock moved or was held down");
    if (row->synthetic) text_add(to, "; synthetic: not measured");
}

/* ---- points ---- */

static void widen(double value, double *least, double *most) {
    if (!(value > 0)) return;
    if (!(*least <= value)) *least = value;
    if (!(*most >= value)) *most = value;
}

void bench_bar_of(const bench_row *row, double *out_low, double *out_high) {
    const double a = bench_y(row, row->cells->min_ns), b = bench_y(row, row->cells->p90_ns);
    *out_low = isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    *out_high = isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
}

static bool drawable(const bench_row *row) {
    return (in_cases(row) || bench_x(row) > 0) && bench_y(row, row->cells->median_ns) > 0;
}

/* What the axes of all panels of rows[begin] to rows[end - 1] must hold; false where nothing can be drawn. */
static bool range_of(const bench_set *set, size_t begin, size_t end, chart *out) {
    double x_least = NAN, x_most = NAN, y_least = NAN, y_most = NAN;
    for (size_t i = begin; i < end; i++) {
        const bench_row *row = &set->rows[i];
        double low, high;
        if (!drawable(row)) continue;
        bench_bar_of(row, &low, &high);
        const double values[] = { bench_y(row, row->cells->median_ns), low, high };
        for (size_t k = 0; k < CLI_COUNT(values); k++)
            widen(values[k], in_cases(row) ? &x_least : &y_least, in_cases(row) ? &x_most : &y_most);
        if (in_cases(row)) continue;
        widen(bench_x(row), &x_least, &x_most);
        if (row->kind->form != BENCH_ROOFLINE) continue;
        widen(row->cells->peak_flops_per_s, &y_least, &y_most); /* the roof, and where it begins */
        widen(row->cells->peak_flops_per_s / row->cells->peak_bytes_per_s, &x_least, &x_most);
    }
    if (isnan(x_least)) return false;
    *out = (chart){
        .x_least = x_least, .x_most = x_most, .y_least = y_least, .y_most = y_most, .describe = bench_describe
    };
    return true;
}

static chart_point point_of(const bench_row *row, double place) {
    chart_point point = { .flagged = row->doubtful, .source = row };
    bench_bar_of(row, &point.low, &point.high);
    point.x = in_cases(row) ? bench_y(row, row->cells->median_ns) : bench_x(row);
    point.y = in_cases(row) ? place : bench_y(row, row->cells->median_ns);
    return point;
}

/* The rows of a panel begin with a device's: rows[at] to rows[end - 1] are one line. */
static chart_line line_of(const bench_row *row) {
    const bool roofed =
        row->kind->form == BENCH_ROOFLINE && row->cells->peak_flops_per_s > 0 && row->cells->peak_bytes_per_s > 0;
    return (chart_line){ .name = row->device, .style = row->style, .made_up = row->synthetic,
                         .joined = row->kind->form == BENCH_OVER_SIZE || row->kind->form == BENCH_RATE,
                         .roof = roofed ? row->cells->peak_flops_per_s : (double)NAN,
                         .slope = roofed ? row->cells->peak_bytes_per_s : (double)NAN };
}

/* Of a roofline's points: each operation is named once, at its best. */
static void name_points(chart_point *points, size_t count) {
    if (count > MOST_LABELLED) return;
    for (size_t i = 0; i < count; i++) {
        const char *op = ((const bench_row *)points[i].source)->cells->op;
        bool best = true;
        for (size_t k = 0; k < count && best; k++)
            best = k == i || strcmp(op, ((const bench_row *)points[k].source)->cells->op) != 0 ||
                   points[k].y < points[i].y || (points[k].y <= points[i].y && k > i);
        points[i].label = best ? op : NULL;
    }
}

static void gather_lines(const bench_set *set, size_t begin, size_t end, panel *p) {
    chart_point *next = p->points;
    for (size_t at = begin, stop; at < end; at = stop) {
        chart_line line = line_of(&set->rows[at]);
        line.points = next;
        for (stop = at; stop < end && bench_same_line(&set->rows[at], &set->rows[stop]); stop++)
            if (drawable(&set->rows[stop])) next[line.count++] = point_of(&set->rows[stop], 0);
        if (line.count == 0) continue;
        if (p->chart.line_count == CHART_LINES) {
            p->cut = true;
            return;
        }
        if (set->rows[at].kind->form == BENCH_ROOFLINE) name_points(next, line.count);
        next += line.count;
        p->lines[p->chart.line_count++] = line;
    }
}

/* ---- cases ---- */

void bench_case_name(const bench_row *row, bool sized, text *to) {
    text_add(to, "%s", row->cells->op);
    if (sized && *row->cells->size) text_add(to, " %s", row->cells->size);
    if (row->kind->form == BENCH_CASES && row->cells->submissions > 1)
        text_add(to, " in %.0f", row->cells->submissions);
    if (row->by_threads) text_add(to, " threads=%.0f", row->cells->threads);
}

bool bench_needs_sizes(const bench_set *set, size_t begin, size_t end) {
    for (size_t i = begin; i < end && i < begin + MOST_LOOKED_AT; i++)
        for (size_t k = begin; k < i; k++) {
            const bench_row *a = set->by_work[i], *b = set->by_work[k];
            if (strcmp(a->cells->op, b->cells->op) == 0 && strcmp(a->cells->size, b->cells->size) != 0) return true;
        }
    return false;
}

static void gather_cases(const bench_set *set, size_t begin, size_t end, panel *p) {
    const bool sized = bench_needs_sizes(set, begin, end);
    size_t stops[MOST_CASES], count = 0;
    for (size_t at = begin; at < end; count++) {
        size_t stop = at + 1;
        while (stop < end && bench_same_work(set->by_work[at], set->by_work[stop])) stop++;
        if ((p->cut = count == MOST_CASES)) break;
        text name = { 0 };
        bench_case_name(set->by_work[at], sized, &name);
        snprintf(p->case_names[count], CASE_NAME, "%s", name.data ? name.data : "");
        text_free(&name);
        p->cases[count] = p->case_names[count];
        stops[count] = at = stop;
    }
    chart_point *next = p->points;
    for (size_t at = begin, stop; at < end; at = stop) {
        chart_line line = line_of(&set->rows[at]);
        line.points = next;
        stop = at + 1;
        while (stop < end && bench_same_line(&set->rows[at], &set->rows[stop])) stop++;
        if (p->chart.line_count == CHART_LINES) {
            p->cut = true;
            break;
        }
        for (size_t i = 0, k = begin; i < count; k = stops[i++])
            for (; k < stops[i]; k++)
                if (bench_same_line(set->by_work[k], &set->rows[at]) && drawable(set->by_work[k]))
                    next[line.count++] = point_of(set->by_work[k], (double)i);
        if (line.count == 0) continue;
        next += line.count;
        p->lines[p->chart.line_count++] = line;
    }
    p->chart.rows = p->cases;
    p->chart.row_count = count;
}

/* ---- panels ---- */

/* Where devices overtake the CPU; where they do so from the first size on, there is no crossing to show. */
static void mark_crossings(const bench_set *set, size_t begin, size_t end, panel *p) {
    for (size_t i = 0; i < p->chart.line_count; i++) {
        const bench_row *row = p->lines[i].points[0].source;
        if (bench_is_cpu(row) || row->synthetic) continue;
        const bench_crossing crossing = bench_find_crossing(set, begin, end, row);
        if (!crossing.from || crossing.always) continue;
        char *name = p->mark_names[p->chart.mark_count], number[CHART_NUMBER];
        snprintf(name, MARK_NAME, "%.24s from %s", row->device,
                 chart_number(crossing.from->cells->elements, CHART_COUNT, 3, number));
        size_t at = p->chart.mark_count++;
        /* from the left to the right */
        for (; at > 0 && p->marks[at - 1].x > crossing.from->cells->elements; at--) p->marks[at] = p->marks[at - 1];
        p->marks[at] = (chart_mark){ crossing.from->cells->elements, row->style, name };
    }
}

static void draw_panel(const bench_set *set, size_t begin, size_t end, const chart *range, panel *p, text *to) {
    const bench_row *row = &set->rows[begin];
    text name = { 0 };
    *p = (panel){ .chart = *range, .points = p->points };
    p->chart.x_title = axes[row->kind->form].x_title;
    p->chart.y_title = axes[row->kind->form].y_title;
    p->chart.x_unit = axes[row->kind->form].x_unit;
    p->chart.y_unit = axes[row->kind->form].y_unit;
    p->chart.lines = p->lines;
    p->chart.marks = p->marks;
    bench_panel_name(set, row, &name);
    p->chart.title = name.data ? name.data : "";
    if (in_cases(row)) gather_cases(set, begin, end, p);
    else gather_lines(set, begin, end, p);
    if (row->kind->form == BENCH_OVER_SIZE) mark_crossings(set, begin, end, p);
    text_add(to, "<div class=\"panel\">");
    if (name.data) {
        text_add(to, "<h4>");
        text_add_html(to, name.data, 80);
        text_add(to, "</h4>");
    }
    if (in_cases(row)) {
        text_add(to, "<p class=\"keys\">");
        for (size_t i = 0; i < p->chart.line_count; i++) {
            text_add(to, "<span>");
            chart_draw_key(p->lines[i].style, p->lines[i].made_up, to);
            text_add_html(to, p->lines[i].name, 40);
            text_add(to, "%s</span> ", p->lines[i].made_up ? " (synthetic)" : "");
        }
        text_add(to, "</p>");
    }
    chart_draw(&p->chart, to);
    if (p->cut) text_add(to, "<p class=\"note\">Not everything fits in the chart; the table has it all.</p>");
    text_add(to, "</div>\n");
    to->failed = to->failed || name.failed;
    text_free(&name);
}

static void explain_signs(const bench_set *set, size_t begin, size_t end, text *to) {
    bool doubtful = false, synthetic = false;
    for (size_t i = begin; i < end; i++) {
        doubtful = doubtful || set->rows[i].doubtful;
        synthetic = synthetic || set->rows[i].synthetic;
    }
    if (!doubtful && !synthetic) return;
    text_add(to, "<p class=\"note\">");
    if (doubtful)
        text_add(to, "<b class=\"sign ring\"></b> ringed: the clock moved or was held down while this was measured. ");
    if (synthetic)
        text_add(to, "<b class=\"sign dash\"></b> dashed and hollow: synthetic, made up and not measured; such rows "
                     "never win.");
    text_add(to, "</p>\n");
}

void bench_figure_draw(const bench_set *set, size_t begin, size_t end, text *to) {
    panel *p = calloc(1, sizeof *p);
    chart_point *points = calloc(end - begin + 1, sizeof *points);
    chart range;
    if (!p || !points) to->failed = true;
    else if (!range_of(set, begin, end, &range))
        text_add(to, "<p class=\"note\">These rows say too little for a chart; the table has them.</p>\n");
    else {
        p->points = points;
        text_add(to, "<div class=\"panels\">\n");
        for (size_t at = begin, stop; at < end; at = stop) {
            for (stop = at + 1; stop < end && bench_same_panel(&set->rows[at], &set->rows[stop]);) stop++;
            draw_panel(set, at, stop, &range, p, to);
        }
        text_add(to, "</div>\n");
        explain_signs(set, begin, end, to);
    }
    free(points);
    free(p);
}
