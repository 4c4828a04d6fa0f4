/* options.c: the one table of options, and the one place that reads the environment. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include "os/os.h"
#include <stdio.h>
#include <stdlib.h>

static const struct option_row {
    const char *name, *value;
    uint64_t    least, most;
    const char *values;
} rows[HDI_OPTION_COUNT] = {
#define OPTION_ROW(field, name, value, help, least, most, values) { name, value, least, most, values },
    HDI_OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

const char *hdi_option_get(hdi_option option) {
    const char *text = getenv(rows[option].name);
    return text && text[0] ? text : NULL;
}

hd_status hdi_option_refuse(hdi_option option, hd_error *error) {
    return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%s is %s", rows[option].name, rows[option].values);
}

hd_status hdi_option_number(hdi_option option, uint64_t all, uint64_t *out, hd_error *error) {
    const struct option_row *row = &rows[option];
    const char *given = hdi_option_get(option), *text = given ? given : row->value;
    const bool number = hdi_whole_read((hdi_span){ text, text + strlen(text) }, row->most, out) && *out >= row->least;
    if (!number) *out = all;
    if (number || !given) return HD_OK;
    return hdi_option_refuse(option, error);
}

bool hdi_option_cache_dir(const char *wanted, char *out, size_t room) {
    const char *text = wanted ? wanted : hdi_option_get(HDI_OPTION_CACHE);
    char root[1024];
    int length = -1;
    if (text) length = text[0] && strcmp(text, "none") != 0 ? snprintf(out, room, "%s", text) : -1;
    else if (hdi_os_cache_root(root, sizeof root)) length = snprintf(out, room, "%s/heddle", root);
    return length > 0 && (size_t)length < room;
}
