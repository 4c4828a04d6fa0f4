/* norm_gradient.c: lowers the gradients of norms: of x, a workgroup for a row; of weight and bias, which are sums over
 * rows, in parts of the rows where the device has room for more columns than there are. */
#include "kernels/rows.h"

static uint32_t kind_of(const hdi_request *request) {
    return request->attrs->ints[0] ? HDI_ROW_LAYER_NORM : HDI_ROW_RMS_NORM;
}

/* x and dy, dense. */
static hd_status read_operands(const hdi_request *request, hdi_lowering *lowering, hdi_tensor out[2], hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < 2 && !status; i++)
        status = hdi_rows_dense(request, &request->inputs[i], lowering, &out[i], error);
    return status;
}

static uint64_t length_of(const hdi_tensor *x) { return (uint64_t)x->shape.dims[x->shape.rank - 1]; }

hd_status hdi_lower_norm_gradient(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const hdi_chain *chain = request->chain;
    hdi_tensor operands[4];
    uint32_t has = 0;
    hd_status status = read_operands(request, lowering, operands, error);
    operands[2] = operands[3] = operands[0];
    if (!status && hdi_rows_has(request, 2)) {
        status = hdi_rows_dense(request, &request->inputs[2], lowering, &operands[2], error);
        has |= 1;
    }
    if (!status && chain && chain->steps[0].code == HDI_STEP_ADD) {
        status = hdi_rows_dense(request, &chain->inputs[1], lowering, &operands[3], error);
        has |= HDI_ROW_ADDS;
    }
    if (status) return status;
    if (chain && hdi_chain_is_halves(chain)) has |= HDI_ROW_HALVES;
    const hdi_tensor *x = &operands[0];
    const uint64_t elements = hd_shape_elements(x->shape), n = length_of(x);
    hdi_rows_launch launch = { .module = HDI_MODULE_NORM_GRADIENT,
                               .inputs = { x, &operands[1], &operands[2], &operands[3] }, .input_count = 4,
                               .out = &request->out,
                               .spec = { kind_of(request), HDI_TYPE_F32, has, (uint32_t)operands[1].dtype },
                               .push = { (uint32_t)(elements / n), (uint32_t)n,
                                         hdi_rows_float_bits(request->attrs->floats[0]),
                                         hdi_rows_float_bits((float)(1.0 / (double)n)) },
                               .push_count = 4, .rows = elements / n, .shared = (has & 1) << 2,
                               .groups = elements / n, .flops = 6 * elements,
                               .because = "a workgroup for each row" };
    hdi_rows_choose_norm(request, x, elements / n, n, lowering->offer, &launch);
    status = hdi_rows_check_length(request, n, error);
    return status ? status : hdi_rows_add(request, &launch, lowering, error);
}

/* Into how many parts the rows are divided; 1 where their order is one, as in exact mode. */
static uint64_t parts_of(const hdi_request *request, uint64_t rows, uint64_t groups) {
    enum { LEAST_ROWS = 64, GROUPS_EACH = 8 };
    const hdi_caps *caps = request->caps;
    if (request->math == HD_MATH_EXACT || caps->native_kernels) return 1;
    const uint64_t wanted = HDI_MIN((uint64_t)caps->compute_units * GROUPS_EACH / groups, rows / LEAST_ROWS);
    return HDI_MAX(wanted, 1);
}

/* [parts,2,n] to [2,n]. */
static hd_status join(const hdi_request *request, const hdi_tensor *partial, uint64_t parts, uint64_t n,
                      hdi_lowering *lowering, hd_error *error) {
    hdi_rows_launch launch = { .module = HDI_MODULE_REDUCE, .inputs = { partial, partial }, .input_count = 2,
                               .out = &request->out, .spec = { HDI_REDUCE_SUM, HDI_TYPE_F32, 1, 0 }, .spec_count = 4,
                               .push = { 1, (uint32_t)parts, (uint32_t)(2 * n), 1, (uint32_t)parts, HDI_REDUCE_PART },
                               .push_count = 6, .groups = hdi_divide_up(2 * n, hdi_rows_workgroup(request->caps)),
                               .flops = 2 * parts * n, .because = "joins the parts of long columns" };
    return hdi_rows_add(request, &launch, lowering, error);
}

hd_status hdi_lower_norm_sums(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    enum { COLUMNS_NATIVE = 32 };
    hdi_tensor operands[2], facts, partial = request->out;
    hd_status status = read_operands(request, lowering, operands, error);
    const hdi_tensor *x = &operands[0];
    const uint64_t elements = hd_shape_elements(request->inputs[0].shape), n = length_of(&request->inputs[0]),
                   rows = elements / n;
    const uint32_t workgroup = request->caps->native_kernels ? COLUMNS_NATIVE : hdi_rows_workgroup(request->caps);
    const uint64_t wanted = parts_of(request, rows, hdi_divide_up(n, workgroup)), part = hdi_divide_up(rows, wanted),
                   parts = hdi_divide_up(rows, part);
    if (!status) status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)rows, 2), &facts, error);
    if (!status && parts > 1)
        status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)parts, 2, (int64_t)n), &partial, error);
    if (status) return status;
    hdi_rows_launch launch = { .module = HDI_MODULE_NORM_SUMS, .inputs = { x, x, x }, .input_count = 3, .out = &facts,
                               .spec = { kind_of(request), HDI_TYPE_F32, 0, (uint32_t)operands[1].dtype },
                               .push = { (uint32_t)rows, (uint32_t)n, hdi_rows_float_bits(request->attrs->floats[0]),
                                         (uint32_t)part, (uint32_t)parts },
                               .push_count = 5, .groups = rows, .flops = 3 * elements,
                               .because = "what each row is normalised by: a workgroup for each" };
    hdi_rows_choose_norm(request, x, rows, n, lowering->offer, &launch);
    if ((status = hdi_rows_add(request, &launch, lowering, error))) return status;
    launch.inputs[1] = &operands[1];
    launch.inputs[2] = &facts;
    launch.out = &partial;
    launch.spec[2] = 1;
    launch.spec[HDI_ROW_FOURS - HDI_SPEC_FAMILY] = 0; /* columns are walked */
    launch.workgroup = workgroup;
    launch.option = 0;
    launch.groups = hdi_divide_up(parts * n, workgroup);
    launch.because = parts > 1 ? "few long columns: an invocation for each part of one"
                               : "an invocation for each column";
    status = hdi_rows_add(request, &launch, lowering, error);
    return status || parts == 1 ? status : join(request, &partial, parts, n, lowering, error);
}
