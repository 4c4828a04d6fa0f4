/* variant.c: a module that was checked before, read once more for given constants. Kernels are modules of many variants: what
 * stands in front of the functions tells which branches are taken, and of blocks that no branch leads to only label and last
 * instruction are kept, before anything else is asked of them. So the time goes with the variant, not with the module.
 * Relies on every check having been made. */
#include "spirv/module.h"

typedef struct pruning {
    uint32_t *label_at; /* by id: instruction of the label */
    uint32_t *stack, stack_count; /* labels that were met */
    uint8_t  *kept;     /* by instruction */
} pruning;

static bool ends_block(uint32_t opcode) { return (opcode >= SpvOpBranch && opcode <= SpvOpUnreachable && opcode != SpvOpKill); }

static void meet(pruning *p, uint32_t label) {
    uint32_t inst = p->label_at[label];
    if (p->kept[inst]) return;
    p->kept[inst] = 1;
    p->stack[p->stack_count++] = inst;
}

/* The blocks that the last instruction leads to. */
static void meet_targets(const hdi_spirv_module *m, pruning *p, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint64_t value;
    switch (words[0] & 0xFFFF) {
    case SpvOpBranch: meet(p, words[1]); break;
    case SpvOpBranchConditional: {
        bool known = hdi_spirv_known(m, hdi_spirv_find(m, words[1]), &value);
        if (!known || value) meet(p, words[2]);
        if (!known || !value) meet(p, words[3]);
        break;
    }
    case SpvOpSwitch:
        for (uint32_t at = 2; at < words[0] >> 16; at += 2) meet(p, words[at]);
        break;
    default: break;
    }
}

static void keep_blocks(const hdi_spirv_module *m, pruning *p) {
    while (p->stack_count) {
        uint32_t inst = p->stack[--p->stack_count], opcode;
        do {
            const uint32_t *words = hdi_spirv_words(m, ++inst);
            opcode = words[0] & 0xFFFF;
            p->kept[inst] = 1;
            if (opcode == SpvOpSelectionMerge || opcode == SpvOpLoopMerge) meet(p, words[1]);
            if (opcode == SpvOpLoopMerge) meet(p, words[2]);
        } while (!ends_block(opcode));
        meet_targets(m, p, inst);
    }
}

/* Leaves out of the functions, from instruction `first` on, what the constants make unreachable. */
static bool leave_out(hdi_spirv_module *m, uint32_t first) {
    uint32_t labels = 0, count = first;
    for (uint32_t i = first; i < m->inst_count; i++) labels += hdi_spirv_opcode(m, i) == SpvOpLabel;
    pruning p = { .label_at = hdi_arena_alloc(&m->arena, (size_t)m->bound * sizeof *p.label_at),
                  .stack = hdi_arena_alloc(&m->arena, labels * sizeof *p.stack), .kept = hdi_arena_alloc(&m->arena, m->inst_count) };
    if (!p.label_at || !p.stack || !p.kept) return hdi_spirv_no_memory(m);
    for (uint32_t i = first; i < m->inst_count; i++)
        if (hdi_spirv_opcode(m, i) == SpvOpLabel) p.label_at[hdi_spirv_words(m, i)[1]] = i;
    bool entry = false;
    for (uint32_t i = first; i < m->inst_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        bool outside = opcode == SpvOpFunction || opcode == SpvOpFunctionParameter || opcode == SpvOpFunctionEnd;
        if (opcode == SpvOpFunction) entry = true;
        if (opcode == SpvOpLabel && entry) {
            entry = false;
            meet(&p, hdi_spirv_words(m, i)[1]);
            keep_blocks(m, &p);
        }
        p.kept[i] |= outside || opcode == SpvOpLabel || ends_block(opcode);
    }
    for (uint32_t i = first; i < m->inst_count; i++)
        if (p.kept[i]) m->insts[count++] = m->insts[i];
    m->inst_count = count;
    return true;
}

/* What the checks leave behind: the types of results, and the variables that pointers lead into. */
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
        bool follows = opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain || opcode == SpvOpCopyObject;
        if (opcode == SpvOpVariable) m->defs[def].detail = def;
        else if (follows && hdi_spirv_type_of(m, def)->kind == 'p') m->defs[def].detail = hdi_spirv_root(m, hdi_spirv_find(m, hdi_spirv_def_words(m, def)[3]));
    }
}

hd_status hdi_spirv_module_read_checked(const hd_allocator *allocator, const void *bytes, size_t byte_count,
                                        const uint32_t *spec_ids, const uint32_t *spec_values, uint32_t spec_count,
                                        hdi_spirv_module *out_module, hd_error *error) {
    *out_module = (hdi_spirv_module){ .arena = { .allocator = allocator }, .error = error, .checked = true, .spec_ids = spec_ids,
                                      .spec_values = spec_values, .spec_count = spec_count };
    hdi_spirv_module *m = out_module;
    uint32_t first = 0;
    if (!hdi_spirv_index(m, bytes, byte_count)) return m->status;
    while (first < m->inst_count && hdi_spirv_opcode(m, first) != SpvOpFunction) first++;
    if (!hdi_spirv_define(m, 0, first)) return m->status;
    find_types(m, 1);
    if (!hdi_spirv_check(m) || !hdi_spirv_declare(m) || !leave_out(m, first)) return m->status;
    const uint32_t inside = m->def_count;
    if (!hdi_spirv_define(m, first, m->inst_count)) return m->status;
    find_types(m, inside);
    if (!hdi_spirv_decorate_from(m, inside) || !hdi_spirv_blocks(m) || !hdi_spirv_flow(m)) return m->status;
    find_roots(m, inside);
    return HD_OK;
}
