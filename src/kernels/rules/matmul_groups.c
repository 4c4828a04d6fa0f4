/* matmul_groups.c: products of rows with matrices that they chose (matmul_experts), on a processor: the rows of each
 * matrix, in groups of a tile's rows, are batches of one product, which the matmul family's kernels make as any other.
 * Pure. */
#include "kernels/cpu/matmul_native.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

hd_status hdi_product_group(product *p, uint32_t rows, hdi_lowering *lowering, hd_error *error) {
    const hdi_request *request = p->request;
    const uint64_t experts = hdi_rows_dim(p->b.tensor, 0), scratch = 4 * experts;
    const uint64_t count = HDI_MIN(p->pairs, experts + p->pairs / rows);
    p->packed = p->pairs + count * (HDCPU_GROUP_LINES - 1);
    p->m = HDI_MIN(rows, p->pairs);
    p->batch = p->lengths[2] = count;
    if (p->packed > UINT32_MAX || p->pairs * p->n > UINT32_MAX || p->n * p->k > UINT32_MAX || scratch > UINT32_MAX ||
        HDI_MAX(p->a.first, p->b.first) > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "experts for %llu rows of %llu elements",
                        (unsigned long long)p->pairs, (unsigned long long)p->n);
    const hd_shape shape = HD_SHAPE((int64_t)(count * HDCPU_GROUP_WORDS + p->pairs));
    const hd_status status = hdi_rows_temporary(lowering, HD_I32, shape, &p->groups, error);
    const hdi_rows_launch launch = {
        .module = HDI_MODULE_EXPERTS, .workgroup = 1, .inputs = { p->chosen, &p->groups }, .input_count = 2,
        .written_from = 1, .out = &request->out, .out_access = HDI_READ | HDI_WRITE,
        .spec = { HDI_TYPE_I32, HDI_TYPE_F32 }, .spec_count = 2, /* as what it is judged: it reads no weights */
        .push = { (uint32_t)p->pairs, (uint32_t)experts, (uint32_t)p->n, rows, (uint32_t)count }, .push_count = 5,
        .groups = 1, .bytes = 4 * (2 * p->pairs + count * HDCPU_GROUP_WORDS), .scratch_bytes = (uint32_t)scratch,
        .because = "rows by the experts that they chose" };
    return status ? status : hdi_rows_add(request, &launch, lowering, error);
}

hd_status hdi_lower_groups(const hdi_request *request, const hdi_tensor *x, const hdi_tensor *w,
                           const hdi_tensor *chosen, hdi_lowering *lowering, hd_error *error) {
    static const hdi_attrs none;
    const uint64_t pairs = hd_shape_elements(chosen->shape), groups = HDI_MIN(pairs, hdi_rows_dim(w, 0));
    const uint64_t n = hdi_rows_dim(w, 1), k = hdi_rows_dim(w, 2);
    hdi_request plain = *request;
    plain.attrs = &none;
    product p = {
        .request = &plain, .type = x->dtype, .m = hdi_divide_up(pairs, groups), .most = pairs, .n = n, .k = k,
        .batch = groups, .lengths = { 1, x->shape.rank == 3 ? 1 : hdi_rows_dim(chosen, 1), groups },
        .a = { .tensor = x, .first = x->first, .line = k, .depth = 1, .along_k = true, .wide = true },
        .b = { .tensor = w, .first = w->first, .line = k, .depth = 1, .batch = { 0, 0, n * k }, .along_k = true,
               .wide = true },
        .chosen = chosen, .pairs = pairs };
    const hd_status status = hdi_product_lower(&p, NULL, lowering, error);
    if (status) return status;
    hdi_launch *launch = &lowering->launches[lowering->count - 1];
    launch->flops = 2 * pairs * n * k;
    launch->bytes = groups * hd_tensor_bytes(w->dtype, w->shape) / hdi_rows_dim(w, 0) +
                    hd_tensor_bytes(x->dtype, x->shape) + hd_tensor_bytes(request->out.dtype, request->out.shape);
    return HD_OK;
}
