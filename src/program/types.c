/* types.c: sets of data types. */
#include "program/types.h"
#include <stdio.h>

unsigned hdi_types_of(hd_dtype dtype) {
    if (hdi_dtype_is_float(dtype)) return FLOATS;
    if (hdi_dtype_is_quantised(dtype)) return QUANTISED;
    switch (dtype) {
    case HD_I32: return I32;
    case HD_U8: return U8;
    case HD_I8: return I8;
    case HD_U32: return U32;
    case HD_I64: return I64;
    default: return 0;
    }
}

const char *hdi_types_text(unsigned set, char out[HDI_TYPES_TEXT]) {
    static const char *const names[] = { "f32, f16, bf16", "i32", "u8", "i8", "u32", "i64", "a quantised type" };
    size_t at = 0;
    out[0] = 0;
    for (unsigned bit = 0; 1u << bit < SETS; bit++) {
        if (!(set >> bit & 1)) continue;
        const bool last = set >> bit == 1;
        at += (size_t)snprintf(out + at, HDI_TYPES_TEXT - at, "%s%s", at == 0 ? "" : last ? " or " : ", ", names[bit]);
    }
    if (set == FLOATS) snprintf(out, HDI_TYPES_TEXT, "f32, f16 or bf16");
    return out;
}
