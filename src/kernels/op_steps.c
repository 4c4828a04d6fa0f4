/* op_steps.c: which step of an element-wise chain an operation is. */
#include "kernels/kernel.h"

bool hdi_op_step(hdi_op op, const hdi_attrs *attrs, hdi_step *out_step, float *out_attrs, uint32_t *out_attr_count) {
    /* Operands and attributes of each; a code is an index plus 1, since the copy's is 0. */
    static const struct { uint8_t code_plus_1, operands, attributes; } steps[HDI_OP_COUNT] = {
        [HDI_OP_COPY] = { HDI_STEP_COPY + 1, 1, 0 },       [HDI_OP_CAST] = { HDI_STEP_CAST + 1, 1, 0 },
        [HDI_OP_ADD] = { HDI_STEP_ADD + 1, 2, 0 },         [HDI_OP_SUB] = { HDI_STEP_SUB + 1, 2, 0 },
        [HDI_OP_MUL] = { HDI_STEP_MUL + 1, 2, 0 },         [HDI_OP_DIV] = { HDI_STEP_DIV + 1, 2, 0 },
        [HDI_OP_LESS] = { HDI_STEP_LESS + 1, 2, 0 },       [HDI_OP_EQUAL] = { HDI_STEP_EQUAL + 1, 2, 0 },
        [HDI_OP_SCALE] = { HDI_STEP_SCALE + 1, 1, 2 },     [HDI_OP_NEG] = { HDI_STEP_NEG + 1, 1, 0 },
        [HDI_OP_ABS] = { HDI_STEP_ABS + 1, 1, 0 },         [HDI_OP_SQRT] = { HDI_STEP_SQRT + 1, 1, 0 },
        [HDI_OP_EXP] = { HDI_STEP_EXP + 1, 1, 0 },         [HDI_OP_LOG] = { HDI_STEP_LOG + 1, 1, 0 },
        [HDI_OP_SIN] = { HDI_STEP_SIN + 1, 1, 0 },         [HDI_OP_COS] = { HDI_STEP_COS + 1, 1, 0 },
        [HDI_OP_RELU] = { HDI_STEP_RELU + 1, 1, 0 },       [HDI_OP_LEAKY_RELU] = { HDI_STEP_LEAKY_RELU + 1, 1, 1 },
        [HDI_OP_ELU] = { HDI_STEP_ELU + 1, 1, 1 },         [HDI_OP_SIGMOID] = { HDI_STEP_SIGMOID + 1, 1, 0 },
        [HDI_OP_TANH] = { HDI_STEP_TANH + 1, 1, 0 },       [HDI_OP_SILU] = { HDI_STEP_SILU + 1, 1, 0 },
        [HDI_OP_GELU] = { HDI_STEP_GELU + 1, 1, 0 },       [HDI_OP_GELU_TANH] = { HDI_STEP_GELU_TANH + 1, 1, 0 },
        [HDI_OP_CLIP] = { HDI_STEP_CLIP + 1, 1, 2 },       [HDI_OP_WHERE] = { HDI_STEP_WHERE + 1, 3, 0 },
    };
    if ((unsigned)op >= HDI_OP_COUNT || steps[op].code_plus_1 == 0) return false;
    *out_step = (hdi_step){
        .code = (uint8_t)(steps[op].code_plus_1 - 1),
        .a = 0,
        .b = steps[op].operands > 1 ? 1 : HDI_SOURCE_NONE,
        .c = steps[op].operands > 2 ? 2 : HDI_SOURCE_NONE,
    };
    for (uint32_t i = 0; i < steps[op].attributes; i++) out_attrs[i] = attrs->floats[i];
    *out_attr_count = steps[op].attributes;
    return true;
}
