/* Text from outside, made printable: every character and every pair of bytes. The source is included, not linked: it belongs to the
 * CLI. */
#include "../../cli/text.c"
#include <setjmp.h>
#include <cmocka.h>

static const char *printable(const char *from, size_t bytes, bool one_line) {
    static text shown;
    shown.length = 0;
    text_append(&shown, "", 0);
    text_add_printable(&shown, from, bytes, one_line);
    assert_false(shown.failed);
    return shown.data;
}

static size_t encode(uint32_t code, char out[5]) {
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = bytes; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(first[bytes] | code);
    out[bytes] = 0;
    return bytes;
}

static void every_character(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char from[5], escaped[16];
        const size_t bytes = encode(code, from);
        const bool surrogate = code >= 0xD800 && code < 0xE000, breaks = code == '\n' || code == '\t';
        const bool obeyed = code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
        uint32_t read = 0;
        snprintf(escaped, sizeof escaped, "\\u%04X", (unsigned)code);
        assert_int_equal(text_character(from, bytes, &read), surrogate ? 0 : bytes);
        assert_int_equal(text_character(from, bytes - 1, &read), 0);
        if (surrogate) assert_memory_equal(printable(from, bytes, false), "\\xED\\x", 6);
        else assert_string_equal(printable(from, bytes, false), obeyed && !breaks ? escaped : from);
        if (!surrogate) assert_string_equal(printable(from, bytes, true), breaks ? " " : obeyed ? escaped : from);
    }
}

/* Whatever the bytes are, what comes out is UTF-8 without a character that is obeyed, and is itself again when it goes in. */
static void every_pair_of_bytes(void **state) {
    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        const char from[] = { (char)(pair >> 8), (char)pair };
        char once[32];
        snprintf(once, sizeof once, "%s", printable(from, 2, true));
        for (const char *at = once; *at;) {
            uint32_t code;
            const size_t bytes = text_character(at, strlen(at), &code);
            assert_true(bytes > 0 && !is_control(code));
            at += bytes;
        }
        assert_string_equal(printable(once, strlen(once), true), once);
    }
    assert_string_equal(printable("\xC3", 1, false), "\\xC3"); /* cut */
    assert_string_equal(printable("\xC0\xAF\xF5", 3, false), "\\xC0\\xAF\\xF5");
}

static void cuts_are_between_characters(void **state) {
    (void)state;
    static const char name[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
    static const size_t cuts[] = { 0, 1, 3, 6, 10, 11, 11 };
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) assert_int_equal(text_cut(name, i), cuts[i]);
    assert_int_equal(text_characters(name), 5);
}

static const char *folded(const char *line, size_t columns, size_t below) {
    static char kept[256];
    text made = { 0 };
    text_add_folded(&made, line, columns, below);
    snprintf(kept, sizeof kept, "%s", made.data);
    text_free(&made);
    return kept;
}

static void lines_are_folded_at_spaces(void **state) {
    (void)state;
    assert_string_equal(folded("", 10, 2), "");
    assert_string_equal(folded("0123456789", 10, 2), "0123456789");
    assert_string_equal(folded("name  one two three", 10, 6), "name  one\n      two\n      three");
    assert_string_equal(folded("name  one two", 13, 6), "name  one two");
    assert_string_equal(folded("name  one two", 12, 6), "name  one\n      two");
    assert_string_equal(folded("name  atoolongword b", 10, 6), "name  atoolongword\n      b");
    assert_string_equal(folded("name  atoolongword", 10, 6), "name  atoolongword");
    assert_string_equal(folded("a\xC3\xA9\xC3\xA9 b", 4, 0), "a\xC3\xA9\xC3\xA9\nb");
    assert_string_equal(folded("ab cd", 4, 0), "ab\ncd");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(lines_are_folded_at_spaces), cmocka_unit_test(every_character), cmocka_unit_test(every_pair_of_bytes),
                                        cmocka_unit_test(cuts_are_between_characters) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
