/* scan.h: a text that is read byte by byte: a grammar's, a pattern's, JSON. */
#ifndef HDL_SCAN_H
#define HDL_SCAN_H

#include "llm/support.h"

typedef struct hdl_scan {
    hdl_span text;
    size_t   at;
} hdl_scan;

/* The byte so many behind the next one; -1: the text ends before it. */
static inline int hdl_scan_ahead(const hdl_scan *s, size_t bytes) {
    return s->at < s->text.count && bytes < s->text.count - s->at ? s->text.bytes[s->at + bytes] : -1;
}
/* The next byte; -1 at the end. */
static inline int hdl_scan_peek(const hdl_scan *s) { return hdl_scan_ahead(s, 0); }
/* From the next byte on; there is one. */
static inline hdl_span hdl_scan_rest(const hdl_scan *s) {
    return (hdl_span){ s->text.bytes + s->at, s->text.count - s->at };
}
/* Steps over the next byte where it is this one. */
static inline bool hdl_scan_take(hdl_scan *s, char wanted) {
    if (hdl_scan_peek(s) != wanted) return false;
    s->at++;
    return true;
}
/* Reads so many hexadecimal digits; false, and it stands at what is none. */
static inline bool hdl_scan_hex(hdl_scan *s, uint32_t digits, uint32_t *out) {
    for (*out = 0; digits; digits--, s->at++) {
        const int c = hdl_scan_peek(s);
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}
/* Where it stands, for error texts; both count from 1. */
static inline void hdl_scan_place(const hdl_scan *s, size_t *out_line, size_t *out_column) {
    *out_line = *out_column = 1;
    for (size_t i = 0; i < s->at && i < s->text.count; i++) {
        const bool ends = s->text.bytes[i] == '\n';
        *out_line += ends;
        *out_column = ends ? 1 : *out_column + 1;
    }
}
#endif
