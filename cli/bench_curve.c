/* bench_curve.c: how the tokens a second of language models change over one thing while all others stay: the tokens of
 * a prompt, how many tokens a sequence holds, how many sequences are answered, how many threads there are. A curve is
 * drawn where it was measured at two places or more. */
#include "cli/bench_figure.h"
#include "cli/chart.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CURVE_NAME = 96, MOST_ROWS = 2000 };

/* What a row was measured at; `op` is "prompt" or "answer". */
typedef enum place_axis { TOKENS, DEPTH, SEQUENCES, THREADS, PLACE_AXES } place_axis;
typedef struct place {
    const bench_row *row;
    double at[PLACE_AXES];
} place;

static const struct { const char *title, *x_title; } axes[PLACE_AXES] = {
    [TOKENS] = { "over the prompt", "tokens of the prompt" },
    [DEPTH] = { "over the context", "tokens that the sequence holds in the end" },
    [SEQUENCES] = { "over sequences", "sequences, answered side by side" },
    [THREADS] = { "over threads", "threads of the CPU" },
};

typedef struct curves {
    chart       chart;
    place      *places;       /* of the panel */
    bool       *used;
    size_t      count;
    chart_point *points;      /* of all lines, one after the other */
    chart_line  lines[CHART_LINES];
    char        names[CHART_LINES][CURVE_NAME];
} curves;

static bool is_prompt(const place *p) { return strcmp(p->row->cells->op, "prompt") == 0; }

/* False: the row is no point of a curve. */
static bool read_place(const bench_row *row, place *out) {
    const table_row *cells = row->cells;
    *out = (place){ .row = row, .at = { [SEQUENCES] = 1, [THREADS] = cells->threads } };
    if (strcmp(cells->op, "prompt") != 0 && strcmp(cells->op, "answer") != 0) return false;
    const int found = sscanf(cells->size, "tokens=%lf depth=%lf sequences=%lf", &out->at[TOKENS], &out->at[DEPTH],
                             &out->at[SEQUENCES]);
    return found >= 2 && bench_y(row, cells->median_ns) > 0;
}

static double x_of(const place *p, place_axis axis) {
    return axis == DEPTH ? p->at[DEPTH] + p->at[TOKENS] : p->at[axis];
}

/* May the row be a point over this axis? */
static bool belongs(const place *p, place_axis axis) {
    if (axis == TOKENS && !is_prompt(p)) return false;
    if (axis == SEQUENCES && is_prompt(p)) return false;
    if (axis == THREADS && !bench_is_cpu(p->row)) return false;
    return x_of(p, axis) > 0;
}

/* Alike in all but what the axis shows. */
static bool same_curve(const place *a, const place *b, place_axis axis) {
    if (!bench_same_line(a->row, b->row) || is_prompt(a) != is_prompt(b)) return false;
    for (int i = 0; i < PLACE_AXES; i++)
        if (i != (int)axis && a->at[i] != b->at[i] && !(isnan(a->at[i]) && isnan(b->at[i]))) return false;
    return true;
}

/* "tg128@4096 x8 t2", without what the axis shows; the device where there are several. */
static void name_curve(const curves *c, const place *p, place_axis axis, char out[CURVE_NAME]) {
    int at = snprintf(out, CURVE_NAME, "%s", is_prompt(p) ? "pp" : "tg");
    bool several = false;
    for (size_t i = 0; i < c->count && !several; i++) several = !bench_same_line(c->places[i].row, c->places[0].row);
    if (axis != TOKENS) at += snprintf(out + at, CURVE_NAME - (size_t)at, "%.0f", p->at[TOKENS]);
    if (axis != DEPTH && p->at[DEPTH] > 0) at += snprintf(out + at, CURVE_NAME - (size_t)at, "@%.0f", p->at[DEPTH]);
    if (axis != SEQUENCES && p->at[SEQUENCES] > 1)
        at += snprintf(out + at, CURVE_NAME - (size_t)at, " x%.0f", p->at[SEQUENCES]);
    if (axis != THREADS && p->row->by_threads)
        at += snprintf(out + at, CURVE_NAME - (size_t)at, " t%.0f", p->at[THREADS]);
    if (several) snprintf(out + at, CURVE_NAME - (size_t)at, " %.40s", p->row->device);
}

static void widen(double value, double *least, double *most) {
    if (!(value > 0)) return;
    if (!(*least <= value)) *least = value;
    if (!(*most >= value)) *most = value;
}

/* The curve that begins with places[first], into `points`; how many points it has. */
static size_t gather(curves *c, size_t first, place_axis axis, chart_point *points) {
    size_t count = 0;
    for (size_t i = first; i < c->count; i++) {
        const place *p = &c->places[i];
        if (c->used[i] || !belongs(p, axis) || !same_curve(&c->places[first], p, axis)) continue;
        c->used[i] = true;
        chart_point point = { .x = x_of(p, axis), .y = bench_y(p->row, p->row->cells->median_ns),
                              .flagged = p->row->doubtful, .source = p->row };
        bench_bar_of(p->row, &point.low, &point.high);
        size_t at = count++;
        for (; at > 0 && points[at - 1].x > point.x; at--) points[at] = points[at - 1];
        points[at] = point;
    }
    return count;
}

static void draw_axis(const bench_set *set, curves *c, place_axis axis, text *to) {
    chart_point *next = c->points;
    chart *const drawn = &c->chart;
    double ends[4] = { NAN, NAN, NAN, NAN };
    bool cut = false;
    *drawn = (chart){ .title = axes[axis].title, .x_title = axes[axis].x_title,
                      .y_title = "Tokens per second (more is better)", .x_unit = CHART_COUNT, .y_unit = CHART_COUNT,
                      .lines = c->lines, .describe = bench_describe };
    memset(c->used, 0, c->count * sizeof *c->used);
    for (size_t i = 0; i < c->count; i++) {
        if (c->used[i] || !belongs(&c->places[i], axis)) continue;
        const size_t count = gather(c, i, axis, next);
        if (count < 2) continue;
        if ((cut = drawn->line_count == CHART_LINES)) break;
        for (size_t k = 0; k < count; k++) {
            widen(next[k].x, &ends[0], &ends[1]);
            widen(next[k].y, &ends[2], &ends[3]);
            widen(next[k].low, &ends[2], &ends[3]);
            widen(next[k].high, &ends[2], &ends[3]);
        }
        const bench_row *row = c->places[i].row;
        char *name = c->names[drawn->line_count];
        name_curve(c, &c->places[i], axis, name);
        c->lines[drawn->line_count++] = (chart_line){ .name = name, .style = row->style, .made_up = row->synthetic,
                                                      .joined = true, .roof = NAN, .slope = NAN, .points = next,
                                                      .count = count };
        next += count;
    }
    if (drawn->line_count == 0) return;
    drawn->x_least = ends[0], drawn->x_most = ends[1], drawn->y_least = ends[2], drawn->y_most = ends[3];
    text title = { 0 };
    text_add(&title, "%s", axes[axis].title);
    if (bench_machines_differ(set)) text_add(&title, ", %s", bench_machine(set, c->places[0].row));
    text_add(to, "<div class=\"panel\"><h4>");
    text_add_html(to, title.data ? title.data : "", 80);
    text_add(to, "</h4>");
    chart_draw(drawn, to);
    if (cut) text_add(to, "<p class=\"note\">Not everything fits in the chart; the table has it all.</p>");
    text_add(to, "</div>\n");
    to->failed = to->failed || title.failed;
    text_free(&title);
}

void bench_curves_draw(const bench_set *set, size_t begin, size_t end, text *to) {
    curves *c = calloc(1, sizeof *c);
    const size_t most = end - begin < MOST_ROWS ? end - begin : MOST_ROWS;
    if (c) {
        c->places = calloc(most + 1, sizeof *c->places);
        c->used = calloc(most + 1, sizeof *c->used);
        c->points = calloc(most + 1, sizeof *c->points);
    }
    if (!c || !c->places || !c->used || !c->points) to->failed = true;
    text_add(to, "<div class=\"panels\">\n");
    for (size_t at = begin, stop; !to->failed && at < end; at = stop) {
        c->count = 0;
        for (stop = at; stop < end && bench_same_panel(&set->rows[at], &set->rows[stop]); stop++)
            if (c->count < most && read_place(&set->rows[stop], &c->places[c->count])) c->count++;
        for (int axis = 0; axis < PLACE_AXES && c->count; axis++) draw_axis(set, c, (place_axis)axis, to);
    }
    text_add(to, "</div>\n");
    if (c) {
        free(c->places);
        free(c->used);
        free(c->points);
    }
    free(c);
}
