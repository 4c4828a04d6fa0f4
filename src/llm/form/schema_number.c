/* schema_number.c: numbers as a schema bounds them. A bounded number is written as a decimal without exponent, with at
 * most a fixed number of digits behind the point, so that bounds are whole numbers of units of its last digit. Bounds
 * and digits together have at most 15 places: two such decimals are two doubles, and who reads the answer as a double
 * finds it within open bounds too. */
#include "llm/form/schema.h"

enum { MOST_PLACES = 15 };
#define MOST_WHOLE INT64_C(1000000000000000) /* 10^MOST_PLACES */

/* A bound in units of 10^-places: the whole number at or below it, or above it with `up`, and whether it is whole; cut
 * to MOST_WHOLE + 1. */
static int64_t units_of(hdl_span text, int places, bool up, bool *out_whole) {
    int64_t value = 0, power = places, sign = 1;
    bool whole = true, behind = false, large = false;
    const bool negative = text.count && text.bytes[0] == '-';
    uint64_t i = negative ? 1 : 0;
    for (; i < text.count && text.bytes[i] != 'e' && text.bytes[i] != 'E'; i++) {
        if (text.bytes[i] == '.') {
            behind = true;
        } else if (value < MOST_WHOLE) {
            value = value * 10 + (text.bytes[i] - '0');
            power -= behind;
        } else {
            whole = whole && text.bytes[i] == '0';
            power += !behind;
        }
    }
    if (++i < text.count && (text.bytes[i] == '-' || text.bytes[i] == '+')) sign = text.bytes[i++] == '-' ? -1 : 1;
    int64_t written = 0;
    for (; i < text.count && written < 100000; i++) written = written * 10 + (text.bytes[i] - '0');
    power += sign * written;
    for (; power > 0 && value && !large; power--) {
        large = value > MOST_WHOLE;
        if (!large) value *= 10;
    }
    for (; power < 0 && value; power++) {
        whole = whole && value % 10 == 0;
        value /= 10;
    }
    if (value > MOST_WHOLE) value = MOST_WHOLE + 1;
    if (negative) value = -value;
    if (!whole && up && !negative) value++;
    if (!whole && !up && negative) value--;
    *out_whole = whole;
    return value;
}

/* What a schema says of a number: least .. most, in units of 10^-places; MOST_WHOLE and more is no bound. */
typedef struct bounds {
    int64_t least, most;
    int     places;
} bounds;

static const struct { const char *name; bool is_least, is_open;
} keywords[] = {
    { "minimum", true, false }, { "exclusiveMinimum", true, true },
    { "maximum", false, false }, { "exclusiveMaximum", false, true },
};
enum { KEYWORDS = sizeof keywords / sizeof keywords[0] };

static int write_digits(int64_t value, int at_least, char out[24]) {
    char turned[24];
    int count = 0;
    do turned[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count < at_least) turned[count++] = '0';
    for (int i = 0; i < count; i++) out[i] = turned[count - 1 - i];
    return count;
}

/* Digits behind the point that the bounds' whole parts leave; false, and refused, where one is no number. */
static bool count_places(hdl_schema_work *w, uint32_t schema, int *out_places) {
    *out_places = 0;
    char digits[24];
    int longest = 1;
    for (size_t i = 0; i < KEYWORDS; i++) {
        const uint32_t value = hdl_schema_get(w, schema, keywords[i].name);
        bool whole;
        if (!value) continue;
        if (w->json.values[value].kind != HDL_JSON_NUMBER)
            return hdl_schema_refuse(w, "this is no number: ", keywords[i].name);
        const int64_t found = units_of(w->json.values[value].text, 0, false, &whole);
        const int count = write_digits(found < 0 ? -found : found, 1, digits);
        longest = count > longest ? count : longest;
    }
    *out_places = longest < MOST_PLACES ? MOST_PLACES - longest : 0;
    return true;
}

static void read_bounds(const hdl_schema_work *w, uint32_t schema, bounds *b) {
    b->least = -MOST_WHOLE - 1;
    b->most = MOST_WHOLE + 1;
    for (size_t i = 0; i < KEYWORDS; i++) {
        const uint32_t value = hdl_schema_get(w, schema, keywords[i].name);
        const bool up = keywords[i].is_least;
        bool whole;
        if (!value) continue;
        int64_t found = units_of(w->json.values[value].text, b->places, up, &whole);
        if (keywords[i].is_open && whole) found += up ? 1 : -1;
        if (up && found > b->least) b->least = found;
        if (!up && found < b->most) b->most = found;
    }
}

/* ---- digits between two numbers ---- */

/* A digit and what follows it, `left` in all, between the digits at low and at high; an edge that is free is NULL, and
 * one is not. `shorter`: digits behind the point, of which those may be left out that are zeros. */
static bool say_next(hdl_schema_work *w, const char *low, const char *high, int left, bool shorter);

static bool are_zeros(const char *digits, int count) {
    for (int i = 0; digits && i < count; i++)
        if (digits[i] != '0') return false;
    return true;
}

static bool say_rest(hdl_schema_work *w, const char *low, const char *high, int left, bool shorter) {
    if (left == 0) return hdl_schema_say(w, "\"\" ");
    if (!low && !high) return hdl_schema_say(w, "[0-9]{%d,%d} ", shorter ? 0 : left, left);
    return hdl_schema_say(w, "(") && say_next(w, low, high, left, shorter) &&
           hdl_schema_say(w, shorter && are_zeros(low, left) ? ")? " : ") ");
}

static bool say_next(hdl_schema_work *w, const char *low, const char *high, int left, bool shorter) {
    const char a = low ? *low : '0', b = high ? *high : '9';
    const char *low_rest = low ? low + 1 : NULL, *high_rest = high ? high + 1 : NULL;
    if (low && high && a == b)
        return hdl_schema_say(w, "\"%c\" ", a) && say_rest(w, low_rest, high_rest, left - 1, shorter);
    const char first = low ? (char)(a + 1) : a, last = high ? (char)(b - 1) : b;
    bool ok = !low || (hdl_schema_say(w, "\"%c\" ", a) && say_rest(w, low_rest, NULL, left - 1, shorter));
    if (low && (first <= last || high)) ok = ok && hdl_schema_say(w, "| ");
    if (first <= last)
        ok = ok && hdl_schema_say(w, "[%c-%c] ", first, last) && say_rest(w, NULL, NULL, left - 1, shorter);
    if (high && first <= last) ok = ok && hdl_schema_say(w, "| ");
    if (high) ok = ok && hdl_schema_say(w, "\"%c\" ", b) && say_rest(w, NULL, high_rest, left - 1, shorter);
    return ok;
}

/* Whole numbers low .. high, 0 <= low <= high: of each length a choice. */
static bool say_range(hdl_schema_work *w, int64_t low, int64_t high) {
    int64_t end = 9;
    for (bool first = true; low <= high; first = false) {
        char a[24], b[24];
        while (end < low) end = end * 10 + 9;
        const int64_t last = end < high ? end : high;
        const int count = write_digits(low, 1, a);
        write_digits(last, 1, b);
        if (!hdl_schema_say(w, first ? "" : "| ") || !say_rest(w, a, b, count, false)) return false;
        low = last + 1;
    }
    return true;
}

/* The point and digits behind it, between those at low and at high (NULL: free). */
static bool say_fraction(hdl_schema_work *w, const char *low, const char *high, int places) {
    if (places == 0) return true;
    if (!low && !high) return hdl_schema_say(w, "(\".\" [0-9]{1,%d})? ", places);
    return hdl_schema_say(w, "(\".\" (") && say_next(w, low, high, places, true) &&
           hdl_schema_say(w, are_zeros(low, places) ? "))? " : ")) ");
}

/* Numbers low .. high in units of 10^-places, 0 <= low <= high: those of low's whole part, between, of high's. */
static bool say_decimals(hdl_schema_work *w, int64_t low, int64_t high, int places) {
    char low_digits[24], high_digits[24];
    int64_t unit = 1;
    for (int i = 0; i < places; i++) unit *= 10;
    const bool endless = high > MOST_WHOLE;
    const int64_t from = low / unit, to = endless ? MOST_WHOLE : high / unit;
    const int64_t behind_from = low % unit, behind_to = endless ? unit - 1 : high % unit;
    write_digits(behind_from, places, low_digits);
    write_digits(behind_to, places, high_digits);
    if (from == to)
        return say_range(w, from, from) && say_fraction(w, low_digits, endless ? NULL : high_digits, places);
    const int64_t first = from + (behind_from != 0), last = to - (behind_to != unit - 1);
    bool ok = true, begun = first > from;
    if (begun) ok = say_range(w, from, from) && say_fraction(w, low_digits, NULL, places);
    if (first <= last) {
        ok = ok && hdl_schema_say(w, begun ? "| (" : "(") && say_range(w, first, last) && hdl_schema_say(w, ") ") &&
             say_fraction(w, NULL, NULL, places);
        begun = true;
    }
    if (last < to)
        ok = ok && hdl_schema_say(w, begun ? "| " : "") && say_range(w, to, to) &&
             say_fraction(w, NULL, high_digits, places);
    return ok;
}

bool hdl_schema_number(hdl_schema_work *w, uint32_t schema, bool fractions) {
    const char *name = fractions ? "number" : "integer";
    bounds b;
    if (!count_places(w, schema, &b.places)) return false;
    if (!fractions) b.places = 0;
    read_bounds(w, schema, &b);
    if (b.least < -MOST_WHOLE && b.most > MOST_WHOLE) return hdl_schema_say(w, "%s", name);
    if (b.least > MOST_WHOLE || b.most < -MOST_WHOLE)
        return hdl_schema_refuse(w, "bounds above 10^15 are not known for this type: ", name);
    if (b.least > b.most) return hdl_schema_say(w, "[]");
    if (b.least < 0 && (!hdl_schema_say(w, "\"-\" (") ||
                        !say_decimals(w, b.most < 0 ? -b.most : 1, -b.least, b.places) || !hdl_schema_say(w, ") ")))
        return false;
    if (b.least < 0 && b.most >= 0 && !hdl_schema_say(w, "| ")) return false;
    return b.most < 0 || say_decimals(w, b.least > 0 ? b.least : 0, b.most, b.places);
}
