/* bench_train.c: steps of training GPT-2 124M on tokens drawn by chance, and apart from them what a step is made of, forward and backward.
 * Prints a JSON line for each: of a step tokens a second, the memory that was told, the loss, the norm of all gradients and the hash of
 * weights and moments behind it (equal ones in exact mode on every device); of a part its time, once with the gradients and once without.
 *   bench_train DEVICE [exact|fast|parts|exact-parts|memory|exact-memory [batch [micro-batch [steps]]]]    without sizes: 16, 8 and 3 steps of 1,024 tokens each
 * Products read bf16 where the word holds it, as bf16, exact-bf16, bf16-parts and bf16-memory do.
 * One step goes before those that are timed. "memory" takes none: what a step would take with micro-batches of as many sequences, twice as many, ... */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "random.h"
#include <heddle_train.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 12, WIDTH = 768, HEADS = 12, LENGTH = 1024, VOCABULARY = 50304, DATA = 1 << 20 };

typedef struct bench {
    hd_context *context;
    hd_device  *device;
    hd_math     math;
    hd_precision precision;
    uint32_t    batch, micro_batch, steps;
} bench;

static const char *name_of(hd_math math) { return math == HD_MATH_EXACT ? "exact" : "fast"; }
static const char *precision_of(const bench *b) { return b->precision == HD_PRECISION_BF16 ? "bf16" : "f32"; }

/* ---- steps ---- */

static hd_trainer_desc recipe(const bench *b) {
    const hd_gpt model = { .layers = LAYERS, .width = WIDTH, .heads = HEADS, .context = LENGTH, .vocabulary = VOCABULARY };
    return (hd_trainer_desc){ .model = model, .batch = b->batch, .micro_batch = b->micro_batch,
                              .schedule = { .rate = 6e-4, .warmup = 10 }, .weight_decay = 0.1, .clip = 1, .math = b->math, .precision = b->precision };
}

/* Steps up to `until`, and waits for the last. */
static hd_status train(hd_trainer *trainer, const hd_token_data *data, uint64_t until, int32_t *tokens, hd_train_report *out) {
    const hd_trainer_desc *desc = hd_trainer_get_desc(trainer);
    int32_t *const targets = tokens + (size_t)desc->batch * desc->length;
    bool told;
    hd_status status = HD_OK;
    for (uint64_t step = hd_trainer_steps(trainer); step < until && !status; step++) {
        hd_draw_batch(data, 1, step, desc->batch, desc->length, tokens, targets);
        status = hd_trainer_step(trainer, tokens, targets, out, &told);
    }
    return status ? status : hd_trainer_finish(trainer, out, &told);
}

static hd_status bench_steps(const bench *b) {
    const hd_trainer_desc desc = recipe(b);
    hd_trainer *trainer = NULL;
    hd_plan_memory memory;
    hd_train_report report = { 0 };
    uint64_t hash = 0;
    uint32_t seed = 1;
    uint16_t *text = malloc(DATA * sizeof *text);
    int32_t *tokens = malloc((size_t)b->batch * LENGTH * 2 * sizeof *tokens);
    if (!text || !tokens) return HD_STATUS_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < DATA; i++) text[i] = (uint16_t)random_below(&seed, VOCABULARY);
    const hd_token_data data = { text, sizeof *text, DATA };
    const double begin = now_s();
    hd_status status = hd_trainer_fit(b->context, b->device, &desc, &memory);
    if (!status) status = hd_trainer_create(b->context, b->device, &desc, &trainer);
    const double made = now_s();
    if (!status) status = train(trainer, &data, 1, tokens, &report);
    const double first = now_s();
    if (!status) status = train(trainer, &data, 1 + b->steps, tokens, &report);
    const double end = now_s();
    if (!status) status = hd_trainer_hash(trainer, &hash);
    if (!status)
        printf("{\"bench\":\"train\",\"device\":\"%s\",\"math\":\"%s\",\"precision\":\"%s\",\"batch\":%u,\"micro_batch\":%u,\"length\":%d,\"steps\":%u,\"tokens_s\":%.0f,"
               "\"made_s\":%.2f,\"first_s\":%.2f,\"memory_gib\":%.2f,\"loss\":%.6f,\"norm\":%.6f,\"hash\":\"%016" PRIx64 "\"}\n",
               hd_device_get_info(b->device)->id, name_of(b->math), precision_of(b), b->batch, hd_trainer_get_desc(trainer)->micro_batch, LENGTH, b->steps,
               (double)b->batch * LENGTH * b->steps / (end - first), made - begin, first - made, (double)memory.total_bytes / (1 << 30),
               (double)report.loss, (double)report.norm, hash);
    hd_trainer_destroy(trainer);
    free(text);
    free(tokens);
    return status;
}

static hd_status tell_memory(const bench *b) {
    hd_status status = HD_OK;
    for (uint32_t micro_batch = b->micro_batch; micro_batch <= b->batch && !status; micro_batch *= 2) {
        bench one = *b;
        hd_plan_memory memory;
        one.micro_batch = micro_batch;
        if (b->batch % micro_batch) continue;
        const hd_trainer_desc desc = recipe(&one);
        const double begin = now_s();
        status = hd_trainer_fit(b->context, b->device, &desc, &memory);
        if (!status)
            printf("{\"bench\":\"train memory\",\"math\":\"%s\",\"precision\":\"%s\",\"batch\":%u,\"micro_batch\":%u,\"total_gib\":%.3f,\"states_gib\":%.3f,\"scratch_gib\":%.3f,"
                   "\"planned_s\":%.2f}\n", name_of(b->math), precision_of(b), b->batch, micro_batch, (double)memory.total_bytes / (1 << 30),
                   (double)memory.state_bytes / (1 << 30), (double)memory.scratch_bytes / (1 << 30), now_s() - begin);
        fflush(stdout);
    }
    return status;
}

/* ---- what a step is made of ---- */

/* A part: adds its operations over inputs, of which the gradients are taken; returns its result. */
typedef struct part_inputs { hd_value values[4]; uint32_t count; hd_precision precision; } part_inputs;
typedef hd_value (*part_fn)(hd_program *p, int64_t rows, part_inputs *in);

static hd_value input(hd_program *p, part_inputs *in, hd_shape shape) {
    const char name[] = { (char)('a' + in->count), '\0' };
    return in->values[in->count++] = hd_input(p, name, HD_F32, shape);
}
static hd_value product(hd_program *p, const part_inputs *in, hd_value x, hd_value w, uint32_t flags) {
    if (in->precision == HD_PRECISION_F32) return hd_matmul_with(p, x, w, flags);
    return hd_matmul_with(p, hd_cast(p, x, HD_BF16), hd_cast(p, w, HD_BF16), flags | HD_RESULT_F32);
}
static hd_value attention(hd_program *p, int64_t rows, part_inputs *in) {
    const hd_shape shape = HD_SHAPE(rows / LENGTH, LENGTH, HEADS, WIDTH / HEADS);
    const hd_value q = input(p, in, shape), k = input(p, in, shape), v = input(p, in, shape);
    return hd_attention(p, q, k, v, 0, NULL);
}
static hd_value layer_norm(hd_program *p, int64_t rows, part_inputs *in) {
    const hd_value x = input(p, in, HD_SHAPE(rows, WIDTH)), weight = input(p, in, HD_SHAPE(WIDTH)), bias = input(p, in, HD_SHAPE(WIDTH));
    return hd_layer_norm(p, x, weight, bias, 1e-5f);
}
static hd_value linear(hd_program *p, int64_t rows, part_inputs *in) {
    const hd_value x = input(p, in, HD_SHAPE(rows, WIDTH)), w = input(p, in, HD_SHAPE(WIDTH, 4 * WIDTH)), bias = input(p, in, HD_SHAPE(4 * WIDTH));
    return hd_add(p, product(p, in, x, w, HD_MATMUL_PLAIN), bias);
}
static hd_value bias(hd_program *p, int64_t rows, part_inputs *in) {
    const hd_value x = input(p, in, HD_SHAPE(rows, 4 * WIDTH));
    return hd_add(p, x, input(p, in, HD_SHAPE(4 * WIDTH)));
}
static hd_value gelu(hd_program *p, int64_t rows, part_inputs *in) { return hd_gelu_tanh(p, input(p, in, HD_SHAPE(rows, 4 * WIDTH))); }
static hd_value head(hd_program *p, int64_t rows, part_inputs *in) {
    const hd_value x = input(p, in, HD_SHAPE(rows, WIDTH)), w = input(p, in, HD_SHAPE(VOCABULARY, WIDTH));
    return hd_cross_entropy(p, product(p, in, x, w, HD_TRANSPOSE_B), hd_input(p, "targets", HD_I32, HD_SHAPE(rows)));
}
static hd_value embedding(hd_program *p, int64_t rows, part_inputs *in) {
    return hd_gather(p, input(p, in, HD_SHAPE(VOCABULARY, WIDTH)), hd_input(p, "targets", HD_I32, HD_SHAPE(rows)));
}

/* What is computed must reach an output, so the loss is one, and the gradients are others. */
static hd_status build_part(const bench *b, part_fn build, bool backward, hd_program *p) {
    part_inputs in = { .precision = b->precision };
    hd_value gradients[4];
    char name[8];
    const hd_value y = build(p, (int64_t)b->micro_batch * LENGTH, &in), loss = hd_sum(p, hd_mul(p, y, y), HD_ALL_AXES);
    hd_output(p, "loss", loss);
    if (!backward) return HD_OK;
    const hd_status status = hd_gradients(p, loss, in.values, in.count, NULL, gradients);
    for (uint32_t i = 0; i < in.count && !status; i++) {
        snprintf(name, sizeof name, "d%u", i);
        hd_output(p, name, gradients[i]);
    }
    return status;
}

static hd_status fill(hd_plan *plan, const hd_port *port, uint32_t seed) {
    uint64_t count = hd_shape_elements(port->shape);
    float *data = malloc(count * sizeof *data);
    int32_t *numbers = (int32_t *)data;
    if (!data) return HD_STATUS_OUT_OF_HOST_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        if (port->dtype == HD_I32) numbers[i] = (int32_t)random_below(&seed, VOCABULARY);
        else data[i] = 0.5f * random_float(&seed);
    }
    const hd_status status = hd_plan_write(plan, port->name, data, count * sizeof *data);
    free(data);
    return status;
}

/* The shortest of some runs, each waited for. */
static hd_status time_part(const bench *b, part_fn build, bool backward, double *out_ms) {
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(b->context);
    hd_status status = build_part(b, build, backward, p);
    if (!status) status = hd_plan_create(b->device, p, &(hd_plan_desc){ .math = b->math }, &plan);
    for (size_t i = 0; i < hd_program_port_count(p) && !status; i++) {
        const hd_port port = hd_program_port(p, i);
        if (port.kind == HD_PORT_INPUT) status = fill(plan, &port, (uint32_t)i + 1);
    }
    *out_ms = 1e30;
    for (int i = 0; i < 6 && !status; i++) {
        const double begin = now_s();
        status = hd_plan_run(plan, NULL);
        const double took = (now_s() - begin) * 1e3;
        if (took < *out_ms) *out_ms = took;
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return status;
}

static hd_status bench_parts(const bench *b) {
    static const struct { const char *name; part_fn build; int times; } parts[] = { /* and how often a step has it */
        { "attention", attention, LAYERS }, { "layer_norm", layer_norm, 2 * LAYERS + 1 }, { "linear", linear, LAYERS }, { "bias", bias, LAYERS },
        { "gelu", gelu, LAYERS }, { "head", head, 1 }, { "embedding", embedding, 1 } };
    hd_status status = HD_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++) {
        double ms[2];
        for (int backward = 0; backward < 2 && !status; backward++) status = time_part(b, parts[i].build, backward, &ms[backward]);
        if (!status)
            printf("{\"bench\":\"train part\",\"device\":\"%s\",\"math\":\"%s\",\"precision\":\"%s\",\"sequences\":%u,\"part\":\"%s\",\"times\":%d,\"forward_ms\":%.3f,"
                   "\"with_gradients_ms\":%.3f}\n", hd_device_get_info(b->device)->id, name_of(b->math), precision_of(b), b->micro_batch, parts[i].name,
                   parts[i].times, ms[0], ms[1]);
        fflush(stdout);
    }
    return status;
}

static uint32_t number(int count, char **arguments, int at, uint32_t otherwise) {
    return count > at ? (uint32_t)strtoul(arguments[at], NULL, 10) : otherwise;
}

int main(int count, char **arguments) {
    const char *what = count > 2 ? arguments[2] : "fast";
    bench b = { .batch = number(count, arguments, 3, 16), .steps = number(count, arguments, 5, 3) };
    b.micro_batch = number(count, arguments, 4, b.batch < 8 ? b.batch : 8);
    b.precision = strstr(what, "bf16") ? HD_PRECISION_BF16 : HD_PRECISION_F32;
    b.math = strncmp(what, "exact", 5) == 0 ? HD_MATH_EXACT : HD_MATH_FAST;
    if (count < 2 || b.batch < 1 || b.micro_batch < 1 || hd_context_create(NULL, &b.context)) return 2;
    hd_status status = hd_device_open(b.context, &(hd_device_desc){ .id = arguments[1] }, &b.device);
    if (!status && strstr(what, "parts")) status = bench_parts(&b);
    else if (!status && strstr(what, "memory")) status = tell_memory(&b);
    else if (!status) status = bench_steps(&b);
    if (status) fprintf(stderr, "%s\n", hd_context_error(b.context));
    hd_context_destroy(b.context);
    return status ? 1 : 0;
}
