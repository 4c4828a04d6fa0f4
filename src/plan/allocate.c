/* allocate.c: memory. Named values get a slot each, constants one slot together; intermediates share slabs: largest
 * first, each at the lowest offset where no storage that lives at the same time lies. Slabs stay under the device's
 * limits. The time grows with the number of intermediates, and hardly with how many live at once. */
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
    for (uint32_t s = 0; s < schedule->step_count; s++) {
        const hdi_schedule_step *step = &schedule->steps[s];
        const uint64_t groups = (uint64_t)step->groups[0] * step->groups[1] * step->groups[2];
        for (uint32_t u = 0; u < step->use_count; u++) {
            hdi_storage *storage = &schedule->storages[hdi_schedule_root(schedule, step->uses[u].storage, NULL)];
            storage->first_level = HDI_MIN(storage->first_level, step->level);
            storage->last_level = HDI_MAX(storage->last_level, step->level);
            storage->read |= (step->uses[u].access & HDI_READ) != 0;
            storage->read_everywhere |=
                (step->everywhere >> u & 1u) && groups >= HDI_ACROSS_TRAFFIC / HDI_MAX(step->uses[u].bytes, 1);
        }
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
        schedule->slots[storage->slot].read_everywhere = storage->read_everywhere;
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

/* Addresses count through all slabs, one after the other, each as large as a slab may be. A list of spans is ascending,
 * and none of them touches the next. */
typedef struct span {
    uint64_t begin, end;
    uint32_t next; /* index + 1; 0: the last */
} span;

/* A node of a binary tree over the levels: what is taken at some level below it, and what at every level below it, each
 * a list's first span (index + 1; 0: nothing is). */
typedef struct node { uint32_t some, every; } node;

typedef struct taken {
    const hd_allocator *allocator;
    node    *nodes;  /* [1] is the root; below node i are 2 i and 2 i + 1 */
    uint32_t level_count;
    span    *spans;
    uint32_t span_count, span_capacity;
    uint32_t unused; /* a list of spans that belong to none */
    uint64_t slab_bytes;
} taken;

typedef struct range { uint32_t begin, end; } range;

/* Adds a span to the list, which becomes one with those that it touches. */
static bool add_span(taken *all, uint32_t *list, uint64_t begin, uint64_t end) {
    if (all->unused == 0) {
        if (!hdi_grow(all->allocator, &all->spans, &all->span_capacity, (size_t)all->span_count + 1, sizeof(span)))
            return false;
        all->unused = ++all->span_count;
        all->spans[all->unused - 1].next = 0;
    }
    span *const spans = all->spans;
    while (*list && spans[*list - 1].end < begin) list = &spans[*list - 1].next;
    while (*list && spans[*list - 1].begin <= end) {
        const uint32_t touched = *list;
        begin = HDI_MIN(begin, spans[touched - 1].begin);
        end = HDI_MAX(end, spans[touched - 1].end);
        *list = spans[touched - 1].next;
        spans[touched - 1].next = all->unused;
        all->unused = touched;
    }
    const uint32_t at = all->unused;
    all->unused = spans[at - 1].next;
    spans[at - 1] = (span){ begin, end, *list };
    *list = at;
    return true;
}

/* Takes begin to end at all levels of `lived`; `at` is the node over `over`. */
static bool take(taken *all, uint32_t at, range over, range lived, uint64_t begin, uint64_t end) {
    if (lived.end <= over.begin || over.end <= lived.begin) return true;
    const bool whole = lived.begin <= over.begin && over.end <= lived.end;
    if (!add_span(all, &all->nodes[at].some, begin, end)) return false;
    if (whole) return add_span(all, &all->nodes[at].every, begin, end);
    const uint32_t middle = over.begin + (over.end - over.begin) / 2;
    return take(all, 2 * at, (range){ over.begin, middle }, lived, begin, end) &&
           take(all, 2 * at + 1, (range){ middle, over.end }, lived, begin, end);
}

/* Lists whose spans together are all that is taken at some levels. Of each depth of the tree there are at most 4. */
typedef struct obstacles {
    uint32_t lists[4 * 32];
    uint32_t count;
} obstacles;

static void gather(const taken *all, uint32_t at, range over, range lived, obstacles *out) {
    const node *n = &all->nodes[at];
    if (lived.end <= over.begin || over.end <= lived.begin || n->some == 0) return;
    const bool whole = lived.begin <= over.begin && over.end <= lived.end;
    const uint32_t list = whole ? n->some : n->every;
    if (list) out->lists[out->count++] = list;
    if (whole) return;
    const uint32_t middle = over.begin + (over.end - over.begin) / 2;
    gather(all, 2 * at, (range){ over.begin, middle }, lived, out);
    gather(all, 2 * at + 1, (range){ middle, over.end }, lived, out);
}

/* The lowest address where `bytes` fit into a slab beside the obstacles, whose lists are used up to there; false where
 * addresses end before. */
static bool lowest_address(const taken *all, obstacles *around, uint64_t bytes, uint64_t *out_at) {
    uint64_t at = 0, end;
    for (bool moved = true; moved;) {
        const uint64_t within = at % all->slab_bytes;
        if (within > all->slab_bytes - bytes && !hdi_add_u64(at, all->slab_bytes - within, &at)) return false;
        moved = false;
        for (uint32_t i = 0; i < around->count; i++) {
            uint32_t *list = &around->lists[i];
            while (*list && all->spans[*list - 1].end <= at) *list = all->spans[*list - 1].next;
            if (!hdi_add_u64(at, bytes, &end)) return false;
            if (*list == 0 || all->spans[*list - 1].begin >= end) continue;
            at = all->spans[*list - 1].end;
            moved = true;
        }
    }
    *out_at = at;
    return at <= UINT64_MAX - bytes;
}

static hd_status place_one(hdi_schedule *schedule, taken *all, hdi_storage *storage, uint32_t first_slab,
                           hd_error *error) {
    const uint64_t align = hdi_schedule_alignment(schedule), bytes = (storage->bytes + align - 1) & ~(align - 1);
    if (bytes > all->slab_bytes)
        return hdi_fail(error, HD_STATUS_LIMIT,
                        "an intermediate has %llu bytes and the device allocates at most %llu at once",
                        (unsigned long long)storage->bytes, (unsigned long long)all->slab_bytes);
    const range every = { 0, all->level_count }, lived = { storage->first_level, storage->last_level + 1 };
    obstacles around = { .count = 0 };
    uint64_t at;
    gather(all, 1, every, lived, &around);
    if (!lowest_address(all, &around, bytes, &at))
        return hdi_fail(error, HD_STATUS_LIMIT, "intermediates of more than 2^64 bytes");
    if (!take(all, 1, every, lived, at, at + bytes))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place an intermediate");
    storage->slot = first_slab + (uint32_t)(at / all->slab_bytes);
    storage->offset = at % all->slab_bytes;
    if (storage->slot == schedule->slot_count &&
        new_slot(schedule, HDI_STORAGE_SCRATCH, bytes, 0, NULL, &storage->slot))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a slab");
    schedule->slots[storage->slot].bytes = HDI_MAX(schedule->slots[storage->slot].bytes, storage->offset + bytes);
    return HD_OK;
}

/* Places the storages, in their order. */
static hd_status place_each(hdi_schedule *schedule, hdi_storage *const *sorted, uint32_t count, hd_error *error) {
    taken all = { .allocator = schedule->arena.allocator, .level_count = schedule->level_count,
                  .slab_bytes = slab_limit(schedule) };
    const size_t room = 4 * (size_t)all.level_count;
    const uint32_t first_slab = schedule->slot_count;
    hd_status status = HD_OK;
    all.nodes = hdi_alloc(all.allocator, room * sizeof *all.nodes);
    if (!all.nodes) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u storages", count);
    for (uint32_t i = 0; i < count && !status; i++) status = place_one(schedule, &all, sorted[i], first_slab, error);
    hdi_free(all.allocator, all.spans, all.span_capacity * sizeof *all.spans);
    hdi_free(all.allocator, all.nodes, room * sizeof *all.nodes);
    return status;
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
    const hd_status status = count > 0 ? place_each(schedule, sorted, count, error) : HD_OK;
    hdi_free(schedule->arena.allocator, sorted, schedule->storage_count * sizeof(hdi_storage *));
    for (uint32_t slab = first_slab; slab < schedule->slot_count; slab++) {
        schedule->cmds.slot_bytes[slab] = schedule->slots[slab].bytes;
        schedule->memory.scratch_bytes += schedule->slots[slab].bytes;
    }
    return status;
}

hd_status hdi_schedule_allocate(hdi_schedule *schedule, hd_error *error) {
    find_lifetimes(schedule);
    hd_status status = place_named(schedule, error);
    if (!status) status = place_constants(schedule, error);
    if (!status) status = place_scratch(schedule, error);
    schedule->memory.total_bytes = schedule->memory.input_bytes + schedule->memory.state_bytes +
                                   schedule->memory.output_bytes + schedule->memory.scratch_bytes +
                                   schedule->memory.constant_bytes;
    return status;
}
