/* space.c: the index space of an element-wise chain: axes that all operands walk alike become one, and where each
 * operand lies in it. Pure. */
#include "kernels/space.h"

/* Axis `axis` goes on where the space's last axis ends, for every operand. */
static bool continues(const hdi_space *s, uint32_t axis, uint64_t length) {
    if (s->rank == 0) return false;
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++) {
        const hdi_operand *o = &s->operands[i];
        if (o->tensor && o->strides[s->rank - 1] != o->tensor->strides[axis] * (int64_t)length) return false;
    }
    return true;
}

hdi_space hdi_space_of(const hdi_chain *chain, const hdi_tensor *out) {
    hdi_space s = { .rank = 0 };
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++) {
        const hdi_tensor *tensor = i == HDI_SPACE_OUTPUT ? out : i < chain->input_count ? &chain->inputs[i] : NULL;
        if (tensor) s.operands[i] = (hdi_operand){ tensor, hd_dtype_bytes(tensor->dtype, 1), tensor->first, { 0 }, 0 };
    }
    if (chain->parts > 1) s.operands[0].further = (chain->parts - 1) * chain->apart;
    for (uint32_t axis = 0; axis < out->shape.rank; axis++) {
        const uint64_t length = (uint64_t)out->shape.dims[axis];
        if (length == 1) continue;
        const bool merge = continues(&s, axis, length);
        if (!merge) s.lengths[s.rank++] = 1;
        s.lengths[s.rank - 1] *= length;
        for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++)
            if (s.operands[i].tensor) s.operands[i].strides[s.rank - 1] = s.operands[i].tensor->strides[axis];
    }
    if (s.rank == 0) s.lengths[s.rank++] = 1; /* a single element */
    return s;
}

uint64_t hdi_space_elements(const hdi_space *s) {
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < s->rank; axis++) elements *= s->lengths[axis];
    return elements;
}

hdi_place hdi_space_place(const hdi_space *s, uint32_t index, const hdi_caps *caps) {
    const hdi_operand *o = &s->operands[index];
    uint64_t low = o->first, high = o->first + o->further;
    int64_t stride = 1;
    bool dense = true;
    for (uint32_t axis = s->rank; axis-- > 0;) {
        const uint64_t way =
            (s->lengths[axis] - 1) * (uint64_t)(o->strides[axis] < 0 ? -o->strides[axis] : o->strides[axis]);
        if (o->strides[axis] < 0) low -= way; else high += way;
        dense = dense && (s->lengths[axis] == 1 || o->strides[axis] == stride);
        stride *= (int64_t)s->lengths[axis];
    }
    const uint64_t least = caps->native_kernels ? o->element_bytes : 16, align = HDI_MAX(caps->binding_align, least);
    const uint64_t offset = low * o->element_bytes / align * align, skipped = offset / o->element_bytes;
    const uint64_t end = ((high + 1) * o->element_bytes + 3) & ~UINT64_C(3);
    return (hdi_place){ dense && o->first == skipped, offset, end - offset, o->first - skipped, high - skipped };
}
