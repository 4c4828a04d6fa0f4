/* fold.c: constant folding, once the specialisation constants are given. First one pass over the blocks in reverse
 * post-order: values that are known, values that equal another one, blocks that known conditions still reach. Then back
 * from what has effects: the values that are needed, and those needed outside of their own block. Floats are not
 * calculated with, their bits are only passed on: the device rounds as it does. Relies on all the checks; takes time in
 * proportion to the words. */
#include "spirv/print.h"

/* ---- ways ---- */

/* The block that a branch on a known value leads to. */
static uint32_t only_way(const hdi_spirv_printer *p, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    uint32_t inst = m->blocks[block].inst_end, opcode = hdi_spirv_opcode(m, inst);
    const uint32_t *words = hdi_spirv_words(m, inst);
    if (m->blocks[block].only != HDI_SPIRV_NONE || (opcode != SpvOpBranchConditional && opcode != SpvOpSwitch))
        return m->blocks[block].only;
    uint32_t condition = hdi_spirv_find(m, words[1]);
    if (!hdi_spirv_is_known(p, condition)) return HDI_SPIRV_NONE;
    uint32_t value = (uint32_t)hdi_spirv_bits(p, condition);
    if (opcode == SpvOpBranchConditional) return hdi_spirv_target(m, block, value ? 0 : 1);
    uint32_t width = hdi_spirv_type_of(m, condition)->width, mask = width < 32 ? (1u << width) - 1 : UINT32_MAX;
    for (uint32_t at = 3; at < words[0] >> 16; at += 2)
        if (((words[at] ^ value) & mask) == 0) return hdi_spirv_target(m, block, (at - 1) / 2);
    return hdi_spirv_target(m, block, 0);
}

uint32_t hdi_spirv_way(const hdi_spirv_printer *p, uint32_t block, uint32_t n) {
    if (p->only_way[block] == HDI_SPIRV_NONE) return hdi_spirv_target(p->m, block, n);
    return n == 0 ? p->only_way[block] : HDI_SPIRV_NONE;
}

bool hdi_spirv_leads(const hdi_spirv_printer *p, uint32_t from, uint32_t to) {
    return from != HDI_SPIRV_NONE && p->reached[from] &&
           (p->only_way[from] == HDI_SPIRV_NONE || p->only_way[from] == to);
}

/* ---- values ---- */

static void know(hdi_spirv_printer *p, uint32_t def, uint64_t bits) {
    uint32_t width = hdi_spirv_type_of(p->m, def)->width;
    p->bits[def] = width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
    p->facts[def] |= HDI_SPIRV_KNOWN;
}

static uint32_t operand(const hdi_spirv_printer *p, const uint32_t *words, uint32_t at) {
    return p->same[hdi_spirv_find(p->m, words[at])];
}

/* One value, or one known number, from every block that can lead here? */
static void fold_phi(hdi_spirv_printer *p, uint32_t block, uint32_t def, const uint32_t *words) {
    uint32_t only = 0;
    for (uint32_t i = 3; i < words[0] >> 16; i += 2) {
        uint32_t from = p->m->defs[hdi_spirv_find(p->m, words[i + 1])].detail, value = operand(p, words, i);
        if (from == HDI_SPIRV_NONE || p->m->tree.place[from] == HDI_SPIRV_NONE || value == def) continue;
        bool back = p->m->tree.place[from] >= p->m->tree.place[block]; /* not folded yet */
        if (!back && !hdi_spirv_leads(p, from, block)) continue;
        bool equal = only &&
                     (value == only ||
                      (hdi_spirv_is_known(p, value) && hdi_spirv_is_known(p, only) && p->bits[value] == p->bits[only]));
        if (only && !equal) return;
        only = value;
    }
    if (only) p->same[def] = only;
}

/* The part that OpCompositeExtract takes, where the whole was made of parts. */
static void fold_extract(hdi_spirv_printer *p, uint32_t def, const uint32_t *words) {
    uint32_t whole = operand(p, words, 3), count = (words[0] >> 16) - 4, part = 0;
    uint32_t opcode = hdi_spirv_def_opcode(p->m, whole);
    const uint32_t *from = hdi_spirv_def_words(p->m, whole);
    if (opcode == SpvOpCompositeConstruct && count == 1) {
        const hdi_spirv_type *type = hdi_spirv_type_of(p->m, whole);
        bool one_by_one = type->kind != 'c' && (from[0] >> 16) - 3 == type->count;
        if (one_by_one) part = operand(p, from, 3 + words[4]);
    } else if (hdi_spirv_is_constant(opcode)) {
        part = hdi_spirv_constant_part(p->m, whole, words + 4, count);
    }
    if (part) p->same[def] = part;
}

/* And, or and products that one operand decides. */
static bool fold_by_one(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, uint32_t known, uint32_t other) {
    uint64_t bits = p->bits[known];
    switch (opcode) {
    case SpvOpLogicalAnd: if (bits) p->same[def] = other; else know(p, def, 0); return true;
    case SpvOpLogicalOr: if (bits) know(p, def, 1); else p->same[def] = other; return true;
    case SpvOpBitwiseAnd: case SpvOpIMul: if (bits == 0) know(p, def, 0); return bits == 0;
    default: return false;
    }
}

static void fold_numbers(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, const uint32_t *words) {
    uint32_t count = words[0] >> 16;
    if (count < 4 || count > 5) return;
    uint32_t a = operand(p, words, 3), b = count == 5 ? operand(p, words, 4) : a;
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, a);
    if (type->kind != 'i' && type->kind != 'b') return;
    uint64_t bits;
    bool a_known = hdi_spirv_is_known(p, a), b_known = hdi_spirv_is_known(p, b);
    if (a_known && b_known && hdi_spirv_calculate(opcode, p->bits[a], p->bits[b], type->width, &bits))
        know(p, def, bits);
    else if (a_known != b_known) fold_by_one(p, opcode, def, a_known ? a : b, a_known ? b : a);
}

/* Instructions of GLSL.std.450 that choose among or search in integers. */
static void fold_glsl(hdi_spirv_printer *p, uint32_t def, const uint32_t *words) {
    uint32_t number = words[4], a = operand(p, words, 5), b = words[0] >> 16 > 6 ? operand(p, words, 6) : a;
    uint64_t bits;
    if (hdi_spirv_find(p->m, words[3]) != p->m->glsl_set || !hdi_spirv_is_known(p, a) || !hdi_spirv_is_known(p, b))
        return;
    if (hdi_spirv_calculate_glsl(number, p->bits[a], p->bits[b], hdi_spirv_type_of(p->m, def)->width, &bits))
        know(p, def, bits);
}

static void fold_instruction(hdi_spirv_printer *p, uint32_t block, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t opcode = words[0] & 0xFFFF;
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    if (row->operands[0] != 't' || opcode == SpvOpVariable || opcode == SpvOpFunctionCall) return;
    uint32_t def = hdi_spirv_find(p->m, words[2]);
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    if (opcode == SpvOpPhi) {
        fold_phi(p, block, def, words);
    } else if (opcode == SpvOpCopyObject && type->kind != 'p') {
        p->same[def] = operand(p, words, 3);
    } else if (opcode == SpvOpCompositeExtract) {
        fold_extract(p, def, words);
    } else if (opcode == SpvOpSelect) {
        uint32_t condition = operand(p, words, 3);
        if (hdi_spirv_is_known(p, condition)) p->same[def] = operand(p, words, p->bits[condition] ? 4 : 5);
    } else if (opcode == SpvOpBitcast && type->count == 1) {
        uint32_t from = operand(p, words, 3);
        if (hdi_spirv_is_known(p, from)) know(p, def, p->bits[from]);
        else if (type->kind == 'i' && hdi_spirv_type_of(p->m, from)->kind == 'i' &&
                 hdi_spirv_type_of(p->m, from)->width == type->width)
            p->same[def] = from;
    } else if (opcode == SpvOpExtInst && type->count == 1 && type->kind == 'i') {
        fold_glsl(p, def, words);
    } else if (opcode == SpvOpBitCount && type->count == 1) {
        uint32_t of = operand(p, words, 3);
        if (hdi_spirv_is_known(p, of)) know(p, def, (uint32_t)__builtin_popcountll(p->bits[of]));
    } else if (type->count == 1 && (type->kind == 'i' || type->kind == 'b')) {
        fold_numbers(p, opcode, def, words);
    }
}

/* ---- needs ---- */

static void need(hdi_spirv_printer *p, uint32_t def, uint32_t block);

/* A pointer is printed where it is used: so are its indices. Function arguments stand for whole variables, which may
 * begin with a value. */
static void need_pointer(hdi_spirv_printer *p, uint32_t def, uint32_t block) {
    for (;;) {
        const uint32_t *words = hdi_spirv_def_words(p->m, def);
        if (!hdi_spirv_is_chain(words[0] & 0xFFFF)) break;
        for (uint32_t i = 4; i < words[0] >> 16; i++) need(p, hdi_spirv_find(p->m, words[i]), block);
        def = hdi_spirv_find(p->m, words[3]);
    }
    p->facts[def] |= HDI_SPIRV_NEEDED;
    const uint32_t *words = hdi_spirv_def_words(p->m, def);
    if ((words[0] & 0xFFFF) == SpvOpVariable && words[0] >> 16 > 4) need(p, hdi_spirv_find(p->m, words[4]), block);
}

static void need(hdi_spirv_printer *p, uint32_t def, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    if (hdi_spirv_type_of(m, def)->kind == 'p') {
        need_pointer(p, def, block);
        return;
    }
    def = p->same[def];
    if (hdi_spirv_is_known(p, def)) return;
    if (m->defs[def].block != HDI_SPIRV_NONE && (p->declares_first || m->defs[def].block != block))
        p->facts[def] |= HDI_SPIRV_FAR;
    if (p->facts[def] & HDI_SPIRV_NEEDED) return;
    p->facts[def] |= HDI_SPIRV_NEEDED;
    p->stack[p->stack_count++] = def;
}

static void need_operands(hdi_spirv_printer *p, uint32_t inst, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    if ((words[0] & 0xFFFF) == SpvOpPhi) {
        uint32_t home = m->defs[hdi_spirv_find(m, words[2])].block;
        for (uint32_t i = 3; i < words[0] >> 16; i += 2) {
            uint32_t from = m->defs[hdi_spirv_find(m, words[i + 1])].detail;
            if (hdi_spirv_leads(p, from, home)) need(p, hdi_spirv_find(m, words[i]), from);
        }
        return;
    }
    bool glsl = (words[0] & 0xFFFF) == SpvOpExtInst;
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);)
        if (o.letter == 'i' || (o.letter == 'a' && glsl)) need(p, hdi_spirv_find(m, o.word), block);
}

/* Does the instruction do something besides giving a result? */
static bool has_effect(const hdi_spirv_printer *p, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t opcode = words[0] & 0xFFFF;
    switch (opcode) {
    case SpvOpStore: case SpvOpCopyMemory: case SpvOpFunctionCall: case SpvOpReturnValue:
    case HDI_SPIRV_COOPERATIVE_MATRIX_STORE: return true;
    default: return hdi_spirv_is_atomic(opcode) || hdi_spirv_glsl_writes(p->m, words);
    }
}

/* A function that is called is folded too, once. */
static void call(hdi_spirv_printer *p, uint32_t function) {
    if (p->called[function]) return;
    p->called[function] = 1;
    p->calls[p->call_count++] = function;
}

static void find_needs(hdi_spirv_printer *p, const hdi_spirv_function *function) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count; b++) {
        if (!p->reached[b]) continue;
        for (uint32_t i = m->blocks[b].inst_first; i <= m->blocks[b].inst_end; i++) {
            uint32_t opcode = hdi_spirv_opcode(m, i);
            if (has_effect(p, i)) need_operands(p, i, b);
            if (opcode == SpvOpFunctionCall) call(p, hdi_spirv_called(m, i));
            if (opcode == SpvOpBranchConditional || opcode == SpvOpSwitch)
                need(p, hdi_spirv_find(m, hdi_spirv_words(m, i)[1]), b);
        }
    }
    while (p->stack_count) {
        uint32_t def = p->stack[--p->stack_count], opcode = hdi_spirv_def_opcode(m, def);
        if (m->defs[def].block != HDI_SPIRV_NONE || hdi_spirv_is_constant(opcode))
            need_operands(p, m->defs[def].inst, m->defs[def].block);
    }
}

/* ---- all of it ---- */

/* Which loops does the block leave from inside of a switch? C's break would leave the switch only. */
static void find_flags(hdi_spirv_printer *p, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    bool in_switch = false;
    uint32_t around = m->blocks[block].merge_inst ? block : m->blocks[block].construct;
    for (; around != HDI_SPIRV_NONE && m->blocks[around].continue_to == HDI_SPIRV_NONE;
         around = m->blocks[around].construct)
        in_switch |= hdi_spirv_opcode(m, m->blocks[around].inst_end) == SpvOpSwitch;
    for (uint32_t n = 0, to;
         in_switch && around != HDI_SPIRV_NONE && (to = hdi_spirv_way(p, block, n)) != HDI_SPIRV_NONE; n++)
        if (to == m->blocks[around].merge) p->needs_flag[around] = 1;
}

static void fold_function(hdi_spirv_printer *p, const hdi_spirv_function *function) {
    const hdi_spirv_module *m = p->m;
    uint32_t end = function->block_first + function->block_count;
    p->reached[function->block_first] = 1;
    for (uint32_t i = function->block_first; i < end; i++) {
        uint32_t b = m->tree.order[i];
        if (b == HDI_SPIRV_NONE || !p->reached[b]) continue;
        for (uint32_t k = m->blocks[b].inst_first; k <= m->blocks[b].inst_end; k++) fold_instruction(p, b, k);
        p->only_way[b] = only_way(p, b);
        for (uint32_t n = 0, to; (to = hdi_spirv_way(p, b, n)) != HDI_SPIRV_NONE; n++) p->reached[to] = 1;
        find_flags(p, b);
    }
    find_needs(p, function);
}

void hdi_spirv_fold(hdi_spirv_printer *p, uint32_t entry_function) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t def = 0; def < m->def_count; def++) p->same[def] = def;
    for (uint32_t def = 1; def < m->functions[0].def; def++) { /* constants stand before all functions */
        uint64_t bits;
        if (hdi_spirv_type_of(m, def)->count == 1 && hdi_spirv_known(m, def, &bits)) know(p, def, bits);
    }
    memset(p->only_way, 0xFF, m->block_count * sizeof *p->only_way);
    call(p, entry_function);
    while (p->call_count) fold_function(p, &m->functions[p->calls[--p->call_count]]);
}
