/* pattern.c: compiles a pattern to a list of nodes and matches it, going back where it must. Matching is bounded by the
 * patterns that there are: none of them looks at a character more than a fixed number of times on the way to its
 * match. */
#include "llm/pattern.h"
#include "llm/utf8.h"
#include <string.h>

#include "llm/unicode_classes.inc"

enum { MATCHED, SET, EITHER, JUMP, AHEAD, NOT_AHEAD, NOT_BEHIND, AT_END };
enum { NOWHERE = UINT16_MAX, NO_LIMIT = UINT16_MAX, SPACES = 1 << 8 };

/* ---- characters ---- */

static uint32_t class_of(uint32_t code) {
    if (code >= CLASS_END) return 0;
    return class_pages[class_index[code / CLASS_PAGE]][code % CLASS_PAGE / 2] >> 4 * (code % 2) & 15;
}

/* The character at `at`, and its bytes. */
static uint32_t read_char(const uint8_t *text, size_t at, size_t end, size_t *out_bytes) {
    uint32_t code;
    *out_bytes = hdl_utf8_read(text + at, end - at, &code);
    return code == HDL_UTF8_INVALID ? 0xFFFD : code;
}

/* Where the character before `at` begins. */
static size_t step_back(const uint8_t *text, size_t begin, size_t at) {
    for (size_t back = 2; back <= 4 && back <= at - begin; back++) {
        uint32_t code;
        if (hdl_utf8_more(text[at - back])) continue;
        return hdl_utf8_read(text + at - back, back, &code) == back ? at - back : at - 1;
    }
    return at - 1;
}

static bool has(const hdl_pattern *p, const hdl_char_set *set, uint32_t code) {
    if (code < 128) return set->ascii[code / 64] >> code % 64 & 1;
    if (set->classes && set->classes >> class_of(code) & 1) return !set->negated;
    for (uint32_t i = 0; i < set->count; i++)
        if (code >= p->ranges[set->first + i].low && code <= p->ranges[set->first + i].high) return !set->negated;
    return set->negated;
}

/* ---- matching ---- */

typedef struct matching {
    const hdl_pattern *p;
    const uint8_t     *text;
    size_t             begin, end;
} matching;

static size_t match(const matching *m, uint32_t n, size_t at);

/* A run of a set's characters, the longest that what follows allows. */
static size_t match_run(const matching *m, uint32_t n, size_t at) {
    const hdl_pattern_node *node = &m->p->nodes[n];
    const hdl_char_set *set = &m->p->sets[node->set];
    size_t count = 0, bytes, first = at;
    while (at < m->end && (node->most == NO_LIMIT || count < node->most) &&
           has(m->p, set, read_char(m->text, at, m->end, &bytes))) {
        at += bytes;
        count++;
    }
    for (; count >= node->least; count--, at = step_back(m->text, first, at)) {
        const size_t found = match(m, n + 1, at);
        if (found != HDL_NO_MATCH || count == 0) return found;
    }
    return HDL_NO_MATCH;
}

static size_t match(const matching *m, uint32_t n, size_t at) {
    for (;;) {
        const hdl_pattern_node *node = &m->p->nodes[n];
        const hdl_char_set *set = &m->p->sets[node->set];
        size_t bytes;
        switch (node->kind) {
        case MATCHED: return at;
        case JUMP: n = node->to; break;
        case SET:
            if (node->most != 1 || node->least != 1) return match_run(m, n, at);
            if (at == m->end || !has(m->p, set, read_char(m->text, at, m->end, &bytes))) return HDL_NO_MATCH;
            at += bytes;
            n++;
            break;
        case EITHER: {
            const size_t found = match(m, n + 1, at);
            if (found != HDL_NO_MATCH || node->to == NOWHERE) return found;
            n = node->to;
            break;
        }
        case AT_END:
            if (at != m->end) return HDL_NO_MATCH;
            n++;
            break;
        case NOT_BEHIND:
            if (at > m->begin && has(m->p, set, read_char(m->text, step_back(m->text, m->begin, at), at, &bytes)))
                return HDL_NO_MATCH;
            n++;
            break;
        default:
            if ((match(m, n + 1, at) != HDL_NO_MATCH) != (node->kind == AHEAD)) return HDL_NO_MATCH;
            n = node->to;
            break;
        }
    }
}

size_t hdl_pattern_match(const hdl_pattern *pattern, const uint8_t *text, size_t begin, size_t end, size_t at) {
    return match(&(matching){ pattern, text, begin, end }, 0, at);
}

/* ---- compiling ---- */

typedef struct compiling {
    hdl_pattern *p;
    const char  *at;
    bool         bad;
} compiling;

static bool take(compiling *c, const char *text) {
    const size_t count = strlen(text);
    if (strncmp(c->at, text, count) != 0) return false;
    c->at += count;
    return true;
}

static uint16_t add_node(compiling *c, uint8_t kind) {
    c->bad = c->bad || c->p->node_count == HDL_PATTERN_NODES;
    if (c->bad) return 0;
    c->p->nodes[c->p->node_count] = (hdl_pattern_node){ .kind = kind, .least = 1, .most = 1, .to = NOWHERE };
    return (uint16_t)c->p->node_count++;
}

static void add_range(compiling *c, hdl_char_set *set, uint32_t low, uint32_t high) {
    for (uint32_t code = low; code < 128 && code <= high; code++) set->ascii[code / 64] |= UINT64_C(1) << code % 64;
    c->bad = c->bad || c->p->range_count == HDL_PATTERN_RANGES || low > high;
    if (c->bad || high < 128) return;
    c->p->ranges[c->p->range_count].low = low;
    c->p->ranges[c->p->range_count++].high = high;
    set->count++;
}

/* \p{...}, \s and \S as classes; 0: none of them is next. */
static uint16_t take_classes(compiling *c) {
    static const struct {
        const char *text;
        uint16_t classes;
    } known[] = {
        { "\\p{Lu}", 1 << 1 }, { "\\p{Lt}", 1 << 1 }, { "\\p{Ll}", 1 << 2 }, { "\\p{Lm}", 1 << 3 },
        { "\\p{Lo}", 1 << 3 }, { "\\p{L}", 7 << 1 },  { "\\p{M}", 1 << 4 },  { "\\p{N}", 1 << 5 },
        { "\\p{P}", 1 << 6 },  { "\\p{S}", 1 << 7 },  { "\\s", SPACES },     { "\\S", 0x1FF & ~SPACES },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (take(c, known[i].text)) return known[i].classes;
    return 0;
}

/* One character, as it is or behind a backslash. */
static uint32_t take_char(compiling *c) {
    const bool escaped = take(c, "\\");
    if (escaped && take(c, "r")) return '\r';
    if (escaped && take(c, "n")) return '\n';
    if (escaped && take(c, "t")) return '\t';
    uint32_t code;
    const uint8_t *at = (const uint8_t *)c->at;
    const uint32_t bytes = *at ? hdl_utf8_read(at, strlen(c->at), &code) : 0;
    /* an escape of its own */
    const bool letter = escaped && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z'));
    c->bad = c->bad || bytes == 0 || letter;
    c->at += bytes;
    return bytes ? code : 0;
}

/* A character, a class, or [...]. */
static uint8_t take_set(compiling *c) {
    hdl_pattern *p = c->p;
    hdl_char_set set = { .first = (uint16_t)p->range_count };
    const bool many = take(c, "[");
    set.negated = many && take(c, "^");
    do {
        const uint16_t classes = take_classes(c);
        set.classes |= classes;
        if (classes) continue;
        const uint32_t low = take_char(c);
        const bool range = many && c->at[0] == '-' && c->at[1] != ']';
        if (range) c->at++;
        add_range(c, &set, low, range ? take_char(c) : low);
    } while (many && !c->bad && !take(c, "]"));
    for (uint32_t code = 0; code < 128; code++)
        if ((set.classes >> class_of(code) & 1)) set.ascii[code / 64] |= UINT64_C(1) << code % 64;
    for (uint32_t i = 0; i < 2 && set.negated; i++) set.ascii[i] = ~set.ascii[i];
    c->bad = c->bad || p->set_count == HDL_PATTERN_SETS;
    if (c->bad) return 0;
    for (uint32_t i = 0; i < p->set_count; i++) /* many patterns name a set again and again */
        if (set.count == 0 && memcmp(set.ascii, p->sets[i].ascii, sizeof set.ascii) == 0 &&
            set.classes == p->sets[i].classes && p->sets[i].count == 0 && set.negated == p->sets[i].negated)
            return (uint8_t)i;
    p->sets[p->set_count] = set;
    return (uint8_t)p->set_count++;
}

static uint16_t take_number(compiling *c) {
    uint32_t value = 0;
    c->bad = c->bad || *c->at < '0' || *c->at > '9';
    while (*c->at >= '0' && *c->at <= '9' && value < 1000) value = value * 10 + (uint32_t)(*c->at++ - '0');
    return (uint16_t)value;
}

static void take_times(compiling *c, hdl_pattern_node *node) {
    if (take(c, "?")) node->least = 0;
    else if (take(c, "*")) node->least = 0, node->most = NO_LIMIT;
    else if (take(c, "+")) node->most = NO_LIMIT;
    else if (take(c, "{")) {
        node->least = node->most = take_number(c);
        if (take(c, ",")) node->most = take_number(c);
        c->bad = c->bad || !take(c, "}");
    }
}

static void take_alternatives(compiling *c);

/* Alternatives in brackets, `kind` before them. */
static void take_look(compiling *c, uint8_t kind) {
    const uint16_t look = add_node(c, kind);
    take_alternatives(c);
    add_node(c, MATCHED);
    c->p->nodes[look].to = (uint16_t)c->p->node_count;
    c->bad = c->bad || !take(c, ")");
}

static void take_item(compiling *c) {
    if (take(c, "$")) {
        add_node(c, AT_END);
    } else if (take(c, "(?=")) {
        take_look(c, AHEAD);
    } else if (take(c, "(?!")) {
        take_look(c, NOT_AHEAD);
    } else if (take(c, "(?<!")) {
        const uint16_t node = add_node(c, NOT_BEHIND);
        c->p->nodes[node].set = take_set(c);
        c->bad = c->bad || !take(c, ")");
    } else if (take(c, "(?:")) {
        const uint16_t either = add_node(c, EITHER); /* it, or nothing where a ? follows */
        take_alternatives(c);
        c->bad = c->bad || !take(c, ")");
        if (take(c, "?")) c->p->nodes[either].to = (uint16_t)c->p->node_count;
        c->bad = c->bad || *c->at == '*' || *c->at == '+' || *c->at == '{';
    } else {
        const uint16_t node = add_node(c, SET);
        c->p->nodes[node].set = take_set(c);
        take_times(c, &c->p->nodes[node]);
    }
}

/* Each alternative ends with a jump behind all of them. */
static void take_alternatives(compiling *c) {
    uint16_t jumps[HDL_PATTERN_NODES], count = 0;
    do {
        const uint16_t either = add_node(c, EITHER);
        while (!c->bad && *c->at && *c->at != '|' && *c->at != ')') take_item(c);
        jumps[count] = add_node(c, JUMP);
        if (*c->at == '|') c->p->nodes[either].to = (uint16_t)c->p->node_count;
        count += !c->bad;
    } while (!c->bad && take(c, "|"));
    for (uint16_t i = 0; i < count; i++) c->p->nodes[jumps[i]].to = (uint16_t)c->p->node_count;
}

bool hdl_pattern_compile(const char *text, hdl_pattern *out_pattern) {
    memset(out_pattern, 0, sizeof *out_pattern);
    compiling c = { .p = out_pattern, .at = text };
    take_alternatives(&c);
    add_node(&c, MATCHED);
    return !c.bad && *c.at == 0;
}
