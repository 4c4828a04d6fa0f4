/* chat_parse.c: words to statements. The tree is bounded in depth as it is made, so that whoever walks it is, too. */
#include "llm/chat_inside.h"

void hdl_parse_next(hdl_parser *p) {
    p->word = p->peek;
    if (hdl_chat_stopped(p->run)) p->peek = (hdl_word){ .kind = HDL_WORD_END, .at = p->word.at, .text = hdl_text("") };
    else p->peek = hdl_lex(&p->lexer);
    if (hdl_chat_stopped(p->run)) p->word.kind = HDL_WORD_END; /* ends every loop */
}

bool hdl_parse_is(const hdl_parser *p, hdl_word_kind kind, const char *text) {
    return p->word.kind == kind && (!text || hdl_same(p->word.text, hdl_text(text)));
}

bool hdl_parse_skip(hdl_parser *p, hdl_word_kind kind, const char *text) {
    if (!hdl_parse_is(p, kind, text)) return false;
    hdl_parse_next(p);
    return true;
}

void hdl_parse_wrong(hdl_parser *p, const char *wanted) {
    char shown[HDL_QUOTE];
    if (p->word.kind == HDL_WORD_END)
        hdl_chat_fail(p->run, HD_STATUS_PARSE, p->word.at, "the template ends where %s should stand,", wanted);
    else
        hdl_chat_fail(p->run, HD_STATUS_PARSE, p->word.at, "%s where %s should stand,", hdl_quote(p->word.text, shown),
                      wanted);
    p->word.kind = HDL_WORD_END;
}

void hdl_parse_expect(hdl_parser *p, hdl_word_kind kind, const char *text) {
    if (!hdl_parse_skip(p, kind, text)) hdl_parse_wrong(p, text ? text : "a name");
}

static void deepen(hdl_parser *p, hdl_node *node, const hdl_node *child) {
    if (!child || child->depth < node->depth) return;
    node->depth = child->depth + 1;
    if (node->depth > HDL_MAX_CHAT_NESTING)
        hdl_chat_fail(p->run, HD_STATUS_LIMIT, node->at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
}

hdl_node *hdl_parse_node(hdl_parser *p, hdl_node_kind kind, uint32_t at, hdl_node *a, hdl_node *b) {
    hdl_node *node = hdl_chat_take(p->run, 1, sizeof *node);
    if (!node) node = &p->nothing;
    *node = (hdl_node){ .kind = kind, .at = at, .text = hdl_text(""), .a = a, .b = b };
    deepen(p, node, a);
    deepen(p, node, b);
    return node;
}

void hdl_parse_add(hdl_parser *p, hdl_node *parent, hdl_node ***tail, hdl_node *child) {
    if (hdl_chat_stopped(p->run)) return;
    **tail = child;
    *tail = &child->next;
    deepen(p, parent, child);
}

/* ---- statements ---- */

static hdl_span take_name(hdl_parser *p) {
    const hdl_span name = p->word.text;
    hdl_parse_expect(p, HDL_WORD_NAME, NULL);
    return name;
}

static void end_block(hdl_parser *p) { hdl_parse_expect(p, HDL_WORD_BLOCK_END, "%}"); }

static bool at_block(const hdl_parser *p, const char *name) {
    return p->word.kind == HDL_WORD_BLOCK_BEGIN && p->peek.kind == HDL_WORD_NAME &&
           hdl_same(p->peek.text, hdl_text(name));
}

/* Skips "{% name %}" if it stands here. */
static bool skip_block(hdl_parser *p, const char *name) {
    if (!at_block(p, name)) return false;
    hdl_parse_next(p);
    hdl_parse_next(p);
    return true;
}

static hdl_node *parse_statement(hdl_parser *p);

/* Statements into the list up to a block that ends or divides: up to one whose name begins with "end" or is "else" or
 * "elif". */
static void parse_body(hdl_parser *p, hdl_node *parent, hdl_node **list) {
    hdl_node **tail = list;
    const bool in_if = p->in_if;
    for (; p->word.kind != HDL_WORD_END; p->in_if = in_if) {
        const bool ends = p->peek.text.count >= 3 && memcmp(p->peek.text.bytes, "end", 3) == 0;
        if (p->word.kind == HDL_WORD_BLOCK_BEGIN && (ends || at_block(p, "else") || at_block(p, "elif"))) return;
        p->in_if = parent->kind == HDL_NODE_IF;
        hdl_parse_add(p, parent, &tail, parse_statement(p));
    }
}

static void parse_end(hdl_parser *p, const char *name) {
    if (!skip_block(p, name)) {
        if (p->word.kind == HDL_WORD_BLOCK_BEGIN) hdl_parse_next(p); /* the error names what stands in the block */
        hdl_parse_wrong(p, name);
    }
    end_block(p);
}

static hdl_node *parse_if(hdl_parser *p, uint32_t at) {
    const bool in_if = p->in_if;
    p->in_if = true;
    hdl_node *node = hdl_parse_node(p, HDL_NODE_IF, at, hdl_parse_tuple(p, hdl_parse_or), NULL);
    p->in_if = in_if;
    end_block(p);
    parse_body(p, node, &node->list);
    hdl_node **tail = &node->other;
    const uint32_t other_at = p->word.at;
    hdl_parse_enter(p);
    if (skip_block(p, "elif")) {
        hdl_parse_add(p, node, &tail, parse_if(p, other_at));
    } else {
        if (skip_block(p, "else")) {
            end_block(p);
            parse_body(p, node, &node->other);
        }
        parse_end(p, "endif");
    }
    p->depth--;
    return node;
}

static hdl_node *parse_target(hdl_parser *p, bool members);

static hdl_node *parse_target_part(hdl_parser *p, bool members) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_NAME, p->word.at, NULL, NULL);
    hdl_node_kind constant;
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) {
        if (!hdl_parse_enter(p)) return node;
        node = parse_target(p, members);
        hdl_parse_expect(p, HDL_WORD_SIGN, ")");
        p->depth--;
        return node;
    }
    if (hdl_parse_constant(p->word.text, &constant)) hdl_parse_wrong(p, "a name to set");
    node->text = take_name(p);
    if (members && hdl_parse_skip(p, HDL_WORD_SIGN, ".")) {
        node = hdl_parse_node(p, HDL_NODE_ATTR, node->at, node, NULL);
        node->text = take_name(p);
    }
    return node;
}

/* What gets values: names, with `members` also those of namespaces, in any tuples. */
static hdl_node *parse_target(hdl_parser *p, bool members) {
    hdl_node *first = parse_target_part(p, members);
    if (!hdl_parse_is(p, HDL_WORD_SIGN, ",")) return first;
    hdl_node *tuple = hdl_parse_node(p, HDL_NODE_TUPLE, first->at, NULL, NULL), **tail = &tuple->list;
    hdl_parse_add(p, tuple, &tail, first);
    while (hdl_parse_skip(p, HDL_WORD_SIGN, ",") && !hdl_parse_is(p, HDL_WORD_NAME, "in") &&
           !hdl_parse_is(p, HDL_WORD_SIGN, ")"))
        hdl_parse_add(p, tuple, &tail, parse_target_part(p, members));
    return tuple;
}

static hdl_node *parse_for(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_FOR, at, NULL, parse_target(p, false));
    hdl_parse_expect(p, HDL_WORD_NAME, "in");
    hdl_node **source = &node->a, **test = &node->c;
    hdl_parse_add(p, node, &source, hdl_parse_tuple(p, hdl_parse_or));
    if (hdl_parse_skip(p, HDL_WORD_NAME, "if")) hdl_parse_add(p, node, &test, hdl_parse_expression(p));
    node->number = hdl_parse_skip(p, HDL_WORD_NAME, "recursive");
    end_block(p);
    p->loops++;
    parse_body(p, node, &node->list);
    p->loops--;
    if (skip_block(p, "else")) {
        end_block(p);
        parse_body(p, node, &node->other);
    }
    parse_end(p, "endfor");
    return node;
}

/* The text of the statements up to the block `end`, through the filters that stand here. */
static hdl_node *parse_capture(hdl_parser *p, uint32_t at, bool begun, const char *end) {
    hdl_node *text = hdl_parse_node(p, HDL_NODE_CAPTURE, at, NULL, NULL), *filtered = hdl_parse_filters(p, text, begun);
    end_block(p);
    parse_body(p, text, &text->list);
    parse_end(p, end);
    return filtered;
}

static hdl_node *parse_set(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_SET, at, NULL, parse_target(p, true)), **value = &node->a;
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "=")) {
        hdl_parse_add(p, node, &value, hdl_parse_tuple(p, hdl_parse_expression));
        end_block(p);
    } else {
        hdl_parse_add(p, node, &value, parse_capture(p, at, false, "endset"));
    }
    return node;
}

static void parse_parameters(hdl_parser *p, hdl_node *macro) {
    hdl_node **tail = &macro->other;
    hdl_parse_expect(p, HDL_WORD_SIGN, "(");
    for (bool optional = false; p->word.kind != HDL_WORD_END && !hdl_parse_is(p, HDL_WORD_SIGN, ")");) {
        hdl_node *parameter = hdl_parse_node(p, HDL_NODE_ARG, p->word.at, NULL, NULL), **value = &parameter->a;
        parameter->text = take_name(p);
        if (hdl_parse_skip(p, HDL_WORD_SIGN, "=")) hdl_parse_add(p, parameter, &value, hdl_parse_expression(p));
        else if (optional) hdl_parse_wrong(p, "a default");
        optional = parameter->a != NULL;
        hdl_parse_add(p, macro, &tail, parameter);
        if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) break;
    }
    hdl_parse_expect(p, HDL_WORD_SIGN, ")");
}

static void parse_macro_body(hdl_parser *p, hdl_node *macro, const char *end) {
    const uint32_t loops = p->loops;
    const int64_t takes = p->takes;
    end_block(p);
    p->loops = 0;
    p->takes = 0;
    parse_body(p, macro, &macro->list);
    parse_end(p, end);
    macro->number = p->takes;
    for (const hdl_node *parameter = macro->other; parameter; parameter = parameter->next)
        macro->number &= ~hdl_parse_takes(parameter->text);
    p->loops = loops;
    p->takes |= takes;
}

static hdl_node *parse_macro(hdl_parser *p, uint32_t at) {
    hdl_node *macro = hdl_parse_node(p, HDL_NODE_MACRO, at, NULL, NULL);
    macro->text = take_name(p);
    parse_parameters(p, macro);
    parse_macro_body(p, macro, "endmacro");
    return macro;
}

/* {% call(parameters) macro() %} text {% endcall %}: the macro gets the text as a macro. */
static hdl_node *parse_call_block(hdl_parser *p, uint32_t at) {
    hdl_node *macro = hdl_parse_node(p, HDL_NODE_MACRO, at, NULL, NULL);
    if (hdl_parse_is(p, HDL_WORD_SIGN, "(")) parse_parameters(p, macro);
    hdl_node *call = hdl_parse_expression(p);
    if (call->kind != HDL_NODE_CALL) hdl_parse_wrong(p, "a call");
    parse_macro_body(p, macro, "endcall");
    return hdl_parse_node(p, HDL_NODE_CALL_BLOCK, at, call, macro);
}

/* {% generation %}: its text, which only matters for training. */
static hdl_node *parse_generation(hdl_parser *p, uint32_t at) {
    const uint32_t loops = p->loops;
    p->loops = 0;
    hdl_node *node = hdl_parse_node(p, HDL_NODE_PRINT, at, parse_capture(p, at, false, "endgeneration"), NULL);
    p->loops = loops;
    return node;
}

static hdl_node *parse_filter_block(hdl_parser *p, uint32_t at) {
    return hdl_parse_node(p, HDL_NODE_PRINT, at, parse_capture(p, at, true, "endfilter"), NULL);
}

static hdl_node *parse_leap(hdl_parser *p, uint32_t at, hdl_node_kind kind) {
    if (p->loops == 0) hdl_chat_fail(p->run, HD_STATUS_PARSE, at, "break or continue outside of a loop");
    end_block(p);
    return hdl_parse_node(p, kind, at, NULL, NULL);
}
static hdl_node *parse_break(hdl_parser *p, uint32_t at) { return parse_leap(p, at, HDL_NODE_BREAK); }
static hdl_node *parse_continue(hdl_parser *p, uint32_t at) { return parse_leap(p, at, HDL_NODE_CONTINUE); }

static hdl_node *parse_block(hdl_parser *p) {
    static const struct { const char *name; hdl_node *(*parse)(hdl_parser *p, uint32_t at); } table[] = {
        { "if", parse_if },       { "for", parse_for },   { "set", parse_set },           { "macro", parse_macro },
        { "break", parse_break }, { "continue", parse_continue }, { "filter", parse_filter_block },
        { "call", parse_call_block },
        { "generation", parse_generation },
    };
    const uint32_t at = p->word.at;
    hdl_parse_next(p);
    const hdl_word name = p->word;
    hdl_parse_expect(p, HDL_WORD_NAME, NULL);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (hdl_same(name.text, hdl_text(table[i].name))) return table[i].parse(p, at);
    hdl_chat_unsupported(p->run, name.at, "statement", name.text);
    p->word.kind = HDL_WORD_END;
    return &p->nothing;
}

static hdl_node *parse_statement(hdl_parser *p) {
    hdl_node *node;
    hdl_parse_enter(p);
    if (p->word.kind == HDL_WORD_BLOCK_BEGIN) {
        node = parse_block(p);
    } else if (p->word.kind == HDL_WORD_PRINT_BEGIN) {
        const uint32_t at = p->word.at;
        hdl_parse_next(p);
        node = hdl_parse_node(p, HDL_NODE_PRINT, at, hdl_parse_tuple(p, hdl_parse_expression), NULL);
        hdl_parse_expect(p, HDL_WORD_PRINT_END, "}}");
    } else {
        node = hdl_parse_node(p, HDL_NODE_DATA, p->word.at, NULL, NULL);
        node->text = p->word.text;
        hdl_parse_next(p);
    }
    p->depth--;
    return node;
}

/* The text with every kind of newline as one, and without the last one. */
static hdl_span with_plain_newlines(hdl_chat_run *run, hdl_span source) {
    if (source.count && memchr(source.bytes, '\r', (size_t)source.count)) {
        uint8_t *bytes = hdl_chat_take(run, source.count, 1);
        if (!bytes) return hdl_text("");
        uint64_t count = 0;
        for (uint64_t i = 0; i < source.count; i++) {
            const bool pair = source.bytes[i] == '\r' && i + 1 < source.count && source.bytes[i + 1] == '\n';
            bytes[count++] = source.bytes[i] == '\r' ? '\n' : source.bytes[i];
            i += pair;
        }
        source = (hdl_span){ bytes, count };
    }
    if (source.count && source.bytes[source.count - 1] == '\n') source.count--;
    return source;
}

hdl_node *hdl_parse_template(hdl_chat_run *run, hdl_span source) {
    hdl_parser p = { .run = run, .lexer = hdl_lex_begin(run, with_plain_newlines(run, source)) };
    hdl_parse_next(&p);
    hdl_parse_next(&p);
    hdl_node *all = hdl_parse_node(&p, HDL_NODE_CAPTURE, 0, NULL, NULL);
    parse_body(&p, all, &all->list);
    if (p.word.kind == HDL_WORD_BLOCK_BEGIN) {
        hdl_parse_next(&p);
        hdl_parse_wrong(&p, "no such block");
    }
    return all->list;
}
