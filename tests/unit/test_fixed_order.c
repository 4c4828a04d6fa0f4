/* test_fixed_order.c: sums have an order of their own, which no race decides: no kernel adds floats atomically, norms are never
 * contracted, and a hundred runs in fast mode give the same bits on each device; in exact mode a row's bits are those that it has
 * alone, on every device, and sums of halves go beyond what a half holds. */
#include "kernels/kernel.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void no_kernel_has_float_atomics(void **state) {
    (void)state;
    enum { ATOMIC_MIN = 5614, ATOMIC_MAX = 5615, ATOMIC_ADD = 6035 }; /* OpAtomicFMinEXT, OpAtomicFMaxEXT, OpAtomicFAddEXT */
    uint32_t modules = 0;
    for (uint32_t id = 0; id < HDI_MODULE_COUNT; id++) {
        const hdi_blob *blob = hdi_module_get(id) ? hdi_module_get(id)->spirv : NULL;
        for (size_t at = 5; blob && at < blob->word_count; at += blob->words[at] >> 16) {
            const uint32_t op = blob->words[at] & 0xFFFF;
            assert_true(blob->words[at] >> 16 > 0);
            if (op == ATOMIC_MIN || op == ATOMIC_MAX || op == ATOMIC_ADD) fail_msg("%s has a float atomic", hdi_module_get(id)->name);
        }
        modules += blob != NULL;
    }
    assert_true(modules > 20);
}

/* Every sum of floats in the kernels of norms is decorated: no driver makes an fma of it and a product. */
static void norms_are_not_contracted(void **state) {
    (void)state;
    enum { DECORATE = 71, NO_CONTRACTION = 42, FADD = 129, FSUB = 131, MOST = 20000 };
    static bool decorated[MOST];
    uint32_t modules = 0, sums = 0;
    for (uint32_t id = 0; id < HDI_MODULE_COUNT; id++) {
        const hdi_module *module = hdi_module_get(id);
        if (!module || !module->spirv || strncmp(module->name, "norm", 4) != 0) continue;
        const hdi_blob *blob = module->spirv;
        memset(decorated, 0, sizeof decorated);
        assert_true(blob->words[3] <= MOST);
        for (size_t at = 5; at < blob->word_count; at += blob->words[at] >> 16) { /* decorations stand in front of functions */
            const uint32_t *word = blob->words + at, op = word[0] & 0xFFFF;
            if (op == DECORATE && word[2] == NO_CONTRACTION) decorated[word[1]] = true;
            if (op != FADD && op != FSUB) continue;
            if (!decorated[word[2]]) fail_msg("%s: %%%u may be contracted", module->name, word[2]);
            sums++;
        }
        modules++;
    }
    assert_true(modules == 3 && sums > 30);
}

static const char program_text[] =
    "heddle 1\nv1 = input f32[70,300] \"x\"\nv2 = input f32[300,130] \"w\"\nv3 = input i32[70] \"i\"\nv4 = matmul v1 v2\n"
    "v5 = softmax v4 axis=1\nv6 = rms_norm v5 - eps=1e-05\nv7 = sum v6 axis=0\nv8 = mean v1 axis=1\nv9 = input f32[8,300] \"t\"\n"
    "v10 = scatter_add v9 v3 v1\noutput v5 \"p\"\noutput v7 \"s\"\noutput v8 \"m\"\noutput v10 \"a\"\n";

static void a_hundred_runs_are_one(void **state) {
    (void)state;
    static float x[70 * 300], w[300 * 130], t[8 * 300], out[70 * 130 + 130 + 70 + 8 * 300];
    static int32_t rows[70];
    static const struct { const char *name; size_t count; } outputs[] = { { "p", 70 * 130 }, { "s", 130 }, { "m", 70 }, { "a", 8 * 300 } };
    uint32_t seed = 7;
    for (size_t i = 0; i < HDI_COUNT(x); i++) x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2;
    for (size_t i = 0; i < HDI_COUNT(w); i++) w[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2;
    for (size_t i = 0; i < HDI_COUNT(rows); i++) rows[i] = (int32_t)(i * 5 % 8);
    static const char *const devices[] = { "cpu", "vulkan", "opencl" };
    for (size_t d = 0; d < HDI_COUNT(devices); d++) {
        hd_context *context;
        hd_device *device;
        hd_program *program = NULL;
        hd_plan *plan = NULL;
        uint64_t first = 0;
        assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .verify = -1 }, &context), HD_OK);
        if (hd_device_open(context, &(hd_device_desc){ .id = devices[d] }, &device)) {
            print_message("%s\n", hd_context_error(context));
            hd_context_destroy(context);
            continue;
        }
        if (hd_program_parse(context, program_text, sizeof program_text - 1, &program) || hd_plan_create(device, program, NULL, &plan))
            fail_msg("%s", hd_context_error(context));
        for (int run = 0; run < 100; run++) {
            uint64_t hash = HDI_HASH_START;
            float *to = out;
            bool failed = hd_plan_write(plan, "x", x, sizeof x) || hd_plan_write(plan, "w", w, sizeof w) ||
                               hd_plan_write(plan, "i", rows, sizeof rows) || hd_plan_write(plan, "t", t, sizeof t) ||
                               hd_plan_run(plan, NULL);
            for (size_t o = 0; o < HDI_COUNT(outputs) && !failed; to += outputs[o++].count) {
                failed = hd_plan_read(plan, outputs[o].name, to, outputs[o].count * sizeof *to) != HD_OK;
                hash = hdi_hash(hash, to, outputs[o].count * sizeof *to);
            }
            if (failed) fail_msg("%s", hd_context_error(context));
            if (run == 0) first = hash;
            if (hash != first) fail_msg("%s: run %d gives other bits than the first", devices[d], run);
        }
        print_message("%s: 100 runs, hash %016llx\n", devices[d], (unsigned long long)first);
        hd_context_destroy(context);
    }
}

static hd_context *context;
static hd_device *device;
static bool open_device(const char *id) {
    assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = "", .verify = -1 }, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) return true;
    print_message("%s\n", hd_context_error(context));
    hd_context_destroy(context);
    return false;
}
static const char *const all_devices[] = { "cpu", "vulkan", "opencl" };

/* One to sixteen rows through a product, a norm, a softmax and a product with quantised weights: the first of them has one hash on
 * all devices, whatever is beside it. */
static void a_row_is_the_same_among_sixteen(void **state) {
    (void)state;
    enum { K = 160, N = 96 };
    static float x[16 * K], w[K * N], y[16 * N];
    static uint8_t q[N * N / 32 * 34];
    uint32_t seed = 5;
    uint64_t first = 0, hashes = 0;
    for (size_t i = 0; i < HDI_COUNT(x); i++) x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2;
    for (size_t i = 0; i < HDI_COUNT(w); i++) w[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2;
    for (size_t i = 0; i < HDI_COUNT(q); i++) q[i] = i % 34 == 0 ? 7 : i % 34 == 1 ? 0x20 : (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (size_t d = 0; d < HDI_COUNT(all_devices); d++) {
        if (!open_device(all_devices[d])) continue;
        for (int64_t rows = 1; rows <= 16; rows++) {
            hd_plan *plan = NULL;
            hd_program *p = hd_program_create(context);
            const hd_value h = hd_matmul(p, hd_rms_norm(p, hd_input(p, "x", HD_F32, HD_SHAPE(rows, K)), 0, 1e-5f), hd_input(p, "w", HD_F32, HD_SHAPE(K, N)));
            hd_output(p, "y", hd_matmul_with(p, hd_softmax(p, h, 1), hd_input(p, "q", HD_Q8_0, HD_SHAPE(N, N)), HD_TRANSPOSE_B));
            if (hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan) || hd_plan_write(plan, "x", x, (uint64_t)rows * K * 4) ||
                hd_plan_write(plan, "w", w, sizeof w) || hd_plan_write(plan, "q", q, sizeof q) || hd_plan_run(plan, NULL) ||
                hd_plan_read(plan, "y", y, (uint64_t)rows * N * 4))
                fail_msg("%s, %d rows: %s", all_devices[d], (int)rows, hd_context_error(context));
            const uint64_t hash = hdi_hash(HDI_HASH_START, y, N * 4);
            if (hashes++ == 0) first = hash;
            if (hash != first) fail_msg("%s: a row among %d has other bits", all_devices[d], (int)rows);
        }
        hd_context_destroy(context);
    }
    print_message("%d rows, hash %016llx\n", (int)hashes, (unsigned long long)first);
}

/* Sums of 5e7 on the way to 240, squares that add up to 1e8: a half ends at 65,504. */
static void sums_of_halves_are_floats(void **state) {
    (void)state;
    enum { K = 2048, N = 64, ROWS = 20, HALF_240 = 0x5B80 };
    static uint16_t a[ROWS * K], b[N * K], x[ROWS * K];
    static float p[ROWS * N];
    static uint16_t h[ROWS * N], n[ROWS * K];
    for (int i = 0; i < ROWS * K; i++) a[i] = HALF_240, x[i] = HALF_240;
    for (int i = 0; i < N * K; i++) b[i] = i % K == K - 1 ? 0x3C00 : i % K < K / 2 ? HALF_240 : HALF_240 | 0x8000; /* 1, 240, -240 */
    for (int i = 0; i < N; i++) b[i * K] = 0; /* as many of either sign */
    for (size_t d = 0; d < HDI_COUNT(all_devices); d++) {
        if (!open_device(all_devices[d])) continue;
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            hd_plan *plan = NULL;
            hd_program *g = hd_program_create(context);
            const hd_value one = hd_input(g, "a", HD_F16, HD_SHAPE(ROWS, K)), other = hd_input(g, "b", HD_F16, HD_SHAPE(N, K));
            hd_output(g, "p", hd_matmul_with(g, one, other, HD_TRANSPOSE_B | HD_RESULT_F32));
            hd_output(g, "h", hd_matmul_with(g, one, other, HD_TRANSPOSE_B));
            hd_output(g, "n", hd_rms_norm(g, hd_input(g, "x", HD_F16, HD_SHAPE(ROWS, K)), 0, 1e-5f));
            if (hd_plan_create(device, g, &(hd_plan_desc){ .math = (hd_math)math }, &plan) || hd_plan_write(plan, "a", a, sizeof a) ||
                hd_plan_write(plan, "b", b, sizeof b) || hd_plan_write(plan, "x", x, sizeof x) || hd_plan_run(plan, NULL) ||
                hd_plan_read(plan, "p", p, sizeof p) || hd_plan_read(plan, "h", h, sizeof h) || hd_plan_read(plan, "n", n, sizeof n))
                fail_msg("%s: %s", all_devices[d], hd_context_error(context));
            for (int i = 0; i < ROWS * N; i++)
                if (p[i] != 240 || h[i] != HALF_240) fail_msg("%s: element %d is %g and half %04x", all_devices[d], i, (double)p[i], h[i]);
            for (int i = 0; i < ROWS * K; i++)
                if (n[i] != 0x3C00) fail_msg("%s: norm %d is half %04x, not 1", all_devices[d], i, n[i]);
        }
        hd_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_kernel_has_float_atomics), cmocka_unit_test(norms_are_not_contracted), cmocka_unit_test(a_hundred_runs_are_one),
                                        cmocka_unit_test(a_row_is_the_same_among_sixteen), cmocka_unit_test(sums_of_halves_are_floats) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
