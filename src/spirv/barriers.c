/* barriers.c: which loops hold barriers of the workgroup, for PoCL 3.1, which
 * asks for more of them than a module has: it runs what stands behind a loop
 * with barriers before the loop is over, unless a barrier stands there as well;
 *   it mixes up the rounds of a loop whose barrier some rounds pass by (in a
 * branch, behind a continue, behind a return of a function that is called
 * there), unless each round ends with one more. The whole workgroup reaches
 * both: PoCL takes it through a loop that holds barriers together. Relies on
 * fold.c. */
#include "spirv/print.h"

/* Does the instruction meet the workgroup? Subgroups that go through shared memory do as well. */
static bool meets(const hdi_spirv_printer *p, uint32_t inst) {
    uint64_t scope = 0;
    const uint32_t opcode = hdi_spirv_opcode(p->m, inst);
    if (hdi_spirv_is_group(opcode)) return !(p->target->offers & HDI_SPIRV_OFFERS_SUBGROUPS);
    return opcode == SpvOpControlBarrier &&
           hdi_spirv_known(p->m,
                           hdi_spirv_find(p->m, hdi_spirv_words(p->m, inst)[1]),
                           &scope) &&
           scope == SpvScopeWorkgroup;
}

/* Does every call of the function that ends come by the block? */
static bool is_passed_by_all(const hdi_spirv_printer *p, const hdi_spirv_function *function, uint32_t block) {
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count; b++) {
        const uint32_t opcode = hdi_spirv_opcode(p->m, p->m->blocks[b].inst_end);
        if (p->reached[b] &&
            (opcode == SpvOpReturn || opcode == SpvOpReturnValue) &&
            !hdi_spirv_dominates(&p->m->tree, block, b))
          return false;
    }
    return true;
}

/* A barrier stands in the block: `missed`, not each time that the block is
 * passed. What that makes of the constructs around, and of the function. */
static void hold(hdi_spirv_printer *p, uint32_t block, bool missed) {
    const hdi_spirv_block *blocks = p->m->blocks;
    const hdi_spirv_function *function = &p->m->functions[blocks[block].function];
    uint32_t at = block; /* what each round passes, if it passes the barrier */
    for (uint32_t h = block; h != HDI_SPIRV_NONE; h = blocks[h].construct) {
        p->holds[h] |= HDI_SPIRV_HOLDS_BARRIER;
        const uint32_t end = blocks[h].continue_to;
        if (end == HDI_SPIRV_NONE) continue; /* no loop */
        if (p->reached[end] &&
            (missed || !hdi_spirv_dominates(&p->m->tree, at, end)))
          p->holds[h] |= HDI_SPIRV_MISSES_BARRIER;
        at = h; /* one stands behind this loop */
        missed = false;
    }
    p->function_holds[blocks[block].function] |= HDI_SPIRV_HOLDS_BARRIER;
    if (missed || !is_passed_by_all(p, function, at))
      p->function_holds[blocks[block].function] |= HDI_SPIRV_MISSES_BARRIER;
}

/* One pass over all blocks. */
static void pass(hdi_spirv_printer *p) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t b = 0; b < m->block_count; b++) {
        if (!p->reached[b]) continue;
        const uint32_t last = m->blocks[b].inst_end, opcode = hdi_spirv_opcode(m, last);
        uint8_t found = 0;
        for (uint32_t i = m->blocks[b].inst_first; i < last; i++) {
            if (meets(p, i)) found |= HDI_SPIRV_HOLDS_BARRIER;
            if (hdi_spirv_opcode(m, i) == SpvOpFunctionCall) found |= p->function_holds[hdi_spirv_called(m, i)];
        }
        if (found) hold(p, b, found & HDI_SPIRV_MISSES_BARRIER);
        for (uint32_t h = b;
             (opcode == SpvOpReturn || opcode == SpvOpReturnValue) &&
             h != HDI_SPIRV_NONE;
             h = m->blocks[h].construct)
          p->holds[h] |= HDI_SPIRV_HOLDS_RETURN;
    }
}

bool hdi_spirv_find_barriers(hdi_spirv_printer *p) {
    const size_t functions = p->m->function_count;
    p->holds = hdi_arena_alloc(&p->m->arena, p->m->block_count);
    p->function_holds = hdi_arena_alloc(&p->m->arena, functions);
    uint8_t *before = hdi_arena_alloc(&p->m->arena, functions);
    if (!p->holds || !p->function_holds || !before) return hdi_spirv_no_memory(p->m);
    do { /* once for each call within another */
        memcpy(before, p->function_holds, functions);
        pass(p);
    } while (memcmp(before, p->function_holds, functions) != 0);
    return true;
}
