/* matmul_behind.c: what follows a matrix product whose kernel leaves it to others: the sum of the parts of K, and the
 * chain. Pure. */
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

bool hdi_product_chain(const product *p, uint32_t parts, uint32_t partial, hdi_chain *out_chain, hdi_tensor *out) {
    const hdi_chain *behind = p->request->chain;
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n);
    const bool rounds = parts > 1 && (p->type != HD_F32 || !behind); /* the sum is a step of its own */
    const uint32_t first = rounds ? 1 : 0, steps = first + (behind ? behind->step_count : 0);
    if (steps > HDI_CHAIN_STEPS) return false;
    *out_chain = (hdi_chain){ .step_count = steps, .input_count = 1 + p->source_count, .parts = parts,
                              .apart = p->m * p->n };
    *out = hdi_tensor_dense(p->request->out.storage, p->request->out.dtype, shape);
    out_chain->inputs[0] = hdi_tensor_dense(partial, parts > 1 ? HD_F32 : p->type, shape);
    out_chain->inputs[0].strides[0] *= parts;
    for (uint32_t i = 0; i < p->source_count; i++) {
        const source *s = &p->sources[i];
        out_chain->inputs[1 + i] = (hdi_tensor){ s->tensor->storage, s->tensor->dtype, shape,
                                                 { (int64_t)s->batch, (int64_t)s->m, (int64_t)s->n },
                                                 s->tensor->first };
    }
    if (rounds)
        out_chain->steps[0] = (hdi_step){ p->type == HD_F32 ? HDI_STEP_COPY : HDI_STEP_CAST, 0, HDI_SOURCE_NONE,
                                          HDI_SOURCE_NONE, p->type, 0 };
    for (uint32_t i = first; i < steps; i++) {
        hdi_step *step = &out_chain->steps[i];
        *step = behind->steps[i - first];
        uint8_t *sources[] = { &step->a, &step->b, &step->c };
        for (uint32_t k = 0; k < HDI_COUNT(sources) && rounds; k++) {
            if (*sources[k] == 0) *sources[k] = HDI_CHAIN_INPUTS; /* the sum, rounded */
            else if (*sources[k] >= HDI_CHAIN_INPUTS && *sources[k] != HDI_SOURCE_NONE) ++*sources[k];
        }
    }
    if (behind) memcpy(out_chain->attrs, behind->attrs, sizeof behind->attrs);
    out_chain->attr_count = behind ? behind->attr_count : 0;
    return hdi_chain_fits(out_chain, out, p->request->caps);
}

hd_status hdi_product_launch_chain(const product *p, uint32_t parts, const hdi_tensor *partial, hdi_lowering *lowering,
                                   hd_error *error) {
    hdi_chain chain;
    hdi_tensor out;
    if (!hdi_product_chain(p, parts, partial->storage, &chain, &out))
        return hdi_fail(error, HD_STATUS_INTERNAL, "what follows a product does not fit a chain");
    return hdi_rows_chain(p->request, &chain, &out, lowering, error);
}
