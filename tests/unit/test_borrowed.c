/* test_borrowed.c: a file's mapping as a buffer: a device that can reads it where it lies, with no byte moved, and says so where it
 * cannot; then the bytes are written, to the same result. Ids of back ends as arguments: these alone, and they can. */
#define _DEFAULT_SOURCE
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { PAGE = 4096, BYTES = 5 * PAGE + 100, AT = 256, COUNT = 4000 }; /* the numbers lie across pages, within the file */

/* A mapped file: numbers from byte AT on. */
static float *map_file(int may, int flags) {
    char path[] = "/tmp/heddle-borrowed-XXXXXX";
    static char bytes[BYTES];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    for (int i = 0; i < COUNT; i++) memcpy(bytes + AT + 4 * i, &(float){ (float)i }, 4);
    assert_int_equal(write(file, bytes, BYTES), BYTES);
    char *map = mmap(NULL, BYTES, may, flags, file, 0);
    close(file);
    assert_true(map != MAP_FAILED);
    return (float *)(void *)(map + AT);
}

static void is_tripled(hd_context *context, hd_plan *plan, const float *x) {
    static float y[COUNT];
    if (hd_plan_run(plan, NULL) || hd_plan_read(plan, "y", y, sizeof y)) fail_msg("%s", hd_context_error(context));
    for (int i = 0; i < COUNT; i++)
        if (y[i] != 3 * x[i]) fail_msg("element %d is %g, not %g", i, (double)y[i], 3 * (double)x[i]);
}

static hd_context *context;
static hd_device  *device;
static char        told[384]; /* by the last call that was refused */

static bool opens(const char *id) {
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) return true;
    print_message("%s is not here\n", id);
    hd_context_destroy(context);
    return false;
}

/* The bytes as a buffer in place; NULL where the device cannot, which it says. `lends`: it is known to be able to. */
static hd_buffer *lend(void *memory, uint64_t bytes, bool lends) {
    hd_buffer *buffer = NULL;
    const hd_status status = hd_buffer_create(device, &(hd_buffer_desc){ .bytes = bytes, .memory = memory }, &buffer);
    snprintf(told, sizeof told, "%s", status ? hd_context_error(context) : "");
    if (status && (lends || status != HD_STATUS_UNSUPPORTED || !strstr(told, "in place; write the bytes into a buffer"))) fail_msg("%s", told);
    return buffer;
}

static void lend_to(const char *id, bool lends) {
    hd_plan *plan;
    if (!opens(id)) return;
    float *const x = map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    hd_program *p = hd_program_create(context);
    hd_output(p, "y", hd_scale(p, hd_input(p, "x", HD_F32, HD_SHAPE(COUNT)), 3, 0));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    hd_buffer *buffer = lend(x, 4 * COUNT, lends);
    const bool in_place = buffer;
    if (!in_place) {
        assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 4 * COUNT }, &buffer), HD_OK);
        assert_int_equal(hd_buffer_write(buffer, 0, x, 4 * COUNT), HD_OK);
    }
    hd_device_stats before, after;
    assert_int_equal(hd_device_get_stats(device, &before), HD_OK);
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 0), HD_OK);
    is_tripled(context, plan, x);
    assert_int_equal(hd_device_get_stats(device, &after), HD_OK);
    assert_true(after.upload_bytes - before.upload_bytes < 4 * COUNT);
    for (int i = 0; i < COUNT && in_place; i++) x[i] += 1; /* what changes there is what the device sees */
    is_tripled(context, plan, x);
    print_message("%s: %s\n", id, in_place ? "in place" : "the bytes were written");
    hd_context_destroy(context);
    munmap((char *)x - AT, BYTES);
}

/* ---- weights of a model, mapped to be read ---- */

enum { WIDE = 4096 };
static const uint64_t weight_bytes = UINT64_C(4) * WIDE * WIDE;

/* 64 MiB: the first of each row is the row's number, the others are 0. */
static float *map_weights(void) {
    char path[] = "/tmp/heddle-borrowed-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && ftruncate(file, (off_t)weight_bytes) == 0);
    unlink(path);
    for (int row = 0; row < WIDE; row++) assert_int_equal(pwrite(file, &(float){ (float)row }, 4, (off_t)row * WIDE * 4), 4);
    float *map = mmap(NULL, weight_bytes, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    assert_true(map != MAP_FAILED);
    return map;
}

/* The process' own memory, without pages of files. */
static long own_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "RssAnon: %ld", &kib);
    if (status) fclose(status);
    return kib;
}

/* What multiplies with them takes no copy of them, on either side. */
static void multiply_by_file(const char *id, bool lends) {
    static float x[WIDE], y[WIDE];
    hd_plan *plan;
    if (!opens(id)) return;
    hd_program *p = hd_program_create(context);
    const hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(WIDE, WIDE));
    hd_output(p, "y", hd_matmul_with(p, hd_input(p, "x", HD_F32, HD_SHAPE(1, WIDE)), w, HD_TRANSPOSE_B));
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    float *const weights = map_weights();
    const long before = own_kib();
    hd_buffer *buffer = lend(weights, weight_bytes, lends);
    for (int i = 0; i < WIDE; i++) x[i] = 2;
    if (buffer) {
        if (hd_plan_bind(plan, "w", buffer, 0) || hd_plan_write(plan, "x", x, sizeof x) || hd_plan_run(plan, NULL) ||
            hd_plan_read(plan, "y", y, sizeof y))
            fail_msg("%s", hd_context_error(context));
        for (int i = 0; i < WIDE; i++) assert_true(y[i] == 2 * (float)i);
        const long grown = own_kib() - before;
        hd_device_stats stats;
        assert_int_equal(hd_device_get_stats(device, &stats), HD_OK);
        print_message("%s: 65536 KiB of weights where the file is mapped; own memory grew by %ld KiB, %llu bytes uploaded\n", id, grown,
                      (unsigned long long)stats.upload_bytes);
        /* a copy would be 65,536 KiB; what sanitizers keep of a driver's compiler is up to 36,000 */
        assert_true(grown < 48 << 10 && stats.upload_bytes < 1 << 20);
    } else {
        print_message("%s does not take a file's pages\n", id);
    }
    hd_context_destroy(context);
    munmap(weights, weight_bytes);
}

static const char *const *wanted; /* ended by NULL; NULL: all */

static void each(void (*body)(const char *id, bool lends)) {
    for (const char *const *id = wanted; id && *id; id++) body(*id, true);
    if (wanted) return;
    body("cpu", true);
    body("vulkan", true); /* lavapipe; others may refuse a file's pages */
    body("opencl", false); /* PoCL takes it */
    body("cuda", false);
    body("hip", false);
}

static void a_mapping_is_a_buffer(void **state) {
    (void)state;
    each(lend_to);
}

static void a_files_weights_are_not_copied(void **state) {
    (void)state;
    each(multiply_by_file);
}

/* Where pages are registered with a driver: private ones that may not be written it does not take, nor any twice. */
static void what_cannot_be_lent_is_refused(void **state) {
    (void)state;
    for (const char *const *id = wanted; id && *id; id++) {
        if (!opens(*id)) continue;
        float *const of_file = map_file(PROT_READ, MAP_PRIVATE), *const x = map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE);
        assert_null(lend(of_file, 4 * COUNT, false));
        hd_buffer *first = lend(x, 4 * COUNT, true);
        assert_null(lend(x + 64, 256, false));
        if (!strstr(told, "another has some of these pages already")) fail_msg("%s", told);
        hd_buffer_destroy(first);
        assert_non_null(lend(x + 64, 256, true));
        assert_null(lend(of_file + 2, 256, false));
        if (!strstr(told, "begins at no multiple of 64")) fail_msg("%s", told);
        hd_context_destroy(context);
        munmap((char *)x - AT, BYTES);
        munmap((char *)of_file - AT, BYTES);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = (const char *const *)(argv + 1);
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_mapping_is_a_buffer), cmocka_unit_test(a_files_weights_are_not_copied),
                                        cmocka_unit_test(what_cannot_be_lent_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
