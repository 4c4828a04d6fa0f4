/* chart_scale.c: the arithmetic of a chart. */
#include "cli/chart_scale.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

chart_scale chart_scale_of(double least, double most, double from, double to) {
    const double span = log(most) - log(least), room = span < 0.01 ? log(2) : span * 0.04;
    return (chart_scale){ fmax(least * exp(-room), DBL_MIN), fmin(most * exp(room), DBL_MAX), from, to };
}

double chart_place(const chart_scale *scale, double value) {
    const double within = fmin(fmax(value, scale->low), scale->high);
    return scale->from +
           (scale->to - scale->from) * (log(within) - log(scale->low)) / (log(scale->high) - log(scale->low));
}

/* ---- ticks ---- */

typedef struct tick_list {
    double *values;
    size_t  count, most;
} tick_list;

/* Adds `value` if it is on the scale; false where the list is full. */
static bool add_tick(const chart_scale *scale, double value, tick_list *ticks) {
    if (value < scale->low * (1 - 1e-9) || value > scale->high * (1 + 1e-9) || !isfinite(value)) return true;
    if (ticks->count >= ticks->most) return false;
    ticks->values[ticks->count++] = value;
    return true;
}

/* Powers base^(k*step), each also times the given factors. True where at least two are on the scale and the list has
 * room. */
static bool powers(const chart_scale *scale, double base, int step, const double *factors, size_t factor_count,
                   tick_list *ticks) {
    const int first = (int)floor(log(scale->low) / log(base) / step) - 1;
    const int last = (int)ceil(log(scale->high) / log(base) / step) + 1;
    ticks->count = 0;
    for (int k = first; k <= last; k++)
        for (size_t i = 0; i < factor_count; i++)
            if (!add_tick(scale, pow(base, k * step) * factors[i], ticks)) return false;
    return ticks->count >= 2;
}

/* Steps of equal length. */
static bool even_steps(const chart_scale *scale, double step, tick_list *ticks) {
    const double first = ceil(scale->low / step), last = floor(scale->high / step);
    ticks->count = 0;
    if (last - first > CHART_TICKS) return false;
    for (double k = first; k <= last; k++)
        if (!add_tick(scale, k * step, ticks)) return false;
    return ticks->count >= 2;
}

/* From the finest ticks to the coarsest: the first that are not too many. */
size_t chart_ticks(const chart_scale *scale, chart_unit unit, size_t most, double out_ticks[CHART_TICKS]) {
    static const double one[] = { 1 }, one_three[] = { 1, 3 }, one_two_five[] = { 1, 2, 5 };
    static const int doublings[] = { 1, 2, 4, 5, 10, 20, 40, 80, 160, 320, 640 };
    static const double shares[] = { 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5 };
    if (most > CHART_TICKS) most = CHART_TICKS;
    tick_list ticks = { out_ticks, 0, most };
    if (unit == CHART_BYTES)
        for (size_t i = 0; i < sizeof doublings / sizeof doublings[0]; i++)
            if (powers(scale, 2, doublings[i], one, 1, &ticks)) return ticks.count;
    if (scale->high / scale->low < 8) /* few round powers, if any */
        for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
            if (even_steps(scale, pow(10, floor(log10(scale->high))) * shares[i], &ticks)) return ticks.count;
    ticks.most = most < 7 ? most : 7;
    if (powers(scale, 10, 1, one_two_five, 3, &ticks)) return ticks.count;
    ticks.most = most < 5 ? most : 5;
    if (powers(scale, 10, 1, one_three, 2, &ticks)) return ticks.count;
    ticks.most = most;
    for (int step = 1; step <= 620; step++)
        if (powers(scale, 10, step, one, 1, &ticks)) return ticks.count;
    return ticks.count;
}

/* ---- numbers ---- */

/* `value` in `digits` digits, without zeros at the end of its fraction. */
static void plain(double value, int digits, char *out) {
    const int before = value >= 1 ? (int)floor(log10(value) + 1e-9) + 1 : 1;
    const int decimals = digits > before ? digits - before : 0;
    const int written = snprintf(out, CHART_NUMBER - 8, "%.*f", decimals, value);
    if (decimals == 0 || written <= 0 || written >= CHART_NUMBER - 8) return;
    char *end = out + written;
    while (end > out && end[-1] == '0') end--;
    if (end > out && end[-1] == '.') end--;
    *end = 0;
}

char *chart_number(double value, chart_unit unit, int digits, char out[CHART_NUMBER]) {
    static const char *const names[][7] = {
        [CHART_COUNT] = { "", "k", "M", "G", "T", "P", "E" },
        [CHART_BYTES] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" },
        [CHART_TIME] = { " ns", " \xC2\xB5s", " ms", " s", "", "", "" },
    };
    const double base = unit == CHART_BYTES ? 1024 : 1000;
    const size_t last = unit == CHART_TIME ? 3 : 6;
    size_t step = 0;
    /* What would be written as 1000 of a unit is 1 of the next. */
    const double limit = base * (1 - 0.5 * pow(10, -digits));
    for (; step < last && value >= limit; step++) value /= base;
    if (!isfinite(value)) snprintf(out, CHART_NUMBER, "%g", value);
    else if (value >= 1e6 || (value != 0 && fabs(value) < 0.01))
        snprintf(out, CHART_NUMBER, "%.2g%s", value, names[unit][step]);
    else {
        plain(value, digits, out);
        size_t at = 0;
        while (out[at]) at++;
        snprintf(out + at, CHART_NUMBER - at, "%s", names[unit][step]);
    }
    return out;
}

/* ---- labels ---- */

/* Labels that touch form a group that lies around the mean of where its members want to be. Groups are merged from the
 * left until none touch: the least movement in squares, because each group is at its own best place. */
void chart_spread(double *positions, size_t count, double gap, double low, double high) {
    enum { MOST = 64 };
    double wanted[MOST]; /* the sum over a group of where its first member would want to be */
    size_t members[MOST], groups = 0;
    if (count > MOST || count == 0) return;
    if (gap * (double)(count - 1) > high - low) gap = count > 1 ? (high - low) / (double)(count - 1) : 0;
    for (size_t i = 0; i < count; i++) {
        wanted[groups] = positions[i];
        members[groups++] = 1;
        while (groups > 1) {
            const size_t b = groups - 1, a = groups - 2;
            const double span_b = gap * (double)(members[b] - 1);
            double at_a = wanted[a] / (double)members[a], at_b = wanted[b] / (double)members[b];
            if (at_a < low) at_a = low;
            if (at_b > high - span_b) at_b = high - span_b;
            if (at_a + gap * (double)members[a] <= at_b) break;
            wanted[a] += wanted[b] - gap * (double)members[a] * (double)members[b];
            members[a] += members[b];
            groups--;
        }
    }
    for (size_t group = 0, i = 0; group < groups; group++) {
        double first = wanted[group] / (double)members[group];
        const double most = high - gap * (double)(members[group] - 1);
        if (first > most) first = most;
        if (first < low) first = low;
        for (size_t k = 0; k < members[group]; k++) positions[i++] = first + gap * (double)k;
    }
}
