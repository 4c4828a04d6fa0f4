/* gguf_inside.h: what the files of the GGUF reader share with each other, and with nobody else. */
#ifndef HDL_GGUF_INSIDE_H
#define HDL_GGUF_INSIDE_H

#include "llm/gguf.h"

/* A key, by places in the header: small, because a file may hold a million. */
typedef struct hdl_gguf_entry {
    uint32_t name_at, value_at; /* value_at: past a string's length, past an array's kind and count */
    uint32_t value_bytes, count;
    uint16_t name_bytes;
    uint8_t  kind, element;
} hdl_gguf_entry;

/* A tensor, by its name's place in its part's header. */
typedef struct hdl_gguf_record {
    uint32_t name_at;
    uint8_t  name_bytes, rank, type;
    uint16_t part;
    uint64_t offset, bytes; /* offset: in the file */
    int64_t  lengths[HDL_GGUF_MAX_RANK]; /* fastest axis first */
} hdl_gguf_record;

/* One file of the model. */
typedef struct hdl_gguf_part {
    char           *path;
    hdl_file        file;
    bool            is_open;
    uint64_t        file_bytes;
    uint8_t        *header; /* the file's first bytes, read once */
    uint64_t        header_bytes, header_room;
    hdl_gguf_entry *keys;
    uint32_t        key_count, key_room;
    hdl_index       key_index;
    uint32_t        version, alignment;
    uint32_t        first_tensor, tensor_count;
    uint64_t        data_at, data_bytes; /* data_bytes: up to the end of the last tensor */
    const uint8_t  *map; /* all file_bytes, or NULL */
} hdl_gguf_part;

struct hdl_gguf {
    hd_allocator     allocator;
    hdl_files        files;
    uint64_t         hash_key[2];
    hdl_gguf_part   *parts;
    uint32_t         part_count;
    uint32_t         keys_seen; /* over all parts */
    hdl_gguf_record *tensors;
    uint32_t         tensor_count, tensor_room;
    hdl_index        tensor_index;
    void           **kept; /* data read for tensors of parts that are not mapped; NULL until the first */
};

/* Little-endian numbers wherever they stand. */
static inline uint32_t hdl_gguf_le32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t hdl_gguf_le64(const uint8_t *at) {
    return hdl_gguf_le32(at) | (uint64_t)hdl_gguf_le32(at + 4) << 32;
}

/* Bytes of one value of a fixed-size kind; 0 for strings, arrays and what is no kind. */
uint32_t hdl_gguf_kind_bytes(uint32_t kind);
/* The last piece of the part's path, for error lines. */
const char *hdl_gguf_part_name(const hdl_gguf_part *part);
/* Reads and checks the header of part `number`, whose file is open; adds its tensors to the model. */
hd_status hdl_gguf_read_header(hdl_gguf *gguf, uint32_t number, hd_error *error);
bool hdl_gguf_part_find(const hdl_gguf_part *part, const char *name, hdl_gguf_value *out_value);
/* An integer key of a part within low..high, `fallback` where it is missing. */
hd_status hdl_gguf_part_u32(const hdl_gguf_part *part, const char *name, uint32_t low, uint32_t high, uint32_t fallback,
                            uint32_t *out, hd_error *error);
/* As hdl_index_name: of a part, of a model. */
hdl_span hdl_gguf_key_name(const void *part, uint32_t number);
hdl_span hdl_gguf_tensor_name(const void *gguf, uint32_t number);

#endif
