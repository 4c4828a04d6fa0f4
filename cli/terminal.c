/* terminal.c: the one place from which the commands write to standard output and standard error. Names and texts come
 * from files, models and drivers, and a terminal obeys what it is sent: all of it is made printable here (text.h). */
#define _DEFAULT_SOURCE
#include "cli/cli.h"
#include "cli/text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool quiet;        /* by cli_be_quiet */
static bool has_progress; /* the terminal's last line is one of cli_progress */

static void write_printable(FILE *to, const text *from) {
    text out = { 0 };
    if (from->data) text_add_printable(&out, from->data, from->length, false);
    flockfile(stderr);
    cli_progress_end();
    if (out.data) fwrite(out.data, 1, out.length, to);
    funlockfile(stderr);
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
    if (isatty(STDOUT_FILENO)) text_add_printable(&piece, bytes, count, false);
    else text_append(&piece, bytes, count);
    if (piece.data) fwrite(piece.data, 1, piece.length, stdout);
    text_free(&piece);
    fflush(stdout);
}

void cli_print_dim(bool dim) { fputs(dim ? "\033[2m" : "\033[22m", stdout); }

/* ---- progress ---- */

static size_t columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void cli_progress(const char *format, ...) {
    if (cli_is_quiet() || !isatty(STDERR_FILENO)) return;
    text line = { 0 }, shown = { 0 };
    va_list args;
    va_start(args, format);
    text_add_v(&line, format, args);
    va_end(args);
    if (line.data) text_add_printable(&shown, line.data, line.length, true);
    /* a full line would begin the next one */
    const size_t bytes = shown.data ? text_cut(shown.data, columns() - 1) : 0;
    flockfile(stderr);
    fprintf(stderr, "\r%.*s\033[K", (int)bytes, shown.data ? shown.data : "");
    has_progress = true;
    funlockfile(stderr);
    text_free(&line);
    text_free(&shown);
}

void cli_progress_end(void) {
    flockfile(stderr);
    if (has_progress) fputs("\r\033[K", stderr);
    has_progress = false;
    funlockfile(stderr);
}
