/* schema.c: writes the rules of a schema. Each schema that is met becomes a rule r0, r1, ... of its own, which waits
 * until its turn comes: so a schema may name itself, and nothing is deep. */
#include "llm/form/schema.h"
#include <stdarg.h>
#include <stdio.h>

/* ---- words ---- */

bool hdl_schema_no_memory(hdl_schema_work *w) {
    if (w->json.count >= HDL_MAX_JSON_VALUES)
        return hdl_fail(w->error, HD_STATUS_LIMIT, "schema: it comes to too much"), false;
    return hdl_fail(w->error, HD_STATUS_OUT_OF_HOST_MEMORY, "schema: no memory"), false;
}

bool hdl_schema_refuse(hdl_schema_work *w, const char *what, const char *name) {
    return hdl_fail(w->error, HD_STATUS_UNSUPPORTED, "schema: %s%s; see docs/forms.md", what, name), false;
}

static bool make_room(hdl_schema_work *w, size_t more) {
    if (w->out.count + more > HDL_MAX_JSON_BYTES)
        return hdl_fail(w->error, HD_STATUS_LIMIT, "schema: it is too large"), false;
    return hdl_grow(&w->allocator, &w->out.text, &w->out.room, w->out.count + more, 1) || hdl_schema_no_memory(w);
}

bool hdl_schema_say(hdl_schema_work *w, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (count < 0 || (size_t)count >= sizeof text || !make_room(w, (size_t)count)) return false;
    memcpy(w->out.text + w->out.count, text, (size_t)count);
    w->out.count += (size_t)count;
    return true;
}

bool hdl_schema_say_text(hdl_schema_work *w, hdl_span text, bool json) {
    for (uint64_t i = 0; i < text.count; i++) {
        const uint8_t c = text.bytes[i];
        bool ok;
        if (json && w->closing && c == '<') ok = hdl_schema_say(w, "\\\\u003c");
        else if (json && c == '"') ok = hdl_schema_say(w, "\\\\\\\"");
        else if (json && c == '\\') ok = hdl_schema_say(w, "\\\\\\\\");
        else if (json && c < 0x20) ok = hdl_schema_say(w, "\\\\u%04x", (unsigned)c);
        else if (c == '"' || c == '\\') ok = hdl_schema_say(w, "\\%c", c);
        else if (c < 0x20) ok = hdl_schema_say(w, "\\x%02x", (unsigned)c);
        else ok = hdl_schema_say(w, "%c", c);
        if (!ok) return false;
    }
    return true;
}

/* ---- schemas and their rules ---- */

/* The number of the schema's rule, which is new where the schema was not met before. */
static bool rule_of(hdl_schema_work *w, uint32_t schema, uint32_t *out) {
    if (w->json.values[schema].origin) schema = w->json.values[schema].origin; /* copies are met as what they are of */
    for (*out = 0; *out < w->rule_count; ++*out)
        if (w->rules[*out].schema == schema) return true;
    if (w->rule_count >= HDL_MAX_SCHEMA_RULES)
        return hdl_fail(w->error, HD_STATUS_LIMIT, "schema: more than %u schemas in it", HDL_MAX_SCHEMA_RULES), false;
    if (!hdl_grow(&w->allocator, &w->rules, &w->rule_room, w->rule_count + 1, sizeof *w->rules))
        return hdl_schema_no_memory(w);
    w->rules[w->rule_count++].schema = schema;
    return true;
}

/* Its name, where any value is allowed that of the rule for these. */
static bool say_rule(hdl_schema_work *w, uint32_t schema) {
    uint32_t rule;
    const hdl_json_value *value = &w->json.values[schema];
    if (value->kind == HDL_JSON_TRUE || (value->kind == HDL_JSON_OBJECT && !value->first))
        return hdl_schema_say(w, "any");
    return rule_of(w, schema, &rule) && hdl_schema_say(w, "r%u", rule);
}

bool hdl_schema_count(hdl_schema_work *w, uint32_t schema, const char *name, uint32_t fallback, uint32_t *out) {
    const uint32_t value = hdl_schema_get(w, schema, name);
    const hdl_span text = w->json.values[value].text;
    *out = fallback;
    if (!value) return true;
    uint64_t count = 0;
    bool ok = w->json.values[value].kind == HDL_JSON_NUMBER && text.count <= 9;
    for (uint64_t i = 0; i < text.count && ok; i++) {
        ok = text.bytes[i] >= '0' && text.bytes[i] <= '9';
        count = count * 10 + (uint64_t)(text.bytes[i] - '0');
    }
    *out = (uint32_t)count;
    return ok || hdl_schema_refuse(w, "this is no count: ", name);
}

static uint32_t type_named(hdl_span name) {
    static const struct { const char *name; uint32_t type;
    } names[] = {
        { "null", HDL_TYPE_NULL },       { "boolean", HDL_TYPE_BOOLEAN },
        { "integer", HDL_TYPE_INTEGER }, { "number", HDL_TYPE_INTEGER | HDL_TYPE_FRACTION },
        { "string", HDL_TYPE_STRING },   { "array", HDL_TYPE_ARRAY },
        { "object", HDL_TYPE_OBJECT },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hdl_same(name, hdl_text(names[i].name))) return names[i].type;
    return 0;
}

static uint32_t type_of(const hdl_json_value *value) {
    static const uint32_t types[] = { HDL_TYPE_NULL,   HDL_TYPE_BOOLEAN, HDL_TYPE_BOOLEAN, 0,
                                      HDL_TYPE_STRING, HDL_TYPE_ARRAY,   HDL_TYPE_OBJECT };
    if (value->kind != HDL_JSON_NUMBER) return types[value->kind];
    for (uint64_t i = 0; i < value->text.count; i++)
        if (strchr(".eE", value->text.bytes[i])) return HDL_TYPE_INTEGER | HDL_TYPE_FRACTION; /* 1.0 may be either */
    return HDL_TYPE_INTEGER;
}

uint32_t hdl_schema_types(const hdl_schema_work *w, uint32_t schema) {
    uint32_t types = HDL_TYPE_ANY;
    const uint32_t type = hdl_schema_get(w, schema, "type"), constant = hdl_schema_get(w, schema, "const"),
                   list = hdl_schema_get(w, schema, "enum");
    if (type) types = type_named(w->json.values[type].text);
    if (type && w->json.values[type].kind == HDL_JSON_ARRAY)
        for (uint32_t i = w->json.values[type].first; i; i = w->json.values[i].next)
            types |= type_named(w->json.values[i].text);
    if (constant) types &= type_of(&w->json.values[constant]);
    if (list) {
        uint32_t listed = 0;
        for (uint32_t i = w->json.values[list].first; i; i = w->json.values[i].next)
            listed |= type_of(&w->json.values[i]);
        types &= listed;
    }
    return types;
}

/* ---- values that are named ---- */

static bool say_value(hdl_schema_work *w, uint32_t value) {
    const hdl_json_value v = w->json.values[value];
    const bool is_object = v.kind == HDL_JSON_OBJECT;
    switch (v.kind) {
    case HDL_JSON_NULL: return hdl_schema_say(w, "null");
    case HDL_JSON_FALSE: return hdl_schema_say(w, "false");
    case HDL_JSON_TRUE: return hdl_schema_say(w, "true");
    case HDL_JSON_NUMBER: return hdl_schema_say_text(w, v.text, false);
    case HDL_JSON_STRING:
        if (w->raw) return hdl_schema_say_text(w, v.text, false);
        return hdl_schema_say(w, "\\\"") && hdl_schema_say_text(w, v.text, true) && hdl_schema_say(w, "\\\"");
    case HDL_JSON_ARRAY:
    case HDL_JSON_OBJECT: break;
    }
    if (!hdl_schema_say(w, is_object ? "{" : "[")) return false;
    for (uint32_t i = v.first; i; i = w->json.values[i].next) {
        if (i != v.first && !hdl_schema_say(w, ", ")) return false;
        if (is_object && (!hdl_schema_say(w, "\\\"") || !hdl_schema_say_text(w, w->json.values[i].name, true) ||
                          !hdl_schema_say(w, "\\\": ")))
            return false;
        if (!say_value(w, i)) return false;
    }
    return hdl_schema_say(w, is_object ? "}" : "]");
}

/* Other keywords beside them are refused. */
bool hdl_schema_values(hdl_schema_work *w, uint32_t schema) {
    const uint32_t constant = hdl_schema_get(w, schema, "const"), list = hdl_schema_get(w, schema, "enum");
    const uint32_t type = hdl_schema_get(w, schema, "type");
    for (uint32_t i = w->json.values[schema].first; i; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        char quoted[HDL_QUOTE];
        if (hdl_schema_describes(name) || hdl_same(name, hdl_text("const")) || hdl_same(name, hdl_text("enum")) ||
            hdl_same(name, hdl_text("type")))
            continue;
        return hdl_schema_refuse(w, "beside const or enum stands ", hdl_quote(name, quoted));
    }
    uint32_t types = HDL_TYPE_ANY;
    if (type) {
        types = type_named(w->json.values[type].text);
        for (uint32_t i = w->json.values[type].kind == HDL_JSON_ARRAY ? w->json.values[type].first : 0; i;
             i = w->json.values[i].next)
            types |= type_named(w->json.values[i].text);
    }
    bool any = false;
    for (uint32_t i = list ? w->json.values[list].first : constant; i; i = list ? w->json.values[i].next : 0) {
        const uint32_t has = type_of(&w->json.values[i]);
        const bool fits =
            has == (HDL_TYPE_INTEGER | HDL_TYPE_FRACTION) ? (types & HDL_TYPE_FRACTION) != 0 : (types & has) != 0;
        if (!fits || (list && constant && !hdl_json_same(&w->json, i, constant))) continue;
        const hdl_span text = w->json.values[i].text;
        if (w->raw && hdl_has(text, w->closing)) continue; /* it cannot stand there */
        if (!hdl_schema_say(w, any ? " | \"" : "\"") || !say_value(w, i) || !hdl_schema_say(w, "\"")) return false;
        any = true;
    }
    return any || hdl_schema_say(w, "[]");
}

/* ---- arrays ---- */

/* The items behind the prefix: "items", which is true where it is not there. */
static bool say_items(hdl_schema_work *w, uint32_t schema) {
    const uint32_t items = hdl_schema_get(w, schema, "items");
    return items ? say_rule(w, items) : hdl_schema_say(w, "any");
}

/* Rules rN-i0, rN-i1, ... for what may stand from item i on, and the rule of the array. */
static bool say_array(hdl_schema_work *w, uint32_t rule, uint32_t schema) {
    const uint32_t prefix = hdl_schema_get(w, schema, "prefixItems"), items = hdl_schema_get(w, schema, "items");
    uint32_t least, most, count = 0;
    if (items && w->json.values[items].kind == HDL_JSON_ARRAY)
        return hdl_schema_refuse(w, "items is a list; write ", "prefixItems");
    if (prefix && w->json.values[prefix].kind != HDL_JSON_ARRAY)
        return hdl_schema_refuse(w, "this is no list: ", "prefixItems");
    if (!hdl_schema_count(w, schema, "minItems", 0, &least) ||
        !hdl_schema_count(w, schema, "maxItems", UINT32_MAX, &most))
        return false;
    if (most < least) return hdl_schema_say(w, "r%u-a ::= []\n", rule);
    for (uint32_t i = prefix ? w->json.values[prefix].first : 0; i && count < most;
         i = w->json.values[i].next, count++) {
        if (!hdl_schema_say(w, "r%u-i%u ::= %s%s", rule, count, count < least ? "" : "(", count ? "\",\" ws " : "") ||
            !say_rule(w, i) || !hdl_schema_say(w, " r%u-i%u%s\n", rule, count + 1, count < least ? "" : ")?"))
            return false;
    }
    const uint32_t more_least = least > count ? least - count : 0, more_most = most == UINT32_MAX ? most : most - count;
    if (!hdl_schema_say(w, "r%u-i%u ::= \"\" ", rule, count)) return false;
    const bool has_first = count > 0 || more_most == 0; /* a comma stands before every other item */
    if (!has_first && (!hdl_schema_say(w, more_least ? "" : "(") || !say_items(w, schema) || !hdl_schema_say(w, " ")))
        return false;
    const uint32_t done = has_first ? 0 : 1, rest_least = more_least > done ? more_least - done : 0;
    if (more_most > done) {
        if (!hdl_schema_say(w, "(\",\" ws ") || !say_items(w, schema)) return false;
        if (more_most == UINT32_MAX ? !hdl_schema_say(w, "){%u,}", rest_least)
                                    : !hdl_schema_say(w, "){%u,%u}", rest_least, more_most - done))
            return false;
    }
    if (!hdl_schema_say(w, "%s\n", !has_first && !more_least ? ")?" : "")) return false;
    return hdl_schema_say(w, "r%u-a ::= \"[\" ws r%u-i0 ws \"]\"\n", rule, rule);
}

/* ---- objects ---- */

static int64_t find_property(const hdl_property *list, uint32_t count, hdl_span name) {
    for (uint32_t i = 0; i < count; i++)
        if (hdl_same(list[i].name, name)) return i;
    return -1;
}

bool hdl_schema_properties(hdl_schema_work *w, uint32_t schema, hdl_property *list, uint32_t *count) {
    const uint32_t properties = hdl_schema_get(w, schema, "properties"),
                   required = hdl_schema_get(w, schema, "required");
    const uint32_t others = hdl_schema_get(w, schema, "additionalProperties");
    const hdl_json_value *values = w->json.values;
    *count = 0;
    if (properties && values[properties].kind != HDL_JSON_OBJECT)
        return hdl_schema_refuse(w, "this is no object: ", "properties");
    if (required && values[required].kind != HDL_JSON_ARRAY)
        return hdl_schema_refuse(w, "this is no list: ", "required");
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = values[pass ? required : properties].first; i; i = values[i].next) {
            const hdl_span name = pass ? values[i].text : values[i].name;
            const int64_t known = find_property(list, *count, name);
            if (pass && values[i].kind != HDL_JSON_STRING)
                return hdl_schema_refuse(w, "this is no list of names: ", "required");
            if (known >= 0) {
                if (pass) list[known].needed = true;
                else list[known].schema = i; /* named twice: the last one counts */
                continue;
            }
            if (*count >= HDL_MAX_PROPERTIES)
                return hdl_fail(w->error, HD_STATUS_LIMIT, "schema: an object of more than %u properties",
                                HDL_MAX_PROPERTIES),
                       false;
            list[(*count)++] = (hdl_property){ name, pass ? (others ? others : w->any) : i, pass };
        }
    return true;
}

static bool say_property(hdl_schema_work *w, const hdl_property *p) {
    return hdl_schema_say(w, "\"\\\"") && hdl_schema_say_text(w, p->name, true) && hdl_schema_say(w, "\\\":\" ws ") &&
           say_rule(w, p->schema);
}

/* Bytes of the character at `at`, as a class of the grammar writes it. */
static bool say_in_class(hdl_schema_work *w, hdl_span name, uint64_t at, uint64_t length) {
    if (strchr("]\\^-", name.bytes[at]) && !hdl_schema_say(w, "\\")) return false;
    for (uint64_t i = 0; i < length; i++)
        if (!hdl_schema_say(w, "%c", name.bytes[at + i])) return false;
    return true;
}

static uint64_t length_at(hdl_span name, uint64_t at) {
    uint64_t length = 1;
    while (at + length < name.count && (name.bytes[at + length] & 0xC0) == 0x80) length++;
    return length;
}

/* Names in order, those with characters that JSON would have to escape left out: other names are written without
 * escapes. */
static uint32_t sort_names(const hdl_schema_work *w, const hdl_property *list, uint32_t count,
                           hdl_span *names) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const hdl_span name = list[i].name;
        bool plain = true;
        for (uint64_t k = 0; k < name.count && plain; k++)
            plain = name.bytes[k] >= 0x20 && name.bytes[k] != '"' && name.bytes[k] != '\\' &&
                    !(w->closing && name.bytes[k] == '<');
        if (!plain) continue;
        uint32_t at = kept++;
        for (; at > 0; at--) {
            const hdl_span before = names[at - 1];
            const size_t shorter = (size_t)(before.count < name.count ? before.count : name.count);
            const int order = memcmp(before.bytes, name.bytes, shorter);
            if (order < 0 || (order == 0 && before.count <= name.count)) break;
            names[at] = before;
        }
        names[at] = name;
    }
    return kept;
}

/* The end of the names that go on as names[i] does behind their first `at` bytes, by one character. They stand
 * together. */
static uint32_t end_of_alike(const hdl_span *names, uint32_t i, uint32_t to, uint64_t at) {
    const uint64_t length = length_at(names[i], at);
    uint32_t end = i + 1;
    while (end < to && names[end].count >= at + length &&
           memcmp(names[end].bytes + at, names[i].bytes + at, (size_t)length) == 0)
        end++;
    return end;
}

/* The rule rN-x<from>-<to>-<at>: how a name that is none of `names` can go on behind the first `at` bytes of names
 * from .. to-1, which these have in common. */
static bool say_other_names(hdl_schema_work *w, uint32_t rule, const hdl_span *names, uint32_t from, uint32_t to,
                            uint64_t at) {
    if (from < to && names[from].count > HDL_MAX_KEY_BYTES)
        return hdl_schema_refuse(w, "a property's name is too long beside ", "additionalProperties");
    const bool is_name = from < to && names[from].count == at;
    const uint32_t first = is_name ? from + 1 : from;
    for (uint32_t i = first, end; i < to; i = end) { /* the rules of longer beginnings come before this one */
        end = end_of_alike(names, i, to, at);
        if (!say_other_names(w, rule, names, i, end, at + length_at(names[i], at))) return false;
    }
    const char *const others = w->closing ? "[^\"\\\\\\x00-\\x1f<" : "[^\"\\\\\\x00-\\x1f"; /* nothing of what closes */
    if (!hdl_schema_say(w, "r%u-x%u-%u-%u ::= (%s", rule, from, to, (unsigned)at, others)) return false;
    for (uint32_t i = first; i < to; i = end_of_alike(names, i, to, at))
        if (!say_in_class(w, names[i], at, length_at(names[i], at))) return false;
    if (!hdl_schema_say(w, "] %s]*", others)) return false;
    for (uint32_t i = first, end; i < to; i = end) {
        const uint64_t length = length_at(names[i], at);
        end = end_of_alike(names, i, to, at);
        if (!hdl_schema_say(w, " | \"") || !hdl_schema_say_text(w, (hdl_span){ names[i].bytes + at, length }, false) ||
            !hdl_schema_say(w, "\" r%u-x%u-%u-%u", rule, i, end, (unsigned)(at + length))) return false;
    }
    return hdl_schema_say(w, is_name ? ")\n" : ")?\n");
}

/* The rule rN-p: a pair with a name that is no property's. */
static bool say_others(hdl_schema_work *w, uint32_t rule, const hdl_property *list, uint32_t count, uint32_t others) {
    hdl_span *names = hdl_alloc(&w->allocator, count * sizeof *names);
    if (!names) return hdl_schema_no_memory(w);
    const uint32_t named = sort_names(w, list, count, names);
    const bool ok = say_other_names(w, rule, names, 0, named, 0) &&
                    hdl_schema_say(w, "r%u-p ::= \"\\\"\" r%u-x0-%u-0 \"\\\":\" ws ", rule, rule, named) &&
                    say_rule(w, others) && hdl_schema_say(w, "\n");
    hdl_free(&w->allocator, names, count * sizeof *names);
    return ok;
}

/* The rules rN-i: what may follow when a pair was written and properties from i on are left. Then the object: it begins
 * with one of those properties before which none is needed. */
static bool say_pairs(hdl_schema_work *w, uint32_t rule, const hdl_property *list, uint32_t count, bool has_others) {
    uint32_t first_needed = 0;
    while (first_needed < count && !list[first_needed].needed) first_needed++;
    for (uint32_t i = 0; i < count; i++)
        if (!hdl_schema_say(w, "r%u-%u ::= (\",\" ws ", rule, i) || !say_property(w, &list[i]) ||
            !hdl_schema_say(w, ")%s r%u-%u\n", list[i].needed ? "" : "?", rule, i + 1)) return false;
    if (has_others ? !hdl_schema_say(w, "r%u-%u ::= (\",\" ws r%u-p)*\n", rule, count, rule)
                   : !hdl_schema_say(w, "r%u-%u ::= \"\"\n", rule, count))
        return false;
    if (!hdl_schema_say(w, "r%u-o ::= \"{\" ws (", rule)) return false;
    for (uint32_t i = 0; i < count && i <= first_needed; i++)
        if (!hdl_schema_say(w, i ? " | " : "") || !say_property(w, &list[i]) ||
            !hdl_schema_say(w, " r%u-%u ws", rule, i + 1))
            return false;
    if (first_needed < count) return hdl_schema_say(w, ") \"}\"\n");
    if (has_others && !hdl_schema_say(w, "%sr%u-p r%u-%u ws", count ? " | " : "", rule, rule, count)) return false;
    return hdl_schema_say(w, ")? \"}\"\n");
}

static bool say_object(hdl_schema_work *w, uint32_t rule, uint32_t schema) {
    uint32_t others = hdl_schema_get(w, schema, "additionalProperties"), count = 0;
    hdl_property *list = hdl_alloc(&w->allocator, HDL_MAX_PROPERTIES * sizeof *list);
    if (!list) return hdl_schema_no_memory(w);
    bool ok = hdl_schema_properties(w, schema, list, &count);
    if (!others && !hdl_schema_get(w, schema, "properties")) others = w->any; /* an object of which nothing is said */
    const bool has_others = others && w->json.values[others].kind != HDL_JSON_FALSE;
    ok = ok && (!has_others || say_others(w, rule, list, count, others)) && say_pairs(w, rule, list, count, has_others);
    hdl_free(&w->allocator, list, HDL_MAX_PROPERTIES * sizeof *list);
    return ok;
}

/* ---- a schema ---- */

uint32_t hdl_schema_meant(const hdl_schema_work *w, uint32_t schema) {
    static const struct { const char *name; uint32_t type;
    } keywords[] = {
        { "properties", HDL_TYPE_OBJECT },
        { "required", HDL_TYPE_OBJECT },
        { "additionalProperties", HDL_TYPE_OBJECT },
        { "items", HDL_TYPE_ARRAY },
        { "prefixItems", HDL_TYPE_ARRAY },
        { "minItems", HDL_TYPE_ARRAY },
        { "maxItems", HDL_TYPE_ARRAY },
        { "minLength", HDL_TYPE_STRING },
        { "maxLength", HDL_TYPE_STRING },
        { "pattern", HDL_TYPE_STRING },
        { "format", HDL_TYPE_STRING },
        { "minimum", HDL_TYPE_INTEGER | HDL_TYPE_FRACTION },
        { "maximum", HDL_TYPE_INTEGER | HDL_TYPE_FRACTION },
        { "exclusiveMinimum", HDL_TYPE_INTEGER | HDL_TYPE_FRACTION },
        { "exclusiveMaximum", HDL_TYPE_INTEGER | HDL_TYPE_FRACTION },
    };
    uint32_t types = 0;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (hdl_schema_get(w, schema, keywords[i].name)) types |= keywords[i].type;
    return types;
}

static bool check_types(hdl_schema_work *w, uint32_t schema) {
    const uint32_t type = hdl_schema_get(w, schema, "type");
    char quoted[HDL_QUOTE];
    if (!type) return true;
    const hdl_json_value *value = &w->json.values[type];
    for (uint32_t i = value->kind == HDL_JSON_ARRAY ? value->first : type; i;
         i = value->kind == HDL_JSON_ARRAY ? w->json.values[i].next : 0)
        if (w->json.values[i].kind != HDL_JSON_STRING || !type_named(w->json.values[i].text))
            return hdl_schema_refuse(w, "there is no type ", hdl_quote(w->json.values[i].text, quoted));
    return true;
}

bool hdl_schema_check(hdl_schema_work *w, uint32_t schema) {
    static const char *const known[] = {
        "type",    "enum",        "const",    "properties", "required",         "additionalProperties",
        "items",   "prefixItems", "minItems", "maxItems",   "minLength",        "maxLength",
        "pattern", "format",      "minimum",  "maximum",    "exclusiveMinimum", "exclusiveMaximum",
        "anyOf",   "oneOf",       "allOf",    "$ref",
    };
    for (uint32_t i = w->json.values[schema].first; i; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        char quoted[HDL_QUOTE];
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && !hdl_same(name, hdl_text(known[k]))) k++;
        if (k < sizeof known / sizeof known[0] || hdl_schema_describes(name)) continue;
        if (hdl_same(name, hdl_text("uniqueItems")) && w->json.values[i].kind == HDL_JSON_FALSE) continue;
        return hdl_schema_refuse(w, "it is not known how to keep to ", hdl_quote(name, quoted));
    }
    return check_types(w, schema);
}

/* The rest of a schema whose anyOf or oneOf was taken apart: a copy without these. */
static uint32_t without_choices(hdl_schema_work *w, uint32_t schema) {
    const uint32_t rest = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text(""));
    for (uint32_t i = w->json.values[schema].first; i && rest; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        if (hdl_same(name, hdl_text("anyOf")) || hdl_same(name, hdl_text("oneOf")) || hdl_schema_describes(name))
            continue;
        if (!hdl_json_put(&w->json, rest, name, i)) return hdl_schema_no_memory(w), HDL_NO_VALUE;
    }
    if (!rest) hdl_schema_no_memory(w);
    return rest;
}

bool hdl_schema_choices(hdl_schema_work *w, uint32_t schema, uint32_t *out_list, uint32_t *out_rest) {
    const uint32_t any_of = hdl_schema_get(w, schema, "anyOf"), one_of = hdl_schema_get(w, schema, "oneOf"),
                   list = any_of ? any_of : one_of;
    if (any_of && one_of) return hdl_schema_refuse(w, "there is anyOf beside ", "oneOf");
    if (w->json.values[list].kind != HDL_JSON_ARRAY || !w->json.values[list].first)
        return hdl_schema_refuse(w, "this is no list of schemas: ", any_of ? "anyOf" : "oneOf");
    for (uint32_t i = w->json.values[list].first; i && one_of; i = w->json.values[i].next)
        for (uint32_t k = w->json.values[i].next; k; k = w->json.values[k].next)
            if (!hdl_schema_apart(w, i, k, 0))
                return w->error->status ? false
                                        : hdl_schema_refuse(w, "two may fit at once, so write anyOf in place of ",
                                                            "oneOf");
    *out_list = list;
    *out_rest = without_choices(w, schema);
    return *out_rest != HDL_NO_VALUE;
}

static bool say_choice(hdl_schema_work *w, uint32_t rule, uint32_t schema) {
    uint32_t list, rest;
    if (!hdl_schema_choices(w, schema, &list, &rest)) return false;
    const bool alone = !w->json.values[rest].first;
    if (!hdl_schema_say(w, "r%u ::=", rule)) return false;
    for (uint32_t i = w->json.values[list].first; i; i = w->json.values[i].next) {
        const uint32_t branch = alone ? i : hdl_schema_merge(w, rest, i);
        if (!branch || !hdl_schema_say(w, i == w->json.values[list].first ? " " : " | ") || !say_rule(w, branch))
            return false;
    }
    return hdl_schema_say(w, "\n");
}

/* The parts of a rule, by type. */
static bool say_types(hdl_schema_work *w, uint32_t rule, uint32_t schema, uint32_t types) {
    static const struct { uint32_t type; char letter; } parts[] = {
        { HDL_TYPE_INTEGER, 'n' }, { HDL_TYPE_STRING, 's' }, { HDL_TYPE_ARRAY, 'a' }, { HDL_TYPE_OBJECT, 'o' },
    };
    bool ok = true;
    if (types & HDL_TYPE_OBJECT) ok = say_object(w, rule, schema);
    if (ok && types & HDL_TYPE_ARRAY) ok = say_array(w, rule, schema);
    if (ok && types & HDL_TYPE_STRING)
        ok = hdl_schema_say(w, "r%u-s ::= ", rule) && hdl_schema_string(w, schema) && hdl_schema_say(w, "\n");
    if (ok && types & HDL_TYPE_INTEGER)
        ok = hdl_schema_say(w, "r%u-n ::= ", rule) && hdl_schema_number(w, schema, types & HDL_TYPE_FRACTION) &&
             hdl_schema_say(w, "\n");
    ok = ok && hdl_schema_say(w, "r%u ::= []", rule);
    if (ok && types & HDL_TYPE_NULL) ok = hdl_schema_say(w, " | \"null\"");
    if (ok && types & HDL_TYPE_BOOLEAN) ok = hdl_schema_say(w, " | \"true\" | \"false\"");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && ok; i++)
        if (types & parts[i].type) ok = hdl_schema_say(w, " | r%u-%c", rule, parts[i].letter);
    return ok && hdl_schema_say(w, "\n");
}

static bool say_schema(hdl_schema_work *w, uint32_t rule) {
    const uint32_t schema = w->rules[rule].schema;
    const hdl_json_value value = w->json.values[schema];
    uint32_t other;
    if (value.kind == HDL_JSON_TRUE) return hdl_schema_say(w, "r%u ::= any\n", rule);
    if (value.kind == HDL_JSON_FALSE) return hdl_schema_say(w, "r%u ::= []\n", rule);
    if (value.kind != HDL_JSON_OBJECT)
        return hdl_schema_refuse(w, "a schema is an object, true or false, and not ", "another value");
    if (!hdl_schema_check(w, schema)) return false;
    const uint32_t flat = hdl_schema_flat(w, schema);
    if (!flat) return false;
    if (flat != schema)
        return rule_of(w, flat, &other) && hdl_schema_say(w, "r%u ::= ", rule) && say_rule(w, flat) &&
               hdl_schema_say(w, "\n");
    if (hdl_schema_get(w, schema, "anyOf") || hdl_schema_get(w, schema, "oneOf")) return say_choice(w, rule, schema);
    if (hdl_schema_get(w, schema, "const") || hdl_schema_get(w, schema, "enum"))
        return hdl_schema_say(w, "r%u ::= ", rule) && hdl_schema_values(w, schema) && hdl_schema_say(w, "\n");
    const uint32_t meant = hdl_schema_meant(w, schema), types = hdl_schema_types(w, schema);
    if (hdl_schema_get(w, schema, "type")) return say_types(w, rule, schema, types);
    return meant ? say_types(w, rule, schema, meant) : hdl_schema_say(w, "r%u ::= any\n", rule);
}

/* ---- all ---- */

static const char common[] =
    "any ::= any-object | any-array | string | number | \"true\" | \"false\" | \"null\"\n"
    "any-object ::= \"{\" ws (string \":\" ws any (\",\" ws string \":\" ws any)* ws)? \"}\"\n"
    "any-array ::= \"[\" ws (any (\",\" ws any)* ws)? \"]\"\n"
    "escape ::= \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cefA-CEF] hex hex hex | [dD] [0-7] hex hex))\n"
    "hex ::= [0-9a-fA-F]\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";
static const char strings[] = "string ::= \"\\\"\" char* \"\\\"\"\n"
                              "char ::= [^\"\\\\\\x00-\\x1f] | escape\n";

/* A part of a rule did not fit into the room that it has. */
static bool tell(hdl_schema_work *w, bool ok) {
    if (!ok) hdl_fail(w->error, HD_STATUS_LIMIT, "schema: a name in it is too long");
    return ok;
}

bool hdl_schema_begin(hdl_schema_work *w) {
    w->any = hdl_json_new(&w->json, HDL_JSON_TRUE, hdl_text(""));
    return w->any || hdl_schema_no_memory(w);
}

bool hdl_schema_add(hdl_schema_work *w, uint32_t schema, uint32_t *out_rule) {
    bool ok = rule_of(w, schema, out_rule);
    while (ok && w->rules_done < w->rule_count) ok = say_schema(w, w->rules_done++);
    return tell(w, ok);
}

bool hdl_schema_end(hdl_schema_work *w) {
    if (!make_room(w, sizeof common)) return false;
    memcpy(w->out.text + w->out.count, common, sizeof common - 1);
    w->out.count += sizeof common - 1;
    return w->closing ? hdl_schema_raw_rules(w) : hdl_schema_say(w, "%s", strings);
}

hd_status hdl_schema_rules(const hd_allocator *allocator, hdl_span schema, hdl_rules_text *out, hd_error *error) {
    hd_error own = { 0 };
    hdl_schema_work w = { .allocator = *allocator, .error = error ? error : &own };
    uint32_t rule;
    hd_status status = hdl_json_read(allocator, schema, &w.json, &w.root, w.error);
    if (!status && !(hdl_schema_begin(&w) && hdl_schema_say(&w, "root ::= r0\n") && hdl_schema_add(&w, w.root, &rule) &&
                     hdl_schema_end(&w)))
        status = w.error->status;
    *out = w.out;
    hdl_json_free(&w.json);
    hdl_free(allocator, w.rules, w.rule_room * sizeof *w.rules);
    return status;
}
