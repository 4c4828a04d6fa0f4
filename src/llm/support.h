/* support.h: what the files of llm/ stand on: errors, host memory, pieces of bytes, checked arithmetic. The room uses
 * the library from outside (<heddle.h> only), so it has its own. Everything here is thread-safe. */
#ifndef HDL_SUPPORT_H
#define HDL_SUPPORT_H

#include <heddle.h>
#include <string.h>

#if defined(__MINGW32__)
#  define HDL_PRINTF(format_at, first_at) __attribute__((format(gnu_printf, format_at, first_at)))
#elif defined(__GNUC__)
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
static inline bool hdl_same(hdl_span a, hdl_span b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

/* Whether a part stands somewhere in a text. */
bool hdl_has(hdl_span text, const char *part);
/* Where a part that is not empty first stands in a text; the text's length: nowhere. */
uint64_t hdl_position(hdl_span text, hdl_span part);

/* Fills in `error` (may be NULL), unless it already holds a failure, and returns `status`. One line: what is not a
 * printing ASCII character becomes '?'. */
hd_status hdl_fail(hd_error *error, hd_status status, const char *format, ...) HDL_PRINTF(3, 4);
/* Text from a file for an error line: its first bytes in single quotes, what does not print as '?'. Returns `out`. */
#define HDL_QUOTE 56
char *hdl_quote(hdl_span text, char out[HDL_QUOTE]);

/* HD_OK, or why nothing can be done in the context. */
static inline hd_status hdl_context_lives(hd_context *context) {
    const hd_error none = { HD_OK, 0, "", "", "", "" };
    return hd_context_put_error(context, &none);
}

/* malloc and free. */
extern const hd_allocator hdl_default_allocator;
/* `bytes` zeroed bytes (0 gives one), or NULL. hdl_free takes the same number. */
void *hdl_alloc(const hd_allocator *allocator, uint64_t bytes);
void hdl_free(const hd_allocator *allocator, void *pointer, uint64_t bytes);
/* *pointer with new_bytes (at least 1) in place of old_bytes; new bytes are not zeroed. False, and nothing changed,
 * where there is no memory. */
bool hdl_resize(const hd_allocator *allocator, void *pointer, uint64_t old_bytes, uint64_t new_bytes);

/* Makes room for at least `count` items in the array *items_pointer, doubling *capacity; new room is not set. False
 * when there is no memory; the array is then unchanged. */
bool hdl_grow(const hd_allocator *allocator, void *items_pointer, size_t *capacity, size_t count, size_t item_bytes);

/* False where the result does not fit; `*out` is then of no use. */
static inline bool hdl_add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool hdl_mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
/* `value` rounded up to a multiple of `unit`, a power of two. */
static inline bool hdl_pad(uint64_t value, uint64_t unit, uint64_t *out) {
    if (!hdl_add(value, unit - 1, out)) return false;
    *out &= ~(unit - 1);
    return true;
}

/* FNV-1a, a byte or number at a time, from HDL_HASH_START on. */
#define HDL_HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t hdl_hash(uint64_t hash, uint64_t next) { return (hash ^ next) * UINT64_C(0x100000001b3); }

/* "1.5 GiB". Returns `out`. */
enum { HDL_AMOUNT = 24 };
char *hdl_amount(uint64_t bytes, char out[HDL_AMOUNT]);

/* A clock that never goes back. */
uint64_t hdl_now_ns(void);

/* Valid UTF-8 without control characters: what may stand in a name. */
bool hdl_is_name(hdl_span text);

/* ---- a set of names (index.c): finds a name's number in constant time, with a keyed hash (SipHash-1-3), so that no
 * choice of names makes it slow. The owner keeps the names and tells them by number. ---- */
typedef struct hdl_index {
    uint64_t  key[2];     /* nobody outside may know it */
    uint32_t *slots;      /* a name's number + 1; 0 is free; always a free one left */
    uint32_t  slot_count; /* a power of two, or 0 */
    uint32_t  count;
} hdl_index;
typedef hdl_span (*hdl_index_name)(const void *owner, uint32_t number);
/* Makes room for names 0 .. count-1; false where there is no memory. */
bool hdl_index_reserve(hdl_index *index, const hd_allocator *allocator, uint32_t count, hdl_index_name name,
                       const void *owner);
void hdl_index_free(hdl_index *index, const hd_allocator *allocator);
/* The number of `wanted`, or -1. */
int64_t hdl_index_find(const hdl_index *index, hdl_span wanted, hdl_index_name name, const void *owner);
/* Adds name number index->count, for which there is room; false where the set holds an equal one. */
bool hdl_index_add(hdl_index *index, hdl_index_name name, const void *owner);

#endif
