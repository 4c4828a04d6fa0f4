/* draft.c: guesses by looking the last tokens up in the text before them, and steps that compute guesses. */
#include "llm/draft.h"
#include "llm/session.h"

/* What a size of step may lose before it rests, in times of a plain token: a few steps of which nothing comes are no
 * reason yet. For how many steps it rests, so that it costs a sixteenth of their time; twice as many each time that it
 * loses again. */
enum { STAKE = 4, REST = 64 };

/* ---- guesses ---- */

hdl_drafter *hdl_drafter_create(const hd_allocator *allocator, uint32_t context) {
    hdl_drafter *d = hdl_alloc(allocator, sizeof *d);
    if (!d) return NULL;
    *d = (hdl_drafter){ .allocator = *allocator, .room = context + HDL_DRAFT_ROWS, .size = HDL_DRAFT_SIZES };
    for (uint32_t i = 0; i < HDL_DRAFT_SIZES; i++) d->sizes[i].rest = REST;
    d->text = hdl_alloc(allocator, d->room * sizeof *d->text);
    if (d->text) return d;
    hdl_drafter_destroy(d);
    return NULL;
}

void hdl_drafter_destroy(hdl_drafter *d) {
    if (!d) return;
    const hd_allocator allocator = d->allocator;
    hdl_free(&allocator, d->text, d->room * sizeof *d->text);
    hdl_free(&allocator, d, sizeof *d);
}

/* Where the text goes on behind the longest earlier run of tokens that it ends with, of equally long ones behind the
 * last; 0: there is none of two tokens. */
static uint32_t find(const int32_t *text, uint32_t count) {
    enum { LEAST = 2, MOST = 16 }; /* one token alone says little; longer runs are as good as the longest */
    uint32_t longest = LEAST - 1, found = 0;
    for (uint32_t end = count - 1; end >= LEAST && longest < MOST; end--) {
        uint32_t same = 0;
        while (same < MOST && same < end && text[end - 1 - same] == text[count - 1 - same]) same++;
        if (same <= longest) continue;
        longest = same;
        found = end;
    }
    return found;
}

uint32_t hdl_drafter_guess(hdl_drafter *d, uint32_t most, int32_t *out_tokens) {
    for (uint32_t i = 0; i < HDL_DRAFT_SIZES; i++)
        if (d->sizes[i].resting) d->sizes[i].resting--;
    uint32_t size = HDL_DRAFT_SIZES;
    while (size > 0 && (d->sizes[size - 1].resting || most < (1u << size) - 1)) size--;
    /* what a plain step takes has to be known first */
    const uint32_t from = d->plain_count && size && d->count > 1 ? find(d->text, d->count) : 0;
    if (!from) return 0;
    const uint32_t count = (1u << size) - 1;
    for (uint32_t i = 0; i < count; i++) { /* a run that reaches the end goes on with what it is itself */
        out_tokens[i] = from + i < d->count ? d->text[from + i] : out_tokens[from + i - d->count];
        if (out_tokens[i] < 0) return 0; /* an image comes there */
    }
    return count;
}

/* ---- what they save ---- */

static uint32_t size_of(uint32_t rows) { return rows == 2 ? 0 : rows == 4 ? 1 : 2; }

void hdl_drafter_ran(hdl_drafter *d, uint32_t rows, uint64_t ns) {
    d->size = HDL_DRAFT_SIZES;
    if (rows > 1) {
        d->size = size_of(rows);
        d->step_ns = ns;
    } else if (ns) {
        if (d->plain_count == REST) d->plain_count /= 2, d->plain_ns /= 2; /* it grows with the context */
        d->plain_ns += (double)ns;
        d->plain_count++;
    }
}

void hdl_drafter_gave(hdl_drafter *d, uint32_t tokens) {
    if (d->size == HDL_DRAFT_SIZES || !d->step_ns || !d->plain_count) return;
    hdl_draft_size *size = &d->sizes[d->size];
    size->saved += tokens - (double)d->step_ns * (double)d->plain_count / d->plain_ns;
    d->size = HDL_DRAFT_SIZES;
    if (size->saved > STAKE) { /* what was saved long ago excuses nothing */
        size->saved = STAKE;
        size->rest = REST;
    }
    if (size->saved >= -STAKE) return;
    size->saved = 0;
    size->resting = size->rest;
    size->rest *= 2;
}

/* ---- steps ---- */

/* How many guesses stand in the token's own page, which is taken with it, and in the context. A step has then the
 * bucket that each of its rows would have alone. */
static uint32_t room_of(const hd_session *session, uint32_t position) {
    const uint32_t in_page = HDL_PAGE_TOKENS - position % HDL_PAGE_TOKENS,
                   in_context = session->layout.context - position;
    return (in_page < in_context ? in_page : in_context) - 1;
}

hd_status hdl_session_feed_guesses(hd_session *session, uint32_t sequence, const int32_t *tokens, uint32_t count) {
    hdl_sequence *s = &session->sequences[sequence];
    const uint32_t position = s->position;
    const int32_t past = (int32_t)position;
    hdl_drafted d = { .sequence = sequence, .position = position, .count = count, .taken = 1 };
    const uint64_t began = hdl_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        d.tokens[i] = session->tokens[i] = tokens[i];
        session->positions[i] = past + (int32_t)i;
    }
    const uint32_t bucket = hdl_layout_bucket(&session->layout, position);
    const hdl_size size = hdl_layout_draft(&session->layout, count, bucket, session->candidates);
    hdl_pages_take(&session->pages, sequence, position, 1);
    hdl_pages_note(&session->pages, sequence, position, tokens, 1);
    hd_status status = hdl_session_run(session, size, &sequence, &past, NULL);
    if (!status) status = hdl_session_read_best(session, d.best, count);
    if (status) {
        hdl_pages_give(&session->pages, sequence, position + 1, position);
        return status;
    }
    *s = (hdl_sequence){ position + 1, d.best[0], 0, session->run };
    d.run = session->run;
    session->drafted = d;
    session->stats.decode_tokens++;
    session->stats.decode_ns += hdl_now_ns() - began;
    session->stats.draft_steps++;
    session->stats.drafted_tokens += count - 1;
    return HD_OK;
}

hd_status hdl_session_feed_drafted(hd_session *session, uint32_t sequence, int32_t token, uint32_t most) {
    hdl_drafter *drafter = session->drafter;
    const uint32_t position = session->sequences[sequence].position, plans = session->stage.plan_count;
    if (!drafter || !hdl_session_has_room(session, sequence)) return hd_session_feed(session, sequence, &token, 1);
    hdl_drafter_gave(drafter, session->drafted.taken);
    session->drafted = (hdl_drafted){ 0 };
    hdl_pages_tokens(&session->pages, sequence, position, drafter->text);
    drafter->text[position] = token;
    drafter->count = position + 1;
    int32_t tokens[HDL_DRAFT_ROWS] = { token };
    const uint32_t room = room_of(session, position);
    const uint32_t rows = 1 + hdl_drafter_guess(drafter, most < room ? most : room, tokens + 1);
    const uint64_t recorded = session->stats.recorded, began = hdl_now_ns();
    const hd_status status = rows == 1 ? hd_session_feed(session, sequence, &token, 1)
                                       : hdl_session_feed_guesses(session, sequence, tokens, rows);
    const uint64_t took = hdl_now_ns() - began;
    /* a step for which a plan or a recording was made is not what such steps take */
    const bool usual = plans == session->stage.plan_count && recorded == session->stats.recorded;
    if (!status) hdl_drafter_ran(drafter, rows, usual ? took : 0);
    return status;
}

bool hdl_session_accept(hd_session *session, uint32_t sequence, int32_t token) {
    hdl_drafted *d = &session->drafted;
    hdl_sequence *s = &session->sequences[sequence];
    if (d->taken == d->count || d->sequence != sequence || d->run != session->run || s->run != session->run)
        return false;
    if (s->position != d->position + d->taken || s->best == HDL_NO_TOKEN || d->tokens[d->taken] != token) return false;
    hdl_pages_note(&session->pages, sequence, s->position, &token, 1);
    *s = (hdl_sequence){ s->position + 1, d->best[d->taken], d->taken, session->run };
    d->taken++;
    session->stats.decode_tokens++;
    session->stats.accepted_tokens++;
    return true;
}
