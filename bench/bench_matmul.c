/* bench_matmul.c: the planned f32 product of the CPU device beside OpenBLAS, in one run: the two in turn, medians, spread,
 * and the largest error of each against float64 on sampled elements. OpenBLAS is opened at run time; the machine's own
 * kernels may have to be named to it (OPENBLAS_CORETYPE).   bench_matmul [M N K] [threads] [rounds] */
#define _GNU_SOURCE
#include "clock.h"
#include "random.h"
#include <dlfcn.h>
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void (*threads_fn)(int);

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Largest error of sampled elements over sum |a b|. */
static double error_of(const float *a, const float *b, const float *c, int m, int n, int k) {
    double worst = 0;
    for (int s = 0; s < 200; s++) {
        int i = s * 7919 % m, j = s * 104729 % n;
        double sum = 0, scale = 0;
        for (int p = 0; p < k; p++) {
            double term = (double)a[(size_t)i * (size_t)k + (size_t)p] * (double)b[(size_t)p * (size_t)n + (size_t)j];
            sum += term;
            scale += fabs(term);
        }
        worst = fmax(worst, fabs((double)c[(size_t)i * (size_t)n + (size_t)j] - sum) / scale);
    }
    return worst;
}

static float *random_matrix(size_t count, uint32_t seed) {
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; x && i < count; i++) x[i] = random_float(&seed);
    return x;
}

int main(int count, char **arguments) {
    int m = count > 3 ? atoi(arguments[1]) : 2048, n = count > 3 ? atoi(arguments[2]) : 2048, k = count > 3 ? atoi(arguments[3]) : 2048;
    int threads = count > 4 ? atoi(arguments[4]) : 2, rounds = count > 5 ? atoi(arguments[5]) : 11;
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    if (m < 1 || n < 1 || k < 1 || threads < 1 || rounds < 1) return 2;
    size_t mn = (size_t)m * (size_t)n, mk = (size_t)m * (size_t)k, kn = (size_t)k * (size_t)n;
    float *a = random_matrix(mk, 1), *b = random_matrix(kn, 2), *ours = malloc(mn * 4), *theirs = calloc(mn, 4);
    if (hd_context_create(&(hd_context_desc){ .cpu_threads = (uint32_t)threads }, &context)) return 1;
    hd_status status = hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device);
    hd_program *p = hd_program_create(context);
    hd_output(p, "c", hd_matmul(p, hd_input(p, "a", HD_F32, HD_SHAPE(m, k)), hd_input(p, "b", HD_F32, HD_SHAPE(k, n))));
    if (!status) status = hd_plan_create(device, p, NULL, &plan);
    if (!status) status = hd_plan_write(plan, "a", a, mk * 4);
    if (!status) status = hd_plan_write(plan, "b", b, kn * 4);
    if (status) {
        fprintf(stderr, "%s\n", hd_context_error(context));
        return 1;
    }
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    sgemm_fn sgemm = NULL;
    threads_fn set_threads = NULL;
    if (library) {
        *(void **)&sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    }
    if (set_threads) set_threads(threads);
    double *t[2] = { calloc((size_t)rounds, 8), calloc((size_t)rounds, 8) };
    for (int r = -2; r < rounds; r++) { /* two rounds to warm up */
        double begin = now_s();
        if (hd_plan_run(plan, NULL)) return 1;
        double middle = now_s();
        if (sgemm) sgemm(101, 111, 111, m, n, k, 1, a, k, b, n, 0, theirs, n);
        if (r >= 0) t[0][r] = middle - begin, t[1][r] = now_s() - middle;
    }
    if (hd_plan_read(plan, "c", ours, mn * 4)) return 1;
    double flops = 2.0 * m * n * k * 1e-9, mid[2];
    for (int i = 0; i < 2; i++) {
        qsort(t[i], (size_t)rounds, 8, by_value);
        mid[i] = t[i][rounds / 2];
    }
    printf("{\"bench\":\"matmul\",\"m\":%d,\"n\":%d,\"k\":%d,\"threads\":%d,\"rounds\":%d,\"heddle_gflops\":%.1f,\"heddle_spread\":%.2f,\"heddle_error\":%.1e", m, n, k, threads,
           rounds, flops / mid[0], (t[0][rounds - 1] - t[0][0]) / mid[0], error_of(a, b, ours, m, n, k));
    if (sgemm)
        printf(",\"openblas_gflops\":%.1f,\"openblas_spread\":%.2f,\"openblas_error\":%.1e,\"ratio\":%.3f", flops / mid[1], (t[1][rounds - 1] - t[1][0]) / mid[1],
               error_of(a, b, theirs, m, n, k), mid[1] / mid[0]);
    printf("}\n");
    hd_context_destroy(context);
    return 0;
}
