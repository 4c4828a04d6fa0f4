/* stream_twin.h: what a stream must show, worked out from the whole answer at once and the slow way; for its test and its
 * fuzzer. */
#ifndef STREAM_TWIN_H
#define STREAM_TWIN_H

#include "llm/stream.h"
#include "llm/utf8.h"

/* Whether the bytes are the start of some character: tries what could follow. */
static inline bool twin_starts(const uint8_t *text, size_t count) {
    static const uint8_t tries[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf };
    uint32_t code;
    for (size_t more = 1; more + count <= 4; more++)
        for (int pick = 0; pick < 6; pick++) {
            uint8_t whole[4];
            memcpy(whole, text, count);
            for (size_t i = 0; i < more; i++) whole[count + i] = i ? 0x80 : tries[pick];
            if (hdl_utf8_read(whole, count + more, &code) == count + more) return true;
        }
    return false;
}

/* Writes what is shown to `out` (room for 3 * count bytes); *out_stopped: a stop string was met. */
static inline size_t twin_show(const uint8_t *text, size_t count, const hdl_stream_desc *desc, uint8_t *out, bool *out_stopped) {
    *out_stopped = false;
    for (size_t end = 1; end <= count && !*out_stopped; end++) {
        size_t longest = 0;
        for (size_t i = 0; i < desc->stop_count; i++) {
            const size_t n = desc->stops[i].count;
            if (n <= end && n > longest && memcmp(text + end - n, desc->stops[i].bytes, n) == 0) longest = n;
        }
        if (!longest) continue;
        *out_stopped = true;
        count = end - longest;
    }
    size_t shown = 0;
    for (size_t i = 0; i < count;) {
        uint32_t code;
        size_t n = hdl_utf8_read(text + i, count - i, &code);
        if (code != HDL_UTF8_INVALID) {
            memcpy(out + shown, text + i, n);
            shown += n;
        } else {
            for (n = 3; n > 1 && (i + n > count || !twin_starts(text + i, n)); n--) {}
            memcpy(out + shown, "\xEF\xBF\xBD", 3);
            shown += 3;
        }
        i += n;
    }
    return shown;
}

#endif
