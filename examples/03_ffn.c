/* 03_ffn.c: what a batch buys. First relu -> scale -> add on four numbers: one submission and two transfers where one
 * operation at a time takes six. Then the feed-forward block of Qwen3-4B with 4-bit weights as one plan, whose second run
 * records, compiles and uploads nothing anew, checked against the CPU in exact mode.
 *   03_ffn [--small]      --small: a block of a sixteenth of the size, for tests */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call) do { hd_status try_status = (call); if (try_status) return try_status; } while (0)

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- (a) three operations on four numbers ---- */

static hd_status chain(hd_context *ctx, hd_device *dev, bool *out_held) {
    const float x[4] = { 1, -2, 3, -4 }, b[4] = { 0.5f, 0.5f, 0.5f, 0.5f };
    float y[4];
    hd_plan *plan;
    hd_plan_stats stats;
    hd_device_stats before, after;

    hd_program *p = hd_program_create(ctx);
    hd_value relu = hd_relu(p, hd_input(p, "x", HD_F32, HD_SHAPE(4)));
    hd_output(p, "y", hd_add(p, hd_scale(p, relu, 2, 0), hd_input(p, "b", HD_F32, HD_SHAPE(4))));
    TRY(hd_plan_create(dev, p, NULL, &plan));
    TRY(hd_plan_write(plan, "b", b, sizeof b)); /* stays on the device, as weights do */

    TRY(hd_device_get_stats(dev, &before));
    TRY(hd_plan_write(plan, "x", x, sizeof x));
    TRY(hd_plan_run(plan, NULL));
    TRY(hd_plan_read(plan, "y", y, sizeof y));
    TRY(hd_device_get_stats(dev, &after));
    TRY(hd_plan_get_stats(plan, &stats));

    printf("relu, scale by 2, add 0.5\n");
    printf("  x            %6g %6g %6g %6g\n", (double)x[0], (double)x[1], (double)x[2], (double)x[3]);
    printf("  y            %6g %6g %6g %6g\n", (double)y[0], (double)y[1], (double)y[2], (double)y[3]);
    printf("  dispatches   %u for 3 operations\n", (unsigned)stats.dispatches);
    printf("  submissions  %llu\n", (unsigned long long)(after.submissions - before.submissions));
    printf("  transfers    %llu up, %llu down; one operation at a time: 3 up, 3 down\n", (unsigned long long)(after.uploads - before.uploads),
           (unsigned long long)(after.downloads - before.downloads));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    *out_held = after.uploads - before.uploads == 1 && after.downloads - before.downloads == 1;
    for (int i = 0; i < 4; i++) *out_held = *out_held && y[i] == fmaxf(x[i], 0) * 2 + b[i];
    return HD_OK;
}

/* ---- (b) the feed-forward block ---- */

typedef struct block {
    int64_t tokens, width, hidden;
    float  *x, *y, *checked;
    void   *gate, *up, *down; /* q4_0 */
    uint64_t x_bytes, weight_bytes;
} block;

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* A tensor of q4_0 weights: 32 random 4-bit numbers with one scale a block. `scale` is an f16: 0x1C00 is 2^-8. */
static void *random_weights(uint64_t bytes, uint16_t scale, uint32_t *state) {
    unsigned char *data = malloc((size_t)bytes);
    for (uint64_t at = 0; data && at < bytes; at += 18) {
        memcpy(data + at, &scale, 2);
        for (uint64_t i = 2; i < 18; i++) data[at + i] = (unsigned char)(next_random(state) >> 24);
    }
    return data;
}

static bool make_block(block *b, bool small) {
    uint32_t state = 20251222;
    *b = (block){ .tokens = 8, .width = small ? 640 : 2560, .hidden = small ? 2432 : 9728 };
    const uint64_t matrix_bytes = hd_tensor_bytes(HD_Q4_0, HD_SHAPE(b->hidden, b->width));
    b->x_bytes = hd_tensor_bytes(HD_F32, HD_SHAPE(b->tokens, b->width));
    b->weight_bytes = 3 * matrix_bytes + 4 * (uint64_t)b->width;
    b->x = malloc((size_t)b->x_bytes);
    b->y = malloc((size_t)b->x_bytes);
    b->checked = malloc((size_t)b->x_bytes);
    b->gate = random_weights(matrix_bytes, 0x1C00, &state);
    b->up = random_weights(matrix_bytes, 0x1C00, &state);
    b->down = random_weights(matrix_bytes, 0x1800, &state);
    if (!b->x || !b->y || !b->checked || !b->gate || !b->up || !b->down) return false;
    for (int64_t i = 0; i < b->tokens * b->width; i++) b->x[i] = (float)(next_random(&state) >> 8) / 8388608.0f - 1;
    return true;
}

static void free_block(block *b) {
    void *all[] = { b->x, b->y, b->checked, b->gate, b->up, b->down };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* y = (silu(x gate^T) * (x up^T)) down^T: three matrix products, two kernels, since up and down are alike. */
static hd_program *describe(hd_context *ctx, const block *b) {
    hd_program *p = hd_program_create(ctx);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(b->tokens, b->width));
    hd_value gate = hd_input(p, "gate", HD_Q4_0, HD_SHAPE(b->hidden, b->width));
    hd_value up = hd_input(p, "up", HD_Q4_0, HD_SHAPE(b->hidden, b->width));
    hd_value down = hd_input(p, "down", HD_Q4_0, HD_SHAPE(b->width, b->hidden));
    hd_value gated = hd_mul(p, hd_silu(p, hd_matmul_with(p, x, gate, HD_TRANSPOSE_B)), hd_matmul_with(p, x, up, HD_TRANSPOSE_B));
    hd_output(p, "y", hd_matmul_with(p, gated, down, HD_TRANSPOSE_B));
    return p;
}

static hd_status write_weights(hd_plan *plan, const block *b) {
    const uint64_t matrix_bytes = hd_tensor_bytes(HD_Q4_0, HD_SHAPE(b->hidden, b->width));
    TRY(hd_plan_write(plan, "gate", b->gate, matrix_bytes));
    TRY(hd_plan_write(plan, "up", b->up, matrix_bytes));
    return hd_plan_write(plan, "down", b->down, matrix_bytes);
}

/* One step as a model makes it: new x in, y out. */
static hd_status step(hd_plan *plan, const block *b, float *out_y, double *out_ms) {
    double begin = now_ms();
    TRY(hd_plan_write(plan, "x", b->x, b->x_bytes));
    TRY(hd_plan_run(plan, NULL));
    TRY(hd_plan_read(plan, "y", out_y, b->x_bytes));
    *out_ms = now_ms() - begin;
    return HD_OK;
}

/* The same program on the CPU, with the arithmetic that gives equal bits everywhere. */
static hd_status check(hd_context *ctx, const hd_program *p, const block *b, double *out_error, double *out_ms) {
    hd_device *cpu;
    hd_plan *plan;
    double largest = 0, error = 0;
    TRY(hd_device_open(ctx, &(hd_device_desc){ .id = "cpu" }, &cpu));
    TRY(hd_plan_create(cpu, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    TRY(write_weights(plan, b));
    TRY(step(plan, b, b->checked, out_ms));
    for (int64_t i = 0; i < b->tokens * b->width; i++) {
        largest = fmax(largest, fabs((double)b->checked[i]));
        error = fmax(error, fabs((double)b->checked[i] - (double)b->y[i]));
        if (!isfinite(b->y[i])) error = INFINITY;
    }
    *out_error = error / largest;
    return HD_OK;
}

static hd_status feed_forward(hd_context *ctx, hd_device *dev, const block *b, bool *out_held) {
    hd_plan *plan;
    hd_plan_memory memory;
    hd_plan_stats stats;
    hd_device_stats start, first, second;
    double plan_ms, first_ms, second_ms, check_ms, error;
    const double mib = 1024 * 1024;

    hd_program *p = describe(ctx, b);
    TRY(hd_device_get_stats(dev, &start));
    plan_ms = now_ms();
    TRY(hd_plan_create(dev, p, NULL, &plan));
    plan_ms = now_ms() - plan_ms;
    TRY(write_weights(plan, b));
    TRY(step(plan, b, b->y, &first_ms));
    TRY(hd_device_get_stats(dev, &first));
    TRY(step(plan, b, b->y, &second_ms));
    TRY(hd_device_get_stats(dev, &second));
    TRY(hd_plan_get_memory(plan, &memory));
    TRY(hd_plan_get_stats(plan, &stats));
    TRY(check(ctx, p, b, &error, &check_ms));

    unsigned long long compiled = first.kernels_compiled - start.kernels_compiled, cached = first.kernels_from_cache - start.kernels_from_cache;
    unsigned long long recorded = second.commands_recorded - first.commands_recorded, again = second.kernels_compiled - first.kernels_compiled;
    unsigned long long uploaded = second.upload_bytes - first.upload_bytes, submissions = second.submissions - first.submissions;
    unsigned long long weights_again = uploaded - (uploaded < b->x_bytes ? uploaded : b->x_bytes);
    printf("\nfeed-forward: %lld tokens, width %lld, hidden %lld, weights q4_0\n", (long long)b->tokens, (long long)b->width, (long long)b->hidden);
    printf("  plan         %u dispatches, %u kernels, made in %.1f ms\n", (unsigned)stats.dispatches, (unsigned)stats.kernels, plan_ms);
    printf("  compiled     %llu kernels, and %llu from the cache\n", compiled, cached);
    printf("  scratch      %.2f MiB, and %.2f MiB if not shared\n", (double)memory.scratch_bytes / mib, (double)memory.unshared_bytes / mib);
    printf("  uploaded     %.2f MiB of weights and inputs\n", (double)(first.upload_bytes - start.upload_bytes) / mib);
    printf("  first run    %8.2f ms\n", first_ms);
    printf("  second run   %8.2f ms, %.1f GFLOP/s\n", second_ms, 6.0 * (double)(b->tokens * b->width * b->hidden) / second_ms / 1e6);
    printf("    submissions %llu, commands recorded %llu, kernels compiled %llu, weight bytes uploaded %llu\n", submissions, recorded, again, weights_again);
    printf("  check        largest error %.1e of the largest value, against the CPU in exact mode (%.0f ms)\n", error, check_ms);
    *out_held = stats.kernels <= 3 && submissions == 1 && recorded == 0 && again == 0 && weights_again == 0 && error < 3e-2; /* activations in 8 bits: docs/ops.md */
    return HD_OK;
}

int main(int argc, char **argv) {
    bool small = argc == 2 && strcmp(argv[1], "--small") == 0;
    if (argc > 1 && !small) {
        fprintf(stderr, "usage: 03_ffn [--small]\n");
        return 2;
    }
    hd_context *ctx;
    hd_device *dev;
    block b;
    bool chain_held = false, block_held = false;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_status s = make_block(&b, small) ? hd_device_open(ctx, NULL, &dev) : HD_STATUS_OUT_OF_HOST_MEMORY;
    if (!s) {
        printf("device: %s\n%s\n\n", hd_device_get_info(dev)->name, hd_device_selection(dev));
        s = chain(ctx, dev, &chain_held);
    }
    if (!s) s = feed_forward(ctx, dev, &b, &block_held);
    if (s) fprintf(stderr, "03_ffn: %s: %s\n", hd_status_text(s), hd_context_error(ctx));
    else if (!chain_held || !block_held) fprintf(stderr, "03_ffn: a result or a count above is not what was promised\n");
    free_block(&b);
    hd_context_destroy(ctx);
    return s || !chain_held || !block_held ? 1 : 0;
}
