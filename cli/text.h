/* text.h: text that grows while it is written: pages, pictures and tables before they go to a file. Knows nothing of
 * heddle. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "cli/system.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0} is an empty text. After a failed allocation it takes nothing more and `failed` says so: one check at the end. */
typedef struct text {
    char  *data;    /* ends with a zero that `length` does not count; NULL while nothing was added */
    size_t length, capacity;
    bool   failed;
} text;

void text_add(text *to, const char *format, ...) CLI_PRINTF(2, 3);
void text_add_v(text *to, const char *format, va_list args);
void text_append(text *to, const char *bytes, size_t count);
/* Bytes of the UTF-8 character at `at`, of which `room` bytes are there, and its number; 0: it is none. */
size_t text_character(const char *at, size_t room, uint32_t *out_code);
/* Adds text from outside so that a terminal shows it and obeys nothing in it: control characters but newline and tab,
 * and those that turn the direction, as \u001B, bytes that are no UTF-8 as \x9B. one_line: newline and tab become
 * spaces. */
void text_add_printable(text *to, const char *from, size_t bytes, bool one_line);
/* Adds a line, broken at spaces where it is longer than `columns` characters; what goes on begins below its character
 * `below`, before which it is not broken. A longer word stays whole. */
void text_add_folded(text *to, const char *line, size_t columns, size_t below);
/* Adds a name from outside as HTML or SVG content: markup characters escaped, control characters and bytes that are no
 * UTF-8 replaced by U+FFFD, at most `most` characters and then an ellipsis. */
void text_add_html(text *to, const char *name, size_t most);
/* Adds a name from outside into a cell of a Markdown table, where it starts no markup and ends no cell. */
void text_add_markdown(text *to, const char *name);
/* Adds the shortest digits that read back as the same number: as a CSV of heddle has it. */
void text_add_number(text *to, double number);
/* The characters of a UTF-8 text; a byte that belongs to none counts as one. */
size_t text_characters(const char *name);
/* The bytes of its first `most` characters. */
size_t text_cut(const char *from, size_t most);
void text_free(text *of);

#endif
