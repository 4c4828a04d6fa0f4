/* tokenizer_merge.c: byte-pair encoding of one word, for both kinds of vocabulary that merge: a linked list of symbols
 * and a heap of the merges that are possible, best first and leftmost among equals. n bytes take n log n steps,
 * whatever they are. A merge in the heap is never taken back: a symbol only grows, so a merge whose length no longer
 * fits is stale. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"

/* A part of the word; `bytes` is 0 once the symbol to its left has taken it in. Links are indices, `count` at the
 * ends. */
typedef struct hdl_symbol {
    uint32_t at, bytes;
    uint32_t previous, next;
    int32_t  id;
} symbol;

/* The merge of symbol `left` with the one after it. Merges with smaller `order` go first: rank, then place. */
typedef struct hdl_merge {
    uint64_t order;
    uint32_t bytes;
    int32_t  id;
} merge;

/* Numbers in the order of falling scores, equal for equal ones. */
static uint32_t rank_of_score(float score) {
    float plain = score + 0.0f; /* -0 and 0 are one score */
    uint32_t bits;
    memcpy(&bits, &plain, sizeof bits);
    return bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu;
}

static bool push(hdl_tokenizing *run, merge wanted) {
    if (!hdl_grow(run->allocator, &run->merges, &run->merge_capacity, run->merge_count + 1, sizeof *run->merges))
        return false;
    size_t at = run->merge_count++;
    for (; at && run->merges[(at - 1) / 2].order > wanted.order; at = (at - 1) / 2)
        run->merges[at] = run->merges[(at - 1) / 2];
    run->merges[at] = wanted;
    return true;
}

static merge pop(hdl_tokenizing *run) {
    merge first = run->merges[0], last = run->merges[--run->merge_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < run->merge_count) {
        if (child + 1 < run->merge_count && run->merges[child + 1].order < run->merges[child].order) child++;
        if (run->merges[child].order >= last.order) break;
        run->merges[at] = run->merges[child];
        at = child;
    }
    run->merges[at] = last;
    return first;
}

/* Puts the merge of `left` and its neighbour into the heap, where the vocabulary knows one. */
static bool offer(hdl_tokenizing *run, const uint8_t *text, uint32_t left, uint32_t count) {
    const symbol *a = &run->symbols[left];
    if (a->next == count) return true;
    const symbol *b = &run->symbols[a->next];
    merge found = { 0, a->bytes + b->bytes, HDL_NO_TOKEN };
    uint32_t rank;
    if (run->t->kind == HDL_VOCAB_BYTES) {
        const hdl_pair_slot *slot = hdl_pair_table_find(&run->t->pairs, a->id, b->id);
        if (!slot) return true;
        found.id = (int32_t)(slot->id_plus_1 - 1);
        rank = slot->rank;
    } else {
        found.id = hdl_text_table_find(run->t, &run->t->texts, text + a->at, found.bytes);
        if (found.id == HDL_NO_TOKEN) return true;
        rank = rank_of_score(run->t->scores[found.id]);
    }
    found.order = (uint64_t)rank << 32 | left;
    return push(run, found);
}

/* One symbol a byte, or a character. Returns their number; 0: out of memory. */
static uint32_t split(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    if (!hdl_grow(run->allocator, &run->symbols, &run->symbol_capacity, bytes, sizeof *run->symbols)) return 0;
    uint32_t count = 0, code, length = 1;
    for (uint32_t at = 0; at < bytes; at += length, count++) {
        if (run->t->kind != HDL_VOCAB_BYTES) length = hdl_utf8_read(text + at, bytes - at, &code);
        int32_t id = run->t->kind == HDL_VOCAB_BYTES ? run->t->byte_ids[text[at]]
                                                     : hdl_text_table_find(run->t, &run->t->texts, text + at, length);
        run->symbols[count] = (symbol){ at, length, count - 1, count + 1, id };
    }
    return count;
}

bool hdl_merge_word(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    if (bytes == 0) return true;
    uint32_t count = split(run, text, bytes);
    if (count == 0) return false;
    run->merge_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!offer(run, text, i, count)) return false;
    symbol *symbols = run->symbols;
    while (run->merge_count) {
        merge best = pop(run);
        uint32_t left = (uint32_t)best.order;
        symbol *a = &symbols[left], *b = a->next < count ? &symbols[a->next] : NULL;
        if (a->bytes == 0 || !b || a->bytes + b->bytes != best.bytes) continue;
        a->bytes = best.bytes;
        a->id = best.id;
        a->next = b->next;
        b->bytes = 0;
        if (a->next < count) symbols[a->next].previous = left;
        if ((left && !offer(run, text, a->previous, count)) || !offer(run, text, left, count)) return false;
    }
    for (uint32_t i = 0; i < count; i = symbols[i].next)
        if (symbols[i].id == HDL_NO_TOKEN ? !hdl_emit_unknown(run, text + symbols[i].at, symbols[i].bytes)
                                          : !hdl_emit(run, symbols[i].id))
            return false;
    return true;
}

void hdl_merge_free(hdl_tokenizing *run) {
    hdl_free(run->allocator, run->symbols, run->symbol_capacity * sizeof *run->symbols);
    hdl_free(run->allocator, run->merges, run->merge_capacity * sizeof *run->merges);
}
