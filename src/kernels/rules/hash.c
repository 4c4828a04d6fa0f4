/* hash.c: lowers digests: of pieces of bytes, then of as many bytes of these digests, until one is left. */
#include "kernels/hash.h"
#include "kernels/rows.h"

hd_status hdi_lower_hash(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const uint32_t workgroup = request->caps->native_kernels ? 16 : 64; /* a piece takes long, and few are enough */
    hdi_tensor x, y;
    hd_status status = hdi_rows_dense(request, &request->inputs[0], lowering, &x, error);
    uint64_t bytes = status ? 0 : hd_tensor_bytes(x.dtype, x.shape);
    for (uint32_t digests = 0; !status && (digests == 0 || bytes > 32); digests = 1) {
        const uint64_t pieces = hdi_divide_up(bytes, HDI_HASH_PIECE);
        if (pieces == 1) y = request->out;
        else status = hdi_rows_temporary(lowering, HD_I32, HD_SHAPE((int64_t)pieces, 8), &y, error);
        if (status) return status;
        const hdi_rows_launch launch = { .module = HDI_MODULE_HASH, .workgroup = workgroup, .inputs = { &x },
                                         .input_count = 1, .out = &y,
                                         .push = { (uint32_t)bytes, (uint32_t)pieces, digests }, .push_count = 3,
                                         .groups = hdi_divide_up(pieces, workgroup), .flops = 25 * bytes,
                                         .because = digests ? "digests of digests" : "an invocation for each piece" };
        status = hdi_rows_add(request, &launch, lowering, error);
        x = y;
        bytes = 32 * pieces;
    }
    return status;
}
