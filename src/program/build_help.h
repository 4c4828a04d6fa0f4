/* build_help.h: what the builders of public calls share, for files of this room only: values as callers see them,
 * failures that show before there is an operation to infer, and constants. A program has no constants, so they are made
 * of a value: less(x, x) is 0, whatever x is. */
#ifndef HDI_PROGRAM_BUILD_HELP_H
#define HDI_PROGRAM_BUILD_HELP_H

#include "program/program.h"

/* What a value is, or NULL. */
const hdi_node *hdi_build_node(hd_program *program, hd_value x);
/* Fails with "op: why"; sticks to the program. Returns 0. */
hd_value hdi_build_refuse(hd_program *program, const char *op, hd_status status, const char *format, ...)
    HDI_PRINTF(4, 5);
/* The same where operand `number`, counted from 1, is no value of the program. */
hd_value hdi_build_refuse_operand(hd_program *program, const char *op, uint32_t number);

/* Has a tensor of f32 as few bytes as there may be? */
bool hdi_build_fits(hd_shape shape);

/* One u8 without axes, 0, made of x. */
hd_value hdi_build_nought(hd_program *program, hd_value x);
/* A tensor whose elements are all `value`, made of a nought; i32 and u8: a whole number below 2^24. */
hd_value hdi_build_fill(hd_program *program, hd_value nought, hd_dtype dtype, hd_shape shape, float value);
/* 0, 1, 2, ... as i32 [length]. */
hd_value hdi_build_count(hd_program *program, hd_value nought, int64_t length);
#endif
