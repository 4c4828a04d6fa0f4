/* softmax.c: lowers softmax, log_softmax, cross_entropy and its gradient. The kernel works along the last axis; for
 * another one the tensor is copied with that axis last, and the result is copied back. */
#include "kernels/rows.h"

/* Rows of `n` neighbouring elements; the inputs are these, the targets and the gradients of losses. */
static hd_status add(const hdi_request *request, uint32_t op, uint64_t n, const hdi_tensor inputs[3],
                     const hdi_tensor *out, hdi_lowering *lowering, hd_error *error) {
    const uint64_t elements = hd_shape_elements(inputs->shape);
    hdi_rows_launch launch = { .module = HDI_MODULE_SOFTMAX, .inputs = { &inputs[0], &inputs[1], &inputs[2] },
                               .input_count = 3,
                               .out = out, .spec = { op, (uint32_t)inputs->dtype }, .spec_count = 2,
                               .push = { (uint32_t)(elements / n), (uint32_t)n }, .push_count = 2,
                               .groups = elements / n, .flops = 8 * elements, .because = "a workgroup for each row" };
    hdi_rows_choose(request, HDI_CLASS_SOFTMAX, inputs, elements / n, n, lowering->offer, &launch);
    return hdi_rows_add(request, &launch, lowering, error);
}

/* Rows from `at` on, `count` of the `rows` that the tensor has. */
static hdi_tensor rows_of(const hdi_tensor *tensor, uint64_t rows, uint64_t at, uint64_t count) {
    const uint64_t each = hd_shape_elements(tensor->shape) / rows;
    hdi_tensor part = hdi_tensor_dense(tensor->storage, tensor->dtype, HD_SHAPE((int64_t)count, (int64_t)each));
    part.first = tensor->first + at * each;
    return part;
}

/* In as few launches as the ranges that a binding sees allow: so many rows each that all begin where one may. */
static hd_status add_slices(const hdi_request *request, uint32_t op, uint64_t n, const hdi_tensor inputs[3],
                            const hdi_tensor *out, hdi_lowering *lowering, hd_error *error) {
    const uint64_t rows = hd_shape_elements(inputs->shape) / n, unit = request->caps->binding_align;
    const uint64_t bytes =
        HDI_MAX(hd_tensor_bytes(inputs->dtype, inputs->shape), hd_tensor_bytes(out->dtype, out->shape));
    uint64_t most = rows;
    if (request->caps->max_binding_bytes && bytes > request->caps->max_binding_bytes)
        most = request->caps->max_binding_bytes / hdi_divide_up(bytes, rows) / unit * unit;
    hd_status status = HD_OK;
    if (most == 0 || most >= rows) return add(request, op, n, inputs, out, lowering, error);
    for (uint64_t at = 0; at < rows && status == HD_OK; at += most) {
        const uint64_t count = HDI_MIN(most, rows - at);
        const hdi_tensor y = rows_of(out, rows, at, count);
        hdi_tensor parts[3];
        for (uint32_t i = 0; i < 3; i++) parts[i] = rows_of(&inputs[i], rows, at, count);
        status = add(request, op, n, parts, &y, lowering, error);
    }
    return status;
}

hd_status hdi_lower_softmax(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t op = request->op == HDI_OP_SOFTMAX ? HDI_ROW_SOFTMAX
                      : request->op == HDI_OP_LOG_SOFTMAX ? HDI_ROW_LOG_SOFTMAX
                      : request->op == HDI_OP_CROSS_ENTROPY ? HDI_ROW_CROSS_ENTROPY : HDI_ROW_CROSS_ENTROPY_GRADIENT;
    const uint32_t others = op == HDI_ROW_CROSS_ENTROPY ? 1 : op == HDI_ROW_CROSS_ENTROPY_GRADIENT ? 2 : 0;
    const hdi_tensor *input = &request->inputs[0];
    const uint32_t rank = input->shape.rank;
    const uint32_t axis = others > 0 || rank == 0 ? rank - 1 : (uint32_t)request->attrs->ints[0];
    const uint64_t n = rank == 0 ? 1 : (uint64_t)input->shape.dims[axis];
    uint64_t inner = 1;
    for (uint32_t i = axis + 1; rank != 0 && i < rank; i++) inner *= (uint64_t)input->shape.dims[i];
    hdi_tensor inputs[3], y = request->out;
    const hdi_tensor view = inner == 1 ? *input : hdi_rows_axis_last(input, axis);
    hd_status status = hdi_rows_dense(request, &view, lowering, &inputs[0], error);
    if (status != HD_OK) return status;
    inputs[1] = inputs[2] = inputs[0];
    for (uint32_t i = 1; i <= others && status == HD_OK; i++)
        status = hdi_rows_dense(request, &request->inputs[i], lowering, &inputs[i], error);
    if (status == HD_OK && inner != 1) status = hdi_rows_temporary(lowering, y.dtype, inputs[0].shape, &y, error);
    if (status == HD_OK) status = add_slices(request, op, n, inputs, &y, lowering, error);
    if (status != HD_OK || inner == 1) return status;
    const hdi_tensor back = hdi_rows_axis_last(&request->out, axis);
    return hdi_rows_copy(request, &y, &back, lowering, error);
}
