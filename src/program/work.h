/* work.h: what a node has to do, whatever the device: its kind, arithmetic and least bytes, as the kernels' own
 * launches count them. Nothing about fusion or readers in here. */
#ifndef HDI_PROGRAM_WORK_H
#define HDI_PROGRAM_WORK_H

#include "program/program.h"

/* Types whose rates differ: of the weights where there are weights, else of the first operand. */
typedef enum hdi_width { HDI_WIDTH_WORD = 0, HDI_WIDTH_HALF, HDI_WIDTH_QUANTISED, HDI_WIDTH_COUNT } hdi_width;
const char *hdi_width_name(hdi_width width); /* "word", "half", "quantised" */

typedef struct hdi_node_work {
    hdi_op_kind kind;         /* one with figures; NONE for inputs, states and views, which take no time */
    hdi_width   width;
    uint64_t    flops, bytes; /* UINT64_MAX where 64 bits do not hold it */
} hdi_node_work;
hdi_node_work hdi_work_of_node(const hd_program *program, const hdi_node *node);
#endif
