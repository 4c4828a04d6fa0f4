/* terminal.c: the one place from which the commands write to standard output and standard error. Names and texts come
 * from files, models and drivers, and a terminal obeys what it is sent: all of it is made printable here (text.h). */
#include "cli/cli.h"
#include "cli/text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool quiet;        /* by cli_be_quiet */
static bool has_progress; /* the terminal's last line is one of cli_progress */

static void write_printable(FILE *to, const text *from) {
    text out = { 0 };
    if (from->data) text_add_printable(&out, from->data, from->length, false);
    system_lock_errors();
    cli_progress_end();
    if (out.data) fwrite(out.data, 1, out.length, to);
    system_unlock_errors();
    text_free(&out);
}

static void print_v(FILE *to, const char *format, va_list args) {
    text line = { 0 };
    text_add_v(&line, format, args);
    write_printable(to, &line);
    text_free(&line);
}

void cli_print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_v(stdout, format, args);
    va_end(args);
}

void cli_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_v(stderr, format, args);
    va_end(args);
}

void cli_be_quiet(void) { quiet = true; }

bool cli_is_quiet(void) {
    const char *level = getenv("HEDDLE_LOG");
    return quiet || (level && strcmp(level, "error") == 0);
}

void cli_tell(const char *format, ...) {
    if (cli_is_quiet()) return;
    va_list args;
    va_start(args, format);
    print_v(stderr, format, args);
    va_end(args);
}

void cli_print_text(const char *bytes, size_t count) {
    text piece = { 0 };
    if (system_is_terminal(SYSTEM_OUTPUT)) text_add_printable(&piece, bytes, count, false);
    else text_append(&piece, bytes, count);
    if (piece.data) fwrite(piece.data, 1, piece.length, stdout);
    text_free(&piece);
    fflush(stdout);
}

void cli_print_dim(bool dim) { fputs(dim ? "\033[2m" : "\033[22m", stdout); }

/* ---- progress ---- */

void cli_progress(const char *format, ...) {
    const size_t columns = cli_is_quiet() ? 0 : system_columns(SYSTEM_ERRORS);
    if (columns == 0) return;
    text line = { 0 }, shown = { 0 };
    va_list args;
    va_start(args, format);
    text_add_v(&line, format, args);
    va_end(args);
    if (line.data) text_add_printable(&shown, line.data, line.length, true);
    /* a full line would begin the next one */
    const size_t bytes = shown.data ? text_cut(shown.data, columns - 1) : 0;
    system_lock_errors();
    fprintf(stderr, "\r%.*s\033[K", (int)bytes, shown.data ? shown.data : "");
    has_progress = true;
    system_unlock_errors();
    text_free(&line);
    text_free(&shown);
}

void cli_progress_end(void) {
    system_lock_errors();
    if (has_progress) fputs("\r\033[K", stderr);
    has_progress = false;
    system_unlock_errors();
}
