/* chat_filters.c: what stands behind "|". One function for each name of the table at the end. */
#include "llm/chat_inside.h"

/* What a filter gets: the value before the "|", and the arguments. */
typedef struct filtered {
    hdl_chat_run *run;
    uint32_t      at;
    hdl_value     v;
    hdl_args     *args;
} filtered;

static hdl_value text_of(const filtered *f) { return hdl_text_value(hdl_printed(f->run, f->v)); }

static hdl_value trim(const filtered *f) {
    const hdl_span set = hdl_text_arg(f->run, f->at, f->args, 0, "chars", (hdl_span){ 0 });
    return hdl_text_value(hdl_strip(f->run, hdl_printed(f->run, f->v), set, true, true));
}
static hdl_value length(const filtered *f) { return hdl_number(hdl_length(f->run, f->at, f->v)); }
static hdl_value upper(const filtered *f) { return hdl_text_value(hdl_cased(f->run, f->at, hdl_printed(f->run, f->v), HDL_CASE_UPPER)); }
static hdl_value lower(const filtered *f) { return hdl_text_value(hdl_cased(f->run, f->at, hdl_printed(f->run, f->v), HDL_CASE_LOWER)); }
static hdl_value capitalize(const filtered *f) {
    return hdl_text_value(hdl_cased(f->run, f->at, hdl_printed(f->run, f->v), HDL_CASE_CAPITALIZE));
}

static hdl_value default_value(const filtered *f) {
    const hdl_value *other = hdl_arg(f->args, 0, "default_value"), *also_false = hdl_arg(f->args, 1, "boolean");
    const bool takes_other = hdl_is(f->v, HDL_IS_UNDEFINED) || (also_false && hdl_true(*also_false) && !hdl_true(f->v));
    return !takes_other ? f->v : other ? *other : hdl_text_value(hdl_text(""));
}

static hdl_value join(const filtered *f) {
    const hdl_span between = hdl_text_arg(f->run, f->at, f->args, 0, "d", hdl_text(""));
    const hdl_list items = hdl_items(f->run, f->at, f->v);
    return hdl_chat_stopped(f->run) ? f->v : hdl_text_value(hdl_joined(f->run, between, &items));
}

static hdl_value tojson(const filtered *f) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    hdl_arg(f->args, 9, "ensure_ascii"); /* text always stays as it is */
    const hdl_value *indent = hdl_arg(f->args, 0, "indent");
    const bool indents = indent && !hdl_is(*indent, HDL_IS_NONE);
    const int64_t blanks = indents ? hdl_number_arg(f->run, f->at, f->args, 0, "indent", 0) : -1;
    if (indents && (blanks < 0 || blanks > 16))
        hdl_chat_fail(f->run, HD_STATUS_LIMIT, f->at, "JSON with %lld blanks a level", (long long)blanks);
    hdl_put_json(f->run, &sink, f->at, f->v, blanks, 0);
    return hdl_text_value(hdl_sunk(&sink));
}

static hdl_value replace(const filtered *f) {
    const hdl_span old = hdl_text_arg(f->run, f->at, f->args, 0, "old", hdl_text("")),
                   with = hdl_text_arg(f->run, f->at, f->args, 1, "new", hdl_text(""));
    const int64_t most = hdl_number_arg(f->run, f->at, f->args, 2, "count", -1);
    return hdl_text_value(hdl_replace(f->run, hdl_printed(f->run, f->v), old, with, most));
}

static hdl_value end_of(const filtered *f, bool first) {
    const hdl_list items = hdl_items(f->run, f->at, f->v);
    if (hdl_chat_stopped(f->run) || items.count == 0) return hdl_undefined(hdl_text("an item of nothing"));
    return items.items[first ? 0 : items.count - 1];
}
static hdl_value first(const filtered *f) { return end_of(f, true); }
static hdl_value last(const filtered *f) { return end_of(f, false); }

/* The items as a list of their own, or turned round. */
static hdl_value listed(const filtered *f, bool turned) {
    const hdl_list items = hdl_items(f->run, f->at, f->v);
    if (!hdl_chat_step(f->run, items.count)) return f->v;
    const hdl_value result = hdl_list_value(f->run, HDL_IS_LIST, items.count);
    for (size_t i = 0; i < items.count && !hdl_chat_stopped(f->run); i++)
        result.as.list->items[i] = items.items[turned ? items.count - 1 - i : i];
    return result;
}
static hdl_value list(const filtered *f) { return listed(f, false); }
static hdl_value reverse(const filtered *f) {
    const hdl_value result = listed(f, true);
    if (!hdl_is(f->v, HDL_IS_TEXT) || hdl_chat_stopped(f->run)) return result;
    return hdl_text_value(hdl_joined(f->run, hdl_text(""), result.as.list));
}

static hdl_value items(const filtered *f) {
    if (hdl_is(f->v, HDL_IS_UNDEFINED)) return hdl_list_value(f->run, HDL_IS_LIST, 0);
    if (!hdl_is(f->v, HDL_IS_MAP)) hdl_chat_fail(f->run, HD_STATUS_PARSE, f->at, "%s has no pairs,", hdl_kind_name(f->v));
    return hdl_chat_stopped(f->run) ? f->v : hdl_method(f->run, f->at, hdl_text("items"), f->v, f->args);
}

static hdl_value whole_number(const filtered *f) {
    const int64_t fallback = hdl_number_arg(f->run, f->at, f->args, 0, "default", 0);
    if (hdl_is_number(f->v)) return hdl_number(f->v.as.number);
    const hdl_span text = hdl_is(f->v, HDL_IS_TEXT) ? hdl_strip(f->run, f->v.as.text, (hdl_span){ 0 }, true, true) : hdl_text("");
    const bool minus = text.count > 1 && text.bytes[0] == '-';
    int64_t number = 0;
    for (uint64_t i = minus; i < text.count; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || number > INT64_MAX / 10 - 1) return hdl_number(fallback);
        number = number * 10 + (text.bytes[i] - '0');
    }
    return hdl_number(text.count == 0 ? fallback : minus ? -number : number);
}

static hdl_value absolute(const filtered *f) {
    if (hdl_is_number(f->v) && f->v.as.number != INT64_MIN) return hdl_number(f->v.as.number < 0 ? -f->v.as.number : f->v.as.number);
    hdl_chat_fail(f->run, HD_STATUS_PARSE, f->at, "%s has no sign,", hdl_kind_name(f->v));
    return f->v;
}

static hdl_value same(const filtered *f) { return f->v; }

/* ---- filters of lists by an attribute or a test ---- */

/* The items to choose from: what is false has none. */
static hdl_list choices(const filtered *f) { return hdl_true(f->v) ? hdl_items(f->run, f->at, f->v) : (hdl_list){ 0 }; }

/* The test named by argument `place` and what stands behind it, or truth itself. */
static bool passes(const filtered *f, size_t place, hdl_value v) {
    const hdl_value *name = hdl_arg(f->args, place, "");
    if (!name) return hdl_true(v);
    if (!hdl_is(*name, HDL_IS_TEXT)) {
        hdl_chat_fail(f->run, HD_STATUS_PARSE, f->at, "a test's name is %s,", hdl_kind_name(*name));
        return false;
    }
    hdl_args rest = { .count = f->args->count - place - 1 };
    rest.values = f->args->values + place + 1;
    rest.names = f->args->names + place + 1;
    const bool result = hdl_test(f->run, f->at, name->as.text, v, &rest);
    f->args->used |= rest.used << (place + 1);
    return result;
}

static hdl_value picked(const filtered *f, bool by_attribute, bool wanted) {
    const hdl_list all = choices(f);
    const hdl_value result = hdl_list_value(f->run, HDL_IS_LIST, all.count);
    hdl_span name = { 0 };
    if (by_attribute) name = hdl_text_arg(f->run, f->at, f->args, 0, "", hdl_text(""));
    if (hdl_chat_stopped(f->run)) return f->v;
    size_t kept = 0;
    for (size_t i = 0; i < all.count && hdl_chat_step(f->run, 1); i++) {
        const hdl_value tested = by_attribute ? hdl_attribute(f->run, f->at, all.items[i], name) : all.items[i];
        if (passes(f, by_attribute, tested) == wanted) result.as.list->items[kept++] = all.items[i];
    }
    if (all.count == 0) f->args->used = UINT64_MAX;
    result.as.list->count = kept;
    return result;
}
static hdl_value select_items(const filtered *f) { return picked(f, false, true); }
static hdl_value reject(const filtered *f) { return picked(f, false, false); }
static hdl_value selectattr(const filtered *f) { return picked(f, true, true); }
static hdl_value rejectattr(const filtered *f) { return picked(f, true, false); }

/* map(attribute="name") or map("filter"). */
static hdl_value map(const filtered *f) {
    const hdl_list all = choices(f);
    const hdl_value result = hdl_list_value(f->run, HDL_IS_LIST, all.count);
    const hdl_value *attribute = hdl_arg(f->args, SIZE_MAX, "attribute"), *other = hdl_arg(f->args, SIZE_MAX, "default");
    const hdl_span name = hdl_text_arg(f->run, f->at, f->args, attribute ? SIZE_MAX : 0, attribute ? "attribute" : "", hdl_text(""));
    if (++f->run->depth > HDL_MAX_CHAT_NESTING)
        hdl_chat_fail(f->run, HD_STATUS_LIMIT, f->at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
    for (size_t i = 0; i < all.count && hdl_chat_step(f->run, 1); i++) {
        hdl_value item = attribute ? hdl_attribute(f->run, f->at, all.items[i], name) : all.items[i];
        if (attribute && other && hdl_is(item, HDL_IS_UNDEFINED)) item = *other;
        if (!attribute) {
            hdl_args rest = { .count = f->args->count ? f->args->count - 1 : 0 };
            rest.values = f->args->values + 1;
            rest.names = f->args->names + 1;
            item = hdl_filter(f->run, f->at, name, item, &rest);
            f->args->used |= rest.used << 1;
        }
        if (!hdl_chat_stopped(f->run)) result.as.list->items[i] = item;
    }
    if (all.count == 0) f->args->used = UINT64_MAX;
    f->run->depth--;
    return result;
}

hdl_value hdl_filter(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args) {
    static const struct { const char *name; hdl_value (*apply)(const filtered *f); } table[] = {
        { "abs", absolute },     { "capitalize", capitalize }, { "count", length },    { "d", default_value },
        { "default", default_value }, { "first", first },      { "int", whole_number }, { "items", items },
        { "join", join },        { "last", last },             { "length", length },   { "list", list },
        { "lower", lower },      { "map", map },               { "reject", reject },   { "rejectattr", rejectattr },
        { "replace", replace },  { "reverse", reverse },       { "safe", same },       { "select", select_items },
        { "selectattr", selectattr }, { "string", text_of },   { "tojson", tojson },   { "trim", trim },
        { "upper", upper },
    };
    const filtered f = { run, at, v, args };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (hdl_same(name, hdl_text(table[i].name))) return table[i].apply(&f);
    hdl_chat_unsupported(run, at, "filter", name);
    return v;
}
