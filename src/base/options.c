/* options.c: the one table of options, and the one place that reads the environment. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const names[HDI_OPTION_COUNT] = {
#define OPTION_NAME(field, name, value, help) name,
    HDI_OPTION_LIST(OPTION_NAME)
#undef OPTION_NAME
};

const char *hdi_option_get(hdi_option option) {
    const char *text = getenv(names[option]);
    return text && text[0] ? text : NULL;
}

bool hdi_option_number(hdi_option option, uint64_t low, uint64_t high, uint64_t fallback, uint64_t *out) {
    const char *text = hdi_option_get(option);
    *out = fallback;
    if (!text) return true;
    if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 18) return false;
    *out = strtoull(text, NULL, 10);
    return *out >= low && *out <= high;
}

bool hdi_option_cache_dir(const char *wanted, char *out, size_t room) {
    const char *text = wanted ? wanted : hdi_option_get(HDI_OPTION_CACHE);
    const char *user = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (text) length = text[0] && strcmp(text, "none") != 0 ? snprintf(out, room, "%s", text) : -1;
    else if (user && user[0] == '/') length = snprintf(out, room, "%s/heddle", user);
    else if (home && home[0] == '/') length = snprintf(out, room, "%s/.cache/heddle", home);
    return length > 0 && (size_t)length < room;
}
