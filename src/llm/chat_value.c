/* chat_value.c: the values of a template: what is true, equal, smaller, inside, an item, a slice: as in Python. */
#include "llm/chat_inside.h"

hdl_value hdl_undefined(hdl_span name) { return (hdl_value){ .kind = HDL_IS_UNDEFINED, .as.text = name }; }
hdl_value hdl_none(void) { return (hdl_value){ .kind = HDL_IS_NONE }; }
hdl_value hdl_bool(bool value) { return (hdl_value){ .kind = HDL_IS_BOOL, .as.number = value }; }
hdl_value hdl_number(int64_t value) { return (hdl_value){ .kind = HDL_IS_NUMBER, .as.number = value }; }
hdl_value hdl_text_value(hdl_span text) {
    return (hdl_value){ .kind = HDL_IS_TEXT, .as.text = text.bytes ? text : hdl_text("") };
}

hdl_value hdl_list_value(hdl_chat_run *run, hdl_value_kind kind, size_t count) {
    hdl_list *list = hdl_chat_take(run, 1, sizeof *list);
    if (list) list->items = hdl_chat_take(run, count, sizeof *list->items);
    if (hdl_chat_stopped(run)) return hdl_none();
    list->count = count;
    return (hdl_value){ .kind = kind, .as.list = list };
}

hdl_value hdl_pair(hdl_chat_run *run, hdl_value a, hdl_value b) {
    const hdl_value pair = hdl_list_value(run, HDL_IS_TUPLE, 2);
    if (hdl_chat_stopped(run)) return pair;
    pair.as.list->items[0] = a;
    pair.as.list->items[1] = b;
    return pair;
}

/* `count` items, in more memory than they have; NULL after a failure. */
static void *grown(hdl_chat_run *run, const void *items, size_t count, size_t capacity, size_t item_bytes) {
    void *more = hdl_chat_take(run, capacity, item_bytes);
    if (more && count) memcpy(more, items, count * item_bytes);
    return more;
}

void hdl_list_add(hdl_chat_run *run, hdl_list *list, size_t *capacity, hdl_value item) {
    if (list->count == *capacity) {
        hdl_value *more = grown(run, list->items, list->count, *capacity = 2 * *capacity + 4, sizeof *more);
        if (!more) return;
        list->items = more;
    }
    list->items[list->count++] = item;
}

hdl_value hdl_map_value(hdl_chat_run *run, hdl_value_kind kind) {
    hdl_map *map = hdl_chat_take(run, 1, sizeof *map);
    return map ? (hdl_value){ .kind = kind, .as.map = map } : hdl_none();
}

/* Where the key stands; the count, if it does not or after a failure. */
static size_t find_key(hdl_chat_run *run, const hdl_map *map, hdl_value key) {
    size_t i = 0;
    while (i < map->count && !hdl_chat_stopped(run) && !hdl_equal(run, map->keys[i], key)) i++;
    return hdl_chat_stopped(run) ? map->count : i;
}

const hdl_value *hdl_map_get(hdl_chat_run *run, const hdl_map *map, hdl_value key) {
    const size_t i = find_key(run, map, key);
    return i < map->count ? &map->values[i] : NULL;
}

void hdl_map_set(hdl_chat_run *run, hdl_map *map, hdl_value key, hdl_value value) {
    const size_t i = find_key(run, map, key);
    if (i == map->capacity) {
        const size_t capacity = 2 * map->capacity + 4;
        hdl_value *keys = grown(run, map->keys, map->count, capacity, sizeof *keys);
        hdl_value *values = grown(run, map->values, map->count, capacity, sizeof *values);
        if (!keys || !values) return;
        *map = (hdl_map){ keys, values, map->count, capacity };
    }
    if (hdl_chat_stopped(run)) return;
    if (i == map->count) map->keys[i] = key;
    map->values[i] = value;
    map->count += i == map->count;
}

void hdl_sort(hdl_chat_run *run, uint32_t at, hdl_value *items, const hdl_value *keys, size_t count, bool down) {
    size_t *order = hdl_chat_take(run, count, sizeof *order), *merged = hdl_chat_take(run, count, sizeof *merged);
    hdl_value *sorted = hdl_chat_take(run, count, sizeof *sorted);
    if (hdl_chat_stopped(run) || count == 0) return;
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t width = 1; width < count; width *= 2) { /* runs of this width are in order; two become one */
        for (size_t i = 0, j = 0, end = 0, middle = 0, k = 0; k < count && !hdl_chat_stopped(run); k++) {
            if (k == end) {
                middle = end + width < count ? end + width : count;
                i = end;
                j = middle;
                end = middle + width < count ? middle + width : count;
            }
            int step = i < middle ? -1 : 1;
            if (i < middle && j < end) step = hdl_order(run, at, keys[order[i]], keys[order[j]]) * (down ? -1 : 1);
            merged[k] = order[step <= 0 ? i++ : j++];
        }
        size_t *last = order;
        order = merged;
        merged = last;
    }
    for (size_t i = 0; i < count; i++) sorted[i] = items[order[i]];
    if (!hdl_chat_stopped(run)) memcpy(items, sorted, count * sizeof *sorted);
}

const hdl_map *hdl_sorted_map(hdl_chat_run *run, const hdl_map *map) {
    const hdl_value keys = hdl_map_view(run, map, "dict_keys(");
    hdl_map *sorted = hdl_chat_take(run, 1, sizeof *sorted);
    hdl_value *names = hdl_chat_take(run, map->count, sizeof *names);
    if (hdl_chat_stopped(run)) return map;
    if (map->count) memcpy(names, keys.as.list->items, map->count * sizeof *names);
    hdl_sort(run, run->at, names, keys.as.list->items, map->count, false);
    for (size_t i = 0; i < map->count && !hdl_chat_stopped(run); i++) {
        const hdl_value *value = hdl_map_get(run, map, names[i]);
        if (value) hdl_map_set(run, sorted, names[i], *value);
    }
    return sorted;
}

const char *hdl_kind_name(hdl_value v) {
    static const char *const names[] = { "an undefined value", "none", "a truth value", "a number", "a fraction",
                                         "a text", "a list",
                                         "a tuple",
                                         "a range", "a view of a map", "a lazy list", "a map", "a namespace",
                                         "the loop", "a macro",
                                         "a function", "a method" };
    return names[v.kind];
}

bool hdl_true(hdl_value v) {
    switch (v.kind) {
    case HDL_IS_UNDEFINED:
    case HDL_IS_NONE: return false;
    case HDL_IS_BOOL:
    case HDL_IS_NUMBER: return v.as.number != 0;
    case HDL_IS_DECIMAL: return !hdl_same(v.as.text, hdl_text("0.0")) && !hdl_same(v.as.text, hdl_text("-0.0"));
    case HDL_IS_TEXT: return v.as.text.count > 0;
    case HDL_IS_LIST: case HDL_IS_TUPLE: case HDL_IS_RANGE:
    case HDL_IS_VIEW: return v.as.list->count > 0;
    case HDL_IS_MAP: return v.as.map->count > 0;
    default: return true;
    }
}

/* The first place at which they differ. */
static size_t same_items(hdl_chat_run *run, const hdl_list *a, const hdl_list *b) {
    size_t i = 0;
    while (i < a->count && i < b->count && hdl_equal(run, a->items[i], b->items[i])) i++;
    return i;
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
    bool same = false;
    if (!hdl_chat_enter(run)) return false;
    if (hdl_is_number(a) && hdl_is_number(b)) same = a.as.number == b.as.number;
    else if (a.kind == b.kind) switch (a.kind) {
    case HDL_IS_DECIMAL: case HDL_IS_TEXT: same = hdl_text_same(run, a.as.text, b.as.text); break;
    case HDL_IS_LIST: case HDL_IS_TUPLE:
    case HDL_IS_RANGE:
        same = a.as.list->count == b.as.list->count && same_items(run, a.as.list, b.as.list) == a.as.list->count;
        break;
    case HDL_IS_MAP: same = equal_maps(run, a.as.map, b.as.map); break;
    case HDL_IS_VIEW:
    case HDL_IS_METHOD: hdl_chat_unsupported(run, run->at, "comparing", hdl_text(hdl_kind_name(a))); break;
    case HDL_IS_LAZY: same = a.as.list == b.as.list; break;
    case HDL_IS_NAMESPACE: same = a.as.map == b.as.map; break;
    case HDL_IS_LOOP: same = a.as.loop == b.as.loop; break;
    case HDL_IS_MACRO: same = a.as.macro == b.as.macro; break;
    case HDL_IS_FUNCTION: same = a.as.number == b.as.number; break;
    default: same = true;
    }
    hdl_chat_leave(run);
    return same && !hdl_chat_stopped(run);
}

int hdl_order(hdl_chat_run *run, uint32_t at, hdl_value a, hdl_value b) {
    int order = 0;
    if (!hdl_chat_enter(run)) return 0;
    if (hdl_is_number(a) && hdl_is_number(b)) {
        order = a.as.number < b.as.number ? -1 : a.as.number > b.as.number;
    } else if (hdl_is(a, HDL_IS_TEXT) && hdl_is(b, HDL_IS_TEXT)) {
        order = hdl_text_order(run, a.as.text, b.as.text);
    } else if (a.kind == b.kind && hdl_is_list(a)) {
        const hdl_list *x = a.as.list, *y = b.as.list;
        const size_t i = same_items(run, x, y);
        order = i < x->count && i < y->count ? hdl_order(run, at, x->items[i], y->items[i])
                                             : (i < x->count) - (i < y->count);
    } else {
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s and %s have no order,", hdl_kind_name(a), hdl_kind_name(b));
    }
    hdl_chat_leave(run);
    return order;
}

bool hdl_hashable(hdl_chat_run *run, hdl_value v) {
    bool all = !hdl_is(v, HDL_IS_LIST) && !hdl_is(v, HDL_IS_MAP) && !hdl_is(v, HDL_IS_VIEW);
    if (!hdl_is(v, HDL_IS_TUPLE) || !hdl_chat_enter(run)) return all;
    for (size_t i = 0; all && i < v.as.list->count; i++) all = hdl_hashable(run, v.as.list->items[i]);
    hdl_chat_leave(run);
    return all;
}

bool hdl_contains(hdl_chat_run *run, uint32_t at, hdl_value whole, hdl_value part) {
    if (hdl_is(whole, HDL_IS_UNDEFINED)) return false;
    if (whole.kind >= HDL_IS_LIST && whole.kind <= HDL_IS_LAZY) {
        if (whole.as.list->view && whole.as.list->view[5] == 'k' && !hdl_hashable(run, part))
            hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s cannot be a key,", hdl_kind_name(part));
        hdl_list items = *whole.as.list, *list = hdl_is(whole, HDL_IS_LAZY) ? whole.as.list : &items;
        for (hdl_value item; hdl_next(run, list, &item);)
            if (hdl_equal(run, item, part)) return true;
        return false;
    }
    if (hdl_is(whole, HDL_IS_MAP) && hdl_hashable(run, part))
        return hdl_map_get(run, whole.as.map, part) != NULL;
    if (hdl_is(whole, HDL_IS_TEXT) && hdl_is(part, HDL_IS_TEXT))
        return hdl_find(run, whole.as.text, part.as.text, false) >= 0;
    hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s cannot be in %s,", hdl_kind_name(part), hdl_kind_name(whole));
    return false;
}

int64_t hdl_length(hdl_chat_run *run, uint32_t at, hdl_value v) {
    switch (v.kind) {
    case HDL_IS_UNDEFINED: return 0;
    case HDL_IS_TEXT: return hdl_count_characters(run, v.as.text);
    case HDL_IS_LIST: case HDL_IS_TUPLE: case HDL_IS_RANGE:
    case HDL_IS_VIEW: return (int64_t)v.as.list->count;
    case HDL_IS_MAP: return (int64_t)v.as.map->count;
    default: hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s has no length,", hdl_kind_name(v)); return -1;
    }
}

bool hdl_next(hdl_chat_run *run, hdl_list *list, hdl_value *out_item) {
    bool found = false;
    if (!hdl_chat_enter(run)) return false;
    while (!found && !hdl_chat_stopped(run) &&
           (list->from ? hdl_next(run, list->from, out_item) : list->taken < list->count)) {
        if (!list->from) *out_item = list->items[list->taken++];
        found = !list->pick || hdl_pick_item(run, list->pick, out_item);
    }
    hdl_chat_leave(run);
    return found && !hdl_chat_stopped(run);
}

hdl_list hdl_items(hdl_chat_run *run, uint32_t at, hdl_value v) {
    hdl_list items = { 0 };
    size_t capacity = 0;
    hdl_span character;
    if (hdl_is(v, HDL_IS_LAZY)) {
        for (hdl_value item; hdl_next(run, v.as.list, &item);) hdl_list_add(run, &items, &capacity, item);
    } else if (v.kind >= HDL_IS_LIST && v.kind < HDL_IS_LAZY) {
        items = *v.as.list;
    } else if (hdl_is(v, HDL_IS_MAP)) {
        const hdl_value keys = hdl_map_view(run, v.as.map, "dict_keys(");
        if (!hdl_chat_stopped(run)) items = *keys.as.list;
    } else if (hdl_is(v, HDL_IS_TEXT)) {
      while ((character = hdl_take_character(run, &v.as.text, false)).count)
        hdl_list_add(run, &items, &capacity, hdl_text_value(character));
    } else if (!hdl_is(v, HDL_IS_UNDEFINED)) {
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s has no items,", hdl_kind_name(v));
    }
    return items;
}

/* Moves past `count` characters. */
static void skip(hdl_chat_run *run, hdl_span *rest, int64_t count) {
    while (count-- > 0 && hdl_take_character(run, rest, false).count) continue;
}

static hdl_value loop_attribute(hdl_chat_run *run, hdl_loop *loop, hdl_span name) {
    static const char *const names[] = { "index", "index0", "first", "depth", "depth0", "previtem", "nextitem", "last",
                                         "length", "revindex", "revindex0" };
    size_t which = 0;
    while (which < 11 && !hdl_same(name, hdl_text(names[which]))) which++;
    const int64_t index = (int64_t)loop->index;
    if (which >= 6 && which < 11) hdl_loop_reaches(run, loop, which < 8 ? loop->index + 1 : SIZE_MAX);
    const int64_t length = (int64_t)loop->items.count;
    switch (which) {
    case 0: return hdl_number(index + 1);
    case 1: return hdl_number(index);
    case 2: return hdl_bool(index == 0);
    case 3: return hdl_number((int64_t)loop->depth + 1);
    case 4: return hdl_number((int64_t)loop->depth);
    case 5: return index > 0 ? loop->items.items[index - 1] : hdl_undefined(name);
    case 6: return index + 1 < length ? loop->items.items[index + 1] : hdl_undefined(name);
    case 7: return hdl_bool(index == length - 1);
    case 8: return hdl_number(length);
    case 9: return hdl_number(length - index);
    case 10: return hdl_number(length - index - 1);
    default: return hdl_undefined(name);
    }
}

hdl_value hdl_attribute(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_span name) {
    char shown[HDL_QUOTE];
    if (hdl_is(v, HDL_IS_UNDEFINED))
        hdl_chat_fail(run, HD_STATUS_PARSE, at, "%s is undefined,", hdl_quote(v.as.text, shown));
    if (hdl_has_method(v, name)) return (hdl_value){ .kind = HDL_IS_METHOD, .as.text = name };
    if (hdl_is(v, HDL_IS_LOOP)) return loop_attribute(run, v.as.loop, name);
    const hdl_value *found =
        hdl_is(v, HDL_IS_MAP) || hdl_is(v, HDL_IS_NAMESPACE) ? hdl_map_get(run, v.as.map, hdl_text_value(name)) : NULL;
    return found ? *found : hdl_undefined(name);
}

hdl_value hdl_item(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_value key) {
    const hdl_value none = hdl_undefined(hdl_is(key, HDL_IS_TEXT) ? key.as.text : hdl_text("the item"));
    const hdl_value *found = hdl_is(v, HDL_IS_MAP) && hdl_hashable(run, key) ? hdl_map_get(run, v.as.map, key) : NULL;
    if (found) return *found;
    if (hdl_is(key, HDL_IS_TEXT)) return hdl_attribute(run, at, v, key.as.text);
    if (hdl_is(v, HDL_IS_UNDEFINED)) return hdl_attribute(run, at, v, none.as.text);
    if (!hdl_is_number(key) || !(hdl_is_list(v) || hdl_is(v, HDL_IS_RANGE) || hdl_is(v, HDL_IS_TEXT))) return none;
    const int64_t length = hdl_length(run, at, v);
    int64_t index = key.as.number;
    if (index < 0 && index >= -length) index += length;
    if (index < 0 || index >= length) return none;
    if (!hdl_is(v, HDL_IS_TEXT)) return v.as.list->items[index];
    skip(run, &v.as.text, index);
    return hdl_text_value(hdl_take_character(run, &v.as.text, false));
}

/* A slice's border as Python puts it into 0 .. length, or -1 .. length-1 going back. */
static int64_t border(const int64_t *given, int64_t fallback, int64_t length, bool back) {
    if (!given) return fallback;
    int64_t at = *given;
    if (at < 0) at = at < -length ? (back ? -1 : 0) : at + length;
    if (at >= length) at = back ? length - 1 : length;
    return at;
}

hdl_value hdl_slice(hdl_chat_run *run, uint32_t at, hdl_value v, const int64_t *start, const int64_t *stop,
                    const int64_t *step) {
    const int64_t by = step ? *step : 1;
    if (by == 0) hdl_chat_fail(run, HD_STATUS_PARSE, at, "a slice with step 0");
    if (hdl_is(v, HDL_IS_UNDEFINED)) hdl_attribute(run, at, v, v.as.text);
    else if (!hdl_is_list(v) && !hdl_is(v, HDL_IS_RANGE) && !hdl_is(v, HDL_IS_TEXT))
        hdl_chat_unsupported(run, at, "a slice of", hdl_text(hdl_kind_name(v)));
    if (hdl_chat_stopped(run)) return hdl_none();
    const int64_t length = hdl_length(run, at, v);
    const int64_t from = border(start, by > 0 ? 0 : length - 1, length, by < 0),
                  to = border(stop, by > 0 ? length : -1, length, by < 0);
    if (hdl_is(v, HDL_IS_TEXT) && by == 1) {
        hdl_span text = v.as.text;
        skip(run, &text, from);
        hdl_span rest = text;
        skip(run, &rest, to - from);
        return hdl_text_value(hdl_cut(text, 0, text.count - rest.count));
    }
    const hdl_list all = hdl_items(run, at, v);
    uint64_t count = 0;
    if (by > 0 && from < to) count = (uint64_t)(to - from - 1) / (uint64_t)by + 1;
    if (by < 0 && from > to) count = (uint64_t)(from - to - 1) / (0 - (uint64_t)by) + 1;
    const hdl_value list = hdl_list_value(run, hdl_is(v, HDL_IS_TEXT) ? HDL_IS_LIST : v.kind, (size_t)count);
    if (hdl_chat_stopped(run)) return hdl_none();
    for (uint64_t i = 0; i < count; i++) list.as.list->items[i] = all.items[(uint64_t)from + i * (uint64_t)by];
    return hdl_is(v, HDL_IS_TEXT) ? hdl_text_value(hdl_joined(run, hdl_text(""), list.as.list)) : list;
}
