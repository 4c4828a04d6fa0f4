/* reduce.c: lowers sum, prod, mean, max, min, argmax and dot over one axis. A row, or a part of a long one, is a
 * workgroup; where the axis is not the last one a column is an invocation. What is more than a binding sees is taken in
 * pieces, in the order in which it would be taken whole. */
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

/* Of x from element `first` on, made dense: `size` is rows, elements of each, and elements from one to the next. */
static hd_status block_of(const hdi_request *request, const hdi_tensor *x, uint64_t first, const uint64_t size[3],
                          hdi_lowering *lowering, hdi_tensor *out_block, hd_error *error) {
    hdi_tensor view = hdi_tensor_dense(x->storage, x->dtype, HD_SHAPE((int64_t)size[0], (int64_t)size[1]));
    view.first = x->first + first;
    view.strides[0] = (int64_t)size[2];
    return hdi_rows_dense(request, &view, lowering, out_block, error);
}

/* The launch over a block of each operand. */
static hd_status add_block(const hdi_request *request, hdi_rows_launch *launch, uint64_t first, const uint64_t size[3],
                           hdi_lowering *lowering, hd_error *error) {
    const hdi_tensor *x = launch->inputs[0], *second = launch->inputs[1];
    hdi_tensor blocks[2];
    hd_status status = block_of(request, x, first, size, lowering, &blocks[0], error);
    if (!status && second != x) status = block_of(request, second, first, size, lowering, &blocks[1], error);
    launch->inputs[0] = &blocks[0];
    launch->inputs[1] = &blocks[second != x];
    launch->because = "a piece of an axis: all of it is more than one launch or binding takes";
    if (!status) status = hdi_rows_add(request, launch, lowering, error);
    launch->inputs[0] = x;
    launch->inputs[1] = second;
    return status;
}

/* `width` columns of one block of rows, from element `first` on, `tall` rows at a time: each launch goes on from what
 * the one before it came to. */
static hd_status add_strip(const hdi_request *request, const hdi_rows_launch *whole, uint64_t first, uint64_t width,
                           uint64_t tall, hdi_lowering *lowering, hd_error *error) {
    const bool finds = whole->spec[0] == HDI_REDUCE_ARGMAX;
    const uint64_t n = whole->push[1], inner = whole->push[2];
    const hd_dtype computing = whole->spec[1] == HD_I32 || finds ? HD_I32 : HD_F32;
    hdi_rows_launch launch = *whole;
    hdi_tensor y, to = *whole->out;
    hd_status status = hdi_rows_temporary(lowering, computing, HD_SHAPE((int64_t)width, finds ? 2 : 1), &y, error);
    launch.out = &y;
    launch.groups = hdi_divide_up(width, hdi_rows_workgroup(request->caps));
    for (uint64_t at = 0; at < n && !status; at += tall) {
        const uint64_t rows = HDI_MIN(tall, n - at), size[3] = { rows, width, inner };
        launch.out_access = at ? HDI_READ | HDI_WRITE : HDI_WRITE;
        launch.spec[3] = (at ? HDI_REDUCE_GOES_ON : 0) | (finds || at + rows < n ? HDI_REDUCE_IS_PART : 0);
        launch.push[0] = 1;
        launch.push[1] = (uint32_t)rows;
        launch.push[2] = (uint32_t)width;
        launch.push[4] = (uint32_t)(finds ? at : n);
        launch.flops = rows * width;
        status = add_block(request, &launch, first + at * inner, size, lowering, error);
    }
    if (status) return status;
    y.shape = to.shape = HD_SHAPE((int64_t)width);
    y.strides[0] = finds ? 2 : 1;
    y.first = finds;
    to.strides[0] = 1;
    to.first += first / (n * inner) * inner + first % inner;
    return hdi_rows_copy(request, &y, &to, lowering, error);
}

/* Elements of one column that a launch takes. */
static uint64_t longest_column(const hdi_caps *caps) { return caps->native_kernels ? UINT32_MAX : HDI_REDUCE_COLUMN; }

/* Does a launch take a line's columns whole? */
static bool columns_fit(const hdi_caps *caps, hd_dtype dtype, uint64_t n, uint64_t inner) {
    return n <= longest_column(caps) && n * inner <= hdi_rows_most(caps, dtype);
}

static hd_status add_columns(const hdi_request *request, const hdi_rows_launch *launch, hdi_lowering *lowering,
                             hd_error *error) {
    const uint64_t outer = launch->push[0], n = launch->push[1], inner = launch->push[2];
    const uint64_t most = hdi_rows_most(request->caps, launch->inputs[0]->dtype),
                   longest = longest_column(request->caps);
    if (columns_fit(request->caps, launch->inputs[0]->dtype, n, inner))
        return hdi_rows_add(request, launch, lowering, error);
    const uint64_t width = HDI_MIN(inner, HDI_MAX(most / HDI_MM_BLOCK, 1)), blocks = most / width / HDI_MM_BLOCK;
    const uint64_t tall = HDI_MIN(longest, HDI_MAX(blocks, 1) * HDI_MM_BLOCK);
    hd_status status = HD_OK;
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t c = 0; c < inner && !status; c += width)
            status = add_strip(request, launch, o * n * inner + c, HDI_MIN(width, inner - c), tall, lowering, error);
    return status;
}

/* The parts of columns first, each as if it were a line of its own, then what they came to. */
static hd_status add_column_parts(const hdi_request *request, hdi_rows_launch *launch, uint64_t parts,
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
    launch->rows = outer * parts;
    launch->groups = hdi_divide_up(outer * parts * inner, hdi_rows_workgroup(request->caps));
    launch->because = "few long columns: an invocation for each part of one";
    if ((status = add_columns(request, launch, lowering, error)) != HD_OK) return status;
    launch->inputs[0] = launch->inputs[1] = &partial;
    launch->out = &request->out;
    launch->spec[0] = op == HDI_REDUCE_DOT ? HDI_REDUCE_SUM : op;
    launch->spec[1] = HD_F32;
    launch->spec[2] = 1;
    launch->push[0] = outer;
    launch->push[1] = (uint32_t)parts;
    launch->rows = outer;
    launch->groups = hdi_divide_up((uint64_t)outer * inner, hdi_rows_workgroup(request->caps));
    launch->flops = (uint64_t)outer * parts * inner;
    launch->because = "joins the parts of long columns";
    return hdi_rows_add(request, launch, lowering, error);
}

/* What the parts of long rows come to, as [outer, parts] or, with indices, [outer, parts, 2]. */
static hd_status add_parts(const hdi_request *request, const hdi_rows_launch *whole, hdi_lowering *lowering,
                           hd_error *error) {
    const bool finds = whole->spec[0] == HDI_REDUCE_ARGMAX;
    const uint64_t outer = whole->push[0], n = whole->push[1], parts = whole->push[3], part = whole->push[5],
                   words = finds ? 2 : 1, most = hdi_rows_most(request->caps, whole->inputs[0]->dtype);
    if (n <= most) return hdi_rows_add(request, whole, lowering, error);
    const uint64_t piece = HDI_MAX(most / part, 1) * part;
    hdi_rows_launch launch = *whole;
    hd_status status = HD_OK;
    for (uint64_t at = 0; at < outer * n && !status; at += HDI_MIN(piece, n - at % n)) {
        const uint64_t before = at % n, count = HDI_MIN(piece, n - before), size[3] = { 1, count, count };
        const hd_shape results = HD_SHAPE((int64_t)(hdi_divide_up(count, part) * words));
        hdi_tensor to = *whole->out, y;
        status = hdi_rows_temporary(lowering, to.dtype, results, &y, error);
        launch.out = &y;
        launch.push[0] = 1;
        launch.push[1] = (uint32_t)count;
        launch.push[3] = (uint32_t)hdi_divide_up(count, part);
        launch.push[4] = (uint32_t)(finds ? before : n);
        launch.rows = 1;
        launch.groups = launch.push[3];
        launch.flops = count;
        if (!status) status = add_block(request, &launch, at, size, lowering, error);
        to.shape = y.shape;
        to.strides[0] = 1;
        to.first += (at / n * parts + before / part) * words;
        if (finds) to.dtype = y.dtype = HD_I32; /* moved as it is */
        if (!status) status = hdi_rows_copy(request, &y, &to, lowering, error);
    }
    return status;
}

/* Operands, made dense: factors of places are repeated along columns that a launch does not take whole. */
static hd_status operands_of(const hdi_request *request, uint32_t count, uint64_t n, uint64_t inner,
                             hdi_lowering *lowering, hdi_tensor *out, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        hdi_tensor view = request->inputs[i];
        const hd_shape whole = request->inputs[0].shape;
        for (uint32_t k = 0; k < whole.rank && !columns_fit(request->caps, view.dtype, n, inner); k++) {
            if (view.shape.dims[k] != whole.dims[k]) view.strides[k] = 0;
            view.shape.dims[k] = whole.dims[k];
        }
        status = hdi_rows_dense(request, &view, lowering, &out[i], error);
    }
    return status;
}

hd_status hdi_lower_reduce(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t op = code_of(request->op), operands = op == HDI_REDUCE_DOT ? 2 : 1;
    hdi_tensor inputs[2];
    const hdi_tensor *x = &request->inputs[0];
    const int64_t axis = request->attrs->ints[0];
    uint64_t outer = 1, n = 1, inner = 1;
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        const uint64_t length = (uint64_t)x->shape.dims[i];
        if (i == axis) n *= length;
        else if (i < axis) outer *= length;
        else inner *= length;
    }
    if (HDI_MAX(HDI_MAX(outer, n), inner) > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "a reduction over or beside axes of more than 2^32 - 1 elements");
    hd_status status = operands_of(request, operands, n, inner, lowering, inputs, error);
    if (status != HD_OK) return status;
    x = &inputs[0];
    const bool picks = op == HDI_REDUCE_MAX || op == HDI_REDUCE_MIN || op == HDI_REDUCE_ARGMAX;
    const uint64_t elements = outer * n * inner;
    const uint32_t form = inner == 1 ? 0 : hdi_shape_equal(inputs[operands - 1].shape, x->shape) ? 1 : 2;
    const uint64_t part = picks && outer < request->caps->compute_units ? HDI_REDUCE_PICK_PART : HDI_REDUCE_PART;
    hdi_rows_launch launch = { .module = HDI_MODULE_REDUCE, .inputs = { x, &inputs[operands - 1] }, .input_count = 2,
                               .out = &request->out, .spec = { op, (uint32_t)x->dtype, form, 0 }, .spec_count = 4,
                               .push = { (uint32_t)outer, (uint32_t)n, (uint32_t)inner, 1,
                                         op == HDI_REDUCE_ARGMAX ? 0 : (uint32_t)n, (uint32_t)part }, .push_count = 6,
                               .rows = outer, .groups = outer, .flops = elements * operands,
                               .because = "a workgroup for each row" };
    if (inner != 1) {
        launch.groups = hdi_divide_up(outer * inner, hdi_rows_workgroup(request->caps));
        launch.because = "neighbouring columns are read together: an invocation for each";
        const uint64_t parts = column_parts(request, &launch, x->dtype, n);
        if (parts > 1) return add_column_parts(request, &launch, parts, lowering, error);
        return add_columns(request, &launch, lowering, error);
    }
    if (n <= part) {
        hdi_rows_choose(request, HDI_CLASS_REDUCE, x, outer, n, lowering->offer, &launch);
        return hdi_rows_add(request, &launch, lowering, error);
    }

    /* A long row: its parts first, then what they came to. */
    const uint64_t parts = hdi_divide_up(n, part);
    const hd_dtype computing = x->dtype == HD_I32 ? HD_I32 : HD_F32;
    const hd_shape results = HD_SHAPE((int64_t)outer, (int64_t)parts, op == HDI_REDUCE_ARGMAX ? 2 : 1);
    hdi_tensor partial;
    status = hdi_rows_temporary(lowering, computing, results, &partial, error);
    if (status != HD_OK) return status;
    launch.out = &partial;
    launch.spec[0] = op == HDI_REDUCE_MEAN ? HDI_REDUCE_SUM : op;
    launch.spec[3] = 1;
    launch.push[3] = (uint32_t)parts;
    launch.groups = outer * parts;
    launch.because = "long rows: a workgroup for each part";
    status = add_parts(request, &launch, lowering, error);
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
