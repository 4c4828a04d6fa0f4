/* uniform.c: do all invocations of a workgroup come along? Asked where subgroups go through shared memory, whose
 * barriers need everyone. What may differ from one invocation to another spreads from values to the blocks that they
 * decide on and back, until nothing changes; where that is not known, it differs. Relies on fold.c. */
#include "spirv/print.h"

enum { MOST_PASSES = 40 };

typedef struct spread {
    uint8_t *values, *blocks; /* 1: differs; of variables: what they hold */
    uint8_t *done;            /* by block: what it made of others already */
    bool     changed;
} spread;

static void differs(spread *s, uint8_t *what) {
    s->changed |= *what == 0;
    *what = 1;
}

static uint32_t root_of(const hdi_spirv_printer *p, uint32_t pointer) { return hdi_spirv_root(p->m, pointer); }

/* Does what is behind the pointer differ, its indices apart? */
static bool memory_differs(const hdi_spirv_printer *p, const spread *s, uint32_t pointer) {
    uint32_t root = root_of(p, pointer);
    switch (hdi_spirv_type_of(p->m, root)->storage) {
    case SpvStorageClassPushConstant: return false;
    case SpvStorageClassPrivate: case SpvStorageClassFunction:
        return s->values[root] || hdi_spirv_def_opcode(p->m, root) == SpvOpFunctionParameter;
    case SpvStorageClassInput: {
        uint32_t builtin = hdi_spirv_decor_of(p->m, root)->builtin;
        return builtin != SpvBuiltInWorkgroupId && builtin != SpvBuiltInNumWorkgroups &&
               builtin != SpvBuiltInSubgroupSize && builtin != SpvBuiltInNumSubgroups;
    }
    default: return true;
    }
}

static bool any_operand_differs(const hdi_spirv_printer *p, const spread *s, uint32_t inst) {
    for (hdi_spirv_operands o = hdi_spirv_operands_of(p->m, inst); hdi_spirv_next(&o);)
        if ((o.letter == 'i' || o.letter == 'v' || o.letter == 'a') && s->values[p->same[hdi_spirv_find(p->m, o.word)]])
            return true;
    return false;
}

/* What the instruction gives, or writes to a variable. False once nothing more can come of it. */
static bool spread_values(const hdi_spirv_printer *p, spread *s, uint32_t inst, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = words[0] & 0xFFFF;
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    if (opcode == SpvOpStore || opcode == SpvOpCopyMemory) {
        uint32_t pointer = hdi_spirv_find(m, words[1]), value = p->same[hdi_spirv_find(m, words[2])];
        bool other = s->blocks[block] || s->values[value] || s->values[pointer] || opcode == SpvOpCopyMemory;
        if (other) differs(s, &s->values[root_of(p, pointer)]);
        return !s->values[root_of(p, pointer)];
    }
    if (opcode == SpvOpFunctionCall) /* may write through any of its pointers */
        for (uint32_t i = 4; i < words[0] >> 16; i++) differs(s, &s->values[hdi_spirv_find(m, words[i])]);
    if (row->operands[0] != 't' || opcode == SpvOpVariable) return false;
    uint32_t def = hdi_spirv_find(m, words[2]);
    /* pointers are needed with their users */
    if (s->values[def] || (!(p->facts[def] & HDI_SPIRV_NEEDED) && hdi_spirv_type_of(m, def)->kind != 'p'))
        return opcode == SpvOpFunctionCall;
    bool always = hdi_spirv_is_group(opcode) || hdi_spirv_is_atomic(opcode) || opcode == SpvOpFunctionCall;
    bool other = always || s->blocks[block] || any_operand_differs(p, s, inst);
    if (opcode == SpvOpLoad) other |= memory_differs(p, s, hdi_spirv_find(m, words[3]));
    for (uint32_t i = 4; opcode == SpvOpPhi && i < words[0] >> 16; i += 2) {
        const uint32_t from = m->defs[hdi_spirv_find(m, words[i])].detail;
        other |= from != HDI_SPIRV_NONE && s->blocks[from];
    }
    if (other) differs(s, &s->values[def]);
    return !other || opcode == SpvOpFunctionCall;
}

static bool is_inside(const hdi_spirv_printer *p, uint32_t block, uint32_t header) {
    while (block != header && block != HDI_SPIRV_NONE) block = p->m->blocks[block].construct;
    return block == header;
}

/* What a block makes of others is the same in every pass: it is done once; and its instructions while more can come of
 * them. */
enum { INSIDE = 1, LEFT = 2, WHOLE = 4, VALUES = 8 };
static bool is_new(spread *s, uint32_t block, uint8_t what) {
    const bool is = !(s->done[block] & what);
    s->done[block] |= what;
    return is;
}

/* Some leave a loop or switch, or return, where others go on: the rest of it is not for everyone. */
static void spread_leaving(const hdi_spirv_printer *p, spread *s, uint32_t block, uint32_t header) {
    const hdi_spirv_function *function = &p->m->functions[p->m->blocks[block].function];
    bool loop = header != HDI_SPIRV_NONE && p->m->blocks[header].continue_to != HDI_SPIRV_NONE;
    if (loop && !is_new(s, header, WHOLE)) return;
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count; b++)
        if (!s->blocks[b] && p->reached[b] && (loop || p->m->tree.place[b] > p->m->tree.place[block]) &&
            (header == HDI_SPIRV_NONE || is_inside(p, b, header)))
            differs(s, &s->blocks[b]);
}

static void spread_blocks(const hdi_spirv_printer *p, spread *s, uint32_t block) {
    const hdi_spirv_module *m = p->m;
    uint32_t inst = m->blocks[block].inst_end, opcode = hdi_spirv_opcode(m, inst), around = m->blocks[block].construct;
    bool chooses = (opcode == SpvOpBranchConditional || opcode == SpvOpSwitch) && p->only_way[block] == HDI_SPIRV_NONE;
    bool unequal = chooses && s->values[p->same[hdi_spirv_find(m, hdi_spirv_words(m, inst)[1])]];
    if (around != HDI_SPIRV_NONE && s->blocks[around]) differs(s, &s->blocks[block]);
    if (unequal && m->blocks[block].merge_inst && is_new(s, block, INSIDE)) /* selection or switch: what is inside */
        for (uint32_t b = block + 1; b < m->block_count && m->blocks[b].function == m->blocks[block].function; b++)
            if (m->blocks[b].construct == block) differs(s, &s->blocks[b]);
    if ((!s->blocks[block] && !unequal) || !is_new(s, block, LEFT)) return;
    if (opcode == SpvOpReturn || opcode == SpvOpReturnValue) spread_leaving(p, s, block, HDI_SPIRV_NONE);
    for (uint32_t n = 0, to; (to = hdi_spirv_way(p, block, n)) != HDI_SPIRV_NONE; n++)
        for (uint32_t h = m->blocks[block].merge_inst ? block : around; h != HDI_SPIRV_NONE;
             h = m->blocks[h].construct) {
            bool loop = m->blocks[h].continue_to != HDI_SPIRV_NONE,
                 choice = hdi_spirv_opcode(m, m->blocks[h].inst_end) == SpvOpSwitch;
            if ((loop || choice) && to == m->blocks[h].merge) spread_leaving(p, s, block, h);
            if (loop && to == m->blocks[h].continue_to && is_inside(p, block, h)) spread_leaving(p, s, block, h);
            if (loop) break;
        }
}

/* One pass over all functions that are called; calls carry over what their blocks know. */
static void pass(const hdi_spirv_printer *p, spread *s) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t f = 0; f < m->function_count; f++) {
        const hdi_spirv_function *function = &m->functions[f];
        for (uint32_t i = function->block_first; p->called[f] && i < function->block_first + function->block_count;
             i++) {
            uint32_t b = m->tree.order[i];
            if (b == HDI_SPIRV_NONE || !p->reached[b]) continue;
            if (s->blocks[function->block_first]) differs(s, &s->blocks[b]);
            bool more = false;
            for (uint32_t k = m->blocks[b].inst_first; !(s->done[b] & VALUES) && k <= m->blocks[b].inst_end; k++) {
                more |= spread_values(p, s, k, b);
                if (hdi_spirv_opcode(m, k) == SpvOpFunctionCall && s->blocks[b])
                    differs(s, &s->blocks[m->functions[hdi_spirv_called(m, k)].block_first]);
            }
            if (!more) s->done[b] |= VALUES;
            spread_blocks(p, s, b);
        }
    }
}

bool hdi_spirv_check_uniform(hdi_spirv_printer *p) {
    hdi_spirv_module *m = p->m;
    spread s = { hdi_arena_alloc(&m->arena, m->def_count), hdi_arena_alloc(&m->arena, m->block_count),
                 hdi_arena_alloc(&m->arena, m->block_count), true };
    if (!s.values || !s.blocks || !s.done) return hdi_spirv_no_memory(m);
    for (uint32_t def = 1; def < m->def_count; def++)
        s.values[def] = hdi_spirv_def_opcode(m, def) == SpvOpFunctionParameter;
    uint32_t passes = 0;
    for (; s.changed && passes < MOST_PASSES; passes++) {
        s.changed = false;
        pass(p, &s);
    }
    for (uint32_t b = 0; b < m->block_count; b++) {
        if (!p->reached[b] || !(s.blocks[b] || s.changed)) continue;
        for (uint32_t i = m->blocks[b].inst_first; i < m->blocks[b].inst_end; i++) {
            const uint32_t *words = hdi_spirv_words(m, i);
            uint64_t scope = 0;
            bool barrier = hdi_spirv_opcode(m, i) == SpvOpControlBarrier &&
                           hdi_spirv_known(m, hdi_spirv_find(m, words[1]), &scope) && scope == SpvScopeSubgroup;
            bool needed =
                hdi_spirv_is_group(hdi_spirv_opcode(m, i)) && p->facts[hdi_spirv_find(m, words[2])] & HDI_SPIRV_NEEDED;
            if (needed || barrier)
                return hdi_spirv_unsupported(
                    m, i, "the device has no subgroups, and not all of the workgroup may come along here");
        }
    }
    return true;
}
