/* chat_text.c: what templates do with text: building, stripping, finding, replacing, printing values as Python does.
 * Texts never change once made, so parts of a text are not copied. */
#include "llm/chat_inside.h"
#include "llm/utf8.h"
#include <stdio.h>

/* ---- text that grows ---- */

void hdl_put(hdl_chat_run *run, hdl_sink *sink, hdl_span text) {
    if (hdl_chat_stopped(run) || text.count == 0 || !hdl_chat_step(run, 1 + text.count / 16)) return;
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

hdl_span hdl_sunk(const hdl_sink *sink) { return sink->bytes ? (hdl_span){ sink->bytes, sink->count } : hdl_text(""); }

void hdl_put_number(hdl_chat_run *run, hdl_sink *sink, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    hdl_put(run, sink, hdl_text(text));
}

/* ---- characters ---- */

hdl_span hdl_cut(hdl_span text, uint64_t from, uint64_t to) {
    return to > from ? (hdl_span){ text.bytes + from, to - from } : hdl_text("");
}

size_t hdl_first_character(hdl_span text) {
    uint32_t code;
    return hdl_utf8_read(text.bytes, (size_t)text.count, &code);
}

size_t hdl_last_character(hdl_span text) {
    for (size_t back = 1; back <= 4 && back <= text.count; back++)
        if (!hdl_utf8_more(text.bytes[text.count - back]))
            return hdl_first_character(hdl_cut(text, text.count - back, text.count)) == back ? back : 1;
    return 1;
}

static bool is_space(hdl_span character) {
    uint32_t code;
    hdl_utf8_read(character.bytes, (size_t)character.count, &code);
    return (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x20) || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

size_t hdl_space_in_front(hdl_span text) {
    if (text.count == 0) return 0;
    const size_t bytes = hdl_first_character(text);
    return is_space(hdl_cut(text, 0, bytes)) ? bytes : 0;
}

size_t hdl_space_at_end(hdl_span text) {
    if (text.count == 0) return 0;
    const size_t bytes = hdl_last_character(text);
    return is_space(hdl_cut(text, text.count - bytes, text.count)) ? bytes : 0;
}

/* Bytes of the character if it is one to strip, or 0. */
static size_t stripped(hdl_chat_run *run, hdl_span text, hdl_span set, bool front) {
    if (!hdl_chat_step(run, 1) || text.count == 0) return 0;
    if (!set.bytes) return front ? hdl_space_in_front(text) : hdl_space_at_end(text);
    const size_t bytes = front ? hdl_first_character(text) : hdl_last_character(text);
    return hdl_find(run, set, 0, front ? hdl_cut(text, 0, bytes) : hdl_cut(text, text.count - bytes, text.count)) >= 0 ? bytes : 0;
}

hdl_span hdl_strip(hdl_chat_run *run, hdl_span text, hdl_span set, bool front, bool end) {
    size_t bytes;
    while (front && (bytes = stripped(run, text, set, true)) > 0) text = hdl_cut(text, bytes, text.count);
    while (end && (bytes = stripped(run, text, set, false)) > 0) text.count -= bytes;
    return text;
}

/* ---- finding and replacing ---- */

bool hdl_begins(hdl_span text, hdl_span with) { return with.count <= text.count && hdl_same(hdl_cut(text, 0, with.count), with); }
bool hdl_ends(hdl_span text, hdl_span with) {
    return with.count <= text.count && hdl_same(hdl_cut(text, text.count - with.count, text.count), with);
}

int64_t hdl_find(hdl_chat_run *run, hdl_span text, uint64_t from, hdl_span part) {
    if (part.count == 0) return from <= text.count ? (int64_t)from : -1;
    while (from <= text.count && part.count <= text.count - from) {
        const uint8_t *place = memchr(text.bytes + from, part.bytes[0], (size_t)(text.count - from - part.count + 1));
        if (!place) return -1;
        const uint64_t at = (uint64_t)(place - text.bytes);
        if (!hdl_chat_step(run, 1 + (at - from + part.count) / 16)) return -1;
        if (memcmp(place, part.bytes, (size_t)part.count) == 0) return (int64_t)at;
        from = at + 1;
    }
    return -1;
}

hdl_span hdl_replace(hdl_chat_run *run, hdl_span text, hdl_span old, hdl_span with, int64_t most) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    uint64_t done = 0, from = 0;
    for (; most != 0 && !hdl_chat_stopped(run); most--) {
        const int64_t found = hdl_find(run, text, from, old);
        if (found < 0) break;
        hdl_put(run, &sink, hdl_cut(text, done, (uint64_t)found));
        hdl_put(run, &sink, with);
        done = from = (uint64_t)found + old.count;
        if (old.count == 0) { /* before every character and after the last */
            if (done == text.count) break;
            from += hdl_first_character(hdl_cut(text, done, text.count));
        }
    }
    if (done == 0 && sink.count == 0) return text;
    hdl_put(run, &sink, hdl_cut(text, done, text.count));
    return hdl_sunk(&sink);
}

hdl_span hdl_cased(hdl_chat_run *run, uint32_t at, hdl_span text, hdl_case form) {
    uint8_t *bytes = hdl_chat_take(run, text.count, 1);
    if (!bytes || !hdl_chat_step(run, text.count / 16)) return hdl_text("");
    bool begins = true;
    for (uint64_t i = 0; i < text.count; i++) {
        const uint8_t c = text.bytes[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool upper = form == HDL_CASE_UPPER || (begins && (form == HDL_CASE_CAPITALIZE || form == HDL_CASE_TITLE));
        if (c >= 0x80) {
            hdl_chat_unsupported(run, at, "changing the case of", hdl_cut(text, i, text.count));
            return hdl_text("");
        }
        bytes[i] = !letter ? c : upper ? c & 0xdf : c | 0x20;
        begins = form == HDL_CASE_TITLE && !letter;
    }
    return text.count ? (hdl_span){ bytes, text.count } : text;
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

/* With escapes for `quote`, backslashes and control characters. JSON knows \b \f \u0001, Python \x01. */
static void put_quoted(hdl_chat_run *run, hdl_sink *sink, hdl_span text, char quote, bool json) {
    const hdl_span quotes = { (const uint8_t *)&quote, 1 };
    uint64_t done = 0;
    hdl_put(run, sink, quotes);
    for (uint64_t i = 0; i < text.count && !hdl_chat_stopped(run); i++) {
        const uint8_t c = text.bytes[i];
        char escape[8] = { '\\', 0 };
        if (c == quote || c == '\\') escape[1] = (char)c;
        else if (c == '\n') escape[1] = 'n';
        else if (c == '\r') escape[1] = 'r';
        else if (c == '\t') escape[1] = 't';
        else if (json && (c == '\b' || c == '\f')) escape[1] = c == '\b' ? 'b' : 'f';
        else if (c < 0x20 || (c == 0x7f && !json)) snprintf(escape + 1, sizeof escape - 1, json ? "u%04x" : "x%02x", (unsigned)c);
        else continue;
        hdl_put(run, sink, hdl_cut(text, done, i));
        hdl_put(run, sink, hdl_text(escape));
        done = i + 1;
    }
    hdl_put(run, sink, hdl_cut(text, done, text.count));
    hdl_put(run, sink, quotes);
}

static void put_items(hdl_chat_run *run, hdl_sink *sink, hdl_value v) {
    const bool tuple = v.kind == HDL_IS_TUPLE;
    hdl_put(run, sink, hdl_text(tuple ? "(" : "["));
    for (size_t i = 0; i < v.as.list->count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, sink, hdl_text(", "));
        hdl_put_value(run, sink, v.as.list->items[i], true);
    }
    hdl_put(run, sink, hdl_text(tuple ? v.as.list->count == 1 ? ",)" : ")" : "]"));
}

static void put_map(hdl_chat_run *run, hdl_sink *sink, hdl_value v) {
    hdl_put(run, sink, hdl_text("{"));
    for (size_t i = 0; i < v.as.map->count && !hdl_chat_stopped(run); i++) {
        if (i) hdl_put(run, sink, hdl_text(", "));
        hdl_put_value(run, sink, hdl_text_value(v.as.map->keys[i]), true);
        hdl_put(run, sink, hdl_text(": "));
        hdl_put_value(run, sink, v.as.map->values[i], true);
    }
    hdl_put(run, sink, hdl_text("}"));
}

void hdl_put_value(hdl_chat_run *run, hdl_sink *sink, hdl_value v, bool quoted) {
    if (!hdl_chat_step(run, 1)) return;
    if (++run->depth > HDL_MAX_CHAT_NESTING)
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "lists nested more than %u deep", HDL_MAX_CHAT_NESTING);
    const bool single = v.kind == HDL_IS_TEXT && memchr(v.as.text.bytes, '\'', (size_t)v.as.text.count) &&
                        !memchr(v.as.text.bytes, '"', (size_t)v.as.text.count);
    if (!hdl_chat_stopped(run)) switch (v.kind) {
    case HDL_IS_UNDEFINED: hdl_put(run, sink, hdl_text(quoted ? "Undefined" : "")); break;
    case HDL_IS_NONE: hdl_put(run, sink, hdl_text("None")); break;
    case HDL_IS_BOOL: hdl_put(run, sink, hdl_text(v.as.number ? "True" : "False")); break;
    case HDL_IS_NUMBER: hdl_put_number(run, sink, v.as.number); break;
    case HDL_IS_TEXT:
        if (quoted) put_quoted(run, sink, v.as.text, single ? '"' : '\'', false);
        else hdl_put(run, sink, v.as.text);
        break;
    case HDL_IS_LIST:
    case HDL_IS_TUPLE: put_items(run, sink, v); break;
    case HDL_IS_MAP: put_map(run, sink, v); break;
    default: hdl_chat_unsupported(run, run->at, "printing", hdl_text(hdl_kind_name(v)));
    }
    run->depth--;
}

hdl_span hdl_printed(hdl_chat_run *run, hdl_value v) {
    if (v.kind == HDL_IS_TEXT) return v.as.text;
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    hdl_put_value(run, &sink, v, false);
    return hdl_sunk(&sink);
}

/* What stands between the parts of a list or map: a comma, and a new line with `indent` times `level` blanks. */
static void put_break(hdl_chat_run *run, hdl_sink *sink, bool comma, int64_t indent, uint32_t level) {
    hdl_put(run, sink, hdl_text(!comma ? "" : indent < 0 ? ", " : ","));
    if (indent < 0) return;
    hdl_put(run, sink, hdl_text("\n"));
    for (int64_t i = 0; i < indent * level && !hdl_chat_stopped(run); i++) hdl_put(run, sink, hdl_text(" "));
}

void hdl_put_json(hdl_chat_run *run, hdl_sink *sink, uint32_t at, hdl_value v, int64_t indent, uint32_t level) {
    const bool map = v.kind == HDL_IS_MAP;
    if (!hdl_chat_step(run, 1)) return;
    if (level > HDL_MAX_CHAT_NESTING) hdl_chat_fail(run, HD_STATUS_LIMIT, at, "lists nested more than %u deep", HDL_MAX_CHAT_NESTING);
    if (v.kind == HDL_IS_NONE) hdl_put(run, sink, hdl_text("null"));
    else if (v.kind == HDL_IS_BOOL) hdl_put(run, sink, hdl_text(v.as.number ? "true" : "false"));
    else if (v.kind == HDL_IS_NUMBER) hdl_put_number(run, sink, v.as.number);
    else if (v.kind == HDL_IS_TEXT) put_quoted(run, sink, v.as.text, '"', true);
    else if (!map && !hdl_is_list(v)) hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s cannot be JSON,", hdl_kind_name(v));
    if (hdl_chat_stopped(run) || (!map && !hdl_is_list(v))) return;

    const size_t count = map ? v.as.map->count : v.as.list->count;
    hdl_put(run, sink, hdl_text(map ? "{" : "["));
    for (size_t i = 0; i < count && !hdl_chat_stopped(run); i++) {
        put_break(run, sink, i > 0, indent, level + 1);
        if (map) {
            put_quoted(run, sink, v.as.map->keys[i], '"', true);
            hdl_put(run, sink, hdl_text(": "));
        }
        hdl_put_json(run, sink, at, map ? v.as.map->values[i] : v.as.list->items[i], indent, level + 1);
    }
    if (count) put_break(run, sink, false, indent, level);
    hdl_put(run, sink, hdl_text(map ? "}" : "]"));
}
