/* barriers.c: which loops hold barriers of the workgroup, for PoCL 3.1, which asks for more of them than a module has:
 *   it runs what stands behind a loop with barriers before the loop is over, unless a barrier stands there as well;
 *   it mixes up the rounds of a loop whose barrier some rounds pass by (in a branch, behind a continue, behind a return
 *   of a function that is called there), unless each round ends with one more.
 * The whole workgroup reaches both: PoCL takes it through a loop that holds barriers together. Relies on fold.c. */
#include "spirv/print.h"

/* Does the instruction meet the workgroup? Subgroups that go through shared memory do as well. */
static bool meets(const hdi_spirv_printer *p, uint32_t inst) {
    uint64_t scope = 0;
    const uint32_t opcode = hdi_spirv_opcode(p->m, inst);
    if (hdi_spirv_is_group(opcode)) return !(p->target->offers & HDI_SPIRV_OFFERS_SUBGROUPS);
    return opcode == SpvOpControlBarrier &&
           hdi_spirv_known(p->m, hdi_spirv_find(p->m, hdi_spirv_words(p->m, inst)[1]), &scope) &&
           scope == SpvScopeWorkgroup;
}

static bool returns(const hdi_spirv_printer *p, uint32_t block) {
    const uint32_t opcode = hdi_spirv_opcode(p->m, p->m->blocks[block].inst_end);
    return p->reached[block] && (opcode == SpvOpReturn || opcode == SpvOpReturnValue);
}

/* How many returns each block dominates: every call that ends comes by one that dominates as many as the function's
 * first. */
static void count_returns(const hdi_spirv_printer *p, uint32_t *returns_below) {
    const hdi_spirv_tree *tree = &p->m->tree;
    for (uint32_t i = p->m->block_count; i-- > 0;) {
        const uint32_t b = tree->order[i];
        if (b == HDI_SPIRV_NONE) continue;
        returns_below[b] += returns(p, b);
        if (tree->parent[b] != b) returns_below[tree->parent[b]] += returns_below[b];
    }
}

/* A barrier stands in the block: `missed`, not each time that the block is passed. What that makes of the constructs
 * around, and of the function. */
static void hold(hdi_spirv_printer *p, const uint32_t *returns_below, uint32_t block, bool missed) {
    const hdi_spirv_block *blocks = p->m->blocks;
    uint8_t *function = &p->function_holds[blocks[block].function];
    const uint32_t first = p->m->functions[blocks[block].function].block_first;
    uint32_t at = block; /* what each round passes, if it passes the barrier */
    for (uint32_t h = block; h != HDI_SPIRV_NONE; h = blocks[h].construct) {
        p->holds[h] |= HDI_SPIRV_HOLDS_BARRIER;
        const uint32_t end = blocks[h].continue_to;
        if (end == HDI_SPIRV_NONE) continue; /* no loop */
        if (p->reached[end] && (missed || !hdi_spirv_dominates(&p->m->tree, at, end)))
            p->holds[h] |= HDI_SPIRV_MISSES_BARRIER;
        at = h; /* one stands behind this loop */
        missed = false;
    }
    *function |= HDI_SPIRV_HOLDS_BARRIER;
    if (missed || returns_below[at] != returns_below[first]) *function |= HDI_SPIRV_MISSES_BARRIER;
}

/* One pass over all blocks. */
static void pass(hdi_spirv_printer *p, const uint32_t *returns_below) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t b = 0; b < m->block_count; b++) {
        if (!p->reached[b]) continue;
        uint8_t found = 0;
        for (uint32_t i = m->blocks[b].inst_first; i < m->blocks[b].inst_end; i++) {
            if (meets(p, i)) found |= HDI_SPIRV_HOLDS_BARRIER;
            if (hdi_spirv_opcode(m, i) == SpvOpFunctionCall) found |= p->function_holds[hdi_spirv_called(m, i)];
        }
        if (found) hold(p, returns_below, b, found & HDI_SPIRV_MISSES_BARRIER);
        for (uint32_t h = b; returns(p, b) && h != HDI_SPIRV_NONE; h = m->blocks[h].construct)
            p->holds[h] |= HDI_SPIRV_HOLDS_RETURN;
    }
}

bool hdi_spirv_find_barriers(hdi_spirv_printer *p) {
    const size_t functions = p->m->function_count;
    p->holds = hdi_arena_alloc(&p->m->arena, p->m->block_count);
    p->function_holds = hdi_arena_alloc(&p->m->arena, functions);
    uint8_t *before = hdi_arena_alloc(&p->m->arena, functions);
    uint32_t *returns_below = hdi_arena_alloc(&p->m->arena, p->m->block_count * sizeof *returns_below);
    if (!p->holds || !p->function_holds || !before || !returns_below) return hdi_spirv_no_memory(p->m);
    count_returns(p, returns_below);
    do { /* once for each call within another */
        memcpy(before, p->function_holds, functions);
        pass(p, returns_below);
    } while (memcmp(before, p->function_holds, functions) != 0);
    return true;
}
