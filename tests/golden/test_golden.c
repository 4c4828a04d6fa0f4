/* test_golden.c: planning is a pure function: program text and a device's facts in, plan and commands out, to the byte.
 * Five invented devices stand for hardware that nobody here owns. After a wanted change run `test_golden --update` and
 * read the difference like any other. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = { "big-gpu", "phone", "lanes-16", "no-f16", "bindings-128m" };
static const char *const programs[] = { "ffn", "chain", "attention", "layer", "prefill", "experts" };
static bool update;

static char *read_file(const char *folder, const char *name, const char *end) {
    char path[512];
    snprintf(path, sizeof path, HEDDLE_TESTS_DIR "/golden/%s%s%s", folder, name, end);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = calloc(1, 1 << 20);
    size_t count = fread(text, 1, (1 << 20) - 1, file);
    text[count] = 0;
    fclose(file);
    return text;
}

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, HEDDLE_TESTS_DIR "/golden/%s.txt", name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *explain(const char *program_name, const char *device, hd_math math) {
    hd_context *context;
    hd_program *program;
    hd_plan_desc desc = { .math = math };
    char *text = read_file("", program_name, ".hd"), *caps = read_file("caps/", device, ".txt");
    assert_non_null(text);
    assert_non_null(caps);
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context), HD_OK);
    if (hd_program_parse(context, text, strlen(text), &program)) fail_msg("%s: %s", program_name, hd_context_error(context));
    size_t needed = 0;
    char *out = NULL;
    if (hd_explain(context, program, caps, &desc, NULL, 0, &needed)) {
        out = calloc(1, 1200);
        snprintf(out, 1200, "refused: %s\n", hd_context_error(context));
    } else {
        out = calloc(1, needed);
        assert_int_equal(hd_explain(context, program, caps, &desc, out, needed, NULL), HD_OK);
        char *again = calloc(1, needed);
        assert_int_equal(hd_explain(context, program, caps, &desc, again, needed, NULL), HD_OK);
        assert_string_equal(out, again);
        free(again);
    }
    hd_context_destroy(context);
    free(text);
    free(caps);
    return out;
}

static void plans_are_as_written(void **state) {
    (void)state;
    unsigned differ = 0;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
            for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
                char name[128];
                snprintf(name, sizeof name, "%s.%s.%s", programs[p], devices[d], math == HD_MATH_FAST ? "fast" : "exact");
                char *now = explain(programs[p], devices[d], (hd_math)math), *wanted = read_file("", name, ".txt");
                if (update) write_file(name, now);
                else if (!wanted || strcmp(now, wanted) != 0) {
                    print_error("%s differs from tests/golden/%s.txt; now it is:\n%s\n", name, name, now);
                    differ++;
                }
                free(now);
                free(wanted);
            }
    assert_int_equal(differ, 0);
}

int main(int count, char **arguments) {
    update = count > 1 && strcmp(arguments[1], "--update") == 0;
    const struct CMUnitTest tests[] = { cmocka_unit_test(plans_are_as_written) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
