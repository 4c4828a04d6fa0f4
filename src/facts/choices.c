/* choices.c: the table of choices, its classes, and both as text. Pure. */
#include "facts/choices.h"
#include <stdio.h>

enum { FINE_ROWS = 4, MOST_CLASS = 63 };
#define MOST_GAIN 1e6f

static const char *const names[] = {
#define NAME(code, name, text) name,
    HDI_CLASS_LIST(NAME)
#undef NAME
};

/* ---- classes ---- */

static bool is_product(uint32_t kind) {
    return kind == HDI_CLASS_MATVEC || kind == HDI_CLASS_MERGED || kind == HDI_CLASS_MATMUL;
}

hdi_class hdi_class_of(hdi_class_kind kind, hd_dtype type, uint64_t rows, uint64_t size) {
    uint8_t r = 0, s = 0;
    while (r < MOST_CLASS && (UINT64_C(1) << r) < rows) r++;
    while (s < 31 && size >> 2 * (s + 1) > 0) s++;
    if (r > FINE_ROWS && !is_product(kind)) r = (uint8_t)(r + r % 2);
    return (hdi_class){ (uint8_t)kind, (uint8_t)type, r, s };
}

bool hdi_class_equal(hdi_class a, hdi_class b) {
    return a.kind == b.kind && a.type == b.type && a.rows == b.rows && a.size == b.size;
}

char *hdi_class_text(hdi_class c, char out[HDI_CLASS_TEXT]) {
    const uint32_t below = c.rows > FINE_ROWS && !is_product(c.kind) ? 2 : 1, most = HDI_MIN(c.rows, MOST_CLASS);
    const uint64_t last = UINT64_C(1) << most, first = most < below ? 1 : (last >> below) + 1;
    char rows[48];
    if (first >= last) snprintf(rows, sizeof rows, "%llu", (unsigned long long)last);
    else snprintf(rows, sizeof rows, "%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    snprintf(out, HDI_CLASS_TEXT, "%s %s, rows %s, size 2^%u-2^%u", c.kind < HDI_COUNT(names) ? names[c.kind] : "?",
             hd_dtype_name((hd_dtype)c.type), rows, 2u * c.size, 2u * c.size + 2);
    return out;
}

/* ---- the table ---- */

static bool covers(uint8_t chosen, uint8_t asked) { return chosen == HDI_CLASS_ANY || chosen == asked; }

uint32_t hdi_choices_find(const hdi_choices *choices, hdi_class of) {
    for (uint32_t i = 0; i < choices->count && i < HDI_CHOICES; i++) {
        const hdi_class chosen = choices->items[i].of;
        if (chosen.kind == of.kind && covers(chosen.type, of.type) && covers(chosen.rows, of.rows) &&
            covers(chosen.size, of.size))
            return choices->items[i].option;
    }
    return 0;
}

void hdi_choices_remove(hdi_choices *choices, hdi_class of) {
    for (uint32_t i = 0; i < choices->count; i++) {
        if (!hdi_class_equal(choices->items[i].of, of)) continue;
        memmove(&choices->items[i], &choices->items[i + 1], (choices->count - i - 1) * sizeof choices->items[0]);
        choices->count--;
        return;
    }
}

bool hdi_choices_put(hdi_choices *choices, const hdi_choice *choice) {
    for (uint32_t i = 0; i < choices->count; i++)
        if (hdi_class_equal(choices->items[i].of, choice->of)) {
            choices->items[i] = *choice;
            return true;
        }
    if (choices->count == HDI_CHOICES) return false;
    choices->items[choices->count++] = *choice;
    return true;
}

/* ---- text ---- */

void hdi_choices_print(const hdi_choices *choices, hdi_text *out) {
    if (choices->table) hdi_text_add(out, "options %u\n", choices->table);
    for (uint32_t i = 0; i < choices->count; i++) {
        const hdi_choice *choice = &choices->items[i];
        char gain[32];
        if (choice->of.kind >= HDI_COUNT(names)) continue;
        hdi_float_text(choice->gain, gain);
        hdi_text_add(out, "choice %s %s rows %u size %u option %u gain %s\n", names[choice->of.kind],
                     hd_dtype_name((hd_dtype)choice->of.type), choice->of.rows, choice->of.size, choice->option, gain);
    }
}

/* A whole number up to `most`. */
static bool read_number(hdi_span word, uint32_t most, uint32_t *out) {
    uint64_t value = 0;
    for (const char *at = word.at; at < word.end && value <= most; at++) {
        if (*at < '0' || *at > '9') return false;
        value = 10 * value + (uint64_t)(*at - '0');
    }
    *out = (uint32_t)value;
    return word.at < word.end && value <= most;
}

/* "rows 3". */
static bool read_named(hdi_span *rest, const char *name, uint32_t most, uint32_t *out) {
    return hdi_word_is(hdi_word_next(rest), name) && read_number(hdi_word_next(rest), most, out);
}

static bool read_choice(hdi_span *rest, hdi_choice *out) {
    const hdi_span kind = hdi_word_next(rest), type = hdi_word_next(rest);
    uint32_t rows, size;
    *out = (hdi_choice){ .of = { .kind = HDI_CLASS_KINDS, .type = HD_DTYPE_NONE } };
    for (uint8_t i = 0; i < HDI_COUNT(names); i++)
        if (hdi_word_is(kind, names[i])) out->of.kind = i;
    for (uint8_t i = HD_DTYPE_NONE + 1; i < HD_DTYPE_COUNT; i++)
        if (hdi_word_is(type, hd_dtype_name((hd_dtype)i))) out->of.type = i;
    if (out->of.kind == HDI_CLASS_KINDS || out->of.type == HD_DTYPE_NONE) return false;
    if (!read_named(rest, "rows", MOST_CLASS, &rows) || !read_named(rest, "size", MOST_CLASS, &size)) return false;
    out->of.rows = (uint8_t)rows;
    out->of.size = (uint8_t)size;
    if (!read_named(rest, "option", UINT16_MAX, &out->option) || !hdi_word_is(hdi_word_next(rest), "gain"))
        return false;
    const hdi_span gain = hdi_word_next(rest);
    return gain.at < gain.end && hdi_float_read(gain.at, (size_t)(gain.end - gain.at), &out->gain) && out->gain >= 1 &&
           out->gain <= MOST_GAIN && out->option > 0;
}

bool hdi_choices_read(const char *line, size_t bytes, hdi_choices *choices) {
    hdi_span rest = { line, line + bytes };
    hdi_choice choice;
    uint32_t table = 0;
    const bool of_table = hdi_word_is(hdi_word_next(&rest), "options");
    if (of_table ? !read_number(hdi_word_next(&rest), UINT32_MAX, &table) : !read_choice(&rest, &choice)) return false;
    const hdi_span behind = hdi_word_next(&rest);
    if (behind.at < behind.end || (of_table && (table == 0 || choices->table))) return false;
    if (!of_table) return hdi_choices_put(choices, &choice);
    choices->table = table;
    return true;
}
