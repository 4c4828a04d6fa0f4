/* bench_page.c: the page: machines, winners, then a chapter for each benchmark with its figures. No script, nothing
 * from elsewhere; light and dark as the reader's system has it. */
#include "cli/bench_page.h"
#include "cli/bench_figure.h"
#include "cli/bench_winner.h"
#include "cli/chart.h"
#include <math.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<title>heddle: measurements</title>\n<style>\n";

static void cell(const char *name, text *to) {
    text_add(to, "<td>");
    text_add_html(to, name, 200);
    text_add(to, "</td>");
}

static void who(const bench_row *row, text *to) {
    text_add(to, "<span class=\"who\">");
    chart_draw_key(row->style, row->synthetic, to);
    text_add_html(to, row->device, 60);
    text_add(to, "</span>");
}

/* ---- machines ---- */

static bool same_place(const bench_row *a, const bench_row *b) {
    return strcmp(a->cells->device, b->cells->device) == 0 && a->synthetic == b->synthetic &&
           strcmp(a->cells->machine, b->cells->machine) == 0;
}

/* One line for each device of each machine. */
static void write_machines(const bench_set *set, text *to) {
    const bench_row *seen[256];
    size_t count = 0;
    text_add(to, "<div class=\"scroll\"><table>\n"
                 "<tr><th>machine</th><th>device</th><th>name</th><th>driver</th><th>measured</th></tr>\n");
    for (size_t i = 0; i < set->count && count < CLI_COUNT(seen); i++) {
        const bench_row *row = &set->rows[i];
        size_t at = 0;
        while (at < count && !same_place(seen[at], row)) at++;
        if (at < count) continue;
        const bool named = count > 0 && strcmp(seen[count - 1]->cells->machine, row->cells->machine) == 0;
        seen[count++] = row;
        text_add(to, named ? "<tr><td>" : "<tr class=\"begins\"><td>");
        if (!named) text_add_html(to, bench_machine(set, row), 80);
        if (!named && *row->cells->os) {
            text_add(to, "<br><span class=\"gain\">");
            text_add_html(to, row->cells->os, 80);
            text_add(to, "</span>");
        }
        text_add(to, "</td><td>");
        who(row, to);
        if (strcmp(row->device, row->cells->device) != 0) {
            text_add(to, "<br><span class=\"gain\">");
            text_add_html(to, row->cells->device, 60);
            text_add(to, "</span>");
        }
        text_add(to, "</td>");
        cell(*row->cells->device_name ? row->cells->device_name : row->cells->kind, to);
        cell(row->cells->driver, to);
        text_add(to, "<td class=\"who\">");
        text_add_html(to, row->synthetic ? "synthetic" : row->cells->time, 40);
        if (*row->cells->heddle) {
            text_add(to, "<br><span class=\"gain\">heddle ");
            text_add_html(to, row->cells->heddle, 20);
            text_add(to, "</span>");
        }
        text_add(to, "</td></tr>\n");
    }
    text_add(to, "</table></div>\n");
}

/* ---- winners ---- */

static void write_winner(const bench_stretch *stretch, text *to) {
    if (!stretch->winner) {
        text_add(to, "<td class=\"gain\" colspan=\"2\">one device only</td>");
        return;
    }
    text_add(to, "<td>");
    if (stretch->tie) text_add(to, "tie");
    else who(stretch->winner, to);
    text_add(to, "</td><td class=\"gain\">");
    bench_stretch_gain(stretch, "\xC3\x97", to);
    if (stretch->doubtful)
        text_add(to, " <span class=\"warn\"><b class=\"sign ring\"></b> %zu of %zu</span>", stretch->doubtful,
                 stretch->works);
    text_add(to, "</td>");
}

/* Each device that could overtake the CPU. */
static void write_crossings(const bench_set *set, size_t begin, size_t end, text *to) {
    char number[CHART_NUMBER];
    bool any = false;
    for (size_t i = begin; i < end; i++) {
        const bench_row *row = &set->rows[i];
        if ((i > begin && bench_same_line(&set->rows[i - 1], row)) || bench_is_cpu(row) || row->synthetic) continue;
        const bench_crossing crossing = bench_find_crossing(set, begin, end, row);
        if (crossing.compared == 0) continue;
        if (!any) text_add(to, "<p class=\"overtakes\">overtakes the CPU: ");
        any = true;
        text_add(to, "<span class=\"who\">");
        who(row, to);
        if (!crossing.from) text_add(to, " <span class=\"gain\">at no size</span>");
        else
            text_add(to, crossing.always ? " from the first size, %s" : " from %s",
                     chart_number(crossing.from->cells->elements, CHART_COUNT, 3, number));
        text_add(to, "</span> ");
    }
    if (any) text_add(to, "</p>");
}

/* "matmul f32, data on the device": the heading of a panel's winners. */
static void write_subject(const bench_set *set, const bench_row *row, text *to) {
    text panel = { 0 };
    bench_panel_name(set, row, &panel);
    text_add(to, "<p><b>");
    if (row->kind->op_parts_figures) {
        text_add_html(to, row->cells->op, 60);
        text_add(to, " ");
    }
    text_add_html(to, row->cells->type, 30);
    text_add(to, "</b> <span class=\"gain\">");
    text_add_html(to, panel.data ? panel.data : "", 80);
    text_add(to, "</span></p>");
    to->failed = to->failed || panel.failed;
    text_free(&panel);
}

static void write_panel_winners(const bench_set *set, size_t begin, size_t end, text *to) {
    bench_stretch stretch;
    text sizes = { 0 };
    const bool sized = bench_needs_sizes(set, begin, end);
    text_add(to, "<div>");
    write_subject(set, &set->rows[begin], to);
    text_add(to, "<div class=\"scroll\"><table>\n");
    for (size_t at = begin; bench_next_stretch(set, &at, end, &stretch);) {
        sizes.length = 0;
        bench_stretch_name(&stretch, sized, &sizes);
        text_add(to, "<tr><td>");
        text_add_html(to, sizes.data ? sizes.data : "", 80);
        text_add(to, "</td>");
        write_winner(&stretch, to);
        text_add(to, "</tr>\n");
    }
    text_add(to, "</table></div>");
    if (set->rows[begin].kind->form == BENCH_OVER_SIZE) write_crossings(set, begin, end, to);
    text_add(to, "</div>\n");
    to->failed = to->failed || sizes.failed;
    text_free(&sizes);
}

static size_t end_of(const bench_set *set, size_t at, size_t end, bool (*same)(const bench_row *, const bench_row *)) {
    size_t next = at + 1;
    while (next < end && same(&set->rows[at], &set->rows[next])) next++;
    return next;
}

static void write_winners(const bench_set *set, size_t begin, size_t end, text *to) {
    text_add(to, "<h3>Winners</h3>\n<p class=\"note\">2\xC3\x97: the next device takes twice as long; a tie: no more "
                 "than 5%% longer. ");
    if (set->rows[begin].kind->form == BENCH_OVER_SIZE)
        text_add(to, "A device overtakes the CPU at the first size from which on it wins at least 90%% of the sizes.");
    bool doubtful = false;
    for (size_t i = begin; i < end; i++) doubtful = doubtful || (set->rows[i].fastest && set->rows[i].doubtful);
    if (doubtful)
        text_add(to,
                 " <b class=\"sign ring\"></b> 1 of 4: at so many of them the winner's clock moved or was held down.");
    text_add(to, "</p>\n<div class=\"contests\">\n");
    for (size_t at = begin, stop; at < end; at = stop) {
        stop = end_of(set, at, end, bench_same_panel);
        write_panel_winners(set, at, stop, to);
    }
    text_add(to, "</div>\n");
}

/* ---- chapters ---- */

/* Whether any work of the part was measured on two devices, so that there is something to win. */
static bool has_contest(const bench_set *set, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (set->rows[i].fastest || set->rows[i].tied) return true;
    return false;
}

static void write_figure(const bench_set *set, size_t begin, size_t end, text *to) {
    const bench_row *row = &set->rows[begin];
    const bool single = end_of(set, begin, end, bench_same_panel) == end;
    text_add(to, "<figure%s>\n<h3>", single ? " class=\"single\"" : "");
    if (row->kind->op_parts_figures) text_add_html(to, row->cells->op, 60);
    else if (!*row->cells->type) text_add_html(to, row->cells->bench, 60);
    text_add(to, " ");
    text_add_html(to, row->cells->type, 30);
    text_add(to, "</h3>\n");
    bench_figure_draw(set, begin, end, to);
    if (row->kind->form == BENCH_TOKENS) bench_curves_draw(set, begin, end, to);
    bench_data_write(set, begin, end, to);
    text_add(to, "</figure>\n");
}

void bench_page_write(const bench_set *set, text *to) {
    text_append(to, head, sizeof head - 1);
    for (const char *const *rule = bench_style; *rule; rule++) text_add(to, "%s\n", *rule);
    text_add(to, "</style>\n</head>\n<body>\n<main>\n");
    text_add(to,
             "<h1>heddle: measurements</h1>\n<p class=\"soft\">%zu rows of %zu file%s. Point at a dot for its "
             "numbers; the table under each chart has them all.</p>\n", set->count,
             set->table_count, set->table_count == 1 ? "" : "s");
    text_add(to, "<nav>");
    for (size_t at = 0, end; at < set->count; at = end) {
        end = end_of(set, at, set->count, bench_same_chapter);
        text_add(to, "<a href=\"#c%zu\">%s</a>", at, set->rows[at].kind->heading);
    }
    text_add(to, "</nav>\n<h2>Machines</h2>\n");
    write_machines(set, to);
    for (size_t at = 0, end; at < set->count; at = end) {
        const bench_kind *kind = set->rows[at].kind;
        end = end_of(set, at, set->count, bench_same_chapter);
        text_add(to, "<h2 id=\"c%zu\">%s</h2>\n<p class=\"soft\">%s</p>\n", at, kind->heading, kind->explanation);
        if (has_contest(set, at, end)) write_winners(set, at, end, to);
        text_add(to, "<div class=\"figures\">\n");
        for (size_t figure = at, stop; figure < end; figure = stop) {
            stop = end_of(set, figure, end, bench_same_figure);
            write_figure(set, figure, stop, to);
        }
        text_add(to, "</div>\n");
    }
    text_add(to, "<p class=\"note\">Made by heddle %s.</p>\n</main>\n</body>\n</html>\n", hd_version());
}
