/* text.c: text that grows, and names from outside made harmless in it. */
#include "cli/text.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and the zero. */
static bool reserve(text *to, size_t more) {
    if (to->failed) return false;
    if (more < to->capacity && to->length < to->capacity - more) return true;
    size_t capacity = to->capacity ? to->capacity : 4096;
    while (capacity - to->length <= more && capacity <= SIZE_MAX / 4) capacity *= 2;
    char *data = capacity - to->length > more ? realloc(to->data, capacity) : NULL;
    to->failed = !data;
    if (!data) return false;
    to->data = data;
    to->capacity = capacity;
    return true;
}

void text_append(text *to, const char *bytes, size_t count) {
    if (!reserve(to, count)) return;
    memcpy(to->data + to->length, bytes, count);
    to->length += count;
    to->data[to->length] = 0;
}

void text_add(text *to, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    if (length < 0) to->failed = true;
    else if (reserve(to, (size_t)length)) {
        vsnprintf(to->data + to->length, (size_t)length + 1, format, again);
        to->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

/* Bytes of the UTF-8 character that `at` begins with; 0 where it is none that a page may hold. */
static size_t character(const unsigned char *at) {
    if (at[0] < 0x80) return at[0] >= ' ' && at[0] != 0x7F;
    const size_t bytes = at[0] >= 0xC2 && at[0] <= 0xDF ? 2 : (at[0] & 0xF0) == 0xE0 ? 3 : at[0] >= 0xF0 && at[0] <= 0xF4 ? 4 : 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xC0) != 0x80) return 0; /* also where the text ends */
    const bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
    const bool surrogate = at[0] == 0xED && at[1] >= 0xA0, beyond = at[0] == 0xF4 && at[1] >= 0x90;
    /* Characters that turn the direction of what follows, or that end a line, stay out of pages. */
    const bool control = (at[0] == 0xC2 && at[1] < 0xA0) || (at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE) ||
                         (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9);
    return overlong || surrogate || beyond || control ? 0 : bytes;
}

size_t text_characters(const char *name) {
    size_t count = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at; count++) {
        const size_t bytes = character(at);
        at += bytes ? bytes : 1;
    }
    return count;
}

static const char *html_of(unsigned char byte) {
    switch (byte) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void text_add_html(text *to, const char *name, size_t most) {
    const bool whole = text_characters(name) <= most;
    size_t left = whole ? most : most - 1;
    for (const unsigned char *at = (const unsigned char *)name; *at && left > 0; left--) {
        const size_t bytes = character(at);
        const char *escaped = html_of(*at);
        if (bytes == 0) text_add(to, "\xEF\xBF\xBD");
        else if (escaped) text_add(to, "%s", escaped);
        else text_append(to, (const char *)at, bytes);
        at += bytes ? bytes : 1;
    }
    if (!whole) text_add(to, "\xE2\x80\xA6");
}

void text_add_markdown(text *to, const char *name) {
    for (const unsigned char *at = (const unsigned char *)name; *at;) {
        const size_t bytes = character(at);
        const char *escaped = html_of(*at);
        if (bytes == 0) text_add(to, "\xEF\xBF\xBD");
        else if (escaped && *at != '\'' && *at != '"') text_add(to, "%s", escaped);
        else if (strchr("\\`*[]|", *at)) text_add(to, "\\%c", *at);
        else text_append(to, (const char *)at, bytes);
        at += bytes ? bytes : 1;
    }
}

void text_add_number(text *to, double number) {
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    text_add(to, "%s", digits);
}

void text_free(text *of) {
    free(of->data);
    *of = (text){ 0 };
}
