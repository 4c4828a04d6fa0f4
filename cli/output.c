/* output.c: error lines, units, tables and JSON. Results go to stdout, everything else to stderr. */
#include "cli/cli.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static void print_error(const cli_command *command, const char *format, va_list args) {
    char line[2048];
    vsnprintf(line, sizeof line, format, args);
    for (char *at = line; *at; at++) /* one line, whatever a file's name holds */
        if ((unsigned char)*at < ' ') *at = ' ';
    fprintf(stderr, "heddle%s%s: %s", command ? " " : "", command ? command->name : "", line);
}

int cli_fail(const cli_command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_error(command, format, args);
    va_end(args);
    fputc('\n', stderr);
    return CLI_FAILED;
}

int cli_usage(const cli_command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_error(command, format, args);
    va_end(args);
    fprintf(stderr, "; see `heddle %s%s`\n", command ? command->name : "help", command ? " --help" : "");
    return CLI_USAGE;
}

/* ---- units ---- */

char *cli_bytes(uint64_t bytes, cli_cell out) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < CLI_COUNT(units); unit++) value /= 1024;
    snprintf(out, CLI_CELL, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

char *cli_time(uint64_t ns, cli_cell out) {
    if (ns < 1000) snprintf(out, CLI_CELL, "%llu ns", (unsigned long long)ns);
    else if (ns < 1000000) snprintf(out, CLI_CELL, "%.2f us", (double)ns / 1e3);
    else if (ns < 10000000000u) snprintf(out, CLI_CELL, "%.2f ms", (double)ns / 1e6);
    else snprintf(out, CLI_CELL, "%.2f s", (double)ns / 1e9);
    return out;
}

char *cli_tensor(hd_dtype dtype, hd_shape shape, cli_cell out) {
    int at = snprintf(out, CLI_CELL, "%s[", hd_dtype_name(dtype));
    for (uint32_t axis = 0; axis < shape.rank && axis < HD_MAX_RANK; axis++)
        at += snprintf(out + at, CLI_CELL - (size_t)at, "%s%lld", axis ? "," : "", (long long)shape.dims[axis]);
    snprintf(out + at, CLI_CELL - (size_t)at, "]");
    return out;
}

/* ---- tables ---- */

/* Places on a terminal: bytes that do not go on with a UTF-8 sequence. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

void cli_table(cli_cell *cells, size_t rows, size_t columns, uint32_t right) {
    int widths[32] = { 0 }; /* as many as `right` has bits */
    for (size_t i = 0; i < rows * columns; i++) {
        int own = width_of(cells[i]);
        if (own > widths[i % columns]) widths[i % columns] = own;
    }
    for (size_t row = 0; row < rows; row++) {
        int behind = 0; /* spaces that are due only if something follows */
        for (size_t column = 0; column < columns; column++) {
            int width = widths[column], own = width_of(cells[row * columns + column]);
            int before = right >> column & 1 ? width - own : 0;
            if (own > 0) printf("%*s%s", behind + before, "", cells[row * columns + column]);
            behind = (own > 0 ? width - own - before : behind + width) + 2;
        }
        printf("\n");
    }
}

/* ---- JSON ---- */

json_t *cli_json_text(const char *text) {
    json_t *value = json_string(text);
    if (value) return value;
    char *plain = malloc(strlen(text) + 1);
    if (!plain) return NULL;
    for (size_t i = 0; i <= strlen(text); i++) plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    value = json_string(plain);
    free(plain);
    return value;
}

void cli_put(json_t *object, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(object, key, value) != 0) *ok = false;
}

int cli_print_json(const cli_command *command, json_t *root, bool ok) {
    char *text = root && ok ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (text) printf("%s\n", text);
    free(text);
    json_decref(root);
    return text ? CLI_OK : cli_fail(command, "no memory is left for the JSON text");
}
