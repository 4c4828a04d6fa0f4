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

/* Saves a trainer, ends it, and reads what there is to go on with. */
static inline void save_and_read(const place *at, hd_trainer *trainer, const char *path, hd_trainer_desc *out_desc, uint64_t *out_step) {
    check_on(at, hd_trainer_save(trainer, path));
    hd_trainer_destroy(trainer);
    check_on(at, hd_trainer_read(at->context, path, out_desc, out_step));
}

/* What a batch in pieces came to is what it came to in one, which comes first: its hash and report. */
static inline void check_pieces(uint32_t pieces, uint64_t got, const hd_train_report *report, uint64_t *whole, hd_train_report *first) {
    if (pieces == 1) *whole = got, *first = *report;
    if (got != *whole || report->loss != first->loss || report->norm != first->norm)
        fail_msg("in %u pieces: %016llx, loss %.9g, norm %.9g, and not %016llx, %.9g, %.9g as in one", pieces, (unsigned long long)got,
                 (double)report->loss, (double)report->norm, (unsigned long long)*whole, (double)first->loss, (double)first->norm);
}

static inline int remove_folder(const char *folder) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}
#endif
