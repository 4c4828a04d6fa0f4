/* reduce.c: lowers sum, prod, mean, max, min, argmax and dot over one axis. A row, or a part of a long one, is a
 * workgroup; where the axis is not the last one a column is an invocation. */
#include "kernels/rows.h"

static uint32_t code_of(hdi_op op) {
    switch (op) {
    case HDI_OP_SUM:    return HDI_REDUCE_SUM;
    case HDI_OP_PROD:   return HDI_REDUCE_PROD;
    case HDI_OP_MEAN:   return HDI_REDUCE_MEAN;
    case HDI_OP_MAX:    return HDI_REDUCE_MAX;
    case HDI_OP_MIN:    return HDI_REDUCE_MIN;
    case HDI_OP_ARGMAX: return HDI_REDUCE_ARGMAX;
    default:            return HDI_REDUCE_DOT;
    }
}

/* Into how many equal parts columns are divided, so that there are enough of them for the device; 1: they stay whole,
 * as in exact mode, where the order of a sum down a column is one. */
static uint64_t column_parts(const hdi_request *request, const hdi_rows_launch *launch, hd_dtype dtype, uint64_t n) {
    enum { LEAST_ROWS = 64, GROUPS_EACH = 8 };
    const hdi_caps *caps = request->caps;
    const uint32_t op = launch->spec[0];
    const bool sums = op == HDI_REDUCE_SUM || op == HDI_REDUCE_MEAN || op == HDI_REDUCE_DOT;
    if (!sums || dtype == HD_I32 || request->math == HD_MATH_EXACT || caps->native_kernels || n >= 1u << 24) return 1;
    const uint64_t wanted = (uint64_t)caps->compute_units * GROUPS_EACH / launch->groups;
    for (uint64_t parts = HDI_MIN(wanted, n / LEAST_ROWS); parts > 1; parts--)
        if (n % parts == 0) return parts;
    return 1;
}

/* The parts of columns first, each as if it were a line of its own, then what they came to. */
static hd_status add_columns(const hdi_request *request, hdi_rows_launch *launch, uint64_t parts,
                             hdi_lowering *lowering, hd_error *error) {
    const uint32_t op = launch->spec[0], outer = launch->push[0], inner = launch->push[2];
    hdi_tensor partial;
    hd_status status =
        hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)outer, (int64_t)parts, (int64_t)inner), &partial, error);
    if (status != HD_OK) return status;
    launch->out = &partial;
    launch->spec[0] = op == HDI_REDUCE_MEAN ? HDI_REDUCE_SUM : op;
    launch->push[0] = (uint32_t)(outer * parts);
    launch->push[1] /= (uint32_t)parts;
    launch->groups = hdi_divide_up(outer * parts * inner, hdi_rows_workgroup(request->caps));
    launch->because = "few long columns: an invocation for each part of one";
    if ((status = hdi_rows_add(request, launch, lowering, error)) != HD_OK) return status;
    launch->inputs[0] = launch->inputs[1] = &partial;
    launch->out = &request->out;
    launch->spec[0] = op == HDI_REDUCE_DOT ? HDI_REDUCE_SUM : op;
    launch->spec[1] = HD_F32;
    launch->push[0] = outer;
    launch->push[1] = (uint32_t)parts;
    launch->groups = hdi_divide_up((uint64_t)outer * inner, hdi_rows_workgroup(request->caps));
    launch->flops = (uint64_t)outer * parts * inner;
    launch->because = "joins the parts of long columns";
    return hdi_rows_add(request, launch, lowering, error);
}

hd_status hdi_lower_reduce(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t op = code_of(request->op), operands = op == HDI_REDUCE_DOT ? 2 : 1;
    hdi_tensor inputs[2];
    for (uint32_t i = 0; i < operands; i++) {
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &inputs[i], error);
        if (status != HD_OK) return status;
    }
    const hdi_tensor *x = &inputs[0];
    const int64_t axis = request->attrs->ints[0];
    uint64_t outer = 1, n = 1, inner = 1;
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        const uint64_t length = (uint64_t)x->shape.dims[i];
        if (i == axis) n *= length;
        else if (i < axis) outer *= length;
        else inner *= length;
    }
    const bool picks = op == HDI_REDUCE_MAX || op == HDI_REDUCE_MIN || op == HDI_REDUCE_ARGMAX;
    const uint64_t elements = outer * n * inner;
    const uint64_t part = picks && outer < request->caps->compute_units ? HDI_REDUCE_PICK_PART : HDI_REDUCE_PART;
    hdi_rows_launch launch = { .module = HDI_MODULE_REDUCE, .inputs = { x, &inputs[operands - 1] }, .input_count = 2,
                               .out = &request->out, .spec = { op, (uint32_t)x->dtype, inner != 1, 0 }, .spec_count = 4,
                               .push = { (uint32_t)outer, (uint32_t)n, (uint32_t)inner, 1, (uint32_t)n,
                                         (uint32_t)part }, .push_count = 6,
                               .groups = outer, .flops = elements * operands, .because = "a workgroup for each row" };
    if (inner != 1) {
        launch.groups = hdi_divide_up(outer * inner, hdi_rows_workgroup(request->caps));
        launch.because = "neighbouring columns are read together: an invocation for each";
        const uint64_t parts = column_parts(request, &launch, x->dtype, n);
        if (parts > 1) return add_columns(request, &launch, parts, lowering, error);
    } else if (n <= part) hdi_rows_choose(request, HDI_CLASS_REDUCE, x, outer, n, lowering->offer, &launch);
    if (inner != 1 || n <= part) return hdi_rows_add(request, &launch, lowering, error);

    /* A long row: its parts first, then what they came to. */
    const uint64_t parts = hdi_divide_up(n, part);
    const hd_dtype computing = x->dtype == HD_I32 ? HD_I32 : HD_F32;
    hdi_tensor partial;
    hd_status status =
        hdi_rows_temporary(lowering, computing,
                           HD_SHAPE((int64_t)outer, (int64_t)parts, op == HDI_REDUCE_ARGMAX ? 2 : 1), &partial, error);
    if (status != HD_OK) return status;
    launch.out = &partial;
    launch.spec[0] = op == HDI_REDUCE_MEAN ? HDI_REDUCE_SUM : op;
    launch.spec[3] = 1;
    launch.push[3] = (uint32_t)parts;
    launch.groups = outer * parts;
    launch.because = "long rows: a workgroup for each part";
    status = hdi_rows_add(request, &launch, lowering, error);
    if (status != HD_OK) return status;
    launch.inputs[0] = launch.inputs[1] = &partial;
    launch.out = &request->out;
    launch.spec[0] = op == HDI_REDUCE_DOT ? HDI_REDUCE_SUM : op;
    launch.spec[1] = (uint32_t)computing;
    launch.spec[3] = 2;
    launch.push[1] = (uint32_t)parts;
    launch.groups = outer;
    launch.flops = outer * parts;
    launch.because = "joins the parts of long rows";
    return hdi_rows_add(request, &launch, lowering, error);
}
