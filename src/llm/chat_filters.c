/* chat_filters.c: what stands behind "|". One function for each name of the table at the end. */
#include "llm/chat_inside.h"

static hdl_value text_of(const hdl_use *u) { return hdl_safe_like(hdl_text_value(hdl_printed(u->run, u->v)), u->v); }

/* Argument `place` as the text that it prints. */
static hdl_span printed_arg(const hdl_use *u, size_t place, const char *name) {
    const hdl_value *given = hdl_arg(u->args, place, name);
    if (!given) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "the argument %s is missing", name);
    return given ? hdl_printed(u->run, *given) : hdl_text("");
}

static hdl_value trim(const hdl_use *u) {
    const hdl_span set = hdl_text_arg(u, 0, "chars", (hdl_span){ 0 });
    return hdl_safe_like(hdl_text_value(hdl_strip(u->run, hdl_printed(u->run, u->v), set, true, true)), u->v);
}
static hdl_value length(const hdl_use *u) { return hdl_number(hdl_length(u->run, u->at, u->v)); }

static hdl_value cased(const hdl_use *u, hdl_case form) {
    return hdl_safe_like(hdl_text_value(hdl_cased(u->run, u->at, hdl_printed(u->run, u->v), form)), u->v);
}
static hdl_value upper(const hdl_use *u) { return cased(u, HDL_CASE_UPPER); }
static hdl_value lower(const hdl_use *u) { return cased(u, HDL_CASE_LOWER); }
static hdl_value capitalize(const hdl_use *u) { return cased(u, HDL_CASE_CAPITALIZE); }
static hdl_value title(const hdl_use *u) {
    return hdl_text_value(hdl_cased(u->run, u->at, hdl_printed(u->run, u->v), HDL_CASE_WORDS));
}

static hdl_value default_value(const hdl_use *u) {
    const hdl_value *other = hdl_arg(u->args, 0, "default_value");
    const bool also_false = hdl_truth_arg(u->args, 1, "boolean", false);
    const bool takes_other = hdl_is(u->v, HDL_IS_UNDEFINED) || (also_false && !hdl_true(u->v));
    return !takes_other ? u->v : other ? *other : hdl_text_value(hdl_text(""));
}

static hdl_value tojson(const hdl_use *u) {
    static const char blanks[] = "                ";
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    const hdl_value *indent = hdl_arg(u->args, 1, "indent"), *separators = hdl_arg(u->args, 2, "separators");
    hdl_json_style form = { .ascii = hdl_truth_arg(u->args, 0, "ensure_ascii", false),
                            .sorted = hdl_truth_arg(u->args, 3, "sort_keys", false),
                            .between = hdl_text(", "),
                            .colon = hdl_text(": ") };
    if (indent && !hdl_is(*indent, HDL_IS_NONE)) {
        const bool text = hdl_is(*indent, HDL_IS_TEXT);
        const int64_t width = text ? 0 : hdl_number_arg(u, 1, "indent", 0);
        if (width > 16)
            hdl_chat_fail(u->run, HD_STATUS_LIMIT, u->at, "JSON with %lld blanks a level", (long long)width);
        form.indent = text ? indent->as.text : (hdl_span){ (const uint8_t *)blanks, width > 0 ? (uint64_t)width : 0 };
        form.between = hdl_text(",");
    }
    if (separators && !hdl_is(*separators, HDL_IS_NONE)) {
        const hdl_list two = hdl_items(u->run, u->at, *separators);
        if (two.count != 2 || !hdl_is(two.items[0], HDL_IS_TEXT) || !hdl_is(two.items[1], HDL_IS_TEXT))
            hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "separators that are not two texts,");
        else form.between = two.items[0].as.text, form.colon = two.items[1].as.text;
    }
    if (!hdl_chat_stopped(u->run)) hdl_put_json(u->run, &sink, u->at, u->v, &form, 0);
    return hdl_text_value(hdl_sunk(&sink));
}

static hdl_value replace(const hdl_use *u) {
    const hdl_span old = printed_arg(u, 0, "old"), with = printed_arg(u, 1, "new");
    const hdl_value *count = hdl_arg(u->args, 2, "count");
    const int64_t most = count && hdl_is(*count, HDL_IS_NONE) ? -1 : hdl_number_arg(u, 2, "count", -1);
    return hdl_text_value(hdl_replace(u->run, hdl_printed(u->run, u->v), old, with, most));
}

/* Each line but the first behind some blanks or a text. */
static hdl_value indent(const hdl_use *u) {
    hdl_args none = { 0 };
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES }, margin = sink;
    const hdl_value *width = hdl_arg(u->args, 0, "width");
    const bool first = hdl_truth_arg(u->args, 1, "first", false), blank = hdl_truth_arg(u->args, 2, "blank", false);
    if (width && hdl_is(*width, HDL_IS_TEXT)) hdl_put(u->run, &margin, width->as.text);
    else
        for (int64_t i = hdl_number_arg(u, 0, "width", 4); i > 0 && !hdl_chat_stopped(u->run); i--)
            hdl_put(u->run, &margin, hdl_text(" "));
    if (!hdl_is(u->v, HDL_IS_TEXT))
        hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "%s to be indented,", hdl_kind_name(u->v));
    if (hdl_chat_stopped(u->run)) return u->v;
    const hdl_span newline = hdl_text("\n");
    hdl_put(u->run, &sink, u->v.as.text);
    hdl_put(u->run, &sink, newline); /* a last line without text is one, too */
    const hdl_value lines =
        hdl_method(&(hdl_use){ u->run, u->at, hdl_text_value(hdl_sunk(&sink)), &none }, hdl_text("splitlines"));
    sink = (hdl_sink){ .limit = HDL_MAX_CHAT_BYTES };
    for (size_t i = 0; !hdl_chat_stopped(u->run) && i < lines.as.list->count; i++) {
        const hdl_span line = lines.as.list->items[i].as.text;
        if (i) hdl_put(u->run, &sink, newline);
        if (i ? line.count || blank : first) hdl_put(u->run, &sink, hdl_sunk(&margin));
        hdl_put(u->run, &sink, line);
    }
    return hdl_safe_like(hdl_text_value(hdl_sunk(&sink)), u->v);
}

/* ---- lists ---- */

static hdl_value first(const hdl_use *u) {
    const hdl_value none = hdl_undefined(hdl_text("an item of nothing"));
    hdl_value item;
    if (hdl_is(u->v, HDL_IS_LAZY)) return hdl_next(u->run, u->v.as.list, &item) ? item : none;
    const hdl_list items = hdl_items(u->run, u->at, u->v);
    return items.count ? items.items[0] : none;
}
static hdl_value last(const hdl_use *u) {
    if (hdl_is(u->v, HDL_IS_LAZY)) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "a lazy list has no last item,");
    const hdl_list items = hdl_items(u->run, u->at, u->v);
    return items.count ? items.items[items.count - 1] : hdl_undefined(hdl_text("an item of nothing"));
}

/* Items as a list of their own. */
static hdl_value listed(const hdl_use *u, hdl_value_kind kind, hdl_list items) {
    const hdl_value result = hdl_list_value(u->run, kind, items.count);
    if (!hdl_chat_stopped(u->run) && items.count)
        memcpy(result.as.list->items, items.items, items.count * sizeof result);
    return result;
}
static hdl_value list(const hdl_use *u) { return listed(u, HDL_IS_LIST, hdl_items(u->run, u->at, u->v)); }
static hdl_value reverse(const hdl_use *u) {
    const hdl_value result =
        listed(u, hdl_is(u->v, HDL_IS_LAZY) ? HDL_IS_LIST : HDL_IS_LAZY, hdl_items(u->run, u->at, u->v));
    for (size_t i = 0; !hdl_chat_stopped(u->run) && i < result.as.list->count / 2; i++) {
        hdl_value *end = &result.as.list->items[result.as.list->count - 1 - i], item = *end;
        *end = result.as.list->items[i];
        result.as.list->items[i] = item;
    }
    if (!hdl_is(u->v, HDL_IS_TEXT) || hdl_chat_stopped(u->run)) return result;
    return hdl_text_value(hdl_joined(u->run, hdl_text(""), result.as.list));
}

static hdl_value items(const hdl_use *u) {
    const hdl_map none = { 0 };
    if (!hdl_is(u->v, HDL_IS_MAP) && !hdl_is(u->v, HDL_IS_UNDEFINED))
        hdl_chat_unsupported(u->run, u->at, "items of", hdl_text(hdl_kind_name(u->v)));
    hdl_value pairs = hdl_map_view(u->run, hdl_is(u->v, HDL_IS_MAP) ? u->v.as.map : &none, "dict_items(");
    pairs.kind = hdl_chat_stopped(u->run) ? HDL_IS_NONE : HDL_IS_LAZY;
    return pairs;
}

/* The part of an item that "a.b.0" or a number names; `other`, if not NULL, where there is none. */
static hdl_value part_of(const hdl_use *u, hdl_value item, const hdl_value *name, const hdl_value *other) {
    hdl_span rest = name && hdl_is(*name, HDL_IS_TEXT) ? name->as.text : hdl_text("");
    if (!name || !hdl_is(*name, HDL_IS_TEXT)) return name ? hdl_item(u->run, u->at, item, *name) : item;
    for (int64_t dot = 0; dot >= 0 && !hdl_chat_stopped(u->run); rest = hdl_cut(rest, (uint64_t)dot + 1, rest.count)) {
        dot = hdl_find(u->run, rest, hdl_text("."), false);
        const hdl_span step = dot < 0 ? rest : hdl_cut(rest, 0, (uint64_t)dot);
        int64_t number = 0;
        size_t digits = 0;
        for (; digits < step.count && digits < 18 && step.bytes[digits] >= '0' && step.bytes[digits] <= '9'; digits++)
            number = number * 10 + (step.bytes[digits] - '0');
        item =
            hdl_item(u->run, u->at, item, digits && digits == step.count ? hdl_number(number) : hdl_text_value(step));
        if (other && hdl_is(item, HDL_IS_UNDEFINED)) item = *other;
    }
    return item;
}

static hdl_value without_case(const hdl_use *u, hdl_value v) {
    return hdl_is(v, HDL_IS_TEXT) ? hdl_text_value(hdl_cased(u->run, u->at, v.as.text, HDL_CASE_LOWER)) : v;
}

/* The items that a filter with the argument `attribute` works on: those parts of them. */
static hdl_list parts_of(const hdl_use *u, hdl_list items, const hdl_value *attribute, bool ignores_case) {
    const hdl_value all = listed(u, HDL_IS_LIST, items);
    hdl_list parts = { 0 };
    if (!hdl_chat_stopped(u->run)) parts = *all.as.list;
    for (size_t i = 0; i < parts.count && hdl_chat_work(u->run, 1); i++) {
        parts.items[i] = part_of(u, parts.items[i], attribute, NULL);
        if (ignores_case) parts.items[i] = without_case(u, parts.items[i]);
    }
    return parts;
}

static hdl_value join(const hdl_use *u) {
    const hdl_value *between = hdl_arg(u->args, 0, "d"), *attribute = hdl_arg(u->args, 1, "attribute");
    const hdl_list parts =
        attribute ? parts_of(u, hdl_items(u->run, u->at, u->v), attribute, false) : hdl_items(u->run, u->at, u->v);
    return hdl_text_value(hdl_joined(u->run, between ? hdl_printed(u->run, *between) : hdl_text(""), &parts));
}

static hdl_value sort(const hdl_use *u) {
    const bool down = hdl_number_arg(u, 0, "reverse", 0), exact = hdl_truth_arg(u->args, 1, "case_sensitive", false);
    const hdl_value *attribute = hdl_arg(u->args, 2, "attribute"), result = list(u);
    if (hdl_chat_stopped(u->run)) return u->v;
    const hdl_list keys = parts_of(u, *result.as.list, attribute, !exact);
    /* as Jinja: lists, in which equal ones need no order */
    for (size_t i = 0; i < keys.count && !hdl_chat_stopped(u->run); i++) {
        const hdl_value key = hdl_list_value(u->run, HDL_IS_LIST, 1);
        if (!hdl_chat_stopped(u->run)) key.as.list->items[0] = keys.items[i];
        keys.items[i] = key;
    }
    hdl_sort(u->run, u->at, result.as.list->items, keys.items, keys.count, down);
    return result;
}

/* A map's pairs in the order of their keys or values. */
static hdl_value dictsort(const hdl_use *u) {
    const bool exact = hdl_truth_arg(u->args, 0, "case_sensitive", false), down = hdl_number_arg(u, 2, "reverse", 0);
    const hdl_span by = hdl_text_arg(u, 1, "by", hdl_text("key"));
    const bool by_value = hdl_same(by, hdl_text("value"));
    if (!by_value && !hdl_same(by, hdl_text("key")))
        hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "sorted by neither key nor value");
    if (hdl_is(u->v, HDL_IS_UNDEFINED))
        hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an undefined value to be sorted");
    const hdl_use pairs = { u->run, u->at, items(u), u->args };
    if (hdl_chat_stopped(u->run)) return u->v;
    const hdl_value result = list(&pairs), part = hdl_number(by_value);
    if (hdl_chat_stopped(u->run)) return result;
    const hdl_list keys = parts_of(u, *result.as.list, &part, !exact);
    hdl_sort(u->run, u->at, result.as.list->items, keys.items, keys.count, down);
    return result;
}

/* The smallest or largest item. */
static hdl_value end_of(const hdl_use *u, int sign) {
    const bool exact = hdl_truth_arg(u->args, 0, "case_sensitive", false);
    const hdl_value *attribute = hdl_arg(u->args, 1, "attribute");
    const hdl_list all = hdl_items(u->run, u->at, u->v), keys = parts_of(u, all, attribute, !exact);
    size_t best = 0;
    for (size_t i = 1; i < keys.count && !hdl_chat_stopped(u->run); i++)
        if (hdl_order(u->run, u->at, keys.items[i], keys.items[best]) * sign > 0) best = i;
    return keys.count ? all.items[best] : hdl_undefined(hdl_text("an item of nothing"));
}
static hdl_value min(const hdl_use *u) { return end_of(u, -1); }
static hdl_value max(const hdl_use *u) { return end_of(u, 1); }

/* ---- numbers ---- */

/* Moves *at past digits, with a single _ between two of them, and counts them. *value becomes 10 times itself less each
 * digit: of the two sides of 0 this one reaches further. */
static int64_t take_digits(hdl_span text, uint64_t *at, int64_t *value, bool *over) {
    int64_t count = 0;
    for (; *at < text.count; ++*at) {
        const uint8_t c = text.bytes[*at], next = *at + 1 < text.count ? text.bytes[*at + 1] : 0;
        if (c == '_' && count && next >= '0' && next <= '9') continue;
        if (c < '0' || c > '9') break;
        *over |= __builtin_mul_overflow(*value, 10, value) || __builtin_sub_overflow(*value, c - '0', value);
        count++;
    }
    return count;
}

static uint8_t byte_at(hdl_span text, uint64_t at) { return at < text.count ? text.bytes[at] : 0; }
static bool is_sign(uint8_t c) { return c == '-' || c == '+'; }

/* A text as Python's int reads it, or float, whose fraction goes; false: it is no number. */
static bool read_number(const hdl_use *u, hdl_span text, int64_t *out_number) {
    bool over = false;
    int64_t digits = 0, exponent = 0, shift = 0;
    uint64_t at = is_sign(byte_at(text, 0));
    const int64_t sign = byte_at(text, 0) == '-' ? 1 : -1, whole = take_digits(text, &at, &digits, &over);
    if (whole && at == text.count) {
        if (over || __builtin_mul_overflow(digits, sign, out_number))
            hdl_chat_fail(u->run, HD_STATUS_LIMIT, u->at, "a number above 2^63");
        return true;
    }
    if (byte_at(text, at) == '.') {
        at++;
        shift = -take_digits(text, &at, &digits, &over);
    }
    if (!whole && !shift) return false;
    if ((byte_at(text, at) | 0x20) == 'e') {
        const bool down = byte_at(text, ++at) == '-';
        at += is_sign(byte_at(text, at));
        if (!take_digits(text, &at, &exponent, &over)) return false;
        if (!over && exponent > -1000) shift += down ? exponent : -exponent;
        over |= exponent <= -1000;
    }
    if (at < text.count) return false;
    /* As double has it where that is exact: up to 2^53, times or by a power of ten up to 22. */
    double value = (double)digits * (double)sign, power = 1;
    for (int64_t i = 0; i < shift || i < -shift; i++) power *= 10;
    value = shift < 0 ? value / power : value * power;
    if (over || digits < -(INT64_C(1) << 53) || shift > 22 || shift < -22 || value >= 0x1p63 || value <= -0x1p63)
        hdl_chat_unsupported(u->run, u->at, "a number such as", text);
    *out_number = hdl_chat_stopped(u->run) ? 0 : (int64_t)value;
    return true;
}

static hdl_value whole_number(const hdl_use *u) {
    const hdl_value *fallback = hdl_arg(u->args, 0, "default");
    int64_t number = 0;
    if (hdl_is_number(u->v)) return hdl_number(u->v.as.number);
    if (hdl_is(u->v, HDL_IS_UNDEFINED)) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an undefined value as a number");
    hdl_span text =
        hdl_is(u->v, HDL_IS_TEXT) ? hdl_strip(u->run, u->v.as.text, (hdl_span){ 0 }, true, true) : hdl_text("");
    for (uint64_t i = 0; i < text.count && hdl_chat_work(u->run, 1); i++)
        if (text.bytes[i] >= 0x80) hdl_chat_unsupported(u->run, u->at, "a number such as", text);
    if (!hdl_chat_stopped(u->run) && read_number(u, text, &number)) return hdl_number(number);
    return fallback ? *fallback : hdl_number(0);
}

static hdl_value absolute(const hdl_use *u) {
    if (hdl_is_number(u->v) && u->v.as.number != INT64_MIN)
        return hdl_number(u->v.as.number < 0 ? -u->v.as.number : u->v.as.number);
    hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "%s has no sign,", hdl_kind_name(u->v));
    return u->v;
}

static hdl_value safe(const hdl_use *u) {
    hdl_value text = text_of(u);
    text.safe = true;
    return text;
}

/* ---- filters of lists by an attribute, a test or a filter: lazy ones ---- */

struct hdl_pick {
    uint32_t at;
    hdl_args args, rest; /* rest: for the test or filter that `name` names, if it has one */
    hdl_value name;
    const hdl_value *attribute, *other;
    enum { MAPS, SELECTS, REJECTS, DIFFERS, DIFFERS_IN_LETTERS } how;
    hdl_list seen; /* of DIFFERS */
    size_t capacity;
};

bool hdl_pick_item(hdl_chat_run *run, struct hdl_pick *pick, hdl_value *item) {
    const hdl_use u = { run, pick->at, *item, &pick->args };
    const hdl_value part = part_of(&u, *item, pick->attribute, pick->other);
    const bool named = !hdl_is(pick->name, HDL_IS_NONE);
    if (named && !hdl_is(pick->name, HDL_IS_TEXT))
        hdl_chat_fail(run, HD_STATUS_PARSE, pick->at, "%s as the name of a test or filter,", hdl_kind_name(pick->name));
    if (hdl_chat_stopped(run)) return false;
    bool passes = true;
    pick->rest.used = 0;
    if (pick->how >= DIFFERS) {
        const hdl_value key = pick->how == DIFFERS_IN_LETTERS ? without_case(&u, part) : part;
        if (!hdl_hashable(run, key))
            hdl_chat_fail(run, HD_STATUS_PARSE, pick->at, "%s cannot be told from others,", hdl_kind_name(key));
        passes = !hdl_contains(run, pick->at, (hdl_value){ .kind = HDL_IS_LIST, .as.list = &pick->seen }, key);
        if (passes) hdl_list_add(run, &pick->seen, &pick->capacity, key);
    } else if (pick->how == MAPS)
        *item = named ? hdl_filter(&(hdl_use){ run, pick->at, part, &pick->rest }, pick->name.as.text) : part;
    else
        passes = (named ? hdl_test(run, pick->at, pick->name.as.text, part, &pick->rest) : hdl_true(part)) ==
                 (pick->how == SELECTS);
    hdl_check_args(run, pick->at, &pick->rest);
    return passes;
}

/* A lazy list of the items, of which what is false has none. `pick` has its `how`; its attribute, if any, is argument 0
 * when the name of a test or filter is argument 1, else the name is argument 0. */
static hdl_value lazy(const hdl_use *u, struct hdl_pick pick, size_t name_place) {
    const hdl_value result = hdl_list_value(u->run, HDL_IS_LAZY, 0);
    struct hdl_pick *kept = hdl_chat_take(u->run, 1, sizeof *kept);
    const hdl_args *args = u->args;
    if (hdl_chat_stopped(u->run)) return u->v;
    pick.at = u->at;
    pick.args = *args;
    pick.name = name_place < args->count ? args->values[name_place] : hdl_none();
    if (name_place + 1 < args->count) {
        const size_t taken = name_place + 1;
        pick.rest =
            (hdl_args){ .values = args->values + taken, .names = args->names + taken, .count = args->count - taken };
    }
    *kept = pick;
    u->args->used = UINT64_MAX;
    if (hdl_is(u->v, HDL_IS_LAZY)) result.as.list->from = u->v.as.list;
    else if (hdl_true(u->v)) *result.as.list = hdl_items(u->run, u->at, u->v);
    result.as.list->view = NULL;
    result.as.list->pick = kept;
    return result;
}

static hdl_value picked(const hdl_use *u, bool by_attribute, bool wanted) {
    struct hdl_pick pick = { .how = wanted ? SELECTS : REJECTS };
    if (by_attribute && !(pick.attribute = hdl_arg(u->args, 0, "")))
        hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    return lazy(u, pick, by_attribute);
}
static hdl_value select_items(const hdl_use *u) { return picked(u, false, true); }
static hdl_value reject(const hdl_use *u) { return picked(u, false, false); }
static hdl_value selectattr(const hdl_use *u) { return picked(u, true, true); }
static hdl_value rejectattr(const hdl_use *u) { return picked(u, true, false); }

static hdl_value unique(const hdl_use *u) {
    struct hdl_pick pick = { .how = hdl_truth_arg(u->args, 0, "case_sensitive", false) ? DIFFERS : DIFFERS_IN_LETTERS,
                             .attribute = hdl_arg(u->args, 1, "attribute") };
    hdl_check_args(u->run, u->at, u->args);
    return lazy(u, pick, SIZE_MAX - 1);
}

/* map(attribute="name") or map("filter"). */
static hdl_value map(const hdl_use *u) {
    struct hdl_pick pick = { .how = MAPS, .attribute = hdl_arg(u->args, SIZE_MAX, "attribute") };
    if (!pick.attribute && u->args->count == 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    if (pick.attribute) {
        pick.other = hdl_arg(u->args, SIZE_MAX, "default");
        if (pick.other && hdl_is(*pick.other, HDL_IS_NONE)) pick.other = NULL;
        hdl_check_args(u->run, u->at, u->args);
    }
    return lazy(u, pick, pick.attribute ? SIZE_MAX - 1 : 0);
}

typedef hdl_value filter(const hdl_use *u);
static filter *find_filter(hdl_span name) {
    static const struct { const char *name; filter *apply; } table[] = {
        { "abs", absolute },     { "capitalize", capitalize }, { "count", length },    { "d", default_value },
        { "default", default_value }, { "dictsort", dictsort }, { "first", first },    { "indent", indent },
        { "int", whole_number }, { "items", items },           { "join", join },       { "last", last },
        { "length", length },    { "list", list },             { "lower", lower },     { "map", map },
        { "max", max },          { "min", min },               { "reject", reject },   { "rejectattr", rejectattr },
        { "replace", replace },  { "reverse", reverse },       { "safe", safe },       { "select", select_items },
        { "selectattr", selectattr }, { "sort", sort },        { "string", text_of },  { "title", title },
        { "tojson", tojson },    { "trim", trim },             { "unique", unique },   { "upper", upper },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (hdl_same(name, hdl_text(table[i].name))) return table[i].apply;
    return NULL;
}

bool hdl_has_filter(hdl_span name) { return find_filter(name) != NULL; }

hdl_value hdl_filter(const hdl_use *u, hdl_span name) {
    filter *apply = find_filter(name);
    if (!apply) hdl_chat_unsupported(u->run, u->at, "filter", name);
    return apply ? apply(u) : u->v;
}
