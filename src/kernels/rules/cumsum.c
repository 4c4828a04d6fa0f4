/* cumsum.c: lowers running sums. The kernel works along the last axis; for another one the tensor is copied with that
 * axis last, and the result is copied back. Long rows are cut into parts: their totals, the running sums of these, then
 * the parts again, each from what is before it. */
#include "kernels/rows.h"

static hd_status lower_rows(const hdi_request *request, const hdi_tensor *x, const hdi_tensor *y,
                            hdi_lowering *lowering, hd_error *error) {
    const uint64_t n = (uint64_t)x->shape.dims[x->shape.rank - 1], rows = hd_shape_elements(x->shape) / n;
    const uint64_t parts = hdi_divide_up(n, HDI_CUMSUM_PART);
    const uint32_t form = (uint32_t)request->attrs->ints[1];
    hdi_rows_launch launch = { .module = HDI_MODULE_CUMSUM, .inputs = { x, x }, .input_count = 2, .out = y,
                               .spec = { (uint32_t)x->dtype, HDI_CUMSUM_WHOLE, form }, .spec_count = 3,
                               .push = { (uint32_t)rows, (uint32_t)n, 1, (uint32_t)n }, .push_count = 4,
                               .rows = rows, .groups = rows, .flops = rows * n, .because = "a workgroup for each row" };
    if (parts == 1) return hdi_rows_add(request, &launch, lowering, error);

    const hd_dtype computing = x->dtype == HD_I32 ? HD_I32 : HD_F32;
    const hd_shape shape = HD_SHAPE((int64_t)rows, (int64_t)parts);
    hdi_tensor totals, before;
    hd_status status = hdi_rows_temporary(lowering, computing, shape, &totals, error);
    if (!status) status = hdi_rows_temporary(lowering, computing, shape, &before, error);
    if (status) return status;
    launch.spec[1] = HDI_CUMSUM_TOTALS;
    launch.push[2] = (uint32_t)parts;
    launch.push[3] = HDI_CUMSUM_PART;
    launch.groups = rows * parts;
    launch.out = &totals;
    launch.because = "long rows: what each part comes to";
    status = hdi_rows_add(request, &launch, lowering, error);
    if (status) return status;
    const hdi_rows_launch middle = { .module = HDI_MODULE_CUMSUM, .inputs = { &totals, &totals }, .input_count = 2,
                                     .out = &before,
                                     .spec = { (uint32_t)computing, HDI_CUMSUM_WHOLE, HDI_CUMSUM_EXCLUSIVE },
                                     .spec_count = 3, .push = { (uint32_t)rows, (uint32_t)parts, 1, (uint32_t)parts },
                                     .push_count = 4, .rows = rows, .groups = rows, .flops = rows * parts,
                                     .because = "what is before each part" };
    status = hdi_rows_add(request, &middle, lowering, error);
    if (status) return status;
    launch.spec[1] = HDI_CUMSUM_BEHIND;
    launch.inputs[1] = &before;
    launch.out = y;
    launch.because = "long rows: a workgroup for each part";
    return hdi_rows_add(request, &launch, lowering, error);
}

hd_status hdi_lower_cumsum(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t axis = (uint32_t)request->attrs->ints[0], last = request->out.shape.rank - 1;
    const hdi_tensor view = hdi_rows_axis_last(&request->inputs[0], axis),
                     back = hdi_rows_axis_last(&request->out, axis);
    hdi_tensor x, y = back;
    hd_status status = hdi_rows_dense(request, &view, lowering, &x, error);
    if (!status && axis != last) status = hdi_rows_temporary(lowering, y.dtype, y.shape, &y, error);
    if (!status) status = lower_rows(request, &x, &y, lowering, error);
    return status || axis == last ? status : hdi_rows_copy(request, &y, &back, lowering, error);
}
