/* test_thoughts.c: thoughts apart from what is said, wherever the pieces of the text end. */
#include "cli/thoughts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char parts[2][256];

static void take(void *user, bool is_thought, const char *text, size_t bytes) {
    (void)user;
    strncat(parts[is_thought], text, bytes);
}

static const struct { const char *text, *said, *thought; bool inside; } cases[] = {
    { "plain text", "plain text", "", false },
    { "<think>\nhm\n</think>\n\nyes", "\n\nyes", "\nhm\n", false },
    { "hm\n</think>yes", "yes", "hm\n", true },
    { "a <think> b </think>", "a <think> b </think>", "", false }, /* it speaks of the mark */
    { "\n<think>a<think>b</think>c</think>", "\nc</think>", "a<think>b", false },
    { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes", "yes", "hm", false },
    { "<|channel|>final<|message|>yes <|end|>", "yes <|end|>", "", false },
    { "<<think>", "<<think>", "", false },
    { "<thi", "<thi", "", false },
    { "<think>never ends </thi", "", "never ends </thi", false },
    { "<|channel|><|channel|>analysis<|message|>a", "<|channel|>", "a", false },
};

static void marks_are_found_across_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t length = strlen(cases[i].text);
        for (size_t piece = 1; piece <= length; piece++) {
            thoughts t;
            memset(parts, 0, sizeof parts);
            thoughts_begin(&t, cases[i].inside, take, NULL);
            for (size_t at = 0; at < length; at += piece)
                thoughts_add(&t, cases[i].text + at, length - at < piece ? length - at : piece);
            thoughts_end(&t);
            if (strcmp(parts[false], cases[i].said) != 0 || strcmp(parts[true], cases[i].thought) != 0)
                fail_msg("%s by %zu: said \"%s\", thought \"%s\"", cases[i].text, piece, parts[false], parts[true]);
        }
    }
}

static void prompts_that_begin_a_thought(void **state) {
    (void)state;
    assert_true(thoughts_open("assistant\n<think>\n", 18));
    assert_true(thoughts_open("<think>", 7));
    assert_false(thoughts_open("<think>\n\n</think>\n\n", 19));
    assert_false(thoughts_open("think>", 6));
    assert_false(thoughts_open("", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(marks_are_found_across_pieces),
                                        cmocka_unit_test(prompts_that_begin_a_thought) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
