/* chat_tests.c: what stands behind "is". */
#include "llm/chat_inside.h"

typedef enum question {
    IS_DEFINED, IS_UNDEFINED, IS_NONE, IS_TRUE, IS_FALSE, IS_BOOLEAN, IS_NUMBER, IS_INTEGER, IS_STRING,
    IS_MAPPING, IS_ITERABLE, IS_SEQUENCE, IS_CALLABLE, IS_ODD, IS_EVEN, IS_DIVISIBLE, IS_EQUAL, IS_OTHER,
    IS_LESS, IS_AT_MOST, IS_GREATER, IS_AT_LEAST, IS_IN, IS_FLOAT
} question;

/* An undefined value has all that Python looks for here. */
static bool is_sequence(hdl_value v) {
    return hdl_is(v, HDL_IS_UNDEFINED) || hdl_is(v, HDL_IS_TEXT) || hdl_is_list(v) || hdl_is(v, HDL_IS_RANGE) ||
           hdl_is(v, HDL_IS_MAP);
}

static bool is_fraction(hdl_value v) {
    return hdl_is(v, HDL_IS_DECIMAL) && (hdl_has(v.as.text, ".") || hdl_has(v.as.text, "e"));
}

static int64_t number(hdl_chat_run *run, uint32_t at, hdl_value v) {
    if (!hdl_is_number(v)) hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s is no number,", hdl_kind_name(v));
    return hdl_is_number(v) ? v.as.number : 1;
}

static bool divides(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_value by) {
    const int64_t a = number(run, at, v), b = number(run, at, by);
    if (b == 0) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a division by 0");
    return b == -1 || (b != 0 && a % b == 0);
}

/* Tests that compare with an argument. */
static bool compares(hdl_chat_run *run, uint32_t at, question what, hdl_value v, hdl_value other) {
    switch (what) {
    case IS_DIVISIBLE: return divides(run, at, v, other);
    case IS_EQUAL: return hdl_equal(run, v, other);
    case IS_OTHER: return !hdl_equal(run, v, other);
    case IS_LESS: return hdl_order(run, at, v, other) < 0;
    case IS_AT_MOST: return hdl_order(run, at, v, other) <= 0;
    case IS_GREATER: return hdl_order(run, at, v, other) > 0;
    case IS_AT_LEAST: return hdl_order(run, at, v, other) >= 0;
    default: return hdl_contains(run, at, other, v);
    }
}

static bool answers(hdl_chat_run *run, uint32_t at, question what, hdl_value v) {
    switch (what) {
    case IS_DEFINED: return !hdl_is(v, HDL_IS_UNDEFINED);
    case IS_UNDEFINED: return hdl_is(v, HDL_IS_UNDEFINED);
    case IS_NONE: return hdl_is(v, HDL_IS_NONE);
    case IS_TRUE: return hdl_is(v, HDL_IS_BOOL) && v.as.number;
    case IS_FALSE: return hdl_is(v, HDL_IS_BOOL) && !v.as.number;
    case IS_BOOLEAN: return hdl_is(v, HDL_IS_BOOL);
    case IS_NUMBER: return hdl_is_number(v) || hdl_is(v, HDL_IS_DECIMAL);
    case IS_INTEGER: return hdl_is(v, HDL_IS_NUMBER) || (hdl_is(v, HDL_IS_DECIMAL) && !is_fraction(v));
    case IS_STRING: return hdl_is(v, HDL_IS_TEXT);
    case IS_MAPPING: return hdl_is(v, HDL_IS_MAP);
    case IS_ITERABLE:
        return is_sequence(v) || hdl_is(v, HDL_IS_VIEW) || hdl_is(v, HDL_IS_LAZY) || hdl_is(v, HDL_IS_LOOP);
    case IS_SEQUENCE: return is_sequence(v);
    case IS_CALLABLE: return hdl_is(v, HDL_IS_UNDEFINED) || v.kind >= HDL_IS_LOOP;
    case IS_ODD: return number(run, at, v) % 2 != 0;
    case IS_EVEN: return number(run, at, v) % 2 == 0;
    default: return is_fraction(v); /* IS_FLOAT */
    }
}

static bool find_test(hdl_span name, question *out_what) {
    static const struct { const char *name; question what; } table[] = {
        { "defined", IS_DEFINED },   { "undefined", IS_UNDEFINED }, { "none", IS_NONE },         { "true", IS_TRUE },
        { "false", IS_FALSE },       { "boolean", IS_BOOLEAN },     { "number", IS_NUMBER },
        { "integer", IS_INTEGER },
        { "float", IS_FLOAT },       { "string", IS_STRING },       { "mapping", IS_MAPPING },
        { "iterable", IS_ITERABLE },
        { "sequence", IS_SEQUENCE }, { "callable", IS_CALLABLE },   { "odd", IS_ODD },           { "even", IS_EVEN },
        { "divisibleby", IS_DIVISIBLE }, { "eq", IS_EQUAL },        { "equalto", IS_EQUAL },     { "==", IS_EQUAL },
        { "ne", IS_OTHER },          { "!=", IS_OTHER },            { "lt", IS_LESS },
        { "lessthan", IS_LESS },
        { "<", IS_LESS },            { "le", IS_AT_MOST },          { "<=", IS_AT_MOST },        { "gt", IS_GREATER },
        { "greaterthan", IS_GREATER }, { ">", IS_GREATER },         { "ge", IS_AT_LEAST },       { ">=", IS_AT_LEAST },
        { "in", IS_IN },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (hdl_same(name, hdl_text(table[i].name))) return *out_what = table[i].what, true;
    return false;
}

bool hdl_has_test(hdl_span name) {
    question what;
    return find_test(name, &what);
}

bool hdl_test(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args) {
    question what;
    if (!find_test(name, &what)) {
        hdl_chat_unsupported(run, at, "test", name);
        return false;
    }
    if (what < IS_DIVISIBLE || what == IS_FLOAT) return answers(run, at, what, v);
    const hdl_value *other = hdl_arg(args, 0, "other");
    if (!other) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a test without what it compares with");
    return other && compares(run, at, what, v, *other);
}
