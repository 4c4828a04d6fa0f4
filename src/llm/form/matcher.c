/* matcher.c: a walk over the vocabulary's trie with the automaton. What begins alike is read once, and masks are kept:
 * an answer comes back to the same places, inside of a string above all. */
#include "llm/form/matcher.h"

enum { BOTTOM = 0, BUCKETS = 1 << 12, MASKS = 64, MASK_PLACES = 8, MANY_STACKS = 1 << 16, MOST_STEPS = 1 << 25 };

/* What lies on a stack: where to come back to, and the stack below. */
typedef struct stack {
    uint32_t below, next; /* `next`: another one in the same bucket */
    uint16_t back, depth;
} stack;

typedef struct place {
    uint32_t stack;
    uint16_t state;
} place;

/* A mask and the places that it is for. */
typedef struct kept_mask {
    place     places[MASK_PLACES];
    uint32_t  count;             /* 0: none */
    uint64_t  used;
    uint32_t *bits;
} kept_mask;

struct hdl_matcher {
    hd_allocator         allocator;
    const hdl_automaton *automaton;
    const hdl_trie      *trie;
    const hdl_tokenizer *tokenizer;
    stack    *stacks;            /* [BOTTOM] is the empty one */
    uint32_t  stack_count;
    size_t    stack_room;
    uint32_t  buckets[BUCKETS];
    place    *places;            /* where the answer can be; behind them the places of a walk, level by level */
    uint32_t  place_count;       /* of the answer */
    size_t    place_room;
    bool      complete;
    /* of each level of a walk: its last place, and stacks */
    uint32_t  ends[HDL_TRIE_DEPTH + 1], marks[HDL_TRIE_DEPTH + 1];
    place     reached[HDL_MAX_PLACES]; /* in one step, by calls and returns */
    uint64_t  steps;             /* of this call */
    hd_status failed;            /* in this call */
    kept_mask masks[MASKS];
    uint32_t  mask_words;
    uint64_t  clock;
};

/* ---- stacks ---- */

static uint32_t bucket_of(uint32_t below, uint16_t back) {
    const uint64_t mixed = ((uint64_t)below << 16 | back) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 52);
}

/* The stack with `back` on top; BOTTOM after a failure. */
static uint32_t push(hdl_matcher *m, uint32_t below, uint16_t back) {
    if (m->automaton->states[back].leaves && below != BOTTOM) return below; /* it would only be left again */
    uint32_t *bucket = &m->buckets[bucket_of(below, back)];
    for (uint32_t i = *bucket; i; i = m->stacks[i].next)
        if (m->stacks[i].below == below && m->stacks[i].back == back) return i;
    if (m->stack_count >= HDL_MAX_STACKS) m->failed = HD_STATUS_LIMIT;
    else if (!hdl_grow(&m->allocator, &m->stacks, &m->stack_room, m->stack_count + 1, sizeof *m->stacks))
        m->failed = HD_STATUS_OUT_OF_HOST_MEMORY;
    if (m->failed) return BOTTOM;
    m->stacks[m->stack_count] = (stack){ below, *bucket, back, (uint16_t)(m->stacks[below].depth + 1) };
    return *bucket = m->stack_count++;
}

/* Forgets the stacks that were made last. */
static void forget(hdl_matcher *m, uint32_t count) {
    while (m->stack_count > count) {
        const stack *last = &m->stacks[--m->stack_count];
        m->buckets[bucket_of(last->below, last->back)] = last->next;
    }
}

/* ---- a byte ---- */

/* Adds a place to those from `from` on. A state that can only be left is left at once. */
static void add_place(hdl_matcher *m, uint32_t from, uint32_t *count, uint32_t stack_number, uint16_t state) {
    while (m->automaton->states[state].leaves && stack_number != BOTTOM) {
        state = m->stacks[stack_number].back;
        stack_number = m->stacks[stack_number].below;
    }
    for (uint32_t i = from; i < *count; i++)
        if (m->places[i].state == state && m->places[i].stack == stack_number) return;
    m->steps += *count - from + 1;
    if (*count - from >= HDL_MAX_PLACES) m->failed = HD_STATUS_LIMIT;
    else if (!hdl_grow(&m->allocator, &m->places, &m->place_room, *count + 1, sizeof *m->places))
        m->failed = HD_STATUS_OUT_OF_HOST_MEMORY;
    else m->places[(*count)++] = (place){ stack_number, state };
}

static void reach(hdl_matcher *m, uint32_t *count, uint32_t stack_number, uint16_t state) {
    if (m->stacks[stack_number].depth + m->automaton->states[state].depth > (int)HDL_MAX_STACK) return;
    for (uint32_t i = 0; i < *count; i++)
        if (m->reached[i].state == state && m->reached[i].stack == stack_number) return;
    m->steps += *count + 1;
    if (*count >= HDL_MAX_PLACES) m->failed = HD_STATUS_LIMIT;
    else m->reached[(*count)++] = (place){ stack_number, state };
}

/* Where places reached[0 .. count-1] come to by calls and returns; whether that is the end of all. */
static bool close(hdl_matcher *m, uint32_t *count) {
    const hdl_automaton *a = m->automaton;
    bool complete = false;
    for (uint32_t i = 0; i < *count && !m->failed; i++) {
        const place p = m->reached[i];
        const hdl_state *s = &a->states[p.state];
        if (s->ends && p.stack == BOTTOM) complete = true;
        else if (s->ends) reach(m, count, m->stacks[p.stack].below, m->stacks[p.stack].back);
        for (uint32_t k = 0; k < s->call_count && !m->failed; k++) {
            const hdl_call call = a->calls[s->first_call + k];
            if (m->stacks[p.stack].depth + a->states[call.back].depth > (int)HDL_MAX_STACK) continue;
            const uint32_t inner = push(m, p.stack, call.back);
            if (!m->failed) reach(m, count, inner, call.start);
        }
    }
    return complete;
}

/* The places behind `to`, which those from `from` to `to` come to by a byte. */
static uint32_t read_byte(hdl_matcher *m, uint32_t from, uint32_t to, uint8_t byte) {
    const hdl_automaton *a = m->automaton;
    const uint32_t class_number = a->class_of[byte];
    uint32_t count = to, reached = 0;
    for (uint32_t i = from; i < to && !m->failed; i++) reach(m, &reached, m->places[i].stack, m->places[i].state);
    close(m, &reached);
    for (uint32_t i = 0; i < reached && !m->failed; i++) {
        const place p = m->reached[i];
        const uint16_t next = a->table[(uint64_t)p.state * a->classes + class_number];
        if (next != HDL_NO_STATE && m->stacks[p.stack].depth + a->states[next].depth <= (int)HDL_MAX_STACK)
            add_place(m, to, &count, p.stack, next);
    }
    if (m->steps > MOST_STEPS) m->failed = HD_STATUS_LIMIT;
    return count;
}

/* The same where it is simple, as it is most often: one place that can neither call nor return, and the next one is not
 * left at once. False, and nothing was done, where it is not. */
static inline bool read_simply(hdl_matcher *m, uint32_t from, uint32_t to, uint8_t byte, uint32_t *out_end) {
    const hdl_automaton *a = m->automaton;
    const place p = m->places[from];
    const hdl_state *s = &a->states[p.state];
    if (to - from != 1 || s->call_count || (s->ends && p.stack != BOTTOM) || to >= m->place_room) return false;
    const uint16_t next = a->table[(uint64_t)p.state * a->classes + a->class_of[byte]];
    *out_end = to;
    if (next == HDL_NO_STATE) return true;
    if (a->states[next].leaves || m->stacks[p.stack].depth + a->states[next].depth > (int)HDL_MAX_STACK) return false;
    m->places[to] = (place){ p.stack, next };
    *out_end = to + 1;
    return true;
}

/* Whether a token may end where places from .. to-1 are. */
static bool may_end(const hdl_matcher *m, uint32_t from, uint32_t to) {
    return to > from && (m->trie->ends_inside || !m->automaton->states[m->places[from].state].inside);
}

static hd_status tell(hdl_matcher *m, hd_error *error) {
    const hd_status failed = m->failed;
    m->steps = 0;
    m->failed = HD_OK;
    if (failed == HD_STATUS_LIMIT)
        hdl_fail(error, failed, "grammar: too much is possible at once; make choices that begin alike fewer");
    else if (failed) hdl_fail(error, failed, "grammar: no memory");
    return failed;
}

/* ---- from token to token ---- */

/* Closes the answer's places to see whether it may end. */
static void find_complete(hdl_matcher *m) {
    const uint32_t stacks = m->stack_count;
    uint32_t reached = 0;
    for (uint32_t i = 0; i < m->place_count && !m->failed; i++)
        reach(m, &reached, m->places[i].stack, m->places[i].state);
    m->complete = close(m, &reached);
    forget(m, stacks);
}

void hdl_matcher_restart(hdl_matcher *m) {
    m->place_count = 1;
    m->places[0] = (place){ BOTTOM, m->automaton->start };
    find_complete(m);
    m->failed = HD_OK; /* what is too much here is too much for the first token too, and told there */
}

/* Whether the answer is in the text of a frame, where tokens that no reader sees may come. */
static bool is_free(const hdl_matcher *m) {
    return m->place_count == 1 && m->automaton->states[m->places[0].state].free;
}
static bool is_hidden(const hdl_matcher *m, int32_t token) {
    return token >= 0 && (uint32_t)token < m->trie->tokens && m->trie->same[token] == HDL_TOKEN_HIDDEN;
}

/* Reads a text's bytes; its places are from *out_from up to the result. */
static uint32_t read_text(hdl_matcher *m, hdl_span text, uint32_t *out_from) {
    uint32_t from = 0, to = m->place_count;
    for (uint64_t i = 0; i < text.count && to > from && !m->failed; i++) {
        const uint32_t next = read_byte(m, from, to, text.bytes[i]);
        from = to;
        to = next;
    }
    *out_from = from;
    return to;
}

hd_status hdl_matcher_allows(hdl_matcher *m, int32_t token, bool *out_allows, hd_error *error) {
    const uint32_t stacks = m->stack_count;
    uint32_t from;
    *out_allows = is_hidden(m, token) && is_free(m);
    if (!hdl_trie_has(m->trie, token)) return HD_OK;
    const uint32_t to = read_text(m, hdl_token_text(m->tokenizer, token), &from);
    *out_allows = !m->failed && may_end(m, from, to);
    forget(m, stacks);
    return tell(m, error);
}

/* Where many stacks were made, only those stay that the answer's places have. */
static void tidy(hdl_matcher *m) {
    static const stack bottom;
    if (m->stack_count < MANY_STACKS) return;
    uint16_t backs[HDL_MAX_STACK + 1];
    stack *old = m->stacks;
    const size_t old_room = m->stack_room;
    stack *fresh = NULL;
    size_t room = 0;
    if (!hdl_grow(&m->allocator, &fresh, &room, 1, sizeof *fresh)) return; /* another time */
    fresh[0] = bottom;
    m->stacks = fresh;
    m->stack_room = room;
    m->stack_count = 1;
    memset(m->buckets, 0, sizeof m->buckets);
    for (uint32_t i = 0; i < m->place_count; i++) {
        uint32_t depth = 0, kept = BOTTOM;
        for (uint32_t s = m->places[i].stack; s != BOTTOM && depth <= HDL_MAX_STACK; s = old[s].below)
            backs[depth++] = old[s].back;
        while (depth) kept = push(m, kept, backs[--depth]);
        m->places[i].stack = kept;
    }
    hdl_free(&m->allocator, old, old_room * sizeof *old);
    for (uint32_t i = 0; i < MASKS; i++) m->masks[i].count = 0;
}

hd_status hdl_matcher_read(hdl_matcher *m, hdl_span text, hd_error *error) {
    const uint32_t stacks = m->stack_count;
    uint32_t from, to = read_text(m, text, &from);
    if (m->failed || !may_end(m, from, to)) {
        forget(m, stacks);
        const hd_status status = tell(m, error);
        return status ? status : hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "grammar: this may not come next");
    }
    memmove(m->places, m->places + from, (to - from) * sizeof *m->places);
    m->place_count = to - from;
    tidy(m);
    if (!m->failed) find_complete(m);
    return tell(m, error);
}

hd_status hdl_matcher_accept(hdl_matcher *m, int32_t token, hd_error *error) {
    hd_error own = { 0 };
    hd_status status = HD_STATUS_INVALID_ARGUMENT;
    if (hdl_trie_has(m->trie, token)) status = hdl_matcher_read(m, hdl_token_text(m->tokenizer, token), &own);
    else if (is_hidden(m, token) && is_free(m)) return HD_OK;
    if (status == HD_STATUS_INVALID_ARGUMENT)
        return hdl_fail(error, status, "grammar: token %d may not come next", token);
    return status ? hdl_fail(error, status, "%s", own.text) : HD_OK;
}

bool hdl_matcher_complete(const hdl_matcher *m) { return m->complete; }

/* ---- masks ---- */

static void allow(const hdl_matcher *m, uint32_t *bits, int32_t token) {
    for (; token != HDL_NO_TOKEN; token = m->trie->same[token])
        bits[(uint32_t)token / 32] |= UINT32_C(1) << (uint32_t)token % 32;
}

static void walk(hdl_matcher *m, uint32_t *bits) {
    const hdl_trie *trie = m->trie;
    m->ends[0] = m->place_count;
    m->marks[0] = m->stack_count;
    for (uint32_t i = 0; i < trie->count && !m->failed;) {
        const hdl_trie_node node = trie->nodes[i];
        const uint32_t level = node.depth, from = level ? m->ends[level - 1] : 0, to = m->ends[level];
        uint32_t end;
        forget(m, m->marks[level]);
        if (!read_simply(m, from, to, node.byte, &end)) end = read_byte(m, from, to, node.byte);
        m->ends[level + 1] = end;
        m->marks[level + 1] = m->stack_count;
        if (node.token != HDL_NO_TOKEN && may_end(m, to, end)) allow(m, bits, node.token);
        i = end > to ? i + 1 : node.skip;
    }
    forget(m, m->marks[0]);
}

/* The mask that is kept for the answer's places, or the one that was used longest ago, of no count. */
static kept_mask *find_mask(hdl_matcher *m) {
    kept_mask *oldest = &m->masks[0];
    for (uint32_t i = 0; i < MASKS; i++) {
        kept_mask *k = &m->masks[i];
        bool same = k->count == m->place_count;
        for (uint32_t p = 0; p < k->count && same; p++)
            same = k->places[p].state == m->places[p].state && k->places[p].stack == m->places[p].stack;
        if (same) return k;
        if (k->used < oldest->used) oldest = k;
    }
    oldest->count = 0;
    return oldest;
}

hd_status hdl_matcher_mask(hdl_matcher *m, const uint32_t **out_bits, hd_error *error) {
    kept_mask *mask = find_mask(m);
    mask->used = ++m->clock;
    if (!mask->bits) mask->bits = hdl_alloc(&m->allocator, m->mask_words * sizeof *mask->bits);
    if (!mask->bits) m->failed = HD_STATUS_OUT_OF_HOST_MEMORY;
    if (!mask->count && !m->failed) {
        memset(mask->bits, 0, m->mask_words * sizeof *mask->bits);
        walk(m, mask->bits);
        for (uint32_t i = 0; i < m->trie->tokens && is_free(m); i++)
            if (m->trie->same[i] == HDL_TOKEN_HIDDEN) mask->bits[i / 32] |= UINT32_C(1) << i % 32;
        if (!m->failed && m->place_count <= MASK_PLACES) {
            mask->count = m->place_count;
            memcpy(mask->places, m->places, m->place_count * sizeof *m->places);
        }
    }
    *out_bits = mask->bits;
    return tell(m, error);
}

/* ---- making and ending ---- */

hd_status hdl_matcher_create(const hd_allocator *allocator, const hdl_automaton *automaton, const hdl_trie *trie,
                             const hdl_tokenizer *tokenizer, hdl_matcher **out, hd_error *error) {
    *out = NULL;
    hdl_matcher *m = hdl_alloc(allocator, sizeof *m);
    bool made = m != NULL;
    if (made) {
        m->allocator = *allocator;
        m->automaton = automaton;
        m->trie = trie;
        m->tokenizer = tokenizer;
        m->mask_words = (trie->tokens + 31) / 32;
        made = hdl_grow(allocator, &m->stacks, &m->stack_room, 1, sizeof *m->stacks) &&
               hdl_grow(allocator, &m->places, &m->place_room, 1, sizeof *m->places);
    }
    if (!made) {
        hdl_matcher_destroy(m);
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory");
    }
    m->stacks[BOTTOM] = (stack){ 0 };
    m->stack_count = 1;
    hdl_matcher_restart(m);
    *out = m;
    return HD_OK;
}

void hdl_matcher_destroy(hdl_matcher *m) {
    if (!m) return;
    const hd_allocator allocator = m->allocator;
    for (uint32_t i = 0; i < MASKS; i++)
        hdl_free(&allocator, m->masks[i].bits, m->mask_words * sizeof *m->masks[i].bits);
    hdl_free(&allocator, m->stacks, m->stack_room * sizeof *m->stacks);
    hdl_free(&allocator, m->places, m->place_room * sizeof *m->places);
    hdl_free(&allocator, m, sizeof *m);
}
