/* gguf_write.c: writes GGUF version 3. Keys and tensor headers are put together in memory as they come; the tensors'
 * data stays the caller's until the write, or is asked for then. It writes nothing that the reader would refuse, and a
 * file appears under its name only when it is whole. Numbers are written in the machine's own form: a little-endian
 * machine is relied on. */
#include "llm/gguf_write.h"
#include "llm/gguf_inside.h"

typedef struct bytes {
    uint8_t *at;
    uint64_t count, room;
} bytes;

typedef struct item {
    uint64_t    name_at; /* of the name's length, in `keys` or `infos` */
    const void *data;    /* a tensor's */
    uint64_t    data_bytes;
} item;

typedef struct list {
    item     *items;
    uint32_t  room;
    hdl_index index; /* its count is the list's */
    bytes     text;
} list;

struct hdl_gguf_writer {
    hd_allocator allocator;
    uint32_t     alignment;
    list         keys, tensors;
    uint64_t     next; /* offset of the next tensor */
    hdl_gguf_fill fill;
    void        *fill_user;
    hd_error     error;
};

static void fail(hdl_gguf_writer *w, hd_status status, const char *what, hdl_span name) {
    char quoted[HDL_QUOTE];
    hdl_fail(&w->error, status, "%s: %s", hdl_quote(name, quoted), what);
}

static hdl_span item_name(const void *owner, uint32_t number) {
    const list *l = owner;
    const uint8_t *at = l->text.at + l->items[number].name_at;
    return (hdl_span){ at + 8, hdl_gguf_le64(at) };
}

/* ---- bytes that grow ---- */

static bool add(hdl_gguf_writer *w, bytes *to, const void *from, uint64_t count) {
    uint64_t wanted, room = to->room ? to->room : 1024;
    if (w->error.status) return false;
    if (!hdl_add(to->count, count, &wanted) || wanted > HDL_GGUF_MAX_HEADER_BYTES) {
        hdl_fail(&w->error, HD_STATUS_LIMIT, "the header has more than %d bytes", HDL_GGUF_MAX_HEADER_BYTES);
        return false;
    }
    while (room < wanted) room *= 2;
    if (room > to->room) {
        if (!hdl_resize(&w->allocator, &to->at, to->room, room)) {
            hdl_fail(&w->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a header of %llu bytes",
                     (unsigned long long)room);
            return false;
        }
        to->room = room;
    }
    if (count) memcpy(to->at + to->count, from, (size_t)count);
    to->count = wanted;
    return true;
}

static bool add_u32(hdl_gguf_writer *w, bytes *to, uint32_t value) { return add(w, to, &value, sizeof value); }
static bool add_u64(hdl_gguf_writer *w, bytes *to, uint64_t value) { return add(w, to, &value, sizeof value); }
static bool add_text(hdl_gguf_writer *w, bytes *to, hdl_span text) {
    return add_u64(w, to, text.count) && add(w, to, text.bytes, text.count);
}

/* Begins a key or a tensor: its name, which must be new. */
static item *begin(hdl_gguf_writer *w, list *l, hdl_span name, uint64_t name_limit, uint32_t limit) {
    const uint32_t count = l->index.count;
    if (w->error.status) return NULL;
    if (name.count == 0 || name.count > name_limit || !hdl_is_name(name)) {
        fail(w, HD_STATUS_INVALID_ARGUMENT, "a name must be clean UTF-8 of 1 byte up to the limit in gguf.h", name);
        return NULL;
    }
    if (count == limit) {
        fail(w, HD_STATUS_LIMIT, "one name more than gguf.h allows", name);
        return NULL;
    }
    if (count == l->room) {
        const uint32_t room = l->room ? l->room * 2 : 64;
        if (!hdl_resize(&w->allocator, &l->items, l->room * sizeof *l->items, room * sizeof *l->items)) {
            fail(w, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory", name);
            return NULL;
        }
        l->room = room;
    }
    l->items[count] = (item){ .name_at = l->text.count };
    if (!add_text(w, &l->text, name)) return NULL;
    if (!hdl_index_reserve(&l->index, &w->allocator, count + 1, item_name, l)) {
        fail(w, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory", name);
        return NULL;
    }
    if (!hdl_index_add(&l->index, item_name, l)) {
        fail(w, HD_STATUS_NAME_TAKEN, "the name is used already", name);
        return NULL;
    }
    return &l->items[count];
}

/* ---- metadata ---- */

/* Notes an alignment that the caller writes himself. */
static void note_alignment(hdl_gguf_writer *w, hdl_span name, hdl_gguf_kind kind, const void *value) {
    uint32_t alignment;
    if (!hdl_same(name, hdl_text("general.alignment"))) return;
    memcpy(&alignment, value, kind == HDL_GGUF_U32 ? sizeof alignment : 0);
    if (kind != HDL_GGUF_U32 || alignment < HDL_GGUF_MIN_ALIGNMENT || alignment > HDL_GGUF_MAX_ALIGNMENT
        || (alignment & (alignment - 1)) != 0 || w->tensors.index.count)
        fail(w, HD_STATUS_INVALID_ARGUMENT,
             "must be a u32, a power of two within the limits of gguf.h, and come before the tensors", name);
    else w->alignment = alignment;
}

static void put(hdl_gguf_writer *w, hdl_span name, hdl_gguf_kind kind, hdl_gguf_kind element, uint64_t count,
                hdl_span value) {
    bytes *to = &w->keys.text;
    if (!begin(w, &w->keys, name, HDL_GGUF_MAX_KEY_BYTES, HDL_GGUF_MAX_KEYS)) return;
    for (uint64_t i = 0; element == HDL_GGUF_BOOL && i < value.count; i++)
        if (value.bytes[i] > 1) fail(w, HD_STATUS_INVALID_ARGUMENT, "a bool must be 0 or 1", name);
    if (kind != HDL_GGUF_ARRAY) note_alignment(w, name, kind, value.bytes);
    if (!add_u32(w, to, kind)) return;
    if (kind == HDL_GGUF_ARRAY && (!add_u32(w, to, element) || !add_u64(w, to, count))) return;
    if (kind == HDL_GGUF_STRING && !add_u64(w, to, value.count)) return;
    add(w, to, value.bytes, value.count);
}

void hdl_gguf_put_number(hdl_gguf_writer *writer, const char *name, hdl_gguf_kind kind, const void *value) {
    const uint32_t size = hdl_gguf_kind_bytes(kind);
    if (size == 0) fail(writer, HD_STATUS_INVALID_ARGUMENT, "the kind is no number", hdl_text(name));
    else put(writer, hdl_text(name), kind, kind, 1, (hdl_span){ value, size });
}

void hdl_gguf_put_numbers(hdl_gguf_writer *writer, const char *name, hdl_gguf_kind element, const void *values,
                          uint64_t count) {
    uint64_t size = hdl_gguf_kind_bytes(element);
    if (size == 0 || !hdl_mul(size, count, &size))
        fail(writer, HD_STATUS_INVALID_ARGUMENT, "the kind is no number, or there are too many", hdl_text(name));
    else put(writer, hdl_text(name), HDL_GGUF_ARRAY, element, count, (hdl_span){ values, size });
}

void hdl_gguf_put_u32(hdl_gguf_writer *writer, const char *name, uint32_t value) {
    hdl_gguf_put_number(writer, name, HDL_GGUF_U32, &value);
}
void hdl_gguf_put_f32(hdl_gguf_writer *writer, const char *name, float value) {
    hdl_gguf_put_number(writer, name, HDL_GGUF_F32, &value);
}
void hdl_gguf_put_bool(hdl_gguf_writer *writer, const char *name, bool value) {
    const uint8_t byte = value;
    hdl_gguf_put_number(writer, name, HDL_GGUF_BOOL, &byte);
}

void hdl_gguf_put_text(hdl_gguf_writer *writer, const char *name, hdl_span text) {
    put(writer, hdl_text(name), HDL_GGUF_STRING, HDL_GGUF_STRING, 1, text);
}

void hdl_gguf_put_texts(hdl_gguf_writer *writer, const char *name, const hdl_span *texts, uint64_t count) {
    put(writer, hdl_text(name), HDL_GGUF_ARRAY, HDL_GGUF_STRING, count, (hdl_span){ 0 });
    for (uint64_t i = 0; i < count; i++)
        if (!add_text(writer, &writer->keys.text, texts[i])) return;
}

void hdl_gguf_put_value(hdl_gguf_writer *writer, const hdl_gguf_value *value) {
    put(writer, value->name, value->kind, value->element, value->count, value->bytes);
}

/* ---- tensors ---- */

void hdl_gguf_put_tensor(hdl_gguf_writer *writer, hdl_span name, uint32_t type, hd_shape shape, const void *data) {
    bytes *to = &writer->tensors.text;
    uint64_t end;
    item *tensor = begin(writer, &writer->tensors, name, HDL_GGUF_MAX_NAME_BYTES, HDL_GGUF_MAX_TENSORS);
    if (!tensor) return;
    tensor->data = data;
    tensor->data_bytes = hdl_gguf_tensor_bytes(type, shape);
    if (tensor->data_bytes == 0 || shape.rank < 1 || shape.rank > HDL_GGUF_MAX_RANK ||
        !hdl_add(writer->next, tensor->data_bytes, &end) || !hdl_pad(end, writer->alignment, &end)) {
        fail(writer, HD_STATUS_SHAPE, "the tensor's shape does not fit its type, or has no axis or more than 4", name);
        return;
    }
    if (!add_u32(writer, to, shape.rank)) return;
    for (uint32_t i = shape.rank; i-- > 0;)
        if (!add_u64(writer, to, (uint64_t)shape.dims[i])) return;
    if (!add_u32(writer, to, hdl_gguf_number_of(type)) || !add_u64(writer, to, writer->next)) return;
    writer->next = end;
}

/* ---- the writer ---- */

hdl_gguf_writer *hdl_gguf_writer_create(const hd_allocator *allocator, uint32_t alignment) {
    if (!allocator) allocator = &hdl_default_allocator;
    hdl_gguf_writer *writer = hdl_alloc(allocator, sizeof *writer);
    if (!writer) return NULL;
    writer->allocator = *allocator;
    writer->alignment = 32;
    hdl_random_key(writer->keys.index.key);
    hdl_random_key(writer->tensors.index.key);
    if (alignment && alignment != 32) hdl_gguf_put_u32(writer, "general.alignment", alignment);
    return writer;
}

static void list_free(hdl_gguf_writer *w, list *l) {
    hdl_free(&w->allocator, l->items, l->room * sizeof *l->items);
    hdl_free(&w->allocator, l->text.at, l->text.room);
    hdl_index_free(&l->index, &w->allocator);
}

void hdl_gguf_writer_destroy(hdl_gguf_writer *writer) {
    if (!writer) return;
    const hd_allocator allocator = writer->allocator;
    list_free(writer, &writer->keys);
    list_free(writer, &writer->tensors);
    hdl_free(&allocator, writer, sizeof *writer);
}

static bool pad_to(uint64_t count, uint32_t alignment, hdl_gguf_sink sink, void *user) {
    static const uint8_t zeros[256];
    uint64_t left = (alignment - count % alignment) % alignment;
    for (; left > sizeof zeros; left -= sizeof zeros)
        if (!sink(user, zeros, sizeof zeros)) return false;
    return left == 0 || sink(user, zeros, left);
}

void hdl_gguf_fill_by(hdl_gguf_writer *writer, hdl_gguf_fill fill, void *user) {
    writer->fill = fill;
    writer->fill_user = user;
}

/* What a fill gives, on its way to the sink. */
typedef struct filling {
    hdl_gguf_sink sink;
    void         *user;
    uint64_t      left;
} filling;
static bool to_sink(void *user, const void *from, uint64_t count) {
    filling *f = user;
    if (count > f->left || !f->sink(f->user, from, count)) return false;
    f->left -= count;
    return true;
}

static hd_status send_tensor(const hdl_gguf_writer *w, uint32_t i, hdl_gguf_sink sink, void *user, hd_error *error) {
    const item *tensor = &w->tensors.items[i];
    filling f = { sink, user, tensor->data_bytes };
    hd_status status = HD_OK;
    if (!tensor->data && w->fill) status = w->fill(w->fill_user, i, to_sink, &f, error);
    else if (tensor->data && sink(user, tensor->data, tensor->data_bytes)) f.left = 0;
    if (status || (f.left == 0 && pad_to(tensor->data_bytes, w->alignment, sink, user))) return status;
    return hdl_fail(error, HD_STATUS_IO, "the model could not be written");
}

enum { HEAD_BYTES = 24 };
static bool send_header(const hdl_gguf_writer *w, hdl_gguf_sink sink, void *user) {
    const uint64_t counts[2] = { w->tensors.index.count, w->keys.index.count };
    uint8_t head[HEAD_BYTES] = { 'G', 'G', 'U', 'F', 3 };
    memcpy(head + 8, counts, sizeof counts);
    const bytes *keys = &w->keys.text, *infos = &w->tensors.text;
    if (!sink(user, head, sizeof head) || (keys->count && !sink(user, keys->at, keys->count)) ||
        (infos->count && !sink(user, infos->at, infos->count)))
        return false;
    return pad_to(sizeof head + keys->count + infos->count, w->alignment, sink, user);
}

hd_status hdl_gguf_write_header(hdl_gguf_writer *writer, hdl_gguf_sink sink, void *user, uint64_t *out_file_bytes,
                                hd_error *error) {
    const uint64_t header = HEAD_BYTES + writer->keys.text.count + writer->tensors.text.count;
    if (writer->error.status) return hdl_fail(error, writer->error.status, "%s", writer->error.text);
    if (header > HDL_GGUF_MAX_HEADER_BYTES)
        return hdl_fail(error, HD_STATUS_LIMIT, "the header has more than %d bytes", HDL_GGUF_MAX_HEADER_BYTES);
    if (!hdl_pad(header, writer->alignment, out_file_bytes) ||
        !hdl_add(*out_file_bytes, writer->next, out_file_bytes) || *out_file_bytes > INT64_MAX)
        return hdl_fail(error, HD_STATUS_LIMIT, "the file's bytes do not fit into 63 bits");
    if (send_header(writer, sink, user)) return HD_OK;
    return hdl_fail(error, HD_STATUS_IO, "the model could not be written");
}

hd_status hdl_gguf_write(hdl_gguf_writer *writer, hdl_gguf_sink sink, void *user, hd_error *error) {
    uint64_t file_bytes;
    hd_status status = hdl_gguf_write_header(writer, sink, user, &file_bytes, error);
    for (uint32_t i = 0; i < writer->tensors.index.count && !status; i++)
        status = send_tensor(writer, i, sink, user, error);
    return status;
}

static hd_status write_all(void *user, hdl_sink sink, void *to, hd_error *error) {
    return hdl_gguf_write(user, sink, to, error);
}

hd_status hdl_gguf_write_file(hdl_gguf_writer *writer, const char *path, hd_error *error) {
    return hdl_write_file(&writer->allocator, path, write_all, writer, error);
}
