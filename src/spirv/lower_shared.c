/* lower_shared.c: shared memory that begins with zeros. C and its kin lack such variables, so all invocations of a
 * workgroup set them together before the entry point begins: each number, vector or matrix in them by a loop over the
 * arrays around it, of which each invocation takes its share. Then they meet at a barrier. */
#include "spirv/lower_images.h"

enum { MOST_LOOKS = 4096, /* at parts of such variables */
       SCOPE_WORKGROUP = SpvScopeWorkgroup,
       ORDER = SpvMemorySemanticsAcquireReleaseMask | SpvMemorySemanticsWorkgroupMemoryMask };

/* Where a part of a variable lies: the members and arrays around it, from the outside in. */
typedef struct path {
    struct { uint32_t member, length; } steps[HDI_SPIRV_MAX_TYPE_DEPTH]; /* ids of numbers; one of both */
    uint32_t count, variable;
} path;
typedef struct zeros {
    hdi_lowering *l;
    uint32_t      index, step, label; /* of the invocation, and how many there are; the block that is being written */
    uint32_t      looks;
    const uint32_t *words;            /* of the variable */
} zeros;

bool hdi_lower_begins_with_zeros(const hdi_lowering *l, const uint32_t *variable) {
    return variable[0] == (5u << SpvWordCountShift | SpvOpVariable) && variable[3] == SpvStorageClassWorkgroup &&
           hdi_lower_def(l, variable[4], SpvOpConstantNull, 3);
}

/* A constant of 32 bits as an unsigned number; 0: it is none. */
static uint32_t unsigned_of(hdi_lowering *l, uint32_t id) {
    const uint32_t own = hdi_image_type_of(l, id), *type = hdi_lower_def(l, own, SpvOpTypeInt, 4);
    return type && type[2] == 32 ? as_type(l, id, own, hdi_lower_uint(l)) : 0;
}

/* How many invocations a workgroup has; 0: not known. */
static uint32_t workgroup_size(hdi_lowering *l) {
    uint32_t sizes[3] = { 0 }, by_name = 0;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        if (words[0] == (4u << SpvWordCountShift | SpvOpDecorate) && words[2] == SpvDecorationBuiltIn &&
            words[3] == SpvBuiltInWorkgroupSize)
            by_name = words[1];
        const bool mode = (opcode == SpvOpExecutionMode || opcode == SpvOpExecutionModeId) && length == 6 &&
                          words[1] == l->entry;
        for (uint32_t i = 0; mode && i < 3; i++)
            if (words[2] == SpvExecutionModeLocalSize) sizes[i] = number(l, words[3 + i]);
            else if (words[2] == SpvExecutionModeLocalSizeId) sizes[i] = unsigned_of(l, words[3 + i]);
    }
    const uint32_t *vector = hdi_lower_def(l, hdi_image_type_of(l, by_name), SpvOpTypeVector, 4);
    for (uint32_t i = 0; vector && vector[3] == 3 && i < 3; i++)
        sizes[i] = as_type(l, HDI_LOWER_MAKE(l, SpvOpCompositeExtract, vector[2], by_name, i), vector[2],
                           hdi_lower_uint(l));
    if (!sizes[0] || !sizes[1] || !sizes[2]) return 0;
    const uint32_t area = HDI_LOWER_MAKE(l, SpvOpIMul, hdi_lower_uint(l), sizes[0], sizes[1]);
    return HDI_LOWER_MAKE(l, SpvOpIMul, hdi_lower_uint(l), area, sizes[2]);
}

/* Sets element number `i` of all those of this type that lie at the end of the path. */
static void put_zero(zeros *z, const path *to, uint32_t type, uint32_t i) {
    hdi_lowering *l = z->l;
    const uint32_t uint = hdi_lower_uint(l);
    uint32_t operands[1 + HDI_SPIRV_MAX_TYPE_DEPTH] = { to->variable };
    for (uint32_t step = to->count; step-- > 0;) {
        operands[1 + step] = to->steps[step].member;
        if (!to->steps[step].length) continue;
        operands[1 + step] = HDI_LOWER_MAKE(l, SpvOpUMod, uint, i, to->steps[step].length);
        i = HDI_LOWER_MAKE(l, SpvOpUDiv, uint, i, to->steps[step].length);
    }
    const uint32_t zero = hdi_lower_once(l, SpvOpConstantNull, type, NULL, 0),
                   pointer = hdi_lower_pointer(l, SpvStorageClassWorkgroup, type);
    const uint32_t at = to->count ? hdi_lower_make(l, SpvOpAccessChain, pointer, operands, 1 + to->count)
                                  : to->variable;
    HDI_LOWER_ADD(l, &l->made, SpvOpStore, at, zero);
}

/* The loop over all elements of this type at the end of the path. */
static void put_loop(zeros *z, const path *to, uint32_t type) {
    hdi_lowering *l = z->l;
    const uint32_t uint = hdi_lower_uint(l), header = l->next++, body = l->next++, more = l->next++, merge = l->next++,
                   next = l->next++;
    uint32_t count = number(l, 1);
    for (uint32_t step = 0; step < to->count; step++)
        if (to->steps[step].length) count = HDI_LOWER_MAKE(l, SpvOpIMul, uint, count, to->steps[step].length);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, header);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, header);
    const uint32_t i = HDI_LOWER_MAKE(l, SpvOpPhi, uint, z->index, z->label, next, more),
                   goes_on = HDI_LOWER_MAKE(l, SpvOpULessThan, bool_type(l), i, count);
    HDI_LOWER_ADD(l, &l->made, SpvOpLoopMerge, merge, more, SpvLoopControlMaskNone);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranchConditional, goes_on, body, merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, body);
    put_zero(z, to, type, i);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, more);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, more);
    HDI_LOWER_ADD(l, &l->made, SpvOpIAdd, uint, next, i, z->step);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, header);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, merge);
    z->label = merge;
}

/* A loop for each kind of number, vector and matrix in the type. */
static void put_parts(zeros *z, path *to, uint32_t type) {
    hdi_lowering *l = z->l;
    const uint32_t *array = hdi_lower_def(l, type, SpvOpTypeArray, 4),
                   *whole = hdi_lower_def(l, type, SpvOpTypeStruct, 2);
    if (l->status) return;
    if (++z->looks > MOST_LOOKS || to->count == HDI_SPIRV_MAX_TYPE_DEPTH) {
        hdi_lower_refuse(l, z->words, "it begins with zeros and has more than %d parts, or %u within each other",
                         MOST_LOOKS, HDI_SPIRV_MAX_TYPE_DEPTH);
        return;
    }
    if (!array && !whole) {
        put_loop(z, to, type);
        return;
    }
    const uint32_t length = array ? unsigned_of(l, array[3]) : 0;
    if (array && !length) {
        hdi_lower_refuse(l, z->words, "it begins with zeros and is an array whose length has not 32 bits");
        return;
    }
    const uint32_t last = to->count++;
    for (uint32_t i = 0; whole && i < hdi_lower_length(whole) - 2; i++) {
        to->steps[last].member = number(l, i);
        to->steps[last].length = 0;
        put_parts(z, to, whole[2 + i]);
    }
    if (array) {
        to->steps[last].length = length;
        put_parts(z, to, array[2]);
    }
    to->count = last;
}

void hdi_lower_put_zeros(hdi_lowering *l, uint32_t label) {
    const hdi_lower_words made = l->made; /* what is made here stands in the code */
    l->made = l->code;
    zeros z = { .l = l, .label = label, .index = hdi_lower_input(l, SpvBuiltInLocalInvocationIndex) };
    z.step = workgroup_size(l);
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (!hdi_lower_begins_with_zeros(l, words)) continue;
        const uint32_t *pointer = hdi_lower_def(l, words[1], SpvOpTypePointer, 4);
        z.words = words;
        if (!pointer || !z.step)
            hdi_lower_refuse(l, words, "it begins with zeros, and the size of the workgroup is not known");
        else put_parts(&z, &(path){ .variable = words[2] }, pointer[3]);
    }
    const uint32_t workgroup = number(l, SCOPE_WORKGROUP);
    HDI_LOWER_ADD(l, &l->made, SpvOpControlBarrier, workgroup, workgroup, number(l, ORDER));
    l->code = l->made;
    l->made = made;
}
