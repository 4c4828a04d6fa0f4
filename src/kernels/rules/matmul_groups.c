/* matmul_groups.c: products of rows with matrices that they chose (matmul_experts): the rows of each matrix, in groups
 * of a tile's rows, are batches of one product, which the matmul family's kernels make as any other. Where a GPU has
 * so few rows that they seldom share a matrix, each row is a batch. Pure. */
#include "kernels/cpu/matmul_native.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

/* How many groups there are, whatever rows choose. A GPU fills them side by side, and has one more choice: nobody
 * (experts.comp). */
static uint64_t groups_of(const product *p, uint64_t rows) {
    if (p->request->caps->native_kernels) return HDI_MIN(p->pairs, p->experts + p->pairs / rows);
    return p->pairs / rows + p->experts + 1;
}

hd_status hdi_product_group(product *p, uint32_t rows, hdi_lowering *lowering, hd_error *error) {
    const hdi_request *request = p->request;
    const bool native = request->caps->native_kernels != 0;
    const uint64_t count = groups_of(p, rows), scratch = native ? 4 * p->experts : 0;
    p->packed = p->pairs + count * (HDCPU_GROUP_LINES - 1);
    p->m = HDI_MIN(rows, p->pairs);
    p->batch = p->lengths[2] = count;
    if (p->packed > UINT32_MAX || scratch > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "%llu rows in groups by experts", (unsigned long long)p->pairs);
    const hd_shape shape = HD_SHAPE((int64_t)(count * HDI_GROUP_WORDS + p->pairs));
    const hd_status status = hdi_rows_temporary(lowering, HD_I32, shape, &p->groups, error);
    /* A GPU's form is the same for all products of the same choice: the plan makes one of it. */
    const hdi_rows_launch launch = {
        .module = HDI_MODULE_EXPERTS, .workgroup = native ? 1 : 0, .inputs = { p->chosen, &p->groups },
        .input_count = native ? 2 : 1, .written_from = native ? 1 : 0, .out = native ? &request->out : &p->groups,
        .out_access = native ? HDI_READ | HDI_WRITE : HDI_WRITE,
        .spec = { HDI_TYPE_I32, HDI_TYPE_F32 }, .spec_count = 2, /* as what it is judged: it reads no weights */
        .push = { (uint32_t)p->pairs, (uint32_t)p->experts, rows, (uint32_t)count, (uint32_t)p->n },
        .push_count = native ? 5 : 4, .groups = native ? 1 : p->experts + 1,
        .bytes = 4 * (2 * p->pairs + count * HDI_GROUP_WORDS), .scratch_bytes = (uint32_t)scratch,
        .because = "rows by the experts that they chose" };
    return status ? status : hdi_rows_add(request, &launch, lowering, error);
}

/* Words of kernels are 32 bits. */
static hd_status check(const product *p, hd_error *error) {
    const bool native = p->request->caps->native_kernels != 0;
    const uint64_t a = p->a.first + (native ? 0 : hdi_product_rows(p) * p->k);
    const uint64_t b = p->b.first + (native ? 0 : p->experts * p->n * p->k);
    if (!native && p->request->caps->max_bindings < BINDINGS)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a product with experts needs %d bindings", BINDINGS);
    if (p->pairs * p->n > UINT32_MAX || p->n * p->k > UINT32_MAX || a > UINT32_MAX || b > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "experts for %llu rows of %llu elements",
                        (unsigned long long)p->pairs, (unsigned long long)p->n);
    return HD_OK;
}

hd_status hdi_lower_groups(const hdi_request *request, const hdi_tensor *x, const hdi_tensor *w,
                           const hdi_tensor *chosen, hdi_lowering *lowering, hd_error *error) {
    enum { FEW_USUAL = FEW_ROWS / 2 }; /* rows of a matrix, of which a tile of few rows has room for twice as many */
    static const hdi_attrs along_k = { .ints = { HD_TRANSPOSE_B } };
    const bool native = request->caps->native_kernels != 0;
    const uint64_t experts = hdi_rows_dim(w, 0), n = hdi_rows_dim(w, 1), k = hdi_rows_dim(w, 2);
    const uint64_t pairs = hd_shape_elements(chosen->shape), share = x->shape.rank == 3 ? 1 : hdi_rows_dim(chosen, 1);
    const bool single = !native && pairs <= HDI_MAX(experts, FEW_ROWS);
    const uint64_t groups = single ? pairs : HDI_MIN(pairs, experts), usual = hdi_divide_up(pairs, groups);
    hdi_request plain = *request;
    plain.attrs = &along_k;
    const uint64_t m = native || single ? usual : usual <= FEW_USUAL ? 2 * usual : HDI_MAX(usual, FEW_ROWS + 1);
    product p = {
        .request = &plain, .type = x->dtype, .m = m,
        .most = pairs, .n = n, .k = k, .batch = groups, .lengths = { 1, share, groups },
        .a = { .tensor = x, .first = x->first, .line = k, .depth = 1 },
        .b = { .tensor = w, .first = w->first, .line = k, .depth = 1, .batch = { 0, 0, n * k } },
        .chosen = chosen, .single = single, .pairs = pairs, .experts = experts, .groups = *chosen };
    hdi_product_finish_side(&p.a, pairs, k);
    hdi_product_finish_side(&p.b, n, k);
    hd_status status = check(&p, error);
    if (single && chosen->first != 0 && !status) { /* kernels know of no first choice */
        status = hdi_rows_temporary(lowering, chosen->dtype, chosen->shape, &p.groups, error);
        if (!status) status = hdi_rows_copy(request, chosen, &p.groups, lowering, error);
    }
    if (!status) status = hdi_product_lower(&p, NULL, lowering, error);
    if (status) return status;
    hdi_launch *launch = &lowering->launches[lowering->count - 1];
    launch->flops = 2 * pairs * n * k;
    launch->bytes = HDI_MIN(pairs, experts) * (hd_tensor_bytes(w->dtype, w->shape) / experts) +
                    hd_tensor_bytes(x->dtype, x->shape) + hd_tensor_bytes(chosen->dtype, chosen->shape) +
                    hd_tensor_bytes(request->out.dtype, request->out.shape);
    return HD_OK;
}
