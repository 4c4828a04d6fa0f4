/* test_ternary_products.c: in exact mode ternary weights times numbers of 8 bits are whole numbers: what each device gives is, bit by
 * bit, what integers in plain C give, with a scale once a run of 32 as docs/ops.md says. tq1_0 and tq2_0 with any scales, and i2_s
 * as it lies on a device: tq2_0 or q4_0 of scale 1, the product times the tensor's scale. On the CPU, or the devices that
 * arguments name. */
#include "kernels/exact.h"
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

enum { RUN = 32, STRANDS = 16, MOST_ROWS = 130, MOST_COLUMNS = 130, MOST_K = 1280 };
static const int64_t rows[] = { 1, 5, 130 }, columns[] = { 130, 17, 70 };

typedef struct weights { hd_dtype dtype; int64_t K; float scale; } weights; /* scale: of the whole tensor; 0: one each block */
static const weights kinds[] = { { HD_TQ2_0, 1280, 0 }, { HD_TQ1_0, 1280, 0 }, { HD_TQ2_0, 768, 0.37f }, { HD_Q4_0, 1184, -1.7f } };

static uint32_t seed;
static uint32_t draw(uint32_t below) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % below; }

static int8_t  w[MOST_COLUMNS * MOST_K];       /* -1, 0, 1 */
static float   d[MOST_COLUMNS * MOST_K / RUN]; /* of each block */
static uint8_t blocks[MOST_COLUMNS * MOST_K];
static float   a[MOST_ROWS * MOST_K], wanted[MOST_ROWS * MOST_COLUMNS], got[MOST_ROWS * MOST_COLUMNS];

static int64_t elements_of(hd_dtype dtype) { return dtype == HD_Q4_0 ? 32 : 256; }

/* A block of values, all bits spelled out. */
static void pack(hd_dtype dtype, const int8_t *v, uint16_t half, uint8_t *out) {
    const size_t at = dtype == HD_Q4_0 ? 0 : dtype == HD_TQ1_0 ? 52 : 64, codes = dtype == HD_Q4_0 ? 2 : 0;
    memset(out, 0, hd_dtype_bytes(dtype, (uint64_t)elements_of(dtype)));
    memcpy(out + at, &half, sizeof half);
    for (int i = 0; i < 32 && dtype == HD_Q4_0; i++) out[codes + (size_t)(i % 16)] |= (uint8_t)((v[i] + 8) << (i < 16 ? 0 : 4));
    for (int i = 0; i < 256 && dtype == HD_TQ2_0; i++) out[i / 128 * 32 + i % 32] |= (uint8_t)((v[i] + 1) << (i % 128 / 32 * 2));
    for (int byte = 0; byte < 52 && dtype == HD_TQ1_0; byte++) { /* five digits a byte, of the last four bytes four */
        const int first = byte < 32 ? byte : byte < 48 ? 160 + byte - 32 : 240 + byte - 48, step = byte < 32 ? 32 : byte < 48 ? 16 : 4;
        uint32_t number = 0;
        for (int n = 0; n < 5; n++) number = 3 * number + (byte >= 48 && n == 4 ? 0 : (uint32_t)(v[first + n * step] + 1));
        out[byte] = (uint8_t)((number * 256 + 242) / 243);
    }
}

static void draw_weights(const weights *kind, int64_t N) {
    static const struct { float value; uint16_t half; } scales[] = { { 1, 0x3C00 }, { 0.5f, 0x3800 }, { -2, 0xC000 }, { 0x1.554p-2f, 0x3555 }, { 0x1.8p-10f, 0x1600 } };
    const int64_t each = elements_of(kind->dtype);
    for (int64_t i = 0; i < N * kind->K; i++) w[i] = (int8_t)draw(3) - 1;
    for (int64_t b = 0; b < N * kind->K / each; b++) {
        const uint32_t s = kind->scale != 0 ? 0 : draw(5);
        d[b] = scales[s].value;
        pack(kind->dtype, w + b * each, scales[s].half, blocks + hd_dtype_bytes(kind->dtype, (uint64_t)(b * each)));
    }
}

/* Whole: numbers of 8 bits times powers of two, the largest of each run among them, so that nothing is rounded. */
static void draw_rows(int64_t M, int64_t K, bool whole) {
    for (int64_t i = 0; i < M * K; i++) a[i] = whole ? (float)draw(255) - 127 : ldexpf((float)draw(1u << 24) - 0x1p23f, (int)draw(12) - 30);
    for (int64_t r = 0; r < M * K / RUN && whole; r++) a[r * RUN + draw(RUN)] = draw(2) ? 127 : -127;
    for (int64_t i = 0; i < RUN && !whole; i++) a[i] = 0;
}

/* The integers of one run, and what a unit of them stands for. */
static int64_t whole_of_run(const float *x, const int8_t *v, float *out_scale) {
    float most = 0;
    int64_t sum = 0;
    for (int i = 0; i < RUN; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    const exact_rounding rounding = exact_int8_rounding(exact_bits(most));
    for (int i = 0; i < RUN; i++) {
        volatile float scaled = x[i] * rounding.inverse;
        const long code = lrintf(scaled);
        assert_in_range(code + 127, 0, 254);
        sum += code * v[i];
    }
    *out_scale = rounding.scale;
    return sum;
}

static float element(const weights *kind, int64_t m, int64_t n) {
    volatile float total = 0, strand, value;
    for (int64_t j = 0; j < STRANDS; j++) {
        strand = 0;
        for (int64_t run = j; run < kind->K / RUN; run += STRANDS) {
            float scale;
            const int64_t at = n * kind->K + run * RUN, sum = whole_of_run(a + m * kind->K + run * RUN, w + at, &scale);
            value = d[at / elements_of(kind->dtype)] * (float)sum;
            value = scale * value;
            strand = strand + value;
        }
        total = total + strand;
    }
    if (kind->scale != 0) total = total * kind->scale;
    return total + 0; /* as scale is: 0 is not negative */
}

static void compute(hd_device *device, hd_context *context, const weights *kind, int64_t M, int64_t N) {
    hd_program *p = hd_program_create(context);
    hd_plan *plan = NULL;
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(M, kind->K)), y = hd_input(p, "w", kind->dtype, HD_SHAPE(N, kind->K));
    hd_value out = hd_matmul_with(p, x, y, HD_TRANSPOSE_B);
    if (kind->scale != 0) out = hd_scale(p, out, kind->scale, 0);
    hd_output(p, "y", out);
    if (hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .alone = 1 }, &plan) ||
        hd_plan_write(plan, "x", a, (uint64_t)(M * kind->K) * sizeof *a) ||
        hd_plan_write(plan, "w", blocks, hd_tensor_bytes(kind->dtype, HD_SHAPE(N, kind->K))) || hd_plan_run(plan, NULL) ||
        hd_plan_read(plan, "y", got, (uint64_t)(M * N) * sizeof *got))
        fail_msg("%s", hd_context_error(context));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

/* One product; where all numbers are whole, also what they add up to in integers alone. */
static void compare(hd_device *device, hd_context *context, const char *name, const weights *kind, int64_t M, int64_t N, bool whole) {
    draw_weights(kind, N);
    draw_rows(M, kind->K, whole);
    for (int64_t i = 0; i < M * N; i++) wanted[i] = element(kind, i / N, i % N);
    for (int64_t i = 0; i < M * N && whole && kind->scale != 0; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < kind->K; k++) sum += (int64_t)a[i / N * kind->K + k] * w[i % N * kind->K + k];
        volatile float scaled = (float)sum * kind->scale;
        assert_true(scaled == wanted[i]);
    }
    compute(device, context, kind, M, N);
    for (int64_t i = 0; i < M * N; i++)
        if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
            fail_msg("%s, %s, %lld x %lld x %lld: element %lld is %a, not %a", name, hd_dtype_name(kind->dtype), (long long)M, (long long)N,
                     (long long)kind->K, (long long)i, (double)got[i], (double)wanted[i]);
}

static const char *const cpu[] = { "cpu" };
static const char *const *names = cpu;
static int name_count = 1;

static void products_are_whole_numbers(void **state) {
    (void)state;
    for (int n = 0; n < name_count; n++) {
        hd_context *context;
        hd_device *device;
        assert_int_equal(hd_context_create(NULL, &context), HD_OK);
        if (hd_device_open(context, &(hd_device_desc){ .id = names[n] }, &device)) fail_msg("%s", hd_context_error(context));
        seed = 7;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                for (int whole = 0; whole < 2; whole++) compare(device, context, names[n], &kinds[k], rows[r], columns[r], whole);
        print_message("%s: 24 products\n", names[n]);
        hd_context_destroy(context);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        names = (const char *const *)(argv + 1);
        name_count = argc - 1;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_are_whole_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
