/* schema_text.c: strings as a schema bounds them: lengths, patterns. */
#include "llm/form/scan.h"
#include "llm/form/schema.h"
#include "llm/utf8.h"

/* ---- patterns ---- */

enum { MOST_SET = 128, MOST_NESTED = 24 };

/* Characters of a pattern: one of them. */
typedef struct set {
    struct { uint32_t low, high; } ranges[MOST_SET];
    uint32_t count;
    bool     ascii; /* it holds a class such as \w, which not all read alike beyond ASCII */
} set;

typedef struct pattern {
    hdl_schema_work *w;
    hdl_scan scan;
    uint32_t depth;
} pattern;

static bool refuse(pattern *p, const char *what) {
    char quoted[HDL_QUOTE];
    hdl_fail(p->w->error, HD_STATUS_UNSUPPORTED, "schema: pattern %s, character %llu: %s; see docs/forms.md",
             hdl_quote(p->scan.text, quoted), (unsigned long long)p->scan.at + 1, what);
    return false;
}

static int peek(const pattern *p) { return hdl_scan_peek(&p->scan); }
static bool take(pattern *p, char wanted) { return hdl_scan_take(&p->scan, wanted); }

static bool add(pattern *p, set *s, uint32_t low, uint32_t high) {
    if (s->count == MOST_SET) return refuse(p, "a class of too many parts");
    s->ranges[s->count].low = low;
    s->ranges[s->count++].high = high;
    return true;
}

static bool has(const set *s, uint32_t code) {
    for (uint32_t i = 0; i < s->count; i++)
        if (code >= s->ranges[i].low && code <= s->ranges[i].high) return true;
    return false;
}

/* Everything that is not in it, up to `last`. */
static bool turn_round(pattern *p, set *s, uint32_t last) {
    set others = { .ascii = s->ascii };
    for (uint32_t from = 0; from <= last;) {
        uint32_t next = last + 1; /* where the first range from here on begins */
        bool inside = false;
        for (uint32_t i = 0; i < s->count; i++) {
            if (s->ranges[i].low <= from && s->ranges[i].high >= from) {
                inside = true;
                from = s->ranges[i].high + 1;
                break;
            }
            if (s->ranges[i].low > from && s->ranges[i].low < next) next = s->ranges[i].low;
        }
        if (inside) continue;
        if (!add(p, &others, from, next - 1)) return false;
        from = next;
    }
    *s = others;
    return true;
}

static bool add_class(pattern *p, set *s, char letter) {
    static const struct { char letter; const char *pairs; } classes[] = { { 'd', "09" }, { 'w', "azAZ09__" },
                                                                          { 's', "\t\r  " } };
    const bool others = letter >= 'A' && letter <= 'Z';
    set found = { .ascii = true };
    for (size_t i = 0; i < 3; i++)
        for (const char *pair = classes[i].pairs; classes[i].letter == (others ? letter + 32 : letter) && *pair;
             pair += 2)
            if (!add(p, &found, (uint8_t)pair[0], (uint8_t)pair[1])) return false;
    if (others && !turn_round(p, &found, 0x7E)) return false;
    s->ascii = true;
    for (uint32_t i = 0; i < found.count; i++)
        if (!add(p, s, found.ranges[i].low, found.ranges[i].high)) return false;
    return true;
}

static bool read_hex(pattern *p, uint32_t digits, uint32_t *out) {
    if (!hdl_scan_hex(&p->scan, digits, out)) return refuse(p, "an escape needs hexadecimal digits");
    return (*out < 0xD800 || *out > 0xDFFF) || refuse(p, "half a surrogate pair is no character");
}

/* What stands behind a backslash: a class, added to the set, or a character. */
static bool read_escape(pattern *p, set *s, bool *out_class, uint32_t *out_code) {
    const int c = peek(p);
    *out_class = c > 0 && strchr("dwsDWS", c);
    if (c < 0) return refuse(p, "it ends with a backslash");
    if (*out_class) return p->scan.at++, add_class(p, s, (char)c);
    if (c == 'x' || c == 'u') return p->scan.at++, read_hex(p, c == 'x' ? 2 : 4, out_code);
    static const char names[] = "nrtf", codes[] = "\n\r\t\f";
    const char *known = strchr(names, c);
    if (!known && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80))
        return refuse(p, "this escape is not known (\\b, \\p, back references, ...)");
    p->scan.at++;
    *out_code = known ? (uint8_t)codes[known - names] : (uint32_t)c;
    return true;
}

static bool read_code(pattern *p, uint32_t *out) {
    p->scan.at += hdl_utf8_read(p->scan.text.bytes + p->scan.at, (size_t)(p->scan.text.count - p->scan.at), out);
    return true; /* the JSON was UTF-8 */
}

static bool read_member(pattern *p, set *s, bool *out_class, uint32_t *out_code) {
    *out_class = false;
    if (peek(p) < 0) return refuse(p, "a class is not closed");
    return take(p, '\\') ? read_escape(p, s, out_class, out_code) : read_code(p, out_code);
}

static bool read_set(pattern *p, set *s) {
    const bool others = take(p, '^');
    while (!take(p, ']')) {
        bool is_class, is_end_class = false;
        uint32_t low = 0, high;
        if (!read_member(p, s, &is_class, &low)) return false;
        if (is_class) continue;
        high = low;
        if (peek(p) == '-' && p->scan.at + 1 < p->scan.text.count && p->scan.text.bytes[p->scan.at + 1] != ']') {
            p->scan.at++;
            if (!read_member(p, s, &is_end_class, &high)) return false;
            if (is_end_class || high < low) return refuse(p, "this is no range");
        }
        if (!add(p, s, low, high)) return false;
    }
    return !others || turn_round(p, s, s->ascii ? 0x7E : 0x10FFFF);
}

static bool say_code(hdl_schema_work *w, uint32_t code) {
    if (code < 0x80 && code >= 0x20 && !strchr("]\\^-[\"", (int)code)) return hdl_schema_say(w, "%c", (int)code);
    return code < 0x100     ? hdl_schema_say(w, "\\x%02x", (unsigned)code)
           : code < 0x10000 ? hdl_schema_say(w, "\\u%04x", (unsigned)code)
                            : hdl_schema_say(w, "\\U%08x", (unsigned)code);
}

/* What a range has of these characters. */
static bool say_common(hdl_schema_work *w, uint32_t low, uint32_t high, uint32_t least, uint32_t most) {
    low = low > least ? low : least;
    high = high < most ? high : most;
    return low > high || (say_code(w, low) && hdl_schema_say(w, "-") && say_code(w, high));
}

/* The set as it stands in a raw text, without what begins its end. */
static bool say_raw_set(hdl_schema_work *w, const set *s) {
    if (!hdl_schema_say(w, "[")) return false;
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t low = s->ranges[i].low, high = s->ranges[i].high;
        if (!say_common(w, low, high, 0, '<' - 1) || !say_common(w, low, high, '<' + 1, 0xD7FF) ||
            !say_common(w, low, high, 0xE000, 0x10FFFF))
            return false;
    }
    return hdl_schema_say(w, "] ");
}

/* The set as it stands in a JSON string: what must be escaped there is written so; control characters without a short
 * escape are left out. */
static bool say_set(hdl_schema_work *w, const set *s) {
    static const struct { uint32_t code; const char *text;
    } escaped[] = {
        { '"', "\\\\\\\"" }, { '\\', "\\\\\\\\" }, { '\n', "\\\\n" }, { '\r', "\\\\r" },
        { '\t', "\\\\t" },   { '\f', "\\\\f" },    { '\b', "\\\\b" },
    };
    const uint32_t least = w->closing ? '<' : 0x5C; /* what begins a value's end is escaped, too */
    if (w->raw) return say_raw_set(w, s);
    if (!hdl_schema_say(w, "([")) return false;
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t plain[][2] = { { 0x20, 0x21 }, { 0x23, least - 1 }, { least + 1, 0x5B },
                                      { 0x5D, 0xD7FF }, { 0xE000, 0x10FFFF } };
        for (size_t k = 0; k < sizeof plain / sizeof plain[0]; k++)
            if (!say_common(w, s->ranges[i].low, s->ranges[i].high, plain[k][0], plain[k][1])) return false;
    }
    if (!hdl_schema_say(w, "]")) return false;
    if (w->closing && has(s, '<') && !hdl_schema_say(w, " | \"\\\\u003c\"")) return false;
    for (size_t i = 0; i < sizeof escaped / sizeof escaped[0]; i++)
        if (has(s, escaped[i].code) && !hdl_schema_say(w, " | \"%s\"", escaped[i].text)) return false;
    return hdl_schema_say(w, ") ");
}

static bool say_choice(pattern *p);

static bool read_count(pattern *p, uint32_t *out) {
    const uint64_t from = p->scan.at;
    for (*out = 0; peek(p) >= '0' && peek(p) <= '9' && *out < 100000; p->scan.at++)
        *out = *out * 10 + (uint32_t)(peek(p) - '0');
    return p->scan.at > from;
}

static bool say_quantity(pattern *p) {
    uint32_t least, most;
    if (take(p, '*') || take(p, '+') || take(p, '?')) {
        if (!hdl_schema_say(p->w, "%c ", p->scan.text.bytes[p->scan.at - 1])) return false;
    } else if (take(p, '{')) {
        bool ok = read_count(p, &least), open = false;
        most = least;
        if (ok && take(p, ',')) open = !read_count(p, &most);
        if (!ok || !take(p, '}')) return refuse(p, "a brace is not the beginning of a number of times; write \\{");
        if (open ? !hdl_schema_say(p->w, "{%u,} ", least) : !hdl_schema_say(p->w, "{%u,%u} ", least, most))
            return false;
    } else {
        return true;
    }
    take(p, '?'); /* how eagerly it takes changes nothing in what is taken */
    return (peek(p) != '*' && peek(p) != '+' && peek(p) != '{') || refuse(p, "one quantity stands behind another");
}

static bool say_item(pattern *p) {
    set s = { 0 };
    bool is_class = false;
    uint32_t code = 0;
    if (take(p, '(')) {
        if (take(p, '?') && !take(p, ':'))
            return refuse(p, "groups that look ahead or behind, or have a name, are not known");
        if (++p->depth > MOST_NESTED) return refuse(p, "groups are nested too deeply");
        if (!hdl_schema_say(p->w, "(") || !say_choice(p)) return false;
        p->depth--;
        if (!take(p, ')')) return refuse(p, "a group is not closed");
        return hdl_schema_say(p->w, ") ") && say_quantity(p);
    }
    if (take(p, '[')) {
        if (!read_set(p, &s)) return false;
    } else if (take(p, '.')) {
        /* no end of a line */
        if (!add(p, &s, 0x20, 0x7E) || !add(p, &s, 0xA0, 0x2027) || !add(p, &s, 0x202A, 0x10FFFF)) return false;
    } else if (take(p, '\\')) {
        if (!read_escape(p, &s, &is_class, &code) || (!is_class && !add(p, &s, code, code))) return false;
    } else if (strchr("*+?{^$", peek(p))) {
        return refuse(p, "this has its meaning elsewhere; write a backslash before it");
    } else if (!read_code(p, &code) || !add(p, &s, code, code)) {
        return false;
    }
    return say_set(p->w, &s) && say_quantity(p);
}

static bool say_choice(pattern *p) {
    bool ok = hdl_schema_say(p->w, "\"\" ");
    while (ok && peek(p) >= 0 && peek(p) != ')') {
        if (take(p, '|')) ok = hdl_schema_say(p->w, "| \"\" ");
        else ok = say_item(p);
    }
    return ok;
}

/* Each choice of a pattern may be anywhere in the text, where it does not say that it begins or ends it. */
static bool say_pattern(pattern *p) {
    const char *quote = p->w->raw ? "" : "\\\"", *any = p->w->raw ? "plain* " : "char* ";
    bool ok = hdl_schema_say(p->w, "\"%s\" (", quote);
    for (;;) {
        if (!ok || !hdl_schema_say(p->w, "%s", take(p, '^') ? "\"\" " : any)) return false;
        bool ended = false;
        while (peek(p) >= 0 && peek(p) != '|') {
            if (peek(p) == ')') return refuse(p, "a group is closed that was not opened");
            const int behind = hdl_scan_ahead(&p->scan, 1);
            ended = peek(p) == '$' && (behind < 0 || behind == '|');
            if (ended) p->scan.at++;
            else if (!say_item(p)) return false;
        }
        if (!hdl_schema_say(p->w, "%s", ended ? "\"\" " : any)) return false;
        if (!take(p, '|')) break;
        ok = hdl_schema_say(p->w, "| ");
    }
    return hdl_schema_say(p->w, ") \"%s\"", quote);
}

/* Formats that have a pattern. Days above 28 are left out, since not every month has them. */
static const char *format_pattern(hdl_span name) {
    static const struct { const char *name, *pattern;
    } formats[] = {
        { "date", "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$" },
        { "time", "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$" },
        { "date-time",
          "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6}"
          ")?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$" },
        { "uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" },
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (hdl_same(name, hdl_text(formats[i].name))) return formats[i].pattern;
    return NULL;
}

bool hdl_schema_string(hdl_schema_work *w, uint32_t schema) {
    const uint32_t given = hdl_schema_get(w, schema, "pattern"), format = hdl_schema_get(w, schema, "format");
    uint32_t least, most;
    char quoted[HDL_QUOTE];
    if (!hdl_schema_count(w, schema, "minLength", 0, &least) ||
        !hdl_schema_count(w, schema, "maxLength", UINT32_MAX, &most))
        return false;
    if (given && w->json.values[given].kind != HDL_JSON_STRING)
        return hdl_schema_refuse(w, "this is no text: ", "pattern");
    if (given && format) return hdl_schema_refuse(w, "there is a pattern beside ", "format");
    if ((given || format) && (least > 0 || most != UINT32_MAX))
        return hdl_schema_refuse(w, "there are lengths beside ", given ? "pattern" : "format");
    const char *known = format ? format_pattern(w->json.values[format].text) : NULL;
    if (format && !known)
        return hdl_schema_refuse(w, "there is no format ", hdl_quote(w->json.values[format].text, quoted));
    pattern p = { .w = w, .scan = { .text = known ? hdl_text(known) : w->json.values[given].text } };
    if (given || known) return say_pattern(&p);
    if (most < least) return hdl_schema_say(w, "[]");
    const char *quote = w->raw ? "" : "\\\"", *any = w->raw ? "plain" : "char";
    if (most == UINT32_MAX)
        return least ? hdl_schema_say(w, "\"%s\" %s{%u,} \"%s\"", quote, any, least, quote)
                     : hdl_schema_say(w, w->raw ? "text" : "string");
    return hdl_schema_say(w, "\"%s\" %s{%u,%u} \"%s\"", quote, any, least, most, quote);
}
