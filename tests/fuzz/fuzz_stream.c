/* fuzz_stream.c: any bytes as stop strings and an answer in pieces. The first bytes are the number of stop strings, their
 * lengths and texts; the rest is the answer, whose own bytes tell where it is cut. What is shown must be what the whole
 * answer shows at once. */
#include "stream_twin.h"
#include <stdlib.h>

enum { MOST_STOPS = 7, MOST_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t wanted[3 * MOST_BYTES];
    const uint8_t *at = data, *end = data + size;
    hdl_span stops[MOST_STOPS], piece;
    hdl_stream_desc desc = { .stops = stops, .stop_count = at < end ? *at++ % (MOST_STOPS + 1) : 0 };
    for (size_t i = 0; i < desc.stop_count; i++) {
        size_t count = at < end ? *at++ : 0;
        if (count > (size_t)(end - at)) count = (size_t)(end - at);
        stops[i] = (hdl_span){ at, count };
        at += count;
    }
    hdl_stream *stream;
    hd_error error = { 0 };
    const hd_status status = hdl_stream_create(NULL, &desc, &stream, &error);
    if (status != error.status || !stream != (status != HD_OK)) abort();
    if (status) return 0;

    size_t count = (size_t)(end - at), shown = 0;
    if (count > MOST_BYTES) count = MOST_BYTES;
    const uint8_t *text = at;
    bool stopped;
    const size_t wanted_count = twin_show(text, count, &desc, wanted, &stopped);
    for (size_t from = 0; from <= count;) {
        size_t bytes = from < count ? 1 + text[from] % 5 : 0;
        if (bytes > count - from) bytes = count - from;
        if (bytes ? hdl_stream_push(stream, (hdl_span){ text + from, bytes }, &piece, NULL) : hdl_stream_end(stream, &piece, NULL)) abort();
        if (piece.count > wanted_count - shown || memcmp(piece.bytes, wanted + shown, piece.count) != 0) abort();
        shown += piece.count;
        if (!bytes) break;
        from += bytes;
    }
    if (shown != wanted_count || stopped != hdl_stream_stopped(stream)) abort();
    hdl_stream_destroy(stream);
    return 0;
}
