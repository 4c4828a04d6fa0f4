/* matmul_library.c: a matrix product as one call of the device's library (cmds/library.h), with memory for it to work
 * in, and the chain behind it. Pure. */
#include "cmds/library.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

/* What is added to the product: a matrix like it, and a row that is added to each of its rows; NULL: none. */
typedef struct addends { const hdi_tensor *matrix, *row; } addends;

/* Takes a source of the chain as one of them. */
static bool take(const product *p, const source *s, addends *out) {
    const uint64_t align = HDI_MAX(p->request->caps->binding_align, (uint64_t)HDI_PRODUCT_ALIGN);
    if (s->tensor->dtype != p->type || s->n != 1) return false;
    const bool row = s->m == 0 && (p->batch == 1 || s->batch == 0) &&
                     hd_dtype_bytes(p->type, s->tensor->first) % align == 0;
    const bool matrix = s->m == p->n && (p->batch == 1 || s->batch == p->m * p->n) && s->tensor->first == 0;
    const hdi_tensor **const place = row ? &out->row : &out->matrix;
    if ((!row && !matrix) || *place) return false;
    *place = s->tensor;
    return true;
}

/* Where what is added is all of the product's chain, and the library can do it. */
static addends addends_of(const product *p) {
    const hdi_chain *chain = p->request->chain;
    const addends none = { NULL, NULL };
    addends all = none;
    if (!chain || (p->type != HD_F32 && p->type != HD_BF16) || p->request->out.dtype != p->type) return none;
    for (uint32_t i = 0; i < chain->step_count; i++) {
        const hdi_step *step = &chain->steps[i];
        const uint32_t sum = i ? HDI_CHAIN_INPUTS + i - 1 : 0, other = step->a == sum ? step->b : step->a;
        if (step->code != HDI_STEP_ADD || step->type != p->type || (step->a != sum && step->b != sum)) return none;
        if (other == 0 || other > p->source_count || !take(p, &p->sources[other - 1], &all)) return none;
    }
    return all;
}

static void bind_row(hdi_launch *launch, const hdi_tensor *row) {
    hdi_tensor whole = *row;
    hdi_use *use = &launch->uses[launch->kernel.binding_count];
    whole.first = 0;
    hdi_launch_bind(launch, &whole, HDI_READ);
    use->offset += hd_dtype_bytes(row->dtype, row->first);
}

hd_status hdi_product_launch_library(const product *p, const char *because, uint32_t option, hdi_lowering *lowering,
                                     hd_error *error) {
    enum { WORKSPACE_BYTES = 32 << 20 }; /* what the makers of cuBLASLt advise for their newest devices */
    const addends added = addends_of(p);
    const bool chained = p->request->chain && !added.matrix && !added.row;
    hdi_tensor out = p->request->out, workspace;
    hd_status status = hdi_rows_temporary(lowering, HD_U8, HD_SHAPE(WORKSPACE_BYTES), &workspace, error);
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n);
    if (!status && chained) status = hdi_rows_temporary(lowering, p->type, shape, &out, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    const uint64_t constants[HDI_PRODUCT_CONSTANTS] = {
        [HDI_PRODUCT_A_TYPE] = p->a.tensor->dtype, [HDI_PRODUCT_B_TYPE] = p->b.tensor->dtype,
        [HDI_PRODUCT_OUT_TYPE] = out.dtype, [HDI_PRODUCT_M] = p->m, [HDI_PRODUCT_N] = p->n, [HDI_PRODUCT_K] = p->k,
        [HDI_PRODUCT_A_ALONG_K] = p->a.along_k, [HDI_PRODUCT_A_LINE] = p->a.along_k ? p->a.line : p->a.depth,
        [HDI_PRODUCT_B_ALONG_K] = p->b.along_k, [HDI_PRODUCT_B_LINE] = p->b.along_k ? p->b.line : p->b.depth,
        [HDI_PRODUCT_A_FIRST] = p->a.first, [HDI_PRODUCT_A_BATCH] = p->a.batch[BATCH_AXES - 1],
        [HDI_PRODUCT_B_FIRST] = p->b.first, [HDI_PRODUCT_B_BATCH] = p->b.batch[BATCH_AXES - 1],
        [HDI_PRODUCT_BATCH] = p->batch, [HDI_PRODUCT_WORKSPACE] = WORKSPACE_BYTES,
        [HDI_PRODUCT_ADDS] = (added.matrix ? HDI_PRODUCT_ADDS_MATRIX : 0u) | (added.row ? HDI_PRODUCT_ADDS_ROW : 0u) };
    launch->kernel = (hdi_kernel){ .module = HDI_MODULE_MATMUL_LIBRARY, .spec_count = HDI_PRODUCT_CONSTANTS };
    for (uint32_t i = 0; i < HDI_PRODUCT_CONSTANTS; i++) launch->kernel.spec[i] = (uint32_t)constants[i];
    hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    hdi_launch_bind(launch, p->b.tensor, HDI_READ);
    hdi_launch_bind(launch, &out, HDI_WRITE);
    hdi_launch_bind(launch, &workspace, HDI_READ | HDI_WRITE);
    hdi_launch_bind(launch, added.matrix ? added.matrix : p->a.tensor, HDI_READ);
    if (added.row) bind_row(launch, added.row);
    else hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    for (int i = 0; i < 3; i++) launch->groups[i] = 1;
    launch->flops = 2 * p->batch * p->m * p->n * p->k;
    launch->bytes = hdi_product_side_bytes(p, &p->a, p->m) + hdi_product_side_bytes(p, &p->b, p->n) +
                    hd_tensor_bytes(out.dtype, out.shape) * (added.matrix ? 2 : 1) +
                    (added.row ? hd_dtype_bytes(p->type, p->n) : 0);
    launch->because = because;
    launch->option = option;
    return chained ? hdi_product_launch_chain(p, 1, &out, lowering, error) : HD_OK;
}
