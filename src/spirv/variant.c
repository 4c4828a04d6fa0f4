/* variant.c: reads a module that was checked before, for given constants. A module of heddle's holds many variants of a
 * kernel. Branches on constants are decided first, and blocks that are not reached are left out: their labels are
 * undefined ids, and stand for no block. So the time is in proportion to the variant, not to the module. Relies on all
 * checks. */
#include "spirv/module.h"

typedef struct pruning {
    hdi_spirv_module *m;
    uint32_t *notes;  /* by id: of a label the word where it stands; of a value that is known its bits */
    /* a bit for each id: it is such a value; or the label of a block that has one way on, which is noted then */
    uint64_t *known;
    uint64_t *begins; /* a bit for each word: a block that is kept begins there, or an instruction outside of blocks */
    uint32_t *stack, stack_count; /* words of labels that were met, with AFTER */
    uint32_t  kept;   /* instructions */
} pruning;

/* Found as a merge or continue block: it is visited after all blocks that lead to it. */
#define AFTER (1u << 31)

static bool has_bit(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> i % 64 & 1; }
static void set_bit(uint64_t *bits, uint32_t i) { bits[i / 64] |= UINT64_C(1) << i % 64; }

static void note(pruning *p, uint32_t id, uint32_t what) {
    p->notes[id] = what;
    set_bit(p->known, id);
}

/* ---- values that are known ---- */

/* Branches depend on numbers of 32 bits and bools. */
static bool is_plain(const hdi_spirv_type *type) {
    return type->count == 1 && (type->kind == 'b' || (type->kind == 'i' && type->width == 32));
}

static bool value_of(const pruning *p, uint32_t id, uint64_t *out) {
    const uint32_t def = hdi_spirv_find(p->m, id);
    if (def) return is_plain(hdi_spirv_type_of(p->m, def)) && hdi_spirv_known(p->m, def, out);
    if (id >= p->m->bound || !has_bit(p->known, id)) return false; /* what looks like an id may be a literal */
    *out = p->notes[id];
    return true;
}

/* Notes a result inside of a function, if it is known. Definitions stand above their uses, so operands were noted
 * before. */
static void note_value(pruning *p, const uint32_t *words) {
    const uint32_t opcode = words[0] & 0xFFFF, length = words[0] >> 16, first = opcode == SpvOpExtInst ? 5 : 3;
    uint64_t a = 0, b = 0, bits = 0;
    if (length < first + 1 || length > first + 2 || opcode == SpvOpLoad ||
        !is_plain(hdi_spirv_type_at(p->m, hdi_spirv_find(p->m, words[1]))))
        return;
    const bool a_known = value_of(p, words[first], &a), b_known = value_of(p, words[length - 1], &b);
    bool fine = a_known && b_known;
    if (opcode == SpvOpExtInst)
        fine = fine && hdi_spirv_find(p->m, words[3]) == p->m->glsl_set &&
               hdi_spirv_calculate_glsl(words[4], a, b, 32, &bits);
    else fine = fine && hdi_spirv_calculate(opcode, a, b, 32, &bits);
    if (opcode == SpvOpBitcast && a_known) fine = true, bits = a;
    if (opcode == SpvOpLogicalAnd || opcode == SpvOpLogicalOr) { /* one may decide */
        const bool decides = opcode == SpvOpLogicalOr;
        if ((a_known && (a != 0) == decides) || (b_known && (b != 0) == decides)) fine = true, bits = decides;
    }
    if (fine) note(p, words[2], (uint32_t)bits);
}

/* A phi of a block that was met as AFTER: one number from every block that was met and leads there? */
static void note_phi(pruning *p, uint32_t label, const uint32_t *words) {
    uint64_t only = 0, value = 0;
    bool any = false;
    for (uint32_t i = 3; i < words[0] >> 16; i += 2) {
        const uint32_t from = words[i + 1];
        const bool leads = has_bit(p->known, from) ? p->notes[from] == label : has_bit(p->begins, p->notes[from]);
        if (!leads) continue;
        if (!value_of(p, words[i], &value) || (any && value != only)) return;
        only = value;
        any = true;
    }
    if (any && is_plain(hdi_spirv_type_at(p->m, hdi_spirv_find(p->m, words[1])))) note(p, words[2], (uint32_t)only);
}

/* ---- blocks that are reached ---- */

static void meet(pruning *p, uint32_t label, uint32_t after) {
    const uint32_t at = p->notes[label];
    if (has_bit(p->known, label) || has_bit(p->begins, at)) return;
    set_bit(p->begins, at);
    p->stack[p->stack_count++] = at | after;
}

/* The label that a branch on a known value leads to; 0: it is none. */
static uint32_t only_target(const pruning *p, const uint32_t *words) {
    const uint32_t opcode = words[0] & 0xFFFF;
    uint64_t value;
    if ((opcode != SpvOpBranchConditional && opcode != SpvOpSwitch) || !value_of(p, words[1], &value)) return 0;
    if (opcode == SpvOpBranchConditional) return words[value ? 2 : 3];
    for (uint32_t at = 3; at < words[0] >> 16; at += 2)
        if (words[at] == (uint32_t)value) return words[at + 1];
    return words[2];
}

/* The blocks that the last instruction leads to. */
static void meet_targets(pruning *p, uint32_t label, const uint32_t *words) {
    const uint32_t opcode = words[0] & 0xFFFF, only = only_target(p, words);
    if (only) {
        meet(p, only, 0);
        note(p, label, only);
    } else if (opcode == SpvOpBranch) {
        meet(p, words[1], 0);
    } else if (opcode == SpvOpBranchConditional) {
        meet(p, words[2], 0);
        meet(p, words[3], 0);
    } else if (opcode == SpvOpSwitch) {
        for (uint32_t at = 2; at < words[0] >> 16; at += 2) meet(p, words[at], 0);
    }
}

static bool heads_loop(const uint32_t *words) {
    for (; !hdi_spirv_ends_block(words[0] & 0xFFFF); words += words[0] >> 16)
        if ((words[0] & 0xFFFF) == SpvOpLoopMerge) return true;
    return false;
}

/* Merge and continue blocks are met with the header and looked at last, when all of the construct was. */
static void keep_blocks(pruning *p) {
    while (p->stack_count) {
        const uint32_t top = p->stack[--p->stack_count], *words = p->m->words + (top & ~AFTER), label = words[1];
        const bool after = top & AFTER && !heads_loop(words);
        uint32_t opcode;
        do {
            words += words[0] >> 16;
            opcode = words[0] & 0xFFFF;
            p->kept++;
            if (opcode == SpvOpSelectionMerge || opcode == SpvOpLoopMerge) meet(p, words[1], AFTER);
            if (opcode == SpvOpLoopMerge) meet(p, words[2], AFTER);
            if (opcode == SpvOpPhi) {
                if (after) note_phi(p, label, words);
            } else if (hdi_spirv_op_row(opcode)->operands[0] == 't') {
                note_value(p, words);
            }
        } while (!hdi_spirv_ends_block(opcode));
        p->kept++; /* the label */
        meet_targets(p, label, words);
    }
}

/* From word `first` on: where labels stand, and what is kept in any case, the first block of each function included. */
static bool find_labels(pruning *p, uint32_t first) {
    hdi_spirv_module *m = p->m;
    uint32_t labels = 0;
    bool entry = false;
    for (uint32_t at = first; at < m->word_count; at += m->words[at] >> 16) {
        const uint32_t opcode = m->words[at] & 0xFFFF;
        if (opcode == SpvOpFunction || opcode == SpvOpFunctionParameter || opcode == SpvOpFunctionEnd)
            set_bit(p->begins, at), p->kept++;
        if (opcode == SpvOpFunction) entry = true;
        if (opcode != SpvOpLabel) continue;
        p->notes[m->words[at + 1]] = at;
        if (entry) set_bit(p->begins, at);
        entry = false;
        labels++;
    }
    p->stack = hdi_arena_alloc(&m->arena, labels * sizeof *p->stack);
    return p->stack || hdi_spirv_no_memory(m);
}

static uint32_t next_begin(const pruning *p, uint32_t at) {
    while (at < p->m->word_count && !(p->begins[at / 64] >> at % 64)) at += 64 - at % 64;
    return at < p->m->word_count ? at + (uint32_t)__builtin_ctzll(p->begins[at / 64] >> at % 64) : at;
}

/* Adds the functions, which begin at word `first`, without what the constants make unreachable. */
static bool index_functions(pruning *p, uint32_t first) {
    hdi_spirv_module *m = p->m;
    p->notes = hdi_arena_alloc(&m->arena, (size_t)m->bound * sizeof *p->notes);
    p->known = hdi_arena_alloc(&m->arena, (m->bound / 64 + 1) * sizeof *p->known);
    p->begins = hdi_arena_alloc(&m->arena, (m->word_count / 64 + 1) * sizeof *p->begins);
    if (!p->notes || !p->known || !p->begins) return hdi_spirv_no_memory(m);
    if (!find_labels(p, first)) return false;
    for (uint32_t at = next_begin(p, first); at < m->word_count; at = next_begin(p, at + 1)) {
        if ((m->words[at] & 0xFFFF) != SpvOpLabel) continue;
        p->stack[p->stack_count++] = at;
    }
    keep_blocks(p);
    uint32_t *insts = hdi_arena_alloc(&m->arena, ((size_t)m->inst_count + p->kept + 1) * sizeof *insts);
    if (!insts) return hdi_spirv_no_memory(m);
    memcpy(insts, m->insts, m->inst_count * sizeof *insts);
    m->insts = insts;
    for (uint32_t at = next_begin(p, first); at < m->word_count; at = next_begin(p, at + 1)) {
        const bool block = (m->words[at] & 0xFFFF) == SpvOpLabel;
        uint32_t inst = at;
        insts[m->inst_count++] = inst;
        while (block && !hdi_spirv_ends_block(m->words[inst] & 0xFFFF))
            insts[m->inst_count++] = inst += m->words[inst] >> 16;
    }
    return true;
}

static void find_only_ways(const pruning *p) {
    hdi_spirv_module *m = p->m;
    for (uint32_t b = 0; b < m->block_count; b++) {
        const uint32_t label = hdi_spirv_words(m, m->blocks[b].inst_first)[1];
        if (has_bit(p->known, label)) m->blocks[b].only = m->defs[hdi_spirv_find(m, p->notes[label])].detail;
    }
}

/* What stands in front of the functions; `*out_end`: the word where they begin. */
static bool index_front(hdi_spirv_module *m, uint32_t *out_end) {
    uint32_t count = 0, at = HDI_SPIRV_HEADER_WORDS;
    for (; at < m->word_count && (m->words[at] & 0xFFFF) != SpvOpFunction; at += m->words[at] >> 16) count++;
    *out_end = at;
    m->insts = hdi_arena_alloc(&m->arena, ((size_t)count + 1) * sizeof *m->insts);
    if (!m->insts) return hdi_spirv_no_memory(m);
    for (at = HDI_SPIRV_HEADER_WORDS; at < *out_end; at += m->words[at] >> 16) m->insts[m->inst_count++] = at;
    m->front_count = m->inst_count;
    return true;
}

/* Facts that the checks would have noted: types of results, and (find_roots) the variables that pointers lead into. */
static void find_types(hdi_spirv_module *m, uint32_t first) {
    for (uint32_t def = first; def < m->def_count; def++) {
        const uint32_t *words = hdi_spirv_def_words(m, def);
        uint32_t opcode = words[0] & 0xFFFF;
        if (hdi_spirv_is_type(opcode)) m->defs[def].type = def;
        else if (hdi_spirv_op_row(opcode)->operands[0] == 't') m->defs[def].type = hdi_spirv_find(m, words[1]);
    }
}

static void find_roots(hdi_spirv_module *m, uint32_t first) {
    for (uint32_t def = first; def < m->def_count; def++) {
        uint32_t opcode = hdi_spirv_def_opcode(m, def);
        if (opcode == SpvOpVariable) m->defs[def].detail = def;
        else if (hdi_spirv_is_chain(opcode) && hdi_spirv_type_of(m, def)->kind == 'p')
            m->defs[def].detail = hdi_spirv_root(m, hdi_spirv_find(m, hdi_spirv_def_words(m, def)[3]));
    }
}

bool hdi_spirv_read_checked(hdi_spirv_module *m) {
    uint32_t functions;
    if (!hdi_spirv_header(m) || !index_front(m, &functions) || !hdi_spirv_define(m, 0, m->inst_count)) return false;
    find_types(m, 1);
    if (!hdi_spirv_check(m) || !hdi_spirv_declare(m)) return false;
    const uint32_t inside = m->def_count;
    pruning p = { .m = m };
    if (!index_functions(&p, functions) || !hdi_spirv_define(m, m->front_count, m->inst_count)) return false;
    m->defs[0].detail = HDI_SPIRV_NONE; /* the block of a label that was left out */
    find_types(m, inside);
    if (!hdi_spirv_decorate_from(m, inside) || !hdi_spirv_blocks(m)) return false;
    find_only_ways(&p);
    if (!hdi_spirv_flow(m)) return false;
    find_roots(m, inside);
    return true;
}
