/* caps.c: a device's facts as text and back, for `heddle devices -v`, `heddle explain --caps` and the golden tests. */
#include "facts/caps.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct caps_field {
    const char *name;
    size_t      offset;
} caps_field;

static const caps_field fields[] = {
#define FIELD(field, text) { #field, offsetof(hdi_caps, field) },
    HDI_CAPS_LIST(FIELD)
#undef FIELD
};
static const char *const modes[] = { "fast", "exact" };

void hdi_caps_print(const hdi_caps *caps, hdi_text *out) {
    if (caps->name[0]) hdi_text_add(out, "name %s\n", caps->name);
    for (size_t i = 0; i < HDI_COUNT(fields); i++) {
        uint64_t value;
        memcpy(&value, (const char *)caps + fields[i].offset, sizeof value);
        hdi_text_add(out, "%s %" PRIu64 "\n", fields[i].name, value);
    }
    for (uint32_t i = 0; i < 2 * HDI_CAPS_MODULES; i++)
        if (caps->wrong[i / 2][i % 2])
            hdi_text_add(out, "wrong.%u.%s %" PRIu64 "\n", i / 2, modes[i % 2], caps->wrong[i / 2][i % 2]);
    hdi_choices_print(&caps->choices, out);
    for (uint32_t i = 0; i < HDI_CAPS_REFUSED; i++)
        if (caps->refused[i]) hdi_text_add(out, "refused.%u %" PRIu64 "\n", i, caps->refused[i]);
}

/* Where a fact is kept; NULL where no fact is called so. */
static uint64_t *find_field(hdi_caps *caps, const char *name) {
    for (size_t i = 0; i < HDI_COUNT(fields); i++)
        if (strcmp(fields[i].name, name) == 0) return (uint64_t *)(void *)((char *)caps + fields[i].offset);
    char listed[32];
    for (uint32_t i = 0; i < 2 * HDI_CAPS_MODULES; i++) {
        snprintf(listed, sizeof listed, "wrong.%u.%s", i / 2, modes[i % 2]);
        if (strcmp(listed, name) == 0) return &caps->wrong[i / 2][i % 2];
    }
    for (uint32_t i = 0; i < HDI_CAPS_REFUSED; i++) {
        snprintf(listed, sizeof listed, "refused.%u", i);
        if (strcmp(listed, name) == 0) return &caps->refused[i];
    }
    return NULL;
}

/* One line "name value" without its end; `number` counts from 1. */
static hd_status parse_line(const char *line, size_t bytes, unsigned number, hdi_caps *caps, hd_error *error) {
    char text[256];
    if (bytes >= sizeof text)
        return hdi_fail(error, HD_STATUS_PARSE, "line %u: longer than %zu bytes", number, sizeof text - 1);
    memcpy(text, line, bytes);
    text[bytes] = 0;
    char *value = strchr(text, ' ');
    if (strlen(text) != bytes || !value || value == text || !value[1])
        return hdi_fail(error, HD_STATUS_PARSE, "line %u: expected \"name value\"", number);
    *value++ = 0;
    if (strcmp(text, "name") == 0) {
        if (strlen(value) >= sizeof caps->name)
            return hdi_fail(error, HD_STATUS_PARSE, "line %u: the name is too long", number);
        memcpy(caps->name, value, strlen(value) + 1);
        return HD_OK;
    }
    if (strcmp(text, "choice") == 0 || strcmp(text, "options") == 0) {
        if (hdi_choices_read(line, bytes, &caps->choices)) return HD_OK;
        return hdi_fail(error, HD_STATUS_PARSE, "line %u: not a choice of an option, or one too many", number);
    }
    uint64_t *field = find_field(caps, text);
    if (!field) return hdi_fail(error, HD_STATUS_PARSE, "line %u: no fact is called %s", number, text);
    errno = 0;
    const uint64_t parsed = strtoull(value, NULL, 10);
    if (strspn(value, "0123456789") != strlen(value) || errno)
        return hdi_fail(error, HD_STATUS_PARSE, "line %u: %s is not a whole number of 64 bits", number, text);
    *field = parsed;
    return HD_OK;
}

hd_status hdi_caps_parse(const char *text, size_t bytes, hdi_caps *out_caps, hd_error *error) {
    memset(out_caps, 0, sizeof *out_caps);
    unsigned number = 1;
    for (size_t at = 0; at < bytes; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at;
        if (length > 0 && text[at] != '#') {
            hd_status status = parse_line(text + at, length, number, out_caps, error);
            if (status) return status;
        }
        at += length + 1;
    }
    return HD_OK;
}

const char *hdi_caps_difference(const hdi_caps *a, const hdi_caps *b) {
    if (strcmp(a->name, b->name) != 0) return "name";
    for (size_t i = 0; i < HDI_COUNT(fields); i++)
        if (memcmp((const char *)a + fields[i].offset, (const char *)b + fields[i].offset, sizeof(uint64_t)) != 0)
            return fields[i].name;
    return NULL;
}
