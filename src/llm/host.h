/* host.h: what every file of the models room stands on: host memory through the caller's allocator, and failures with
 * their text. The room builds on <heddle.h> only, so it brings its own. */
#ifndef HDL_HOST_H
#define HDL_HOST_H

#include <heddle.h>
#include <string.h>

#if defined(__GNUC__)
#  define HDL_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#  define HDL_PRINTF(format_at, first_at)
#endif

/* Fills in `error` (NULL is allowed), unless it already holds a failure, and returns `status`. */
hd_status hdl_fail(hd_error *error, hd_status status, const char *format, ...) HDL_PRINTF(3, 4);

/* `allocator` itself, or malloc and free where it is NULL or zeroed. */
hd_allocator hdl_allocator(const hd_allocator *allocator);
/* `count` items of zeros, or NULL where there is no memory or the size would overflow. */
void *hdl_alloc(const hd_allocator *allocator, size_t count, size_t item_bytes);
void hdl_free(const hd_allocator *allocator, void *pointer, size_t count, size_t item_bytes);
/* Makes room for at least `count` items in the array *items_pointer, doubling *capacity; new room is not set. False when
 * there is no memory; the array is then unchanged. */
bool hdl_grow(const hd_allocator *allocator, void *items_pointer, size_t *capacity, size_t count, size_t item_bytes);

#endif
