/* table.c: rows of measurements as CSV and JSON lines. The text of a file is cut into cells in place. */
#include "cli/table.h"
#include "cli/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 256, MOST_ROWS = 1000000, LONGEST_NUMBER = 40 };

typedef struct column {
    const char *name;
    size_t      offset; /* in a table_row */
    bool        number;
} column;

static const column columns[] = {
#define TEXT(name)   { #name, offsetof(table_row, name), false },
#define NUMBER(name) { #name, offsetof(table_row, name), true },
    TABLE_COLUMNS(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char **text_of(table_row *row, const column *c) {
    return (const char **)(void *)((char *)row + c->offset);
}
static double *number_of(table_row *row, const column *c) { return (double *)(void *)((char *)row + c->offset); }

table_row table_row_empty(void) {
    table_row row;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].number) *number_of(&row, &columns[i]) = NAN;
        else *text_of(&row, &columns[i]) = "";
    }
    return row;
}

/* ---- writing ---- */

/* `quoted` is what stands for a quote within quotes. */
static void put_text(text *to, const char *from, const char *quoted, bool json) {
    size_t left = strlen(from);
    text_append(to, "\"", 1);
    while (left > 0) {
        uint32_t code;
        const unsigned char first = (unsigned char)*from;
        const size_t bytes = text_character(from, left, &code);
        if (bytes == 0) text_append(to, "?", 1);
        else if (first < ' ' || first == 0x7F) text_append(to, " ", 1);
        else if (first == '"') text_add(to, "%s", quoted);
        else if (first == '\\' && json) text_append(to, "\\\\", 2);
        else text_append(to, from, bytes);
        from += bytes ? bytes : 1;
        left -= bytes ? bytes : 1;
    }
    text_append(to, "\"", 1);
}

/* Whether CSV may leave the quotes out. */
static bool is_plain(const char *cell) {
    for (; *cell; cell++)
        if (*cell < ' ' || *cell >= 0x7F || *cell == '"' || *cell == ',') return false;
    return true;
}

void table_add_heading(text *to) {
    for (size_t i = 0; i < COLUMNS; i++) text_add(to, "%s%s", i > 0 ? "," : "", columns[i].name);
    text_add(to, "\r\n");
}

void table_add_csv(text *to, const table_row *row) {
    table_row copy = *row;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (i > 0) text_append(to, ",", 1);
        if (columns[i].number) {
            if (isfinite(*number_of(&copy, &columns[i]))) text_add_number(to, *number_of(&copy, &columns[i]));
            continue;
        }
        const char *cell = *text_of(&copy, &columns[i]);
        if (is_plain(cell)) text_add(to, "%s", cell);
        else put_text(to, cell, "\"\"", false);
    }
    text_add(to, "\r\n");
}

void table_add_json(text *to, const table_row *row) {
    table_row copy = *row;
    for (size_t i = 0; i < COLUMNS; i++) {
        text_add(to, "%s\"%s\": ", i > 0 ? ", " : "{", columns[i].name);
        if (!columns[i].number) put_text(to, *text_of(&copy, &columns[i]), "\\\"", true);
        else if (isfinite(*number_of(&copy, &columns[i]))) text_add_number(to, *number_of(&copy, &columns[i]));
        else text_add(to, "null");
    }
    text_add(to, "}\n");
}

/* ---- reading ---- */

typedef struct reader {
    char  *at, *end;
    size_t line;
    char  *why;
} reader;

typedef enum cell_end { CELL_BAD, CELL_MORE, CELL_LAST } cell_end;

static cell_end refuse(const reader *r, const char *what) {
    snprintf(r->why, TABLE_WHY, "line %zu: %s", r->line, what);
    return CELL_BAD;
}

static bool check_text(reader *r) {
    for (size_t bytes; r->at < r->end; r->at += bytes) {
        const unsigned char first = (unsigned char)*r->at;
        uint32_t code;
        bytes = text_character(r->at, (size_t)(r->end - r->at), &code);
        if (bytes == 0) return refuse(r, "bytes that are no UTF-8 text"), false;
        if ((first < ' ' && first != '\t' && first != '\n' && first != '\r') || first == 0x7F)
            return refuse(r, "a control character"), false;
        r->line += first == '\n';
    }
    return true;
}

/* Takes one cell and what ends it. The zero behind the cell may overwrite what ended it. */
static cell_end next_cell(reader *r, char **out_cell) {
    char *put = r->at;
    *out_cell = put;
    if (r->at < r->end && *r->at == '"') {
        const reader began = *r;
        for (r->at++;; *put++ = *r->at++) {
            if (r->at >= r->end) return refuse(&began, "a quote that does not end");
            r->line += *r->at == '\n';
            if (*r->at != '"') continue;
            r->at++;
            if (r->at >= r->end || *r->at != '"') break;
        }
    } else {
        put += strcspn(put, "\",\r\n");
        r->at = put;
    }
    if (r->at < r->end && *r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n')) r->at++;
    const char after = r->at < r->end ? *r->at : '\n';
    if (after != ',' && after != '\n') return refuse(r, "a quote or a carriage return within a cell");
    if (r->at < r->end) r->at++;
    *put = 0;
    if (after == ',') return CELL_MORE;
    r->line++;
    return CELL_LAST;
}

/* Digits with an optional sign, fraction and exponent; empty is NaN. */
static bool read_number(const char *cell, double *out) {
    static const char digits[] = "0123456789";
    const char *at = cell + (*cell == '-');
    *out = NAN;
    if (!*cell) return true;
    const size_t whole = strspn(at, digits);
    at += whole;
    if (whole > 0 && *at == '.') at += 1 + strspn(at + 1, digits);
    if (whole > 0 && (*at == 'e' || *at == 'E')) {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        const size_t exponent = strspn(at, digits);
        if (exponent == 0) return false;
        at += exponent;
    }
    if (whole == 0 || *at || at - cell > LONGEST_NUMBER) return false;
    *out = strtod(cell, NULL);
    return isfinite(*out);
}

/* The columns of the file, in its order: NULL for one that is not known. */
static bool read_heading(reader *r, const column *found[MOST_COLUMNS], size_t *out_count) {
    static const char *const needed[] = { "bench", "device", "op", "median_ns" };
    bool seen[COLUMNS] = { false };
    size_t count = 0;
    for (cell_end end = CELL_MORE; end == CELL_MORE; count++) {
        char *cell;
        if ((end = next_cell(r, &cell)) == CELL_BAD) return false;
        if (count >= MOST_COLUMNS) return refuse(r, "too many columns"), false;
        found[count] = NULL;
        for (size_t i = 0; i < COLUMNS; i++) {
            if (strcmp(cell, columns[i].name) != 0) continue;
            if (seen[i]) return snprintf(r->why, TABLE_WHY, "the column %s stands twice", columns[i].name), false;
            seen[i] = true;
            found[count] = &columns[i];
        }
    }
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            if (strcmp(columns[k].name, needed[i]) == 0 && !seen[k])
                return snprintf(r->why, TABLE_WHY, "there is no column %s; give a file that `heddle bench` wrote",
                                needed[i]),
                       false;
    *out_count = count;
    return true;
}

static bool read_row(reader *r, const column *const *found, size_t count, table_row *out_row) {
    const size_t line = r->line;
    size_t at = 0;
    *out_row = table_row_empty();
    for (cell_end end = CELL_MORE; end == CELL_MORE; at++) {
        char *cell;
        if ((end = next_cell(r, &cell)) == CELL_BAD) return false;
        if (at >= count || !found[at]) continue;
        if (!found[at]->number) *text_of(out_row, found[at]) = cell;
        else if (!read_number(cell, number_of(out_row, found[at])))
            return snprintf(r->why, TABLE_WHY, "line %zu: %s is \"%.40s\", which is no number", line, found[at]->name,
                            cell),
                   false;
    }
    if (at != count)
        return snprintf(r->why, TABLE_WHY, "line %zu has %zu cells, and the heading has %zu", line, at, count), false;
    return true;
}

static bool room_for_one(table *t, size_t *capacity, const reader *r) {
    if (t->row_count >= MOST_ROWS) return refuse(r, "too many rows"), false;
    if (t->row_count < *capacity) return true;
    const size_t more = *capacity > 0 ? *capacity * 2 : 64;
    table_row *rows = realloc(t->rows, more * sizeof *rows);
    if (!rows) return refuse(r, "no memory is left"), false;
    t->rows = rows;
    *capacity = more;
    return true;
}

static bool read_rows(reader *r, table *out) {
    const column *found[MOST_COLUMNS];
    size_t count = 0, capacity = 0;
    if (!read_heading(r, found, &count)) return false;
    while (r->at < r->end) {
        const size_t blank = strspn(r->at, "\r\n"); /* an empty line is no row */
        for (size_t i = 0; i < blank; i++) r->line += *r->at++ == '\n';
        if (r->at >= r->end) break;
        if (!room_for_one(out, &capacity, r) || !read_row(r, found, count, &out->rows[out->row_count])) return false;
        out->row_count++;
    }
    return true;
}

bool table_parse(char *from, size_t bytes, table *out_table, char why[TABLE_WHY]) {
    /* a byte order mark, as spreadsheets write it */
    const size_t mark = bytes >= 3 && memcmp(from, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    reader check = { from + mark, from + bytes, 1, why }, r = check;
    *out_table = (table){ .text = from };
    why[0] = 0;
    if (check_text(&check) && read_rows(&r, out_table)) return true;
    table_free(out_table);
    return false;
}

void table_free(table *t) {
    free(t->rows);
    free(t->text);
    t->rows = NULL;
    t->text = NULL;
    t->row_count = 0;
}
