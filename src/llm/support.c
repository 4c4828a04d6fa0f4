/* support.c: errors, host memory and names for the files of llm/. Relies on <heddle.h> only. An error text is one line
 * of printing ASCII whatever a file put into it, so that it can go to a terminal or a log as it is. */
#define _POSIX_C_SOURCE 200809L
#include "llm/support.h"
#include "llm/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void keep_printing(char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~') *text = '?';
}

uint64_t hdl_position(hdl_span text, hdl_span part) {
    if (text.count < part.count) return text.count;
    for (const uint8_t *at = text.bytes, *end = at + (text.count - part.count) + 1; at < end; at++) {
        at = memchr(at, part.bytes[0], (size_t)(end - at));
        if (!at) break;
        if (memcmp(at, part.bytes, (size_t)part.count) == 0) return (uint64_t)(at - text.bytes);
    }
    return text.count;
}

bool hdl_has(hdl_span text, const char *part) { return hdl_position(text, hdl_text(part)) < text.count; }

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

char *hdl_amount(uint64_t bytes, char out[HDL_AMOUNT]) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1023.95; unit++) value /= 1024;
    snprintf(out, HDL_AMOUNT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
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

bool hdl_grow(const hd_allocator *allocator, void *items_pointer, size_t *capacity, size_t count, size_t item_bytes) {
    if (count <= *capacity) return true;
    if (count > SIZE_MAX / 4 / item_bytes) return false;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < count) wanted *= 2;
    if (!hdl_resize(allocator, items_pointer, *capacity * item_bytes, wanted * item_bytes)) return false;
    *capacity = wanted;
    return true;
}

bool hdl_is_name(hdl_span text) {
    for (uint64_t at = 0; at < text.count;) {
        uint32_t code;
        at += hdl_utf8_read(text.bytes + at, (size_t)(text.count - at), &code);
        if (code == HDL_UTF8_INVALID || code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    }
    return true;
}

uint64_t hdl_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
