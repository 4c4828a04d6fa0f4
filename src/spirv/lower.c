/* lower.c: what a trimmed module is made of, words being written, and the module as it is afterwards: the same, but
 * for what lower_images.c and its like know. Relies on nothing but
 * whole instructions: every id, length and type is looked at before it is used. Takes time and memory in proportion
 * to the module and to its instructions about such things, each of which makes one function at most.
 */
#include "spirv/lower.h"
#include <stdarg.h>
#include <stdio.h>

enum { PHYSICAL_ADDRESSES = 5348 }; /* addressing model */
static const uint32_t MOVED = 2; /* in `gone`: it stands elsewhere in the new module, with its name and decorations */

/* ---- what there is ---- */


/* Which word is the instruction's result; 0: none. */
static uint32_t result_word(const uint32_t *words) {
    const hdi_spirv_op *row = hdi_spirv_op_row(hdi_lower_opcode(words));
    const char *form = row ? row->operands : hdi_spirv_lowered_operands(hdi_lower_opcode(words));
    const uint32_t at = !form ? 0 : form[0] == 'r' ? 1 : form[0] == 't' && form[1] == 'r' ? 2 : 0;
    return at < hdi_lower_length(words) ? at : 0;
}

const uint32_t *hdi_lower_def(const hdi_lowering *l, uint32_t id, uint32_t opcode, uint32_t length) {
    const uint32_t *words = id < l->bound && l->at[id] ? l->words + l->at[id] : NULL;
    return words && hdi_lower_opcode(words) == opcode && hdi_lower_length(words) >= length ? words : NULL;
}

bool hdi_lower_refuse(hdi_lowering *l, const uint32_t *words, const char *format, ...) {
    char why[200];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (!l->status)
        l->status = hdi_fail(l->error, HD_STATUS_MODULE, "SPIR-V word %zu, %s: %s", (size_t)(words - l->words),
                             hdi_spirv_op_name(hdi_lower_opcode(words)), why);
    return true; /* nothing else needs to look at the instruction */
}

static void no_memory(hdi_lowering *l) {
    if (!l->status)
        l->status = hdi_fail(l->error, HD_STATUS_OUT_OF_HOST_MEMORY,
                             "no host memory to read a SPIR-V module of %zu words", l->count);
}

uint32_t hdi_lower_decorated(const hdi_lowering *l, uint32_t id, uint32_t decoration) {
    const size_t at = hdi_spirv_decoration_at(l->words, l->functions, id, decoration);
    return at ? l->words[at] : HDI_SPIRV_NONE;
}

const hd_image_desc *hdi_lower_wish(const hdi_lowering *l, uint32_t set, uint32_t binding) {
    for (uint32_t i = 0; i < l->wish_count; i++)
        if (l->wishes[i].set == set && l->wishes[i].binding == binding) return &l->wishes[i];
    return NULL;
}

uint32_t hdi_lower_elements(hdi_lowering *l, const uint32_t *variable, const uint32_t *array) {
    enum { NOT_SAID = 4 };
    const uint32_t *length = hdi_lower_opcode(array) == SpvOpTypeArray && hdi_lower_length(array) > 3
                                 ? hdi_lower_def(l, array[3], SpvOpConstant, 4) : NULL;
    const hd_image_desc *wish = hdi_lower_wish(l, hdi_lower_decorated(l, variable[2], SpvDecorationDescriptorSet),
                                               hdi_lower_decorated(l, variable[2], SpvDecorationBinding));
    const bool open = hdi_lower_opcode(array) == SpvOpTypeRuntimeArray;
    const uint32_t count = length ? length[3] : !open ? 0 : wish && wish->count ? wish->count : (uint32_t)NOT_SAID;
    if (!length && !open) return hdi_lower_refuse(l, variable, "an array whose length is no plain constant"), 0;
    if (count == 0 || count > HDI_SPIRV_MAX_BINDINGS)
        return hdi_lower_refuse(l, variable, "an array of %u buffers or images; a kernel has at most %d", count,
                                HDI_SPIRV_MAX_BINDINGS), 0;
    return count;
}

/* ---- words being written ---- */

void hdi_lower_add(hdi_lowering *l, hdi_lower_words *to, uint32_t opcode, const uint32_t *operands, uint32_t count) {
    if (l->status) return;
    if (to->capacity - to->count <= count) {
        const size_t capacity = HDI_MAX(to->capacity * 2, to->count + count + 64);
        uint32_t *items = hdi_arena_alloc(&l->arena, capacity * sizeof *items);
        if (!items) {
            no_memory(l);
            return;
        }
        if (to->count) memcpy(items, to->items, to->count * sizeof *items);
        to->items = items;
        to->capacity = capacity;
    }
    to->items[to->count++] = (count + 1) << SpvWordCountShift | opcode;
    if (count) memcpy(to->items + to->count, operands, count * sizeof *operands);
    to->count += count;
}

static void copy(hdi_lowering *l, hdi_lower_words *to, const uint32_t *words) {
    hdi_lower_add(l, to, hdi_lower_opcode(words), words + 1, hdi_lower_length(words) - 1);
}

uint32_t hdi_lower_make(hdi_lowering *l, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count) {
    uint32_t all[HDI_LOWER_MAX_OPERANDS + 2] = { type, l->next };
    for (uint32_t i = 0; i < count; i++) all[2 + i] = operands[i];
    hdi_lower_add(l, &l->made, opcode, all, 2 + count);
    return l->next++;
}

uint32_t hdi_lower_made_before(const hdi_lowering *l, const hdi_lower_made *key) {
    for (uint32_t i = 0; i < l->made_count; i++) {
        const hdi_lower_made *made = &l->functions_made[i];
        if (made->opcode == key->opcode && made->image == key->image && made->coordinates == key->coordinates &&
            made->value == key->value && made->offset == key->offset && made->sampler == key->sampler &&
            made->moved == key->moved && made->component == key->component && made->sample == key->sample)
            return made->function;
    }
    return 0;
}

/* The variable that holds a built-in number, and its type; 0: the module has none. */
static uint32_t find_input(const hdi_lowering *l, uint32_t builtin, uint32_t *out_type) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (words[0] != (4u << SpvWordCountShift | SpvOpDecorate) || words[2] != SpvDecorationBuiltIn ||
            words[3] != builtin)
            continue;
        const uint32_t *variable = hdi_lower_def(l, words[1], SpvOpVariable, 4);
        const uint32_t *pointer = variable ? hdi_lower_def(l, variable[1], SpvOpTypePointer, 4) : NULL;
        const uint32_t *type = pointer ? hdi_lower_def(l, pointer[3], SpvOpTypeInt, 4) : NULL;
        if (type && type[2] == 32 && pointer[2] == SpvStorageClassInput) return *out_type = type[1], words[1];
    }
    return 0;
}

uint32_t hdi_lower_input(hdi_lowering *l, uint32_t builtin) {
    const uint32_t type = hdi_lower_uint(l);
    uint32_t i = 0, own = type;
    while (i < l->input_count && l->inputs[i].builtin != builtin) i++;
    if (i == l->input_count) {
        uint32_t variable = find_input(l, builtin, &own);
        if (!variable) {
            variable = l->next++;
            HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, variable, SpvDecorationBuiltIn, builtin);
            HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, hdi_lower_pointer(l, SpvStorageClassInput, type), variable,
                          SpvStorageClassInput);
        }
        l->inputs[l->input_count].builtin = builtin;
        l->inputs[l->input_count].variable = variable;
        l->inputs[l->input_count++].type = own;
    }
    own = l->inputs[i].type;
    const uint32_t value = HDI_LOWER_MAKE(l, SpvOpLoad, own, l->inputs[i].variable);
    return own == type ? value : HDI_LOWER_MAKE(l, SpvOpBitcast, type, value);
}

uint32_t hdi_lower_begin(hdi_lowering *l, uint32_t result, const uint32_t *types, uint32_t count,
                         uint32_t *parameters) {
    uint32_t all[HDI_LOWER_MAX_OPERANDS] = { result };
    for (uint32_t i = 0; i < count; i++) all[1 + i] = types[i];
    const uint32_t type = hdi_lower_once(l, SpvOpTypeFunction, 0, all, 1 + count);
    const uint32_t function = HDI_LOWER_MAKE(l, SpvOpFunction, result, SpvFunctionControlMaskNone, type);
    for (uint32_t i = 0; i < count; i++) parameters[i] = hdi_lower_make(l, SpvOpFunctionParameter, types[i], NULL, 0);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, l->next++);
    return function;
}

/* ---- types and constants, each stated once ---- */

uint32_t hdi_lower_once(hdi_lowering *l, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count) {
    if (l->status) return 0;
    const uint32_t id = l->next, known = hdi_spirv_state(&l->arena, &l->stated, opcode, type, operands, count, id);
    if (!known) no_memory(l);
    if (known != id) return known;
    l->next++;
    uint32_t all[HDI_LOWER_MAX_OPERANDS + 2], at = 0;
    if (type) all[at++] = type;
    all[at++] = id;
    for (uint32_t i = 0; i < count; i++) all[at++] = operands[i];
    hdi_lower_add(l, &l->globals, opcode, all, at);
    return id;
}

static bool is_stated_once(uint32_t opcode) {
    return (opcode >= SpvOpTypeVoid && opcode <= SpvOpTypeVector) || opcode == SpvOpTypeFunction ||
           opcode == SpvOpTypePointer || opcode == SpvOpConstant;
}

/* What the module states itself. */
static bool note_stated(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        const uint32_t begin = opcode == SpvOpConstant ? 3 : 2;
        if (!is_stated_once(opcode) || length < begin || words[begin - 1] == 0) continue;
        if (!hdi_spirv_state(&l->arena, &l->stated, opcode, begin == 3 ? words[1] : 0, words + begin, length - begin,
                             words[begin - 1]))
            no_memory(l);
    }
    return !l->status;
}

/* ---- push constants ---- */

enum { MOST_PUSH_BYTES = 1 << 16, /* more than is taken anyhow */ MOST_DEPTH = 8 };

static uint64_t bytes_of(hdi_lowering *l, uint32_t type, uint32_t matrix_stride, uint32_t depth);

/* Where the members of a struct end: by their offsets, and strides where they are matrices. */
static uint64_t end_of(hdi_lowering *l, const uint32_t *whole, uint32_t depth) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < hdi_lower_length(whole) - 2; i++) {
        uint32_t offset = 0, stride = HDI_SPIRV_NONE;
        if (++l->looks > HDI_LOWER_MAX_LOOKS) return MOST_PUSH_BYTES;
        for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
            const uint32_t *words = l->words + at;
            if (words[0] != (5u << SpvWordCountShift | SpvOpMemberDecorate) || words[1] != whole[1] || words[2] != i)
                continue;
            if (words[3] == SpvDecorationOffset) offset = words[4];
            if (words[3] == SpvDecorationMatrixStride) stride = words[4];
        }
        most = HDI_MAX(most, offset + bytes_of(l, whole[2 + i], stride, depth + 1));
    }
    return most;
}

/* Bytes of a member; 0: not known, which the checks say. */
static uint64_t bytes_of(hdi_lowering *l, uint32_t type, uint32_t matrix_stride, uint32_t depth) {
    const uint32_t *words = type < l->bound && l->at[type] ? l->words + l->at[type] : NULL, *length;
    if (!words || depth > MOST_DEPTH || hdi_lower_length(words) < 3) return 0;
    if (hdi_lower_is_address(l, type)) return 8;
    switch (hdi_lower_opcode(words)) {
    case SpvOpTypeInt:
    case SpvOpTypeFloat: return words[2] / 8;
    case SpvOpTypeVector:
        return hdi_lower_length(words) > 3 ? words[3] * bytes_of(l, words[2], matrix_stride, depth + 1) : 0;
    /* of rows or of columns: at most four lines */
    case SpvOpTypeMatrix: return 4ull * (matrix_stride == HDI_SPIRV_NONE ? 0 : matrix_stride);
    case SpvOpTypeArray:
        length = hdi_lower_length(words) > 3 ? hdi_lower_def(l, words[3], SpvOpConstant, 4) : NULL;
        const uint32_t stride = hdi_lower_decorated(l, type, SpvDecorationArrayStride);
        return length && stride != HDI_SPIRV_NONE ? (uint64_t)length[3] * stride : 0;
    case SpvOpTypeStruct: return end_of(l, words, depth);
    default: return 0;
    }
}

/* The module's block of push constants, and where it ends. */
static void measure_push(hdi_lowering *l) {
    const uint32_t *variable = hdi_lower_def(l, l->push, SpvOpVariable, 4);
    const uint32_t *pointer = variable ? hdi_lower_def(l, variable[1], SpvOpTypePointer, 4) : NULL;
    const uint32_t *block = pointer ? hdi_lower_def(l, pointer[3], SpvOpTypeStruct, 2) : NULL;
    if (!block) return;
    l->push_struct = block[1];
    l->push_members = hdi_lower_length(block) - 2;
    l->push_bytes = (uint32_t)HDI_MIN(hdi_divide_up(end_of(l, block, 0), 4) * 4, (uint64_t)MOST_PUSH_BYTES);
}

/* The block with the lengths of images behind what it has. */
static void put_push(hdi_lowering *l) {
    uint32_t members[HDI_LOWER_MAX_OPERANDS + 64] = { 0 }, count = 0;
    if (l->length_words == 0) return;
    const uint32_t *old = l->push_struct ? l->words + l->at[l->push_struct] : NULL, block = l->next++;
    if (l->push_members + l->length_words > HDI_LOWER_MAX_OPERANDS) {
        hdi_lower_refuse(l, old ? old : l->words + HDI_SPIRV_HEADER_WORDS,
                         "%u push constants beside %u lengths of images, of which each is one", l->push_members,
                         l->length_words);
        return;
    }
    members[count++] = block;
    for (uint32_t i = 0; i < l->push_members; i++) members[count++] = old[2 + i];
    for (uint32_t i = 0; i < l->length_words; i++) {
        members[count++] = hdi_lower_uint(l);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, block, l->push_members + i, SpvDecorationOffset,
                      l->push_bytes + 4 * i);
    }
    for (size_t at = HDI_SPIRV_HEADER_WORDS; old && at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, length = hdi_lower_length(words);
        if (hdi_lower_opcode(words) != SpvOpMemberDecorate || length < 4 || length > 6 || words[1] != l->push_struct)
            continue;
        const uint32_t moved[] = { block, words[2], words[3], length > 4 ? words[4] : 0, length > 5 ? words[5] : 0 };
        hdi_lower_add(l, &l->decorations, SpvOpMemberDecorate, moved, length - 1);
    }
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, block, SpvDecorationBlock);
    hdi_lower_add(l, &l->globals, SpvOpTypeStruct, members, count);
    const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassPushConstant, block);
    HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, l->push, SpvStorageClassPushConstant);
    if (l->push < l->bound) l->gone[l->push] = (uint8_t)MOVED;
}

/* ---- finding ---- */

/* Where ids are defined, and the first function. */
static bool index_ids(hdi_lowering *l) {
    l->at = hdi_arena_alloc(&l->arena, l->bound * sizeof *l->at);
    if (!l->at) return false;
    l->functions = l->count;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, word = result_word(words);
        if (hdi_lower_opcode(words) == SpvOpFunction && l->functions == l->count) l->functions = at;
        if (word && words[word] && words[word] < l->bound && !l->at[words[word]]) l->at[words[word]] = (uint32_t)at;
    }
    return true;
}

/* Does the module say that it has addresses? */
static bool has_addresses(const uint32_t *words, size_t count) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < count; at += hdi_lower_length(words + at))
        if (words[at] == (3u << SpvWordCountShift | SpvOpMemoryModel)) return words[at + 1] == PHYSICAL_ADDRESSES;
    return false;
}

/* What was reached by addresses lies in buffers now, narrow numbers too. */
static void find_narrow_types(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words);
        if ((opcode == SpvOpTypeInt || opcode == SpvOpTypeFloat) && hdi_lower_length(words) > 2 && words[2] <= 16)
            l->element_bytes |= words[2] / 8;
    }
}

/* Bytes of narrow numbers in the type, or-ed. `left`: how many types may be looked at. */
static uint32_t narrow_in(const hdi_lowering *l, uint32_t type, uint32_t depth, uint32_t *left) {
    const uint32_t *words = type < l->bound && l->at[type] ? l->words + l->at[type] : NULL;
    const uint32_t length = words ? hdi_lower_length(words) : 0;
    uint32_t bytes = 0;
    if (length < 3 || depth > HDI_SPIRV_MAX_TYPE_DEPTH || *left == 0) return 0;
    --*left;
    switch (hdi_lower_opcode(words)) {
    case SpvOpTypeInt:
    case SpvOpTypeFloat: return words[2] <= 16 ? words[2] / 8 : 0;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
    case SpvOpTypeArray:
    case SpvOpTypeRuntimeArray: return narrow_in(l, words[2], depth + 1, left);
    case SpvOpTypeStruct:
        for (uint32_t i = 2; i < length; i++) bytes |= narrow_in(l, words[i], depth + 1, left);
        return bytes;
    default: return 0;
    }
}

/* Some compilers put narrow numbers into buffers and only say that there are such numbers. */
static void find_narrow_buffer(hdi_lowering *l, const uint32_t *variable) {
    const uint32_t *pointer = hdi_lower_def(l, variable[1], SpvOpTypePointer, 4);
    uint32_t left = HDI_LOWER_MAX_LOOKS, bytes = pointer ? narrow_in(l, pointer[3], 0, &left) : 0;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; bytes && at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (words[0] != (2u << SpvWordCountShift | SpvOpCapability)) break;
        const bool has8 = words[1] == SpvCapabilityStorageBuffer8BitAccess ||
                          words[1] == SpvCapabilityUniformAndStorageBuffer8BitAccess;
        const bool has16 = words[1] == SpvCapabilityStorageBuffer16BitAccess ||
                           words[1] == SpvCapabilityUniformAndStorageBuffer16BitAccess;
        bytes &= ~((has8 ? 1u : 0) | (has16 ? 2u : 0));
    }
    l->element_bytes |= bytes;
}

static bool scan(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, length = hdi_lower_length(words);
        if (hdi_lower_opcode(words) == SpvOpMemoryModel && length == 3) l->addressed = words[1] == PHYSICAL_ADDRESSES;
        if (hdi_lower_opcode(words) == SpvOpEntryPoint && length > 3) l->entry = words[2];
        if (hdi_lower_opcode(words) != SpvOpVariable || length < 4 || words[2] >= l->bound) continue;
        if (words[3] == SpvStorageClassPushConstant) l->push = words[2];
        else if (words[3] == SpvStorageClassUniformConstant) hdi_lower_find_image(l, words);
        else if (words[3] == SpvStorageClassStorageBuffer) {
            hdi_lower_find_array(l, words);
            find_narrow_buffer(l, words);
        }
        l->shared_count += hdi_lower_begins_with_zeros(l, words);
    }
    l->glsl = hdi_lower_set(l, "GLSL.std.450");
    hdi_lower_find_groups(l);
    return !l->status && (l->element_bytes || l->image_count || l->sampler_count || l->array_count || l->addressed ||
                          l->groups || l->shared_count || hdi_lower_any_pointers(l));
}

/* Types of images, of samplers and of arrays of buffers, and pointers to them, have no use any more. */
static void leave_types_out(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        bool gone = opcode == SpvOpTypeImage || opcode == SpvOpTypeSampler || opcode == SpvOpTypeSampledImage;
        if ((opcode == SpvOpTypeArray || opcode == SpvOpTypeRuntimeArray) && length > 2)
            gone = words[2] < l->bound && l->gone[words[2]] == 1; /* of images or samplers */
        if (opcode == SpvOpTypePointer && length == 4) gone = words[3] < l->bound && l->gone[words[3]] == 1;
        if (gone && length > 1 && words[1] < l->bound) l->gone[words[1]] = 1;
    }
}

/* ---- the new module ---- */

/* The entry point lists what there is now. */
static void put_entry(hdi_lowering *l, hdi_lower_words *to, const uint32_t *words) {
    const uint32_t length = hdi_lower_length(words);
    uint32_t at = 3, count = 0;
    uint32_t *all = hdi_arena_alloc(&l->arena, ((size_t)length + 1) * HDI_SPIRV_MAX_BINDINGS * sizeof *all);
    if (!all) {
        no_memory(l);
        return;
    }
    while (at < length && (((words[at] - 0x01010101u) & ~words[at]) & 0x80808080u) == 0) at++;
    for (uint32_t i = 1; i < length; i++) {
        uint32_t array = 0;
        while (array < l->array_count && (l->arrays[array].images || l->arrays[array].variable != words[i])) array++;
        for (uint32_t k = 0; i > at && k < l->image_array_count; k++)
            for (uint32_t e = 0; l->image_arrays[k].variable == words[i] && e < l->image_arrays[k].count; e++)
                all[count++] = l->images[l->image_arrays[k].first + e].variable;
        const bool listed = i > at, goes = listed && words[i] < l->bound && l->gone[words[i]] == 1;
        for (uint32_t k = 0; goes && array < l->array_count && k < l->arrays[array].count; k++)
            all[count++] = l->arrays[array].elements[k];
        if (!goes) all[count++] = words[i];
    }
    for (uint32_t i = 0; i < l->address_count && l->words[1] >= 0x00010400u; i++)
        all[count++] = l->addresses[i].variable;
    if (l->length_words && l->push >= l->bound && l->words[1] >= 0x00010400u) all[count++] = l->push;
    for (uint32_t i = 0; i < l->input_count; i++)
        if (l->inputs[i].variable >= l->bound) all[count++] = l->inputs[i].variable;
    if (count >= 0xFFFF) hdi_lower_refuse(l, words, "it lists too many variables");
    hdi_lower_add(l, to, SpvOpEntryPoint, all, count);
}

/* What is said of addresses, which are none any more. */
static bool is_about_addresses(const hdi_lowering *l, const uint32_t *words) {
    const uint32_t length = hdi_lower_length(words);
    switch (hdi_lower_opcode(words)) {
    case SpvOpCapability: return length == 2 && words[1] == SpvCapabilityPhysicalStorageBufferAddresses;
    case SpvOpTypeForwardPointer: return true;
    case SpvOpTypePointer: return length == 4 && hdi_lower_is_address(l, words[1]);
    case SpvOpDecorate:
        return length > 2 && (hdi_lower_is_address(l, words[1]) || words[2] == SpvDecorationAliasedPointer ||
                              words[2] == SpvDecorationRestrictPointer);
    default: return false;
    }
}

/* What subgroups need, and the elements of images that are narrower than a word. */
static void put_capabilities(hdi_lowering *l, hdi_lower_words *to) {
    for (uint32_t i = 0; i < l->capability_count; i++) HDI_LOWER_ADD(l, to, SpvOpCapability, l->capabilities[i]);
    if (l->element_bytes & 2) HDI_LOWER_ADD(l, to, SpvOpCapability, SpvCapabilityStorageBuffer16BitAccess);
    if (!(l->element_bytes & 1)) return;
    uint32_t name[6] = { 0 };
    memcpy(name, "SPV_KHR_8bit_storage", sizeof "SPV_KHR_8bit_storage");
    HDI_LOWER_ADD(l, to, SpvOpCapability, SpvCapabilityStorageBuffer8BitAccess);
    hdi_lower_add(l, to, SpvOpExtension, name, HDI_COUNT(name));
}

static void put_front(hdi_lowering *l, hdi_lower_words *to) {
    bool decorated = false, able = false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        const uint32_t word = result_word(words), result = word && words[word] < l->bound ? words[word] : 0;
        if (!able && opcode != SpvOpCapability && opcode != SpvOpNop) {
            put_capabilities(l, to);
            able = true;
        }
        if (opcode == SpvOpMemoryModel && l->new_glsl) {
            const uint32_t name[] = { l->glsl, 0x4c534c47u, 0x6474732eu, 0x3035342eu, 0 }; /* "GLSL.std.450" */
            hdi_lower_add(l, to, SpvOpExtInstImport, name, HDI_COUNT(name));
        }
        if (!decorated && (hdi_spirv_is_type(opcode) || hdi_spirv_is_constant(opcode) || opcode == SpvOpVariable)) {
            for (size_t i = 0; i < l->decorations.count; i += hdi_lower_length(l->decorations.items + i))
                copy(l, to, l->decorations.items + i);
            hdi_lower_put_pointer_types(l, to);
            hdi_lower_put_address_types(l, to);
            decorated = true;
        }
        const bool about = opcode == SpvOpName || opcode == SpvOpDecorate || opcode == SpvOpMemberName ||
                           opcode == SpvOpMemberDecorate || opcode == SpvOpDecorateId;
        if (about && length > 1 && words[1] < l->bound && l->gone[words[1]] == 1) continue;
        if (opcode == SpvOpNop || (result && l->gone[result]) || hdi_lower_is_linear_mode(words)) continue;
        if (l->addressed && is_about_addresses(l, words)) continue;
        if (hdi_lower_pointer_front(l, to, words)) continue;
        if (opcode == SpvOpEntryPoint) put_entry(l, to, words);
        else if (opcode == SpvOpMemoryModel && l->addressed)
            HDI_LOWER_ADD(l, to, opcode, SpvAddressingModelLogical, words[2]);
        else if (opcode == SpvOpTypePointer && length == 4 && words[2] == SpvStorageClassImage)
            HDI_LOWER_ADD(l, to, opcode, words[1], SpvStorageClassStorageBuffer, words[3]); /* to a texel */
        else if (opcode == SpvOpVariable && hdi_lower_begins_with_zeros(l, words))
            HDI_LOWER_ADD(l, to, opcode, words[1], words[2], words[3]);
        else copy(l, to, words);
    }
    for (size_t i = 0; i < l->globals.count; i += hdi_lower_length(l->globals.items + i))
        copy(l, to, l->globals.items + i);
}

/* How far the entry point's function is: it begins with a block of its own, in which its variables stand and shared
 * memory is set to zeros. */
typedef struct beginning {
    bool     waits;        /* for its first block */
    uint32_t first, label; /* that block, once it was met, and the one in front of it */
} beginning;

/* True: the instruction is written. */
static bool begin_with_zeros(hdi_lowering *l, const uint32_t *words, beginning *of) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    if (opcode == SpvOpFunction && length > 2 && words[2] == l->entry && l->shared_count) of->waits = true;
    if (of->waits && opcode == SpvOpLabel && length > 1) {
        *of = (beginning){ .first = words[1], .label = l->next++ };
        HDI_LOWER_ADD(l, &l->code, SpvOpLabel, of->label);
        return true;
    }
    if (!of->first || opcode == SpvOpVariable || opcode == SpvOpNop) return false;
    hdi_lower_put_zeros(l, of->label);
    HDI_LOWER_ADD(l, &l->code, SpvOpBranch, of->first);
    HDI_LOWER_ADD(l, &l->code, SpvOpLabel, of->first);
    of->first = 0;
    l->shared_count = 0; /* once */
    return false;
}

static void put_functions(hdi_lowering *l) {
    beginning of_entry = { 0 };
    for (size_t at = l->functions; at < l->count && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (begin_with_zeros(l, words, &of_entry)) continue;
        if (hdi_lower_opcode(words) == SpvOpNop || hdi_lower_pointer_use(l, words) || hdi_lower_group_use(l, words) ||
            hdi_lower_image_use(l, words) ||
            hdi_lower_array_use(l, words) || hdi_lower_address_use(l, words))
            continue;
        copy(l, &l->code, words);
    }
}

static void write_module(hdi_lowering *l, hdi_lower_words *to) {
    /* as much as there can be, so that the words below have room */
    to->capacity = l->count + l->decorations.count + l->globals.count + l->code.count + l->made.count + 512;
    to->items = hdi_arena_alloc(&l->arena, to->capacity * sizeof *to->items);
    if (!to->items) {
        no_memory(l);
        return;
    }
    memcpy(to->items, l->words, HDI_SPIRV_HEADER_WORDS * sizeof *to->items);
    to->count = HDI_SPIRV_HEADER_WORDS;
    to->items[1] = HDI_MAX(to->items[1], 0x00010300u); /* which knows storage buffers */
    to->items[3] = l->next;
    put_front(l, to);
    for (size_t i = 0; i < l->code.count; i += hdi_lower_length(l->code.items + i)) copy(l, to, l->code.items + i);
    for (size_t i = 0; i < l->made.count; i += hdi_lower_length(l->made.items + i)) copy(l, to, l->made.items + i);
}

static hd_status keep(hdi_lowering *l, const hdi_lower_words *module, hdi_spirv_lowered *out) {
    out->bytes = module->count * sizeof *module->items;
    out->words = hdi_alloc(l->arena.allocator, out->bytes);
    if (!out->words) return no_memory(l), l->status;
    memcpy(out->words, module->items, out->bytes);
    out->length_words = l->length_words;
    for (uint32_t i = 0; i < l->image_count; i++) {
        const hdi_lower_image *image = &l->images[i];
        out->parts[out->part_count++] =
            (hdi_spirv_lowered_part){ .variable = image->variable,
                                      .element = image->number,
                                      .image = { .axes = image->axes,
                                                 .dtype = image->dtype,
                                                 .channels = image->channels,
                                                 .push_word = l->push_bytes / 4 + image->length } };
    }
    for (uint32_t i = 0; i < l->array_count; i++) {
        if (l->arrays[i].images) continue; /* they are among the images */
        for (uint32_t k = 0; k < l->arrays[i].count && out->part_count < HDI_COUNT(out->parts); k++)
            out->parts[out->part_count++] =
                (hdi_spirv_lowered_part){ .variable = l->arrays[i].elements[k], .element = k };
    }
    return HD_OK;
}

/* `free_addresses`: those that it has may be anything, not just what stands in its push constants. */
static hd_status lower(const hd_allocator *allocator, const hdi_spirv_input *input, bool free_addresses,
                       hdi_spirv_lowered *out_lowered, hd_error *error) {
    const uint32_t *words = input->module;
    hdi_lowering *l = hdi_alloc(allocator, sizeof *l);
    if (!l) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory to read a SPIR-V module");
    *l = (hdi_lowering){ .arena = { .allocator = allocator },
                         .error = error,
                         .words = words,
                         .count = input->bytes / 4,
                         .wishes = input->images,
                         .wish_count = input->image_count,
                         .bound = words[3],
                         .next = words[3] };
    bool indexed = index_ids(l);
    if (indexed && hdi_lower_any_short(l))
        indexed = note_stated(l) && hdi_lower_spell(l) && (l->status || index_ids(l));
    if (indexed && free_addresses && !l->status)
        indexed = note_stated(l) && hdi_lower_put_memory(l) && (l->status || index_ids(l));
    const uint32_t *before = l->words;
    if (indexed && has_addresses(words, input->bytes / 4)) find_narrow_types(l);
    indexed = indexed && (l->status || hdi_lower_copy_functions(l));
    if (indexed && l->words != before) indexed = index_ids(l);
    l->gone = hdi_arena_alloc(&l->arena, l->bound);
    l->chosen_of = hdi_arena_alloc(&l->arena, l->bound * sizeof *l->chosen_of);
    if (!indexed || !l->gone || !l->chosen_of) no_memory(l);
    else if (!l->status && (scan(l) || l->words != words) && !l->status && note_stated(l)) {
        hdi_lower_words module = { 0 };
        if (!hdi_lower_find_pointers(l)) no_memory(l);
        if (l->addressed && !hdi_lower_def(l, hdi_lower_uint(l), SpvOpTypeInt, 4))
            hdi_lower_refuse(l, l->words + HDI_SPIRV_HEADER_WORDS, "addresses and no words");
        leave_types_out(l);
        if (l->image_count || l->addressed) measure_push(l);
        if (!l->push_struct) l->push = l->next++;
        if (!l->glsl && (l->image_count || l->groups)) l->glsl = l->next++, l->new_glsl = 1;
        hdi_lower_put_images(l);
        hdi_lower_put_arrays(l);
        put_push(l);
        hdi_lower_decorate_addresses(l);
        hdi_lower_put_variables(l);
        put_functions(l);
        if (!l->status) write_module(l, &module);
        if (!l->status) l->status = keep(l, &module, out_lowered);
    }
    const hd_status status = l->status;
    hdi_names_free(&l->stated.ids);
    hdi_arena_free(&l->arena);
    hdi_free(allocator, l, sizeof *l);
    return status;
}

hd_status hdi_spirv_lower(const hd_allocator *allocator, const hdi_spirv_input *input, hdi_spirv_lowered *out_lowered,
                          hd_error *error) {
    *out_lowered = (hdi_spirv_lowered){ 0 };
    if (!hdi_spirv_is_readable(input->module, input->bytes / 4)) return HD_OK;
    const bool some = has_addresses(input->module, input->bytes / 4);
    hd_error first = { 0 };
    const hd_status status = lower(allocator, input, false, out_lowered, &first);
    if (!some || status != HD_STATUS_MODULE) {
        if (error && error->status == HD_OK) *error = first;
        return status;
    }
    return lower(allocator, input, true, out_lowered, error);
}
