/* support.c: errors and host memory for the files of llm/. Relies on <heddle.h> only. An error text is one line of
 * printing ASCII whatever a file put into it, so that it can go to a terminal or a log as it is. */
#include "llm/support.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
