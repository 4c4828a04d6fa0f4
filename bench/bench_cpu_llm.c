/* bench_cpu_llm.c: layers of a language model (width 2560, 32 heads of 128 over 8, feed-forward 9728: Qwen3-4B has 36) on
 * the CPU device, planned and replayed as a model would be: one token behind a context, or a prompt at once. Weights are
 * random. Prints a line for each step of the first layer, its time at best and the rates that follow; then the time of
 * all. With more than one layer there is also the output matrix of 151,936 rows, for the last token.
 *   bench_cpu_llm [type] [tokens] [context] [threads] [rounds] [layers] */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 2560, HEADS = 32, KV_HEADS = 8, HEAD = 128, FORWARD = 9728, VOCABULARY = 151936, STEPS = 4096 };

static hd_context *context;
static hd_timing best[STEPS], timings[STEPS];

static void must(hd_status status) {
    if (status == HD_OK) return;
    fprintf(stderr, "%s\n", hd_context_error(context));
    exit(1);
}

/* An input of the layer under way. */
static int layer_number;
static hd_value weight(hd_program *p, const char *name, hd_dtype type, hd_shape shape) {
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s.%d", name, layer_number);
    return hd_input(p, numbered, type, shape);
}
static hd_value state(hd_program *p, const char *name, int64_t room) {
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s.%d", name, layer_number);
    return hd_state(p, numbered, HD_F16, HD_SHAPE(room, KV_HEADS, HEAD));
}

static hd_value product(hd_program *p, hd_value x, const char *name, hd_dtype type, int64_t rows, int64_t columns) {
    return hd_matmul_with(p, x, weight(p, name, type, HD_SHAPE(rows, columns)), HD_TRANSPOSE_B);
}

static hd_value heads_of(hd_program *p, hd_value x, const char *norm, hd_value positions, int64_t tokens, int64_t heads) {
    const hd_value rows = hd_reshape(p, x, HD_SHAPE(tokens, heads, HEAD));
    return hd_rope(p, hd_rms_norm(p, rows, weight(p, norm, HD_F32, HD_SHAPE(HEAD)), 1e-6f), positions, NULL);
}

static hd_value layer(hd_program *p, hd_value x, hd_value positions, hd_value past, hd_dtype type, int64_t tokens, int64_t room) {
    const hd_value keys = state(p, "keys", room), values = state(p, "values", room);
    const hd_value h = hd_rms_norm(p, x, weight(p, "norm1", HD_F32, HD_SHAPE(WIDTH)), 1e-6f);
    const hd_value q = heads_of(p, product(p, h, "wq", type, HEADS * HEAD, WIDTH), "qnorm", positions, tokens, HEADS);
    const hd_value k = heads_of(p, product(p, h, "wk", type, KV_HEADS * HEAD, WIDTH), "knorm", positions, tokens, KV_HEADS);
    const hd_value v = hd_reshape(p, product(p, h, "wv", type, KV_HEADS * HEAD, WIDTH), HD_SHAPE(tokens, KV_HEADS, HEAD));
    const hd_value seen = hd_attention(p, q, hd_write_rows(p, keys, hd_cast(p, k, HD_F16), past), hd_write_rows(p, values, hd_cast(p, v, HD_F16), past), past, NULL);
    const hd_value y = hd_add(p, x, product(p, hd_reshape(p, seen, HD_SHAPE(tokens, HEADS * HEAD)), "wo", type, WIDTH, HEADS * HEAD));
    const hd_value g = hd_rms_norm(p, y, weight(p, "norm2", HD_F32, HD_SHAPE(WIDTH)), 1e-6f);
    const hd_value up = product(p, g, "wu", type, FORWARD, WIDTH), gate = hd_silu(p, product(p, g, "wg", type, FORWARD, WIDTH));
    return hd_add(p, y, product(p, hd_mul(p, gate, up), "wd", type, WIDTH, FORWARD));
}

static hd_program *model(hd_dtype type, int64_t tokens, int64_t room, int layers) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(tokens, WIDTH));
    const hd_value positions = hd_input(p, "positions", HD_I32, HD_SHAPE(tokens)), past = hd_input(p, "past", HD_I32, HD_SHAPE(1));
    for (layer_number = 0; layer_number < layers; layer_number++) x = layer(p, x, positions, past, type, tokens, room);
    if (layers > 1) {
        const hd_value last = hd_slice(p, x, (int64_t[]){ tokens - 1, 0 }, (int64_t[]){ tokens, WIDTH }, 2);
        x = product(p, hd_rms_norm(p, last, weight(p, "norm", HD_F32, HD_SHAPE(WIDTH)), 1e-6f), "wout", type, VOCABULARY, WIDTH);
    }
    hd_output(p, "y", x);
    return p;
}

/* Random bytes, with scales of blocks and floats of moderate size: 16-bit words below 1, as f16 or as bf16. */
static void fill(hd_plan *plan, const hd_program *p) {
    uint32_t seed = 1;
    for (size_t i = 0; i < hd_program_port_count(p); i++) {
        const hd_port port = hd_program_port(p, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind != HD_PORT_INPUT || port.dtype == HD_I32) continue;
        uint8_t *data = malloc(bytes);
        if (!data) exit(1);
        for (uint64_t b = 0; b < bytes; b++) data[b] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        if (port.dtype == HD_F32)
            for (uint64_t e = 0; e < bytes / 4; e++) ((float *)(void *)data)[e] = (float)data[4 * e] / 256.0f - 0.5f;
        else
            for (uint64_t e = 0; e < bytes / 2; e++) data[2 * e + 1] &= 0xAF; /* any word may be a scale: below 0.06 as f16 */
        must(hd_plan_write(plan, port.name, data, bytes));
        free(data);
    }
}

int main(int count, char **arguments) {
    const hd_dtype type = hd_dtype_parse(count > 1 ? arguments[1] : "q4_0");
    const int tokens = count > 2 ? atoi(arguments[2]) : 1, before = count > 3 ? atoi(arguments[3]) : 0;
    const int threads = count > 4 ? atoi(arguments[4]) : 0, rounds = count > 5 ? atoi(arguments[5]) : 20;
    const int layers = count > 6 ? atoi(arguments[6]) : 1;
    if (type == HD_DTYPE_NONE || tokens < 1 || before < 0 || threads < 0 || rounds < 1 || layers < 1) return 2;
    hd_device *device;
    hd_plan *plan;
    must(hd_context_create(&(hd_context_desc){ .cpu_threads = (uint32_t)threads }, &context));
    must(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    hd_program *p = model(type, tokens, before + tokens, layers);
    must(hd_plan_create(device, p, &(hd_plan_desc){ .timestamps = 1 }, &plan));
    fill(plan, p);
    int32_t *positions = malloc((size_t)tokens * sizeof *positions);
    if (!positions) return 1;
    for (int i = 0; i < tokens; i++) positions[i] = before + i;
    must(hd_plan_write(plan, "positions", positions, (uint64_t)tokens * sizeof *positions));
    must(hd_plan_write(plan, "past", positions, sizeof *positions));
    uint64_t whole = UINT64_MAX;
    size_t steps = 0;
    for (int round = 0; round < rounds; round++) {
        must(hd_plan_run(plan, NULL));
        uint64_t sum = 0;
        steps = STEPS;
        must(hd_plan_timings(plan, timings, &steps));
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
    free(positions);
    hd_context_destroy(context);
    return 0;
}
