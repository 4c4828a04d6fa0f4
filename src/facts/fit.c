/* fit.c: figures from measured runs. The time of a run is linear in what is looked for, so each fit is a least-squares
 * problem of at most four unknowns, none of which may be negative: every set of unknowns that may be above zero is
 * tried, which are 16, and the best one without a negative part wins. Errors are relative: a run of 10 us counts as
 * much as one of 10 ms, and half the time is as far off as twice the time. Samples far off the others lose their weight
 * in a few rounds. What a line cannot show is kept beside it as a curve: the median share of the line that samples of
 * about one length took. */
#include "facts/facts.h"
#include <math.h>
#include <stdlib.h>

enum { SUBMIT = 0, FIXED, FLOPS, BYTES, UNKNOWNS, ROUNDS = 8, LEAST_SAMPLES = 2 };

/* A sample as a row: its parts as shares of its time, in the unknowns' own units; they add up to 1 where it is
 * predicted right. */
typedef struct row {
    double of[UNKNOWNS], known, weight;
} row;

static bool is_usable(const hdi_sample *s) {
    return isfinite(s->ns) && s->ns >= 1 && isfinite(s->flops) && s->flops >= 0 && isfinite(s->bytes) &&
        s->bytes >= 0 && isfinite(s->kernels) && s->kernels >= 0;
}

static double predict(const row *r, const double x[UNKNOWNS]) {
    double sum = r->known;
    for (int i = 0; i < UNKNOWNS; i++) sum += r->of[i] * x[i];
    return sum;
}

/* Solves the n x n system in place by elimination with the largest pivot; false where it has no single solution. */
static bool solve(double a[UNKNOWNS][UNKNOWNS + 1], int n) {
    for (int at = 0; at < n; at++) {
        int best = at;
        for (int i = at + 1; i < n; i++)
            if (fabs(a[i][at]) > fabs(a[best][at])) best = i;
        if (fabs(a[best][at]) < 1e-9) return false; /* the diagonal was scaled to 1 */
        for (int k = 0; k <= n; k++) {
            const double held = a[at][k];
            a[at][k] = a[best][k];
            a[best][k] = held;
        }
        for (int i = 0; i < n; i++) {
            if (i == at) continue;
            const double factor = a[i][at] / a[at][at];
            for (int k = at; k <= n; k++) a[i][k] -= factor * a[at][k];
        }
    }
    return true;
}

/* The best solution with only the unknowns of `set` above zero; false where one comes out negative. */
static bool solve_set(const row *rows, size_t count, unsigned set, double out[UNKNOWNS]) {
    double a[UNKNOWNS][UNKNOWNS + 1] = { { 0 } }, scale[UNKNOWNS];
    int which[UNKNOWNS], n = 0;
    for (int i = 0; i < UNKNOWNS; i++)
        if (set >> i & 1u) which[n++] = i;
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n; k++) a[i][k] += rows[s].weight * rows[s].of[which[i]] * rows[s].of[which[k]];
            a[i][n] += rows[s].weight * rows[s].of[which[i]] * (1 - rows[s].known);
        }
    for (int i = 0; i < n; i++) {
        if (!(a[i][i] > 0)) return false; /* no sample shows it */
        scale[i] = sqrt(a[i][i]);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) a[i][k] /= scale[i] * scale[k];
        a[i][n] /= scale[i];
    }
    if (!solve(a, n)) return false;
    memset(out, 0, UNKNOWNS * sizeof *out);
    for (int i = 0; i < n; i++) {
        out[which[i]] = a[i][n] / a[i][i] / scale[i];
        if (!(out[which[i]] >= 0) || !isfinite(out[which[i]])) return false;
    }
    return true;
}

static double squares(const row *rows, size_t count, const double x[UNKNOWNS]) {
    double sum = 0;
    for (size_t s = 0; s < count; s++) sum += rows[s].weight * (predict(&rows[s], x) - 1) * (predict(&rows[s], x) - 1);
    return sum;
}

/* Some unknown of `needed` is among those above zero, unless it is 0. False: no such solution is there. */
static bool solve_best(const row *rows, size_t count, unsigned allowed, unsigned needed, double out[UNKNOWNS]) {
    double best = INFINITY, x[UNKNOWNS];
    memset(out, 0, UNKNOWNS * sizeof *out);
    for (unsigned set = 1; set < 1u << UNKNOWNS; set++) {
        if ((set & ~allowed) != 0 || (needed && !(set & needed)) || !solve_set(rows, count, set, x)) continue;
        const double sum = squares(rows, count, x);
        if (sum >= best) continue;
        best = sum;
        memcpy(out, x, sizeof x);
    }
    return best < INFINITY;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of |predicted - measured| / measured; `errors` has room for one of each row. */
static double median_error(const row *rows, size_t count, const double x[UNKNOWNS], double *errors) {
    for (size_t s = 0; s < count; s++) errors[s] = fabs(predict(&rows[s], x) - 1);
    qsort(errors, count, sizeof *errors, by_size);
    return (errors[(count - 1) / 2] + errors[count / 2]) / 2;
}

/* The next round's weights: less for what is far off, and as much for what is predicted too short as for what is too
 * long. */
static void weigh(row *rows, size_t count, const double x[UNKNOWNS], double median) {
    const double near = HDI_MAX(2 * median, 0.01);
    for (size_t s = 0; s < count; s++) {
        const double ratio = HDI_MIN(HDI_MAX(predict(&rows[s], x), 0.1), 10), off = HDI_MAX(ratio, 1 / ratio) - 1;
        rows[s].weight = HDI_MIN(1, near / HDI_MAX(off, 1e-12)) / ratio;
    }
}

/* Are there small and large samples? Then what follows the size is not taken for a constant: beyond them it would be
 * far off. */
static bool grows(const hdi_sample *samples, size_t count) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double size = samples[i].bytes / HDI_MAX(samples[i].kernels, 1);
        if (!is_usable(&samples[i])) continue;
        least = HDI_MIN(least, size);
        most = HDI_MAX(most, size);
    }
    return most >= 64 * least;
}

/* The best line that grows with the size. Where the one that fits best does not, it is made to by a little over the
 * samples: a line through nothing would be far off for all of them. */
static void solve_growing(const row *rows, size_t count, unsigned allowed, double out[UNKNOWNS]) {
    const double little = 0.02;
    const unsigned rates = 1u << FLOPS | 1u << BYTES;
    double flat[UNKNOWNS], largest = 0;
    const bool grown = solve_best(rows, count, allowed, rates, out);
    if (!solve_best(rows, count, allowed, 0, flat) || flat[FLOPS] > 0 || flat[BYTES] > 0) return;
    /* bytes of a kernel */
    for (size_t s = 0; s < count; s++)
        largest = HDI_MAX(largest, rows[s].of[BYTES] / HDI_MAX(rows[s].of[FIXED], 1e-12));
    flat[BYTES] = largest > 0 ? little * flat[FIXED] / largest : 0;
    if (!grown || (flat[BYTES] > 0 && squares(rows, count, flat) < squares(rows, count, out)))
        memcpy(out, flat, sizeof flat);
}

bool hdi_fit(const hdi_sample *samples, size_t count, double *inout_submit_ns, hdi_figure *out) {
    row rows[HDI_FIT_SAMPLES];
    double x[UNKNOWNS] = { 0 }, errors[HDI_FIT_SAMPLES];
    size_t used = 0;
    const bool find_submit = *inout_submit_ns < 0;
    double known = find_submit ? 0 : *inout_submit_ns;
    for (size_t i = 0; i < count && used < HDI_FIT_SAMPLES; i++) {
        const hdi_sample *s = &samples[i];
        if (!is_usable(s)) continue;
        rows[used++] = (row){ { find_submit ? 1 / s->ns : 0, s->kernels / s->ns, s->flops / s->ns, s->bytes / s->ns },
            known / s->ns, 1 };
    }
    if (used < LEAST_SAMPLES) return false;
    double median = 0;
    const unsigned allowed = find_submit ? 0xFu : 0xEu;
    for (int round = 0; round < ROUNDS; round++) {
        if (grows(samples, count)) solve_growing(rows, used, allowed, x);
        else solve_best(rows, used, allowed, 0, x);
        median = median_error(rows, used, x, errors);
        weigh(rows, used, x, median);
    }
    *out = (hdi_figure){ .fixed_ns = x[FIXED], .ns_per_flop = x[FLOPS], .ns_per_byte = x[BYTES], .error = median,
        .samples = (uint32_t)used };
    if (find_submit) *inout_submit_ns = x[SUBMIT];
    return true;
}

/* ---- the curve ---- */

/* A sample beside the line: what the line says of each kernel, and the share of it that was measured. */
typedef struct share_at {
    double line_ns, share, rest; /* the last: of the sample's time, what the submission took */
} share_at;

static int by_line(const void *a, const void *b) {
    const share_at *x = a, *y = b;
    return x->line_ns < y->line_ns ? -1 : x->line_ns > y->line_ns;
}

/* The knot of some neighbours, but for the one at `left_out`: in their middle, their median. */
static void add_knot(const share_at *of, size_t first, size_t end, size_t left_out, hdi_figure *f) {
    double shares[HDI_FIT_SAMPLES], middle = 0;
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        if (i == left_out) continue;
        shares[count++] = of[i].share;
        middle += log(hdi_figure_beyond(f, of[i].line_ns));
    }
    if (count == 0) return;
    qsort(shares, count, sizeof *shares, by_size);
    f->line_ns[f->knots] = f->fixed_ns + exp(middle / (double)count);
    f->factor[f->knots++] = HDI_MIN(HDI_MAX((shares[(count - 1) / 2] + shares[count / 2]) / 2, 1 / HDI_CURVE_MOST),
        HDI_CURVE_MOST);
}

/* Knots lie half an octave apart at least, and evenly where that would be too many. */
static void add_knots(const share_at *of, size_t count, size_t left_out, hdi_figure *f) {
    const double range = log(hdi_figure_beyond(f, of[count - 1].line_ns) / hdi_figure_beyond(f, of[0].line_ns));
    const double step = HDI_MAX(range / (HDI_CURVE_KNOTS - 1), 0.5 * log(2));
    f->knots = 0;
    for (size_t first = 0, end; first < count; first = end) {
        const double from = hdi_figure_beyond(f, of[first].line_ns);
        for (end = first + 1; end < count && log(hdi_figure_beyond(f, of[end].line_ns) / from) < step;) end++;
        add_knot(of, first, end, left_out, f);
    }
}

void hdi_fit_curve(const hdi_sample *samples, size_t count, double submit_ns, hdi_figure *f) {
    share_at of[HDI_FIT_SAMPLES];
    double errors[HDI_FIT_SAMPLES];
    size_t used = 0;
    f->knots = 0;
    for (size_t i = 0; i < count && used < HDI_FIT_SAMPLES; i++) {
        const hdi_sample *s = &samples[i];
        if (!is_usable(s) || !(s->kernels > 0)) continue;
        const double line_ns = hdi_figure_line(f, s->flops / s->kernels, s->bytes / s->kernels);
        const double kernels_ns = HDI_MAX(s->ns - submit_ns, 0.02 * s->ns);
        if (line_ns >= 1 && isfinite(line_ns))
            of[used++] = (share_at){ line_ns, kernels_ns / s->kernels / line_ns, 1 - kernels_ns / s->ns };
    }
    if (used < LEAST_SAMPLES) return;
    qsort(of, used, sizeof *of, by_line);
    for (size_t i = 0; i < used; i++) { /* how far off each one is by the curve of the others */
        add_knots(of, used, i, f);
        errors[i] = fabs(hdi_figure_factor(f, of[i].line_ns) / of[i].share - 1) * (1 - of[i].rest);
    }
    qsort(errors, used, sizeof *errors, by_size);
    f->error = (errors[(used - 1) / 2] + errors[used / 2]) / 2;
    add_knots(of, used, used, f);
}

hdi_figure hdi_figure_merge(const hdi_figure *old, const hdi_figure *measured) {
    if (old->samples == 0) return *measured;
    if (measured->samples == 0) return *old;
    const double kept = (double)HDI_MIN(old->samples, measured->samples), fresh = (double)measured->samples;
    const double all = kept + fresh;
    hdi_figure both = {
        .fixed_ns = (kept * old->fixed_ns + fresh * measured->fixed_ns) / all,
        .ns_per_flop = (kept * old->ns_per_flop + fresh * measured->ns_per_flop) / all,
        .ns_per_byte = (kept * old->ns_per_byte + fresh * measured->ns_per_byte) / all,
        .error = measured->error,
        .samples = (uint32_t)all,
        .knots = measured->knots,
    };
    for (uint32_t i = 0; i < both.knots; i++) {
        const double beyond = measured->line_ns[i] - measured->fixed_ns;
        both.line_ns[i] = both.fixed_ns + beyond;
        const double before = hdi_figure_factor(old, old->fixed_ns + beyond);
        both.factor[i] = exp((kept * log(before) + fresh * log(measured->factor[i])) / all);
    }
    return both;
}

/* ---- a whole device ---- */

/* The samples of one kind, family and type. */
static size_t pick(const hdi_sample *samples, size_t count, hdi_sample_kind kind, hdi_op_kind family, hdi_width width,
    hdi_sample *out) {
    size_t picked = 0;
    for (size_t i = 0; i < count && picked < HDI_FIT_SAMPLES; i++)
        if (samples[i].kind == kind && samples[i].work == family && samples[i].width == width)
            out[picked++] = samples[i];
    return picked;
}

/* Does the number of kernels in a submission differ? Then the two can be told apart. */
static bool shows_submit(const hdi_sample *samples, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (samples[i].kernels != samples[0].kernels) return true;
    return false;
}

static void merge(hdi_figure *into, const hdi_figure *measured) { *into = hdi_figure_merge(into, measured); }

/* Samples of which figures are fitted, and room for those of one figure. */
typedef struct fitting {
    const hdi_sample *samples;
    size_t      count;
    hdi_sample *picked;
} fitting;

/* The figure of one kind, family and type, where there are samples of it. */
static void fit_one(const fitting *f, hdi_sample_kind kind, hdi_op_kind family, hdi_width width, double submit_ns,
    hdi_figure *into) {
    hdi_figure figure;
    const size_t some = pick(f->samples, f->count, kind, family, width, f->picked);
    if (!hdi_fit(f->picked, some, &submit_ns, &figure)) return;
    hdi_fit_curve(f->picked, some, submit_ns, &figure);
    merge(into, &figure);
}

/* Less than any run of one kernel took, since the kernel takes some of it. */
static double most_submit_ns(const hdi_sample *samples, size_t count) {
    double least = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (samples[i].kind == HDI_SAMPLE_RUN && is_usable(&samples[i])) least = HDI_MIN(least, samples[i].ns);
    return 0.95 * least;
}

/* What a submission costs, from the samples that show it best. */
static void fit_submit(const hdi_sample *samples, size_t count, hdi_sample *picked, hdi_figures *figures) {
    hdi_figure best = { .error = INFINITY };
    for (int family = HDI_KIND_NONE + 1; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++) {
            hdi_figure figure;
            double submit_ns = -1;
            const size_t some = pick(samples, count, HDI_SAMPLE_RUN, (hdi_op_kind)family, (hdi_width)width, picked);
            if (!shows_submit(picked, some) || !hdi_fit(picked, some, &submit_ns, &figure) ||
                figure.error >= best.error) continue;
            best = (hdi_figure){ .fixed_ns = HDI_MIN(submit_ns, most_submit_ns(samples, count)), .error = figure.error,
                .samples = figure.samples };
        }
    if (best.samples > 0) merge(&figures->submit, &best);
}

hd_status hdi_fit_device(const hd_allocator *allocator, const hdi_sample *samples, size_t count, hdi_figures *figures,
    hd_error *error) {
    hdi_sample *picked = hdi_alloc(allocator, HDI_FIT_SAMPLES * sizeof *picked);
    if (!picked) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to fit %zu samples", count);
    const fitting f = { samples, count, picked };
    fit_one(&f, HDI_SAMPLE_UPLOAD, HDI_KIND_NONE, HDI_WIDTH_WORD, 0, &figures->upload);
    fit_one(&f, HDI_SAMPLE_DOWNLOAD, HDI_KIND_NONE, HDI_WIDTH_WORD, 0, &figures->download);
    fit_submit(samples, count, picked, figures);
    for (int family = HDI_KIND_NONE + 1; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++) {
            fit_one(&f, HDI_SAMPLE_RUN, (hdi_op_kind)family, (hdi_width)width, figures->submit.fixed_ns,
                &figures->ops[family][width]);
            fit_one(&f, HDI_SAMPLE_UPLOAD, (hdi_op_kind)family, (hdi_width)width, 0, &figures->writes[family][width]);
            fit_one(&f, HDI_SAMPLE_DOWNLOAD, (hdi_op_kind)family, (hdi_width)width, 0, &figures->reads[family][width]);
        }
    hdi_free(allocator, picked, HDI_FIT_SAMPLES * sizeof *picked);
    return HD_OK;
}
