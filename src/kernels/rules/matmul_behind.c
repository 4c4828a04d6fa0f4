/* matmul_behind.c: what follows a matrix product whose kernel leaves it to others: the sum of the parts of K, and the
 * chain. Pure. */
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

bool hdi_product_chain(const product *p, uint32_t parts, uint32_t partial, hdi_chain *out_chain, hdi_tensor *out) {
    const hdi_chain *behind = p->request->chain;
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n);
    const uint32_t adds = parts - 1, inputs = parts + p->source_count, steps = adds + (behind ? behind->step_count : 0);
    if (inputs > HDI_CHAIN_INPUTS || steps > HDI_CHAIN_STEPS) return false;
    *out_chain = (hdi_chain){ .step_count = steps, .input_count = inputs };
    *out = hdi_tensor_dense(p->request->out.storage, p->request->out.dtype, shape);
    for (uint32_t i = 0; i < parts; i++) {
        out_chain->inputs[i] = hdi_tensor_dense(partial, parts > 1 ? HD_F32 : p->type, shape);
        out_chain->inputs[i].strides[0] *= parts;
        out_chain->inputs[i].first = i * p->m * p->n;
    }
    for (uint32_t i = 0; i < p->source_count; i++) {
        const source *s = &p->sources[i];
        out_chain->inputs[parts + i] = (hdi_tensor){ s->tensor->storage, s->tensor->dtype, shape,
                                                     { (int64_t)s->batch, (int64_t)s->m, (int64_t)s->n },
                                                     s->tensor->first };
    }
    for (uint32_t i = 0; i < adds; i++)
        out_chain->steps[i] = (hdi_step){ HDI_STEP_ADD, (uint8_t)(i ? HDI_CHAIN_INPUTS + i - 1 : 0), (uint8_t)(i + 1),
                                          HDI_SOURCE_NONE, i + 1 == adds ? p->type : HD_F32, 0 };
    for (uint32_t i = adds; i < steps; i++) {
        hdi_step *step = &out_chain->steps[i];
        *step = behind->steps[i - adds];
        uint8_t *sources[] = { &step->a, &step->b, &step->c };
        for (uint32_t k = 0; k < HDI_COUNT(sources); k++) {
            if (*sources[k] == HDI_SOURCE_NONE) continue;
            /* the product itself */
            if (*sources[k] == 0) *sources[k] = adds ? (uint8_t)(HDI_CHAIN_INPUTS + adds - 1) : 0;
            else *sources[k] = (uint8_t)(*sources[k] + adds); /* later inputs and later steps alike */
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
