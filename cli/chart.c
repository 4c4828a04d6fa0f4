/* chart.c: draws one panel. What is measured first decides what room is left: the labels of the y axis and of the lines
 * take theirs, the plot has the rest. */
#include "cli/chart.h"
#include <math.h>
#include <string.h>

/* Of a 12 unit sans-serif text: a digit of DejaVu Sans, the widest one in common use, so that estimated labels do not
 * touch. */
#define CHARACTER 7.7
enum { HEIGHT = 290, ABOVE = 36, BELOW = 44, ROW_HEIGHT = 40, ROW_LINE = 26, LANE = 6, LONGEST_LABEL = 15,
       LONGEST_ROW = 52, LONGEST_POINT = 18, LABEL_GAP = 15, BOXES = 256 };

typedef struct box {
    double x0, y0, x1, y1;
} box;

typedef struct panel {
    const chart *chart;
    text        *to;
    double       height;
    chart_scale  x, y;      /* y is not used on a chart of rows */
    box          plot;
    box          taken[BOXES]; /* where no label may go */
    size_t       taken_count;
    const chart_point *named[BOXES]; /* points that have their label */
    size_t       named_count;
} panel;

/* ---- markers ---- */

/* Four shapes and six colours: the shapes shift by one each time the colours begin again, so that 24 styles differ. */
static void add_marker(text *to, unsigned style, double x, double y, double r) {
    switch ((style + style / CHART_COLOURS) % 4) {
    case 0: text_add(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", x, y, r); break;
    case 1:
        text_add(to, "<path d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"/>", x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, -1.8 * r);
        break;
    case 2:
        text_add(to, "<path d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", x, y - 1.25 * r, 1.2 * r, 2.1 * r, -2.4 * r);
        break;
    default:
        text_add(to, "<path d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"/>", x, y - 1.3 * r, 1.3 * r, 1.3 * r,
                 -1.3 * r, 1.3 * r, -1.3 * r, -1.3 * r);
        break;
    }
}

static void open_style(text *to, const char *what, unsigned style, bool made_up) {
    text_add(to, "<g class=\"%s s%u%s\">", what, style % CHART_COLOURS, made_up ? " made-up" : "");
}

void chart_draw_key(unsigned style, bool made_up, text *to) {
    text_add(to, "<svg class=\"key\" viewBox=\"0 0 22 12\" aria-hidden=\"true\">");
    open_style(to, "line", style, made_up);
    text_add(to, "<path class=\"stroke\" d=\"M1 6H21\"/><g class=\"dots\">");
    add_marker(to, style, 11, 6, 4);
    text_add(to, "</g></g></svg>");
}

/* ---- room for labels ---- */

static bool touches(const box *a, const box *b) {
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static void take(panel *p, box place) {
    if (p->taken_count < BOXES) p->taken[p->taken_count++] = place;
}

/* Takes the place if it is in the plot and free. */
static bool claim(panel *p, box place) {
    if (place.x0 < p->plot.x0 || place.x1 > p->plot.x1 || place.y0 < p->plot.y0 || place.y1 > p->plot.y1 ||
        p->taken_count >= BOXES)
        return false;
    for (size_t i = 0; i < p->taken_count; i++)
        if (touches(&place, &p->taken[i])) return false;
    take(p, place);
    return true;
}

static double width_of(const char *name, size_t most) {
    const size_t characters = text_characters(name);
    return CHARACTER * (double)(characters < most ? characters : most);
}

/* ---- places ---- */

static double x_at(const panel *p, double value) { return chart_place(&p->x, value); }

/* On a chart of rows each line has a lane of its own, so that error bars do not hide each other. */
static double y_at(const panel *p, const chart_line *line, const chart_point *point) {
    if (!p->chart->rows) return chart_place(&p->y, point->y);
    const double lines = (double)p->chart->line_count,
                 lane = lines > 1 ? fmin(LANE, (ROW_HEIGHT - ROW_LINE) / (lines - 1)) : 0;
    return p->plot.y0 + point->y * ROW_HEIGHT + ROW_LINE + lane * ((double)(line - p->chart->lines) - (lines - 1) / 2);
}

/* The widest label of the y axis. */
static double left_room(const chart *c, double low, double high) {
    double ticks[CHART_TICKS], room = 0;
    char number[CHART_NUMBER];
    if (c->rows) return 24; /* half a tick's label */
    const chart_scale scale = chart_scale_of(low, high, 0, 1);
    const size_t count = chart_ticks(&scale, c->y_unit, 8, ticks);
    for (size_t i = 0; i < count; i++)
        room = fmax(room, width_of(chart_number(ticks[i], c->y_unit, 4, number), CHART_NUMBER));
    return room + 10;
}

static double right_room(const chart *c) {
    double room = 0;
    if (c->rows) return 24; /* half a tick's label */
    for (size_t i = 0; i < c->line_count; i++) {
        room = fmax(room, width_of(c->lines[i].name, LONGEST_LABEL));
        if (c->lines[i].made_up) room = fmax(room, width_of("synthetic", LONGEST_LABEL));
    }
    return room > 0 ? room + 20 : 12;
}

static panel lay_out(const chart *c, text *to) {
    panel p = { .chart = c, .to = to };
    const double above = c->rows ? 4 : ABOVE;
    p.height = c->rows ? above + BELOW + (double)c->row_count * ROW_HEIGHT : HEIGHT;
    p.plot = (box){ left_room(c, c->y_least, c->y_most), above, CHART_WIDTH - right_room(c), p.height - BELOW };
    p.x = chart_scale_of(c->x_least, c->x_most, p.plot.x0, p.plot.x1);
    if (!c->rows) p.y = chart_scale_of(c->y_least, c->y_most, p.plot.y1, p.plot.y0);
    return p;
}

/* ---- axes ---- */

static void draw_x_axis(panel *p) {
    double ticks[CHART_TICKS], widest = 0;
    char number[CHART_NUMBER];
    size_t count = 0;
    /* As many ticks as have room beside each other. */
    for (size_t most = 10; most >= 2; most--) {
        count = chart_ticks(&p->x, p->chart->x_unit, most, ticks);
        widest = 0;
        for (size_t i = 0; i < count; i++)
            widest = fmax(widest, width_of(chart_number(ticks[i], p->chart->x_unit, 4, number), CHART_NUMBER));
        bool room = true;
        for (size_t i = 1; i < count; i++) room = room && x_at(p, ticks[i]) - x_at(p, ticks[i - 1]) > widest + 6;
        if (room) break;
    }
    text_add(p->to, "<path class=\"grid\" d=\"");
    for (size_t i = 0; i < count; i++)
        text_add(p->to, "M%.1f %.1fV%.1f", x_at(p, ticks[i]), p->plot.y0, p->plot.y1 + 4);
    text_add(p->to, "\"/>");
    for (size_t i = 0; i < count; i++)
        text_add(p->to, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                 x_at(p, ticks[i]), p->plot.y1 + 17, chart_number(ticks[i], p->chart->x_unit, 4, number));
    text_add(p->to, "<text class=\"title\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
             (p->plot.x0 + p->plot.x1) / 2, p->height - 8);
    text_add_html(p->to, p->chart->x_title, 60);
    text_add(p->to, "</text>");
}

static void draw_y_axis(panel *p) {
    double ticks[CHART_TICKS];
    char number[CHART_NUMBER];
    const size_t count = p->chart->rows ? 0 : chart_ticks(&p->y, p->chart->y_unit, 8, ticks);
    text_add(p->to, "<path class=\"grid\" d=\"");
    for (size_t i = 0; i < count; i++)
        text_add(p->to, "M%.1f %.1fH%.1f", p->plot.x0 - 4, chart_place(&p->y, ticks[i]), p->plot.x1);
    for (size_t i = 0; i < p->chart->row_count; i++)
        text_add(p->to, "M%.1f %.1fH%.1f", p->plot.x0, p->plot.y0 + (double)i * ROW_HEIGHT + ROW_LINE, p->plot.x1);
    text_add(p->to, "\"/><path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", p->plot.x0, p->plot.y1, p->plot.x1);
    for (size_t i = 0; i < count; i++)
        text_add(p->to, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>", p->plot.x0 - 7,
                 chart_place(&p->y, ticks[i]) + 4,
                 chart_number(ticks[i], p->chart->y_unit, 4, number));
    for (size_t i = 0; i < p->chart->row_count; i++) {
        /* above its line, so that long names have room */
        text_add(p->to, "<text class=\"label\" x=\"0\" y=\"%.1f\">", p->plot.y0 + (double)i * ROW_HEIGHT + 12);
        text_add_html(p->to, p->chart->rows[i], LONGEST_ROW);
        text_add(p->to, "</text>");
    }
    if (p->chart->rows) return;
    text_add(p->to, "<text class=\"title\" x=\"0\" y=\"13\">");
    text_add_html(p->to, p->chart->y_title, 56);
    text_add(p->to, "</text>");
}

/* Vertical lines; of labels that would overlap, the later ones are left out: the table under the chart names each. */
static void draw_marks(panel *p) {
    double free_from = p->plot.x0 - 20;
    for (size_t i = 0; i < p->chart->mark_count; i++) {
        const chart_mark *mark = &p->chart->marks[i];
        const double x = x_at(p, mark->x), half = width_of(mark->label, 40) / 2;
        if (x < p->plot.x0 || x > p->plot.x1) continue;
        open_style(p->to, "mark", mark->style, false);
        text_add(p->to, "<path d=\"M%.1f %.1fV%.1f\"/>", x, p->plot.y0, p->plot.y1);
        const double middle = fmin(fmax(x, half), CHART_WIDTH - half);
        if (middle - half > free_from) {
            text_add(p->to, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", middle,
                     p->plot.y0 - 5);
            text_add_html(p->to, mark->label, 40);
            text_add(p->to, "</text>");
            free_from = middle + half + 4;
        }
        text_add(p->to, "</g>");
    }
}

/* ---- lines ---- */

static bool is_roofed(const panel *p, const chart_line *line) {
    return !p->chart->rows && line->roof > 0 && line->slope > 0;
}

static void draw_roof(panel *p, const chart_line *line) {
    /* The slope from where it enters the plot to where it meets the roof, then the roof to the plot's end. */
    const double ridge = line->roof / line->slope, first = fmax(p->x.low, p->y.low / line->slope);
    text_add(p->to, "<path class=\"roof\" d=\"");
    if (ridge <= first) text_add(p->to, "M%.1f %.1fH%.1f", p->plot.x0, chart_place(&p->y, line->roof), p->plot.x1);
    else {
        const double bend = fmin(ridge, p->x.high);
        text_add(p->to, "M%.1f %.1fL%.1f %.1f", x_at(p, first), chart_place(&p->y, line->slope * first), x_at(p, bend),
                 chart_place(&p->y, line->slope * bend));
        if (ridge < p->x.high) text_add(p->to, "H%.1f", p->plot.x1);
    }
    text_add(p->to, "\"/>");
}

static void draw_bars(panel *p, const chart_line *line) {
    bool any = false;
    for (size_t i = 0; i < line->count; i++) {
        const chart_point *point = &line->points[i];
        if (isnan(point->low) || isnan(point->high)) continue;
        const double x = x_at(p, point->x), y = y_at(p, line, point);
        if (!any) text_add(p->to, "<path class=\"bars\" d=\"");
        any = true;
        if (p->chart->rows) {
            const double low = x_at(p, point->low), high = x_at(p, point->high);
            text_add(p->to, "M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6", low, y, high, low, y - 3, high, y - 3);
        } else {
            const double low = chart_place(&p->y, point->low), high = chart_place(&p->y, point->high);
            text_add(p->to, "M%.1f %.1fV%.1fM%.1f %.1fh4M%.1f %.1fh4", x, low, high, x - 2, low, x - 2, high);
        }
    }
    if (any) text_add(p->to, "\"/>");
}

static void draw_point(panel *p, const chart_line *line, const chart_point *point) {
    const double x = x_at(p, point->x), y = y_at(p, line, point);
    text_add(p->to, "<g>");
    if (p->chart->describe) {
        text tip = { 0 };
        p->chart->describe(point->source, &tip);
        text_add(p->to, "<title>");
        if (tip.data) text_add_html(p->to, tip.data, 400);
        text_add(p->to, "</title>");
        if (tip.failed) p->to->failed = true;
        text_free(&tip);
    }
    if (point->flagged) text_add(p->to, "<circle class=\"flag\" cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\"/>", x, y);
    add_marker(p->to, line->style, x, y, line->count > 40 ? 2.2 : 3.2);
    text_add(p->to, "<circle class=\"hit\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\"/></g>", x, y);
}

static void draw_line(panel *p, const chart_line *line) {
    open_style(p->to, "line", line->style, line->made_up);
    if (is_roofed(p, line)) draw_roof(p, line);
    if (line->joined && line->count > 1) {
        text_add(p->to, "<path class=\"stroke\" d=\"");
        for (size_t i = 0; i < line->count; i++)
            text_add(p->to, "%s%.1f %.1f", i ? "L" : "M", x_at(p, line->points[i].x), y_at(p, line, &line->points[i]));
        text_add(p->to, "\"/>");
    }
    draw_bars(p, line);
    text_add(p->to, "<g class=\"dots\">");
    for (size_t i = 0; i < line->count; i++) draw_point(p, line, &line->points[i]);
    text_add(p->to, "</g></g>");
}

/* ---- labels ---- */

/* Beside each line's end, its own colour leading to its name. */
static void draw_line_names(panel *p) {
    double places[CHART_LINES], ends[CHART_LINES];
    size_t order[CHART_LINES], count = 0;
    double gap = LABEL_GAP;
    for (size_t i = 0; i < p->chart->line_count; i++) {
        const chart_line *line = &p->chart->lines[i];
        const bool roofed = is_roofed(p, line);
        if (line->count == 0 && !roofed) continue;
        const double end = roofed ? chart_place(&p->y, fmin(line->roof, line->slope * p->x.high))
                           : y_at(p, line, &line->points[line->count - 1]);
        size_t at = count++;
        for (; at > 0 && ends[at - 1] > end; at--) { /* in the order of their ends */
            ends[at] = ends[at - 1];
            order[at] = order[at - 1];
        }
        ends[at] = end;
        order[at] = i;
        if (line->made_up) gap = LABEL_GAP + 12;
    }
    memcpy(places, ends, count * sizeof *places);
    chart_spread(places, count, gap, p->plot.y0 + 2, p->plot.y1 - 2);
    for (size_t k = 0; k < count; k++) {
        const chart_line *line = &p->chart->lines[order[k]];
        const bool roofed = is_roofed(p, line);
        const double from = roofed ? p->plot.x1 : x_at(p, line->points[line->count - 1].x);
        open_style(p->to, "line", line->style, line->made_up);
        if (!p->chart->rows)
            text_add(p->to, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", from + (roofed ? 0 : 5), ends[k],
                     p->plot.x1 + 8, places[k]);
        text_add(p->to, "<g class=\"dots\">");
        add_marker(p->to, line->style, p->plot.x1 + 11, places[k], 3.2);
        text_add(p->to, "</g><text class=\"label\" x=\"%.1f\" y=\"%.1f\">", p->plot.x1 + 18, places[k] + 4);
        text_add_html(p->to, line->name, LONGEST_LABEL);
        if (line->made_up)
            text_add(p->to, "<tspan class=\"tick\" x=\"%.1f\" dy=\"12\">synthetic</tspan>", p->plot.x1 + 18);
        text_add(p->to, "</text></g>");
    }
}

/* Whether the same name stands so near already that it says enough. */
static bool is_named_near(const panel *p, const chart_point *point) {
    for (size_t i = 0; i < p->named_count; i++)
        if (strcmp(p->named[i]->label, point->label) == 0 &&
            hypot(x_at(p, p->named[i]->x) - x_at(p, point->x),
                  chart_place(&p->y, p->named[i]->y) - chart_place(&p->y, point->y)) < 40)
            return true;
    return false;
}

/* Beside the point, above or below it, or at one of its corners: the first place that is free. */
static void draw_point_label(panel *p, const chart_point *point) {
    static const struct { double dx, dy; const char *anchor; double share; } places[] = {
        { 7, 0, "start", 0 }, { -7, 0, "end", 1 }, { 0, -12, "middle", 0.5 }, { 0, 13, "middle", 0.5 },
        { 5, 11, "start", 0 }, { 5, -11, "start", 0 }, { -5, -11, "end", 1 }, { -5, 11, "end", 1 },
    };
    const double x = x_at(p, point->x), y = chart_place(&p->y, point->y), width = width_of(point->label, LONGEST_POINT);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const double left = x + places[i].dx - places[i].share * width, middle = y + places[i].dy;
        if (!claim(p, (box){ left, middle - 6.5, left + width, middle + 6.5 })) continue;
        text_add(p->to, "<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", places[i].anchor,
                 x + places[i].dx, middle + 4);
        text_add_html(p->to, point->label, LONGEST_POINT);
        text_add(p->to, "</text>");
        p->named[p->named_count++] = point; /* not more than places were taken */
        return;
    }
}

static void draw_point_labels(panel *p) {
    for (size_t i = 0; i < p->chart->line_count; i++)
        for (size_t k = 0; k < p->chart->lines[i].count; k++) {
            const double x = x_at(p, p->chart->lines[i].points[k].x),
                         y = chart_place(&p->y, p->chart->lines[i].points[k].y);
            take(p, (box){ x - 4, y - 4, x + 4, y + 4 });
        }
    for (size_t i = 0; i < p->chart->line_count; i++)
        for (size_t k = 0; k < p->chart->lines[i].count; k++)
            if (p->chart->lines[i].points[k].label && !is_named_near(p, &p->chart->lines[i].points[k]))
                draw_point_label(p, &p->chart->lines[i].points[k]);
}

void chart_draw(const chart *c, text *to) {
    panel p = lay_out(c, to);
    text_add(to, "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\" role=\"img\"><title>", CHART_WIDTH, p.height);
    text_add_html(to, c->title, 200);
    text_add(to, "</title>");
    draw_x_axis(&p);
    draw_y_axis(&p);
    draw_marks(&p);
    for (size_t i = 0; i < c->line_count; i++) draw_line(&p, &c->lines[i]);
    if (!c->rows) {
        draw_line_names(&p);
        draw_point_labels(&p);
    }
    text_add(to, "</svg>\n");
}
