/* top_k.c: lowers top_k, along the last axis. Parts of a long row give their own best, and these are merged: two
 * launches for a row of a million. */
#include "kernels/rows.h"

_Static_assert(HD_MAX_TOP_K - 1 + HDI_TOP_K_MOST / HDI_TOP_K_DIGITS <= HDI_TOP_K_KEPT,
               "there is room for all at or above the cut");

/* So many bits less and a position in a part is a digit. */
static uint32_t shift_of(uint64_t part) {
    uint32_t shift = 0;
    while ((part - 1) >> shift >= HDI_TOP_K_DIGITS) shift++;
    return shift;
}

hd_status hdi_lower_top_k(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor from;
    hd_status status = hdi_rows_dense(request, &request->inputs[0], lowering, &from, error);
    if (status != HD_OK) return status;
    const hdi_caps *caps = request->caps;
    const uint64_t k = (uint64_t)request->attrs->ints[0], elements = hd_shape_elements(from.shape);
    const uint32_t type = (uint32_t)from.dtype;
    uint64_t n = (uint64_t)from.shape.dims[from.shape.rank - 1];
    const uint64_t rows = elements / n;
    uint64_t whole = rows < caps->compute_units ? HDI_TOP_K_WHOLE : HDI_TOP_K_MOST, part = HDI_TOP_K_PART;
    /* A CPU goes over a row once and puts what is better than its list into it: the longer the row, the fewer elements
     * are. */
    if (caps->native_kernels) whole = 4 * HDI_TOP_K_MOST, part = HDI_TOP_K_MOST;
    hdi_rows_launch launch = { .module = HDI_MODULE_TOP_K, .inputs = { &from }, .input_count = 1, .out = &request->out,
                               .spec = { type, 0 }, .spec_count = 2, .push_count = 6, .rows = rows, .flops = elements };
    for (; n > whole; launch.spec[1] = 2) {
        const uint64_t parts = hdi_divide_up(n, part);
        hdi_tensor pairs;
        status = hdi_rows_temporary(lowering, HD_I32, HD_SHAPE((int64_t)rows, (int64_t)(parts * k), 2), &pairs, error);
        if (status != HD_OK) return status;
        const uint32_t push[] = { (uint32_t)rows,  (uint32_t)n,    (uint32_t)k,
                                  (uint32_t)parts, (uint32_t)part, shift_of(part) };
        memcpy(launch.push, push, sizeof push);
        launch.out = &pairs;
        launch.spec[1] |= 1;
        launch.groups = rows * parts;
        launch.because = "a workgroup for each part of a long row";
        status = hdi_rows_add(request, &launch, lowering, error);
        if (status != HD_OK) return status;
        from = pairs;
        n = parts * k;
        launch.flops = rows * n;
    }
    const uint32_t push[] = { (uint32_t)rows, (uint32_t)n, (uint32_t)k, 1, (uint32_t)n, shift_of(n) };
    memcpy(launch.push, push, sizeof push);
    launch.out = &request->out;
    launch.groups = rows;
    launch.because = launch.spec[1] ? "joins the best of the parts" : "a workgroup for each row";
    return hdi_rows_add(request, &launch, lowering, error);
}
