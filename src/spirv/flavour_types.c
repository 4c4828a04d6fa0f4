/* flavour_types.c: the words of a module being written, and what is stated once in it: types and constants. */
#include "spirv/flavour.h"

/* ---- words ---- */

static bool add_words(hdi_flavour *w, hdi_flavour_words *to, const uint32_t *words, uint32_t count) {
    if (w->stop) return false;
    if (to->count + count > HDI_FLAVOUR_MAX_WORDS) {
        w->stop = !hdi_spirv_beyond(w->m, HDI_SPIRV_NONE, "the kernel's module is longer than %u words",
                                    HDI_FLAVOUR_MAX_WORDS);
    } else if (!hdi_grow(w->allocator, &to->items, &to->capacity, to->count + count, sizeof *to->items)) {
        w->stop = !hdi_spirv_no_memory(w->m);
    } else {
        if (count) memcpy(to->items + to->count, words, count * sizeof *words);
        to->count += count;
    }
    return !w->stop;
}

void hdi_flavour_add(hdi_flavour *w, hdi_flavour_words *to, uint32_t opcode, const uint32_t *operands, uint32_t count) {
    uint32_t head = opcode | (count + 1) << 16;
    if (count + 1 > UINT16_MAX)
        w->stop = !hdi_spirv_beyond(w->m, HDI_SPIRV_NONE, "an instruction of %u words", count + 1);
    if (add_words(w, to, &head, 1)) add_words(w, to, operands, count);
}

uint32_t hdi_flavour_make(hdi_flavour *w, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count) {
    uint32_t head[] = { opcode | (count + 3) << 16, type, w->bound++ };
    if (count + 3 > UINT16_MAX)
        w->stop = !hdi_spirv_beyond(w->m, HDI_SPIRV_NONE, "an instruction of %u words", count + 3);
    w->last = w->code.count;
    if (add_words(w, &w->code, head, 3)) add_words(w, &w->code, operands, count);
    return head[2];
}

/* Part by part: some drivers' readers take no OpCompositeConstruct of what is known only when it runs. */
uint32_t hdi_flavour_compose(hdi_flavour *w, uint32_t type, const uint32_t *parts, uint32_t count) {
    uint32_t value = hdi_flavour_once(w, SpvOpUndef, type, NULL, 0);
    for (uint32_t i = 0; i < count; i++) value = HDI_FLAVOUR_MAKE(w, SpvOpCompositeInsert, type, parts[i], value, i);
    return value;
}

uint32_t hdi_flavour_extended(hdi_flavour *w, uint32_t number, uint32_t type, uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t operands[] = { w->extended, number, a, b, c };
    return hdi_flavour_make(w, SpvOpExtInst, type, operands, c ? 5 : b ? 4 : 3);
}

void hdi_flavour_decorate(hdi_flavour *w, uint32_t id, uint32_t decoration, uint32_t value) {
    hdi_flavour_add(w, &w->decorations, SpvOpDecorate, HDI_FLAVOUR_IDS(id, decoration, value));
}

void hdi_flavour_use(hdi_flavour *w, uint32_t capability) {
    w->capabilities[capability / 8] = (uint8_t)(w->capabilities[capability / 8] | 1u << capability % 8);
}

/* ---- what is stated once ---- */

uint32_t hdi_flavour_once(hdi_flavour *w, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count) {
    if (w->stop) return 0;
    const uint32_t id = w->bound, front = type ? 3 : 2;
    const uint32_t head[] = { opcode | (count + front) << 16, type ? type : id, id };
    const uint32_t known = hdi_spirv_state(&w->m->arena, &w->stated, opcode, type, operands, count, id);
    if (!known) w->stop = !hdi_spirv_no_memory(w->m);
    else if (count + front > UINT16_MAX)
        w->stop = !hdi_spirv_beyond(w->m, HDI_SPIRV_NONE, "an instruction of %u words", count + front);
    if (known != id) return known;
    w->bound++;
    if (add_words(w, &w->globals, head, front)) add_words(w, &w->globals, operands, count);
    return id;
}

/* ---- types ---- */

static uint32_t scalar(hdi_flavour *w, char kind, uint32_t width) {
    if (kind == 'b') return hdi_flavour_once(w, SpvOpTypeBool, 0, NULL, 0);
    if (kind == 'f') {
        if (width == 16) hdi_flavour_use(w, SpvCapabilityFloat16);
        if (width == 64) hdi_flavour_use(w, SpvCapabilityFloat64);
        return hdi_flavour_once(w, SpvOpTypeFloat, 0, &width, 1);
    }
    if (width == 8) hdi_flavour_use(w, SpvCapabilityInt8);
    if (width == 16) hdi_flavour_use(w, SpvCapabilityInt16);
    return hdi_flavour_once(w, SpvOpTypeInt, 0, HDI_FLAVOUR_IDS(width, 0));
}

uint32_t hdi_flavour_vector(hdi_flavour *w, char kind, uint32_t width, uint32_t count) {
    uint32_t part = scalar(w, kind, width);
    return count == 1 ? part : hdi_flavour_once(w, SpvOpTypeVector, 0, HDI_FLAVOUR_IDS(part, count));
}

uint32_t hdi_flavour_pointer(hdi_flavour *w, uint32_t storage, uint32_t type) {
    if (storage == SpvStorageClassStorageBuffer || storage == SpvStorageClassUniform)
        storage = SpvStorageClassCrossWorkgroup;
    if (storage == SpvStorageClassPrivate) storage = SpvStorageClassFunction;
    return hdi_flavour_once(w, SpvOpTypePointer, 0, HDI_FLAVOUR_IDS(storage, type));
}

static uint32_t struct_type(hdi_flavour *w, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    uint32_t *parts = hdi_arena_alloc(&w->m->arena, (type->count + 1) * sizeof *parts);
    if (!parts) {
        w->stop = !hdi_spirv_no_memory(w->m);
        return 0;
    }
    for (uint32_t i = 0; i < type->count; i++) parts[i] = hdi_flavour_type(w, hdi_spirv_part_type(w->m, type_def, i));
    return hdi_flavour_once(w, SpvOpTypeStruct, 0, parts, type->count);
}

/* A matrix is an array of columns: OpenCL has none. Types nest at most HDI_SPIRV_MAX_TYPE_DEPTH deep. */
uint32_t hdi_flavour_type(hdi_flavour *w, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    uint32_t *id = &w->ids[type_def];
    if (*id) return *id;
    switch (type->kind) {
    case 'f': case 'i': case 'b': return *id = hdi_flavour_vector(w, type->kind, type->width, type->count);
    case 'm': case 'a': {
        const uint32_t element = hdi_flavour_type(w, type->element);
        return *id = hdi_flavour_once(w, SpvOpTypeArray, 0, HDI_FLAVOUR_IDS(element, hdi_flavour_u32(w, type->count)));
    }
    case 's': return *id = struct_type(w, type_def);
    case 'p': return *id = hdi_flavour_pointer(w, type->storage, hdi_flavour_type(w, type->element));
    case 'v': return *id = hdi_flavour_once(w, SpvOpTypeVoid, 0, NULL, 0);
    default:
        if (!w->stop)
            w->stop =
                !hdi_spirv_unsupported(w->m, w->m->defs[type_def].inst, "OpenCL has no cooperative matrices here");
        return 0;
    }
}

/* ---- constants and values ---- */

uint32_t hdi_flavour_number(hdi_flavour *w, char kind, uint32_t width, uint32_t count, uint64_t bits) {
    uint32_t type = scalar(w, kind, width), words[] = { (uint32_t)bits, (uint32_t)(bits >> 32) };
    uint32_t one = kind == 'b' ? hdi_flavour_once(w, bits ? SpvOpConstantTrue : SpvOpConstantFalse, type, NULL, 0)
                               : hdi_flavour_once(w, SpvOpConstant, type, words, width == 64 ? 2 : 1);
    const uint32_t parts[] = { one, one, one, one };
    return count == 1 ? one
           : hdi_flavour_once(w, SpvOpConstantComposite, hdi_flavour_vector(w, kind, width, count), parts, count);
}

/* A constant that is no known number: a composite, null, undefined, or an expression. */
static uint32_t constant(hdi_flavour *w, uint32_t def) {
    uint32_t inst = w->m->defs[def].inst, opcode = hdi_spirv_opcode(w->m, inst), count = 0;
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    const uint32_t type = hdi_flavour_type(w, w->m->defs[def].type);
    uint32_t *parts = hdi_arena_alloc(&w->m->arena, (words[0] >> 16) * sizeof *parts);
    if (!parts) {
        w->stop = !hdi_spirv_no_memory(w->m);
        return 0;
    }
    for (hdi_spirv_operands o = hdi_spirv_operands_of(w->m, inst); hdi_spirv_next(&o);)
        if (o.letter != 't' && o.letter != 'r')
            parts[count++] = o.letter == 'i' ? hdi_flavour_value(w, hdi_spirv_find(w->m, o.word)) : o.word;
    return hdi_flavour_once(w, opcode == SpvOpSpecConstantComposite ? (uint32_t)SpvOpConstantComposite : opcode, type,
                            parts, count);
}

uint32_t hdi_flavour_value(hdi_flavour *w, uint32_t def) {
    while (w->p->same[def] != def) def = w->p->same[def];
    const hdi_spirv_type *type = hdi_spirv_type_of(w->m, def);
    uint32_t *id = &w->ids[def], opcode = hdi_spirv_def_opcode(w->m, def);
    if (*id || w->stop) return *id;
    if (w->p->facts[def] & HDI_SPIRV_KNOWN)
        return *id = hdi_flavour_number(w, type->kind, type->width, 1, w->p->bits[def]);
    if (hdi_spirv_is_constant(opcode) || opcode == SpvOpUndef) return *id = constant(w, def);
    return *id = w->bound++;
}

uint32_t hdi_flavour_component(hdi_flavour *w, const hdi_spirv_type *type, uint32_t value, uint32_t i) {
    if (type->count == 1) return value;
    return HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, hdi_flavour_scalar(w, type->kind, type->width), value, i);
}

uint32_t hdi_flavour_widen(hdi_flavour *w, const hdi_spirv_type *type, uint32_t value, uint32_t width) {
    if (type->width == width) return value;
    return HDI_FLAVOUR_MAKE(w, SpvOpUConvert, hdi_flavour_vector(w, 'i', width, type->count), value);
}

uint32_t hdi_flavour_convert(hdi_flavour *w, uint32_t count, uint32_t value, uint32_t from_width, uint32_t width) {
    const hdi_spirv_type from = { .kind = 'f', .width = from_width, .count = count };
    uint32_t parts[4];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = hdi_flavour_component(w, &from, value, i);
        parts[i] = HDI_FLAVOUR_MAKE(w, SpvOpFConvert, hdi_flavour_scalar(w, 'f', width), part);
    }
    return count == 1 ? parts[0] : hdi_flavour_compose(w, hdi_flavour_vector(w, 'f', width, count), parts, count);
}
