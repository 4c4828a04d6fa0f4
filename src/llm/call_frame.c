/* call_frame.c: the text around calls as a machine over bytes: the reader's marks (reader.h), followed in every state
 * that they can come to. Where a call begins its rules are read, and behind them nothing but the call's end. */
#include "llm/call_form.h"
#include "llm/reader.h"

enum { MOST_SPACE = 2 }; /* before a call that is required, since a model may go on with space for ever */

/* A state of the machine. */
typedef struct place {
    hdl_marked at;
    bool       called;  /* what is required has come; true where nothing is */
    uint8_t    spaces;  /* before it, since the last mark */
    uint16_t   rule;    /* of a call that begins here; HDL_FRAME_NONE: none */
} place;

typedef struct maker {
    const hd_allocator *allocator;
    hdl_call_form   form;
    hdl_call_choice choice;
    uint16_t  calls, first; /* rules */
    bool      matters[256]; /* bytes of marks, and space; all others do the same */
    place    *places;       /* of the frame's states */
    size_t    room;
    hdl_frame *frame;
} maker;

static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static bool is_same(const place *a, const place *b) {
    return a->rule == b->rule && a->called == b->called && a->spaces == b->spaces && a->at.state == b->at.state &&
           a->at.said == b->at.said &&
           (a->at.state != HDL_CALLED || a->at.before == b->at.before) && a->at.held_count == b->at.held_count &&
           memcmp(a->at.held, b->at.held, a->at.held_count) == 0;
}

/* The state of a place, which is new where no state has it. False: there is no memory. */
static bool state_of(maker *m, const place *p, uint16_t *out) {
    hdl_frame *frame = m->frame;
    for (*out = 0; *out < frame->count; ++*out)
        if (is_same(&m->places[*out], p)) return true;
    if (!hdl_grow(m->allocator, &m->places, &m->room, frame->count + 1, sizeof *m->places) ||
        !hdl_grow(m->allocator, &frame->states, &frame->room, frame->count + 1, sizeof *frame->states))
        return false;
    m->places[frame->count++] = *p;
    return true;
}

/* ---- a byte ---- */

static bool begin_call(const maker *m, place *p, const hdl_mark *mark) {
    const bool again = p->at.state == HDL_CALLED; /* it ends the call before it, too */
    if (m->choice.none || (again && !m->form.open)) return false;
    if (!again) p->at.before = p->at.state;
    p->at.state = HDL_CALLED;
    p->at.said = p->called = true;
    p->rule = mark->text == m->form.first ? m->first : m->calls;
    return true;
}

/* What the held bytes begin with is a mark. False: it may not come. */
static bool apply(const maker *m, place *p, const hdl_mark *mark) {
    if (mark->to == HDL_CALLED) return begin_call(m, p, mark);
    if (p->at.state == HDL_CALLED) p->at.state = p->at.before;
    else if (!p->called && mark->to == HDL_THOUGHT && m->choice.silent) return false;
    else if (!p->called && mark->to == HDL_SAID && (m->form.in_thoughts || p->at.state == HDL_SAID))
        return false; /* a call comes before what is said */
    else p->at.state = mark->to;
    return true;
}

/* Goes on by a byte. False: it may not come. */
static bool read_byte(const maker *m, place *p, uint8_t byte) {
    hdl_marked *at = &p->at;
    at->held[at->held_count++] = byte;
    while (at->held_count > 0 && p->rule == HDL_FRAME_NONE) {
        bool begun;
        const hdl_mark mark = hdl_mark_find(&m->form, at, &begun);
        if (begun) return true;
        if (!mark.text && at->state == HDL_CALLED) return false;
        if (!mark.text && at->state == HDL_SAID && !p->called &&
            (!is_space(at->held[0]) || ++p->spaces > MOST_SPACE))
            return false;
        if (mark.text) p->spaces = 0;
        else if (at->state == HDL_SAID && !is_space(at->held[0])) at->said = true;
        if (mark.text && !apply(m, p, &mark)) return false;
        const size_t gone = mark.text ? strlen(mark.text) : 1;
        at->held_count -= gone;
        memmove(at->held, at->held + gone, at->held_count);
    }
    return true;
}

/* ---- the machine ---- */

static bool put_state(maker *m, uint32_t number) {
    const place from = m->places[number];
    const bool calls = from.rule != HDL_FRAME_NONE;
    const bool outside = !calls && from.at.state != HDL_CALLED;
    hdl_frame_state s = { .rule = from.rule, .back = HDL_FRAME_NONE, .free = outside };
    s.ends = from.called && (outside || (!calls && m->form.open && from.at.held_count == 0));
    uint16_t other = HDL_FRAME_NONE; /* where bytes that do not matter lead */
    bool other_known = false;
    place next = from;
    next.rule = HDL_FRAME_NONE;
    if (calls && !state_of(m, &next, &s.back)) return false;
    for (uint32_t i = 0; i < 256; i++) {
        s.next[i] = other;
        if (!m->matters[i] && other_known) continue;
        next = from;
        s.next[i] = HDL_FRAME_NONE;
        if (!calls && read_byte(m, &next, (uint8_t)i) && !state_of(m, &next, &s.next[i])) return false;
        if (m->matters[i]) continue;
        other = s.next[i];
        other_known = true;
    }
    m->frame->states[number] = s;
    return true;
}

hd_status hdl_call_frame(const hd_allocator *allocator, const hdl_call_form *form, const hdl_grammar *rules,
                         const hdl_call_choice *choice, hdl_frame *out, hd_error *error) {
    const int64_t first = hdl_grammar_rule(rules, "first"), calls = hdl_grammar_rule(rules, "calls");
    maker m = { .allocator = allocator, .form = *form, .choice = *choice, .frame = out };
    m.calls = (uint16_t)calls;
    m.first = (uint16_t)(first < 0 ? calls : first);
    if (form->opens) m.form.first = form->opens;
    *out = (hdl_frame){ 0 };
    for (size_t i = 0; i < HDL_MARKS; i++)
        for (const char *c = hdl_mark_at(&m.form, i).text; c && *c; c++) m.matters[(uint8_t)*c] = true;
    for (uint32_t i = 0; i < 256; i++) m.matters[i] = m.matters[i] || is_space((uint8_t)i);
    uint16_t begin;
    bool ok = state_of(&m, &(place){ .called = !choice->required, .rule = HDL_FRAME_NONE }, &begin);
    for (uint32_t i = 0; i < out->count && ok; i++) ok = put_state(&m, i);
    hdl_free(allocator, m.places, m.room * sizeof *m.places);
    return ok ? HD_OK : hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the form of calls");
}
