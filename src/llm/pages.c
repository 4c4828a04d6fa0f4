/* pages.c: the pages of the cache, free and taken. */
#include "llm/pages.h"

static uint32_t pages_of(uint32_t tokens) { return (tokens + HDL_PAGE_TOKENS - 1) / HDL_PAGE_TOKENS; }

bool hdl_pages_make(const hd_allocator *allocator, hdl_pages *p) {
    const uint64_t width = p->width;
    p->free_count = p->count;
    p->version = 1;
    p->table = hdl_alloc(allocator, p->sequences * width * sizeof *p->table);
    p->holders = hdl_alloc(allocator, p->count * sizeof *p->holders);
    p->free = hdl_alloc(allocator, p->count * sizeof *p->free);
    p->tokens = hdl_alloc(allocator, (uint64_t)p->count * HDL_PAGE_TOKENS * sizeof *p->tokens);
    p->shown = hdl_alloc(allocator, p->rows * width * sizeof *p->shown);
    p->shown_sequences = hdl_alloc(allocator, p->rows * sizeof *p->shown_sequences);
    if (!p->table || !p->holders || !p->free || !p->tokens || !p->shown || !p->shown_sequences) return false;
    for (uint64_t i = 0; i < p->sequences * width; i++) p->table[i] = HDL_NO_PAGE;
    for (uint32_t i = 0; i < p->count; i++) p->free[i] = (int32_t)(p->count - 1 - i);
    return true;
}

void hdl_pages_end(const hd_allocator *allocator, hdl_pages *p) {
    const uint64_t width = p->width;
    hdl_free(allocator, p->table, p->sequences * width * sizeof *p->table);
    hdl_free(allocator, p->holders, p->count * sizeof *p->holders);
    hdl_free(allocator, p->free, p->count * sizeof *p->free);
    hdl_free(allocator, p->tokens, (uint64_t)p->count * HDL_PAGE_TOKENS * sizeof *p->tokens);
    hdl_free(allocator, p->shown, p->rows * width * sizeof *p->shown);
    hdl_free(allocator, p->shown_sequences, p->rows * sizeof *p->shown_sequences);
    *p = (hdl_pages){ 0 };
}

uint32_t hdl_pages_needed(uint32_t tokens, uint32_t more) { return pages_of(tokens + more) - pages_of(tokens); }

void hdl_pages_take(hdl_pages *pages, uint32_t sequence, uint32_t tokens, uint32_t more) {
    int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    for (uint32_t i = pages_of(tokens); i < pages_of(tokens + more); i++) {
        row[i] = pages->free[--pages->free_count];
        pages->holders[row[i]] = 1;
        pages->version++;
    }
}

void hdl_pages_give(hdl_pages *pages, uint32_t sequence, uint32_t held, uint32_t tokens) {
    int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    for (uint32_t i = pages_of(held); i > pages_of(tokens); i--) {
        if (--pages->holders[row[i - 1]] == 0) pages->free[pages->free_count++] = row[i - 1];
        row[i - 1] = HDL_NO_PAGE;
        pages->version++;
    }
}

void hdl_pages_share(hdl_pages *pages, uint32_t from, uint32_t count, uint32_t sequence) {
    const int32_t *theirs = pages->table + (uint64_t)from * pages->width;
    int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    for (uint32_t i = 0; i < count; i++) {
        row[i] = theirs[i];
        pages->holders[row[i]]++;
    }
    pages->version++;
}

bool hdl_pages_are_shared(const hdl_pages *pages, uint32_t sequence, uint32_t position) {
    const int32_t page = pages->table[(uint64_t)sequence * pages->width + position / HDL_PAGE_TOKENS];
    return pages->holders[page] > 1;
}

uint32_t hdl_pages_free_without(const hdl_pages *pages, uint32_t sequence) {
    const int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    uint32_t count = pages->free_count;
    for (uint32_t i = 0; i < pages->width && row[i] != HDL_NO_PAGE; i++) count += pages->holders[row[i]] == 1;
    return count;
}

/* Where the token at a position is noted. */
static int32_t *place_of(const hdl_pages *pages, uint32_t sequence, uint32_t position) {
    const int32_t page = pages->table[(uint64_t)sequence * pages->width + position / HDL_PAGE_TOKENS];
    return &pages->tokens[(uint64_t)page * HDL_PAGE_TOKENS + position % HDL_PAGE_TOKENS];
}

void hdl_pages_note(hdl_pages *pages, uint32_t sequence, uint32_t position, const int32_t *tokens, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) *place_of(pages, sequence, position + i) = tokens[i];
}

int32_t hdl_pages_token(const hdl_pages *pages, uint32_t sequence, uint32_t position) {
    return *place_of(pages, sequence, position);
}

void hdl_pages_tokens(const hdl_pages *pages, uint32_t sequence, uint32_t count, int32_t *out_tokens) {
    for (uint32_t at = 0; at < count; at += HDL_PAGE_TOKENS) {
        const uint32_t some = count - at < HDL_PAGE_TOKENS ? count - at : HDL_PAGE_TOKENS;
        memcpy(out_tokens + at, place_of(pages, sequence, at), some * sizeof *out_tokens);
    }
}

void hdl_pages_show(hdl_pages *pages, const uint32_t *sequences, uint32_t count) {
    const uint64_t bytes = count * sizeof *sequences, width = pages->width;
    const bool same = pages->shown_count == count && memcmp(pages->shown_sequences, sequences, bytes) == 0;
    if (same && pages->shown_version == pages->version) return;
    memcpy(pages->shown_sequences, sequences, bytes);
    for (uint32_t i = 0; i < count; i++) {
        int32_t *row = pages->shown + i * width;
        const bool is_none = sequences[i] == HDL_NO_SEQUENCE;
        for (uint32_t k = 0; k < width; k++) row[k] = is_none ? HDL_NO_PAGE : pages->table[sequences[i] * width + k];
    }
    pages->shown_count = count;
    pages->shown_version = ++pages->version;
}
