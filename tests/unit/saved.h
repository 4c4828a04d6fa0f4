/* saved.h: a plan saved and read back, for tests: its text and what explains it are the same to the byte. */
#ifndef TESTS_SAVED_H
#define TESTS_SAVED_H

#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef hd_status (*saved_text_fn)(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed);
static inline char *saved_text(saved_text_fn print, const hd_plan *plan, size_t *out_bytes) {
    assert_int_equal(print(plan, NULL, 0, out_bytes), HD_OK);
    char *text = malloc(*out_bytes);
    assert_non_null(text);
    assert_int_equal(print(plan, text, *out_bytes, NULL), HD_OK);
    *out_bytes = strlen(text);
    return text;
}

static inline hd_plan *saved_and_loaded(hd_context *of, const hd_plan *plan, hd_device *const *devices, uint32_t count) {
    size_t bytes, other_bytes;
    hd_plan *again = NULL;
    char *text = saved_text(hd_plan_save, plan, &bytes), *explained = saved_text(hd_plan_explain, plan, &other_bytes);
    if (hd_plan_load(devices[0], text, bytes, &(hd_plan_desc){ .beside = devices + 1, .beside_count = count - 1 }, &again))
        fail_msg("%s", hd_context_error(of));
    char *text_again = saved_text(hd_plan_save, again, &bytes), *explained_again = saved_text(hd_plan_explain, again, &other_bytes);
    assert_string_equal(text, text_again);
    assert_string_equal(explained, explained_again);
    free(text);
    free(text_again);
    free(explained);
    free(explained_again);
    return again;
}
#endif
