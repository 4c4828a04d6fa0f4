/* experts.c: lowers the product of rows with experts that they chose: a workgroup for each expert and some of its
 * columns; on a processor, groups of rows that chose one (matmul_groups.c). */
#include "kernels/books.h"
#include "kernels/rows.h"
#include "kernels/rules/matmul.h"

#define MOST_SLOTS 32u /* lanes that share a column */

hd_status hdi_lower_experts(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor operands[3];
    for (uint32_t i = 0; i < HDI_COUNT(operands); i++) {
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    const hdi_tensor *x = &operands[0], *w = &operands[1], *chosen = &operands[2];
    const uint32_t E = hdi_rows_dim(w, 0), N = hdi_rows_dim(w, 1), K = hdi_rows_dim(w, 2), U = hdi_rows_dim(chosen, 1);
    const uint64_t pairs = hd_shape_elements(chosen->shape), elements = pairs * N;
    if (request->caps->native_kernels) return hdi_lower_groups(request, x, w, chosen, lowering, error);
    const uint32_t workgroup = HDI_MIN(256, hdi_rows_workgroup(request->caps));
    uint32_t slots = 1;
    while (slots < MOST_SLOTS && slots < workgroup && slots * HDI_MM_BLOCK < K) slots *= 2;
    const uint32_t columns = workgroup / slots;
    if (pairs > UINT32_MAX) return hdi_fail(error, HD_STATUS_LIMIT, "experts for more than 2^32 - 1 rows");
    hdi_tensor books;
    const hd_status status = hdi_books_operand(request->caps, w->dtype, w, lowering, &books, error);
    if (status) return status;
    const uint64_t read = HDI_MIN(pairs, E) * (hd_tensor_bytes(w->dtype, w->shape) / E);
    const hdi_rows_launch launch = {
        .module = HDI_MODULE_EXPERTS, .workgroup = workgroup, .inputs = { x, w, chosen, &books },
        .input_count = 4,
        .out = &request->out, .spec = { (uint32_t)x->dtype, (uint32_t)w->dtype, columns }, .spec_count = 3,
        .push = { (uint32_t)pairs, x->shape.rank == 3 ? 1 : U, E, N, K }, .push_count = 5,
        .groups = E * hdi_divide_up(N, columns), .flops = 2 * elements * K,
        .bytes = read + hd_tensor_bytes(x->dtype, x->shape) + hd_tensor_bytes(chosen->dtype, chosen->shape) +
                 hd_tensor_bytes(request->out.dtype, request->out.shape),
        .because = "each expert's weights are read for the rows that chose it" };
    return hdi_rows_add(request, &launch, lowering, error);
}
