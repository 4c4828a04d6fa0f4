/* bench_page.h: a set of measurements as a page with charts and as a summary in Markdown, both complete in one text. */
#ifndef CLI_BENCH_PAGE_H
#define CLI_BENCH_PAGE_H

#include "cli/bench_set.h"
#include "cli/text.h"

enum { BENCH_MOST_PANELS = 600 }; /* of a page */

/* One HTML file that loads nothing. */
void bench_page_write(const bench_set *set, text *to);
/* The table of rows[begin] to rows[end - 1], each number as the CSV has it (bench_data.c). */
void bench_data_write(const bench_set *set, size_t begin, size_t end, text *to);
/* Machines, winners and crossings as Markdown (bench_summary.c). */
void bench_summary_write(const bench_set *set, text *to);
/* The page of these CSV files, and its summary beside it (bench_report.c). CLI_OK, or the exit code after a message. */
int bench_report_draw(const cli_command *command, const char *const *paths, size_t count, const char *page);
/* The page's path with another ending in place of ".html": free() it; NULL: no memory. */
char *bench_path_beside(const char *page, const char *ending);
/* The rules of its style, one line each, NULL behind the last (bench_style.c). */
extern const char *const bench_style[];
#endif
