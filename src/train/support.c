/* support.c: errors, host memory and random words for train/; its files are the system's (support_posix.c,
 * support_windows.c). */
#include "train/support.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hd_status hdt_fail(hd_context *context, hd_status status, const char *format, ...) {
    hd_error error = { .status = status };
    va_list args;
    va_start(args, format);
    vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    for (char *at = error.text; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?';
    return hd_context_put_error(context, &error);
}
hd_status hdt_no_memory(hd_context *context) {
    return hdt_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory is left for training");
}

hd_status hdt_fail_io(hd_context *context, const char *what, const char *path) {
    return hdt_fail(context, HD_STATUS_IO, "%s cannot be %s: %s", path, what, strerror(errno));
}

void *hdt_alloc(hd_context *context, uint64_t count, uint64_t item_bytes) {
    if (item_bytes > 0 && count > SIZE_MAX / item_bytes) return NULL;
    const hd_allocator allocator = hd_context_allocator(context);
    const size_t bytes = (size_t)(count * item_bytes) + (count == 0);
    void *items = allocator.resize(allocator.user, NULL, 0, bytes);
    if (items) memset(items, 0, bytes);
    return items;
}
void hdt_free(hd_context *context, void *items, uint64_t count, uint64_t item_bytes) {
    if (!items) return;
    const hd_allocator allocator = hd_context_allocator(context);
    allocator.resize(allocator.user, items, (size_t)(count * item_bytes) + (count == 0), 0);
}

/* ---- orders of rows ---- */

uint64_t hdt_row_in_transformers(uint64_t row, uint64_t rows, uint32_t heads) {
    if (heads == 0) return row;
    const uint64_t size = rows / heads, i = row % size;
    return row - i + i % 2 * (size / 2) + i / 2;
}

/* ---- random words ---- */

void hdt_random(const uint32_t counter[4], uint64_t seed, uint32_t out_words[4]) {
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32), w[4];
    memcpy(w, counter, sizeof w);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        const uint64_t a = UINT64_C(0xD2511F53) * w[0], b = UINT64_C(0xCD9E8D57) * w[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ w[1] ^ low, (uint32_t)b, (uint32_t)(a >> 32) ^ w[3] ^ high,
                                   (uint32_t)a };
        memcpy(w, next, sizeof w);
    }
    memcpy(out_words, w, sizeof w);
}
