/* test_caps.c: a device's description as text and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "facts/caps.h"

static void assert_round_trip(const hdi_caps *caps) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_caps again;
    hd_error error = { 0 };
    hdi_caps_print(caps, &text);
    assert_int_equal(hdi_caps_parse(text.bytes, text.count, &again, &error), HD_OK);
    assert_string_equal(again.name, caps->name);
#define SAME(field, meaning) assert_true(again.field == caps->field);
    HDI_CAPS_LIST(SAME)
#undef SAME
    assert_memory_equal(again.wrong, caps->wrong, sizeof caps->wrong);
    hdi_text_free(&text);
}

static void test_round_trip(void **state) {
    (void)state;
    hdi_caps caps = { .name = "a device  of two words" };
    assert_round_trip(&(hdi_caps){ 0 }); /* no name */
    uint64_t value = UINT64_MAX;         /* "no limit", as some drivers say */
#define SET(field, meaning) caps.field = value--;
    HDI_CAPS_LIST(SET)
#undef SET
    for (uint32_t i = 0; i < 2 * HDI_CAPS_MODULES; i++) caps.wrong[i / 2][i % 2] = value--;
    assert_round_trip(&caps);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct { const char *text, *says; } cases[] = {
        { "name", "line 1: expected" }, { "\n\nsubgroup", "line 3: expected" }, { "subgroup ", "line 1: expected" },
        { "# a remark\nthread 1", "line 2: no fact is called thread" }, { "threads -1", "line 1: threads is not a whole number" },
        { "threads 1x", "line 1: threads is not" }, { "threads  1", "line 1: threads is not" },
        { "threads 18446744073709551616", "line 1: threads is not" },
        { "wrong.0 1", "line 1: no fact" }, { "wrong.64.fast 1", "line 1: no fact" }, { "wrong.01.fast 1", "line 1: no fact" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hdi_caps caps;
        hd_error error = { 0 };
        assert_int_equal(hdi_caps_parse(cases[i].text, strlen(cases[i].text), &caps, &error), HD_STATUS_PARSE);
        assert_non_null(strstr(error.text, cases[i].says));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip), cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
