/* place.c: memory. Named values get a slot each, constants one slot together; intermediates share slabs: largest first,
 * each at the lowest offset where no storage that lives at the same time lies. Slabs stay under the device's limits. */
#include "plan/schedule.h"
#include <stdlib.h>

static hd_status new_slot(hdi_schedule *schedule, hdi_storage_kind kind, uint64_t bytes, uint64_t tensor_bytes,
                          const char *name, uint32_t *out_slot) {
    if (!hdi_grow(schedule->arena.allocator, &schedule->slots, &schedule->slot_capacity,
                  (size_t)schedule->slot_count + 1, sizeof *schedule->slots))
        return HD_STATUS_OUT_OF_HOST_MEMORY;
    const hd_status status = hdi_cmds_slot(&schedule->cmds, bytes, out_slot);
    if (!status)
        schedule->slots[schedule->slot_count++] =
            (hdi_schedule_slot){ .kind = kind, .name = name, .bytes = bytes, .tensor_bytes = tensor_bytes };
    return status;
}

uint64_t hdi_schedule_alignment(const hdi_schedule *schedule) {
    return HDI_MAX(schedule->caps.binding_align, UINT64_C(256));
}

/* The largest single piece of memory that one binding can see whole. */
static uint64_t slab_limit(const hdi_schedule *schedule) {
    uint64_t limit = UINT64_MAX;
    if (schedule->caps.max_allocation_bytes) limit = HDI_MIN(limit, schedule->caps.max_allocation_bytes);
    return limit & ~(hdi_schedule_alignment(schedule) - 1);
}

static void find_lifetimes(hdi_schedule *schedule) {
    for (uint32_t s = 0; s < schedule->step_count; s++)
        for (uint32_t u = 0; u < schedule->steps[s].use_count; u++) {
            uint64_t offset = 0;
            hdi_storage *storage =
                &schedule->storages[hdi_schedule_root(schedule, schedule->steps[s].uses[u].storage, &offset)];
            storage->first_level = HDI_MIN(storage->first_level, schedule->steps[s].level);
            storage->last_level = HDI_MAX(storage->last_level, schedule->steps[s].level);
            storage->read |= (schedule->steps[s].uses[u].access & HDI_READ) != 0;
        }
}

static hd_status place_named(hdi_schedule *schedule, hd_error *error) {
    for (uint32_t i = 0; i < schedule->storage_count; i++) {
        hdi_storage *storage = &schedule->storages[i];
        if (!storage->name || storage->parent != HDI_NO_INDEX) continue;
        uint64_t bytes = (storage->bytes + 3) & ~UINT64_C(3);
        if (bytes > slab_limit(schedule))
            return hdi_fail(error, HD_STATUS_LIMIT,
                            "\"%s\" has %llu bytes and the device allocates at most %llu at once", storage->name,
                            (unsigned long long)bytes, (unsigned long long)slab_limit(schedule));
        if (new_slot(schedule, storage->kind, bytes, storage->bytes, storage->name, &storage->slot))
            return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a slot");
        schedule->slots[storage->slot].read = storage->read;
        uint64_t padded = (bytes + hdi_schedule_alignment(schedule) - 1) & ~(hdi_schedule_alignment(schedule) - 1);
        if (storage->kind == HDI_STORAGE_INPUT) schedule->memory.input_bytes += padded;
        if (storage->kind == HDI_STORAGE_STATE) schedule->memory.state_bytes += padded;
        if (storage->kind == HDI_STORAGE_OUTPUT) schedule->memory.output_bytes += padded;
    }
    return HD_OK;
}

static hd_status place_constants(hdi_schedule *schedule, hd_error *error) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < schedule->storage_count; i++)
        if (schedule->storages[i].kind == HDI_STORAGE_CONSTANT) {
            schedule->storages[i].offset = total;
            total += (schedule->storages[i].bytes + hdi_schedule_alignment(schedule) - 1) &
                     ~(hdi_schedule_alignment(schedule) - 1);
        }
    schedule->memory.constant_bytes = total;
    if (total == 0) return HD_OK;
    char *data = total <= SIZE_MAX ? hdi_arena_alloc(&schedule->arena, (size_t)total) : NULL;
    uint32_t slot;
    if (!data || new_slot(schedule, HDI_STORAGE_CONSTANT, total, total, NULL, &slot))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %llu bytes of constants",
                        (unsigned long long)total);
    for (uint32_t i = 0; i < schedule->storage_count; i++)
        if (schedule->storages[i].kind == HDI_STORAGE_CONSTANT) {
            schedule->storages[i].slot = slot;
            memcpy(data + schedule->storages[i].offset, schedule->storages[i].data,
                   (size_t)schedule->storages[i].bytes);
        }
    schedule->slots[slot].data = data;
    return HD_OK;
}

/* ---- intermediates ---- */

static bool is_scratch(const hdi_storage *s) {
    return s->kind == HDI_STORAGE_SCRATCH && s->parent == HDI_NO_INDEX && s->first_level <= s->last_level;
}

/* Largest first; equal sizes by who lives first, then by number, so that the order never depends on the sort. */
static int by_size(const void *a, const void *b) {
    const hdi_storage *x = *(hdi_storage *const *)a, *y = *(hdi_storage *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->first_level != y->first_level) return x->first_level < y->first_level ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool live_together(const hdi_storage *a, const hdi_storage *b) {
    return a->first_level <= b->last_level && b->first_level <= a->last_level;
}

/* The lowest offset in `slab` where `bytes` fit beside the placed storages that live at the same time. */
static uint64_t lowest_offset(hdi_storage *const *placed, uint32_t placed_count, const hdi_storage *storage,
                              uint32_t slab, uint64_t bytes, uint64_t align) {
    uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < placed_count; i++) {
            const hdi_storage *other = placed[i];
            if (other->slot != slab || !live_together(other, storage)) continue;
            uint64_t end = other->offset + ((other->bytes + align - 1) & ~(align - 1));
            if (offset < end && other->offset < offset + bytes) {
                offset = end;
                moved = true;
            }
        }
    }
    return offset;
}

static hd_status place_one(hdi_schedule *schedule, hdi_storage **sorted, uint32_t at, uint32_t first_slab,
                           hd_error *error) {
    hdi_storage *storage = sorted[at];
    uint64_t align = hdi_schedule_alignment(schedule), bytes = (storage->bytes + align - 1) & ~(align - 1);
    if (bytes > slab_limit(schedule))
        return hdi_fail(error, HD_STATUS_LIMIT,
                        "an intermediate has %llu bytes and the device allocates at most %llu at once",
                        (unsigned long long)storage->bytes, (unsigned long long)slab_limit(schedule));
    for (uint32_t slab = first_slab; slab < schedule->slot_count; slab++) {
        uint64_t offset = lowest_offset(sorted, at, storage, slab, bytes, align);
        if (offset > slab_limit(schedule) - bytes) continue;
        storage->slot = slab;
        storage->offset = offset;
        schedule->slots[slab].bytes = HDI_MAX(schedule->slots[slab].bytes, offset + bytes);
        return HD_OK;
    }
    if (new_slot(schedule, HDI_STORAGE_SCRATCH, bytes, 0, NULL, &storage->slot))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a slab");
    return HD_OK;
}

static hd_status place_scratch(hdi_schedule *schedule, hd_error *error) {
    hdi_storage **sorted = hdi_alloc(schedule->arena.allocator, schedule->storage_count * sizeof(hdi_storage *));
    if (!sorted)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u storages", schedule->storage_count);
    uint32_t count = 0, first_slab = schedule->slot_count;
    for (uint32_t i = 0; i < schedule->storage_count; i++)
        if (is_scratch(&schedule->storages[i])) {
            sorted[count++] = &schedule->storages[i];
            schedule->memory.unshared_bytes += (schedule->storages[i].bytes + hdi_schedule_alignment(schedule) - 1) &
                                               ~(hdi_schedule_alignment(schedule) - 1);
        }
    if (count > 0) qsort(sorted, count, sizeof *sorted, by_size);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = place_one(schedule, sorted, i, first_slab, error);
    hdi_free(schedule->arena.allocator, sorted, schedule->storage_count * sizeof(hdi_storage *));
    for (uint32_t slab = first_slab; slab < schedule->slot_count; slab++) {
        schedule->cmds.slot_bytes[slab] = schedule->slots[slab].bytes;
        schedule->memory.scratch_bytes += schedule->slots[slab].bytes;
    }
    return status;
}

hd_status hdi_schedule_place(hdi_schedule *schedule, hd_error *error) {
    find_lifetimes(schedule);
    hd_status status = place_named(schedule, error);
    if (!status) status = place_constants(schedule, error);
    if (!status) status = place_scratch(schedule, error);
    schedule->memory.total_bytes = schedule->memory.input_bytes + schedule->memory.state_bytes +
                                   schedule->memory.output_bytes + schedule->memory.scratch_bytes +
                                   schedule->memory.constant_bytes;
    return status;
}
