/* bench_prefill.c: products of many rows with the weights of a language model's layer, type by type: the device's own
 * time for all dispatches of a product (median), TFLOP/s, and the largest error of sampled elements against float64, over
 * the sum of |a b|. One JSON line for each product, and one for each type with the sum over a layer.
 *   bench_prefill [device] [rows] [rounds] [type...]
 * Weights are random blocks; their values for the check come from the CPU in exact mode. */
#include "random.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; int k, n, times; } products[] = { /* Qwen3-4B: times it occurs in a layer */
    { "q", 2560, 4096, 1 }, { "k, v", 2560, 1024, 2 }, { "output", 4096, 2560, 1 }, { "gate, up", 2560, 9728, 2 }, { "down", 9728, 2560, 1 },
};
enum { PRODUCTS = sizeof products / sizeof products[0], SAMPLES = 64, MOST_ROUNDS = 101 };

static hd_device *device, *host;
static uint32_t   seed = 1;

static int by_value(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

static hd_dtype type_named(const char *name) {
    for (hd_dtype t = HD_F32; t < HD_DTYPE_COUNT; t++)
        if (strcmp(hd_dtype_name(t), name) == 0) return t;
    return HD_DTYPE_NONE;
}

static unsigned char *random_weights(hd_dtype type, hd_shape shape, size_t *out_bytes) {
    unsigned char *bytes = malloc(*out_bytes = (size_t)hd_tensor_bytes(type, shape));
    if (bytes) random_blocks(&seed, bytes, *out_bytes, type == HD_BF16 ? SMALL_BF16 : SMALL_F16);
    return bytes;
}

/* The weights' values on the host. */
static float *values_of(hd_context *context, hd_dtype type, hd_shape shape, const void *bytes, size_t count) {
    float *values = malloc((size_t)hd_tensor_bytes(HD_F32, shape));
    hd_program *p = hd_program_create(context);
    hd_plan *plan = NULL;
    hd_output(p, "y", hd_cast(p, hd_input(p, "x", type, shape), HD_F32));
    if (!values || hd_plan_create(host, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan) || hd_plan_write(plan, "x", bytes, count) || hd_plan_run(plan, NULL) ||
        hd_plan_read(plan, "y", values, (size_t)hd_tensor_bytes(HD_F32, shape))) {
        free(values);
        values = NULL;
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return values;
}

static double error_of(const float *a, const float *b, const float *c, int m, int n, int k) {
    double worst = 0;
    for (int s = 0; s < SAMPLES; s++) {
        const size_t i = random_below(&seed, (uint32_t)m), j = random_below(&seed, (uint32_t)n);
        double sum = 0, sizes = 0;
        for (size_t p = 0; p < (size_t)k; p++) {
            const double term = (double)a[i * (size_t)k + p] * (double)b[j * (size_t)k + p];
            sum += term;
            sizes += fabs(term);
        }
        const double error = fabs((double)c[i * (size_t)n + j] - sum) / sizes;
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

/* Seconds that all dispatches of one run took on the device; below 0 where that failed. */
static double seconds_of_run(hd_plan *plan, size_t *out_dispatches) {
    hd_timing timings[32];
    double ns = 0;
    *out_dispatches = sizeof timings / sizeof timings[0];
    if (hd_plan_run(plan, NULL) || hd_plan_timings(plan, timings, out_dispatches)) return -1;
    for (size_t i = 0; i < *out_dispatches; i++) ns += (double)timings[i].ns;
    return ns * 1e-9;
}

/* Median seconds of a product, which is printed; below 0 where it failed. */
static double measure(hd_context *context, hd_dtype type, int which, int m, int rounds) {
    const int n = products[which].n, k = products[which].k;
    size_t bytes = 0, dispatches = 0;
    const size_t a_bytes = (size_t)m * (size_t)k * 4, c_bytes = (size_t)m * (size_t)n * 4;
    unsigned char *weights = random_weights(type, HD_SHAPE(n, k), &bytes);
    float *b = weights ? values_of(context, type, HD_SHAPE(n, k), weights, bytes) : NULL, *a = malloc(a_bytes), *c = malloc(c_bytes);
    double seconds[MOST_ROUNDS] = { 0 }, median = -1;
    hd_program *p = hd_program_create(context);
    hd_plan *plan = NULL;
    hd_output(p, "c", hd_matmul_with(p, hd_input(p, "a", HD_F32, HD_SHAPE(m, k)), hd_input(p, "b", type, HD_SHAPE(n, k)), HD_TRANSPOSE_B));
    for (size_t i = 0; a && i < a_bytes / 4; i++) a[i] = random_float(&seed);
    bool good = a && b && c && !hd_plan_create(device, p, &(hd_plan_desc){ .timestamps = 1 }, &plan) && !hd_plan_write(plan, "a", a, a_bytes) &&
                !hd_plan_write(plan, "b", weights, bytes);
    double busy = 0;
    for (int warm = 0; warm < 2000 && busy < 0.3 && good; warm++) { /* until the device runs at full speed */
        const double s = seconds_of_run(plan, &dispatches);
        good = s >= 0;
        busy += s + 30e-6;
    }
    for (int r = 0; r < rounds && good; r++) good = (seconds[r] = seconds_of_run(plan, &dispatches)) >= 0;
    if (good && !hd_plan_read(plan, "c", c, c_bytes)) {
        qsort(seconds, (size_t)rounds, sizeof *seconds, by_value);
        median = seconds[rounds / 2];
        printf("{\"bench\":\"prefill\",\"product\":\"%s\",\"type\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d,\"dispatches\":%zu,\"us\":%.1f,\"tflops\":%.1f,\"error\":%.1e}\n",
               products[which].name, hd_dtype_name(type), m, n, k, dispatches, median * 1e6, 2e-12 * m * n * k / median, error_of(a, b, c, m, n, k));
    } else {
        fprintf(stderr, "%s\n", hd_context_error(context));
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    free(weights);
    free(a);
    free(b);
    free(c);
    return median;
}

int main(int count, char **arguments) {
    static char *usual[] = { "f16", "bf16", "q4_0", "q8_0", "q4_k", "q6_k" };
    const int m = count > 2 ? atoi(arguments[2]) : 512, rounds = count > 3 ? atoi(arguments[3]) : 15;
    char **types = count > 4 ? arguments + 4 : usual;
    const int type_count = count > 4 ? count - 4 : (int)(sizeof usual / sizeof usual[0]);
    hd_context *context;
    if (m < 1 || rounds < 1 || rounds > MOST_ROUNDS || hd_context_create(NULL, &context)) return 2;
    if (hd_device_open(context, &(hd_device_desc){ .id = count > 1 ? arguments[1] : NULL }, &device) || hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &host)) {
        fprintf(stderr, "%s\n", hd_context_error(context));
        return 1;
    }
    for (int t = 0; t < type_count; t++) {
        double seconds = 0, flops = 0;
        for (int i = 0; i < PRODUCTS; i++) {
            const double s = measure(context, type_named(types[t]), i, m, rounds);
            if (s < 0) return 1;
            seconds += products[i].times * s;
            flops += products[i].times * 2.0 * m * products[i].n * products[i].k;
        }
        printf("{\"bench\":\"prefill\",\"product\":\"layer\",\"type\":\"%s\",\"m\":%d,\"us\":%.1f,\"tflops\":%.1f}\n", types[t], m, seconds * 1e6, flops / seconds * 1e-12);
        fflush(stdout);
    }
    hd_context_destroy(context);
    return 0;
}
