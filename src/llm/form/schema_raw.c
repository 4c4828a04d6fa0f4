/* schema_raw.c: values that stand between tags, <parameter=a>...</parameter>: strings as they are, all else as JSON.
 * The text that closes a value begins with "<", has no other, and is in no value. */
#include "llm/form/schema.h"

enum { MOST_DEEP = 8 }; /* choices inside of choices; deeper ones may be anything */

bool hdl_schema_kinds(hdl_schema_work *w, uint32_t schema, uint32_t depth, uint32_t *out) {
    *out = depth > MOST_DEEP || w->json.values[schema].kind != HDL_JSON_FALSE ? HDL_TYPE_ANY : 0;
    if (depth > MOST_DEEP || w->json.values[schema].kind != HDL_JSON_OBJECT) return true;
    const uint32_t flat = hdl_schema_flat(w, schema);
    if (!flat) return false;
    if (flat != schema) return hdl_schema_kinds(w, flat, depth + 1, out);
    const bool named = hdl_schema_get(w, schema, "type") || hdl_schema_get(w, schema, "const") ||
                       hdl_schema_get(w, schema, "enum");
    const uint32_t meant = named ? 0 : hdl_schema_meant(w, schema), any_of = hdl_schema_get(w, schema, "anyOf"),
                   list = any_of ? any_of : hdl_schema_get(w, schema, "oneOf");
    *out = meant ? meant : hdl_schema_types(w, schema);
    if (!list) return true;
    uint32_t types = 0, more;
    for (uint32_t i = w->json.values[list].first; i; i = w->json.values[i].next, types |= more)
        if (!hdl_schema_kinds(w, i, depth + 1, &more)) return false;
    *out = meant ? types : *out & types; /* what a keyword means counts in branches of its own type only */
    return true;
}

static bool say_branches(hdl_schema_work *w, uint32_t schema, uint32_t depth) {
    uint32_t list, rest, types;
    bool any = false;
    if (!hdl_schema_choices(w, schema, &list, &rest)) return false;
    const bool alone = !w->json.values[rest].first;
    for (uint32_t i = w->json.values[list].first; i; i = w->json.values[i].next) {
        const uint32_t branch = alone ? i : hdl_schema_merge(w, rest, i);
        if (!branch || !hdl_schema_kinds(w, branch, depth, &types)) return false;
        if (!types) continue;
        if ((any && !hdl_schema_say(w, " | ")) || !hdl_schema_raw(w, branch, depth)) return false;
        any = true;
    }
    return any || hdl_schema_say(w, "[]");
}

/* A string, null, or either. */
static bool say_plain(hdl_schema_work *w, uint32_t schema) {
    const uint32_t meant = hdl_schema_get(w, schema, "type") ? 0 : hdl_schema_meant(w, schema),
                   types = meant ? meant : hdl_schema_types(w, schema);
    if (types & HDL_TYPE_STRING && !hdl_schema_string(w, schema)) return false;
    return !(types & HDL_TYPE_NULL) || hdl_schema_say(w, types & HDL_TYPE_STRING ? " | \"null\"" : "\"null\"");
}

bool hdl_schema_raw(hdl_schema_work *w, uint32_t schema, uint32_t depth) {
    if (w->json.values[schema].kind == HDL_JSON_OBJECT && !hdl_schema_check(w, schema)) return false;
    const uint32_t flat = hdl_schema_flat(w, schema);
    if (!flat) return false;
    if (flat != schema) return hdl_schema_raw(w, flat, depth + 1);
    const bool chooses = hdl_schema_get(w, schema, "anyOf") || hdl_schema_get(w, schema, "oneOf");
    const bool listed = hdl_schema_get(w, schema, "const") || hdl_schema_get(w, schema, "enum");
    if (!hdl_schema_say(w, "(")) return false;
    w->raw = true;
    const bool ok = chooses  ? say_branches(w, schema, depth + 1)
                    : listed ? hdl_schema_values(w, schema)
                             : say_plain(w, schema);
    w->raw = false;
    return ok && hdl_schema_say(w, ")");
}

/* The rules NAME0, NAME1, ...: how a text that `closing` is not in goes on where its first 0, 1, ... letters stand. */
static bool say_open_text(hdl_schema_work *w, const char *name, const char *no, const char *escape) {
    const char *closing = w->closing;
    if (!hdl_schema_say(w, "%s0 ::= ([^%s<]%s)* (\"<\" %s1)?\n", name, no, escape, name)) return false;
    for (uint32_t i = 1; closing[i]; i++) {
        if (!hdl_schema_say(w, "%s%u ::= (([^%s<%c]%s) %s0 | \"<\" %s1", name, i, no, closing[i], escape, name, name) ||
            (closing[i + 1] && !hdl_schema_say(w, " | \"%c\" %s%u", closing[i], name, i + 1)) ||
            !hdl_schema_say(w, ")?\n"))
            return false;
    }
    return true;
}

bool hdl_schema_raw_rules(hdl_schema_work *w) {
    static const char no[] = "\"\\\\\\x00-\\x1f"; /* in strings of JSON */
    return hdl_schema_say(w, "text ::= text0\nplain ::= [^<]\nstring ::= \"\\\"\" inside0 \"\\\"\"\n"
                             "char ::= [^%s<] | escape\n", no) &&
           say_open_text(w, "text", "", "") && say_open_text(w, "inside", no, " | escape");
}
