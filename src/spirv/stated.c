/* stated.c: types and constants of a module that is being written, each stated once. */
#include "spirv/module.h"

enum { KEY_WORDS = 1024 }; /* that are taken at once */

uint32_t hdi_spirv_state(hdi_arena *arena, hdi_spirv_stated *stated, uint32_t opcode, uint32_t type,
                         const uint32_t *operands, uint32_t count, uint32_t id) {
    const size_t words = 2 + (size_t)count;
    if (stated->room < words) {
        stated->room = HDI_MAX(words, (size_t)KEY_WORDS);
        stated->key = hdi_arena_alloc(arena, stated->room * sizeof *stated->key);
        if (!stated->key) stated->room = 0;
        if (!stated->key) return 0;
    }
    stated->key[0] = opcode;
    stated->key[1] = type;
    if (count) memcpy(stated->key + 2, operands, count * sizeof *operands);
    const char *key = (const char *)stated->key;
    const uint32_t known = hdi_names_find(&stated->ids, key, words * sizeof *operands);
    if (known) return known;
    stated->ids.allocator = arena->allocator;
    if (!hdi_names_add(&stated->ids, key, words * sizeof *operands, id)) return 0;
    stated->key += words;
    stated->room -= words;
    return id;
}
