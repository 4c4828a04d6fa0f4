/* bench_matvec.c: matrix products of few rows, as a language model's decode has them: [M,K] x [N,K]^T for weights of each
 * type. Several weights, more than 200 MB of them, are used in turn so that no cache holds them; the products of one plan
 * are independent, and the time of one is the slope between a plan of many and one of few, run in turn, so that hand-over
 * falls out. Prints medians, bytes a second of weights, and the largest error beside float64 as a part of sum |a b|.
 * With `options`, each option of the integer kernel in turn (fast mode; "rules": what is taken where nothing was measured).
 *   bench_matvec [device] [M] [rounds] [plain|norm|pair] [shapes] [fast|exact] [options] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "front/front.h"
#include "kernels/kernel.h"
#include "kernels/reference/reference.h"
#include "random.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, WARM_US = 30000, PRODUCTS = 96 };
typedef struct bench {
    hd_context *context;
    hd_device  *device;
    int         rounds;
    const char *form;
    hd_math     math;
} bench;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static uint32_t seed = 1;

/* Random blocks whose scales, two bytes each, are small numbers. */
static uint8_t *random_weights(hd_dtype dtype, int64_t n, int64_t k) {
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    const size_t bytes = (size_t)hd_tensor_bytes(dtype, HD_SHAPE(n, k));
    uint8_t *out = malloc(bytes + 4);
    random_blocks(&seed, out, bytes, 0xFF);
    for (size_t at = 0; at < bytes; at += dtype == HD_F16 ? 2 : facts.block_bytes) {
        const size_t scale = at + (dtype == HD_Q6_K ? 208 : dtype == HD_TQ2_0 ? 64 : 0);
        out[scale + 1] = (uint8_t)(0x1c + (random_word(&seed) >> 30)); /* 2^-8 to 2^-7 */
        if (dtype == HD_Q4_K) out[scale + 3] = 0x1c;
    }
    return out;
}

static hd_value product(hd_program *p, hd_value x, hd_value w) { return hd_matmul_with(p, x, w, HD_TRANSPOSE_B); }

/* A plan of `count` products of one x with weights w0, w1, ... in turn. */
static hd_plan *make(const bench *b, hd_dtype dtype, int64_t m, int64_t n, int64_t k, int weights, int count) {
    hd_program *p = hd_program_create(b->context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(m, k)), w[512];
    char name[16];
    if (strcmp(b->form, "plain") != 0) x = hd_rms_norm(p, x, hd_input(p, "norm", HD_F32, HD_SHAPE(k)), 1e-6f);
    for (int i = 0; i < weights; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = hd_input(p, name, dtype, HD_SHAPE(n, k));
    }
    for (int i = 0; i < count; i++) {
        hd_value y = product(p, x, w[i % weights]);
        if (strcmp(b->form, "pair") == 0) y = hd_mul(p, hd_silu(p, y), product(p, x, w[(i + 1) % weights]));
        snprintf(name, sizeof name, "y%d", i);
        hd_output(p, name, y);
    }
    hd_plan *plan = NULL;
    if (hd_plan_create(b->device, p, &(hd_plan_desc){ .math = b->math }, &plan)) fprintf(stderr, "%s\n", hd_context_error(b->context));
    hd_program_destroy(p);
    return plan;
}

static double run_us(const bench *b, hd_plan *plan) {
    const double begin = now_us();
    if (hd_plan_run(plan, NULL)) fprintf(stderr, "%s\n", hd_context_error(b->context));
    return now_us() - begin;
}

/* How much longer the longer plan takes, once the device is warm. */
static double median_us(const bench *b, hd_plan *longer, hd_plan *shorter) {
    double *times = calloc((size_t)b->rounds, sizeof *times);
    for (const double begin = now_us(); now_us() - begin < WARM_US;) run_us(b, longer);
    for (int r = 0; r < b->rounds; r++) {
        const double rest = run_us(b, shorter);
        times[r] = run_us(b, longer) - rest;
    }
    qsort(times, (size_t)b->rounds, sizeof *times, by_value);
    const double median = times[b->rounds / 2];
    free(times);
    return median;
}

/* Largest error of sampled elements of a plain product over sum |a b|. */
static double error_of(hd_dtype dtype, const float *x, const uint8_t *w, const float *y, int64_t m, int64_t n, int64_t k) {
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    const size_t line = (size_t)k / facts.block_elements * facts.block_bytes;
    float *row = malloc((size_t)k * sizeof *row);
    double worst = 0;
    for (int s = 0; s < 64; s++) {
        const int64_t i = s % m, j = s * INT64_C(104729) % n;
        double sum = 0, size = 0;
        hdi_reference_tensor from = { dtype, HD_SHAPE(1, k), (void *)(uintptr_t)(w + (size_t)j * line) }, to = { HD_F32, HD_SHAPE(1, k), row };
        const hdi_node cast = { .op = HDI_OP_CAST, .dtype = HD_F32, .shape = HD_SHAPE(1, k), .operand_count = 1 };
        if (hdi_reference(&cast, &from, &to, NULL)) return NAN;
        for (int64_t q = 0; q < k; q++) {
            sum += (double)x[i * k + q] * (double)row[q];
            size += fabs((double)x[i * k + q] * (double)row[q]);
        }
        worst = fmax(worst, fabs((double)y[i * n + j] - sum) / size);
    }
    free(row);
    return worst;
}

static void measure(const bench *b, const char *option, hd_dtype dtype, int64_t m, int64_t n, int64_t k) {
    const size_t bytes = (size_t)hd_tensor_bytes(dtype, HD_SHAPE(n, k));
    const int weights = (int)HDI_MIN((size_t)256, 1 + 220000000 / bytes), few = 2, many = few + HDI_MAX(weights, PRODUCTS);
    hd_plan *longer = make(b, dtype, m, n, k, weights, many), *shorter = make(b, dtype, m, n, k, weights, few);
    float *x = malloc((size_t)(m * k) * 4), *y = malloc((size_t)(m * n) * 4), *norm = malloc((size_t)k * 4);
    uint8_t *w = random_weights(dtype, n, k);
    char name[16];
    for (int64_t i = 0; i < m * k; i++) x[i] = random_float(&seed);
    for (int64_t i = 0; i < k; i++) norm[i] = 1;
    for (int p = 0; p < 2; p++) {
        hd_plan *plan = p ? shorter : longer;
        hd_plan_write(plan, "x", x, (size_t)(m * k) * 4);
        if (strcmp(b->form, "plain") != 0) hd_plan_write(plan, "norm", norm, (size_t)k * 4);
        for (int i = 0; i < weights; i++) {
            snprintf(name, sizeof name, "w%d", i);
            hd_plan_write(plan, name, w, bytes);
        }
    }
    const double us = median_us(b, longer, shorter) / (many - few);
    hd_plan_read(longer, "y0", y, (size_t)(m * n) * 4);
    const double read = (double)bytes * (strcmp(b->form, "pair") == 0 ? 2 : 1);
    printf("{\"bench\":\"matvec\",\"option\":\"%s\",\"form\":\"%s\",\"type\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d,\"us\":%.2f,\"gb_s\":%.0f", option, b->form, hd_dtype_name(dtype), (int)m, (int)n, (int)k, us, read / us * 1e-3);
    if (strcmp(b->form, "plain") == 0) printf(",\"error\":%.1e", error_of(dtype, x, w, y, m, n, k));
    printf("}\n");
    fflush(stdout);
    hd_plan_destroy(longer);
    hd_plan_destroy(shorter);
    free(x);
    free(y);
    free(norm);
    free(w);
}

/* The same with what the rules take, then with each option of the integer kernel. */
static void measure_options(const bench *b, hd_dtype dtype, int64_t m, int64_t n, int64_t k) {
    const hdi_class of = hdi_class_of(strcmp(b->form, "plain") == 0 ? HDI_CLASS_MATVEC : HDI_CLASS_MERGED, dtype, (uint64_t)m, (uint64_t)(n * k));
    hdi_store *facts = b->device->facts;
    char text[HDI_KERNEL_OPTION_TEXT];
    if (hdi_store_choose(facts, of, NULL, NULL)) return;
    measure(b, "rules", dtype, m, n, k);
    for (const hdi_kernel_option *o = NULL; (o = hdi_kernel_option_next(HDI_MODULE_MATVEC_DOT, o));) {
        const hdi_choice choice = { .of = of, .option = o->id, .gain = 1 };
        if (hdi_store_choose(facts, of, &choice, NULL) == HD_OK) measure(b, hdi_kernel_option_text(o, text), dtype, m, n, k);
    }
    (void)hdi_store_choose(facts, of, NULL, NULL);
}

int main(int count, char **arguments) {
    static const hd_dtype types[] = { HD_F16, HD_Q8_0, HD_Q4_0, HD_Q4_K, HD_Q6_K, HD_TQ2_0 };
    static const int64_t shapes[][2] = { { 4096, 14336 }, { 4096, 2560 }, { 1024, 2560 }, { 9728, 2560 }, { 2560, 4096 }, { 2560, 9728 }, { 151936, 2560 } };
    const int m = count > 2 ? atoi(arguments[2]) : 1;
    bench b = { .rounds = count > 3 ? atoi(arguments[3]) : ROUNDS, .form = count > 4 ? arguments[4] : "plain" };
    b.math = count > 6 && strcmp(arguments[6], "exact") == 0 ? HD_MATH_EXACT : HD_MATH_FAST;
    const size_t some = count > 5 ? (size_t)atoi(arguments[5]) : HDI_COUNT(shapes);
    if (m < 1 || m > 64 || b.rounds < 1 || hd_context_create(NULL, &b.context)) return 2;
    if (hd_device_open(b.context, &(hd_device_desc){ .id = count > 1 ? arguments[1] : NULL }, &b.device)) {
        fprintf(stderr, "%s\n", hd_context_error(b.context));
        return 1;
    }
    for (size_t s = 0; s < HDI_MIN(some, HDI_COUNT(shapes)); s++)
        for (size_t t = 0; t < HDI_COUNT(types); t++) {
            if (count > 7 && hdi_dtype_is_quantised(types[t])) measure_options(&b, types[t], m, shapes[s][0], shapes[s][1]);
            else measure(&b, "", types[t], m, shapes[s][0], shapes[s][1]);
        }
    hd_context_destroy(b.context);
    return 0;
}
