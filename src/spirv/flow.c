/* flow.c: dominance and structure. Every use lies below its definition; loops are entered by their header only and
 * left, as selections are, by the ways that SPIR-V allows (merge, break, continue, return). Printers and drivers lean
 * on that. All in O(n log n): blocks are visited in reverse post-order, which for the reducible graphs that are taken
 * makes one pass over the edges enough, and walks up the tree of dominators go by jumps. Relies on blocks.c. No
 * recursion. */
#include "spirv/module.h"

/* ---- the tree of dominators ---- */

static uint32_t climb(const hdi_spirv_tree *tree, uint32_t block, uint32_t depth) {
    while (tree->depth[block] > depth)
        block = tree->depth[tree->jump[block]] >= depth ? tree->jump[block] : tree->parent[block];
    return block;
}

static uint32_t common_dominator(const hdi_spirv_tree *tree, uint32_t a, uint32_t b) {
    uint32_t depth = HDI_MIN(tree->depth[a], tree->depth[b]);
    a = climb(tree, a, depth);
    b = climb(tree, b, depth);
    while (a != b) { /* blocks of equal depth jump equally far */
        bool far = tree->jump[a] != tree->jump[b];
        a = far ? tree->jump[a] : tree->parent[a];
        b = far ? tree->jump[b] : tree->parent[b];
    }
    return a;
}

bool hdi_spirv_dominates(const hdi_spirv_tree *tree, uint32_t a, uint32_t b) {
    if (tree->place[a] == HDI_SPIRV_NONE || tree->place[b] == HDI_SPIRV_NONE) return false;
    return tree->depth[b] >= tree->depth[a] && climb(tree, b, tree->depth[a]) == a;
}

static void hang_below(hdi_spirv_tree *tree, uint32_t block, uint32_t parent) {
    uint32_t far = tree->jump[parent];
    bool even = tree->depth[parent] - tree->depth[far] == tree->depth[far] - tree->depth[tree->jump[far]];
    tree->parent[block] = parent;
    tree->depth[block] = tree->depth[parent] + 1;
    tree->jump[block] = even ? tree->jump[far] : parent;
}

/* Target `n` of a block; with `structural`, its merge and continue blocks come first. */
static uint32_t target(const hdi_spirv_module *m, bool structural, uint32_t block, uint32_t n) {
    const hdi_spirv_block *b = &m->blocks[block];
    uint32_t extra = structural ? (uint32_t)(b->merge != HDI_SPIRV_NONE) + (b->continue_to != HDI_SPIRV_NONE) : 0;
    if (n < extra) return n == 0 ? b->merge : b->continue_to;
    if (b->only != HDI_SPIRV_NONE) return n == extra ? b->only : HDI_SPIRV_NONE;
    return hdi_spirv_target(m, block, n - extra);
}

/* Reverse post-order of one function from `end` backwards; returns where it begins. `next` has a zero for each
 * block. */
static uint32_t visit(const hdi_spirv_module *m, bool structural, hdi_spirv_tree *tree, uint32_t entry, uint32_t end,
                      uint32_t *stack, uint32_t *next) {
    uint32_t depth = 0;
    stack[depth++] = entry;
    tree->place[entry] = 0; /* seen; the true place comes at the end */
    while (depth) {
        uint32_t block = stack[depth - 1], to = target(m, structural, block, next[block]++);
        if (to == HDI_SPIRV_NONE) {
            tree->order[--end] = block;
            tree->place[block] = end;
            depth--;
        } else if (tree->place[to] == HDI_SPIRV_NONE) {
            tree->place[to] = 0;
            stack[depth++] = to;
        }
    }
    return end;
}

static bool is_loop(const hdi_spirv_module *m, uint32_t block) {
    return m->blocks[block].continue_to != HDI_SPIRV_NONE;
}

static bool grow_tree(hdi_spirv_module *m, bool structural, hdi_spirv_tree *tree) {
    size_t bytes = (size_t)m->block_count * sizeof(uint32_t);
    uint32_t **arrays[] = { &tree->parent, &tree->depth, &tree->jump, &tree->order, &tree->place };
    for (size_t i = 0; i < HDI_COUNT(arrays); i++)
        if (!(*arrays[i] = hdi_arena_alloc(&m->arena, bytes))) return hdi_spirv_no_memory(m);
    uint32_t *stack = hdi_arena_alloc(&m->arena, bytes), *next = hdi_arena_alloc(&m->arena, bytes);
    if (!stack || !next) return hdi_spirv_no_memory(m);
    memset(tree->place, 0xFF, bytes);
    memset(tree->parent, 0xFF, bytes);
    memset(tree->order, 0xFF, bytes);
    for (uint32_t f = 0; f < m->function_count; f++) {
        uint32_t entry = m->functions[f].block_first, end = entry + m->functions[f].block_count;
        tree->parent[entry] = tree->jump[entry] = entry;
        for (uint32_t i = visit(m, structural, tree, entry, end, stack, next); i < end; i++) {
            uint32_t block = tree->order[i];
            if (block != entry) hang_below(tree, block, tree->parent[block]);
            if (tree->parent[block] > block)
                return hdi_spirv_bad(m, m->blocks[block].inst_first,
                                     "the block stands before the one that dominates it");
            for (uint32_t n = 0, to; (to = target(m, structural, block, n)) != HDI_SPIRV_NONE; n++) {
                if (tree->place[to] > i) {
                    tree->parent[to] =
                        tree->parent[to] == HDI_SPIRV_NONE ? block : common_dominator(tree, tree->parent[to], block);
                } else if (!is_loop(m, to) || !hdi_spirv_dominates(tree, to, block)) {
                    return hdi_spirv_bad(m, m->blocks[block].inst_end,
                                         "it branches back to a block that is no loop's header around it");
                }
            }
        }
    }
    return true;
}

/* ---- structure ---- */

typedef struct structure {
    uint32_t *merge_of, *continue_of; /* header whose merge, or continue, block this is; HDI_SPIRV_NONE */
    uint32_t *loop, *exit;            /* for each header: the innermost loop, and loop or switch, that it is or is in */
    uint32_t *returns;                /* branches back to a header */
    /* 1: in the continue part of a loop around it, 2: of the innermost one, 0: of none */
    uint32_t *continues;
} structure;

static bool find_headers(hdi_spirv_module *m, structure *s) {
    size_t bytes = (size_t)m->block_count * sizeof(uint32_t);
    uint32_t **arrays[] = { &s->merge_of, &s->continue_of, &s->loop, &s->exit, &s->returns, &s->continues };
    for (size_t i = 0; i < HDI_COUNT(arrays); i++) {
        if (!(*arrays[i] = hdi_arena_alloc(&m->arena, bytes))) return hdi_spirv_no_memory(m);
        if (arrays[i] != &s->returns && arrays[i] != &s->continues) memset(*arrays[i], 0xFF, bytes);
    }
    for (uint32_t b = 0; b < m->block_count; b++) {
        const hdi_spirv_block *block = &m->blocks[b];
        if (!block->merge_inst || m->structure.place[b] == HDI_SPIRV_NONE) continue;
        if (s->merge_of[block->merge] != HDI_SPIRV_NONE)
            return hdi_spirv_bad(m, block->merge_inst, "its merge block is another's already");
        s->merge_of[block->merge] = b;
        if (is_loop(m, b)) {
            if (s->continue_of[block->continue_to] != HDI_SPIRV_NONE)
                return hdi_spirv_bad(m, block->merge_inst, "its continue block is another loop's already");
            s->continue_of[block->continue_to] = b;
        }
        bool below = m->input->checked ||
                     (hdi_spirv_dominates(&m->structure, b, block->merge) &&
                      (!is_loop(m, b) || hdi_spirv_dominates(&m->structure, b, block->continue_to)));
        if (!below) return hdi_spirv_bad(m, block->merge_inst, "it does not dominate its merge and continue blocks");
    }
    return true;
}

/* Which construct is each block in? Known from its dominator, which was visited before. */
static bool nest_blocks(hdi_spirv_module *m, structure *s) {
    const hdi_spirv_tree *tree = &m->structure;
    for (uint32_t i = 0; i < m->block_count; i++) {
        uint32_t b = tree->order[i];
        if (b == HDI_SPIRV_NONE) continue;
        hdi_spirv_block *block = &m->blocks[b];
        uint32_t above = tree->parent[b];
        if (s->merge_of[b] != HDI_SPIRV_NONE) block->construct = m->blocks[s->merge_of[b]].construct;
        else if (above != b) block->construct = m->blocks[above].merge_inst ? above : m->blocks[above].construct;
        uint32_t around = block->construct;
        block->nest = around == HDI_SPIRV_NONE ? 0 : m->blocks[around].nest + 1;
        if (block->nest > HDI_SPIRV_MAX_NEST)
            return hdi_spirv_beyond(m, block->inst_first, "ifs and loops nested more than %u deep", HDI_SPIRV_MAX_NEST);
        bool is_switch = hdi_spirv_opcode(m, block->inst_end) == SpvOpSwitch;
        s->loop[b] = is_loop(m, b) ? b : around != HDI_SPIRV_NONE ? s->loop[around] : HDI_SPIRV_NONE;
        s->exit[b] = is_loop(m, b) || is_switch ? b : around != HDI_SPIRV_NONE ? s->exit[around] : HDI_SPIRV_NONE;
        uint32_t loop = around == HDI_SPIRV_NONE ? HDI_SPIRV_NONE : s->loop[around];
        if (loop != HDI_SPIRV_NONE)
            s->continues[b] = hdi_spirv_dominates(tree, m->blocks[loop].continue_to, b) ? 2 : s->continues[loop] != 0;
    }
    return true;
}

/* Is the branch from `from` to `to` one of the ways through a construct? `*out_leaves` when it leaves one. */
static bool way_is_allowed(hdi_spirv_module *m, structure *s, uint32_t from, uint32_t to, bool *out_leaves) {
    const hdi_spirv_block *block = &m->blocks[from];
    uint32_t in = block->merge_inst ? from : block->construct;
    uint32_t loop = in == HDI_SPIRV_NONE ? HDI_SPIRV_NONE : s->loop[in],
             way_out = in == HDI_SPIRV_NONE ? HDI_SPIRV_NONE : s->exit[in];
    *out_leaves = true;
    if (m->structure.place[to] <= m->structure.place[from]) { /* back: from the loop's continue part only */
        s->returns[to]++;
        /* a header may only continue to itself alone */
        uint32_t part = to == loop ? m->blocks[loop].continue_to : HDI_SPIRV_NONE;
        return to == loop && (part != loop || from == loop) && hdi_spirv_dominates(&m->structure, part, from);
    }
    if (in != HDI_SPIRV_NONE && to == m->blocks[in].merge) return true;
    if (loop != HDI_SPIRV_NONE && (to == m->blocks[loop].merge || to == m->blocks[loop].continue_to)) return true;
    if (way_out != HDI_SPIRV_NONE && to == m->blocks[way_out].merge) return true;
    *out_leaves = false;
    return m->blocks[to].construct == in;
}

/* A case goes on to at most one other case, and at most one goes on to it. */
static bool fall_is_allowed(const hdi_spirv_module *m, uint32_t from, uint32_t to) {
    uint32_t in = m->blocks[from].construct;
    bool in_switch = in != HDI_SPIRV_NONE && hdi_spirv_opcode(m, m->blocks[in].inst_end) == SpvOpSwitch &&
                     m->structure.parent[to] == in;
    if (!in_switch || from == in) return true;
    uint32_t source = climb(&m->structure, from, m->structure.depth[in] + 1);
    hdi_spirv_block *one = &m->blocks[source], *next = &m->blocks[to];
    if (one->falls_into == HDI_SPIRV_NONE) one->falls_into = to;
    if (next->falls_from == HDI_SPIRV_NONE) next->falls_from = source;
    return one->falls_into == to && next->falls_from == source;
}

/* The continue part of a loop is left by its last block only: the one that branches back. */
static bool continue_is_whole(const hdi_spirv_module *m, const structure *s, uint32_t b) {
    uint32_t opcode = hdi_spirv_opcode(m, m->blocks[b].inst_end),
             in = m->blocks[b].merge_inst ? b : m->blocks[b].construct;
    bool ends = opcode == SpvOpReturn || opcode == SpvOpReturnValue || opcode == SpvOpUnreachable;
    if (s->continues[b] && ends) return false;
    bool part = is_loop(m, b) ? m->blocks[b].continue_to == b : s->continues[b] == 2;
    bool leaves = false, goes_back = false;
    for (uint32_t n = 0, to; part && (to = hdi_spirv_target(m, b, n)) != HDI_SPIRV_NONE; n++) {
        leaves |= to == m->blocks[s->loop[in]].merge;
        goes_back |= to == s->loop[in];
    }
    return !leaves || goes_back;
}

static bool check_ways(hdi_spirv_module *m, structure *s) {
    for (uint32_t b = 0; b < m->block_count; b++) {
        const hdi_spirv_block *block = &m->blocks[b];
        bool reached = m->structure.place[b] != HDI_SPIRV_NONE;
        uint32_t inner = 0, first = HDI_SPIRV_NONE;
        for (uint32_t n = 0, to; (to = hdi_spirv_target(m, b, n)) != HDI_SPIRV_NONE; n++) {
            if (!reached && to <= b && !is_loop(m, to))
                return hdi_spirv_bad(m, block->inst_end, "a loop without a header");
            if (!reached) continue;
            bool leaves;
            if (!way_is_allowed(m, s, b, to, &leaves) || (!leaves && !fall_is_allowed(m, b, to)))
                return hdi_spirv_bad(m, block->inst_end,
                                     "it leaves or enters an if, a switch or a loop by a way that is not allowed");
            inner += !leaves && to != first;
            first = to;
        }
        if (reached && !continue_is_whole(m, s, b))
            return hdi_spirv_bad(m, block->inst_end, "it leaves the continue part of a loop before its end");
        if (inner > 1 && (!block->merge_inst || is_loop(m, b)))
            return hdi_spirv_bad(m, block->inst_end, "a selection without a merge");
    }
    for (uint32_t b = 0; b < m->block_count; b++)
        if (is_loop(m, b) && m->structure.place[b] != HDI_SPIRV_NONE && s->returns[b] != 1)
            return hdi_spirv_bad(m, m->blocks[b].merge_inst, "%u branches back to the loop's header instead of one",
                                 s->returns[b]);
    return true;
}

/* What check_ways leaves behind. */
static bool find_falls(hdi_spirv_module *m, structure *s) {
    for (uint32_t b = 0; b < m->block_count; b++)
        for (uint32_t n = 0, to;
             m->structure.place[b] != HDI_SPIRV_NONE && (to = target(m, false, b, n)) != HDI_SPIRV_NONE; n++) {
            bool leaves;
            if (way_is_allowed(m, s, b, to, &leaves) && !leaves) (void)fall_is_allowed(m, b, to);
        }
    return true;
}

/* ---- uses lie below definitions ---- */

static bool reaches(const hdi_spirv_module *m, uint32_t def, uint32_t block) {
    const hdi_spirv_function *function = &m->functions[m->blocks[block].function];
    uint32_t home = m->defs[def].block;
    if (home == HDI_SPIRV_NONE) {
        bool parameter = hdi_spirv_def_opcode(m, def) == SpvOpFunctionParameter;
        return !parameter ||
               (def >= function->parameter_first && def - function->parameter_first < function->parameter_count);
    }
    if (m->blocks[home].function != m->blocks[block].function) return false;
    return home == block || m->tree.place[block] == HDI_SPIRV_NONE || hdi_spirv_dominates(&m->tree, home, block);
}

/* The blocks that lead to each block, each named once. */
typedef struct leads {
    uint32_t *first, *from; /* those of block b: from[first[b]] .. from[first[b + 1]] */
    uint32_t *mark;         /* for each block: what was marked last */
} leads;

static bool find_leads(hdi_spirv_module *m, leads *l) {
    size_t edges = 0, blocks = m->block_count;
    for (uint32_t b = 0; b < m->block_count; b++)
        for (uint32_t n = 0; hdi_spirv_target(m, b, n) != HDI_SPIRV_NONE; n++) edges++;
    l->first = hdi_arena_alloc(&m->arena, (blocks + 2) * sizeof *l->first);
    l->from = hdi_arena_alloc(&m->arena, edges * sizeof *l->from);
    l->mark = hdi_arena_alloc(&m->arena, blocks * sizeof *l->mark);
    if (!l->first || !l->from || !l->mark) return hdi_spirv_no_memory(m);
    /* Counted two places up, summed, then filled: that leaves the beginnings where they belong. */
    for (int fill = 0; fill < 2; fill++) {
        memset(l->mark, 0xFF, blocks * sizeof *l->mark);
        for (uint32_t b = 0; b < m->block_count; b++)
            for (uint32_t n = 0, to; (to = hdi_spirv_target(m, b, n)) != HDI_SPIRV_NONE; n++) {
                if (l->mark[to] == b) continue; /* two branches of one block lead there once */
                l->mark[to] = b;
                if (fill) l->from[l->first[to + 1]++] = b;
                else l->first[to + 2]++;
            }
        for (size_t b = 2; !fill && b < blocks + 2; b++) l->first[b] += l->first[b - 1];
    }
    memset(l->mark, 0xFF, blocks * sizeof *l->mark);
    return true;
}

/* Each block that leads here is named once. */
static bool check_phi(hdi_spirv_module *m, uint32_t inst, const leads *l, uint32_t block) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t pairs = ((words[0] >> 16) - 3) / 2, lead_count = l->first[block + 1] - l->first[block];
    if (pairs != lead_count) return hdi_spirv_bad(m, inst, "%u pairs for %u blocks that lead here", pairs, lead_count);
    for (uint32_t i = 0; i < pairs; i++) l->mark[l->from[l->first[block] + i]] = inst;
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t from = m->defs[hdi_spirv_find(m, words[4 + 2 * i])].detail;
        if (l->mark[from] != inst)
            return hdi_spirv_bad(m, inst, "block %u does not lead here, or is named twice", words[4 + 2 * i]);
        l->mark[from] = HDI_SPIRV_NONE;
        if (!reaches(m, hdi_spirv_find(m, words[3 + 2 * i]), from))
            return hdi_spirv_bad(m, inst, "id %u is not known at the end of block %u", words[3 + 2 * i],
                                 words[4 + 2 * i]);
    }
    return true;
}

static bool check_uses(hdi_spirv_module *m) {
    leads l;
    if (!find_leads(m, &l)) return false;
    for (uint32_t b = 0; b < m->block_count; b++) {
        for (uint32_t i = m->blocks[b].inst_first; i <= m->blocks[b].inst_end; i++) {
            if (hdi_spirv_opcode(m, i) == SpvOpPhi) {
                if (!check_phi(m, i, &l, b)) return false;
                continue;
            }
            bool glsl =
                hdi_spirv_opcode(m, i) == SpvOpExtInst && hdi_spirv_find(m, hdi_spirv_words(m, i)[3]) == m->glsl_set;
            for (hdi_spirv_operands o = hdi_spirv_operands_of(m, i); hdi_spirv_next(&o);) {
                uint32_t def = hdi_spirv_find(m, o.word);
                bool fits = o.letter != 'i' || reaches(m, def, b);
                if (glsl && o.letter == 'a')
                    fits = m->defs[def].inst < i && hdi_spirv_is_value(hdi_spirv_def_opcode(m, def)) &&
                           reaches(m, def, b);
                if (!fits)
                    return hdi_spirv_bad(m, i, "id %u is not known here: its definition does not dominate this block",
                                         o.word);
            }
        }
    }
    return true;
}

bool hdi_spirv_flow(hdi_spirv_module *m) {
    structure s = { 0 };
    return grow_tree(m, false, &m->tree) && grow_tree(m, true, &m->structure) && find_headers(m, &s) &&
           nest_blocks(m, &s) && (m->input->checked ? find_falls(m, &s) : check_ways(m, &s) && check_uses(m));
}
