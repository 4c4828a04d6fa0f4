/* lower_arrays.c: arrays of buffers. Each element becomes a buffer of its own. Where an index is a constant, its
 * buffer takes the array's place; where it is not, what is done with the pointer becomes a function with a case for
 * each buffer: the last one also for an index that is too large. */
#include "spirv/lower_images.h"

void hdi_lower_find_array(hdi_lowering *l, const uint32_t *variable) {
    const uint32_t *pointer = hdi_lower_def(l, variable[1], SpvOpTypePointer, 4);
    const uint32_t *array = pointer ? hdi_lower_def(l, pointer[3], SpvOpTypeArray, 4) : NULL;
    const uint32_t *open = pointer ? hdi_lower_def(l, pointer[3], SpvOpTypeRuntimeArray, 3) : NULL;
    if (!array) array = open;
    if (!array || l->words + l->at[variable[2]] != variable) return; /* an id that is defined twice */
    const uint32_t count = hdi_lower_elements(l, variable, array);
    if (count && l->array_count == HDI_SPIRV_MAX_BINDINGS)
        hdi_lower_refuse(l, variable, "more than %d arrays of buffers", HDI_SPIRV_MAX_BINDINGS);
    if (count == 0 || l->status) return;
    l->gone[variable[2]] = l->gone[array[1]] = 1;
    l->arrays[l->array_count++] = (hdi_lower_array){ .variable = variable[2], .count = count };
}

void hdi_lower_put_arrays(hdi_lowering *l) {
    for (uint32_t i = 0; i < l->array_count && !l->status; i++) {
        hdi_lower_array *array = &l->arrays[i];
        if (array->images) continue;
        const uint32_t *variable = l->words + l->at[array->variable];
        const uint32_t *type = l->words + l->at[hdi_lower_def(l, variable[1], SpvOpTypePointer, 4)[3]];
        const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, type[2]);
        for (uint32_t k = 0; k < array->count; k++) {
            array->elements[k] = l->next++;
            HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, array->elements[k], SpvStorageClassStorageBuffer);
        }
        for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += l->words[at] >> SpvWordCountShift) {
            const uint32_t *words = l->words + at, length = hdi_lower_length(words);
            if (hdi_lower_opcode(words) != SpvOpDecorate || length < 3 || length > 4 ||
                words[1] != array->variable)
                continue;
            for (uint32_t k = 0; k < array->count; k++) {
                const uint32_t moved[] = { array->elements[k], words[2], length > 3 ? words[3] : 0 };
                hdi_lower_add(l, &l->decorations, SpvOpDecorate, moved, length - 1);
            }
        }
    }
}

/* ---- pointers ---- */

static const hdi_lower_array *array_of(const hdi_lowering *l, uint32_t id) {
    for (uint32_t i = 0; i < l->array_count; i++)
        if (l->arrays[i].variable == id) return &l->arrays[i];
    return NULL;
}

static const hdi_lower_chosen *chosen_of(const hdi_lowering *l, uint32_t id) {
    return id < l->bound && l->chosen_of[id] ? &l->chosen[l->chosen_of[id] - 1] : NULL;
}

/* Remembers a pointer that is made where it is used. */
static bool remember(hdi_lowering *l, const uint32_t *words, hdi_lower_chosen chosen) {
    const uint32_t from = 4, length = hdi_lower_length(words);
    if (length - from + chosen.count > HDI_COUNT(chosen.indices) || words[2] >= l->bound)
        return hdi_lower_refuse(l, words, "too many indices");
    for (uint32_t i = from; i < length; i++) chosen.indices[chosen.count++] = words[i];
    if (l->chosen_count == l->chosen_capacity) {
        const uint32_t capacity = HDI_MAX(l->chosen_capacity * 2, 64u);
        hdi_lower_chosen *more = hdi_arena_alloc(&l->arena, capacity * sizeof *more);
        if (!more) {
            l->status = hdi_fail(l->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory to read a SPIR-V module");
            return true;
        }
        if (l->chosen_count) memcpy(more, l->chosen, l->chosen_count * sizeof *more);
        l->chosen = more;
        l->chosen_capacity = capacity;
    }
    l->chosen[l->chosen_count++] = chosen;
    l->chosen_of[words[2]] = l->chosen_count;
    l->gone[words[2]] = 1; /* with what is said of it */
    return true;
}

bool hdi_lower_choose_texel(hdi_lowering *l, const uint32_t *words, const hdi_lower_image *first, uint32_t count,
                            uint32_t index, uint32_t texel) {
    uint32_t array = 0;
    while (array < l->array_count && l->arrays[array].elements[0] != first->variable) array++;
    if (array == HDI_SPIRV_MAX_BINDINGS)
        return hdi_lower_refuse(l, words, "more than %d arrays of buffers", HDI_SPIRV_MAX_BINDINGS);
    if (array == l->array_count) {
        l->arrays[l->array_count++] = (hdi_lower_array){ .count = count, .images = true };
        for (uint32_t k = 0; k < count; k++) l->arrays[array].elements[k] = first[k].variable;
    }
    const uint32_t zero = hdi_lower_number(l, hdi_lower_uint(l), 0);
    const uint32_t chain[] = { 6u << SpvWordCountShift | SpvOpAccessChain, words[1], words[2], 0, zero, texel };
    return remember(l, chain,
                    (hdi_lower_chosen){ .array = array, .count = 1, .indices = { index }, .texel = texel });
}

/* A pointer into an array, or one that goes on from such a pointer. */
static bool chain(hdi_lowering *l, const uint32_t *words) {
    const uint32_t length = hdi_lower_length(words);
    const hdi_lower_array *array = array_of(l, words[3]);
    const hdi_lower_chosen *chosen = chosen_of(l, words[3]);
    if (chosen) return remember(l, words, *chosen);
    if (!array) return false;
    const uint32_t *index = length > 4 ? hdi_lower_def(l, words[4], SpvOpConstant, 4) : NULL;
    if (length > 4 && !index)
        return remember(l, words, (hdi_lower_chosen){ .array = (uint32_t)(array - l->arrays) });
    if (!index || index[3] >= array->count)
        return hdi_lower_refuse(l, words, "it leads to no buffer of the array of %u", array->count);
    uint32_t all[HDI_LOWER_MAX_OPERANDS] = { words[1], words[2], array->elements[index[3]] };
    if (length - 5 + 3 > HDI_LOWER_MAX_OPERANDS) return hdi_lower_refuse(l, words, "too many indices");
    for (uint32_t i = 5; i < length; i++) all[i - 2] = words[i];
    hdi_lower_add(l, &l->code, SpvOpAccessChain, all, length - 2);
    return true;
}

/* ---- what is done with a pointer that is chosen at run time ---- */

/* One case: the instruction with the pointer into one buffer. */
static void put_case(hdi_lowering *l, const uint32_t *words, uint32_t at, const hdi_lower_chosen *chosen,
                     const hdi_lower_given *g, uint32_t element) {
    const uint32_t *pointer = l->words + l->at[words[at]];
    uint32_t indices[HDI_LOWER_MAX_OPERANDS] = { element };
    for (uint32_t i = 1; i < chosen->count; i++) indices[i] = hdi_lower_given_as(g, chosen->indices[i]);
    const uint32_t made = hdi_lower_make(l, SpvOpAccessChain, pointer[1], indices, chosen->count);
    hdi_lower_put_use(l, words, at, made, g);
}

static bool use(hdi_lowering *l, const uint32_t *words, uint32_t at, const hdi_lower_chosen *chosen) {
    const hdi_lower_array *array = &l->arrays[chosen->array];
    const uint32_t results = hdi_lower_gives(words) ? words[1] : 0;
    hdi_lower_given g = { 0 };
    uint32_t labels[HDI_SPIRV_MAX_BINDINGS];
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d uses of buffers that are chosen at run time",
                                HDI_LOWER_MAX_FUNCTIONS);
    l->functions_made[l->made_count++] = (hdi_lower_made){ 0 };
    bool fits = true;
    if (chosen->texel) /* which is no value of the module's */
        g = (hdi_lower_given){ .count = 1, .values = { chosen->texel }, .types = { hdi_lower_uint(l) } };
    for (uint32_t i = 0; i < chosen->count; i++) fits &= hdi_lower_give(l, chosen->indices[i], &g);
    fits &= hdi_lower_give_operands(l, words, at, &g);
    if (!fits) return hdi_lower_refuse(l, words, "too many values that its pointer needs");
    const uint32_t nothing = hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0), result = results ? results : nothing;
    const uint32_t function = hdi_lower_begin(l, result, g.types, g.count, g.ids), merge = l->next++;
    hdi_lower_begin_switch(l, merge, hdi_lower_given_as(&g, chosen->indices[0]), NULL, array->count, labels);
    for (uint32_t k = 0; k < array->count; k++) {
        HDI_LOWER_ADD(l, &l->made, SpvOpLabel, labels[k]);
        put_case(l, words, at, chosen, &g, array->elements[k]);
    }
    hdi_lower_end_switch(l, merge);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    hdi_lower_call(l, result, results ? words[2] : l->next++, function, &g);
    return true;
}

bool hdi_lower_array_use(hdi_lowering *l, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    if (l->array_count == 0) return false;
    if ((opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain) && length > 3) return chain(l, words);
    const uint32_t at = hdi_lower_used_pointer(words);
    const hdi_lower_chosen *chosen = at ? chosen_of(l, words[at]) : NULL;
    if (chosen) return use(l, words, at, chosen);
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    if (!row) return false;
    hdi_spirv_operands o = { .words = words, .then = 1, .end = length, .next = row->operands };
    while (hdi_spirv_next(&o)) /* anything else that a pointer goes to */
        if ((o.letter == 'i' || o.letter == 'v') && (chosen_of(l, o.word) || array_of(l, o.word)))
            return hdi_lower_refuse(l, words, "a buffer of an array is read and written through, and nothing else");
    return false;
}
