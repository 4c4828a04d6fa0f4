/* chat_methods.c: methods of texts and maps, and the functions that every template finds. */
#include "llm/chat_inside.h"
#include <stdio.h>

typedef struct called {
    hdl_chat_run *run;
    uint32_t      at;
    hdl_value     v;
    hdl_args     *args;
} called;

static hdl_span text_arg(const called *c, size_t place) {
    if (place >= c->args->count) hdl_chat_fail(c->run, HD_STATUS_PARSE, c->at, "an argument is missing");
    return hdl_text_arg(c->run, c->at, c->args, place, "", hdl_text(""));
}

/* ---- methods of texts ---- */

static hdl_value strip_ends(const called *c, bool front, bool end) {
    const hdl_span set = hdl_text_arg(c->run, c->at, c->args, 0, "", (hdl_span){ 0 });
    return hdl_text_value(hdl_strip(c->run, c->v.as.text, set, front, end));
}
static hdl_value strip(const called *c) { return strip_ends(c, true, true); }
static hdl_value lstrip(const called *c) { return strip_ends(c, true, false); }
static hdl_value rstrip(const called *c) { return strip_ends(c, false, true); }

/* One text, or a tuple of which one must fit. */
static hdl_value fits(const called *c, bool (*fit)(hdl_span text, hdl_span with)) {
    const hdl_value *with = hdl_arg(c->args, 0, "");
    if (with && hdl_is(*with, HDL_IS_TUPLE)) {
        for (size_t i = 0; i < with->as.list->count; i++)
            if (hdl_is(with->as.list->items[i], HDL_IS_TEXT) && fit(c->v.as.text, with->as.list->items[i].as.text)) return hdl_bool(true);
        return hdl_bool(false);
    }
    return hdl_bool(fit(c->v.as.text, text_arg(c, 0)));
}
static hdl_value startswith(const called *c) { return fits(c, hdl_begins); }
static hdl_value endswith(const called *c) { return fits(c, hdl_ends); }

/* Where the next part ends, in *out_end, and the one after it begins, in *out_next; false: the rest is the last part. */
static bool find_part(const called *c, hdl_span text, hdl_span by, bool from_end, uint64_t *out_end, uint64_t *out_next) {
    if (!by.bytes) { /* white space, of which there is none where the part begins */
        for (uint64_t i = 0; i < text.count && hdl_chat_step(c->run, 1);) {
            const hdl_span rest = from_end ? hdl_cut(text, 0, text.count - i) : hdl_cut(text, i, text.count);
            const size_t space = from_end ? hdl_space_at_end(rest) : hdl_space_in_front(rest);
            if (space) {
                *out_end = from_end ? text.count - i - space : i;
                *out_next = *out_end + space;
                return true;
            }
            i += from_end ? hdl_last_character(rest) : hdl_first_character(rest);
        }
        return false;
    }
    int64_t found = -1;
    if (!from_end) found = hdl_find(c->run, text, 0, by);
    for (uint64_t i = text.count; from_end && i >= by.count && hdl_chat_step(c->run, 1); i--)
        if (hdl_ends(hdl_cut(text, 0, i), by)) {
            found = (int64_t)(i - by.count);
            break;
        }
    if (found < 0) return false;
    *out_end = (uint64_t)found;
    *out_next = *out_end + by.count;
    return true;
}

static hdl_value split_parts(const called *c, bool from_end) {
    const hdl_span by = hdl_text_arg(c->run, c->at, c->args, 0, "sep", (hdl_span){ 0 });
    int64_t most = hdl_number_arg(c->run, c->at, c->args, 1, "maxsplit", -1);
    hdl_span text = by.bytes ? c->v.as.text : hdl_strip(c->run, c->v.as.text, by, !from_end, from_end);
    if (by.bytes && by.count == 0) hdl_chat_fail(c->run, HD_STATUS_PARSE, c->at, "split by an empty text");
    hdl_map *parts = hdl_chat_take(c->run, 1, sizeof *parts); /* grows; only its values are used */
    uint64_t end, next;
    for (; parts && !hdl_chat_stopped(c->run) && (by.bytes || text.count); most--) {
        const bool more = most != 0 && find_part(c, text, by, from_end, &end, &next);
        const hdl_span part = !more ? text : from_end ? hdl_cut(text, next, text.count) : hdl_cut(text, 0, end);
        if (parts->count == parts->capacity) {
            hdl_value *values = hdl_chat_take(c->run, 2 * parts->capacity + 8, sizeof *values);
            if (!values) break;
            if (parts->count) memcpy(values, parts->values, parts->count * sizeof *values);
            parts->values = values;
            parts->capacity = 2 * parts->capacity + 8;
        }
        parts->values[parts->count++] = hdl_text_value(part);
        if (!more) break;
        text = from_end ? hdl_cut(text, 0, end) : hdl_cut(text, next, text.count);
        if (!by.bytes) text = hdl_strip(c->run, text, by, !from_end, from_end);
    }
    const hdl_value result = hdl_list_value(c->run, HDL_IS_LIST, parts ? parts->count : 0);
    for (size_t i = 0; !hdl_chat_stopped(c->run) && i < parts->count; i++)
        result.as.list->items[i] = parts->values[from_end ? parts->count - 1 - i : i];
    return result;
}
static hdl_value split(const called *c) { return split_parts(c, false); }
static hdl_value rsplit(const called *c) { return split_parts(c, true); }

static hdl_value upper(const called *c) { return hdl_text_value(hdl_cased(c->run, c->at, c->v.as.text, HDL_CASE_UPPER)); }
static hdl_value lower(const called *c) { return hdl_text_value(hdl_cased(c->run, c->at, c->v.as.text, HDL_CASE_LOWER)); }
static hdl_value capitalize(const called *c) { return hdl_text_value(hdl_cased(c->run, c->at, c->v.as.text, HDL_CASE_CAPITALIZE)); }
static hdl_value title(const called *c) { return hdl_text_value(hdl_cased(c->run, c->at, c->v.as.text, HDL_CASE_TITLE)); }

static hdl_value replace(const called *c) {
    const hdl_span old = text_arg(c, 0), with = text_arg(c, 1);
    return hdl_text_value(hdl_replace(c->run, c->v.as.text, old, with, hdl_number_arg(c->run, c->at, c->args, 2, "count", -1)));
}

static hdl_value find(const called *c) {
    const int64_t found = hdl_find(c->run, c->v.as.text, 0, text_arg(c, 0));
    return hdl_number(found < 0 ? -1 : hdl_length(c->run, c->at, hdl_text_value(hdl_cut(c->v.as.text, 0, (uint64_t)found))));
}

static hdl_value join(const called *c) {
    const hdl_value *parts = hdl_arg(c->args, 0, "");
    if (!parts) hdl_chat_fail(c->run, HD_STATUS_PARSE, c->at, "an argument is missing");
    hdl_list items = { 0 };
    if (parts) items = hdl_items(c->run, c->at, *parts);
    for (size_t i = 0; i < items.count && !hdl_chat_stopped(c->run); i++)
        if (!hdl_is(items.items[i], HDL_IS_TEXT))
            hdl_chat_fail(c->run, HD_STATUS_PARSE, c->at, "%s to be joined,", hdl_kind_name(items.items[i]));
    return hdl_chat_stopped(c->run) ? c->v : hdl_text_value(hdl_joined(c->run, c->v.as.text, &items));
}

/* ---- methods of maps ---- */

static hdl_value get(const called *c) {
    const hdl_value *key = hdl_arg(c->args, 0, ""), *other = hdl_arg(c->args, 1, ""), *found = NULL;
    if (key && hdl_is(*key, HDL_IS_TEXT)) found = hdl_map_get(c->run, c->v.as.map, key->as.text);
    return found ? *found : other ? *other : hdl_none();
}

static hdl_value map_parts(const called *c, bool keys, bool values) {
    const hdl_map *map = c->v.as.map;
    if (!hdl_chat_step(c->run, map->count)) return hdl_none();
    const hdl_value list = hdl_list_value(c->run, HDL_IS_LIST, map->count);
    for (size_t i = 0; i < map->count && !hdl_chat_stopped(c->run); i++) {
        hdl_value *item = &list.as.list->items[i];
        *item = keys ? hdl_text_value(map->keys[i]) : map->values[i];
        if (!keys || !values) continue;
        const hdl_value pair = hdl_list_value(c->run, HDL_IS_TUPLE, 2);
        if (hdl_chat_stopped(c->run)) break;
        pair.as.list->items[0] = *item;
        pair.as.list->items[1] = map->values[i];
        *item = pair;
    }
    return list;
}
static hdl_value items(const called *c) { return map_parts(c, true, true); }
static hdl_value keys(const called *c) { return map_parts(c, true, false); }
static hdl_value values(const called *c) { return map_parts(c, false, true); }

hdl_value hdl_method(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args) {
    static const struct { hdl_value_kind kind; const char *name; hdl_value (*call)(const called *c); } table[] = {
        { HDL_IS_TEXT, "capitalize", capitalize }, { HDL_IS_TEXT, "endswith", endswith }, { HDL_IS_TEXT, "find", find },
        { HDL_IS_TEXT, "join", join },             { HDL_IS_TEXT, "lower", lower },       { HDL_IS_TEXT, "lstrip", lstrip },
        { HDL_IS_TEXT, "replace", replace },       { HDL_IS_TEXT, "rsplit", rsplit },     { HDL_IS_TEXT, "rstrip", rstrip },
        { HDL_IS_TEXT, "split", split },           { HDL_IS_TEXT, "startswith", startswith }, { HDL_IS_TEXT, "strip", strip },
        { HDL_IS_TEXT, "title", title },           { HDL_IS_TEXT, "upper", upper },
        { HDL_IS_MAP, "get", get },                { HDL_IS_MAP, "items", items },        { HDL_IS_MAP, "keys", keys },
        { HDL_IS_MAP, "values", values },
    };
    const called c = { run, at, v, args };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == v.kind && hdl_same(name, hdl_text(table[i].name))) return table[i].call(&c);
    hdl_chat_unsupported(run, at, "method", name);
    return v;
}

/* ---- functions ---- */

enum { NAMESPACE, DICT, RANGE, RAISE, DATE };

void hdl_bind_functions(hdl_chat_run *run) {
    static const char *const names[] = { "namespace", "dict", "range", "raise_exception", "strftime_now" };
    for (int i = 0; i <= DATE; i++)
        if (i != DATE || run->desc->now)
            hdl_bind(run, run->globals, hdl_text(names[i]), (hdl_value){ .kind = HDL_IS_FUNCTION, .as.number = i });
}

static hdl_value make_map(hdl_chat_run *run, uint32_t at, hdl_value_kind kind, hdl_args *args) {
    const hdl_value map = hdl_map_value(run, kind);
    for (size_t i = 0; i < args->count && !hdl_chat_stopped(run); i++) {
        if (!args->names[i].bytes) hdl_chat_unsupported(run, at, "argument", hdl_text("without a name"));
        else hdl_map_set(run, map.as.map, args->names[i], args->values[i]);
    }
    args->used = UINT64_MAX;
    return map;
}

static hdl_value make_range(hdl_chat_run *run, uint32_t at, hdl_args *args) {
    int64_t from = 0, to = hdl_number_arg(run, at, args, 0, "", 0), count = 0;
    if (args->count > 1) {
        from = to;
        to = hdl_number_arg(run, at, args, 1, "", 0);
    }
    const int64_t by = hdl_number_arg(run, at, args, 2, "", 1);
    const int64_t most = INT64_C(1) << 40;
    if (by == 0) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a range with step 0");
    if (from > most || from < -most || to > most || to < -most || by > most || by < -most)
        hdl_chat_fail(run, HD_STATUS_LIMIT, at, "a range too large");
    if (hdl_chat_stopped(run)) return hdl_none();
    if (by > 0 ? from < to : from > to) count = (by > 0 ? to - from - 1 : from - to - 1) / (by > 0 ? by : -by) + 1;
    if (count > 100000) hdl_chat_fail(run, HD_STATUS_LIMIT, at, "a range of more than 100000 numbers");
    const hdl_value list = hdl_list_value(run, HDL_IS_LIST, (size_t)count);
    if (hdl_chat_step(run, (uint64_t)count))
        for (int64_t i = 0; i < count; i++) list.as.list->items[i] = hdl_number(from + i * by);
    return list;
}

/* A date of the Gregorian calendar from days since 1970-01-01: counted in years that begin in March. */
static void to_date(int64_t days, int64_t *out_year, int *out_month, int *out_day) {
    days += 719468; /* since 0000-03-01 */
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    *out_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *out_month = (int)(month < 10 ? month + 3 : month - 9);
    *out_year = year + era * 400 + (*out_month <= 2);
}

static hdl_value make_date(hdl_chat_run *run, uint32_t at, hdl_args *args) {
    static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December" };
    static const char *const days[] = { "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday" };
    const int64_t most = INT64_C(1) << 37; /* year 6325 */
    const hdl_span format = hdl_text_arg(run, at, args, 0, "format", hdl_text(""));
    const int64_t now = run->desc->now > most ? most : run->desc->now < 0 ? 0 : run->desc->now, second = now % 86400;
    int64_t year;
    int month, day;
    to_date(now / 86400, &year, &month, &day);
    const char *month_name = months[month - 1], *day_name = days[now / 86400 % 7];
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    for (uint64_t i = 0; i < format.count && !hdl_chat_stopped(run); i++) {
        char text[24] = { 0 };
        const uint8_t c = format.bytes[i], form = c == '%' && i + 1 < format.count ? format.bytes[++i] : 0;
        if (form == 'd') snprintf(text, sizeof text, "%02d", day);
        else if (form == 'm') snprintf(text, sizeof text, "%02d", month);
        else if (form == 'Y') snprintf(text, sizeof text, "%d", (int)year);
        else if (form == 'y') snprintf(text, sizeof text, "%02d", (int)(year % 100));
        else if (form == 'H') snprintf(text, sizeof text, "%02d", (int)(second / 3600));
        else if (form == 'M') snprintf(text, sizeof text, "%02d", (int)(second / 60 % 60));
        else if (form == 'S') snprintf(text, sizeof text, "%02d", (int)(second % 60));
        else if (form == 'B' || form == 'b') snprintf(text, sizeof text, form == 'B' ? "%s" : "%.3s", month_name);
        else if (form == 'A' || form == 'a') snprintf(text, sizeof text, form == 'A' ? "%s" : "%.3s", day_name);
        else if (form == 0 || form == '%') text[0] = (char)c;
        else hdl_chat_unsupported(run, at, "the date's form", hdl_cut(format, i - 1, i + 1));
        hdl_put(run, &sink, form ? hdl_text(text) : hdl_cut(format, i, i + 1));
    }
    return hdl_text_value(hdl_sunk(&sink));
}

static hdl_value refuse(hdl_chat_run *run, uint32_t at, hdl_args *args) {
    const hdl_span words = hdl_text_arg(run, at, args, 0, "message", hdl_text(""));
    if (!hdl_chat_stopped(run))
        run->status = hdl_fail(run->error, HD_STATUS_INVALID_ARGUMENT, "chat template: it refuses the messages: %.*s",
                               words.count < 300 ? (int)words.count : 300, (const char *)words.bytes);
    return hdl_none();
}

hdl_value hdl_function(hdl_chat_run *run, uint32_t at, int64_t which, hdl_args *args) {
    switch (which) {
    case NAMESPACE: return make_map(run, at, HDL_IS_NAMESPACE, args);
    case DICT: return make_map(run, at, HDL_IS_MAP, args);
    case RANGE: return make_range(run, at, args);
    case RAISE: return refuse(run, at, args);
    default: return make_date(run, at, args);
    }
}
