/* tags_read.c: calls between tags, as Qwen3-Coder and GLM write them. What a value is, is told by the types that its
 * tool takes there: a string stands as it is, all else as JSON. */
#include "llm/calls.h"
#include "llm/form/schema.h"

typedef struct reader {
    const hd_allocator *allocator;
    const hdl_call_tags *tags;
    hdl_span rest;
    hdl_tagged_call *call;
    const hdl_tool_key *keys; /* of the tool, as far as they are known */
    size_t key_count;
} reader;

static bool take(reader *r, const char *text) {
    const size_t count = strlen(text);
    if (r->rest.count < count || memcmp(r->rest.bytes, text, count) != 0) return false;
    r->rest = (hdl_span){ r->rest.bytes + count, r->rest.count - count };
    return true;
}

static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
static void skip(reader *r) {
    while (r->rest.count && is_space(*r->rest.bytes)) r->rest = (hdl_span){ r->rest.bytes + 1, r->rest.count - 1 };
}

/* What stands before `end`, which is taken too. False: it does not come. */
static bool take_up_to(reader *r, const char *end, hdl_span *out) {
    const uint64_t count = hdl_position(r->rest, hdl_text(end));
    if (count == r->rest.count) return false;
    *out = (hdl_span){ r->rest.bytes, count };
    r->rest = (hdl_span){ r->rest.bytes + count, r->rest.count - count };
    return take(r, end);
}

static bool take_name(reader *r) {
    hdl_span *name = &r->call->name;
    if (!take(r, r->tags->name)) return false;
    if (r->tags->name_end[0]) return take_up_to(r, r->tags->name_end, name);
    *name = (hdl_span){ r->rest.bytes, 0 };
    for (; r->rest.count && !is_space(*r->rest.bytes) && *r->rest.bytes != '<'; name->count++)
        r->rest = (hdl_span){ r->rest.bytes + 1, r->rest.count - 1 };
    return true;
}

/* ---- values ---- */

static bool put(reader *r, hdl_span text) {
    hdl_tagged_call *c = r->call;
    if (!hdl_grow(r->allocator, &c->text, &c->room, c->count + (size_t)text.count, 1)) {
        c->no_memory = true;
        return false;
    }
    if (text.count) memcpy(c->text + c->count, text.bytes, (size_t)text.count);
    c->count += (size_t)text.count;
    return true;
}

/* A text as JSON. */
static bool put_string(reader *r, hdl_span text) {
    hdl_json json;
    uint32_t value;
    char *written = NULL;
    if (!hdl_json_read(r->allocator, hdl_text("\"\""), &json, &value, NULL)) {
        json.values[value].text = text;
        written = hdl_json_write(&json, value, r->allocator);
    }
    hdl_json_free(&json);
    r->call->no_memory |= !written;
    const bool done = written && put(r, hdl_text(written));
    if (written) hdl_free(r->allocator, written, strlen(written) + 1);
    return done;
}

/* Puts a value that is JSON, as it stands or as Python names it. *out_put: it is. False: there is no memory. */
static bool put_json(reader *r, hdl_span text, bool *out_put) {
    static const char *const words[][2] = { { "True", "true" }, { "False", "false" }, { "None", "null" } };
    hdl_json json;
    uint32_t value;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (hdl_same(text, hdl_text(words[i][0]))) text = hdl_text(words[i][1]);
    const hd_status status = hdl_json_read(r->allocator, text, &json, &value, NULL);
    hdl_json_free(&json);
    r->call->no_memory |= status == HD_STATUS_OUT_OF_HOST_MEMORY;
    *out_put = !status && put(r, text);
    return !r->call->no_memory;
}

static hdl_span without_space(hdl_span text) {
    while (text.count && is_space(text.bytes[0])) text = (hdl_span){ text.bytes + 1, text.count - 1 };
    while (text.count && is_space(text.bytes[text.count - 1])) text.count--;
    return text;
}

static bool put_value(reader *r, hdl_span text, uint32_t types) {
    const hdl_span word = without_space(text);
    const bool is_null = hdl_same(word, hdl_text("null")) || hdl_same(word, hdl_text("None"));
    const bool raw = hdl_schema_is_raw(types);
    bool done = false;
    if (r->tags->lines && text.count && text.bytes[0] == '\n') text = (hdl_span){ text.bytes + 1, text.count - 1 };
    if (r->tags->lines && text.count && text.bytes[text.count - 1] == '\n') text.count--;
    if ((!raw || (types & HDL_TYPE_NULL && is_null)) && !put_json(r, word, &done)) return false;
    return done || put_string(r, text);
}

/* ---- a call ---- */

static uint32_t types_of(const reader *r, hdl_span key) {
    for (size_t i = 0; i < r->key_count; i++)
        if (hdl_same(r->keys[i].name, key)) return r->keys[i].types;
    return HDL_TYPE_ANY;
}

static bool take_argument(reader *r, bool first) {
    hdl_span key, value;
    if (!take_up_to(r, r->tags->key_end, &key)) return false;
    if (r->tags->value[0]) skip(r);
    if (!take(r, r->tags->value)) return false;
    if (!take_up_to(r, r->tags->value_end, &value)) return false;
    return put(r, hdl_text(first ? "" : ", ")) && put_string(r, key) && put(r, hdl_text(": ")) &&
           put_value(r, value, types_of(r, key));
}

bool hdl_tags_take(const hd_allocator *allocator, const hdl_call_tags *tags, const hdl_tools *tools, hdl_span *text,
                   hdl_tagged_call *call) {
    reader r = { .allocator = allocator, .tags = tags, .rest = *text, .call = call };
    *call = (hdl_tagged_call){ 0 };
    bool ok = take_name(&r) && put(&r, hdl_text("{"));
    bool first = true;
    r.keys = hdl_tools_keys(tools, call->name, &r.key_count);
    for (skip(&r); ok && take(&r, tags->key); skip(&r), first = false) ok = take_argument(&r, first);
    ok = ok && (tags->end[0] ? take(&r, tags->end) : r.rest.count == 0) && put(&r, hdl_text("}"));
    *text = r.rest;
    return ok;
}
