/* lower.c: sends a request to its family's rules, and says what each family takes besides dense operands. */
#include "kernels/kernel.h"

hd_status hdi_lower_none(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    (void)lowering;
    const char *name = hdi_op_get(request->op).name;
    return hdi_fail(error, HD_STATUS_INTERNAL, "no kernel family computes `%s`", name ? name : "?");
}

static hd_status lower(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    static hd_status (*const rules[HDI_OP_COUNT])(const hdi_request *, hdi_lowering *, hd_error *) = {
        hdi_lower_none,
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, reference, lower, ...)           \
    hdi_lower_##lower,
#include "program/op_table.inc"
#undef HDI_OP
    };
    return rules[(unsigned)request->op < HDI_OP_COUNT ? request->op : HDI_OP_NONE](request, lowering, error);
}

/* The first kernel from launch `first` on that is wrong on the device, or NULL. */
static const hdi_kernel *find_wrong(const hdi_lowering *lowering, uint32_t first, const hdi_caps *caps) {
    for (uint32_t i = first; i < lowering->count; i++)
        if (hdi_variant_is_wrong(caps, hdi_variant_of(&lowering->launches[i].kernel)))
            return &lowering->launches[i].kernel;
    return NULL;
}

hd_status hdi_kernels_lower(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t first = lowering->count;
    hd_status status = lower(request, lowering, error);
    const hdi_kernel *wrong = status ? NULL : find_wrong(lowering, first, request->caps);
    if (wrong && request->math != HD_MATH_EXACT) {
        hdi_request exact = *request;
        exact.math = HD_MATH_EXACT;
        lowering->count = first;
        status = lower(&exact, lowering, error);
        wrong = status ? NULL : find_wrong(lowering, first, request->caps);
    }
    if (!wrong) return status;
    const hdi_variant variant = hdi_variant_of(wrong);
    char text[HDI_VARIANT_TEXT];
    const uint64_t found = variant.forms & request->caps->wrong[variant.module % HDI_CAPS_MODULES][variant.exact];
    return hdi_fail(
        error, HD_STATUS_UNSUPPORTED,
        "the kernel %s gives wrong results on %s, as a known answer showed, and no other computes this; run "
        "`heddle verify`",
        hdi_variant_text((hdi_variant){ variant.module, variant.exact, found }, text), request->caps->name);
}

bool hdi_kernels_take_view(hdi_op op, uint32_t operand) {
    static const hdi_attrs none;
    hdi_step step;
    float attrs[2];
    uint32_t attr_count;
    return hdi_op_step(op, &none, &step, attrs, &attr_count) || (op == HDI_OP_MATMUL && operand < 2);
}

/* A norm of f32 rounds what it stores to any float, or to f16 as products want it. */
static bool is_rounding(const hdi_chain *chain) {
    const hdi_step *step = &chain->steps[0];
    if (hdi_chain_is_halves(chain)) return chain->inputs[0].dtype == HD_F32;
    return chain->step_count == 1 && step->code == HDI_STEP_CAST && chain->inputs[0].dtype == HD_F32 &&
           hdi_dtype_is_float(step->type);
}

/* A tensor of its shape that lies dense is added to what the gradient of a norm's x gives. */
static bool is_sum(const hdi_chain *chain) {
    const hdi_step *step = &chain->steps[0];
    return chain->step_count == 1 && step->code == HDI_STEP_ADD && step->a + step->b == 1 && step->type == HD_F32 &&
           chain->inputs[1].dtype == HD_F32 && hdi_tensor_is_dense(&chain->inputs[1]);
}

bool hdi_kernels_round(hdi_op op) {
    return op == HDI_OP_RMS_NORM || op == HDI_OP_LAYER_NORM || op == HDI_OP_NORM_GRADIENT ||
           op == HDI_OP_CROSS_ENTROPY_GRADIENT;
}

bool hdi_kernels_take_epilogue(hdi_op op, const hdi_chain *chain) {
    if (op == HDI_OP_NORM_GRADIENT && is_sum(chain)) return true;
    if (hdi_kernels_round(op)) return is_rounding(chain);
    const uint32_t words = HDI_MM_PUSH_CHAIN + 4 * (chain->input_count - 1) + chain->attr_count;
    for (uint32_t i = 1; i < chain->input_count; i++)
        if (!hdi_matmul_takes_source(&chain->inputs[i])) return false;
    const bool product = op == HDI_OP_MATMUL || op == HDI_OP_MATMUL_EXPERTS;
    return product && chain->step_count <= HDI_CHAIN_STEPS &&
        hdi_chain_costly_steps(chain) <= 1 && words <= HDI_MAX_PUSH_WORDS;
}
