/* types.h: sets of data types, as the rules of infer.c name what an operand may be. */
#ifndef HDI_PROGRAM_TYPES_H
#define HDI_PROGRAM_TYPES_H

#include "program/program.h"

#define HDI_TYPES_TEXT 64

/* NONE: there is no operand, or the rule looks itself. */
enum {
    NONE, FLOATS = 1, I32 = 2, U8 = 4, I8 = 8, U32 = 16, I64 = 32, QUANTISED = 64, SETS = 128,
    NUMBERS = FLOATS | I32, PLAIN = NUMBERS | U8, ANY = PLAIN | QUANTISED, /* of which kernels know */
    SIGNED = I32 | U8 | I8, WHOLE = SIGNED | U32, INTEGERS = WHOLE | I64, INDICES = I32 | U32 | I64,
    DIVIDED = NUMBERS | I8 | U32, SUMMED = DIVIDED | I64, EVERY = SUMMED | U8, ALL = EVERY | QUANTISED
};

/* The set that holds the type alone, all floats being one, and all quantised types; 0: it is no type. */
unsigned hdi_types_of(hd_dtype dtype);
/* "f32, f16, bf16 or i32" */
const char *hdi_types_text(unsigned set, char out[HDI_TYPES_TEXT]);
#endif
