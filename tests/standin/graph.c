/* graph.c: graphs, which come from captured streams. A graph's tasks run one at a time, and of those that may be next always
 * the one that was added last: where a dependency is missing, results are wrong. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

struct standin_node {
    standin_task   task;
    standin_node **after;
    size_t         after_count;
    standin_node  *older; /* in the graph */
    bool           done;  /* while an order is made */
};
struct standin_graph {
    standin_node *newest;
    size_t        count;
};
struct standin_order {
    standin_task *tasks;
    size_t        count;
};

/* ---- captures ---- */

standin_status standin_capture_begin(standin_capture *capture) {
    static uint64_t captures;
    if (capture->graph) return STANDIN_INVALID_VALUE;
    capture->graph = calloc(1, sizeof *capture->graph);
    capture->id = ++captures;
    return capture->graph ? STANDIN_OK : STANDIN_OUT_OF_MEMORY;
}

standin_status standin_capture_end(standin_capture *capture, standin_graph **out) {
    if (!capture->graph) return STANDIN_INVALID_VALUE;
    *out = capture->graph;
    free(capture->after);
    *capture = (standin_capture){ 0 };
    return STANDIN_OK;
}

static bool is_node(const standin_graph *graph, const standin_node *wanted) {
    const standin_node *node = graph->newest;
    while (node && node != wanted) node = node->older;
    return node;
}

standin_status standin_capture_after(standin_capture *capture, standin_node *const *nodes, size_t count, bool add) {
    if (!capture->graph) return STANDIN_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(capture->graph, nodes[i])) return standin_refuse(STANDIN_INVALID_VALUE, "what comes next would depend on no node of the capture");
    const size_t kept = add ? capture->after_count : 0;
    standin_node **after = malloc((kept + count + 1) * sizeof(standin_node *)); /* the caller's nodes may be those of the capture */
    if (!after) return STANDIN_OUT_OF_MEMORY;
    if (kept) memcpy(after, capture->after, kept * sizeof(standin_node *));
    if (count) memcpy(after + kept, nodes, count * sizeof(standin_node *));
    free(capture->after);
    capture->after = after;
    capture->after_count = kept + count;
    capture->early = false;
    return STANDIN_OK;
}

standin_status standin_capture_early(standin_capture *capture) {
    for (size_t i = 0; i < capture->after_count; i++)
        if (capture->after[i]->task.kind != STANDIN_LAUNCH) return standin_refuse(STANDIN_INVALID_VALUE, "an early edge from what is no kernel");
    capture->early = true;
    return STANDIN_OK;
}

standin_status standin_capture_add(standin_capture *capture, standin_task task) {
    if (capture->early && task.kind != STANDIN_LAUNCH) {
        standin_task_end(&task);
        return standin_refuse(STANDIN_INVALID_VALUE, "an early edge to what is no kernel");
    }
    task.launch.early = capture->early;
    standin_node *node = calloc(1, sizeof *node);
    if (!node) {
        standin_task_end(&task);
        return STANDIN_OUT_OF_MEMORY;
    }
    *node = (standin_node){ .task = task, .after = capture->after, .after_count = capture->after_count, .older = capture->graph->newest };
    capture->graph->newest = node;
    capture->graph->count++;
    capture->after = NULL;
    capture->after_count = 0;
    return standin_capture_after(capture, &node, 1, false);
}

void standin_graph_destroy(standin_graph *graph) {
    while (graph && graph->newest) {
        standin_node *node = graph->newest;
        graph->newest = node->older;
        standin_task_end(&node->task);
        free(node->after);
        free(node);
    }
    free(graph);
}

/* ---- orders ---- */

static bool is_next(const standin_node *node) {
    if (node->done) return false;
    for (size_t i = 0; i < node->after_count; i++)
        if (!node->after[i]->done) return false;
    return true;
}

standin_status standin_order_make(const standin_graph *graph, standin_order **out) {
    standin_order *order = calloc(1, sizeof *order);
    if (order) order->tasks = calloc(graph->count + 1, sizeof *order->tasks);
    bool fine = order && order->tasks;
    for (standin_node *node = graph->newest; node; node = node->older) node->done = false;
    while (fine && order->count < graph->count) {
        standin_node *next = graph->newest;
        while (!is_next(next)) next = next->older; /* the oldest that is not done always is */
        next->done = true;
        fine = standin_task_copy(&next->task, &order->tasks[order->count]);
        order->count += fine;
    }
    if (!fine) {
        standin_order_destroy(order);
        return STANDIN_OUT_OF_MEMORY;
    }
    *out = order;
    return STANDIN_OK;
}

void standin_order_destroy(standin_order *order) {
    if (!order) return;
    for (size_t i = 0; i < order->count; i++) standin_task_end(&order->tasks[i]);
    free(order->tasks);
    free(order);
}

/* The tasks are copied: the order may end before they are done. */
standin_status standin_order_launch(const standin_order *order, standin_stream *stream) {
    if (standin_capture_of(stream)->graph) return STANDIN_NOT_SUPPORTED;
    standin_task all = { .kind = STANDIN_TASKS, .tasks = calloc(order->count + 1, sizeof *all.tasks) };
    bool fine = all.tasks;
    for (; fine && all.task_count < order->count; all.task_count += fine)
        fine = standin_task_copy(&order->tasks[all.task_count], &all.tasks[all.task_count]);
    if (fine) return standin_stream_push(stream, all);
    standin_task_end(&all);
    return STANDIN_OUT_OF_MEMORY;
}
