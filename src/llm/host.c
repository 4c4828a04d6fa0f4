/* host.c: host memory through the caller's allocator and failures with their text, for the models room. Every
 * allocation can fail; nothing here prints. */
#include "llm/host.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

hd_status hdl_fail(hd_error *error, hd_status status, const char *format, ...) {
    if (!error || error->status) return status;
    error->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

static void *default_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes) return realloc(old, new_bytes);
    free(old);
    return NULL;
}

hd_allocator hdl_allocator(const hd_allocator *allocator) {
    return allocator && allocator->resize ? *allocator : (hd_allocator){ default_resize, NULL };
}

void *hdl_alloc(const hd_allocator *allocator, size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) return NULL;
    void *pointer = allocator->resize(allocator->user, NULL, 0, bytes ? bytes : 1);
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

void hdl_free(const hd_allocator *allocator, void *pointer, size_t count, size_t item_bytes) {
    size_t bytes = count * item_bytes;
    if (pointer) allocator->resize(allocator->user, pointer, bytes ? bytes : 1, 0);
}

bool hdl_grow(const hd_allocator *allocator, void *items_pointer, size_t *capacity, size_t count, size_t item_bytes) {
    if (count <= *capacity) return true;
    if (count > SIZE_MAX / 4 / item_bytes) return false;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < count) wanted *= 2;
    void *items;
    memcpy(&items, items_pointer, sizeof items);
    void *grown = allocator->resize(allocator->user, items, *capacity * item_bytes, wanted * item_bytes);
    if (!grown) return false;
    memcpy(items_pointer, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
