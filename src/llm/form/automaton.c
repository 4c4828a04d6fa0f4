/* automaton.c: makes the graphs of rules deterministic, one rule after the other, and takes out of them what cannot be
 * finished. Sets of places become states (the subset construction); a call of a rule is read as if it were a
 * character. */
#include "llm/form/automaton.h"
#include <stdlib.h>

/* An edge of a set that reads bytes: of the classes from first to last. */
typedef struct reading {
    uint32_t to, next; /* number + 1 of the next one with the same first class; 0: none */
    uint8_t  first, last;
} reading;

/* The sets of a rule and the states they became. */
typedef struct maker {
    const hdl_grammar *grammar;
    const hdl_net     *net;
    hdl_automaton     *out;
    uint32_t *members;           /* of all sets of this rule, one behind the other */
    uint32_t *set_ends;          /* where each set's members end */
    uint32_t  member_count, set_count;
    size_t    member_room, set_room;
    uint32_t *slots;             /* a set's number + 1, by its hash; 0: free */
    uint32_t  slot_count;
    uint32_t *marks;             /* of each place: the last set that has it */
    uint32_t  mark;
    reading  *reads;             /* of the set whose ways are looked for */
    uint32_t *active;            /* those of them that the class can go */
    size_t    read_room, active_room;
    uint16_t *starts;            /* of each rule */
    uint16_t  first_state;       /* of this rule */
    uint64_t  work;
    hd_error *error;
} maker;

static bool fail_memory(maker *m) {
    return hdl_fail(m->error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory"), false;
}
static bool fail_large(maker *m) {
    return hdl_fail(m->error, HD_STATUS_LIMIT,
                    "grammar: it needs too many states: make repetitions smaller, or choices that begin alike fewer"),
           false;
}
static bool works(maker *m, uint64_t steps) { return (m->work += steps) <= HDL_MAX_WORK || fail_large(m); }

/* ---- classes of bytes ---- */

static void find_classes(const hdl_net *net, hdl_automaton *out) {
    bool begins[257] = { true };
    for (uint32_t i = 1; i < net->edge_count; i++) {
        if (net->edges[i].kind != HDL_EDGE_BYTES) continue;
        begins[net->edges[i].low] = true;
        begins[net->edges[i].high + 1] = true;
    }
    for (uint32_t i = 0; i < 256; i++) {
        out->classes += begins[i];
        out->class_of[i] = (uint8_t)(out->classes - 1);
    }
}

/* ---- sets ---- */

static uint32_t set_begin(const maker *m, uint32_t set) { return set ? m->set_ends[set - 1] : 0; }

/* The set that is being made goes behind the last one. */
static void open_set(maker *m) {
    m->member_count = m->set_count ? m->set_ends[m->set_count - 1] : 0;
    m->mark++;
}

static bool push_member(maker *m, uint32_t place) {
    if (!hdl_grow(&m->out->allocator, &m->members, &m->member_room, m->member_count + 1, sizeof *m->members))
        return fail_memory(m);
    m->members[m->member_count++] = place;
    m->marks[place] = m->mark;
    return true;
}

/* Adds a place, and those that free edges lead to. */
static bool add_member(maker *m, uint32_t place) {
    uint32_t next = m->member_count;
    if (m->marks[place] == m->mark) return true;
    if (!push_member(m, place)) return false;
    for (; next < m->member_count; next++)
        for (uint32_t e = m->net->first_free[m->members[next]]; e; e = m->net->edges[e].next) {
            const uint32_t to = m->net->edges[e].to;
            if (!works(m, 1) || (m->marks[to] != m->mark && !push_member(m, to))) return false;
        }
    return true;
}

/* The same in any order. */
static uint64_t hash_of(const uint32_t *members, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t mixed = (members[i] + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
        sum += (mixed ^ mixed >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    }
    return sum ^ sum >> 32;
}

/* Whether a set has all members of the one that is being made, which has as many. */
static bool is_same(const maker *m, uint32_t set) {
    for (uint32_t i = set_begin(m, set); i < m->set_ends[set]; i++)
        if (m->marks[m->members[i]] != m->mark) return false;
    return true;
}

static bool grow_slots(maker *m) {
    const uint32_t count = m->slot_count ? 2 * m->slot_count : 256;
    uint32_t *slots = hdl_alloc(&m->out->allocator, count * sizeof *slots);
    if (!slots) return fail_memory(m);
    hdl_free(&m->out->allocator, m->slots, m->slot_count * sizeof *m->slots);
    m->slots = slots;
    m->slot_count = count;
    for (uint32_t i = 0; i < m->set_count; i++) {
        const uint32_t begin = set_begin(m, i);
        uint64_t at = hash_of(m->members + begin, m->set_ends[i] - begin);
        while (m->slots[at & (count - 1)]) at++;
        m->slots[at & (count - 1)] = i + 1;
    }
    return true;
}

/* A state for a new set; its ways are found later. */
static bool add_state(maker *m, uint32_t begin) {
    hdl_automaton *out = m->out;
    const uint64_t cells = ((uint64_t)out->state_count + 1) * out->classes;
    if (out->state_count >= HDL_MAX_STATES || cells > HDL_MAX_CELLS) return fail_large(m);
    if (!hdl_grow(&out->allocator, &out->states, &out->state_room, out->state_count + 1, sizeof *out->states) ||
        !hdl_grow(&out->allocator, &out->table, &out->table_room, (size_t)cells, sizeof *out->table))
        return fail_memory(m);
    uint32_t flags = 0, least = m->members[begin];
    for (uint32_t i = begin; i < m->member_count; i++) {
        flags |= m->net->flags[m->members[i]] & HDL_PLACE_FREE;
        if (m->members[i] < least) least = m->members[i];
    }
    flags |= m->net->flags[least] & HDL_PLACE_INSIDE;
    out->states[out->state_count++] =
        (hdl_state){ .inside = flags & HDL_PLACE_INSIDE, .free = (flags & HDL_PLACE_FREE) != 0 };
    return true;
}

/* The state of the set that is being made; it is none where the set is empty. */
static bool close_set(maker *m, uint16_t *out_state) {
    const uint32_t begin = set_begin(m, m->set_count), count = m->member_count - begin;
    *out_state = HDL_NO_STATE;
    if (!count) return true;
    if (!works(m, count)) return false;
    if (2 * m->set_count >= m->slot_count && !grow_slots(m)) return false;
    uint64_t at = hash_of(m->members + begin, count);
    for (; m->slots[at & (m->slot_count - 1)]; at++) {
        const uint32_t set = m->slots[at & (m->slot_count - 1)] - 1, other = set_begin(m, set);
        if (!works(m, 1)) return false;
        if (m->set_ends[set] - other != count || !is_same(m, set)) continue;
        *out_state = (uint16_t)(m->first_state + set);
        return true;
    }
    if (!hdl_grow(&m->out->allocator, &m->set_ends, &m->set_room, m->set_count + 1, sizeof *m->set_ends))
        return fail_memory(m);
    if (!add_state(m, begin)) return false;
    m->slots[at & (m->slot_count - 1)] = m->set_count + 1;
    m->set_ends[m->set_count] = m->member_count;
    *out_state = (uint16_t)(m->first_state + m->set_count++);
    return true;
}

/* ---- a rule ---- */

/* The edges of a set that read bytes, by the class that each begins with; `turns` says at which classes they change. */
static bool find_reads(maker *m, uint32_t set, uint32_t *firsts, bool *turns) {
    uint32_t count = 0;
    for (uint32_t i = set_begin(m, set); i < m->set_ends[set]; i++)
        for (uint32_t e = m->net->first_edges[m->members[i]]; e; e = m->net->edges[e].next) {
            const hdl_edge *edge = &m->net->edges[e];
            if (!works(m, 1)) return false;
            if (edge->kind != HDL_EDGE_BYTES) continue;
            if (!hdl_grow(&m->out->allocator, &m->reads, &m->read_room, count + 1, sizeof *m->reads) ||
                !hdl_grow(&m->out->allocator, &m->active, &m->active_room, count + 1, sizeof *m->active))
                return fail_memory(m);
            const uint8_t first = m->out->class_of[edge->low], last = m->out->class_of[edge->high];
            m->reads[count++] = (reading){ edge->to, firsts[first], first, last };
            firsts[first] = count;
            turns[first] = turns[last + 1] = true;
        }
    return true;
}

/* What a set comes to by a byte of each class. Classes behind one another that the same edges read share a set. */
static bool read_bytes(maker *m, uint32_t set) {
    const uint32_t classes = m->out->classes;
    const uint64_t row = (uint64_t)(m->first_state + set) * classes;
    uint32_t firsts[256] = { 0 }, active = 0;
    bool turns[257] = { false };
    uint16_t next = HDL_NO_STATE;
    if (!find_reads(m, set, firsts, turns)) return false;
    for (uint32_t c = 0; c < classes; c++) {
        if (turns[c]) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < active; i++)
                if (m->reads[m->active[i]].last >= c) m->active[kept++] = m->active[i];
            for (uint32_t i = firsts[c]; i; i = m->reads[i - 1].next) m->active[kept++] = i - 1;
            active = kept;
            if (!works(m, active + 1u)) return false;
            open_set(m);
            for (uint32_t i = 0; i < active; i++)
                if (!add_member(m, m->reads[m->active[i]].to)) return false;
            if (!close_set(m, &next)) return false;
        }
        m->out->table[row + c] = next;
    }
    return true;
}

/* What it comes to by a call of the rule. */
static bool read_call(maker *m, uint32_t set, uint32_t rule, uint16_t *out) {
    open_set(m);
    for (uint32_t i = set_begin(m, set); i < m->set_ends[set]; i++)
        for (uint32_t e = m->net->first_edges[m->members[i]]; e; e = m->net->edges[e].next) {
            if (!works(m, 1)) return false;
            if (m->net->edges[e].kind == HDL_EDGE_CALL && m->net->edges[e].rule == rule &&
                !add_member(m, m->net->edges[e].to))
                return false;
        }
    return close_set(m, out);
}

/* The calls of a set, each rule once. Until all rules are made, a call's start is its rule's number. */
static bool read_calls(maker *m, uint32_t set) {
    hdl_automaton *out = m->out;
    const uint32_t state = m->first_state + set;
    out->states[state].first_call = out->call_count;
    for (uint32_t i = set_begin(m, set); i < m->set_ends[set]; i++)
        for (uint32_t e = m->net->first_edges[m->members[i]]; e; e = m->net->edges[e].next) {
            if (m->net->edges[e].kind != HDL_EDGE_CALL) continue;
            const uint32_t rule = m->net->edges[e].rule;
            uint32_t k = out->states[state].first_call;
            while (k < out->call_count && out->calls[k].start != rule) k++;
            if (!works(m, k - out->states[state].first_call + 1)) return false;
            if (k < out->call_count) continue;
            uint16_t back;
            if (!read_call(m, set, rule, &back)) return false;
            if (!hdl_grow(&out->allocator, &out->calls, &out->call_room, out->call_count + 1, sizeof *out->calls))
                return fail_memory(m);
            out->calls[out->call_count++] = (hdl_call){ (uint16_t)rule, back };
            out->states[state].call_count++;
        }
    return true;
}

static bool make_rule(maker *m, uint32_t rule) {
    m->set_count = 0;
    m->first_state = (uint16_t)m->out->state_count;
    hdl_free(&m->out->allocator, m->slots, m->slot_count * sizeof *m->slots); /* many may be there for few sets now */
    m->slots = NULL;
    m->slot_count = 0;
    open_set(m);
    if (!add_member(m, m->net->begins[rule]) || !close_set(m, &m->starts[rule])) return false;
    for (uint32_t set = 0; set < m->set_count; set++) {
        const uint32_t state = m->first_state + set;
        for (uint32_t i = set_begin(m, set); i < m->set_ends[set]; i++)
            if (m->members[i] == m->net->ends[rule]) m->out->states[state].ends = true;
        if (!read_bytes(m, set) || !read_calls(m, set)) return false;
    }
    return true;
}

/* ---- rules that begin with themselves ---- */

/* Whether a rule can be ended by calls alone, and by nothing at all. */
static bool find_empty(maker *m, bool *empty) {
    hdl_automaton *out = m->out; /* for each state: can its rule end there without another byte? */
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = out->state_count; i-- > 0;) {
            const hdl_state *s = &out->states[i];
            bool can = s->ends;
            for (uint32_t k = 0; k < s->call_count && !can && !empty[i]; k++) {
                const hdl_call call = out->calls[s->first_call + k];
                can = empty[call.start] && empty[call.back];
            }
            if (!works(m, s->call_count + 1u)) return false;
            if (!can || empty[i]) continue;
            empty[i] = found = true;
        }
    }
    return true;
}

/* Where rules can be without having read a byte: `left` is true for these states. */
static bool find_left(maker *m, const bool *empty, bool *left) {
    const hdl_automaton *a = m->out;
    for (uint32_t i = 0; i < m->grammar->rule_count; i++)
        if (m->starts[i] != HDL_NO_STATE) left[m->starts[i]] = true;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 0; i < a->state_count; i++) {
            const hdl_state *s = &a->states[i];
            if (!works(m, s->call_count + 1u)) return false;
            for (uint32_t k = 0; k < s->call_count && left[i]; k++) {
                const hdl_call call = a->calls[s->first_call + k];
                if (!empty[call.start] || left[call.back]) continue;
                left[call.back] = found = true;
            }
        }
    }
    return true;
}

/* A rule on the way down: the states where it has read nothing yet, and their calls, one after the other. */
typedef struct step {
    uint16_t start;
    uint32_t state, next;
} step;

/* Finds a rule that comes to itself before a byte was read, and is on the way then: `seen` 1; 2 when all below it was
 * looked at. */
static bool has_circle(const hdl_automaton *a, const bool *left, const bool *begins, uint8_t *seen, step *way,
                       uint16_t *out_start) {
    for (uint32_t from = 0; from < a->state_count; from++) {
        uint32_t depth = 0;
        if (!begins[from] || seen[from]) continue;
        way[depth++] = (step){ (uint16_t)from, from, 0 };
        seen[from] = 1;
        while (depth) {
            step *s = &way[depth - 1];
            const hdl_state *state = &a->states[s->state];
            if (left[s->state] && s->next < state->call_count) {
                const uint16_t to = a->calls[state->first_call + s->next++].start;
                if (seen[to] == 1) return *out_start = to, true;
                if (seen[to]) continue;
                seen[to] = 1;
                way[depth++] = (step){ to, to, 0 };
            } else if (s->state + 1 < a->state_count && !begins[s->state + 1]) {
                s->state++;
                s->next = 0;
            } else {
                seen[s->start] = 2;
                depth--;
            }
        }
    }
    return false;
}

static bool refuse_circle(maker *m, uint16_t start) {
    char quoted[HDL_QUOTE];
    for (uint32_t i = 0; i < m->grammar->rule_count; i++)
        if (m->starts[i] == start)
            hdl_fail(m->error, HD_STATUS_UNSUPPORTED,
                     "grammar: rule %s can begin with itself (left recursion); write it with * or +, or put what "
                     "repeats last",
                     hdl_quote(m->grammar->rules[i].name, quoted));
    return false;
}

static bool check_circles(maker *m) {
    const hd_allocator *allocator = &m->out->allocator;
    const uint32_t states = m->out->state_count, rules = m->grammar->rule_count;
    uint16_t circle = 0;
    bool *flags = hdl_alloc(allocator, 3 * (uint64_t)states), *empty = flags, *left = flags ? flags + states : NULL,
         *begins = left ? left + states : NULL;
    uint8_t *seen = hdl_alloc(allocator, states);
    step *way = hdl_alloc(allocator, rules * sizeof *way);
    bool ok = flags && seen && way ? true : fail_memory(m);
    for (uint32_t i = 0; i < rules && ok; i++)
        if (m->starts[i] != HDL_NO_STATE) begins[m->starts[i]] = true;
    ok = ok && find_empty(m, empty) && find_left(m, empty, left);
    if (ok && has_circle(m->out, left, begins, seen, way, &circle)) ok = refuse_circle(m, circle);
    hdl_free(allocator, flags, 3 * (uint64_t)states);
    hdl_free(allocator, seen, states);
    hdl_free(allocator, way, rules * sizeof *way);
    return ok;
}

/* ---- what can be finished ---- */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* How many calls deep the shortest way from a state to the end of its rule goes; HDL_MAX_STACK + 1: there is none. */
static uint32_t depth_from(const hdl_automaton *a, uint32_t state, uint32_t *out_steps) {
    const hdl_state *s = &a->states[state];
    uint32_t best = s->ends ? 0 : s->depth, c = 0, k = 0;
    const uint16_t *row = a->table + (uint64_t)state * a->classes;
    for (; c < a->classes && best; c++)
        if (row[c] != HDL_NO_STATE && a->states[row[c]].depth < best) best = a->states[row[c]].depth;
    for (; k < s->call_count && best; k++) {
        const hdl_call call = a->calls[s->first_call + k];
        const uint32_t deep = larger(a->states[call.back].depth, a->states[call.start].depth + 1u);
        if (deep < best) best = deep;
    }
    *out_steps = c + k + 1;
    return best;
}

static bool find_depths(maker *m) {
    hdl_automaton *a = m->out;
    for (uint32_t i = 0; i < a->state_count; i++) a->states[i].depth = HDL_MAX_STACK + 1;
    for (bool found = true, up = false; found; up = !up) {
        found = false;
        for (uint32_t n = 0; n < a->state_count; n++) {
            uint32_t steps;
            const uint32_t i = up ? n : a->state_count - 1 - n, depth = depth_from(a, i, &steps);
            if (!works(m, steps)) return false;
            if (depth >= a->states[i].depth) continue;
            a->states[i].depth = (uint16_t)depth;
            found = true;
        }
    }
    return true;
}

/* Takes out every way to a state that has no end. */
static void prune(hdl_automaton *a) {
    for (uint32_t i = 0; i < a->state_count; i++) {
        hdl_state *s = &a->states[i];
        uint16_t *row = a->table + (uint64_t)i * a->classes;
        bool goes_on = false;
        uint16_t kept = 0;
        for (uint32_t c = 0; c < a->classes; c++) {
            if (row[c] != HDL_NO_STATE && a->states[row[c]].depth > HDL_MAX_STACK) row[c] = HDL_NO_STATE;
            goes_on = goes_on || row[c] != HDL_NO_STATE;
        }
        for (uint32_t k = 0; k < s->call_count; k++) {
            const hdl_call call = a->calls[s->first_call + k];
            if (larger(a->states[call.start].depth + 1u, a->states[call.back].depth) <= HDL_MAX_STACK)
                a->calls[s->first_call + kept++] = call;
        }
        s->call_count = kept;
        s->leaves = s->ends && !goes_on && !kept;
    }
}

/* ---- making and ending ---- */

static bool make(maker *m) {
    hdl_automaton *a = m->out;
    const uint32_t rules = m->grammar->rule_count;
    const hd_allocator *allocator = &a->allocator;
    m->marks = hdl_alloc(allocator, m->net->place_count * sizeof *m->marks);
    m->starts = hdl_alloc(allocator, rules * sizeof *m->starts);
    if (!m->marks || !m->starts) return fail_memory(m);
    find_classes(m->net, a);
    for (uint32_t i = 0; i < rules; i++) m->starts[i] = HDL_NO_STATE;
    for (uint32_t i = 0; i < rules; i++)
        if (m->net->begins[i] != HDL_NO_PLACE && !make_rule(m, i)) return false;
    for (uint32_t i = 0; i < a->call_count; i++) a->calls[i].start = m->starts[a->calls[i].start];
    if (!check_circles(m) || !find_depths(m)) return false;
    prune(a);
    a->start = m->starts[m->grammar->root];
    if (a->states[a->start].depth <= HDL_MAX_STACK) return true;
    hdl_fail(m->error, HD_STATUS_UNSUPPORTED,
             "grammar: no answer in this form ever ends, or it needs characters that the vocabulary cannot spell");
    return false;
}

hd_status hdl_automaton_make(const hdl_grammar *grammar, const hdl_trie *trie, hdl_automaton *out, hd_error *error) {
    hd_error own = { 0 };
    hdl_net net = { 0 };
    maker m = { .grammar = grammar, .net = &net, .out = out, .error = error ? error : &own };
    *out = (hdl_automaton){ .allocator = grammar->allocator };
    const bool ok = !hdl_net_make(grammar, trie, &net, m.error) && make(&m);
    const hd_allocator *allocator = &out->allocator;
    hdl_free(allocator, m.members, m.member_room * sizeof *m.members);
    hdl_free(allocator, m.set_ends, m.set_room * sizeof *m.set_ends);
    hdl_free(allocator, m.reads, m.read_room * sizeof *m.reads);
    hdl_free(allocator, m.active, m.active_room * sizeof *m.active);
    hdl_free(allocator, m.slots, m.slot_count * sizeof *m.slots);
    hdl_free(allocator, m.marks, net.place_count * sizeof *m.marks);
    hdl_free(allocator, m.starts, grammar->rule_count * sizeof *m.starts);
    hdl_net_free(&net);
    return ok ? HD_OK : m.error->status;
}

void hdl_automaton_free(hdl_automaton *a) {
    if (!a->allocator.resize) return;
    hdl_free(&a->allocator, a->table, a->table_room * sizeof *a->table);
    hdl_free(&a->allocator, a->states, a->state_room * sizeof *a->states);
    hdl_free(&a->allocator, a->calls, a->call_room * sizeof *a->calls);
    *a = (hdl_automaton){ 0 };
}
