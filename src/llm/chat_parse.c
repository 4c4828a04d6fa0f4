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
    else hdl_chat_fail(p->run, HD_STATUS_PARSE, p->word.at, "%s where %s should stand,", hdl_quote(p->word.text, shown), wanted);
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
    return p->word.kind == HDL_WORD_BLOCK_BEGIN && p->peek.kind == HDL_WORD_NAME && hdl_same(p->peek.text, hdl_text(name));
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
    while (p->word.kind != HDL_WORD_END) {
        if (p->word.kind == HDL_WORD_BLOCK_BEGIN &&
            (at_block(p, "else") || at_block(p, "elif") || hdl_begins(p->peek.text, hdl_text("end"))))
            return;
        hdl_parse_add(p, parent, &tail, parse_statement(p));
    }
}

static void parse_end(hdl_parser *p, const char *name) {
    if (!skip_block(p, name)) {
        if (p->word.kind == HDL_WORD_BLOCK_BEGIN) hdl_parse_next(p); /* the error names what stands in the block */
        hdl_parse_wrong(p, name);
    } else if (p->word.kind == HDL_WORD_NAME) {
        hdl_parse_next(p); /* {% endmacro name %} */
    }
    end_block(p);
}

static hdl_node *parse_if(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_IF, at, hdl_parse_tuple(p), NULL);
    end_block(p);
    parse_body(p, node, &node->list);
    hdl_node **tail = &node->other;
    const uint32_t other_at = p->word.at;
    if (++p->depth > HDL_MAX_CHAT_NESTING) hdl_chat_fail(p->run, HD_STATUS_LIMIT, at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
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

static hdl_node *parse_for(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_FOR, at, NULL, NULL), **tail = &node->b;
    const bool open = hdl_parse_skip(p, HDL_WORD_SIGN, "(");
    do {
        hdl_node *name = hdl_parse_node(p, HDL_NODE_NAME, p->word.at, NULL, NULL);
        name->text = take_name(p);
        hdl_parse_add(p, node, &tail, name);
    } while (hdl_parse_skip(p, HDL_WORD_SIGN, ","));
    if (open) hdl_parse_expect(p, HDL_WORD_SIGN, ")");
    hdl_parse_expect(p, HDL_WORD_NAME, "in");
    hdl_node **source = &node->a, **test = &node->c;
    hdl_parse_add(p, node, &source, hdl_parse_or(p));
    if (hdl_parse_skip(p, HDL_WORD_NAME, "if")) hdl_parse_add(p, node, &test, hdl_parse_expression(p));
    if (hdl_parse_is(p, HDL_WORD_NAME, "recursive")) hdl_chat_unsupported(p->run, p->word.at, "the form of for", p->word.text);
    end_block(p);
    parse_body(p, node, &node->list);
    if (skip_block(p, "else")) {
        end_block(p);
        parse_body(p, node, &node->other);
    }
    parse_end(p, "endfor");
    return node;
}

static hdl_node *parse_set(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_SET, at, NULL, NULL);
    node->text = take_name(p);
    if (hdl_parse_skip(p, HDL_WORD_SIGN, ".")) {
        hdl_node **tail = &node->other, *member = hdl_parse_node(p, HDL_NODE_NAME, p->word.at, NULL, NULL);
        member->text = take_name(p);
        hdl_parse_add(p, node, &tail, member);
    }
    if (hdl_parse_is(p, HDL_WORD_SIGN, ",") || hdl_parse_is(p, HDL_WORD_SIGN, "|"))
        hdl_chat_unsupported(p->run, p->word.at, "set with", p->word.text);
    hdl_node **value = &node->a;
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "=")) {
        hdl_parse_add(p, node, &value, hdl_parse_tuple(p));
        end_block(p);
    } else {
        end_block(p);
        parse_body(p, node, &node->list);
        parse_end(p, "endset");
    }
    return node;
}

static hdl_node *parse_macro(hdl_parser *p, uint32_t at) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_MACRO, at, NULL, NULL), **tail = &node->other;
    node->text = take_name(p);
    hdl_parse_expect(p, HDL_WORD_SIGN, "(");
    while (p->word.kind != HDL_WORD_END && !hdl_parse_is(p, HDL_WORD_SIGN, ")")) {
        hdl_node *parameter = hdl_parse_node(p, HDL_NODE_ARG, p->word.at, NULL, NULL), **value = &parameter->a;
        parameter->text = take_name(p);
        if (hdl_parse_skip(p, HDL_WORD_SIGN, "=")) hdl_parse_add(p, parameter, &value, hdl_parse_expression(p));
        hdl_parse_add(p, node, &tail, parameter);
        if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) break;
    }
    hdl_parse_expect(p, HDL_WORD_SIGN, ")");
    end_block(p);
    parse_body(p, node, &node->list);
    parse_end(p, "endmacro");
    return node;
}

static hdl_node *parse_block(hdl_parser *p) {
    const uint32_t at = p->word.at;
    hdl_parse_next(p);
    const hdl_word name = p->word;
    hdl_parse_expect(p, HDL_WORD_NAME, NULL);
    if (hdl_same(name.text, hdl_text("if"))) return parse_if(p, at);
    if (hdl_same(name.text, hdl_text("for"))) return parse_for(p, at);
    if (hdl_same(name.text, hdl_text("set"))) return parse_set(p, at);
    if (hdl_same(name.text, hdl_text("macro"))) return parse_macro(p, at);
    const bool stops = hdl_same(name.text, hdl_text("break")), goes_on = hdl_same(name.text, hdl_text("continue"));
    hdl_node *node = hdl_parse_node(p, stops ? HDL_NODE_BREAK : goes_on ? HDL_NODE_CONTINUE : HDL_NODE_GROUP, at, NULL, NULL);
    if (stops || goes_on) {
        end_block(p);
    } else if (hdl_same(name.text, hdl_text("generation"))) {
        end_block(p);
        parse_body(p, node, &node->list);
        parse_end(p, "endgeneration");
    } else if (!hdl_chat_stopped(p->run)) {
        hdl_chat_unsupported(p->run, name.at, "statement", name.text);
        p->word.kind = HDL_WORD_END;
    }
    return node;
}

static hdl_node *parse_statement(hdl_parser *p) {
    hdl_node *node;
    if (++p->depth > HDL_MAX_CHAT_NESTING) {
        hdl_chat_fail(p->run, HD_STATUS_LIMIT, p->word.at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
        p->word.kind = HDL_WORD_END;
    }
    if (p->word.kind == HDL_WORD_BLOCK_BEGIN) {
        node = parse_block(p);
    } else if (p->word.kind == HDL_WORD_PRINT_BEGIN) {
        const uint32_t at = p->word.at;
        hdl_parse_next(p);
        node = hdl_parse_node(p, HDL_NODE_PRINT, at, hdl_parse_tuple(p), NULL);
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
    hdl_node *all = hdl_parse_node(&p, HDL_NODE_GROUP, 0, NULL, NULL);
    parse_body(&p, all, &all->list);
    if (p.word.kind == HDL_WORD_BLOCK_BEGIN) {
        hdl_parse_next(&p);
        hdl_parse_wrong(&p, "no such block");
    }
    return all->list;
}
