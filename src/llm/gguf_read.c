/* gguf_read.c: reads the header of one GGUF file. Relies on gguf_inside.h and the file table. The header is read in
 * pieces that double, never past the file's end, and parsed from that copy alone; places are kept as offsets, since the
 * copy may move while it grows. Nothing is allocated for a count before the file was seen to be long enough to hold
 * it. */
#include "llm/gguf_inside.h"
#include <stdarg.h>
#include <stdio.h>

enum {
    FIRST_PIECE = 1 << 20,
    MIN_KEY_BYTES = 8 + 4 + 1,            /* length of a name, kind, the smallest value */
    MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8  /* length of a name, rank, one length, type, offset */
};

/* Where the reading stands, and what it is at, for error lines. */
typedef struct reader {
    hdl_gguf      *gguf;
    hdl_gguf_part *part;
    hd_error      *error;
    uint64_t       at;     /* the next byte */
    const char    *thing;  /* "key", "tensor", or NULL in the file's first fields */
    uint64_t       number; /* of the thing */
    uint32_t       name_at, name_bytes; /* its name, once it is known */
    uint32_t       file_type; /* the model's general.file_type; 0 where it has none */
} reader;

#define CUT_SHORT "; the file is cut short: fetch it again"

/* Refuses the file: "model.gguf: key 3 'a.b': what is wrong, byte 123; what to do". */
static bool refuse(const reader *r, hd_status status, uint64_t at, const char *format, ...) HDL_PRINTF(4, 5);
static bool refuse(const reader *r, hd_status status, uint64_t at, const char *format, ...) {
    char what[192], name[HDL_QUOTE] = "", thing[96] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (r->name_bytes) hdl_quote((hdl_span){ r->part->header + r->name_at, r->name_bytes }, name);
    if (r->thing)
        snprintf(thing, sizeof thing, "%s %llu%s%s: ", r->thing, (unsigned long long)r->number, name[0] ? " " : "",
                 name);
    const size_t wrong = strcspn(what, ";");
    hdl_fail(r->error, status, "%.80s: %s%.*s, byte %llu%s", hdl_gguf_part_name(r->part), thing, (int)wrong, what,
             (unsigned long long)at, what + wrong);
    return false;
}

/* Reads the header on until it holds `wanted` bytes, which the file has. */
static bool load(reader *r, uint64_t wanted) {
    hdl_gguf_part *part = r->part;
    if (wanted > HDL_GGUF_MAX_HEADER_BYTES)
        return refuse(r, HD_STATUS_LIMIT, r->at, "the header has more than %d bytes", HDL_GGUF_MAX_HEADER_BYTES);
    uint64_t room = part->header_room ? part->header_room * 2 : FIRST_PIECE;
    while (room < wanted) room *= 2;
    if (room > HDL_GGUF_MAX_HEADER_BYTES) room = HDL_GGUF_MAX_HEADER_BYTES;
    if (room > part->file_bytes) room = part->file_bytes;
    if (!hdl_resize(&r->gguf->allocator, &part->header, part->header_room, room))
        return refuse(r, HD_STATUS_OUT_OF_HOST_MEMORY, r->at, "no memory for %llu bytes of the header",
                      (unsigned long long)room);
    part->header_room = room;
    if (!hdl_files_read_all(&r->gguf->files, part->file, part->header_bytes, part->header + part->header_bytes,
                            room - part->header_bytes))
        return refuse(r, HD_STATUS_IO, part->header_bytes, "reading failed or the file shrank from %llu bytes",
                      (unsigned long long)part->file_bytes);
    part->header_bytes = room;
    return true;
}

/* Makes sure that `bytes` bytes stand at the cursor. */
static bool need(reader *r, uint64_t bytes, const char *field) {
    const uint64_t left = r->part->file_bytes - r->at;
    if (bytes > left)
        return refuse(r, HD_STATUS_PARSE, r->at, "%s needs %llu bytes, the file has %llu more" CUT_SHORT, field,
                      (unsigned long long)bytes, (unsigned long long)left);
    return r->at + bytes <= r->part->header_bytes || load(r, r->at + bytes);
}

static bool take_u32(reader *r, const char *field, uint32_t *out) {
    if (!need(r, 4, field)) return false;
    *out = hdl_gguf_le32(r->part->header + r->at);
    r->at += 4;
    return true;
}

static bool take_u64(reader *r, const char *field, uint64_t *out) {
    if (!need(r, 8, field)) return false;
    *out = hdl_gguf_le64(r->part->header + r->at);
    r->at += 8;
    return true;
}

/* A count of things that take at least `least` bytes each. */
static bool take_count(reader *r, const char *field, uint64_t least, uint64_t limit, uint64_t *out) {
    if (!take_u64(r, field, out)) return false;
    if (*out > (r->part->file_bytes - r->at) / least)
        return refuse(r, HD_STATUS_PARSE, r->at - 8, "%s is %llu, more than the file can hold" CUT_SHORT, field,
                      (unsigned long long)*out);
    if (*out > limit)
        return refuse(r, HD_STATUS_LIMIT, r->at - 8, "%s is %llu, at most %llu is allowed", field,
                      (unsigned long long)*out, (unsigned long long)limit);
    return true;
}

/* The name of the thing: a length and as many bytes of clean text. */
static bool take_name(reader *r, uint64_t limit) {
    uint64_t bytes;
    r->name_bytes = 0;
    if (!take_u64(r, "the name's length", &bytes)) return false;
    if (bytes == 0) return refuse(r, HD_STATUS_PARSE, r->at - 8, "the name is empty");
    if (bytes > limit)
        return refuse(r, bytes > r->part->file_bytes - r->at ? HD_STATUS_PARSE : HD_STATUS_LIMIT, r->at - 8,
                      "the name's length is %llu, at most %llu is allowed", (unsigned long long)bytes,
                      (unsigned long long)limit);
    if (!need(r, bytes, "the name")) return false;
    if (!hdl_is_name((hdl_span){ r->part->header + r->at, bytes }))
        return refuse(r, HD_STATUS_PARSE, r->at, "the name is not UTF-8 or has control characters");
    r->name_at = (uint32_t)r->at;
    r->name_bytes = (uint32_t)bytes;
    r->at += bytes;
    return true;
}

/* ---- metadata ---- */

static bool check_bools(const reader *r, uint64_t at, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (r->part->header[at + i] > 1)
            return refuse(r, HD_STATUS_PARSE, at + i, "a bool is %u, must be 0 or 1", r->part->header[at + i]);
    return true;
}

static bool take_strings(reader *r, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bytes;
        if (!take_u64(r, "a string's length", &bytes) || !need(r, bytes, "a string of the array")) return false;
        r->at += bytes;
    }
    return true;
}

/* The value after its kind; fills in all of the entry but the name. */
static bool take_value(reader *r, hdl_gguf_entry *entry) {
    uint32_t kind, element;
    uint64_t count = 1, bytes;
    if (!take_u32(r, "the value's type", &kind)) return false;
    if (kind >= HDL_GGUF_KIND_COUNT)
        return refuse(r, HD_STATUS_PARSE, r->at - 4, "the value's type is %u, there is none above %d", kind,
                      HDL_GGUF_KIND_COUNT - 1);
    element = kind;
    if (kind == HDL_GGUF_STRING) {
        if (!take_u64(r, "the string's length", &bytes) || !need(r, bytes, "the string")) return false;
        entry->value_at = (uint32_t)r->at;
        r->at += bytes;
    } else {
        if (kind == HDL_GGUF_ARRAY) {
            if (!take_u32(r, "the array's type", &element)) return false;
            if (element >= HDL_GGUF_KIND_COUNT)
                return refuse(r, HD_STATUS_PARSE, r->at - 4, "the array's type is %u, there is none above %d", element,
                              HDL_GGUF_KIND_COUNT - 1);
            if (element == HDL_GGUF_ARRAY)
                return refuse(r, HD_STATUS_UNSUPPORTED, r->at - 4,
                              "the array's type is array: arrays of arrays are not read");
            const uint32_t one = hdl_gguf_kind_bytes(element);
            if (!take_count(r, "the array's length", one ? one : 8, UINT64_MAX, &count)) return false;
        }
        entry->value_at = (uint32_t)r->at;
        if (element == HDL_GGUF_STRING) {
            if (!take_strings(r, count)) return false;
        } else {
            bytes = count * hdl_gguf_kind_bytes(element); /* fits: the count was compared with the file */
            if (!need(r, bytes, "the value")) return false;
            if (element == HDL_GGUF_BOOL && !check_bools(r, r->at, bytes)) return false;
            r->at += bytes;
        }
    }
    /* The header's limit lets all of these fit. */
    entry->value_bytes = (uint32_t)(r->at - entry->value_at);
    entry->count = (uint32_t)count;
    entry->kind = (uint8_t)kind;
    entry->element = (uint8_t)element;
    return true;
}

static bool take_keys(reader *r, uint64_t count) {
    hdl_gguf_part *part = r->part;
    part->keys = hdl_alloc(&r->gguf->allocator, count * sizeof *part->keys);
    if (!part->keys)
        return refuse(r, HD_STATUS_OUT_OF_HOST_MEMORY, r->at, "no memory for %llu keys", (unsigned long long)count);
    part->key_room = (uint32_t)count;
    memcpy(part->key_index.key, r->gguf->hash_key, sizeof part->key_index.key);
    if (!hdl_index_reserve(&part->key_index, &r->gguf->allocator, (uint32_t)count, hdl_gguf_key_name, part))
        return refuse(r, HD_STATUS_OUT_OF_HOST_MEMORY, r->at, "no memory for %llu keys", (unsigned long long)count);
    r->thing = "key";
    for (r->number = 0; r->number < count; r->number++) {
        hdl_gguf_entry *entry = &part->keys[r->number];
        if (!take_name(r, HDL_GGUF_MAX_KEY_BYTES)) return false;
        entry->name_at = r->name_at;
        entry->name_bytes = (uint16_t)r->name_bytes;
        if (!hdl_index_add(&part->key_index, hdl_gguf_key_name, part))
            return refuse(r, HD_STATUS_PARSE, r->name_at, "the key is there twice");
        if (!take_value(r, entry)) return false;
        part->key_count++;
    }
    r->thing = NULL;
    r->name_bytes = 0;
    return true;
}

static bool find_alignment(reader *r) {
    hdl_gguf_value value;
    r->part->alignment = 32;
    if (!hdl_gguf_part_find(r->part, "general.alignment", &value)) return true;
    if (value.kind != HDL_GGUF_U32)
        return refuse(r, HD_STATUS_TYPE, value.offset, "key 'general.alignment' has type %s, wanted u32",
                      hdl_gguf_kind_name(value.kind));
    const uint32_t alignment = hdl_gguf_le32(value.bytes.bytes);
    if (alignment < HDL_GGUF_MIN_ALIGNMENT || alignment > HDL_GGUF_MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0)
        return refuse(r, HD_STATUS_PARSE, value.offset,
                      "key 'general.alignment' is %u, must be a power of two from %d to %d", alignment,
                      HDL_GGUF_MIN_ALIGNMENT, HDL_GGUF_MAX_ALIGNMENT);
    r->part->alignment = alignment;
    return true;
}

/* ---- tensors ---- */

hdl_span hdl_gguf_tensor_name(const void *owner, uint32_t number) {
    const hdl_gguf *gguf = owner;
    const hdl_gguf_record *tensor = &gguf->tensors[number];
    return (hdl_span){ gguf->parts[tensor->part].header + tensor->name_at, tensor->name_bytes };
}

/* Rank, lengths and type of a tensor; its bytes follow from them. */
static bool take_shape(reader *r, hdl_gguf_record *tensor) {
    uint32_t rank, type;
    uint64_t elements = 1, length;
    if (!take_u32(r, "the number of axes", &rank)) return false;
    if (rank < 1 || rank > HDL_GGUF_MAX_RANK)
        return refuse(r, HD_STATUS_PARSE, r->at - 4, "the number of axes is %u, must be 1 to %d", rank,
                      HDL_GGUF_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (!take_u64(r, "an axis' length", &length)) return false;
        if (length == 0 || length > INT64_MAX)
            return refuse(r, HD_STATUS_PARSE, r->at - 8, "the length of axis %u is %lld, must be at least 1", i,
                          (long long)length);
        if (!hdl_mul(elements, length, &elements) || elements > INT64_MAX)
            return refuse(r, HD_STATUS_PARSE, r->at - 8, "the number of elements does not fit into 63 bits at axis %u",
                          i);
        tensor->lengths[i] = (int64_t)length;
    }
    if (!take_u32(r, "the tensor's type", &type)) return false;
    const uint32_t number = type;
    type = hdl_gguf_type_of(number, r->file_type);
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
    if (facts.block_elements == 0)
        return refuse(r, HD_STATUS_UNSUPPORTED, r->at - 4, "the tensor's type is %u, which is not known", number);
    if ((uint64_t)tensor->lengths[0] % facts.block_elements)
        return refuse(r, HD_STATUS_PARSE, r->at - 4, "type %s has blocks of %u elements, the first axis has %lld",
                      facts.name, facts.block_elements, (long long)tensor->lengths[0]);
    if (!hdl_mul(elements / facts.block_elements, facts.block_bytes, &tensor->bytes) ||
        !hdl_add(tensor->bytes, facts.tail_bytes, &tensor->bytes))
        return refuse(r, HD_STATUS_PARSE, r->at - 4, "the number of bytes does not fit into 64 bits");
    if (type == HDL_GGUF_TYPE_TL2) {
        tensor->bytes = hdl_gguf_tensor_bytes(type, (hd_shape){ rank, { tensor->lengths[1], tensor->lengths[0] } });
        if (tensor->bytes == 0)
            return refuse(r, HD_STATUS_PARSE, r->at - 4, "type %s is for matrices with rows of at least 256",
                          facts.name);
    }
    tensor->rank = (uint8_t)rank;
    tensor->type = (uint8_t)type;
    return true;
}

/* One tensor; *next is where it must lie, and becomes where the one after it must. */
static bool take_tensor(reader *r, uint64_t *next) {
    hdl_gguf *gguf = r->gguf;
    hdl_gguf_record *tensor = &gguf->tensors[gguf->tensor_count];
    uint64_t offset, end;
    if (!take_name(r, HDL_GGUF_MAX_NAME_BYTES)) return false;
    *tensor = (hdl_gguf_record){ .name_at = r->name_at,
                                 .name_bytes = (uint8_t)r->name_bytes,
                                 .part = (uint16_t)(r->part - gguf->parts) };
    if (!hdl_index_add(&gguf->tensor_index, hdl_gguf_tensor_name, gguf))
        return refuse(r, HD_STATUS_PARSE, r->name_at, "the tensor is there twice");
    gguf->tensor_count++; /* as the index, whatever follows: a model that is refused is thrown away whole */
    if (!take_shape(r, tensor) || !take_u64(r, "the data's offset", &offset)) return false;
    if (offset % r->part->alignment)
        return refuse(r, HD_STATUS_PARSE, r->at - 8, "the data's offset is %llu, not a multiple of the alignment %u",
                      (unsigned long long)offset, r->part->alignment);
    if (offset != *next)
        return refuse(r, HD_STATUS_PARSE, r->at - 8, "the data's offset is %llu, the tensor before it ends for %llu",
                      (unsigned long long)offset, (unsigned long long)*next);
    if (!hdl_add(offset, tensor->bytes, &end) || end > r->part->file_bytes)
        return refuse(r, HD_STATUS_PARSE, r->at - 8,
                      "the data has %llu bytes at offset %llu, the file has %llu in all" CUT_SHORT,
                      (unsigned long long)tensor->bytes, (unsigned long long)offset,
                      (unsigned long long)r->part->file_bytes);
    tensor->offset = offset; /* within the data as yet */
    r->part->data_bytes = end;
    (void)hdl_pad(end, r->part->alignment, next); /* fits: the end is within the file, whose size has 63 bits */
    return true;
}

static bool take_tensors(reader *r, uint64_t count) {
    hdl_gguf *gguf = r->gguf;
    const uint64_t all = gguf->tensor_count + count;
    uint64_t next = 0;
    r->part->first_tensor = gguf->tensor_count;
    if (all > gguf->tensor_room) {
        if (!hdl_resize(&gguf->allocator, &gguf->tensors, gguf->tensor_room * sizeof *gguf->tensors,
                        all * sizeof *gguf->tensors))
            return refuse(r, HD_STATUS_OUT_OF_HOST_MEMORY, r->at, "no memory for %llu tensors",
                          (unsigned long long)all);
        gguf->tensor_room = (uint32_t)all;
    }
    if (!hdl_index_reserve(&gguf->tensor_index, &gguf->allocator, (uint32_t)all, hdl_gguf_tensor_name, gguf))
        return refuse(r, HD_STATUS_OUT_OF_HOST_MEMORY, r->at, "no memory for %llu tensors", (unsigned long long)all);
    (void)hdl_gguf_part_u32(&gguf->parts[0], "general.file_type", 0, UINT32_MAX, 0, &r->file_type, NULL);
    r->thing = "tensor";
    for (r->number = 0; r->number < count; r->number++)
        if (!take_tensor(r, &next)) return false;
    r->part->tensor_count = (uint32_t)count;
    r->thing = NULL;
    r->name_bytes = 0;
    return true;
}

/* The data begins after the header, aligned; every tensor must end within the file. */
static bool place_tensors(reader *r) {
    hdl_gguf_part *part = r->part;
    (void)hdl_pad(r->at, part->alignment, &part->data_at); /* fits, as do the sums below: the file's size has 63 bits */
    for (uint32_t i = 0; i < part->tensor_count; i++) {
        hdl_gguf_record *tensor = &r->gguf->tensors[part->first_tensor + i];
        tensor->offset += part->data_at;
        if (tensor->offset > part->file_bytes || tensor->bytes > part->file_bytes - tensor->offset) {
            r->thing = "tensor";
            r->number = i;
            r->name_at = tensor->name_at;
            r->name_bytes = tensor->name_bytes;
            return refuse(r, HD_STATUS_PARSE, tensor->offset,
                          "the data has %llu bytes, the file has %llu in all" CUT_SHORT,
                          (unsigned long long)tensor->bytes, (unsigned long long)part->file_bytes);
        }
    }
    return true;
}

static bool take_version(reader *r) {
    uint32_t magic, version;
    if (!take_u32(r, "the magic", &magic)) return false;
    if (magic != 0x46554747)
      return refuse(r, HD_STATUS_PARSE, 0,
                    "the first four bytes are not GGUF: this is no GGUF file; give a model in that format");
    if (!take_u32(r, "the version", &version)) return false;
    if (version == 1)
        return refuse(r, HD_STATUS_UNSUPPORTED_VERSION, 4, "the version is 1, too old: convert the file to version 3");
    if (version != 0 && (version & 0xffff) == 0)
        return refuse(r, HD_STATUS_UNSUPPORTED_VERSION, 4, "the file is big-endian: convert it to little-endian");
    if (version != 2 && version != 3)
        return refuse(r, HD_STATUS_UNSUPPORTED_VERSION, 4, "the version is %u, known are 2 and 3", version);
    r->part->version = version;
    return true;
}

hd_status hdl_gguf_read_header(hdl_gguf *gguf, uint32_t number, hd_error *error) {
    hd_error local = { 0 };
    reader r = { .gguf = gguf, .part = &gguf->parts[number], .error = &local };
    uint64_t tensor_count, key_count;
    const bool read =
        take_version(&r) &&
        take_count(&r, "the number of tensors", MIN_TENSOR_BYTES, HDL_GGUF_MAX_TENSORS - gguf->tensor_count,
                   &tensor_count) &&
        take_count(&r, "the number of keys", MIN_KEY_BYTES, HDL_GGUF_MAX_KEYS - gguf->keys_seen, &key_count) &&
        take_keys(&r, key_count) && find_alignment(&r) && take_tensors(&r, tensor_count) && place_tensors(&r);
    if (!read) {
        if (error && error->status == HD_OK) *error = local;
        return local.status;
    }
    gguf->keys_seen += (uint32_t)key_count;
    if (hdl_resize(&gguf->allocator, &r.part->header, r.part->header_room, r.at)) /* what was read beyond the header */
        r.part->header_room = r.part->header_bytes = r.at;
    return HD_OK;
}
