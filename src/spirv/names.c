/* names.c: names of opcodes and capabilities for messages, and the rows of op_table.inc by opcode. Tables only. */
#include "spirv/module.h"

enum {
#define OP(number, name, section, operands, types, capability, minor) ROW_##name,
#include "spirv/op_table.inc"
#undef OP
    ROW_COUNT
};

const hdi_spirv_op hdi_spirv_ops[ROW_COUNT] = {
#define OP(number, name, section, operands, types, capability, minor) \
    { number, "Op" #name, section, operands, types, (uint32_t)(capability), minor },
#include "spirv/op_table.inc"
#undef OP
};

const uint8_t hdi_spirv_row_of[HDI_SPIRV_MAX_OPCODE + 1] = {
#define OP(number, name, section, operands, types, capability, minor) [number] = ROW_##name + 1,
#include "spirv/op_table.inc"
#undef OP
};
_Static_assert(ROW_COUNT < UINT8_MAX, "rows are numbered in bytes");

const char *hdi_spirv_op_name(uint32_t opcode) {
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    if (row) return row->name;
    switch (opcode) {
#define NAME_OP(number, name) case number: return "Op" #name;
#include "spirv/names.inc"
#undef NAME_OP
    default: return "unknown";
    }
}

const char *hdi_spirv_capability_name(uint32_t capability) {
    switch (capability) {
#define NAME_CAP(number, name) case number: return #name;
#include "spirv/names.inc"
#undef NAME_CAP
    default: return "unknown";
    }
}
