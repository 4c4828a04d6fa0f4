/* names.c: a set of names, each with a number, by open addressing. Names may come from hostile texts: the seed, which
 * nothing outside shows, keeps the search short for any choice of names. */
#include "base/base.h"

struct hdi_name {
    const char *text;
    uint64_t    hash;
    size_t      bytes;
    uint32_t    number; /* 0: the slot is free */
};
typedef struct hdi_name slot;

static uint64_t scramble(uint64_t x) {
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* Every byte is scrambled together with the seed: a plain FNV-1a keeps collisions whatever it starts from. */
static uint64_t hash_of(const hdi_names *names, const char *name, size_t bytes) {
    uint64_t hash = names->seed;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, name + at, HDI_MIN(bytes - at, (size_t)8));
        hash = scramble(hash ^ word) + names->seed;
    }
    return scramble(hash ^ bytes);
}

static slot *slot_of(const hdi_names *names, const char *name, size_t bytes, uint64_t hash) {
    uint32_t mask = names->capacity - 1, at = (uint32_t)hash & mask;
    for (;; at = (at + 1) & mask) {
        slot *s = &names->slots[at];
        if (s->number == 0 || (s->hash == hash && s->bytes == bytes && memcmp(s->text, name, bytes) == 0)) return s;
    }
}

uint32_t hdi_names_find(const hdi_names *names, const char *name, size_t bytes) {
    return names->capacity ? slot_of(names, name, bytes, hash_of(names, name, bytes))->number : 0;
}

static bool widen(hdi_names *names) {
    hdi_names wider = *names;
    wider.capacity = names->capacity ? 2 * names->capacity : 16;
    wider.slots = hdi_alloc(names->allocator, wider.capacity * sizeof(slot));
    if (!wider.slots) return false;
    for (uint32_t i = 0; i < names->capacity; i++) {
        slot *old = &names->slots[i];
        if (old->number) *slot_of(&wider, old->text, old->bytes, old->hash) = *old;
    }
    hdi_free(names->allocator, names->slots, names->capacity * sizeof(slot));
    *names = wider;
    return true;
}

bool hdi_names_add(hdi_names *names, const char *name, size_t bytes, uint32_t number) {
    if (names->capacity == 0) names->seed = scramble(hdi_now_ns() ^ (uint64_t)(uintptr_t)names);
    if (names->count >= names->capacity / 2 && !widen(names)) return false;
    uint64_t hash = hash_of(names, name, bytes);
    *slot_of(names, name, bytes, hash) = (slot){ name, hash, bytes, number };
    names->count++;
    return true;
}

void hdi_names_free(hdi_names *names) {
    hdi_free(names->allocator, names->slots, names->capacity * sizeof(slot));
    *names = (hdi_names){ .allocator = names->allocator };
}
