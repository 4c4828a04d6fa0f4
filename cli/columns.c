/* columns.c: tables and lists, as wide as the terminal that shows them. In a file or a pipe each row is one line. */
#include "cli/cli.h"
#include "cli/text.h"
#include <string.h>

enum { MOST_COLUMNS = 32, /* as many as `right` has bits */ GAP = 2, LEAST_ROOM = 20 };

/* Makes the cell printable; returns its places on a terminal. */
static size_t settle(cli_cell cell) {
    text shown = { 0 };
    text_add_printable(&shown, cell, strlen(cell), true);
    snprintf(cell, CLI_CELL, "%s", shown.data ? shown.data : "");
    text_free(&shown);
    return text_characters(cell);
}

void cli_heads(cli_cell *cells, const char *const *heads, size_t count) {
    for (size_t i = 0; i < count; i++) snprintf(cells[i], CLI_CELL, "%s", heads[i]);
}

void cli_print_folded(const char *line, size_t below) {
    const size_t columns = system_columns(SYSTEM_OUTPUT);
    text folded = { 0 };
    if (columns >= below + LEAST_ROOM) text_add_folded(&folded, line, columns, below);
    cli_print("%s\n", folded.data ? folded.data : line);
    text_free(&folded);
}

void cli_print_lines(const char *lines) {
    while (*lines) {
        const size_t length = strcspn(lines, "\n");
        text line = { 0 };
        text_append(&line, lines, length);
        cli_print_folded(line.data ? line.data : "", 0);
        text_free(&line);
        lines += length + (lines[length] == '\n');
    }
}

void cli_print_item(const char *name, size_t width, const char *what) {
    text line = { 0 };
    text_add(&line, "  %-*s  %s", (int)width, name, what);
    cli_print_folded(line.data ? line.data : "", 2 + width + GAP);
    text_free(&line);
}

/* A row's cells side by side. */
static void print_row(cli_cell *row, const size_t *widths, size_t columns, uint32_t right) {
    size_t start = 0, behind = 0; /* where a column begins, and spaces that are due only if something follows */
    text line = { 0 };
    for (size_t column = 0; column < columns; column++) {
        const size_t width = widths[column], own = text_characters(row[column]),
                     before = right >> column & 1 ? width - own : 0;
        if (own > 0) text_add(&line, "%*s%s", (int)(behind + before), "", row[column]);
        behind = (own > 0 ? width - own - before : behind + width) + GAP;
        if (column + 1 < columns) start += width + GAP;
    }
    cli_print_folded(line.data ? line.data : "", start);
    text_free(&line);
}

/* A row's cells below each other, behind the names of their columns. */
static void print_record(cli_cell *heads, cli_cell *row, size_t columns) {
    size_t width = 0;
    for (size_t column = 0; column < columns; column++) {
        const size_t own = text_characters(heads[column]);
        if (own > width) width = own;
    }
    for (size_t column = 0; column < columns; column++) {
        text line = { 0 };
        const int behind = (int)(width - text_characters(heads[column]) + GAP);
        text_add(&line, "%s%*s%s", heads[column], behind, "", row[column]);
        if (row[column][0] && line.data) cli_print_folded(line.data, width + GAP);
        text_free(&line);
    }
}

void cli_table(cli_cell *cells, size_t rows, size_t columns, uint32_t right) {
    size_t widths[MOST_COLUMNS] = { 0 }, before_last = 0;
    const size_t last = columns - 1, terminal = system_columns(SYSTEM_OUTPUT);
    for (size_t i = 0; i < rows * columns; i++) {
        const size_t own = settle(cells[i]);
        if (own > widths[i % columns]) widths[i % columns] = own;
    }
    for (size_t column = 0; column < last; column++) before_last += widths[column] + GAP;
    const bool fits = terminal == 0 || before_last + widths[last] <= terminal,
               folds = columns == 2 || (!(right >> last & 1) && before_last + LEAST_ROOM <= terminal);
    for (size_t row = 0; row < rows; row++) {
        if (fits || folds) print_row(&cells[row * columns], widths, columns, right);
        else if (row > 0) {
            if (row > 1) cli_print("\n");
            print_record(cells, &cells[row * columns], columns);
        }
    }
}
