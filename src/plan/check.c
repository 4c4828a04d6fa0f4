/* check.c: what must hold of every schedule when it comes from the planner. It is found anew from the steps, without
 * what the stages counted: values lie inside their slots; two that are needed at one time share no byte; and nothing is
 * read that no step wrote. */
#include "plan/schedule.h"
#include <stdlib.h>

/* Where and when an intermediate is needed. */
typedef struct lived {
    uint32_t slot, storage;
    uint64_t begin, end;
    uint32_t first, last, written; /* levels: of the first use, of the last, and of the first write */
} lived;

static int by_place(const void *one, const void *two) {
    const lived *a = one, *b = two;
    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void look_at_uses(const hdi_schedule *schedule, lived *all) {
    for (uint32_t i = 0; i < schedule->storage_count; i++)
        all[i] = (lived){ .storage = i, .first = UINT32_MAX, .written = UINT32_MAX };
    for (uint32_t s = 0; s < schedule->step_count; s++) {
        const hdi_schedule_step *step = &schedule->steps[s];
        for (uint32_t u = 0; u < step->use_count; u++) {
            lived *at = &all[hdi_schedule_root(schedule, step->uses[u].storage, NULL)];
            at->first = HDI_MIN(at->first, step->level);
            at->last = HDI_MAX(at->last, step->level);
            if (step->uses[u].access & HDI_WRITE) at->written = HDI_MIN(at->written, step->level);
        }
    }
}

/* Keeps those that share memory, in the order of their places; their number. */
static hd_status place_all(const hdi_schedule *schedule, lived *all, uint32_t *out_count, hd_error *error) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->storage_count; i++) {
        const hdi_storage *storage = &schedule->storages[i];
        lived at = all[i];
        if (storage->kind != HDI_STORAGE_SCRATCH || storage->parent != HDI_NO_INDEX || at.first > at.last) continue;
        at.slot = storage->slot;
        at.begin = storage->offset;
        if (at.slot >= schedule->slot_count || !hdi_add_u64(at.begin, storage->bytes, &at.end) ||
            at.end > schedule->slots[at.slot].bytes || at.begin % hdi_schedule_alignment(schedule))
            return hdi_fail(error, HD_STATUS_INTERNAL, "intermediate %u does not lie in its slot", i);
        if (at.written > at.first)
            return hdi_fail(error, HD_STATUS_INTERNAL, "intermediate %u is read before it is written", i);
        all[count++] = at;
    }
    if (count > 1) qsort(all, count, sizeof *all, by_place);
    *out_count = count;
    return HD_OK;
}

hd_status hdi_schedule_check(const hdi_schedule *schedule, hd_error *error) {
    const hd_allocator *allocator = schedule->arena.allocator;
    lived *all = hdi_alloc(allocator, schedule->storage_count * sizeof *all);
    uint32_t count = 0;
    if (!all && schedule->storage_count)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for checking a plan");
    look_at_uses(schedule, all);
    hd_status status = place_all(schedule, all, &count, error);
    for (uint32_t i = 0; i < count && !status; i++)
        for (uint32_t k = i + 1; k < count && all[k].slot == all[i].slot && all[k].begin < all[i].end && !status; k++)
            if (all[k].first <= all[i].last && all[i].first <= all[k].last)
                status = hdi_fail(error, HD_STATUS_INTERNAL, "intermediates %u and %u share bytes at one time",
                                  all[i].storage, all[k].storage);
    hdi_free(allocator, all, schedule->storage_count * sizeof *all);
    return status ? status : hdi_cmds_check(&schedule->cmds, error);
}
