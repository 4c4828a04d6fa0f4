/* gguf_types.c: the tables of metadata kinds and tensor types, made from the lists in gguf.h, and sizes that follow
 * from them. A number outside of a list has no name and no size. */
#include "llm/gguf_inside.h"

static const struct { const char *name; uint32_t bytes; } kinds[HDL_GGUF_KIND_COUNT] = {
#define KIND_ROW(code, number, name, bytes) [number] = { name, bytes },
    HDL_GGUF_KIND_LIST(KIND_ROW)
#undef KIND_ROW
};

const char *hdl_gguf_kind_name(hdl_gguf_kind kind) {
    return (unsigned)kind < HDL_GGUF_KIND_COUNT ? kinds[kind].name : "unknown";
}

uint32_t hdl_gguf_kind_bytes(uint32_t kind) { return kind < HDL_GGUF_KIND_COUNT ? kinds[kind].bytes : 0; }

static const hdl_gguf_type_facts types[HDL_GGUF_TYPE_COUNT] = {
#define TYPE_ROW(code, number, name, elements, bytes, tail, usable) [number] = { name, elements, bytes, tail, usable },
    HDL_GGUF_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

hdl_gguf_type_facts hdl_gguf_type_info(uint32_t type) {
    if (type >= HDL_GGUF_TYPE_COUNT || !types[type].name) return (hdl_gguf_type_facts){ .name = "unknown" };
    return types[type];
}

/* What bitnet.cpp numbers its file types: as its types. */
enum { FILE_OF_TL2 = 39 };

uint32_t hdl_gguf_type_of(uint32_t number, uint32_t file_type) {
    if (number == HDL_GGUF_TYPE_TL2) return HDL_GGUF_TYPE_COUNT; /* heddle's number, which no file has */
    return number == HDL_GGUF_TYPE_MXFP4 && file_type == FILE_OF_TL2 ? HDL_GGUF_TYPE_TL2 : number;
}

uint32_t hdl_gguf_number_of(uint32_t type) { return type == HDL_GGUF_TYPE_TL2 ? HDL_GGUF_TYPE_MXFP4 : type; }

/* As many as bitnet.cpp sets aside for a matrix, which it does not fill: 5 bits for three elements, but 4 for two of
 * the last 256 of each row; whole pieces of 32 bytes. */
static uint64_t tl2_bytes(hd_shape shape, uint32_t tail) {
    if (shape.rank != 2 || shape.dims[1] < 256 || hd_shape_elements(shape) > INT64_MAX / 8) return 0;
    const uint64_t rows = (uint64_t)shape.dims[0], columns = (uint64_t)shape.dims[1];
    return ((columns - 256) * rows / 3 * 5 / 8 + rows * 64 + 31) / 32 * 32 + tail;
}

uint64_t hdl_gguf_tensor_bytes(uint32_t type, hd_shape shape) {
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
    const uint64_t elements = hd_shape_elements(shape);
    const uint64_t last = shape.rank ? (uint64_t)shape.dims[shape.rank - 1] : 1;
    uint64_t bytes;
    if (facts.block_elements == 0 || elements == 0 || last % facts.block_elements) return 0;
    if (type == HDL_GGUF_TYPE_TL2) return tl2_bytes(shape, facts.tail_bytes);
    if (!hdl_mul(elements / facts.block_elements, facts.block_bytes, &bytes) ||
        !hdl_add(bytes, facts.tail_bytes, &bytes))
        return 0;
    return bytes <= INT64_MAX ? bytes : 0;
}

hd_dtype hdl_gguf_dtype(uint32_t type) {
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
    const bool whole = type >= HDL_GGUF_TYPE_I8 && type <= HDL_GGUF_TYPE_I64; /* which no weight is */
    return facts.block_elements && facts.usable && !whole ? hd_dtype_parse(facts.name) : HD_DTYPE_NONE;
}
