/* index.c: the set of names. Open addressing with at least half of the slots free, and SipHash-1-3 under a key that the
 * maker of a file does not know: no list of names, however chosen, makes a look-up slow or a file quadratic to read. */
#include "llm/support.h"

static uint64_t turn(uint64_t x, unsigned by) { return x << by | x >> (64 - by); }

static void mix(uint64_t v[4]) {
    v[0] += v[1]; v[1] = turn(v[1], 13) ^ v[0]; v[0] = turn(v[0], 32);
    v[2] += v[3]; v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3]; v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1]; v[1] = turn(v[1], 17) ^ v[2]; v[2] = turn(v[2], 32);
}

static uint64_t read_word(const uint8_t *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static uint64_t hash(const uint64_t key[2], hdl_span text) {
    uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                      key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
    uint64_t at = 0;
    for (; text.count - at >= 8; at += 8) {
        const uint64_t word = read_word(text.bytes + at, 8);
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    const uint64_t last = read_word(text.bytes + at, (size_t)(text.count - at)) | text.count << 56;
    v[3] ^= last;
    mix(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot that holds `wanted`, or the free one where it would go. */
static uint32_t *slot_of(const hdl_index *index, hdl_span wanted, hdl_index_name name, const void *owner) {
    uint32_t at = (uint32_t)hash(index->key, wanted) & (index->slot_count - 1);
    while (index->slots[at] && !hdl_same(name(owner, index->slots[at] - 1), wanted))
        at = (at + 1) & (index->slot_count - 1);
    return &index->slots[at];
}

bool hdl_index_reserve(hdl_index *index, const hd_allocator *allocator, uint32_t count, hdl_index_name name,
                       const void *owner) {
    uint64_t slot_count = 8;
    while (slot_count < (uint64_t)count * 2) slot_count *= 2;
    if (slot_count <= index->slot_count) return true;
    if (slot_count > UINT32_MAX) return false;
    uint32_t *slots = hdl_alloc(allocator, slot_count * sizeof *slots);
    if (!slots) return false;
    hdl_free(allocator, index->slots, (uint64_t)index->slot_count * sizeof *slots);
    index->slots = slots;
    index->slot_count = (uint32_t)slot_count;
    for (uint32_t i = 0; i < index->count; i++) *slot_of(index, name(owner, i), name, owner) = i + 1;
    return true;
}

void hdl_index_free(hdl_index *index, const hd_allocator *allocator) {
    hdl_free(allocator, index->slots, (uint64_t)index->slot_count * sizeof *index->slots);
    *index = (hdl_index){ .key = { index->key[0], index->key[1] } };
}

int64_t hdl_index_find(const hdl_index *index, hdl_span wanted, hdl_index_name name, const void *owner) {
    if (index->slot_count == 0) return -1;
    return (int64_t)*slot_of(index, wanted, name, owner) - 1;
}

bool hdl_index_add(hdl_index *index, hdl_index_name name, const void *owner) {
    uint32_t *slot = slot_of(index, name(owner, index->count), name, owner);
    if (*slot) return false;
    *slot = ++index->count;
    return true;
}
