/* transpose.c: copies across memory: the input's neighbours lie along one axis, the output's along another. Element by
 * element one of them would be walked in steps of a whole line; here both are walked along theirs, and tiles are turned
 * between. Pure. */
#include "kernels/cpu/transpose.h"
#include "kernels/space.h"

/* elements along the axes that are worth it; a CPU takes long narrow ones too */
enum { LEAST = 16, NATIVE_LEAST = 2, WORKGROUP = 256 };
/* On a CPU a tile is large, so that each page of memory is met seldom, but stays in the second cache, and there is one
 * for everybody. */
enum { TILE_BYTES = 1024, MOST_TILE = 512, LEAST_TILE = 64, FOR_EACH_THREAD = 4 };

/* The two axes that are turned. */
typedef struct turn {
    uint32_t r, c;       /* along which the input's and the output's elements are neighbours */
    uint32_t per;        /* elements that lengths, strides and places are multiples of */
    hdi_place in, out;
} turn;

static bool is_copy(const hdi_chain *chain) {
    return chain->step_count == 1 && chain->input_count == 1 && chain->steps[0].code == HDI_STEP_COPY &&
        chain->inputs[0].dtype == chain->steps[0].type;
}

/* All that is counted in elements is of whole words. */
static bool is_whole(const hdi_space *s, const turn *t) {
    uint64_t all = s->lengths[t->r] | s->lengths[t->c] | t->in.first | t->out.first;
    for (uint32_t axis = 0; axis < s->rank; axis++) {
        if (axis != t->r) all |= (uint64_t)s->operands[0].strides[axis];
        if (axis != t->c) all |= (uint64_t)s->operands[HDI_SPACE_OUTPUT].strides[axis];
    }
    return (all & (t->per - 1)) == 0;
}

static bool finds_turn(const hdi_space *s, const hdi_caps *caps, turn *out) {
    const hdi_operand *in = &s->operands[0], *to = &s->operands[HDI_SPACE_OUTPUT];
    *out = (turn){ .c = s->rank - 1, .per = caps->native_kernels ? 1 : 4 / (uint32_t)in->element_bytes,
                   .in = hdi_space_place(s, 0, caps), .out = hdi_space_place(s, HDI_SPACE_OUTPUT, caps) };
    while (out->r < s->rank && in->strides[out->r] != 1) out->r++;
    if (out->r >= out->c || to->strides[out->c] != 1 || !is_whole(s, out)) return false;
    const uint64_t r = s->lengths[out->r], c = s->lengths[out->c], least = HDI_MIN(r, c);
    return least >= (caps->native_kernels ? NATIVE_LEAST : LEAST) &&
           HDI_MAX(r, c) >= LEAST * LEAST / HDI_MIN(least, LEAST);
}

/* Can the device run the kernel, and is it right there? */
static bool has_kernel(const hdi_caps *caps, const hdi_kernel *kernel) {
    const uint64_t shared = (uint64_t)kernel->spec[HDI_TR_TILE] * HDI_TR_WORDS * 4;
    if (hdi_variant_is_wrong(caps, hdi_variant_of(kernel))) return false;
    return caps->native_kernels || (HDI_MIN(caps->max_workgroup, caps->max_workgroup_x) >= WORKGROUP &&
                                    caps->shared_bytes >= shared && caps->max_push_bytes >= HDI_TR_PUSH_WORDS * 4);
}

static uint64_t groups_of(const hdi_space *s, const turn *t, uint32_t tile) {
    uint64_t groups = 1;
    for (uint32_t axis = 0; axis < s->rank; axis++)
        groups *= axis == t->r || axis == t->c ? hdi_divide_up(s->lengths[axis], tile) : s->lengths[axis];
    return groups;
}

/* Elements along a side of a tile. */
static uint32_t tile_of(const hdi_space *s, const turn *t, const hdi_caps *caps) {
    const uint32_t bytes = (uint32_t)s->operands[0].element_bytes;
    if (!caps->native_kernels) return HDI_TR_WORDS * 4 / bytes;
    uint32_t tile = HDI_MIN(TILE_BYTES / bytes, MOST_TILE);
    while (tile > LEAST_TILE && groups_of(s, t, tile) < FOR_EACH_THREAD * caps->threads) tile /= 2;
    return tile;
}

static void fill_push(const hdi_space *s, const turn *t, uint32_t *push) {
    const hdi_operand *in = &s->operands[0], *to = &s->operands[HDI_SPACE_OUTPUT];
    uint32_t at = 0;
    push[HDI_TR_PUSH_R] = (uint32_t)s->lengths[t->r];
    push[HDI_TR_PUSH_C] = (uint32_t)s->lengths[t->c];
    push[HDI_TR_PUSH_IN_STRIDE] = (uint32_t)in->strides[t->c];
    push[HDI_TR_PUSH_OUT_STRIDE] = (uint32_t)to->strides[t->r];
    push[HDI_TR_PUSH_IN_FIRST] = (uint32_t)t->in.first;
    push[HDI_TR_PUSH_OUT_FIRST] = (uint32_t)t->out.first;
    for (uint32_t axis = 0; axis < s->rank; axis++) {
        if (axis == t->r || axis == t->c) continue;
        push[HDI_TR_PUSH_LENGTHS + at] = (uint32_t)s->lengths[axis];
        push[HDI_TR_PUSH_IN_OUTER + at] = (uint32_t)in->strides[axis];
        push[HDI_TR_PUSH_OUT_OUTER + at] = (uint32_t)to->strides[axis];
        at++;
    }
    for (; at < HDI_TR_OUTER; at++) push[HDI_TR_PUSH_LENGTHS + at] = 1;
}

hd_status hdi_lower_transpose(const hdi_request *request, const hdi_chain *chain, const hdi_space *s,
                              hdi_lowering *lowering, bool *out_taken,
                              hd_error *error) {
    const hdi_caps *caps = request->caps;
    turn t;
    *out_taken = is_copy(chain) && finds_turn(s, caps, &t);
    if (!*out_taken) return HD_OK;
    const uint32_t bytes = (uint32_t)s->operands[0].element_bytes;
    hdi_kernel kernel = { .module = HDI_MODULE_TRANSPOSE, .binding_count = 2, .push_bytes = HDI_TR_PUSH_WORDS * 4,
                          .spec_count = HDI_TR_TILE + 1 };
    kernel.spec[HDI_SPEC_WORKGROUP] = WORKGROUP;
    kernel.spec[HDI_SPEC_EXACT] = request->math == HD_MATH_EXACT;
    kernel.spec[HDI_TR_TYPE] = (uint32_t)chain->inputs[0].dtype;
    kernel.spec[HDI_TR_TILE] = tile_of(s, &t, caps);
    kernel.scratch_bytes = caps->native_kernels ? HDCPU_TRANSPOSE_SCRATCH_BYTES(kernel.spec[HDI_TR_TILE], bytes) : 0;
    *out_taken = has_kernel(caps, &kernel);
    if (!*out_taken) return HD_OK;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    const uint64_t elements = hdi_space_elements(s);
    launch->kernel = kernel;
    launch->uses[0] = (hdi_use){ s->operands[0].tensor->storage, t.in.offset, t.in.bytes, HDI_READ };
    launch->uses[1] = (hdi_use){ s->operands[HDI_SPACE_OUTPUT].tensor->storage, t.out.offset, t.out.bytes, HDI_WRITE };
    fill_push(s, &t, launch->push);
    hdi_launch_grid(launch, groups_of(s, &t, kernel.spec[HDI_TR_TILE]));
    launch->flops = elements;
    launch->bytes = 2 * elements * bytes;
    launch->because =
        "the input lies along another axis than the output: tiles are turned, and both are walked along their own";
    return HD_OK;
}
