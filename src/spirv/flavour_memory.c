/* flavour_memory.c: what goes through pointers. Variables are reached by access chains of their types; buffers and the
 * words that the kernel is given by offsets (place.c), number by number, or a vector at a time where its alignment is
 * sure. */
#include "spirv/flavour.h"

typedef hdi_spirv_place place;

static bool is_push(const place *at) { return at->storage == SpvStorageClassPushConstant; }
static uint32_t def_at(const hdi_flavour *w, const uint32_t *words, uint32_t at) {
    return hdi_spirv_find(w->m, words[at]);
}
static uint32_t u64_of(hdi_flavour *w, uint64_t bits) { return hdi_flavour_number(w, 'i', 64, 1, bits); }

static bool find_place(hdi_flavour *w, uint32_t pointer, place *at) {
    w->stop |= !hdi_spirv_find_place(w->p, pointer, at);
    return !w->stop;
}

/* ---- offsets ---- */

/* bytes / unit + the sum of index * stride / unit, in integers of `width` bits. */
static uint32_t offset(hdi_flavour *w, const place *at, uint64_t more, uint32_t unit, uint32_t width) {
    uint32_t type = hdi_flavour_scalar(w, 'i', width), sum = 0;
    uint64_t fixed = (at->bytes + more) / unit;
    for (uint32_t i = 0; i < at->term_count; i++) {
        uint32_t term =
            hdi_flavour_widen(w, hdi_spirv_type_of(w->m, at->term[i]), hdi_flavour_value(w, at->term[i]), width);
        if (at->stride[i] / unit != 1)
            term =
                HDI_FLAVOUR_MAKE(w, SpvOpIMul, type, term, hdi_flavour_number(w, 'i', width, 1, at->stride[i] / unit));
        sum = sum ? HDI_FLAVOUR_MAKE(w, SpvOpIAdd, type, sum, term) : term;
    }
    uint32_t constant = hdi_flavour_number(w, 'i', width, 1, width == 32 ? (uint32_t)fixed : fixed);
    if (!sum) return constant;
    return fixed ? HDI_FLAVOUR_MAKE(w, SpvOpIAdd, type, sum, constant) : sum;
}

/* A pointer to what is at the place, as `type`. */
static uint32_t pointer_to(hdi_flavour *w, const place *at, uint64_t more, uint32_t type) {
    const uint32_t pointer = hdi_flavour_pointer(w, at->storage, type);
    if (hdi_spirv_is_bytes(at->storage)) {
        const uint32_t bytes = hdi_flavour_pointer(w, SpvStorageClassCrossWorkgroup, hdi_flavour_scalar(w, 'i', 8));
        uint32_t address = w->buffers[hdi_spirv_decor_of(w->m, at->root)->binding];
        if (at->bytes + more || at->term_count)
            address = HDI_FLAVOUR_MAKE(w, SpvOpInBoundsPtrAccessChain, bytes, address, offset(w, at, more, 1, 64));
        return pointer == bytes ? address : HDI_FLAVOUR_MAKE(w, SpvOpBitcast, pointer, address);
    }
    uint32_t operands[HDI_SPIRV_MAX_TYPE_DEPTH + 5] = { hdi_flavour_value(w, at->root) };
    for (uint32_t i = 0; i < at->index_count; i++) operands[1 + i] = hdi_flavour_value(w, at->index[i]);
    return at->index_count ? hdi_flavour_make(w, SpvOpInBoundsAccessChain, pointer, operands, 1 + at->index_count)
                           : operands[0];
}

/* The words that say how memory is accessed. */
static uint32_t access(const place *at, uint32_t align, uint32_t *out) {
    out[0] = (at->is_volatile ? SpvMemoryAccessVolatileMask : 0) | (align ? SpvMemoryAccessAlignedMask : 0);
    out[1] = align;
    return align ? 2 : out[0] ? 1 : 0;
}

static uint32_t load_as(hdi_flavour *w, const place *at, uint64_t more, uint32_t type, uint32_t align) {
    uint32_t operands[3] = { pointer_to(w, at, more, type) };
    return hdi_flavour_make(w, SpvOpLoad, type, operands, 1 + access(at, align, operands + 1));
}

static void store_as(hdi_flavour *w, const place *at, uint64_t more, uint32_t type, uint32_t align, uint32_t value) {
    uint32_t operands[4] = { pointer_to(w, at, more, type), value };
    hdi_flavour_add(w, &w->code, SpvOpStore, operands, 2 + access(at, align, operands + 2));
}

/* ---- the words that the kernel is given ---- */

static uint32_t launch_word(hdi_flavour *w, uint32_t index_id) {
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32), pointer = hdi_flavour_pointer(w, SpvStorageClassFunction, u32);
    const uint32_t to =
        HDI_FLAVOUR_MAKE(w, SpvOpInBoundsAccessChain, pointer, w->launch, hdi_flavour_u32(w, 0), index_id);
    return HDI_FLAVOUR_MAKE(w, SpvOpLoad, u32, to, SpvMemoryAccessAlignedMask, 4);
}

/* Two words as one number, low word first. */
static uint32_t join(hdi_flavour *w, uint32_t low, uint32_t high) {
    const hdi_spirv_type u32 = { .kind = 'i', .width = 32, .count = 1 };
    const uint32_t u64 = hdi_flavour_scalar(w, 'i', 64);
    const uint32_t up =
        HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, u64, hdi_flavour_widen(w, &u32, high, 64), u64_of(w, 32));
    return HDI_FLAVOUR_MAKE(w, SpvOpBitwiseOr, u64, hdi_flavour_widen(w, &u32, low, 64), up);
}

/* A push constant: narrow ones are shifted out of their word. */
static uint32_t push_number(hdi_flavour *w, const place *at, const hdi_spirv_type *type, uint64_t more) {
    const hdi_spirv_type u32 = { .kind = 'i', .width = 32, .count = 1 };
    const uint32_t plain = hdi_flavour_scalar(w, 'i', 32), wanted = hdi_flavour_scalar(w, type->kind, type->width);
    for (uint32_t i = 0; i < at->term_count; i++)
        if (at->stride[i] % 4)
            w->stop = !hdi_spirv_unsupported(w->m, w->m->defs[at->root].inst,
                                             "an index into push constants of 8 or 16 bits");
    /* three words stand in front */
    const uint32_t shift = (uint32_t)((at->bytes + more) % 4 * 8), index = offset(w, at, more + 12, 4, 32);
    uint32_t value = launch_word(w, index);
    if (type->width == 64) {
        value = join(w, value, launch_word(w, HDI_FLAVOUR_MAKE(w, SpvOpIAdd, plain, index, hdi_flavour_u32(w, 1))));
    } else if (type->width < 32) {
        if (shift) value = HDI_FLAVOUR_MAKE(w, SpvOpShiftRightLogical, plain, value, hdi_flavour_u32(w, shift));
        value = hdi_flavour_widen(w, &u32, value, type->width);
    }
    return type->kind == 'f' ? HDI_FLAVOUR_MAKE(w, SpvOpBitcast, wanted, value) : value;
}

/* ---- values in bytes ---- */

static place part_of(const hdi_flavour *w, const place *at, uint32_t i, uint64_t *more) {
    place part = *at;
    *more += hdi_spirv_part_offset(w->m, &part, i);
    part.type = hdi_spirv_part_type(w->m, at->type, i);
    return part;
}

/* Types nest at most HDI_SPIRV_MAX_TYPE_DEPTH deep; values are of at most HDI_SPIRV_MAX_COPIED numbers. */
static uint32_t read_bytes(hdi_flavour *w, const place *at, uint64_t more) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, at->type);
    bool scalar = type->count == 1 && strchr("fi", type->kind);
    uint32_t id = hdi_flavour_type(w, at->type);
    if (scalar && is_push(at)) return push_number(w, at, type, more);
    if (scalar || (hdi_spirv_is_vector(type) && hdi_spirv_is_whole(at, type, more)))
        return load_as(w, at, more, id, type->width / 8 * type->count);
    uint32_t *parts = hdi_arena_alloc(&w->m->arena, type->count * sizeof *parts);
    if (!parts) w->stop = !hdi_spirv_no_memory(w->m);
    for (uint32_t i = 0; i < type->count && !w->stop; i++) {
        uint64_t offset = more;
        const place part = part_of(w, at, i, &offset);
        parts[i] = read_bytes(w, &part, offset);
    }
    return w->stop ? 0 : hdi_flavour_compose(w, id, parts, type->count);
}

static void write_bytes(hdi_flavour *w, const place *at, uint64_t more, uint32_t value) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, at->type);
    bool scalar = type->count == 1 && strchr("fi", type->kind);
    if (scalar || (hdi_spirv_is_vector(type) && hdi_spirv_is_whole(at, type, more))) {
        store_as(w, at, more, hdi_flavour_type(w, at->type), type->width / 8 * type->count, value);
        return;
    }
    for (uint32_t i = 0; i < type->count && !w->stop; i++) {
        uint64_t offset = more;
        const place part = part_of(w, at, i, &offset);
        write_bytes(w, &part, offset,
                    HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, hdi_flavour_type(w, part.type), value, i));
    }
}

/* ---- built-in inputs ---- */

/* A variable of OpenCL's for the built-in, of its type: three numbers as wide as an address, or one of 32 bits. */
static uint32_t input_variable(hdi_flavour *w, uint32_t builtin, uint32_t type) {
    for (uint32_t i = 0; i < w->input_count; i++)
        if (w->input_builtins[i] == builtin) return w->inputs[i];
    const uint32_t id = w->bound++, pointer = hdi_flavour_pointer(w, SpvStorageClassInput, type);
    hdi_flavour_add(w, &w->globals, SpvOpVariable, HDI_FLAVOUR_IDS(pointer, id, SpvStorageClassInput));
    hdi_flavour_decorate(w, id, SpvDecorationBuiltIn, builtin);
    hdi_flavour_add(w, &w->decorations, SpvOpDecorate, HDI_FLAVOUR_IDS(id, SpvDecorationConstant));
    w->input_builtins[w->input_count] = builtin;
    return w->inputs[w->input_count++] = id;
}

static uint32_t input_number(hdi_flavour *w, uint32_t builtin, uint32_t axis) {
    const hdi_spirv_type u64 = { .kind = 'i', .width = 64, .count = 1 };
    const uint32_t three = hdi_flavour_vector(w, 'i', 64, 3);
    const uint32_t all = HDI_FLAVOUR_MAKE(w, SpvOpLoad, three, input_variable(w, builtin, three));
    return hdi_flavour_widen(w, &u64,
                             HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, hdi_flavour_scalar(w, 'i', 64), all, axis), 32);
}

/* One of three numbers: a workgroup's index begins where the launch says. */
static uint32_t input_axis(hdi_flavour *w, uint32_t builtin, uint32_t axis) {
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32);
    if (builtin == SpvBuiltInNumWorkgroups || builtin == SpvBuiltInLocalInvocationId)
        return input_number(w, builtin, axis);
    const uint32_t group = HDI_FLAVOUR_MAKE(w, SpvOpIAdd, u32, input_number(w, SpvBuiltInWorkgroupId, axis),
                                            launch_word(w, hdi_flavour_u32(w, axis)));
    if (builtin == SpvBuiltInWorkgroupId) return group;
    const uint32_t before =
        HDI_FLAVOUR_MAKE(w, SpvOpIMul, u32, group, hdi_flavour_u32(w, w->p->printed->info.workgroup[axis]));
    return HDI_FLAVOUR_MAKE(w, SpvOpIAdd, u32, before, input_number(w, SpvBuiltInLocalInvocationId, axis));
}

/* x + width * (y + height * z) */
static uint32_t local_index(hdi_flavour *w) {
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32), *size = w->p->printed->info.workgroup;
    uint32_t sum = 0;
    for (uint32_t axis = 3; axis-- > 0;) {
        if (sum) sum = HDI_FLAVOUR_MAKE(w, SpvOpIMul, u32, sum, hdi_flavour_u32(w, size[axis]));
        if (size[axis] == 1 && axis) continue;
        const uint32_t index = input_number(w, SpvBuiltInLocalInvocationId, axis);
        sum = sum ? HDI_FLAVOUR_MAKE(w, SpvOpIAdd, u32, sum, index) : index;
    }
    return sum;
}

static uint32_t read_input(hdi_flavour *w, const place *at) {
    const uint32_t builtin = hdi_spirv_decor_of(w->m, at->root)->builtin, u32 = hdi_flavour_scalar(w, 'i', 32);
    const hdi_spirv_type *whole = hdi_spirv_type_at(w->m, hdi_spirv_type_of(w->m, at->root)->element);
    const bool one = at->index_count == 1, known = one && hdi_spirv_is_known(w->p, at->index[0]);
    uint32_t all, type = hdi_flavour_vector(w, 'i', 32, whole->count);
    if (builtin == SpvBuiltInLocalInvocationIndex) return local_index(w);
    if (whole->count == 3) {
        if (known) return input_axis(w, builtin, (uint32_t)hdi_spirv_bits(w->p, at->index[0]) % 3);
        const uint32_t x = input_axis(w, builtin, 0), y = input_axis(w, builtin, 1);
        all = hdi_flavour_compose(w, type, HDI_FLAVOUR_IDS(x, y, input_axis(w, builtin, 2)));
    } else {
        hdi_spirv_use_part(w->p, HDI_SPIRV_PART_SUBGROUPS);
        all = HDI_FLAVOUR_MAKE(w, SpvOpLoad, type, input_variable(w, builtin, type));
    }
    return one ? HDI_FLAVOUR_MAKE(w, SpvOpVectorExtractDynamic, u32, all, hdi_flavour_value(w, at->index[0])) : all;
}

/* ---- loads and stores ---- */

static uint32_t read_value(hdi_flavour *w, uint32_t inst, const place *at) {
    if (at->storage == SpvStorageClassInput) return read_input(w, at);
    if (!hdi_spirv_is_bytes(at->storage)) return load_as(w, at, 0, hdi_flavour_type(w, at->type), 0);
    if (hdi_spirv_number_count(w->m, at->type, HDI_SPIRV_MAX_COPIED) > HDI_SPIRV_MAX_COPIED)
        w->stop = !hdi_spirv_unsupported(w->m, inst, "a copy of more than %u numbers out of a buffer at once",
                                         HDI_SPIRV_MAX_COPIED);
    return w->stop ? 0 : read_bytes(w, at, 0);
}

static void write_value(hdi_flavour *w, uint32_t inst, const place *at, uint32_t value) {
    if (!hdi_spirv_is_bytes(at->storage)) {
        store_as(w, at, 0, hdi_flavour_type(w, at->type), 0, value);
        return;
    }
    if (hdi_spirv_number_count(w->m, at->type, HDI_SPIRV_MAX_COPIED) > HDI_SPIRV_MAX_COPIED)
        w->stop = !hdi_spirv_unsupported(w->m, inst, "a copy of more than %u numbers into a buffer at once",
                                         HDI_SPIRV_MAX_COPIED);
    if (!w->stop) write_bytes(w, at, 0, value);
}

uint32_t hdi_flavour_load(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    place at;
    if (!find_place(w, def_at(w, words, 3), &at)) return 0;
    at.is_volatile |= words[0] >> 16 > 4 && words[4] & 0x11; /* volatile, or made visible */
    return read_value(w, inst, &at);
}

void hdi_flavour_store(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    bool copies = (words[0] & 0xFFFF) == SpvOpCopyMemory;
    place to, from;
    if (!find_place(w, def_at(w, words, 1), &to)) return;
    if (copies && !find_place(w, def_at(w, words, 2), &from)) return;
    to.is_volatile |= words[0] >> 16 > 3 && words[3] & 9;
    if (copies && from.type != to.type && hdi_flavour_type(w, from.type) != hdi_flavour_type(w, to.type))
        w->stop = !hdi_spirv_unsupported(w->m, inst, "a copy between types that are not alike");
    write_value(w, inst, &to, copies ? read_value(w, inst, &from) : hdi_flavour_value(w, def_at(w, words, 2)));
}

/* (bytes of the binding - offset of the array) / stride */
uint32_t hdi_flavour_array_length(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst), u64 = hdi_flavour_scalar(w, 'i', 64);
    const hdi_spirv_printed *printed = w->p->printed;
    const hdi_spirv_type wide = { .kind = 'i', .width = 64, .count = 1 };
    place at;
    if (!find_place(w, def_at(w, words, 3), &at)) return 0;
    uint32_t word = 3 + printed->push_words, array = hdi_spirv_part_type(w->m, at.type, words[4]);
    for (uint32_t i = 0; printed->lengths[i] != hdi_spirv_decor_of(w->m, at.root)->binding; i++) word += 2;
    const uint32_t low = launch_word(w, hdi_flavour_u32(w, word));
    const uint32_t bytes = join(w, low, launch_word(w, hdi_flavour_u32(w, word + 1)));
    const uint32_t rest = HDI_FLAVOUR_MAKE(w, SpvOpISub, u64, bytes,
                                           u64_of(w, hdi_spirv_decor_of(w->m, at.type)->members[words[4]].offset));
    return hdi_flavour_widen(w, &wide,
                             HDI_FLAVOUR_MAKE(w, SpvOpUDiv, u64, rest,
                                              u64_of(w, hdi_spirv_decor_of(w->m, array)->array_stride)), 32);
}

/* ---- atomics and barriers ---- */

/* Buffers are memory across workgroups here; what only Vulkan's memory model says is left out. */
static uint32_t semantics(const hdi_flavour *w, uint32_t id) {
    uint64_t bits = 0;
    hdi_spirv_known(w->m, hdi_spirv_find(w->m, id), &bits);
    return (uint32_t)(bits & 0x1E) |
           (bits & SpvMemorySemanticsUniformMemoryMask ? (uint32_t)SpvMemorySemanticsCrossWorkgroupMemoryMask : 0) |
           (uint32_t)(bits & SpvMemorySemanticsWorkgroupMemoryMask);
}

static uint32_t scope(const hdi_flavour *w, uint32_t id) {
    uint64_t scope = SpvScopeDevice;
    hdi_spirv_known(w->m, hdi_spirv_find(w->m, id), &scope);
    return scope == SpvScopeQueueFamily ? (uint32_t)SpvScopeDevice : (uint32_t)scope;
}

static uint32_t add_float(hdi_flavour *w, const place *at, uint32_t value) {
    const uint32_t f32 = hdi_flavour_scalar(w, 'f', 32);
    uint32_t *adder = &w->adders[at->storage == SpvStorageClassWorkgroup];
    if (!*adder) *adder = w->bound++;
    return HDI_FLAVOUR_MAKE(w, SpvOpFunctionCall, f32, *adder, pointer_to(w, at, 0, hdi_flavour_scalar(w, 'i', 32)),
                            value);
}

uint32_t hdi_flavour_atomic(hdi_flavour *w, uint32_t inst, uint32_t opcode) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    const uint32_t first = opcode == SpvOpAtomicStore ? 1 : 3, length = words[0] >> 16;
    place at;
    if (!find_place(w, def_at(w, words, first), &at)) return 0;
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, at.type);
    if (type->width == 64) hdi_flavour_use(w, SpvCapabilityInt64Atomics);
    if (opcode == SpvOpAtomicFAddEXT) {
        if (type->width != 32) w->stop = !hdi_spirv_unsupported(w->m, inst, "a float of %u bits", type->width);
        return w->stop ? 0 : add_float(w, &at, hdi_flavour_value(w, def_at(w, words, 6)));
    }
    uint32_t operands[9], count = 0;
    operands[count++] = pointer_to(w, &at, 0, hdi_flavour_type(w, at.type));
    operands[count++] = hdi_flavour_u32(w, scope(w, words[first + 1]));
    operands[count++] = hdi_flavour_u32(w, semantics(w, words[first + 2]));
    if (opcode == SpvOpAtomicCompareExchange) operands[count++] = hdi_flavour_u32(w, semantics(w, words[first + 3]));
    for (uint32_t i = first + (opcode == SpvOpAtomicCompareExchange ? 4 : 3); i < length; i++)
        operands[count++] = hdi_flavour_value(w, def_at(w, words, i));
    if (first == 3) return hdi_flavour_make(w, opcode, hdi_flavour_type(w, def_at(w, words, 1)), operands, count);
    hdi_flavour_add(w, &w->code, opcode, operands, count);
    return 0;
}

/* f32 add(u32 *p, f32 x): compares and exchanges until no other invocation wrote in between. */
static void put_adder(hdi_flavour *w, uint32_t id, uint32_t storage) {
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32), f32 = hdi_flavour_scalar(w, 'f', 32);
    const uint32_t pointer = hdi_flavour_pointer(w, storage, u32);
    const uint32_t type = hdi_flavour_once(w, SpvOpTypeFunction, 0, HDI_FLAVOUR_IDS(f32, pointer, f32));
    const uint32_t p = w->bound++, x = w->bound++, begin = w->bound++, again = w->bound++, end = w->bound++;
    const uint32_t was = w->bound++, seen = w->bound++;
    const uint32_t relaxed = hdi_flavour_u32(w, 0), device = hdi_flavour_u32(w, SpvScopeDevice),
                   yes = hdi_flavour_scalar(w, 'b', 0);
    hdi_flavour_add(w, &w->code, SpvOpFunction, HDI_FLAVOUR_IDS(f32, id, 0, type));
    hdi_flavour_add(w, &w->code, SpvOpFunctionParameter, HDI_FLAVOUR_IDS(pointer, p));
    hdi_flavour_add(w, &w->code, SpvOpFunctionParameter, HDI_FLAVOUR_IDS(f32, x));
    hdi_flavour_add(w, &w->code, SpvOpLabel, &begin, 1);
    const uint32_t first = HDI_FLAVOUR_MAKE(w, SpvOpAtomicLoad, u32, p, device, relaxed);
    hdi_flavour_add(w, &w->code, SpvOpBranch, &again, 1);
    hdi_flavour_add(w, &w->code, SpvOpLabel, &again, 1);
    hdi_flavour_add(w, &w->code, SpvOpPhi, HDI_FLAVOUR_IDS(u32, was, first, begin, seen, again));
    const uint32_t now = HDI_FLAVOUR_MAKE(w, SpvOpFAdd, f32, HDI_FLAVOUR_MAKE(w, SpvOpBitcast, f32, was), x);
    const uint32_t bits = HDI_FLAVOUR_MAKE(w, SpvOpBitcast, u32, now);
    hdi_flavour_add(w, &w->code, SpvOpAtomicCompareExchange,
                    HDI_FLAVOUR_IDS(u32, seen, p, device, relaxed, relaxed, bits, was));
    const uint32_t done = HDI_FLAVOUR_MAKE(w, SpvOpIEqual, yes, seen, was);
    hdi_flavour_add(w, &w->code, SpvOpBranchConditional, HDI_FLAVOUR_IDS(done, end, again));
    hdi_flavour_add(w, &w->code, SpvOpLabel, &end, 1);
    const uint32_t result = HDI_FLAVOUR_MAKE(w, SpvOpBitcast, f32, was);
    hdi_flavour_add(w, &w->code, SpvOpReturnValue, &result, 1);
    hdi_flavour_add(w, &w->code, SpvOpFunctionEnd, NULL, 0);
}

void hdi_flavour_adders(hdi_flavour *w) {
    if (w->adders[0]) put_adder(w, w->adders[0], SpvStorageClassCrossWorkgroup);
    if (w->adders[1]) put_adder(w, w->adders[1], SpvStorageClassWorkgroup);
}

/* As OpenCL C's own barriers are: in one order for all, and always about shared memory. */
void hdi_flavour_barrier(hdi_flavour *w, uint32_t inst, uint32_t opcode) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    const bool control = opcode == SpvOpControlBarrier;
    uint32_t memory = (semantics(w, words[control ? 3 : 2]) & ~0x1Eu) | SpvMemorySemanticsSequentiallyConsistentMask |
                      SpvMemorySemanticsWorkgroupMemoryMask;
    const uint32_t of = scope(w, words[1]);
    if (!control) memory |= SpvMemorySemanticsCrossWorkgroupMemoryMask;
    if (control && of == SpvScopeSubgroup) hdi_spirv_use_part(w->p, HDI_SPIRV_PART_SUBGROUPS);
    if (control)
        hdi_flavour_add(w, &w->code, opcode,
                        HDI_FLAVOUR_IDS(hdi_flavour_u32(w, of), hdi_flavour_u32(w, scope(w, words[2])),
                                        hdi_flavour_u32(w, memory)));
    else hdi_flavour_add(w, &w->code, opcode, HDI_FLAVOUR_IDS(hdi_flavour_u32(w, of), hdi_flavour_u32(w, memory)));
}

void hdi_flavour_close_loop(hdi_flavour *w) {
    const uint32_t workgroup = hdi_flavour_u32(w, SpvScopeWorkgroup);
    const uint32_t memory =
        hdi_flavour_u32(w, SpvMemorySemanticsSequentiallyConsistentMask | SpvMemorySemanticsWorkgroupMemoryMask);
    hdi_flavour_add(w, &w->code, SpvOpControlBarrier, HDI_FLAVOUR_IDS(workgroup, workgroup, memory));
}
