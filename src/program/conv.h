/* conv.h: how windows move along the axes of an image, for conv.c and pool.c only. */
#ifndef HDI_PROGRAM_CONV_H
#define HDI_PROGRAM_CONV_H

#include "program/program.h"

/* Axes that windows move along: behind the images and the channels, and at most two, so that windows have room for
 * theirs. */
enum { HDI_SWEEP_FIRST = 2, HDI_SWEEP_MOST = 2 };

typedef struct hdi_sweep {
    int64_t length;        /* of the axis */
    int64_t size, stride, dilation;
    int64_t before, after; /* padding */
    int64_t count;         /* of windows */
} hdi_sweep;

/* How many windows there are; false and a failure of the operation `name` where one does not fit. */
bool hdi_sweep_count(hd_program *program, const char *name, uint32_t axis, hdi_sweep *io_sweep);
/* x with its padding; sweeps[0] is of axis HDI_SWEEP_FIRST. */
hd_value hdi_sweep_pad(hd_program *program, hd_value x, uint32_t rank, const hdi_sweep *sweeps, float value);
#endif
