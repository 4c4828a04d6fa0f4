/* op_steps.c: which step of an element-wise chain an operation is: the step of its name, with as many sources as it has
 * operands, and its float attributes. */
#include "kernels/kernel.h"

/* By the row's kind. */
#define STEP_ELEMENTWISE(code) [HDI_OP_##code] = HDI_STEP_##code + 1,
#define STEP_FUNCTION(code) STEP_ELEMENTWISE(code)
#define STEP_SOURCE(code)
#define STEP_VIEW(code)
#define STEP_COPY(code)
#define STEP_REDUCE(code)
#define STEP_SOFTMAX(code)
#define STEP_NORM(code)
#define STEP_MATMUL(code)
#define STEP_TABLE(code)
#define STEP_STATE(code)
#define STEP_ROPE(code)
#define STEP_ATTENTION(code)
#define STEP_USER(code)

bool hdi_op_step(hdi_op op, const hdi_attrs *attrs, hdi_step *out_step, float *out_attrs, uint32_t *out_attr_count) {
    static const uint8_t codes_plus_1[HDI_OP_COUNT] = { /* since the copy's is 0 */
        [HDI_OP_COPY] = HDI_STEP_COPY + 1,
#define HDI_OP(code, name, least, most, lack, kind, ...) STEP_##kind(code)
#include "program/op_table.inc"
#undef HDI_OP
    };
    if ((unsigned)op >= HDI_OP_COUNT || codes_plus_1[op] == 0) return false;
    const uint32_t operands = hdi_op_get(op).least_operands;
    *out_step = (hdi_step){
        .code = (uint8_t)(codes_plus_1[op] - 1),
        .a = 0,
        .b = operands > 1 ? 1 : HDI_SOURCE_NONE,
        .c = operands > 2 ? 2 : HDI_SOURCE_NONE,
    };
    *out_attr_count = hdi_op_floats(op);
    for (uint32_t i = 0; i < *out_attr_count; i++) out_attrs[i] = attrs->floats[i];
    return true;
}
