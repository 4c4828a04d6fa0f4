/* stream.c: text of an answer with its stop strings. Each stop string has a Knuth-Morris-Pratt automaton that tells
 * after every byte how much of it may have begun; the longest beginning is what must wait. What need not wait is read
 * as UTF-8, of which again the start of a character may wait. Both lie one after the other in `waiting`. */
#include "llm/stream.h"

typedef struct stop {
    uint8_t  text[HDL_MAX_STOP_BYTES];
    uint16_t back[HDL_MAX_STOP_BYTES]; /* back[n-1]: the longest shorter beginning that the first n bytes end with */
    uint16_t count, begun;
} stop;

struct hdl_stream {
    hd_allocator allocator;
    stop    *stops;
    size_t   stop_count;
    bool     stopped;
    uint8_t  waiting[HDL_MAX_STOP_BYTES + 4];
    size_t   waiting_count;
    uint8_t *text;     /* what the last call showed */
    size_t   text_count, text_capacity;
};

static void prepare(stop *s, hdl_span text) {
    memcpy(s->text, text.bytes, text.count);
    s->count = (uint16_t)text.count;
    for (size_t i = 1, same = 0; i < text.count; i++) {
        while (same && s->text[i] != s->text[same]) same = s->back[same - 1];
        if (s->text[i] == s->text[same]) same++;
        s->back[i] = (uint16_t)same;
    }
}

static hd_status check(const hdl_stream_desc *desc, hd_error *error) {
    if (desc->stop_count && !desc->stops)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "stream: the list of stops is NULL");
    if (desc->stop_count > HDL_MAX_STOPS)
        return hdl_fail(error, HD_STATUS_LIMIT, "stream: %zu stop strings; the limit is %u", desc->stop_count,
                        HDL_MAX_STOPS);
    for (size_t i = 0; i < desc->stop_count; i++) {
        if (!desc->stops[i].count) return hdl_fail(error, HD_STATUS_ZERO_SIZE, "stream: stop string %zu is empty", i);
        if (desc->stops[i].count > HDL_MAX_STOP_BYTES)
            return hdl_fail(error, HD_STATUS_LIMIT, "stream: stop string %zu has %llu bytes; the limit is %u", i,
                            (unsigned long long)desc->stops[i].count, HDL_MAX_STOP_BYTES);
    }
    return HD_OK;
}

hd_status hdl_stream_create(const hd_allocator *allocator, const hdl_stream_desc *desc, hdl_stream **out_stream,
                            hd_error *error) {
    static const hdl_stream_desc nothing;
    if (!out_stream) return hdl_fail(error, HD_STATUS_NULL_POINTER, "stream: no place for the stream");
    *out_stream = NULL;
    if (!desc) desc = &nothing;
    const hd_status status = check(desc, error);
    if (status) return status;
    if (!allocator) allocator = &hdl_default_allocator;
    hdl_stream *stream = hdl_alloc(allocator, sizeof *stream);
    if (!stream) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "stream: no memory");
    stream->allocator = *allocator;
    stream->stop_count = desc->stop_count;
    stream->stops = hdl_alloc(allocator, desc->stop_count * sizeof *stream->stops);
    if (!stream->stops) {
        hdl_stream_destroy(stream);
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "stream: no memory");
    }
    for (size_t i = 0; i < desc->stop_count; i++) prepare(&stream->stops[i], desc->stops[i]);
    *out_stream = stream;
    return HD_OK;
}

void hdl_stream_destroy(hdl_stream *stream) {
    if (!stream) return;
    const hd_allocator allocator = stream->allocator;
    hdl_free(&allocator, stream->stops, stream->stop_count * sizeof *stream->stops);
    hdl_free(&allocator, stream->text, stream->text_capacity);
    hdl_free(&allocator, stream, sizeof *stream);
}

bool hdl_stream_stopped(const hdl_stream *stream) { return stream->stopped; }

/* Room for what the next `bytes` bytes can show: what waits too, each byte as a U+FFFD of 3 bytes at the most. */
static hd_status make_room(hdl_stream *stream, uint64_t bytes, hd_error *error) {
    uint64_t wanted;
    stream->text_count = 0;
    if (hdl_add(bytes, sizeof stream->waiting, &wanted) && hdl_mul(wanted, 3, &wanted)) {
        if (wanted <= stream->text_capacity) return HD_OK;
        if (hdl_resize(&stream->allocator, &stream->text, stream->text_capacity, wanted)) {
            stream->text_capacity = (size_t)wanted;
            return HD_OK;
        }
    }
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "stream: no memory for %llu bytes of text",
                    (unsigned long long)bytes);
}

/* How many of the `count` bytes at `text` are a character, or else the longest start of one (at least 1); *out_state
 * says which: 1 a whole character, 0 a start that more bytes may complete, -1 none. */
static size_t character(const uint8_t *text, size_t count, int *out_state) {
    const uint8_t first = text[0];
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4
                          : 0;
    *out_state = -1;
    if (!length) return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == count) {
            *out_state = 0;
            return i;
        }
        /* The second byte's range leaves out overlong forms, surrogates and codes above 0x10FFFF. */
        const uint8_t low = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const uint8_t high = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (text[i] < low || text[i] > high) return i;
    }
    *out_state = 1;
    return length;
}

/* Shows the first `count` waiting bytes, but for the start of a character unless these are the last. */
static void show(hdl_stream *stream, size_t count, bool last) {
    size_t done = 0;
    while (done < count) {
        int state;
        const size_t bytes = character(stream->waiting + done, count - done, &state);
        if (state == 0 && !last) break;
        memcpy(stream->text + stream->text_count, state == 1 ? stream->waiting + done : (const uint8_t *)"\xEF\xBF\xBD",
               state == 1 ? bytes : 3);
        stream->text_count += state == 1 ? bytes : 3;
        done += bytes;
    }
    stream->waiting_count -= done;
    memmove(stream->waiting, stream->waiting + done, stream->waiting_count);
}

/* Steps all automata over one byte. The longest beginning of a stop string, all of it where one is complete. */
static size_t step(hdl_stream *stream, uint8_t byte, bool *out_complete) {
    size_t longest = 0, complete = 0;
    for (size_t i = 0; i < stream->stop_count; i++) {
        stop *s = &stream->stops[i];
        while (s->begun && s->text[s->begun] != byte) s->begun = s->back[s->begun - 1];
        if (s->text[s->begun] == byte) s->begun++;
        if (s->begun > longest) longest = s->begun;
        if (s->begun == s->count && s->begun > complete) complete = s->begun;
    }
    *out_complete = complete > 0;
    return complete ? complete : longest;
}

hd_status hdl_stream_push(hdl_stream *stream, hdl_span bytes, hdl_span *out_text, hd_error *error) {
    if (!stream || !out_text)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "stream: no stream or no place for the text");
    *out_text = hdl_text("");
    if (stream->stopped) return HD_OK;
    const hd_status status = make_room(stream, bytes.count, error);
    if (status) return status;
    for (uint64_t i = 0; i < bytes.count && !stream->stopped; i++) {
        stream->waiting[stream->waiting_count++] = bytes.bytes[i];
        const size_t held = step(stream, bytes.bytes[i], &stream->stopped);
        show(stream, stream->waiting_count - held, stream->stopped);
    }
    if (stream->stopped) stream->waiting_count = 0;
    if (stream->text_count) *out_text = (hdl_span){ stream->text, stream->text_count };
    return HD_OK;
}

hd_status hdl_stream_end(hdl_stream *stream, hdl_span *out_text, hd_error *error) {
    if (!stream || !out_text)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "stream: no stream or no place for the text");
    *out_text = hdl_text("");
    const hd_status status = make_room(stream, 0, error);
    if (status) return status;
    show(stream, stream->waiting_count, true);
    if (stream->text_count) *out_text = (hdl_span){ stream->text, stream->text_count };
    return HD_OK;
}
