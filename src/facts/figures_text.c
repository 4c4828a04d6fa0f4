/* figures_text.c: figures as lines of text, which anybody may have written: nothing in them is more than a number
 * within bounds.
 *
 *   submit    fixed_ns 12000 samples 20 error 0.04
 *   upload    fixed_ns 9000 gbytes_s 10.5 samples 12 error 0.06
 *   matmul half fixed_ns 8000 gflops 51000 gbytes_s 2100 samples 14 error 0.08
 *   curve matmul half 8010 1.1 40000 0.9
 *   write matmul half fixed_ns 9000 gbytes_s 10 samples 14 error 0.08
 *
 * A rate that is left out is one that takes no time. A curve follows the figure that it belongs to: pairs of what the
 * line says,
 * in ns and rising, and the share of it that was measured there. */
#include "facts/facts.h"
#include <math.h>

#define MOST_FIXED_NS  1e12
#define MOST_LINE_NS   1e18
#define LEAST_RATE     1e-9 /* in 1e9 a second: 1 flop or byte a second */
#define MOST_SAMPLES   1e6

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

void hdi_figures_print(const hdi_figures *t, hdi_text *out) {
    print_figure(out, "", "submit", "", &t->submit);
    print_figure(out, "", "upload", "", &t->upload);
    print_figure(out, "", "download", "", &t->download);
    for (int family = HDI_KIND_NONE + 1; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++) {
            const char *const name = hdi_op_kind_name((hdi_op_kind)family);
            const char *const type = hdi_width_name((hdi_width)width);
            print_figure(out, "", name, type, &t->ops[family][width]);
            print_figure(out, "write", name, type, &t->writes[family][width]);
            print_figure(out, "read", name, type, &t->reads[family][width]);
        }
}

/* ---- reading ---- */

static bool read_number(hdi_span *rest, double least, double most, double *out) {
    const hdi_span word = hdi_word_next(rest);
    float value;
    if (word.at == word.end || !hdi_float_read(word.at, (size_t)(word.end - word.at), &value) || !(value >= least) ||
        !(value <= most)) return false;
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
    *out = (hdi_figure){ .fixed_ns = fixed, .ns_per_flop = gflops > 0 ? 1 / gflops : 0, .ns_per_byte = gbytes > 0
        ? 1 / gbytes : 0, .error = error, .samples = (uint32_t)samples };
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
        if (!read_number(rest, 1, MOST_LINE_NS, at) || !read_number(rest, 1 / HDI_CURVE_MOST, HDI_CURVE_MOST, factor))
            return false;
        if (curve.knots > 0 && !(*at > at[-1])) return false;
        curve.knots++;
    }
    if (curve.knots == 0 || inout->samples == 0 || inout->knots > 0) return false;
    *inout = curve;
    return true;
}

static hdi_figure *find_figure(hdi_span *rest, hdi_figures *t) {
    hdi_span name = hdi_word_next(rest);
    const bool write = hdi_word_is(name, "write"), read = hdi_word_is(name, "read");
    if (write || read) name = hdi_word_next(rest);
    else if (hdi_word_is(name, "submit")) return &t->submit;
    else if (hdi_word_is(name, "upload")) return &t->upload;
    else if (hdi_word_is(name, "download")) return &t->download;
    const hdi_span type = hdi_word_next(rest);
    for (int family = HDI_KIND_NONE + 1; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            if (hdi_word_is(name, hdi_op_kind_name((hdi_op_kind)family)) &&
                hdi_word_is(type, hdi_width_name((hdi_width)width)))
                return write ? &t->writes[family][width] : read ? &t->reads[family][width] : &t->ops[family][width];
    return NULL;
}

bool hdi_figures_read(hdi_span line, hdi_figures *t) {
    hdi_span rest = line;
    const bool curve = hdi_word_is(hdi_word_next(&rest), "curve");
    hdi_figure figure, *into = find_figure(curve ? &rest : &line, t);
    if (curve) return into && read_curve(&rest, into);
    if (!into || !read_figure(&line, &figure)) return false;
    *into = figure;
    return true;
}
