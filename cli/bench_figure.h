/* bench_figure.h: rows as charts: one figure is one or more panels on the same axes. */
#ifndef CLI_BENCH_FIGURE_H
#define CLI_BENCH_FIGURE_H

#include "cli/bench_set.h"
#include "cli/text.h"

/* The figure of rows[begin] to rows[end - 1] as HTML: its panels and what their signs mean. */
void bench_figure_draw(const bench_set *set, size_t begin, size_t end, text *to);
/* The curves of a figure of language models, each in a panel of its own, as far as there are any. */
void bench_curves_draw(const bench_set *set, size_t begin, size_t end, text *to);
/* One row as a sentence with its numbers as the CSV has them; `source` is a bench_row. Plain text. */
void bench_describe(const void *source, text *to);
/* Both ends of the error bar, rising; NaN where the file has them not. */
void bench_bar_of(const bench_row *row, double *out_low, double *out_high);
/* Whether there are rows of more than one machine. */
bool bench_machines_differ(const bench_set *set);
/* What a panel shows that the figure's other panels do not: what was counted, the operation, the machine. Plain
 * text. */
void bench_panel_name(const bench_set *set, const bench_row *row, text *to);
/* The machine's name, or the file's where it is not known. */
const char *bench_machine(const bench_set *set, const bench_row *row);
/* Whether only the size tells some works of by_work[begin] to by_work[end - 1] apart; what a work is called, with its
 * size or without. Plain text. */
bool bench_needs_sizes(const bench_set *set, size_t begin, size_t end);
void bench_case_name(const bench_row *row, bool sized, text *to);

#endif
