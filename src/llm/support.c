/* support.c: errors, host memory and names for the files of llm/. Relies on <heddle.h> only. An error text is one line of
 * printing ASCII whatever a file put into it, so that it can go to a terminal or a log as it is. */
#define _POSIX_C_SOURCE 200809L
#include "llm/support.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void keep_printing(char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~') *text = '?';
}

hd_status hdl_fail(hd_error *error, hd_status status, const char *format, ...) {
    if (!error || error->status != HD_OK) return status;
    va_list args;
    va_start(args, format);
    memset(error, 0, sizeof *error);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    keep_printing(error->text);
    return status;
}

char *hdl_quote(hdl_span text, char out[HDL_QUOTE]) {
    enum { SHOWN = HDL_QUOTE - 6 };
    const bool cut = text.count > SHOWN;
    const size_t shown = cut ? SHOWN : (size_t)text.count;
    char *at = out;
    *at++ = '\'';
    for (size_t i = 0; i < shown; i++) *at++ = text.bytes[i] < ' ' || text.bytes[i] > '~' ? '?' : (char)text.bytes[i];
    memcpy(at, cut ? "...'" : "'", cut ? 5 : 2);
    return out;
}

static void *default_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}
const hd_allocator hdl_default_allocator = { .resize = default_resize };

void *hdl_alloc(const hd_allocator *allocator, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    const size_t wanted = bytes ? (size_t)bytes : 1;
    void *pointer = allocator->resize(allocator->user, NULL, 0, wanted);
    if (pointer) memset(pointer, 0, wanted);
    return pointer;
}

void hdl_free(const hd_allocator *allocator, void *pointer, uint64_t bytes) {
    if (pointer) allocator->resize(allocator->user, pointer, bytes ? (size_t)bytes : 1, 0);
}

bool hdl_resize(const hd_allocator *allocator, void *pointer, uint64_t old_bytes, uint64_t new_bytes) {
    void *old, *resized;
    memcpy(&old, pointer, sizeof old);
    if (new_bytes > SIZE_MAX / 2) return false;
    resized = allocator->resize(allocator->user, old, (size_t)old_bytes, (size_t)new_bytes);
    if (!resized) return false;
    memcpy(pointer, &resized, sizeof resized);
    return true;
}

/* The bytes that follow a first byte of UTF-8, and the least code point that needs so many; -1 for no first byte. */
static int follow(uint8_t first, uint32_t *out_bits, uint32_t *out_least) {
    if (first < 0x80) { *out_bits = first; *out_least = 0; return 0; }
    if (first >= 0xc2 && first < 0xe0) { *out_bits = first & 0x1fu; *out_least = 0x80; return 1; }
    if (first >= 0xe0 && first < 0xf0) { *out_bits = first & 0x0fu; *out_least = 0x800; return 2; }
    if (first >= 0xf0 && first < 0xf5) { *out_bits = first & 0x07u; *out_least = 0x10000; return 3; }
    return -1;
}

bool hdl_is_name(hdl_span text) {
    for (uint64_t i = 0; i < text.count;) {
        uint32_t code, least;
        const int more = follow(text.bytes[i++], &code, &least);
        if (more < 0 || (uint64_t)more > text.count - i) return false;
        for (int k = 0; k < more; k++, i++) {
            if ((text.bytes[i] & 0xc0) != 0x80) return false;
            code = code << 6 | (text.bytes[i] & 0x3fu);
        }
        if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
        if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    }
    return true;
}

uint64_t hdl_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
