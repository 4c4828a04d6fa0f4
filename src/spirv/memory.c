/* memory.c: types of what goes through pointers: loads, stores, access chains, atomics, barriers' scopes, cooperative
 * matrices. A pointer here always leads into one variable or parameter, its root, which is kept in def.detail: that is
 * what makes "is this buffer written" exact. Relies on declare.c; walks defs before it in order, so roots are known. */
#include "spirv/module.h"

static bool is_int32(const hdi_spirv_type *type) { return type->kind == 'i' && type->width == 32 && type->count == 1; }

/* Scopes and semantics are plain constants, except where a cooperative matrix has its own. */
static bool is_fixed(const hdi_spirv_module *m, uint32_t def) {
    return hdi_spirv_def_opcode(m, def) == SpvOpConstant || hdi_spirv_has(m, HDI_SPIRV_COOPERATIVE_MATRIX);
}

bool hdi_spirv_scope_fits(const hdi_spirv_module *m, uint32_t id, bool execution) {
    uint32_t def = hdi_spirv_find(m, id);
    uint64_t scope;
    if (!is_fixed(m, def) || !is_int32(hdi_spirv_type_of(m, def)) || !hdi_spirv_known(m, def, &scope)) return false;
    if (execution) return scope == SpvScopeWorkgroup || scope == SpvScopeSubgroup;
    if (scope == SpvScopeQueueFamily) return hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel);
    return scope >= SpvScopeDevice && scope <= SpvScopeInvocation;
}

static bool semantics_fit(const hdi_spirv_module *m, uint32_t id) {
    uint32_t def = hdi_spirv_find(m, id);
    uint64_t bits;
    if (!is_fixed(m, def) || !is_int32(hdi_spirv_type_of(m, def)) || !hdi_spirv_known(m, def, &bits)) return false;
    uint64_t order = bits & 0x1E, vulkan = bits & 0xF000; /* memory without an order, as naga says it, is none */
    if (bits & ~(uint64_t)0xFFDE) return false;
    if (order & (order - 1)) return false;
    if (hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel)) return order != SpvMemorySemanticsSequentiallyConsistentMask;
    return vulkan == 0;
}

/* ---- pointers ---- */

static bool is_buffer(uint32_t storage) {
    return storage == SpvStorageClassStorageBuffer || storage == SpvStorageClassUniform;
}

/* A buffer is read-only when its variable or each of its members is; a uniform block always is. */
static bool is_read_only(const hdi_spirv_module *m, uint32_t root) {
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, root);
    bool uniform = pointer->storage == SpvStorageClassUniform &&
                   !(m->defs[pointer->element].flags & HDI_SPIRV_BUFFER_BLOCK);
    return uniform || (m->defs[root].flags & HDI_SPIRV_NON_WRITABLE) ||
           hdi_spirv_type_at(m, pointer->element)->read_only;
}

bool hdi_spirv_may_write(const hdi_spirv_module *m, uint32_t pointer) {
    uint32_t root = hdi_spirv_root(m, pointer);
    switch (hdi_spirv_type_of(m, pointer)->storage) {
    case SpvStorageClassWorkgroup: case SpvStorageClassPrivate: case SpvStorageClassFunction: return true;
    case SpvStorageClassStorageBuffer: case SpvStorageClassUniform: return !is_read_only(m, root);
    default: return false;
    }
}

/* What the pointer points to, if it can be loaded or stored as one value; else 0. */
static uint32_t value_behind(const hdi_spirv_module *m, uint32_t pointer) {
    const hdi_spirv_type *type = hdi_spirv_type_of(m, pointer);
    if (type->kind != 'p') return 0;
    const hdi_spirv_type *value = hdi_spirv_type_at(m, type->element);
    return value->kind && strchr("fibmasc", value->kind) && !value->has_run_time_array ? type->element : 0;
}

/* The part of an aggregate that an index selects; 0 where there is none. */
static uint32_t part_of(const hdi_spirv_module *m, uint32_t type_def, uint32_t index) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    uint64_t number;
    bool known = hdi_spirv_known(m, index, &number);
    switch (type->kind) {
    case 's':
        if (hdi_spirv_def_opcode(m, index) != SpvOpConstant || !is_int32(hdi_spirv_type_of(m, index)) ||
            number >= type->count)
            return 0;
        return hdi_spirv_find(m, hdi_spirv_def_words(m, type_def)[2 + number]);
    case 'a': case 'r': case 'c': return type->element;
    default: return known && number >= type->count ? 0 : type->element; /* vectors, matrices; a scalar has none */
    }
}

static bool access_chain(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t base = hdi_spirv_find(m, words[3]), length = words[0] >> 16;
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, base), *result = hdi_spirv_type_of(m, def);
    if (pointer->kind != 'p') return hdi_spirv_bad(m, inst, "id %u is not a pointer", words[3]);
    uint32_t type_def = pointer->element;
    for (uint32_t i = 4; i < length; i++) {
        uint32_t index = hdi_spirv_find(m, words[i]);
        const hdi_spirv_type *index_type = hdi_spirv_type_of(m, index);
        if (index_type->kind != 'i' || index_type->count != 1)
            return hdi_spirv_bad(m, inst, "index %u is not an integer", i - 4);
        type_def = part_of(m, type_def, index);
        if (type_def == 0) return hdi_spirv_bad(m, inst, "index %u leads nowhere", i - 4);
    }
    if (result->kind != 'p' || result->storage != pointer->storage || result->element != type_def)
        return hdi_spirv_bad(m, inst, "its result is no pointer to what the indices lead to");
    m->defs[def].detail = hdi_spirv_root(m, base);
    return true;
}

static bool array_length(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, hdi_spirv_find(m, words[3]));
    const hdi_spirv_type *type = hdi_spirv_type_at(m, pointer->kind == 'p' ? pointer->element : 0);
    bool fits = type->kind == 's' && type->has_run_time_array && words[4] == type->count - 1 &&
                is_int32(hdi_spirv_type_of(m, def)) && !hdi_spirv_type_of(m, def)->is_signed;
    return fits ||
           hdi_spirv_bad(m, inst,
                         "it is not about the last member of a buffer, or its result no unsigned 32-bit integer");
}

/* The optional words that say how memory is accessed. */
static bool access_fits(hdi_spirv_module *m, uint32_t inst, bool store) {
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);) {
        if (o.letter != 'm') continue;
        uint32_t bits = o.word, literal = o.at + 1;
        if ((bits & 0x38) && !hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel))
            return hdi_spirv_bad(m, inst, "memory access 0x%x without the Vulkan memory model", bits);
        if ((bits & 0x18) && !(bits & 0x20))
            return hdi_spirv_bad(m, inst, "memory access 0x%x makes private memory available", bits);
        if ((bits & 0x08 && !store) || (bits & 0x10 && store && hdi_spirv_opcode(m, inst) != SpvOpCopyMemory))
            return hdi_spirv_bad(m, inst, "memory access 0x%x does not go with it", bits);
        uint32_t align = bits & 2 ? o.words[literal++] : 1;
        if (align == 0 || (align & (align - 1))) return hdi_spirv_bad(m, inst, "an alignment of %u bytes", align);
        const uint32_t end = literal + (bits >> 3 & 1) + (bits >> 4 & 1);
        for (; literal < end; literal++)
            if (!hdi_spirv_scope_fits(m, o.words[literal], false))
                return hdi_spirv_bad(m, inst, "id %u is no scope", o.words[literal]);
    }
    return true;
}

static bool load_or_store(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    uint32_t pointer = hdi_spirv_find(m, words[opcode == SpvOpLoad ? 3 : 1]), type = value_behind(m, pointer);
    if (type == 0) return hdi_spirv_bad(m, inst, "id %u is no pointer to a value", m->defs[pointer].id);
    uint32_t value = def;
    if (opcode == SpvOpStore) value = hdi_spirv_find(m, words[2]);
    bool same = m->defs[value].type == type;
    if (opcode == SpvOpCopyMemory) same = value_behind(m, hdi_spirv_find(m, words[2])) == type;
    if (!same) return hdi_spirv_bad(m, inst, "pointer and value are of different types");
    if (opcode != SpvOpLoad && !hdi_spirv_may_write(m, pointer))
        return hdi_spirv_bad(m, inst, "it writes what is read-only");
    return access_fits(m, inst, opcode != SpvOpLoad);
}

/* ---- atomics ---- */

static bool atomic(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = hdi_spirv_opcode(m, inst), at = opcode == SpvOpAtomicStore ? 1 : 3, length = words[0] >> 16;
    bool exchange = opcode == SpvOpAtomicCompareExchange;
    uint32_t pointer = hdi_spirv_find(m, words[at]), type_def = value_behind(m, pointer);
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    uint32_t storage = hdi_spirv_type_of(m, pointer)->storage;
    bool integer = type->kind == 'i' && type->count == 1 &&
                   (type->width == 32 || (type->width == 64 && hdi_spirv_has(m, SpvCapabilityInt64Atomics)));
    bool floats = type->kind == 'f' && type->count == 1 && type->width == 32;
    bool any = opcode == SpvOpAtomicLoad || opcode == SpvOpAtomicStore || opcode == SpvOpAtomicExchange;
    bool fits = opcode == SpvOpAtomicFAddEXT ? floats : any ? integer || floats : integer;
    if (!fits || (!is_buffer(storage) && storage != SpvStorageClassWorkgroup))
        return hdi_spirv_bad(m, inst,
                             "its pointer does not lead to a number of 32 (or 64) bits in a buffer or shared memory");
    if (opcode != SpvOpAtomicLoad && !hdi_spirv_may_write(m, pointer))
        return hdi_spirv_bad(m, inst, "it writes what is read-only");
    if (!hdi_spirv_scope_fits(m, words[at + 1], false) || !semantics_fit(m, words[at + 2]) ||
        (exchange && !semantics_fit(m, words[at + 3])))
        return hdi_spirv_bad(m, inst, "its scope or memory semantics are no constants that fit");
    uint64_t order = 0, unequal = 0;
    hdi_spirv_known(m, hdi_spirv_find(m, words[at + 2]), &order);
    if (exchange) hdi_spirv_known(m, hdi_spirv_find(m, words[at + 3]), &unequal);
    if ((opcode == SpvOpAtomicLoad && order & 0x1C) || (opcode == SpvOpAtomicStore && order & 0x1A) || (unequal & 0xC))
        return hdi_spirv_bad(m, inst, "its memory semantics do not go with it");
    if (opcode != SpvOpAtomicStore && m->defs[def].type != type_def)
        return hdi_spirv_bad(m, inst, "pointer and result are of different types");
    for (uint32_t i = at + (exchange ? 4 : 3); i < length; i++)
        if (m->defs[hdi_spirv_find(m, words[i])].type != type_def)
            return hdi_spirv_bad(m, inst, "id %u is of another type than the memory", words[i]);
    return true;
}

static bool barrier(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    bool control = hdi_spirv_opcode(m, inst) == SpvOpControlBarrier;
    uint32_t at = control ? 2 : 1;
    uint64_t bits = 0, scope = 0;
    bool fits = (!control || hdi_spirv_scope_fits(m, words[1], true)) && hdi_spirv_scope_fits(m, words[at], false) &&
                semantics_fit(m, words[at + 1]) && hdi_spirv_known(m, hdi_spirv_find(m, words[at + 1]), &bits);
    bool order = bits & 0x1E, memory = bits & 0xFC0;
    bool alone = hdi_spirv_known(m, hdi_spirv_find(m, words[at]), &scope) && scope == SpvScopeInvocation;
    const bool meets = control && order && !memory; /* and orders no memory */
    if (fits && ((order != memory && !meets) || (alone && order) || (!control && !order))) fits = false;
    return fits || hdi_spirv_bad(m, inst, "its scopes or memory semantics are no constants that fit");
}

/* ---- cooperative matrices ---- */

/* Do two matrix types agree in operand `x` of the one and `y` of the other (3 scope, 4 rows, 5 columns, 6 use)? */
static bool sizes_agree(const hdi_spirv_module *m, uint32_t a, uint32_t x, uint32_t b, uint32_t y) {
    uint64_t left, right;
    bool known = hdi_spirv_known(m, hdi_spirv_find(m, hdi_spirv_def_words(m, a)[x]), &left) &&
                 hdi_spirv_known(m, hdi_spirv_find(m, hdi_spirv_def_words(m, b)[y]), &right);
    return !known || left == right;
}

/* A x B + C: their uses are 0, 1 and 2, and their sizes fit. */
static bool multiplies(const hdi_spirv_module *m, const uint32_t *words, uint32_t def) {
    uint32_t type[3];
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t use;
        type[i] = m->defs[hdi_spirv_find(m, words[3 + i])].type;
        if (hdi_spirv_type_at(m, type[i])->kind != 'c') return false;
        if (hdi_spirv_known(m, hdi_spirv_find(m, hdi_spirv_def_words(m, type[i])[6]), &use) && use != i) return false;
        if (!sizes_agree(m, type[i], 3, type[0], 3)) return false;
    }
    return type[2] == m->defs[def].type && sizes_agree(m, type[0], 4, type[2], 4) &&
           sizes_agree(m, type[1], 5, type[2], 5) && sizes_agree(m, type[0], 5, type[1], 4) &&
           ((words[0] >> 16) == 6 || words[6] < 32);
}

/* A sum or row of sums made of a whole matrix, two and two, by a function of two elements. */
static bool reduces(const hdi_spirv_module *m, const uint32_t *words, uint32_t def) {
    const uint32_t matrix = m->defs[hdi_spirv_find(m, words[3])].type, result = m->defs[def].type;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result), *from = hdi_spirv_type_at(m, matrix);
    if (type->kind != 'c' || from->kind != 'c' || type->element != from->element) return false;
    const hdi_spirv_function *function = &m->functions[m->defs[hdi_spirv_find(m, words[5])].detail];
    if (m->defs[hdi_spirv_find(m, words[5])].type != type->element || function->parameter_count != 2) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (m->defs[function->parameter_first + i].type != type->element) return false;
    return sizes_agree(m, matrix, 3, result, 3) && sizes_agree(m, matrix, 6, result, 6);
}

static bool cooperative(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = hdi_spirv_opcode(m, inst), length = words[0] >> 16;
    if (opcode == HDI_SPIRV_COOPERATIVE_MATRIX_REDUCE)
        return reduces(m, words, def) ||
               hdi_spirv_bad(m, inst, "matrices and function are not of the types that belong together");
    if (opcode == HDI_SPIRV_COOPERATIVE_MATRIX_LENGTH) {
        bool fits =
            hdi_spirv_type_at(m, hdi_spirv_find(m, words[3]))->kind == 'c' && is_int32(hdi_spirv_type_of(m, def));
        return fits || hdi_spirv_bad(m, inst, "it is not the length of a cooperative matrix");
    }
    if (opcode == HDI_SPIRV_COOPERATIVE_MATRIX_MUL_ADD) {
        return multiplies(m, words, def) ||
               hdi_spirv_bad(m, inst, "its operands are no three matrices A, B and C that go together");
    }
    bool store = opcode == HDI_SPIRV_COOPERATIVE_MATRIX_STORE;
    uint32_t pointer = hdi_spirv_find(m, words[store ? 1 : 3]), at = store ? 3 : 4;
    uint32_t matrix = store ? hdi_spirv_find(m, words[2]) : def;
    const hdi_spirv_type *element = hdi_spirv_type_at(m, value_behind(m, pointer));
    const hdi_spirv_type *layout = hdi_spirv_type_of(m, hdi_spirv_find(m, words[at]));
    uint32_t storage = hdi_spirv_type_of(m, pointer)->storage;
    bool fits = hdi_spirv_type_of(m, matrix)->kind == 'c' && (element->kind == 'f' || element->kind == 'i') &&
                (is_buffer(storage) || storage == SpvStorageClassWorkgroup) && is_int32(layout) &&
                hdi_spirv_is_constant(hdi_spirv_def_opcode(m, hdi_spirv_find(m, words[at])));
    if (fits && length > at + 1) {
        const hdi_spirv_type *stride = hdi_spirv_type_of(m, hdi_spirv_find(m, words[at + 1]));
        fits = stride->kind == 'i' && stride->count == 1;
    }
    if (!fits)
        return hdi_spirv_bad(m, inst, "pointer, matrix, layout or stride are not of the types that belong there");
    if (store && !hdi_spirv_may_write(m, pointer)) return hdi_spirv_bad(m, inst, "it writes what is read-only");
    return access_fits(m, inst, store);
}

bool hdi_spirv_typing_memory(hdi_spirv_module *m, uint32_t inst, uint32_t def, bool *out_known) {
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    *out_known = true;
    switch (opcode) {
    case SpvOpLoad: case SpvOpStore: case SpvOpCopyMemory: return load_or_store(m, inst, def);
    case SpvOpAccessChain: case SpvOpInBoundsAccessChain: return access_chain(m, inst, def);
    case SpvOpArrayLength: return array_length(m, inst, def);
    case SpvOpAtomicLoad: case SpvOpAtomicStore: case SpvOpAtomicExchange: case SpvOpAtomicCompareExchange:
    case SpvOpAtomicIIncrement:
    case SpvOpAtomicIDecrement: case SpvOpAtomicIAdd: case SpvOpAtomicISub: case SpvOpAtomicSMin:
    case SpvOpAtomicUMin: case SpvOpAtomicSMax: case SpvOpAtomicUMax: case SpvOpAtomicAnd: case SpvOpAtomicOr:
    case SpvOpAtomicXor: case SpvOpAtomicFAddEXT: return atomic(m, inst, def);
    case SpvOpControlBarrier: case SpvOpMemoryBarrier: return barrier(m, inst);
    case HDI_SPIRV_COOPERATIVE_MATRIX_LOAD:
    case HDI_SPIRV_COOPERATIVE_MATRIX_STORE: case HDI_SPIRV_COOPERATIVE_MATRIX_MUL_ADD:
    case HDI_SPIRV_COOPERATIVE_MATRIX_LENGTH: case HDI_SPIRV_COOPERATIVE_MATRIX_REDUCE:
        return cooperative(m, inst, def);
    default: *out_known = false; return true;
    }
}
