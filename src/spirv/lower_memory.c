/* lower_memory.c: addresses of buffers that are more than the push constants' own: kept in memory, computed, chosen,
 * given. There is one buffer then, the kernel's memory, which the launch binds, and an address is how many bytes it
 * lies behind its beginning: a pair of words, of which the second says nothing. Steps from an address become
 * additions; reads and writes calls of functions that are made for their type, number by number, each through a view
 * of the memory as an array of its kind.
 * Another module is made before anything else is lowered: nothing behind this knows of addresses. */
#include "spirv/lower_images.h"
#include <stdlib.h>

enum { PHYSICAL = 5349, PHYSICAL_MODEL = 5348, MOST_VIEWS = 12, MOST_NUMBERS = 1024 /* of a value */, MOST_DEPTH = 16,
       MEMORY_BINDING = -1 };

/* What is said of a type or of a member of one (HDI_SPIRV_NONE: of the type). */
typedef struct said { uint32_t type, member, decoration, value; } said;
/* How a matrix lies, or a vector: plain, or a row's or a column's length in bytes. */
typedef struct form { uint32_t kind, stride; } form;
enum { PLAIN, BY_COLUMNS, BY_ROWS, APART /* a vector's components */ };
typedef struct view { uint32_t type, variable, bytes; } view;

typedef struct memory {
    hdi_lowering   *l;
    said           *saids;   size_t said_count;
    uint32_t       *as;      /* by id of a type: what it is now; 0: itself */
    form           *forms;   /* by id of an address: how what it leads to lies */
    uint32_t        uint, pair;
    view            views[MOST_VIEWS]; uint32_t view_count;
    hdi_lower_words code;
} memory;

/* ---- what the module says ---- */

static uint32_t as(const memory *m, uint32_t id) { return id < m->l->bound && m->as[id] ? m->as[id] : id; }

static uint32_t pointee_of(const memory *m, uint32_t type) {
    const uint32_t *words = hdi_lower_def(m->l, type, SpvOpTypePointer, 4);
    return words && words[2] == PHYSICAL ? words[3] : 0;
}

/* What an address leads to, its type; 0: it is no address. */
static uint32_t leads_to(const memory *m, uint32_t id) { return pointee_of(m, hdi_image_type_of(m->l, id)); }

static int by_type(const void *a, const void *b) {
    const said *x = a, *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    return (x->decoration > y->decoration) - (x->decoration < y->decoration);
}

static bool read_saids(memory *m) {
    const hdi_lowering *l = m->l;
    for (int fill = 0; fill < 2; fill++) {
        size_t count = 0;
        for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
            const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
            const bool member = opcode == SpvOpMemberDecorate;
            if ((!member && opcode != SpvOpDecorate) || length < 3u + member) continue;
            if (fill)
                m->saids[count] = (said){ words[1], member ? words[2] : HDI_SPIRV_NONE, words[2 + member],
                                          length > 3u + member ? words[3 + member] : 0 };
            count++;
        }
        if (!fill) m->saids = hdi_arena_alloc(&m->l->arena, (count + 1) * sizeof *m->saids);
        if (!m->saids) return false;
        m->said_count = count;
    }
    qsort(m->saids, m->said_count, sizeof *m->saids, by_type);
    return true;
}

/* HDI_SPIRV_NONE: it is not said. */
static uint32_t find_said(const memory *m, uint32_t type, uint32_t member, uint32_t decoration) {
    const said key = { type, member, decoration, 0 };
    const said *found = bsearch(&key, m->saids, m->said_count, sizeof key, by_type);
    return found ? found->value : HDI_SPIRV_NONE;
}

static form form_of(const memory *m, uint32_t type, uint32_t member) {
    const uint32_t stride = find_said(m, type, member, SpvDecorationMatrixStride);
    if (stride == HDI_SPIRV_NONE) return (form){ PLAIN, 0 };
    return (form){ find_said(m, type, member, SpvDecorationRowMajor) == HDI_SPIRV_NONE ? BY_COLUMNS : BY_ROWS, stride };
}

/* Bytes of a number; 0: the type is of something else. */
static uint32_t bytes_of(const memory *m, uint32_t type) {
    const uint32_t *words = hdi_lower_def(m->l, type, SpvOpTypeInt, 4);
    if (!words) words = hdi_lower_def(m->l, type, SpvOpTypeFloat, 3);
    return words && words[2] >= 8 && words[2] <= 64 && !(words[2] & (words[2] - 1)) ? words[2] / 8
           : type == m->uint                                                        ? 4 : 0;
}

static const uint32_t *type_at(const memory *m, uint32_t type) {
    return type < m->l->bound && m->l->at[type] ? m->l->words + m->l->at[type] : NULL;
}

/* ---- numbers in the memory ---- */

static const view *view_of(memory *m, uint32_t type) {
    hdi_lowering *l = m->l;
    for (uint32_t i = 0; i < m->view_count; i++)
        if (m->views[i].type == type) return &m->views[i];
    const uint32_t bytes = bytes_of(m, type);
    if (bytes == 0 || m->view_count == MOST_VIEWS) return NULL;
    const uint32_t open = l->next++, block = l->next++, variable = l->next++;
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, open, SpvDecorationArrayStride, bytes);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, block, SpvDecorationBlock);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, block, 0, SpvDecorationOffset, 0);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, variable, SpvDecorationDescriptorSet, HD_ADDRESS_SET);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, variable, SpvDecorationBinding, (uint32_t)MEMORY_BINDING);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, variable, SpvDecorationAliased);
    HDI_LOWER_ADD(l, &l->globals, SpvOpTypeRuntimeArray, open, type);
    HDI_LOWER_ADD(l, &l->globals, SpvOpTypeStruct, block, open);
    const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, block);
    HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, variable, SpvStorageClassStorageBuffer);
    l->element_bytes |= bytes;
    m->views[m->view_count] = (view){ type, variable, bytes };
    return &m->views[m->view_count++];
}

/* An instruction with a result, among functions that are made or in the one that is being copied. */
static uint32_t put(memory *m, hdi_lower_words *to, uint32_t opcode, uint32_t type, uint32_t a, uint32_t b) {
    const uint32_t all[] = { type, m->l->next++, a, b };
    hdi_lower_add(m->l, to, opcode, all, b ? 4 : 3);
    return all[1];
}
static uint32_t extract(memory *m, hdi_lower_words *to, uint32_t type, uint32_t value, uint32_t i) {
    HDI_LOWER_ADD(m->l, to, SpvOpCompositeExtract, type, m->l->next, value, i);
    return m->l->next++;
}

/* A pointer to the number that lies `behind` so many bytes; 0: it was refused. */
static uint32_t pointer_to(memory *m, hdi_lower_words *to, uint32_t place, uint32_t behind, uint32_t type) {
    hdi_lowering *l = m->l;
    const view *v = view_of(m, type);
    if (!v) return 0;
    const bool whole = behind % v->bytes == 0;
    uint32_t at = place, bits = 0;
    while (1u << bits < v->bytes) bits++;
    if (!whole) at = put(m, to, SpvOpIAdd, m->uint, at, number(l, behind));
    if (bits) at = put(m, to, SpvOpShiftRightLogical, m->uint, at, number(l, bits));
    if (whole && behind) at = put(m, to, SpvOpIAdd, m->uint, at, number(l, behind / v->bytes));
    const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, type), out = l->next++;
    HDI_LOWER_ADD(l, to, SpvOpAccessChain, pointer, out, v->variable, number(l, 0), at);
    return out;
}

/* ---- values in the memory ---- */

typedef struct part { uint32_t type, behind, value; form form; } part;

/* Part `i` of what lies there; false: it has no more, or is a number. `*bad`: it is nothing that lies in memory. */
static bool part_of(const memory *m, const part *of, uint32_t i, part *out, bool *bad) {
    const uint32_t *words = type_at(m, of->type), opcode = words ? hdi_lower_opcode(words) : 0,
                   length = words ? hdi_lower_length(words) : 0;
    *out = (part){ .behind = of->behind };
    *bad = false;
    if (of->type == m->pair || pointee_of(m, of->type)) {
        *out = (part){ .type = m->uint, .behind = of->behind + 4 * i };
        return i < 2;
    }
    if (bytes_of(m, of->type)) return false;
    if (opcode == SpvOpTypeVector && length == 4) {
        const uint32_t step = of->form.kind == APART ? of->form.stride : bytes_of(m, words[2]);
        *out = (part){ .type = words[2], .behind = of->behind + i * step };
        return i < words[3];
    }
    if (opcode == SpvOpTypeMatrix && length == 4 && of->form.kind) {
        const uint32_t *column = hdi_lower_def(m->l, words[2], SpvOpTypeVector, 4);
        const bool rows = of->form.kind == BY_ROWS;
        const uint32_t step = !column ? 0 : rows ? bytes_of(m, column[2]) : of->form.stride;
        *out = (part){ .type = words[2], .behind = of->behind + i * step };
        if (rows) out->form = (form){ APART, of->form.stride };
        *bad = !column;
        return i < words[3];
    }
    if (opcode == SpvOpTypeArray && length == 4) {
        const uint32_t *count = hdi_lower_def(m->l, words[3], SpvOpConstant, 4),
                       stride = find_said(m, of->type, HDI_SPIRV_NONE, SpvDecorationArrayStride);
        *bad = !count || stride == HDI_SPIRV_NONE || count[3] > MOST_NUMBERS;
        *out = (part){ .type = words[2], .behind = of->behind + i * stride, .form = of->form };
        return !*bad && i < count[3];
    }
    if (opcode == SpvOpTypeStruct) {
        if (i >= length - 2) return false;
        const uint32_t offset = find_said(m, of->type, i, SpvDecorationOffset);
        *bad = offset == HDI_SPIRV_NONE;
        *out = (part){ .type = words[2 + i], .behind = of->behind + offset, .form = form_of(m, of->type, i) };
        return !*bad;
    }
    *bad = true;
    return false;
}

/* The value there: read, or where `store`, written. `*left`: how many numbers more may be. 0: it was refused. */
static uint32_t move_parts(memory *m, uint32_t place, const part *of, bool store, uint32_t depth, uint32_t *left) {
    hdi_lowering *l = m->l;
    part one;
    bool bad;
    if (bytes_of(m, of->type)) {
        const uint32_t pointer = pointer_to(m, &l->made, place, of->behind, as(m, of->type));
        if (!pointer || (*left)-- == 0) return *left = 0;
        if (!store) return HDI_LOWER_MAKE(l, SpvOpLoad, as(m, of->type), pointer);
        HDI_LOWER_ADD(l, &l->made, SpvOpStore, pointer, of->value);
        return of->value;
    }
    uint32_t count = 0;
    while (count < MOST_NUMBERS && part_of(m, of, count, &one, &bad)) count++;
    uint32_t *all = hdi_arena_alloc(&l->arena, (count + 2) * sizeof *all);
    if (!all || bad || count == 0 || count == MOST_NUMBERS || depth == MOST_DEPTH) return *left = 0;
    for (uint32_t i = 0; i < count; i++) {
        part_of(m, of, i, &one, &bad);
        if (store) one.value = extract(m, &l->made, as(m, one.type), of->value, i);
        all[2 + i] = move_parts(m, place, &one, store, depth + 1, left);
        if (!all[2 + i] || *left == 0) return *left = 0;
    }
    if (store) return of->value;
    all[0] = as(m, of->type);
    all[1] = l->next++;
    hdi_lower_add(l, &l->made, SpvOpCompositeConstruct, all, count + 2);
    return all[1];
}

/* The function that reads or writes what an address leads to; 0: it was refused. */
static uint32_t function_for(memory *m, const uint32_t *words, uint32_t type, form how, bool store) {
    hdi_lowering *l = m->l;
    const hdi_lower_made key = { .opcode = store ? SpvOpStore : SpvOpLoad, .value = type, .offset = how.kind,
                                 .moved = how.stride };
    for (uint32_t i = 0; i < l->made_count; i++) {
        const hdi_lower_made *made = &l->functions_made[i];
        if (made->opcode == key.opcode && made->value == type && made->offset == how.kind && made->moved == how.stride)
            return made->function;
    }
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d ways to read and write", HDI_LOWER_MAX_FUNCTIONS), 0;
    const uint32_t result = store ? hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0) : as(m, type);
    const uint32_t types[] = { m->pair, as(m, type) };
    uint32_t given[2] = { 0 }, left = MOST_NUMBERS;
    hdi_lower_made *made = &l->functions_made[l->made_count++];
    *made = key;
    made->function = hdi_lower_begin(l, result, types, store ? 2 : 1, given);
    const part whole = { .type = type, .value = given[1], .form = how };
    const uint32_t value = move_parts(m, extract(m, &l->made, m->uint, given[0], 0), &whole, store, 0, &left);
    if (!value || left == 0)
        return hdi_lower_refuse(l, words, "what lies at the address is not numbers, or more than %d of them",
                                MOST_NUMBERS - 1), 0;
    if (store) hdi_lower_add(l, &l->made, SpvOpReturn, NULL, 0);
    else HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, value);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    return made->function;
}

/* ---- steps ---- */

typedef struct step { uint32_t type, behind, added; form form; bool bad; } step;

/* Goes on by so many elements of `bytes`. */
static void add_index(memory *m, step *s, uint32_t index, uint32_t bytes) {
    hdi_lowering *l = m->l;
    const uint32_t *known = hdi_lower_def(l, index, SpvOpConstant, 4);
    const uint32_t *type = hdi_lower_def(l, hdi_image_type_of(l, index), SpvOpTypeInt, 4);
    s->bad |= !type || bytes == 0 || bytes == HDI_SPIRV_NONE;
    if (s->bad) return;
    if (known) {
        s->behind += known[3] * bytes;
        return;
    }
    const uint32_t widen = type[2] < 32 && type[3] ? SpvOpSConvert : SpvOpUConvert;
    if (type[2] != 32) index = put(m, &m->code, widen, m->uint, index, 0);
    else if (type[3]) index = put(m, &m->code, SpvOpBitcast, m->uint, index, 0);
    const uint32_t by = put(m, &m->code, SpvOpIMul, m->uint, index, number(l, bytes));
    s->added = s->added ? put(m, &m->code, SpvOpIAdd, m->uint, s->added, by) : by;
}

static void go_on(memory *m, step *s, uint32_t index) {
    const uint32_t *words = type_at(m, s->type), opcode = words ? hdi_lower_opcode(words) : 0,
                   length = words ? hdi_lower_length(words) : 0;
    part one = { 0 };
    if (opcode == SpvOpTypeStruct) {
        const uint32_t *known = hdi_lower_def(m->l, index, SpvOpConstant, 4);
        bool bad = false;
        s->bad |= !known || !part_of(m, &(part){ .type = s->type }, known[3], &one, &bad) || bad;
        s->behind += one.behind;
        s->form = one.form;
        s->type = one.type;
    } else if ((opcode == SpvOpTypeArray || opcode == SpvOpTypeRuntimeArray) && length > 2) {
        add_index(m, s, index, find_said(m, s->type, HDI_SPIRV_NONE, SpvDecorationArrayStride));
        s->type = words[2];
    } else if (opcode == SpvOpTypeMatrix && length == 4) {
        const uint32_t *column = hdi_lower_def(m->l, words[2], SpvOpTypeVector, 4);
        const bool rows = s->form.kind == BY_ROWS;
        add_index(m, s, index, rows && column ? bytes_of(m, column[2]) : s->form.stride);
        s->form = rows ? (form){ APART, s->form.stride } : (form){ PLAIN, 0 };
        s->type = words[2];
    } else if (opcode == SpvOpTypeVector && length == 4) {
        add_index(m, s, index, s->form.kind == APART ? s->form.stride : bytes_of(m, words[2]));
        s->form = (form){ PLAIN, 0 };
        s->type = words[2];
    } else {
        s->bad = true;
    }
}

/* An address that goes on from another one. */
static void put_chain(memory *m, const uint32_t *words, bool stepped) {
    hdi_lowering *l = m->l;
    const uint32_t length = hdi_lower_length(words);
    step s = { .type = leads_to(m, words[3]), .form = words[3] < l->bound ? m->forms[words[3]] : (form){ PLAIN, 0 } };
    if (stepped && length > 4)
        add_index(m, &s, words[4],
                  find_said(m, hdi_image_type_of(l, words[3]), HDI_SPIRV_NONE, SpvDecorationArrayStride));
    for (uint32_t i = stepped ? 5 : 4; i < length && !s.bad; i++) go_on(m, &s, words[i]);
    if (s.bad || words[2] >= l->bound) {
        hdi_lower_refuse(l, words, "it steps from an address to what does not lie there by offsets and strides");
        return;
    }
    m->forms[words[2]] = s.form;
    uint32_t low = extract(m, &m->code, m->uint, words[3], 0);
    if (s.added) low = put(m, &m->code, SpvOpIAdd, m->uint, low, s.added);
    if (s.behind) low = put(m, &m->code, SpvOpIAdd, m->uint, low, number(l, s.behind));
    HDI_LOWER_ADD(l, &m->code, SpvOpCompositeInsert, m->pair, words[2], low, words[3], 0);
}

/* ---- instructions ---- */

static void copy(memory *m, hdi_lower_words *to, const uint32_t *words) {
    const uint32_t length = hdi_lower_length(words);
    uint32_t *all = hdi_arena_alloc(&m->l->arena, length * sizeof *all);
    if (!all) {
        hdi_lower_refuse(m->l, words, "no host memory");
        return;
    }
    memcpy(all, words, length * sizeof *all);
    for (hdi_spirv_operands o = hdi_lower_operands(words); hdi_spirv_next(&o);)
        if (strchr("rtigcevlfa", o.letter)) all[o.at] = as(m, o.word);
    hdi_lower_add(m->l, to, hdi_lower_opcode(words), all + 1, length - 1);
}

static uint32_t read_from(memory *m, const uint32_t *words, uint32_t pointer, uint32_t result) {
    hdi_lowering *l = m->l;
    const uint32_t type = leads_to(m, pointer), function = function_for(m, words, type, m->forms[pointer], false);
    HDI_LOWER_ADD(l, &m->code, SpvOpFunctionCall, as(m, type), result, function, pointer);
    return result;
}

static void write_to(memory *m, const uint32_t *words, uint32_t pointer, uint32_t value) {
    hdi_lowering *l = m->l;
    const uint32_t function = function_for(m, words, leads_to(m, pointer), m->forms[pointer], true);
    HDI_LOWER_ADD(l, &m->code, SpvOpFunctionCall, hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0), l->next++, function,
                  pointer, value);
}

static void put_copy(memory *m, const uint32_t *words) {
    hdi_lowering *l = m->l;
    uint32_t value;
    if (leads_to(m, words[2])) {
        value = read_from(m, words, words[2], l->next++);
    } else {
        const uint32_t *pointer = hdi_lower_def(l, hdi_image_type_of(l, words[2]), SpvOpTypePointer, 4);
        if (!pointer) return;
        value = put(m, &m->code, SpvOpLoad, as(m, pointer[3]), words[2], 0);
    }
    if (leads_to(m, words[1])) write_to(m, words, words[1], value);
    else HDI_LOWER_ADD(l, &m->code, SpvOpStore, words[1], value);
}

static void put_atomic(memory *m, const uint32_t *words, uint32_t at) {
    hdi_lowering *l = m->l;
    const uint32_t length = hdi_lower_length(words), type = leads_to(m, words[at]);
    uint32_t all[16] = { 0 };
    const uint32_t pointer = length <= HDI_COUNT(all) && bytes_of(m, type)
                                 ? pointer_to(m, &m->code, extract(m, &m->code, m->uint, words[at], 0), 0, type) : 0;
    if (!pointer) {
        hdi_lower_refuse(l, words, "an atomic operation on what is no number");
        return;
    }
    for (uint32_t i = 1; i < length; i++) all[i - 1] = i == at ? pointer : words[i];
    hdi_lower_add(l, &m->code, hdi_lower_opcode(words), all, length - 1);
}

/* An address as a number or the other way round, or as one of another type. */
static void put_cast(memory *m, const uint32_t *words) {
    hdi_lowering *l = m->l;
    const uint32_t from = as(m, hdi_image_type_of(l, words[3])), to = as(m, words[1]);
    const uint32_t *narrow_from = hdi_lower_def(l, from, SpvOpTypeInt, 4),
                   *narrow_to = hdi_lower_def(l, to, SpvOpTypeInt, 4);
    if (from == to) {
        HDI_LOWER_ADD(l, &m->code, SpvOpCopyObject, to, words[2], words[3]);
    } else if (narrow_from && narrow_from[2] == 32) {
        const uint32_t low = narrow_from[3] ? put(m, &m->code, SpvOpBitcast, m->uint, words[3], 0) : words[3];
        HDI_LOWER_ADD(l, &m->code, SpvOpCompositeConstruct, to, words[2], low, number(l, 0));
    } else if (narrow_to && narrow_to[2] == 32) {
        const uint32_t low = extract(m, &m->code, m->uint, words[3], 0);
        HDI_LOWER_ADD(l, &m->code, narrow_to[3] ? SpvOpBitcast : SpvOpCopyObject, to, words[2], low);
    } else {
        HDI_LOWER_ADD(l, &m->code, SpvOpBitcast, to, words[2], words[3]);
    }
}

static void put_choice(memory *m, const uint32_t *words) {
    hdi_lowering *l = m->l;
    const uint32_t bools = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, bool_type(l), 2),
                   both = put(m, &m->code, SpvOpCompositeConstruct, bools, words[3], words[3]);
    HDI_LOWER_ADD(l, &m->code, SpvOpSelect, m->pair, words[2], both, words[4], words[5]);
}

/* False: the instruction is about no address. */
static bool put_use(memory *m, const uint32_t *words) {
    hdi_lowering *l = m->l;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const bool stepped = opcode == SpvOpPtrAccessChain || opcode == SpvOpInBoundsPtrAccessChain;
    const bool stores = opcode == SpvOpStore || opcode == SpvOpAtomicStore;
    const uint32_t at = stores ? 1 : 3, to = length > at ? leads_to(m, words[at]) : 0;
    const bool typed = length > 3 && pointee_of(m, words[1]);
    if (opcode == SpvOpCopyMemory && length > 2 && (leads_to(m, words[1]) || leads_to(m, words[2])))
        return put_copy(m, words), true;
    if (opcode == SpvOpSelect && length == 6 && typed) return put_choice(m, words), true;
    if ((opcode == SpvOpBitcast || opcode == SpvOpConvertUToPtr || opcode == SpvOpConvertPtrToU) && length == 4 &&
        (typed || to))
        return put_cast(m, words), true;
    if (!to) return false;
    if (opcode == SpvOpLoad) return read_from(m, words, words[3], words[2]), true;
    if (opcode == SpvOpStore && length > 2) return write_to(m, words, words[1], words[2]), true;
    if (hdi_spirv_is_atomic(opcode)) return put_atomic(m, words, at), true;
    if (opcode == SpvOpCopyObject && words[2] < l->bound) m->forms[words[2]] = m->forms[words[3]];
    if (opcode != SpvOpAccessChain && opcode != SpvOpInBoundsAccessChain && !stepped) return false;
    return put_chain(m, words, stepped), true;
}

/* ---- the new module ---- */

/* Types of addresses are pairs; types that become the same are one. */
static bool find_types(memory *m) {
    hdi_lowering *l = m->l;
    const uint32_t word[] = { 32, 0 };
    m->uint = hdi_spirv_state(&l->arena, &l->stated, SpvOpTypeInt, 0, word, 2, l->next++);
    const uint32_t two[] = { m->uint, 2 };
    m->pair = m->uint ? hdi_spirv_state(&l->arena, &l->stated, SpvOpTypeVector, 0, two, 2, l->next++) : 0;
    if (!m->pair) return false;
    hdi_spirv_stated now = { 0 };
    bool room = true;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions && room; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        if (length < 3 || words[1] >= l->bound) continue;
        if (pointee_of(m, words[1]) && opcode == SpvOpTypePointer) m->as[words[1]] = m->pair;
        else if (opcode == SpvOpTypePointer || opcode == SpvOpTypeFunction) {
            uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all);
            room = all != NULL;
            for (uint32_t i = 2; i < length && room; i++)
                all[i - 2] = opcode == SpvOpTypePointer && i == 2 ? words[i] : as(m, words[i]);
            const uint32_t known = room ? hdi_spirv_state(&l->arena, &now, opcode, 0, all, length - 2, words[1]) : 0;
            room &= known != 0;
            if (known && known != words[1]) m->as[words[1]] = known;
        }
    }
    hdi_names_free(&now.ids);
    return room;
}

static bool stays(const memory *m, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const uint32_t id = length > 1 ? words[1] : 0;
    switch (opcode) {
    case SpvOpCapability: return id != SpvCapabilityPhysicalStorageBufferAddresses;
    case SpvOpTypeForwardPointer: return false;
    case SpvOpDecorate:
        if (length > 2 && (words[2] == SpvDecorationAliasedPointer || words[2] == SpvDecorationRestrictPointer))
            return false;
        return !(id < m->l->bound && m->as[id]);
    case SpvOpName: return !(id < m->l->bound && m->as[id]);
    case SpvOpTypePointer: case SpvOpTypeFunction: return !(id < m->l->bound && m->as[id]);
    case SpvOpTypeInt: return id != m->uint;
    case SpvOpTypeVector: return id != m->pair;
    default: return opcode != SpvOpNop;
    }
}

static void put_entry(memory *m, hdi_lower_words *to, const uint32_t *words) {
    hdi_lowering *l = m->l;
    const uint32_t length = hdi_lower_length(words);
    uint32_t *all = hdi_arena_alloc(&l->arena, (length + MOST_VIEWS) * sizeof *all), count = length - 1;
    if (!all || length + MOST_VIEWS > 0xFFFF) {
        hdi_lower_refuse(l, words, "it lists too many variables");
        return;
    }
    memcpy(all, words + 1, (length - 1) * sizeof *all);
    for (uint32_t i = 0; i < m->view_count && l->words[1] >= 0x00010400u; i++) all[count++] = m->views[i].variable;
    hdi_lower_add(l, to, SpvOpEntryPoint, all, count);
}

static void put_front(memory *m, hdi_lower_words *to) {
    hdi_lowering *l = m->l;
    bool begun = false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words);
        if (!begun && (hdi_spirv_is_type(opcode) || hdi_spirv_is_constant(opcode) || opcode == SpvOpVariable ||
                       opcode == SpvOpTypeForwardPointer)) {
            for (size_t i = 0; i < l->decorations.count; i += hdi_lower_length(l->decorations.items + i))
                copy(m, to, l->decorations.items + i);
            HDI_LOWER_ADD(l, to, SpvOpTypeInt, m->uint, 32, 0);
            HDI_LOWER_ADD(l, to, SpvOpTypeVector, m->pair, m->uint, 2);
            begun = true;
        }
        if (!stays(m, words)) continue;
        if (opcode == SpvOpEntryPoint) put_entry(m, to, words);
        else if (opcode == SpvOpMemoryModel && hdi_lower_length(words) == 3)
            HDI_LOWER_ADD(l, to, opcode, SpvAddressingModelLogical, words[2]);
        else copy(m, to, words);
    }
    for (size_t i = 0; i < l->globals.count; i += hdi_lower_length(l->globals.items + i))
        copy(m, to, l->globals.items + i);
}

bool hdi_lower_put_memory(hdi_lowering *l) {
    memory *m = hdi_arena_alloc(&l->arena, sizeof *m);
    if (m) *m = (memory){ .l = l, .as = hdi_arena_alloc(&l->arena, l->bound * sizeof *m->as),
                          .forms = hdi_arena_alloc(&l->arena, l->bound * sizeof *m->forms) };
    if (!m || !m->as || !m->forms || !read_saids(m) || !find_types(m)) return false;
    for (size_t at = l->functions; at < l->count && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) != SpvOpNop && !put_use(m, words)) copy(m, &m->code, words);
        if (m->code.count > HDI_SPIRV_MAX_BYTES / 4) hdi_lower_refuse(l, words, "a module that becomes too long");
    }
    if (l->status) return true;
    hdi_lower_words to = { 0 };
    to.capacity = l->count + l->decorations.count + l->globals.count + m->code.count + l->made.count + 512;
    to.items = hdi_arena_alloc(&l->arena, to.capacity * sizeof *to.items);
    if (!to.items) return false;
    memcpy(to.items, l->words, HDI_SPIRV_HEADER_WORDS * sizeof *to.items);
    to.count = HDI_SPIRV_HEADER_WORDS;
    put_front(m, &to);
    if (l->status) return true;
    for (size_t i = 0; i < m->code.count; i += hdi_lower_length(m->code.items + i))
        hdi_lower_add(l, &to, hdi_lower_opcode(m->code.items + i), m->code.items + i + 1,
                      hdi_lower_length(m->code.items + i) - 1);
    for (size_t i = 0; i < l->made.count; i += hdi_lower_length(l->made.items + i))
        hdi_lower_add(l, &to, hdi_lower_opcode(l->made.items + i), l->made.items + i + 1,
                      hdi_lower_length(l->made.items + i) - 1);
    to.items[1] = HDI_MAX(to.items[1], 0x00010300u);
    to.items[3] = l->next;
    l->words = to.items;
    l->count = to.count;
    l->bound = l->next;
    l->made_count = 0;
    l->decorations.count = l->globals.count = l->made.count = 0;
    hdi_names_free(&l->stated.ids);
    l->stated = (hdi_spirv_stated){ 0 };
    return true;
}
