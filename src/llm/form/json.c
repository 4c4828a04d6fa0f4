/* json.c: reads and writes JSON (RFC 8259), UTF-8 only. */
#include "llm/form/json.h"
#include "llm/form/scan.h"
#include "llm/utf8.h"
#include <stdio.h>

typedef struct reader {
    hdl_json *json;
    hdl_scan  scan;
    uint32_t  depth;
    hd_error *error;
} reader;

static uint32_t fail(reader *r, hd_status status, const char *what) {
    size_t line, column;
    hdl_scan_place(&r->scan, &line, &column);
    hdl_fail(r->error, status, "JSON, line %zu, column %zu: %s", line, column, what);
    return HDL_NO_VALUE;
}

/* There was no new value. */
static uint32_t fail_new(reader *r) {
    if (r->json->count >= HDL_MAX_JSON_VALUES) return fail(r, HD_STATUS_LIMIT, "too many values");
    return fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory");
}

static int peek(const reader *r) { return hdl_scan_peek(&r->scan); }
static bool take(reader *r, char wanted) { return hdl_scan_take(&r->scan, wanted); }
static void skip(reader *r) {
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r') r->scan.at++;
}

/* ---- values ---- */

uint32_t hdl_json_new(hdl_json *json, hdl_json_kind kind, hdl_span text) {
    if (json->count >= HDL_MAX_JSON_VALUES ||
        !hdl_grow(&json->allocator, &json->values, &json->room, json->count + 1, sizeof *json->values))
        return HDL_NO_VALUE;
    json->values[json->count] = (hdl_json_value){ .kind = kind, .text = text };
    return json->count++;
}

static void append(hdl_json *json, uint32_t into, uint32_t value) {
    hdl_json_value *list = &json->values[into];
    if (list->last) json->values[list->last].next = value;
    else list->first = value;
    list->last = value;
}

bool hdl_json_put(hdl_json *json, uint32_t into, hdl_span name, uint32_t value) {
    const uint32_t copy = hdl_json_new(json, HDL_JSON_NULL, hdl_text(""));
    if (!copy) return false;
    json->values[copy] = json->values[value];
    if (!json->values[copy].origin) json->values[copy].origin = value;
    json->values[copy].name = name;
    json->values[copy].next = HDL_NO_VALUE;
    append(json, into, copy);
    return true;
}

uint32_t hdl_json_find(const hdl_json *json, uint32_t object, hdl_span name) {
    uint32_t found = HDL_NO_VALUE;
    if (!object || json->values[object].kind != HDL_JSON_OBJECT) return HDL_NO_VALUE;
    for (uint32_t i = json->values[object].first; i; i = json->values[i].next)
        if (hdl_same(json->values[i].name, name)) found = i;
    return found;
}
uint32_t hdl_json_get(const hdl_json *json, uint32_t object, const char *name) {
    return hdl_json_find(json, object, hdl_text(name));
}

static uint32_t length_of(const hdl_json *json, uint32_t list) {
    uint32_t count = 0;
    for (uint32_t i = json->values[list].first; i; i = json->values[i].next) count++;
    return count;
}

bool hdl_json_same(const hdl_json *json, uint32_t a, uint32_t b) {
    const hdl_json_value *left = &json->values[a], *right = &json->values[b];
    if (left->kind != right->kind || !hdl_same(left->text, right->text)) return false;
    if (left->kind < HDL_JSON_ARRAY) return true;
    if (length_of(json, a) != length_of(json, b)) return false;
    uint32_t beside = right->first;
    for (uint32_t i = left->first; i; i = json->values[i].next) {
        const uint32_t other = left->kind == HDL_JSON_OBJECT ? hdl_json_find(json, b, json->values[i].name) : beside;
        if (!other || !hdl_json_same(json, i, other)) return false;
        beside = json->values[beside].next;
    }
    return true;
}

/* ---- reading ---- */

/* Four digits; UINT32_MAX: there are not. */
static uint32_t read_code(reader *r) {
    uint32_t code;
    return hdl_scan_hex(&r->scan, 4, &code) ? code : UINT32_MAX;
}

static void put_code(hdl_json *json, uint32_t code) {
    json->byte_count += hdl_utf8_write(code, json->bytes + json->byte_count);
}

static bool read_escape(reader *r) {
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    const int c = peek(r);
    const char *known = c > 0 ? strchr(names, c) : NULL;
    r->scan.at++;
    if (known) return put_code(r->json, (uint8_t)codes[known - names]), true;
    uint32_t code = c == 'u' ? read_code(r) : UINT32_MAX, low = 0;
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && take(r, '\\') && take(r, 'u')) low = read_code(r);
    if (high && low >= 0xDC00 && low < 0xE000) code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return fail(r, HD_STATUS_PARSE, "this is no escape"), false;
    put_code(r->json, code);
    return true;
}

/* A string behind its quote. What it says is never longer than how it is written. */
static bool read_string(reader *r, hdl_span *out) {
    const uint64_t from = r->json->byte_count;
    while (!take(r, '"')) {
        uint32_t code;
        if (take(r, '\\')) {
            if (!read_escape(r)) return false;
            continue;
        }
        if (peek(r) < 0x20) return fail(r, HD_STATUS_PARSE, "a string is not closed"), false;
        const hdl_span rest = hdl_scan_rest(&r->scan);
        const uint32_t length = hdl_utf8_read(rest.bytes, (size_t)rest.count, &code);
        if (code == HDL_UTF8_INVALID) return fail(r, HD_STATUS_PARSE, "this is no UTF-8"), false;
        put_code(r->json, code);
        r->scan.at += length;
    }
    *out = (hdl_span){ r->json->bytes + from, r->json->byte_count - from };
    return true;
}

static size_t digits(reader *r) {
    const size_t from = r->scan.at;
    while (peek(r) >= '0' && peek(r) <= '9') r->scan.at++;
    return r->scan.at - from;
}

static uint32_t read_number(reader *r) {
    const size_t from = r->scan.at;
    take(r, '-');
    const bool zero = peek(r) == '0';
    const size_t whole = digits(r);
    bool ok = whole == 1 || (whole > 1 && !zero);
    if (take(r, '.')) ok = digits(r) > 0 && ok;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '-')) take(r, '+');
        ok = digits(r) > 0 && ok;
    }
    if (!ok) return fail(r, HD_STATUS_PARSE, "this is no value");
    const hdl_span text = { r->json->bytes + r->json->byte_count, r->scan.at - from };
    memcpy(r->json->bytes + r->json->byte_count, r->scan.text.bytes + from, r->scan.at - from);
    r->json->byte_count += text.count;
    return hdl_json_new(r->json, HDL_JSON_NUMBER, text);
}

static uint32_t read_value(reader *r);

static uint32_t read_list(reader *r, bool is_object) {
    const char close = is_object ? '}' : ']';
    const uint32_t list = hdl_json_new(r->json, is_object ? HDL_JSON_OBJECT : HDL_JSON_ARRAY, hdl_text(""));
    if (!list) return fail_new(r);
    if (++r->depth > HDL_MAX_JSON_DEPTH) return fail(r, HD_STATUS_LIMIT, "values are nested too deeply");
    for (bool first = true; skip(r), !(first && take(r, close)); first = false) {
        hdl_span name = hdl_text("");
        if (is_object) {
            if (!take(r, '"')) return fail(r, HD_STATUS_PARSE, "here must stand a name in quotes");
            if (!read_string(r, &name)) return HDL_NO_VALUE;
            skip(r);
            if (!take(r, ':')) return fail(r, HD_STATUS_PARSE, "a colon is missing");
        }
        const uint32_t value = read_value(r);
        if (!value) return HDL_NO_VALUE;
        r->json->values[value].name = name;
        append(r->json, list, value);
        skip(r);
        if (take(r, close)) break;
        if (!take(r, ',')) return fail(r, HD_STATUS_PARSE, "a comma is missing, or the end of a list");
    }
    r->depth--;
    return list;
}

static uint32_t read_value(reader *r) {
    static const struct {
        const char *word;
        hdl_json_kind kind;
    } words[] = { { "null", HDL_JSON_NULL }, { "false", HDL_JSON_FALSE }, { "true", HDL_JSON_TRUE } };
    hdl_span text;
    uint32_t value = HDL_NO_VALUE;
    skip(r);
    if (take(r, '{')) return read_list(r, true);
    if (take(r, '[')) return read_list(r, false);
    if (take(r, '"')) {
        if (!read_string(r, &text)) return HDL_NO_VALUE;
        value = hdl_json_new(r->json, HDL_JSON_STRING, text);
    } else {
        size_t i = 0;
        while (i < 3 && (r->scan.text.count - r->scan.at < strlen(words[i].word) ||
                         memcmp(r->scan.text.bytes + r->scan.at, words[i].word, strlen(words[i].word)) != 0))
            i++;
        if (i < 3) r->scan.at += strlen(words[i].word);
        value = i < 3 ? hdl_json_new(r->json, words[i].kind, hdl_text("")) : read_number(r);
    }
    return value || r->error->status ? value : fail_new(r);
}

hd_status hdl_json_read(const hd_allocator *allocator, hdl_span text, hdl_json *json, uint32_t *out_value,
                        hd_error *error) {
    hd_error own = { 0 };
    reader r = { .json = json, .scan = { .text = text }, .error = error ? error : &own };
    *json = (hdl_json){ .allocator = *allocator };
    if (text.count > HDL_MAX_JSON_BYTES)
        return hdl_fail(r.error, HD_STATUS_LIMIT, "JSON: a text of %llu bytes; the limit is %u",
                        (unsigned long long)text.count, HDL_MAX_JSON_BYTES);
    json->byte_room = text.count;
    json->bytes = hdl_alloc(allocator, text.count);
    if (!json->bytes || !hdl_grow(allocator, &json->values, &json->room, 1, sizeof *json->values))
        return hdl_fail(r.error, HD_STATUS_OUT_OF_HOST_MEMORY, "JSON: no memory");
    json->values[json->count++] = (hdl_json_value){ 0 };
    *out_value = read_value(&r);
    if (!*out_value) return r.error->status;
    skip(&r);
    if (peek(&r) >= 0) fail(&r, HD_STATUS_PARSE, "something stands behind the value");
    return r.error->status;
}

/* ---- writing ---- */

/* Text that is counted, and put down where there is a place for it. */
typedef struct writer {
    char    *out;
    uint64_t count;
} writer;

static void put(writer *w, hdl_span text) {
    if (w->out && text.count) memcpy(w->out + w->count, text.bytes, (size_t)text.count);
    w->count += text.count;
}

void hdl_json_escape(uint32_t code, bool ascii, char out[16]) {
    static const char known[] = "\nn\rr\tt\bb\ff";
    const char *name = code && code < ' ' ? memchr(known, (int)code, sizeof known - 1) : NULL;
    out[0] = 0;
    if (name || code == '"' || code == '\\') snprintf(out, 16, "\\%c", name ? name[1] : (char)code);
    else if (ascii && code > 0xffff)
        snprintf(out, 16, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
    else if (code < ' ' || (ascii && code >= 0x80)) snprintf(out, 16, "\\u%04x", code);
}

static void put_string(writer *w, hdl_span text) {
    char escape[16];
    put(w, hdl_text("\""));
    for (uint64_t i = 0; i < text.count; i++) { /* byte by byte: those of other characters than ASCII's stand */
        hdl_json_escape(text.bytes[i], false, escape);
        put(w, escape[0] ? hdl_text(escape) : (hdl_span){ &text.bytes[i], 1 });
    }
    put(w, hdl_text("\""));
}

static void put_value(writer *w, const hdl_json *json, uint32_t value) {
    static const char *const words[] = { "null", "false", "true" };
    const hdl_json_value *v = &json->values[value];
    if (v->kind <= HDL_JSON_TRUE) put(w, hdl_text(words[v->kind]));
    else if (v->kind == HDL_JSON_NUMBER) put(w, v->text);
    else if (v->kind == HDL_JSON_STRING) put_string(w, v->text);
    if (v->kind < HDL_JSON_ARRAY) return;
    put(w, hdl_text(v->kind == HDL_JSON_OBJECT ? "{" : "["));
    for (uint32_t i = v->first; i; i = json->values[i].next) {
        if (i != v->first) put(w, hdl_text(", "));
        if (v->kind == HDL_JSON_OBJECT) {
            put_string(w, json->values[i].name);
            put(w, hdl_text(": "));
        }
        put_value(w, json, i);
    }
    put(w, hdl_text(v->kind == HDL_JSON_OBJECT ? "}" : "]"));
}

char *hdl_json_write(const hdl_json *json, uint32_t value, const hd_allocator *allocator) {
    writer w = { 0 };
    put_value(&w, json, value);
    w.out = hdl_alloc(allocator, w.count + 1);
    w.count = 0;
    if (w.out) put_value(&w, json, value);
    return w.out;
}

void hdl_json_free(hdl_json *json) {
    if (!json->allocator.resize) return;
    hdl_free(&json->allocator, json->values, json->room * sizeof *json->values);
    hdl_free(&json->allocator, json->bytes, json->byte_room);
    *json = (hdl_json){ 0 };
}
