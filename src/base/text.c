/* text.c: text that grows while it is built, floats printed so that they read back the same, and words of a line. */
#include "base/base.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void hdi_text_add(hdi_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0 || text->failed ||
        !hdi_grow(text->allocator, &text->bytes, &text->capacity, text->count + (size_t)wanted + 1, 1)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->bytes + text->count, (size_t)wanted + 1, format, args);
    va_end(args);
    text->count += (size_t)wanted;
}

void hdi_text_free(hdi_text *text) {
    hdi_free(text->allocator, text->bytes, text->capacity);
    text->bytes = NULL;
    text->count = 0;
    text->capacity = 0;
}

hd_status hdi_text_out(hdi_text *text, char *out_text, size_t room, size_t *out_needed) {
    const bool cut = out_text && room <= text->count;
    if (out_needed) *out_needed = text->count + 1;
    if (out_text && room > 0 && !text->failed) {
        size_t copied = HDI_MIN(text->count, room - 1);
        if (copied > 0) memcpy(out_text, text->bytes, copied);
        out_text[copied] = 0;
    }
    hdi_text_free(text);
    return text->failed ? HD_STATUS_OUT_OF_HOST_MEMORY : cut ? HD_STATUS_LIMIT : HD_OK;
}

/* Turns the locale's decimal point, whatever bytes it has, into ".". */
static void make_point_plain(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool foreign = !strchr("0123456789+-einfa", *from);
        if (!foreign) *to++ = *from;
        else if (to == text || to[-1] != '.') *to++ = '.';
    }
    *to = 0;
}

void hdi_float_text(float value, char *out) {
    snprintf(out, 32, "nan");
    for (int digits = 1; digits <= 9 && !isnan(value); digits++) {
        snprintf(out, 32, "%.*g", digits, (double)value);
        if (strtof(out, NULL) == value) break;
    }
    make_point_plain(out);
}

static size_t digits_at(const char *text, size_t at, size_t bytes) {
    size_t count = 0;
    while (at + count < bytes && text[at + count] >= '0' && text[at + count] <= '9') count++;
    return count;
}

bool hdi_float_read(const char *text, size_t bytes, float *out) {
    char number[64], point[16];
    size_t at = bytes > 0 && (text[0] == '-' || text[0] == '+');
    if (bytes == 3 && memcmp(text, "nan", 3) == 0) return *out = NAN, true;
    if (bytes == at + 3 && memcmp(text + at, "inf", 3) == 0) return *out = text[0] == '-' ? -INFINITY : INFINITY, true;
    if (bytes > 40) return false;
    size_t whole = digits_at(text, at, bytes), part = 0, point_at = at + whole;
    at = point_at;
    bool has_point = at < bytes && text[at] == '.';
    if (has_point) at += 1 + (part = digits_at(text, at + 1, bytes));
    if (whole + part == 0) return false;
    if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
        at += at + 1 < bytes && (text[at + 1] == '-' || text[at + 1] == '+') ? 2 : 1;
        size_t power = digits_at(text, at, bytes);
        if (power == 0) return false;
        at += power;
    }
    if (at != bytes) return false;
    /* strtof wants the point of the locale, which printing a half shows: "0.5". */
    int shown = snprintf(point, sizeof point, "%.1f", 0.5);
    point[shown > 2 && shown < (int)sizeof point ? shown - 1 : 0] = 0;
    snprintf(number, sizeof number, "%.*s%s%.*s", (int)point_at, text, has_point ? point + 1 : "",
             (int)(bytes - point_at - has_point), text + point_at + has_point);
    float value = strtof(number, NULL);
    if (isinf(value)) return false;
    *out = value;
    return true;
}

hdi_span hdi_word_next(hdi_span *rest) {
    while (rest->at < rest->end && *rest->at == ' ') rest->at++;
    hdi_span word = { rest->at, rest->at };
    while (word.end < rest->end && *word.end != ' ') word.end++;
    rest->at = word.end;
    return word;
}

bool hdi_word_is(hdi_span word, const char *text) {
    return (size_t)(word.end - word.at) == strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

bool hdi_whole_read(hdi_span word, uint64_t most, uint64_t *out) {
    uint64_t value = 0;
    for (const char *at = word.at; at < word.end; at++) {
        const uint64_t digit = (uint64_t)(unsigned char)*at - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) return false;
        value = 10 * value + digit;
    }
    *out = value;
    return word.at < word.end && value <= most;
}
