/* gather.c: lowers gather, take_along, the scatters and write_rows, and the cast of a quantised tensor, which is a
 * gather of all of its rows. */
#include "kernels/books.h"
#include "kernels/rows.h"

static uint32_t type_bytes(hd_dtype dtype) { return (uint32_t)hd_dtype_bytes(dtype, 1); }

/* Elements in a row: all axes but the first. */
static uint64_t row_elements(const hdi_tensor *tensor) {
    return hd_shape_elements(tensor->shape) / (uint64_t)tensor->shape.dims[0];
}

static hd_status lower_gather(const hdi_request *request, const hdi_tensor *table, const hdi_tensor *indices,
                              hdi_lowering *lowering, hd_error *error) {
    const bool all = indices == NULL, along = request->op == HDI_OP_TAKE_ALONG;
    const uint32_t form = all ? HDI_GATHER_ALL : along ? HDI_GATHER_ALONG : HDI_GATHER_ROWS;
    const hd_shape shape = table->shape;
    const uint64_t n = shape.rank == 0 ? 1 : (uint64_t)shape.dims[shape.rank - 1];
    const uint64_t count = hd_shape_elements(request->out.shape), rows = hd_shape_elements(shape) / n;
    /* On a CPU a group is a call: more words for each make fewer of them. */
    const uint32_t workgroup = request->caps->native_kernels ? 4096 : hdi_rows_workgroup(request->caps);
    const uint64_t asked_bytes = all ? 0 : hd_tensor_bytes(indices->dtype, indices->shape) +
        hd_dtype_bytes(table->dtype, count) + hd_tensor_bytes(request->out.dtype, request->out.shape);
    hdi_tensor books;
    const hd_status status = hdi_books_operand(request->caps, table->dtype, table, lowering, &books, error);
    if (status) return status;
    const hdi_rows_launch launch = { .module = HDI_MODULE_GATHER, .workgroup = workgroup,
                                     .inputs = { table, all ? table : indices, &books },
                                     .input_count = 3, .out = &request->out, .spec = { (uint32_t)table->dtype, form },
                                     .spec_count = 2,
                                     .push = { (uint32_t)rows, (uint32_t)n, (uint32_t)(count / (along ? rows : n)) },
                                     .push_count = 3, .rows = form == HDI_GATHER_ROWS ? 0 : rows,
                                     .shared = books.storage != table->storage ? 1u << 2 : 0,
                                     .groups = hdi_divide_up(hdi_divide_up(count * type_bytes(request->out.dtype), 4),
                                                             workgroup),
                                     .flops = count, .bytes = asked_bytes,
                                     .because = "an invocation for each word of the result" };
    return hdi_rows_add(request, &launch, lowering, error);
}

/* The rows that are in this slice of the table, as words, and zeros for all others. */
static hd_status gather_slice(const hdi_request *request, const hdi_tensor *slice, const hdi_tensor *indices,
                              uint32_t first, hdi_lowering *lowering, hdi_tensor *out_words, hd_error *error) {
    hdi_request of_slice = *request;
    hdi_tensor within, by = hdi_tensor_dense(lowering->constant(lowering->user, &first, sizeof first), HD_I32,
                                             indices->shape);
    if (by.storage == HDI_NO_INDEX) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a constant");
    memset(by.strides, 0, sizeof by.strides);
    const hdi_chain less = { .steps = { { HDI_STEP_SUB, 0, 1, HDI_SOURCE_NONE, HD_I32, 0 } }, .step_count = 1,
                             .inputs = { *indices, by }, .input_count = 2 };
    hd_status status = hdi_rows_temporary(lowering, HD_I32, indices->shape, &within, error);
    if (!status) status = hdi_rows_chain(request, &less, &within, lowering, error);
    if (!status)
        status = hdi_rows_temporary(lowering, request->out.dtype, request->out.shape, &of_slice.out, error);
    if (!status) status = lower_gather(&of_slice, slice, &within, lowering, error);
    const uint64_t bytes = hd_tensor_bytes(of_slice.out.dtype, of_slice.out.shape);
    *out_words = hdi_tensor_dense(of_slice.out.storage, HD_I32, HD_SHAPE((int64_t)(bytes / 4)));
    return status;
}

/* Rows of the table that a binding sees, where it does not see all; else 0. */
static uint64_t rows_at_once(const hdi_request *request, const hdi_tensor *table) {
    const uint64_t most = request->caps->max_binding_bytes, bytes = hd_tensor_bytes(table->dtype, table->shape);
    const bool words = hd_tensor_bytes(request->out.dtype, request->out.shape) % 4 == 0;
    if (most == 0 || bytes <= most || !words) return 0;
    return hdi_rows_at_once(request->caps, bytes / (uint64_t)table->shape.dims[0]);
}

/* Of a table that is more than a binding sees, `each` rows at a time: an index is in one of the slices, or in none. */
static hd_status gather_slices(const hdi_request *request, const hdi_tensor *table, const hdi_tensor *indices,
                               uint64_t each, hdi_lowering *lowering, hd_error *error) {
    const uint64_t rows = (uint64_t)table->shape.dims[0], n = row_elements(table);
    hdi_tensor words, so_far, joined;
    hd_status status = HD_OK;
    for (uint64_t at = 0; at < rows && !status; at += each) {
        hdi_tensor slice = *table;
        slice.shape.dims[0] = (int64_t)HDI_MIN(each, rows - at);
        slice.first += at * n;
        status = gather_slice(request, &slice, indices, (uint32_t)at, lowering, &words, error);
        if (at > 0 && !status) {
            const hdi_chain either = { .steps = { { HDI_STEP_BIT_OR, 0, 1, HDI_SOURCE_NONE, HD_I32, 0 } },
                                       .step_count = 1, .inputs = { so_far, words }, .input_count = 2 };
            status = hdi_rows_temporary(lowering, HD_I32, words.shape, &joined, error);
            if (!status) status = hdi_rows_chain(request, &either, &joined, lowering, error);
        }
        so_far = at > 0 ? joined : words;
    }
    hdi_tensor to = hdi_tensor_dense(request->out.storage, HD_I32, so_far.shape);
    to.first = hd_dtype_bytes(request->out.dtype, request->out.first) / 4;
    return status ? status : hdi_rows_copy(request, &so_far, &to, lowering, error);
}

static uint32_t scatter_code(hdi_op op) {
    switch (op) {
    case HDI_OP_SCATTER_MUL: return HDI_SCATTER_MUL;
    case HDI_OP_SCATTER_MAX: return HDI_SCATTER_MAX;
    case HDI_OP_SCATTER_MIN: return HDI_SCATTER_MIN;
    default:                 return HDI_SCATTER_ADD;
    }
}
static hd_status lower_scatter(const hdi_request *request, const hdi_tensor *operands, hdi_lowering *lowering,
                               hd_error *error) {
    enum { SEARCHED = 1024 }; /* indices that each row may look at itself */
    const uint32_t rows = hdi_rows_dim(&operands[0], 0), workgroup = hdi_rows_workgroup(request->caps);
    const uint64_t n = row_elements(&operands[0]), count = hd_shape_elements(operands[1].shape);
    const bool sorts = count > SEARCHED && !request->caps->native_kernels;
    const hdi_tensor *indices = &operands[1];
    hdi_tensor list;
    hdi_rows_launch launch = { .module = HDI_MODULE_SCATTER, .inputs = { indices, indices, indices }, .input_count = 3,
                               .spec = { scatter_code(request->op), (uint32_t)operands[0].dtype }, .spec_count = 3,
                               .push = { rows, (uint32_t)n, (uint32_t)count }, .push_count = 3 };
    if (sorts) {
        hd_status status =
            hdi_rows_temporary(lowering, HD_I32, HD_SHAPE((int64_t)count + 2 * (int64_t)rows), &list, error);
        launch.out = &list;
        launch.spec[2] = HDI_SCATTER_CLEAR;
        launch.groups = hdi_divide_up(2 * (uint64_t)rows, workgroup);
        launch.bytes = 8 * (uint64_t)rows;
        launch.because = "rows that no update names have none";
        if (!status) status = hdi_rows_add(request, &launch, lowering, error);
        launch.out_access = HDI_READ | HDI_WRITE;
        launch.spec[2] = HDI_SCATTER_SORT;
        launch.groups = hdi_divide_up(count, workgroup);
        launch.bytes = 8 * count;
        launch.because = "updates in the order of their rows, so that no row looks at those of others";
        if (!status) status = hdi_rows_add(request, &launch, lowering, error);
        if (status != HD_OK) return status;
    }
    launch.inputs[0] = &operands[0];
    launch.inputs[1] = sorts ? &list : indices;
    launch.inputs[2] = &operands[2];
    launch.out = &request->out;
    launch.out_access = 0;
    launch.spec[2] = sorts ? HDI_SCATTER_SORTED : HDI_SCATTER_SEARCH;
    launch.groups = rows * hdi_divide_up(n, workgroup);
    launch.flops = count * (sorts ? n : n + rows);
    launch.bytes = 0;
    launch.because = sorts ? "each workgroup takes its own row's updates in their order"
                           : "each workgroup looks for its own row's updates: their order is kept";
    return hdi_rows_add(request, &launch, lowering, error);
}

hd_status hdi_rows_write(const hdi_request *request, const hdi_tensor *rows, const hdi_tensor *position,
                         const hdi_tensor *pages, const hdi_rows_place *place, hdi_lowering *lowering,
                         hd_error *error) {
    const hdi_tensor *state = &request->out;
    if (pages && place->S * place->n > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "a sequence of more than 2^32 - 1 elements in pages");
    const bool blocks = hdi_dtype_is_quantised(state->dtype), native = request->caps->native_kernels != 0;
    const uint64_t bytes = hd_dtype_bytes(state->dtype, place->T * place->n);
    /* of a sequence: words, of which both edges may be shared */
    const uint64_t pieces = blocks ? place->T * place->n / HDI_WRITE_BLOCK : hdi_divide_up(bytes, 4) + 1;
    const uint32_t workgroup = !native ? hdi_rows_workgroup(request->caps) : blocks ? 64 : 4096;
    const uint32_t of_a_group = blocks && !native ? HDI_WRITE_BLOCKS : workgroup;
    const uint32_t page = pages ? hdi_rows_page(state) : 0;
    const uint64_t table_bytes = pages ? hd_tensor_bytes(pages->dtype, pages->shape) : 0;
    const uint64_t moved = hd_tensor_bytes(rows->dtype, rows->shape) + place->B * bytes;
    const hdi_rows_launch launch = { .module = HDI_MODULE_WRITE_ROWS, .workgroup = workgroup,
                                     .inputs = { rows, position, pages ? pages : rows }, .input_count = 3,
                                     .out = state, .out_access = HDI_READ | HDI_WRITE,
                                     .spec = { (uint32_t)state->dtype, (uint32_t)rows->dtype, page }, .spec_count = 3,
                                     .push = { (uint32_t)place->B, (uint32_t)place->T, (uint32_t)place->S,
                                               (uint32_t)place->n, (uint32_t)place->N }, .push_count = 5,
                                     .groups = place->B * hdi_divide_up(pieces, of_a_group),
                                     .bytes = hd_tensor_bytes(position->dtype, position->shape) + table_bytes + moved,
                                     .because = !blocks  ? "an invocation for each word written"
                                                : native ? "an invocation for each block written"
                                                         : "8 invocations for each block written" };
    return hdi_rows_add(request, &launch, lowering, error);
}

/* Operands: rows and position, and pages where the state is a pool of them; the result is the state itself, in
 * place. */
static hd_status lower_write(const hdi_request *request, const hdi_tensor *operands, hdi_lowering *lowering,
                             hd_error *error) {
    const hdi_tensor *pages = hdi_rows_has(request, 2) ? &operands[2] : NULL;
    const hdi_rows_place place = hdi_write_rows_place(request->out.shape, operands[0].shape, operands[1].shape,
                                                      pages ? &pages->shape : NULL);
    return hdi_rows_write(request, &operands[0], &operands[1], pages, &place, lowering, error);
}

hd_status hdi_lower_gather(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor operands[3];
    for (uint32_t i = 0; i < request->input_count && i < HDI_COUNT(operands); i++) {
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    switch (request->op) {
    case HDI_OP_GATHER: {
        const uint64_t each = rows_at_once(request, &operands[0]);
        if (each > 0) return gather_slices(request, &operands[0], &operands[1], each, lowering, error);
        return lower_gather(request, &operands[0], &operands[1], lowering, error);
    }
    case HDI_OP_TAKE_ALONG: return lower_gather(request, &operands[0], &operands[1], lowering, error);
    case HDI_OP_SCATTER_ADD: case HDI_OP_SCATTER_MUL: case HDI_OP_SCATTER_MAX: case HDI_OP_SCATTER_MIN:
        return lower_scatter(request, operands, lowering, error);
    case HDI_OP_WRITE_ROWS:  return lower_write(request, operands, lowering, error);
    /* cast of a quantised tensor */
    default:                 return lower_gather(request, &operands[0], NULL, lowering, error);
    }
}
