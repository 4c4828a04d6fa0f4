/* text.c: text that grows, and names from outside made harmless in it. */
#include "cli/text.h"
#include <stdarg.h>
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

void text_add_v(text *to, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    if (length < 0) to->failed = true;
    else if (reserve(to, (size_t)length)) {
        vsnprintf(to->data + to->length, (size_t)length + 1, format, again);
        to->length += (size_t)length;
    }
    va_end(again);
}

void text_add(text *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_add_v(to, format, args);
    va_end(args);
}

size_t text_character(const char *at, size_t room, uint32_t *out_code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = room > 0 ? (unsigned char)*at : 0xFF;
    const size_t bytes = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : (first & 0xF0) == 0xE0 ? 3
                         : first >= 0xF0 && first < 0xF5 ? 4 : 0;
    uint32_t code = bytes > 1 ? first & (0x7Fu >> bytes) : first;
    if (bytes == 0 || bytes > room) return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | ((unsigned char)at[i] & 0x3Fu);
    }
    *out_code = code;
    return code >= least[bytes] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF) ? bytes : 0;
}

/* What is obeyed rather than shown: control characters, and those that end a line or turn the direction of what
 * follows. */
static bool is_control(uint32_t code) {
    return code < ' ' || (code >= 0x7F && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

void text_add_printable(text *to, const char *from, size_t bytes, bool one_line) {
    for (const char *const end = from + bytes; from < end;) {
        uint32_t code = 0;
        const size_t length = text_character(from, (size_t)(end - from), &code);
        const bool breaks = length == 1 && (*from == '\n' || *from == '\t');
        if (length == 0) text_add(to, "\\x%02X", (unsigned char)*from);
        else if (breaks && one_line) text_append(to, " ", 1);
        else if (is_control(code) && !breaks) text_add(to, "\\u%04X", (unsigned)code);
        else text_append(to, from, length);
        from += length ? length : 1;
    }
}

/* Bytes of the UTF-8 character that `at` begins with; 0 where it is none that a page may hold. */
static size_t character(const unsigned char *at) {
    uint32_t code = 0;
    const size_t bytes = text_character((const char *)at, 4, &code); /* the ending zero goes on with no character */
    return is_control(code) ? 0 : bytes;
}

size_t text_characters(const char *name) {
    size_t count = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at; count++) {
        const size_t bytes = character(at);
        at += bytes ? bytes : 1;
    }
    return count;
}

size_t text_cut(const char *from, size_t most) {
    const unsigned char *at = (const unsigned char *)from;
    for (size_t bytes; *at && most > 0; most--) at += (bytes = character(at)) ? bytes : 1;
    return (size_t)(at - (const unsigned char *)from);
}

void text_add_folded(text *to, const char *line, size_t columns, size_t below) {
    const char *least = line + text_cut(line, below); /* no break before it */
    for (size_t room = columns; line[text_cut(line, room)]; room = columns - below) {
        const char *end = line + text_cut(line, room);
        while (end > least && *end != ' ') end--;
        if (end <= least) end = least + strcspn(least, " ");
        if (!*end) break;
        text_append(to, line, (size_t)(end - line));
        text_add(to, "\n%*s", (int)below, "");
        line = least = end + strspn(end, " ");
    }
    text_add(to, "%s", line);
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
