/* test_gradients_chunks.c: one large batch gives the bits of several small ones that go on from each other, in exact mode: with a
 * tied head, biases, norms, a table of positions and attention, in chunks of one sequence or of two; and so in mixed precision. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 40, C = 12, V = 17, HEADS = 3, B = 4, WEIGHTS = 6 };
static const char *const names[WEIGHTS] = { "wte", "wpe", "norm", "wqkv", "bqkv", "out" };
static const char *const gradient_names[WEIGHTS] = { "d_wte", "d_wpe", "d_norm", "d_wqkv", "d_bqkv", "d_out" };
static const char *const so_far_names[WEIGHTS] = { "g_wte", "g_wpe", "g_norm", "g_wqkv", "g_bqkv", "g_out" };
static const hd_shape shapes[WEIGHTS] = { { 2, { V, C } }, { 2, { T, C } }, { 1, { C } }, { 2, { 3 * C, C } }, { 1, { 3 * C } }, { 2, { C, C } } };

typedef struct gradients { float *of[WEIGHTS]; } gradients;

static bool mixed; /* products read bf16 */
static hd_value product(hd_program *p, hd_value x, hd_value w, uint32_t flags) {
    if (!mixed) return hd_matmul_with(p, x, w, flags);
    return hd_matmul_with(p, hd_cast(p, x, HD_BF16), hd_cast(p, w, HD_BF16), flags | HD_RESULT_F32);
}

/* The sum of the losses of `batch` sequences; its gradients, going on from others if `continued`. */
static hd_program *net(hd_context *context, int64_t batch, uint32_t chunk_rows, bool continued) {
    hd_program *p = hd_program_create(context);
    hd_value w[WEIGHTS], so_far[WEIGHTS], d[WEIGHTS], part[3];
    const hd_value tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(batch, T)), targets = hd_input(p, "targets", HD_I32, HD_SHAPE(batch, T));
    for (int i = 0; i < WEIGHTS; i++) {
        w[i] = hd_input(p, names[i], HD_F32, shapes[i]);
        so_far[i] = continued ? hd_input(p, so_far_names[i], HD_F32, shapes[i]) : 0;
    }
    hd_value x = hd_add(p, hd_gather(p, w[0], tokens), w[1]);
    const hd_value n = hd_rms_norm(p, x, w[2], 1e-5f), all = hd_add(p, product(p, n, w[3], HD_TRANSPOSE_B), w[4]);
    for (int i = 0; i < 3; i++) {
        const int64_t low[] = { 0, 0, i * C }, high[] = { batch, T, (i + 1) * C };
        part[i] = hd_reshape(p, hd_slice(p, all, low, high, 3), HD_SHAPE(batch, T, HEADS, C / HEADS));
    }
    x = hd_add(p, x, product(p, hd_reshape(p, hd_attention(p, part[0], part[1], part[2], 0, NULL), HD_SHAPE(batch, T, C)), w[5], HD_MATMUL_PLAIN));
    const hd_value losses = hd_cross_entropy(p, product(p, hd_silu(p, x), w[0], HD_TRANSPOSE_B), targets);
    const hd_gradients_desc desc = { .chunk_rows = chunk_rows, .continued = so_far };
    if (hd_gradients(p, hd_sum(p, losses, HD_ALL_AXES), w, WEIGHTS, &desc, d)) fail_msg("%s", hd_context_error(context));
    for (int i = 0; i < WEIGHTS; i++) hd_output(p, gradient_names[i], d[i]);
    return p;
}

/* Sequences first to first + batch; takes what came before and gives the sum. */
static void run(hd_context *context, hd_device *device, int64_t first, int64_t batch, uint32_t chunk_rows, gradients *sums, bool continued) {
    hd_program *p = net(context, batch, chunk_rows, continued);
    hd_plan *plan;
    hd_status s = hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan);
    int32_t tokens[B * T], targets[B * T];
    for (int64_t i = 0; i < batch * T; i++) {
        const int64_t at = first * T + i;
        tokens[i] = (int32_t)(at * at % V);
        targets[i] = at % 11 == 0 ? -1 : (int32_t)((at * 7 + 3) % V);
    }
    if (!s) s = hd_plan_write(plan, "tokens", tokens, (uint64_t)batch * T * 4);
    if (!s) s = hd_plan_write(plan, "targets", targets, (uint64_t)batch * T * 4);
    for (int i = 0; i < WEIGHTS && !s; i++) {
        const uint64_t count = hd_shape_elements(shapes[i]);
        float *weights = malloc(count * 4);
        assert_non_null(weights);
        for (uint64_t k = 0; k < count; k++) weights[k] = (float)((k * 7919 + (uint64_t)i * 31) % 101) / 100.0f - 0.5f;
        s = hd_plan_write(plan, names[i], weights, count * 4);
        free(weights);
        if (!s && continued) s = hd_plan_write(plan, so_far_names[i], sums->of[i], count * 4);
    }
    if (!s) s = hd_plan_run(plan, NULL);
    for (int i = 0; i < WEIGHTS && !s; i++) s = hd_plan_read(plan, gradient_names[i], sums->of[i], hd_shape_elements(shapes[i]) * 4);
    if (s) fail_msg("%s", hd_context_error(context));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static gradients of(hd_context *context, hd_device *device, int64_t batch, uint32_t chunk_rows) {
    gradients sums;
    for (int i = 0; i < WEIGHTS; i++) assert_non_null(sums.of[i] = calloc(hd_shape_elements(shapes[i]), 4));
    for (int64_t first = 0; first < B; first += batch) run(context, device, first, batch, chunk_rows, &sums, first > 0);
    return sums;
}
static bool equal(const gradients *a, const gradients *b) {
    bool same = true;
    for (int i = 0; i < WEIGHTS; i++) same &= memcmp(a->of[i], b->of[i], hd_shape_elements(shapes[i]) * 4) == 0;
    return same;
}
static void release(gradients *sums) { for (int i = 0; i < WEIGHTS; i++) free(sums->of[i]); }

static void one_is_many(void **state) {
    mixed = *state != NULL;
    hd_context *context;
    hd_device *device;
    assert_int_equal(hd_context_create(NULL, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
    gradients small = of(context, device, 1, T), middle = of(context, device, 2, T), large = of(context, device, B, T);
    assert_true(equal(&small, &middle) && equal(&small, &large));
    gradients two = of(context, device, 2, 2 * T), four = of(context, device, B, 2 * T), whole = of(context, device, B, 0);
    assert_true(equal(&two, &four));
    assert_false(equal(&two, &small)); /* the length of a chunk is part of the result */
    assert_false(equal(&whole, &small));
    gradients *const all[] = { &small, &middle, &large, &two, &four, &whole };
    for (int i = 0; i < 6; i++) release(all[i]);
    hd_context_destroy(context);
}

int main(void) {
    static bool yes = true;
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_is_many), cmocka_unit_test_prestate(one_is_many, &yes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
