/* on_devices.h: a test of the operations on the devices that arguments name, or on the CPU; --short before them: fewer cases, for
 * devices whose compiler takes its time. */
#ifndef HEDDLE_TESTS_ON_DEVICES_H
#define HEDDLE_TESTS_ON_DEVICES_H

#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static hd_context *context;
static const char *const *names;
static int name_count;
static bool is_short;

#define CHECK(call) check((call), #call, __LINE__)
static inline void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

/* Fails the test if `test`, on any of them, says that something is wrong: how many cases are. */
static inline void assert_right_on_devices(unsigned (*test)(hd_device *device, const char *name)) {
    unsigned wrong = 0;
    for (int i = 0; i < (name_count ? name_count : 1); i++) {
        const char *name = name_count ? names[i] : "cpu";
        hd_device *device;
        if (hd_device_open(context, &(hd_device_desc){ .id = name }, &device)) fail_msg("%s: %s", name, hd_context_error(context));
        wrong += test(device, name);
        hd_device_close(device);
    }
    assert_int_equal(wrong, 0);
}

/* How many of so many floats have other bits. */
static inline uint64_t floats_that_differ(const float *x, const float *y, uint64_t count) {
    uint64_t differ = 0;
    for (uint64_t i = 0; i < count; i++) differ += memcmp(&x[i], &y[i], sizeof *x) != 0;
    return differ;
}

static inline int run_on_devices(int argc, char **argv, const struct CMUnitTest *test) {
    const struct CMUnitTest all[] = { *test };
    is_short = argc > 1 && strcmp(argv[1], "--short") == 0;
    names = (const char *const *)argv + 1 + is_short;
    name_count = argc - 1 - is_short;
    if (hd_context_create(NULL, &context)) return 1;
    const int failed = cmocka_run_group_tests(all, NULL, NULL);
    hd_context_destroy(context);
    return failed;
}
#endif
