/* gguf.c: a model from its file or its parts: opening, closing, finding tensors and handing out their data. Relies on
 * gguf_read.c for each header. The names of the parts follow from the path that the caller gave, never from text in a
 * file. A mapped file's size is compared anew before any of its bytes are handed out (see gguf.h, A FILE THAT
 * CHANGES). */
#include "llm/gguf_inside.h"
#include "os/os.h"
#include <stdio.h>

const char *hdl_gguf_part_name(const hdl_gguf_part *part) {
    const char *name = part->path;
    for (const char *at = name; *at; at++)
        if (hdi_os_is_slash(*at) && at[1]) name = at + 1;
    return name;
}

/* ---- parts ---- */

static void close_part(hdl_gguf *gguf, hdl_gguf_part *part) {
    const hd_allocator *allocator = &gguf->allocator;
    if (part->map) gguf->files.unmap(gguf->files.user, part->map, part->file_bytes);
    if (part->is_open) gguf->files.close(gguf->files.user, part->file);
    hdl_free(allocator, part->header, part->header_room);
    hdl_free(allocator, part->keys, part->key_room * sizeof *part->keys);
    hdl_index_free(&part->key_index, allocator);
    hdl_free(allocator, part->path, part->path ? strlen(part->path) + 1 : 0);
    *part = (hdl_gguf_part){ 0 };
}

/* Opens part `number` of the model, whose path is `path`, reads its header and maps it. */
static hd_status open_part(hdl_gguf *gguf, uint32_t number, const char *path, hd_error *error) {
    hdl_gguf_part *part = &gguf->parts[number];
    const hdl_files *files = &gguf->files;
    const size_t path_bytes = strlen(path) + 1;
    part->path = hdl_alloc(&gguf->allocator, path_bytes);
    if (!part->path) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory to open it", path);
    memcpy(part->path, path, path_bytes);
    hd_status status = files->open(files->user, path, &part->file, error);
    if (status) return status;
    part->is_open = true;
    if (!files->size(files->user, part->file, &part->file_bytes) || part->file_bytes > INT64_MAX)
        return hdl_fail(error, HD_STATUS_IO, "%.80s: its size cannot be told", hdl_gguf_part_name(part));
    status = hdl_gguf_read_header(gguf, number, error);
    if (!status && part->tensor_count) part->map = files->map(files->user, part->file, part->file_bytes);
    return status;
}

/* How a part says that it belongs to a split model. */
typedef struct split {
    uint32_t number, count; /* count 0: not split */
} split;

static hd_status read_split(const hdl_gguf_part *part, split *out, hd_error *error) {
    hd_status status = hdl_gguf_part_u32(part, "split.count", 0, UINT16_MAX, 0, &out->count, error);
    return status ? status : hdl_gguf_part_u32(part, "split.no", 0, UINT16_MAX, 0, &out->number, error);
}

/* "-00001-of-00003.gguf" */
enum { SUFFIX_BYTES = 20, SUFFIX_ROOM = 32 };
static void suffix(char out[SUFFIX_ROOM], uint32_t number, uint32_t count) {
    snprintf(out, SUFFIX_ROOM, "-%05u-of-%05u.gguf", (number + 1) % 100000, count % 100000);
}

static hd_status open_later_part(hdl_gguf *gguf, uint32_t number, const char *path, hd_error *error) {
    hdl_gguf_part *part = &gguf->parts[number];
    split it;
    hd_status status = open_part(gguf, number, path, error);
    if (!status) status = read_split(part, &it, error);
    if (status) return status;
    if (it.number != number || it.count != gguf->part_count)
        return hdl_fail(error, HD_STATUS_PARSE,
                        "%.80s: keys split.no and split.count say part %u of %u, wanted %u of %u",
                        hdl_gguf_part_name(part), it.number + 1, it.count, number + 1, gguf->part_count);
    /* Its keys have said what they had to say. */
    hdl_free(&gguf->allocator, part->keys, part->key_room * sizeof *part->keys);
    part->keys = NULL;
    part->key_count = part->key_room = 0;
    hdl_index_free(&part->key_index, &gguf->allocator);
    return HD_OK;
}

/* Opens the other parts, where the first says that there are any. */
static hd_status open_others(hdl_gguf *gguf, const char *path, hd_error *error) {
    const char *name = hdl_gguf_part_name(&gguf->parts[0]);
    char end[SUFFIX_ROOM];
    split first;
    uint32_t tensors;
    hd_status status = read_split(&gguf->parts[0], &first, error);
    if (status) return status;
    if (first.number != 0)
        return hdl_fail(error, HD_STATUS_PARSE,
                        "%.80s: key split.no says that this is part %u of %u: open the first part", name,
                        first.number + 1, first.count);
    if (first.count > HDL_GGUF_MAX_PARTS)
        return hdl_fail(error, HD_STATUS_LIMIT, "%.80s: key split.count is %u, at most %d parts are read", name,
                        first.count, HDL_GGUF_MAX_PARTS);
    if (first.count <= 1) return HD_OK;
    const size_t bytes = strlen(path) + 1;
    suffix(end, 0, first.count);
    if (bytes <= SUFFIX_BYTES || strcmp(path + bytes - 1 - SUFFIX_BYTES, end) != 0)
        return hdl_fail(error, HD_STATUS_PARSE, "%.80s: key split.count is %u, so the name must end in %s", name,
                        first.count, end);
    if (!hdl_resize(&gguf->allocator, &gguf->parts, sizeof *gguf->parts, first.count * sizeof *gguf->parts))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory for %u parts", name, first.count);
    memset(gguf->parts + 1, 0, (first.count - 1) * sizeof *gguf->parts);
    gguf->part_count = first.count;
    char *other = hdl_alloc(&gguf->allocator, bytes);
    if (!other) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory for a path", name);
    memcpy(other, path, bytes);
    for (uint32_t i = 1; i < first.count && !status; i++) {
        suffix(end, i, first.count);
        memcpy(other + bytes - 1 - SUFFIX_BYTES, end, SUFFIX_BYTES);
        status = open_later_part(gguf, i, other, error);
    }
    hdl_free(&gguf->allocator, other, bytes);
    if (!status)
        status = hdl_gguf_part_u32(&gguf->parts[0], "split.tensors.count", 0, UINT32_MAX, gguf->tensor_count, &tensors,
                                   error);
    if (!status && tensors != gguf->tensor_count)
        status = hdl_fail(error, HD_STATUS_PARSE, "%.80s: key split.tensors.count is %u, the parts have %u", name,
                          tensors, gguf->tensor_count);
    return status;
}

hd_status hdl_gguf_open(const char *path, const hdl_gguf_desc *desc, hdl_gguf **out_gguf, hd_error *error) {
    if (out_gguf) *out_gguf = NULL;
    if (!path || !out_gguf) return hdl_fail(error, HD_STATUS_NULL_POINTER, "%s is NULL", path ? "out_gguf" : "path");
    const hd_allocator *allocator = desc && desc->allocator ? desc->allocator : &hdl_default_allocator;
    hdl_gguf *gguf = hdl_alloc(allocator, sizeof *gguf);
    if (!gguf) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory to open it", path);
    gguf->allocator = *allocator;
    gguf->files = desc && desc->files ? *desc->files : hdl_system_files;
    hdl_random_key(gguf->hash_key);
    memcpy(gguf->tensor_index.key, gguf->hash_key, sizeof gguf->hash_key);
    gguf->parts = hdl_alloc(allocator, sizeof *gguf->parts);
    gguf->part_count = gguf->parts ? 1 : 0;
    hd_status status = gguf->parts ? open_part(gguf, 0, path, error)
                                   : hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory to open it", path);
    if (!status) status = open_others(gguf, path, error);
    if (status) {
        hdl_gguf_close(gguf);
        return status;
    }
    *out_gguf = gguf;
    return HD_OK;
}

void hdl_gguf_close(hdl_gguf *gguf) {
    if (!gguf) return;
    const hd_allocator allocator = gguf->allocator;
    for (uint32_t i = 0; gguf->kept && i < gguf->tensor_count; i++)
        hdl_free(&allocator, gguf->kept[i], gguf->tensors[i].bytes);
    hdl_free(&allocator, gguf->kept, gguf->tensor_count * sizeof *gguf->kept);
    for (uint32_t i = 0; i < gguf->part_count; i++) close_part(gguf, &gguf->parts[i]);
    hdl_free(&allocator, gguf->parts, gguf->part_count * sizeof *gguf->parts);
    hdl_free(&allocator, gguf->tensors, gguf->tensor_room * sizeof *gguf->tensors);
    hdl_index_free(&gguf->tensor_index, &allocator);
    hdl_free(&allocator, gguf, sizeof *gguf);
}

hdl_gguf_info hdl_gguf_get_info(const hdl_gguf *gguf) {
    hdl_gguf_info info = {
        .version = gguf->parts[0].version, .part_count = gguf->part_count, .key_count = gguf->parts[0].key_count,
        .tensor_count = gguf->tensor_count, .alignment = gguf->parts[0].alignment, .mapped = true,
    };
    for (uint32_t i = 0; i < gguf->part_count; i++) {
        const hdl_gguf_part *part = &gguf->parts[i];
        uint64_t end;
        info.file_bytes += part->file_bytes;
        if (hdl_pad(part->data_at + part->data_bytes, part->alignment, &end) && end < part->file_bytes)
            info.trailing_bytes += part->file_bytes - end;
        if (part->tensor_count && !part->map) info.mapped = false;
    }
    for (uint32_t i = 0; i < gguf->tensor_count; i++) info.tensor_bytes += gguf->tensors[i].bytes;
    return info;
}

/* ---- tensors ---- */

hdl_gguf_tensor hdl_gguf_tensor_at(const hdl_gguf *gguf, uint32_t i) {
    if (i >= gguf->tensor_count) return (hdl_gguf_tensor){ .number = UINT32_MAX, .type = HDL_GGUF_TYPE_COUNT };
    const hdl_gguf_record *record = &gguf->tensors[i];
    hdl_gguf_tensor tensor = {
        .name = hdl_gguf_tensor_name(gguf, i), .number = i, .type = record->type, .shape = { .rank = record->rank },
        .part = record->part, .offset = record->offset, .bytes = record->bytes,
    };
    for (uint32_t axis = 0; axis < record->rank; axis++)
        tensor.shape.dims[axis] = record->lengths[record->rank - 1 - axis];
    return tensor;
}

bool hdl_gguf_find_tensor(const hdl_gguf *gguf, const char *name, hdl_gguf_tensor *out_tensor) {
    const int64_t number = hdl_index_find(&gguf->tensor_index, hdl_text(name), hdl_gguf_tensor_name, gguf);
    if (number < 0) return false;
    *out_tensor = hdl_gguf_tensor_at(gguf, (uint32_t)number);
    return true;
}

static const char *shape_text(hd_shape shape, char out[128]) {
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < shape.rank && i < HD_MAX_RANK && used < 100; i++)
        used += (size_t)snprintf(out + used, 128 - used, "%s%lld", i ? "," : "", (long long)shape.dims[i]);
    return out;
}

static hd_status check_usable(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hd_error *error) {
    char name[HDL_QUOTE];
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(tensor->type);
    if (facts.usable) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "%.80s: tensor %s has type %s, which heddle does not compute with",
                    hdl_gguf_part_name(&gguf->parts[tensor->part]), hdl_quote(tensor->name, name), facts.name);
}

hd_status hdl_gguf_need_tensor(const hdl_gguf *gguf, const char *name, hd_shape shape, hdl_gguf_tensor *out_tensor,
                               hd_error *error) {
    char has[128], wanted[128];
    const char *file = hdl_gguf_part_name(&gguf->parts[0]);
    if (!hdl_gguf_find_tensor(gguf, name, out_tensor))
        return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "%.80s: tensor '%.80s' is missing; convert the model anew",
                        file, name);
    /* A file drops slowest axes of length 1: [1,n] and [n] are the same bytes, and the same tensor. */
    uint32_t skip_has = 0, skip_wanted = 0;
    const hd_shape is = out_tensor->shape;
    while (skip_has < is.rank && is.dims[skip_has] == 1) skip_has++;
    while (skip_wanted < shape.rank && shape.dims[skip_wanted] == 1) skip_wanted++;
    bool same = is.rank - skip_has == shape.rank - skip_wanted;
    for (uint32_t i = 0; same && i < is.rank - skip_has; i++)
        same = is.dims[skip_has + i] == shape.dims[skip_wanted + i];
    if (!same)
        return hdl_fail(error, HD_STATUS_SHAPE, "%.80s: tensor '%.64s' has shape [%s], wanted [%s]", file, name,
                        shape_text(is, has), shape_text(shape, wanted));
    out_tensor->shape = shape;
    return check_usable(gguf, out_tensor, error);
}

/* ---- data ---- */

/* The tensor must be one of this model's; a file that is shorter than it was is an error before anybody touches it. */
static hd_status check_use(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hd_error *error) {
    uint64_t bytes;
    char name[HDL_QUOTE];
    if (tensor->number >= gguf->tensor_count || tensor->bytes != gguf->tensors[tensor->number].bytes)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "the tensor is not of this model");
    hd_status status = check_usable(gguf, tensor, error);
    if (status) return status;
    const hdl_gguf_record *record = &gguf->tensors[tensor->number];
    const hdl_gguf_part *part = &gguf->parts[record->part];
    if (!gguf->files.size(gguf->files.user, part->file, &bytes))
        return hdl_fail(error, HD_STATUS_IO, "%.80s: its size cannot be told", hdl_gguf_part_name(part));
    if (bytes >= record->offset + record->bytes) return HD_OK;
    return hdl_fail(error, HD_STATUS_IO, "%.80s: the file shrank from %llu to %llu bytes, tensor %s ends at byte %llu",
                    hdl_gguf_part_name(part), (unsigned long long)part->file_bytes, (unsigned long long)bytes,
                    hdl_quote(tensor->name, name), (unsigned long long)(record->offset + record->bytes));
}

hd_status hdl_gguf_read(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, uint64_t from, uint64_t bytes, void *out,
                        hd_error *error) {
    char name[HDL_QUOTE];
    hd_status status = check_use(gguf, tensor, error);
    if (status) return status;
    const hdl_gguf_record *record = &gguf->tensors[tensor->number];
    const hdl_gguf_part *part = &gguf->parts[record->part];
    if (from > record->bytes || bytes > record->bytes - from)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "%llu bytes from %llu on are not within tensor %s of %llu bytes", (unsigned long long)bytes,
                        (unsigned long long)from, hdl_quote(tensor->name, name), (unsigned long long)record->bytes);
    if (hdl_files_read_all(&gguf->files, part->file, record->offset + from, out, bytes)) return HD_OK;
    return hdl_fail(error, HD_STATUS_IO, "%.80s: tensor %s cannot be read, byte %llu", hdl_gguf_part_name(part),
                    hdl_quote(tensor->name, name), (unsigned long long)(record->offset + from));
}

hd_status hdl_gguf_beside(const hdl_gguf *gguf, const char *name, char *out, uint64_t room, uint64_t *out_count,
                          hd_error *error) {
    const hdl_files *files = &gguf->files;
    const char *path = gguf->parts[0].path;
    const size_t folder = (size_t)(hdl_gguf_part_name(&gguf->parts[0]) - path), bytes = folder + strlen(name) + 1;
    char *beside = hdl_alloc(&gguf->allocator, bytes);
    hdl_file file;
    *out_count = 0;
    if (!beside) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.80s: no memory to open it", name);
    snprintf(beside, bytes, "%.*s%s", (int)folder, path, name);
    const bool is_there = !files->open(files->user, beside, &file, NULL);
    hdl_free(&gguf->allocator, beside, bytes);
    if (!is_there) return HD_OK;
    hd_status status = HD_OK;
    if (!files->size(files->user, file, out_count))
        status = hdl_fail(error, HD_STATUS_IO, "%.80s: its size cannot be told", name);
    else if (*out_count > room)
        status = hdl_fail(error, HD_STATUS_LIMIT, "%.80s: it has %llu bytes, at most %llu are read", name,
                          (unsigned long long)*out_count, (unsigned long long)room);
    else if (!hdl_files_read_all(files, file, 0, out, *out_count))
        status = hdl_fail(error, HD_STATUS_IO, "%.80s: it cannot be read", name);
    files->close(files->user, file);
    return status;
}

/* Reads the tensor once and keeps it. */
static hd_status keep(hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hdl_span *out_data, hd_error *error) {
    const hd_allocator *allocator = &gguf->allocator;
    char name[HDL_QUOTE];
    if (!gguf->kept) gguf->kept = hdl_alloc(allocator, gguf->tensor_count * sizeof *gguf->kept);
    void *data = gguf->kept ? gguf->kept[tensor->number] : NULL;
    if (!data) {
        /* Not zeroed first: what a file of holes promises is touched only as far as it can be read. */
        if (!gguf->kept || !hdl_resize(allocator, &data, 0, tensor->bytes))
            return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the %llu bytes of tensor %s",
                            (unsigned long long)tensor->bytes, hdl_quote(tensor->name, name));
        hd_status status = hdl_gguf_read(gguf, tensor, 0, tensor->bytes, data, error);
        if (status) {
            hdl_free(allocator, data, tensor->bytes);
            return status;
        }
        gguf->kept[tensor->number] = data;
    }
    *out_data = (hdl_span){ data, tensor->bytes };
    return HD_OK;
}

void hdl_gguf_rest(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor) {
    const hdl_gguf_record *record = &gguf->tensors[tensor->number];
    const hdl_gguf_part *part = &gguf->parts[record->part];
    if (part->map && gguf->files.rest) gguf->files.rest(gguf->files.user, part->map + record->offset, record->bytes);
}

hd_status hdl_gguf_data(hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hdl_span *out_data, hd_error *error) {
    *out_data = (hdl_span){ 0 };
    hd_status status = check_use(gguf, tensor, error);
    if (status) return status;
    const hdl_gguf_record *record = &gguf->tensors[tensor->number];
    const hdl_gguf_part *part = &gguf->parts[record->part];
    if (!part->map) return keep(gguf, tensor, out_data, error);
    *out_data = (hdl_span){ part->map + record->offset, record->bytes };
    return HD_OK;
}
