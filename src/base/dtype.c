/* dtype.c: facts of data types and shapes, all from the one list in heddle.h. */
#include "base/base.h"
#include <stdio.h>

static const hdi_dtype_facts facts[HD_DTYPE_COUNT] = {
    { "none", 0, 0 },
#define DTYPE_ROW(code, name, elements, bytes) { name, elements, bytes },
    HD_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

hdi_dtype_facts hdi_dtype(hd_dtype dtype) {
    return (unsigned)dtype < HD_DTYPE_COUNT ? facts[dtype] : facts[HD_DTYPE_NONE];
}

const char *hd_dtype_name(hd_dtype dtype) { return hdi_dtype(dtype).name; }

hd_dtype hd_dtype_parse(const char *name) {
    for (int i = 1; name && i < HD_DTYPE_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0) return (hd_dtype)i;
    return HD_DTYPE_NONE;
}

uint64_t hd_dtype_bytes(hd_dtype dtype, uint64_t elements) {
    hdi_dtype_facts f = hdi_dtype(dtype);
    uint64_t bytes;
    if (f.block_elements == 0 || elements % f.block_elements != 0) return 0;
    return hdi_mul_u64(elements / f.block_elements, f.block_bytes, &bytes) ? bytes : 0;
}

uint64_t hd_shape_elements(hd_shape shape) {
    uint64_t elements = 1;
    if (shape.rank > HD_MAX_RANK) return 0;
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 1 || !hdi_mul_u64(elements, (uint64_t)shape.dims[i], &elements)) return 0;
    return elements <= INT64_MAX ? elements : 0;
}

uint64_t hd_tensor_bytes(hd_dtype dtype, hd_shape shape) {
    uint64_t elements = hd_shape_elements(shape);
    uint64_t row = shape.rank > 0 && elements > 0 ? (uint64_t)shape.dims[shape.rank - 1] : 1;
    return elements > 0 && hd_dtype_bytes(dtype, row) > 0 ? hd_dtype_bytes(dtype, elements) : 0;
}

bool hdi_shape_equal(hd_shape a, hd_shape b) {
    if (a.rank != b.rank) return false;
    for (uint32_t i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i]) return false;
    return true;
}

char *hdi_shape_text(hd_shape shape, char *out) {
    size_t at = 0;
    out[at++] = '[';
    for (uint32_t i = 0; i < shape.rank && i < HD_MAX_RANK; i++)
        at += (size_t)snprintf(out + at, HDI_SHAPE_TEXT - at, i ? ",%lld" : "%lld", (long long)shape.dims[i]);
    out[at++] = ']';
    out[at] = 0;
    return out;
}
