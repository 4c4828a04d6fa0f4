/* chat_expression.c: words to expressions, one function for each level of binding, loosest first, as Jinja has them. */
#include "llm/chat_inside.h"

static hdl_node *parse_unary(hdl_parser *p, bool with_filters);

bool hdl_parse_enter(hdl_parser *p) {
    if (++p->depth <= HDL_MAX_CHAT_NESTING) return true;
    hdl_chat_fail(p->run, HD_STATUS_LIMIT, p->word.at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
    p->word.kind = HDL_WORD_END;
    return false;
}

static bool is_sign(const hdl_parser *p, const char *text) { return hdl_parse_is(p, HDL_WORD_SIGN, text); }
static bool is_name(const hdl_parser *p, const char *text) { return hdl_parse_is(p, HDL_WORD_NAME, text); }

/* The operator that stands here, of the list of texts with their ops. */
typedef struct operator { const char *text; hdl_op op; } operator;
static bool take_operator(hdl_parser *p, const operator *list, size_t count, hdl_op *out_op) {
    for (size_t i = 0; i < count; i++)
        if (hdl_parse_skip(p, HDL_WORD_SIGN, list[i].text)) {
            *out_op = list[i].op;
            return true;
        }
    return false;
}

static hdl_node *binary(hdl_parser *p, uint32_t at, hdl_op op, hdl_node *a, hdl_node *b) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_BINARY, at, a, b);
    node->op = op;
    return node;
}

/* a op b op c ..., from the left; `next` parses each operand. */
static hdl_node *parse_chain(hdl_parser *p, const operator *list, uint32_t count, hdl_node *(*next)(hdl_parser *p)) {
    hdl_node *a = next(p);
    hdl_op op;
    for (uint32_t at = p->word.at; take_operator(p, list, count, &op); at = p->word.at)
        a = binary(p, at, op, a, next(p));
    return a;
}

static hdl_node *parse_factor(hdl_parser *p) { return parse_unary(p, true); }
static hdl_node *parse_product(hdl_parser *p) {
    static const operator list[] = { { "*", HDL_OP_MUL }, { "//", HDL_OP_FLOOR }, { "%", HDL_OP_MOD } };
    hdl_node *a = parse_chain(p, list, 3, parse_factor);
    if (is_sign(p, "/") || is_sign(p, "**")) hdl_chat_unsupported(p->run, p->word.at, "operator", p->word.text);
    return a;
}
static hdl_node *parse_join(hdl_parser *p) { return parse_chain(p, &(operator){ "~", HDL_OP_JOIN }, 1, parse_product); }
static hdl_node *parse_sum(hdl_parser *p) {
    static const operator list[] = { { "+", HDL_OP_ADD }, { "-", HDL_OP_SUB } };
    return parse_chain(p, list, 2, parse_join);
}

static bool take_comparison(hdl_parser *p, hdl_op *out_op) {
    static const operator list[] = { { "==", HDL_OP_EQ }, { "!=", HDL_OP_NE }, { "<", HDL_OP_LT }, { "<=", HDL_OP_LE },
                                     { ">", HDL_OP_GT },  { ">=", HDL_OP_GE } };
    if (take_operator(p, list, 6, out_op)) return true;
    if (hdl_parse_skip(p, HDL_WORD_NAME, "in")) return *out_op = HDL_OP_IN, true;
    if (!is_name(p, "not") || p->peek.kind != HDL_WORD_NAME || !hdl_same(p->peek.text, hdl_text("in"))) return false;
    hdl_parse_next(p);
    hdl_parse_next(p);
    return *out_op = HDL_OP_NOT_IN, true;
}

static hdl_node *parse_comparison(hdl_parser *p) {
    hdl_node *a = parse_sum(p), *chain = NULL, **tail = NULL;
    hdl_op op;
    for (uint32_t at = p->word.at; take_comparison(p, &op); at = p->word.at) {
        if (!chain) {
            chain = hdl_parse_node(p, HDL_NODE_COMPARE, at, a, NULL);
            tail = &chain->list;
        }
        hdl_parse_add(p, chain, &tail, binary(p, at, op, parse_sum(p), NULL));
    }
    return chain ? chain : a;
}

static hdl_node *parse_not(hdl_parser *p) {
    const uint32_t at = p->word.at;
    if (!hdl_parse_enter(p)) return hdl_parse_node(p, HDL_NODE_NONE, at, NULL, NULL);
    hdl_node *node = hdl_parse_skip(p, HDL_WORD_NAME, "not") ? hdl_parse_node(p, HDL_NODE_NOT, at, parse_not(p), NULL)
                                                             : parse_comparison(p);
    p->depth--;
    return node;
}

/* The same of a word that is no operator on values. */
static hdl_node *parse_words(hdl_parser *p, const char *word, hdl_node_kind kind, hdl_node *(*next)(hdl_parser *p)) {
    hdl_node *a = next(p);
    for (uint32_t at = p->word.at; hdl_parse_skip(p, HDL_WORD_NAME, word); at = p->word.at)
        a = hdl_parse_node(p, kind, at, a, next(p));
    return a;
}
static hdl_node *parse_and(hdl_parser *p) { return parse_words(p, "and", HDL_NODE_AND, parse_not); }
hdl_node *hdl_parse_or(hdl_parser *p) { return parse_words(p, "or", HDL_NODE_OR, parse_and); }

hdl_node *hdl_parse_expression(hdl_parser *p) {
    if (!hdl_parse_enter(p)) return hdl_parse_node(p, HDL_NODE_NONE, p->word.at, NULL, NULL);
    hdl_node *node = hdl_parse_or(p);
    for (uint32_t at = p->word.at; hdl_parse_skip(p, HDL_WORD_NAME, "if"); at = p->word.at) {
        hdl_node *condition = hdl_parse_or(p), *choice = hdl_parse_node(p, HDL_NODE_CHOICE, at, condition, node),
                 **other = &choice->c;
        if (hdl_parse_skip(p, HDL_WORD_NAME, "else")) hdl_parse_add(p, choice, &other, hdl_parse_expression(p));
        node = choice;
    }
    p->depth--;
    return node;
}

typedef hdl_node *parse_item(hdl_parser *p);

/* Items up to `close`, or up to what can follow a tuple (NULL). */
static hdl_node *parse_items(hdl_parser *p, hdl_node *list, parse_item *next, const char *close) {
    hdl_node **tail = &list->list;
    while (*tail) tail = &(*tail)->next;
    while (p->word.kind != HDL_WORD_END) {
        if (close ? is_sign(p, close) : p->word.kind == HDL_WORD_BLOCK_END || p->word.kind == HDL_WORD_PRINT_END) break;
        hdl_parse_add(p, list, &tail, next(p));
        if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) break;
    }
    if (close) hdl_parse_expect(p, HDL_WORD_SIGN, close);
    return list;
}

/* One item, or a tuple if a comma follows. */
static hdl_node *parse_tuple(hdl_parser *p, parse_item *next, const char *close) {
    const uint32_t at = p->word.at;
    hdl_node *first = next(p);
    if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) {
        if (close) hdl_parse_expect(p, HDL_WORD_SIGN, close);
        return first;
    }
    hdl_node *tuple = hdl_parse_node(p, HDL_NODE_TUPLE, at, NULL, NULL), **tail = &tuple->list;
    hdl_parse_add(p, tuple, &tail, first);
    return parse_items(p, tuple, next, close);
}
hdl_node *hdl_parse_tuple(hdl_parser *p, parse_item *next) { return parse_tuple(p, next, NULL); }

static hdl_node *parse_map(hdl_parser *p, uint32_t at) {
    hdl_node *map = hdl_parse_node(p, HDL_NODE_MAP, at, NULL, NULL), **tail = &map->list;
    while (p->word.kind != HDL_WORD_END && !is_sign(p, "}")) {
        const uint32_t pair_at = p->word.at;
        hdl_node *key = hdl_parse_expression(p);
        hdl_parse_expect(p, HDL_WORD_SIGN, ":");
        hdl_parse_add(p, map, &tail, hdl_parse_node(p, HDL_NODE_ARG, pair_at, key, hdl_parse_expression(p)));
        if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) break;
    }
    hdl_parse_expect(p, HDL_WORD_SIGN, "}");
    return map;
}

/* Texts one after the other are one text. */
static hdl_span take_texts(hdl_parser *p) {
    hdl_span text = p->word.text;
    hdl_parse_next(p);
    if (p->word.kind != HDL_WORD_TEXT) return text;
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    hdl_put(p->run, &sink, text);
    for (; p->word.kind == HDL_WORD_TEXT; hdl_parse_next(p)) hdl_put(p->run, &sink, p->word.text);
    return hdl_sunk(&sink);
}

bool hdl_parse_constant(hdl_span name, hdl_node_kind *out_kind) {
    static const struct { const char *name; hdl_node_kind kind; } constants[] = {
        { "true", HDL_NODE_TRUE }, { "True", HDL_NODE_TRUE }, { "false", HDL_NODE_FALSE }, { "False", HDL_NODE_FALSE },
        { "none", HDL_NODE_NONE }, { "None", HDL_NODE_NONE },
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (hdl_same(name, hdl_text(constants[i].name))) return *out_kind = constants[i].kind, true;
    return false;
}

int64_t hdl_parse_takes(hdl_span name) {
    return hdl_same(name, hdl_text("caller"))    ? HDL_TAKES_CALLER
           : hdl_same(name, hdl_text("kwargs"))  ? HDL_TAKES_KWARGS
           : hdl_same(name, hdl_text("varargs")) ? HDL_TAKES_VARARGS
                                                 : 0;
}

static hdl_node *parse_primary(hdl_parser *p) {
    const hdl_word word = p->word;
    hdl_node *node = hdl_parse_node(p, HDL_NODE_NAME, word.at, NULL, NULL);
    if (hdl_chat_stopped(p->run)) return node;
    switch (word.kind) {
    case HDL_WORD_NAME:
        node->text = word.text;
        hdl_parse_constant(word.text, &node->kind);
        p->takes |= hdl_parse_takes(word.text);
        hdl_parse_next(p);
        return node;
    case HDL_WORD_NUMBER:
        node->kind = HDL_NODE_NUMBER;
        node->number = word.number;
        hdl_parse_next(p);
        return node;
    case HDL_WORD_TEXT:
        node->kind = HDL_NODE_TEXT;
        node->text = take_texts(p);
        return node;
    default: break;
    }
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) {
        node->kind = HDL_NODE_TUPLE;
        if (hdl_parse_skip(p, HDL_WORD_SIGN, ")")) return node;
        return parse_tuple(p, hdl_parse_expression, ")");
    }
    node->kind = HDL_NODE_LIST;
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "[")) return parse_items(p, node, hdl_parse_expression, "]");
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "{")) return parse_map(p, word.at);
    hdl_parse_wrong(p, "an expression");
    return node;
}

/* Arguments into node->list, up to ")". */
static void parse_args(hdl_parser *p, hdl_node *node) {
    hdl_node **tail = &node->list;
    bool named = false;
    while (p->word.kind != HDL_WORD_END && !is_sign(p, ")")) {
        hdl_node *arg = hdl_parse_node(p, HDL_NODE_ARG, p->word.at, NULL, NULL), **value = &arg->a;
        if (p->word.kind == HDL_WORD_NAME && p->peek.kind == HDL_WORD_SIGN && hdl_same(p->peek.text, hdl_text("="))) {
            arg->text = p->word.text;
            hdl_parse_next(p);
            hdl_parse_next(p);
            named = true;
        } else if (hdl_parse_skip(p, HDL_WORD_SIGN, "*")) {
            arg->kind = HDL_NODE_SPREAD;
            named = true;
        } else if (named) {
            hdl_parse_wrong(p, "an argument with a name");
        }
        if (is_sign(p, "**")) hdl_chat_unsupported(p->run, p->word.at, "argument", p->word.text);
        hdl_parse_add(p, arg, &value, hdl_parse_expression(p));
        hdl_parse_add(p, node, &tail, arg);
        if (!hdl_parse_skip(p, HDL_WORD_SIGN, ",")) break;
    }
    hdl_parse_expect(p, HDL_WORD_SIGN, ")");
}

/* "[item]" or "[a:b:c]"; the "[" is read. */
static hdl_node *parse_subscript(hdl_parser *p, uint32_t at, hdl_node *a) {
    hdl_node *node = hdl_parse_node(p, HDL_NODE_SLICE, at, a, NULL), **parts[] = { &node->b, &node->c, &node->d };
    bool colon = false;
    for (size_t i = 0; i < 3; i++) {
        if (!is_sign(p, ":") && !is_sign(p, "]")) hdl_parse_add(p, node, &parts[i], hdl_parse_expression(p));
        if (i == 2 || !hdl_parse_skip(p, HDL_WORD_SIGN, ":")) break;
        colon = true;
    }
    if (!colon) {
        node->kind = HDL_NODE_ITEM;
        if (!node->b) hdl_chat_unsupported(p->run, at, "subscript with", hdl_text(""));
    }
    if (is_sign(p, ",")) hdl_chat_unsupported(p->run, p->word.at, "subscript with", p->word.text);
    hdl_parse_expect(p, HDL_WORD_SIGN, "]");
    return node;
}

static hdl_node *parse_postfix(hdl_parser *p, hdl_node *node) {
    while (p->word.kind == HDL_WORD_SIGN) {
        const uint32_t at = p->word.at;
        if (hdl_parse_skip(p, HDL_WORD_SIGN, ".")) {
            if (p->word.kind == HDL_WORD_NUMBER) {
                node = hdl_parse_node(p, HDL_NODE_ITEM, at, node, parse_primary(p));
                continue;
            }
            node = hdl_parse_node(p, HDL_NODE_ATTR, at, node, NULL);
            node->text = p->word.text;
            hdl_parse_expect(p, HDL_WORD_NAME, NULL);
        } else if (hdl_parse_skip(p, HDL_WORD_SIGN, "[")) {
            node = parse_subscript(p, at, node);
        } else if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) {
            node = hdl_parse_node(p, HDL_NODE_CALL, at, node, NULL);
            parse_args(p, node);
        } else {
            break;
        }
    }
    return node;
}

/* What a test takes without brackets: "is divisibleby 3". */
static bool begins_test_argument(const hdl_parser *p) {
    if (p->word.kind == HDL_WORD_NAME) return !is_name(p, "else") && !is_name(p, "or") && !is_name(p, "and");
    return p->word.kind == HDL_WORD_NUMBER || p->word.kind == HDL_WORD_TEXT || is_sign(p, "[") || is_sign(p, "{");
}

static hdl_node *parse_test(hdl_parser *p, hdl_node *a) {
    const uint32_t at = p->word.at;
    hdl_parse_next(p);
    const bool turned = hdl_parse_skip(p, HDL_WORD_NAME, "not");
    hdl_node *test = hdl_parse_node(p, HDL_NODE_TEST, p->word.at, a, NULL), **tail = &test->list;
    test->text = p->word.text;
    hdl_parse_expect(p, HDL_WORD_NAME, NULL);
    if (is_sign(p, ".") || (!p->in_if && !hdl_has_test(test->text)))
        hdl_chat_unsupported(p->run, test->at, "test", test->text);
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) {
        parse_args(p, test);
    } else if (begins_test_argument(p)) {
        if (is_name(p, "is")) hdl_parse_wrong(p, "one test");
        hdl_node *arg = hdl_parse_node(p, HDL_NODE_ARG, p->word.at, parse_postfix(p, parse_primary(p)), NULL);
        hdl_parse_add(p, test, &tail, arg);
    }
    return turned ? hdl_parse_node(p, HDL_NODE_NOT, at, test, NULL) : test;
}

hdl_node *hdl_parse_filters(hdl_parser *p, hdl_node *node, bool begun) {
    for (; begun || hdl_parse_skip(p, HDL_WORD_SIGN, "|"); begun = false) {
        node = hdl_parse_node(p, HDL_NODE_FILTER, p->word.at, node, NULL);
        node->text = p->word.text;
        hdl_parse_expect(p, HDL_WORD_NAME, NULL);
        if (is_sign(p, ".") || (!p->in_if && !hdl_has_filter(node->text)))
            hdl_chat_unsupported(p->run, node->at, "filter", node->text);
        if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) parse_args(p, node);
    }
    return node;
}

/* Filters, tests and calls of what they give. */
static hdl_node *parse_uses(hdl_parser *p, hdl_node *node) {
    while (p->word.kind != HDL_WORD_END) {
        const uint32_t at = p->word.at;
        if (is_name(p, "is")) {
            node = parse_test(p, node);
        } else if (is_sign(p, "|")) {
            node = hdl_parse_filters(p, node, false);
        } else if (hdl_parse_skip(p, HDL_WORD_SIGN, "(")) {
            node = hdl_parse_node(p, HDL_NODE_CALL, at, node, NULL);
            parse_args(p, node);
        } else {
            break;
        }
    }
    return node;
}

static hdl_node *parse_unary(hdl_parser *p, bool with_filters) {
    const uint32_t at = p->word.at;
    if (!hdl_parse_enter(p)) return hdl_parse_node(p, HDL_NODE_NONE, at, NULL, NULL);
    hdl_node *node;
    if (hdl_parse_skip(p, HDL_WORD_SIGN, "-"))
        node = hdl_parse_node(p, HDL_NODE_NEGATE, at, parse_unary(p, false), NULL);
    else if (hdl_parse_skip(p, HDL_WORD_SIGN, "+"))
        node = hdl_parse_node(p, HDL_NODE_PLUS, at, parse_unary(p, false), NULL);
    else node = parse_primary(p);
    node = parse_postfix(p, node);
    if (with_filters) node = parse_uses(p, node);
    p->depth--;
    return node;
}
