/* gguf_write.h: writes GGUF files. */
#ifndef GGUF_WRITE_H
#define GGUF_WRITE_H

#include "llm/gguf.h"

/* A model being written: version 3, tensors in the order in which they were put. The first failure stays and is told by
 * the write; what follows it does nothing. */
typedef struct hdl_gguf_writer hdl_gguf_writer;

/* @param alignment 0: 32. NULL where there is no memory. */
hdl_gguf_writer *hdl_gguf_writer_create(const hd_allocator *allocator, uint32_t alignment);
void hdl_gguf_writer_destroy(hdl_gguf_writer *writer);
void hdl_gguf_put_u32(hdl_gguf_writer *writer, const char *name, uint32_t value);
void hdl_gguf_put_f32(hdl_gguf_writer *writer, const char *name, float value);
void hdl_gguf_put_bool(hdl_gguf_writer *writer, const char *name, bool value);
void hdl_gguf_put_text(hdl_gguf_writer *writer, const char *name, hdl_span text);
void hdl_gguf_put_texts(hdl_gguf_writer *writer, const char *name, const hdl_span *texts, uint64_t count);
/* One number of any kind, or `count` of them as an array; `values` in the machine's own (little-endian) form. */
void hdl_gguf_put_number(hdl_gguf_writer *writer, const char *name, hdl_gguf_kind kind, const void *value);
void hdl_gguf_put_numbers(hdl_gguf_writer *writer, const char *name, hdl_gguf_kind element, const void *values,
                          uint64_t count);
/* A value as a reader gave it. */
void hdl_gguf_put_value(hdl_gguf_writer *writer, const hdl_gguf_value *value);
typedef hdl_sink hdl_gguf_sink;
/* Gives the data of tensor number `tensor` to the sink, all of it and no more. A status ends the writing; IO where the
 * sink took nothing. */
typedef hd_status (*hdl_gguf_fill)(void *user, uint32_t tensor, hdl_gguf_sink sink, void *to, hd_error *error);
/* Whom the write asks for the data of tensors that were put without any. */
void hdl_gguf_fill_by(hdl_gguf_writer *writer, hdl_gguf_fill fill, void *user);
/* A tensor; `data` is borrowed until the write; NULL: it is asked for. */
void hdl_gguf_put_tensor(hdl_gguf_writer *writer, hdl_span name, uint32_t type, hd_shape shape, const void *data);
/* Writes what stands before the data of the tensors, and tells the bytes of the whole file. Statuses: as
 * hdl_gguf_write. */
hd_status hdl_gguf_write_header(hdl_gguf_writer *writer, hdl_gguf_sink sink, void *user, uint64_t *out_file_bytes,
                                hd_error *error);
/* Writes all through `sink`. Statuses: the first failure of a put (INVALID_ARGUMENT, NAME_TAKEN, SHAPE, LIMIT,
 * OUT_OF_HOST_MEMORY), those of a fill, IO. */
hd_status hdl_gguf_write(hdl_gguf_writer *writer, hdl_gguf_sink sink, void *user, hd_error *error);
/* Writes a file: first beside it (".part"), then renamed, so that no half of a model ever stands under its name. */
hd_status hdl_gguf_write_file(hdl_gguf_writer *writer, const char *path, hd_error *error);

#endif
