/* interpret_memory.c: what goes through pointers. Every access is checked against what it goes into: reads beyond give
 * zeros, and writes beyond do nothing. Atomic operations on buffers are those of the processor, as other workgroups run
 * beside. */
#include "spirv/interpret.h"

typedef struct bytes {
    uint8_t *at;
    uint64_t count;
} bytes;

static bool is_bytes(uint32_t storage) {
    return storage == SpvStorageClassStorageBuffer || storage == SpvStorageClassUniform ||
           storage == SpvStorageClassPushConstant;
}

static bytes bytes_of(const hdi_interpreter *x, uint32_t root) {
    const hdi_spirv_launch *launch = x->launch;
    if (hdi_spirv_type_of(x->m, root)->storage == SpvStorageClassPushConstant) /* which is never written */
        return (bytes){ (uint8_t *)(uintptr_t)launch->push, launch->push_words * 4 };
    const uint32_t binding = hdi_spirv_decor_of(x->m, root)->binding;
    if (binding >= launch->binding_count) return (bytes){ NULL, 0 };
    return (bytes){ launch->bindings[binding], launch->binding_bytes[binding] };
}

/* The cells that a variable holds, and how many. */
static uint64_t *cells_of(const hdi_interpreter *x, uint32_t root, uint64_t *out_count) {
    const hdi_spirv_type *pointer = hdi_spirv_type_of(x->m, root);
    *out_count = hdi_interpret_cells_of(x->machine, pointer->element);
    return (pointer->storage == SpvStorageClassWorkgroup ? x->shared : x->self->cells) + x->machine->memory[root];
}

/* ---- bytes ---- */

/* A place among bytes: as a pointer's cells say it. */
typedef struct place {
    uint64_t offset, step, matrix;
} place;

/* Part `index` of what is there; `*inout_type` becomes the part's type. */
static place part_of(const hdi_spirv_module *m, place at, uint32_t *inout_type, uint64_t index) {
    const uint32_t whole = *inout_type;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, whole);
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, whole);
    const uint64_t number = type->width / 8, stride = (uint32_t)at.matrix;
    const bool by_rows = at.matrix & HDI_POINTER_BY_ROWS;
    *inout_type = type->element;
    switch (type->kind) {
    case 's': {
        const hdi_spirv_member *member = decor->members ? &decor->members[index] : NULL;
        *inout_type = hdi_spirv_find(m, hdi_spirv_def_words(m, whole)[2 + index]);
        if (!member) return at;
        const uint64_t matrix = member->matrix_stride == HDI_SPIRV_NONE ? 0 : member->matrix_stride;
        return (place){ at.offset + member->offset, 0,
                        matrix | (member->flags & HDI_SPIRV_ROW_MAJOR ? HDI_POINTER_BY_ROWS : 0) };
    }
    case 'm': return (place){ at.offset + index * (by_rows ? number : stride), by_rows ? stride : 0, 0 };
    case 'a': case 'r': return (place){ at.offset + index * decor->array_stride, 0, at.matrix };
    default: return (place){ at.offset + index * (at.step ? at.step : number), 0, 0 };
    }
}

static bool is_number(const hdi_spirv_type *type) {
    return type->count == 1 && (type->kind == 'f' || type->kind == 'i');
}

static uint8_t *number_at(bytes memory, uint64_t offset, uint64_t size) {
    return offset <= memory.count && size <= memory.count - offset ? memory.at + offset : NULL;
}

/* Reads or writes a value, number by number. Types nest at most HDI_SPIRV_MAX_TYPE_DEPTH deep. */
static void move(const hdi_interpreter *x, bytes memory, place at, uint32_t type_def, uint64_t *cells, bool writes) {
    const hdi_spirv_type *type = hdi_spirv_type_at(x->m, type_def);
    if (is_number(type)) {
        void *number = number_at(memory, at.offset, type->width / 8), *cell = cells;
        if (!writes) *cells = 0;
        if (number) memcpy(writes ? number : cell, writes ? cell : number, type->width / 8); /* low bytes first */
        return;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        uint32_t part_type = type_def;
        const place part = part_of(x->m, at, &part_type, i);
        move(x, memory, part, part_type, cells, writes);
        cells += hdi_interpret_cells_of(x->machine, part_type);
    }
}

/* ---- loads and stores ---- */

static void transfer(hdi_interpreter *x, const uint64_t *pointer, uint32_t type_def, uint64_t *cells, bool writes) {
    const uint32_t root = (uint32_t)pointer[HDI_POINTER_ROOT];
    const uint32_t storage = hdi_spirv_type_of(x->m, root)->storage;
    const uint64_t count = hdi_interpret_cells_of(x->machine, type_def), offset = pointer[HDI_POINTER_OFFSET];
    if (is_bytes(storage)) {
        if (writes && storage == SpvStorageClassPushConstant) return;
        move(x, bytes_of(x, root), (place){ offset, pointer[HDI_POINTER_STEP], pointer[HDI_POINTER_MATRIX] }, type_def,
             cells, writes);
        return;
    }
    uint64_t room;
    uint64_t *memory = cells_of(x, root, &room);
    const bool fits = offset <= room && count <= room - offset;
    if (fits) memmove(writes ? memory + offset : cells, writes ? cells : memory + offset, count * sizeof *cells);
    else if (!writes) memset(cells, 0, count * sizeof *cells);
}

static void load(hdi_interpreter *x, const uint64_t *pointer, uint32_t type_def, uint64_t *out) {
    transfer(x, pointer, type_def, out, false);
}

void hdi_interpret_store(hdi_interpreter *x, const uint64_t *pointer, uint32_t type_def, const uint64_t *value) {
    transfer(x, pointer, type_def, (uint64_t *)(uintptr_t)value, true);
}

static uint32_t pointee(const hdi_interpreter *x, uint32_t id) { return hdi_interpret_type(x, id)->element; }

static void copy(hdi_interpreter *x, const uint32_t *words) {
    enum { MOST = 64 };
    const uint32_t type_def = pointee(x, words[1]);
    const uint64_t count = hdi_interpret_cells_of(x->machine, type_def);
    uint64_t few[MOST];
    uint64_t *room = count <= MOST ? few : x->phis; /* made large enough */
    load(x, hdi_interpret_id(x, words[2]), type_def, room);
    hdi_interpret_store(x, hdi_interpret_id(x, words[1]), type_def, room);
}

static void access_chain(hdi_interpreter *x, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(x->m, inst);
    const uint64_t *base = hdi_interpret_id(x, words[3]);
    uint64_t *out = hdi_interpret_id(x, words[2]);
    const uint32_t storage = hdi_interpret_type(x, words[3])->storage;
    uint32_t type_def = pointee(x, words[3]);
    place at = { base[HDI_POINTER_OFFSET], base[HDI_POINTER_STEP], base[HDI_POINTER_MATRIX] };
    for (uint32_t i = 4; i < words[0] >> 16; i++) {
        const hdi_spirv_type *type = hdi_interpret_type(x, words[i]);
        const uint64_t index = type->is_signed
                                   ? (uint64_t)hdi_number_signed(*hdi_interpret_id(x, words[i]), type->width)
                                   : *hdi_interpret_id(x, words[i]);
        if (is_bytes(storage)) at = part_of(x->m, at, &type_def, index);
        else at.offset += hdi_interpret_part(x->machine, &type_def, index);
    }
    out[HDI_POINTER_ROOT] = base[HDI_POINTER_ROOT];
    out[HDI_POINTER_OFFSET] = at.offset;
    out[HDI_POINTER_STEP] = at.step;
    out[HDI_POINTER_MATRIX] = at.matrix;
}

static void array_length(hdi_interpreter *x, const uint32_t *words) {
    const uint64_t *pointer = hdi_interpret_id(x, words[3]);
    uint32_t part = pointee(x, words[3]);
    const uint64_t count = bytes_of(x, (uint32_t)pointer[HDI_POINTER_ROOT]).count;
    const place at = part_of(x->m, (place){ pointer[HDI_POINTER_OFFSET], 0, 0 }, &part, words[4]);
    const uint32_t stride = hdi_spirv_decor_of(x->m, part)->array_stride;
    *hdi_interpret_id(x, words[2]) = count > at.offset && stride ? (uint32_t)((count - at.offset) / stride) : 0;
}

/* ---- atomics ---- */

/* What is there after the operation. */
static uint64_t change(uint32_t opcode, uint64_t was, uint64_t value, uint64_t compared, uint32_t width) {
    const int64_t x = hdi_number_signed(was, width), y = hdi_number_signed(value, width);
    switch (opcode) {
    case SpvOpAtomicLoad: return was;
    case SpvOpAtomicStore: case SpvOpAtomicExchange: return value;
    case SpvOpAtomicCompareExchange: return was == compared ? value : was;
    case SpvOpAtomicIIncrement: return (was + 1) & hdi_number_mask(width);
    case SpvOpAtomicIDecrement: return (was - 1) & hdi_number_mask(width);
    case SpvOpAtomicIAdd: return (was + value) & hdi_number_mask(width);
    case SpvOpAtomicISub: return (was - value) & hdi_number_mask(width);
    case SpvOpAtomicSMin: return x < y ? was : value;
    case SpvOpAtomicSMax: return x > y ? was : value;
    case SpvOpAtomicUMin: return was < value ? was : value;
    case SpvOpAtomicUMax: return was > value ? was : value;
    case SpvOpAtomicAnd: return was & value;
    case SpvOpAtomicOr: return was | value;
    case SpvOpAtomicXor: return was ^ value;
    default: return hdi_number_bits(hdi_number_float(was, width) + hdi_number_float(value, width), width); /* FAdd */
    }
}

/* Beside other workgroups: tried until nobody came between. Returns what was there. */
static uint64_t change_bytes(uint32_t opcode, uint8_t *at, uint64_t value, uint64_t compared, uint32_t width) {
    if (width == 32) {
        uint32_t *word = (uint32_t *)(void *)at, was = __atomic_load_n(word, __ATOMIC_SEQ_CST);
        while (!__atomic_compare_exchange_n(word, &was, (uint32_t)change(opcode, was, value, compared, width), false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
        return was;
    }
    uint64_t *word = (uint64_t *)(void *)at, was = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &was, change(opcode, was, value, compared, width), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return was;
}

static void atomic(hdi_interpreter *x, const uint32_t *words) {
    const uint32_t opcode = words[0] & 0xFFFF, first = opcode == SpvOpAtomicStore ? 1 : 3;
    const bool exchange = opcode == SpvOpAtomicCompareExchange;
    const uint64_t *pointer = hdi_interpret_id(x, words[first]);
    const uint32_t type_def = pointee(x, words[first]), width = hdi_spirv_type_at(x->m, type_def)->width,
                   length = words[0] >> 16;
    const uint32_t value_at = first + (exchange ? 4 : 3), root = (uint32_t)pointer[HDI_POINTER_ROOT];
    const uint64_t value = length > value_at ? *hdi_interpret_id(x, words[value_at]) : 0;
    const uint64_t compared = exchange ? *hdi_interpret_id(x, words[8]) : 0;
    uint64_t was = 0, *out = first == 3 ? hdi_interpret_id(x, words[2]) : NULL;
    if (is_bytes(hdi_spirv_type_of(x->m, root)->storage)) {
        uint8_t *number = number_at(bytes_of(x, root), pointer[HDI_POINTER_OFFSET], width / 8);
        if (number && (uintptr_t)number % (width / 8) == 0) was = change_bytes(opcode, number, value, compared, width);
    } else {
        load(x, pointer, type_def, &was);
        const uint64_t now = change(opcode, was, value, compared, width);
        hdi_interpret_store(x, pointer, type_def, &now);
    }
    if (out) *out = was;
}

/* ---- all of it ---- */

void hdi_interpret_memory(hdi_interpreter *x, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(x->m, inst), opcode = words[0] & 0xFFFF;
    switch (opcode) {
    case SpvOpLoad:
        load(x, hdi_interpret_id(x, words[3]), hdi_spirv_find(x->m, words[1]),
                           hdi_interpret_id(x, words[2]));
        break;
    case SpvOpStore:
        hdi_interpret_store(x, hdi_interpret_id(x, words[1]), pointee(x, words[1]), hdi_interpret_id(x, words[2]));
        break;
    case SpvOpCopyMemory: copy(x, words); break;
    case SpvOpAccessChain: case SpvOpInBoundsAccessChain: access_chain(x, inst); break;
    case SpvOpArrayLength: array_length(x, words); break;
    case SpvOpVariable: { /* of a function: it may begin with a value */
        const uint64_t *pointer = hdi_interpret_id(x, words[2]);
        if (words[0] >> 16 > 4) hdi_interpret_store(x, pointer, pointee(x, words[2]), hdi_interpret_id(x, words[4]));
        break;
    }
    default: atomic(x, words); break;
    }
}

/* ---- built-in inputs ---- */

void hdi_interpret_inputs(hdi_interpreter *x, uint32_t number) {
    const hdi_spirv_machine *machine = x->machine;
    const uint32_t *size = machine->info.workgroup, *groups = x->launch->groups, lanes = machine->lanes,
                   lane = number % lanes;
    const uint32_t local[3] = { number % size[0], number / size[0] % size[1], number / size[0] / size[1] };
    for (uint32_t def = 1; def < x->m->def_count; def++) {
        if (hdi_spirv_def_opcode(x->m, def) != SpvOpVariable ||
            hdi_spirv_type_of(x->m, def)->storage != SpvStorageClassInput)
            continue;
        uint64_t *out = x->self->cells + machine->memory[def];
        const uint32_t builtin = hdi_spirv_decor_of(x->m, def)->builtin;
        const uint64_t bit = UINT64_C(1) << lane;
        uint64_t mask = 0;
        switch (builtin) {
        case SpvBuiltInNumWorkgroups: for (int i = 0; i < 3; i++) out[i] = groups[i]; break;
        case SpvBuiltInWorkgroupId: for (int i = 0; i < 3; i++) out[i] = x->group[i]; break;
        case SpvBuiltInLocalInvocationId: for (int i = 0; i < 3; i++) out[i] = local[i]; break;
        case SpvBuiltInGlobalInvocationId:
            for (int i = 0; i < 3; i++) out[i] = (uint32_t)(x->group[i] * size[i] + local[i]);
            break;
        case SpvBuiltInLocalInvocationIndex: *out = number; break;
        case SpvBuiltInSubgroupSize: *out = lanes; break;
        case SpvBuiltInNumSubgroups: *out = hdi_divide_up(machine->invocations, lanes); break;
        case SpvBuiltInSubgroupId: *out = number / lanes; break;
        case SpvBuiltInSubgroupLocalInvocationId: *out = lane; break;
        case SpvBuiltInSubgroupEqMask: mask = bit; break;
        case SpvBuiltInSubgroupGeMask: mask = ~(bit - 1); break;
        case SpvBuiltInSubgroupGtMask: mask = ~(bit - 1) & ~bit; break;
        case SpvBuiltInSubgroupLeMask: mask = (bit - 1) | bit; break;
        default: mask = bit - 1; break; /* LtMask */
        }
        if (builtin < SpvBuiltInSubgroupEqMask || builtin > SpvBuiltInSubgroupLtMask) continue;
        mask &= hdi_number_mask(lanes);
        out[0] = (uint32_t)mask;
        out[1] = mask >> 32;
    }
}
