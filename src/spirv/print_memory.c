/* print_memory.c: what goes through pointers. A pointer into a variable is a C expression, s12.e[v5].x; one into a
 * buffer or the push constants is an offset in bytes, computed from the strides and offsets that the module states, and
 * values are read and written number by number, or a vector at a time where its alignment is sure. */
#include "spirv/print.h"

typedef hdi_spirv_place place;

static bool is_push(const place *at) { return at->storage == SpvStorageClassPushConstant; }

/* ---- variables ---- */

static const char *space_of(const place *at) {
    return hdi_spirv_is_bytes(at->storage) ? "GLOBAL" : at->storage == SpvStorageClassWorkgroup ? "LOCAL" : "PRIVATE";
}

/* The C expression of a place in a variable. A component by an unknown index goes through a pointer to scalars. */
static void put_lvalue(hdi_spirv_printer *p, const place *at) {
    const hdi_spirv_module *m = p->m;
    if (hdi_spirv_is_wgsl(p)) {
        hdi_spirv_wgsl_put_lvalue(p, at);
        return;
    }
    uint32_t type_def = hdi_spirv_type_of(m, at->root)->element, last = at->index_count;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    const char *close = "";
    for (uint32_t i = 0, def = type_def; i < at->index_count; i++) { /* is the last index one of those? */
        uint64_t number = 0;
        const hdi_spirv_type *whole = hdi_spirv_type_at(m, def);
        if (hdi_spirv_is_vector(whole) && !hdi_spirv_is_known(p, at->index[i])) {
            hdi_spirv_put(p, "((%s ", space_of(at));
            if (whole->kind == 'b') hdi_spirv_put(p, "bool");
            else hdi_spirv_put_scalar_name(p, whole, false);
            hdi_spirv_put(p, " *)&");
            close = ")";
            last = i;
        }
        hdi_spirv_known(m, at->index[i], &number);
        def = hdi_spirv_part_type(m, def, whole->kind == 's' ? number : 0);
    }
    hdi_spirv_put_name(p, at->root);
    for (uint32_t i = 0; i < at->index_count; i++) {
        type = hdi_spirv_type_at(m, type_def);
        uint64_t number = hdi_spirv_is_known(p, at->index[i]) ? hdi_spirv_bits(p, at->index[i]) : 0;
        if (i == last) hdi_spirv_put(p, "%s[%v]", close, at->index[i]);
        else if (type->kind == 's' || hdi_spirv_is_vector(type)) hdi_spirv_put_part(p, type_def, (uint32_t)number);
        else hdi_spirv_put(p, ".%c[%v]", type->kind == 'm' ? 'c' : type->kind == 'c' ? 'r' : 'e', at->index[i]);
        type_def = hdi_spirv_part_type(m, type_def, type->kind == 's' ? number : 0);
    }
}

bool hdi_spirv_put_variable(hdi_spirv_printer *p, uint32_t def) {
    const hdi_spirv_module *m = p->m;
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_wgsl_put_variable(p, def);
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, def);
    bool shared = pointer->storage == SpvStorageClassWorkgroup;
    hdi_spirv_line(p);
    if (shared && p->printed->shared_at_launch) { /* its part of the room */
        p->shared_at = hdi_spirv_shared_place(p, def, p->shared_at);
        hdi_spirv_put(p, "%t &", pointer->element);
        hdi_spirv_put_name(p, def);
        hdi_spirv_put(p, " = *(%t *)(shared_room + %Uu)", pointer->element, p->shared_at);
        p->shared_at += hdi_spirv_type_at(m, pointer->element)->plain_bytes;
        hdi_spirv_end(p);
        return true;
    }
    hdi_spirv_put(p, shared ? "SHARED %t " : "%t ", pointer->element);
    hdi_spirv_put_name(p, def);
    if (hdi_spirv_length(m, m->defs[def].inst) > 4)
        hdi_spirv_put(p, " = %v", hdi_spirv_find(m, hdi_spirv_def_words(m, def)[4]));
    hdi_spirv_end(p);
    return true;
}

/* ---- bytes ---- */

/* The offset in units of `unit` bytes, which divide it. */
static void put_offset(hdi_spirv_printer *p, const place *at, uint64_t more, uint32_t unit) {
    uint64_t fixed = (at->bytes + more) / unit;
    bool first = true;
    if (fixed || at->term_count == 0) {
        hdi_spirv_put(p, fixed > UINT32_MAX ? "U64(%U)" : "%Uu", fixed);
        first = false;
    }
    for (uint32_t i = 0; i < at->term_count; i++) {
        hdi_spirv_put(p, first ? "" : " + ");
        if (is_push(at)) hdi_spirv_put(p, "%v * %uu", at->term[i], at->stride[i] / unit);
        else hdi_spirv_put(p, "(u64)%v * %uu", at->term[i], at->stride[i] / unit);
        first = false;
    }
}

static void put_address(hdi_spirv_printer *p, const place *at, uint64_t more) {
    hdi_spirv_put(p, "b%u + (", hdi_spirv_decor_of(p->m, at->root)->binding);
    put_offset(p, at, more, 1);
    hdi_spirv_put(p, ")");
}

/* A number at the place, `more` bytes on. Push constants are words: narrow ones are shifted out. */
static bool put_number(hdi_spirv_printer *p, const place *at, const hdi_spirv_type *type, uint64_t more) {
    if (!is_push(at)) {
        hdi_spirv_put(p, at->is_volatile ? "AT_VOLATILE(" : "AT(");
        hdi_spirv_put_scalar_name(p, type, false);
        hdi_spirv_put(p, ", ");
        put_address(p, at, more);
        hdi_spirv_put(p, ")");
        return true;
    }
    for (uint32_t i = 0; i < at->term_count; i++)
        if (at->stride[i] % 4)
            return hdi_spirv_unsupported(p->m, p->m->defs[at->root].inst,
                                         "an index into push constants of 8 or 16 bits");
    uint32_t shift = (uint32_t)((at->bytes + more) % 4 * 8), words = type->width == 64 ? 2 : 1;
    if (type->kind == 'f' && type->width > 16) hdi_spirv_put(p, "bits_f%u(", type->width);
    if (type->width < 32) hdi_spirv_put(p, "((u%u)(", type->width);
    for (uint32_t i = 0; i < words; i++) {
        hdi_spirv_put(p, words == 2 ? i ? " | (u64)" : "((u64)" : "");
        hdi_spirv_put(p, "launch.w[3u + ");
        put_offset(p, at, more + 4 * i, 4);
        hdi_spirv_put(p, i ? "] << 32u)" : "]");
    }
    if (type->width < 32) hdi_spirv_put(p, " >> %uu))", shift);
    if (type->kind == 'f' && type->width > 16) hdi_spirv_put(p, ")");
    return true;
}

/* The value at the place as an expression. Types nest at most HDI_SPIRV_MAX_TYPE_DEPTH deep. */
static bool put_read(hdi_spirv_printer *p, const place *at, uint64_t more) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, at->type);
    bool vector = hdi_spirv_is_vector(type);
    if (type->count == 1 && strchr("fi", type->kind)) return put_number(p, at, type, more);
    if (vector && hdi_spirv_is_whole(at, type, more)) {
        hdi_spirv_put(p, "AT(%t, ", at->type);
        put_address(p, at, more);
        hdi_spirv_put(p, ")");
        return true;
    }
    hdi_spirv_open_value(p, at->type);
    for (uint32_t i = 0; i < type->count && !p->stop; i++) {
        place part = *at;
        uint64_t offset = hdi_spirv_part_offset(p->m, &part, i);
        part.type = hdi_spirv_part_type(p->m, at->type, i);
        if (i) hdi_spirv_put(p, ", ");
        if (!put_read(p, &part, more + offset)) return false;
    }
    hdi_spirv_close_value(p, at->type);
    return true;
}

void hdi_spirv_put_source(hdi_spirv_printer *p, const hdi_spirv_source *from) {
    uint32_t type_def = p->m->defs[p->same[from->value]].type;
    /* of a value that may be no variable */
    if (from->depth == 1 && hdi_spirv_is_vector(hdi_spirv_type_at(p->m, type_def))) {
        hdi_spirv_put_component(p, from->value, from->path[0]);
        return;
    }
    hdi_spirv_put(p, "%v", from->value);
    for (uint32_t i = 0; i < from->depth; i++) {
        hdi_spirv_put_part(p, type_def, from->path[i]);
        type_def = hdi_spirv_part_type(p->m, type_def, from->path[i]);
    }
}

/* Writes a value, statement by statement. */
static bool put_write(hdi_spirv_printer *p, const place *at, uint64_t more, const hdi_spirv_source *from) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, at->type);
    bool vector = hdi_spirv_is_vector(type), number = type->count == 1 && strchr("fi", type->kind);
    if (number || (vector && hdi_spirv_is_whole(at, type, more))) {
        hdi_spirv_line(p);
        if (number) put_number(p, at, type, more);
        else hdi_spirv_put(p, "AT(%t, ", at->type), put_address(p, at, more), hdi_spirv_put(p, ")");
        hdi_spirv_put(p, " = ");
        hdi_spirv_put_source(p, from);
        hdi_spirv_end(p);
        return true;
    }
    for (uint32_t i = 0; i < type->count && !p->stop; i++) {
        place part = *at;
        uint64_t offset = hdi_spirv_part_offset(p->m, &part, i);
        part.type = hdi_spirv_part_type(p->m, at->type, i);
        hdi_spirv_source further = *from;
        further.path[further.depth++] = i;
        if (!put_write(p, &part, more + offset, &further)) return false;
    }
    return true;
}

/* ---- loads and stores ---- */

static bool fits(hdi_spirv_printer *p, uint32_t inst, const place *at) {
    return !hdi_spirv_is_bytes(at->storage) ||
           hdi_spirv_number_count(p->m, at->type, HDI_SPIRV_MAX_COPIED) <= HDI_SPIRV_MAX_COPIED ||
           hdi_spirv_unsupported(p->m, inst, "a copy of more than %u numbers from or to a buffer at once",
                                 HDI_SPIRV_MAX_COPIED);
}

static bool read_value(hdi_spirv_printer *p, uint32_t inst, const place *at) {
    if (!fits(p, inst, at)) return false;
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_wgsl_read(p, inst, at);
    if (hdi_spirv_is_bytes(at->storage)) return put_read(p, at, 0);
    put_lvalue(p, at);
    return true;
}

static bool load(hdi_spirv_printer *p, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    place at;
    if (!hdi_spirv_find_place(p, hdi_spirv_find(p->m, words[3]), &at)) return false;
    at.is_volatile |= words[0] >> 16 > 4 && words[4] & 0x11; /* volatile, or made visible */
    hdi_spirv_put_result(p, hdi_spirv_find(p->m, words[2]));
    bool fine = read_value(p, inst, &at);
    hdi_spirv_end(p);
    return fine;
}

static bool store(hdi_spirv_printer *p, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t value = hdi_spirv_find(p->m, words[2]);
    place at;
    if (!hdi_spirv_find_place(p, hdi_spirv_find(p->m, words[1]), &at)) return false;
    at.is_volatile |= words[0] >> 16 > 3 && words[3] & 9;
    if (!fits(p, inst, &at)) return false;
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_wgsl_store(p, inst, &at, value);
    if (hdi_spirv_is_bytes(at.storage)) return put_write(p, &at, 0, &(hdi_spirv_source){ .value = value });
    hdi_spirv_line(p);
    put_lvalue(p, &at);
    hdi_spirv_put(p, " = %v;\n", value);
    return true;
}

/* Like a load and a store, by way of a variable in a scope of its own. */
static bool copy(hdi_spirv_printer *p, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    place to, from;
    if (!hdi_spirv_find_place(p, hdi_spirv_find(p->m, words[1]), &to) ||
        !hdi_spirv_find_place(p, hdi_spirv_find(p->m, words[2]), &from))
        return false;
    if (hdi_spirv_is_bytes(to.storage) || p->facts[to.root] & HDI_SPIRV_ATOMIC)
        return hdi_spirv_unsupported(p->m, inst, "a copy into a buffer or among atomics");
    hdi_spirv_line(p);
    put_lvalue(p, &to);
    hdi_spirv_put(p, " = ");
    bool fine = read_value(p, inst, &from);
    hdi_spirv_end(p);
    return fine;
}

/* (bytes of the binding - offset of the array) / stride */
static bool array_length(hdi_spirv_printer *p, uint32_t inst) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    place at;
    if (!hdi_spirv_find_place(p, hdi_spirv_find(m, words[3]), &at)) return false;
    uint32_t binding = hdi_spirv_decor_of(m, at.root)->binding, array = hdi_spirv_part_type(m, at.type, words[4]);
    if (!hdi_spirv_is_wgsl(p)) p->has_length |= 1u << binding; /* WGSL asks the binding itself */
    hdi_spirv_put(p, hdi_spirv_is_wgsl(p) ? "(arrayLength(&b%u) * 4u - %uu) / %uu" : "(u32)((length%u - %uu) / %uu)",
                  binding, hdi_spirv_decor_of(m, at.type)->members[words[4]].offset,
                  hdi_spirv_decor_of(m, array)->array_stride);
    return true;
}

bool hdi_spirv_put_memory(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    switch (opcode) {
    case SpvOpLoad: return load(p, inst);
    case SpvOpStore: return store(p, inst);
    case SpvOpCopyMemory: return copy(p, inst);
    default: return array_length(p, inst);
    }
}

bool hdi_spirv_put_pointer(hdi_spirv_printer *p, uint32_t pointer, const char *qualifier, const char *type) {
    place at;
    if (!hdi_spirv_find_place(p, pointer, &at)) return false;
    hdi_spirv_put(p, "(%s%s %s *)(", qualifier, space_of(&at), type);
    if (hdi_spirv_is_bytes(at.storage)) {
        put_address(p, &at, 0);
    } else {
        hdi_spirv_put(p, "&");
        put_lvalue(p, &at);
    }
    hdi_spirv_put(p, ")");
    return true;
}

/* ---- atomics ---- */

static const char *atomic_name(uint32_t opcode) {
    switch (opcode) {
    case SpvOpAtomicLoad: return "load";
    case SpvOpAtomicStore: return "store";
    case SpvOpAtomicExchange: return "exchange";
    case SpvOpAtomicCompareExchange: return "compare";
    case SpvOpAtomicIIncrement: case SpvOpAtomicIAdd: return "add";
    case SpvOpAtomicIDecrement: case SpvOpAtomicISub: return "sub";
    case SpvOpAtomicSMin: case SpvOpAtomicUMin: return "min";
    case SpvOpAtomicSMax: case SpvOpAtomicUMax: return "max";
    case SpvOpAtomicAnd: return "and";
    case SpvOpAtomicOr: return "or";
    case SpvOpAtomicXor: return "xor";
    default: return "add_float";
    }
}

/* Does it order other memory accesses too? Then it stands between fences. */
static bool is_ordered(const hdi_spirv_printer *p, uint32_t semantics_id) {
    uint64_t bits = 0;
    hdi_spirv_known(p->m, hdi_spirv_find(p->m, semantics_id), &bits);
    return bits & 0x1E;
}

static void put_fence(hdi_spirv_printer *p, bool ordered) {
    if (!ordered) return;
    hdi_spirv_line(p);
    hdi_spirv_put(p, "FENCE();\n");
}

bool hdi_spirv_put_atomic(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    const hdi_spirv_module *m = p->m;
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_wgsl_put_atomic(p, inst, opcode);
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t at = opcode == SpvOpAtomicStore ? 1 : 3, pointer = hdi_spirv_find(m, words[at]);
    const hdi_spirv_type *type = hdi_spirv_type_at(m, hdi_spirv_type_of(m, pointer)->element);
    bool as_signed = opcode == SpvOpAtomicSMin || opcode == SpvOpAtomicSMax, ordered = is_ordered(p, words[at + 2]);
    bool moved = type->kind == 'f' && opcode != SpvOpAtomicFAddEXT; /* floats that are only moved, as their bits */
    char name[4] = { as_signed ? 'i' : type->kind == 'f' && !moved ? 'f' : 'u', type->width == 64 ? '6' : '3',
                     type->width == 64 ? '4' : '2', 0 };
    hdi_spirv_use_part(p, type->width == 64 ? HDI_SPIRV_PART_ATOMICS64 : HDI_SPIRV_PART_ATOMICS);
    put_fence(p, ordered);
    uint32_t def = opcode == SpvOpAtomicStore ? 0 : hdi_spirv_find(m, words[2]);
    if (def && p->facts[def] & HDI_SPIRV_NEEDED) hdi_spirv_put_result(p, def);
    else hdi_spirv_line(p);
    if (moved && def) hdi_spirv_put(p, "bits_f32(");
    if (as_signed) hdi_spirv_put(p, "(u%u)", type->width);
    hdi_spirv_put(p, "at%s_%s(", type->width == 64 ? "64" : "", atomic_name(opcode));
    if (!hdi_spirv_put_pointer(p, pointer, "volatile ", name)) return false;
    bool steps = opcode == SpvOpAtomicIIncrement || opcode == SpvOpAtomicIDecrement,
         exchange = opcode == SpvOpAtomicCompareExchange;
    if (steps) hdi_spirv_put(p, ", (u%u)1", type->width);
    if (exchange) hdi_spirv_put(p, ", %v", hdi_spirv_find(m, words[8]));
    if (!steps && opcode != SpvOpAtomicLoad)
        hdi_spirv_put(p, moved ? ", f32_bits(%v)" : as_signed ? type->width == 64 ? ", (i64)%v" : ", (i32)%v" : ", %v",
                      hdi_spirv_find(m, words[exchange ? 7 : at + 3]));
    hdi_spirv_put(p, moved && def ? "));\n" : ");\n");
    put_fence(p, ordered);
    return true;
}
