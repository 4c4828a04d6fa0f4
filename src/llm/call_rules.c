/* call_rules.c: what stands in calls of the offered tools, as a grammar: each tool's part of its family's form, with
 * its name and the rules of its schema. */
#include "llm/call_form.h"

hd_status hdl_call_choose(const hdl_tools *tools, const char *word, hdl_call_choice *out, hd_error *error) {
    char quoted[HDL_QUOTE];
    *out = (hdl_call_choice){ 0 };
    if (!word || strcmp(word, "auto") == 0) return HD_OK;
    out->none = strcmp(word, "none") == 0;
    out->required = !out->none;
    if (out->none || strcmp(word, "required") == 0) return HD_OK;
    for (uint32_t tool = hdl_tools_first(tools); tool; tool = hdl_tools_next(tools, tool))
        if (hdl_same(hdl_tool_name(&tools->json, tool), hdl_text(word))) out->tool = tool;
    if (out->tool) return HD_OK;
    return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND,
                    "there is no tool %s to choose; name one of the tools, or auto, none or required",
                    hdl_quote(hdl_text(word), quoted));
}

typedef struct maker {
    hdl_schema_work work;
    const hdl_call_form *form;
    uint32_t list;         /* of tools */
    uint32_t only;         /* the one tool; HDL_NO_VALUE: all */
    uint32_t arguments[HDL_MAX_TOOLS]; /* of each tool that may be called: the rule of what it is called with */
    hdl_property properties[HDL_MAX_PROPERTIES]; /* of one of them, where they stand between tags */
} maker;

#define NO_RULE UINT32_MAX /* it is called with nothing */

static uint32_t next_tool(const maker *m, uint32_t tool) {
    const hdl_json_value *values = m->work.json.values;
    tool = tool ? values[tool].next : values[m->list].first;
    while (tool && m->only && tool != m->only) tool = values[tool].next;
    return tool;
}

/* Whether a name can stand between marks as it is: what ends one, or is passed over before one, is not in it. */
static bool is_plain(hdl_span name) {
    for (uint64_t i = 0; i < name.count; i++) {
        const uint8_t c = name.bytes[i];
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
        if (!word && !strchr("_-.:/", c)) return false;
    }
    return true;
}

static bool refuse_name(maker *m, hdl_span name) {
    char quoted[HDL_QUOTE];
    hdl_fail(m->work.error, HD_STATUS_UNSUPPORTED,
             "%s cannot stand in this model's form of calls; name it with letters, digits and _ - . : / only",
             hdl_quote(name, quoted));
    return false;
}

static bool say_arguments(maker *m, uint32_t rule) {
    return rule == NO_RULE ? hdl_schema_say(&m->work, "nothing") : hdl_schema_say(&m->work, "r%u", rule);
}

/* A tool's part of a rule: the form's text with what is the tool's in it. */
static bool say_tool(maker *m, const char *text, uint32_t tool, uint32_t arguments) {
    const hdl_span name = hdl_tool_name(&m->work.json, tool);
    for (; *text; text++) {
        bool ok;
        if (*text != '%') ok = hdl_schema_say(&m->work, "%c", *text);
        else if (*++text == 'a') ok = say_arguments(m, arguments);
        else if (*text == 't') ok = hdl_schema_say(&m->work, "t%u", tool);
        else if (*text == 'n') ok = hdl_schema_say_text(&m->work, name, true);
        else if (is_plain(name)) ok = hdl_schema_say_text(&m->work, name, false);
        else return refuse_name(m, name);
        if (!ok) return false;
    }
    return true;
}

/* ---- between tags ---- */

/* A text of the form's, or a name between two of them, in a literal. */
static bool say_tag(maker *m, const char *before, hdl_span name, const char *after) {
    return hdl_schema_say(&m->work, "\"") && hdl_schema_say_text(&m->work, hdl_text(before), false) &&
           hdl_schema_say_text(&m->work, name, false) && hdl_schema_say_text(&m->work, hdl_text(after), false) &&
           hdl_schema_say(&m->work, "\" ");
}

/* The rule vN-i of a value: raw, or JSON. */
static bool say_value(maker *m, uint32_t tool, uint32_t number, uint32_t schema) {
    hdl_schema_work *w = &m->work;
    uint32_t types, rule;
    if (!hdl_schema_kinds(w, schema, 0, &types)) return false;
    if (!hdl_schema_is_raw(types))
        return hdl_schema_add(w, schema, &rule) && hdl_schema_say(w, "v%u-%u ::= r%u\n", tool, number, rule);
    return hdl_schema_say(w, "v%u-%u ::= ", tool, number) && hdl_schema_raw(w, schema, 0) && hdl_schema_say(w, "\n");
}

static bool say_argument(maker *m, uint32_t tool, uint32_t number, const hdl_property *p) {
    const hdl_call_tags *tags = m->form->tags;
    const char *line = tags->lines ? "\"\\n\" " : "";
    return hdl_schema_say(&m->work, "(") && say_tag(m, tags->key, p->name, tags->key_end) &&
           (!tags->value[0] || (hdl_schema_say(&m->work, "line ") && say_tag(m, tags->value, hdl_text(""), ""))) &&
           hdl_schema_say(&m->work, "%sv%u-%u %s", line, tool, number, line) &&
           say_tag(m, tags->value_end, hdl_text(""), "") && hdl_schema_say(&m->work, "line)%s ", p->needed ? "" : "?");
}

/* What of a schema is more than its properties cannot be kept to between tags, nor can every name stand there. */
static bool check_properties(maker *m, uint32_t schema, uint32_t count) {
    static const char *const others[] = { "anyOf", "oneOf", "const", "enum" };
    char quoted[HDL_QUOTE];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (schema && hdl_schema_get(&m->work, schema, others[i]))
            return hdl_schema_refuse(&m->work, "this model's calls have a list of properties, and not ", others[i]);
    for (uint32_t i = 0; i < count; i++) {
        const hdl_span name = m->properties[i].name;
        bool plain = name.count > 0;
        for (uint64_t k = 0; k < name.count; k++) plain = plain && name.bytes[k] >= ' ' && !strchr("<>", name.bytes[k]);
        if (!plain)
            return hdl_schema_refuse(&m->work, "in this model's calls no property is called ", hdl_quote(name, quoted));
    }
    return true;
}

/* The rule tN of a tool. */
static bool say_tagged(maker *m, uint32_t tool, uint32_t schema) {
    const hdl_call_tags *tags = m->form->tags;
    const hdl_span name = hdl_tool_name(&m->work.json, tool);
    uint32_t count = 0;
    if (!is_plain(name)) return refuse_name(m, name);
    if (schema && !hdl_schema_properties(&m->work, schema, m->properties, &count)) return false;
    bool ok = check_properties(m, schema, count);
    for (uint32_t i = 0; i < count && ok; i++) ok = say_value(m, tool, i, m->properties[i].schema);
    ok = ok && hdl_schema_say(&m->work, "t%u ::= ", tool) && say_tag(m, tags->name, name, tags->name_end) &&
         hdl_schema_say(&m->work, "line ");
    for (uint32_t i = 0; i < count && ok; i++) ok = say_argument(m, tool, i, &m->properties[i]);
    return ok && say_tag(m, tags->end, hdl_text(""), "") && hdl_schema_say(&m->work, "\n");
}

/* ---- all ---- */

/* The rules of what a tool is called with. */
static bool say_schema(maker *m, uint32_t tool, uint32_t *out_rule) {
    hdl_schema_work *w = &m->work;
    const uint32_t schema = hdl_tool_parameters(&w->json, tool);
    *out_rule = NO_RULE;
    w->root = schema;
    const uint32_t objects = schema ? hdl_schema_of_objects(w, schema) : HDL_NO_VALUE;
    if (schema && !objects) return false;
    if (m->form->tags) return say_tagged(m, tool, objects);
    return !schema || hdl_schema_add(w, objects, out_rule);
}

/* "tool" or "other": a choice of all tools. */
static bool say_choice(maker *m, const char *rule, const char *text) {
    uint32_t number = 0;
    bool ok = hdl_schema_say(&m->work, "%s ::= ", rule);
    for (uint32_t tool = next_tool(m, HDL_NO_VALUE); tool && ok; tool = next_tool(m, tool), number++)
        ok = hdl_schema_say(&m->work, number ? " | " : "") && say_tool(m, text, tool, m->arguments[number]);
    return ok && hdl_schema_say(&m->work, "\n");
}

static bool say_all(maker *m) {
    hdl_schema_work *w = &m->work;
    hd_error *error = w->error, own = { 0 };
    char quoted[HDL_QUOTE];
    uint32_t number = 0;
    bool ok = hdl_schema_begin(w) &&
              hdl_schema_say(w, "root ::= calls\nnothing ::= \"{\" ws \"}\"\nline ::= \"\\n\"?\n%s", m->form->rules);
    w->closing = m->form->tags ? m->form->tags->value_end : NULL;
    for (uint32_t tool = next_tool(m, HDL_NO_VALUE); tool && ok; tool = next_tool(m, tool)) {
        w->error = &own; /* which tool it is goes in front */
        ok = say_schema(m, tool, &m->arguments[number++]);
        w->error = error;
        const char *name = hdl_quote(hdl_tool_name(&w->json, tool), quoted);
        if (!ok) hdl_fail(error, own.status, "tool %s: %s", name, own.text);
    }
    return ok && say_choice(m, "tool", m->form->tool) && (!m->form->other || say_choice(m, "other", m->form->other)) &&
           hdl_schema_end(w);
}

hd_status hdl_call_rules(const hdl_call_form *form, hdl_tools *tools, const hdl_call_choice *choice,
                         hdl_rules_text *out, hd_error *error) {
    hd_error own = { 0 };
    const hd_allocator allocator = tools->json.allocator;
    *out = (hdl_rules_text){ 0 };
    maker *m = hdl_alloc(&allocator, sizeof *m);
    if (!m) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the form of calls");
    *m = (maker){ .work = { .allocator = allocator, .json = tools->json, .error = error ? error : &own },
                  .form = form, .list = tools->list, .only = choice->tool };
    const hd_status status = say_all(m) ? HD_OK : m->work.error->status;
    tools->json = m->work.json;
    *out = m->work.out;
    hdl_free(&allocator, m->work.rules, m->work.rule_room * sizeof *m->work.rules);
    hdl_free(&allocator, m, sizeof *m);
    return status;
}
