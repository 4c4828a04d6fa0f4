/* cut.c: the minimum cut of a directed graph by Dinic's algorithm: paths of least length first, found by breadth, used
 * up by depth without recursion. The same graph gives the same cut: of several least ones that with the fewest nodes on
 * the source's side. */
#include "plan/choose.h"

void hdi_cut_begin(hdi_cut *cut, const hd_allocator *allocator) {
    *cut = (hdi_cut){ .allocator = allocator, .node_count = 2 };
}

uint32_t hdi_cut_node(hdi_cut *cut) { return cut->node_count++; }

void hdi_cut_edge_add(hdi_cut *cut, uint32_t from, uint32_t to, uint64_t room) {
    const size_t wanted = (size_t)cut->edge_count + 2;
    if (room == 0 || from == to || cut->failed) return;
    if (!hdi_grow(cut->allocator, &cut->edges, &cut->edge_capacity, wanted, sizeof *cut->edges) ||
        !hdi_grow(cut->allocator, &cut->from, &cut->from_capacity, wanted, sizeof *cut->from)) {
        cut->failed = true;
        return;
    }
    cut->from[cut->edge_count] = from;
    cut->edges[cut->edge_count++] = (hdi_cut_edge){ to, room };
    cut->from[cut->edge_count] = to;
    cut->edges[cut->edge_count++] = (hdi_cut_edge){ from, 0 };
}

void hdi_cut_end(hdi_cut *cut) {
    hdi_free(cut->allocator, cut->edges, cut->edge_capacity * sizeof *cut->edges);
    hdi_free(cut->allocator, cut->from, cut->from_capacity * sizeof *cut->from);
    *cut = (hdi_cut){ .allocator = cut->allocator };
}

/* The edges of each node lie together in `order`, those of node n from first[n] to first[n + 1]. */
typedef struct flow {
    hdi_cut  *cut;
    uint32_t *first, *order, *level, *next, *queue, *path;
} flow;

static void sort_edges(flow *f) {
    const hdi_cut *cut = f->cut;
    for (uint32_t i = 0; i < cut->edge_count; i++) f->first[cut->from[i] + 1]++;
    for (uint32_t n = 0; n < cut->node_count; n++) f->first[n + 1] += f->first[n];
    for (uint32_t n = 0; n < cut->node_count; n++) f->next[n] = f->first[n];
    for (uint32_t i = 0; i < cut->edge_count; i++) f->order[f->next[cut->from[i]]++] = i;
}

/* Distances from the source over edges with room; UINT32_MAX: out of reach. True where the sink is reached. */
static bool find_levels(flow *f) {
    const hdi_cut *cut = f->cut;
    for (uint32_t n = 0; n < cut->node_count; n++) f->level[n] = UINT32_MAX;
    uint32_t begin = 0, end = 0;
    f->level[HDI_CUT_SOURCE] = 0;
    f->queue[end++] = HDI_CUT_SOURCE;
    while (begin < end) {
        const uint32_t node = f->queue[begin++];
        for (uint32_t i = f->first[node]; i < f->first[node + 1]; i++) {
            const hdi_cut_edge *edge = &cut->edges[f->order[i]];
            if (edge->room == 0 || f->level[edge->to] != UINT32_MAX) continue;
            f->level[edge->to] = f->level[node] + 1;
            f->queue[end++] = edge->to;
        }
    }
    return f->level[HDI_CUT_SINK] != UINT32_MAX;
}

/* Sends as much as fits along the path, and returns the number of its edges before the first that is now full. */
static uint32_t send(flow *f, uint32_t length) {
    uint64_t room = UINT64_MAX;
    uint32_t kept = length;
    for (uint32_t i = 0; i < length; i++) room = HDI_MIN(room, f->cut->edges[f->path[i]].room);
    for (uint32_t i = length; i-- > 0;) {
        f->cut->edges[f->path[i]].room -= room;
        f->cut->edges[f->path[i] ^ 1u].room += room;
        if (f->cut->edges[f->path[i]].room == 0) kept = i;
    }
    return kept;
}

static bool leads_on(const flow *f, uint32_t node, uint32_t edge) {
    return f->cut->edges[edge].room > 0 && f->level[f->cut->edges[edge].to] == f->level[node] + 1;
}

/* Uses up every path of the present least length. */
static void use_paths(flow *f) {
    for (uint32_t n = 0; n < f->cut->node_count; n++) f->next[n] = f->first[n];
    uint32_t length = 0, node = HDI_CUT_SOURCE;
    for (;;) {
        if (node == HDI_CUT_SINK) {
            length = send(f, length);
            node = f->cut->edges[f->path[length] ^ 1u].to;
            continue;
        }
        while (f->next[node] < f->first[node + 1] && !leads_on(f, node, f->order[f->next[node]])) f->next[node]++;
        if (f->next[node] < f->first[node + 1]) {
            f->path[length] = f->order[f->next[node]];
            node = f->cut->edges[f->path[length++]].to;
            continue;
        }
        if (node == HDI_CUT_SOURCE) return;
        f->level[node] = UINT32_MAX; /* a dead end */
        node = f->cut->edges[f->path[--length] ^ 1u].to;
    }
}

bool hdi_cut_make(hdi_cut *cut, uint8_t *out_side) {
    const uint32_t nodes = cut->node_count;
    const size_t words = 5 * ((size_t)nodes + 1) + cut->edge_count;
    uint32_t *room = cut->failed ? NULL : hdi_alloc(cut->allocator, words * sizeof *room);
    if (!room) return false;
    flow f = { .cut = cut,
               .first = room,
               .level = room + nodes + 1,
               .next = room + 2 * (nodes + 1),
               .queue = room + 3 * (nodes + 1),
               .path = room + 4 * (nodes + 1),
               .order = room + 5 * (nodes + 1) };
    sort_edges(&f);
    while (find_levels(&f)) use_paths(&f);
    for (uint32_t n = 0; n < nodes; n++) out_side[n] = f.level[n] == UINT32_MAX;
    hdi_free(cut->allocator, room, words * sizeof *room);
    return true;
}
