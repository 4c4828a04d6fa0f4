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
        .input_count = native ? 2 : 1, .written = native ? 1u << 1 : 0, .out = native ? &request->out : &p->groups,
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

/* @param operands x, w, chosen, and of a pair the second w
 * @param plain, inputs the product of two operands, or of a pair three, that `out` is of */
static void read_groups(const hdi_request *request, const hdi_tensor *operands, hdi_request *plain, hdi_tensor *inputs,
                        product *out) {
    enum { FEW_USUAL = FEW_ROWS / 2 }; /* rows of a matrix, of which a tile of few rows has room for twice as many */
    static const hdi_attrs along_k = { .ints = { HD_TRANSPOSE_B } };
    const hdi_tensor *x = &operands[0], *w = &operands[1], *chosen = &operands[2];
    const bool native = request->caps->native_kernels != 0;
    const uint64_t experts = hdi_rows_dim(w, 0), n = hdi_rows_dim(w, 1), k = hdi_rows_dim(w, 2);
    const uint64_t pairs = hd_shape_elements(chosen->shape), share = x->shape.rank == 3 ? 1 : hdi_rows_dim(chosen, 1);
    const bool single = !native && pairs <= HDI_MAX(experts, FEW_ROWS);
    const uint64_t groups = single ? pairs : HDI_MIN(pairs, experts), usual = hdi_divide_up(pairs, groups);
    inputs[0] = *x;
    inputs[1] = *w;
    if (request->pair) inputs[2] = operands[3];
    *plain = *request;
    plain->attrs = &along_k;
    plain->inputs = inputs;
    plain->input_count = request->pair ? 3 : 2;
    const uint64_t m = native || single ? usual : usual <= FEW_USUAL ? 2 * usual : HDI_MAX(usual, FEW_ROWS + 1);
    *out = (product){
        .request = plain, .type = x->dtype, .m = m,
        .most = pairs, .n = n, .k = k, .batch = groups, .lengths = { 1, share, groups },
        .a = { .tensor = &inputs[0], .first = x->first, .line = k, .depth = 1 },
        .b = { .tensor = &inputs[1], .first = w->first, .line = k, .depth = 1, .batch = { 0, 0, n * k } },
        .source_count = request->chain ? request->chain->input_count - 1 : 0,
        .chosen = chosen, .single = single, .pairs = pairs, .experts = experts, .groups = *chosen };
    for (uint32_t i = 0; i < out->source_count; i++)
        out->sources[i] = (source){ .tensor = &request->chain->inputs[i + 1] };
    hdi_product_finish_side(&out->a, pairs, k);
    hdi_product_finish_side(&out->b, n, k);
}

/* Of a chain's sources only a pair's is there: the others' bindings have what was chosen. */
bool hdi_groups_fit(const hdi_request *request) {
    hdi_request plain;
    hdi_tensor inputs[3];
    product p;
    for (uint32_t i = 0; i < 3; i++)
        if (!hdi_tensor_is_dense(&request->inputs[i])) return false;
    read_groups(request, request->inputs, &plain, inputs, &p);
    return p.m <= FEW_ROWS && p.source_count == request->pair && !check(&p, NULL) && hdi_product_fits(&p);
}

hd_status hdi_lower_groups(const hdi_request *request, const hdi_tensor *operands, hdi_lowering *lowering,
                           hd_error *error) {
    hdi_request plain;
    hdi_tensor inputs[3];
    product p;
    read_groups(request, operands, &plain, inputs, &p);
    const hdi_tensor *x = p.a.tensor, *w = p.b.tensor, *chosen = p.chosen;
    hd_status status = check(&p, error);
    if (p.single && chosen->first != 0 && !status) { /* kernels know of no first choice */
        status = hdi_rows_temporary(lowering, chosen->dtype, chosen->shape, &p.groups, error);
        if (!status) status = hdi_rows_copy(request, chosen, &p.groups, lowering, error);
    }
    if (!status) status = hdi_product_lower(&p, NULL, lowering, error);
    if (status) return status;
    const uint64_t products = request->pair ? 2 : 1;
    hdi_launch *launch = &lowering->launches[lowering->count - 1];
    launch->flops = 2 * products * p.pairs * p.n * p.k;
    launch->bytes = products * HDI_MIN(p.pairs, p.experts) * (hd_tensor_bytes(w->dtype, w->shape) / p.experts) +
                    hd_tensor_bytes(x->dtype, x->shape) + hd_tensor_bytes(chosen->dtype, chosen->shape) +
                    hd_tensor_bytes(request->out.dtype, request->out.shape);
    return HD_OK;
}
