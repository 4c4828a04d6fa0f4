/* gbnf.c: reads the text of a grammar in llama.cpp's form: name ::= "text" [a-z] . ( | ) * + ? {m,n} other-name #
 * remark. */
#include "llm/form/grammar.h"
#include "llm/form/scan.h"
#include "llm/utf8.h"

enum { MOST_MARKS = 8 }; /* such as *, one behind the other */

typedef struct reader {
    hdl_grammar *grammar;
    hdl_scan     scan;
    uint32_t     depth;
    hd_error    *error;
} reader;

/* ---- failing ---- */

static uint32_t fail(reader *r, hd_status status, const char *what) {
    size_t line, column;
    hdl_scan_place(&r->scan, &line, &column);
    hdl_fail(r->error, status, "grammar, line %zu, column %zu: %s", line, column, what);
    return HDL_NO_NODE;
}
static uint32_t fail_memory(reader *r) { return fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory"); }

/* ---- nodes ---- */

static uint32_t add_node(reader *r, hdl_node node) {
    hdl_grammar *g = r->grammar;
    if (g->node_count >= HDL_MAX_NODES) return fail(r, HD_STATUS_LIMIT, "the grammar is too long");
    if (!hdl_grow(&g->allocator, &g->nodes, &g->node_room, g->node_count + 1, sizeof *g->nodes)) return fail_memory(r);
    g->nodes[g->node_count] = node;
    return g->node_count++;
}

static bool add_range(reader *r, uint32_t low, uint32_t high) {
    hdl_grammar *g = r->grammar;
    if (!hdl_grow(&g->allocator, &g->ranges, &g->range_room, g->range_count + 1, sizeof *g->ranges))
        return fail_memory(r);
    g->ranges[g->range_count++] = (hdl_range){ low, high };
    return true;
}

/* Puts `node` behind `*last` in the list that begins at *first. */
static void append(reader *r, uint32_t *first, uint32_t *last, uint32_t node) {
    if (*last) r->grammar->nodes[*last].next = node;
    else *first = node;
    *last = node;
}

static hdl_span name_of(const void *owner, uint32_t number) { return ((const hdl_grammar *)owner)->rules[number].name; }

/* The number of the rule with this name, which is added where it is new; UINT32_MAX after a failure. */
static uint32_t rule_number(reader *r, hdl_span name) {
    hdl_grammar *g = r->grammar;
    const int64_t found = hdl_index_find(&g->names, name, name_of, g);
    if (found >= 0) return (uint32_t)found;
    if (g->rule_count >= HDL_MAX_RULES) return fail(r, HD_STATUS_LIMIT, "too many rules"), UINT32_MAX;
    if (!hdl_grow(&g->allocator, &g->rules, &g->rule_room, g->rule_count + 1, sizeof *g->rules) ||
        !hdl_index_reserve(&g->names, &g->allocator, g->rule_count + 1, name_of, g))
        return fail_memory(r), UINT32_MAX;
    g->rules[g->rule_count++] = (hdl_rule){ .name = name };
    (void)hdl_index_add(&g->names, name_of, g);
    return g->rule_count - 1;
}

/* ---- characters ---- */

static int peek(const reader *r) { return hdl_scan_peek(&r->scan); }
static bool take(reader *r, char wanted) { return hdl_scan_take(&r->scan, wanted); }
static bool is_name(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip(reader *r, bool lines) {
    for (int c; (c = peek(r)) >= 0; r->scan.at++) {
        if (c == '#') {
            while (peek(r) >= 0 && peek(r) != '\n') r->scan.at++;
            if (!lines || peek(r) < 0) return;
        } else if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n')) {
            return;
        }
    }
}

/* What stands behind a backslash. */
static bool read_escape(reader *r, uint32_t *out) {
    static const char names[] = "nrt\\\"[]-^", codes[] = "\n\r\t\\\"[]-^";
    const int c = peek(r);
    const uint32_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const char *known = c > 0 ? strchr(names, c) : NULL;
    if (!digits && !known)
        return fail(r, HD_STATUS_PARSE, "no such escape; write \\n, \\x20, \\u00e9 or \\U0001f600"), false;
    r->scan.at++;
    if (known) *out = (uint8_t)codes[known - names];
    if (digits && !hdl_scan_hex(&r->scan, digits, out))
        return fail(r, HD_STATUS_PARSE, "an escape has 2, 4 or 8 hexadecimal digits"), false;
    if (*out <= HDL_LAST_CHARACTER && (*out < 0xD800 || *out > 0xDFFF)) return true;
    return fail(r, HD_STATUS_PARSE, "no character has this code"), false;
}

static bool read_character(reader *r, uint32_t *out) {
    if (take(r, '\\')) return read_escape(r, out);
    if (peek(r) < 0) return fail(r, HD_STATUS_PARSE, "the grammar ends inside of a text or a class"), false;
    const hdl_span rest = hdl_scan_rest(&r->scan);
    r->scan.at += hdl_utf8_read(rest.bytes, (size_t)rest.count, out);
    if (*out != HDL_UTF8_INVALID) return true;
    r->scan.at--;
    return fail(r, HD_STATUS_PARSE, "this is no UTF-8"), false;
}

static uint32_t read_text(reader *r) {
    uint32_t first = HDL_NO_NODE, last = HDL_NO_NODE, code;
    while (!take(r, '"')) {
        if (!read_character(r, &code)) return HDL_NO_NODE;
        const uint32_t range = r->grammar->range_count;
        const uint32_t node =
            add_range(r, code, code) ? add_node(r, (hdl_node){ HDL_NODE_CHARACTERS, range, 0, 1, 0 }) : HDL_NO_NODE;
        if (!node) return HDL_NO_NODE;
        append(r, &first, &last, node);
    }
    return add_node(r, (hdl_node){ .kind = HDL_NODE_SEQUENCE, .first = first });
}

/* Sorts the ranges from `first` on and makes one of those that touch. There may be many: shell sort. */
static void order_ranges(hdl_grammar *g, uint32_t first) {
    if (g->range_count == first) return;
    hdl_range *ranges = g->ranges + first;
    const uint32_t count = g->range_count - first;
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            const hdl_range moved = ranges[i];
            uint32_t at = i;
            for (; at >= gap && ranges[at - gap].low > moved.low; at -= gap) ranges[at] = ranges[at - gap];
            ranges[at] = moved;
        }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept && ranges[i].low <= ranges[kept - 1].high + 1) {
            if (ranges[i].high > ranges[kept - 1].high) ranges[kept - 1].high = ranges[i].high;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    g->range_count = first + kept;
}

/* Puts what the ordered ranges from `first` on leave out in their place. */
static bool turn_round(reader *r, uint32_t first) {
    hdl_grammar *g = r->grammar;
    const uint32_t count = g->range_count - first;
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const hdl_range range = g->ranges[first + i];
        if (range.low > next && !add_range(r, next, range.low - 1)) return false;
        next = range.high + 1;
    }
    if (next <= HDL_LAST_CHARACTER && !add_range(r, next, HDL_LAST_CHARACTER)) return false;
    const uint32_t left = g->range_count - first - count;
    memmove(g->ranges + first, g->ranges + first + count, left * sizeof *g->ranges);
    g->range_count = first + left;
    return true;
}

static uint32_t read_class(reader *r) {
    const uint32_t first = r->grammar->range_count;
    const bool others = take(r, '^');
    while (!take(r, ']')) {
        uint32_t low, high;
        if (!read_character(r, &low)) return HDL_NO_NODE;
        high = low;
        const int behind = hdl_scan_ahead(&r->scan, 1);
        const bool is_range = peek(r) == '-' && behind >= 0 && behind != ']';
        if (is_range && (r->scan.at++, !read_character(r, &high))) return HDL_NO_NODE;
        if (high < low) return fail(r, HD_STATUS_PARSE, "a range ends before it begins");
        if (!add_range(r, low, high)) return HDL_NO_NODE;
    }
    order_ranges(r->grammar, first);
    if (others && !turn_round(r, first)) return HDL_NO_NODE;
    return add_node(r, (hdl_node){ HDL_NODE_CHARACTERS, first, 0, r->grammar->range_count - first, 0 });
}

/* ---- items and what is made of them ---- */

static uint32_t read_choice(reader *r, bool nested);

static uint32_t read_inside(reader *r) {
    if (r->depth >= HDL_MAX_NESTED) return fail(r, HD_STATUS_LIMIT, "brackets are nested too deeply");
    r->depth++;
    const uint32_t node = read_choice(r, true);
    r->depth--;
    if (node && !take(r, ')')) return fail(r, HD_STATUS_PARSE, "a bracket is not closed");
    return node;
}

static hdl_span read_name(reader *r) {
    const size_t from = r->scan.at;
    while (is_name(peek(r))) r->scan.at++;
    return (hdl_span){ r->scan.text.bytes + from, r->scan.at - from };
}

static uint32_t read_item(reader *r) {
    if (take(r, '"')) return read_text(r);
    if (take(r, '[')) return read_class(r);
    if (take(r, '(')) return read_inside(r);
    if (take(r, '.')) {
        const uint32_t first = r->grammar->range_count;
        return add_range(r, 0, HDL_LAST_CHARACTER) ? add_node(r, (hdl_node){ HDL_NODE_CHARACTERS, first, 0, 1, 0 })
                                                   : HDL_NO_NODE;
    }
    if (is_name(peek(r))) {
        const uint32_t rule = rule_number(r, read_name(r));
        return rule == UINT32_MAX ? HDL_NO_NODE : add_node(r, (hdl_node){ .kind = HDL_NODE_RULE, .first = rule });
    }
    if (peek(r) == '<' || peek(r) == '!')
        return fail(r, HD_STATUS_UNSUPPORTED, "tokens in a grammar are not supported; write their text");
    return fail(r, HD_STATUS_PARSE, "here may stand \"a text\", [a class], ., (a choice) or a rule's name");
}

static bool read_number(reader *r, uint32_t *out) {
    const size_t from = r->scan.at;
    for (*out = 0; peek(r) >= '0' && peek(r) <= '9'; r->scan.at++) {
        *out = *out * 10 + (uint32_t)(peek(r) - '0');
        if (*out > HDL_MAX_REPEATS) return fail(r, HD_STATUS_LIMIT, "too many repetitions"), false;
    }
    return r->scan.at > from || (fail(r, HD_STATUS_PARSE, "a number of repetitions is missing"), false);
}

/* {m}, {m,} or {m,n} */
static bool read_counts(reader *r, uint32_t *out_least, uint32_t *out_most) {
    if (!read_number(r, out_least)) return false;
    *out_most = *out_least;
    if (take(r, ',')) {
        *out_most = HDL_ENDLESS;
        if (peek(r) != '}' && !read_number(r, out_most)) return false;
    }
    if (!take(r, '}')) return fail(r, HD_STATUS_PARSE, "a number of repetitions ends with }"), false;
    return *out_most >= *out_least || (fail(r, HD_STATUS_PARSE, "more repetitions are needed than allowed"), false);
}

static uint32_t read_repeated(reader *r, bool nested) {
    uint32_t node = read_item(r);
    for (uint32_t i = 0; node; i++) {
        uint32_t least = 0, most = HDL_ENDLESS;
        skip(r, nested);
        if (take(r, '+')) least = 1;
        else if (take(r, '?')) most = 1;
        else if (take(r, '{')) {
            if (!read_counts(r, &least, &most)) return HDL_NO_NODE;
        } else if (!take(r, '*')) {
            return node;
        }
        if (i == MOST_MARKS) return fail(r, HD_STATUS_LIMIT, "too many repetitions of a repetition");
        node = add_node(r, (hdl_node){ HDL_NODE_REPEAT, node, 0, least, most });
    }
    return node;
}

static uint32_t read_sequence(reader *r, bool nested) {
    uint32_t first = HDL_NO_NODE, last = HDL_NO_NODE;
    for (;;) {
        skip(r, nested);
        const int c = peek(r);
        if (c < 0 || c == '|' || c == ')' || c == '\n')
            return add_node(r, (hdl_node){ .kind = HDL_NODE_SEQUENCE, .first = first });
        const uint32_t node = read_repeated(r, nested);
        if (!node) return HDL_NO_NODE;
        append(r, &first, &last, node);
    }
}

/* A choice may go on in a line that begins with |. */
static bool more_choices(reader *r) {
    const size_t before = r->scan.at;
    skip(r, true);
    if (take(r, '|')) return true;
    r->scan.at = before;
    return false;
}

static uint32_t read_choice(reader *r, bool nested) {
    uint32_t first = HDL_NO_NODE, last = HDL_NO_NODE;
    do {
        skip(r, true);
        const uint32_t node = read_sequence(r, nested);
        if (!node) return HDL_NO_NODE;
        append(r, &first, &last, node);
    } while (more_choices(r));
    return first == last ? first : add_node(r, (hdl_node){ .kind = HDL_NODE_CHOICE, .first = first });
}

/* ---- rules ---- */

static bool read_rule(reader *r) {
    const hdl_span name = read_name(r);
    if (!name.count) return fail(r, HD_STATUS_PARSE, "a rule begins with its name: root ::= ..."), false;
    const uint32_t number = rule_number(r, name);
    if (number == UINT32_MAX) return false;
    if (r->grammar->rules[number].node) return fail(r, HD_STATUS_PARSE, "this rule is there already"), false;
    skip(r, false);
    if (!take(r, ':') || !take(r, ':') || !take(r, '='))
        return fail(r, HD_STATUS_PARSE, "::= is missing behind a rule's name"), false;
    const uint32_t node = read_choice(r, false);
    if (!node) return false;
    if (peek(r) == ')') return fail(r, HD_STATUS_PARSE, "a bracket is closed that was not opened"), false;
    r->grammar->rules[number].node = node;
    return true;
}

int64_t hdl_grammar_rule(const hdl_grammar *grammar, const char *name) {
    return hdl_index_find(&grammar->names, hdl_text(name), name_of, grammar);
}

static hd_status read_rules(reader *r) {
    for (skip(r, true); peek(r) >= 0; skip(r, true))
        if (!read_rule(r)) return r->error->status;
    const int64_t root = hdl_grammar_rule(r->grammar, "root");
    if (root < 0)
        return hdl_fail(r->error, HD_STATUS_NAME_NOT_FOUND,
                        "grammar: no rule is called root, which answers begin with");
    r->grammar->root = (uint32_t)root;
    for (uint32_t i = 0; i < r->grammar->rule_count; i++) {
        char quoted[HDL_QUOTE];
        if (!r->grammar->rules[i].node)
            return hdl_fail(r->error, HD_STATUS_NAME_NOT_FOUND, "grammar: there is no rule %s",
                            hdl_quote(r->grammar->rules[i].name, quoted));
    }
    return HD_OK;
}

hd_status hdl_gbnf_read(const hd_allocator *allocator, hdl_span text, hdl_grammar *out, hd_error *error) {
    hd_error own = { 0 };
    reader r = { .grammar = out, .scan = { .text = text }, .error = error ? error : &own };
    *out = (hdl_grammar){ .allocator = allocator ? *allocator : hdl_default_allocator };
    if (text.count > HDL_MAX_GRAMMAR_BYTES)
        return hdl_fail(r.error, HD_STATUS_LIMIT, "grammar: a text of %llu bytes; the limit is %u",
                        (unsigned long long)text.count, HDL_MAX_GRAMMAR_BYTES);
    add_node(&r, (hdl_node){ .kind = HDL_NODE_SEQUENCE }); /* number 0 is none */
    return r.grammar->node_count ? read_rules(&r) : r.error->status;
}

hd_status hdl_grammar_put_frame(hdl_grammar *g, const hdl_frame *frame, hd_error *error) {
    if (!hdl_grow(&g->allocator, &g->nodes, &g->node_room, g->node_count + 1, sizeof *g->nodes) ||
        !hdl_grow(&g->allocator, &g->rules, &g->rule_room, g->rule_count + 1, sizeof *g->rules))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory");
    g->nodes[g->node_count] = (hdl_node){ .kind = HDL_NODE_FRAME };
    g->rules[g->rule_count] = (hdl_rule){ hdl_text("answer"), g->node_count++ };
    g->root = g->rule_count++;
    g->frame = frame;
    return HD_OK;
}

void hdl_grammar_free(hdl_grammar *g) {
    if (!g->allocator.resize) return;
    hdl_free(&g->allocator, g->nodes, g->node_room * sizeof *g->nodes);
    hdl_free(&g->allocator, g->ranges, g->range_room * sizeof *g->ranges);
    hdl_free(&g->allocator, g->rules, g->rule_room * sizeof *g->rules);
    hdl_index_free(&g->names, &g->allocator);
    *g = (hdl_grammar){ 0 };
}
