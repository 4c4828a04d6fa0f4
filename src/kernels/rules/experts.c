/* experts.c: lowers the product of rows with experts that they chose, which the matmul family's kernels make: its rows
 * by themselves, or in groups (matmul_groups.c). */
#include "kernels/rows.h"
#include "kernels/rules/matmul.h"

hd_status hdi_lower_experts(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor operands[4]; /* of a pair four */
    for (uint32_t i = 0; i < request->input_count && i < HDI_COUNT(operands); i++) {
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    return hdi_lower_groups(request, operands, lowering, error);
}
