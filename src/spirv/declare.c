/* declare.c: what stands before the functions: decorations gathered by id, facts of every type (sizes, layout, depth),
 * constants by way of constant.c, and global variables. Types are declared before they are used, so one pass from first
 * to last knows everything about a type's parts and nothing here recurses. Relies on read.c and check.c. */
#include "spirv/module.h"

/* Is `kind` one of the letters? The "no type" is none of them. */
static bool one_of(char kind, const char *letters) { return kind && strchr(letters, kind); }

/* ---- decorations ---- */

uint32_t hdi_spirv_flag_of(uint32_t decoration) {
    switch (decoration) {
    case SpvDecorationBlock: return HDI_SPIRV_BLOCK;
    case SpvDecorationBufferBlock: return HDI_SPIRV_BUFFER_BLOCK;
    case SpvDecorationNonWritable: return HDI_SPIRV_NON_WRITABLE;
    case SpvDecorationNonReadable: return HDI_SPIRV_NON_READABLE;
    case SpvDecorationNoContraction: return HDI_SPIRV_NO_CONTRACTION;
    case SpvDecorationRowMajor: return HDI_SPIRV_ROW_MAJOR;
    case SpvDecorationColMajor: return HDI_SPIRV_COL_MAJOR;
    case SpvDecorationRelaxedPrecision: return HDI_SPIRV_RELAXED;
    case SpvDecorationRestrict: return HDI_SPIRV_RESTRICT;
    case SpvDecorationAliased: return HDI_SPIRV_ALIASED;
    case SpvDecorationVolatile: return HDI_SPIRV_VOLATILE;
    case SpvDecorationCoherent: return HDI_SPIRV_COHERENT;
    case SpvDecorationNoSignedWrap: return HDI_SPIRV_NO_SIGNED_WRAP;
    case SpvDecorationNoUnsignedWrap: return HDI_SPIRV_NO_UNSIGNED_WRAP;
    default: return 0;
    }
}

static bool is_spec_scalar(uint32_t opcode) {
    return opcode == SpvOpSpecConstant || opcode == SpvOpSpecConstantTrue || opcode == SpvOpSpecConstantFalse;
}

/* Where in `decor` a decoration with a value is kept, if an id defined by `opcode` may have it; else NULL. */
static uint32_t *place_of(hdi_spirv_decor *decor, uint32_t decoration, uint32_t opcode) {
    bool variable = opcode == SpvOpVariable;
    switch (decoration) {
    case SpvDecorationDescriptorSet: return variable ? &decor->set : NULL;
    case SpvDecorationBinding: return variable ? &decor->binding : NULL;
    case SpvDecorationBuiltIn: return variable || hdi_spirv_is_constant(opcode) ? &decor->builtin : NULL;
    case SpvDecorationSpecId: return is_spec_scalar(opcode) ? &decor->spec_id : NULL;
    case SpvDecorationArrayStride:
        return opcode == SpvOpTypeArray || opcode == SpvOpTypeRuntimeArray || opcode == SpvOpTypePointer
                   ? &decor->array_stride
                   : NULL;
    case SpvDecorationFPRoundingMode: return opcode == SpvOpFConvert ? &decor->rounding : NULL;
    default: return NULL;
    }
}

static hdi_spirv_decor *decor_for(hdi_spirv_module *m, uint32_t def) {
    if (!m->defs[def].decor) m->defs[def].decor = m->decor_count++;
    return &m->decors[m->defs[def].decor];
}

/* May an id that is defined by `opcode` have the flag? */
static bool flag_fits(const hdi_spirv_module *m, uint32_t flag, uint32_t opcode) {
    bool memory = opcode == SpvOpVariable || opcode == SpvOpFunctionParameter;
    switch (flag) {
    case HDI_SPIRV_BLOCK: return opcode == SpvOpTypeStruct;
    case HDI_SPIRV_BUFFER_BLOCK: return opcode == SpvOpTypeStruct && m->version < 0x10400;
    case HDI_SPIRV_ROW_MAJOR: case HDI_SPIRV_COL_MAJOR: return false; /* members only */
    case HDI_SPIRV_COHERENT:
    case HDI_SPIRV_VOLATILE: return memory && !hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel);
    case HDI_SPIRV_NON_WRITABLE: case HDI_SPIRV_NON_READABLE: return opcode == SpvOpVariable;
    case HDI_SPIRV_RESTRICT: case HDI_SPIRV_ALIASED: return memory;
    default: return hdi_spirv_is_value(opcode) || (flag == HDI_SPIRV_RELAXED && opcode == SpvOpFunction);
    }
}

static bool member_flag_fits(const hdi_spirv_module *m, uint32_t flag) {
    switch (flag) {
    case HDI_SPIRV_ROW_MAJOR: case HDI_SPIRV_COL_MAJOR: case HDI_SPIRV_NON_WRITABLE: case HDI_SPIRV_NON_READABLE:
    case HDI_SPIRV_RELAXED: case HDI_SPIRV_RESTRICT: return true;
    case HDI_SPIRV_COHERENT: case HDI_SPIRV_VOLATILE: return !hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel);
    default: return false;
    }
}

static bool decorate(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t target = hdi_spirv_find(m, words[1]), opcode = hdi_spirv_def_opcode(m, target),
             flag = hdi_spirv_flag_of(words[2]);
    m->no_contraction |= flag == HDI_SPIRV_NO_CONTRACTION;
    if (!target) return true; /* variant.c has left it out, or comes back for it */
    uint32_t *flags = &m->defs[target].flags;
    if (flag) {
        if (!flag_fits(m, flag, opcode))
            return hdi_spirv_bad(m, inst, "decoration %u does not belong on id %u", words[2], words[1]);
        if (*flags & flag) return hdi_spirv_bad(m, inst, "id %u has decoration %u twice", words[1], words[2]);
        *flags |= flag;
        return true;
    }
    uint32_t *place = place_of(decor_for(m, target), words[2], opcode);
    if (!place || words[3] == HDI_SPIRV_NONE)
        return hdi_spirv_bad(m, inst, "decoration %u does not belong on id %u", words[2], words[1]);
    if (*place != HDI_SPIRV_NONE) return hdi_spirv_bad(m, inst, "id %u has decoration %u twice", words[1], words[2]);
    *place = words[3];
    return true;
}

static bool decorate_member(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t target = hdi_spirv_find(m, words[1]);
    if (hdi_spirv_def_opcode(m, target) != SpvOpTypeStruct)
        return hdi_spirv_bad(m, inst, "id %u is not a struct", words[1]);
    uint32_t count = hdi_spirv_length(m, m->defs[target].inst) - 2;
    if (words[2] >= count) return hdi_spirv_bad(m, inst, "the struct has %u members, not a member %u", count, words[2]);
    hdi_spirv_decor *decor = decor_for(m, target);
    if (!decor->members) {
        decor->members = hdi_arena_alloc(&m->arena, (size_t)count * sizeof *decor->members);
        if (!decor->members) return hdi_spirv_no_memory(m);
        for (uint32_t i = 0; i < count; i++)
            decor->members[i] = (hdi_spirv_member){ 0, HDI_SPIRV_NONE, HDI_SPIRV_NONE };
    }
    hdi_spirv_member *member = &decor->members[words[2]];
    uint32_t flag = hdi_spirv_flag_of(words[3]);
    if (member_flag_fits(m, flag) && !(member->flags & flag)) {
        member->flags |= flag;
        return true;
    }
    uint32_t *place = words[3] == SpvDecorationOffset ? &member->offset
                    : words[3] == SpvDecorationMatrixStride ? &member->matrix_stride : NULL;
    if (!place || words[4] == HDI_SPIRV_NONE)
        return hdi_spirv_bad(m, inst, "decoration %u does not belong on a member, or is there twice", words[3]);
    if (*place != HDI_SPIRV_NONE)
        return hdi_spirv_bad(m, inst, "member %u has decoration %u twice", words[2], words[3]);
    *place = words[4];
    return true;
}

/* ---- types ---- */

static uint64_t pad(uint64_t value, uint64_t unit) { return unit ? hdi_divide_up(value, unit) * unit : value; }

static bool scalar_type(hdi_spirv_module *m, uint32_t inst, hdi_spirv_type *type) {
    enum { BFLOAT16 = 0 };
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    type->count = 1;
    type->laid_out = true;
    if (opcode == SpvOpTypeBool) {
        type->kind = 'b';
        type->has_bool = true;
        type->laid_out = false;
        type->width = 1;
        type->plain_bytes = type->plain_align = type->align = 4;
        return true;
    }
    uint32_t width = type->width = words[2];
    type->kind = opcode == SpvOpTypeInt ? 'i' : 'f';
    type->is_signed = opcode == SpvOpTypeInt && words[3] == 1;
    type->bytes = type->plain_bytes = type->plain_align = type->align = width / 8;
    bool storage8 =
        hdi_spirv_has(m, SpvCapabilityStorageBuffer8BitAccess) || hdi_spirv_has(m, SpvCapabilityStoragePushConstant8);
    bool storage16 =
        hdi_spirv_has(m, SpvCapabilityStorageBuffer16BitAccess) || hdi_spirv_has(m, SpvCapabilityStoragePushConstant16);
    bool fits = width == 32;
    if (type->kind == 'i') {
        if (words[3] > 1) return hdi_spirv_bad(m, inst, "signedness %u", words[3]);
        if (width == 8) fits = hdi_spirv_has(m, SpvCapabilityInt8) || storage8;
        if (width == 16) fits = hdi_spirv_has(m, SpvCapabilityInt16) || storage16;
        if (width == 64) fits = hdi_spirv_has(m, SpvCapabilityInt64);
        type->narrow = width == 8 ? HDI_SPIRV_INT8 : width == 16 ? HDI_SPIRV_INT16 : 0;
    } else if (hdi_spirv_length(m, inst) > 3) {
        if (width != 16 || words[3] != BFLOAT16)
            return hdi_spirv_bad(m, inst, "floats of encoding %u, of 8 bits or newer", words[3]);
        type->kind = 'h';
        fits = hdi_spirv_has(m, HDI_SPIRV_BFLOAT16);
    } else {
        if (width == 16) fits = hdi_spirv_has(m, SpvCapabilityFloat16) || storage16;
        if (width == 64) fits = hdi_spirv_has(m, SpvCapabilityFloat64);
        type->narrow = width == 16 ? HDI_SPIRV_FLOAT16 : 0;
    }
    return fits || hdi_spirv_bad(m, inst, "a width of %u bits without the capability for it", width);
}

static bool vector_or_matrix_type(hdi_spirv_module *m, uint32_t inst, hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_type *part = hdi_spirv_type_at(m, type->element);
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    type->count = words[3];
    if (type->count < 2 || type->count > 4)
        return hdi_spirv_bad(m, inst, "%u components; 2 to 4 are taken", type->count);
    type->width = part->width;
    type->is_signed = part->is_signed;
    uint64_t lanes = type->count == 3 ? 4 : type->count;
    if (opcode == SpvOpTypeVector) {
        if (!one_of(part->kind, "fib") || part->count != 1)
            return hdi_spirv_bad(m, inst, "its components are no scalars");
        type->kind = part->kind;
        type->laid_out = part->laid_out;
        type->bytes = part->bytes * type->count;
        type->plain_bytes = part->plain_bytes * type->count;
        type->plain_align = part->plain_align * lanes;
    } else {
        if (part->kind != 'f' || part->count == 1)
            return hdi_spirv_bad(m, inst, "its columns are no vectors of floats");
        type->kind = 'm'; /* laid out by the member that holds it */
        type->plain_align = part->plain_align;
        type->plain_bytes = pad(part->plain_bytes, part->plain_align) * type->count;
    }
    return true;
}

static bool array_type(hdi_spirv_module *m, uint32_t inst, uint32_t def, hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_type *part = hdi_spirv_type_at(m, type->element);
    uint32_t stride = hdi_spirv_decor_of(m, def)->array_stride;
    bool open = hdi_spirv_opcode(m, inst) == SpvOpTypeRuntimeArray;
    type->kind = open ? 'r' : 'a';
    if (part->has_run_time_array)
        return hdi_spirv_bad(m, inst, "an array of buffers; give each buffer its own binding");
    if (!one_of(part->kind, "fibmasc"))
        return hdi_spirv_bad(m, inst, "its elements are of a kind that no array holds");
    uint64_t count = 1;
    if (!open) {
        uint32_t length = hdi_spirv_find(m, words[3]);
        if (hdi_spirv_type_of(m, length)->kind != 'i' || hdi_spirv_type_of(m, length)->count != 1)
            return hdi_spirv_bad(m, inst, "its length is not an integer constant");
        if (!hdi_spirv_known(m, length, &count))
            return hdi_spirv_bad(m, inst, "its length is not a constant heddle can work out");
        if (count == 0 || count > INT32_MAX)
            return hdi_spirv_bad(m, inst, "a length of %lld elements; check the specialisation constants",
                                 (long long)count);
    }
    type->count = open ? 0 : (uint32_t)count;
    type->has_run_time_array = open;
    type->plain_align = part->plain_align;
    if (!hdi_mul_u64(pad(part->plain_bytes, part->plain_align), count, &type->plain_bytes) ||
        type->plain_bytes > UINT32_MAX)
        return hdi_spirv_beyond(m, inst, "an array of %u elements is larger than 4 GiB", type->count);
    if (open) type->plain_bytes = 0;
    if (stride == HDI_SPIRV_NONE) return true;
    /* An array of matrices has its stride, but its size only with the member that holds it. */
    type->laid_out = part->laid_out;
    if (stride == 0 || stride % part->align || (part->laid_out && stride < part->bytes))
        return hdi_spirv_bad(m, inst, "a stride of %u bytes", stride);
    if (part->laid_out) type->bytes = open ? 0 : (count - 1) * stride + part->bytes;
    return type->bytes <= UINT32_MAX ||
           hdi_spirv_beyond(m, inst, "an array of %u elements is larger than 4 GiB", type->count);
}

/* A member's bytes by its decorations; false where it has no layout. Follows arrays down to a matrix, if there is
 * one. */
static bool member_bytes(const hdi_spirv_module *m, uint32_t type_def, const hdi_spirv_member *member,
                         uint64_t *out_bytes) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    if (type->laid_out) {
        *out_bytes = type->bytes;
        return true;
    }
    uint32_t arrays[HDI_SPIRV_MAX_TYPE_DEPTH], depth = 0;
    bool open = type->kind == 'r';
    for (; type->kind == 'a' || type->kind == 'r'; type_def = type->element, type = hdi_spirv_type_at(m, type_def))
        arrays[depth++] = type_def;
    bool by_rows = member->flags & HDI_SPIRV_ROW_MAJOR, by_columns = member->flags & HDI_SPIRV_COL_MAJOR;
    if (type->kind != 'm' || by_rows == by_columns || member->matrix_stride == HDI_SPIRV_NONE) return false;
    uint64_t rows = hdi_spirv_type_at(m, type->element)->count, columns = type->count, scalar = type->width / 8;
    uint64_t lines = by_rows ? rows : columns, line_bytes = (by_rows ? columns : rows) * scalar;
    if (member->matrix_stride < line_bytes || member->matrix_stride % scalar) return false;
    uint64_t bytes = lines * member->matrix_stride, span;
    while (depth-- > 0) { /* from the inside out */
        uint32_t stride = hdi_spirv_decor_of(m, arrays[depth])->array_stride;
        if (stride == HDI_SPIRV_NONE || stride < bytes) return false;
        if (open && depth == 0) continue;
        if (!hdi_mul_u64(hdi_spirv_type_at(m, arrays[depth])->count - 1, stride, &span) ||
            !hdi_add_u64(bytes, span, &bytes))
            return false;
    }
    *out_bytes = open ? 0 : bytes;
    return true;
}

static bool struct_type(hdi_spirv_module *m, uint32_t inst, uint32_t def, hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, def);
    type->kind = 's';
    type->count = hdi_spirv_length(m, inst) - 2;
    type->laid_out = decor->members != NULL || type->count == 0;
    type->read_only = decor->members != NULL;
    type->plain_align = type->align = 1;
    for (uint32_t i = 0; i < type->count; i++) {
        uint32_t part_def = hdi_spirv_find(m, words[2 + i]);
        const hdi_spirv_type *part = hdi_spirv_type_at(m, part_def);
        if (!one_of(part->kind, "fibmarsc"))
            return hdi_spirv_bad(m, inst, "member %u is of a kind that no struct holds", i);
        if (part->has_run_time_array && (i + 1 < type->count || part->kind == 's'))
            return hdi_spirv_bad(m, inst, "member %u has no fixed size but is not the last one", i);
        type->depth = HDI_MAX(type->depth, part->depth);
        type->has_run_time_array |= part->has_run_time_array;
        type->has_bool |= part->has_bool;
        type->has_cooperative |= part->has_cooperative;
        type->narrow |= part->narrow;
        type->align = HDI_MAX(type->align, part->align);
        type->plain_align = HDI_MAX(type->plain_align, part->plain_align);
        type->plain_bytes = pad(type->plain_bytes, part->plain_align) + part->plain_bytes;
        if (type->plain_bytes > UINT32_MAX) return hdi_spirv_beyond(m, inst, "the struct is larger than 4 GiB");
        if (!decor->members) continue;
        const hdi_spirv_member *member = &decor->members[i];
        type->read_only &= (member->flags & HDI_SPIRV_NON_WRITABLE) != 0;
        if (!type->laid_out) continue;
        uint64_t bytes = 0;
        if (member->offset == HDI_SPIRV_NONE || !member_bytes(m, part_def, member, &bytes)) {
            type->laid_out = false;
        } else if (member->offset % part->align) {
            return hdi_spirv_bad(m, inst, "member %u at offset %u is not aligned", i, member->offset);
        } else { /* in any order; the last row of a matrix may be shorter than its stride */
            type->bytes = HDI_MAX(type->bytes, member->offset + bytes);
            if (type->bytes > UINT32_MAX) return hdi_spirv_beyond(m, inst, "the struct is larger than 4 GiB");
        }
    }
    type->plain_bytes = pad(type->plain_bytes, type->plain_align);
    if (m->defs[def].flags & (HDI_SPIRV_BLOCK | HDI_SPIRV_BUFFER_BLOCK) && !type->laid_out)
        return hdi_spirv_bad(m, inst,
                             "a block's members all need an offset, and strides where they are arrays or matrices");
    return true;
}

static bool pointer_or_function_type(hdi_spirv_module *m, uint32_t inst, hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_type *part = hdi_spirv_type_at(m, type->element);
    if (hdi_spirv_opcode(m, inst) == SpvOpTypePointer) {
        type->kind = 'p';
        type->storage = words[2];
        if (!one_of(part->kind, "fibmarsc")) return hdi_spirv_bad(m, inst, "it points to a kind that has no memory");
        return true;
    }
    type->kind = 'n';
    type->count = hdi_spirv_length(m, inst) - 3;
    if (!one_of(part->kind, "vfibmasc")) return hdi_spirv_bad(m, inst, "it returns a kind that no function returns");
    for (uint32_t i = 0; i < type->count; i++) {
        const hdi_spirv_type *parameter = hdi_spirv_type_at(m, hdi_spirv_find(m, words[3 + i]));
        if (!one_of(parameter->kind, "fibmascp"))
            return hdi_spirv_bad(m, inst, "parameter %u is of a kind that none has", i);
    }
    return true;
}

static bool cooperative_type(hdi_spirv_module *m, uint32_t inst, hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const hdi_spirv_type *part = hdi_spirv_type_at(m, type->element);
    if (!one_of(part->kind, "fih") || part->count != 1)
        return hdi_spirv_bad(m, inst, "its components are no numbers");
    uint64_t elements = 1;
    for (uint32_t i = 3; i < 7; i++) {
        uint64_t value = 16;
        uint32_t def = hdi_spirv_find(m, words[i]);
        if (hdi_spirv_type_of(m, def)->kind != 'i' || hdi_spirv_type_of(m, def)->count != 1)
            return hdi_spirv_bad(m, inst, "scope, size and use are integer constants");
        bool fits = !hdi_spirv_known(m, def, &value) || (i == 6   ? value < 3
                                                         : i == 3 ? value < 7
                                                                  : value > 0 && value <= 4096);
        if (!fits) return hdi_spirv_bad(m, inst, "%llu for its operand %u", (unsigned long long)value, i);
        if (i == 4 || i == 5) elements *= value;
    }
    type->kind = 'c';
    type->has_cooperative = true;
    type->width = part->width;
    type->is_signed = part->is_signed;
    type->plain_align = part->plain_align;
    /* an invocation's share of it, in a small subgroup */
    type->plain_bytes = part->plain_bytes * hdi_divide_up(elements, 32);
    return true;
}

/* The same words apart from the result, parts being alike? */
static bool types_alike(const hdi_spirv_module *m, uint32_t a, uint32_t b) {
    uint32_t length = hdi_spirv_length(m, m->defs[a].inst);
    const uint32_t *left = hdi_spirv_def_words(m, a), *right = hdi_spirv_def_words(m, b);
    if (left[0] != right[0]) return false;
    for (uint32_t i = 2; i < length; i++) {
        if (left[i] == right[i]) continue;
        const hdi_spirv_type *x = hdi_spirv_type_at(m, hdi_spirv_find(m, left[i])),
                             *y = hdi_spirv_type_at(m, hdi_spirv_find(m, right[i]));
        bool aggregate = (left[0] & 0xFFFF) == SpvOpTypeStruct || ((left[0] & 0xFFFF) == SpvOpTypeArray && i == 2);
        if (!aggregate || x->kind == 0 || x->alike != y->alike) return false;
    }
    return true;
}

/* Finds the first type alike, by comparing with all before that hash the same. */
static bool find_alike(hdi_spirv_module *m, uint32_t inst, uint32_t def, uint64_t *hashes) {
    hdi_spirv_type *type = &m->types[m->defs[def].detail];
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = words[0] & 0xFFFF, length = words[0] >> 16;
    uint64_t hash = hdi_hash(HDI_HASH_START, words, 4);
    for (uint32_t i = 2; i < length; i++) {
        const hdi_spirv_type *part = hdi_spirv_type_at(m, hdi_spirv_find(m, words[i]));
        bool aggregate = opcode == SpvOpTypeStruct || (opcode == SpvOpTypeArray && i == 2);
        uint32_t word = aggregate ? part->alike : words[i];
        hash = hdi_hash(hash, &word, 4);
    }
    hashes[m->defs[def].detail] = hash;
    type->alike = def;
    for (uint32_t i = 1; i < m->defs[def].detail; i++) {
        if (hashes[i] != hash || !types_alike(m, m->types[i].alike, def)) continue;
        type->alike = m->types[i].alike;
        bool repeatable = one_of(type->kind, "arsp"); /* these may differ by decoration */
        return repeatable || hdi_spirv_bad(m, inst, "the same type was declared before");
    }
    return true;
}

static bool declare_type(hdi_spirv_module *m, uint32_t inst, uint64_t *hashes) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t def = hdi_spirv_find(m, words[1]), opcode = hdi_spirv_opcode(m, inst);
    if (m->type_count >= HDI_SPIRV_MAX_TYPES)
        return hdi_spirv_beyond(m, inst, "more than %u types", HDI_SPIRV_MAX_TYPES);
    m->defs[def].detail = m->type_count;
    hdi_spirv_type *type = &m->types[m->type_count++];
    bool compound = opcode != SpvOpTypeVoid && opcode != SpvOpTypeBool && opcode != SpvOpTypeInt &&
                    opcode != SpvOpTypeFloat && opcode != SpvOpTypeStruct;
    if (compound) {
        type->element = hdi_spirv_find(m, opcode == SpvOpTypePointer ? words[3] : words[2]);
        const hdi_spirv_type *part = hdi_spirv_type_at(m, type->element);
        if (part->kind == 0) return hdi_spirv_bad(m, inst, "id %u is not a type", m->defs[type->element].id);
        type->depth = part->depth;
        type->narrow = part->narrow;
        type->has_bool = part->has_bool;
        type->has_cooperative = part->has_cooperative;
        type->align = part->align;
    }
    bool fine = true;
    switch (opcode) {
    case SpvOpTypeVoid: type->kind = 'v'; break;
    case SpvOpTypeBool: case SpvOpTypeInt: case SpvOpTypeFloat: fine = scalar_type(m, inst, type); break;
    case SpvOpTypeVector: case SpvOpTypeMatrix: fine = vector_or_matrix_type(m, inst, type); break;
    case SpvOpTypeArray: case SpvOpTypeRuntimeArray: fine = array_type(m, inst, def, type); break;
    case SpvOpTypeStruct: fine = struct_type(m, inst, def, type); break;
    case SpvOpTypePointer: case SpvOpTypeFunction: fine = pointer_or_function_type(m, inst, type); break;
    default: fine = cooperative_type(m, inst, type); break;
    }
    if (++type->depth > HDI_SPIRV_MAX_TYPE_DEPTH)
        return hdi_spirv_beyond(m, inst, "types nested more than %u deep", HDI_SPIRV_MAX_TYPE_DEPTH);
    return fine && find_alike(m, inst, def, hashes);
}

/* ---- variables ---- */

/* Are 8- and 16-bit numbers allowed in this storage class? */
static bool narrow_fits(const hdi_spirv_module *m, const hdi_spirv_type *type, uint32_t storage) {
    bool narrow8 = type->narrow & HDI_SPIRV_INT8, narrow16 = type->narrow & (HDI_SPIRV_INT16 | HDI_SPIRV_FLOAT16);
    switch (storage) {
    case SpvStorageClassStorageBuffer: case SpvStorageClassUniform:
        return (!narrow8 || hdi_spirv_has(m, SpvCapabilityStorageBuffer8BitAccess)) &&
               (!narrow16 || hdi_spirv_has(m, SpvCapabilityStorageBuffer16BitAccess));
    case SpvStorageClassPushConstant:
        return (!narrow8 || hdi_spirv_has(m, SpvCapabilityStoragePushConstant8)) &&
               (!narrow16 || hdi_spirv_has(m, SpvCapabilityStoragePushConstant16));
    default: return !hdi_spirv_is_storage_only(m, type);
    }
}

static bool builtin_fits(const hdi_spirv_module *m, const hdi_spirv_type *type, uint32_t builtin) {
    uint32_t count = type->kind == 'i' && type->width == 32 ? type->count : 0;
    switch (builtin) {
    case SpvBuiltInNumWorkgroups: case SpvBuiltInWorkgroupId: case SpvBuiltInLocalInvocationId:
    case SpvBuiltInGlobalInvocationId: return count == 3;
    case SpvBuiltInLocalInvocationIndex: return count == 1;
    case SpvBuiltInSubgroupSize:
    case SpvBuiltInNumSubgroups: case SpvBuiltInSubgroupId: case SpvBuiltInSubgroupLocalInvocationId:
        return count == 1 && hdi_spirv_has(m, SpvCapabilityGroupNonUniform);
    case SpvBuiltInSubgroupEqMask:
    case SpvBuiltInSubgroupGeMask: case SpvBuiltInSubgroupGtMask: case SpvBuiltInSubgroupLeMask:
    case SpvBuiltInSubgroupLtMask: return count == 4 && hdi_spirv_has(m, SpvCapabilityGroupNonUniformBallot);
    default: return false;
    }
}

static bool declare_variable(hdi_spirv_module *m, uint32_t inst, uint64_t *local_bytes) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t def = hdi_spirv_find(m, words[2]), storage = words[3];
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, def);
    const hdi_spirv_type *type = hdi_spirv_type_at(m, pointer->element);
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, def);
    const uint32_t flags = m->defs[def].flags, struct_flags = m->defs[pointer->element].flags;
    m->defs[def].detail = def; /* its own root */
    if (pointer->kind != 'p' || pointer->storage != storage)
        return hdi_spirv_bad(m, inst, "its type is no pointer of its storage class");
    bool block = struct_flags & HDI_SPIRV_BLOCK, buffer_block = struct_flags & HDI_SPIRV_BUFFER_BLOCK;
    bool buffer = false, fits = false;
    switch (storage) {
    case SpvStorageClassUniform: fits = buffer_block || block; buffer = buffer_block; break;
    case SpvStorageClassStorageBuffer: fits = buffer = block; break;
    case SpvStorageClassPushConstant: fits = block; break;
    case SpvStorageClassInput: fits = builtin_fits(m, type, decor->builtin); break;
    case SpvStorageClassWorkgroup: case SpvStorageClassPrivate: case SpvStorageClassFunction: fits = true; break;
    default: return hdi_spirv_bad(m, inst, "storage class %u is outside of the supported subset", storage);
    }
    bool array = type->kind == 'a' || type->kind == 'r';
    bool resource = storage == SpvStorageClassUniform || storage == SpvStorageClassStorageBuffer;
    bool placed = decor->set != HDI_SPIRV_NONE || decor->binding != HDI_SPIRV_NONE;
    /* From version 1.4 on a constant array in a local variable may say that it is never written. */
    bool constant = m->version >= 0x10400 && (storage == SpvStorageClassPrivate || storage == SpvStorageClassFunction);
    bool marked = flags & (constant ? HDI_SPIRV_NON_READABLE : HDI_SPIRV_NON_WRITABLE | HDI_SPIRV_NON_READABLE);
    if (!resource && (placed || marked)) return hdi_spirv_bad(m, inst, "it is decorated as a buffer, but is none");
    if (decor->builtin != HDI_SPIRV_NONE && storage != SpvStorageClassInput)
        return hdi_spirv_bad(m, inst, "a built-in is an input");
    if (!fits && array && storage != SpvStorageClassInput)
        return hdi_spirv_bad(m, inst, "an array of buffers; give each buffer its own binding");
    if (!fits) return hdi_spirv_bad(m, inst, "its type does not fit its storage class %u or its built-in", storage);
    if (type->has_cooperative && storage != SpvStorageClassPrivate && storage != SpvStorageClassFunction)
        return hdi_spirv_bad(m, inst, "a cooperative matrix has no memory of that storage class");
    if (type->has_run_time_array && !buffer)
        return hdi_spirv_bad(m, inst, "only a storage buffer may be without a fixed size");
    if (!narrow_fits(m, type, storage))
        return hdi_spirv_bad(m, inst, "8- or 16-bit numbers in a storage class without the capability");
    bool initialised = words[0] >> 16 > 4,
         local = storage == SpvStorageClassPrivate || storage == SpvStorageClassFunction;
    if (initialised) {
        uint32_t initial = hdi_spirv_find(m, words[4]);
        if (!local || !hdi_spirv_is_constant(hdi_spirv_def_opcode(m, initial)) ||
            m->defs[initial].type != pointer->element)
            return hdi_spirv_bad(m, inst, "its initial value is not a constant of its type, or not allowed here");
    }
    if (local && (*local_bytes += type->plain_bytes) > HDI_SPIRV_MAX_LOCAL_BYTES)
        return hdi_spirv_beyond(m, inst, "more than %u bytes of private and function variables",
                                HDI_SPIRV_MAX_LOCAL_BYTES);
    return true;
}

/* ---- all of it ---- */

bool hdi_spirv_decorate_from(hdi_spirv_module *m, uint32_t def_first) {
    for (uint32_t i = 0; i < m->front_count; i++)
        if (hdi_spirv_opcode(m, i) == SpvOpDecorate && hdi_spirv_find(m, hdi_spirv_words(m, i)[1]) >= def_first &&
            !decorate(m, i))
            return false;
    return true;
}

static bool allocate(hdi_spirv_module *m, uint64_t **out_hashes) {
    size_t decorations = 1, types = 1, values = 1;
    for (uint32_t i = 0; i < m->front_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        decorations +=
            opcode == SpvOpMemberDecorate || (opcode == SpvOpDecorate && !hdi_spirv_flag_of(hdi_spirv_words(m, i)[2]));
        types += hdi_spirv_is_type(opcode);
        values += hdi_spirv_is_constant(opcode);
    }
    types = HDI_MIN(types, (size_t)HDI_SPIRV_MAX_TYPES);
    m->decors = hdi_arena_alloc(&m->arena, decorations * sizeof *m->decors);
    m->types = hdi_arena_alloc(&m->arena, types * sizeof *m->types);
    m->values = hdi_arena_alloc(&m->arena, values * sizeof *m->values);
    *out_hashes = hdi_arena_alloc(&m->arena, types * sizeof **out_hashes);
    if (!m->decors || !m->types || !m->values || !*out_hashes) return hdi_spirv_no_memory(m);
    m->decor_count = m->type_count = m->value_count = 1;
    for (size_t i = 0; i < decorations; i++)
        m->decors[i] = (hdi_spirv_decor){
            HDI_SPIRV_NONE, HDI_SPIRV_NONE, HDI_SPIRV_NONE, HDI_SPIRV_NONE, HDI_SPIRV_NONE, HDI_SPIRV_NONE, NULL
        };
    return true;
}

bool hdi_spirv_declare(hdi_spirv_module *m) {
    uint64_t *hashes, local_bytes = 0;
    if (!allocate(m, &hashes)) return false;
    bool in_function = false;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const uint32_t *words = hdi_spirv_words(m, i);
        in_function |= opcode == SpvOpFunction;
        bool fine = true;
        if (opcode == SpvOpDecorate) fine = decorate(m, i);
        else if (opcode == SpvOpMemberDecorate) fine = decorate_member(m, i);
        else if (hdi_spirv_is_type(opcode)) fine = declare_type(m, i, hashes);
        else if (hdi_spirv_is_constant(opcode)) fine = hdi_spirv_constant(m, i, hdi_spirv_find(m, words[2]));
        else if (opcode == SpvOpVariable && in_function != (words[3] == SpvStorageClassFunction))
            fine = hdi_spirv_bad(m, i, "a variable of storage class %u stands in the wrong place", words[3]);
        else if (opcode == SpvOpVariable) fine = declare_variable(m, i, &local_bytes);
        else if (opcode == SpvOpUndef && !one_of(hdi_spirv_type_of(m, hdi_spirv_find(m, words[2]))->kind, "fibmasc"))
            fine = hdi_spirv_bad(m, i, "its type has no values");
        else if (opcode == SpvOpExtInst && !in_function && hdi_spirv_find(m, words[3]) == m->glsl_set)
            fine = hdi_spirv_bad(m, i, "it belongs in a function");
        if (!fine) return false;
    }
    return true;
}
