/* schema.h: JSON Schema as rules of a grammar. Every text of the rules is JSON that the schema takes; the other way
 * round not all is there: properties come in the schema's order, numbers have up to 16 digits, space is what a printer
 * puts. What is not known is refused by its name. */
#ifndef HDL_SCHEMA_H
#define HDL_SCHEMA_H

#include "llm/form/json.h"

/* A text that grows. */
typedef struct hdl_rules_text {
    char  *text;
    size_t count, room;
} hdl_rules_text;

/* The rules for a schema, as GBNF: *out_text, *out_bytes; free with hdl_free(allocator, *out_text, *out_room).
 * Statuses: PARSE (of the JSON, of a pattern), UNSUPPORTED (a keyword, or what it says, by name), NAME_NOT_FOUND (a
 * $ref), LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_schema_rules(const hd_allocator *allocator, hdl_span schema, hdl_rules_text *out, hd_error *error);

/* ---- several schemas in one text, and inside: the work on a schema (schema.c, schema_merge.c, schema_text.c) ---- */

/* Types of values; an integer is a number too. */
enum {
    HDL_TYPE_NULL = 1,
    HDL_TYPE_BOOLEAN = 2,
    HDL_TYPE_INTEGER = 4,
    HDL_TYPE_FRACTION = 8,
    HDL_TYPE_STRING = 16,
    HDL_TYPE_ARRAY = 32,
    HDL_TYPE_OBJECT = 64,
    HDL_TYPE_ANY = 127
};
#define HDL_MAX_SCHEMA_RULES 4096u
#define HDL_MAX_SCHEMA_MERGES 4096u
#define HDL_MAX_PROPERTIES 1024u
#define HDL_MAX_KEY_BYTES 256u

typedef struct hdl_schema_rule {
    uint32_t schema;        /* the value that rule number i is made of */
} hdl_schema_rule;

typedef struct hdl_schema_work {
    hd_allocator     allocator;
    hdl_json         json;
    uint32_t         root;
    hdl_rules_text   out;
    hdl_schema_rule *rules;
    uint32_t         rule_count, rules_done, merge_count;
    size_t           rule_room;
    uint32_t         any;     /* a value `true` */
    const char      *closing; /* values stand before this text, "</...", which is in none of them; NULL: they do not */
    bool             raw;     /* strings stand there as they are, without quotes and escapes */
    hd_error        *error;
} hdl_schema_work;

/* What an object may hold under a name. */
typedef struct hdl_property {
    hdl_span name;
    uint32_t schema;
    bool     needed;
} hdl_property;

/* All of these give false or HDL_NO_VALUE after a failure, which `error` tells. */

/* Prepares the work: json is read, allocator and error are set. */
bool hdl_schema_begin(hdl_schema_work *w);
/* Writes the rules of a schema, the value whose places its $refs name: *out_rule, of the rule r<*out_rule>. */
bool hdl_schema_add(hdl_schema_work *w, uint32_t schema, uint32_t *out_rule);
/* Writes the rules that all schemas share. */
bool hdl_schema_end(hdl_schema_work *w);
/* The same schema for objects alone: what a tool is called with. */
uint32_t hdl_schema_of_objects(hdl_schema_work *w, uint32_t schema);
bool hdl_schema_say(hdl_schema_work *w, const char *format, ...) HDL_PRINTF(2, 3);
/* Bytes in a literal of the grammar, as JSON writes them inside of a string where `json` is set. */
bool hdl_schema_say_text(hdl_schema_work *w, hdl_span text, bool json);
bool hdl_schema_refuse(hdl_schema_work *w, const char *what, const char *name);
bool hdl_schema_no_memory(hdl_schema_work *w);
/* False, and refused, where a keyword or type in it is not known. */
bool hdl_schema_check(hdl_schema_work *w, uint32_t schema);
/* A member of a schema. */
static inline uint32_t hdl_schema_get(const hdl_schema_work *w, uint32_t schema, const char *name) {
    return hdl_json_get(&w->json, schema, name);
}
/* A count such as minItems, or the fallback; false where it is none. */
bool hdl_schema_count(hdl_schema_work *w, uint32_t schema, const char *name, uint32_t fallback, uint32_t *out);
/* Types that the keyword "type", or const and enum, leave. */
uint32_t hdl_schema_types(const hdl_schema_work *w, uint32_t schema);

/* Those that the keywords are about, where it names none; 0: none. */
uint32_t hdl_schema_meant(const hdl_schema_work *w, uint32_t schema);
/* The properties of a schema in their order, and behind them those that are only required. `list` has room for
 * HDL_MAX_PROPERTIES. */
bool hdl_schema_properties(hdl_schema_work *w, uint32_t schema, hdl_property *list, uint32_t *out_count);
/* The list of its anyOf or oneOf, and the schema without it. */
bool hdl_schema_choices(hdl_schema_work *w, uint32_t schema, uint32_t *out_list, uint32_t *out_rest);
/* Writes those of const and enum that have the type. */
bool hdl_schema_values(hdl_schema_work *w, uint32_t schema);

/* schema_merge.c: the schema with its $ref and allOf put into one; the same where there are none. */
uint32_t hdl_schema_flat(hdl_schema_work *w, uint32_t schema);
/* A schema that takes what both take. */
uint32_t hdl_schema_merge(hdl_schema_work *w, uint32_t a, uint32_t b);
/* Whether no value is taken by both, as far as that is plain. */
bool hdl_schema_apart(hdl_schema_work *w, uint32_t a, uint32_t b, uint32_t depth);
/* Whether a member only describes. */
bool hdl_schema_describes(hdl_span name);

/* schema_raw.c: values between tags, of which strings are raw. */
/* The types that values may have, those of its choices too. */
bool hdl_schema_kinds(hdl_schema_work *w, uint32_t schema, uint32_t depth, uint32_t *out_types);
/* Whether values of these types stand there raw: a text, or null. Others are JSON, strings among them in quotes. */
static inline bool hdl_schema_is_raw(uint32_t types) { return (types & ~(uint32_t)HDL_TYPE_NULL) == HDL_TYPE_STRING; }
/* Writes a schema of such types. */
bool hdl_schema_raw(hdl_schema_work *w, uint32_t schema, uint32_t depth);
/* Writes the rules "text", "string" and "char": what `closing` is not in. */
bool hdl_schema_raw_rules(hdl_schema_work *w);

/* schema_text.c: the texts of strings. */
bool hdl_schema_string(hdl_schema_work *w, uint32_t schema);
/* schema_number.c: numbers, or integers. */
bool hdl_schema_number(hdl_schema_work *w, uint32_t schema, bool fractions);

#endif
