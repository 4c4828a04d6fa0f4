/* output.c: error lines, units, tables and JSON. Results go to stdout, everything else to stderr. */
#include "cli/cli.h"
#include "cli/text.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* One line, whatever a file's name holds. */
static void print_error(const cli_command *command, const char *format, va_list args, const char *ending) {
    text said = { 0 }, line = { 0 };
    text_add_v(&said, format, args);
    if (said.data) text_add_printable(&line, said.data, said.length, true);
    cli_note("heddle%s%s: %s%s\n", command ? " " : "", command ? command->name : "",
             line.data ? line.data : "no memory is left", ending);
    text_free(&said);
    text_free(&line);
}

int cli_fail(const cli_command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_error(command, format, args, "");
    va_end(args);
    return CLI_FAILED;
}

int cli_usage(const cli_command *command, const char *format, ...) {
    char ending[64];
    va_list args;
    snprintf(ending, sizeof ending, "; see `heddle %s%s`", command ? command->name : "help", command ? " --help" : "");
    va_start(args, format);
    print_error(command, format, args, ending);
    va_end(args);
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
    else if (ns < 1000000000) snprintf(out, CLI_CELL, "%.2f ms", (double)ns / 1e6);
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

/* ---- JSON ---- */

json_t *cli_json_bytes(const char *from, size_t bytes) {
    json_t *value = json_stringn(from, bytes);
    if (value) return value;
    text whole = { 0 };
    for (size_t at = 0, length; at < bytes; at += length ? length : 1) {
        uint32_t code;
        length = text_character(from + at, bytes - at, &code);
        text_append(&whole, length ? from + at : "\xEF\xBF\xBD", length ? length : 3);
    }
    if (!whole.failed && whole.data) value = json_stringn(whole.data, whole.length);
    text_free(&whole);
    return value;
}

json_t *cli_json_text(const char *from) { return cli_json_bytes(from, strlen(from)); }

void cli_put(json_t *object, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(object, key, value) != 0) *ok = false;
}

int cli_print_json(const cli_command *command, json_t *root, bool ok) {
    char *printed = root && ok ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (printed) cli_print("%s\n", printed);
    free(printed);
    json_decref(root);
    return printed ? CLI_OK : cli_fail(command, "no memory is left for the JSON text");
}

/* ---- files ---- */

json_t *cli_json_load(const char *path, size_t flags, json_error_t *out_error) {
    FILE *file = system_open(path, "rb");
    *out_error = (json_error_t){ .line = -1 };
    if (!file) snprintf(out_error->text, sizeof out_error->text, "unable to open %s: %s", path, strerror(errno));
    json_t *root = file ? json_loadf(file, flags, out_error) : NULL;
    if (file) fclose(file);
    return root;
}

bool cli_json_save(const json_t *root, const char *path, size_t flags) {
    FILE *file = system_open(path, "wb");
    const bool written = file && json_dumpf(root, file, flags) == 0;
    return file && fclose(file) == 0 && written;
}

int cli_save(const cli_command *command, const char *path, const text *page) {
    if (page->failed || !page->data) return cli_fail(command, "no memory is left for %s", path);
    FILE *file = system_open(path, "wb");
    if (!file) return cli_fail(command, "%s cannot be written: %s", path, strerror(errno));
    const bool written = fwrite(page->data, 1, page->length, file) == page->length && fflush(file) == 0;
    const int why = errno;
    const bool ordinary = system_is_ordinary(file);
    if (fclose(file) == 0 && written) return CLI_OK;
    if (ordinary) system_remove(path);
    return cli_fail(command, "%s cannot be written: %s", path, strerror(why));
}
