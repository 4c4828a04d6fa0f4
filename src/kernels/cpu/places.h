/* places.h: where products of few rows read their columns of weights. */
#ifndef HDCPU_PLACES_H
#define HDCPU_PLACES_H

#include "base/base.h"

/* Columns are read from several places at once, so that more of them is on its way from memory, and meet so many rows
 * at once: there are registers for two sums of each. */
enum { HDCPU_PLACES = 4, HDCPU_ROWS_AT_ONCE = 4 };
static inline uint32_t hdcpu_places(uint32_t rows) {
    return HDI_MIN((HDCPU_LEVEL >= 2 ? 8 : 4) / rows, (uint32_t)HDCPU_PLACES);
}
/* Brings near what the weights reach so many bytes ahead, into the first cache or the second: a processor's own looking
 * ahead ends with the page, and a column of weights is often shorter than what memory's latency asks for. Addresses may
 * lie anywhere. */
enum { HDCPU_AHEAD_BYTES = 4096 /* at all places together */ };
static inline void hdcpu_look_ahead(const uint8_t *weights, uint32_t bytes, uint32_t ahead_bytes, bool first_cache) {
    enum { LINE_BYTES = 64 };
    const uint8_t *ahead = weights + ahead_bytes;
    for (uint32_t line = 0; line < bytes; line += LINE_BYTES)
        if (first_cache) __builtin_prefetch(ahead + line, 0, 3);
        else __builtin_prefetch(ahead + line, 0, 2);
}
#endif
