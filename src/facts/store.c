/* store.c: what was measured, kept as text in the cache's folder: a file for each device, driver and machine, a line for
 * each figure. Anybody may have written it: a line that is not well formed is refused by itself, and nothing in it is more
 * than a number within bounds.
 *
 *   heddle tuning 1
 *   machine NAME
 *   device ID
 *   driver NAME
 *   submit    fixed_ns 12000 samples 20 error 0.04
 *   upload    fixed_ns 9000 gbytes_s 10.5 samples 12 error 0.06
 *   matmul half fixed_ns 8000 gflops 51000 gbytes_s 2100 samples 14 error 0.08
 *   curve matmul half 8010 1.1 40000 0.9
 *   write matmul half fixed_ns 9000 gbytes_s 10 samples 14 error 0.08
 *   options 1598724097
 *   choice matvec q4_0 rows 0 size 11 option 101 gain 1.12
 *
 * A rate that is left out is one that takes no time. A curve follows the figure that it belongs to: pairs of what the line says,
 * in ns and rising, and the share of it that was measured there. */
#define _POSIX_C_SOURCE 200809L
#include "facts/facts.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define HEADING "heddle tuning 1"
#define MOST_FIXED_NS  1e12
#define MOST_LINE_NS   1e18
#define LEAST_RATE     1e-9 /* in 1e9 a second: 1 flop or byte a second */
#define MOST_SAMPLES   1e6

void hdi_tuning_name(const char *text, char out[HDI_TUNING_NAME]) {
    size_t at = 0;
    for (; text[at] && at + 1 < HDI_TUNING_NAME; at++) out[at] = (unsigned char)text[at] < ' ' ? '?' : text[at];
    out[at] = 0;
}

/* ---- printing ---- */

static void print_number(hdi_text *out, const char *name, double value) {
    char number[32];
    hdi_float_text((float)value, number);
    hdi_text_add(out, " %s %s", name, number);
}

/* "matmul half", "write matmul half", "submit". */
static void print_name(hdi_text *out, const char *way, const char *name, const char *width) {
    hdi_text_add(out, "%s%s%s%s%s", way, way[0] ? " " : "", name, width[0] ? " " : "", width);
}

static void print_figure(hdi_text *out, const char *way, const char *name, const char *width, const hdi_figure *f) {
    if (f->samples == 0) return; /* an assumption is not kept: a later version may know better */
    print_name(out, way, name, width);
    print_number(out, "fixed_ns", f->fixed_ns);
    if (f->ns_per_flop > 0) print_number(out, "gflops", 1 / f->ns_per_flop);
    if (f->ns_per_byte > 0) print_number(out, "gbytes_s", 1 / f->ns_per_byte);
    hdi_text_add(out, " samples %u", f->samples);
    print_number(out, "error", f->error);
    hdi_text_add(out, "\n");
    if (f->knots == 0) return;
    hdi_text_add(out, "curve ");
    print_name(out, way, name, width);
    for (uint32_t i = 0; i < f->knots; i++) {
        char at[32], factor[32];
        hdi_float_text((float)f->line_ns[i], at);
        hdi_float_text((float)f->factor[i], factor);
        hdi_text_add(out, " %s %s", at, factor);
    }
    hdi_text_add(out, "\n");
}

void hdi_tuning_print(const hdi_tuning *t, hdi_text *out) {
    hdi_text_add(out, HEADING "\nmachine %s\ndevice %s\ndriver %s\n", t->machine, t->device, t->driver);
    print_figure(out, "", "submit", "", &t->submit);
    print_figure(out, "", "upload", "", &t->upload);
    print_figure(out, "", "download", "", &t->download);
    for (int kind = HDI_KIND_NONE + 1; kind < HDI_KIND_COUNT; kind++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++) {
            const char *const name = hdi_op_kind_name((hdi_op_kind)kind), *const type = hdi_width_name((hdi_width)width);
            print_figure(out, "", name, type, &t->ops[kind][width]);
            print_figure(out, "write", name, type, &t->writes[kind][width]);
            print_figure(out, "read", name, type, &t->reads[kind][width]);
        }
    hdi_choices_print(&t->choices, out);
}

/* ---- reading ---- */

static bool read_number(hdi_span *rest, double least, double most, double *out) {
    const hdi_span word = hdi_word_next(rest);
    float value;
    if (word.at == word.end || !hdi_float_read(word.at, (size_t)(word.end - word.at), &value) || !(value >= least) || !(value <= most)) return false;
    *out = value;
    return true;
}

/* Names and values up to the line's end: fixed_ns and samples have to be among them. */
static bool read_figure(hdi_span *rest, hdi_figure *out) {
    double fixed = -1, gflops = 0, gbytes = 0, samples = 0, error = 0;
    for (hdi_span word = hdi_word_next(rest); word.at < word.end; word = hdi_word_next(rest)) {
        bool good = false;
        if (hdi_word_is(word, "fixed_ns")) good = read_number(rest, 0, MOST_FIXED_NS, &fixed);
        else if (hdi_word_is(word, "gflops")) good = read_number(rest, LEAST_RATE, HUGE_VAL, &gflops);
        else if (hdi_word_is(word, "gbytes_s")) good = read_number(rest, LEAST_RATE, HUGE_VAL, &gbytes);
        else if (hdi_word_is(word, "samples")) good = read_number(rest, 1, MOST_SAMPLES, &samples);
        else if (hdi_word_is(word, "error")) good = read_number(rest, 0, HUGE_VAL, &error);
        if (!good) return false;
    }
    if (fixed < 0 || samples < 1) return false;
    *out = (hdi_figure){ .fixed_ns = fixed, .ns_per_flop = gflops > 0 ? 1 / gflops : 0, .ns_per_byte = gbytes > 0 ? 1 / gbytes : 0, .error = error, .samples = (uint32_t)samples };
    return true;
}

static bool has_more(hdi_span rest) {
    const hdi_span word = hdi_word_next(&rest);
    return word.at < word.end;
}

/* Pairs up to the line's end, at least one, for a figure that was read before. */
static bool read_curve(hdi_span *rest, hdi_figure *inout) {
    hdi_figure curve = *inout;
    curve.knots = 0;
    while (has_more(*rest)) {
        if (curve.knots == HDI_CURVE_KNOTS) return false;
        double *const at = &curve.line_ns[curve.knots], *const factor = &curve.factor[curve.knots];
        if (!read_number(rest, 1, MOST_LINE_NS, at) || !read_number(rest, 1 / HDI_CURVE_MOST, HDI_CURVE_MOST, factor)) return false;
        if (curve.knots > 0 && !(*at > at[-1])) return false;
        curve.knots++;
    }
    if (curve.knots == 0 || inout->samples == 0 || inout->knots > 0) return false;
    *inout = curve;
    return true;
}

static hdi_figure *find_figure(hdi_span *rest, hdi_tuning *t) {
    hdi_span name = hdi_word_next(rest);
    const bool write = hdi_word_is(name, "write"), read = hdi_word_is(name, "read");
    if (write || read) name = hdi_word_next(rest);
    else if (hdi_word_is(name, "submit")) return &t->submit;
    else if (hdi_word_is(name, "upload")) return &t->upload;
    else if (hdi_word_is(name, "download")) return &t->download;
    const hdi_span type = hdi_word_next(rest);
    for (int kind = HDI_KIND_NONE + 1; kind < HDI_KIND_COUNT; kind++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            if (hdi_word_is(name, hdi_op_kind_name((hdi_op_kind)kind)) && hdi_word_is(type, hdi_width_name((hdi_width)width)))
                return write ? &t->writes[kind][width] : read ? &t->reads[kind][width] : &t->ops[kind][width];
    return NULL;
}

static bool read_line(hdi_span text, hdi_tuning *t) {
    hdi_span rest = text;
    const hdi_span word = hdi_word_next(&rest);
    if (hdi_word_is(word, "choice") || hdi_word_is(word, "options"))
        return hdi_choices_read(text.at, (size_t)(text.end - text.at), &t->choices);
    const bool curve = hdi_word_is(word, "curve");
    hdi_figure figure, *into = find_figure(curve ? &rest : &text, t);
    if (curve) return into && read_curve(&rest, into);
    if (!into || !read_figure(&text, &figure)) return false;
    *into = figure;
    return true;
}

/* "machine NAME", with the very name. */
static bool names(hdi_span text, const char *what, const char *name) {
    const size_t length = strlen(what);
    if ((size_t)(text.end - text.at) < length + 1 || memcmp(text.at, what, length) != 0 || text.at[length] != ' ') return false;
    text.at += length + 1;
    return hdi_word_is(text, name);
}

uint32_t hdi_tuning_parse(const char *text, size_t bytes, hdi_tuning *t) {
    const char *const end = text + bytes;
    const uint32_t table = t->choices.table;
    uint32_t refused = 0, number = 0;
    bool ours = true;
    t->choices.table = 0;
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        hdi_span l = { at, stop ? stop : end };
        at = stop ? stop + 1 : end;
        if (l.end > l.at && l.end[-1] == '\r') l.end--;
        if (number < 4) ours = ours && (number == 0 ? hdi_word_is(l, HEADING) : number == 1 ? names(l, "machine", t->machine) : number == 2 ? names(l, "device", t->device) : names(l, "driver", t->driver));
        refused += number < 4 ? !ours : l.at < l.end && (!ours || !read_line(l, t));
        number++;
    }
    if (t->choices.table != table) { /* ids of another table: they mean something else here */
        refused += t->choices.count;
        t->choices.table = table;
        t->choices.count = 0;
    }
    return refused;
}

/* ---- the file ---- */

static uint64_t hash_of(const hdi_tuning *t) {
    const char *const names_of[] = { t->machine, t->device, t->driver };
    uint64_t hash = HDI_HASH_START;
    for (size_t i = 0; i < HDI_COUNT(names_of); i++) hash = hdi_hash(hash, names_of[i], strlen(names_of[i]) + 1);
    return hash;
}

bool hdi_tuning_path(const char *folder, const hdi_tuning *t, char *out, size_t room) {
    const int used = folder ? snprintf(out, room, "%s/tuning-%016llx.txt", folder, (unsigned long long)hash_of(t)) : -1;
    return used > 0 && (size_t)used < room;
}

bool hdi_tuning_load(const hd_allocator *allocator, const char *folder, hdi_tuning *t, uint32_t *out_refused) {
    char path[1024];
    *out_refused = 0;
    if (!hdi_tuning_path(folder, t, path, sizeof path)) return false;
    FILE *file = fopen(path, "rb");
    char *text = file ? hdi_alloc(allocator, HDI_TUNING_BYTES) : NULL;
    const size_t bytes = text ? fread(text, 1, HDI_TUNING_BYTES, file) : 0;
    const bool whole = text && !ferror(file) && (bytes < HDI_TUNING_BYTES || fgetc(file) == EOF);
    if (file) fclose(file);
    if (whole) *out_refused = hdi_tuning_parse(text, bytes, t);
    hdi_free(allocator, text, HDI_TUNING_BYTES);
    return whole;
}

/* Written beside its place and then moved there: a reader sees the old file, the new one or none. */
bool hdi_tuning_save(const hd_allocator *allocator, const char *folder, const hdi_tuning *t) {
    char path[1024], beside[1100];
    hdi_text text = { .allocator = allocator };
    if (!hdi_tuning_path(folder, t, path, sizeof path)) return false;
    hdi_tuning_print(t, &text);
    snprintf(beside, sizeof beside, "%s.%ld-%p", path, (long)getpid(), (const void *)&text);
    FILE *file = text.failed ? NULL : fopen(beside, "wb");
    bool good = file && fwrite(text.bytes, 1, text.count, file) == text.count;
    if (file && fclose(file) != 0) good = false;
    good = good && rename(beside, path) == 0;
    if (file && !good) remove(beside);
    hdi_text_free(&text);
    return good;
}
