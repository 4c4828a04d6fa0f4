/* random.c: lowers random words. */
#include "kernels/rows.h"

hd_status hdi_lower_random(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint64_t count = hd_shape_elements(request->out.shape);
    const uint32_t workgroup = request->caps->native_kernels ? 4096 : hdi_rows_workgroup(request->caps);
    hdi_tensor key;
    const hd_status status = hdi_rows_dense(request, &request->inputs[0], lowering, &key, error);
    if (status) return status;
    const hdi_rows_launch launch = { .module = HDI_MODULE_RANDOM, .workgroup = workgroup, .inputs = { &key },
                                     .input_count = 1,
                                     .out = &request->out,
                                     .push = { (uint32_t)count, (uint32_t)request->attrs->ints[0] }, .push_count = 2,
                                     .groups = hdi_divide_up(hdi_divide_up(count, 4), workgroup), .flops = 20 * count,
                                     .because = "an invocation for each four words of the result" };
    return hdi_rows_add(request, &launch, lowering, error);
}
