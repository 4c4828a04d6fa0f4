/* matmul_slices.c: a product with a matrix that is more than a binding sees, some columns of the result at a time. */
#include "kernels/rows.h"
#include "kernels/rules/matmul.h"

static bool uses_storage(const hdi_request *request, uint32_t storage) {
    bool uses = request->inputs[0].storage == storage || request->out.storage == storage;
    for (uint32_t i = 1; request->chain && i < request->chain->input_count; i++)
        uses = uses || request->chain->inputs[i].storage == storage;
    return uses;
}

uint64_t hdi_product_columns_at_once(const hdi_request *request) {
    const hdi_tensor *b = &request->inputs[1];
    const uint64_t flags = request->attrs ? (uint64_t)request->attrs->ints[0] : 0;
    const uint64_t most = request->caps->max_binding_bytes, bytes = hd_tensor_bytes(b->dtype, b->shape);
    if (most == 0 || bytes <= most || !(flags & HD_TRANSPOSE_B) || b->shape.rank != 2) return 0;
    for (uint32_t i = 1; i <= (request->pair ? 2u : 1u); i++)
        if (!hdi_tensor_is_dense(&request->inputs[i]) || request->inputs[i].first != 0 ||
            uses_storage(request, request->inputs[i].storage))
            return 0;
    if (request->pair && request->inputs[2].storage == b->storage) return 0;
    return hdi_rows_at_once(request->caps, bytes / (uint64_t)b->shape.dims[0]);
}

/* The columns of a view of the result's shape, from `at` on. */
static hdi_tensor columns_of(const hdi_tensor *tensor, uint64_t at, uint64_t count) {
    const uint32_t last = tensor->shape.rank - 1;
    hdi_tensor view = *tensor;
    view.shape.dims[last] = (int64_t)count;
    view.first += at * (uint64_t)view.strides[last];
    return view;
}

static hd_status add_columns(const hdi_request *request, uint64_t at, uint64_t count, hdi_lowering *lowering,
                             hd_error *error) {
    const uint64_t row_bytes = hd_dtype_bytes(request->inputs[1].dtype, (uint64_t)request->inputs[1].shape.dims[1]);
    const hdi_tensor to = columns_of(&request->out, at, count);
    const uint32_t first = lowering->count, matrices = request->pair ? 2 : 1;
    hdi_tensor inputs[3];
    hdi_chain chain;
    hdi_request slice = *request;
    for (uint32_t i = 0; i < request->input_count && i < HDI_COUNT(inputs); i++) inputs[i] = request->inputs[i];
    for (uint32_t i = 1; i <= matrices; i++) inputs[i].shape.dims[0] = (int64_t)count;
    if (request->chain) chain = *request->chain;
    for (uint32_t i = 1; request->chain && i < chain.input_count; i++)
        chain.inputs[i] = columns_of(&chain.inputs[i], at, count);
    slice.inputs = inputs;
    slice.chain = request->chain ? &chain : NULL;
    hd_status status = hdi_rows_temporary(lowering, to.dtype, to.shape, &slice.out, error);
    if (!status) status = hdi_lower_matmul(&slice, lowering, error);
    /* a product's kernels are bound to a matrix from its beginning on */
    for (uint32_t i = first; i < lowering->count; i++)
        for (uint32_t u = 0; u < lowering->launches[i].kernel.binding_count; u++)
            for (uint32_t k = 1; k <= matrices; k++)
                if (lowering->launches[i].uses[u].storage == inputs[k].storage)
                    lowering->launches[i].uses[u].offset += at * row_bytes;
    return status ? status : hdi_rows_copy(request, &slice.out, &to, lowering, error);
}

hd_status hdi_product_lower_slices(const hdi_request *request, uint64_t columns, hdi_lowering *lowering,
                                   hd_error *error) {
    const uint64_t n = (uint64_t)request->inputs[1].shape.dims[0];
    hd_status status = HD_OK;
    for (uint64_t at = 0; at < n && !status; at += columns)
        status = add_columns(request, at, HDI_MIN(columns, n - at), lowering, error);
    return status;
}
