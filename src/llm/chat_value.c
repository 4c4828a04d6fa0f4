/* chat_value.c: the values of a template: what is true, equal, smaller, inside, an item, a slice: as in Python. */
#include "llm/chat_inside.h"

hdl_value hdl_undefined(hdl_span name) { return (hdl_value){ .kind = HDL_IS_UNDEFINED, .as.text = name }; }
hdl_value hdl_none(void) { return (hdl_value){ .kind = HDL_IS_NONE }; }
hdl_value hdl_bool(bool value) { return (hdl_value){ .kind = HDL_IS_BOOL, .as.number = value }; }
hdl_value hdl_number(int64_t value) { return (hdl_value){ .kind = HDL_IS_NUMBER, .as.number = value }; }
hdl_value hdl_text_value(hdl_span text) { return (hdl_value){ .kind = HDL_IS_TEXT, .as.text = text.bytes ? text : hdl_text("") }; }

hdl_value hdl_list_value(hdl_chat_run *run, hdl_value_kind kind, size_t count) {
    hdl_list *list = hdl_chat_take(run, 1, sizeof *list);
    if (!list) return hdl_none();
    list->items = hdl_chat_take(run, count, sizeof *list->items);
    list->count = list->items ? count : 0;
    return (hdl_value){ .kind = kind, .as.list = list };
}

hdl_value hdl_map_value(hdl_chat_run *run, hdl_value_kind kind) {
    hdl_map *map = hdl_chat_take(run, 1, sizeof *map);
    return map ? (hdl_value){ .kind = kind, .as.map = map } : hdl_none();
}

const hdl_value *hdl_map_get(hdl_chat_run *run, const hdl_map *map, hdl_span key) {
    for (size_t i = 0; i < map->count; i++) {
        if (!hdl_chat_step(run, 1)) return NULL;
        if (hdl_same(map->keys[i], key)) return &map->values[i];
    }
    return NULL;
}

void hdl_map_set(hdl_chat_run *run, hdl_map *map, hdl_span key, hdl_value value) {
    for (size_t i = 0; i < map->count && hdl_chat_step(run, 1); i++)
        if (hdl_same(map->keys[i], key)) {
            map->values[i] = value;
            return;
        }
    if (map->count == map->capacity) {
        const size_t capacity = 2 * map->capacity + 4;
        hdl_span *keys = hdl_chat_take(run, capacity, sizeof *keys);
        hdl_value *values = hdl_chat_take(run, capacity, sizeof *values);
        if (!keys || !values) return;
        if (map->count) {
            memcpy(keys, map->keys, map->count * sizeof *keys);
            memcpy(values, map->values, map->count * sizeof *values);
        }
        map->keys = keys;
        map->values = values;
        map->capacity = capacity;
    }
    map->keys[map->count] = key;
    map->values[map->count++] = value;
}

const char *hdl_kind_name(hdl_value v) {
    static const char *const names[] = { "an undefined value", "none", "a truth value", "a number", "a text", "a list", "a tuple", "a map",
                                         "a namespace", "the loop", "a macro", "a function" };
    return names[v.kind];
}

bool hdl_true(hdl_value v) {
    switch (v.kind) {
    case HDL_IS_UNDEFINED:
    case HDL_IS_NONE: return false;
    case HDL_IS_BOOL:
    case HDL_IS_NUMBER: return v.as.number != 0;
    case HDL_IS_TEXT: return v.as.text.count > 0;
    case HDL_IS_LIST:
    case HDL_IS_TUPLE: return v.as.list->count > 0;
    case HDL_IS_MAP: return v.as.map->count > 0;
    default: return true;
    }
}

static bool equal_lists(hdl_chat_run *run, const hdl_list *a, const hdl_list *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!hdl_equal(run, a->items[i], b->items[i])) return false;
    return true;
}

static bool equal_maps(hdl_chat_run *run, const hdl_map *a, const hdl_map *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const hdl_value *other = hdl_map_get(run, b, a->keys[i]);
        if (!other || !hdl_equal(run, a->values[i], *other)) return false;
    }
    return true;
}

bool hdl_equal(hdl_chat_run *run, hdl_value a, hdl_value b) {
    if (!hdl_chat_step(run, 1)) return false;
    if (hdl_is_number(a) && hdl_is_number(b)) return a.as.number == b.as.number;
    if (a.kind != b.kind) return false;
    if (++run->depth > HDL_MAX_CHAT_NESTING)
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "lists nested more than %u deep", HDL_MAX_CHAT_NESTING);
    bool same = false;
    if (!hdl_chat_stopped(run)) switch (a.kind) {
    case HDL_IS_TEXT: same = hdl_chat_step(run, a.as.text.count / 16) && hdl_same(a.as.text, b.as.text); break;
    case HDL_IS_LIST:
    case HDL_IS_TUPLE: same = equal_lists(run, a.as.list, b.as.list); break;
    case HDL_IS_MAP: same = equal_maps(run, a.as.map, b.as.map); break;
    case HDL_IS_NAMESPACE: same = a.as.map == b.as.map; break;
    case HDL_IS_MACRO: same = a.as.macro == b.as.macro; break;
    case HDL_IS_FUNCTION: same = a.as.number == b.as.number; break;
    default: same = true;
    }
    run->depth--;
    return same;
}

int hdl_order(hdl_chat_run *run, uint32_t at, hdl_value a, hdl_value b) {
    if (hdl_is_number(a) && hdl_is_number(b)) return a.as.number < b.as.number ? -1 : a.as.number > b.as.number;
    if (hdl_is(a, HDL_IS_TEXT) && hdl_is(b, HDL_IS_TEXT)) {
        /* The order of UTF-8's bytes is that of the characters. */
        const uint64_t shared = a.as.text.count < b.as.text.count ? a.as.text.count : b.as.text.count;
        const int order = shared && hdl_chat_step(run, shared / 16) ? memcmp(a.as.text.bytes, b.as.text.bytes, (size_t)shared) : 0;
        return order ? order : a.as.text.count < b.as.text.count ? -1 : a.as.text.count > b.as.text.count;
    }
    hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s and %s have no order,", hdl_kind_name(a), hdl_kind_name(b));
    return 0;
}

bool hdl_contains(hdl_chat_run *run, uint32_t at, hdl_value whole, hdl_value part) {
    if (hdl_is(whole, HDL_IS_UNDEFINED)) return false;
    if (hdl_is_list(whole)) {
        for (size_t i = 0; i < whole.as.list->count; i++)
            if (hdl_equal(run, whole.as.list->items[i], part)) return true;
        return false;
    }
    if (hdl_is(whole, HDL_IS_MAP)) return hdl_is(part, HDL_IS_TEXT) && hdl_map_get(run, whole.as.map, part.as.text) != NULL;
    if (hdl_is(whole, HDL_IS_TEXT) && hdl_is(part, HDL_IS_TEXT)) return hdl_find(run, whole.as.text, 0, part.as.text) >= 0;
    hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s cannot be in %s,", hdl_kind_name(part), hdl_kind_name(whole));
    return false;
}

static int64_t count_characters(hdl_chat_run *run, hdl_span text) {
    int64_t count = 0;
    if (!hdl_chat_step(run, text.count / 8)) return 0;
    for (uint64_t i = 0; i < text.count; count++) i += hdl_first_character(hdl_cut(text, i, text.count));
    return count;
}

int64_t hdl_length(hdl_chat_run *run, uint32_t at, hdl_value v) {
    switch (v.kind) {
    case HDL_IS_UNDEFINED: return 0;
    case HDL_IS_TEXT: return count_characters(run, v.as.text);
    case HDL_IS_LIST:
    case HDL_IS_TUPLE: return (int64_t)v.as.list->count;
    case HDL_IS_MAP: return (int64_t)v.as.map->count;
    default: hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s has no length,", hdl_kind_name(v)); return -1;
    }
}

hdl_list hdl_items(hdl_chat_run *run, uint32_t at, hdl_value v) {
    if (hdl_is_list(v)) return *v.as.list;
    if (hdl_is(v, HDL_IS_UNDEFINED)) return (hdl_list){ 0 };
    if (!hdl_is(v, HDL_IS_TEXT) && !hdl_is(v, HDL_IS_MAP)) {
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s has no items,", hdl_kind_name(v));
        return (hdl_list){ 0 };
    }
    const int64_t length = hdl_length(run, at, v);
    if (length < 0 || !hdl_chat_step(run, (uint64_t)length)) return (hdl_list){ 0 };
    const hdl_value list = hdl_list_value(run, HDL_IS_LIST, (size_t)length);
    if (hdl_chat_stopped(run)) return (hdl_list){ 0 };
    uint64_t place = 0;
    for (size_t i = 0; i < list.as.list->count; i++) {
        hdl_value *item = &list.as.list->items[i];
        if (hdl_is(v, HDL_IS_MAP)) {
            *item = hdl_text_value(v.as.map->keys[i]);
        } else {
            const size_t bytes = hdl_first_character(hdl_cut(v.as.text, place, v.as.text.count));
            *item = hdl_text_value(hdl_cut(v.as.text, place, place + bytes));
            place += bytes;
        }
    }
    return *list.as.list;
}

/* The place of character number `index`; `text` has that many or more. */
static uint64_t place_of(hdl_span text, int64_t index) {
    uint64_t place = 0;
    while (index-- > 0) place += hdl_first_character(hdl_cut(text, place, text.count));
    return place;
}

hdl_value hdl_item(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_value key) {
    const hdl_value none = hdl_undefined(hdl_is(key, HDL_IS_TEXT) ? key.as.text : hdl_text("the item"));
    if (hdl_is(v, HDL_IS_UNDEFINED)) {
        char shown[HDL_QUOTE];
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s is undefined and has no items,", hdl_quote(v.as.text, shown));
        return none;
    }
    if (hdl_is(key, HDL_IS_TEXT)) return hdl_attribute(run, at, v, key.as.text);
    if (!hdl_is_number(key) || !(hdl_is_list(v) || hdl_is(v, HDL_IS_TEXT))) return none;
    const int64_t length = hdl_length(run, at, v);
    int64_t index = key.as.number;
    if (index < 0 && index >= -length) index += length;
    if (index < 0 || index >= length) return none;
    if (hdl_is_list(v)) return v.as.list->items[index];
    const uint64_t place = place_of(v.as.text, index);
    const hdl_span tail = hdl_cut(v.as.text, place, v.as.text.count);
    return hdl_text_value(hdl_cut(tail, 0, hdl_first_character(tail)));
}

/* A slice's border as Python puts it into 0 .. length, or -1 .. length-1 going back. */
static int64_t border(const int64_t *given, int64_t fallback, int64_t length, bool back) {
    if (!given) return fallback;
    int64_t at = *given;
    if (at < 0) at = at < -length ? (back ? -1 : 0) : at + length;
    if (at >= length) at = back ? length - 1 : length;
    return at;
}

hdl_value hdl_slice(hdl_chat_run *run, uint32_t at, hdl_value v, const int64_t *start, const int64_t *stop, const int64_t *step) {
    const int64_t by = step ? *step : 1;
    if (by == 0 || !(hdl_is_list(v) || hdl_is(v, HDL_IS_TEXT))) {
        if (by == 0) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a slice with step 0");
        else hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s has no slices,", hdl_kind_name(v));
        return hdl_none();
    }
    const int64_t length = hdl_length(run, at, v);
    const int64_t from = border(start, by > 0 ? 0 : length - 1, length, by < 0), to = border(stop, by > 0 ? length : -1, length, by < 0);
    if (hdl_is(v, HDL_IS_TEXT) && by == 1) {
        if (from >= to) return hdl_text_value(hdl_text(""));
        const uint64_t begin = place_of(v.as.text, from);
        const uint64_t bytes = place_of(hdl_cut(v.as.text, begin, v.as.text.count), to - from);
        return hdl_text_value(hdl_cut(v.as.text, begin, begin + bytes));
    }
    const hdl_list all = hdl_items(run, at, v);
    uint64_t count = 0;
    if (by > 0 && from < to) count = (uint64_t)(to - from - 1) / (uint64_t)by + 1;
    if (by < 0 && from > to) count = (uint64_t)(from - to - 1) / (0 - (uint64_t)by) + 1;
    if (!hdl_chat_step(run, count)) return hdl_none();
    const hdl_value list = hdl_list_value(run, hdl_is(v, HDL_IS_TEXT) ? HDL_IS_LIST : v.kind, (size_t)count);
    if (hdl_chat_stopped(run)) return hdl_none();
    for (uint64_t i = 0; i < count; i++) list.as.list->items[i] = all.items[(uint64_t)from + i * (uint64_t)by];
    return hdl_is(v, HDL_IS_TEXT) ? hdl_text_value(hdl_joined(run, hdl_text(""), list.as.list)) : list;
}
