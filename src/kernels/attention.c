/* attention.c: lowers attention. Query rows that share a key head share a workgroup, as many as pays off and as shared
 * memory holds; that does not change a bit of the result. */
#include "kernels/rows.h"
#include <math.h>

#define MOST_WIDTH 256u
#define MOST_ROWS  8u
#define MOST_NATIVE_ROWS 32u /* of a processor, whose caches hold them all */

/* Shared memory of attention.comp. */
static uint64_t shared_bytes(uint32_t rows, uint32_t width) {
    const uint64_t a_row = 2 * (uint64_t)width + HDI_ATTENTION_TILE * (width / HDI_MM_BLOCK) + 2 * HDI_ATTENTION_TILE + 4;
    return 4 * (rows * a_row + 256);
}

/* Query rows of a workgroup. A GPU is filled first: sharing begins once every unit has work. */
static uint32_t rows_of(const hdi_caps *caps, uint64_t row_count, uint64_t row_groups, uint32_t width) {
    if (caps->native_kernels) return (uint32_t)HDI_MIN(row_count, MOST_NATIVE_ROWS);
    const uint64_t room = caps->shared_bytes == 0 ? 16384 : caps->shared_bytes;
    const uint64_t wanted = 4 * (caps->compute_units == 0 ? 16 : caps->compute_units);
    uint32_t rows = 1;
    while (2 * rows <= MOST_ROWS && rows < row_count && row_count * row_groups >= 2 * rows * wanted &&
           shared_bytes(2 * rows, width) <= room) rows *= 2;
    return rows;
}

hd_status hdi_lower_attention(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const bool has_past = hdi_rows_has(request, 3);
    hdi_tensor operands[4];
    for (uint32_t i = 0; i < 4; i++) {
        operands[i] = operands[0];
        if (i == 3 && !has_past) break;
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    const hdi_tensor *q = &operands[0], *k = &operands[1];
    const uint32_t batch_axis = q->shape.rank - 3, B = batch_axis == 0 ? 1 : hdi_rows_dim(q, 0), T = hdi_rows_dim(q, batch_axis),
                   Hq = hdi_rows_dim(q, batch_axis + 1), D = hdi_rows_dim(q, batch_axis + 2), S = hdi_rows_dim(k, batch_axis),
                   Hkv = hdi_rows_dim(k, batch_axis + 1);
    if (D > MOST_WIDTH) return hdi_fail(error, HD_STATUS_LIMIT, "attention over heads of %u elements; at most %u", D, MOST_WIDTH);
    if (Hkv == 0 || Hq % Hkv != 0 || T > INT32_MAX / 2 || S > INT32_MAX / 2)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention of %u heads over %u", Hq, Hkv);
    if (has_past && hd_shape_elements(operands[3].shape) < B) return hdi_fail(error, HD_STATUS_SHAPE, "attention's past is not [%u]", B);
    const uint32_t width = (D + HDI_MM_BLOCK - 1) / HDI_MM_BLOCK * HDI_MM_BLOCK;
    const uint64_t row_count = (uint64_t)T * (Hq / Hkv), row_groups = (uint64_t)B * Hkv;
    const uint32_t rows = rows_of(request->caps, row_count, row_groups, width);
    const float scale = request->attrs->floats[0] == 0.0f ? (float)(1.0 / sqrt((double)D)) : request->attrs->floats[0];
    const bool causal = request->attrs->ints[0] == 0;
    const hdi_rows_launch launch = {
        .module = HDI_MODULE_ATTENTION, .workgroup = HDI_MIN(128, hdi_rows_workgroup(request->caps)),
        .inputs = { q, k, &operands[2], &operands[3] }, .input_count = 4, .out = &request->out,
        .spec = { (uint32_t)q->dtype, (uint32_t)k->dtype, causal, has_past, rows, width }, .spec_count = 6,
        .push = { B, T, S, Hq, Hkv, D, hdi_rows_float_bits(scale) }, .push_count = 7,
        .groups = row_groups * hdi_divide_up(row_count, rows), .flops = 4 * row_count * row_groups * S * D,
        .scratch_bytes = 4 * (2 * rows * width + 3 * HDI_ATTENTION_TILE * width + rows * HDI_ATTENTION_TILE + 3 * rows),
        .because = rows > 1 ? "one pass over the keys, read once for several query rows" : "one pass over the keys for each query row" };
    return hdi_rows_add(request, &launch, lowering, error);
}
