/* utf8.h: reading UTF-8 where any byte may come. What is not valid (a stray or missing continuation, an overlong form,
 * a surrogate, a code above 0x10FFFF) is read as characters of one byte each, so that no byte is ever lost. */
#ifndef HDL_UTF8_H
#define HDL_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define HDL_UTF8_INVALID UINT32_MAX

static inline uint32_t hdl_utf8_more(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Bytes of the character at `text` (at least one byte must be there) and its code, or 1 and HDL_UTF8_INVALID. */
static inline uint32_t hdl_utf8_read(const uint8_t *text, size_t bytes, uint32_t *out_code) {
    uint32_t a = text[0];
    if (a < 0x80) return *out_code = a, 1;
    if (a >= 0xC2 && a < 0xE0 && bytes >= 2 && hdl_utf8_more(text[1])) {
        *out_code = (a & 0x1F) << 6 | (text[1] & 0x3Fu);
        return 2;
    }
    if (a >= 0xE0 && a < 0xF0 && bytes >= 3 && hdl_utf8_more(text[1]) && hdl_utf8_more(text[2])) {
        uint32_t code = (a & 0x0F) << 12 | (text[1] & 0x3Fu) << 6 | (text[2] & 0x3Fu);
        if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return *out_code = code, 3;
    }
    if (a >= 0xF0 && a < 0xF5 && bytes >= 4 && hdl_utf8_more(text[1]) && hdl_utf8_more(text[2]) &&
        hdl_utf8_more(text[3])) {
        uint32_t code = (a & 0x07) << 18 | (text[1] & 0x3Fu) << 12 | (text[2] & 0x3Fu) << 6 | (text[3] & 0x3Fu);
        if (code >= 0x10000 && code <= 0x10FFFF) return *out_code = code, 4;
    }
    return *out_code = HDL_UTF8_INVALID, 1;
}

/* Writes a character: at most 4 bytes, and how many. */
static inline uint32_t hdl_utf8_write(uint32_t code, uint8_t *out) {
    static const uint8_t marks[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    const uint32_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (uint32_t i = bytes; i-- > 0; code >>= 6) out[i] = (uint8_t)(i ? 0x80 | (code & 0x3F) : marks[bytes] | code);
    return bytes;
}

/* Where the character after the one at `at` begins. */
static inline size_t hdl_utf8_next(const uint8_t *text, size_t at, size_t end) {
    uint32_t code;
    return at + hdl_utf8_read(text + at, end - at, &code);
}

#endif
