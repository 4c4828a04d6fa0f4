/* schema_merge.c: $ref and allOf: schemas put into one. What cannot be put into one is refused by its name. */
#include "llm/form/schema.h"

bool hdl_schema_describes(hdl_span name) {
    static const char *const names[] = {
        "title", "description", "default",    "examples", "$comment",  "$schema",          "$id",
        "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "contentMediaType", "contentEncoding"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hdl_same(name, hdl_text(names[i]))) return true;
    return false;
}

static uint32_t no_memory(hdl_schema_work *w) { return hdl_schema_no_memory(w), HDL_NO_VALUE; }

static bool is_named(hdl_span name, const char *wanted) { return hdl_same(name, hdl_text(wanted)); }

/* ---- $ref ---- */

/* Is the piece of a pointer this name? ~0 is ~, ~1 is /. */
static bool fits_name(hdl_span piece, hdl_span name) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < piece.count; i++, at++) {
        uint8_t c = piece.bytes[i];
        if (c == '~' && i + 1 < piece.count) c = piece.bytes[++i] == '1' ? '/' : '~';
        if (at >= name.count || name.bytes[at] != c) return false;
    }
    return at == name.count;
}

static uint32_t go_down(const hdl_schema_work *w, uint32_t value, hdl_span piece) {
    uint32_t number = 0, found = HDL_NO_VALUE;
    const bool is_list = w->json.values[value].kind == HDL_JSON_ARRAY;
    for (uint64_t i = 0; i < piece.count && is_list; i++) {
        if (piece.bytes[i] < '0' || piece.bytes[i] > '9' || number > HDL_MAX_JSON_VALUES) return HDL_NO_VALUE;
        number = number * 10 + (uint32_t)(piece.bytes[i] - '0');
    }
    for (uint32_t i = w->json.values[value].first; i; i = w->json.values[i].next)
        if (is_list ? number-- == 0 : fits_name(piece, w->json.values[i].name)) found = i;
    return found;
}

static uint32_t find_ref(hdl_schema_work *w, uint32_t ref) {
    const hdl_span text = w->json.values[ref].text;
    uint32_t value = w->root;
    char quoted[HDL_QUOTE];
    if (w->json.values[ref].kind != HDL_JSON_STRING || !text.count || text.bytes[0] != '#' ||
        (text.count > 1 && text.bytes[1] != '/') || memchr(text.bytes, '%', (size_t)text.count)) {
        hdl_schema_refuse(w, "a $ref names a place in the schema, such as #/$defs/a, and not ",
                          hdl_quote(text, quoted));
        return HDL_NO_VALUE;
    }
    for (uint64_t at = 1; at < text.count && value;) {
        const uint64_t from = ++at;
        while (at < text.count && text.bytes[at] != '/') at++;
        value = go_down(w, value, (hdl_span){ text.bytes + from, at - from });
    }
    if (!value) hdl_fail(w->error, HD_STATUS_NAME_NOT_FOUND, "schema: $ref %s is not in it", hdl_quote(text, quoted));
    return value;
}

/* ---- keywords ---- */

/* What a number says, near enough to tell which is larger. */
static double value_of(hdl_span text) {
    double value = 0, scale = 1;
    int64_t power = 0, sign = 1;
    uint64_t i = text.count && text.bytes[0] == '-' ? 1 : 0;
    bool behind = false;
    for (; i < text.count && text.bytes[i] != 'e' && text.bytes[i] != 'E'; i++) {
        if (text.bytes[i] == '.') behind = true;
        else value = value * 10 + (text.bytes[i] - '0'), power -= behind;
    }
    if (++i < text.count && (text.bytes[i] == '-' || text.bytes[i] == '+')) sign = text.bytes[i++] == '-' ? -1 : 1;
    int64_t written = 0;
    for (; i < text.count && written < 10000; i++) written = written * 10 + (text.bytes[i] - '0');
    power += sign * written;
    for (int64_t n = power < 0 ? -power : power; n > 0 && scale < 1e300; n--) scale *= 10;
    value = power < 0 ? value / scale : value * scale;
    return text.count && text.bytes[0] == '-' ? -value : value;
}

/* {"allOf": [a, b]}, or one of the two where the other takes everything. */
static uint32_t both(hdl_schema_work *w, uint32_t a, uint32_t b) {
    if (w->json.values[a].kind == HDL_JSON_TRUE) return b;
    if (w->json.values[b].kind == HDL_JSON_TRUE) return a;
    const uint32_t list = hdl_json_new(&w->json, HDL_JSON_ARRAY, hdl_text(""));
    const uint32_t schema = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text(""));
    if (!list || !schema || !hdl_json_put(&w->json, list, hdl_text(""), a) ||
        !hdl_json_put(&w->json, list, hdl_text(""), b) || !hdl_json_put(&w->json, schema, hdl_text("allOf"), list))
        return no_memory(w);
    return schema;
}

static uint32_t types_of_both(hdl_schema_work *w, uint32_t a, uint32_t b) {
    static const struct { const char *name; uint32_t types;
    } names[] = {
        { "null", HDL_TYPE_NULL },   { "boolean", HDL_TYPE_BOOLEAN }, { "string", HDL_TYPE_STRING },
        { "array", HDL_TYPE_ARRAY }, { "object", HDL_TYPE_OBJECT },
    };
    const uint32_t types = hdl_schema_types(w, a) & hdl_schema_types(w, b),
                   list = hdl_json_new(&w->json, HDL_JSON_ARRAY, hdl_text(""));
    bool ok = list != HDL_NO_VALUE;
    for (size_t i = 0; i <= sizeof names / sizeof names[0] && ok; i++) {
        const bool numbers = i == sizeof names / sizeof names[0];
        const char *name = !numbers ? names[i].name : types & HDL_TYPE_FRACTION ? "number" : "integer";
        if (!(types & (numbers ? HDL_TYPE_INTEGER : names[i].types))) continue;
        const uint32_t value = hdl_json_new(&w->json, HDL_JSON_STRING, hdl_text(name));
        ok = value && hdl_json_put(&w->json, list, hdl_text(""), value);
    }
    return ok ? list : no_memory(w);
}

/* A list with what both enums have, or both requireds together. */
static uint32_t lists_of_both(hdl_schema_work *w, uint32_t a, uint32_t b, bool common) {
    const uint32_t list = hdl_json_new(&w->json, HDL_JSON_ARRAY, hdl_text(""));
    bool ok = list != HDL_NO_VALUE;
    for (uint32_t i = w->json.values[a].first; i && ok; i = w->json.values[i].next) {
        bool found = !common;
        for (uint32_t k = w->json.values[b].first; k && !found; k = w->json.values[k].next)
            found = hdl_json_same(&w->json, i, k);
        ok = !found || hdl_json_put(&w->json, list, hdl_text(""), i);
    }
    for (uint32_t i = w->json.values[b].first; i && ok && !common; i = w->json.values[i].next)
        ok = hdl_json_put(&w->json, list, hdl_text(""), i);
    return ok ? list : no_memory(w);
}

/* What a schema says of a property. */
static uint32_t property_of(const hdl_schema_work *w, uint32_t schema, hdl_span name) {
    const uint32_t known = hdl_json_find(&w->json, hdl_schema_get(w, schema, "properties"), name),
                   others = hdl_schema_get(w, schema, "additionalProperties");
    return known ? known : others ? others : w->any;
}

static uint32_t properties_of_both(hdl_schema_work *w, uint32_t a, uint32_t b) {
    const uint32_t out = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text("")), schemas[] = { a, b };
    if (!out) return no_memory(w);
    for (uint32_t n = 0; n < 2; n++) {
        const uint32_t properties = hdl_schema_get(w, schemas[n], "properties");
        for (uint32_t i = w->json.values[properties].first; i; i = w->json.values[i].next) {
            const hdl_span name = w->json.values[i].name;
            if (hdl_json_find(&w->json, out, name)) continue;
            const uint32_t schema = both(w, property_of(w, a, name), property_of(w, b, name));
            if (!schema) return HDL_NO_VALUE;
            if (!hdl_json_put(&w->json, out, name, schema)) return no_memory(w);
        }
    }
    return out;
}

/* A keyword that both have, in one. */
static uint32_t keyword_of_both(hdl_schema_work *w, uint32_t a, uint32_t b, uint32_t left, uint32_t right) {
    const hdl_span name = w->json.values[left].name;
    char quoted[HDL_QUOTE];
    if (is_named(name, "type")) return types_of_both(w, a, b);
    if (is_named(name, "enum")) return lists_of_both(w, left, right, true);
    if (is_named(name, "required")) return lists_of_both(w, left, right, false);
    if (is_named(name, "items") || is_named(name, "additionalProperties")) return both(w, left, right);
    if (hdl_json_same(&w->json, left, right)) return left;
    const bool larger = is_named(name, "minItems") || is_named(name, "minLength") || is_named(name, "minimum") ||
                        is_named(name, "exclusiveMinimum");
    const bool smaller = is_named(name, "maxItems") || is_named(name, "maxLength") || is_named(name, "maximum") ||
                         is_named(name, "exclusiveMaximum");
    if ((larger || smaller) && w->json.values[left].kind == HDL_JSON_NUMBER &&
        w->json.values[right].kind == HDL_JSON_NUMBER)
        return (value_of(w->json.values[left].text) > value_of(w->json.values[right].text)) == larger ? left : right;
    hdl_schema_refuse(w, "two schemas at once (allOf, $ref) have each its own ", hdl_quote(name, quoted));
    return HDL_NO_VALUE;
}

static uint32_t nothing(hdl_schema_work *w) {
    const uint32_t value = hdl_json_new(&w->json, HDL_JSON_FALSE, hdl_text(""));
    return value ? value : no_memory(w);
}

/* Puts the keywords of `a` into `out`, each with what `b` says to it. */
static bool put_keywords(hdl_schema_work *w, uint32_t out, uint32_t a, uint32_t b) {
    for (uint32_t i = w->json.values[a].first; i; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        if (hdl_schema_describes(name) || is_named(name, "properties") || hdl_json_find(&w->json, out, name)) continue;
        const uint32_t other = hdl_json_find(&w->json, b, name), value = other ? keyword_of_both(w, a, b, i, other) : i;
        if (!value) return false;
        if (!hdl_json_put(&w->json, out, name, value)) return hdl_schema_no_memory(w);
    }
    return true;
}

/* The schema without $ref and allOf, in however many steps. */
static uint32_t all_flat(hdl_schema_work *w, uint32_t schema) {
    for (uint32_t next = schema; schema; schema = next) {
        if (!(next = hdl_schema_flat(w, schema)) || next == schema) return next;
    }
    return HDL_NO_VALUE;
}

uint32_t hdl_schema_merge(hdl_schema_work *w, uint32_t a, uint32_t b) {
    if (!(a = all_flat(w, a)) || !(b = all_flat(w, b))) return HDL_NO_VALUE;
    const hdl_json_kind left = w->json.values[a].kind, right = w->json.values[b].kind;
    if (left == HDL_JSON_TRUE || right == HDL_JSON_FALSE) return b;
    if (right == HDL_JSON_TRUE || left == HDL_JSON_FALSE) return a;
    if (left != HDL_JSON_OBJECT || right != HDL_JSON_OBJECT)
        return hdl_schema_refuse(w, "a schema is an object, true or false, and not ", "another value"), HDL_NO_VALUE;
    if (!hdl_schema_check(w, a) || !hdl_schema_check(w, b)) return HDL_NO_VALUE;
    const uint32_t constant = hdl_schema_get(w, a, "const"), other = hdl_schema_get(w, b, "const");
    if (constant && other && !hdl_json_same(&w->json, constant, other)) return nothing(w);
    const bool prefixed = hdl_schema_get(w, a, "prefixItems") || hdl_schema_get(w, b, "prefixItems");
    if (prefixed && (hdl_schema_get(w, a, "items") || hdl_schema_get(w, a, "prefixItems")) &&
        (hdl_schema_get(w, b, "items") || hdl_schema_get(w, b, "prefixItems")))
        return hdl_schema_refuse(w, "two schemas at once (allOf, $ref) have each its own ", "prefixItems or items"),
               HDL_NO_VALUE;
    const uint32_t out = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text(""));
    if (!out) return no_memory(w);
    if (hdl_schema_get(w, a, "properties") || hdl_schema_get(w, b, "properties")) {
        const uint32_t properties = properties_of_both(w, a, b);
        if (!properties) return HDL_NO_VALUE;
        if (!hdl_json_put(&w->json, out, hdl_text("properties"), properties)) return no_memory(w);
    }
    return put_keywords(w, out, a, b) && put_keywords(w, out, b, a) ? out : HDL_NO_VALUE;
}

uint32_t hdl_schema_of_objects(hdl_schema_work *w, uint32_t schema) {
    const uint32_t objects = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text("")),
                   type = hdl_json_new(&w->json, HDL_JSON_STRING, hdl_text("object"));
    if (!objects || !type || !hdl_json_put(&w->json, objects, hdl_text("type"), type)) return no_memory(w);
    const uint32_t both = hdl_schema_merge(w, schema, objects);
    if (!both || (w->json.values[both].kind == HDL_JSON_OBJECT && hdl_schema_types(w, both) & HDL_TYPE_OBJECT))
        return both;
    return hdl_schema_refuse(w, "what a tool is called with is an object, and not ", "another value"), HDL_NO_VALUE;
}

uint32_t hdl_schema_flat(hdl_schema_work *w, uint32_t schema) {
    if (w->json.values[schema].kind != HDL_JSON_OBJECT) return schema;
    const uint32_t ref = hdl_schema_get(w, schema, "$ref"), all = hdl_schema_get(w, schema, "allOf");
    if (!ref && !all) return schema;
    if (++w->merge_count > HDL_MAX_SCHEMA_MERGES)
        return hdl_fail(w->error, HD_STATUS_LIMIT, "schema: $ref and allOf go on without an end, or too long"),
               HDL_NO_VALUE;
    if (!hdl_schema_check(w, schema)) return HDL_NO_VALUE;
    if (all && w->json.values[all].kind != HDL_JSON_ARRAY)
        return hdl_schema_refuse(w, "this is no list of schemas: ", "allOf"), HDL_NO_VALUE;
    uint32_t out = HDL_NO_VALUE;
    const uint32_t rest = hdl_json_new(&w->json, HDL_JSON_OBJECT, hdl_text(""));
    if (!rest) return no_memory(w);
    for (uint32_t i = w->json.values[schema].first; i; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        if (hdl_schema_describes(name) || is_named(name, "$ref") || is_named(name, "allOf")) continue;
        if (!hdl_json_put(&w->json, rest, name, i)) return no_memory(w);
        out = rest;
    }
    if (ref) {
        const uint32_t target = find_ref(w, ref);
        if (target == schema) hdl_schema_refuse(w, "a $ref leads to ", "itself");
        if (!target || target == schema || !(out = out ? hdl_schema_merge(w, out, target) : target))
            return HDL_NO_VALUE;
    }
    for (uint32_t i = all ? w->json.values[all].first : 0; i; i = w->json.values[i].next)
        if (!(out = out ? hdl_schema_merge(w, out, i) : i)) return HDL_NO_VALUE;
    return out ? out : w->any;
}

/* ---- whether two can fit at once ---- */

static bool values_apart(hdl_schema_work *w, uint32_t a, uint32_t b) {
    const uint32_t schemas[] = { a, b };
    uint32_t lists[2], singles[2];
    for (int i = 0; i < 2; i++) {
        singles[i] = hdl_schema_get(w, schemas[i], "const");
        lists[i] = hdl_schema_get(w, schemas[i], "enum");
        if (!singles[i] && !lists[i]) return false;
    }
    for (uint32_t i = singles[0] ? singles[0] : w->json.values[lists[0]].first; i;
         i = singles[0] ? 0 : w->json.values[i].next)
        for (uint32_t k = singles[1] ? singles[1] : w->json.values[lists[1]].first; k;
             k = singles[1] ? 0 : w->json.values[k].next) {
            /* 1 and 1.0 are the same, and so may be what holds them */
            const hdl_json_kind kind = w->json.values[i].kind;
            if (kind == w->json.values[k].kind &&
                (kind >= HDL_JSON_ARRAY || kind == HDL_JSON_NUMBER || hdl_json_same(&w->json, i, k)) &&
                (kind != HDL_JSON_NUMBER || value_of(w->json.values[i].text) == value_of(w->json.values[k].text)))
                return false;
        }
    return true;
}

static bool requires(const hdl_schema_work *w, uint32_t schema, hdl_span name) {
    const uint32_t required = hdl_schema_get(w, schema, "required");
    for (uint32_t i = required ? w->json.values[required].first : 0; i; i = w->json.values[i].next)
        if (hdl_same(w->json.values[i].text, name)) return true;
    return false;
}

bool hdl_schema_apart(hdl_schema_work *w, uint32_t a, uint32_t b, uint32_t depth) {
    if (depth > 4 || !(a = all_flat(w, a)) || !(b = all_flat(w, b))) return false;
    if (w->json.values[a].kind == HDL_JSON_FALSE || w->json.values[b].kind == HDL_JSON_FALSE) return true;
    if (w->json.values[a].kind != HDL_JSON_OBJECT || w->json.values[b].kind != HDL_JSON_OBJECT) return false;
    const uint32_t types = hdl_schema_types(w, a) & hdl_schema_types(w, b);
    if (!types || values_apart(w, a, b)) return true;
    if (types != HDL_TYPE_OBJECT) return false;
    const uint32_t properties = hdl_schema_get(w, a, "properties");
    for (uint32_t i = properties ? w->json.values[properties].first : 0; i; i = w->json.values[i].next) {
        const hdl_span name = w->json.values[i].name;
        const uint32_t other = hdl_json_find(&w->json, hdl_schema_get(w, b, "properties"), name);
        if (other && requires(w, a, name) && requires(w, b, name) && hdl_schema_apart(w, i, other, depth + 1))
            return true;
    }
    return false;
}
