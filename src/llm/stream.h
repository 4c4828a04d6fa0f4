/* stream.h: an answer on its way to the reader. Bytes of tokens go in as they come; out goes text that is always valid
 * UTF-8 and never takes anything back: a character that is not complete waits, and so does what may yet become a stop
 * string. The answer ends before the first stop string that is completed (of those completed by one byte, before the
 * longest). Where tokens begin and end changes nothing: any cutting of the bytes gives one text. */
#ifndef HDL_STREAM_H
#define HDL_STREAM_H

#include "llm/support.h"

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_STOPS 64u
#define HDL_MAX_STOP_BYTES 256u

typedef struct hdl_stream_desc {
    const hdl_span *stops;       /* none may be empty */
    size_t          stop_count;
} hdl_stream_desc;

typedef struct hdl_stream hdl_stream;

/* Makes a stream; copies what it needs. `allocator` NULL: malloc and free; `desc` NULL: nothing stops it. Statuses:
 * NULL_POINTER, ZERO_SIZE (an empty stop string), LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_stream_create(const hd_allocator *allocator, const hdl_stream_desc *desc, hdl_stream **out_stream,
                            hd_error *error);
void hdl_stream_destroy(hdl_stream *stream);

/* Adds the bytes of a token. `out_text`: what can be shown now, valid until the next call. Bytes that are no UTF-8
 * become U+FFFD, one for each longest start of a character. After the stop nothing more comes. OUT_OF_HOST_MEMORY: the
 * stream is as before. */
hd_status hdl_stream_push(hdl_stream *stream, hdl_span bytes, hdl_span *out_text, hd_error *error);
/* The answer is over: what waited comes out, the start of a character as U+FFFD. Then the stream is of no more use. */
hd_status hdl_stream_end(hdl_stream *stream, hdl_span *out_text, hd_error *error);
/* Whether a stop string was met. */
bool hdl_stream_stopped(const hdl_stream *stream);

#endif
