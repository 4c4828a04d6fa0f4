/* test_facts.c: figures are found again from invented samples, with noise and outliers; the file of facts keeps them, and refuses what
 * is not well formed line by line. */
#define _POSIX_C_SOURCE 200809L
#include "program_cases.h"
#include "facts/facts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- samples ---- */

static uint32_t chance = 1;
static double noise(double share) { /* 1 - share .. 1 + share */
    chance = chance * 1664525u + 1013904223u;
    return 1 + share * (2.0 * (chance >> 8) / 16777216.0 - 1);
}

static void assert_near(double got, double wanted, double share) {
    if (!(fabs(got - wanted) <= share * fabs(wanted))) fail_msg("%g instead of %g", got, wanted);
}

/* `count` products of rising size: flops and bytes do not grow alike. */
static size_t invent(const hdi_figure *truth, double submit_ns, double share, hdi_sample *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double n = 16 * exp2((double)i / 3), kernels = i % 4 == 0 ? 8 : 1;
        out[i] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_MATMUL, HDI_WIDTH_HALF, kernels, kernels * 2 * n * n * n, kernels * 6 * n * n, 0 };
        out[i].ns = (submit_ns + kernels * truth->fixed_ns + out[i].flops * truth->ns_per_flop + out[i].bytes * truth->ns_per_byte) * noise(share);
    }
    return count;
}

static const hdi_figure truth = { .fixed_ns = 5000, .ns_per_flop = 1e-3, .ns_per_byte = 0.05 };

static void figures_are_found_again(void **state) {
    (void)state;
    hdi_sample samples[24];
    hdi_figure found;
    double submit_ns = -1;
    assert_true(hdi_fit(samples, invent(&truth, 20000, 0, samples, 24), &submit_ns, &found));
    assert_near(submit_ns, 20000, 1e-6);
    assert_near(found.fixed_ns, 5000, 1e-6);
    assert_near(found.ns_per_flop, 1e-3, 1e-6);
    assert_near(found.ns_per_byte, 0.05, 1e-6);
    assert_true(found.error < 1e-9 && found.samples == 24);
    submit_ns = 20000;
    assert_true(hdi_fit(samples, invent(&truth, 20000, 0.02, samples, 24), &submit_ns, &found));
    assert_near(found.fixed_ns, 5000, 0.05);
    assert_near(found.ns_per_flop, 1e-3, 0.05);
    assert_near(found.ns_per_byte, 0.05, 0.05);
    assert_true(found.error > 0.001 && found.error < 0.02);
}

static void outliers_count_little(void **state) {
    (void)state;
    hdi_sample samples[24];
    hdi_figure found;
    double submit_ns = 20000;
    invent(&truth, 20000, 0.01, samples, 24);
    samples[3].ns *= 5;
    samples[11].ns *= 8;
    samples[20].ns /= 3;
    assert_true(hdi_fit(samples, 24, &submit_ns, &found));
    assert_near(found.fixed_ns, 5000, 0.06);
    assert_near(found.ns_per_flop, 1e-3, 0.06);
    assert_near(found.ns_per_byte, 0.05, 0.06);
}

/* Where arithmetic and bytes grow alike, either may carry the rate; where a part would be negative it is 0. */
static void parts_are_never_negative(void **state) {
    (void)state;
    hdi_sample samples[12];
    hdi_figure found;
    double none = 0;
    for (size_t i = 0; i < 12; i++) {
        const double n = exp2((double)(10 + i));
        samples[i] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_ELEMENTWISE, HDI_WIDTH_WORD, 1, n, 12 * n, 0.5 * n };
    }
    assert_true(hdi_fit(samples, 12, &none, &found));
    assert_true(found.fixed_ns >= 0 && found.ns_per_flop >= 0 && found.ns_per_byte >= 0);
    for (size_t i = 0; i < 12; i++) assert_near(hdi_figure_ns(&found, samples[i].flops, samples[i].bytes), samples[i].ns, 1e-6);
    for (size_t i = 0; i < 12; i++) samples[i].ns = 1000 + sqrt(samples[i].bytes); /* bends the other way */
    assert_true(hdi_fit(samples, 12, &none, &found));
    assert_true(found.fixed_ns >= 0 && found.ns_per_flop >= 0 && found.ns_per_byte >= 0);
}

static void bad_samples_are_left_out(void **state) {
    (void)state;
    hdi_sample samples[8];
    hdi_figure found;
    double none = 0;
    invent(&truth, 0, 0, samples, 8);
    samples[0].ns = NAN;
    samples[1].ns = 0;
    samples[2].flops = -1;
    samples[3].bytes = INFINITY;
    assert_true(hdi_fit(samples, 8, &none, &found));
    assert_int_equal(found.samples, 4);
    assert_false(hdi_fit(samples, 4, &none, &found));
    assert_false(hdi_fit(samples, 0, &none, &found));
}

static void measurements_merge(void **state) {
    (void)state;
    const hdi_figure assumed = { .fixed_ns = 1 }, old = { .fixed_ns = 100, .ns_per_flop = 1, .ns_per_byte = 10, .samples = 30, .knots = 1, .line_ns = { 50 }, .factor = { 4 } };
    const hdi_figure measured = { .fixed_ns = 200, .ns_per_flop = 2, .ns_per_byte = 20, .samples = 10, .knots = 2, .line_ns = { 300, 600 }, .factor = { 1, 9 } };
    assert_near(hdi_figure_merge(&assumed, &measured).fixed_ns, 200, 0);
    assert_near(hdi_figure_merge(&old, &assumed).fixed_ns, 100, 0);
    const hdi_figure both = hdi_figure_merge(&old, &measured); /* the old ones count as 10 */
    assert_near(both.fixed_ns, 150, 1e-12);
    assert_near(both.ns_per_byte, 15, 1e-12);
    assert_int_equal(both.samples, 20);
    assert_true(both.knots == 2 && both.line_ns[1] == 550); /* as far beyond fixed_ns */
    assert_near(both.factor[0], 2, 1e-12);
    assert_near(both.factor[1], 6, 1e-12);
}

/* ---- the curve ---- */

static void a_curve_is_straight_between_knots(void **state) {
    (void)state;
    const hdi_figure f = { .ns_per_byte = 1, .samples = 4, .knots = 3, .line_ns = { 100, 400, 6400 }, .factor = { 1, 4, 0.25 } };
    static const double at[][2] = { { 1, 1 }, { 100, 1 }, { 200, 2 }, { 400, 4 }, { 1600, 1 }, { 6400, 0.25 }, { 1e9, 0.25 } };
    for (size_t i = 0; i < HDI_COUNT(at); i++) assert_near(hdi_figure_factor(&f, at[i][0]), at[i][1], 1e-9);
    assert_near(hdi_figure_ns(&f, 0, 200), 400, 1e-9);
    assert_true(hdi_figure_factor(&truth, 5) == 1);
}

/* Most of the time is the launch; in the middle sizes something takes as long again: the line does not tell those sizes apart. */
static void a_curve_tells_short_sizes_apart(void **state) {
    (void)state;
    hdi_sample samples[12];
    hdi_figure found;
    double none = 0;
    for (size_t i = 0; i < 12; i++) {
        const double bytes = exp2(12 + (double)i);
        samples[i] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_COPY, HDI_WIDTH_WORD, 1, 0, bytes, 10000 + 1e-4 * bytes + (i > 4 && i < 8 ? 9000 : 0) };
    }
    assert_true(hdi_fit(samples, 12, &none, &found));
    hdi_fit_curve(samples, 12, none, &found);
    for (size_t i = 0; i < 12; i++) assert_near(hdi_figure_ns(&found, 0, samples[i].bytes), samples[i].ns, 0.02);
}

/* A device with a cache: sizes beyond it take four times as long; in the middle a step that no line shows. */
static void a_curve_shows_what_the_line_misses(void **state) {
    (void)state;
    hdi_sample samples[60];
    hdi_figure line, curved;
    double none = 3000, worst_line = 0, worst = 0;
    for (size_t i = 0; i < 60; i++) {
        const double bytes = exp2(10 + (double)(i / 4)), ns = bytes < 40000 ? 200 + 0.02 * bytes : bytes < 3e6 ? 9000 + 0.05 * bytes : 0.2 * bytes;
        samples[i] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_COPY, HDI_WIDTH_WORD, 1, 0, bytes, 3000 + ns * noise(0.05) };
    }
    samples[17].ns *= 10; /* a disturbed one moves no knot */
    assert_true(hdi_fit(samples, 60, &none, &line));
    curved = line;
    hdi_fit_curve(samples, 60, none, &curved);
    assert_true(curved.knots > 6 && curved.knots <= HDI_CURVE_KNOTS && curved.error < line.error);
    for (size_t i = 0; i < 60; i++) {
        if (i == 17) continue;
        worst_line = fmax(worst_line, fabs(log((3000 + hdi_figure_line(&curved, 0, samples[i].bytes)) / samples[i].ns)));
        worst = fmax(worst, fabs(log((3000 + hdi_figure_ns(&curved, 0, samples[i].bytes)) / samples[i].ns)));
    }
    if (!(worst < 0.6 * worst_line)) fail_msg("off by %g, the line by %g", worst, worst_line);
    for (uint32_t k = 1; k < curved.knots; k++) assert_true(curved.line_ns[k] > curved.line_ns[k - 1]);
}

/* Times that hide behind a constant: beyond the samples they do grow. */
static void large_sizes_are_not_free(void **state) {
    (void)state;
    hdi_sample samples[6];
    hdi_figure found;
    double none = 0;
    for (size_t i = 0; i < 6; i++) samples[i] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_MATMUL, HDI_WIDTH_HALF, 1, 0, exp2(8.0 + 2 * (double)i), 5000 + (i == 5 ? 100 : 0) };
    assert_true(hdi_fit(samples, 6, &none, &found));
    assert_true(found.ns_per_byte > 0);
    hdi_fit_curve(samples, 6, 0, &found);
    assert_true(hdi_figure_ns(&found, 0, 1e9) > 20000);
}

/* The work as one run. */
static double alone_ns(const hdi_figures *t, const hdi_work *work, uint32_t count) {
    double ns = t->submit.fixed_ns;
    for (uint32_t i = 0; i < count; i++) ns += hdi_cost_work(t, &work[i]);
    return ns;
}

static void submissions_take_less_than_any_run(void **state) {
    (void)state;
    hdi_sample samples[40];
    hdi_figures t = { 0 };
    hdi_figures_assume(&(hdi_caps){ .gflops = 100, .gbytes_s = 10 }, true, &t);
    size_t count = invent(&truth, 50000, 0.01, samples, 24);
    for (size_t i = 0; i < 6; i++) samples[count++] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_COPY, HDI_WIDTH_WORD, 1, 0, 1024, 1000 };
    assert_int_equal(hdi_fit_device(&hdi_default_allocator, samples, count, &t, NULL), HD_OK);
    assert_true(t.submit.fixed_ns <= 950);
    const hdi_work copy = { .kind = HDI_KIND_COPY, .bytes = 1024, .kernels = 1 };
    assert_near(alone_ns(&t, &copy, 1), 1000, 0.05);
}

static void a_device_is_fitted(void **state) {
    (void)state;
    hdi_sample samples[96];
    hdi_figures t = { 0 };
    hdi_caps caps = { .gflops = 100, .gbytes_s = 10 };
    hdi_figures_assume(&caps, true, &t);
    size_t count = invent(&truth, 30000, 0.01, samples, 24);
    for (size_t i = 0; i < 12; i++) {
        const double bytes = exp2((double)(10 + i));
        samples[count++] = (hdi_sample){ .kind = HDI_SAMPLE_UPLOAD, .kernels = 1, .bytes = bytes, .ns = 9000 + 0.1 * bytes };
        samples[count++] = (hdi_sample){ .kind = HDI_SAMPLE_DOWNLOAD, .kernels = 1, .bytes = bytes, .ns = 7000 + 0.2 * bytes };
        samples[count++] = (hdi_sample){ HDI_SAMPLE_RUN, HDI_KIND_COPY, HDI_WIDTH_WORD, 1, 0, bytes, 30000 + 2000 + 0.01 * bytes };
        samples[count++] = (hdi_sample){ HDI_SAMPLE_UPLOAD, HDI_KIND_COPY, HDI_WIDTH_WORD, 1.5, 0, 1.5 * bytes, 1.5 * (4000 + 0.3 * bytes) };
        samples[count++] = (hdi_sample){ HDI_SAMPLE_DOWNLOAD, HDI_KIND_COPY, HDI_WIDTH_WORD, 1, 0, bytes, 50000 + 0.2 * bytes };
    }
    assert_int_equal(hdi_fit_device(&hdi_default_allocator, samples, count, &t, NULL), HD_OK);
    assert_near(t.submit.fixed_ns, 30000, 0.05);
    assert_near(t.upload.fixed_ns, 9000, 0.01);
    assert_near(t.download.ns_per_byte, 0.2, 0.01);
    assert_near(t.ops[HDI_KIND_COPY][HDI_WIDTH_WORD].ns_per_byte, 0.01, 0.3);
    assert_int_equal(t.ops[HDI_KIND_ROPE][HDI_WIDTH_WORD].samples, 0);
    const hdi_work product = { .kind = HDI_KIND_MATMUL, .width = HDI_WIDTH_QUANTISED, .flops = 1000000, .bytes = 100000, .kernels = 1 };
    assert_near(hdi_cost_work(&t, &product), 5000 + 1000 + 5000, 0.05); /* by the type that was measured */
    assert_near(hdi_cost_transfer(&t.upload, 100000), 19000, 0.01);
    assert_true(hdi_cost_transfer(&t.upload, 0) == 0);
    const hdi_work copy = { .kind = HDI_KIND_COPY, .bytes = 100000, .kernels = 1 };
    assert_near(hdi_cost_write(&t, &copy, 100000), 34000, 0.01); /* measured for such work; else as values travel */
    assert_near(hdi_cost_read(&t, &copy, 100000), 70000, 0.01);
    assert_near(hdi_cost_write(&t, &product, 100000), 19000, 0.01);
    assert_near(hdi_cost_write(&t, &(hdi_work){ 0 }, 100000), 19000, 0.01);
    assert_near(hdi_cost_read(&t, &product, 100000), 27000, 0.01);
    assert_near(alone_ns(&t, &product, 1), 41000, 0.05);
}

/* ---- assumptions ---- */

static double batch_us(const hdi_caps *caps, bool discrete, uint32_t count, uint64_t elements) {
    static hdi_figures t;
    hdi_work sums[8];
    double ns = 0;
    hdi_figures_assume(caps, discrete, &t);
    for (uint32_t i = 0; i < count; i++) {
        sums[i] = (hdi_work){ .kind = HDI_KIND_ELEMENTWISE, .flops = elements, .bytes = 12 * elements, .kernels = 1 };
        ns += 2 * hdi_cost_write(&t, &sums[i], 4 * elements) + hdi_cost_read(&t, &sums[i], 4 * elements);
    }
    return (ns + alone_ns(&t, sums, count)) / 1000;
}

static void assert_within(double is, double times, double of) {
    if (!(is <= times * of && times * is >= of)) fail_msg("%g is not within %g times of %g", is, times, of);
}

/* Batches of vector adds as docs/performance has them (routes on two cores and on an H200): what is assumed where nothing was measured is of
 * the right size. */
static void assumptions_are_of_the_right_size(void **state) {
    (void)state;
    const hdi_caps cpu2 = { .native_kernels = 1, .threads = 2, .simd_bytes = 64 }, cpu16 = { .native_kernels = 1, .threads = 16, .simd_bytes = 64 };
    const hdi_caps lavapipe = { .software = 1, .gflops = 10, .gbytes_s = 8 }, vulkan = { .gflops = 19800, .gbytes_s = 1320 }, cuda = { .gflops = 66908, .gbytes_s = 4800 };
    assert_within(batch_us(&cpu2, false, 4, 32768), 2, 171);
    assert_within(batch_us(&cpu2, false, 8, 262144), 2, 2020);
    assert_within(batch_us(&lavapipe, false, 4, 32768), 2, 722);
    assert_within(batch_us(&lavapipe, false, 8, 262144), 2, 10100);
    assert_within(batch_us(&cpu16, false, 4, 32768), 3, 138);
    assert_within(batch_us(&cpu16, false, 8, 262144), 3, 489);
    assert_within(batch_us(&cuda, true, 4, 32768), 3, 158);
    assert_within(batch_us(&cuda, true, 8, 262144), 3, 797);
    assert_within(batch_us(&vulkan, true, 4, 32768), 3, 135);
    assert_within(batch_us(&vulkan, true, 8, 262144), 3, 935);
}

/* ---- the file ---- */

static void fill(hdi_facts *t) {
    const hd_device_info info = { .id = "vulkan:1-2", .driver = "driver\n1.0", .kind = HD_DEVICE_DISCRETE_GPU };
    hdi_facts_assume(&info, &(hdi_caps){ .gflops = 100, .gbytes_s = 10 }, 2, 77, t);
    snprintf(t->machine, sizeof t->machine, "a machine, 2 cores");
    memset(t->machine + strlen(t->machine), 0, sizeof t->machine - strlen(t->machine));
}

static uint32_t parse(const char *text, hdi_facts *t) { return hdi_facts_parse(text, strlen(text), t); }

#define HEAD "heddle facts 1\nmachine a machine, 2 cores\ndevice vulkan:1-2\ndriver driver?1.0\n"

static void text_reads_back(void **state) {
    (void)state;
    hdi_facts t, again;
    hdi_text text = { .allocator = &hdi_default_allocator }, second = { .allocator = &hdi_default_allocator };
    memset(&t, 0, sizeof t);
    fill(&t);
    again = t;
    t.figures.submit = (hdi_figure){ .fixed_ns = 12345.5, .samples = 7, .error = 0.25 };
    t.figures.upload = (hdi_figure){ .fixed_ns = 1000, .ns_per_byte = 0.125, .samples = 3 };
    for (int family = 1; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            t.figures.reads[family][width] = t.figures.writes[family][width] = t.figures.ops[family][width] = (hdi_figure){ .fixed_ns = family, .ns_per_flop = family % 2 ? 0 : 0.25, .ns_per_byte = width % 2 ? 0 : 0.5, .error = 0.125, .samples = (uint32_t)(family % 5) };
    for (uint32_t i = 0; i < HDI_CURVE_KNOTS; i++) {
        t.figures.ops[1][0].line_ns[i] = 16 << i;
        t.figures.ops[1][0].factor[i] = 1 / (double)(1 << i % 6);
    }
    t.figures.ops[1][0].knots = HDI_CURVE_KNOTS;
    t.figures.writes[1][0] = t.figures.ops[1][0];
    t.figures.writes[1][0].fixed_ns = 4;
    t.figures.download = (hdi_figure){ .fixed_ns = 1, .samples = 1, .knots = 1, .line_ns = { 7 }, .factor = { 0.5 } };
    for (uint32_t i = 0; i < HDI_CAPS_MODULES; i++) t.judged[i][0] = t.judged[i][1] = t.caps.wrong[i][1] = UINT64_MAX;
    t.arithmetic = true;
    t.rank_ns = 123;
    hdi_facts_print(&t, &text);
    assert_true(again.rank_ns == 0 && text.count < HDI_FACTS_BYTES);
    assert_int_equal(hdi_facts_parse(text.bytes, text.count, &again), 0);
    hdi_facts_print(&again, &second);
    assert_string_equal(text.bytes, second.bytes);
    assert_true(again.figures.ops[2][0].ns_per_flop == 0.25 && again.figures.ops[1][1].ns_per_byte == 0);
    assert_true(again.figures.ops[1][0].knots == HDI_CURVE_KNOTS && again.figures.ops[1][0].factor[3] == 0.125 && again.figures.download.line_ns[0] == 7);
    assert_true(again.figures.writes[1][0].fixed_ns == 4 && again.figures.writes[1][0].factor[3] == 0.125 && again.figures.reads[1][0].fixed_ns == 1 && again.figures.reads[1][0].knots == 0);
    assert_true(again.figures.ops[5][0].samples == 0 && again.figures.ops[5][0].fixed_ns > 0); /* assumed still */
    hdi_text_free(&text);
    hdi_text_free(&second);
}

static void lines_are_refused_one_by_one(void **state) {
    (void)state;
    static const char *const bad[] = {
        "submit", "submit fixed_ns", "submit fixed_ns x samples 1", "submit fixed_ns -1 samples 1", "submit fixed_ns 1e13 samples 1", "submit fixed_ns nan samples 1",
        "submit fixed_ns 1", "submit fixed_ns 1 samples 0", "submit fixed_ns 1 samples 1e9", "submit samples 2", "submit fixed_ns 1 samples 2 more 3", "submit fixed_ns 1 samples 2 error -1",
        "upload fixed_ns 1 gbytes_s 0 samples 2", "upload fixed_ns 1 gbytes_s -5 samples 2", "matmul fixed_ns 1 samples 2", "matmul wide fixed_ns 1 samples 2",
        "curve", "curve submit", "curve submit 1 1", "curve copy word 1 1", "curve nowhere 1 1", "curve matmul 1 1",
        "matmull half fixed_ns 1 samples 2", "none word fixed_ns 1 samples 2", "MATMUL half fixed_ns 1 samples 2", " ", "matmul half fixed_ns 1 samples 2\x01",
        "rank 5", "probe", "probe 0", "probe x", "probe -1", "probe 1 2", "probe 1000000000000001", "probe 99999999999999999999", "kernels", "kernels x", "kernels 77 1",
        "arithmetic", "arithmetic inexact 2", "arithmetic inexact 1 1", "verdict", "verdict 64 fast judged 1 wrong 0", "verdict 3 slow judged 1 wrong 0",
        "verdict 3 fast judged 1 wrong 2", "verdict 3 fast judged 1 wrong 1 x", "verdict 3 fast judged 18446744073709551616 wrong 0",
    };
    hdi_facts t, before;
    memset(&t, 0, sizeof t);
    fill(&t);
    before = t;
    for (size_t i = 0; i < HDI_COUNT(bad); i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "%s\n", bad[i]);
        if (parse(text, &t) != 1 || memcmp(&t, &before, sizeof t) != 0) fail_msg("\"%s\" was taken", bad[i]);
    }
    assert_int_equal(parse(HEAD "junk\ncopy half fixed_ns 8 gbytes_s 4 samples 2\r\n\nmore junk\nsubmit fixed_ns 3 samples 1", &t), 2);
    assert_true(t.figures.ops[HDI_KIND_COPY][HDI_WIDTH_HALF].ns_per_byte == 0.25 && t.figures.submit.fixed_ns == 3);
    const char *verdicts = "arithmetic inexact 1\nverdict 3 exact judged 3 wrong 2\nprobe 5\n";
    char others[256], ours[256];
    snprintf(others, sizeof others, HEAD "kernels 78\n%s", verdicts);
    snprintf(ours, sizeof ours, HEAD "kernels 77\n%s", verdicts);
    assert_int_equal(parse(others, &t), 0); /* of another build */
    assert_true(!t.arithmetic && t.judged[3][1] == 0 && t.caps.wrong[3][1] == 0 && t.rank_ns == 5);
    assert_int_equal(parse(ours, &t), 0);
    assert_true(t.arithmetic && t.caps.inexact == 1 && t.judged[3][1] == 3 && t.caps.wrong[3][1] == 2);
    hdi_facts_forget(&t, HD_FACT_VERDICT | HD_FACT_RANK);
    assert_true(!t.arithmetic && t.caps.inexact == 0 && t.judged[3][1] == 0 && t.caps.wrong[3][1] == 0 && t.rank_ns == 0);
    static const char *const bad_curves[] = {
        "", "1", "1 1 2", "0 1", "-1 1", "nan 1", "inf 1", "1 0", "1 65", "1 0.01", "1 nan", "2 1 2 1", "2 1 1 1", "1 1 x", "1e19 1",
        "1 1 2 1 3 1 4 1 5 1 6 1 7 1 8 1 9 1 10 1 11 1 12 1 13 1 14 1 15 1 16 1 17 1",
    };
    for (size_t i = 0; i < HDI_COUNT(bad_curves); i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "copy half fixed_ns 8 samples 2\ncurve copy half %s\n", bad_curves[i]);
        if (parse(text, &t) != 1 || t.figures.ops[HDI_KIND_COPY][HDI_WIDTH_HALF].knots != 0) fail_msg("curve \"%s\" was taken", bad_curves[i]);
    }
    assert_int_equal(parse(HEAD "copy half fixed_ns 8 samples 2\ncurve copy half 1 1 2 64\ncurve copy half 1 2\n", &t), 1); /* one for each figure */
    assert_true(t.figures.ops[HDI_KIND_COPY][HDI_WIDTH_HALF].knots == 2 && t.figures.ops[HDI_KIND_COPY][HDI_WIDTH_HALF].factor[1] == 64);
    t = before;
    assert_int_equal(parse("heddle facts 2\nmachine a machine, 2 cores\ndevice vulkan:1-2\ndriver driver?1.0\nsubmit fixed_ns 3 samples 1\n", &t), 5);
    assert_int_equal(parse("heddle facts 1\nmachine another\ndevice vulkan:1-2\ndriver driver?1.0\nsubmit fixed_ns 3 samples 1\n", &t), 4);
    assert_int_equal(parse("heddle facts 1\nmachine a machine, 2 cores\ndevice vulkan:1-2\ndriver driver?1.00\nsubmit fixed_ns 3 samples 1\n", &t), 2);
    assert_memory_equal(&t, &before, sizeof t);
    assert_int_equal(hdi_facts_parse("", 0, &t), 0);
}

static void the_file_is_kept(void **state) {
    (void)state;
    char folder[] = "/tmp/heddle-facts-XXXXXX", path[1024];
    hdi_facts t, again;
    uint32_t refused;
    memset(&t, 0, sizeof t);
    fill(&t);
    again = t;
    assert_non_null(mkdtemp(folder));
    assert_false(hdi_facts_load(&hdi_default_allocator, folder, &again, &refused));
    assert_false(hdi_facts_load(&hdi_default_allocator, NULL, &again, &refused));
    t.figures.submit = (hdi_figure){ .fixed_ns = 77, .samples = 7 };
    assert_true(hdi_facts_save(&hdi_default_allocator, folder, &t));
    t.figures.submit.fixed_ns = 78;
    assert_true(hdi_facts_save(&hdi_default_allocator, folder, &t));
    assert_true(hdi_facts_load(&hdi_default_allocator, folder, &again, &refused));
    assert_true(again.figures.submit.fixed_ns == 78 && refused == 0);
    assert_true(hdi_facts_path(folder, &t, path, sizeof path));
    FILE *file = fopen(path, "ab");
    for (int i = 0; i < HDI_FACTS_BYTES; i++) fputc('x', file);
    fclose(file);
    assert_false(hdi_facts_load(&hdi_default_allocator, folder, &again, &refused)); /* longer than any that was written */
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_false(hdi_facts_save(&hdi_default_allocator, folder, &t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_found_again), cmocka_unit_test(outliers_count_little), cmocka_unit_test(parts_are_never_negative), cmocka_unit_test(bad_samples_are_left_out),
        cmocka_unit_test(measurements_merge), cmocka_unit_test(a_curve_is_straight_between_knots), cmocka_unit_test(a_curve_tells_short_sizes_apart), cmocka_unit_test(a_curve_shows_what_the_line_misses), cmocka_unit_test(large_sizes_are_not_free),
        cmocka_unit_test(submissions_take_less_than_any_run), cmocka_unit_test(a_device_is_fitted),
        cmocka_unit_test(assumptions_are_of_the_right_size), cmocka_unit_test(text_reads_back), cmocka_unit_test(lines_are_refused_one_by_one),
        cmocka_unit_test(the_file_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
