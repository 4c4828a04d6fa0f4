/* trie.c: makes the trie of sorted tokens, and finds which characters they can spell. */
#include "llm/form/trie.h"
#include "llm/utf8.h"
#include <stdlib.h>

/* A token on its way into the trie. */
typedef struct entry {
    hdl_span text;
    int32_t  token;
} entry;

/* HDL_NO_TOKEN, or why the token is not there. */
static int32_t place_of(const hdl_tokenizer *tokenizer, int32_t token, const int32_t *marks, uint32_t mark_count) {
    const hdl_token_type type = hdl_token_type_of(tokenizer, token);
    const uint64_t bytes = hdl_token_text(tokenizer, token).count;
    bool stands = type == HDL_TOKEN_NORMAL || type == HDL_TOKEN_USER || type == HDL_TOKEN_BYTE;
    for (uint32_t i = 0; i < mark_count; i++) stands = stands || marks[i] == token;
    if (!stands && (type == HDL_TOKEN_CONTROL || type == HDL_TOKEN_UNKNOWN)) return HDL_TOKEN_HIDDEN;
    return stands && bytes > 0 && bytes <= HDL_TRIE_DEPTH ? HDL_NO_TOKEN : HDL_TOKEN_LEFT_OUT;
}

static int compare(const void *left, const void *right) {
    const entry *a = left, *b = right;
    const size_t shorter = (size_t)(a->text.count < b->text.count ? a->text.count : b->text.count);
    const int order = memcmp(a->text.bytes, b->text.bytes, shorter);
    if (order) return order;
    if (a->text.count != b->text.count) return a->text.count < b->text.count ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

static uint32_t bytes_alike(hdl_span a, hdl_span b) {
    uint32_t same = 0;
    while (same < a.count && same < b.count && a.bytes[same] == b.bytes[same]) same++;
    return same;
}

/* Puts the sorted entries into the nodes, for which there is room. */
static void fill(hdl_trie *trie, const entry *entries, uint32_t count) {
    uint32_t open[HDL_TRIE_DEPTH], depth = 0; /* the nodes of the last token */
    for (uint32_t i = 0; i < count; i++) {
        const hdl_span text = entries[i].text;
        const uint32_t same = i ? bytes_alike(entries[i - 1].text, text) : 0;
        while (depth > same) trie->nodes[open[--depth]].skip = trie->count;
        for (; depth < text.count; depth++) {
            open[depth] = trie->count;
            trie->nodes[trie->count++] = (hdl_trie_node){ 0, HDL_NO_TOKEN, text.bytes[depth], (uint8_t)depth };
        }
        hdl_trie_node *node = &trie->nodes[open[depth - 1]];
        trie->same[entries[i].token] = node->token;
        node->token = entries[i].token;
    }
    while (depth > 0) trie->nodes[open[--depth]].skip = trie->count;
}

/* ---- what can be spelled ---- */

static bool spell(hdl_trie *trie, uint32_t low, uint32_t high) {
    if (!hdl_grow(&trie->allocator, &trie->spelled, &trie->spelled_room, trie->spelled_count + 1,
                  sizeof *trie->spelled))
        return false;
    trie->spelled[trie->spelled_count++] = (hdl_range){ low, high };
    return true;
}

static int by_low(const void *left, const void *right) {
    const hdl_range *a = left, *b = right;
    return a->low < b->low ? -1 : a->low > b->low;
}

/* Characters that begin with this byte. */
static hdl_range led_by(uint32_t byte) {
    if (byte < 0x80) return (hdl_range){ byte, byte };
    if (byte < 0xE0) return (hdl_range){ (byte & 0x1F) << 6, (byte & 0x1F) << 6 | 0x3F };
    if (byte < 0xF0) return (hdl_range){ byte == 0xE0 ? 0x800 : (byte & 0x0F) << 12, (byte & 0x0F) << 12 | 0xFFF };
    return (hdl_range){ byte == 0xF0 ? 0x10000 : (byte & 7) << 18,
                        byte == 0xF4 ? HDL_LAST_CHARACTER : (byte & 7) << 18 | 0x3FFFF };
}

/* A character can be said where a token stands for it, or one for each of its bytes. */
static bool find_spelled(hdl_trie *trie, const entry *entries, uint32_t count) {
    bool bytes[256] = { false };
    for (uint32_t i = 0; i < trie->count; i = trie->nodes[i].skip)
        bytes[trie->nodes[i].byte] = trie->nodes[i].token != HDL_NO_TOKEN;
    trie->ends_inside = trie->spells_all = true;
    for (uint32_t i = 0x80; i < 0xC0; i++) trie->ends_inside = trie->ends_inside && bytes[i];
    for (uint32_t i = 0; i < 0xF5; i++) trie->spells_all = trie->spells_all && (bytes[i] || i == 0xC0 || i == 0xC1);
    if (trie->spells_all) return true;
    for (uint32_t i = 0; i < 0xF5; i++) {
        if (!bytes[i] || (i >= 0x80 && (i < 0xC2 || !trie->ends_inside))) continue;
        const hdl_range range = led_by(i);
        if (!spell(trie, range.low, range.high)) return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t code;
        const uint32_t length = hdl_utf8_read(entries[i].text.bytes, (size_t)entries[i].text.count, &code);
        if (length == entries[i].text.count && code != HDL_UTF8_INVALID && !spell(trie, code, code)) return false;
    }
    if (trie->spelled_count) qsort(trie->spelled, trie->spelled_count, sizeof *trie->spelled, by_low);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < trie->spelled_count; i++) {
        const hdl_range range = trie->spelled[i];
        hdl_range *last = kept ? &trie->spelled[kept - 1] : NULL;
        if (!last || range.low > last->high + 1) trie->spelled[kept++] = range;
        else if (range.high > last->high) last->high = range.high;
    }
    trie->spelled_count = kept;
    return true;
}

/* ---- making and ending ---- */

static bool make(hdl_trie *trie, const hdl_tokenizer *tokenizer, entry *entries) {
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < trie->tokens; i++) {
        if (!hdl_trie_has(trie, (int32_t)i)) continue;
        entries[count] = (entry){ hdl_token_text(tokenizer, (int32_t)i), (int32_t)i };
        bytes += entries[count++].text.count;
    }
    if (count) qsort(entries, count, sizeof *entries, compare);
    uint64_t nodes = bytes;
    for (uint32_t i = 1; i < count; i++) nodes -= bytes_alike(entries[i - 1].text, entries[i].text);
    trie->nodes = hdl_alloc(&trie->allocator, nodes * sizeof *trie->nodes);
    if (!trie->nodes) return false;
    fill(trie, entries, count);
    return find_spelled(trie, entries, count);
}

hd_status hdl_trie_create(const hd_allocator *allocator, const hdl_tokenizer *tokenizer, uint32_t tokens,
                          const int32_t *marks, uint32_t mark_count, hdl_trie **out, hd_error *error) {
    *out = NULL;
    hdl_trie *trie = hdl_alloc(allocator, sizeof *trie);
    entry *entries = hdl_alloc(allocator, tokens * sizeof *entries);
    if (trie) {
        *trie = (hdl_trie){ .allocator = *allocator, .tokens = tokens };
        trie->same = hdl_alloc(allocator, tokens * sizeof *trie->same);
    }
    for (uint32_t i = 0; trie && trie->same && i < tokens; i++)
        trie->same[i] = place_of(tokenizer, (int32_t)i, marks, mark_count);
    const bool made = trie && entries && trie->same && make(trie, tokenizer, entries);
    hdl_free(allocator, entries, tokens * sizeof *entries);
    if (made) {
        *out = trie;
        return HD_OK;
    }
    hdl_trie_destroy(trie);
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the bytes of %u tokens", tokens);
}

void hdl_trie_destroy(hdl_trie *trie) {
    if (!trie) return;
    const hd_allocator allocator = trie->allocator;
    hdl_free(&allocator, trie->nodes, trie->count * sizeof *trie->nodes);
    hdl_free(&allocator, trie->same, trie->tokens * sizeof *trie->same);
    hdl_free(&allocator, trie->spelled, trie->spelled_room * sizeof *trie->spelled);
    hdl_free(&allocator, trie, sizeof *trie);
}
