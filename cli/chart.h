/* chart.h: one panel of a chart as SVG text: lines with error bars on two logarithmic axes, or dots on rows with names.
 * Each line is labelled where it ends, each point tells its numbers when pointed at. Colours and fonts are the page's:
 * classes s0..s5 for the lines, and grid, tick, title, label, made-up, flag, mark, roof, hit. */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "cli/chart_scale.h"
#include "cli/text.h"

enum { CHART_WIDTH = 400, CHART_COLOURS = 6, CHART_LINES = 12 /* in one panel; more cannot be told apart */ };

typedef struct chart_point {
    double x, y;          /* above zero; on a chart of rows x is the value and y the row's index */
    double low, high;     /* ends of the error bar, or NaN */
    bool   flagged;       /* ringed: something is doubtful about it */
    const char *label;    /* beside the point where there is room, or NULL */
    const void *source;   /* what `describe` is asked about */
} chart_point;

typedef struct chart_line {
    const char *name;
    unsigned    style;    /* which colour and marker; the same in every panel for the same thing */
    bool        made_up;  /* dashed, hollow and named synthetic: not measured */
    bool        joined;   /* points are joined by a line, in their order */
    double      roof, slope; /* of a roofline: y is at most the lesser of `roof` and slope * x; NaN: none */
    const chart_point *points;
    size_t      count;
} chart_line;

typedef struct chart_mark {
    double      x;        /* a vertical line there */
    unsigned    style;
    const char *label;
} chart_mark;

typedef struct chart {
    const char *title, *x_title, *y_title;
    chart_unit  x_unit, y_unit;
    double      x_least, x_most, y_least, y_most; /* the same in all panels that are compared */
    const char *const *rows; /* names of the rows, from the top: a chart of rows; NULL: two axes */
    size_t      row_count;
    const chart_line *lines;
    size_t      line_count;
    const chart_mark *marks;
    size_t      mark_count;
    void (*describe)(const void *source, text *to); /* plain text of what is seen at a point; it is escaped here */
} chart;

void chart_draw(const chart *c, text *to);
/* The marker of a style by itself, for a key or a table. */
void chart_draw_key(unsigned style, bool made_up, text *to);

#endif
