/* chat_text.c: what templates do with text: building, stripping, finding, replacing, printing values as Python does.
 * Texts never change once made, so parts of a text are not copied. */
#include "llm/chat_inside.h"
#include "llm/utf8.h"
#include <stdio.h>

/* ---- where bytes are touched: each of these counts them as work, and the rest is made of these ---- */

void hdl_put(hdl_chat_run *run, hdl_sink *sink, hdl_span text) {
    if (text.count == 0 || !hdl_chat_work(run, 1 + text.count)) return;
    if (text.count > sink->limit || sink->count > sink->limit - text.count) {
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "more than %llu bytes of text", (unsigned long long)sink->limit);
        return;
    }
    if (sink->capacity - sink->count < text.count) {
        const uint64_t capacity = 2 * (sink->count + text.count) + 32;
        uint8_t *bytes = hdl_chat_take(run, capacity, 1);
        if (!bytes) return;
        if (sink->count) memcpy(bytes, sink->bytes, (size_t)sink->count);
        sink->bytes = bytes;
        sink->capacity = capacity;
    }
    memcpy(sink->bytes + sink->count, text.bytes, (size_t)text.count);
    sink->count += text.count;
}

bool hdl_text_same(hdl_chat_run *run, hdl_span a, hdl_span b) {
    return hdl_chat_work(run, 1 + (a.count == b.count ? a.count : 0)) && hdl_same(a, b);
}

int hdl_text_order(hdl_chat_run *run, hdl_span a, hdl_span b) {
    const uint64_t shared = a.count < b.count ? a.count : b.count;
    if (!hdl_chat_work(run, 1 + shared)) return 0;
    /* UTF-8's bytes have the order of the characters */
    const int order = shared ? memcmp(a.bytes, b.bytes, (size_t)shared) : 0;
    return order ? (order > 0) - (order < 0) : (a.count > b.count) - (a.count < b.count);
}

hdl_span hdl_take_character(hdl_chat_run *run, hdl_span *rest, bool from_end) {
    uint32_t code;
    uint64_t bytes = 1;
    /* which takes longer than to compare 4 bytes */
    if (rest->count == 0 || !hdl_chat_work(run, 4)) return hdl_text("");
    if (!from_end) bytes = hdl_utf8_read(rest->bytes, (size_t)rest->count, &code);
    for (uint64_t back = 2; from_end && back <= 4 && back <= rest->count; back++)
        if (hdl_utf8_read(rest->bytes + rest->count - back, (size_t)back, &code) == back) bytes = back;
    const hdl_span taken = from_end ? hdl_cut(*rest, rest->count - bytes, rest->count) : hdl_cut(*rest, 0, bytes);
    *rest = from_end ? hdl_cut(*rest, 0, rest->count - bytes) : hdl_cut(*rest, bytes, rest->count);
    return taken;
}

int64_t hdl_find(hdl_chat_run *run, hdl_span text, hdl_span part, bool from_end) {
    if (part.count == 0) return from_end ? (int64_t)text.count : 0;
    const uint64_t places = part.count <= text.count ? text.count - part.count + 1 : 0;
    for (uint64_t at = 0, passed = 1; at < places; at += passed) {
        const uint8_t *place = text.bytes + (from_end ? places - 1 - at : at);
        passed = 1;
        if (!from_end) {
            const uint8_t *found = memchr(place, part.bytes[0], (size_t)(places - at));
            passed += found ? (uint64_t)(found - place) : places - at;
            place = found;
        }
        const bool begins = place && *place == part.bytes[0];
        if (!hdl_chat_work(run, passed + (begins ? part.count : 0))) return -1;
        if (begins && memcmp(place, part.bytes, (size_t)part.count) == 0) return place - text.bytes;
    }
    return -1;
}

/* ---- parts of a text ---- */

hdl_span hdl_cut(hdl_span text, uint64_t from, uint64_t to) {
    return to > from ? (hdl_span){ text.bytes + from, to - from } : hdl_text("");
}

hdl_span hdl_sunk(const hdl_sink *sink) { return sink->bytes ? (hdl_span){ sink->bytes, sink->count } : hdl_text(""); }

int64_t hdl_count_characters(hdl_chat_run *run, hdl_span text) {
    int64_t count = 0;
    while (hdl_take_character(run, &text, false).count) count++;
    return count;
}

bool hdl_begins(hdl_chat_run *run, hdl_span text, hdl_span with) {
    return with.count <= text.count && hdl_text_same(run, hdl_cut(text, 0, with.count), with);
}
bool hdl_ends(hdl_chat_run *run, hdl_span text, hdl_span with) {
    return with.count <= text.count && hdl_text_same(run, hdl_cut(text, text.count - with.count, text.count), with);
}

bool hdl_is_space(hdl_span character) {
    uint32_t code;
    if (character.count == 0) return false;
    hdl_utf8_read(character.bytes, (size_t)character.count, &code);
    return (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x20) || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

hdl_span hdl_strip(hdl_chat_run *run, hdl_span text, hdl_span set, bool front, bool end) {
    for (int from_end = !front; from_end <= (int)end; from_end++)
        for (hdl_span rest = text, character; (character = hdl_take_character(run, &rest, from_end)).count > 0;
             text = rest)
            if (set.bytes ? hdl_find(run, set, character, false) < 0 : !hdl_is_space(character)) break;
    return text;
}

hdl_span hdl_replace(hdl_chat_run *run, hdl_span text, hdl_span old, hdl_span with, int64_t most) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    for (hdl_span rest = text; most != 0 && !hdl_chat_stopped(run); most--) {
        const int64_t found = hdl_find(run, rest, old, false);
        if (found < 0) break;
        hdl_put(run, &sink, hdl_cut(rest, 0, (uint64_t)found));
        hdl_put(run, &sink, with);
        text = rest = hdl_cut(rest, (uint64_t)found + old.count, rest.count);
        if (old.count) continue;
        /* nothing is before every character and after the last */
        const hdl_span character = hdl_take_character(run, &rest, false);
        if (character.count == 0) break;
        if (most != 1) hdl_put(run, &sink, character);
        if (most != 1) text = rest;
    }
    if (sink.count == 0) return text;
    hdl_put(run, &sink, text);
    return hdl_sunk(&sink);
}

hdl_span hdl_cased(hdl_chat_run *run, uint32_t at, hdl_span text, hdl_case form) {
    uint8_t *bytes = hdl_chat_take(run, text.count, 1);
    bool begins = true;
    for (uint64_t i = 0; bytes && i < text.count; i++) {
        const uint8_t c = text.bytes[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool upper = form == HDL_CASE_UPPER || (begins && form != HDL_CASE_LOWER);
        if (c >= 0x80) {
            hdl_chat_unsupported(run, at, "changing the case of", hdl_cut(text, i, text.count));
            return hdl_text("");
        }
        bytes[i] = !letter ? c : upper ? c & 0xdf : c | 0x20;
        begins = (form == HDL_CASE_TITLE && !letter) ||
                 (form == HDL_CASE_WORDS && (hdl_is_space(hdl_cut(text, i, i + 1)) || memchr("-({[<", c, 5)));
    }
    return bytes && text.count ? (hdl_span){ bytes, text.count } : hdl_text("");
}

hdl_span hdl_joined(hdl_chat_run *run, hdl_span between, const hdl_list *items) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    for (size_t i = 0; i < items->count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, &sink, between);
        hdl_put_value(run, &sink, items->items[i], false);
    }
    return hdl_sunk(&sink);
}

/* ---- values as text ---- */

static void put_number(hdl_chat_run *run, hdl_sink *sink, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    hdl_put(run, sink, hdl_text(text));
}

/* Whether Python's repr shows this character by its number; those that Unicode has not given out are not known here. */
static bool is_hidden(uint32_t code) {
    static const uint32_t ranges[][2] = {
        { 0, 0x1f },          { 0x7f, 0xa0 },       { 0xad, 0xad },         { 0x600, 0x605 },       { 0x61c, 0x61c },
        { 0x6dd, 0x6dd },     { 0x70f, 0x70f },     { 0x1680, 0x1680 },     { 0x180e, 0x180e },     { 0x2000, 0x200f },
        { 0x2028, 0x202f },   { 0x205f, 0x206f },   { 0x3000, 0x3000 },     { 0xd800, 0xf8ff },     { 0xfeff, 0xfeff },
        { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0xe0000, 0xe00ff },   { 0xe01f0, 0x10ffff },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

/* The escape of a character in a text that Python quotes, "" where it stands as it is. */
static void write_escape(uint32_t code, char quote, char out[16]) {
    const char *known = code && code < ' ' ? memchr("\nn\rr\tt", (int)code, 6) : NULL;
    out[0] = 0;
    if (known || code == (uint8_t)quote || code == '\\') snprintf(out, 16, "\\%c", known ? known[1] : (char)code);
    else if (is_hidden(code))
        snprintf(out, 16, code <= 0xff ? "\\x%02x" : code <= 0xffff ? "\\u%04x" : "\\U%08x", code);
}

static void put_quoted(hdl_chat_run *run, hdl_sink *sink, hdl_span text, char quote, const hdl_json_style *json) {
    const hdl_span quotes = { (const uint8_t *)&quote, 1 };
    hdl_span rest = text, character;
    uint64_t done = 0, at = 0;
    char escape[16];
    hdl_put(run, sink, quotes);
    for (; (character = hdl_take_character(run, &rest, false)).count > 0; at += character.count) {
        uint32_t code;
        hdl_utf8_read(character.bytes, (size_t)character.count, &code);
        if (code == HDL_UTF8_INVALID) continue;
        if (json) hdl_json_escape(code, json->ascii, escape);
        else write_escape(code, quote, escape);
        if (!escape[0]) continue;
        hdl_put(run, sink, hdl_cut(text, done, at));
        hdl_put(run, sink, hdl_text(escape));
        done = at + character.count;
    }
    hdl_put(run, sink, hdl_cut(text, done, text.count));
    hdl_put(run, sink, quotes);
}

/* As Python's repr: in double quotes where only single ones stand in it. */
static void put_repr(hdl_chat_run *run, hdl_sink *sink, hdl_span text) {
    const bool single =
        hdl_find(run, text, hdl_text("'"), false) >= 0 && hdl_find(run, text, hdl_text("\""), false) < 0;
    put_quoted(run, sink, text, single ? '"' : '\'', NULL);
}

static void put_items(hdl_chat_run *run, hdl_sink *sink, hdl_value v) {
    const hdl_list *list = v.as.list;
    const char *borders = hdl_is(v, HDL_IS_TUPLE) ? "()" : "[]";
    if (list->view) hdl_put(run, sink, hdl_text(list->view));
    hdl_put(run, sink, (hdl_span){ (const uint8_t *)borders, 1 });
    for (size_t i = 0; i < list->count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, sink, hdl_text(", "));
        hdl_put_value(run, sink, list->items[i], true);
    }
    if (hdl_is(v, HDL_IS_TUPLE) && list->count == 1) hdl_put(run, sink, hdl_text(","));
    hdl_put(run, sink, hdl_text(borders + 1));
    if (list->view) hdl_put(run, sink, hdl_text(")"));
}

static void put_map(hdl_chat_run *run, hdl_sink *sink, const hdl_map *map) {
    hdl_put(run, sink, hdl_text("{"));
    for (size_t i = 0; i < map->count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, sink, hdl_text(", "));
        hdl_put_value(run, sink, map->keys[i], true);
        hdl_put(run, sink, hdl_text(": "));
        hdl_put_value(run, sink, map->values[i], true);
    }
    hdl_put(run, sink, hdl_text("}"));
}

void hdl_put_value(hdl_chat_run *run, hdl_sink *sink, hdl_value v, bool quoted) {
    if (!hdl_chat_enter(run)) return;
    switch (v.kind) {
    case HDL_IS_UNDEFINED: hdl_put(run, sink, hdl_text(quoted ? "Undefined" : "")); break;
    case HDL_IS_NONE: hdl_put(run, sink, hdl_text("None")); break;
    case HDL_IS_BOOL: hdl_put(run, sink, hdl_text(v.as.number ? "True" : "False")); break;
    case HDL_IS_NUMBER: put_number(run, sink, v.as.number); break;
    case HDL_IS_DECIMAL: hdl_put(run, sink, v.as.text); break;
    case HDL_IS_TEXT:
        if (quoted && v.safe) hdl_chat_unsupported(run, run->at, "quoting", hdl_text("what safe gave"));
        else if (quoted) put_repr(run, sink, v.as.text);
        else hdl_put(run, sink, v.as.text);
        break;
    case HDL_IS_LIST: case HDL_IS_TUPLE: case HDL_IS_VIEW: put_items(run, sink, v); break;
    case HDL_IS_MAP: put_map(run, sink, v.as.map); break;
    case HDL_IS_NAMESPACE:
        hdl_put(run, sink, hdl_text("<Namespace "));
        put_map(run, sink, v.as.map);
        hdl_put(run, sink, hdl_text(">"));
        break;
    default: hdl_chat_unsupported(run, run->at, "printing", hdl_text(hdl_kind_name(v)));
    }
    hdl_chat_leave(run);
}

hdl_span hdl_printed(hdl_chat_run *run, hdl_value v) {
    if (v.kind == HDL_IS_TEXT) return v.as.text;
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    hdl_put_value(run, &sink, v, false);
    return hdl_sunk(&sink);
}

/* A new line, where there are lines, with the indent of its level. */
static void put_line(hdl_chat_run *run, hdl_sink *sink, const hdl_json_style *form, uint32_t level) {
    if (!form->indent.bytes) return;
    hdl_put(run, sink, hdl_text("\n"));
    for (uint32_t i = 0; i < level; i++) hdl_put(run, sink, form->indent);
}

/* Numbers, true, false and none become texts. */
static void put_json_key(hdl_chat_run *run, hdl_sink *sink, uint32_t at, hdl_value key,
                         const hdl_json_style *form) {
    const bool text = hdl_is(key, HDL_IS_TEXT);
    if (hdl_is(key, HDL_IS_TUPLE)) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a tuple cannot be a key of JSON,");
    if (!text) hdl_put(run, sink, hdl_text("\""));
    hdl_put_json(run, sink, at, key, form, 0);
    if (!text) hdl_put(run, sink, hdl_text("\""));
}

void hdl_put_json(hdl_chat_run *run, hdl_sink *sink, uint32_t at, hdl_value v, const hdl_json_style *form,
                  uint32_t level) {
    const bool map = v.kind == HDL_IS_MAP, parts = map || hdl_is_list(v);
    if (!hdl_chat_enter(run)) return;
    if (v.kind == HDL_IS_NONE) hdl_put(run, sink, hdl_text("null"));
    else if (v.kind == HDL_IS_BOOL) hdl_put(run, sink, hdl_text(v.as.number ? "true" : "false"));
    else if (v.kind == HDL_IS_NUMBER) put_number(run, sink, v.as.number);
    else if (v.kind == HDL_IS_DECIMAL) hdl_put(run, sink, v.as.text);
    else if (v.kind == HDL_IS_TEXT) put_quoted(run, sink, v.as.text, '"', form);
    else if (!parts) hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s cannot be JSON,", hdl_kind_name(v));
    const hdl_map *pairs = map && form->sorted ? hdl_sorted_map(run, v.as.map) : v.as.map;
    const size_t count = !parts || hdl_chat_stopped(run) ? 0 : map ? pairs->count : v.as.list->count;
    if (parts) hdl_put(run, sink, hdl_text(map ? "{" : "["));
    for (size_t i = 0; i < count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, sink, form->between);
        put_line(run, sink, form, level + 1);
        if (map) {
            put_json_key(run, sink, at, pairs->keys[i], form);
            hdl_put(run, sink, form->colon);
        }
        hdl_put_json(run, sink, at, map ? pairs->values[i] : v.as.list->items[i], form, level + 1);
    }
    if (count) put_line(run, sink, form, level);
    if (parts) hdl_put(run, sink, hdl_text(map ? "}" : "]"));
    hdl_chat_leave(run);
}
