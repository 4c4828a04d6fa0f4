/* top_k.c: glsl/top_k.comp for a CPU: one pass over a row, or a part of one, with a list of the best so far. */
#include "kernels/cpu/rows.h"

typedef struct pair { uint32_t key, index; } pair; /* as in memory between two launches */

/* Keys of `count` <= LANES elements from `first` on. */
static void load_keys(uint32_t type, const void *x, uint64_t first, uint32_t count, uint32_t *keys) {
    float room[LANES];
    const uint32_t *bits = type == HDI_TYPE_I32 ? (const uint32_t *)x + first
                           : (const uint32_t *)(const void *)floats_at(type, x, first, count, room);
    if (type == HDI_TYPE_I32) {
        for (uint32_t l = 0; l < count; l++) keys[l] = bits[l] ^ EXACT_SIGN;
        return;
    }
    /* -0 as 0 */
    for (uint32_t l = 0; l < count; l++)
        keys[l] = (uint32_t)key_of(bits[l] & (0u - (uint32_t)(bits[l] != EXACT_SIGN))) ^ EXACT_SIGN;
}

/* Elements come in the order of their indices, so an equal one goes behind. The number of those in the list. */
static uint32_t put(pair *best, uint32_t used, uint32_t k, uint32_t key, uint32_t index) {
    uint32_t low = 0, high = used;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (best[middle].key >= key) low = middle + 1;
        else high = middle;
    }
    if (used < k) used++;
    memmove(best + low + 1, best + low, (used - 1 - low) * sizeof *best);
    best[low] = (pair){ key, index };
    return used;
}

HDCPU_KERNEL(top_k) {
    (void)group_z;
    const uint32_t *push = call->push, rows = push[0], n = push[1], k = push[2], parts = push[3],
                   type = call->spec[HDI_TOP_K_TYPE];
    const uint32_t stage = call->spec[HDI_TOP_K_STAGE], group = group_number(group_x, group_y);
    if (group >= rows * parts) return;
    const uint32_t begin = group % parts * push[4], count = HDI_MIN(push[4], n - begin);
    const uint64_t first = (uint64_t)(group / parts) * n + begin;
    const pair *pairs = (const pair *)call->bindings[0] + first;
    pair best[HD_MAX_TOP_K];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, count - i);
        uint32_t keys[LANES], largest = 0;
        if (stage & 2) for (uint32_t l = 0; l < width; l++) keys[l] = pairs[i + l].key;
        else load_keys(type, call->bindings[0], first + i, width, keys);
        for (uint32_t l = 0; l < width; l++) largest = keys[l] > largest ? keys[l] : largest;
        if (used == k && largest <= best[k - 1].key) continue;
        for (uint32_t l = 0; l < width; l++)
            if (used < k || keys[l] > best[k - 1].key)
                used = put(best, used, k, keys[l], stage & 2 ? pairs[i + l].index : begin + i + l);
    }
    for (; used < k; used++) best[used] = (pair){ 0, UINT32_MAX };
    for (uint32_t i = 0; i < k; i++) {
        const uint64_t at = (uint64_t)group * k + i;
        if (stage & 1) ((pair *)call->bindings[1])[at] = best[i];
        else ((uint32_t *)call->bindings[1])[at] = best[i].index;
    }
}
