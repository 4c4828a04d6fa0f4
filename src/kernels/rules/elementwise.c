/* elementwise.c: from an element-wise chain to launches of the elementwise kernel, or of the one that turns tiles where
 * the chain is a copy across memory (transpose.c). Axes that all operands walk alike become one (space.c), operands
 * that follow the output's own order need no index arithmetic, and what is too large for one launch is halved until it
 * fits. Also packs chains for every kernel that ends in one. Pure. */
#include "kernels/cpu/chain.h"
#include "kernels/space.h"
#include "kernels/steps.h"
#include <stdio.h>

#define WORKGROUP_GPU 256u
#define WORKGROUP_CPU 4096u
#define MOST_ELEMENTS (UINT64_C(1) << 31) /* of a launch, so that no index wraps */

/* ---- chains ---- */

static uint32_t source_type(const hdi_chain *chain, uint32_t source, uint32_t produced) {
    if (source >= HDI_CHAIN_INPUTS) return (uint32_t)chain->steps[(source - HDI_CHAIN_INPUTS) % HDI_CHAIN_STEPS].type;
    return source == 0 && chain->inputs[0].dtype == HD_DTYPE_NONE ? produced : (uint32_t)chain->inputs[source].dtype;
}

static uint32_t form_of(const hdi_chain *chain, uint32_t index, uint32_t produced) {
    const hdi_step *step = &chain->steps[index];
    const uint32_t from = source_type(chain, step->a, produced), to = (uint32_t)step->type;
    const bool from_int = from == HDI_TYPE_I32 || from == HDI_TYPE_U8, to_int = to == HDI_TYPE_I32 || to == HDI_TYPE_U8;
    if (step->code == HDI_STEP_WHERE || step->code == HDI_STEP_COPY) return step->code;
    if (step->code != HDI_STEP_CAST) return step->code + (from_int && step->code < HDI_FORM_I32 ? HDI_FORM_I32 : 0u);
    if (from_int && to_int) return to == HDI_TYPE_U8 ? HDI_FORM_I32_TO_U8 : HDI_STEP_COPY;
    if (from_int) return to == HDI_TYPE_BF16 ? HDI_FORM_I32_TO_BF16 : HDI_FORM_I32_TO_F32;
    if (to_int) return to == HDI_TYPE_U8 ? HDI_FORM_F32_TO_U8 : HDI_FORM_F32_TO_I32;
    return HDI_STEP_COPY;
}

static bool form_is_costly(uint32_t form) {
    switch (form) {
#define COSTLY_BITS_STEP(form, bits) case form:
#define COSTLY_FLOAT_STEP(form, value, fast) case form:
#include "kernels/steps.inc"
        return true;
    default: return false;
    }
}

uint32_t hdi_chain_costly_steps(const hdi_chain *chain) {
    uint32_t costly = 0;
    for (uint32_t i = 0; i < chain->step_count; i++) costly += form_is_costly(form_of(chain, i, HDI_TYPE_F32));
    return costly;
}

static const float most_of_halves[] = { -65504, 65504 };

bool hdi_chain_add_halves(hdi_chain *chain) {
    if (chain->step_count == HDI_CHAIN_STEPS) return false;
    const uint32_t last = chain->step_count, at = chain->attr_count;
    chain->steps[chain->step_count++] = (hdi_step){ HDI_STEP_CLIP, (uint8_t)(last ? HDI_CHAIN_INPUTS + last - 1 : 0),
                                                    HDI_SOURCE_NONE, HDI_SOURCE_NONE, HD_F16, at };
    memcpy(chain->attrs + at, most_of_halves, sizeof most_of_halves);
    chain->attr_count += HDI_COUNT(most_of_halves);
    return true;
}

bool hdi_chain_is_halves(const hdi_chain *chain) {
    const hdi_step *step = &chain->steps[0];
    return chain->step_count == 1 && step->code == HDI_STEP_CLIP && step->type == HD_F16 &&
           memcmp(chain->attrs + step->attr_first, most_of_halves, sizeof most_of_halves) == 0;
}

uint32_t hdi_launch_chain(hdi_launch *launch, const hdi_chain *chain, uint32_t *push_at) {
    uint32_t *spec = launch->kernel.spec;
    for (uint32_t i = 0; i < chain->input_count; i++)
        spec[HDI_SPEC_CHAIN_TYPE + i] = source_type(chain, i, spec[HDI_SPEC_CHAIN_TYPE]);
    for (uint32_t i = 0; i < chain->attr_count; i++) push_at[i] = exact_bits(chain->attrs[i]);
    for (uint32_t i = 0; i < chain->step_count; i++) {
        const hdi_step *step = &chain->steps[i];
        const uint32_t form = form_of(chain, i, spec[HDI_SPEC_CHAIN_TYPE]), at = step->attr_first;
        spec[HDI_SPEC_STEP + i] = form | (uint32_t)step->a << 8 | (uint32_t)step->b << 12 | (uint32_t)step->c << 16 |
            (uint32_t)step->type << 20 | at << 24 | (form_is_costly(form) ? 1u << 29 : 0u);
        spec[HDI_SPEC_OUT_TYPE] = (uint32_t)step->type;
        for (uint32_t j = at; form == HDI_FORM_I32 + HDI_STEP_CLIP && j < at + 2; j++)
            push_at[j] = (uint32_t)exact_f32_to_i32(chain->attrs[j]);
    }
    spec[HDI_SPEC_CHAIN] = chain->step_count;
    launch->kernel.spec_count = HDI_MAX(launch->kernel.spec_count, HDI_SPEC_OUT_TYPE + 1);
    return chain->attr_count;
}

static bool place_fits(const hdi_place *p, const hdi_caps *caps) {
    return p->last <= UINT32_MAX && (caps->max_binding_bytes == 0 || p->bytes <= caps->max_binding_bytes);
}

/* Push words of a launch over the space. */
static uint32_t words_of(const hdi_space *s, const hdi_chain *chain, const hdi_caps *caps) {
    uint32_t words = s->rank + (chain->parts > 1 ? 1 : 0) + chain->attr_count;
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++)
        if (s->operands[i].tensor && !hdi_space_place(s, i, caps).dense) words += 1 + s->rank;
    return words;
}

static uint32_t most_words(const hdi_caps *caps) {
    return (uint32_t)HDI_MIN(caps->max_push_bytes / 4, HDI_MAX_PUSH_WORDS);
}

bool hdi_chain_fits(const hdi_chain *chain, const hdi_tensor *out, const hdi_caps *caps) {
    const hdi_space s = hdi_space_of(chain, out);
    const hdi_place parts = { .bytes = chain->parts > 1 ? hd_dtype_bytes(HD_F32, chain->parts * chain->apart) : 0 };
    return chain->step_count <= HDI_CHAIN_STEPS && chain->input_count <= HDI_CHAIN_INPUTS &&
        place_fits(&parts, caps) && hdi_chain_costly_steps(chain) <= 1 && words_of(&s, chain, caps) <= most_words(caps);
}

/* ---- launches ---- */

/* A copy moves 16-bit elements as bf16, which is f32's upper half: no conversion, and no bit of an f16 is touched but
 * for the quiet bit of a NaN. */
static void copy_as_words(uint32_t *spec) {
    if (spec[HDI_SPEC_CHAIN] != 1 || (spec[HDI_SPEC_STEP] & 0xFFu) != HDI_STEP_COPY) return;
    if (spec[HDI_SPEC_CHAIN_TYPE] != HDI_TYPE_F16 || spec[HDI_SPEC_OUT_TYPE] != HDI_TYPE_F16) return;
    spec[HDI_SPEC_CHAIN_TYPE] = spec[HDI_SPEC_OUT_TYPE] = HDI_TYPE_BF16;
    spec[HDI_SPEC_STEP] = (spec[HDI_SPEC_STEP] & ~(15u << 20)) | (uint32_t)HDI_TYPE_BF16 << 20;
}

static const char *because(const hdi_space *s, uint32_t dense, uint32_t wide, bool cut) {
    if (cut) return "one of several parts: larger than one binding or one launch may be";
    if (s->rank == 1 && (dense & 16u)) return "every operand lies in the output's own order: no index arithmetic";
    if (wide & 16u) return "the output is part of a larger tensor: an index for each four elements";
    return dense & 16u ? "operands of another order than the output: an index for each element"
                       : "the output is part of a larger tensor: elements are stored one by one";
}

/* Can a GPU take the operand's elements four at a time? The last axis goes on side by side, and all else is a multiple
 * of four. */
static bool is_wide(const hdi_space *s, const hdi_operand *o, const hdi_place *p, const hdi_caps *caps) {
    uint64_t all = s->lengths[s->rank - 1] | p->first;
    for (uint32_t axis = 0; axis + 1 < s->rank; axis++) all |= (uint64_t)o->strides[axis];
    return !caps->native_kernels && !p->dense && o->strides[s->rank - 1] == 1 && all % HDI_EW_NEIGHBOURS == 0;
}

static uint64_t distinct_elements(const hdi_space *s, uint32_t index) {
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < s->rank; axis++)
        if (s->operands[index].strides[axis] != 0) elements *= s->lengths[axis];
    return elements;
}

/* How many times four elements an invocation reads before it writes: memory wants 16 bytes of each invocation on their
 * way, where there are enough of them. */
static uint32_t fours_of(const hdi_caps *caps, const hdi_chain *chain, uint64_t groups) {
    enum { FULL = 16 }; /* workgroups of a unit, twice what it runs at once */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < chain->input_count; i++) bytes += hd_dtype_bytes(chain->inputs[i].dtype, 4);
    return !caps->native_kernels && bytes < 16 && groups >= FULL * (uint64_t)caps->compute_units ? 2 : 1;
}

static hd_status launch_space(const hdi_request *request, const hdi_chain *chain, const hdi_space *s, bool cut,
                              hdi_lowering *lowering, hd_error *error) {
    const hdi_caps *caps = request->caps;
    const uint32_t room = most_words(caps), need = words_of(s, chain, caps);
    if (need > room)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "the chain needs %u push words and the device has %u", need,
                        room);
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    hdi_kernel *kernel = &launch->kernel;
    const uint64_t elements = hdi_space_elements(s);
    const hdi_class class = hdi_class_of(HDI_CLASS_ELEMENTWISE, chain->inputs[0].dtype, 1, elements);
    /* The width of a workgroup changes no bit of the result. */
    const uint32_t limit = (uint32_t)HDI_MIN(HDI_MIN(caps->max_workgroup, caps->max_workgroup_x), UINT32_MAX);
    const uint32_t most = caps->native_kernels ? UINT32_MAX : limit;
    const uint32_t width = caps->native_kernels ? WORKGROUP_CPU : HDI_MIN(most, WORKGROUP_GPU);
    const hdi_kernel_option *option = hdi_kernel_width_choose(request, class, HDI_MODULE_ELEMENTWISE, width, most,
                                                              lowering->offer);
    launch->option = option ? option->id : 0;
    kernel->module = HDI_MODULE_ELEMENTWISE;
    kernel->spec[HDI_SPEC_WORKGROUP] = option ? option->workgroup : width;
    kernel->spec[HDI_SPEC_EXACT] = request->math == HD_MATH_EXACT;
    kernel->spec[HDI_EW_INPUTS] = chain->input_count;
    kernel->spec[HDI_EW_RANK] = s->rank;
    kernel->spec[HDI_EW_PARTS] = HDI_MAX(chain->parts, 1);
    const uint64_t per_four = (uint64_t)kernel->spec[HDI_SPEC_WORKGROUP] * HDI_EW_NEIGHBOURS;
    const uint32_t fours = kernel->spec[HDI_EW_FOURS] = fours_of(caps, chain, elements / per_four);
    kernel->spec_count = (fours > 1 ? HDI_EW_FOURS : chain->parts > 1 ? HDI_EW_PARTS : HDI_EW_WIDE) + 1;
    kernel->scratch_bytes = caps->native_kernels ? HDCPU_ELEMENTWISE_SCRATCH_BYTES : 0;

    uint32_t words = 0, dense = 0, wide = 0;
    launch->push[words++] = (uint32_t)elements;
    for (uint32_t axis = 1; axis < s->rank; axis++) launch->push[words++] = (uint32_t)s->lengths[axis];
    if (chain->parts > 1) launch->push[words++] = (uint32_t)chain->apart;
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++) {
        const uint32_t from = s->operands[i].tensor ? i : 0; /* an absent input shows input 0 again */
        const hdi_operand *o = &s->operands[from];
        const hdi_place p = hdi_space_place(s, from, caps);
        /* words that hold others' elements too, beside a part or behind the last four of a dense output */
        const bool shares = o->element_bytes < 4 && !(p.dense && elements % HDI_EW_NEIGHBOURS == 0);
        const uint32_t access = i < HDI_SPACE_OUTPUT ? HDI_READ : shares ? HDI_READ | HDI_WRITE : HDI_WRITE;
        launch->uses[i] = (hdi_use){ o->tensor->storage, p.offset, p.bytes, access };
        if (from != i) continue;
        launch->bytes += distinct_elements(s, i) * o->element_bytes * (i == 0 ? HDI_MAX(chain->parts, 1) : 1);
        if (p.dense) { dense |= 1u << i; continue; }
        if (is_wide(s, o, &p, caps)) wide |= 1u << i;
        launch->push[words++] = (uint32_t)p.first;
        for (uint32_t axis = 0; axis < s->rank; axis++) launch->push[words++] = (uint32_t)o->strides[axis];
    }
    kernel->spec[HDI_EW_DENSE] = dense;
    kernel->spec[HDI_EW_WIDE] = wide;
    words += hdi_launch_chain(launch, chain, launch->push + words);
    copy_as_words(kernel->spec);
    kernel->binding_count = HDI_SPACE_OPERANDS;
    kernel->push_bytes = words * 4;
    hdi_launch_grid(launch, hdi_divide_up(elements, per_four * fours));
    launch->flops = elements * (chain->step_count + 19 * hdi_chain_costly_steps(chain));
    launch->because = because(s, dense, wide, cut);
    return HD_OK;
}

/* The axis to halve: the outermost one where there are too many elements, else the one along which an operand that does
 * not fit reaches furthest. The rank where all fits. */
static uint32_t axis_to_halve(const hdi_space *s, const hdi_caps *caps) {
    if (hdi_space_elements(s) > MOST_ELEMENTS)
        for (uint32_t axis = 0; axis < s->rank; axis++)
            if (s->lengths[axis] > 1) return axis;
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++) {
        if (!s->operands[i].tensor) continue;
        const hdi_place p = hdi_space_place(s, i, caps);
        if (place_fits(&p, caps)) continue;
        uint32_t furthest = 0;
        uint64_t most = 0;
        for (uint32_t axis = 0; axis < s->rank; axis++) {
            const int64_t stride = s->operands[i].strides[axis];
            const uint64_t way = (s->lengths[axis] - 1) * (uint64_t)(stride < 0 ? -stride : stride);
            if (way > most) { most = way; furthest = axis; }
        }
        return furthest;
    }
    return s->rank;
}

static hd_status launch_parts(const hdi_request *request, const hdi_chain *chain, const hdi_space *s, bool cut,
                              hdi_lowering *lowering, hd_error *error) {
    const uint32_t axis = axis_to_halve(s, request->caps);
    if (axis == s->rank) {
        bool taken;
        const hd_status status = hdi_lower_transpose(request, chain, s, lowering, &taken, error);
        return status || taken ? status : launch_space(request, chain, s, cut, lowering, error);
    }
    if (s->lengths[axis] == 1)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "a binding of the device, %llu bytes, holds no single element of the chain's",
                        (unsigned long long)request->caps->max_binding_bytes);
    uint64_t half = s->lengths[axis] / 2;
    if (half > 4096) half &= ~UINT64_C(4095); /* parts begin where a binding may begin */
    hdi_space left = *s, right = *s;
    left.lengths[axis] = half;
    right.lengths[axis] -= half;
    for (uint32_t i = 0; i < HDI_SPACE_OPERANDS; i++)
        right.operands[i].first += half * (uint64_t)s->operands[i].strides[axis];
    const hd_status status = launch_parts(request, chain, &left, true, lowering, error);
    return status ? status : launch_parts(request, chain, &right, true, lowering, error);
}

static hd_status check(const hdi_request *request, const hdi_chain *chain, hd_error *error) {
    const hdi_caps *caps = request->caps;
    if (chain->step_count > HDI_CHAIN_STEPS || chain->input_count < 1 || chain->input_count > HDI_CHAIN_INPUTS)
        return hdi_fail(error, HD_STATUS_INTERNAL, "a chain of %u steps over %u inputs", chain->step_count,
                        chain->input_count);
    for (uint32_t i = 0; i < chain->input_count; i++)
        if (chain->inputs[i].dtype < HD_F32 || chain->inputs[i].dtype > HD_U8)
            return hdi_fail(error, HD_STATUS_TYPE, "element-wise operations do not take %s",
                            hd_dtype_name(chain->inputs[i].dtype));
    if (hdi_chain_costly_steps(chain) > 1)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a chain has one costly function, this one %u",
                        hdi_chain_costly_steps(chain));
    if (!caps->native_kernels && caps->max_bindings < HDI_SPACE_OPERANDS)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "the kernel needs %u bindings and the device has %llu",
                        HDI_SPACE_OPERANDS, (unsigned long long)caps->max_bindings);
    if (!caps->native_kernels && HDI_MIN(caps->max_workgroup, caps->max_workgroup_x) < 1)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "the device runs no workgroups");
    return HD_OK;
}

hd_status hdi_lower_elementwise(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_chain copy = { .step_count = 1, .input_count = 1 };
    const hdi_chain *chain = request->chain ? request->chain : &copy;
    if (!request->chain) {
        copy.steps[0] = (hdi_step){ HDI_STEP_COPY, 0, HDI_SOURCE_NONE, HDI_SOURCE_NONE, request->out.dtype, 0 };
        copy.inputs[0] = request->inputs[0];
    }
    const hd_status status = check(request, chain, error);
    const hdi_space s = hdi_space_of(chain, &request->out);
    return status ? status : launch_parts(request, chain, &s, false, lowering, error);
}
