/* order.c: levels. A step stands one level after the last step whose bytes it must wait for (read after write, write
 * after read, write after write). Steps are then sorted by level, in their old order within one: every level can run
 * at once. A tight plan keeps the program's order, a step a level, because that shortens lifetimes. A measured one keeps it too,
 * and runs at once what reads the same: as the layers of a model follow each other, and the products of one side by side. */
#include "plan/schedule.h"

/* Who touched a storage so far. */
typedef struct touch {
    uint32_t step, next; /* next: index + 1 of the storage's earlier touch, 0: none */
    uint64_t offset, bytes;
    uint32_t access;
} touch;

typedef struct touches {
    touch    *items;
    uint32_t  count, capacity;
    uint32_t *heads; /* for each storage, index + 1 of its latest touch */
} touches;

static bool overlap(const touch *a, uint64_t offset, uint64_t bytes) {
    return a->offset < offset + bytes && offset < a->offset + a->bytes;
}

/* The level that one use of a step asks for, given all earlier steps. */
static uint32_t level_for(const hdi_schedule *schedule, const touches *all, uint32_t root, uint64_t offset, const hdi_use *use) {
    uint32_t level = 0;
    for (uint32_t at = all->heads[root]; at != 0; at = all->items[at - 1].next) {
        const touch *earlier = &all->items[at - 1];
        if (((earlier->access | use->access) & HDI_WRITE) && overlap(earlier, offset, use->bytes))
            level = HDI_MAX(level, schedule->steps[earlier->step].level + 1);
    }
    return level;
}

static bool remember(hdi_schedule *schedule, touches *all, uint32_t step, uint32_t root, uint64_t offset, const hdi_use *use) {
    if (!hdi_grow(schedule->arena.allocator, &all->items, &all->capacity, (size_t)all->count + 1, sizeof *all->items)) return false;
    all->items[all->count] = (touch){ step, all->heads[root], offset, use->bytes, use->access };
    all->heads[root] = ++all->count;
    return true;
}

/* Do both steps begin with the same bytes? */
static bool read_the_same(const hdi_schedule *schedule, const hdi_schedule_step *a, const hdi_schedule_step *b) {
    uint64_t at = a->uses[0].offset, other = b->uses[0].offset;
    const uint32_t root = hdi_schedule_root(schedule, a->uses[0].storage, &at);
    return root == hdi_schedule_root(schedule, b->uses[0].storage, &other) && at == other &&
           ((a->uses[0].access | b->uses[0].access) & HDI_WRITE) == 0;
}

/* The level of step `s`, which has to wait until `level`. */
static uint32_t level_of(const hdi_schedule *schedule, uint32_t s, uint32_t level) {
    if (schedule->tight) return s;
    if (!schedule->options.one_by_one || s == 0) return level;
    const hdi_schedule_step *before = &schedule->steps[s - 1];
    return HDI_MAX(level, before->level + !read_the_same(schedule, before, &schedule->steps[s]));
}

static bool assign_levels(hdi_schedule *schedule, touches *all) {
    for (uint32_t s = 0; s < schedule->step_count; s++) {
        hdi_schedule_step *step = &schedule->steps[s];
        uint32_t level = 0;
        for (uint32_t u = 0; u < step->use_count; u++) {
            uint64_t offset = step->uses[u].offset;
            uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, &offset);
            level = HDI_MAX(level, level_for(schedule, all, root, offset, &step->uses[u]));
        }
        step->level = level_of(schedule, s, level);
        schedule->level_count = HDI_MAX(schedule->level_count, step->level + 1);
        for (uint32_t u = 0; u < step->use_count; u++) {
            uint64_t offset = step->uses[u].offset;
            uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, &offset);
            if (!remember(schedule, all, s, root, offset, &step->uses[u])) return false;
        }
    }
    return true;
}

/* Counting sort by level, stable. */
static bool sort_by_level(hdi_schedule *schedule) {
    const hd_allocator *allocator = schedule->arena.allocator;
    hdi_schedule_step *sorted = hdi_alloc(allocator, schedule->step_capacity * sizeof *sorted);
    uint32_t *at = hdi_alloc(allocator, ((size_t)schedule->level_count + 1) * sizeof *at);
    const bool done = sorted && at;
    if (done) {
        for (uint32_t s = 0; s < schedule->step_count; s++) at[schedule->steps[s].level + 1]++;
        for (uint32_t l = 0; l < schedule->level_count; l++) at[l + 1] += at[l];
        for (uint32_t s = 0; s < schedule->step_count; s++) sorted[at[schedule->steps[s].level]++] = schedule->steps[s];
        hdi_schedule_step *unsorted = schedule->steps;
        schedule->steps = sorted;
        sorted = unsorted;
    }
    hdi_free(allocator, at, ((size_t)schedule->level_count + 1) * sizeof *at);
    hdi_free(allocator, sorted, schedule->step_capacity * sizeof *sorted);
    return done;
}

hd_status hdi_schedule_order(hdi_schedule *schedule, hd_error *error) {
    const hd_allocator *allocator = schedule->arena.allocator;
    touches all = { 0 };
    all.heads = hdi_alloc(allocator, (schedule->storage_count + 1) * sizeof *all.heads);
    bool done = all.heads && assign_levels(schedule, &all) && (schedule->step_count == 0 || sort_by_level(schedule));
    hdi_free(allocator, all.heads, (schedule->storage_count + 1) * sizeof *all.heads);
    hdi_free(allocator, all.items, all.capacity * sizeof *all.items);
    return done ? HD_OK : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to order %u steps", schedule->step_count);
}
