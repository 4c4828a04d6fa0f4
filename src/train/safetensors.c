/* safetensors.c: reads safetensors files: 8 bytes of header length, little-endian; a JSON object {name: {dtype, shape,
 * data_offsets}, "__metadata__": {text: text}}; the tensors' bytes. As github.com/huggingface/safetensors describes it:
 * no gap, no overlap, no name twice. */
#include "train/safetensors.h"
#include <stdlib.h>
#include <string.h>

enum { HEADER_MOST = 100 * 1000 * 1000, LENGTH_BYTES = 8 };

/* Every type of the format with whole bytes. */
static const struct { const char *name; uint32_t bytes; hd_dtype dtype; } types[] = {
    { "F32", 4, HD_F32 }, { "F16", 2, HD_F16 }, { "BF16", 2, HD_BF16 }, { "I32", 4, HD_I32 }, { "U8", 1, HD_U8 },
    { "F64", 8, HD_DTYPE_NONE }, { "I64", 8, HD_DTYPE_NONE }, { "U64", 8, HD_DTYPE_NONE }, { "U32", 4, HD_DTYPE_NONE },
    { "I16", 2, HD_DTYPE_NONE }, { "U16", 2, HD_DTYPE_NONE }, { "I8", 1, HD_DTYPE_NONE }, { "BOOL", 1, HD_DTYPE_NONE },
    { "F8_E4M3", 1, HD_DTYPE_NONE }, { "F8_E5M2", 1, HD_DTYPE_NONE },
};

/* What is wrong with an entry: a status, and a text with the name. */
static hd_status wrong(const hd_safetensors *file, const char *path, hd_status status, const char *name,
                       const char *what) {
    return hdt_fail(file->context, status, "%s: tensor '%.80s' %s", path, name, what);
}

/* An array of `least` to `most` whole numbers that are not negative; returns their number, or -1. */
static int numbers_of(const json_t *array, size_t least, size_t most, uint64_t *out) {
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count < least || count > most) return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0) return -1;
        out[i] = (uint64_t)json_integer_value(item);
    }
    return (int)count;
}

static hd_status read_tensor(const hd_safetensors *file, const char *path, const char *name, const json_t *entry,
                             hd_safetensor *out) {
    uint64_t dims[HD_MAX_RANK], ends[2], bytes = 1;
    const uint64_t room = file->map.count - (uint64_t)((const uint8_t *)out->data - file->map.bytes);
    const json_t *shape = json_object_get(entry, "shape");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (!type || !json_is_array(shape)) return wrong(file, path, HD_STATUS_PARSE, name, "lacks dtype or shape");
    if (json_array_size(shape) > HD_MAX_RANK)
        return wrong(file, path, HD_STATUS_UNSUPPORTED, name, "has more than 6 axes");
    const int rank = numbers_of(shape, 0, HD_MAX_RANK, dims);
    if (rank < 0) return wrong(file, path, HD_STATUS_PARSE, name, "has a shape that is no list of whole numbers");
    if (numbers_of(json_object_get(entry, "data_offsets"), 2, 2, ends) < 0 || ends[0] > ends[1] || ends[1] > room)
        return wrong(file, path, HD_STATUS_PARSE, name, "lies outside of the file");
    for (size_t i = 0; i < HDT_COUNT(types); i++)
        if (strcmp(types[i].name, type) == 0) { bytes = types[i].bytes; out->dtype = types[i].dtype;
                                                out->type = types[i].name; }
    if (!out->type) return wrong(file, path, HD_STATUS_UNSUPPORTED, name, "is of a type that is not known");
    out->shape.rank = (uint32_t)rank;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) return wrong(file, path, HD_STATUS_UNSUPPORTED, name, "has an axis of length 0");
        if (dims[i] > room / bytes) return wrong(file, path, HD_STATUS_PARSE, name, "is larger than the file");
        bytes *= dims[i];
        out->shape.dims[i] = (int64_t)dims[i];
    }
    if (bytes != ends[1] - ends[0])
        return wrong(file, path, HD_STATUS_PARSE, name, "has other bytes than its shape and type ask for");
    out->name = name;
    out->bytes = bytes;
    out->data = (const uint8_t *)out->data + ends[0];
    return HD_OK;
}

static int by_place(const void *a, const void *b) {
    const uint8_t *left = ((const hd_safetensor *)a)->data, *right = ((const hd_safetensor *)b)->data;
    return (left > right) - (left < right);
}

/* The tensors fill all bytes behind the header. */
static hd_status check_places(const hd_safetensors *file, const char *path, const uint8_t *first) {
    for (size_t i = 0; i < file->count; i++) {
        if (file->tensors[i].data != first)
            return wrong(file, path, HD_STATUS_PARSE, file->tensors[i].name,
                         "overlaps another one, or lies behind a gap");
        first += file->tensors[i].bytes;
    }
    if (first != file->map.bytes + file->map.count)
        return hdt_fail(file->context, HD_STATUS_PARSE, "%s holds bytes behind its last tensor", path);
    return HD_OK;
}

static hd_status read_header(hd_safetensors *file, const char *path, const uint8_t **out_first) {
    uint64_t length = 0;
    if (file->map.count < LENGTH_BYTES)
        return hdt_fail(file->context, HD_STATUS_PARSE, "%s is too short for a safetensors file", path);
    for (int i = LENGTH_BYTES; i-- > 0;) length = length << 8 | file->map.bytes[i];
    if (length > HEADER_MOST)
        return hdt_fail(file->context, HD_STATUS_LIMIT, "%s: a header of more than 100 MB, or no safetensors file",
                        path);
    if (length > file->map.count - LENGTH_BYTES)
        return hdt_fail(file->context, HD_STATUS_PARSE, "%s ends inside of its header", path);
    const char *text = (const char *)file->map.bytes + LENGTH_BYTES;
    if (length == 0 || text[0] != '{')
        return hdt_fail(file->context, HD_STATUS_PARSE, "%s is no safetensors file", path);
    json_error_t why;
    file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(file->header))
        return hdt_fail(file->context, HD_STATUS_PARSE, "%s: its header is no JSON object: %s", path, why.text);
    *out_first = (const uint8_t *)text + length;
    return HD_OK;
}

static hd_status check_metadata(const hd_safetensors *file, const char *path) {
    const char *key;
    json_t *value, *metadata = json_object_get(file->header, "__metadata__");
    bool texts = !metadata || json_is_object(metadata);
    json_object_foreach(metadata, key, value) texts = texts && json_is_string(value);
    return texts ? HD_OK : hdt_fail(file->context, HD_STATUS_PARSE, "%s: __metadata__ is no object of texts", path);
}

hd_status hdt_safetensors_read(hd_safetensors *file, const char *path) {
    const uint8_t *first = NULL;
    const char *name;
    json_t *entry;
    hd_status status = read_header(file, path, &first);
    if (!status) status = check_metadata(file, path);
    if (status) return status;
    const size_t most = json_object_size(file->header);
    file->tensors = hdt_alloc(file->context, most, sizeof *file->tensors);
    if (!file->tensors) return hdt_no_memory(file->context);
    json_object_foreach(file->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        hd_safetensor *tensor = &file->tensors[file->count++];
        tensor->data = first;
        if (!status) status = read_tensor(file, path, name, entry, tensor);
    }
    if (status) return status;
    if (file->count > 0) qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    return check_places(file, path, first);
}

static const char kind[] = "safetensors file";

hd_status hd_safetensors_open(hd_context *context, const char *path, hd_safetensors **out_file) {
    if (!context || !path || !out_file)
        return hdt_fail(context, HD_STATUS_NULL_POINTER, "hd_safetensors_open was given NULL");
    hd_safetensors *file = hdt_alloc(context, 1, sizeof *file);
    *out_file = NULL;
    if (!file) return hdt_no_memory(context);
    file->context = context;
    hd_status status = hdt_map_open(context, path, &file->map);
    if (!status) status = hdt_safetensors_read(file, path);
    if (!status) status = hd_handle_new(context, kind, file, &file->handle);
    if (status) hd_safetensors_close(file);
    else *out_file = file->handle;
    return status;
}

void hd_safetensors_close(hd_safetensors *file) {
    file = hd_handle_find(file, kind);
    if (!file || (file->handle && !hd_handle_end(file->handle))) return;
    hdt_free(file->context, file->tensors, json_object_size(file->header), sizeof *file->tensors);
    json_decref(file->header);
    hdt_map_close(&file->map);
    hdt_free(file->context, file, 1, sizeof *file);
}

size_t hd_safetensors_count(const hd_safetensors *file) {
    file = hd_handle_find(file, kind);
    return file ? file->count : 0;
}
const hd_safetensor *hd_safetensors_get(const hd_safetensors *file, size_t index) {
    file = hd_handle_find(file, kind);
    return file && index < file->count ? &file->tensors[index] : NULL;
}
const hd_safetensor *hd_safetensors_find(const hd_safetensors *file, const char *name) {
    file = hd_handle_find(file, kind);
    for (size_t i = 0; file && name && i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    return NULL;
}
const char *hd_safetensors_metadata(const hd_safetensors *file, const char *key) {
    file = hd_handle_find(file, kind);
    return file && key ? json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key)) : NULL;
}

/* ---- writing ---- */

static const char *type_of(hd_dtype dtype) {
    for (size_t i = 0; i < HDT_COUNT(types); i++)
        if (dtype != HD_DTYPE_NONE && types[i].dtype == dtype) return types[i].name;
    return NULL;
}

static json_t *entry_of(const hd_safetensor *tensor, uint64_t begin) {
    json_t *shape = json_array();
    for (uint32_t i = 0; i < tensor->shape.rank; i++) json_array_append_new(shape, json_integer(tensor->shape.dims[i]));
    const uint64_t end = begin + hd_tensor_bytes(tensor->dtype, tensor->shape);
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", type_of(tensor->dtype), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* The object of the header; NULL without memory. */
static json_t *object_of(const hd_safetensor *tensors, size_t count, const char *const *metadata) {
    json_t *root = json_object();
    bool good = root != NULL;
    uint64_t begin = 0;
    if (metadata && metadata[0]) {
        json_t *texts = json_object();
        for (size_t i = 0; metadata[i]; i += 2)
            good &= json_object_set_new(texts, metadata[i], json_string(metadata[i + 1])) == 0;
        good &= json_object_set_new(root, "__metadata__", texts) == 0;
    }
    for (size_t i = 0; i < count && good; i++) {
        good = json_object_set_new(root, tensors[i].name, entry_of(&tensors[i], begin)) == 0;
        begin += hd_tensor_bytes(tensors[i].dtype, tensors[i].shape);
    }
    if (good) return root;
    json_decref(root);
    return NULL;
}

char *hdt_safetensors_header(hd_context *context, const hd_safetensor *tensors, size_t count,
                             const char *const *metadata, uint64_t *out_bytes) {
    json_t *root = object_of(tensors, count, metadata);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    const size_t length = text ? strlen(text) : 0, padded = (length + 7) & ~(size_t)7;
    char *header = text && length <= HEADER_MOST ? malloc(LENGTH_BYTES + padded) : NULL;
    for (int i = 0; header && i < LENGTH_BYTES; i++) header[i] = (char)((uint64_t)padded >> (8 * i) & 255);
    if (header) memcpy(header + LENGTH_BYTES, text, length);
    if (header) memset(header + LENGTH_BYTES + length, ' ', padded - length);
    if (text && length > HEADER_MOST)
        hdt_fail(context, HD_STATUS_LIMIT, "the header of these tensors has more than 100 MB");
    else if (!header) hdt_no_memory(context);
    *out_bytes = LENGTH_BYTES + padded;
    free(text);
    json_decref(root);
    return header;
}

static hd_status check_tensors(hd_context *context, const hd_safetensor *tensors, size_t count) {
    json_t *names = json_object();
    hd_status status = names ? HD_OK : hdt_no_memory(context);
    for (size_t i = 0; i < count && !status; i++) {
        const hd_safetensor *t = &tensors[i];
        if (!t->name || !t->data)
            status = hdt_fail(context, HD_STATUS_NULL_POINTER, "tensor %zu has no name or no data", i);
        else if (!type_of(t->dtype) || hd_tensor_bytes(t->dtype, t->shape) == 0)
            status = hdt_fail(context, HD_STATUS_TYPE, "tensor '%.80s' of %s cannot be written as safetensors", t->name,
                              hd_dtype_name(t->dtype));
        else if (json_object_get(names, t->name) || strcmp(t->name, "__metadata__") == 0)
            status = hdt_fail(context, HD_STATUS_NAME_TAKEN,
                              "tensor '%.80s' is there twice, or has a name of the format's", t->name);
        else if (json_object_set_new(names, t->name, json_null()) != 0) status = hdt_no_memory(context);
    }
    json_decref(names);
    return status;
}

hd_status hd_safetensors_write(hd_context *context, const char *path, const hd_safetensor *tensors, size_t count,
                               const char *const *metadata) {
    if (!path || (count > 0 && !tensors))
        return hdt_fail(context, HD_STATUS_NULL_POINTER, "hd_safetensors_write was given NULL");
    hd_status status = check_tensors(context, tensors, count);
    if (status) return status;
    uint64_t header_bytes = 0;
    char *header = hdt_safetensors_header(context, tensors, count, metadata, &header_bytes), *part = NULL;
    hdt_piece *pieces = hdt_alloc(context, count + 1, sizeof *pieces);
    if (header && pieces) part = malloc(strlen(path) + sizeof ".new");
    if (!header) status = HD_STATUS_OUT_OF_HOST_MEMORY;
    else if (!part) status = hdt_no_memory(context);
    if (!status) {
        pieces[0] = (hdt_piece){ header, header_bytes };
        for (size_t i = 0; i < count; i++)
            pieces[i + 1] = (hdt_piece){ tensors[i].data, hd_tensor_bytes(tensors[i].dtype, tensors[i].shape) };
        strcat(strcpy(part, path), ".new");
        status = hdt_write_file(context, part, pieces, count + 1);
        if (!status) status = hdt_rename(context, part, path);
    }
    hdt_free(context, pieces, count + 1, sizeof *pieces);
    free(header);
    free(part);
    return status;
}
