/* memory.c: host memory through the caller's allocator, growing arrays, and arenas. Every call here can fail. */
#include "base/base.h"
#include <stdlib.h>

static void *default_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}

const hd_allocator hdi_default_allocator = { default_resize, NULL };

void *hdi_alloc(const hd_allocator *allocator, size_t bytes) {
    void *pointer = allocator->resize(allocator->user, NULL, 0, bytes ? bytes : 1);
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

void hdi_free(const hd_allocator *allocator, void *pointer, size_t bytes) {
    if (pointer) allocator->resize(allocator->user, pointer, bytes ? bytes : 1, 0);
}

bool hdi_grow(const hd_allocator *allocator, void *items_pointer, uint32_t *capacity, size_t count, size_t item_bytes) {
    if (count <= *capacity) return true;
    if (count > UINT32_MAX / 2) return false;
    size_t wanted = *capacity ? *capacity : 8;
    while (wanted < count) wanted *= 2;
    uint64_t new_bytes;
    if (!hdi_mul_u64(wanted, item_bytes, &new_bytes) || new_bytes > SIZE_MAX) return false;
    void *items;
    memcpy(&items, items_pointer, sizeof items);
    size_t old_bytes = (size_t)*capacity * item_bytes;
    char *grown = allocator->resize(allocator->user, items, old_bytes, (size_t)new_bytes);
    if (!grown) return false;
    memset(grown + old_bytes, 0, (size_t)new_bytes - old_bytes);
    memcpy(items_pointer, &grown, sizeof grown);
    *capacity = (uint32_t)wanted;
    return true;
}

typedef struct hdi_arena_block {
    struct hdi_arena_block *next;
    size_t bytes, used; /* of the block, this head included */
} arena_block;

enum { ARENA_ALIGN = 16, ARENA_BLOCK_BYTES = 4096 };
_Static_assert(sizeof(arena_block) <= 2 * ARENA_ALIGN, "the head of a block must fit before its first item");

void *hdi_arena_alloc(hdi_arena *arena, size_t bytes) {
    uint64_t padded;
    if (!hdi_pad_u64(bytes ? bytes : 1, ARENA_ALIGN, &padded) || padded > SIZE_MAX / 2) return NULL;
    arena_block *block = arena->blocks;
    if (!block || block->bytes - block->used < padded) {
        size_t block_bytes = HDI_MAX((size_t)padded + 2 * ARENA_ALIGN, (size_t)ARENA_BLOCK_BYTES);
        block = hdi_alloc(arena->allocator, block_bytes);
        if (!block) return NULL;
        block->bytes = block_bytes;
        block->used = 2 * ARENA_ALIGN;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *pointer = (char *)block + block->used;
    block->used += (size_t)padded;
    return pointer;
}

char *hdi_arena_text(hdi_arena *arena, const char *text, size_t bytes) {
    char *copy = bytes < SIZE_MAX ? hdi_arena_alloc(arena, bytes + 1) : NULL;
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void hdi_arena_free(hdi_arena *arena) {
    for (arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        hdi_free(arena->allocator, block, block->bytes);
    }
    arena->blocks = NULL;
}
