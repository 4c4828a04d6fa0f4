/* test_chart.c: where a chart puts things, how it writes numbers, and that names from outside stay text in it. The sources are
 * included, not linked: they belong to the CLI, which is built only where its JSON library is. */
#include "../../cli/chart.c"
#include "../../cli/chart_scale.c"
#include "../../cli/text.c"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void near(double a, double b) {
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

/* ---- scales ---- */

static void values_have_their_places(void **state) {
    (void)state;
    const chart_scale scale = { 1, 10000, 100, 500 };
    near(chart_place(&scale, 1), 100);
    near(chart_place(&scale, 100), 300);
    near(chart_place(&scale, 10000), 500);
    const chart_scale upside_down = { 1, 100, 300, 0 };
    near(chart_place(&upside_down, 10), 150);
    const chart_scale wide = chart_scale_of(10, 1000, 0, 1), narrow = chart_scale_of(7, 7, 0, 1);
    assert_true(wide.low < 10 && wide.low > 8 && wide.high > 1000 && wide.high < 1250);
    near(narrow.low, 3.5);
    near(narrow.high, 14);
}

/* Ticks rise, lie on the scale, are not too many, and are at least two wherever a scale is as wide as heddle's are. */
static void ticks_suit_every_scale(void **state) {
    (void)state;
    static const double spans[] = { 1.5, 2, 3, 7, 20, 100, 1e3, 1e6, 1e9, 1e15, 1e200 };
    for (chart_unit unit = CHART_COUNT; unit <= CHART_TIME; unit++)
        for (double least = 1e-3; least < 1e13; least *= 1.7)
            for (size_t s = 0; s < sizeof spans / sizeof spans[0]; s++)
                for (size_t most = 2; most <= 10; most += 4) {
                    double ticks[CHART_TICKS];
                    const chart_scale scale = chart_scale_of(least, least * spans[s], 0, 1);
                    const size_t count = chart_ticks(&scale, unit, most, ticks);
                    if (count > most) fail_msg("%zu ticks of %zu for %g times %g", count, most, least, spans[s]);
                    if (count < 2 && most >= 6 && spans[s] < 1e100) fail_msg("%zu ticks for %g times %g", count, least, spans[s]);
                    for (size_t i = 0; i < count; i++)
                        if (ticks[i] < scale.low * 0.999999 || ticks[i] > scale.high * 1.000001 || (i > 0 && ticks[i] <= ticks[i - 1])) fail_msg("tick %g of %g times %g", ticks[i], least, spans[s]);
                }
}

static void ticks_are_round(void **state) {
    (void)state;
    double ticks[CHART_TICKS];
    const chart_scale decades = { 900, 2e7, 0, 1 };
    assert_int_equal(chart_ticks(&decades, CHART_COUNT, 8, ticks), 5);
    near(ticks[0], 1e3);
    near(ticks[4], 1e7);
    const chart_scale bytes = { 1000, 6e8, 0, 1 };
    assert_int_equal(chart_ticks(&bytes, CHART_BYTES, 6, ticks), 5);
    near(ticks[0], 4096);
    near(ticks[1], 65536);
    const chart_scale one = { 80, 700, 0, 1 };
    assert_int_equal(chart_ticks(&one, CHART_COUNT, 6, ticks), 3);
    near(ticks[0], 100);
    near(ticks[1], 200);
    near(ticks[2], 500);
}

static void written(double value, chart_unit unit, int digits, const char *expected) {
    char number[CHART_NUMBER];
    assert_string_equal(chart_number(value, unit, digits, number), expected);
}

static void numbers_have_units(void **state) {
    (void)state;
    written(0, CHART_COUNT, 3, "0");
    written(1, CHART_COUNT, 3, "1");
    written(1000, CHART_COUNT, 3, "1k");
    written(1024, CHART_COUNT, 3, "1.02k");
    written(16777216, CHART_COUNT, 3, "16.8M");
    written(999.6, CHART_COUNT, 3, "1k");
    written(999499, CHART_COUNT, 3, "999k");
    written(4.2e13, CHART_COUNT, 3, "42T");
    written(0.25, CHART_COUNT, 3, "0.25");
    written(1e-5, CHART_COUNT, 3, "1e-05");
    written(1e30, CHART_COUNT, 3, "1e+12E");
    written(INFINITY, CHART_COUNT, 3, "inf");
    written(1024, CHART_BYTES, 3, "1 KiB");
    written(1023, CHART_BYTES, 4, "1023 B");
    written(536870912, CHART_BYTES, 4, "512 MiB");
    written(10, CHART_TIME, 3, "10 ns");
    written(1500, CHART_TIME, 3, "1.5 \xC2\xB5s");
    written(123456789, CHART_TIME, 4, "123.5 ms");
    written(9e12, CHART_TIME, 4, "9000 s");
}

/* ---- labels ---- */

static void labels_keep_apart(void **state) {
    (void)state;
    double apart[] = { 10, 30, 60 }, same[] = { 50, 50, 50 }, edge[] = { 1, 2, 99 }, many[] = { 5, 5, 5, 5, 5, 5 };
    chart_spread(apart, 3, 15, 0, 100);
    near(apart[0], 10);
    near(apart[1], 30);
    near(apart[2], 60);
    chart_spread(same, 3, 15, 0, 100);
    near(same[0], 35);
    near(same[1], 50);
    near(same[2], 65);
    chart_spread(edge, 3, 15, 0, 100);
    near(edge[0], 0);
    near(edge[1], 15);
    near(edge[2], 99);
    chart_spread(many, 6, 15, 0, 50); /* no room for all: they share it */
    for (size_t i = 0; i < 6; i++) near(many[i], 10 * (double)i);
}

static void labels_keep_apart_always(void **state) {
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        double places[12];
        const size_t count = 1 + (size_t)round % 12;
        double last = -20;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            places[i] = last += (double)(seed >> 24) / 8; /* up to 32 further, also beyond the end */
        }
        chart_spread(places, count, 15, 0, 200);
        for (size_t i = 0; i < count; i++) {
            if (places[i] < -1e-9 || places[i] > 200 + 1e-9) fail_msg("round %d: %g is outside", round, places[i]);
            if (i > 0 && places[i] - places[i - 1] < 15 - 1e-9) fail_msg("round %d: %g and %g touch", round, places[i - 1], places[i]);
        }
    }
}

/* ---- names from outside ---- */

static void html(const char *name, size_t most, const char *expected) {
    text got = { 0 };
    text_add_html(&got, name, most);
    assert_string_equal(got.data ? got.data : "", expected);
    text_free(&got);
}

static void names_stay_text(void **state) {
    (void)state;
    html("<script>\"&'", 40, "&lt;script&gt;&quot;&amp;&#39;");
    html("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", 40, "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
    html("a\x01\x7F\n\xFF\xC3", 40, "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    html("\xC0\xAF\xED\xA0\x80", 40, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* overlong, surrogate */
    html("\xE2\x80\xAE" "abc", 40, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "abc"); /* would turn the direction */
    html("abcdef", 6, "abcdef");
    html("abcdefg", 6, "abcde\xE2\x80\xA6");
    text got = { 0 };
    text_add_markdown(&got, "a|b `c` <d> [e](f) *g*\n");
    assert_string_equal(got.data, "a\\|b \\`c\\` &lt;d&gt; \\[e\\](f) \\*g\\*\xEF\xBF\xBD");
    text_free(&got);
}

static void digits_are_the_shortest(void **state) {
    (void)state;
    static const struct { double number; const char *digits; } cases[] = { { 123456.5, "123456.5" }, { 0.1, "0.1" }, { 1e15, "1e+15" }, { 1234567890123, "1234567890123" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text got = { 0 };
        text_add_number(&got, cases[i].number);
        assert_string_equal(got.data, cases[i].digits);
        text_free(&got);
    }
}

/* ---- pictures ---- */

static void describe(const void *source, text *to) { text_add(to, "<%s>", (const char *)source); }

/* Whatever the values are, the picture has numbers in it and each tag that is opened is closed. */
static void pictures_are_whole(void **state) {
    (void)state;
    static const double values[] = { 1e-300, 1, 1e3, 7e8, 1e300 };
    for (size_t a = 0; a < 5; a++)
        for (size_t b = a; b < 5; b++)
            for (int rows = 0; rows < 2; rows++) {
                const chart_point points[] = { { values[a], rows ? 0 : values[b], values[a], values[b], true, "a & b", "tip" }, { values[b], rows ? 1 : values[a], NAN, NAN, false, NULL, "tip" } };
                const chart_line lines[] = { { "one <", 0, false, true, values[b], values[a], points, 2 }, { "two", 7, true, true, NAN, NAN, points, 2 } };
                const chart_mark marks[] = { { values[a], 1, "from <1" } };
                const char *const names[] = { "row <1>", "row 2" };
                const chart picture = { .title = "<t>", .x_title = "x", .y_title = "y", .x_least = values[a], .x_most = values[b], .y_least = values[a], .y_most = values[b],
                                        .rows = rows ? names : NULL, .row_count = rows ? 2 : 0, .lines = lines, .line_count = 2, .marks = marks, .mark_count = 1, .describe = describe };
                text got = { 0 };
                chart_draw(&picture, &got);
                assert_false(got.failed);
                if (strstr(got.data, "nan") || strstr(got.data, "inf")) fail_msg("no number in %s", got.data);
                size_t open = 0, close = 0;
                for (const char *at = got.data; (at = strstr(at, "<g")); at++) open += at[2] == '>' || at[2] == ' ';
                for (const char *at = got.data; (at = strstr(at, "</g>")); at++) close++;
                assert_int_equal(open, close);
                assert_null(strstr(got.data, "<t>"));
                assert_null(strstr(got.data, "<tip>"));
                assert_non_null(strstr(got.data, "&lt;tip&gt;"));
                text_free(&got);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_places), cmocka_unit_test(ticks_suit_every_scale), cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(numbers_have_units), cmocka_unit_test(labels_keep_apart), cmocka_unit_test(labels_keep_apart_always),
        cmocka_unit_test(names_stay_text), cmocka_unit_test(digits_are_the_shortest), cmocka_unit_test(pictures_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
