/* ops.c: facts about operations and their attributes. Operations come from op_table.inc; this file alone says where an
 * attribute of the table lies in hdi_attrs. */
#include "program/attrs.h"

static const hdi_op_facts ops[HDI_OP_COUNT] = {
    { 0 },
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, reference, lower, gradient, \
               attributes, \
               types, formula, bound) \
    { #name, least, most, lack, HDI_KIND_##kind, attributes, types, formula, bound },
#include "program/op_table.inc"
#undef HDI_OP
};

static const hdi_attr attrs[] = {
    { "factor",          HDI_ATTR_FLOAT,   0, true,  1, false },
    { "bias",            HDI_ATTR_FLOAT,   1, true,  0, false },
    { "slope",           HDI_ATTR_FLOAT,   0, false, 0, false },
    { "alpha",           HDI_ATTR_FLOAT,   0, false, 0, false },
    { "low",             HDI_ATTR_FLOAT,   0, false, 0, false },
    { "high",            HDI_ATTR_FLOAT,   1, false, 0, false },
    { "value",           HDI_ATTR_FLOAT,   0, true,  0, false },
    { "eps",             HDI_ATTR_FLOAT,   0, false, 0, false },
    { "theta",           HDI_ATTR_FLOAT,   0, true,  0, false },
    { "frequency_scale", HDI_ATTR_FLOAT,   1, true,  0, false },
    { "magnitude",       HDI_ATTR_FLOAT,   2, true,  0, false },
    { "scale",           HDI_ATTR_FLOAT,   0, true,  0, false },
    { "cap",             HDI_ATTR_FLOAT,   1, true,  0, true },
    { "window",          HDI_ATTR_INT,     1, true,  0, true },
    { "axis",            HDI_ATTR_INT,     0, false, 0, false },
    { "offset",          HDI_ATTR_INT,     0, false, 0, false },
    { "k",               HDI_ATTR_INT,     0, false, 0, false },
    { "stream",          HDI_ATTR_INT,     0, false, 0, false },
    { "size",            HDI_ATTR_INT,     1, false, 0, false },
    { "stride",          HDI_ATTR_INT,     2, true,  0, false },
    { "dilation",        HDI_ATTR_INT,     3, true,  0, false },
    { "dims",            HDI_ATTR_INT,     0, true,  0, false },
    { "pairing",         HDI_ATTR_PAIRING, 1, true,  0, false },
    { "axes",            HDI_ATTR_LIST,    0, false, 0, false },
    { "begin",           HDI_ATTR_LIST,    0, false, 0, false },
    { "end",             HDI_ATTR_LIST,    HD_MAX_RANK, false, 0, false },
    { "before",          HDI_ATTR_LIST,    0, false, 0, false },
    { "after",           HDI_ATTR_LIST,    HD_MAX_RANK, false, 0, false },
    { "transpose_a",     HDI_ATTR_FLAG,    0, true,  0, false },
    { "transpose_b",     HDI_ATTR_FLAG,    1, true,  0, false },
    { "result_f32",      HDI_ATTR_FLAG,    2, true,  0, true },
    { "not_causal",      HDI_ATTR_FLAG,    0, true,  0, false },
    { "bf16",            HDI_ATTR_FLAG,    128, true, 0, true },
    { "exclusive",       HDI_ATTR_FLAG,    64, true,  0, false },
    { "reverse",         HDI_ATTR_FLAG,    65, true,  0, false },
    { "centred",         HDI_ATTR_FLAG,    0, true,  0, false },
    { "factors",         HDI_ATTR_FACTORS, 0, true,  0, false },
    { "dtype",           HDI_ATTR_DTYPE,   0, false, 0, false },
    { "shape",           HDI_ATTR_SHAPE,   0, false, 0, false },
    { "name",            HDI_ATTR_NAME,    0, false, 0, false },
    { "kernel",          HDI_ATTR_KERNEL,  0, false, 0, false },
    { "push",            HDI_ATTR_PUSH,    0, true,  0, false },
    { "groups",          HDI_ATTR_GROUPS,  0, false, 0, false },
    { "bindings",        HDI_ATTR_BINDINGS, 0, true, 0, false },
};

hdi_op_facts hdi_op_get(hdi_op op) { return (unsigned)op < HDI_OP_COUNT ? ops[op] : ops[HDI_OP_NONE]; }
hdi_op_kind hdi_op_kind_of(hdi_op op) { return hdi_op_get(op).kind; }

const char *hdi_op_kind_name(hdi_op_kind kind) {
    static const char *const names[HDI_KIND_COUNT] = { "none",
#define HDI_KIND_NAME(code, name, text) name,
        HDI_KIND_LIST(HDI_KIND_NAME)
#undef HDI_KIND_NAME
    };
    return (unsigned)kind < HDI_KIND_COUNT ? names[kind] : "?";
}

static bool equals(const char *name, const char *text, size_t bytes) {
    return strncmp(name, text, bytes) == 0 && name[bytes] == 0;
}

uint32_t hdi_op_attrs(hdi_op op, const hdi_attr *out_attrs[HDI_MAX_ATTRS]) {
    uint32_t count = 0;
    const char *word = hdi_op_get(op).attributes;
    while (word && *word) {
        size_t bytes = strcspn(word, " ");
        for (size_t i = 0; i < HDI_COUNT(attrs) && count < HDI_MAX_ATTRS; i++)
            if (equals(attrs[i].name, word, bytes)) out_attrs[count++] = &attrs[i];
        word += bytes;
        word += strspn(word, " ");
    }
    return count;
}

uint32_t hdi_op_floats(hdi_op op) {
    const hdi_attr *of_op[HDI_MAX_ATTRS];
    const uint32_t count = hdi_op_attrs(op, of_op);
    uint32_t floats = 0;
    for (uint32_t i = 0; i < count; i++) floats += of_op[i]->kind == HDI_ATTR_FLOAT;
    return floats;
}

hdi_op hdi_op_find(const char *name, size_t bytes) {
    for (int op = HDI_OP_NONE + 1; op < HDI_OP_COUNT; op++)
        if (equals(ops[op].name, name, bytes)) return (hdi_op)op;
    return HDI_OP_NONE;
}

bool hdi_op_may_lack(hdi_op op, uint32_t index) { return ops[op].may_lack && index >= ops[op].least_operands; }
