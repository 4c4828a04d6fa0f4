/* pages.c: the pages of the cache, free and taken. */
#include "llm/pages.h"

static uint32_t pages_of(uint32_t tokens) { return (tokens + HDL_PAGE_TOKENS - 1) / HDL_PAGE_TOKENS; }

bool hdl_pages_make(const hd_allocator *allocator, uint32_t sequences, uint32_t width, uint32_t count, hdl_pages *out) {
    *out = (hdl_pages){ .sequences = sequences, .width = width, .count = count, .free_count = count, .version = 1 };
    out->table = hdl_alloc(allocator, (uint64_t)sequences * width * sizeof *out->table);
    out->free = hdl_alloc(allocator, count * sizeof *out->free);
    out->tokens = hdl_alloc(allocator, (uint64_t)count * HDL_PAGE_TOKENS * sizeof *out->tokens);
    if (!out->table || !out->free || !out->tokens) return false;
    for (uint64_t i = 0; i < (uint64_t)sequences * width; i++) out->table[i] = HDL_NO_PAGE;
    for (uint32_t i = 0; i < count; i++) out->free[i] = (int32_t)(count - 1 - i);
    return true;
}

void hdl_pages_end(const hd_allocator *allocator, hdl_pages *pages) {
    hdl_free(allocator, pages->table, (uint64_t)pages->sequences * pages->width * sizeof *pages->table);
    hdl_free(allocator, pages->free, pages->count * sizeof *pages->free);
    hdl_free(allocator, pages->tokens, (uint64_t)pages->count * HDL_PAGE_TOKENS * sizeof *pages->tokens);
    *pages = (hdl_pages){ 0 };
}

uint32_t hdl_pages_needed(uint32_t tokens, uint32_t more) { return pages_of(tokens + more) - pages_of(tokens); }

void hdl_pages_take(hdl_pages *pages, uint32_t sequence, uint32_t tokens, uint32_t more) {
    int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    for (uint32_t i = pages_of(tokens); i < pages_of(tokens + more); i++) {
        row[i] = pages->free[--pages->free_count];
        pages->version++;
    }
}

void hdl_pages_give(hdl_pages *pages, uint32_t sequence, uint32_t held, uint32_t tokens) {
    int32_t *row = pages->table + (uint64_t)sequence * pages->width;
    for (uint32_t i = pages_of(held); i > pages_of(tokens); i--) {
        pages->free[pages->free_count++] = row[i - 1];
        row[i - 1] = HDL_NO_PAGE;
        pages->version++;
    }
}

/* Where the token at a position is noted. */
static int32_t *place_of(const hdl_pages *pages, uint32_t sequence, uint32_t position) {
    const int32_t page = pages->table[(uint64_t)sequence * pages->width + position / HDL_PAGE_TOKENS];
    return &pages->tokens[(uint64_t)page * HDL_PAGE_TOKENS + position % HDL_PAGE_TOKENS];
}

void hdl_pages_note(hdl_pages *pages, uint32_t sequence, uint32_t position, const int32_t *tokens, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) *place_of(pages, sequence, position + i) = tokens[i];
}

int32_t hdl_pages_token(const hdl_pages *pages, uint32_t sequence, uint32_t position) { return *place_of(pages, sequence, position); }
