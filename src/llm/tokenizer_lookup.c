/* tokenizer_lookup.c: the tokenizer's two hash tables, from texts to ids and from pairs to merges. They are filled once
 * and then only read. A vocabulary that was made to collide is refused while it is filled, so a look-up is always
 * short. */
#include "llm/tokenizer_inside.h"

/* More neighbours than any honest vocabulary meets at less than half full. */
enum { MOST_PROBES = 512 };

/* The least power of two with at least `room` slots. */
static uint32_t bits_for(size_t room) {
    uint32_t bits = 4;
    while (((size_t)1 << bits) < room) bits++;
    return bits;
}

static size_t first_slot(uint64_t hash, uint32_t bits) {
    return (size_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits));
}

bool hdl_text_table_make(const hd_allocator *allocator, size_t count, hdl_text_table *out_table) {
    out_table->bits = bits_for(4 * count);
    out_table->slots = hdl_alloc(allocator, ((size_t)1 << out_table->bits) * sizeof *out_table->slots);
    return out_table->slots != NULL;
}

void hdl_text_table_free(const hd_allocator *allocator, hdl_text_table *table) {
    hdl_free(allocator, table->slots, ((size_t)1 << table->bits) * sizeof *table->slots);
}

hdl_added hdl_text_table_add(const hdl_tokenizer *t, hdl_text_table *table, int32_t id, int32_t *out_earlier) {
    hdl_span text = hdl_pool_text(t, id);
    const uint8_t *bytes = text.bytes;
    uint64_t hash = HDL_HASH_START;
    for (size_t i = 0; i < text.count; i++) hash = hdl_hash(hash, bytes[i]);
    *out_earlier = hdl_text_table_probe(t, table, hash, bytes, text.count);
    if (*out_earlier != HDL_NO_TOKEN) return HDL_ADDED_TWICE;
    size_t mask = ((size_t)1 << table->bits) - 1, at = first_slot(hash, table->bits);
    for (int probes = 0; table->slots[at].id_plus_1; at = (at + 1) & mask)
        if (++probes > MOST_PROBES) return HDL_ADDED_CROWDED;
    table->slots[at].mark = (uint32_t)hash;
    table->slots[at].id_plus_1 = (uint32_t)id + 1;
    uint16_t *longest = &table->longest[bytes[0]];
    if (text.count > *longest) *longest = (uint16_t)text.count; /* fits: HDL_MAX_TOKEN_BYTES */
    return HDL_ADDED;
}

int32_t hdl_text_table_probe(const hdl_tokenizer *t, const hdl_text_table *table, uint64_t hash, const uint8_t *text,
                             size_t bytes) {
    size_t mask = ((size_t)1 << table->bits) - 1;
    for (size_t at = first_slot(hash, table->bits); table->slots[at].id_plus_1; at = (at + 1) & mask) {
        if (table->slots[at].mark != (uint32_t)hash) continue;
        int32_t id = (int32_t)(table->slots[at].id_plus_1 - 1);
        hdl_span there = hdl_pool_text(t, id);
        if (there.count == bytes && memcmp(there.bytes, text, bytes) == 0) return id;
    }
    return HDL_NO_TOKEN;
}

int32_t hdl_text_table_find(const hdl_tokenizer *t, const hdl_text_table *table, const uint8_t *text, size_t bytes) {
    if (bytes == 0 || bytes > table->longest[text[0]]) return HDL_NO_TOKEN;
    uint64_t hash = HDL_HASH_START;
    for (size_t i = 0; i < bytes; i++) hash = hdl_hash(hash, text[i]);
    return hdl_text_table_probe(t, table, hash, text, bytes);
}

static size_t first_pair(const hdl_pair_table *table, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return first_slot(key ^ key >> 29, table->bits);
}

bool hdl_pair_table_make(const hd_allocator *allocator, size_t count, hdl_pair_table *out_table) {
    out_table->bits = bits_for(2 * count);
    out_table->slots = hdl_alloc(allocator, ((size_t)1 << out_table->bits) * sizeof *out_table->slots);
    return out_table->slots != NULL;
}

void hdl_pair_table_free(const hd_allocator *allocator, hdl_pair_table *table) {
    hdl_free(allocator, table->slots, ((size_t)1 << table->bits) * sizeof *table->slots);
}

hdl_added hdl_pair_table_add(hdl_pair_table *table, int32_t left, int32_t right, uint32_t rank, int32_t id,
                             uint32_t *out_earlier) {
    size_t mask = ((size_t)1 << table->bits) - 1, at = first_pair(table, left, right);
    for (int probes = 0; table->slots[at].id_plus_1; at = (at + 1) & mask) {
        *out_earlier = table->slots[at].rank;
        if (table->slots[at].left == left && table->slots[at].right == right) return HDL_ADDED_TWICE;
        if (++probes > MOST_PROBES) return HDL_ADDED_CROWDED;
    }
    table->slots[at] = (hdl_pair_slot){ left, right, rank, (uint32_t)id + 1 };
    return HDL_ADDED;
}

const hdl_pair_slot *hdl_pair_table_find(const hdl_pair_table *table, int32_t left, int32_t right) {
    size_t mask = ((size_t)1 << table->bits) - 1;
    for (size_t at = first_pair(table, left, right); table->slots[at].id_plus_1; at = (at + 1) & mask)
        if (table->slots[at].left == left && table->slots[at].right == right) return &table->slots[at];
    return NULL;
}
