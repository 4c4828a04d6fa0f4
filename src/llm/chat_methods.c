/* chat_methods.c: methods of texts, maps and the loop, and the functions that every template finds. */
#include "llm/chat_inside.h"
#include <stdio.h>

static hdl_span text_arg(const hdl_use *u, size_t place) {
    if (place >= u->args->count) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    return hdl_text_arg(u, place, "", hdl_text(""));
}

/* ---- methods of texts ---- */

static hdl_value strip_ends(const hdl_use *u, bool front, bool end) {
    const hdl_span set = hdl_text_arg(u, 0, "", (hdl_span){ 0 });
    return hdl_text_value(hdl_strip(u->run, u->v.as.text, set, front, end));
}
static hdl_value strip(const hdl_use *u) { return strip_ends(u, true, true); }
static hdl_value lstrip(const hdl_use *u) { return strip_ends(u, true, false); }
static hdl_value rstrip(const hdl_use *u) { return strip_ends(u, false, true); }

/* One text, or a tuple of which one must fit. */
static hdl_value fits(const hdl_use *u, bool (*fit)(hdl_chat_run *run, hdl_span text, hdl_span with)) {
    const hdl_value *with = hdl_arg(u->args, 0, "");
    if (!with || !hdl_is(*with, HDL_IS_TUPLE)) return hdl_bool(fit(u->run, u->v.as.text, text_arg(u, 0)));
    bool found = false;
    for (size_t i = 0; i < with->as.list->count && !found && !hdl_chat_stopped(u->run); i++) {
        const hdl_value part = with->as.list->items[i];
        if (!hdl_is(part, HDL_IS_TEXT))
            hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "%s in place of a text,", hdl_kind_name(part));
        else found = fit(u->run, u->v.as.text, part.as.text);
    }
    return hdl_bool(found);
}
static hdl_value startswith(const hdl_use *u) { return fits(u, hdl_begins); }
static hdl_value endswith(const hdl_use *u) { return fits(u, hdl_ends); }

/* Without a text in front or at the end. */
static hdl_value removeprefix(const hdl_use *u) {
    const hdl_span text = u->v.as.text, part = text_arg(u, 0);
    return hdl_text_value(hdl_begins(u->run, text, part) ? hdl_cut(text, part.count, text.count) : text);
}
static hdl_value removesuffix(const hdl_use *u) {
    const hdl_span text = u->v.as.text, part = text_arg(u, 0);
    return hdl_text_value(hdl_ends(u->run, text, part) ? hdl_cut(text, 0, text.count - part.count) : text);
}

/* Takes the first or last part of *rest, up to `by` or to white space; true if there is another one behind it. */
static bool take_part(const hdl_use *u, hdl_span *rest, hdl_span by, bool from_end, hdl_span *out_part) {
    const hdl_span all = *rest;
    int64_t found = -1;
    uint64_t bytes = by.count;
    if (by.bytes) {
        found = hdl_find(u->run, all, by, from_end);
    } else {
        for (hdl_span left = all, character;
             found < 0 && (character = hdl_take_character(u->run, &left, from_end)).count > 0;)
            if (hdl_is_space(character)) {
                found = character.bytes - all.bytes;
                bytes = character.count;
            }
    }
    *out_part = found < 0  ? all
                : from_end ? hdl_cut(all, (uint64_t)found + bytes, all.count)
                           : hdl_cut(all, 0, (uint64_t)found);
    if (found >= 0)
        *rest = from_end ? hdl_cut(all, 0, (uint64_t)found) : hdl_cut(all, (uint64_t)found + bytes, all.count);
    return found >= 0;
}

static hdl_value split_parts(const hdl_use *u, bool from_end) {
    const hdl_span by = hdl_text_arg(u, 0, "sep", (hdl_span){ 0 });
    int64_t most = hdl_number_arg(u, 1, "maxsplit", -1);
    const hdl_value result = hdl_list_value(u->run, HDL_IS_LIST, 0);
    hdl_span rest = u->v.as.text, part;
    size_t capacity = 0;
    if (by.bytes && by.count == 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "split by an empty text");
    for (bool more = true; more && !hdl_chat_stopped(u->run); most--) {
        if (!by.bytes) rest = hdl_strip(u->run, rest, by, !from_end, from_end);
        if (!by.bytes && rest.count == 0) break;
        part = rest;
        more = most != 0 && take_part(u, &rest, by, from_end, &part);
        hdl_list_add(u->run, result.as.list, &capacity, hdl_text_value(part));
    }
    for (size_t i = 0; from_end && !hdl_chat_stopped(u->run) && i < result.as.list->count / 2; i++) {
        hdl_value *items = result.as.list->items, first = items[i];
        items[i] = items[result.as.list->count - 1 - i];
        items[result.as.list->count - 1 - i] = first;
    }
    return result;
}
static hdl_value split(const hdl_use *u) { return split_parts(u, false); }
static hdl_value rsplit(const hdl_use *u) { return split_parts(u, true); }

static hdl_value splitlines(const hdl_use *u) {
    const hdl_value result = hdl_list_value(u->run, HDL_IS_LIST, 0);
    const bool keeps = hdl_number_arg(u, 0, "keepends", 0);
    hdl_span rest = u->v.as.text, line = rest, character;
    size_t capacity = 0;
    while ((character = hdl_take_character(u->run, &rest, false)).count > 0) {
        static const char *const ends[] = { "\n",   "\r",   "\v",       "\f",           "\x1c",
                                            "\x1d", "\x1e", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9" };
        bool end = false;
        for (size_t i = 0; i < 10 && (character.bytes[0] < 0x20 || character.bytes[0] >= 0x80); i++)
            end = end || hdl_same(character, hdl_text(ends[i]));
        if (!end && rest.count) continue;
        const uint64_t bytes = line.count - rest.count;
        if (hdl_same(character, hdl_text("\r")) && rest.count && rest.bytes[0] == '\n')
            hdl_take_character(u->run, &rest, false);
        const uint64_t kept = !end ? bytes : keeps ? line.count - rest.count : bytes - character.count;
        hdl_list_add(u->run, result.as.list, &capacity, hdl_text_value(hdl_cut(line, 0, kept)));
        line = rest;
    }
    return result;
}

static hdl_value cased(const hdl_use *u, hdl_case form) {
    return hdl_text_value(hdl_cased(u->run, u->at, u->v.as.text, form));
}
static hdl_value upper(const hdl_use *u) { return cased(u, HDL_CASE_UPPER); }
static hdl_value lower(const hdl_use *u) { return cased(u, HDL_CASE_LOWER); }
static hdl_value capitalize(const hdl_use *u) { return cased(u, HDL_CASE_CAPITALIZE); }
static hdl_value title(const hdl_use *u) { return cased(u, HDL_CASE_TITLE); }

static hdl_value replace(const hdl_use *u) {
    const hdl_span old = text_arg(u, 0), with = text_arg(u, 1);
    return hdl_text_value(hdl_replace(u->run, u->v.as.text, old, with, hdl_number_arg(u, 2, "", -1)));
}

static hdl_value found(const hdl_use *u, bool from_end) {
    const int64_t at = hdl_find(u->run, u->v.as.text, text_arg(u, 0), from_end);
    return hdl_number(at < 0 ? -1 : hdl_count_characters(u->run, hdl_cut(u->v.as.text, 0, (uint64_t)at)));
}
static hdl_value find(const hdl_use *u) { return found(u, false); }
static hdl_value rfind(const hdl_use *u) { return found(u, true); }
static hdl_value index_of(const hdl_use *u) {
    const hdl_value at = found(u, false);
    if (at.as.number < 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "the text is not found");
    return at;
}

static hdl_value count(const hdl_use *u) {
    const hdl_span part = text_arg(u, 0);
    hdl_span rest = u->v.as.text, passed;
    int64_t number = 0;
    if (part.count == 0) return hdl_number(hdl_count_characters(u->run, rest) + 1);
    while (take_part(u, &rest, part, false, &passed)) number++;
    return hdl_number(number);
}

static hdl_value is_digits(const hdl_use *u) {
    bool all = u->v.as.text.count > 0;
    for (hdl_span rest = u->v.as.text, character;
         all && (character = hdl_take_character(u->run, &rest, false)).count > 0;) {
        if (character.bytes[0] >= 0x80) hdl_chat_unsupported(u->run, u->at, "the digits of", character);
        all = character.bytes[0] >= '0' && character.bytes[0] <= '9';
    }
    return hdl_bool(all);
}

static hdl_value join(const hdl_use *u) {
    const hdl_value *parts = hdl_arg(u->args, 0, "");
    hdl_list items = { 0 };
    if (parts) items = hdl_items(u->run, u->at, *parts);
    else hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    for (size_t i = 0; i < items.count && hdl_chat_work(u->run, 1); i++)
        if (!hdl_is(items.items[i], HDL_IS_TEXT))
            hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "%s to be joined,", hdl_kind_name(items.items[i]));
    return hdl_text_value(hdl_joined(u->run, u->v.as.text, &items));
}

/* ---- methods of maps and of the loop ---- */

static hdl_value get(const hdl_use *u) {
    const hdl_value *key = hdl_arg(u->args, 0, ""), *other = hdl_arg(u->args, 1, ""), *value = NULL;
    if (!key) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    else if (!hdl_hashable(u->run, *key))
        hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "%s cannot be a key,", hdl_kind_name(*key));
    else value = hdl_map_get(u->run, u->v.as.map, *key);
    return value ? *value : other ? *other : hdl_none();
}

hdl_value hdl_map_view(hdl_chat_run *run, const hdl_map *map, const char *view) {
    const hdl_value list = hdl_list_value(run, HDL_IS_VIEW, map->count);
    if (!hdl_chat_stopped(run)) list.as.list->view = view;
    for (size_t i = 0; i < map->count && !hdl_chat_stopped(run); i++) {
        const hdl_value key = map->keys[i], value = map->values[i];
        list.as.list->items[i] = view[5] == 'k' ? key : view[5] == 'v' ? value : hdl_pair(run, key, value);
    }
    return list;
}
static hdl_value items(const hdl_use *u) { return hdl_map_view(u->run, u->v.as.map, "dict_items("); }
static hdl_value keys(const hdl_use *u) { return hdl_map_view(u->run, u->v.as.map, "dict_keys("); }
static hdl_value values(const hdl_use *u) { return hdl_map_view(u->run, u->v.as.map, "dict_values("); }

static hdl_value cycle(const hdl_use *u) {
    const size_t count = u->args->count;
    if (count == 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    u->args->used = UINT64_MAX;
    return count ? u->args->values[u->v.as.loop->index % count] : hdl_none();
}

static hdl_value changed(const hdl_use *u) {
    const hdl_value now = hdl_list_value(u->run, HDL_IS_TUPLE, u->args->count);
    u->args->used = UINT64_MAX;
    if (hdl_chat_stopped(u->run)) return now;
    if (u->args->count) memcpy(now.as.list->items, u->args->values, u->args->count * sizeof now);
    hdl_loop *loop = u->v.as.loop;
    if (hdl_is(loop->changed, HDL_IS_TUPLE) && hdl_equal(u->run, loop->changed, now)) return hdl_bool(false);
    loop->changed = now;
    return hdl_bool(true);
}

/* ---- all of them ---- */

bool hdl_has_method(hdl_value v, hdl_span name) {
    static const char *const methods[] = {
        [HDL_IS_TEXT] =
            "capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha "
            "isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust "
            "lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit "
            "rstrip split splitlines startswith strip swapcase title translate upper zfill",
        [HDL_IS_LIST] = "append clear copy count extend index insert pop remove reverse sort",
        [HDL_IS_TUPLE] = "count index",
        [HDL_IS_MAP] = "clear copy fromkeys get items keys pop popitem setdefault update values",
        [HDL_IS_LOOP] = "cycle changed",
        [HDL_IS_METHOD] = "",
    };
    for (const char *at = methods[v.kind]; at && *at; at += strspn(at, " ")) {
        const size_t bytes = strcspn(at, " ");
        if (bytes == name.count && memcmp(at, name.bytes, bytes) == 0) return true;
        at += bytes;
    }
    return false;
}

hdl_value hdl_method(const hdl_use *u, hdl_span name) {
    static const struct { hdl_value_kind kind; const char *name; hdl_value (*call)(const hdl_use *u); } table[] = {
        { HDL_IS_TEXT, "capitalize", capitalize }, { HDL_IS_TEXT, "count", count },
        { HDL_IS_TEXT, "endswith", endswith },
        { HDL_IS_TEXT, "find", find },             { HDL_IS_TEXT, "index", index_of },
        { HDL_IS_TEXT, "isdigit", is_digits },
        { HDL_IS_TEXT, "join", join },             { HDL_IS_TEXT, "lower", lower },   { HDL_IS_TEXT, "lstrip", lstrip },
        { HDL_IS_TEXT, "removeprefix", removeprefix }, { HDL_IS_TEXT, "removesuffix", removesuffix },
        { HDL_IS_TEXT, "replace", replace },       { HDL_IS_TEXT, "rfind", rfind },   { HDL_IS_TEXT, "rsplit", rsplit },
        { HDL_IS_TEXT, "rstrip", rstrip },         { HDL_IS_TEXT, "split", split },
        { HDL_IS_TEXT, "splitlines", splitlines },
        { HDL_IS_TEXT, "startswith", startswith }, { HDL_IS_TEXT, "strip", strip },   { HDL_IS_TEXT, "title", title },
        { HDL_IS_TEXT, "upper", upper },           { HDL_IS_MAP, "get", get },        { HDL_IS_MAP, "items", items },
        { HDL_IS_MAP, "keys", keys },              { HDL_IS_MAP, "values", values },
        { HDL_IS_LOOP, "changed", changed },
        { HDL_IS_LOOP, "cycle", cycle },
    };
    /* What Python's Markup would make of arguments, and the lists of Markup that it gives, are left out. */
    const bool splits = hdl_same(name, hdl_text("split")) || hdl_same(name, hdl_text("rsplit")) ||
                        hdl_same(name, hdl_text("splitlines"));
    if (u->v.safe && (u->args->count || splits))
        hdl_chat_unsupported(u->run, u->at, "a method of what safe gave,", name);
    for (size_t i = 0; i < sizeof table / sizeof table[0] && !hdl_chat_stopped(u->run); i++)
        if (table[i].kind == u->v.kind && hdl_same(name, hdl_text(table[i].name)))
            return hdl_safe_like(table[i].call(u), u->v);
    hdl_chat_unsupported(u->run, u->at, "method", name);
    return hdl_none();
}

/* ---- functions ---- */

enum { NAMESPACE, DICT, RANGE, RAISE, CYCLER, JOINER, LIPSUM, DATE };
static const char *const functions[] = { "namespace", "dict",   "range",  "raise_exception",
                                         "cycler",    "joiner", "lipsum", "strftime_now" };

void hdl_bind_functions(hdl_chat_run *run) {
    for (int i = 0; i <= DATE; i++)
        if (i != DATE || run->desc->now)
            hdl_bind(run, run->globals, hdl_text(functions[i]), (hdl_value){ .kind = HDL_IS_FUNCTION, .as.number = i });
}

static hdl_value make_map(const hdl_use *u, hdl_value_kind kind) {
    const hdl_value map = hdl_map_value(u->run, kind);
    for (size_t i = 0; i < u->args->count && !hdl_chat_stopped(u->run); i++) {
        const hdl_value v = u->args->values[i];
        if (u->args->names[i].bytes) hdl_map_set(u->run, map.as.map, hdl_text_value(u->args->names[i]), v);
        else if (i > 0 || !hdl_is(v, HDL_IS_MAP))
            hdl_chat_unsupported(u->run, u->at, "argument", hdl_text("without a name"));
        else
            for (size_t k = 0; k < v.as.map->count; k++)
                hdl_map_set(u->run, map.as.map, v.as.map->keys[k], v.as.map->values[k]);
    }
    u->args->used = UINT64_MAX;
    return map;
}

static hdl_value make_range(const hdl_use *u) {
    if (u->args->count == 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "an argument is missing");
    int64_t from = 0, to = hdl_number_arg(u, 0, "", 0), count = 0;
    if (u->args->count > 1) {
        from = to;
        to = hdl_number_arg(u, 1, "", 0);
    }
    const int64_t by = hdl_number_arg(u, 2, "", 1);
    const int64_t most = INT64_C(1) << 40;
    if (by == 0) hdl_chat_fail(u->run, HD_STATUS_PARSE, u->at, "a range with step 0");
    if (from > most || from < -most || to > most || to < -most || by > most || by < -most)
        hdl_chat_fail(u->run, HD_STATUS_LIMIT, u->at, "a range too large");
    if (hdl_chat_stopped(u->run)) return hdl_none();
    if (by > 0 ? from < to : from > to) count = (by > 0 ? to - from - 1 : from - to - 1) / (by > 0 ? by : -by) + 1;
    if (count > 100000) hdl_chat_fail(u->run, HD_STATUS_LIMIT, u->at, "a range of more than 100000 numbers");
    const hdl_value list = hdl_list_value(u->run, HDL_IS_RANGE, (size_t)count);
    for (int64_t i = 0; i < count && !hdl_chat_stopped(u->run); i++) list.as.list->items[i] = hdl_number(from + i * by);
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

static hdl_value make_date(const hdl_use *u) {
    static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December" };
    static const char *const days[] = { "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday" };
    const int64_t most = INT64_C(1) << 37; /* year 6325 */
    const hdl_span format = hdl_text_arg(u, 0, "format", hdl_text(""));
    const int64_t now = u->run->desc->now > most ? most : u->run->desc->now < 0 ? 0 : u->run->desc->now,
        second = now % 86400;
    int64_t year;
    int month, day;
    to_date(now / 86400, &year, &month, &day);
    const char *month_name = months[month - 1], *day_name = days[now / 86400 % 7];
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    for (uint64_t i = 0; i < format.count && !hdl_chat_stopped(u->run); i++) {
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
        else hdl_chat_unsupported(u->run, u->at, "the date's form", hdl_cut(format, i - 1, i + 1));
        hdl_put(u->run, &sink, form ? hdl_text(text) : hdl_cut(format, i, i + 1));
    }
    return hdl_text_value(hdl_sunk(&sink));
}

static hdl_value refuse(const hdl_use *u) {
    const hdl_span words = hdl_text_arg(u, 0, "message", hdl_text(""));
    if (!hdl_chat_stopped(u->run))
        u->run->status =
            hdl_fail(u->run->error, HD_STATUS_INVALID_ARGUMENT, "chat template: it refuses the messages: %.*s",
                     words.count < 300 ? (int)words.count : 300, (const char *)words.bytes);
    return hdl_none();
}

hdl_value hdl_function(const hdl_use *u, int64_t which) {
    switch (which) {
    case NAMESPACE: return make_map(u, HDL_IS_NAMESPACE);
    case DICT: return make_map(u, HDL_IS_MAP);
    case RANGE: return make_range(u);
    case RAISE: return refuse(u);
    case DATE: return make_date(u);
    default: hdl_chat_unsupported(u->run, u->at, "function", hdl_text(functions[which])); return hdl_none();
    }
}
