/* tokenizer_text.c: ids to text: what one token stands for, and a stream that hands out an answer's text as its tokens
 * come, without ever cutting a character in two. Any id may come; a wrong one is refused and changes nothing. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"

static bool valid(const hdl_tokenizer *t, int32_t id) { return id >= 0 && (size_t)id < t->token_count; }

size_t hdl_token_count(const hdl_tokenizer *t) { return t->token_count; }
int32_t hdl_token_bos(const hdl_tokenizer *t) { return t->bos; }
int32_t hdl_token_eos(const hdl_tokenizer *t) { return t->eos; }

hdl_span hdl_token_text(const hdl_tokenizer *t, int32_t id) { return valid(t, id) ? hdl_pool_text(t, id) : hdl_text(""); }

hdl_token_type hdl_token_type_of(const hdl_tokenizer *t, int32_t id) {
    return valid(t, id) ? (hdl_token_type)t->types[id] : (hdl_token_type)0;
}

int32_t hdl_token_find(const hdl_tokenizer *t, const void *bytes, size_t count) {
    int32_t id = hdl_text_table_find(t, &t->sought, bytes, count);
    return id != HDL_NO_TOKEN ? id : hdl_text_table_find(t, &t->texts, bytes, count);
}

/* Forgets what was taken already. */
static void close_up(hdl_text_stream *stream) {
    if (!stream->given) return;
    stream->count -= stream->given;
    memmove(stream->bytes, stream->bytes + stream->given, stream->count);
    stream->given = 0;
}

hd_status hdl_text_stream_push(hdl_text_stream *stream, int32_t id, hd_error *error) {
    const hdl_tokenizer *t = stream->tokenizer;
    if (!valid(t, id)) return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "token %d; there are %zu tokens", id, t->token_count);
    bool hidden = t->types[id] == HDL_TOKEN_CONTROL || t->types[id] == HDL_TOKEN_UNKNOWN;
    hdl_span text = hdl_pool_text(t, id);
    const uint8_t *bytes = text.bytes;
    /* The prefix that tokenizing put before the text is no part of it. */
    bool prefix = t->add_space_prefix && !stream->begun && !stream->keep_space && !hidden && text.count && bytes[0] == ' ';
    size_t count = hidden && !stream->show_control ? 0 : text.count - prefix;
    close_up(stream);
    if (!hdl_grow(&t->allocator, &stream->bytes, &stream->capacity, stream->count + count, 1))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu bytes of text", stream->count + count);
    if (count) memcpy(stream->bytes + stream->count, bytes + prefix, count);
    stream->count += count;
    stream->begun = t->types[id] != HDL_TOKEN_CONTROL;
    return HD_OK;
}

hdl_span hdl_text_stream_take(hdl_text_stream *stream, bool last) {
    close_up(stream);
    if (!stream->count) return hdl_text("");
    stream->given = last ? stream->count : hdl_utf8_whole(stream->bytes, stream->count);
    return (hdl_span){ stream->bytes, stream->given };
}

void hdl_text_stream_free(hdl_text_stream *stream) {
    if (stream->tokenizer) hdl_free(&stream->tokenizer->allocator, stream->bytes, stream->capacity);
    *stream = (hdl_text_stream){ .tokenizer = stream->tokenizer };
}
