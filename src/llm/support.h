/* support.h: what the files of llm/ stand on: errors, host memory, pieces of bytes. The room uses the
 * library from outside (<heddle.h> only), so it has its own. Everything here is thread-safe. */
#ifndef HDL_SUPPORT_H
#define HDL_SUPPORT_H

#include <heddle.h>
#include <string.h>

#if defined(__GNUC__)
#  define HDL_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#  define HDL_PRINTF(format_at, first_at)
#endif

/* Bytes of somebody else's. Text from a file is such a span too: any bytes, no ending zero. */
typedef struct hdl_span {
    const uint8_t *bytes;
    uint64_t       count;
} hdl_span;

/* The span of a C string, without its ending zero. */
static inline hdl_span hdl_text(const char *text) { return (hdl_span){ (const uint8_t *)text, strlen(text) }; }
static inline bool hdl_same(hdl_span a, hdl_span b) { return a.count == b.count && (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0); }

/* Fills in `error` (may be NULL), unless it already holds a failure, and returns `status`. One line: what is not a
 * printing ASCII character becomes '?'. */
hd_status hdl_fail(hd_error *error, hd_status status, const char *format, ...) HDL_PRINTF(3, 4);

/* malloc and free. */
extern const hd_allocator hdl_default_allocator;
/* `bytes` zeroed bytes (0 gives one), or NULL. hdl_free takes the same number. */
void *hdl_alloc(const hd_allocator *allocator, uint64_t bytes);
void hdl_free(const hd_allocator *allocator, void *pointer, uint64_t bytes);
/* *pointer with new_bytes (at least 1) in place of old_bytes; new bytes are not zeroed. False, and nothing changed, where there is no
 * memory. */
bool hdl_resize(const hd_allocator *allocator, void *pointer, uint64_t old_bytes, uint64_t new_bytes);

#endif
