/* writer.c: the public face of gguf_write.c. */
#include "llm/gguf_write.h"
#include "llm/model.h"

enum { PIECE_BYTES = 1 << 20 };

typedef struct source {
    hd_tensor_fill fill;
    void          *user;
    uint64_t       bytes;
} source;

struct hd_model_writer {
    hd_context      *context;
    hd_allocator     allocator;
    hdl_gguf_writer *gguf;
    source          *sources; /* one for each tensor */
    size_t           count, room;
    bool             no_memory, lacks, unfilled;
    uint8_t         *piece;
};

hd_status hd_model_writer_create(hd_context *context, hd_model_writer **out_writer) {
    if (!context || !out_writer) return HD_STATUS_NULL_POINTER;
    const hd_allocator allocator = hd_context_allocator(context);
    hd_error error = { 0 };
    *out_writer = NULL;
    hd_model_writer *w = hdl_alloc(&allocator, sizeof *w);
    if (w) *w = (hd_model_writer){ .context = context, .allocator = allocator };
    if (w && (w->gguf = hdl_gguf_writer_create(&w->allocator, 0)) &&
        (w->piece = hdl_alloc(&w->allocator, PIECE_BYTES))) {
        *out_writer = w;
        return HD_OK;
    }
    hd_model_writer_destroy(w);
    hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to write a model");
    return hd_context_put_error(context, &error);
}

void hd_model_writer_destroy(hd_model_writer *writer) {
    if (!writer) return;
    const hd_allocator allocator = writer->allocator;
    hdl_gguf_writer_destroy(writer->gguf);
    hdl_free(&allocator, writer->sources, writer->room * sizeof *writer->sources);
    hdl_free(&allocator, writer->piece, PIECE_BYTES);
    hdl_free(&allocator, writer, sizeof *writer);
}

/* Whether there is something to put: what is missing is told by the write. */
static bool takes(hd_model_writer *writer, const char *key, const void *value, size_t count) {
    if (!writer) return false;
    writer->lacks = writer->lacks || !key || (count > 0 && !value);
    return !writer->lacks;
}

void hd_model_writer_u32(hd_model_writer *writer, const char *key, uint32_t value) {
    if (takes(writer, key, NULL, 0)) hdl_gguf_put_u32(writer->gguf, key, value);
}
void hd_model_writer_f32(hd_model_writer *writer, const char *key, float value) {
    if (takes(writer, key, NULL, 0)) hdl_gguf_put_f32(writer->gguf, key, value);
}
void hd_model_writer_bool(hd_model_writer *writer, const char *key, bool value) {
    if (takes(writer, key, NULL, 0)) hdl_gguf_put_bool(writer->gguf, key, value);
}
void hd_model_writer_text(hd_model_writer *writer, const char *key, const char *text, size_t bytes) {
    if (takes(writer, key, text, bytes))
        hdl_gguf_put_text(writer->gguf, key, (hdl_span){ (const uint8_t *)text, bytes });
}
void hd_model_writer_i32s(hd_model_writer *writer, const char *key, const int32_t *values, size_t count) {
    if (takes(writer, key, values, count)) hdl_gguf_put_numbers(writer->gguf, key, HDL_GGUF_I32, values, count);
}
void hd_model_writer_f32s(hd_model_writer *writer, const char *key, const float *values, size_t count) {
    if (takes(writer, key, values, count))
        hdl_gguf_put_numbers(writer->gguf, key, HDL_GGUF_F32, values, count);
}
void hd_model_writer_texts(hd_model_writer *writer, const char *key, const char *const *texts, size_t count) {
    if (!takes(writer, key, texts, count)) return;
    hdl_span *spans = hdl_alloc(&writer->allocator, count * sizeof *spans);
    writer->no_memory = writer->no_memory || !spans;
    for (size_t i = 0; i < count && spans; i++) spans[i] = hdl_text(texts[i] ? texts[i] : "");
    if (spans) hdl_gguf_put_texts(writer->gguf, key, spans, count);
    hdl_free(&writer->allocator, spans, count * sizeof *spans);
}

void hd_model_writer_tokenizer(hd_model_writer *writer, const hd_model *model) {
    static const char prefix[] = "tokenizer.";
    if (!takes(writer, prefix, hdl_model_find(&model) ? NULL : model, 1)) return;
    for (uint32_t i = 0; i < hdl_gguf_get_info(model->gguf).key_count; i++) {
        const hdl_gguf_value value = hdl_gguf_key(model->gguf, i);
        if (value.name.count > sizeof prefix - 1 && memcmp(value.name.bytes, prefix, sizeof prefix - 1) == 0)
            hdl_gguf_put_value(writer->gguf, &value);
    }
}

void hd_model_writer_tensor(hd_model_writer *writer, const char *name, hd_dtype dtype, hd_shape shape,
                            hd_tensor_fill fill, void *user) {
    uint32_t type = HDL_GGUF_TYPE_COUNT; /* no type: put refuses it */
    if (!takes(writer, name, NULL, 0)) return;
    writer->unfilled = writer->unfilled || !fill;
    for (uint32_t i = 0; i < HDL_GGUF_TYPE_COUNT && dtype != HD_DTYPE_NONE; i++)
        if (hdl_gguf_dtype(i) == dtype) type = i;
    if (!hdl_grow(&writer->allocator, &writer->sources, &writer->room, writer->count + 1, sizeof *writer->sources)) {
        writer->no_memory = true;
        return;
    }
    writer->sources[writer->count++] = (source){ fill, user, hdl_gguf_tensor_bytes(type, shape) };
    hdl_gguf_put_tensor(writer->gguf, hdl_text(name), type, shape, NULL);
}

static hd_status give(void *user, uint32_t tensor, hdl_gguf_sink sink, void *to, hd_error *error) {
    hd_model_writer *w = user;
    const source *s = &w->sources[tensor];
    for (uint64_t at = 0; at < s->bytes; at += PIECE_BYTES) {
        const uint64_t bytes = s->bytes - at < PIECE_BYTES ? s->bytes - at : PIECE_BYTES;
        if (!s->fill(s->user, at, bytes, w->piece))
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "tensor %u was not given", (unsigned)tensor);
        if (!sink(to, w->piece, bytes)) return HD_OK;
    }
    return HD_OK;
}

static hd_status check(const hd_model_writer *writer, hd_error *error) {
    if (writer->lacks)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "a key or tensor was put without its name or its value");
    if (writer->no_memory) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to write a model");
    return HD_OK;
}

hd_status hd_model_writer_write(hd_model_writer *writer, const char *path) {
    if (!writer || !path) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdl_gguf_fill_by(writer->gguf, give, writer);
    hd_status status = check(writer, &error);
    if (!status && writer->unfilled)
        status = hdl_fail(&error, HD_STATUS_NULL_POINTER, "a tensor was put that nobody gives");
    if (!status) status = hdl_gguf_write_file(writer->gguf, path, &error);
    return status ? hd_context_put_error(writer->context, &error) : HD_OK;
}

/* ---- a model of which only the header is there ---- */

/* The file of such a model, as long as the whole one. What follows the header is zeros while it is read, in pieces that
 * know no end of it, and can no more be read then. */
typedef struct sketch {
    hd_allocator allocator;
    uint8_t     *header;
    size_t       count, room;
    uint64_t     file_bytes;
    unsigned     holders;
    bool         opened;
} sketch;

static void release(sketch *s) {
    if (--s->holders > 0) return;
    const hd_allocator allocator = s->allocator;
    hdl_free(&allocator, s->header, s->room);
    hdl_free(&allocator, s, sizeof *s);
}

static bool keep(void *user, const void *bytes, uint64_t count) {
    sketch *s = user;
    if (!hdl_grow(&s->allocator, &s->header, &s->room, s->count + (size_t)count, 1)) return false;
    memcpy(s->header + s->count, bytes, (size_t)count);
    s->count += (size_t)count;
    return true;
}

static hd_status open_sketch(void *user, const char *path, hdl_file *out_file, hd_error *error) {
    (void)path, (void)error;
    ((sketch *)user)->holders++;
    *out_file = 0;
    return HD_OK;
}
static bool size_of_sketch(void *user, hdl_file file, uint64_t *out_bytes) {
    (void)file;
    *out_bytes = ((const sketch *)user)->file_bytes;
    return true;
}
static int64_t read_sketch(void *user, hdl_file file, uint64_t offset, void *out, size_t bytes) {
    const sketch *s = user;
    (void)file;
    if (s->opened) return -1;
    const size_t left = offset < s->count ? s->count - (size_t)offset : 0, known = bytes < left ? bytes : left;
    memset(out, 0, bytes);
    if (known) memcpy(out, s->header + offset, known);
    return (int64_t)bytes;
}
static const uint8_t *map_sketch(void *user, hdl_file file, uint64_t bytes) {
    (void)user, (void)file, (void)bytes;
    return NULL;
}
static void unmap_sketch(void *user, const uint8_t *map, uint64_t bytes) { (void)user, (void)map, (void)bytes; }
static void close_sketch(void *user, hdl_file file) {
    (void)file;
    release(user);
}

hd_status hd_model_writer_sketch(hd_model_writer *writer, const hd_model_desc *desc, hd_model **out_model) {
    if (out_model) *out_model = NULL;
    if (!writer || !out_model) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = check(writer, &error);
    sketch *s = hdl_alloc(&writer->allocator, sizeof *s);
    if (!status && !s) status = hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a model");
    if (s) *s = (sketch){ .allocator = writer->allocator, .holders = 1 };
    if (!status) status = hdl_gguf_write_header(writer->gguf, keep, s, &s->file_bytes, &error);
    if (status == HD_STATUS_IO) { /* it is memory that took no more */
        error = (hd_error){ 0 };
        status = hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a model");
    }
    if (status) hd_context_put_error(writer->context, &error);
    const hdl_files files = { s, open_sketch, size_of_sketch, read_sketch, map_sketch, unmap_sketch, close_sketch,
                              NULL };
    hd_model *model = NULL;
    if (!status) status = hdl_model_open(writer->context, "a model without weights", desc, &files, &model);
    if (s) s->opened = true;
    if (s) release(s);
    return status ? status : hdl_model_hand_out(model, out_model);
}
