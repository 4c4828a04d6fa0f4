/* devices.h: every device there is, one after the other, for tests that compare bits: the CPU with one thread and with two, and what
 * Vulkan and OpenCL show (lavapipe and PoCL where there is no GPU). */
#ifndef TESTS_TRAIN_DEVICES_H
#define TESTS_TRAIN_DEVICES_H

#include <heddle_train.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_DEVICES = 8 };
typedef struct place {
    hd_context *context;
    hd_device  *device;
    char        name[64];
} place;

static inline void check_on(const place *at, hd_status status) {
    if (status) fail_msg("%s: %s", at->name, hd_context_error(at->context));
}

static inline bool open_place(const char *backend, uint32_t threads, place *out) {
    *out = (place){ 0 };
    snprintf(out->name, sizeof out->name, "%s, %u threads", backend, threads);
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = backend, .cpu_threads = threads, .wait_ns = UINT64_C(600000000000) }, &out->context), HD_OK);
    if (hd_device_open(out->context, NULL, &out->device) == HD_OK && strcmp(hd_device_get_info(out->device)->backend, backend) == 0) return true;
    hd_context_destroy(out->context);
    return false;
}
static inline void close_place(place *at) {
    hd_device_close(at->device);
    hd_context_destroy(at->context);
}

/* Opens them all; the CPU is always there, and first. */
static inline int open_places(place out[MOST_DEVICES]) {
    static const struct { const char *backend; uint32_t threads; } wanted[] = { { "cpu", 1 }, { "cpu", 2 }, { "vulkan", 0 }, { "opencl", 0 }, { "cuda", 0 } };
    int count = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (open_place(wanted[i].backend, wanted[i].threads, &out[count])) count++;
    assert_true(count >= 2);
    return count;
}
static inline void close_places(place *places, int count) {
    for (int i = 0; i < count; i++) close_place(&places[i]);
}

static inline uint64_t hash_of(const void *bytes, size_t count, uint64_t hash) {
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#endif
