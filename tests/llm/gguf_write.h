/* gguf_write.h: writes GGUF files for the tests: models with what the tests need, whole or wrong. */
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
void hdl_gguf_put_numbers(hdl_gguf_writer *writer, const char *name, hdl_gguf_kind element, const void *values, uint64_t count);
/* A value as a reader gave it. */
void hdl_gguf_put_value(hdl_gguf_writer *writer, const hdl_gguf_value *value);
/* A tensor; `data` is borrowed until the write. */
void hdl_gguf_put_tensor(hdl_gguf_writer *writer, hdl_span name, uint32_t type, hd_shape shape, const void *data);
/* Takes bytes in order; false ends the writing. */
typedef bool (*hdl_gguf_sink)(void *user, const void *bytes, uint64_t count);
/* Writes all through `sink`. Statuses: the first failure of a put (INVALID_ARGUMENT, NAME_TAKEN, SHAPE, LIMIT,
 * OUT_OF_HOST_MEMORY), IO. */
hd_status hdl_gguf_write(hdl_gguf_writer *writer, hdl_gguf_sink sink, void *user, hd_error *error);
/* Writes a file: first beside it (".part"), then renamed, so that no half of a model ever stands under its name. */
hd_status hdl_gguf_write_file(hdl_gguf_writer *writer, const char *path, hd_error *error);

#endif
