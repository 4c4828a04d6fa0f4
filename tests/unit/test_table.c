/* test_table.c: rows of measurements: written and read back, as another program would write them, and as an enemy would. The
 * source is included, not linked: the reader belongs to the CLI, which is built only where its JSON library is. */
#define _POSIX_C_SOURCE 200809L
#include "../../cli/text.c"
#include "../../cli/table.c"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char why[TABLE_WHY];

/* `bytes` of `from`, in memory of just that size. */
static bool parse_bytes(const char *from, size_t bytes, table *out) {
    char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, from, bytes);
    copy[bytes] = 0;
    return table_parse(copy, bytes, out, why);
}
static bool parse(const char *from, table *out) { return parse_bytes(from, strlen(from), out); }

static void refused(const char *from, const char *reason) {
    table read;
    assert_false(parse(from, &read));
    if (!strstr(why, reason)) fail_msg("\"%s\" instead of \"%s\"", why, reason);
    assert_null(read.rows);
}

#define HEAD "bench,device,op,median_ns\n"

static char *written(const table_row *row, bool json, size_t *out_bytes) {
    text to = { 0 };
    if (!json) table_add_heading(&to);
    if (json) table_add_json(&to, row);
    else table_add_csv(&to, row);
    assert_false(to.failed);
    *out_bytes = to.length;
    return to.data;
}

static void what_is_written_is_read(void **state) {
    (void)state;
    table_row row = table_row_empty();
    row.bench = "threshold";
    row.device = "cpu";
    row.device_name = "a \"quoted\", long name; caf\xC3\xA9";
    row.op = "matmul";
    row.size = "m=1 n=2";
    row.driver = " leading space";
    row.median_ns = 123456789012345.0;
    row.p90_ns = 0.1;
    row.temperature_c = -3.5;
    row.peak_flops_per_s = 1e300 / 3;
    row.max_ns = INFINITY;
    size_t bytes;
    char *from = written(&row, false, &bytes);
    table read;
    if (!table_parse(from, bytes, &read, why)) fail_msg("%s", why);
    assert_int_equal(read.row_count, 1);
    const table_row *got = &read.rows[0];
    assert_string_equal(got->bench, row.bench);
    assert_string_equal(got->device_name, row.device_name);
    assert_string_equal(got->driver, row.driver);
    assert_string_equal(got->machine, "");
    assert_true(got->median_ns == row.median_ns && got->p90_ns == row.p90_ns);
    assert_true(got->temperature_c == row.temperature_c && got->peak_flops_per_s == row.peak_flops_per_s);
    assert_true(isnan(got->max_ns) && isnan(got->synthetic));
    table_free(&read);
}

static void what_is_no_text_is_replaced(void **state) {
    (void)state;
    table_row row = table_row_empty();
    row.bench = "ops";
    row.device = "x\ny\x7F";
    row.op = "\xFF\xC3z\xED\xA0\x80";
    row.median_ns = 1;
    size_t bytes;
    char *from = written(&row, false, &bytes);
    table read;
    assert_true(table_parse(from, bytes, &read, why));
    assert_string_equal(read.rows[0].device, "x y ");
    assert_string_equal(read.rows[0].op, "??z???");
    table_free(&read);
    row.device = "a\\b\"c";
    from = written(&row, true, &bytes);
    assert_non_null(strstr(from, "\"device\": \"a\\\\b\\\"c\""));
    assert_non_null(strstr(from, "\"median_ns\": 1, \"p90_ns\": null"));
    assert_int_equal(from[bytes - 1], '\n');
    free(from);
}

static void other_programs_files(void **state) {
    (void)state;
    table read;
    /* A byte order mark, other order, a column of their own, quotes everywhere, empty lines, no end of line at the end. */
    const char *from = "\xEF\xBB\xBF\"op\",mine,\"median_ns\",device,bench\r\n\r\n\"a\"\"b\nc\",7,\"1.5e3\",,x\r\n\nq,,2,d,\"\"";
    if (!parse(from, &read)) fail_msg("%s", why);
    assert_int_equal(read.row_count, 2);
    assert_string_equal(read.rows[0].op, "a\"b\nc");
    assert_true(read.rows[0].median_ns == 1500);
    assert_string_equal(read.rows[0].device, "");
    assert_string_equal(read.rows[1].device, "d");
    assert_string_equal(read.rows[1].bench, "");
    table_free(&read);
    assert_true(parse(HEAD, &read));
    assert_int_equal(read.row_count, 0);
    table_free(&read);
}

static void bad_files_are_refused(void **state) {
    (void)state;
    table read;
    refused("", "no column bench");
    refused("bench,device,op\n", "no column median_ns");
    refused("bench,device,op,median_ns,op\n", "op stands twice");
    refused(HEAD "a,b,c\n", "line 2 has 3 cells, and the heading has 4");
    refused(HEAD "a,b,c,1,\n", "line 2 has 5 cells");
    refused(HEAD "\"a\nb\",b,c,1\na,b,c,x\n", "line 4: median_ns is \"x\"");
    refused(HEAD "a,b,c,\"1\n", "line 2: a quote that does not end");
    refused(HEAD "a,b\"b,c,1\n", "line 2: a quote or a carriage return");
    refused(HEAD "a,\"b\"b,c,1\n", "line 2: a quote or a carriage return");
    refused(HEAD "a,b\rb,c,1\n", "line 2: a quote or a carriage return");
    refused(HEAD "a,\xFF,c,1\n", "line 2: bytes that are no UTF-8");
    refused(HEAD "a,\xE2\x82,c,1\n", "no UTF-8");
    refused(HEAD "a,\x1B,c,1\n", "line 2: a control character");
    static const char *const no_numbers[] = { "nan", "inf", "1e999", "0x10", " 1", "1 ", "--1", "1e", "1e+", ".5", "-", "1,", "1.2.3", "+1",
                                              "1000000000000000000000000000000000000000000" };
    for (size_t i = 0; i < sizeof no_numbers / sizeof no_numbers[0]; i++) {
        char from[128];
        snprintf(from, sizeof from, HEAD "a,b,c,%s\n", no_numbers[i]);
        if (parse(from, &read)) fail_msg("\"%s\" was taken for a number", no_numbers[i]);
    }
    assert_false(parse_bytes(HEAD "a,b\0b,c,1\n", sizeof HEAD - 1 + 10, &read));
    assert_non_null(strstr(why, "control character"));
    char wide[2048] = HEAD;
    memset(wide, ',', 400);
    refused(wide, "too many columns");
}

/* Every beginning of a good file is read or refused, and nothing else happens (the sanitizers look on). */
static void cut_files(void **state) {
    (void)state;
    static const char from[] = HEAD "\"a\"\"\n\",b,\"caf\xC3\xA9\",1.5e-3\r\nx,y,z,7\r\n";
    for (size_t bytes = 0; bytes < sizeof from; bytes++) {
        table read;
        if (parse_bytes(from, bytes, &read)) table_free(&read);
        else assert_true(why[0] != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(what_is_no_text_is_replaced), cmocka_unit_test(other_programs_files),
        cmocka_unit_test(bad_files_are_refused), cmocka_unit_test(cut_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
