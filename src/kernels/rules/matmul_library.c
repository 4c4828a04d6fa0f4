/* matmul_library.c: a matrix product as one call of the device's library (cmds/library.h), with memory for it to work
 * in, and the chain behind it. Pure. */
#include "cmds/library.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

/* What is added to each element of the product, where that is all of its chain and the library can do it; else NULL. */
static const hdi_tensor *addend_of(const product *p) {
    const hdi_chain *chain = p->request->chain;
    const hdi_step *add = chain && p->source_count == 1 ? &chain->steps[0] : NULL;
    const source *s = &p->sources[0];
    if (!add || chain->step_count != 1 || add->code != HDI_STEP_ADD || add->a + add->b != 1 || add->type != HD_F32)
        return NULL;
    if (p->type != HD_F32 || p->request->out.dtype != HD_F32 || s->tensor->dtype != HD_F32) return NULL;
    if (s->n != 1 || s->m != p->n || (p->batch > 1 && s->batch != p->m * p->n) || s->tensor->first != 0) return NULL;
    return s->tensor;
}

hd_status hdi_product_launch_library(const product *p, const char *because, uint32_t option, hdi_lowering *lowering,
                                     hd_error *error) {
    enum { WORKSPACE_BYTES = 32 << 20 }; /* what the makers of cuBLASLt advise for their newest devices */
    const hdi_tensor *addend = addend_of(p);
    const bool chained = p->request->chain && !addend;
    hdi_tensor out = p->request->out, workspace;
    hd_status status = hdi_rows_temporary(lowering, HD_U8, HD_SHAPE(WORKSPACE_BYTES), &workspace, error);
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n);
    if (!status && chained) status = hdi_rows_temporary(lowering, p->type, shape, &out, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    const uint64_t constants[HDI_PRODUCT_CONSTANTS] = {
        [HDI_PRODUCT_A_TYPE] = p->a.tensor->dtype, [HDI_PRODUCT_B_TYPE] = p->b.tensor->dtype,
        [HDI_PRODUCT_OUT_TYPE] = out.dtype, [HDI_PRODUCT_M] = p->m, [HDI_PRODUCT_N] = p->n, [HDI_PRODUCT_K] = p->k,
        [HDI_PRODUCT_A_ALONG_K] = p->a.along_k, [HDI_PRODUCT_A_LINE] = p->a.along_k ? p->a.line : p->a.depth,
        [HDI_PRODUCT_B_ALONG_K] = p->b.along_k, [HDI_PRODUCT_B_LINE] = p->b.along_k ? p->b.line : p->b.depth,
        [HDI_PRODUCT_A_FIRST] = p->a.first, [HDI_PRODUCT_A_BATCH] = p->a.batch[BATCH_AXES - 1],
        [HDI_PRODUCT_B_FIRST] = p->b.first, [HDI_PRODUCT_B_BATCH] = p->b.batch[BATCH_AXES - 1],
        [HDI_PRODUCT_BATCH] = p->batch, [HDI_PRODUCT_WORKSPACE] = WORKSPACE_BYTES,
        [HDI_PRODUCT_ADDS] = addend != NULL };
    launch->kernel = (hdi_kernel){ .module = HDI_MODULE_MATMUL_LIBRARY, .spec_count = HDI_PRODUCT_CONSTANTS };
    for (uint32_t i = 0; i < HDI_PRODUCT_CONSTANTS; i++) launch->kernel.spec[i] = (uint32_t)constants[i];
    hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    hdi_launch_bind(launch, p->b.tensor, HDI_READ);
    hdi_launch_bind(launch, &out, HDI_WRITE);
    hdi_launch_bind(launch, &workspace, HDI_READ | HDI_WRITE);
    hdi_launch_bind(launch, addend ? addend : p->a.tensor, HDI_READ);
    for (int i = 0; i < 3; i++) launch->groups[i] = 1;
    launch->flops = 2 * p->batch * p->m * p->n * p->k;
    launch->bytes = hdi_product_side_bytes(p, &p->a, p->m) + hdi_product_side_bytes(p, &p->b, p->n) +
                    hd_tensor_bytes(out.dtype, out.shape) * (addend ? 2 : 1);
    launch->because = because;
    launch->option = option;
    return chained ? hdi_product_launch_chain(p, 1, &out, lowering, error) : HD_OK;
}
