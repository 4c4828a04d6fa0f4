/* calls.c: see calls.h. */
#include "llm/calls.h"
#include "llm/form/json.h"

/* {"name": ..., "arguments": ...}, and one or several of such */
#define OBJECT(name, arguments, more) \
    "\"{\" ws \"\\\"" name "\\\":\" ws \"\\\"%n\\\",\" ws \"\\\"" arguments "\\\":\" ws %a " more " ws \"}\""
#define LIST "ws \"[\" ws tool (ws \",\" ws tool)* ws \"]\""

static const hdl_call_tags qwen3_coder = { .name = "<function=", .name_end = ">",
                                           .key = "<parameter=", .key_end = ">",
                                           .value = "", .value_end = "</parameter>",
                                           .end = "</function>", .lines = true };
static const hdl_call_tags glm = { .name = "", .name_end = "",
                                   .key = "<arg_key>", .key_end = "</arg_key>",
                                   .value = "<arg_value>", .value_end = "</arg_value>", .end = "" };

static const hdl_call_form forms[] = {
    { .name = "gpt-oss",
      .signs = { "<|channel|>", "functions." },
      .begins = { "<|channel|>commentary to=", "<|channel|>analysis to=", "<|start|>assistant to=" },
      .ends = { "<|call|>", "<|end|>" },
      .first = " to=",
      .prefix = "functions.",
      .in_thoughts = true,
      .rules = "calls ::= \"functions.\" tool\n"
               "head ::= \"<|channel|>commentary\"? kind? \"<|message|>\"\n"
               "kind ::= (\" \" \"<|constrain|>\"? | \"<|constrain|>\") \"json\"\n",
      .tool = "\"%r\" head %a",
      .open = true },
    { .name = "deepseek",
      .signs = { "<｜tool▁calls▁begin｜>" },
      .begins = { "<｜tool▁calls▁begin｜>" },
      .ends = { "<｜tool▁calls▁end｜>" },
      .prefix = "function<｜tool▁sep｜>",
      .text_arguments = true,
      .no_content = true,
      .rules = "calls ::= (\"\\n\"? \"<｜tool▁call▁begin｜>\" tool \"<｜tool▁call▁end｜>\")+ \"\\n\"?\n",
      .tool = "\"function<｜tool▁sep｜>%r\\n```json\\n\" %a \"\\n```\" | \"%r<｜tool▁sep｜>\" %a" },
    { .name = "mistral",
      .signs = { "[TOOL_CALLS]" },
      .begins = { "[TOOL_CALLS]" },
      .rules = "calls ::= " LIST " | other\n",
      .tool = OBJECT("name", "arguments", "(\",\" ws \"\\\"id\\\":\" ws \"\\\"\" [a-zA-Z0-9]{9} \"\\\"\")?"),
      .other = "\"%r\" (\"[CALL_ID]\" [a-zA-Z0-9]{9})? \"[ARGS]\" %a",
      .open = true },
    { .name = "granite", /* and phi-4-mini */
      .signs = { "<|tool_call|>" },
      .begins = { "<|tool_call|>" },
      .ends = { "<|/tool_call|>" },
      .rules = "calls ::= " LIST "\n",
      .tool = OBJECT("name", "arguments", ""),
      .open = true },
    { .name = "hermes", /* qwen, smollm3, granite 4 and others */
      .signs = { "<tool_call>" },
      .but = { "<function=", "<arg_key>" },
      .begins = { "<tool_call>" },
      .ends = { "</tool_call>" },
      .rules = "calls ::= ws tool ws\n",
      .tool = OBJECT("name", "arguments", "") },
    { .name = "qwen3-coder",
      .signs = { "<tool_call>", "<function=" },
      .begins = { "<tool_call>" },
      .ends = { "</tool_call>" },
      .tags = &qwen3_coder,
      .rules = "calls ::= ws tool ws\n",
      .tool = "%t" },
    { .name = "glm",
      .signs = { "<tool_call>", "<arg_key>" },
      .begins = { "<tool_call>" },
      .ends = { "</tool_call>" },
      .tags = &glm,
      .rules = "calls ::= \"\\n\"? tool\n",
      .tool = "%t" },
    { .name = "command-r",
      .signs = { "Action:", "```json" },
      .begins = { "Action: ```json", "Action:```json" },
      .ends = { "```" },
      .rules = "calls ::= " LIST " ws\n",
      .tool = OBJECT("tool_name", "parameters", "") },
    { .name = "llama 3",
      .signs = { "ipython", "\"parameters\": " },
      .begins = { "<|python_tag|>" },
      .first = "{",
      .opens = "{\"name\": \"",
      .rules = "calls ::= ws named (\";\" ws named)*\n"
               "named ::= \"{\" ws \"\\\"name\\\":\" ws \"\\\"\" tool\n"
               "first ::= tool (\";\" ws named)*\n",
      .tool = "\"%n\\\",\" ws \"\\\"parameters\\\":\" ws %a ws \"}\"",
      .open = true },
};

const char *const hdl_call_marks[] = {
    "<|python_tag|>", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "<tool_call>", "</tool_call>", "<|tool_call|>",
    "<|/tool_call|>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", NULL,
};

const hdl_call_form *hdl_call_form_of(hdl_span source) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const hdl_call_form *f = &forms[i];
        bool fits = true;
        for (size_t k = 0; k < 2; k++)
            fits = fits && (!f->signs[k] || hdl_has(source, f->signs[k])) && !(f->but[k] && hdl_has(source, f->but[k]));
        if (fits) return f;
    }
    return NULL;
}

/* ---- a list of calls ---- */

static char *copied(const hd_allocator *allocator, hdl_span text) {
    char *copy = hdl_alloc(allocator, text.count + 1);
    if (copy && text.count) memcpy(copy, text.bytes, (size_t)text.count);
    return copy;
}

static void forget(const hd_allocator *allocator, const char *text) {
    if (text) hdl_free(allocator, (char *)text, strlen(text) + 1);
}

void hdl_calls_cut(hdl_call_list *list, size_t count) {
    for (; list->count > count; list->count--) {
        const hd_tool_call *call = &list->calls[list->count - 1];
        forget(&list->allocator, call->id);
        forget(&list->allocator, call->name);
        forget(&list->allocator, call->arguments);
    }
}

void hdl_calls_free(hdl_call_list *list) {
    if (!list->allocator.resize) return;
    hdl_calls_cut(list, 0);
    hdl_free(&list->allocator, list->calls, list->room * sizeof *list->calls);
    *list = (hdl_call_list){ .allocator = list->allocator };
}

/* ---- reading ---- */

typedef struct call_reader {
    hdl_call_list *list;
    const hdl_call_form *form;
    const hdl_tools *tools;
    hdl_span       rest;
    bool           memory; /* there was enough */
} call_reader;

static bool begins(const call_reader *r, const char *text) {
    const size_t count = strlen(text);
    return r->rest.count >= count && memcmp(r->rest.bytes, text, count) == 0;
}

static hdl_span take(call_reader *r, uint64_t count) {
    const hdl_span taken = { r->rest.bytes, count };
    r->rest = (hdl_span){ r->rest.bytes + count, r->rest.count - count };
    return taken;
}

/* What stands between calls and around them and says nothing. */
static void skip(call_reader *r) {
    static const char *const nothing[] = { " ", "\n", "\r", "\t", ",", ";", "```json", "```",
                                           "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>" };
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        if (!begins(r, nothing[i])) continue;
        take(r, strlen(nothing[i]));
        i = SIZE_MAX; /* from the first one again */
    }
}

/* The text of the object or list that begins here, up to its last bracket; of no bytes: it has no end. */
static hdl_span take_value(call_reader *r) {
    uint64_t depth = 0;
    bool in_string = false;
    for (uint64_t i = 0; i < r->rest.count; i++) {
        const uint8_t c = r->rest.bytes[i];
        if (in_string && c == '\\') i++;
        else if (c == '"') in_string = !in_string;
        else if (in_string) continue;
        else if (c == '{' || c == '[') depth++;
        else if ((c == '}' || c == ']') && --depth == 0) return take(r, i + 1);
    }
    return take(r, 0);
}

static bool is_name(hdl_span text) { return text.count > 0 && text.count <= HDL_MAX_TOOL_NAME && hdl_is_name(text); }

/* Adds a call of these arguments: an object, or a text that is one. */
static bool add(call_reader *r, hdl_span name, hdl_span id, const hdl_json *json, uint32_t arguments) {
    hdl_call_list *list = r->list;
    const hd_allocator *allocator = &list->allocator;
    const hdl_json_value *v = &json->values[arguments];
    if (!arguments || !is_name(name) || list->count == HDL_MAX_CALLS) return false;
    if (v->kind == HDL_JSON_STRING) {
        hdl_json inner = { 0 };
        uint32_t value = HDL_NO_VALUE;
        const hd_status status = hdl_json_read(allocator, v->text, &inner, &value, NULL);
        r->memory &= status != HD_STATUS_OUT_OF_HOST_MEMORY;
        const bool added =
            !status && inner.values[value].kind == HDL_JSON_OBJECT && add(r, name, id, &inner, value);
        hdl_json_free(&inner);
        return added;
    }
    if (v->kind != HDL_JSON_OBJECT) return false;
    r->memory = false;
    if (!hdl_grow(allocator, &list->calls, &list->room, list->count + 1, sizeof *list->calls)) return false;
    hd_tool_call *call = &list->calls[list->count++];
    *call = (hd_tool_call){ .id = is_name(id) ? copied(allocator, id) : NULL,
                            .name = copied(allocator, name),
                            .arguments = hdl_json_write(json, arguments, allocator) };
    r->memory = call->name && call->arguments && (call->id || !is_name(id));
    return r->memory;
}

/* What an object has under one of two names. */
static uint32_t get(const hdl_json *json, uint32_t object, const char *one, const char *other) {
    const uint32_t value = hdl_json_get(json, object, one);
    return value ? value : hdl_json_get(json, object, other);
}

static hdl_span text_of(const hdl_json *json, uint32_t value) {
    return value && json->values[value].kind == HDL_JSON_STRING ? json->values[value].text : hdl_text("");
}

/* {"name", "arguments"} or {"tool_name", "parameters"}, also under "function"; or a list of such objects. */
static bool read_calls(call_reader *r, const hdl_json *json, uint32_t value) {
    const uint32_t function = hdl_json_get(json, value, "function"),
                   from = function && json->values[function].kind == HDL_JSON_OBJECT ? function : value;
    if (json->values[value].kind == HDL_JSON_OBJECT) {
        const uint32_t name = get(json, from, "name", "tool_name");
        const hdl_span id = text_of(json, get(json, value, "id", "tool_call_id"));
        return add(r, text_of(json, name ? name : function), id, json, get(json, from, "arguments", "parameters"));
    }
    for (uint32_t i = json->values[value].first; i; i = json->values[i].next)
        if (json->values[i].kind != HDL_JSON_OBJECT || !read_calls(r, json, i)) return false;
    return true;
}

/* The JSON that begins here: what `name` is called with, or, where that has no bytes, calls. */
static bool read_json(call_reader *r, hdl_span name) {
    hdl_json json = { 0 };
    uint32_t value = HDL_NO_VALUE;
    const hdl_span text = take_value(r);
    const hd_status status = hdl_json_read(&r->list->allocator, text, &json, &value, NULL);
    r->memory &= status != HD_STATUS_OUT_OF_HOST_MEMORY;
    const bool read = !status && (name.count ? add(r, name, hdl_text(""), &json, value) : read_calls(r, &json, value));
    hdl_json_free(&json);
    return read;
}

/* A name, then whatever the form puts in between, then an object. */
static bool read_named(call_reader *r) {
    const char *prefix = r->form->prefix;
    const uint64_t before = prefix && begins(r, prefix) ? strlen(prefix) : 0;
    uint64_t count = 0;
    if (before < r->rest.count && r->rest.bytes[before] != '{') take(r, before); /* else it is a name itself */
    while (count < r->rest.count && !strchr("<[{ \n", r->rest.bytes[count])) count++;
    const hdl_span name = take(r, count);
    while (r->rest.count && *r->rest.bytes != '{') take(r, 1);
    return r->rest.count && name.count && read_json(r, name);
}

/* A call between tags. */
static bool read_tagged(call_reader *r) {
    hdl_tagged_call call = { 0 };
    hdl_json json = { 0 };
    uint32_t value = HDL_NO_VALUE;
    const hd_allocator *allocator = &r->list->allocator;
    bool read = hdl_tags_take(allocator, r->form->tags, r->tools, &r->rest, &call);
    r->memory &= !call.no_memory;
    if (read) {
        const hd_status status = hdl_json_read(allocator, (hdl_span){ call.text, call.count }, &json, &value, NULL);
        r->memory &= status != HD_STATUS_OUT_OF_HOST_MEMORY;
        read = !status && add(r, call.name, hdl_text(""), &json, value);
    }
    hdl_json_free(&json);
    hdl_free(allocator, call.text, call.room);
    return read;
}

bool hdl_calls_read(hdl_call_list *list, const hdl_call_form *form, const hdl_tools *tools, hdl_span text,
                    bool *out_memory) {
    call_reader r = { .list = list, .form = form, .tools = tools, .rest = text, .memory = true };
    const size_t before = list->count;
    bool read = true;
    for (skip(&r); read && r.rest.count; skip(&r))
        read = form->tags                                           ? read_tagged(&r)
               : *r.rest.bytes == '{' || *r.rest.bytes == '[' ? read_json(&r, hdl_text(""))
                                                              : read_named(&r);
    *out_memory = r.memory;
    if (read && list->count > before) return true;
    hdl_calls_cut(list, before);
    return false;
}
