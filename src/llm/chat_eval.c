/* chat_eval.c: the value of an expression. */
#include "llm/chat_inside.h"

static hdl_value eval_node(hdl_chat_run *run, const hdl_node *node);

hdl_value hdl_eval(hdl_chat_run *run, const hdl_node *node) {
    run->at = node->at;
    if (!hdl_chat_enter(run)) return hdl_none();
    const hdl_value value = eval_node(run, node);
    hdl_chat_leave(run);
    return hdl_chat_stopped(run) ? hdl_none() : value;
}

/* ---- operators ---- */

static hdl_value repeated(hdl_chat_run *run, hdl_value v, int64_t times) {
    if (hdl_is(v, HDL_IS_TEXT)) {
        hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
        for (int64_t i = 0; i < times && v.as.text.count && !hdl_chat_stopped(run); i++) hdl_put(run, &sink, v.as.text);
        return hdl_safe_like(hdl_text_value(hdl_sunk(&sink)), v);
    }
    uint64_t count = times > 0 ? (uint64_t)times : 0;
    if (!hdl_mul(count, v.as.list->count, &count)) count = UINT64_MAX;
    const hdl_value list = hdl_list_value(run, v.kind, (size_t)count);
    for (uint64_t i = 0; i < count && !hdl_chat_stopped(run); i++)
        list.as.list->items[i] = v.as.list->items[i % v.as.list->count];
    return list;
}

/* `text` as what filter safe gave takes it in: as HTML. */
static hdl_span escaped(hdl_chat_run *run, hdl_span text) {
    static const char *const signs[][2] = {
        { "&", "&amp;" }, { "<", "&lt;" }, { ">", "&gt;" }, { "'", "&#39;" }, { "\"", "&#34;" }
    };
    for (size_t i = 0; i < 5; i++) text = hdl_replace(run, text, hdl_text(signs[i][0]), hdl_text(signs[i][1]), -1);
    return text;
}

static hdl_value added(hdl_chat_run *run, hdl_value a, hdl_value b) {
    if (hdl_is(a, HDL_IS_TEXT)) {
        hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
        hdl_put(run, &sink, b.safe && !a.safe ? escaped(run, a.as.text) : a.as.text);
        hdl_put(run, &sink, a.safe && !b.safe ? escaped(run, b.as.text) : b.as.text);
        return hdl_safe_like(hdl_text_value(hdl_sunk(&sink)), a.safe ? a : b);
    }
    const size_t first = a.as.list->count, second = b.as.list->count;
    const hdl_value list = hdl_list_value(run, a.kind, first + second);
    if (hdl_chat_stopped(run)) return list;
    if (first) memcpy(list.as.list->items, a.as.list->items, first * sizeof a);
    if (second) memcpy(list.as.list->items + first, b.as.list->items, second * sizeof a);
    return list;
}

static hdl_value calculated(hdl_chat_run *run, const hdl_node *node, int64_t a, int64_t b) {
    int64_t result = 0;
    bool over = false;
    switch (node->op) {
    case HDL_OP_ADD: over = __builtin_add_overflow(a, b, &result); break;
    case HDL_OP_SUB: over = __builtin_sub_overflow(a, b, &result); break;
    case HDL_OP_MUL: over = __builtin_mul_overflow(a, b, &result); break;
    default:
        over = a == INT64_MIN && b == -1;
        if (b == 0) hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "a division by 0");
        if (b == 0 || over) break;
        /* The quotient is rounded to the lower number, not to 0 as C does. */
        const bool lower = a % b != 0 && (a < 0) != (b < 0);
        result = node->op == HDL_OP_FLOOR ? a / b - lower : a % b + (lower ? b : 0);
    }
    if (over) hdl_chat_fail(run, HD_STATUS_LIMIT, node->at, "a number above 2^63");
    return hdl_number(result);
}

static hdl_value eval_binary(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value a = hdl_eval(run, node->a), b = hdl_eval(run, node->b);
    if (hdl_chat_stopped(run)) return a;
    if (node->op == HDL_OP_JOIN) {
        hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
        hdl_put_value(run, &sink, a, false);
        hdl_put_value(run, &sink, b, false);
        return hdl_text_value(hdl_sunk(&sink));
    }
    if (hdl_is_number(a) && hdl_is_number(b)) return calculated(run, node, a.as.number, b.as.number);
    if (node->op == HDL_OP_ADD && a.kind == b.kind && (hdl_is(a, HDL_IS_TEXT) || hdl_is_list(a)))
        return added(run, a, b);
    if (node->op == HDL_OP_MUL && (hdl_is(a, HDL_IS_TEXT) || hdl_is_list(a)) && hdl_is_number(b))
        return repeated(run, a, b.as.number);
    if (node->op == HDL_OP_MUL && (hdl_is(b, HDL_IS_TEXT) || hdl_is_list(b)) && hdl_is_number(a))
        return repeated(run, b, a.as.number);
    static const char *const words[] = { "+", "-", "*", "//", "%" };
    if (node->op == HDL_OP_MOD && hdl_is(a, HDL_IS_TEXT))
        hdl_chat_unsupported(run, node->at, "formatting by", hdl_text("%"));
    char shown[HDL_QUOTE];
    const hdl_value *undefined = hdl_is(a, HDL_IS_UNDEFINED) ? &a : hdl_is(b, HDL_IS_UNDEFINED) ? &b : NULL;
    if (undefined)
        hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "%s is undefined,", hdl_quote(undefined->as.text, shown));
    else
        hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "%s %s %s cannot be worked out,", hdl_kind_name(a),
                      words[node->op], hdl_kind_name(b));
    return a;
}

static bool compare(hdl_chat_run *run, const hdl_node *node, hdl_value a, hdl_value b) {
    switch (node->op) {
    case HDL_OP_EQ: return hdl_equal(run, a, b);
    case HDL_OP_NE: return !hdl_equal(run, a, b);
    case HDL_OP_LT: return hdl_order(run, node->at, a, b) < 0;
    case HDL_OP_LE: return hdl_order(run, node->at, a, b) <= 0;
    case HDL_OP_GT: return hdl_order(run, node->at, a, b) > 0;
    case HDL_OP_GE: return hdl_order(run, node->at, a, b) >= 0;
    case HDL_OP_IN: return hdl_contains(run, node->at, b, a);
    default: return !hdl_contains(run, node->at, b, a);
    }
}

static hdl_value eval_compare(hdl_chat_run *run, const hdl_node *node) {
    hdl_value a = hdl_eval(run, node->a);
    for (const hdl_node *link = node->list; link && !hdl_chat_stopped(run); link = link->next) {
        const hdl_value b = hdl_eval(run, link->a);
        if (hdl_chat_stopped(run) || !compare(run, link, a, b)) return hdl_bool(false);
        a = b;
    }
    return hdl_bool(true);
}

/* ---- parts of values ---- */

static hdl_value eval_slice(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value v = hdl_eval(run, node->a);
    const hdl_node *parts[] = { node->b, node->c, node->d };
    int64_t numbers[3] = { 0 };
    const int64_t *given[3] = { NULL };
    for (size_t i = 0; i < 3; i++) {
        if (!parts[i]) continue;
        const hdl_value part = hdl_eval(run, parts[i]);
        if (hdl_is(part, HDL_IS_NONE)) continue;
        if (!hdl_is_number(part))
            hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "a slice with %s,", hdl_kind_name(part));
        numbers[i] = part.as.number;
        given[i] = &numbers[i];
    }
    return hdl_chat_stopped(run) ? v : hdl_safe_like(hdl_slice(run, node->at, v, given[0], given[1], given[2]), v);
}

static hdl_value eval_list(hdl_chat_run *run, const hdl_node *node) {
    size_t count = 0;
    for (const hdl_node *item = node->list; item; item = item->next) count++;
    const hdl_value list = hdl_list_value(run, node->kind == HDL_NODE_LIST ? HDL_IS_LIST : HDL_IS_TUPLE, count);
    size_t i = 0;
    for (const hdl_node *item = node->list; item && !hdl_chat_stopped(run); item = item->next)
        list.as.list->items[i++] = hdl_eval(run, item);
    return list;
}

static hdl_value eval_map(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value map = hdl_map_value(run, HDL_IS_MAP);
    for (const hdl_node *pair = node->list; pair && !hdl_chat_stopped(run); pair = pair->next) {
        const hdl_value key = hdl_eval(run, pair->a), value = hdl_eval(run, pair->b);
        if (!hdl_hashable(run, key))
            hdl_chat_fail(run, HD_STATUS_PARSE, pair->at, "%s cannot be a key,", hdl_kind_name(key));
        if (!hdl_chat_stopped(run)) hdl_map_set(run, map.as.map, key, value);
    }
    return map;
}

/* ---- calls ---- */

/* The values of a list of arguments, and of `caller` where it is given. */
static hdl_args eval_args(hdl_chat_run *run, const hdl_node *list, const hdl_value *caller) {
    hdl_args args = { 0 };
    size_t count = caller != NULL;
    hdl_list spread = { 0 };
    for (const hdl_node *arg = list; arg && !hdl_chat_stopped(run); arg = arg->next) {
        if (arg->kind == HDL_NODE_SPREAD) spread = hdl_items(run, arg->at, hdl_eval(run, arg->a));
        count += arg->kind == HDL_NODE_SPREAD ? spread.count : 1;
    }
    if (count > HDL_MAX_CHAT_ARGS)
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "more than %u arguments", HDL_MAX_CHAT_ARGS);
    args.values = hdl_chat_take(run, count, sizeof *args.values);
    args.names = hdl_chat_take(run, count, sizeof *args.names);
    for (const hdl_node *arg = list; arg && !hdl_chat_stopped(run); arg = arg->next) {
        for (size_t i = 0; arg->kind == HDL_NODE_SPREAD && i < spread.count; i++)
            args.values[args.count++] = spread.items[i];
        if (arg->kind == HDL_NODE_SPREAD) continue;
        if (arg->text.count) args.names[args.count] = arg->text;
        args.values[args.count++] = hdl_eval(run, arg->a);
    }
    if (caller && !hdl_chat_stopped(run)) {
        args.names[args.count] = hdl_text("caller");
        args.values[args.count++] = *caller;
    }
    return args;
}

static const hdl_value *find_arg(hdl_args *args, size_t place, hdl_span name) {
    for (size_t i = 0; i < args->count; i++) {
        if (args->names[i].bytes ? !hdl_same(args->names[i], name) : i != place) continue;
        args->used |= UINT64_C(1) << i;
        return &args->values[i];
    }
    return NULL;
}
const hdl_value *hdl_arg(hdl_args *args, size_t place, const char *name) {
    return find_arg(args, place, hdl_text(name));
}

hdl_span hdl_text_arg(const hdl_use *u, size_t place, const char *name, hdl_span fallback) {
    const hdl_value *given = hdl_arg(u->args, place, name);
    if (!given || (hdl_is(*given, HDL_IS_NONE) && !fallback.bytes)) return fallback;
    if (hdl_is(*given, HDL_IS_TEXT)) return given->as.text;
    hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "the argument %s is %s and must be a text,", name,
                  hdl_kind_name(*given));
    return fallback;
}

int64_t hdl_number_arg(const hdl_use *u, size_t place, const char *name, int64_t fallback) {
    const hdl_value *given = hdl_arg(u->args, place, name);
    if (!given) return fallback;
    if (hdl_is_number(*given)) return given->as.number;
    hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "the argument %s is %s and must be a number,", name,
                  hdl_kind_name(*given));
    return fallback;
}

bool hdl_truth_arg(hdl_args *args, size_t place, const char *name, bool fallback) {
    const hdl_value *given = hdl_arg(args, place, name);
    return given ? hdl_true(*given) : fallback;
}

void hdl_check_args(hdl_chat_run *run, uint32_t at, const hdl_args *args) {
    for (size_t i = 0; i < args->count && !hdl_chat_stopped(run); i++)
        if (!(args->used >> i & 1))
            hdl_chat_unsupported(run, at, "argument", args->names[i].bytes ? args->names[i] : hdl_text("too many"));
}

/* What the macro's text asks for besides its parameters: the arguments that nobody took. */
static void bind_others(hdl_chat_run *run, hdl_scope *scope, int64_t takes, hdl_args *args) {
    const hdl_value kwargs = hdl_map_value(run, HDL_IS_MAP), varargs = hdl_list_value(run, HDL_IS_TUPLE, args->count);
    const hdl_value *caller = takes & HDL_TAKES_CALLER ? hdl_arg(args, SIZE_MAX, "caller") : NULL;
    size_t count = 0;
    for (size_t i = 0; i < args->count && !hdl_chat_stopped(run); i++) {
        const bool named = args->names[i].bytes != NULL;
        if (args->used >> i & 1 || !(takes & (named ? HDL_TAKES_KWARGS : HDL_TAKES_VARARGS))) continue;
        if (named) hdl_map_set(run, kwargs.as.map, hdl_text_value(args->names[i]), args->values[i]);
        else varargs.as.list->items[count++] = args->values[i];
        args->used |= UINT64_C(1) << i;
    }
    if (hdl_chat_stopped(run)) return;
    varargs.as.list->count = count;
    if (takes & HDL_TAKES_CALLER)
        hdl_bind(run, scope, hdl_text("caller"), caller ? *caller : hdl_undefined(hdl_text("caller")));
    if (takes & HDL_TAKES_KWARGS) hdl_bind(run, scope, hdl_text("kwargs"), kwargs);
    if (takes & HDL_TAKES_VARARGS) hdl_bind(run, scope, hdl_text("varargs"), varargs);
}

static hdl_value call_macro(hdl_chat_run *run, const hdl_macro *macro, hdl_args *args) {
    hdl_scope *scope = hdl_scope_in(run, macro->scope), *outer = run->scope;
    if (!scope) return hdl_none();
    uint64_t given = 0; /* bit i: parameter i, of which there may be more than arguments */
    size_t place = 0;
    for (const hdl_node *p = macro->node->other; p && !hdl_chat_stopped(run); p = p->next, place++) {
        hdl_chat_work(run, args->count * p->text.count); /* names that are looked at */
        const hdl_value *value = find_arg(args, place, p->text);
        if (value && place < 64) given |= UINT64_C(1) << place;
        hdl_bind(run, scope, p->text, value ? *value : hdl_undefined(p->text));
    }
    if (macro->node->number) bind_others(run, scope, macro->node->number, args);
    hdl_check_args(run, run->at, args);
    run->scope = scope; /* a default may name another parameter */
    place = 0;
    for (const hdl_node *p = macro->node->other; p && !hdl_chat_stopped(run); p = p->next, place++)
        if (p->a && (place >= 64 || !(given >> place & 1))) hdl_bind(run, scope, p->text, hdl_eval(run, p->a));
    run->scope = outer;
    return hdl_run_captured(run, macro->node->list, scope);
}

static hdl_value call_loop(hdl_chat_run *run, uint32_t at, const hdl_loop *loop, hdl_args *args) {
    const hdl_value *source = hdl_arg(args, 0, "iterable");
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES }, *outer = run->out;
    if (!source || !loop->node->number)
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "a loop is called that is not recursive,");
    if (hdl_chat_stopped(run) || !hdl_chat_enter(run)) return hdl_none();
    run->out = &sink;
    hdl_run_loop(run, loop->node, *source, loop->outer, loop->depth + 1);
    run->out = outer;
    hdl_chat_leave(run);
    return hdl_text_value(hdl_sunk(&sink));
}

static hdl_value eval_call(hdl_chat_run *run, const hdl_node *node, const hdl_value *caller) {
    hdl_value called, result = hdl_none(), owner = hdl_undefined(hdl_text(""));
    if (node->a->kind == HDL_NODE_ATTR) {
        owner = hdl_eval(run, node->a->a);
        called = hdl_attribute(run, node->at, owner, node->a->text);
    } else {
        called = hdl_eval(run, node->a);
    }
    hdl_args args = eval_args(run, node->list, caller);
    if (hdl_chat_stopped(run)) return result;
    char shown[HDL_QUOTE];
    const hdl_use use = { run, node->at, owner, &args };
    if (hdl_is(called, HDL_IS_METHOD)) result = hdl_method(&use, called.as.text);
    else if (hdl_is(called, HDL_IS_MACRO)) result = call_macro(run, called.as.macro, &args);
    else if (hdl_is(called, HDL_IS_LOOP)) result = call_loop(run, node->at, called.as.loop, &args);
    else if (hdl_is(called, HDL_IS_FUNCTION)) result = hdl_function(&use, called.as.number);
    else if (hdl_is(called, HDL_IS_UNDEFINED))
        hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "%s is undefined,", hdl_quote(called.as.text, shown));
    else hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "%s cannot be called,", hdl_kind_name(called));
    hdl_check_args(run, node->at, &args);
    return result;
}

hdl_value hdl_eval_call_block(hdl_chat_run *run, const hdl_node *call, hdl_value caller) {
    return eval_call(run, call, &caller);
}

/* A filter or a test of a value. */
static hdl_value eval_filter(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value v = hdl_eval(run, node->a);
    hdl_args args = eval_args(run, node->list, NULL);
    if (hdl_chat_stopped(run)) return v;
    const hdl_value result = node->kind == HDL_NODE_FILTER
                                 ? hdl_filter(&(hdl_use){ run, node->at, v, &args }, node->text)
                                 : hdl_bool(hdl_test(run, node->at, node->text, v, &args));
    hdl_check_args(run, node->at, &args);
    return result;
}

static hdl_value eval_negated(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value v = hdl_eval(run, node->a);
    if (!hdl_chat_stopped(run) && (!hdl_is_number(v) || v.as.number == INT64_MIN))
        hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "%s has no sign,", hdl_kind_name(v));
    return hdl_chat_stopped(run) ? v : hdl_number(node->kind == HDL_NODE_NEGATE ? -v.as.number : v.as.number);
}

static hdl_value eval_node(hdl_chat_run *run, const hdl_node *node) {
    hdl_value a;
    switch (node->kind) {
    case HDL_NODE_TEXT: return hdl_text_value(node->text);
    case HDL_NODE_NUMBER: return hdl_number(node->number);
    case HDL_NODE_TRUE: return hdl_bool(true);
    case HDL_NODE_FALSE: return hdl_bool(false);
    case HDL_NODE_NAME: return hdl_lookup(run, node->text);
    case HDL_NODE_ATTR: return hdl_attribute(run, node->at, hdl_eval(run, node->a), node->text);
    case HDL_NODE_ITEM:
        a = hdl_eval(run, node->a); return hdl_safe_like(hdl_item(run, node->at, a, hdl_eval(run, node->b)), a);
    case HDL_NODE_SLICE: return eval_slice(run, node);
    case HDL_NODE_CALL: return eval_call(run, node, NULL);
    case HDL_NODE_FILTER: case HDL_NODE_TEST: return eval_filter(run, node);
    case HDL_NODE_NEGATE:
    case HDL_NODE_PLUS: return eval_negated(run, node);
    case HDL_NODE_NOT: return hdl_bool(!hdl_true(hdl_eval(run, node->a)));
    case HDL_NODE_AND: a = hdl_eval(run, node->a); return hdl_true(a) ? hdl_eval(run, node->b) : a;
    case HDL_NODE_OR: a = hdl_eval(run, node->a); return hdl_true(a) ? a : hdl_eval(run, node->b);
    case HDL_NODE_BINARY: return eval_binary(run, node);
    case HDL_NODE_COMPARE: return eval_compare(run, node);
    case HDL_NODE_CHOICE:
        if (hdl_true(hdl_eval(run, node->a))) return hdl_eval(run, node->b);
        return node->c ? hdl_eval(run, node->c) : hdl_undefined(hdl_text("the value of an if without else"));
    case HDL_NODE_LIST:
    case HDL_NODE_TUPLE: return eval_list(run, node);
    case HDL_NODE_MAP: return eval_map(run, node);
    case HDL_NODE_CAPTURE: {
        hdl_scope *scope = hdl_scope_in(run, run->scope);
        return scope ? hdl_run_captured(run, node->list, scope) : hdl_none();
    }
    default: return hdl_none();
    }
}
