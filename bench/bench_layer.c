/* bench_layer.c: what a layer of a language model and its two blocks take on a device, replayed, without a timestamp between its
 * levels: the slope between plans of many layers and of a third of them, each with weights of its own, so that hand-over falls out and
 * no cache holds them. Prints microseconds a layer, the best of some rounds.
 *   bench_layer [device] [type] [rows] [past] [room] [layers] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "layer.h"

enum { ROUNDS = 30 };
typedef enum part { LAYER, ATTENTION_BLOCK, FORWARD_BLOCK, PARTS } part;

/* The best time of a run of so many layers, or so many of their blocks. */
static double best_us(hd_device *device, model m, part wanted, int layers, int past) {
    hd_plan *plan;
    double best = 0;
    hd_value x = m.x;
    for (m.layer = 0; m.layer < layers; m.layer++) {
        if (wanted != FORWARD_BLOCK) x = attention_block(&m, x);
        if (wanted != ATTENTION_BLOCK) x = forward_block(&m, x);
    }
    hd_output(m.p, "y", x);
    must(m.context, hd_plan_create(device, m.p, NULL, &plan));
    fill_inputs(&m, plan, past);
    for (int round = 0; round < ROUNDS; round++) {
        const double begun = now_us();
        must(m.context, hd_plan_run(plan, NULL));
        const double us = now_us() - begun;
        if (round == 0 || us < best) best = us;
    }
    hd_plan_destroy(plan);
    hd_program_destroy(m.p);
    return best;
}

int main(int count, char **arguments) {
    static const char *const names[PARTS] = { "layer", "attention block", "feed-forward block" };
    const char *id = count > 1 ? arguments[1] : "cpu";
    const hd_dtype type = hd_dtype_parse(count > 2 ? arguments[2] : "q4_0");
    const int rows = count > 3 ? atoi(arguments[3]) : 1, past = count > 4 ? atoi(arguments[4]) : 200;
    const int room = count > 5 ? atoi(arguments[5]) : 4096, most = count > 6 ? atoi(arguments[6]) : 36, few = most / 3;
    hd_context *context;
    hd_device *device;
    if (type == HD_DTYPE_NONE || rows < 1 || past < 0 || room < past + rows || few < 1) return 2;
    must(NULL, hd_context_create(NULL, &context));
    must(context, hd_device_open(context, &(hd_device_desc){ .id = id }, &device));
    printf("%s, %s, %d rows behind %d of %d\n       us  of each\n", id, hd_dtype_name(type), rows, past, room);
    for (part p = LAYER; p < PARTS; p++) {
        const double many = best_us(device, begin_model(context, type, rows, room), p, most, past);
        printf("%9.1f  %s\n", (many - best_us(device, begin_model(context, type, rows, room), p, few, past)) / (most - few), names[p]);
    }
    hd_context_destroy(context);
    return 0;
}
