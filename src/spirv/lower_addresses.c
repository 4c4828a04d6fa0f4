/* lower_addresses.c: addresses of buffers that stand in the push constants. Each becomes a buffer of its own, which
 * the launch binds, and eight bytes that nobody reads take its place; nothing else changes for the caller. Addresses
 * that are kept in memory, computed or chosen are refused here, and left to lower_memory.c. A type of such pointers
 * stands for two things: as a member of a struct it becomes those eight bytes, and elsewhere a pointer into a storage
 * buffer. */
#include "spirv/lower.h"

enum { PHYSICAL = 5349 /* storage class */, MOST_CHAINS = 8, MOST_INDICES = 8 };


/* What a pointer type of buffer addresses points to; 0: it is none. */
static uint32_t pointee_of(const hdi_lowering *l, uint32_t type) {
    const uint32_t *words = hdi_lower_def(l, type, SpvOpTypePointer, 4);
    return words && words[2] == PHYSICAL ? words[3] : 0;
}

bool hdi_lower_is_address(const hdi_lowering *l, uint32_t type) { return pointee_of(l, type) != 0; }

void hdi_lower_put_address_types(hdi_lowering *l, hdi_lower_words *to) {
    if (!l->addressed) return;
    const uint32_t word = hdi_lower_uint(l), *known = hdi_lower_def(l, word, SpvOpTypeInt, 4);
    if (known && l->gone[word] != 2) { /* now in front of all others */
        HDI_LOWER_ADD(l, to, SpvOpTypeInt, word, 32, 0);
        l->gone[word] = 2;
    }
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) == SpvOpTypePointer && hdi_lower_length(words) == 4 && words[2] == PHYSICAL)
            HDI_LOWER_ADD(l, to, SpvOpTypeStruct, words[1], word, word);
    }
}

void hdi_lower_decorate_addresses(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; l->addressed && at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) != SpvOpTypePointer || hdi_lower_length(words) != 4 || words[2] != PHYSICAL)
            continue;
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, words[1], 0, SpvDecorationOffset, 0);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, words[1], 1, SpvDecorationOffset, 4);
    }
}

/* ---- which address it is ---- */

/* Where a member begins; HDI_SPIRV_NONE: nothing says so, or it was asked too often. */
static uint32_t offset_of(hdi_lowering *l, uint32_t type, uint32_t member) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (words[0] == (5u << SpvWordCountShift | SpvOpMemberDecorate) && words[1] == type && words[2] == member &&
            words[3] == SpvDecorationOffset)
            return words[4];
    }
    return HDI_SPIRV_NONE;
}

/* The byte of the push constants that a chain of constant indices leads to; false: it leads elsewhere. */
static bool find_offset(hdi_lowering *l, uint32_t chain, uint32_t *out_offset) {
    const uint32_t *chains[MOST_CHAINS];
    uint32_t depth = 0, offset = 0;
    while (chain != l->push) {
        const uint32_t *words = hdi_lower_def(l, chain, SpvOpAccessChain, 4);
        if (!words) words = hdi_lower_def(l, chain, SpvOpInBoundsAccessChain, 4);
        if (!words || depth == MOST_CHAINS || hdi_lower_length(words) > 4 + MOST_INDICES) return false;
        chains[depth++] = words;
        chain = words[3];
    }
    uint32_t type = l->push_struct;
    while (depth-- > 0)
        for (uint32_t i = 4; i < hdi_lower_length(chains[depth]); i++) {
            const uint32_t *index = hdi_lower_def(l, chains[depth][i], SpvOpConstant, 4);
            const uint32_t *whole = hdi_lower_def(l, type, SpvOpTypeStruct, 2);
            if (!index || !whole || index[3] >= hdi_lower_length(whole) - 2 || ++l->looks > HDI_LOWER_MAX_LOOKS)
                return false;
            const uint32_t begins = offset_of(l, type, index[3]);
            if (begins > HDI_SPIRV_MAX_BYTES) return false;
            offset += begins;
            type = whole[2 + index[3]];
        }
    *out_offset = offset;
    return offset <= HDI_SPIRV_MAX_BYTES;
}

/* ---- the buffers ---- */

/* The variable for the address at that byte, of that type; made where there is none yet. NULL: it was refused. */
static const hdi_lower_address *address_at(hdi_lowering *l, const uint32_t *words, uint32_t type, uint32_t offset) {
    for (uint32_t i = 0; i < l->address_count; i++)
        if (l->addresses[i].offset == offset && l->addresses[i].type == type) return &l->addresses[i];
    if (l->address_count == HDI_SPIRV_MAX_BINDINGS)
        return hdi_lower_refuse(l, words, "more than %d addresses", HDI_SPIRV_MAX_BINDINGS), NULL;
    const uint32_t pointee = pointee_of(l, type), stride = hdi_lower_decorated(l, type, SpvDecorationArrayStride);
    bool block = false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at))
        block |= l->words[at] == (3u << SpvWordCountShift | SpvOpDecorate) && l->words[at + 1] == pointee &&
                 l->words[at + 2] == SpvDecorationBlock;
    hdi_lower_address *address = &l->addresses[l->address_count++];
    *address = (hdi_lower_address){ .offset = offset,
                                    .type = type,
                                    .depth = block                      ? 0
                                             : stride == HDI_SPIRV_NONE ? 1
                                                                        : 2 };
    uint32_t held = pointee;
    if (address->depth == 2) {
        held = l->next++;
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeRuntimeArray, held, pointee);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, held, SpvDecorationArrayStride, stride);
    }
    if (address->depth) {
        const uint32_t whole = l->next++;
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeStruct, whole, held);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, whole, SpvDecorationBlock);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, whole, 0, SpvDecorationOffset, 0);
        held = whole;
    }
    address->variable = l->next++;
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, address->variable, SpvDecorationDescriptorSet, HD_ADDRESS_SET);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, address->variable, SpvDecorationBinding, offset);
    const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, held);
    HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, address->variable, SpvStorageClassStorageBuffer);
    return address;
}

/* ---- instructions ---- */

/* A pointer to what lies `element` elements behind the address, and from there on by further indices. */
static void point(hdi_lowering *l, const uint32_t *words, const hdi_lower_address *address, uint32_t element,
                  uint32_t from) {
    const uint32_t zero = hdi_lower_number(l, hdi_lower_uint(l), 0), length = hdi_lower_length(words);
    uint32_t all[HDI_LOWER_MAX_OPERANDS], count = 0;
    all[count++] = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, pointee_of(l, words[1]));
    all[count++] = words[2];
    all[count++] = address->variable;
    if (address->depth) all[count++] = zero;
    if (address->depth == 2) all[count++] = element ? element : zero;
    if (length - from + count > HDI_LOWER_MAX_OPERANDS) {
        hdi_lower_refuse(l, words, "too many indices");
        return;
    }
    for (uint32_t i = from; i < length; i++) all[count++] = words[i];
    hdi_lower_add(l, &l->code, count == 3 ? SpvOpCopyObject : SpvOpAccessChain, all, count);
}

/* The address that a loaded pointer is; NULL: none of the push constants'. */
static const hdi_lower_address *loaded(hdi_lowering *l, const uint32_t *words) {
    uint32_t offset;
    if (!find_offset(l, words[3], &offset))
        return hdi_lower_refuse(l, words,
                                "an address that does not stand in the push constants; pass the buffer as a binding"),
               NULL;
    return address_at(l, words, words[1], offset);
}

bool hdi_lower_address_use(hdi_lowering *l, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    const bool stepped = opcode == SpvOpPtrAccessChain || opcode == SpvOpInBoundsPtrAccessChain;
    const bool typed = stepped || (row && row->operands[0] == 't' && row->operands[1] == 'r');
    if (l->addressed && (opcode == SpvOpConvertUToPtr || opcode == SpvOpConvertPtrToU))
        return hdi_lower_refuse(l, words, "an address that is computed");
    if (!l->addressed || !typed || length < 4 || !pointee_of(l, words[1])) return false;
    if (opcode == SpvOpLoad) {
        const hdi_lower_address *address = loaded(l, words);
        if (address) point(l, words, address, 0, length);
        return true;
    }
    if (stepped && length > 4) {
        const uint32_t *base = hdi_lower_def(l, words[3], SpvOpLoad, 4);
        const hdi_lower_address *address = base && pointee_of(l, base[1]) ? loaded(l, base) : NULL;
        if (!address || address->depth != 2)
            return hdi_lower_refuse(l, words,
                                    "it steps from an address that is none of the push constants', or not of "
                                    "an array");
        point(l, words, address, words[4], 5);
        return true;
    }
    if (opcode != SpvOpAccessChain && opcode != SpvOpInBoundsAccessChain)
        return hdi_lower_refuse(l, words,
                                "an address that is computed, chosen or kept; pass the buffer as a binding");
    uint32_t all[HDI_LOWER_MAX_OPERANDS] = { hdi_lower_pointer(l, SpvStorageClassStorageBuffer,
                                                               pointee_of(l, words[1])) };
    if (length > HDI_LOWER_MAX_OPERANDS) return hdi_lower_refuse(l, words, "too many indices");
    memcpy(all + 1, words + 2, (length - 2) * sizeof *all);
    hdi_lower_add(l, &l->code, SpvOpAccessChain, all, length - 1);
    return true;
}
