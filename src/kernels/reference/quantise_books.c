/* quantise_books.c: blocks whose values are entries of a code book. For each group of values every entry is compared:
 * at a scale s the weighted square of the error is, but for what no entry changes, s * (s * a - b), where a and b are
 * sums over the group that no scale changes. So these are made once, and many scales are tried. Scales of parts are
 * sought by turns with the entries that fit them; then the block's scale, the parts' codes for it and the entries
 * again. */
#include "kernels/cpu/books.h"
#include "kernels/reference/quantise.h"
#include <float.h>

/* Clones for wider vectors, where the compiler chooses between such at run time; their sums are the same. */
#if defined(__x86_64__) && defined(__linux__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#  define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#  define WIDE
#endif

enum { BLOCK = 256, MOST_ENTRIES = 2048, MOST_GROUPS = 8, ROOM = 8192, PARTS = 16 };

/* Which signs a type's values have, and what else it chooses. */
typedef enum choice {
    ANY_SIGNS,   /* a bit each */
    EVEN_SIGNS,  /* of 8 values an even number is negative */
    PART_MORE,   /* entries have signs; all values are an eighth more, or less, in a part, */
    GROUP_MORE   /* or in a group */
} choice;

typedef struct form {
    int    entries, book; /* number 0 is hdi_books[book] */
    int    width, part;   /* values of an entry, of a scale */
    int    last_scale;    /* codes of scales are 0 .. this, for odd numbers from 1 on */
    int    bytes;
    choice choice;
    float  largest;       /* number of the book */
} form;

static const form *form_of(hd_dtype dtype) {
    static const struct { hd_dtype dtype; form form; } rows[] = {
        { HD_IQ2_XXS, { 256, HDI_BOOK_IQ2_XXS, 8, 32, 15, 66, EVEN_SIGNS, 43 } },
        { HD_IQ2_XS, { 512, HDI_BOOK_IQ2_XS, 8, 16, 15, 74, EVEN_SIGNS, 43 } },
        { HD_IQ2_S, { 1024, HDI_BOOK_IQ2_S, 8, 16, 15, 82, ANY_SIGNS, 43 } },
        { HD_IQ3_XXS, { 256, HDI_BOOK_IQ3_XXS, 4, 32, 15, 98, EVEN_SIGNS, 62 } },
        { HD_IQ3_S, { 512, HDI_BOOK_IQ3_S, 4, 32, 15, 110, ANY_SIGNS, 15 } },
        { HD_IQ1_S, { 2048, HDI_BOOK_IQ1, 8, 32, 7, 50, PART_MORE, 9 } },
        { HD_IQ1_M, { 2048, HDI_BOOK_IQ1, 8, 16, 7, 56, GROUP_MORE, 9 } },
    };
    size_t i = 0;
    while (rows[i].dtype != dtype) i++; /* there is a row for each of them */
    return &rows[i].form;
}
static bool has_more(const form *f) { return f->choice == PART_MORE || f->choice == GROUP_MORE; }

/* ---- sums over groups ---- */

/* A type's book, number i of entry e at i * entries + e, and the sums of one part's groups: of each group and entry. */
typedef struct room {
    float levels[8 * MOST_ENTRIES];
    float a[ROOM], b[ROOM], other[ROOM]; /* other: b with the cheapest sign turned; of has_more what more adds to a */
    float size[MOST_GROUPS], cross[MOST_GROUPS]; /* of has_more: what an entry of zeros has for a and b */
} room;

static void fill_levels(const form *f, float *out) {
    for (int e = 0; e < f->entries; e++)
        for (int i = 0; i < f->width; i++) {
            const int at = f->book + e;
            if (f->width == 4) out[i * f->entries + e] = (float)(hdi_book_fours[at - HDI_BOOK_IQ3_XXS] >> 8 * i & 255);
            else if (!has_more(f)) out[i * f->entries + e] = (float)(hdi_book_eights[at] >> 8 * i & 255);
            else out[i * f->entries + e] =
                     (float)((int)(hdi_book_eights[at - HDI_BOOK_IQ1 + HDI_BOOK_IQ3_XXS] >> 8 * i & 255) - 136);
        }
}

/* What is summed beside a and b. */
typedef enum beside { NOTHING, TURNED, MORE } beside;

/* xw: weights times values, or times their sizes. */
static inline __attribute__((always_inline)) void sum_entries(const float *levels, int entries, int width,
                                                              const float *xw, const float *weights, beside what,
                                                              room *restrict r, int at) {
    float *restrict a = r->a + at, *restrict b = r->b + at, *restrict other = r->other + at;
    for (int e = 0; e < entries; e++) {
        float square = 0, cross = 0, sum = 0, smallest = FLT_MAX;
        for (int i = 0; i < width; i++) {
            const float level = levels[i * entries + e], product = xw[i] * level, weighted = weights[i] * level;
            square += weighted * level;
            cross += product;
            if (what == MORE) sum += weighted;
            if (what == TURNED) smallest = product < smallest ? product : smallest;
        }
        a[e] = square;
        b[e] = 2 * cross;
        if (what == TURNED) other[e] = 2 * cross - 4 * smallest;
        if (what == MORE) other[e] = 2 * sum;
    }
}
#define SUM(width)                                                                                                     \
    WIDE static void sum_##width(int entries, const float *xw, const float *weights, beside what, room *restrict r,    \
                                 int at) {                                                                             \
        if (what == NOTHING) sum_entries(r->levels, entries, width, xw, weights, NOTHING, r, at);                      \
        else if (what == TURNED) sum_entries(r->levels, entries, width, xw, weights, TURNED, r, at);                   \
        else sum_entries(r->levels, entries, width, xw, weights, MORE, r, at);                                         \
    }
SUM(4)
SUM(8)
#undef SUM

/* Is an odd number of the 8 values around group g negative, of a type in which that may not be? */
static bool is_odd(const form *f, const float *x, int g) {
    int minus = 0;
    const float *eight = x + g * f->width / 8 * 8;
    for (int i = 0; i < 8 && f->choice == EVEN_SIGNS; i++) minus += eight[i] < 0;
    return minus % 2;
}

static void sum_part(const form *f, const float *x, const float *weights, room *r) {
    for (int g = 0; g < f->part / f->width; g++) {
        const float *own = weights + g * f->width;
        float xw[8];
        r->size[g] = r->cross[g] = 0;
        for (int i = 0; i < f->width; i++) {
            const float value = x[g * f->width + i];
            xw[i] = own[i] * (has_more(f) ? value : fabsf(value));
            r->size[g] += own[i];
            r->cross[g] += 2 * xw[i];
        }
        const beside what = has_more(f) ? MORE : is_odd(f, x, g) ? TURNED : NOTHING;
        (f->width == 8 ? sum_8 : sum_4)(f->entries, xw, own, what, r, g * f->entries);
    }
}

/* ---- the best entries at a scale ---- */

/* The entry of the greatest b - s * a. It is sought as the bits of that number, turned so that they ascend with it,
 * with the last ones giving way to the entry's number: as whole numbers many are compared at once. */
static inline __attribute__((always_inline)) int32_t key_of(float gain, int entry, int mask) {
    int32_t bits;
    memcpy(&bits, &gain, sizeof bits);
    bits ^= bits < 0 ? INT32_MAX : 0;
    return (bits & ~mask) | entry;
}
WIDE static int best_of(const float *restrict a, const float *restrict b, int count, float s) {
    int32_t best = INT32_MIN;
    for (int e = 0; e < count; e++) {
        const int32_t key = key_of(b[e] - s * a[e], e, count - 1);
        best = key > best ? key : best;
    }
    return best & (count - 1);
}
/* The same of b - s * (a + other), and of b - s * (a - other). */
typedef struct two { int more, less; } two;
WIDE static two best_of_both(const float *restrict a, const float *restrict b, const float *restrict other, int count,
                             float s) {
    int32_t more = INT32_MIN, less = INT32_MIN;
    for (int e = 0; e < count; e++) {
        const float gain = b[e] - s * a[e], own = s * other[e];
        const int32_t more_key = key_of(gain - own, e, count - 1), less_key = key_of(gain + own, e, count - 1);
        more = more_key > more ? more_key : more;
        less = less_key > less ? less_key : less;
    }
    return (two){ more & (count - 1), less & (count - 1) };
}

/* What was chosen for a part at a scale: of each group an entry, and whether the other way: a sign turned, or less in
 * place of more. The error at scale s with these is, but for what no choice changes, s * (s * a - b). */
typedef struct chosen {
    int   entries[MOST_GROUPS];
    bool  other[MOST_GROUPS];
    float a, b, value;
} chosen;

/* An entry of group g, or the other way: its a and b, and the error that it leaves. */
typedef struct found {
    int   entry;
    float a, b, value;
} found;

static found with(const form *f, const room *r, int g, bool other, float s, int entry) {
    const int at = g * f->entries + entry;
    const float more = other ? -1 : 1;
    found one = { .entry = entry, .a = r->a[at], .b = other && !has_more(f) ? r->other[at] : r->b[at] };
    if (has_more(f)) {
        one.a += more * r->other[at] + r->size[g];
        one.b += more * r->cross[g];
    }
    one.value = s * (s * one.a - one.b);
    return one;
}

static found look(const form *f, const room *r, int g, bool other, float s) {
    const int at = g * f->entries;
    return with(f, r, g, other, s, best_of(r->a + at, (other ? r->other : r->b) + at, f->entries, s));
}

static void take(int g, bool other, found best, chosen *out) {
    out->entries[g] = best.entry;
    out->other[g] = other;
    out->a += best.a;
    out->b += best.b;
    out->value += best.value;
}

/* Entries that have signs, with more or less. */
static void choose_more(const form *f, const room *r, float s, chosen *out) {
    const int groups = f->part / f->width;
    found more[MOST_GROUPS], less[MOST_GROUPS];
    float all_more = 0, all_less = 0;
    for (int g = 0; g < groups; g++) {
        const int at = g * f->entries;
        const two entries = best_of_both(r->a + at, r->b + at, r->other + at, f->entries, s);
        more[g] = with(f, r, g, false, s, entries.more);
        less[g] = with(f, r, g, true, s, entries.less);
        all_more += more[g].value;
        all_less += less[g].value;
    }
    for (int g = 0; g < groups; g++) {
        const bool is_less = f->choice == PART_MORE ? all_less < all_more : less[g].value < more[g].value;
        take(g, is_less, is_less ? less[g] : more[g], out);
    }
}

static void choose(const form *f, const room *r, const float *x, float s, chosen *out) {
    *out = (chosen){ .value = 0 };
    if (has_more(f)) {
        choose_more(f, r, s, out);
        return;
    }
    for (int g = 0; g < f->part / f->width; g++) {
        const bool odd = is_odd(f, x, g);
        if (!odd || f->width == 8) {
            take(g, odd, look(f, r, g, odd, s), out);
            continue;
        }
        /* one of 8 signs is turned: in the half where it costs less */
        const found first = look(f, r, g, false, s), turned = look(f, r, g, true, s);
        const found second = look(f, r, g + 1, false, s), second_turned = look(f, r, g + 1, true, s);
        const bool in_second = first.value + second_turned.value < turned.value + second.value;
        take(g, !in_second, in_second ? first : turned, out);
        take(g + 1, in_second, in_second ? second_turned : second, out);
        g++;
    }
}

/* ---- a block ---- */

typedef struct block {
    float  d;                 /* what odd numbers of scales are taken times */
    int    scales[PARTS];
    chosen parts[PARTS];
} block;

/* The scale of a part for which its best entries fit best; *out_a is how much the error grows with its square. */
static float scale_of(const form *f, const room *r, const float *x, float *out_a) {
    static const float shares[] = { 0.5f, 0.62f, 0.74f, 0.86f, 0.98f, 1.1f, 1.25f };
    const float end = fabsf(quantise_largest(x, f->part)) / f->largest;
    float best = 0, scale = 0;
    *out_a = 0;
    if (!(end >= QUANTISE_TINY && end <= FLT_MAX)) return 0;
    for (int i = 0, turn = 0; turn < 3; i++) {
        chosen c;
        const bool first = i < (int)(sizeof shares / sizeof *shares);
        choose(f, r, x, first ? end * shares[i] : scale, &c);
        if (!first) turn++;
        if (!(c.a > 0 && c.b > 0 && c.b * c.b > best * c.a)) {
            if (first) continue;
            break;
        }
        best = c.b * c.b / c.a;
        scale = c.b / (2 * c.a);
        *out_a = c.a;
    }
    return scale;
}

static int code_of(const form *f, float scale, float d) {
    const float code = (scale / d - 1) * 0.5f;
    return code > 0 ? quantise_nearest(code < (float)f->last_scale ? code : (float)f->last_scale) : 0;
}

/* The d for which scales of parts can be kept with the least error. */
static float step_of(const form *f, const float *scales, const float *a) {
    const int parts = BLOCK / f->part;
    const float end = quantise_largest(scales, parts) / (float)(2 * f->last_scale + 1);
    float best = end;
    double error = HUGE_VAL;
    for (int step = -8; step <= 16 && end > 0; step++) {
        const float d = end * (1 + 0.025f * (float)step);
        double sum = 0;
        for (int p = 0; p < parts; p++) {
            const double off = (double)(d * (float)(2 * code_of(f, scales[p], d) + 1) - scales[p]);
            sum += (double)a[p] * off * off;
        }
        if (!(sum < error)) continue;
        error = sum;
        best = d;
    }
    return best;
}

/* Codes of scales next to those that fit, and entries for them; then d by least squares. */
static void fit_block(const form *f, const float *x, const float *weights, float unit, room *r, block *b) {
    double aa = 0, bb = 0;
    for (int p = 0; p < BLOCK / f->part; p++) {
        const int near = b->scales[p];
        b->parts[p].value = FLT_MAX;
        sum_part(f, x + p * f->part, weights + p * f->part, r);
        for (int code = near - 1; code <= near + 1; code++) {
            chosen c;
            if (code < 0 || code > f->last_scale) continue;
            choose(f, r, x + p * f->part, b->d * (float)(2 * code + 1), &c);
            if (!(c.value < b->parts[p].value)) continue;
            b->parts[p] = c;
            b->scales[p] = code;
        }
        const double odd = 2 * b->scales[p] + 1;
        aa += odd * odd * (double)b->parts[p].a;
        bb += odd * (double)b->parts[p].b;
    }
    if (aa > 0 && bb > 0) b->d = quantise_rounded((float)(bb / (2 * aa) / (double)unit)) * unit;
}

/* ---- as bytes ---- */

static void put_word(uint32_t word, int bytes, uint8_t *out) {
    for (int i = 0; i < bytes; i++) out[i] |= (uint8_t)(word >> 8 * i & 255);
}

/* Signs of 8 values, of which an even number is negative after turning the cheapest in each group that says so. */
static uint32_t signs_of(const form *f, const room *r, const float *x, const float *weights, const block *b,
                         int eighth) {
    uint32_t signs = 0;
    for (int i = 0; i < 8; i++) signs |= (uint32_t)(x[i] < 0) << i;
    for (int h = 0; h < 8 / f->width && f->choice == EVEN_SIGNS; h++) {
        const int group = eighth * (8 / f->width) + h, groups = f->part / f->width;
        const chosen *c = &b->parts[group / groups];
        int cheapest = 0;
        float least = FLT_MAX;
        if (!c->other[group % groups]) continue;
        for (int i = 0; i < f->width; i++) {
            const int at = h * f->width + i;
            const float cost = weights[at] * fabsf(x[at]) * r->levels[i * f->entries + c->entries[group % groups]];
            if (cost < least) least = cost, cheapest = at;
        }
        signs ^= 1u << cheapest;
    }
    return signs;
}

/* Entries, signs and whether less, of values 8 * eighth .. */
static void put_eighth(hd_dtype dtype, const int *entries, uint32_t signs, bool less, int eighth, uint8_t *out) {
    const int part = eighth / 4, l = eighth % 4;
    const uint32_t first = (uint32_t)entries[0], second = (uint32_t)entries[1];
    switch (dtype) {
    case HD_IQ2_XXS:
        out[2 + 8 * part + l] = (uint8_t)first;
        put_word((signs & 127) << 7 * l, 4, out + 6 + 8 * part);
        break;
    case HD_IQ2_XS: put_word(first | (signs & 127) << 9, 2, out + 2 + 2 * eighth); break;
    case HD_IQ2_S:
        out[2 + eighth] = (uint8_t)first;
        out[34 + eighth] = (uint8_t)signs;
        out[66 + part] |= (uint8_t)(first >> 8 << 2 * l);
        break;
    case HD_IQ3_XXS:
        put_word(first | second << 8, 2, out + 2 + 2 * eighth);
        put_word((signs & 127) << 7 * l, 4, out + 66 + 4 * part);
        break;
    case HD_IQ3_S:
        put_word((first & 255) | (second & 255) << 8, 2, out + 2 + 2 * eighth);
        out[66 + part] |= (uint8_t)((first >> 8 | second >> 8 << 1) << 2 * l);
        out[74 + eighth] = (uint8_t)signs;
        break;
    case HD_IQ1_S:
        out[2 + eighth] = (uint8_t)first;
        put_word(first >> 8 << 3 * l | (uint32_t)less << 15, 2, out + 34 + 2 * part);
        break;
    default: /* iq1_m */
        out[eighth] = (uint8_t)first;
        out[32 + eighth / 2] |= (uint8_t)((first >> 8 | (uint32_t)less << 3) << 4 * (eighth % 2));
    }
}

/* The code of a part's scale. */
static void put_scale(hd_dtype dtype, uint32_t code, int part, uint8_t *out) {
    switch (dtype) {
    case HD_IQ2_XXS: put_word(code << 28, 4, out + 6 + 8 * part); break;
    case HD_IQ2_XS:  out[66 + part / 2] |= (uint8_t)(code << 4 * (part % 2)); break;
    case HD_IQ2_S:   out[74 + part / 2] |= (uint8_t)(code << 4 * (part % 2)); break;
    case HD_IQ3_XXS: put_word(code << 28, 4, out + 66 + 4 * part); break;
    case HD_IQ3_S:   out[106 + part / 2] |= (uint8_t)(code << 4 * (part % 2)); break;
    case HD_IQ1_S:   put_word(code << 12, 2, out + 34 + 2 * part); break;
    default: put_word(code << 3 * (part % 4), 2, out + 48 + 2 * (part / 4)); /* iq1_m */
    }
}

/* The block's f16. */
static void put_d(hd_dtype dtype, float d, uint8_t *out) {
    const uint32_t half = exact_f32_to_f16(d);
    if (dtype != HD_IQ1_M) put_word(half, 2, out);
    else
        for (int i = 0; i < 4; i++) out[49 + 2 * i] |= (uint8_t)((half >> 4 * i & 15) << 4);
}

void hdi_quantise_book(hd_dtype dtype, const float *x, const float *weights, uint8_t *out) {
    const form *f = form_of(dtype);
    const float unit = hdcpu_book_unit((uint32_t)dtype);
    float scales[PARTS], a[PARTS];
    room r;
    block b;
    fill_levels(f, r.levels);
    for (int p = 0; p < BLOCK / f->part; p++) {
        sum_part(f, x + p * f->part, weights + p * f->part, &r);
        scales[p] = scale_of(f, &r, x + p * f->part, &a[p]);
    }
    memset(out, 0, (size_t)f->bytes);
    b.d = quantise_rounded(step_of(f, scales, a) / unit) * unit;
    if (!(b.d > 0 && b.d <= FLT_MAX)) return;
    for (int p = 0; p < BLOCK / f->part; p++) b.scales[p] = code_of(f, scales[p], b.d);
    fit_block(f, x, weights, unit, &r, &b);
    put_d(dtype, b.d / unit, out);
    for (int p = 0; p < BLOCK / f->part; p++) put_scale(dtype, (uint32_t)b.scales[p], p, out);
    for (int eighth = 0; eighth < BLOCK / 8; eighth++) {
        const int group = eighth * (8 / f->width), groups = f->part / f->width;
        const chosen *c = &b.parts[group / groups];
        const uint32_t signs = signs_of(f, &r, x + 8 * eighth, weights + 8 * eighth, &b, eighth);
        put_eighth(dtype, c->entries + group % groups, signs, c->other[group % groups], eighth, out);
    }
}
