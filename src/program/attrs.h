/* attrs.h: how attributes are kept and written, for the files of this room only. Printer, parser and hash walk over an
 * operation's attributes with it, so that none of them knows an operation by name. */
#ifndef HDI_PROGRAM_ATTRS_H
#define HDI_PROGRAM_ATTRS_H

#include "program/program.h"

typedef enum hdi_attr_kind {
    HDI_ATTR_FLOAT,   /* floats[at] */
    HDI_ATTR_INT,     /* ints[at] */
    HDI_ATTR_LIST,    /* ints[at .. at + list_count) */
    HDI_ATTR_FLAG,    /* bit at % 64 of ints[at / 64]; written as its bare name */
    HDI_ATTR_PAIRING, /* ints[at]: "halves" or "neighbours" */
    HDI_ATTR_FACTORS,
    HDI_ATTR_DTYPE,
    HDI_ATTR_SHAPE,
    HDI_ATTR_NAME,    /* of an input or state, in quotes */
    HDI_ATTR_KERNEL, HDI_ATTR_PUSH, HDI_ATTR_GROUPS, HDI_ATTR_BINDINGS /* of a dispatch */
} hdi_attr_kind;

typedef struct hdi_attr {
    const char   *name;
    hdi_attr_kind kind;
    uint32_t      at;
    bool          optional; /* in texts */
    float         unset;    /* a float's value where a text leaves it out */
    bool          silent;   /* left out where it is unset: in texts, a whole number 0; in hashes, a flag */
} hdi_attr;

static inline bool hdi_attr_flag(const hdi_attrs *attrs, const hdi_attr *attr) {
    return attrs->ints[attr->at / 64] >> attr->at % 64 & 1;
}

#define HDI_MAX_TENSOR_BYTES (UINT64_C(1) << 40)
#define HDI_MAX_ATTRS 8
/* The attributes of an operation in its row's order; returns their number. */
uint32_t hdi_op_attrs(hdi_op op, const hdi_attr *out_attrs[HDI_MAX_ATTRS]);
/* The operation of this name, or HDI_OP_NONE. */
hdi_op hdi_op_find(const char *name, size_t bytes);
/* Whether operand `index` may be absent, which is written "-". */
bool hdi_op_may_lack(hdi_op op, uint32_t index);

/* hdi_program_add and hdi_program_add_output without stickiness: the reason goes to `error` only. */
hd_value hdi_program_try(hd_program *program, const hdi_node *node, hd_error *error);
void hdi_program_fail(hd_program *program, const hd_error *error);
hd_status hdi_program_try_output(hd_program *program, const char *name, hd_value value, hd_error *error);
#endif
