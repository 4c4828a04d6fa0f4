/* chart_scale.h: the arithmetic of a chart, without its picture: where values go, which ticks an axis has, how numbers
 * are written beside it, and how labels keep off each other. Pure functions; positions are in units of the picture. */
#ifndef CLI_CHART_SCALE_H
#define CLI_CHART_SCALE_H

#include <stdbool.h>
#include <stddef.h>

/* A logarithmic axis: values low..high, both above zero, on positions from..to (which may run backwards). */
typedef struct chart_scale {
    double low, high, from, to;
} chart_scale;

/* The scale that shows values least..most with a little room at both ends. Where they are as good as one value, a
 * factor of two is shown to each side. */
chart_scale chart_scale_of(double least, double most, double from, double to);
/* A value beyond an end is placed at that end. */
double chart_place(const chart_scale *scale, double value);

/* What an axis counts; it decides the ticks and how they are written. */
typedef enum chart_unit {
    CHART_COUNT,   /* 1, 10, 1k, 1M: of elements, or of anything per second */
    CHART_BYTES,   /* 1 KiB, 1 MiB: steps are powers of two */
    CHART_TIME,    /* nanoseconds in: 10 ns, 1 us, 1 ms */
} chart_unit;

enum { CHART_TICKS = 32, CHART_NUMBER = 32 };

/* At most `most` (and CHART_TICKS) round values within the scale, rising; returns how many. */
size_t chart_ticks(const chart_scale *scale, chart_unit unit, size_t most, double out_ticks[CHART_TICKS]);
/* The value in at most `digits` digits with its unit: "1.5k", "64 KiB", "2.5 ms". Returns `out`. */
char *chart_number(double value, chart_unit unit, int digits, char out[CHART_NUMBER]);

/* Moves `count` rising positions (at most 64) apart, by as little as possible. Afterwards neighbours are at least `gap`
 * apart, all are within low..high, and their order is the same. Where there is too little room, the gaps are
 * smaller. */
void chart_spread(double *positions, size_t count, double gap, double low, double high);

#endif
