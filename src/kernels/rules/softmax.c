/* softmax.c: lowers softmax, log_softmax, cross_entropy and its gradient. The kernel works along the last axis; for
 * another one the tensor is copied with that axis last, and the result is copied back. A row is a workgroup's; where it
 * is too long for one, softmax is computed by reductions and element-wise chains. */
#include "kernels/rows.h"

/* Rows of `n` neighbouring elements; the inputs are these, the targets, the gradients of losses, and these. */
static hd_status add(const hdi_request *request, uint32_t op, uint64_t n, const hdi_tensor inputs[4],
                     const hdi_tensor *out, hdi_lowering *lowering, hd_error *error) {
    const uint64_t elements = hd_shape_elements(inputs->shape);
    hdi_rows_launch launch = { .module = HDI_MODULE_SOFTMAX,
                               .inputs = { &inputs[0], &inputs[1], &inputs[2], &inputs[3] }, .input_count = 4,
                               .rows = elements / n,
                               .out = out, .spec = { op, (uint32_t)inputs->dtype, hdi_rows_has(request, 3) },
                               .spec_count = 3,
                               .push = { (uint32_t)(elements / n), (uint32_t)n }, .push_count = 2,
                               .groups = elements / n, .flops = 8 * elements, .because = "a workgroup for each row" };
    hdi_rows_choose(request, HDI_CLASS_SOFTMAX, inputs, elements / n, n, lowering->offer, &launch);
    const hd_status status = hdi_rows_check_length(request, n, error);
    return status ? status : hdi_rows_add(request, &launch, lowering, error);
}

/* A dense tensor's elements in another shape. */
static hdi_tensor shaped(const hdi_tensor *tensor, hd_shape shape) {
    hdi_tensor view = hdi_tensor_dense(tensor->storage, tensor->dtype, shape);
    view.first = tensor->first;
    return view;
}

/* Appends the reduction of x, [rows,n], along its rows: [rows,1]. */
static hd_status add_reduced(const hdi_request *request, hdi_op op, const hdi_tensor *x, hdi_lowering *lowering,
                             hdi_tensor *out, hd_error *error) {
    const hdi_attrs along = { .ints = { 1 } };
    const hd_status status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE(x->shape.dims[0], 1), out, error);
    const hdi_request reduce = { .op = op, .attrs = &along, .inputs = x, .input_count = 1, .out = *out,
                                 .caps = request->caps, .math = request->math };
    return status ? status : hdi_lower_reduce(&reduce, lowering, error);
}

/* [rows,1] with its one element for all of a row. */
static hdi_tensor repeated(const hdi_tensor *tensor, hd_shape shape) {
    hdi_tensor view = *tensor;
    view.shape = shape;
    view.strides[1] = 0;
    return view;
}

/* Rows of any length, [rows,n]: the largest of each, e to the differences from it, their sum, and what these give. */
static hd_status add_long(const hdi_request *request, bool log, const hdi_tensor *x, const hdi_tensor *out,
                          hdi_lowering *lowering, hd_error *error) {
    const uint8_t none = HDI_SOURCE_NONE, first = HDI_CHAIN_INPUTS;
    hdi_tensor largest, powers, sum, log_sum;
    hd_status status = add_reduced(request, HDI_OP_MAX, x, lowering, &largest, error);
    if (!status) status = hdi_rows_temporary(lowering, HD_F32, x->shape, &powers, error);
    if (status) return status;
    const hdi_chain raise = { .steps = { { HDI_STEP_SUB, 0, 1, none, HD_F32, 0 },
                                         { HDI_STEP_EXP, first, none, none, HD_F32, 0 } }, .step_count = 2,
                              .inputs = { *x, repeated(&largest, x->shape) }, .input_count = 2 };
    status = hdi_rows_chain(request, &raise, &powers, lowering, error);
    if (!status) status = add_reduced(request, HDI_OP_SUM, &powers, lowering, &sum, error);
    if (status) return status;
    const hdi_chain share = { .steps = { { HDI_STEP_DIV, 0, 1, none, out->dtype, 0 } }, .step_count = 1,
                              .inputs = { powers, repeated(&sum, x->shape) }, .input_count = 2 };
    if (!log) return hdi_rows_chain(request, &share, out, lowering, error);
    const hdi_chain logarithm = { .steps = { { HDI_STEP_LOG, 0, none, none, HD_F32, 0 } }, .step_count = 1,
                                  .inputs = { sum }, .input_count = 1 };
    status = hdi_rows_temporary(lowering, HD_F32, sum.shape, &log_sum, error);
    if (!status) status = hdi_rows_chain(request, &logarithm, &log_sum, lowering, error);
    if (status) return status;
    const hdi_chain less = { .steps = { { HDI_STEP_SUB, 0, 1, none, HD_F32, 0 },
                                        { HDI_STEP_SUB, first, 2, none, out->dtype, 0 } }, .step_count = 2,
                             .input_count = 3,
                             .inputs = { *x, repeated(&largest, x->shape), repeated(&log_sum, x->shape) } };
    return hdi_rows_chain(request, &less, out, lowering, error);
}

hd_status hdi_lower_softmax(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t op = request->op == HDI_OP_SOFTMAX ? HDI_ROW_SOFTMAX
                      : request->op == HDI_OP_LOG_SOFTMAX ? HDI_ROW_LOG_SOFTMAX
                      : request->op == HDI_OP_CROSS_ENTROPY ? HDI_ROW_CROSS_ENTROPY : HDI_ROW_CROSS_ENTROPY_GRADIENT;
    const uint32_t others = op == HDI_ROW_CROSS_ENTROPY ? 1 : op == HDI_ROW_CROSS_ENTROPY_GRADIENT ? 3 : 0;
    const hdi_tensor *input = &request->inputs[0];
    const uint32_t rank = input->shape.rank;
    const uint32_t axis = others > 0 || rank == 0 ? rank - 1 : (uint32_t)request->attrs->ints[0];
    const uint64_t n = rank == 0 ? 1 : (uint64_t)input->shape.dims[axis];
    uint64_t inner = 1;
    for (uint32_t i = axis + 1; rank != 0 && i < rank; i++) inner *= (uint64_t)input->shape.dims[i];
    hdi_tensor inputs[4], y = request->out;
    const hdi_tensor view = inner == 1 ? *input : hdi_rows_axis_last(input, axis);
    hd_status status = hdi_rows_dense(request, &view, lowering, &inputs[0], error);
    if (status != HD_OK) return status;
    inputs[1] = inputs[2] = inputs[3] = inputs[0];
    for (uint32_t i = 1; i <= others && status == HD_OK; i++)
        if (hdi_rows_has(request, i))
            status = hdi_rows_dense(request, &request->inputs[i], lowering, &inputs[i], error);
    if (status == HD_OK && inner != 1) status = hdi_rows_temporary(lowering, y.dtype, inputs[0].shape, &y, error);
    const hd_shape rows = HD_SHAPE((int64_t)(hd_shape_elements(inputs[0].shape) / n), (int64_t)n);
    const bool is_long = others == 0 && n > HDI_ROW_SOFTMAX_WHOLE;
    const hdi_tensor x = shaped(&inputs[0], rows), to = shaped(&y, rows);
    if (status == HD_OK)
        status = is_long ? add_long(request, op == HDI_ROW_LOG_SOFTMAX, &x, &to, lowering, error)
                         : add(request, op, n, inputs, &y, lowering, error);
    if (status != HD_OK || inner == 1) return status;
    const hdi_tensor back = hdi_rows_axis_last(&request->out, axis);
    return hdi_rows_copy(request, &y, &back, lowering, error);
}
