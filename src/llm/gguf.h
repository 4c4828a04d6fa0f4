/* gguf.h: reads GGUF model files (gguf.c, gguf_read.c, gguf_get.c, gguf_check.c).
 *
 * WHAT IS TAKEN. GGUF version 2 and 3, little-endian; one file, or all parts NAME-00001-of-0000N.gguf of a split model.
 *   A file is hostile until it is read: every count, length, type and offset is compared with what the file still holds
 *   before anything is allocated, arithmetic is checked, and the first fault ends the reading with one line that names
 *   the field and the byte. Tensors must lie as every writer lays them: in order, each at the next aligned place. So
 *   they cannot overlap, and no span reaches outside of the file. Bytes after the last tensor are left alone and
 *   counted.
 *
 * WHAT IT COSTS. Time linear in the header. Memory: the header's own bytes and at most 48 MiB of tables; never more
 * than
 *   the file's size + 64 MiB. (That is with an allocator that resizes in place; one that copies holds two headers
 *   briefly.)
 *
 * A FILE THAT CHANGES. The header is read into memory once: later changes of the file cannot reach what was checked.
 *   Weights are mapped. hdl_gguf_data compares the file's size anew each time, so a file that shrank before the call is
 *   an error. One that another process cuts afterwards, while the span is in use, still raises SIGBUS: a library must
 *   not take that signal away from its process. Who cannot rule this out reads with hdl_gguf_read, or gives files that
 *   do not map: both only copy, and a shrunken file is an error there at every moment. Weights that change in place are
 *   only weights.
 *
 * THREADS. An open model may be used from many threads, but for hdl_gguf_data of a model that is not mapped (it keeps
 *   what it reads). Spans and names that are handed out live as long as the model. */
#ifndef HDL_GGUF_H
#define HDL_GGUF_H

#include "llm/files.h"

/* Limits; what exceeds one is refused with LIMIT. Those of keys and tensors count over all parts. */
enum {
    HDL_GGUF_MAX_HEADER_BYTES = 128 << 20, /* of one part: all that stands before the weights */
    HDL_GGUF_MAX_KEYS         = 1 << 20,
    HDL_GGUF_MAX_TENSORS      = 1 << 18,
    HDL_GGUF_MAX_PARTS        = 512,
    HDL_GGUF_MAX_KEY_BYTES    = 65535,
    HDL_GGUF_MAX_NAME_BYTES   = 64,        /* of a tensor's name */
    HDL_GGUF_MAX_RANK         = 4,
    HDL_GGUF_MIN_ALIGNMENT    = 8,
    HDL_GGUF_MAX_ALIGNMENT    = 1 << 20
};

/* ---- types ---- */

/* Kinds of a metadata value, with the file's numbers: X(CODE, number, "name", bytes of one, 0: not fixed) */
#define HDL_GGUF_KIND_LIST(X) \
    X(U8, 0, "u8", 1) X(I8, 1, "i8", 1) X(U16, 2, "u16", 2) X(I16, 3, "i16", 2) X(U32, 4, "u32", 4) \
        X(I32, 5, "i32", 4) \
    X(F32, 6, "f32", 4) X(BOOL, 7, "bool", 1) X(STRING, 8, "string", 0) X(ARRAY, 9, "array", 0) \
    X(U64, 10, "u64", 8) X(I64, 11, "i64", 8) X(F64, 12, "f64", 8)
typedef enum hdl_gguf_kind {
#define HDL_GGUF_KIND_ENUM(code, number, name, bytes) HDL_GGUF_##code = number,
    HDL_GGUF_KIND_LIST(HDL_GGUF_KIND_ENUM)
#undef HDL_GGUF_KIND_ENUM
    HDL_GGUF_KIND_COUNT
} hdl_gguf_kind;
const char *hdl_gguf_kind_name(hdl_gguf_kind kind); /* "u32"; "unknown" for what is none */

/* Types of a tensor's elements, with the file's numbers: X(CODE, number, "name", elements a block, bytes a block, bytes
 * after all blocks, usable). Not usable: the file opens and lists it, its data is refused by name. TL2 has no blocks,
 * and in files the number of MXFP4. */
#define HDL_GGUF_TYPE_LIST(X) \
    X(F32,      0, "f32",       1,   4,  0, 1) X(F16,      1, "f16",       1,   2,  0, 1) \
    X(Q4_0,     2, "q4_0",     32,  18,  0, 1) X(Q4_1,     3, "q4_1",     32,  20,  0, 1) \
    X(Q5_0,     6, "q5_0",     32,  22,  0, 1) X(Q5_1,     7, "q5_1",     32,  24,  0, 1) \
    X(Q8_0,     8, "q8_0",     32,  34,  0, 1) X(Q2_K,    10, "q2_k",    256,  84,  0, 1) \
    X(Q3_K,    11, "q3_k",    256, 110,  0, 1) X(Q4_K,    12, "q4_k",    256, 144,  0, 1) \
    X(Q5_K,    13, "q5_k",    256, 176,  0, 1) X(Q6_K,    14, "q6_k",    256, 210,  0, 1) \
    X(IQ2_XXS, 16, "iq2_xxs", 256,  66,  0, 1) X(IQ2_XS,  17, "iq2_xs",  256,  74,  0, 1) \
    X(IQ3_XXS, 18, "iq3_xxs", 256,  98,  0, 1) X(IQ1_S,   19, "iq1_s",   256,  50,  0, 1) \
    X(IQ4_NL,  20, "iq4_nl",   32,  18,  0, 1) X(IQ3_S,   21, "iq3_s",   256, 110,  0, 1) \
    X(IQ2_S,   22, "iq2_s",   256,  82,  0, 1) X(IQ4_XS,  23, "iq4_xs",  256, 136,  0, 1) \
    X(I8,      24, "i8",        1,   1,  0, 1) X(I16,     25, "i16",       1,   2,  0, 1) \
    X(I32,     26, "i32",       1,   4,  0, 1) X(I64,     27, "i64",       1,   8,  0, 1) \
    X(F64,     28, "f64",       1,   8,  0, 1) X(IQ1_M,   29, "iq1_m",   256,  56,  0, 1) \
    X(BF16,    30, "bf16",      1,   2,  0, 1) X(TQ1_0,   34, "tq1_0",   256,  54,  0, 1) \
    X(TQ2_0,   35, "tq2_0",   256,  66,  0, 1) X(I2_S,    36, "i2_s",      4,   1, 32, 1) \
    X(TL1,     38, "tl1",       4,   1, 32, 1) \
    X(MXFP4,   39, "mxfp4",    32,  17,  0, 1) X(NVFP4,   40, "nvfp4",    64,  36,  0, 0) \
    X(Q1_0,    41, "q1_0",    128,  18,  0, 0) X(TL2,     63, "tl2",       8,   0, 32, 1)
typedef enum hdl_gguf_type {
#define HDL_GGUF_TYPE_ENUM(code, number, name, elements, bytes, tail, usable) HDL_GGUF_TYPE_##code = number,
    HDL_GGUF_TYPE_LIST(HDL_GGUF_TYPE_ENUM)
#undef HDL_GGUF_TYPE_ENUM
    HDL_GGUF_TYPE_COUNT
} hdl_gguf_type;

typedef struct hdl_gguf_type_facts {
    const char *name;
    uint32_t    block_elements, block_bytes; /* 0 for a number that is no type */
    uint32_t    tail_bytes;
    bool        usable;
} hdl_gguf_type_facts;
hdl_gguf_type_facts hdl_gguf_type_info(uint32_t type);
/* The type that a number stands for in a file whose general.file_type is `file_type`, and the number of a type. */
uint32_t hdl_gguf_type_of(uint32_t number, uint32_t file_type);
uint32_t hdl_gguf_number_of(uint32_t type);
/* Bytes of a tensor; 0 where shape and type do not fit together or the bytes do not fit into 63 bits. */
uint64_t hdl_gguf_tensor_bytes(uint32_t type, hd_shape shape);
/* The library's type of the same bytes, where weights have it; or HD_DTYPE_NONE. */
hd_dtype hdl_gguf_dtype(uint32_t type);
static inline bool hdl_is_float(hd_dtype dtype) { return dtype == HD_F32 || dtype == HD_F16 || dtype == HD_BF16; }

/* ---- opening ---- */

typedef struct hdl_gguf hdl_gguf;

/* Wishes for opening; NULL or zero for the default. */
typedef struct hdl_gguf_desc {
    const hd_allocator *allocator; /* borrowed while the model is open */
    const hdl_files    *files;     /* borrowed while the model is open; NULL: the system's */
} hdl_gguf_desc;

/* Reads the header of a model, of all its parts. `path` is the file, or the first part of a split model; the other
 * parts stand beside it under the name that follows from `path` alone: no text in a file leads to another file.
 * Statuses: NULL_POINTER, IO, PARSE (damaged), LIMIT, UNSUPPORTED (a tensor type nobody knows), UNSUPPORTED_VERSION,
 * OUT_OF_HOST_MEMORY. */
hd_status hdl_gguf_open(const char *path, const hdl_gguf_desc *desc, hdl_gguf **out_gguf, hd_error *error);
void hdl_gguf_close(hdl_gguf *gguf);

typedef struct hdl_gguf_info {
    uint32_t version, part_count;
    uint32_t key_count, tensor_count;
    uint32_t alignment;      /* of the first part */
    uint64_t file_bytes;     /* of all parts */
    uint64_t tensor_bytes;   /* of all tensors */
    uint64_t trailing_bytes; /* after the last tensor and its padding, in all parts */
    bool     mapped;         /* all parts are */
} hdl_gguf_info;
hdl_gguf_info hdl_gguf_get_info(const hdl_gguf *gguf);

/* ---- metadata: the keys of the first part ---- */

typedef struct hdl_gguf_value {
    hdl_span      name;
    hdl_gguf_kind kind;
    hdl_gguf_kind element; /* of an array's elements; otherwise as kind. Never ARRAY: arrays of arrays are refused */
    uint64_t      count;   /* elements of an array, otherwise 1 */
    /* a string's text (any bytes: check before use), else the little-endian numbers, unaligned, or an array's strings,
       each after its 8-byte length */
    hdl_span      bytes;
    uint64_t      offset;  /* of those bytes in the file */
} hdl_gguf_value;

/* Key number `i`, below key_count, in the file's order. */
hdl_gguf_value hdl_gguf_key(const hdl_gguf *gguf, uint32_t i);
/* Finds a key; false where there is none. */
bool hdl_gguf_find(const hdl_gguf *gguf, const char *name, hdl_gguf_value *out_value);

/* Elements of a value: element i < count as the named type. The kind must be one that fits: an integer (or bool) for
 * _integer (a u64 above INT64_MAX gives INT64_MAX), f32 or f64 for _float, otherwise 0. */
int64_t hdl_gguf_integer(const hdl_gguf_value *value, uint64_t i);
double  hdl_gguf_float(const hdl_gguf_value *value, uint64_t i);
/* Takes the next string of a value that is a string or an array of strings; *at starts at 0. False after the last. */
bool hdl_gguf_next_text(const hdl_gguf_value *value, uint64_t *at, hdl_span *out_text);

/* Getters. A missing key gives `fallback`; hdl_gguf_need says that a key must be there. A key of another type is TYPE
 * ("key X has type Y, wanted Z"), a number outside of low..high is LIMIT, NAME_NOT_FOUND is a missing one. Any integer
 * kind will do for an integer, f32 and f64 for a float; NaN and infinity are refused. */
hd_status hdl_gguf_need(const hdl_gguf *gguf, const char *name, hd_error *error);
hd_status hdl_gguf_get_u32(const hdl_gguf *gguf, const char *name, uint32_t low, uint32_t high, uint32_t fallback,
                           uint32_t *out, hd_error *error);
hd_status hdl_gguf_get_i32(const hdl_gguf *gguf, const char *name, int32_t low, int32_t high, int32_t fallback,
                           int32_t *out, hd_error *error);
hd_status hdl_gguf_get_f32(const hdl_gguf *gguf, const char *name, float low, float high, float fallback, float *out,
                           hd_error *error);
hd_status hdl_gguf_get_bool(const hdl_gguf *gguf, const char *name, bool fallback, bool *out, hd_error *error);
hd_status hdl_gguf_get_text(const hdl_gguf *gguf, const char *name, hdl_span fallback, hdl_span *out, hd_error *error);
/* An array with elements of `element` (exactly that kind) and low..high of them; a missing key gives a count of 0. */
hd_status hdl_gguf_get_array(const hdl_gguf *gguf, const char *name, hdl_gguf_kind element, uint64_t low, uint64_t high,
                             hdl_gguf_value *out, hd_error *error);
/* One number a layer: an integer stands for every layer, an array must have exactly `count` integers. A missing key
 * leaves `inout` as it is. */
hd_status hdl_gguf_get_u32s(const hdl_gguf *gguf, const char *name, uint32_t low, uint32_t high, uint32_t count,
                            uint32_t *inout, hd_error *error);

/* ---- tensors, of all parts ---- */

typedef struct hdl_gguf_tensor {
    hdl_span name;
    uint32_t number; /* below tensor_count */
    uint32_t type;   /* an hdl_gguf_type */
    hd_shape shape;  /* slowest axis first, as everywhere in heddle (the file has the fastest first) */
    uint32_t part;
    uint64_t offset; /* of the data in that part's file */
    uint64_t bytes;
} hdl_gguf_tensor;

/* Tensor number `i`, below tensor_count, in the file's order. */
hdl_gguf_tensor hdl_gguf_tensor_at(const hdl_gguf *gguf, uint32_t i);
bool hdl_gguf_find_tensor(const hdl_gguf *gguf, const char *name, hdl_gguf_tensor *out_tensor);
/* The tensor `name` of exactly this shape. Statuses: NAME_NOT_FOUND, SHAPE, UNSUPPORTED (type not usable). */
hd_status hdl_gguf_need_tensor(const hdl_gguf *gguf, const char *name, hd_shape shape, hdl_gguf_tensor *out_tensor,
                               hd_error *error);
/* Reads the file `name` in the model's folder into `out`; *out_count is 0 where there is none. Statuses: IO, LIMIT
 * (more than `room` bytes), OUT_OF_HOST_MEMORY. */
hd_status hdl_gguf_beside(const hdl_gguf *gguf, const char *name, char *out, uint64_t room, uint64_t *out_count,
                          hd_error *error);
/* The tensor's bytes, mapped (or read and kept, where the model is not mapped). Statuses: UNSUPPORTED (type not
 * usable), IO (the file shrank, or reading failed), OUT_OF_HOST_MEMORY. */
hd_status hdl_gguf_data(hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hdl_span *out_data, hd_error *error);
/* Tells that the tensor's mapped bytes are not needed at present; spans stay valid. Any thread. */
void hdl_gguf_rest(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor);
/* Copies bytes from .. from + bytes - 1 of the tensor's data. Any thread. Statuses: UNSUPPORTED, INVALID_ARGUMENT
 * (outside), IO. */
hd_status hdl_gguf_read(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, uint64_t from, uint64_t bytes, void *out,
                        hd_error *error);

/* What a look at weights found. A row is one run of the last axis. */
typedef struct hdl_gguf_rows {
    uint64_t rows;
    uint64_t bad_rows, first_bad;   /* with a NaN or an infinity among its elements or scales */
    uint64_t zero_rows, first_zero; /* nothing but zeros: all elements, or all scales and minima */
} hdl_gguf_rows;
/* Looks at whole rows of a type: `bytes` of data hold rows of row_elements. False where they do not fit the type. */
bool hdl_gguf_check_rows(uint32_t type, uint64_t row_elements, const void *data, uint64_t bytes,
                         hdl_gguf_rows *out_rows);

#endif
