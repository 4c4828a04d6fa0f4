/* print_flow.c: functions and their control flow, from the constructs that merge instructions state.
 *   A branch to the merge block of a selection falls out of its arm; of a loop or switch it is a break. On the way
 *   there a switch may have to be left as well: then a flag is raised, and asked behind the switch. A loop is `for
 *   (;;)`. Its continue part is printed where it is reached if that is in one place, or short; else it stands at the
 *   end of the loop, behind a label. WGSL has none: there it stands at the top, behind a flag that is raised after the
 *   first round.
 *   A phi is a variable, assigned on the ways that lead to it. A function that is called is printed in place, as a
 *   switch with one case that its returns break out of.
 * Recursion follows constructs and calls; its depth is bounded. */
#include "spirv/print.h"

typedef hdi_spirv_scope scope;

static bool put_from(hdi_spirv_printer *p, uint32_t block, scope *in);

static bool is_loop(const hdi_spirv_printer *p, uint32_t block) {
    return p->m->blocks[block].continue_to != HDI_SPIRV_NONE;
}
static void statement(hdi_spirv_printer *p, const char *text) {
    hdi_spirv_line(p);
    hdi_spirv_put(p, "%s\n", text);
}

static void put_flag(hdi_spirv_printer *p, const char *name, uint32_t number) {
    hdi_spirv_line(p);
    hdi_spirv_put(p, "%s %s%u = false;\n", hdi_spirv_is_wgsl(p) ? "var" : "bool", name, number);
}

/* ---- phis ---- */

static uint32_t phi_source(const hdi_spirv_printer *p, const uint32_t *words, uint32_t from) {
    for (uint32_t i = 3; i < words[0] >> 16; i += 2)
        if (p->m->defs[hdi_spirv_find(p->m, words[i + 1])].detail == from)
            return p->same[hdi_spirv_find(p->m, words[i])];
    return 0;
}

/* A phi that is a variable of its own. */
static bool is_live_phi(const hdi_spirv_printer *p, uint32_t def) {
    return p->same[def] == def && (p->facts[def] & (HDI_SPIRV_NEEDED | HDI_SPIRV_KNOWN)) == HDI_SPIRV_NEEDED;
}
static bool is_undef(const hdi_spirv_printer *p, uint32_t def) { return hdi_spirv_def_opcode(p->m, def) == SpvOpUndef; }

/* The assignments of the way `from` -> `to`. They count as made at once: where one reads a phi that another one writes,
 * all values are kept aside first. */
static void put_copies(hdi_spirv_printer *p, uint32_t from, uint32_t to) {
    const hdi_spirv_module *m = p->m;
    uint32_t first = m->blocks[to].inst_first + 1, mark = ++p->next_mark, end = first;
    bool crossed = false;
    for (; hdi_spirv_opcode(m, end) == SpvOpPhi; end++) p->mark[hdi_spirv_find(m, hdi_spirv_words(m, end)[2])] = mark;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t *words = hdi_spirv_words(m, i);
        uint32_t def = hdi_spirv_find(m, words[2]), source = is_live_phi(p, def) ? phi_source(p, words, from) : def;
        crossed |= source != def && p->mark[source] == mark && is_live_phi(p, source);
    }
    if (crossed) statement(p, "{"), p->indent++;
    for (int pass = crossed ? 0 : 1; pass < 2; pass++) {
        for (uint32_t i = first; i < end; i++) {
            const uint32_t *words = hdi_spirv_words(m, i);
            uint32_t def = hdi_spirv_find(m, words[2]);
            if (!is_live_phi(p, def)) continue;
            uint32_t source = phi_source(p, words, from);
            if (source == def || is_undef(p, source)) continue;
            hdi_spirv_line(p);
            if (pass == 0 && hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "let n%u = %v;\n", def, source);
            else if (pass == 0) hdi_spirv_put(p, "%t n%u = %v;\n", m->defs[def].type, def, source);
            else if (crossed) hdi_spirv_put(p, "v%u = n%u;\n", def, def);
            else hdi_spirv_put(p, "v%u = %v;\n", def, source);
        }
    }
    if (crossed) p->indent--, statement(p, "}");
}

/* ---- ways ---- */

typedef enum way { TO_BLOCK, FALLS, BREAKS, CONTINUES, RETURNS_TO_HEADER } way;

/* What a branch to `to` means inside of `in`; `*out_scope` is the construct that it leaves or goes on with. */
static way way_of(const hdi_spirv_printer *p, uint32_t to, scope *in, scope **out_scope) {
    bool plain = true; /* only selections so far */
    for (scope *s = in; s && s->kind != 'f'; s = s->outer) {
        *out_scope = s;
        if (to == s->merge && (s == in || s->kind != 'i')) return s->kind == 'i' ? FALLS : BREAKS;
        if (s->kind == 's' && s == in && p->m->blocks[to].falls_from != HDI_SPIRV_NONE &&
            p->m->blocks[to].construct == s->header)
            return FALLS;
        /* what follows the continue part is the header */
        bool at_top = s->kind == 'l' && s->in_continue && s->continue_first;
        if (s->kind == 'l' && to == s->header && (!at_top || plain)) return at_top ? FALLS : RETURNS_TO_HEADER;
        if (s->kind == 'l' && to == s->continue_to && !s->in_continue) return CONTINUES;
        plain &= s->kind == 'i';
    }
    *out_scope = NULL;
    return TO_BLOCK;
}

/* Leaves everything up to and with `target`, from inside of `in`. */
static void put_break(hdi_spirv_printer *p, scope *in, scope *target) {
    bool flagged = false, returns = target->kind == 'f';
    for (scope *s = in; s != target; s = s->outer) {
        if (s->kind == 'i') continue;
        flagged = true;
        *(returns ? &s->left_by_return : &s->left_by_break) = true;
    }
    hdi_spirv_line(p);
    if (flagged)
        hdi_spirv_put(p, "%s%u = true; ", returns ? "returned" : "left", returns ? target->call : target->header);
    hdi_spirv_put(p, "break;\n");
}

/* Behind a loop or switch that was left on the way out of one around it. */
static void put_further_break(hdi_spirv_printer *p, const scope *s) {
    for (const scope *t = s->outer; t && s->left_by_break; t = t->outer) {
        if (t->kind != 'l') continue;
        hdi_spirv_line(p);
        hdi_spirv_put(p, "if (left%u) { break; }\n", t->header);
        break;
    }
    for (const scope *t = s->outer; t && s->left_by_return; t = t->outer) {
        if (t->kind != 'f') continue;
        hdi_spirv_line(p);
        hdi_spirv_put(p, "if (returned%u) { break; }\n", t->call);
        break;
    }
}

/* The continue part, from inside of `in`: here, or by way of the top of the loop. */
static bool put_continue(hdi_spirv_printer *p, scope *in, scope *loop) {
    if (loop->continue_label) {
        hdi_spirv_line(p);
        hdi_spirv_put(p, "goto next%u;\n", loop->continue_label);
        return true;
    }
    if (loop->continue_first) {
        statement(p, "continue;");
        return true;
    }
    loop->in_continue = true;
    p->done[loop->continue_to] = 0;
    bool fine = put_from(p, loop->continue_to, in);
    loop->in_continue = false;
    return fine;
}

/* Goes on from `from` to `to`, whatever that is; a plain block and all that follow it are printed here. */
static bool put_edge(hdi_spirv_printer *p, uint32_t from, uint32_t to, scope *in) {
    scope *target;
    put_copies(p, from, to);
    switch (way_of(p, to, in, &target)) {
    case TO_BLOCK: return put_from(p, to, in);
    case FALLS: return true;
    case BREAKS: put_break(p, in, target); return true;
    case CONTINUES: return put_continue(p, in, target);
    default: statement(p, "continue;"); return true;
    }
}

/* The same where nothing else follows in this scope: a plain block is given back to the caller's loop. */
static bool put_last_edge(hdi_spirv_printer *p, uint32_t from, uint32_t to, scope *in, uint32_t *out_next) {
    scope *target;
    if (way_of(p, to, in, &target) != TO_BLOCK) return put_edge(p, from, to, in);
    put_copies(p, from, to);
    *out_next = to;
    return true;
}

/* ---- branches ---- */

static bool put_arm(hdi_spirv_printer *p, uint32_t from, uint32_t to, scope *in) {
    p->indent++;
    bool fine = put_edge(p, from, to, in);
    p->indent--;
    return fine;
}

static size_t text_end(const hdi_spirv_printer *p) { return p->text->count; }
static void cut_text(hdi_spirv_printer *p, size_t end) { p->text->count = end; }

/* if (condition) way 0 else way 1, an empty one left out. */
static bool put_two_ways(hdi_spirv_printer *p, uint32_t block, uint32_t condition, scope *in) {
    size_t begin = text_end(p);
    hdi_spirv_line(p);
    hdi_spirv_put(p, "if (%v) {\n", condition);
    size_t arm = text_end(p);
    if (!put_arm(p, block, hdi_spirv_way(p, block, 0), in)) return false;
    bool first_empty = text_end(p) == arm;
    if (first_empty) {
        cut_text(p, begin);
        hdi_spirv_line(p);
        hdi_spirv_put(p, "if (!%v) {\n", condition);
    } else {
        hdi_spirv_line(p);
        hdi_spirv_put(p, "} else {\n");
    }
    arm = text_end(p);
    if (!put_arm(p, block, hdi_spirv_way(p, block, 1), in)) return false;
    if (text_end(p) == arm && first_empty) {
        cut_text(p, begin);
        return true;
    }
    if (text_end(p) == arm) cut_text(p, arm - 2 * p->indent - strlen("} else {\n"));
    statement(p, "}");
    return true;
}

static bool put_selection(hdi_spirv_printer *p, uint32_t block, scope *in, uint32_t *out_next) {
    scope s = {
        .kind = 'i', .header = block, .merge = p->m->blocks[block].merge, .continue_to = HDI_SPIRV_NONE, .outer = in
    };
    bool fine;
    if (p->only_way[block] != HDI_SPIRV_NONE) {
        size_t begin = text_end(p);
        statement(p, "{");
        size_t arm = text_end(p);
        fine = put_arm(p, block, p->only_way[block], &s);
        if (fine && text_end(p) == arm) cut_text(p, begin);
        else statement(p, "}");
    } else {
        fine = put_two_ways(p, block, hdi_spirv_find(p->m, hdi_spirv_words(p->m, p->m->blocks[block].inst_end)[1]), &s);
    }
    if (p->reached[s.merge]) *out_next = s.merge;
    return fine;
}

/* A conditional branch that is no construct: one way leaves, or both do. */
static bool put_conditional(hdi_spirv_printer *p, uint32_t block, scope *in, uint32_t *out_next) {
    uint32_t condition = hdi_spirv_find(p->m, hdi_spirv_words(p->m, p->m->blocks[block].inst_end)[1]);
    scope *target;
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t to = hdi_spirv_way(p, block, n), other = hdi_spirv_way(p, block, 1 - n);
        way leaving = way_of(p, to, in, &target);
        if (leaving == TO_BLOCK || leaving == FALLS) continue;
        hdi_spirv_line(p);
        hdi_spirv_put(p, n ? "if (!%v) {\n" : "if (%v) {\n", condition);
        if (!put_arm(p, block, to, in)) return false;
        statement(p, "}");
        return put_last_edge(p, block, other, in, out_next);
    }
    return put_two_ways(p, block, condition, in);
}

/* ---- switches ---- */

/* "case 1u: case 2u: default:", or "case 1u, 2u, default:", of the ways that lead to `to`. */
static void put_labels(hdi_spirv_printer *p, uint32_t inst, uint32_t to) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t width = hdi_spirv_type_of(p->m, hdi_spirv_find(p->m, words[1]))->width,
             mask = width < 32 ? (1u << width) - 1 : UINT32_MAX;
    const bool wgsl = hdi_spirv_is_wgsl(p);
    hdi_spirv_line(p);
    if (wgsl) hdi_spirv_put(p, "case ");
    for (uint32_t at = 3; at < words[0] >> 16; at += 2)
        if (p->m->defs[hdi_spirv_find(p->m, words[at + 1])].detail == to)
            hdi_spirv_put(p, wgsl ? "%uu, " : "case %uu: ", words[at] & mask);
    if (p->m->defs[hdi_spirv_find(p->m, words[2])].detail == to) hdi_spirv_put(p, wgsl ? "default" : "default: ");
    hdi_spirv_put(p, wgsl ? ": {\n" : "{\n");
}

/* What the block leads to alone may be printed once more. */
static void print_again(hdi_spirv_printer *p, uint32_t block) {
    const hdi_spirv_function *function = &p->m->functions[p->m->blocks[block].function];
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count; b++)
        if (p->reached[b] && hdi_spirv_dominates(&p->m->tree, block, b)) p->done[b] = 0;
}

/* One case and those that it goes on to. WGSL has no way from a case into the next: there those stand in it, and are
 * cases too. */
static bool put_case(hdi_spirv_printer *p, uint32_t block, uint32_t to, scope *s) {
    bool known = p->only_way[block] != HDI_SPIRV_NONE, falls = false, wgsl = hdi_spirv_is_wgsl(p);
    for (uint32_t next; to != HDI_SPIRV_NONE; to = next, falls = true) {
        bool own = to != s->merge && p->m->blocks[to].construct == block;
        next = own ? p->m->blocks[to].falls_into : HDI_SPIRV_NONE;
        if (next != HDI_SPIRV_NONE && !p->reached[next]) next = HDI_SPIRV_NONE;
        bool assigned = falls || (wgsl && !known && own && p->m->blocks[to].falls_from != HDI_SPIRV_NONE);
        if (known && !(wgsl && falls)) statement(p, falls ? "{" : "default: {");
        else if (!(wgsl && falls)) put_labels(p, p->m->blocks[block].inst_end, to);
        p->indent++;
        if (own && !assigned) put_copies(p, block, to); /* of those that others go on to they stand before the switch */
        if (own && wgsl) print_again(p, to);
        bool fine = own ? put_from(p, to, s) : put_edge(p, block, to, s);
        p->indent--;
        if (!wgsl) statement(p, next == HDI_SPIRV_NONE ? "} break;" : "}");
        else if (next == HDI_SPIRV_NONE) statement(p, "}");
        if (!fine) return false;
    }
    return true;
}

/* A switch on a known value of which nothing is left but its own breaks. */
static bool does_nothing(const char *text, bool wgsl) {
    const char *nothing = wgsl ? "switch(0u){default:{break;}}" : "switch(0u){default:{break;}break;}";
    for (; *text && *nothing; text++) {
        if (*text == ' ' || *text == '\n') continue;
        if (*text != *nothing++) return false;
    }
    return *nothing == 0;
}

static bool put_switch(hdi_spirv_printer *p, uint32_t block, scope *in, uint32_t *out_next) {
    const hdi_spirv_module *m = p->m;
    uint32_t inst = m->blocks[block].inst_end, only = p->only_way[block], mark = ++p->next_mark;
    if (hdi_spirv_length(m, inst) > 2 * HDI_SPIRV_MAX_CASES)
        return hdi_spirv_beyond(p->m, inst, "more than %u cases", HDI_SPIRV_MAX_CASES);
    scope s = {
        .kind = 's', .header = block, .merge = m->blocks[block].merge, .continue_to = HDI_SPIRV_NONE, .outer = in
    };
    for (uint32_t n = 0, to; only == HDI_SPIRV_NONE && (to = hdi_spirv_way(p, block, n)) != HDI_SPIRV_NONE; n++)
        if (to != s.merge && m->blocks[to].construct == block && m->blocks[to].falls_from != HDI_SPIRV_NONE)
            put_copies(p, block, to);
    size_t begin = text_end(p);
    hdi_spirv_line(p);
    if (only != HDI_SPIRV_NONE) hdi_spirv_put(p, "switch (0u) {\n");
    else hdi_spirv_put(p, "switch (%v) {\n", hdi_spirv_find(m, hdi_spirv_words(m, inst)[1]));
    for (uint32_t n = 0, to; (to = hdi_spirv_way(p, block, n)) != HDI_SPIRV_NONE; n++) {
        bool later = only == HDI_SPIRV_NONE && !hdi_spirv_is_wgsl(p) && to != s.merge &&
                     m->blocks[to].construct == block && m->blocks[to].falls_from != HDI_SPIRV_NONE;
        uint32_t label = hdi_spirv_find(m, hdi_spirv_words(m, m->blocks[to].inst_first)[1]);
        if (later || p->mark[label] == mark) continue; /* behind the one that goes on to it; or printed */
        p->mark[label] = mark;
        if (!put_case(p, block, to, &s)) return false;
    }
    statement(p, "}");
    if (only != HDI_SPIRV_NONE && does_nothing(p->text->bytes + begin, hdi_spirv_is_wgsl(p))) cut_text(p, begin);
    put_further_break(p, &s);
    if (p->reached[s.merge]) *out_next = s.merge;
    return true;
}

/* ---- blocks ---- */

/* In a function that was called: the value, and the way out. */
static bool put_return(hdi_spirv_printer *p, uint32_t inst, scope *in) {
    scope *function = in;
    while (function->kind != 'f') function = function->outer;
    if (function->call == 0) {
        statement(p, "return;");
        return true;
    }
    if (hdi_spirv_opcode(p->m, inst) == SpvOpReturnValue && p->facts[function->call] & HDI_SPIRV_NEEDED) {
        hdi_spirv_line(p);
        hdi_spirv_put(p, "v%u = %v;\n", function->call, hdi_spirv_find(p->m, hdi_spirv_words(p->m, inst)[1]));
    }
    put_break(p, in, function);
    return true;
}

static bool put_call(hdi_spirv_printer *p, uint32_t inst, scope *in) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t def = hdi_spirv_find(m, words[2]), index = m->defs[hdi_spirv_find(m, words[3])].detail;
    const hdi_spirv_function *function = &m->functions[index];
    if (p->facts[def] & HDI_SPIRV_NEEDED && !(p->facts[def] & HDI_SPIRV_FAR)) {
        hdi_spirv_line(p);
        hdi_spirv_put_declared(p, m->defs[def].type, 'v', def);
        hdi_spirv_end(p);
    }
    put_flag(p, "returned", def);
    statement(p, "switch (0u) {");
    statement(p, "default: {");
    p->indent++;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        uint32_t parameter = function->parameter_first + i, argument = hdi_spirv_find(m, words[4 + i]);
        p->same[parameter] = parameter;
        if (hdi_spirv_type_of(m, parameter)->kind == 'p') {
            p->same[parameter] = p->same[argument]; /* a whole variable */
        } else if (p->facts[parameter] & HDI_SPIRV_NEEDED) {
            hdi_spirv_line(p);
            if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "let v%u = %v;\n", parameter, argument);
            else hdi_spirv_put(p, "%t v%u = %v;\n", m->defs[parameter].type, parameter, argument);
        }
    }
    memset(p->done + function->block_first, 0, function->block_count);
    scope s = { .kind = 'f', .header = HDI_SPIRV_NONE, .merge = HDI_SPIRV_NONE, .continue_to = HDI_SPIRV_NONE,
                .call = def, .outer = in };
    bool fine = hdi_spirv_put_function(p, index, &s);
    p->indent--;
    statement(p, hdi_spirv_is_wgsl(p) ? "}" : "} break;");
    statement(p, "}");
    return fine;
}

/* A block's instructions and its branch. `*out_next`: the block that follows in this scope. */
static bool put_block(hdi_spirv_printer *p, uint32_t block, scope *in, uint32_t *out_next) {
    const hdi_spirv_module *m = p->m;
    uint32_t last = m->blocks[block].inst_end;
    for (uint32_t i = m->blocks[block].inst_first + 1; i < last; i++) {
        bool call = hdi_spirv_opcode(m, i) == SpvOpFunctionCall;
        if (!(call ? put_call(p, i, in) : hdi_spirv_put_instruction(p, i)) || p->stop) return false;
    }
    bool construct = m->blocks[block].merge_inst && !is_loop(p, block);
    switch (hdi_spirv_opcode(m, last)) {
    case SpvOpBranch: return put_last_edge(p, block, hdi_spirv_target(m, block, 0), in, out_next);
    case SpvOpBranchConditional:
        if (construct) return put_selection(p, block, in, out_next);
        if (p->only_way[block] != HDI_SPIRV_NONE) return put_last_edge(p, block, p->only_way[block], in, out_next);
        if (hdi_spirv_target(m, block, 0) == hdi_spirv_target(m, block, 1))
            return put_last_edge(p, block, hdi_spirv_target(m, block, 0), in, out_next);
        return put_conditional(p, block, in, out_next);
    case SpvOpSwitch: return put_switch(p, block, in, out_next);
    case SpvOpUnreachable: statement(p, "return;"); return true;
    default: return put_return(p, last, in);
    }
}

/* ---- loops ---- */

/* May the continue part be printed in each place that leads to it? It is one short block, or there is one such
 * place. */
static bool is_continued_in_place(const hdi_spirv_printer *p, uint32_t header) {
    const hdi_spirv_module *m = p->m;
    uint32_t part = m->blocks[header].continue_to, ways = 0;
    enum { SHORT = 64 };
    if (part == header) return true;
    bool single = m->blocks[part].inst_end - m->blocks[part].inst_first < SHORT;
    bool back = false;
    for (uint32_t n = 0, to; (to = hdi_spirv_way(p, part, n)) != HDI_SPIRV_NONE; n++) back |= to == header;
    for (uint32_t i = m->blocks[part].inst_first; i < m->blocks[part].inst_end && single; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        single = opcode != SpvOpControlBarrier && opcode != SpvOpFunctionCall && opcode != SpvOpVariable &&
                 !hdi_spirv_is_group(opcode); /* what lanes do together they do in one place */
    }
    if (single && back) return true;
    const hdi_spirv_function *function = &m->functions[m->blocks[header].function];
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count && ways < 2; b++) {
        if (!p->reached[b]) continue;
        for (uint32_t n = 0, to; (to = hdi_spirv_way(p, b, n)) != HDI_SPIRV_NONE; n++) ways += to == part;
    }
    return ways < 2;
}

static bool put_loop(hdi_spirv_printer *p, uint32_t block, scope *in) {
    const hdi_spirv_block *header = &p->m->blocks[block];
    scope s = { .kind = 'l', .header = block, .merge = header->merge, .continue_to = header->continue_to, .outer = in };
    const bool closes = p->target->closes_loops && p->holds[block] & HDI_SPIRV_HOLDS_BARRIER &&
                        !(p->holds[block] & HDI_SPIRV_HOLDS_RETURN);
    const bool closes_rounds = closes && p->holds[block] & HDI_SPIRV_MISSES_BARRIER && header->continue_to != block;
    const bool apart = closes_rounds || (p->reached[header->continue_to] && !is_continued_in_place(p, block));
    s.continue_first = apart && hdi_spirv_is_wgsl(p);
    if (apart && !s.continue_first) s.continue_label = ++p->labels;
    if (p->needs_flag[block]) put_flag(p, "left", block);
    if (s.continue_first) put_flag(p, "again", block);
    /* CUDA's compiler sees by itself, but clang does not, that arrays such loops count through can be registers. */
    if ((p->target->dialect == HDI_SPIRV_CUDA || hdi_spirv_is_ptx(p->target)) &&
        hdi_spirv_words(p->m, header->merge_inst)[3] & SpvLoopControlUnrollMask)
        statement(p, "#pragma unroll");
    statement(p, "for (;;) {");
    p->indent++;
    bool fine = true;
    if (s.continue_first) {
        hdi_spirv_line(p);
        hdi_spirv_put(p, "if (again%u) {\n", block);
        p->indent++;
        s.in_continue = true;
        fine = put_from(p, header->continue_to, &s);
        s.in_continue = false;
        p->indent--;
        statement(p, "}");
        hdi_spirv_line(p);
        hdi_spirv_put(p, "again%u = true;\n", block);
    }
    uint32_t next = HDI_SPIRV_NONE;
    if (s.continue_label) statement(p, "{"); /* C++ does not jump over declarations */
    fine = fine && put_block(p, block, &s, &next);
    if (fine && next != HDI_SPIRV_NONE) fine = put_from(p, next, &s);
    if (s.continue_label && fine) {
        statement(p, "}");
        hdi_spirv_line(p);
        hdi_spirv_put(p, "next%u:;\n", s.continue_label);
        if (closes_rounds) statement(p, "BARRIER_ALL();");
        s.in_continue = true;
        fine = put_from(p, header->continue_to, &s);
    }
    p->indent--;
    statement(p, "}");
    if (closes && !s.left_by_break) statement(p, "BARRIER_ALL();");
    put_further_break(p, &s);
    return fine;
}

/* Prints a block and those that follow it, up to the end of the scope. */
static bool put_from(hdi_spirv_printer *p, uint32_t block, scope *in) {
    if (p->depth >= HDI_SPIRV_MAX_PRINT_DEPTH)
        return hdi_spirv_beyond(p->m, p->m->blocks[block].inst_first, "constructs and calls nested more than %u deep",
                                HDI_SPIRV_MAX_PRINT_DEPTH);
    p->depth++;
    bool fine = true, began = true;
    while (fine && block != HDI_SPIRV_NONE && !p->stop) {
        scope *target;
        uint32_t next = HDI_SPIRV_NONE;
        way arrived = began ? TO_BLOCK : way_of(p, block, in, &target);
        if (arrived == CONTINUES) { /* the merge block of a selection may be where its loop continues */
            fine = put_continue(p, in, target);
            break;
        }
        if (arrived == FALLS || arrived == BREAKS) {
            if (arrived == BREAKS) put_break(p, in, target);
            break;
        }
        if (p->done[block])
            return hdi_spirv_unsupported(p->m, p->m->blocks[block].inst_first,
                                         "the block is entered in two places, and is no merge block");
        p->done[block] = 1;
        if (is_loop(p, block)) {
            fine = put_loop(p, block, in);
            if (p->reached[p->m->blocks[block].merge]) next = p->m->blocks[block].merge;
        } else {
            fine = put_block(p, block, in, &next);
        }
        block = next;
        began = false;
    }
    p->depth--;
    return fine && !p->stop;
}

/* Variables at the top of a function: its own, phis, and values that are used outside of their block. */
static bool put_declarations(hdi_spirv_printer *p, const hdi_spirv_function *function) {
    const hdi_spirv_module *m = p->m;
    uint32_t open = 0; /* the type of the declaration that more may join */
    for (uint32_t b = function->block_first; b < function->block_first + function->block_count; b++) {
        if (!p->reached[b]) continue;
        for (uint32_t i = m->blocks[b].inst_first; i < m->blocks[b].inst_end; i++) {
            uint32_t opcode = hdi_spirv_opcode(m, i);
            if (hdi_spirv_op_row(opcode)->operands[0] != 't') continue;
            uint32_t def = hdi_spirv_find(m, hdi_spirv_words(m, i)[2]), type_def = m->defs[def].type;
            const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
            if (p->same[def] != def || !(p->facts[def] & HDI_SPIRV_NEEDED)) continue;
            const bool variable = opcode == SpvOpVariable,
                       is_declared = opcode == SpvOpPhi || p->facts[def] & HDI_SPIRV_FAR;
            if (!variable && (!is_declared || type->kind == 'p' || (opcode == SpvOpUndef && hdi_spirv_is_plain(type))))
                continue;
            if (!variable && type_def == open) {
                hdi_spirv_put(p, ", v%u", def);
                continue;
            }
            if (open) hdi_spirv_end(p);
            open = 0;
            if (variable && !hdi_spirv_put_variable(p, def)) return false;
            if (variable) continue;
            hdi_spirv_line(p);
            hdi_spirv_put_declared(p, type_def, 'v', def);
            if (hdi_spirv_is_wgsl(p)) hdi_spirv_end(p);
            else open = type_def;
        }
    }
    if (open) hdi_spirv_end(p);
    return true;
}

bool hdi_spirv_put_function(hdi_spirv_printer *p, uint32_t function, hdi_spirv_scope *s) {
    return put_declarations(p, &p->m->functions[function]) && put_from(p, p->m->functions[function].block_first, s);
}
