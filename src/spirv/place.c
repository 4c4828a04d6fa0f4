/* place.c: where a pointer leads: from a variable on by indices, and for buffers and push constants as an offset in
 * bytes, from the strides and offsets that the module states. Relies on fold.c. */
#include "spirv/print.h"

enum { BUFFER_ALIGN = 16 }; /* of a buffer's first byte */

static void add_term(hdi_spirv_printer *p, hdi_spirv_place *at, uint32_t index, uint64_t stride) {
    if (hdi_spirv_is_known(p, index)) {
        at->bytes += hdi_spirv_bits(p, index) * stride; /* wraps for wild constants only */
    } else {
        at->term[at->term_count] = index;
        at->stride[at->term_count++] = (uint32_t)stride;
    }
    uint64_t known = hdi_spirv_is_known(p, index) ? hdi_spirv_bits(p, index) * stride : stride;
    while (at->align > 1 && known % at->align) at->align /= 2;
}

/* One index further into a laid-out type. */
static void step_bytes(hdi_spirv_printer *p, hdi_spirv_place *at, uint32_t index) {
    const hdi_spirv_module *m = p->m;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, at->type);
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, at->type);
    uint64_t number = 0;
    switch (type->kind) {
    case 's': {
        hdi_spirv_known(m, index, &number);
        const hdi_spirv_member *member = &decor->members[number];
        at->bytes += member->offset;
        while (at->align > 1 && member->offset % at->align) at->align /= 2;
        at->matrix_stride = member->matrix_stride;
        at->by_rows = member->flags & HDI_SPIRV_ROW_MAJOR;
        at->is_volatile |= (member->flags & (HDI_SPIRV_VOLATILE | HDI_SPIRV_COHERENT)) != 0;
        break;
    }
    case 'm':
        add_term(p, at, index, at->by_rows ? type->width / 8 : at->matrix_stride);
        if (at->by_rows) at->step = at->matrix_stride;
        break;
    case 'a': case 'r': add_term(p, at, index, decor->array_stride); break;
    default: add_term(p, at, index, at->step ? at->step : type->width / 8); break; /* a vector's component */
    }
    at->type = hdi_spirv_part_type(m, at->type, number);
}

static void note_access(hdi_spirv_printer *p, hdi_spirv_place *at) {
    at->is_volatile |= (p->m->defs[at->root].flags & (HDI_SPIRV_VOLATILE | HDI_SPIRV_COHERENT)) != 0;
}

bool hdi_spirv_find_place(hdi_spirv_printer *p, uint32_t pointer, hdi_spirv_place *at) {
    const hdi_spirv_module *m = p->m;
    *at = (hdi_spirv_place){ .align = BUFFER_ALIGN, .matrix_stride = HDI_SPIRV_NONE };
    uint32_t reversed[HDI_COUNT(at->index)], inst = m->defs[pointer].inst;
    for (;; pointer = hdi_spirv_find(m, hdi_spirv_def_words(m, pointer)[3])) {
        pointer = p->same[pointer]; /* a parameter's argument */
        if (!hdi_spirv_is_chain(hdi_spirv_def_opcode(m, pointer))) break;
        for (uint32_t i = hdi_spirv_length(m, m->defs[pointer].inst); i-- > 4;) {
            if (at->index_count == HDI_COUNT(reversed)) return hdi_spirv_unsupported(p->m, inst, "too many indices");
            reversed[at->index_count++] = hdi_spirv_find(m, hdi_spirv_def_words(m, pointer)[i]);
        }
    }
    at->root = pointer;
    at->storage = hdi_spirv_type_of(m, pointer)->storage;
    at->type = hdi_spirv_type_of(m, pointer)->element;
    note_access(p, at);
    for (uint32_t i = 0; i < at->index_count; i++) {
        uint32_t index = reversed[at->index_count - 1 - i];
        uint64_t number = 0;
        at->index[i] = index;
        if (hdi_spirv_is_bytes(at->storage)) {
            step_bytes(p, at, index);
        } else {
            hdi_spirv_known(m, index, &number);
            at->type = hdi_spirv_part_type(m, at->type, hdi_spirv_type_at(m, at->type)->kind == 's' ? number : 0);
        }
    }
    return true;
}

/* ---- what is there ---- */

bool hdi_spirv_is_whole(const hdi_spirv_place *at, const hdi_spirv_type *type, uint64_t more) {
    uint32_t bytes = type->width / 8 * type->count;
    return at->storage != SpvStorageClassPushConstant && at->step == 0 && !at->is_volatile && type->count != 3 &&
           bytes <= BUFFER_ALIGN && at->align % bytes == 0 && more % bytes == 0;
}

uint32_t hdi_spirv_number_count(const hdi_spirv_module *m, uint32_t type_def, uint32_t limit) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    if (hdi_spirv_is_plain(type)) return type->count;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < type->count && sum <= limit; i++) {
        uint32_t part = hdi_spirv_number_count(m, hdi_spirv_part_type(m, type_def, i), limit);
        if (type->kind != 's') return (uint32_t)HDI_MIN((uint64_t)part * type->count, (uint64_t)limit + 1);
        sum += part;
    }
    return (uint32_t)HDI_MIN(sum, (uint64_t)limit + 1);
}

uint64_t hdi_spirv_part_offset(const hdi_spirv_module *m, hdi_spirv_place *at, uint32_t i) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, at->type);
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, at->type);
    if (type->kind == 'm') {
        if (at->by_rows) at->step = at->matrix_stride;
        return (uint64_t)i * (at->by_rows ? type->width / 8 : at->matrix_stride);
    }
    if (type->kind != 's')
        return (uint64_t)i * (type->kind == 'a' ? decor->array_stride : at->step ? at->step : type->width / 8);
    at->matrix_stride = decor->members[i].matrix_stride;
    at->by_rows = decor->members[i].flags & HDI_SPIRV_ROW_MAJOR;
    return decor->members[i].offset;
}
