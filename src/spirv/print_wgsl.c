/* print_wgsl.c: what WGSL does another way. A buffer is an array of words, and a word is the least that can be read or
 * written: narrow numbers are shifted out, and written by two atomic operations that touch no bits but theirs, so that
 * neighbours may be written at once. A binding with any atomic operation, narrow write or access that others must see
 * is an array of atomics. Floats lie in buffers as their bits. Vectors are moved by small functions, one for each
 * binding and size. */
#include "spirv/print.h"

typedef hdi_spirv_place place;

enum helper { READ_8 = 1, READ_16 = 2, READ_2 = 4, READ_4 = 8, WRITE_8 = 16, WRITE_16 = 32, WRITE_2 = 64,
              WRITE_4 = 128 };

static uint32_t binding_of(const hdi_spirv_printer *p, const place *at) {
    return hdi_spirv_decor_of(p->m, at->root)->binding;
}
static bool is_push(const place *at) { return at->storage == SpvStorageClassPushConstant; }
static bool is_atomic(const hdi_spirv_printer *p, const place *at) {
    if (hdi_spirv_is_bytes(at->storage)) return p->atomic_bindings >> binding_of(p, at) & 1;
    return p->facts[at->root] & HDI_SPIRV_ATOMIC;
}

/* ---- what has to be atomic ---- */

/* One access; the pointer's place is found without the values of calls, which lead to whole variables of functions
 * only. */
static bool note_access(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    const uint32_t *words = hdi_spirv_words(p->m, inst), length = words[0] >> 16;
    const bool store = opcode == SpvOpStore, load = opcode == SpvOpLoad, operation = hdi_spirv_is_atomic(opcode);
    if (!store && !load && !operation) return true;
    const uint32_t pointer = hdi_spirv_find(p->m, words[store || opcode == SpvOpAtomicStore ? 1 : 3]);
    if (hdi_spirv_def_opcode(p->m, hdi_spirv_root(p->m, pointer)) == SpvOpFunctionParameter)
        return !operation || hdi_spirv_unsupported(p->m, inst, "an atomic operation through a function's parameter");
    place at;
    if (!hdi_spirv_find_place(p, pointer, &at)) return false;
    at.is_volatile |= (store && length > 3 && words[3] & 9) || (load && length > 4 && words[4] & 0x11);
    const bool buffer = at.storage == SpvStorageClassStorageBuffer || at.storage == SpvStorageClassUniform;
    const bool narrow = store && hdi_spirv_type_at(p->m, at.type)->narrow;
    if (buffer && (operation || narrow || at.is_volatile)) p->atomic_bindings |= 1u << binding_of(p, &at);
    if (operation && at.storage == SpvStorageClassWorkgroup) p->facts[at.root] |= HDI_SPIRV_ATOMIC;
    return true;
}

bool hdi_spirv_wgsl_find_atomics(hdi_spirv_printer *p) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t b = 0; b < m->block_count; b++)
        for (uint32_t i = m->blocks[b].inst_first; p->reached[b] && i < m->blocks[b].inst_end; i++)
            if (!note_access(p, i, hdi_spirv_opcode(m, i))) return false;
    return true;
}

/* ---- variables ---- */

/* What atomics are in: words, or arrays of them, without the structs around. */
static bool put_atomic_type(hdi_spirv_printer *p, uint32_t type_def, uint32_t variable) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    if (type->kind == 'a') {
        hdi_spirv_put(p, "array<");
        if (!put_atomic_type(p, type->element, variable)) return false;
        hdi_spirv_put(p, ", %u>", type->count);
        return true;
    }
    if (!strchr("if", type->kind) || type->count != 1 || type->width != 32)
        return hdi_spirv_unsupported(p->m, p->m->defs[variable].inst,
                                     "atomic operations in shared memory on other than 32-bit numbers and arrays of "
                                     "them");
    hdi_spirv_put(p, "atomic<u32>");
    return true;
}

bool hdi_spirv_wgsl_put_variable(hdi_spirv_printer *p, uint32_t def) {
    const hdi_spirv_module *m = p->m;
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, def);
    const bool shared = pointer->storage == SpvStorageClassWorkgroup;
    hdi_spirv_line(p);
    hdi_spirv_put(p, shared ? "var<workgroup> " : "var ");
    hdi_spirv_put_name(p, def);
    hdi_spirv_put(p, ": ");
    if (!(p->facts[def] & HDI_SPIRV_ATOMIC)) hdi_spirv_put(p, "%t", pointer->element);
    else if (!put_atomic_type(p, pointer->element, def)) return false;
    if (!shared && hdi_spirv_length(m, m->defs[def].inst) > 4)
        hdi_spirv_put(p, " = %v", hdi_spirv_find(m, hdi_spirv_def_words(m, def)[4]));
    hdi_spirv_end(p);
    return true;
}

/* s12.e[v5].x */
void hdi_spirv_wgsl_put_lvalue(hdi_spirv_printer *p, const place *at) {
    uint32_t type_def = hdi_spirv_type_of(p->m, at->root)->element;
    hdi_spirv_put_name(p, at->root);
    for (uint32_t i = 0; i < at->index_count; i++) {
        const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
        const bool known = hdi_spirv_is_known(p, at->index[i]);
        const uint64_t number = known ? hdi_spirv_bits(p, at->index[i]) : 0;
        if (p->facts[at->root] & HDI_SPIRV_ATOMIC) hdi_spirv_put(p, "[%v]", at->index[i]);
        else if (type->kind == 's' || (hdi_spirv_is_vector(type) && known))
            hdi_spirv_put_part(p, type_def, (uint32_t)number);
        else hdi_spirv_put(p, hdi_spirv_is_vector(type) ? "[%v]" : type->kind == 'm' ? ".c[%v]" : ".e[%v]",
                           at->index[i]);
        type_def = hdi_spirv_part_type(p->m, type_def, type->kind == 's' ? number : 0);
    }
}

bool hdi_spirv_wgsl_put_input(hdi_spirv_printer *p, uint32_t def) {
    const uint32_t *size = p->printed->info.workgroup;
    hdi_spirv_put(p, "  let l%u = ", def);
    switch (hdi_spirv_decor_of(p->m, def)->builtin) {
    case SpvBuiltInNumWorkgroups: hdi_spirv_put(p, "group_count;\n"); return true;
    case SpvBuiltInWorkgroupId: hdi_spirv_put(p, "group_id + launch[0].xyz;\n"); return true;
    case SpvBuiltInLocalInvocationId: hdi_spirv_put(p, "local_id;\n"); return true;
    case SpvBuiltInLocalInvocationIndex: hdi_spirv_put(p, "local_index;\n"); return true;
    case SpvBuiltInGlobalInvocationId:
        hdi_spirv_put(p, "(group_id + launch[0].xyz) * u32x3(%uu, %uu, %uu) + local_id;\n", size[0], size[1], size[2]);
        return true;
    default: return hdi_spirv_unsupported(p->m, p->m->defs[def].inst, "WGSL has no subgroups here");
    }
}

/* ---- words of buffers ---- */

/* The offset in units of `unit` bytes, which divide it. */
static void put_offset(hdi_spirv_printer *p, const place *at, uint64_t more, uint32_t unit) {
    const uint32_t fixed = (uint32_t)((at->bytes + more) / unit);
    if (fixed || at->term_count == 0) hdi_spirv_put(p, "%uu", fixed);
    for (uint32_t i = 0; i < at->term_count; i++) {
        const uint32_t stride = at->stride[i] / unit;
        hdi_spirv_put(p, fixed || i ? " + %v" : "%v", at->term[i]);
        if (stride != 1) hdi_spirv_put(p, " * %uu", stride);
    }
}

static bool is_by_words(const place *at, uint64_t more) {
    bool fits = (at->bytes + more) % 4 == 0;
    for (uint32_t i = 0; i < at->term_count; i++) fits &= at->stride[i] % 4 == 0;
    return fits;
}

/* "read4_b0(": a function of the binding, which the text then needs. */
static void put_helper(hdi_spirv_printer *p, const place *at, enum helper helper) {
    static const char *const names[] = { "read8", "read16", "read2", "read4", "write8", "write16", "write2", "write4" };
    uint32_t i = 0;
    while ((uint32_t)helper >> i != 1) i++;
    p->helpers[binding_of(p, at)] |= (uint8_t)helper;
    hdi_spirv_put(p, "%s_b%u(", names[i], binding_of(p, at));
}

/* Push constants: words of the launch behind the first four. */
static bool put_push(hdi_spirv_printer *p, const place *at, const hdi_spirv_type *type, uint64_t more) {
    for (uint32_t i = 0; i < at->term_count; i++)
        if (at->stride[i] % 4)
            return hdi_spirv_unsupported(p->m, p->m->defs[at->root].inst,
                                         "an index into push constants of 8 or 16 bits");
    const uint32_t shift = (uint32_t)((at->bytes + more) % 4 * 8);
    if (type->width < 32) hdi_spirv_put(p, "u%u_of(", type->width);
    hdi_spirv_put(p, "launch_word(");
    put_offset(p, at, more / 4 * 4 + 16, 4);
    hdi_spirv_put(p, ")");
    if (type->width < 32) hdi_spirv_put(p, " >> %uu)", shift);
    return true;
}

/* A number's bits. */
static bool put_word(hdi_spirv_printer *p, const place *at, const hdi_spirv_type *type, uint64_t more) {
    if (type->width == 64) hdi_spirv_put_scalar_name(p, type, false); /* which refuses it */
    if (is_push(at)) return put_push(p, at, type, more);
    if (type->width < 32) {
        put_helper(p, at, type->width == 8 ? READ_8 : READ_16);
        put_offset(p, at, more, 1);
        hdi_spirv_put(p, ")");
        return true;
    }
    if (!is_by_words(at, more))
        return hdi_spirv_unsupported(p->m, p->m->defs[at->root].inst,
                                     "a number of 32 bits that does not begin at a word");
    hdi_spirv_put(p, is_atomic(p, at) ? "atomicLoad(&b%u[" : "b%u[", binding_of(p, at));
    put_offset(p, at, more, 4);
    hdi_spirv_put(p, is_atomic(p, at) ? "])" : "]");
    return true;
}

static bool is_moved_whole(const place *at, const hdi_spirv_type *type, uint64_t more) {
    return hdi_spirv_is_vector(type) && type->width == 32 && type->count != 3 && at->step == 0 && !is_push(at) &&
           is_by_words(at, more);
}

/* The value at the place as an expression. Types nest at most HDI_SPIRV_MAX_TYPE_DEPTH deep. */
static bool put_read(hdi_spirv_printer *p, const place *at, uint64_t more) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, at->type);
    const bool floats = type->kind == 'f' && type->width == 32;
    if (type->count == 1 && strchr("fi", type->kind)) {
        if (floats) hdi_spirv_put(p, "bits_f32(");
        if (!put_word(p, at, type, more)) return false;
        if (floats) hdi_spirv_put(p, ")");
        return true;
    }
    if (is_moved_whole(at, type, more)) {
        if (floats) hdi_spirv_put(p, "bitcast<%t>(", at->type);
        put_helper(p, at, type->count == 2 ? READ_2 : READ_4);
        put_offset(p, at, more, 4);
        hdi_spirv_put(p, floats ? "))" : ")");
        return true;
    }
    hdi_spirv_open_value(p, at->type);
    for (uint32_t i = 0; i < type->count && !p->stop; i++) {
        place part = *at;
        const uint64_t offset = hdi_spirv_part_offset(p->m, &part, i);
        part.type = hdi_spirv_part_type(p->m, at->type, i);
        if (i) hdi_spirv_put(p, ", ");
        if (!put_read(p, &part, more + offset)) return false;
    }
    hdi_spirv_close_value(p, at->type);
    return true;
}

static bool put_write_number(hdi_spirv_printer *p, const place *at, const hdi_spirv_type *type, uint64_t more,
                             const hdi_spirv_source *from) {
    if (type->width == 64) hdi_spirv_put_scalar_name(p, type, false);
    if (type->width == 32 && !is_by_words(at, more))
        return hdi_spirv_unsupported(p->m, p->m->defs[at->root].inst,
                                     "a number of 32 bits that does not begin at a word");
    hdi_spirv_line(p);
    if (type->width < 32) {
        put_helper(p, at, type->width == 8 ? WRITE_8 : WRITE_16);
        put_offset(p, at, more, 1);
        hdi_spirv_put(p, ", ");
    } else {
        hdi_spirv_put(p, is_atomic(p, at) ? "atomicStore(&b%u[" : "b%u[", binding_of(p, at));
        put_offset(p, at, more, 4);
        hdi_spirv_put(p, is_atomic(p, at) ? "], " : "] = ");
    }
    const bool floats = type->kind == 'f' && type->width == 32;
    if (floats) hdi_spirv_put(p, "f32_bits(");
    hdi_spirv_put_source(p, from);
    if (floats) hdi_spirv_put(p, ")");
    hdi_spirv_put(p, type->width < 32 || is_atomic(p, at) ? ");\n" : ";\n");
    return true;
}

/* Writes a value, statement by statement. */
static bool put_write(hdi_spirv_printer *p, const place *at, uint64_t more, const hdi_spirv_source *from) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, at->type);
    if (type->count == 1 && strchr("fi", type->kind)) return put_write_number(p, at, type, more, from);
    if (is_moved_whole(at, type, more)) {
        hdi_spirv_line(p);
        put_helper(p, at, type->count == 2 ? WRITE_2 : WRITE_4);
        put_offset(p, at, more, 4);
        hdi_spirv_put(p, type->kind == 'f' ? ", bitcast<u32x%u>(" : ", (", type->count);
        hdi_spirv_put_source(p, from);
        hdi_spirv_put(p, "));\n");
        return true;
    }
    for (uint32_t i = 0; i < type->count && !p->stop; i++) {
        place part = *at;
        const uint64_t offset = hdi_spirv_part_offset(p->m, &part, i);
        part.type = hdi_spirv_part_type(p->m, at->type, i);
        hdi_spirv_source further = *from;
        further.path[further.depth++] = i;
        if (!put_write(p, &part, more + offset, &further)) return false;
    }
    return true;
}

/* ---- loads and stores ---- */

/* Atomics are read and written one by one. */
static bool is_one_word(hdi_spirv_printer *p, uint32_t inst, const place *at) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, at->type);
    return (strchr("fi", type->kind) && type->count == 1) ||
           hdi_spirv_unsupported(p->m, inst, "an array of atomics as a whole");
}

bool hdi_spirv_wgsl_read(hdi_spirv_printer *p, uint32_t inst, const place *at) {
    if (hdi_spirv_is_bytes(at->storage)) return put_read(p, at, 0);
    const bool atomic = is_atomic(p, at), floats = atomic && hdi_spirv_type_at(p->m, at->type)->kind == 'f';
    hdi_spirv_put(p, floats ? "bits_f32(atomicLoad(&" : atomic ? "atomicLoad(&" : "");
    hdi_spirv_wgsl_put_lvalue(p, at);
    hdi_spirv_put(p, floats ? "))" : atomic ? ")" : "");
    return !atomic || is_one_word(p, inst, at);
}

bool hdi_spirv_wgsl_store(hdi_spirv_printer *p, uint32_t inst, const place *at, uint32_t value) {
    if (hdi_spirv_is_bytes(at->storage)) return put_write(p, at, 0, &(hdi_spirv_source){ .value = value });
    const bool atomic = is_atomic(p, at), floats = atomic && hdi_spirv_type_at(p->m, at->type)->kind == 'f';
    hdi_spirv_line(p);
    if (atomic) hdi_spirv_put(p, "atomicStore(&");
    hdi_spirv_wgsl_put_lvalue(p, at);
    hdi_spirv_put(p, atomic ? floats ? ", f32_bits(%v));\n" : ", %v);\n" : " = %v;\n", value);
    return !atomic || is_one_word(p, inst, at);
}

/* ---- atomics ---- */

static void put_pointer(hdi_spirv_printer *p, const place *at) {
    hdi_spirv_put(p, "&");
    if (!hdi_spirv_is_bytes(at->storage)) {
        hdi_spirv_wgsl_put_lvalue(p, at);
        return;
    }
    hdi_spirv_put(p, "b%u[", binding_of(p, at));
    put_offset(p, at, 0, 4);
    hdi_spirv_put(p, "]");
}

/* WGSL's own; NULL: one that is made of comparing and exchanging. */
static const char *function_of(uint32_t opcode) {
    switch (opcode) {
    case SpvOpAtomicLoad: return "atomicLoad";
    case SpvOpAtomicStore: return "atomicStore";
    case SpvOpAtomicExchange: return "atomicExchange";
    case SpvOpAtomicIIncrement: case SpvOpAtomicIAdd: return "atomicAdd";
    case SpvOpAtomicIDecrement: case SpvOpAtomicISub: return "atomicSub";
    case SpvOpAtomicUMin: return "atomicMin";
    case SpvOpAtomicUMax: return "atomicMax";
    case SpvOpAtomicAnd: return "atomicAnd";
    case SpvOpAtomicOr: return "atomicOr";
    case SpvOpAtomicXor: return "atomicXor";
    default: return NULL;
    }
}

/* What is written in the place of `was`. */
static const char *made_of(uint32_t opcode) {
    switch (opcode) {
    case SpvOpAtomicSMin: return "u32(min(i32(was), i32(%v)))";
    case SpvOpAtomicSMax: return "u32(max(i32(was), i32(%v)))";
    case SpvOpAtomicFAddEXT: return "f32_bits(bits_f32(was) + %v)";
    default: return "%v";
    }
}

/* Exchanging may fail without a reason: again, until it went through, or what is there is not what it was compared
 * with. */
static bool put_exchange(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode, uint32_t def, const place *at,
                         bool floats) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    const bool compares = opcode == SpvOpAtomicCompareExchange;
    const uint32_t value = hdi_spirv_find(p->m, words[compares ? 7 : 6]);
    if (def && !(p->facts[def] & HDI_SPIRV_FAR)) {
        hdi_spirv_line(p);
        hdi_spirv_put_declared(p, p->m->defs[def].type, 'v', def);
        hdi_spirv_end(p);
    }
    hdi_spirv_line(p);
    hdi_spirv_put(p, "loop { let was = ");
    if (compares) hdi_spirv_put(p, "%v", hdi_spirv_find(p->m, words[8]));
    else hdi_spirv_put(p, "atomicLoad("), put_pointer(p, at), hdi_spirv_put(p, ")");
    hdi_spirv_put(p, "; let now = atomicCompareExchangeWeak(");
    put_pointer(p, at);
    hdi_spirv_put(p, ", was, ");
    hdi_spirv_put(p, made_of(opcode), value);
    hdi_spirv_put(p, "); ");
    if (def) hdi_spirv_put(p, floats ? "v%u = bits_f32(now.old_value); " : "v%u = now.old_value; ", def);
    hdi_spirv_put(p, compares ? "if (now.exchanged || now.old_value != was) { break; } }\n"
                              : "if (now.exchanged) { break; } }\n");
    return true;
}

bool hdi_spirv_wgsl_put_atomic(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst), first = opcode == SpvOpAtomicStore ? 1 : 3;
    uint64_t semantics = 0;
    place at;
    if (!hdi_spirv_find_place(p, hdi_spirv_find(m, words[first]), &at)) return false;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, at.type);
    hdi_spirv_known(m, hdi_spirv_find(m, words[first + 2]), &semantics);
    if (semantics & 0x1E) return hdi_spirv_unsupported(p->m, inst, "WGSL has no atomic operations that order others");
    if (type->width != 32 || !is_by_words(&at, 0))
        return hdi_spirv_unsupported(p->m, inst, "WGSL has atomic operations on words of 32 bits only");
    const char *function = function_of(opcode);
    uint32_t def = first == 1 ? 0 : hdi_spirv_find(m, words[2]);
    if (def && !(p->facts[def] & HDI_SPIRV_NEEDED)) def = 0;
    const bool floats = type->kind == 'f';
    if (!function) return put_exchange(p, inst, opcode, def, &at, floats);
    if (def) hdi_spirv_put_result(p, def);
    else hdi_spirv_line(p);
    if (!def && opcode == SpvOpAtomicLoad) hdi_spirv_put(p, "_ = ");
    hdi_spirv_put(p, def && floats ? "bits_f32(%s(" : "%s(", function);
    put_pointer(p, &at);
    if (opcode == SpvOpAtomicIIncrement || opcode == SpvOpAtomicIDecrement) hdi_spirv_put(p, ", 1u");
    else if (opcode != SpvOpAtomicLoad)
        hdi_spirv_put(p, floats ? ", f32_bits(%v)" : ", %v", hdi_spirv_find(m, words[first + 3]));
    hdi_spirv_put(p, def && floats ? "));\n" : ");\n");
    return true;
}

/* ---- the head ---- */

static void put_vector_helper(hdi_spirv_printer *p, uint32_t b, uint32_t count, bool writes) {
    const bool atomic = p->atomic_bindings >> b & 1;
    hdi_spirv_put(p,
                  writes ? "fn write%u_b%u(at: u32, x: u32x%u) { " : "fn read%u_b%u(at: u32) -> u32x%u { return u32x",
                  count, b, count);
    if (!writes) hdi_spirv_put(p, "%u(", count);
    for (uint32_t i = 0; i < count; i++) {
        if (writes)
            hdi_spirv_put(p, atomic ? "atomicStore(&b%u[at + %uu], x.%c); " : "b%u[at + %uu] = x.%c; ", b, i,
                          "xyzw"[i]);
        else hdi_spirv_put(p, atomic ? "%satomicLoad(&b%u[at + %uu])" : "%sb%u[at + %uu]", i ? ", " : "", b, i);
    }
    hdi_spirv_put(p, writes ? "}\n" : "); }\n");
}

static void put_narrow_helper(hdi_spirv_printer *p, uint32_t b, uint32_t width, bool writes) {
    const uint32_t mask = (1u << width) - 1;
    if (writes) {
        hdi_spirv_put(p, "fn write%u_b%u(at: u32, x: u32) { let shift = (at & 3u) << 3u;", width, b);
        hdi_spirv_put(p,
                      " atomicAnd(&b%u[at >> 2u], ~(%uu << shift)); atomicOr(&b%u[at >> 2u], (x & %uu) << shift); }\n",
                      b, mask, b, mask);
    } else {
        hdi_spirv_put(p,
                      p->atomic_bindings >> b & 1 ? "fn read%u_b%u(at: u32) -> u32 { return (atomicLoad(&b%u[at >> 2u])"
                      : "fn read%u_b%u(at: u32) -> u32 { return (b%u[at >> 2u]",
                      width, b, b);
        hdi_spirv_put(p, " >> ((at & 3u) << 3u)) & %uu; }\n", mask);
    }
}

static void put_bindings(hdi_spirv_printer *p) {
    const hdi_spirv_printed *out = p->printed;
    for (uint32_t i = 0; i < out->buffer_count; i++) {
        const uint32_t b = out->buffers[i], helpers = p->helpers[b];
        hdi_spirv_put(p, "@group(0) @binding(%u) var<storage, read_write> b%u: array<%s>;\n", b, b,
                      p->atomic_bindings >> b & 1 ? "atomic<u32>" : "u32");
        for (uint32_t writes = 0; writes < 2; writes++) {
            const uint32_t asked = writes ? helpers / WRITE_8 : helpers;
            if (asked & READ_8) put_narrow_helper(p, b, 8, writes);
            if (asked & READ_16) put_narrow_helper(p, b, 16, writes);
            if (asked & READ_2) put_vector_helper(p, b, 2, writes);
            if (asked & READ_4) put_vector_helper(p, b, 4, writes);
        }
    }
    hdi_spirv_put(p, "@group(0) @binding(%u) var<uniform> launch: array<u32x4, %u>;\n", HDI_SPIRV_WGSL_LAUNCH,
                  (out->argument_words + 3) / 4);
    hdi_spirv_put(p, "fn launch_word(at: u32) -> u32 { return launch[at >> 2u][at & 3u]; }\n");
}

bool hdi_spirv_wgsl_put_shared(hdi_spirv_printer *p) {
    p->indent = 0;
    for (uint32_t def = 1; def < p->m->def_count; def++) {
        const bool shared = hdi_spirv_def_opcode(p->m, def) == SpvOpVariable &&
                            hdi_spirv_type_of(p->m, def)->storage == SpvStorageClassWorkgroup;
        if (shared && p->facts[def] & HDI_SPIRV_NEEDED && !hdi_spirv_wgsl_put_variable(p, def)) return false;
    }
    return true;
}

void hdi_spirv_wgsl_put_head(hdi_spirv_printer *p) {
    const uint32_t *size = p->printed->info.workgroup;
    put_bindings(p);
    hdi_spirv_put(p, "@compute @workgroup_size(%u, %u, %u)\nfn " HDI_SPIRV_PRINTED_ENTRY "(", size[0], size[1],
                  size[2]);
    hdi_spirv_put(
        p, "@builtin(workgroup_id) group_id: u32x3, @builtin(num_workgroups) group_count: u32x3, "
           "@builtin(local_invocation_id) local_id: u32x3, @builtin(local_invocation_index) local_index: u32) {\n");
}
