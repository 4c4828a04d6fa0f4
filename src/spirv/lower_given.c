/* lower_given.c: an instruction that reads or writes through a pointer which is chosen at run time becomes a call of a
 * function with a case for each place that the pointer may lead to. What the function is given, and its switch. */
#include "spirv/lower_images.h"

enum { MOST_OPERANDS = 16 }; /* words of an instruction that reads or writes */

uint32_t hdi_lower_used_pointer(const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words);
    const bool stores = opcode == SpvOpStore || opcode == SpvOpAtomicStore;
    const bool known = stores || opcode == SpvOpLoad || opcode == SpvOpArrayLength || hdi_spirv_is_atomic(opcode);
    const uint32_t least = opcode == SpvOpStore ? 3 : opcode == SpvOpLoad ? 4 : 5;
    return !known || hdi_lower_length(words) < least ? 0 : stores ? 1 : 3;
}

/* ---- what it is given ---- */

/* The type of a value that is none of the module's constants, so that a function has to be given it; 0: else. */
static uint32_t given_type(const hdi_lowering *l, uint32_t id) {
    return id < l->bound && l->at[id] >= l->functions ? hdi_image_type_of(l, id) : 0;
}

bool hdi_lower_give(const hdi_lowering *l, uint32_t id, hdi_lower_given *g) {
    const uint32_t type = given_type(l, id);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->values[i] == id) return true;
    if (!type) return true;
    if (g->count == HDI_LOWER_MAX_OPERANDS - 2) return false;
    g->values[g->count] = id;
    g->types[g->count++] = type;
    return true;
}

uint32_t hdi_lower_given_as(const hdi_lower_given *g, uint32_t id) {
    for (uint32_t i = 0; i < g->count; i++)
        if (g->values[i] == id) return g->ids[i];
    return id;
}

/* Up to which word its operands are ids of values; then it says how memory is accessed, in literals and constants. */
static uint32_t ids_of(const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const uint32_t most = opcode == SpvOpLoad || opcode == SpvOpArrayLength ? 4 : opcode == SpvOpStore ? 3 : length;
    return HDI_MIN(length, most);
}

bool hdi_lower_gives(const uint32_t *words) {
    return hdi_spirv_op_row(hdi_lower_opcode(words))->operands[0] == 't';
}

bool hdi_lower_give_operands(const hdi_lowering *l, const uint32_t *words, uint32_t at, hdi_lower_given *g) {
    bool room = hdi_lower_length(words) <= MOST_OPERANDS;
    for (uint32_t i = hdi_lower_gives(words) ? 3 : 1; i < ids_of(words); i++)
        if (i != at) room &= hdi_lower_give(l, words[i], g);
    return room;
}

void hdi_lower_put_use(hdi_lowering *l, const uint32_t *words, uint32_t at, uint32_t pointer,
                       const hdi_lower_given *g) {
    const uint32_t length = hdi_lower_length(words), ids = ids_of(words);
    const bool results = hdi_lower_gives(words);
    uint32_t all[MOST_OPERANDS] = { 0 };
    for (uint32_t i = 1; i < length; i++)
        all[i - 1] = i == at                           ? pointer
                     : results && i == 2               ? l->next++
                     : i >= ids || (results && i == 1) ? words[i]
                                                       : hdi_lower_given_as(g, words[i]);
    hdi_lower_add(l, &l->made, hdi_lower_opcode(words), all, length - 1);
    if (results) HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, all[1]);
    else hdi_lower_add(l, &l->made, SpvOpReturn, NULL, 0);
}

void hdi_lower_call(hdi_lowering *l, uint32_t type, uint32_t result, uint32_t function, const hdi_lower_given *g) {
    uint32_t all[HDI_LOWER_MAX_OPERANDS + 3] = { type, result, function };
    for (uint32_t i = 0; i < g->count; i++) all[3 + i] = g->values[i];
    hdi_lower_add(l, &l->code, SpvOpFunctionCall, all, 3 + g->count);
}

/* ---- its switch ---- */

void hdi_lower_begin_switch(hdi_lowering *l, uint32_t merge, uint32_t selector, const uint32_t *numbers,
                            uint32_t count, uint32_t *out_labels) {
    uint32_t cases[2 * HDI_LOWER_MAX_CASES + 2] = { selector }, at = 2;
    for (uint32_t i = 0; i < count; i++) out_labels[i] = l->next++;
    cases[1] = out_labels[count - 1];
    for (uint32_t i = 0; i + 1 < count; i++) {
        cases[at++] = numbers ? numbers[i] : i;
        cases[at++] = out_labels[i];
    }
    HDI_LOWER_ADD(l, &l->made, SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    hdi_lower_add(l, &l->made, SpvOpSwitch, cases, at);
}

void hdi_lower_end_switch(hdi_lowering *l, uint32_t merge) {
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, merge);
    hdi_lower_add(l, &l->made, SpvOpUnreachable, NULL, 0);
}
