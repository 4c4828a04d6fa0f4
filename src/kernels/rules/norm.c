/* norm.c: lowers rms_norm and layer_norm, which are over the last axis. */
#include "kernels/rows.h"

hd_status hdi_lower_norm(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor operands[3];
    uint32_t has = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const bool here = hdi_rows_has(request, i);
        operands[i] = operands[0];
        if (!here) continue;
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
        if (i > 0) has |= 1u << (i - 1);
    }
    if (request->chain && hdi_chain_is_halves(request->chain)) has |= HDI_ROW_HALVES;
    const hdi_tensor *x = &operands[0];
    const uint64_t elements = hd_shape_elements(x->shape);
    const uint64_t n = x->shape.rank == 0 ? 1 : (uint64_t)x->shape.dims[x->shape.rank - 1];
    const uint32_t op = request->op == HDI_OP_RMS_NORM ? HDI_ROW_RMS_NORM : HDI_ROW_LAYER_NORM;
    hdi_rows_launch launch = { .module = HDI_MODULE_NORM, .inputs = { x, &operands[1], &operands[2] }, .input_count = 3,
                                     .out = &request->out, .spec = { op, (uint32_t)x->dtype, has },
                                     .push = { (uint32_t)(elements / n), (uint32_t)n,
                                               hdi_rows_float_bits(request->attrs->floats[0]) },
                                     .push_count = 3, .rows = elements / n, .shared = (has & 3) << 1,
                                     .groups = elements / n, .flops = 6 * elements,
                                     .because = "a workgroup for each row" };
    hdi_rows_choose_norm(request, x, elements / n, n, lowering->offer, &launch);
    const hd_status status = hdi_rows_check_length(request, n, error);
    return status ? status : hdi_rows_add(request, &launch, lowering, error);
}
