/* error.c: the status table's texts, and filling in an hd_error. The first failure wins: later ones are its echo. */
#include "base/base.h"
#include <stdio.h>

typedef struct status_row {
    hd_status   status;
    const char *name, *text, *hint;
} status_row;

static const status_row rows[] = {
#define STATUS_ROW(code, number, name, text, hint) { HD_STATUS_##code, name, text, hint },
    HD_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const status_row *find(hd_status status) {
    static const status_row unknown = { HD_STATUS_INTERNAL, "unknown", "not a status of heddle", "" };
    for (size_t i = 0; i < HDI_COUNT(rows); i++)
        if (rows[i].status == status) return &rows[i];
    return &unknown;
}

const char *hd_status_name(hd_status status) { return find(status)->name; }
const char *hd_status_text(hd_status status) { return find(status)->text; }
const char *hd_status_hint(hd_status status) { return find(status)->hint; }

void hdi_error_line(const hd_error *error, char *out, size_t room) {
    /* A text that tells what to do itself needs no hint. */
    const char *hint = strchr(error->text, ';') ? "" : hd_status_hint(error->status);
    char native[48] = "";
    if (error->native_code && error->backend[0])
        snprintf(native, sizeof native, " (%s code %lld)", error->backend, (long long)error->native_code);
    snprintf(out, room, "%s%s%s: %s%s%s%s%s%s", hd_status_name(error->status), error->op[0] ? " in " : "", error->op,
             error->text[0] ? error->text : hd_status_text(error->status), native, error->device[0] ? " on " : "",
             error->device, hint[0] ? "; " : "", hint);
}

hd_status hdi_fail_v(hd_error *error, hd_status status, const char *format, va_list args) {
    if (error && error->status == HD_OK) {
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
    }
    return status;
}

hd_status hdi_fail(hd_error *error, hd_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hdi_fail_v(error, status, format, args);
    va_end(args);
    return status;
}

hd_status hdi_fail_native(hd_error *error, hd_status status, const char *backend, int64_t native_code,
                          const char *format, ...) {
    if (error && error->status == HD_OK) {
        error->native_code = native_code;
        snprintf(error->backend, sizeof error->backend, "%s", backend);
    }
    va_list args;
    va_start(args, format);
    hdi_fail_v(error, status, format, args);
    va_end(args);
    return status;
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
const char *hd_version(void) { return VERSION_TEXT(HD_VERSION_MAJOR, HD_VERSION_MINOR, HD_VERSION_PATCH); }
