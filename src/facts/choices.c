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

static bool is_product(uint32_t family) { return family == HDI_CLASS_MATVEC || family == HDI_CLASS_MERGED || family == HDI_CLASS_MATMUL; }

hdi_class hdi_class_of(hdi_class_family family, hd_dtype type, uint64_t rows, uint64_t size) {
    uint8_t r = 0, s = 0;
    while (r < MOST_CLASS && (UINT64_C(1) << r) < rows) r++;
    while (s < 31 && size >> 2 * (s + 1) > 0) s++;
    if (r > FINE_ROWS && !is_product(family)) r = (uint8_t)(r + r % 2);
    return (hdi_class){ (uint8_t)family, (uint8_t)type, r, s };
}

bool hdi_class_equal(hdi_class a, hdi_class b) { return a.family == b.family && a.type == b.type && a.rows == b.rows && a.size == b.size; }

char *hdi_class_text(hdi_class c, char out[HDI_CLASS_TEXT]) {
    const uint32_t below = c.rows > FINE_ROWS && !is_product(c.family) ? 2 : 1, most = HDI_MIN(c.rows, MOST_CLASS);
    const uint64_t last = UINT64_C(1) << most, first = most < below ? 1 : (last >> below) + 1;
    char rows[48];
    if (first >= last) snprintf(rows, sizeof rows, "%llu", (unsigned long long)last);
    else snprintf(rows, sizeof rows, "%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    snprintf(out, HDI_CLASS_TEXT, "%s %s, rows %s, size 2^%u-2^%u", c.family < HDI_COUNT(names) ? names[c.family] : "?", hd_dtype_name((hd_dtype)c.type), rows,
             2u * c.size, 2u * c.size + 2);
    return out;
}

/* ---- the table ---- */

static bool covers(uint8_t chosen, uint8_t asked) { return chosen == HDI_CLASS_ANY || chosen == asked; }

const char *hdi_choices_find(const hdi_choices *choices, hdi_class of) {
    for (uint32_t i = 0; i < choices->count && i < HDI_CHOICES; i++) {
        const hdi_choice *choice = &choices->items[i];
        if (choice->of.family == of.family && covers(choice->of.type, of.type) && covers(choice->of.rows, of.rows) && covers(choice->of.size, of.size)) return choice->option;
    }
    return NULL;
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

uint64_t hdi_choices_hash(const hdi_choices *choices) {
    uint64_t hash = HDI_HASH_START;
    for (uint32_t i = 0; i < choices->count; i++) {
        hash = hdi_hash(hash, &choices->items[i].of, sizeof choices->items[i].of);
        hash = hdi_hash(hash, choices->items[i].option, strlen(choices->items[i].option) + 1);
    }
    return hash;
}

/* ---- text ---- */

void hdi_choices_print(const hdi_choices *choices, hdi_text *out) {
    for (uint32_t i = 0; i < choices->count; i++) {
        const hdi_choice *choice = &choices->items[i];
        char gain[32];
        if (choice->of.family >= HDI_COUNT(names)) continue;
        hdi_float_text(choice->gain, gain);
        hdi_text_add(out, "choice %s %s rows %u size %u option %s gain %s\n", names[choice->of.family], hd_dtype_name((hd_dtype)choice->of.type), choice->of.rows,
                     choice->of.size, choice->option, gain);
    }
}

/* "rows 3". */
static bool read_class(hdi_span *rest, const char *name, uint8_t *out) {
    uint32_t value = 0;
    if (!hdi_word_is(hdi_word_next(rest), name)) return false;
    const hdi_span digits = hdi_word_next(rest);
    if (digits.at == digits.end || digits.end - digits.at > 2) return false;
    for (const char *at = digits.at; at < digits.end; at++) {
        if (*at < '0' || *at > '9') return false;
        value = 10 * value + (uint32_t)(*at - '0');
    }
    *out = (uint8_t)value;
    return value <= MOST_CLASS;
}

static bool read_option(hdi_span word, char out[HDI_OPTION_NAME]) {
    const size_t bytes = (size_t)(word.end - word.at);
    if (bytes == 0 || bytes >= HDI_OPTION_NAME) return false;
    for (size_t i = 0; i < bytes; i++)
        if (!(word.at[i] >= 'a' && word.at[i] <= 'z') && !(word.at[i] >= '0' && word.at[i] <= '9') && word.at[i] != '_') return false;
    memcpy(out, word.at, bytes);
    out[bytes] = 0;
    return true;
}

bool hdi_choices_read(const char *line, size_t bytes, hdi_choices *choices) {
    hdi_span rest = { line, line + bytes };
    hdi_choice choice = { .of = { .family = HDI_CLASS_FAMILIES, .type = HD_DTYPE_NONE } };
    const hdi_span family = hdi_word_next(&rest), type = hdi_word_next(&rest);
    for (uint8_t i = 0; i < HDI_COUNT(names); i++)
        if (hdi_word_is(family, names[i])) choice.of.family = i;
    for (uint8_t i = HD_DTYPE_NONE + 1; i < HD_DTYPE_COUNT; i++)
        if (hdi_word_is(type, hd_dtype_name((hd_dtype)i))) choice.of.type = i;
    if (choice.of.family == HDI_CLASS_FAMILIES || choice.of.type == HD_DTYPE_NONE) return false;
    if (!read_class(&rest, "rows", &choice.of.rows) || !read_class(&rest, "size", &choice.of.size)) return false;
    if (!hdi_word_is(hdi_word_next(&rest), "option") || !read_option(hdi_word_next(&rest), choice.option) || !hdi_word_is(hdi_word_next(&rest), "gain")) return false;
    const hdi_span gain = hdi_word_next(&rest), behind = hdi_word_next(&rest);
    if (gain.at == gain.end || behind.at < behind.end || !hdi_float_read(gain.at, (size_t)(gain.end - gain.at), &choice.gain)) return false;
    return choice.gain >= 1 && choice.gain <= MOST_GAIN && hdi_choices_put(choices, &choice);
}
