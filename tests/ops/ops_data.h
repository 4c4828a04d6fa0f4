/* ops_data.h: the suite's random numbers and tensors, for ops.c only. */
#ifndef TESTS_OPS_DATA_H
#define TESTS_OPS_DATA_H

#include "ops.h"

void ops_seed(const char *name);
/* Fills a tensor's bytes. */
void ops_fill_bytes(hd_dtype dtype, hd_shape shape, ops_fill fill, void *out_bytes);
#endif
