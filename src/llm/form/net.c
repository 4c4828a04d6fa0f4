/* net.c: rules as graphs. Characters become their bytes in UTF-8. Short rules without a loop stand in place of their
 * names, so that what is asked of a token in a loop is asked of one state. */
#include "llm/form/automaton.h"

enum { SHORT_RULE = 24, MOST_COPIES = 64 };

typedef struct maker {
    const hdl_grammar *grammar;
    const hdl_trie    *trie;
    hdl_net           *net;
    uint32_t          *waiting;  /* rules that were called and are not there yet */
    uint32_t           waiting_count;
    uint8_t           *lengths;  /* of rules that may stand in place of their names; 0: none of these */
    uint32_t           copies;   /* that the repetitions around make of what is being put */
    uint32_t           work;     /* nodes put so far */
    hd_error          *error;
} maker;

static bool fail_long(maker *m) {
    return hdl_fail(m->error, HD_STATUS_LIMIT, "grammar: it is too large: %u states and edges are allowed",
                    HDL_MAX_EDGES),
           false;
}
static bool fail_memory(maker *m) {
    return hdl_fail(m->error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory"), false;
}

static bool add_place(maker *m, uint32_t flags, uint32_t *out) {
    hdl_net *net = m->net;
    const uint32_t count = net->place_count + 1;
    if (count > HDL_MAX_EDGES) return fail_long(m);
    if (!hdl_grow(&net->allocator, &net->first_edges, &net->place_room, count, sizeof *net->first_edges) ||
        !hdl_grow(&net->allocator, &net->first_free, &net->free_room, count, sizeof *net->first_free) ||
        !hdl_grow(&net->allocator, &net->flags, &net->flag_room, count, sizeof *net->flags)) return fail_memory(m);
    net->first_edges[net->place_count] = net->first_free[net->place_count] = HDL_NO_EDGE;
    net->flags[net->place_count] = (uint8_t)flags;
    *out = net->place_count++;
    return true;
}

static bool add_edge(maker *m, uint32_t from, hdl_edge edge) {
    hdl_net *net = m->net;
    if (net->edge_count >= HDL_MAX_EDGES) return fail_long(m);
    if (!hdl_grow(&net->allocator, &net->edges, &net->edge_room, net->edge_count + 1, sizeof *net->edges))
        return fail_memory(m);
    uint32_t *first = edge.kind == HDL_EDGE_FREE ? &net->first_free[from] : &net->first_edges[from];
    edge.next = *first;
    net->edges[net->edge_count] = edge;
    *first = net->edge_count++;
    return true;
}
static bool add_free(maker *m, uint32_t from, uint32_t to) {
    return add_edge(m, from, (hdl_edge){ .to = to, .kind = HDL_EDGE_FREE });
}
static bool add_bytes(maker *m, uint32_t from, uint32_t to, uint32_t low, uint32_t high) {
    return add_edge(m, from,
                    (hdl_edge){ .to = to, .kind = HDL_EDGE_BYTES, .low = (uint8_t)low, .high = (uint8_t)high });
}

/* ---- characters ---- */

/* The way to the end of a character. */
typedef struct ending {
    uint32_t to;
    uint32_t any[4];  /* the place from which so many free continuation bytes lead there; HDL_NO_PLACE: not made yet */
} ending;

/* The place from which any `count` continuation bytes lead to the end. */
static bool any_bytes(maker *m, ending *e, uint32_t count, uint32_t *out) {
    if (count == 0) return *out = e->to, true;
    if (e->any[count] == HDL_NO_PLACE) {
        uint32_t behind, place;
        if (!any_bytes(m, e, count - 1, &behind) || !add_place(m, HDL_PLACE_INSIDE, &place) ||
            !add_bytes(m, place, behind, 0x80, 0xBF))
            return false;
        e->any[count] = place;
    }
    return *out = e->any[count], true;
}

/* `more` continuation bytes whose bits make a number from low to high. */
static bool put_continuation(maker *m, uint32_t from, ending *e, uint32_t more, uint32_t low, uint32_t high);

/* One byte, `low` to `high` above the bits of those behind it, with `mark` set. */
static bool put_byte(maker *m, uint32_t from, ending *e, uint32_t mark, uint32_t more, uint32_t low, uint32_t high) {
    const uint32_t bits = 6 * more, rest = ((uint32_t)1 << bits) - 1;
    while (low <= high) {
        uint32_t first = low >> bits, last = high >> bits, place;
        if (more == 0 || ((low & rest) == 0 && (high & rest) == rest)) { /* whole blocks */
            return any_bytes(m, e, more, &place) && add_bytes(m, from, place, mark | first, mark | last);
        }
        if ((low & rest) == 0 && first < last) { /* whole blocks, and the part of one behind them */
            if (!any_bytes(m, e, more, &place) || !add_bytes(m, from, place, mark | first, mark | (last - 1)))
                return false;
            low = last << bits;
            continue;
        }
        const uint32_t end = first == last ? high : (first << bits | rest);
        if (!add_place(m, HDL_PLACE_INSIDE, &place) || !add_bytes(m, from, place, mark | first, mark | first) ||
            !put_continuation(m, place, e, more - 1, low & rest, end & rest)) return false;
        low = end + 1;
    }
    return true;
}

static bool put_continuation(maker *m, uint32_t from, ending *e, uint32_t more, uint32_t low, uint32_t high) {
    return put_byte(m, from, e, 0x80, more, low, high);
}

static bool put_range(maker *m, uint32_t from, ending *e, uint32_t low, uint32_t high) {
    static const struct { uint32_t low, high, mark, more;
    } lengths[] = {
        { 0, 0x7F, 0, 0 },
        { 0x80, 0x7FF, 0xC0, 1 },
        { 0x800, 0xD7FF, 0xE0, 2 },
        { 0xE000, 0xFFFF, 0xE0, 2 },
        { 0x10000, HDL_LAST_CHARACTER, 0xF0, 3 },
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const uint32_t first = low > lengths[i].low ? low : lengths[i].low,
                       last = high < lengths[i].high ? high : lengths[i].high;
        if (first <= last && !put_byte(m, from, e, lengths[i].mark, lengths[i].more, first, last)) return false;
    }
    return true;
}

/* Those of the node's characters that can be said. */
static bool put_characters(maker *m, const hdl_node *node, uint32_t from, uint32_t *out) {
    const hdl_range *ranges = node->count ? &m->grammar->ranges[node->first] : NULL;
    ending e = { .any = { HDL_NO_PLACE, HDL_NO_PLACE, HDL_NO_PLACE, HDL_NO_PLACE } };
    if (!add_place(m, 0, &e.to)) return false;
    *out = e.to;
    for (uint32_t i = 0, k = 0; i < node->count; i++) {
        if (m->trie->spells_all) {
            if (!put_range(m, from, &e, ranges[i].low, ranges[i].high)) return false;
            continue;
        }
        const hdl_range *spelled = m->trie->spelled;
        while (k < m->trie->spelled_count && spelled[k].high < ranges[i].low) k++;
        for (uint32_t n = k; n < m->trie->spelled_count && spelled[n].low <= ranges[i].high; n++) {
            const uint32_t low = spelled[n].low > ranges[i].low ? spelled[n].low : ranges[i].low;
            const uint32_t high = spelled[n].high < ranges[i].high ? spelled[n].high : ranges[i].high;
            if (!put_range(m, from, &e, low, high)) return false;
        }
    }
    return true;
}

/* ---- nodes ---- */

static bool put(maker *m, uint32_t node, uint32_t from, uint32_t *out);

/* A loop that may end after `node` any number of times. */
static bool put_loop(maker *m, uint32_t node, uint32_t from, uint32_t *out) {
    uint32_t loop, end;
    if (!add_place(m, 0, &loop) || !add_free(m, from, loop) || !put(m, node, loop, &end) || !add_free(m, end, loop))
        return false;
    return add_place(m, 0, out) && add_free(m, loop, *out);
}

static bool put_repeat(maker *m, const hdl_node *node, uint32_t from, uint32_t *out) {
    const uint32_t around = m->copies, least = node->count, inside = node->first;
    const uint32_t optional = node->most == HDL_ENDLESS ? 0 : node->most - least;
    const uint64_t copies = (uint64_t)around * (least + optional + 1);
    m->copies = copies < HDL_MAX_EDGES ? (uint32_t)copies : HDL_MAX_EDGES;
    bool ok = true;
    for (uint32_t i = 0; i < least && ok; i++) ok = put(m, inside, from, &from);
    if (ok && node->most == HDL_ENDLESS) ok = put_loop(m, inside, from, out);
    else if (ok) ok = add_place(m, 0, out) && add_free(m, from, *out);
    for (uint32_t i = 0; i < optional && ok; i++) ok = put(m, inside, from, &from) && add_free(m, from, *out);
    m->copies = around;
    return ok;
}

static bool put_call(maker *m, uint32_t rule, uint32_t from, uint32_t *out) {
    if (m->lengths[rule] && m->copies <= MOST_COPIES) return put(m, m->grammar->rules[rule].node, from, out);
    if (m->net->begins[rule] == HDL_NO_PLACE) {
        if (!add_place(m, 0, &m->net->begins[rule])) return false;
        m->waiting[m->waiting_count++] = rule;
    }
    return add_place(m, 0, out) && add_edge(m, from, (hdl_edge){ .to = *out, .rule = rule, .kind = HDL_EDGE_CALL });
}

static bool put_choice(maker *m, const hdl_node *node, uint32_t from, uint32_t *out) {
    if (!add_place(m, 0, out)) return false;
    for (uint32_t i = node->first; i; i = m->grammar->nodes[i].next) {
        uint32_t end;
        if (!put(m, i, from, &end) || !add_free(m, end, *out)) return false;
    }
    return true;
}

/* The bytes that one state of a frame reads, and what begins and ends there. */
static bool put_frame_state(maker *m, const hdl_frame_state *s, uint32_t states, uint32_t from, uint32_t end) {
    for (uint32_t low = 0, high; low < 256; low = high) {
        for (high = low + 1; high < 256 && s->next[high] == s->next[low];) high++;
        if (s->next[low] != HDL_FRAME_NONE && !add_bytes(m, from, states + s->next[low], low, high - 1)) return false;
    }
    uint32_t behind;
    if (s->rule != HDL_FRAME_NONE && (!put_call(m, s->rule, from, &behind) || !add_free(m, behind, states + s->back)))
        return false;
    return !s->ends || add_free(m, from, end);
}

static bool put_frame(maker *m, uint32_t from, uint32_t *out) {
    const hdl_frame *frame = m->grammar->frame;
    const uint32_t states = m->net->place_count;
    uint32_t place;
    for (uint32_t i = 0; i < frame->count; i++)
        if (!add_place(m, frame->states[i].free ? HDL_PLACE_FREE : 0, &place)) return false;
    if (!add_place(m, 0, out) || !add_free(m, from, states)) return false;
    for (uint32_t i = 0; i < frame->count; i++)
        if (!put_frame_state(m, &frame->states[i], states, states + i, *out)) return false;
    return true;
}

static bool put(maker *m, uint32_t number, uint32_t from, uint32_t *out) {
    const hdl_node *node = &m->grammar->nodes[number];
    if (++m->work > HDL_MAX_EDGES) return fail_long(m);
    switch (node->kind) {
    case HDL_NODE_CHARACTERS: return put_characters(m, node, from, out);
    case HDL_NODE_CHOICE: return put_choice(m, node, from, out);
    case HDL_NODE_REPEAT: return put_repeat(m, node, from, out);
    case HDL_NODE_RULE: return put_call(m, node->first, from, out);
    case HDL_NODE_FRAME: return put_frame(m, from, out);
    case HDL_NODE_SEQUENCE: break;
    }
    *out = from;
    for (uint32_t i = node->first; i; i = m->grammar->nodes[i].next)
        if (!put(m, i, *out, out)) return false;
    return true;
}

/* ---- rules ---- */

/* The number of characters in a node with the rules that it names; above SHORT_RULE: too many, or a loop. */
static uint32_t length_of(const maker *m, uint32_t number) {
    const hdl_node *node = &m->grammar->nodes[number];
    uint64_t length = 1;
    if (node->kind == HDL_NODE_CHARACTERS) return 1;
    if (node->kind == HDL_NODE_FRAME) return SHORT_RULE + 1;
    if (node->kind == HDL_NODE_RULE) return m->lengths[node->first] ? m->lengths[node->first] : SHORT_RULE + 1;
    if (node->kind == HDL_NODE_REPEAT) {
        length = (uint64_t)length_of(m, node->first) * node->most;
        return node->most == HDL_ENDLESS || length > SHORT_RULE ? SHORT_RULE + 1 : (uint32_t)length;
    }
    for (uint32_t i = node->first; i && length <= SHORT_RULE; i = m->grammar->nodes[i].next) length += length_of(m, i);
    return (uint32_t)length;
}

/* Rules whose names are all short make short rules: found by going over them until nothing is new, a few times at
 * most. */
static void find_short(maker *m) {
    bool found = true;
    for (uint32_t round = 0; found && round < 8; round++) {
        found = false;
        for (uint32_t i = 0; i < m->grammar->rule_count; i++) {
            const uint32_t length = m->lengths[i] ? 0 : length_of(m, m->grammar->rules[i].node);
            if (!length || length > SHORT_RULE) continue;
            m->lengths[i] = (uint8_t)length;
            found = true;
        }
    }
}

static bool put_rules(maker *m) {
    hdl_net *net = m->net;
    const uint32_t root = m->grammar->root;
    for (uint32_t i = 0; i < net->rule_count; i++) net->begins[i] = net->ends[i] = HDL_NO_PLACE;
    net->edge_count = 1;
    if (!hdl_grow(&net->allocator, &net->edges, &net->edge_room, 1, sizeof *net->edges)) return fail_memory(m);
    if (!add_place(m, 0, &net->begins[root])) return false;
    m->waiting[m->waiting_count++] = root;
    while (m->waiting_count) {
        const uint32_t rule = m->waiting[--m->waiting_count];
        m->copies = 1;
        if (!put(m, m->grammar->rules[rule].node, net->begins[rule], &net->ends[rule])) return false;
    }
    return true;
}

hd_status hdl_net_make(const hdl_grammar *grammar, const hdl_trie *trie, hdl_net *net, hd_error *error) {
    hd_error own = { 0 };
    const hd_allocator *allocator = &grammar->allocator;
    const uint32_t rules = grammar->rule_count;
    maker m = { .grammar = grammar, .trie = trie, .net = net, .error = error ? error : &own };
    *net = (hdl_net){ .allocator = *allocator, .rule_count = rules };
    net->begins = hdl_alloc(allocator, rules * sizeof *net->begins);
    net->ends = hdl_alloc(allocator, rules * sizeof *net->ends);
    m.waiting = hdl_alloc(allocator, rules * sizeof *m.waiting);
    m.lengths = hdl_alloc(allocator, rules);
    bool ok = net->begins && net->ends && m.waiting && m.lengths;
    if (!ok) fail_memory(&m);
    if (ok) find_short(&m);
    ok = ok && put_rules(&m);
    hdl_free(allocator, m.waiting, rules * sizeof *m.waiting);
    hdl_free(allocator, m.lengths, rules);
    return ok ? HD_OK : m.error->status;
}

void hdl_net_free(hdl_net *net) {
    if (!net->allocator.resize) return;
    hdl_free(&net->allocator, net->edges, net->edge_room * sizeof *net->edges);
    hdl_free(&net->allocator, net->first_edges, net->place_room * sizeof *net->first_edges);
    hdl_free(&net->allocator, net->first_free, net->free_room * sizeof *net->first_free);
    hdl_free(&net->allocator, net->flags, net->flag_room * sizeof *net->flags);
    hdl_free(&net->allocator, net->begins, net->rule_count * sizeof *net->begins);
    hdl_free(&net->allocator, net->ends, net->rule_count * sizeof *net->ends);
    *net = (hdl_net){ 0 };
}
