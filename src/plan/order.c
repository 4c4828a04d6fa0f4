/* order.c: levels. A step stands one level after the last step whose bytes it must wait for (read after write, write
 * after read, write after write). What is made of inputs alone waits until the level before its first use, or all
 * weights that have to be converted would lie there at once. Steps are then sorted by level, in their old order within
 * one: every level can run at once. In the program's order no step starts before the one in front of it, because that
 * shortens lifetimes; a tight plan runs one step a level. A measured one keeps the order too, and runs at once what
 * reads the same: as the layers of a model follow each other, and the products of one side by side. */
#include "plan/schedule.h"
#include <stdlib.h>

/* Where a use begins or ends. All of them, sorted, divide the storages into pieces that a step uses whole or not at
 * all. */
typedef struct border {
    uint32_t root;
    uint64_t at;
} border;

/* A node of a binary tree over the pieces: from which level on they are free, for those who read them ([0]: written
 * before) and for those who write them ([1]: read or written before). */
typedef struct node {
    uint32_t most[2];  /* of any piece below it */
    uint32_t whole[2]; /* of every piece below it */
} node;

typedef struct pieces {
    border  *borders;
    uint32_t count;
    node    *nodes;   /* [1] is the root; below node i are 2 i and 2 i + 1 */
    size_t   room;
} pieces;

typedef struct range { uint32_t begin, end; } range;

static int by_place(const void *a, const void *b) {
    const border *x = a, *y = b;
    return x->root != y->root ? (x->root > y->root) - (x->root < y->root) : (x->at > y->at) - (x->at < y->at);
}

/* The first border that does not lie before it. */
static uint32_t find(const pieces *all, border wanted) {
    uint32_t low = 0, high = all->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (by_place(&all->borders[middle], &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static range pieces_of(const hdi_schedule *schedule, const pieces *all, const hdi_use *use) {
    border at = { 0, use->offset };
    at.root = hdi_schedule_root(schedule, use->storage, &at.at);
    const uint32_t begin = find(all, at);
    at.at += use->bytes;
    return (range){ begin, find(all, at) };
}

static bool divide(const hdi_schedule *schedule, pieces *all) {
    const hd_allocator *allocator = schedule->arena.allocator;
    size_t uses = 0;
    for (uint32_t s = 0; s < schedule->step_count; s++) uses += schedule->steps[s].use_count;
    all->room = 2 * uses + 1;
    if (all->room > UINT32_MAX / 4) return false;
    all->borders = hdi_alloc(allocator, all->room * sizeof *all->borders);
    all->nodes = hdi_alloc(allocator, 4 * all->room * sizeof *all->nodes);
    if (!all->borders || !all->nodes) return false;
    for (uint32_t s = 0; s < schedule->step_count; s++)
        for (uint32_t u = 0; u < schedule->steps[s].use_count; u++) {
            const hdi_use *use = &schedule->steps[s].uses[u];
            border at = { 0, use->offset };
            at.root = hdi_schedule_root(schedule, use->storage, &at.at);
            all->borders[all->count++] = at;
            at.at += use->bytes;
            all->borders[all->count++] = at;
        }
    qsort(all->borders, all->count, sizeof *all->borders, by_place);
    return true;
}

/* The level from which on all of `wanted` is free; `at` is the node over `over`. */
static uint32_t free_from(const pieces *all, uint32_t at, range over, range wanted, bool to_write) {
    const node *n = &all->nodes[at];
    if (wanted.end <= over.begin || over.end <= wanted.begin || n->most[to_write] == 0) return 0;
    if (wanted.begin <= over.begin && over.end <= wanted.end) return n->most[to_write];
    const uint32_t middle = over.begin + (over.end - over.begin) / 2;
    const uint32_t left = free_from(all, 2 * at, (range){ over.begin, middle }, wanted, to_write);
    const uint32_t right = free_from(all, 2 * at + 1, (range){ middle, over.end }, wanted, to_write);
    return HDI_MAX(n->whole[to_write], HDI_MAX(left, right));
}

/* A step that reads or writes `used` ends before `level`. */
static void occupy(pieces *all, uint32_t at, range over, range used, bool writes, uint32_t level) {
    node *n = &all->nodes[at];
    if (used.end <= over.begin || over.end <= used.begin) return;
    const bool whole = used.begin <= over.begin && over.end <= used.end;
    for (uint32_t who = writes ? 0 : 1; who < 2; who++) {
        n->most[who] = HDI_MAX(n->most[who], level);
        if (whole) n->whole[who] = HDI_MAX(n->whole[who], level);
    }
    if (whole) return;
    const uint32_t middle = over.begin + (over.end - over.begin) / 2;
    occupy(all, 2 * at, (range){ over.begin, middle }, used, writes, level);
    occupy(all, 2 * at + 1, (range){ middle, over.end }, used, writes, level);
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
    if (s == 0 || !(schedule->options.in_order || schedule->options.one_by_one)) return level;
    const hdi_schedule_step *before = &schedule->steps[s - 1];
    if (!schedule->options.one_by_one) return HDI_MAX(level, before->level);
    return HDI_MAX(level, before->level + !read_the_same(schedule, before, &schedule->steps[s]));
}

static void assign_levels(hdi_schedule *schedule, pieces *all) {
    const range every = { 0, all->count };
    for (uint32_t s = 0; s < schedule->step_count; s++) {
        hdi_schedule_step *step = &schedule->steps[s];
        uint32_t level = 0;
        for (uint32_t u = 0; u < step->use_count; u++) {
            const hdi_use *use = &step->uses[u];
            const uint32_t least =
                free_from(all, 1, every, pieces_of(schedule, all, use), (use->access & HDI_WRITE) != 0);
            level = HDI_MAX(level, least);
        }
        step->level = level_of(schedule, s, level);
        schedule->level_count = HDI_MAX(schedule->level_count, step->level + 1);
        for (uint32_t u = 0; u < step->use_count; u++) {
            const hdi_use *use = &step->uses[u];
            occupy(all, 1, every, pieces_of(schedule, all, use), (use->access & HDI_WRITE) != 0, step->level + 1);
        }
    }
}

/* Does the step read nothing but what nobody writes, and write one storage of the plan's own? Which root that is, or
 * HDI_NO_INDEX. */
static uint32_t made_of_inputs(const hdi_schedule *schedule, const hdi_schedule_step *step) {
    uint32_t written = HDI_NO_INDEX;
    for (uint32_t u = 0; u < step->use_count; u++) {
        const uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, NULL);
        const hdi_storage_kind kind = schedule->storages[root].kind;
        if (step->uses[u].access == HDI_READ && (kind == HDI_STORAGE_INPUT || kind == HDI_STORAGE_CONSTANT)) continue;
        if (step->uses[u].access != HDI_WRITE || kind != HDI_STORAGE_SCRATCH || written != HDI_NO_INDEX)
            return HDI_NO_INDEX;
        written = root;
    }
    return written;
}

static bool put_off(hdi_schedule *schedule) {
    const hd_allocator *allocator = schedule->arena.allocator;
    if (schedule->tight || schedule->options.in_order || schedule->options.one_by_one) return true;
    const size_t bytes = ((size_t)schedule->storage_count + 1) * sizeof(uint32_t);
    uint32_t *first = hdi_alloc(allocator, bytes); /* by root: the first level that uses it; 0: none but its making */
    if (!first) return false;
    for (uint32_t s = schedule->step_count; s-- > 0;) {
        hdi_schedule_step *step = &schedule->steps[s];
        const uint32_t made = made_of_inputs(schedule, step);
        if (made != HDI_NO_INDEX && first[made] > step->level + 1) step->level = first[made] - 1;
        for (uint32_t u = 0; u < step->use_count; u++) {
            const uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, NULL);
            if (first[root] == 0 || step->level < first[root]) first[root] = step->level;
        }
    }
    hdi_free(allocator, first, bytes);
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
    pieces all = { 0 };
    bool done = divide(schedule, &all);
    if (done) assign_levels(schedule, &all);
    done = done && put_off(schedule) && (schedule->step_count == 0 || sort_by_level(schedule));
    hdi_free(allocator, all.borders, all.room * sizeof *all.borders);
    hdi_free(allocator, all.nodes, 4 * all.room * sizeof *all.nodes);
    return done ? HD_OK
                : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to order %u steps", schedule->step_count);
}
