/* holdings.c: what lies on a device: a hash table by the addresses of its memories, with linear probing. Removing moves
 * the entries behind it up into the gap, so that a search may end at the first free place. */
#include "device/device.h"
#include <stdlib.h>

static uint32_t home_of(const hdi_holdings *holdings, const hdi_memory *memory) {
    return (uint32_t)(((uint64_t)(uintptr_t)memory * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (holdings->capacity - 1);
}

static hdi_holding *place_of(const hdi_holdings *holdings, const hdi_memory *memory) {
    uint32_t at = home_of(holdings, memory);
    while (holdings->of[at].memory && holdings->of[at].memory != memory) at = (at + 1) & (holdings->capacity - 1);
    return &holdings->of[at];
}

/* Three quarters at most are taken. */
static bool make_room(hdi_holdings *holdings, const hd_allocator *allocator) {
    if (holdings->count + 1 <= holdings->capacity / 4 * 3) return true;
    hdi_holdings more = { .capacity = holdings->capacity ? 2 * holdings->capacity : 64, .count = holdings->count };
    more.of = more.capacity ? hdi_alloc(allocator, more.capacity * sizeof *more.of) : NULL;
    if (!more.of) return false;
    for (uint32_t i = 0; i < holdings->capacity; i++)
        if (holdings->of[i].memory) *place_of(&more, holdings->of[i].memory) = holdings->of[i];
    hdi_holdings_free(holdings, allocator);
    *holdings = more;
    return true;
}

bool hdi_holdings_add(hdi_holdings *holdings, const hd_allocator *allocator, const hdi_memory *memory,
                      const hdi_alloc_desc *desc, bool in_place) {
    if (!make_room(holdings, allocator)) return false;
    hdi_holding *place = place_of(holdings, memory);
    *place = (hdi_holding){ memory, { .kind = desc->kind, .bytes = desc->bytes, .in_place = in_place } };
    snprintf(place->info.label, sizeof place->info.label, "%s", desc->label ? desc->label : "");
    holdings->count++;
    return true;
}

const hd_memory_info *hdi_holdings_find(const hdi_holdings *holdings, const hdi_memory *memory) {
    const hdi_holding *place = holdings->capacity ? place_of(holdings, memory) : NULL;
    return memory && place && place->memory ? &place->info : NULL;
}

void hdi_holdings_remove(hdi_holdings *holdings, const hdi_memory *memory) {
    const uint32_t mask = holdings->capacity - 1;
    hdi_holding *gap = holdings->capacity ? place_of(holdings, memory) : NULL;
    if (!gap || !gap->memory) return;
    for (uint32_t at = (uint32_t)(gap - holdings->of + 1) & mask; holdings->of[at].memory; at = (at + 1) & mask) {
        const uint32_t from = (uint32_t)(gap - holdings->of), home = home_of(holdings, holdings->of[at].memory);
        if (((at - home) & mask) < ((at - from) & mask)) continue; /* its home is behind the gap */
        *gap = holdings->of[at];
        gap = &holdings->of[at];
    }
    *gap = (hdi_holding){ 0 };
    holdings->count--;
}

void hdi_holdings_free(hdi_holdings *holdings, const hd_allocator *allocator) {
    hdi_free(allocator, holdings->of, holdings->capacity * sizeof *holdings->of);
    *holdings = (hdi_holdings){ 0 };
}

static int larger_first(const void *a, const void *b) {
    const uint64_t x = ((const hd_memory_info *)a)->bytes, y = ((const hd_memory_info *)b)->bytes;
    return (x < y) - (x > y);
}

hd_status hdi_device_list_heaps(hd_device *device, hd_heap *out_heaps, size_t *count, hd_error *error) {
    hd_heap heaps[HD_MAX_HEAPS];
    const size_t room = out_heaps ? *count : 0;
    *count = hdi_device_heaps(device, heaps);
    for (size_t i = 0; i < HDI_MIN(room, *count); i++) out_heaps[i] = heaps[i];
    if (*count) return out_heaps && room < *count ? HD_STATUS_LIMIT : HD_OK;
    return hdi_fail(error, device->lost ? HD_STATUS_DEVICE_LOST : HD_STATUS_UNSUPPORTED, "%s %s",
                    device->found.info.id,
                    device->lost ? "was lost" : "has a driver that does not tell how much memory is taken");
}

hd_status hdi_device_memory(hd_device *device, hd_memory_info *out_infos, size_t *count, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    const size_t room = out_infos ? *count : 0;
    hdi_mutex_lock(&device->lock);
    const uint32_t all = device->holdings.count;
    *count = all;
    hd_memory_info *infos = room && all ? hdi_alloc(allocator, all * sizeof *infos) : NULL;
    for (uint32_t i = 0, got = 0; infos && i < device->holdings.capacity; i++)
        if (device->holdings.of[i].memory) infos[got++] = device->holdings.of[i].info;
    hdi_mutex_unlock(&device->lock);
    if (room && all && !infos)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a list of %u allocations", all);
    if (infos) {
        qsort(infos, all, sizeof *infos, larger_first);
        memcpy(out_infos, infos, HDI_MIN(room, (size_t)all) * sizeof *infos);
        hdi_free(allocator, infos, all * sizeof *infos);
    }
    return out_infos && room < all ? HD_STATUS_LIMIT : HD_OK;
}
