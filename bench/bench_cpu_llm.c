/* bench_cpu_llm.c: layers of a language model (layer.h) on the CPU device, planned and replayed as a model would be: one
 * token behind a context, or a prompt at once. Weights are random. Prints a line for each step of the first layer, its
 * time at best and the rates that follow; then the time of all. With more than one layer there is also the output matrix
 * of 151,936 rows, for the last token.
 *   bench_cpu_llm [type] [tokens] [context] [threads] [rounds] [layers] */
#define _POSIX_C_SOURCE 200809L
#include "layer.h"

enum { STEPS = 4096 };
static hd_timing best[STEPS], timings[STEPS];

static hd_program *build(model m, int layers) {
    hd_value x = m.x;
    for (m.layer = 0; m.layer < layers; m.layer++) x = forward_block(&m, attention_block(&m, x));
    if (layers > 1) {
        const hd_value last = hd_slice(m.p, x, (int64_t[]){ m.tokens - 1, 0 }, (int64_t[]){ m.tokens, WIDTH }, 2);
        x = product_of(&m, norm_of(&m, last, "norm"), "wout", VOCABULARY, WIDTH);
    }
    hd_output(m.p, "y", x);
    return m.p;
}

int main(int count, char **arguments) {
    const hd_dtype type = hd_dtype_parse(count > 1 ? arguments[1] : "q4_0");
    const int tokens = count > 2 ? atoi(arguments[2]) : 1, before = count > 3 ? atoi(arguments[3]) : 0;
    const int threads = count > 4 ? atoi(arguments[4]) : 0, rounds = count > 5 ? atoi(arguments[5]) : 20;
    const int layers = count > 6 ? atoi(arguments[6]) : 1;
    if (type == HD_DTYPE_NONE || tokens < 1 || before < 0 || threads < 0 || rounds < 1 || layers < 1) return 2;
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    must(NULL, hd_context_create(&(hd_context_desc){ .cpu_threads = (uint32_t)threads }, &context));
    must(context, hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    const model m = begin_model(context, type, tokens, before + tokens);
    must(context, hd_plan_create(device, build(m, layers), &(hd_plan_desc){ .timestamps = 1 }, &plan));
    fill_inputs(&m, plan, before);
    uint64_t whole = UINT64_MAX;
    size_t steps = 0;
    for (int round = 0; round < rounds; round++) {
        must(context, hd_plan_run(plan, NULL));
        uint64_t sum = 0;
        steps = STEPS;
        must(context, hd_plan_timings(plan, timings, &steps));
        for (size_t i = 0; i < steps; i++) {
            sum += timings[i].ns;
            if (round == 0 || timings[i].ns < best[i].ns) best[i] = timings[i];
        }
        whole = sum < whole ? sum : whole;
    }
    printf("%s, %d tokens behind %d\n       us     GB/s  GFLOP/s  step\n", hd_dtype_name(type), tokens, before);
    for (size_t i = 0; i < steps / (size_t)layers; i++)
        printf("%9.1f %8.2f %8.1f  %s: %s\n", (double)best[i].ns / 1e3, (double)best[i].bytes / (double)best[i].ns,
               (double)best[i].flops / (double)best[i].ns, best[i].kernel, best[i].label);
    printf("%9.1f  all in its best round: %.2f tokens/s\n", (double)whole / 1e3, (double)tokens * 1e9 / (double)whole);
    hd_context_destroy(context);
    return 0;
}
