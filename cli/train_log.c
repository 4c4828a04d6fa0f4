/* train_log.c: the steps of a run as CSV, and as one page with the curve of the loss, which loads nothing. */
#include "cli/train.h"
#include "cli/bench_page.h"
#include "cli/chart.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEADING "step,loss,norm,rate,tokens_per_second,held_out_loss\n"
enum { LOG_MOST = 1 << 30, CURVE_POINTS = 200 };

static char *path_of(const char *folder, const char *name) {
    const size_t length = strlen(folder) + strlen(name) + 2;
    char *path = malloc(length);
    if (path) snprintf(path, length, "%s/%s", folder, name);
    return path;
}

int train_log_add(train_log *log, const train_row *row) {
    if (log->count == log->room) {
        const size_t room = log->room ? 2 * log->room : 1024;
        train_row *rows = realloc(log->rows, room * sizeof *rows);
        if (!rows) return cli_fail(log->command, "no memory is left");
        log->rows = rows;
        log->room = room;
    }
    log->rows[log->count++] = *row;
    return CLI_OK;
}

/* A row from its line; false where it is none. */
static bool read_row(const char *line, train_row *out) {
    char *end;
    double numbers[6] = { 0 };
    for (int i = 0; i < 6; i++) {
        const bool empty = *line == ',' || *line == '\n'; /* strtod would go on behind the line */
        numbers[i] = empty ? NAN : strtod(line, &end);
        if (empty) end = (char *)(uintptr_t)line;
        if (*end != (i < 5 ? ',' : '\n')) return false;
        line = end + 1;
    }
    if (!(numbers[0] >= 0)) return false;
    *out = (train_row){ { (uint64_t)numbers[0], (float)numbers[1], (float)numbers[2], numbers[3] },
                        numbers[4],
                        (float)numbers[5] };
    return true;
}

int train_log_begin(const cli_command *command, const char *folder, uint64_t step, train_log *out) {
    *out = (train_log){ .command = command, .csv = path_of(folder, "log.csv"), .page = path_of(folder, "loss.html") };
    if (!out->csv || !out->page) return cli_fail(command, "no memory is left");
    if (step == 0) return CLI_OK;
    size_t bytes;
    char *lines = cli_read_text(command, out->csv, LOG_MOST, &bytes);
    if (!lines) return CLI_FAILED;
    int code = strncmp(lines, HEADING, strlen(HEADING)) == 0 ? CLI_OK
               : cli_fail(command, "%s is no log of heddle train", out->csv);
    train_row row;
    for (const char *line = strchr(lines, '\n'); !code && line && line[1]; line = strchr(line + 1, '\n'))
        if (read_row(line + 1, &row) && row.report.step < step) code = train_log_add(out, &row);
    free(lines);
    return code;
}

static void add_cell(text *to, double number, char end) {
    if (isfinite(number)) text_add_number(to, number);
    text_add(to, "%c", end);
}

/* ---- the page ---- */

static void describe(const void *source, text *to) {
    const train_row *row = source;
    text_add(to, "step %llu: loss %.4f, norm %.4f", (unsigned long long)row->report.step + 1,
             (double)row->report.loss, (double)row->report.norm);
    if (isfinite(row->held_out)) text_add(to, ", held out %.4f", (double)row->held_out);
}

/* Means over as many stretches as a curve has points; of held-out text what was measured. Returns their number. */
static size_t points_of(const train_log *log, bool held_out, chart_point out[CURVE_POINTS]) {
    size_t count = 0;
    for (size_t k = 0; k < CURVE_POINTS; k++) {
        const size_t begin = log->count * k / CURVE_POINTS, end = log->count * (k + 1) / CURVE_POINTS;
        double sum = 0;
        size_t seen = 0;
        for (size_t i = begin; i < end; i++) {
            const float value = held_out ? log->rows[i].held_out : log->rows[i].report.loss;
            if (isfinite(value) && value > 0) sum += (double)value, seen++;
        }
        if (seen == 0) continue;
        const train_row *last = &log->rows[end - 1];
        out[count++] = (chart_point){
            .x = (double)last->report.step + 1, .y = sum / (double)seen, .low = NAN, .high = NAN, .source = last
        };
    }
    return count;
}

static void draw(const train_log *log, text *to) {
    chart_point trained[CURVE_POINTS], held[CURVE_POINTS];
    const size_t counts[2] = { points_of(log, false, trained), points_of(log, true, held) };
    chart_line lines[2] =
        { { .name = "trained on", .style = 0, .joined = true, .roof = NAN, .slope = NAN, .points = trained,
                              .count = counts[0] },
                            { .name = "held out", .style = 1, .joined = true, .roof = NAN, .slope = NAN, .points = held,
                              .count = counts[1] } };
    double least = INFINITY, most = 0;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lines[l].count; i++) {
            least = fmin(least, lines[l].points[i].y);
            most = fmax(most, lines[l].points[i].y);
        }
    if (counts[0] == 0) return;
    chart_draw(&(chart){ .title = "loss by step", .x_title = "step", .y_title = "loss", .x_unit = CHART_COUNT,
                         .y_unit = CHART_COUNT, .x_least = trained[0].x, .x_most = trained[counts[0] - 1].x,
                         .y_least = least, .y_most = most, .lines = lines, .line_count = counts[1] ? 2 : 1,
                         .describe = describe }, to);
}

static void write_page(const train_log *log, text *to) {
    const train_row *last = &log->rows[log->count - 1];
    text_add(to,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
             "<title>heddle: training</title>\n<style>\n");
    for (size_t i = 0; bench_style[i]; i++) text_add(to, "%s\n", bench_style[i]);
    text_add(to,
             "</style>\n</head>\n<body><main>\n<h1>Training</h1>\n<p class=\"soft\">%llu steps; the last one's loss is "
             "%.4f, at "
             "%.0f tokens a second</p>\n<div class=\"figures\"><figure class=\"single\">\n",
             (unsigned long long)last->report.step + 1, (double)last->report.loss, last->tokens_per_second);
    draw(log, to);
    text_add(to, "</figure></div>\n</main></body>\n</html>\n");
}

int train_log_save(const train_log *log) {
    text csv = { 0 }, page = { 0 };
    if (log->count == 0) return CLI_OK;
    text_add(&csv, HEADING);
    for (size_t i = 0; i < log->count; i++) {
        const train_row *row = &log->rows[i];
        text_add(&csv, "%llu,", (unsigned long long)row->report.step);
        add_cell(&csv, (double)row->report.loss, ',');
        add_cell(&csv, (double)row->report.norm, ',');
        add_cell(&csv, row->report.rate, ',');
        add_cell(&csv, round(row->tokens_per_second), ',');
        add_cell(&csv, (double)row->held_out, '\n');
    }
    write_page(log, &page);
    int code = cli_save(log->command, log->csv, &csv);
    if (!code) code = cli_save(log->command, log->page, &page);
    text_free(&csv);
    text_free(&page);
    return code;
}

void train_log_free(train_log *log) {
    free(log->csv);
    free(log->page);
    free(log->rows);
}
