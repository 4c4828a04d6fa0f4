/* reader.c: see reader.h. Bytes that may become a mark are held; the longest mark that they begin with counts. Those of
 * thoughts are the same for all models, those of calls are the form's. */
#include "llm/reader.h"

enum { IN_SAID = 1 << HDL_SAID, IN_THOUGHT = 1 << HDL_THOUGHT, IN_CALL = 1 << HDL_CALLED, ONLY_FIRST = 8 };

static const hdl_mark thoughts[] = {
    { HDL_BEGINS_THOUGHT, IN_SAID | ONLY_FIRST, HDL_THOUGHT },
    { "</think>", IN_THOUGHT, HDL_SAID },
    { "<|channel|>analysis<|message|>", IN_SAID | IN_THOUGHT, HDL_THOUGHT },
    { "<|channel|>commentary<|message|>", IN_SAID | IN_THOUGHT, HDL_THOUGHT },
    { "<|channel|>final<|message|>", IN_SAID | IN_THOUGHT, HDL_SAID },
    { "<|end|>", IN_THOUGHT, HDL_THOUGHT },
    { "<|start|>assistant", IN_THOUGHT, HDL_THOUGHT },
};
enum {
    THOUGHTS = sizeof thoughts / sizeof thoughts[0],
    BEGINS = sizeof ((hdl_call_form *)0)->begins / sizeof(char *),
    ENDS = sizeof ((hdl_call_form *)0)->ends / sizeof(char *)
};
_Static_assert(HDL_MARKS == THOUGHTS + BEGINS + ENDS + 1, "those of thoughts and of calls, and the first one");

hdl_mark hdl_mark_at(const hdl_call_form *form, size_t i) {
    const int outside = IN_SAID | (form && form->in_thoughts ? IN_THOUGHT : 0);
    if (i < THOUGHTS) return thoughts[i];
    if (!form) return (hdl_mark){ 0 };
    i -= THOUGHTS;
    if (i < BEGINS) return (hdl_mark){ form->begins[i], outside | IN_CALL, HDL_CALLED };
    if (i < BEGINS + ENDS) return (hdl_mark){ form->ends[i - BEGINS], IN_CALL, HDL_SAID };
    return (hdl_mark){ form->first, IN_SAID | ONLY_FIRST, HDL_CALLED };
}

static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

hdl_mark hdl_mark_find(const hdl_call_form *form, const hdl_marked *at, bool *out_begun) {
    hdl_mark best = { 0 };
    *out_begun = false;
    for (size_t i = 0; i < HDL_MARKS; i++) {
        const hdl_mark m = hdl_mark_at(form, i);
        const size_t count = m.text ? strlen(m.text) : 0, held = at->held_count < count ? at->held_count : count;
        if (!count || !(m.where >> at->state & 1) || (m.where & ONLY_FIRST && at->said)) continue;
        if (memcmp(m.text, at->held, held) != 0) continue;
        if (held < count) *out_begun = true;
        else if (!best.text || count > strlen(best.text)) best = m;
    }
    return best;
}

/* ---- parts ---- */

static bool append(hdl_reader *r, uint8_t **bytes, size_t *count, size_t *room, hdl_span text) {
    if (r->no_memory || !hdl_grow(&r->calls.allocator, bytes, room, *count + (size_t)text.count + 1, 1)) {
        r->no_memory = true;
        return false;
    }
    if (text.count) memcpy(*bytes + *count, text.bytes, (size_t)text.count);
    *count += (size_t)text.count;
    (*bytes)[*count] = 0;
    return true;
}

static void tell(hdl_reader *r, const hd_part *part) {
    if (r->on_part && !r->no_memory) r->on_part(r->user, part);
}

static void give(hdl_reader *r, hd_part_kind kind, hdl_span text) {
    if (!text.count || !append(r, &r->content, &r->content_count, &r->content_room, text)) return;
    for (size_t i = r->content_count - (size_t)text.count; i < r->content_count; i++)
        if (!is_space(r->content[i])) r->content_end = i + 1;
    for (uint64_t i = 0; i < text.count && kind == HD_PART_TEXT && !r->at.said; i++)
        r->at.said = !is_space(text.bytes[i]);
    tell(r, &(hd_part){ .kind = kind, .text = (const char *)text.bytes, .bytes = (size_t)text.count });
}

static void begin_call(hdl_reader *r, hdl_span text) {
    r->call_count = 0;
    r->in_string = r->escaped = false;
    r->mark_count = hdl_same(text, hdl_text("{")) ? 0 : (size_t)text.count;
    append(r, &r->call, &r->call_count, &r->call_room, text);
}

/* Tells the calls that were written, or the text that it was instead. */
static void finish_call(hdl_reader *r, const char *end) {
    const hdl_span text = { r->call + r->mark_count, r->call_count - r->mark_count };
    const size_t before = r->calls.count;
    bool memory = !r->no_memory;
    if (memory && hdl_calls_read(&r->calls, r->form, r->tools, text, &memory)) {
        r->at.said = true;
        for (size_t i = before; i < r->calls.count; i++)
            tell(r, &(hd_part){ .kind = HD_PART_CALL, .text = "", .call = &r->calls.calls[i] });
        return;
    }
    r->no_memory |= !memory;
    give(r, HD_PART_TEXT, (hdl_span){ r->call, r->call_count });
    give(r, HD_PART_TEXT, hdl_text(end));
}

static bool call_ends_with(const hdl_reader *r, const char *text) {
    const size_t count = strlen(text);
    return r->call_count >= count && memcmp(r->call + r->call_count - count, text, count) == 0;
}

static void put_call(hdl_reader *r, uint8_t byte) {
    const hdl_call_tags *tags = r->form->tags;
    const bool escaped = r->escaped;
    if (!tags) {
        r->escaped = r->in_string && !escaped && byte == '\\';
        if (byte == '"' && !escaped) r->in_string = !r->in_string;
    }
    if (!append(r, &r->call, &r->call_count, &r->call_room, (hdl_span){ &byte, 1 })) return;
    if (tags && r->in_string) r->in_string = !call_ends_with(r, tags->value_end);
    else if (tags) r->in_string = call_ends_with(r, tags->value[0] ? tags->value : tags->key);
    if (r->call_count <= HDL_MAX_CALL_BYTES) return;
    give(r, HD_PART_TEXT, (hdl_span){ r->call, r->call_count });
    r->at.state = r->at.before;
}

/* ---- the text ---- */

/* What the held bytes begin with is a mark, or the end of one that was awaited. */
static void apply(hdl_reader *r, hdl_mark m) {
    const hdl_span text = hdl_text(m.text);
    if (r->at.state == HDL_CALLED) {
        finish_call(r, m.to == HDL_CALLED ? "" : m.text);
        r->at.state = r->at.before;
        if (m.to != HDL_CALLED) return;
    }
    if (m.to == HDL_CALLED) {
        r->at.before = r->at.state;
        begin_call(r, text);
    } else give(r, HD_PART_MARK, text);
    r->at.state = m.to;
}

/* Gives what is held and cannot become a mark any more; with `last`, all. */
static void settle(hdl_reader *r, bool last) {
    while (r->at.held_count > 0) {
        const bool in_string = r->at.state == HDL_CALLED && r->in_string;
        bool begun = false;
        const hdl_mark m = in_string ? (hdl_mark){ 0 } : hdl_mark_find(r->form, &r->at, &begun);
        if (begun && !last) return;
        size_t gone = m.text ? strlen(m.text) : 1;
        if (m.text) apply(r, m);
        else if (r->at.state == HDL_CALLED) put_call(r, r->at.held[0]);
        else {
            /* a whole character */
            while (gone < r->at.held_count && gone < 4 && (r->at.held[gone] & 0xC0) == 0x80) gone++;
            give(r, r->at.state == HDL_THOUGHT ? HD_PART_THOUGHT : HD_PART_TEXT, (hdl_span){ r->at.held, gone });
        }
        r->at.held_count -= gone;
        memmove(r->at.held, r->at.held + gone, r->at.held_count);
    }
}

/* How many bytes cannot begin a mark, so that they are given at once. */
static size_t plain(const hdl_reader *r, hdl_span text) {
    size_t count = 0;
    if (r->at.held_count || r->at.state == HDL_CALLED) return 0;
    for (; count < text.count; count++)
        for (size_t i = 0; i < HDL_MARKS; i++) {
            const hdl_mark m = hdl_mark_at(r->form, i);
            if (m.text && (uint8_t)m.text[0] == text.bytes[count]) return count;
        }
    return count;
}

hd_status hdl_reader_push(hdl_reader *r, hdl_span text) {
    while (text.count && !r->no_memory) {
        size_t taken = plain(r, text);
        if (taken)
            give(r, r->at.state == HDL_THOUGHT ? HD_PART_THOUGHT : HD_PART_TEXT, (hdl_span){ text.bytes, taken });
        else {
            do r->at.held[r->at.held_count++] = text.bytes[taken++]; /* a whole character */
            while (taken < text.count && taken < 4 && (text.bytes[taken] & 0xC0) == 0x80);
            settle(r, false);
        }
        text = (hdl_span){ text.bytes + taken, text.count - taken };
    }
    return r->no_memory ? HD_STATUS_OUT_OF_HOST_MEMORY : HD_OK;
}

hd_status hdl_reader_end(hdl_reader *r) {
    settle(r, true);
    if (r->at.state == HDL_CALLED) finish_call(r, "");
    r->at.state = HDL_SAID;
    return r->no_memory ? HD_STATUS_OUT_OF_HOST_MEMORY : HD_OK;
}

/* ---- an answer ---- */

void hdl_reader_init(hdl_reader *r, const hd_allocator *allocator, const hdl_call_form *form) {
    *r = (hdl_reader){ .form = form, .calls.allocator = *allocator };
}

void hdl_reader_free(hdl_reader *r) {
    hdl_free(&r->calls.allocator, r->call, r->call_room);
    hdl_free(&r->calls.allocator, r->content, r->content_room);
    hdl_calls_free(&r->calls);
}

void hdl_reader_begin(hdl_reader *r, bool in_thought) {
    hdl_calls_cut(&r->calls, 0);
    r->at.state = in_thought ? HDL_THOUGHT : HDL_SAID;
    r->at.said = r->no_memory = false;
    r->at.held_count = r->call_count = r->content_count = r->content_end = 0;
    append(r, &r->content, &r->content_count, &r->content_room, hdl_text(""));
}

hd_message hdl_reader_message(hdl_reader *r) {
    if (r->calls.count && r->content) r->content[r->content_count = r->content_end] = 0;
    return (hd_message){ .role = "assistant",
                         .content = r->content ? (const char *)r->content : "",
                         .calls = r->calls.calls,
                         .call_count = r->calls.count };
}

bool hdl_begins_thought(hdl_span text) {
    const hdl_span begins = hdl_text(HDL_BEGINS_THOUGHT);
    while (text.count && is_space(text.bytes[text.count - 1])) text.count--;
    return text.count >= begins.count &&
           memcmp(text.bytes + text.count - begins.count, begins.bytes, (size_t)begins.count) == 0;
}
