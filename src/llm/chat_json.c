/* chat_json.c: JSON from outside as values of a template: tools, and what they are called with. Numbers that are not
 * whole, or do not fit, stand as Python would print them. */
#include "llm/chat_inside.h"
#include <stdio.h>

/* The whole number that a text of JSON is; false: it is another one, or too large. */
static bool read_whole(hdl_span text, int64_t *out) {
    const bool below = text.count > 0 && text.bytes[0] == '-';
    int64_t number = 0;
    for (uint64_t i = below; i < text.count; i++) {
        const int digit = text.bytes[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digit, &number))
            return false; /* counted below 0, where one more fits */
    }
    *out = below ? number : -number;
    return below || number != INT64_MIN;
}

/* The digits of a number without those that say nothing, at most `room`, and the place of the point behind the first of
 * them; its count. */
static uint32_t read_digits(hdl_span text, char *digits, uint32_t room, int64_t *out_point) {
    uint32_t count = 0;
    int64_t point = 0, power = 0;
    bool behind = false, lost = false;
    uint64_t i = text.bytes[0] == '-';
    for (; i < text.count && (text.bytes[i] | 0x20) != 'e'; i++) {
        if (text.bytes[i] == '.') {
            behind = true;
            continue;
        }
        if (count == 0 && text.bytes[i] == '0') {
            point -= behind;
            continue;
        }
        point += !behind;
        lost |= count == room;
        if (count < room) digits[count++] = (char)text.bytes[i];
    }
    bool below = false;
    for (i++; i < text.count && power < 100000; i++) {
        below |= text.bytes[i] == '-';
        if (text.bytes[i] >= '0') power = 10 * power + text.bytes[i] - '0';
    }
    *out_point = point + (below ? -power : power);
    while (!lost && count > 0 && digits[count - 1] == '0') count--;
    return count;
}

/* As Python's repr writes a number of up to 15 digits; longer ones, which it rounds, and those that it takes for
 * infinite or for 0, stand as they are. */
static hdl_span printed_number(hdl_chat_run *run, hdl_span text) {
    enum { DIGITS = 15 };
    char digits[DIGITS + 2], out[64];
    int64_t point;
    const uint32_t count = read_digits(text, digits, DIGITS + 1, &point);
    const char *sign = text.bytes[0] == '-' ? "-" : "";
    if (count > DIGITS || point > 308 || (count && point < -306)) return text;
    digits[count] = 0;
    if (count == 0) {
        snprintf(out, sizeof out, "%s0.0", sign);
    } else if (point > 16 || point < -3) {
        snprintf(out, sizeof out, "%s%c%s%se%+03d", sign, digits[0], count > 1 ? "." : "", digits + 1, (int)point - 1);
    } else if (point <= 0) {
        snprintf(out, sizeof out, "%s0.%.*s%s", sign, (int)-point, "000", digits);
    } else {
        const uint32_t whole = count < (uint32_t)point ? count : (uint32_t)point;
        snprintf(out, sizeof out, "%s%.*s%.*s.%s", sign, (int)whole, digits, (int)(point - whole), "0000000000000000",
                 count > whole ? digits + whole : "0");
    }
    const size_t bytes = strlen(out);
    uint8_t *kept = hdl_chat_take(run, bytes, 1);
    if (!kept) return text;
    memcpy(kept, out, bytes);
    return (hdl_span){ kept, bytes };
}

static hdl_value number_of(hdl_chat_run *run, hdl_span text) {
    int64_t whole;
    if (read_whole(text, &whole)) return hdl_number(whole);
    const bool fraction = memchr(text.bytes, '.', (size_t)text.count) || memchr(text.bytes, 'e', (size_t)text.count) ||
                          memchr(text.bytes, 'E', (size_t)text.count);
    return (hdl_value){ .kind = HDL_IS_DECIMAL, .as.text = fraction ? printed_number(run, text) : text };
}

static hdl_value parts_of(hdl_chat_run *run, const hdl_json *json, const hdl_json_value *v) {
    const bool map = v->kind == HDL_JSON_OBJECT;
    const hdl_value whole = map ? hdl_map_value(run, HDL_IS_MAP) : hdl_list_value(run, HDL_IS_LIST, 0);
    size_t capacity = 0;
    for (uint32_t i = v->first; i && !hdl_chat_stopped(run); i = json->values[i].next) {
        const hdl_value part = hdl_value_of_json(run, json, i);
        if (map) hdl_map_set(run, whole.as.map, hdl_text_value(json->values[i].name), part);
        else hdl_list_add(run, whole.as.list, &capacity, part);
    }
    return whole;
}

hdl_value hdl_value_of_json(hdl_chat_run *run, const hdl_json *json, uint32_t number) {
    hdl_value value = hdl_none();
    if (!number || !hdl_chat_enter(run)) return value;
    const hdl_json_value *v = &json->values[number];
    switch (v->kind) {
    case HDL_JSON_NULL: break;
    case HDL_JSON_FALSE: case HDL_JSON_TRUE: value = hdl_bool(v->kind == HDL_JSON_TRUE); break;
    case HDL_JSON_NUMBER: value = number_of(run, v->text); break;
    case HDL_JSON_STRING: value = hdl_text_value(v->text); break;
    case HDL_JSON_ARRAY: case HDL_JSON_OBJECT: value = parts_of(run, json, v); break;
    }
    hdl_chat_leave(run);
    return value;
}

hdl_value hdl_text_of_json(hdl_chat_run *run, const hdl_json *json, uint32_t number) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    const hdl_json_style plain = { .between = hdl_text(", "), .colon = hdl_text(": ") };
    hdl_put_json(run, &sink, 0, hdl_value_of_json(run, json, number), &plain, 0);
    return hdl_text_value(hdl_sunk(&sink));
}
